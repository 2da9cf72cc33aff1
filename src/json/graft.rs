//! Grafts: add an item to an object or array of a handwritten document, or remove one, without changing any other byte.
//!
//! Invariant: adding an item and removing it again restores the original bytes.

use std::ops::Range;

use super::{
    raw::{Kind, Raw},
    scan::is_blank,
};

/// The layout of a document: its line ends, and its indentation per level.
struct Layout<'a> {
    newline: &'static str,
    unit: &'a [u8],
}

impl<'a> Layout<'a> {
    /// Detects the layout from the white space before the first field of the document.
    fn of(document: &'a [u8]) -> Self {
        let usual = Self { newline: "\n", unit: b"  " };
        let Some(items) = Raw::object(document.trim_ascii()).and_then(|all| spans(document, all))
        else {
            return usual;
        };
        let Some(first) = items.first() else { return usual };
        let lead = blanks_before(document, first.start);
        let unit = lead.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
        match lead {
            lead if lead.starts_with(b"\r\n") => Self { newline: "\r\n", unit },
            lead if lead.contains(&b'\n') => Self { newline: "\n", unit },
            _ => Self { newline: "", unit: b"" },
        }
    }
}

/// Returns the document with an item appended to an object or array in it, in the same layout as its neighbours.
///
/// The item is `value`, or `"key":value` for an object, without white space. Returns none if `within` is not a container of the
/// document.
pub fn with_item(document: &[u8], within: Raw<'_>, item: &str) -> Option<Vec<u8>> {
    let items = spans(document, within)?;
    let container = within.span_in(document)?;
    let layout = Layout::of(document);
    let inside = document.get(container.start + 1..container.end - 1)?;
    let (at, text) = match items.last() {
        Some(last) => {
            let lead = blanks_before(document, last.start);
            let base = lead.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
            let newline = if lead.contains(&b'\n') { layout.newline } else { "" };
            (last.end, [b",", lead, &laid_out(item, newline, layout.unit, base)].concat())
        }
        None if inside.is_empty() && !layout.newline.is_empty() => {
            let outer = line_indent(document, container.start);
            let base = [outer, layout.unit].concat();
            let newline = layout.newline.as_bytes();
            let item = laid_out(item, layout.newline, layout.unit, &base);
            (container.start + 1, [newline, &base, &item, newline, outer].concat())
        }
        // Existing white space is kept.
        None => (container.start + 1, laid_out(item, "", b"", b"")),
    };
    splice(document, at..at, &text)
}

/// Returns the document without the n-th item of an object or array, and without its separator.
pub fn without_item(document: &[u8], within: Raw<'_>, n: usize) -> Option<Vec<u8>> {
    let items = spans(document, within)?;
    let item = items.get(n)?.clone();
    let before = n.checked_sub(1).and_then(|n| items.get(n));
    let cut = match (before, items.get(n + 1)) {
        (Some(before), _) => before.end..item.end,
        (None, Some(after)) => item.start..after.start,
        (None, None) if blanks_before(document, item.start).is_empty() => item,
        (None, None) => {
            let container = within.span_in(document)?;
            container.start + 1..container.end - 1
        }
    };
    splice(document, cut, b"")
}

/// Returns the ranges of a container's items, keys included.
fn spans(document: &[u8], container: Raw<'_>) -> Option<Vec<Range<usize>>> {
    match container.kind() {
        Kind::Object => {
            let span = |(key, value): (&[u8], Raw<'_>)| {
                let key = Raw::scanned(key).span_in(document)?;
                Some(key.start.checked_sub(1)?..value.span_in(document)?.end)
            };
            container.fields().map(span).collect()
        }
        Kind::Array => container.items().map(|item| item.span_in(document)).collect(),
        _ => None,
    }
}

/// Returns the white space right before an offset.
fn blanks_before(document: &[u8], at: usize) -> &[u8] {
    let before = document.get(..at).unwrap_or_default();
    let blanks = before.iter().rev().take_while(|&&byte| is_blank(byte)).count();
    before.get(before.len() - blanks..).unwrap_or_default()
}

/// Returns the indentation of the line that contains an offset.
fn line_indent(document: &[u8], at: usize) -> &[u8] {
    let before = document.get(..at).unwrap_or_default();
    let line = before.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
    let blanks = line.iter().take_while(|&&byte| is_blank(byte)).count();
    line.get(..blanks).unwrap_or_default()
}

/// Formats an item that has no white space; with an empty `newline` it stays on one line.
fn laid_out(item: &str, newline: &str, unit: &[u8], base: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(item.len() * 2);
    let mut depth = 0_usize;
    let mut is_text = false;
    let mut is_escaped = false;
    let bytes = item.as_bytes();
    let line = |out: &mut Vec<u8>, depth: usize| {
        if !newline.is_empty() {
            out.extend(newline.as_bytes());
            out.extend(base);
            out.extend(unit.repeat(depth));
        }
    };
    for (at, &byte) in bytes.iter().enumerate() {
        if is_text {
            out.push(byte);
            is_text = is_escaped || byte != b'"';
            is_escaped = !is_escaped && byte == b'\\';
            continue;
        }
        let is_closed = matches!(bytes.get(at + 1), Some(b'}' | b']'));
        let was_opened = at.checked_sub(1).and_then(|at| bytes.get(at));
        match byte {
            b'{' | b'[' => {
                depth += 1;
                out.push(byte);
                if !is_closed {
                    line(&mut out, depth);
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if !matches!(was_opened, Some(b'{' | b'[')) {
                    line(&mut out, depth);
                }
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                line(&mut out, depth);
            }
            b':' if newline.is_empty() => out.push(byte),
            b':' => out.extend(b": "),
            byte => {
                is_text = byte == b'"';
                out.push(byte);
            }
        }
    }
    out
}

/// Returns a text with a range replaced.
fn splice(text: &[u8], cut: Range<usize>, with: &[u8]) -> Option<Vec<u8>> {
    Some([text.get(..cut.start)?, with, text.get(cut.end..)?].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> &str {
        str::from_utf8(bytes).unwrap()
    }

    /// Puts an item into the value of `key`, or of the whole document, and takes it out again.
    #[track_caller]
    fn check(before: &str, key: Option<&str>, item: &str, after: &str) {
        let within = |document: &[u8]| -> Range<usize> {
            let all = Raw::object(document.trim_ascii()).unwrap();
            key.map_or(all, |key| all.get(key).unwrap()).span_in(document).unwrap()
        };
        let span = within(before.as_bytes());
        let raw = Raw::scanned(&before.as_bytes()[span]);
        let with = with_item(before.as_bytes(), raw, item).unwrap();
        assert_eq!(text(&with), after);
        let raw = Raw::scanned(&with[within(&with)]);
        let n = spans(&with, raw).unwrap().len() - 1;
        assert_eq!(text(&without_item(&with, raw, n).unwrap()), before);
    }

    #[test]
    fn an_item_is_laid_out_like_its_neighbours_and_leaves_no_trace() {
        let item = r#""b":[{"c":"x: {,\"","d":{}}]"#;
        check("{}", None, "\"b\":1", "{\n  \"b\": 1\n}");
        check("{ }\n", None, "\"b\":1", "{\"b\":1 }\n");
        check("{\"a\":1}", None, item, "{\"a\":1,\"b\":[{\"c\":\"x: {,\\\"\",\"d\":{}}]}");
        check("{\"a\": 1}", None, "\"b\":[2]", "{\"a\": 1,\"b\":[2]}");
        check(
            "{\n\t\"a\": 1\n}\n",
            None,
            item,
            "{\n\t\"a\": 1,\n\t\"b\": [\n\t\t{\n\t\t\t\"c\": \"x: {,\\\"\",\n\t\t\t\"d\": {}\n\t\t}\n\t]\n}\n",
        );
        check(
            "{\r\n \"a\": {}\r\n}",
            Some("a"),
            "\"b\":1",
            "{\r\n \"a\": {\r\n  \"b\": 1\r\n }\r\n}",
        );
        check("{\n  \"a\": [1, 2]\n}", Some("a"), "{\"b\":3}", "{\n  \"a\": [1, 2, {\"b\":3}]\n}");
        check("{\n  \"a\": []\n}", Some("a"), "3", "{\n  \"a\": [\n    3\n  ]\n}");
        check("{\n  \"a\": [ ]\n}", Some("a"), "3", "{\n  \"a\": [3 ]\n}");
    }

    #[test]
    fn what_stands_around_an_item_stays_joined() {
        let check = |before: &str, n, after: &str| {
            let raw = Raw::value(before.as_bytes()).unwrap();
            assert_eq!(text(&without_item(before.as_bytes(), raw, n).unwrap()), after);
        };
        check("[ 1 , 2 , 3 ]", 0, "[ 2 , 3 ]");
        check("[ 1 , 2 , 3 ]", 1, "[ 1 , 3 ]");
        check("[ 1 , 2 , 3 ]", 2, "[ 1 , 2 ]");
        check("{\n \"a\" : 1 }", 0, "{}");
        let raw = Raw::value(b"[1]").unwrap();
        assert_eq!(without_item(b"[1]", raw, 1), None);
        let other = b"[1]".to_vec();
        assert_eq!(with_item(b"[1]", Raw::value(&other).unwrap(), "2"), None);
    }
}
