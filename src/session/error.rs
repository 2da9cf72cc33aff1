//! Errors of reading a session.

use std::{error::Error, path::PathBuf};

use crate::{
    model::{
        CheckpointNumber,
        hint::{Hint, Line},
    },
    store::{ErrorKind, Listed, StoreError, beginnings},
    wire::Failure,
};

/// How many names a hint lists.
const LISTED: usize = 8;
/// How many characters of a checkpoint's prompt a hint shows.
const WORDS: usize = 60;

/// The session cannot be read, or does not have what was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no such session.
    #[error("no session matches {0:?}")]
    NoSession(String),
    /// No session works in this folder.
    #[error("there is no session in {0}")]
    NoSessionHere(PathBuf),
    /// Several sessions match.
    #[error("{wanted:?} matches {} sessions", .matches.len())]
    AmbiguousSession {
        /// What was asked for.
        wanted: String,
        /// The sessions.
        matches: Vec<Listed>,
    },
    /// There is no such entry.
    #[error("no entry matches {0:?}")]
    NoEntry(String),
    /// The place is before the first entry.
    #[error("that place is before the first entry of the session")]
    Start,
    /// Several entries match.
    #[error("{wanted:?} matches {} entries", .matches.len())]
    AmbiguousEntry {
        /// What was asked for.
        wanted: String,
        /// Their ids.
        matches: Vec<String>,
    },
    /// The ends of a range are not on one path.
    #[error("these places are on different branches: {}", .ends.iter().map(|(end, on)| format!("{end} is on {on}")).collect::<Vec<_>>().join(", "))]
    Apart {
        /// Each end, and the branch it is on.
        ends: Vec<(String, String)>,
    },
    /// The turn has no such step.
    #[error("there is no {wanted}: the last step of that turn is {last}")]
    NoStep {
        /// What was asked for.
        wanted: String,
        /// The last step of the turn.
        last: String,
    },
    /// There is no such checkpoint.
    #[error("no checkpoint matches {wanted:?}")]
    NoCheckpoint {
        /// What was asked for.
        wanted: String,
        /// The nearest checkpoints, with their prompts.
        nearest: Vec<(CheckpointNumber, String)>,
    },
    /// The session has a format that is unknown here.
    #[error("unknown agent format {0:?}")]
    UnknownFormat(String),
    /// The output could not be written.
    #[error("cannot write the output")]
    Write {
        /// How it failed.
        #[source]
        source: std::io::Error,
    },
}

impl From<Failure> for SessionError {
    /// Converts an error of a graph back to the error it wraps.
    fn from(failure: Failure) -> Self {
        match failure.downcast().map_err(<dyn Error + Send + Sync>::downcast) {
            Ok(error) => *error,
            Err(Ok(error)) => Self::Store(*error),
            Err(Err(failure)) => Self::Store(StoreError::Database(failure)),
        }
    }
}

impl SessionError {
    /// Returns the next steps.
    pub fn hints(&self) -> Vec<Hint> {
        match self {
            Self::NoSession(_) | Self::NoSessionHere(_) => {
                let [import, _] = beginnings();
                vec![Hint::sessions(), import]
            }
            Self::AmbiguousSession { .. } => {
                vec!["type more characters of the id or the title".into()]
            }
            Self::AmbiguousEntry { wanted, matches } => {
                let more =
                    format!("type more characters of one of these: {}", listed(matches)).into();
                let is_number = wanted.parse::<u64>().is_ok();
                let checkpoints = Line::about("log")
                    .flag("checkpoints")
                    .to("for checkpoint N, type @N; list them");
                is_number.then_some(checkpoints).into_iter().chain([more]).collect()
            }
            Self::NoEntry(wanted) => {
                let log = Line::about("log").to("list the entries with their ids");
                misspelling(wanted).map(Into::into).into_iter().chain([log]).collect()
            }
            Self::Start => vec![Line::about("log").to("list the entries with their ids")],
            Self::NoCheckpoint { nearest, .. } if nearest.is_empty() => {
                vec![Line::about("checkpoint").to("there are no checkpoints yet; set one")]
            }
            Self::NoCheckpoint { wanted, .. } if wanted.parse::<i128>().is_err() => vec![
                "write a checkpoint as @ and its number, such as @2".into(),
                Line::about("log").flag("checkpoints").to("list the checkpoints"),
            ],
            Self::NoCheckpoint { nearest, .. } => {
                let nearest = nearest.iter().map(|(n, words)| {
                    match shortened(words.lines().next().unwrap_or_default()) {
                        words if words.is_empty() => format!("@{n}"),
                        words => format!("@{n} {words:?}"),
                    }
                });
                let nearest: Vec<String> = nearest.collect();
                vec![
                    format!("the nearest are {}", nearest.join(", ")).into(),
                    Line::about("log").flag("checkpoints").to("list the checkpoints"),
                ]
            }
            Self::Apart { .. } => {
                vec![Line::about("graph").to("see which turns are on the same branch")]
            }
            Self::NoStep { wanted, .. } => {
                let turn = wanted.split_once('.').map_or(wanted.as_str(), |(turn, _)| turn);
                vec![Line::about("show").with(turn).to("see the whole turn")]
            }
            Self::Store(error) => error.hints(),
            _ => Vec::new(),
        }
    }

    /// Returns what a caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) => error.kind(),
            Self::NoSession(_)
            | Self::NoSessionHere(_)
            | Self::NoEntry(_)
            | Self::NoCheckpoint { .. }
            | Self::NoStep { .. } => ErrorKind::Absent,
            Self::AmbiguousSession { .. }
            | Self::AmbiguousEntry { .. }
            | Self::Start
            | Self::Apart { .. } => ErrorKind::User,
            Self::UnknownFormat(_) | Self::Write { .. } => ErrorKind::Failed,
        }
    }
}

/// Cuts a text to the length of a hint, with an ellipsis if anything was cut.
pub fn shortened(text: &str) -> String {
    match text.char_indices().nth(WORDS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Translates git's spelling of a place into ours: `HEAD^^` becomes `HEAD~2`.
pub fn spelling(wanted: &str) -> String {
    let base = wanted.trim_end_matches('^');
    match wanted.len() - base.len() {
        0 => wanted.to_owned(),
        n => format!("{base}~{n}"),
    }
}

/// Returns what is wrong with the spelling of a place.
fn misspelling(wanted: &str) -> Option<String> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (base, back) = wanted.split_once('~').unwrap_or((wanted, ""));
    if is_number(wanted) {
        Some(format!("for checkpoint {wanted}, type @{wanted}"))
    } else if let Some((one, other)) = wanted.split_once("..") {
        Some(format!("separate two places with a space: {one} {}", other.trim_start_matches('.')))
    } else if wanted.ends_with('^') {
        Some(format!("use ~ to count turns back: {}", spelling(wanted)))
    } else if base != "HEAD" && base.eq_ignore_ascii_case("head") {
        Some("type HEAD for the end of the current branch".to_owned())
    } else if base == wanted {
        None
    } else if base.is_empty() {
        Some("put a place before ~, as in HEAD~2".to_owned())
    } else if is_number(back) {
        Some(format!("{base} does not exist, or has fewer turns before it"))
    } else {
        Some("put the number of turns to go back after ~, as in HEAD~2".to_owned())
    }
}

/// Lists the first [`LISTED`] names.
pub(crate) fn listed(names: &[String]) -> String {
    let more = if names.len() > LISTED { ", ..." } else { "" };
    let names: Vec<&str> = names.iter().take(LISTED).map(String::as_str).collect();
    format!("{}{more}", names.join(", "))
}
