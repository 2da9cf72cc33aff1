//! A server of models for tests: both APIs, a window that is kept, the providers' own words when something is wrong.
//!
//! It answers what its `answer` says, or what was queued for the next requests. A request that a provider would refuse, it
//! refuses too: over the window, calls without results, results without calls, roles that do not alternate, no messages.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::Receiver,
    },
    thread,
};

use serde_json::{Value, json};

/// What a request is answered with.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Words.
    Text(String),
    /// Words that end where the room for them did.
    Cut(String),
    /// Words, as a stream of events, whether that was asked for or not.
    Streamed(String),
    /// Calls of tools: id, name, arguments.
    Calls(Vec<(String, String, Value)>),
    /// A status, further header lines and a body, as they are.
    Raw(u16, String, String),
    /// Parts of a body, each but the first after a signal. Without a sender they come at once.
    Parts(Vec<String>, Signals),
    /// Nothing, until the client hangs up.
    Stall,
    /// The connection is dropped in the middle of the answer.
    Drop,
}

pub(crate) type Signals = Arc<Mutex<Receiver<()>>>;

impl Reply {
    pub(crate) fn page(status: u16, title: &str) -> Self {
        let body = format!("<!DOCTYPE html><html><head><title>{title}</title></head></html>");
        Self::Raw(status, "content-type: text/html\r\n".to_owned(), body)
    }

    pub(crate) fn limited(after: &str) -> Self {
        let body =
            json!({"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}});
        Self::Raw(429, format!("retry-after: {after}\r\n"), body.to_string())
    }
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) headers: Vec<String>,
    pub(crate) body: Value,
    /// How many tokens were counted in it.
    pub(crate) tokens: u64,
}

type Answer = Box<dyn Fn(&Value) -> Reply + Send + Sync>;
type Count = Box<dyn Fn(&str) -> u64 + Send + Sync>;

struct Shared {
    window: u64,
    count: Count,
    answer: Answer,
    queue: Mutex<VecDeque<Reply>>,
    asked: Mutex<Vec<Asked>>,
    is_over: AtomicBool,
}

/// A server on a port of its own, until it is dropped.
pub(crate) struct Server {
    address: String,
    shared: Arc<Shared>,
}

impl Server {
    /// Starts a server of a window that counts a token for four bytes and answers everything with "Done.".
    pub(crate) fn new(window: u64) -> Self {
        let count = |text: &str| text.len() as u64 / 4;
        Self::with(window, Box::new(count), Box::new(|_| Reply::Text("Done.".to_owned())))
    }

    pub(crate) fn with(window: u64, count: Count, answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (queue, asked, is_over) = Default::default();
        let shared = Arc::new(Shared { window, count, answer, queue, asked, is_over });
        let all = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if all.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let shared = Arc::clone(&all);
                // A client that hangs up while it is answered is what some tests are about.
                thread::spawn(move || drop(serve(&stream, &shared)));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Has the next requests answered with these.
    pub(crate) fn queue(&self, replies: impl IntoIterator<Item = Reply>) {
        self.shared.queue.lock().unwrap().extend(replies);
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(&self.address));
    }
}

fn serve(stream: &TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let value = |name: &str| {
        let lines = lines.iter().filter_map(|line| line.split_once(": "));
        lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    };
    let length = value("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let path = lines[0].split(' ').nth(1).unwrap_or_default().to_owned();
    let is_anthropic = path.ends_with("/messages");
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let tokens = tokens(&body, &shared.count);
    let headers = lines[1..].to_vec();
    shared.asked.lock().unwrap().push(Asked { path, headers, body: body.clone(), tokens });

    let streams = body["stream"] == true;
    let reply = shared.queue.lock().unwrap().pop_front();
    let reply = match (reply, refusal(&body, tokens, shared.window, is_anthropic)) {
        (Some(reply), _) => reply,
        (None, Some((status, body))) => Reply::Raw(status, String::new(), body.to_string()),
        (None, None) => (shared.answer)(&body),
    };
    let (status, more, body) = match reply {
        Reply::Raw(status, more, body) => (status, more, body),
        Reply::Text(text) if streams => streamed(&text, &[], tokens, is_anthropic),
        Reply::Calls(calls) if streams => streamed("", &calls, tokens, is_anthropic),
        Reply::Streamed(text) => streamed(&text, &[], tokens, is_anthropic),
        Reply::Text(text) => (200, String::new(), completion(&text, &[], tokens, is_anthropic)),
        Reply::Calls(calls) => (200, String::new(), completion("", &calls, tokens, is_anthropic)),
        Reply::Cut(text) => {
            let whole = completion(&text, &[], tokens, is_anthropic);
            let cut = whole.replace("\"end_turn\"", "\"max_tokens\"");
            (200, String::new(), cut.replace("\"stop\"", "\"length\""))
        }
        Reply::Parts(parts, signals) => {
            let mut stream = stream;
            stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")?;
            for (nth, part) in parts.iter().enumerate() {
                if nth > 0 {
                    let _ = signals.lock().unwrap().recv();
                }
                stream.write_all(part.as_bytes())?;
            }
            return Ok(());
        }
        Reply::Stall => return reader.read_to_end(&mut Vec::new()).map(drop),
        Reply::Drop => {
            let mut stream = stream;
            return stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"choices\"");
        }
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} x\r\ncontent-length: {length}\r\nconnection: close\r\n{more}\r\n"
    );
    (&mut &*stream).write_all(&[head.as_bytes(), body.as_bytes()].concat())
}

/// Counts what a model would read: all strings of the messages, the system prompt and the tools.
fn tokens(body: &Value, count: &Count) -> u64 {
    let mut left: Vec<&Value> = ["messages", "system", "tools", "input", "instructions"]
        .iter()
        .filter_map(|key| body.get(key))
        .collect();
    let mut sum = 0;
    while let Some(value) = left.pop() {
        match value {
            Value::String(text) => sum += count(text),
            Value::Array(items) => left.extend(items),
            Value::Object(fields) => left.extend(fields.values()),
            _ => {}
        }
    }
    sum
}

/// Returns the refusal that a provider has for a request.
fn refusal(body: &Value, tokens: u64, window: u64, is_anthropic: bool) -> Option<(u16, Value)> {
    let refuse = |message: String, code: Option<&str>| {
        let kind = "invalid_request_error";
        let error = if is_anthropic {
            json!({"type": "error", "error": {"type": kind, "message": message}})
        } else {
            json!({"error": {"message": message, "type": kind, "param": "messages", "code": code}})
        };
        Some((400, error))
    };
    if tokens > window {
        return if is_anthropic {
            refuse(format!("prompt is too long: {tokens} tokens > {window} maximum"), None)
        } else {
            let message = format!(
                "This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} \
                 tokens. Please reduce the length of the messages."
            );
            refuse(message, Some("context_length_exceeded"))
        };
    }
    if body.get("input").is_some() {
        return None;
    }
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    if messages.is_empty() {
        return refuse("messages: at least one message is required".to_owned(), None);
    }
    let fault = if is_anthropic { anthropic_fault(&messages) } else { openai_fault(&messages) };
    fault.and_then(|message| refuse(message, None))
}

fn anthropic_fault(messages: &[Value]) -> Option<String> {
    if messages[0]["role"] != "user" {
        return Some("messages: first message must use the \"user\" role".to_owned());
    }
    let ids = |message: &Value, kind: &str, key: &str| -> Vec<String> {
        let parts = message["content"].as_array().cloned().unwrap_or_default();
        let parts = parts.iter().filter(|part| part["type"] == kind);
        parts.map(|part| part[key].as_str().unwrap_or_default().to_owned()).collect()
    };
    let mut open: Vec<String> = Vec::new();
    for (nth, message) in messages.iter().enumerate() {
        if nth > 0 && messages[nth - 1]["role"] == message["role"] {
            return Some(
                "messages: roles must alternate between \"user\" and \"assistant\"".to_owned(),
            );
        }
        let results = ids(message, "tool_result", "tool_use_id");
        if let Some(id) = results.iter().find(|id| !open.contains(id)) {
            return Some(format!(
                "messages.{nth}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: {id}"
            ));
        }
        if let Some(id) = open.iter().find(|id| !results.contains(id)) {
            return Some(format!(
                "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {id}",
                nth - 1
            ));
        }
        open = ids(message, "tool_use", "id");
    }
    open.first().map(|id| {
        format!("`tool_use` ids were found without `tool_result` blocks immediately after: {id}")
    })
}

fn openai_fault(messages: &[Value]) -> Option<String> {
    let without = "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
                   'tool_call_id'.";
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let Some(at) = open.iter().position(|call| call == id) else {
                return Some("messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.".to_owned());
            };
            open.remove(at);
            continue;
        }
        if !open.is_empty() {
            return Some(without.to_owned());
        }
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        open =
            calls.iter().map(|call| call["id"].as_str().unwrap_or_default().to_owned()).collect();
    }
    (!open.is_empty()).then(|| without.to_owned())
}

fn completion(
    text: &str,
    calls: &[(String, String, Value)],
    tokens: u64,
    is_anthropic: bool,
) -> String {
    let output = text.len() / 4 + 1;
    if is_anthropic {
        let mut content = Vec::new();
        if !text.is_empty() {
            content.push(json!({"type": "text", "text": text}));
        }
        for (id, name, input) in calls {
            content.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
        }
        let stop = if calls.is_empty() { "end_turn" } else { "tool_use" };
        let usage = json!({"input_tokens": tokens, "output_tokens": output,
            "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0});
        return json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "test-1", "content": content,
            "stop_reason": stop, "usage": usage})
        .to_string();
    }
    let mut message = json!({"role": "assistant", "content": text});
    if !calls.is_empty() {
        let calls = calls.iter().map(|(id, name, input)| {
            let function = json!({"name": name, "arguments": input.to_string()});
            json!({"id": id, "type": "function", "function": function})
        });
        message["content"] = Value::Null;
        message["tool_calls"] = calls.collect();
    }
    let stop = if calls.is_empty() { "stop" } else { "tool_calls" };
    let usage = json!({"prompt_tokens": tokens, "completion_tokens": output, "total_tokens": 0});
    json!({"id": "chatcmpl-1", "object": "chat.completion", "model": "test-1",
        "choices": [{"index": 0, "message": message, "finish_reason": stop}], "usage": usage})
    .to_string()
}

/// Returns a completion as the events that a provider would stream.
fn streamed(
    text: &str,
    calls: &[(String, String, Value)],
    tokens: u64,
    is_anthropic: bool,
) -> (u16, String, String) {
    let whole: Value =
        serde_json::from_str(&completion(text, calls, tokens, is_anthropic)).unwrap();
    let mut events = Vec::new();
    let halves = |words: &str| {
        let middle =
            (words.len() / 2..=words.len()).find(|at| words.is_char_boundary(*at)).unwrap();
        [words[..middle].to_owned(), words[middle..].to_owned()]
    };
    if is_anthropic {
        let mut start = whole.clone();
        start["content"] = json!([]);
        start["stop_reason"] = Value::Null;
        events.push(json!({"type": "message_start", "message": start}));
        events.push(json!({"type": "ping"}));
        for (nth, block) in whole["content"].as_array().unwrap().iter().enumerate() {
            let mut empty = block.clone();
            let (kind, key, words) = match block["text"].as_str() {
                Some(text) => ("text_delta", "text", text.to_owned()),
                None => ("input_json_delta", "partial_json", block["input"].to_string()),
            };
            match key {
                "text" => empty["text"] = json!(""),
                _ => empty["input"] = json!({}),
            }
            events
                .push(json!({"type": "content_block_start", "index": nth, "content_block": empty}));
            for half in halves(&words) {
                let delta = json!({"type": kind, key: half});
                events.push(json!({"type": "content_block_delta", "index": nth, "delta": delta}));
            }
            events.push(json!({"type": "content_block_stop", "index": nth}));
        }
        let stop = json!({"stop_reason": whole["stop_reason"]});
        let usage = json!({"output_tokens": whole["usage"]["output_tokens"]});
        events.push(json!({"type": "message_delta", "delta": stop, "usage": usage}));
        events.push(json!({"type": "message_stop"}));
    } else {
        let chunk = |delta: Value, stop: Value| {
            json!({"id": whole["id"], "model": whole["model"],
            "choices": [{"index": 0, "delta": delta, "finish_reason": stop}]})
        };
        let message = &whole["choices"][0]["message"];
        for half in halves(message["content"].as_str().unwrap_or_default()) {
            events.push(chunk(json!({"content": half}), Value::Null));
        }
        for (nth, call) in message["tool_calls"].as_array().into_iter().flatten().enumerate() {
            let input = call["function"]["arguments"].as_str().unwrap();
            let name = json!({"name": call["function"]["name"], "arguments": ""});
            let first =
                json!({"index": nth, "id": call["id"], "type": "function", "function": name});
            events.push(chunk(json!({"tool_calls": [first]}), Value::Null));
            for half in halves(input) {
                let more = json!({"index": nth, "function": {"arguments": half}});
                events.push(chunk(json!({"tool_calls": [more]}), Value::Null));
            }
        }
        events.push(chunk(json!({}), whole["choices"][0]["finish_reason"].clone()));
        events.push(json!({"choices": [], "usage": whole["usage"]}));
    }
    let event = |event: &Value| {
        let kind = event["type"].as_str().unwrap_or("message");
        format!("event: {kind}\r\ndata: {event}\r\n\r\n")
    };
    let events: String = events.iter().map(event).collect();
    let end = if is_anthropic { "" } else { "data: [DONE]\n\n" };
    let body = format!(": a comment\n\n{events}{end}");
    (200, "content-type: text/event-stream\r\n".to_owned(), body)
}
