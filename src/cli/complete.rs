//! Shell completion: candidates for the word being typed, taken from the store.
//!
//! A shell runs the program with [`VARIABLE`] set to its name and the words of the line after `--`.
//!
//! Invariant: nothing but the candidates is written; unreadable data yields no candidates.
//! Invariant: text from a transcript enters a command line only as one word that contains nothing a shell would run.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use clap::Arg;
use clap_complete::engine::{
    self, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};
use clap_complete::env::{EnvCompleter, Shells};
use undertext::store::SessionFilter;
use undertext::verbs;
use undertext::wire::{self, discover};

use super::env::Env;
use super::hint::SHORT;
use super::options::Global;
use super::output::Output;
use super::{Context, NAME, Opened, archive, common, help};
use crate::render::safe;

/// Names the shell that asks for candidates.
pub(crate) const VARIABLE: &str = "UNDERTEXT_COMPLETE";
/// The shell that passes words unparsed, with their quotes, and inserts candidates unquoted.
const BASH: &str = "bash";
/// The variable in which bash passes the index of the word being typed.
const INDEX: &str = "_CLAP_COMPLETE_INDEX";
/// The separator that bash splits candidates at.
const BASH_MARK: &str = "\x0b";
/// The line of the script that passes the word being typed, without its opening quote.
const BASH_WORD: &str = "words[COMP_CWORD]=\"$2\"";
/// Passes the word with its opening quote, which decides how a candidate is quoted.
const BASH_WORD_AS_TYPED: &str = r#"words[COMP_CWORD]="$2"
        if [[ ${COMP_WORDS[COMP_CWORD]} == [\"\']* && $2 != [\"\']* ]]; then
            words[COMP_CWORD]="${COMP_WORDS[COMP_CWORD]:0:1}$2"
        fi"#;
/// Maximum number of candidates of one kind.
const OFFERED: usize = 50;
/// Maximum length of an offered title or description, in characters.
const TITLE: usize = 60;

/// Completes the name of a session.
pub(crate) fn sessions() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| Typed::read(word).sessions())
}

/// Completes a checkpoint, a branch, or `HEAD`.
pub(crate) fn places() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| Typed::read(word).places())
}

/// Completes a session, or a checkpoint after `@`.
pub(crate) fn passages() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| {
        let typed = Typed::read(word);
        if word.as_encoded_bytes().starts_with(b"@") { typed.places() } else { typed.sessions() }
    })
}

/// Completes the name of a branch.
pub(crate) fn branches() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| Typed::read(word).branches())
}

/// Completes the name of an agent.
pub(crate) fn agents() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| Typed::read(word).agents())
}

/// Completes the name of an agent that can call programs.
pub(crate) fn callers() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| {
        let typed = Typed::read(word);
        discover::callers().filter_map(|name| typed.offer(name, "")).collect()
    })
}

/// Completes a word from a fixed list.
pub(crate) fn among(all: impl IntoIterator<Item = &'static str>) -> ArgValueCompleter {
    let all: Vec<&str> = all.into_iter().collect();
    ArgValueCompleter::new(move |word: &OsStr| {
        let word = word.to_str().unwrap_or_default();
        let fit = all.iter().filter(|one| one.starts_with(word));
        fit.map(CompletionCandidate::new).collect::<Vec<_>>()
    })
}

/// Completes the name of a secret rule.
pub(crate) fn rules() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| {
        let word = word.to_str().unwrap_or_default();
        let fit = verbs::secret_rules().into_iter().filter(|rule| rule.starts_with(word));
        fit.map(CompletionCandidate::new).collect()
    })
}

/// Writes the script that sets up completion in a shell.
pub(crate) fn register(shell: &str, out: &mut dyn io::Write) -> io::Result<()> {
    let shells = Shells::builtins();
    let Some(shell) = shells.completer(shell) else { return Ok(()) };
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, NAME, NAME, NAME, &mut script)?;
    let script = String::from_utf8_lossy(&script).replace(BASH_WORD, BASH_WORD_AS_TYPED);
    out.write_all(script.as_bytes())?;
    out.write_all(short(shell.name(), &script).as_bytes())
}

/// Returns the lines that define and complete the short name, unless that name is already taken.
fn short(shell: &str, script: &str) -> String {
    match shell {
        BASH => {
            let calls = script.lines().filter(|line| line.trim_start().starts_with("complete "));
            let same =
                calls.map(|line| line.trim().replace(&format!(" {NAME}"), &format!(" {SHORT}")));
            let same = same.collect::<Vec<_>>().join(" 2>/dev/null ||\n    ");
            format!(
                "if ! type {SHORT} >/dev/null 2>&1; then\n    alias {SHORT}={NAME}\nfi\n{same}\n"
            )
        }
        "zsh" => format!("(( $+commands[{SHORT}] )) || alias {SHORT}={NAME}\n"),
        "fish" => format!("type -q {SHORT}; or alias {SHORT} {NAME}\n"),
        _ => String::new(),
    }
}

/// Answers the shell, if this call is a completion request.
pub(crate) fn answer(env: &Env) -> Option<ExitCode> {
    let shells = Shells::builtins();
    let shell = shells.completer(env.variable(VARIABLE)?.to_str()?)?;
    let mut out = Vec::new();
    let written =
        write(env, super::command(), shell, &mut out).and_then(|()| io::stdout().write_all(&out));
    Some(if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn write(
    env: &Env,
    command: clap::Command,
    shell: &dyn EnvCompleter,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let folder = Some(env.current_dir.as_path());
    let words = words(env);
    if shell.name() != BASH {
        let last = words.last().cloned().unwrap_or_default();
        return shell.write_complete(&mut fit(command, &last), words, folder, out);
    }
    let Line { words, at, is_quoted } = Line::read(&words, index(env));
    let word = words.get(at).cloned().unwrap_or_default();
    let found = engine::complete(&mut fit(command, &word), words, at, folder)?;
    let values = found.iter().filter_map(|candidate| candidate.get_value().to_str());
    let values: Vec<String> = values.filter_map(|value| insertable(value, is_quoted)).collect();
    out.extend_from_slice(values.join(BASH_MARK).as_bytes());
    Ok(())
}

/// Returns the index of the word being typed, from bash.
fn index(env: &Env) -> Option<usize> {
    env.variable(INDEX)?.to_str()?.parse().ok()
}

/// Returns the words of the line; the first is the program's name.
fn words(env: &Env) -> Vec<OsString> {
    env.args.iter().skip_while(|arg| *arg != "--").skip(1).cloned().collect()
}

/// A line of bash, unquoted, with a checkpoint's sign and number joined. Bash splits after the sign, yet passes the sign again
/// with a number being typed.
struct Line {
    words: Vec<OsString>,
    /// The index of the word being typed.
    at: usize,
    is_quoted: bool,
}

impl Line {
    fn read(typed: &[OsString], index: Option<usize>) -> Self {
        let index = index.unwrap_or(typed.len().saturating_sub(1));
        let is_quoted =
            typed.get(index).is_some_and(|word| quote(&word.to_string_lossy()).is_some());
        let (mut words, mut at) = (Vec::<OsString>::new(), index);
        for (n, word) in typed.iter().enumerate() {
            match words.last_mut() {
                Some(sign) if sign == "@" => {
                    sign.push(unquoted(word).trim_start_matches('@'));
                    at -= usize::from(n <= index);
                }
                _ => words.push(unquoted(word).into()),
            }
        }
        Self { words, at, is_quoted }
    }
}

/// Returns a text as bash would insert it as one word, or `None` if it cannot.
fn insertable(text: &str, is_quoted: bool) -> Option<String> {
    // Within quotes of either kind, these characters have no meaning to bash.
    let is_safe = |c: char| is_plain(c) || is_quoted && " ?*()[]{}<>|&;:#%^".contains(c);
    if is_quoted {
        return text.chars().all(is_safe).then(|| text.to_owned());
    }
    let quoted = |c: char| if is_safe(c) { vec![c] } else { vec!['\\', c] };
    Some(text.chars().flat_map(quoted).collect())
}

/// Returns true if a character is literal in every shell.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || "-_./@+=,~".contains(c)
}

/// Returns the opening quote of a word.
fn quote(word: &str) -> Option<char> {
    word.chars().next().filter(|first| matches!(first, '"' | '\''))
}

/// Offers options only if there are no other candidates or the word has begun.
fn fit(command: clap::Command, word: &OsStr) -> clap::Command {
    if word.is_empty() { without_options(command) } else { command }
}

fn without_options(command: clap::Command) -> clap::Command {
    let hide = |arg: Arg| if arg.is_positional() { arg } else { arg.hide(true) };
    command.disable_help_flag(true).mut_args(hide).mut_subcommands(without_options)
}

/// The line typed so far.
struct Typed {
    context: Context,
    /// True if the shell, or this program on its behalf, quotes a candidate into one word.
    quotes: bool,
    /// The other words.
    words: Vec<OsString>,
    /// The word being typed.
    word: String,
}

impl Typed {
    fn read(word: &OsStr) -> Self {
        let env = Env::read();
        let quotes = [BASH, "fish", "zsh"]
            .map(Some)
            .contains(&env.variable(VARIABLE).and_then(OsStr::to_str));
        let mut words = Line::read(&words(&env), index(&env)).words;
        let word = unquoted(word);
        let at = words.iter().rposition(|typed| *typed == *word);
        at.map(|at| words.remove(at));
        let store = help::typed(&words, "--store").map(Into::into);
        let global = Global { store, no_import: true, ..Global::default() };
        let mut context = super::context(env, &global, String::new());
        context.output = Output::silent(&context.env);
        Self { context, quotes, words, word }
    }

    /// Returns a candidate if it continues the typed word and can be inserted as one word.
    fn offer(&self, value: &str, about: &str) -> Option<CompletionCandidate> {
        let is_one_line = !value.chars().any(char::is_control) && safe::text(value) == value;
        let is_word = is_one_line && (self.quotes || value.chars().all(is_plain));
        if !is_word || !value.starts_with(&self.word) {
            return None;
        }
        let about = safe::text(about).into_owned();
        let about = (!about.is_empty()).then(|| about.into());
        Some(CompletionCandidate::new(value).help(about))
    }

    /// Returns the sessions of this folder, or of the nearest parent folder with any. For a typed word: the sessions whose id or
    /// title begins with it, and files.
    fn sessions(mut self) -> Vec<CompletionCandidate> {
        if self.word.contains('/') || self.word.starts_with(['.', '~']) {
            return PathCompleter::any().complete(OsStr::new(&self.word));
        }
        let Ok(archive) = self.context.open_reader() else { return Vec::new() };
        let any = SessionFilter { limit: Some(OFFERED), ..SessionFilter::default() };
        let named = |filter| archive.sessions(&filter).unwrap_or_default();
        let (by_id, by_title) = if self.word.is_empty() {
            let nearest = archive::nearest_sessions(&self.context.env, &archive);
            let filter = nearest.map(|(filter, _)| filter).unwrap_or_default();
            (named(SessionFilter { limit: Some(OFFERED), ..filter }), Vec::new())
        } else {
            let prefix = Some(self.word.clone());
            let by_id = named(SessionFilter { prefix: prefix.clone(), ..any.clone() });
            (by_id, named(SessionFilter { title: prefix, ..any }))
        };
        let now = self.context.env.ambient().now();
        let about = |listed: &undertext::store::Listed, title: &str| {
            let age = listed.card.active.map(|active| self.context.env.zone.age(now, active));
            let age = age.unwrap_or_default();
            let parts = [title, &listed.name.format, &age];
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
        };
        let ids = common::short_ids(
            &by_id.iter().map(|listed| listed.name.id.as_str()).collect::<Vec<_>>(),
        );
        let ids = by_id.iter().zip(&ids).filter_map(|(listed, id)| {
            let title = listed.card.title.as_deref().unwrap_or_default();
            let id = if id.starts_with(&self.word) { id } else { &listed.name.id };
            self.offer(id, &about(listed, title))
        });
        let titles = by_title.iter().filter_map(|listed| {
            self.offer(beginning(listed.card.title.as_deref()?), &about(listed, ""))
        });
        ids.chain(titles).collect()
    }

    /// Returns the newest checkpoints of the line's session, its branches, and `HEAD`.
    fn places(mut self) -> Vec<CompletionCandidate> {
        let Some(opened) = self.session() else { return Vec::new() };
        let Ok(session) = opened.at() else { return Vec::new() };
        let given = verbs::newest_checkpoints(&session, OFFERED).unwrap_or_default();
        let checkpoints = given.iter().rev().filter_map(|shown| {
            let note = shown.checkpoint.note.as_ref().map(undertext::model::Text::to_text);
            let said = shown.words.as_deref();
            let said = said.map(|text| verbs::words(text).unwrap_or_else(|| text.to_owned()));
            let about = note.or(said).unwrap_or_default();
            self.offer(&format!("@{}", shown.checkpoint.n), beginning(&about))
        });
        let here = self.offer("HEAD", "where the session stands");
        here.into_iter().chain(self.named(&opened)).chain(checkpoints).collect()
    }

    /// Returns the branches of the line's session.
    fn branches(mut self) -> Vec<CompletionCandidate> {
        let Some(opened) = self.session() else { return Vec::new() };
        self.named(&opened)
    }

    fn named(&self, opened: &Opened) -> Vec<CompletionCandidate> {
        let Ok(session) = opened.at() else { return Vec::new() };
        let state = &session.state;
        let about =
            |name: &str| if name == state.current() { "the current branch" } else { "a branch" };
        state.branches.keys().filter_map(|name| self.offer(name, about(name))).collect()
    }

    /// Returns the agents whose sessions can be read.
    fn agents(self) -> Vec<CompletionCandidate> {
        let names = wire::FORMATS.iter().map(|format| format.traits().name);
        names.filter_map(|name| self.offer(name, "")).collect()
    }

    /// Returns the session that the line is about: the one that is named, or else the newest of this folder.
    fn session(&mut self) -> Option<Opened> {
        let named = ["--session", "-s"].iter().find_map(|option| help::typed(&self.words, option));
        if let Some(named) = named {
            return self.context.find(Some(&named)).ok();
        }
        let words: Vec<OsString> = self.words.iter().skip(2).cloned().collect();
        let is_option = |word: &&OsString| word.as_encoded_bytes().starts_with(b"-");
        let found = words.iter().filter(|word| !is_option(word)).find_map(|word| {
            let is_name = word.len() >= 3 || Path::new(word).exists();
            is_name.then(|| self.context.find(Some(word)).ok()).flatten()
        });
        found.or_else(|| self.context.find(None).ok())
    }
}

/// Returns the first words of a text, at most [`TITLE`] characters.
fn beginning(text: &str) -> &str {
    let Some((end, _)) = text.char_indices().nth(TITLE) else { return text };
    let cut = text.get(..end).unwrap_or_default();
    cut.rsplit_once(' ').map_or(cut, |(words, _)| words)
}

/// Removes the quotes of a word.
fn unquoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let quote = quote(&word);
    let inner = quote.map_or(word.as_ref(), |quote| word.trim_matches(quote));
    let mut chars = inner.chars();
    let mut plain = String::new();
    while let Some(c) = chars.next() {
        plain.extend(if c == '\\' && quote != Some('\'') { chars.next() } else { Some(c) });
    }
    plain
}
