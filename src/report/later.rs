//! Changes that wait until a session is resumed.

use std::fmt;

use serde::Serialize;

use super::{notice::Notice, shape::report};
use crate::model::{OperationNumber, Request, Text};

/// A waiting change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// The operation that saved the waiting change.
    pub operation: OperationNumber,
    /// What to do.
    #[serde(flatten)]
    pub request: Request,
    /// Whether you saved the change on this machine; otherwise undertext asks before making it.
    #[serde(rename = "own")]
    pub is_own: bool,
}

report!(Waiting, "waiting");

impl Waiting {
    /// Returns its target, as typed.
    pub fn place(&self) -> Option<String> {
        let Request { checkpoint, entry, branch, .. } = &self.request;
        let entry = || entry.map(|entry| entry.to_string());
        let branch = || branch.as_ref().map(Text::to_text);
        checkpoint.map(|n| format!("@{n}")).or_else(branch).or_else(entry)
    }

    /// Returns true if it has this option.
    pub fn has(&self, option: &str) -> bool {
        self.request.options.iter().any(|word| *word == Text::Own(option.to_owned()))
    }
}

/// Describes what it does, as in "waits to revert to just before @3".
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

/// The result of requesting a change for later.
#[derive(Clone, Debug, Serialize)]
pub struct Delayed {
    /// The waiting change.
    pub waiting: Waiting,
    /// The earlier waiting change that this one replaced.
    pub replaced: Option<Waiting>,
    /// The notices of the change.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

report!(Delayed, "later");
