//! The schema of messages. When Kimi CLI resumes a session, it skips messages that its own schema rejects.
//!
//! Invariant: a content part of an unknown kind is never rejected, because a newer version may know it.

use crate::{
    json::{Kind, Raw},
    wire::fields::text,
};

/// Returns true if the agent reads a message.
pub(super) fn accepts(message: Raw<'_>) -> bool {
    let [content, name, calls, call] =
        message.pick(["content", "name", "tool_calls", "tool_call_id"]);
    let has_content = content.is_some_and(|content| match content.kind() {
        Kind::Null | Kind::String => true,
        Kind::Array => content.items().all(accepts_part),
        _ => false,
    });
    let has_calls = calls.is_none_or(|calls| {
        calls.is_null() || calls.kind() == Kind::Array && calls.items().all(accepts_call)
    });
    has_content && has_calls && may_be_text(name) && may_be_text(call)
}

fn accepts_part(part: Raw<'_>) -> bool {
    let is_at = |key| {
        let place: Option<Raw<'_>> = part.get(key);
        place.is_some_and(|place| is_text(place.get("url")) && may_be_text(place.get("id")))
    };
    match text(part, "type").as_deref() {
        Some("text") => is_text(part.get("text")),
        Some("think") => is_text(part.get("think")) && may_be_text(part.get("encrypted")),
        Some(kind @ ("image_url" | "audio_url" | "video_url")) => is_at(kind),
        kind => kind.is_some(),
    }
}

fn accepts_call(call: Raw<'_>) -> bool {
    let is_function =
        call.get("type").is_none_or(|kind| kind.text().as_deref() == Some("function"));
    let function = call.get("function");
    let [name, arguments] =
        function.map_or([None; 2], |function| function.pick(["name", "arguments"]));
    let has_extras = |extras: Raw<'_>| matches!(extras.kind(), Kind::Null | Kind::Object);
    is_function
        && is_text(call.get("id"))
        && is_text(name)
        && arguments.is_some()
        && may_be_text(arguments)
        && call.get("extras").is_none_or(has_extras)
}

fn is_text(value: Option<Raw<'_>>) -> bool {
    value.is_some_and(|value| value.kind() == Kind::String)
}

fn may_be_text(value: Option<Raw<'_>>) -> bool {
    value.is_none_or(|value| matches!(value.kind(), Kind::Null | Kind::String))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_if_all_of_it_is_as_the_agent_expects() {
        let call = |call: &str| format!(r#""content":[],"tool_calls":[{call}]"#);
        let check = |fields: &str, is_read: bool| {
            let line = format!(r#"{{"role":"assistant",{fields}}}"#);
            assert_eq!(accepts(Raw::object(line.as_bytes()).unwrap()), is_read, "{line}");
        };
        check(r#""content":"a""#, true);
        check(r#""content":null,"tool_calls":null,"name":null,"tool_call_id":null"#, true);
        check(r#""tool_calls":[]"#, false);
        check(r#""content":5"#, false);
        check(r#""content":["a"]"#, false);
        check(r#""content":{"type":"text","text":"a"}"#, false);
        check(r#""content":[{"type":"text","text":"a"},{"type":"new","of":5}]"#, true);
        check(r#""content":[{"type":"text"}]"#, false);
        check(r#""content":[{"type":"text","text":null}]"#, false);
        check(r#""content":[{"text":"a"}]"#, false);
        check(r#""content":[{"type":"think","think":"a","encrypted":null}]"#, true);
        check(r#""content":[{"type":"think","think":"a","encrypted":5}]"#, false);
        check(r#""content":[{"type":"image_url","image_url":{"url":"a"}}]"#, true);
        check(r#""content":[{"type":"image_url","image_url":"a"}]"#, false);
        check(r#""content":"a","name":5"#, false);
        check(r#""content":"a","tool_call_id":5"#, false);
        check(&call(r#"{"id":"t","function":{"name":"a","arguments":"{}"},"extras":{}}"#), true);
        check(&call(r#"{"id":"t","function":{"name":"a","arguments":null}}"#), true);
        check(&call(r#"{"id":"t","function":{"name":"a"}}"#), false);
        check(&call(r#"{"id":"t","function":{"name":"a","arguments":{}}}"#), false);
        check(&call(r#"{"id":"t","function":{"arguments":"{}"}}"#), false);
        check(&call(r#"{"function":{"name":"a","arguments":"{}"}}"#), false);
        check(
            &call(r#"{"type":"custom","id":"t","function":{"name":"a","arguments":"{}"}}"#),
            false,
        );
        check(r#""content":"a","tool_calls":{}"#, false);
    }
}
