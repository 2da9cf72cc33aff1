//! JSON Lines: one object a line, each tagged with its `"type"` first. The shapes are a promise; each command's help
//! documents its own, and nothing else does.
//!
//! The output is exact UTF-8 JSON: hidden characters (see [`safe::is_hidden`]) are written as
//! `\uXXXX`, which parses to the same string and is harmless on a terminal.
//!
//! Invariant: a line break is written after each object and nowhere else.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use serde_json::value::RawValue;
use undertext::model::{Block, Checkpoint, Message, Text};
use undertext::ops::{self, GraphNode};
use undertext::wire::Departure;

use super::safe;

/// An entry of `log` and `show`.
#[derive(Serialize)]
pub(crate) struct EntryShape<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    side: Option<&'static str>,
    entry: String,
    uuid: Option<&'a str>,
    kind: &'static str,
    role: Option<&'static str>,
    time: Option<String>,
    checkpoint: Option<u64>,
    own: Option<&'a str>,
    checkpoints: Vec<MarkShape>,
    model: Option<&'a str>,
    blocks: Vec<Part<'a>>,
    #[serde(flatten)]
    excerpt: Option<Excerpt<'a>>,
}

#[derive(Serialize)]
struct Excerpt<'a> {
    text: &'a str,
    from: usize,
    lines: usize,
}

#[derive(Serialize)]
struct MarkShape {
    checkpoint: u64,
    note: Option<String>,
}

#[derive(Serialize)]
#[serde(tag = "block", rename_all = "lowercase")]
enum Part<'a> {
    Text { text: &'a str },
    Thinking { text: &'a str },
    Call { id: &'a str, name: &'a str, input: Input<'a> },
    Result { id: &'a str, text: Cow<'a, str>, error: bool },
    Image { bytes: usize },
    Other { name: &'a str },
}

/// The arguments of a call, as exact as they came.
#[derive(Serialize)]
#[serde(untagged)]
enum Input<'a> {
    Json(&'a RawValue),
    Text(&'a str),
}

/// A node of `graph`.
#[derive(Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the object")]
pub(crate) struct NodeShape<'a> {
    node: usize,
    entry: String,
    uuid: Option<&'a str>,
    last: String,
    kind: &'static str,
    time: Option<String>,
    words: &'a str,
    entries: u64,
    cut: u64,
    parents: &'a [usize],
    checkpoint: Option<u64>,
    own: Option<&'a str>,
    checkpoints: Vec<MarkShape>,
    branches: &'a [String],
    head: bool,
    unnamed: bool,
    aside: bool,
    left: Option<&'static str>,
    to: Option<&'a str>,
    later: bool,
}

impl<'a> EntryShape<'a> {
    /// Returns an entry as it is written.
    pub(crate) fn new(line: &'a ops::Line) -> Self {
        let message = line.messages.first();
        Self {
            side: None,
            entry: line.id.to_string(),
            uuid: line.uuid.as_deref(),
            kind: line.kind.as_str(),
            role: message.map(|message| message.role.as_str()),
            time: line.time.map(|time| time.to_string()),
            checkpoint: line.checkpoint,
            own: line.own.as_deref(),
            checkpoints: marks(&line.marks),
            model: message.and_then(|message| message.model.as_deref()),
            blocks: line.messages.iter().flat_map(Message::parts).map(part).collect(),
            excerpt: None,
        }
    }

    /// Says on which side of a comparison it stands.
    pub(crate) fn on(self, side: &'static str) -> Self {
        Self { side: Some(side), ..self }
    }

    /// Adds lines of the text.
    pub(crate) fn with_text(self, text: &'a str, from: usize, lines: usize) -> Self {
        Self { excerpt: Some(Excerpt { text, from, lines }), ..self }
    }
}

impl<'a> NodeShape<'a> {
    /// Returns a node as it is written.
    pub(crate) fn new(place: usize, node: &'a GraphNode) -> Self {
        Self {
            node: place,
            entry: node.id.to_string(),
            uuid: node.uuid.as_deref(),
            last: node.last.to_string(),
            kind: node.kind.as_str(),
            time: node.time.map(|time| time.to_string()),
            words: &node.words,
            entries: node.entries,
            cut: node.cut,
            parents: &node.parents,
            checkpoint: node.checkpoint,
            own: node.own.as_deref(),
            checkpoints: marks(&node.marks),
            branches: &node.branches,
            head: node.is_head,
            unnamed: node.is_unnamed,
            aside: node.is_aside,
            left: node.left.as_ref().map(Departure::as_str),
            to: node.left.as_ref().and_then(Departure::own),
            later: node.is_from_later,
        }
    }
}

fn marks(marks: &[Checkpoint]) -> Vec<MarkShape> {
    marks
        .iter()
        .map(|mark| MarkShape { checkpoint: mark.n, note: mark.note.as_ref().map(Text::to_text) })
        .collect()
}

fn part(block: &Block) -> Part<'_> {
    match block {
        Block::Text(text) => Part::Text { text },
        // A kind of its own, although the model reads it as its thinking.
        Block::Thinking(thinking) if thinking.is_redacted => {
            Part::Other { name: "redacted_thinking" }
        }
        Block::Thinking(thinking) => Part::Thinking { text: &thinking.text },
        Block::Call { id, name, input, .. } => {
            let parsed = serde_json::from_str(input).map(Input::Json);
            Part::Call { id, name, input: parsed.unwrap_or(Input::Text(input)) }
        }
        Block::Result { id, error, .. } => {
            Part::Result { id, text: block.answer_text(), error: *error }
        }
        Block::Image(image) => Part::Image { bytes: image.bytes },
        Block::Other { name, .. } => Part::Other { name },
    }
}

/// Writes one line: `fields`, a struct or map without a `type` of its own, tagged with `kind`.
pub(crate) fn line(out: &mut dyn Write, kind: &str, fields: &impl Serialize) -> io::Result<()> {
    let tagged = Tagged { kind, fields };
    tagged.serialize(&mut Serializer::with_formatter(&mut *out, OneSafeLine))?;
    writeln!(out)
}

#[derive(Serialize)]
struct Tagged<'a, T> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(flatten)]
    fields: &'a T,
}

struct OneSafeLine;

impl Formatter for OneSafeLine {
    fn write_string_fragment<W>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()>
    where
        W: ?Sized + Write,
    {
        // Most are plain: told many bytes at a time, with no way out in between.
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
        // In valid JSON these three are whitespace between tokens, for strings must escape them.
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

    fn written(fields: &impl Serialize) -> String {
        let mut out = Vec::new();
        line(&mut out, "entry", fields).unwrap();
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
