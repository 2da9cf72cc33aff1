//! Reminders: the element in which the program says in the user's place what no user said.

const BEGIN: &str = "<system-reminder>\n";
const END: &str = "\n</system-reminder>";
/// The name of the element that a reminder is.
const REMINDER: &str = "system-reminder";

/// Returns a reminder of these words.
pub(super) fn reminder(words: &str) -> String {
    [BEGIN, words, END].concat()
}

/// Returns a text in which nothing begins or ends a reminder, also not with what follows the text.
pub(super) fn unclosed(text: &str) -> String {
    let mut parts = text.split('<').peekable();
    let mut kept = parts.next().unwrap_or_default().to_owned();
    while let Some(part) = parts.next() {
        let name = part.trim_start();
        let name = name.strip_prefix('/').unwrap_or(name).trim_start();
        let is_word = |char: char| char.is_ascii_alphanumeric() || char == '_';
        let is_reminder = name.split_at_checked(REMINDER.len()).is_some_and(|(name, rest)| {
            name.eq_ignore_ascii_case(REMINDER) && !rest.starts_with(is_word)
        });
        let is_open = name.is_empty() && parts.peek().is_none();
        kept.push_str(if is_reminder || is_open { "&lt;" } else { "<" });
        kept.push_str(part);
    }
    kept
}
