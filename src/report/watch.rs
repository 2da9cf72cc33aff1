//! Watching: what came of the files of agents while they were watched.

use std::path::PathBuf;

use serde::Serialize;

use super::{
    import::{Imported, Quirk},
    notice::Notice,
    shape::{report, some_path},
};
use crate::{model::OperationNumber, session::Session};

/// The folders that are watched.
#[derive(Clone, Debug, Serialize)]
pub struct Watching {
    /// The folders.
    pub folders: Vec<String>,
    /// Why the system does not tell of all changes in them, if it does not.
    pub problem: Option<String>,
}

report!(Watching, "watching");

/// A change of a session that was watched.
#[derive(Clone, Debug, Serialize)]
pub struct Watched {
    /// The session.
    #[serde(flatten)]
    pub session: Session,
    /// Its title.
    pub title: Option<String>,
    /// What became of it.
    pub change: Becoming,
    /// How many entries are new.
    pub entries: u64,
    /// How many files that lie next to its own are new or changed.
    pub sidecars: u64,
    /// How many bytes were read in.
    pub bytes: u64,
    /// The operation that took them in.
    pub operation: Option<OperationNumber>,
    /// The branch that holds where `main` stood, if a command had moved it.
    pub left: Option<String>,
    /// The file that was emptied or deleted.
    #[serde(serialize_with = "some_path")]
    pub path: Option<PathBuf>,
}

/// What became of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Becoming {
    /// It was not there before.
    New,
    /// Its file goes on.
    Grown,
    /// Its file is another one, which does not go on from what was read before.
    Rewritten,
    /// Its file holds no session any more.
    Emptied,
    /// Its file was deleted.
    Deleted,
}

report!(Watched, "watched");

impl Watched {
    /// Returns the change that an import made.
    pub fn imported(done: &Imported, title: Option<String>) -> Self {
        let is_rewritten = done.oddities.iter().any(|oddity| oddity.quirk == Quirk::Rewritten)
            || done
                .notices
                .iter()
                .any(|notice| matches!(notice, Notice::Followed { is_rewritten: true, .. }));
        Self {
            session: done.session.clone(),
            title,
            change: match (done.new, is_rewritten) {
                (true, _) => Becoming::New,
                (false, true) => Becoming::Rewritten,
                (false, false) => Becoming::Grown,
            },
            entries: done.entries,
            sidecars: done.sidecars,
            bytes: done.bytes,
            operation: Some(done.operation),
            left: done.left.clone(),
            path: None,
        }
    }

    /// Returns the change of a session whose file was emptied or deleted.
    pub fn gone(session: Session, title: Option<String>, change: Becoming, path: PathBuf) -> Self {
        let path = Some(path);
        let (entries, sidecars, bytes, operation, left) = (0, 0, 0, None, None);
        Self { session, title, change, entries, sidecars, bytes, operation, left, path }
    }
}
