//! Rebuilds derived rows: computes them from facts and bytes, and replaces those that differ.

use std::io::Write as _;

use crate::{
    archive::SyncError,
    model::Digest,
    report::Rebuilt,
    session::{Session, rows},
    store::Store,
};

/// Recomputes a session's derived rows and replaces them if they differ. The caller holds the lock.
pub(crate) fn rebuild(store: &dyn Store, session: &Session) -> Result<Rebuilt, SyncError> {
    let derived = rows::derived(store, session)?;
    let equal = rows::holds(store, session, &derived)? == Some(true);
    if !equal {
        let mut writing = store.begin()?;
        writing.derive(session.key, &derived)?;
        writing.commit()?;
    }
    // For people who compare two stores; no program reads it back.
    let mut digest = blake3::Hasher::new();
    let _always = write!(digest, "{derived:?}");
    Ok(Rebuilt {
        session: session.name.id.clone(),
        records: derived.records.len() as u64,
        equal,
        digest: Digest::new(*digest.finalize().as_bytes()),
    })
}

/// Rebuilds the derived rows of all sessions, for example those written by an older version. Reports progress: sessions done,
/// sessions in total.
pub(crate) fn rebuild_all(
    store: &dyn Store,
    told: &mut dyn FnMut(u64, u64),
) -> Result<(), SyncError> {
    let names = store.names()?;
    let all = names.len() as u64;
    for (done, (key, name)) in (0..).zip(names) {
        told(done, all);
        // Leave alone a session that a newer version imported.
        if let Ok(session) = Session::from_store(key, name) {
            rebuild(store, &session)?;
        }
    }
    freshen(store)
}

/// Marks the derived rows of all sessions as current and updates their totals.
pub(crate) fn freshen(store: &dyn Store) -> Result<(), SyncError> {
    let mut writing = store.begin()?;
    writing.freshened()?;
    writing.commit()?;
    Ok(())
}
