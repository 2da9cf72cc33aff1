//! Streams: joins an answer that comes as server-sent events into the body it would have had otherwise.
//!
//! Servers may stream without being asked to, so a stream is recognised by its content. What is an answer is decided from all of
//! its events; `listen` reports words before that.
//!
//! Invariant: a stream that breaks off before its answer has ended is never accepted as an answer.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use serde_json::{Map, Value, json};

use crate::{
    context::model::Fault,
    json,
    provider::answer::{is_error, readable},
};

/// Returns true if a body is a stream of events.
pub(super) fn is_stream(body: &str) -> bool {
    let start = body.trim_start();
    ["data:", "event:", "id:", "retry:", ":"].iter().any(|field| start.starts_with(field))
}

/// Joins the events of one API, and returns whether the answer has ended.
pub(super) type Join = fn(&[Value], &Deadline) -> Result<(Value, bool), Fault>;

/// The time limit of a request, whatever its server sends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    begun: Instant,
    limit: Duration,
}

impl Deadline {
    /// Starts a time limit.
    pub(super) fn after(limit: Duration) -> Self {
        Self { begun: Instant::now(), limit }
    }

    /// Returns the time left.
    pub(super) fn left(&self) -> Duration {
        self.limit.saturating_sub(self.begun.elapsed())
    }

    /// Fails after the time limit.
    pub(super) fn check(&self) -> Result<(), Fault> {
        let limit = self.limit;
        if self.begun.elapsed() >= limit { Err(Fault::TimedOut { limit }) } else { Ok(()) }
    }
}

/// Returns the body that a stream would have been without streaming.
pub(super) fn joined(body: &str, join: Join, deadline: &Deadline) -> Result<String, Fault> {
    let off = || {
        let said = "the stream ended before the answer was complete".to_owned();
        Fault::Unreachable { said, after: None }
    };
    let events = events(body);
    let mut values = Vec::new();
    let mut is_done = false;
    let mut has_halves = false;
    for (nth, event) in events.iter().enumerate() {
        deadline.check()?;
        match parsed(event, &mut has_halves) {
            Ok(more) => values.extend(more),
            Err(_) if nth + 1 == events.len() => return Err(off()),
            // Text that cannot be parsed would be missing from the answer.
            Err(broken) => {
                let said = format!("an event of its stream is not JSON: {}", readable(broken));
                return Err(Fault::BadAnswer { said });
            }
        }
        is_done = event.lines().any(|line| line.trim() == "[DONE]");
        if is_done {
            break;
        }
    }
    let said = |whole: &Value| {
        let whole = whole.to_string();
        if has_halves { json::joined(&whole) } else { whole }
    };
    if let Some(error) = values.iter().find(|value| is_error(value)) {
        return Ok(said(error));
    }
    let (whole, has_ended) = join(&values, deadline)?;
    if is_done || has_ended { Ok(said(&whole)) } else { Err(off()) }
}

/// Returns the values of an event, or the text that cannot be parsed. Some servers end an event after one line, so that several
/// look like one, and some split text within a character, whose other half comes with the next event.
fn parsed<'e>(event: &'e str, has_halves: &mut bool) -> Result<Vec<Value>, &'e str> {
    let mut read = |text: &str| value(text, has_halves);
    if let Some(value) = read(event) {
        return Ok(vec![value]);
    }
    // An end marker or a keep-alive is a plain word.
    let lines = event.lines().filter(|line| line.contains(['{', '}', '"']));
    lines.map(|line| read(line).ok_or(line)).collect()
}

/// Parses a JSON text, in which a string may begin or end within a character.
pub(super) fn value(text: &str, has_halves: &mut bool) -> Option<Value> {
    serde_json::from_str(text).ok().or_else(|| {
        let value = serde_json::from_str(&json::with_halves(text)?).ok();
        *has_halves |= value.is_some();
        value
    })
}

/// Returns the data of each event. A line may end with CRLF, CR or LF.
fn events(body: &str) -> Vec<String> {
    let body = body.replace("\r\n", "\n").replace('\r', "\n");
    let mut events: Vec<String> = Vec::new();
    let mut is_new = true;
    for line in body.lines() {
        if line.is_empty() {
            is_new = true;
        }
        let Some(data) = line.strip_prefix("data:") else { continue };
        let data = data.strip_prefix(' ').unwrap_or(data);
        match events.last_mut() {
            Some(last) if !is_new => {
                last.push('\n');
                last.push_str(data);
            }
            _ => events.push(data.to_owned()),
        }
        is_new = false;
    }
    events
}

/// Returns a string in a value; empty if it is missing.
fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns a text that is a string or a list of parts.
fn words(value: &Value) -> String {
    match value {
        Value::String(words) => words.clone(),
        Value::Array(parts) => {
            parts.iter().map(|part| part.get("text").map(words).unwrap_or_default()).collect()
        }
        _ => String::new(),
    }
}

/// A call of a chat completion, as far as it has arrived.
#[derive(Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    input: Input,
    /// What a provider adds to the call.
    extra: Value,
}

/// The input of a call as it grows, with its open brackets. It is parsed only when all are closed.
#[derive(Default)]
struct Input {
    text: String,
    /// `None` before the first bracket.
    depth: Option<usize>,
    in_string: bool,
    is_escaped: bool,
    is_invalid: bool,
}

impl Input {
    fn push(&mut self, more: &str) {
        for byte in more.bytes() {
            let is_escaped = std::mem::take(&mut self.is_escaped);
            match (byte, self.depth) {
                (b'\\', _) if self.in_string => self.is_escaped = !is_escaped,
                (b'"', _) if !is_escaped => self.in_string = !self.in_string,
                (b'{' | b'[', depth) if !self.in_string => {
                    self.depth = Some(depth.unwrap_or(0) + 1);
                }
                (b'}' | b']', Some(depth)) if !self.in_string => {
                    self.depth = Some(depth.saturating_sub(1));
                }
                _ => {}
            }
        }
        self.text.push_str(more);
    }

    fn is_whole(&mut self) -> bool {
        if self.is_invalid || self.in_string || self.depth != Some(0) {
            return false;
        }
        self.is_invalid = serde_json::from_str::<Map<String, Value>>(&self.text).is_err();
        !self.is_invalid
    }
}

/// The calls of a chat completion, and the last one of each index and id.
#[derive(Default)]
struct Calls {
    all: Vec<Call>,
    by_index: BTreeMap<u64, usize>,
    by_id: BTreeMap<String, usize>,
}

/// Adds a part of a call to its call: by index, else by id, else to the last one. Servers that
/// use the same index for all calls, or none, distinguish them by id, or send each call whole.
fn add(calls: &mut Calls, part: &Value) {
    let index = part.get("index").and_then(Value::as_u64);
    let (id, name) = (text(part, "/id"), text(part, "/function/name"));
    let input = match part.pointer("/function/arguments") {
        Some(input @ Value::Object(_)) => input.to_string(),
        input => input.map(words).unwrap_or_default(),
    };
    let at = match index {
        Some(index) => calls.by_index.get(&index).copied(),
        None if id.is_empty() => calls.all.len().checked_sub(1),
        None => calls.by_id.get(id).copied(),
    };
    let is_next = |call: &mut Call| {
        let is_another = !id.is_empty() && !call.id.is_empty() && call.id != id;
        is_another || (!name.is_empty() && !input.is_empty() && call.input.is_whole())
    };
    let at = at.filter(|at| !calls.all.get_mut(*at).is_some_and(is_next)).unwrap_or_else(|| {
        calls.all.push(Call { index, ..Call::default() });
        calls.all.len() - 1
    });
    let Some(call) = calls.all.get_mut(at) else { return };
    // Some servers repeat the names in each chunk.
    for (known, more) in [(&mut call.id, id), (&mut call.name, name)] {
        if known.is_empty() {
            more.clone_into(known);
        }
    }
    if let Some(extra) = part.get("extra_content").filter(|extra| extra.is_object()) {
        call.extra.clone_from(extra);
    }
    call.input.push(&input);
    calls.by_index.extend(index.map(|index| (index, at)));
    if !id.is_empty() && call.id == id {
        let last = calls.by_id.entry(id.to_owned()).or_default();
        *last = at.max(*last);
    }
}

/// The reasoning details of a chat completion, and the last one of each index and type.
#[derive(Default)]
struct Details {
    all: Vec<Value>,
    last: BTreeMap<(Option<u64>, String), usize>,
}

impl Details {
    /// Adds a part of a detail to its detail: texts grow, other fields are replaced. Encrypted data comes whole.
    fn add(&mut self, part: &Value) {
        let kind = text(part, "/type").to_owned();
        let index = part.get("index").and_then(Value::as_u64);
        let is_whole = index.is_none() && part.get("data").is_some();
        let at = self.last.entry((index, kind)).or_insert(self.all.len());
        let Some(Value::Object(known)) = self.all.get_mut(*at).filter(|_| !is_whole) else {
            *at = self.all.len();
            self.all.push(part.clone());
            return;
        };
        for (key, more) in part.as_object().into_iter().flatten() {
            match (known.get_mut(key), more) {
                (_, Value::Null) => {}
                (Some(Value::String(said)), Value::String(more))
                    if ["text", "summary", "data"].contains(&key.as_str()) =>
                {
                    said.push_str(more);
                }
                _ => drop(known.insert(key.clone(), more.clone())),
            }
        }
    }
}

/// Joins the chunks of a chat completion.
pub(super) fn completion(chunks: &[Value], deadline: &Deadline) -> Result<(Value, bool), Fault> {
    let mut whole = Map::new();
    let mut said: BTreeMap<&str, String> = BTreeMap::new();
    let (mut calls, mut details) = (Calls::default(), Details::default());
    let (mut end, mut error) = (Value::Null, Value::Null);
    for chunk in chunks {
        deadline.check()?;
        for key in ["id", "model", "usage"] {
            if let Some(value) = chunk.get(key).filter(|value| !value.is_null()) {
                whole.insert(key.to_owned(), value.clone());
            }
        }
        let Some(choice) = chunk.pointer("/choices/0") else { continue };
        for (key, found) in [("finish_reason", &mut end), ("error", &mut error)] {
            if let Some(value) = choice.get(key).filter(|value| !value.is_null()) {
                found.clone_from(value);
            }
        }
        let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) else { continue };
        for key in ["content", "reasoning_content", "reasoning", "refusal"] {
            if let Some(more) = delta.get(key).filter(|more| !more.is_null()) {
                said.entry(key).or_default().push_str(&words(more));
            }
        }
        let parts = |key: &str| delta.get(key).and_then(Value::as_array).into_iter().flatten();
        parts("tool_calls").for_each(|part| add(&mut calls, part));
        parts("reasoning_details").for_each(|part| details.add(part));
    }
    let mut message = Map::from_iter([("role".to_owned(), "assistant".into())]);
    message.extend(said.into_iter().map(|(key, words)| (key.to_owned(), words.into())));
    if !details.all.is_empty() {
        message.insert("reasoning_details".to_owned(), details.all.into());
    }
    let mut calls = calls.all;
    if !calls.is_empty() {
        calls.sort_by_key(|call| call.index);
        let call = |Call { id, name, input, extra, .. }| {
            let mut call = json!({"id": id, "function": {"name": name, "arguments": input.text}});
            if !extra.is_null() {
                call["extra_content"] = extra;
            }
            call
        };
        message.insert("tool_calls".to_owned(), calls.into_iter().map(call).collect());
    }
    let has_ended = !end.is_null() || !error.is_null();
    let mut choice = json!({"message": message, "finish_reason": end});
    if !error.is_null() {
        choice["error"] = error;
    }
    whole.insert("choices".to_owned(), json!([choice]));
    Ok((whole.into(), has_ended))
}

/// Returns the words in a chunk of a chat completion.
pub(super) fn completion_words(chunk: &Value) -> String {
    chunk.pointer("/choices/0/delta/content").map(words).unwrap_or_default()
}

/// Returns the words in an event of a message.
pub(super) fn message_words(event: &Value) -> String {
    [text(event, "/content_block/text"), text(event, "/delta/text")].concat()
}

/// Returns the words in an event of a response.
pub(super) fn response_words(event: &Value) -> String {
    let is_words = text(event, "/type") == "response.output_text.delta";
    if is_words { text(event, "/delta").to_owned() } else { String::new() }
}

/// Returns the response in the last event of a stream. Some servers send its items only in events of their own.
pub(super) fn response(events: &[Value], deadline: &Deadline) -> Result<(Value, bool), Fault> {
    deadline.check()?;
    let of = |kind: &'static str| events.iter().filter(move |event| text(event, "/type") == kind);
    let ends = ["response.completed", "response.incomplete", "response.failed"];
    let Some(last) = ends.into_iter().find_map(|kind| of(kind).next_back()) else {
        return Ok((Value::Null, false));
    };
    let mut whole = object(last, "response");
    if whole.get("output").is_none_or(|output| output.get(0).is_none()) {
        let items = of("response.output_item.done").filter_map(|event| event.get("item"));
        whole["output"] = items.cloned().collect();
    }
    Ok((whole, true))
}

/// Returns a field of a value if it is an object, else an empty object that can be written to.
fn object(value: &Value, key: &str) -> Value {
    value.get(key).filter(|field| field.is_object()).cloned().unwrap_or_else(|| json!({}))
}

/// Joins the events of a message.
pub(super) fn message(events: &[Value], deadline: &Deadline) -> Result<(Value, bool), Fault> {
    let mut whole = json!({});
    let mut blocks: Vec<(u64, Value, String)> = Vec::new();
    // The last block of each index.
    let mut last: BTreeMap<u64, usize> = BTreeMap::new();
    let mut has_ended = false;
    for event in events {
        deadline.check()?;
        let nth = event.get("index").and_then(Value::as_u64).unwrap_or(0);
        match text(event, "/type") {
            "message_start" => whole = object(event, "message"),
            "content_block_start" => {
                last.insert(nth, blocks.len());
                blocks.push((nth, object(event, "content_block"), String::new()));
            }
            "content_block_delta" => {
                let at = *last.entry(nth).or_insert(blocks.len());
                if at == blocks.len() {
                    blocks.push((nth, Value::Null, String::new()));
                }
                let Some((_, block, input)) = blocks.get_mut(at) else { continue };
                input.push_str(text(event, "/delta/partial_json"));
                for key in ["text", "thinking", "signature"] {
                    let more = text(event, &format!("/delta/{key}"));
                    if more.is_empty() {
                        continue;
                    }
                    match &mut block[key] {
                        Value::String(said) => said.push_str(more),
                        said => *said = more.into(),
                    }
                }
            }
            "message_delta" => {
                whole["stop_reason"] =
                    event.pointer("/delta/stop_reason").cloned().unwrap_or_default();
                for (key, value) in
                    event.get("usage").and_then(Value::as_object).into_iter().flatten()
                {
                    // Input tokens are reported at the start, and not every server repeats them at the end.
                    if !value.is_null()
                        && (value != 0 || whole.pointer(&format!("/usage/{key}")).is_none())
                    {
                        if !whole["usage"].is_object() {
                            whole["usage"] = json!({});
                        }
                        whole["usage"][key] = value.clone();
                    }
                }
            }
            "message_stop" => has_ended = true,
            _ => {}
        }
    }
    blocks.sort_by_key(|(nth, ..)| *nth);
    let block = |(_, mut block, input): (u64, Value, String)| {
        if !input.is_empty() {
            block["input"] = serde_json::from_str(&input).unwrap_or_else(|_| input.into());
        }
        block
    };
    whole["content"] = blocks.into_iter().map(block).collect();
    Ok((whole, has_ended))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long() -> Deadline {
        Deadline::after(Duration::MAX)
    }

    fn stream(events: &[Value]) -> String {
        let event = |event: &Value| format!("event: x\r\ndata: {event}\r\n\r\n");
        events.iter().map(event).collect()
    }

    #[test]
    fn the_chunks_of_a_completion_are_one() {
        let chunk = |delta: Value, end: Value| json!({"model": "m", "choices": [{"delta": delta, "finish_reason": end}]});
        let call = |part: Value| json!({"tool_calls": [part]});
        let body = stream(&[
            chunk(json!({"role": "assistant", "content": ""}), Value::Null),
            chunk(json!({"reasoning_content": "Hm."}), Value::Null),
            chunk(json!({"content": "I "}), Value::Null),
            chunk(json!({"content": "look."}), Value::Null),
            chunk(
                call(
                    json!({"index": 1, "id": "c2", "function": {"name": "Read", "arguments": ""}}),
                ),
                Value::Null,
            ),
            chunk(call(json!({"index": 1, "function": {"arguments": "{\"a\""}})), Value::Null),
            chunk(call(json!({"index": 1, "function": {"arguments": ":1}"}})), "tool_calls".into()),
            json!({"choices": [], "usage": {"prompt_tokens": 5}}),
        ]);
        let whole: Value =
            serde_json::from_str(&joined(&body, completion, &long()).unwrap()).unwrap();
        assert_eq!(
            whole,
            json!({"model": "m", "usage": {"prompt_tokens": 5}, "choices": [{"finish_reason": "tool_calls", "message": {
                "role": "assistant", "content": "I look.", "reasoning_content": "Hm.",
                "tool_calls": [{"id": "c2", "function": {"name": "Read", "arguments": "{\"a\":1}"}}]}}]})
        );
    }

    #[test]
    fn calls_are_told_apart_whatever_their_index() {
        let check = |parts: &[Value], expected: &[(&str, &str)]| {
            let chunk = |part: &Value| json!({"choices": [{"delta": {"tool_calls": part}}]});
            let body = stream(&parts.iter().map(chunk).collect::<Vec<_>>()) + "data: [DONE]\n\n";
            let whole: Value =
                serde_json::from_str(&joined(&body, completion, &long()).unwrap()).unwrap();
            let call = |(id, input): &(&str, &str)| json!({"id": id, "function": {"name": "Read", "arguments": input}});
            let expected: Vec<Value> = expected.iter().map(call).collect();
            assert_eq!(whole["choices"][0]["message"]["tool_calls"], json!(expected), "{parts:?}");
        };
        let begin = |index: Value, id: &str, input: Value| json!({"index": index, "id": id, "function": {"name": "Read", "arguments": input}});
        let more =
            |index: Value, input: &str| json!({"index": index, "function": {"arguments": input}});
        let two = [("a", r#"{"n":1}"#), ("b", r#"{"n":2}"#)];
        for index in [json!(0), Value::Null] {
            let (a, b) = (index.clone(), || index.clone());
            // Whole calls, one a chunk or all in one.
            let [one, other] = [("a", r#"{"n":1}"#), ("b", r#"{"n":2}"#)]
                .map(|(id, input)| begin(b(), id, input.into()));
            check(&[json!([one]), json!([other])], &two);
            check(&[json!([one, other])], &two);
            // Calls in pieces, whose ids are repeated or not.
            for again in ["", "b"] {
                let mut last = more(b(), "2}");
                last["id"] = again.into();
                check(
                    &[
                        json!([begin(a.clone(), "a", "{\"n\"".into())]),
                        json!([more(b(), ":1}")]),
                        json!([begin(b(), "b", "{\"n\":".into())]),
                        json!([last]),
                    ],
                    &two,
                );
            }
            // Without an id, what is whole is followed by another one.
            check(
                &[
                    json!([begin(b(), "", r#"{"n":1}"#.into())]),
                    json!([begin(b(), "", json!({"n": 2}))]),
                ],
                &[("", r#"{"n":1}"#), ("", r#"{"n":2}"#)],
            );
        }
        // The pieces of two calls with an index of their own may come in turn.
        check(
            &[
                json!([begin(json!(1), "b", "{\"n\"".into())]),
                json!([begin(json!(0), "a", "{\"n\"".into())]),
                json!([more(json!(1), ":2}"), more(json!(0), ":1}")]),
            ],
            &two,
        );
        // A name that comes with each piece is no other call.
        check(
            &[
                json!([begin(json!(0), "a", "{\"n\"".into())]),
                json!([begin(json!(0), "a", ":1}".into())]),
                json!([begin(json!(0), "a", "".into())]),
            ],
            &[("a", r#"{"n":1}"#)],
        );
    }

    #[test]
    fn a_stream_is_read_however_its_lines_end() {
        let chunk = |words: Value| json!({"choices": [{"delta": {"content": words}}]}).to_string();
        let chunks =
            [chunk("a ".into()), chunk(json!([{"type": "text", "text": "b "}])), chunk("c".into())];
        for end in
            ["\n\n", "\r\n\r\n", "\r\r", "\n", "\r\n", "\r", "\n\ndata: ping\n\n", "\n: ping\n\n"]
        {
            let body: String =
                chunks.each_ref().map(|chunk| format!("data: {chunk}{end}")).concat();
            let body = format!("{body}data: [DONE]{end}data: late");
            let whole: Value =
                serde_json::from_str(&joined(&body, completion, &long()).unwrap()).unwrap();
            assert_eq!(whole["choices"][0]["message"]["content"], "a b c", "{end:?}");
        }
    }

    #[test]
    fn a_stream_with_a_broken_event_is_no_answer() {
        let whole = r#"{"choices":[{"delta":{"content":"keep"},"finish_reason":"stop"}],"type":"message_stop"}"#;
        let broken = r#"{"choices":[{"delta":{"content":"LOST"#;
        for join in [completion as Join, message] {
            for end in ["\n\n", "\n"] {
                let body = format!(
                    "data: {whole}{end}data: {broken}{end}data: {whole}\n\ndata: [DONE]\n\n"
                );
                let fault = joined(&body, join, &long()).unwrap_err();
                assert!(matches!(fault, Fault::BadAnswer { .. }), "{fault}");
                assert!(fault.to_string().contains("LOST"), "{fault}");
            }
            // A stream that ends in the middle of an event broke off there.
            let fault =
                joined(&format!("data: {whole}\n\ndata: {broken}"), join, &long()).unwrap_err();
            assert!(matches!(fault, Fault::Unreachable { .. }), "{fault}");
        }
        // Blocks that have no index are all told.
        let block = |text: &str| json!({"type": "content_block_start", "content_block": {"type": "text", "text": text}});
        let body = stream(&[block("a"), block("b"), json!({"type": "message_stop"})]);
        let whole: Value = serde_json::from_str(&joined(&body, message, &long()).unwrap()).unwrap();
        assert_eq!(
            whole["content"],
            json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])
        );
    }

    #[test]
    fn the_events_of_a_message_are_one() {
        let body = stream(&[
            json!({"type": "message_start", "message": {"id": "m1", "usage": {"input_tokens": 9, "output_tokens": 1}}}),
            json!({"type": "ping"}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "."}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "c", "name": "Read", "input": {}}}),
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{\"a\":"}}),
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "1}"}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"input_tokens": 0, "output_tokens": 7}}),
            json!({"type": "message_stop"}),
        ]);
        let whole: Value = serde_json::from_str(&joined(&body, message, &long()).unwrap()).unwrap();
        assert_eq!(
            whole,
            json!({"id": "m1", "stop_reason": "tool_use", "usage": {"input_tokens": 9, "output_tokens": 7}, "content": [
                {"type": "text", "text": "Hi."},
                {"type": "tool_use", "id": "c", "name": "Read", "input": {"a": 1}}]})
        );
    }

    #[test]
    fn words_that_are_cut_within_a_character_are_whole_again() {
        let chunk = |said: &str| {
            format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{said}\"}}}}]}}\n\n")
        };
        let part = |said: &str| {
            format!(
                "data: {{\"type\":\"content_block_delta\",\"delta\":{{\"text\":\"{said}\"}}}}\n\n"
            )
        };
        for parts in
            [[r"a \ud83d", r"\ude00", r" b \ud83d"], [r"a ", r"\ud83d\ude00 b", r" \ude00"]]
        {
            let end = "data: [DONE]\n\n";
            let body = parts.map(chunk).concat() + end;
            let whole: Value =
                serde_json::from_str(&joined(&body, completion, &long()).unwrap()).unwrap();
            let said = "a \u{1f600} b \u{fffd}";
            assert_eq!(whole["choices"][0]["message"]["content"], said);
            let body = parts.map(part).concat() + end;
            let whole: Value =
                serde_json::from_str(&joined(&body, message, &long()).unwrap()).unwrap();
            assert_eq!(whole["content"][0]["text"], said);
        }
    }

    #[test]
    fn an_error_behind_words_stays_with_them() {
        let error = json!({"code": 502, "message": "upstream died"});
        let choice =
            json!({"delta": {"content": "Half"}, "finish_reason": "error", "error": error});
        let body = stream(&[json!({"choices": [choice]})]);
        let whole: Value =
            serde_json::from_str(&joined(&body, completion, &long()).unwrap()).unwrap();
        assert_eq!(whole["choices"][0]["error"], error);
    }

    #[test]
    fn events_of_any_shape_are_put_together() {
        for odd in [json!(true), json!(5), json!([1]), json!(null)] {
            let body = stream(&[
                json!({"type": "message_start", "message": odd}),
                json!({"type": "message_start", "message": {"usage": odd, "content": odd}}),
                json!({"type": "content_block_start", "index": 0, "content_block": odd}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"text": "Hi", "partial_json": "{}"}}),
                json!({"type": "content_block_delta", "index": 7, "delta": odd}),
                json!({"type": "message_delta", "delta": odd, "usage": {"output_tokens": 7}}),
                json!({"type": "message_stop"}),
            ]);
            let whole: Value =
                serde_json::from_str(&joined(&body, message, &long()).unwrap()).unwrap();
            assert_eq!(whole["content"][0], json!({"text": "Hi", "input": {}}), "{odd}");
            assert_eq!(whole["usage"], json!({"output_tokens": 7}));
        }
    }

    #[test]
    fn a_stream_that_breaks_off_is_no_answer_and_an_error_in_it_is_one() {
        for join in [completion as Join, message] {
            let part = json!({"choices": [{"delta": {"content": "I"}}], "type": "message_start", "message": {}});
            assert!(matches!(
                joined(&stream(&[part]), join, &long()),
                Err(Fault::Unreachable { .. })
            ));
            for error in [
                json!({"type": "error", "error": {"message": "Overloaded"}}),
                json!({"object": "error", "message": "prompt is too long", "code": 400}),
            ] {
                let body = stream(std::slice::from_ref(&error));
                assert_eq!(joined(&body, join, &long()).unwrap(), error.to_string());
            }
            assert!(joined("data: nonsense\n\ndata: 5\n\n", join, &long()).is_err());
        }
        assert!(is_stream("\n: hello\n") && is_stream("event: x") && !is_stream("{\"data\":1}"));
        assert_eq!(events("data: a\ndata:b\n\ndata: c"), ["a\nb", "c"]);
    }

    /// An input of this size is read only by code whose cost grows in proportion to it.
    const MANY: usize = 50_000;

    #[test]
    fn blocks_with_new_indexes_cost_in_proportion_to_their_number() {
        let delta = |index: usize| json!({"type": "content_block_delta", "index": index, "delta": {"text": "a"}});
        let mut events: Vec<Value> = (0..MANY).map(delta).collect();
        events.push(json!({"type": "message_stop"}));
        let (whole, has_ended) = message(&events, &long()).unwrap();
        assert!(has_ended);
        assert_eq!(whole["content"].as_array().unwrap().len(), MANY);
    }

    #[test]
    fn calls_and_their_parts_cost_in_proportion_to_their_number() {
        let join = |parts: &dyn Fn(usize) -> Value| {
            let chunk = |n| json!({"choices": [{"delta": {"tool_calls": [parts(n)]}}]});
            let chunks: Vec<Value> = (0..MANY).map(chunk).collect();
            let (whole, _) = completion(&chunks, &long()).unwrap();
            whole["choices"][0]["message"]["tool_calls"].as_array().unwrap().clone()
        };
        let call = |index: Value, id: &str, input: &str| json!({"index": index, "id": id, "function": {"name": "Read", "arguments": input}});
        let new_indexes = join(&|n| call(n.into(), "", "{}"));
        assert_eq!(new_indexes.len(), MANY);
        let new_ids = join(&|n| call(Value::Null, &n.to_string(), "{}"));
        assert_eq!(new_ids.len(), MANY);
        // One call in many parts, each of which repeats the name, is not parsed with every part.
        for part in [r#""a":1,"#, r#""\\","#, "{}"] {
            let one = join(&|n| call(0.into(), "a", if n == 0 { "{" } else { part }));
            assert_eq!(one.len(), 1, "{part}");
        }
    }

    #[test]
    fn an_input_is_whole_once_its_brackets_are_closed() {
        let check = |parts: &[&str], expected: bool| {
            let mut input = Input::default();
            for part in parts {
                input.is_whole();
                input.push(part);
            }
            assert_eq!(input.is_whole(), expected, "{parts:?}");
        };
        check(&["", " ", "{", "\"a\": [{}]", "}"], true);
        check(&["{\"}\\", "\"}\": 1}"], true);
        check(&["{\"a\": 1"], false);
        check(&["{}", "{}"], false);
        check(&["[1]"], false);
        check(&["a", "{}"], false);
        check(&["{}", " \n"], true);
    }

    #[test]
    fn a_stream_that_is_read_past_its_time_limit_times_out() {
        let late = Deadline::after(Duration::ZERO);
        let is_late = |found: Result<String, Fault>| matches!(found, Err(Fault::TimedOut { .. }));
        let body = stream(&[json!({"type": "message_stop"})]);
        assert!(is_late(joined(&body, message, &late)));
        assert!(is_late(joined(&body, completion, &late)));
        assert!(message(&[json!({})], &late).is_err());
        assert!(completion(&[json!({})], &late).is_err());
    }
}
