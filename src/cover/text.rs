//! A text in a line, and the texts that are escaped within it.

use std::ops::Range;

/// A text that was read otherwise than it is there, and where each of its bytes comes from.
pub(super) struct Text {
    pub(super) bytes: Vec<u8>,
    /// Of each byte the stretch of the line; none where they are the same.
    pub(super) from: Option<Vec<Range<usize>>>,
}

/// Returns what bytes begin with if that is read as something else, and how many of them it has: a byte, or nothing.
pub(crate) type Reading = fn(&[u8]) -> Option<(Option<u8>, usize)>;

/// How a text may be spelt otherwise, besides by escapes, and the byte with which each such spelling begins.
pub(crate) const READINGS: [(u8, Reading); 3] =
    [(b'%', address), (b'&', entity), (CONTROL, colour)];
/// What a sequence begins with that a terminal does not show.
const CONTROL: u8 = 0x1b;
/// How long the name or the number of a character in HTML is at most, with what is around it.
const ENTITY: usize = 8;

impl Text {
    /// Returns the stretch of the line from which bytes come.
    pub(super) fn raw(&self, range: Range<usize>) -> Range<usize> {
        let Some(from) = &self.from else { return range };
        let of = from.get(range).unwrap_or_default();
        of.first().zip(of.last()).map_or(0..0, |(first, last)| first.start..last.end)
    }

    /// Reads all of it as if it stood in an address, in HTML and on a terminal, and if `forms` as if it stood in a form, where a plus
    /// is a space, as far as that makes a difference.
    pub(super) fn decoded(&self, forms: bool) -> Vec<Self> {
        let readings = READINGS.into_iter().filter(|one| has(&self.bytes, *one));
        let is_form = forms && memchr::memchr(b'+', &self.bytes).is_some();
        let all = readings.map(|(_, reading)| reading).chain(is_form.then_some(form as Reading));
        all.map(|reading| self.read(reading)).collect()
    }

    fn read(&self, reading: Reading) -> Self {
        let (mut bytes, mut from) = (Vec::with_capacity(self.bytes.len()), Vec::new());
        let mut at = 0;
        while let Some(&byte) = self.bytes.get(at) {
            let rest = self.bytes.get(at..).unwrap_or_default();
            let (read, length) = reading(rest).unwrap_or((Some(byte), 1));
            if let Some(read) = read {
                bytes.push(read);
                from.push(self.raw(at..at + length));
            }
            at += length;
        }
        Self { bytes, from: Some(from) }
    }

    /// Reads all of it as if it stood in a JSON string; what is no escape stays as it is.
    pub(super) fn unescaped(&self) -> Self {
        let (mut bytes, mut from) = (Vec::with_capacity(self.bytes.len()), Vec::new());
        let mut at = 0;
        while let Some(&byte) = self.bytes.get(at) {
            let (text, length) = match byte {
                b'\\' => escape(self.bytes.get(at + 1..).unwrap_or_default()),
                byte => (Some(char::from(byte)).filter(char::is_ascii), 1),
            };
            if let Some(text) = text {
                let mut room = [0; 4];
                let spelt = text.encode_utf8(&mut room).as_bytes();
                bytes.extend_from_slice(spelt);
                from.extend(spelt.iter().map(|_| self.raw(at..at + length)));
                at += length;
            } else {
                bytes.push(byte);
                from.push(self.raw(at..at + 1));
                at += 1;
            }
        }
        Self { bytes, from: Some(from) }
    }
}

/// Returns whether bytes have anything that is read otherwise.
fn has(bytes: &[u8], (mark, reading): (u8, Reading)) -> bool {
    let is_it = |at: usize| bytes.get(at..).and_then(reading).is_some();
    memchr::memchr_iter(mark, bytes).any(is_it)
}

/// Reads bytes in one of these ways; nothing if that makes no difference.
pub(crate) fn read(bytes: &[u8], (mark, reading): (u8, Reading)) -> Option<Vec<u8>> {
    let (mut text, mut done) = (Vec::new(), 0);
    for at in memchr::memchr_iter(mark, bytes) {
        let found = bytes.get(at..).filter(|_| at >= done).and_then(reading);
        if let Some((read, length)) = found {
            text.extend_from_slice(bytes.get(done..at).unwrap_or_default());
            text.extend(read);
            done = at + length;
        }
    }
    text.extend_from_slice(bytes.get(done..).filter(|_| done > 0)?);
    Some(text)
}

/// Reads what is encoded for an address.
fn address(rest: &[u8]) -> Option<(Option<u8>, usize)> {
    let (b'%', digits) = rest.get(..3)?.split_first()? else { return None };
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let [high, low] = digits.first_chunk()?.map(digit);
    Some((Some(u8::try_from(high? << 4 | low?).ok()?), 3))
}

/// Reads what is encoded for a form.
fn form(rest: &[u8]) -> Option<(Option<u8>, usize)> {
    if rest.starts_with(b"+") { Some((Some(b' '), 1)) } else { address(rest) }
}

/// Reads a character that has a name or a number in HTML.
fn entity(rest: &[u8]) -> Option<(Option<u8>, usize)> {
    // Most of them have nothing to do with it.
    rest.get(1).filter(|byte| matches!(byte, b'#' | b'a' | b'g' | b'l' | b'q'))?;
    let end = memchr::memchr(b';', rest.get(..ENTITY).unwrap_or(rest))?;
    let byte = match rest.get(..end)? {
        b"&amp" => b'&',
        b"&quot" => b'"',
        b"&apos" => b'\'',
        b"&lt" => b'<',
        b"&gt" => b'>',
        other => {
            let number = std::str::from_utf8(other.strip_prefix(b"&#")?).ok()?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u8::from_str_radix(digits, 16),
                None => number.parse(),
            };
            code.ok().filter(u8::is_ascii)?
        }
    };
    Some((Some(byte), end + 1))
}

/// Reads a sequence that sets a colour, as a terminal does, which does not show it.
fn colour(rest: &[u8]) -> Option<(Option<u8>, usize)> {
    let control = rest.strip_prefix(&[CONTROL])?;
    let inner = control.strip_prefix(b"[").unwrap_or_default();
    let end = inner.iter().position(|byte| !matches!(byte, b' '..=b'?'));
    Some((None, end.map_or(1, |end| end + 3)))
}

/// Reads bytes as if they stood in a JSON string; what is no escape stays as it is.
pub(crate) fn unescaped(bytes: &[u8]) -> Vec<u8> {
    let (mut text, mut rest) = (Vec::with_capacity(bytes.len()), bytes);
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let (plain, escaped) = rest.split_at(at);
        text.extend_from_slice(plain);
        let (found, length) = escape(escaped.get(1..).unwrap_or_default());
        match found {
            Some(found) => text.extend_from_slice(found.encode_utf8(&mut [0; 4]).as_bytes()),
            None => text.push(b'\\'),
        }
        rest = escaped.get(length..).unwrap_or_default();
    }
    text.extend_from_slice(rest);
    text
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_text_reads_the_same_with_its_places_and_without(text in r#"(?:[a-zé"]|\\[nrtu"/\\x]|\\u00[0-9a-f]{2}|\\ud83d\\udd11|\\ud83d){0,12}"#) {
            let whole = Text { bytes: text.clone().into_bytes(), from: None };
            prop_assert_eq!(unescaped(text.as_bytes()), whole.unescaped().bytes);
        }

        #[test]
        fn it_does_in_any_other_way_too(text in r"(?:[a-z;]|%[0-9]{1,2}|&(?:amp|lt|#[0-9]{1,3}|#x[0-9]{1,2});?|\x1b(?:\[[0-9;]{0,3}m?)?){0,12}") {
            for reading in READINGS {
                let whole = Text { bytes: text.clone().into_bytes(), from: None };
                let read = read(text.as_bytes(), reading);
                let places = whole.read(reading.1);
                prop_assert_eq!(read.as_deref().unwrap_or(text.as_bytes()), &places.bytes);
                // Each byte comes from a stretch of its own.
                let from = places.from.unwrap_or_default();
                prop_assert!(from.is_sorted_by(|one, next| one.end <= next.start));
            }
        }
    }
}
