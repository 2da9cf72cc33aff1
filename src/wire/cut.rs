//! Cutting records: the texts of tools' answers, edited where they stand.
//!
//! A format says where a record holds what a tool answered, and where the agent repeats it for itself; how much of a text
//! stays is the caller's rule.
//!
//! Invariant: every byte of a record that is in no cut text is kept.
//! Invariant: a cut text is, in its own spelling, a beginning of what it was, and the suffix.

use crate::{
    json::{self, Raw},
    model::Cut,
    wire::Format,
};

/// What a record holds of tools' answers.
#[derive(Clone, Debug, Default)]
pub struct Answers<'a> {
    /// What is sent to the model.
    pub sent: Vec<Answer<'a>>,
    /// Strings in which the agent keeps it for itself.
    pub beside: Vec<Raw<'a>>,
}

/// What one tool answered.
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
    string: Raw<'a>,
    /// If that string is JSON itself, the key under which it stands there.
    within: Option<&'static str>,
}

/// A record whose answers were cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortened {
    /// The line.
    pub line: Vec<u8>,
    /// What was cut of what is sent.
    pub cuts: Vec<CutText>,
}

/// A cut in one text of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutText {
    /// The call.
    pub call: String,
    /// Which text of the answer, from 0.
    pub text: usize,
    /// The cut.
    pub cut: Cut,
}

/// What an agent left out of a session by itself, as its record tells.
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
}

/// The ways in which agents leave something out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// A file holds what was too much.
    Filed,
    /// A text was cut.
    Cut,
    /// A summary stands in the place of the history.
    Compacted,
    /// Answers were taken out of the context.
    Cleared,
}

impl Earlier {
    /// Says in which way something was left out.
    pub(super) fn new(how: How) -> Self {
        Self { how, call: None, size: None, tokens: (None, None), file: None }
    }
}

/// Returns what is between two marks, the first that stand so.
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

    /// Returns an edit of the record that makes a cut.
    fn edit(self, record: &[u8], cut: &Cut) -> Option<Edit> {
        let start = self.string.span_in(record)?.start + 1;
        let raw = self.string.inner()?;
        let Some(key) = self.within else {
            let from = start + json::place_of(raw, cut.at);
            return Some(Edit { from, to: start + raw.len(), with: spelt(&cut.suffix) });
        };
        let text = self.string.text()?;
        let nested = Raw::object(text.as_bytes())?.get(key)?;
        let (inner, at) = (nested.inner()?, nested.span_in(text.as_bytes())?.start + 1);
        let place = |nested: usize| start + json::place_of(raw, at + nested);
        Some(Edit {
            from: place(json::place_of(inner, cut.at)),
            to: place(inner.len()),
            with: spelt(&spelt(&cut.suffix)),
        })
    }
}

/// Bytes of a record that are replaced.
struct Edit {
    from: usize,
    to: usize,
    with: String,
}

/// Returns a text as it stands between the quotes of a string.
fn spelt(text: &str) -> String {
    let quoted = json::quote(text);
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}

/// Says where texts are cut: those of one answer, and whether they are sent; None for each that stays as it is.
pub type Rule<'r> = dyn FnMut(&[&str], bool) -> Vec<Option<Cut>> + 'r;

/// Cuts what tools answered in a record; None if nothing is cut.
///
/// The rule is given the texts of one answer, and whether they are sent. What the agent keeps for itself is cut by the same rule, each string alone,
/// if anything that is sent is cut.
pub fn cut(format: &dyn Format, line: &[u8], rule: &mut Rule<'_>) -> Option<Shortened> {
    let answers = format.answers(Raw::object(line)?);
    let mut cuts = Vec::new();
    let mut edits = Vec::new();
    for answer in &answers.sent {
        let texts: Vec<String> = answer.texts.iter().map(|piece| piece.text()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        for ((text, piece), cut) in answer.texts.iter().enumerate().zip(rule(&texts, true)) {
            let Some(cut) = cut else { continue };
            edits.push(piece.edit(line, &cut)?);
            cuts.push(CutText { call: answer.call.clone(), text, cut });
        }
    }
    if cuts.is_empty() {
        return None;
    }
    for piece in answers.beside.into_iter().filter_map(Piece::new) {
        if let Some(Some(cut)) = rule(&[&piece.text()], false).pop() {
            edits.push(piece.edit(line, &cut)?);
        }
    }
    edits.sort_by_key(|edit| edit.from);
    let mut shortened = Vec::with_capacity(line.len());
    let mut at = 0;
    for edit in edits {
        shortened.extend_from_slice(line.get(at..edit.from)?);
        shortened.extend_from_slice(edit.with.as_bytes());
        at = edit.to;
    }
    shortened.extend_from_slice(line.get(at..)?);
    Some(Shortened { line: shortened, cuts })
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
