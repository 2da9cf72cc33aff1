//! Pages as they lie in a database: their kinds, their cells, and the records in these, without the list of tables.
//!
//! ```text
//! page     kind (1), first free (2), cells (2), content (2), loose (1), last child (4, if it leads to others), a place (2) a cell
//! cell     its length, its number if it is a row of a table by number, its record; the rest of a long one is on other pages
//! record   the header's length, a type a column, then the values; all of these but the values are varints
//! ```
//!
//! Invariant: bytes that are no page, no cell or no record are None, whatever they are.

use std::{collections::BTreeMap, fs::File, io::Read, ops::Range, os::unix::fs::FileExt};

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

/// How long the head of a log is, and that of each page in it.
const LOG: (usize, usize) = (32, 24);

/// The sums by which a log knows what was written to it, up to some page.
type Sums = (u32, u32);

/// The pages of a database.
pub(super) struct Pages<'a> {
    file: &'a File,
    /// Where the newest copy of a page lies that is in the log.
    log: Option<(&'a File, BTreeMap<u32, u64>)>,
    pub(super) numbers: Range<u32>,
}

/// A record, as far as it is on its page.
pub(super) struct Cell<'a> {
    /// The number of its row, if rows are found by numbers.
    pub(super) row: i64,
    /// How long the whole record is.
    size: usize,
    here: &'a [u8],
    /// The page with the rest, if there is one.
    next: Option<u32>,
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
    /// Text or bytes, as far as they lie on the page, and how many there are.
    Bytes(&'a [u8], usize),
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
        let numbers = 2..u32::try_from(count).unwrap_or(u32::MAX - 1) + 1;
        Ok(Self { file, log: None, numbers })
    }

    /// Returns the same pages as their log has them, whose writes were not moved into the database yet. A page of the log that
    /// is torn or damaged hides nothing; SQLite reads no further than that, but what comes after it is vouched for no less.
    pub(super) fn with_log(mut self, log: &'a File) -> Self {
        let mut reader = std::io::BufReader::new(log);
        let mut head = [0; LOG.0];
        let (mut newest, mut written) = (BTreeMap::new(), BTreeMap::new());
        let mut at = LOG.0 as u64;
        let is_there = reader.read_exact(&mut head).is_ok();
        let is_big = head[3] & 1 == 1;
        let mut before = (number(&head, 24), number(&head, 28));
        let mut frame = [0; LOG.1 + PAGE];
        while is_there && reader.read_exact(&mut frame).is_ok() {
            let found = sums(sums(before, &frame[..8], is_big), &frame[LOG.1..], is_big);
            before = (number(&frame, 16), number(&frame, 20));
            // One that was written before the log began again has other salts.
            if found == before && frame[8..16] == head[16..24] {
                written.insert(number(&frame, 0), at + LOG.1 as u64);
                let count = number(&frame, 4);
                if count > 0 {
                    newest.append(&mut written);
                    newest.retain(|page, _| *page <= count);
                }
            }
            at += (LOG.1 + PAGE) as u64;
        }
        let last = newest.keys().next_back().copied().unwrap_or(0).min(u32::MAX - 1);
        self.numbers.end = self.numbers.end.max(last + 1);
        self.log = Some((log, newest));
        self
    }

    fn bytes(&self, number: u32) -> Option<Vec<u8>> {
        if !self.numbers.contains(&number) {
            return None;
        }
        let mut bytes = vec![0; PAGE];
        let logged = self.log.as_ref().and_then(|(log, at)| Some((*log, *at.get(&number)?)));
        let (file, at) = logged.unwrap_or((self.file, u64::from(number - 1) * PAGE as u64));
        file.read_exact_at(&mut bytes, at).ok()?;
        Some(bytes)
    }

    /// Returns a whole record, the part on other pages with it.
    pub(super) fn whole(&self, cell: &Cell<'_>) -> Option<Vec<u8>> {
        // Pages that lead in a circle would be read until a length is reached that is damaged, too.
        if cell.size as u64 > u64::from(self.numbers.end) * PAGE as u64 {
            return None;
        }
        let mut bytes = cell.here.to_vec();
        let mut next = cell.next;
        while bytes.len() < cell.size {
            let page = self.bytes(next?)?;
            let content = page.get(4..)?;
            bytes.extend(content.iter().take(cell.size - bytes.len()));
            next = Some(number(&page, 0));
        }
        Some(bytes)
    }

    /// Returns a page that is one of a tree.
    pub(super) fn page(&self, number: u32) -> Option<Page> {
        let bytes = self.bytes(number)?;
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
                    let Some(cell) = page.cells().next() else {
                        return (page.kind == Kind::Leaf { is_by_row }).then_some(Likeness::Empty);
                    };
                    return (fields(cell?.here)?.len() == columns).then_some(Likeness::Rows);
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
        self.cells().filter(move |_| has_rows).filter_map(|cell| cell?.fields())
    }

    /// Returns the cells of a page; those without a record, and those that are none, are None.
    pub(super) fn cells(&self) -> impl Iterator<Item = Option<Cell<'_>>> {
        (0..self.count()).map(|n| {
            let rest = self.bytes.get(self.cell(n)?..)?;
            let (is_by_row, rest) = match self.kind {
                Kind::Interior { is_by_row: true } => return None,
                Kind::Interior { is_by_row: false } => (false, rest.get(4..)?),
                Kind::Leaf { is_by_row } => (is_by_row, rest),
            };
            let (size, rest) = varint(rest)?;
            let (row, rest) = if is_by_row { varint(rest)? } else { (0, rest) };
            let size = usize::try_from(size).ok()?;
            // What follows on the page belongs to others.
            let here = on_page(size, is_by_row);
            let next = if here < size { Some(number(rest.get(..here + 4)?, here)) } else { None };
            Some(Cell { row: row.cast_signed(), size, here: rest.get(..here)?, next })
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
        Some(number(&self.bytes, at))
    }

    fn short(&self, at: usize) -> Option<usize> {
        let bytes = self.bytes.get(at..at + 2)?.try_into().ok()?;
        Some(usize::from(u16::from_be_bytes(bytes)))
    }
}

impl<'a> Cell<'a> {
    /// Returns the values of the record, as far as they lie on its page.
    pub(super) fn fields(&self) -> Option<Vec<Field<'a>>> {
        fields(self.here)
    }
}

/// Returns the number that is somewhere in bytes; 0, which no page has, if they end before.
fn number(bytes: &[u8], at: usize) -> u32 {
    let found = bytes.get(at..at + 4).and_then(|found| found.try_into().ok());
    found.map_or(0, u32::from_be_bytes)
}

/// Goes on with the sums of a log over more bytes, whose words lie in this order.
fn sums((mut one, mut two): Sums, bytes: &[u8], is_big: bool) -> Sums {
    let word = |bytes| if is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
    for [first, second] in bytes.as_chunks().0.as_chunks().0 {
        one = one.wrapping_add(word(*first)).wrapping_add(two);
        two = two.wrapping_add(word(*second)).wrapping_add(one);
    }
    (one, two)
}

/// Returns how much of a record is on its own page.
fn on_page(size: usize, is_by_row: bool) -> usize {
    let most = if is_by_row { PAGE - 35 } else { (PAGE - 12) * 64 / 255 - 23 };
    if size <= most {
        return size;
    }
    let least = (PAGE - 12) * 32 / 255 - 23;
    let some = least + (size - least) % (PAGE - 4);
    if some <= most { some } else { least }
}

/// Returns the values of a record.
pub(super) fn fields(record: &[u8]) -> Option<Vec<Field<'_>>> {
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
            12.. => Field::Bytes(value, size),
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
    use std::io::{Seek as _, Write as _};

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
        let bytes = |bytes: &'static [u8]| Field::Bytes(bytes, bytes.len());
        assert_eq!(rows[0], [Field::Number(-2), bytes(b"two"), Field::Other]);
        assert_eq!(rows[1], [Field::Number(300), bytes(b"x"), bytes(b"\0")]);
        assert_eq!(rows[2], [Field::Number(1), bytes(b""), bytes(b"")]);
        let like = |root, by_row, columns| pages.likeness(root, by_row, columns);
        assert_eq!(like(2, true, 3), Some(Likeness::Rows));
        assert_eq!([like(2, true, 2), like(2, false, 3), like(1, true, 5)], [None; 3]);
        assert_eq!(like(3, true, 7), Some(Likeness::Empty));
        assert_eq!(like(4, false, 2), Some(Likeness::Rows));
        assert_eq!([like(4, true, 2), like(4_000_000, true, 2)], [None; 2]);
    }

    #[test]
    fn long_records_are_put_together_also_from_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.db");
        let db = Connection::open(&path).unwrap();
        db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
        let sizes = [1, 450, 1000, 2000, 4050, 4051, 4070, 8000, 100_000];
        db.execute_batch(
            "CREATE TABLE a (n INTEGER PRIMARY KEY, b BLOB);
             CREATE TABLE k (n INTEGER PRIMARY KEY, b BLOB) WITHOUT ROWID",
        )
        .unwrap();
        for (is_logged, sizes) in [(false, &sizes[..5]), (true, &sizes[5..])] {
            for size in sizes {
                for table in ["a", "k"] {
                    let bytes = vec![u8::try_from(size % 251).unwrap(); *size];
                    let sql = format!("INSERT INTO {table} VALUES (?, ?)");
                    db.execute(&sql, rusqlite::params![size, bytes]).unwrap();
                }
            }
            if !is_logged {
                db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
            }
        }
        let open = |path| disk::open(path, Links::Refuse).unwrap();
        let (file, log) = (open(&path), open(&folder.path().join("some.db-wal")));
        let pages = Pages::of(&file).unwrap().with_log(&log);
        let mut found = [Vec::new(), Vec::new()];
        for page in pages.numbers.clone().filter_map(|number| pages.page(number)) {
            for cell in page.cells().flatten() {
                let Some(record) = pages.whole(&cell) else { continue };
                let (row, bytes, is_by_row) = match fields(&record).unwrap()[..] {
                    [Field::Other, Field::Bytes(bytes, _)] => (cell.row, bytes, true),
                    [Field::Number(n), Field::Bytes(bytes, _)] => (n, bytes, false),
                    _ => continue,
                };
                let size = usize::try_from(row).unwrap();
                assert_eq!(bytes, vec![u8::try_from(size % 251).unwrap(); size]);
                // On its page lies nothing but its own.
                let [.., Field::Bytes(here, all)] = cell.fields().unwrap()[..] else { panic!() };
                assert_eq!((here, all), (&bytes[..here.len()], size));
                found[usize::from(is_by_row)].push(size);
            }
        }
        for found in &mut found {
            found.sort_unstable();
        }
        assert_eq!(found, [&sizes[..], &sizes[..]]);
    }

    #[test]
    fn a_damaged_page_of_a_log_hides_nothing_and_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.db");
        let db = Connection::open(&path).unwrap();
        db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
        db.execute_batch("CREATE TABLE a (n INTEGER)").unwrap();
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        for n in 1..4 {
            db.execute("INSERT INTO a VALUES (?)", [100 * n]).unwrap();
        }
        let open = |path| disk::open(path, Links::Refuse).unwrap();
        let log = folder.path().join("some.db-wal");
        let (file, mut written) = (open(&path), Vec::new());
        open(&log).read_to_end(&mut written).unwrap();
        let frames = LOG.0..written.len();
        let frames: Vec<usize> = frames.step_by(LOG.1 + PAGE).collect();
        assert_eq!(frames.len(), 3);
        let rows = |bytes: &[u8]| {
            let mut log = tempfile::tempfile().unwrap();
            log.write_all(bytes).unwrap();
            log.rewind().unwrap();
            let pages = Pages::of(&file).unwrap().with_log(&log);
            assert_eq!(pages.numbers, 2..3);
            pages.page(2).unwrap().rows().count()
        };
        assert_eq!(rows(&written), 3);
        for (frame, left) in frames.iter().zip([3, 3, 2]) {
            // The number of the page, how long the database is, the salts, the sums, and the page.
            for at in [0, 3, 5, 9, 17, 22, LOG.1, LOG.1 + 8, LOG.1 + PAGE - 1] {
                let mut damaged = written.clone();
                damaged[frame + at] ^= 0xf0;
                // The sums of the next one go on from those of the one before it.
                let left = if (16..LOG.1).contains(&at) && *frame == frames[1] { 1 } else { left };
                assert_eq!(rows(&damaged), left, "{frame} {at}");
            }
            assert_eq!(rows(&written[..frame + 100]), (frame - LOG.0) / (LOG.1 + PAGE));
        }
    }

    #[test]
    fn a_record_is_no_longer_than_its_database() {
        // A row with a length of 2 GiB, whose rest is on a page that leads to itself.
        let mut page = vec![0; PAGE];
        let size = 1_usize << 31;
        let mut cell = vec![0x88, 0x80, 0x80, 0x80, 0x00, 1];
        cell.resize(cell.len() + on_page(size, true), 1);
        cell.extend([0, 0, 0, 3]);
        let at = PAGE - cell.len();
        page[..10].copy_from_slice(&[13, 0, 0, 0, 1, 0, 0, 0, 0, 0]);
        page[8..10].copy_from_slice(&u16::try_from(at).unwrap().to_be_bytes());
        page[at..].copy_from_slice(&cell);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[0; PAGE]).unwrap();
        file.write_all(&page).unwrap();
        file.write_all(&[[0, 0, 0, 3], [1; 4]].concat().repeat(PAGE / 8)).unwrap();
        let pages = Pages::of(&file).unwrap();
        let page = pages.page(2).unwrap();
        let cells: Vec<_> = page.cells().flatten().collect();
        assert_eq!(
            cells.iter().map(|cell| (cell.size, cell.next)).collect::<Vec<_>>(),
            [(size, Some(3))]
        );
        assert_eq!(pages.whole(&cells[0]), None);
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
            let page = pages.page(number).unwrap();
            assert!(page.rows().count() <= 65_535);
            let whole = page.cells().flatten().filter_map(|cell| pages.whole(&cell));
            assert!(whole.count() <= 65_535);
            let _ = (pages.likeness(number, true, 3), pages.likeness(number, false, 3));
        }
    }
}
