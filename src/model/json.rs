//! JSON by its bytes: one strict scanner, a lazy view of a valid value, and edits in place.
//!
//! The grammar is RFC 8259 with two liberties, because agents write them: inside strings any byte
//! of 0x20 and above is accepted, bad UTF-8 included, and a `\uXXXX` escape may be a lone
//! surrogate. White space is the four bytes space, tab, CR and LF. Nothing is parsed into a tree,
//! nothing is normalised, numbers keep their spelling.
//!
//! Invariant: the grammar is part of the store's byte contract ([`super::line`]) and never changes.
//! Invariant: nothing recurses; a level of nesting costs one bit.
//! Invariant: no input panics.

use std::borrow::Cow;
use std::iter;
use std::ops::Range;

use memchr::memchr;

/// What a scan reports on its way; of use only if the scan succeeds.
pub trait Visit {
    /// Sees a string value, at any depth and no key: the span between its quotes.
    fn text(&mut self, _span: Range<usize>) {}

    /// Sees a field of the outermost object: its key between the quotes, and its whole value.
    fn field(&mut self, _key: Range<usize>, _value: Range<usize>) {}
}

impl Visit for () {}

/// The bytes up to and including the first at which they can no longer become an object; all of
/// them if they only ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looked(pub usize);

/// What a JSON value is.
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

/// One valid JSON value, without white space around it, read where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a>(&'a [u8]);

/// Scans the object with which `bytes` begin and returns its length.
pub fn scan(bytes: &[u8], visit: &mut impl Visit) -> Result<usize, Looked> {
    let end = if bytes.first() == Some(&b'{') { value(bytes, 0, visit) } else { Err(0) };
    end.map_err(|at| Looked(bytes.len().min(at + 1)))
}

/// Returns the length of the object with which `bytes` begin.
pub fn object_end(bytes: &[u8]) -> Option<usize> {
    scan(bytes, &mut ()).ok()
}

/// Whether a byte is JSON white space.
pub const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Returns the text as a JSON string, with its quotes.
pub fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns the object with one field set: see [`with_fields`].
pub fn with_field(object: &[u8], key: &str, value: &[u8]) -> Option<Vec<u8>> {
    with_fields(object, &[(key, value)])
}

/// Returns the object with fields set, every other byte kept.
///
/// The value of a key that occurs is replaced, the last one if it occurs more than once. A new
/// field is appended behind the last. Of two edits of one key the later counts. None if `object`
/// is not exactly one object or a value is not exactly one value. A value that holds an LF makes an
/// object that is no line.
pub fn with_fields(object: &[u8], edits: &[(&str, &[u8])]) -> Option<Vec<u8>> {
    let mut spans = Spans::default();
    if scan(object, &mut spans).ok()? != object.len() {
        return None;
    }
    let end = spans.0.last().map_or(1, |(_, value)| value.end);
    let mut cuts: Vec<(Range<usize>, Cow<'_, [u8]>)> = Vec::new();
    let mut n_fields = spans.0.len();
    for (nth, &(key, new)) in edits.iter().enumerate() {
        Raw::value(new)?;
        if edits.iter().skip(nth + 1).any(|&(later, _)| later == key) {
            continue;
        }
        let is_old = |at: &Range<usize>| object.get(at.clone()).is_some_and(|raw| same(raw, key));
        if let Some((_, old)) = spans.0.iter().rfind(|(at, _)| is_old(at)) {
            cuts.push((old.clone(), new.into()));
        } else {
            let comma: &[u8] = if n_fields == 0 { b"" } else { b"," };
            cuts.push((end..end, [comma, quote(key).as_bytes(), b":", new].concat().into()));
            n_fields += 1;
        }
    }
    // Stable, so that appended fields keep their order; an edit of the last value precedes them.
    cuts.sort_by_key(|(old, _)| old.start);

    let mut out = Vec::with_capacity(object.len());
    let mut at = 0;
    for (old, new) in cuts {
        out.extend_from_slice(object.get(at..old.start)?);
        out.extend_from_slice(&new);
        at = old.end;
    }
    out.extend_from_slice(object.get(at..)?);
    Some(out)
}

impl<'a> Raw<'a> {
    /// Views the bytes if they are exactly one value.
    pub fn value(bytes: &'a [u8]) -> Option<Self> {
        (value(bytes, 0, &mut ()) == Ok(bytes.len())).then_some(Self(bytes))
    }

    /// Views the bytes if they are exactly one object.
    pub fn object(bytes: &'a [u8]) -> Option<Self> {
        Self::value(bytes).filter(|raw| raw.kind() == Kind::Object)
    }

    /// Views bytes that a scan has found to be exactly one value.
    pub(crate) fn scanned(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns what the value is.
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
            for (slot, _) in values.iter_mut().zip(keys).filter(|(_, key)| same(raw, key)) {
                *slot = Some(value);
            }
        }
        values
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

    /// Returns the strings in a value, at any depth, in the order in which they stand; what stands under a key that is left
    /// out, its bytes between the quotes, is passed.
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

    /// Returns where the value lies in the bytes from which it was read.
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

    /// Returns a number that is spelt as a whole one and fits.
    pub fn u64(self) -> Option<u64> {
        self.digits()?.parse().ok()
    }

    /// Returns a number, rounded to the nearest double; None if there is none that is finite.
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

/// The fields of the outermost object: where the keys and values lie.
#[derive(Default)]
struct Spans(Vec<(Range<usize>, Range<usize>)>);

impl Visit for Spans {
    fn field(&mut self, key: Range<usize>, value: Range<usize>) {
        self.0.push((key, value));
    }
}

/// A stack of bits: which of the open brackets are objects.
///
/// `top` holds up to 63 levels below a sentinel bit, `full` the words beneath it.
struct Nesting {
    top: u64,
    full: Vec<u64>,
}

impl Nesting {
    const EMPTY: u64 = 1;

    fn push(&mut self, is_object: bool) {
        if self.top >> 63 == 1 {
            self.full.push(self.top);
            self.top = Self::EMPTY;
        }
        self.top = self.top << 1 | u64::from(is_object);
    }

    fn pop(&mut self) {
        self.top >>= 1;
        if self.top == Self::EMPTY
            && let Some(word) = self.full.pop()
        {
            self.top = word;
        }
    }

    fn is_empty(&self) -> bool {
        self.top == Self::EMPTY
    }

    fn in_object(&self) -> bool {
        self.top & 1 == 1
    }

    fn in_outermost_object(&self) -> bool {
        self.top == 0b11 && self.full.is_empty()
    }
}

// The functions below take a position and return the one behind what they read. An error is the
// position of the first byte that no valid value can have there, the length if the bytes ran out.

/// Reads the value that begins at `start`.
fn value(bytes: &[u8], start: usize, visit: &mut impl Visit) -> Result<usize, usize> {
    let mut nesting = Nesting { top: Nesting::EMPTY, full: Vec::new() };
    let mut outer_key = 0..0;
    let mut outer_value = 0;
    let mut at = start;
    loop {
        let mut is_field = false;
        match bytes.get(at) {
            Some(b'"') => {
                let end = string(bytes, at)?;
                visit.text(at + 1..end - 1);
                at = end;
            }
            Some(b'{') => {
                at = blank(bytes, at + 1);
                if bytes.get(at) == Some(&b'}') {
                    at += 1;
                } else {
                    nesting.push(true);
                    is_field = true;
                }
            }
            Some(b'[') => {
                at = blank(bytes, at + 1);
                if bytes.get(at) == Some(&b']') {
                    at += 1;
                } else {
                    nesting.push(false);
                    continue;
                }
            }
            Some(b'-' | b'0'..=b'9') => at = number(bytes, at)?,
            Some(b't') => at = word(bytes, at, b"true")?,
            Some(b'f') => at = word(bytes, at, b"false")?,
            Some(b'n') => at = word(bytes, at, b"null")?,
            _ => return Err(at),
        }
        // Unless an object has just been opened a value ends here, and so may those around it.
        while !is_field {
            if nesting.is_empty() {
                return Ok(at);
            }
            if nesting.in_outermost_object() {
                visit.field(outer_key.clone(), outer_value..at);
            }
            at = blank(bytes, at);
            match (bytes.get(at), nesting.in_object()) {
                (Some(b','), in_object) => {
                    at = blank(bytes, at + 1);
                    is_field = in_object;
                    if !in_object {
                        break;
                    }
                }
                (Some(b'}'), true) | (Some(b']'), false) => {
                    nesting.pop();
                    at += 1;
                }
                _ => return Err(at),
            }
        }
        if is_field {
            let key = at;
            let end = string(bytes, key)?;
            at = blank(bytes, end);
            if bytes.get(at) != Some(&b':') {
                return Err(at);
            }
            at = blank(bytes, at + 1);
            if nesting.in_outermost_object() {
                outer_key = key + 1..end - 1;
                outer_value = at;
            }
        }
    }
}

/// Reads a string, quotes included.
fn string(bytes: &[u8], start: usize) -> Result<usize, usize> {
    if bytes.get(start) != Some(&b'"') {
        return Err(start);
    }
    let mut at = start + 1;
    loop {
        at = plain(bytes, at);
        match bytes.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at = escape(bytes, at)?,
            _ => return Err(at),
        }
    }
}

/// Passes what stands for itself in a string, eight bytes at a time.
fn plain(bytes: &[u8], start: usize) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = ONES << 7;
    const BACKSLASHES: u64 = u64::from_ne_bytes([b'\\'; 8]);
    let mut at = start;
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let word = u64::from_le_bytes(*chunk);
        // Flipping bit 1 moves the quote beside the control bytes: all are then below 0x21.
        let flipped = word ^ (ONES * 0x02);
        let backslash = word ^ BACKSLASHES;
        // A borrow may flag bytes above a true hit, never below: the lowest flag is always true.
        let hits = (flipped.wrapping_sub(ONES * 0x21) & !word
            | backslash.wrapping_sub(ONES) & !backslash)
            & HIGHS;
        if hits != 0 {
            return at + hits.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|byte| !matches!(byte, 0..0x20 | b'"' | b'\\')) {
        at += 1;
    }
    at
}

fn escape(bytes: &[u8], start: usize) -> Result<usize, usize> {
    match bytes.get(start + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(start + 2),
        Some(b'u') => {
            let is_bad = |at: &usize| !bytes.get(*at).is_some_and(u8::is_ascii_hexdigit);
            (start + 2..start + 6).find(is_bad).map_or(Ok(start + 6), Err)
        }
        _ => Err(start + 1),
    }
}

fn number(bytes: &[u8], start: usize) -> Result<usize, usize> {
    let mut at = start;
    if bytes.get(at) == Some(&b'-') {
        at += 1;
    }
    at = if bytes.get(at) == Some(&b'0') { at + 1 } else { digits(bytes, at)? };
    if bytes.get(at) == Some(&b'.') {
        at = digits(bytes, at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        at += 1;
        if let Some(b'+' | b'-') = bytes.get(at) {
            at += 1;
        }
        at = digits(bytes, at)?;
    }
    Ok(at)
}

fn digits(bytes: &[u8], start: usize) -> Result<usize, usize> {
    let mut at = start;
    while bytes.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    if at == start { Err(at) } else { Ok(at) }
}

fn word(bytes: &[u8], start: usize, word: &[u8]) -> Result<usize, usize> {
    match word.iter().zip(start..).find(|(byte, at)| bytes.get(*at) != Some(byte)) {
        Some((_, at)) => Err(at),
        None => Ok(start + word.len()),
    }
}

fn blank(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while bytes.get(at).is_some_and(|&byte| is_blank(byte)) {
        at += 1;
    }
    at
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
                // Of white space, which only nested values have here, one byte at a time.
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
fn same(raw: &[u8], key: &str) -> bool {
    if memchr(b'\\', raw).is_none() { raw == key.as_bytes() } else { decode(raw) == key }
}

/// Returns bytes as text; what is no UTF-8, which is rare, becomes U+FFFD.
fn lossy(raw: &[u8]) -> Cow<'_, str> {
    str::from_utf8(raw).map_or_else(|_| String::from_utf8_lossy(raw), Cow::Borrowed)
}

/// Decodes the bytes between the quotes of a valid string.
fn decode(raw: &[u8]) -> Cow<'_, str> {
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

/// Returns where in the bytes between the quotes of a valid string lies what stands at a place of the decoded text.
///
/// A place within a character is taken for the one behind it.
pub fn place_of(raw: &[u8], at: usize) -> usize {
    let mut decoded = 0;
    let mut place = 0;
    while decoded < at {
        let Some(rest) = raw.get(place..).filter(|rest| !rest.is_empty()) else { break };
        let end = memchr(b'\\', rest).unwrap_or(rest.len());
        for chunk in rest.get(..end).unwrap_or_default().utf8_chunks() {
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

/// Decodes the escape with which the bytes begin and tells its length.
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

fn utf16_unit(bytes: &[u8]) -> Option<u16> {
    let hex = bytes.strip_prefix(b"\\u")?.get(..4)?;
    u16::from_str_radix(str::from_utf8(hex).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    use super::*;

    fn raw(json: &str) -> Raw<'_> {
        Raw::value(json.as_bytes()).unwrap()
    }

    fn check(bytes: impl AsRef<[u8]>, expected: Result<usize, usize>) {
        let bytes = bytes.as_ref();
        let found = scan(bytes, &mut ()).map_err(|Looked(n)| n);
        assert_eq!(found, expected, "{}", bytes.escape_ascii());
    }

    #[test]
    fn picked_fields_are_those_that_get_gives() {
        let record = Raw::object(br#"{"a":1,"b":[2],"\u0061":3,"c":{"a":4}}"#).unwrap();
        let picked = record.pick(["a", "x", "c", "a"]);
        assert_eq!(picked, ["a", "x", "c", "a"].map(|key| record.get(key)));
        assert_eq!(picked[0].and_then(Raw::u64), Some(3));
    }

    #[test]
    fn an_object_ends_at_its_brace() {
        check("{}", Ok(2));
        check("{ \t\r\n}x", Ok(6));
        check(r#"{"a":1}{"b":2}"#, Ok(7));
        check(r#"{"a" : [ 1 , -0.5e+3, {"b":[]} , "}" ] , "" : null }"#, Ok(52));
        check(r#"{"a":"\"\\\/\b\f\n\r\t\u00e9\uD800"}"#, Ok(36));
        check(b"{\"\xff\":\"\x7f\x80\xc3\"}", Ok(11));
    }

    #[test]
    fn a_failure_tells_the_first_byte_that_cannot_be() {
        check("", Err(0));
        check("x{}", Err(1));
        check(" {}", Err(1));
        check("[]", Err(1));
        check("{", Err(1));
        check(r#"{"a":"#, Err(5));
        check(r#"{"a":1"#, Err(6));
        check(r#"{"a":"unfinished, long enough"#, Err(29));
        check("{,}", Err(2));
        check(r#"{"a"1}"#, Err(5));
        check(r#"{"a":}"#, Err(6));
        check(r#"{"a":1,}"#, Err(8));
        check(r#"{"a":[1,]}"#, Err(9));
        check(r#"{"a":[1}}"#, Err(8));
        check(r#"{"a":{"b":1]}"#, Err(12));
        check(r#"{"a":01}"#, Err(7));
        check(r#"{"a":+1}"#, Err(6));
        check(r#"{"a":1.}"#, Err(8));
        check(r#"{"a":1e}"#, Err(8));
        check(r#"{"a":-}"#, Err(7));
        check(r#"{"a":trux}"#, Err(9));
        check(r#"{"a":NaN}"#, Err(6));
        check(r#"{"a":"\x"}"#, Err(8));
        check(r#"{"a":"\u12g4"}"#, Err(11));
        check("{\"a\":\"0123456789\x1f\"}", Err(17));
        check("{\"a\":\"\n\"}", Err(7));
        check("{\x0c}", Err(2));
        check("\u{feff}{}", Err(1));
    }

    #[test]
    fn a_string_stops_at_quote_backslash_and_control_bytes_only() {
        for byte in 0..=u8::MAX {
            let stops = byte < 0x20 || byte == b'"' || byte == b'\\';
            for at in 0..20 {
                for around in [b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xa2, 0xdc, 0xff] {
                    let mut bytes = [around; 20];
                    bytes[at] = byte;
                    assert_eq!(plain(&bytes, 0), if stops { at } else { 20 }, "{byte} at {at}");
                }
            }
        }
    }

    #[test]
    fn millions_of_levels_are_no_danger() {
        let depth = 3_000_000;
        let open = br#"{"a":["#.repeat(depth);
        check(&open, Err(open.len()));
        let deep = [open, b"]}".repeat(depth)].concat();
        check(&deep, Ok(deep.len()));
        let inside = Raw::object(&deep).unwrap().get("a").unwrap();
        assert_eq!(inside.items().count(), 1);
    }

    #[test]
    fn every_level_remembers_its_bracket() {
        for depth in [1, 62, 63, 64, 65, 126, 127, 200] {
            for wrong in 0..depth {
                let mut close: Vec<u8> =
                    (0..depth).rev().map(|n| if n % 3 == 0 { b'}' } else { b']' }).collect();
                let open: Vec<u8> = (0..depth)
                    .flat_map(|n| if n % 3 == 0 { &b"{\"\":"[..] } else { &b"["[..] }.to_vec())
                    .collect();
                let at = open.len() + 1 + wrong;
                let whole = [&open[..], b"1", &close].concat();
                check(&whole, Ok(whole.len()));
                close[wrong] ^= b'}' ^ b']';
                check([&open[..], b"1", &close].concat(), Err(at + 1));
            }
        }
    }

    #[test]
    fn a_visit_sees_values_and_outer_fields() {
        #[derive(Default)]
        struct Seen(Vec<Range<usize>>, Spans);
        impl Visit for Seen {
            fn text(&mut self, span: Range<usize>) {
                self.0.push(span);
            }
            fn field(&mut self, key: Range<usize>, value: Range<usize>) {
                self.1.field(key, value);
            }
        }
        let json = br#"{"a":"x" , "b" : {"c":["y",{}],"d":2} ,"e":[] }"#;
        let at = |spans: &[Range<usize>]| -> Vec<String> {
            spans.iter().map(|s| String::from_utf8_lossy(&json[s.clone()]).into()).collect()
        };
        let mut seen = Seen::default();
        assert_eq!(scan(json, &mut seen), Ok(json.len()));
        assert_eq!(at(&seen.0), ["x", "y"]);
        let (keys, values): (Vec<_>, Vec<_>) = seen.1.0.into_iter().unzip();
        assert_eq!(at(&keys), ["a", "b", "e"]);
        assert_eq!(at(&values), [r#""x""#, r#"{"c":["y",{}],"d":2}"#, "[]"]);
    }

    #[test]
    fn values_are_read_where_they_lie() {
        let json = raw(r#"{"a": {"b": [1, "x", [2], {}]}, "n": 18446744073709551615, "a\n": null,
            "f": -1.5e2, "t": true, "e": {}, "t": false}"#);
        let items: Vec<_> = json.get("a").unwrap().get("b").unwrap().items().collect();
        assert_eq!(items, [raw("1"), raw(r#""x""#), raw("[2]"), raw("{}")]);
        assert_eq!(json.get("n").unwrap().u64(), Some(u64::MAX));
        assert_eq!(json.get("f").unwrap().f64(), Some(-150.0));
        assert_eq!(json.get("f").unwrap().u64(), None);
        assert!(json.get("a\n").unwrap().is_null());
        assert_eq!(json.get("t").unwrap().bool(), Some(false), "the last key wins");
        assert_eq!(json.get("a\\n"), None);
        assert_eq!(json.get("b"), None);
        assert_eq!(json.fields().count(), 7);
        assert_eq!(json.get("e").unwrap().fields().count(), 0);
    }

    #[test]
    fn a_wrong_kind_gives_nothing() {
        for json in ["{}", "[]", r#""""#, "0", "true", "false", "null"] {
            let raw = raw(json);
            let answers = [
                raw.text().is_some(),
                raw.f64().is_some(),
                raw.bool().is_some(),
                raw.is_null(),
                matches!(raw.kind(), Kind::Object | Kind::Array),
            ];
            assert_eq!(answers.iter().filter(|&&yes| yes).count(), 1, "{json}");
            assert_eq!(raw.fields().count() + raw.items().count(), 0, "{json}");
            assert_eq!(raw.get(""), None);
        }
        assert_eq!(raw("[1]").fields().count(), 0);
        assert_eq!(raw(r#"{"a":1}"#).items().count(), 0);
        assert_eq!(raw("1e999").f64(), None);
        assert_eq!(raw("18446744073709551616").u64(), None);
        assert_eq!(Raw::value(b" 1"), None);
        assert_eq!(Raw::value(b"1 "), None);
        assert_eq!(Raw::value(b""), None);
        assert_eq!(Raw::object(b"{}{}"), None);
        assert_eq!(Raw::object(b"[]"), None);
    }

    #[test]
    fn strings_of_a_value_are_its_own_and_no_keys() {
        let check = |json, expected: &[&str]| {
            let strings = raw(json).strings(|key| key == b"left out");
            assert_eq!(strings.map(|found| found.text().unwrap()).collect::<Vec<_>>(), expected);
        };
        check(r#""x""#, &["x"]);
        check(r#"{"a" : "x" , "b":[ "y", {"c":1,"d":"z"}, ":" ]}"#, &["x", "y", "z", ":"]);
        check(r#"["x",{"left out" : {"a":["y"]},"b":"z"},{"left out":"y"},"w"]"#, &["x", "z", "w"]);
        check("[]", &[]);
        check("1", &[]);
    }

    #[test]
    fn text_is_decoded_and_mended() {
        let check = |inner: &[u8], expected: &str| {
            let json = [b"\"", inner, b"\""].concat();
            let raw = Raw::value(&json).unwrap();
            assert_eq!(raw.inner(), Some(inner));
            assert_eq!(raw.text().unwrap(), expected);
        };
        check(b"", "");
        check("plain é".as_bytes(), "plain é");
        check(br#"\"\\\/\b\f\n\r\t."#, "\"\\/\u{8}\u{c}\n\r\t.");
        check(br"\u00e9\u0000\uFFFF", "é\0\u{ffff}");
        check(br"a\ud83d\ude00z", "a😀z");
        check(br"\ud83d", "\u{fffd}");
        check(br"\ude00\ud83d", "\u{fffd}\u{fffd}");
        check(br"\ud83d\ud83d\ude00", "\u{fffd}😀");
        check(br"\ud83dA\u0041", "\u{fffd}AA");
        check(b"\xff\\n\xe2\x82", "\u{fffd}\n\u{fffd}");
    }

    #[test]
    fn an_edit_keeps_every_other_byte() {
        let check = |object: &str, key: &str, value: &str, expected: Option<&str>| {
            let edited = with_field(object.as_bytes(), key, value.as_bytes());
            assert_eq!(edited.as_deref(), expected.map(str::as_bytes), "{object}");
        };
        check("{}", "a", "1", Some(r#"{"a":1}"#));
        check("{ }", "a\"", "1", Some(r#"{"a\"":1 }"#));
        check(r#"{ "b" : 2 }"#, "a", "[]", Some(r#"{ "b" : 2,"a":[] }"#));
        check(r#"{"a":0, "b" : 2 }"#, "b", "null", Some(r#"{"a":0, "b" : null }"#));
        check(r#"{"a":0,"x":1,"a":2}"#, "a", "3", Some(r#"{"a":0,"x":1,"a":3}"#));
        check(r#"{"\u0061":0}"#, "a", "3", Some(r#"{"\u0061":3}"#));
        check(r#"{"x":{"a":1}}"#, "a", "3", Some(r#"{"x":{"a":1},"a":3}"#));
        check(r#"{"a":0}"#, "a", "", None);
        check(r#"{"a":0}"#, "a", "1 ", None);
        check(r#"{"a":0} "#, "a", "1", None);
        check("[]", "a", "1", None);

        let edits: [(&str, &[u8]); 5] =
            [("n", b"0"), ("b", b"[1]"), ("a", b"2"), ("m", b"3"), ("n", b"4")];
        let edited = with_fields(br#"{"a":0,"b":1}"#, &edits).unwrap();
        assert_eq!(edited, br#"{"a":2,"b":[1],"m":3,"n":4}"#);
    }

    /// Bytes that are often JSON and often nearly so.
    fn nearly_json() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop::sample::select(vec![
            &b"{"[..],
            b"}",
            b"[",
            b"]",
            b",",
            b":",
            b"\"",
            b"\\",
            b" ",
            b"\n",
            b"\"a\"",
            b"\"a\":",
            b"\"\\u0041\"",
            b"\\ud8",
            b"1",
            b"0",
            b"-",
            b".5",
            b"e9",
            b"true",
            b"null",
            b"false",
            b"{}",
            b"[]",
            b"{\"k\":",
            b"\xff",
            b"\x1f",
            b"0123456789abcdef",
        ]);
        let valid = Just(b"0".to_vec()).prop_recursive(6, 40, 4, |inner| {
            let list = prop::collection::vec(inner, 0..4);
            (list, any::<bool>(), " {0,2}").prop_map(|(list, is_object, gap)| {
                let gap = gap.as_bytes();
                let items: Vec<_> = list
                    .iter()
                    .map(|item| [if is_object { b"\"k\":" } else { &b""[..] }, gap, item].concat())
                    .collect();
                let (open, close) = if is_object { (b"{", b"}") } else { (b"[", b"]") };
                [open, gap, &items.join(&b","[..]), gap, close].concat()
            })
        });
        let mixed = prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat());
        let cut = (valid.clone(), any::<prop::sample::Index>(), any::<u8>()).prop_map(
            |(mut json, at, byte)| {
                let at = at.index(json.len());
                json[at] = byte;
                json
            },
        );
        prop_oneof![valid, mixed, cut]
    }

    #[test]
    fn a_value_knows_where_it_was_read() {
        let json = br#"{"a": ["x", 1]}"#;
        let item = Raw::object(json).unwrap().get("a").unwrap().items().next().unwrap();
        assert_eq!(item.span_in(json), Some(7..10));
        assert_eq!(item.span_in(&json[8..]), None);
        assert_eq!(item.span_in(&json[..9]), None);
    }

    #[test]
    fn a_place_in_a_text_is_found_in_its_spelling() {
        let raw = b"a\\n\\u00e9\\ud83d\\ude00\\ud83dx\xffy\xe2\x82z\xc3\xa9\\\"";
        let text = decode(raw);
        for (at, _) in text.char_indices().chain([(text.len(), ' ')]) {
            let (before, behind) = raw.split_at(place_of(raw, at));
            assert_eq!(decode(before).into_owned() + &decode(behind), text, "at {at}");
            assert_eq!(decode(before).len(), at);
        }
        assert_eq!(place_of(raw, 999), raw.len());
    }

    proptest! {
        #[test]
        fn the_grammar_is_that_of_a_second_parser(json in nearly_json()) {
            let trimmed = !json.first().is_some_and(|b| is_blank(*b))
                && !json.last().is_some_and(|b| is_blank(*b));
            let other = serde_json::from_slice::<IgnoredAny>(&json).is_ok();
            prop_assert_eq!(Raw::value(&json).is_some(), other && trimmed);
        }

        #[test]
        fn what_fails_fails_at_the_same_byte_whatever_follows(json in nearly_json(), more in nearly_json()) {
            let whole = [&json[..], &more].concat();
            match scan(&json, &mut ()) {
                Ok(end) => prop_assert_eq!(scan(&whole, &mut ()), Ok(end)),
                Err(Looked(n)) if n < json.len() => {
                    prop_assert_eq!(scan(&whole, &mut ()), Err(Looked(n)));
                }
                Err(_) => {}
            }
        }

        #[test]
        fn strings_are_those_of_every_level_in_order(json in nearly_json()) {
            /// The same by its definition, a level at a time.
            fn strings<'a>(value: Raw<'a>, found: &mut Vec<Raw<'a>>) {
                match value.kind() {
                    Kind::String => found.push(value),
                    Kind::Array => value.items().for_each(|item| strings(item, found)),
                    Kind::Object => {
                        let stays = value.fields().filter(|(key, _)| *key != b"k");
                        stays.for_each(|(_, value)| strings(value, found));
                    }
                    _ => {}
                }
            }
            let Some(value) = Raw::value(&json) else { return Ok(()) };
            let mut expected = Vec::new();
            strings(value, &mut expected);
            prop_assert_eq!(value.strings(|key| key == b"k").collect::<Vec<_>>(), expected);
        }

        #[test]
        fn text_reads_back_what_quote_wrote(text in ".*") {
            let quoted = quote(&text);
            prop_assert_eq!(raw(&quoted).text().unwrap(), text);
        }

        #[test]
        fn a_set_field_is_found(json in nearly_json(), key in "[ka\\\\\"]{0,2}", value in nearly_json()) {
            let edited = with_field(&json, &key, &value);
            let is_valid = Raw::object(&json).is_some() && Raw::value(&value).is_some();
            prop_assert_eq!(edited.is_some(), is_valid);
            if let Some(edited) = edited {
                let object = Raw::object(&edited).unwrap();
                prop_assert_eq!(object.get(&key).unwrap().bytes(), &value[..]);
            }
        }
    }
}
