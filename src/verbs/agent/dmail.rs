//! D-Mails: a model sends a message back to a checkpoint, and the session continues from there.
//!
//! The model calls a tool with the number of a checkpoint and a message. Once the other calls of the same answer have results,
//! the session goes back to the checkpoint, and the message is there as a note. If that is before the newest prompt, the prompt
//! follows the note. All of this is one operation.
//!
//! Invariant: a D-Mail that cannot be carried out changes nothing, and its result tells the model what to do instead.

use serde_json::{Value, json};

use crate::{
    archive::{At, Workspace},
    change::goal::resume::Note,
    context::{cut, model::Tool},
    files::at::Standing,
    json::Raw,
    model::{Block, CheckpointNumber, Command, EntryNumber, Kind, Message, Role},
    report::{Call, Reverted},
    session::{find_place, graph::replay::Replays, plan::given},
    verbs::{
        OpsError,
        back::revert::{go_back, plan},
        look::note::wrapped,
    },
    wire::{Graph as _, checkpoint_number},
};

/// The name of the tool.
pub(super) const NAME: &str = "send_dmail";
/// How many of its answers the note quotes, and how many characters of each.
const QUOTED: (usize, usize) = (5, 200);
/// How many checkpoints an error names.
const NAMED: usize = 10;
/// The number of digits of the entry's id in the note.
const DIGITS: usize = 12;

/// A message to a checkpoint.
#[derive(Debug)]
pub(super) struct Dmail {
    to: CheckpointNumber,
    message: String,
    /// The id of the call.
    call: String,
}

/// Returns the tool as it is offered to a model.
pub(super) fn tool() -> Tool {
    let description = "Go back to an earlier checkpoint of this conversation, with a message to yourself. \
        What you said and read after the checkpoint leaves the conversation; files keep their changes. \
        Use it when you have read much that turned out to be useless, when you followed a wrong path, or to keep a \
        result and drop the work that led to it. Put all that you need to know into the message. \
        CHECKPOINT lines give the numbers. It is carried out once the other calls of this step have results; \
        send one at most.";
    let schema = json!({
        "type": "object",
        "properties": {
            "checkpoint": { "type": "integer", "minimum": 0, "description": "The number of the checkpoint to go back to." },
            "message": { "type": "string", "description": "What you have learned, what is done, and what to do next." },
        },
        "required": ["checkpoint", "message"],
    });
    Tool { name: NAME.to_owned(), description: description.to_owned(), schema: schema.to_string() }
}

/// Checks a call of the tool. An error tells the model what to do instead.
pub(super) fn check(
    session: &At<'_>,
    call: &Call,
    pending: Option<&Dmail>,
) -> Result<Result<Dmail, String>, OpsError> {
    let refuse = |why: String| Ok(Err(format!("the D-Mail was not sent: {why}")));
    if pending.is_some() {
        return refuse(
            "another one is already pending, and only one can be sent in a step".to_owned(),
        );
    }
    let input: Value = serde_json::from_str(&call.input).unwrap_or_default();
    let number =
        input.get("checkpoint").and_then(|n| n.as_i64().or_else(|| n.as_str()?.parse().ok()));
    let message = input.get("message").and_then(Value::as_str).map(str::trim).unwrap_or_default();
    let Some(number) = number else {
        return refuse("checkpoint must be the number in a CHECKPOINT line".to_owned());
    };
    if message.is_empty() {
        return refuse("the message is empty; write down what you need to know there".to_owned());
    }
    let found = u64::try_from(number).ok().map(|n| find_place(session, &n.to_string()));
    let target = match found {
        Some(Ok(target)) => target.checkpoint.map(|checkpoint| (checkpoint.n, target.position)),
        _ => None,
    };
    let stretch = match &target {
        Some((_, place)) => Stretch::since(session, place.head)?,
        None => None,
    };
    match (target, stretch) {
        (Some((to, _)), Some(_)) => {
            Ok(Ok(Dmail { to, message: message.to_owned(), call: call.id.clone() }))
        }
        (target, _) => {
            let what =
                if target.is_some() { "is not in this conversation" } else { "does not exist" };
            let shown = shown(session)?;
            let last = shown.iter().skip(shown.len().saturating_sub(NAMED)).map(u64::to_string);
            let last = last.collect::<Vec<_>>().join(", ");
            refuse(format!("checkpoint {number} {what}; you can go back to {last}"))
        }
    }
}

/// Goes back to the checkpoint of a D-Mail.
pub(super) fn send(
    session: &At<'_>,
    workspace: &Workspace,
    mail: &Dmail,
) -> Result<Reverted, OpsError> {
    let place = find_place(session, &mail.to.to_string())?.position;
    let stretch = Stretch::since(session, place.head)?.ok_or(OpsError::Overtaken)?;
    let words = wrapped(&why(session, mail, &stretch)?, &mail.message);
    let note = Note { words: &words, prompt: stretch.prompt.as_deref(), workspace };
    go_back(session, |before: &Standing<'_>| {
        let message = Some(given(&mail.message));
        let command = |left| Command::Revert {
            checkpoint: Some(mail.to),
            entry: None,
            branch: None,
            message,
            left,
        };
        let (mut reverted, plan) = plan(before, place, Some(note), command)?;
        reverted.checkpoint = Some(mail.to);
        Ok((reverted, plan))
    })
}

/// Explains to the model what happened.
fn why(session: &At<'_>, mail: &Dmail, stretch: &Stretch) -> Result<String, OpsError> {
    let end = session.state.position().and_then(|position| position.head);
    let end = end.map(|head| session.id_of(head)).transpose()?;
    let to_read = end.map_or_else(String::new, |id| {
        let command = cut::until(&session.name.id, &format!("{id:.DIGITS$}"));
        format!(" To read what happened: `{command}`.")
    });
    let (most, length) = QUOTED;
    let quoted: Vec<String> = stretch
        .answers
        .iter()
        .rev()
        .take(most)
        .rev()
        .map(|answer| json!(clipped(answer, length)).to_string())
        .collect();
    let read = match (quoted.len(), stretch.answers.len()) {
        (0, _) => "The user has read no answer of yours since then.".to_owned(),
        (n, all) if n < all => {
            format!(
                "The user has already read {all} answers of yours since then, the last ones: {}.",
                quoted.join(", ")
            )
        }
        _ => format!("The user has already read these answers of yours: {}.", quoted.join(", ")),
    };
    let again = if stretch.prompt.is_some() { " The user's prompt is repeated below." } else { "" };
    Ok(format!(
        "You have gone back to checkpoint {} at your own request: your call {} of {NAME}. That is done, so don't send it \
         again. What you said and read after that checkpoint is no longer visible to you. Files and everything else \
         outside of this conversation are as they are now, with all changes that you made. {read}{again}{to_read} \
         This is your message:",
        mail.to, mail.call,
    ))
}

/// Returns the first characters of a text, on one line.
fn clipped(text: &str, most: usize) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}..", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// The part of a conversation after a place.
struct Stretch {
    /// The texts of the model.
    answers: Vec<String>,
    /// The newest prompt of the user, if it is in this part.
    prompt: Option<String>,
}

impl Stretch {
    /// Reads what follows an entry on the current path; None if the entry is not on it.
    fn since(session: &At<'_>, head: Option<EntryNumber>) -> Result<Option<Self>, OpsError> {
        let Some(position) = session.state.position() else { return Ok(None) };
        let view = session.view(position);
        let path = view.path(usize::MAX)?.entries;
        let replays = Replays::of(session)?;
        let start = match head.map(|head| replays.first(head)) {
            None => Some(0),
            Some(head) => {
                path.iter().rposition(|entry| replays.first(*entry) == head).map(|at| at + 1)
            }
        };
        let Some(after) = start.and_then(|start| path.get(start..)) else { return Ok(None) };
        let mut stretch = Self { answers: Vec::new(), prompt: None };
        for &entry in after {
            let kind = view.record(entry)?.kind;
            if !matches!(kind, Kind::User | Kind::Assistant) {
                continue;
            }
            let line = view.line(entry)?;
            let messages = Raw::object(&line).map(|record| session.format.messages(record));
            let said = messages.iter().flatten().map(Message::text).collect::<Vec<_>>().join("\n");
            match kind {
                Kind::User => stretch.prompt = Some(said),
                _ if said.trim().is_empty() => {}
                _ => stretch.answers.push(said),
            }
        }
        Ok(Some(stretch))
    }
}

/// Returns the checkpoints that the model sees, oldest first.
fn shown(session: &At<'_>) -> Result<Vec<u64>, OpsError> {
    let Some(position) = session.state.position() else { return Ok(Vec::new()) };
    let view = session.view(position);
    let mut shown = Vec::new();
    for entry in view.path(usize::MAX)?.entries {
        if view.record(entry)?.kind == Kind::System {
            let line = view.line(entry)?;
            let messages = Raw::object(&line).map(|record| session.format.messages(record));
            let blocks = messages.into_iter().flatten().filter(|said| said.role == Role::User);
            shown.extend(blocks.flat_map(|said| said.blocks).find_map(|block| match block {
                Block::Text(text) => checkpoint_number(&text),
                _ => None,
            }));
        }
    }
    Ok(shown)
}
