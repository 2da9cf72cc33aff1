//! Titles that an agent keeps in a file of its own, Codex's `session_index.jsonl`, or among a session's records: pi's names.

use std::fs;

use serde_json::json;
use undertext::{
    ops::{self, Archive},
    store::SessionFilter,
};

use crate::{
    fixture::damage,
    rollout::{Home, Rollout, SECOND, THREAD},
};

fn titles(archive: &Archive) -> Vec<String> {
    let listed =
        ops::list(archive, &SessionFilter::default(), ops::Order::Newest).unwrap().sessions;
    let mut titles: Vec<_> = listed.into_iter().filter_map(|listed| listed.card.title).collect();
    titles.sort();
    titles
}

#[test]
fn a_session_of_pi_has_the_name_that_its_user_gave_last() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let mut lines = vec![
        json!({ "type": "session", "version": 3, "id": "s", "timestamp": "2026-08-01T10:00:00.000Z", "cwd": "/w" }),
    ];
    let mut archive = crate::fixture::open(&folder.path().join("store"), 5);
    let mut say = |kind: &str, fields: serde_json::Value, title: &str| {
        let (id, parent) = (lines.len().to_string(), lines.last().unwrap()["id"].clone());
        let parent = if lines.len() == 1 { serde_json::Value::Null } else { parent };
        let mut line = json!({ "type": kind, "id": id, "parentId": parent, "timestamp": "2026-08-01T10:00:01.000Z" });
        line.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        lines.push(line);
        let all: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&file, all.concat()).unwrap();
        ops::import(&mut archive, std::slice::from_ref(&file), &[], &mut |_| ()).unwrap();
        assert_eq!(titles(&archive), [title]);
        assert_eq!(damage(&archive), [""; 0]);
    };
    let said = |role: &str| json!({ "message": { "role": role, "content": [{ "type": "text", "text": "one" }] } });
    say("message", said("user"), "one");
    say("session_info", json!({ "name": "The shed" }), "The shed");
    say("message", said("assistant"), "The shed");
    say("session_info", json!({ "name": "The garden\nbehind it" }), "The garden");
    // One that is taken back stays.
    say("session_info", json!({}), "The garden");
}

#[test]
fn a_thread_has_the_title_that_codex_gave_it_last() {
    let home = Home::new();
    for (hour, thread) in [(10, THREAD), (11, SECOND)] {
        let mut rollout = Rollout::first(thread);
        rollout.turn("one");
        home.write(hour, thread, &rollout);
    }
    let index = home.codex().join("session_index.jsonl");
    let named = |id: &str, name: &str| {
        json!({ "id": id, "thread_name": name, "updated_at": "2026-08-01T10:00:00Z" }).to_string()
    };
    let strange = "019f0000-0000-7000-8000-0000000000ff";
    let lines = [
        named(THREAD, "A first name"),
        "{\"id\":".into(),
        named(strange, "Nobody's"),
        named(THREAD, "The shed\nand more"),
        named(SECOND, " "),
    ];
    let mut told = lines.join("\n") + "\n";
    fs::write(&index, &told).unwrap();
    let mut archive = crate::fixture::open(&home.0.path().join("store"), 5);
    let import = |archive: &mut Archive| {
        ops::import(archive, &[home.codex()], &[home.codex()], &mut |_| ()).unwrap()
    };
    assert_eq!(import(&mut archive).files, 2);
    assert_eq!(titles(&archive), ["The shed", "one"]);

    // Another name changes no file of the thread, and one that is known is no change.
    told += &(named(THREAD, "The garden") + "\n");
    fs::write(&index, &told).unwrap();
    for _ in 0..2 {
        assert_eq!(import(&mut archive).unchanged, 2);
        assert_eq!(titles(&archive), ["The garden", "one"]);
    }
    fs::remove_file(&index).unwrap();
    import(&mut archive);
    assert_eq!(titles(&archive), ["The garden", "one"]);
    assert_eq!(damage(&archive), [""; 0]);
    for session in archive.every().unwrap() {
        assert!(ops::rebuild(&mut archive, &session).unwrap().equal);
        let operations = ops::operations(&archive, &session, 9).unwrap().len();
        assert_eq!(operations, if session.name.id == THREAD { 3 } else { 1 });
    }
}
