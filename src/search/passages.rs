//! Passages: the texts of a record, each with its speaker.
//!
//! If the agent moved a long tool result to a sidecar, the text of the sidecar is a passage of the record too.
//!
//! A tool call has the tool's name and each string in its arguments, with JSON escapes resolved. So does a result that reports
//! its output as JSON.

use std::{borrow::Cow, collections::BTreeMap};

use super::pattern::Pattern;
use crate::{
    json::Raw,
    model::{Block, FileNumber, Message, OperationNumber, Role, Sidecar},
    session::{Session, read::tools::is_command},
    store::{Store, StoreError},
    wire::{Earlier, plain_output},
};

/// The start of a patch, and the arguments that name the changed file.
const PATCH: &str = "*** Begin Patch";
const PATHS: [&str; 5] = ["file_path", "path", "filePath", "notebook_path", "target_file"];
/// A text of at least this many bytes without blanks is data, not text that a person reads.
const DATA: usize = 1024;

/// The part of a conversation that a text belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Messages of the user, the model and the agent program.
    Messages,
    /// Commands that were run.
    Commands,
    /// Changes of files.
    Edits,
    /// Other tool calls.
    Calls,
    /// Tool results.
    Results,
}

/// A text of a record.
pub(super) struct Passage<'m> {
    pub(super) role: Role,
    /// The tool of the call or result, and the id of the call.
    pub(super) tool: Option<Tool<'m>>,
    pub(super) text: Cow<'m, str>,
}

/// A tool, as named by a passage.
#[derive(Clone, Copy)]
pub(super) struct Tool<'m> {
    pub(super) name: Option<&'m str>,
    pub(super) call: &'m str,
    /// The arguments, if this is a call.
    input: Option<&'m str>,
}

impl Passage<'_> {
    /// Returns the part of the conversation that it belongs to.
    pub(super) fn part(&self) -> Part {
        match self.tool.map(|tool| tool.input) {
            Some(Some(input)) if is_edit(input) => Part::Edits,
            Some(Some(input)) if is_command(input) => Part::Commands,
            Some(Some(_)) => Part::Calls,
            Some(None) => Part::Results,
            None if self.role == Role::Tool => Part::Results,
            None => Part::Messages,
        }
    }
}

/// The sidecars to which an agent moved tool results, by name.
pub(super) struct Moved<'s> {
    store: &'s dyn Store,
    pub(super) session: &'s Session,
    files: BTreeMap<String, (OperationNumber, u64)>,
}

impl<'s> Moved<'s> {
    pub(super) fn of(store: &'s dyn Store, session: &'s Session) -> Result<Self, StoreError> {
        let state = store.state(session.key)?;
        let file = |(file, (n, at, _)): (&FileNumber, &(OperationNumber, u64, Sidecar))| {
            Some((state.file(*file)?.name()?.to_owned(), (*n, *at)))
        };
        Ok(Self { store, session, files: state.sidecars.iter().filter_map(file).collect() })
    }

    /// Returns true if records may have texts beyond their own bytes.
    pub(super) fn says_more(&self) -> bool {
        !self.files.is_empty() || !self.session.format.traits().worded.is_empty()
    }

    /// Returns the texts of a record: its messages, or otherwise its remarks outside the conversation, and the content of its
    /// sidecars.
    pub(super) fn said(&self, record: Raw<'_>) -> Vec<Message> {
        let format = self.session.format;
        let mut said = format.messages(record);
        if said.is_empty() {
            said = (format.traits().remarks)(record);
        }
        let moved = if self.files.is_empty() { Vec::new() } else { format.earlier(record) };
        for Earlier { call, file, .. } in moved {
            let name = file.as_deref().and_then(|file| file.rsplit(['/', '\\']).next());
            let found = name.and_then(|name| self.files.get(name));
            // Damage is reported by `verify`.
            let bytes = found.and_then(|(n, at)| self.store.kept(self.session.key, *n, *at).ok());
            if let Some(bytes) = bytes {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let answer = Block::answer(call.unwrap_or_default(), text);
                said.push(Message::new(Role::Tool, vec![answer]));
            }
        }
        said
    }
}

/// Calls `each` for the texts of messages, in order.
pub(super) fn passages<'m>(messages: &'m [Message], each: &mut dyn FnMut(Passage<'m>)) {
    for message in messages {
        for block in &message.blocks {
            told(message.role, None, block, each);
        }
    }
}

/// Returns the lines of a text, each with its CR if it ends with one.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n').map(|line| line.strip_suffix('\n').unwrap_or(line))
}

impl Pattern {
    /// Returns true if any line of the messages has a match.
    pub fn is_in(&self, messages: &[Message]) -> bool {
        let mut is_found = false;
        passages(messages, &mut |passage| {
            is_found = is_found
                || self.may_match(&passage.text)
                    && lines(&passage.text).any(|line| self.is_match(line));
        });
        is_found
    }
}

/// Returns true if a text is data, such as a document in base64.
fn is_data(text: &str) -> bool {
    text.len() >= DATA && !text.contains([' ', '\n'])
}

fn told<'m>(
    role: Role,
    tool: Option<Tool<'m>>,
    block: &'m Block,
    each: &mut dyn FnMut(Passage<'m>),
) {
    let mut say = |text: Cow<'m, str>| each(Passage { role, tool, text });
    match block {
        Block::Text(text) if tool.is_some() => say(plain_output(text)),
        Block::Text(text) => say(Cow::Borrowed(text)),
        Block::Thinking(thinking) => say(Cow::Borrowed(&thinking.text)),
        Block::Call { id, name, input, .. } => {
            let tool = Some(Tool { name: Some(name), call: id, input: Some(input) });
            let mut say = |text| each(Passage { role, tool, text });
            say(Cow::Borrowed(name));
            texts(input, &mut say);
        }
        Block::Result { id, name, blocks, .. } => {
            let tool = Some(Tool { name: name.as_deref(), call: id, input: None });
            for block in blocks {
                told(Role::Tool, tool, block, each);
            }
        }
        Block::Other { json, .. } => {
            texts(json, &mut |text| {
                if !is_data(&text) {
                    say(text);
                }
            });
        }
        Block::Image(_) => {}
    }
}

/// Returns true if a call's arguments change a file: they contain a patch, or a path and new content.
fn is_edit(input: &str) -> bool {
    let Some(given) = Raw::value(input.as_bytes()) else { return input.contains(PATCH) };
    let has = |key: &&str| given.get(key).is_some();
    let is_put =
        ["content", "new_string", "new_str", "newText", "edits", "file_text", "new_source"];
    is_put.iter().any(has) && PATHS.iter().any(has)
        || given
            .get("patch")
            .or(given.get("input"))
            .is_some_and(|it| it.text().is_some_and(|text| text.contains(PATCH)))
}

/// Calls `say` for each string in a JSON value, or for the whole text if it is not JSON.
fn texts<'m>(json: &'m str, say: &mut dyn FnMut(Cow<'m, str>)) {
    match Raw::value(json.as_bytes()) {
        Some(value) => inner(value, say),
        None => say(Cow::Borrowed(json)),
    }
}

fn inner<'m>(value: Raw<'m>, say: &mut dyn FnMut(Cow<'m, str>)) {
    for string in value.strings(|_| false) {
        if let Some(text) = string.text() {
            say(text);
        }
    }
}
