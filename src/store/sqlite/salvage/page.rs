//! Pages as they lie in a database: their kinds, their cells, and the records in these, without the list of tables.
//!
//! ```text
//! page     kind (1), first free (2), cells (2), content (2), loose (1), last child (4, if it leads to others), a place (2) a cell
//! record   the header's length, a type a column, then the values; all of these but the values are varints
//! ```
//!
//! Invariant: bytes that are no page, no cell or no record are None, whatever they are.

use std::{fs::File, ops::Range, os::unix::fs::FileExt};

/// How long a page is: SQLite's default, which no store changes.
pub(super) const PAGE: usize = 4096;
/// How deep a tree is at the most: each page but the last ones leads to two or more.
const DEPTH: usize = 32;

/// What a page is in its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// One that leads to others; by row numbers, or by keys.
    Interior { is_by_row: bool },
    /// One with rows.
    Leaf { is_by_row: bool },
}

/// The pages of a database.
pub(super) struct Pages<'a> {
    file: &'a File,
    pub(super) numbers: Range<u32>,
}

/// How well a tree looks like that of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Likeness {
    /// It has no rows, and could hold them.
    Empty,
    /// Its first row has as many columns.
    Rows,
}

/// A value of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field<'a> {
    Number(i64),
    /// Text or bytes, as far as they lie on the page.
    Bytes(&'a [u8]),
    Other,
}

/// A page of a tree.
pub(super) struct Page {
    bytes: Vec<u8>,
    kind: Kind,
}

impl<'a> Pages<'a> {
    /// Returns the pages behind the first one, which has a header of its own.
    pub(super) fn of(file: &'a File) -> std::io::Result<Self> {
        let count = file.metadata()?.len().div_ceil(PAGE as u64);
        Ok(Self { file, numbers: 2..u32::try_from(count).unwrap_or(u32::MAX - 1) + 1 })
    }

    /// Returns a page that is one of a tree.
    pub(super) fn page(&self, number: u32) -> Option<Page> {
        if !self.numbers.contains(&number) {
            return None;
        }
        let mut bytes = vec![0; PAGE];
        self.file.read_exact_at(&mut bytes, u64::from(number - 1) * PAGE as u64).ok()?;
        let kind = match bytes.first()? {
            2 => Kind::Interior { is_by_row: false },
            5 => Kind::Interior { is_by_row: true },
            10 => Kind::Leaf { is_by_row: false },
            13 => Kind::Leaf { is_by_row: true },
            _ => return None,
        };
        Some(Page { bytes, kind })
    }

    /// Returns how well the tree that begins at a page looks like that of a table with this many columns.
    pub(super) fn likeness(&self, root: u32, by_row: bool, columns: usize) -> Option<Likeness> {
        let mut number = root;
        for _ in 0..DEPTH {
            let page = self.page(number)?;
            match page.kind {
                Kind::Interior { is_by_row: true } if by_row => number = page.first_child()?,
                Kind::Leaf { is_by_row } | Kind::Interior { is_by_row } if is_by_row == by_row => {
                    let Some(record) = page.records().next() else {
                        return (page.kind == Kind::Leaf { is_by_row }).then_some(Likeness::Empty);
                    };
                    return (fields(record?)?.len() == columns).then_some(Likeness::Rows);
                }
                _ => return None,
            }
        }
        None
    }
}

impl Page {
    /// Returns the records of a page with the rows of a table, as far as they lie on it.
    pub(super) fn rows(&self) -> impl Iterator<Item = Vec<Field<'_>>> {
        let has_rows = self.kind == Kind::Leaf { is_by_row: true };
        self.records().filter(move |_| has_rows).filter_map(|record| fields(record?))
    }

    fn records(&self) -> impl Iterator<Item = Option<&[u8]>> {
        (0..self.count()).map(|n| {
            let cell = self.cell(n)?;
            let rest = self.bytes.get(cell..)?;
            let rest = match self.kind {
                Kind::Interior { .. } => rest.get(4..)?,
                Kind::Leaf { .. } => rest,
            };
            let (_, rest) = varint(rest)?;
            match self.kind {
                Kind::Leaf { is_by_row: true } => Some(varint(rest)?.1),
                _ => Some(rest),
            }
        })
    }

    fn count(&self) -> usize {
        self.short(3).unwrap_or(0)
    }

    fn cell(&self, n: usize) -> Option<usize> {
        let header = if matches!(self.kind, Kind::Interior { .. }) { 12 } else { 8 };
        self.short(header + 2 * n)
    }

    fn first_child(&self) -> Option<u32> {
        let at = if self.count() > 0 { self.cell(0)? } else { 8 };
        Some(u32::from_be_bytes(self.bytes.get(at..at + 4)?.try_into().ok()?))
    }

    fn short(&self, at: usize) -> Option<usize> {
        let bytes = self.bytes.get(at..at + 2)?.try_into().ok()?;
        Some(usize::from(u16::from_be_bytes(bytes)))
    }
}

/// Returns the values of a record.
fn fields(record: &[u8]) -> Option<Vec<Field<'_>>> {
    let (length, mut types) = varint(record)?;
    let length = usize::try_from(length).ok()?;
    let mut values = record.get(length..)?;
    types = types.get(..length.checked_sub(record.len() - types.len())?)?;
    let mut fields = Vec::new();
    while !types.is_empty() {
        let (kind, rest) = varint(types)?;
        types = rest;
        let size = match kind {
            0 | 8 | 9 => 0,
            1..=4 => kind,
            5 => 6,
            6 | 7 => 8,
            10 | 11 => return None,
            kind => (kind - 12) / 2,
        };
        let size = usize::try_from(size).ok()?;
        let (value, rest) = values.split_at(size.min(values.len()));
        values = rest;
        fields.push(match kind {
            8 => Field::Number(0),
            9 => Field::Number(1),
            1..=6 => {
                let first = i64::from(value.first().copied().unwrap_or(0).cast_signed());
                Field::Number(
                    value.iter().skip(1).fold(first, |sum, byte| sum << 8 | i64::from(*byte)),
                )
            }
            12.. => Field::Bytes(value),
            _ => Field::Other,
        });
    }
    Some(fields)
}

/// Returns a varint as SQLite writes it, and what follows it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (at, byte) in bytes.iter().enumerate().take(9) {
        if at == 8 {
            return Some((number << 8 | u64::from(*byte), bytes.get(9..)?));
        }
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((number, bytes.get(at + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use rusqlite::Connection;

    use super::*;
    use crate::disk::{self, Links};

    #[test]
    fn rows_and_trees_are_those_that_sqlite_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.db");
        let db = Connection::open(&path).unwrap();
        db.execute_batch(
            "CREATE TABLE a (n INTEGER, t TEXT, b BLOB); CREATE TABLE e (n INTEGER);
             CREATE TABLE k (k INTEGER PRIMARY KEY, t TEXT) WITHOUT ROWID;
             INSERT INTO a VALUES (-2, 'two', NULL), (300, 'x', x'00'), (1, '', x'')",
        )
        .unwrap();
        for n in 0..500 {
            db.execute("INSERT INTO k VALUES (?, 'some words that fill pages')", [n]).unwrap();
        }
        drop(db);
        let file = disk::open(&path, Links::Refuse).unwrap();
        let pages = Pages::of(&file).unwrap();
        let page = pages.page(2).unwrap();
        let rows: Vec<_> = page.rows().collect();
        assert_eq!(rows[0], [Field::Number(-2), Field::Bytes(b"two"), Field::Other]);
        assert_eq!(rows[1], [Field::Number(300), Field::Bytes(b"x"), Field::Bytes(b"\0")]);
        assert_eq!(rows[2], [Field::Number(1), Field::Bytes(b""), Field::Bytes(b"")]);
        let like = |root, by_row, columns| pages.likeness(root, by_row, columns);
        assert_eq!(like(2, true, 3), Some(Likeness::Rows));
        assert_eq!([like(2, true, 2), like(2, false, 3), like(1, true, 5)], [None; 3]);
        assert_eq!(like(3, true, 7), Some(Likeness::Empty));
        assert_eq!(like(4, false, 2), Some(Likeness::Rows));
        assert_eq!([like(4, true, 2), like(4_000_000, true, 2)], [None; 2]);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic() {
        let mut number = 1_u64;
        let mut next = || {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            number.to_be_bytes()[0]
        };
        let mut file = tempfile::tempfile().unwrap();
        for kind in [2, 5, 10, 13].repeat(50) {
            let mut page: Vec<u8> = (0..PAGE).map(|_| next()).collect();
            page[0] = kind;
            file.write_all(&page).unwrap();
        }
        let pages = Pages::of(&file).unwrap();
        for number in pages.numbers.clone() {
            let rows = pages.page(number).unwrap().rows().count();
            assert!(rows <= 65_535);
            let _ = (pages.likeness(number, true, 3), pages.likeness(number, false, 3));
        }
    }
}
