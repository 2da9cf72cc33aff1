//! Scanning a damaged table: its rows by their keys, around the pages that cannot be read.
//!
//! ```text
//! keys  1 .......... 57 | unreadable | 113 .......... 200
//!       ------------->   <--><--><-->  <----------------
//!       upwards, until    halves of    downwards, until
//!       a page fails      the rest     a page fails
//! ```
//!
//! Invariant: a row is handed over at least once if a page that holds it can be reached and read; a damaged table costs no
//! more than [`PROBES`] queries.

use std::ops::Range;

use rusqlite::{Connection, Row, params};

use crate::store::StoreError;

/// How many queries one damaged stretch may cost.
const PROBES: u32 = 4096;

/// How far a walk came.
enum Walked {
    /// To the end.
    All,
    /// To a page that cannot be read, behind the row with this number, if there was one.
    Until(Option<i64>),
}

/// A table, and how its rows are found by a number.
pub(super) struct Table<'a> {
    /// The columns that are read, in a list.
    pub(super) columns: &'a str,
    /// The table's name.
    pub(super) name: &'a str,
    /// The column with the number.
    pub(super) key: &'a str,
    /// The rest of the condition, such as `session = ?3`, and the value that is bound to it.
    pub(super) within: Option<(&'a str, i64)>,
}

impl Table<'_> {
    /// Hands over all rows that can be read, each at least once, and returns whether all could be.
    pub(super) fn scan(
        &self,
        db: &Connection,
        each: &mut dyn FnMut(&Row<'_>) -> Result<(), StoreError>,
    ) -> Result<bool, StoreError> {
        let mut probes = PROBES;
        self.range(db, 0..i64::MAX, &mut probes, each)
    }

    fn range(
        &self,
        db: &Connection,
        keys: Range<i64>,
        probes: &mut u32,
        each: &mut dyn FnMut(&Row<'_>) -> Result<(), StoreError>,
    ) -> Result<bool, StoreError> {
        let Walked::Until(low) = self.walk(db, &keys, "ASC", probes, each)? else {
            return Ok(true);
        };
        let rest = low.map_or(keys.start, |low| low.saturating_add(1))..keys.end;
        // The row at which a page ended may have neighbours with the same number.
        let down = rest.start.saturating_sub(1)..rest.end;
        let Walked::Until(high) = self.walk(db, &down, "DESC", probes, each)? else {
            return Ok(false);
        };
        let rest =
            rest.start..high.map_or_else(|| self.bound(db, &rest), |high| high.min(rest.end));
        let middle = rest.start.midpoint(rest.end);
        if rest.start < middle && *probes > 0 {
            self.range(db, middle..rest.end, probes, each)?;
            self.range(db, rest.start..middle, probes, each)?;
        }
        Ok(false)
    }

    /// Returns where to stop where no row at the end can be read: numbers are given one after the other.
    fn bound(&self, db: &Connection, keys: &Range<i64>) -> i64 {
        let sql = format!("SELECT max({}) FROM {}", self.key, self.name);
        let last: Option<i64> = db.query_row(&sql, [], |row| row.get(0)).unwrap_or_default();
        let likely = keys.start.max(0).saturating_add(1 << 20);
        last.map_or(likely, |last| last.saturating_add(1)).min(keys.end)
    }

    /// Walks through rows until one cannot be read.
    fn walk(
        &self,
        db: &Connection,
        keys: &Range<i64>,
        order: &str,
        probes: &mut u32,
        each: &mut dyn FnMut(&Row<'_>) -> Result<(), StoreError>,
    ) -> Result<Walked, StoreError> {
        let Self { columns, name, key, within } = self;
        let (and, bound) =
            within.map_or((String::new(), 0), |(sql, value)| (format!(" AND {sql}"), value));
        let sql = format!(
            "SELECT {columns}, {key} FROM {name} WHERE {key} >= ?1 AND {key} < ?2 AND ?3 = ?3{and} ORDER BY {key} {order}"
        );
        *probes = probes.saturating_sub(1);
        let mut last = None;
        let mut walk = || -> Result<(), StoreError> {
            let mut query = db.prepare_cached(&sql)?;
            let mut rows = query.query(params![keys.start, keys.end, bound])?;
            while let Some(row) = rows.next()? {
                match each(row) {
                    // A value that is not of its column's kind costs its row alone.
                    Ok(()) | Err(StoreError::Corrupt { .. }) => {}
                    Err(error) => return Err(error),
                }
                last = row.get(row.as_ref().column_count() - 1).ok().or(last);
            }
            Ok(())
        };
        match walk() {
            Ok(()) => Ok(Walked::All),
            Err(StoreError::Corrupt { .. } | StoreError::Database(_) | StoreError::Io { .. }) => {
                Ok(Walked::Until(last))
            }
            Err(error) => Err(error),
        }
    }
}
