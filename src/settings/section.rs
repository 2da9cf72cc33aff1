//! Sections: every setting there is.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::exclude::Exclude;

/// Every key there is, explained.
pub const EXAMPLE: &str = include_str!("../../examples/config.toml");

/// The settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Settings {
    /// When the bare program says what to do next.
    pub hints: Hints,
    /// The window guard.
    pub window: Window,
    /// The user's words about models.
    pub models: BTreeMap<String, Model>,
    /// How much of the history is sent.
    pub limits: Limits,
    /// The user's words about channels.
    pub channels: BTreeMap<String, Channel>,
    /// How a context is compacted.
    pub compaction: Compaction,
    /// Models that can be asked.
    pub provider: BTreeMap<String, Provider>,
    /// How a turn is run.
    pub turn: Turn,
    /// What is imported without being asked for.
    pub import: Import,
    /// Which sessions are left out of the store.
    pub exclude: Exclude,
    /// What is no secret although it looks like one.
    pub secrets: Secrets,
    /// What is masked in documents, next to secrets.
    pub mask: Mask,
}

/// When the bare program says what to do next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hints {
    /// Until a few different commands were used.
    #[default]
    First,
    /// Each time.
    Always,
}

/// The window guard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Window {
    /// The window of an unknown model.
    pub default: Option<u64>,
    /// A smaller window is refused.
    pub block: Option<u64>,
    /// A smaller window is warned of.
    pub warn: Option<u64>,
    /// No agent uses more.
    pub cap: Option<u64>,
}

/// The user's words about a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Model {
    /// How many tokens it takes.
    pub window: Option<u64>,
}

/// How much of the history is sent; 0 is all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// The most turns.
    pub turns: usize,
    /// The most messages.
    pub messages: usize,
    /// The most tokens.
    pub tokens: u64,
}

/// How many turns are sent on a channel; 0 is all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Channel {
    /// To one person.
    pub direct: usize,
    /// To several.
    pub group: usize,
    /// To these persons.
    pub users: BTreeMap<String, usize>,
}

/// How a context is compacted; a key that is left out has its default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Compaction {
    /// Which provider writes summaries, or `extract`.
    pub summarizer: Option<String>,
    /// How much is kept: a number of messages, or a share.
    pub keep: Option<String>,
    /// The subject on which summaries are to dwell.
    pub focus: Option<String>,
    /// At how many per cent of the window it is due.
    pub percent: Option<u64>,
    /// How much of the window is reserved for an answer.
    pub reserve: Option<u64>,
    /// How many seconds it may take.
    pub timeout: Option<u64>,
    /// Whether a failing model is an error.
    pub strict: bool,
    /// Whether a summariser is shown files outside of the folder in which the user works.
    pub outside: bool,
    /// A command that is run before.
    pub before: Option<String>,
    /// A command that is run after.
    pub after: Option<String>,
    /// How many seconds each of these may take.
    pub hook_timeout: Option<u64>,
}

/// A model that can be asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Provider {
    /// How it is asked.
    pub kind: ProviderKind,
    /// Where it is.
    pub url: Option<String>,
    /// Its name there.
    pub model: Option<String>,
    /// The variable of the environment that holds the key.
    pub key_env: Option<String>,
    /// Whether the key may be sent to another computer by plain HTTP.
    pub insecure: bool,
    /// The command that answers.
    pub command: Option<String>,
    /// How many tokens it takes.
    pub window: Option<u64>,
    /// How many tokens an answer may have.
    pub max_tokens: Option<u64>,
    /// How many seconds a request may take.
    pub timeout: Option<u64>,
    /// How often a request is made again.
    pub retries: Option<u32>,
    /// Whether it is asked to stream.
    pub stream: bool,
    /// Whether it is told what it can cache; left out, it is.
    pub cache: Option<bool>,
    /// The name of the limit of an answer in a request.
    pub max_tokens_as: Option<String>,
}

/// How a model is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// As OpenAI's chat completions are.
    #[default]
    Openai,
    /// As Anthropic's messages are.
    Anthropic,
    /// As a command.
    Command,
}

/// How a turn is run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Turn {
    /// Which provider answers.
    pub provider: Option<String>,
    /// A command that answers calls.
    pub tools: Option<String>,
    /// How many seconds it may take for one.
    pub tools_timeout: Option<u64>,
    /// How often the model is asked in one turn.
    pub steps: Option<usize>,
}

/// What is imported without being asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Import {
    /// Whether commands that list or name sessions first import new ones.
    pub auto: Option<bool>,
}

/// What is no secret although it looks like one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Secrets {
    /// Rules that find nothing, by their names.
    pub allow_rules: Vec<String>,
    /// Regular expressions: what fits one as a whole.
    pub allow_values: Vec<String>,
    /// Entries in which nothing is found, by the beginnings of their ids.
    pub allow_entries: Vec<String>,
}

/// What is masked in documents, next to secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Mask {
    /// Whether the names of persons are, in the paths of their folders.
    pub homes: bool,
    /// Whether e-mail addresses are.
    pub emails: bool,
}
