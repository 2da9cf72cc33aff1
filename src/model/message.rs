//! The normalised view: the messages of any agent's records, in one shape.

use std::borrow::{Borrow, Cow};

use crate::model::Timestamp;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Instructions, or words of the program itself.
    System,
    /// The person, or a text that is put in the person's place.
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
    /// The model's reasoning.
    Thinking(Thinking),
    /// A tool call.
    Call {
        /// The id that its result names.
        id: String,
        /// The tool.
        name: String,
        /// The arguments: JSON as it is in the record.
        input: String,
        /// The text that the provider must get back with the call to take it as its own.
        signature: Option<String>,
    },
    /// The answer of a tool.
    Result {
        /// The call it answers.
        id: String,
        /// The tool, where the record says it.
        name: Option<String>,
        /// The answer: texts, images and blocks unknown here.
        blocks: Vec<Block>,
        /// Whether the tool failed.
        error: bool,
    },
    /// A picture.
    Image(Image),
    /// A block of a kind unknown here.
    Other {
        /// Its kind, by its own word.
        name: String,
        /// All of it: JSON as it is in the record.
        json: String,
    },
}

/// The thoughts of a model before it spoke.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thinking {
    /// The readable part of them.
    pub text: String,
    /// The text that the provider must get back to take them as its own: a signature, or all, for it alone to read.
    pub signature: Option<String>,
    /// Whether they are unreadable, and the signature is all.
    pub is_redacted: bool,
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// How many bytes its block has in the record.
    pub bytes: usize,
    /// Its media type, such as `image/png`.
    pub media: Option<String>,
    /// Where its pixels are.
    pub source: Source,
}

/// Where the pixels of a picture are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// In the record, in base64.
    Data(String),
    /// At an address.
    Url(String),
    /// At a place to which the record alone does not lead.
    Elsewhere,
}

/// How an answer of a model ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It was said to the end.
    End,
    /// The room for it ran out.
    Length,
    /// It waits for the results of its calls.
    Calls,
    /// It is to be continued as it is.
    Paused,
    /// The model would not answer.
    Refused,
    /// Someone broke it off.
    Aborted,
    /// Something failed.
    Error,
}

impl Stop {
    /// Returns the word used in every output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::End => "end",
            Self::Length => "length",
            Self::Calls => "calls",
            Self::Paused => "paused",
            Self::Refused => "refused",
            Self::Aborted => "aborted",
            Self::Error => "error",
        }
    }

    /// Returns the word of that interface; what it has no word for is said by the word used in every output.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::End => "end_turn",
            Self::Length => "max_tokens",
            Self::Calls => "tool_use",
            Self::Paused => "pause_turn",
            Self::Refused => "refusal",
            Self::Aborted | Self::Error => self.as_str(),
        }
    }

    /// Reads the word of the interface that most agents keep, and that gateways hand on as it is.
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        Some(match word {
            "end_turn" | "stop_sequence" => Self::End,
            "max_tokens" | "model_context_window_exceeded" => Self::Length,
            "tool_use" => Self::Calls,
            "pause_turn" => Self::Paused,
            "refusal" => Self::Refused,
            _ => return None,
        })
    }
}

/// The tokens that a model says it used for one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
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

impl Usage {
    /// Returns how many tokens the request had: those read from a cache and written to it belong to it too.
    pub fn asked(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Returns how many tokens the request and its answer had.
    pub fn total(&self) -> u64 {
        self.asked().saturating_add(self.output)
    }

    /// Adds the tokens of another request.
    pub fn add(&mut self, other: &Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
    }
}

/// A record as a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The blocks that make it up.
    pub blocks: Vec<Block>,
    /// The provider's id of a message that is split over several records.
    pub id: Option<String>,
    /// When it was said.
    pub time: Option<Timestamp>,
    /// Which model answered.
    pub model: Option<String>,
    /// The tokens that the model used.
    pub usage: Option<Usage>,
    /// How the answer ended, where the record says it.
    pub stop: Option<Stop>,
    /// Whether it represents the messages that a compaction left out.
    pub is_summary: bool,
}

impl Block {
    /// Returns a tool's answer of one text.
    pub fn answer(id: String, text: String) -> Self {
        Self::Result { id, name: None, blocks: vec![Self::Text(text)], error: false }
    }

    /// Returns the same of a tool that failed.
    pub fn failure(id: String, text: String) -> Self {
        Self::Result { id, name: None, blocks: vec![Self::Text(text)], error: true }
    }

    /// Returns the words of a tool's answer: its texts, joined by line ends; any other block has none.
    pub fn answer_text(&self) -> Cow<'_, str> {
        match self {
            Self::Result { blocks, .. } => texts(blocks),
            _ => Cow::Borrowed(""),
        }
    }
}

impl Image {
    /// The words that stand for a picture in one line.
    pub const WORDS: &str = "[image]";

    /// Returns a picture at an address, which may hold the picture itself.
    pub fn at(url: &str, bytes: usize) -> Self {
        let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
        let (media, source) = match inline {
            Some((media, data)) => (Some(media.to_owned()), Source::Data(data.to_owned())),
            None => (None, Source::Url(url.to_owned())),
        };
        Self { bytes, media, source }
    }
}

impl Message {
    /// Returns a message that says nothing about itself.
    pub fn new(role: Role, blocks: Vec<Block>) -> Self {
        Self {
            role,
            blocks,
            id: None,
            time: None,
            model: None,
            usage: None,
            stop: None,
            is_summary: false,
        }
    }

    /// Returns the words of the message: its texts, joined by line ends.
    pub fn text(&self) -> String {
        texts(&self.blocks).into_owned()
    }

    /// Returns the blocks; blocks in a tool's answer that are no texts follow the answer.
    pub fn parts(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().flat_map(|block| {
            let within = match block {
                Block::Result { blocks, .. } => blocks.as_slice(),
                _ => &[],
            };
            let rest = within.iter().filter(|block| !matches!(block, Block::Text(_)));
            std::iter::once(block).chain(rest)
        })
    }
}

fn texts<'a>(blocks: &'a [Block]) -> Cow<'a, str> {
    let text = |block: &'a Block| match block {
        Block::Text(text) => Some(text.as_str()),
        _ => None,
    };
    if let [block] = blocks {
        return Cow::Borrowed(text(block).unwrap_or_default());
    }
    Cow::Owned(blocks.iter().filter_map(text).collect::<Vec<_>>().join("\n"))
}

/// Returns the first line of a text that says something, without the white space around it.
pub fn first_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).find(|line| !line.is_empty())
}

/// Returns whether a program, by its path, is a shell.
fn is_shell(program: &str) -> bool {
    const SHELLS: [&str; 9] =
        ["ash", "bash", "dash", "fish", "ksh", "powershell", "pwsh", "sh", "zsh"];
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    SHELLS.contains(&name.strip_suffix(".exe").unwrap_or(name))
}

/// Returns the command line that a call gives in words; of one that is given to a shell, what the shell runs.
pub fn shell_line<W: Borrow<str>>(words: &[W]) -> Option<String> {
    match words {
        [] => None,
        [program, flag, line]
            if is_shell(program.borrow())
                && flag.borrow().starts_with('-')
                && flag.borrow().ends_with('c') =>
        {
            Some(line.borrow().to_owned())
        }
        words => Some(words.join(" ")),
    }
}
