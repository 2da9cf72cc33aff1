//! Queries: runs them and reads columns of any table.

use std::ops::Range;

use rusqlite::{
    Connection, OptionalExtension, Params, Row, ToSql,
    types::{FromSql, FromSqlResult, ToSqlOutput, ValueRef},
};

use crate::{
    model::{CheckpointNumber, EntryNumber, FileNumber, GenerationNumber, OperationNumber, Tagged},
    store::{SessionKey, StoreError},
};

/// What becomes of the WAL once its pages are in the database.
#[derive(Clone, Copy)]
pub(super) enum Emptied {
    /// It is written from its beginning again, and keeps its length.
    Restarted,
    /// It has no length any more.
    Truncated,
}

/// Moves all that is in the WAL into the database and waits until it is on the disk. A reader that needs the WAL as it is, or another
/// program that moves it, is [`StoreError::Busy`]: SQLite tells of these in a row, and not by an error.
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

/// A number that a column holds.
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

/// Returns the numbers of a range as a query may bind them.
pub(super) fn bounds(range: &Range<impl Number>) -> (i64, i64) {
    let bound = |n: _| i64::try_from(Number::number(n)).unwrap_or(i64::MAX);
    (bound(range.start), bound(range.end))
}

/// Says that a column holds a value that it may not.
pub(super) fn damaged(column: usize, problem: &str) -> rusqlite::Error {
    let kind = rusqlite::types::Type::Blob;
    rusqlite::Error::FromSqlConversionFailure(column, kind, problem.into())
}

/// Reads a column that holds a tagged value.
pub(super) fn tagged<T: Tagged>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let bytes = row.get_ref(column)?.as_blob()?;
    T::read(bytes, &mut Vec::new()).map_err(|malformed| damaged(column, malformed.0))
}

/// Refuses the key of a session.
pub(super) fn unknown(session: SessionKey) -> StoreError {
    StoreError::corrupt("a session", format!("no session has the key {}", session.0))
}

/// Reads a column that holds 32 bytes.
pub(super) fn hash(row: &Row<'_>, column: usize) -> rusqlite::Result<[u8; 32]> {
    row.get(column)
}
