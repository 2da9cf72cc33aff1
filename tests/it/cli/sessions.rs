//! `new` and `sessions`: sessions begin, are listed, and can be left out of lists.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use insta::assert_snapshot;
use serde_json::json;

use super::{conversation, store};
use crate::env::TestEnv;

#[test]
fn a_new_session_says_its_id_and_its_live_file() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["new"]), @r"
    Session e572dff8-2304-400b-856a-555ac3a4558d
    Live file $HOME/.local/share/undertext/transcripts/e572dff8-2304-400b-856a-555ac3a4558d.jsonl
    ");
    assert_snapshot!(env.run(&["new", "--json"]), @r#"{"type":"session","session":"17eb9c06-ac3c-404e-ba62-1b41f74b5370","live":"$HOME/.local/share/undertext/transcripts/17eb9c06-ac3c-404e-ba62-1b41f74b5370.jsonl","operation":1}"#);
    assert_snapshot!(env.run(&["new", "--prefer", "language"]), @"
    ------- stderr -------
    error: invalid value 'language' for '--prefer <KEY=VALUE>': use the form KEY=VALUE
    hint: see the help: undertext new --help
    [exit status: 2]
    ");
}

#[test]
fn a_new_session_records_what_it_was_told_and_what_it_sees() {
    let env = TestEnv::new();
    fs::create_dir(env.project().join(".git")).unwrap();
    fs::write(env.project().join(".git/HEAD"), "ref: refs/heads/topic\n").unwrap();
    env.run(&["new", "--prefer", "language=French=fr", "--configure", "model=large"]).success();
    let first = env.run(&["operations", "--json"]).success().stdout;
    let detail = super::json(&first)["detail"].clone();
    assert_snapshot!(detail["session"], @r#"{"user":"test-user","preferences":{"language":"French=fr"},"configuration":{"model":"large"},"start":"2001-02-03T04:05:06.000Z"}"#);
    assert_snapshot!(detail["workspace"]["gitBranch"], @r#""topic""#);
}

#[test]
fn lists_are_made_without_a_store() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["sessions"]), @"
    ------- stderr -------
    No sessions yet
    hint: import sessions from elsewhere: undertext import PATH
    hint: start a session for your own agent: undertext new
    ");
    assert!(!store(&env).exists());
    assert_snapshot!(env.run(&["checkpoints"]), @"
    ------- stderr -------
    error: no sessions yet: found none in ~/.claude/projects, ~/.codex/sessions, ~/.codex/archived_sessions, ~/.pi/agent/sessions, ~/.openclaw/agents, ~/.kimi/sessions, ~/.clawdcode/projects
    hint: import sessions from elsewhere: undertext import PATH
    hint: start a session for your own agent: undertext new
    [exit status: 1]
    ");
    assert_snapshot!(env.run(&["append", "text"]), @"
    ------- stderr -------
    error: there is no store at $HOME/.local/share/undertext
    hint: import your agents' sessions: undertext import
    hint: start a session for your own agent: undertext new
    [exit status: 1]
    ");
    assert!(!store(&env).exists());
}

#[test]
fn a_program_is_told_of_every_session_unless_it_asks_for_fewer() {
    let env = TestEnv::new();
    let folder = env.home().join(".claude/projects/-work");
    fs::create_dir_all(&folder).unwrap();
    for n in 0..60 {
        let record = format!(
            "{{\"parentUuid\":null,\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/work\",\"sessionId\":\"s{n}\",\
             \"version\":\"2.1.0\",\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"Go on.\"}},\"uuid\":\"u{n}\",\
             \"timestamp\":\"2026-01-01T00:00:00.000Z\"}}\n"
        );
        fs::write(folder.join(format!("s{n}.jsonl")), record).unwrap();
    }
    env.run(&["import", "-q"]).success();
    let lines = |args: &[&str]| env.run(args).success().stdout.lines().count();
    assert_eq!(lines(&["sessions", "--json"]), 60);
    assert_eq!(lines(&["sessions", "--json", "-n", "7"]), 7);
    assert_eq!(lines(&["operations", "--all", "--json"]), 60);
    assert_eq!(lines(&["--json"]), 60, "what the program without a command shows");
    // For people, the first line has the names of the columns.
    assert_eq!(lines(&["sessions"]), 51);
    assert_eq!(lines(&["sessions", "-n", "0"]), 61);
}

#[test]
fn sessions_are_narrowed_and_hidden() {
    let env = TestEnv::new();
    let first = conversation(&env);
    let other = env.home().join("other");
    fs::create_dir(&other).unwrap();
    let output = env.command().arg("new").current_dir(&other).output().unwrap();
    assert!(output.status.success());
    assert_snapshot!(env.run(&["sessions"]), @"
    ID          ACTIVE  TITLE                     TURNS       FOLDER
    17417400  just now  (no title)                    0   0%  ~/other
    e572dff8  just now  Why does the build fail?      2  <1%  ~/project
    ");
    assert_snapshot!(env.run(&["sessions", "--here", "--json"]), @r#"{"type":"session","agent":"native","session":"e572dff8-2304-400b-856a-555ac3a4558d","title":"Why does the build fail?","folder":"$HOME/project","started":"2001-02-03T04:05:06.000Z","active":"2001-02-03T04:05:10.000Z","turns":2,"hidden":false,"kin":null,"branches":1,"reverted":0,"compactions":0,"tokens":39,"window":32000,"sub_agents":0,"gone":false,"open":false}"#);
    let folder = env.run(&["sessions", "--folder", "../other/."]).success().stdout;
    assert_eq!(folder.lines().count(), 2);
    assert_eq!(env.run(&["sessions", "--agent", "codex"]).success().stdout, "");
    assert_eq!(env.run(&["sessions", "-n", "1"]).success().stdout, folder);
    assert_eq!(env.run(&["sessions", "--since", "1h"]).success().stdout.lines().count(), 3);
    assert_snapshot!(env.run(&["sessions", "--since", "someday"]), @"
    ------- stderr -------
    error: invalid value 'someday' for '--since <TIME>': use an age such as 7d or '3 days ago', a day such as yesterday or monday, or a date such as 2026-11-01
    hint: see the help: undertext sessions --help
    [exit status: 2]
    ");

    assert_snapshot!(env.run(&["sessions", "--hide", &first[..8]]), @r"
    Session e572dff8  Why does the build fail?  (native)
    The session is now hidden from lists
    ------- stderr -------
    hint: to show the session again: undertext sessions --show e572dff8
    ");
    assert_eq!(env.run(&["sessions"]).success().stdout, folder);
    assert_eq!(env.run(&["sessions", "--hidden"]).success().stdout.lines().count(), 3);
    assert_snapshot!(env.run(&["sessions", "--json", "--show", "Why does the build fail?"]), @r#"{"type":"hide","session":"e572dff8-2304-400b-856a-555ac3a4558d","title":"Why does the build fail?","format":"native","hidden":false,"operation":7,"rotated":null,"written":null}"#);
    assert_snapshot!(env.run(&["sessions", "--hide", "nothing"]), @r#"
    ------- stderr -------
    error: no session matches "nothing"
    hint: list the sessions: undertext sessions
    hint: import your agents' sessions: undertext import
    [exit status: 1]
    "#);
}

/// An agent writes its folder down as it was started there: under a link, or where that leads. The folder need not be there still.
#[test]
fn a_folder_has_every_name_that_leads_to_it() {
    let env = TestEnv::new();
    let home = env.home().canonicalize().unwrap();
    fs::create_dir_all(home.join("real/proj")).unwrap();
    symlink(home.join("real"), home.join("link")).unwrap();
    let folders = [
        home.join("link/proj"),
        home.join("real/proj/deep"),
        home.join("gone/que-fer"),
        home.join("link/gone"),
        home.join("real/lost"),
    ];
    for (n, folder) in folders.iter().enumerate() {
        let said = json!({
            "type": "user", "uuid": "1", "parentUuid": null, "sessionId": n.to_string(), "cwd": folder,
            "version": "2.1.0", "message": { "role": "user", "content": "When?" },
        });
        fs::write(home.join(format!("{n}.jsonl")), format!("{said}\n")).unwrap();
    }
    env.run(&["import", home.to_str().unwrap()]).success();
    let listed = |command: &mut Command| {
        let output = command.output().unwrap();
        assert!(output.status.success());
        let listed = String::from_utf8(output.stdout).unwrap();
        let ids =
            listed.lines().map(|line| super::json(line)["session"].as_str().unwrap().to_owned());
        let mut ids: Vec<String> = ids.collect();
        ids.sort();
        ids.concat()
    };
    for (folder, ids) in [
        ("link", "0134"),
        ("link/.", "0134"),
        ("link/proj", "01"),
        ("link/proj/", "01"),
        ("link/proj/..", "0134"),
        ("real", "14"),
        ("link/lost", "4"),
        ("gone/que-fer", "2"),
        ("gone/que-fer/", "2"),
        ("gone/./que-fer", "2"),
        ("gone/x/../que-fer", "2"),
        ("gone", "2"),
        ("gone/que", ""),
    ] {
        let whole = format!("{}/{folder}", home.display());
        for folder in [format!("../{folder}"), whole] {
            let listed =
                listed(env.command().args(["sessions", "--folder"]).arg(&folder).arg("--json"));
            assert_eq!(listed, ids, "{folder}");
        }
    }
    // What the shell says of where it stands counts as far as it is so.
    for (said, ids) in [(home.join("link/proj"), "01"), (home.join("gone"), "1")] {
        let mut command = env.command();
        command.current_dir(home.join("link/proj")).env("PWD", said);
        assert_eq!(listed(command.args(["sessions", "--here", "--json"])), ids);
    }
}

#[test]
fn of_a_session_whose_records_have_no_time_none_is_told() {
    let env = TestEnv::new();
    let file = env.home().join("timeless.jsonl");
    let said = r#"{"type":"user","uuid":"1","parentUuid":null,"sessionId":"timeless","cwd":"/p","version":"2.1.0","message":{"role":"user","content":"When?"}}"#;
    fs::write(&file, format!("{said}\n")).unwrap();
    env.run(&["import", file.to_str().unwrap()]).success();
    assert_snapshot!(env.run(&["sessions", "-v"]), @"
    ID        AGENT   TITLE  TURNS       FOLDER
    timeless  native  When?      1  <1%  /p
        timeless
        /p
    ");
    assert_snapshot!(env.run(&["sessions", "--json"]), @r#"{"type":"session","agent":"native","session":"timeless","title":"When?","folder":"/p","started":null,"active":null,"turns":1,"hidden":false,"kin":null,"branches":1,"reverted":0,"compactions":0,"tokens":9,"window":32000,"sub_agents":0,"gone":false,"open":false}"#);
    let status = env.run(&["status", "timeless"]).success().stdout;
    assert!(!status.contains("started") && !status.contains("active "), "{status}");
    assert_eq!(env.run(&["sessions", "--since", "1970-01-01"]).success().stdout, "");
    assert!(env.run(&["search", "When"]).success().stdout.contains("When?"));
    env.run(&["verify"]).success();
    // Work on it has a time.
    env.run(&["append", "-s", "timeless", "Now."]).success();
    assert_eq!(env.run(&["sessions", "--since", "1970-01-02"]).success().stdout.lines().count(), 2);
    env.run(&["verify"]).success();
}

#[test]
fn the_rest_of_a_list_is_asked_for_as_the_list_was() {
    let env = TestEnv::new();
    for _ in 0..3 {
        env.run(&["new", "-q"]).success();
    }
    let listed = env.run(&["sessions", "--agent", "native", "-n1", "--hidden"]).success();
    let hint = "undertext sessions --agent native --hidden --number 0\n";
    assert!(listed.stderr.ends_with(hint), "{listed}");
}

#[test]
fn a_session_that_is_hidden_or_shown_already_stays_so_and_nothing_is_to_be_undone() {
    let env = TestEnv::new();
    let session = conversation(&env);
    env.run(&["sessions", "--hide", &session]).success();
    assert_snapshot!(env.run(&["sessions", "--hide", &session]).masked(), @"
    Session entry-id  Why does the build fail?  (native)
    The session is already hidden from lists
    ");
    assert_snapshot!(env.run(&["sessions"]).masked(), @"
    ------- stderr -------
    All sessions in the store are hidden
    hint: list them: undertext sessions --hidden
    ");
    env.run(&["undo", "--op", "6", "-s", &session]).success();
    assert_snapshot!(env.run(&["sessions", "--show", &session]).masked(), @"
    Session entry-id  Why does the build fail?  (native)
    The session is already shown in lists
    ");
    let shown = env.run(&["sessions", "--json"]).success().stdout;
    assert_eq!(shown.lines().count(), 1);
}

/// A list counts the reverted ends that `branch` lists.
#[test]
fn a_list_counts_the_ends_that_branch_lists() {
    let env = TestEnv::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    crate::format::copy(&examples, &env.project());
    env.run(&["import", "-q", "."]).success();
    env.run(&["revert", "2", "-s", "5d9e0c1a"]).success();
    let listed = |args: &[&str]| -> Vec<serde_json::Value> {
        let said = env.run(&[&["sessions", "--json"], args].concat()).success().stdout;
        said.lines().map(crate::cli::json).collect()
    };
    let all = listed(&[]);
    let mut reverted = 0;
    for session in &all {
        let id = session["session"].as_str().unwrap();
        let ends = env.run(&["branch", "--json", "-s", id]).success().stdout;
        let ends = ends.lines().map(crate::cli::json).filter(|end| end["reverted"] == true).count();
        assert_eq!(session["reverted"], ends, "{id}");
        reverted += usize::from(ends > 0);
    }
    assert!(0 < reverted && reverted < all.len(), "{reverted} of {}", all.len());
    assert_eq!(listed(&["--reverted"]).len(), reverted);
    let compacted = all.iter().filter(|session| session["compactions"] != 0).count();
    assert_eq!(listed(&["--compacted"]).len(), compacted);
    assert!(0 < compacted && compacted < all.len());
    assert!(listed(&["--deleted"]).is_empty());
}

#[test]
fn words_and_times_narrow_a_list() {
    let env = TestEnv::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    crate::format::copy(&examples, &env.project());
    env.run(&["import", "-q", "."]).success();
    let listed = |args: &[&str]| -> Vec<String> {
        let said = env.run(&[&["sessions", "--json"], args].concat()).success().stdout;
        let id = |line| crate::cli::json(line)["session"].as_str().unwrap()[..4].to_owned();
        said.lines().map(id).collect()
    };
    assert_eq!(listed(&["BEDS", "watering"]), ["7c2a"]);
    assert_eq!(listed(&["7c2a51"]), ["7c2a"]);
    assert_eq!(listed(&["beds", "boat"]), [""; 0]);
    assert_eq!(listed(&["2026-08-20"]), listed(&["--since", "2026-08-20"]));
    assert_eq!(listed(&["3", "days", "ago"]), listed(&["--since", "3 days ago"]));
    assert_eq!(listed(&["--agent", "Claude Code"]), ["7c2a"]);
}

#[test]
fn status_lists_the_files_that_a_conversation_names() {
    let env = TestEnv::new();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/claude-garden.jsonl");
    fs::copy(example, env.project().join("garden.jsonl")).unwrap();
    assert_snapshot!(env.run(&["status", "--files", "garden.jsonl"]), @"
    EDITS  MENTIONS  LAST  FILE
        1         1    @2  /home/ann/garden/plan.md
                  1    @0  /home/ann/garden/beds.md
    ");
    assert_snapshot!(env.run(&["status", "--files", "garden.jsonl", "--json"]), @r#"
    {"type":"file","path":"/home/ann/garden/plan.md","edits":1,"mentions":1,"turn":2}
    {"type":"file","path":"/home/ann/garden/beds.md","edits":0,"mentions":1,"turn":0}
    "#);
}
