//! Advice: what kind of error a failure of the library is, and what a person can do next.

use std::io;

use undertext::{
    context::recover::Unrecovered,
    live::Denied,
    ops::{Elsewhere, Gap, OpsError, SessionError, SyncError},
    store::{Listed, StoreError},
};

use super::{
    common::{self, shown},
    env,
    error::{CommandError, Kind},
    hint::{Hint, Line},
};

/// How many sessions an error lists.
const LISTED: usize = 8;

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        OpsError::from(error).into()
    }
}

impl From<SessionError> for CommandError {
    fn from(error: SessionError) -> Self {
        OpsError::from(error).into()
    }
}

impl From<SyncError> for CommandError {
    fn from(error: SyncError) -> Self {
        OpsError::from(error).into()
    }
}

impl From<OpsError> for CommandError {
    fn from(error: OpsError) -> Self {
        use OpsError as E;
        let (kind, hints) = advice(&error);
        let error = match error {
            // What was to be written goes to the output, and its reader may have seen enough.
            E::Session(SessionError::Write { source }) => return source.into(),
            E::Store(source) => CommandError::new(kind, source),
            error => CommandError::new(kind, error),
        };
        hints.into_iter().fold(error, CommandError::hinted)
    }
}

/// Returns what kind of error it is and what can be done next.
fn advice(error: &OpsError) -> (Kind, Vec<Hint>) {
    use OpsError as E;
    let hint = |text: &str| vec![Hint::from(text)];
    match error {
        E::Store(error) => about_store(error),
        E::Session(error) => about_session(error),
        E::Sync(error) => about_files(error),
        E::Overtaken => (Kind::Failed, hint("try again")),
        E::NoBranch { branches, .. } => {
            (Kind::User, vec![format!("there are {}", listed(branches)).into()])
        }
        E::BranchExists(name) => {
            (Kind::User, vec![Line::about("switch").with(name).to("go to it")])
        }
        E::NoOperation(_) | E::NotUndoable { .. } => {
            (Kind::User, vec![Line::about("operations").to("list them")])
        }
        E::NoFile { among, .. } => {
            let among: Vec<String> = among.iter().map(|path| shown(path)).collect();
            (Kind::User, vec![format!("there are {}", listed(&among)).into()])
        }
        E::NoContainer { .. } => {
            (Kind::User, hint("write it as it is, without --container and under another name"))
        }
        E::NoGeneration { newest, .. } => {
            (Kind::User, vec![format!("there are 1 to {newest}").into()])
        }
        E::BadName { .. } => (Kind::User, Vec::new()),
        E::Window { .. } => (
            Kind::User,
            vec![settings("name another one with --window, or set window.block in config.toml")],
        ),
        _ => (Kind::Failed, about_models(error)),
    }
}

/// Returns what kind of error it is that a session does not have what was asked for, and what can be done next.
fn about_session(error: &SessionError) -> (Kind, Vec<Hint>) {
    use SessionError as E;
    match error {
        E::NoSession(_) | E::NoSessionHere(_) => {
            (Kind::User, [vec![sessions()], beginnings()].concat())
        }
        E::AmbiguousSession { matches, .. } => (Kind::User, candidates(matches)),
        E::AmbiguousEntry { matches, .. } => {
            (Kind::User, vec![format!("type more of one of these: {}", listed(matches)).into()])
        }
        E::NoEntry(wanted) => {
            let mut hints = vec![Line::about("log").to("list the entries with their ids")];
            if wanted.bytes().all(|byte| byte.is_ascii_digit()) && !wanted.is_empty() {
                hints.push(format!("checkpoint {wanted} is typed @{wanted}").into());
            }
            (Kind::User, hints)
        }
        E::NoCheckpoint { nearest, .. } if nearest.is_empty() => {
            (Kind::User, vec![Line::about("checkpoint").to("there is no checkpoint yet; set one")])
        }
        E::NoCheckpoint { nearest, .. } => {
            let shown = nearest.iter().map(|(n, words)| {
                let words: String =
                    words.lines().next().unwrap_or_default().chars().take(60).collect();
                format!("{n} ({words})")
            });
            let shown: Vec<String> = shown.collect();
            let nearest = format!("the nearest are {}", shown.join(", "));
            (Kind::User, vec![nearest.into(), Line::about("checkpoints").to("list all of them")])
        }
        _ => (Kind::Failed, Vec::new()),
    }
}

/// Returns what kind of error it is that files and store do not agree, and what can be done next.
fn about_files(error: &SyncError) -> (Kind, Vec<Hint>) {
    use SyncError as E;
    let hint = |text: &str| vec![Hint::from(text)];
    match error {
        E::Loaded { .. } => (
            Kind::Failed,
            vec![
                "end the agent first: it would not see what is written, and go on from what it knows"
                    .into(),
                "or insist, with --force".into(),
            ],
        ),
        E::Left { by, .. } => (
            Kind::Failed,
            vec![
                Line::new("import")
                    .with(by)
                    .to("take that file in, and the session goes on there"),
            ],
        ),
        E::Unread(Elsewhere { gap: Gap::Parent(_), .. }) => (
            Kind::Failed,
            hint("messages can be appended, and turns of the fork itself can be left"),
        ),
        E::Unread(_) => (
            Kind::Failed,
            vec![Line::new("import").with("--help").to("if the file is anywhere, take it in")],
        ),
        E::Unlisted { .. } => {
            (Kind::Failed, hint("run this command in the folder in which the session works"))
        }
        E::OutOfReach { .. } => (
            Kind::Failed,
            vec![
                Line::about("export")
                    .with("--list")
                    .to("list the states that can be written to a file of their own"),
            ],
        ),
        E::NoFormat(_) => (Kind::User, hint("session files are JSONL files that an agent wrote")),
        E::Invalid { .. } | E::Nothing(_) | E::Unsupported(_) | E::Read(_) => {
            (Kind::User, Vec::new())
        }
        E::Behind { .. } => (
            Kind::Failed,
            hint("nothing is lost; the next command that changes the session tries again"),
        ),
        E::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
            (Kind::Failed, hint("nothing is lost; make room and try again"))
        }
        E::Denied { session, path, why: Denied::Outside } => (
            Kind::Failed,
            vec![
                Line::new("attach").with(path).to("if it is the session's own file"),
                Line::new("attach")
                    .option("-s", session)
                    .with("--off")
                    .to("or leave it alone from now on"),
            ],
        ),
        E::Foreign { owner, .. } => (
            Kind::Failed,
            vec![
                format!("run this as {owner}, without sudo").into(),
                "reading commands still work".into(),
            ],
        ),
        _ => (Kind::Failed, Vec::new()),
    }
}

/// Returns what kind of error of the store it is and what can be done next.
fn about_store(error: &StoreError) -> (Kind, Vec<Hint>) {
    let hint = |text: &str| vec![Hint::from(text)];
    match error {
        StoreError::Forgotten { .. } => (
            Kind::Failed,
            vec![Line::new("doctor").to("read what that means and what can be done")],
        ),
        StoreError::Old { .. } => (
            Kind::Failed,
            vec![
                Line::new("import")
                    .to("once that file is moved away, take in the sessions of your agents again"),
            ],
        ),
        StoreError::Newer { .. } | StoreError::NewerFacts { .. } => {
            (Kind::NewerStore, hint("update undertext, or name another store with --store"))
        }
        StoreError::Absent { .. } => (Kind::User, beginnings()),
        StoreError::Foreign { .. } => (Kind::User, hint("name another folder with --store")),
        StoreError::ReadOnly { .. } => (Kind::Failed, hint("reading commands still work")),
        StoreError::Full => (Kind::Failed, hint("nothing is lost; make room and try again")),
        StoreError::Corrupt { .. } => {
            (Kind::Failed, vec![Line::new("verify").to("see what is damaged")])
        }
        StoreError::Busy | StoreError::Conflict => (Kind::Failed, hint("try again")),
        _ => (Kind::Failed, Vec::new()),
    }
}

/// Returns the ways to a first session.
pub(crate) fn beginnings() -> Vec<Hint> {
    vec![
        Line::new("import").to("take in the sessions of your agents"),
        Line::new("new").to("begin a session of undertext's own"),
    ]
}

/// Returns the hint to read about every key of the settings.
pub(crate) fn settings(words: &str) -> Hint {
    let words = if words.is_empty() { String::new() } else { format!("{words}; ") };
    Line::new("context").with("--settings").to(format!("{words}every key, explained"))
}

/// Returns the sessions that could have been meant, each as it can be typed.
fn candidates(matches: &[Listed]) -> Vec<Hint> {
    let is_shared = |id: &str| matches.iter().filter(|other| other.name.id == id).count() > 1;
    let shown = matches.iter().take(LISTED).map(|Listed { name, card, .. }| {
        let format = if is_shared(&name.id) { format!("{}:", name.format) } else { String::new() };
        let title = card.title.as_deref().map(common::first_line).unwrap_or_default();
        let title: String = title.chars().take(60).collect();
        let active = env::local(card.active);
        format!("{format}{}  {title}  ({}, {active})", name.id, name.format).into()
    });
    let more = matches.len().saturating_sub(LISTED);
    let more = (more > 0).then(|| format!("{more} more").into());
    [Hint::from("type more of one of these")].into_iter().chain(shown).chain(more).collect()
}

/// Returns what can be done next where a model is in it.
fn about_models(error: &OpsError) -> Vec<Hint> {
    match error {
        OpsError::Unrecovered(Unrecovered::Blocked { least, .. }) => vec![
            format!("set a window of at least {least} tokens, or take a model that has one").into(),
        ],
        OpsError::Unrecovered(Unrecovered::DoesNotFit { largest, .. }) => {
            let largest = largest.first().map(|large| {
                Line::about("show").with(&large.entry).to("see what the largest entry holds")
            });
            let rest = [
                Line::about("checkpoints").to("list the places to go back to"),
                "or take a model with a larger window".into(),
            ];
            largest.into_iter().chain(rest).collect()
        }
        OpsError::Summary(_) => vec![
            Line::about("compact").option("--summarizer", "extract").to("without a model"),
            "or let statistics stand for a summary: leave out --strict".into(),
        ],
        OpsError::Hook { .. } => vec!["the command is compaction.before in config.toml".into()],
        _ => Vec::new(),
    }
}

/// Returns a list of what could have been meant.
fn listed(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(8).map(String::as_str).collect();
    let more = if names.len() > shown.len() { ", ..." } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// Returns the hint to list sessions.
pub(crate) fn sessions() -> Hint {
    Line::new("sessions").to("list the sessions")
}
