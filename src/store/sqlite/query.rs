//! Queries: runs cached statements and reads common columns.

use std::ops::Range;

use rusqlite::{
    Connection, OptionalExtension, Params, Row, ToSql,
    types::{FromSql, FromSqlResult, ToSqlOutput, ValueRef},
};

use crate::{
    model::{CheckpointNumber, EntryNumber, FileNumber, GenerationNumber, OperationNumber, Tagged},
    store::{SessionKey, StoreError},
};

/// What happens to the WAL after its pages were moved into the database.
#[derive(Clone, Copy)]
pub(super) enum Emptied {
    /// It is overwritten from its beginning and keeps its length.
    Restarted,
    /// It is truncated to nothing.
    Truncated,
}

/// Moves the WAL into the database, and syncs. If a reader needs the WAL, or another program is moving it, returns
/// [`StoreError::Busy`]: SQLite reports this in a row, not as an error.
pub(super) fn empty_wal(db: &Connection, emptied: Emptied) -> Result<(), StoreError> {
    let sql = match emptied {
        Emptied::Restarted => "PRAGMA wal_checkpoint(RESTART)",
        Emptied::Truncated => "PRAGMA wal_checkpoint(TRUNCATE)",
    };
    let is_blocked: bool = db.query_row(sql, [], |row| row.get(0))?;
    if is_blocked { Err(StoreError::Busy) } else { Ok(()) }
}

/// Collects the rows of a cached query.
pub(super) fn collect<T>(
    db: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, StoreError> {
    Ok(db.prepare_cached(sql)?.query_map(params, read)?.collect::<Result<_, _>>()?)
}

/// Returns the first row of a cached query.
pub(super) fn first<T>(
    db: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Option<T>, StoreError> {
    Ok(db.prepare_cached(sql)?.query_row(params, read).optional()?)
}

/// Executes a cached statement.
pub(super) fn execute(db: &Connection, sql: &str, params: impl Params) -> Result<(), StoreError> {
    db.prepare_cached(sql)?.execute(params)?;
    Ok(())
}

/// Passes on the rows of a cached query.
pub(super) fn each(
    db: &Connection,
    sql: &str,
    params: impl Params,
    mut read: impl FnMut(&Row<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut query = db.prepare_cached(sql)?;
    let mut rows = query.query(params)?;
    while let Some(row) = rows.next()? {
        read(row)?;
    }
    Ok(())
}

/// A number in a column.
pub(super) trait Number: Copy {
    fn number(self) -> u64;
}

impl Number for u64 {
    fn number(self) -> u64 {
        self
    }
}

macro_rules! number_column {
    ($($type:ident),+) => {$(
        impl Number for $type {
            fn number(self) -> u64 {
                self.get()
            }
        }

        impl ToSql for $type {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                i64::try_from(self.get())
                    .map(ToSqlOutput::from)
                    .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
            }
        }

        impl FromSql for $type {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                u64::column_result(value).map(Self::new)
            }
        }
    )+};
}

number_column!(CheckpointNumber, EntryNumber, FileNumber, GenerationNumber, OperationNumber);

/// Returns the bounds of a range as values for a query.
pub(super) fn bounds(range: &Range<impl Number>) -> (i64, i64) {
    let bound = |n: _| i64::try_from(Number::number(n)).unwrap_or(i64::MAX);
    (bound(range.start), bound(range.end))
}

/// Returns the error for an invalid value in a column.
pub(super) fn damaged(column: usize, problem: &str) -> rusqlite::Error {
    let kind = rusqlite::types::Type::Blob;
    rusqlite::Error::FromSqlConversionFailure(column, kind, problem.into())
}

/// Reads a tagged value from a column.
pub(super) fn tagged<T: Tagged>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let bytes = row.get_ref(column)?.as_blob()?;
    T::read(bytes, &mut Vec::new()).map_err(|malformed| damaged(column, malformed.0))
}

/// Returns the error for an unknown session key.
pub(super) fn unknown(session: SessionKey) -> StoreError {
    StoreError::corrupt("a session", format!("no session has the key {}", session.0))
}

/// Reads 32 bytes from a column.
pub(super) fn hash(row: &Row<'_>, column: usize) -> rusqlite::Result<[u8; 32]> {
    row.get(column)
}
