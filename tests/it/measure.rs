//! One count of tokens: the same in every command, before and after a session was cut or compacted.

use serde_json::{Value, json};

use crate::{
    env::TestEnv,
    rollout::{Rollout, THREAD, write},
};

const ID: &str = "5e550000-0000-4000-8000-00000000000a";

/// A session of Claude Code while it is put together: each answer reports a base of 20,000 tokens, and three tokens for
/// two that are estimated of what was said.
struct Made {
    lines: Vec<String>,
    estimated: u64,
    time: &'static str,
}

impl Made {
    fn new(time: &'static str) -> Self {
        Self { lines: Vec::new(), estimated: 0, time }
    }

    fn record(&mut self, mut fields: Value) {
        let n = self.lines.len();
        let parent = n.checked_sub(1).map(|n| format!("u{n}"));
        let common = json!({ "uuid": format!("u{n}"), "parentUuid": parent, "isSidechain": false, "sessionId": ID,
            "timestamp": self.time, "cwd": "/home/ann/kettle", "version": "2.1.329" });
        fields.as_object_mut().unwrap().extend(common.as_object().unwrap().clone());
        self.lines.push(fields.to_string());
    }

    fn user(&mut self, words: &str) {
        self.estimated += 5 + words.len() as u64 / 4;
        self.record(json!({ "type": "user", "message": { "role": "user", "content": words } }));
    }

    fn usage(&self) -> Value {
        let asked = 20_000 + self.estimated * 3 / 2;
        json!({ "input_tokens": 10, "cache_read_input_tokens": asked - 10, "output_tokens": 0 })
    }

    fn call(&mut self, id: &str, command: &str, output: &str) {
        let call = json!({ "type": "tool_use", "id": id, "name": "Bash", "input": { "command": command } });
        self.estimated += 20;
        let message = json!({ "role": "assistant", "id": format!("m{id}"), "model": "claude-opus-4-5",
            "content": [call], "usage": self.usage() });
        self.record(json!({ "type": "assistant", "message": message }));
        let result = json!({ "type": "tool_result", "tool_use_id": id, "content": output });
        self.estimated += 5 + output.len() as u64 / 4;
        self.record(json!({ "type": "user", "message": { "role": "user", "content": [result] } }));
    }

    fn answer(&mut self, words: &str) {
        self.estimated += 5 + words.len() as u64 / 4;
        let message = json!({ "role": "assistant", "id": format!("m{}", self.lines.len()),
            "model": "claude-opus-4-5", "content": [{ "type": "text", "text": words }],
            "usage": self.usage() });
        self.record(json!({ "type": "assistant", "message": message }));
    }

    fn import(&self, env: &TestEnv) {
        let file = env.home().join(format!(".claude/projects/-home-ann-kettle/{ID}.jsonl"));
        write(&file, (self.lines.join("\n") + "\n").as_bytes());
        env.run(&["import"]).success();
    }
}

/// A session with a result of 40,000 characters before its newest answer.
fn made(time: &'static str) -> Made {
    let mut made = Made::new(time);
    made.user("Why does the kettle not whistle?");
    made.answer("Let me look.");
    made.call("c1", "seq 9000", &"1234567\n".repeat(5_000));
    made.answer("It counts.");
    for n in 0..8 {
        made.user(&format!("Question {n}: {}", "is it the lid? ".repeat(100)));
        made.answer(&format!("Answer {n}: {}", "no, the spout. ".repeat(100)));
    }
    made
}

/// Returns the last object that a command prints.
fn told(env: &TestEnv, args: &[&str]) -> Value {
    let said = env.run(args).success().stdout;
    serde_json::from_str(said.lines().last().unwrap()).unwrap()
}

/// Returns the count that `status`, `context` and `compact` tell alike, and its word.
#[track_caller]
fn counted(env: &TestEnv) -> (u64, String) {
    let status = told(env, &["status", "--json", ID]);
    let status = (status["context"]["tokens"].clone(), status["context"]["counted"].clone());
    let context = env.run(&["context", "--json", ID]).success().stdout;
    let context: Value = serde_json::from_str(context.lines().next().unwrap()).unwrap();
    assert_eq!(status, (context["tokens"].clone(), context["counted"].clone()));
    let plan = told(env, &["compact", "--dry-run", "--json", ID]);
    assert_eq!(plan["tokens"], status.0, "{plan}");
    (status.0.as_u64().unwrap(), status.1.as_str().unwrap().to_owned())
}

#[test]
fn a_cut_session_is_counted_along_what_its_answers_reported() {
    let env = TestEnv::new();
    let made = made("2000-02-03T04:05:00Z");
    made.import(&env);
    let (before, word) = counted(&env);
    assert_eq!((before, word.as_str()), (20_000 + made.estimated * 3 / 2, "reported"));
    let cut = told(&env, &["truncate", "--json", "--max-chars", "4000", ID]);
    assert_eq!((&cut["results"], &cut["cached"]), (&json!(1), &Value::Null));
    let (after, word) = counted(&env);
    assert_eq!(word, "scaled");
    // 36,000 characters are about 9,000 tokens, and three for two.
    assert!((before - after).abs_diff(13_500) < 200, "{before} {after}");
    env.run(&["undo", ID]).success();
    assert_eq!(counted(&env), (before, "reported".to_owned()));
    let compacted = told(&env, &["compact", "--json", "--keep", "2", ID]);
    let (after, word) = counted(&env);
    assert_eq!((word.as_str(), &compacted["pre_tokens"]), ("scaled", &json!(before)));
    assert_eq!(compacted["post_tokens"], json!(after));
    assert!((21_000..26_000).contains(&after), "the base stays: {after}");
    assert!(env.run(&["status", ID]).stdout.contains("scaled by what the model reported"));
}

#[test]
fn a_file_tells_its_system_prompt_and_its_tools_and_they_are_counted() {
    let env = TestEnv::new();
    let mut made = Made::new("2000-02-03T04:05:00Z");
    made.user("Hello.");
    let words = |session: &Made| {
        session.import(&env);
        let context = env.run(&["context", "--json", ID]).success().stdout;
        let context: Value = serde_json::from_str(context.lines().next().unwrap()).unwrap();
        (context["tokens"].as_u64().unwrap(), context["beside"].as_u64().unwrap())
    };
    let (plain, beside) = words(&made);
    assert_eq!(beside, 0);
    made.record(json!({ "type": "attachment", "attachment": { "type": "prompt_snapshot",
        "systemPrompt": ["You mend kettles. ".repeat(100), "Be brief. ".repeat(100)],
        "tools": [{ "name": "Bash", "description": "Runs a command. ".repeat(100) }] } }));
    let (with, beside) = words(&made);
    assert!((1_100..1_300).contains(&beside), "{beside}");
    assert_eq!(with, plain + beside);
}

#[test]
fn codex_reports_by_records_of_its_own() {
    let env = TestEnv::new();
    let mut rollout = Rollout::first(THREAD);
    rollout
        .event(json!({ "type": "task_started", "turn_id": "a", "model_context_window": 258_400 }));
    rollout.item("user", "one");
    rollout.item("assistant", "to one");
    let usage =
        json!({ "input_tokens": 12_000, "cached_input_tokens": 9_000, "output_tokens": 300 });
    let info = json!({ "last_token_usage": usage, "model_context_window": 258_400 });
    rollout.event(json!({ "type": "token_count", "info": info }));
    let file = env
        .home()
        .join(format!(".codex/sessions/2026/08/01/rollout-2026-08-01T10-00-00-{THREAD}.jsonl"));
    write(&file, rollout.bytes.as_bytes());
    env.run(&["import"]).success();
    let status = told(&env, &["status", "--json", THREAD]);
    assert_eq!(
        (&status["context"]["tokens"], &status["context"]["counted"]),
        (&json!(12_300), &json!("reported"))
    );
}

#[test]
fn a_window_is_no_smaller_than_what_a_model_answered_to_even_before_a_compaction() {
    let env = TestEnv::new();
    let mut made = made("2000-02-03T04:05:00Z");
    let window = |env: &TestEnv| {
        let status = told(env, &["status", "--json", ID]);
        (status["context"]["window"].clone(), status["context"]["source"].clone())
    };
    made.import(&env);
    assert_eq!(window(&env), (json!(200_000), json!("model")));
    made.estimated += 150_000;
    made.answer("All of it.");
    made.import(&env);
    let larger = (json!(400_000), json!("answered"));
    assert_eq!(window(&env), larger);
    env.run(&["compact", "--keep", "2", ID]).success();
    assert_eq!(window(&env), larger);
}

#[test]
fn a_model_of_which_nothing_is_known_has_room_left_behind_its_largest_answer() {
    let env = TestEnv::new();
    let mut made = Made::new("2000-02-03T04:05:00Z");
    made.user("Why does the kettle not whistle?");
    let usage = json!({ "input_tokens": 60_000, "output_tokens": 3_000 });
    made.record(json!({ "type": "assistant", "message": { "role": "assistant", "id": "m",
        "model": "some-local", "content": [{ "type": "text", "text": "The lid." }], "usage": usage } }));
    made.import(&env);
    let status = env.run(&["status", ID]).success().stdout;
    assert!(status.contains("63,000 of 128,000 tokens; compaction due at"), "{status}");
    let kept = told(&env, &["compact", "--trigger", "auto", "--json", ID]);
    assert_eq!(kept["nothing"], "compaction is not due yet", "{kept}");
}

#[test]
fn a_file_that_the_model_was_shown_does_not_count_by_its_letters() {
    let env = TestEnv::new();
    let mut made = Made::new("2000-02-03T04:05:00Z");
    let data = "JVBERi0x".repeat(200_000);
    let source = json!({ "type": "base64", "media_type": "application/pdf", "data": data });
    let pages = json!([{ "type": "document", "source": source }]);
    made.user("Read manual.pdf, please.");
    made.record(json!({ "type": "user", "message": { "role": "user", "content": pages } }));
    made.answer("It is about kettles.");
    made.import(&env);
    assert_eq!(counted(&env), (20_000 + made.estimated * 3 / 2, "reported".to_owned()));
    let exact = env.run(&["context", "--json", "--tokens", "exact", ID]).success().stdout;
    let exact: Value = serde_json::from_str(exact.lines().next().unwrap()).unwrap();
    assert!((1_600..1_800).contains(&exact["tokens"].as_u64().unwrap()), "{}", exact["tokens"]);
}

#[test]
fn a_cut_that_costs_a_cache_says_so_and_waits_if_it_is_to() {
    let env = TestEnv::new();
    let made = made("2001-02-03T04:05:00Z");
    made.import(&env);
    let waits = env.run(&["truncate", "--max-chars", "4000", "--when-cold", ID]);
    assert_eq!(waits.code(), Some(1), "{waits}");
    assert!(waits.stderr.contains("in its cache until 2001-02-03 04:10:00"), "{waits}");
    assert!(waits.stderr.contains("Nothing was changed"), "{waits}");
    let said = env.run(&["truncate", "--max-chars", "4000", ID]).success();
    let hint = format!("undertext truncate {ID:.8} --when-cold");
    assert!(said.stderr.contains(&hint), "{said}");
    assert!(said.stdout.contains("seq 9000"), "{said}");
    let audit = env.run(&["audit", ID]).success().stdout;
    assert!(audit.contains("seq 9000"), "{audit}");
    let log = env.run(&["log", ID]).success().stdout;
    assert!(log.contains("cut: 36"), "{log}");
    assert!(log.contains(" characters hidden"), "{log}");
    // It was changed, so that nothing of it is cached any more.
    let again = env.run(&["truncate", "--max-chars", "3000", "--when-cold", ID]).success();
    assert!(!again.stderr.contains("cache"), "{again}");
}
