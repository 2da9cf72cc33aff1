//! The normalised view: the messages of all agents in one shape.

use std::{
    borrow::{Borrow, Cow},
    collections::BTreeMap,
};

use crate::model::Timestamp;

/// Who wrote a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Instructions, or words of the agent program.
    System,
    /// The user, or a text in the user's place.
    User,
    /// The model.
    Assistant,
    /// A tool that returns a result.
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
    /// Text.
    Text(String),
    /// The model's reasoning.
    Thinking(Thinking),
    /// A tool call.
    Call {
        /// The id that its result names.
        id: String,
        /// The tool.
        name: String,
        /// The arguments: JSON, exactly as in the record.
        input: String,
        /// The signature that the provider needs back with the call to recognise it.
        signature: Option<String>,
    },
    /// The result of a tool.
    Result {
        /// The call it answers.
        id: String,
        /// The tool, if the record names it.
        name: Option<String>,
        /// The content: texts, images and blocks of unknown kinds.
        blocks: Vec<Block>,
        /// Whether the tool failed.
        error: bool,
    },
    /// A picture.
    Image(Image),
    /// A block of an unknown kind.
    Other {
        /// Its kind, as named in the record.
        name: String,
        /// The whole block: JSON, exactly as in the record.
        json: String,
    },
}

/// The reasoning of a model before its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thinking {
    /// The readable part.
    pub text: String,
    /// The data that the provider needs back to recognise it: a signature, or the whole reasoning in encrypted form.
    pub signature: Option<String>,
    /// Whether nothing is readable, and the signature is everything.
    pub is_redacted: bool,
    /// In which form the provider wants it back.
    pub sent_as: SentAs,
}

/// In which form reasoning goes back to the provider that wrote it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SentAs {
    /// A thinking block of Anthropic's, with its signature.
    #[default]
    Block,
    /// The field `reasoning_content` of a chat completion.
    Content,
    /// The field `reasoning` of a chat completion.
    Plain,
    /// The field `reasoning_details` of a chat completion. The signature is the JSON array, unchanged.
    Details,
    /// An item of OpenAI's Responses API. The signature is its JSON, unchanged.
    Item,
}

impl SentAs {
    /// Every form.
    pub(crate) const ALL: [Self; 5] =
        [Self::Block, Self::Content, Self::Plain, Self::Details, Self::Item];

    /// Returns the word in a native record.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Content => "reasoning_content",
            Self::Plain => "reasoning",
            Self::Details => "reasoning_details",
            Self::Item => "item",
        }
    }

    /// Parses the word in a native record. Any other word is a block.
    pub(crate) fn of_word(word: &str) -> Self {
        Self::ALL.into_iter().find(|form| form.as_str() == word).unwrap_or_default()
    }
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The length of its block in the record, in bytes.
    pub bytes: usize,
    /// Its media type, such as `image/png`.
    pub media: Option<String>,
    /// Where its pixels are.
    pub source: Source,
}

/// Where the pixels of a picture are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// In the record, base64-encoded.
    Data(String),
    /// At a URL.
    Url(String),
    /// In a place that cannot be found from the record alone.
    Elsewhere,
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The answer was complete.
    End,
    /// The token limit was reached.
    Length,
    /// The model is waiting for the results of its calls.
    Calls,
    /// The provider paused the turn; it can be continued as it is.
    Paused,
    /// The model refused to answer.
    Refused,
    /// Someone aborted the answer.
    Aborted,
    /// An error occurred.
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

    /// Returns the stop reason of the Messages API, or the word used in every output if the API has none.
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

    /// Parses a stop reason of the Messages API, which most agents record and gateways pass through.
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

/// The token counts that the provider reported for one request.
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
    /// Returns the tokens of the request, including those read from or written to a cache.
    pub fn asked(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Returns the tokens of the request and the answer.
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
    /// The provider's id of the message, which may be split over several records.
    pub id: Option<String>,
    /// When it was written.
    pub time: Option<Timestamp>,
    /// The model that answered.
    pub model: Option<String>,
    /// The tokens that the model used.
    pub usage: Option<Usage>,
    /// Why the model stopped, if the record says so.
    pub stop: Option<Stop>,
    /// Whether it summarises the messages that a compaction removed from the context.
    pub is_summary: bool,
    /// What the program that appended it recorded about it, by key.
    pub meta: BTreeMap<String, String>,
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

    /// Returns the texts of a tool result, joined with line feeds; empty for other blocks.
    pub fn answer_text(&self) -> Cow<'_, str> {
        match self {
            Self::Result { blocks, .. } => texts(blocks),
            _ => Cow::Borrowed(""),
        }
    }
}

impl Image {
    /// The placeholder for a picture in one line of text.
    pub const WORDS: &str = "[image]";

    /// Returns a picture with this URL; a `data:` URL contains the picture itself.
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
    /// Returns a message without metadata.
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
            meta: BTreeMap::new(),
        }
    }

    /// Returns the texts of the message, joined with line feeds.
    pub fn text(&self) -> String {
        texts(&self.blocks).into_owned()
    }

    /// Returns the blocks; a tool result is followed by those of its blocks that are not texts.
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

/// Returns the first line that is not blank, trimmed.
pub fn first_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).find(|line| !line.is_empty())
}

/// Returns true if `program`, a path or a name, is a shell.
fn is_shell(program: &str) -> bool {
    const SHELLS: [&str; 9] =
        ["ash", "bash", "dash", "fish", "ksh", "powershell", "pwsh", "sh", "zsh"];
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    SHELLS.contains(&name.strip_suffix(".exe").unwrap_or(name))
}

/// Returns the command line of a call's arguments; for a shell with `-c`, returns the script.
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
