//! A compaction that a format is asked to write: a summary that replaces the history, and the messages that are kept.
//!
//! Invariant: a kept message is referred to or copied byte for byte, never rebuilt from its parsed parts.

use serde_json::{Map, Value, json};

use crate::model::EntryNumber;

/// A compaction to write.
#[derive(Clone, Copy, Debug)]
pub struct Compaction<'a> {
    /// The head. The new records follow it.
    pub from: EntryNumber,
    /// The entries of its path that are sent to the model.
    pub sent: &'a [EntryNumber],
    /// The session's own system prompt, which stays first.
    pub system: &'a [Said],
    /// The kept messages, in context order.
    pub kept: &'a [Said],
    /// The summary, as sent to the model.
    pub summary: &'a str,
    /// Its metadata.
    pub metadata: &'a Metadata,
}

/// One message of the context: the `nth` message of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Said {
    /// The entry.
    pub entry: EntryNumber,
    /// The index of the message in the entry, from 0.
    pub nth: usize,
}

/// The metadata of a compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Who triggered it: `auto` or `manual`.
    pub trigger: &'static str,
    /// The number of tokens in the context before.
    pub pre_tokens: u64,
    /// The number of tokens in the context after.
    pub post_tokens: u64,
    /// The files shown to the summariser.
    pub files: Vec<String>,
    /// The model that wrote the summary.
    pub model: String,
    /// How long writing the summary took.
    pub duration_ms: u64,
    /// If the summary is the fallback: why.
    pub error: Option<String>,
}

/// The lines of a compaction, and where they go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lines {
    /// Append them.
    More(Vec<Vec<u8>>),
    /// They become the whole content of the file.
    Anew {
        /// The lines.
        lines: Vec<Vec<u8>>,
        /// For each line, the entry that it copies, if any.
        again: Vec<Option<EntryNumber>>,
    },
}

impl Metadata {
    /// Returns the metadata as `compactMetadata`, with the field names shared by the agents and undertext.
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
