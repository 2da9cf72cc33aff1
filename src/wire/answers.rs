//! Where a record stores tool results, and which parts of a session the agent itself left out.

use crate::{
    json::{self, Raw},
    wire::fields::text,
};

/// The tool results in a record.
#[derive(Clone, Debug, Default)]
pub struct Answers<'a> {
    /// The results sent to the model.
    pub sent: Vec<Answer<'a>>,
    /// Strings in which the agent stores the same results for its own use.
    pub beside: Vec<Raw<'a>>,
    /// The list with the blocks of an answer, if the agent can resume without its thinking.
    pub thinking: Option<Raw<'a>>,
}

impl Answers<'_> {
    /// Returns the texts of the thinking that the agent can resume without.
    pub fn thoughts(&self) -> Vec<String> {
        let blocks = self.thinking.into_iter().flat_map(Raw::items).filter(|b| is_thinking(*b));
        blocks.map(|block| text(block, "thinking").unwrap_or_default()).collect()
    }
}

/// The result of one tool call.
#[derive(Clone, Debug)]
pub struct Answer<'a> {
    /// The id of the call.
    pub call: String,
    /// The result's texts.
    pub texts: Vec<Piece<'a>>,
}

/// One text of a result.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// The JSON string that contains it.
    pub(super) string: Raw<'a>,
    /// If that string is itself JSON: the key of the text in it.
    pub(super) within: Option<&'static str>,
}

/// Something the agent left out of a session, as reported by one of its records.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Earlier {
    /// How the agent left it out.
    pub how: How,
    /// The call whose result was left out.
    pub call: Option<String>,
    /// The size of the text, in the words of the agent's record.
    pub size: Option<String>,
    /// The number of tokens before and after.
    pub tokens: (Option<u64>, Option<u64>),
    /// The file to which the agent moved the text.
    pub file: Option<String>,
    /// Why the agent left it out, in the words of its record.
    pub trigger: Option<String>,
}

/// How an agent leaves something out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The agent moved a long text to a file.
    Filed,
    /// The agent cut a text.
    Cut,
    /// A summary replaces the history.
    Compacted,
    /// The agent removed results or messages from the context.
    Cleared,
    /// The agent replaced the content of a message.
    Edited,
}

impl How {
    /// Returns the name used in machine-readable output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Filed => "file",
            Self::Cut => "cut",
            Self::Compacted => "compaction",
            Self::Cleared => "cleared",
            Self::Edited => "edited",
        }
    }
}

impl Earlier {
    /// Makes an omission of this kind with all other fields empty.
    pub(super) fn new(how: How) -> Self {
        Self { how, call: None, size: None, tokens: (None, None), file: None, trigger: None }
    }
}

/// Returns the text between the first `before` and the next `after`.
pub(super) fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    Some(rest.split_once(after)?.0)
}

impl<'a> Piece<'a> {
    /// Makes a piece of a string; None if the value is not a string.
    pub(super) fn new(string: Raw<'a>) -> Option<Self> {
        string.inner().map(|_| Self { string, within: None })
    }

    /// Makes a piece of a string. If the string is JSON with a text under `key`, the piece is that text.
    pub(super) fn within(string: Raw<'a>, key: &'static str) -> Option<Self> {
        let piece = Self::new(string)?;
        let nested = string.bytes().starts_with(b"\"{") && {
            let text = string.text()?;
            Raw::object(text.as_bytes())
                .is_some_and(|object| object.get(key).and_then(Raw::text).is_some())
        };
        Some(Self { within: nested.then_some(key), ..piece })
    }

    /// Returns the text.
    pub fn text(self) -> String {
        let text = self.string.text().unwrap_or_default();
        let nested = self
            .within
            .and_then(|key| Some(Raw::object(text.as_bytes())?.get(key)?.text()?.into_owned()));
        nested.unwrap_or_else(|| text.into_owned())
    }
}

/// Returns the texts of a tool result: the string itself, or the string under `key` in each part of a list.
pub(super) fn parts<'a>(content: Option<Raw<'a>>, key: &str) -> Vec<Raw<'a>> {
    let Some(content) = content else { return Vec::new() };
    match content.kind() {
        json::Kind::String => vec![content],
        json::Kind::Array => content
            .items()
            .filter_map(|item| match item.kind() {
                json::Kind::String => Some(item),
                _ => item.get(key).filter(|text| text.inner().is_some()),
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Returns true if a block of an answer is thinking.
pub(super) fn is_thinking(block: Raw<'_>) -> bool {
    matches!(text(block, "type").as_deref(), Some("thinking" | "redacted_thinking"))
}

/// Returns all strings in a value, at any depth, except images.
pub(super) fn strings(value: Option<Raw<'_>>) -> Vec<Raw<'_>> {
    let is_picture = |key: &[u8]| matches!(key, b"base64" | b"data");
    value.map(|value| value.strings(is_picture).collect()).unwrap_or_default()
}
