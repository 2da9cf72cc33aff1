//! Settings: what the user sets once, in `config.toml`, read from text.
//!
//! A section is a struct here and a table in the file `examples/config.toml`, which documents every key: what is not in
//! it is unknown, so that none can be added without being explained. Several files are laid over each other, key by key.
//!
//! Invariant: a file with an unknown key is read; one with a value of the wrong type is refused, by line and key.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use toml::{
    Spanned, Table, Value,
    de::{DeTable, DeValue},
};

/// Every key there is, explained.
pub const EXAMPLE: &str = include_str!("../examples/config.toml");

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
    /// Whether a summariser is shown files outside of the session's folder.
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

/// A text of settings with a name for people.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it says.
    pub text: &'a str,
}

/// A key that means nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The key, with its sections.
    pub key: String,
    /// The known key that is nearest to it.
    pub nearest: String,
}

impl std::fmt::Display for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, line, key, nearest } = self;
        write!(f, "{file}, line {line}: there is no key {key}; the nearest is {nearest}")
    }
}

/// Why settings cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A file is no TOML.
    #[error("{file}, line {line}: {problem}")]
    Syntax {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// A value cannot be what it is.
    #[error("{file}, line {line}: {key} cannot be this: {problem}")]
    Value {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The key, with its sections.
        key: String,
        /// What is wrong.
        problem: String,
    },
}

impl Settings {
    /// Reads settings from files, of which the later ones count; returns also the keys that mean nothing.
    pub fn read(files: &[File<'_>]) -> Result<(Self, Vec<Unknown>), SettingsError> {
        let mut merged = Table::new();
        let mut unknown = Vec::new();
        for file in files {
            let keys = keys(file)?;
            let table: Table = toml::from_str(file.text).map_err(|error| syntax(file, &error))?;
            if let Err(error) = toml::from_str::<Self>(file.text) {
                return Err(wrong(file, &error, &keys));
            }
            unknown.extend(unknown_keys(file, &keys));
            lay_over(&mut merged, table);
        }
        // Each file is fine by itself, and so is what they make together: sections are tables in all of them.
        Ok((Value::Table(merged).try_into().unwrap_or_default(), unknown))
    }
}

/// Lays a table over another one, key by key.
fn lay_over(below: &mut Table, above: Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => lay_over(below, above),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

/// A key of a file: its sections and itself, and where it and its value stand.
struct Key {
    path: Vec<String>,
    at: usize,
    end: usize,
}

fn keys(file: &File<'_>) -> Result<Vec<Key>, SettingsError> {
    fn walk(table: &DeTable<'_>, above: &[String], keys: &mut Vec<Key>) {
        for (name, value) in table {
            let mut path = above.to_vec();
            path.push(name.get_ref().to_string());
            keys.push(Key {
                path: path.clone(),
                at: name.span().start,
                end: value.span().end.max(name.span().end),
            });
            if let DeValue::Table(table) = value.get_ref() {
                walk(table, &path, keys);
            }
        }
    }
    let table: Spanned<DeTable<'_>> =
        DeTable::parse(file.text).map_err(|error| syntax(file, &error))?;
    let mut found = Vec::new();
    walk(table.get_ref(), &[], &mut found);
    found.sort_by_key(|key| key.at);
    Ok(found)
}

fn line_of(file: &File<'_>, at: usize) -> usize {
    file.text.bytes().take(at).filter(|&byte| byte == b'\n').count() + 1
}

fn syntax(file: &File<'_>, error: &toml::de::Error) -> SettingsError {
    let at = error.span().map_or(0, |span| span.start);
    let problem = error.message().to_owned();
    SettingsError::Syntax { file: file.name.to_owned(), line: line_of(file, at), problem }
}

fn wrong(file: &File<'_>, error: &toml::de::Error, keys: &[Key]) -> SettingsError {
    let at = error.span().map_or(0, |span| span.start);
    // The innermost key that stands before the fault and whose value ends behind it.
    let around = |key: &&Key| key.at <= at && at < key.end.max(key.at + 1);
    let key = keys.iter().filter(around).max_by_key(|key| (key.path.len(), key.at));
    let key = key.map(|key| key.path.join(".")).unwrap_or_default();
    let problem = error.message().to_owned();
    SettingsError::Value { file: file.name.to_owned(), line: line_of(file, at), key, problem }
}

/// The sections in which names are the user's own.
const FREE: [&[&str]; 4] = [&["models"], &["channels"], &["channels", "*", "users"], &["provider"]];

/// Returns a path with the user's own names replaced by `*`.
fn pattern(path: &[String]) -> Vec<String> {
    let mut pattern: Vec<String> = Vec::with_capacity(path.len());
    for name in path {
        let is_free = FREE.iter().any(|free| *free == pattern);
        pattern.push(if is_free { "*".to_owned() } else { name.clone() });
    }
    pattern
}

fn unknown_keys(file: &File<'_>, keys: &[Key]) -> Vec<Unknown> {
    let example = File { name: "the example", text: EXAMPLE };
    let known = self::keys(&example).unwrap_or_default();
    let known: BTreeSet<Vec<String>> = known.iter().map(|key| pattern(&key.path)).collect();
    let mut unknown: Vec<Unknown> = Vec::new();
    let mut within: Vec<&[String]> = Vec::new();
    for key in keys {
        let found = pattern(&key.path);
        // Of a section that is unknown its keys are not told too.
        if known.contains(&found) || within.iter().any(|above| key.path.starts_with(above)) {
            continue;
        }
        within.push(&key.path);
        let shown = key.path.join(".");
        let nearest = known.iter().map(|known| known.join("."));
        let nearest = nearest.min_by_key(|known| distance(&found.join("."), known));
        unknown.push(Unknown {
            file: file.name.to_owned(),
            line: line_of(file, key.at),
            key: shown,
            nearest: nearest.unwrap_or_default(),
        });
    }
    unknown
}

/// Returns how many letters must be put in, taken out or replaced to make one word of another.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (n, letter) in one.chars().enumerate() {
        let mut before = n;
        let mut left = n + 1;
        for (cell, other) in row.iter_mut().skip(1).zip(&other) {
            let above = *cell;
            let replaced = before + usize::from(letter != *other);
            before = above;
            left = replaced.min(above + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = n + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(texts: &[&str]) -> Result<(Settings, Vec<Unknown>), SettingsError> {
        let files: Vec<File<'_>> =
            texts.iter().map(|text| File { name: "config.toml", text }).collect();
        Settings::read(&files)
    }

    #[test]
    fn the_example_has_every_key_and_no_other() {
        let (settings, unknown) = read(&[EXAMPLE]).unwrap();
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
                provider: some("local"),
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
        let (settings, unknown) = read(&texts).unwrap();
        assert_eq!(unknown, []);
        assert_eq!((settings.window.block, settings.window.warn), (Some(1), Some(3)));
        assert_eq!(settings.models["m"].window, Some(4));
        assert_eq!(read(&[]).unwrap().0, Settings::default());
    }

    #[test]
    fn an_unknown_key_is_named_with_the_nearest() {
        let text = "[window]\nblok = 1\n[windows]\nx = 1\n[models.\"a.b\"]\nwidow = 3\n";
        let told: Vec<String> = read(&[text]).unwrap().1.iter().map(Unknown::to_string).collect();
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
