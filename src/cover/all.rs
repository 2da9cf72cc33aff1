//! Covering all that a line says.

use super::{
    place::{Filling, fill},
    text::Text,
};
use crate::json::Raw;

/// Returns a line with all that it says covered: every string value whose key is not one of those that are kept; a line that
/// is no object is covered whole.
pub(crate) fn cover_all(line: &[u8], is_kept: &dyn Fn(&[u8]) -> bool) -> Vec<u8> {
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
            fill(covered.get_mut(inner).unwrap_or_default(), Filling::Mark);
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
        let line = br#"{"uuid":"u","type":"user","m":{"content":["hello to all of you",{"x":"no"}],"n":1}}"#;
        let expected = r#"{"uuid":"u","type":"user","m":{"content":["[redacted]*********",{"x":"**"}],"n":1}}"#;
        assert_eq!(String::from_utf8_lossy(&cover_all(line, &kept)), expected);
        let line = br#"{"a":"{\"path\":\"\\/etc\\/hosts.d\",\"n\":[\"x\",2]}"}"#;
        let expected = r#"{"a":"{\"path\":\"[redacted]******\",\"n\":[\"*\",2]}"}"#;
        assert_eq!(String::from_utf8_lossy(&cover_all(line, &kept)), expected);
        assert_eq!(cover_all(b"torn {\"aa\"", &kept), b"[redacted]");
    }
}
