//! Files of a session: their generations, the files that were set aside, and rebuilt rows.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::shape::{named, path, report, some_path};
use crate::model::{Digest, GenerationNumber, OperationNumber, SessionName};

/// A generation that a session has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Held {
    /// The number of the state.
    pub generation: GenerationNumber,
    /// The path of the file; `null` if the session was changed without a file.
    #[serde(serialize_with = "some_path")]
    pub file: Option<PathBuf>,
    /// The number of entries.
    pub entries: u64,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The operation in which this state began.
    pub operation: OperationNumber,
    /// The size of the compressed file in bytes, if the state came from one.
    pub container: Option<u64>,
    /// Whether the current branch is in this state.
    #[serde(rename = "current")]
    pub is_current: bool,
}

/// A file that was set aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rotated {
    /// The operation that set the file aside.
    pub operation: OperationNumber,
    /// The command of that operation.
    pub command: &'static str,
    /// The path of the file.
    #[serde(serialize_with = "path")]
    pub path: PathBuf,
    /// The size of the file in bytes when it was set aside.
    #[serde(rename = "bytes")]
    pub length: u64,
    /// The state of the file.
    pub state: RotatedState,
    /// Why the file cannot be read.
    pub why: Option<String>,
}

/// The state of a file that was set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotatedState {
    /// The file is unchanged.
    Whole,
    /// The file was deleted; the store still has the contents.
    Deleted,
    /// A program that had the file open wrote more, and the next change will import it.
    Grown,
    /// The file has other contents.
    Changed,
    /// The next change will set the file aside.
    Pending,
    /// The file cannot be read.
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
    /// The session.
    pub session: String,
    /// Whether the old rows were correct.
    pub equal: bool,
    /// The number of records.
    pub records: u64,
    /// A digest of the new rows.
    pub digest: Digest,
}

report!(Held, "generation");
report!(Rotated, "rotation");
named!(RotatedState);
report!(Rebuilt, "rebuilt");

/// An exported file.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Exported<'a> {
    /// The session.
    pub session: &'a str,
    /// The file.
    #[serde(serialize_with = "path")]
    pub path: &'a Path,
    /// The size of the file in bytes.
    pub bytes: u64,
}

report!(Exported<'_>, "export");

/// A session file that could be imported.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FoundFile<'a> {
    /// The session.
    #[serde(flatten)]
    pub session: &'a SessionName,
    /// The file.
    #[serde(serialize_with = "path")]
    pub path: &'a Path,
    /// The size of the file in bytes.
    pub bytes: u64,
}

report!(FoundFile<'_>, "source");
