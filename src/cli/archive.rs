//! Opening: resolves the typed words to an archive and one of its sessions.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use undertext::live::Leftovers;
use undertext::model::{DATABASE, SessionName};
use undertext::report::{Hint, Line, LiveState};
use undertext::store::{Access, Fault, SessionFilter, StoreError, Within};
use undertext::verbs::{
    self, Archive, At, Elsewhere, Having, Notice, Place, Session, SessionError, SyncError, Waiting,
};
use undertext::wire;

use super::common::shown;
use super::current::{import_new, is_own_store};
use super::env::{ALLOW_NETWORK, Env};
use super::output::Output;
use super::{CommandError, Context, TORN, candidates, overview, pick, pointed, settings, words};

/// A session, and the archive that it was opened in.
pub(crate) struct Opened {
    pub(crate) archive: Archive,
    pub(crate) session: Session,
}

impl Opened {
    /// Opens the session in its present state.
    pub(crate) fn at(&self) -> Result<At<'_>, StoreError> {
        self.archive.at(&self.session)
    }
}

impl Context {
    /// Opens the archive for reading. Writes nothing to disk; changes stay in a private preview.
    pub(crate) fn open_reader(&mut self) -> Result<Archive, CommandError> {
        let root = self.root()?;
        let opened = open_with_new(self, |context| context.reader(&root));
        let archive = opened.map_err(|error| no_sessions(self, error))?;
        warn_of_losses(self, &archive);
        let unread = [
            ("agents' files", self.exclude().err()),
            ("files of this computer", self.env.here().err()),
        ];
        for (files, error) in unread {
            if let Some(why) = error.map(|error| error.in_one_line()) {
                let what = format!("new records in {files} are not shown until this is repaired");
                self.output.warn(&format!("{why}; {what}"));
            }
        }
        Ok(archive)
    }

    /// Opens the archive in `root` for reading, without warnings.
    pub(crate) fn reader(&mut self, root: &Path) -> Result<Archive, CommandError> {
        let mut archive = Archive::open(root, Access::Read, self.env.ambient())?.preview()?;
        archive.set_exclude(settings::exclude_or_all(self));
        archive.set_here(self.env.here().unwrap_or_else(|_| self.env.nowhere()));
        archive.set_writable(pointed::writable(self));
        Ok(archive)
    }

    /// Opens the archive for writing, with the user's excludes, and creates it if needed. Warns of settings that have no effect.
    pub(crate) fn open_writer(&mut self) -> Result<Archive, CommandError> {
        let exclude = self.exclude()?;
        let root = self.root()?;
        let existing = root.ancestors().find(|folder| folder.exists()).unwrap_or(&root);
        let allowed = self.env.variable(ALLOW_NETWORK).is_some();
        if !allowed && verbs::place_of(existing) == Place::Network {
            return Err(CommandError::user(anyhow!(
                "{} is on a network file system, where a store is not safe",
                root.display()
            ))
            .hinted("use --store to choose a folder on a local disk")
            .hinted("or set UNDERTEXT_ALLOW_NETWORK=1 if only this machine ever uses it"));
        }
        let output = &mut self.output;
        let mut told =
            |done, all| output.steps("rebuilding rows from an older version: session", done, all);
        let ambient = self.env.ambient();
        let mut archive = Archive::open_telling(&root, Access::Brief, ambient, &mut told)?;
        archive.set_exclude(exclude);
        archive.set_writable(pointed::writable(self));
        archive.set_waiting(Waiting { limit: self.wait, told: Output::waits() });
        archive.set_here(self.env.drawn_here()?);
        clear_leftovers(self);
        self.settings()?;
        Ok(archive)
    }

    /// Opens a session to read it as its live file has it now.
    pub(crate) fn look(&mut self, wanted: Option<&OsStr>) -> Result<Opened, CommandError> {
        let opened = self.find(wanted)?;
        if opened.archive.root().is_none() {
            point_to_store(self, wanted);
        }
        let is_left_out = self.follow(&opened) == LiveState::LeftOut;
        let session = &opened.at()?;
        if is_left_out && self.exclude().is_ok() {
            self.output
                .warn("your settings exclude the session: new records in its file are not shown");
            self.output.hint(Hint::settings(""));
        }
        if session.archive.store().is_stale()? {
            self.output.warn(
                "the store's indexes are from an older version of undertext; the next change rebuilds them",
            );
        }
        if let Some(elsewhere) = verbs::elsewhere(session)? {
            let words = describe_elsewhere(self, &opened, &elsewhere);
            self.output.warn(&format!("{words}; that history is not shown"));
        }
        if let Ok(Some(path)) = verbs::left_for(session) {
            let name = shown(&path);
            self.output.warn(&format!("the agent continues in {name}, which is not shown"));
            if session.archive.root().is_some() {
                self.output.hint(Line::new("import").with(&path).to("import that file"));
            }
        }
        if let Ok(Some(path)) = verbs::lost_file(session) {
            let path = self.env.homely(&path);
            self.output
                .warn(&format!("{path} was deleted; this is the store's copy, which is complete"));
            self.output
                .hint(Line::about("restore").to("to put the file back where the agent reads it"));
        }
        Ok(opened)
    }

    /// Lays over the store what a session's live file holds beyond it; returns how it compares.
    pub(crate) fn follow(&mut self, opened: &Opened) -> LiveState {
        // A live file that cannot be read hinders no reading of the store.
        let session = opened.at().map_err(SyncError::from);
        let followed = session.and_then(|session| verbs::live_state(&session));
        followed.unwrap_or_else(|error| {
            let error = CommandError::from(error).in_one_line();
            let words =
                "the session's file has changed since the store wrote it, and cannot be followed";
            self.output.warn(&format!("{words}: {error}; the store's version is shown"));
            LiveState::Unread
        })
    }

    /// Opens a session of the store, or a session file as it is: by its path, or by that of its session's folder.
    pub(crate) fn find(&mut self, wanted: Option<&OsStr>) -> Result<Opened, CommandError> {
        let found = if let Some(path) = session_file(&self.env, wanted) {
            // A file is read as it is; nothing is imported for it.
            self.imports_new = false;
            peek(&self.env, &path)?
        } else {
            let opened = self.open_reader().map_err(|error| match no_file(&self.env, wanted) {
                Some(none) if error.is_absence() => none,
                _ => error,
            });
            let stored = opened.and_then(|archive| {
                let session = self.session(&archive, wanted)?;
                Ok(Opened { archive, session })
            });
            let folder = wanted.filter(|wanted| !wanted.is_empty());
            let folder = folder.map(|folder| self.env.current_dir.join(folder));
            match (stored, folder.and_then(|folder| verbs::file_of_session(&folder))) {
                (Err(_), Some(path)) => peek(&self.env, &path)?,
                (stored, _) => stored?,
            }
        };
        name_session(self, wanted, &found)?;
        Ok(found)
    }

    /// Opens a session of the store to change it; a session file is taken in first and becomes its live file. The store is
    /// made only for a file.
    pub(crate) fn change(&mut self, wanted: Option<&OsStr>) -> Result<Opened, CommandError> {
        let found = if let Some(file) = session_file(&self.env, wanted) {
            self.imports_new = false;
            let mut archive = self.open_writer()?;
            verbs::check_live(&archive, &file)?;
            let (session, mut attached) = verbs::take_up(&mut archive, &file)?;
            pointed::point_at(&self.env, &attached.path, &session)?;
            // The change reports this itself.
            attached.done.notices.retain(|notice| !matches!(notice, Notice::Unresumed { .. }));
            self.tell(&attached.done.notices);
            if let Some(left) = &attached.left {
                let words = "main follows the file; main's old end is kept as branch";
                self.output.warn(&format!("{words} {left}"));
            }
            Opened { archive, session }
        } else {
            let opened = open_with_new(self, open_existing);
            let archive = opened.map_err(|error| match no_file(&self.env, wanted) {
                Some(none) if error.is_absence() => none,
                _ => error,
            })?;
            let session = self.session(&archive, wanted)?;
            Opened { archive, session }
        };
        name_session(self, wanted, &found)?;
        let operations = found.at()?.state.operations();
        self.begun = Some((found.session.name.clone(), operations));
        Ok(found)
    }

    /// Opens a session to try a change without making it. A session file is imported into memory first.
    pub(crate) fn try_change(&mut self, wanted: Option<&OsStr>) -> Result<Opened, CommandError> {
        let Some(file) = session_file(&self.env, wanted) else { return self.look(wanted) };
        let mut archive = open_preview(self)?;
        verbs::check_live(&archive, &file)?;
        let (session, _) = verbs::take_up(&mut archive, &file)?;
        let found = Opened { archive, session };
        name_session(self, wanted, &found)?;
        Ok(found)
    }

    /// Returns a word that names a stored session and is neither a place in a session nor a file in the current folder.
    pub(crate) fn short_name(
        &self,
        archive: &Archive,
        session: &Session,
    ) -> Result<String, CommandError> {
        let name = verbs::short_name(archive.store(), session)?;
        let word = OsStr::new(&name);
        let is_free = !words::is_place_only(word) && session_file(&self.env, Some(word)).is_none();
        Ok(if is_free { name } else { format!("{}:{}", session.name.format, session.name.id) })
    }

    /// Finds a session of the store. Without a word, takes the newest one of the current folder. If no session or more than one
    /// matches, a person at a terminal picks one.
    pub(crate) fn session(
        &mut self,
        archive: &Archive,
        wanted: Option<&OsStr>,
    ) -> Result<Session, CommandError> {
        let error = match lookup(&self.env, archive, wanted) {
            Err(error) => error,
            Ok(found) => return Ok(found),
        };
        let word = match &error {
            SessionError::NoSession(word) if !word.is_empty() => Some(OsStr::new(word)),
            _ => wanted,
        };
        match &error {
            SessionError::NoSession(text) => {
                if let Some(error) = no_file(&self.env, word) {
                    return Err(error);
                }
                let is_other = is_place(text) || is_branch_here(&self.env, archive, text);
                if text.is_empty() || is_other {
                    return Err(no_session(self, archive, text));
                }
            }
            SessionError::NoSessionHere(_) | SessionError::AmbiguousSession { .. } => {}
            _ => return Err(error.into()),
        }
        if let Some(picked) = pick::pick_session(self, archive, wanted, &error)? {
            return Ok(picked);
        }
        Err(match &error {
            SessionError::NoSession(text) => no_session(self, archive, text),
            _ => candidates::which_session(self, archive, error),
        })
    }

    /// Reports the notices of a change.
    pub(crate) fn tell(&mut self, notices: &[Notice]) {
        for notice in notices.iter().filter(|notice| is_told(notice)) {
            self.output.warn(&notice.to_string());
        }
    }
}

/// Opens the archive. If the agents have new sessions, imports them and opens it again, because the first import gives this
/// computer its number.
fn open_with_new(
    context: &mut Context,
    open: impl Fn(&mut Context) -> Result<Archive, CommandError>,
) -> Result<Archive, CommandError> {
    let opened = open(context);
    let is_new = match &opened {
        Ok(archive) => import_new(context, Some(archive)),
        Err(error) => error.is_absence() && import_new(context, None),
    };
    if is_new { open(context) } else { opened }
}

/// Turns "no store" into "no sessions yet", if the store would be the user's own. The agents' folders were searched before.
fn no_sessions(context: &mut Context, error: CommandError) -> CommandError {
    if !error.is_absence() || !is_own_store(context) {
        return error;
    }
    let import = Line::new("import").with("PATH").to("import sessions from elsewhere");
    let begin = Line::new("new").to("start a session for your own agent");
    let words = format!("no sessions yet: found none in {}", overview::looked_in(&context.env));
    error.called(words, [import, begin])
}

/// Warns once if the store's last changes cannot be read, and once if it has lost some.
fn warn_of_losses(context: &mut Context, archive: &Archive) {
    let torn = archive.torn().map(|Fault { item, problem, .. }| {
        let what = "anything imported after that is not shown, and nothing can be changed";
        (TORN, format!("{item} is damaged: {problem}; {what}"))
    });
    let forgotten = archive.forgotten().map(|(witnessed, newest)| {
        let what = "the store has lost changes, which are not shown";
        ("loss", format!("{what}: it had {witnessed}, but has only {newest} now"))
    });
    for (kind, words) in torn.into_iter().chain(forgotten) {
        // `verify` reports it itself.
        if context.warned.insert(kind) && context.verb != "verify" {
            context.output.warn(&words);
            context.output.hint(Hint::mend());
        }
    }
}

/// Opens the archive to preview an import that respects the user's excludes. Without a store, returns an empty archive in
/// memory.
pub(crate) fn open_preview(context: &mut Context) -> Result<Archive, CommandError> {
    let exclude = context.exclude()?;
    let here = context.env.here()?;
    let mut archive = match context.open_reader() {
        Err(error) if error.is_absence() => Archive::in_memory(context.env.ambient()).preview()?,
        opened => opened?,
    };
    archive.set_exclude(exclude);
    archive.set_here(here);
    Ok(archive)
}

/// Returns the list of temporary files that this user's commands are writing.
pub(crate) fn leftovers(env: &Env) -> Option<Leftovers> {
    env.state.as_deref().map(Leftovers::of)
}

/// Deletes the temporary files of killed commands, reports them, and returns those that could not be deleted.
pub(crate) fn clear_leftovers(context: &mut Context) -> Vec<PathBuf> {
    let cleared = leftovers(&context.env).and_then(|leftovers| leftovers.clear().ok());
    let (deleted, left) = cleared.unwrap_or_default();
    for path in &deleted {
        let path = context.env.homely(path);
        context.output.note(&format!("Deleted {path}, left over from a killed command"));
    }
    context.deleted.extend(deleted);
    left
}

/// Opens the archive for writing. Fails if it does not exist.
pub(crate) fn open_existing(context: &mut Context) -> Result<Archive, CommandError> {
    let path = context.root()?;
    if !is_there(&path.join(DATABASE))? {
        return Err(StoreError::Absent { path }.into());
    }
    context.open_writer()
}

/// Leaks an archive that was opened for reading, or for this command only. Nothing in it waits to be written, and the system
/// frees the whole process at once, which is faster than SQLite freeing piece by piece.
pub(crate) fn leave(archive: Archive) {
    std::mem::forget(archive);
}

/// Returns in words where a history begins that is not shown, and whether the store holds it.
pub(crate) fn describe_elsewhere(
    context: &mut Context,
    opened: &Opened,
    elsewhere: &Elsewhere,
) -> String {
    let Opened { archive, session } = opened;
    let Some(parent) = elsewhere.session() else { return elsewhere.to_string() };
    let name = SessionName { format: session.name.format.clone(), id: parent.to_owned() };
    let is_held = |archive: &Archive| matches!(archive.session(&name), Ok(Some(_)));
    let is_held = match archive.root() {
        Some(_) => is_held(archive),
        None => context.open_reader().is_ok_and(|archive| is_held(&archive)),
    };
    let held = if is_held { "in the store" } else { "not in the store" };
    format!("{elsewhere} ({held})")
}

/// Hints that the store has the session of a file that is shown alone, and has more of it.
fn point_to_store(context: &mut Context, wanted: Option<&OsStr>) {
    let stored = stored(context, wanted);
    if let Some(name) = stored.and_then(|of| context.short_name(&of.archive, &of.session).ok()) {
        let graph = Line::new("graph").option("session", name);
        let words =
            "this shows only the file; the store also has the session's branches and what was cut";
        context.output.hint(graph.to(words));
    }
}

/// Opens the session of the store to which a file belongs.
pub(crate) fn stored(context: &mut Context, wanted: Option<&OsStr>) -> Option<Opened> {
    let path = context.env.current_dir.join(wanted?).canonicalize().ok()?;
    let archive = context.open_reader().ok()?;
    let (_, name, _) = archive.store().files(&archive.place_of(&path)).ok()?.pop()?;
    let session = archive.session(&name).ok()??;
    Some(Opened { archive, session })
}

/// Opens a session file as it is.
pub(crate) fn peek(env: &Env, path: &Path) -> Result<Opened, SyncError> {
    let (archive, session) = verbs::peek(path, env.ambient())?;
    Ok(Opened { archive, session })
}

/// Opens a session as `find` does, or else the archive for all of them.
pub(crate) fn find_or_all(
    context: &mut Context,
    wanted: Option<&OsStr>,
) -> Result<(Archive, Option<Session>), CommandError> {
    if wanted.is_none() {
        return Ok((context.open_reader()?, None));
    }
    let Opened { archive, session } = context.find(wanted)?;
    Ok((archive, Some(session)))
}

/// Describes the change that the command has made, if it has made one.
pub(crate) fn made(context: &mut Context) -> Option<String> {
    if let Some(done) = &context.done {
        return Some(format!("the change was made: {done}"));
    }
    let (name, before) = context.begun.clone()?;
    let archive = context.open_reader().ok()?;
    let session = archive.at(&archive.session(&name).ok()??).ok()?;
    let newest = verbs::operations(&session, 1).ok()?.shown.pop()?.operation;
    let command = newest.command.as_str();
    (newest.n.get() > before).then(|| {
        format!("the change was made: operation {} ({command}) of session {}", newest.n, name.id)
    })
}

/// Returns the session file that a word names.
pub(crate) fn session_file(env: &Env, wanted: Option<&OsStr>) -> Option<PathBuf> {
    wanted.map(|wanted| env.current_dir.join(wanted)).filter(|path| path.is_file())
}

/// Makes later command lines name the session that was found: by its path if it was named by path, otherwise by its id. A
/// command that names no session resolves to this one again.
pub(crate) fn name_session(
    context: &mut Context,
    wanted: Option<&OsStr>,
    opened: &Opened,
) -> Result<(), CommandError> {
    let name = match wanted {
        Some(path)
            if opened.archive.root().is_none() || session_file(&context.env, wanted).is_some() =>
        {
            Some(path.to_owned())
        }
        None if context.picked.is_none() => None,
        _ => Some(context.short_name(&opened.archive, &opened.session)?.into()),
    };
    context.output.naming().session = name;
    Ok(())
}

/// Returns the filter for the sessions of the current folder and its subfolders, else of the nearest parent folder with
/// sessions, else for all sessions. Returns the folder too, if there is one.
pub(crate) fn nearest_sessions(
    env: &Env,
    archive: &Archive,
) -> Result<(SessionFilter, Option<PathBuf>), CommandError> {
    for (n, folder) in env.current_dir.ancestors().enumerate() {
        let name = folder.to_string_lossy().into_owned();
        let at = if n == 0 { Within::Below(vec![name.clone()]) } else { Within::At(name.clone()) };
        let any = SessionFilter { folder: Some(at), limit: Some(1), ..SessionFilter::default() };
        if !archive.sessions(&any)?.is_empty() {
            let below = Some(Within::Below(vec![name]));
            let filter = SessionFilter { folder: below, ..SessionFilter::default() };
            return Ok((filter, Some(folder.to_owned())));
        }
    }
    Ok((SessionFilter::default(), None))
}

/// Returns the command meant by a single word: `graph` if it names one session or session file, `sessions` if it matches
/// several.
pub(crate) fn meant_by(context: &mut Context, word: &OsStr) -> Option<(&'static str, OsString)> {
    let graph = || ("graph", word.to_owned());
    if let Some(path) = session_file(&context.env, Some(word)) {
        return verbs::peek(&path, context.env.ambient()).ok().map(|_| graph());
    }
    if word.to_str().and_then(wire::by_name).is_some() {
        return Some(("sessions", word.to_owned()));
    }
    let archive = context.open_reader().ok()?;
    match lookup(&context.env, &archive, Some(word)) {
        Ok(_) => return Some(graph()),
        Err(SessionError::AmbiguousSession { .. }) => {
            return Some(("sessions", word.to_owned()));
        }
        Err(_) => {}
    }
    let words = vec![word.to_str()?.to_lowercase()];
    let having = Having { words, ..Having::default() };
    let found = archive.sessions(&SessionFilter::default()).ok()?;
    let mut found = found.iter().filter(|listed| having.may_be_in(listed));
    match (found.next()?, found.next()) {
        (one, None) => {
            let session = archive.session(&one.name).ok()??;
            Some(("graph", context.short_name(&archive, &session).ok()?.into()))
        }
        _ => Some(("sessions", word.to_owned())),
    }
}

/// Finds a session of the store without asking anyone.
pub(crate) fn lookup(
    env: &Env,
    archive: &Archive,
    wanted: Option<&OsStr>,
) -> Result<Session, SessionError> {
    // Session names are always text.
    let text = wanted.map(|word| word.to_str().unwrap_or_default());
    let found = verbs::find_session(archive.store(), text, &env.current_dir);
    match (found, text.and_then(verbs::split_place)) {
        (Err(SessionError::NoSession(_)), Some((session, _))) => {
            lookup(env, archive, Some(OsStr::new(session)))
        }
        (found, _) => found,
    }
}

/// Returns true if a word is a branch of this folder's session.
fn is_branch_here(env: &Env, archive: &Archive, word: &str) -> bool {
    let here = lookup(env, archive, None).ok();
    let here = here.and_then(|session| archive.at(&session).ok());
    here.is_some_and(|here| here.state.branches.contains_key(word))
}

/// Returns the error for a word that names no session, with hints at what it may mean.
fn no_session(context: &Context, archive: &Archive, word: &str) -> CommandError {
    let is_place = is_place(word);
    if !word.is_empty() && (is_place || is_branch_here(&context.env, archive, word)) {
        let number = word.parse::<u64>().ok();
        let what = match number {
            Some(_) => "a number",
            None if is_place => "a place in a session",
            None => "a branch in a session",
        };
        let error = CommandError::user(anyhow!("{word} is {what}, not a session"));
        // Look the word up in the session of this folder.
        let Ok(session) = lookup(&context.env, archive, None) else {
            return error.hinted(Hint::sessions());
        };
        let (n, place) = (word.to_owned(), verbs::spelling(word));
        let place = number.map_or(place, |n| format!("@{n}"));
        let found = archive.at(&session).ok().and_then(|session| {
            let at = verbs::find_place(&session, &place).ok()?;
            verbs::show(&session, &at).ok()?
        });
        let is_there = found.is_some();
        let hint = match (context.verb.as_str(), number) {
            ("log", Some(_)) => Line::new("log").with("-n").with(n).to("see the last entries"),
            ("operations" | "undo" | "redo", Some(_)) => {
                Line::new("undo").flag("list").with("-n").with(n).to("list the newest operations")
            }
            _ if !is_there => {
                Line::new("log").flag("checkpoints").to("list the turns that you can go back to")
            }
            ("log", None) => {
                Line::new("log").option("at", place).to("see the entries that led there")
            }
            (_, Some(_)) => Line::new("show").with(place).to("see the checkpoint"),
            (_, None) => Line::new("show").with(place).to("show that place"),
        };
        return error.hinted(hint).hinted(Hint::sessions());
    }
    let none = SessionError::NoSession(word.to_owned());
    let is_named = context.env.args.iter().any(|arg| {
        let arg = arg.as_encoded_bytes();
        arg.starts_with(b"-s") || arg.starts_with(b"--session")
    });
    let meant = match context.verb.as_str() {
        _ if wire::by_name(&word.to_lowercase()).is_some() => {
            let agent = word.to_lowercase();
            Line::new("sessions").option("agent", agent).to("list an agent's sessions")
        }
        _ if is_named => return none.into(),
        "append" | "search" | "turn" if !word.is_empty() => {
            "if it is part of the text, put quotes around the whole text".into()
        }
        "checkpoint" if !word.is_empty() => {
            Line::new("checkpoint").with("-m").with(word).to("to set a checkpoint with that note")
        }
        "export" if word == "markdown" => {
            Line::new("export").option("as", word).to("write the session as a document")
        }
        _ => return none.into(),
    };
    CommandError::user(none).hinted(meant).hinted(Hint::sessions())
}

/// Returns the error for a word that can only be the path of a session file.
fn no_file(env: &Env, wanted: Option<&OsStr>) -> Option<CommandError> {
    let wanted = wanted?;
    let path = env.current_dir.join(wanted);
    let name = shown(Path::new(wanted));
    if !wanted.is_empty() && path.is_dir() {
        let error = CommandError::user(anyhow!("{name} is a folder, not a session"));
        // A bare name that begins with a dash would be read as an option.
        let is_option = wanted.as_encoded_bytes().starts_with(b"-");
        let typed = if is_option { path.as_os_str() } else { wanted };
        return Some(
            error
                .hinted(
                    Line::new("sessions")
                        .option("folder", wanted)
                        .to("list the sessions in that folder"),
                )
                .hinted(
                    Line::new("import").with(typed).to("import the session files in that folder"),
                ),
        );
    }
    let is_path = wanted.to_str().is_none_or(|wanted| {
        let ends_so = [".jsonl", ".json", ".zst"].iter().any(|end| wanted.ends_with(end));
        wanted.starts_with(['.', '~']) || wanted.contains('/') || ends_so
    });
    let error = if !wanted.is_empty() && path.exists() {
        CommandError::user(anyhow!("{name} is neither a file nor a folder"))
    } else {
        CommandError::absent(anyhow!("there is no file or session {name}"))
    };
    (is_path || (!wanted.is_empty() && path.exists())).then(|| error.hinted(Hint::sessions()))
}

/// Returns true if a word is a number or a place in a session, and cannot be a session.
fn is_place(word: &str) -> bool {
    let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    is_number || words::is_place_only(OsStr::new(word)) || word.ends_with('^')
}

/// Returns true if a notice is reported to people. How a file ends is reported only by an import of that file.
pub(super) fn is_told(notice: &Notice) -> bool {
    !matches!(notice, Notice::Ending { .. })
}

/// Returns true if a path exists. A path that cannot be checked is an error, not absent.
pub(crate) fn is_there(path: &Path) -> Result<bool, CommandError> {
    let there = path.try_exists();
    Ok(there.map_err(|source| StoreError::Io { path: path.to_owned(), source })?)
}
