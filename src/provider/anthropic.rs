//! The JSON of Anthropic's Messages API.

use serde_json::{Map, Value, json};

use crate::{
    context::model::{ChatRequest, Fault},
    model::{Block, Image, Message, Role, SentAs, Source, Stop, Thinking, Usage},
    provider::{
        answer::{checked, nameless, readable},
        openai,
        way::{ADAPTIVE, Way},
    },
};

/// Returns the body of a request. With `caches` it marks the ends of the repeated prefixes for the provider's cache: after the
/// system prompt, or after the tools without one, and after each of the last two messages in the user's role.
pub(super) fn body(model: &str, request: &ChatRequest<'_>, way: &Way, caches: bool) -> Value {
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in request.messages {
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        let parts: Vec<Value> =
            message.blocks.iter().filter_map(|block| part(message.role, block, way)).collect();
        // Roles must alternate, and the results of one answer's calls must be in one message.
        match messages.last_mut() {
            Some((last, all)) if *last == role => all.extend(parts),
            _ if parts.is_empty() => {}
            _ => messages.push((role, parts)),
        }
    }
    let messages = messages.into_iter().map(|(role, mut content)| {
        // Results must come first in their message.
        content.sort_by_key(|part| part.get("type").is_none_or(|kind| kind != "tool_result"));
        json!({"role": role, "content": content})
    });
    let mut messages: Vec<Value> = messages.collect();
    let mark = |part: &mut Value| part["cache_control"] = json!({"type": "ephemeral"});
    if caches {
        let said = messages.iter_mut().rev().filter(|message| message["role"] == "user");
        let last = said.filter_map(|message| message["content"].as_array_mut()?.last_mut());
        last.take(2).for_each(mark);
    }
    let mut body = Map::new();
    body.insert("model".to_owned(), model.into());
    body.insert("max_tokens".to_owned(), request.max_tokens.into());
    if !request.system.is_empty() {
        let mut system = json!({"type": "text", "text": request.system});
        if caches {
            mark(&mut system);
        }
        body.insert("system".to_owned(), json!([system]));
    }
    body.insert("messages".to_owned(), messages.into());
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            let (name, description) = (&tool.name, &tool.description);
            json!({"name": name, "description": description, "input_schema": openai::object(&tool.schema)})
        });
        let mut tools: Vec<Value> = tools.collect();
        if let (true, Some(last)) = (caches && request.system.is_empty(), tools.last_mut()) {
            mark(last);
        }
        body.insert("tools".to_owned(), tools.into());
    }
    Value::Object(body)
}

fn part(role: Role, block: &Block, way: &Way) -> Option<Value> {
    Some(match block {
        // An empty text is refused.
        Block::Text(text) if text.trim().is_empty() => return None,
        // Anthropic has no role for program text between messages.
        Block::Text(text) if role == Role::System => {
            json!({"type": "text", "text": format!("<system>{text}</system>")})
        }
        Block::Text(text) => json!({"type": "text", "text": text}),
        Block::Image(image) => picture(image),
        Block::Call { id, name, input, .. } => {
            json!({"type": "tool_use", "id": id, "name": name, "input": openai::object(input)})
        }
        Block::Result { id, blocks, error, .. } => {
            let parts: Vec<Value> =
                blocks.iter().filter_map(|block| part(Role::Tool, block, way)).collect();
            let mut result = json!({"type": "tool_result", "tool_use_id": id});
            if let Some(result) = result.as_object_mut() {
                if !parts.is_empty() {
                    result.insert("content".to_owned(), parts.into());
                }
                if *error {
                    result.insert("is_error".to_owned(), true.into());
                }
            }
            result
        }
        Block::Thinking(Thinking { text, signature: Some(signature), is_redacted, sent_as })
            if *sent_as == SentAs::Block && way.takes("signature") =>
        {
            if *is_redacted {
                json!({"type": "redacted_thinking", "data": signature})
            } else {
                json!({"type": "thinking", "thinking": text, "signature": signature})
            }
        }
        // Unsigned or foreign thinking is refused. Unknown blocks cannot be expressed.
        Block::Thinking(_) | Block::Other { .. } => return None,
    })
}

/// Asks for thinking in a body. Does nothing if the calls at the end of the conversation have no thinking before them, because
/// that would be refused.
pub(super) fn think(body: &mut Value, effort: &str, way: &Way) {
    /// The smallest budget that is accepted.
    const LEAST: u64 = 1_024;
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let last = messages.iter().rfind(|message| message["role"] == "assistant");
    let kinds = |part: &Value| part["type"].as_str().unwrap_or_default().to_owned();
    let parts = last.and_then(|message| message["content"].as_array());
    let kinds: Vec<String> = parts.into_iter().flatten().map(kinds).collect();
    let has_thought = kinds.first().is_some_and(|kind| kind.ends_with("thinking"));
    if kinds.iter().any(|kind| kind == "tool_use") && !has_thought {
        return;
    }
    if way.wants(ADAPTIVE) {
        body["thinking"] = json!({"type": "adaptive"});
        body["output_config"] = json!({"effort": effort});
        return;
    }
    let budget = match effort {
        "none" | "off" => 0,
        "minimal" => LEAST,
        "low" => 2_048,
        "medium" => 8_192,
        _ => 16_384,
    };
    // The budget is a part of the answer's limit, and the text needs some of it too.
    let most = body["max_tokens"].as_u64().unwrap_or(0);
    let budget = budget.min(most - most / 4);
    if budget >= LEAST {
        body["thinking"] = json!({"type": "enabled", "budget_tokens": budget});
    }
}

fn picture(image: &Image) -> Value {
    let source = match &image.source {
        Source::Data(data) => {
            let media = image.media.as_deref().unwrap_or("image/png");
            json!({"type": "base64", "media_type": media, "data": data})
        }
        Source::Url(url) => json!({"type": "url", "url": url}),
        Source::Elsewhere => return json!({"type": "text", "text": "[an image]"}),
    };
    json!({"type": "image", "source": source})
}

/// Parses an answer.
pub(super) fn read(body: &str) -> Result<Message, Fault> {
    let value = openai::parse(body)?;
    let Some(blocks) = value.get("content").and_then(Value::as_array) else {
        return Err(Fault::BadAnswer { said: format!("no content: {}", readable(body)) });
    };
    let mut message = Message::new(Role::Assistant, Vec::new());
    for block in blocks {
        let text =
            |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        message.blocks.push(match text("type").as_str() {
            "text" => Block::Text(text("text")),
            "thinking" => {
                let signature = Some(text("signature")).filter(|signature| !signature.is_empty());
                let text = text("thinking");
                Block::Thinking(Thinking { text, signature, ..Thinking::default() })
            }
            "redacted_thinking" => {
                let signature = Some(text("data"));
                let is_redacted = true;
                Block::Thinking(Thinking { signature, is_redacted, ..Thinking::default() })
            }
            "tool_use" => {
                let input = match block.get("input") {
                    // Arguments that were truncated in a stream.
                    Some(Value::String(input)) => input.clone(),
                    input => input.map_or_else(|| "{}".to_owned(), Value::to_string),
                };
                let name = text("name");
                if name.trim().is_empty() {
                    return Err(nameless());
                }
                Block::Call { id: text("id"), name, input, signature: None }
            }
            name => Block::Other { name: name.to_owned(), json: block.to_string() },
        });
    }
    let stop = value.get("stop_reason").and_then(Value::as_str);
    message.stop = stop.and_then(Stop::of_word);
    message.id = value.get("id").and_then(Value::as_str).map(str::to_owned);
    message.model = value.get("model").and_then(Value::as_str).map(str::to_owned);
    message.usage = value.get("usage").and_then(|usage| {
        let figure = |key: &str| usage.get(key).and_then(Value::as_u64);
        Some(Usage {
            input: figure("input_tokens")?,
            output: figure("output_tokens").unwrap_or(0),
            cache_read: figure("cache_read_input_tokens").unwrap_or(0),
            cache_write: figure("cache_creation_input_tokens").unwrap_or(0),
        })
    });
    checked(message, stop)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn all_blocks_are_read_and_the_cache_is_told_apart() {
        let body = r#"{"id":"m1","model":"x","content":[{"type":"thinking","thinking":"Hm.","signature":"s"},
            {"type":"redacted_thinking","data":"d"},{"type":"text","text":"Hi."},
            {"type":"tool_use","id":"c","name":"Bash","input":{"b":1,"a":2}},{"type":"server_tool_use","id":"z"}],
            "stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":3,
            "cache_creation_input_tokens":4}}"#;
        let message = read(body).unwrap();
        let signed = |text: &str, signature: &str, is_redacted| {
            let signature = Some(signature.to_owned());
            let sent_as = SentAs::Block;
            Block::Thinking(Thinking { text: text.to_owned(), signature, is_redacted, sent_as })
        };
        let call = Block::Call {
            id: "c".to_owned(),
            name: "Bash".to_owned(),
            input: r#"{"b":1,"a":2}"#.to_owned(),
            signature: None,
        };
        let json = r#"{"type":"server_tool_use","id":"z"}"#.to_owned();
        let other = Block::Other { name: "server_tool_use".to_owned(), json };
        let text = Block::Text("Hi.".to_owned());
        assert_eq!(
            message.blocks,
            [signed("Hm.", "s", false), signed("", "d", true), text, call, other]
        );
        let usage = Usage { input: 1, output: 2, cache_read: 3, cache_write: 4 };
        assert_eq!((message.stop, message.usage), (Some(Stop::Calls), Some(usage)));
    }

    #[test]
    fn arguments_that_were_cut_stay_as_they_came() {
        let body = r#"{"content":[{"type":"tool_use","id":"c","name":"Bash","input":"{\"cmd\":\"rm -rf /tmp/"}],"stop_reason":"max_tokens"}"#;
        let message = read(body).unwrap();
        let [Block::Call { input, .. }] = message.blocks.as_slice() else { panic!("{message:?}") };
        assert_eq!((input.as_str(), message.stop), (r#"{"cmd":"rm -rf /tmp/"#, Some(Stop::Length)));
    }

    #[test]
    fn a_nameless_call_is_no_answer() {
        let called = |name: &str| {
            read(&format!(r#"{{"content":[{{"type":"tool_use","id":"c"{name},"input":{{}}}}]}}"#))
        };
        for nameless in ["", r#","name":" ""#] {
            assert!(matches!(called(nameless), Err(Fault::BadAnswer { .. })), "{nameless}");
        }
        assert!(called(r#","name":"Bash""#).is_ok());
    }

    #[test]
    fn a_full_window_and_a_refusal_are_no_answers() {
        let stopped = |reason: &str| read(&format!(r#"{{"content":[],"stop_reason":"{reason}"}}"#));
        assert!(matches!(stopped("model_context_window_exceeded"), Err(Fault::Overflow { .. })));
        assert!(matches!(stopped("refusal"), Err(Fault::Declined { .. })));
        assert_eq!(stopped("end_turn"), Err(Fault::Silent { was_cut: false }));
        assert_eq!(stopped("max_tokens"), Err(Fault::Silent { was_cut: true }));
    }

    #[test]
    fn neighbours_of_one_role_are_one_message_and_results_come_first() {
        let text = |role, text: &str| Message::new(role, vec![Block::Text(text.to_owned())]);
        let result = Block::answer("c".to_owned(), String::new());
        let messages = [
            text(Role::System, "note"),
            text(Role::User, "a"),
            text(Role::User, " "),
            Message::new(Role::Tool, vec![result]),
            text(Role::Assistant, ""),
        ];
        let request = ChatRequest {
            system: "",
            messages: &messages,
            tools: &[],
            max_tokens: 1,
            limit: Duration::MAX,
        };
        let expected = json!([{"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c"},
            {"type": "text", "text": "<system>note</system>"},
            {"type": "text", "text": "a"}]}]);
        assert_eq!(body("m", &request, &Way::default(), false)["messages"], expected);
    }
}
