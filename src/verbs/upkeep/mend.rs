//! Mending: replaces a damaged store with what can be salvaged from it, and with what session files still contain.

use std::path::Path;

use crate::{
    archive::{Ambient, Archive, Machine, SyncError},
    intake::import,
    mend::{Agents, Mending, is_broken, lock_to_mend, sweep, take_back},
    model::{DATABASE, Place},
    report::{Finding, Lost, Mended, Summary},
    store::{Access, FaultKind, Loss, SqliteStore},
    verbs::{OpsError, upkeep::verify::verify_store},
};

/// Finishes an interrupted mending, or undoes it.
pub fn finish_mending(root: &Path) -> Result<(), OpsError> {
    Ok(sweep(root)?)
}

/// The outcome of mending a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was mended.
    Mended(Mended),
    /// It was not changed, for this reason: nothing was wrong with it, or nothing can be recovered.
    Left(&'static str),
}

/// Reason: no source contains more.
const NOWHERE: &str = "no file contains what was lost";
/// Reason: the store replaced another one; their salvaged contents would mix.
const ELSEWHERE: &str = "it replaced another store";
/// Reason: nothing can be read. An empty store would only look intact.
const UNREADABLE: &str = "none of its operations can be read, so it was not changed. Move it away with its -wal file, then import a backup, or run this again to recover what session files still contain";

/// Repairs the store in a folder if it is damaged or has lost changes. Passes what is wrong to `told`, and to `each` how many
/// tables of how many were read.
pub fn mend(
    root: &Path,
    agents: Agents<'_>,
    ambient: Box<dyn Ambient>,
    told: &mut dyn FnMut(&Finding),
    each: &mut dyn FnMut(u64, u64),
) -> Result<Outcome, OpsError> {
    finish_mending(root)?;
    let store = SqliteStore::open(&root.join(DATABASE), Access::Read);
    if store.and_then(|store| store.testimony().is_of_another()).unwrap_or(false) {
        return Ok(Outcome::Left(ELSEWHERE));
    }
    let (mut mending, mut mended, mut forgotten) = (None, None, 0);
    let mut before = damage(root, &mut |_| {})?;
    if before > Damage::default() {
        // Check again under the lock: another program may have been changing the store during the first look.
        let lock = lock_to_mend(root)?;
        before = damage(root, told)?;
        if before > Damage::default() {
            mending = Some(Mending::begin(root, lock, &agents, each)?);
        }
    }
    if let Some(mending) = mending {
        if mending.is_empty {
            return Ok(Outcome::Left(UNREADABLE));
        }
        forgotten = mending.forgotten;
        if forgotten > 0 || damage(mending.folder(), &mut |_| {})? < before {
            let kept = mending.accept()?;
            mended = Some((kept, mending.refilled.clone(), mending.lost.clone()));
        } else {
            return Ok(Outcome::Left(NOWHERE));
        }
    }
    let mut archive = Archive::open(root, Access::Write, ambient)?;
    archive.set_here(agents.here.clone());
    archive.set_exclude(agents.exclude);
    archive.set_writable(agents.writable);
    let (taken_back, left) = take_back(&archive)?;
    if mended.is_none() && taken_back.is_empty() && left.is_empty() {
        return Ok(Outcome::Left(NOWHERE));
    }
    let (kept, refilled, mut lost) = match mended {
        Some((kept, refilled, lost)) => (Some(kept), refilled, lost),
        None => (None, Vec::new(), Vec::new()),
    };
    let mut imported = Summary::default();
    if kept.is_some() && follows_agents(&archive, &lost)? {
        imported = import(&mut archive, agents.folders, agents.folders, &mut |_| ())?;
    }
    lost.extend(left);
    let store = archive.store();
    let names = store.names()?;
    // Sessions that are still damaged are reported by verify.
    let entries = names.iter().filter_map(|(key, _)| Some(store.state(*key).ok()?.entries()));
    Ok(Outcome::Mended(Mended {
        path: root.join(DATABASE),
        kept,
        sessions: names.len() as u64,
        entries: entries.sum(),
        refilled,
        forgotten,
        taken_back,
        imported: imported.entries,
        imported_sessions: imported.sessions,
        lost: lost.into_iter().map(Lost::from).collect(),
    }))
}

/// Returns true if agents' files may contain what the store has lost.
fn follows_agents(archive: &Archive, lost: &[Loss]) -> Result<bool, OpsError> {
    if lost.iter().any(|loss| loss.session.is_some()) {
        return Ok(true);
    }
    for (key, _) in archive.store().names()? {
        let state = archive.store().state(key)?;
        let live = state.live.and_then(|live| state.file(live));
        if live.is_some_and(|place| !matches!(place, Place::Store(_))) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// How damaged a store is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Damage {
    /// Whether it cannot be read at all, so that further damage is unknown.
    is_unread: bool,
    /// How many of its sessions cannot be read.
    unread: u64,
    /// How many other things are damaged.
    found: u64,
    /// How many lines are recorded as lost. They no longer block any change.
    lost: u64,
}

/// Returns how damaged the store in a folder is, without checking session files.
fn damage(root: &Path, told: &mut dyn FnMut(&Finding)) -> Result<Damage, OpsError> {
    let mut damage = Damage::default();
    let mut tell = |finding: &Finding| {
        match finding.kind {
            FaultKind::Store => damage.is_unread = true,
            FaultKind::Session => damage.unread += 1,
            FaultKind::Lost => damage.lost += 1,
            kind => damage.found += u64::from(kind.is_damage()),
        }
        told(finding);
    };
    match Archive::open(root, Access::Read, Box::new(Machine)) {
        Ok(archive) => verify_store(&archive, &mut |seen| seen.found().map_or((), &mut tell))?,
        Err(SyncError::Store(error)) if is_broken(root, &error) => {
            tell(&Finding::of_whole_store(error.to_string()));
        }
        Err(error) => return Err(error.into()),
    }
    Ok(damage)
}
