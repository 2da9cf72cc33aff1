//! Ids: what every hash in the store covers. This is the only definition of the id contract.
//!
//! All hashes are BLAKE3 in keyed mode. The key is the ASCII name of the domain, padded with zero bytes to 32.
//!
//! | id | key | what is hashed |
//! |---|---|---|
//! | [`LineId`] | none (plain BLAKE3) | the bytes of the line |
//! | [`EntryId`] | `undertext entry 1` | the link's id (32 bytes, or nothing), then the line's id |
//! | [`Running`] | `undertext running 1` | the previous running hash, the entry's id, the separator before it |
//! | [`OperationId`] | `undertext operation 2` | see [`crate::model::Operation`] |
//! | [`Digest`] of facts | `undertext facts 2` | their encodings, each preceded by its length |
//! | [`Digest`] of words | `undertext words 2` | the salt (16 bytes), then the text |
//! | [`Digest`] of bytes | none (plain BLAKE3) | the bytes of a file that is stored whole |
//!
//! The link is empty if the line has a name of its own (see [`crate::model::line::Shape::name`]); otherwise it is the id of the
//! entry before this one in its file. The running hash of an empty generation is 32 zero bytes.
//!
//! Invariant: these functions never change their results; the tests pin examples.

use std::fmt;

use super::{OperationNumber, SessionName};

const fn domain(name: &str) -> [u8; 32] {
    let mut key = [0; 32];
    let bytes = name.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        key[i] = bytes[i];
        i += 1;
    }
    key
}

const ENTRY: [u8; 32] = domain("undertext entry 1");
const RUNNING: [u8; 32] = domain("undertext running 1");
const OPERATION: [u8; 32] = domain("undertext operation 2");
const FACTS: [u8; 32] = domain("undertext facts 2");
const WORDS: [u8; 32] = domain("undertext words 2");
/// How many bytes of facts are hashed at once.
const PIECE: usize = 1 << 16;

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 32]);

        impl $name {
            /// Wraps the 32 bytes of a stored id.
            pub const fn new(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            /// Returns the 32 bytes.
            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }

            /// Returns the id in `bytes` if there are exactly 32.
            pub fn from_slice(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self)
            }

            /// Parses 64 hexadecimal digits.
            pub fn from_hex(text: &str) -> Option<Self> {
                let mut bytes = [0; 32];
                let pairs = text.as_bytes().chunks(2);
                if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                    return None;
                }
                for (byte, pair) in bytes.iter_mut().zip(pairs) {
                    *byte = u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()?;
                }
                Some(Self(bytes))
            }
        }

        impl fmt::Display for $name {
            /// Writes hexadecimal digits; the precision limits their number: `{id:.12}`.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut digits = String::with_capacity(64);
                for nibble in self.0.iter().flat_map(|byte| [byte >> 4, byte & 15]) {
                    digits.extend(char::from_digit(nibble.into(), 16));
                }
                let end = f.precision().unwrap_or(64).min(64);
                f.write_str(digits.get(..end).unwrap_or_default())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "(\"{:.12}\")"), self)
            }
        }
    };
}

id_type! {
    /// The BLAKE3 of a line's bytes.
    LineId
}
id_type! {
    /// The id of a line at its place in a session.
    EntryId
}
id_type! {
    /// The hash that proves the order and completeness of a generation so far.
    Running
}
id_type! {
    /// The hash that covers an operation and all earlier operations of its session.
    OperationId
}

id_type! {
    /// The hash by which a record refers to data that is stored next to it.
    Digest
}

/// The random id of a store, drawn when the store is created.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoreId([u8; 16]);

impl StoreId {
    /// Wraps the 16 bytes of an id.
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the 16 bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Parses 32 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let is_hex = text.len() == 32 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = is_hex.then(|| u128::from_str_radix(text, 16).ok()).flatten();
        number.map(|number| Self(number.to_be_bytes()))
    }
}

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl serde::Serialize for StoreId {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl fmt::Debug for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreId({self})")
    }
}

/// A user account on one computer: a random number that is drawn once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MachineId(u64);

impl MachineId {
    /// Wraps a number that was drawn.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl OperationId {
    /// Returns the hash of an operation. It covers the operation before it, the store, the session, the number and the record.
    pub(crate) fn of(
        before: Option<OperationId>,
        store: StoreId,
        session: &SessionName,
        n: OperationNumber,
        record: &[u8],
    ) -> Self {
        let SessionName { format, id } = session;
        let mut input = Vec::with_capacity(128 + id.len() + record.len());
        input.extend_from_slice(before.unwrap_or_default().as_bytes());
        input.extend_from_slice(store.as_bytes());
        for text in [format, id] {
            input.extend_from_slice(&(text.len() as u64).to_le_bytes());
            input.extend_from_slice(text.as_bytes());
        }
        input.extend_from_slice(&n.get().to_le_bytes());
        input.extend_from_slice(record);
        Self(*blake3::keyed_hash(&OPERATION, &input).as_bytes())
    }
}

impl Digest {
    /// The digest that represents absent data.
    pub(crate) const NONE: Self = Self([0; 32]);

    /// Returns the digest of the encodings of facts.
    pub(crate) fn of_facts<'a>(encodings: impl Iterator<Item = &'a [u8]>) -> Self {
        // Small input is hashed in one call, which is many times faster.
        let (mut piece, mut many) = (Vec::with_capacity(256), None);
        for bytes in encodings {
            piece.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            piece.extend_from_slice(bytes);
            if piece.len() > PIECE {
                many.get_or_insert_with(|| blake3::Hasher::new_keyed(&FACTS)).update(&piece);
                piece.clear();
            }
        }
        Self(match many {
            None => *blake3::keyed_hash(&FACTS, &piece).as_bytes(),
            Some(mut hasher) => *hasher.update(&piece).finalize().as_bytes(),
        })
    }

    /// Returns the digest of words with a salt.
    pub fn of_words(salt: &[u8; 16], text: &str) -> Self {
        let mut hasher = blake3::Hasher::new_keyed(&WORDS);
        Self(*hasher.update(salt).update(text.as_bytes()).finalize().as_bytes())
    }

    /// Returns the digest of bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

impl LineId {
    /// Returns the id of a line.
    pub fn of(line: &[u8]) -> Self {
        Self(*blake3::hash(line).as_bytes())
    }
}

impl EntryId {
    /// Returns the id of a line that follows `link`, or of one that has a name of its own.
    pub fn of(link: Option<EntryId>, line: LineId) -> Self {
        let mut input = [0; 64];
        let used = if let Some(link) = link {
            input[..32].copy_from_slice(&link.0);
            input[32..].copy_from_slice(&line.0);
            64
        } else {
            input[..32].copy_from_slice(&line.0);
            32
        };
        Self(*blake3::keyed_hash(&ENTRY, &input[..used]).as_bytes())
    }
}

impl Running {
    /// The running hash of an empty generation.
    pub const EMPTY: Self = Self([0; 32]);

    /// Returns the running hash after one more entry.
    #[must_use]
    pub fn then(self, separator: &[u8], entry: EntryId) -> Self {
        let mut input = [0; 128];
        let used = 64 + separator.len();
        if used <= input.len() {
            input[..32].copy_from_slice(&self.0);
            input[32..64].copy_from_slice(&entry.0);
            input[64..used].copy_from_slice(separator);
            return Self(*blake3::keyed_hash(&RUNNING, &input[..used]).as_bytes());
        }
        let mut hasher = blake3::Hasher::new_keyed(&RUNNING);
        hasher.update(&self.0).update(&entry.0).update(separator);
        Self(*hasher.finalize().as_bytes())
    }
}

/// The first digits of an id, as typed by a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdPrefix {
    low: [u8; 32],
    high: [u8; 32],
}

impl IdPrefix {
    /// Reads 1 to 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() || text.len() > 64 {
            return None;
        }
        let (mut low, mut high) = ([0; 32], [0xff; 32]);
        for (i, c) in text.chars().enumerate() {
            let digit = u8::try_from(c.to_digit(16)?).ok()?;
            let (keep, shift) = if i % 2 == 0 { (0x0f, 4) } else { (0xf0, 0) };
            low[i / 2] = (low[i / 2] & keep) | (digit << shift);
            high[i / 2] = (high[i / 2] & keep) | (digit << shift);
        }
        Some(Self { low, high })
    }

    /// Returns the prefix that consists of all digits of an id and so matches it alone.
    pub fn whole(id: &EntryId) -> Self {
        Self { low: id.0, high: id.0 }
    }

    /// Returns true if an id starts with these digits.
    pub fn matches(&self, id: &EntryId) -> bool {
        self.low <= id.0 && id.0 <= self.high
    }

    /// Returns the least and the greatest id that start with these digits.
    pub fn bounds(&self) -> (EntryId, EntryId) {
        (EntryId(self.low), EntryId(self.high))
    }
}

/// A record's own name, shortened to 63 bits for an index. Candidates are compared in full.
///
/// If a name starts with 8 hexadecimal digits, they become the high 32 bits of the tag, so a typed prefix is a range of tags; the
/// rest is hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameTag(u64);

impl NameTag {
    /// Returns the tag of a name.
    pub fn of(name: &str) -> Self {
        let hash = blake3::hash(name.as_bytes());
        let mut low = [0; 8];
        low.copy_from_slice(&hash.as_bytes()[..8]);
        let low = u64::from_le_bytes(low);
        let tag = match leading_hex(name) {
            (digits, 8) => (u64::from(digits) << 31) | (low & 0x7fff_ffff),
            _ => low >> 1,
        };
        Self(tag)
    }

    /// Wraps a tag that was stored.
    pub const fn new(tag: u64) -> Self {
        Self(tag)
    }

    /// Returns the number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the least and the greatest tag of names that start with `prefix`; the two are equal unless it is hexadecimal.
    pub fn bounds(prefix: &str) -> (Self, Self) {
        let whole = Self::of(prefix);
        match leading_hex(prefix) {
            (digits, 8) => {
                (Self(u64::from(digits) << 31), Self((u64::from(digits) << 31) | 0x7fff_ffff))
            }
            (digits, n) if n > 0 && n == prefix.len() => {
                let rest = 4 * (8 - n);
                let low = u64::from(digits) << rest;
                (Self(low << 31), Self(((low + (1 << rest)) << 31) - 1))
            }
            _ => (whole, whole),
        }
    }
}

/// Returns the value and the count of the leading hexadecimal digits, at most 8.
fn leading_hex(name: &str) -> (u32, usize) {
    let mut value = 0;
    let mut n = 0;
    for digit in name.chars().take(8).map_while(|c| c.to_digit(16)) {
        value = (value << 4) | digit;
        n += 1;
    }
    (value, n)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pins exact output, so that no later change of code can change an id.
    #[test]
    fn ids_are_pinned_for_ever() {
        let line = LineId::of(br#"{"uuid":"a"}"#);
        let named = EntryId::of(None, line);
        let linked = EntryId::of(Some(named), line);
        let running = Running::EMPTY.then(b"", named).then(b"\n", linked);
        let long = Running::EMPTY.then(&[b' '; 200], named);
        insta::assert_snapshot!(
            format!("{line}\n{named}\n{linked}\n{running}\n{long}"),
            @r"
        76c6408680a3f04c95cfff5c2fbdd103f37f2ae3e1f41c9040a945d078034d9f
        f24150488584b098213226459cc3af7173cb9be43c9a5133d3817a84c0d779f7
        a5685628cfe0d3d8b35e0ac5a2dbce1229cac91a08325b423960668122adcfa9
        9f6b2bc3f88eccc6cb43f4f8c29d314c8623ee58b4ab29a6f7e672c9b327b742
        305bfcd878a732a31f61d35f27f7d0f0f4734bdaa9ff2db16549f6301bddb77c
        "
        );
    }

    #[test]
    fn a_prefix_matches_what_begins_with_it() {
        let id = EntryId::of(None, LineId::of(b"x"));
        let text = id.to_string();
        for n in 1..=64 {
            assert!(IdPrefix::parse(&text[..n]).unwrap().matches(&id), "{n}");
        }
        let other = if text.starts_with('0') { "1" } else { "0" };
        assert!(!IdPrefix::parse(other).unwrap().matches(&id));
        assert_eq!(IdPrefix::parse(""), None);
        assert_eq!(IdPrefix::parse("xyz"), None);
        assert_eq!(IdPrefix::parse("ä"), None);
    }

    #[test]
    fn a_tag_lies_within_the_bounds_of_every_prefix_of_a_hexadecimal_name() {
        let name = "f81d4fae-7dec-41d0-8765-00a0c91e6bf6";
        for n in 1..=name.len() {
            let (low, high) = NameTag::bounds(&name[..n]);
            let tag = NameTag::of(name);
            assert!(low <= tag && tag <= high, "{n}");
        }
        let (low, high) = NameTag::bounds("ffffffff");
        assert!(low <= NameTag::of("ffffffff-1") && NameTag::of("ffffffff-1") <= high);
        assert!(high.get() < 1 << 63);
    }
}
