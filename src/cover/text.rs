//! A text in a line, and the texts escaped in it.

use std::{iter, ops::Range};

use super::LEVELS;

/// A text with escapes resolved, and the origin of each of its bytes.
pub(super) struct Text {
    pub(super) bytes: Vec<u8>,
    /// For each byte, its range in the line; none if the text is the line itself.
    pub(super) from: Option<Vec<Range<usize>>>,
}

impl Text {
    /// Returns a line as it is, with escapes resolved, and so on, as long as it has any.
    pub(super) fn readings(line: &[u8]) -> impl Iterator<Item = Self> + use<> {
        let first = Self { bytes: line.to_vec(), from: None };
        let next = |text: &Self| {
            let is_escaped = text.bytes.contains(&b'\\');
            let next = is_escaped.then(|| text.unescaped());
            next.filter(|next| next.bytes.len() < text.bytes.len())
        };
        iter::successors(Some(first), next).take(LEVELS + 1)
    }

    /// Returns the range of the line that bytes come from.
    pub(super) fn raw(&self, range: Range<usize>) -> Range<usize> {
        let Some(from) = &self.from else { return range };
        let of = from.get(range).unwrap_or_default();
        of.first().zip(of.last()).map_or(0..0, |(first, last)| first.start..last.end)
    }

    /// Resolves all escapes, as if the text were in a JSON string. Everything else is unchanged.
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

/// Resolves all escapes, as if the bytes were in a JSON string. Everything else is unchanged.
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

/// Returns the character of an escape and the length of the escape, given the bytes after the backslash; no character if they are
/// not an escape.
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
    }
}
