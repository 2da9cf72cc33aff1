//! Walk: the head at which an agent resumes, paths to entries, the part of a path that is sent, and departures.

use crate::{
    model::{EntryNumber, EntrySet, Record},
    wire::{Failure, Graph},
};

/// How many of the last entries of a path to read first when looking for a known one.
const STEP: usize = 64;

/// Finds paths through a session exactly as the agent would.
pub trait Walk {
    /// Returns the entry at which the agent would resume.
    fn head(&self, graph: &dyn Graph) -> Result<Option<EntryNumber>, Failure>;

    /// Returns the last `limit` entries of the path from the beginning to a head, as the agent would read it, across compactions.
    fn path(&self, graph: &dyn Graph, head: EntryNumber, limit: usize) -> Result<Path, Failure>;

    /// Returns [`Walk::path`] for many heads of one graph. Entries read for one head are reused for the next.
    fn paths<'g>(&'g self, graph: &'g dyn Graph) -> Result<Paths<'g>, Failure> {
        Ok(Box::new(move |head, limit| self.path(graph, head, limit)))
    }

    /// Returns the entries of a path, or of its end, that the agent would send: after a compaction the summary, the kept messages
    /// and the rest.
    fn context(&self, graph: &dyn Graph, path: &[EntryNumber]) -> Result<Sent, Failure>;

    /// Returns which of the last entries of a path are settled. The path before a settled entry, and the part of it that is sent,
    /// depend only on the file up to there, provided names resolve to the same entries and no later entry affects it.
    fn settled(
        &self,
        _graph: &dyn Graph,
        _last: &[EntryNumber],
    ) -> Result<Vec<EntryNumber>, Failure> {
        Ok(Vec::new())
    }

    /// Returns the last of the earlier messages that a compaction keeps after its summary; the summary itself if it keeps none.
    fn last_kept(&self, _graph: &dyn Graph, summary: EntryNumber) -> Result<EntryNumber, Failure> {
        Ok(summary)
    }

    /// Returns the last entry of a path that the agent still sends after rolling back all turns; None if nothing remains.
    fn start(
        &self,
        _graph: &dyn Graph,
        _path: &[EntryNumber],
    ) -> Result<Option<EntryNumber>, Failure> {
        Ok(None)
    }

    /// Returns the ends of reverted branches: entries at which the conversation was continued elsewhere, in order.
    fn leaves(&self, graph: &dyn Graph) -> Result<Vec<EntryNumber>, Failure>;

    /// Returns a function that finds the callers of sub-agents that work in the same file.
    fn callers<'g>(&'g self, _graph: &'g dyn Graph) -> Callers<'g> {
        Box::new(|_| Ok(None))
    }

    /// Returns true if a record belongs to a sub-agent that works in the session's own file.
    fn is_of_sub_agent(&self, _record: &Record) -> bool {
        false
    }

    /// Returns true if the agent cleared earlier tool results at this record without ending the conversation.
    fn clears(&self, _record: &Record) -> bool {
        false
    }

    /// Returns how the agent went from one generation of its file to the next.
    fn departure(&self, _old: &dyn Graph, _next: &dyn Graph) -> Result<Option<Departure>, Failure> {
        Ok(None)
    }
}

/// The entries from the beginning to a head, as the agent would read them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// The entries, oldest first.
    pub entries: Vec<EntryNumber>,
    /// The edges that were repaired on the way.
    pub repairs: Vec<Repair>,
}

/// The entries of a path that the agent sends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// The entries, in the order in which they are sent.
    pub entries: Vec<EntryNumber>,
    /// The entries that are sent with other content than their own.
    pub edits: Vec<(EntryNumber, Edit)>,
    /// True if nothing before the inspected part of the path is sent.
    pub is_whole: bool,
}

/// What is sent instead of an entry's own content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// The content in another record.
    Content(EntryNumber),
    /// The entry's history after a rollback that keeps this many of its turns.
    Turns(u64),
    /// Nothing. Its change to the system prompt is sent where the prompt is.
    Later,
}

/// Finds paths of one graph: the last entries, up to a limit, of the path to a head.
pub type Paths<'g> = Box<dyn FnMut(EntryNumber, usize) -> Result<Path, Failure> + 'g>;

/// Finds the entry that called a sub-agent, given the first record of the sub-agent, if the call is in the same file. Entries
/// read for one sub-agent are reused for later ones.
pub type Callers<'g> = Box<dyn FnMut(EntryNumber) -> Result<Option<EntryNumber>, Failure> + 'g>;

/// Returns the settled ones of the last entries of a path: those from which on no entry affects what comes before.
pub(super) fn settled_up_to(
    last: &[EntryNumber],
    mut bears: impl FnMut(EntryNumber) -> Result<bool, Failure>,
) -> Result<Vec<EntryNumber>, Failure> {
    let mut settled = Vec::new();
    for &entry in last.iter().rev() {
        if bears(entry)? {
            break;
        }
        settled.push(entry);
    }
    settled.reverse();
    Ok(settled)
}

/// Returns the entries that the path of a head adds to `known`, from its last known entry on, and adds them to `known`.
///
/// It reads only as much of the path as it takes to reach a known entry.
pub fn added(
    paths: &mut Paths<'_>,
    head: EntryNumber,
    known: &mut EntrySet,
) -> Result<Vec<EntryNumber>, Failure> {
    // The path may continue after a known head with entries that are not known.
    let mut limit = if known.contains(head) { 1 } else { STEP };
    let (mut path, from) = loop {
        let path = paths(head, limit)?.entries;
        match path.iter().rposition(|entry| known.contains(*entry)) {
            None if path.len() >= limit => limit = limit.saturating_mul(4).max(STEP),
            from => break (path, from.unwrap_or(0)),
        }
    };
    path.drain(..from);
    known.extend(&path);
    Ok(path)
}

/// An edge that a record names but a path does not follow as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The entry.
    pub entry: EntryNumber,
    /// What was wrong, in a few words, such as `its parent is not in the file`.
    pub what: &'static str,
}

/// How an agent went from one generation of its file to the next.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Departure {
    /// The agent went back to an earlier checkpoint.
    Revert(#[serde(skip)] String),
    /// The agent went back to an earlier checkpoint, with a message from the later state.
    Mail(#[serde(skip)] String),
    /// The agent compacted the history.
    Compaction,
    /// The agent cleared the conversation.
    Clear,
}

impl Departure {
    /// Returns the agent's own number of the checkpoint it reverted to.
    pub fn own(&self) -> Option<&str> {
        match self {
            Self::Revert(own) | Self::Mail(own) => Some(own),
            Self::Compaction | Self::Clear => None,
        }
    }
}
