//! The window guard: the size of a model's window in tokens, where that figure comes from, and whether it is large enough.
//!
//! Invariant: nothing here needs a message, so it runs before any expensive step.

use std::{collections::BTreeMap, iter};

/// Windows smaller than this are of no use to an agent.
pub const LEAST: u64 = 16_000;
/// Windows smaller than this are tight. Also the window of an unknown model.
pub const TIGHT: u64 = 32_000;

/// The user's settings for windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Windows {
    /// The windows of models, by name or prefix of a name.
    pub models: BTreeMap<String, u64>,
    /// No agent may use more than this.
    pub cap: Option<u64>,
    /// The window of an unknown model.
    pub default: u64,
    /// Below this, nothing is sent.
    pub block: u64,
    /// Below this, a warning is given.
    pub warn: u64,
}

impl Default for Windows {
    fn default() -> Self {
        Self { models: BTreeMap::new(), cap: None, default: TIGHT, block: LEAST, warn: TIGHT }
    }
}

/// The largest plausible window. No model has a larger one, so a larger figure means nothing.
const MOST: u64 = 20_000_000;

/// Returns true if a window that a file or model reports is plausible.
pub fn is_believable(tokens: u64) -> bool {
    (1..=MOST).contains(&tokens)
}

/// Returns a number of tokens as text.
pub(crate) fn tokens(n: u64) -> String {
    format!("{n} token{}", if n == 1 { "" } else { "s" })
}

/// Returns the message that a window is too small.
pub(crate) fn too_small(window: u64, by: Source, least: u64) -> String {
    format!("a window of {}{} is too small: the minimum is {least}", tokens(window), by.giver())
}

/// Where the size of a window comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// It was asked for, with an option.
    Asked,
    /// It is in your settings, for this model.
    Models,
    /// It is in the session's file.
    File,
    /// It is known for the model's name.
    Model,
    /// The model answered a larger request than any other source allows. The window is then the largest that the model can be
    /// booked with, or the other source's figure doubled until the request leaves room.
    Answered,
    /// It is the cap in your settings, which is smaller than the model's window.
    Cap,
    /// It is the default.
    Default,
}

impl Source {
    /// Returns true if an answer to a larger request overrides it.
    pub fn yields(self) -> bool {
        matches!(self, Self::File | Self::Model | Self::Default)
    }

    /// Returns true if it comes from the session or its model, not from the user.
    pub fn is_found(self) -> bool {
        matches!(self, Self::File | Self::Model | Self::Answered)
    }

    /// Returns who set it, as text to append to the window; empty if the caller asked for it.
    pub fn giver(self) -> &'static str {
        match self {
            Self::Asked => "",
            Self::Models => ", set for the model in your settings,",
            Self::File => ", set in the session's file,",
            Self::Model => ", known for this model,",
            Self::Answered => ", inferred from requests that the model answered,",
            Self::Cap => ", limited by window.cap in your settings,",
            Self::Default => ", set by window.default in your settings,",
        }
    }

    /// Returns it as text for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::File => "the session's file",
            Self::Answered => "an answer to a request larger than the usual window",
            Self::Asked => "asked",
            Self::Models => "models",
            Self::Model => "model",
            Self::Cap => "cap",
            Self::Default => "default",
        }
    }
}

/// Whether a window is large enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The window is large enough.
    Fine,
    /// The window is tight.
    Warned,
    /// The window is too small, and nothing is sent.
    Blocked,
}

/// A window and the guard's verdict.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Window {
    /// The size of the model's context window in tokens.
    #[serde(rename = "window")]
    pub tokens: u64,
    /// How undertext knows the size of the window.
    pub source: Source,
    /// Whether the window is large enough.
    pub verdict: Verdict,
    /// The minimum.
    #[serde(skip)]
    pub least: u64,
}

/// What a session says about its model's window.
#[derive(Clone, Copy, Debug, Default)]
pub struct Evidence<'a> {
    /// The size in its file.
    pub file: Option<u64>,
    /// The model.
    pub model: Option<&'a str>,
    /// The size of the largest request that the model answered.
    pub answered: Option<u64>,
}

impl Windows {
    /// Returns the window of a model: `asked`, or the size in the user's table, in the session's file or in the built-in table,
    /// or the default. The last three are raised to have room for what the model answered. A smaller cap then applies, except to
    /// `asked`. A size of zero is ignored.
    pub fn resolve(&self, asked: Option<u64>, evidence: Evidence<'_>) -> Window {
        let is_size = |tokens: &u64| *tokens > 0;
        let named = || self.models.iter().map(|(name, tokens)| (name.as_str(), *tokens));
        let table = || evidence.model.and_then(|model| longest(named(), model)).filter(is_size);
        let known = evidence.model.and_then(known);
        let (mut tokens, mut source) = if let Some(tokens) = asked.filter(is_size) {
            (tokens, Source::Asked)
        } else if let Some(tokens) = table() {
            (tokens, Source::Models)
        } else {
            let file = evidence.file.filter(|tokens| is_believable(*tokens));
            let (tokens, source) = match (file, known) {
                (Some(tokens), _) => (tokens, Source::File),
                (None, Some(known)) => (known.usual, Source::Model),
                (None, None) => (self.default, Source::Default),
            };
            match evidence.answered.filter(|answered| *answered > tokens) {
                Some(answered) => {
                    let most = known.map(|known| known.most).filter(|most| *most >= answered);
                    (most.unwrap_or_else(|| doubled(tokens, answered)), Source::Answered)
                }
                None => (tokens, source),
            }
        };
        // A caller who asks for a window means exactly that one.
        if let Some(cap) = self.cap.filter(is_size)
            && cap < tokens
            && source != Source::Asked
        {
            (tokens, source) = (cap, Source::Cap);
        }
        let verdict = match tokens {
            _ if tokens < self.block => Verdict::Blocked,
            _ if tokens < self.warn => Verdict::Warned,
            _ => Verdict::Fine,
        };
        let least = if verdict == Verdict::Blocked { self.block } else { self.warn };
        Window { tokens, source, verdict, least }
    }
}

/// Returns a window of unknown size that is larger than this one and has room for an answered request: makers mostly
/// double their windows, and a window that the request fills would be compacted again and again.
fn doubled(window: u64, answered: u64) -> u64 {
    let holds = |window: &u64| answered < window / 5 * 4;
    iter::successors(Some(window), |window| window.checked_mul(2)).find(holds).unwrap_or(u64::MAX)
}

/// The window of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    /// Its size if nothing else is booked.
    usual: u64,
    /// The largest size that can be booked.
    most: u64,
}

/// The suffix of a model's name with which Claude Code books a million tokens.
const MILLION: &str = "[1m]";

/// Prefixes of names, in lowercase, with the usual and the largest window.
///
/// As of November 2026, from the lists in agents: Claude Code 2.1.329 (its usual window, and the largest that
/// it can ask for), Codex 0.169.0 (`context_window`, `max_context_window`), and pi-ai 0.58.4 (the makers' own windows). If
/// two lists differ, the agent's own applies to its models. `[models.NAME]` with `window` in the settings extends it.
const MODELS: [(&str, u64, u64); 62] = [
    ("chatgpt-4o", 128_000, 128_000),
    ("claude-", 200_000, 1_000_000),
    ("claude-3", 200_000, 200_000),
    ("claude-fable", 1_000_000, 1_000_000),
    ("claude-haiku-4", 200_000, 200_000),
    ("claude-haiku-5", 1_000_000, 1_000_000),
    ("claude-mythos", 1_000_000, 1_000_000),
    ("claude-opus-4", 200_000, 200_000),
    ("claude-opus-4-6", 200_000, 1_000_000),
    ("claude-opus-4-7", 1_000_000, 1_000_000),
    ("claude-opus-4-8", 1_000_000, 1_000_000),
    ("claude-opus-5", 1_000_000, 1_000_000),
    ("claude-sonnet-4", 200_000, 1_000_000),
    ("claude-sonnet-5", 1_000_000, 1_000_000),
    ("codestral", 256_000, 256_000),
    ("codex-auto-review", 272_000, 872_000),
    ("codex-mini", 200_000, 200_000),
    ("deepseek", 128_000, 163_840),
    ("devstral", 128_000, 262_144),
    ("gemini-", 1_048_576, 1_048_576),
    ("gemini-1.5-pro", 2_097_152, 2_097_152),
    ("glm-4", 128_000, 131_072),
    ("glm-4.5v", 64_000, 64_000),
    ("glm-4.6", 204_800, 204_800),
    ("glm-4.6v", 128_000, 128_000),
    ("glm-4.7", 204_800, 204_800),
    ("glm-5", 204_800, 204_800),
    ("gpt-3.5", 16_385, 16_385),
    ("gpt-4", 8_192, 8_192),
    ("gpt-4-turbo", 128_000, 128_000),
    ("gpt-4.1", 1_047_576, 1_047_576),
    ("gpt-4.5", 128_000, 128_000),
    ("gpt-4o", 128_000, 128_000),
    ("gpt-5", 400_000, 400_000),
    ("gpt-5-chat", 128_000, 128_000),
    ("gpt-5.3-codex-spark", 128_000, 128_000),
    ("gpt-5.4", 272_000, 1_050_000),
    ("gpt-5.5", 272_000, 272_000),
    ("gpt-5.6", 272_000, 872_000),
    ("gpt-6", 272_000, 872_000),
    ("gpt-6.1-terra", 500_000, 872_000),
    ("gpt-daybreak", 272_000, 872_000),
    ("gpt-oss", 131_072, 131_072),
    ("grok-2", 131_072, 131_072),
    ("grok-3", 131_072, 131_072),
    ("grok-4", 256_000, 256_000),
    ("grok-4-1-fast", 2_000_000, 2_000_000),
    ("grok-4-fast", 2_000_000, 2_000_000),
    ("grok-4.20", 2_000_000, 2_000_000),
    ("grok-code", 256_000, 256_000),
    ("k2p5", 262_144, 262_144),
    ("kimi-for-coding", 262_144, 262_144),
    ("kimi-k2", 262_144, 262_144),
    ("llama-4", 131_072, 1_000_000),
    ("minimax-m2", 196_608, 204_800),
    ("mistral-large", 262_144, 262_144),
    ("mistral-medium", 128_000, 262_144),
    ("o1", 200_000, 200_000),
    ("o3", 200_000, 200_000),
    ("o4-mini", 200_000, 200_000),
    ("qwen3", 131_072, 262_144),
    ("qwen3-coder", 262_144, 1_000_000),
];

/// Returns the window of a model, if known.
fn known(model: &str) -> Option<Known> {
    let model = model.to_ascii_lowercase();
    if model.ends_with(MILLION) {
        return Some(Known { usual: 1_000_000, most: 1_000_000 });
    }
    let named = MODELS.iter().map(|&(name, usual, most)| (name, Known { usual, most }));
    longest(named, &model)
}

/// Returns the value for the longest prefix of a model's name, with or without the maker's name before it.
fn longest<'n, T>(names: impl Iterator<Item = (&'n str, T)>, model: &str) -> Option<T> {
    let bare = model.rsplit('/').next().unwrap_or(model);
    // Clouds put the maker's name before a full stop.
    let plain = bare.split_once("anthropic.").map_or(bare, |(_, plain)| plain);
    let begins = |name: &str| [model, bare, plain].iter().any(|model| model.starts_with(name));
    let found = names.filter(|(name, _)| begins(name));
    found.max_by_key(|(name, _)| name.len()).map(|(_, found)| found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_on_a_window_counts_and_the_cap_only_makes_it_smaller() {
        let windows = Windows {
            models: [("m".to_owned(), 64_000), ("m-large".to_owned(), 500_000)].into(),
            cap: Some(150_000),
            ..Windows::default()
        };
        let check = |asked, model, tokens, source| {
            let found = windows.resolve(asked, Evidence { model, ..Evidence::default() });
            assert_eq!((found.tokens, found.source), (tokens, source), "{asked:?} {model:?}");
        };
        check(Some(40_000), Some("m"), 40_000, Source::Asked);
        check(Some(900_000), Some("m"), 900_000, Source::Asked);
        check(Some(0), Some("m-small"), 64_000, Source::Models);
        check(None, Some("maker/m-small"), 64_000, Source::Models);
        check(None, Some("m-large-2"), 150_000, Source::Cap);
        check(None, Some("gpt-4o"), 128_000, Source::Model);
        check(None, Some("claude-opus-4-5"), 150_000, Source::Cap);
        check(None, Some("unheard-of"), 32_000, Source::Default);
        check(None, None, 32_000, Source::Default);
        let check = |asked, file, model, tokens, source| {
            let file = Some(file);
            let found = windows.resolve(asked, Evidence { file, model, ..Evidence::default() });
            assert_eq!(
                (found.tokens, found.source),
                (tokens, source),
                "{asked:?} {file:?} {model:?}"
            );
        };
        check(Some(40_000), 100_000, None, 40_000, Source::Asked);
        check(None, 100_000, Some("m"), 64_000, Source::Models);
        check(None, 100_000, Some("gpt-4o"), 100_000, Source::File);
        check(None, 258_400, None, 150_000, Source::Cap);
        check(None, 0, Some("gpt-4o"), 128_000, Source::Model);
    }

    #[test]
    fn a_model_has_the_window_of_the_longest_name_with_which_its_own_begins() {
        let check = |model, usual, most| {
            assert_eq!(known(model), Some(Known { usual, most }), "{model}");
        };
        check("claude-opus-4-5-20251101", 200_000, 200_000);
        check("claude-opus-5", 1_000_000, 1_000_000);
        check("claude-sonnet-4-5-20250929", 200_000, 1_000_000);
        check("claude-sonnet-4-5-20250929[1m]", 1_000_000, 1_000_000);
        check("us.anthropic.claude-sonnet-5-v1:0", 1_000_000, 1_000_000);
        check("anthropic/claude-tale-9", 200_000, 1_000_000);
        check("openai/gpt-5.3-codex", 400_000, 400_000);
        check("gpt-5.6-sol", 272_000, 872_000);
        check("GLM-5", 204_800, 204_800);
        assert_eq!(known("unheard-of"), None);
        assert!(MODELS.windows(2).all(|pair| pair[0].0 < pair[1].0), "in order, each once");
        assert!(MODELS.iter().all(|(_, usual, most)| usual <= most));
    }

    #[test]
    fn no_window_is_smaller_than_what_the_model_answered_to_unless_the_user_says_so() {
        let windows = Windows { models: [("own".to_owned(), 64_000)].into(), ..Windows::default() };
        let check = |file, model, answered, tokens, source| {
            let (model, answered) = (Some(model), Some(answered));
            let found = windows.resolve(None, Evidence { file, model, answered });
            assert_eq!((found.tokens, found.source), (tokens, source), "{file:?} {model:?}");
        };
        check(None, "claude-sonnet-4-5", 199_000, 200_000, Source::Model);
        check(None, "claude-sonnet-4-5", 230_708, 1_000_000, Source::Answered);
        check(None, "claude-sonnet-4-5", 1_200_000, 1_600_000, Source::Answered);
        check(None, "unheard-of", 50_000, 64_000, Source::Answered);
        check(None, "unheard-of", 60_000, 128_000, Source::Answered);
        check(Some(100_000), "unheard-of", 100_001, 200_000, Source::Answered);
        check(Some(258_400), "gpt-5.6-sol", 260_000, 872_000, Source::Answered);
        check(None, "own-model", 100_000, 64_000, Source::Models);
    }

    #[test]
    fn small_windows_are_blocked_and_tight_ones_warned_of() {
        let check = |tokens, verdict| {
            assert_eq!(
                Windows::default().resolve(Some(tokens), Evidence::default()).verdict,
                verdict,
                "{tokens}"
            );
        };
        check(15_999, Verdict::Blocked);
        check(16_000, Verdict::Warned);
        check(31_999, Verdict::Warned);
        check(32_000, Verdict::Fine);
    }
}
