//! Redactions: what was redacted, in which sessions, and where it may remain.

use std::path::PathBuf;

use serde::Serialize;

use super::{Notice, hint::Line, shape::report};
use crate::model::SessionName;

/// What was redacted from the store, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redacted {
    /// Whether this is only a plan.
    pub planned: bool,
    /// The number of lines that contain it.
    pub lines: u64,
    /// The number of texts by people, such as notes, that contain it.
    pub notes: u64,
    /// The number of unfinished lines, as once read, that contain it.
    pub unfinished: u64,
    /// Where it remains because it cannot be covered there.
    pub fixed: Vec<Remaining>,
    /// The rules that found it, if rules did.
    pub rules: Vec<String>,
    /// The sessions that contain it.
    pub sessions: Vec<RedactedSession>,
    /// The session files where it was covered.
    pub covered: Vec<PathBuf>,
    /// The session files that may still contain it.
    pub left: Vec<PathBuf>,
    /// Files in agents' folders that undertext does not store and that contain it, or may contain it.
    pub beside: Vec<PathBuf>,
    /// What could not be searched and may contain it: in agents' folders, and where files of its sessions may have been moved.
    pub unseen: Vec<PathBuf>,
    /// The files stored whole, such as long tool results, that contain it.
    pub files: Vec<PathBuf>,
    /// The deleted folders of damaged stores that had been set aside, and the deleted remains of interrupted commands.
    pub deleted: Vec<PathBuf>,
    /// Whether the write-ahead log still contains it, because another program is reading an older state of the store.
    pub is_in_log: bool,
    /// Other stores of this user that contain it, or may contain it.
    pub stores: Vec<PathBuf>,
    /// The notices about the sessions that contain it, paired with their session.
    pub notices: Vec<(SessionName, Notice)>,
}

/// A session that was redacted, or would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RedactedSession {
    /// The agent's id.
    pub session: String,
    /// The name of the format.
    pub format: String,
    /// The title, unless it may contain the redacted text.
    pub title: Option<String>,
    /// The number of lines.
    pub lines: u64,
}

/// A place where something remains because it cannot be covered there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remaining {
    /// The id of the session, unless the id itself contains it.
    pub session: String,
    /// The place, in words.
    pub place: String,
}

impl Redacted {
    /// Returns true if nothing contains it.
    pub fn is_nowhere(&self) -> bool {
        self.lines == 0 && self.notes == 0 && self.unfinished == 0 && self.files.is_empty()
    }

    /// Returns true if it remains anywhere, or may remain.
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
