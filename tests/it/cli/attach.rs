//! An agent's own file: what is attached, what is written into it, and who keeps it from being written.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use md5::{Digest, Md5};
use rusqlite::Connection;
use serde_json::{Value, json as object};

use super::{Stored, json, store};
use crate::env::TestEnv;
use crate::rollout::{Rollout, THREAD};

/// A home in which an agent keeps one session, and the file of that.
pub(super) struct Kept {
    pub(super) env: TestEnv,
    pub(super) file: PathBuf,
}

const BOAT: &str = "6b0a1c52-0d1e-4f6a-9f57-3c1a1b2c3d4e";

pub(super) fn claude_record(n: u8, parent: u8, role: &str, words: &str) -> String {
    let parent = if parent == 0 { "null".to_owned() } else { format!("\"u{parent}\"") };
    format!(
        "{{\"parentUuid\":{parent},\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/work\",\"sessionId\":\
         \"{BOAT}\",\"version\":\"2.1.0\",\"type\":\"{role}\",\"message\":{{\"role\":\"{role}\",\"content\":\"{words}\"}},\
         \"uuid\":\"u{n}\",\"timestamp\":\"2026-01-01T00:00:0{n}.000Z\"}}\n"
    )
}

pub(super) fn pi_entry(id: &str, parent: Option<&str>, role: &str, words: &str) -> String {
    let parent = parent.map_or("null".to_owned(), |parent| format!("\"{parent}\""));
    format!(
        "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"2026-01-01T00:00:01.000Z\",\
         \"message\":{{\"role\":\"{role}\",\"content\":[{{\"type\":\"text\",\"text\":\"{words}\"}}],\"timestamp\":1}}}}\n"
    )
}

impl Kept {
    pub(super) fn new(file: &str, content: &str) -> Self {
        let env = TestEnv::new();
        let file = env.home().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, content).unwrap();
        Self { env, file }
    }

    pub(super) fn claude() -> Self {
        let lines = [
            claude_record(1, 0, "user", "Build a boat."),
            claude_record(2, 1, "assistant", "Of wood?"),
            claude_record(3, 2, "user", "Of steel."),
            claude_record(4, 3, "assistant", "It floats."),
        ];
        Self::new(&format!(".claude/projects/-work/{BOAT}.jsonl"), &lines.concat())
    }

    pub(super) fn pi() -> Self {
        let header = "{\"type\":\"session\",\"version\":3,\"id\":\"boat\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/work\"}\n";
        let lines = [
            header.to_owned(),
            pi_entry("a", None, "user", "Build a boat."),
            pi_entry("b", Some("a"), "assistant", "Of wood?"),
            pi_entry("c", Some("b"), "user", "Of steel."),
            pi_entry("d", Some("c"), "assistant", "It floats."),
        ];
        Self::new(".pi/agent/sessions/--work--/boat.jsonl", &lines.concat())
    }

    pub(super) fn said(&self, arguments: &[&str]) -> String {
        let log = self.env.run(&[&["log", "--json"], arguments].concat()).success().stdout;
        let words = |line: &str| {
            let entry = json(line);
            let text = entry["blocks"][0]["text"].as_str().unwrap_or_default();
            text.lines()
                .find(|line| (1..30).contains(&line.len()) && !line.starts_with('<'))
                .map(str::to_owned)
        };
        log.lines().filter_map(words).collect::<Vec<_>>().join(" | ")
    }

    pub(super) fn append(&self, bytes: &str) {
        let mut file = OpenOptions::new().append(true).open(&self.file).unwrap();
        file.write_all(bytes.as_bytes()).unwrap();
    }

    pub(super) fn read(&self) -> String {
        fs::read_to_string(&self.file).unwrap()
    }
}

#[test]
fn an_import_attaches_what_lies_in_its_place_and_a_revert_is_appended() {
    let kept = Kept::claude();
    let before = kept.read();
    kept.env.run(&["import"]).success();
    assert_snapshot!(kept.env.run(&["revert", "1", "-m", "Steel is sold out.", "-s", "6b0a"]).masked(), @r#"
    entry-id is now just before @1 "Of steel."
    Left the model a note (entry entry-id)
    @1 (1 turn) is kept on branch main.1. Nothing is deleted.
    Context about 34 → 127 tokens (<1%)
    Your prompt @1, to send again or change:
      Of steel.
    Resume  undertext resume entry-id        Undo  undertext undo entry-id
    "#);
    let after = kept.read();
    assert!(after.starts_with(&before));
    assert_eq!(after.lines().count(), before.lines().count() + 2);
    assert_eq!(kept.said(&["6b0a"]), "Build a boat. | Of wood? | Steel is sold out.");
    // A file is shown as it is; what only the store has of it is pointed to.
    let file = kept.file.to_str().unwrap();
    let pointed = |env: &TestEnv, store: &str| {
        let shown = env.run(&["--store", store, "audit", file]).success();
        shown.stderr.contains("was cut: undertext graph -s 6b0a1c52 --store ")
    };
    assert!(pointed(&kept.env, store(&kept.env).to_str().unwrap()));
    assert!(!pointed(&kept.env, "none"));
    // The file alone says the same.
    assert_eq!(kept.said(&[kept.file.to_str().unwrap()]), kept.said(&["6b0a"]));
    assert_snapshot!(kept.env.run(&["undo", "-s", "6b0a"]), @r#"
    6b0a1c52 is now at the end of @1 "Of steel."
    Undid operation 2 (revert)
    Context about 127 → 34 tokens (<1%)
    Resume  undertext resume 6b0a1c52        Redo  undertext redo 6b0a1c52
    "#);
    assert_eq!(
        kept.said(&[kept.file.to_str().unwrap()]),
        "Build a boat. | Of wood? | Of steel. | It floats."
    );
    assert!(kept.read().starts_with(&after));
    kept.env.run(&["clear", "6b0a"]).success();
    assert_eq!(kept.said(&[kept.file.to_str().unwrap()]), "");
    kept.env.run(&["undo", "-s", "6b0a"]).success();
    kept.env.run(&["branch", "wood", "HEAD~1", "-s", "6b0a"]).success();
    kept.env.run(&["switch", "wood", "-s", "6b0a"]).success();
    assert_eq!(kept.said(&[kept.file.to_str().unwrap()]), "Build a boat. | Of wood?");
    kept.env.run(&["append", "--note", "Use oak.", "-s", "6b0a"]).success();
    assert_eq!(kept.said(&[kept.file.to_str().unwrap()]), "Build a boat. | Of wood? | Use oak.");
    kept.env.run(&["verify"]).success();
}

#[test]
fn a_detached_session_leaves_the_file_alone() {
    let kept = Kept::claude();
    let before = kept.read();
    kept.env.run(&["import", "--detached"]).success();
    kept.env.run(&["revert", "1", "-s", "6b0a"]).success();
    assert_eq!(kept.read(), before);
    assert_snapshot!(kept.env.run(&["attach", "6b0a"]), @r"
    Session 6b0a1c52  Build a boat.  (claude)
    It is attached to ~/.claude/projects/-work/6b0a1c52-0d1e-4f6a-9f57-3c1a1b2c3d4e.jsonl
    main follows the file; main's old end is kept as branch main.2
    ");
    assert_snapshot!(kept.env.run(&["attach", "6b0a"]), @r"
    Session 6b0a1c52  Build a boat.  (claude)
    It is attached to ~/.claude/projects/-work/6b0a1c52-0d1e-4f6a-9f57-3c1a1b2c3d4e.jsonl
    ");
    assert_eq!(kept.said(&["6b0a"]), "Build a boat. | Of wood? | Of steel. | It floats.");
    assert_snapshot!(kept.env.run(&["attach", "6b0a", "--off", "--json"]), @r#"{"type":"attach","session":"6b0a1c52-0d1e-4f6a-9f57-3c1a1b2c3d4e","title":"Build a boat.","format":"claude","path":"$HOME/.claude/projects/-work/6b0a1c52-0d1e-4f6a-9f57-3c1a1b2c3d4e.jsonl","attached":false,"left":null,"operation":4,"rotated":null,"written":null}"#);
    assert_snapshot!(kept.env.run(&["attach", "6b0a", "--off"]), @r"
    ------- stderr -------
    error: there is nothing to detach: the session is not attached to an agent's file
    [exit status: 2]
    ");
    // A file that is named is taken in and attached.
    let elsewhere = kept.env.project().join("copy.jsonl");
    fs::copy(&kept.file, &elsewhere).unwrap();
    kept.env.run(&["--store", "other", "revert", "1", "-s", "copy.jsonl"]).success();
    assert_eq!(kept.said(&["copy.jsonl"]), "Build a boat. | Of wood?");
}

/// What an older rollback dropped is not in what is taken elsewhere, and the rollback would drop what is.
#[test]
fn a_thread_without_its_file_goes_back_behind_a_rollback_and_forth() {
    let mut thread = Rollout::first(THREAD);
    thread.has_ordinals = false;
    thread.bytes = thread.bytes.replace("paginated", "legacy");
    thread.turn("one");
    thread.turn("two");
    thread.event(object!({ "type": "thread_rolled_back", "num_turns": 1 }));
    thread.turn("three");
    let file = format!(".codex/sessions/2026/08/01/rollout-2026-08-01T10-00-00-{THREAD}.jsonl");
    for how in ["attached", "let go", "gone"] {
        let kept = Kept::new(&file, &thread.bytes);
        kept.env.run(&["import"]).success();
        match how {
            "let go" => kept.env.run(&["attach", "--off", "-s", "019f"]).success(),
            "gone" => {
                fs::remove_file(&kept.file).unwrap();
                kept.env.run(&["import"]).success()
            }
            _ => kept.env.run(&["status", "-s", "019f"]).success(),
        };
        let one = "rules | one | to one";
        let says = |command: &[&str], words: &str| {
            kept.env.run(&[command, &["-s", "019f"]].concat()).success();
            assert_eq!(kept.said(&["019f"]), words, "{how}: {command:?}");
        };
        says(&["revert", "2"], one);
        says(&["append", "--role", "user", "four"], &format!("{one} | four"));
        for _ in 0..2 {
            says(&["undo"], one);
            says(&["redo"], &format!("{one} | four"));
        }
        says(&["undo"], one);
        says(&["undo"], &format!("{one} | three | to three"));
        // Within a turn that stays.
        let log = kept.env.run(&["log", "--json", "-s", "019f"]).success().stdout;
        let entry = json(log.lines().rev().nth(1).unwrap())["entry"].as_str().unwrap().to_owned();
        says(&["revert", &entry], &format!("{one} | three"));
        says(&["undo"], &format!("{one} | three | to three"));
        says(&["redo"], &format!("{one} | three"));
        if how == "gone" {
            kept.env.run(&["restore", "019f"]).success();
            assert_eq!(kept.said(&[kept.file.to_str().unwrap()]), format!("{one} | three"));
        }
        kept.env.run(&["verify"]).success();
    }
}

/// An import attached it again, and took `main` from where it had been moved since.
#[test]
fn a_file_that_was_let_go_is_left_alone_by_imports_too() {
    for is_moved in [false, true] {
        let kept = Kept::claude();
        kept.env.run(&["import"]).success();
        kept.env.run(&["attach", "--off", "-s", "6b0a"]).success();
        if is_moved {
            kept.env.run(&["append", "-s", "6b0a", "Of paper."]).success();
        }
        for n in [5, 7] {
            kept.append(&claude_record(n, n - 1, "user", &format!("And then {n}?")));
            kept.append(&claude_record(n + 1, n, "assistant", &format!("Then {n}.")));
            let imported = kept.env.run(&["import"]).success();
            assert!(imported.stdout.contains("2 new entries"), "{imported}");
            assert!(!imported.stderr.contains("follows its file"), "{imported}");
        }
        let status = json(&kept.env.run(&["status", "6b0a", "--json"]).success().stdout);
        assert_eq!((&status["live"], &status["gone"]), (&json("null"), &json("null")));
        // Where nobody moved it, the session shows what its agent says.
        let last = if is_moved { "Of paper." } else { "Then 7." };
        assert!(kept.said(&["6b0a"]).ends_with(last), "{}", kept.said(&["6b0a"]));
        let before = kept.read();
        kept.env.run(&["append", "-s", "6b0a", "Not in the file."]).success();
        kept.env.run(&["import"]).success();
        assert_eq!(kept.read(), before);
        let attached = kept.env.run(&["attach", "6b0a"]).success();
        assert!(attached.stdout.contains("is kept as branch main.1"), "{attached}");
        assert!(kept.said(&["6b0a"]).ends_with("Then 7."));
        kept.append(&claude_record(9, 8, "user", "At last."));
        assert!(kept.said(&["6b0a"]).ends_with("At last."));
        kept.env.run(&["verify"]).success();
    }
}

/// The older copy was attached, and an undo of that wrote to it.
#[test]
fn a_copy_is_not_attached_unasked_and_to_undo_an_attaching_writes_no_file() {
    for (kept, id) in [(Kept::claude(), "6b0a"), (Kept::pi(), "boat")] {
        kept.env.run(&["import"]).success();
        let folder = kept.file.parent().unwrap().with_file_name("zoo");
        fs::create_dir(&folder).unwrap();
        let copy = folder.join(kept.file.file_name().unwrap());
        let whole = kept.read();
        let end = whole.trim_end().rfind('\n').unwrap();
        fs::write(&copy, &whole[..=end]).unwrap();
        kept.env.run(&["import"]).success();
        let all = kept.said(&[id]);
        let live =
            || json(&kept.env.run(&["status", id, "--json"]).success().stdout)["live"].clone();
        let unchanged = |context: &str| {
            assert_eq!(kept.read(), whole, "{context}");
            assert_eq!(fs::read_to_string(&copy).unwrap(), &whole[..=end], "{context}");
        };
        let mut told = Vec::new();
        // Without its number, `undo` takes back none of these.
        for step in [
            &["attach", "--off", id][..],
            &["attach", id],
            &["undo", "--op", "4", "-s", id],
            &["undo", "--op", "3", "-s", id],
            &["attach", copy.to_str().unwrap()],
            &["undo", "--op", "7", "-s", id],
            &["redo", "-s", id],
            &["undo", "--op", "7", "-s", id],
        ] {
            kept.env.run(step).success();
            unchanged(&step.join(" "));
            told.push(live());
        }
        let of = |path: &Path| {
            let below = path.strip_prefix(kept.env.home()).unwrap();
            serde_json::Value::from(format!("$HOME/{}", below.display()))
        };
        let (ours, theirs, none) = (of(&kept.file), of(&copy), json("null"));
        let expected =
            [&none, &ours, &none, &ours, &theirs, &ours, &theirs, &ours].map(Clone::clone);
        assert_eq!(told, expected);
        assert_eq!(kept.said(&[id]), all);
        kept.env.run(&["append", "It sinks.", "-s", id]).success();
        assert!(kept.read().starts_with(&whole) && kept.read().contains("It sinks."));
        kept.env.run(&["verify"]).success();
    }
}

/// What the agent went on with in a file while that was let go is there when the letting go is undone.
#[test]
fn an_undone_letting_go_follows_what_the_file_has_by_now() {
    let kept = Kept::claude();
    kept.env.run(&["import"]).success();
    kept.env.run(&["attach", "--off", "-s", "6b0a"]).success();
    let listed = kept.env.run(&["operations", "6b0a", "-n", "1", "--json"]).success();
    let letting_go = json(&listed.stdout)["operation"].clone();
    kept.env.run(&["append", "-s", "6b0a", "Of paper."]).success();
    kept.append(&claude_record(5, 4, "user", "And then?"));
    kept.env.run(&["import"]).success();
    let before = kept.read();
    kept.env.run(&["undo", "--op", &letting_go.to_string(), "-s", "6b0a"]).success();
    assert_eq!(kept.read(), before);
    assert!(kept.said(&["6b0a"]).ends_with("And then?"));
    assert!(kept.said(&["6b0a", "--at", "main.1"]).ends_with("Of paper."));
    kept.env.run(&["append", "-s", "6b0a", "It sails."]).success();
    assert!(kept.said(&[kept.file.to_str().unwrap()]).ends_with("And then? | It sails."));
    kept.env.run(&["verify"]).success();
}

#[test]
fn a_session_that_a_process_has_loaded_is_not_written() {
    let kept = Kept::claude();
    kept.env.run(&["import"]).success();
    let before = kept.read();
    let held = File::open(&kept.file).unwrap();
    let refused = kept.env.run(&["revert", "1", "-s", "6b0a"]);
    let holder = format!(" has 6b0a1c52 \"Build a boat.\" open (pid {}, ", std::process::id());
    assert!(refused.code() == Some(3) && refused.stderr.contains(&holder), "{refused}");
    assert!(!refused.stderr.contains("--force"), "{refused}");
    assert_eq!(kept.read(), before);
    // Nothing was committed either, and what writes no file is allowed.
    assert!(!kept.env.run(&["operations", "6b0a"]).success().stdout.contains("revert"));
    kept.env.run(&["checkpoint", "-s", "6b0a"]).success();
    let insisted = kept.env.run(&["revert", "1", "--force", "-s", "6b0a"]);
    assert!(insisted.code() == Some(3) && insisted.stderr.contains(&holder), "{insisted}");
    kept.env.run(&["revert", "1", "--dry-run", "-s", "6b0a"]).success();
    assert_eq!(kept.read(), before);
    drop(held);
    kept.env.run(&["revert", "1", "-s", "6b0a"]).success();
    assert!(kept.read().len() > before.len());
}

#[test]
fn what_a_kill_cut_short_is_appended_by_the_next_change() {
    for (left, came) in [(0, ""), (40, ""), (0, "came"), (usize::MAX, "came")] {
        let kept = Kept::claude();
        let before = kept.read();
        kept.env.run(&["import"]).success();
        kept.env.run(&["revert", "1", "-m", "Steel is sold out.", "-s", "6b0a"]).success();
        let whole = kept.read();
        let written = whole.len() - before.len();
        // As if the process had died before, or while, it wrote; and another one wrote meanwhile.
        let file = OpenOptions::new().write(true).open(&kept.file).unwrap();
        file.set_len((before.len() + left.min(written)) as u64).unwrap();
        drop(file);
        if came == "came" {
            kept.append(&claude_record(7, 4, "user", "Paint it."));
        }
        kept.env.run(&["checkpoint", "-s", "6b0a"]).success();
        if came.is_empty() {
            assert_eq!(kept.read(), whole, "{left}");
        } else {
            assert!(kept.read().contains("Paint it."));
        }
        let file = kept.file.to_str().unwrap();
        let is_said = kept.read().contains("Steel is sold out.");
        let said = if is_said {
            "Build a boat. | Of wood? | Steel is sold out."
        } else {
            // The agent never read what the command said, and has gone on.
            "Build a boat. | Of wood? | Of steel. | It floats. | Paint it."
        };
        assert_eq!(is_said, (left, came) != (0, "came"));
        assert_eq!(kept.said(&[file]), said, "{left} {came}");
        assert_eq!(kept.said(&["6b0a"]), kept.said(&[file]));
        kept.env.run(&["verify"]).success();
    }
}

#[test]
fn an_agent_that_goes_on_is_followed_and_one_that_went_on_from_the_old_state_joins_it() {
    let kept = Kept::pi();
    kept.env.run(&["import"]).success();
    kept.append(&pi_entry("e", Some("d"), "user", "Paint it."));
    assert_snapshot!(kept.env.run(&["checkpoint", "-s", "boat"]), @r"
    Session boat  Build a boat.  (pi)
    Checkpoint 3
    ------- stderr -------
    warning: imported 1 entry that another program appended to the session's file
    hint: to come back to this checkpoint: undertext revert 3 -s boat
    ");
    kept.env.run(&["revert", "1", "--rotate", "-s", "boat"]).success();
    assert_eq!(kept.said(&["boat"]), "Build a boat. | Of wood?");
    let rotated = kept.file.with_file_name("boat.jsonl.undertext-1");
    assert!(fs::read_to_string(&rotated).unwrap().contains("Paint it."));
    // The agent has the old conversation in memory, and its file is a new one.
    kept.append(&pi_entry("f", Some("e"), "assistant", "It is red."));
    assert_snapshot!(kept.env.run(&["checkpoint", "-s", "boat"]), @r"
    Session boat  Build a boat.  (pi)
    Checkpoint 4
    ------- stderr -------
    warning: an agent that knew only the old state added 1 entry to branch main.1
    hint: to come back to this checkpoint: undertext revert 4 -s boat
    ");
    assert_eq!(kept.said(&["boat"]), "Build a boat. | Of wood?");
    assert_eq!(kept.said(&[kept.file.to_str().unwrap()]), "Build a boat. | Of wood?");
    kept.env.run(&["switch", "main.1", "-s", "boat"]).success();
    let whole = "Build a boat. | Of wood? | Of steel. | It floats. | Paint it. | It is red.";
    assert_eq!(kept.said(&[kept.file.to_str().unwrap()]), whole);
    assert_eq!(kept.said(&["boat"]), whole);
    kept.env.run(&["verify"]).success();
}

/// It was said in no word, though nothing else has what the session was before.
#[test]
fn a_file_that_another_store_set_aside_is_named_and_is_never_the_one_that_the_agent_reads() {
    let whole = "Build a boat. | Of wood? | Of steel. | It floats.";
    for kept in [Kept::pi(), Kept::claude()] {
        let env = &kept.env;
        let settings = env.home().join(".config/undertext");
        fs::create_dir_all(&settings).unwrap();
        fs::write(settings.join("config.toml"), "[import]\nauto = false\n").unwrap();
        env.run(&["import"]).success();
        let import = |wanted: &[&str]| env.run(&[&["import"], wanted].concat()).success();
        let id = json(&env.run(&["sessions", "--json"]).success().stdout)["session"].clone();
        let id = id.as_str().unwrap();
        env.run(&["revert", "1", "--rotate", "-s", id]).success();
        let name = kept.file.file_name().unwrap().to_str().unwrap();
        let aside = kept.file.with_file_name(format!("{name}.undertext-1"));
        assert!(!import(&[]).stderr.contains("undertext-1"));

        for is_named_first in [false, true] {
            fs::remove_dir_all(store(env)).unwrap();
            if is_named_first {
                import(&[aside.to_str().unwrap()]);
                let status = json(&env.run(&["status", id, "--json"]).success().stdout);
                assert_eq!(status["live"], Value::Null, "{status}");
                assert_eq!(kept.said(&[id]), whole);
                assert!(env.run(&["attach", "-s", id]).stderr.contains("nothing to attach"));
            } else {
                for wanted in [&[][..], &["--dry-run"], &["-v"]] {
                    let told = import(wanted);
                    let why = "an earlier change renamed and replaced this file, and this store lacks its content; name the file to import it";
                    assert!(told.stderr.contains(&format!("{name}.undertext-1: {why}")), "{told}");
                }
                import(&[aside.to_str().unwrap()]);
            }
            assert!(!import(&[]).stderr.contains("undertext-1"));
            let status = json(&env.run(&["status", id, "--json"]).success().stdout);
            assert!(status["live"].as_str().unwrap().ends_with(name), "{status}");
            assert_eq!(kept.said(&[id]), "Build a boat. | Of wood?");
            let found = env.run(&["search", "floats", "--json"]).success();
            assert!(found.stdout.contains("It floats"), "{found}");
            env.run(&["verify"]).success();
        }
        fs::remove_dir_all(store(env)).unwrap();
        let config = format!("[exclude]\nsessions = [\"{id}\"]\n");
        fs::write(settings.join("config.toml"), config).unwrap();
        assert!(!import(&[]).stderr.contains("undertext-1"));
    }
}

#[test]
fn a_file_that_was_rewritten_or_is_gone_is_told() {
    let kept = Kept::claude();
    kept.env.run(&["import"]).success();
    kept.env.run(&["revert", "1", "-s", "6b0a"]).success();
    let other = [
        claude_record(1, 0, "user", "Build a boat."),
        claude_record(8, 1, "assistant", "Or a raft?"),
    ];
    fs::write(&kept.file, other.concat()).unwrap();
    assert_snapshot!(kept.env.run(&["checkpoint", "-s", "6b0a"]), @"
    Session 6b0a1c52  Build a boat.  (claude)
    Checkpoint 2
    ------- stderr -------
    warning: $HOME/.claude/projects/-work/6b0a1c52-0d1e-4f6a-9f57-3c1a1b2c3d4e.jsonl was rewritten; the session continues in that file, which has 1 new entry; the old end is kept as branch main.2
    hint: to come back to this checkpoint: undertext revert 2 -s 6b0a1c52
    ");
    assert_eq!(kept.said(&["6b0a"]), "Build a boat. | Or a raft?");
    fs::remove_file(&kept.file).unwrap();
    assert_snapshot!(kept.env.run(&["revert", "0", "-s", "6b0a"]), @r#"
    6b0a1c52 is now just before @0 "Build a boat."
    @0 (1 turn) is kept on branch main.3. Nothing is deleted.
    Context about 19 → 0 tokens (0%)
    Your prompt @0, to send again or change:
      Build a boat.
    Undo  undertext undo 6b0a1c52
    ------- stderr -------
    warning: $HOME/.claude/projects/-work/6b0a1c52-0d1e-4f6a-9f57-3c1a1b2c3d4e.jsonl was deleted; the session continues without the file
    The agent's own file is not changed
    hint: to write this state to a file: undertext export 6b0a1c52 -o 6b0a1c52.jsonl
    "#);
    assert!(!kept.file.exists());
    kept.env.run(&["verify"]).success();
    // Back in its place it is attached again.
    fs::write(&kept.file, other.concat()).unwrap();
    kept.env.run(&["attach", "6b0a"]).success();
    assert_eq!(kept.said(&["6b0a"]), "Build a boat. | Or a raft?");
}

/// What the agent wrote was not shown, and a change was not written to its file, until somebody attached or imported it.
#[test]
fn a_file_that_was_deleted_is_followed_again_once_it_is_back() {
    let kept = Kept::claude();
    let away = kept.env.home().join("away.jsonl");
    let go = || {
        fs::rename(&kept.file, &away).unwrap();
        kept.env.run(&["import"]).success();
        assert!(kept.env.run(&["status", "6b0a"]).success().stdout.contains("was deleted"));
        fs::rename(&away, &kept.file).unwrap();
    };
    let newest = || kept.env.run(&["operations", "-n", "1", "6b0a"]).success().stdout;
    kept.env.run(&["import"]).success();
    go();
    assert!(kept.env.run(&["status", "6b0a"]).success().stdout.contains("agrees with the store"));
    assert!(newest().contains("was deleted"), "whoever reads changes nothing");
    kept.env.run(&["append", "--note", "Of oak.", "-s", "6b0a"]).success();
    assert!(kept.read().contains("Of oak."));
    go();
    kept.append(&claude_record(9, 0, "user", "Or a raft?"));
    assert!(kept.said(&["6b0a"]).contains("Or a raft?"));
    kept.env.run(&["checkpoint", "-s", "6b0a"]).success();
    assert!(kept.said(&["6b0a"]).contains("Or a raft?"));
    // One that a person let go is left alone.
    kept.env.run(&["attach", "6b0a", "--off"]).success();
    go();
    kept.append(&claude_record(8, 0, "user", "Or a kite?"));
    assert!(!kept.said(&["6b0a"]).contains("Or a kite?"));
    kept.env.run(&["verify"]).success();
}

#[test]
fn derived_rows_of_older_rules_are_made_anew() {
    let kept = Kept::claude();
    kept.env.run(&["import"]).success();
    let db = Connection::open(store(&kept.env).join("store.db")).unwrap();
    db.execute_batch("UPDATE rules SET version = 1; UPDATE record SET hint = x'ff'").unwrap();
    drop(db);
    let stale = kept.env.run(&["status", "6b0a"]);
    assert!(stale.success().stderr.is_empty());
    assert_snapshot!(kept.env.run(&["log", "-q", "6b0a"]).success().stderr, @"warning: the store's indexes are from an older version of undertext; the next change rebuilds them");
    kept.env.run(&["checkpoint", "-s", "6b0a"]).success();
    assert_eq!(kept.env.run(&["log", "6b0a"]).success().stderr, "");
    kept.env.run(&["verify"]).success();
}

/// Returns the folder of a session of Kimi CLI that works in the project.
pub(super) fn kimis_folder(env: &TestEnv) -> PathBuf {
    let project = env.project().canonicalize().unwrap();
    let hash = Md5::digest(project.to_str().unwrap().as_bytes());
    let hash: Vec<String> = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let session = env.home().join(".kimi/sessions").join(hash.concat()).join("boat");
    fs::create_dir_all(&session).unwrap();
    session
}

#[test]
fn a_session_of_kimi_works_in_the_folder_that_kimis_list_names() {
    let env = TestEnv::new();
    let project = env.project().canonicalize().unwrap();
    let file = kimis_folder(&env).join("context.jsonl");
    fs::write(&file, "{\"role\":\"user\",\"content\":\"Build a boat.\"}\n").unwrap();
    let here = |env: &TestEnv| env.run(&["sessions", "--here", "--json"]).success().stdout;
    env.run(&["import"]).success();
    assert_eq!(here(&env), "");
    // What is taken in once the list names the folder, has it.
    let list = serde_json::json!({ "work_dirs": [{ "path": "/other" }, { "path": project }] });
    fs::write(env.home().join(".kimi/kimi.json"), list.to_string()).unwrap();
    let more = "{\"role\":\"assistant\",\"content\":\"Of wood?\"}\n";
    fs::write(&file, fs::read_to_string(&file).unwrap() + more).unwrap();
    env.run(&["import"]).success();
    assert_eq!(json(&here(&env))["folder"], "$HOME/project");
    assert!(env.run(&["search", "boat", "--here"]).success().stdout.contains("Build a boat."));
    // It stays when the list is gone, and when the rows are made again.
    fs::remove_file(env.home().join(".kimi/kimi.json")).unwrap();
    env.run(&["store", "rebuild"]).success();
    assert_eq!(json(&here(&env))["session"], "boat");
}

#[test]
fn kimis_list_of_folders_has_the_one_of_a_session_that_is_written() {
    let env = TestEnv::new();
    let project = env.project().canonicalize().unwrap();
    let (root, session) = (env.home().join(".kimi"), kimis_folder(&env));
    let lines = [
        "{\"role\": \"_system_prompt\", \"content\": \"Help.\"}",
        "{\"role\": \"_checkpoint\", \"id\": 0}",
        "{\"role\":\"user\",\"content\":\"Build a boat.\"}",
        "{\"role\":\"assistant\",\"content\":\"Of wood?\"}",
        "{\"role\": \"_checkpoint\", \"id\": 1}",
        "{\"role\":\"user\",\"content\":\"Of steel.\"}",
        "",
    ];
    fs::write(session.join("context.jsonl"), lines.join("\n")).unwrap();
    let index = root.join("kimi.json");
    let old = "{\"work_dirs\":[{\"path\":\"/other\",\"kaos\":\"local\"}],\"more\":1}";
    fs::write(&index, old).unwrap();
    env.run(&["import"]).success();
    let elsewhere =
        env.command().current_dir(env.home()).args(["revert", "1", "-s", "boat"]).output();
    let said = String::from_utf8(elsewhere.unwrap().stderr).unwrap();
    assert!(said.contains("so Kimi CLI would empty the session"), "{said}");
    // What was made ready for the change is gone with it.
    let names = fs::read_dir(&session).unwrap().map(|found| found.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["context.jsonl"]);
    assert_eq!(fs::read_to_string(&index).unwrap(), old);
    env.run(&["revert", "1", "-s", "boat"]).success();
    assert_eq!(fs::read_to_string(root.join("kimi.json.undertext-1")).unwrap(), old);
    assert!(session.join("context_1.jsonl").exists());
    let listed = json(&fs::read_to_string(&index).unwrap());
    assert_eq!(listed["work_dirs"][1]["path"], project.to_str().unwrap());
    assert_eq!(
        (listed["work_dirs"][0]["path"].as_str(), &listed["more"]),
        (Some("/other"), &1.into())
    );
    // Once it is there it stays as it is.
    env.run(&["undo", "-s", "boat"]).success();
    assert_eq!(json(&fs::read_to_string(&index).unwrap()), listed);
    // A message that is appended lists it too.
    fs::write(&index, old).unwrap();
    env.run(&["append", "-s", "boat", "--role", "user", "Of ice."]).success();
    assert_eq!(json(&fs::read_to_string(&index).unwrap()), listed);
}

#[test]
fn a_turn_is_called_by_what_the_person_said_behind_what_the_agent_put_before_it() {
    let said = "<ide_opened_file>The user opened a.rs</ide_opened_file>\\nOf steel.";
    let lines = [
        claude_record(1, 0, "user", "<system-reminder>x</system-reminder>Build a boat."),
        claude_record(2, 1, "assistant", "Of wood?"),
        claude_record(3, 2, "user", said),
    ];
    let kept = Kept::new(&format!(".claude/projects/-work/{BOAT}.jsonl"), &lines.concat());
    kept.env.run(&["import"]).success();
    for command in [&["graph"][..], &["checkpoints"], &["branch"], &["revert", "99"]] {
        let told = kept.env.run(&[command, &["-s", "6b0a"]].concat()).to_string();
        assert!(told.contains("Of steel."), "{told}");
        assert!(!told.contains("ide_opened_file") && !told.contains("system-reminder"), "{told}");
    }
}

/// A line that is no record stays behind with the old state, and the entry after it keeps the link to it for ever.
#[test]
fn a_file_set_aside_without_a_broken_line_is_whole() {
    let env = TestEnv::new();
    let (project, folder) = (env.project().canonicalize().unwrap(), kimis_folder(&env));
    let list = serde_json::json!({ "work_dirs": [{ "path": project }] });
    fs::write(env.home().join(".kimi/kimi.json"), list.to_string()).unwrap();
    let mut lines =
        vec![r#"{"role": "_system_prompt", "content": "You keep a lighthouse."}"#.into()];
    for n in 0..3 {
        let words = if n == 1 { "{broken\n" } else { "" };
        lines.push(format!(
            "{{\"role\": \"_checkpoint\", \"id\": {n}}}\n{words}{{\"role\":\"user\",\"content\":\"ask {n}\"}}\n\
             {{\"role\":\"assistant\",\"content\":\"answer {n}\"}}"
        ));
    }
    fs::write(folder.join("context.jsonl"), lines.join("\n") + "\n").unwrap();
    env.run(&["import"]).success();
    for times in 1..=2 {
        env.run(&["revert", "-s", "boat", "HEAD~1"]).success();
        env.run(&["verify"]).success();
        let rotations = env.run(&["rotations", "boat", "--json"]).success().stdout;
        let states: Vec<_> = rotations.lines().map(|line| json(line)["state"].clone()).collect();
        assert_eq!(states, vec!["whole"; times]);
    }
    // Whoever changes it then is found out.
    let aside = folder.join("context_2.jsonl");
    let said = fs::read_to_string(&aside).unwrap();
    fs::write(&aside, said.replace("answer 0", "answer 9")).unwrap();
    let verified = env.run(&["verify"]);
    assert_eq!(verified.code(), Some(1), "{verified}");
    assert!(verified.stdout.contains("was set aside and has been changed since"), "{verified}");
}

/// What cannot be looked at may be whole: it is no damage, and no plain yes either.
#[test]
fn a_file_that_cannot_be_read_keeps_no_other_from_being_verified() {
    type Put = fn(&Path);
    let kept = Kept::claude();
    let other = kept.file.with_file_name("ship.jsonl");
    fs::write(&other, claude_record(1, 0, "user", "Build a ship.").replace(BOAT, "ship")).unwrap();
    kept.env.run(&["import"]).success();
    kept.env.run(&["verify"]).success();
    fs::remove_file(&kept.file).unwrap();
    let others: [(Put, &str); 3] = [
        (|at| symlink(at.file_name().unwrap(), at).unwrap(), "too many levels of symbolic links"),
        (|at| symlink("nowhere", at).unwrap(), "it is a link, not a file"),
        (|at| fs::create_dir(at).unwrap(), "it is a folder, not a file"),
    ];
    for (put, why) in others {
        put(&kept.file);
        let said = kept.env.run(&["verify"]);
        assert_eq!(said.code(), Some(1), "{said}");
        let told = format!("it cannot be read, and was not compared: {why}");
        assert!(said.stdout.starts_with("note: ") && said.stdout.contains(&told), "{said}");
        let sum = "Verified 2 sessions, 2 operations, 5 entries: no damage found; 1 file could not be read";
        assert!(said.stdout.contains(sum), "{said}");
        let sum = json(kept.env.run(&["verify", "--json"]).stdout.lines().last().unwrap());
        assert_eq!(sum["ok"], false, "{sum}");
        assert_eq!((&sum["damaged"], &sum["unread"]), (&0.into(), &1.into()), "{sum}");
        // A change of the other session is found all the same.
        kept.env.run(&["verify", "ship"]).success();
        let _ = fs::remove_file(&kept.file);
    }
}

/// The number of a file that was deleted may be given to another one.
#[test]
fn only_what_the_newest_change_sets_aside_may_still_wait_for_that() {
    let stored = Stored::reverted();
    stored.run(&["append", "More."]).success();
    let aside = PathBuf::from(format!("{}.undertext-1", stored.live.display()));
    fs::write(&aside, fs::read(&stored.live).unwrap()).unwrap();
    fs::rename(&aside, &stored.live).unwrap();
    let listed =
        json(stored.run(&["rotations", "--json"]).success().stdout.lines().next().unwrap());
    assert_eq!(listed["state"], "deleted");
    let verified = stored.run(&["verify"]);
    assert!(!verified.stdout.contains("yet to be set aside"), "{verified}");
}

#[test]
fn a_file_set_aside_that_cannot_be_read_keeps_no_other_from_being_told() {
    let stored = Stored::reverted();
    let aside = PathBuf::from(format!("{}.undertext-1", stored.live.display()));
    fs::remove_file(&aside).unwrap();
    symlink(aside.file_name().unwrap(), &aside).unwrap();
    let said = stored.run(&["rotations", "--json"]).success();
    let first = json(said.stdout.lines().next().unwrap());
    assert_eq!(
        (&first["state"], &first["why"]),
        (&"unread".into(), &"too many levels of symbolic links".into())
    );
    let said = stored.run(&["rotations"]).success();
    assert!(said.stderr.contains("cannot be read: too many levels"), "{said}");
    let said = stored.run(&["verify"]);
    assert_eq!(said.code(), Some(1), "{said}");
    assert!(said.stdout.contains("no damage found; 1 file could not be read"), "{said}");
}

/// Whatever began a new state of a live file, or changed its end, is told by the import that took it in.
#[test]
fn an_import_tells_of_a_live_file_that_was_rewritten_or_ends_within_a_record() {
    let kept = Kept::claude();
    kept.env.run(&["import", "-q"]).success();
    let whole = fs::read_to_string(&kept.file).unwrap();
    let told = |content: &str| {
        fs::write(&kept.file, content).unwrap();
        let said = kept.env.run(&["import", "--json"]).success();
        let sum = json(said.stdout.lines().last().unwrap());
        assert_eq!((&sum["unchanged"], &sum["sessions"]), (&0.into(), &1.into()), "{said}");
        assert!(said.stdout.contains("\"type\":\"imported\""), "{said}");
        // What the store took in once, it has.
        let again = kept.env.run(&["import", "--json"]).success();
        let again = json(again.stdout.lines().last().unwrap());
        assert_eq!((&again["unchanged"], &again["oddities"]), (&1.into(), &serde_json::json!({})));
        sum["oddities"].to_string()
    };
    assert_eq!(told(&whole.replace('\n', "\r\n")), "{\"rewritten\":1}");
    let first = whole.split_inclusive('\n').next().unwrap();
    assert_eq!(told(first), "{\"rewritten\":1}");
    // The whole file goes on from the older copy, and nothing in it is new.
    assert_eq!(told(&whole), "{}");
    assert_eq!(told(&(whole.clone() + "{\"torn\":")), "{\"torn\":1}");
    assert_eq!(told(&(whole.clone() + "{\"torn\":\0\0")), "{\"torn\":1}");
    fs::write(&kept.file, whole.replace('\n', "\n\n") + "\n{\"torn\":").unwrap();
    let file = "$HOME/.claude/projects/-work/6b0a1c52-0d1e-4f6a-9f57-3c1a1b2c3d4e.jsonl";
    let said = kept.env.run(&["import", "-v"]).success();
    assert!(
        said.stdout.contains(&format!("{file}: the file was rewritten: it does not continue")),
        "{said}"
    );
    assert!(
        said.stdout.contains(&format!("{file}:10: the file ends in the middle of a record")),
        "{said}"
    );
    assert!(said.stdout.contains("Imported 1 session (0 new): 0 new entries"), "{said}");
    assert!(
        said.stdout.contains(
            "Noted: 1 file that ends in the middle of a record, 1 file that was rewritten"
        ),
        "{said}"
    );
}
