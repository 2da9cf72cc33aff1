//! An agent's file that lacks what a command said, or cannot be written: what is carried out, what is left alone, and how the
//! session goes on.

use std::fs::{self, OpenOptions};

use super::attach::{Kept, kimis_folder};
use super::json;
use crate::env::TestEnv;
use crate::rollout::{Rollout, THREAD};

/// A session of Kimi CLI of three turns.
fn kimi() -> Kept {
    let env = TestEnv::new();
    let file = kimis_folder(&env).join("context.jsonl");
    let turns = kimis_turn(0, "Build a boat.") + &kimis_turn(1, "Of steel.");
    fs::write(&file, SYSTEM.to_owned() + &turns + &kimis_turn(2, "Paint it.")).unwrap();
    Kept { env, file }
}

const SYSTEM: &str = "{\"role\": \"_system_prompt\", \"content\": \"Help.\"}\n";

fn kimis_turn(n: u8, words: &str) -> String {
    format!(
        "{{\"role\": \"_checkpoint\", \"id\": {n}}}\n{{\"role\":\"user\",\"content\":\"{words}\"}}\n\
         {{\"role\":\"assistant\",\"content\":\"Yes {n}.\"}}\n"
    )
}

/// A thread of Codex of three turns.
fn codex() -> Kept {
    let mut thread = Rollout::first(THREAD);
    thread.has_ordinals = false;
    thread.bytes = thread.bytes.replace("paginated", "legacy");
    for words in ["one", "two", "three"] {
        thread.turn(words);
    }
    let file = format!(".codex/sessions/2026/08/01/rollout-2026-08-01T10-00-00-{THREAD}.jsonl");
    Kept::new(&file, &thread.bytes)
}

/// Cuts an agent's file off, as if a command had been killed before it wrote.
fn cut_off(kept: &Kept, length: usize) {
    OpenOptions::new().write(true).open(&kept.file).unwrap().set_len(length as u64).unwrap();
}

/// Returns what each branch of a session says.
fn said_on_branches(kept: &Kept, session: &str) -> Vec<String> {
    let branches = kept.env.run(&["branch", "--json", "-s", session]).success().stdout;
    let name = |line: &str| json(line)["branch"].as_str().unwrap().to_owned();
    branches.lines().map(|line| kept.said(&["--at", &name(line), session])).collect()
}

/// Asserts that a session says what its agent reads in its file.
#[track_caller]
fn assert_followed(kept: &Kept, session: &str, said: &str) {
    assert_eq!(kept.said(&[kept.file.to_str().unwrap()]), said);
    assert_eq!(kept.said(&[session]), said);
    kept.env.run(&["verify"]).success();
}

#[test]
fn what_kimi_cleared_or_went_back_behind_is_not_written_again() {
    let changes: [&[&str]; 3] = [
        &["revert", "2", "-s", "boat"],
        &["append", "-s", "boat", "--role", "user", "Of ice."],
        &["undo", "-s", "boat"],
    ];
    for change in changes {
        for left in [SYSTEM.to_owned(), SYSTEM.to_owned() + &kimis_turn(0, "Build a boat.")] {
            let kept = kimi();
            kept.env.run(&["import"]).success();
            if change[0] == "undo" {
                kept.env.run(&["revert", "1", "-s", "boat"]).success();
            }
            kept.env.run(change).success();
            let before = kept.said(&["boat"]);
            kept.append(&kimis_turn(3, "Sell it."));
            // Kimi sets the file aside under a number of its own, and begins another one.
            fs::rename(&kept.file, kept.file.with_file_name("context_7.jsonl")).unwrap();
            fs::write(&kept.file, &left).unwrap();
            kept.env.run(&["checkpoint", "-s", "boat"]).success();
            assert_eq!(kept.read(), left, "{change:?}");
            let said = kept.said(&[kept.file.to_str().unwrap()]);
            assert_followed(&kept, "boat", &said);
            kept.env.run(&["import"]).success();
            assert_eq!(kept.read(), left, "{change:?}");
            assert_followed(&kept, "boat", &said);
            assert_ne!(before, said);
            assert!(said_on_branches(&kept, "boat").contains(&before), "{change:?}");
        }
    }
}

#[test]
fn a_rollback_that_was_never_written_counts_no_turn_that_came_since() {
    let kept = codex();
    let before = kept.read();
    kept.env.run(&["import"]).success();
    kept.env.run(&["revert", "1", "-m", "Not three.", "-s", "019f"]).success();
    cut_off(&kept, before.len());
    let mut more = Rollout::first(THREAD);
    (more.bytes, more.has_ordinals) = (String::new(), false);
    more.turn("four");
    kept.append(&more.bytes);
    kept.env.run(&["checkpoint", "-s", "019f"]).success();
    assert_eq!(kept.read(), before + &more.bytes);
    let all = "rules | one | to one | two | to two | three | to three | four | to four";
    assert_followed(&kept, "019f", all);
    let reverted = "rules | one | to one | Not three.".to_owned();
    assert!(said_on_branches(&kept, "019f").contains(&reverted));
}
