//! Entries: their content and its hidden part.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use super::shape::report;
use crate::{
    model::{Block, Checkpoint, CheckpointNumber, EntryId, Message, Text},
    session::{Damaged, Line, Shown, SubAgent},
};

/// The hidden texts of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// The entry.
    pub entry: EntryId,
    /// The first in its chain of origins.
    pub origin: EntryId,
    /// The texts, in order.
    pub texts: Vec<HiddenText>,
}

/// A text that was truncated in an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiddenText {
    /// The call whose result it is.
    pub call: String,
    /// The index of the text in the result.
    pub text: usize,
    /// The complete text.
    pub whole: String,
    /// The offset at which the hidden part begins, in bytes.
    pub seam: usize,
    /// What the entry shows after the visible part.
    pub suffix: String,
}

impl HiddenText {
    /// Returns the hidden part.
    pub fn hidden(&self) -> &str {
        self.whole.get(self.seam..).unwrap_or_default()
    }

    /// Returns the visible part.
    pub fn shown(&self) -> &str {
        self.whole.get(..self.seam).unwrap_or(&self.whole)
    }
}

report!(Damaged, "damaged", |it| { entry: it.entry, problem: it.problem });

report!(Line, "entry", |it| {
    entry: it.id,
    uuid: it.uuid,
    kind: it.kind.as_str(),
    role: it.messages.first().map(|message| message.role.as_str()),
    time: it.time,
    checkpoint: it.checkpoint,
    own: it.own,
    checkpoints: marks(&it.marks),
    model: it.messages.first().and_then(|message| message.model.as_deref()),
    blocks: it.messages.iter().flat_map(Message::parts).map(|b| part(it, b)).collect::<Vec<_>>(),
});

report!(SubAgent, "sub_agent", |it| {
    entry: it.caller,
    first: it.first,
    last: it.last,
    entries: it.entries,
});

#[derive(Serialize)]
pub(super) struct Mark {
    checkpoint: CheckpointNumber,
    note: Option<String>,
}

/// Returns checkpoints in the form in which an entry lists them.
pub(super) fn marks(marks: &[Checkpoint]) -> Vec<Mark> {
    let note = |mark: &Checkpoint| mark.note.as_ref().map(Text::to_text);
    marks.iter().map(|mark| Mark { checkpoint: mark.n, note: note(mark) }).collect()
}

#[derive(Serialize)]
#[serde(tag = "block", rename_all = "lowercase")]
enum Part<'a> {
    Text {
        text: &'a str,
    },
    Thinking {
        text: &'a str,
    },
    Call {
        id: &'a str,
        name: &'a str,
        input: Input<'a>,
    },
    Result {
        id: &'a str,
        text: Cow<'a, str>,
        error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        hidden: Option<u64>,
    },
    Image {
        bytes: usize,
    },
    Other {
        name: &'a str,
    },
}

/// The arguments of a call, exactly as in the record.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Input<'a> {
    Json(&'a RawValue),
    Text(&'a str),
}

impl<'a> From<&'a str> for Input<'a> {
    fn from(input: &'a str) -> Self {
        serde_json::from_str(input).map_or(Self::Text(input), Self::Json)
    }
}

fn part<'a>(line: &Line, block: &'a Block) -> Part<'a> {
    match block {
        Block::Text(text) => Part::Text { text },
        // This is a separate kind of block, although the model reads it as thinking.
        Block::Thinking(thinking) if thinking.is_redacted => {
            Part::Other { name: "redacted_thinking" }
        }
        Block::Thinking(thinking) => Part::Thinking { text: &thinking.text },
        Block::Call { id, name, input, .. } => {
            Part::Call { id, name, input: Input::from(&**input) }
        }
        Block::Result { id, error, .. } => {
            let hidden = line.hidden(id);
            Part::Result { id, text: block.answer_text(), error: *error, hidden }
        }
        Block::Image(image) => Part::Image { bytes: image.bytes },
        Block::Other { name, .. } => Part::Other { name },
    }
}

/// An entry with an excerpt of its text.
#[derive(Clone, Debug, Serialize)]
pub struct Excerpt<'a> {
    /// The entry.
    #[serde(flatten)]
    pub line: &'a Line,
    /// The lines.
    pub text: &'a str,
    /// The number of the first line, from 1.
    pub from: usize,
    /// The total number of lines.
    pub lines: usize,
}

report!(Excerpt<'_>, "entry");

/// A line of a text.
#[derive(Clone, Debug, Serialize)]
pub struct TextLine<'a> {
    /// Its number, from 1.
    pub line: usize,
    /// The text of the line.
    pub text: &'a str,
}

report!(TextLine<'_>, "line");

/// A hidden text of an entry, with the requested part.
#[derive(Clone, Debug)]
pub struct Uncovered<'a> {
    /// The entry.
    pub hidden: &'a Hidden,
    /// The text.
    pub part: &'a HiddenText,
    /// The requested part.
    pub text: &'a str,
}

report!(Uncovered<'_>, "hidden", |it| {
    entry: it.hidden.entry,
    origin: it.hidden.origin,
    call: it.part.call,
    part: it.part.text,
    shown: it.part.shown().chars().count(),
    hidden: it.part.hidden().chars().count(),
    text: it.text,
});

report!(Shown, "checkpoint", |it| {
    checkpoint: it.checkpoint.n,
    entry: it.entry,
    before: it.before,
    words: it.words,
    time: it.time,
    note: it.checkpoint.note.as_ref().map(Text::to_text),
    own: it.own,
    operation: it.operation,
});
