//! Answers of tools where they stand in a record, and the parts of a session that an agent left out by itself.

use crate::json::{self, Raw};

/// The tools' answers in a record.
#[derive(Clone, Debug, Default)]
pub struct Answers<'a> {
    /// The answers that are sent to the model.
    pub sent: Vec<Answer<'a>>,
    /// Strings in which the agent keeps them for itself.
    pub beside: Vec<Raw<'a>>,
}

/// The answer of one tool.
#[derive(Clone, Debug)]
pub struct Answer<'a> {
    /// The call that it answers.
    pub call: String,
    /// Its texts.
    pub texts: Vec<Piece<'a>>,
}

/// A text of an answer.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// The string that holds it.
    pub(super) string: Raw<'a>,
    /// If that string is JSON itself, the key under which it is there.
    pub(super) within: Option<&'static str>,
}

/// A part of a session that an agent left out by itself, as its record tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// In which way.
    pub how: How,
    /// The call whose answer it was.
    pub call: Option<String>,
    /// How much it was, by the record's own word.
    pub size: Option<String>,
    /// How many tokens there were before and after.
    pub tokens: (Option<u64>, Option<u64>),
    /// The file that holds it.
    pub file: Option<String>,
    /// What made the agent do it, by the record's own word.
    pub trigger: Option<String>,
}

/// The ways in which agents leave something out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// A file holds the text that was too long.
    Filed,
    /// A text was cut.
    Cut,
    /// A summary replaces the history.
    Compacted,
    /// Answers, or messages, were taken out of the context.
    Cleared,
    /// Other content was put in place of a message's own.
    Edited,
}

impl How {
    /// Returns its name, for programs.
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
    /// Returns an omission of this kind, with nothing else known.
    pub(super) fn new(how: How) -> Self {
        Self { how, call: None, size: None, tokens: (None, None), file: None, trigger: None }
    }
}

/// Returns the text between two marks, the first that stand so.
pub(super) fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    Some(rest.split_once(after)?.0)
}

impl<'a> Piece<'a> {
    /// Takes a string for a text.
    pub(super) fn new(string: Raw<'a>) -> Option<Self> {
        string.inner().map(|_| Self { string, within: None })
    }

    /// Takes a string for a text, unless it is JSON that has one under a key.
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

/// Returns the texts of a tool's answer: the string itself, or the strings under `key` in the parts of a list.
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

/// Returns the strings in a value, at any depth, but for pictures.
pub(super) fn strings(value: Option<Raw<'_>>) -> Vec<Raw<'_>> {
    let is_picture = |key: &[u8]| matches!(key, b"base64" | b"data");
    value.map(|value| value.strings(is_picture).collect()).unwrap_or_default()
}
