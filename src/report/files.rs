//! Files of a session: the states that it holds, the files that were set aside, and the rows derived from them.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::shape::{path, report, some_path};
use crate::model::{Digest, GenerationNumber, OperationNumber, SessionName};

/// A state of a file that a session holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Held {
    /// Its number.
    pub generation: GenerationNumber,
    /// The file, wherever it is now; none if the session was changed without one.
    #[serde(serialize_with = "some_path")]
    pub file: Option<PathBuf>,
    /// How many entries it has.
    pub entries: u64,
    /// How many bytes.
    pub bytes: u64,
    /// The operation that began it.
    pub operation: OperationNumber,
    /// How many bytes the compressed file has that held it.
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
    /// Where it is.
    #[serde(serialize_with = "path")]
    pub path: PathBuf,
    /// Its length then.
    #[serde(rename = "bytes")]
    pub length: u64,
    /// Its state by a look at it.
    pub state: RotatedState,
    /// Why it cannot be read, if that is its state.
    pub why: Option<String>,
}

/// The state of a file that was set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RotatedState {
    /// It holds its old content, by hash.
    Whole,
    /// Somebody deleted it; its content is in the store.
    Deleted,
    /// A program that still held it open has written more; the next change takes in the new records.
    Grown,
    /// It holds other content.
    Changed,
    /// The renaming was cut short; the next change carries it out.
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
    /// Whether the rows were equal already.
    pub equal: bool,
    /// How many records there are.
    pub records: u64,
    /// The digest of the rows as they are now.
    pub digest: Digest,
}

report!(Held, "generation");
report!(Rotated, "rotation");
report!(Rebuilt, "rebuilt");

/// A file that was written.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Exported<'a> {
    /// The agent's id of the session.
    pub session: &'a str,
    /// The file.
    #[serde(serialize_with = "path")]
    pub path: &'a Path,
    /// How many bytes it has.
    pub bytes: u64,
}

report!(Exported<'_>, "export");

/// A session file that could be taken in.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FoundFile<'a> {
    /// The session that it holds.
    #[serde(flatten)]
    pub session: &'a SessionName,
    /// Where it is.
    #[serde(serialize_with = "path")]
    pub path: &'a Path,
    /// How long it is.
    pub bytes: u64,
}

report!(FoundFile<'_>, "source");
