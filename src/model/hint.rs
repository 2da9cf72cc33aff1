//! Hints: a next step, in words and possibly with a command.
//!
//! A [`Line`] is a verb with its arguments. It does not name the store or the session: the front end knows them and spells the
//! command, as a shell line or as a call.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use serde::{Serialize, Serializer};

use crate::model::{EntryId, OperationNumber};

/// A next step: words, and possibly the command that they refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The words.
    pub words: String,
    /// The command.
    pub line: Option<Line>,
}

/// A command without the store and the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The verb.
    pub verb: String,
    /// Its arguments, in order.
    pub arguments: Vec<Argument>,
    /// Whether it applies to the current session, which a front end then names.
    pub is_about_session: bool,
}

/// A hint for programs: its command names the store and the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamedHint<'a> {
    /// The next step in words.
    pub words: &'a str,
    /// The command for that step, if there is one.
    pub line: Option<NamedLine<'a>>,
}

/// A command with the session and the store, if it has to name them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamedLine<'a> {
    /// The command's name.
    pub verb: &'a str,
    /// The arguments, in order.
    pub arguments: &'a [Argument],
    /// The session to name with `-s`.
    pub session: Option<String>,
    /// The folder of the store to name with `--store`.
    pub store: Option<String>,
}

/// An argument of a verb.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Argument {
    /// A word.
    #[serde(serialize_with = "text")]
    Word(OsString),
    /// An entry.
    Entry(EntryId),
    /// An option without a value, by its name.
    Flag(&'static str),
    /// An option.
    Option {
        /// The name of the option.
        name: &'static str,
        /// The value of the option.
        #[serde(serialize_with = "text")]
        value: OsString,
    },
}

/// Serialises a word as text; invalid UTF-8 is replaced.
fn text<S: Serializer>(word: &OsStr, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&word.display())
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
    /// Returns the hint with the session and the store that its command has to name.
    pub fn named(&self, session: Option<&OsStr>, store: Option<&Path>) -> NamedHint<'_> {
        let line = self.line.as_ref().map(|line| NamedLine {
            verb: &line.verb,
            arguments: &line.arguments,
            session: session
                .filter(|_| line.is_about_session)
                .map(|name| name.display().to_string()),
            store: store.filter(|_| line.takes_store()).map(|store| store.display().to_string()),
        });
        NamedHint { words: &self.words, line }
    }

    /// Returns the hint to undo the change.
    pub(crate) fn undo() -> Self {
        Line::about("undo").to("to undo")
    }

    /// Returns the hint to undo one operation, even if others followed it.
    pub(crate) fn undo_of(operation: OperationNumber) -> Self {
        Line::about("undo").option("op", operation.to_string()).to("to undo")
    }

    /// Returns the hint to list sessions.
    pub fn sessions() -> Self {
        Line::new("sessions").to("list the sessions")
    }

    /// Returns the hint to repair damage.
    pub fn mend() -> Self {
        Line::new("doctor").flag("fix").to("repair what session files still contain")
    }

    /// Returns the hint to show all settings explained, with `words` in front of it.
    pub fn settings(words: &str) -> Self {
        let words = if words.is_empty() { String::new() } else { format!("{words}; ") };
        Line::new("context").flag("settings").to(format!("{words}see all settings explained"))
    }
}

impl Line {
    /// Returns a command that names its session in its arguments, or needs none.
    pub fn new(verb: impl Into<String>) -> Self {
        Self { verb: verb.into(), arguments: Vec::new(), is_about_session: false }
    }

    /// Returns a command for the current session.
    pub fn about(verb: impl Into<String>) -> Self {
        Self { is_about_session: true, ..Self::new(verb) }
    }

    /// Adds a word.
    #[must_use]
    pub fn with(self, word: impl Into<OsString>) -> Self {
        self.and(Argument::Word(word.into()))
    }

    /// Adds an entry.
    #[must_use]
    pub fn entry(self, entry: EntryId) -> Self {
        self.and(Argument::Entry(entry))
    }

    /// Adds an option without a value.
    #[must_use]
    pub fn flag(self, name: &'static str) -> Self {
        self.and(Argument::Flag(name))
    }

    /// Adds an option with its value.
    #[must_use]
    pub fn option(self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.and(Argument::Option { name, value: value.into() })
    }

    /// Returns the hint to run this command, with the purpose in words.
    pub fn to(self, words: impl Into<String>) -> Hint {
        Hint { words: words.into(), line: Some(self) }
    }

    /// Returns true if the command works on the given store; `new --here` creates its own.
    pub fn takes_store(&self) -> bool {
        self.verb != "new" || !self.arguments.contains(&Argument::Flag("here"))
    }

    fn and(mut self, argument: Argument) -> Self {
        self.arguments.push(argument);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_gets_words_and_typed_arguments() {
        let hint = Line::about("show")
            .entry(EntryId::new([7; 32]))
            .flag("hidden")
            .option("out", "-x")
            .with("a b")
            .to("read it");
        let id = EntryId::new([7; 32]);
        let line = format!(
            r#"{{"verb":"show","arguments":[{{"entry":"{id}"}},{{"flag":"hidden"}},{{"option":{{"name":"out","value":"-x"}}}},{{"word":"a b"}}],"session":"7c2a51de","store":null}}"#
        );
        let session = Some(OsStr::new("7c2a51de"));
        let told = serde_json::to_string(&hint.named(session, None)).unwrap();
        assert_eq!(told, format!(r#"{{"words":"read it","line":{line}}}"#));
        let sessions = Hint::sessions();
        let named = sessions.named(session, Some(Path::new("a/b"))).line.unwrap();
        assert_eq!((named.session, named.store.as_deref()), (None, Some("a/b")));
        let told = serde_json::to_string(&Hint::from("try again").named(session, None)).unwrap();
        assert_eq!(told, r#"{"words":"try again","line":null}"#);
    }
}
