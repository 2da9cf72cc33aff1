//! JSON Lines: one report per line, beginning with its `"type"`.
//!
//! The output is exact UTF-8 JSON. Hidden characters (see [`safe::is_hidden`]) are written as `\uXXXX`, which parses to the same
//! string and is harmless on a terminal.
//!
//! Invariant: no line break occurs within an object; exactly one follows it.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use undertext::report::Report;

use super::safe;

/// Writes a report as one line.
pub(crate) fn line(out: &mut dyn Write, report: &impl Report) -> io::Result<()> {
    safe_line(out, &Tagged { kind: report.kind(), report })
}

/// Writes a value that contains its own type as one line.
pub(crate) fn safe_line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut line, OneSafeLine))?;
    line.push(b'\n');
    out.write_all(&line)
}

#[derive(Serialize)]
struct Tagged<'a, T> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(flatten)]
    report: &'a T,
}

struct OneSafeLine;

impl Formatter for OneSafeLine {
    fn write_string_fragment<W>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()>
    where
        W: ?Sized + Write,
    {
        // Most strings are plain. A branch-free test detects that for many bytes at a time.
        let is_plain =
            |bytes: &[u8]| bytes.iter().fold(true, |all, byte| all & (b' '..0x7f).contains(byte));
        if fragment.as_bytes().chunks(64).all(is_plain) {
            return writer.write_all(fragment.as_bytes());
        }
        let mut rest = fragment;
        while let Some(at) = rest.find(safe::is_hidden) {
            let (shown, hidden) = rest.split_at(at);
            writer.write_all(shown.as_bytes())?;
            let mut chars = hidden.chars();
            if let Some(c) = chars.next() {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(writer, "\\u{unit:04x}")?;
                }
            }
            rest = chars.as_str();
        }
        writer.write_all(rest.as_bytes())
    }

    fn write_raw_fragment<W>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()>
    where
        W: ?Sized + Write,
    {
        // Valid JSON has these three only between tokens, because strings must escape them.
        for (n, part) in fragment.split(['\n', '\r', '\t']).enumerate() {
            if n > 0 {
                writer.write_all(b" ")?;
            }
            self.write_string_fragment(writer, part)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Serialize)]
    #[serde(transparent)]
    struct Entry<T>(T);

    impl<T: Serialize> Report for Entry<T> {
        fn kind(&self) -> &'static str {
            "entry"
        }
    }

    fn written(fields: &impl Serialize) -> String {
        let mut out = Vec::new();
        line(&mut out, &Entry(fields)).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_type_comes_first_and_fields_keep_their_order() {
        let fields = json!({ "z": 1, "a": [null, "é"] });
        assert_eq!(written(&fields), "{\"type\":\"entry\",\"z\":1,\"a\":[null,\"é\"]}\n");
    }

    #[test]
    fn hidden_characters_are_escaped() {
        let fields = json!({ "text": "\x1b\x7f\u{9b}\u{202e}\u{e0041}\n" });
        let expected = r#"{"type":"entry","text":"\u001b\u007f\u009b\u202e\udb40\udc41\n"}"#;
        assert_eq!(written(&fields), format!("{expected}\n"));
    }

    #[test]
    fn raw_json_stays_on_one_line() {
        #[derive(Serialize)]
        struct Fields {
            raw: Box<RawValue>,
        }
        let raw = RawValue::from_string("{\r\n\t\"a\": \"\u{9b}\"\n}".to_owned()).unwrap();
        let expected = r#"{"type":"entry","raw":{   "a": "\u009b" }}"#;
        assert_eq!(written(&Fields { raw }), format!("{expected}\n"));
    }

    proptest! {
        #[test]
        fn a_line_parses_back_and_hides_nothing(key: String, text: String) {
            prop_assume!(key != "type");
            let fields = json!({ key: text });
            let line = written(&fields);
            let mut parsed: Value = serde_json::from_str(&line).unwrap();
            let kind = parsed.as_object_mut().unwrap().shift_remove("type");
            prop_assert_eq!(kind, Some(json!("entry")));
            prop_assert_eq!(parsed, fields);
            prop_assert!(!line.trim_end_matches('\n').chars().any(safe::is_hidden));
        }
    }
}
