//! Searching: what was found, where it is, and how to see it.

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

/// A place at which something that was found is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPlace {
    /// The session.
    pub session: SessionName,
    /// Its title.
    pub title: Option<String>,
    /// The folder in which it works.
    pub folder: Option<String>,
    /// The session for which it works, if it is a sub-agent.
    pub parent: Option<String>,
    /// The entry, if its id can be read.
    pub entry: Option<EntryId>,
    /// The checkpoint before its turn.
    pub turn: Option<CheckpointNumber>,
    /// Which step of the turn it is, 0 for the prompt, of the place at which it is shown.
    pub step: Option<usize>,
    /// Where it is.
    pub stand: Stand,
    /// Whether it is of a sub-agent.
    pub is_of_sub_agent: bool,
}

/// A text in which something was found, with the places at which it is kept: those on the current path of a session first, and
/// of these that in the newest session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The places.
    pub places: Vec<FoundPlace>,
    /// When it was said.
    pub time: Option<Timestamp>,
    /// Who said it.
    pub role: Role,
    /// The tool that is called or answers.
    pub tool: Option<String>,
    /// The lines.
    pub lines: Vec<HitLine>,
}

/// A line in which something was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HitLine {
    /// Its number in the text, from 1.
    pub n: usize,
    /// The line.
    pub line: String,
    /// The matches in it, in bytes.
    pub matches: Vec<Range<usize>>,
    /// The lines before it that were asked for.
    pub before: Around,
    /// The lines behind it.
    pub after: Around,
}

/// A line of a hit as programs get it.
#[derive(Clone, Copy, Debug)]
pub struct FoundLine<'h> {
    /// The hit.
    pub hit: &'h Hit,
    /// The line.
    pub line: &'h HitLine,
}

/// How many lines were found in a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The session.
    pub session: SessionName,
    /// Its title.
    pub title: Option<String>,
    /// How many lines have a match.
    pub lines: u64,
}

/// The end of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Searched {
    /// How many lines were found and handed over.
    pub lines: u64,
    /// How many messages have the words that are looked for, or most of them: handed over or not.
    pub messages: Option<u64>,
    /// In how many sessions.
    pub sessions: u64,
    /// The words that no message has.
    pub nowhere: Vec<String>,
    /// The words that the best of them lacks.
    pub missing: Vec<String>,
    /// Whether the search ended because it had found the number wanted.
    pub has_more: bool,
    /// How many entries are damaged and were not searched.
    pub damaged: u64,
    /// The sessions of which something cannot be read, and was not searched.
    pub unread: Vec<UnreadSession>,
    /// Whether an index answered that has all that the store holds.
    pub is_indexed: bool,
}

/// What was added to an index of words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Indexed {
    /// How many entries were looked at.
    pub entries: u64,
    /// Whether all are in it.
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

    /// Returns the step of its turn as commands take it, if that is known.
    pub fn step(&self) -> Option<String> {
        Some(format!("@{}.{}", self.turn?, self.step?))
    }

    /// Returns the branch on which it is, if that is not the current one.
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
    /// Counts all messages that were found, by the group of their session, which one of the group it is, and the entry.
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
