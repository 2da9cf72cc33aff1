//! Distinguishes the session that a command is about from the places among its words.
//!
//! Every command about a session takes it as `-s SESSION` or as a word: alone, or along with the command's places.
//!
//! ```text
//! revert 3 7c2a      a place, then a session, as in the help
//! revert 7c2a 3      a session, then a place, if only this order makes sense
//! revert 7c2a@3      both in one word
//! ```
//!
//! Invariant: `@N` and a place relative to `HEAD` are never read as a session, nor is a single number where a place is required.
//! A path is never read as a place.

use std::ffi::{OsStr, OsString};
use std::ops::RangeInclusive;

use anyhow::anyhow;
use undertext::report::{Hint, Line};
use undertext::verbs;

use super::common::counted;
use super::env::Env;
use super::error::CommandError;
use super::{Context, Opened, archive, complete};
use crate::render::units::DIGITS;

/// The session of a command about one.
#[derive(Debug, clap::Args)]
pub(crate) struct About {
    /// The session's id, title or file [default: newest of this folder]
    #[arg(value_name = "SESSION", add = complete::sessions())]
    session: Option<OsString>,

    /// The session, where a word would be ambiguous
    #[arg(short = 's', long = "session", value_name = "SESSION", add = complete::sessions())]
    named: Option<OsString>,
}

/// The help of the session for a command about all of them unless it names one.
pub(crate) const ONE_OR_ALL: &str = "The session's id, title or file [default: all sessions]";

impl About {
    /// Returns the named session.
    pub(crate) fn wanted(&self) -> Result<Option<&OsStr>, CommandError> {
        one(self.session.as_deref(), self.named.as_deref())
    }

    /// Returns the words after the first, if the first cannot be a branch name and names the session.
    pub(crate) fn behind<'w>(
        &'w self,
        context: &mut Context,
        first: &OsStr,
        second: Option<&'w OsStr>,
    ) -> Option<(Option<&'w OsStr>, Option<&'w OsStr>)> {
        let is_name = first.to_str().is_some_and(verbs::is_branch_name);
        let mut is_session = || is_session(context, Noun::Place, first);
        let is_alone = self.named.as_deref().is_none_or(|named| named == first);
        (is_alone && !is_name && is_session()).then_some((second, self.session.as_deref()))
    }
}

pub(crate) fn one<'w>(
    word: Option<&'w OsStr>,
    named: Option<&'w OsStr>,
) -> Result<Option<&'w OsStr>, CommandError> {
    match (word, named) {
        (Some(word), Some(named)) if word != named => Err(two_sessions(word, named)),
        (word, named) => Ok(word.or(named)),
    }
}

/// Returns the error for a session given both as a word and with `-s`.
fn two_sessions(word: &OsStr, named: &OsStr) -> CommandError {
    let error =
        anyhow!("you named two sessions: {}, and {} with -s", word.display(), named.display());
    CommandError::user(error).hinted(Hint::sessions())
}

/// What a word may name in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noun {
    /// An entry, or a checkpoint's number.
    Place,
    /// A turn, a step or a range of them. It is recognised by its form alone.
    Passage,
    /// A branch.
    Branch,
}

impl Noun {
    /// Formats a number of these nouns.
    fn counted(self, most: usize) -> String {
        let (one, many) = match self {
            Self::Place | Self::Passage => ("place", "places"),
            Self::Branch => ("branch", "branches"),
        };
        counted(most as u64, one, many)
    }

    fn is_in(self, opened: &Opened, word: &str) -> bool {
        let Ok(session) = opened.at() else { return false };
        match self {
            Self::Place | Self::Passage => verbs::find_passage(&session, word).is_ok(),
            Self::Branch => session.state.branches.contains_key(word),
        }
    }

    /// Returns true if a word's form allows this noun.
    fn may_be(self, word: &OsStr) -> bool {
        self != Self::Passage || word.to_str().is_some_and(verbs::is_passage)
    }
}

/// A way to read words.
struct Reading<'w> {
    nouns: Vec<&'w OsStr>,
    session: Option<&'w OsStr>,
}

/// The words of a command: the nouns, and the session.
#[derive(Debug)]
pub(crate) struct Words<'w> {
    pub(crate) nouns: Vec<&'w str>,
    pub(crate) session: Option<&'w OsStr>,
}

impl Context {
    /// Tells the words of a command apart; `count` is how many nouns it takes.
    pub(crate) fn words<'w>(
        &mut self,
        noun: Noun,
        count: RangeInclusive<usize>,
        nouns: &[Option<&'w OsStr>],
        about: &'w About,
    ) -> Result<Words<'w>, CommandError> {
        let nouns = nouns.iter().copied().flatten();
        let mut words: Vec<&OsStr> = nouns.chain(about.session.as_deref()).collect();
        let mut named = about.named.as_deref();
        for word in &mut words {
            if let Some((session, place)) = split(&self.env, word) {
                if let Some(named) = named.filter(|named| *named != session) {
                    return Err(two_sessions(session, named));
                }
                (named, *word) = (Some(session), place);
            }
        }
        let is_alone = words.len() == 1 && noun != Noun::Passage;
        let is_place = |word: &OsStr| {
            noun.may_be(word) && (is_place_only(word) || is_alone && is_number(word))
        };
        let split = |n: usize| match words.as_slice() {
            // The session is the last word, or the first, or none of them.
            [nouns @ .., last] if n == 1 => {
                Some(Reading { nouns: nouns.to_vec(), session: Some(*last) })
            }
            // A number that comes first is a place.
            [first, nouns @ ..] if n == 2 && !nouns.is_empty() && !is_number(first) => {
                Some(Reading { nouns: nouns.to_vec(), session: Some(*first) })
            }
            _ if n == 0 => Some(Reading { nouns: words.clone(), session: None }),
            _ => None,
        };
        let readings = (0..3).filter_map(split).filter(|it| {
            count.contains(&it.nouns.len())
                && !it.session.is_some_and(is_place)
                && it.nouns.iter().all(|word| noun.may_be(word))
        });
        let mut readings: Vec<Reading<'_>> = readings.collect();
        if let Some(named) = named {
            // With -s, no other word is a session, unless it is the same again.
            readings.retain(|it| it.session.is_none_or(|session| session == named));
            readings.sort_by_key(|it| it.session.is_none());
            readings.truncate(1);
            for reading in &mut readings {
                reading.session = Some(named);
            }
            if readings.is_empty() {
                let word = words.last().copied().unwrap_or_default();
                return Err(two_sessions(word, named));
            }
        } else if let ([word], 1) = (words.as_slice(), *count.start()) {
            refuse_session_alone(self, noun, word)?;
        }
        if readings.len() > 1 {
            let fits = readings.iter().position(|reading| fits(self, noun, reading));
            readings.rotate_left(fits.unwrap_or_default());
        }
        let Some(Reading { nouns, session }) = readings.into_iter().next() else {
            let words: Vec<_> = words.iter().map(|word| word.display().to_string()).collect();
            let words = words.join(" ");
            let (verb, most) = (&self.verb, noun.counted(*count.end()));
            let error =
                anyhow!("{verb} takes {most} and a session, but none of {words:?} is a session");
            let help = Line::new(self.verb.as_str()).flag("help").to("see the help");
            return Err(CommandError::user(error).hinted(help));
        };
        let nouns = nouns.into_iter().map(text).collect::<Result<_, _>>()?;
        Ok(Words { nouns, session })
    }
}

/// Refuses a session where a place is required.
fn refuse_session_alone(
    context: &mut Context,
    noun: Noun,
    word: &OsStr,
) -> Result<(), CommandError> {
    if is_place_only(word)
        || is_number(word)
        || fits(context, noun, &Reading { nouns: vec![word], session: None })
    {
        return Ok(());
    }
    let is_session = is_session(context, noun, word);
    let error = || {
        let list = match noun {
            Noun::Branch => Line::new("branch"),
            _ => Line::new("log").flag("checkpoints"),
        };
        let hint = list.option("session", word).to("list the places in that session");
        let word = word.display();
        CommandError::user(anyhow!("{word} is a session; name a place in that session"))
            .hinted(hint)
    };
    if is_session { Err(error()) } else { Ok(()) }
}

fn is_session(context: &mut Context, noun: Noun, word: &OsStr) -> bool {
    fits(context, noun, &Reading { nouns: Vec::new(), session: Some(word) })
}

/// Returns whether a reading names a session that is there, and what is in it.
fn fits(context: &mut Context, noun: Noun, reading: &Reading<'_>) -> bool {
    let found = match archive::session_file(&context.env, reading.session) {
        Some(path) => archive::peek(&context.env, &path).ok(),
        None => context.open_reader().ok().and_then(|archive| {
            let session = archive::lookup(&context.env, &archive, reading.session).ok()?;
            Some(Opened { archive, session })
        }),
    };
    found.is_some_and(|opened| {
        let is_noun = |word: &&OsStr| word.to_str().is_some_and(|it| noun.is_in(&opened, it));
        reading.nouns.iter().all(is_noun)
    })
}

/// Splits a word into a session and a place in it, unless it is a file name.
fn split<'w>(env: &Env, word: &'w OsStr) -> Option<(&'w OsStr, &'w OsStr)> {
    let (session, place) = verbs::split_place(word.to_str()?)?;
    let is_file = env.current_dir.join(word).exists();
    (!is_file).then_some((OsStr::new(session), OsStr::new(place)))
}

/// Returns a word as text, or an error.
pub(crate) fn text(word: &OsStr) -> Result<&str, CommandError> {
    word.to_str().ok_or_else(|| CommandError::user(anyhow!("{} is not text", word.display())))
}

/// Returns true if a word can be a place but not a session.
pub(crate) fn is_place_only(word: &OsStr) -> bool {
    word.to_str().is_some_and(|word| {
        word.starts_with('@')
            || word == "HEAD"
            || (word.contains('~') && !word.starts_with('~'))
            || (word.contains("..") && verbs::is_passage(word))
    })
}

/// Returns true if a word is a number, and too short for an id as lists show it, which may consist of digits.
fn is_number(word: &OsStr) -> bool {
    let word = word.as_encoded_bytes();
    word.len() < DIGITS && word.iter().all(u8::is_ascii_digit)
}
