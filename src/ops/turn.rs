//! A turn: the prompt, the model's answers, and the answers of tools, until the model is done.
//!
//! ```text
//! guard    a window that is too small is refused before anything is written
//! prompt   appended
//! ask      the context is prepared, compacted where that is due, recovered where the model says that it does not fit
//! answer   appended, its calls and its usage included
//! calls    answered one after the other, and asked again; or left pending
//! ```
//!
//! Invariant: a model's answer is in the session before any of its calls is carried out.

use std::cell::RefCell;

use serde_json::json;

use crate::{
    context::{
        event::Event,
        model::{ChatModel, ChatRequest, Tool},
        recover::Unrecovered,
        tokens,
    },
    model::{Block, Message, Role, Usage},
    ops::{
        Compacting, Context, OpsError, append::append_told, context::whole_context,
        recover::recover,
    },
    report::{Call, Turned},
    session::Session,
    sync::{Archive, Workspace},
    wire::{Draft, Format, Speaker},
};

/// How often a model is asked in one turn where the caller names no number.
pub const STEPS: usize = 100;

/// How a turn is run.
pub struct Turning<'a> {
    /// How the context is asked for, and compacted where it must be.
    pub compacting: Compacting<'a>,
    /// The model that answers.
    pub model: &'a dyn ChatModel,
    /// The tools that may be called.
    pub tools: &'a [Tool],
    /// Answers calls; left out, they stay pending.
    pub answer: Option<&'a dyn Fn(&Call) -> Answer>,
    /// The most tokens that an answer of the model may have.
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

/// Runs a turn.
pub fn turn(
    archive: &mut Archive,
    session: &Session,
    workspace: &Workspace,
    prompt: &str,
    turning: &Turning<'_>,
    emit: &mut dyn FnMut(&Event),
) -> Result<Turned, OpsError> {
    let log = RefCell::new(Vec::new());
    let beside = turning.tools.iter().map(|tool| {
        let texts = [&tool.name, &tool.description, &tool.schema];
        texts.iter().map(|text| tokens::estimate(text)).sum::<u64>()
    });
    let beside = turning.compacting.beside + beside.sum::<u64>();
    let wanted = Compacting { beside, log: Some(&log), ..turning.compacting };
    // Before the prompt is written, so that an impossible turn leaves nothing.
    let first = match whole_context(archive, session, wanted.asked) {
        Err(OpsError::Window { tokens, least }) => {
            let session = session.name.id.clone();
            return Err(Unrecovered::Blocked { session, window: tokens, least }.into());
        }
        other => other?,
    };
    let mut turned = Turned { window: first.window.tokens, ..Turned::default() };
    let say = |archive: &mut Archive, turned: &mut Turned, drafts: &[Draft]| {
        let events = std::mem::take(&mut *log.borrow_mut());
        let said = append_told(archive, session, workspace, drafts, None, &events)?;
        turned.operations.extend(said.operation);
        turned.notices.extend(said.notices);
        Ok::<_, OpsError>(())
    };
    say(archive, &mut turned, &[Draft::Message(Speaker::User, prompt.to_owned())])?;
    loop {
        let mut ask = |context: &Context| {
            let (system, messages) = request(context);
            turning.model.answer(&ChatRequest {
                system: &system,
                messages: &messages,
                tools: turning.tools,
                max_tokens: turning.max_tokens,
            })
        };
        let recovered = recover(archive, session, workspace, &wanted, &mut ask, emit)?;
        turned.operations.extend(recovered.operations);
        turned.steps += 1;
        let message = recovered.answer;
        add(&mut turned.usage, message.usage.as_ref());
        let calls = calls(&message);
        turned.said = message.text();
        say(archive, &mut turned, &drafts(message, &calls, session.format))?;
        let answer = turning.answer.filter(|_| !calls.is_empty() && turned.steps < turning.steps);
        let Some(answer) = answer else {
            turned.pending = calls;
            break;
        };
        for call in &calls {
            let Answer { output, error } = answer(call);
            let result = Draft::Result { id: call.id.clone(), output, error };
            say(archive, &mut turned, &[result])?;
            turned.answered += 1;
        }
    }
    let last = whole_context(archive, session, wanted.asked)?;
    turned.tokens = wanted.tokens(&last);
    Ok(turned)
}

/// Returns the system prompt of a prepared context, and the conversation.
fn request(context: &Context) -> (String, Vec<Message>) {
    let items = &context.prepared.items;
    let begun = items.iter().take_while(|item| item.message.role == Role::System).count();
    let (system, rest) = items.split_at(begun);
    let system: Vec<String> = system.iter().map(|item| item.message.text()).collect();
    (system.join("\n\n"), rest.iter().map(|item| item.message.clone()).collect())
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

/// Returns the drafts of an answer: its words, and each call.
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

/// Returns arguments as JSON: a model may write arguments that are not JSON, and they are kept as words.
fn arguments(input: String) -> String {
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&input).is_ok();
    if is_json { input } else { json!({ "input": input }).to_string() }
}

fn add(sum: &mut Usage, usage: Option<&Usage>) {
    let Some(usage) = usage else { return };
    sum.input = sum.input.saturating_add(usage.input);
    sum.output = sum.output.saturating_add(usage.output);
    sum.cache_read = sum.cache_read.saturating_add(usage.cache_read);
    sum.cache_write = sum.cache_write.saturating_add(usage.cache_write);
}
