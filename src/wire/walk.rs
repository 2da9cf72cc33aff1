//! Walking: the head at which an agent resumes, the paths to it, the part that it sends, and its departures.

use crate::{
    model::{EntryNumber, EntrySet, Record},
    wire::{Failure, Graph},
};

/// How much of a path is read first, to see whether the rest is known.
const STEP: usize = 64;

/// Finds its way through a session as the agent itself would.
pub trait Walk {
    /// Returns the entry at which the agent would resume.
    fn head(&self, graph: &dyn Graph) -> Result<Option<EntryNumber>, Failure>;

    /// Returns the entries from the beginning to a head as the agent would read them, compactions crossed; of many, the
    /// last `limit`.
    fn path(&self, graph: &dyn Graph, head: EntryNumber, limit: usize) -> Result<Path, Failure>;

    /// Returns [`Walk::path`] of one graph for many heads: entries read for one of them serve the next.
    fn paths<'g>(&'g self, graph: &'g dyn Graph) -> Result<Paths<'g>, Failure> {
        Ok(Box::new(move |head, limit| self.path(graph, head, limit)))
    }

    /// Returns the entries of a path, or of its last ones, that the agent would send: after a compaction summary, kept part,
    /// and the rest.
    fn context(&self, graph: &dyn Graph, path: &[EntryNumber]) -> Result<Sent, Failure>;

    /// Returns those of the last entries of a path that are settled: the path before one, and what is sent of that, follow
    /// from the file up to there, as long as names mean the same, and nothing behind bears on them.
    fn settled(
        &self,
        _graph: &dyn Graph,
        _last: &[EntryNumber],
    ) -> Result<Vec<EntryNumber>, Failure> {
        Ok(Vec::new())
    }

    /// Returns the last of the messages that came before a summary and follow it because its compaction keeps them, or the
    /// summary itself if it keeps nothing.
    fn last_kept(&self, _graph: &dyn Graph, summary: EntryNumber) -> Result<EntryNumber, Failure> {
        Ok(summary)
    }

    /// Returns the last entry of a path that its agent sends though all turns are taken back; `None` if nothing stays.
    fn start(
        &self,
        _graph: &dyn Graph,
        _path: &[EntryNumber],
    ) -> Result<Option<EntryNumber>, Failure> {
        Ok(None)
    }

    /// Returns the entries at which the conversation went on elsewhere and was left: real branches, in order.
    fn leaves(&self, graph: &dyn Graph) -> Result<Vec<EntryNumber>, Failure>;

    /// Returns a way to find the entries of one graph that called sub-agents which work in the same file.
    fn callers<'g>(&'g self, _graph: &'g dyn Graph) -> Callers<'g> {
        Box::new(|_| Ok(None))
    }

    /// Returns whether a record belongs to a sub-agent that works in its session's own file.
    fn is_of_sub_agent(&self, _record: &Record) -> bool {
        false
    }

    /// Returns whether the agent cleared older answers of tools where a record is; the conversation goes on over it.
    fn clears(&self, _record: &Record) -> bool {
        false
    }

    /// Returns how the agent left a state of its file for the next one.
    fn departure(&self, _old: &dyn Graph, _next: &dyn Graph) -> Result<Option<Departure>, Failure> {
        Ok(None)
    }
}

/// The entries from the beginning to a head, as an agent would read them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// The entries, the first one first.
    pub entries: Vec<EntryNumber>,
    /// The edges that were mended to find them.
    pub repairs: Vec<Repair>,
}

/// The entries of a path that an agent sends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// The entries, as they are sent.
    pub entries: Vec<EntryNumber>,
    /// Those of them of which something else is sent than they say.
    pub edits: Vec<(EntryNumber, Edit)>,
    /// Whether nothing is sent of what comes before the part of the path that was looked at.
    pub is_whole: bool,
}

/// What is sent of an entry in place of all that it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// The content that another record has for it.
    Content(EntryNumber),
    /// What a rollback leaves of its history that leaves this many turns.
    Turns(u64),
    /// Nothing: what it changes of the system prompt is said where that is.
    Later,
}

/// Finds the paths of one graph: to a head, and of many entries the last ones.
pub type Paths<'g> = Box<dyn FnMut(EntryNumber, usize) -> Result<Path, Failure> + 'g>;

/// Finds the entry that called the sub-agent whose first record is at an entry, if that is in the same file. What is read
/// for one sub-agent serves the next that comes after it.
pub type Callers<'g> = Box<dyn FnMut(EntryNumber) -> Result<Option<EntryNumber>, Failure> + 'g>;

/// Returns those of the last entries of a path from which on there is none that bears on what comes before it.
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

/// Returns the entries that a head's path adds to the known ones: from its last known one on. They are then known.
///
/// It reads no more of a path than it takes to meet a known entry.
pub fn added(
    paths: &mut Paths<'_>,
    head: EntryNumber,
    known: &mut EntrySet,
) -> Result<Vec<EntryNumber>, Failure> {
    // Behind a known head an unknown entry may still hang.
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

/// An edge that a record names and that a path does not take as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The entry.
    pub entry: EntryNumber,
    /// What was wrong, in a few words, such as `its parent is not in the file`.
    pub what: &'static str,
}

/// How an agent left a state of its file for the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Departure {
    /// It went back to a checkpoint, by its own number.
    Revert(String),
    /// It went back to a checkpoint with a message from its later self.
    Mail(String),
    /// It put a summary in place of the conversation so far.
    Compaction,
    /// It began again.
    Clear,
}

impl Departure {
    /// Returns its name, for programs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Revert(_) => "revert",
            Self::Mail(_) => "mail",
            Self::Compaction => "compaction",
            Self::Clear => "clear",
        }
    }

    /// Returns the agent's own number of the checkpoint to which it went back.
    pub fn own(&self) -> Option<&str> {
        match self {
            Self::Revert(own) | Self::Mail(own) => Some(own),
            Self::Compaction | Self::Clear => None,
        }
    }
}
