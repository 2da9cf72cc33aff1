//! Passages: a turn, a step and a range are read by the same words in every command, on whatever branch they are.

use std::fs;

use super::json;
use crate::env::TestEnv;

const SESSION: &str = "7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40";

/// A session of Claude Code: @1 was asked, taken back, and asked again as @2; @3 came behind a compaction.
fn garden() -> TestEnv {
    let env = TestEnv::new();
    let folder = env.home().join(".claude/projects/-garden");
    fs::create_dir_all(&folder).unwrap();
    let garden = include_str!("../../../examples/claude-garden.jsonl");
    fs::write(folder.join(format!("{SESSION}.jsonl")), garden).unwrap();
    env
}

/// Returns the first words of each entry that a command shows, in order.
fn words(env: &TestEnv, args: &[&str]) -> Vec<String> {
    let shown = env.run(&[args, &["--json"]].concat()).success().stdout;
    let lines = shown.lines().map(json).filter(|line| line["type"] == "entry");
    let words = |line: serde_json::Value| {
        let blocks = line["blocks"].as_array().unwrap().clone();
        let text =
            blocks.iter().find_map(|block| block["text"].as_str().or(block["name"].as_str()));
        text.unwrap_or_else(|| panic!("{line}")).split(' ').take(3).collect::<Vec<_>>().join(" ")
    };
    // The agent's own records say nothing.
    lines.filter(|line| line["blocks"] != serde_json::json!([])).map(words).collect()
}

#[test]
fn a_turn_is_its_prompt_and_all_that_came_of_it() {
    let env = garden();
    for args in [["show", "7c2a@2"], ["log", "7c2a@2"]] {
        let read = words(&env, &args);
        assert_eq!(read.first().unwrap(), "The beans flower.", "{args:?}");
        assert!(read.len() > 2, "{args:?}: {read:?}");
    }
    // In either order, by a bare number, with -s, and for a command that takes no place.
    let turn = words(&env, &["show", "7c2a@2"]);
    for args in [
        &["show", "@2", "7c2a"] as &[&str],
        &["show", "7c2a", "@2"],
        &["show", "2", "7c2a"],
        &["show", "2", "-s", "7c2a"],
        &["log", "@2", "7c2a"],
        &["log", "2", "-s", "7c2a"],
        &["log", "7c2a", "@2"],
    ] {
        assert_eq!(words(&env, args), turn, "{args:?}");
    }
    let status = env.run(&["status", "7c2a@2", "--json"]).success().stdout;
    assert_eq!(json(&status)["session"], SESSION);
}

#[test]
fn steps_of_a_turn_make_it_up() {
    let env = garden();
    let turn = words(&env, &["show", "7c2a@0"]);
    let mut steps = Vec::new();
    for step in 0.. {
        let place = format!("7c2a@0.{step}");
        let shown = env.run(&["show", &place]);
        if shown.code() != Some(0) {
            let last =
                format!("there is no @0.{step}: the last step of that turn is @0.{}", step - 1);
            assert!(shown.stderr.contains(&last), "{shown}");
            break;
        }
        let read = words(&env, &["show", &place]);
        assert!(!read.is_empty(), "{step}");
        steps.push(read);
    }
    assert_eq!(steps[0], ["Which beds need"]);
    assert_eq!(steps.concat(), turn);
    let both = format!("7c2a@0.1..@0.{}", steps.len() - 1);
    assert_eq!(words(&env, &["log", &both]), steps[1..].concat());
}

#[test]
fn a_range_goes_from_the_one_turn_to_the_end_of_the_other_on_one_path() {
    let env = garden();
    let turn = |n: &str| words(&env, &["log", &format!("7c2a@{n}")]);
    // Above a compaction, and behind it.
    let all = words(&env, &["log", "7c2a"]);
    let behind = turn("3");
    assert!(all.ends_with(&behind), "{all:?}");
    assert_eq!(words(&env, &["log", "7c2a@0..@3"]), all);
    assert_eq!(words(&env, &["log", "@0..", "7c2a"]), all);
    assert_eq!(words(&env, &["log", "..@3", "7c2a"]), all);
    assert_eq!(words(&env, &["log", "..@0", "7c2a"]), turn("0"));
    assert_eq!(words(&env, &["log", "@2..@0", "7c2a"]), words(&env, &["log", "@0..@2", "7c2a"]));
    // What was taken back is on the path of its own end.
    let left = words(&env, &["show", "7c2a@0..@1"]);
    assert_eq!(left, [turn("0"), turn("1")].concat());
    let apart = env.run(&["log", "7c2a@1..@3"]);
    let reason =
        "these places are on different branches: @1 is on an unnamed branch, @3 is on main";
    assert!(apart.code() == Some(2) && apart.stderr.contains(reason), "{apart}");
    env.run(&["revert", "7c2a@3"]).success();
    let both = env.run(&["log", "7c2a@1..@3"]);
    assert!(both.stderr.contains("@3 is on main.1"), "{both}");
    assert_eq!(words(&env, &["log", "7c2a@3"]), behind);
    assert_eq!(words(&env, &["log", "7c2a", "--branch", "main.1"]), all);
}

#[test]
fn back_from_a_place_are_turns() {
    let env = garden();
    let at = |place: &str| words(&env, &["log", "7c2a", "--at", place]);
    assert_eq!(at("HEAD~1"), words(&env, &["log", "7c2a@0..@2"]));
    assert_eq!(at("HEAD~2"), words(&env, &["log", "7c2a@0"]));
    assert_eq!(at("@2"), words(&env, &["log", "7c2a@0..@2"]));
    env.run(&["revert", "HEAD~1", "7c2a"]).success();
    assert_eq!(words(&env, &["log", "7c2a"]), words(&env, &["log", "7c2a@0..@2"]));
    let none = env.run(&["show", "HEAD~9", "7c2a"]);
    assert_eq!(none.code(), Some(1), "{none}");
}

#[test]
fn a_turn_has_one_id_wherever_it_is_shown() {
    let env = garden();
    let lines = |args: &[&str]| -> Vec<serde_json::Value> {
        let shown = env.run(&[args, &["--json"]].concat()).success().stdout;
        shown.lines().map(json).collect()
    };
    for n in 0..4 {
        let id = lines(&["show", &format!("7c2a@{n}.0")])[0]["entry"].clone();
        let ids =
            [
                lines(&["log", &format!("7c2a@{n}")])[0]["entry"].clone(),
                lines(&["checkpoints", "7c2a"])[n]["before"].clone(),
                lines(&["graph", "7c2a"])
                    .into_iter()
                    .rfind(|node| node["checkpoint"] == n)
                    .unwrap()["entry"]
                    .clone(),
            ];
        assert_eq!(ids, [id.clone(), id.clone(), id.clone()], "@{n}");
        let id = id.as_str().unwrap();
        let shown = env.run(&["checkpoints", "7c2a"]).success().stdout;
        assert!(shown.contains(&format!("@{n}  {}", &id[..8])), "{shown}");
    }
}

#[test]
fn what_is_no_place_is_refused_with_the_next_step() {
    let env = garden();
    env.run(&["sessions"]).success();
    for (args, code, told) in [
        (&["show", "7c2a@99"] as &[&str], 1, "the nearest are @1"),
        (&["log", "@1..@99", "7c2a"], 1, "no checkpoint matches"),
        (&["log", "@1", "-f", "-s", "7c2a"], 2, "a place cannot be combined with"),
        (&["log", "7c2a", "--branch", "nowhere"], 1, "there is no branch"),
        (&["show", "7c2a@1", "--lines", "1:2"], 2, "needs a single entry"),
        (&["show", "7c2a@1", "-s", "nosuch"], 2, "you named two sessions"),
    ] {
        let refused = env.run(args);
        assert_eq!(refused.code(), Some(code), "{args:?}: {refused}");
        assert!(refused.to_string().contains(told), "{args:?}: {refused}");
        assert!(refused.stderr.contains("hint: "), "{args:?}: {refused}");
    }
    assert_eq!(env.run(&["show", "7c2a@1", "--hidden"]).code(), Some(1));
}
