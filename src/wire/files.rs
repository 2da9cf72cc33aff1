//! Sessions that an agent keeps in several files: what a name says, where the files lie, where one goes on
//! from another, and how one was left for the next.

use std::path::PathBuf;

use super::Graph;

/// What stands before the first entry of a file.
pub enum Before<'g> {
    /// Nothing: the history begins here.
    Nothing,
    /// Another file of the session, as far as this one goes on from it.
    File(&'g dyn Graph),
    /// A history that cannot be read here.
    Unread,
}

/// Where a file says that its history begins: at a place in another file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// The id of that file, as [`FileName`] has it.
    pub file: String,
    /// How many bytes of that file belong to the history.
    pub bytes: Option<u64>,
    /// The ordinal before which the history in that file ends.
    pub ordinal: Option<u64>,
    /// The session of that file, if the record says that it is another one.
    pub session: Option<String>,
}

/// What the name of a file says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileName {
    /// When the file was begun: the agent reads the session's newest one.
    pub begun: String,
    /// The file's own id.
    pub id: String,
    /// The session's id.
    pub session: String,
}

/// A folder in which an agent keeps files of its sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shelf {
    /// The folder.
    pub path: PathBuf,
    /// How many folders deep files may lie in it: folders named by year, month and day.
    pub depth: usize,
}

/// How an agent left a state of its file for the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Departure {
    /// It went back to a checkpoint, by its own number.
    Revert(String),
    /// It went back to a checkpoint with a message from its later self.
    Mail(String),
    /// It put a summary in the place of what was said.
    Compaction,
    /// It began anew.
    Clear,
}

impl Departure {
    /// Returns its name, for programs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Revert(_) => "revert",
            Self::Mail(_) => "mail",
            Self::Compaction => "compaction",
            Self::Clear => "clear",
        }
    }

    /// Returns the agent's own number of the checkpoint to which it went back.
    pub fn own(&self) -> Option<&str> {
        match self {
            Self::Revert(own) | Self::Mail(own) => Some(own),
            Self::Compaction | Self::Clear => None,
        }
    }
}
