//! Streams: an answer that comes as server-sent events, put together as if it had come at once.
//!
//! Servers stream though nobody asked them to, so a body is taken for a stream by its looks. Nothing is shown before the end,
//! so the events are read when all of them are there.
//!
//! Invariant: a stream that breaks off before its answer has ended is no answer.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::context::model::Fault;

/// Whether a body is a stream of events.
pub(super) fn is_stream(body: &str) -> bool {
    let start = body.trim_start();
    ["data:", "event:", "id:", "retry:", ":"].iter().any(|field| start.starts_with(field))
}

/// Puts the events of one interface together, and says whether the answer has ended.
pub(super) type Join = fn(&[Value]) -> (Value, bool);

/// Returns the body that a stream would have been in one piece.
pub(super) fn joined(body: &str, join: Join) -> Result<String, Fault> {
    let events = events(body);
    let mut values = Vec::new();
    let mut is_done = false;
    for event in &events {
        is_done |= event.trim() == "[DONE]";
        let Ok(value) = serde_json::from_str::<Value>(event) else { continue };
        if value.get("error").is_some_and(|error| !error.is_null()) {
            return Ok(value.to_string());
        }
        values.push(value);
    }
    let (whole, has_ended) = join(&values);
    if is_done || has_ended {
        return Ok(whole.to_string());
    }
    Err(Fault::Unreachable { said: "the stream broke off before the answer was whole".to_owned() })
}

/// Returns the data of each event.
fn events(body: &str) -> Vec<String> {
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

/// Returns a string of a value, empty if there is none.
fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Puts the chunks of a chat completion together.
pub(super) fn completion(chunks: &[Value]) -> (Value, bool) {
    let mut whole = Map::new();
    let mut words: BTreeMap<&str, String> = BTreeMap::new();
    let mut calls: BTreeMap<u64, [String; 3]> = BTreeMap::new();
    let mut end = Value::Null;
    for chunk in chunks {
        for key in ["id", "model", "usage"] {
            if let Some(value) = chunk.get(key).filter(|value| !value.is_null()) {
                whole.insert(key.to_owned(), value.clone());
            }
        }
        let Some(choice) = chunk.pointer("/choices/0") else { continue };
        if let Some(reason) = choice.get("finish_reason").filter(|reason| !reason.is_null()) {
            end = reason.clone();
        }
        let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) else { continue };
        for key in ["content", "reasoning_content", "reasoning", "refusal"] {
            if let Some(more) = delta.get(key).and_then(Value::as_str) {
                words.entry(key).or_default().push_str(more);
            }
        }
        let more = delta.get("tool_calls").and_then(Value::as_array);
        for (nth, call) in more.into_iter().flatten().enumerate() {
            let nth = call.get("index").and_then(Value::as_u64).unwrap_or(nth as u64);
            let [id, name, input] = calls.entry(nth).or_default();
            for (part, key) in [(id, "/id"), (name, "/function/name")] {
                // Some servers repeat the names with each chunk.
                if part.is_empty() {
                    text(call, key).clone_into(part);
                }
            }
            input.push_str(text(call, "/function/arguments"));
        }
    }
    let mut message = Map::from_iter([("role".to_owned(), "assistant".into())]);
    message.extend(words.into_iter().map(|(key, words)| (key.to_owned(), words.into())));
    if !calls.is_empty() {
        let call = |[id, name, input]: [String; 3]| json!({"id": id, "function": {"name": name, "arguments": input}});
        message.insert("tool_calls".to_owned(), calls.into_values().map(call).collect());
    }
    let has_ended = !end.is_null();
    whole.insert("choices".to_owned(), json!([{"message": message, "finish_reason": end}]));
    (whole.into(), has_ended)
}

/// Returns a field of a value if it is an object, else an empty one, which can be written to.
fn object(value: &Value, key: &str) -> Value {
    value.get(key).filter(|field| field.is_object()).cloned().unwrap_or_else(|| json!({}))
}

/// Puts the events of a message together.
pub(super) fn message(events: &[Value]) -> (Value, bool) {
    let mut whole = json!({});
    let mut blocks: BTreeMap<u64, (Value, String)> = BTreeMap::new();
    let mut has_ended = false;
    for event in events {
        let nth = event.get("index").and_then(Value::as_u64).unwrap_or(0);
        match text(event, "/type") {
            "message_start" => whole = object(event, "message"),
            "content_block_start" => {
                blocks.insert(nth, (object(event, "content_block"), String::new()));
            }
            "content_block_delta" => {
                let (block, input) = blocks.entry(nth).or_default();
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
                    // What was sent is counted at the start, and not again by every server at the end.
                    if !value.is_null()
                        && (value != 0 || whole.pointer(&format!("/usage/{key}")).is_none())
                    {
                        let mut usage = object(&whole, "usage");
                        usage[key] = value.clone();
                        whole["usage"] = usage;
                    }
                }
            }
            "message_stop" => has_ended = true,
            _ => {}
        }
    }
    let block = |(mut block, input): (Value, String)| {
        if !input.is_empty() {
            block["input"] = serde_json::from_str(&input).unwrap_or_else(|_| input.into());
        }
        block
    };
    whole["content"] = blocks.into_values().map(block).collect();
    (whole, has_ended)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let whole: Value = serde_json::from_str(&joined(&body, completion).unwrap()).unwrap();
        assert_eq!(
            whole,
            json!({"model": "m", "usage": {"prompt_tokens": 5}, "choices": [{"finish_reason": "tool_calls", "message": {
                "role": "assistant", "content": "I look.", "reasoning_content": "Hm.",
                "tool_calls": [{"id": "c2", "function": {"name": "Read", "arguments": "{\"a\":1}"}}]}}]})
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
        let whole: Value = serde_json::from_str(&joined(&body, message).unwrap()).unwrap();
        assert_eq!(
            whole,
            json!({"id": "m1", "stop_reason": "tool_use", "usage": {"input_tokens": 9, "output_tokens": 7}, "content": [
                {"type": "text", "text": "Hi."},
                {"type": "tool_use", "id": "c", "name": "Read", "input": {"a": 1}}]})
        );
    }

    #[test]
    fn events_of_any_shape_are_put_together() {
        for odd in [json!("x"), json!(5), json!([1]), json!(null)] {
            let body = stream(&[
                json!({"type": "message_start", "message": odd}),
                json!({"type": "message_start", "message": {"usage": odd, "content": odd}}),
                json!({"type": "content_block_start", "index": 0, "content_block": odd}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"text": "Hi", "partial_json": "{}"}}),
                json!({"type": "content_block_delta", "index": 7, "delta": odd}),
                json!({"type": "message_delta", "delta": odd, "usage": {"output_tokens": 7}}),
                json!({"type": "message_stop"}),
            ]);
            let whole: Value = serde_json::from_str(&joined(&body, message).unwrap()).unwrap();
            assert_eq!(whole["content"][0], json!({"text": "Hi", "input": {}}), "{odd}");
            assert_eq!(whole["usage"], json!({"output_tokens": 7}));
        }
    }

    #[test]
    fn a_stream_that_breaks_off_is_no_answer_and_an_error_in_it_is_one() {
        for join in [completion as Join, message] {
            let part = json!({"choices": [{"delta": {"content": "I"}}], "type": "message_start", "message": {}});
            assert!(matches!(joined(&stream(&[part]), join), Err(Fault::Unreachable { .. })));
            let error = json!({"type": "error", "error": {"message": "Overloaded"}});
            assert_eq!(
                joined(&stream(std::slice::from_ref(&error)), join).unwrap(),
                error.to_string()
            );
            assert!(joined("data: nonsense\n\ndata: 5\n\n", join).is_err());
        }
        assert!(is_stream("\n: hello\n") && is_stream("event: x") && !is_stream("{\"data\":1}"));
        assert_eq!(events("data: a\ndata:b\n\ndata: c"), ["a\nb", "c"]);
    }
}
