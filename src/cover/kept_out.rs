//! What was taken out, so that it is kept out of all that comes later: of each spelling a salted hash, and so much of its
//! beginning that a line without it is passed over quickly.
//!
//! ```text
//! row    salt (16), hash (32), head (4), probe (4), length (4), flags (1), the rule by which it was found
//! head   20 bits of a product of its first 8 bytes
//! probe  of a spelling of more than 256 bytes, 4 bytes of the hash of its first 256, which rules out most texts that only begin alike
//! hash   BLAKE3, keyed "undertext kept out 1", of the salt and the spelling
//! ```
//!
//! Invariant: a row tells nobody what was taken out, unless he can guess it.

use std::{collections::BTreeMap, ops::Range};

use super::{
    place::{self, Filling, Layers, Place, Spelt},
    secret::Secret,
};

/// How few bytes a spelling may have that is kept out.
const LEAST: usize = 8;
/// How many bytes of a longer spelling are hashed before all of it is.
const PROBED: usize = 256;
/// How many bits of a beginning are known.
const BITS: u32 = 20;
/// The key of the hashes.
const KEY: [u8; 32] = *b"undertext kept out 1\0\0\0\0\0\0\0\0\0\0\0\0";
/// Spreads the first bytes of a spelling over the bits of its head.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

const CODE: u8 = 1;
const BEFORE: u8 = 2;
/// It is spelt otherwise where it is escaped, and in forms.
const ESCAPED: u8 = 4;

/// A spelling that is kept out.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hashed {
    salt: [u8; 16],
    hash: [u8; 32],
    head: u32,
    probe: [u8; 4],
    size: usize,
    flags: u8,
    rule: Option<String>,
}

impl Hashed {
    fn of(spelling: &[u8], salt: [u8; 16], flags: u8, rule: Option<&str>) -> Option<Self> {
        let head = head(spelling.get(..LEAST)?);
        let (hash, probe, size) = (hash(&salt, spelling), probe(&salt, spelling), spelling.len());
        Some(Self { salt, hash, head, probe, size, flags, rule: rule.map(str::to_owned) })
    }

    fn encode(&self) -> Vec<u8> {
        let size = u32::try_from(self.size).unwrap_or(u32::MAX);
        let mut row = [self.salt.as_slice(), &self.hash].concat();
        row.extend(self.head.to_le_bytes().into_iter().chain(self.probe));
        row.extend(size.to_le_bytes());
        row.push(self.flags);
        row.extend_from_slice(self.rule.as_deref().unwrap_or_default().as_bytes());
        row
    }

    fn decode(row: &[u8]) -> Option<Self> {
        let (salt, rest) = row.split_first_chunk()?;
        let (hash, rest) = rest.split_first_chunk()?;
        let (head, rest) = rest.split_first_chunk()?;
        let (probe, rest) = rest.split_first_chunk()?;
        let (size, rest) = rest.split_first_chunk()?;
        let (flags, rule) = rest.split_first()?;
        let rule = str::from_utf8(rule).ok().filter(|rule| !rule.is_empty()).map(str::to_owned);
        let (head, size) = (u32::from_le_bytes(*head), u32::from_le_bytes(*size));
        let size = usize::try_from(size).ok().filter(|size| *size >= LEAST)?;
        Some(Self { salt: *salt, hash: *hash, head, probe: *probe, size, flags: *flags, rule })
    }

    /// Returns whether bytes are this spelling.
    fn is(&self, bytes: &[u8]) -> bool {
        probe(&self.salt, bytes) == self.probe && hash(&self.salt, bytes) == self.hash
    }
}

impl Secret {
    /// Returns whether it can be kept out: a short one would be found by trying all there are.
    pub(crate) fn can_be_kept_out(&self) -> bool {
        self.plain.iter().all(|spelt| spelt.len() >= LEAST)
    }

    /// Returns the rows by which it is kept out; none if it is too short for that.
    pub(crate) fn rows(&self, salt: [u8; 16], rule: Option<&str>) -> Vec<Vec<u8>> {
        if !self.can_be_kept_out() {
            return Vec::new();
        }
        let plain = self.plain.iter().map(|spelt| {
            let is_sure = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
            let flags = if spelt.iter().all(is_sure) { 0 } else { ESCAPED };
            Hashed::of(spelt, salt, flags, rule)
        });
        let code = self.encoded.iter().map(|(before, core, _)| {
            Hashed::of(core, salt, if *before > 0 { CODE | BEFORE } else { CODE }, rule)
        });
        plain.chain(code).flatten().map(|hashed| hashed.encode()).collect()
    }
}

/// What is at the door: it covers what was taken out before.
#[derive(Default)]
pub(crate) struct Guard {
    by_head: BTreeMap<u32, Vec<Hashed>>,
    /// A bit for each head.
    heads: Vec<u64>,
    is_escaped: bool,
}

impl Guard {
    /// Reads rows; one that cannot be read keeps nothing out.
    pub(crate) fn new<'r>(rows: impl IntoIterator<Item = &'r Vec<u8>>) -> Self {
        let mut guard = Self::default();
        for hashed in rows.into_iter().filter_map(|row| Hashed::decode(row)) {
            guard.heads.resize(1 << (BITS - 6), 0);
            if let Some(word) = guard.heads.get_mut(index(hashed.head).0) {
                *word |= index(hashed.head).1;
            }
            guard.is_escaped |= hashed.flags & ESCAPED != 0;
            let held = guard.by_head.entry(hashed.head).or_default();
            if !held.contains(&hashed) {
                held.push(hashed);
            }
        }
        guard
    }

    /// Returns the line with all covered that is kept out, and the rule of the first of it; nothing if it has none of it.
    pub(crate) fn cover(&self, line: &[u8]) -> Option<(Vec<u8>, Option<String>)> {
        let (places, rule) = self.places(line);
        Some((place::cover(line, places)?, rule))
    }

    /// Returns whether bytes have something that is kept out.
    pub(crate) fn is_in(&self, bytes: &[u8]) -> bool {
        !self.places(bytes).0.is_empty()
    }

    /// Returns whether bytes that end too early may end within something that is kept out: at least 8 bytes of it are there.
    pub(crate) fn may_cut(&self, bytes: &[u8]) -> bool {
        let mut is_cut = false;
        if !self.by_head.is_empty() {
            let layers = Layers { escaped: true, forms: self.is_escaped };
            place::places(bytes, layers, &mut |text, _| {
                self.find_heads(text, &mut |start, hashed| {
                    is_cut |= start.saturating_add(hashed.size) > text.len();
                });
            });
        }
        is_cut
    }

    fn places(&self, line: &[u8]) -> (Vec<Place>, Option<String>) {
        if self.by_head.is_empty() {
            return (Vec::new(), None);
        }
        let mut rule = None;
        // Any character may be escaped by its number.
        let escaped = self.is_escaped || memchr::memmem::find(line, b"\\u00").is_some();
        let layers = Layers { escaped, forms: self.is_escaped };
        let places = place::places(line, layers, &mut |text, see| {
            self.find(text, &mut |range, hashed| {
                rule = rule.take().or_else(|| hashed.rule.clone());
                let is_code = hashed.flags & CODE != 0;
                let filling = if is_code { Filling::Code } else { Filling::Mark };
                let before = usize::from(hashed.flags & BEFORE != 0);
                see(Spelt { range, filling, before, after: usize::from(is_code), of: 0 });
            });
        });
        (places, rule)
    }

    fn find(&self, text: &[u8], see: &mut dyn FnMut(Range<usize>, &Hashed)) {
        self.find_heads(text, &mut |start, hashed| {
            let range = start..start.saturating_add(hashed.size);
            let found = text.get(range.clone());
            if found.is_some_and(|found| hashed.is(found)) {
                see(range, hashed);
            }
        });
    }

    /// Finds what begins as a spelling does.
    fn find_heads(&self, text: &[u8], see: &mut dyn FnMut(usize, &Hashed)) {
        for (start, window) in text.windows(LEAST).enumerate() {
            let head = head(window);
            let (word, bit) = index(head);
            if self.heads.get(word).is_none_or(|word| word & bit == 0) {
                continue;
            }
            self.by_head.get(&head).into_iter().flatten().for_each(|hashed| see(start, hashed));
        }
    }
}

/// Returns the head of a spelling that begins with these bytes.
fn head(window: &[u8]) -> u32 {
    let word = window.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    u32::try_from(word.wrapping_mul(SPREAD) >> (64 - BITS)).unwrap_or_default()
}

/// Returns the word in which a head has its bit, and the bit.
fn index(head: u32) -> (usize, u64) {
    (usize::try_from(head >> 6).unwrap_or_default(), 1 << (head & 63))
}

/// Returns the probe of a long spelling; of any other one it tells nothing.
fn probe(salt: &[u8; 16], spelling: &[u8]) -> [u8; 4] {
    let mut probe = [0; 4];
    if let Some(beginning) = spelling.get(..PROBED).filter(|_| spelling.len() > PROBED) {
        probe.copy_from_slice(&hash(salt, beginning)[..4]);
    }
    probe
}

fn hash(salt: &[u8; 16], spelling: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_keyed(&KEY);
    *hasher.update(salt).update(spelling).finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cover::{FRAME, secret_in_line};

    fn guard(secrets: &[&str]) -> Guard {
        let rows = secrets.iter().map(|secret| Secret::new(secret, &FRAME).unwrap());
        let rows: Vec<_> = rows.flat_map(|secret| secret.rows([7; 16], Some("a-rule"))).collect();
        Guard::new(&rows)
    }

    #[test]
    fn what_is_kept_out_is_covered_as_if_it_were_known() {
        let guard = guard(&["hunter2!", "correct/horse=battery"]);
        let lines = [
            r#"{"a":"is hunter2!."}"#,
            r#"{"a":"\u0068unter2!"}"#,
            r#"{"a":"{\"x\":\"correct\\/horse\\u003dbattery\"}"}"#,
            r#"{"a":"eHhodW50ZXIyIXRhaWw="}"#,
            "https://x/?p=hunter2%21&q",
            "https://x/?p=%68unter2%21&q",
        ];
        let covered = lines.map(|line| guard.cover(line.as_bytes()).unwrap());
        let covered = covered.map(|(line, rule)| (String::from_utf8(line).unwrap(), rule));
        let rule = || Some("a-rule".to_owned());
        let expected = [
            r#"{"a":"is ********."}"#,
            r#"{"a":"[redacted]***"}"#,
            r#"{"a":"{\"x\":\"[redacted]*******************\"}"}"#,
            r#"{"a":"eHAAAAAAAAAAAARhaWw="}"#,
            "https://x/?p=[redacted]&q",
            "https://x/?p=[redacted]**&q",
        ];
        assert_eq!(covered, expected.map(|line| (line.to_owned(), rule())));
        assert!(guard.cover(br#"{"a":"hunter3! correct horse battery"}"#).is_none());
    }

    #[test]
    fn what_is_too_short_or_torn_keeps_nothing_out() {
        assert!(Secret::new("1234567", &FRAME).unwrap().rows([1; 16], None).is_empty());
        assert!(!Guard::new(&[vec![], vec![1; 60], vec![0; 61]]).is_in(&[0; 100]));
    }

    #[test]
    fn what_may_end_within_it_is_known_by_its_beginning() {
        let guard = guard(&["correct/horse=battery"]);
        let check = |text: &str, expected| {
            assert_eq!(guard.may_cut(text.as_bytes()), expected, "{text}");
        };
        check(r#"{"a":"is correct/h"#, true);
        check(r#"{"a":"is correct\/horse\u003dbatter"#, true);
        check(r#"{"a":"is correct/horse=battery"#, false);
        check(r#"{"a":"is correct"#, false);
    }

    #[test]
    fn a_long_text_is_told_from_one_that_begins_alike() {
        let text = |end: &str| format!("{} {end}", "the same words ".repeat(100));
        let guard = guard(&[&text("one")]);
        assert!(guard.is_in(text("one").as_bytes()));
        assert!(!guard.is_in(text("two").as_bytes()));
    }

    #[test]
    fn a_row_does_not_hold_the_secret() {
        for row in Secret::new("correct horse", &FRAME).unwrap().rows([1; 16], None) {
            assert!(!row.windows(3).any(|part| b"correct horse".windows(3).any(|of| of == part)));
        }
    }

    proptest! {
        #[test]
        fn it_covers_what_the_secret_itself_covers((secret, line) in secret_in_line()) {
            let known = Secret::new(&secret, &FRAME).unwrap().cover(line.as_bytes());
            let hashed = guard(&[&secret]).cover(line.as_bytes());
            prop_assert_eq!(hashed.map(|(line, _)| line), known);
        }
    }
}
