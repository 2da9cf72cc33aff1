//! The normalised view: what any agent's record says, in one shape.

use crate::model::Timestamp;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Instructions, or words of the program itself.
    System,
    /// The person, or what is put in the person's place.
    User,
    /// The model.
    Assistant,
    /// A tool that answers a call.
    Tool,
}

impl Role {
    /// Returns the word used in every output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// One part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// Words.
    Text(String),
    /// The model's reasoning, as far as it is readable.
    Thinking(String),
    /// A tool call; the input is JSON as it stands in the record.
    Call {
        /// The id that its result names.
        id: String,
        /// The tool.
        name: String,
        /// The arguments.
        input: String,
    },
    /// What a tool answered.
    Result {
        /// The call it answers.
        id: String,
        /// Its text, blocks joined by line ends.
        text: String,
        /// Whether the tool failed.
        error: bool,
    },
    /// A picture, of so many bytes in the record.
    Image(usize),
    /// A block of a kind unknown here, by its name.
    Other(String),
}

/// What a model says that it used for one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the request that were neither read from nor written to a cache.
    pub input: u64,
    /// Tokens of the answer.
    pub output: u64,
    /// Tokens read from a cache.
    pub cache_read: u64,
    /// Tokens written to a cache.
    pub cache_write: u64,
}

/// A record as a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub blocks: Vec<Block>,
    /// The provider's id of a message that is split over several records.
    pub id: Option<String>,
    /// When.
    pub time: Option<Timestamp>,
    /// Which model answered.
    pub model: Option<String>,
    /// What it used.
    pub usage: Option<Usage>,
}

impl Message {
    /// Returns the words of the message: its texts, joined by line ends.
    pub fn text(&self) -> String {
        let texts = self.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}
