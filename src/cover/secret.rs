//! A secret: all the spellings that it may have in a line.

use std::{collections::BTreeSet, ops::Range};

use super::{
    place::{Filling, Place},
    text::Text,
};
use crate::json::Frame;

/// The minimum length of a secret in bytes. Shorter ones would be found everywhere.
pub(crate) const SHORTEST: usize = 4;
/// The minimum length of a secret that may be part of a word. Shorter ones would occur in hashes and numbers by chance.
const LONG: usize = 8;
/// The minimum number of base64 characters that are distinctive.
const TELLING: usize = 6;

/// One spelling of a secret.
#[derive(Clone, Debug)]
pub(super) struct Spelling {
    pub(super) bytes: Vec<u8>,
    pub(super) filling: Filling,
    /// How many characters before these also contain bits of it. In base64 the next character does too.
    before: usize,
    /// For a short secret, the frame of the records: in the identifying fields, such as ids and times, it would occur by chance.
    frame: Option<&'static Frame>,
}

/// Something to find, in all its spellings.
#[derive(Clone)]
pub(crate) struct Secret {
    pub(super) spellings: Vec<Spelling>,
    /// Its longest part that JSON can only escape numerically, such as `\u0068`.
    pub(super) sure: Vec<u8>,
}

impl Secret {
    /// Creates a secret; none if it is too short to be distinctive. A short secret must be a whole word, and does not count in
    /// the identifying fields of records with this frame.
    pub(crate) fn new(secret: &str, frame: &'static Frame) -> Option<Self> {
        if secret.len() < SHORTEST {
            return None;
        }
        let frame = (secret.len() < LONG).then_some(frame);
        // Files have different line endings.
        let unix = secret.replace("\r\n", "\n");
        let plain = BTreeSet::from([secret.to_owned(), unix.replace('\n', "\r\n"), unix]);
        let encoded = |before: usize| plain.iter().flat_map(move |text| encoded(text, before));
        let encoded: BTreeSet<(usize, Vec<u8>)> = (0..3).flat_map(encoded).collect();
        let encoded = encoded.into_iter().map(|(before, bytes)| Spelling {
            bytes,
            filling: Filling::Code,
            before,
            frame,
        });
        let bytes = plain.iter().map(|text| text.clone().into_bytes());
        let filling = Filling::Mark;
        let plain = bytes.map(|bytes| Spelling { bytes, filling, before: 0, frame });
        let runs = secret.as_bytes().split(|byte| !is_kept(*byte));
        let sure = runs.max_by_key(|run| run.len()).unwrap_or_default().to_vec();
        Some(Self { spellings: plain.chain(encoded).collect(), sure })
    }
}

impl Spelling {
    /// Returns true if the text ends with the beginning of this spelling, but not all of it.
    pub(super) fn begins_at_end(&self, text: &[u8]) -> bool {
        let mut cuts = (SHORTEST..self.bytes.len()).filter_map(|length| self.bytes.get(..length));
        cuts.any(|cut| text.ends_with(cut))
    }

    /// Returns its place in the line if it starts at `start` in a text.
    pub(super) fn place(&self, of: usize, start: usize, text: &Text) -> Option<Place> {
        let Self { bytes, filling, before, frame } = self;
        let is_code = *filling == Filling::Code;
        let mut range = start..start + bytes.len();
        let is_it = text.bytes.get(range.clone()) == Some(bytes);
        if !is_it || frame.is_some() && !is_code && !is_word(&text.bytes, &range) {
            return None;
        }
        let next = text.bytes.get(range.end);
        let is_partly =
            |byte: &&u8| is_code && (byte.is_ascii_alphanumeric() || b"+/-_".contains(byte));
        range.start = start.saturating_sub(*before);
        range.end += next.filter(is_partly).iter().count();
        Some(Place { range: text.raw(range), filling: *filling, of, frame: *frame })
    }
}

/// Returns true if JSON can only escape a byte numerically.
fn is_kept(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)
}

/// The maximum length of a terminal control sequence, without its last byte.
const CONTROL: usize = 32;

/// Returns true if a text ends with a terminal control sequence, such as one that starts a colour.
fn ends_control(text: &[u8]) -> bool {
    let Some((b'@'..=b'~', before)) = text.split_last() else { return false };
    let is_inner = |byte: &&u8| matches!(byte, b' '..=b'?');
    let inner = before.iter().rev().take(CONTROL).take_while(is_inner).count();
    let begins = before.get(..before.len() - inner).unwrap_or_default();
    begins.ends_with(b"\x1b[") || begins.ends_with("\u{9b}".as_bytes())
}

/// Returns true if bytes are a whole word. A control sequence right before them is invisible and does not belong to the word.
fn is_word(text: &[u8], range: &Range<usize>) -> bool {
    let is_part = |at: Option<usize>| {
        let byte = at.and_then(|at| text.get(at));
        byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii())
    };
    let goes_on = |own: Option<usize>, next: Option<usize>| is_part(own) && is_part(next);
    let is_free = !goes_on(Some(range.start), range.start.checked_sub(1))
        || text.get(..range.start).is_some_and(ends_control);
    is_free && !goes_on(range.end.checked_sub(1), Some(range.end))
}

/// Returns the characters that the base64 of a text must contain if the text follows `before` other bytes, for both alphabets,
/// and how many characters before them also contain bits of it.
fn encoded(text: &str, before: usize) -> impl Iterator<Item = (usize, Vec<u8>)> + use<> {
    let all: Vec<u8> = std::iter::repeat_n(0, before).chain(text.bytes()).collect();
    // From the first character without bits of earlier bytes, to the last whose bits are all here.
    let (from, to) = ((before * 8).div_ceil(6), all.len() * 8 / 6);
    let code = move |alphabet: &[u8; 64]| -> Vec<u8> {
        let sextet = |n: usize| {
            let bit = |n: usize| all.get(n / 8).map_or(0, |byte| byte >> (7 - n % 8) & 1);
            (0..6).fold(0, |value, of| value << 1 | usize::from(bit(n * 6 + of)))
        };
        (from..to).filter_map(|n| alphabet.get(sextet(n)).copied()).collect()
    };
    let cores = [STANDARD, SAFE].into_iter().map(code).filter(|core| core.len() >= TELLING);
    cores.map(move |core| (usize::from(before > 0), core))
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        cover::{FRAME, LEVELS, Secrets, secret_in_line},
        json::Raw,
    };

    #[track_caller]
    fn check(secret: &str, line: &str, expected: &str) {
        let secrets = Secrets::new(vec![Secret::new(secret, &FRAME).unwrap()]);
        let covered = secrets.cover(line.as_bytes()).0.unwrap_or_else(|| line.into());
        assert_eq!(String::from_utf8_lossy(&covered), expected);
        assert_eq!(covered.len(), line.len());
        let passes = secrets.needles().is_none_or(|needles| needles.is_match(line));
        assert!(line == expected || passes, "{line}");
    }

    #[test]
    fn a_secret_is_covered_as_it_stands_and_as_it_is_escaped() {
        check("hunter2!", r#"{"a":"is hunter2!."}"#, r#"{"a":"is ********."}"#);
        check("hunter2!", r#"{"a":"hunter2\u0021"}"#, r#"{"a":"[redacted]***"}"#);
        check("hunter2!", r#"{"a":"\u0068unter2!"}"#, r#"{"a":"[redacted]***"}"#);
        check("hunter2!", r#"{"a":"\\u0068unter2!"}"#, r#"{"a":"[redacted]****"}"#);
        check("a/b\n\"c", r#"{"a":"a\/b\n\"c"}"#, r#"{"a":"*********"}"#);
        check(
            "a/b\n\"c",
            r#"{"a":"{\"x\":\"a/b\\n\\\"c\"}"}"#,
            r#"{"a":"{\"x\":\"[redacted]*\"}"}"#,
        );
        check("pass🔑word", r#"{"a":"pass\ud83d\udd11word"}"#, r#"{"a":"[redacted]**********"}"#);
        check("grün-und-blau", "kein Objekt grün-und-blau", "kein Objekt [redacted]****");
        check(
            "one\r\ntwo",
            r#"{"a":"one\ntwo","b":"one\r\ntwo"}"#,
            r#"{"a":"********","b":"[redacted]"}"#,
        );
        check("\"a\":", r#"{"a":"\"a\":"}"#, r#"{"a":"******"}"#);
        check("12345678", r#"{"12345678":12345678}"#, r#"{"********":11111111}"#);
        check("hunter2!", r#"{"a":"hunter3!"}"#, r#"{"a":"hunter3!"}"#);
    }

    #[test]
    fn a_secret_in_base64_is_covered_wherever_it_begins() {
        // 0 bytes before it.
        check("hunter2!", r#"{"a":"aHVudGVyMiF0YWls"}"#, r#"{"a":"AAAAAAAAAAA0YWls"}"#);
        // 1 bytes before it.
        check("hunter2!", r#"{"a":"eGh1bnRlcjIhdGFpbA=="}"#, r#"{"a":"eAAAAAAAAAAAAGFpbA=="}"#);
        // 2 bytes before it.
        check("hunter2!", r#"{"a":"eHhodW50ZXIyIXRhaWw="}"#, r#"{"a":"eHAAAAAAAAAAAARhaWw="}"#);
    }

    #[test]
    fn a_short_one_is_a_whole_word_that_is_said() {
        check("1234", r#"{"1234":1234,"b":12345.5}"#, r#"{"****":1111,"b":12345.5}"#);
        check("1234", r#"{"a":"1234, x1234 12345 (1234)"}"#, r#"{"a":"****, x1234 12345 (****)"}"#);
        let named = r#"{"uuid":"a-1234","a":[{"uuid":1234}]}"#;
        check("1234", named, r#"{"uuid":"a-1234","a":[{"uuid":1111}]}"#);
        check("1234", "the PIN is 1234", "the PIN is ****");
    }

    #[test]
    fn a_colour_is_no_part_of_a_word() {
        check("4711", "pin \u{1b}[31m4711\u{1b}[0m", "pin \u{1b}[31m****\u{1b}[0m");
        check("4711", "\u{1b}[01;31m\u{1b}[K4711\u{1b}[m", "\u{1b}[01;31m\u{1b}[K****\u{1b}[m");
        check("4711", "\u{9b}1m4711", "\u{9b}1m****");
        check("4711", r#"{"a":"\u001b[31m4711"}"#, r#"{"a":"\u001b[31m****"}"#);
        check("4711", "[31m4711 m4711", "[31m4711 m4711");
    }

    #[test]
    fn a_number_stays_one_with_its_sign_and_its_point() {
        check("83250.75", r#"{"a":83250.75,"b":-83250.75}"#, r#"{"a":11111.11,"b":-11111.11}"#);
        check("-12345678", r#"{"n":[-12345678]}"#, r#"{"n":[-11111111]}"#);
        check("1.5e-300", r#"{"n":1.5e-300 }"#, r#"{"n":1.1e-111 }"#);
        check("0.25", r#"{"n":0.25,"m":10.25}"#, r#"{"n":1.11,"m":10.25}"#);
    }

    #[test]
    fn a_text_may_be_escaped_three_times() {
        let secrets = Secrets::new(vec![Secret::new("q\"q-secret-99", &FRAME).unwrap()]);
        let mut text = "is q\"q-secret-99".to_owned();
        for level in 1..=LEVELS {
            text = crate::json::quote(&text);
            let line = format!(r#"{{"a":{text}}}"#);
            let covered = secrets.cover(line.as_bytes()).0.unwrap();
            assert!(!String::from_utf8(covered).unwrap().contains("secret"), "{level}");
        }
    }

    #[test]
    fn what_is_too_short_is_no_secret() {
        assert!(Secret::new("abc", &FRAME).is_none());
        assert!(Secret::new("abcd", &FRAME).is_some());
    }

    proptest! {
        #[test]
        fn a_covered_line_has_no_trace_of_it_and_is_read_as_before((secret, line) in secret_in_line()) {
            let looked = Secrets::new(vec![Secret::new(&secret, &FRAME).unwrap()]);
            let covered = looked.cover(line.as_bytes()).0.unwrap();
            prop_assert_eq!(covered.len(), line.len());
            prop_assert!(!looked.is_in(&covered));
            prop_assert!(Raw::object(&covered).is_some(), "{}", String::from_utf8_lossy(&covered));
        }
    }
}
