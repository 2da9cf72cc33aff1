//! Scanning a damaged table: reads its rows by key, skipping unreadable pages.
//!
//! ```text
//! keys  1 .......... 57 | unreadable | 113 .......... 200
//!       ------------->   <--><--><-->  <----------------
//!       upwards, until    halves of    downwards, until
//!       a page fails      the rest     a page fails
//! ```
//!
//! Invariant: no row is missed whose page can be reached and read, unless too much around it is damaged: all damaged tables
//! together cost at most [`ALL`] queries, and a few more each.

use std::{cell::Cell, collections::VecDeque, ops::Range};

use rusqlite::{Connection, Row, params};

use crate::store::StoreError;

/// The minimum and the maximum number of queries for one damaged table of a session.
const PROBES: Range<u32> = 64..4096;
/// The maximum number of queries for all of them, apart from the minimum for each.
const ALL: u32 = 1 << 16;
/// One table may use this fraction of the remaining queries.
const SHARE: u32 = 16;
/// How many rows the first range has if nothing says how many there are.
const FIRST: i64 = 64;

/// The queries that remain for all damaged tables.
pub(super) struct Probes(Cell<u32>);

impl Default for Probes {
    fn default() -> Self {
        Self(Cell::new(ALL))
    }
}

impl Probes {
    fn share(&self) -> u32 {
        (self.0.get() / SHARE).clamp(PROBES.start, PROBES.end)
    }

    fn take(&self, n: u32) {
        self.0.set(self.0.get().saturating_sub(n));
    }
}

/// How far a walk came.
enum Walked {
    /// To the end.
    All,
    /// To an unreadable page, after the row with this number, if there was one.
    Until(Option<i64>),
}

/// A table, and how its rows are found by number.
pub(super) struct Table<'a> {
    /// The list of columns to read.
    pub(super) columns: &'a str,
    /// The table's name.
    pub(super) name: &'a str,
    /// The column with the number.
    pub(super) key: &'a str,
    /// The rest of the condition, such as `session = ?3`, with its bound value.
    pub(super) within: Option<(&'a str, i64)>,
}

impl Table<'_> {
    /// Passes on all readable rows, each at least once. Returns true if all could be read.
    pub(super) fn scan(
        &self,
        db: &Connection,
        probes: &Probes,
        each: &mut dyn FnMut(&Row<'_>) -> Result<(), StoreError>,
    ) -> Result<bool, StoreError> {
        let mut is_whole = true;
        let mut left = probes.share();
        let mut bound = None;
        // The longest ranges come first, because they yield the most rows for few queries.
        let mut stretches = VecDeque::new();
        stretches.push_back(0..i64::MAX);
        while let Some(keys) = stretches.pop_front().filter(|_| left > 0) {
            left = left.saturating_sub(2);
            probes.take(2);
            let Walked::Until(low) = self.walk(db, &keys, "ASC", each)? else { continue };
            is_whole = false;
            let start = low.map_or(keys.start, |low| low.saturating_add(1));
            // Rows with the same number may be on both sides of a page's end.
            let down = start.saturating_sub(1)..keys.end;
            let Walked::Until(high) = self.walk(db, &down, "DESC", each)? else { continue };
            if let Some(high) = high {
                let end = high.min(keys.end);
                let middle = start.midpoint(end);
                if start < middle {
                    stretches.extend([middle..end, start..middle]);
                }
            } else if keys.end == i64::MAX {
                // Numbers are assigned in sequence, so most are small.
                let end = *bound.get_or_insert_with(|| self.bound(db, start));
                let (mut start, mut length) = (start, FIRST);
                while start < end {
                    let next = start.saturating_add(length).min(end);
                    stretches.push_back(start..next);
                    (start, length) = (next, length.saturating_mul(2));
                }
            } else {
                let middle = start.midpoint(keys.end);
                if start < middle {
                    stretches.extend([middle..keys.end, start..middle]);
                }
            }
        }
        Ok(is_whole)
    }

    /// Returns where to stop if no row at the end can be read.
    fn bound(&self, db: &Connection, start: i64) -> i64 {
        let sql = format!("SELECT max({}) FROM {}", self.key, self.name);
        let last: Option<i64> = db.query_row(&sql, [], |row| row.get(0)).unwrap_or_default();
        let likely = start.max(0).saturating_add(1 << 20);
        last.map_or(likely, |last| last.saturating_add(1))
    }

    /// Walks through rows until one cannot be read.
    fn walk(
        &self,
        db: &Connection,
        keys: &Range<i64>,
        order: &str,
        each: &mut dyn FnMut(&Row<'_>) -> Result<(), StoreError>,
    ) -> Result<Walked, StoreError> {
        let Self { columns, name, key, within } = self;
        let (and, bound) =
            within.map_or((String::new(), 0), |(sql, value)| (format!(" AND {sql}"), value));
        let sql = format!(
            "SELECT {columns}, {key} FROM {name} WHERE {key} >= ?1 AND {key} < ?2 AND ?3 = ?3{and} ORDER BY {key} {order}"
        );
        let mut last = None;
        let mut walk = || -> Result<(), StoreError> {
            let mut query = db.prepare_cached(&sql)?;
            let mut rows = query.query(params![keys.start, keys.end, bound])?;
            while let Some(row) = rows.next()? {
                match each(row) {
                    // A value of the wrong type costs only its row.
                    Ok(()) | Err(StoreError::Corrupt { .. } | StoreError::Refused(_)) => {}
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
