//! Truncates tool results inside a record, or removes thinking from it, without rewriting the rest of it.
//!
//! The format says where a record stores a tool result and where the agent repeats it for its own use. The caller's rule
//! says how much of each text stays.
//!
//! Invariant: a byte outside a truncated text, or outside a list that loses its thinking, never changes.
//! Invariant: a truncated text is a prefix of the old text, with its JSON escapes unchanged, followed by the suffix.

use crate::{
    json::{self, Raw},
    model::Cut,
    wire::{Piece, Read, answers::is_thinking},
};

/// A record with truncated tool results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortened {
    /// The line.
    pub line: Vec<u8>,
    /// The cuts in texts that are sent to the model.
    pub cuts: Vec<CutText>,
}

/// A cut in one text of a tool result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutText {
    /// The id of the call.
    pub call: String,
    /// The index of the text in the result, from 0.
    pub text: usize,
    /// The cut.
    pub cut: Cut,
}

impl Piece<'_> {
    /// Returns the edit of the record that makes this cut.
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

/// A replacement of some bytes of a record.
struct Edit {
    from: usize,
    to: usize,
    with: String,
}

/// Returns a text escaped as JSON, without the quotes.
fn spelt(text: &str) -> String {
    let quoted = json::quote(text);
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}

/// Decides where to cut the texts of one result. It gets the texts, and the id of the call if they are sent; None keeps a text
/// whole.
pub type Rule<'r> = dyn FnMut(&[&str], Option<&str>) -> Vec<Option<Cut>> + 'r;

/// Truncates the tool results in a record; None if nothing is cut.
///
/// The rule gets all texts of one result, with the id of the call. If it cuts a text that is sent, it is also applied to each
/// string that the agent stores for its own use, one at a time and without an id.
pub fn cut(format: &dyn Read, line: &[u8], rule: &mut Rule<'_>) -> Option<Shortened> {
    let answers = format.answers(Raw::object(line)?);
    let mut cuts = Vec::new();
    let mut edits = Vec::new();
    for answer in &answers.sent {
        let texts: Vec<String> = answer.texts.iter().map(|piece| piece.text()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        for ((text, piece), cut) in
            answer.texts.iter().enumerate().zip(rule(&texts, Some(&answer.call)))
        {
            let Some(cut) = cut else { continue };
            edits.push(piece.edit(line, &cut)?);
            cuts.push(CutText { call: answer.call.clone(), text, cut });
        }
    }
    if cuts.is_empty() {
        return None;
    }
    for piece in answers.beside.into_iter().filter_map(Piece::new) {
        if let Some(Some(cut)) = rule(&[&piece.text()], None).pop() {
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

/// Removes the thinking in a record from the list that contains it; None if there is none that the agent can do without.
pub fn without_thinking(format: &dyn Read, line: &[u8]) -> Option<Shortened> {
    let answers = format.answers(Raw::object(line)?);
    let span = answers.thinking?.span_in(line)?;
    let others: Vec<&[u8]> =
        answers.thinking?.items().filter(|b| !is_thinking(*b)).map(Raw::bytes).collect();
    let line = [line.get(..=span.start)?, &others.join(&b','), line.get(span.end - 1..)?].concat();
    let cut = |(text, thought): (usize, String)| {
        let cut = Cut { at: 0, kept: 0, whole: thought.chars().count(), suffix: String::new() };
        CutText { call: String::new(), text, cut }
    };
    let cuts: Vec<CutText> = answers.thoughts().into_iter().enumerate().map(cut).collect();
    (!cuts.is_empty()).then_some(Shortened { line, cuts })
}
