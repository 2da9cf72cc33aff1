//! Tool loops with models that think, against servers as strict as their providers: each refuses a request without the very
//! reasoning that it sent. Every turn is a process of its own, so what goes back comes from the store.

use std::{
    collections::BTreeMap,
    fs,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use undertext::{
    context::{Shape, model::Tool, tokens::Encoding},
    model::Timestamp,
    provider::{Api, Endpoint, Http},
    verbs::{self, Answer, Asked, Call, Compacting, Turning},
};

use crate::{
    compact::asked,
    env::TestEnv,
    fixture,
    model_server::{Reply, Server},
    needs,
};

/// How many answers of a turn have calls.
const CALLS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Maker {
    /// As `DeepSeek` and Kimi: reasoning is demanded with calls, and unknown fields are refused.
    Text,
    /// As Groq: reasoning in a field of another name, and unknown fields are refused.
    Plain,
    /// As `OpenRouter`.
    Details,
    /// As Gemini on OpenAI's interface.
    Gemini,
    Anthropic,
    Responses,
}

const MAKERS: [Maker; 6] =
    [Maker::Text, Maker::Plain, Maker::Details, Maker::Gemini, Maker::Anthropic, Maker::Responses];

/// A call: its id, and its arguments.
fn calls(maker: Maker, n: usize) -> Vec<(String, Value)> {
    let id = |nth: usize| format!("{maker:?}_{n}_{nth}");
    let n_calls = if n % (CALLS + 1) == CALLS { 0 } else { 1 + n % 2 };
    (0..n_calls).map(|nth| (id(nth), json!({"path": format!("{n}.rs"), "n": nth}))).collect()
}

impl Maker {
    fn kind(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Responses => "responses",
            _ => "openai",
        }
    }

    fn model(self) -> &'static str {
        if self == Self::Gemini { "gemini-3-pro" } else { "thinker-1" }
    }

    /// Returns the nth message of the model, as the provider has it in an answer and wants it back.
    fn message(self, n: usize) -> Value {
        let calls = calls(self, n);
        let text =
            if n.is_multiple_of(2) { String::new() } else { format!("{self:?} looks at {n}.") };
        let text = if calls.is_empty() { format!("{self:?} is done at {n}.") } else { text };
        let thought = format!("{self:?} thinks of {n}.");
        match self {
            Self::Anthropic => {
                let think = |of: &str| json!({"type": "thinking", "thinking": format!("{thought}{of}"), "signature": format!("Anthropic-{n}{of}")});
                let mut content = vec![think("")];
                if n % 3 == 1 {
                    content.insert(
                        0,
                        json!({"type": "redacted_thinking", "data": format!("Anthropic-data-{n}")}),
                    );
                }
                if !text.is_empty() {
                    content.push(json!({"type": "text", "text": text}));
                }
                for (nth, (id, input)) in calls.iter().enumerate() {
                    match nth {
                        0 => {}
                        _ if n % 4 == 1 => content.push(think("again")),
                        _ => content.push(json!({"type": "text", "text": "And there."})),
                    }
                    content.push(
                        json!({"type": "tool_use", "id": id, "name": "read", "input": input}),
                    );
                }
                json!({"role": "assistant", "content": content})
            }
            Self::Responses => {
                let mut items = vec![
                    json!({"id": format!("rs_{n}"), "type": "reasoning", "encrypted_content": format!("Responses-{n}"),
                    "summary": [{"type": "summary_text", "text": thought}]}),
                ];
                if !text.is_empty() {
                    items.push(
                        json!({"id": format!("msg_{n}"), "type": "message", "role": "assistant",
                        "content": [{"type": "output_text", "text": text}]}),
                    );
                }
                for (nth, (id, input)) in calls.iter().enumerate() {
                    if nth > 0 {
                        items.push(json!({"id": format!("rs_{n}_{nth}"), "type": "reasoning",
                            "encrypted_content": format!("Responses-{n}-{nth}"), "summary": []}));
                    }
                    items.push(json!({"id": format!("fc_{n}"), "type": "function_call", "call_id": id, "name": "read",
                        "arguments": input.to_string()}));
                }
                json!(items)
            }
            _ => {
                let mut message = json!({"role": "assistant", "content": text});
                match self {
                    Self::Text => message["reasoning_content"] = thought.into(),
                    Self::Plain => message["reasoning"] = thought.into(),
                    Self::Details => {
                        message["reasoning"] = thought.clone().into();
                        message["reasoning_details"] = json!([
                            {"type": "reasoning.text", "text": thought, "signature": format!("s{n}"), "format": "x-v1", "index": 0},
                            {"type": "reasoning.encrypted", "data": format!("Details-{n}"), "id": format!("r{n}"), "index": 1}]);
                    }
                    _ => {}
                }
                let call = |(nth, (id, input)): (usize, &(String, Value))| {
                    let function = json!({"name": "read", "arguments": input.to_string()});
                    let mut call = json!({"id": id, "type": "function", "function": function});
                    if self == Self::Gemini && nth == 0 {
                        call["extra_content"] =
                            json!({"google": {"thought_signature": format!("Gemini-{n}")}});
                    }
                    call
                };
                if !calls.is_empty() {
                    message["tool_calls"] = calls.iter().enumerate().map(call).collect();
                }
                message
            }
        }
    }

    /// Returns the body of the nth answer, as a stream or not.
    fn answer(self, n: usize, streams: bool) -> String {
        let message = self.message(n);
        let has_calls = !calls(self, n).is_empty();
        let event = |event: Value| format!("data: {event}\n\n");
        match self {
            Self::Anthropic => {
                let stop = if has_calls { "tool_use" } else { "end_turn" };
                let usage = json!({"input_tokens": 10, "output_tokens": 5});
                let whole = json!({"id": format!("m{n}"), "model": self.model(), "stop_reason": stop, "usage": usage,
                    "content": message["content"]});
                if !streams {
                    return whole.to_string();
                }
                let mut events = event(
                    json!({"type": "message_start", "message": {"id": format!("m{n}"), "model": self.model(), "usage": usage}}),
                );
                for (at, block) in whole["content"].as_array().unwrap().iter().enumerate() {
                    let mut start = block.clone();
                    let mut deltas = Vec::new();
                    for (key, kind) in [
                        ("thinking", "thinking_delta"),
                        ("text", "text_delta"),
                        ("signature", "signature_delta"),
                    ] {
                        if let Some(text) = block[key].as_str() {
                            start[key] = json!("");
                            let (one, other) = text.split_at(text.len() / 2);
                            deltas
                                .extend([one, other].map(|half| json!({"type": kind, key: half})));
                        }
                    }
                    if block["type"] == "tool_use" {
                        start["input"] = json!({});
                        deltas.push(json!({"type": "input_json_delta", "partial_json": block["input"].to_string()}));
                    }
                    events += &event(
                        json!({"type": "content_block_start", "index": at, "content_block": start}),
                    );
                    for delta in deltas {
                        events += &event(
                            json!({"type": "content_block_delta", "index": at, "delta": delta}),
                        );
                    }
                }
                let end = json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}});
                events + &event(end) + &event(json!({"type": "message_stop"}))
            }
            Self::Responses => {
                let whole = json!({"id": format!("r{n}"), "status": "completed", "error": null, "model": self.model(), "output": message,
                    "usage": {"input_tokens": 10, "output_tokens": 5}});
                if !streams {
                    return whole.to_string();
                }
                event(
                    json!({"type": "response.created", "response": {"id": format!("r{n}"), "output": []}}),
                ) + &event(json!({"type": "response.output_text.delta", "delta": "I look"}))
                    + &event(json!({"type": "response.completed", "response": whole}))
            }
            _ => {
                let stop = if has_calls { "tool_calls" } else { "stop" };
                let usage = json!({"prompt_tokens": 10, "completion_tokens": 5});
                if !streams {
                    return json!({"id": format!("c{n}"), "model": self.model(), "usage": usage,
                        "choices": [{"index": 0, "message": message, "finish_reason": stop}]})
                    .to_string();
                }
                let deltas = deltas(&message);
                let chunk = |delta: Value| {
                    event(json!({"model": self.model(), "choices": [{"index": 0, "delta": delta}]}))
                };
                deltas.into_iter().map(chunk).collect::<String>()
                    + &event(
                        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": stop}], "usage": usage}),
                    )
                    + "data: [DONE]\n\n"
            }
        }
    }

    /// Returns why the provider refuses a request, after it sent these messages.
    fn refusal(self, body: &Value, sent: &[Value]) -> Option<String> {
        match self {
            Self::Anthropic => refusal_of_anthropic(body, sent),
            Self::Responses => refusal_of_responses(body, sent),
            _ => {
                body["messages"].as_array().unwrap().iter().enumerate().find_map(|(at, message)| {
                    (message["role"] == "assistant")
                        .then(|| self.refusal_of_message(at, message, sent))?
                })
            }
        }
    }

    fn refusal_of_message(self, at: usize, message: &Value, sent: &[Value]) -> Option<String> {
        let has_calls = message.get("tool_calls").is_some();
        let id = |message: &Value| message["tool_calls"][0]["id"].clone();
        let own = sent.iter().rev().find(|one| {
            if has_calls { id(one) == id(message) } else { one["content"] == message["content"] }
        });
        let is_its_own =
            id(message).as_str().is_some_and(|id| id.starts_with(&format!("{self:?}_")));
        if has_calls && is_its_own && own.is_none() {
            return Some(format!("a call of {at} was never made: {message}"));
        }
        let known: &[&str] = match self {
            Self::Text => &["reasoning_content"],
            Self::Plain => &["reasoning"],
            Self::Details => &["reasoning", "reasoning_content", "reasoning_details"],
            _ => &[],
        };
        let is_known = |key: &&String| {
            ["role", "content", "tool_calls"]
                .iter()
                .chain(known)
                .any(|known| *known == key.as_str())
        };
        if let Some(key) = message.as_object().unwrap().keys().find(|key| !is_known(key)) {
            return Some(format!("Unknown parameter: 'messages[{at}].{key}'."));
        }
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        let extra = calls.iter().find(|call| call.get("extra_content").is_some());
        if extra.is_some() && matches!(self, Self::Text | Self::Plain) {
            return Some(format!(
                "Extra inputs are not permitted: messages.{at}.tool_calls.0.extra_content"
            ));
        }
        let is_back = |key: &str| own.is_none_or(|own| own[key] == message[key]);
        match self {
            Self::Text
                if has_calls && message["reasoning_content"].as_str().is_none_or(str::is_empty) =>
            {
                Some(format!(
                    "thinking is enabled but reasoning_content is missing in assistant tool call message at index {at}"
                ))
            }
            Self::Text if !has_calls && message.get("reasoning_content").is_some() => {
                Some("too much".to_owned())
            }
            Self::Text if has_calls && !is_back("reasoning_content") => {
                Some("other thoughts".to_owned())
            }
            Self::Plain if has_calls && !is_back("reasoning") => Some("other thoughts".to_owned()),
            Self::Details if !is_back("reasoning_details") => {
                Some(format!("details of {at} differ: {message}"))
            }
            Self::Gemini if has_calls => {
                let signature = |message: &Value| message["tool_calls"][0]["extra_content"].clone();
                let is_right = match own {
                    Some(own) => own["tool_calls"] == message["tool_calls"],
                    None => signature(message)["google"]["thought_signature"].is_string(),
                };
                (!is_right).then(|| format!("Function call `read` in the {at}. content block is missing a `thought_signature`"))
            }
            _ => None,
        }
    }
}

/// Returns the parts in which a message of a chat completion is streamed.
fn deltas(message: &Value) -> Vec<Value> {
    let mut deltas = Vec::new();
    for key in ["reasoning_content", "reasoning", "content"] {
        if let Some(text) = message[key].as_str() {
            let (one, other) = text.split_at(text.len() / 2);
            deltas.extend([one, other].map(|half| json!({key: half})));
        }
    }
    for detail in message["reasoning_details"].as_array().into_iter().flatten() {
        match detail["text"].as_str().map(|text| text.split_at(text.len() / 2)) {
            Some((one, other)) => {
                let mut first = detail.clone();
                first["text"] = one.into();
                first["signature"] = Value::Null;
                let rest = json!({"type": detail["type"], "text": other, "index": 0, "signature": detail["signature"]});
                deltas.extend([
                    json!({"reasoning_details": [first]}),
                    json!({"reasoning_details": [rest]}),
                ]);
            }
            None => deltas.push(json!({"reasoning_details": [detail]})),
        }
    }
    for (index, call) in message["tool_calls"].as_array().into_iter().flatten().enumerate() {
        let mut first = call.clone();
        let input = first["function"]["arguments"].as_str().unwrap().to_owned();
        let (one, other) = input.split_at(input.len() / 2);
        first["index"] = index.into();
        first["function"]["arguments"] = one.into();
        let more = json!({"index": index, "function": {"arguments": other}});
        deltas.extend([json!({"tool_calls": [first]}), json!({"tool_calls": [more]})]);
    }
    deltas
}

fn refusal_of_anthropic(body: &Value, sent: &[Value]) -> Option<String> {
    let id = |message: &Value| {
        let content = message["content"].as_array().cloned().unwrap_or_default();
        content.iter().find_map(|part| Some(part.get("id")?.clone()))
    };
    let mut said =
        body["messages"].as_array().unwrap().iter().filter(|one| one["role"] == "assistant");
    for message in said.clone() {
        let own = sent.iter().rev().find(|one| id(one).is_some() && id(one) == id(message));
        let is_its_own = |id: Value| id.as_str().is_some_and(|id| id.starts_with("Anthropic_"));
        if own.is_none() && id(message).is_some_and(is_its_own) {
            return Some(format!("a call was never made: {message}"));
        }
        if let Some(own) = own
            && own["content"] != message["content"]
        {
            return Some(format!("`thinking` blocks cannot be modified: {message}"));
        }
        let parts = message["content"].as_array().unwrap();
        let signature =
            |part: &Value| part["signature"].as_str().map(|it| !it.starts_with("Anthropic"));
        if parts.iter().find_map(signature) == Some(true) {
            return Some(
                "messages.1.content.0: Invalid `signature` in `thinking` block".to_owned(),
            );
        }
    }
    let last = said.next_back()?;
    let kind = last["content"][0]["type"].as_str().unwrap_or_default();
    let is_bare = id(last).is_some() && !kind.ends_with("thinking");
    (body.get("thinking").is_some() && is_bare)
        .then(|| format!("Expected `thinking` or `redacted_thinking`, but found `{kind}`"))
}

fn refusal_of_responses(body: &Value, sent: &[Value]) -> Option<String> {
    // The order of what was sent, with an id for each item.
    let name = |item: &Value| match item["type"].as_str() {
        Some("reasoning") => Some(item.to_string()),
        Some("function_call") => Some(format!("{} {}", item["call_id"], item["arguments"])),
        Some("message") if item["role"] == "assistant" => {
            Some(item["content"][0]["text"].to_string())
        }
        _ => None,
    };
    let input = body["input"].as_array().unwrap();
    let all: Vec<String> = input.iter().filter_map(name).collect();
    let sent = sent.iter().map(|all| all.as_array().unwrap().iter().filter_map(name).collect());
    let is_here = |one: &Vec<String>| one.iter().any(|name| all.contains(name));
    let own = sent.filter(is_here).collect::<Vec<_>>().concat();
    let is_foreign =
        |item: &&Value| item["type"] == "reasoning" && !own.contains(&item.to_string());
    if input.iter().any(|item| is_foreign(&item)) {
        return Some("The encrypted content for item rs_0 could not be verified.".to_owned());
    }
    let found: Vec<String> =
        input.iter().filter_map(name).filter(|name| own.contains(name)).collect();
    if found != own {
        return Some(format!(
            "function_call was provided without its required reasoning item: {found:?}"
        ));
    }
    if body["store"] != false || body["include"][0] != "reasoning.encrypted_content" {
        return Some("nothing is stored here".to_owned());
    }
    let calls = input.iter().filter(|item| item["type"] == "function_call");
    let answered = input.iter().filter(|item| item["type"] == "function_call_output");
    (calls.count() != answered.count()).then(|| "No tool output found for function call".to_owned())
}

/// A provider, and the refusals that it uttered.
struct Strict {
    server: Server,
    refusals: Arc<Mutex<Vec<String>>>,
}

impl Strict {
    fn new(maker: Maker) -> Self {
        let refusals = Arc::new(Mutex::new(Vec::new()));
        let (said, sent) = (Arc::clone(&refusals), Mutex::new(Vec::new()));
        let answer = move |body: &Value| {
            let mut sent = sent.lock().unwrap();
            if let Some(why) = maker.refusal(body, &sent) {
                said.lock().unwrap().push(why.clone());
                let body = json!({"error": {"type": "invalid_request_error", "message": why}});
                return Reply::Raw(400, String::new(), body.to_string());
            }
            let n = sent.len();
            sent.push(maker.message(n));
            Reply::Raw(200, String::new(), maker.answer(n, body["stream"] == true))
        };
        let count = |text: &str| Encoding::O200k.count(text);
        Self { server: Server::with(1_000_000, Box::new(count), Box::new(answer)), refusals }
    }

    fn refusals(&self) -> Vec<String> {
        std::mem::take(&mut self.refusals.lock().unwrap())
    }
}

/// A machine with all providers, and a program that answers calls.
struct World {
    env: TestEnv,
    makers: BTreeMap<String, Strict>,
    tools: String,
}

impl World {
    fn new(more: &str) -> Self {
        let env = TestEnv::new();
        let makers: BTreeMap<String, Strict> =
            MAKERS.into_iter().map(|maker| (format!("{maker:?}"), Strict::new(maker))).collect();
        let provider = |maker: &Maker| {
            let (name, kind, model) = (format!("{maker:?}"), maker.kind(), maker.model());
            let url = makers[&name].server.url();
            format!(
                "[provider.{name}]\nkind = '{kind}'\nurl = '{url}'\nmodel = '{model}'\nwindow = 200000\n{more}\n"
            )
        };
        let folder = env.home().join(".config/undertext");
        fs::create_dir_all(&folder).unwrap();
        let settings: String = MAKERS.iter().map(provider).collect();
        fs::write(folder.join("config.toml"), settings).unwrap();
        let script = env.home().join("tools");
        let tool =
            r#"{"tools":[{"name":"read","description":"Reads.","schema":{"type":"object"}}]}"#;
        let line = format!(
            "case \"$(cat)\" in *'\"list\"'*) echo '{tool}';; *) echo '{{\"output\":\"fn main\"}}';; esac\n"
        );
        fs::write(&script, line).unwrap();
        let tools = format!("sh {}", script.display());
        let world = Self { env, makers, tools };
        world.env.run(&["new"]).success();
        world
    }

    /// Runs a turn, and returns its requests beyond the needed ones and the last words.
    fn turn(&self, maker: Maker, prompt: &str) -> String {
        let name = format!("{maker:?}");
        let words = ["turn", prompt, "--provider", &name, "--tools", &self.tools, "--json"];
        let done = self.env.run(&words).success().stdout;
        let done: Value = serde_json::from_str(&done).unwrap();
        assert_eq!(done["steps"], CALLS + 1, "{done}");
        done["said"].as_str().unwrap().to_owned()
    }

    fn strict(&self, maker: Maker) -> &Strict {
        &self.makers[&format!("{maker:?}")]
    }
}

#[test]
fn reasoning_goes_back_to_each_provider_as_it_wants_it() {
    for more in ["", "stream = false", "effort = 'medium'"] {
        let world = World::new(more);
        for maker in MAKERS {
            world.env.run(&["new"]).success();
            for n in 0..2 {
                let said = world.turn(maker, &format!("Question {n}"));
                assert!(said.contains("is done"), "{said}");
            }
            assert_eq!(world.strict(maker).refusals(), [""; 0], "{maker:?} {more}");
            let asked = world.strict(maker).server.asked();
            assert_eq!(asked.len(), 2 * (CALLS + 1));
            assert!(
                asked.iter().all(|asked| (asked.body["stream"] == true) != more.contains("false"))
            );
            let field = match maker {
                Maker::Anthropic => "thinking",
                Maker::Responses => "reasoning",
                _ => "reasoning_effort",
            };
            let thinks = asked.iter().filter(|asked| asked.body.get(field).is_some());
            assert_eq!(thinks.count(), if more.contains("effort") { asked.len() } else { 0 });
        }
    }
}

#[test]
fn a_session_continues_with_every_other_provider() {
    let world = World::new("");
    // Each provider follows each other one once: 0 1 0 2 .. 0 5 1 2 1 3 .. 4 5 0.
    let n = MAKERS.len();
    let pairs = (0..n).flat_map(|one| (one + 1..n).flat_map(move |other| [one, other]));
    for at in pairs.chain([0]) {
        let maker = MAKERS[at];
        let said = world.turn(maker, "Go on.");
        assert!(said.starts_with(&format!("{maker:?} is done")), "{said}");
        // What a server refuses once in a process is not sent to it again.
        let refusals = world.strict(maker).refusals();
        assert!(refusals.len() <= 4, "{maker:?}: {refusals:?}");
    }
}

/// Every turn reads three files, so that the window is full again and again.
#[test]
fn turns_of_each_strict_provider_stay_inside_small_windows() {
    for (maker, window) in MAKERS.into_iter().flat_map(|maker| [(maker, 16_000), (maker, 32_000)]) {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = fixture::open(folder.path(), 1);
        let session = fixture::session(&mut archive);
        let strict = Strict::new(maker);
        let (api, shape) = match maker {
            Maker::Anthropic => (Api::Anthropic, Shape::Anthropic),
            Maker::Responses => (Api::Responses, Shape::Openai),
            _ => (Api::OpenAi, Shape::Openai),
        };
        let model = Http::new(Endpoint::new(api, &strict.server.url(), maker.model())).unwrap();
        let asked = Asked { shape, counting: None, ..asked(window) };
        let tools = [Tool { name: "read".into(), ..Tool::default() }];
        let answer = |call: &Call| Answer {
            output: format!("{} {}", call.input, "let line = read(file)?; ".repeat(150)),
            error: None,
        };
        let clock = || Timestamp(0);
        let turning = Turning {
            tools: &tools,
            answer: Some(&answer),
            ..Turning::of(Compacting::of(&asked, &clock), &model, 1_000)
        };
        let mut compactions = 0;
        for n in 0..needs::rounds(8, 24) {
            let prompt = format!("Question {n}: what does file {n} do?");
            let at = archive.at(&session).unwrap();
            let workspace = fixture::workspace();
            let done = verbs::turn(&at, &workspace, Some(&prompt), &turning, &mut |_| ()).unwrap();
            assert!(done.said.contains("is done"), "{done:?}");
            compactions += done.compactions.len();
        }
        assert_eq!(strict.refusals(), [""; 0], "{maker:?} {window}");
        let most = strict.server.asked().iter().map(|asked| asked.tokens).max().unwrap();
        assert!(most <= window && compactions > 0, "{maker:?} {window}: {most}, {compactions}");
        fixture::assert_sound(&mut archive, &session);
    }
}
