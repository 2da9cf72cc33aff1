//! A turn: the prompt, the model's answers, and the tool results, until the model is done.
//!
//! ```text
//! guard    a window that is too small is refused before anything is written
//! prompt   appended; without one, the turn continues from the end: an unanswered prompt, results, or pending calls
//! ask      the context is prepared, compacted when due, and recovered if the model says that it does not fit
//! answer   appended with its calls and its usage
//! calls    answered one after the other, then the model is asked again; or left pending
//! ```
//!
//! Invariant: no call is executed before the answer that makes it is in the session.
//! Invariant: a call that was cut off is never executed.
//! Invariant: an answer never follows anything but what it answers. If another command moves the session meanwhile, the answer
//! is appended to another branch, and the turn ends there.

use std::{cell::RefCell, time::Duration};

use serde_json::{Map, Value, json};

use crate::{
    archive::{At, Workspace},
    context::{
        Item,
        event::Event,
        model::{ChatModel, ChatRequest, Tool},
        tokens,
    },
    json::Raw,
    model::{Block, Message, Role, Stop},
    report::{Call, Notice, Turned},
    session::Damages,
    verbs::{
        Asked, Compacting, Context, OpsError,
        agent::append::{By, Stood, append_by},
        window::{
            context::{sendable_context, whole_context},
            measure::material,
            recover::recover,
        },
    },
    wire::{Draft, Format, Speaker},
};

/// How often a model is asked in one turn by default.
pub const STEPS: usize = 100;

/// How to run a turn.
pub struct Turning<'a> {
    /// How to prepare the context, and how to compact it when it must be.
    pub compacting: Compacting<'a>,
    /// The model that answers.
    pub model: &'a dyn ChatModel,
    /// The tools that it may call.
    pub tools: &'a [Tool],
    /// Answers calls. Without it, calls stay pending.
    pub answer: Option<&'a dyn Fn(&Call) -> Answer>,
    /// The limit of tokens for one answer; a quarter of the window if that is less.
    pub max_tokens: u64,
    /// How often the model is asked at most.
    pub steps: usize,
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
    let beside = turning.tools.iter().map(|tool| {
        let texts = [&tool.name, &tool.description, &tool.schema];
        texts.iter().map(|text| tokens::estimate(text)).sum::<u64>()
    });
    let beside = turning.compacting.beside + beside.sum::<u64>();
    let mut wanted =
        Compacting { beside, log: Some(&log), tools: turning.tools, ..turning.compacting };
    let mut stood = Stood::of(&session.state);
    // Checked before the prompt is written, so that an impossible turn leaves no trace.
    let first = sendable_context(session, wanted.asked)?;
    let mut turned = Turned { window: first.window.tokens, ..Turned::default() };
    let say = |turned: &mut Turned, stood: Option<Stood>, drafts: &[Draft]| {
        let events = std::mem::take(&mut *log.borrow_mut());
        let by = By::Model(&events, stood);
        let (said, stands) = append_by(session, workspace, drafts, None, by)?;
        turned.operations.extend(said.done.operation);
        turned.aside = said.aside;
        Notice::add(said.done.notices, &mut turned.notices);
        Ok::<_, OpsError>(stands)
    };
    let mut calls = match prompt {
        Some(prompt) if is_last(&first, prompt) => {
            turned.is_repeated = true;
            Vec::new()
        }
        Some(prompt) => {
            let prompt = Draft::Message(Speaker::User, prompt.to_owned());
            // A prompt answers nothing, so it goes to wherever the session is now.
            stood = say(&mut turned, None, &[prompt])?;
            Vec::new()
        }
        None => pending(session, wanted.asked)?.ok_or(OpsError::NothingAsked)?,
    };
    'turn: loop {
        if !calls.is_empty() {
            let answer = turning.answer.filter(|_| turned.steps < turning.steps);
            let Some(answer) = answer else {
                turned.pending = calls;
                break;
            };
            for call in &calls {
                let Answer { output, error } = answer(call);
                let result = Draft::Result { id: call.id.clone(), output, error };
                stood = say(&mut turned, stood, &[result])?;
                turned.answered += 1;
                if turned.aside.is_some() {
                    break 'turn;
                }
            }
        }
        let mut ask = |context: &Context| {
            let (system, messages) = request(context);
            let request = ChatRequest {
                system: &system,
                messages: &messages,
                tools: turning.tools,
                max_tokens: turning.max_tokens.min(context.window.tokens / 4).max(1),
                limit: Duration::MAX,
            };
            turning.model.answer(&request, &mut |_| ())
        };
        let recovered = recover(&session.again()?, workspace, &wanted, None, &mut ask, emit)?;
        // A window size that was reported once holds for the rest of the turn.
        if recovered.window != turned.window {
            (turned.window, wanted.named) = (recovered.window, Some(recovered.window));
        }
        turned.operations.extend(recovered.operations);
        turned.compactions.extend(recovered.compactions);
        Notice::add(recovered.notices, &mut turned.notices);
        turned.steps += 1;
        let message = recovered.answer;
        if let Some(usage) = &message.usage {
            turned.usage.add(usage);
        }
        calls = self::calls(&message);
        (turned.said, turned.stop) = (message.text(), message.stop);
        stood = say(&mut turned, stood, &drafts(message, &calls, session.format))?;
        if turned.aside.is_some() {
            break;
        }
        let cut = take_cut(&mut calls, turned.stop);
        if !cut.is_empty() {
            stood = say(&mut turned, stood, &cut)?;
        }
        if turned.aside.is_some() {
            break;
        }
        let goes_on = !cut.is_empty() && turning.answer.is_some() && turned.steps < turning.steps;
        if calls.is_empty() && !goes_on {
            break;
        }
    }
    let last = whole_context(&session.again()?, wanted.asked)?;
    turned.tokens = wanted.tokens(&last);
    Ok(turned)
}

/// Returns true if a context ends with this prompt and the model has not answered it.
fn is_last(context: &Context, prompt: &str) -> bool {
    let last = context.prepared.items.last();
    let asks = last.filter(|item| item.role() == Role::User && !item.is_summary());
    let is_prompt =
        |block: &Block| matches!(block, Block::Text(text) if text.trim() == prompt.trim());
    asks.is_some_and(|item| item.message().blocks.last().is_some_and(is_prompt))
}

/// Returns the unanswered calls at the end of a session, or `None` if a model has nothing to continue from.
fn pending(session: &At<'_>, asked: &Asked) -> Result<Option<Vec<Call>>, OpsError> {
    // Read from the session as written: a request gives several calls with one id an id each.
    let found = material(session, None, asked, usize::MAX, &Damages::default())?;
    let mut open: Vec<Call> = Vec::new();
    let mut is_asked = false;
    for message in found.items.iter().map(Item::message) {
        match message.role {
            Role::Assistant => {
                // An agent may write one record for each call of an answer.
                if !message.blocks.iter().all(|block| matches!(block, Block::Call { .. })) {
                    open.clear();
                }
                open.extend(calls(&message));
                is_asked = matches!(message.stop, Some(Stop::Paused));
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

/// Returns the drafts of an answer: its text, and its calls.
fn drafts(mut message: Message, calls: &[Call], format: &dyn Format) -> Vec<Draft> {
    let has_words = !message.text().is_empty();
    for block in &mut message.blocks {
        if let Block::Call { input, .. } = block {
            *input = arguments(std::mem::take(input));
        }
    }
    let traits = format.traits();
    let joined = match calls.len() {
        n if traits.joins_calls => n,
        n => n.min(usize::from(traits.joins_first_call && !has_words)),
    };
    let mut drafts = Vec::with_capacity(calls.len() + 1);
    if has_words || calls.is_empty() || joined > 0 {
        drafts.push(Draft::Answer(Box::new(message)));
    }
    drafts.extend(calls.iter().skip(joined).cloned().map(|call| {
        let Call { id, name, input } = call;
        Draft::Call { id, name, input: arguments(input) }
    }));
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
