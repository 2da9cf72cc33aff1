//! Hints: what can be done next, in words and perhaps with a command line that can be typed as it stands.
//!
//! A [`Line`] is a verb with its arguments. Which store and which session it must name is known when it is shown: [`Naming`]
//! holds what was typed, and spells every command line that a person is shown.
//!
//! Invariant: no other file spells a command line in what a command prints; a test reads the sources for that.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::render::safe;

/// The name of the program.
pub(crate) const NAME: &str = "undertext";

/// A hint: words, and perhaps the command that they speak of.
#[derive(Clone, Debug)]
pub(crate) struct Hint {
    words: String,
    line: Option<Line>,
}

/// A command, but for the store and the session that it must name.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    words: Vec<OsString>,
    is_about_session: bool,
}

/// What a command line must name so that it works on the same store and the same session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Naming {
    /// The folder of the store, if it was typed.
    pub(crate) store: Option<PathBuf>,
    /// The session, unless it is the one that a command takes which names none.
    pub(crate) session: Option<OsString>,
}

impl From<&str> for Hint {
    fn from(words: &str) -> Self {
        words.to_owned().into()
    }
}

impl From<String> for Hint {
    fn from(words: String) -> Self {
        Self { words, line: None }
    }
}

impl Hint {
    /// Returns the hint as it is shown.
    pub(crate) fn spell(&self, naming: &Naming) -> String {
        match &self.line {
            Some(line) => format!("{}: {}", self.words, naming.spell(line)),
            None => self.words.clone(),
        }
    }
}

impl Line {
    /// Returns a command that names its session itself, or is about none.
    pub(crate) fn new(verb: &str) -> Self {
        Self { words: vec![verb.into()], is_about_session: false }
    }

    /// Returns a command about the session at hand.
    pub(crate) fn about(verb: &str) -> Self {
        Self { is_about_session: true, ..Self::new(verb) }
    }

    /// Adds a word.
    pub(crate) fn with(mut self, word: impl Into<OsString>) -> Self {
        self.words.push(word.into());
        self
    }

    /// Adds an option with its value.
    pub(crate) fn option(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        let value = value.as_ref();
        if value.as_encoded_bytes().first().is_none_or(|&first| first == b'-') {
            // As a word of its own, it would be taken for an option.
            let mut joined = OsString::from(name);
            joined.push("=");
            joined.push(value);
            return self.with(joined);
        }
        self.words.extend([name.into(), value.to_owned()]);
        self
    }

    /// Returns the hint to type this command for what the words say.
    pub(crate) fn to(self, words: impl Into<String>) -> Hint {
        Hint { words: words.into(), line: Some(self) }
    }
}

impl Naming {
    /// Returns a command line as it can be typed.
    pub(crate) fn spell(&self, line: &Line) -> String {
        let mut line = line.clone();
        if let Some(session) = self.session.as_ref().filter(|_| line.is_about_session) {
            line = line.option("-s", session);
        }
        if let Some(store) = &self.store {
            line = line.option("--store", store);
        }
        let words = line.words.iter().map(|word| quoted(word));
        [NAME.to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
    }
}

/// Returns a word as a shell reads it.
pub(crate) fn quoted(word: &OsStr) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./@+:,=~%".contains(c);
    match word.to_str() {
        Some(word)
            if word.chars().all(is_plain) && !word.is_empty() && !word.starts_with(['~', '=']) =>
        {
            word.to_owned()
        }
        Some(word) if !word.chars().any(safe::is_hidden) => {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
        // What no terminal should be sent is spelt by its bytes.
        _ => {
            let octal = |byte: &u8| format!("\\{byte:03o}");
            let bytes = word.as_encoded_bytes().iter().map(octal);
            format!("\"$(printf '{}')\"", bytes.collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;
    use std::process::Command;

    use super::*;

    fn naming(store: Option<&str>, session: Option<&str>) -> Naming {
        Naming { store: store.map(PathBuf::from), session: session.map(OsString::from) }
    }

    #[test]
    fn the_session_and_the_store_are_named_where_they_must_be() {
        let check = |naming: Naming, line: &Line, expected: &str| {
            assert_eq!(naming.spell(line), expected);
        };
        let (undo, import) = (Line::about("undo"), Line::new("import"));
        check(naming(None, None), &undo, "undertext undo");
        check(naming(None, Some("7c2a51de")), &undo, "undertext undo -s 7c2a51de");
        check(naming(None, Some("7c2a51de")), &import, "undertext import");
        check(naming(Some("my store"), None), &import, "undertext import --store 'my store'");
        check(naming(Some("-s"), Some("-x")), &undo, "undertext undo -s=-x --store=-s");
        let revert = Line::about("revert").with("HEAD~2").to("to go back");
        let spelt = revert.spell(&naming(None, Some("it's")));
        assert_eq!(spelt, r"to go back: undertext revert HEAD~2 -s 'it'\''s'");
    }

    #[test]
    fn a_shell_reads_every_word_as_it_was_meant() {
        for word in [
            "",
            "a b",
            "it's",
            "~",
            "~/x",
            "=x",
            "a=b",
            "$HOME",
            "`ls`",
            "*",
            "a\"b",
            "\\",
            "é日本",
            "a\u{1b}[2Jb",
            "\u{202e}x",
            "a%sb",
            "#x",
            "!x",
            "a;b",
            "a\nb",
        ] {
            read(OsStr::new(word));
        }
        read(OsStr::from_bytes(b"a\xff\x01b"));
    }

    #[track_caller]
    fn read(word: &OsStr) {
        let line = format!("printf %s {}", quoted(word));
        assert!(!line.contains(safe::is_hidden), "{line}");
        let output = Command::new("sh").args(["-c", &line]).output().unwrap();
        assert_eq!(output.stdout, word.as_bytes(), "{line}");
    }
}
