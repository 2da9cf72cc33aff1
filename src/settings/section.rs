//! Sections: all settings.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::exclude::Exclude;

/// The file that explains every key.
pub const EXAMPLE: &str = include_str!("../../examples/config.toml");

/// The settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Settings {
    /// When the bare program suggests the next step.
    pub hints: Hints,
    /// The window guard.
    pub window: Window,
    /// The user's settings per model.
    pub models: BTreeMap<String, Model>,
    /// The user's prices of models.
    pub prices: BTreeMap<String, Price>,
    /// How much of the history is sent.
    pub limits: Limits,
    /// The user's settings per channel.
    pub channels: BTreeMap<String, Channel>,
    /// How a context is compacted.
    pub compaction: Compaction,
    /// Models that can be used.
    pub provider: BTreeMap<String, Provider>,
    /// How a turn is run.
    pub turn: Turn,
    /// Automatic imports.
    pub import: Import,
    /// The sessions that are excluded from the store.
    pub exclude: Exclude,
    /// What is not a secret although it looks like one.
    pub secrets: Secrets,
    /// What is masked in documents in addition to secrets.
    pub mask: Mask,
    /// How `serve` keeps pages.
    pub serve: Serve,
    /// How `browse` draws.
    pub browse: Browse,
    /// The keys of `browse` that replace the usual ones, by the name of what they do.
    pub keys: BTreeMap<String, Vec<String>>,
}

/// When the bare program suggests the next step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hints {
    /// Until the user has used a few different commands.
    #[default]
    First,
    /// Always.
    Always,
}

/// The window guard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Window {
    /// The window of an unknown model.
    pub default: Option<u64>,
    /// A smaller window is an error.
    pub block: Option<u64>,
    /// A smaller window causes a warning.
    pub warn: Option<u64>,
    /// The maximum window that any agent uses.
    pub cap: Option<u64>,
}

/// The user's settings for a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Model {
    /// Its context window in tokens.
    pub window: Option<u64>,
}

/// What a model costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Price {
    /// Tokens of a request.
    pub input: Rate,
    /// Tokens of an answer.
    pub output: Rate,
    /// Tokens read from a cache; by default as `input`.
    pub cache_read: Option<Rate>,
    /// Tokens written to a cache; by default as `input`.
    pub cache_write: Option<Rate>,
}

/// A price in millionths of a dollar per million tokens. It is written in dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "f64")]
pub struct Rate(pub u64);

impl TryFrom<f64> for Rate {
    type Error = &'static str;

    fn try_from(dollars: f64) -> Result<Self, Self::Error> {
        let digits = format!("{dollars:.6}").replace('.', "");
        digits.parse().map(Self).map_err(|_| "a price is a number of dollars, 0 or more")
    }
}

/// How much of the history is sent; 0 means all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// The maximum number of turns.
    pub turns: usize,
    /// The maximum number of messages.
    pub messages: usize,
    /// The maximum number of tokens.
    pub tokens: u64,
}

/// How many turns are sent on a channel; 0 means all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Channel {
    /// In a conversation with one person.
    pub direct: usize,
    /// In a group.
    pub group: usize,
    /// In a conversation with these people.
    pub users: BTreeMap<String, usize>,
}

/// How a context is compacted; missing keys have defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Compaction {
    /// The provider that writes summaries, or `extract`.
    pub summarizer: Option<String>,
    /// How much is kept unchanged: a number of messages, a share, or tokens.
    pub keep: Option<String>,
    /// The subject that summaries should focus on.
    pub focus: Option<String>,
    /// The percentage of the window at which a compaction is due.
    pub percent: Option<u64>,
    /// The number of tokens at which a compaction is due, if that is less.
    pub at: Option<u64>,
    /// How many tokens of the window are reserved for an answer.
    pub reserve: Option<u64>,
    /// Whether a session that undertext created is compacted as soon as an append makes it due.
    pub auto: bool,
    /// A folder with skills. Their names and descriptions are told to the summariser.
    pub skills: Option<String>,
    /// The timeout in seconds.
    pub timeout: Option<u64>,
    /// Whether a failing model is an error; otherwise an extract is used.
    pub strict: bool,
    /// Whether the summariser may see files outside the user's working folder.
    pub outside: bool,
    /// A command to run before.
    pub before: Option<String>,
    /// A command to run after.
    pub after: Option<String>,
    /// The timeout of these commands in seconds.
    pub hook_timeout: Option<u64>,
}

/// A model that can be used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Provider {
    /// Its interface.
    pub kind: ProviderKind,
    /// Its URL.
    pub url: Option<String>,
    /// The model's name there.
    pub model: Option<String>,
    /// The environment variable that contains the API key.
    pub key_env: Option<String>,
    /// Whether the key may be sent to another computer over plain HTTP.
    pub insecure: bool,
    /// The command that answers.
    pub command: Option<String>,
    /// Its context window in tokens.
    pub window: Option<u64>,
    /// The maximum number of tokens of an answer.
    pub max_tokens: Option<u64>,
    /// The longest silence of a server in seconds, or the timeout of a command.
    pub timeout: Option<u64>,
    /// The number of retries.
    pub retries: Option<u32>,
    /// Whether answers are streamed; the default is yes.
    pub stream: Option<bool>,
    /// How random answers are.
    pub temperature: Option<serde_json::Number>,
    /// How much the model thinks.
    pub effort: Option<String>,
    /// More headers of requests; a value that begins with `$` names an environment variable.
    pub headers: BTreeMap<String, String>,
    /// Whether requests mark what the provider can cache; the default is yes.
    pub cache: Option<bool>,
    /// The name of the field for the answer limit in a request.
    pub max_tokens_as: Option<String>,
}

/// The interface of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// OpenAI's chat completions.
    #[default]
    Openai,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Anthropic,
    /// A command.
    Command,
}

/// How a turn is run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Turn {
    /// The provider that answers.
    pub provider: Option<String>,
    /// A command that executes tool calls.
    pub tools: Option<String>,
    /// Its timeout per call in seconds.
    pub tools_timeout: Option<u64>,
    /// The maximum number of requests per turn.
    pub steps: Option<usize>,
    /// A system prompt that is sent before the session's own.
    pub system: Option<String>,
    /// The maximum number of characters of a tool's result.
    pub max_result: Option<usize>,
}

/// Automatic imports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Import {
    /// Whether commands that list or name sessions first import new ones.
    pub auto: Option<bool>,
}

/// What is not a secret although it looks like one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Secrets {
    /// The names of rules that are disabled.
    pub allow_rules: Vec<String>,
    /// Regular expressions; a value that matches one completely is allowed.
    pub allow_values: Vec<String>,
    /// Entries in which nothing is found, by prefixes of their ids.
    pub allow_entries: Vec<String>,
}

/// How `serve` keeps pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Serve {
    /// Maximum size of the cached pages in MB.
    pub cache: u64,
    /// How many minutes a page is cached.
    pub minutes: u64,
}

/// How `browse` draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Browse {
    /// Which signs are drawn.
    pub glyphs: Glyphs,
}

/// Which signs are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Glyphs {
    /// Those of Unicode.
    #[default]
    Unicode,
    /// Only ASCII, for terminals where ○ takes two columns.
    Ascii,
}

impl Default for Serve {
    fn default() -> Self {
        Self { cache: 64, minutes: 5 }
    }
}

/// What is masked in documents in addition to secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Mask {
    /// Whether to mask user names in paths of home folders.
    pub homes: bool,
    /// Whether to mask e-mail addresses.
    pub emails: bool,
}
