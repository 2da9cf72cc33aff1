//! Secrets: what looks like one, the rule that found it, and all its places. The secret itself is not included.

use serde::Serialize;

use super::{
    search::FoundPlace,
    shape::{count, report, through},
    status::UnreadSession,
};
use crate::model::hint::{Hint, Line};
use crate::{
    model::{CheckpointNumber, EntryId, OperationNumber, SessionName},
    session::Stand,
};

/// Something that looks like a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Secret {
    /// The rule that found the secret.
    pub rule: String,
    /// The words before the secret, and the masked secret, such as `GITHUB_TOKEN=gh••••••4o`.
    pub masked: String,
    /// The length of the secret in characters.
    pub characters: usize,
    /// Where the secret occurs: first in the newest session, there on the current path if possible.
    pub places: Vec<SecretPlace>,
}

/// A place where a secret occurs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SecretPlace {
    /// The session.
    #[serde(flatten)]
    pub session: SessionName,
    /// The title of the session, unless the title looks like a secret itself.
    pub title: Option<String>,
    /// The entry, if the secret is in one.
    #[serde(flatten, serialize_with = "through::<InEntry<'_>, _, _>")]
    pub found: Option<FoundPlace>,
    /// Whether the secret is in a compaction's summary.
    #[serde(rename = "summary")]
    pub is_summary: bool,
    /// The imported file that contains the secret.
    pub file: Option<String>,
    /// The operation that contains the secret in a note or a name, or that imported the unfinished line.
    pub operation: Option<OperationNumber>,
    /// Whether the secret is in a line that undertext imported before the agent had finished writing it.
    #[serde(rename = "unfinished")]
    pub is_unfinished: bool,
}

/// Where an entry with a secret is, as a report.
#[derive(Serialize)]
struct InEntry<'a> {
    /// The entry, if its id can be read.
    entry: Option<EntryId>,
    /// The checkpoint before its turn.
    turn: Option<CheckpointNumber>,
    /// Where the entry is.
    #[serde(rename = "stands")]
    stand: Option<&'a Stand>,
    /// The branch, if the entry is on another than the current one.
    branch: Option<&'a str>,
    /// Whether the entry comes from a sub-agent.
    sub_agent: bool,
}

impl<'a> From<&'a Option<FoundPlace>> for InEntry<'a> {
    fn from(found: &'a Option<FoundPlace>) -> Self {
        let stand = found.as_ref().map(|found| &found.stand);
        Self {
            entry: found.as_ref().and_then(|found| found.entry),
            turn: found.as_ref().and_then(|found| found.turn),
            stand,
            branch: if let Some(Stand::Branch(name)) = stand { Some(name) } else { None },
            sub_agent: found.as_ref().is_some_and(|found| found.is_of_sub_agent),
        }
    }
}

/// The secrets that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Secrets {
    /// The number of secrets.
    #[serde(serialize_with = "count")]
    pub found: Vec<Secret>,
    /// How many sessions were searched.
    pub sessions: u64,
    /// How many places were ignored because your settings allow them.
    pub allowed: u64,
    /// How many entries could not be searched.
    pub damaged: u64,
    /// The sessions with unreadable parts, which were not searched.
    #[serde(skip)]
    pub unread: Vec<UnreadSession>,
}

impl Secret {
    /// Returns the first place that can be shown.
    pub fn shown(&self) -> Option<&FoundPlace> {
        self.places.iter().find_map(|place| place.found.as_ref())
    }

    /// Returns the command that redacts what was found in an entry, if the entry has an id.
    pub fn redact(found: &FoundPlace) -> Option<Line> {
        Some(Line::about("redact").flag("found").entry(found.entry?))
    }
}

report!(Secret, "secret");

report!(Secrets, "secrets", hints: |it| {
    let all = || Line::new("redact").flag("found").flag("dry-run").to("see what would be redacted");
    let mend = (it.damaged > 0).then(Hint::mend);
    (!it.found.is_empty()).then(all).into_iter().chain(mend)
});
