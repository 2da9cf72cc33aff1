//! Sessions: made, hidden, attached to a file, and let go.

use std::path::PathBuf;

use crate::{report::Notice, session::Session};

/// A session that was made.
#[derive(Clone, Debug)]
pub struct Created {
    /// The session.
    pub session: Session,
    /// The operation.
    pub operation: u64,
    /// Its live file, if it has one.
    pub live: Option<PathBuf>,
}

/// What attaching or detaching did.
#[derive(Clone, Debug)]
pub struct Attached {
    /// The operation; none if it was so already.
    pub operation: Option<u64>,
    /// The file.
    pub path: PathBuf,
    /// The branch that holds where `main` stood, if a command had put it elsewhere than where the agent would resume.
    pub left: Option<String>,
    /// What was noticed on the way.
    pub notices: Vec<Notice>,
}

/// What a changing verb did.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The session.
    pub session: Session,
    /// The operation's number.
    pub operation: u64,
    /// What was noticed on the way.
    pub notices: Vec<Notice>,
}
