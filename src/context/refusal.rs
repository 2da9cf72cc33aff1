//! The words of a refusal: plain, cut into sentences and these into words, numbers and marks, whatever they were wrapped in.
//!
//! Invariant: an address is no part of the words: a link to a page on billing says nothing about the refusal.

use std::time::Duration;

/// A word of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// Letters, with the digits among them; names in other spellings are cut where their parts begin.
    Text(String),
    /// A whole number.
    Number(u64),
    /// A mark that is no end of a sentence.
    Mark(char),
}

impl Word {
    /// Returns the letters; a number or a mark has none.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Number(_) | Self::Mark(_) => "",
        }
    }

    /// Returns the number, if it is one.
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(_) | Self::Mark(_) => None,
        }
    }
}

/// Returns words in lower case, without addresses, with what JSON escapes and with the parts of `CamelCase` apart.
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
    while let Some((before, behind)) = rest.split_once('\\') {
        out.push_str(before);
        let code = behind.strip_prefix('u').and_then(|code| code.get(..4));
        let letter = code.and_then(|code| char::from_u32(u32::from_str_radix(code, 16).ok()?));
        let mut letters = behind.chars();
        (out, rest) = match (letter, letters.next()) {
            (Some(letter), _) => {
                (out + letter.encode_utf8(&mut [0; 4]), behind.get(5..).unwrap_or_default())
            }
            (None, Some('n' | 'r')) => (out + "\n", letters.as_str()),
            (None, Some('"')) => (out + "\"", letters.as_str()),
            (None, _) => (out, behind),
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

/// Cuts plain words into sentences; the fields of an object are sentences too, and so are the names of those
/// with words.
pub(super) fn sentences(plain: &str) -> Vec<Vec<Word>> {
    const ENDS: [&str; 11] = [
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
    ];
    let mut cut = plain.to_owned();
    for end in ENDS {
        cut = cut.replace(end, "\n");
    }
    let parts = cut.split(['\n', '{', '}']).map(words);
    parts.filter(|words| !words.is_empty()).collect()
}

/// Cuts a sentence into its words.
fn words(sentence: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = sentence;
    while let Some(first) = rest.chars().next() {
        let run = |is: &dyn Fn(char) -> bool| rest.find(|c| !is(c)).unwrap_or(rest.len());
        let end = match first {
            '0'..='9' => {
                let end = run(&|c| c.is_ascii_digit() || matches!(c, ',' | '_' | '.'));
                let digits = rest.get(..end).unwrap_or_default().trim_end_matches([',', '_', '.']);
                let behind = rest.get(digits.len()..).unwrap_or_default();
                let letters =
                    behind.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(behind.len());
                let run = rest.get(..digits.len() + letters).unwrap_or_default();
                words.push(number(run).map_or_else(|| Word::Text(run.to_owned()), Word::Number));
                run.len()
            }
            first if first.is_ascii_alphabetic() => {
                let end = run(&|c| c.is_ascii_alphanumeric());
                words.push(Word::Text(rest.get(..end).unwrap_or_default().to_owned()));
                end
            }
            ',' | ':' | '(' | ')' | '[' | ']' | '<' | '>' | '+' | '-' | '/' | '$' | '€' | '£'
            | '¥' => {
                words.push(Word::Mark(first));
                first.len_utf8()
            }
            first => first.len_utf8(),
        };
        rest = rest.get(end.max(1)..).unwrap_or_default();
    }
    words
}

/// Reads a whole number, with or without thousands separators: `128k` is a number here, `1.5` and `400b` are not.
fn number(run: &str) -> Option<u64> {
    let (digits, times) = match run.strip_suffix(['k', 'm']) {
        Some(digits) if run.ends_with('k') => (digits, 1_000),
        Some(digits) => (digits, 1_000_000),
        None => (run, 1),
    };
    let digits: String = digits.chars().filter(|c| !matches!(c, ',' | '_')).collect();
    digits.parse::<u64>().ok()?.checked_mul(times)
}

/// Returns how long plain words ask to be left alone: `try again in 1m2.5s`, `retry after 20 seconds`, `"retrydelay": "34s"`.
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

/// Reads a duration; a number without a unit is of seconds.
fn duration(said: &str) -> Option<Duration> {
    let mut sum = None;
    let mut rest = said;
    loop {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(number) = rest.get(..end)?.trim_end_matches('.').parse::<f64>() else { return sum };
        let behind = rest.get(end..)?.trim_start_matches([' ', '-']);
        let end = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        let seconds = match unit {
            "ms" | "millisecond" | "milliseconds" => number / 1_000.0,
            "m" | "min" | "mins" | "minute" | "minutes" => number * 60.0,
            "h" | "hour" | "hours" => number * 3_600.0,
            "d" | "day" | "days" => number * 86_400.0,
            _ => number,
        };
        let part = Duration::try_from_secs_f64(seconds).ok()?;
        sum = Some(sum.unwrap_or(Duration::ZERO).checked_add(part)?);
        rest = behind;
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
            sentences(said).concat().iter().filter_map(Word::number).collect::<Vec<_>>()
        };
        assert_eq!(
            read("1,048,576, 200_000 and 128k; not 1.5 or 9251f066 or gpt-4o"),
            [1_048_576, 200_000, 128_000]
        );
        assert_eq!(read("99999999999999999999999 and 5."), [5]);
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
