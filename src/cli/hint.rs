//! Hints for people: a text, and perhaps a command line that works when typed.
//!
//! [`Naming`] knows the store and the session that were typed, and spells every command line shown to a person.
//!
//! Invariant: no other file spells a command line for output. A test scans the sources for it.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use undertext::report::{Argument, Hint, Line, NamedHint};
use undertext::verbs;

use crate::render::safe;
use crate::render::units::DIGITS;

/// The program's name.
pub(crate) const NAME: &str = "undertext";
/// The program's short name, which completions and packages define.
pub(crate) const SHORT: &str = "ut";

/// Commands whose only word is a session.
const TAKING: [&str; 15] = [
    "audit",
    "checkpoints",
    "clear",
    "compact",
    "context",
    "doctor",
    "export",
    "graph",
    "log",
    "operations",
    "redo",
    "resume",
    "status",
    "truncate",
    "undo",
];

/// The names that make a command line work on the same store and session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Naming {
    /// The program's short name, if it was typed.
    pub(crate) short: Option<&'static str>,
    /// The store's folder, if it was typed.
    pub(crate) store: Option<PathBuf>,
    /// The session, unless it is the one that a command without a session uses.
    pub(crate) session: Option<OsString>,
}

impl Naming {
    /// Formats a hint for people.
    pub(crate) fn spell_hint(&self, hint: &Hint) -> String {
        match &hint.line {
            Some(line) => format!("{}: {}", hint.words, self.spell(line)),
            None => hint.words.clone(),
        }
    }

    /// Returns a hint in the form for programs.
    pub(crate) fn name<'a>(&self, hint: &'a Hint) -> NamedHint<'a> {
        hint.named(self.session.as_deref(), self.store.as_deref())
    }

    /// Formats a command line as you can type it.
    pub(crate) fn spell(&self, line: &Line) -> String {
        let named = |name, value: Option<OsString>| Some(Argument::Option { name, value: value? });
        let mut session = self.session.clone().filter(|_| line.is_about_session);
        let store = self.store.clone().filter(|_| line.takes_store()).map(OsString::from);
        let mut arguments = line.arguments.clone();
        // A turn and its session are written as one word, such as 82@13.
        for argument in &mut arguments {
            if let Argument::Word(word) = argument
                && let Some(named) = &session
            {
                let mut place = named.clone();
                place.push(&*word);
                let both = place.to_str().filter(|place| !place.starts_with('-'));
                let is_read = both.and_then(verbs::split_place).is_some_and(|(one, other)| {
                    OsStr::new(one) == named && OsStr::new(other) == word
                });
                if is_read {
                    (*word, session) = (place, None);
                }
            }
        }
        let is_word =
            |argument: &Argument| matches!(argument, Argument::Word(_) | Argument::Entry(_));
        // If no other word follows, the session needs no option.
        if TAKING.contains(&line.verb.as_str())
            && !arguments.iter().any(is_word)
            && let Some(word) = session.take_if(|word| !is_like_an_option(word))
        {
            arguments.insert(0, Argument::Word(word));
        }
        let naming = [named("session", session), named("store", store)];
        // Words after a lone `--` are never options.
        let is_end = |argument: &Argument| matches!(argument, Argument::Word(word) if word == "--");
        let end = arguments.iter().position(is_end).unwrap_or(arguments.len());
        let (before, behind) = arguments.split_at(end);
        let naming = naming.into_iter().flatten();
        let arguments = before.iter().cloned().chain(naming).chain(behind.iter().cloned());
        let name = self.short.unwrap_or(NAME);
        let words = [name.into(), OsString::from(&line.verb)];
        let words = words.into_iter().chain(arguments.flat_map(spell_argument));
        words.map(|word| quote(&word)).collect::<Vec<_>>().join(" ")
    }
}

/// Returns the words of an argument.
fn spell_argument(argument: Argument) -> Vec<OsString> {
    let option = |name: &str| match name {
        "out" => OsString::from("-o"),
        "session" => "-s".into(),
        "message" => "-m".into(),
        name => format!("--{name}").into(),
    };
    match argument {
        Argument::Word(word) => vec![word],
        Argument::Entry(entry) => vec![format!("{entry:.DIGITS$}").into()],
        Argument::Flag(name) => vec![option(name)],
        Argument::Option { name, value } if is_like_an_option(&value) => {
            // As a separate word, the value would be read as an option.
            let mut joined = option(name);
            joined.push("=");
            joined.push(value);
            vec![joined]
        }
        Argument::Option { name, value } => vec![option(name), value],
    }
}

/// Returns true if a word is empty or begins with a dash.
fn is_like_an_option(word: &OsStr) -> bool {
    word.as_encoded_bytes().first().is_none_or(|&first| first == b'-')
}

/// Quotes a word for a shell.
pub(crate) fn quote(word: &OsStr) -> String {
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
        // A word that must not reach a terminal is written in octal bytes.
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
        let (store, session) = (store.map(PathBuf::from), session.map(OsString::from));
        Naming { store, session, ..Naming::default() }
    }

    #[test]
    fn the_session_and_the_store_are_named_where_they_must_be() {
        let check = |naming: Naming, line: &Line, expected: &str| {
            assert_eq!(naming.spell(line), expected);
        };
        let (undo, import) = (Line::about("undo"), Line::new("import"));
        check(naming(None, None), &undo, "undertext undo");
        check(naming(None, Some("7c2a51de")), &undo, "undertext undo 7c2a51de");
        check(naming(None, Some("7c2a51de")), &import, "undertext import");
        check(naming(Some("my store"), None), &import, "undertext import --store 'my store'");
        check(naming(Some("-s"), Some("-x")), &undo, "undertext undo -s=-x --store=-s");
        let search = Line::new("search").with("-i").with("--").with("-x").with("--");
        check(naming(Some("store"), None), &search, "undertext search -i --store store -- -x --");
        let revert = Line::about("revert").with("HEAD~2").to("to go back");
        let spelt = naming(None, Some("it's")).spell_hint(&revert);
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
        let line = format!("printf %s {}", quote(word));
        assert!(!line.contains(safe::is_hidden), "{line}");
        let output = Command::new("sh").args(["-c", &line]).output().unwrap();
        assert_eq!(output.stdout, word.as_bytes(), "{line}");
    }
}
