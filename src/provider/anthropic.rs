//! The shape of Anthropic's messages.

use serde_json::{Map, Value, json};

use crate::{
    context::model::{ChatRequest, Fault},
    model::{Block, Image, Message, Role, Source, Stop, Thinking, Usage},
    provider::{checked, openai, readable},
};

/// Returns the body of a request.
pub(super) fn body(model: &str, request: &ChatRequest<'_>) -> Value {
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in request.messages {
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        let parts: Vec<Value> =
            message.blocks.iter().filter_map(|block| part(message.role, block)).collect();
        // The roles must alternate, and the results of one answer's calls stand in one message.
        match messages.last_mut() {
            Some((last, all)) if *last == role => all.extend(parts),
            _ if parts.is_empty() => {}
            _ => messages.push((role, parts)),
        }
    }
    let messages = messages.into_iter().map(|(role, mut content)| {
        // Results come first in their message, or the request is refused.
        content.sort_by_key(|part| part.get("type").is_none_or(|kind| kind != "tool_result"));
        json!({"role": role, "content": content})
    });
    let messages: Vec<Value> = messages.collect();
    let mut body = Map::new();
    body.insert("model".to_owned(), model.into());
    body.insert("max_tokens".to_owned(), request.max_tokens.into());
    if !request.system.is_empty() {
        body.insert("system".to_owned(), request.system.into());
    }
    body.insert("messages".to_owned(), messages.into());
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            let (name, description) = (&tool.name, &tool.description);
            json!({"name": name, "description": description, "input_schema": openai::object(&tool.schema)})
        });
        body.insert("tools".to_owned(), tools.collect());
    }
    Value::Object(body)
}

fn part(role: Role, block: &Block) -> Option<Value> {
    Some(match block {
        // An empty text is refused.
        Block::Text(text) if text.trim().is_empty() => return None,
        // There is no role for what the program says in between.
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
                blocks.iter().filter_map(|block| part(Role::Tool, block)).collect();
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
        // No thinking is asked for, so none needs to be given back; what is unknown cannot be said.
        Block::Thinking(_) | Block::Other { .. } => return None,
    })
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

/// Reads an answer.
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
                Block::Thinking(Thinking { text: text("thinking"), signature, is_redacted: false })
            }
            "redacted_thinking" => {
                let signature = Some(text("data"));
                Block::Thinking(Thinking { text: String::new(), signature, is_redacted: true })
            }
            "tool_use" => {
                let input = block.get("input").map_or_else(|| "{}".to_owned(), Value::to_string);
                Block::Call { id: text("id"), name: text("name"), input, signature: None }
            }
            name => Block::Other { name: name.to_owned(), json: block.to_string() },
        });
    }
    let stop = value.get("stop_reason").and_then(Value::as_str);
    message.stop = stop.and_then(Stop::parse);
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
