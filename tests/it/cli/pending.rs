//! An agent's file that lacks what a command said, or cannot be written: what is carried out, what is left alone, and how the
//! session goes on.

use std::fs::{self, File, OpenOptions};

use super::attach::{Kept, claude_record, kimis_folder, pi_entry};
use super::{Stored, json};
use crate::env::TestEnv;
use crate::needs;
use crate::rollout::{self, Rollout, THREAD};

/// A session of Kimi CLI of three turns.
pub(super) fn kimi() -> Kept {
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
pub(super) fn codex() -> Kept {
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

/// Makes sessions in which a command was cut short before it wrote; returns each with its name, and its file as it is and as the
/// command was to leave it.
fn cut_short() -> [(Kept, &'static str, String, String); 2] {
    let claude = Kept::claude();
    let before = claude.read();
    claude.env.run(&["import"]).success();
    claude.env.run(&["revert", "1", "-m", "Steel is sold out.", "-s", "6b0a"]).success();
    let whole = claude.read();
    cut_off(&claude, before.len());
    let kimi = kimi();
    let old = kimi.read();
    kimi.env.run(&["import"]).success();
    kimi.env.run(&["revert", "2", "-s", "boat"]).success();
    let rotated = kimi.read();
    fs::rename(kimi.file.with_file_name("context_1.jsonl"), &kimi.file).unwrap();
    [(claude, "6b0a", before, whole), (kimi, "boat", old, rotated)]
}

/// Returns what each branch of a session says.
fn said_on_branches(kept: &Kept, session: &str) -> Vec<String> {
    let branches = kept.env.run(&["branch", "--json", "-s", session]).success().stdout;
    let name = |line: &str| json(line)["branch"].as_str().map(str::to_owned);
    let names = branches.lines().filter_map(name);
    names.map(|name| kept.said(&["--at", &name, session])).collect()
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

/// What Kimi went on to write is its newest work, though a command was to set its file aside.
#[test]
fn a_file_that_was_to_be_set_aside_is_followed_where_its_agent_went_on_in_it() {
    for note in [&["-m", "Sell it."][..], &[]] {
        let kept = kimi();
        kept.env.run(&["import"]).success();
        kept.env.run(&[&["revert", "1", "-s", "boat"], note].concat()).success();
        let reverted = kept.said(&["boat"]);
        fs::rename(kept.file.with_file_name("context_1.jsonl"), &kept.file).unwrap();
        kept.append(&kimis_turn(3, "Sail it."));
        let whole = kept.read();
        let said = kept.said(&[kept.file.to_str().unwrap()]);
        assert!(said.ends_with("Sail it. | Yes 3."), "{said}");
        // What is read before it is taken in is what is taken in.
        assert_eq!(kept.said(&["boat"]), said);
        kept.env.run(&["import"]).success();
        assert_eq!(kept.read(), whole);
        assert_followed(&kept, "boat", &said);
        let branches = said_on_branches(&kept, "boat");
        assert!(said.starts_with(&reverted) || branches.contains(&reverted), "{branches:?}");
        let names: Vec<_> = fs::read_dir(kept.file.parent().unwrap()).unwrap().collect();
        assert_eq!(names.len(), 1, "{names:?}");
        kept.env.run(&["append", "-s", "boat", "--role", "user", "Blue."]).success();
        assert_followed(&kept, "boat", &format!("{said} | Blue."));
    }
}

#[test]
fn a_resume_first_brings_the_agent_what_a_command_was_still_to_write() {
    for (kept, session, before, whole) in cut_short() {
        let printed = kept.env.run(&["resume", "--print", session]).success();
        assert!(printed.stderr.contains("does not have the store's newest change"), "{printed}");
        assert_eq!(kept.read(), before);
        let held = File::open(&kept.file).unwrap();
        let refused = kept.env.run(&["resume", session]).to_string();
        assert!(refused.contains(" open (pid "), "{refused}");
        assert_eq!(kept.read(), before);
        drop(held);
        // No agent is installed here.
        let told = kept.env.run(&["resume", session]).to_string();
        assert!(told.contains("an interrupted change to"), "{told}");
        assert_eq!(kept.read(), whole);
        let again = kept.env.run(&["resume", session]).to_string();
        assert!(!again.contains("an interrupted change to"), "{again}");
        kept.env.run(&["verify"]).success();
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

#[test]
fn what_was_cut_short_waits_while_an_agent_has_the_session_loaded() {
    for (kept, session, before, whole) in cut_short() {
        let held = File::open(&kept.file).unwrap();
        for command in [
            &["append", "-s", session, "--role", "user", "More."][..],
            &["checkpoint", "-s", session],
        ] {
            let refused = kept.env.run(command).to_string();
            assert!(refused.contains(" open (pid "), "{refused}");
            assert!(refused.contains("hint: end the agent; the next command"), "{refused}");
            assert_eq!(kept.read(), before);
        }
        // Other sessions are taken in all the same.
        let other = kept.env.home().join(".pi/agent/sessions/--work--/other.jsonl");
        let header = "{\"type\":\"session\",\"version\":3,\"id\":\"other\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/work\"}\n";
        rollout::write(
            &other,
            (header.to_owned() + &pi_entry("a", None, "user", "Hm.")).as_bytes(),
        );
        // Something is new in the file, so that an import looks at it.
        File::options()
            .append(true)
            .open(&kept.file)
            .unwrap()
            .set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(9))
            .unwrap();
        kept.env.run(&["import"]).success();
        assert_eq!(kept.said(&["other"]), "Hm.");
        assert_eq!(kept.read(), before);
        drop(held);
        kept.env.run(&["checkpoint", "-s", session]).success();
        assert_eq!(kept.read(), whole);
        kept.env.run(&["verify"]).success();
    }
}

#[test]
fn what_an_agent_went_on_to_write_is_taken_in_though_the_session_is_loaded() {
    let kept = Kept::claude();
    let before = kept.read();
    kept.env.run(&["import"]).success();
    kept.env.run(&["revert", "1", "-m", "Steel is sold out.", "-s", "6b0a"]).success();
    cut_off(&kept, before.len());
    let more = claude_record(5, 4, "user", "Paint it.");
    kept.append(&more);
    let held = File::open(&kept.file).unwrap();
    let shown = kept.said(&["6b0a"]);
    kept.env.run(&["import"]).success();
    drop(held);
    assert_eq!(kept.read(), before + &more);
    assert_eq!(kept.said(&["6b0a"]), shown);
    assert_followed(&kept, "6b0a", "Build a boat. | Of wood? | Of steel. | It floats. | Paint it.");
    let reverted = "Build a boat. | Of wood? | Steel is sold out.".to_owned();
    assert!(said_on_branches(&kept, "6b0a").contains(&reverted));
}

#[test]
fn what_an_agent_of_the_old_state_wrote_is_taken_in_where_no_way_back_can_be_written() {
    for kept in [Kept::claude(), Kept::pi()] {
        let is_pi = kept.read().contains("\"session\"");
        let (session, late) = if is_pi {
            ("boat", pi_entry("e", Some("d"), "user", "Paint it."))
        } else {
            ("6b0a", claude_record(5, 4, "user", "Paint it."))
        };
        kept.env.run(&["import"]).success();
        kept.env.run(&["revert", "1", "--rotate", "-s", session]).success();
        kept.append(&late);
        let before = kept.read();
        let held = File::open(&kept.file).unwrap();
        let told = kept.env.run(&["import"]).success().to_string();
        assert!(told.contains("1 new entr"), "{told}");
        assert_eq!(kept.read(), before);
        drop(held);
        let said = kept.said(&[kept.file.to_str().unwrap()]);
        assert!(said.ends_with("Paint it."), "{said}");
        assert_followed(&kept, session, &said);
        let branches = said_on_branches(&kept, session);
        for state in [
            "Build a boat. | Of wood?",
            "Build a boat. | Of wood? | Of steel. | It floats. | Paint it.",
        ] {
            assert!(branches.iter().any(|said| said.starts_with(state)), "{branches:?}");
        }
        kept.env.run(&["append", "-s", session, "--role", "user", "Blue."]).success();
        assert_followed(&kept, session, &format!("{said} | Blue."));
    }
}

#[test]
fn a_file_that_begins_again_behind_what_it_lacks_is_followed() {
    let kept = Kept::claude();
    kept.env.run(&["import"]).success();
    fs::remove_file(&kept.file).unwrap();
    fs::write(&kept.file, claude_record(5, 4, "user", "Paint it.")).unwrap();
    kept.env.run(&["import"]).success();
    assert_followed(&kept, "6b0a", "Paint it.");
    let whole = "Build a boat. | Of wood? | Of steel. | It floats. | Paint it.".to_owned();
    assert!(said_on_branches(&kept, "6b0a").contains(&whole));
}

#[test]
fn a_file_that_its_agent_does_not_read_any_more_is_let_go() {
    let kept = Kept::pi();
    kept.env.run(&["import"]).success();
    fs::remove_file(&kept.file).unwrap();
    fs::write(&kept.file, pi_entry("e", Some("d"), "user", "Paint it.")).unwrap();
    let before = kept.read();
    let told = kept.env.run(&["append", "-s", "boat", "--role", "user", "Blue."]).success();
    assert!(told.stderr.contains("only the store was changed"), "{told}");
    assert_eq!(kept.read(), before);
    for command in [&["undo", "-s", "boat"][..], &["revert", "0", "-s", "boat"], &["import"]] {
        kept.env.run(command).success();
    }
    assert_eq!(kept.read(), before);
    kept.env.run(&["verify"]).success();
}

#[test]
fn a_session_whose_file_cannot_be_written_is_let_go_and_hinders_no_other() {
    let Some(namespaces) = needs::namespaces() else { return };
    let kept = Kept::claude();
    let before = kept.read();
    kept.env.run(&["import"]).success();
    kept.env.run(&["revert", "1", "-m", "Steel is sold out.", "-s", "6b0a"]).success();
    cut_off(&kept, before.len());
    let pi = Kept::pi();
    let other = kept.env.home().join(".pi/agent/sessions/--work--/boat.jsonl");
    rollout::write(&other, pi.read().as_bytes());
    let (home, path, program) =
        (kept.env.home().display(), kept.file.display(), env!("CARGO_BIN_EXE_undertext"));
    let other = other.display();
    let script = format!(
        "touch {path}; mount --bind {path} {path}; mount -o remount,ro,bind {path}
         mount --bind {other} {other}; mount -o remount,ro,bind {other}
         export HOME={home}; cd {home}
         {program} checkpoint -s 6b0a 2>&1 || echo exit $?
         {program} import 2>&1 || echo exit $?
         {program} log boat 2>&1 || echo exit $?
         {program} status 6b0a 2>&1 || echo exit $?
         {program} append --role user Blue. -s boat 2>&1 || echo exit $?
         {program} attach --off -s 6b0a 2>&1 || echo exit $?
         {program} append --role user Blue. -s 6b0a 2>&1 || echo exit $?"
    );
    let told = namespaces.run(&script, kept.env.home());
    assert_eq!(told.matches("exit 3").count(), 2, "{told}");
    assert_eq!(told.matches(": undertext attach -s ").count(), 2, "{told}");
    assert!(told.contains("Of wood?"), "{told}");
    assert_eq!(kept.read(), before);
    assert_eq!(kept.said(&["6b0a"]), "Build a boat. | Of wood? | Steel is sold out. | Blue.");
    kept.env.run(&["verify"]).success();
}

#[test]
fn what_lies_in_the_place_of_the_stores_own_file_is_to_be_moved_away() {
    let stored = Stored::new();
    let file = stored.live.clone();
    let whole = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/dev/null", &file).unwrap();
    let refused = stored.run(&["append", "More."]).to_string();
    assert!(refused.contains("hint: move it away; the next command"), "{refused}");
    assert!(!refused.contains("--off"), "{refused}");
    fs::remove_file(&file).unwrap();
    stored.run(&["append", "More."]).success();
    assert!(fs::read(&file).unwrap().starts_with(&whole));
}

#[test]
fn a_title_of_codex_leaves_no_change_unwritten() {
    let mut thread = Rollout::first(THREAD);
    thread.has_ordinals = false;
    thread.bytes = thread.bytes.replace("paginated", "legacy");
    for words in ["one", "two", &"three ".repeat(100_000)] {
        thread.turn(words);
    }
    // A file that may have no byte more: its length is in blocks of 512 bytes.
    let last = thread.bytes.trim_end().rfind('\n').unwrap() + 2;
    thread.bytes.insert_str(last, &" ".repeat(512 - thread.bytes.len() % 512));
    let file = format!(".codex/sessions/2026/08/01/rollout-2026-08-01T10-00-00-{THREAD}.jsonl");
    let kept = Kept::new(&file, &thread.bytes);
    kept.env.run(&["import"]).success();
    let blocks = thread.bytes.len() / 512;
    let revert =
        format!("ulimit -f {blocks}; exec undertext revert 1 -m 'Mind the rake.' -s {THREAD}");
    let killed = kept.env.shell("sh", &revert).output().unwrap();
    assert!(!killed.status.success(), "{killed:?}");
    assert_eq!(kept.read(), thread.bytes);

    let title = format!(
        "{{\"id\":\"{THREAD}\",\"thread_name\":\"The shed\",\"updated_at\":\"2026-08-01T10:00:00Z\"}}\n"
    );
    fs::write(kept.env.home().join(".codex/session_index.jsonl"), title).unwrap();
    kept.env.run(&["import"]).success();
    let told = json(&kept.env.run(&["status", THREAD, "--json"]).success().stdout);
    assert_eq!(told["title"], "The shed");
    assert!(kept.read().contains("Mind the rake."));
    let said = kept.said(&[kept.file.to_str().unwrap()]);
    assert_followed(&kept, THREAD, &said);
}
