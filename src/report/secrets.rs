//! Secrets: what looks like one, the rule that found it, and all its places. The secret itself is not included.

use serde::{Serialize, Serializer, ser::SerializeMap};

use super::{
    hint::{Hint, Line},
    search::FoundPlace,
    shape::report,
    status::UnreadSession,
};
use crate::model::{OperationNumber, SessionName};

/// Something that looks like a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// The rule that found it.
    pub rule: String,
    /// The text before it and its mask, such as `GITHUB_TOKEN=gh••••••4o`.
    pub masked: String,
    /// Its length in characters.
    pub characters: usize,
    /// Where it occurs: first in the newest session, there on the current path if possible.
    pub places: Vec<SecretPlace>,
}

/// A place where a secret occurs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretPlace {
    /// The session.
    pub session: SessionName,
    /// Its title, unless the title looks like a secret itself.
    pub title: Option<String>,
    /// The place in the session.
    pub spot: Spot,
}

/// A place in a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spot {
    /// In an entry.
    Entry {
        /// The entry, and its place.
        found: FoundPlace,
        /// Whether it is the summary of a compaction.
        is_summary: bool,
    },
    /// In a sidecar that is stored whole.
    Kept {
        /// Its path.
        path: String,
    },
    /// In a line that was read before it was complete.
    Unfinished {
        /// The operation that read it.
        operation: OperationNumber,
    },
    /// In a note, a name or a reason that a person wrote.
    Given {
        /// The operation that it belongs to.
        operation: OperationNumber,
    },
}

/// The secrets that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secrets {
    /// Each secret once, those of the newest sessions first.
    pub found: Vec<Secret>,
    /// The number of sessions that were searched.
    pub sessions: u64,
    /// The number of finds that the user's settings allow.
    pub allowed: u64,
    /// The number of damaged entries, which were not searched.
    pub damaged: u64,
    /// The sessions with unreadable parts, which were not searched.
    pub unread: Vec<UnreadSession>,
}

impl SecretPlace {
    /// Returns the entry, if the place is one.
    pub fn entry(&self) -> Option<&FoundPlace> {
        if let Spot::Entry { found, .. } = &self.spot { Some(found) } else { None }
    }
}

impl Secret {
    /// Returns the first place that can be shown.
    pub fn shown(&self) -> Option<&FoundPlace> {
        self.places.iter().find_map(SecretPlace::entry)
    }

    /// Returns the command that redacts what was found in an entry, if the entry has an id.
    pub fn redact(found: &FoundPlace) -> Option<Line> {
        Some(Line::about("redact").flag("found").entry(found.entry?))
    }
}

impl Serialize for SecretPlace {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut object = to.serialize_map(None)?;
        let (found, is_summary) = match &self.spot {
            Spot::Entry { found, is_summary } => (Some(found), *is_summary),
            _ => (None, false),
        };
        object.serialize_entry("session", &self.session.id)?;
        object.serialize_entry("agent", &self.session.format)?;
        object.serialize_entry("title", &self.title)?;
        object.serialize_entry("entry", &found.and_then(|found| found.entry))?;
        object.serialize_entry("turn", &found.and_then(|found| found.turn))?;
        object.serialize_entry("stands", &found.map(|found| found.stand.as_str()))?;
        object.serialize_entry("branch", &found.and_then(FoundPlace::branch))?;
        object.serialize_entry("sub_agent", &found.is_some_and(|found| found.is_of_sub_agent))?;
        object.serialize_entry("summary", &is_summary)?;
        let (file, operation) = match &self.spot {
            Spot::Entry { .. } => (None, None),
            Spot::Kept { path } => (Some(path), None),
            Spot::Unfinished { operation } | Spot::Given { operation } => (None, Some(*operation)),
        };
        object.serialize_entry("file", &file)?;
        object.serialize_entry("operation", &operation)?;
        let is_unfinished = matches!(self.spot, Spot::Unfinished { .. });
        object.serialize_entry("unfinished", &is_unfinished)?;
        object.end()
    }
}

report!(Secret, "secret", |it| {
    rule: it.rule,
    masked: it.masked,
    characters: it.characters,
    places: it.places,
});

report!(Secrets, "secrets", |it| {
    found: it.found.len(),
    sessions: it.sessions,
    allowed: it.allowed,
    damaged: it.damaged,
}, hints: |it| {
    let all = || Line::new("redact").flag("found").flag("dry-run").to("see what would be redacted");
    let mend = (it.damaged > 0).then(Hint::mend);
    (!it.found.is_empty()).then(all).into_iter().chain(mend)
});
