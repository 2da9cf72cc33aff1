//! Imports: the imported files, how much was new, and their oddities.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::{
    notice::Notice,
    shape::{path, report},
};
use crate::model::OperationNumber;
use crate::model::hint::Line;
use crate::session::{REPEATED, Session};

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The number of session files found.
    pub files: u64,
    /// How many of them had nothing new.
    pub unchanged: u64,
    /// How many files and folders were skipped.
    pub skipped: u64,
    /// How many of them for each reason.
    pub left_out: BTreeMap<&'static str, u64>,
    /// The number of sessions that changed.
    pub sessions: u64,
    /// The number of new entries.
    pub entries: u64,
    /// The number of new or changed sidecars.
    pub sidecars: u64,
    /// The number of bytes of records that were imported.
    pub bytes: u64,
    /// How many sessions have lost their agent's file since the last check.
    pub gone: u64,
    /// The number of oddities of each kind.
    pub oddities: BTreeMap<QuirkKind, u64>,
}

/// The result of an import for one session.
#[derive(Clone, Debug, Serialize)]
pub struct Imported {
    /// The session.
    #[serde(flatten)]
    pub session: Session,
    /// Whether the session is new.
    pub new: bool,
    /// The last operation of the import.
    pub operation: OperationNumber,
    /// How many files had something new.
    pub files: u64,
    /// The number of new entries.
    pub entries: u64,
    /// The number of new or changed sidecars.
    pub sidecars: u64,
    /// The number of bytes of records that were imported.
    pub bytes: u64,
    /// The branch that preserves the previous position of `main`, if a command had moved it.
    pub left: Option<String>,
    /// The oddities of its files.
    pub oddities: Vec<Oddity>,
    /// The notices about the live file.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

impl Imported {
    /// Returns true if nothing is new except how a live file ends.
    pub fn is_bare(&self) -> bool {
        let is_end = |notice: &Notice| matches!(notice, Notice::Ending { .. });
        self.entries == 0
            && self.sidecars == 0
            && self.notices.iter().all(is_end)
            && self.notices.iter().any(is_end)
    }
}

/// An oddity of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Oddity {
    /// The file.
    #[serde(serialize_with = "path")]
    pub path: PathBuf,
    /// The number of the line where it starts, from 1; `null` if the whole file is affected.
    pub line: Option<u64>,
    /// How many lines, starting there, are affected.
    pub lines: u64,
    /// The kind of the oddity.
    pub kind: QuirkKind,
    /// A description of the oddity.
    pub what: &'static str,
}

impl Oddity {
    /// Returns an oddity of one line, or of the whole file.
    pub(crate) fn new(path: &Path, line: Option<u64>, quirk: Quirk) -> Self {
        let (kind, what) = (quirk.kind(), quirk.words());
        Self { path: path.to_owned(), line, lines: 1, kind, what }
    }
}

/// What is odd about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quirk {
    /// A line is not a JSON object.
    Opaque,
    /// A record follows another on the same line.
    Glued,
    /// The file ends in the middle of a record.
    Torn,
    /// The file does not continue the content that was read before.
    Rewritten,
    /// A record has the same name as an earlier one.
    Repeated,
    /// The file is compressed, and its compressed form is too large to be stored as well.
    Unkept,
    /// A line is too long; the file is imported up to it.
    TooLong,
    /// The rest of the file cannot be read; the file is imported up to there.
    Unreadable,
    /// A sidecar is skipped.
    LeftOut(&'static str),
    /// An edge of the main path had to be repaired.
    Mended(&'static str),
}

/// A kind of oddity, as named in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuirkKind {
    /// The line is not a JSON object.
    Opaque,
    /// A second record is on the same line.
    Glued,
    /// The file ends in the middle of a record.
    Torn,
    /// The file does not continue the contents that undertext imported before.
    Rewritten,
    /// An earlier record has the same id.
    Repeated,
    /// The file is compressed, and only its contents are stored, not the compressed form.
    Unkept,
    /// The line is longer than 512 MiB, so the file was imported up to that line.
    TooLong,
    /// The rest of the file cannot be read, so the file was imported up to that line.
    Unreadable,
    /// A file next to the session was not imported.
    LeftOut,
    /// A record's link to its parent is broken; undertext works around it.
    Mended,
}

impl Quirk {
    /// Returns its kind.
    pub fn kind(self) -> QuirkKind {
        match self {
            Self::Opaque => QuirkKind::Opaque,
            Self::Glued => QuirkKind::Glued,
            Self::Torn => QuirkKind::Torn,
            Self::Rewritten => QuirkKind::Rewritten,
            Self::Repeated => QuirkKind::Repeated,
            Self::Unkept => QuirkKind::Unkept,
            Self::TooLong => QuirkKind::TooLong,
            Self::Unreadable => QuirkKind::Unreadable,
            Self::LeftOut(_) => QuirkKind::LeftOut,
            Self::Mended(_) => QuirkKind::Mended,
        }
    }

    /// Returns a description of it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Opaque => "not a JSON object",
            Self::Glued => "a second record on the same line",
            Self::Torn => "the file ends in the middle of a record",
            Self::Rewritten => "the file was rewritten: it does not continue the store's copy",
            Self::Repeated => REPEATED,
            Self::Unkept => "the file's content is stored, but not its compressed form",
            Self::TooLong => "the file was imported up to here: the line is longer than 512 MiB",
            Self::Unreadable => "the file was imported up to here: the rest cannot be read",
            Self::LeftOut(what) | Self::Mended(what) => what,
        }
    }
}

impl QuirkKind {
    /// Returns true if the file is not imported past this line.
    pub(crate) fn ends_reading(self) -> bool {
        matches!(self, Self::TooLong | Self::Unreadable)
    }
}

report!(Summary, "summary", hints: |it| {
    let restore = || {
        Line::new("restore").flag("all").to("to put deleted files back where their agents read them")
    };
    (it.gone > 0).then(restore)
});

report!(Imported, "imported");
