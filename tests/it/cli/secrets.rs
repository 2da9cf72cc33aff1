//! `audit --secrets`, the masks of `export`, and `redact --found`: what looks like a secret is found wherever it stands, and
//! nothing prints it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use serde_json::Value;

use super::{conversation, json};
use crate::env::{CommandOutput, TestEnv};
use crate::needs;

const KEY: &str = "ghp_R2kq8vTz0LmXw5YbN3cJ7dHs9fGaPe1uVi4o";
const PASSWORD: &str = "k9vLq2zRt7Wx";
const ONE: &str = "8f14e45f-ceea-467f-a26a-5dba2f5b6d35";
const TWO: &str = "c9f0f895-fb98-4b91-8f2a-3c5b6d7e8f90";

/// Writes a session of Claude Code, of records with what is said and more fields each.
fn session(env: &TestEnv, id: &str, records: &[(&str, String, String)]) -> PathBuf {
    let path = env.home().join(format!(".claude/projects/-work/{id}.jsonl"));
    write(&path, &text(id, records));
    path
}

fn text(id: &str, records: &[(&str, String, String)]) -> String {
    let record = |(n, (role, content, more)): (usize, &(&str, String, String))| {
        let parent = if n == 0 { "null".to_owned() } else { format!("\"{id}-{}\"", n - 1) };
        format!(
            "{{\"parentUuid\":{parent},\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/work\",\
             \"sessionId\":\"{id}\",\"version\":\"2.1.0\",\"type\":\"{role}\",\"message\":{{\"role\":\"{role}\",\
             \"content\":{}}}{more},\"uuid\":\"{id}-{n}\",\"timestamp\":\"2026-01-01T00:00:0{n}.000Z\"}}\n",
            Value::from(content.as_str()),
        )
    };
    records.iter().enumerate().map(record).collect()
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn said(role: &'static str, content: impl Into<String>) -> (&'static str, String, String) {
    (role, content.into(), String::new())
}

/// The same key in what a user said, in a tool's answer, twice in its record, and in JSON within JSON; and a password.
fn leaking() -> Vec<(&'static str, String, String)> {
    vec![
        said("user", format!("Deploy it, the key is {KEY}")),
        said("assistant", "It is deployed."),
        (
            "user",
            format!("GITHUB_TOKEN={KEY}\nDB_PASSWORD={PASSWORD}\nPORT=80"),
            format!(",\"toolUseResult\":{{\"stdout\":\"GITHUB_TOKEN={KEY}\"}}"),
        ),
        said("assistant", format!("{{\"env\":\"{{\\\"token\\\":\\\"{KEY}\\\"}}\"}}")),
        said("user", "thanks"),
    ]
}

/// Fails if any part of a secret that tells something is in an output.
#[track_caller]
fn keeps_secret(told: &CommandOutput) {
    for secret in [KEY, PASSWORD] {
        for part in secret.as_bytes().windows(7).map(|part| str::from_utf8(part).unwrap()) {
            let all = [&told.stdout, &told.stderr];
            assert!(!all.iter().any(|it| it.contains(part)), "{part} is told: {told}");
        }
    }
}

/// Runs the audit, and returns its secrets and its end.
#[track_caller]
fn audit(env: &TestEnv, args: &[&str]) -> (Vec<Value>, Value) {
    let told = env.run(&[&["audit", "--secrets", "--json"], args].concat());
    keeps_secret(&told);
    let mut found: Vec<Value> = told.stdout.lines().map(json).collect();
    let end = found.pop().unwrap();
    assert_eq!(end["type"], "secrets", "{told}");
    found.retain(|one| one["type"] == "secret");
    assert_eq!(end["found"], found.len(), "{told}");
    assert_eq!(told.code(), Some(i32::from(!found.is_empty())), "{told}");
    (found, end)
}

fn rules(found: &[Value]) -> BTreeSet<&str> {
    found.iter().map(|one| one["rule"].as_str().unwrap()).collect()
}

/// Returns where the secret of a rule stands, in words.
fn stands(found: &[Value], rule: &str) -> BTreeSet<String> {
    let of = found.iter().filter(|one| one["rule"] == rule);
    let places = of.flat_map(|one| one["places"].as_array().unwrap());
    let word = |place: &Value| {
        let word = match (place["file"].as_str(), place["operation"].as_u64()) {
            (Some(_), _) => "kept",
            (_, Some(_)) => "given",
            _ if place["summary"] == true => "summary",
            _ if place["sub_agent"] == true => "sub-agent",
            _ => place["stands"].as_str().unwrap(),
        };
        word.to_owned()
    };
    places.map(word).collect()
}

#[test]
fn a_secret_is_told_once_with_its_places_and_the_next_commands() {
    let env = TestEnv::new();
    session(&env, ONE, &leaking());
    session(&env, TWO, &leaking()[..2]);
    env.run(&["import"]).success();
    let told = env.run(&["audit", "--secrets"]);
    keeps_secret(&told);
    assert_eq!(told.code(), Some(1));
    assert_snapshot!(told.masked(), @"
    github-pat
    Deploy it, the key is gh••••••4o  entry-id @0 entry-id  on the current path  3 more

    password-in-variable
    DB_PASSWORD=k9••••••  entry-id @1 entry-id  on the current path

    Read the first one: undertext show entry-id -s entry-id
    Redact it: undertext redact --found entry-id -s entry-id
    ------- stderr -------
    2 things that look like secrets in 2 sessions
    hint: see what would be redacted: undertext redact --found --dry-run
    [exit status: 1]
    ");
    let (found, end) = audit(&env, &[]);
    assert_eq!(rules(&found), ["github-pat", "password-in-variable"].into());
    let key = found.iter().find(|one| one["rule"] == "github-pat").unwrap();
    assert_eq!((key["places"].as_array().unwrap().len(), &key["characters"]), (4, &40.into()));
    assert_eq!((&end["sessions"], &end["damaged"]), (&2.into(), &0.into()));
    // The commands that are told do what they say.
    let entry = key["places"][0]["entry"].as_str().unwrap();
    let session = key["places"][0]["session"].as_str().unwrap();
    assert!(env.run(&["show", entry, "-s", session]).success().stdout.contains(KEY));

    let (found, _) = audit(&env, &["--rule", "github-pat", TWO]);
    assert_eq!((found.len(), found[0]["places"].as_array().unwrap().len()), (1, 1));
    assert_eq!(audit(&env, &["--rule", "jwt"]).0, Vec::<Value>::new());
    let none = env.run(&["audit", "--secrets", "--rule", "jwt"]).success();
    assert_eq!(none.stderr, "Found nothing that looks like a secret in 2 sessions\n");
}

#[test]
fn it_is_found_wherever_it_stands() {
    let env = TestEnv::new();
    let path = session(&env, ONE, &leaking());
    let boundary = format!(
        "{{\"parentUuid\":null,\"logicalParentUuid\":\"{ONE}-4\",\"isSidechain\":false,\"type\":\"system\",\
         \"subtype\":\"compact_boundary\",\"content\":\"Conversation compacted\",\"isMeta\":false,\"level\":\"info\",\
         \"compactMetadata\":{{\"trigger\":\"manual\",\"preTokens\":9}},\"cwd\":\"/work\",\"sessionId\":\"{ONE}\",\
         \"version\":\"2.1.0\",\"uuid\":\"b\",\"timestamp\":\"2026-01-01T00:01:00.000Z\"}}\n"
    );
    let behind = [
        (
            "user",
            format!("The user gave the key {KEY}."),
            ",\"isCompactSummary\":true,\"isVisibleInTranscriptOnly\":true".to_owned(),
        ),
        said("assistant", format!("It is still {KEY}.")),
    ];
    let behind = text(ONE, &behind).replace("\"parentUuid\":null", "\"parentUuid\":\"b\"");
    let behind = behind.replace(&format!("\"{ONE}-"), "\"behind-").replace("T00:00", "T00:02");
    write(&path, &[fs::read_to_string(&path).unwrap(), boundary, behind].concat());
    let beside = path.with_extension("");
    write(&beside.join("tool-results/a.txt"), &format!("export TOKEN={KEY}"));
    let agent = text(ONE, &leaking()[..2]).replace("\"isSidechain\":false", "\"isSidechain\":true");
    let agent = agent.replace("\"userType\"", "\"agentId\":\"a1\",\"userType\"");
    write(&beside.join("subagents/agent-a1.jsonl"), &agent.replace(&format!("\"{ONE}-"), "\"a1-"));
    env.run(&["import"]).success();

    // In a session of its own: cut, undone, left for another branch, and in a note.
    let own = conversation(&env);
    env.run(&["append", &format!("the key is {KEY}"), "-s", &own]).success();
    env.run(&["undo", "-s", &own]).success();
    env.run(&["append", &format!("it is {KEY}"), "-s", &own]).success();
    env.run(&["revert", "1", "--message", &format!("not {KEY}"), "-s", &own]).success();
    let cut = conversation(&env);
    let rows = "row after row\n".repeat(400);
    let long = format!("{rows}{KEY}\n{rows}");
    env.run(&["append", "-s", &cut, "--call", "Read", "--input", "{}", "--id", "c"]).success();
    env.run_with_stdin(&["append", "-s", &cut, "--result", "c", "-"], long.as_bytes()).success();
    env.run(&["truncate", "--max-chars", "2000", "-s", &cut]).success();
    env.run(&["checkpoint", "--message", &format!("before {KEY}"), "-s", &cut]).success();

    let (found, end) = audit(&env, &[]);
    let all = stands(&found, "github-pat");
    for word in [
        "compacted",
        "current",
        "truncated",
        "branch",
        "undone",
        "given",
        "kept",
        "summary",
        "sub-agent",
    ] {
        assert!(all.contains(word), "{word} is not among {all:?}");
    }
    assert_eq!(end["damaged"], 0);
    let told = env.run(&["audit", "--secrets"]);
    keeps_secret(&told);
}

#[test]
fn a_file_that_is_not_in_the_store_is_looked_through_as_it_is() {
    let env = TestEnv::new();
    let path = session(&env, ONE, &leaking());
    let path = path.to_str().unwrap();
    let (found, end) = audit(&env, &[path]);
    assert_eq!((found.len(), &end["sessions"]), (2, &1.into()));
    let told = env.run(&["audit", "--secrets", path]);
    assert!(!told.stdout.contains("redact"), "{told}");
    assert!(!super::store(&env).exists(), "a command that reads made a store");
}

#[test]
fn wrong_use_is_told_and_no_store_is_no_clean_bill() {
    let env = TestEnv::new();
    let none = env.run(&["audit", "--secrets"]);
    assert!(none.code() != Some(0) && none.stderr.contains("no sessions yet"), "{none}");
    session(&env, ONE, &leaking());
    env.run(&["import"]).success();
    let unknown = env.run(&["audit", "--secrets", "--rule", "gitub-pat"]);
    assert_eq!(unknown.code(), Some(2));
    assert!(unknown.stderr.contains("github-pat"), "{unknown}");
    for args in [
        ["audit", "--rule", "jwt", "-s", ONE],
        ["redact", "--rule", "jwt", "-s", ONE],
        ["export", "--no-mask", "-q", "-s", ONE],
    ] {
        assert_eq!(env.run(&args).code(), Some(2), "{args:?}");
    }
}

#[test]
fn what_the_user_allows_is_no_secret_and_a_store_allows_nothing() {
    let env = TestEnv::new();
    session(&env, ONE, &leaking());
    env.run(&["import"]).success();
    let entry = audit(&env, &[]).0[0]["places"][0]["entry"].as_str().unwrap().to_owned();
    let own = env.home().join(".config/undertext/config.toml");
    let check = |text: &str, expected: &[&str]| {
        write(&own, text);
        let (found, end) = audit(&env, &[]);
        assert_eq!(rules(&found), expected.iter().copied().collect(), "{text}");
        assert!(end["allowed"].as_u64() > Some(0), "{text}");
    };
    check("[secrets]\nallow_rules = ['github-pat']\n", &["password-in-variable"]);
    check("[secrets]\nallow_values = ['ghp_.*']\n", &["password-in-variable"]);
    check(
        &format!("[secrets]\nallow_entries = ['{}']\n", &entry[..12]),
        &["github-pat", "password-in-variable"],
    );
    write(&own, "[secrets]\nallow_rules = ['gitub-pat']\n");
    let wrong = env.run(&["audit", "--secrets"]);
    assert!(wrong.code() == Some(2) && wrong.stderr.contains("gitub-pat"), "{wrong}");
    fs::remove_file(&own).unwrap();

    write(&super::store(&env).join("config.toml"), "[secrets]\nallow_rules = ['github-pat']\n");
    assert_eq!(audit(&env, &[]).0.len(), 2);
    let told = env.run(&["audit", "--secrets"]);
    assert!(told.stderr.contains("secrets.allow_rules"), "{told}");
}

#[test]
fn a_damaged_session_is_named_and_hides_nothing_of_the_others() {
    let env = TestEnv::new();
    session(&env, ONE, &leaking());
    session(&env, TWO, &[said("user", "nothing here"), said("assistant", "no")]);
    env.run(&["import"]).success();
    let db = rusqlite::Connection::open(super::store(&env).join("store.db")).unwrap();
    let sql = "UPDATE card SET state = zeroblob(9) WHERE id = ?";
    assert_eq!(db.execute(sql, [TWO]).unwrap(), 1);
    let told = env.run(&["audit", "--secrets"]);
    assert_eq!(told.code(), Some(1));
    assert!(told.stderr.contains(TWO) && told.stdout.contains("github-pat"), "{told}");
    // Without anything that is found, it is still no clean bill.
    let told = env.run(&["audit", "--secrets", "--rule", "jwt"]);
    assert_eq!(told.code(), Some(1), "{told}");
}

#[test]
fn what_stands_in_a_damaged_session_is_found_and_not_taken_for_allowed() {
    let env = TestEnv::new();
    session(&env, ONE, &leaking());
    env.run(&["import"]).success();
    let db = rusqlite::Connection::open(super::store(&env).join("store.db")).unwrap();
    assert_eq!(db.execute("UPDATE record SET kind = 99", []).unwrap(), 5);
    let told = env.run(&["audit", "--secrets"]);
    keeps_secret(&told);
    assert!(told.stdout.contains("github-pat\n"), "{told}");
    assert!(told.stdout.contains("in a damaged session"), "{told}");
    assert!(told.stderr.contains(ONE) && !told.stderr.contains("settings allow"), "{told}");
    assert_eq!(told.code(), Some(1));
    let told = env.run(&["redact", "--found", "--dry-run"]);
    assert!(told.to_string().contains("github-pat"), "{told}");
}

#[test]
fn a_document_masks_what_looks_like_a_secret_and_a_file_nothing() {
    let env = TestEnv::new();
    let mut records = leaking();
    records.push(said("user", "see /home/ada/notes and write to ada@example.org"));
    session(&env, ONE, &records);
    env.run(&["import"]).success();
    let masked = env.run(&["export", "--as", "markdown", ONE]).success();
    keeps_secret(&masked);
    assert!(masked.stdout.contains("the key is [masked: github-pat]"), "{masked}");
    assert!(masked.stdout.contains("DB_PASSWORD=[masked: password-in-variable]"), "{masked}");
    assert!(masked.stdout.contains("/home/ada"), "{masked}");
    assert_eq!(masked.stderr, "5 secrets are masked; --no-mask shows them\n");
    let bare = env.run(&["export", "--as", "markdown", "--no-mask", ONE]).success();
    assert!(bare.stdout.contains(KEY) && bare.stdout.contains(PASSWORD), "{bare}");
    assert_eq!(bare.stderr, "");
    let file = env.run(&["export", ONE]).success();
    assert_eq!(file.stdout, text(ONE, &records));

    let own = env.home().join(".config/undertext/config.toml");
    write(&own, "[mask]\nhomes = true\nemails = true\n");
    let masked = env.run(&["export", "--as", "markdown", ONE]).success();
    assert!(masked.stdout.contains("see ~/notes and write to [masked: e-mail]"), "{masked}");
}

#[test]
fn a_document_masks_a_secret_also_where_nothing_tells_it() {
    let env = TestEnv::new();
    let records = [
        said("assistant", format!("I log in with {PASSWORD} now.")),
        said("user", format!("DB_PASSWORD={PASSWORD}")),
        said("assistant", format!("./login.sh app {PASSWORD}")),
    ];
    let path = session(&env, ONE, &records);
    let check = |session: &str| {
        let masked = env.run(&["export", "--as", "markdown", session]).success();
        keeps_secret(&masked);
        // The title has it as well.
        assert_eq!(masked.stderr, "4 secrets are masked; --no-mask shows them\n");
    };
    // A file that was never taken in is masked as well.
    check(path.to_str().unwrap());
    env.run(&["import"]).success();
    check(ONE);
}

#[test]
fn the_beginning_of_a_secret_at_the_end_of_a_title_is_masked_too() {
    let env = TestEnv::new();
    // A title has 120 characters.
    let words = "so ".repeat(36);
    session(&env, ONE, &[said("user", format!("{words}{KEY} is the key"))]);
    env.run(&["import"]).success();
    let masked = env.run(&["export", "--as", "markdown", ONE]).success();
    let title = masked.stdout.lines().next().unwrap();
    assert_eq!(title, format!("# {words}[masked: github-pat]"));
    assert!(masked.stderr.starts_with("2 secrets are masked"), "{masked}");
}

#[test]
fn what_is_found_is_taken_out_with_the_names_of_the_rules() {
    let env = TestEnv::new();
    let one = session(&env, ONE, &leaking());
    let two = session(&env, TWO, &leaking()[..2]);
    env.run(&["import"]).success();
    let plan = env.run(&["redact", "--found", "--dry-run"]).success();
    keeps_secret(&plan);
    assert_snapshot!(plan, @r"
    found by github-pat, password-in-variable
    8f14e45f  3 lines  claude
    c9f0f895   1 line  claude
    ------- stderr -------
    Nothing was changed
    ");
    keeps_secret(&env.run(&["redact", "--found", "--dry-run", "--json"]).success());
    let asked = env.run(&["redact", "--found"]);
    keeps_secret(&asked);
    assert_eq!(asked.code(), Some(1), "{asked}");
    assert!(fs::read_to_string(&one).unwrap().contains(KEY));

    // What one rule found in one entry goes wherever it stands, and the rest stays.
    let (found, _) = audit(&env, &[]);
    let key = found.iter().find(|one| one["rule"] == "github-pat").unwrap();
    let entry = key["places"][0]["entry"].as_str().unwrap();
    let session = key["places"][0]["session"].as_str().unwrap();
    let args =
        ["redact", "--found", entry, "-s", session, "--rule", "github-pat", "--yes", "--json"];
    let done = env.run(&args).success();
    keeps_secret(&done);
    assert_eq!(json(&done.stdout)["rules"], serde_json::json!(["github-pat"]), "{done}");
    for path in [&one, &two] {
        assert!(!fs::read_to_string(path).unwrap().contains(KEY));
    }
    assert!(fs::read_to_string(&one).unwrap().contains(PASSWORD));
    let (found, _) = audit(&env, &[]);
    assert_eq!(rules(&found), ["password-in-variable"].into());

    let done = env.run(&["redact", "--found", "--yes", "--reason", "leaked"]).success();
    keeps_secret(&done);
    assert!(!fs::read_to_string(&one).unwrap().contains(PASSWORD));
    assert_eq!(audit(&env, &[]).0.len(), 0);
    let operations = env.run(&["operations", "-s", ONE, "--json"]).success();
    for rule in ["github-pat", "password-in-variable"] {
        assert!(operations.stdout.contains(rule), "{operations}");
    }
    env.run(&["verify"]).success();
    let nothing = env.run(&["redact", "--found", "--yes"]);
    assert_eq!(nothing.code(), Some(1));
    assert!(nothing.stderr.contains("Found nothing there that looks like a secret"), "{nothing}");
}

#[test]
fn real_sessions_hardly_raise_a_false_alarm() {
    let Some(corpus) = needs::corpus() else { return };
    let env = TestEnv::new();
    let (mut sessions, mut alarms) = (0, Vec::new());
    for path in corpus.sessions() {
        let told = env.run(&["audit", "--secrets", "--json", path.to_str().unwrap()]);
        if !matches!(told.code(), Some(0 | 1)) {
            continue;
        }
        sessions += 1;
        let found = told.stdout.lines().map(json).filter(|one| one["type"] == "secret");
        alarms.extend(found.map(|one| format!("{} in {}", one["rule"], path.display())));
    }
    println!("{sessions} sessions, {} found: {alarms:#?}", alarms.len());
    assert!(alarms.len() * 10 <= sessions, "{alarms:#?}");
}
