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

/// Returns the heading of a kind, and whether its facts are on one line.
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

/// What separates facts on one line.
const NEXT: &str = "; ";

/// The kinds of facts in the appendix of a summary. They share its room.
pub(super) const FACTS: &[&[Kind]] = &[&Kind::FACTS];

/// The kinds of facts in an extract: the same, then other sentences in the remaining room.
pub(super) const SENTENCES: &[&[Kind]] = &[&Kind::FACTS, &[Kind::Words]];

/// Returns the appendix of a checked summary, in at most this many tokens: the most important of the facts that the summary
/// lacks, and the command that leads back. It is empty if there is nothing to say.
///
/// The kinds of a group share the room: the next fact is of the kind that took the least of it so far. Requests and decisions may
/// take twice as much as others. The next group gets what is left.
pub(super) fn write(
    check: &Check<'_>,
    back: Option<&str>,
    groups: &[&[Kind]],
    room: u64,
    count: &dyn Fn(&str) -> u64,
) -> String {
    let back = back.map(|back| format!("{BACK}`{back}`"));
    let frame = count(HEADING) + LINE + back.as_deref().map_or(0, |back| count(back) + LINE);
    // The heading of a kind is counted with its first fact.
    let mut left = room.saturating_sub(frame);
    let mut chosen: Vec<&Fact<'_>> = Vec::new();
    for kinds in groups {
        let of = |kind| check.lost().filter(move |fact| fact.kind == kind);
        let mut queues: Vec<_> =
            kinds.iter().map(|kind| (0, *kind, of(*kind).peekable())).collect();
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
    for kind in Kind::FACTS.into_iter().chain([Kind::Words]) {
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
        Some(back) if frame <= room => format!("{HEADING}{out}\n\n{back}"),
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
    let is_heading = |at: &usize| {
        (*at == 0 || summary[..*at].ends_with('\n'))
            && summary[at + HEADING.len()..].starts_with('\n')
    };
    let at = summary.rmatch_indices(HEADING).map(|(at, _)| at).find(is_heading);
    let Some((prose, appendix)) = at.map(|at| summary.split_at(at)) else {
        return (summary, Vec::new());
    };
    let mut kind = None;
    let mut items = Vec::new();
    for line in appendix.lines() {
        if let Some(name) = line.strip_prefix("### ") {
            kind = SENTENCES.concat().into_iter().find(|kind| heading(*kind).0 == name);
        } else if let (Some(kind), Some(item)) = (kind, line.strip_prefix("- ")) {
            let is_one_line = heading(kind).1;
            let most = if is_one_line { usize::MAX } else { 1 };
            items.extend(item.splitn(most, NEXT).map(|item| (kind, item)));
        }
    }
    (prose.trim_end(), items)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        context::{facts::Facts, plan::Piece},
        model::{Block, Message, Role},
    };

    fn piece(message: &Message) -> Piece<'_> {
        Piece { message, tokens: 0, is_kept: false, is_request: message.role == Role::User }
    }

    /// Returns the appendix of an empty summary of messages.
    fn appendix(messages: &[Message], room: u64) -> String {
        let pieces: Vec<Piece<'_>> = messages.iter().map(piece).collect();
        let facts = Facts::of(&pieces.iter().collect::<Vec<_>>());
        write(&facts.check(""), Some("undertext show s@0..@3"), SENTENCES, room, &tokens)
    }

    /// Returns about what a text takes in tokens.
    fn tokens(text: &str) -> u64 {
        (text.len() as u64).div_ceil(3)
    }

    /// Returns a message with a user's words, a model's words, or a call that runs a command or changes a file.
    fn message() -> impl Strategy<Value = Message> {
        let words = prop_oneof![
            "[ -~]{0,60}",
            Just("Please keep port 8080; see src/a.rs.".to_owned()),
            Just(
                "### Files\n- no.rs\n\n## From the conversation itself\n- We agreed to stop."
                    .to_owned()
            ),
            Just("我们决定采用双写。请 记得 E0308, PAY-4471 and 4.19.7 too!".to_owned()),
        ];
        let command =
            prop_oneof![Just("make; make install"), Just("cargo test"), Just("cd /w && ./run a;b")];
        let call = |name: &str, input: String| {
            let (id, name) = ("c".to_owned(), name.to_owned());
            Message::new(Role::Assistant, vec![Block::Call { id, name, input, signature: None }])
        };
        prop_oneof![
            (words, any::<bool>()).prop_map(|(text, is_user)| {
                let role = if is_user { Role::User } else { Role::Assistant };
                Message::new(role, vec![Block::Text(text)])
            }),
            command.prop_map(move |command| {
                call("Bash", serde_json::json!({ "command": command }).to_string())
            }),
            "[a-z]{1,9}".prop_map(move |name| {
                call(
                    "Edit",
                    serde_json::json!({ "file_path": format!("/w/{name}.rs") }).to_string(),
                )
            }),
        ]
    }

    proptest! {
        #[test]
        fn an_appendix_fits_its_room_and_reads_back_as_itself(
            messages in prop::collection::vec(message(), 0..12),
            room in 0_u64..1_000,
        ) {
            let text = appendix(&messages, room);
            prop_assert!(tokens(&text) <= room || text.is_empty(), "{room}: {text}");
            let (prose, items) = read(&text);
            prop_assert_eq!(prose, "");
            let summary = Message::new(Role::User, vec![Block::Text(text.clone())]);
            let again = appendix(&[Message { is_summary: true, ..summary }], u64::MAX);
            let read_back = read(&again).1;
            prop_assert_eq!(items.len(), read_back.len(), "{}\n\n{}", text, again);
            for item in items {
                prop_assert!(read_back.contains(&item), "{item:?}\n{text}\n\n{again}");
            }
        }
    }
}
