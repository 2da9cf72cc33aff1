//! Identifies the format of a record or file, the session in it, and the other sessions it is tied to.

use std::path::Path;

use crate::{
    json::{Fields, Raw},
    model::{Tie, TieKind},
    wire::{Failure, Graph, Traits},
};

/// How many entries at the beginning of a file are searched for ties.
pub const TIED: u64 = 256;

/// Distinguishes the records and files of one format from all others.
pub trait Identify {
    /// Returns the traits of the format.
    fn traits(&self) -> &'static Traits;

    /// Returns true if a record can only be of this format.
    fn knows(&self, record: &Fields<'_>) -> bool;

    /// Returns true if a record may be of this format although it lacks fields that the agent always writes.
    fn resembles(&self, _record: &Fields<'_>) -> bool {
        false
    }

    /// Returns the agent's id of the session, if this record contains it.
    fn session(&self, record: Raw<'_>) -> Option<String>;

    /// Returns the agent's id of the session in a file, from the file's path and first records.
    ///
    /// `mentions` returns true if the file contains the given bytes anywhere.
    fn session_of(
        &self,
        _file: &Path,
        records: &[Raw<'_>],
        _mentions: &dyn Fn(&[u8]) -> bool,
    ) -> Option<String> {
        records.iter().find_map(|record| self.session(*record))
    }

    /// Returns the session's working folder, if this record contains it.
    fn folder(&self, record: Raw<'_>) -> Option<String>;

    /// Returns true if the agent keeps such a file next to its sessions and it contains no session.
    fn accompanies(&self, _file: &Path) -> bool {
        false
    }

    /// Returns the ties of a generation to other sessions. It sees only the lines of the first [`TIED`] entries.
    fn ties(&self, _session: &str, _graph: &dyn Graph) -> Result<Vec<Tie>, Failure> {
        Ok(Vec::new())
    }

    /// Returns the name in `other` of a record that was copied from there.
    fn original_name(&self, _record: Raw<'_>, _other: &str) -> Option<String> {
        None
    }

    /// Returns the record's ordinal in its session, if the agent numbers its records.
    fn ordinal(&self, _record: Raw<'_>) -> Option<u64> {
        None
    }

    /// Returns the part of a record that a copy preserves, if the agent changes the rest of the line.
    fn copied_part<'a>(&self, _record: Raw<'a>) -> Option<Raw<'a>> {
        None
    }
}

/// Returns the tie of a sub-agent whose id is the parent's id, a slash and its own.
pub(super) fn tie_of_sub_agent(session: &str) -> Option<Tie> {
    let (parent, _) = session.rsplit_once('/')?;
    Some(Tie { kind: TieKind::SubAgent, other: parent.to_owned() })
}
