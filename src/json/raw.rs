//! A lazy view of a valid value: it is read in place, and numbers keep their spelling.

use std::{borrow::Cow, iter, ops::Range};

use memchr::memchr;

use super::{
    scan::{blank, is_blank, value},
    text::decode,
};

/// The kind of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `{..}`
    Object,
    /// `[..]`
    Array,
    /// `".."`
    String,
    /// A number in its original spelling.
    Number,
    /// `true`
    True,
    /// `false`
    False,
    /// `null`
    Null,
}

/// A part of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// The start of an object or array.
    Open(Kind),
    /// The end of the innermost one.
    Close,
    /// A key of the innermost object.
    Key(Raw<'a>),
    /// A scalar value.
    Leaf(Raw<'a>),
}

/// One valid JSON value without white space around it, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a>(&'a [u8]);

impl<'a> Raw<'a> {
    /// Views the bytes if they are exactly one value.
    pub fn value(bytes: &'a [u8]) -> Option<Self> {
        (value(bytes, 0, &mut ()) == Ok(bytes.len())).then_some(Self(bytes))
    }

    /// Views the bytes if they are exactly one object.
    pub fn object(bytes: &'a [u8]) -> Option<Self> {
        Self::value(bytes).filter(|raw| raw.kind() == Kind::Object)
    }

    /// Views the bytes of a file if they are exactly one object, ignoring white space around it and a byte order mark.
    pub fn file(bytes: &'a [u8]) -> Option<Self> {
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        Self::object(bytes.trim_ascii())
    }

    /// Views bytes that a scan has found to be exactly one value.
    pub(crate) fn scanned(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the kind of the value.
    pub fn kind(self) -> Kind {
        match self.0.first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't') => Kind::True,
            Some(b'f') => Kind::False,
            Some(b'n') => Kind::Null,
            _ => Kind::Number,
        }
    }

    /// Returns the bytes of the value.
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns a field of an object; if a key occurs more than once, the last one.
    ///
    /// Keys are compared as raw bytes, or decoded if they contain a backslash.
    pub fn get(self, key: &str) -> Option<Self> {
        self.fields().filter(|(raw, _)| same(raw, key)).last().map(|(_, value)| value)
    }

    /// Returns the fields with these keys, like [`Raw::get`] for each, in one pass.
    pub fn pick<const N: usize>(self, keys: [&str; N]) -> [Option<Self>; N] {
        let mut values = [None; N];
        for (raw, value) in self.fields() {
            let said = said(raw);
            for (slot, key) in values.iter_mut().zip(keys) {
                // Most keys differ in the first byte.
                if said.first() == key.as_bytes().first() && *said == *key.as_bytes() {
                    *slot = Some(value);
                }
            }
        }
        values
    }

    /// Collects the fields of an object in one pass, for callers that look up many of them.
    pub fn gathered(self) -> Fields<'a> {
        let mut gathered: Vec<_> = self.fields().take(Fields::MANY + 1).collect();
        if gathered.len() > Fields::MANY {
            gathered = Vec::new();
        }
        Fields { of: self, gathered }
    }

    /// Returns an object's fields in file order: the bytes between the key's quotes, and the value.
    pub fn fields(self) -> impl Iterator<Item = (&'a [u8], Self)> {
        let bytes = self.0;
        let mut at = if self.kind() == Kind::Object { 1 } else { bytes.len() };
        iter::from_fn(move || {
            let open = element(bytes, at)?;
            let close = quoted(bytes, open);
            let start = blank(bytes, blank(bytes, close) + 1);
            at = skip(bytes, start);
            Some((bytes.get(open + 1..close - 1)?, Self(bytes.get(start..at)?)))
        })
    }

    /// Returns an array's items.
    pub fn items(self) -> impl Iterator<Item = Self> {
        let bytes = self.0;
        let mut at = if self.kind() == Kind::Array { 1 } else { bytes.len() };
        iter::from_fn(move || {
            let start = element(bytes, at)?;
            at = skip(bytes, start);
            Some(Self(bytes.get(start..at)?))
        })
    }

    /// Returns the strings in a value, at any depth, in order, skipping the values of keys for which `is_left_out` returns true.
    /// It gets the bytes between the key's quotes.
    ///
    /// This is one pass over the bytes, whatever the depth: a string is a key if a colon follows.
    pub fn strings(self, is_left_out: impl Fn(&[u8]) -> bool) -> impl Iterator<Item = Self> {
        let bytes = self.0;
        let mut at = 0;
        iter::from_fn(move || {
            loop {
                let open = at + memchr(b'"', bytes.get(at..)?)?;
                at = quoted(bytes, open);
                let string = bytes.get(open..at)?;
                let behind = blank(bytes, at);
                if bytes.get(behind) != Some(&b':') {
                    return Some(Self(string));
                }
                at = blank(bytes, behind + 1);
                if Self(string).inner().is_some_and(&is_left_out) {
                    at = skip(bytes, at);
                }
            }
        })
    }

    /// Returns the parts of a value, in order.
    ///
    /// This is one pass over the bytes, whatever the depth.
    pub(crate) fn parts(self) -> impl Iterator<Item = Part<'a>> {
        let bytes = self.0;
        let mut at = 0;
        iter::from_fn(move || {
            loop {
                at = blank(bytes, at);
                let start = at;
                match bytes.get(at)? {
                    b',' | b':' => at += 1,
                    b'{' | b'[' => {
                        at += 1;
                        return Some(Part::Open(Self(bytes.get(start..)?).kind()));
                    }
                    b'}' | b']' => {
                        at += 1;
                        return Some(Part::Close);
                    }
                    b'"' => {
                        at = quoted(bytes, at);
                        let string = Self(bytes.get(start..at)?);
                        let is_key = bytes.get(blank(bytes, at)) == Some(&b':');
                        return Some(if is_key { Part::Key(string) } else { Part::Leaf(string) });
                    }
                    _ => {
                        at = skip(bytes, at);
                        return Some(Part::Leaf(Self(bytes.get(start..at)?)));
                    }
                }
            }
        })
    }

    /// Returns the range of the value in the bytes that it was read from.
    pub fn span_in(self, bytes: &[u8]) -> Option<Range<usize>> {
        let start = self.0.as_ptr().addr().checked_sub(bytes.as_ptr().addr())?;
        let end = start.checked_add(self.0.len())?;
        bytes.get(start..end).filter(|same| same.as_ptr() == self.0.as_ptr()).map(|_| start..end)
    }

    /// Returns the bytes between the quotes of a string, with escapes unresolved.
    pub fn inner(self) -> Option<&'a [u8]> {
        self.0.strip_prefix(b"\"")?.strip_suffix(b"\"")
    }

    /// Returns a decoded string; invalid UTF-8 and unpaired surrogates become U+FFFD.
    pub fn text(self) -> Option<Cow<'a, str>> {
        self.inner().map(decode)
    }

    /// Returns the beginning of a string, decoded from at most `bytes` of its bytes; its last character may be incomplete.
    pub(crate) fn head(self, bytes: usize) -> Option<Cow<'a, str>> {
        self.inner().map(|inner| decode(inner.get(..bytes).unwrap_or(inner)))
    }

    /// Returns a number that is spelt as an integer and fits.
    pub fn u64(self) -> Option<u64> {
        self.digits()?.parse().ok()
    }

    /// Returns a number, rounded to the nearest double; none if that is infinite.
    pub fn f64(self) -> Option<f64> {
        self.digits()?.parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// Returns a boolean.
    pub fn bool(self) -> Option<bool> {
        match self.kind() {
            Kind::True => Some(true),
            Kind::False => Some(false),
            _ => None,
        }
    }

    /// Returns true if the value is `null`.
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    fn digits(self) -> Option<&'a str> {
        (self.kind() == Kind::Number).then(|| str::from_utf8(self.0).ok())?
    }
}

/// The fields of an object, in file order.
pub struct Fields<'a> {
    of: Raw<'a>,
    /// Empty if there are too many to store; then each lookup scans the object.
    gathered: Vec<(&'a [u8], Raw<'a>)>,
}

impl<'a> Fields<'a> {
    /// The maximum number of stored fields, more than any agent writes.
    const MANY: usize = 1000;

    /// Returns the value of a key, like [`Raw::get`].
    pub fn get(&self, key: &str) -> Option<Raw<'a>> {
        if self.gathered.is_empty() {
            return self.of.get(key);
        }
        self.gathered.iter().rev().find(|(raw, _)| same(raw, key)).map(|(_, value)| *value)
    }

    /// Returns a decoded string.
    pub fn text(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key).and_then(Raw::text)
    }
}

// The functions below walk bytes that a scan has found valid.

/// Returns the offset of the next element of an object or array after `at`, or none at its end.
fn element(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = blank(bytes, at);
    if bytes.get(at) == Some(&b',') {
        at = blank(bytes, at + 1);
    }
    bytes.get(at).filter(|byte| !matches!(byte, b'}' | b']')).map(|_| at)
}

/// Returns the offset after the value at `start`.
fn skip(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0usize;
    let mut at = start;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = quoted(bytes, at),
            b'{' | b'[' => {
                depth += 1;
                at += 1;
                continue;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            b',' | b':' => at += 1,
            _ => {
                let is_end =
                    |byte: &u8| matches!(byte, b',' | b':' | b'}' | b']' | b'"') || is_blank(*byte);
                let rest = bytes.get(at..).unwrap_or_default();
                // White space, which occurs here only inside nested values, is skipped one byte at a time.
                at += rest.iter().position(is_end).unwrap_or(rest.len()).max(1);
            }
        }
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

/// Returns the offset after the string at `start`: after the first quote preceded by an even number of backslashes.
fn quoted(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(quote) = bytes.get(at..).and_then(|rest| memchr(b'"', rest)) {
        let before = bytes.get(at..at + quote).unwrap_or_default();
        at += quote + 1;
        if before.iter().rev().take_while(|&&byte| byte == b'\\').count() % 2 == 0 {
            return at;
        }
    }
    bytes.len()
}

/// Returns true if the bytes between a key's quotes are this key.
pub(super) fn same(raw: &[u8], key: &str) -> bool {
    *said(raw) == *key.as_bytes()
}

/// Decodes the bytes between a key's quotes.
fn said(raw: &[u8]) -> Cow<'_, [u8]> {
    if memchr(b'\\', raw).is_none() {
        Cow::Borrowed(raw)
    } else {
        Cow::Owned(decode(raw).into_owned().into_bytes())
    }
}
