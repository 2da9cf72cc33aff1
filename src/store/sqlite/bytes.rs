//! Bytes: lines by content, with repeated strings kept once, packed into compressed segments.
//!
//! ```text
//! line as it arrived   {"message":"<long string A>","toolUseResult":"<long string A>"}
//! its body             1 reference: after 28 + |A| literal bytes, line 0 (this one), offset 12, |A| bytes
//!                      literal bytes: {"message":"<long string A>","toolUseResult":""}
//! segment              zstd( lengths of the bodies, bodies ) of consecutive lines
//! ```
//!
//! Invariant: segments cover the lines from the first on without a gap; what follows them lies inline.
//! Invariant: a reference points at literal bytes, never at another reference.

use std::{cell::RefCell, collections::BTreeMap, ops::Range, path::Path, sync::Arc};

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::{
    add::{MANY, add_all},
    hash,
    pack::{Packing, SEGMENT, Segment},
};
use crate::{
    model::{EntryId, LineId, put_varint, take_varint},
    store::{NewLine, SessionKey, Sizes, StoreError, Whole},
};

/// How many opened segments are kept at hand.
const OPEN_SEGMENTS: usize = 12;
/// How often, in lines, an appending program looks whether there is a segment's worth to pack.
const PACK_EVERY: i64 = 64;
/// How many lines, and how many strings, are remembered by their whole hash.
const KNOWN: usize = 1 << 20;

/// A hash as numbers, which are compared faster than its bytes.
type Words = [u64; 4];

fn words(hash: &[u8; 32]) -> Words {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(hash.as_chunks().0) {
        *word = u64::from_be_bytes(*bytes);
    }
    words
}

/// The state of one connection: what is on its way into the store, and caches, none of which shows in any answer.
#[derive(Default)]
pub(super) struct Bytes {
    known: BTreeMap<Words, Place>,
    lines: BTreeMap<Words, i64>,
    /// Whether every line and every string of the store is remembered.
    is_all: bool,
    open: RefCell<Vec<Arc<Segment>>>,
    /// The lines of commits that are gathered.
    packing: Option<Packing>,
    /// Whether so many lines were added that there may be a segment's worth to pack.
    is_due: bool,
}

/// Where a string stands: in the literal bytes of a line's body.
#[derive(Clone, Copy)]
struct Place {
    line: i64,
    at: u64,
    size: u64,
}

/// The body of a line, wherever it lies.
enum Body<'a> {
    Inline(Vec<u8>),
    Gathered(&'a [u8]),
    Packed(Arc<Segment>, Range<usize>),
}

impl Body<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Inline(bytes) => bytes,
            Self::Gathered(bytes) => bytes,
            Self::Packed(segment, range) => segment.data.get(range.clone()).unwrap_or_default(),
        }
    }
}

/// A body taken apart: after so many literal bytes, so many bytes from a place.
struct Parts<'a> {
    references: Vec<(usize, Place)>,
    literal: &'a [u8],
}

impl<'a> Parts<'a> {
    fn read(mut body: &'a [u8]) -> Option<Self> {
        let count = take_varint(&mut body)?;
        let mut references = Vec::new();
        for _ in 0..count {
            let gap = usize::try_from(take_varint(&mut body)?).ok()?;
            let line = i64::try_from(take_varint(&mut body)?).ok()?;
            let (at, size) = (take_varint(&mut body)?, take_varint(&mut body)?);
            references.push((gap, Place { line, at, size }));
        }
        Some(Self { references, literal: body })
    }

    fn slice(&self, place: Place) -> Option<&'a [u8]> {
        let at = usize::try_from(place.at).ok()?;
        self.literal.get(at..at.checked_add(usize::try_from(place.size).ok()?)?)
    }
}

/// Writes the body of a line: its references, and its bytes without those that they stand for.
fn write_body(references: &[(usize, Place)], line: &[u8], cuts: &[Range<usize>]) -> Vec<u8> {
    let cut: usize = cuts.iter().map(ExactSizeIterator::len).sum();
    let mut body = Vec::with_capacity(line.len() - cut + 8 + 12 * references.len());
    put_varint(&mut body, references.len() as u64);
    for (gap, place) in references {
        put_varint(&mut body, *gap as u64);
        put_varint(&mut body, place.line.cast_unsigned());
        put_varint(&mut body, place.at);
        put_varint(&mut body, place.size);
    }
    let mut rest = 0;
    for cut in cuts {
        body.extend_from_slice(line.get(rest..cut.start).unwrap_or_default());
        rest = cut.end;
    }
    body.extend_from_slice(line.get(rest..).unwrap_or_default());
    body
}

/// Rows of lines on their way into the table, fewer than a statement adds at once.
#[derive(Default)]
struct Rows(Vec<(i64, [u8; 32], u64)>);

impl Rows {
    /// Returns the key of a line that is on its way.
    fn find(&self, id: &[u8; 32]) -> Option<i64> {
        self.0.iter().find(|(_, hash, _)| hash == id).map(|(key, ..)| *key)
    }

    /// Adds them.
    fn add(&mut self, db: &Connection) -> Result<(), StoreError> {
        add_all(db, "line", 3, self.0.drain(..), |row, (key, hash, size)| {
            row.set(key)?.set(hash)?.set(size)?;
            Ok(())
        })
    }
}

fn torn(line: i64, problem: &str) -> StoreError {
    StoreError::corrupt(format!("line {line}"), problem)
}

impl Bytes {
    /// Forgets what a transaction that failed had added.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Keeps the lines of the commits that follow out of the tables until [`Bytes::settle`], and packs them meanwhile.
    pub(super) fn gather(&mut self, db: &Connection) -> Result<(), StoreError> {
        if self.packing.is_none() {
            self.packing = Some(Packing::begin(db)?.beside());
            if last_line(db)? == 0 {
                // A store that begins empty holds nothing but what is remembered from here on.
                (self.known, self.lines, self.is_all) = (BTreeMap::new(), BTreeMap::new(), true);
            }
        }
        Ok(())
    }

    /// Puts the lines of gathered commits where they belong.
    pub(super) fn settle(&mut self, db: &Connection) -> Result<(), StoreError> {
        self.packing.take().map_or(Ok(()), |packing| packing.finish(db))
    }

    /// Adds the lines that are not there yet and returns the keys of all.
    pub(super) fn add(
        &mut self,
        db: &Connection,
        lines: Vec<NewLine>,
    ) -> Result<Vec<i64>, StoreError> {
        let mut next = last_line(db)? + 1;
        let before = next;
        // Other programs may have added lines; keys have no gaps.
        self.is_all &= i64::try_from(self.lines.len()) == Ok(next - 1);
        let is_gathered = self.packing.is_some();
        if !is_gathered && lines.iter().map(|line| line.bytes.len()).sum::<usize>() >= SEGMENT {
            self.packing = Some(Packing::begin(db)?);
        }
        let mut rows = Rows::default();
        let mut leave = db.prepare_cached("INSERT INTO fresh VALUES (?, ?)")?;
        let mut keys = Vec::with_capacity(lines.len());
        for line in lines {
            let id = *line.id.as_bytes();
            let held = match rows.find(&id) {
                None => self.find_line(db, &id)?,
                held => held,
            };
            if let Some(key) = held {
                keys.push(key);
                continue;
            }
            let size = line.bytes.len() as u64;
            let body = self.encode(db, next, line)?;
            rows.0.push((next, id, size));
            if rows.0.len() >= MANY {
                rows.add(db)?;
            }
            if let Some(packing) = &mut self.packing {
                packing.push(db, next, body)?;
            } else {
                leave.execute(params![next, body])?;
            }
            if self.is_all {
                self.lines.insert(words(&id), next);
                self.is_all = self.lines.len() < KNOWN;
            }
            keys.push(next);
            next += 1;
        }
        rows.add(db)?;
        self.is_due |= before / PACK_EVERY != next / PACK_EVERY;
        if !is_gathered {
            self.settle(db)?;
        }
        Ok(keys)
    }

    /// Packs the lines that lie inline, if it is time to look and there is a segment's worth of them.
    pub(super) fn pack(&mut self, db: &mut Connection) -> Result<(), StoreError> {
        if std::mem::take(&mut self.is_due) { pack(db) } else { Ok(()) }
    }

    fn find_line(&self, db: &Connection, id: &[u8; 32]) -> Result<Option<i64>, StoreError> {
        if self.is_all {
            return Ok(self.lines.get(&words(id)).copied());
        }
        let mut find = db.prepare_cached(
            "SELECT key FROM line WHERE substr(hash, 1, 6) = substr(?1, 1, 6) AND hash = ?1",
        )?;
        Ok(find.query_row([id], |row| row.get(0)).optional()?)
    }

    fn encode(
        &mut self,
        db: &Connection,
        key: i64,
        mut line: NewLine,
    ) -> Result<Vec<u8>, StoreError> {
        line.hash_texts();
        let mut add = db.prepare_cached("INSERT INTO text VALUES (?, ?, ?, ?)")?;
        let mut references = Vec::new();
        // What the body leaves out, and how many literal bytes precede what comes next.
        let mut cuts = Vec::new();
        let (mut literal, mut gap, mut rest) = (0, 0, 0);
        let wholes = line.wholes.iter().copied().chain(std::iter::repeat(None));
        for ((text, whole), cut_from) in line.texts.iter().zip(&line.text_ids).zip(wholes) {
            let Some(bytes) = line.bytes.get(text.clone()) else { continue };
            let place = match self.known.get(&words(whole)) {
                None if !self.is_all => self.find_text(db, whole, bytes)?,
                known => known.copied(),
            };
            literal += text.start - rest;
            gap += text.start - rest;
            rest = text.end;
            let beginning = match (place, cut_from) {
                (None, Some(whole)) => self.find_beginning(db, whole, bytes)?,
                _ => None,
            };
            if let Some(place) = place.or(beginning) {
                let line = if place.line == key { 0 } else { place.line };
                references.push((gap, Place { line, ..place }));
                let shared = usize::try_from(place.size).unwrap_or(bytes.len()).min(bytes.len());
                cuts.push(text.start..text.start + shared);
                gap = bytes.len() - shared;
                literal += gap;
            } else {
                let place = Place { line: key, at: literal as u64, size: bytes.len() as u64 };
                literal += bytes.len();
                gap += bytes.len();
                add.execute(params![whole.get(..6), key, place.at, place.size])?;
                if self.known.len() >= KNOWN {
                    self.known.clear();
                    self.is_all = false;
                }
                self.known.insert(words(whole), place);
            }
        }
        Ok(write_body(&references, &line.bytes, &cuts))
    }

    /// Looks for a string that an earlier program added; what the index finds is compared byte for byte.
    fn find_text(
        &self,
        db: &Connection,
        whole: &[u8; 32],
        bytes: &[u8],
    ) -> Result<Option<Place>, StoreError> {
        let mut find = db.prepare_cached("SELECT line, at, size FROM text WHERE tag = ?")?;
        let mut rows = find.query([whole.get(..6)])?;
        while let Some(row) = rows.next()? {
            let place = Place { line: row.get(0)?, at: row.get(1)?, size: row.get(2)? };
            if place.size != bytes.len() as u64 {
                continue;
            }
            let body = self.body(db, place.line)?;
            if Parts::read(body.bytes()).and_then(|parts| parts.slice(place)) == Some(bytes) {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Looks for the string that this one was cut from, and returns where both begin alike.
    fn find_beginning(
        &self,
        db: &Connection,
        whole: Whole,
        bytes: &[u8],
    ) -> Result<Option<Place>, StoreError> {
        let Some(common) = bytes.get(..whole.common) else { return Ok(None) };
        let mut find = db.prepare_cached("SELECT line, at, size FROM text WHERE tag = ?")?;
        let mut rows = find.query([whole.hash.get(..6)])?;
        while let Some(row) = rows.next()? {
            let place = Place { line: row.get(0)?, at: row.get(1)?, size: common.len() as u64 };
            if row.get::<_, u64>(2)? != whole.size as u64 {
                continue;
            }
            let body = self.body(db, place.line)?;
            if Parts::read(body.bytes()).and_then(|parts| parts.slice(place)) == Some(common) {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Hands over the lines of entries, each checked against the entry's id.
    pub(super) fn lines(
        &self,
        db: &Connection,
        session: SessionKey,
        entries: &[u64],
        each: &mut dyn FnMut(u64, Vec<u8>),
    ) -> Result<(), StoreError> {
        let mut find = db.prepare_cached(
            "SELECT e.id, k.id, l.key, l.size, f.body FROM entry e JOIN line l ON l.key = e.line
             LEFT JOIN entry k ON k.session = e.session AND k.n = e.link
             LEFT JOIN fresh f ON f.key = l.key WHERE e.session = ? AND e.n = ?",
        )?;
        for &n in entries {
            let row = find
                .query_row(params![session.0, n], |row| {
                    let link: Option<[u8; 32]> = row.get(1)?;
                    Ok((
                        EntryId::new(hash(row, 0)?),
                        link.map(EntryId::new),
                        row.get::<_, i64>(2)?,
                        row.get::<_, u64>(3)?,
                        row.get::<_, Option<Vec<u8>>>(4)?,
                    ))
                })
                .optional()?;
            let item = || format!("entry {n}");
            let Some((id, link, key, size, body)) = row else {
                return Err(StoreError::corrupt(item(), "it has no line"));
            };
            let body = match body {
                Some(body) => Body::Inline(body),
                None => self.packed(db, key)?,
            };
            let line = self.decode(db, key, size, body.bytes())?;
            if EntryId::of(link, LineId::of(&line)) != id {
                return Err(StoreError::corrupt(
                    item(),
                    "its line is not the one that its id was made of",
                ));
            }
            each(n, line);
        }
        Ok(())
    }

    /// Puts a line together again.
    fn decode(
        &self,
        db: &Connection,
        key: i64,
        size: u64,
        body: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        let parts = Parts::read(body).ok_or_else(|| torn(key, "its body cannot be read"))?;
        let room = usize::try_from(size)
            .unwrap_or(usize::MAX)
            .min(body.len().saturating_mul(64).max(SEGMENT));
        let mut line = Vec::with_capacity(room);
        let mut literal = parts.literal;
        for &(gap, place) in &parts.references {
            let before = literal.split_at_checked(gap);
            let (before, rest) = before.ok_or_else(|| torn(key, "its body is too short"))?;
            line.extend_from_slice(before);
            literal = rest;
            if place.line == 0 {
                line.extend_from_slice(
                    parts.slice(place).ok_or_else(|| torn(key, "it refers outside of itself"))?,
                );
            } else {
                let other = self.body(db, place.line)?;
                let found = Parts::read(other.bytes()).and_then(|parts| parts.slice(place));
                line.extend_from_slice(found.ok_or_else(|| {
                    torn(key, &format!("it refers outside of line {}", place.line))
                })?);
            }
            if line.len() as u64 > size {
                return Err(torn(key, "it is longer than it was"));
            }
        }
        line.extend_from_slice(literal);
        if line.len() as u64 == size {
            Ok(line)
        } else {
            Err(torn(key, "its length is not what it was"))
        }
    }

    fn body(&self, db: &Connection, key: i64) -> Result<Body<'_>, StoreError> {
        let mut find = db.prepare_cached("SELECT body FROM fresh WHERE key = ?")?;
        let inline = find.query_row([key], |row| row.get(0)).optional()?;
        inline.map_or_else(|| self.packed(db, key), |body| Ok(Body::Inline(body)))
    }

    /// Returns a body that does not lie inline.
    fn packed(&self, db: &Connection, key: i64) -> Result<Body<'_>, StoreError> {
        if let Some(body) = self.packing.as_ref().and_then(|packing| packing.get(key)) {
            return Ok(Body::Gathered(body));
        }
        let segment = self.segment(db, key)?;
        let index = usize::try_from(key - segment.first).unwrap_or(usize::MAX);
        let range =
            segment.bodies.get(index).cloned().ok_or_else(|| torn(key, "it lies in no segment"))?;
        Ok(Body::Packed(segment, range))
    }

    fn segment(&self, db: &Connection, line: i64) -> Result<Arc<Segment>, StoreError> {
        let mut open = self.open.borrow_mut();
        let holds = |segment: &Arc<Segment>| {
            line >= segment.first
                && line - segment.first < i64::try_from(segment.bodies.len()).unwrap_or(i64::MAX)
        };
        if let Some(at) = open.iter().position(holds) {
            let segment = open.remove(at);
            open.insert(0, Arc::clone(&segment));
            return Ok(segment);
        }
        let mut find = db.prepare_cached(
            "SELECT key, count, size, body FROM segment WHERE key <= ? ORDER BY key DESC LIMIT 1",
        )?;
        let row = find
            .query_row([line], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get::<_, Vec<u8>>(3)?))
            })
            .optional()?;
        let (first, count, size, body) = row.ok_or_else(|| torn(line, "it lies in no segment"))?;
        let segment = Arc::new(Segment::read(first, count, size, &body)?);
        open.insert(0, Arc::clone(&segment));
        open.truncate(OPEN_SEGMENTS);
        Ok(segment)
    }

    fn check_lines(
        &self,
        db: &Connection,
        range: Range<i64>,
        fault: &mut dyn FnMut(String, String),
    ) -> Result<(), StoreError> {
        let mut texts: BTreeMap<i64, Vec<([u8; 6], Place)>> = BTreeMap::new();
        let mut query =
            db.prepare("SELECT tag, line, at, size FROM text WHERE line >= ? AND line < ?")?;
        let mut rows = query.query([range.start, range.end])?;
        while let Some(row) = rows.next()? {
            let place = Place { line: row.get(1)?, at: row.get(2)?, size: row.get(3)? };
            texts.entry(place.line).or_default().push((row.get(0)?, place));
        }
        let mut query = db.prepare(
            "SELECT l.key, l.hash, l.size, f.body FROM line l LEFT JOIN fresh f ON f.key = l.key
             WHERE l.key >= ? AND l.key < ? ORDER BY l.key",
        )?;
        let mut rows = query.query([range.start, range.end])?;
        let mut expected = range.start;
        while let Some(row) = rows.next()? {
            let key: i64 = row.get(0)?;
            let (id, size, inline) =
                (LineId::new(hash(row, 1)?), row.get(2)?, row.get::<_, Option<Vec<u8>>>(3)?);
            if key != expected {
                fault(format!("line {expected}"), "it is not there".into());
            }
            expected = key + 1;
            let body =
                match inline.map_or_else(|| self.packed(db, key), |body| Ok(Body::Inline(body))) {
                    Ok(body) => body,
                    Err(error) => {
                        fault(format!("line {key}"), error.to_string());
                        continue;
                    }
                };
            match self.decode(db, key, size, body.bytes()) {
                Ok(line) if LineId::of(&line) == id => {}
                Ok(_) => fault(format!("line {key}"), "its bytes are not those of its hash".into()),
                Err(error) => fault(format!("line {key}"), error.to_string()),
            }
            for (tag, place) in texts.remove(&key).unwrap_or_default() {
                let found = Parts::read(body.bytes()).and_then(|parts| parts.slice(place));
                if found.is_none_or(|bytes| {
                    blake3::hash(bytes).as_bytes().get(..6) != Some(tag.as_slice())
                }) {
                    fault(
                        format!("text in line {key}"),
                        "its bytes are not those of its hash".into(),
                    );
                }
            }
        }
        for key in texts.into_keys() {
            fault(format!("text in line {key}"), "the line is not there".into());
        }
        Ok(())
    }
}

/// Packs the lines that lie inline when there is a segment's worth of them.
fn pack(db: &mut Connection) -> Result<(), StoreError> {
    let inline: i64 = db
        .prepare_cached("SELECT ifnull(sum(length(body)), 0) FROM fresh")?
        .query_row([], |row| row.get(0))?;
    if inline < i64::try_from(SEGMENT).unwrap_or(i64::MAX) {
        return Ok(());
    }
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut packing = Packing::begin(&transaction)?;
    packing.write(&transaction)?;
    packing.finish(&transaction)?;
    Ok(transaction.commit()?)
}

/// Reports every line and string that is not what it was.
pub(super) fn check(
    db: &Connection,
    path: &Path,
    fault: &mut dyn FnMut(&str, String),
) -> Result<(), StoreError> {
    let last = last_line(db)?;
    let middle = last / 2;
    let half = |db: &Connection, range: Range<i64>| {
        let mut found = Vec::new();
        let checked = Bytes::default()
            .check_lines(db, range, &mut |item, problem| found.push((item, problem)));
        (found, checked)
    };
    // Each half has its own look at the file; a database that cannot be opened twice is read by one alone.
    let beside = super::open::open(path, super::Access::Read).ok().filter(|_| last > PACK_EVERY);
    let halves = match beside {
        None => vec![half(db, 1..last + 1)],
        Some((other, _)) => std::thread::scope(|scope| {
            let second = scope.spawn(move || half(&other, middle + 1..last + 1));
            let first = half(db, 1..middle + 1);
            vec![
                first,
                second
                    .join()
                    .unwrap_or_else(|_| (Vec::new(), Err(torn(middle, "its check failed")))),
            ]
        }),
    };
    for (found, checked) in halves {
        for (item, problem) in found {
            fault(&item, problem);
        }
        checked?;
    }
    Ok(())
}

/// Returns what the bytes take up.
pub(super) fn sizes(db: &Connection) -> Result<Sizes, StoreError> {
    let number = |sql| db.query_row(sql, [], |row| row.get::<_, u64>(0));
    Ok(Sizes {
        lines: number("SELECT count(*) FROM line")?,
        raw: number("SELECT ifnull(sum(size), 0) FROM line")?,
        kept: number("SELECT ifnull(sum(length(body)), 0) FROM segment")?
            + number("SELECT ifnull(sum(length(body)), 0) FROM fresh")?,
        texts: number("SELECT count(*) FROM text")?,
        stored: number(
            "SELECT (SELECT page_count - (SELECT freelist_count FROM pragma_freelist_count)
                                FROM pragma_page_count) * (SELECT page_size FROM pragma_page_size)",
        )?,
    })
}

/// Returns the key of the newest line, 0 if there is none.
fn last_line(db: &Connection) -> Result<i64, StoreError> {
    let mut last = db.prepare_cached("SELECT key FROM line ORDER BY key DESC LIMIT 1")?;
    Ok(last.query_row([], |row| row.get(0)).optional()?.unwrap_or(0))
}
