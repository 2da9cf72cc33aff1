//! Cutting what tools answered: in place in every format's records, and nothing else of them.

use serde_json::{Value, json};
use undertext::{
    context::cut::{self, Limit, Rest},
    json::Raw,
    model::Block,
    verbs::{self, Archive, Bound, Machine, Session, View},
    wire::{
        Claude, Codex, Earlier, Format, How, Kimi, Native, Pi, Read as _, cut::Shortened, detect,
        jsonl::Reader,
    },
};

use crate::needs::{self, FOLDERS};

const REST: Rest<'_> = Rest { session: "s", entry: "0123456789ab" };

/// Cuts a record's answers.
fn shorten(format: &dyn Format, line: &[u8], limit: Limit) -> Option<Shortened> {
    undertext::wire::cut::cut(format, line, &mut |texts, _| cut::texts(texts, limit, REST))
}

/// Returns the texts of a record's answers.
fn texts(format: &dyn Format, line: &[u8]) -> Vec<Vec<String>> {
    let answers = format.answers(Raw::object(line).unwrap()).sent;
    answers.iter().map(|answer| answer.texts.iter().map(|piece| piece.text()).collect()).collect()
}

/// Asserts that a cut record differs from the whole one in nothing but what is cut, and returns how many texts are.
fn check(format: &dyn Format, whole: &[u8], cut: &Shortened) -> usize {
    let (record, shown) = (Raw::object(whole).unwrap(), Raw::object(&cut.line).unwrap());
    assert!(cut.line.len() < whole.len());
    assert!(!cut.line.contains(&b'\n'));
    assert_eq!(format.envelope(record), format.envelope(shown));
    let outline = |record: Raw<'_>| -> Vec<_> {
        let messages = format.messages(record).into_iter();
        messages.map(|message| (message.role, message.blocks.len(), message.id)).collect()
    };
    assert_eq!(outline(record), outline(shown));
    let calls = |record| -> Vec<_> {
        let answers = format.answers(record).sent.into_iter();
        answers.map(|answer| (answer.call, answer.texts.len())).collect()
    };
    assert_eq!(calls(record), calls(shown));
    let mut seams = 0;
    for (whole, shown) in
        texts(format, whole).concat().iter().zip(texts(format, &cut.line).concat())
    {
        if *whole == shown {
            continue;
        }
        let seam = cut::seam(whole, &shown).unwrap();
        let (own, hidden) = cut::part(&shown).unwrap();
        assert_eq!(own, &whole[..seam]);
        assert_eq!(hidden, whole[seam..].chars().count());
        seams += 1;
    }
    assert_eq!(seams, cut.cuts.len());
    seams
}

fn long(n: usize) -> String {
    let line = |n| format!("line {n} of \"quotes\", \\ and 😀\n");
    (0..n).map(line).collect::<Vec<_>>().concat()
}

/// Cuts a record to 3,000 characters and returns it as a value.
fn cut_value(format: &dyn Format, record: &Value) -> Value {
    let line = record.to_string();
    let cut = shorten(format, line.as_bytes(), Limit::of_chars(3_000)).unwrap();
    check(format, line.as_bytes(), &cut);
    serde_json::from_slice(&cut.line).unwrap()
}

/// Asserts that a string is a cut form of a text.
#[track_caller]
fn assert_cut(value: &Value, text: &str) {
    let shown = value.as_str().unwrap();
    assert!(cut::seam(text, shown).is_some(), "{shown}");
}

#[test]
fn a_native_result_is_cut_in_its_output() {
    let text = long(500);
    let record = |output: Value| {
        json!({ "uuid": "u", "parentUuid": null, "sessionId": "s", "type": "tool_result",
            "message": { "role": "system", "content": "" }, "toolResult": { "id": "c", "output": output } })
    };
    assert_cut(&cut_value(&Native, &record(json!(text)))["toolResult"]["output"], &text);
    let parts = json!({ "stdout": text, "stderr": "short", "code": 1 });
    let cut = cut_value(&Native, &record(parts));
    assert_cut(&cut["toolResult"]["output"]["stdout"], &text);
    assert_eq!(cut["toolResult"]["output"]["stderr"], "short");
    for small in [json!(""), json!(null), json!([]), json!(17), json!({ "data": text })] {
        let line = record(small).to_string();
        assert_eq!(shorten(&Native, line.as_bytes(), Limit::of_chars(3_000)), None, "{line:.200}");
    }
}

#[test]
fn claude_code_tells_what_it_left_out_behind_any_white_space() {
    let filed =
        "<persisted-output>\nOutput too large (147.9KB). Full output saved to: /t/a.txt\n\nPreview";
    for space in [0, 40, 1000, 1023, 5000] {
        let earlier = |words: &str| {
            let text = "\n".repeat(space) + words;
            let record = json!({ "type": "user", "message": { "role": "user", "content": [
                { "tool_use_id": "c", "type": "tool_result", "content": text } ] } });
            let line = record.to_string();
            let earlier = Claude.earlier(Raw::object(line.as_bytes()).unwrap());
            let told = |one: Earlier| (one.how, one.call, one.size, one.file);
            earlier.into_iter().map(told).collect::<Vec<_>>()
        };
        let call = Some("c".to_owned());
        let (size, file) = (Some("147.9KB".to_owned()), Some("/t/a.txt".to_owned()));
        assert_eq!(earlier(filed), [(How::Filed, call.clone(), size, file)], "{space}");
        let cleared = earlier("[Old tool result content cleared]");
        assert_eq!(cleared, [(How::Cleared, call, None, None)], "{space}");
        assert_eq!(earlier(&format!("It is whole: {filed}")), [], "{space}");
    }
}

#[test]
fn claude_code_repeats_a_result_for_itself_in_many_shapes() {
    let text = long(500);
    let record = |content: Value, own: Value| {
        json!({ "parentUuid": "p", "isSidechain": false, "type": "user", "uuid": "u", "sessionId": "s",
            "message": { "role": "user", "content": [
                { "tool_use_id": "c", "type": "tool_result", "content": content } ] },
            "toolUseResult": own })
    };
    let content = |cut: &Value| cut["message"]["content"][0]["content"].clone();
    let own = |own: Value, at: &str| {
        let cut = cut_value(&Claude, &record(json!(text), own));
        assert_cut(&content(&cut), &text);
        assert_cut(cut["toolUseResult"].pointer(at).unwrap(), &text);
    };
    own(json!(text), "");
    own(json!({ "stdout": text, "stderr": "", "interrupted": false }), "/stdout");
    own(
        json!({ "type": "text", "file": { "filePath": "a", "content": text, "numLines": 500 } }),
        "/file/content",
    );
    own(
        json!({ "status": "completed", "content": [{ "type": "text", "text": text }] }),
        "/content/0/text",
    );
    own(json!({ "filePath": "a", "originalFile": text, "structuredPatch": [] }), "/originalFile");

    let image =
        json!({ "type": "image", "source": { "type": "base64", "data": "A".repeat(9_000) } });
    let mixed = json!([{ "type": "text", "text": text }, image]);
    let cut = cut_value(&Claude, &record(mixed.clone(), mixed));
    assert_cut(&cut["message"]["content"][0]["content"][0]["text"], &text);
    assert_eq!(content(&cut)[1], image, "a picture stays");
    assert_eq!(cut["toolUseResult"][1], image);

    let only =
        record(json!([image]), json!({ "file": { "base64": "A".repeat(9_000) } })).to_string();
    assert_eq!(shorten(&Claude, only.as_bytes(), Limit::of_chars(3_000)), None);
    let small = record(json!("done"), json!({ "stdout": text })).to_string();
    assert_eq!(
        shorten(&Claude, small.as_bytes(), Limit::of_chars(3_000)),
        None,
        "none of it is sent"
    );
}

#[test]
fn results_in_one_record_have_the_limit_each() {
    let result =
        |id: &str, text: &str| json!({ "tool_use_id": id, "type": "tool_result", "content": text });
    let (text, fits) = (long(500), "x".repeat(2_900));
    let record = json!({ "parentUuid": null, "isSidechain": false, "type": "user", "uuid": "u", "sessionId": "s",
        "message": { "role": "user", "content": [result("a", &fits), result("b", &text)] } });
    let cut = cut_value(&Claude, &record);
    assert_eq!(cut["message"]["content"][0], record["message"]["content"][0]);
    assert_cut(&cut["message"]["content"][1]["content"], &text);
}

#[test]
fn pi_keeps_details_beside_a_result() {
    let text = long(500);
    let record = json!({ "type": "message", "id": "a", "parentId": null, "timestamp": "2026-08-01T10:00:00.000Z",
        "message": { "role": "toolResult", "toolCallId": "c", "toolName": "bash", "isError": false,
            "content": [{ "type": "text", "text": text }, { "type": "image", "data": "x", "mimeType": "image/png" }],
            "details": { "diff": text, "truncation": { "content": text } } } });
    let cut = cut_value(&Pi, &record);
    assert_cut(&cut["message"]["content"][0]["text"], &text);
    assert_cut(&cut["message"]["details"]["diff"], &text);
    assert_cut(&cut["message"]["details"]["truncation"]["content"], &text);
    let ran = json!({ "type": "message", "id": "a", "parentId": null, "timestamp": "2026-08-01T10:00:00.000Z",
        "message": { "role": "bashExecution", "command": "ls", "output": text } });
    assert_cut(&cut_value(&Pi, &ran)["message"]["output"], &text);
}

#[test]
fn codex_writes_a_result_in_three_ways_and_whole_histories() {
    let text = long(500);
    let item =
        |output: Value| json!({ "type": "function_call_output", "call_id": "c", "output": output });
    let record = |kind: &str, payload: Value| json!({ "timestamp": "2026-08-01T10:00:00.000Z", "type": kind, "payload": payload });
    let cut = |output: Value| {
        cut_value(&Codex, &record("response_item", item(output)))["payload"]["output"].clone()
    };
    assert_cut(&cut(json!(text)), &text);
    assert_cut(&cut(json!([{ "type": "input_text", "text": text }]))[0]["text"], &text);
    let nested = json!({ "output": text, "metadata": { "exit_code": 0 } }).to_string();
    let shown: Value = serde_json::from_str(cut(json!(nested)).as_str().unwrap()).unwrap();
    assert_cut(&shown["output"], &text);
    assert_eq!(shown["metadata"]["exit_code"], 0);
    let odd = format!("{{\"output\": 1, {text}");
    assert_cut(&cut(json!(odd)), &odd);
    assert_cut(&cut_value(&Codex, &item(json!(text)))["output"], &text);

    let said = json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }] });
    let history = json!({ "message": "", "replacement_history": [said, item(json!(text))] });
    let cut = cut_value(&Codex, &record("compacted", history));
    assert_eq!(cut["payload"]["replacement_history"][0], said);
    assert_cut(&cut["payload"]["replacement_history"][1]["output"], &text);
}

#[test]
fn kimi_answers_in_a_string_or_in_parts() {
    let text = long(500);
    let record =
        |content: Value| json!({ "role": "tool", "content": content, "tool_call_id": "c" });
    assert_cut(&cut_value(&Kimi, &record(json!(text)))["content"], &text);
    let parts = json!([{ "type": "text", "text": "<system>ok</system>" }, { "type": "text", "text": text }]);
    let cut = cut_value(&Kimi, &record(parts));
    assert_eq!(cut["content"][0]["text"], "<system>ok</system>");
    assert_cut(&cut["content"][1]["text"], &text);
    let said = json!({ "role": "user", "content": text }).to_string();
    assert_eq!(shorten(&Kimi, said.as_bytes(), Limit::of_chars(3_000)), None);
}

#[test]
fn thinking_is_dropped_where_the_agent_can_resume_without_it() {
    let (hm, code) = (json!({ "type": "thinking", "thinking": "hm\u{e9}", "signature": "s" }), 7);
    let redacted = json!({ "type": "redacted_thinking", "data": "d" });
    let (text, call) =
        (json!({ "type": "text", "text": "so" }), json!({ "type": "tool_use", "n": code }));
    let claude = |content: Value| json!({ "type": "assistant", "uuid": "u", "message": { "content": content, "id": "m" } });
    let native = claude;
    let pi = |api: &str, content: Value| json!({ "type": "message", "id": "a", "message": { "role": "assistant", "api": api, "content": content } });
    // The list without its thinking, or None where nothing may be dropped.
    let check = |format: &dyn Format, at: &str, record: &Value, left: Option<Value>| {
        // With white space, which is not that of a compact record.
        let line = serde_json::to_string_pretty(record).unwrap().replace('\n', " ");
        let cut = undertext::wire::cut::without_thinking(format, line.as_bytes());
        let shown: Option<Value> = cut.map(|cut| serde_json::from_slice(&cut.line).unwrap());
        let expected = left.map(|left| {
            let mut expected = record.clone();
            *expected.pointer_mut(at).unwrap() = left;
            expected
        });
        assert_eq!(shown, expected, "{record}");
    };
    let lists = [
        (json!([hm]), Some(json!([]))),
        (json!([hm, text]), Some(json!([text]))),
        (json!([text, hm]), Some(json!([text]))),
        (json!([hm, redacted, text, hm, call, hm]), Some(json!([text, call]))),
        (json!([text, call]), None),
        (json!([]), None),
        (json!("thinking"), None),
        (json!(null), None),
    ];
    for (list, left) in lists {
        check(&Claude, "/message/content", &claude(list.clone()), left.clone());
        check(&Native, "/message/content", &native(list.clone()), left.clone());
        check(&Pi, "/message/content", &pi("anthropic-messages", list.clone()), left);
        check(&Pi, "", &pi("openai-responses", list.clone()), None);
        check(&Kimi, "", &json!({ "role": "assistant", "content": list }), None);
    }
    let reasoning = json!({ "type": "response_item", "payload": { "type": "reasoning", "summary": [], "encrypted_content": "e" } });
    check(&Codex, "", &reasoning, None);
    let line = claude(json!([hm, text])).to_string();
    let cut = undertext::wire::cut::without_thinking(&Claude, line.as_bytes()).unwrap();
    assert_eq!(cut.cuts.iter().map(|cut| cut.cut.whole).collect::<Vec<_>>(), [3]);
}

#[test]
fn every_other_byte_is_kept() {
    // Spacing, escapes that need not be, a number no type holds, a key twice, bad UTF-8 and half a surrogate pair.
    let line = [
        br#"{ "role" : "tool", "n": 1e999, "n": 123456789012345678901234567890, "\u0061": "\/", "content": "\ud83d"#.as_slice(),
        b"\xff",
        "\\u0041\\ud83d\\ude00é".repeat(2_000).as_bytes(),
        br#"" , "tool_call_id": "c" }"#,
    ]
    .concat();
    let cut = shorten(&Kimi, &line, Limit::of_chars(3_000)).unwrap();
    check(&Kimi, &line, &cut);
    let suffix = cut.line.windows(14).position(|part| part == b"\\n[undertext: ").unwrap();
    assert_eq!(cut.line[..suffix], line[..suffix]);
    assert!(cut.line.ends_with(br#"]" , "tool_call_id": "c" }"#));
}

#[test]
fn every_result_of_the_corpus_is_cut_cleanly() {
    let Some(corpus) = needs::corpus() else { return };
    let (mut n_files, mut n_cuts) = (0, 0);
    for folder in FOLDERS {
        for path in corpus.files(folder) {
            let Ok(file) = std::fs::File::open(&path) else { continue };
            let mut reader = Reader::new(file);
            let mut lines: Vec<Vec<u8>> = Vec::new();
            while let Ok(Some(located)) = reader.next_line() {
                lines.push(located.line.bytes.to_vec());
            }
            let records: Vec<Raw<'_>> = lines.iter().filter_map(|line| Raw::object(line)).collect();
            let fields: Vec<_> = records.iter().map(|record| record.gathered()).collect();
            let Some(format) = detect(&fields) else { continue };
            let mut counts = [0; 3];
            for (window, count) in [8_000, 32_000, 128_000].into_iter().zip(&mut counts) {
                let limit = Limit::of_window(window);
                for line in records.iter().map(|record| record.bytes()) {
                    let cut = shorten(format, line, limit);
                    let is_over = |texts: Vec<String>| {
                        let length: usize = texts.iter().map(|text| text.chars().count()).sum();
                        length > limit.chars()
                    };
                    let over = texts(format, line).into_iter().any(is_over);
                    assert!(over || cut.is_none());
                    *count += cut.map_or(0, |cut| check(format, line, &cut));
                }
            }
            n_files += 1;
            n_cuts += counts.iter().sum::<usize>();
            if counts != [0; 3] {
                println!("{:60} {counts:?}", path.file_name().unwrap().display());
            }
        }
    }
    assert!(n_files >= 88 && n_cuts >= 110, "{n_files} files, {n_cuts} texts were cut");
}

/// What a context must be before and after: roles, blocks and the calls that they make or answer.
fn outline(archive: &Archive, session: &Session) -> Vec<String> {
    let position = archive.store().state(session.key).unwrap().position().unwrap();
    let view = View::new(archive.store(), session, position, None);
    let path = view.path(usize::MAX).unwrap().entries;
    let context = session.format.context(&view, &path).unwrap().entries;
    let mut outline = Vec::new();
    for entry in context {
        for message in verbs::messages(&archive.at(session).unwrap(), entry).unwrap() {
            let blocks = message.blocks.iter().map(|block| match block {
                Block::Call { id, .. } => format!("call {id}"),
                Block::Result { id, .. } => format!("result {id}"),
                // It may be dropped.
                Block::Thinking(_) => String::new(),
                other => format!("{other:?}"),
            });
            let blocks = blocks.filter(|block| !block.is_empty());
            outline.push(format!("{:?} {:?}", message.role, blocks.collect::<Vec<_>>()));
        }
    }
    outline
}

#[test]
fn every_session_of_the_corpus_is_truncated_and_restored() {
    let Some(corpus) = needs::corpus() else { return };
    let (mut n_files, mut n_truncated) = (0, 0);
    for path in corpus.sessions() {
        let Ok((archive, session)) = verbs::peek(&path, Box::new(Machine)) else { continue };
        let export = |archive: &Archive| {
            let mut bytes = Vec::new();
            let mut each = |part: &[u8]| {
                bytes.extend_from_slice(part);
                Ok(())
            };
            verbs::export(&archive.at(&session).unwrap(), None, &mut each).unwrap();
            bytes
        };
        n_files += 1;
        let (mut whole, before) = (export(&archive), outline(&archive, &session));
        let cleared = Bound { older_than: 1, thinking: true, ..Bound::of(Limit::CLEARED) };
        let few = Bound { keep_last: 2, ..cleared.clone() };
        for bound in
            [128_000, 32_000, 8_000].map(Bound::of_window).into_iter().chain([cleared, few])
        {
            let done = verbs::truncate(&archive.at(&session).unwrap(), &bound).unwrap();
            let name = format!("{} at {bound:?}", path.display());
            assert_eq!(outline(&archive, &session), before, "{name}");
            assert_eq!(
                verbs::oversized(&archive.at(&session).unwrap(), &bound).unwrap().results,
                [],
                "{name}"
            );
            let Some(operation) = done.done.operation else { continue };
            let cut = export(&archive);
            assert_eq!(done.saved, (whole.len() - cut.len()) as u64, "{name}");
            assert_eq!(whole.split(|&b| b == b'\n').count(), cut.split(|&b| b == b'\n').count());
            let verified = verbs::verify(&archive, Some(&session), &mut |told| {
                if let Some(finding) = told.found() {
                    assert!(!finding.kind.is_damage(), "{name}: {finding:?}");
                }
            });
            verified.unwrap();
            // What is shown and what is hidden is the whole text, and the audit has it at the same place.
            let audit = verbs::audit(&archive.at(&session).unwrap()).unwrap();
            let standing: Vec<_> = audit.standing().collect();
            assert_eq!(standing.len(), done.results.len(), "{name}");
            for one in standing {
                let target =
                    verbs::find_place(&archive.at(&session).unwrap(), &one.entry.to_string())
                        .unwrap();
                let hidden = verbs::hidden(&archive.at(&session).unwrap(), &target).unwrap();
                let places: Vec<_> = one.cuts.iter().map(|cut| (cut.whole, cut.kept)).collect();
                let count = |text: &str| text.chars().count() as u64;
                let seen =
                    hidden.texts.iter().map(|text| (count(&text.whole), count(text.shown())));
                assert_eq!(seen.collect::<Vec<_>>(), places, "{name}");
            }
            verbs::undo(&archive.at(&session).unwrap(), Some(operation)).unwrap();
            // A file without a final line end gets one, so that more can follow.
            let back = export(&archive);
            assert!(back == whole || back == [&whole[..], b"\n"].concat(), "{name}");
            // What was taken back is done again, and taken back once more.
            let again = verbs::truncate(&archive.at(&session).unwrap(), &bound).unwrap();
            assert_eq!(again.results.len(), done.results.len(), "{name}");
            let audit = verbs::audit(&archive.at(&session).unwrap()).unwrap();
            assert_eq!(audit.standing().count(), done.results.len(), "{name}");
            verbs::undo(&archive.at(&session).unwrap(), again.done.operation).unwrap();
            assert!(export(&archive) == back, "{name}");
            assert_eq!(
                verbs::audit(&archive.at(&session).unwrap()).unwrap().standing().count(),
                0,
                "{name}"
            );
            whole = back;
            n_truncated += 1;
        }
    }
    assert!(n_files >= 89 && n_truncated >= 60, "{n_files} files, {n_truncated} truncations");
}
