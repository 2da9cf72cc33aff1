//! Secrets: what looks like one, by which rule, and every place at which it is. The secret itself is no part of it.

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
    /// The words in front of it and its mask, such as `GITHUB_TOKEN=gh••••••4o`.
    pub masked: String,
    /// How many characters it has.
    pub characters: usize,
    /// Where it is: in the newest session first, where it is on the current path if it does anywhere there.
    pub places: Vec<SecretPlace>,
}

/// A place at which a secret is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretPlace {
    /// The session.
    pub session: SessionName,
    /// Its title, unless that looks like a secret too.
    pub title: Option<String>,
    /// Where in it.
    pub spot: Spot,
}

/// Where in a session something is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spot {
    /// In an entry.
    Entry {
        /// The entry, and where it is.
        found: FoundPlace,
        /// Whether it is the summary of a compaction.
        is_summary: bool,
    },
    /// In a file that is kept whole next to the session.
    Kept {
        /// Its path.
        path: String,
    },
    /// In a line that was read before it was finished.
    Unfinished {
        /// The operation that read it.
        operation: OperationNumber,
    },
    /// In a note, a name or a reason that a person gave.
    Given {
        /// The operation with which it was given.
        operation: OperationNumber,
    },
}

/// The secrets that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secrets {
    /// Each once, those of the newest sessions first.
    pub found: Vec<Secret>,
    /// How many sessions were looked through.
    pub sessions: u64,
    /// How many finds the user's settings allow.
    pub allowed: u64,
    /// How many entries are damaged and were not looked through.
    pub damaged: u64,
    /// The sessions of which something cannot be read, and was not looked through.
    pub unread: Vec<UnreadSession>,
}

impl SecretPlace {
    /// Returns the entry, if it is one.
    pub fn entry(&self) -> Option<&FoundPlace> {
        if let Spot::Entry { found, .. } = &self.spot { Some(found) } else { None }
    }
}

impl Secret {
    /// Returns the first place that can be shown.
    pub fn shown(&self) -> Option<&FoundPlace> {
        self.places.iter().find_map(SecretPlace::entry)
    }

    /// Returns the command that takes out what was found in an entry, if that can be named.
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
