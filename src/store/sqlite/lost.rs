//! Lost entries: those of which nothing is known but that they were there, by an id that says so. No file gives them back:
//! what held their ids is lost with them.

use rusqlite::{Connection, params};

use super::query::{bounds, first, hash};
use crate::{
    model::{EntryId, EntryNumber},
    store::{Fault, FaultKind, SessionKey, StoreError},
};

/// The number of a line that was damaged and found nowhere.
pub(super) const LOST: i64 = 0;

/// What a mending gave up of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum GivenUp {
    /// Its line.
    Line,
    /// All of it but that it was there, by an id that says so.
    Entry,
    /// The one with which its id was made.
    Link,
}

impl GivenUp {
    /// Returns what is given up of an entry without a line.
    pub(super) fn of(session: SessionKey, n: EntryNumber, id: EntryId) -> Self {
        if id == session.unknown(n) { Self::Entry } else { Self::Line }
    }

    /// Returns the fault of who holds it.
    pub(super) fn fault(self, session: SessionKey, item: String) -> Fault {
        let kind = match self {
            Self::Line => FaultKind::Lost,
            Self::Entry | Self::Link => FaultKind::GivenUp,
        };
        Fault { kind, ..Fault::of(Some(session), item, self.as_str()) }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Line => "its line is lost",
            Self::Entry => "the store has lost it; only its place is known",
            Self::Link => {
                "it is linked to one that the store has lost, so its id cannot be checked"
            }
        }
    }
}

/// Returns whether an entry is linked to one of which nothing is known: its id was made with one that is lost.
pub(super) fn is_behind(
    db: &Connection,
    session: SessionKey,
    n: EntryNumber,
) -> Result<bool, StoreError> {
    let sql = "SELECT k.n, k.id FROM entry e
               JOIN entry k ON k.session = e.session AND k.n = e.n - e.link
               WHERE e.session = ? AND e.n = ?";
    let link = first(db, sql, params![session.0, bounds(&n.alone()).0], |row| {
        Ok((row.get(0)?, EntryId::new(hash(row, 1)?)))
    })?;
    Ok(link.is_some_and(|(link, id)| id == session.unknown(link)))
}

/// Returns why the id of an entry is not that of its link and line, if something that is lost explains it; given is whether the
/// line is there.
pub(super) fn reason(
    db: &Connection,
    session: SessionKey,
    (n, id): (EntryNumber, EntryId),
    (line, is_there): (i64, bool),
) -> Result<Option<GivenUp>, StoreError> {
    if line == LOST {
        return Ok(Some(GivenUp::of(session, n, id)));
    }
    Ok((is_there && is_behind(db, session, n)?).then_some(GivenUp::Link))
}

/// Returns whether a line is lost that a file may give back.
pub(super) fn has_lines(db: &Connection) -> Result<bool, StoreError> {
    let mut query = db.prepare("SELECT session, n, id FROM entry WHERE line = ?")?;
    let mut rows = query.query([LOST])?;
    while let Some(row) = rows.next()? {
        let id = EntryId::new(hash(row, 2)?);
        if GivenUp::of(SessionKey(row.get(0)?), row.get(1)?, id) == GivenUp::Line {
            return Ok(true);
        }
    }
    Ok(false)
}
