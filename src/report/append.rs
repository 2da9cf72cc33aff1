//! Appending: the entries that were made or met.

use crate::{model::EntryId, report::Notice};

/// What an append did.
#[derive(Clone, Debug, Default)]
pub struct Appended {
    /// The operation; none if every record was known already.
    pub operation: Option<u64>,
    /// The entries, one for each draft, in order.
    pub entries: Vec<AppendedEntry>,
    /// The checkpoints that were given to turns.
    pub checkpoints: Vec<u64>,
    /// The entries that were cut.
    pub cut: Vec<EntryId>,
    /// What was noticed on the way.
    pub notices: Vec<Notice>,
}

/// An entry that an append made, or met.
#[derive(Clone, Debug)]
pub struct AppendedEntry {
    /// Its number.
    pub n: u64,
    /// Its id.
    pub id: EntryId,
    /// Its record's name, where records have one.
    pub uuid: Option<String>,
}
