//! Compaction over sessions: what an agent resumes afterwards is the summary and what is kept, and all of it is undone.

use std::{fs, path::Path};

use serde_json::{Value, json};
use undertext::{
    context::{
        Origin,
        compact::Writer,
        cut::Limit,
        event::Event,
        history::Limits,
        model::{ModelError, Summarizer, SummaryRequest, Written},
        plan::{Keep, Nothing},
        tokens::Counting,
        window::Windows,
    },
    model::{OperationNumber, Role, Timestamp},
    store::{Access, SessionFilter},
    verbs::{
        self, Archive, Asked, Bound, Compacted, Compacting, Having, Machine, Manner, OpsError,
        Order, Session, Workspace,
    },
    wire::{Draft, How, Speaker},
};

use crate::{
    fixture, needs,
    replay::SUMMARY,
    rollout::{Home, Rollout, THREAD},
};

pub(crate) fn asked(window: u64) -> Asked {
    Asked {
        shape: undertext::context::Shape::Messages,
        model: None,
        window: Some(window),
        windows: Windows::default(),
        limits: Limits::default(),
        images: true,
        results: None,
        counting: Some(Counting::Estimate),
    }
}

fn clock() -> Timestamp {
    Timestamp(0)
}

fn usual<'a>() -> Compacting<'a> {
    Compacting::of(Box::leak(Box::new(asked(200_000))), &clock)
}

#[expect(clippy::large_types_passed_by_value, reason = "each test makes its own")]
fn compact(
    archive: &mut Archive,
    session: &Session,
    wanted: Compacting<'_>,
) -> Result<Compacted, OpsError> {
    verbs::compact(&archive.at(session).unwrap(), &Workspace::default(), &wanted, &mut |_| ())
}

/// Returns what a model would be sent: where each message comes from, who says it, and its words.
fn sent(archive: &Archive, session: &Session) -> Vec<(Origin, Role, String)> {
    let asked = asked(200_000);
    let context = verbs::context(&archive.at(session).unwrap(), None, &asked).unwrap();
    let told = |item: undertext::context::Item| {
        let message = item.message();
        let words = message.blocks.iter().map(|block| match block {
            undertext::model::Block::Text(text) => text.clone(),
            undertext::model::Block::Call { name, .. } => format!("call {name}"),
            other => other.answer_text().into_owned(),
        });
        let words: Vec<String> = words.collect();
        (item.origin, item.role(), words.join(" "))
    };
    context.prepared.items.into_iter().map(told).collect()
}

/// The records of a conversation of so many rounds in the format of an agent.
fn records(agent: &str, rounds: usize) -> Vec<Value> {
    let time = |n: usize| format!("2026-08-01T10:{:02}:{:02}.000Z", n / 60, n % 60);
    let long = "All work and no play makes a long conversation. ".repeat(20);
    let mut records = Vec::new();
    match agent {
        "claude" => {
            let mut parent = Value::Null;
            let mut add = |role: &str, content: Value| {
                let n = records.len();
                let uuid = format!("00000000-0000-4000-8000-{n:012}");
                let mut message = json!({ "role": role, "content": content });
                if role == "assistant" {
                    message["id"] = json!(format!("msg_{n}"));
                    message["type"] = json!("message");
                    message["model"] = json!("claude-sonnet-4");
                }
                records.push(json!({ "parentUuid": parent, "isSidechain": false, "userType": "external",
                    "cwd": "/w", "sessionId": "s", "version": "2.1.0", "type": role, "message": message,
                    "uuid": uuid, "timestamp": time(n) }));
                parent = json!(uuid);
            };
            for n in 0..rounds {
                add("user", json!(format!("question {n} {long}")));
                let input = json!({ "file_path": format!("/w/{n}.rs") });
                add(
                    "assistant",
                    json!([{ "type": "tool_use", "id": format!("c{n}"), "name": "Read", "input": input }]),
                );
                add(
                    "user",
                    json!([{ "type": "tool_result", "tool_use_id": format!("c{n}"), "content": format!("result {n} {long}") }]),
                );
                add("assistant", json!([{ "type": "text", "text": format!("answer {n}") }]));
            }
        }
        "pi" => {
            records.push(json!({ "type": "session", "version": 3, "id": "s", "timestamp": time(0), "cwd": "/w" }));
            let mut parent = Value::Null;
            let mut add = |message: Value| {
                let n = records.len();
                let id = format!("{n:08x}");
                records.push(json!({ "type": "message", "id": id, "parentId": parent, "timestamp": time(n), "message": message }));
                parent = json!(id);
            };
            let sections = json!({ "rules": "Be brief.", "place": "A shed." });
            add(
                json!({ "role": "system", "content": "You are pi.", "sections": sections, "timestamp": 0 }),
            );
            for n in 0..rounds {
                add(
                    json!({ "role": "user", "content": format!("question {n} {long}"), "timestamp": n }),
                );
                add(
                    json!({ "role": "assistant", "content": [{ "type": "toolCall", "id": format!("c{n}"), "name": "read", "arguments": {} }], "timestamp": n }),
                );
                add(
                    json!({ "role": "toolResult", "toolCallId": format!("c{n}"), "toolName": "read", "content": [{ "type": "text", "text": format!("result {n} {long}") }], "isError": false, "timestamp": n }),
                );
                add(
                    json!({ "role": "assistant", "content": [{ "type": "text", "text": format!("answer {n}") }], "timestamp": n }),
                );
            }
        }
        "codex" => {
            let mut add = |class: &str, payload: Value| {
                let n = records.len();
                records.push(json!({ "timestamp": time(n), "type": class, "payload": payload }));
            };
            add(
                "session_meta",
                json!({ "id": "s", "timestamp": time(0), "cwd": "/w", "originator": "x", "cli_version": "0.169.0" }),
            );
            let message = |role: &str, kind: &str, text: String| json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] });
            for n in 0..rounds {
                add("response_item", message("user", "input_text", format!("question {n} {long}")));
                add(
                    "response_item",
                    json!({ "type": "function_call", "name": "shell", "arguments": "{}", "call_id": format!("c{n}") }),
                );
                add(
                    "response_item",
                    json!({ "type": "function_call_output", "call_id": format!("c{n}"), "output": format!("result {n} {long}") }),
                );
                add("response_item", message("assistant", "output_text", format!("answer {n}")));
            }
        }
        "kimi" => {
            records.push(json!({ "role": "_system_prompt", "content": "You are Kimi." }));
            for n in 0..rounds {
                records.push(json!({ "role": "_checkpoint", "id": n }));
                records.push(json!({ "role": "user", "content": format!("question {n} {long}") }));
                records.push(json!({ "role": "assistant", "content": [], "tool_calls": [{ "type": "function", "id": format!("c{n}"), "function": { "name": "Read", "arguments": "{}" } }] }));
                records.push(json!({ "role": "_usage", "token_count": 100 * n }));
                records.push(json!({ "role": "tool", "content": format!("result {n} {long}"), "tool_call_id": format!("c{n}") }));
                records.push(json!({ "role": "assistant", "content": format!("answer {n}") }));
            }
        }
        other => panic!("no agent {other}"),
    }
    records
}

const AGENTS: [&str; 4] = ["claude", "pi", "codex", "kimi"];

/// Returns an agent's session of so many rounds in a file of its own, attached to a store.
pub(crate) fn taken_up(folder: &Path, agent: &str, rounds: usize) -> (Archive, Session) {
    let file = folder.join("s").join(match agent {
        "kimi" => "context.jsonl",
        "codex" => "rollout-2026-08-01T10-00-00-s.jsonl",
        _ => "s.jsonl",
    });
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    in_store(folder, &file, &records(agent, rounds))
}

/// Returns a session of these records, in a file that is attached to a store.
fn in_store(folder: &Path, file: &Path, records: &[Value]) -> (Archive, Session) {
    let lines: Vec<String> = records.iter().map(|one| format!("{one}\n")).collect();
    fs::write(file, lines.concat()).unwrap();
    let store = folder.join("store");
    let mut archive = Archive::open(&store, Access::Write, Box::new(Machine)).unwrap();
    let (session, _) = verbs::take_up(&mut archive, file).unwrap();
    (archive, session)
}

fn undone(archive: &mut Archive, session: &Session) {
    verbs::undo(&archive.at(session).unwrap(), None).unwrap();
}

#[test]
fn each_agent_resumes_the_summary_and_what_is_kept() {
    for agent in AGENTS {
        let folder = tempfile::tempdir().unwrap();
        let (mut archive, session) = taken_up(folder.path(), agent, 10);
        let before = sent(&archive, &session);
        let made = compact(&mut archive, &session, usual()).unwrap();
        assert!(made.done.operation.is_some() && made.done.written.is_some(), "{agent}: {made:?}");
        assert_eq!(made.done.rotated.is_some(), agent == "kimi");
        let after = sent(&archive, &session);
        let said: Vec<_> = after.iter().filter(|(_, role, _)| *role != Role::System).collect();
        assert_eq!(said[0].0, Origin::Summary, "{agent}: {said:#?}");
        assert!(said[1..].iter().all(|(origin, ..)| *origin == Origin::Kept), "{agent}: {said:#?}");
        let words = |told: &[&(Origin, Role, String)]| -> Vec<String> {
            told.iter().map(|(.., words)| words.clone()).collect()
        };
        let tail: Vec<_> = before[before.len() - (said.len() - 1)..].iter().collect();
        assert_eq!(words(&said[1..]), words(&tail), "{agent}");
        // A fifth of the forty messages.
        assert_eq!(said.len() - 1, 8, "{agent}");
        assert_eq!(made.kept, 8);
        assert!(made.post_tokens < made.pre_tokens);

        // Nothing came since, and nothing is done.
        let again = compact(&mut archive, &session, usual()).unwrap();
        assert_eq!(
            (again.done.operation, again.nothing),
            (None, Some(Nothing::NothingNew)),
            "{agent}"
        );
        assert_eq!(fixture::damage(&archive), [""; 0]);

        undone(&mut archive, &session);
        assert_eq!(sent(&archive, &session), before, "{agent}");
        assert_eq!(fixture::damage(&archive), [""; 0]);
        verbs::redo(&archive.at(&session).unwrap()).unwrap();
        assert_eq!(sent(&archive, &session), after, "{agent}");
        assert_eq!(fixture::damage(&archive), [""; 0]);
    }
}

/// Returns a record of pi behind another one.
fn behind(parent: &str, id: &str, fields: &Value) -> Value {
    let mut record =
        json!({ "id": id, "parentId": parent, "timestamp": "2026-08-01T11:00:00.000Z" });
    record.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    record
}

#[test]
fn a_compaction_of_pi_says_the_system_prompt_as_it_is_then() {
    let folder = tempfile::tempdir().unwrap();
    let mut lines = records("pi", 10);
    let head = lines.last().unwrap()["id"].as_str().unwrap().to_owned();
    let tool = |name: &str, words: &str| json!({ "name": name, "description": words });
    let first = &mut lines[1]["message"];
    first["toolsAdded"] = json!([tool("read", "Reads."), tool("bash", "Runs.")]);
    let said = |fields: Value| json!({ "type": "message", "message": fields });
    let update = json!({ "role": "system", "content": [{ "type": "text", "text": "And kind." }],
        "sections": { "place": null, "rules": "Be long." }, "toolsRemoved": [{ "name": "read" }],
        "toolsAdded": [tool("bash", "Runs a command.")] });
    lines.extend([
        behind(&head, "x", &said(update)),
        behind("x", "y", &said(json!({ "role": "user", "content": "Last question" }))),
        behind("y", "z", &said(json!({ "role": "assistant", "content": [{ "type": "text", "text": "Last answer" }] }))),
    ]);
    let file = folder.path().join("s.jsonl");
    let (mut archive, session) = in_store(folder.path(), &file, &lines);
    let before = sent(&archive, &session);
    assert_eq!(before[0].2, "You are pi.\n\nAnd kind.\n\nBe long.");

    let keeping = |n| Compacting { keep: Keep::Last(n), ..usual() };
    for n in [4, 2] {
        let made = compact(&mut archive, &session, keeping(n)).unwrap();
        assert!(made.done.operation.is_some(), "{made:?}");
        let record = fs::read_to_string(&file).unwrap();
        let record: Value = serde_json::from_str(record.lines().next_back().unwrap()).unwrap();
        let message = &record["systemMessage"];
        let told = (&message["content"], &message["sections"], &message["toolsAdded"]);
        let (words, sections) = (json!("You are pi.\n\nAnd kind."), json!({ "rules": "Be long." }));
        assert_eq!(told, (&words, &sections, &json!([tool("bash", "Runs a command.")])));
        let now = sent(&archive, &session);
        assert_eq!(
            (now[0].1, now[0].2.as_str()),
            (Role::System, "You are pi.\n\nAnd kind.\n\nBe long.")
        );
        assert_eq!(now[1].0, Origin::Summary);
        let kept: Vec<&str> = now[2..].iter().map(|(.., words)| words.as_str()).collect();
        assert!(kept.ends_with(&["Last question", "Last answer"]), "{kept:?}");
        assert!(now[2..].iter().all(|(_, role, _)| *role != Role::System), "{now:#?}");
        assert_eq!(fixture::damage(&archive), [""; 0]);
        fixture::say(&mut archive, &session, "Last question");
        fixture::say(&mut archive, &session, "Last answer");
    }
}

#[test]
fn what_an_agent_put_in_the_place_of_a_message_is_what_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let mut lines = records("pi", 2);
    let head = lines.last().unwrap()["id"].as_str().unwrap().to_owned();
    let edit = |target: usize, replacement: Value| json!({ "type": "context_edit", "targetId": format!("{target:08x}"), "replacement": replacement });
    let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
    lines.extend([
        behind(&head, "p", &edit(4, text("once"))),
        behind("p", "q", &edit(4, text("[cleared]"))),
        behind("q", "r", &edit(6, json!({ "content": "Asked otherwise" }))),
        behind("r", "s", &edit(9, Value::Null)),
        // Nothing of the system is edited.
        behind("s", "t", &edit(1, text("You are somebody else."))),
    ]);
    let file = folder.path().join("s.jsonl");
    let (archive, session) = in_store(folder.path(), &file, &lines);
    let told = |archive: &Archive, exact: bool| {
        let counting = if exact { None } else { Some(Counting::Estimate) };
        let asked = Asked { counting, ..asked(200_000) };
        let context = verbs::context(&archive.at(&session).unwrap(), None, &asked).unwrap();
        let items = context.prepared.items.into_iter();
        let told = items.map(|item| (item.origin, item.message().text(), item.tokens.unwrap()));
        (told.collect::<Vec<_>>(), context.counting, context.fresh)
    };
    let (before, ..) = told(&archive, false);
    let edited: Vec<_> = before.iter().filter(|(origin, ..)| *origin == Origin::Edited).collect();
    assert_eq!(edited.len(), 2, "{before:?}");
    assert_eq!((before.len(), edited[1].1.as_str()), (8, "Asked otherwise"));
    let answers: Vec<String> =
        sent(&archive, &session).into_iter().map(|(.., words)| words).collect();
    assert_eq!(answers[3], "[cleared]");
    let audited = verbs::audit(&archive.at(&session).unwrap()).unwrap().earlier.into_iter();
    let hows: Vec<&str> = audited.map(|omitted| omitted.earlier.how.as_str()).collect();
    assert_eq!(hows, ["edited", "edited", "edited", "cleared", "edited"]);
    // A count of what stands there is not kept as one of the line.
    let (exact, counting, fresh) = told(&archive, true);
    assert!(!fresh.is_empty());
    verbs::keep_counts(&archive.at(&session).unwrap(), counting, &fresh).unwrap();
    let (again, _, fresh) = told(&archive, true);
    assert_eq!((again, fresh.len()), (exact, 0));
    // Where the branch stood before the edits, all is as it was said.
    verbs::revert(&archive.at(&session).unwrap(), &Workspace::default(), "@1", None).unwrap();
    let now = sent(&archive, &session);
    assert_eq!((now[3].0, now[3].2.starts_with("result 0")), (Origin::Said, true), "{now:?}");
}

#[test]
fn what_was_replaced_by_nothing_that_can_be_read_is_not_sent() {
    let folder = tempfile::tempdir().unwrap();
    let mut lines = records("pi", 1);
    let edit =
        json!({ "type": "context_edit", "targetId": format!("{:08x}", 5), "replacement": {} });
    lines.push(behind(&format!("{:08x}", 5), "p", &edit));
    let (archive, session) = in_store(folder.path(), &folder.path().join("s.jsonl"), &lines);
    let told = sent(&archive, &session);
    assert_eq!(told.len(), 4, "{told:#?}");
    assert!(told.iter().all(|(.., words)| words != "answer 0"), "{told:#?}");
}

#[test]
fn the_second_time_too_the_newest_messages_are_kept() {
    for agent in AGENTS {
        let folder = tempfile::tempdir().unwrap();
        let (mut archive, session) = taken_up(folder.path(), agent, 10);
        compact(&mut archive, &session, usual()).unwrap();
        let kept: Vec<String> =
            sent(&archive, &session).into_iter().skip(1).map(|(.., w)| w).collect();
        for n in 0..6 {
            fixture::say(&mut archive, &session, &format!("more {n}"));
        }
        let made = compact(&mut archive, &session, Compacting { keep: Keep::Last(2), ..usual() });
        let made = made.unwrap();
        assert!(made.done.operation.is_some(), "{agent}");
        assert_eq!(made.carried, 1, "{agent}");
        let now = sent(&archive, &session);
        let words: Vec<&str> = now.iter().map(|(.., words)| words.as_str()).collect();
        let summary = now.iter().find(|(origin, ..)| *origin == Origin::Summary).unwrap();
        let stays = kept.iter().filter(|kept| words.contains(&kept.as_str())).count();
        assert_eq!((stays, made.kept), (0, 2), "{agent}: {words:#?}");
        assert_eq!(summary.2.matches("<context-summary>").count(), 1, "{agent}: {}", summary.2);
        assert!(words.ends_with(&["more 4", "more 5"]), "{agent}: {words:#?}");
        assert!(!words.contains(&"more 3"), "{agent}: {words:#?}");
        assert_eq!(fixture::damage(&archive), [""; 0]);
        undone(&mut archive, &session);
        undone(&mut archive, &session);
        assert_eq!(fixture::damage(&archive), [""; 0]);
    }
}

#[test]
fn a_file_is_set_aside_where_that_is_asked_for() {
    for agent in AGENTS.into_iter().filter(|agent| *agent != "codex") {
        let folder = tempfile::tempdir().unwrap();
        let (mut archive, session) = taken_up(folder.path(), agent, 10);
        let before = sent(&archive, &session);
        archive.set_manner(Manner { rotate: true, ..Manner::default() });
        let made = compact(&mut archive, &session, usual()).unwrap();
        assert!(made.done.rotated.is_some() && made.left.as_deref() == Some("main.1"), "{agent}");
        let has_prompt = matches!(agent, "kimi" | "pi");
        assert_eq!(sent(&archive, &session)[usize::from(has_prompt)].0, Origin::Summary);
        assert_eq!(fixture::damage(&archive), [""; 0]);
        undone(&mut archive, &session);
        assert_eq!(sent(&archive, &session), before, "{agent}");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = fixture::session(&mut archive);
    for n in 0..20 {
        fixture::say(&mut archive, &session, &format!("{n} {}", "word ".repeat(100)));
    }
    archive.set_manner(Manner { rotate: true, ..Manner::default() });
    let made = compact(&mut archive, &session, usual()).unwrap();
    assert!(made.done.rotated.is_some() && made.done.written.is_none());
    fixture::assert_sound(&mut archive, &session);
    undone(&mut archive, &session);
    fixture::assert_sound(&mut archive, &session);
}

#[test]
fn what_came_while_the_summary_was_written_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (mut archive, session) = taken_up(folder.path(), "claude", 10);
    // The hook before is told when the context has been read already.
    let store = folder.path().join("store");
    let come = |_: &Value| {
        let mut other = Archive::open(&store, Access::Write, Box::new(Machine)).unwrap();
        other.set_writable(fixture::writable(&store));
        fixture::say(&mut other, &session, "Wait, one more thing.");
        Ok(())
    };
    let made = compact(&mut archive, &session, Compacting { before: Some(&come), ..usual() });
    assert!(made.unwrap().done.operation.is_some());
    let sent = sent(&archive, &session);
    assert_eq!(sent.last().unwrap().2, "Wait, one more thing.");
    assert_eq!(sent.len(), 10);
    assert_eq!(fixture::damage(&archive), [""; 0]);
}

#[test]
fn a_result_that_came_while_its_call_was_summarised_is_not_parted_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let mut archive = fixture::open(&store, 1);
    let session = fixture::session(&mut archive);
    for n in 0..12 {
        fixture::say(
            &mut archive,
            &session,
            &format!("{n} {}", "all work and no play ".repeat(40)),
        );
    }
    let call = |id: &str| Draft::Call {
        id: id.to_owned(),
        name: "Bash".to_owned(),
        input: r#"{"command":"make"}"#.to_owned(),
    };
    let result =
        |id: &str| Draft::Result { id: id.to_owned(), output: "made".to_owned(), error: None };
    let workspace = Workspace::default();
    // The person spoke on, and nobody waits for the result of the call.
    let goes_on = Draft::Message(Speaker::User, "Well?".to_owned());
    verbs::append(&archive.at(&session).unwrap(), &workspace, &[call("c9"), goes_on]).unwrap();
    let comes = |drafts: &[Draft]| {
        let mut other = Archive::open(&store, Access::Write, Box::new(Machine)).unwrap();
        other.set_writable(fixture::writable(&store));
        verbs::append(&other.at(&session).unwrap(), &Workspace::default(), drafts).unwrap();
        Ok(())
    };
    let none = |before| Compacting { keep: Keep::Last(0), before: Some(before), ..usual() };
    // A call that came together with its result is whole.
    let both = |_: &Value| comes(&[call("c10"), result("c10")]);
    assert!(compact(&mut archive, &session, none(&both)).unwrap().done.operation.is_some());
    undone(&mut archive, &session);
    let late = |_: &Value| comes(&[result("c9")]);
    let made = compact(&mut archive, &session, none(&late));
    assert!(matches!(made, Err(OpsError::Overtaken)), "{made:?}");
    assert_eq!(sent(&archive, &session).last().unwrap().2, "made");
    // Where the call is kept, its result is too.
    let made = compact(&mut archive, &session, usual()).unwrap();
    assert!(made.done.operation.is_some());
    assert_eq!(sent(&archive, &session).last().unwrap().2, "made");
    fixture::assert_sound(&mut archive, &session);
}

#[test]
fn a_session_that_went_elsewhere_meanwhile_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (mut archive, session) = taken_up(folder.path(), "claude", 10);
    let store = folder.path().join("store");
    let back = |_: &Value| {
        let mut other = Archive::open(&store, Access::Write, Box::new(Machine)).unwrap();
        other.set_writable(fixture::writable(&store));
        verbs::revert(&other.at(&session).unwrap(), &Workspace::default(), "3", None).unwrap();
        Ok(())
    };
    let made = compact(&mut archive, &session, Compacting { before: Some(&back), ..usual() });
    assert!(matches!(made, Err(OpsError::Overtaken)), "{made:?}");
    assert_eq!(sent(&archive, &session).len(), 12);
}

#[test]
fn the_real_sessions_of_agents_are_compacted_and_brought_back() {
    let Some(corpus) = needs::corpus() else { return };
    let (mut told, mut n_made) = (Vec::new(), 0);
    for path in corpus.sessions() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(&name);
        fs::copy(&path, &file).unwrap();
        let store = folder.path().join("store");
        let mut archive = Archive::open(&store, Access::Write, Box::new(Machine)).unwrap();
        let Ok((session, _)) = verbs::take_up(&mut archive, &file) else { continue };
        let before = sent(&archive, &session);
        let made = match compact(&mut archive, &session, usual()) {
            Ok(made) => made,
            Err(error) => {
                told.push(format!("{name}: {error}"));
                assert_eq!(sent(&archive, &session), before, "{name}");
                continue;
            }
        };
        if made.done.operation.is_none() {
            told.push(format!("{name}: {}", made.nothing.unwrap()));
            continue;
        }
        assert!(made.post_tokens < made.pre_tokens, "{name}: {made:?}");
        let after = sent(&archive, &session);
        undone(&mut archive, &session);
        assert_eq!(sent(&archive, &session), before, "{name}");
        verbs::redo(&archive.at(&session).unwrap()).unwrap();
        assert_eq!(sent(&archive, &session), after, "{name}");
        assert_eq!(fixture::damage(&archive), [""; 0]);
        told.push(format!("{name}: {} to {}", made.pre_tokens, made.post_tokens));
        n_made += 1;
    }
    println!("{}", told.join("\n"));
    assert!(n_made >= 32, "{n_made} of {} were compacted", told.len());
}

/// A summariser that answers what it was given, one after the other.
struct Says<'a>(std::cell::RefCell<Vec<Result<&'a str, ModelError>>>);

impl Summarizer for Says<'_> {
    fn name(&self) -> &'static str {
        "says"
    }

    fn summarize(&self, _request: &SummaryRequest) -> Result<Written, ModelError> {
        let said = self.0.borrow_mut().remove(0)?;
        Ok(Written {
            text: said.to_owned(),
            model: Some("says-1".to_owned()),
            ..Written::default()
        })
    }
}

/// A summary that says enough of these sessions.
const GOOD: &str = "## Request and intent\nEach question is about the parser.\n## Current focus\nThe parser, in /w/0.rs, \
                    /w/1.rs, /w/2.rs, /w/3.rs, /w/4.rs, /w/5.rs and /w/6.rs.\n## Errors and fixes\nnone";

#[test]
fn a_model_writes_the_summary_and_hooks_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let (mut archive, session) = taken_up(folder.path(), "claude", 10);
    let model = Says(vec![Ok(GOOD)].into());
    let told = std::cell::RefCell::new(Vec::new());
    let hook = |value: &Value| {
        told.borrow_mut().push(value.clone());
        Ok(())
    };
    let (by, before, after) = (Writer::Model(&model), Some(&hook as _), Some(&hook as _));
    let made =
        compact(&mut archive, &session, Compacting { by, before, after, ..usual() }).unwrap();
    assert_eq!(made.model.as_deref(), Some("says-1"));
    assert!(made.text.contains("The parser, in"));
    let told = told.into_inner();
    assert_eq!(told[0]["hook"], "before_compaction");
    assert_eq!(told[0]["summarised"], 32);
    assert_eq!(told[1]["operation"], json!(made.done.operation));
    let operations = archive.store().operations(session.key, OperationNumber::ALL).unwrap();
    let detail = operations.last().unwrap().command.to_json();
    let events: Vec<Event> = serde_json::from_value(detail["events"].clone()).unwrap();
    assert!(matches!(events[..], [Event::CompactionStart { .. }, Event::CompactionEnd { .. }]));
}

#[test]
fn what_fails_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (mut archive, session) = taken_up(folder.path(), "claude", 10);
    let before = (sent(&archive, &session), archive.store().state(session.key).unwrap().hash());
    let fault =
        undertext::context::model::Fault::Unreachable { said: "gone".to_owned(), after: None };
    let broken = || Err(ModelError { model: "says".to_owned(), fault: fault.clone() });
    let model = Says(vec![broken(), broken()].into());
    let failed = compact(
        &mut archive,
        &session,
        Compacting { by: Writer::Model(&model), strict: true, ..usual() },
    );
    assert!(matches!(failed, Err(OpsError::Summary { .. })), "{failed:?}");
    let refuse = |_: &Value| Err("not today".to_owned());
    let failed = compact(&mut archive, &session, Compacting { before: Some(&refuse), ..usual() });
    assert!(matches!(failed, Err(OpsError::Hook { .. })));
    // The time is up before the first request.
    let model = Says(vec![Ok("late")].into());
    let late = compact(
        &mut archive,
        &session,
        Compacting { by: Writer::Model(&model), limit: std::time::Duration::ZERO, ..usual() },
    );
    assert!(matches!(late, Err(OpsError::Summary { .. })), "{late:?}");
    let after = (sent(&archive, &session), archive.store().state(session.key).unwrap().hash());
    assert_eq!(before, after);

    // Unless strict, an extract says that it replaces a summary.
    let model = Says(vec![broken()].into());
    let made = compact(&mut archive, &session, Compacting { by: Writer::Model(&model), ..usual() })
        .unwrap();
    assert!(made.fallback.unwrap().contains("gone"));
    assert_eq!(made.kept, 12);
}

#[test]
fn a_flawed_summary_is_asked_for_again_once_and_then_replaced() {
    use crate::model_server::{Reply, Server};
    use undertext::provider::{Api, Endpoint, Http};
    let text = |text: &str| Reply::Text(text.to_owned());
    let flawed = [
        Reply::Cut("## Current focus\nThe par".to_owned()),
        Reply::Cut(String::new()),
        text("<think>\nI should summarise.\n</think>\nThe parser."),
        text("I'm sorry, but I cannot help with that."),
        text("Sure! Here is the summary of the conversation:"),
        text(" "),
        text(&"long ".repeat(90_000)),
    ];
    for (api, flaw) in [Api::OpenAi, Api::Anthropic]
        .into_iter()
        .flat_map(|api| flawed.iter().map(move |flaw| (api, flaw)))
    {
        let server = Server::new(90_000);
        let by = Http::new(Endpoint::new(api, &server.url(), "m")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (mut archive, session) = taken_up(folder.path(), "claude", 10);
        let by_server = || Compacting { by: Writer::Model(&by), ..usual() };
        // The second one is good.
        server.queue([flaw.clone(), text(GOOD)]);
        let made = compact(&mut archive, &session, by_server()).unwrap();
        assert!(
            made.text.contains("The parser, in") && made.fallback.is_none(),
            "{flaw:?}: {made:?}"
        );
        assert_eq!(server.asked().len(), 2);
        assert!(server.asked()[1].body.to_string().contains("could not be used"));
        undone(&mut archive, &session);
        // The second one is as bad.
        server.queue([flaw.clone(), flaw.clone()]);
        let strict = compact(&mut archive, &session, Compacting { strict: true, ..by_server() });
        assert!(matches!(strict, Err(OpsError::Summary { .. })), "{flaw:?}: {strict:?}");
        server.queue([flaw.clone(), flaw.clone()]);
        let made = compact(&mut archive, &session, by_server()).unwrap();
        assert!(made.fallback.is_some(), "{flaw:?}: {made:?}");
        assert_eq!(server.asked().len(), 6, "once, and once again");
        assert_eq!(fixture::damage(&archive), [""; 0]);
    }
}

#[test]
fn what_a_summary_no_longer_names_is_kept_with_it() {
    for agent in AGENTS {
        let folder = tempfile::tempdir().unwrap();
        let (mut archive, session) = taken_up(folder.path(), agent, 10);
        let says = "## Request and intent\nEach question is about all work and no play.\n## Current focus\n/w/0.rs, /w/1.rs, 2.rs, /w/4.rs, /w/5.rs and /w/6.rs\n## Errors and fixes";
        let model = Says(vec![Ok(says)].into());
        let made = compact(
            &mut archive,
            &session,
            Compacting { by: Writer::Model(&model), appendix: false, ..usual() },
        )
        .unwrap();
        let [boundary] = &verbs::audit_boundaries(&archive.at(&session).unwrap()).unwrap()[..]
        else {
            panic!("{agent}")
        };
        assert_eq!((&boundary.losses, boundary.undone), (&made.losses, false));
        if agent == "claude" {
            let paths = boundary.losses.iter().find(|loss| loss.kind.as_str() == "paths").unwrap();
            assert_eq!((paths.of, paths.kept), (8, 6), "{paths:?}");
            assert!(paths.lost.contains(&"/w/3.rs".to_owned()));
        }
        undone(&mut archive, &session);
        assert!(verbs::audit_boundaries(&archive.at(&session).unwrap()).unwrap()[0].undone);
        assert_eq!(fixture::damage(&archive), [""; 0]);
    }
}

#[test]
fn a_summary_says_it_is_one_as_codex_tells_it() {
    let folder = tempfile::tempdir().unwrap();
    let (mut archive, session) = taken_up(folder.path(), "codex", 10);
    compact(&mut archive, &session, usual()).unwrap();
    let file = fs::read_to_string(folder.path().join("s/rollout-2026-08-01T10-00-00-s.jsonl"));
    let file = file.unwrap();
    let records = file.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let compacted: Vec<Value> = records.filter(|record| record["type"] == "compacted").collect();
    let [compacted] = &compacted[..] else { panic!("{compacted:?}") };
    let payload = &compacted["payload"];
    let summary = &payload["replacement_history"][0]["content"][0]["text"];
    assert!(summary.as_str().unwrap().starts_with(SUMMARY), "{summary}");
    assert_eq!(payload["message"], *summary);
}

/// A thread in which Codex compacted once, and a tool answered at length since.
fn compacted_thread() -> Rollout {
    let mut rollout = Rollout { bytes: String::new(), next: 0, has_ordinals: false };
    rollout.meta(THREAD, &json!({ "history_mode": "legacy" }));
    for n in 0..6 {
        rollout.turn(&format!("question {n}"));
    }
    let said = |words: &str| json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": words }] });
    let summary = format!("{SUMMARY}They asked.");
    let history = json!([said("question 5"), said(&summary)]);
    rollout.line("compacted", json!({ "message": summary, "replacement_history": history }));
    for n in 6..40 {
        rollout.turn(&format!("question {n}"));
    }
    rollout.long_answer();
    rollout.turn("question 40");
    rollout
}

#[test]
fn a_context_that_is_said_again_is_no_compaction() {
    let home = Home::new();
    let path = home.write(10, THREAD, &compacted_thread());
    let store = home.0.path().join("store");
    let mut archive = Archive::open(&store, Access::Write, Box::new(Machine)).unwrap();
    let (session, _) = verbs::take_up(&mut archive, &path).unwrap();
    let told = |archive: &Archive| {
        let (filter, asked) = (SessionFilter::default(), asked(200_000));
        let listed =
            verbs::list(archive, &filter, &Having::default(), Order::Newest, &asked).unwrap();
        let boundaries = verbs::audit_boundaries(&archive.at(&session).unwrap()).unwrap();
        let by_agent = boundaries.iter().filter(|one| one.operation.is_none()).count();
        let earlier = verbs::audit(&archive.at(&session).unwrap()).unwrap().earlier;
        let earlier = earlier.iter().filter(|one| one.earlier.how == How::Compacted).count();
        (listed.sessions[0].compactions, by_agent, earlier)
    };
    assert_eq!(told(&archive), (1, 1, 1));
    let before = sent(&archive, &session);
    let bound = Bound::of(Limit::of_chars(5_000));
    let truncated = verbs::truncate(&archive.at(&session).unwrap(), &bound).unwrap();
    assert!(
        truncated.done.operation.is_some() && truncated.done.written.is_some(),
        "{truncated:?}"
    );
    assert_eq!(told(&archive), (1, 1, 1));
    let origins: Vec<Origin> =
        sent(&archive, &session).iter().map(|(origin, ..)| *origin).collect();
    assert_eq!(origins[..2], [Origin::Kept, Origin::Summary]);
    assert!(origins[2..].iter().all(|origin| *origin == Origin::Replayed), "{origins:?}");

    // What was said since the agent's compaction is summarised.
    let made = compact(&mut archive, &session, usual()).unwrap();
    assert!(made.done.operation.is_some(), "{made:?}");
    assert_eq!(told(&archive), (2, 1, 1));
    let again = compact(&mut archive, &session, usual()).unwrap();
    assert_eq!(again.nothing, Some(Nothing::NothingNew));
    undone(&mut archive, &session);
    undone(&mut archive, &session);
    assert_eq!(told(&archive), (1, 1, 1));
    let words = |sent: Vec<(Origin, Role, String)>| -> Vec<(Role, String)> {
        sent.into_iter().map(|(_, role, words)| (role, words)).collect()
    };
    assert_eq!(words(sent(&archive, &session)), words(before));
    assert_eq!(fixture::damage(&archive), [""; 0]);
}

#[test]
fn what_is_said_again_is_no_other_turn() {
    for agent in AGENTS {
        let folder = tempfile::tempdir().unwrap();
        let name =
            if agent == "kimi" { "context.jsonl" } else { "rollout-2026-08-01T10-00-00-s.jsonl" };
        let long = format!("result 0 {}", "word ".repeat(2_000));
        let records: Vec<Value> = records(agent, 4)
            .iter()
            .map(|one| serde_json::from_str(&one.to_string().replace("result 0 ", &long)).unwrap())
            .collect();
        let (mut archive, session) = in_store(folder.path(), &folder.path().join(name), &records);
        let turns = |archive: &Archive, after: &str| {
            assert_eq!(archive.store().card(session.key).unwrap().turns, 4, "{agent}, {after}");
            // A rebuild counts as many.
            assert_eq!(fixture::damage(archive), [""; 0], "{agent}, {after}");
        };
        turns(&archive, "import");
        let bound = Bound::of(Limit::of_chars(3_000));
        let truncated = verbs::truncate(&archive.at(&session).unwrap(), &bound).unwrap();
        assert!(truncated.done.operation.is_some(), "{agent}: {truncated:?}");
        turns(&archive, "truncate");
        undone(&mut archive, &session);
        turns(&archive, "undo");
        assert!(
            compact(&mut archive, &session, usual()).unwrap().done.operation.is_some(),
            "{agent}"
        );
        turns(&archive, "compact");
        undone(&mut archive, &session);
        verbs::revert(&archive.at(&session).unwrap(), &Workspace::default(), "2", None).unwrap();
        turns(&archive, "revert");
        verbs::switch(&archive.at(&session).unwrap(), "main.1").unwrap();
        turns(&archive, "switch");
    }
}
