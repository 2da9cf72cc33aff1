//! The JSON of OpenAI's Responses API. Nothing is stored there: each request holds the whole conversation, with the reasoning
//! items in encrypted form.

use serde_json::{Value, json};

use crate::{
    context::model::{ChatRequest, Fault},
    model::{Block, Message, Role, SentAs, Stop, Thinking, Usage},
    provider::{
        answer::{checked, nameless, readable, refused},
        openai::{self, NO_IMAGE},
        way::Way,
    },
};

/// Returns the body of a request.
pub(super) fn body(model: &str, request: &ChatRequest<'_>, way: &Way) -> Value {
    let mut input = Vec::new();
    for message in request.messages {
        write(message, way, &mut input);
    }
    let mut body = json!({"model": model, "input": input, "store": false, "max_output_tokens": request.max_tokens});
    if way.takes("encrypted_content") {
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    if !request.system.is_empty() {
        body["instructions"] = request.system.into();
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({"type": "function", "name": tool.name, "description": tool.description,
                "parameters": openai::object(&tool.schema), "strict": false})
        });
        body["tools"] = tools.collect();
    }
    body
}

/// Adds the items of a message: one for each of its texts, calls, results and reasoning items.
fn write(message: &Message, way: &Way, input: &mut Vec<Value>) {
    let is_model = message.role == Role::Assistant;
    let kind = if is_model { "output_text" } else { "input_text" };
    let mut parts = Vec::new();
    for block in &message.blocks {
        let item = match block {
            Block::Text(text) if text.is_empty() => continue,
            Block::Text(text) => {
                parts.push(json!({"type": kind, "text": text}));
                continue;
            }
            Block::Image(image) => {
                parts.push(match openai::address(image) {
                    Some(url) => json!({"type": "input_image", "image_url": url}),
                    None => json!({"type": kind, "text": NO_IMAGE}),
                });
                continue;
            }
            Block::Call { id, name, input, .. } => {
                json!({"type": "function_call", "call_id": id, "name": name, "arguments": input})
            }
            Block::Result { id, .. } => {
                json!({"type": "function_call_output", "call_id": id, "output": block.answer_text()})
            }
            Block::Thinking(Thinking { signature: Some(item), sent_as: SentAs::Item, .. })
                if way.takes("encrypted_content") =>
            {
                let Ok(item) = serde_json::from_str(item) else { continue };
                item
            }
            // Other reasoning belongs to other APIs. Unknown blocks cannot be expressed.
            Block::Thinking(_) | Block::Other { .. } => continue,
        };
        say(message.role, &mut parts, input);
        input.push(item);
    }
    say(message.role, &mut parts, input);
}

/// Adds the texts and images so far, so that the items of an answer keep their order.
fn say(role: Role, parts: &mut Vec<Value>, input: &mut Vec<Value>) {
    let role = if role == Role::Tool { Role::User } else { role };
    if !parts.is_empty() {
        let content = std::mem::take(parts);
        input.push(json!({"type": "message", "role": role.as_str(), "content": content}));
    }
}

/// Parses an answer.
pub(super) fn read(body: &str) -> Result<Message, Fault> {
    let value = openai::parse_object(body)?;
    if value.get("status").is_some_and(|status| status == "failed") {
        // The rest of the body repeats the request, whose words say nothing about the error.
        return Err(refused(&json!({"error": value.get("error")})));
    }
    let value = openai::parse(body).map(|_| value)?;
    let Some(items) = value.get("output").and_then(Value::as_array) else {
        return Err(Fault::BadAnswer { said: format!("no output: {}", readable(body)) });
    };
    let mut message = Message::new(Role::Assistant, Vec::new());
    let mut declined = None;
    for item in items {
        let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let parts = |key: &str| item.get(key).and_then(Value::as_array).into_iter().flatten();
        let field = |part: &Value, key: &str| Some(part.get(key)?.as_str()?.to_owned());
        match text("type").as_str() {
            "message" => {
                let texts = parts("content").filter_map(|part| field(part, "text"));
                message.blocks.extend(texts.map(Block::Text));
                declined =
                    declined.or_else(|| parts("content").find_map(|part| field(part, "refusal")));
            }
            "reasoning" => {
                let texts: Vec<String> = parts("summary")
                    .chain(parts("content"))
                    .filter_map(|part| field(part, "text"))
                    .collect();
                let text = texts.join("\n\n");
                let (is_redacted, signature) = (text.is_empty(), Some(item.to_string()));
                let sent_as = SentAs::Item;
                let thinking = Thinking { text, signature, is_redacted, sent_as };
                message.blocks.push(Block::Thinking(thinking));
            }
            "function_call" => {
                let (id, name, input) = (text("call_id"), text("name"), text("arguments"));
                if name.trim().is_empty() {
                    return Err(nameless());
                }
                let input = if input.trim().is_empty() { "{}".to_owned() } else { input };
                message.blocks.push(Block::Call { id, name, input, signature: None });
            }
            name => {
                let block = Block::Other { name: name.to_owned(), json: item.to_string() };
                message.blocks.push(block);
            }
        }
    }
    let is_call = |block: &Block| matches!(block, Block::Call { .. });
    let why = value.pointer("/incomplete_details/reason").and_then(Value::as_str);
    message.stop = match why {
        Some("content_filter") => Some(Stop::Refused),
        Some(_) => Some(Stop::Length),
        None if message.blocks.iter().any(is_call) => Some(Stop::Calls),
        None => Some(Stop::End),
    };
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    (message.id, message.model) = (text("id"), text("model"));
    message.usage = value.get("usage").and_then(|usage| {
        let figure = |path: &str| usage.pointer(path).and_then(Value::as_u64);
        let asked = figure("/input_tokens")?;
        let cached = figure("/input_tokens_details/cached_tokens").unwrap_or(0).min(asked);
        let output = figure("/output_tokens").unwrap_or(0);
        Some(Usage { input: asked - cached, output, cache_read: cached, cache_write: 0 })
    });
    let has_said = |block: &Block| matches!(block, Block::Text(_) | Block::Call { .. });
    match declined {
        Some(said) if !message.blocks.iter().any(has_said) => Err(Fault::Declined { said }),
        _ => checked(message, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_items_of_an_answer_are_read_in_their_order() {
        let reasoning = json!({"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "e"});
        let body = json!({"id": "r1", "model": "m", "status": "completed", "error": null, "output": [
            reasoning,
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "Read", "arguments": "{\"a\":1}"}],
            "usage": {"input_tokens": 9, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}}});
        let message = read(&body.to_string()).unwrap();
        let thinking = Thinking {
            text: "Hm.".to_owned(),
            signature: Some(reasoning.to_string()),
            is_redacted: false,
            sent_as: SentAs::Item,
        };
        let call = Block::Call {
            id: "c1".to_owned(),
            name: "Read".to_owned(),
            input: r#"{"a":1}"#.to_owned(),
            signature: None,
        };
        let text = Block::Text("I look.".to_owned());
        assert_eq!(message.blocks, [Block::Thinking(thinking), text, call]);
        let usage = Usage { input: 5, output: 2, cache_read: 4, cache_write: 0 };
        assert_eq!((message.stop, message.usage), (Some(Stop::Calls), Some(usage)));
    }

    #[test]
    fn an_answer_that_is_none_says_why() {
        let said = |content: Value| json!([{"type": "message", "content": [content]}]);
        let text = said(json!({"type": "output_text", "text": "Half"}));
        let check = |body: Value, expected: Result<Option<Stop>, &str>| {
            let found = read(&body.to_string());
            let found = found.map(|message| message.stop).map_err(|fault| fault.to_string());
            assert_eq!(found, expected.map_err(str::to_owned), "{body}");
        };
        let cut = |why: &str, output: &Value| json!({"status": "incomplete", "incomplete_details": {"reason": why}, "output": output});
        check(cut("max_output_tokens", &text), Ok(Some(Stop::Length)));
        check(cut("content_filter", &text), Ok(Some(Stop::Refused)));
        check(
            cut("max_output_tokens", &json!([])),
            Err("the model reached its output token limit before producing any text"),
        );
        let refusal = said(json!({"type": "refusal", "refusal": "I will not."}));
        check(
            json!({"status": "completed", "output": refusal}),
            Err("the request failed: I will not."),
        );
        let failed = json!({"code": "server_error", "message": "it broke"});
        check(
            json!({"status": "failed", "error": failed, "instructions": "rate limit", "output": []}),
            Err("the request failed: it broke"),
        );
        check(
            json!({"status": "completed"}),
            Err("unusable answer: no output: {\"status\":\"completed\"}"),
        );
    }
}
