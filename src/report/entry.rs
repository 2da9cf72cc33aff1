//! Entries: the content of one, and the hidden part of it.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use super::shape::report;
use crate::{
    model::{Block, Checkpoint, CheckpointNumber, EntryId, Message, Text},
    session::{Damaged, Line, Shown, SubAgent},
};

/// The texts that an entry hides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// The entry.
    pub entry: EntryId,
    /// The first of its origins.
    pub origin: EntryId,
    /// The texts, in order.
    pub texts: Vec<HiddenText>,
}

/// A text of which an entry shows only the beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiddenText {
    /// The call that it answers.
    pub call: String,
    /// Which text of the answer, from 0.
    pub text: usize,
    /// All of it.
    pub whole: String,
    /// How many of its bytes are shown.
    pub seam: usize,
    /// What the entry shows behind them.
    pub suffix: String,
}

impl HiddenText {
    /// Returns the hidden part.
    pub fn hidden(&self) -> &str {
        self.whole.get(self.seam..).unwrap_or_default()
    }

    /// Returns the shown part.
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

/// Returns checkpoints as an entry has them.
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

/// The arguments of a call, exactly as they came.
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
        // A kind of its own, although the model reads it as its thinking.
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

/// An entry with lines of its text.
#[derive(Clone, Debug, Serialize)]
pub struct Excerpt<'a> {
    /// The entry.
    #[serde(flatten)]
    pub line: &'a Line,
    /// The lines.
    pub text: &'a str,
    /// The number of the first one, from 1.
    pub from: usize,
    /// How many there are in all.
    pub lines: usize,
}

report!(Excerpt<'_>, "entry");

/// A line of a text.
#[derive(Clone, Debug, Serialize)]
pub struct TextLine<'a> {
    /// Its number, from 1.
    pub line: usize,
    /// All of it.
    pub text: &'a str,
}

report!(TextLine<'_>, "line");

/// A text of an entry, and the requested part of its hidden text.
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
