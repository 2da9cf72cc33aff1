//! pi's own files as undertext changes them: what pi reads there afterwards, and in files of its first version too.

use std::{fs, path::Path};

use serde_json::{Value, json};
use undertext::{
    verbs::{self, Archive, Session},
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
    let (session, _) = verbs::take_up(&mut archive, &file).unwrap();
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
    verbs::append(&archive.at(&session).unwrap(), &workspace(), &[said]).unwrap();
    let all = "Is the mast sound? It is. And the keel? It wants paint. Then paint it. Done.";
    assert_eq!(sent(&file), all);
    let last = fs::read_to_string(&file).unwrap();
    let last: Value = serde_json::from_str(last.lines().last().unwrap()).unwrap();
    assert!(last.get("id").is_none() && last.get("parentId").is_none());
    assert_eq!(last["message"]["provider"], "anthropic");

    // A note, behind the first answer; and all of it again.
    verbs::revert(&archive.at(&session).unwrap(), &workspace(), "1", Some("The keel is steel."))
        .unwrap();
    let noted = sent(&file);
    assert!(noted.starts_with("Is the mast sound? It is. <note-from-later>"), "{noted}");
    assert!(noted.contains("The keel is steel."));
    verbs::undo(&archive.at(&session).unwrap(), None).unwrap();
    assert_eq!(sent(&file), all);
}

#[test]
fn clear_keeps_the_header_without_which_pi_reads_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (mut archive, session, file) = taken_up(folder.path(), &first_version());
    verbs::clear(&archive.at(&session).unwrap()).unwrap();
    let header = fs::read_to_string(&file).unwrap();
    assert_eq!(header.lines().count(), 1);
    assert_eq!(header.lines().next(), first_version().lines().next());
    say(&mut archive, &session, "A new boat.");
    assert_eq!(sent(&file), "A new boat.");
    verbs::undo(&archive.at(&session).unwrap(), None).unwrap();
    verbs::undo(&archive.at(&session).unwrap(), None).unwrap();
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
    let (archive, session, file) = taken_up(folder.path(), &content);
    let more = [Draft::Message(Speaker::User, "And the keel?".into())];
    let appended = verbs::append(&archive.at(&session).unwrap(), &workspace(), &more).unwrap();
    let told = appended.done.notices.iter().map(ToString::to_string).collect::<String>();
    assert!(told.contains("pi does not resume a file that does not begin"), "{told}");
    let log = verbs::log(&archive.at(&session).unwrap(), None, 1).unwrap();
    assert_eq!(log.lines[0].messages[0].text(), "And the keel?");
    assert_eq!(fs::read_to_string(&file).unwrap(), content);
    // What pi passes is not what the file begins with.
    let folder = tempfile::tempdir().unwrap();
    let (mut archive, session, file) =
        taken_up(folder.path(), &format!("no record\n{}", first_version()));
    say(&mut archive, &session, "Then paint it.");
    assert!(sent(&file).ends_with("Then paint it."));
}

/// Returns the words that pi would send of entries behind a header, each with the fields that it has for itself.
fn sent_of(entries: &[Value]) -> String {
    let header = json!({ "type": "session", "version": 3, "id": "s", "timestamp": "2026-01-05T08:00:00.000Z", "cwd": "/harbour" });
    let lines: Vec<String> =
        std::iter::once(&header).chain(entries).map(Value::to_string).collect();
    FileGraph::read(&Pi, (lines.join("\n") + "\n").as_bytes()).sent()
}

fn entry(id: &Value, parent: &Value, words: &str) -> Value {
    json!({ "type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-05T08:00:01.000Z",
        "message": { "role": "user", "content": words } })
}

#[test]
fn ids_that_are_numbers_name_entries_too() {
    let said = |ids: [Value; 5]| {
        let [one, to_one, two, to_two, three] = ids;
        sent_of(&[
            entry(&one, &Value::Null, "one"),
            entry(&two, &to_one, "two"),
            entry(&three, &to_two, "three"),
        ])
    };
    let all = "one two three";
    assert_eq!(said([json!(1), json!(1), json!(2), json!(2), json!(3)]), all);
    assert_eq!(said([json!(1.5), json!(1.5), json!("2"), json!("2"), json!(3)]), all);
    // A number is not the text of its digits, and 0 names nothing.
    assert_eq!(said([json!("1"), json!(1), json!("2"), json!("2"), json!(3)]), "two three");
    assert_eq!(said([json!(0), json!(0), json!(2), json!(2), json!(3)]), "two three");
}

#[test]
fn what_follows_a_numbered_entry_names_it_as_the_file_does() {
    let folder = tempfile::tempdir().unwrap();
    let header = json!({ "type": "session", "version": 3, "id": "s", "timestamp": "2026-01-05T08:00:00.000Z", "cwd": "/harbour" });
    let one = entry(&json!(7), &Value::Null, "one");
    let (mut archive, session, file) = taken_up(folder.path(), &format!("{header}\n{one}\n"));
    say(&mut archive, &session, "two");
    assert_eq!(sent(&file), "one two");
    let last = fs::read_to_string(&file).unwrap();
    let last: Value = serde_json::from_str(last.lines().last().unwrap()).unwrap();
    assert_eq!(last["parentId"], 7);
}

#[test]
fn summaries_and_flags_count_as_they_do_in_javascript() {
    let with = |mut entry: Value, key: &str, value: &Value| {
        entry[key] = value.clone();
        entry
    };
    let one = || entry(&json!("a"), &Value::Null, "one");
    let summed = |kind: &str| json!({ "type": kind, "id": "b", "parentId": "a", "timestamp": "2026-01-05T08:00:02.000Z", "firstKeptEntryId": "a" });
    assert!(sent_of(&[one(), summed("compaction")]).starts_with("undefined"));
    let of =
        |summary: Value| sent_of(&[one(), with(summed("branch_summary"), "summary", &summary)]);
    assert!(of(json!(5)).contains("<summary>\n5</summary>"));
    for nothing in [json!(""), json!(0), json!(null), json!(false)] {
        assert_eq!(of(nothing), "one");
    }
    let ran = |excluded: &Value| {
        let mut ran = entry(&json!("b"), &json!("a"), "");
        ran["message"] = json!({ "role": "bashExecution", "command": "ls", "output": "hull", "excludeFromContext": excluded });
        sent_of(&[one(), ran]).contains("hull")
    };
    for (excluded, is_sent) in [
        (json!(true), false),
        (json!("yes"), false),
        (json!(1), false),
        (json!({}), false),
        (json!(false), true),
        (json!(""), true),
        (json!(0), true),
        (json!(null), true),
    ] {
        assert_eq!(ran(&excluded), is_sent, "{excluded}");
    }
}

/// Returns the request that pi would send of entries behind a header of a version, with what undertext tells of it.
fn request_of(version: &Value, entries: &[Value]) -> Value {
    let mut header = json!({ "type": "session", "id": "s", "timestamp": "2026-01-05T08:00:00.000Z", "cwd": "/harbour" });
    header["version"] = version.clone();
    let lines: Vec<String> =
        std::iter::once(&header).chain(entries).map(Value::to_string).collect();
    let env = TestEnv::new();
    fs::write(env.project().join("boat.jsonl"), lines.join("\n") + "\n").unwrap();
    let told = env.run(&["context", "--json", "boat.jsonl"]).success().stdout;
    serde_json::from_str(told.lines().next().unwrap()).unwrap()
}

/// Returns the words of each message of a request.
fn words(request: &Value) -> Vec<String> {
    let said = |block: &Value| match block["type"].as_str() {
        Some("tool_result") => block["content"][0]["text"].as_str().unwrap().to_owned(),
        Some("tool_use") => format!("call {}", block["id"].as_str().unwrap()),
        _ => block["text"].as_str().unwrap().to_owned(),
    };
    let messages = request["request"]["messages"].as_array().unwrap().iter();
    messages
        .map(|message| message["content"].as_array().unwrap().iter().map(said).collect())
        .collect()
}

/// Makes an entry that follows another one.
fn behind(id: &str, parent: &str, fields: Value) -> Value {
    let mut entry =
        json!({ "id": id, "parentId": parent, "timestamp": "2026-01-05T08:00:01.000Z" });
    let Value::Object(fields) = fields else { unreachable!() };
    entry.as_object_mut().unwrap().extend(fields);
    entry
}

fn system(content: &str, sections: &Value) -> Value {
    json!({ "role": "system", "content": content, "sections": sections })
}

#[test]
fn the_system_prompt_leads_with_all_that_became_of_its_sections() {
    let said = |id: &str, parent: &str, message: Value| {
        behind(id, parent, json!({ "type": "message", "message": message }))
    };
    let first = system("You sail.", &json!({ "rules": "Be brief.", "old": null }));
    let then = json!({ "rules": "Be long.", "sk\"ills": null, "n": 5 });
    let mut entries = vec![
        said("a", "", first.clone()),
        entry(&json!("b"), &json!("a"), "hi"),
        said("c", "b", system("", &then)),
        entry(&json!("d"), &json!("c"), "go"),
    ];
    let sent = words(&request_of(&json!(3), &entries));
    assert_eq!(sent, ["You sail.\n\nBe long.", "hi", "go"]);
    // A session that an older version began has none at its beginning.
    let late = [
        entry(&json!("a"), &json!(""), "hi"),
        said("b", "a", first.clone()),
        entry(&json!("c"), &json!("b"), "go"),
        said("d", "c", system("Mind the rocks.", &json!({ "rules": null }))),
    ];
    let sent = words(&request_of(&json!(3), &late));
    assert_eq!(sent, ["You sail.\n\nMind the rocks.", "hi", "go"]);
    // One that has words of its own may come later, too, and one that has none may lead.
    let all = [said("a", "", system("", &then)), said("b", "a", first.clone())];
    assert_eq!(words(&request_of(&json!(3), &all)), ["You sail.\n\nBe brief."]);
    // What a compaction holds of it leads.
    let summed = json!({ "type": "compaction", "summary": "S", "firstKeptEntryId": "d", "tokensBefore": 1, "systemMessage": first });
    entries.extend([behind("e", "d", summed), said("f", "e", system("", &then))]);
    let sent = words(&request_of(&json!(3), &entries));
    assert_eq!([&sent[0], &sent[2]], ["You sail.\n\nBe long.", "go"]);
    assert_eq!(sent.len(), 3);
}

#[test]
fn a_session_goes_on_with_the_model_that_was_named_last() {
    let answer = |id: &str, parent: &str, model: &str, stop: &str| {
        let message = json!({ "role": "assistant", "content": [{ "type": "text", "text": "aye" }], "model": model, "stopReason": stop });
        behind(id, parent, json!({ "type": "message", "message": message }))
    };
    let change = |id: &str, parent: &str, model: &str| {
        behind(id, parent, json!({ "type": "model_change", "provider": "p", "modelId": model }))
    };
    let mut entries = vec![
        entry(&json!("a"), &Value::Null, "one"),
        answer("b", "a", "claude-sonnet-4-5", "stop"),
    ];
    let mut check = |more: Vec<Value>, model: &str, window: u64| {
        entries.extend(more);
        let request = request_of(&json!(3), &entries);
        assert_eq!((&request["model"], &request["window"]), (&json!(model), &json!(window)));
    };
    check(vec![], "claude-sonnet-4-5", 200_000);
    check(vec![change("c", "b", "gpt-4o")], "gpt-4o", 128_000);
    check(vec![entry(&json!("d"), &json!("c"), "two")], "gpt-4o", 128_000);
    check(vec![answer("e", "d", "gpt-4o-mini", "error")], "gpt-4o-mini", 128_000);
    // One that is named on another branch is not meant.
    check(
        vec![change("f", "b", "gpt-4o"), entry(&json!("g"), &json!("b"), "three")],
        "claude-sonnet-4-5",
        200_000,
    );
}

#[test]
fn the_version_of_a_file_is_compared_as_in_javascript() {
    let entries = [("a", ""), ("b", "a"), ("c", "a")]
        .map(|(id, parent)| entry(&json!(id), &json!(parent), id));
    let versions = [
        (json!(1), true),
        (json!(0), true),
        (json!(-1), true),
        (json!(1.5), true),
        (json!(null), true),
        (json!("1"), true),
        (json!(""), true),
        (json!(true), true),
        (json!(2), false),
        (json!(2.5), false),
        (json!(3), false),
        (json!("3"), false),
        (json!(" 3.0 "), false),
        (json!("new"), false),
        (json!({}), false),
    ];
    for (version, is_chained) in versions {
        let sent = words(&request_of(&version, &entries));
        let expected = if is_chained { vec!["a", "b", "c"] } else { vec!["a", "c"] };
        assert_eq!(sent, expected, "{version}");
    }
}

#[test]
fn what_a_hook_said_is_edited_as_other_words_are() {
    let said =
        json!({ "type": "message", "message": { "role": "hookMessage", "content": "long" } });
    let edit =
        json!({ "type": "context_edit", "targetId": "a", "replacement": { "content": "short" } });
    let entries = [behind("a", "", said), behind("b", "a", edit)];
    assert_eq!(words(&request_of(&json!(2), &entries)), ["short"]);
}

#[test]
fn a_call_that_nothing_answered_is_answered_at_the_end_as_well() {
    let call = |id: &str| json!({ "type": "toolCall", "id": id, "name": "look", "arguments": {} });
    let calls = json!({ "role": "assistant", "content": [call("one"), call("two")] });
    let result = json!({ "role": "toolResult", "toolCallId": "two", "content": [{ "type": "text", "text": "a rock" }] });
    let entries = [
        behind("a", "", json!({ "type": "message", "message": calls })),
        behind("b", "a", json!({ "type": "message", "message": result })),
    ];
    let sent = words(&request_of(&json!(3), &entries));
    assert_eq!(sent, ["call onecall two", "a rock", "No result provided"]);
}

#[test]
fn a_result_that_an_edit_made_long_is_told_of_where_no_truncation_cuts_it() {
    let call = json!({ "type": "toolCall", "id": "one", "name": "look", "arguments": {} });
    let calls = json!({ "role": "assistant", "content": [call] });
    let result = json!({ "role": "toolResult", "toolCallId": "one", "content": [{ "type": "text", "text": "a rock" }] });
    let edit = json!({ "type": "context_edit", "targetId": "b", "replacement": { "content": "a rock\n".repeat(900) } });
    let header = json!({ "type": "session", "version": 3, "id": "s", "timestamp": "2026-01-05T08:00:00.000Z", "cwd": "/harbour" });
    let lines = [
        header,
        behind("a", "", json!({ "type": "message", "message": calls })),
        behind("b", "a", json!({ "type": "message", "message": result })),
        behind("c", "b", edit),
    ];
    let env = TestEnv::new();
    let file = env.project().join("boat.jsonl");
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    fs::write(&file, lines.join("\n") + "\n").unwrap();
    env.run(&["attach", "boat.jsonl"]).success();
    for more in [&["--dry-run"][..], &[]] {
        let command = [&["truncate", "--max-chars", "2000", "-s", "s"], more].concat();
        let told = env.run(&command).success().stdout;
        assert!(told.contains("1 result is left alone: its content was edited"), "{told}");
        assert!(told.contains("Nothing else is oversized: no other result"), "{told}");
        let told = env.run(&[&command[..], &["--json"]].concat()).success().stdout;
        let told: Value = serde_json::from_str(told.lines().last().unwrap()).unwrap();
        assert_eq!((&told["results"], &told["edited"]), (&json!(0), &json!(1)));
        let command = [&["truncate", "--max-chars", "9000", "-s", "s"], more].concat();
        assert!(!env.run(&command).success().stdout.contains("left alone"));
    }
}
