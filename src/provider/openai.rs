//! The JSON of OpenAI's Chat Completions API, as most servers implement it.

use serde_json::{Map, Value, json};

use crate::{
    context::{
        model::{ChatRequest, Fault},
        shape::{self, UNSIGNED},
    },
    json,
    model::{Block, Image, Message, Role, SentAs, Source, Stop, Thinking, Usage},
    provider::{
        answer::{checked, is_error, is_message, is_page, nameless, readable, refused},
        way::{REASONING, SIGNATURES, Way},
    },
};

/// Returns the body of a request.
pub(super) fn body(model: Option<&str>, request: &ChatRequest<'_>, way: &Way) -> Value {
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        messages.push(json!({"role": "system", "content": request.system}));
    }
    let signature = |block: &Block| matches!(block, Block::Call { signature: Some(_), .. });
    let is_signed = |message: &Message| message.blocks.iter().any(signature);
    let mut way = way.clone();
    if request.messages.iter().any(is_signed) {
        way.wanted.insert(SIGNATURES);
    }
    for message in request.messages {
        write(message, &way, &mut messages);
    }
    let mut body = Map::new();
    if let Some(model) = model {
        body.insert("model".to_owned(), model.into());
    }
    body.insert("messages".to_owned(), messages.into());
    body.insert(way.limit_name, request.max_tokens.into());
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            let (name, description) = (&tool.name, &tool.description);
            let function = json!({"name": name, "description": description, "parameters": object(&tool.schema)});
            json!({"type": "function", "function": function})
        });
        body.insert("tools".to_owned(), tools.collect());
    }
    Value::Object(body)
}

/// Adds a message. A tool's message becomes one message for each result.
fn write(message: &Message, way: &Way, messages: &mut Vec<Value>) {
    let mut parts = Vec::new();
    let mut calls = Vec::new();
    for block in &message.blocks {
        match block {
            Block::Text(text) if text.is_empty() => {}
            Block::Text(text) => parts.push(json!({"type": "text", "text": text})),
            Block::Image(image) => parts.push(picture(image)),
            Block::Call { id, name, input, signature } => {
                let function = json!({"name": name, "arguments": input});
                let mut call = json!({"id": id, "type": "function", "function": function});
                let stand_in = (way.wants(SIGNATURES) && calls.is_empty()).then_some(UNSIGNED);
                if let Some(signature) = signature.as_deref().or(stand_in)
                    && way.takes("extra_content")
                {
                    call["extra_content"] = json!({"google": {"thought_signature": signature}});
                }
                calls.push(call);
            }
            Block::Result { id, .. } => {
                let text = block.answer_text();
                messages.push(json!({"role": "tool", "tool_call_id": id, "content": text}));
            }
            // Reasoning has fields of its own. Unknown blocks cannot be expressed.
            Block::Thinking(_) | Block::Other { .. } => {}
        }
    }
    if parts.is_empty() && calls.is_empty() {
        return;
    }
    let role = if message.role == Role::Tool { "user" } else { message.role.as_str() };
    let is_text = parts.iter().all(|part| part.get("type").is_some_and(|kind| kind == "text"));
    let content = match parts.as_slice() {
        [] => Value::Null,
        // Plain text is sent as a string, because some servers do not accept parts.
        parts if is_text => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n").into()
        }
        parts => parts.into(),
    };
    let mut out = json!({"role": role, "content": content});
    for (field, value) in shape::reasoning(message) {
        if way.takes(field) {
            out[field] = value;
        }
    }
    if way.wants(REASONING) && !calls.is_empty() && out.get(REASONING).is_none() {
        out[REASONING] = thoughts(message).into();
    }
    if let (Some(out), false) = (out.as_object_mut(), calls.is_empty()) {
        out.insert("tool_calls".to_owned(), calls.into());
    }
    messages.push(out);
}

/// Returns the reasoning of a message for a server that wants some with every call, whoever made it.
fn thoughts(message: &Message) -> String {
    let texts = message.blocks.iter().filter_map(|block| match block {
        Block::Thinking(Thinking { text, .. }) if !text.is_empty() => Some(text.as_str()),
        _ => None,
    });
    let texts = texts.collect::<Vec<_>>().join("\n");
    // An empty string counts as missing.
    if texts.is_empty() { " ".to_owned() } else { texts }
}

fn picture(image: &Image) -> Value {
    match address(image) {
        Some(url) => json!({"type": "image_url", "image_url": {"url": url}}),
        None => json!({"type": "text", "text": NO_IMAGE}),
    }
}

/// Replaces an image that cannot be sent.
pub(super) const NO_IMAGE: &str = "[an image]";

/// Returns the URL of an image, which may contain it.
pub(super) fn address(image: &Image) -> Option<String> {
    match &image.source {
        Source::Data(data) => {
            let media = image.media.as_deref().unwrap_or("image/png");
            Some(format!("data:{media};base64,{data}"))
        }
        Source::Url(url) => Some(url.clone()),
        Source::Elsewhere => None,
    }
}

/// Returns JSON that should be an object. Any other value is wrapped in one.
pub(super) fn object(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Value::Object(object),
        _ if text.trim().is_empty() => json!({}),
        _ => json!({"input": text}),
    }
}

/// Parses the body of an answer, which may also be an error or not JSON at all.
pub(super) fn parse(body: &str) -> Result<Value, Fault> {
    let value = parse_object(body)?;
    // Some servers report an error with status 200.
    if is_error(&value) { Err(refused(&value)) } else { Ok(value) }
}

/// Parses the body of an answer or an error.
pub(super) fn parse_object(body: &str) -> Result<Value, Fault> {
    // Half a character where an answer was truncated is no reason to lose all of it.
    let mended = || serde_json::from_str(&json::mended(body)?).ok();
    let Some(value @ Value::Object(_)) = serde_json::from_str(body).ok().or_else(mended) else {
        let what = if is_page(body) { "" } else { "not a JSON object: " };
        return Err(Fault::BadAnswer { said: format!("{what}{}", readable(body)) });
    };
    Ok(value)
}

/// Parses an answer: a completion, or just its message.
pub(super) fn read(body: &str) -> Result<Message, Fault> {
    let value = parse(body)?;
    let choice = value.pointer("/choices/0");
    // A gateway reports the error of the server behind it there.
    let behind = json!({"error": choice.and_then(|choice| choice.get("error"))});
    if is_error(&behind) {
        return Err(refused(&behind));
    }
    let said = match choice {
        Some(choice) => choice.get("message"),
        None => Some(&value).filter(|value| is_message(value)),
    };
    let Some(said) = said else {
        return Err(Fault::BadAnswer { said: format!("no message: {}", readable(body)) });
    };
    let mut message = Message::new(Role::Assistant, Vec::new());
    message.blocks.extend(thinking(said).map(Block::Thinking));
    match said.get("content") {
        Some(Value::String(text)) if !text.is_empty() => {
            message.blocks.push(Block::Text(text.clone()));
        }
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            message.blocks.extend(texts.map(|text| Block::Text(text.to_owned())));
        }
        _ => {}
    }
    for call in said.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
        let Some(name) = call
            .pointer("/function/name")
            .and_then(Value::as_str)
            .filter(|name| !name.trim().is_empty())
        else {
            return Err(nameless());
        };
        let input = match call.pointer("/function/arguments") {
            Some(Value::String(input)) if !input.trim().is_empty() => input.clone(),
            Some(input @ Value::Object(_)) => input.to_string(),
            _ => "{}".to_owned(),
        };
        let id = call.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let signature = call.pointer("/extra_content/google/thought_signature");
        let signature = signature.and_then(Value::as_str).map(str::to_owned);
        message.blocks.push(Block::Call { id, name: name.to_owned(), input, signature });
    }
    let stop = choice.and_then(|choice| choice.get("finish_reason")?.as_str());
    message.stop = stop.and_then(stop_of);
    message.id = value.get("id").and_then(Value::as_str).map(str::to_owned);
    message.model = value.get("model").and_then(Value::as_str).map(str::to_owned);
    message.usage = value.get("usage").and_then(|usage| {
        let figure = |path: &str| usage.pointer(path).and_then(Value::as_u64);
        let cached = figure("/prompt_tokens_details/cached_tokens").unwrap_or(0);
        let prompt = figure("/prompt_tokens")?;
        Some(Usage {
            input: prompt.saturating_sub(cached),
            output: figure("/completion_tokens").unwrap_or(0),
            cache_read: cached.min(prompt),
            cache_write: 0,
        })
    });
    let declined = said.get("refusal").and_then(Value::as_str);
    let is_thought = |block: &Block| matches!(block, Block::Thinking(_));
    if let Some(said) = declined.filter(|said| !said.trim().is_empty())
        && message.blocks.iter().all(is_thought)
    {
        return Err(Fault::Declined { said: said.to_owned() });
    }
    checked(message, stop)
}

/// Returns the reasoning of a message. Details say all that the other fields say.
fn thinking(said: &Value) -> Option<Thinking> {
    let field = |form: SentAs| {
        let text = said.get(form.as_str())?.as_str().filter(|text| !text.is_empty())?;
        Some((text.to_owned(), form))
    };
    let text = field(SentAs::Content).or_else(|| field(SentAs::Plain));
    let details = said.get(SentAs::Details.as_str()).filter(|all| all.get(0).is_some());
    let signature = details.map(Value::to_string);
    let (text, form) = match (text, &signature) {
        (text, Some(_)) => (text.unwrap_or_default().0, SentAs::Details),
        (text, None) => text?,
    };
    let is_redacted = text.is_empty();
    Some(Thinking { text, signature, is_redacted, sent_as: form })
}

/// Parses the stop reason of an answer. A gateway may pass on those of another API.
fn stop_of(word: &str) -> Option<Stop> {
    Some(match word {
        "stop" => Stop::End,
        "length" => Stop::Length,
        "tool_calls" => Stop::Calls,
        "content_filter" => Stop::Refused,
        "error" => Stop::Error,
        word => return Stop::of_word(word),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str, input: &str) -> Block {
        let (id, name, input) = (id.to_owned(), "Bash".to_owned(), input.to_owned());
        Block::Call { id, name, input, signature: None }
    }

    #[test]
    fn the_ways_of_many_servers_are_read() {
        let check = |message: &str, expected: &[Block]| {
            let body = format!(r#"{{"choices":[{{"message":{message},"finish_reason":"stop"}}]}}"#);
            assert_eq!(read(&body).unwrap().blocks, expected, "{message}");
        };
        let text = |text: &str| Block::Text(text.to_owned());
        check(r#"{"content":"Hi."}"#, &[text("Hi.")]);
        check(r#"{"content":[{"type":"text","text":"Hi."}]}"#, &[text("Hi.")]);
        let sent_as = SentAs::Content;
        let thinking = Thinking { text: "Hm.".to_owned(), sent_as, ..Thinking::default() };
        let thinking = Block::Thinking(thinking);
        check(r#"{"reasoning_content":"Hm.","content":"Hi."}"#, &[thinking, text("Hi.")]);
        let function = |arguments: &str| {
            format!(
                r#"{{"content":null,"tool_calls":[{{"function":{{"name":"Bash","arguments":{arguments}}}}}]}}"#
            )
        };
        check(&function(r#""{\"a\":1}""#), &[call("", r#"{"a":1}"#)]);
        check(&function(r#"{"a":1}"#), &[call("", r#"{"a":1}"#)]);
        check(&function(r#""""#), &[call("", "{}")]);
        check(&function("null"), &[call("", "{}")]);
    }

    #[test]
    fn what_is_cached_is_not_counted_twice() {
        let body = r#"{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":100,"completion_tokens":5,
            "prompt_tokens_details":{"cached_tokens":80}}}"#;
        let usage = Usage { input: 20, output: 5, cache_read: 80, cache_write: 0 };
        assert_eq!(read(body).unwrap().usage, Some(usage));
    }

    #[test]
    fn a_refusal_and_a_nameless_call_are_no_answers() {
        let refused = read(r#"{"choices":[{"message":{"content":null,"refusal":"I will not."}}]}"#);
        let declined = Err(Fault::Declined { said: "I will not.".to_owned() });
        assert_eq!(refused, declined);
        // What the model thought before is no answer.
        let thought = r#"{"reasoning_content":"Hm.","content":null,"refusal":"I will not."}"#;
        assert_eq!(read(&format!(r#"{{"choices":[{{"message":{thought}}}]}}"#)), declined);
        let said = r#"{"choices":[{"message":{"content":"Yes.","refusal":""}}]}"#;
        assert!(read(said).is_ok());
        let filtered =
            read(r#"{"choices":[{"message":{"content":""},"finish_reason":"content_filter"}]}"#);
        assert!(matches!(filtered, Err(Fault::Declined { .. })), "{filtered:?}");
        let nameless = read(r#"{"choices":[{"message":{"tool_calls":[{"id":"c"}]}}]}"#);
        assert!(matches!(nameless, Err(Fault::BadAnswer { .. })), "{nameless:?}");
    }

    #[test]
    fn an_error_in_an_answer_is_what_its_words_mean() {
        let check = |body: &str, expected: &str| {
            assert_eq!(read(body).unwrap_err().to_string(), expected, "{body}");
        };
        let stopped = |rest: &str| {
            format!(
                r#"{{"choices":[{{"message":{{"content":"Half"}},"finish_reason":"error"{rest}}}]}}"#
            )
        };
        check(&stopped(""), "cannot be reached: the model stopped with an error");
        let behind = r#","error":{"code":502,"message":"upstream died"}"#;
        check(&stopped(behind), "cannot be reached: it answered 502: upstream died");
        check(r#"{"detail":"Not authenticated"}"#, "the request failed: Not authenticated");
        check(
            r#"{"detail":[{"msg":"field required"}]}"#,
            r#"the request failed: {"detail":[{"msg":"field required"}]}"#,
        );
        let said = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens";
        let over = format!(r#"{{"object":"error","message":"{said}","code":400}}"#);
        check(&over, &format!("the request is too long: {said}"));
        check(
            r#"{"error":{"code":500},"choices":[]}"#,
            r#"cannot be reached: it answered 500: {"error":{"code":500},"choices":[]}"#,
        );
        // A provider's own number is no status.
        check(r#"{"error":{"code":1301,"message":"no"}}"#, "the request failed: no");
        check(r#"{"choices":[]}"#, r#"unusable answer: no message: {"choices":[]}"#);
        for none in ["null", "\"\"", "{}", "false"] {
            let body = format!(
                r#"{{"error":{none},"message":"x","choices":[{{"message":{{"content":"a"}}}}]}}"#
            );
            assert_eq!(read(&body).unwrap().text(), "a", "{none}");
        }
        assert_eq!(read(r#"{"content":"a","message":"b"}"#).unwrap().text(), "a");
    }

    #[test]
    fn arguments_are_an_object_whatever_they_were() {
        assert_eq!(object(r#"{"a":1}"#), json!({"a": 1}));
        assert_eq!(object(" "), json!({}));
        assert_eq!(object("*** Begin Patch"), json!({"input": "*** Begin Patch"}));
        assert_eq!(object("[1]"), json!({"input": "[1]"}));
    }
}
