//! Compaction and recovery as a loop would use them: a conversation in memory, a server that refuses what is too large.

use std::time::Duration;

use serde_json::{Value, json};
use undertext::{
    context::{
        compact::Writer,
        compact::{self, Task},
        event::{Cause, Event},
        facts::Facts,
        model::{ChatModel, ChatRequest, ModelError, Summarizer},
        plan::{KEEP, Keep, Piece, Trigger, Wish},
        recover::{self, Attempt, Large, Patient, Room, Unrecovered},
        window::Source,
    },
    model::{Block, Message, Role},
    provider::{Api, Endpoint, Http},
    wire::{Claude, Codex, Format, Kimi, Pi},
};

use crate::{
    graph::FileGraph,
    model_server::{Reply, Server},
    needs,
};

const WINDOW: u64 = 16_000;

fn count(text: &str) -> u64 {
    text.len() as u64 / 4 + 1
}

fn weight(message: &Message) -> u64 {
    let block = |block: &Block| match block {
        Block::Text(text) => count(text),
        Block::Call { name, input, .. } => count(name) + count(input) + 10,
        other => count(&other.answer_text()) + 10,
    };
    4 + message.blocks.iter().map(block).sum::<u64>()
}

/// A conversation in memory, with its compactions.
struct Talk<'a> {
    messages: Vec<(Message, bool)>,
    model: &'a Http,
    summarizer: Option<&'a dyn Summarizer>,
    n_compactions: u64,
    /// How many extracts a model would have been asked for again.
    n_poor: usize,
}

#[derive(Debug, PartialEq)]
enum Failed {
    Model(ModelError),
    Unrecovered(Unrecovered),
}

impl From<ModelError> for Failed {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

impl From<Unrecovered> for Failed {
    fn from(error: Unrecovered) -> Self {
        Self::Unrecovered(error)
    }
}

impl Talk<'_> {
    fn tokens(&self) -> u64 {
        self.messages.iter().map(|(message, _)| weight(message)).sum()
    }

    fn push(&mut self, message: Message) {
        self.messages.push((message, false));
    }

    fn compact_to(&mut self, keep: Keep, again: bool, emit: &mut dyn FnMut(&Event)) -> bool {
        let pieces: Vec<Piece<'_>> = self
            .messages
            .iter()
            .map(|(message, is_kept)| Piece {
                message,
                tokens: weight(message),
                is_kept: *is_kept,
                is_request: message.role == Role::User,
            })
            .collect();
        self.n_compactions += 1;
        let task = Task {
            run: self.n_compactions,
            session: "talk",
            folder: None,
            trigger: Cause::Auto,
            pieces: &pieces,
            tokens: self.tokens(),
            around: 0,
            window: WINDOW,
            wish: Wish { keep, again, ..Wish::of(WINDOW) },
            next: "",
            focus: None,
            files: &[],
            strict: false,
            back: None,
            appendix: true,
            most: None,
            mask: &str::to_owned,
        };
        // What cannot be compacted may still be truncated.
        let by = self.summarizer.map_or(Writer::Extract, Writer::Model);
        let made = compact::compact(&task, by, &count, &|| Duration::MAX, emit);
        let Ok(made) = made else { return false };
        if self.summarizer.is_none() {
            let summarised: Vec<&Piece<'_>> =
                made.plan.summarised.iter().map(|at| &pieces[*at]).collect();
            let share = Facts::of(&summarised).check(&made.summary).share();
            self.n_poor += usize::from(share < 333);
        }
        let mut summary = Message::new(Role::User, vec![Block::Text(made.summary)]);
        summary.is_summary = true;
        let kept = made.plan.kept.iter().map(|at| (self.messages[*at].0.clone(), true));
        self.messages = std::iter::once((summary, false)).chain(kept).collect();
        true
    }
}

impl Patient for Talk<'_> {
    type Answer = Message;
    type Error = Failed;

    fn attempt(&mut self, emit: &mut dyn FnMut(&Event)) -> Result<Message, Attempt<Failed>> {
        let mut compacted = false;
        if Trigger::of(WINDOW).near(self.tokens()).is_due {
            let keep = Wish::of(WINDOW).keep;
            compacted = self.compact_to(keep, false, emit);
        }
        let messages: Vec<Message> =
            self.messages.iter().map(|(message, _)| message.clone()).collect();
        let request = ChatRequest {
            system: "",
            messages: &messages,
            tools: &[],
            max_tokens: 100,
            limit: Duration::MAX,
        };
        self.model
            .answer(&request, &mut |_| ())
            .map_err(|error| Attempt::Model { error, compacted })
    }

    fn compact(&mut self, keep: Keep, emit: &mut dyn FnMut(&Event)) -> Result<bool, Failed> {
        Ok(self.compact_to(keep, true, emit))
    }

    fn can_truncate(&self) -> Result<bool, Failed> {
        let mut messages = self.messages.iter();
        Ok(messages.any(|(message, _)| message.role == Role::Tool && weight(message) > 5_000))
    }

    fn truncate(&mut self) -> Result<bool, Failed> {
        for (message, _) in self.messages.iter_mut().filter(|(message, _)| weight(message) > 5_000)
        {
            if let [Block::Result { blocks, .. }] = &mut message.blocks[..] {
                *blocks = vec![Block::Text("cut".to_owned())];
            }
        }
        Ok(true)
    }

    fn window(&self) -> u64 {
        WINDOW
    }

    fn largest(&self) -> Vec<Large> {
        let large = |(nth, (message, _)): (usize, &(Message, bool))| Large {
            entry: format!("@{nth}"),
            what: message.role.as_str().to_owned(),
            tokens: weight(message),
        };
        let mut all: Vec<Large> = self.messages.iter().enumerate().map(large).collect();
        all.sort_by_key(|large| std::cmp::Reverse(large.tokens));
        all
    }
}

/// A server whose model calls a tool, and is done when it sees the result; its own count is larger than that of the talk.
fn server() -> Server {
    let answer = |body: &Value| {
        let messages = body["messages"].as_array().unwrap();
        let last = messages.last().unwrap();
        let is_result = last["role"] == "tool" || last["content"][0]["type"] == "tool_result";
        if body["max_tokens"] != 100 {
            return Reply::Text(summary(&last.to_string()));
        }
        if is_result {
            return Reply::Text("It is done: make was run.".to_owned());
        }
        let id = format!("c{}", messages.len());
        Reply::Calls(vec![(id, "Bash".to_owned(), json!({"command": "make"}))])
    };
    Server::with(WINDOW, Box::new(|text| text.len() as u64 / 3), Box::new(answer))
}

/// Returns a summary of the user's newest requests in a prompt for one.
fn summary(prompt: &str) -> String {
    let said = prompt.split("] user: ").skip(1);
    let said: Vec<String> = said.map(|text| text.chars().take(60).collect()).collect();
    let newest = said[said.len().saturating_sub(20)..].join("\n");
    format!("## Request and intent\n{newest}\n## Current focus\nmake\n## Errors and fixes\nnone")
}

fn http(api: Api, server: &Server) -> Http {
    let mut endpoint = Endpoint::new(api, &server.url(), "m");
    endpoint.limits.retries = 0;
    Http::new(endpoint).unwrap()
}

fn room() -> Room {
    let (session, by) = ("talk".to_owned(), Source::Asked);
    Room { session, window: WINDOW, by, least: WINDOW, keep: KEEP }
}

fn user(text: &str) -> Message {
    Message::new(Role::User, vec![Block::Text(text.to_owned())])
}

/// Runs one turn: the prompt, and each call answered with so many bytes.
fn turn(
    talk: &mut Talk<'_>,
    prompt: &str,
    bytes: usize,
    emit: &mut dyn FnMut(&Event),
) -> Result<(), Failed> {
    talk.push(user(prompt));
    loop {
        let answer = recover::recover(&room(), talk, emit)?;
        let calls: Vec<String> = answer
            .blocks
            .iter()
            .filter_map(|block| match block {
                Block::Call { id, .. } => Some(id.clone()),
                _ => None,
            })
            .collect();
        talk.push(answer);
        if calls.is_empty() {
            return Ok(());
        }
        for id in calls {
            let result = Block::answer(id, "r".repeat(bytes));
            talk.push(Message::new(Role::Tool, vec![result]));
        }
    }
}

#[test]
fn after_a_hundred_rounds_the_context_is_bounded_and_every_call_has_its_result() {
    for (api, with_model) in [(Api::OpenAi, false), (Api::Anthropic, true)] {
        let server = server();
        let model = http(api, &server);
        let summarizer: Option<&dyn Summarizer> = if with_model { Some(&model) } else { None };
        let mut talk =
            Talk { messages: vec![], model: &model, summarizer, n_compactions: 0, n_poor: 0 };
        let (mut started, mut sizes) = (0, Vec::new());
        for round in 0..100 {
            let bytes = 2_000 + (round * 7_919) % 9_000;
            let prompt = format!("Request {round}: go on.");
            let done = turn(&mut talk, &prompt, bytes, &mut |event| match event {
                Event::CompactionStart { .. } => started += 1,
                Event::CompactionEnd { post_tokens, .. } => sizes.push(*post_tokens),
                Event::CompactionFailed { .. } | Event::CompactionFallback { .. } => {
                    panic!("{event:?}")
                }
                _ => {}
            });
            // The server refuses a call without a result, a result without a call and roles that do not alternate.
            assert_eq!(done, Ok(()), "{round}");
            assert!(talk.tokens() <= WINDOW, "{round}: {}", talk.tokens());
        }
        assert!(started >= 10, "{started}");
        assert_eq!(started, sizes.len(), "each start has its end");
    }
}

#[test]
fn a_hundred_rounds_through_a_window_do_not_grow() {
    let server = server();
    let model = http(Api::OpenAi, &server);
    for summarizer in [None, Some(&model as &dyn Summarizer)] {
        let mut talk =
            Talk { messages: vec![], model: &model, summarizer, n_compactions: 0, n_poor: 0 };
        let mut sizes = Vec::new();
        for round in 0..100 {
            let prompt = format!("Request {round}: see /w/{round}.rs. {}", "Go on. ".repeat(60));
            let done = turn(&mut talk, &prompt, 6_000, &mut |event| {
                if let Event::CompactionEnd { post_tokens, .. } = event {
                    sizes.push(*post_tokens);
                }
            });
            assert_eq!(done, Ok(()), "{round}");
        }
        println!("after each compaction: {sizes:?}");
        assert!(sizes.len() >= 8, "{sizes:?}");
        // A quarter of the window for the summary, and what is kept.
        assert!(sizes.iter().all(|size| *size < WINDOW / 2), "{sizes:?}");
    }
}

#[test]
fn an_oversized_result_is_compacted_or_truncated_away() {
    let server = server();
    let model = http(Api::OpenAi, &server);
    let mut talk =
        Talk { messages: vec![], model: &model, summarizer: None, n_compactions: 0, n_poor: 0 };
    let mut events = Vec::new();
    let done = turn(&mut talk, "Print it all.", 400_000, &mut |event| events.push(event.clone()));
    assert_eq!(done, Ok(()));
    assert!(talk.tokens() < WINDOW);
    let end = events.iter().rfind(|event| matches!(event, Event::RecoveryEnd { .. }));
    assert!(
        matches!(end, Some(Event::RecoveryEnd { recovered: true, truncated: true, .. })),
        "{events:?}"
    );
}

#[test]
fn a_prompt_that_alone_is_too_large_ends_with_an_error_and_not_in_a_loop() {
    let server = server();
    let model = http(Api::Anthropic, &server);
    let mut talk =
        Talk { messages: vec![], model: &model, summarizer: None, n_compactions: 0, n_poor: 0 };
    let done = turn(&mut talk, &"p".repeat(400_000), 10, &mut |_| ());
    let Err(Failed::Unrecovered(error)) = done else { panic!("{done:?}") };
    assert!(
        error.to_string().contains("talk")
            && error.to_string().contains("@0 (user, 100005 tokens)"),
        "{error}"
    );
    assert_eq!(server.asked().len(), 1);
}

/// Each real session is planned, quoted and summarised in stages.
#[test]
fn real_sessions_are_compacted_and_no_call_is_torn_from_its_results() {
    let Some(corpus) = needs::corpus() else { return };
    let formats: [(&'static dyn Format, &[&str]); 4] = [
        (&Claude, &["claude", "claude-broken", "claude-shapes"]),
        (&Codex, &["codex", "codex-shapes"]),
        (&Kimi, &["kimi"]),
        (&Pi, &["pi"]),
    ];
    let server = Server::new(u64::MAX);
    let model = http(Api::Anthropic, &server);
    let (mut n_files, mut n_made, mut n_poor) = (0, 0, 0);
    for (format, folders) in formats {
        for path in folders.iter().flat_map(|folder| corpus.files(folder)) {
            let graph = FileGraph::open(format, &path);
            let context = graph.context();
            let messages: Vec<Message> =
                context.iter().flat_map(|entry| graph.messages(*entry)).collect();
            let talk = |summarizer| Talk {
                messages: messages.iter().map(|message| (message.clone(), false)).collect(),
                model: &model,
                summarizer,
                n_compactions: 0,
                n_poor: 0,
            };
            n_files += 1;
            let before = talk(None);
            let alone = |talk: &Talk<'_>| orphans(&talk.messages);
            for summarizer in [None, Some(&model as &dyn Summarizer)] {
                let mut after = talk(summarizer);
                if !after.compact_to(Keep::Share(20), false, &mut |_| ()) {
                    continue;
                }
                n_made += 1;
                n_poor += after.n_poor;
                assert!(after.tokens() < before.tokens(), "{}", path.display());
                // What has a result has its call, unless it never had one.
                let lost = alone(&after).into_iter().filter(|id| !alone(&before).contains(id));
                assert_eq!(lost.count(), 0, "{}", path.display());
            }
        }
    }
    println!("{n_files} files, {n_made} compactions, {n_poor} extracts are poor");
    // Short sessions leave no room.
    assert!(n_poor * 8 <= n_made, "{n_poor} of {n_made}");
    assert!(n_files >= 96 && n_made >= 65, "{n_files} files, {n_made} compactions");
}

/// Returns the ids of results that no call is before.
fn orphans(messages: &[(Message, bool)]) -> Vec<String> {
    let mut calls: Vec<&str> = Vec::new();
    let mut without = Vec::new();
    for block in messages.iter().flat_map(|(message, _)| &message.blocks) {
        match block {
            Block::Call { id, .. } => calls.push(id),
            Block::Result { id, .. } if !calls.contains(&id.as_str()) => without.push(id.clone()),
            _ => {}
        }
    }
    without
}
