//! Redactions: what was redacted, in which sessions, and where it may remain.

use std::path::PathBuf;

use serde::Serialize;

use super::{
    Notice,
    shape::{paths, report},
};
use crate::model::SessionName;
use crate::model::hint::Line;

/// What was redacted from the store, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Redacted {
    /// Whether nothing has been changed yet.
    pub planned: bool,
    /// How many lines contain the text.
    pub lines: u64,
    /// How many of your own notes and names contain the text.
    pub notes: u64,
    /// How many unfinished lines, as once imported, contain the text.
    pub unfinished: u64,
    /// The rules that found the text, if rules did.
    pub rules: Vec<String>,
    /// The sessions that contain the text.
    pub sessions: Vec<RedactedSession>,
    /// Places where the text cannot be overwritten, for example in a name; it stays there.
    pub fixed: Vec<Remaining>,
    /// The files in which the text was overwritten.
    #[serde(serialize_with = "paths")]
    pub covered: Vec<PathBuf>,
    /// The files that still contain the text, or may contain it, including the store's database.
    #[serde(serialize_with = "paths")]
    pub left: Vec<PathBuf>,
    /// Other files in agents' folders that contain the text, or may contain it.
    #[serde(serialize_with = "paths")]
    pub beside: Vec<PathBuf>,
    /// The folders and files that could not be searched and may contain the text.
    #[serde(serialize_with = "paths")]
    pub unseen: Vec<PathBuf>,
    /// Whether the database's log still contains the text, because another program is reading an older state of the store.
    #[serde(rename = "in_log")]
    pub is_in_log: bool,
    /// The imported sidecars, such as long tool results, that contain the text.
    #[serde(serialize_with = "paths")]
    pub files: Vec<PathBuf>,
    /// The damaged stores that had been set aside, and the files of interrupted commands, that were deleted.
    #[serde(serialize_with = "paths")]
    pub deleted: Vec<PathBuf>,
    /// Your other stores that contain the text, or may contain it.
    #[serde(serialize_with = "paths")]
    pub stores: Vec<PathBuf>,
    /// The notices about the sessions that contain it, paired with their session.
    #[serde(skip)]
    pub notices: Vec<(SessionName, Notice)>,
}

/// A session that was redacted, or would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RedactedSession {
    /// The session.
    pub session: String,
    /// The agent.
    pub format: String,
    /// The title of the session, unless it may contain the redacted text.
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

report!(Redacted, "redact", hints: |it| {
    let verify = || Line::new("verify").to("check that everything else is intact");
    (!it.planned && !it.is_nowhere()).then(verify)
});
