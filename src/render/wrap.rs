//! Wrapping: breaks a line of safe text at words into rows that fit.
//!
//! Later rows are aligned with the text of the first one, after its indentation and list mark. Tabs are expanded to the next tab
//! stop, so that a row's width is known.
//!
//! Invariant: no row is wider than its room, and no character of the line is lost, except white space at breaks.

use unicode_width::UnicodeWidthChar as _;

use super::safe;

/// The distance between tab stops.
const TAB: usize = 4;
/// The beginnings of a command at the end of a line.
const COMMANDS: [&str; 2] = [": undertext ", ": ut "];
/// Minimum width of rows, however deep a line is indented.
const LEAST: usize = 16;

/// Wraps a line into rows of at most `room` columns. Without `room`, returns the line unchanged.
pub(crate) fn wrap(line: &str, room: Option<usize>) -> Vec<String> {
    let Some(room) = room else { return vec![line.to_owned()] };
    let line = expand(line.trim_end());
    if safe::width(&line) <= room {
        return vec![line];
    }
    let hang = " ".repeat(hang(&line).min(room.saturating_sub(LEAST)));
    let mut rows = Vec::new();
    let mut rest = line.as_str();
    while !rest.is_empty() {
        let lead = if rows.is_empty() { "" } else { hang.as_str() };
        let end = cut(rest, room.saturating_sub(lead.len()).max(1));
        let (row, after) = rest.split_at(end);
        rows.push(format!("{lead}{}", row.trim_end()));
        rest = after.trim_start();
    }
    rows
}

/// Wraps a text that begins after `lead` columns. A command or a path at the end of a line is not broken, so that it can be
/// copied.
pub(crate) fn fit(text: &str, lead: usize, room: Option<usize>) -> String {
    let Some(room) = room else { return text.to_owned() };
    let mut rows = Vec::new();
    for (n, line) in text.split('\n').enumerate() {
        let lead = if n == 0 { lead } else { 0 };
        if lead + safe::width(line) <= room {
            rows.push(line.to_owned());
            continue;
        }
        let command = COMMANDS.iter().find_map(|name| line.rfind(name)).map(|at| at + 2);
        let path = line.rfind(" ~/").or_else(|| line.rfind(" /")).map(|at| at + 1);
        // The last of several paths is treated like the others.
        let is_alone = |at: &usize| {
            let (before, path) = line.split_at(*at);
            !path.contains(' ') && !before.ends_with(", ")
        };
        let path = path.filter(is_alone);
        let (words, copied) = line.split_at(command.or(path).unwrap_or(line.len()));
        let words = wrap(&format!("{}{}", " ".repeat(lead), words), Some(room)).join("\n");
        rows.push(words.get(lead..).unwrap_or_default().to_owned());
        if !copied.is_empty() {
            rows.push(format!("  {copied}"));
        }
    }
    rows.join("\n")
}

/// Returns where a row ends: after the last word that fits, or within a word that is wider than the row.
pub(super) fn cut(text: &str, room: usize) -> usize {
    let mut columns = 0;
    let mut fits = 0;
    let mut before = None;
    let indent = text.len() - text.trim_start().len();
    for (at, c) in text.char_indices() {
        let width = width(c);
        // Scripts without spaces may break between any two characters.
        let parts = c == ' ' || before == Some(' ') || (width > 1 && before.is_some());
        if parts && at > indent {
            fits = at;
        }
        columns += width;
        if columns > room && c != ' ' {
            let within = if at > 0 { at } else { c.len_utf8() };
            return if fits > 0 { fits } else { within };
        }
        before = Some(if width > 1 { ' ' } else { c });
    }
    text.len()
}

/// Returns the width of a character. The emoji selector widens the previous one.
fn width(c: char) -> usize {
    if c == '\u{fe0f}' { 1 } else { c.width().unwrap_or(0) }
}

/// Returns the width of a line's indentation and list mark.
fn hang(line: &str) -> usize {
    let words = line.trim_start_matches(' ');
    let indent = line.len() - words.len();
    let digits = words.len() - words.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let marks = ["- ", "* ", "+ ", "> "];
    let is_number = (1..4).contains(&digits) && words.get(digits..digits + 2) == Some(". ");
    match marks.iter().any(|mark| words.starts_with(mark)) {
        true => indent + 2,
        false if is_number => indent + digits + 2,
        false => indent,
    }
}

/// Replaces each tab by spaces up to the next tab stop.
fn expand(line: &str) -> String {
    let mut expanded = String::with_capacity(line.len());
    let mut columns = 0;
    for c in line.chars() {
        if c == '\t' {
            let to_stop = TAB - columns % TAB;
            expanded.extend(std::iter::repeat_n(' ', to_stop));
            columns += to_stop;
        } else {
            expanded.push(c);
            columns += width(c);
        }
    }
    expanded
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_breaks_at_words_and_hangs_beneath_them() {
        let check = |line: &str, room, rows: &[&str]| assert_eq!(wrap(line, Some(room)), rows);
        check("one two three", 13, &["one two three"]);
        check("one two three", 12, &["one two", "three"]);
        check("one two", 3, &["one", "two"]);
        check("- a list whose words go on and on", 22, &["- a list whose words", "  go on and on"]);
        check("  12. numbered words too and on", 24, &["  12. numbered words too", "      and on"]);
        check("\tif a { b }", 40, &["    if a { b }"]);
        check("x\ty", 40, &["x   y"]);
        check("", 9, &[""]);
        assert_eq!(wrap("as\tit  is ", None), ["as\tit  is "]);
    }

    #[test]
    fn long_words_and_wide_characters_break_where_they_must() {
        let check = |line: &str, room, rows: &[&str]| assert_eq!(wrap(line, Some(room)), rows);
        check("abcdefghij", 4, &["abcd", "efgh", "ij"]);
        check("see abcdefghij", 8, &["see", "abcdefgh", "ij"]);
        check("日本語の文", 5, &["日本", "語の", "文"]);
        check("a日本語", 4, &["a日", "本語"]);
        check("日", 1, &["日"]);
        check("é日", 1, &["é", "日"]);
    }

    #[test]
    fn a_command_and_a_path_stay_whole() {
        let check = |line: &str, lead, room, to: &str| {
            assert_eq!(fit(line, lead, Some(room)), to);
        };
        check("short", 6, 11, "short");
        check("one two three four", 6, 23, "one two three\n      four");
        check("to go back: undertext undo 7c2a", 6, 20, "to go back:\n  undertext undo 7c2a");
        check("kept as ~/a/very/long/path", 0, 12, "kept as\n  ~/a/very/long/path");
        check("in ~/a, ~/b, ~/c", 0, 12, "in ~/a, ~/b,\n~/c");
        check("in ~/a or so it is", 0, 12, "in ~/a or so\nit is");
        check("one\ntwo three", 2, 5, "one\ntwo\nthree");
    }

    proptest! {
        #[test]
        fn rows_fit_and_hold_every_word(line in "[ a-zé日\u{1f600}\u{301}\t.-]{0,80}", room in 2_usize..40) {
            let line = line.trim_end();
            let rows = wrap(line, Some(room));
            prop_assert!(rows.iter().all(|row| safe::width(row) <= room), "{rows:?}");
            let dense = |text: &str| text.chars().filter(|c| !" \t".contains(*c)).collect::<String>();
            prop_assert_eq!(dense(&rows.concat()), dense(line));
        }
    }
}
