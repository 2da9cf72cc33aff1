//! Makes text from outside safe to show: characters that control a terminal, reorder a line or are invisible become visible
//! escapes.
//!
//! ASCII is escaped as `\x1b`, other characters as `\u{202e}`, bytes that are not UTF-8 as `\xff`. The result is for reading, not
//! for parsing: backslashes in the text stay as they are, so escapes cannot be reversed. JSON output is exact.
//!
//! Zero-width joiners and the variation selectors that choose an emoji's form are kept, because scripts and emoji need them.
//!
//! Invariant: returned text contains no character for which [`is_hidden`] is true, except for newlines and tabs from [`text`] and
//! [`bytes`].

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::path::Path;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The hidden characters beyond ASCII.
const HIDDEN: [RangeInclusive<char>; 22] = [
    '\u{80}'..='\u{9f}',       // C1 controls
    '\u{ad}'..='\u{ad}',       // soft hyphen
    '\u{34f}'..='\u{34f}',     // combining grapheme joiner
    '\u{61c}'..='\u{61c}',     // direction mark
    '\u{115f}'..='\u{1160}',   // Hangul fillers
    '\u{17b4}'..='\u{17b5}',   // invisible Khmer vowels
    '\u{180b}'..='\u{180f}',   // variation selectors, vowel separator
    '\u{200b}'..='\u{200b}',   // zero-width space
    '\u{200e}'..='\u{200f}',   // direction marks
    '\u{2028}'..='\u{2029}',   // line and paragraph separators
    '\u{202a}'..='\u{202e}',   // embeddings and overrides
    '\u{2060}'..='\u{206f}',   // word joiner, invisible operators, isolates, shaping
    '\u{3164}'..='\u{3164}',   // Hangul filler
    '\u{fe00}'..='\u{fe0d}', // variation selectors that no emoji needs; they can smuggle whole messages
    '\u{feff}'..='\u{feff}', // byte order mark
    '\u{ffa0}'..='\u{ffa0}', // Hangul filler
    '\u{fff0}'..='\u{fffb}', // unassigned, annotations
    '\u{13430}'..='\u{1343f}', // joiners of hieroglyphs
    '\u{1bca0}'..='\u{1bca3}', // shorthand format
    '\u{1d159}'..='\u{1d159}', // null notehead
    '\u{1d173}'..='\u{1d17a}', // musical beams
    '\u{e0000}'..='\u{e0fff}', // tags and variation selectors; they can smuggle whole messages
];

/// Returns `text` on one line, for titles and table cells. Line breaks and tabs become spaces.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    show(text, |c| matches!(c, '\n' | '\t').then_some(' '))
}

/// Returns `text` with its lines and tabs. Windows line breaks become plain ones.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    show(text, |c| matches!(c, '\n' | '\t').then_some(c))
}

/// Same as [`text`], for bytes that may not be UTF-8.
pub(crate) fn bytes(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(valid) = str::from_utf8(bytes) {
        return text(valid);
    }
    let mut shown = String::with_capacity(bytes.len() + 8);
    for chunk in bytes.utf8_chunks() {
        shown.push_str(&text(chunk.valid()));
        for &byte in chunk.invalid() {
            push_byte(&mut shown, byte);
        }
    }
    Cow::Owned(shown)
}

/// Returns a path on one line, with bytes that are not UTF-8 escaped.
pub(crate) fn path(path: &Path) -> String {
    line(&bytes(path.as_os_str().as_encoded_bytes())).into_owned()
}

/// Returns true if a character controls a terminal, reorders a line or is invisible.
pub(crate) fn is_hidden(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_control() } else { HIDDEN.iter().any(|range| range.contains(&c)) }
}

/// Returns the width of safe single-line text in terminal columns.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Cuts safe single-line text to `limit` columns, with a closing `…` if it was wider.
pub(crate) fn clip(text: &str, limit: usize) -> Cow<'_, str> {
    if width(text) <= limit {
        return Cow::Borrowed(text);
    }
    if limit == 0 {
        return Cow::Borrowed("");
    }
    let mut columns = 0;
    let cut = text.char_indices().find(|&(_, c)| {
        // This selector widens the previous character to an emoji.
        columns += if c == '\u{fe0f}' { 1 } else { c.width().unwrap_or(0) };
        columns >= limit
    });
    let end = cut.map_or(text.len(), |(at, _)| at);
    Cow::Owned(format!("{}…", text.get(..end).unwrap_or(text)))
}

/// Escapes hidden characters, except those that `layout` replaces.
fn show(text: &str, layout: impl Fn(char) -> Option<char>) -> Cow<'_, str> {
    if text.chars().all(|c| !is_hidden(c) || layout(c) == Some(c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if let Some(kept) = layout(c) {
            shown.push(kept);
        } else if !is_hidden(c) {
            shown.push(c);
        } else if c == '\r' && chars.peek() == Some(&'\n') {
            // The newline follows.
        } else if let Ok(byte @ ..=0x7f) = u8::try_from(c) {
            push_byte(&mut shown, byte);
        } else {
            shown.extend(c.escape_unicode());
        }
    }
    Cow::Owned(shown)
}

fn push_byte(shown: &mut String, byte: u8) {
    write!(shown, "\\x{byte:02x}").expect("a string takes all that is written");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_text_is_borrowed_unchanged() {
        for plain in ["", "fn main() {}", "naïve 日本語 👩‍👩‍👧 ❤️ می‌خواهم"]
        {
            assert!(matches!(line(plain), Cow::Borrowed(same) if same == plain), "{plain}");
        }
        assert!(matches!(text("a\n\tb"), Cow::Borrowed("a\n\tb")));
    }

    #[test]
    fn terminal_sequences_are_shown_not_sent() {
        let check = |from: &str, to: &str| assert_eq!(text(from), to);
        check("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m");
        // OSC 8 makes a link, OSC 52 writes the clipboard, DCS talks to the terminal itself.
        check("\x1b]8;;http://a\x07b\x1b]8;;\x07", r"\x1b]8;;http://a\x07b\x1b]8;;\x07");
        check("\x1b]52;c;cm0=\x1b\\", r"\x1b]52;c;cm0=\x1b\");
        check("\x1bP+q544e\x1b\\", r"\x1bP+q544e\x1b\");
        check("\u{9b}2J \u{9d}0;t\u{9c} \u{85}", r"\u{9b}2J \u{9d}0;t\u{9c} \u{85}");
        check("\x00\x08\x7f", r"\x00\x08\x7f");
        check("over\rwritten", r"over\x0dwritten");
    }

    #[test]
    fn reordering_and_invisible_characters_are_shown() {
        let check = |from: &str, to: &str| assert_eq!(line(from), to);
        check("admin\u{202e}txt.exe", r"admin\u{202e}txt.exe");
        check("\u{2066}a\u{2069}\u{200f}\u{61c}", r"\u{2066}a\u{2069}\u{200f}\u{61c}");
        check("a\u{200b}b\u{feff}\u{2028}", r"a\u{200b}b\u{feff}\u{2028}");
        check("\u{e0041}\u{e0100}", r"\u{e0041}\u{e0100}");
        check("a\u{fe00}\u{fe0d}\u{34f}", r"a\u{fe00}\u{fe0d}\u{34f}");
        check("\u{17b4}\u{13430}\u{1d159}", r"\u{17b4}\u{13430}\u{1d159}");
        check("\u{2764}\u{fe0f}\u{fe0e}", "\u{2764}\u{fe0f}\u{fe0e}");
    }

    #[test]
    fn line_breaks_are_spaces_on_one_line_and_kept_on_many() {
        assert_eq!(line("one\ntwo\r\nthree\tfour"), "one two three four");
        assert_eq!(text("one\ntwo\r\nthree\tfour"), "one\ntwo\nthree\tfour");
    }

    #[test]
    fn bytes_that_are_not_utf8_are_shown_one_by_one() {
        assert_eq!(bytes(b"caf\xe9\n\x9b2J\x1b"), "caf\\xe9\n\\x9b2J\\x1b");
        assert_eq!(bytes("café".as_bytes()), "café");
    }

    #[test]
    fn clip_cuts_by_columns_not_by_characters() {
        let check = |text: &str, limit, to: &str| assert_eq!(clip(text, limit), to);
        check("title", 5, "title");
        check("title", 4, "tit…");
        check("日本語", 6, "日本語");
        check("日本語", 5, "日本…");
        check("日本語", 4, "日…");
        check("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…");
        check("ab", 1, "…");
        check("ab", 0, "");
    }

    proptest! {
        #[test]
        fn nothing_hidden_is_returned(input: Vec<u8>, string: String) {
            for shown in [bytes(&input), text(&string)] {
                prop_assert!(!shown.chars().any(|c| is_hidden(c) && !"\n\t".contains(c)));
            }
            let once = line(&string);
            prop_assert!(!once.chars().any(is_hidden));
            prop_assert_eq!(&line(&once), &once);
        }

        #[test]
        fn clipped_text_fits(string: String, limit in 0_usize..20) {
            prop_assert!(width(&clip(&line(&string), limit)) <= limit);
        }
    }
}
