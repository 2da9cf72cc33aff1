//! Appending: the entries that were added or already existed.

use serde::Serialize;

use super::{done::Done, shape::report};
use crate::model::hint::{Hint, Line};
use crate::model::{CheckpointNumber, EntryId, EntryNumber, OperationNumber};

/// The result of an append.
#[derive(Clone, Debug, Default)]
pub struct Appended {
    /// What the change did.
    pub done: Done,
    /// The entries, one for each draft, in order.
    pub entries: Vec<AppendedEntry>,
    /// The branch that has the entries, if another command moved the session away from the position they answer.
    pub aside: Option<String>,
    /// The checkpoints before new turns.
    pub checkpoints: Vec<CheckpointNumber>,
    /// The entries that were truncated.
    pub cut: Vec<EntryId>,
}

impl Appended {
    /// Returns the hint to read the first truncated result.
    pub fn hints(&self) -> Vec<Hint> {
        let results = match self.cut.len() {
            1 => "1 result is cut; its full text is kept".to_owned(),
            n => format!("{n} results are cut; their full text is kept"),
        };
        let show = |&entry: &EntryId| {
            let show = Line::about("show").entry(entry).flag("hidden");
            show.to(format!("{results}; to read what is hidden"))
        };
        self.cut.first().map(show).into_iter().collect()
    }
}

/// An entry that an append added or found.
#[derive(Clone, Debug)]
pub struct AppendedEntry {
    /// Its number.
    pub n: EntryNumber,
    /// Its id.
    pub id: EntryId,
    /// The name of its record, if it has one.
    pub uuid: Option<String>,
}

/// An entry, and the operation that added it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct NewEntry<'a> {
    /// The entry.
    pub entry: EntryId,
    /// The id in the agent's own record.
    pub uuid: Option<&'a str>,
    /// The number of the new operation; `null` if there was nothing to change.
    pub operation: Option<OperationNumber>,
    /// The id of the call; the key is present only with `--call`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<&'a str>,
}

report!(NewEntry<'_>, "entry");
