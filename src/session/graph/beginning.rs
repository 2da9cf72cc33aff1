//! Where a history begins, and why it may not be read from there.

use std::{ffi::OsStr, fmt, os::unix::ffi::OsStrExt, path::Path};

use crate::model::{Place, Position};

/// The folder in the names of parts of other sessions' files, which were taken in with a session. No file is there.
pub(crate) const BASES: &str = "bases";

/// Over how many files a history is followed.
pub(crate) const FOLLOWED: usize = 1000;

/// Returns whether a place is the name of such a part.
pub(crate) fn is_adopted(place: &Place) -> bool {
    matches!(place, Place::Store(path) if Path::new(OsStr::from_bytes(path)).starts_with(BASES))
}

/// Where a history begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Begins {
    /// With the first entry.
    Here,
    /// In another file of the session, which goes as far as this position.
    At(Position),
    /// Where it cannot be read.
    Elsewhere(Elsewhere),
}

/// The beginning of a history that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// The id of the file that holds it.
    pub file: String,
    /// The ordinal before which the history in that file ends.
    pub ordinal: Option<u64>,
    /// Why it is not read.
    pub gap: Gap,
}

/// Why the beginning of a history is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gap {
    /// It belongs to this session, from which the other was forked.
    Parent(String),
    /// The file is not there.
    Missing,
    /// The file does not reach to the place that is named.
    Short,
    /// Files go on from each other in a circle, or too many of them lead there.
    Endless,
}

impl Gap {
    /// Returns its name, for programs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Parent(_) => "parent",
            Self::Missing => "missing",
            Self::Short => "short",
            Self::Endless => "endless",
        }
    }
}

impl Elsewhere {
    /// Returns the session to which that history belongs, if it is another one.
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
