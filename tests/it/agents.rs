//! Whether pi, Codex and Kimi CLI sessions read as their own agents read them.
//!
//! The shapes here are made by hand. What pi's own reader found in real sessions is compared too, and a table is printed.

use std::fs;

use serde_json::{Value, json};
use undertext::{
    json::Raw,
    model::{Block, EntryNumber, Kind, Message, Record, Role, SentAs, Thinking, Timestamp, Usage},
    wire::{
        Codex, Draft, FORMATS, Format, Identify as _, Invalid, Kimi, Link, Pi, Read as _, Setting,
        Speaker, Walk as _, Write as _, detect, jsonl::Reader,
    },
};

use crate::{fixture::number, graph::FileGraph, needs};

fn file(format: &'static dyn Format, records: &[Value]) -> FileGraph {
    let lines: Vec<String> = records.iter().map(|record| record.to_string() + "\n").collect();
    FileGraph::read(format, lines.concat().as_bytes())
}

fn setting(parent: Option<&str>) -> Setting {
    Setting {
        session: "s".into(),
        parent: parent.map(str::to_owned),
        uuid: "new".into(),
        time: Timestamp::parse("2026-08-01T10:00:00.000Z").unwrap(),
        folder: "/w".into(),
        git_branch: None,
        nearby: None,
        is_nameless: false,
        since: None,
        tool: None,
        call: None,
    }
}

#[test]
fn every_format_says_alike_why_it_takes_no_input_of_a_call() {
    let draft = Draft::Call { id: "c".into(), name: "read".into(), input: "{".into() };
    let why = "the tool's input is not JSON: EOF while parsing an object at line 1 column 1";
    for format in FORMATS {
        let written = format.write(&draft, &setting(Some("b")));
        assert_eq!(written, Err(Invalid(why.into())), "{}", format.name());
    }
}

/// Agents that parse whole lines find nothing of a line that holds more than one record, or a stub before one.
#[test]
fn what_shares_its_line_is_not_read() {
    let said = |name: &str, words: &str| match name {
        "pi" => {
            let parent = words.bytes().last().and_then(|last| (last > b'1').then_some(last - 1));
            let parent = parent.map(|parent| format!("id{}", char::from(parent)));
            let id = format!("id{}", words.chars().last().unwrap());
            let message = json!({ "role": "user", "content": words });
            json!({ "type": "message", "id": id, "parentId": parent, "message": message })
        }
        "codex" => json!({ "timestamp": "", "type": "response_item", "payload": {
            "type": "message", "role": "user", "content": [{ "type": "input_text", "text": words }] } }),
        _ => json!({ "role": "user", "content": words }),
    };
    let begin = |name: &str| match name {
        "pi" => {
            json!({ "type": "session", "version": 3, "id": "s", "cwd": "/w" }).to_string() + "\n"
        }
        "codex" => {
            json!({ "timestamp": "", "type": "session_meta", "payload": { "id": "s" } }).to_string()
                + "\n"
        }
        _ => String::new(),
    };
    let formats: [&'static dyn Format; 3] = [&Pi, &Codex, &Kimi];
    for format in formats {
        let name = format.name();
        let [one, two, three, four] =
            ["say 1", "say 2", "say 3", "say 4"].map(|words| said(name, words).to_string());
        let found = |bytes: String| {
            let file = FileGraph::read(format, (begin(name) + &bytes).as_bytes());
            file.words(&file.context())
        };
        // pi goes by parents, and finds none behind a record that it did not read.
        let expected = if name == "pi" { "say 4" } else { "say 1say 4" };
        for shared in [
            format!("{one}\n{two}{three}\n{four}\n"),
            format!("{one}\n{{\"type\":\"mes{two}\n{{\"a{three}\n{four}\n"),
            format!("{one}\n\u{feff}{two}{three}\n2026 WARN {three}\n{four}\n"),
        ] {
            let words = found(shared.clone()).replace(['\n', ' '], "");
            assert_eq!(words, expected.replace(' ', ""), "{name}: {shared}");
        }
        assert_eq!(found(format!("{one}\n{two}\n")).matches("say").count(), 2, "{name}");
        // pi passes over a byte order mark.
        let marked = found(format!("{one}\n\u{feff}{two}\n")).matches("say").count();
        assert_eq!(marked, if name == "pi" { 2 } else { 1 }, "{name}");
    }
}

mod pi {
    use super::*;

    fn header() -> Value {
        json!({ "type": "session", "version": 3, "id": "s", "timestamp": "2026-08-01T10:00:00.000Z", "cwd": "/w" })
    }

    fn entry(kind: &str, id: &str, parent: Option<&str>, mut fields: Value) -> Value {
        let mut record = json!({ "type": kind, "id": id, "parentId": parent, "timestamp": "2026-08-01T10:00:01.000Z" });
        record.as_object_mut().unwrap().append(fields.as_object_mut().unwrap());
        record
    }

    fn user(id: &str, parent: Option<&str>) -> Value {
        entry("message", id, parent, json!({ "message": { "role": "user", "content": id } }))
    }

    fn answer(id: &str, parent: Option<&str>) -> Value {
        let content = json!([{ "type": "text", "text": id }]);
        entry(
            "message",
            id,
            parent,
            json!({ "message": { "role": "assistant", "content": content } }),
        )
    }

    fn compaction(id: &str, parent: &str, first: &str) -> Value {
        entry("compaction", id, Some(parent), json!({ "summary": id, "firstKeptEntryId": first }))
    }

    fn turns() -> Vec<Value> {
        vec![
            header(),
            user("a", None),
            answer("b", Some("a")),
            user("c", Some("b")),
            answer("d", Some("c")),
        ]
    }

    fn with(more: &[Value]) -> FileGraph {
        file(&Pi, &[turns(), more.to_vec()].concat())
    }

    #[test]
    fn the_last_line_is_the_head_whatever_its_type() {
        let file = with(&[
            user("x", Some("b")),
            entry("label", "l", Some("x"), json!({ "targetId": "d", "label": "off" })),
            header(),
        ]);
        assert_eq!(file.head().unwrap(), 7);
        assert_eq!(file.path(number(7)), [2, 3, 6, 7]);
        assert_eq!(file.sent(), "a b x");
        assert_eq!(file.left(), "d");
    }

    #[test]
    fn a_label_on_an_old_entry_ends_no_branch() {
        let label = |id, parent| entry("label", id, Some(parent), json!({ "targetId": "a" }));
        let file =
            with(&[label("l", "a"), label("m", "l"), user("e", Some("d")), answer("f", Some("m"))]);
        assert_eq!(file.left(), "e");
    }

    #[test]
    fn a_compaction_keeps_from_its_first_kept_entry_on() {
        let tail = [user("e", Some("k")), answer("f", Some("e"))];
        let sent = |first| with(&[&[compaction("k", "d", first)][..], &tail].concat()).sent();
        assert_eq!(sent("c"), "k c d e f");
        assert_eq!(sent("nowhere"), "k e f");
        assert_eq!(sent("k"), "k e f");
        let twice = with(&[
            compaction("k", "d", "c"),
            user("e", Some("k")),
            compaction("l", "e", "c"),
            user("f", Some("l")),
        ]);
        assert_eq!(twice.sent(), "l c d e f");
    }

    #[test]
    fn only_the_conversation_is_sent() {
        let file = with(&[
            entry("custom", "p", Some("d"), json!({ "customType": "x", "data": 1 })),
            entry("model_change", "q", Some("p"), json!({ "provider": "p", "modelId": "m" })),
            entry("branch_summary", "r", Some("q"), json!({ "fromId": "a", "summary": "left" })),
            entry("branch_summary", "s", Some("r"), json!({ "fromId": "a", "summary": "" })),
            entry(
                "message",
                "s",
                Some("r"),
                json!({ "message": { "role": "bashExecution", "command": "ls", "excludeFromContext": true } }),
            ),
            entry(
                "custom_message",
                "t",
                Some("s"),
                json!({ "customType": "x", "content": "told", "display": true }),
            ),
            entry("context_edit", "u", Some("t"), json!({ "targetId": "b", "replacement": null })),
        ]);
        let left = "The following is a summary of a branch that this conversation came back from:";
        assert_eq!(file.sent(), format!("a c d {left}\n\n<summary>\nleft</summary> told"));
        assert_eq!(file.records[10].kind, Kind::Note);
    }

    #[test]
    fn what_an_extension_wrote_oddly_is_sent_as_pi_sends_it() {
        // Without a content nothing is said, and a summary in a message of its own is the summary alone.
        let left = json!({ "role": "branchSummary", "content": "no", "summary": "left" });
        let file = with(&[
            entry("custom_message", "e", Some("d"), json!({ "customType": "x", "content": null })),
            entry("message", "f", Some("e"), json!({ "message": left })),
        ]);
        let sent = file.sent();
        assert!(sent.starts_with("a b c d ") && sent.ends_with("\nleft</summary>"), "{sent}");
        // A summary can be taken out too; what it keeps is still what is kept.
        let file = with(&[
            compaction("k", "d", "c"),
            entry("context_edit", "e", Some("k"), json!({ "targetId": "k", "replacement": null })),
        ]);
        assert_eq!(file.sent(), "c d");
        // Of sections of one name, which a mask may have made, the last one is said.
        let line = r#"{"type":"message","id":"e","parentId":"d","message":{"role":"system","content":"You are pi.",
            "sections":{"***":"a","rules":"b","***":"c"}}}"#;
        let said = Pi.messages(Raw::object(line.as_bytes()).unwrap()).remove(0);
        assert_eq!(said.text(), "You are pi.\n\nc\n\nb");
    }

    #[test]
    fn broken_parents_are_reported_and_end_no_walk_badly() {
        let repairs = |file: &FileGraph| {
            let path = Pi.path(file, file.head().unwrap(), usize::MAX).unwrap();
            (
                path.entries.into_iter().map(EntryNumber::get).collect::<Vec<_>>(),
                path.repairs
                    .iter()
                    .map(|repair| (repair.entry.get(), repair.what))
                    .collect::<Vec<_>>(),
            )
        };
        let missing = with(&[answer("x", Some("nowhere"))]);
        assert_eq!(repairs(&missing), (vec![6], vec![(6, "its parent is not in the file")]));
        let itself = with(&[answer("x", Some("x"))]);
        assert_eq!(repairs(&itself), (vec![6], vec![(6, "it is its own parent")]));
        let twice = with(&[answer("b", Some("d"))]);
        assert_eq!(repairs(&twice), (vec![2, 3, 4, 5, 6], vec![(4, "its parents form a cycle")]));
        assert!(Pi.leaves(&twice).unwrap().is_empty());
        let each_other = file(&Pi, &[header(), user("a", Some("b")), answer("b", Some("a"))]);
        assert_eq!(repairs(&each_other).0, [2, 3]);
    }

    #[test]
    fn version_1_is_a_chain_in_file_order() {
        let message = |role: &str, text: &str| {
            let message = json!({ "role": role, "content": text });
            json!({ "type": "message", "timestamp": "2026-08-01T10:00:01.000Z", "message": message }).to_string()
        };
        let lines = [
            json!({ "type": "session", "id": "s", "timestamp": "2026-08-01T10:00:00.000Z", "cwd": "/w" }).to_string(),
            message("user", "a"),
            "{broken".into(),
            message("assistant", "b"),
            message("user", "c"),
            json!({ "type": "compaction", "timestamp": "2026-08-01T10:00:01.000Z", "summary": "k", "firstKeptEntryIndex": 2 })
                .to_string(),
            message("hookMessage", "d"),
        ];
        let file = FileGraph::read(&Pi, (lines.join("\n") + "\n").as_bytes());
        assert_eq!(file.path(file.head().unwrap()), [2, 4, 5, 6, 7]);
        assert_eq!(file.sent(), "k b c d");
        assert!(file.left().is_empty());
    }

    #[test]
    fn version_1_is_a_chain_whatever_its_entries_name() {
        let mut header = header();
        header.as_object_mut().unwrap().remove("version");
        let turns = [user("a", None), answer("b", None), user("c", Some("nowhere"))];
        assert_eq!(file(&Pi, &[vec![header], turns.to_vec()].concat()).sent(), "a b c");
        // What has no id in a later version follows nothing, and nothing leads back from it.
        let mut nameless = user("d", Some("c"));
        nameless.as_object_mut().unwrap().retain(|key, _| key != "id" && key != "parentId");
        assert_eq!(with(&[nameless]).sent(), "d");
    }

    #[test]
    fn an_answer_that_was_broken_off_is_not_sent() {
        let ended = |id, parent, reason: &str| {
            let content = json!([{ "type": "text", "text": id }]);
            let said = json!({ "role": "assistant", "content": content, "stopReason": reason });
            entry("message", id, Some(parent), json!({ "message": said }))
        };
        let file = with(&[
            ended("e", "d", "aborted"),
            ended("f", "e", "error"),
            ended("g", "f", "length"),
            user("h", Some("g")),
        ]);
        assert_eq!(file.sent(), "a b c d g h");
        assert_eq!(file.path(file.head().unwrap()).len(), 8);
    }

    #[test]
    fn a_command_of_the_user_is_told_as_pi_tells_it() {
        let told = |mut fields: Value| {
            let said = json!({ "role": "bashExecution", "command": "ls" });
            fields.as_object_mut().unwrap().append(said.clone().as_object_mut().unwrap());
            let record = entry("message", "e", Some("d"), json!({ "message": fields })).to_string();
            Pi.messages(Raw::object(record.as_bytes()).unwrap()).remove(0).text()
        };
        let cut =
            json!({ "output": "a", "exitCode": 0, "truncated": true, "fullOutputPath": "/t" });
        assert_eq!(told(cut), "Ran `ls`\n```\na\n```\n\n[Output truncated. Full output: /t]");
        assert_eq!(
            told(
                json!({ "output": "", "exitCode": 2, "truncated": false, "fullOutputPath": "/t" })
            ),
            "Ran `ls`\n(no output)\n\nCommand exited with code 2"
        );
        assert_eq!(
            told(json!({ "output": "a", "exitCode": null, "cancelled": true })),
            "Ran `ls`\n```\na\n```\n\n(command cancelled)"
        );
    }

    #[test]
    fn an_answer_names_the_model_with_which_pi_goes_on() {
        let last = json!({
            "role": "assistant", "content": [], "api": "anthropic-messages", "provider": "anthropic",
            "model": "claude-opus-5", "usage": { "input": 3, "cacheRead": 90, "totalTokens": 100 },
        });
        let last = entry("message", "b", Some("a"), json!({ "message": last })).to_string();
        let setting = Setting {
            nearby: Some(last.into_bytes()),
            since: Some(396),
            tool: Some("read".into()),
            ..setting(Some("b"))
        };
        let written = |draft: Draft| -> Value {
            let line = Pi.write(&draft, &setting).unwrap();
            serde_json::from_slice::<Value>(&line).unwrap()["message"].take()
        };
        let said = written(Draft::Message(Speaker::Assistant, "yes".into()));
        for (key, value) in
            [("api", "anthropic-messages"), ("provider", "anthropic"), ("model", "claude-opus-5")]
        {
            assert_eq!(said[key], value);
        }
        assert_eq!(
            (&said["stopReason"], &said["usage"]["totalTokens"]),
            (&json!("stop"), &json!(207))
        );
        let call = |id: &str| Block::Call {
            id: id.into(),
            name: "read".into(),
            input: "{}".into(),
            signature: None,
        };
        let usage = Usage { input: 7, output: 2, ..Usage::default() };
        let answer = Message {
            model: Some("other".into()),
            usage: Some(usage),
            ..Message::new(Role::Assistant, vec![call("c"), call("d")])
        };
        let said = written(Draft::Answer(Box::new(answer)));
        assert_eq!(
            (&said["stopReason"], &said["usage"]["totalTokens"]),
            (&json!("toolUse"), &json!(9))
        );
        assert_eq!(
            (&said["model"], &said["responseModel"]),
            (&json!("claude-opus-5"), &json!("other"))
        );
        let calls: Vec<&Value> =
            said["content"].as_array().unwrap().iter().map(|block| &block["id"]).collect();
        assert_eq!(calls, ["c", "d"]);
        let result = Draft::Result { id: "c".into(), output: "out".into(), error: None };
        assert_eq!(written(result)["toolName"], "read");
    }

    #[test]
    fn figures_too_large_for_a_sum_are_summed_to_the_largest() {
        let used = json!({ "input": u64::MAX, "output": 1, "cacheRead": u64::MAX });
        let last = json!({ "role": "assistant", "content": [], "usage": used });
        let last = entry("message", "b", Some("a"), json!({ "message": last })).to_string();
        let nearby = Some(last.into_bytes());
        let setting = Setting { nearby, since: Some(4), ..setting(Some("b")) };
        let usage = Some(Usage { input: u64::MAX, cache_write: 1, ..Usage::default() });
        let answer = Message { usage, ..Message::new(Role::Assistant, Vec::new()) };
        for draft in
            [Draft::Message(Speaker::Assistant, "yes".into()), Draft::Answer(Box::new(answer))]
        {
            let line = Pi.write(&draft, &setting).unwrap();
            let said = serde_json::from_slice::<Value>(&line).unwrap();
            assert_eq!(said["message"]["usage"]["totalTokens"], u64::MAX, "{said}");
        }
    }

    #[test]
    fn a_branch_is_one_entry_that_names_the_target() {
        let mut file = with(&[]);
        for note in [None, Some("go left")] {
            for line in file.way(Some(number(3)), note, &setting(Some("b"))).unwrap() {
                assert!(Pi.knows(&Raw::object(&line).unwrap().gathered()));
                file.push(&line);
            }
            assert_eq!(file.sent(), ["a b", note.unwrap_or_default()].join(" ").trim());
        }
        assert_eq!(file.left(), "d");
    }

    #[test]
    fn a_written_record_reads_as_what_was_said() {
        let check = |draft: Draft, kind: Kind| {
            let line = Pi.write(&draft, &setting(Some("b"))).unwrap();
            let record = Raw::object(&line).unwrap();
            let envelope = Pi.envelope(record);
            assert_eq!((envelope.kind, envelope.parent), (kind, Link::Named("b".into())));
            assert_eq!(envelope.name.as_deref(), Some("new"));
            Pi.messages(record).remove(0)
        };
        assert_eq!(check(Draft::Message(Speaker::User, "hi".into()), Kind::User).text(), "hi");
        assert_eq!(check(Draft::Note("n".into()), Kind::Note).text(), "n");
        let call = Draft::Call { id: "c".into(), name: "f".into(), input: r#"{"a":1}"#.into() };
        let input = r#"{"a":1}"#.into();
        assert_eq!(
            check(call, Kind::Assistant).blocks,
            [Block::Call { id: "c".into(), name: "f".into(), input, signature: None }]
        );
        let result =
            Draft::Result { id: "c".into(), output: String::new(), error: Some("no".into()) };
        let error = Block::Result {
            id: "c".into(),
            name: Some("unknown".into()),
            blocks: vec![Block::Text("no".into())],
            error: true,
        };
        assert_eq!(check(result, Kind::Result).blocks, [error]);
    }

    /// What pi 0.58.3 found: the leaf and the branch counted in entries without headers, the messages of the context.
    const FOUND: [(&str, usize, usize, usize); 15] = [
        ("bom-crlf", 1, 2, 2),
        ("comp", 9, 10, 7),
        ("comp-missing-first", 4, 5, 3),
        ("comp-self-first", 4, 5, 3),
        ("comp-two", 8, 9, 6),
        ("corrupt-mid", 3, 2, 2),
        ("labels", 7, 5, 4),
        // It holds 914 and sends no answer that was broken off.
        ("large-session", 1017, 1018, 892),
        ("orphan", 1, 1, 1),
        ("pair1", 12, 13, 11),
        ("torn-tail", 1, 2, 2),
        ("two-headers", 2, 3, 3),
        // 0.58.3 does not know `context_edit` and sends 2.
        ("unknown-type", 4, 5, 1),
        ("v1", 3, 4, 1),
        ("v2hook", 1, 2, 2),
    ];

    #[test]
    fn real_sessions_read_as_pi_reads_them() {
        let Some(corpus) = needs::corpus() else { return };
        let pi = |name: &str| {
            FileGraph::read(&Pi, &fs::read(corpus.path(format!("pi/{name}.jsonl"))).unwrap())
        };
        for (name, leaf, branch, messages) in FOUND {
            let file = pi(name);
            let head = file.head().unwrap();
            let is_entry = |record: &&Record| {
                record.kind != Kind::Opaque
                    && record.hint.first().is_none_or(|flags| flags & 1 == 0)
            };
            let before =
                file.records.iter().filter(is_entry).take_while(|record| record.n < head).count();
            let found = (before, file.path(head).len(), file.context().len());
            println!("pi/{name}: leaf {before}, branch {}, context {}", found.1, found.2);
            assert_eq!(found, (leaf, branch, messages), "{name}");
        }
        for name in ["cycle-self", "dup-id", "noheader"] {
            let file = pi(name);
            assert!(!file.context().is_empty(), "{name}");
        }
    }
}

mod codex {
    use super::*;

    const ENVIRONMENT: &str = "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>";

    fn line(kind: &str, payload: &Value) -> Value {
        json!({ "timestamp": "2026-08-01T10:00:00.000Z", "type": kind, "payload": payload })
    }

    fn event(kind: &str) -> Value {
        line("event_msg", &json!({ "type": kind }))
    }

    fn words(role: &str, text: &str) -> Value {
        json!({ "type": "message", "role": role, "content": [{ "type": "input_text", "text": text }] })
    }

    fn says(role: &str, text: &str) -> Value {
        line("response_item", &words(role, text))
    }

    fn meta(id: &str) -> Value {
        line("session_meta", &json!({ "id": id, "cwd": "/w" }))
    }

    fn turn(n: u32) -> Vec<Value> {
        vec![
            line("event_msg", &json!({ "type": "task_started", "turn_id": format!("t{n}") })),
            line("turn_context", &json!({ "turn_id": format!("t{n}") })),
            says("user", &format!("q{n}")),
            event("user_message"),
            says("assistant", &format!("a{n}")),
            event("task_complete"),
        ]
    }

    fn rolled_back(turns: u64) -> Vec<Value> {
        vec![line("event_msg", &json!({ "type": "thread_rolled_back", "num_turns": turns }))]
    }

    fn compacted(summary: &str, history: Option<&[&str]>) -> Vec<Value> {
        let mut payload = json!({ "message": summary });
        if let Some(history) = history {
            payload["replacement_history"] =
                history.iter().map(|text| words("user", text)).collect();
        }
        vec![line("compacted", &payload), event("context_compacted")]
    }

    fn rollout(parts: &[Vec<Value>]) -> FileGraph {
        file(&Codex, &[vec![meta("s")], parts.concat()].concat())
    }

    fn check(parts: &[Vec<Value>], sent: &str, leaves: &str) {
        let file = rollout(parts);
        assert_eq!(file.sent(), sent);
        assert_eq!(file.left(), leaves);
        // A limit gives the end of the same path.
        let path = file.path(file.head().unwrap());
        for limit in 0..path.len() {
            let last = Codex.path(&file, file.head().unwrap(), limit).unwrap().entries;
            assert_eq!(last, path[path.len() - limit..]);
        }
    }

    // Each of these was resumed by Codex 0.169.0 itself, and this is what it sent.

    #[test]
    fn a_rollback_drops_the_newest_turns() {
        let turns = [turn(1), turn(2), turn(3)].concat();
        check(&[turns.clone(), rolled_back(1)], "q1 a1 q2 a2", "a3");
        check(&[turns.clone(), rolled_back(2), turn(4)], "q1 a1 q4 a4", "a3");
        check(
            &[turns.clone(), rolled_back(1), turn(4), rolled_back(2), turn(5)],
            "q1 a1 q5 a5",
            "a3 a4",
        );
        check(
            &[turns, rolled_back(1), rolled_back(1), vec![says("user", "note")]],
            "q1 a1 note",
            "a3",
        );
    }

    #[test]
    fn what_prepares_a_turn_goes_with_it() {
        const RULES: &str = "<permissions instructions>";
        let prepares = || vec![says("developer", RULES), says("user", ENVIRONMENT)];
        let first = format!("{RULES} {ENVIRONMENT}");
        check(
            &[prepares(), turn(1), prepares(), turn(2), rolled_back(1)],
            &format!("{first} q1 a1"),
            "a2",
        );
        check(&[prepares(), turn(1), rolled_back(5), turn(2)], &format!("{first} q2 a2"), "a1");
        // What prepared a turn before which no other was left stays like what prepared the first.
        let again = says("user", "<environment_context>2</environment_context>");
        check(
            &[prepares(), turn(1), rolled_back(1), vec![again.clone()], turn(2), rolled_back(1)],
            &format!("{first} <environment_context>2</environment_context>"),
            "a1 a2",
        );
        check(
            &[prepares(), turn(1), turn(2), rolled_back(1), vec![again], turn(3), rolled_back(1)],
            &format!("{first} q1 a1"),
            "a2 a3",
        );
        // Rules of somebody's own stay, and so does what stands before them.
        let own = vec![says("user", ENVIRONMENT), says("developer", "own"), prepares().remove(0)];
        check(&[turn(1), own, turn(2), rolled_back(1)], &format!("q1 a1 {ENVIRONMENT} own"), "a2");
    }

    #[test]
    fn a_history_goes_with_its_task() {
        let base = || compacted("", Some(&["h", "sum"]));
        let asked = |text: &str| vec![says("user", text)];
        let start = |n: &str| line("event_msg", &json!({ "type": "task_started", "turn_id": n }));
        let task = |n: &str, parts: Vec<Value>| {
            let end = line("event_msg", &json!({ "type": "task_complete", "turn_id": n }));
            [vec![start(n)], parts, vec![end]].concat()
        };
        let two = || [turn(1), turn(2)].concat();
        let sent =
            |parts: &[Vec<Value>], expected: &str| assert_eq!(rollout(parts).sent(), expected);
        // A message outside of a task is part of the one before, with the history in it.
        sent(&[two(), base(), asked("y"), rolled_back(1)], "q1 a1 q2 a2");
        sent(&[two(), base(), task("y", asked("y")), rolled_back(1)], "h sum");
        sent(&[two(), base(), rolled_back(1)], "q1 a1");
        sent(&[two(), task("c", base()), rolled_back(1)], "q1 a1");
        sent(&[two(), rolled_back(1), base()], "q1 a1");
        sent(&[two(), rolled_back(1), task("c", base())], "h sum");
        sent(&[two(), rolled_back(1), task("c", base()), asked("y"), rolled_back(1)], "q1 a1");
        // In the middle of a turn.
        let mid = || [vec![start("m")], asked("q2"), base(), vec![says("assistant", "x")]].concat();
        sent(&[turn(1), mid(), rolled_back(1)], "q1 a1");
        sent(&[turn(1), mid(), asked("y"), rolled_back(1)], "q1 a1 q2 x");
        // Two messages are two turns, and one task.
        let both = || task("b", [asked("y"), asked("z")].concat());
        sent(&[two(), base(), both(), rolled_back(1)], "h sum y");
        sent(&[two(), base(), both(), rolled_back(2)], "q1 a1 q2 a2");
        // Where no task starts, the whole file is one.
        let flat = || [asked("q1"), vec![says("assistant", "a1")], asked("q2")].concat();
        sent(&[flat(), base(), asked("y"), rolled_back(1)], "q1 a1 q2");
        sent(&[flat(), task("c", base()), task("y", asked("y")), rolled_back(1)], "h sum");
        sent(&[flat(), task("c", base()), base(), asked("y"), rolled_back(1)], "q1 a1 q2");
    }

    #[test]
    fn a_rollback_without_turns_drops_nothing() {
        check(&[vec![says("developer", "rules")], rolled_back(1)], "rules", "");
        check(&[vec![says("developer", "rules")], rolled_back(1), turn(1)], "rules q1 a1", "");
    }

    #[test]
    fn a_rollback_over_all_turns_drops_a_history_too() {
        let base = || compacted("sum", Some(&["h", "sum"]));
        let sent = |parts: &[Vec<Value>]| rollout(parts).sent();
        assert_eq!(sent(&[base(), rolled_back(1), turn(1)]), "q1 a1");
        assert_eq!(sent(&[base(), turn(1), rolled_back(9)]), "");
        let environment = || vec![says("user", ENVIRONMENT)];
        assert_eq!(
            sent(&[environment(), base(), environment(), rolled_back(3), turn(1)]),
            format!("{ENVIRONMENT} {ENVIRONMENT} q1 a1")
        );
    }

    #[test]
    fn fragments_are_no_turns() {
        let aborted = says("user", "<turn_aborted>\nby the user\n</turn_aborted>");
        let second = vec![says("user", "q2"), aborted, event("turn_aborted")];
        check(&[turn(1), second, turn(3), rolled_back(1)], "q1 a1 q2", "a3");
        let agents =
            says("user", "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>\n");
        assert_eq!(rollout(&[vec![agents]]).records[1].kind, Kind::Note);
    }

    #[test]
    fn a_second_message_in_a_turn_is_dropped_alone() {
        let steered = vec![
            says("user", "q2"),
            says("assistant", "a2"),
            says("user", "q3"),
            says("assistant", "a3"),
        ];
        check(&[turn(1), steered, rolled_back(1)], "q1 a1 q2 a2", "a3");
    }

    #[test]
    fn the_newest_history_that_survives_is_the_base() {
        let base = || compacted("", Some(&["q1", "sum"]));
        check(&[turn(1), base(), turn(2), turn(3)], "q1 sum q2 a2 q3 a3", "");
        check(&[turn(1), base(), turn(2), turn(3), rolled_back(2)], "q1 sum", "a3");
        check(&[turn(1), turn(2), base(), turn(3), rolled_back(2)], "q1 a1", "a3");
        let newer = compacted("", Some(&["newer"]));
        check(&[turn(1), base(), turn(2), newer, turn(3), rolled_back(2)], "q1 sum", "a3");
        let mid = vec![says("user", "q2"), says("assistant", "x")];
        check(
            &[turn(1), mid, base(), vec![says("assistant", "a2")], rolled_back(1)],
            "q1 a1",
            "a2",
        );
    }

    #[test]
    fn a_compaction_without_history_keeps_the_users_messages() {
        check(
            &[turn(1), compacted("sum", None), turn(2), turn(3), rolled_back(1)],
            "q1 sum q2 a2",
            "a3",
        );
        let twice = |one| [turn(1), compacted(one, None), turn(2), compacted("two", None), turn(3)];
        check(&twice("one"), "q1 one q2 two q3 a3", "");
        check(&twice(crate::replay::SUMMARY), "q1 q2 two q3 a3", "");
        let long = "x".repeat(80_000);
        check(
            &[turn(1), vec![says("user", &long)], compacted("sum", None)],
            &format!("{long} sum"),
            "",
        );
    }

    #[test]
    fn a_fork_says_its_own_session_first() {
        let file = file(&Codex, &[vec![meta("fork"), meta("s")], turn(1), turn(2)].concat());
        let sessions: Vec<_> =
            (1..=2).filter_map(|entry| Codex.session(file.raw(number(entry)))).collect();
        assert_eq!(sessions, ["fork", "s"]);
        assert_eq!(file.sent(), "q1 a1 q2 a2");
    }

    #[test]
    fn old_flat_rollouts_and_odd_items_are_read() {
        let call =
            json!({ "type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c" });
        let output = json!({ "type": "function_call_output", "call_id": "c", "output": "done" });
        let file = file(
            &Codex,
            &[
                json!({ "id": "s", "timestamp": "2025-08-01T10:00:00.000Z", "instructions": null }),
                json!({ "record_type": "state" }),
                words("user", "q"),
                json!({ "type": "reasoning", "summary": [{ "type": "summary_text", "text": "hm" }] }),
                call,
                json!({ "type": "ghost_snapshot", "ghost_commit": {} }),
                output,
            ],
        );
        assert!(
            (1..=7)
                .filter(|&entry| entry != 6)
                .all(|entry| Codex.knows(&file.raw(number(entry)).gathered()))
        );
        assert_eq!(Codex.session(file.raw(number(1))).as_deref(), Some("s"));
        assert_eq!(file.context(), [3, 4, 5, 7]);
        let result = Block::answer("c".into(), "done".into());
        assert_eq!(Codex.messages(file.raw(number(7))).remove(0).blocks, [result]);
    }

    #[test]
    fn a_branch_is_a_rollback_and_the_note() {
        let turns = [turn(1), turn(2), turn(3)].concat();
        let go = |to: Option<u64>, note| {
            let mut file = rollout(std::slice::from_ref(&turns));
            for line in file.way(to.map(number), note, &setting(None)).unwrap() {
                file.push(&line);
            }
            file.sent()
        };
        assert_eq!(go(Some(6), None), "q1 a1");
        assert_eq!(go(Some(6), Some("hello")), "q1 a1 hello");
        assert_eq!(go(Some(9), Some("hello")), "q1 a1 hello");
        assert_eq!(go(Some(18), None), "q1 a1 q2 a2 q3 a3");
        assert_eq!(go(None, None), "");
        // A rollback drops whole turns: of one that stays in part, that part is said again.
        assert_eq!(go(Some(4), None), "q1");
        assert_eq!(go(Some(10), Some("hello")), "q1 a1 q2 hello");
    }

    #[test]
    fn a_note_is_no_turn_but_a_rollback_counts_it() {
        let note = Codex.write(&Draft::Note("note".into()), &setting(None)).unwrap();
        let note: Value = serde_json::from_slice(&note).unwrap();
        let file = rollout(&[turn(1), vec![note.clone()], vec![says("assistant", "a2")]]);
        assert_eq!(file.records[7].kind, Kind::Note);
        check(&[turn(1), vec![note], vec![says("assistant", "a2")], rolled_back(1)], "q1 a1", "a2");
    }

    #[test]
    fn a_hundred_thousand_records_are_read_in_one_pass() {
        let many: Vec<_> = (0..16_000).flat_map(turn).collect();
        let file = rollout(&[many, rolled_back(15_999)]);
        assert_eq!(file.sent(), "q0 a0");
        assert_eq!(file.left(), "a15999");
    }
}

mod kimi {
    use super::*;

    fn session() -> FileGraph {
        file(
            &Kimi,
            &[
                json!({ "role": "_system_prompt", "content": "old" }),
                json!({ "role": "_system_prompt", "content": "prompt" }),
                json!({ "role": "_checkpoint", "id": 0 }),
                json!({ "role": "user", "content": "<system>CHECKPOINT 0</system>" }),
                json!({ "role": "user", "content": [{ "type": "text", "text": "q" }] }),
                json!({ "role": "_usage", "token_count": 9 }),
                json!({ "role": "assistant", "content": [{ "type": "think", "think": "hm", "encrypted": null }],
                "tool_calls": [{ "type": "function", "id": "c", "function": { "name": "Shell", "arguments": "{}" } }] }),
                json!({ "role": "tool", "content": "<system>ERROR: no</system>", "tool_call_id": "c" }),
                json!({ "role": "user", "content": "<system>Previous context has been compacted. Here it is:</system>" }),
            ],
        )
    }

    #[test]
    fn the_whole_file_is_sent_in_order() {
        let mut file = session();
        file.push(b"not json");
        assert_eq!(file.path(file.head().unwrap()), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(file.context(), [2, 4, 5, 7, 8, 9]);
        assert_eq!(Kimi.path(&file, number(5), 2).unwrap().entries, [4, 5]);
        assert!(file.left().is_empty());
    }

    #[test]
    fn fields_of_other_types_are_passed_over() {
        let mut file = session();
        file.push(br#"{"role":"_system_prompt","content":5}"#);
        file.push(br#"{"role":"_checkpoint","id":"7"}"#);
        assert_eq!(file.context(), [2, 4, 5, 7, 8, 9]);
        assert_eq!(Kimi.checkpoint(file.raw(number(11))), None);
        assert_eq!(Kimi.checkpoint(file.raw(number(3))).as_deref(), Some("0"));
    }

    #[test]
    fn only_the_users_own_words_begin_a_turn() {
        let kinds: Vec<_> = session().records.iter().map(|record| record.kind).collect();
        assert_eq!(
            kinds,
            [
                Kind::System,
                Kind::System,
                Kind::Meta,
                Kind::System,
                Kind::User,
                Kind::Meta,
                Kind::Assistant,
                Kind::Result,
                Kind::Boundary,
            ]
        );
    }

    #[test]
    fn calls_results_and_checkpoint_numbers_are_read() {
        let file = session();
        let call = Block::Call {
            id: "c".into(),
            name: "Shell".into(),
            input: "{}".into(),
            signature: None,
        };
        let thinking =
            Thinking { text: "hm".into(), sent_as: SentAs::Content, ..Thinking::default() };
        assert_eq!(
            Kimi.messages(file.raw(number(7))).remove(0).blocks,
            [Block::Thinking(thinking), call]
        );
        let result = Block::failure("c".into(), "<system>ERROR: no</system>".into());
        assert_eq!(Kimi.messages(file.raw(number(8))).remove(0).blocks, [result]);
        let numbers: Vec<_> =
            (1..=9).filter_map(|entry| Kimi.checkpoint(file.raw(number(entry)))).collect();
        assert_eq!(numbers, ["0"]);
    }

    #[test]
    fn an_answer_is_written_with_all_its_calls() {
        let call = |id: &str| Block::Call {
            id: id.into(),
            name: "Shell".into(),
            input: "{}".into(),
            signature: None,
        };
        for words in ["", "Both."] {
            let said = (!words.is_empty()).then(|| Block::Text(words.into()));
            let blocks: Vec<Block> = said.into_iter().chain([call("a"), call("b")]).collect();
            let answer = Message::new(Role::Assistant, blocks.clone());
            let line = Kimi.write(&Draft::Answer(Box::new(answer)), &setting(None)).unwrap();
            let read = Kimi.messages(Raw::object(&line).unwrap()).remove(0);
            assert_eq!(read.blocks, blocks);
        }
    }

    #[test]
    fn a_note_is_in_the_agents_own_wrapper_and_no_way_back_is_by_append() {
        let note = Kimi.write(&Draft::Note("n".into()), &setting(None)).unwrap();
        assert_eq!(note, br#"{"role":"user","content":"<system>n</system>"}"#);
        let mut file = session();
        file.push(&note);
        assert_eq!(file.records[9].kind, Kind::Note);
        assert_eq!(file.way(Some(number(5)), None, &setting(None)), None);
    }
}

#[test]
fn every_corpus_file_is_known_by_its_own_format() {
    let Some(corpus) = needs::corpus() else { return };
    let mut n_known = 0;
    for (format, folders) in
        [("pi", &["pi"][..]), ("codex", &["codex", "codex-shapes"]), ("kimi", &["kimi"])]
    {
        for folder in folders {
            for path in corpus.files(folder) {
                let name = path.display();
                let is_session = path.extension().is_some_and(|end| end == "jsonl");
                if !is_session || path.file_stem().is_some_and(|stem| stem == "wire") {
                    continue;
                }
                let bytes = fs::read(&path).unwrap();
                let mut lines = Vec::new();
                let mut reader = Reader::new(&bytes[..]);
                while let Some(located) = reader.next_line().unwrap() {
                    lines.push(located.line.bytes.to_vec());
                }
                let records = lines.iter().filter_map(|line| Raw::object(line));
                let records: Vec<_> = records.map(Raw::gathered).collect();
                assert_eq!(detect(&records).map(Format::name), Some(format), "{name}");
                n_known += 1;
            }
        }
    }
    assert!(n_known >= 41, "{n_known} files");
}

/// Reads bytes in each format, whatever they are.
fn read_in_any_format(bytes: &[u8]) {
    for format in [&Pi as &'static dyn Format, &Codex, &Kimi] {
        let file = FileGraph::read(format, bytes);
        let Some(head) = format.head(&file).unwrap() else { continue };
        let path = format.path(&file, head, usize::MAX).unwrap().entries;
        assert_eq!(path.last(), Some(&head));
        let context = format.context(&file, &path).unwrap().entries;
        assert!(context.iter().all(|entry| path.contains(entry)));
        file.words(&context);
        for leaf in format.leaves(&file).unwrap() {
            assert!(!path.contains(&leaf));
            assert_eq!(file.path(leaf).last(), Some(&leaf));
        }
    }
}

#[test]
fn records_of_no_format_are_read_in_any_format_without_harm() {
    read_in_any_format(b"{}\n{\"type\":1}\n[]\n{\"payload\":{},\"type\":\"compacted\"}\nx\n");
}

#[test]
fn any_file_is_read_in_any_format_without_harm() {
    let Some(corpus) = needs::corpus() else { return };
    let mut n_files = 0;
    for path in corpus.files("") {
        if fs::metadata(&path).unwrap().len() < 1 << 20 {
            read_in_any_format(&fs::read(&path).unwrap());
            n_files += 1;
        }
    }
    assert!(n_files >= 270, "{n_files} files");
}
