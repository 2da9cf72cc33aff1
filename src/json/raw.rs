//! A lazy view of a valid value: it is read where it is, and numbers keep their spelling.

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
    /// A number, as it is spelt.
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
    /// An object or an array begins.
    Open(Kind),
    /// The innermost of these ends.
    Close,
    /// A key of the innermost object.
    Key(Raw<'a>),
    /// A value of any other kind.
    Leaf(Raw<'a>),
}

/// One valid JSON value, without white space around it, read where it is.
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

    /// Views the bytes of a file if they are exactly one object, but for white space around it and a byte order mark.
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

    /// Returns the field of an object; of equal keys the last.
    ///
    /// Keys are compared as they stand, and decoded first where they hold a backslash.
    pub fn get(self, key: &str) -> Option<Self> {
        self.fields().filter(|(raw, _)| same(raw, key)).last().map(|(_, value)| value)
    }

    /// Returns the fields of an object that have these keys, as [`Raw::get`] does for each, in one pass.
    pub fn pick<const N: usize>(self, keys: [&str; N]) -> [Option<Self>; N] {
        let mut values = [None; N];
        for (raw, value) in self.fields() {
            let said = said(raw);
            for (slot, key) in values.iter_mut().zip(keys) {
                // Most keys begin with another letter.
                if said.first() == key.as_bytes().first() && *said == *key.as_bytes() {
                    *slot = Some(value);
                }
            }
        }
        values
    }

    /// Gathers the fields of an object in one pass, for a caller that asks for many of them.
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

    /// Returns the strings in a value, at any depth, in the order in which they stand; the value of a left-out key,
    /// told by the bytes between its quotes, is passed.
    ///
    /// The bytes are gone through once, however deep they nest: a string is a key if a colon follows.
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

    /// Returns what a value is made of, in the order in which it is.
    ///
    /// The bytes are gone through once, however deep they nest.
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

    /// Returns where the value is in the bytes from which it was read.
    pub fn span_in(self, bytes: &[u8]) -> Option<Range<usize>> {
        let start = self.0.as_ptr().addr().checked_sub(bytes.as_ptr().addr())?;
        let end = start.checked_add(self.0.len())?;
        bytes.get(start..end).filter(|same| same.as_ptr() == self.0.as_ptr()).map(|_| start..end)
    }

    /// Returns the bytes between the quotes of a string, escapes as they stand.
    pub fn inner(self) -> Option<&'a [u8]> {
        self.0.strip_prefix(b"\"")?.strip_suffix(b"\"")
    }

    /// Returns a string decoded; bad UTF-8 and lone surrogates become U+FFFD.
    pub fn text(self) -> Option<Cow<'a, str>> {
        self.inner().map(decode)
    }

    /// Returns the beginning of a string, decoded from at most this many of its bytes; the last character may be cut short.
    pub(crate) fn head(self, bytes: usize) -> Option<Cow<'a, str>> {
        self.inner().map(|inner| decode(inner.get(..bytes).unwrap_or(inner)))
    }

    /// Returns a number that is spelt as a whole one and fits.
    pub fn u64(self) -> Option<u64> {
        self.digits()?.parse().ok()
    }

    /// Returns a number, rounded to the nearest double, unless that is infinite.
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

    /// Whether the value is `null`.
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
    /// Empty if there are too many to hold: then each is looked for in the object.
    gathered: Vec<(&'a [u8], Raw<'a>)>,
}

impl<'a> Fields<'a> {
    /// The most fields that are held: more than any agent writes.
    const MANY: usize = 1000;

    /// Returns the value of a key, as [`Raw::get`] does.
    pub fn get(&self, key: &str) -> Option<Raw<'a>> {
        if self.gathered.is_empty() {
            return self.of.get(key);
        }
        self.gathered.iter().rev().find(|(raw, _)| same(raw, key)).map(|(_, value)| *value)
    }

    /// Returns a string, decoded.
    pub fn text(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key).and_then(Raw::text)
    }
}

// The functions below walk bytes that a scan has found valid.

/// Finds the next element of an object or array behind `at`, None at its end.
fn element(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = blank(bytes, at);
    if bytes.get(at) == Some(&b',') {
        at = blank(bytes, at + 1);
    }
    bytes.get(at).filter(|byte| !matches!(byte, b'}' | b']')).map(|_| at)
}

/// Passes the value at `start`.
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
                // White space, which only nested values have here, is passed one byte at a time.
                at += rest.iter().position(is_end).unwrap_or(rest.len()).max(1);
            }
        }
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

/// Passes the string at `start`: up to the first quote before which the backslashes are in pairs.
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

/// Whether the bytes between a key's quotes are this key.
pub(super) fn same(raw: &[u8], key: &str) -> bool {
    *said(raw) == *key.as_bytes()
}

/// Returns what the bytes between a key's quotes say.
fn said(raw: &[u8]) -> Cow<'_, [u8]> {
    if memchr(b'\\', raw).is_none() {
        Cow::Borrowed(raw)
    } else {
        Cow::Owned(decode(raw).into_owned().into_bytes())
    }
}
