//! A turn: the prompt, the model's answers, and the tool results, until the model is done.
//!
//! ```text
//! guard    a window that is too small is refused before anything is written
//! prompt   appended; without one, the turn continues from the end: an unanswered prompt, results, or pending calls
//! ask      the context is prepared, compacted when due, and recovered if the model says that it does not fit
//! answer   appended with its calls and its usage
//! calls    answered one after the other, then the model is asked again; or left pending
//! D-Mail   once all other calls have results, the session goes back to a checkpoint that the model names
//! ```
//!
//! Invariant: no call is executed before the answer that makes it is in the session.
//! Invariant: a call that was cut off is never executed.
//! Invariant: an answer never follows anything but what it answers. If another command moves the session meanwhile, the answer
//! is appended to another branch, and the turn ends there.

use std::{
    cell::{Cell, RefCell},
    time::{Duration, Instant},
};

use serde_json::{Map, Value, json};

use crate::{
    archive::{At, Workspace},
    context::{
        Item,
        cut::{Bound, Limit, MOST},
        event::Event,
        model::{ChatModel, ChatRequest, Heard, Tool},
        tokens,
    },
    json::Raw,
    model::{Block, Message, OperationNumber, Role, Stop},
    report::{Call, Moment, Notice, Stopped, Turned},
    session::Damages,
    verbs::{
        Asked, Compacting, Context, OpsError,
        agent::{
            append::{By, Stood, append_by},
            dmail,
        },
        back::checkpoint::tell_checkpoint,
        window::{
            context::{sendable_context, whole_context},
            measure::material,
            recover::recover,
        },
    },
    wire::{Draft, Format, Speaker, checkpoint_number},
};

/// How often a model is asked in one turn by default.
pub const STEPS: usize = 100;

/// How to run a turn.
pub struct Turning<'a> {
    /// How to prepare the context, and how to compact it when it must be.
    pub compacting: Compacting<'a>,
    /// The model that answers.
    pub model: &'a dyn ChatModel,
    /// A system prompt before the session's own; empty for none.
    pub system: String,
    /// The tools that it may call.
    pub tools: &'a [Tool],
    /// Is called with the words of an answer as they come.
    pub heard: &'a dyn Fn(Heard<'_>),
    /// The maximum number of characters of a result; the session stores the rest too.
    pub max_result: usize,
    /// Answers calls. Without it, calls stay pending.
    pub answer: Option<&'a dyn Fn(&Call) -> Answer>,
    /// The limit of tokens for one answer; a quarter of the window if that is less.
    pub max_tokens: u64,
    /// How often the model is asked at most.
    pub steps: usize,
}

impl<'a> Turning<'a> {
    /// Returns the defaults: no tools, and answers of at most `max_tokens`.
    pub fn of(compacting: Compacting<'a>, model: &'a dyn ChatModel, max_tokens: u64) -> Self {
        Self {
            compacting,
            model,
            system: String::new(),
            tools: &[],
            heard: &|_| (),
            max_result: MOST,
            answer: None,
            max_tokens,
            steps: STEPS,
        }
    }
}

/// A tool's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Its output.
    pub output: String,
    /// The error, if it failed.
    pub error: Option<String>,
}

/// Runs a turn. A prompt that is already at the end of the session, unanswered, is not appended again.
pub fn turn(
    session: &At<'_>,
    workspace: &Workspace,
    prompt: Option<&str>,
    turning: &Turning<'_>,
    emit: &mut dyn FnMut(&Event),
) -> Result<Turned, OpsError> {
    let log = RefCell::new(Vec::new());
    let sees_checkpoints = turning.answer.is_some() && session.format.traits().shows_checkpoints;
    let mut tools = turning.tools.to_vec();
    let is_taken = tools.iter().any(|tool| tool.name == dmail::NAME);
    tools.extend((sees_checkpoints && !is_taken).then(dmail::tool));
    let beside = tools.iter().flat_map(|tool| [&tool.name, &tool.description, &tool.schema]);
    let beside = beside.chain([&turning.system]).map(|text| tokens::estimate(text)).sum::<u64>();
    let wanted = &turning.compacting;
    let asked = Asked { results: Some(Bound::default()), ..wanted.asked.clone() };
    // Checked before the prompt is written, so that an impossible turn leaves no trace.
    let first = sendable_context(session, &asked)?;
    let mut run = Run {
        session,
        workspace,
        turning,
        tools: &tools,
        sees_checkpoints,
        has_dmail: sees_checkpoints && !is_taken,
        wanted: Compacting {
            asked: &asked,
            beside: wanted.beside + beside,
            log: Some(&log),
            tools: &tools,
            ..*wanted
        },
        log: &log,
        stood: Stood::of(&session.state),
        turned: Turned { window: first.window.tokens, ..Turned::default() },
    };
    let calls = match prompt {
        Some(prompt) if is_last(&first, prompt) => {
            run.turned.is_repeated = true;
            Vec::new()
        }
        Some(prompt) => {
            // A prompt answers nothing, so it goes to wherever the session is now.
            run.stood = None;
            run.append(&[Draft::Message(Speaker::User, prompt.to_owned())])?;
            Vec::new()
        }
        None => pending(session, wanted.asked)?.ok_or(OpsError::NothingAsked)?,
    };
    run.run(calls, emit)?;
    let last = whole_context(&session.again()?, &asked)?;
    let tokens = run.wanted.tokens(&last);
    Ok(Turned { tokens, ..run.turned })
}

/// A turn while it runs.
struct Run<'a> {
    session: &'a At<'a>,
    workspace: &'a Workspace,
    turning: &'a Turning<'a>,
    /// The tools that are offered.
    tools: &'a [Tool],
    /// True if the model sees a checkpoint before each request.
    sees_checkpoints: bool,
    /// True if one of the tools sends D-Mails.
    has_dmail: bool,
    wanted: Compacting<'a>,
    log: &'a RefCell<Vec<Event>>,
    /// The end of what the model has seen and written.
    stood: Option<Stood>,
    turned: Turned,
}

impl Run<'_> {
    /// Answers calls and asks the model until it makes no more calls.
    fn run(&mut self, mut calls: Vec<Call>, emit: &mut dyn FnMut(&Event)) -> Result<(), OpsError> {
        loop {
            if !calls.is_empty() && !self.answer_calls(calls, emit)? {
                return Ok(());
            }
            if self.sees_checkpoints {
                let marked = tell_checkpoint(&self.session.again()?, self.workspace)?;
                self.turned.operations.extend(marked.done.operation);
                Notice::add(marked.done.notices, &mut self.turned.notices);
                self.stood = Stood::of(&self.session.again()?.state);
            }
            let Some(message) = self.ask(emit)? else { return Ok(()) };
            calls = self::calls(&message);
            self.append(&drafts(message, &calls, self.session.format))?;
            let cut = take_cut(&mut calls, self.turned.stop);
            if !cut.is_empty() && self.turned.aside.is_none() {
                self.append(&cut)?;
            }
            let goes_on = !cut.is_empty() && self.can_answer();
            if self.turned.aside.is_some() || calls.is_empty() && !goes_on {
                return Ok(());
            }
        }
    }

    /// Returns true if calls are answered and the model may be asked again.
    fn can_answer(&self) -> bool {
        self.turning.answer.is_some() && self.turned.steps < self.turning.steps
    }

    /// Appends records after what the model has seen.
    fn append(&mut self, drafts: &[Draft]) -> Result<(), OpsError> {
        let events = std::mem::take(&mut *self.log.borrow_mut());
        let limit = Some(Limit::of_chars(self.turning.max_result));
        let by = By::Model(&events, self.stood);
        let (said, stood) = append_by(self.session, self.workspace, drafts, limit, by)?;
        self.turned.operations.extend(said.done.operation);
        self.turned.aside = said.aside;
        Notice::add(said.done.notices, &mut self.turned.notices);
        self.stood = stood;
        Ok(())
    }

    /// Answers calls one after the other, and then sends the D-Mail among them. Returns true if the model is asked next.
    fn answer_calls(
        &mut self,
        calls: Vec<Call>,
        emit: &mut dyn FnMut(&Event),
    ) -> Result<bool, OpsError> {
        let Some(answer) = self.turning.answer.filter(|_| self.can_answer()) else {
            self.turned.pending = calls;
            return Ok(false);
        };
        let mut mail = None;
        for (at, call) in calls.iter().enumerate() {
            if self.wanted.left().is_zero() {
                self.turned.pending = calls.get(at..).unwrap_or_default().to_vec();
                return self.stop().map(|()| false);
            }
            let Answer { output, error } = if self.has_dmail && call.name == dmail::NAME {
                match dmail::check(&self.session.again()?, call, mail.as_ref())? {
                    Ok(sent) => {
                        mail = Some(sent);
                        continue;
                    }
                    Err(why) => Answer { output: String::new(), error: Some(why) },
                }
            } else if self.tools.iter().any(|tool| tool.name == call.name) {
                answer(call)
            } else {
                let names: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
                let why =
                    format!("there is no tool {}; the tools are {}", call.name, names.join(", "));
                Answer { output: String::new(), error: Some(why) }
            };
            self.append(&[Draft::Result { id: call.id.clone(), output, error }])?;
            self.turned.answered += 1;
            if self.turned.aside.is_some() {
                return Ok(false);
            }
        }
        let Some(mail) = mail else { return Ok(true) };
        let sent = dmail::send(&self.session.again()?, self.workspace, &mail)?;
        if let (Some(operation), Some(checkpoint)) = (sent.done.operation, sent.checkpoint) {
            self.turned.operations.push(operation);
            let (checkpoint, operation) = (checkpoint.get(), operation.get());
            let session = self.session.name.id.clone();
            emit(&Event::DmailSent { session, checkpoint, operation });
        }
        Notice::add(sent.done.notices, &mut self.turned.notices);
        self.turned.dmails += 1;
        self.stood = Stood::of(&self.session.again()?.state);
        Ok(true)
    }

    /// Asks the model. Returns its answer; None if the deadline ended the turn.
    fn ask(&mut self, emit: &mut dyn FnMut(&Event)) -> Result<Option<Message>, OpsError> {
        let before = self.session.again()?;
        let (turning, tools, limit) = (self.turning, self.tools, self.wanted.left());
        if limit.is_zero() {
            return self.stop().map(|()| None);
        }
        let until = self.wanted.until;
        let is_heard = Cell::new(false);
        let mut heard = |heard: Heard<'_>| {
            is_heard.set(matches!(heard, Heard::Words(_)));
            (turning.heard)(heard);
        };
        let mut ask = |context: &Context| {
            // The model says it again.
            if is_heard.get() {
                heard(Heard::Void);
            }
            let (own, messages) = request(context);
            let system =
                [turning.system.as_str(), &own].into_iter().filter(|text| !text.is_empty());
            turning.model.answer(
                &ChatRequest {
                    system: &system.collect::<Vec<_>>().join("\n\n"),
                    messages: &messages,
                    tools,
                    max_tokens: turning.max_tokens.min(context.window.tokens / 4).max(1),
                    limit: until.map_or(Duration::MAX, |until| {
                        until.saturating_duration_since(Instant::now())
                    }),
                },
                &mut heard,
            )
        };
        let recovered = match recover(&before, self.workspace, &self.wanted, None, &mut ask, emit) {
            Err(OpsError::Deadline(stopped)) => {
                let next = self.session.again()?.state.next_operation();
                self.turned
                    .operations
                    .extend(OperationNumber::each(before.state.next_operation()..next));
                self.turned.stopped = Some(*stopped);
                return Ok(None);
            }
            recovered => recovered?,
        };
        // A window size that was reported once holds for the rest of the turn.
        if recovered.window != self.turned.window {
            self.turned.window = recovered.window;
            self.wanted.named = Some(recovered.window);
        }
        let turned = &mut self.turned;
        turned.operations.extend(recovered.operations);
        turned.compactions.extend(recovered.compactions);
        Notice::add(recovered.notices, &mut turned.notices);
        turned.steps += 1;
        let message = recovered.answer;
        if let Some(usage) = &message.usage {
            turned.usage.add(usage);
        }
        (turned.said, turned.stop) = (message.text(), message.stop);
        Ok(Some(message))
    }

    /// Ends the turn at its deadline, outside of a compaction.
    fn stop(&mut self) -> Result<(), OpsError> {
        let context = whole_context(&self.session.again()?, self.wanted.asked)?;
        let session = self.session.name.id.clone();
        self.turned.stopped = Some(Stopped::new(Moment::Present, session, &context.prepared.items));
        Ok(())
    }
}

/// Returns true if a context ends with this prompt and the model has not answered it.
fn is_last(context: &Context, prompt: &str) -> bool {
    let last = context.prepared.items.last();
    let asks = last.filter(|item| item.role() == Role::User && !item.is_summary());
    let is_prompt =
        |block: &Block| matches!(block, Block::Text(text) if text.trim() == prompt.trim());
    // The number of a checkpoint may follow the prompt.
    let is_said =
        |block: &&Block| !matches!(block, Block::Text(text) if checkpoint_number(text).is_some());
    asks.is_some_and(|item| item.message().blocks.iter().rfind(is_said).is_some_and(is_prompt))
}

/// Returns the unanswered calls at the end of a session, or `None` if a model has nothing to continue from.
fn pending(session: &At<'_>, asked: &Asked) -> Result<Option<Vec<Call>>, OpsError> {
    // Read from the session as written: a request gives several calls with one id an id each.
    let found = material(session, None, asked, usize::MAX, &Damages::default())?;
    let mut open: Vec<Call> = Vec::new();
    let mut is_asked = false;
    let mut last = Role::User;
    for message in found.items.iter().map(Item::message) {
        let before = std::mem::replace(&mut last, message.role);
        match message.role {
            Role::Assistant => {
                // An agent may write several records for one answer. Only the first says how it ended.
                let is_first = before != Role::Assistant || message.stop.is_some();
                let is_calls =
                    message.blocks.iter().all(|block| matches!(block, Block::Call { .. }));
                if is_first && !is_calls {
                    open.clear();
                }
                open.extend(calls(&message));
                is_asked = matches!(message.stop, Some(Stop::Paused)) || is_asked && !is_first;
            }
            Role::User | Role::Tool => {
                let answers = |call: &Call| {
                    let is =
                        |block: &Block| matches!(block, Block::Result { id, .. } if *id == call.id);
                    message.blocks.iter().any(is)
                };
                open.retain(|call| !answers(call));
                if message.blocks.iter().any(|block| matches!(block, Block::Text(_))) {
                    open.clear();
                }
                is_asked = true;
            }
            Role::System => {}
        }
    }
    Ok((is_asked || !open.is_empty()).then_some(open))
}

/// Returns the system prompt of a prepared context, and its conversation.
fn request(context: &Context) -> (String, Vec<Message>) {
    let items = &context.prepared.items;
    let begun = items.iter().take_while(|item| item.role() == Role::System).count();
    let (system, rest) = items.split_at(begun);
    let system: Vec<String> = system.iter().map(|item| item.message().text()).collect();
    (system.join("\n\n"), rest.iter().map(|item| item.message().into_owned()).collect())
}

fn calls(message: &Message) -> Vec<Call> {
    let calls = message.blocks.iter().filter_map(|block| match block {
        Block::Call { id, name, input, .. } => {
            Some(Call { id: id.clone(), name: name.clone(), input: input.clone() })
        }
        _ => None,
    });
    calls.collect()
}

/// Removes the calls that were cut off because the model ran out of room, and returns error results for them. The beginning
/// of a call must not be executed: it would do something else than the whole call.
fn take_cut(calls: &mut Vec<Call>, stop: Option<Stop>) -> Vec<Draft> {
    let is_cut = |call: &mut Call| {
        let input = serde_json::from_str::<Map<String, Value>>(&call.input);
        // Arguments that the model had not begun arrive as empty arguments.
        stop == Some(Stop::Length) && input.map_or(true, |input| input.is_empty())
    };
    let cut = calls.extract_if(.., is_cut).map(|call| {
        let why =
            "the call was cut off, because the room for the answer was full, and was not made";
        Draft::Result { id: call.id, output: String::new(), error: Some(why.to_owned()) }
    });
    cut.collect()
}

/// Returns the drafts of an answer: its text, and its calls. A record that can hold only one call holds what comes before the
/// call too, so that thinking, texts and calls keep their order. Only the first record has the usage and the stop reason.
fn drafts(mut message: Message, calls: &[Call], format: &dyn Format) -> Vec<Draft> {
    for block in &mut message.blocks {
        if let Block::Call { input, .. } = block {
            *input = arguments(std::mem::take(input));
        }
    }
    let traits = format.traits();
    let mut drafts = Vec::with_capacity(calls.len() + 1);
    if traits.joins_calls || calls.is_empty() {
        return vec![Draft::Answer(Box::new(message))];
    }
    if !traits.joins_first_call {
        if !message.text().is_empty() {
            drafts.push(Draft::Answer(Box::new(message)));
        }
        drafts.extend(calls.iter().cloned().map(|call| {
            let Call { id, name, input } = call;
            Draft::Call { id, name, input: arguments(input) }
        }));
        return drafts;
    }
    let blocks = std::mem::take(&mut message.blocks);
    let flush = |message: &mut Message, drafts: &mut Vec<Draft>| {
        let next = Message::new(Role::Assistant, Vec::new());
        drafts.push(Draft::Answer(Box::new(std::mem::replace(message, next))));
    };
    for block in blocks {
        match block {
            Block::Call { id, name, input, signature: None }
                if message.blocks.is_empty() && !drafts.is_empty() =>
            {
                drafts.push(Draft::Call { id, name, input });
            }
            block @ Block::Call { .. } => {
                if !message.text().is_empty() {
                    flush(&mut message, &mut drafts);
                }
                message.blocks.push(block);
                flush(&mut message, &mut drafts);
            }
            block => message.blocks.push(block),
        }
    }
    if !message.blocks.is_empty() {
        flush(&mut message, &mut drafts);
    }
    drafts
}

/// Returns arguments as a JSON object. If a model wrote something else, it is stored as text in an object.
fn arguments(input: String) -> String {
    if Raw::object(input.as_bytes()).is_some() {
        input
    } else {
        json!({ "input": input }).to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        model::{SentAs, Thinking},
        wire::{Native, Read as _, Setting, Write as _},
    };

    fn setting() -> Setting {
        let (session, uuid, folder) = Default::default();
        let (parent, git_branch, nearby, since, tool, call) = Default::default();
        let (time, is_nameless) = (crate::model::Timestamp(0), false);
        Setting {
            session,
            parent,
            uuid,
            time,
            folder,
            git_branch,
            nearby,
            is_nameless,
            since,
            tool,
            call,
        }
    }

    fn any_block() -> impl Strategy<Value = Block> {
        let word = || any::<String>();
        let maybe = || prop::option::of("[a-z]{1,9}");
        let thinking = (word(), maybe(), prop::sample::select(&SentAs::ALL[..]));
        prop_oneof![
            "\\PC+".prop_map(Block::Text),
            thinking.prop_map(|(text, signature, sent_as)| {
                let is_redacted = text.is_empty() && signature.is_some();
                Block::Thinking(Thinking { text, signature, is_redacted, sent_as })
            }),
            (word(), word(), maybe()).prop_map(|(id, name, signature)| {
                let input = json!({ "path": name }).to_string();
                Block::Call { id, name, input, signature }
            }),
        ]
    }

    proptest! {
        #[test]
        fn an_answer_is_read_back_with_its_blocks_in_order(blocks in prop::collection::vec(any_block(), 1..8), output: u64) {
            let mut blocks = blocks;
            blocks.dedup_by(|a, b| matches!((a, b), (Block::Text(_), Block::Text(_))));
            let usage = crate::model::Usage { output, ..Default::default() };
            let message = Message {
                usage: Some(usage),
                stop: Some(Stop::Calls),
                ..Message::new(Role::Assistant, blocks.clone())
            };
            let calls = calls(&message);
            let mut found = Vec::new();
            let mut usages = Vec::new();
            for draft in drafts(message, &calls, &Native) {
                let line = Native.write(&draft, &setting()).unwrap();
                for message in Native.messages(Raw::object(&line).unwrap()) {
                    found.extend(message.blocks);
                    usages.extend(message.usage.map(|usage| (usage, message.stop)));
                }
            }
            prop_assert_eq!(found, blocks);
            prop_assert_eq!(usages, [(usage, Some(Stop::Calls))]);
        }
    }
}
