//! What a summary is made of and when it is due, from the shell: a caller's own, its appendix, the next request, other processes.

use std::{
    thread,
    time::{Duration, Instant},
};

use super::compact::{program, settings, talked};
use super::json;
use crate::env::TestEnv;

/// Returns the summary in the context, as the model gets it.
fn summary(env: &TestEnv) -> String {
    let context = env.run(&["context", "--json", "--as", "openai"]).success().stdout;
    let said =
        context.lines().map(json).find(|line| line.to_string().contains("<context-summary>"));
    said.unwrap_or_else(|| panic!("{context}")).to_string()
}

#[test]
fn a_caller_writes_the_summary_and_the_rest_is_kept_with_it() {
    let env = talked(20);
    env.run(&["append", "Please mend /w/src/parse.rs later, see E0308."]).success();
    env.run(&["append", "--role", "assistant", "We agreed to keep the old parser."]).success();
    let own = ["compact", "--keep", "1", "--summary", "-"];
    let done = env.run_with_stdin(&[&own[..], &["--json"]].concat(), b"My own words.").success();
    let done = json(&done.stdout);
    assert_eq!((&done["model"], &done["fallback"]), (&"user".into(), &serde_json::Value::Null));
    let said = summary(&env);
    for kept in ["My own words.", "Please mend /w/src/parse.rs later", "undertext show e572dff8-"] {
        assert!(said.contains(kept), "{kept}: {said}");
    }
    // The command that the summary names shows what it stands for.
    let back = said.split("undertext show ").nth(1).unwrap().split('`').next().unwrap();
    let shown = env.run(&["show", back]).success().stdout;
    assert!(shown.contains("0 all work") && shown.contains("Please mend"), "{shown}");
    env.run(&["undo"]).success();
    let alone = env.run_with_stdin(&[&own[..], &["--no-appendix"]].concat(), b"My own words.");
    alone.success();
    let said = summary(&env);
    assert!(said.contains("My own words.") && !said.contains("parse.rs"), "{said}");
    env.run(&["undo"]).success();
    let long = env.run_with_stdin(&own, "word ".repeat(20_000).as_bytes());
    assert!(long.stderr.contains("must have fewer than"), "{long}");
    let empty = env.run_with_stdin(&own, b" \n");
    assert!(empty.stderr.contains("is empty"), "{empty}");
    let clash = env.run(&["compact", "--summary", "x", "--summarizer", "y"]);
    assert_eq!(clash.code(), Some(2), "{clash}");
    env.run(&["verify"]).success();
}

#[test]
fn secrets_in_the_conversation_are_masked_in_an_appendix() {
    let env = talked(20);
    let key = "AKIAQ4ZJ7T3M2N5P6R7S";
    env.run(&["append", &format!("Please use the key {key} later, in deploy.sh.")]).success();
    env.run(&["append", "--role", "assistant", "I will."]).success();
    env.run(&["compact", "--keep", "1"]).success();
    let said = summary(&env);
    assert!(said.contains("[masked: ") && said.contains("in deploy.sh"), "{said}");
    assert!(!said.contains(key), "{said}");
}

#[test]
fn tokens_are_kept_as_well_as_messages() {
    let env = talked(20);
    let kept = |keep: &str| {
        let done = env.run(&["compact", "--keep", keep, "--json"]).success();
        env.run(&["undo"]).success();
        json(&done.stdout)["kept"].as_u64().unwrap()
    };
    // A message has 216 tokens.
    assert_eq!([kept("1k"), kept("2k"), kept("3")], [4, 9, 3]);
    let wrong = env.run(&["compact", "--keep", "many"]);
    assert!(wrong.stderr.contains("tokens such as 20k"), "{wrong}");
}

#[test]
fn a_compaction_is_due_by_the_best_count_there_is() {
    // Base64 has about three times as many tokens as an estimate says.
    let env = TestEnv::new();
    env.run(&["new"]).success();
    let mut dice = crate::fixture::Dice(7);
    let signs = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for n in 0..10 {
        let data: String = (0..4_500)
            .map(|_| char::from(signs[usize::try_from(dice.below(64)).unwrap()]))
            .collect();
        env.run(&["append", &format!("{n} is {data}")]).success();
    }
    let status = json(&env.run(&["status", "--json"]).success().stdout);
    assert_eq!(status["context"]["due"], true, "{status}");
    let told = env.run(&["compact", "--trigger", "auto", "--keep", "2", "--json"]).success();
    assert!(json(&told.stdout)["operation"].is_u64(), "{told}");
    // Work on prose is not due by a margin.
    let status = json(&talked(80).run(&["status", "--json"]).success().stdout);
    assert_eq!(status["context"]["due"], false, "{status}");
}

#[test]
fn an_append_compacts_a_session_of_undertexts_own_as_the_settings_say() {
    let env = talked(20);
    settings(&env, "[compaction]\nat = 3000\n");
    let status = json(&env.run(&["status", "--json"]).success().stdout);
    assert_eq!(
        (&status["context"]["due"], &status["context"]["compact_at"]),
        (&true.into(), &3000.into()),
        "{status}"
    );
    assert!(!env.run(&["append", "Well?"]).success().stdout.contains("Compacted"));
    settings(&env, "[compaction]\nat = 3000\nauto = true\n");
    let done = env.run(&["append", "And now?"]).success();
    assert!(done.stdout.contains("Compacted main"), "{done}");
    assert!(!env.run(&["append", "Again?"]).success().stdout.contains("Compacted"));
}

#[test]
fn an_append_whose_compaction_fails_has_appended_and_a_failure_shows_no_key() {
    let env = talked(20);
    let key = format!("sk-ant-api03-{}AA", "aB3_x".repeat(19).split_at(93).0);
    let fails = program(&env, "fails", &format!("echo 'bad x-api-key: {key}' >&2; exit 1"));
    let provider = format!("[provider.f]\nkind = \"command\"\ncommand = \"{fails}\"\n");
    let set = "[compaction]\nat = 3000\nauto = true\nsummarizer = \"f\"\n";
    settings(&env, &format!("{set}strict = true\n{provider}"));
    let done = env.run(&["append", "And now?"]).success();
    assert!(done.stderr.contains("the records were appended, but"), "{done}");
    assert!(env.run(&["log"]).success().stdout.contains("And now?"));
    settings(&env, &format!("{set}{provider}"));
    let done = env.run(&["append", "Again?", "--json"]).success();
    assert!(done.stdout.contains("[masked: anthropic-"), "{done}");
    let context = env.run(&["context", "--json"]).success().stdout;
    assert!(context.contains("No summary could be written") && !context.contains(&key));
}

#[test]
fn a_summariser_is_told_what_the_next_request_has() {
    let env = talked(20);
    let skill = env.home().join("skills/boats");
    std::fs::create_dir_all(&skill).unwrap();
    let text = "---\nname: caulking\ndescription: How to make a hull tight\n---\nUse oakum.\n";
    std::fs::write(skill.join("SKILL.md"), text).unwrap();
    let asked = env.home().join("asked");
    let line = program(&env, "keeps", &format!("cat > {}; exit 1", asked.display()));
    settings(
        &env,
        &format!(
            "[compaction]\nskills = \"~/skills\"\n[provider.k]\nkind = \"command\"\ncommand = \"{line}\"\n"
        ),
    );
    env.run(&["compact", "--summarizer", "k", "--instructions", "why it leaks"]).success();
    let asked = std::fs::read_to_string(asked).unwrap();
    for said in ["- caulking: How to make a hull tight", "why it leaks"] {
        assert!(asked.contains(said), "{said}: {asked}");
    }
    assert!(!asked.contains("oakum"), "{asked}");
}

#[test]
fn a_handoff_begins_a_new_session_with_a_summary_and_a_goal() {
    let env = talked(20);
    env.run(&["append", "Please mend /w/src/parse.rs later."]).success();
    let before = env.run(&["log", "--json", "e572"]).success().stdout;
    let done = env.run(&["handoff", "Write the release notes.", "e572", "--json"]).success();
    let done = json(&done.stdout);
    assert_eq!((&done["type"], &done["model"]), (&"handoff".into(), &"extract".into()), "{done}");
    assert_eq!(env.run(&["log", "--json", "e572"]).success().stdout, before);
    let new = done["session"].as_str().unwrap();
    let context = env.run(&["context", "--json", "--as", "openai", new]).success().stdout;
    for said in
        ["<context-summary>", "/w/src/parse.rs", "Write the release notes.", "undertext show e572"]
    {
        assert!(context.contains(said), "{said}: {context}");
    }
    let layers = env.run(&["status", "--layers", new]).success().stdout;
    assert!(layers.contains("e572dff8"), "{layers}");
    assert!(env.run(&["log", new]).success().stdout.starts_with("summary"));
    env.run(&["new"]).success();
    let empty = env.run(&["handoff", "Go."]);
    assert_eq!(empty.code(), Some(2), "{empty}");
    assert_eq!(env.run(&["handoff", " ", "e572"]).code(), Some(2));
    // A short session is handed off too.
    env.run(&["append", "-q", "Buy milk."]).success();
    env.run(&["handoff", "Go shopping."]).success();
    env.run(&["verify"]).success();
}

#[test]
fn another_process_sees_a_compaction_and_waits_for_its_end() {
    let env = talked(20);
    let slow =
        program(&env, "slow", "cat > /dev/null; while [ ! -e go ]; do sleep 0.05; done; exit 1");
    settings(&env, &format!("[provider.s]\nkind = \"command\"\ncommand = \"{slow}\"\n"));
    let status = || json(&env.run(&["status", "--json"]).success().stdout)["compacting"].clone();
    assert!(status().is_null());
    let mut compacts = env.command();
    let mut child = compacts.args(["compact", "-q", "--summarizer", "s"]).spawn().unwrap();
    let begun = Instant::now();
    while status().is_null() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it is never seen");
        thread::sleep(Duration::from_millis(20));
    }
    let late = env.run(&["status", "--until-idle", "0"]);
    assert_eq!(late.code(), Some(1), "{late}");
    assert!(late.stderr.contains("still being compacted by process "), "{late}");
    assert!(env.run(&["status"]).success().stdout.contains("compacting"));
    std::fs::write(env.project().join("go"), "").unwrap();
    env.run(&["status", "--until-idle", "60"]).success();
    assert!(child.wait().unwrap().success());
    assert!(status().is_null());
    // A process that died is none.
    std::fs::remove_file(env.project().join("go")).unwrap();
    let mut killed = env.command();
    env.run(&["append", "More."]).success();
    let mut child = killed.args(["compact", "-q", "--summarizer", "s"]).spawn().unwrap();
    let begun = Instant::now();
    while status().is_null() && begun.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(status().is_null());
    std::fs::write(env.project().join("go"), "").unwrap();
    assert!(!env.run(&["doctor"]).stdout.contains("compacting-"), "it is undertext's own file");
}
