//! Lines: how the bytes of a file become records, and what the store looks for in a line.
//!
//! A file alternates white space and lines, and ends with a **tail**. White space is space, tab, CR and LF; the white space
//! before a line is its **separator**. The bytes between two LFs are a physical line. After its leading white space, a physical
//! line is split from the front:
//!
//! 1. A complete JSON object (the grammar of [`crate::json`]) is a line and ends at its brace. The rest is
//!    split in the same way: white space, then a line that is **glued** to the one before it.
//! 2. Anything else is **opaque**. If the LF is there, the line extends up to it, including trailing white
//!    space. If not, the bytes are not a line yet and remain in the tail.
//! 3. An opaque line is split once: at the first `{"` after its beginning such that the rest, without trailing
//!    white space, is exactly one object. The stub before it is the opaque line; the object is a glued line with
//!    an empty separator.
//!
//! The search of rule 3 tries every `{"` in turn, including those inside strings. A candidate that fails costs
//! the bytes up to and including the first one at which it cannot become such an object, or all its bytes. Once
//! the candidates have cost more than 16 times the length of the opaque line plus 1 MiB, the line is not split.
//!
//! ```text
//! {"a":1}{"b":2}⏎    object, object
//! {"a":1} x ⏎        object, separator " ", opaque "x "
//! {"a":{"b":2}⏎      opaque {"a":, object
//! {"a":{"b":2}       tail
//! ```
//!
//! Invariant: separators, lines and tail, concatenated, are the original bytes.
//! Invariant: a line depends only on the bytes up to its LF, an object only on those up to its brace. So a file
//! that grows keeps its lines, and reading it in parts gives the same lines.
//! Invariant: all of this is the byte contract of the store and never changes; ids depend on it.

use std::ops::Range;

use memchr::memmem;

use crate::json::{self, Looked, Raw, Visit};

/// The minimum length in bytes of a JSON string that is a text.
pub const TEXT_MIN: usize = 256;

/// The maximum length of a line together with its separator, in bytes.
pub const LINE_MAX: usize = 512 << 20;

/// The shape of a line that is one complete object, as found by the scanner. Ranges count from its opening brace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// The string values of at least [`TEXT_MIN`] bytes, without their quotes, at any depth, in order.
    pub texts: Vec<Range<usize>>,
    /// The record's own id, without its quotes.
    ///
    /// It is the value of the last top-level key `uuid` if that is a non-empty string; otherwise, if there is a
    /// top-level key `parentId`, the value of the last top-level `id` under the same condition. Keys are compared
    /// as raw bytes, without resolving escapes.
    pub name: Option<Range<usize>>,
}

/// One line, borrowed from its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The white space before it.
    pub separator: &'a [u8],
    /// The record.
    pub bytes: &'a [u8],
    /// Its shape if it is an object; none if it is opaque.
    pub shape: Option<Shape>,
    /// Whether it began on the same physical line as the line before it.
    pub glued: bool,
}

impl<'a> Line<'a> {
    /// Returns the JSON object, if the line is one.
    pub fn record(&self) -> Option<Raw<'a>> {
        self.shape.as_ref().map(|_| Raw::scanned(self.bytes))
    }
}

/// The lines of a physical line; see [`split`].
#[derive(Clone, Debug)]
pub struct Split<'a> {
    rest: &'a [u8],
    ended: bool,
    glued: bool,
}

/// Splits a physical line into lines.
///
/// The segment is the physical line without its LF, or its rest behind lines already
/// taken. White space carried over from before may precede it.
pub fn split(segment: &[u8]) -> Split<'_> {
    Split { rest: segment, ended: true, glued: false }
}

/// Takes a physical line apart whose LF is not there.
pub fn split_unfinished(segment: &[u8]) -> Split<'_> {
    Split { rest: segment, ended: false, glued: false }
}

impl<'a> Split<'a> {
    /// Returns the bytes that belong to no line: the tail so far, or the start of the next separator.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Split<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        let start = self.rest.iter().position(|&byte| !json::is_blank(byte))?;
        let (separator, rest) = self.rest.split_at(start);
        let mut seen =
            Seen { object: rest, uuid: None, id: None, has_parent: false, texts: vec![] };
        let (len, shape) = match json::scan(rest, &mut seen) {
            Ok(len) => (len, Some(seen.into_shape())),
            Err(_) if self.ended => (stub(rest).0.unwrap_or(rest.len()), None),
            Err(_) => return None,
        };
        let (bytes, rest) = rest.split_at(len);
        self.rest = rest;
        let glued = std::mem::replace(&mut self.glued, true);
        Some(Line { separator, bytes, shape, glued })
    }
}

/// Finds where to split an opaque line. Returns the length of the stub, and how many bytes were scanned.
fn stub(opaque: &[u8]) -> (Option<usize>, usize) {
    let end = opaque.iter().rposition(|&byte| !json::is_blank(byte)).map_or(0, |last| last + 1);
    let (trimmed, mut cost) = (opaque.get(..end).unwrap_or_default(), 0);
    if trimmed.last() != Some(&b'}') {
        return (None, cost);
    }
    let budget = opaque.len().saturating_mul(16).saturating_add(1 << 20);
    for before in memmem::find_iter(trimmed.get(1..).unwrap_or_default(), b"{\"") {
        let candidate = trimmed.get(before + 1..).unwrap_or_default();
        cost += match json::scan(candidate, &mut ()) {
            Ok(len) if len == candidate.len() => return (Some(before + 1), cost + len),
            // The byte after the brace is the first at which it is not exactly one object.
            Ok(len) => len + 1,
            Err(Looked(len)) => len,
        };
        if cost > budget {
            break;
        }
    }
    (None, cost)
}

/// What a scan has found of an object's shape.
struct Seen<'a> {
    object: &'a [u8],
    texts: Vec<Range<usize>>,
    uuid: Option<Range<usize>>,
    id: Option<Range<usize>>,
    has_parent: bool,
}

impl Seen<'_> {
    fn into_shape(self) -> Shape {
        let name = self.uuid.or(self.id.filter(|_| self.has_parent));
        Shape { texts: self.texts, name }
    }

    /// Returns the range between the quotes of a non-empty string.
    fn name(&self, value: &Range<usize>) -> Option<Range<usize>> {
        let is_string = self.object.get(value.start) == Some(&b'"');
        (is_string && value.len() > 2).then(|| value.start + 1..value.end - 1)
    }
}

impl Visit for Seen<'_> {
    fn text(&mut self, span: Range<usize>) {
        if span.len() >= TEXT_MIN {
            self.texts.push(span);
        }
    }

    fn field(&mut self, key: Range<usize>, value: Range<usize>) {
        match self.object.get(key) {
            Some(b"uuid") => self.uuid = self.name(&value),
            Some(b"id") => self.id = self.name(&value),
            Some(b"parentId") => self.has_parent = true,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Writes lines as `separator|bytes`, opaque ones with `?`, glued ones with `+`, then the rest.
    fn shown(segment: &[u8], ended: bool) -> String {
        let split = if ended { split } else { split_unfinished };
        let mut split = split(segment);
        let mut lines: Vec<_> = split
            .by_ref()
            .map(|line| {
                let opaque = if line.shape.is_none() { "?" } else { "" };
                let glued = if line.glued { "+" } else { "" };
                let (separator, bytes) = (line.separator.escape_ascii(), line.bytes.escape_ascii());
                format!("{separator}|{glued}{opaque}{bytes}")
            })
            .collect();
        lines.push(format!("${}", split.rest().escape_ascii()));
        lines.join("  ").replace("\\\"", "'")
    }

    fn check(segment: impl AsRef<[u8]>, ended: &str, unfinished: &str) {
        assert_eq!(shown(segment.as_ref(), true), ended);
        assert_eq!(shown(segment.as_ref(), false), unfinished);
    }

    #[test]
    fn an_object_ends_at_its_brace() {
        check("", "$", "$");
        check(" \t\r", "$ \\t\\r", "$ \\t\\r");
        check("{}", "|{}  $", "|{}  $");
        check("\n\n {}\r", "\\n\\n |{}  $\\r", "\\n\\n |{}  $\\r");
        check(r#"{"a":1}{"b":2}"#, "|{'a':1}  |+{'b':2}  $", "|{'a':1}  |+{'b':2}  $");
        check("{}\t{} {}", "|{}  \\t|+{}   |+{}  $", "|{}  \\t|+{}   |+{}  $");
    }

    #[test]
    fn anything_else_ends_at_its_lf() {
        check("x", "|?x  $", "$x");
        check(" x \r", " |?x \\r  $", "$ x \\r");
        check(r#"{"a":1} x "#, "|{'a':1}   |+?x   $", "|{'a':1}  $ x ");
        check("[{}]", "|?[{}]  $", "$[{}]");
        check(r#""text""#, "|?'text'  $", "$'text'");
        check(r#"{"a":"#, "|?{'a':  $", "${'a':");
        check(b"\xff\0", "|?\\xff\\x00  $", "$\\xff\\x00");
        // No-break space and form feed are no white space.
        check(b"\x0c{}", "|?\\x0c{}  $", "$\\x0c{}");
        check(b"\xc2\xa0{}", "|?\\xc2\\xa0{}  $", "$\\xc2\\xa0{}");
    }

    #[test]
    fn a_stub_is_split_from_the_object_glued_to_it() {
        check(r#"{"a":{"b":2}"#, "|?{'a':  |+{'b':2}  $", "${'a':{'b':2}");
        check(r#"{"a":"te{"b":2} "#, "|?{'a':'te  |+{'b':2}  $ ", "${'a':'te{'b':2} ");
        check(r#"{}x {"b":2}"#, "|{}  |+?x   |+{'b':2}  $", "|{}  $x {'b':2}");
        check("\u{feff}{\"b\":2}\r", "|?\\xef\\xbb\\xbf  |+{'b':2}  $\\r", {
            "$\\xef\\xbb\\xbf{'b':2}\\r"
        });
        check(b"\0\0{\"b\":{\"c\":2}}", "|?\\x00\\x00  |+{'b':{'c':2}}  $", {
            "$\\x00\\x00{'b':{'c':2}}"
        });
        // The first from which the rest is one object: not the inner one, not two in a row.
        check(r#"x{"a":{"b":2}}"#, "|?x  |+{'a':{'b':2}}  $", "$x{'a':{'b':2}}");
        check(r#"x{"a":1}{"b":2}"#, "|?x{'a':1}  |+{'b':2}  $", "$x{'a':1}{'b':2}");
        // A `{"` inside a string is a candidate like any other.
        check(r#"{"a":"{"b":1}"#, "|?{'a':'  |+{'b':1}  $", "${'a':'{'b':1}");
        // No candidate: no key, or something behind the brace.
        check("x{}", "|?x{}  $", "$x{}");
        check(r#"x{ "a":1}"#, "|?x{ 'a':1}  $", "$x{ 'a':1}");
        check(r#"x{"a":1}y"#, "|?x{'a':1}y  $", "$x{'a':1}y");
        check(r#"x{"a":1}}"#, "|?x{'a':1}}  $", "$x{'a':1}}");
    }

    #[test]
    fn the_search_for_a_stub_has_a_budget() {
        // Each candidate costs all bytes behind it. 400 of them cost 400 * 401 / 2 * 5 bytes and
        // the object behind them 400 times: within the budget. 4,000 are not.
        let hostile = |n: usize| [&br#"{"a":"#.repeat(n)[..], br#"{"b":2}"#].concat();
        assert_eq!(split(&hostile(400)).count(), 2);
        assert_eq!(split(&hostile(4_000)).count(), 1);
        // Exactly at the budget, then past it: with n candidates that fail they cost
        // 5 * (1 + .. + n) + 7 * n, and one more byte of the budget is 1/16 byte of padding.
        let n = 800;
        let cost: usize = (1..=n).map(|k| 5 * k + 7).sum();
        let padded = |len: usize| [vec![b'x'; len - 5 * n - 7], hostile(n)].concat();
        let enough = (cost - (1 << 20)).div_ceil(16);
        assert_eq!(split(&padded(enough)).count(), 2);
        assert_eq!(split(&padded(enough - 1)).count(), 1);
    }

    #[test]
    fn hostile_lines_cost_little() {
        for piece in [&br#"{"a":"#[..], br#"{""#, br#"{"a":""#, b"[", b"{", b"{}{", br#"{"a":1}"#] {
            let mut line = piece.repeat((1 << 20) / piece.len());
            line.extend_from_slice(b"x{\"a\":[}");
            let (found, cost) = stub(&line);
            // The last candidate may cost all of the line once more.
            assert!(cost <= 17 * line.len() + (1 << 20), "{}: {cost}", piece.escape_ascii());
            assert_eq!(found, None);
            assert_eq!(split(&line).map(|line| line.bytes.len()).sum::<usize>(), line.len());
        }
    }

    fn name(object: &str) -> Option<String> {
        let line = split(object.as_bytes()).next().unwrap();
        let span = line.shape.unwrap().name?;
        Some(String::from_utf8_lossy(&line.bytes[span]).into())
    }

    fn check_name(object: &str, expected: Option<&str>) {
        assert_eq!(name(object).as_deref(), expected, "{object}");
    }

    #[test]
    fn a_record_names_itself_by_uuid_or_by_id_beside_parent_id() {
        check_name("{}", None);
        check_name(r#"{"uuid":"u"}"#, Some("u"));
        check_name(r#" {"x":{"uuid":"v"}, "uuid" : "u" }"#, Some("u"));
        check_name(r#"{"uuid":"u","uuid":"v"}"#, Some("v"));
        check_name(r#"{"uuid":"u","id":"i","parentId":null}"#, Some("u"));
        check_name(r#"{"id":"i","parentId":null}"#, Some("i"));
        check_name(r#"{"parentId":"p","id":"i","id":"j"}"#, Some("j"));
        check_name(r#"{"id":"i"}"#, None);
        check_name(r#"{"id":"i","x":{"parentId":1}}"#, None);
        check_name(r#"{"id":1,"parentId":null}"#, None);
        check_name(r#"{"id":"i","id":"","parentId":null}"#, None);
        check_name(r#"{"uuid":"u","uuid":1}"#, None);
        check_name(r#"{"uuid":"u","uuid":null,"id":"i","parentId":1}"#, Some("i"));
        check_name(r#"{"uuid":"","id":"i","parentId":1}"#, Some("i"));
        check_name(r#"{"uuid":"\u0041\""}"#, Some(r#"\u0041\""#));
        check_name(r#"{"\u0075uid":"u"}"#, None);
    }

    #[test]
    fn texts_are_long_string_values_at_any_depth() {
        let (short, long) = ("é".repeat(127) + "x", "é".repeat(128));
        let escaped = r"\u0041".repeat(43);
        let json =
            format!(r#" {{"{long}":"{short}","a":"{long}","b":[["{escaped}"],{{"c":"{long}"}}]}}"#);
        let line = split_unfinished(json.as_bytes()).next().unwrap();
        let texts = line.shape.unwrap().texts;
        let found: Vec<_> = texts.into_iter().map(|span| &line.bytes[span]).collect();
        assert_eq!(found, [long.as_bytes(), escaped.as_bytes(), long.as_bytes()]);
    }

    proptest! {
        #[test]
        fn lines_and_rest_are_the_bytes_that_came(
            pieces in prop::collection::vec(prop::sample::select(vec![
                &b"{\"a\":1}"[..], b"{\"a\":", b"{\"", b"{}", b"}", b"\"", b" ", b"\r", b"x", b"\xff",
            ]), 0..10),
            ended: bool,
        ) {
            let segment = pieces.concat();
            let split = if ended { split } else { split_unfinished };
            let mut split = split(&segment);
            let mut joined = Vec::new();
            for line in split.by_ref() {
                prop_assert!(!line.bytes.is_empty());
                prop_assert!(line.separator.iter().all(|&byte| json::is_blank(byte)));
                prop_assert_eq!(line.shape.is_some(), json::scan(line.bytes, &mut ()) == Ok(line.bytes.len()));
                joined.extend_from_slice(line.separator);
                joined.extend_from_slice(line.bytes);
            }
            joined.extend_from_slice(split.rest());
            prop_assert_eq!(joined, &segment[..]);
            prop_assert!(!ended || split.rest().iter().all(|&byte| json::is_blank(byte)));
        }
    }
}
