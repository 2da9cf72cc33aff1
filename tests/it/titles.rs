//! Titles that an agent keeps in a file of its own, Codex's `session_index.jsonl` and Kimi's `state.json`, or among a session's
//! records: pi's names.

use std::fs;

use serde_json::json;
use undertext::{
    settings::Exclude,
    store::SessionFilter,
    verbs::{self, Archive},
};

use crate::{
    fixture::damage,
    rollout::{Home, Rollout, SECOND, THREAD},
};

fn titles(archive: &Archive) -> Vec<String> {
    let listed = archive.sessions(&SessionFilter::default()).unwrap();
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
        verbs::import(&mut archive, std::slice::from_ref(&file), &[], &mut |_| ()).unwrap();
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
fn a_session_of_kimi_has_the_title_that_somebody_gave_it() {
    let home = tempfile::tempdir().unwrap();
    let sessions = home.path().join(".kimi/sessions");
    let folder =
        sessions.join("0123456789abcdef0123456789abcdef/0f0f0f0f-0000-4000-8000-000000000001");
    fs::create_dir_all(&folder).unwrap();
    let said = json!({ "role": "user", "content": "Where is the rake, and who has had it last?" });
    fs::write(folder.join("context.jsonl"), format!("{said}\n")).unwrap();
    let mut archive = crate::fixture::open(&home.path().join("store"), 5);
    let mut told = |state: &str, title: &str| {
        fs::write(folder.join("state.json"), state).unwrap();
        let folders = std::slice::from_ref(&sessions);
        for _ in 0..2 {
            verbs::import(&mut archive, folders, folders, &mut |_| ()).unwrap();
            assert_eq!(titles(&archive), [title], "{state}");
        }
        assert_eq!(damage(&archive), [""; 0]);
    };
    let words = "Where is the rake, and who has had it last?";
    told(r#"{ "custom_title": "Where is the rake…", "title_generated": false }"#, words);
    told("{ \"custom_title\": \"The rake\",\n  \"title_generated\": true }\n", "The rake");
    told(r#"{ "custom_title": null, "title_generated": true }"#, "The rake");
    told(r#"{ "custom_title": "The spade", "title_gen"#, "The rake");
    let all = archive.every().unwrap();
    assert!(verbs::rebuild(&mut archive, &all[0]).unwrap().equal);
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
        verbs::import(archive, &[home.codex()], &[home.codex()], &mut |_| ()).unwrap()
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
    // One that is left out keeps the title that it has.
    told += &(named(THREAD, "A secret") + "\n");
    fs::write(&index, &told).unwrap();
    let sessions = vec![THREAD.to_owned()];
    archive.set_exclude(Exclude { sessions, ..Exclude::default() });
    import(&mut archive);
    assert_eq!(titles(&archive), ["The garden", "one"]);
    archive.set_exclude(Exclude::default());
    fs::remove_file(&index).unwrap();
    import(&mut archive);
    assert_eq!(titles(&archive), ["The garden", "one"]);
    assert_eq!(damage(&archive), [""; 0]);
    for session in archive.every().unwrap() {
        assert!(verbs::rebuild(&mut archive, &session).unwrap().equal);
        let operations = verbs::operations(&archive.at(&session).unwrap(), 9).unwrap().shown.len();
        assert_eq!(operations, if session.name.id == THREAD { 3 } else { 1 });
    }
}
