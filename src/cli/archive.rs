//! From what was typed to an archive and a session, and from the library's errors to ones for people.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use undertext::context::recover::Unrecovered;
use undertext::model::SessionName;
use undertext::ops::{self, Archive, Elsewhere, Gap, Notice, OpsError, Place, Session, Workspace};
use undertext::store::{Access, Listed, StoreError};

use super::error::{CommandError, Kind};
use super::hint::{Hint, Line};
use super::{Context, common, env, pointed};

/// How many sessions an error lists.
const LISTED: usize = 8;

impl Context {
    /// Opens the archive to read; nothing is written or made.
    pub(crate) fn reader(&mut self) -> Result<Archive, CommandError> {
        let mut archive = Archive::open(&self.root()?, Access::Read, self.env.ambient())?;
        archive.set_here(self.env.here());
        Ok(archive)
    }

    /// Opens the archive to change it; it is made if it is not there.
    pub(crate) fn writer(&mut self) -> Result<Archive, CommandError> {
        let root = self.root()?;
        let existing = root.ancestors().find(|folder| folder.exists()).unwrap_or(&root);
        let allowed = self.env.variable("UNDERTEXT_ALLOW_NETWORK").is_some();
        if !allowed && ops::place_of(existing) == Place::Network {
            return Err(CommandError::user(anyhow!(
                "{} lies on a network file system, on which a store is not safe",
                root.display()
            ))
            .hinted("name a folder on a disk of this machine with --store")
            .hinted("or set UNDERTEXT_ALLOW_NETWORK=1 if only this machine ever uses it"));
        }
        let mut archive = Archive::open(&root, Access::Brief, self.env.ambient())?;
        archive.set_writable(self.writable());
        archive.set_here(self.env.drawn_here()?);
        Ok(archive)
    }

    /// Opens what a reading command looks at, and warns if the live file says something else.
    pub(crate) fn look(
        &mut self,
        wanted: Option<&OsStr>,
    ) -> Result<(Archive, Session), CommandError> {
        let (archive, session) = self.find(wanted)?;
        if archive.root().is_none() {
            self.point_to_store(wanted);
        }
        if archive.store().is_stale()? {
            self.output.warn(
                "an older version has left the store's derived rows; the next change rebuilds them",
            );
        }
        if let Some(elsewhere) = ops::elsewhere(&archive, &session)? {
            let words = self.elsewhere(&archive, &session, &elsewhere);
            self.output.warn(&format!("{words}; it is not shown"));
        }
        if let Ok(Some(path)) = ops::left_for(&archive, &session) {
            let name = shown(&path);
            self.output.warn(&format!("the agent goes on in {name}, which is not shown"));
            if archive.root().is_some() {
                self.output.hint(Line::new("import").with(&path).to("take it in"));
            }
        }
        // A live file that cannot be read agrees with nothing, and hinders no reading of the store.
        if ops::is_behind(&archive, &session).unwrap_or(true) {
            self.output.warn(
                "the live file differs from the store, which is shown; the next change catches up with it",
            );
        }
        Ok((archive, session))
    }

    /// Returns in words where a history begins that is not shown, and whether the store holds it.
    pub(crate) fn elsewhere(
        &mut self,
        archive: &Archive,
        session: &Session,
        elsewhere: &Elsewhere,
    ) -> String {
        let Some(parent) = elsewhere.session() else { return elsewhere.to_string() };
        let name = SessionName { format: session.name.format.clone(), id: parent.to_owned() };
        let is_held = |archive: &Archive| matches!(archive.session(&name), Ok(Some(_)));
        let is_held = match archive.root() {
            Some(_) => is_held(archive),
            None => self.reader().is_ok_and(|archive| is_held(&archive)),
        };
        let held = if is_held { "in the store" } else { "not in the store" };
        format!("{elsewhere} ({held})")
    }

    /// Says that a file which is shown as it is lies under a session of the store, which knows more of it.
    fn point_to_store(&mut self, wanted: Option<&OsStr>) {
        let path = wanted.and_then(|wanted| self.env.current_dir.join(wanted).canonicalize().ok());
        let archive = path.as_ref().and_then(|_| self.reader().ok());
        let held = path.zip(archive).and_then(|(path, archive)| {
            let (_, name, _) = archive.store().files(&archive.place_of(&path)).ok()?.pop()?;
            let session = archive.session(&name).ok()??;
            self.short_name(&archive, &session).ok()
        });
        if let Some(name) = held {
            let graph = Line::new("graph").option("-s", name);
            let words = "this is the file alone; the store has its branches and what was cut";
            self.output.hint(graph.to(words));
        }
    }

    /// Opens a session of the store, or a session file as it is.
    pub(crate) fn find(
        &mut self,
        wanted: Option<&OsStr>,
    ) -> Result<(Archive, Session), CommandError> {
        let found = if let Some(path) = self.file(wanted) {
            ops::peek(&path, self.env.ambient())?
        } else {
            let archive = self.reader().map_err(|error| match self.no_file(wanted) {
                Some(none) if error.is_absence() => none,
                _ => error,
            })?;
            let session = self.session(&archive, wanted)?;
            (archive, session)
        };
        self.name(wanted, &found)?;
        Ok(found)
    }

    /// Opens a session of the store to change it; a session file is taken in first and becomes its live file. The store is
    /// made only for a file.
    pub(crate) fn change(
        &mut self,
        wanted: Option<&OsStr>,
    ) -> Result<(Archive, Session), CommandError> {
        let found = if let Some(file) = self.file(wanted) {
            let mut archive = self.writer()?;
            let (session, attached) = ops::take_up(&mut archive, &file)?;
            self.point_at(&attached.path, &session)?;
            self.tell(&attached.notices);
            (archive, session)
        } else {
            let path = self.root()?.join("store.db");
            if !path.exists() {
                return Err(self.no_file(wanted).unwrap_or(StoreError::Absent { path }.into()));
            }
            let archive = self.writer()?;
            let session = self.session(&archive, wanted)?;
            (archive, session)
        };
        self.name(wanted, &found)?;
        Ok(found)
    }

    /// Returns the session file that a word names.
    pub(crate) fn file(&self, wanted: Option<&OsStr>) -> Option<PathBuf> {
        wanted.map(|wanted| self.env.current_dir.join(wanted)).filter(|path| path.is_file())
    }

    /// Has further command lines name the session that was found: by its path if it was named so, else by its id; a
    /// command that names none takes the same one again.
    fn name(
        &mut self,
        wanted: Option<&OsStr>,
        (archive, session): &(Archive, Session),
    ) -> Result<(), CommandError> {
        let name = match wanted {
            Some(path) if self.file(wanted).is_some() => Some(path.to_owned()),
            Some(_) => Some(self.short_name(archive, session)?.into()),
            None => None,
        };
        self.output.naming().session = name;
        Ok(())
    }

    /// Returns a word that names a session of the store and no file of the current folder.
    pub(crate) fn short_name(
        &self,
        archive: &Archive,
        session: &Session,
    ) -> Result<String, CommandError> {
        let name = ops::short_name(archive, session)?;
        let is_free = self.file(Some(OsStr::new(&name))).is_none();
        Ok(if is_free { name } else { format!("{}:{}", session.name.format, session.name.id) })
    }

    /// Finds a session of the store; without a word, the newest of the current folder.
    pub(crate) fn session(
        &self,
        archive: &Archive,
        wanted: Option<&OsStr>,
    ) -> Result<Session, CommandError> {
        let Some(word) = wanted else {
            return Ok(ops::find_session(archive, None, &self.env.current_dir)?);
        };
        // A session has no name that is not text.
        let word = word.to_str().unwrap_or_default();
        match ops::find_session(archive, Some(word), &self.env.current_dir) {
            Err(error @ OpsError::NoSession(_)) => {
                Err(self.no_file(wanted).unwrap_or(error.into()))
            }
            found => Ok(found?),
        }
    }

    /// Returns what is wrong with a word that can only be meant as a path of a session file.
    fn no_file(&self, wanted: Option<&OsStr>) -> Option<CommandError> {
        let wanted = wanted?;
        let path = self.env.current_dir.join(wanted);
        let name = shown(Path::new(wanted));
        if !wanted.is_empty() && path.is_dir() {
            let error = CommandError::user(anyhow!("{name} is a folder, and not a session"));
            // As a word of its own, a name that begins with a dash would be an option.
            let is_option = wanted.as_encoded_bytes().starts_with(b"-");
            let typed = if is_option { path.as_os_str() } else { wanted };
            return Some(
                error
                    .hinted(
                        Line::new("sessions")
                            .option("--folder", wanted)
                            .to("list the sessions that work in it"),
                    )
                    .hinted(Line::new("import").with(typed).to("take in the session files in it")),
            );
        }
        let is_path = wanted.to_str().is_none_or(|wanted| {
            let ends_so = [".jsonl", ".json", ".zst"].iter().any(|end| wanted.ends_with(end));
            wanted.starts_with(['.', '~']) || wanted.contains('/') || ends_so
        });
        let error =
            CommandError::user(anyhow!("there is no file {name}, and no session of that name"));
        is_path.then(|| error.hinted(sessions()))
    }

    /// Returns what the current folder tells.
    pub(crate) fn workspace(&self) -> Workspace {
        ops::workspace(&self.env.current_dir)
    }

    /// Tells what was noticed about the live file.
    pub(crate) fn tell(&mut self, notices: &[Notice]) {
        for notice in notices {
            self.output.warn(&notice.to_string());
        }
    }
}

/// Returns the hint to list sessions.
fn sessions() -> Hint {
    Line::new("sessions").to("list the sessions")
}

/// Returns a list of what could have been meant.
fn listed(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(8).map(String::as_str).collect();
    let more = if names.len() > shown.len() { ", ..." } else { "" };
    format!("{}{more}", shown.join(", "))
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        OpsError::from(error).into()
    }
}

impl From<OpsError> for CommandError {
    fn from(error: OpsError) -> Self {
        use OpsError as E;
        let (kind, hints) = advice(&error);
        let error = match error {
            // What was to be written goes to the output, and its reader may have seen enough.
            E::Write { source } => return source.into(),
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
        E::Overtaken => (Kind::Failed, hint("try again")),
        E::Loaded { .. } => (
            Kind::Failed,
            vec![
                "end the agent first: it would not see what is written, and go on from what it knows"
                    .into(),
                "or insist, with --force".into(),
            ],
        ),
        E::Left { .. } | E::Unread(_) => (Kind::Failed, about_other_files(error)),
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
        E::NoFormat(_) => (Kind::User, hint("session files are JSONL files that an agent wrote")),
        E::BadName { .. } | E::Invalid { .. } | E::Nothing(_) | E::Unsupported(_) | E::Read(_) => {
            (Kind::User, Vec::new())
        }
        E::Window { .. } => (
            Kind::User,
            vec![settings("name another one with --window, or set window.block in config.toml")],
        ),
        E::Behind { .. } => (
            Kind::Failed,
            hint("nothing is lost; the next command that changes the session tries again"),
        ),
        E::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
            (Kind::Failed, hint("nothing is lost; make room and try again"))
        }
        _ => (Kind::Failed, about_models(error)),
    }
}

/// Returns what can be done next where another file of the session counts.
fn about_other_files(error: &OpsError) -> Vec<Hint> {
    vec![match error {
        OpsError::Left { by, .. } => {
            Line::new("import").with(by).to("take that file in, and the session goes on there")
        }
        OpsError::Unread(Elsewhere { gap: Gap::Parent(_), .. }) => {
            "messages can be appended, and turns of the fork itself can be left".into()
        }
        _ => Line::new("import").with("--help").to("if the file is anywhere, take it in"),
    }]
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
        error => pointed::advice(error),
    }
}

/// Returns a path as it is shown.
pub(crate) fn shown(path: &Path) -> String {
    crate::render::safe::path(path)
}
