//! Covering the whole content of a line.

use std::{collections::BTreeSet, ops::Range};

use super::{
    place::{Filling, fill},
    text::Text,
};
use crate::json::{Frame, Kind, Owner, Raw, owners};

/// Returns a line with its whole content covered: everything that the frame does not name, including keys and numbers; without a
/// frame, everything. `own` returns how many bytes at the start and at the end of a text show what it is and stay uncovered. A
/// line that is not a JSON object, apart from white space around it, is covered completely.
pub(crate) fn cover_all(
    line: &[u8],
    frame: Option<&Frame>,
    own: &dyn Fn(&str) -> [usize; 2],
) -> Vec<u8> {
    let mut covered = line.to_vec();
    let Some(record) = Raw::file(line) else {
        fill(&mut covered, Filling::Mark);
        return covered;
    };
    let whole = Text { bytes: line.to_vec(), from: None };
    for value in said(record, frame) {
        let Some(range) = value.span_in(line) else { continue };
        if value.kind() == Kind::Number {
            fill_number(&mut covered, &whole, range);
            continue;
        }
        // Inside the quotes.
        let inner = range.start + 1..range.end.saturating_sub(1);
        let from = inner.clone().map(|at| at..at + 1).collect();
        let bytes = line.get(inner.clone()).unwrap_or_default().to_vec();
        let text = Text { bytes, from: Some(from) }.unescaped();
        // A string that contains an object or a list, such as the arguments of a call, still does afterwards.
        let within = Raw::value(text.bytes.trim_ascii());
        let within = within.filter(|within| matches!(within.kind(), Kind::Object | Kind::Array));
        let Some(within) = within else {
            let [begin, end] = std::str::from_utf8(&text.bytes).map(own).unwrap_or_default();
            let said = text.raw(begin..text.bytes.len().saturating_sub(end).max(begin));
            fill(covered.get_mut(said).unwrap_or_default(), Filling::Mark);
            continue;
        };
        for value in said(within, None) {
            let Some(span) = value.span_in(&text.bytes) else { continue };
            if value.kind() == Kind::Number {
                fill_number(&mut covered, &text, span);
            } else {
                let inner = text.raw(span.start + 1..span.end.saturating_sub(1));
                fill(covered.get_mut(inner).unwrap_or_default(), Filling::Mark);
            }
        }
    }
    covered
}

/// Returns a line with those content strings covered that are in `texts`, ignoring white space around them.
pub(crate) fn cover_texts(line: &[u8], frame: &Frame, texts: &BTreeSet<String>) -> Vec<u8> {
    let mut covered = line.to_vec();
    for value in Raw::object(line).into_iter().flat_map(|record| said(record, Some(frame))) {
        if value.text().is_some_and(|text| texts.contains(text.trim()))
            && let Some(span) = value.span_in(line)
        {
            let inner = span.start + 1..span.end.saturating_sub(1);
            fill(covered.get_mut(inner).unwrap_or_default(), Filling::Mark);
        }
    }
    covered
}

/// Returns the keys, strings and numbers of a record that are content.
pub(crate) fn said<'a>(record: Raw<'a>, frame: Option<&Frame>) -> impl Iterator<Item = Raw<'a>> {
    let owners = owners(record, frame).into_iter();
    owners.filter_map(|(owner, value)| (owner == Owner::Said).then_some(value))
}

/// Overwrites the digits of a number, which stays a number. If a digit is written as a `\u` escape, overwrites the last hex digit
/// of it.
fn fill_number(covered: &mut [u8], text: &Text, number: Range<usize>) {
    for at in number.filter(|at| text.bytes.get(*at).is_some_and(u8::is_ascii_digit)) {
        let digit = text.raw(at..at + 1);
        let last = covered.get_mut(digit).and_then(<[u8]>::last_mut);
        fill(last.map(std::slice::from_mut).unwrap_or_default(), Filling::Number);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::json::quote;

    const FRAME: Frame = Frame {
        own: &["m", "m.content[]", "schema*", "files{}", "m.uuids[]"],
        outputs: &["m.content[].content[]"],
        parts: &["text"],
        kinds: &[("type", &["t"])],
        telling: &["uuid", "type", "name", "uuids"],
        endings: &["_state"],
        saying: &["input"],
    };

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let covered = cover_all(line.as_bytes(), Some(&FRAME), &|_| [0, 0]);
        assert_eq!(String::from_utf8_lossy(&covered), expected);
        assert_eq!(cover_all(&covered, Some(&FRAME), &|_| [0, 0]), covered);
    }

    #[test]
    fn all_that_a_line_says_is_covered_but_for_its_frame() {
        check(
            r#"{"uuid":"u","type":"user","m":{"content":["hello to all of you",{"x":"no"}],"n":12}}"#,
            r#"{"uuid":"u","type":"user","m":{"content":["[redacted]*********",{"x":"**"}],"n":12}}"#,
        );
        // A part is of a kind that is known.
        check(
            r#"{"m":{"content":[{"content":[{"type":"t"},{"type":"theft"}]}]}}"#,
            r#"{"m":{"content":[{"content":[{"type":"t"},{"type":"*****"}]}]}}"#,
        );
        // Only in the frame does a key tell anything, and only of a word.
        check(
            r#"{"name":"Bash","m":{"name":"he was fired"},"x":{"name":"Bob","type":-4.7e2}}"#,
            r#"{"name":"Bash","m":{"name":"[redacted]**"},"x":{"****":"***","****":-1.1e1}}"#,
        );
        check(r#"{"uuid":{"done":"yes"},"m":["x"]}"#, r#"{"uuid":{"****":"***"},"m":["*"]}"#);
        check(
            r#"{"name":"é","uuid":"a b","input":47}"#,
            r#"{"name":"**","uuid":"a b","input":11}"#,
        );
        check(
            r#"{"m":{"uuids":["a"],"content":[{"type":"t","content":[{"type":"t","name":"Bob","n":7}]}]}}"#,
            r#"{"m":{"uuids":["a"],"content":[{"type":"t","content":[{"type":"t","****":"***","*":1}]}]}}"#,
        );
        check(
            r#"{"schema":{"a":[{"type":"b","n":7,"c":"Bob"}]},"files":{"/bob":{"name":"x","n":7}}}"#,
            r#"{"schema":{"a":[{"type":"b","n":7,"c":"***"}]},"files":{"****":{"name":"x","n":7}}}"#,
        );
        // So does the end of a key, of one word of small letters.
        check(
            r#"{"a_state":"not_used","b_state":"Bob","c_state":"was used","state":"used","x":{"d_state":"x"}}"#,
            r#"{"a_state":"not_used","b_state":"***","c_state":"********","state":"****","x":{"*******":"*"}}"#,
        );
        // No key is two.
        check(r#"{"m.content":{"name":"Bob"}}"#, r#"{"m.content":{"****":"***"}}"#);
        check(r#"{"\u006d":{"name":"Bob"}}"#, r#"{"\u006d":{"****":"***"}}"#);
    }

    #[test]
    fn an_object_in_a_text_stays_one() {
        check(
            r#"{"a":"{\"path\":\"\\/etc\\/hosts.d\",\"n\":[\"x\",-2.50]}"}"#,
            r#"{"a":"{\"****\":\"[redacted]******\",\"*\":[\"*\",-1.11]}"}"#,
        );
        assert_eq!(cover_all(b"torn {\"aa\"", Some(&FRAME), &|_| [0, 0]), b"[redacted]");
        let whole = br#"{"uuid":"u","type":{"n":7}}"#;
        assert_eq!(cover_all(whole, None, &|_| [0, 0]), br#"{"****":"*","****":{"*":1}}"#);
    }

    #[test]
    fn what_says_nothing_of_itself_stays() {
        check(
            r#"{"a":"{\"all\": true, \"n\": [null, false, -1]}"}"#,
            r#"{"a":"{\"***\": true, \"*\": [null, false, -1]}"}"#,
        );
        check(r#"{"a":"[{\"a\":null}]\n","b":"true"}"#, r#"{"a":"[{\"*\":null}]\n","b":"****"}"#);
        check(r#"{"a":"{\"n\":\u0034\u00302}"}"#, r#"{"a":"{\"*\":\u0031\u00311}"}"#);
        let file = b"\xef\xbb\xbf{\n  \"a\": null\n}\n";
        assert_eq!(cover_all(file, None, &|_| [0, 0]), b"\xef\xbb\xbf{\n  \"*\": null\n}\n");
    }

    #[test]
    fn a_text_is_covered_where_a_string_is_the_same() {
        let texts = BTreeSet::from(["he was fired".to_owned()]);
        let line =
            br#"{"type":"he was fired","a":["he was \u0066ired\n","he was fired yesterday"]}"#;
        let covered = cover_texts(line, &FRAME, &texts);
        let expected =
            r#"{"type":"[redacted]**","a":["[redacted]*********","he was fired yesterday"]}"#;
        assert_eq!(String::from_utf8_lossy(&covered), expected);
    }

    /// Makes any value.
    fn anything() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            r#"[a-z"\\é\n{}:\[\],0-9 ]{0,14}"#.prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z\"é]{0,12}", inner.clone(), 0..4)
                    .prop_map(|fields| Value::from(fields.into_iter().collect::<Map<_, _>>())),
                // JSON in a text.
                inner.prop_map(|value| Value::from(value.to_string())),
            ]
        })
    }

    /// Returns what a value is made of, and the objects and lists in its texts, without what it says.
    fn shape(value: Raw<'_>, is_within: bool) -> String {
        let all = |all: &mut dyn Iterator<Item = Raw<'_>>| -> String {
            all.map(|of| shape(of, is_within)).collect()
        };
        match value.kind() {
            Kind::Object => format!("{{{}}}", all(&mut value.fields().map(|(_, of)| of))),
            Kind::Array => format!("[{}]", all(&mut value.items())),
            Kind::String if !is_within => {
                let text = value.text().unwrap_or_default();
                let within = Raw::value(text.trim_ascii().as_bytes());
                let is_made = |of: &Raw<'_>| matches!(of.kind(), Kind::Object | Kind::Array);
                within.filter(is_made).map(|of| shape(of, true)).unwrap_or_default()
            }
            kind => format!("{kind:?} "),
        }
    }

    proptest! {
        #[test]
        fn what_was_json_stays_json_of_the_same_shape(said in anything(), is_escaped in any::<bool>()) {
            let mut text = quote(&json!({ "said": said }).to_string());
            if is_escaped {
                let inner = text.trim_matches('"').replace('1', r"\u0031").replace(r#"\""#, r"\u0022");
                text = format!("\"{inner}\"");
            }
            let line = format!(r#"{{"uuid":"u","input":{text},"a":{}}}"#, json!(said));
            for frame in [Some(&FRAME), None] {
                let covered = cover_all(line.as_bytes(), frame, &|_| [0, 0]);
                let shown = String::from_utf8_lossy(&covered);
                let shape = |line| Raw::object(line).map(|record| shape(record, false));
                let [was, is] = [line.as_bytes(), &covered].map(shape);
                prop_assert_eq!(was, is, "{} {}", line, shown);
                prop_assert_eq!(cover_all(&covered, frame, &|_| [0, 0]), covered.clone(), "{}", shown);
            }
        }
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
        let covered = cover_all(line.as_bytes(), Some(&FRAME), &own);
        assert_eq!(String::from_utf8_lossy(&covered), expected);
    }
}
