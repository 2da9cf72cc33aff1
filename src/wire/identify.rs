//! Identifying: which format a record or a file is of, which session it holds, and which others that session is tied to.

use std::path::Path;

use crate::{
    json::{Fields, Raw},
    model::{Tie, TieKind},
    wire::{Failure, Graph, Traits},
};

/// How many entries at the beginning of a file tell its ties.
pub const TIED: u64 = 256;

/// Tells records and files of one format from all others.
pub trait Identify {
    /// Returns the traits that all records and all sessions of the format share.
    fn traits(&self) -> &'static Traits;

    /// Returns whether a record can only be of this format.
    fn knows(&self, record: &Fields<'_>) -> bool;

    /// Returns whether a record may be of this format though it lacks what the agent always writes.
    fn resembles(&self, _record: &Fields<'_>) -> bool {
        false
    }

    /// Returns the agent's id of the session, if this record says it.
    fn session(&self, record: Raw<'_>) -> Option<String>;

    /// Returns the agent's id of the session that a file holds, by its place and its first records.
    ///
    /// `mentions` tells whether bytes occur anywhere in the file.
    fn session_of(
        &self,
        _file: &Path,
        records: &[Raw<'_>],
        _mentions: &dyn Fn(&[u8]) -> bool,
    ) -> Option<String> {
        records.iter().find_map(|record| self.session(*record))
    }

    /// Returns the folder in which the session works, if this record says it.
    fn folder(&self, record: Raw<'_>) -> Option<String>;

    /// Returns whether the agent keeps such a file next to its sessions, and no session in it.
    fn accompanies(&self, _file: &Path) -> bool {
        false
    }

    /// Returns the ties that a state of a file shows: its first [`TIED`] entries are seen, their lines alone.
    fn ties(&self, _session: &str, _graph: &dyn Graph) -> Result<Vec<Tie>, Failure> {
        Ok(Vec::new())
    }

    /// Returns, of a record that was copied from another session, its name there.
    fn original_name(&self, _record: Raw<'_>, _other: &str) -> Option<String> {
        None
    }

    /// Returns the ordinal that a record has in its session, if the agent counts.
    fn ordinal(&self, _record: Raw<'_>) -> Option<u64> {
        None
    }

    /// Returns the part of a record that a copy keeps, where its line does not stay the same.
    fn copied_part<'a>(&self, _record: Raw<'a>) -> Option<Raw<'a>> {
        None
    }
}

/// Returns the tie of a sub-agent whose id comes after that of its parent.
pub(super) fn tie_of_sub_agent(session: &str) -> Option<Tie> {
    let (parent, _) = session.rsplit_once('/')?;
    Some(Tie { kind: TieKind::SubAgent, other: parent.to_owned() })
}
