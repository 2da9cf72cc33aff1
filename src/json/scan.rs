//! Scanning: one strict pass over the bytes of a value.
//!
//! The grammar is RFC 8259 with two extensions, because agents write such files: strings may contain any byte of 0x20
//! and above, including invalid UTF-8, and a `\uXXXX` escape may be an unpaired surrogate. White space is space, tab,
//! CR and LF.
//!
//! Invariant: the scanner is not recursive; a level of nesting costs one bit.

use std::ops::Range;

/// Callbacks of a scan. What they report is only valid if the scan succeeds.
pub trait Visit {
    /// A string value at any depth, not a key: the range between its quotes.
    fn text(&mut self, _span: Range<usize>) {}

    /// A field of the outermost object: the range between the key's quotes, and the range of the value.
    fn field(&mut self, _key: Range<usize>, _value: Range<usize>) {}

    /// The start of an object or array, and its depth, counting itself.
    fn open(&mut self, _depth: usize) {}

    /// A number at any depth: its range.
    fn number(&mut self, _span: Range<usize>) {}
}

impl Visit for () {}

/// The number of bytes up to and including the first at which they can no longer become an object; all of them if
/// they are just incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looked(pub usize);

/// Scans the object at the start of `bytes`, and returns its length.
pub fn scan(bytes: &[u8], visit: &mut impl Visit) -> Result<usize, Looked> {
    let end = if bytes.first() == Some(&b'{') { value(bytes, 0, visit) } else { Err(0) };
    end.map_err(|at| Looked(bytes.len().min(at + 1)))
}

/// Returns true if a byte is JSON white space.
pub const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// A stack of bits: one for each open bracket, set for an object.
///
/// `top` contains up to 63 levels, below a sentinel bit; `full` contains the completed words under it.
struct Nesting {
    top: u64,
    full: Vec<u64>,
}

impl Nesting {
    const EMPTY: u64 = 1;

    fn push(&mut self, bracket: u8) {
        if self.top >> 63 == 1 {
            self.full.push(self.top);
            self.top = Self::EMPTY;
        }
        self.top = self.top << 1 | u64::from(bracket == b'{');
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

    fn depth(&self) -> usize {
        self.full.len() * 63 + self.top.ilog2() as usize
    }

    fn in_object(&self) -> bool {
        self.top & 1 == 1
    }

    fn in_outermost_object(&self) -> bool {
        self.top == 0b11 && self.full.is_empty()
    }
}

// The functions below take an offset and return the one after the bytes they read. An error is the offset of the first
// byte that no valid value can have there, or the length if the bytes are incomplete.

/// Reads the value at `start`.
pub(super) fn value(bytes: &[u8], start: usize, visit: &mut impl Visit) -> Result<usize, usize> {
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
                visit.open(nesting.depth() + 1);
                at = blank(bytes, at + 1);
                if bytes.get(at) == Some(&b'}') {
                    at += 1;
                } else {
                    nesting.push(b'{');
                    is_field = true;
                }
            }
            Some(b'[') => {
                visit.open(nesting.depth() + 1);
                at = blank(bytes, at + 1);
                if bytes.get(at) == Some(&b']') {
                    at += 1;
                } else {
                    nesting.push(b'[');
                    continue;
                }
            }
            Some(b'-' | b'0'..=b'9') => {
                let end = number(bytes, at)?;
                visit.number(at..end);
                at = end;
            }
            Some(b't') => at = word(bytes, at, b"true")?,
            Some(b'f') => at = word(bytes, at, b"false")?,
            Some(b'n') => at = word(bytes, at, b"null")?,
            _ => return Err(at),
        }
        // Unless an object was just opened, a value ends here, and possibly those around it.
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

/// Skips unescaped characters of a string: eight bytes at a time at first, then whole blocks.
pub(super) fn plain(bytes: &[u8], start: usize) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = ONES << 7;
    const BACKSLASHES: u64 = u64::from_ne_bytes([b'\\'; 8]);
    /// How many bytes are skipped before a string counts as long.
    const SHORT: usize = 64;
    let mut at = start;
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let word = u64::from_le_bytes(*chunk);
        // Flipping bit 1 moves the quote next to the control bytes, so that all of them are below 0x21.
        let flipped = word ^ (ONES * 0x02);
        let backslash = word ^ BACKSLASHES;
        // A borrow can only set false flags above a true one, so the lowest flag is always true.
        let hits = (flipped.wrapping_sub(ONES * 0x21) & !word
            | backslash.wrapping_sub(ONES) & !backslash)
            & HIGHS;
        if hits != 0 {
            return at + hits.trailing_zeros() as usize / 8;
        }
        at += 8;
        if at - start == SHORT {
            at = plain_blocks(bytes, at);
        }
    }
    while bytes.get(at).copied().is_some_and(is_plain) {
        at += 1;
    }
    at
}

/// Skips blocks without special characters; the compiler vectorises the check of a block.
fn plain_blocks(bytes: &[u8], start: usize) -> usize {
    const BLOCK: usize = 64;
    let (blocks, _) = bytes.get(start..).unwrap_or_default().as_chunks::<BLOCK>();
    let is_plain =
        |block: &&[u8; BLOCK]| block.iter().fold(true, |all, byte| all & is_plain(*byte));
    start + BLOCK * blocks.iter().take_while(is_plain).count()
}

/// Returns true if a byte needs no escape in a string.
const fn is_plain(byte: u8) -> bool {
    !matches!(byte, 0..0x20 | b'"' | b'\\')
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

pub(super) fn blank(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while bytes.get(at).is_some_and(|&byte| is_blank(byte)) {
        at += 1;
    }
    at
}
