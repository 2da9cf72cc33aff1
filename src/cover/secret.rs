//! A secret: all that it may look like where it is in a line.

use std::{collections::BTreeSet, ops::Range};

use memchr::memmem;

use super::place::{self, Filling, Place, See, Spelt};
use crate::json::Frame;

/// How few bytes a secret may have: what is shorter is found everywhere.
pub(crate) const SHORTEST: usize = 4;
/// How few bytes one may have that is found as a part of a word too: a shorter one would stand in hashes and numbers by chance.
const LONG: usize = 8;
/// How many bytes of a spelling a line is looked through for, before it is looked at.
const NEEDLE: usize = 64;
/// How few characters of base64 tell something.
const TELLING: usize = 6;

/// What is looked for in a text before a secret's spellings are.
pub(super) struct Needle {
    pub(super) bytes: Vec<u8>,
    /// The numbers of the spellings that have it, and how far behind their beginning.
    pub(super) of: Vec<(usize, usize)>,
}

/// Something that is to be found wherever it is.
#[derive(Clone)]
pub(crate) struct Secret {
    /// The spellings that stand in a text as they are.
    pub(super) plain: Vec<Vec<u8>>,
    /// Those in base64: what is sure to stand there, behind how many characters that are partly its own, and before how many.
    pub(super) encoded: Vec<(usize, Vec<u8>, usize)>,
    /// The longest part of it that JSON escapes by numbers alone: `\u0068`.
    pub(super) sure: Vec<u8>,
    /// Of a short one, the frame of the records: in what tells what these are, such as ids and times, it would stand by chance.
    frame: Option<&'static Frame>,
}

impl Secret {
    /// Takes a secret, unless it is too short to be told from anything else. A short one is a whole word, and does not stand in
    /// what tells what a record of this frame is.
    pub(crate) fn new(secret: &str, frame: &'static Frame) -> Option<Self> {
        if secret.len() < SHORTEST {
            return None;
        }
        // Files end lines differently.
        let unix = secret.replace("\r\n", "\n");
        let ends = [secret.to_owned(), unix.replace('\n', "\r\n"), unix];
        let plain: BTreeSet<Vec<u8>> = ends.into_iter().map(String::into_bytes).collect();
        let encoded: BTreeSet<_> = plain
            .iter()
            .flat_map(|spelt| (0..3).flat_map(|before| encoded(spelt, before)))
            .collect();
        let runs = secret.as_bytes().split(|byte| !is_kept(*byte));
        let sure = runs.max_by_key(|run| run.len()).unwrap_or_default().to_vec();
        let frame = (secret.len() < LONG).then_some(frame);
        let (plain, encoded) = (plain.into_iter().collect(), encoded.into_iter().collect());
        Some(Self { plain, encoded, sure, frame })
    }

    /// Returns bytes of which each text that has it as it is has some, each with the spellings of which it is a part, and how far
    /// behind their beginning; nothing if any text may have it.
    pub(super) fn needles(&self) -> Option<Vec<Needle>> {
        if self.sure.is_empty() {
            return None;
        }
        // What is looked for is put together as one machine, which is as large as all of it.
        let begin = |bytes: &[u8]| bytes.get(..NEEDLE).unwrap_or(bytes).to_vec();
        let sure = begin(&self.sure);
        let plain = self.plain.iter().enumerate();
        let of = plain.filter_map(|(n, spelt)| Some((n, memmem::find(spelt, &sure)?))).collect();
        let encoded = (self.plain.len()..).zip(&self.encoded);
        let encoded =
            encoded.map(|(n, (_, core, _))| Needle { bytes: begin(core), of: vec![(n, 0)] });
        Some(encoded.chain([Needle { bytes: sure, of }]).collect())
    }

    /// Returns whether a text ends with the beginning of it, and not with all of it.
    pub(super) fn begins_at_end(&self, text: &[u8]) -> bool {
        let encoded = self.encoded.iter().map(|(_, core, _)| core);
        self.plain.iter().chain(encoded).any(|spelt| {
            let mut cuts = (SHORTEST..spelt.len()).filter_map(|length| spelt.get(..length));
            cuts.any(|cut| text.ends_with(cut))
        })
    }

    /// Finds all its spellings in a text.
    pub(super) fn find(&self, text: &[u8], see: &mut See<'_>) {
        let encoded = self.encoded.iter().map(|(_, core, _)| core);
        for (n, spelt) in self.plain.iter().chain(encoded).enumerate() {
            for start in memmem::find_iter(text, spelt) {
                self.see_at(n, start, text, see);
            }
        }
    }

    /// Sees one of its spellings, if that begins there in a text.
    pub(super) fn see_at(&self, spelling: usize, start: usize, text: &[u8], see: &mut See<'_>) {
        let stands = |spelt: &[u8]| text.get(start..).is_some_and(|text| text.starts_with(spelt));
        if let Some(plain) = self.plain.get(spelling) {
            let range = start..start + plain.len();
            if stands(plain) && (self.frame.is_none() || is_word(text, &range)) {
                see(Spelt { range, filling: Filling::Mark, before: 0, after: 0, of: 0 });
            }
            return;
        }
        let encoded = spelling.checked_sub(self.plain.len()).and_then(|n| self.encoded.get(n));
        if let Some((before, core, after)) = encoded.filter(|(_, core, _)| stands(core)) {
            let (range, filling) = (start..start + core.len(), Filling::Code);
            see(Spelt { range, filling, before: *before, after: *after, of: 0 });
        }
    }

    /// Returns the frame in which it would stand by chance.
    pub(super) fn frame(&self) -> Option<&'static Frame> {
        self.frame
    }
}

/// Returns those places in a line at which something is said, where what is there would tell what a record of a frame is by chance.
pub(super) fn said(
    line: &[u8],
    mut places: Vec<Place>,
    frame: impl Fn(&Place) -> Option<&'static Frame>,
) -> Vec<Place> {
    if let Some(frame_of_all) = places.iter().find_map(&frame) {
        let untelling = place::untelling(line, frame_of_all);
        let is_said = |place: &Place| untelling.as_ref().is_none_or(|there| place.is_within(there));
        places.retain(|place| frame(place).is_none() || is_said(place));
    }
    places
}

/// Returns true if JSON escapes a byte only by its number.
fn is_kept(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)
}

/// How many bytes of a control sequence of a terminal stand before its last one, at most.
const CONTROL: usize = 32;

/// Returns whether a text ends with a control sequence of a terminal, such as one that begins a colour.
fn ends_control(text: &[u8]) -> bool {
    let Some((b'@'..=b'~', before)) = text.split_last() else { return false };
    let is_inner = |byte: &&u8| matches!(byte, b' '..=b'?');
    let inner = before.iter().rev().take(CONTROL).take_while(is_inner).count();
    let begins = before.get(..before.len() - inner).unwrap_or_default();
    begins.ends_with(b"\x1b[") || begins.ends_with("\u{9b}".as_bytes())
}

/// Returns whether bytes are a word of their own. A control sequence before them, which is not shown, does not belong to it.
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

/// Returns what is sure to stand in the base64 of bytes in which these come after `before` others, for both alphabets.
fn encoded(bytes: &[u8], before: usize) -> Vec<(usize, Vec<u8>, usize)> {
    let all: Vec<u8> = std::iter::repeat_n(0, before).chain(bytes.iter().copied()).collect();
    // The first character that no byte before it is part of, and those whose bits are all here.
    let (from, to) = ((before * 8).div_ceil(6), all.len() * 8 / 6);
    let code = |alphabet: &[u8; 64]| -> Vec<u8> {
        let sextet = |n: usize| {
            let bit = |n: usize| all.get(n / 8).map_or(0, |byte| byte >> (7 - n % 8) & 1);
            (0..6).fold(0, |value, of| value << 1 | usize::from(bit(n * 6 + of)))
        };
        (from..to).filter_map(|n| alphabet.get(sextet(n)).copied()).collect()
    };
    let partly = usize::from(before > 0);
    let cores = BTreeSet::from([code(STANDARD), code(SAFE)]);
    let telling = cores.into_iter().filter(|core| core.len() >= TELLING);
    telling.map(|core| (partly, core, 1)).collect()
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
