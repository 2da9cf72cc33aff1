//! The types that Codex parses a record in an envelope into. Codex skips a line that does not fit them as if it did not exist.
//!
//! These are the types of Codex 0.169.0; it prints those of items with `app-server generate-json-schema`. Records without an
//! envelope or a time are never checked: whole files consist of such records, and Codex resumes none of these files. In any other
//! file it skips the records.
//!
//! Invariant: nothing here depends on another record.

use std::ops::Range;

use crate::{
    json::{self, Kind, Raw, Visit},
    wire::fields::text,
};

/// The maximum nesting in a line that Codex parses.
const DEPTH: usize = 127;

/// A check of a field, which may be missing.
type Asks = fn(Option<Raw<'_>>) -> bool;

/// Returns true if a record is in an envelope as Codex writes it.
pub(super) fn is_framed(record: Raw<'_>) -> bool {
    fits(record, [("payload", |payload| payload.is_some()), ("timestamp", is_text)])
}

/// Returns true if Codex accepts a record in an envelope, given its type and payload.
pub(super) fn is_record(record: Raw<'_>, class: &str, payload: Raw<'_>) -> bool {
    fits(record, [("ordinal", may_count)])
        && is_parsed(record.bytes())
        && match class {
            "response_item" => is_item(payload),
            "compacted" => fits(
                payload,
                [
                    ("message", is_text),
                    ("replacement_history", may_items),
                    ("window_number", may_count),
                ],
            ),
            _ => true,
        }
}

/// Returns true if Codex's parser accepts a valid line: no half of a surrogate pair, no deeper nesting, no integer that fits into
/// 128 bits but not into 64.
fn is_parsed(line: &[u8]) -> bool {
    let mut parsed = Parsed { line, is_refused: false };
    json::scan(line, &mut parsed).is_ok() && !parsed.is_refused && !json::has_half_pair(line)
}

struct Parsed<'l> {
    line: &'l [u8],
    is_refused: bool,
}

impl Visit for Parsed<'_> {
    fn open(&mut self, depth: usize) {
        self.is_refused |= depth > DEPTH;
    }

    fn number(&mut self, span: Range<usize>) {
        let digits = self.line.get(span).and_then(|digits| str::from_utf8(digits).ok());
        let is_refused = digits.is_some_and(|digits| {
            let fits_64 = digits.parse::<u64>().is_ok() || digits.parse::<i64>().is_ok();
            !fits_64 && (digits.parse::<u128>().is_ok() || digits.parse::<i128>().is_ok())
        });
        self.is_refused |= is_refused;
    }
}

/// Returns true if Codex accepts an item. It also accepts types that it does not know.
fn is_item(item: Raw<'_>) -> bool {
    let Some(class) = text(item, "type") else { return false };
    let more = [("id", may_text as Asks), ("status", may_text), ("encrypted_content", may_text)];
    let is_own = match class.as_str() {
        "message" => fits(item, [("role", is_text), ("content", is_content), ("phase", may_phase)]),
        "agent_message" => {
            fits(item, [("author", is_text), ("recipient", is_text), ("content", is_told)])
        }
        "reasoning" => fits(item, [("summary", is_summary), ("content", may_reasoning)]),
        "function_call" => fits(
            item,
            [
                ("name", is_text),
                ("arguments", is_text),
                ("call_id", is_text),
                ("namespace", may_text),
            ],
        ),
        "custom_tool_call" => {
            fits(item, [("name", is_text), ("input", is_text), ("call_id", is_text)])
        }
        "local_shell_call" => {
            fits(item, [("call_id", may_text), ("status", is_progress), ("action", is_command)])
        }
        "tool_search_call" => fits(
            item,
            [("call_id", may_text), ("execution", is_text), ("arguments", |value| value.is_some())],
        ),
        "web_search_call" => fits(item, [("action", may_search)]),
        "image_generation_call" => fits(item, [("status", is_text), ("result", is_text)]),
        "function_call_output" => fits(item, [("call_id", may_text), ("output", is_output)]),
        "custom_tool_call_output" => fits(item, [("call_id", is_text), ("output", is_output)]),
        "tool_search_output" => fits(
            item,
            [
                ("call_id", may_text),
                ("execution", is_text),
                ("status", is_text),
                ("tools", is_list),
            ],
        ),
        "compaction" | "compaction_summary" => fits(item, [("encrypted_content", is_text)]),
        "context_compaction" => true,
        _ => return true,
    };
    is_own && fits(item, more)
}

/// Returns true if the fields of an object pass their checks.
fn fits<const N: usize>(object: Raw<'_>, fields: [(&str, Asks); N]) -> bool {
    let values = object.pick(fields.map(|(key, _)| key));
    object.kind() == Kind::Object && fields.iter().zip(values).all(|((_, asks), value)| asks(value))
}

fn is(value: Option<Raw<'_>>, kind: Kind) -> bool {
    value.is_some_and(|value| value.kind() == kind)
}

fn is_nothing(value: Option<Raw<'_>>) -> bool {
    value.is_none_or(Raw::is_null)
}

fn is_text(value: Option<Raw<'_>>) -> bool {
    is(value, Kind::String)
}

fn may_text(value: Option<Raw<'_>>) -> bool {
    is_nothing(value) || is_text(value)
}

fn may_count(value: Option<Raw<'_>>) -> bool {
    is_nothing(value) || value.and_then(Raw::u64).is_some()
}

fn is_list(value: Option<Raw<'_>>) -> bool {
    is(value, Kind::Array)
}

/// Returns true if a value is a list and each item passes a check.
fn is_list_of(value: Option<Raw<'_>>, asks: fn(Raw<'_>) -> bool) -> bool {
    is_list(value) && value.into_iter().flat_map(Raw::items).all(asks)
}

fn may_items(value: Option<Raw<'_>>) -> bool {
    is_nothing(value) || is_list_of(value, is_item)
}

/// Returns true if a value is one of these words.
fn is_word(value: Option<Raw<'_>>, words: &[&str]) -> bool {
    value.and_then(Raw::text).is_some_and(|word| words.contains(&word.as_ref()))
}

fn may_phase(value: Option<Raw<'_>>) -> bool {
    is_nothing(value) || is_word(value, &["commentary", "partial_answer", "final_answer"])
}

fn is_progress(value: Option<Raw<'_>>) -> bool {
    is_word(value, &["completed", "in_progress", "incomplete"])
}

/// Returns true if a content part is of one of these types and has its required string.
fn says(part: Raw<'_>, types: &[(&str, &[&str])]) -> bool {
    let class = text(part, "type").unwrap_or_default();
    let keys = types.iter().find(|(name, _)| *name == class).map(|(_, keys)| *keys);
    let is_detailed = || {
        let detail = part.get("detail");
        class != "input_image"
            || is_nothing(detail)
            || is_word(detail, &["auto", "low", "high", "original"])
    };
    keys.is_some_and(|keys| keys.iter().any(|key| is_text(part.get(key)))) && is_detailed()
}

const TEXT: (&str, &[&str]) = ("input_text", &["text"]);
const IMAGE: (&str, &[&str]) = ("input_image", &["image_url", "file_id"]);
const AUDIO: (&str, &[&str]) = ("input_audio", &["audio_url", "file_id"]);
const SEALED: (&str, &[&str]) = ("encrypted_content", &["encrypted_content"]);

fn is_content(value: Option<Raw<'_>>) -> bool {
    is_list_of(value, |part| says(part, &[TEXT, ("output_text", &["text"]), IMAGE, AUDIO]))
}

/// Returns true if a value is a message from one agent to another.
fn is_told(value: Option<Raw<'_>>) -> bool {
    is_list_of(value, |part| says(part, &[TEXT, SEALED]))
}

fn is_output(value: Option<Raw<'_>>) -> bool {
    is_text(value) || is_list_of(value, |part| says(part, &[TEXT, IMAGE, AUDIO, SEALED]))
}

fn is_summary(value: Option<Raw<'_>>) -> bool {
    is_list_of(value, |part| says(part, &[("summary_text", &["text"])]))
}

fn may_reasoning(value: Option<Raw<'_>>) -> bool {
    let is_part = |part: Raw<'_>| says(part, &[("reasoning_text", &["text"]), ("text", &["text"])]);
    is_nothing(value) || is_list_of(value, is_part)
}

fn is_command(value: Option<Raw<'_>>) -> bool {
    let is_words: Asks = |words| is_list_of(words, |word| is_text(Some(word)));
    let is_exec: Asks = |class| is_word(class, &["exec"]);
    value.is_some_and(|action| {
        let fields = [("type", is_exec), ("command", is_words), ("timeout_ms", may_count)];
        fits(action, fields) && fits(action, [("working_directory", may_text), ("user", may_text)])
    })
}

fn may_search(value: Option<Raw<'_>>) -> bool {
    let fields = [("type", is_text as Asks), ("query", may_text), ("url", may_text)];
    is_nothing(value) || value.is_some_and(|action| fits(action, fields))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(line: &str, expected: bool) {
        let record = Raw::object(line.as_bytes()).unwrap();
        let class = text(record, "type").unwrap();
        assert_eq!(is_record(record, &class, record.get("payload").unwrap()), expected, "{line}");
    }

    fn record(class: &str, payload: &Value) -> Value {
        json!({ "timestamp": "2026-08-01T10:00:00.000Z", "type": class, "payload": payload })
    }

    fn said() -> Value {
        json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "said" }] })
    }

    /// Checks a record, and that it is refused with each of these fields taken out, or in another shape.
    fn check_asked(class: &str, payload: &Value, asked: &[(&str, &[Value])]) {
        check(&record(class, payload).to_string(), true);
        for (key, others) in asked {
            let mut without = payload.clone();
            without.as_object_mut().unwrap().remove(*key);
            check(&record(class, &without).to_string(), false);
            for other in *others {
                let mut odd = payload.clone();
                odd.as_object_mut().unwrap().insert((*key).to_owned(), other.clone());
                check(&record(class, &odd).to_string(), false);
            }
        }
    }

    #[test]
    fn an_item_has_the_fields_that_codex_asks_for() {
        let item = |payload: Value, asked: &[(&str, &[Value])]| {
            check_asked("response_item", &payload, asked);
        };
        let part = |class: &str| json!([{ "type": class, "text": "said" }]);
        let contents = [
            json!("said"),
            part("text"),
            json!([{ "type": "input_text", "text": 5 }]),
            json!(["said"]),
        ];
        item(said(), &[("role", &[json!(null), json!(5)]), ("content", &contents)]);
        let none: &[Value] = &[];
        let objects = [json!({}), json!(null)];
        item(
            json!({ "type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c" }),
            &[("name", none), ("arguments", &objects), ("call_id", none)],
        );
        item(
            json!({ "type": "custom_tool_call", "name": "patch", "input": "p", "call_id": "c" }),
            &[("name", none), ("input", &objects), ("call_id", none)],
        );
        let outputs = [json!({ "content": "x" }), json!(5), json!(null), part("output_text")];
        for class in ["function_call_output", "custom_tool_call_output"] {
            let output = |output| json!({ "type": class, "call_id": "c", "output": output });
            item(output(json!("said")), &[("output", &outputs)]);
            item(output(part("input_text")), &[("output", &outputs)]);
        }
        item(
            json!({ "type": "local_shell_call", "call_id": "c", "status": "completed", "action": { "type": "exec", "command": ["ls"] } }),
            &[
                ("status", &[json!("odd")]),
                ("action", &[json!({ "type": "exec", "command": "ls" })]),
            ],
        );
        item(
            json!({ "type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {} }),
            &[("execution", none), ("arguments", none)],
        );
        item(
            json!({ "type": "tool_search_output", "call_id": "c", "execution": "client", "status": "completed", "tools": [] }),
            &[("execution", none), ("status", none), ("tools", &objects)],
        );
        item(
            json!({ "type": "reasoning", "summary": [], "content": null, "encrypted_content": "e" }),
            &[("summary", &[json!(null), part("text")])],
        );
        item(
            json!({ "type": "agent_message", "author": "/a", "recipient": "/b", "content": part("input_text") }),
            &[("author", none), ("recipient", none), ("content", &[part("output_text")])],
        );
        item(
            json!({ "type": "image_generation_call", "status": "completed", "result": "r" }),
            &[("status", none), ("result", none)],
        );
        item(
            json!({ "type": "compaction", "encrypted_content": "e" }),
            &[("encrypted_content", none)],
        );
        // What it does not know it takes for another item.
        item(json!({ "type": "future", "content": 5 }), &[("type", none)]);
    }

    #[test]
    fn a_compaction_has_a_message_and_a_history_of_items() {
        let histories = [json!({}), json!([said(), { "type": "message", "content": "x" }])];
        let compacted =
            json!({ "message": "", "replacement_history": [said()], "window_number": 1 });
        check_asked("compacted", &compacted, &[("message", &[json!(null)])]);
        for history in histories {
            let payload = json!({ "message": "", "replacement_history": history });
            check(&record("compacted", &payload).to_string(), false);
        }
        check(
            &record("compacted", &json!({ "message": "", "replacement_history": null }))
                .to_string(),
            true,
        );
    }

    #[test]
    fn a_line_is_one_that_the_parser_of_codex_takes() {
        let framed =
            |frame: &str| format!(r#"{{{frame}"type":"response_item","payload":{}}}"#, said());
        for (frame, expected) in
            [("", false), (r#""timestamp":5,"#, false), (r#""timestamp":"","#, true)]
        {
            assert_eq!(is_framed(Raw::object(framed(frame).as_bytes()).unwrap()), expected);
        }
        check(&framed(r#""timestamp":"","ordinal":"1","#), false);
        check(&framed(r#""timestamp":"","ordinal":null,"#), true);
        let with = |value: &str| framed(&format!(r#""timestamp":"","x":{value},"#));
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        for (value, expected) in [
            (r#""\ud83d\ude00""#, true),
            (r#""\\ud800""#, true),
            (r#""\ufffd""#, true),
            (r#""\ud800""#, false),
            (r#""\udc00""#, false),
            (r#""\ud800\ud800""#, false),
            (r#"{"\ud800":1}"#, false),
            ("18446744073709551615", true),
            ("18446744073709551616", false),
            ("-9223372036854775809", false),
            ("340282366920938463463374607431768211456", true),
            ("123456789012345678901234567890.0", true),
            ("1e999", true),
            (&nested(126), true),
            (&nested(127), false),
        ] {
            check(&with(value), expected);
        }
    }
}
