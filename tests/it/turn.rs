//! A turn end to end: a store, a server of models with a small window, and a hundred rounds with large tool results.

use std::{
    cell::RefCell,
    iter,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use serde_json::json;
use undertext::{
    context::{
        Origin, Shape,
        compact::Writer,
        event::Event,
        model::{
            ChatModel, ChatRequest, Fault, Heard, ModelError, Summarizer, SummaryRequest, Tool,
            Written,
        },
        overflow::Figures,
        pairing::Repaired,
        plan::Keep,
        recover::Unrecovered,
    },
    model::{Block, Message, OperationNumber, Role, Stop, Thinking, Timestamp, Usage},
    provider::{Api, Endpoint, Http},
    report::Moment,
    verbs::{self, Answer, Archive, Asked, Call, Compacting, OpsError, Session, Turned, Turning},
    wire::{Draft, Speaker},
};

use crate::{
    compact::asked,
    fixture,
    model_server::{Reply, Server},
};

const WINDOW: u64 = 16_000;

fn clock() -> Timestamp {
    Timestamp(0)
}

fn model(server: &Server, api: Api) -> Http {
    Http::new(Endpoint::new(api, &server.url(), "test-model")).unwrap()
}

fn asked_for(api: Api) -> Asked {
    let shape = if api == Api::Anthropic { Shape::Anthropic } else { Shape::Openai };
    Asked { shape, ..asked(WINDOW) }
}

/// A server that calls a tool once in each turn, and then is done.
fn calling(window: u64) -> Server {
    let n = AtomicUsize::new(0);
    Server::with(
        window,
        Box::new(|text| text.len() as u64 / 4),
        Box::new(move |body| {
            let mut said = body["messages"].as_array().into_iter().flatten();
            let is_checkpoint = |said: &&serde_json::Value| {
                said["content"].as_str().is_some_and(|text| text.contains("CHECKPOINT"))
            };
            let last = said.rfind(|said| !is_checkpoint(said)).cloned().unwrap_or_default();
            let is_answered = last["role"] == "tool" || last.to_string().contains("tool_result");
            if is_answered || body.get("tools").is_none() {
                return Reply::Text("Done, and it is well.".to_owned());
            }
            let n = n.fetch_add(1, Ordering::Relaxed);
            Reply::Calls(vec![(
                format!("call_{n}"),
                "read".to_owned(),
                json!({ "path": format!("/w/{n}.rs") }),
            )])
        }),
    )
}

fn tools() -> Vec<Tool> {
    vec![Tool {
        name: "read".to_owned(),
        description: "Reads a file.".to_owned(),
        schema: r#"{"type":"object","properties":{"path":{"type":"string"}}}"#.to_owned(),
    }]
}

/// Runs a turn whose calls are answered with so many characters.
fn turn(
    archive: &mut Archive,
    session: &Session,
    prompt: &str,
    (model, asked): (&dyn ChatModel, &Asked),
    chars: usize,
    emit: &mut dyn FnMut(&Event),
) -> Result<Turned, OpsError> {
    let tools = tools();
    let answer = |call: &Call| Answer {
        output: format!("{} {}", call.id, "all work and no play ".repeat(chars / 21)),
        error: None,
    };
    let turning = Turning {
        tools: &tools,
        answer: Some(&answer),
        steps: 10,
        ..Turning::of(Compacting::of(asked, &clock), model, 1_000)
    };
    verbs::turn(&archive.at(session).unwrap(), &fixture::workspace(), Some(prompt), &turning, emit)
}

#[test]
fn after_a_hundred_rounds_the_context_is_bounded_and_every_call_has_its_result() {
    for api in [Api::OpenAi, Api::Anthropic] {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = fixture::open(folder.path(), 1);
        let session = fixture::session(&mut archive);
        let server = calling(WINDOW);
        let (model, asked) = (model(&server, api), asked_for(api));
        let mut events = Vec::new();
        for n in 0..100 {
            let mut emit = |event: &Event| events.push(event.clone());
            let prompt = format!("Question {n}");
            let done =
                turn(&mut archive, &session, &prompt, (&model, &asked), 6_000, &mut emit).unwrap();
            assert_eq!((done.answered, done.pending.len(), done.steps), (1, 0, 2), "{n}");
            assert!(done.tokens <= WINDOW, "{n}: {}", done.tokens);
            // The request that a provider would get: the server checks the pairs of those that it gets.
            let context = verbs::context(&archive.at(&session).unwrap(), None, &asked).unwrap();
            assert!(context.tokens() <= WINDOW);
            assert_eq!(context.prepared.repaired.added, 0, "{n}");
        }
        assert!(server.asked().iter().all(|asked| asked.tokens <= WINDOW));
        assert_eq!(server.asked().len(), 200);
        let starts = events.iter().filter(|e| matches!(e, Event::CompactionStart { .. })).count();
        let ends = events.iter().filter(|e| matches!(e, Event::CompactionEnd { .. })).count();
        assert!(starts > 5 && starts == ends, "{starts} {ends}");
        fixture::assert_sound(&mut archive, &session);

        // Every event is kept with an operation; how large the context is then is known once that is written.
        let plain = |event: Event| {
            let mut event = serde_json::to_value(event).unwrap();
            event.as_object_mut().unwrap().remove("post_tokens");
            event
        };
        let operations = archive.store().operations(session.key, OperationNumber::ALL).unwrap();
        let kept: Vec<Event> = operations
            .iter()
            .map(|operation| operation.command.to_json())
            .filter_map(|detail| {
                serde_json::from_value::<Vec<Event>>(detail.get("events")?.clone()).ok()
            })
            .flatten()
            .collect();
        let plain = |events: Vec<Event>| events.into_iter().map(plain).collect::<Vec<_>>();
        assert_eq!(plain(kept), plain(events));

        // All of it is undone, one operation after the other, back to the first message.
        if api == Api::OpenAi {
            while verbs::undo(&archive.at(&session).unwrap(), None).is_ok() {}
            assert_eq!(
                verbs::log(&archive.at(&session).unwrap(), None, 10).unwrap().lines.len(),
                0
            );
            fixture::assert_sound(&mut archive, &session);
        }
    }
}

#[test]
fn an_oversized_result_is_cut_in_the_request_and_whole_in_the_session() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = fixture::session(&mut archive);
    let server = calling(WINDOW);
    let (model, asked) = (model(&server, Api::OpenAi), asked_for(Api::OpenAi));
    let mut events = Vec::new();
    let mut emit = |event: &Event| events.push(event.clone());
    // Twice the window in one answer.
    let done =
        turn(&mut archive, &session, "Read it", (&model, &asked), 130_000, &mut emit).unwrap();
    assert!(done.tokens <= WINDOW, "{}", done.tokens);
    // Three tenths of the window, at four characters per token.
    let cut = Event::ResultsCut { session: session.name.id.clone(), results: 1, limit: 19_200 };
    assert_eq!(events, [cut]);
    let sent = server.asked().iter().map(|asked| asked.tokens).max().unwrap();
    assert!(sent < WINDOW / 2, "{sent}");
    let whole = fixture::lines(&archive, &session).iter().map(Vec::len).max().unwrap();
    assert!(whole > 120_000, "{whole}");
    fixture::assert_sound(&mut archive, &session);
}

#[test]
fn an_oversized_result_that_was_put_in_by_hand_is_compacted_or_cut_away() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = fixture::session(&mut archive);
    let call = Draft::Call { id: "c".into(), name: "read".into(), input: "{}".into() };
    let output = "no play and all work ".repeat(8_000);
    let result = Draft::Result { id: "c".into(), output, error: None };
    let asks = Draft::Message(Speaker::User, "Read it".into());
    verbs::append(&archive.at(&session).unwrap(), &fixture::workspace(), &[asks, call, result])
        .unwrap();
    let server = calling(WINDOW);
    let (model, asked) = (model(&server, Api::OpenAi), asked_for(Api::OpenAi));
    let done = turn(&mut archive, &session, "Go on", (&model, &asked), 1_000, &mut |_| ()).unwrap();
    assert!(done.tokens <= WINDOW, "{}", done.tokens);
    fixture::assert_sound(&mut archive, &session);
}

#[test]
fn what_the_provider_refuses_is_recovered_from() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = fixture::session(&mut archive);
    for n in 0..90 {
        fixture::say(&mut archive, &session, &format!("{n} {}", "word ".repeat(200)));
    }
    // The server's window is smaller than what is known of it.
    let server = Server::new(16_500);
    let model = model(&server, Api::OpenAi);
    let asked = Asked { window: Some(40_000), ..asked_for(Api::OpenAi) };
    let mut events = Vec::new();
    let mut emit = |event: &Event| events.push(event.clone());
    turn(&mut archive, &session, "Well?", (&model, &asked), 0, &mut emit).unwrap();
    assert!(events.iter().any(|event| matches!(event, Event::RecoveryStart { .. })));
    assert!(
        matches!(events.last(), Some(Event::RecoveryEnd { recovered: true, .. })),
        "{events:#?}"
    );
    fixture::assert_sound(&mut archive, &session);
}

#[test]
fn a_window_that_is_too_small_is_refused_before_any_request() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = fixture::session(&mut archive);
    let server = calling(WINDOW);
    let model = model(&server, Api::OpenAi);
    let asked = Asked { shape: Shape::Openai, ..asked(8_000) };
    let before = archive.store().state(session.key).unwrap().hash();
    let failed = turn(&mut archive, &session, "Hello", (&model, &asked), 0, &mut |_| ());
    assert!(
        matches!(failed, Err(OpsError::Unrecovered(Unrecovered::Blocked { window: 8_000, .. }))),
        "{failed:?}"
    );
    assert_eq!(server.asked().len(), 0);
    assert_eq!(archive.store().state(session.key).unwrap().hash(), before);
}

/// A summariser that is never done in time.
struct Slow<'a>(&'a RefCell<i64>);

impl Summarizer for Slow<'_> {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn window(&self) -> Option<u64> {
        // Several requests, so that the time is looked at in between.
        Some(4_000)
    }

    fn summarize(&self, _: &SummaryRequest) -> Result<Written, ModelError> {
        *self.0.borrow_mut() += 200_000;
        Ok(Written { text: "A part.".to_owned(), ..Written::default() })
    }
}

#[test]
fn a_timeout_while_compacting_still_yields_the_context_from_before() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = fixture::session(&mut archive);
    for n in 0..40 {
        fixture::say(&mut archive, &session, &format!("{n} {}", "word ".repeat(280)));
    }
    let server = Server::new(20_000);
    let (model, asked) = (model(&server, Api::OpenAi), asked_for(Api::OpenAi));
    let now = RefCell::new(0);
    let clock = || Timestamp(*now.borrow());
    let slow = Slow(&now);
    let compacting = Compacting {
        by: Writer::Model(&slow),
        limit: Duration::from_secs(100),
        ..Compacting::of(&asked, &clock)
    };
    let turning = Turning { steps: 1, ..Turning::of(compacting, &model, 500) };
    let mut events = Vec::new();
    let mut emit = |event: &Event| events.push(event.clone());
    let done = verbs::turn(
        &archive.at(&session).unwrap(),
        &fixture::workspace(),
        Some("Well?"),
        &turning,
        &mut emit,
    );
    let done = done.unwrap();
    assert_eq!(done.said, "Done.");
    assert!(events.iter().any(|e| matches!(e, Event::CompactionTimeout { before: true, .. })));
    // The whole context went out, nothing of a compaction is in the session.
    let sent = server.asked()[0].body["messages"].as_array().unwrap().len();
    assert!(sent == 41 || server.asked()[0].body.to_string().contains("39 word"), "{sent}");
    let context = verbs::context(&archive.at(&session).unwrap(), None, &asked).unwrap();
    assert!(context.prepared.items.iter().all(|item| item.origin != Origin::Summary));
    fixture::assert_sound(&mut archive, &session);
}

#[test]
fn what_cannot_be_made_to_fit_is_told_without_looping() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = fixture::session(&mut archive);
    let system = Draft::Message(Speaker::System, "rule ".repeat(20_000));
    verbs::append(&archive.at(&session).unwrap(), &fixture::workspace(), &[system]).unwrap();
    let server = calling(WINDOW);
    let (model, asked) = (model(&server, Api::OpenAi), asked_for(Api::OpenAi));
    let failed = turn(&mut archive, &session, "Hello", (&model, &asked), 0, &mut |_| ());
    let Err(OpsError::Unrecovered(error @ Unrecovered::DoesNotFit { .. })) = failed else {
        panic!("{failed:?}")
    };
    assert!(error.to_string().contains("(system, "), "{error}");
    // Nothing could be compacted, and nobody was asked.
    let told = error.to_string();
    assert!(!told.contains("after") && !told.contains("said"), "{told}");
    assert_eq!(server.asked().len(), 0);
}

#[test]
fn an_overflow_is_told_with_the_window_and_the_words_that_came_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = fixture::session(&mut archive);
    let said = "prompt is too long: 90000 tokens > 16384 maximum";
    let figures = Figures { used: Some(90_000), limit: Some(16_384) };
    let fault = Fault::Overflow { said: said.to_owned(), figures };
    let model = Fixed(Err(ModelError { model: "fixed".to_owned(), fault }));
    let asked = Asked { window: Some(40_000), ..asked_for(Api::OpenAi) };
    let failed = turn(&mut archive, &session, "Hello", (&model, &asked), 0, &mut |_| ());
    let told = failed.unwrap_err().to_string();
    assert!(
        told.contains("does not fit in 16384 tokens (the last request had 90000); largest:"),
        "{told}"
    );
    assert!(told.ends_with(&format!("; the provider said: {said}")), "{told}");
}

#[test]
fn a_call_that_was_cut_off_is_not_carried_out() {
    let input = r#"{"choices":[{"message":{"content":"Go.","tool_calls":[
        {"id":"a","function":{"name":"read","arguments":"{\"path\":\"/a\"}"}},
        {"id":"b","function":{"name":"read","arguments":"{\"path\":\"/"}}]},"finish_reason":"length"}]}"#;
    let event = |event: serde_json::Value| format!("data: {event}\n\n");
    let begun = |id: &str| {
        let call = json!({"type": "tool_use", "id": id, "name": "read", "input": {}});
        event(json!({"type": "content_block_start", "content_block": call}))
    };
    let more = |json: &str| {
        let delta = json!({"type": "input_json_delta", "partial_json": json});
        event(json!({"type": "content_block_delta", "delta": delta}))
    };
    let end = event(json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}))
        + &event(json!({"type": "message_stop"}));
    let streamed = begun("a") + &more(r#"{"path":"/a"}"#) + &begun("b");
    let cases = [
        (Api::OpenAi, input.to_owned()),
        (Api::OpenAi, input.replace(r#""{\"path\":\"/"}"#, r#"""}"#)),
        (Api::Anthropic, format!("{streamed}{}{end}", more(r#"{"path":"/"#))),
        (Api::Anthropic, format!("{streamed}{end}")),
    ];
    for (api, body) in cases {
        for answers in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let mut archive = fixture::open(folder.path(), 1);
            let session = fixture::session(&mut archive);
            let server = Server::new(WINDOW);
            server.queue([Reply::Raw(200, String::new(), body.clone())]);
            let (model, asked) = (model(&server, api), asked_for(api));
            let made = RefCell::new(Vec::new());
            let answer = |call: &Call| {
                made.borrow_mut().push(call.id.clone());
                Answer { output: "read".to_owned(), error: None }
            };
            let turning = Turning {
                tools: &tools(),
                answer: answers.then_some(&answer),
                steps: 5,
                ..Turning::of(Compacting::of(&asked, &clock), &model, 500)
            };
            let workspace = fixture::workspace();
            let done = verbs::turn(
                &archive.at(&session).unwrap(),
                &workspace,
                Some("Go"),
                &turning,
                &mut |_| (),
            );
            let done = done.unwrap();
            let file = fixture::exported(&archive, &session, None);
            let file = String::from_utf8(file).unwrap();
            assert_eq!(file.matches("the call was cut off").count(), 1, "{body}");
            if answers {
                assert_eq!(*made.borrow(), ["a"], "{body}");
                assert_eq!((done.steps, done.stop), (2, Some(Stop::End)));
            } else {
                let pending: Vec<&str> = done.pending.iter().map(|call| call.id.as_str()).collect();
                assert_eq!((pending, done.steps, done.stop), (vec!["a"], 1, Some(Stop::Length)));
            }
        }
    }
}

#[test]
fn a_model_whose_calls_are_always_cut_off_is_not_asked_for_ever() {
    let cut = |id: &str| Block::Call {
        id: id.into(),
        name: "read".into(),
        input: r#"{"path":"/"#.into(),
        signature: None,
    };
    let message = Message {
        stop: Some(Stop::Length),
        ..Message::new(Role::Assistant, vec![cut("a"), cut("b")])
    };
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = fixture::session(&mut archive);
    let asked = asked_for(Api::OpenAi);
    let done =
        turn(&mut archive, &session, "Go", (&Fixed(Ok(message)), &asked), 10, &mut |_| ()).unwrap();
    assert_eq!((done.steps, done.answered, done.pending.len()), (10, 0, 0));
}

#[test]
fn a_figure_that_cannot_be_true_is_no_window() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = fixture::session(&mut archive);
    let mut asked = asked_for(Api::OpenAi);
    asked.window = None;
    for (input, output) in [(10_u64.pow(15), 1 << 63), (100_000_000, 5), (900, 1 << 40)] {
        let usage = Some(Usage { input, output, ..Usage::default() });
        let said = vec![Block::Text("Done.".into())];
        let model = Fixed(Ok(Message { usage, ..Message::new(Role::Assistant, said) }));
        for _ in 0..2 {
            let prompt = format!("Hello {input}");
            let done =
                turn(&mut archive, &session, &prompt, (&model, &asked), 0, &mut |_| ()).unwrap();
            assert!(done.window == 32_000 && done.tokens < 1_000, "{input}: {done:?}");
        }
    }
}

/// A model that always answers with the same.
struct Fixed(Result<Message, ModelError>);

impl ChatModel for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn answer(
        &self,
        _: &ChatRequest<'_>,
        _: &mut dyn FnMut(Heard<'_>),
    ) -> Result<Message, ModelError> {
        self.0.clone()
    }
}

/// A model during whose first answer something else happens.
struct Meanwhile<'a> {
    answers: RefCell<Vec<Message>>,
    happens: RefCell<Option<&'a dyn Fn()>>,
}

impl ChatModel for Meanwhile<'_> {
    fn name(&self) -> &'static str {
        "meanwhile"
    }

    fn answer(
        &self,
        _: &ChatRequest<'_>,
        _: &mut dyn FnMut(Heard<'_>),
    ) -> Result<Message, ModelError> {
        if let Some(happens) = self.happens.take() {
            happens();
        }
        Ok(self.answers.borrow_mut().remove(0))
    }
}

/// Returns the texts of a session's last messages.
fn texts(archive: &Archive, session: &Session) -> Vec<String> {
    let log = verbs::log(&archive.at(session).unwrap(), None, 100).unwrap();
    let blocks = log.lines.iter().flat_map(|line| &line.messages).flat_map(|said| &said.blocks);
    blocks
        .filter_map(|block| match block {
            Block::Text(text) => Some(text.clone()).filter(|text| !text.contains("CHECKPOINT")),
            Block::Result { .. } => Some(block.answer_text().into_owned()),
            _ => None,
        })
        .collect()
}

/// Something that another command does to a session.
type Happens = fn(&mut Archive, &Session);

#[test]
fn an_answer_to_a_session_that_was_moved_meanwhile_stands_behind_what_it_answers() {
    let asked = asked_for(Api::OpenAi);
    let says = |text: &str| Message::new(Role::Assistant, vec![Block::Text(text.to_owned())]);
    let call = |id: &str| Block::Call {
        id: id.to_owned(),
        name: "read".to_owned(),
        input: "{}".to_owned(),
        signature: None,
    };
    // What happens, whether it moves the session while a tool runs, the branch that has the last words, and the current one.
    let cases: [(Happens, bool, Option<&str>, &[&str]); 5] = [
        (
            |archive, session| drop(verbs::switch(&archive.at(session).unwrap(), "other").unwrap()),
            false,
            Some("main"),
            &["One."],
        ),
        (
            |archive, session| drop(verbs::undo(&archive.at(session).unwrap(), None).unwrap()),
            false,
            Some("main.1"),
            &["One.", "Two.", "Three?"],
        ),
        (
            |archive, session| {
                drop(
                    verbs::revert(&archive.at(session).unwrap(), &fixture::workspace(), "0", None)
                        .unwrap(),
                );
            },
            true,
            Some("main.1"),
            &[],
        ),
        // What only grows is gone on with.
        (
            |archive, session| fixture::say(archive, session, "And?"),
            false,
            None,
            &["One.", "Two.", "Three?", "And?", "Yes."],
        ),
        (
            |archive, session| {
                fixture::say(archive, session, "And?");
                verbs::undo(&archive.at(session).unwrap(), None).unwrap();
            },
            false,
            None,
            &["One.", "Two.", "Three?", "Yes."],
        ),
    ];
    for (nth, (happens, in_tool, aside, stands)) in cases.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = fixture::open(folder.path(), 1);
        let session = fixture::session(&mut archive);
        fixture::say(&mut archive, &session, "One.");
        verbs::branch(&archive.at(&session).unwrap(), "other", None).unwrap();
        fixture::say(&mut archive, &session, "Two.");
        let meanwhile = || happens(&mut fixture::open(folder.path(), 2), &session);
        let answers = if in_tool {
            vec![Message::new(Role::Assistant, vec![call("a"), call("b")])]
        } else {
            vec![says("Yes.")]
        };
        let happens: Option<&dyn Fn()> = (!in_tool).then_some(&meanwhile);
        let model = Meanwhile { answers: RefCell::new(answers), happens: RefCell::new(happens) };
        let answer = |_: &Call| {
            meanwhile();
            Answer { output: "Yes.".to_owned(), error: None }
        };
        let turning = Turning {
            tools: &tools(),
            answer: Some(&answer),
            steps: 5,
            ..Turning::of(Compacting::of(&asked, &clock), &model, 500)
        };
        let workspace = fixture::workspace();
        let done = verbs::turn(
            &archive.at(&session).unwrap(),
            &workspace,
            Some("Three?"),
            &turning,
            &mut |_| (),
        );
        let done = done.unwrap();
        assert_eq!(done.aside.as_deref(), aside, "{nth}");
        assert_eq!((done.steps, done.answered), (1, usize::from(in_tool)), "{nth}");
        assert_eq!(texts(&archive, &session), *stands, "{nth}");
        fixture::assert_sound(&mut archive, &session);
        if let Some(branch) = aside {
            verbs::switch(&archive.at(&session).unwrap(), branch).unwrap();
            assert_eq!(texts(&archive, &session), ["One.", "Two.", "Three?", "Yes."], "{nth}");
            fixture::assert_sound(&mut archive, &session);
        }
    }
}

#[test]
fn calls_that_nobody_answers_stay_pending_and_a_refusal_is_no_overflow() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = fixture::session(&mut archive);
    let asked = asked_for(Api::OpenAi);
    let turning = |model| Turning {
        steps: 5,
        ..Turning::of(
            Compacting { keep: Keep::Last(4), ..Compacting::of(&asked, &clock) },
            model,
            500,
        )
    };
    let block = Block::Call {
        id: "c1".into(),
        name: "read".into(),
        input: r#"{"n":12345678901234567890}"#.into(),
        signature: None,
    };
    let calls = Fixed(Ok(Message::new(Role::Assistant, vec![block])));
    let workspace = fixture::workspace();
    let done = verbs::turn(
        &archive.at(&session).unwrap(),
        &workspace,
        Some("Read"),
        &turning(&calls),
        &mut |_| (),
    )
    .unwrap();
    assert_eq!((done.pending.len(), done.steps, done.answered), (1, 1, 0));
    assert_eq!(done.pending[0].input, r#"{"n":12345678901234567890}"#);
    let context = verbs::context(&archive.at(&session).unwrap(), None, &asked).unwrap();
    assert_eq!(context.prepared.repaired.added, 1, "the pending call has no result yet");

    let refused = Fault::Refused { said: "no".into(), status: Some(401) };
    let refuses = Fixed(Err(ModelError { model: "fixed".into(), fault: refused }));
    let mut events = 0;
    let mut emit = |_: &Event| events += 1;
    let failed = verbs::turn(
        &archive.at(&session).unwrap(),
        &workspace,
        Some("Again"),
        &turning(&refuses),
        &mut emit,
    );
    assert!(matches!(failed, Err(OpsError::Model(_))), "{failed:?}");
    assert_eq!(events, 0);
    fixture::assert_sound(&mut archive, &session);
}

const FORMATS: [&str; 5] = ["native", "claude", "codex", "pi", "kimi"];

/// Returns a session of a format.
fn session_of(format: &str, folder: &Path) -> (Archive, Session) {
    if format != "native" {
        return crate::compact::taken_up(folder, format, 1);
    }
    let mut archive = fixture::open(folder, 1);
    let session = fixture::session(&mut archive);
    (archive, session)
}

/// Asserts that the last calls of a session have these ids, and each its own result, as its agent and a provider see it.
#[track_caller]
fn assert_paired(archive: &Archive, session: &Session, ids: &[String]) {
    for shape in [Shape::Agent, Shape::Messages, Shape::Anthropic, Shape::Openai] {
        let asked = Asked { shape, ..asked(WINDOW) };
        let prepared =
            verbs::context(&archive.at(session).unwrap(), None, &asked).unwrap().prepared;
        assert_eq!(prepared.repaired, Repaired::default(), "{shape:?} {ids:?}");
        let blocks = prepared.items.iter().flat_map(|item| item.message().into_owned().blocks);
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        for block in blocks {
            match &block {
                Block::Call { id, .. } => calls.push(id.clone()),
                Block::Result { id, .. } => {
                    results.push((id.clone(), block.answer_text().into_owned()));
                }
                _ => {}
            }
        }
        assert!(calls.ends_with(ids), "{shape:?}: {calls:?}");
        for id in ids {
            let own: Vec<_> = results.iter().filter(|(of, _)| of == id).collect();
            assert!(
                matches!(own[..], [(_, said)] if said.contains(&format!("out {id}"))),
                "{own:?}"
            );
        }
    }
}

#[test]
fn the_calls_of_an_answer_that_only_thinks_are_kept_in_every_format() {
    for format in FORMATS {
        for n in [1, 2] {
            let folder = tempfile::tempdir().unwrap();
            let (archive, session) = session_of(format, folder.path());
            let ids: Vec<String> = (0..n).map(|n| format!("call_{n}")).collect();
            let call = |id: &String| Block::Call {
                id: id.clone(),
                name: "read".to_owned(),
                input: "{}".to_owned(),
                signature: None,
            };
            let thinking = Thinking { text: "I should look.".to_owned(), ..Thinking::default() };
            let calls: Vec<Block> =
                iter::once(Block::Thinking(thinking)).chain(ids.iter().map(call)).collect();
            let answers = vec![
                Message::new(Role::Assistant, calls),
                Message::new(Role::Assistant, vec![Block::Text("Done.".to_owned())]),
            ];
            let model = Meanwhile { answers: RefCell::new(answers), happens: RefCell::new(None) };
            let asked = asked_for(Api::Anthropic);
            let answer = |call: &Call| Answer { output: format!("out {}", call.id), error: None };
            let turning = Turning {
                tools: &tools(),
                answer: Some(&answer),
                steps: 5,
                ..Turning::of(Compacting::of(&asked, &clock), &model, 500)
            };
            let workspace = fixture::workspace();
            let done = verbs::turn(
                &archive.at(&session).unwrap(),
                &workspace,
                Some("Look."),
                &turning,
                &mut |_| (),
            );
            let done = done.unwrap_or_else(|error| panic!("{format}, {n} calls: {error}"));
            assert_eq!((done.answered, done.said.as_str()), (n, "Done."), "{format}");
            assert_paired(&archive, &session, &ids);
        }
    }
}

#[test]
fn calls_that_are_appended_one_by_one_are_one_answer() {
    let result =
        |id: &str| Draft::Result { id: id.to_owned(), output: format!("out {id}"), error: None };
    let call = |id: &str| Draft::Call {
        id: id.to_owned(),
        name: "read".to_owned(),
        input: "{}".to_owned(),
    };
    let ids = ["c1".to_owned(), "c2".to_owned()];
    // In pi's files each call is an answer of its own.
    for format in FORMATS.into_iter().filter(|format| *format != "pi") {
        for at_once in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let (archive, session) = session_of(format, folder.path());
            let drafts = [
                Draft::Message(Speaker::User, "Look.".to_owned()),
                call("c1"),
                call("c2"),
                result("c1"),
                result("c2"),
            ];
            let batch = if at_once { drafts.len() } else { 1 };
            for drafts in drafts.chunks(batch) {
                verbs::append(&archive.at(&session).unwrap(), &fixture::workspace(), drafts)
                    .unwrap();
            }
            assert_paired(&archive, &session, &ids);
            if format == "claude" {
                let lines = fixture::lines(&archive, &session);
                let field = |line: &Vec<u8>| {
                    let line: serde_json::Value = serde_json::from_slice(line).unwrap();
                    let calls = line["message"]["content"][0]["type"] == "tool_use";
                    calls.then(|| line["message"]["id"].as_str().unwrap().to_owned())
                };
                let messages: Vec<String> = lines.iter().filter_map(field).collect();
                assert_eq!(messages[messages.len() - 1], messages[messages.len() - 2]);
            }
        }
    }
}

/// As versions wrote them that gave each call a message id of its own. Claude Code itself leaves the first result out.
#[test]
fn a_provider_gets_the_results_of_calls_that_have_a_message_id_each() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, session) = session_of("claude", folder.path());
    let record = |n: usize, kind: &str, message: serde_json::Value| {
        let record = json!({"type": kind, "uuid": format!("late-{n}"), "message": message});
        Draft::Record(record.to_string().into_bytes())
    };
    let call = |id: &str| {
        let call = json!({"type": "tool_use", "id": id, "name": "read", "input": {}});
        json!({"id": format!("m-{id}"), "role": "assistant", "model": "m", "content": [call]})
    };
    let result = |id: &str| {
        let result =
            json!({"type": "tool_result", "tool_use_id": id, "content": format!("out {id}")});
        json!({"role": "user", "content": [result]})
    };
    let drafts = [
        record(0, "user", json!({"role": "user", "content": "Look."})),
        record(1, "assistant", call("c1")),
        record(2, "assistant", call("c2")),
        record(3, "user", result("c1")),
        record(4, "user", result("c2")),
    ];
    verbs::append(&archive.at(&session).unwrap(), &fixture::workspace(), &drafts).unwrap();
    for shape in Shape::ALL {
        let asked = Asked { shape, ..asked(WINDOW) };
        let prepared =
            verbs::context(&archive.at(&session).unwrap(), None, &asked).unwrap().prepared;
        let Repaired { added, duplicates, orphans, .. } = prepared.repaired;
        assert_eq!((added, duplicates, orphans), (0, 0, 0), "{shape:?}");
        let blocks = prepared.items.iter().flat_map(|item| item.message().into_owned().blocks);
        let results = blocks.filter(|block| matches!(block, Block::Result { .. }));
        let results: Vec<String> =
            results.map(|result| result.answer_text().into_owned()).collect();
        assert!(results.ends_with(&["out c1".to_owned(), "out c2".to_owned()]), "{results:?}");
    }
}

#[test]
fn an_answer_that_paused_is_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = fixture::session(&mut archive);
    let asked = asked_for(Api::Anthropic);
    let says = |text: &str, stop| {
        let text = vec![Block::Text(text.to_owned())];
        Message { stop: Some(stop), ..Message::new(Role::Assistant, text) }
    };
    let answers = vec![says("I look. ", Stop::Paused), says("It rains.", Stop::End)];
    let model = Meanwhile { answers: RefCell::new(answers), happens: RefCell::new(None) };
    let turning = Turning { steps: 5, ..Turning::of(Compacting::of(&asked, &clock), &model, 500) };
    let workspace = fixture::workspace();
    let turn = |prompt| {
        verbs::turn(&archive.at(&session).unwrap(), &workspace, prompt, &turning, &mut |_| ())
    };
    assert_eq!(turn(Some("Does it rain?")).unwrap().stop, Some(Stop::Paused));
    assert_eq!(turn(None).unwrap().said, "It rains.");
    assert!(matches!(turn(None), Err(OpsError::NothingAsked)));
    fixture::assert_sound(&mut archive, &session);
}

#[test]
fn a_call_without_an_id_is_answered_once() {
    let calls = [
        (
            Api::Anthropic,
            r#"{"content":[{"type":"tool_use","name":"read","input":{}}],"stop_reason":"tool_use"}"#,
        ),
        (
            Api::OpenAi,
            r#"{"choices":[{"message":{"tool_calls":[{"function":{"name":"read","arguments":"{}"}}]}}]}"#,
        ),
    ];
    for (api, call) in calls {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = fixture::open(folder.path(), 1);
        let session = fixture::session(&mut archive);
        let server = Server::new(WINDOW);
        let (model, asked) = (model(&server, api), asked_for(api));
        for n in 0..2 {
            server.queue([Reply::Raw(200, String::new(), call.to_owned())]);
            let prompt = format!("Read it, {n}.");
            let done =
                turn(&mut archive, &session, &prompt, (&model, &asked), 100, &mut |_| ()).unwrap();
            assert_eq!((done.steps, done.answered, done.said.as_str()), (2, 1, "Done."));
        }
        let log = verbs::log(&archive.at(&session).unwrap(), None, 100).unwrap();
        let blocks = log.lines.iter().flat_map(|line| &line.messages).flat_map(|said| &said.blocks);
        let calls: Vec<&str> = blocks
            .filter_map(|block| match block {
                Block::Call { id, .. } => Some(id.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(calls, ["call0", "call1"]);
    }
}

/// Returns how often the user says these words in a session.
fn times_said(archive: &Archive, session: &Session, words: &str) -> usize {
    let log = verbs::log(&archive.at(session).unwrap(), None, 1_000).unwrap();
    let said = log.lines.iter().flat_map(|line| &line.messages);
    said.filter(|message| message.role == Role::User && message.text() == words).count()
}

#[test]
fn a_prompt_whose_turn_failed_is_kept_and_gone_on_from() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = fixture::session(&mut archive);
    let asked = asked_for(Api::OpenAi);
    let turning =
        |model| Turning { steps: 5, ..Turning::of(Compacting::of(&asked, &clock), model, 500) };
    let workspace = fixture::workspace();
    let refused = Fault::Refused { said: "no".into(), status: Some(401) };
    let refuses = Fixed(Err(ModelError { model: "fixed".into(), fault: refused }));
    let answers = Fixed(Ok(Message::new(Role::Assistant, vec![Block::Text("Yes.".into())])));
    let turn = |prompt, model| {
        verbs::turn(
            &archive.at(&session).unwrap(),
            &workspace,
            prompt,
            &turning(model),
            &mut |_| (),
        )
    };
    let failed = turn(None, &answers);
    assert!(matches!(failed, Err(OpsError::NothingAsked)), "{failed:?}");
    assert!(matches!(turn(Some("Well?"), &refuses), Err(OpsError::Model(_))));
    // Said again it is not doubled, and a turn without a prompt goes on from it.
    assert!(matches!(turn(Some("Well?"), &refuses), Err(OpsError::Model(_))));
    assert_eq!(turn(None, &answers).unwrap().said, "Yes.");
    assert!(matches!(turn(None, &answers), Err(OpsError::NothingAsked)));
    assert!(!turn(Some("Well?"), &answers).unwrap().is_repeated, "it was answered meanwhile");
    assert_eq!(times_said(&archive, &session, "Well?"), 2);
    fixture::assert_sound(&mut archive, &session);
}

#[test]
fn pending_calls_are_answered_by_a_turn_without_a_prompt() {
    for api in [Api::OpenAi, Api::Anthropic] {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = fixture::open(folder.path(), 1);
        let session = fixture::session(&mut archive);
        let server = calling(WINDOW);
        let (model, asked, tools) = (model(&server, api), asked_for(api), tools());
        let answer = |call: &Call| Answer { output: format!("of {}", call.id), error: None };
        let mut turning = Turning {
            tools: &tools,
            steps: 5,
            ..Turning::of(Compacting::of(&asked, &clock), &model, 500)
        };
        let workspace = fixture::workspace();
        let turn = |prompt, turning: &Turning<'_>| {
            verbs::turn(&archive.at(&session).unwrap(), &workspace, prompt, turning, &mut |_| ())
                .unwrap()
        };
        assert_eq!(turn(Some("Read it."), &turning).pending.len(), 1);
        let still = turn(None, &turning);
        assert_eq!((still.pending.len(), still.steps), (1, 0), "nobody can answer it");
        turning.answer = Some(&answer);
        let done = turn(None, &turning);
        assert_eq!((done.answered, done.steps, done.pending.len()), (1, 1, 0));
        fixture::assert_sound(&mut archive, &session);
    }
}

#[test]
fn the_limit_that_a_refusal_names_holds_for_the_rest_of_the_turn() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = fixture::session(&mut archive);
    for n in 0..90 {
        fixture::say(&mut archive, &session, &format!("{n} {}", "word ".repeat(200)));
    }
    // What is known of the model is twice what the server takes.
    let server = calling(16_000);
    let asked = Asked { window: None, ..asked_for(Api::OpenAi) };
    let model = model(&server, Api::OpenAi);
    let done = turn(&mut archive, &session, "Well?", (&model, &asked), 6_000, &mut |_| ()).unwrap();
    let over = server.asked().iter().filter(|asked| asked.tokens > 16_000).count();
    assert_eq!((over, done.window, done.answered), (1, 16_000, 1), "it is refused once");
    assert!(done.tokens <= 16_000);
    fixture::assert_sound(&mut archive, &session);
}

#[test]
fn a_summariser_that_stalls_does_not_stop_a_turn_whose_context_fits() {
    for strict in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = fixture::open(folder.path(), 1);
        let session = fixture::session(&mut archive);
        for n in 0..40 {
            fixture::say(&mut archive, &session, &format!("{n} {}", "word ".repeat(280)));
        }
        let before = archive.store().operations(session.key, OperationNumber::ALL).unwrap().len();
        let (stalls, server) = (Server::new(90_000), Server::new(20_000));
        stalls.queue([Reply::Stall]);
        let by = model(&stalls, Api::Anthropic);
        let (model, asked) = (model(&server, Api::OpenAi), asked_for(Api::OpenAi));
        let begun = std::time::Instant::now();
        let clock = || Timestamp(i64::try_from(begun.elapsed().as_millis()).unwrap());
        let limit = Duration::from_millis(300);
        let compacting =
            Compacting { by: Writer::Model(&by), limit, strict, ..Compacting::of(&asked, &clock) };
        let turning = Turning { steps: 1, ..Turning::of(compacting, &model, 500) };
        let mut events = Vec::new();
        let mut emit = |event: &Event| events.push(event.clone());
        let workspace = fixture::workspace();
        let done = verbs::turn(
            &archive.at(&session).unwrap(),
            &workspace,
            Some("Well?"),
            &turning,
            &mut emit,
        );
        assert_eq!(done.unwrap().said, "Done.", "strict: {strict}");
        let late = Event::CompactionTimeout { run: 42, limit_ms: 300, before: true };
        assert!(
            events.iter().any(|event| matches!(event, Event::CompactionTimeout { .. })),
            "{late:?}"
        );
        assert!(server.asked()[0].body.to_string().contains("39 word"));
        let after = archive.store().operations(session.key, OperationNumber::ALL).unwrap().len();
        assert_eq!(after, before + 2, "the prompt and the answer");
        fixture::assert_sound(&mut archive, &session);
    }
}

#[test]
fn a_result_is_cut_as_it_is_recorded_and_audit_lists_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = fixture::session(&mut archive);
    let server = calling(90_000);
    let asked = Asked { window: Some(90_000), ..asked_for(Api::OpenAi) };
    let model = model(&server, Api::OpenAi);
    let output = "all work and no play ".repeat(25_000);
    let answer = |_: &Call| Answer { output: output.clone(), error: None };
    let tools = tools();
    let turning = Turning {
        tools: &tools,
        answer: Some(&answer),
        ..Turning::of(Compacting::of(&asked, &clock), &model, 500)
    };
    let at = archive.at(&session).unwrap();
    let done =
        verbs::turn(&at, &fixture::workspace(), Some("Read it"), &turning, &mut |_| ()).unwrap();
    assert_eq!(done.answered, 1);
    let audited = verbs::audit(&archive.at(&session).unwrap()).unwrap();
    let [cut] = audited.replaced.as_slice() else { panic!("{audited:?}") };
    assert!(cut.characters.before > 500_000 && cut.characters.after <= 400_000, "{cut:?}");
    fixture::assert_sound(&mut archive, &session);
}

/// A model that takes a while.
struct Late(Duration);

impl ChatModel for Late {
    fn name(&self) -> &'static str {
        "late"
    }

    fn answer(
        &self,
        request: &ChatRequest<'_>,
        _: &mut dyn FnMut(Heard<'_>),
    ) -> Result<Message, ModelError> {
        std::thread::sleep(self.0.min(request.limit));
        if request.limit > self.0 {
            return Ok(Message::new(Role::Assistant, vec![Block::Text("Done.".into())]));
        }
        let fault = Fault::TimedOut { limit: request.limit };
        Err(ModelError { model: "late".to_owned(), fault })
    }
}

/// A model that says that the first request is too long, and is late with the next.
struct Full(AtomicUsize);

impl ChatModel for Full {
    fn name(&self) -> &'static str {
        "full"
    }

    fn answer(
        &self,
        request: &ChatRequest<'_>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<Message, ModelError> {
        if self.0.fetch_add(1, Ordering::Relaxed) > 0 {
            return Late(Duration::from_secs(60)).answer(request, heard);
        }
        let said = "prompt is too long".to_owned();
        let fault = Fault::Overflow { said, figures: Figures::default() };
        Err(ModelError { model: "full".to_owned(), fault })
    }
}

#[test]
fn a_deadline_returns_the_state_from_before_a_compaction_and_else_the_present_one() {
    let stop = |model: &dyn ChatModel| {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = fixture::open(folder.path(), 1);
        let session = fixture::session(&mut archive);
        for n in 0..20 {
            fixture::say(&mut archive, &session, &format!("{n} {}", "word ".repeat(280)));
        }
        let asked = asked_for(Api::OpenAi);
        let until = std::time::Instant::now() + Duration::from_secs(2);
        let compacting = Compacting { until: Some(until), ..Compacting::of(&asked, &clock) };
        let turning = Turning::of(compacting, model, 500);
        let at = archive.at(&session).unwrap();
        let done =
            verbs::turn(&at, &fixture::workspace(), Some("Well?"), &turning, &mut |_| ()).unwrap();
        fixture::assert_sound(&mut archive, &session);
        let stopped = done.stopped.unwrap();
        assert_eq!(stopped.session, session.name.id);
        let sent = stopped.request.to_string();
        assert!(sent.contains("Well?") && sent.contains("7 word") && !sent.contains("summary"));
        (stopped.state, done.operations.len())
    };
    assert_eq!(stop(&Late(Duration::from_secs(60))), (Moment::Present, 1));
    // The compaction is done, but the retry after it is not: its operation is named.
    assert_eq!(stop(&Full(AtomicUsize::new(0))), (Moment::Before, 2));
}

#[test]
fn a_hundred_rounds_do_not_grow() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = fixture::session(&mut archive);
    let server = calling(32_000);
    let asked = Asked { shape: Shape::Openai, ..asked(32_000) };
    let model = model(&server, Api::OpenAi);
    let mut sizes = Vec::new();
    let mut emit = |event: &Event| {
        if let Event::CompactionEnd { post_tokens, .. } = event {
            sizes.push(*post_tokens);
        }
    };
    for n in 0..100 {
        let prompt = format!("Request {n}: go on with the next part of /w/part.rs, as before.");
        turn(&mut archive, &session, &prompt, (&model, &asked), 6_000, &mut emit).unwrap();
    }
    assert!(sizes.len() > 5, "{sizes:?}");
    // A quarter of the window for the summary, and what is kept.
    assert!(sizes.iter().all(|size| *size < 12_000), "{sizes:?}");
    fixture::assert_sound(&mut archive, &session);
}
