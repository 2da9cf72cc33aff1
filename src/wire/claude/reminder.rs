//! Reminders: the XML element around text that the program puts in the user's place.

const BEGIN: &str = "<system-reminder>\n";
const END: &str = "\n</system-reminder>";
/// The name of the element.
const REMINDER: &str = "system-reminder";

/// Wraps text in a reminder.
pub(super) fn reminder(words: &str) -> String {
    [BEGIN, words, END].concat()
}

/// Escapes a text so that neither it nor its concatenation with what follows begins or ends a reminder.
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
