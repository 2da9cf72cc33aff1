//! Counting: how much an archive holds, and what it takes up.

use std::collections::BTreeMap;

use crate::{ops::OpsError, session::Session, store::SessionKey, sync::Archive};

/// How many lines are looked at together.
const BATCH: u64 = 1 << 16;

/// How much the sessions of one format hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// How many sessions there are.
    pub sessions: u64,
    /// How many entries.
    pub entries: u64,
    /// How many bytes their lines have; a line that several sessions share counts in each.
    pub bytes: u64,
}

/// Returns how much is held, by format.
pub fn stats(archive: &Archive) -> Result<BTreeMap<String, Stats>, OpsError> {
    let store = archive.store();
    let mut formats: BTreeMap<String, Stats> = BTreeMap::new();
    for (key, name) in store.names()? {
        let one = count(archive, key)?;
        let stats = formats.entry(name.format).or_default();
        stats.sessions += 1;
        stats.entries += one.entries;
        stats.bytes += one.bytes;
    }
    Ok(formats)
}

/// Returns how much is held of one session.
pub fn stats_of(archive: &Archive, session: &Session) -> Result<Stats, OpsError> {
    count(archive, session.key)
}

fn count(archive: &Archive, key: SessionKey) -> Result<Stats, OpsError> {
    let store = archive.store();
    let entries = store.state(key)?.entries();
    let mut stats = Stats { sessions: 1, entries, bytes: 0 };
    let mut from = 1;
    while from <= entries {
        stats.bytes += store.lengths(key, from..from + BATCH)?.iter().sum::<u64>();
        from += BATCH;
    }
    Ok(stats)
}
