//! Shortening: cuts tool results to a limit, drops thinking, and counts what was cut.

use crate::{
    context::{cut, tokens},
    json::Raw,
    model::{CutOff, Cutting, EntryId, Resized},
    wire::{
        self, Format,
        cut::{CutText, Shortened},
    },
};

/// Returns the record of a cut for an origin.
pub(crate) fn cutting(tool: Option<String>, cuts: &[CutText], tokens: Resized) -> Cutting {
    let cut = |text: &CutText| CutOff {
        call: text.call.clone(),
        text: text.text as u64,
        whole: text.cut.whole as u64,
        kept: text.cut.kept as u64,
        suffix: text.cut.suffix.chars().count() as u64,
    };
    Cutting {
        tool,
        tokens_before: tokens.before,
        tokens_after: tokens.after,
        texts: cuts.iter().map(cut).collect(),
    }
}

/// The size of the tool results or the thinking in a line, before and after a cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// In characters.
    pub(crate) chars: Resized,
    /// In tokens, estimated.
    pub(crate) tokens: Resized,
}

/// Cuts the results in a line to a limit, except those of calls that are not chosen. Each cut text names the id of this entry,
/// which gives access to the rest.
pub(crate) fn shorten(
    session: &str,
    format: &dyn Format,
    line: &[u8],
    id: EntryId,
    limit: cut::Limit,
    is_chosen: &dyn Fn(&str) -> bool,
) -> Option<(Shortened, Sizes)> {
    let entry = format!("{id:.12}");
    let rest = cut::Rest { session, entry: &entry };
    let mut sizes = Sizes::default();
    let shortened = wire::cut::cut(format, line, &mut |texts, call| {
        if call.is_some_and(|call| !is_chosen(call)) {
            return vec![None; texts.len()];
        }
        let cuts = cut::texts(texts, limit, rest);
        // Lines without a cut are not counted.
        if call.is_some() && cuts.iter().any(Option::is_some) {
            for (text, cut) in texts.iter().zip(&cuts) {
                let shown = cut.as_ref().map(|cut| cut.shown(text));
                let left = shown.as_deref().unwrap_or(text);
                let chars = |text: &str| text.chars().count() as u64;
                let before = cut.as_ref().map_or_else(|| chars(text), |cut| cut.whole as u64);
                sizes.chars += Resized { before, after: chars(left) };
                let (before, after) = (tokens::estimate(text), tokens::estimate(left));
                sizes.tokens += Resized { before, after };
            }
        }
        cuts
    })?;
    Some((shortened, sizes))
}

/// Drops the thinking in a line, if the agent can resume without it.
pub(crate) fn without_thinking(format: &dyn Format, line: &[u8]) -> Option<(Shortened, Sizes)> {
    let shortened = wire::cut::without_thinking(format, line)?;
    let mut sizes = Sizes::default();
    for text in format.answers(Raw::object(line)?).thoughts() {
        sizes.chars.before += text.chars().count() as u64;
        sizes.tokens.before += tokens::estimate(&text);
    }
    Some((shortened, sizes))
}
