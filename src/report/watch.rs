//! Watching: what happened to the agents' files while they were watched.

use std::path::PathBuf;

use serde::Serialize;

use super::{
    import::{Imported, QuirkKind},
    notice::Notice,
    shape::{report, some_path},
};
use crate::{model::OperationNumber, session::Session};

/// The folders that are watched.
#[derive(Clone, Debug, Serialize)]
pub struct Watching {
    /// The folders.
    pub folders: Vec<String>,
    /// Why the system does not report all changes in them, if so.
    pub problem: Option<String>,
}

report!(Watching, "watching");

/// A change to a watched session.
#[derive(Clone, Debug, Serialize)]
pub struct Watched {
    /// The session.
    #[serde(flatten)]
    pub session: Session,
    /// The title of the session.
    pub title: Option<String>,
    /// What happened to the session.
    pub change: Becoming,
    /// The number of new entries.
    pub entries: u64,
    /// The number of new or changed sidecars.
    pub sidecars: u64,
    /// The number of imported bytes.
    pub bytes: u64,
    /// The operation that imported this.
    pub operation: Option<OperationNumber>,
    /// The branch that preserves the previous position of `main`, if a command had moved it.
    pub left: Option<String>,
    /// The file that was emptied or deleted.
    #[serde(serialize_with = "some_path")]
    pub path: Option<PathBuf>,
}

/// What happened to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Becoming {
    /// The session is new.
    New,
    /// Its file grew.
    Grown,
    /// Its file was replaced by one that does not continue what was read before.
    Rewritten,
    /// Its file no longer contains a session.
    Emptied,
    /// Its file was deleted.
    Deleted,
}

report!(Watched, "watched");

impl Watched {
    /// Returns the change for an import.
    pub fn imported(done: &Imported, title: Option<String>) -> Self {
        let is_rewritten = done.oddities.iter().any(|oddity| oddity.kind == QuirkKind::Rewritten)
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

    /// Returns the change for a session whose file was emptied or deleted.
    pub fn gone(session: Session, title: Option<String>, change: Becoming, path: PathBuf) -> Self {
        let path = Some(path);
        let (entries, sidecars, bytes, operation, left) = (0, 0, 0, None, None);
        Self { session, title, change, entries, sidecars, bytes, operation, left, path }
    }
}
