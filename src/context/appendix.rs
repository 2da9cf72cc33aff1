//! The appendix of a summary: facts in the conversation's own words, chosen by the meter and not by a model.
//!
//! Every summary ends with one, whoever wrote it. It holds what the summary itself does not say, and the command that shows what
//! the summary stands for. A later compaction reads it back, and its facts compete with new ones.
//!
//! Invariant: an appendix that is read back gives the facts that it was written from.

use std::fmt::Write as _;

use crate::context::facts::{Check, Fact, Kind};

/// The heading of an appendix.
const HEADING: &str = "## From the conversation itself";

/// The text after a file that was changed.
pub(super) const CHANGED: &str = " (changed)";

/// The beginning of the last line.
const BACK: &str = "To read the messages that this stands for: ";

/// The number of tokens of a line apart from its text.
const LINE: u64 = 2;

/// Returns the heading of a kind, and whether its facts stand in one line.
fn heading(kind: Kind) -> (&'static str, bool) {
    match kind {
        Kind::Requests => ("Requests", false),
        Kind::Decisions => ("Decisions", false),
        Kind::Plans => ("Still to do", false),
        Kind::Paths => ("Files", false),
        Kind::Failures => ("Failed calls", false),
        Kind::Commands => ("Commands", true),
        Kind::Numbers => ("Numbers", true),
        Kind::Identifiers => ("Names", true),
        Kind::Words => ("Also said", false),
    }
}

/// What separates facts in one line.
const NEXT: &str = "; ";

/// Returns the appendix of a checked summary, in at most this many tokens: the most important of the facts that the summary
/// lacks, and the command that leads back. It is empty if there is nothing to say.
///
/// The kinds share the room: the next fact is of the kind that took the least of it so far. Requests and decisions may take
/// twice as much as others. Other words, if wanted at all, take what is left.
pub(super) fn write(
    check: &Check<'_>,
    back: Option<&str>,
    wants_words: bool,
    room: u64,
    count: &dyn Fn(&str) -> u64,
) -> String {
    let back = back.map(|back| format!("{BACK}`{back}`"));
    let end = back.as_deref().map_or(0, |back| count(back) + LINE);
    // Headings are counted with the first fact under each.
    let mut left = room.saturating_sub(end + count(HEADING) + LINE);
    let mut chosen: Vec<&Fact<'_>> = Vec::new();
    for takes_words in [false, true] {
        if takes_words && !wants_words {
            break;
        }
        let kinds = Kind::ALL.into_iter().filter(|kind| (*kind == Kind::Words) == takes_words);
        let of = |kind| check.lost().filter(move |fact| fact.kind == kind);
        let mut queues: Vec<_> = kinds.map(|kind| (0, kind, of(kind).peekable())).collect();
        loop {
            queues.retain_mut(|(_, _, facts)| facts.peek().is_some());
            let next = queues.iter_mut().min_by_key(|(spent, kind, _)| (*spent, *kind));
            let Some((spent, kind, facts)) = next else { break };
            let Some(fact) = facts.next() else { break };
            let (name, _) = heading(*kind);
            let head = if *spent == 0 { count(name) + 2 * LINE } else { 0 };
            let tokens = count(&fact.line) + LINE + head;
            if tokens <= left {
                left -= tokens;
                let weight = if matches!(kind, Kind::Requests | Kind::Decisions) { 1 } else { 2 };
                *spent += tokens * weight;
                chosen.push(fact);
            } else if left < 8 * LINE {
                break;
            }
        }
    }
    let mut out = String::new();
    for kind in Kind::ALL {
        let mut facts: Vec<_> = chosen.iter().filter(|fact| fact.kind == kind).collect();
        if facts.is_empty() {
            continue;
        }
        facts.sort_by_key(|fact| fact.at);
        let (name, is_one_line) = heading(kind);
        let _ = write!(out, "\n### {name}");
        let lead = |nth| if is_one_line && nth > 0 { NEXT } else { "\n- " };
        for (nth, fact) in facts.into_iter().enumerate() {
            let _ = write!(out, "{}{}", lead(nth), fact.line);
        }
    }
    match back {
        Some(back) if end <= room => format!("{HEADING}{out}\n\n{back}"),
        _ if out.is_empty() => out,
        _ => format!("{HEADING}{out}"),
    }
}

/// Adds an appendix to a summary.
pub(super) fn join(summary: &str, appendix: &str) -> String {
    let between = if summary.is_empty() || appendix.is_empty() { "" } else { "\n\n" };
    format!("{summary}{between}{appendix}")
}

/// Splits a summary into what its writer said and the facts of its appendix, in its order.
pub(super) fn read(summary: &str) -> (&str, Vec<(Kind, &str)>) {
    let split = summary.rsplit_once(HEADING).filter(|(before, behind)| {
        (before.is_empty() || before.ends_with('\n')) && behind.starts_with('\n')
    });
    let Some((prose, appendix)) = split else { return (summary, Vec::new()) };
    let mut kind = None;
    let mut items = Vec::new();
    for line in appendix.lines() {
        if let Some(name) = line.strip_prefix("### ") {
            kind = Kind::ALL.into_iter().find(|kind| heading(*kind).0 == name);
        } else if let (Some(kind), Some(item)) = (kind, line.strip_prefix("- ")) {
            let is_one_line = heading(kind).1;
            let most = if is_one_line { usize::MAX } else { 1 };
            items.extend(item.splitn(most, NEXT).map(|item| (kind, item)));
        }
    }
    (prose.trim_end(), items)
}
