//! Origins: the entries that an entry replaces.
//!
//! ```text
//! entry 9 -> entry 7 -> entry 3      a replay of a replay: 3 is the first origin, and has everything that 9 hides
//! ```

use crate::{
    model::{EntryNumber, OperationNumber},
    session::{SessionError, Stored},
};

/// Returns the entries that an entry replaces, nearest first, each with the operation that replaced it.
pub(crate) fn chain(
    session: &Stored<'_>,
    entry: EntryNumber,
) -> Result<Vec<(OperationNumber, EntryNumber)>, SessionError> {
    let mut chain = Vec::new();
    let mut at = entry;
    while let Some((operation, found)) = session.store.origins(session.key, at.alone())?.pop() {
        // A damaged store may have a circle of origins; the loop must still end.
        if found.origin >= at && chain.iter().any(|(_, seen)| *seen == found.origin) {
            break;
        }
        chain.push((operation, found.origin));
        at = found.origin;
    }
    Ok(chain)
}

/// Returns the first origin of an entry, or the entry itself.
pub(crate) fn first(session: &Stored<'_>, entry: EntryNumber) -> Result<EntryNumber, SessionError> {
    Ok(chain(session, entry)?.last().map_or(entry, |(_, origin)| *origin))
}
