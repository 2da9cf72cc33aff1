//! Windows: what a file says of its model counts, unless something else was said.

use std::{fmt::Write as _, path::Path};

use serde_json::{Value, json};
use undertext::verbs::{self, Machine};

use crate::{
    env::TestEnv,
    rollout::{Home, Rollout, SECOND, THREAD, later, write},
};

/// A file that names its model and its window.
fn telling() -> Rollout {
    let mut rollout = Rollout::first(THREAD);
    rollout
        .event(json!({ "type": "task_started", "turn_id": "a", "model_context_window": 100_000 }));
    rollout.line("turn_context", json!({ "cwd": "/w", "model": "gpt-old" }));
    rollout.item("user", "one");
    rollout.item("assistant", "to one");
    rollout.event(json!({ "type": "token_count", "info": { "model_context_window": 258_400 } }));
    rollout.event(json!({ "type": "task_started", "turn_id": "b" }));
    rollout.line("turn_context", json!({ "cwd": "/w", "model": "gpt-new" }));
    rollout.item("user", "two");
    rollout.event(json!({ "type": "token_count", "info": null }));
    rollout
}

#[test]
fn the_window_and_the_model_that_a_file_names_are_used_unless_something_else_is_said() {
    let env = TestEnv::new();
    let codex = env.home().join(".codex/sessions/2026/08/01");
    let name = format!("rollout-2026-08-01T10-00-00-{THREAD}.jsonl");
    let mut rollout = telling();
    rollout.long_answer();
    write(&codex.join(name), rollout.bytes.as_bytes());
    env.run(&["import"]).success();
    let context = |more: &[&str]| {
        let said = env.run(&[&["context", "--json", THREAD], more].concat()).success().stdout;
        let first: Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
        let field = |key: &str| first[key].clone();
        (field("window"), field("source"), field("model"))
    };
    let of = |window: u64, source: &str, model: &str| (json!(window), json!(source), json!(model));
    assert_eq!(context(&[]), of(258_400, "file", "gpt-new"));
    let places = env.run(&["checkpoints", "--json", THREAD]).success().stdout;
    let first: Value = serde_json::from_str(places.lines().next().unwrap()).unwrap();
    let before = first["entry"].as_str().unwrap();
    assert_eq!(context(&["--at", before]), of(100_000, "file", "gpt-old"));
    assert_eq!(context(&["--model", "gpt-new"]), of(258_400, "file", "gpt-new"));
    // The file speaks of its own model only.
    assert_eq!(context(&["--model", "gpt-4o"]), of(128_000, "model", "gpt-4o"));
    assert_eq!(context(&["--window", "50000"]), of(50_000, "asked", "gpt-new"));
    let words = env.run(&["context", THREAD]).success().stdout;
    assert!(words.contains("of a window of 258,400 (the session's file, gpt-new)"), "{words}");
    let status = env.run(&["status", THREAD]).success().stdout;
    assert!(status.contains("of 258,400 tokens;"), "{status}");
    assert!(status.contains("by the session's file, gpt-new"), "{status}");
    let json_of = |args: &[&str]| -> Value {
        let said = env.run(args).success().stdout;
        serde_json::from_str(said.lines().last().unwrap()).unwrap()
    };
    let plan = json_of(&["compact", "--dry-run", "--json", THREAD]);
    assert_eq!(plan["window"], json!(258_400));
    // 100,000 characters fit here, and would not into a window of which nothing is known.
    let cut = json_of(&["truncate", "--dry-run", "--json", THREAD]);
    assert_eq!((&cut["window"], &cut["results"]), (&json!(258_400), &json!(0)));
    let cut = json_of(&["truncate", "--dry-run", "--json", "--window", "32000", THREAD]);
    assert_eq!((&cut["window"], &cut["results"]), (&json!(32_000), &json!(1)));
    let recovered = json_of(&["recover", "--json", THREAD]);
    assert_eq!(recovered["window"], json!(258_400));
    let settings = env.home().join(".config/undertext/config.toml");
    write(&settings, b"[models.gpt-new]\nwindow = 64000\n");
    assert_eq!(context(&[]), of(64_000, "models", "gpt-new"));
    write(&settings, b"[window]\ncap = 200000\n");
    assert_eq!(context(&[]), of(200_000, "cap", "gpt-new"));
    write(&settings, b"[window]\ndefault = 60000\n");
    assert_eq!(context(&[]), of(258_400, "file", "gpt-new"));
}

#[test]
fn a_segment_has_the_window_and_the_model_of_its_base_until_it_names_its_own() {
    let home = Home::new();
    let first = telling();
    home.write(10, THREAD, &first);
    let mut second = Rollout::behind(THREAD, THREAD, first.end(), &json!({}));
    second.item("user", "three");
    let file = home.write(11, &later(SECOND), &second);
    let told = |file: &Path| {
        let (archive, session) = verbs::peek(file, Box::new(Machine)).unwrap();
        let mut asked = crate::compact::asked(0);
        asked.window = None;
        let found = verbs::context(&archive.at(&session).unwrap(), None, &asked).unwrap();
        (found.window.tokens, found.model.unwrap_or_default())
    };
    assert_eq!(told(&file), (258_400, "gpt-new".to_owned()));
    second.event(json!({ "type": "task_started", "turn_id": "c", "model_context_window": 90_000 }));
    home.write(11, &later(SECOND), &second);
    assert_eq!(told(&file), (90_000, "gpt-new".to_owned()));
}

#[test]
fn the_current_branch_tells_the_window_however_many_others_there_are() {
    let env = TestEnv::new();
    let said = |role: &str, n: usize, content: Value, used: u64| {
        json!({
            "type": role, "uuid": format!("u{n}"), "parentUuid": n.checked_sub(1).map(|n| format!("u{n}")),
            "sessionId": "s", "timestamp": "2026-08-01T10:00:00.000Z",
            "message": {
                "role": role, "model": "claude-sonnet-4-5", "id": format!("m{n}"), "content": content,
                "usage": { "input_tokens": used, "output_tokens": 5 },
            },
        })
    };
    let mut lines = String::new();
    for n in (0..200).step_by(2) {
        let used = if n == 198 { 450_000 } else { 1_000 };
        let answer = json!([{ "type": "text", "text": "so" }]);
        writeln!(
            lines,
            "{}\n{}",
            said("user", n, json!("and?"), 0),
            said("assistant", n + 1, answer, used)
        )
        .unwrap();
    }
    let path = env.home().join("s.jsonl");
    write(&path, lines.as_bytes());
    env.run(&["import", path.to_str().unwrap()]).success();
    let window = || {
        let status = env.run(&["context", "--json", "-s", "s"]).success().stdout;
        let status: Value = serde_json::from_str(status.lines().next().unwrap()).unwrap();
        status["window"].clone()
    };
    let alone = window();
    assert_eq!(alone, 1_000_000);
    for n in 0..12 {
        env.run(&["branch", "-s", "s", &format!("z{n}"), &format!("@{n}")]).success();
        assert_eq!(window(), alone, "with {n} others");
    }
}
