//! The files outside the store that this user's commands may write: those of the agents on this machine, and those the user
//! pointed at.
//!
//! You point at a file by typing its path in a command that changes its session: `attach FILE`, or FILE as the SESSION of a
//! command. The user's state folder remembers it until `attach FILE --off`. Files that an import reads are not pointed at.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use undertext::live::Writable;
use undertext::report::Forgetful;
use undertext::trust::Files;
use undertext::verbs::{self, AgentFolder, Session};
use undertext::wire::discover::{self, Home, User};

use super::env::Env;
use super::{CommandError, Context};

/// Returns what says where this user's agents keep their files.
pub(crate) fn user(env: &Env) -> User<'_> {
    let variable = |name: &str| env.variable(name).map(PathBuf::from);
    User { home: env.home.as_deref(), variable: Box::new(variable) }
}

/// Returns the agents on this machine that delete sessions on their own.
pub(crate) fn forgetful_agents(env: &Env) -> Vec<Forgetful> {
    verbs::forgetful(&user(env))
}

/// Returns where agents would store their sessions on this machine.
pub(crate) fn homes(env: &Env) -> Vec<Home> {
    discover::homes(&user(env))
}

/// Returns the folders where agents store their sessions on this machine.
pub(crate) fn agent_folders(env: &Env) -> Vec<AgentFolder> {
    verbs::agent_folders(&user(env))
}

/// Returns the paths of folders.
pub(crate) fn paths(folders: &[AgentFolder]) -> Vec<PathBuf> {
    folders.iter().map(|folder| folder.path.clone()).collect()
}

/// Returns the folders where agents store additional files away from their sessions, each with its format.
pub(crate) fn annexes(env: &Env) -> impl Iterator<Item = (&'static str, PathBuf)> + use<> {
    discover::annexes(&user(env)).into_iter()
}

/// Returns which files of agents may be written.
pub(crate) fn writable(context: &mut Context) -> Writable {
    let mut writable = Writable::default();
    for folder in agent_folders(&context.env) {
        writable.folder(folder.format, &folder.path);
    }
    // A usual folder that is missing may be created again with its files; one that only a variable names may not.
    for Home { format, path, each, .. } in
        homes(&context.env).into_iter().filter(|home| home.is_usual)
    {
        match each {
            None => writable.folder(format, &path),
            Some(each) => writable.folder_in_each(format, &path, each),
        }
    }
    for (format, folder) in annexes(&context.env) {
        writable.folder(format, &folder);
    }
    for list in discover::lists(&user(&context.env)) {
        writable.list(&list);
    }
    let files =
        pointed(&context.env).map(|files| files.all()).transpose().unwrap_or_else(|error| {
            context.output.warn(&format!("the list of attached files cannot be read: {error}"));
            None
        });
    files.into_iter().flatten().for_each(|file| writable.file(file));
    writable
}

/// Remembers that this user pointed at a file, unless it is in its agent's own folder.
pub(crate) fn point_at(env: &Env, file: &Path, session: &Session) -> Result<(), CommandError> {
    let is_kept = |folder: AgentFolder| {
        folder.format == session.name.format
            && folder.path.canonicalize().is_ok_and(|folder| file.starts_with(folder))
    };
    if agent_folders(env).into_iter().any(is_kept) {
        return Ok(());
    }
    let Some(files) = pointed(env) else { return Ok(()) };
    Ok(files.add(file).context("cannot save the path that you named")?)
}

/// Forgets that this user pointed at a file.
pub(crate) fn forget_file(env: &Env, file: &Path) -> Result<(), CommandError> {
    let Some(files) = pointed(env) else { return Ok(()) };
    Ok(files.remove(file).context("cannot forget the file")?)
}

fn pointed(env: &Env) -> Option<Files> {
    env.state.as_deref().map(Files::of)
}
