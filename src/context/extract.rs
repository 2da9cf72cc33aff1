//! The extract: a summary made of counts and quotes, without a model.
//!
//! It lists the user's first request and the last ones, the files that were worked on and the unfinished calls. An
//! earlier extract is not quoted but merged section by section, so that extracts of extracts do not grow. A summary by
//! another writer is quoted as long as there is room.

use std::{collections::BTreeMap, fmt::Write as _};

use crate::{
    context::{files, plan::Piece, prompt},
    model::{Block, Message, Role},
};

/// The name of the extract in metadata.
pub const NAME: &str = "extract";

/// The headings.
const STATISTICS: &str = "Statistics";
const FIRST: &str = "First request";
const LAST: &str = "Last requests";
const BEFORE: &str = "Requests before these";
const WORDS: &str = "Last words";
const FILES: &str = "Files";
const UNFINISHED: &str = "Unfinished calls";
const EARLIER: &str = "Earlier";

/// The beginning of the fallback for a failed summary.
const FAILED: &str = "No summary could be written: ";

/// The text after the first number of the statistics.
const NOT_SHOWN: &str = " messages are not shown: ";

/// How many requests are quoted.
const REQUESTS: usize = 5;

/// How many characters of each.
const REQUEST: usize = 1_000;

/// The same for the fallback.
const FALLBACK: usize = 200;

/// How many requests before these, and how many characters of each.
const OLDER: (usize, usize) = (10, 120);

/// How many characters of the model's last message are quoted.
const LAST_WORDS: usize = 1_500;

/// How many files are listed.
const N_FILES: usize = 12;

/// How many unfinished calls are listed.
const N_CALLS: usize = 10;

/// How many characters of earlier summaries are quoted. An extract of extracts must not grow without bound.
const MAX_EARLIER: usize = 8_000;

/// Summarises messages and the summaries before them, in at most `most` tokens if possible.
pub fn extract(
    pieces: &[&Piece<'_>],
    earlier: &[String],
    folder: Option<&str>,
    most: u64,
    count: &dyn Fn(&str) -> u64,
) -> String {
    let messages: Vec<&Message> = pieces.iter().map(|piece| piece.message).collect();
    let before = Before::of(earlier);
    let requests = Requests::of(pieces, &before, REQUEST);
    let sections = [
        Some((STATISTICS, statistics(&messages, before.messages))),
        section(FIRST, &requests.first),
        section(LAST, &requests.last),
        section(WORDS, &last_words(&messages, &before)),
        section(FILES, &file_lines(&messages, folder, &before.files)),
        section(UNFINISHED, &unfinished(&messages, &before)),
        section(BEFORE, &requests.older),
        (!before.others.is_empty()).then_some((EARLIER, before.others)),
    ];
    let sections: Vec<_> = sections.into_iter().flatten().collect();
    // If there is no room, drop the last section first. Earlier summaries are not repeated anywhere else, so shorten them before
    // dropping them.
    let mut n = sections.len();
    let mut share = MAX_EARLIER;
    loop {
        let mut out = String::new();
        for (name, text) in sections.iter().take(n) {
            let text =
                if *name == EARLIER { quoted(&prompt::clip(text, share)) } else { text.clone() };
            let _ = write!(out, "{}## {name}\n{text}", if out.is_empty() { "" } else { "\n\n" });
        }
        if n <= 1 || count(&out) <= most {
            return out;
        }
        let is_earlier = sections.get(n - 1).is_some_and(|(name, _)| *name == EARLIER);
        if is_earlier && share > 250 {
            share /= 2;
        } else {
            n -= 1;
        }
    }
}

/// Returns the fallback for a summary that a model failed to write.
pub fn fallback(pieces: &[&Piece<'_>], earlier: &[String], error: &str) -> String {
    let messages: Vec<&Message> = pieces.iter().map(|piece| piece.message).collect();
    let before = Before::of(earlier);
    let requests = Requests::of(pieces, &before, FALLBACK);
    let mut out = format!("{FAILED}{}", prompt::clip(error, 500));
    let sections = [
        Some((STATISTICS, statistics(&messages, before.messages))),
        section(FIRST, &requests.first),
        section(LAST, &requests.last),
        (!before.others.is_empty()).then(|| (EARLIER, quoted(&before.others))),
    ];
    for (name, text) in sections.into_iter().flatten() {
        let _ = write!(out, "\n\n## {name}\n{text}");
    }
    out
}

/// The earlier summaries: the merged sections of extracts, and the full text of other writers' summaries.
#[derive(Default)]
struct Before {
    /// How many messages they replace, as far as they say it.
    messages: u64,
    first: Option<String>,
    /// The requests, oldest first.
    requests: Vec<String>,
    files: Vec<String>,
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
            let Some(mut sections) = sections(text) else {
                others.insert(0, text.trim().to_owned());
                continue;
            };
            // The last section. Older extracts quoted it with its headings.
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
                let items = || text.split("\n- ").map(unquoted);
                match name {
                    FIRST => before.first = before.first.or_else(|| Some(unquoted(text))),
                    // The older requests come after the newer ones.
                    LAST => before.requests.extend(items()),
                    BEFORE => {
                        before.requests =
                            items().chain(std::mem::take(&mut before.requests)).collect();
                    }
                    FILES => before.files.extend(items().map(|path| format!("- {path}"))),
                    WORDS => before.words = Some(unquoted(whole)),
                    UNFINISHED => before.unfinished.extend(items()),
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

/// The user's requests, as lines.
struct Requests {
    first: Vec<String>,
    last: Vec<String>,
    older: Vec<String>,
}

impl Requests {
    fn of(pieces: &[&Piece<'_>], before: &Before, most: usize) -> Self {
        let said = pieces.iter().filter(|piece| piece.is_request).map(|piece| piece.message.text());
        let said: Vec<String> =
            said.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect();
        let line = |text: &str, most| format!("- {}", quoted(&prompt::clip(text, most)));
        let newest = said.len().saturating_sub(REQUESTS);
        let (older, last) = said.split_at(newest);
        // The first request is not repeated among the others.
        let first = before.first.clone().or_else(|| older.first().cloned());
        let older =
            before.requests.iter().chain(older).filter(|text| Some(*text) != first.as_ref());
        let older: Vec<&String> = older.collect();
        let (n_older, most_older) = OLDER;
        let older = older.get(older.len().saturating_sub(n_older)..).unwrap_or_default();
        let short = |text: &&String| {
            line(&text.split_whitespace().collect::<Vec<_>>().join(" "), most_older)
        };
        Self {
            first: first.iter().map(|text| line(text, most)).collect(),
            last: last.iter().map(|text| line(text, most)).collect(),
            older: older.iter().map(short).collect(),
        }
    }
}

fn section(name: &'static str, lines: &[String]) -> Option<(&'static str, String)> {
    (!lines.is_empty()).then(|| (name, lines.join("\n")))
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
fn last_words(messages: &[&Message], before: &Before) -> Vec<String> {
    let said = messages.iter().rev().filter(|message| message.role == Role::Assistant);
    let last = said.map(|message| message.text()).find(|text| !text.trim().is_empty());
    let last = last.or_else(|| before.words.clone());
    last.map(|text| quoted(&prompt::clip(text.trim(), LAST_WORDS))).into_iter().collect()
}

fn file_lines(messages: &[&Message], folder: Option<&str>, before: &[String]) -> Vec<String> {
    let named = files::named(messages.iter().copied(), folder, None);
    let line = |named: &files::Named| {
        format!("- {}{}", named.path, if named.n_changes > 0 { " (modified)" } else { "" })
    };
    let mut lines: Vec<String> = named.iter().map(line).collect();
    let is_new = |line: &&String| {
        let path = line.trim_start_matches("- ").trim_end_matches(" (modified)");
        !named.iter().any(|named| named.path == path)
    };
    lines.extend(before.iter().filter(is_new).cloned());
    // Modified files come first, the newest of them before those of earlier summaries.
    lines.sort_by_key(|line| !line.ends_with(" (modified)"));
    lines.truncate(N_FILES);
    lines
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
        let pieces = pieces(messages);
        extract(&pieces.iter().collect::<Vec<_>>(), earlier, Some("/w"), most, &bytes)
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

        ## Last requests
        - Mend the build.

        ## Last words
        It is mended.

        ## Files
        - /w/a.rs (modified)

        ## Unfinished calls
        - Bash {"command":"make"}

        ## Earlier
        Before, all was well.
        "#);
        let text = extracted(&messages, &earlier, 1);
        assert!(text.starts_with("## Statistics") && !text.contains("## Last"), "{text}");
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
            let request = |nth| says(Role::User, &format!("request {n}.{nth} {}", "x".repeat(300)));
            let path = |nth| format!(r#"{{"file_path":"/w/{n}.{nth}.rs"}}"#);
            (0..20).flat_map(|nth| [request(nth), call("1", "Edit", &path(nth))]).collect()
        };
        let first = extracted(&round(0), &[], u64::MAX);
        let mut text = first.clone();
        for n in 1..100 {
            text = extracted(&round(n), &[text], u64::MAX);
            let (most, least) = (first.len() * 11 / 10, first.len() * 9 / 10);
            assert!((least..most).contains(&text.len()), "{n}: {} of {}", text.len(), first.len());
        }
        for said in [
            "- request 0.0 x",
            "- request 99.19 x",
            "- request 99.5 x",
            "stand for 3960 more",
            "/w/99.19.rs",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
        assert_eq!(text.matches("## ").count(), first.matches("## ").count(), "{text}");
    }

    #[test]
    fn quoted_words_are_read_back_as_they_were_said() {
        let request = "- Mend this:\n\n## Last requests\n- the roof\n  - its tiles\n\n\n- the door";
        let summary = "Well.\n\n## Statistics\n5 ships.\n\n## Earlier\n- one\n- two";
        let mut messages = vec![says(Role::User, request); 7];
        messages.push(says(Role::Assistant, "It is.\n\n## Files\n- no.rs\n\n## Earlier\nNothing."));
        messages.push(call("1", "Write", "{\n\n## Earlier\n}"));
        let mut text = extracted(&messages, &[summary.to_owned()], u64::MAX);
        let said = Before::of(&[text.clone()]);
        assert_eq!((said.requests, said.files), (vec![request.to_owned(); 5], Vec::new()));
        for _ in 0..3 {
            let said = Before::of(&[text.clone()]);
            assert_eq!((said.first.as_deref(), said.others.as_str()), (Some(request), summary));
            text = extracted(&[], &[text], u64::MAX);
        }
    }

    #[test]
    fn an_extract_that_quotes_without_indenting_is_read() {
        let text = "## Statistics\n2 messages are not shown: 2 of the user, 0 of the model, 0 of tools.\n\n\
                    ## First request\n- Mend it:\n- all\n\n## Last requests\n- And this.\nNow.\n- Then that.\n\n\
                    ## Files\n- /w/a.rs (modified)\n- /w/b.rs\n\n## Earlier\nShip it.\n\n## Next\nTest it.";
        let said = Before::of(&[text.to_owned()]);
        assert_eq!(said.first.as_deref(), Some("Mend it:\n- all"));
        assert_eq!(said.requests, ["And this.\nNow.", "Then that."]);
        assert_eq!(said.files, ["- /w/a.rs (modified)", "- /w/b.rs"]);
        assert_eq!(said.others, "Ship it.\n\n## Next\nTest it.");
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
        let failed = fallback(&[], &[counted.to_owned()], "gone\n\nand gone");
        assert_eq!(Before::of(&[failed]).messages, 5);
    }

    #[test]
    fn the_persons_own_requests_are_quoted_and_another_writers_summary_is_carried_on() {
        let messages = [says(Role::User, "Mend it."), says(Role::User, "Base directory: a skill")];
        let mut pieces = pieces(&messages);
        pieces[1].is_request = false;
        let pieces: Vec<&Piece<'_>> = pieces.iter().collect();
        let earlier = ["The model's summary.".to_owned()];
        let text = extract(&pieces, &earlier, None, u64::MAX, &bytes);
        assert!(text.contains("Mend it.") && !text.contains("a skill"), "{text}");
        let again = extract(&pieces, &[text], None, u64::MAX, &bytes);
        assert_eq!(again.matches("The model's summary.").count(), 1, "{again}");
        let failed = fallback(&pieces, &[again], "gone");
        assert_eq!(failed.matches("The model's summary.").count(), 1, "{failed}");
        assert!(extract(&pieces, &[failed], None, u64::MAX, &bytes).contains("stand for 6 more"));
    }

    #[test]
    fn the_fallback_quotes_five_requests_and_the_error() {
        let messages: Vec<Message> =
            (0..8).map(|n| says(Role::User, &format!("request {n} {}", "y".repeat(500)))).collect();
        let pieces = pieces(&messages);
        let text = fallback(&pieces.iter().collect::<Vec<_>>(), &[], "the model is away");
        assert!(text.contains("the model is away"));
        assert!(text.contains("- request 3 y") && !text.contains("request 2"), "{text}");
        assert!(text.lines().all(|line| line.len() < 240), "{text}");
    }
}
