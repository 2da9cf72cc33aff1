//! Advice: the next steps after each error of a verb.
//!
//! A list of what could have been meant is a field of its error, and a face shows it as it shows such things.

use std::{io, path::Path};

use crate::{
    context::recover::Unrecovered,
    live::{Denied, Holder},
    ops::OpsError,
    report::{Hint, Line},
    session::{Elsewhere, Gap, SessionError},
    settings::Exclusion,
    store::StoreError,
    sync::{self, NoPlace, SyncError, Vain},
};

/// How many names a hint lists.
const LISTED: usize = 8;
/// How much of a checkpoint's words a hint shows.
const WORDS: usize = 60;

impl OpsError {
    /// Returns what can be done next.
    pub fn hints(&self) -> Vec<Hint> {
        match self {
            Self::Store(error) => after_store(error),
            Self::Session(error) => after_session(error),
            Self::Sync(error) => after_sync(error),
            Self::NoBackup { .. } => damage(),
            Self::Overtaken => vec!["try again".into()],
            Self::NoBranch { branches, .. } => {
                vec![Line::about("branch").to(format!("{}; list them", there_are(branches)))]
            }
            Self::CurrentBranch(_) => {
                vec![Line::about("branch").to("see the others, and make one of them current first")]
            }
            Self::BranchExists(name) => vec![Line::about("switch").with(name).to("go to it")],
            Self::NoOperation(_) | Self::NotUndoable { .. } => {
                vec![Line::about("undo").flag("list").to("list the operations")]
            }
            Self::NotKept { wanted, .. } => {
                vec![Line::about("revert").with(wanted).to("to go back there without --keep")]
            }
            Self::NoFile { among, .. } => {
                let among: Vec<String> = among
                    .iter()
                    .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
                    .collect();
                let names = there_are(&among);
                vec![Line::about("export").flag("list").to(format!("{names}; list them"))]
            }
            Self::NoContainer { .. } => {
                vec!["write it as it is, without --container and under another name".into()]
            }
            Self::NoGeneration { newest, .. } => {
                let words = format!("there are 1 to {newest}; list them");
                vec![Line::about("export").flag("list").to(words)]
            }
            Self::Window { .. } => vec![Hint::settings(
                "name another one with --window, or set window.block in config.toml",
            )],
            Self::Unrecovered(error) => after_recovery(error),
            Self::Summary { strict, .. } => {
                let extract =
                    Line::about("compact").option("summarizer", "extract").to("without a model");
                let statistics = "or let statistics stand for a summary: leave out --strict";
                [extract].into_iter().chain(strict.then(|| statistics.into())).collect()
            }
            Self::Hook { .. } => vec!["the command is compaction.before in config.toml".into()],
            Self::Unset { .. } => {
                let words =
                    "mend it, or put it right in the agent itself, and run the command again";
                vec![words.into()]
            }
            Self::TooShort { .. } => {
                vec!["give more of the text around it, as it stands there".into()]
            }
            Self::NothingAsked => vec!["say something: name a PROMPT".into()],
            Self::BadName { .. } => {
                vec![Line::new("branch").flag("help").to("a name such as second-try will do")]
            }
            Self::Model(error) if error.fault.is_transient() => vec!["try again later".into()],
            Self::Model(_) => vec![Hint::settings("what a provider is sent stands in config.toml")],
        }
    }
}

/// Returns what can be done where a session does not have what was asked for.
fn after_session(error: &SessionError) -> Vec<Hint> {
    use SessionError as E;
    match error {
        E::NoSession(_) | E::NoSessionHere(_) => {
            let [import, _] = beginnings();
            vec![Hint::sessions(), import]
        }
        E::AmbiguousSession { .. } => vec!["type more of one of these".into()],
        E::AmbiguousEntry { wanted, matches } => {
            let more = format!("type more of one of these: {}", listed(matches)).into();
            let is_number = wanted.parse::<u64>().is_ok();
            let checkpoints =
                Line::about("log").flag("checkpoints").to("a checkpoint is @N; list them");
            is_number.then_some(checkpoints).into_iter().chain([more]).collect()
        }
        E::NoEntry(wanted) => {
            let log = Line::about("log").to("list the entries with their ids");
            misspelling(wanted).map(Into::into).into_iter().chain([log]).collect()
        }
        E::Start => vec![Line::about("log").to("list the entries with their ids")],
        E::NoCheckpoint { nearest, .. } if nearest.is_empty() => {
            vec![Line::about("checkpoint").to("there is no checkpoint yet; set one")]
        }
        E::NoCheckpoint { wanted, .. } if wanted.parse::<i128>().is_err() => vec![
            "the number of a checkpoint follows @, as in @2".into(),
            Line::about("log").flag("checkpoints").to("list the checkpoints"),
        ],
        E::NoCheckpoint { nearest, .. } => {
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
        E::Apart { .. } => vec![Line::about("graph").to("see which turns are on one path")],
        E::NoStep { wanted, .. } => {
            let turn = wanted.split_once('.').map_or(wanted.as_str(), |(turn, _)| turn);
            vec![Line::about("show").with(turn).to("see all of it")]
        }
        _ => Vec::new(),
    }
}

/// Returns what can be done about a session and its agent's file that could not be brought to agree.
fn uncaught(session: &str, why: &SyncError) -> Vec<Hint> {
    let first = match why {
        SyncError::Loaded { holders, .. } => {
            let why =
                "end the agent: what a command is still to write there is written by the next one";
            let ways = holders.iter().map(|holder| holder.way_to_end().into());
            ways.chain([why.into()]).collect()
        }
        SyncError::OutOfReach { .. } | SyncError::Behind { .. } => Vec::new(),
        why => after_sync(why),
    };
    let_go(session, first)
}

/// Returns what can be done about the processes that have a session open.
fn loaded(holders: &[Holder], is_final: bool) -> Vec<Hint> {
    let why = if is_final {
        "close it there and run this again: it would continue with what is taken out, and write it again"
    } else {
        "close it there and run this again: it would not see the change, and continue from what it knows"
    };
    let hidden = holders.iter().filter(|holder| holder.terminal.is_none());
    let ways = hidden.map(|holder| holder.way_to_end().into());
    let is_guess = !is_final && !holders.is_empty() && holders.iter().all(|one| one.how.is_guess());
    let force = is_guess.then(|| "if it has another session open, insist with --force".into());
    [why.into()].into_iter().chain(ways).chain(force).collect()
}

/// Returns what can be done where files and store do not agree.
fn after_sync(error: &SyncError) -> Vec<Hint> {
    use SyncError as E;
    match error {
        E::Held { .. } => vec!["try again, or wait longer with --wait SECONDS".into()],
        E::Loaded { holders, is_final, .. } => loaded(holders, *is_final),
        E::Uncaught { session, why, .. } => uncaught(session, why),
        E::Another { path, session, .. } => vec![
            Line::new("status")
                .option("session", session)
                .to("to change it where it goes on, name it by its id or by that file, as here"),
            Line::new("attach").with(path).to("to have it go on in the file that you named"),
        ],
        E::Left { by, .. } => {
            vec![
                Line::new("import").with(by).to("take that file in, and the session goes on there"),
            ]
        }
        E::Unread(Elsewhere { gap: Gap::Parent(_), .. }) => {
            vec!["messages can be appended, and turns of the fork itself can be left".into()]
        }
        E::Unread(_) => {
            vec![Line::new("import").flag("help").to("if the file is anywhere, take it in")]
        }
        E::Unlisted { .. } => {
            vec!["run this command in the folder in which the session works".into()]
        }
        E::OutOfReach { .. } => vec![
            Line::about("export")
                .flag("list")
                .to("list the states that can be written to a file of their own"),
        ],
        E::NoFormat(_) | E::UnreadAgent { .. } => {
            vec![Line::new("import").flag("help").to("which agents' sessions undertext reads")]
        }
        E::Excluded { .. } | E::LeftOut { by: Exclusion::Unread(_), .. } => {
            vec![Hint::settings("")]
        }
        E::LeftOut { session, .. } => vec![
            Line::new("attach")
                .option("session", session)
                .flag("off")
                .to("change it in the store alone, and leave the file alone from now on"),
            Hint::settings(""),
        ],
        E::KeptOut => vec!["say it without that: redact and forget keep it out for ever".into()],
        E::Fixed { .. } => vec![
            "nothing is changed; what names a session, a file or a record stays, so change the key itself".into(),
        ],
        E::Unredacted(error) => match error.as_ref() {
            E::Store(error) => after_store(error),
            error => after_sync(error),
        },
        E::Nothing(Vain::Undo | Vain::Redo) => {
            vec![Line::about("undo").flag("list").to("list the operations")]
        }
        E::Compressed(_) => vec![
            "the session follows it again once its agent, or `zstd -d`, has unpacked it there and it is taken in".into(),
        ],
        E::Nothing(Vain::Attach) => {
            vec![Line::about("restore").to("put back the files of it that are gone")]
        }
        E::Ahead { .. } => {
            vec![Line::new("doctor").flag("fix").to("take in what the live file still holds")]
        }
        E::Behind { .. } => {
            vec!["nothing is lost; the next command that changes the session tries again".into()]
        }
        E::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => vec![full()],
        E::Denied { session, path, why } => denied(session, path, why),
        E::NoPlace { why: NoPlace::Taken, .. } => vec![elsewhere()],
        E::NoPlace { why: NoPlace::AgentsFile, .. } => vec![
            "name another file: revert, switch and restore write an agent's own, and keep what it held".into(),
        ],
        E::Foreign { owner, .. } => vec![
            format!("run this as {owner}, without sudo").into(),
            "reading commands still work".into(),
        ],
        _ => Vec::new(),
    }
}

/// Returns what can be done about a file that may not be written.
fn denied(session: &str, path: &Path, why: &Denied) -> Vec<Hint> {
    match why {
        Denied::Outside => vec![
            Line::new("attach").with(path).to("if it is the session's own file"),
            Line::new("attach")
                .option("session", session)
                .flag("off")
                .to("or leave it alone from now on"),
        ],
        Denied::Gone => vec![
            "if its agent keeps sessions there, make the folder in which it does, and try again"
                .into(),
            Line::new("export")
                .option("session", session)
                .option("out", path.file_name().unwrap_or_default())
                .to("or write it to a file in this folder"),
        ],
        Denied::InPlace(_) => vec![
            "move it away: the next command that changes the session writes the file again".into(),
        ],
        Denied::Io(error) if error.kind() == io::ErrorKind::StorageFull => {
            let_go(session, vec![full()])
        }
        _ => let_go(session, Vec::new()),
    }
}

/// Returns what can be done about a file that cannot be read or written, and how it is let go.
fn let_go(session: &str, first: Vec<Hint>) -> Vec<Hint> {
    let or = if first.is_empty() { "" } else { "or " };
    let off = Line::new("attach").option("session", session).flag("off");
    let off = off.to(format!("{or}leave the file alone from now on"));
    first.into_iter().chain([off]).collect()
}

/// Returns what can be done about damage.
fn damage() -> Vec<Hint> {
    vec![Line::new("verify").to("see what is damaged"), Hint::mend()]
}

/// Returns what can be done where the store refuses.
fn after_store(error: &StoreError) -> Vec<Hint> {
    use StoreError as E;
    match error {
        E::Forgotten { .. } => {
            vec![
                Line::new("doctor").to("read what that means and what can be done"),
                Line::new("doctor").flag("fix").to("take in what live files still hold of it"),
            ]
        }
        E::Old { .. } => vec![
            Line::new("import")
                .to("once that file is moved away, take in the sessions of your agents again"),
        ],
        E::Newer { .. } | E::NewerFacts { .. } => {
            vec!["update undertext, or name another store with --store".into()]
        }
        E::Absent { path } if sync::has_others(path) => vec![elsewhere()],
        E::Absent { .. } => beginnings().into(),
        E::Foreign { .. } => vec![
            Line::new("doctor").to("look at its folder"),
            "or name another folder with --store".into(),
        ],
        E::ReadOnly { path } if path.exists() => vec!["reading commands still work".into()],
        E::ReadOnly { .. } => vec!["name another folder with --store".into()],
        E::Full => vec![full()],
        E::Corrupt { .. } => damage(),
        E::Refused(_) => vec![Line::new("verify").to("see whether anything is damaged")],
        E::Busy | E::Conflict | E::Replaced { .. } | E::Unsure { .. } => vec!["try again".into()],
        E::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => vec![full()],
        E::Io { .. } | E::Database(_) => {
            vec![Line::new("doctor").to("look at the folder of the store")]
        }
    }
}

/// Returns what can be done where a session could not be brought under its window.
fn after_recovery(error: &Unrecovered) -> Vec<Hint> {
    match error {
        Unrecovered::Blocked { .. } => vec![Hint::settings(
            "name another one with --window, or set window.block in config.toml",
        )],
        Unrecovered::DoesNotFit { largest, .. } => {
            let largest = largest.first().map(|large| {
                Line::about("show").with(&large.entry).to("see what the largest entry holds")
            });
            let rest = [
                Line::about("log").flag("checkpoints").to("list the places to go back to"),
                "or take a model with a larger window".into(),
            ];
            largest.into_iter().chain(rest).collect()
        }
    }
}

/// Returns what can be done about a folder that is no store's.
fn elsewhere() -> Hint {
    "name the folder of a store with --store, or one that is empty or not there yet".into()
}

/// Returns the ways to a first session.
fn beginnings() -> [Hint; 2] {
    [
        Line::new("import").to("take in the sessions of your agents"),
        Line::new("new").to("begin a session of undertext's own"),
    ]
}

/// Returns the hint after a disk was full.
fn full() -> Hint {
    "nothing is lost; make room and try again".into()
}

/// Returns the beginning of a text, with a sign where more of it follows.
pub fn shortened(text: &str) -> String {
    match text.char_indices().nth(WORDS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Returns the words that list the names that there are.
fn there_are(names: &[String]) -> String {
    format!("there {} {}", if names.len() == 1 { "is" } else { "are" }, listed(names))
}

/// Returns a place as it is spelt here, of one that was typed in the manner of git.
pub fn spelling(wanted: &str) -> String {
    let base = wanted.trim_end_matches('^');
    match wanted.len() - base.len() {
        0 => wanted.to_owned(),
        n => format!("{base}~{n}"),
    }
}

/// Returns what is not right in the spelling of a place.
fn misspelling(wanted: &str) -> Option<String> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (base, back) = wanted.split_once('~').unwrap_or((wanted, ""));
    if is_number(wanted) {
        Some(format!("checkpoint {wanted} is typed @{wanted}"))
    } else if let Some((one, other)) = wanted.split_once("..") {
        Some(format!("two places are two words: {one} {}", other.trim_start_matches('.')))
    } else if wanted.ends_with('^') {
        Some(format!("entries are counted back with ~: {}", spelling(wanted)))
    } else if base != "HEAD" && base.eq_ignore_ascii_case("head") {
        Some("the end of the current branch is typed HEAD".to_owned())
    } else if base == wanted {
        None
    } else if base.is_empty() {
        Some("a place comes before ~, as in HEAD~2".to_owned())
    } else if is_number(back) {
        Some(format!("{base} has fewer entries before it, or is not there"))
    } else {
        Some("after ~ comes how many entries to go back, as in HEAD~2".to_owned())
    }
}

/// Lists the first of several names.
fn listed(names: &[String]) -> String {
    let more = if names.len() > LISTED { ", ..." } else { "" };
    let names: Vec<&str> = names.iter().take(LISTED).map(String::as_str).collect();
    format!("{}{more}", names.join(", "))
}
