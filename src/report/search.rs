//! Searching: the hits, their places, and how to show them.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{
    shape::{report, through},
    status::UnreadSession,
};
use crate::model::hint::{Hint, Line};
use crate::{
    model::{CheckpointNumber, EntryId, EntryNumber, HitLine, Role, SessionName, Timestamp},
    session::Stand,
};

/// A place at which a hit occurs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundPlace {
    /// The session.
    #[serde(flatten)]
    pub session: SessionName,
    /// The title of the session.
    pub title: Option<String>,
    /// The working folder of the session.
    pub folder: Option<String>,
    /// If the session is a sub-agent's, the session that the sub-agent works for.
    pub parent: Option<String>,
    /// The entry, if its id can be read.
    pub entry: Option<EntryId>,
    /// The checkpoint before its turn.
    pub turn: Option<CheckpointNumber>,
    /// The step of the turn, as in `@13.4`, 0 for the prompt; `null` if the text is not on the current path.
    pub step: Option<usize>,
    /// Where the text is.
    #[serde(flatten, serialize_with = "through::<Where<'_>, _, _>")]
    pub stand: Stand,
    /// Whether the text comes from a sub-agent.
    #[serde(rename = "sub_agent")]
    pub is_of_sub_agent: bool,
}

/// Where a text is, as a report.
#[derive(Serialize)]
struct Where<'a> {
    /// Where the text is.
    #[serde(rename = "stands")]
    stand: &'a Stand,
    /// The branch, if the text is on another than the current one.
    branch: Option<&'a str>,
}

impl<'a> From<&'a Stand> for Where<'a> {
    fn from(stand: &'a Stand) -> Self {
        let branch = if let Stand::Branch(name) = stand { Some(name.as_str()) } else { None };
        Self { stand, branch }
    }
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

/// A line of a hit, as a report.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FoundLine<'h> {
    /// The first place.
    #[serde(flatten)]
    pub place: &'h FoundPlace,
    /// When the text was written.
    pub time: Option<Timestamp>,
    /// Who wrote the text.
    pub role: Role,
    /// The name of the tool, if the text is a tool call or a result.
    pub tool: Option<&'h str>,
    /// The line.
    #[serde(flatten)]
    pub line: &'h HitLine,
    /// Other places with the same text.
    pub places: &'h [FoundPlace],
}

/// The number of matching lines in a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// The session.
    #[serde(flatten)]
    pub session: SessionName,
    /// The title of the session.
    pub title: Option<String>,
    /// The number of lines with a match.
    pub lines: u64,
}

/// The summary of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Searched {
    /// The number of matching lines that were returned.
    pub lines: u64,
    /// How many messages have all the words, or most of them; `null` with `-F`, `-w` or `-E`.
    pub messages: Option<u64>,
    /// The number of sessions with such messages; `null` with `-F`, `-w` or `-E`.
    pub sessions: Option<u64>,
    /// The words that no message contains.
    #[serde(skip)]
    pub nowhere: Vec<String>,
    /// The words that the best message lacks.
    pub missing: Vec<String>,
    /// Whether there may be more matches than `-n` allowed.
    #[serde(rename = "more")]
    pub has_more: bool,
    /// How many entries could not be searched.
    pub damaged: u64,
    /// The sessions with unreadable parts, which were not searched.
    #[serde(skip)]
    pub unread: Vec<UnreadSession>,
    /// Whether the answer comes from an index that covers the whole store.
    #[serde(skip)]
    pub is_indexed: bool,
}

/// What was added to the search index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Indexed {
    /// How many entries were added to the index.
    pub entries: u64,
    /// Whether the index is complete.
    #[serde(rename = "whole")]
    pub is_whole: bool,
}

report!(Indexed, "index");

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
}

report!(FoundLine<'_>, "hit");

report!(Counted, "count");

impl Searched {
    /// Counts the messages that were found. Each is given by the group of its session, the session's index in the group, and the
    /// entry.
    pub(crate) fn count(&mut self, found: impl Iterator<Item = (usize, usize, EntryNumber)>) {
        let (mut messages, mut sessions) = (0, BTreeSet::new());
        for (group, member, _) in found {
            messages += 1;
            sessions.insert((group, member));
        }
        (self.messages, self.sessions) = (Some(messages), Some(sessions.len() as u64));
    }
}

report!(Searched, "searched", hints: |it| (it.damaged > 0).then(Hint::mend));
