//! Lines by number, with repeated lines and strings stored once. `bytes/body.rs` is the encoding of a line, `bytes/pack.rs` packs
//! bodies.
//!
//! ```text
//! 1 ........................ last packed   ......... last
//! segments                                 fresh, or on its way into a segment
//! ```
//!
//! A line has no row and no hash of its own: the ids of its entries verify it. An equal line is found by the id of an unlinked
//! entry, or else by a tag. A line found by an index is always read and compared byte by byte, so a damaged line is never
//! referred to again: its bytes are stored a second time.
//!
//! Invariant: line numbers have no gaps, from 1.

use std::{
    cell::{Cell, RefCell},
    ops::Range,
    sync::Arc,
};

use rusqlite::{Connection, Row, params};

use crate::store::sqlite::bytes::{
    body::{self, Parts, Place},
    cover::{self, Covered},
    difference::{self, Guess, Other},
    entry_lines::{Held, held},
    lengths::Lengths,
    pack::{LONG, Packing, REST, SEGMENT, Segment, last_line},
    recent::Known,
    segments::Opened,
};
use crate::store::sqlite::query::{collect, execute, first};
use crate::{
    model::{EntryId, EntryNumber, LineId, line::LINE_MAX},
    store::{Fault, FaultKind, NewLine, SessionKey, StoreError, commit::Whole, error::sound},
};

/// The number of every lost line.
pub(crate) const LOST: i64 = 0;

/// After how many new lines a writer checks whether there is enough for a segment.
const PACK_EVERY: i64 = 64;
/// How many entries are looked up together.
const TOGETHER: usize = 1024;

/// The state of one connection: lines on their way into the store, and caches. It never affects an answer.
#[derive(Default)]
pub(crate) struct Bytes {
    /// The strings and lines that this connection has added.
    known: Known,
    /// The number of the next line, while a transaction adds lines.
    next: Option<i64>,
    /// The first line of the current operation, and the guess where similar lines are.
    begun: i64,
    guess: Guess,
    /// How many bytes the transaction has added to `fresh`.
    inline: usize,
    /// The lines of a large transaction.
    packing: Option<Packing>,
    /// Whether there may be enough lines for a segment.
    is_due: bool,
    opened: RefCell<Opened>,
    lengths: Lengths,
    /// The covered entries of the session queried last.
    covered: RefCell<Option<(SessionKey, Covered)>>,
    /// A line that is known to be in a segment; so are all lines before it.
    packed: Cell<i64>,
    /// Whether comparing lines with the ids of their entries is left to a check.
    pub(crate) is_left_to_check: bool,
}

/// The body of a line, wherever it is, and the length of the line.
pub(crate) enum Body<'a> {
    Inline(Vec<u8>, u64),
    OnItsWay(&'a [u8], u64),
    Packed(Arc<Segment>, Range<usize>, u64),
}

impl Body<'_> {
    /// Returns true if it is in a segment.
    pub(crate) fn is_packed(&self) -> bool {
        matches!(self, Self::Packed(..))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Inline(bytes, _) => bytes,
            Self::OnItsWay(bytes, _) => bytes,
            Self::Packed(segment, range, _) => segment.data.get(range.clone()).unwrap_or_default(),
        }
    }

    fn size(&self) -> u64 {
        match self {
            Self::Inline(_, size) | Self::OnItsWay(_, size) | Self::Packed(_, _, size) => *size,
        }
    }
}

/// Returns the fault of an entry or a file with a lost line.
pub(crate) fn lost(session: SessionKey, item: String) -> Fault {
    Fault { kind: FaultKind::Lost, ..Fault::of(Some(session), item, "its line is lost") }
}

fn torn(line: i64, problem: &str) -> StoreError {
    StoreError::corrupt(format!("line {line}"), problem)
}

impl Bytes {
    /// Caches more, for a connection that writes.
    pub(crate) fn expect_writes(&mut self) {
        self.opened.get_mut().keep_more();
    }

    /// Forgets the additions of a failed transaction, and places of lines that others may have repacked.
    pub(crate) fn forget(&mut self) {
        let mut opened = self.opened.take();
        opened.close_all();
        let is_left_to_check = self.is_left_to_check;
        *self = Self { opened: opened.into(), is_left_to_check, ..Self::default() };
    }

    /// Writes the pending lines of the transaction before it ends.
    pub(crate) fn settle(&mut self, db: &Connection) -> Result<(), StoreError> {
        self.next = None;
        self.inline = 0;
        if let Some(packing) = self.packing.take() {
            self.is_due = false;
            packing.finish(db)
        } else {
            // Remembering and guessing lines pays off only if many come together.
            self.known.forget_lines();
            self.guess = Guess::default();
            Ok(())
        }
    }

    /// Begins the lines of a new operation. The first one may be similar to `near`.
    pub(crate) fn begin_operation(
        &mut self,
        db: &Connection,
        near: Option<i64>,
    ) -> Result<(), StoreError> {
        self.begun = self.next(db)?;
        if let Some(line) = near {
            self.guess.expect(line);
        }
        Ok(())
    }

    /// Adds a line unless it already exists, and returns its number.
    ///
    /// `id` is the id of its entry, if the entry has no link.
    pub(crate) fn add(
        &mut self,
        db: &Connection,
        line: NewLine,
        id: Option<&EntryId>,
    ) -> Result<i64, StoreError> {
        let key = self.next(db)?;
        if let Some(found) = self.find_line(db, &line, id)? {
            if self.guess.lines(self.begun).contains(&found) {
                self.guess.found(found);
            }
            return Ok(found);
        }
        let hash = *line.id.as_bytes();
        let size = line.bytes.len() as u64;
        self.begin_packing(db, line.bytes.len())?;
        let body = self.encode(db, key, line)?;
        if let Some(packing) = &mut self.packing {
            packing.push(db, key, size, body)?;
        } else {
            let sql = "INSERT INTO fresh (key, size, body) VALUES (?, ?, ?)";
            execute(db, sql, params![key, size, body])?;
        }
        if id.is_none() {
            execute(db, "INSERT INTO tag (tag, line) VALUES (?, ?)", params![hash.get(..6), key])?;
        }
        self.known.add_line(&hash, key);
        self.is_due |= key % PACK_EVERY == 0;
        self.next = Some(key + 1);
        Ok(key)
    }

    /// Returns the number of the next line.
    fn next(&mut self, db: &Connection) -> Result<i64, StoreError> {
        if let Some(next) = self.next {
            return Ok(next);
        }
        let last = last_line(db)?;
        self.known.begin(last);
        self.next = Some(last + 1);
        Ok(last + 1)
    }

    /// Starts packing lines directly once the transaction has added many.
    fn begin_packing(&mut self, db: &Connection, size: usize) -> Result<(), StoreError> {
        self.inline += size;
        if self.packing.is_none() && self.inline >= REST {
            self.packing = Some(Packing::begin(db)?);
        }
        Ok(())
    }

    /// Finds an equal line.
    fn find_line(
        &self,
        db: &Connection,
        line: &NewLine,
        id: Option<&EntryId>,
    ) -> Result<Option<i64>, StoreError> {
        let hash = line.id.as_bytes();
        let known = self.known.line(hash);
        if known.is_some() || self.known.is_all() {
            return Ok(known);
        }
        let (sql, key) = match id {
            Some(id) => (
                "SELECT line FROM entry INDEXED BY entry_id
                 WHERE substr(id, 1, 6) = substr(?1, 1, 6) AND id = ?1",
                id.as_bytes().as_slice(),
            ),
            None => ("SELECT line FROM tag WHERE tag = ?", hash.get(..6).unwrap_or_default()),
        };
        let mut find = db.prepare_cached(sql)?;
        let mut rows = find.query([key])?;
        let mut unequal = 0;
        while let Some(row) = rows.next()? {
            let key = row.get(0)?;
            if key == unequal {
                continue;
            }
            let found = sound(self.body(db, key).and_then(|body| {
                let is_as_long = body.size() == line.bytes.len() as u64;
                Ok(is_as_long && self.decode(db, key, &body)? == line.bytes)
            }))?;
            if found == Some(true) {
                return Ok(Some(key));
            }
            unequal = key;
        }
        Ok(None)
    }

    fn encode(
        &mut self,
        db: &Connection,
        key: i64,
        mut line: NewLine,
    ) -> Result<Vec<u8>, StoreError> {
        if let Some(body) = self.expected(db, &line)? {
            return Ok(body);
        }
        line.hash_texts();
        let first = match (line.texts.first(), line.text_ids.first()) {
            (Some(text), Some(whole)) => self.place_of(db, whole, line.bytes.get(text.clone()))?,
            _ => None,
        };
        // In a fork, the first long string of a line often points at the line that it was copied from.
        if let Some(place) = first.filter(|place| place.line < self.begun)
            && self.guess.is_shared(key, place.line)
            && let Some(body) = self.difference(db, &line, place.line)?
        {
            return Ok(body);
        }
        let mut first = Some(first);
        let mut references = Vec::new();
        // The ranges that the body omits, and how many literal bytes precede the next one.
        let mut cuts = Vec::new();
        let (mut literal, mut gap, mut rest) = (0, 0, 0);
        let wholes = line.wholes.iter().copied().chain(std::iter::repeat(None));
        for ((text, whole), cut_from) in line.texts.iter().zip(&line.text_ids).zip(wholes) {
            let first = first.take();
            let Some(bytes) = line.bytes.get(text.clone()) else { continue };
            let place = match first {
                Some(place) => place,
                None => self.place_of(db, whole, Some(bytes))?,
            };
            literal += text.start - rest;
            gap += text.start - rest;
            rest = text.end;
            let beginning = match (place, cut_from) {
                (None, Some(Whole { hash, size, common })) => {
                    self.find_text(db, &hash, size, bytes.get(..common).unwrap_or_default())?
                }
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
                let sql = "INSERT INTO text (tag, line, at, size) VALUES (?, ?, ?, ?)";
                execute(db, sql, params![whole.get(..6), key, place.at, place.size])?;
                self.known.add_text(whole, place);
            }
        }
        Ok(body::write(&references, &line.bytes, &cuts))
    }

    /// Encodes a line as the difference from an expected line.
    fn expected(&mut self, db: &Connection, line: &NewLine) -> Result<Option<Vec<u8>>, StoreError> {
        let expected = self.guess.lines(self.begun);
        if !expected.is_empty() {
            for other in expected {
                if let Some(body) = self.difference(db, line, other)? {
                    return Ok(Some(body));
                }
            }
            self.guess.missed();
        }
        Ok(None)
    }

    /// Encodes a line as the difference from another one, if they are similar.
    fn difference(
        &mut self,
        db: &Connection,
        line: &NewLine,
        other: i64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let size = line.bytes.len() as u64;
        let is_near = |of: u64| difference::may_be_near(size, of);
        // Lines that will be compressed together take little space anyway, and help to compress the following ones.
        let is_together = self.packing.as_ref().is_some_and(|packing| packing.gathers(other));
        if is_together || line.bytes.len() >= LONG {
            return Ok(None);
        }
        if !sound(self.size_of(db, other))?.is_some_and(is_near) {
            return Ok(None);
        }
        let Some(found) = sound(self.other(db, other))? else { return Ok(None) };
        let body = difference::write(&line.bytes, &found);
        if body.is_some() {
            self.guess.found(other);
        }
        Ok(body)
    }

    /// Returns a line with the places of its bytes.
    fn other(&self, db: &Connection, key: i64) -> Result<Other, StoreError> {
        let body = self.body(db, key)?;
        let places = Parts::read(body.bytes()).and_then(|parts| parts.places(key));
        let places = places.ok_or_else(|| torn(key, "its body cannot be read"))?;
        Ok(Other { bytes: self.decode(db, key, &body)?, places })
    }

    /// Returns the place of a string that is already stored.
    fn place_of(
        &self,
        db: &Connection,
        whole: &[u8; 32],
        bytes: Option<&[u8]>,
    ) -> Result<Option<Place>, StoreError> {
        match (self.known.text(whole), bytes) {
            (None, Some(bytes)) if !self.known.is_all() => {
                self.find_text(db, whole, bytes.len(), bytes)
            }
            (known, _) => Ok(known),
        }
    }

    /// Finds a string with this hash and length; `bytes` are all of it or its beginning. Returns their place. Candidates from the
    /// index are compared byte by byte.
    fn find_text(
        &self,
        db: &Connection,
        whole: &[u8; 32],
        size: usize,
        bytes: &[u8],
    ) -> Result<Option<Place>, StoreError> {
        let mut find = db.prepare_cached("SELECT line, at, size FROM text WHERE tag = ?")?;
        let mut rows = find.query([whole.get(..6)])?;
        while let Some(row) = rows.next()? {
            let place = Place { line: row.get(0)?, at: row.get(1)?, size: bytes.len() as u64 };
            if row.get::<_, u64>(2)? != size as u64 || bytes.is_empty() {
                continue;
            }
            let Some(body) = sound(self.body(db, place.line))? else { continue };
            if Parts::read(body.bytes()).and_then(|parts| parts.slice(place)) == Some(bytes) {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Passes on the lines of entries, each verified against the entry's id, or the error of a damaged one.
    pub(crate) fn lines(
        &self,
        db: &Connection,
        session: SessionKey,
        entries: &[EntryNumber],
        each: &mut dyn FnMut(EntryNumber, Result<Vec<u8>, StoreError>),
    ) -> Result<(), StoreError> {
        for entries in entries.chunks(TOGETHER) {
            let rows = held(db, session, entries);
            let lines = rows.iter().filter_map(|row| Some(row.as_ref().ok()?.as_ref()?.2));
            self.opened.borrow_mut().expect(lines.collect());
            for (&n, row) in entries.iter().zip(rows) {
                let line = row.and_then(|row| self.line_of(db, session, n, row));
                match line {
                    Ok(_) | Err(StoreError::Corrupt { .. }) => each(n, line),
                    Err(error) => return Err(error),
                }
            }
            self.opened.borrow_mut().expect(Vec::new());
        }
        Ok(())
    }

    /// Returns the line of an entry, given its row.
    fn line_of(
        &self,
        db: &Connection,
        session: SessionKey,
        n: EntryNumber,
        row: Option<Held>,
    ) -> Result<Vec<u8>, StoreError> {
        let torn = |problem: &str| StoreError::corrupt(format!("entry {n}"), problem);
        let (id, link, key) = row.ok_or_else(|| torn("it has no line"))?;
        if key == LOST {
            return Err(lost(session, format!("entry {n}")).into());
        }
        let line = self.line(db, key)?;
        if self.is_left_to_check {
            return Ok(line);
        }
        let found = LineId::of(&line);
        let is_right = EntryId::of(link, found) == id;
        if is_right || self.stands(db, session, n, id, link, found)? {
            Ok(line)
        } else {
            Err(torn("its line does not match its id"))
        }
    }

    /// Returns true if a line is the recorded replacement of an entry's original line.
    fn stands(
        &self,
        db: &Connection,
        session: SessionKey,
        n: EntryNumber,
        id: EntryId,
        link: Option<EntryId>,
        line: LineId,
    ) -> Result<bool, StoreError> {
        let mut known = self.covered.borrow_mut();
        let is_of_it = |covered: &Covered| cover::stands_for(covered, n, id, link, line);
        if known.as_ref().is_some_and(|(of, covered)| *of == session && is_of_it(covered)) {
            return Ok(true);
        }
        // Another program may have covered it since, and the state may be damaged or not derived yet.
        for read in [cover::by_state, cover::by_operations] {
            match read(db, session) {
                Ok(covered) if is_of_it(&covered) => {
                    *known = Some((session, covered));
                    return Ok(true);
                }
                Ok(_) | Err(StoreError::Corrupt { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Returns a line, verified only by its length.
    pub(crate) fn line(&self, db: &Connection, key: i64) -> Result<Vec<u8>, StoreError> {
        self.decode(db, key, &self.body(db, key)?)
    }

    /// Reads a line, and passes its decoded body to `look`.
    pub(crate) fn line_with(
        &self,
        db: &Connection,
        key: i64,
        look: impl FnOnce(&Parts<'_>),
    ) -> Result<Vec<u8>, StoreError> {
        let body = self.body(db, key)?;
        if let Some(parts) = Parts::read(body.bytes()) {
            look(&parts);
        }
        self.decode(db, key, &body)
    }

    fn decode(&self, db: &Connection, key: i64, body: &Body<'_>) -> Result<Vec<u8>, StoreError> {
        let (bytes, size) = (body.bytes(), body.size());
        let parts = Parts::read(bytes).filter(|_| size <= LINE_MAX as u64);
        let parts = parts.ok_or_else(|| torn(key, "its body cannot be read"))?;
        let room = usize::try_from(size)
            .unwrap_or(usize::MAX)
            .min(bytes.len().saturating_mul(64).max(SEGMENT));
        let mut line = Vec::with_capacity(room);
        let mut literal = parts.literal;
        for &(gap, place) in &parts.references {
            let before = literal.split_at_checked(gap);
            let (before, rest) = before.ok_or_else(|| torn(key, "its body is too short"))?;
            line.extend_from_slice(before);
            literal = rest;
            if place.line == 0 {
                line.extend_from_slice(
                    parts
                        .slice(place)
                        .ok_or_else(|| torn(key, "it refers to bytes outside itself"))?,
                );
            } else {
                let other = self.body(db, place.line)?;
                let found = Parts::read(other.bytes()).and_then(|parts| parts.slice(place));
                line.extend_from_slice(found.ok_or_else(|| {
                    torn(key, &format!("it refers to bytes outside line {}", place.line))
                })?);
            }
            if line.len() as u64 > size {
                return Err(torn(key, "it is longer than recorded"));
            }
        }
        line.extend_from_slice(literal);
        if line.len() as u64 == size {
            Ok(line)
        } else {
            Err(torn(key, "its length differs from the recorded one"))
        }
    }

    pub(crate) fn body(&self, db: &Connection, key: i64) -> Result<Body<'_>, StoreError> {
        if key > self.packed.get() {
            if let Some((body, size)) = self.packing.as_ref().and_then(|packing| packing.get(key)) {
                return Ok(Body::OnItsWay(body, size));
            }
            let sql = "SELECT body, size FROM fresh WHERE key = ?";
            let inline = |row: &Row<'_>| Ok(Body::Inline(row.get(0)?, row.get(1)?));
            if let Some(body) = first(db, sql, [key], inline)? {
                return Ok(body);
            }
        }
        let segment = self.opened.borrow_mut().part(db, key)?;
        self.packed.set(self.packed.get().max(segment.end() - 1));
        let index = usize::try_from(key - segment.first).unwrap_or(usize::MAX);
        let found = segment.lines.get(index).cloned();
        let (range, size) = found.ok_or_else(|| torn(key, "it is not in any segment"))?;
        Ok(Body::Packed(segment, range, size))
    }

    /// Returns the segment that contains a packed line, completely unpacked.
    pub(crate) fn segment(&self, db: &Connection, line: i64) -> Result<Arc<Segment>, StoreError> {
        let segment = self.opened.borrow_mut().whole(db, line)?;
        self.packed.set(self.packed.get().max(segment.end() - 1));
        Ok(segment)
    }

    /// Returns the length of a line without reading its body.
    pub(crate) fn size_of(&self, db: &Connection, line: i64) -> Result<u64, StoreError> {
        if let Some(size) = self.lengths.at_hand(line) {
            return Ok(size);
        }
        if line > self.packed.get() {
            if let Some((_, size)) = self.packing.as_ref().and_then(|packing| packing.get(line)) {
                return Ok(size);
            }
            let sql = "SELECT size FROM fresh WHERE key = ?";
            if let Some(size) = first(db, sql, [line], |row| row.get(0))? {
                return Ok(size);
            }
        }
        let size = self.lengths.find(db, line)?;
        size.ok_or_else(|| torn(line, "it is not in any segment"))
    }

    /// Returns the lines that are not in a segment yet.
    pub(crate) fn loose(&self, db: &Connection) -> Result<Vec<i64>, StoreError> {
        let sql = "SELECT key FROM fresh ORDER BY key";
        let mut lines: Vec<i64> = collect(db, sql, [], |row| row.get(0))?;
        if let Some(packing) = &self.packing {
            lines.extend(packing.lines());
            lines.sort_unstable();
            lines.dedup();
        }
        Ok(lines)
    }

    /// Returns true if there may be enough lines for a segment.
    pub(crate) fn is_due(&self) -> bool {
        self.is_due
    }

    /// Packs the lines in `fresh`, if a check is due and there are enough for a segment.
    pub(crate) fn pack(&mut self, db: &Connection) -> Result<(), StoreError> {
        if !std::mem::take(&mut self.is_due) {
            return Ok(());
        }
        let inline: i64 = db
            .prepare_cached("SELECT ifnull(sum(length(body)), 0) FROM fresh")?
            .query_row([], |row| row.get(0))?;
        if inline < i64::try_from(SEGMENT).unwrap_or(i64::MAX) {
            return Ok(());
        }
        Packing::begin(db)?.finish(db)
    }
}
