//! Advice: the hints for each error of a verb.
//!
//! Candidates (the names you could have meant) are a field of the error itself; each interface formats them in its own way.

use std::{io, path::Path};

use crate::{
    archive::{self, NoPlace, SyncError, Vain},
    context::recover::Unrecovered,
    live::{Denied, Holder},
    report::{Hint, Line},
    session::{Elsewhere, Gap, SessionError},
    settings::Exclusion,
    store::{BundleError, StoreError},
    verbs::OpsError,
};

/// How many names a hint lists.
const LISTED: usize = 8;
/// How many characters of a checkpoint's prompt a hint shows.
const WORDS: usize = 60;

impl OpsError {
    /// Returns hints for what to do next.
    pub fn hints(&self) -> Vec<Hint> {
        match self {
            Self::Store(error) => after_store(error),
            Self::Session(error) => after_session(error),
            Self::Sync(error) => after_sync(error),
            Self::NoBundle(_) => damage(),
            Self::Bundle { why: BundleError::Newer(_), .. } => vec!["update undertext".into()],
            Self::Bundle { why: BundleError::Short | BundleError::Damaged(_), .. } => {
                vec!["copy the file again from where it was written, or use another backup".into()]
            }
            Self::Bundle { .. } => {
                vec![Line::new("import").flag("help").to("see what can be imported")]
            }
            Self::Overtaken => vec!["try again".into()],
            Self::NoBranch { branches, .. } => {
                vec![Line::about("branch").to(format!("{}; list them", there_are(branches)))]
            }
            Self::CurrentBranch(_) => {
                vec![Line::about("branch").to("switch to another branch first; list the branches")]
            }
            Self::BranchExists(name) => {
                vec![Line::about("switch").with(name).to("to switch to it")]
            }
            Self::NoOperation(_) | Self::NotUndoable { .. } => {
                vec![Line::about("undo").flag("list").to("list the operations")]
            }
            Self::NotKept { wanted, .. } => {
                vec![
                    Line::about("revert")
                        .with(wanted)
                        .to(format!("to go back to {wanted} itself, leave out --keep")),
                ]
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
                vec!["leave out --container, and name a file that does not end in .zst".into()]
            }
            Self::NoGeneration { newest, .. } => {
                let words = format!("generations 1 to {newest} exist; list them");
                vec![Line::about("export").flag("list").to(words)]
            }
            Self::Window { .. } => vec![Hint::settings(
                "set another window with --window, or lower window.block in config.toml",
            )],
            Self::Unrecovered(error) => after_recovery(error),
            Self::Summary { strict, .. } => {
                let extract = Line::about("compact")
                    .option("summarizer", "extract")
                    .to("to compact without a model");
                let statistics = "or leave out --strict to accept statistics instead of a summary";
                [extract].into_iter().chain(strict.then(|| statistics.into())).collect()
            }
            Self::Hook { .. } => vec!["the setting is compaction.before in config.toml".into()],
            Self::Unset { .. } => {
                let words = "fix the file, or change it in the agent, then run the command again";
                vec![words.into()]
            }
            Self::TooShort { .. } => {
                vec!["include some of the text around it, exactly as it appears there".into()]
            }
            Self::SecretReason => vec!["give a reason without it: reasons are kept".into()],
            Self::NothingAsked => vec!["give a PROMPT".into()],
            Self::BadName { .. } => {
                vec![
                    Line::new("branch")
                        .flag("help")
                        .to("a name such as second-try is valid; see the help"),
                ]
            }
            Self::Model(error) if error.fault.is_transient() => vec!["try again later".into()],
            Self::Model(_) => vec![Hint::settings("check the provider's settings in config.toml")],
        }
    }
}

/// Returns hints for something that a session does not have.
fn after_session(error: &SessionError) -> Vec<Hint> {
    use SessionError as E;
    match error {
        E::NoSession(_) | E::NoSessionHere(_) => {
            let [import, _] = beginnings();
            vec![Hint::sessions(), import]
        }
        E::AmbiguousSession { .. } => vec!["type more characters of the id or the title".into()],
        E::AmbiguousEntry { wanted, matches } => {
            let more = format!("type more characters of one of these: {}", listed(matches)).into();
            let is_number = wanted.parse::<u64>().is_ok();
            let checkpoints =
                Line::about("log").flag("checkpoints").to("for checkpoint N, type @N; list them");
            is_number.then_some(checkpoints).into_iter().chain([more]).collect()
        }
        E::NoEntry(wanted) => {
            let log = Line::about("log").to("list the entries with their ids");
            misspelling(wanted).map(Into::into).into_iter().chain([log]).collect()
        }
        E::Start => vec![Line::about("log").to("list the entries with their ids")],
        E::NoCheckpoint { nearest, .. } if nearest.is_empty() => {
            vec![Line::about("checkpoint").to("there are no checkpoints yet; set one")]
        }
        E::NoCheckpoint { wanted, .. } if wanted.parse::<i128>().is_err() => vec![
            "write a checkpoint as @ and its number, such as @2".into(),
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
        E::Apart { .. } => vec![Line::about("graph").to("see which turns are on the same branch")],
        E::NoStep { wanted, .. } => {
            let turn = wanted.split_once('.').map_or(wanted.as_str(), |(turn, _)| turn);
            vec![Line::about("show").with(turn).to("see the whole turn")]
        }
        _ => Vec::new(),
    }
}

/// Returns hints for a session that could not catch up with its live file.
fn uncaught(session: &str, why: &SyncError) -> Vec<Hint> {
    let first = match why {
        SyncError::Loaded { holders, .. } => {
            let why = "end the agent; the next command then finishes the write";
            let ways = holders.iter().map(|holder| holder.way_to_end().into());
            ways.chain([why.into()]).collect()
        }
        SyncError::OutOfReach { .. } | SyncError::Behind { .. } => Vec::new(),
        why => after_sync(why),
    };
    let_go(session, first)
}

/// Returns hints for a session that other processes have open.
fn loaded(holders: &[Holder], is_final: bool) -> Vec<Hint> {
    let why = if is_final {
        "close the session there and run this again; while it is open, the agent would write the redacted text back"
    } else {
        "close the session there and run this again; while it is open, the agent continues from memory and would not see the change"
    };
    let hidden = holders.iter().filter(|holder| holder.terminal.is_none());
    let ways = hidden.map(|holder| holder.way_to_end().into());
    let is_guess = !is_final && !holders.is_empty() && holders.iter().all(|one| one.how.is_guess());
    let force = is_guess.then(|| "if the agent has another session open there, add --force".into());
    [why.into()].into_iter().chain(ways).chain(force).collect()
}

/// Returns hints for an error between session files and the store.
fn after_sync(error: &SyncError) -> Vec<Hint> {
    use SyncError as E;
    match error {
        E::Held { .. } => vec!["try again, or wait longer with --wait SECONDS".into()],
        E::Loaded { holders, is_final, .. } => loaded(holders, *is_final),
        E::Uncaught { session, why, .. } => uncaught(session, why),
        E::Another { path, session, .. } => vec![
            Line::new("status")
                .option("session", session)
                .to("name the session by its id or by the file in which it continues, as in"),
            Line::new("attach").with(path).to("or make the session continue in the file that you named"),
        ],
        E::Left { by, .. } => {
            vec![
                Line::new("import").with(by).to("import the newer file to continue in it"),
            ]
        }
        E::Unread(Elsewhere { gap: Gap::Parent(_), .. }) => {
            vec!["you can still append messages, and revert turns of the fork itself".into()]
        }
        E::Unread(_) => {
            vec![Line::new("import").flag("help").to("if you have an intact copy of that file, import it")]
        }
        E::Unlisted { .. } => {
            vec!["run this command again in the session's folder".into()]
        }
        E::OutOfReach { .. } => vec![
            Line::about("export")
                .flag("list")
                .to("list the states that can be exported to a file"),
        ],
        E::NoFormat(_) | E::UnreadAgent { .. } => {
            vec![Line::new("import").flag("help").to("see which agents' sessions undertext reads")]
        }
        E::Excluded { .. } | E::LeftOut { by: Exclusion::Unread(_), .. } => {
            vec![Hint::settings("")]
        }
        E::LeftOut { session, .. } => vec![
            Line::new("attach")
                .option("session", session)
                .flag("off")
                .to("to change the session only in the store, tell undertext to leave the file alone"),
            Hint::settings(""),
        ],
        E::Unredacted(error) => match error.as_ref() {
            E::Store(error) => after_store(error),
            error => after_sync(error),
        },
        E::Nothing(Vain::Undo | Vain::Redo) => {
            vec![Line::about("undo").flag("list").to("list the operations")]
        }
        E::Compressed(_) => vec![
            "decompress the file with the agent or `zstd -d`, then import it; undertext will keep the session in sync with it again".into(),
        ],
        E::Nothing(Vain::Attach) => {
            vec![Line::about("restore").to("restore the session's deleted files")]
        }
        E::Ahead { .. } => {
            vec![Line::new("doctor").flag("fix").to("import what the session's file still contains")]
        }
        E::Behind { .. } => {
            vec!["nothing is lost; the next command that changes the session tries again".into()]
        }
        E::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => vec![full()],
        E::Denied { session, path, why } => denied(session, path, why),
        E::NoPlace { why: NoPlace::Taken, .. } => vec![elsewhere()],
        E::NoPlace { why: NoPlace::AgentsFile, .. } => vec![
            "name another file; to change an agent's own file, use revert, switch or restore, which keep the old content".into(),
        ],
        E::Foreign { owner, .. } => vec![
            format!("run this as {owner}, without sudo").into(),
            "commands that only read still work".into(),
        ],
        _ => Vec::new(),
    }
}

/// Returns hints for a file that must not be written.
fn denied(session: &str, path: &Path, why: &Denied) -> Vec<Hint> {
    match why {
        Denied::Outside => vec![
            Line::new("attach").with(path).to("if this is the session's own file, attach it"),
            Line::new("attach")
                .option("session", session)
                .flag("off")
                .to("or tell undertext to leave the file alone"),
        ],
        Denied::Gone => vec![
            "if the agent keeps sessions there, create the folder and try again".into(),
            Line::new("export")
                .option("session", session)
                .option("out", path.file_name().unwrap_or_default())
                .to("or write the session to a file in the current folder"),
        ],
        Denied::InPlace(_) => vec![
            "move it away; the next command that changes the session writes the file again".into(),
        ],
        Denied::Io(error) if error.kind() == io::ErrorKind::StorageFull => {
            let_go(session, vec![full()])
        }
        _ => let_go(session, Vec::new()),
    }
}

/// Appends to `first` the hint to detach the file.
fn let_go(session: &str, first: Vec<Hint>) -> Vec<Hint> {
    let or = if first.is_empty() { "" } else { "or " };
    let off = Line::new("attach").option("session", session).flag("off");
    let off = off.to(format!("{or}tell undertext to leave the file alone"));
    first.into_iter().chain([off]).collect()
}

/// Returns hints for a damaged store.
fn damage() -> Vec<Hint> {
    vec![Line::new("verify").to("see what is damaged"), Hint::mend()]
}

/// Returns hints for an error of the store.
fn after_store(error: &StoreError) -> Vec<Hint> {
    use StoreError as E;
    match error {
        E::Forgotten { .. } => {
            vec![
                Line::new("doctor").to("to see what this means and what you can do"),
                Line::new("doctor").flag("fix").to("to recover lost changes from session files"),
            ]
        }
        E::Old { .. } => vec![
            Line::new("import").to("move the store away, then import your agents' sessions again"),
        ],
        E::Newer { .. } | E::NewerFacts { .. } => {
            vec!["update undertext, or name another store with --store".into()]
        }
        E::Absent { path } if archive::has_others(path) => vec![elsewhere()],
        E::Absent { .. } => beginnings().into(),
        E::Foreign { .. } => vec![
            Line::new("doctor").to("check the store's folder"),
            "or name another folder with --store".into(),
        ],
        E::ReadOnly { path } if path.exists() => vec!["commands that only read still work".into()],
        E::ReadOnly { .. } => vec!["name another folder with --store".into()],
        E::Full => vec![full()],
        E::Corrupt { .. } => damage(),
        E::Refused(_) => vec![Line::new("verify").to("check the store for damage")],
        E::Busy | E::Conflict | E::Replaced { .. } | E::Unsure { .. } => vec!["try again".into()],
        E::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => vec![full()],
        E::Io { .. } | E::Database(_) => {
            vec![Line::new("doctor").to("check the store's folder")]
        }
    }
}

/// Returns hints for a session that could not be made to fit its window.
fn after_recovery(error: &Unrecovered) -> Vec<Hint> {
    match error {
        Unrecovered::Blocked { .. } => vec![Hint::settings(
            "set another window with --window, or lower window.block in config.toml",
        )],
        Unrecovered::DoesNotFit { largest, .. } => {
            let largest = largest.first().map(|large| {
                Line::about("show").with(&large.entry).to("see what is in the largest entry")
            });
            let rest = [
                Line::about("log").flag("checkpoints").to("list the turns that you can go back to"),
                "or use a model with a larger window".into(),
            ];
            largest.into_iter().chain(rest).collect()
        }
    }
}

/// Returns the hint for a folder that has no store.
fn elsewhere() -> Hint {
    "with --store, name a folder that has a store, is empty, or does not exist yet".into()
}

/// Returns the two ways to get a first session.
fn beginnings() -> [Hint; 2] {
    [
        Line::new("import").to("import your agents' sessions"),
        Line::new("new").to("start a session for your own agent"),
    ]
}

/// Returns the hint for a full disk.
fn full() -> Hint {
    "nothing is lost; make room and try again".into()
}

/// Cuts a text to the length of a hint, with an ellipsis if anything was cut.
pub fn shortened(text: &str) -> String {
    match text.char_indices().nth(WORDS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Returns "available: " and the names.
fn there_are(names: &[String]) -> String {
    format!("available: {}", listed(names))
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
fn listed(names: &[String]) -> String {
    let more = if names.len() > LISTED { ", ..." } else { "" };
    let names: Vec<&str> = names.iter().take(LISTED).map(String::as_str).collect();
    format!("{}{more}", names.join(", "))
}
