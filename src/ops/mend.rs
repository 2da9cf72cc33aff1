//! Mending: a damaged store is replaced by what can be salvaged of it, and by what its sessions' files still hold.

use std::path::Path;

use crate::{
    ops::{
        OpsError,
        verify::{DATABASE, SESSION, SESSIONS, verify_store},
    },
    report::{Finding, Mended, Severity},
    store::{Access, StoreError},
    sync::{Ambient, Archive, Here, Machine, Mending, SyncError, is_broken, sweep, take_back},
};

/// Brings a mending that was cut short to its end, or takes back what it left behind.
pub fn finish_mending(root: &Path) -> Result<(), OpsError> {
    Ok(sweep(root)?)
}

/// Mends the store in a folder if it is damaged or has forgotten something. None: it is neither, or nothing more of it
/// comes back. `told` hears what is wrong with it.
pub fn mend(
    root: &Path,
    here: &Here,
    ambient: Box<dyn Ambient>,
    told: &mut dyn FnMut(&Finding),
) -> Result<Option<Mended>, OpsError> {
    finish_mending(root)?;
    let (mut mended, mut forgotten) = (None, 0);
    let before = damage(root, told)?;
    if before > Damage::default() {
        let mending = Mending::begin(root, here)?;
        forgotten = mending.forgotten;
        if forgotten > 0 || damage(mending.folder(), &mut |_| {})? < before {
            let kept = mending.accept()?;
            mended = Some((kept, mending.refilled.clone(), mending.lost.clone()));
        } else {
            return Ok(None);
        }
    }
    let mut archive = Archive::open(root, Access::Write, ambient)?;
    archive.set_here(here.clone());
    let taken_back = take_back(&archive, forgotten)?;
    if mended.is_none() && taken_back.is_empty() {
        return Ok(None);
    }
    let (kept, refilled, lost) = match mended {
        Some((kept, refilled, lost)) => (Some(kept), refilled, lost),
        None => (None, Vec::new(), Vec::new()),
    };
    let store = archive.store();
    let names = store.names()?;
    let entries = names.iter().map(|(key, _)| Ok(store.state(*key)?.entries()));
    Ok(Some(Mended {
        path: root.join("store.db"),
        kept,
        sessions: names.len() as u64,
        entries: entries.sum::<Result<u64, StoreError>>()?,
        refilled,
        forgotten,
        taken_back,
        lost,
    }))
}

/// How damaged a store is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Damage {
    /// How much of it cannot be read at all, so that nothing says what else is damaged.
    unread: u64,
    /// How many other things are damaged.
    found: u64,
}

/// Returns how damaged the store in a folder is, without the files of its sessions.
fn damage(root: &Path, told: &mut dyn FnMut(&Finding)) -> Result<Damage, OpsError> {
    let mut damage = Damage::default();
    let mut tell = |finding: &Finding| {
        let is_unread = [DATABASE, SESSIONS, SESSION].contains(&finding.item.as_str());
        match finding.severity {
            Severity::Damage if is_unread => damage.unread += 1,
            Severity::Damage => damage.found += 1,
            Severity::Note => {}
        }
        told(finding);
    };
    match Archive::open(root, Access::Read, Box::new(Machine)) {
        Ok(archive) => {
            verify_store(&archive, &mut tell);
        }
        Err(SyncError::Store(error)) if is_broken(root, &error) => {
            let (item, problem) = (DATABASE.to_owned(), error.to_string());
            tell(&Finding { severity: Severity::Damage, session: None, item, problem });
        }
        Err(error) => return Err(error.into()),
    }
    Ok(damage)
}
