//! Searching: the hits, their places, and how to show them.

use std::{collections::BTreeSet, ops::Range};

use serde::{Serialize, Serializer, ser::SerializeMap};

use super::{
    hint::{Hint, Line},
    shape::{object, report},
    status::UnreadSession,
};
use crate::{
    model::{Around, CheckpointNumber, EntryId, EntryNumber, Role, SessionName, Timestamp},
    session::Stand,
};

/// A place at which a hit occurs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPlace {
    /// The session.
    pub session: SessionName,
    /// Its title.
    pub title: Option<String>,
    /// Its working folder.
    pub folder: Option<String>,
    /// The session that it works for, if it is a sub-agent's.
    pub parent: Option<String>,
    /// The entry, if its id can be read.
    pub entry: Option<EntryId>,
    /// The checkpoint before its turn.
    pub turn: Option<CheckpointNumber>,
    /// The step within the turn, 0 for the prompt, at the place where it is shown.
    pub step: Option<usize>,
    /// Where it is relative to the current path.
    pub stand: Stand,
    /// Whether it belongs to a sub-agent.
    pub is_of_sub_agent: bool,
}

/// A text with matches, and the places where it occurs: first those on the current path of a session, and among them first the
/// one in the newest session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The places.
    pub places: Vec<FoundPlace>,
    /// When it was written.
    pub time: Option<Timestamp>,
    /// Who wrote it.
    pub role: Role,
    /// The tool that is called or returns it.
    pub tool: Option<String>,
    /// The matching lines.
    pub lines: Vec<HitLine>,
}

/// A matching line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HitLine {
    /// Its number in the text, from 1.
    pub n: usize,
    /// The line.
    pub line: String,
    /// The ranges of the matches, in bytes.
    pub matches: Vec<Range<usize>>,
    /// The requested lines before it.
    pub before: Around,
    /// The requested lines after it.
    pub after: Around,
}

/// A line of a hit, as a report.
#[derive(Clone, Copy, Debug)]
pub struct FoundLine<'h> {
    /// The hit.
    pub hit: &'h Hit,
    /// The line.
    pub line: &'h HitLine,
}

/// The number of matching lines in a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The session.
    pub session: SessionName,
    /// Its title.
    pub title: Option<String>,
    /// The number of lines with a match.
    pub lines: u64,
}

/// The summary of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Searched {
    /// The number of matching lines that were returned.
    pub lines: u64,
    /// The number of messages that contain the words, or most of them, whether they were returned or not.
    pub messages: Option<u64>,
    /// The number of sessions with such messages.
    pub sessions: u64,
    /// The words that no message contains.
    pub nowhere: Vec<String>,
    /// The words that the best message lacks.
    pub missing: Vec<String>,
    /// Whether the search stopped because it had found enough.
    pub has_more: bool,
    /// The number of damaged entries, which were not searched.
    pub damaged: u64,
    /// The sessions with unreadable parts, which were not searched.
    pub unread: Vec<UnreadSession>,
    /// Whether the answer comes from an index that covers the whole store.
    pub is_indexed: bool,
}

/// What was added to the search index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Indexed {
    /// The number of entries that were processed.
    pub entries: u64,
    /// Whether the index is complete.
    pub is_whole: bool,
}

report!(Indexed, "index", |it| { entries: it.entries, whole: it.is_whole });

impl FoundPlace {
    /// Returns the command that shows the entry, if it can be named.
    pub fn show(&self) -> Option<Line> {
        Some(match self.step() {
            Some(step) => Line::about("show").with(step),
            None => Line::about("show").entry(self.entry?),
        })
    }

    /// Returns the step as a selector, if it is known.
    pub fn step(&self) -> Option<String> {
        Some(format!("@{}.{}", self.turn?, self.step?))
    }

    /// Returns the branch, if it is not the current one.
    pub fn branch(&self) -> Option<&str> {
        if let Stand::Branch(name) = &self.stand { Some(name) } else { None }
    }
}

object!(FoundPlace, |it| {
    session: it.session.id,
    agent: it.session.format,
    entry: it.entry,
    turn: it.turn,
    step: it.step,
    stands: it.stand.as_str(),
    branch: it.branch(),
    sub_agent: it.is_of_sub_agent,
});

impl Serialize for FoundLine<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { hit, line } = self;
        let mut object = to.serialize_map(None)?;
        if let Some(place) = hit.places.first() {
            object.serialize_entry("session", &place.session.id)?;
            object.serialize_entry("agent", &place.session.format)?;
            object.serialize_entry("title", &place.title)?;
            object.serialize_entry("folder", &place.folder)?;
            object.serialize_entry("parent", &place.parent)?;
            object.serialize_entry("entry", &place.entry)?;
            object.serialize_entry("turn", &place.turn)?;
            object.serialize_entry("step", &place.step)?;
            object.serialize_entry("stands", place.stand.as_str())?;
            object.serialize_entry("branch", &place.branch())?;
            object.serialize_entry("sub_agent", &place.is_of_sub_agent)?;
        }
        object.serialize_entry("time", &hit.time)?;
        object.serialize_entry("role", hit.role.as_str())?;
        object.serialize_entry("tool", &hit.tool)?;
        object.serialize_entry("line", &line.n)?;
        object.serialize_entry("text", &line.line)?;
        let matches: Vec<[usize; 2]> = line.matches.iter().map(|at| [at.start, at.end]).collect();
        object.serialize_entry("matches", &matches)?;
        object.serialize_entry("before", &line.before)?;
        object.serialize_entry("after", &line.after)?;
        object.serialize_entry("places", hit.places.get(1..).unwrap_or_default())?;
        object.end()
    }
}

report!(FoundLine<'_>, "hit");

report!(Counted, "count", |it| {
    session: it.session.id,
    agent: it.session.format,
    title: it.title,
    lines: it.lines,
});

impl Searched {
    /// Counts the messages that were found. Each is given by the group of its session, the session's index in the group, and the
    /// entry.
    pub(crate) fn count(&mut self, found: impl Iterator<Item = (usize, usize, EntryNumber)>) {
        let (mut messages, mut sessions) = (0, BTreeSet::new());
        for (group, member, _) in found {
            messages += 1;
            sessions.insert((group, member));
        }
        (self.messages, self.sessions) = (Some(messages), sessions.len() as u64);
    }
}

report!(Searched, "searched", |it| {
    lines: it.lines,
    messages: it.messages,
    sessions: it.messages.map(|_| it.sessions),
    missing: it.missing,
    more: it.has_more,
    damaged: it.damaged,
}, hints: |it| (it.damaged > 0).then(Hint::mend));
