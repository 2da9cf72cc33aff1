//! What a change did, whichever verb made it.

use std::path::PathBuf;

use serde::Serialize;

use super::{notice::Notice, shape::some_path};
use crate::model::OperationNumber;

/// What a change did.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Done {
    /// The number of the new operation; `null` if there was nothing to change.
    pub operation: Option<OperationNumber>,
    /// The new path of the previous file, if undertext renamed it and wrote a new one.
    #[serde(serialize_with = "some_path")]
    pub rotated: Option<PathBuf>,
    /// The path of the agent's own file, if undertext wrote to the file.
    #[serde(serialize_with = "some_path")]
    pub written: Option<PathBuf>,
    /// The notices of the change.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}
