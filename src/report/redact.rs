//! Redactions: what was taken out, of which sessions, and where it may still lie.

use std::path::PathBuf;

use serde::Serialize;

use super::{Notice, hint::Line, shape::report};
use crate::model::SessionName;

/// What was taken out of the store, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redacted {
    /// Whether nothing was changed yet.
    pub planned: bool,
    /// How many lines have it.
    pub lines: u64,
    /// How many words of persons, such as notes, have it.
    pub notes: u64,
    /// How many unfinished lines, as they were read once, have it.
    pub unfinished: u64,
    /// Where it stays, because nothing can be covered there.
    pub fixed: Vec<Remaining>,
    /// The rules that found it, if rules did.
    pub rules: Vec<String>,
    /// The sessions that have it.
    pub sessions: Vec<RedactedSession>,
    /// The files of sessions in which it was covered.
    pub covered: Vec<PathBuf>,
    /// The files of sessions that may still hold it.
    pub left: Vec<PathBuf>,
    /// The files in agents' folders that undertext does not keep, and that have it or may have it.
    pub beside: Vec<PathBuf>,
    /// What could not be searched and may have it: in agents' folders, and where files of its sessions may have been moved to.
    pub unseen: Vec<PathBuf>,
    /// The files that are kept whole, such as long answers of tools, and have it.
    pub files: Vec<PathBuf>,
    /// The folders with damaged stores that were set aside, and what commands that were cut short left, which are deleted.
    pub deleted: Vec<PathBuf>,
    /// Whether a program that reads an older state of the store keeps it in the store's log, until the next change behind that.
    pub is_in_log: bool,
    /// Other stores of this user that have it or may have it.
    pub stores: Vec<PathBuf>,
    /// The notices about the sessions that have it, each with its session.
    pub notices: Vec<(SessionName, Notice)>,
}

/// A session of which something was taken out, or would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RedactedSession {
    /// The agent's id.
    pub session: String,
    /// The name of the format.
    pub format: String,
    /// The title, unless it may have what is to be taken out.
    pub title: Option<String>,
    /// Of how many lines.
    pub lines: u64,
}

/// A place in which something stays, because nothing can be covered there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remaining {
    /// The id of a session in which it is so, unless that has it.
    pub session: String,
    /// The place there, in words.
    pub place: String,
}

impl Redacted {
    /// Returns whether nothing has it.
    pub fn is_nowhere(&self) -> bool {
        self.lines == 0 && self.notes == 0 && self.unfinished == 0 && self.files.is_empty()
    }

    /// Returns true if it remains anywhere, or may remain there.
    pub fn remains(&self) -> bool {
        let paths = [&self.left, &self.beside, &self.unseen, &self.stores];
        self.is_in_log || !self.fixed.is_empty() || paths.iter().any(|paths| !paths.is_empty())
    }
}

fn texts(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.display().to_string()).collect()
}

report!(Redacted, "redact", |it| {
    planned: it.planned,
    lines: it.lines,
    notes: it.notes,
    unfinished: it.unfinished,
    rules: it.rules,
    sessions: it.sessions,
    fixed: it.fixed,
    covered: texts(&it.covered),
    left: texts(&it.left),
    beside: texts(&it.beside),
    unseen: texts(&it.unseen),
    in_log: it.is_in_log,
    files: texts(&it.files),
    deleted: texts(&it.deleted),
    stores: texts(&it.stores),
}, hints: |it| {
    let verify = || Line::new("verify").to("check that everything else is intact");
    (!it.planned && !it.is_nowhere()).then(verify)
});
