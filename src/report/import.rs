//! Imports: the files that were taken in, how much of them was new, and their oddities.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Serialize;

use super::{
    hint::Line,
    notice::Notice,
    shape::{object, report},
};
use crate::model::OperationNumber;
use crate::session::{REPEATED, Session};

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// How many session files were found.
    pub files: u64,
    /// How many of them brought nothing new.
    pub unchanged: u64,
    /// How many files and folders were left out.
    pub skipped: u64,
    /// How many of them for each reason.
    pub left_out: BTreeMap<&'static str, u64>,
    /// How many sessions changed.
    pub sessions: u64,
    /// How many entries are new.
    pub entries: u64,
    /// How many files that lie next to sessions' own are new or changed.
    pub sidecars: u64,
    /// How many bytes of records were read in.
    pub bytes: u64,
    /// How many sessions have lost their agent's file since the last look.
    pub gone: u64,
    /// How many oddities there are of each kind.
    pub oddities: BTreeMap<QuirkKind, u64>,
}

/// The part of an import that concerns one session.
#[derive(Clone, Debug, Serialize)]
pub struct Imported {
    /// The session.
    #[serde(flatten)]
    pub session: Session,
    /// Whether it was not there before.
    pub new: bool,
    /// The last operation of the import.
    pub operation: OperationNumber,
    /// How many files brought something new.
    pub files: u64,
    /// How many entries are new.
    pub entries: u64,
    /// How many files that lie next to its own are new or changed.
    pub sidecars: u64,
    /// How many bytes of records were read in.
    pub bytes: u64,
    /// The branch that holds where `main` stood, if a command had moved it.
    pub left: Option<String>,
    /// The oddities of its files.
    pub oddities: Vec<Oddity>,
    /// The notices about the live file.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

impl Imported {
    /// Returns whether nothing is new but how a live file ends.
    pub fn is_bare(&self) -> bool {
        let is_end = |notice: &Notice| matches!(notice, Notice::Ending { .. });
        self.entries == 0
            && self.sidecars == 0
            && self.notices.iter().all(is_end)
            && self.notices.iter().any(is_end)
    }
}

/// An oddity of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oddity {
    /// The file.
    pub path: PathBuf,
    /// The physical line, from 1; none if the whole file is meant.
    pub line: Option<u64>,
    /// How many lines from there on have it.
    pub lines: u64,
    /// The oddity.
    pub quirk: Quirk,
}

/// What is odd about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quirk {
    /// A line is not a JSON object.
    Opaque,
    /// A record comes after another on one line.
    Glued,
    /// The file ends within a record.
    Torn,
    /// The file does not extend the content that was read before.
    Rewritten,
    /// A record has the name of an earlier one.
    Repeated,
    /// The file is compressed, and too large for its compressed form to be kept too.
    Unkept,
    /// A line is too long, and the file is taken in as far as that.
    TooLong,
    /// The file cannot be read on, and is taken in as far as that.
    Unreadable,
    /// A file next to the session's own is left out.
    LeftOut(&'static str),
    /// An edge of the main path had to be mended.
    Mended(&'static str),
}

/// A kind of oddity, which programs know by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "each is a quirk of the same name")]
pub enum QuirkKind {
    Opaque,
    Glued,
    Torn,
    Rewritten,
    Repeated,
    Unkept,
    TooLong,
    Unreadable,
    LeftOut,
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

    /// Returns it in words.
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

    /// Returns whether nothing of the file is taken in from its line on.
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

object!(Oddity, |it| {
    path: it.path.to_string_lossy(),
    line: it.line,
    lines: it.lines,
    kind: it.quirk.kind(),
    what: it.quirk.words(),
});
