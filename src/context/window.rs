//! The window guard: how many tokens a model takes, by whose word, and whether that is enough to work with.
//!
//! Invariant: the answer needs no message, so that it comes before any costly step.

use std::collections::BTreeMap;

/// Windows under this are of no use to an agent.
pub const LEAST: u64 = 16_000;
/// Windows under this are tight; also the window of a model of which nothing is known.
pub const TIGHT: u64 = 32_000;

/// The user's words about windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Windows {
    /// The windows of models, by their names or how these begin.
    pub models: BTreeMap<String, u64>,
    /// No agent is to use more than this.
    pub cap: Option<u64>,
    /// The window of a model of which nothing is known.
    pub default: u64,
    /// Under this, nothing is sent.
    pub block: u64,
    /// Under this, a warning is given.
    pub warn: u64,
}

impl Default for Windows {
    fn default() -> Self {
        Self { models: BTreeMap::new(), cap: None, default: TIGHT, block: LEAST, warn: TIGHT }
    }
}

/// By whose word a window has its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// It was asked for.
    Asked,
    /// The user's table of models.
    Models,
    /// The session's file.
    File,
    /// The known window of the model.
    Model,
    /// The user's cap for agents, which is smaller than the model's window.
    Cap,
    /// Nobody's: the default.
    Default,
}

impl Source {
    /// Returns the word used in every output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Models => "models",
            Self::File => "file",
            Self::Model => "model",
            Self::Cap => "cap",
            Self::Default => "default",
        }
    }

    /// Returns it in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::File => "the session's file",
            other => other.as_str(),
        }
    }
}

/// Whether a window is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Fine,
    /// It is tight.
    Warned,
    /// It is not, and nothing is sent.
    Blocked,
}

impl Verdict {
    /// Returns the word used in every output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Warned => "warned",
            Self::Blocked => "blocked",
        }
    }
}

/// A window and the guard's word on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// How many tokens it holds.
    pub tokens: u64,
    /// By whose word.
    pub source: Source,
    /// Whether it is enough.
    pub verdict: Verdict,
    /// The least that would have been enough.
    pub least: u64,
}

impl Windows {
    /// Returns the window of a model: the one `asked` for, the table's, the session's `file`'s, the known one of the
    /// model, or the default; and the cap where that is smaller. A size of zero says nothing.
    pub fn resolve(&self, asked: Option<u64>, file: Option<u64>, model: Option<&str>) -> Window {
        let is_size = |tokens: &u64| *tokens > 0;
        let table = || model.and_then(|model| longest(&self.models, model)).filter(is_size);
        let (mut tokens, mut source) = if let Some(tokens) = asked.filter(is_size) {
            (tokens, Source::Asked)
        } else if let Some(tokens) = table() {
            (tokens, Source::Models)
        } else if let Some(tokens) = file.filter(is_size) {
            (tokens, Source::File)
        } else if let Some(tokens) = model.and_then(known) {
            (tokens, Source::Model)
        } else {
            (self.default, Source::Default)
        };
        // A caller who asks for a window means this one.
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

/// Returns the window of the longest name with which a model's name begins; its maker's name before it counts or not.
fn longest(models: &BTreeMap<String, u64>, model: &str) -> Option<u64> {
    let bare = model.rsplit('/').next().unwrap_or(model);
    let begins = |name: &str| model.starts_with(name) || bare.starts_with(name);
    let found = models.iter().filter(|(name, _)| begins(name));
    found.max_by_key(|(name, _)| name.len()).map(|(_, &tokens)| tokens)
}

/// Returns the known window of a model: the window that its maker gives it where no other is booked.
fn known(model: &str) -> Option<u64> {
    const KNOWN: [(&str, u64); 21] = [
        ("claude-", 200_000),
        ("codex-", 200_000),
        ("deepseek", 128_000),
        ("gemini-1.5-pro", 2_097_152),
        ("gemini-", 1_048_576),
        ("glm-4", 128_000),
        ("gpt-3.5", 16_385),
        ("gpt-4", 8_192),
        ("gpt-4-turbo", 128_000),
        ("gpt-4.1", 1_047_576),
        ("gpt-4.5", 128_000),
        ("gpt-4o", 128_000),
        ("gpt-5", 400_000),
        ("grok-4", 256_000),
        ("kimi-k2", 262_144),
        ("kimi-for-coding", 262_144),
        ("o1", 200_000),
        ("o3", 200_000),
        ("o4-mini", 200_000),
        ("qwen3-coder", 262_144),
        ("qwen3", 131_072),
    ];
    let known = KNOWN.iter().map(|&(name, tokens)| (name.to_owned(), tokens)).collect();
    longest(&known, &model.to_ascii_lowercase())
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
            let found = windows.resolve(asked, None, model);
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
            let found = windows.resolve(asked, Some(file), model);
            assert_eq!(
                (found.tokens, found.source),
                (tokens, source),
                "{asked:?} {file} {model:?}"
            );
        };
        check(Some(40_000), 100_000, None, 40_000, Source::Asked);
        check(None, 100_000, Some("m"), 64_000, Source::Models);
        check(None, 100_000, Some("gpt-4o"), 100_000, Source::File);
        check(None, 258_400, None, 150_000, Source::Cap);
        check(None, 0, Some("gpt-4o"), 128_000, Source::Model);
    }

    #[test]
    fn small_windows_are_blocked_and_tight_ones_warned_of() {
        let check = |tokens, verdict| {
            assert_eq!(
                Windows::default().resolve(Some(tokens), None, None).verdict,
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
