//! Whether every record of a conversation is shown: on the path of a branch, or of an end that was left.

use std::collections::BTreeSet;

use undertext::json::Raw;
use undertext::model::EntryNumber;
use undertext::store::whole_lines;
use undertext::verbs;

use crate::{fixture::Seeded, needs};

/// Returns whether a line is a record of the user or of the assistant.
fn is_talk(line: &[u8]) -> bool {
    let class = Raw::object(line).and_then(|record| record.get("type")).and_then(Raw::text);
    matches!(class.as_deref(), Some("user" | "assistant"))
}

#[test]
fn every_message_of_a_real_session_is_shown() {
    let Some(corpus) = needs::corpus() else { return };
    let (mut shown, mut all) = (0, 0);
    let mut missing = Vec::new();
    for folder in ["claude", "claude-shapes", "claude-broken"] {
        for path in corpus.files(folder) {
            let (archive, session) = verbs::peek(&path, Seeded::boxed(1)).unwrap();
            let graph = verbs::graph(
                &archive.at(&session).unwrap(),
                verbs::Detail { all: true, ..verbs::Detail::default() },
            )
            .unwrap();
            let seen: BTreeSet<_> = graph.nodes.iter().map(|node| node.id).collect();
            let entries = archive.store().entries(session.key, EntryNumber::ALL).unwrap();
            let numbers: Vec<EntryNumber> = entries.iter().map(|entry| entry.n).collect();
            let mut talk = BTreeSet::new();
            let each = &mut |n, line: Vec<u8>| {
                if is_talk(&line) {
                    talk.insert(n);
                }
            };
            whole_lines(archive.store(), session.key, &numbers, each).unwrap();
            all += talk.len();
            for entry in entries.iter().filter(|entry| talk.contains(&entry.n)) {
                if seen.contains(&entry.id) {
                    shown += 1;
                } else {
                    missing.push(format!("{} entry {}", path.display(), entry.n));
                }
            }
        }
    }
    println!("{shown} of {all} records of users and assistants are shown");
    assert!(missing.is_empty(), "{} of {all} are missing:\n{}", missing.len(), missing.join("\n"));
    assert!(shown >= 4_150, "{shown} records");
}
