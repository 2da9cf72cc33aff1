//! The summary that needs no model: made of counts and quotes.
//!
//! It names the last requests, the files that the work is about, the unfinished calls, and carries on the
//! summaries before it until there is no more room for them.

use std::{collections::BTreeMap, fmt::Write as _};

use crate::{
    context::{files, prompt},
    model::{Block, Message, Role},
};

/// The name of the extract in metadata.
pub const NAME: &str = "extract";

/// How many requests are quoted, and how many characters of each.
const REQUESTS: (usize, usize) = (5, 1_000);

/// The same for the fallback.
const FALLBACK: (usize, usize) = (5, 200);

/// How many characters of the model's last words.
const LAST_WORDS: usize = 1_500;

/// How many files are named.
const N_FILES: usize = 12;

/// How many unfinished calls are named.
const N_CALLS: usize = 10;

/// How many characters of earlier summaries are carried on: an extract of extracts must not grow for ever.
const EARLIER: usize = 8_000;

/// Returns a summary of messages and of the summaries before them, in at most this many tokens if that is possible.
pub fn extract(
    messages: &[&Message],
    earlier: &[String],
    folder: Option<&str>,
    most: u64,
    count: &dyn Fn(&str) -> u64,
) -> String {
    let carried = carry(earlier);
    let sections = [
        Some(("Statistics", statistics(messages))),
        section("Last requests", &requests(messages, REQUESTS)),
        section("Last words", &last_words(messages)),
        section("Files", &file_lines(messages, folder)),
        section("Unfinished calls", &unfinished(messages)),
        (!carried.is_empty()).then_some(("Earlier", carried)),
    ];
    let sections: Vec<_> = sections.into_iter().flatten().collect();
    // The last section goes first when there is no room, but for earlier summaries, which are said nowhere else:
    // they are made smaller before they go.
    let mut n = sections.len();
    let mut share = EARLIER;
    loop {
        let mut out = String::new();
        for (name, text) in sections.iter().take(n) {
            let text = if *name == "Earlier" { prompt::clip(text, share) } else { text.clone() };
            let _ = write!(out, "{}## {name}\n{text}", if out.is_empty() { "" } else { "\n\n" });
        }
        if n <= 1 || count(&out) <= most {
            return out;
        }
        let is_earlier = sections.get(n - 1).is_some_and(|(name, _)| *name == "Earlier");
        if is_earlier && share > 250 {
            share /= 2;
        } else {
            n -= 1;
        }
    }
}

/// Returns the replacement of a summary that a model failed to write.
pub fn fallback(messages: &[&Message], earlier: &[String], error: &str) -> String {
    let mut out =
        format!("No summary could be written: {}\n\n## Statistics\n", prompt::clip(error, 500));
    out.push_str(&statistics(messages));
    if let Some((name, text)) = section("Last requests", &requests(messages, FALLBACK)) {
        let _ = write!(out, "\n\n## {name}\n{text}");
    }
    if !earlier.is_empty() {
        let _ = write!(out, "\n\n## Earlier\n{}", carry(earlier));
    }
    out
}

fn section(name: &'static str, lines: &[String]) -> Option<(&'static str, String)> {
    (!lines.is_empty()).then(|| (name, lines.join("\n")))
}

fn statistics(messages: &[&Message]) -> String {
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
        "{} messages are not shown: {} of the user, {} of the model, {} of tools.",
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
    out
}

/// Returns the last words of the user, in order.
fn requests(messages: &[&Message], (n, most): (usize, usize)) -> Vec<String> {
    let said = messages.iter().rev().filter(|message| message.role == Role::User);
    let said = said.map(|message| message.text()).filter(|text| !text.trim().is_empty());
    let mut lines: Vec<String> =
        said.take(n).map(|text| format!("- {}", prompt::clip(text.trim(), most))).collect();
    lines.reverse();
    lines
}

/// Returns the last words of the model.
fn last_words(messages: &[&Message]) -> Vec<String> {
    let said = messages.iter().rev().filter(|message| message.role == Role::Assistant);
    let last = said.map(|message| message.text()).find(|text| !text.trim().is_empty());
    last.map(|text| prompt::clip(text.trim(), LAST_WORDS)).into_iter().collect()
}

fn file_lines(messages: &[&Message], folder: Option<&str>) -> Vec<String> {
    let named = files::named(messages.iter().copied(), folder, None);
    let line = |named: &files::Named| {
        format!("- {}{}", named.path, if named.is_modified { " (modified)" } else { "" })
    };
    named.iter().take(N_FILES).map(line).collect()
}

/// Returns the last calls without an answer.
fn unfinished(messages: &[&Message]) -> Vec<String> {
    // Ids are unique but for broken sessions: there the newest call is the one that is answered.
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
    let last = open.values().skip(open.len().saturating_sub(N_CALLS));
    last.map(|(name, input)| format!("- {name} {}", prompt::clip(input, 200))).collect()
}

/// Returns earlier summaries as one text, the newest first, because the end is cut.
fn carry(earlier: &[String]) -> String {
    let carried = earlier.iter().rev().map(|text| text.trim()).collect::<Vec<_>>().join("\n\n");
    prompt::clip(&carried, EARLIER)
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

    fn bytes(text: &str) -> u64 {
        text.len() as u64 / 4
    }

    #[test]
    fn it_counts_and_quotes() {
        let messages = [
            says(Role::User, "Mend the build."),
            call("1", "Edit", r#"{"file_path":"/w/a.rs"}"#),
            Message::new(Role::Tool, vec![Block::answer("1".to_owned(), "no".to_owned(), true)]),
            says(Role::Assistant, "It is mended."),
            call("2", "Bash", r#"{"command":"make"}"#),
        ];
        let messages: Vec<&Message> = messages.iter().collect();
        let earlier = ["Before, all was well.".to_owned()];
        let text = extract(&messages, &earlier, Some("/w"), 10_000, &bytes);
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
        let text = extract(&messages, &earlier, Some("/w"), 1, &bytes);
        assert!(text.starts_with("## Statistics") && !text.contains("## Last"), "{text}");
    }

    #[test]
    fn an_extract_of_extracts_does_not_grow_for_ever() {
        let mut earlier = String::new();
        for n in 0..200 {
            let messages = [says(Role::User, &format!("request {n} {}", "x".repeat(300)))];
            let messages: Vec<&Message> = messages.iter().collect();
            earlier = extract(&messages, &[earlier], None, u64::MAX, &bytes);
        }
        assert!(earlier.chars().count() < EARLIER + 2_000, "{}", earlier.len());
        assert!(earlier.contains("request 199") && earlier.contains("request 198"));
    }

    #[test]
    fn the_fallback_quotes_five_requests_and_the_error() {
        let messages: Vec<Message> =
            (0..8).map(|n| says(Role::User, &format!("request {n} {}", "y".repeat(500)))).collect();
        let text = fallback(&messages.iter().collect::<Vec<_>>(), &[], "the model is away");
        assert!(text.contains("the model is away"));
        assert!(text.contains("- request 3 y") && !text.contains("request 2"), "{text}");
        assert!(text.lines().all(|line| line.len() < 240), "{text}");
    }
}
