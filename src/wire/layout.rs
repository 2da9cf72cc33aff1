//! Layout: which files contain a session, what they are called, where the agent lists them, and how one file continues another.
//!
//! The rest of the program needs only this from a container: records in order, each a [`Located`] line with its byte span,
//! and a [`Tail`]; separators, lines and tail, concatenated, are the container's bytes. All current formats store records as
//! lines of a stream, which [`jsonl::Reader`] yields. The other containers that agents use fit too:
//!
//! ```text
//! segments    file 1  |meta|q1|a1|q2|a2|            a Codex thread: implemented
//!                                ^ 812
//!             file 2  |meta {continues file 1 at offset 812}|q3|a3|
//! ```
//!
//! A span is within one of several files. [`Files::base`] reads which file another one continues and at which offset,
//! [`Files::shelves`] lists the folders of the other files, and [`Files::file_name`] decides which one the agent reads.
//!
//! ```text
//! compressed  |28 b5 2f fd ..  ..|                  an archived Codex rollout: implemented
//!     decoded |meta|q1|a1|
//! ```
//!
//! A span counts bytes of the decoded stream. The store also keeps the compressed bytes exactly as they are on disk, because
//! another compressor would produce different bytes from the same lines.
//!
//! ```text
//! document    {"sessionId": "u", "messages": [      Gemini CLI before its JSONL: not implemented
//!               {"id": "u1", ..}                    a record, over several physical lines
//!               ,                                   not a record: an opaque line, stored once
//!               {"id": "g1", ..}                    a record
//!             ]}                                    the tail
//! ```
//!
//! A span is within the document, found by the scanner of [`crate::json`]. The bytes before the first record are an opaque
//! line, because a separator may only be white space; a path skips opaque lines. The agent rewrites the whole document for
//! each message. Each rewrite is the next generation, with the same lines plus the new ones.
//!
//! ```text
//! rows        session ses_1 | message msg_1 | part prt_1 | part prt_2        opencode, OpenClaw 2026.9: not implemented
//!     stream  |ses_1|msg_1|prt_1|prt_2|             by time and id, a row a line: the row's columns, then its own JSON
//! ```
//!
//! A span counts bytes of that stream, which is not in any file. Equal rows yield equal bytes, and all rows are read in one
//! transaction. A row changed in place is another line with the same name. A deleted row is missing only from the next
//! generation, so both states are preserved.
//!
//! The last two containers need one more method here, which yields the records of an open container; its default would be
//! [`jsonl::Reader`]. The first bytes of a file reveal the kind of container (`{` without a record on the first line, or
//! `SQLite format 3`) before a record reveals the format. The rule of [`crate::model::line`] that a line end is the end of a
//! record would then apply to that reader alone.
//!
//! Invariant: nothing here reads the file system.
//!
//! [`jsonl::Reader`]: crate::wire::jsonl::Reader
//! [`Located`]: crate::wire::jsonl::Located
//! [`Tail`]: crate::wire::jsonl::Tail

use std::path::{Path, PathBuf};

use crate::{json::Raw, model::Record, wire::Invalid};

/// The files where an agent stores a session, derived from names and records.
pub trait Layout {
    /// Returns the agent's own number of a rotated file, if the name is one.
    fn rotation(&self, _name: &str) -> Option<u64> {
        None
    }

    /// Returns the name the agent itself would give its file when archiving it, given the names in the folder.
    fn archived_name(&self, _names: &[String]) -> Option<String> {
        None
    }

    /// Returns the file where the agent lists the folders of its sessions, if it ignores folders that are not listed.
    fn index(&self, _file: &Path) -> Option<PathBuf> {
        None
    }

    /// Returns the folder of a session's file as spelled in that list, if it is listed.
    fn listed_folder(&self, _file: &Path, _index: &[u8]) -> Option<String> {
        None
    }

    /// Adds the folder of a session's file to that list and returns it, unless it is already listed. `folders` are the
    /// candidates.
    fn list_folder(
        &self,
        _file: &Path,
        _index: &[u8],
        _folders: &[&str],
    ) -> Result<Option<Vec<u8>>, Invalid> {
        Ok(None)
    }

    /// Returns the file with the titles of the sessions in this file's folder, if the agent keeps titles in one file, and how to
    /// read it.
    fn title_list(&self, _file: &Path) -> Option<(PathBuf, ReadTitles)> {
        None
    }

    /// Returns the places of further files that belong to a session but contain none.
    fn annexes(&self, _file: &Path, _session: &str) -> Vec<Annex> {
        Vec::new()
    }

    /// Returns the session's file next to which another file is kept, or the folder of the sessions that share it; None if names
    /// do not reveal it.
    fn keeper(&self, _file: &Path) -> Option<PathBuf> {
        None
    }

    /// Returns true if a file next to a session stores how the agent resumes it, in a shape of the agent's own.
    fn is_state(&self, _file: &Path) -> bool {
        false
    }

    /// Returns true if each file of the agent must begin with a record like this one.
    fn opens_file(&self, _record: &Record) -> bool {
        false
    }

    /// Returns why the agent does not resume a file with this first record; None if it does.
    fn unresumed(&self, _first: Option<&Record>) -> Option<&'static str> {
        None
    }
}

/// The files of a session that an agent spreads over several: which one it reads, and how to start the agent in one.
pub trait Files {
    /// Returns true if the path of a file in the agent's folders shows that it belongs to this session.
    fn is_file_of(&self, _file: &Path, _session: &str) -> bool {
        false
    }

    /// Returns the folder of a session's sub-agent files, derived from the path of its own file. None if the agent calls the hook
    /// for each sub-agent.
    fn sub_agents(&self, _file: &Path) -> Option<PathBuf> {
        None
    }

    /// Returns the file and offset at which the history begins, given the first record of a file; None if it begins in this file.
    fn base(&self, _record: Raw<'_>) -> Option<Base> {
        None
    }

    /// Returns the parts of a file name, if the agent stores a session in several files.
    fn file_name(&self, _name: &str) -> Option<FileName> {
        None
    }

    /// Returns the folders that may contain other files of the session.
    fn shelves(&self, _file: &Path) -> Vec<Shelf> {
        Vec::new()
    }

    /// Returns the path at which the agent would read another file of a session; None if the agent does not continue sessions in
    /// new files.
    fn next_file(&self, _file: &Path, _name: &FileName) -> Option<PathBuf> {
        None
    }

    /// Returns the folder with the agent's own index of sessions, which names the file of each.
    fn home(&self, _file: &Path) -> Option<PathBuf> {
        None
    }

    /// Returns the file in an agent's folder in which each line belongs to one session.
    fn shared_list(&self, _root: &Path) -> Option<PathBuf> {
        None
    }

    /// Returns the session that a line of that file belongs to, and the number that orders the lines.
    fn owner(&self, _line: Raw<'_>) -> Option<(String, u64)> {
        None
    }

    /// Returns the command that resumes a session whose file is where the agent keeps it.
    fn resume(&self, _session: &str, _file: &Path) -> Option<Vec<String>> {
        None
    }
}

/// Reads pairs of session and title from a list of titles, given its path and its bytes. The last title of a session wins.
pub type ReadTitles = fn(&Path, &[u8]) -> Vec<[String; 2]>;

/// Returns a command that names a session by its id; None for an id that could be read as an option or that names a part of a
/// session, because ids come from files.
pub(super) fn resuming(words: [&str; 2], session: &str) -> Option<Vec<String>> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_id =
        session.starts_with(|c: char| c.is_ascii_alphanumeric()) && session.chars().all(is_plain);
    is_id.then(|| words.into_iter().chain([session]).map(str::to_owned).collect())
}

/// The point in another file at which a file's history begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// The id of that file, as in [`FileName`].
    pub file: String,
    /// How many bytes of it belong to the history.
    pub bytes: Option<u64>,
    /// The ordinal at which the history in it ends, exclusive.
    pub ordinal: Option<u64>,
    /// The session of that file, if the record names another one.
    pub session: Option<String>,
}

/// The parts of a file name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileName {
    /// When the file was created. The agent reads the session's newest file.
    pub begun: String,
    /// The file's own id.
    pub id: String,
    /// The session's id.
    pub session: String,
}

/// A place with more files of a session, described by names alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annex {
    /// The folder below which they are.
    pub from: PathBuf,
    /// Their folder, relative to that one.
    pub folder: PathBuf,
    /// The name of the file; None means all files of the folder.
    pub name: Option<String>,
    /// True if they are away from the session's file, so that only the agent's own folders can contain them.
    pub is_apart: bool,
    /// Which sessions they belong to.
    pub share: Share,
}

impl Annex {
    /// Returns the path of the file, or of the folder.
    pub fn path(&self) -> PathBuf {
        let folder = self.from.join(&self.folder);
        self.name.as_ref().map_or(folder.clone(), |name| folder.join(name))
    }
}

/// Which sessions share a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Share {
    /// One session.
    #[default]
    Session,
    /// All sessions of a project. The newest copy wins.
    Project,
    /// Each line belongs to the session that [`Files::owner`] returns for it.
    Lines,
}

/// A folder where an agent keeps session files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shelf {
    /// The folder.
    pub path: PathBuf,
    /// How many levels of folders below it to search, for folders named by year, month and day.
    pub depth: usize,
}
