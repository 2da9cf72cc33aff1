//! Rebuilding: the derived rows of a session that differ from those that its facts and bytes give are replaced.

use std::io::Write as _;

use crate::{
    archive::SyncError,
    model::Digest,
    report::Rebuilt,
    session::{Session, rows},
    store::Store,
};

/// Computes the derived rows of a session again and replaces those that are not equal; the caller holds the lock.
pub(crate) fn rebuild(store: &dyn Store, session: &Session) -> Result<Rebuilt, SyncError> {
    let derived = rows::derived(store, session)?;
    let equal = rows::holds(store, session, &derived)? == Some(true);
    if !equal {
        let mut writing = store.begin()?;
        writing.derive(session.key, &derived)?;
        writing.commit()?;
    }
    // People compare two stores by it; no program reads it back.
    let mut digest = blake3::Hasher::new();
    let _always = write!(digest, "{derived:?}");
    Ok(Rebuilt {
        session: session.name.id.clone(),
        records: derived.records.len() as u64,
        equal,
        digest: Digest::new(*digest.finalize().as_bytes()),
    })
}

/// Rebuilds the derived rows of all sessions, such as those that an older version of the program has left; tells how many of
/// them were rebuilt.
pub(crate) fn rebuild_all(
    store: &dyn Store,
    told: &mut dyn FnMut(u64, u64),
) -> Result<(), SyncError> {
    let names = store.names()?;
    let all = names.len() as u64;
    for (done, (key, name)) in (0..).zip(names) {
        told(done, all);
        // A session that a newer version has taken in stays as that version made it.
        if let Ok(session) = Session::from_store(key, name) {
            rebuild(store, &session)?;
        }
    }
    freshen(store)
}

/// Says that the derived rows of all sessions are made again, and sums them up.
pub(crate) fn freshen(store: &dyn Store) -> Result<(), SyncError> {
    let mut writing = store.begin()?;
    writing.freshened()?;
    writing.commit()?;
    Ok(())
}
