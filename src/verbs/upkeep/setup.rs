//! Setting up: edits an agent's settings so that it calls undertext on its events, or stops doing so.

use std::path::{Path, PathBuf};

use crate::{
    archive::SyncError,
    disk, live,
    model::Timestamp,
    report::Calling,
    verbs::OpsError,
    wire::{Call, discover::HookFile},
};

/// A change of an agent's settings that was not written yet.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The settings file.
    pub path: PathBuf,
    /// Its current content, if it exists.
    pub before: Option<Vec<u8>>,
    /// Its new content, if it should exist.
    pub after: Option<Vec<u8>>,
    /// The setting that keeps the agent from making any call.
    pub hindrance: Option<&'static str>,
    /// Whether it still has a call that a person has edited.
    pub is_altered: bool,
    /// Where its current content is copied to, if a person may have written some of what is removed.
    pub copy: Option<PathBuf>,
}

/// Reads the settings of an agent and returns the change that adds a call, or removes all.
pub fn setup(place: &HookFile, call: Option<&Call>) -> Result<Setup, OpsError> {
    let HookFile { hooks, path, .. } = place;
    let refused = |why: String| OpsError::Unset { path: path.clone(), why };
    let before = live::settings(path).map_err(|source| match source.raw_os_error() {
        Some(_) => SyncError::at(path)(source).into(),
        None => refused(source.to_string()),
    })?;
    let without = |settings: &Option<Vec<u8>>| match settings {
        Some(settings) => hooks.unhooked(settings).map_err(|why| refused(why.to_string())),
        None => Ok(None),
    };
    let rest = without(&before)?;
    let after = match call {
        Some(call) => {
            let hooked = hooks.hooked(before.as_deref(), call);
            Some(hooked.map_err(|why| refused(why.to_string()))?)
        }
        None => rest.clone(),
    };
    // Never write what this agent would not accept, or a call that could not be removed again.
    if before != after && !without(&after).is_ok_and(|again| again == rest) {
        return Err(refused("its layout cannot be edited in place".to_owned()));
    }
    let hindrance = after.as_deref().and_then(|after| hooks.hindrance(after));
    let is_altered = after.as_deref().is_some_and(|after| hooks.is_altered(after));
    let goes = before.as_deref().filter(|_| before != after);
    let copy = goes.filter(|before| hooks.may_hold_more(before)).and_then(|_| free_name(path));
    Ok(Setup { path: path.clone(), before, after, hindrance, is_altered, copy })
}

impl Setup {
    /// Returns true if anything changes.
    pub fn is_change(&self) -> bool {
        self.before != self.after
    }

    /// Writes the change.
    pub fn carry_out(&self, at: Timestamp) -> Result<(), OpsError> {
        let [before, after] = [&self.before, &self.after].map(Option::as_deref);
        if let Some(copy) = &self.copy {
            exchange(copy, None, before, at)?;
        }
        exchange(&self.path, before, after, at)
    }
}

fn exchange(
    path: &Path,
    before: Option<&[u8]>,
    after: Option<&[u8]>,
    at: Timestamp,
) -> Result<(), OpsError> {
    let done = live::exchange_settings(path, before, after, at);
    done.map_err(|source| match source.raw_os_error() {
        Some(_) => SyncError::at(path)(source).into(),
        None => OpsError::Unset { path: path.to_owned(), why: source.to_string() },
    })
}

/// Returns an unused file name next to another file, with an ending that no agent reads.
fn free_name(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let mut names = (1..).map(|n| path.with_file_name(format!("{name}.kept-{n}")));
    names.find(|path| path.symlink_metadata().is_err())
}

/// Returns whether an agent's settings make a call, and whether it is this one.
pub fn calling(place: &HookFile, call: &Call) -> Calling {
    let [on, off] = [Some(call), None].map(|call| setup(place, call));
    let installed = off.as_ref().is_ok_and(|off| off.is_change() || off.is_altered);
    let current = installed && on.as_ref().is_ok_and(|on| !on.is_change());
    let lost = on.as_ref().ok().filter(|_| installed && !current).and_then(|on| {
        let programs = place.hooks.programs(on.before.as_deref()?);
        programs.into_iter().find(|program| !Path::new(program).is_file())
    });
    let problem = match (&on, &off) {
        (Err(error), _) | (_, Err(error)) => Some(wrong(error)),
        (Ok(on), _) => {
            let hindrance = || Some(format!("runs no programs while {} is set", on.hindrance?));
            let lost =
                lost.as_ref().map(|program| format!("calls {program}, which does not exist"));
            lost.or_else(hindrance)
        }
    };
    let (agent, path) = (place.format.name(), place.path.clone());
    Calling { agent, path, installed, current, problem, is_lost: lost.is_some() }
}

/// Returns what is wrong with the settings, without their path.
fn wrong(error: &OpsError) -> String {
    match error {
        OpsError::Unset { why, .. } => why.clone(),
        OpsError::Sync(SyncError::Io { source, .. }) => {
            format!("it cannot be read: {}", disk::words(source))
        }
        error => error.to_string(),
    }
}
