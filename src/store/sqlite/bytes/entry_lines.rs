//! Maps entries to their lines and links. The rows of consecutive entries are read in one query.

use rusqlite::{Connection, Row, params};

use crate::store::sqlite::query::{bounds, first, hash};
use crate::{
    model::{EntryId, EntryNumber},
    store::{SessionKey, StoreError},
};

/// The row of an entry: its id, the id of the entry it is linked to, and the number of its line.
pub(crate) type Held = (EntryId, Option<EntryId>, i64);

/// Returns the row of each of these entries: `None` for a missing one, an error for a damaged one.
pub(crate) fn held(
    db: &Connection,
    session: SessionKey,
    entries: &[EntryNumber],
) -> Vec<Result<Option<Held>, StoreError>> {
    let mut found: Vec<Result<Option<Held>, StoreError>> = Vec::with_capacity(entries.len());
    while let Some((&from, behind)) = entries.get(found.len()..).and_then(<[_]>::split_first) {
        let one = alone(db, session, from);
        let mut rows = Vec::new();
        if let Ok(Some(one)) = &one
            && behind.first() == Some(&from.next())
        {
            let count = (1..).zip(behind).take_while(|(n, next)| **next == from.plus(*n)).count();
            // Rows that could not be read together are read alone, which returns their error.
            let _ = together(db, session, from, one.0, count, &mut rows);
        }
        found.push(one);
        found.extend(rows.into_iter().map(|row| Ok(Some(row))));
    }
    found
}

/// Returns the row of an entry, if it exists.
fn alone(db: &Connection, session: SessionKey, n: EntryNumber) -> Result<Option<Held>, StoreError> {
    let sql = "SELECT e.id, k.id, e.line FROM entry e
               LEFT JOIN entry k ON k.session = e.session AND k.n = e.n - e.link
               WHERE e.session = ? AND e.n = ?";
    first(db, sql, params![session.0, bounds(&n.alone()).0], |row| {
        let link: Option<[u8; 32]> = row.get(1)?;
        Ok((EntryId::new(hash(row, 0)?), link.map(EntryId::new), row.get(2)?))
    })
}

/// Reads the rows of the `count` entries after one, up to the first missing or damaged one.
fn together(
    db: &Connection,
    session: SessionKey,
    from: EntryNumber,
    id: EntryId,
    count: usize,
    rows: &mut Vec<Held>,
) -> Result<(), StoreError> {
    let (mut before, mut next) = (id, from.next());
    let mut find = db.prepare_cached(
        "SELECT n, id, link, line FROM entry WHERE session = ? AND n > ? AND n <= ? ORDER BY n",
    )?;
    let (from, to) = bounds(&(from..from.plus(count as u64)));
    let mut query = find.query([session.0, from, to])?;
    let read = |row: &Row<'_>| Ok((row.get(0)?, hash(row, 1)?, row.get(2)?, row.get(3)?));
    while let Some(row) = query.next()? {
        let (n, id, distance, line): (EntryNumber, _, Option<u64>, _) =
            read(row).map_err(|error: rusqlite::Error| StoreError::from(error))?;
        if n != next {
            break;
        }
        let id = EntryId::new(id);
        let held = match distance {
            None => (id, None, line),
            Some(1) => (id, Some(before), line),
            Some(_) => match alone(db, session, n)? {
                Some(held) => held,
                None => break,
            },
        };
        rows.push(held);
        (before, next) = (id, n.next());
    }
    Ok(())
}
