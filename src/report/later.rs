//! Changes that wait until a session is resumed.

use std::fmt;

use serde::Serialize;

use super::{
    notice::Notice,
    shape::{object, report},
};
use crate::model::{OperationNumber, Request, Text};

/// A change that waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// The operation that has it wait.
    pub operation: OperationNumber,
    /// What is to be done.
    pub request: Request,
    /// Whether this user asked for it on this computer. Any other is made only after a question at a terminal.
    pub is_own: bool,
}

object!(Waiting, |it| {
    operation: it.operation,
    verb: it.request.verb,
    checkpoint: it.request.checkpoint,
    entry: it.request.entry,
    branch: it.request.branch.as_ref().map(Text::to_text),
    undoes: it.request.operation,
    note: it.request.note.as_ref().map(Text::to_text),
    options: it.request.options.iter().map(Text::to_text).collect::<Vec<_>>(),
    own: it.is_own,
});

report!(Waiting, "waiting");

impl Waiting {
    /// Returns the place to which it goes, as it is typed.
    pub fn place(&self) -> Option<String> {
        let Request { checkpoint, entry, branch, .. } = &self.request;
        let entry = || entry.map(|entry| entry.to_string());
        let branch = || branch.as_ref().map(Text::to_text);
        checkpoint.map(|n| format!("@{n}")).or_else(branch).or_else(entry)
    }

    /// Returns whether it has an option.
    pub fn has(&self, option: &str) -> bool {
        self.request.options.iter().any(|word| *word == Text::Own(option.to_owned()))
    }
}

/// What it does, as in "waits to revert to just before @3".
impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Request { verb, checkpoint, entry, operation, note, .. } = &self.request;
        f.write_str(verb)?;
        match (checkpoint, entry, operation) {
            (Some(n), ..) if self.has("--keep") => write!(f, " to just after @{n}")?,
            (Some(n), ..) => write!(f, " to just before @{n}")?,
            (_, Some(entry), _) if self.request.branch.is_none() => write!(f, " to {entry:.8}")?,
            (.., Some(n)) => write!(f, " operation {n}")?,
            _ => self.place().map_or(Ok(()), |place| write!(f, " to {place}"))?,
        }
        note.as_ref().map_or(Ok(()), |_| f.write_str(" with a note"))
    }
}

/// The result of having a change wait.
#[derive(Clone, Debug, Serialize)]
pub struct Delayed {
    /// The change.
    pub waiting: Waiting,
    /// The one that waited before.
    pub replaced: Option<Waiting>,
    /// The notices of the change.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

report!(Delayed, "later");
