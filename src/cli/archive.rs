//! From what was typed to an archive and a session, and from the library's errors to ones for people.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::anyhow;
use undertext::model::SessionName;
use undertext::ops::{self, Archive, Elsewhere, Gap, Notice, OpsError, Place, Session, Workspace};
use undertext::store::{Access, StoreError};

use super::Context;
use super::error::{CommandError, Kind};
use super::pointed;
use super::store::quoted;

impl Context {
    /// Opens the archive to read; nothing is written or made.
    pub(crate) fn reader(&mut self) -> Result<Archive, CommandError> {
        Ok(Archive::open(&self.root()?, Access::Read, self.env.ambient())?)
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
            .hinted("use a folder on a disk of this machine: --store DIR")
            .hinted("or set UNDERTEXT_ALLOW_NETWORK=1 if only this machine ever uses it"));
        }
        let mut archive = Archive::open(&root, Access::Brief, self.env.ambient())?;
        archive.set_writable(self.writable());
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
                "an older version has left the store's derived rows; the next change makes them anew",
            );
        }
        if let Some(elsewhere) = ops::elsewhere(&archive, &session)? {
            let words = self.elsewhere(&archive, &session, &elsewhere);
            self.output.warn(&format!("{words}; it is not shown"));
        }
        if let Ok(Some(path)) = ops::left_for(&archive, &session) {
            let path = shown(&path);
            self.output.warn(&format!("the agent goes on in {path}, which is not shown"));
            if archive.root().is_some() {
                self.output.hint(&format!("take it in: undertext import {path}"));
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
        let held = path.zip(self.reader().ok()).and_then(|(path, archive)| {
            archive.store().files(path.as_os_str().as_bytes()).ok()?.pop()
        });
        if let Some((_, name, _)) = held {
            let id = name.id;
            self.output.hint(&format!(
                "this is the file alone; the store has its branches and what was cut: {id}"
            ));
        }
    }

    /// Opens a session of the store, or a session file as it is.
    pub(crate) fn find(
        &mut self,
        wanted: Option<&OsStr>,
    ) -> Result<(Archive, Session), CommandError> {
        let named = wanted.and_then(OsStr::to_str);
        let path =
            wanted.map(|wanted| self.env.current_dir.join(wanted)).filter(|path| path.is_file());
        match (path, named) {
            (Some(path), _) => Ok(ops::peek(&path, self.env.ambient())?),
            (None, None) if wanted.is_some() => Err(no_such(wanted)),
            (None, named) => {
                let archive = match self.reader() {
                    Err(error)
                        if named.is_some_and(|named| named.contains(['/', '.']))
                            && error.is_absence() =>
                    {
                        return Err(no_such(wanted));
                    }
                    other => other?,
                };
                let session = self.session(&archive, named)?;
                Ok((archive, session))
            }
        }
    }

    /// Opens a session of the store to change it; a session file is taken in first and becomes its live file. The store is
    /// made only for a file.
    pub(crate) fn change(
        &mut self,
        wanted: Option<&OsStr>,
    ) -> Result<(Archive, Session), CommandError> {
        let file = wanted.map(|wanted| self.env.current_dir.join(wanted));
        if let Some(file) = file.filter(|file| file.is_file()) {
            let mut archive = self.writer()?;
            let (session, attached) = ops::take_up(&mut archive, &file)?;
            self.point_at(&attached.path, &session)?;
            self.tell(&attached.notices);
            return Ok((archive, session));
        }
        let path = self.root()?.join("store.db");
        if !path.exists() {
            return Err(StoreError::Absent { path }.into());
        }
        let named = wanted.map(|wanted| wanted.to_str().ok_or_else(|| no_such(Some(wanted))));
        let named = named.transpose()?;
        let archive = self.writer()?;
        let is_path = named.is_some_and(|named| named.starts_with(['/', '.']));
        let session = match self.session(&archive, named) {
            Err(_) if is_path => return Err(no_such(wanted)),
            found => found?,
        };
        Ok((archive, session))
    }

    /// Finds a session of the store; without a word, the newest of the current folder.
    pub(crate) fn session(
        &self,
        archive: &Archive,
        wanted: Option<&str>,
    ) -> Result<Session, CommandError> {
        Ok(ops::find_session(archive, wanted, &self.env.current_dir)?)
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

fn no_such(wanted: Option<&OsStr>) -> CommandError {
    let wanted = wanted.unwrap_or_default().to_string_lossy();
    CommandError::user(anyhow!("{wanted:?} is neither a file nor a session"))
        .hinted("list the sessions: undertext sessions")
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
fn advice(error: &OpsError) -> (Kind, Vec<String>) {
    use OpsError as E;
    let hint = |text: &str| vec![text.to_owned()];
    match error {
        E::Store(StoreError::Newer { .. }) => {
            (Kind::NewerStore, hint("update undertext, or use another store: --store DIR"))
        }
        E::Store(StoreError::Absent { .. }) => {
            (Kind::User, hint("begin a session, which makes the store: undertext new"))
        }
        E::Store(StoreError::Foreign { .. }) => {
            (Kind::User, hint("use another folder: --store DIR"))
        }
        E::Store(StoreError::ReadOnly { .. }) => {
            (Kind::Failed, hint("reading commands still work"))
        }
        E::Store(StoreError::Full) => {
            (Kind::Failed, hint("nothing is lost; make room and try again"))
        }
        E::Store(StoreError::Corrupt { .. }) => {
            (Kind::Failed, hint("see what is damaged: undertext verify"))
        }
        E::Store(StoreError::Busy | StoreError::Conflict) | E::Overtaken => {
            (Kind::Failed, hint("try again"))
        }
        E::Loaded { .. } => (
            Kind::Failed,
            vec![
                "end the agent first: it would not see what is written, and go on from what it knows"
                    .to_owned(),
                "or insist: --force".to_owned(),
            ],
        ),
        E::Left { .. } | E::Unread(_) => (Kind::Failed, about_other_files(error)),
        E::Unlisted { .. } => {
            (Kind::Failed, hint("run this command in the folder in which the session works"))
        }
        E::OutOfReach { .. } => (
            Kind::Failed,
            hint("to have this state in a file of its own: undertext branch NAME ENTRY, undertext export"),
        ),
        E::NoSession(_) | E::NoSessionHere(_) => (
            Kind::User,
            vec![
                "list the sessions: undertext sessions".to_owned(),
                "or begin one: undertext new; or take in those of your agents: undertext import"
                    .to_owned(),
            ],
        ),
        E::AmbiguousSession { matches, .. } | E::AmbiguousEntry { matches, .. } => {
            (Kind::User, vec![format!("type more of one of these: {}", listed(matches))])
        }
        E::NoEntry(_) => (Kind::User, hint("list the entries with their ids: undertext log")),
        E::NoCheckpoint { nearest, .. } if nearest.is_empty() => {
            (Kind::User, hint("there are none yet: undertext checkpoint makes one"))
        }
        E::NoCheckpoint { nearest, .. } => {
            let shown = nearest.iter().map(|(n, words)| {
                let words: String =
                    words.lines().next().unwrap_or_default().chars().take(60).collect();
                format!("{n} ({words})")
            });
            let shown: Vec<String> = shown.collect();
            let list = "all of them: undertext checkpoints".to_owned();
            (Kind::User, vec![format!("the nearest are {}", shown.join(", ")), list])
        }
        E::NoBranch { branches, .. } => {
            (Kind::User, vec![format!("there are {}", listed(branches))])
        }
        E::BranchExists(_) => (Kind::User, hint("go to it: undertext switch NAME")),
        E::NoOperation(_) | E::NotUndoable { .. } => {
            (Kind::User, hint("list them: undertext operations"))
        }
        E::NoFile { among, .. } => {
            let among: Vec<String> = among.iter().map(|path| shown(path)).collect();
            (Kind::User, vec![format!("there are {}", listed(&among))])
        }
        E::NoContainer { .. } => {
            (Kind::User, hint("write it as it is: undertext export -o FILE.jsonl"))
        }
        E::NoGeneration { newest, .. } => (Kind::User, vec![format!("there are 1 to {newest}")]),
        E::NoFormat(_) => (Kind::User, hint("session files are JSONL files that an agent wrote")),
        E::BadName { .. } | E::Invalid { .. } | E::Nothing(_) | E::Unsupported(_) | E::Read(_) => {
            (Kind::User, Vec::new())
        }
        E::Window { .. } => (
            Kind::User,
            hint(
                "name another one with --window, or set window.block in config.toml: undertext context --help",
            ),
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
fn about_other_files(error: &OpsError) -> Vec<String> {
    let hint = match error {
        OpsError::Left { by, .. } => {
            format!(
                "take that file in, and the session goes on there: undertext import {}",
                shown(by)
            )
        }
        OpsError::Unread(Elsewhere { gap: Gap::Parent(_), .. }) => {
            "messages can be appended, and turns of the fork itself can be left".to_owned()
        }
        _ => "if the file is anywhere, take it in: undertext import FILE".to_owned(),
    };
    vec![hint]
}

/// Returns what can be done next where a model is in it.
fn about_models(error: &OpsError) -> Vec<String> {
    match error {
        OpsError::Unrecovered(error) => error.advice(),
        OpsError::Summary(_) => vec![
            "without a model: undertext compact --summarizer extract".to_owned(),
            "or let statistics stand for a summary: leave out --strict".to_owned(),
        ],
        OpsError::Hook { .. } => {
            vec!["the command is compaction.before in config.toml".to_owned()]
        }
        error => pointed::advice(error),
    }
}

/// Returns the option that names the same session again, with a leading space.
pub(crate) fn option(wanted: Option<&OsStr>) -> String {
    let Some(wanted) = wanted else { return String::new() };
    format!(" -s {}", quoted(Path::new(wanted)))
}

/// Returns a path as it is shown.
pub(crate) fn shown(path: &Path) -> String {
    crate::render::safe::path(path)
}
