//! The extract: a summary made of counts and quotes, without a model.
//!
//! It contains statistics, the model's last message and the unfinished calls. Everything else is in its appendix (`appendix.rs`),
//! which may use all the room that is left. An extract of extracts does not grow, because the sections of earlier ones are merged.
//! Summaries by other writers are quoted as long as there is room.

use std::{collections::BTreeMap, fmt::Write as _};

use crate::{
    context::{appendix, facts::Facts, plan::Piece, prompt},
    model::{Block, Message, Role},
};

/// The name of the extract in metadata.
pub const NAME: &str = "extract";

/// The headings.
const STATISTICS: &str = "Statistics";
const WORDS: &str = "Last words";
const UNFINISHED: &str = "Unfinished calls";
const EARLIER: &str = "Earlier";

/// The beginning of an extract that replaces a failed summary.
const FAILED: &str = "No summary could be written: ";

/// The text after the first number of the statistics.
const NOT_SHOWN: &str = " messages are not shown: ";

/// How many characters of the model's last message are quoted.
const LAST_WORDS: usize = 1_500;

/// How many unfinished calls are listed.
const N_CALLS: usize = 10;

/// How many characters of earlier summaries are quoted. An extract of extracts must not grow without bound.
const MAX_EARLIER: usize = 32_000;

/// The material of an extract.
#[derive(Clone, Copy)]
pub struct Quarry<'a> {
    /// The messages that it replaces.
    pub pieces: &'a [&'a Piece<'a>],
    /// Their facts, and those of earlier summaries.
    pub facts: &'a Facts<'a>,
    /// The earlier summaries.
    pub earlier: &'a [String],
    /// The command that shows the messages.
    pub back: Option<&'a str>,
}

/// Summarises messages and the summaries before them, in at most `most` tokens if possible. It replaces a summary that could not
/// be written if `failed` says why.
pub fn extract(
    quarry: &Quarry<'_>,
    failed: Option<&str>,
    most: u64,
    count: &dyn Fn(&str) -> u64,
) -> String {
    let messages: Vec<&Message> = quarry.pieces.iter().map(|piece| piece.message).collect();
    let before = Before::of(quarry.earlier);
    let section = |name, text: String| (!text.is_empty()).then_some((name, text));
    let sections = [
        Some((STATISTICS, statistics(&messages, before.messages))),
        section(WORDS, last_words(&messages, &before)),
        section(UNFINISHED, unfinished(&messages, &before).join("\n")),
        section(EARLIER, before.others),
    ];
    let sections: Vec<_> = sections.into_iter().flatten().collect();
    let failed = failed.map(|why| format!("{FAILED}{}\n\n", prompt::clip(why, 500)));
    // At least half of the room is for the appendix. Drop the last section first. Earlier summaries are not repeated anywhere
    // else, so shorten them before dropping them.
    let mut n = sections.len();
    let mut share = MAX_EARLIER;
    let head = loop {
        let mut out = failed.clone().unwrap_or_default();
        for (nth, (name, text)) in sections.iter().take(n).enumerate() {
            let text =
                if *name == EARLIER { quoted(&prompt::clip(text, share)) } else { text.clone() };
            let _ = write!(out, "{}## {name}\n{text}", if nth == 0 { "" } else { "\n\n" });
        }
        if n <= 1 || count(&out) <= most / 2 {
            break out;
        }
        let is_earlier = sections.get(n - 1).is_some_and(|(name, _)| *name == EARLIER);
        if is_earlier && share > 250 {
            share /= 2;
        } else {
            n -= 1;
        }
    };
    let room = most.saturating_sub(count(&head) + 1);
    let check = quarry.facts.check(&head);
    appendix::join(&head, &appendix::write(&check, quarry.back, appendix::SENTENCES, room, count))
}

/// The earlier summaries: the merged sections of extracts, and what other writers said. Appendices are among the facts.
#[derive(Default)]
struct Before {
    /// How many messages they replace, as far as they say it.
    messages: u64,
    /// The model's last message.
    words: Option<String>,
    /// The unanswered calls, oldest first.
    unfinished: Vec<String>,
    /// Other writers' summaries, newest first, because the end is cut.
    others: String,
}

impl Before {
    fn of(earlier: &[String]) -> Self {
        let mut before = Self::default();
        let mut others = Vec::new();
        for text in earlier {
            let (prose, _) = appendix::read(text);
            let Some(mut sections) = sections(prose) else {
                others.insert(0, prose.trim().to_owned());
                continue;
            };
            if let Some((own, other)) = sections.split_once("\n\n## Earlier\n") {
                sections = own;
                others.insert(0, unquoted(other.trim()));
            }
            let mut sections = sections.split("\n\n## ");
            let statistics = sections.next().unwrap_or_default();
            let numbers = ["", "stand for "].map(|words| {
                let digits = statistics.split_once(words).map_or("", |(_, behind)| behind);
                digits
                    .split(|c: char| !c.is_ascii_digit())
                    .next()
                    .unwrap_or_default()
                    .parse()
                    .unwrap_or(0)
            });
            before.messages = numbers.into_iter().fold(before.messages, u64::saturating_add);
            for section in sections {
                let Some((name, whole)) = section.split_once('\n') else { continue };
                let text = whole.strip_prefix("- ").unwrap_or(whole);
                match name {
                    WORDS => before.words = Some(unquoted(whole)),
                    UNFINISHED => before.unfinished.extend(text.split("\n- ").map(unquoted)),
                    _ => {}
                }
            }
        }
        before.others = prompt::clip(&others.join("\n\n"), MAX_EARLIER);
        before
    }
}

/// Returns a summary without the statistics of an extract.
pub(super) fn told(summary: &str) -> &str {
    let behind = |statistics: &'_ str| statistics.find("\n\n");
    match sections(summary) {
        Some(own) => behind(own).and_then(|at| own.get(at..)).unwrap_or_default(),
        None => summary,
    }
}

/// Returns an extract, or the fallback for a failed summary, from its statistics on; None for a summary by another writer.
fn sections(summary: &str) -> Option<&str> {
    let (before, statistics) = summary.split_once("## Statistics\n")?;
    let is_first = before.is_empty() || before.starts_with(FAILED) && before.ends_with("\n\n");
    let behind = statistics.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_counted = behind.len() < statistics.len() && behind.starts_with(NOT_SHOWN);
    (is_first && is_counted).then_some(statistics)
}

/// Quotes a text in an extract: lines after the first are indented, so that none looks like a heading or an item.
fn quoted(words: &str) -> String {
    words.replace('\n', "\n  ")
}

/// Returns the text that an extract quotes. Text from an extract that did not indent is returned unchanged.
fn unquoted(words: &str) -> String {
    let is_indented = words.split('\n').skip(1).all(|line| line.starts_with("  "));
    if is_indented { words.replace("\n  ", "\n") } else { words.to_owned() }
}

fn statistics(messages: &[&Message], before: u64) -> String {
    let n = |role| messages.iter().filter(|message| message.role == role).count();
    let mut calls: BTreeMap<&str, usize> = BTreeMap::new();
    let mut n_failed = 0;
    for block in messages.iter().flat_map(|message| &message.blocks) {
        match block {
            Block::Call { name, .. } => *calls.entry(name).or_default() += 1,
            Block::Result { error: true, .. } => n_failed += 1,
            _ => {}
        }
    }
    let mut out = format!(
        "{}{NOT_SHOWN}{} of the user, {} of the model, {} of tools.",
        messages.len(),
        n(Role::User),
        n(Role::Assistant),
        n(Role::Tool)
    );
    if !calls.is_empty() {
        let mut calls: Vec<(&str, usize)> = calls.into_iter().collect();
        calls.sort_by_key(|(name, n)| (std::cmp::Reverse(*n), *name));
        let total: usize = calls.iter().map(|(_, n)| n).sum();
        let named: Vec<String> = calls
            .iter()
            .take(N_CALLS)
            .map(|(name, n)| format!("{} {n}", prompt::clip(name, 60)))
            .collect();
        let _ =
            write!(out, " {total} tool calls, {n_failed} of them failed: {}.", named.join(", "));
    }
    if before > 0 {
        let _ = write!(out, " The summaries before this one stand for {before} more.");
    }
    out
}

/// Returns the model's last message, or that of an earlier summary if there is none since.
fn last_words(messages: &[&Message], before: &Before) -> String {
    let said = messages.iter().rev().filter(|message| message.role == Role::Assistant);
    let last = said.map(|message| message.text()).find(|text| !text.trim().is_empty());
    let last = last.or_else(|| before.words.clone());
    last.map(|text| quoted(&prompt::clip(text.trim(), LAST_WORDS))).unwrap_or_default()
}

/// Returns the last unanswered calls, after those of earlier summaries, which can no longer be answered.
fn unfinished(messages: &[&Message], before: &Before) -> Vec<String> {
    // Ids are unique except in broken sessions. There, the newest call is the one that is answered.
    let mut open: BTreeMap<usize, (&str, &str)> = BTreeMap::new();
    let mut newest: BTreeMap<&str, usize> = BTreeMap::new();
    for (nth, block) in messages.iter().flat_map(|message| &message.blocks).enumerate() {
        match block {
            Block::Call { id, name, input, .. } => {
                open.insert(nth, (name, input));
                newest.insert(id, nth);
            }
            Block::Result { id, .. } => {
                newest.remove(id.as_str()).and_then(|call| open.remove(&call));
            }
            _ => {}
        }
    }
    let new = open.values().map(|(name, input)| format!("{name} {}", prompt::clip(input, 200)));
    let all: Vec<String> = before.unfinished.iter().cloned().chain(new).collect();
    let last = all.iter().skip(all.len().saturating_sub(N_CALLS));
    last.map(|call| format!("- {}", quoted(call))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::facts::Kind;

    fn says(role: Role, text: &str) -> Message {
        Message::new(role, vec![Block::Text(text.to_owned())])
    }

    fn call(id: &str, name: &str, input: &str) -> Message {
        let call = Block::Call {
            id: id.to_owned(),
            name: name.to_owned(),
            input: input.to_owned(),
            signature: None,
        };
        Message::new(Role::Assistant, vec![call])
    }

    fn pieces(messages: &[Message]) -> Vec<Piece<'_>> {
        let piece = |message| Piece {
            message,
            tokens: 0,
            is_kept: false,
            is_request: message.role == Role::User,
        };
        messages.iter().map(piece).collect()
    }

    /// Returns the extract of messages of which the user's are the person's own.
    fn extracted(messages: &[Message], earlier: &[String], most: u64) -> String {
        of_pieces(&pieces(messages), earlier, None, most)
    }

    fn of_pieces(
        pieces: &[Piece<'_>],
        earlier: &[String],
        failed: Option<&str>,
        most: u64,
    ) -> String {
        let summary =
            |text: &String| Message { is_summary: true, ..says(Role::User, &prompt::wrap(text)) };
        let summaries: Vec<Message> = earlier.iter().map(summary).collect();
        let before = super::tests::pieces(&summaries);
        let all: Vec<&Piece<'_>> = before.iter().chain(pieces).collect();
        let facts = Facts::of(&all);
        let pieces: Vec<&Piece<'_>> = pieces.iter().collect();
        let quarry = Quarry { pieces: &pieces, facts: &facts, earlier, back: None };
        extract(&quarry, failed, most, &bytes)
    }

    fn bytes(text: &str) -> u64 {
        text.len() as u64 / 4
    }

    #[test]
    fn it_counts_and_quotes() {
        let messages = [
            says(Role::User, "Mend the build."),
            call("1", "Edit", r#"{"file_path":"/w/a.rs"}"#),
            Message::new(Role::Tool, vec![Block::failure("1".to_owned(), "no".to_owned())]),
            says(Role::Assistant, "It is mended."),
            call("2", "Bash", r#"{"command":"make"}"#),
        ];
        let earlier = ["Before, all was well.".to_owned()];
        let text = extracted(&messages, &earlier, 10_000);
        insta::assert_snapshot!(text, @r#"
        ## Statistics
        5 messages are not shown: 1 of the user, 3 of the model, 1 of tools. 2 tool calls, 1 of them failed: Bash 1, Edit 1.

        ## Last words
        It is mended.

        ## Unfinished calls
        - Bash {"command":"make"}

        ## Earlier
        Before, all was well.

        ## From the conversation itself
        ### Requests
        - Mend the build.
        ### Files
        - /w/a.rs (changed)
        ### Failed calls
        - /w/a.rs: no
        "#);
        let text = extracted(&messages, &earlier, 1);
        assert!(text.starts_with("## Statistics") && !text.contains("## Last"), "{text}");
        let failed = of_pieces(&pieces(&messages), &earlier, Some("the model is away"), 10_000);
        assert!(failed.starts_with("No summary could be written: the model is away\n\n## Stat"));
        assert!(failed.contains("### Requests\n- Mend the build."), "{failed}");
    }

    #[test]
    fn what_an_extract_says_of_the_end_is_carried_on() {
        let words = "- Half of it is done.\n- The rest is not.";
        let first = [call("1", "Bash", r#"{"command":"make all"}"#), says(Role::Assistant, words)];
        let first = extracted(&first, &[], 10_000);
        let again = extracted(&[says(Role::User, "Go on.")], &[first], 10_000);
        assert!(
            again.contains("## Last words\n- Half of it is done.\n  - The rest is not."),
            "{again}"
        );
        let more = [call("2", "Bash", "{}"), says(Role::Assistant, "All of it is done.")];
        let last = extracted(&more, &[again], 10_000);
        assert!(last.contains("## Last words\nAll of it is done.\n"), "{last}");
        let calls = "## Unfinished calls\n- Bash {\"command\":\"make all\"}\n- Bash {}";
        assert!(last.contains(calls), "{last}");
    }

    #[test]
    fn an_extract_of_extracts_does_not_grow() {
        let round = |n: usize| -> Vec<Message> {
            let request = |nth| says(Role::User, &format!("request {n}.{nth} {}", "x".repeat(100)));
            let path = |nth| format!(r#"{{"file_path":"/w/{n}.{nth}.rs"}}"#);
            (0..20).flat_map(|nth| [request(nth), call("1", "Edit", &path(nth))]).collect()
        };
        let mut text = String::new();
        for n in 0..30 {
            let earlier: Vec<String> = (n > 0).then_some(text).into_iter().collect();
            text = extracted(&round(n), &earlier, 2_000);
            assert!(bytes(&text) <= 2_000, "{n}: {}", text.len());
        }
        for said in ["request 29.19 x", "request 29.5 x", "stand for 1160 more", "/w/29.19.rs"] {
            assert!(text.contains(said), "{said}: {text}");
        }
        let headings: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).collect();
        let mut once = headings.clone();
        once.dedup();
        assert_eq!(headings, once, "{text}");
    }

    #[test]
    fn quoted_words_are_read_back_as_they_were_said() {
        let request =
            "- Mend this:\n\n## Last words\n- the roof\n### Files\n- its tiles\n\n\n- the door";
        let summary = "Well.\n\n## Statistics\n5 ships.\n\n## Earlier\n- one\n- two";
        let mut messages = vec![says(Role::User, request); 7];
        messages.push(says(Role::Assistant, "It is.\n\n## Files\n- no.rs\n\n## Earlier\nNothing."));
        messages.push(call("1", "Write", "{\n\n## Earlier\n}"));
        let mut text = extracted(&messages, &[summary.to_owned()], u64::MAX);
        let one_line = request.split_whitespace().collect::<Vec<_>>().join(" ");
        for _ in 0..3 {
            let before = Before::of(&[text.clone()]);
            assert_eq!(before.others, summary);
            let (_, facts) = appendix::read(&text);
            let requests = facts.iter().filter(|(kind, _)| *kind == Kind::Requests);
            assert_eq!(requests.map(|(_, line)| *line).collect::<Vec<_>>(), [one_line.as_str()]);
            text = extracted(&[], &[text], u64::MAX);
        }
    }

    #[test]
    fn counts_of_earlier_summaries_are_summed_to_the_largest() {
        let most = u64::MAX;
        let earlier = format!(
            "## Statistics\n{most} messages are not shown: 0 of the user, 0 of the model, 0 of tools. The summaries \
             before this one stand for {most} more."
        );
        let text = extracted(&[], &[earlier.clone(), earlier], u64::MAX);
        assert!(text.ends_with(&format!("stand for {most} more.")), "{text}");
    }

    #[test]
    fn another_writers_summary_with_statistics_is_carried_on_whole() {
        let counted =
            "## Statistics\n5 messages are not shown: 1 of the user, 3 of the model, 1 of tools.";
        for summary in [
            format!("## Goal\nShip it.\n\n{counted}\n\n## Next\nTest it."),
            "## Statistics\nNo figures yet.\n\n## Next\nTest it.".to_owned(),
            "Some words.\n\n## Statistics\n5 ships.".to_owned(),
        ] {
            let before = Before::of(std::slice::from_ref(&summary));
            assert_eq!((before.messages, before.others), (0, summary));
        }
        let failed = of_pieces(&[], &[counted.to_owned()], Some("gone\n\nand gone"), u64::MAX);
        assert_eq!(Before::of(&[failed]).messages, 5);
    }

    #[test]
    fn the_persons_own_requests_are_quoted_and_another_writers_summary_is_carried_on() {
        let messages = [says(Role::User, "Mend it."), says(Role::User, "Base directory: a skill")];
        let mut pieces = pieces(&messages);
        pieces[1].is_request = false;
        let earlier = ["The model's summary.".to_owned()];
        let text = of_pieces(&pieces, &earlier, None, u64::MAX);
        assert!(text.contains("Mend it.") && !text.contains("a skill"), "{text}");
        let again = of_pieces(&pieces, &[text], None, u64::MAX);
        assert_eq!(again.matches("The model's summary.").count(), 1, "{again}");
        let failed = of_pieces(&pieces, &[again], Some("gone"), u64::MAX);
        assert_eq!(failed.matches("The model's summary.").count(), 1, "{failed}");
        assert!(of_pieces(&pieces, &[failed], None, u64::MAX).contains("stand for 6 more"));
    }
}
