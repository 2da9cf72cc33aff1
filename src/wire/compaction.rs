//! Compactions as formats write them: a summary in place of a history, and the messages that stay.
//!
//! Invariant: a kept message is named or said again byte for byte, never rebuilt from its parts as understood here.

use serde_json::{Map, Value, json};

use crate::model::EntryNumber;

/// A compaction that is to be written.
#[derive(Clone, Copy, Debug)]
pub struct Compaction<'a> {
    /// The head, which the new records follow.
    pub from: EntryNumber,
    /// What is sent of the path to it.
    pub sent: &'a [EntryNumber],
    /// The session's own system prompt, which stays in front.
    pub system: &'a [Said],
    /// The kept messages, in the order of the context.
    pub kept: &'a [Said],
    /// The summary, as a model gets it.
    pub summary: &'a str,
    /// Its metadata.
    pub metadata: &'a Metadata,
}

/// A message of the context: one of those that an entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Said {
    /// The entry.
    pub entry: EntryNumber,
    /// Which of its messages, from 0.
    pub nth: usize,
}

/// The metadata of a compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Who asked for it: `auto` or `manual`.
    pub trigger: &'static str,
    /// How many tokens the context had.
    pub pre_tokens: u64,
    /// How many it has now.
    pub post_tokens: u64,
    /// Which files the summariser was shown.
    pub files: Vec<String>,
    /// Who wrote the summary.
    pub model: String,
    /// How long that took.
    pub duration_ms: u64,
    /// Why the summary is the fallback, if it is.
    pub error: Option<String>,
}

/// The lines of a compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lines {
    /// They are appended.
    More(Vec<Vec<u8>>),
    /// They are all that the file holds from now on.
    Anew {
        /// The lines.
        lines: Vec<Vec<u8>>,
        /// Of each line the entry that it says again, if it does.
        again: Vec<Option<EntryNumber>>,
    },
}

impl Metadata {
    /// Returns it as `compactMetadata`, under the names that agents and undertext share.
    pub(super) fn fields(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        let mut put = |key: &str, value: Value| drop(fields.insert(key.to_owned(), value));
        put("trigger", json!(self.trigger));
        put("preTokens", json!(self.pre_tokens));
        put("postTokens", json!(self.post_tokens));
        put("filesIncluded", json!(self.files));
        put("model", json!(self.model));
        put("durationMs", json!(self.duration_ms));
        if let Some(error) = &self.error {
            put("fallback", json!(true));
            put("error", json!(error));
        }
        fields
    }
}
