//! Lengths: the length of each line, read from its segment's row without unpacking it, and the total size of all lines.

use std::cell::RefCell;

use rusqlite::Connection;

use crate::store::sqlite::bytes::pack::{LONG, last_line};
use crate::{
    model::take_varint,
    store::{Sizes, StoreError},
};

/// How many segments' lists of lengths are cached.
const OPEN: usize = 256;

/// The lengths of lines in segments, most recently used first.
#[derive(Default)]
pub(crate) struct Lengths(RefCell<Vec<OfSegment>>);

/// The lengths of a segment's lines.
struct OfSegment {
    first: i64,
    sizes: Vec<u64>,
}

impl OfSegment {
    fn get(&self, line: i64) -> Option<u64> {
        let index = usize::try_from(line.checked_sub(self.first)?).ok()?;
        self.sizes.get(index).copied()
    }
}

impl Lengths {
    /// Returns the length of a line, if its segment is cached.
    pub(crate) fn at_hand(&self, line: i64) -> Option<u64> {
        let mut open = self.0.borrow_mut();
        let at = open.iter().position(|segment| segment.get(line).is_some())?;
        if at > 0 {
            let known = open.remove(at);
            open.insert(0, known);
        }
        open.first()?.get(line)
    }

    /// Reads the length of a line in a segment.
    pub(crate) fn find(&self, db: &Connection, line: i64) -> Result<Option<u64>, StoreError> {
        let mut find = db.prepare_cached(
            "SELECT key, sizes FROM segment WHERE key <= ? ORDER BY key DESC LIMIT 1",
        )?;
        let mut rows = find.query([line])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let sizes = varints(row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?).collect();
        let known = OfSegment { first: row.get(0)?, sizes };
        let size = known.get(line);
        let mut open = self.0.borrow_mut();
        open.insert(0, known);
        open.truncate(OPEN);
        Ok(size)
    }
}

fn varints(mut bytes: &[u8]) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || take_varint(&mut bytes))
}

/// Returns the sizes of the stored bytes.
pub(crate) fn sizes(db: &Connection) -> Result<Sizes, StoreError> {
    let number = |sql| db.query_row(sql, [], |row| row.get::<_, u64>(0));
    let mut raw = number("SELECT ifnull(sum(size), 0) FROM fresh")?;
    let mut query = db.prepare_cached("SELECT sizes FROM segment")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        raw += varints(row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?)
            .fold(0, u64::saturating_add);
    }
    Ok(Sizes {
        lines: u64::try_from(last_line(db)?).unwrap_or(0),
        raw,
        kept: number("SELECT ifnull(sum(length(body)), 0) FROM segment")?
            + number("SELECT ifnull(sum(length(body)), 0) FROM fresh")?,
        texts: number("SELECT count(*) FROM text")?,
        stored: number(
            "SELECT (SELECT page_count - (SELECT freelist_count FROM pragma_freelist_count)
                                FROM pragma_page_count) * (SELECT page_size FROM pragma_page_size)",
        )?,
    })
}

/// Returns true if there are lines so long that parallel readers would use too much memory.
pub(crate) fn has_long_lines(db: &Connection) -> Result<bool, StoreError> {
    // The number must be a literal, so that SQLite uses the partial index on such segments.
    let mut find = db.prepare_cached(&format!(
        "SELECT EXISTS (SELECT 1 FROM segment WHERE size >= {LONG}) OR EXISTS (SELECT 1 FROM fresh WHERE size >= {LONG})"
    ))?;
    Ok(find.query_row([], |row| row.get(0))?)
}

#[cfg(test)]
mod tests {
    use rusqlite::params;

    use super::*;
    use crate::store::sqlite::open::SCHEMA;

    #[test]
    fn to_ask_for_long_lines_looks_at_no_other_segment() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(SCHEMA).unwrap();
        let plan = format!("EXPLAIN QUERY PLAN SELECT 1 FROM segment WHERE size >= {LONG}");
        let plan: String = db.query_row(&plan, [], |row| row.get(3)).unwrap();
        assert!(plan.contains("segment_long"), "{plan}");
        assert!(!has_long_lines(&db).unwrap());
        let add = "INSERT INTO segment VALUES (?, 1, ?, 1, zeroblob(8), x'', x'')";
        for (key, size, is_long) in [(1, LONG - 1, false), (2, LONG, true)] {
            db.execute(add, params![key, i64::try_from(size).unwrap()]).unwrap();
            assert_eq!(has_long_lines(&db).unwrap(), is_long);
        }
    }
}
