//! Chooses the store that a command works on, and checks whether a store found in a folder is trusted.
//!
//! The first of these wins: `--store`; the store named by the environment; the nearest `.undertext` at or above the current
//! folder that this user trusts on this machine; the user's own store.
//!
//! Invariant: an untrusted store in a folder is named in a warning, and opened only to see whether it is empty.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use undertext::disk;
use undertext::model::{self, DATABASE, StoreId, TRANSCRIPTS};
use undertext::report::Line;
use undertext::store::{Access, FactStore as _, SqliteStore, StoreError};
use undertext::trust::{self, Stores, Strange, Trusted};

use super::common::shown;
use super::env::Env;
use super::hint::quote;
use super::{CommandError, Context};

/// The folder name of a project's store.
pub(crate) const NAME: &str = ".undertext";

/// The hint for a store that is not a folder.
const NAME_FOLDER: &str = "use --store or $UNDERTEXT_STORE to choose a folder";

impl Context {
    /// Returns the store's folder. The first call chooses it, and names it unless it is the user's own.
    pub(crate) fn root(&mut self) -> Result<PathBuf, CommandError> {
        if let Some(chosen) = &self.store {
            return Ok(chosen.clone());
        }
        let own = self.env.own_store.clone();
        let variable = self.env.variable("UNDERTEXT_STORE").map(Path::new);
        let named = self.asked.as_deref().or(variable);
        if let Some(scheme) = named.and_then(scheme) {
            let error = anyhow!("a store is a folder, not a {scheme}:// URL");
            return Err(CommandError::user(error).hinted(NAME_FOLDER));
        }
        let named = named.map(|path| self.env.current_dir.join(path));
        let chosen = named.or_else(|| nearest(self)).or_else(|| own.clone()).ok_or_else(|| {
            CommandError::user(anyhow!("there is no folder for a store: set --store or HOME"))
                .hinted("use --store to choose a folder")
        })?;
        if chosen.is_file() {
            let name = shown(&chosen);
            let error = CommandError::user(anyhow!("{name} is a file, not a store's folder"));
            return Err(error.hinted(NAME_FOLDER));
        }
        if Some(&chosen) != own.as_ref() {
            let name = self.env.homely(&chosen);
            self.output.note(&format!("Store: {name}"));
        }
        Ok(self.store.insert(chosen).clone())
    }
}

/// Returns the nearest trusted store at or above the current folder. Warns of a nearer untrusted one.
fn nearest(context: &mut Context) -> Option<PathBuf> {
    let folders: Vec<PathBuf> =
        context.env.current_dir.ancestors().map(|dir| dir.join(NAME)).collect();
    let mut warned = false;
    for folder in folders {
        if fs::symlink_metadata(&folder).is_err() {
            continue;
        }
        match trusted(&context.env, &folder) {
            Ok(()) => return Some(folder),
            Err(_) if warned => {}
            Err(why) => {
                warned = true;
                let name = context.env.homely(&folder);
                let above = folder.parent().filter(|_| matches!(why, Strange::Empty));
                let cure = if let Some(above) = above {
                    let new = context.output.spell(&Line::new("new").flag("here"));
                    format!("; to make one: cd {} && {new}", quote(above.as_os_str()))
                } else if why.may_be_trusted() {
                    let trust = context.output.spell(&Line::new("trust").with(&folder));
                    format!("; if you know where it comes from: {trust}")
                } else {
                    String::new()
                };
                context.output.warn(&format!("{name} is not used: {why}{cure}"));
            }
        }
    }
    None
}

/// Succeeds if this user trusts the store in a folder on this machine.
pub(crate) fn trusted(env: &Env, folder: &Path) -> Result<(), Strange> {
    let listed = trusted_place(env, folder)?;
    match id_of(folder) {
        Ok(id) if id == Some(listed.store) => Ok(()),
        Ok(_) => Err(Strange::Replaced),
        // Every command refuses such a store with the reason. Falling back to another store would write to the wrong one.
        Err(StoreError::Newer { .. } | StoreError::Corrupt { .. }) => Ok(()),
        Err(error) => Err(Strange::Unreadable(error.to_string())),
    }
}

/// Returns the trust record of a folder if its files are unchanged, whatever they contain.
pub(crate) fn trusted_place(env: &Env, folder: &Path) -> Result<Trusted, Strange> {
    let state = env.state.as_deref().ok_or(Strange::Unknown)?;
    Stores::of(state).at(folder)
}

/// Trusts a mended store again: its database is a new file, but it must have its old id.
pub(crate) fn trust_mended(env: &Env, before: &Trusted) -> Result<(), CommandError> {
    if id_of(&before.path)? == Some(before.store) {
        trust(env, &before.path)?;
    }
    Ok(())
}

/// Adds a store to the trusted ones, and returns its record.
pub(crate) fn trust(env: &Env, folder: &Path) -> Result<Trusted, CommandError> {
    let refused = |why: Strange| {
        let list = Line::new("trust").flag("list").to("list the stores that you trust");
        let error = if fs::symlink_metadata(folder).is_err() {
            anyhow!("there is no store at {}", shown(folder))
        } else {
            anyhow!("{} cannot be trusted: {why}", shown(folder))
        };
        CommandError::user(error).hinted(list)
    };
    let mut place = trust::examine(folder);
    if matches!(place, Err(Strange::Open | Strange::Brought(_))) {
        close(folder)?;
        place = trust::examine(folder);
    }
    let place = place.map_err(|why| match why {
        Strange::Empty => {
            refused(why).hinted(Line::new("new").flag("here").to("make a store in this folder"))
        }
        _ => refused(why),
    })?;
    let others = || StoreError::database("it contains changes of another store");
    let store = id_of(folder)?.ok_or_else(others)?;
    let trusted = Trusted { path: folder.to_owned(), place, store };
    let stores = stores(env)?;
    stores.trust(&trusted).context("cannot write the list of trusted stores")?;
    Ok(trusted)
}

/// Returns this user's other stores: their own and the trusted ones, without the one in use.
pub(crate) fn other_stores(context: &mut Context) -> Vec<PathBuf> {
    let own = context.env.own_store.clone();
    let listed = stores(&context.env).ok().and_then(|stores| stores.all().ok()).unwrap_or_default();
    let listed = listed.into_iter().map(|store| store.path);
    let trusted = listed.filter(|folder| trusted(&context.env, folder).is_ok());
    let mut others: Vec<PathBuf> = own.into_iter().chain(trusted).collect();
    others.retain(|folder| folder.join(DATABASE).is_file());
    let used = context.root().and_then(|root| Ok(fs::canonicalize(root)?)).ok();
    others.retain(|folder| fs::canonicalize(folder).ok() != used);
    others.sort();
    others.dedup();
    others
}

/// Returns the list of trusted stores.
pub(crate) fn stores(env: &Env) -> Result<Stores, CommandError> {
    let state = env.state.as_deref().ok_or_else(|| {
        CommandError::user(anyhow!("there is no home folder to keep the list of trusted stores"))
    })?;
    Ok(Stores::of(state))
}

/// Creates a store's folder in the current folder, or uses the trusted one there, and makes it the command's store.
pub(crate) fn make_here(context: &mut Context) -> Result<PathBuf, CommandError> {
    if context.asked.is_some() {
        return Err(CommandError::user(anyhow!(
            "--here creates a store in this folder, so --store cannot name one"
        )));
    }
    stores(&context.env)?;
    let folder = context.env.current_dir.join(NAME);
    let made = DirBuilder::new().mode(0o700).create(&folder);
    match made {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            match trusted(&context.env, &folder) {
                Ok(()) => return Ok(context.store.insert(folder).clone()),
                Err(Strange::Empty | Strange::Unknown) if is_unused(&folder) => {}
                Err(why) => {
                    let there = anyhow!("{} already exists, and {why}", shown(&folder));
                    return Err(CommandError::user(there).hinted(match why {
                        why if why.may_be_trusted() => {
                            Line::new("trust").with(&folder).to("use it")
                        }
                        _ => "remove it first, or make the store in another folder".into(),
                    }));
                }
            }
            close(&folder)?;
        }
        made => made
            .and_then(|()| disk::sync_folder(&context.env.current_dir))
            .with_context(|| format!("cannot make {}", shown(&folder)))?,
    }
    let ignore = folder.join(IGNORE);
    let written = disk::open_or_make(&ignore).and_then(|mut file| {
        file.set_len(0)?;
        file.write_all(b"*\n")
    });
    written.with_context(|| format!("cannot write {}", shown(&ignore)))?;
    Ok(context.store.insert(folder).clone())
}

/// Returns the scheme of a URL. The rest may contain a password and must not be shown.
fn scheme(path: &Path) -> Option<&str> {
    let (scheme, _) = path.to_str()?.split_once("://")?;
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let begins = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    (begins && scheme.chars().all(is_scheme)).then_some(scheme)
}

/// Returns the id of the store in a folder, if its changes were made under that id.
fn id_of(folder: &Path) -> Result<Option<StoreId>, StoreError> {
    let store = SqliteStore::open(&folder.join(DATABASE), Access::Read)?;
    Ok(if store.has_its_id()? { Some(store.id()?) } else { None })
}

const IGNORE: &str = ".gitignore";

/// Makes a store's folder private to its user.
fn close(folder: &Path) -> Result<(), CommandError> {
    let closed = trust::close(folder);
    Ok(closed.with_context(|| format!("cannot set the permissions of {}", shown(folder)))?)
}

/// Returns true if a folder has only the beginnings of a store, as an interrupted command leaves it: no settings, no session
/// files and no operation.
fn is_unused(folder: &Path) -> bool {
    let names = |folder: &Path| fs::read_dir(folder)?.map(|one| Ok(one?.file_name())).collect();
    let is_begun = |name: &OsString| name == IGNORE || model::is_own(name);
    let listed: io::Result<Vec<_>> = names(folder);
    let has_files = || names(&folder.join(TRANSCRIPTS)).is_ok_and(|files| !files.is_empty());
    let is_empty = || match SqliteStore::open(&folder.join(DATABASE), Access::Read) {
        Ok(store) => store.newest().is_ok_and(|newest| newest.is_none()),
        Err(error) => matches!(error, StoreError::Absent { .. }),
    };
    listed.is_ok_and(|names| names.iter().all(is_begun)) && !has_files() && is_empty()
}
