//! pi's own files as undertext changes them: what pi reads there afterwards, and in files of its first version too.

use std::{fs, path::Path};

use serde_json::{Value, json};
use undertext::{
    ops::{self, Archive, Session},
    wire::{Draft, Pi, Speaker},
};

use crate::{
    env::TestEnv,
    fixture::{self, say, workspace},
    graph::FileGraph,
};

fn message(role: &str, words: &str) -> String {
    let content = json!([{ "type": "text", "text": words }]);
    let mut message = json!({ "role": role, "content": content });
    if role == "assistant" {
        message["provider"] = "anthropic".into();
        message["model"] = "claude-3-5-sonnet".into();
    }
    json!({ "type": "message", "timestamp": "2026-01-05T08:00:01.000Z", "message": message })
        .to_string()
}

/// Returns a file of the first version: its entries have no ids.
fn first_version() -> String {
    let header = json!({
        "type": "session", "id": "5d1c0a7e-0000-4000-8000-000000000001", "timestamp": "2026-01-05T08:00:00.000Z",
        "cwd": "/harbour", "provider": "anthropic", "modelId": "claude-3-5-sonnet", "thinkingLevel": "off",
    });
    let lines = [
        header.to_string(),
        message("user", "Is the mast sound?"),
        message("assistant", "It is."),
        message("user", "And the keel?"),
        message("assistant", "It wants paint."),
    ];
    lines.join("\n") + "\n"
}

fn taken_up(folder: &Path, content: &str) -> (Archive, Session, std::path::PathBuf) {
    let root = folder.canonicalize().unwrap();
    let file = root.join("2026-01-05T08-00-00-000Z_5d1c0a7e.jsonl");
    fs::write(&file, content).unwrap();
    let mut archive = fixture::open(&root.join("store"), 1);
    let (session, _) = ops::take_up(&mut archive, &file).unwrap();
    (archive, session, file)
}

/// Returns the words that pi would send of a file.
fn sent(file: &Path) -> String {
    FileGraph::open(&Pi, file).sent()
}

#[test]
fn what_is_appended_to_a_file_of_the_first_version_is_read_behind_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let (mut archive, session, file) = taken_up(folder.path(), &first_version());
    say(&mut archive, &session, "Then paint it.");
    let said = Draft::Message(Speaker::Assistant, "Done.".into());
    ops::append(&mut archive, &session, &workspace(), &[said]).unwrap();
    let all = "Is the mast sound? It is. And the keel? It wants paint. Then paint it. Done.";
    assert_eq!(sent(&file), all);
    let last = fs::read_to_string(&file).unwrap();
    let last: Value = serde_json::from_str(last.lines().last().unwrap()).unwrap();
    assert!(last.get("id").is_none() && last.get("parentId").is_none());
    assert_eq!(last["message"]["provider"], "anthropic");

    // A note, behind the first answer; and all of it again.
    ops::revert(&mut archive, &session, &workspace(), "1", Some("The keel is steel.")).unwrap();
    let noted = sent(&file);
    assert!(noted.starts_with("Is the mast sound? It is. <note-from-later>"), "{noted}");
    assert!(noted.contains("The keel is steel."));
    ops::undo(&mut archive, &session, None).unwrap();
    assert_eq!(sent(&file), all);
}

#[test]
fn clear_keeps_the_header_without_which_pi_reads_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (mut archive, session, file) = taken_up(folder.path(), &first_version());
    ops::clear(&mut archive, &session).unwrap();
    let header = fs::read_to_string(&file).unwrap();
    assert_eq!(header.lines().count(), 1);
    assert_eq!(header.lines().next(), first_version().lines().next());
    say(&mut archive, &session, "A new boat.");
    assert_eq!(sent(&file), "A new boat.");
    ops::undo(&mut archive, &session, None).unwrap();
    ops::undo(&mut archive, &session, None).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), first_version());
}

#[test]
fn a_compaction_of_the_first_version_keeps_by_index() {
    let env = TestEnv::new();
    let file = env.project().join("boat.jsonl");
    fs::write(&file, first_version().replace("It is.", &"It is sound. ".repeat(900))).unwrap();
    let file = file.to_str().unwrap();
    env.run(&["attach", file]).success();
    env.run(&["compact", "--keep", "2", file]).success();
    let compacted = fs::read_to_string(file).unwrap();
    let last: Value = serde_json::from_str(compacted.lines().last().unwrap()).unwrap();
    assert_eq!((&last["type"], &last["firstKeptEntryIndex"]), (&json!("compaction"), &json!(3)));
    assert!(sent(Path::new(file)).ends_with("</context-summary> And the keel? It wants paint."));
}

#[test]
fn a_file_without_a_header_is_changed_in_the_store_only() {
    let folder = tempfile::tempdir().unwrap();
    let content = json!({
        "type": "message", "id": "a1", "parentId": null, "timestamp": "2026-01-05T08:00:01.000Z",
        "message": { "role": "user", "content": "Is the mast sound?" },
    });
    let content = content.to_string() + "\n";
    let (mut archive, session, file) = taken_up(folder.path(), &content);
    let more = [Draft::Message(Speaker::User, "And the keel?".into())];
    let appended = ops::append(&mut archive, &session, &workspace(), &more).unwrap();
    let told = appended.notices.iter().map(ToString::to_string).collect::<String>();
    assert!(told.contains("pi does not resume a file that does not begin"), "{told}");
    let log = ops::log(archive.store(), &session, None, 1).unwrap();
    assert_eq!(log.lines[0].messages[0].text(), "And the keel?");
    assert_eq!(fs::read_to_string(&file).unwrap(), content);
    // What pi passes is not what the file begins with.
    let folder = tempfile::tempdir().unwrap();
    let (mut archive, session, file) =
        taken_up(folder.path(), &format!("no record\n{}", first_version()));
    say(&mut archive, &session, "Then paint it.");
    assert!(sent(&file).ends_with("Then paint it."));
}
