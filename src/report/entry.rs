//! Entries: their content and its hidden part.

use std::{borrow::Cow, collections::BTreeMap};

use serde::Serialize;
use serde_json::value::RawValue;

use super::shape::{named, report};
use crate::{
    model::{Block, Checkpoint, CheckpointNumber, EntryId, Kind, Message, Role, Timestamp, Usage},
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

report!(Damaged, "damaged");
report!(SubAgent, "sub_agent");
report!(Shown, "checkpoint");
named!(Kind, Role);

/// An entry of a conversation, as a report.
#[derive(Clone, Debug, Serialize)]
pub struct Entry<'a> {
    /// The entry, if its id can be read.
    pub entry: Option<EntryId>,
    /// The id in the agent's own record.
    pub uuid: Option<&'a str>,
    /// The kind of the record.
    pub kind: Kind,
    /// The role of the message; `null` if the entry is not a message.
    pub role: Option<Role>,
    /// The time of the record.
    pub time: Option<Timestamp>,
    /// The number of the checkpoint just before the entry.
    pub checkpoint: Option<CheckpointNumber>,
    /// The agent's own number for that checkpoint, such as `kimi:3`.
    pub own: Option<&'a str>,
    /// The checkpoints just after the entry.
    pub checkpoints: &'a [Checkpoint],
    /// The model that wrote the entry.
    pub model: Option<&'a str>,
    /// The token counts that the model's provider reported.
    pub usage: Option<Usage>,
    /// What `append --meta` recorded; the key is present only if there is something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<&'a BTreeMap<String, String>>,
    /// The parts of its messages.
    blocks: Vec<Part<'a>>,
}

impl<'a> From<&'a Line> for Entry<'a> {
    fn from(line: &'a Line) -> Self {
        let first = line.messages.first();
        let parts = line.messages.iter().flat_map(Message::parts);
        Self {
            entry: line.id,
            uuid: line.uuid.as_deref(),
            kind: line.kind,
            role: first.map(|message| message.role),
            time: line.time,
            checkpoint: line.checkpoint,
            own: line.own.as_deref(),
            checkpoints: &line.marks,
            model: first.and_then(|message| message.model.as_deref()),
            usage: first.and_then(|message| message.usage),
            meta: first.map(|message| &message.meta).filter(|meta| !meta.is_empty()),
            blocks: parts.map(|block| part(line, block)).collect(),
        }
    }
}

report!(Entry<'_>, "entry");

/// A part of a message.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "block", rename_all = "lowercase")]
enum Part<'a> {
    /// Text.
    Text {
        /// The text.
        text: &'a str,
    },
    /// The model's reasoning.
    Thinking {
        /// The text.
        text: &'a str,
    },
    /// A tool call.
    Call {
        /// The id of the call.
        id: &'a str,
        /// The tool.
        name: &'a str,
        /// The arguments of the call, as a string if they are not valid JSON.
        input: Input<'a>,
    },
    /// The result of a tool call.
    Result {
        /// The id of the call that it answers.
        id: &'a str,
        /// The text.
        text: Cow<'a, str>,
        /// Whether the tool failed.
        error: bool,
        /// How many characters undertext cut; the key is present only if undertext cut any.
        #[serde(skip_serializing_if = "Option::is_none")]
        hidden: Option<u64>,
    },
    /// An image.
    Image {
        /// The size of the image in bytes.
        bytes: usize,
    },
    /// Something else.
    Other {
        /// What it is, in the words of the agent's record.
        name: &'a str,
    },
}

/// The arguments of a call, exactly as in the record.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
enum Input<'a> {
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
    pub line: Entry<'a>,
    /// The text of the entry, or only the lines that `--lines` selects.
    pub text: &'a str,
    /// The number of the first line, from 1.
    pub from: usize,
    /// The total number of lines in the text.
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
#[derive(Clone, Debug, Serialize)]
pub struct Uncovered<'a> {
    /// The entry.
    pub entry: EntryId,
    /// The entry that contains the whole text.
    pub origin: EntryId,
    /// The tool call that the text answers.
    pub call: &'a str,
    /// The index of the text in the answer, from 0.
    pub part: usize,
    /// How many characters are shown.
    pub shown: usize,
    /// How many characters are hidden.
    pub hidden: usize,
    /// The hidden part of the text, or only the lines that `--lines` selects.
    pub text: &'a str,
}

impl<'a> Uncovered<'a> {
    /// Returns the report on a part of a hidden text.
    pub fn new(hidden: &Hidden, part: &'a HiddenText, text: &'a str) -> Self {
        Self {
            entry: hidden.entry,
            origin: hidden.origin,
            call: &part.call,
            part: part.text,
            shown: part.shown().chars().count(),
            hidden: part.hidden().chars().count(),
            text,
        }
    }
}

report!(Uncovered<'_>, "hidden");
