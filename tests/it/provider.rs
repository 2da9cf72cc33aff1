//! Providers against a server that behaves as badly as real ones do, and commands that do.

use std::{
    cell::RefCell,
    fs,
    io::{ErrorKind, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    rc::Rc,
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use serde_json::json;
use undertext::{
    context::{
        event::Event,
        model::{ChatModel, ChatRequest, Fault, Heard, Summarizer, SummaryRequest, Tool},
        stages::{self, Job},
    },
    model::{Block, Image, Message, Role, Source, Stop, Usage},
    provider::{
        Api, Command, Endpoint, Http, Key,
        process::{self, RunError, Task},
    },
};

use crate::model_server::{Reply, Server};

const APIS: [Api; 2] = [Api::OpenAi, Api::Anthropic];

fn endpoint(api: Api, server: &Server) -> Endpoint {
    let mut endpoint = Endpoint::new(api, &server.url(), "test-model");
    endpoint.key = Some(Key::new("sk-secret"));
    endpoint.limits.request = Duration::from_secs(600);
    endpoint.limits.backoff = Duration::from_millis(1);
    endpoint.limits.max_wait = Duration::from_millis(400);
    endpoint
}

fn says(role: Role, text: &str) -> Message {
    Message::new(role, vec![Block::Text(text.to_owned())])
}

fn summary() -> SummaryRequest {
    let (system, prompt) = ("You summarise.".to_owned(), "All of it.".to_owned());
    SummaryRequest { system, prompt, max_tokens: 100, limit: Duration::MAX }
}

/// A conversation with two calls, their results in two messages, a picture and reasoning.
fn conversation() -> Vec<Message> {
    let call = |id: &str| Block::Call {
        id: id.to_owned(),
        name: "Bash".to_owned(),
        input: r#"{"command":"ls"}"#.to_owned(),
        signature: None,
    };
    let picture = Image {
        bytes: 4,
        media: Some("image/png".to_owned()),
        source: Source::Data("AAAA".to_owned()),
    };
    let result = Block::answer("c1".to_owned(), "a.rs".to_owned());
    let failed = Block::failure("c2".to_owned(), "no".to_owned());
    vec![
        Message::new(Role::User, vec![Block::Text("Look.".to_owned()), Block::Image(picture)]),
        Message::new(
            Role::Assistant,
            vec![Block::Text("I look.".to_owned()), call("c1"), call("c2")],
        ),
        Message::new(Role::Tool, vec![result]),
        Message::new(Role::Tool, vec![failed]),
        says(Role::User, "And?"),
    ]
}

fn tool() -> Tool {
    let (name, description) = ("Bash".to_owned(), "runs".to_owned());
    Tool { name, description, schema: r#"{"type":"object"}"#.to_owned() }
}

fn ask(model: &dyn ChatModel, messages: &[Message], tools: &[Tool]) -> Result<Message, Fault> {
    let request =
        ChatRequest { system: "Be good.", messages, tools, max_tokens: 500, limit: Duration::MAX };
    model.answer(&request, &mut |_| ()).map_err(|error| error.fault)
}

#[test]
fn a_conversation_is_said_as_each_api_wants_it() {
    for api in APIS {
        let server = Server::new(16_000);
        let http = Http::new(endpoint(api, &server)).unwrap();
        let answer = ask(&http, &conversation(), &[tool()]).unwrap();
        assert_eq!((answer.text().as_str(), answer.stop), ("Done.", Some(Stop::End)), "{api:?}");
        assert_eq!(answer.model.as_deref(), Some("test-1"));
        let asked = &server.asked()[0];
        assert_eq!(
            answer.usage,
            Some(Usage { input: asked.tokens, output: 2, ..Usage::default() })
        );
        assert_eq!(asked.body["tools"].as_array().unwrap().len(), 1);
        let key = if api == Api::OpenAi {
            "authorization: Bearer sk-secret"
        } else {
            "x-api-key: sk-secret"
        };
        assert!(asked.headers.iter().any(|line| line == key), "{:?}", asked.headers);
    }
    // The whole of one body, so that a change of the shape is seen.
    let server = Server::new(16_000);
    let http = Http::new(endpoint(Api::Anthropic, &server)).unwrap();
    ask(&http, &conversation(), &[]).unwrap();
    let asked = &server.asked()[0];
    assert_eq!(asked.path, "/v1/messages");
    assert_eq!(
        asked.body,
        json!({"model": "test-model", "max_tokens": 500, "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "Look."},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"},
                    "cache_control": {"type": "ephemeral"}}]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls"}},
                {"type": "tool_use", "id": "c2", "name": "Bash", "input": {"command": "ls"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "a.rs"}]},
                {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "no"}], "is_error": true},
                {"type": "text", "text": "And?", "cache_control": {"type": "ephemeral"}}]}],
            "system": [{"type": "text", "text": "Be good.", "cache_control": {"type": "ephemeral"}}]})
    );
    // A summary is asked for once, so nothing of it is worth a cache, and some servers have none.
    http.summarize(&summary()).unwrap();
    let mut endpoint = endpoint(Api::Anthropic, &server);
    endpoint.caches = false;
    ask(&Http::new(endpoint).unwrap(), &conversation(), &[]).unwrap();
    assert!(
        server.asked()[1..].iter().all(|asked| !asked.body.to_string().contains("cache_control"))
    );
}

#[test]
fn a_streamed_answer_is_the_answer_whether_it_was_asked_for_or_not() {
    let words = "It is done, d\u{e9}j\u{e0}.";
    for (api, asks) in APIS.into_iter().flat_map(|api| [(api, false), (api, true)]) {
        let server = Server::new(16_000);
        let calls = [("c7", json!({"path": "/a \u{e9}"})), ("c8", json!({}))];
        let calls = calls.map(|(id, input)| (id.to_owned(), "Read".to_owned(), input)).to_vec();
        server.queue([Reply::Streamed(words.to_owned())]);
        let mut endpoint = endpoint(api, &server);
        endpoint.streams = asks;
        let http = Http::new(endpoint).unwrap();
        let answer = ask(&http, &conversation(), &[tool()]).unwrap();
        assert_eq!((answer.text().as_str(), answer.stop), (words, Some(Stop::End)), "{api:?}");
        let asked = &server.asked()[0];
        assert_eq!(asked.body.get("stream").is_some(), asks);
        assert_eq!(answer.usage.unwrap().input, asked.tokens, "{api:?}");
        server.queue([Reply::Calls(calls)]);
        let answer = ask(&http, &conversation(), &[tool()]).unwrap();
        let inputs: Vec<&str> = answer
            .blocks
            .iter()
            .map(|block| match block {
                Block::Call { input, .. } => input.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(inputs, [r#"{"path":"/a \u{e9}"}"#.replace("\\u{e9}", "\u{e9}").as_str(), "{}"]);
        assert_eq!(answer.stop, Some(Stop::Calls));
        // One that breaks off is asked for again.
        let part = "data: {\"choices\":[{\"delta\":{\"content\":\"It\"}}],\"type\":\"ping\"}\n\n";
        server.queue([Reply::Raw(200, String::new(), part.to_owned())]);
        assert_eq!(ask(&http, &conversation(), &[]).unwrap().text(), "Done.");
    }
}

#[test]
fn a_server_that_wants_to_be_asked_in_another_way_is_asked_so() {
    let refuse = |said: &str| {
        Reply::Raw(400, String::new(), json!({"error": {"message": said}}).to_string())
    };
    let server = Server::new(16_000);
    let renamed = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    server.queue([refuse(renamed), refuse("Stream must be set to true")]);
    let http = Http::new(endpoint(Api::OpenAi, &server)).unwrap();
    for _ in 0..2 {
        assert_eq!(ask(&http, &conversation(), &[]).unwrap().text(), "Done.");
    }
    let ways: Vec<(bool, bool)> = server
        .asked()
        .iter()
        .map(|asked| (asked.body.get("max_tokens").is_some(), asked.body["stream"] == true))
        .collect();
    assert_eq!(ways, [(true, false), (false, false), (false, true), (false, true)]);
    // A name that the user set stays.
    let mut endpoint = endpoint(Api::OpenAi, &server);
    endpoint.limit_name = Some("max_completion_tokens".to_owned());
    ask(&Http::new(endpoint).unwrap(), &conversation(), &[]).unwrap();
    assert_eq!(server.asked().last().unwrap().body["max_completion_tokens"], 500);
    // A server that wants neither way is not asked for ever.
    server.queue(vec![refuse(renamed); 9]);
    assert!(matches!(http.summarize(&summary()).unwrap_err().fault, Fault::Refused { .. }));
}

#[test]
fn a_refusal_that_says_when_to_ask_again_is_waited_for() {
    let server = Server::new(16_000);
    let said = "Rate limit reached for m. Please try again in 0.05s. Visit https://x/account/billing to learn more.";
    let body = json!({"error": {"message": said, "code": "rate_limit_exceeded"}}).to_string();
    server.queue([Reply::Raw(429, String::new(), body)]);
    let http = Http::new(endpoint(Api::OpenAi, &server)).unwrap();
    assert_eq!(http.summarize(&summary()).unwrap().text, "Done.");
}

#[test]
fn a_request_has_no_longer_than_the_time_that_is_left() {
    for api in APIS {
        let server = Server::new(16_000);
        server.queue([Reply::Stall, Reply::limited("0.3")]);
        let http = Http::new(endpoint(api, &server)).unwrap();
        let brief = SummaryRequest { limit: Duration::from_millis(200), ..summary() };
        for _ in 0..2 {
            let error = http.summarize(&brief).unwrap_err();
            assert!(
                matches!(error.fault, Fault::TimedOut { limit } if limit >= brief.limit),
                "{error}"
            );
        }
        // One that is given up before the server has read it is not counted there.
        assert!(server.asked().len() <= 2);
    }
    let error = command("sleep 300")
        .summarize(&SummaryRequest { limit: Duration::from_millis(200), ..summary() });
    assert!(matches!(error.unwrap_err().fault, Fault::TimedOut { .. }));
}

#[test]
fn calls_come_back_as_calls() {
    for api in APIS {
        let server = Server::new(16_000);
        let calls = [("c7", json!({"path": "/a"})), ("c8", json!({}))];
        let calls = calls.map(|(id, input)| (id.to_owned(), "Read".to_owned(), input));
        server.queue([Reply::Calls(calls.to_vec())]);
        let http = Http::new(endpoint(api, &server)).unwrap();
        let answer = ask(&http, &[says(Role::User, "Read it.")], &[tool()]).unwrap();
        assert_eq!(answer.stop, Some(Stop::Calls));
        let call = |id: &str, input: &str| Block::Call {
            id: id.to_owned(),
            name: "Read".to_owned(),
            input: input.to_owned(),
            signature: None,
        };
        assert_eq!(answer.blocks, [call("c7", r#"{"path":"/a"}"#), call("c8", "{}")], "{api:?}");
    }
}

#[test]
fn a_summariser_is_never_offered_a_tool() {
    for api in APIS {
        let server = Server::new(16_000);
        let http = Http::new(endpoint(api, &server)).unwrap();
        assert_eq!(http.summarize(&summary()).unwrap().text, "Done.");
        assert_eq!(server.asked()[0].body.get("tools"), None);
    }
}

#[test]
fn an_overflow_is_known_with_its_figures_and_not_asked_again() {
    for api in APIS {
        let server = Server::new(1_000);
        let http = Http::new(endpoint(api, &server)).unwrap();
        let fault = ask(&http, &[says(Role::User, &"x".repeat(8_000))], &[]).unwrap_err();
        let Fault::Overflow { figures, .. } = fault else { panic!("{fault}") };
        let asked = server.asked();
        assert_eq!((figures.used, figures.limit), (Some(asked[0].tokens), Some(1_000)), "{api:?}");
        assert_eq!(asked.len(), 1);
    }
}

#[test]
fn what_may_pass_later_is_asked_again() {
    for api in APIS {
        let server = Server::new(16_000);
        let busy = Reply::Raw(503, "retry-after: 0.06s\r\n".to_owned(), "{}".to_owned());
        let gateway = Reply::page(502, "Bad Gateway");
        server.queue([Reply::limited("0.05"), gateway, busy, Reply::Drop]);
        let seen = Rc::new(RefCell::new(Vec::new()));
        let notice = Rc::clone(&seen);
        let mut endpoint = endpoint(api, &server);
        endpoint.limits.retries = 4;
        let http = Http::new(endpoint).unwrap();
        let http = http.noticed(move |event| notice.borrow_mut().push(event.clone()));
        assert_eq!(http.summarize(&summary()).unwrap().text, "Done.", "{api:?}");
        let waits: Vec<u64> = seen
            .borrow()
            .iter()
            .map(|event| match event {
                Event::RequestRetry { wait_ms, .. } => *wait_ms,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(waits, [50, 2, 60, 8], "the server's wish counts");
    }
}

#[test]
fn what_stays_wrong_is_given_up() {
    let server = Server::new(16_000);
    server.queue(vec![Reply::page(503, "Busy"); 9]);
    let http = Http::new(endpoint(Api::OpenAi, &server)).unwrap();
    let error = http.summarize(&summary()).unwrap_err();
    let said = "test-model at 127.0.0.1: cannot be reached: it answered 503: a web page: Busy";
    assert_eq!(error.to_string(), said);
    assert_eq!(server.asked().len(), 4);

    let server = Server::new(16_000);
    server.queue([Reply::limited("3600")]);
    let http = Http::new(endpoint(Api::OpenAi, &server)).unwrap();
    let error = http.summarize(&summary()).unwrap_err();
    assert!(error.to_string().contains("try again in 3600 s: Rate limit reached"), "{error}");
    assert_eq!(server.asked().len(), 1, "nobody waits for an hour");

    let busy = |after: &str| Reply::Raw(529, format!("retry-after: {after}\r\n"), "{}".to_owned());
    let server = Server::new(16_000);
    server.queue([busy("3600")]);
    let http = Http::new(endpoint(Api::OpenAi, &server)).unwrap();
    let error = http.summarize(&summary()).unwrap_err().to_string();
    assert!(error.contains("cannot be reached; try again in 3600 s: it answered 529"), "{error}");
    assert_eq!(server.asked().len(), 1, "nobody waits for an hour");
}

/// Returns the events of a stream in which a model says these words, one part an event.
fn stream(api: Api, parts: &[&str]) -> Reply {
    let end = match api {
        Api::OpenAi | Api::Responses => {
            json!({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        }
        Api::Anthropic => json!({"type": "message_stop"}),
    };
    let part = |part: &&str| match api {
        Api::OpenAi | Api::Responses => json!({"choices": [{"delta": {"content": part}}]}),
        Api::Anthropic => json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "text_delta", "text": part}}),
    };
    let start = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    let start = (api == Api::Anthropic).then_some(start);
    let events = start.into_iter().chain(parts.iter().map(part)).chain([end]);
    let body = events.map(|event| format!("data: {event}\n\n")).collect::<Vec<_>>().concat();
    Reply::Raw(200, String::new(), body)
}

/// Returns an answer that comes event by event, each but the first after a signal, and the sender of the signals.
fn slow(api: Api, parts: &[&str]) -> (Reply, mpsc::Sender<()>) {
    let Reply::Raw(_, _, body) = stream(api, parts) else { unreachable!() };
    let events = body.split_inclusive("\n\n").map(str::to_owned).collect();
    let (sender, signals) = mpsc::channel();
    (Reply::Parts(events, Arc::new(Mutex::new(signals))), sender)
}

/// Asks for an answer, and returns what was heard of it.
fn hear(http: &Http, react: &dyn Fn(Heard<'_>)) -> (Result<Message, Fault>, String) {
    let request = ChatRequest {
        system: "",
        messages: &[says(Role::User, "Well?")],
        tools: &[],
        max_tokens: 500,
        limit: Duration::MAX,
    };
    let mut all = String::new();
    let answer = http.answer(&request, &mut |heard| {
        match heard {
            Heard::Words(words) => all.push_str(words),
            Heard::Void => all.push_str("(void)"),
        }
        react(heard);
    });
    (answer.map_err(|error| error.fault), all)
}

#[test]
fn words_are_heard_before_the_answer_ends() {
    for api in APIS {
        let server = Server::new(16_000);
        let (reply, sender) = slow(api, &["It ", "is ", "so."]);
        server.queue([reply]);
        if api == Api::Anthropic {
            // Its first event has no words.
            sender.send(()).unwrap();
        }
        // The next event comes only once the words of the last one were heard.
        let signal = move |_: Heard<'_>| sender.send(()).unwrap_or(());
        let http = Http::new(Endpoint::new(api, &server.url(), "test-model")).unwrap();
        let (answer, heard) = hear(&http, &signal);
        assert_eq!((answer.unwrap().text(), heard), ("It is so.".to_owned(), "It is so.".into()));
    }
}

#[test]
fn silence_has_a_limit_and_a_slow_answer_has_none() {
    for api in APIS {
        let server = Server::new(16_000);
        let mut endpoint = endpoint(api, &server);
        endpoint.limits.request = Duration::from_millis(800);
        let http = Http::new(endpoint).unwrap();
        // Each wait is short, and all of them together are longer than the limit of one.
        let (reply, sender) = slow(api, &["It ", "is ", "so ", "and ", "so ", "and ", "so."]);
        server.queue([reply]);
        let ticking = thread::spawn(move || {
            while sender.send(()).is_ok() {
                thread::sleep(Duration::from_millis(200));
            }
        });
        assert_eq!(hear(&http, &|_| ()).0.unwrap().text(), "It is so and so and so.");
        ticking.join().unwrap();
        // A server that stops in the middle is given up.
        let (reply, sender) = slow(api, &["It ", "is"]);
        server.queue([reply]);
        sender.send(()).unwrap();
        let (answer, _) = hear(&http, &|_| ());
        assert!(matches!(answer, Err(Fault::TimedOut { .. })), "{answer:?}");
        drop(sender);
        // The whole has a limit too, however steadily words come.
        let (reply, sender) = slow(api, &["It "; 100]);
        server.queue([reply]);
        let ticking = thread::spawn(move || {
            while sender.send(()).is_ok() {
                thread::sleep(Duration::from_millis(100));
            }
        });
        let limit = Duration::from_millis(900);
        let request = ChatRequest { system: "", messages: &[], tools: &[], max_tokens: 500, limit };
        let error = http.answer(&request, &mut |_| ()).unwrap_err();
        assert_eq!(error.fault, Fault::TimedOut { limit }, "{error}");
        drop(server);
        ticking.join().unwrap();
    }
}

#[test]
fn words_are_void_if_the_request_is_repeated() {
    for api in APIS {
        let server = Server::new(16_000);
        let Reply::Raw(status, more, body) = stream(api, &["It is", " not"]) else {
            unreachable!()
        };
        let broken = body.rsplit_once("data:").unwrap().0.to_owned();
        server.queue([Reply::Raw(status, more, broken), stream(api, &["It is so."])]);
        let (answer, heard) = hear(&Http::new(endpoint(api, &server)).unwrap(), &|_| ());
        assert_eq!(answer.unwrap().text(), "It is so.", "{api:?}");
        assert_eq!(heard, "It is not(void)It is so.");
    }
}

#[test]
fn a_key_and_the_values_of_headers_are_never_heard() {
    for api in APIS {
        let server = Server::new(16_000);
        let parts = ["Your key is sk-", "se", "cret, your token is gate", "way-token.", " So."];
        server.queue([stream(api, &parts)]);
        let mut endpoint = endpoint(api, &server);
        endpoint.headers = vec![("X-Gateway".to_owned(), Key::new("gateway-token"))];
        let (answer, heard) = hear(&Http::new(endpoint).unwrap(), &|_| ());
        let masked = "Your key is [masked: key], your token is [masked: key]. So.";
        assert_eq!((answer.unwrap().text().as_str(), heard.as_str()), (masked, masked), "{api:?}");
        let headers = &server.asked()[0].headers;
        assert!(headers.iter().any(|line| line == "x-gateway: gateway-token"), "{headers:?}");
    }
    let mut endpoint = Endpoint::new(Api::OpenAi, "http://models.example", "m");
    endpoint.headers = vec![("X-Gateway".to_owned(), Key::new("gateway-token"))];
    assert_eq!(Http::new(endpoint).unwrap_err().fault, Fault::Exposed);
}

#[test]
fn a_server_is_asked_to_think_and_at_a_temperature() {
    let server = Server::new(16_000);
    let asked = |api: Api, effort: &str, max_tokens: u64| {
        let mut endpoint = endpoint(api, &server);
        endpoint.effort = Some(effort.to_owned());
        endpoint.temperature = serde_json::Number::from_f64(0.5);
        let messages = conversation();
        let messages = &messages[..1];
        let limit = Duration::MAX;
        let request = ChatRequest { system: "", messages, tools: &[], max_tokens, limit };
        let _ = Http::new(endpoint).unwrap().answer(&request, &mut |_| ());
        server.asked().pop().unwrap().body
    };
    let body = asked(Api::OpenAi, "high", 500);
    assert_eq!((&body["reasoning_effort"], &body["temperature"]), (&json!("high"), &json!(0.5)));
    let body = asked(Api::Responses, "xhigh", 500);
    assert_eq!(
        (&body["reasoning"], &body["temperature"]),
        (&json!({"effort": "xhigh"}), &json!(0.5))
    );
    for (effort, max_tokens, budget) in [
        ("low", 32_000, 2_048),
        ("medium", 32_000, 8_192),
        ("high", 32_000, 16_384),
        ("high", 8_000, 6_000),
    ] {
        let body = asked(Api::Anthropic, effort, max_tokens);
        assert_eq!(body["thinking"], json!({"type": "enabled", "budget_tokens": budget}));
        assert_eq!(body.get("temperature"), None);
    }
    for (effort, max_tokens) in [("low", 1_000), ("none", 32_000)] {
        let body = asked(Api::Anthropic, effort, max_tokens);
        assert_eq!((body.get("thinking"), &body["temperature"]), (None, &json!(0.5)));
    }
}

#[test]
fn a_key_that_a_server_repeats_is_masked_in_its_answer() {
    const MASKED: &str = "The key is [masked: key], keep it.";
    let raw = |body: String| Reply::Raw(200, String::new(), body);
    for api in APIS {
        let server = Server::new(16_000);
        let http = Http::new(endpoint(api, &server)).unwrap();
        let answer = |reply: Reply| {
            server.queue([reply]);
            ask(&http, &conversation(), &[]).unwrap()
        };
        let said = "The key is sk-secret, keep it.".to_owned();
        assert_eq!(answer(Reply::Text(said.clone())).text(), MASKED, "{api:?}");
        assert_eq!(answer(Reply::Streamed(said)).text(), MASKED);
        assert_eq!(answer(stream(api, &["The key is sk-", "se", "cret, keep it."])).text(), MASKED);
        let parts = json!([{"type": "text", "text": "The key is sk-se"}, {"type": "text", "text": "cret, keep it."}]);
        let thinking =
            json!({"type": "thinking", "thinking": "sk-secret", "signature": "sk-secret"});
        let body = match api {
            Api::OpenAi | Api::Responses => {
                json!({"id": "sk-secret", "model": "sk-secret", "choices": [{"finish_reason": "stop",
                "message": {"content": parts, "reasoning_content": "sk-secret"}}]})
            }
            Api::Anthropic => {
                json!({"id": "sk-secret", "model": "sk-secret", "stop_reason": "end_turn",
                "content": [thinking, parts[0], parts[1], {"type": "sk-secret", "x": "sk-secret"}]})
            }
        };
        let said = answer(raw(body.to_string()));
        assert_eq!(said.text(), MASKED);
        assert!(!format!("{said:?}").contains("sk-secret"), "{said:?}");
        // As JSON may escape it, in a text and once more in the arguments of a call; in base64, and in an address.
        let spelt = r#"{\"a\":\"sk-\\u0073ecret c2stc2VjcmV0\"}"#;
        let body = match api {
            Api::OpenAi | Api::Responses => format!(
                r#"{{"choices":[{{"finish_reason":"tool_calls","message":{{"content":"\u0073k-secret",
                "tool_calls":[{{"id":"sk-secret","type":"function","function":{{"name":"sk-secret","arguments":"{spelt}"}}}}]}}}}]}}"#
            ),
            Api::Anthropic => r#"{"stop_reason":"tool_use","content":[{"type":"text","text":"\u0073k-secret"},
                {"type":"tool_use","id":"sk-secret","name":"sk-secret","input":{"sk-secret":"sk-secret c2stc2VjcmV0"}}]}"#.to_owned(),
        };
        let said = answer(raw(body));
        assert_eq!(said.text(), "[masked: key]");
        let call = said.blocks.iter().find_map(|block| match block {
            Block::Call { id, name, input, .. } => Some([id.as_str(), name, input]),
            _ => None,
        });
        let [id, name, input] = call.unwrap();
        assert_eq!([id, name], ["[masked: key]"; 2]);
        assert_eq!(input.matches("[masked: key]").count(), input.matches("mask").count());
        let plain = input.replace("[masked: key]", "");
        assert!(["sk", "ecret", "c2st"].iter().all(|part| !plain.contains(part)), "{input}");
        assert!(serde_json::from_str::<serde_json::Value>(input).is_ok(), "{input}");
    }
}

#[test]
fn a_key_that_a_server_repeats_is_masked_in_its_error() {
    for api in APIS {
        let server = Server::new(16_000);
        let http = Http::new(endpoint(api, &server)).unwrap();
        let error = |status, headers: &str, body: &str| {
            server.queue([Reply::Raw(status, headers.to_owned(), body.to_owned())]);
            ask(&http, &conversation(), &[]).unwrap_err().to_string()
        };
        let plain = json!({"error": {"message": "bad key sk-secret"}}).to_string();
        let escaped = plain.replace("sk-secret", r"sk-\u0073ecret");
        for body in [plain.clone(), escaped, format!("\u{feff}data: {plain}\n\n")] {
            assert_eq!(
                error(200, "", &body),
                "the request failed: bad key [masked: key]",
                "{api:?}"
            );
            assert_eq!(
                error(401, "", &body),
                "the request failed with status 401: bad key [masked: key]"
            );
        }
        let moved = "location: https://x/?k=sk-secret\r\n";
        let told = "the request failed with status 307: it has moved to https://x/?k=[masked: key]";
        assert_eq!(error(307, moved, ""), told);
        // Only the beginning of a long text is shown, which may end within the key: here its events are put together first.
        let begin = format!("{}sk-", "x".repeat(560));
        let events = [json!({"nonsense": begin}), json!({"choices": 5}), json!("sk-secret")];
        let body =
            events.iter().map(|event| format!("data: {event}\n\n")).collect::<Vec<_>>().concat();
        let said = error(200, "", &(body + "data: [DONE]\n\n"));
        assert!(!said.contains("sk-sec"), "{said}");
    }
}

#[test]
fn an_answer_that_is_none_is_a_readable_error() {
    let check = |reply: Reply, expected: &str| {
        for api in APIS {
            let server = Server::new(16_000);
            server.queue([reply.clone()]);
            let http = Http::new(endpoint(api, &server)).unwrap();
            let error = http.summarize(&summary()).unwrap_err();
            assert!(error.to_string().contains(expected), "{api:?}: {error}");
            assert_eq!(server.asked().len(), 1, "{error}");
        }
    };
    let raw = |status, body: &str| Reply::Raw(status, String::new(), body.to_owned());
    check(Reply::page(200, "Sign in"), "unusable answer: a web page: Sign in");
    check(raw(200, "nonsense \u{1b}[31m"), "unusable answer: not a JSON object: nonsense");
    check(raw(200, "[]"), "unusable answer: not a JSON object: []");
    check(raw(200, "{}"), "unusable answer: ");
    check(raw(200, ""), "unusable answer: not a JSON object: no reason was given");
    check(raw(200, r#"{"choices":[],"content":0}"#), "answer");
    check(raw(200, &"[".repeat(100_000)), "unusable answer: not a JSON object");
    check(
        raw(200, r#"{"error":{"message":"no such model","code":404}}"#),
        "the request failed with status 404: no such model",
    );
    check(
        raw(401, r#"{"error":{"message":"bad key sk-secret"}}"#),
        "the request failed with status 401: bad key [masked: key]",
    );
    // The beginning of a long answer is told, which may end within the key.
    let long = format!("{} sk-secret!", "x".repeat(600 - " sk-secre".len()));
    check(raw(401, &long), " [masked:..");
    check(raw(404, ""), "the request failed with status 404: no reason was given");
    let moved = Reply::Raw(307, "location: https://elsewhere/\r\n".to_owned(), String::new());
    check(moved, "the request failed with status 307: it has moved to https://elsewhere/");
    check(Reply::Text("\n".to_owned()), "the answer is empty");
}

#[test]
fn a_server_that_never_answers_is_given_up_and_not_asked_again() {
    let server = Server::new(16_000);
    server.queue([Reply::Stall]);
    let mut endpoint = endpoint(Api::OpenAi, &server);
    endpoint.limits.request = Duration::from_millis(200);
    let error = Http::new(endpoint).unwrap().summarize(&summary()).unwrap_err();
    assert!(matches!(error.fault, Fault::TimedOut { .. }), "{error}");
    assert!(server.asked().len() <= 1);
}

#[test]
fn a_server_that_is_not_there_is_named() {
    // Only root can listen at the first port, and nobody does.
    let mut endpoint = Endpoint::new(Api::Anthropic, "http://127.0.0.1:1", "test-model");
    endpoint.limits.backoff = Duration::from_millis(1);
    let error = Http::new(endpoint).unwrap().summarize(&summary()).unwrap_err();
    let said = error.to_string();
    assert!(said.starts_with("test-model at 127.0.0.1: cannot be reached: "), "{said}");
}

#[test]
fn a_proxy_gets_the_requests() {
    // It is told where to connect, and that is all this test needs of a proxy.
    let proxy = Server::new(16_000);
    proxy.queue([Reply::page(403, "Not allowed")]);
    let mut endpoint = Endpoint::new(Api::OpenAi, "http://model.invalid/v1", "test-model");
    endpoint.network.proxy = Some(proxy.url());
    endpoint.limits.retries = 0;
    let error = Http::new(endpoint).unwrap().summarize(&summary()).unwrap_err();
    assert!(matches!(error.fault, Fault::Unreachable { .. } | Fault::Refused { .. }), "{error}");
    assert_eq!(proxy.asked().len(), 1);
    assert!(proxy.asked()[0].path.contains("model.invalid"), "{:?}", proxy.asked());
}

#[test]
fn a_history_over_the_summarisers_window_is_summarised_in_stages() {
    for api in APIS {
        let server = Server::new(16_000);
        let http = Http::new(endpoint(api, &server)).unwrap();
        let messages: Vec<Message> =
            (0..60).map(|nth| says(Role::User, &format!("{nth} {}", "w ".repeat(1_500)))).collect();
        let messages: Vec<(usize, &Message)> = messages.iter().enumerate().collect();
        let job = Job {
            run: 1,
            messages: &messages,
            earlier: &[],
            files: &[],
            focus: None,
            window: 96_000,
            most: 50_000,
            judge: &|_| Ok(()),
            next: "",
        };
        let count = |text: &str| text.len() as u64 / 4;
        let mut retries = 0;
        let made = stages::summarize(&job, &http, &count, &|| Duration::MAX, &mut |event| {
            retries += usize::from(matches!(event, Event::CompactionRetry { .. }));
        });
        assert_eq!(made.unwrap().text, "Done.");
        assert_eq!(retries, 1, "the server says how small its window is");
        assert!(server.asked().len() > 4);
    }
}

fn command(line: &str) -> Command {
    let mut command = Command::new(line);
    command.task.limit = Duration::from_secs(600);
    command
}

#[test]
fn a_command_reads_the_prompt_and_prints_the_summary() {
    let written = command("cat; echo; echo THE END").summarize(&summary()).unwrap();
    assert_eq!(written.text, "You summarise.\n\nAll of it.\nTHE END\n");
    let large = SummaryRequest { prompt: "x".repeat(3_000_000), ..summary() };
    assert_eq!(command("echo unread").summarize(&large).unwrap().text, "unread\n");
    assert!(command("cat").summarize(&large).unwrap().text.len() > 3_000_000);
}

#[test]
fn a_command_answers_a_chat_in_json() {
    let line = r#"grep -q '"role":"tool","tool_call_id":"c2"' && echo '{"content":"Seen."}'"#;
    let answer = ask(&command(line), &conversation(), &[tool()]).unwrap();
    assert_eq!(answer.text(), "Seen.");
    let fault = ask(&command("echo hello"), &conversation(), &[]).unwrap_err();
    assert_eq!(fault.to_string(), "unusable answer: not a JSON object: hello");
}

#[test]
fn a_command_that_fails_is_an_error_that_says_how() {
    let check = |line: &str, expected: &str| {
        let error = command(line).summarize(&summary()).unwrap_err();
        assert!(error.to_string().contains(expected), "{line}: {error}");
    };
    check("echo oops >&2; exit 3", "the request failed: exit code 3: oops");
    check("no-such-command-here", "exit code 127");
    check("echo 'prompt is too long: 9 tokens > 5 maximum' >&2; exit 1", "the request is too long");
    check("echo 'rate limit' >&2; exit 1", "too many requests");
    check("kill -9 $$", "it was killed by signal 9");
    check(r"printf '\000\001'", "its output is not text");
    check(r"printf '\377\376'", "its output is not text");
    let mut endless = command("yes");
    endless.task.max_bytes = 1_000;
    let error = endless.summarize(&summary()).unwrap_err();
    assert_eq!(error.to_string(), "yes: unusable answer: it printed more than 1000 bytes");
}

#[test]
fn a_command_that_never_ends_is_killed_with_all_it_started() {
    let mut held = Held::new();
    let task = held.task("sleep 300", Duration::from_millis(500));
    let error = process::run(&task, b"").unwrap_err();
    assert!(matches!(error, RunError::TimedOut(_)), "{error}");
    held.wait_until_all_ended();
}

#[test]
fn a_command_that_is_done_does_not_wait_for_what_it_started() {
    let mut held = Held::new();
    let done = process::run(&held.task("echo said", Duration::from_secs(600)), b"").unwrap();
    assert_eq!(done.output, b"said\n");
    held.wait_until_all_ended();
}

/// A pipe that every process of a task has open: its end is the end of the last one.
struct Held {
    folder: tempfile::TempDir,
    reader: fs::File,
}

impl Held {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("held");
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap();
        let reader = fs::File::options().read(true).custom_flags(flags).open(path).unwrap();
        Self { folder, reader }
    }

    /// Returns a task that opens the pipe, starts a process that says so if it comes to its end, and goes on.
    fn task(&self, then: &str, limit: Duration) -> Task {
        let line = format!("exec 9>held; (sleep 300; echo survived >&9) & {then}");
        let folder = Some(self.folder.path().to_owned());
        Task { line, folder, limit, max_bytes: 100 }
    }

    /// Waits for the end of the last process, and asserts that it was killed.
    fn wait_until_all_ended(&mut self) {
        let mut said = Vec::new();
        while let Err(error) = self.reader.read_to_end(&mut said) {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(String::from_utf8_lossy(&said), "");
    }
}
