//! The text of a refusal, normalised and split into sentences, whatever it was wrapped in.
//!
//! Invariant: an address is never part of the text: a link to a page on billing says nothing about the refusal.

use std::time::Duration;

use crate::context::phrases::{List, PHRASES};

/// Returns a text in lowercase, without addresses, with JSON escapes decoded and the parts of `CamelCase` separated.
pub(super) fn plain(said: &str) -> String {
    let said = without_addresses(&unescaped(said));
    let mut out = String::with_capacity(said.len());
    let mut last = ' ';
    for letter in said.chars() {
        if last.is_lowercase() && letter.is_uppercase() {
            out.push(' ');
        }
        out.extend(letter.to_lowercase());
        last = letter;
    }
    out
}

fn unescaped(said: &str) -> String {
    let mut out = String::with_capacity(said.len());
    let mut rest = said;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let code = after.strip_prefix('u').and_then(|code| code.get(..4));
        let letter = code.and_then(|code| char::from_u32(u32::from_str_radix(code, 16).ok()?));
        let mut letters = after.chars();
        (out, rest) = match (letter, letters.next()) {
            (Some(letter), _) => {
                (out + letter.encode_utf8(&mut [0; 4]), after.get(5..).unwrap_or_default())
            }
            (None, Some('n' | 'r')) => (out + "\n", letters.as_str()),
            (None, Some('"')) => (out + "\"", letters.as_str()),
            (None, _) => (out, after),
        };
    }
    out + rest
}

fn without_addresses(said: &str) -> String {
    let mut out = String::with_capacity(said.len());
    let mut rest = said;
    while let Some(at) = ["http://", "https://"].iter().filter_map(|scheme| rest.find(scheme)).min()
    {
        let (before, address) = rest.split_at(at);
        out.push_str(before);
        let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '>' | ')' | ']');
        rest = address.find(is_end).and_then(|end| address.get(end..)).unwrap_or_default();
    }
    out + rest
}

/// Splits a normalised text into sentences. The fields of an object are sentences too, and so are the names of text
/// fields.
pub(super) fn sentences(plain: &str) -> Vec<Sentence> {
    const ENDS: [&str; 12] = [
        "\"message\":",
        "'message':",
        "\":\"",
        "\": \"",
        "\",",
        ",\"",
        ", \"",
        ". ",
        "; ",
        "! ",
        "? ",
        "validation error: ",
    ];
    let mut cut = plain.to_owned();
    for end in ENDS {
        cut = cut.replace(end, "\n");
    }
    let parts = cut.split(['\n', '{', '}']).map(Sentence::read);
    // A number alone is a code.
    parts.filter(|sentence| !matches!(sentence.text.trim(), "" | "#")).collect()
}

/// Possible thousands separators.
const SEPARATORS: [char; 6] = [',', '.', '_', '\'', '\u{a0}', '\u{202f}'];

/// A sentence: its words with a space before and after each. `#` replaces numbers and `time` any unit of time.
pub(super) struct Sentence {
    text: String,
    /// The whole numbers; None for a fraction.
    numbers: Vec<Option<u64>>,
}

impl Sentence {
    fn read(sentence: &str) -> Self {
        let (mut text, mut numbers) = (" ".to_owned(), Vec::new());
        let mut rest = sentence;
        while let Some(first) = rest.chars().next() {
            let (word, after) = rest.split_at(word_end(rest).max(first.len_utf8()));
            rest = after;
            let letters = word.find(char::is_alphabetic).unwrap_or(word.len());
            let (digits, unit) = word.split_at(letters);
            let times = match unit {
                "" => Some(1),
                "k" => Some(1_000),
                "m" => Some(1_000_000),
                unit => is_unit(unit).then_some(1),
            };
            if let Some(times) = times.filter(|_| first.is_ascii_digit()) {
                numbers.push(number(digits).and_then(|number| number.checked_mul(times)));
                text += "# ";
                if is_unit(unit) {
                    text += "time ";
                }
            } else if is_unit(word) && (word.len() > 1 || text.ends_with("# ")) {
                // A single letter is a unit only after a number.
                text += "time ";
            } else if first.is_ascii_alphanumeric() || ",:()[]<>+-=/$€£¥".contains(first) {
                text += word;
                text += " ";
            }
        }
        Self { text, numbers }
    }

    /// Returns true if it contains one of these phrases.
    pub(super) fn says(&self, list: &List) -> bool {
        list.is_in(&self.text)
    }

    /// Returns the offset of the first of these phrases.
    pub(super) fn find(&self, list: &List) -> Option<usize> {
        list.find(&self.text)
    }

    /// Returns its numbers, each between the text before it and the text after it.
    pub(super) fn numbers(&self) -> impl Iterator<Item = (&str, u64, &str)> {
        let after = self.text.split('#').skip(1);
        let around = self.text.split('#').zip(after).zip(&self.numbers);
        around.filter_map(|((before, after), number)| Some((before, (*number)?, after)))
    }
}

/// Returns the length of the word with which a text begins.
fn word_end(text: &str) -> usize {
    let joins = |at: usize, c: char| {
        let (before, after) = text.split_at(at);
        let n_digits = after.chars().skip(1).take_while(char::is_ascii_digit).count();
        SEPARATORS.contains(&c)
            && before.ends_with(|c: char| c.is_ascii_digit())
            && (n_digits == 3 || (c == '.' && n_digits > 0))
    };
    let mut letters = text.char_indices();
    letters
        .find(|&(at, c)| !c.is_ascii_alphanumeric() && !joins(at, c))
        .map_or(text.len(), |(at, _)| at)
}

/// Parses a whole number, with or without thousands separators.
fn number(digits: &str) -> Option<u64> {
    let mut groups = digits.split(SEPARATORS);
    let first = groups.next()?.to_owned();
    groups.try_fold(first, |all, group| (group.len() == 3).then(|| all + group))?.parse().ok()
}

/// Returns true if a word is a unit of time.
fn is_unit(word: &str) -> bool {
    let is = |word: &str| PHRASES.units.iter().any(|unit| unit == word);
    is(word) || word.strip_suffix('s').is_some_and(is)
}

/// Returns the wait that a normalised text asks for: `try again in 1m2.5s`, `retry after 20 seconds`, `"retrydelay": "34s"`.
pub(super) fn wait(plain: &str) -> Option<Duration> {
    const BEFORE: [&str; 8] = [
        "again in ",
        "again after ",
        "retry in ",
        "retry after ",
        "retry-after: ",
        "retry_after\":",
        "retry delay\":",
        "wait for ",
    ];
    BEFORE.iter().find_map(|words| {
        let at = plain.find(words)? + words.len();
        duration(plain.get(at..)?.trim_start_matches([' ', '"']))
    })
}

/// Parses a duration. A number without a unit is in seconds.
fn duration(said: &str) -> Option<Duration> {
    let mut sum = None;
    let mut rest = said;
    loop {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(number) = rest.get(..end)?.trim_end_matches('.').parse::<f64>() else { return sum };
        let after = rest.get(end..)?.trim_start_matches([' ', '-']);
        let end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let seconds = match unit {
            "ms" | "millisecond" | "milliseconds" => number / 1_000.0,
            "m" | "min" | "mins" | "minute" | "minutes" => number * 60.0,
            "h" | "hour" | "hours" => number * 3_600.0,
            "d" | "day" | "days" => number * 86_400.0,
            _ => number,
        };
        let part = Duration::try_from_secs_f64(seconds).ok()?;
        sum = Some(sum.unwrap_or(Duration::ZERO).checked_add(part)?);
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_plain_whatever_they_were_wrapped_in() {
        let check = |said: &str, expected: &str| assert_eq!(plain(said), expected);
        check("ContextWindowExceeded", "context window exceeded");
        check(r#"5 \u003e 4\n\u8f93 \", \x"#, "5 > 4\n\u{8f93} \", x");
        check("see https://x.y/billing) and (http://b) now", "see ) and () now");
        check("\\", "");
        check("\\u12", "u12");
    }

    #[test]
    fn numbers_are_read_with_their_separators() {
        let read = |said: &str| {
            let numbers = sentences(said).into_iter().flat_map(|sentence| sentence.numbers);
            numbers.flatten().collect::<Vec<_>>()
        };
        assert_eq!(
            read("1,048,576, 200_000 and 128k; not 1.5 or 9251f066 or gpt-4o"),
            [1_048_576, 200_000, 128_000]
        );
        assert_eq!(read("99999999999999999999999 and 5."), [5]);
        assert_eq!(
            read("9.001 von 8\u{202f}192, [1,30720] 1,2,3"),
            [9_001, 8_192, 1, 30_720, 1, 2, 3]
        );
    }

    #[test]
    fn a_span_of_time_is_a_number_of_a_unit() {
        let read = |said: &str| sentences(said).into_iter().map(|one| one.text).collect::<String>();
        for said in ["60s", "60 s", "1.5h", "2 hours", "500ms", "3 milliseconds"] {
            assert_eq!(read(said), " # time ", "{said}");
        }
        for said in ["s", "hours", "60", "60 tokens", "128k", "7b", "the 5 model's"] {
            assert!(!read(said).contains("# time"), "{said}");
        }
    }

    #[test]
    fn a_wait_is_read_with_its_unit() {
        let check = |said: &str, expected: Option<f64>| {
            assert_eq!(wait(said), expected.map(Duration::from_secs_f64), "{said}");
        };
        check("please try again in 2.5s. visit", Some(2.5));
        check("try again in 1m30s", Some(90.0));
        check("please retry after 20 seconds.", Some(20.0));
        check("please retry in 34.07s.", Some(34.07));
        check("\"retry delay\": \"34s\"", Some(34.0));
        check("try again in 350ms", Some(0.35));
        check("try again after 1 seconds", Some(1.0));
        check("try again later", None);
        check("try again in 18446744073709551615s", None);
        check("try again in 18446744073709550000s18446744073709550000s", None);
    }
}
