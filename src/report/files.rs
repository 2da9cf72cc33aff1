//! Files of a session: their generations, the files that were set aside, and rebuilt rows.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::shape::{path, report, some_path};
use crate::model::{Digest, GenerationNumber, OperationNumber, SessionName};

/// A generation that a session has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Held {
    /// Its number.
    pub generation: GenerationNumber,
    /// The current path of the file; none if the session was changed without a file.
    #[serde(serialize_with = "some_path")]
    pub file: Option<PathBuf>,
    /// Its number of entries.
    pub entries: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// The operation that began it.
    pub operation: OperationNumber,
    /// The size in bytes of the compressed file that contained it.
    pub container: Option<u64>,
    /// Whether the current branch is in it.
    #[serde(rename = "current")]
    pub is_current: bool,
}

/// A file that was set aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rotated {
    /// The operation that set it aside.
    pub operation: OperationNumber,
    /// The command of that operation.
    pub command: &'static str,
    /// Its path.
    #[serde(serialize_with = "path")]
    pub path: PathBuf,
    /// Its length when it was set aside.
    #[serde(rename = "bytes")]
    pub length: u64,
    /// Its current state.
    pub state: RotatedState,
    /// Why it cannot be read, if it cannot.
    pub why: Option<String>,
}

/// The state of a file that was set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RotatedState {
    /// Its content is unchanged, according to the hash.
    Whole,
    /// It was deleted; its content is in the store.
    Deleted,
    /// A program that still had it open appended records; the next change imports them.
    Grown,
    /// Its content is different.
    Changed,
    /// The rotation was interrupted; the next change completes it.
    Pending,
    /// It cannot be read.
    Unread,
}

impl RotatedState {
    /// Returns the word used in every output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Deleted => "deleted",
            Self::Grown => "grown",
            Self::Changed => "changed",
            Self::Pending => "pending",
            Self::Unread => "unread",
        }
    }
}

/// The result of a rebuild.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rebuilt {
    /// The agent's id of the session.
    pub session: String,
    /// Whether the rows were already equal.
    pub equal: bool,
    /// The number of records.
    pub records: u64,
    /// The digest of the current rows.
    pub digest: Digest,
}

report!(Held, "generation");
report!(Rotated, "rotation");
report!(Rebuilt, "rebuilt");

/// An exported file.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Exported<'a> {
    /// The agent's id of the session.
    pub session: &'a str,
    /// The file.
    #[serde(serialize_with = "path")]
    pub path: &'a Path,
    /// Its size in bytes.
    pub bytes: u64,
}

report!(Exported<'_>, "export");

/// A session file that could be imported.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FoundFile<'a> {
    /// The session that it contains.
    #[serde(flatten)]
    pub session: &'a SessionName,
    /// Where it is.
    #[serde(serialize_with = "path")]
    pub path: &'a Path,
    /// Its size in bytes.
    pub bytes: u64,
}

report!(FoundFile<'_>, "source");
