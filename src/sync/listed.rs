//! Listed folders: some agents say in a list of theirs, and in no record, in which folder a session works.

use std::path::Path;

use crate::{disk, wire::Format};

/// Returns the folder that an agent's list names for the session of a file; nothing, if the list cannot be read.
pub(crate) fn listed_folder(format: &dyn Format, file: &Path) -> Option<String> {
    let list = disk::read(&format.index(file)?, disk::TEXT).ok()?;
    format.listed_folder(file, &list)
}
