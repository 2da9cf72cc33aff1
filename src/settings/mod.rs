//! Settings: what the user sets once, in `config.toml`, read from text.
//!
//! A section is a struct here and a table in the file `examples/config.toml`, which documents every key: what is not in
//! it is unknown, so that none can be added without being explained. Several files are laid over each other, key by key.
//!
//! Invariant: a file with an unknown key is read; one with a value of the wrong type is refused, by line and key.
//! Invariant: what runs, sends or reads beyond a session is set by the user's own file alone.

mod explain;
mod read;

pub use read::{Author, File, Read, Setting, SettingsError, Unknown};

use std::collections::BTreeMap;

use serde::Deserialize;

/// Every key there is, explained.
pub const EXAMPLE: &str = include_str!("../../examples/config.toml");

/// What is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Settings {
    /// The window guard.
    pub window: Window,
    /// What is said of models.
    pub models: BTreeMap<String, Model>,
    /// How much of the history is sent.
    pub limits: Limits,
    /// What is said of channels.
    pub channels: BTreeMap<String, Channel>,
    /// How a context is compacted.
    pub compaction: Compaction,
    /// Models that can be asked.
    pub provider: BTreeMap<String, Provider>,
    /// How a turn is run.
    pub turn: Turn,
}

/// The window guard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Window {
    /// The window of a model of which nothing is known.
    pub default: Option<u64>,
    /// A smaller window is refused.
    pub block: Option<u64>,
    /// A smaller window is warned of.
    pub warn: Option<u64>,
    /// No agent uses more.
    pub cap: Option<u64>,
}

/// What is said of a model.
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
    /// So many turns.
    pub turns: usize,
    /// So many messages.
    pub messages: usize,
    /// So many tokens.
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

/// How a context is compacted; what is left out is as it is usual.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Compaction {
    /// Which provider writes summaries, or `extract`.
    pub summarizer: Option<String>,
    /// How much is kept: a number of messages, or a share.
    pub keep: Option<String>,
    /// What summaries are to dwell on.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads files of the user.
    fn read(texts: &[&str]) -> Result<Read, SettingsError> {
        let file = |text| File { name: "config.toml", author: Author::User, text };
        let files: Vec<File<'_>> = texts.iter().map(|&text| file(text)).collect();
        Settings::read(&files)
    }

    /// Reads a file of the user and one of a store.
    fn with_store(user: &str, store: &str) -> Read {
        let files = [
            File { name: "user", author: Author::User, text: user },
            File { name: "store", author: Author::Store, text: store },
        ];
        Settings::read(&files).unwrap()
    }

    #[test]
    fn a_store_sets_nothing_that_runs_sends_or_reads_beyond() {
        let user = "[compaction]\nbefore = 'mine'\n[provider.p]\nurl = 'https://mine'\n";
        let store = "[compaction]\nbefore = 'id'\nafter = 'id'\noutside = true\npercent = 50\n\
                     [turn]\ntools = 'id'\nprovider = 'p'\n\
                     [provider]\np = { url = 'https://theirs', key_env = 'SECRET', model = 'm' }\n\
                     q.command = 'id'\nq.kind = 'command'\n";
        let read = with_store(user, store);
        let settings = read.settings;
        assert_eq!(settings.compaction.before.as_deref(), Some("mine"));
        assert_eq!((settings.compaction.after, settings.compaction.outside), (None, false));
        assert_eq!((settings.turn.tools, settings.turn.provider.as_deref()), (None, Some("p")));
        assert_eq!(settings.compaction.percent, Some(50));
        let provider = &settings.provider["p"];
        assert_eq!(provider.url.as_deref(), Some("https://mine"));
        assert_eq!((provider.key_env.as_deref(), provider.model.as_deref()), (None, Some("m")));
        assert_eq!(settings.provider["q"], Provider::default());
        let refused = read.refused.iter().map(|at| format!("{}:{}", at.line, at.key.join(".")));
        assert_eq!(
            refused.collect::<Vec<_>>(),
            [
                "2:compaction.before",
                "3:compaction.after",
                "4:compaction.outside",
                "7:turn.tools",
                "10:provider.p.url",
                "10:provider.p.key_env",
                "11:provider.q.command",
                "12:provider.q.kind",
            ]
        );
    }

    #[test]
    fn every_key_that_names_a_command_an_address_or_a_variable_is_the_users_own() {
        // What the example calls a command, an address or a variable; a new key of that kind must be reserved too.
        let text = EXAMPLE.replace("\"command\"", "\"openai\"");
        let read = with_store("", &text);
        let refused: Vec<String> = read.refused.iter().map(|at| at.key.join(".")).collect();
        assert_eq!(
            refused,
            [
                "compaction.outside",
                "compaction.before",
                "compaction.after",
                "provider.local.kind",
                "provider.local.url",
                "provider.local.key_env",
                "provider.local.command",
                "turn.tools",
            ]
        );
    }

    #[test]
    fn what_is_set_is_told_with_its_line() {
        let read = with_store("[window]\nwarn = 1\nblock = 2\n", "[window]\n\nblock = 3\n");
        let told = |at: &Setting| (at.key.join("."), at.value.clone(), at.file.clone(), at.line);
        assert_eq!(
            read.set.iter().map(told).collect::<Vec<_>>(),
            [
                ("window.block".to_owned(), 3.into(), "store".to_owned(), 3),
                ("window.warn".to_owned(), 1.into(), "user".to_owned(), 2),
            ]
        );
    }

    #[test]
    fn the_example_has_every_key_and_no_other() {
        let Read { settings, unknown, .. } = read(&[EXAMPLE]).unwrap();
        assert_eq!(unknown, []);
        let channel = Channel { direct: 50, group: 20, users: [("4711".to_owned(), 10)].into() };
        let some = |text: &str| Some(text.to_owned());
        let provider = Provider {
            kind: ProviderKind::Openai,
            url: some("http://localhost:8080/v1"),
            model: some("a-model"),
            key_env: some("LOCAL_API_KEY"),
            command: some(""),
            window: Some(32_000),
            max_tokens: Some(8_192),
            timeout: Some(120),
            retries: Some(3),
        };
        let expected = Settings {
            window: Window {
                default: Some(32_000),
                block: Some(16_000),
                warn: Some(32_000),
                cap: Some(0),
            },
            models: [("gpt-4o".to_owned(), Model { window: Some(128_000) })].into(),
            limits: Limits::default(),
            channels: [("telegram".to_owned(), channel)].into(),
            compaction: Compaction {
                summarizer: some("extract"),
                keep: some("20%"),
                focus: some(""),
                percent: Some(80),
                reserve: Some(16_384),
                timeout: Some(180),
                strict: false,
                outside: false,
                before: some(""),
                after: some(""),
                hook_timeout: Some(30),
            },
            provider: [("local".to_owned(), provider)].into(),
            turn: Turn {
                provider: some(""),
                tools: some(""),
                tools_timeout: Some(120),
                steps: Some(100),
            },
        };
        assert_eq!(settings, expected);
    }

    #[test]
    fn later_files_count_key_by_key() {
        let texts =
            ["[window]\nblock = 1\nwarn = 2\n", "[window]\nwarn = 3\n[models.m]\nwindow = 4\n"];
        let Read { settings, unknown, .. } = read(&texts).unwrap();
        assert_eq!(unknown, []);
        assert_eq!((settings.window.block, settings.window.warn), (Some(1), Some(3)));
        assert_eq!(settings.models["m"].window, Some(4));
        assert_eq!(read(&[]).unwrap().settings, Settings::default());
    }

    #[test]
    fn an_unknown_key_is_named_with_the_nearest() {
        let text = "[window]\nblok = 1\n[windows]\nx = 1\n[models.\"a.b\"]\nwidow = 3\n";
        let told: Vec<String> =
            read(&[text]).unwrap().unknown.iter().map(Unknown::to_string).collect();
        assert_eq!(
            told,
            [
                "config.toml, line 2: there is no key window.blok; the nearest is window.block",
                "config.toml, line 3: there is no key windows; the nearest is window",
                "config.toml, line 6: there is no key models.a.b.widow; the nearest is models.*.window",
            ]
        );
    }

    #[test]
    fn a_wrong_type_is_named_by_file_line_and_key() {
        let check = |text: &str, expected: &str| {
            assert_eq!(read(&[text]).unwrap_err().to_string(), expected);
        };
        check(
            "[window]\nwarn = 1\nblock = \"x\"\n",
            "config.toml, line 3: window.block cannot be this: invalid type: string \"x\", expected u64",
        );
        check(
            "[models.m]\nwindow = -1\n",
            "config.toml, line 2: models.m.window cannot be this: invalid value: integer `-1`, expected u64",
        );
        check(
            "window = 3\n",
            "config.toml, line 1: window cannot be this: invalid type: integer `3`, expected struct Window",
        );
        assert!(matches!(read(&["[window\n"]), Err(SettingsError::Syntax { line: 1, .. })));
    }
}
