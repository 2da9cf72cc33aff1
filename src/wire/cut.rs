//! Cutting records: the texts of tools' answers, edited where they stand.
//!
//! A format says where a record holds a tool's answer, and where the agent repeats it for itself; the caller's rule
//! says how much of a text stays.
//!
//! Invariant: every byte of a record that is in no cut text is kept.
//! Invariant: a cut text is, in its own spelling, a beginning of the old text, and the suffix.

use crate::{
    json::{self, Raw},
    model::Cut,
    wire::{Piece, Read},
};

/// A record whose answers were cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortened {
    /// The line.
    pub line: Vec<u8>,
    /// The cuts in the texts that are sent.
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

impl Piece<'_> {
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

/// Returns a text as it is between the quotes of a string.
fn spelt(text: &str) -> String {
    let quoted = json::quote(text);
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}

/// Says where texts are cut: those of one answer, and whether they are sent; None for each that stays as it is.
pub type Rule<'r> = dyn FnMut(&[&str], bool) -> Vec<Option<Cut>> + 'r;

/// Cuts the tools' answers in a record; None if nothing is cut.
///
/// The rule is given the texts of one answer, and whether they are sent. Strings that the agent keeps for itself are
/// cut by the same rule, each alone, if a text that is sent is cut.
pub fn cut(format: &dyn Read, line: &[u8], rule: &mut Rule<'_>) -> Option<Shortened> {
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
