//! `import`: what is taken in, what is left out, and what is said of it.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::SystemTime;

use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{json, screens, with_examples};
use crate::env::TestEnv;

const GARDEN: &str = "7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40";

/// A session of Claude Code: a turn, an answer, and whatever else.
fn claude(env: &TestEnv, path: &str, rest: &str) {
    let record = |n: u8, parent: &str, role: &str| {
        format!(
            "{{\"parentUuid\":{parent},\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/work\",\
             \"sessionId\":\"boat\",\"version\":\"2.1.0\",\"type\":\"{role}\",\"message\":{{\"role\":\"{role}\",\
             \"content\":\"Part {n}\"}},\"uuid\":\"u{n}\",\"timestamp\":\"2026-01-01T00:00:0{n}.000Z\"}}\n"
        )
    };
    let path = env.home().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let begin = [record(1, "null", "user"), record(2, "\"u1\"", "assistant")].concat();
    fs::write(path, begin + rest).unwrap();
}

#[test]
fn a_folder_is_taken_in_once_and_read_on_when_it_grows() {
    let env = with_examples();
    assert_snapshot!(env.run(&["import", "."]), @"
    Imported 2 sessions (2 new): 27 new entries, 9.8 kB
    Noted: 1 line that is not a JSON object
    ");
    assert_snapshot!(env.run(&["import", "."]), @"Imported 0 sessions (0 new): 0 new entries, 0 B; 2 files are unchanged");
    let path = env.project().join("native-rewind.jsonl");
    let whole = fs::read(&path).unwrap();
    let exported = env.command().args(["export", "4b6f"]).output().unwrap();
    assert!(exported.stdout == whole);

    fs::write(&path, [&whole[..], b"no record\n{\"torn\":"].concat()).unwrap();
    assert_snapshot!(env.run(&["import", ".", "-v"]), @"
    $HOME/project/native-rewind.jsonl:16: not a JSON object
    $HOME/project/native-rewind.jsonl:17: the file ends in the middle of a record
    Imported 1 session (0 new): 1 new entry, 18 B; 1 file is unchanged
    Noted: 1 line that is not a JSON object, 1 file that ends in the middle of a record
    ");
    fs::write(&path, &whole[1..]).unwrap();
    assert_snapshot!(env.run(&["import", path.to_str().unwrap()]), @"
    $HOME/project/native-rewind.jsonl: the file was rewritten: it does not continue the store's copy
    Imported 1 session (0 new): 1 new entry, 5.0 kB
    Noted: 1 line that is not a JSON object, 1 file that was rewritten
    ");
    fs::write(&path, &whole).unwrap();
    assert_snapshot!(env.run(&["import", path.to_str().unwrap()]), @"
    $HOME/project/native-rewind.jsonl: the file was rewritten: it does not continue the store's copy
    Imported 1 session (0 new): 0 new entries, 5.0 kB
    Noted: 1 file that was rewritten
    ");
    let exported = env.command().args(["export", "4b6f"]).output().unwrap();
    assert!(exported.stdout == whole);
}

#[test]
fn without_a_path_every_agents_folder_is_searched() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["import"]), @"
    ------- stderr -------
    No agent keeps sessions on this machine. None of these folders exists:
      Claude Code: ~/.claude/projects
      Codex: ~/.codex/sessions
      Codex: ~/.codex/archived_sessions
      pi: ~/.pi/agent/sessions
      OpenClaw: ~/.openclaw/agents
      Kimi CLI: ~/.kimi/sessions
      clawdcode: ~/.clawdcode/projects
    To import sessions from elsewhere, name their folder
    ");
    claude(&env, ".claude/projects/-work/boat.jsonl", "");
    claude(&env, ".openclaw/agents/main/other/no.jsonl", "");
    let kimi = env.home().join(".kimi/sessions/0123/k-1");
    fs::create_dir_all(&kimi).unwrap();
    let said = "{\"role\":\"user\",\"content\":\"Hello\"}\n";
    fs::write(kimi.join("context_1.jsonl"), said.repeat(3)).unwrap();
    fs::write(kimi.join("context.jsonl"), said).unwrap();
    assert_snapshot!(env.run(&["import", "--dry-run"]), @"
    claude  boat  456 B  ~/.claude/projects/-work/boat.jsonl
    kimi    k-1    34 B  ~/.kimi/sessions/0123/k-1/context.jsonl
    kimi    k-1   102 B  ~/.kimi/sessions/0123/k-1/context_1.jsonl
    ------- stderr -------
    Claude Code: ~/.claude/projects
    Kimi CLI: ~/.kimi/sessions
    ");
    assert!(!super::store(&env).exists());
    assert_snapshot!(env.run(&["import", "--json"]).masked(), @r#"
    {"type":"imported","agent":"claude","session":"boat","new":true,"operation":1,"files":1,"entries":2,"sidecars":0,"bytes":456,"left":null,"oddities":[]}
    {"type":"imported","agent":"kimi","session":"k-1","new":true,"operation":1,"files":2,"entries":3,"sidecars":0,"bytes":136,"left":null,"oddities":[]}
    {"type":"summary","files":3,"unchanged":0,"skipped":0,"left_out":{},"sessions":2,"entries":5,"sidecars":0,"bytes":592,"gone":0,"oddities":{}}
    ------- stderr -------
    Claude Code: ~/.claude/projects
    Kimi CLI: ~/.kimi/sessions
    "#);
    assert_snapshot!(env.run(&["export", "--list", "k-1"]), @"
    1  3 entries  102 B           by operation 1  ~/.kimi/sessions/0123/k-1/context_1.jsonl
    2    1 entry   34 B  current  by operation 1  ~/.kimi/sessions/0123/k-1/context.jsonl
    ");
}

#[test]
fn a_dry_run_lists_what_an_import_would_read() {
    let env = TestEnv::new();
    claude(&env, ".claude/projects/-work/boat.jsonl", "");
    claude(&env, ".claude/projects/-work/oars.jsonl", "");
    let listed = || {
        let told = env.run(&["import", "--dry-run", "--json", "-q"]).success().stdout;
        let name = |line| {
            let path = json(line)["path"].as_str().unwrap().to_owned();
            path.rsplit('/').next().unwrap().to_owned()
        };
        told.lines().map(name).collect::<Vec<_>>()
    };
    assert_eq!(listed(), ["boat.jsonl", "oars.jsonl"]);
    env.run(&["import"]).success();
    assert_snapshot!(env.run(&["import", "--dry-run"]), @"
    ------- stderr -------
    Claude Code: ~/.claude/projects
    2 files are already in the store, unchanged
    ");
    assert_eq!(listed(), [""; 0]);
    let path = env.home().join(".claude/projects/-work/oars.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let last = text.lines().last().unwrap().replace("\"uuid\":\"", "\"uuid\":\"new-");
    fs::write(&path, format!("{text}{last}\n")).unwrap();
    assert_eq!(listed(), ["oars.jsonl"]);
    env.run(&["import"]).success();
    assert_eq!(listed(), [""; 0]);
}

/// It listed all files as new or changed, of which the import then read none.
#[test]
fn a_dry_run_in_a_home_that_was_copied_lists_what_the_import_reads() {
    let (env, copied) = (TestEnv::new(), TestEnv::new());
    let folder = ".claude/projects/-work";
    claude(&env, &format!("{folder}/boat.jsonl"), "");
    let text = fs::read_to_string(env.home().join(folder).join("boat.jsonl")).unwrap();
    let packed = zstd::encode_all(text.replace("boat", "raft").as_bytes(), 3).unwrap();
    fs::write(env.home().join(folder).join("raft.jsonl.zst"), packed).unwrap();
    let sidecar = format!("{folder}/boat/tool-results/long.txt");
    fs::create_dir_all(env.home().join(&sidecar).parent().unwrap()).unwrap();
    fs::write(env.home().join(&sidecar), "an answer").unwrap();
    env.run(&["import"]).success();
    for folder in [".claude", ".local"] {
        fs::create_dir(copied.home().join(folder)).unwrap();
        crate::format::copy(&env.home().join(folder), &copied.home().join(folder));
    }
    let dry = || {
        let told = copied.run(&["import", "--dry-run"]).success();
        let listed = told.stdout.matches(".jsonl").count();
        assert!(listed == 0 || listed == 1 && told.stdout.contains("boat.jsonl"), "{told}");
        let unchanged = [2, 1].map(|n| told.stderr.contains(&format!("{n} file")));
        assert_eq!(unchanged, [listed == 0, listed == 1], "{told}");
        listed
    };
    assert_eq!(dry(), 0);
    fs::write(copied.home().join(&sidecar), "another answer").unwrap();
    assert_eq!(dry(), 1);
    fs::write(copied.home().join(&sidecar), "an answer").unwrap();
    assert_eq!(dry(), 0);
    let summary = json(&copied.run(&["import", "--json", "-q"]).success().stdout);
    assert_eq!((&summary["unchanged"], &summary["sessions"]), (&2.into(), &0.into()), "{summary}");
    // Of one file nothing but the time is another one, and then it has grown.
    let boat = copied.home().join(folder).join("boat.jsonl");
    let boat = fs::File::options().append(true).open(boat).unwrap();
    boat.set_modified(SystemTime::now()).unwrap();
    assert_eq!(dry(), 0);
    writeln!(&boat, "{{}}").unwrap();
    assert_eq!(dry(), 1);
}

#[test]
fn what_holds_no_session_is_left_out_with_a_reason() {
    let env = TestEnv::new();
    claude(&env, "project/in/boat.jsonl", "");
    let folder = env.project().join("in");
    fs::write(folder.join("notes.txt"), "nothing\n").unwrap();
    fs::write(folder.join("odd\x1b[2J"), "nothing\n").unwrap();
    symlink("gone", folder.join("dangling")).unwrap();
    symlink(".", folder.join("loop")).unwrap();
    assert_snapshot!(env.run(&["import", "in", "-v"]), @r"
    Imported 1 session (1 new): 2 new entries, 456 B
    ------- stderr -------
    warning: skipped $HOME/project/in/dangling: it is a link, and links are not followed; name the target instead
    warning: skipped $HOME/project/in/loop: it is a link, and links are not followed; name the target instead
    warning: skipped $HOME/project/in/notes.txt: it is not a session in a known format
    warning: skipped $HOME/project/in/odd\x1b[2J: it is not a session in a known format
    ");
    assert_snapshot!(env.run(&["import", "in/notes.txt", "no\x1bwhere"]), @r"
    ------- stderr -------
    warning: skipped $HOME/project/in/notes.txt: it is not a session in a known format
    warning: skipped $HOME/project/no\x1bwhere: cannot read it: there is no such file or folder
    error: nothing could be imported
    hint: see which agents' sessions undertext reads: undertext import --help
    [exit status: 3]
    ");
    let summary = env.run(&["import", "--json", "-q", "in"]).success().stdout;
    assert_eq!(json(&summary)["unchanged"], 1);
}

#[test]
fn a_line_that_is_too_long_ends_its_file_and_is_named_with_its_number() {
    let env = TestEnv::new();
    claude(&env, ".claude/projects/-work/boat.jsonl", "");
    let path = env.home().join(".claude/projects/-work/boat.jsonl");
    let file = fs::File::options().append(true).open(&path).unwrap();
    file.set_len(file.metadata().unwrap().len() + (513 << 20)).unwrap();
    assert_snapshot!(env.run(&["import"]), @"
    Imported 1 session (1 new): 2 new entries, 455 B
    Noted: 1 file with a line that is too long
    ------- stderr -------
    Claude Code: ~/.claude/projects
    warning: $HOME/.claude/projects/-work/boat.jsonl:3: the file was imported up to here: the line is longer than 512 MiB
    ");
    assert_snapshot!(env.run(&["import"]), @"
    Imported 0 sessions (0 new): 0 new entries, 0 B; 1 file is unchanged
    ------- stderr -------
    Claude Code: ~/.claude/projects
    ");
    let log = env.run(&["log", "-s", "boat"]);
    assert!(log.stdout.contains("Part 1") && log.stdout.contains("Part 2"), "{log}");
    // It is read on from its old end, and nothing of it is new.
    std::io::Write::write_all(&mut &file, b"\n{}\n").unwrap();
    for args in [&["import"][..], &["checkpoint", "-s", "boat"]] {
        let refused = env.run(args);
        assert!(
            refused.stderr.contains("line 3 at byte 456 is longer than 536870912 bytes"),
            "{refused}"
        );
    }
    env.run(&["verify"]).success();
}

#[test]
fn a_compressed_file_is_read_as_its_lines() {
    let env = TestEnv::new();
    claude(&env, "project/boat.jsonl", "");
    let lines = fs::read(env.project().join("boat.jsonl")).unwrap();
    let packed = zstd::encode_all(&lines[..], 3).unwrap();
    fs::remove_file(env.project().join("boat.jsonl")).unwrap();
    fs::write(env.project().join("boat.jsonl.zst"), packed).unwrap();
    assert_snapshot!(env.run(&["import", "boat.jsonl.zst"]), @"Imported 1 session (1 new): 2 new entries, 456 B");
    let exported = env.command().args(["export", "boat"]).output().unwrap();
    assert!(exported.stdout == lines);
}

#[test]
fn a_branch_that_a_command_moved_is_kept() {
    let env = TestEnv::new();
    claude(&env, "project/boat.jsonl", "");
    let _ = env.run(&["import", "boat.jsonl"]).success();
    let _ = env.run(&["revert", "-q", "0", "-s", "boat"]).success();
    claude(&env, "project/boat.jsonl", "{\"type\":\"ai-title\",\"aiTitle\":\"A boat\"}\n");
    assert_snapshot!(env.run(&["import", "boat.jsonl"]), @"
    Session boat: main follows the session's file again; main's old position is kept as branch main.2
    Imported 1 session (0 new): 1 new entry, 39 B
    ");
}

/// A record of Claude Code that follows another one.
fn follows(session: &str, parent: &str, words: &str) -> String {
    format!(
        "{{\"parentUuid\":\"{parent}\",\"isSidechain\":false,\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"{words}\"}},\
         \"uuid\":\"{session}-{words}\",\"timestamp\":\"2026-11-26T05:00:00.000Z\",\"userType\":\"external\",\"cwd\":\"/garden\",\
         \"sessionId\":\"{session}\"}}\n"
    )
}

/// Takes in the garden's session where Claude Code keeps it, and returns its path.
fn garden(env: &TestEnv) -> PathBuf {
    let folder = env.home().join(".claude/projects/-garden");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{GARDEN}.jsonl"));
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/claude-garden.jsonl");
    fs::copy(example, &path).unwrap();
    env.run(&["import", "-q"]).success();
    path
}

fn append(path: &Path, line: &str) {
    let mut file = fs::File::options().append(true).open(path).unwrap();
    file.write_all(line.as_bytes()).unwrap();
}

/// Returns the object of the session and the summary that an import tells.
fn imported(env: &TestEnv) -> (Value, Value) {
    let told = env.run(&["import", "--json"]).success().stdout;
    let lines: Vec<Value> = told.lines().map(json).collect();
    let session = lines.iter().find(|it| it["type"] == "imported").cloned().unwrap();
    (session, lines.last().unwrap().clone())
}

#[test]
fn what_came_with_a_file_next_to_it_or_on_another_branch_is_counted() {
    let last = "cc000019-0000-4000-8000-000000000000";
    let env = TestEnv::new();
    let path = garden(&env);
    let beside = path.with_extension("").join("tool-results");
    fs::create_dir_all(&beside).unwrap();
    fs::write(beside.join("a.txt"), "long").unwrap();
    append(&path, &follows(GARDEN, last, "zebra"));
    let (session, summary) = imported(&env);
    assert_eq!((&session["entries"], &session["sidecars"]), (&1.into(), &1.into()), "{session}");
    assert_eq!((&summary["files"], &summary["entries"]), (&1.into(), &1.into()), "{summary}");

    let env = TestEnv::new();
    let path = garden(&env);
    env.run(&["revert", "-q", "2", GARDEN, "-m", "Not yet."]).success();
    append(&path, &follows(GARDEN, last, "zebra"));
    let (session, summary) = imported(&env);
    assert_eq!((&session["entries"], &summary["entries"]), (&1.into(), &1.into()), "{session}");

    // An agent that goes on from its own last record did not write the file anew.
    let env = TestEnv::new();
    let path = garden(&env);
    env.run(&["append", "-q", "aside", "-s", GARDEN]).success();
    append(&path, &follows(GARDEN, last, "zebra"));
    let told = env.run(&["import"]).success();
    assert!(!told.to_string().contains("rewritten"), "{told}");
}

#[test]
fn a_file_that_was_moved_away_and_back_is_the_agents_again() {
    let env = TestEnv::new();
    let path = garden(&env);
    let other = env.home().join(".claude/projects/-else").join(path.file_name().unwrap());
    fs::create_dir_all(other.parent().unwrap()).unwrap();
    fs::rename(&path, &other).unwrap();
    let moved = env.run(&["import"]).success();
    assert!(moved.stderr.contains("was deleted; the session continues in "), "{moved}");
    fs::rename(&other, &path).unwrap();
    env.run(&["import"]).success();
    assert!(!env.run(&["sessions"]).success().stdout.contains("file gone"));
    let count = || env.run(&["operations", "--json", GARDEN]).success().stdout.lines().count();
    let operations = count();
    env.run(&["import"]).success();
    assert_eq!(count(), operations, "nothing is done twice");
    append(&path, &follows(GARDEN, "cc000020-0000-4000-8000-000000000000", "zebra"));
    env.run(&["import"]).success();
    assert!(env.run(&["log", "-n", "1", GARDEN]).success().stdout.contains("zebra"));
}

#[test]
fn stats_count_by_agent_and_in_all() {
    let env = with_examples();
    claude(&env, "project/boat.jsonl", "");
    claude(&env, "project/again.jsonl", "");
    let _ = env.run(&["import", "."]).success();
    let said = env.run(&["store", "sizes"]).success().stdout;
    let lines: Vec<&str> = said.lines().collect();
    assert_snapshot!(lines[..2].join("\n"), @"
    claude   1 session   2 entries   454 B
    native  2 sessions  27 entries  9.8 kB
    ");
    let json_lines = env.run(&["store", "sizes", "--json"]).success().stdout;
    let store = json(json_lines.lines().last().unwrap());
    assert_eq!((&store["type"], &store["lines"]), (&"store".into(), &29.into()));
}

#[test]
fn a_long_end_without_a_newline_is_packed_and_comes_back() {
    let env = TestEnv::new();
    let torn = format!("{{\"torn\":\"{}", "abcdefgh".repeat(250_000));
    claude(&env, "project/boat.jsonl", &torn);
    let path = env.project().join("boat.jsonl");
    let whole = fs::read(&path).unwrap();
    assert_snapshot!(env.run(&["import", ".", "-v"]), @"
    $HOME/project/boat.jsonl:3: the file ends in the middle of a record
    Imported 1 session (1 new): 2 new entries, 2.0 MB
    Noted: 1 file that ends in the middle of a record
    ");
    let exported = env.command().args(["export", "boat"]).output().unwrap();
    assert!(exported.stdout == whole);
    assert_snapshot!(env.run(&["verify"]), @"Verified 1 session, 1 operation, 2 entries: no damage found");
    let store = env.home().join(".local/share/undertext");
    let files = fs::read_dir(store).unwrap().map(|file| file.unwrap().metadata().unwrap().len());
    assert!(files.sum::<u64>() < 1_000_000);

    fs::write(&path, [&whole[..], b"\"}\n"].concat()).unwrap();
    assert_snapshot!(env.run(&["import", "."]), @"Imported 1 session (0 new): 1 new entry, 3 B");
}

#[test]
fn files_of_agents_that_are_not_read_yet_are_named_once_and_left_alone() {
    let env = TestEnv::new();
    let folder = env.project().join("in");
    let code = folder.join("wd_boat_0123456789ab/session_1/agents/main");
    fs::create_dir_all(&code).unwrap();
    let copilot = concat!(
        r#"{"type":"session.start","data":{"sessionId":"u"},"id":"e1","timestamp":"2026-08-01T10:00:00Z","parentId":null}"#,
        "\n",
        r#"{"type":"user.message","data":{"content":"hi"},"id":"e2","timestamp":"2026-08-01T10:00:01Z","parentId":"e1"}"#,
        "\n",
    );
    for name in ["one", "two"] {
        fs::write(folder.join(name), copilot).unwrap();
    }
    let wire = concat!(
        r#"{"type":"metadata","protocol_version":"1.5","created_at":1795320159097}"#,
        "\n",
        r#"{"type":"turn.prompt","agentId":"main","input":[],"time":1795320159101}"#,
        "\n",
    );
    fs::write(code.join("wire.jsonl"), wire).unwrap();
    fs::write(folder.join("wd_boat_0123456789ab/session_1/state.json"), "{\n}").unwrap();
    fs::write(folder.join("opencode.db"), "SQLite format 3\0").unwrap();
    assert_snapshot!(env.run(&["import", "in"]), @"
    Found no sessions
    ------- stderr -------
    skipped 2 files: undertext does not read Copilot CLI files yet
    skipped 2 files: undertext does not read kimi-code files yet
    skipped 1 file: undertext does not read opencode files yet
    ");
    assert_snapshot!(env.run(&["log", "in/one"]), @"
    ------- stderr -------
    error: $HOME/project/in/one belongs to Copilot CLI, whose files undertext does not read yet
    hint: see which agents' sessions undertext reads: undertext import --help
    [exit status: 2]
    ");
    // No hint leads back to where it came from.
    for path in ["in/one", "in/opencode.db"] {
        for command in ["import", "log"] {
            let refused = env.run(&[command, path]);
            assert!(refused.stderr.contains("undertext does not read yet"), "{refused}");
            assert!(refused.stderr.contains("undertext import --help"), "{refused}");
            assert!(!refused.stderr.contains("--dry-run"), "{refused}");
        }
    }
}

#[test]
fn agents_that_are_not_read_yet_are_named_with_the_number_of_their_files() {
    let places = [
        ("Copilot CLI", ".copilot/session-state", &["1/events.jsonl", "2/events.jsonl"][..]),
        ("kimi-code", ".kimi-code/sessions", &["wd_boat_0/session_1/agents/main/wire.jsonl"]),
        ("Gemini CLI", ".gemini/tmp", &["p/chats/session-1.jsonl", "q/chats/session-2.json"]),
        ("Qwen Code", ".qwen/projects", &["-work/chats/1.jsonl"]),
        ("opencode", ".local/share/opencode", &["opencode.db"]),
        ("OpenClaw", ".openclaw/agents", &["main/agent/openclaw-agent.sqlite"]),
    ];
    let all = TestEnv::new();
    for (agent, folder, files) in places {
        let one = TestEnv::new();
        for (env, file) in
            [&one, &all].into_iter().flat_map(|env| files.iter().map(move |file| (env, file)))
        {
            let file = env.home().join(folder).join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "{}\n").unwrap();
            // Nor is what lies next to it a session file.
            fs::write(file.with_file_name("notes.txt"), "{}\n").unwrap();
        }
        let n = files.len();
        let line =
            format!("{agent}: ~/{folder}, {n} session file{} that", if n == 1 { "" } else { "s" });
        for command in [&["import"][..], &["import", "--dry-run"]] {
            let said = one.run(command).success();
            assert!(said.stderr.contains(&line), "{line}: {said}");
            assert!(!said.stderr.contains("No agent keeps sessions"), "{said}");
            assert!(!said.stderr.contains(&format!("  {agent}: ")), "{said}");
        }
    }
    // They are named next to an agent that is read, and only where they hold something.
    claude(&all, ".claude/projects/-work/boat.jsonl", "");
    fs::remove_file(all.home().join(".local/share/opencode/opencode.db")).unwrap();
    let said = all.run(&["import"]).success();
    assert_eq!(said.stderr.matches("does not read yet").count(), places.len() - 1, "{said}");
    assert!(said.stdout.contains("1 session (1 new)"), "{said}");
    // A folder without a session is no reason to say that its agent is not there.
    let empty = TestEnv::new();
    fs::create_dir_all(empty.home().join(".gemini/tmp/p")).unwrap();
    let said = empty.run(&["import"]).success();
    assert!(said.stderr.contains("Gemini CLI: ~/.gemini/tmp, 0 session files that"), "{said}");
    // A variable names another folder.
    let elsewhere = all.home().join("elsewhere");
    fs::create_dir_all(elsewhere.join("sessions/wd_a/session_2/agents/main")).unwrap();
    fs::write(elsewhere.join("sessions/wd_a/session_2/agents/main/wire.jsonl"), "").unwrap();
    let output = all.command().arg("import").env("KIMI_CODE_HOME", &elsewhere).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("kimi-code: ~/elsewhere/sessions, 1 session file that"), "{said}");
}

/// How long the session is, at first, that is being read as the signal comes.
const LONG: usize = 100_000;

/// Begins to take in a short session and one of this length, and ends that by a signal when the short one is in. Returns
/// nothing if the machine was done before the signal reached it.
fn interrupted(length: usize) -> Option<TestEnv> {
    let env = TestEnv::new();
    claude(&env, "files/a.jsonl", "");
    env.run(&["import", "-q", "../files"]).success();
    claude(&env, "files/a.jsonl", "{\"type\":\"mode\"}\n");
    let mut rest = String::new();
    for n in 3..length {
        let parent = n - 1;
        writeln!(
            rest,
            "{{\"parentUuid\":\"u{parent}\",\"sessionId\":\"boat\",\"type\":\"user\",\
             \"message\":{{\"role\":\"user\",\"content\":\"Part {n}\"}},\"uuid\":\"u{n}\"}}"
        )
        .unwrap();
    }
    claude(&env, "files/b.jsonl", &rest);
    let long = env.home().join("files/b.jsonl");
    let text = fs::read_to_string(&long).unwrap().replace("\"boat\"", "\"long\"");
    fs::write(&long, text).unwrap();

    let (mut host, terminal) = screens::terminal();
    let mut command = env.command();
    command.args(["import", "../files"]).stdin(Stdio::null());
    command.stdout(terminal.try_clone().unwrap()).stderr(terminal);
    let mut child = command.spawn().unwrap();
    drop(command);
    let (mut said, mut buffer, mut is_sent) = (String::new(), [0; 4096], false);
    while let Ok(n @ 1..) = host.read(&mut buffer) {
        said.push_str(&String::from_utf8_lossy(&buffer[..n]));
        if said.contains("importing 1/2") && !is_sent {
            let pid = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
            // Not that of ctrl-C: a shell has what it runs in the background ignore it.
            kill_process(pid, Signal::TERM).unwrap();
            is_sent = true;
        }
    }
    let status = child.wait().unwrap();
    if status.success() {
        return None;
    }
    assert_eq!(status.signal(), Some(Signal::TERM.as_raw()), "{said}");
    Some(env)
}

#[test]
fn after_a_signal_that_ends_an_import_the_next_one_goes_on() {
    // A busy machine may be done before this test sees that it has begun.
    let env = (0..4).find_map(|n| interrupted(LONG << n)).unwrap();
    env.run(&["verify"]).success();
    let rest = env.run(&["import", "../files"]).success();
    assert!(rest.stdout.contains("(1 new)"), "{rest}");
    assert_eq!(env.run(&["sessions", "--json", "--all"]).success().stdout.lines().count(), 2);
}

/// Writes the user's settings.
fn settings(env: &TestEnv, text: &str) {
    let folder = env.home().join(".config/undertext");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), text).unwrap();
}

/// Writes a session of Claude Code that works in a folder, where its agent keeps it.
fn at_work(env: &TestEnv, id: &str, folder: &str) -> PathBuf {
    let path = format!(".claude/projects/-work/{id}.jsonl");
    claude(env, &path, "");
    let path = env.home().join(path);
    let text = fs::read_to_string(&path).unwrap();
    let text = text.replace("\"/work\"", &format!("{folder:?}")).replace("boat", id);
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn what_the_settings_exclude_stays_out() {
    let env = TestEnv::new();
    let secret = env.home().canonicalize().unwrap().join("secret");
    fs::create_dir(&secret).unwrap();
    symlink(&secret, env.home().join("link")).unwrap();
    at_work(&env, "open", "/work");
    let file = at_work(&env, "deep", secret.join("deep").to_str().unwrap());
    at_work(&env, "link", env.home().join("link").to_str().unwrap());
    at_work(&env, "8f14e45f", "/work");
    at_work(&env, "8f14aaaa", "/work");
    let kimi = env.home().join(".kimi/sessions/0123/k-1");
    fs::create_dir_all(&kimi).unwrap();
    fs::write(kimi.join("context.jsonl"), "{\"role\":\"user\",\"content\":\"Hello\"}\n").unwrap();
    settings(
        &env,
        "[exclude]\nfolders = [\"~/secret\"]\nsessions = [\"claude:8f14\"]\nagents = [\"kimi\"]\n",
    );
    assert_snapshot!(env.run(&["import", "--dry-run"]), @"
    claude  open  456 B  ~/.claude/projects/-work/open.jsonl
    ------- stderr -------
    Claude Code: ~/.claude/projects
    Kimi CLI: ~/.kimi/sessions
    5 sessions excluded by your settings (-v lists them): exclude.agents contains kimi; exclude.folders contains $HOME/secret; exclude.sessions contains claude:8f14
    ");
    assert_snapshot!(env.run(&["import"]), @"
    Imported 1 session (1 new): 2 new entries, 456 B
    ------- stderr -------
    Claude Code: ~/.claude/projects
    Kimi CLI: ~/.kimi/sessions
    5 sessions excluded by your settings (-v lists them): exclude.agents contains kimi; exclude.folders contains $HOME/secret; exclude.sessions contains claude:8f14
    ");
    assert_snapshot!(env.run(&["import", "--json", "-q"]).masked(), @r#"{"type":"summary","files":1,"unchanged":1,"skipped":5,"left_out":{"excluded":5},"sessions":0,"entries":0,"sidecars":0,"bytes":0,"gone":0,"oddities":{}}"#);
    assert_snapshot!(env.run(&["import", "-v", kimi.to_str().unwrap()]), @"
    ------- stderr -------
    warning: skipped $HOME/.kimi/sessions/0123/k-1/context.jsonl: your settings exclude it: exclude.agents contains kimi
    ");
    // A file that is named is refused, wherever it is named.
    let named = file.to_str().unwrap();
    assert_snapshot!(env.run(&["import", named]), @"
    ------- stderr -------
    warning: skipped $HOME/.claude/projects/-work/deep.jsonl: your settings exclude it: exclude.folders contains $HOME/secret
    error: your settings exclude everything that you named
    hint: see all settings explained: undertext context --settings
    [exit status: 3]
    ");
    let refused = env.run(&["attach", named]).to_string();
    assert_eq!(env.run(&["checkpoint", named]).to_string(), refused);
    assert_snapshot!(refused, @"
    ------- stderr -------
    error: $HOME/.claude/projects/-work/deep.jsonl was not imported: your settings exclude it (exclude.folders contains $HOME/secret)
    hint: see all settings explained: undertext context --settings
    [exit status: 2]
    ");
    // What the store holds goes on without what came since.
    settings(&env, "[exclude]\nfolders = [\"/work\"]\n");
    let file = env.home().join(".claude/projects/-work/open.jsonl");
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(&file, [&whole, "{\"type\":\"ai-title\",\"aiTitle\":\"More\"}\n"].concat()).unwrap();
    assert_snapshot!(env.run(&["import"]), @"
    Imported 2 sessions (2 new): 4 new entries, 986 B
    ------- stderr -------
    Claude Code: ~/.claude/projects
    Kimi CLI: ~/.kimi/sessions
    4 sessions excluded by your settings (-v lists them): exclude.folders contains /work; exclude.folders excludes sessions whose folder is not known yet
    ");
    fs::remove_file(&file).unwrap();
    assert_eq!(env.run(&["export", "-q", "open"]).success().stdout, whole);
}

#[test]
fn a_folder_behind_a_link_stays_out() {
    let env = TestEnv::new();
    let home = env.home().canonicalize().unwrap();
    fs::create_dir(home.join("project/real")).unwrap();
    symlink(home.join("project/real"), home.join("secret")).unwrap();
    at_work(&env, "open", "/work");
    at_work(&env, "deep", home.join("project/real/deep").to_str().unwrap());
    at_work(&env, "gone", home.join("project/real/gone/deep").to_str().unwrap());
    settings(&env, "[exclude]\nfolders = [\"~/secret/deep\", \"~/secret/gone\"]\n");
    assert_snapshot!(env.run(&["import"]), @"
    Imported 1 session (1 new): 2 new entries, 456 B
    ------- stderr -------
    Claude Code: ~/.claude/projects
    2 sessions excluded by your settings (-v lists them): exclude.folders contains $HOME/secret/deep; exclude.folders contains $HOME/secret/gone
    ");
}

#[test]
fn settings_that_exclude_nothing_are_refused() {
    let env = TestEnv::new();
    claude(&env, "project/boat.jsonl", "");
    settings(&env, "[exclude]\nagents = [\"claud\"]\n");
    assert_snapshot!(env.run(&["import", "boat.jsonl"]), @"
    ------- stderr -------
    error: your settings: exclude.agents: there is no agent claud
    hint: see all settings explained: undertext context --settings
    [exit status: 2]
    ");
    settings(&env, "[exclude]\nfolders = [\"work\"]\n");
    assert_snapshot!(env.run(&["import", "boat.jsonl"]), @"
    ------- stderr -------
    error: your settings: exclude.folders contains work: a folder must begin with / or ~/ and must not contain ..
    hint: see all settings explained: undertext context --settings
    [exit status: 2]
    ");
    for (text, told) in [
        (
            "[exclude]\nfolder = [\"~/work\"]\n",
            "unknown key exclude.folder; the nearest is exclude.folders",
        ),
        ("[excludes]\nfolders = [\"~/work\"]\n", "unknown key excludes; the nearest is exclude"),
        ("folders = [\"~/work\"]\n", "unknown key folders"),
        (
            "[exclude]\nfolders = [\"~/clients/*\"]\n",
            "exclude.folders contains ~/clients/*: folder names may not",
        ),
    ] {
        settings(&env, text);
        let refused = env.run(&["import", "boat.jsonl"]);
        assert_eq!(refused.code(), Some(2), "{refused}");
        assert!(refused.stderr.contains(told), "{refused}");
        assert!(!super::store(&env).join("store.db").exists(), "{refused}");
    }
    // A mistake elsewhere is only told of.
    settings(&env, "[window]\nwran = 1\n");
    env.run(&["import", "-n", "boat.jsonl"]).success();
    // A store's own settings leave nothing out.
    settings(&env, "");
    let _ = env.run(&["new"]).success();
    fs::write(super::store(&env).join("config.toml"), "[exclude]\nagents = [\"claude\"]\n")
        .unwrap();
    assert_snapshot!(env.run(&["import", "boat.jsonl"]), @"
    Imported 1 session (1 new): 2 new entries, 456 B
    ------- stderr -------
    warning: $HOME/.local/share/undertext/config.toml may not set exclude.agents: only your own settings may run programs, send data, read files outside a session, exclude sessions or define secrets
    ");
}

#[test]
fn what_the_system_says_of_a_file_is_told_in_words() {
    let env = TestEnv::new();
    claude(&env, "project/boat.jsonl", "");
    assert_snapshot!(env.run(&["import", "boat.jsonl", "boat.jsonl/x"]), @"
    Imported 1 session (1 new): 2 new entries, 456 B
    ------- stderr -------
    warning: skipped $HOME/project/boat.jsonl/x: cannot read it: part of the path is a file, not a folder
    ");
}
