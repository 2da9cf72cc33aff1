//! Where a history begins, and why it may not be readable from there.

use std::{ffi::OsStr, fmt, os::unix::ffi::OsStrExt, path::Path};

use crate::model::{Place, Position};

/// The folder in the place names of parts of other sessions' files that were imported with a session. It does not exist on disk.
pub(crate) const BASES: &str = "bases";

/// The maximum number of files that a history is followed through.
pub(crate) const FOLLOWED: usize = 1000;

/// Returns true if a place is the name of such a part.
pub(crate) fn is_adopted(place: &Place) -> bool {
    matches!(place, Place::Store(path) if Path::new(OsStr::from_bytes(path)).starts_with(BASES))
}

/// Where a history begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Begins {
    /// With the first entry.
    Here,
    /// In another file of the session, up to this position.
    At(Position),
    /// In a place that cannot be read.
    Elsewhere(Elsewhere),
}

/// The missing beginning of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// The id of the file that has it.
    pub file: String,
    /// The history in that file ends before this ordinal.
    pub ordinal: Option<u64>,
    /// Why it is missing.
    pub gap: Gap,
}

/// Why the beginning of a history is missing.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Gap {
    /// It is in the parent session of this fork.
    Parent(#[serde(skip)] String),
    /// The file does not exist.
    Missing,
    /// The file ends before the place that is referenced.
    Short,
    /// The files refer to each other in a circle, or are too many.
    Endless,
}

impl Elsewhere {
    /// Returns the parent session that has the history, if it is in one.
    pub fn session(&self) -> Option<&str> {
        if let Gap::Parent(session) = &self.gap { Some(session) } else { None }
    }
}

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = &self.file;
        match &self.gap {
            Gap::Parent(session) => {
                write!(f, "the history before the fork is in the parent session {session}")
            }
            Gap::Missing => write!(f, "the earlier history is in file {file}, which is missing"),
            Gap::Short => write!(f, "the earlier history is in file {file}, which ends too early"),
            Gap::Endless => {
                write!(f, "the earlier history is in file {file}, which refers back to itself")
            }
        }
    }
}
