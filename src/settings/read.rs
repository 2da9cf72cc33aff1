//! Reading: merges settings files and records the line of each value.

use std::collections::{BTreeMap, BTreeSet};

use toml::{
    Spanned, Table, Value,
    de::{DeTable, DeValue},
};

use super::{
    section::{EXAMPLE, Settings},
    slip::distance,
};

/// Who wrote a settings file, which determines what it may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Author {
    /// The user.
    User,
    /// Whoever created the store. Only keys that are listed as open are accepted; none of them runs programs, sends data or reads
    /// beyond a session, excludes sessions, or decides what is secret.
    Store,
}

/// The text of a settings file, with a name for messages.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// Its name.
    pub name: &'a str,
    /// Who wrote it.
    pub author: Author,
    /// Its content.
    pub text: &'a str,
}

/// The merged content of settings files.
#[derive(Clone, Debug, Default)]
pub struct Read {
    /// The settings.
    pub settings: Settings,
    /// The values that were set, sorted by key.
    pub set: Vec<Setting>,
    /// The values that were refused because only the user's own file may set them.
    pub refused: Vec<Setting>,
    /// The unknown keys.
    pub unknown: Vec<Unknown>,
}

/// A value that a file sets.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Setting {
    /// The key, with its sections.
    #[serde(serialize_with = "dotted")]
    pub key: Vec<String>,
    /// The value.
    pub value: serde_json::Value,
    /// Whose settings file sets it.
    #[serde(rename = "source")]
    pub author: Author,
    /// The settings file.
    pub file: String,
    /// The number of the line, from 1.
    pub line: usize,
}

/// Serialises a key as it is written in a file.
fn dotted<S: serde::Serializer>(key: &[String], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&key.join("."))
}

/// An unknown key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The file.
    pub file: String,
    /// Who wrote the file.
    pub author: Author,
    /// The line, from 1.
    pub line: usize,
    /// The key, with its sections.
    pub key: String,
    /// The most similar known key.
    pub nearest: String,
}

impl Unknown {
    /// The maximum edit distance of a misspelt section name.
    const NEAR: usize = 2;

    /// Returns true if it may be a misspelt key that excludes sessions: it is in the section `exclude` or one with a similar
    /// name, or it is a key of that section in the wrong place.
    pub fn may_exclude(&self) -> bool {
        const SECTION: &str = "exclude";
        const KEYS: [&str; 3] = ["folders", "sessions", "agents"];
        let section = self.key.split('.').next().unwrap_or_default().to_lowercase();
        let name = self.key.rsplit('.').next().unwrap_or_default();
        let is_near = |one: &str, other| distance(one, other) <= Self::NEAR;
        is_near(&section, SECTION)
            || KEYS.contains(&name)
            || !self.key.contains('.') && KEYS.iter().any(|key| is_near(&section, key))
    }
}

impl std::fmt::Display for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, line, key, nearest, .. } = self;
        write!(f, "{file}, line {line}: unknown key {key}; the nearest is {nearest}")
    }
}

/// Why settings cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A file is not TOML.
    #[error("{file}, line {line}: {problem}")]
    Syntax {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The problem.
        problem: String,
    },
    /// The merged files are not valid together.
    #[error("the merged settings are not valid: {problem}")]
    Together {
        /// The problem.
        problem: String,
    },
    /// A value has the wrong type or range.
    #[error("{file}, line {line}: {key} cannot be {problem}")]
    Value {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The key, with its sections.
        key: String,
        /// The problem.
        problem: String,
    },
}

/// The keys that a store's own settings may also set: how much of a session a model sees and when it is compacted, and the
/// timeouts and parameters of requests to a model. All other keys are the user's alone, so by default a key that runs programs,
/// sends data, reads beyond a session, excludes sessions or decides what is secret is closed.
const OPEN: [&[&str]; 31] = [
    &["window", "default"],
    &["window", "block"],
    &["window", "warn"],
    &["window", "cap"],
    &["models", "*", "window"],
    &["limits", "turns"],
    &["limits", "messages"],
    &["limits", "tokens"],
    &["channels", "*", "direct"],
    &["channels", "*", "group"],
    &["channels", "*", "users", "*"],
    &["compaction", "keep"],
    &["compaction", "focus"],
    &["compaction", "percent"],
    &["compaction", "at"],
    &["compaction", "reserve"],
    &["compaction", "timeout"],
    &["compaction", "strict"],
    &["compaction", "hook_timeout"],
    &["provider", "*", "model"],
    &["provider", "*", "window"],
    &["provider", "*", "max_tokens"],
    &["provider", "*", "timeout"],
    &["provider", "*", "retries"],
    &["provider", "*", "stream"],
    &["provider", "*", "temperature"],
    &["provider", "*", "effort"],
    &["provider", "*", "cache"],
    &["provider", "*", "max_tokens_as"],
    &["turn", "tools_timeout"],
    &["turn", "steps"],
];

impl Read {
    /// Returns true if a value is at or below an unknown key.
    pub fn is_unknown(&self, set: &Setting) -> bool {
        let key = set.key.join(".");
        self.unknown.iter().filter(|unknown| unknown.file == set.file).any(|unknown| {
            let below = key.strip_prefix(&unknown.key);
            below.is_some_and(|below| below.is_empty() || below.starts_with('.'))
        })
    }
}

impl Settings {
    /// Reads and merges settings files; later files take precedence.
    pub fn read(files: &[File<'_>]) -> Result<Read, SettingsError> {
        // Most users have no settings file; then the known keys need not be parsed.
        if files.is_empty() {
            return Ok(Read::default());
        }
        let mut merged = Table::new();
        let mut set = BTreeMap::new();
        let mut read = Read::default();
        let known = known()?;
        for file in files {
            let keys = keys(file)?;
            let mut table: Table =
                toml::from_str(file.text).map_err(|error| syntax(file, &error))?;
            if let Err(error) = toml::from_str::<Self>(file.text) {
                return Err(wrong(file, &error, &keys));
            }
            read.unknown.extend(unknown_keys(file, &keys, &known));
            for key in &keys {
                let Some(value) = value_at(&table, &key.path) else { continue };
                let setting = setting(file, key, value)?;
                let pattern = pattern(&key.path);
                let is_taken = file.author == Author::User || is_open(&pattern);
                if !is_taken {
                    remove(&mut table, &key.path);
                }
                if is_taken || !known.contains(&pattern) {
                    set.insert(key.path.clone(), setting);
                } else {
                    read.refused.push(setting);
                }
            }
            lay_over(&mut merged, table);
        }
        read.settings = together(merged)?;
        read.set = set.into_values().collect();
        Ok(read)
    }
}

/// Returns the merged settings. Each file is valid by itself, and so is the result as long as no key depends on another. If it is
/// not valid, that is an error and never falls back to the defaults.
fn together(merged: Table) -> Result<Settings, SettingsError> {
    let settings = Value::Table(merged).try_into();
    settings.map_err(|error| SettingsError::Together { problem: error.message().to_owned() })
}

fn setting(file: &File<'_>, key: &Key, value: &Value) -> Result<Setting, SettingsError> {
    let (name, line) = (file.name.to_owned(), line_of(file, key.at));
    let value = serde_json::to_value(value).map_err(|error| SettingsError::Value {
        file: name.clone(),
        line,
        key: key.path.join("."),
        problem: format!("told: {error}"),
    })?;
    Ok(Setting { key: key.path.clone(), value, file: name, author: file.author, line })
}

fn is_open(pattern: &[String]) -> bool {
    OPEN.iter().any(|open| *open == pattern)
}

/// Returns the value of a key, unless it is a section.
fn value_at<'t>(table: &'t Table, path: &[String]) -> Option<&'t Value> {
    let (name, above) = path.split_last()?;
    let table = above.iter().try_fold(table, |table, name| table.get(name)?.as_table())?;
    table.get(name).filter(|value| !value.is_table())
}

fn remove(table: &mut Table, path: &[String]) {
    let Some((name, above)) = path.split_last() else { return };
    let table = above.iter().try_fold(table, |table, name| table.get_mut(name)?.as_table_mut());
    table.map(|table| table.remove(name));
}

/// Merges a table into another one, key by key.
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

/// A key in a file with its sections, and the offsets of the key and the end of its value.
pub(super) struct Key {
    pub(super) path: Vec<String>,
    pub(super) at: usize,
    end: usize,
}

/// Returns the keys of a file, in file order.
pub(super) fn keys(file: &File<'_>) -> Result<Vec<Key>, SettingsError> {
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
    // The innermost key that starts before the error and whose value ends after it.
    let around = |key: &&Key| key.at <= at && at < key.end.max(key.at + 1);
    let key = keys.iter().filter(around).max_by_key(|key| (key.path.len(), key.at));
    let key = key.map(|key| key.path.join(".")).unwrap_or_default();
    let problem = in_words(error.message(), &key);
    SettingsError::Value { file: file.name.to_owned(), line: line_of(file, at), key, problem }
}

/// Describes the invalid value of a key, and what is expected, in plain words.
fn in_words(message: &str, key: &str) -> String {
    let told = message.strip_prefix("invalid type: ").or(message.strip_prefix("invalid value: "));
    let Some((found, expected)) = told.and_then(|told| told.split_once(", expected ")) else {
        return format!("this: {message}");
    };
    let value = found.split_once(' ').map_or(found, |(_, value)| value);
    let value = value.strip_prefix("point ").unwrap_or(value).trim_matches('`');
    let expected = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => format!("a section, [{key}]"),
        section if section.starts_with("struct ") => format!("a section, [{key}]"),
        other => other.to_owned(),
    };
    format!("{value}: it must be {expected}")
}

/// The file that documents every key.
pub(super) const EXAMPLE_FILE: File<'_> =
    File { name: "the example", author: Author::User, text: EXAMPLE };

/// The sections whose keys are names that the user chooses.
const FREE: [&[&str]; 7] = [
    &["keys"],
    &["models"],
    &["prices"],
    &["channels"],
    &["channels", "*", "users"],
    &["provider"],
    &["provider", "*", "headers"],
];

/// Returns a path with names chosen by the user replaced by `*`.
pub(super) fn pattern(path: &[String]) -> Vec<String> {
    let mut pattern: Vec<String> = Vec::with_capacity(path.len());
    for name in path {
        let is_free = FREE.iter().any(|free| *free == pattern);
        pattern.push(if is_free { "*".to_owned() } else { name.clone() });
    }
    pattern
}

/// Returns the known keys, according to the example, with `*` for names chosen by the user.
fn known() -> Result<BTreeSet<Vec<String>>, SettingsError> {
    Ok(keys(&EXAMPLE_FILE)?.iter().map(|key| pattern(&key.path)).collect())
}

fn unknown_keys(file: &File<'_>, keys: &[Key], known: &BTreeSet<Vec<String>>) -> Vec<Unknown> {
    let mut unknown: Vec<Unknown> = Vec::new();
    let mut within: Vec<&[String]> = Vec::new();
    for key in keys {
        let found = pattern(&key.path);
        // Keys in an unknown section are not reported separately.
        if known.contains(&found) || within.iter().any(|above| key.path.starts_with(above)) {
            continue;
        }
        within.push(&key.path);
        let shown = key.path.join(".");
        let nearest = known.iter().map(|known| known.join("."));
        let nearest = nearest.min_by_key(|known| distance(&found.join("."), known));
        unknown.push(Unknown {
            file: file.name.to_owned(),
            author: file.author,
            line: line_of(file, key.at),
            key: shown,
            nearest: nearest.unwrap_or_default(),
        });
    }
    unknown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{
        Browse, Channel, Compaction, Exclude, Hints, Import, Limits, Mask, Model, Price, Provider,
        ProviderKind, Rate, Secrets, Serve, Turn, Window,
    };

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
                     summarizer = 'p'\n[turn]\ntools = 'id'\nprovider = 'p'\n\
                     [provider]\np = { url = 'https://theirs', key_env = 'SECRET', model = 'm' }\n\
                     q.command = 'id'\nq.kind = 'command'\n\
                     [exclude]\nfolders = ['/']\nsessions = ['a']\nagents = ['pi']\n";
        let read = with_store(user, store);
        let settings = read.settings;
        assert_eq!(settings.compaction.before.as_deref(), Some("mine"));
        assert_eq!((settings.compaction.after, settings.compaction.outside), (None, false));
        assert_eq!((settings.turn.tools, settings.turn.provider), (None, None));
        assert_eq!(settings.compaction.summarizer, None);
        assert_eq!(settings.compaction.percent, Some(50));
        let provider = &settings.provider["p"];
        assert_eq!(provider.url.as_deref(), Some("https://mine"));
        assert_eq!((provider.key_env.as_deref(), provider.model.as_deref()), (None, Some("m")));
        assert_eq!(settings.provider["q"], Provider::default());
        assert_eq!(settings.exclude, Exclude::default());
        let refused = read.refused.iter().map(|at| format!("{}:{}", at.line, at.key.join(".")));
        assert_eq!(
            refused.collect::<Vec<_>>(),
            [
                "2:compaction.before",
                "3:compaction.after",
                "4:compaction.outside",
                "6:compaction.summarizer",
                "8:turn.tools",
                "9:turn.provider",
                "11:provider.p.url",
                "11:provider.p.key_env",
                "12:provider.q.command",
                "13:provider.q.kind",
                "15:exclude.folders",
                "16:exclude.sessions",
                "17:exclude.agents",
            ]
        );
    }

    #[test]
    fn a_store_sets_nothing_but_what_is_open_to_it() {
        let read = with_store("", EXAMPLE);
        let set: BTreeSet<Vec<String>> = read.set.iter().map(|at| pattern(&at.key)).collect();
        let open = OPEN.iter().map(|key| key.iter().copied().map(String::from).collect());
        assert_eq!(set, open.collect());
        let refused: Vec<String> = read.refused.iter().map(|at| at.key.join(".")).collect();
        assert_eq!(
            refused,
            [
                "hints",
                "prices.a-model.input",
                "prices.a-model.output",
                "prices.a-model.cache_read",
                "prices.a-model.cache_write",
                "compaction.summarizer",
                "compaction.auto",
                "compaction.skills",
                "compaction.outside",
                "compaction.before",
                "compaction.after",
                "provider.local.kind",
                "provider.local.url",
                "provider.local.key_env",
                "provider.local.insecure",
                "provider.local.command",
                "provider.local.headers.X-Title",
                "turn.provider",
                "turn.tools",
                "turn.system",
                "turn.max_result",
                "import.auto",
                "exclude.folders",
                "exclude.sessions",
                "exclude.agents",
                "secrets.allow_rules",
                "secrets.allow_values",
                "secrets.allow_entries",
                "mask.homes",
                "mask.emails",
                "serve.cache",
                "serve.minutes",
                "browse.glyphs",
                "keys.undo",
            ]
        );
    }

    #[test]
    fn files_that_do_not_fit_together_are_an_error_and_not_the_defaults() {
        let mut merged: Table = toml::from_str("[exclude]\nfolders = ['/mine']\n").unwrap();
        assert_eq!(together(merged.clone()).unwrap().exclude.folders.len(), 1);
        merged.insert("window".to_owned(), Value::Integer(3));
        assert!(matches!(together(merged), Err(SettingsError::Together { .. })));
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
            insecure: false,
            command: some(""),
            window: Some(32_000),
            max_tokens: Some(8_192),
            timeout: Some(120),
            retries: Some(3),
            stream: Some(true),
            temperature: serde_json::Number::from_f64(1.0),
            effort: some("medium"),
            headers: [("X-Title".to_owned(), "undertext".to_owned())].into(),
            cache: Some(true),
            max_tokens_as: Some("max_tokens".into()),
        };
        let price = Price {
            input: Rate(3_000_000),
            output: Rate(15_000_000),
            cache_read: Some(Rate(300_000)),
            cache_write: Some(Rate(3_750_000)),
        };
        let expected = Settings {
            hints: Hints::First,
            window: Window {
                default: Some(32_000),
                block: Some(16_000),
                warn: Some(32_000),
                cap: Some(0),
            },
            models: [("gpt-4o".to_owned(), Model { window: Some(128_000) })].into(),
            prices: [("a-model".to_owned(), price)].into(),
            limits: Limits::default(),
            channels: [("telegram".to_owned(), channel)].into(),
            compaction: Compaction {
                summarizer: some("extract"),
                keep: some("20%"),
                focus: some(""),
                percent: Some(80),
                at: Some(1_000_000),
                auto: false,
                skills: Some(String::new()),
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
                system: some(""),
                max_result: Some(400_000),
            },
            import: Import { auto: Some(true) },
            exclude: Exclude::default(),
            secrets: Secrets::default(),
            mask: Mask::default(),
            serve: Serve::default(),
            browse: Browse::default(),
            keys: [("undo".to_owned(), vec!["u".to_owned()])].into(),
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
        assert_eq!(read(&[""]).unwrap().settings, Settings::default());
    }

    #[test]
    fn a_key_that_may_be_meant_to_leave_sessions_out_is_known() {
        for (text, may_exclude) in [
            ("[exclude]\nfolder = []", true),
            ("[exclude]\nfolders = []\npaths = []", true),
            ("[excludes]\nfolders = []", true),
            ("[Exclude]\nfolders = []", true),
            ("exlude.folders = []", true),
            ("[excluded]", true),
            ("[xecldue]", true),
            ("folders = []", true),
            ("folder = []", true),
            ("[compaction]\nsessions = []", true),
            ("[window]\nwran = 1", false),
            ("[mcp]\nfolder = 1", false),
            ("theme = 'dark'", false),
        ] {
            let unknown = read(&[text]).unwrap().unknown;
            assert_eq!(unknown.len(), 1, "{text}");
            assert_eq!(unknown[0].may_exclude(), may_exclude, "{text}");
        }
    }

    #[test]
    fn an_unknown_key_is_named_with_the_nearest() {
        let text = "[window]\nblok = 1\n[windows]\nx = 1\n[models.\"a.b\"]\nwidow = 3\n";
        let told: Vec<String> =
            read(&[text]).unwrap().unknown.iter().map(Unknown::to_string).collect();
        assert_eq!(
            told,
            [
                "config.toml, line 2: unknown key window.blok; the nearest is window.block",
                "config.toml, line 3: unknown key windows; the nearest is window",
                "config.toml, line 6: unknown key models.a.b.widow; the nearest is models.*.window",
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
            "config.toml, line 3: window.block cannot be \"x\": it must be a whole number, 0 or more",
        );
        check(
            "[models.m]\nwindow = -1\n",
            "config.toml, line 2: models.m.window cannot be -1: it must be a whole number, 0 or more",
        );
        check(
            "window = 3\n",
            "config.toml, line 1: window cannot be 3: it must be a section, [window]",
        );
        assert!(matches!(read(&["[window\n"]), Err(SettingsError::Syntax { line: 1, .. })));
    }
}
