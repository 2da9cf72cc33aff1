//! Covering: what is to go of a line is written over, with as many bytes as before, however it is spelt there.
//!
//! ```text
//! as it is           the token is hunter2!
//! escaped            "the token is hunter2\u0021"
//! escaped again      "{\"token\":\"hunter2\\u0021\"}"       JSON in JSON, up to four times
//! in base64          aHVudGVyMiE=                          wherever it begins in what was encoded
//! in an address      hunter2%21
//! ```
//!
//! Invariant: a covered line has the length of the line, is an object if that was one, and its strings stand where they stood.

use std::{collections::BTreeSet, ops::Range};

use crate::json::Raw;

/// How often a text may be escaped within another.
const LEVELS: usize = 4;
/// How few bytes a secret may have: what is shorter is found everywhere.
pub(crate) const SHORTEST: usize = 4;
/// How few characters of base64 tell something.
const TELLING: usize = 6;
/// What stands in the place of what was taken out, where it fits in.
const MARK: &str = "[redacted]";

/// Something that is to be found wherever it stands.
#[derive(Clone)]
pub(crate) struct Secret {
    /// The spellings that stand in a text as they are.
    plain: Vec<Vec<u8>>,
    /// Those in base64: what is sure to stand there, behind how many characters that are partly its own, and before how many.
    encoded: Vec<(usize, Vec<u8>, usize)>,
    /// The longest part of it that no spelling changes.
    sure: Vec<u8>,
}

/// A place in a line where a secret stands.
struct Place {
    range: Range<usize>,
    filling: Filling,
}

/// What is written over a secret.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Filling {
    /// A mark, and asterisks.
    Mark,
    /// What is base64 as well.
    Code,
    /// What is a number as well.
    Number,
}

impl Place {
    /// Returns whether it lies in one of an object's strings, or is a part of a number: anything else is what the object is
    /// made of, and only looks like it.
    fn fits(&mut self, line: &[u8], strings: &[Range<usize>]) -> bool {
        let string = strings.get(strings.partition_point(|one| one.end < self.range.end));
        if string.is_some_and(|one| one.start <= self.range.start && self.range.end <= one.end) {
            return true;
        }
        let is_around =
            |one: &Range<usize>| one.start < self.range.end && self.range.start < one.end;
        let bytes = line.get(self.range.clone()).unwrap_or_default();
        let is_number = bytes.iter().all(u8::is_ascii_digit) && !string.is_some_and(is_around);
        self.filling = Filling::Number;
        is_number
    }
}

impl Secret {
    /// Takes a secret, unless it is too short to be told from anything else.
    pub(crate) fn new(secret: &str) -> Option<Self> {
        if secret.len() < SHORTEST {
            return None;
        }
        let percent = |upper: bool| -> Vec<u8> {
            let mut spelt = Vec::new();
            for byte in secret.bytes() {
                if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                    spelt.push(byte);
                } else {
                    let hex = if upper { format!("%{byte:02X}") } else { format!("%{byte:02x}") };
                    spelt.extend_from_slice(hex.as_bytes());
                }
            }
            spelt
        };
        let plain = BTreeSet::from([secret.as_bytes().to_vec(), percent(true), percent(false)]);
        let is_sure = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
        let runs = secret.as_bytes().split(|byte| !is_sure(byte));
        let sure = runs.max_by_key(|run| run.len()).unwrap_or_default().to_vec();
        let encoded = (0..3).flat_map(|before| encoded(secret.as_bytes(), before)).collect();
        Some(Self { plain: plain.into_iter().collect(), encoded, sure })
    }

    /// Returns bytes of which each line that has it has some; nothing if any line may have it.
    pub(crate) fn needles(&self) -> Option<Vec<Vec<u8>>> {
        if self.sure.is_empty() {
            return None;
        }
        let encoded = self.encoded.iter().map(|(_, core, _)| core.clone());
        // Any character may be escaped by its number.
        Some(encoded.chain([self.sure.clone(), b"\\u00".to_vec()]).collect())
    }

    /// Returns whether it stands in a line.
    pub(crate) fn is_in(&self, line: &[u8]) -> bool {
        !self.places(line).is_empty()
    }

    /// Returns where it stands in a line, in order.
    fn places(&self, line: &[u8]) -> Vec<Place> {
        let mut found = Vec::new();
        let mut text = Text { bytes: line.to_vec(), from: None };
        for level in 0..=LEVELS {
            let at = |range: Range<usize>| text.raw(range);
            for plain in &self.plain {
                for start in memchr::memmem::find_iter(&text.bytes, plain) {
                    let range = at(start..start + plain.len());
                    found.push(Place { range, filling: Filling::Mark });
                }
            }
            for (before, core, after) in &self.encoded {
                for start in memchr::memmem::find_iter(&text.bytes, core) {
                    let end = (start + core.len() + after).min(text.bytes.len());
                    let is_code =
                        |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
                    let rest = text.bytes.get(start + core.len()..end).unwrap_or_default();
                    let more = rest.iter().take_while(is_code).count();
                    let whole = start.saturating_sub(*before)..start + core.len() + more;
                    found.push(Place { range: at(whole), filling: Filling::Code });
                }
            }
            if level == LEVELS || !text.bytes.contains(&b'\\') {
                break;
            }
            text = text.unescaped();
        }
        if let Some(strings) = strings(line) {
            found.retain_mut(|place| place.fits(line, &strings));
        }
        found.sort_by_key(|place| (place.range.start, place.filling, place.range.end));
        found
    }

    /// Returns the line with it covered, if it stands there.
    pub(crate) fn cover(&self, line: &[u8]) -> Option<Vec<u8>> {
        let mut covered = line.to_vec();
        for Place { range, filling } in self.places(line) {
            fill(covered.get_mut(range).unwrap_or_default(), filling);
        }
        (covered != line).then_some(covered)
    }
}

/// Returns the strings of an object between their quotes, in order; of any other line nothing.
fn strings(line: &[u8]) -> Option<Vec<Range<usize>>> {
    Raw::object(line)?;
    let (mut spans, mut open, mut at) = (Vec::new(), None, 0);
    while let Some(byte) = line.get(at) {
        match (byte, open) {
            (b'\\', Some(_)) => at += 1,
            (b'"', None) => open = Some(at + 1),
            (b'"', Some(start)) => {
                spans.push(start..at);
                open = None;
            }
            _ => {}
        }
        at += 1;
    }
    Some(spans)
}

/// Writes over bytes.
fn fill(bytes: &mut [u8], filling: Filling) {
    bytes.fill(match filling {
        Filling::Mark => b'*',
        Filling::Code => b'A',
        Filling::Number => b'1',
    });
    if filling == Filling::Mark
        && let Some(place) = bytes.get_mut(..MARK.len())
    {
        place.copy_from_slice(MARK.as_bytes());
    }
}

/// Returns what is sure to stand in the base64 of bytes in which these stand behind `before` others, for both alphabets.
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

/// A text that was unescaped, and where each of its bytes comes from.
struct Text {
    bytes: Vec<u8>,
    /// Of each byte the place in the line, and the end; none where they are the same.
    from: Option<Vec<usize>>,
}

impl Text {
    /// Returns the stretch of the line from which bytes come.
    fn raw(&self, range: Range<usize>) -> Range<usize> {
        let at = |n: usize| match &self.from {
            Some(from) => from.get(n).copied().unwrap_or_default(),
            None => n,
        };
        at(range.start)..at(range.end)
    }

    /// Reads all of it as if it stood in a JSON string; what is no escape stays as it is.
    fn unescaped(&self) -> Self {
        let (mut bytes, mut from) = (Vec::with_capacity(self.bytes.len()), Vec::new());
        let mut at = 0;
        while let Some(&byte) = self.bytes.get(at) {
            let place = self.raw(at..at).start;
            let (text, length) = match byte {
                b'\\' => escape(self.bytes.get(at + 1..).unwrap_or_default()),
                byte => (Some(char::from(byte)).filter(char::is_ascii), 1),
            };
            if let Some(text) = text {
                let mut room = [0; 4];
                let spelt = text.encode_utf8(&mut room).as_bytes();
                bytes.extend_from_slice(spelt);
                from.extend(spelt.iter().map(|_| place));
                at += length;
            } else {
                bytes.push(byte);
                from.push(place);
                at += 1;
            }
        }
        from.push(self.raw(at..at).start);
        Self { bytes, from: Some(from) }
    }
}

/// Returns the character of an escape, given what follows its backslash, and the length of all; without one, nothing.
fn escape(rest: &[u8]) -> (Option<char>, usize) {
    let unit = |at: usize| {
        let digits = std::str::from_utf8(rest.get(at..at + 4)?).ok()?;
        u16::from_str_radix(digits, 16).ok()
    };
    match rest.first() {
        Some(b'n') => (Some('\n'), 2),
        Some(b't') => (Some('\t'), 2),
        Some(b'r') => (Some('\r'), 2),
        Some(b'b') => (Some('\u{8}'), 2),
        Some(b'f') => (Some('\u{c}'), 2),
        Some(&other @ (b'"' | b'\\' | b'/')) => (Some(char::from(other)), 2),
        Some(b'u') => {
            let Some(first) = unit(1) else { return (None, 1) };
            if let Some(one) = char::from_u32(first.into()) {
                return (Some(one), 6);
            }
            let second = unit(7).filter(|_| rest.get(5..7) == Some(b"\\u"));
            let pair = second.and_then(|second| char::decode_utf16([first, second]).next()?.ok());
            (pair, if pair.is_some() { 12 } else { 1 })
        }
        _ => (None, 1),
    }
}

/// Returns a line with all that it says covered: every string value whose key is not one of those that are kept; a line that
/// is no object is covered whole.
pub(crate) fn cover_all(line: &[u8], is_kept: &dyn Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut covered = line.to_vec();
    let Some(record) = Raw::object(line) else {
        fill(&mut covered, Filling::Mark);
        return covered;
    };
    for range in record.strings(is_kept).filter_map(|value| value.span_in(line)) {
        // Between the quotation marks.
        let inner = range.start + 1..range.end.saturating_sub(1);
        let from = (inner.start..=inner.end).collect();
        let bytes = line.get(inner.clone()).unwrap_or_default().to_vec();
        let text = Text { bytes, from: Some(from) }.unescaped();
        // What is an object stays one, such as the arguments of a call.
        let Some(within) = Raw::object(&text.bytes) else {
            fill(covered.get_mut(inner).unwrap_or_default(), Filling::Mark);
            continue;
        };
        for span in within.strings(|_| false).filter_map(|value| value.span_in(&text.bytes)) {
            let inner = text.raw(span.start + 1..span.end.saturating_sub(1));
            fill(covered.get_mut(inner).unwrap_or_default(), Filling::Mark);
        }
    }
    covered
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(secret: &str, line: &str, expected: &str) {
        let secret = Secret::new(secret).unwrap();
        let covered = secret.cover(line.as_bytes()).unwrap_or_else(|| line.into());
        assert_eq!(String::from_utf8_lossy(&covered), expected);
        assert_eq!(covered.len(), line.len());
        let has = |needle: &Vec<u8>| memchr::memmem::find(line.as_bytes(), needle).is_some();
        let needles = secret.needles().unwrap_or_default();
        assert!(line == expected || needles.is_empty() || needles.iter().any(has), "{line}");
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
        check("hunter2!", "https://x/?p=hunter2%21&q", "https://x/?p=[redacted]&q");
        check("\"a\":", r#"{"a":"\"a\":"}"#, r#"{"a":"******"}"#);
        check("123456", r#"{"123456":123456,"b":1234567.5}"#, r#"{"******":111111,"b":1111117.5}"#);
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
    fn all_that_a_line_says_is_covered_but_for_what_it_is() {
        let kept = |key: &[u8]| key == b"uuid" || key == b"type";
        let line = br#"{"uuid":"u","type":"user","m":{"content":["hello to all of you",{"x":"no"}],"n":1}}"#;
        let expected = r#"{"uuid":"u","type":"user","m":{"content":["[redacted]*********",{"x":"**"}],"n":1}}"#;
        assert_eq!(String::from_utf8_lossy(&cover_all(line, &kept)), expected);
        let line = br#"{"a":"{\"path\":\"\\/etc\\/hosts.d\",\"n\":[\"x\",2]}"}"#;
        let expected = r#"{"a":"{\"path\":\"[redacted]******\",\"n\":[\"*\",2]}"}"#;
        assert_eq!(String::from_utf8_lossy(&cover_all(line, &kept)), expected);
        assert_eq!(cover_all(b"torn {\"aa\"", &kept), b"[redacted]");
    }

    #[test]
    fn what_is_too_short_is_no_secret() {
        assert!(Secret::new("abc").is_none());
        assert!(Secret::new("abcd").is_some());
    }

    proptest! {
        #[test]
        fn a_covered_line_has_no_trace_of_it_and_is_read_as_before(
            secret in r#"[a-zA-Z0-9+/!"\\é-]{8,20}"#,
            before in r#"[a-z "\\]{0,8}"#,
            after in r#"[a-z "\\]{0,8}"#,
            depth in 0..4_usize,
        ) {
            let mut text = format!("{before}{secret}{after}");
            for _ in 0..depth {
                text = crate::json::quote(&text);
            }
            let line = format!(r#"{{"uuid":"u","a":{}}}"#, crate::json::quote(&text));
            let looked = Secret::new(&secret).unwrap();
            let covered = looked.cover(line.as_bytes()).unwrap();
            prop_assert_eq!(covered.len(), line.len());
            prop_assert!(!looked.is_in(&covered));
            prop_assert!(Raw::object(&covered).is_some(), "{}", String::from_utf8_lossy(&covered));
        }
    }
}
