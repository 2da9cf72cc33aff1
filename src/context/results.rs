//! Truncates results for one request: each to a limit, and all of them to a share of the window.
//!
//! Nothing is persisted; the named entry still contains every part. A result that an earlier request contained keeps
//! the form it had there if the others free enough room, because a provider's cache ends at the first change.
//!
//! Invariant: no result disappears or becomes empty, and no other message is changed.

use super::{
    Act, Change, Item, Step,
    cut::{self, Bound, Fate, KEPT, Limit, Rest, Weight},
};
use crate::model::{Block, EntryNumber, Message, Role};

/// How to truncate results for one request.
pub struct Cutting<'a> {
    /// Which results are truncated, and how far.
    pub bound: &'a Bound,
    /// How many characters all results may have together.
    pub share: usize,
    /// The session's id.
    pub session: &'a str,
    /// Returns a prefix of an entry's id.
    pub name: &'a dyn Fn(EntryNumber) -> String,
}

impl Cutting<'_> {
    /// Returns how many characters all results of a request may have: three quarters of the window, at four characters per token.
    pub fn share_of(window: u64) -> usize {
        usize::try_from(u128::from(window) * 3).unwrap_or(usize::MAX).max(1024)
    }
}

/// Truncates each chosen result that exceeds the limit.
pub(super) fn cut(items: &mut [Item], cutting: &Cutting<'_>, changes: &mut Vec<Change>) {
    let Some(limit) = cutting.bound.limit else { return };
    let why = match limit {
        Limit::CLEARED => "it is cleared".to_owned(),
        _ => format!("it has more than {} characters", limit.chars()),
    };
    let chosen = cutting.bound.choose(items);
    for item in items {
        let is_chosen =
            item.entry().is_some_and(|entry| item.results().all(|call| chosen.has(entry, &call)));
        if is_chosen && shorten(item, limit, cutting) {
            changes.push(change(item, &why));
        }
    }
}

/// Shortens results until all of them fit into their share.
pub(super) fn fit(items: &mut [Item], cutting: &Cutting<'_>, changes: &mut Vec<Change>) {
    let answered = items.iter().rposition(|item| item.role() == Role::Assistant);
    let chars = items.iter().map(chars).enumerate();
    let held: Vec<(usize, usize)> = chars.filter(|(_, chars)| *chars > 0).collect();
    let weigh = |&(at, chars): &(usize, usize)| Weight {
        chars,
        // The messages before an answer were part of the request that it answers.
        sent: answered.is_some_and(|answered| at < answered),
    };
    let weights: Vec<Weight> = held.iter().map(weigh).collect();
    let why = "all results together exceed their share of the window";
    for ((at, _), fate) in held.into_iter().zip(cut::guard(&weights, cutting.share)) {
        let item = &mut items[at];
        let is_changed = match fate {
            Fate::Stays => false,
            Fate::Cut => shorten(item, Limit::of_chars(KEPT), cutting),
            Fate::Absent => leave_out(item, cutting),
        };
        if is_changed {
            changes.push(change(item, why));
        }
    }
}

fn change(item: &Item, why: &str) -> Change {
    Change { step: Step::Cut, act: Act::Cut, entries: item.entries.clone(), why: why.into() }
}

/// Returns the texts of a message's results.
fn texts(message: &mut Message) -> Vec<&mut String> {
    let results = message.blocks.iter_mut().filter_map(|block| match block {
        Block::Result { blocks, .. } => Some(blocks),
        _ => None,
    });
    let texts = results.flatten().filter_map(|block| match block {
        Block::Text(text) => Some(text),
        _ => None,
    });
    texts.collect()
}

/// Returns the number of characters in an item's results.
fn chars(item: &Item) -> usize {
    if !item.has_results() {
        return 0;
    }
    let message = item.message();
    let results = message.blocks.iter().filter_map(|block| match block {
        Block::Result { blocks, .. } => Some(blocks),
        _ => None,
    });
    let length = |block: &Block| match block {
        Block::Text(text) => text.chars().count(),
        _ => 0,
    };
    results.flatten().map(length).sum()
}

/// Truncates an item's results to a limit, and returns true if that changed them.
fn shorten(item: &mut Item, limit: Limit, cutting: &Cutting<'_>) -> bool {
    let Some(entry) = item.entry().filter(|_| item.has_results()) else { return false };
    let mut message = item.message().into_owned();
    let mut texts = texts(&mut message);
    // A character takes at least one byte.
    if texts.iter().map(|text| text.len()).sum::<usize>() <= limit.chars() {
        return false;
    }
    let rest = (cutting.name)(entry);
    let rest = Rest { session: cutting.session, entry: &rest };
    let whole: Vec<&str> = texts.iter().map(|text| text.as_str()).collect();
    let cuts = cut::texts(&whole, limit, rest);
    let is_cut = cuts.iter().any(Option::is_some);
    for (text, cut) in texts.iter_mut().zip(cuts) {
        if let Some(cut) = cut {
            **text = cut.shown(text);
        }
    }
    if is_cut {
        item.set(message);
        item.tokens = None;
    }
    is_cut
}

/// Replaces an item's results with a short text, and returns true if that changed them.
fn leave_out(item: &mut Item, cutting: &Cutting<'_>) -> bool {
    let Some(entry) = item.entry() else { return false };
    let whole = chars(item);
    let rest = (cutting.name)(entry);
    let words = cut::absence(whole, Rest { session: cutting.session, entry: &rest });
    item.change(|message| {
        for block in &mut message.blocks {
            if let Block::Result { blocks, .. } = block {
                blocks.retain(|block| !matches!(block, Block::Text(_)));
                blocks.insert(0, Block::Text(words.clone()));
            }
        }
    });
    item.tokens = None;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(entry: u64, chars: usize) -> Item {
        let block = Block::answer(format!("c{entry}"), "x".repeat(chars));
        Item::said(Message::new(Role::Tool, vec![block]), EntryNumber::new(entry))
    }

    fn said(entry: u64) -> Item {
        Item::said(
            Message::new(Role::Assistant, vec![Block::Text("so".into())]),
            EntryNumber::new(entry),
        )
    }

    fn lengths(items: &[Item]) -> Vec<usize> {
        items.iter().map(chars).collect()
    }

    fn cutting(bound: &Bound, share: usize) -> Cutting<'_> {
        let name = &|entry: EntryNumber| format!("{entry:012}");
        Cutting { bound, share, session: "s", name }
    }

    #[test]
    fn a_result_over_the_limit_is_cut_and_names_its_entry() {
        let mut items = vec![result(1, 5_000), said(2), result(3, 2_500)];
        let mut changes = Vec::new();
        let limit = Bound::of(Limit::of_chars(4_000));
        cut(&mut items, &cutting(&limit, usize::MAX), &mut changes);
        assert!((2_000..=4_000).contains(&lengths(&items)[0]), "{:?}", lengths(&items));
        assert_eq!(lengths(&items)[2], 2_500);
        assert_eq!(changes.len(), 1);
        assert_eq!(*changes[0].entries, [1]);
        assert!(items[0].message().text().is_empty(), "what is cut is a result");
        // Once more changes nothing.
        let before = items.clone();
        cut(&mut items, &cutting(&limit, usize::MAX), &mut changes);
        assert_eq!(items, before);
    }

    #[test]
    fn a_cleared_result_keeps_nothing_and_a_short_one_stays() {
        let mut items = vec![result(1, 5_000), said(2), result(3, 100), result(4, 900)];
        let cleared = Bound { keep_last: 1, ..Bound::of(Limit::CLEARED) };
        let mut changes = Vec::new();
        cut(&mut items, &cutting(&cleared, usize::MAX), &mut changes);
        assert!(lengths(&items)[0] < 200, "{:?}", lengths(&items));
        assert_eq!(lengths(&items)[2..], [100, 900]);
        assert_eq!(
            changes.iter().map(|change| &*change.why).collect::<Vec<_>>(),
            ["it is cleared"]
        );
    }

    #[test]
    fn what_was_sent_before_stays_as_long_as_the_new_gives_way() {
        let all = || vec![result(1, 9_000), said(2), result(3, 9_000), result(4, 9_000)];
        let mut items = all();
        fit(&mut items, &cutting(&Bound::default(), 15_000), &mut Vec::new());
        assert_eq!(lengths(&items)[0], 9_000);
        assert!(lengths(&items)[2] < 3_000 && lengths(&items)[3] < 3_000);
        let mut items = all();
        fit(&mut items, &cutting(&Bound::default(), 6_000), &mut Vec::new());
        assert!(lengths(&items)[0] < 300, "the oldest is left out: {:?}", lengths(&items));
        let mut items = all();
        fit(&mut items, &cutting(&Bound::default(), 27_000), &mut Vec::new());
        assert_eq!(lengths(&items), lengths(&all()));
    }
}
