//! `stats`: tokens and costs are those of the raw records, each answer once.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use serde_json::Value;

use super::screens::shown_at;
use crate::env::TestEnv;
use crate::needs;

const EXAMPLES: [&str; 5] = [
    "claude-garden.jsonl",
    "codex-weather.jsonl",
    "kimi-lighthouse/6f1d2c3b-4a59-4e68-9b7c-8d0e1f2a3b4c/context.jsonl",
    "native-tools.jsonl",
    "pi-boat.jsonl",
];

/// Returns a machine that imported the examples.
fn machine() -> TestEnv {
    let env = TestEnv::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    crate::format::copy(&examples, &env.project());
    for name in EXAMPLES {
        env.run(&["import", "-q", name]).success();
    }
    env
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Counts the answers of session files straight from their JSON, and their tokens: input, output, read from and written to caches.
fn count(files: &[PathBuf]) -> (u64, [u64; 4]) {
    let mut found: BTreeMap<String, [u64; 4]> = BTreeMap::new();
    for file in files {
        let text = String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned();
        for line in text.lines() {
            let Ok(record) = serde_json::from_str::<Value>(line) else { continue };
            let number = |of: &Value, key: &str| of[key].as_u64().unwrap_or(0);
            let inner = &record["data"]["message"];
            let record = if record["type"] == "progress" { inner } else { &record };
            let (message, info) = (&record["message"], &record["payload"]["info"]);
            let (usage, last) = (&message["usage"], &info["last_token_usage"]);
            if record["role"] == "_usage" {
                let tokens = number(record, "token_count");
                // One folder is one session, with its older files.
                let folder = file.parent().unwrap().display();
                found.insert(format!("{folder} {tokens}"), [tokens, 0, 0, 0]);
            } else if number(last, "input_tokens") + number(last, "output_tokens") > 0 {
                // After a compaction, Codex repeats the total with zeros.
                let cached = number(last, "cached_input_tokens");
                let written = number(last, "cache_write_input_tokens");
                let input = number(last, "input_tokens").saturating_sub(cached + written);
                let tokens = [input, number(last, "output_tokens"), cached, written];
                found.insert(info["total_token_usage"].to_string(), tokens);
            } else if usage.is_object() && usage["input"].is_u64() {
                let tokens = ["input", "output", "cacheRead", "cacheWrite"];
                let key = format!("{} {usage}", message["timestamp"]);
                found.insert(key, tokens.map(|key| number(usage, key)));
            } else if usage.is_object() && matches!(record["type"].as_str(), Some("assistant")) {
                let tokens = [
                    "input_tokens",
                    "output_tokens",
                    "cache_read_input_tokens",
                    "cache_creation_input_tokens",
                ];
                let id = message["id"]
                    .as_str()
                    .map_or_else(|| record["timestamp"].to_string(), str::to_owned);
                found.insert(id, tokens.map(|key| number(usage, key)));
            }
        }
    }
    found.retain(|_, tokens| *tokens != [0; 4]);
    let sum = |n: usize| found.values().map(|tokens| tokens[n]).sum();
    (found.len() as u64, [0, 1, 2, 3].map(sum))
}

fn counted(object: &Value) -> (u64, [u64; 4]) {
    let keys = ["input", "output", "cache_read", "cache_write"];
    let usage = keys.map(|key| object["usage"][key].as_u64().unwrap());
    (object["requests"].as_u64().unwrap(), usage)
}

#[test]
fn figures_are_those_of_the_raw_records_and_every_grouping_adds_up() {
    let env = machine();
    let mut files: Vec<PathBuf> = EXAMPLES.iter().map(|it| env.project().join(it)).collect();
    let lighthouse = files[2].parent().unwrap().to_owned();
    let older = fs::read_dir(lighthouse).unwrap().map(|it| it.unwrap().path());
    files.extend(older.filter(|it| it.to_string_lossy().contains("/context_")));
    let raw = count(&files);
    for by in ["day", "agent", "model", "folder", "session"] {
        let said = objects(&env.run(&["stats", "--json", "--by", by]).success().stdout);
        let [all, groups @ ..] = said.as_slice() else { panic!("{by}: nothing") };
        assert_eq!(counted(all), raw);
        for key in ["requests", "turns", "cost", "unpriced"] {
            let parts = groups.iter().map(|group| group[key].as_u64().unwrap_or(0));
            assert_eq!(Some(parts.sum::<u64>()), all[key].as_u64(), "{key} by {by}");
        }
    }
    assert_snapshot!(env.run(&["stats", "--json", "--by", "agent"]).success().stdout);
    assert_snapshot!(shown_at(&env, &["stats", "--by", "model"], 80, "never", None));
    assert_snapshot!(shown_at(&env, &["stats"], 80, "never", None));
}

#[test]
fn a_fork_repeats_answers_that_count_once() {
    let env = machine();
    let total = || {
        let said = env.run(&["stats", "--json"]).success().stdout;
        counted(&objects(&said)[0])
    };
    let before = total();
    let garden = fs::read_to_string(env.project().join(EXAMPLES[0])).unwrap();
    let id = objects(&garden).iter().find_map(|it| it["sessionId"].as_str().map(str::to_owned));
    let fork = garden.replace(&id.unwrap(), "0f0e0d0c-0b0a-4908-8706-050403020100");
    fs::write(env.project().join("0f0e0d0c-0b0a-4908-8706-050403020100.jsonl"), fork).unwrap();
    env.run(&["import", "-q", "0f0e0d0c-0b0a-4908-8706-050403020100.jsonl"]).success();
    // Codex copies records into a fork at the time of the fork, and repeats reports.
    let weather = fs::read_to_string(env.project().join(EXAMPLES[1])).unwrap();
    let id = objects(&weather)[0]["payload"]["id"].as_str().unwrap().to_owned();
    let fork = "01999999-0b0a-7908-8706-050403020100";
    let mut lines: Vec<String> = Vec::new();
    for mut record in objects(&weather) {
        record["timestamp"] = "2026-09-01T10:00:00.000Z".into();
        if record["type"] == "session_meta" {
            record["payload"]["id"] = fork.into();
            record["payload"]["forked_from_id"] = id.as_str().into();
        }
        lines.extend(
            [record.to_string()]
                .into_iter()
                .cycle()
                .take(1 + usize::from(record["payload"]["type"] == "token_count")),
        );
    }
    let name = format!("rollout-2026-09-01T10-00-00-{fork}.jsonl");
    fs::write(env.project().join(&name), lines.join("\n") + "\n").unwrap();
    env.run(&["import", "-q", &name]).success();
    assert_eq!(env.run(&["sessions", "--json"]).success().stdout.lines().count(), 7);
    assert_eq!(total(), before);
    // Alone, a fork has the answers that it shows.
    let alone = objects(&env.run(&["stats", "--json", fork]).success().stdout);
    assert_eq!(counted(&alone[0]), count(&[env.project().join(EXAMPLES[1])]));
}

/// Asserts that `status` says of a session what `stats` says, and that its turns add up to that, or to less if not all are drawn.
/// Returns its cost, and how many answers are in no turn.
fn adds_up(env: &TestEnv, session: &str) -> (u64, u64) {
    let said = |args: &[&str]| objects(&env.run(args).stdout);
    let all = &said(&["stats", "--json", session])[0];
    let status = &said(&["status", "--json", session])[0]["spent"];
    let turns = said(&["graph", "-v", "--json", session]);
    let number = |of: &Value, key: &str| of[key].as_u64().unwrap_or(0);
    for key in ["requests", "cost", "unpriced"] {
        // Each cost is rounded to a millionth of a dollar.
        let rounded = if key == "cost" { number(all, "requests") } else { 0 };
        let parts = turns.iter().map(|turn| number(&turn["spent"], key));
        let said = number(status, key).abs_diff(number(all, key));
        assert!(said <= rounded, "{key} of {session}");
        assert!(parts.sum::<u64>() <= number(all, key) + rounded, "{key} of {session}");
    }
    let in_turns = turns.iter().map(|turn| number(&turn["spent"], "requests")).sum::<u64>();
    (number(all, "cost"), number(all, "requests") - in_turns)
}

#[test]
fn what_each_turn_used_adds_up_to_its_session() {
    let env = machine();
    for session in objects(&env.run(&["sessions", "--json"]).success().stdout) {
        let (_, apart) = adds_up(&env, session["session"].as_str().unwrap());
        assert_eq!(apart, 0, "{session}");
    }
    let garden = "claude-garden.jsonl";
    assert!(adds_up(&env, garden).0 > 0);
    assert_snapshot!(env.run(&["graph", "-v", garden]).success().stdout);
    let page = env.run(&["export", "--as", "html", garden]).success().stdout;
    assert!(page.contains("class=\"spent\" title=\""));
    let listed = env.run(&["sessions", "-v"]).success().stdout;
    assert_eq!(listed.matches(" tokens in, ").count(), 5, "{listed}");
}

#[test]
fn a_price_in_the_settings_replaces_the_table() {
    let env = machine();
    let settings = env.home().join(".config/undertext/config.toml");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let said = objects(&env.run(&["stats", "--json", "--by", "model"]).success().stdout);
    let model = said[1]["name"].as_str().unwrap().to_owned();
    fs::write(&settings, format!("[prices]\n\"{model}\" = {{ input = 1.0, output = 2 }}\n"))
        .unwrap();
    let said = objects(&env.run(&["stats", "--json", "--by", "model"]).success().stdout);
    let priced = said.iter().find(|it| it["name"] == model.as_str()).unwrap();
    let (_, [input, output, read, write]) = counted(priced);
    assert_eq!(priced["cost"].as_u64(), Some(input + 2 * output + read + write));
    fs::write(&settings, format!("[prices]\n\"{model}\" = {{ input = -1.0 }}\n")).unwrap();
    assert!(env.run(&["stats"]).stderr.contains("line 2"));
}

#[test]
fn a_picture_is_private_and_replaces_nothing_unasked() {
    let env = machine();
    let garden = fs::read_to_string(env.project().join(EXAMPLES[0])).unwrap();
    let field = |key: &str| {
        let found = objects(&garden).iter().find_map(|it| it[key].as_str().map(str::to_owned));
        found.unwrap()
    };
    let fork = "0f0e0d0c-0b0a-4908-8706-050403020100";
    let evil = garden.replace(&field("cwd"), "/<script>&").replace(&field("sessionId"), fork);
    fs::write(env.project().join(format!("{fork}.jsonl")), evil.replace("\"msg_", "\"msg_x"))
        .unwrap();
    env.run(&["import", "-q", &format!("{fork}.jsonl")]).success();
    assert!(env.run(&["stats", "--svg", "x.svg"]).success().stderr.starts_with("Wrote "));
    let path = env.project().join("x.svg");
    let picture = fs::read_to_string(&path).unwrap();
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
    assert!(!picture.contains("<script") && picture.contains("/&lt;script&gt;&amp;"));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(env.run(&["stats", "--svg", "x.svg"]).code(), Some(2));
    env.run(&["stats", "--svg", "x.svg", "--force"]).success();
    let here = objects(&env.run(&["stats", "--json", "--svg", "y.svg"]).success().stdout);
    assert_eq!(here[0]["path"], "y.svg");
}

#[test]
fn without_sessions_or_answers_stats_says_so() {
    let env = TestEnv::new();
    assert!(env.run(&["stats"]).success().stderr.contains("No sessions yet"));
    let env = machine();
    assert_snapshot!(env.run(&["stats", "--since", "2030-01-01"]), @"
    ------- stderr -------
    No answers with token counts
    ");
}

#[test]
fn figures_of_real_sessions_are_those_of_their_raw_records() {
    let Some(corpus) = needs::corpus() else { return };
    for folder in ["claude", "codex", "kimi", "pi"] {
        let env = TestEnv::new();
        let files = corpus.files(folder);
        for file in &files {
            // A file that is no session is not counted either.
            let _ = env.run(&["import", "-q", &file.display().to_string()]);
        }
        let said = objects(&env.run(&["stats", "--json", "--by", "agent"]).stdout);
        let raw = count(&files);
        assert_eq!(counted(&said[0]), raw, "{folder}");
        for session in objects(&env.run(&["sessions", "--json", "--all"]).success().stdout) {
            adds_up(&env, session["session"].as_str().unwrap());
        }
    }
}
