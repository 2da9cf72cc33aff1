//! Layout: which files hold a session, how they are named and listed, and where one goes on from another.
//!
//! The rest of the program asks of a container only this: records in an order, each a [`Located`] line with the span of
//! its bytes, and a [`Tail`]; separators, lines and tail, joined, are the container's bytes. Every format of today keeps
//! records as lines of a stream, which [`jsonl::Reader`] yields. The other containers that agents use fit as well:
//!
//! ```text
//! segments    file 1  |meta|q1|a1|q2|a2|            a thread of Codex: built
//!                                ^ 812
//!             file 2  |meta {goes on from file 1, up to 812}|q3|a3|
//! ```
//!
//! A span is in one file of several. [`Files::base`] reads from which place of which file another one goes on,
//! [`Files::shelves`] tells where the others lie, and [`Files::file_name`] which of them the agent reads.
//!
//! ```text
//! compressed  |28 b5 2f fd ..  ..|                  a rollout of Codex, put away: built
//!     decoded |meta|q1|a1|
//! ```
//!
//! A span counts bytes of the decoded stream. The store keeps the file's own bytes once more, as they lie on the disk,
//! because no program packs the same lines into the same bytes again.
//!
//! ```text
//! document    {"sessionId": "u", "messages": [      Gemini CLI before its JSONL: not built
//!               {"id": "u1", ..}                    a record, over several physical lines
//!               ,                                   no record: an opaque line, stored once
//!               {"id": "g1", ..}                    a record
//!             ]}                                    the tail
//! ```
//!
//! A span is in the document, found by the scanner of [`crate::json`]. The bytes before the first record are an opaque
//! line, because a separator is white space only; a path passes opaque lines. The agent writes the whole document again
//! for each message: that makes the next generation, whose records are the same lines but for the new ones.
//!
//! ```text
//! rows        session ses_1 | message msg_1 | part prt_1 | part prt_2        opencode, OpenClaw 2026.9: not built
//!     stream  |ses_1|msg_1|prt_1|prt_2|             by time and id, a row a line: its own JSON, the row's columns in front
//! ```
//!
//! A span counts bytes of that stream, which no file holds: equal rows make equal bytes, and all are read in one
//! transaction. A row that changes in place is another line under the same name, and a row that is deleted is missing in
//! the next generation only, so that both states stay.
//!
//! The last two need one more method here, which yields the records of a container that is open, with [`jsonl::Reader`]
//! as the default of a format. The first bytes tell the kind of container (`{` and no record on the first
//! line, `SQLite format 3`), before a record tells the format. The contract of [`crate::model::line`], by which a
//! line end is the end of a record, then belongs to that reader alone.
//!
//! Invariant: nothing here looks whether anything is there.
//!
//! [`jsonl::Reader`]: crate::wire::jsonl::Reader
//! [`Located`]: crate::wire::jsonl::Located
//! [`Tail`]: crate::wire::jsonl::Tail

use std::path::{Path, PathBuf};

use crate::{json::Raw, model::Record, wire::Invalid};

/// Knows the files in which an agent keeps a session, from names and records.
pub trait Layout {
    /// Returns the agent's own number of a rotated file, if a file's name says that it is one.
    fn rotation(&self, _name: &str) -> Option<u64> {
        None
    }

    /// Returns the name under which the agent itself would archive its file, told from the names in the folder.
    fn archived_name(&self, _names: &[String]) -> Option<String> {
        None
    }

    /// Returns the file in which the agent lists the folders of its sessions, if it takes none that is not listed.
    fn index(&self, _file: &Path) -> Option<PathBuf> {
        None
    }

    /// Returns the folder of a session's file as that list names it, if it does.
    fn listed_folder(&self, _file: &Path, _index: &[u8]) -> Option<String> {
        None
    }

    /// Adds the folder of a session's file to that list and returns it, if it lacks the folder; `folders` are those that it may
    /// be.
    fn list_folder(
        &self,
        _file: &Path,
        _index: &[u8],
        _folders: &[&str],
    ) -> Result<Option<Vec<u8>>, Invalid> {
        Ok(None)
    }

    /// Returns the file in which the agent keeps titles of the sessions that lie where a file does, if it keeps them in one.
    fn title_list(&self, _file: &Path) -> Option<PathBuf> {
        None
    }

    /// Reads from what that file holds which session has which title; the last one of a session counts.
    fn titled(&self, _list: &Path, _held: &[u8]) -> Vec<[String; 2]> {
        Vec::new()
    }

    /// Returns where more files of the session of a file lie that hold no session themselves.
    fn annexes(&self, _file: &Path, _session: &str) -> Vec<Annex> {
        Vec::new()
    }

    /// Returns the session's file next to which another one is kept, if names tell; the folder of the sessions that share it, if
    /// they do.
    fn keeper(&self, _file: &Path) -> Option<PathBuf> {
        None
    }

    /// Returns whether a file kept next to a session holds how the agent goes on in it, in a shape of the agent's own.
    fn is_state(&self, _file: &Path) -> bool {
        false
    }

    /// Returns whether a record is one with which each file of the agent must begin.
    fn opens_file(&self, _record: &Record) -> bool {
        false
    }

    /// Returns why the agent does not resume a file whose first record is this one, if it does not.
    fn unresumed(&self, _first: Option<&Record>) -> Option<&'static str> {
        None
    }
}

/// Knows the files of a session whose agent goes on in another one, which of them it reads, and how it is started in one.
pub trait Files {
    /// Returns, of the first record of a file, where the history begins if that is another file.
    fn base(&self, _record: Raw<'_>) -> Option<Base> {
        None
    }

    /// Returns the parts of a file's name, if the agent keeps a session in several files.
    fn file_name(&self, _name: &str) -> Option<FileName> {
        None
    }

    /// Returns the folders in which other files of the session of a file may lie.
    fn shelves(&self, _file: &Path) -> Vec<Shelf> {
        Vec::new()
    }

    /// Returns where another file of a session belongs whose file is where its agent reads it, if the agent goes on in
    /// files.
    fn next_file(&self, _file: &Path, _name: &FileName) -> Option<PathBuf> {
        None
    }

    /// Returns the folder in which the agent keeps its own index of sessions, which names the file of each.
    fn home(&self, _file: &Path) -> Option<PathBuf> {
        None
    }

    /// Returns the file in an agent's own folder of which each line belongs to one session.
    fn shared_list(&self, _root: &Path) -> Option<PathBuf> {
        None
    }

    /// Returns the session that a line of that file belongs to, and the number by which the lines are in order.
    fn owner(&self, _line: Raw<'_>) -> Option<(String, u64)> {
        None
    }

    /// Returns the command that starts the agent in a session whose file is where the agent keeps it.
    fn resume(&self, _session: &str, _file: &Path) -> Option<Vec<String>> {
        None
    }
}

/// Returns a command that names a session by its id. An id comes from a file: one that could be read as an option, or that
/// names a part of a session, starts nothing.
pub(super) fn resuming(words: [&str; 2], session: &str) -> Option<Vec<String>> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_id =
        session.starts_with(|c: char| c.is_ascii_alphanumeric()) && session.chars().all(is_plain);
    is_id.then(|| words.into_iter().chain([session]).map(str::to_owned).collect())
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

/// The parts of a file's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileName {
    /// When the file was begun: the agent reads the session's newest one.
    pub begun: String,
    /// The file's own id.
    pub id: String,
    /// The session's id.
    pub session: String,
}

/// Where more files of a session lie: below a folder, by names alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annex {
    /// The folder below which they lie.
    pub from: PathBuf,
    /// Their own folder, below that one.
    pub folder: PathBuf,
    /// The name of the one that is meant; none if all files of the folder are.
    pub name: Option<String>,
    /// Whether they lie away from the session's file, so that only the agent's own folders can hold them.
    pub is_apart: bool,
    /// Which sessions they belong to.
    pub share: Share,
}

impl Annex {
    /// Returns the path of the one that is meant, or of the folder.
    pub fn path(&self) -> PathBuf {
        let folder = self.from.join(&self.folder);
        self.name.as_ref().map_or(folder.clone(), |name| folder.join(name))
    }
}

/// Which sessions a file next to a session belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Share {
    /// The session alone.
    #[default]
    Session,
    /// All sessions of a project: the newest copy counts.
    Project,
    /// Each line belongs to the session that [`Files::owner`] reads from it.
    Lines,
}

/// A folder in which an agent keeps files of its sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shelf {
    /// The folder.
    pub path: PathBuf,
    /// How many folders deep files may lie in it: folders named by year, month and day.
    pub depth: usize,
}
