//! Passages: the texts of a record, each with who said it.
//!
//! A record says also what is in the file to which its agent moved an answer that was too long.
//!
//! A call of a tool says the tool's name and each text among its arguments, as it was meant and not as JSON escapes it. So does an
//! answer that reports its output in JSON.

use std::{borrow::Cow, collections::BTreeMap};

use super::pattern::Pattern;
use crate::{
    json::Raw,
    model::{Block, FileNumber, Message, OperationNumber, Role, Sidecar},
    session::{Session, read::tools::is_command},
    store::{Store, StoreError},
    wire::{Earlier, plain_output},
};

/// How a patch begins, and the arguments that say which file is changed.
const PATCH: &str = "*** Begin Patch";
const PATHS: [&str; 5] = ["file_path", "path", "filePath", "notebook_path", "target_file"];
/// The length in bytes from which on a text without blanks is no text that a person reads.
const DATA: usize = 1024;

/// Which part of a conversation a text is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// What the user, the model and the program said.
    Messages,
    /// A command that was run.
    Commands,
    /// A change of a file.
    Edits,
    /// Another call of a tool.
    Calls,
    /// What a tool answered.
    Results,
}

/// A text of a record.
pub(super) struct Passage<'m> {
    pub(super) role: Role,
    /// The tool that is called or answers, and the id of the call.
    pub(super) tool: Option<Tool<'m>>,
    pub(super) text: Cow<'m, str>,
}

/// A tool as a passage names it.
#[derive(Clone, Copy)]
pub(super) struct Tool<'m> {
    pub(super) name: Option<&'m str>,
    pub(super) call: &'m str,
    /// The arguments of the call.
    input: Option<&'m str>,
}

impl Passage<'_> {
    /// Returns which part of the conversation it is of.
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

/// The files next to a session's own to which its agent moved answers, by their names.
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

    /// Returns whether records may say more than their own bytes.
    pub(super) fn says_more(&self) -> bool {
        !self.files.is_empty() || !self.session.format.traits().worded.is_empty()
    }

    /// Returns all that a record says: its messages, else what it says beside the conversation, and what is in such a file.
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
            // What is damaged is named by whoever verifies the store.
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

/// Hands over the texts of messages, in order.
pub(super) fn passages<'m>(messages: &'m [Message], each: &mut dyn FnMut(Passage<'m>)) {
    for message in messages {
        for block in &message.blocks {
            told(message.role, None, block, each);
        }
    }
}

/// Returns the lines of a text, each with the CR that may end it.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n').map(|line| line.strip_suffix('\n').unwrap_or(line))
}

impl Pattern {
    /// Returns whether some line of what was said in messages has a match.
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

/// Returns whether a text of an agent's own is data, such as a document in base64, and no words.
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

/// Returns whether arguments have a tool change a file: they give a patch, or a path and what is put there.
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

/// Hands over the texts in a JSON value, or all of it if it is none.
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
