//! Strings: decoding, encoding, and mapping decoded offsets to raw ones.

use std::borrow::Cow;

use memchr::memchr;

/// Returns the text as a JSON string with quotes.
pub fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns bytes as text; invalid UTF-8, which is rare, becomes U+FFFD.
fn lossy(raw: &[u8]) -> Cow<'_, str> {
    str::from_utf8(raw).map_or_else(|_| String::from_utf8_lossy(raw), Cow::Borrowed)
}

/// Decodes the bytes between the quotes of a valid string.
pub(super) fn decode(raw: &[u8]) -> Cow<'_, str> {
    let Some(mut at) = memchr(b'\\', raw) else { return lossy(raw) };
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    loop {
        let (plain, escaped) = rest.split_at(at);
        text.push_str(&lossy(plain));
        let Some((decoded, len)) = unescape(escaped) else { return text.into() };
        text.push(decoded);
        rest = escaped.get(len..).unwrap_or_default();
        at = memchr(b'\\', rest).unwrap_or(rest.len());
    }
}

/// Maps an offset in the decoded text to one in the bytes between the quotes of a valid string.
///
/// An offset inside a character counts as the end of that character.
pub fn place_of(raw: &[u8], at: usize) -> usize {
    let mut decoded = 0;
    let mut place = 0;
    while decoded < at {
        let Some(rest) = raw.get(place..).filter(|rest| !rest.is_empty()) else { break };
        let end = memchr(b'\\', rest).unwrap_or(rest.len());
        let plain = rest.get(..end).unwrap_or_default();
        let sound = std::str::from_utf8(plain).map_or_else(|at| at.valid_up_to(), str::len);
        let passed = sound.min(at - decoded);
        (place, decoded) = (place + passed, decoded + passed);
        if decoded >= at {
            return place;
        }
        for chunk in plain.get(sound..).unwrap_or_default().utf8_chunks() {
            let valid = chunk.valid().len().min(at - decoded);
            (place, decoded) = (place + valid, decoded + valid);
            if decoded < at && !chunk.invalid().is_empty() {
                place += chunk.invalid().len();
                decoded += char::REPLACEMENT_CHARACTER.len_utf8();
            }
            if decoded >= at {
                return place;
            }
        }
        let Some((c, length)) = raw.get(place..).and_then(unescape) else { break };
        (place, decoded) = (place + length, decoded + c.len_utf8());
    }
    place
}

/// Returns true if a string in a valid value has an escape of an unpaired surrogate.
pub fn has_half_pair(value: &[u8]) -> bool {
    let mut rest = value;
    while let Some(escaped) = memchr(b'\\', rest).and_then(|at| rest.get(at..)) {
        let Some((decoded, len)) = unescape(escaped) else { return false };
        let is_half = |unit| matches!(unit, 0xd800..=0xdfff);
        if decoded == char::REPLACEMENT_CHARACTER && utf16_unit(escaped).is_some_and(is_half) {
            return true;
        }
        rest = escaped.get(len..).unwrap_or_default();
    }
    false
}

/// Decodes the escape at the start of the bytes, and returns its character and length.
fn unescape(bytes: &[u8]) -> Option<(char, usize)> {
    Some(match bytes.get(1)? {
        b'b' => ('\u{8}', 2),
        b'f' => ('\u{c}', 2),
        b'n' => ('\n', 2),
        b'r' => ('\r', 2),
        b't' => ('\t', 2),
        b'u' => {
            let unit = utf16_unit(bytes)?;
            let next = bytes.get(6..).and_then(utf16_unit);
            let pair = next.and_then(|next| char::decode_utf16([unit, next]).next()?.ok());
            match (char::from_u32(unit.into()), pair) {
                (Some(decoded), _) => (decoded, 6),
                (None, Some(decoded)) => (decoded, 12),
                (None, None) => (char::REPLACEMENT_CHARACTER, 6),
            }
        }
        &other => (char::from(other), 2),
    })
}

/// Returns the UTF-16 unit of a `\u` escape.
pub(super) fn utf16_unit(bytes: &[u8]) -> Option<u16> {
    let hex = bytes.strip_prefix(b"\\u")?.get(..4)?;
    u16::from_str_radix(str::from_utf8(hex).ok()?, 16).ok()
}
