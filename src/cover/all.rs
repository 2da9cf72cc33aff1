//! Covering all that a line says.

use super::{
    place::{Filling, fill},
    text::Text,
};
use crate::json::Raw;

/// Returns a line with all that it says covered: every string value whose key is not one of those that are kept, but for as many
/// bytes at its beginning and its end as `own` returns, which tell what it is; a line that is no object is covered whole.
pub(crate) fn cover_all(
    line: &[u8],
    is_kept: &dyn Fn(&[u8]) -> bool,
    own: &dyn Fn(&str) -> [usize; 2],
) -> Vec<u8> {
    let mut covered = line.to_vec();
    let Some(record) = Raw::object(line) else {
        fill(&mut covered, Filling::Mark);
        return covered;
    };
    for range in record.strings(is_kept).filter_map(|value| value.span_in(line)) {
        // Between the quotation marks.
        let inner = range.start + 1..range.end.saturating_sub(1);
        let from = (inner.start..=inner.end).collect();
        let bytes = line.get(inner.clone()).unwrap_or_default().to_vec();
        let text = Text { bytes, from: Some(from) }.unescaped();
        // What is an object stays one, such as the arguments of a call.
        let Some(within) = Raw::object(&text.bytes) else {
            let [begin, end] = std::str::from_utf8(&text.bytes).map(own).unwrap_or_default();
            let said = text.raw(begin..text.bytes.len().saturating_sub(end).max(begin));
            fill(covered.get_mut(said).unwrap_or_default(), Filling::Mark);
            continue;
        };
        for span in within.strings(|_| false).filter_map(|value| value.span_in(&text.bytes)) {
            let inner = text.raw(span.start + 1..span.end.saturating_sub(1));
            fill(covered.get_mut(inner).unwrap_or_default(), Filling::Mark);
        }
    }
    covered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_a_line_says_is_covered_but_for_what_it_is() {
        let kept = |key: &[u8]| key == b"uuid" || key == b"type";
        let nothing = |_: &str| [0, 0];
        let line = br#"{"uuid":"u","type":"user","m":{"content":["hello to all of you",{"x":"no"}],"n":1}}"#;
        let expected = r#"{"uuid":"u","type":"user","m":{"content":["[redacted]*********",{"x":"**"}],"n":1}}"#;
        assert_eq!(String::from_utf8_lossy(&cover_all(line, &kept, &nothing)), expected);
        let line = br#"{"a":"{\"path\":\"\\/etc\\/hosts.d\",\"n\":[\"x\",2]}"}"#;
        let expected = r#"{"a":"{\"path\":\"[redacted]******\",\"n\":[\"*\",2]}"}"#;
        assert_eq!(String::from_utf8_lossy(&cover_all(line, &kept, &nothing)), expected);
        assert_eq!(cover_all(b"torn {\"aa\"", &kept, &nothing), b"[redacted]");
    }

    #[test]
    fn what_a_text_is_stays_however_it_is_escaped() {
        let own = |text: &str| {
            let end = "</é>".len();
            let begins = text.trim_start().strip_prefix("<é>");
            begins.map_or([0, 0], |rest| [text.len() - rest.len(), end.min(rest.len())])
        };
        let line =
            r#"{"a":"\n\u003cé>it was said here</\u00e9>","b":"it was","c":"<é></é>","d":"<é>"}"#;
        let expected =
            r#"{"a":"\n\u003cé>[redacted]******</\u00e9>","b":"******","c":"<é></é>","d":"<é>"}"#;
        let covered = cover_all(line.as_bytes(), &|_| false, &own);
        assert_eq!(String::from_utf8_lossy(&covered), expected);
    }
}
