//! Origins: the entries that an entry replaces.
//!
//! ```text
//! entry 9 -> entry 7 -> entry 3      a replay of a replay: 3 is the first origin, and holds all that 9 does not show
//! ```

use crate::{
    model::{EntryNumber, OperationNumber},
    session::{Session, SessionError},
    store::Store,
};

/// Returns the entries that an entry is in for, the nearest first, each behind the operation that replaced it.
pub(crate) fn chain(
    store: &dyn Store,
    session: &Session,
    entry: EntryNumber,
) -> Result<Vec<(OperationNumber, EntryNumber)>, SessionError> {
    let mut chain = Vec::new();
    let mut at = entry;
    while let Some((operation, found)) = store.origins(session.key, at.alone())?.pop() {
        // A store whose origins form a circle is damaged, and no reason to walk for ever.
        if found.origin >= at && chain.iter().any(|(_, seen)| *seen == found.origin) {
            break;
        }
        chain.push((operation, found.origin));
        at = found.origin;
    }
    Ok(chain)
}

/// Returns the first origin of an entry, or the entry itself.
pub(crate) fn first(
    store: &dyn Store,
    session: &Session,
    entry: EntryNumber,
) -> Result<EntryNumber, SessionError> {
    Ok(chain(store, session, entry)?.last().map_or(entry, |(_, origin)| *origin))
}
