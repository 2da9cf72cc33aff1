//! The journal: a small operation is one row that contains the whole commit, until it is settled in the other tables.
//!
//! ```text
//! version, session, number, hash, record          the operation
//! words                                           user texts, which the record refers to by their digests
//! entries                                         id, link, line, ranges of its long strings, record
//! runs, checkpoints, origins                      covered by digests in the record
//! kept files, twins, ties, card
//! checksum                                        of all that and of the row's number
//! ```
//!
//! Invariant: reading never returns anything but the data written; otherwise it fails with an error that names the row.

use std::{
    collections::{BTreeMap, btree_map},
    sync::Arc,
};

use rusqlite::Connection;

use crate::store::sqlite::{
    add::Placed,
    query::{self, bounds, first, hash, unknown},
    rows::Tables,
};
use crate::{
    model::{
        Card, EntryId, EntryNumber, GenerationNumber, Kind, LineId, NameTag, OperationId, Parent,
        Record, SessionName, State, Tie, TieKind, Timestamp,
    },
    store::{
        Commit, Fault, NewLine, SessionKey, StoreError,
        commit::Whole,
        encoding::{In, Out},
        overlay::Overlay,
    },
};

/// The version of the encoding.
const VERSION: u8 = 1;
/// The maximum number of entries of a small operation.
const ENTRIES: usize = 16;
/// The maximum size of a row in bytes.
const BYTES: usize = 64 << 10;

/// A commit as stored in a row: without the session's name and the previous operation.
pub(super) struct Row {
    pub(super) session: SessionKey,
    pub(super) commit: Commit,
}

impl Row {
    /// Returns the operation, ready to be added to the tables.
    pub(super) fn placed(&self, seq: u64, lines: Vec<i64>, kept: Vec<i64>) -> Placed<'_> {
        let Commit { operation, bulk, .. } = &self.commit;
        Placed { session: self.session, seq, operation, bulk, lines, kept }
    }
}

/// The journal as known to this connection.
#[derive(Default)]
pub(super) struct Journal {
    /// Its operations, as an overlay on the tables.
    pub(super) overlay: Overlay,
    /// The number of its rows, and their bytes.
    pub(super) rows: u64,
    pub(super) bytes: u64,
    /// The number and the hash of the store's newest operation.
    pub(super) newest: Option<(u64, OperationId)>,
    /// SQLite's data version, which changes when another connection writes. `None` if the journal was not read yet or is out of
    /// date.
    pub(super) version: Option<i64>,
    /// What is wrong with the first unreadable row, if there is one.
    pub(super) torn: Option<Fault>,
}

impl Journal {
    /// Reads the journal, after which the data version is `version`. If `is_left_torn`, an unreadable row ends it.
    pub(super) fn read(
        tables: &Tables,
        version: i64,
        is_left_torn: bool,
    ) -> Result<Self, StoreError> {
        let newest = newest(&tables.db)?;
        let mut journal = Self { newest, version: Some(version), ..Self::default() };
        if let Err(error) = journal.lay_out(tables) {
            if !is_left_torn {
                return Err(error);
            }
            journal.torn = Some(Fault::of_error(error, None)?);
        }
        Ok(journal)
    }

    /// Overlays the rows of the journal on the tables, up to the first unreadable one.
    fn lay_out(&mut self, tables: &Tables) -> Result<(), StoreError> {
        let mut tails: BTreeMap<SessionKey, (SessionName, OperationId, _, _)> = BTreeMap::new();
        each_row(&tables.db, Hashes::Skipped, |seq, size, Row { session, mut commit }| {
            let operation = &commit.operation;
            let (mut state, mut card) = (State::default(), Card::default());
            let tail = match tails.entry(session) {
                btree_map::Entry::Occupied(there) => there.into_mut(),
                btree_map::Entry::Vacant(place) => {
                    (state, card) = Arc::unwrap_or_clone(tables.standing(session)?);
                    let hash = state.hash().unwrap_or_default();
                    let name = name_of(&tables.db, session)?;
                    place.insert((name, hash, state.next_operation(), state.next_entry()))
                }
            };
            let (name, hash, next, first) = tail;
            let follows = self.newest.as_ref().map_or(1, |(seq, _)| seq + 1) == seq
                && operation.n == *next
                && operation.first == *first
                && operation.hash == operation.hash_after(Some(*hash), tables.id, name);
            if !follows {
                let item = format!("row {seq} of the journal");
                return Err(StoreError::corrupt(item, "it does not follow the one before it"));
            }
            (*hash, *next) = (operation.hash, operation.n.next());
            *first = operation.added().end;
            self.newest = Some((seq, operation.hash));
            (self.rows, self.bytes) = (self.rows + 1, self.bytes + size as u64);
            commit.session = name.clone();
            self.overlay.add(session, seq, commit, || Ok((state, card)))
        })
    }
}

/// Reads the rows of the journal in order, each with its number and its size.
pub(super) fn each_row(
    db: &Connection,
    hashes: Hashes,
    mut each: impl FnMut(u64, usize, Row) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    query::each(db, "SELECT seq, body FROM journal ORDER BY seq", [], |row| {
        let seq = row.get(0)?;
        let body = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        each(seq, body.len(), decode(seq, body, hashes)?)
    })
}

/// Returns the newest operation: its number in the store, and its hash.
pub(super) fn newest(db: &Connection) -> Result<Option<(u64, OperationId)>, StoreError> {
    first(db, "SELECT seq, hash FROM operation ORDER BY seq DESC LIMIT 1", [], |row| {
        Ok((row.get(0)?, OperationId::new(hash(row, 1)?)))
    })
}

/// Returns the number of the newest operation, in the journal or in the tables.
pub(super) fn newest_seq(db: &Connection) -> Result<u64, StoreError> {
    let sql = "SELECT max((SELECT ifnull(max(seq), 0) FROM journal),
                          (SELECT ifnull(max(seq), 0) FROM operation))";
    Ok(first(db, sql, [], |row| row.get(0))?.unwrap_or(0))
}

/// Returns the hash of an operation in the tables or the journal, by its number in the store.
pub(super) fn hash_at(db: &Connection, seq: u64) -> Result<Option<OperationId>, StoreError> {
    let at = bounds(&(seq..seq)).0;
    let sql = "SELECT hash FROM operation WHERE seq = ?";
    let settled = first(db, sql, [at], |row| Ok(OperationId::new(hash(row, 0)?)))?;
    if settled.is_some() {
        return Ok(settled);
    }
    let sql = "SELECT body FROM journal WHERE seq = ?";
    let body: Option<Vec<u8>> = first(db, sql, [at], |row| row.get(0))?;
    // A damaged row is reported when the journal is read.
    let row = body.and_then(|body| decode(seq, &body, Hashes::Skipped).ok());
    Ok(row.map(|row| row.commit.operation.hash))
}

/// Returns the name of a session.
fn name_of(db: &Connection, session: SessionKey) -> Result<SessionName, StoreError> {
    let found = first(db, "SELECT format, id FROM session WHERE key = ?", [session.0], |row| {
        Ok(SessionName { format: row.get(0)?, id: row.get(1)? })
    })?;
    found.ok_or_else(|| unknown(session))
}

/// Encodes a small operation as a row. Returns nothing for a larger one.
pub(super) fn encode(seq: u64, session: SessionKey, commit: &Commit) -> Option<Vec<u8>> {
    let bytes = commit.lines.iter().map(|line| line.bytes.len());
    let kept = commit.kept.iter().map(Vec::len);
    let size: usize = bytes.chain(kept).chain([commit.operation.record.len()]).sum();
    if commit.lines.len() > ENTRIES || size > BYTES {
        return None;
    }
    let Commit { operation, bulk, lines, kept, records, twins, ties, card, .. } = commit;
    let mut out = Out(Vec::with_capacity(size + 256 + 160 * lines.len()));
    out.0.push(VERSION);
    out.number(session.0.cast_unsigned()).operation(operation, bulk);
    let entries: Vec<_> = bulk.entries.iter().zip(lines).zip(records).collect();
    out.list(&entries, |out, ((entry, line), record)| {
        out.entry(entry);
        put_line(out, line);
        put_record(out, record);
    });
    out.growth(bulk);
    out.list(kept, |out, kept| {
        out.bytes(kept);
    });
    out.list(twins, |out, twin| {
        out.number(twin.get());
    });
    out.list(ties, |out, (generation, ties)| {
        out.number(generation.get()).list(ties, |out, tie| {
            out.0.push(tie.kind.code());
            out.bytes(tie.other.as_bytes());
        });
    });
    out.list(card.as_slice(), put_card);
    let sum = checksum(seq, &out.0);
    out.raw(&sum);
    (out.0.len() <= BYTES).then_some(out.0)
}

/// Whether the hashes of a row's lines are computed. Reading can skip them, because the checksum covers the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hashes {
    Computed,
    Skipped,
}

/// Decodes a row.
pub(super) fn decode(seq: u64, body: &[u8], hashes: Hashes) -> Result<Row, StoreError> {
    let torn = |problem: &str| StoreError::corrupt(format!("row {seq} of the journal"), problem);
    let (content, sum) = body
        .len()
        .checked_sub(8)
        .and_then(|length| body.split_at_checked(length))
        .ok_or_else(|| torn("it is truncated"))?;
    if checksum(seq, content) != *sum {
        return Err(torn("its bytes do not match its checksum"));
    }
    match content.split_first() {
        Some((&VERSION, rest)) => read(In(rest), hashes).ok_or_else(|| torn("it cannot be read")),
        _ => Err(torn("it was written by a newer version of undertext")),
    }
}

fn checksum(seq: u64, content: &[u8]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seq.to_le_bytes()).update(content);
    let mut sum = [0; 8];
    sum.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    sum
}

fn read(mut from: In<'_>, hashes: Hashes) -> Option<Row> {
    let session = SessionKey(from.number()?.cast_signed());
    let (operation, words) = from.operation()?;
    let (mut entries, mut lines, mut records) = (Vec::new(), Vec::new(), Vec::new());
    let mut next = operation.first;
    from.list(|from| {
        entries.push(from.entry(next)?);
        lines.push(take_line(from, hashes)?);
        records.push(take_record(from, next)?);
        next = next.next();
        Some(())
    })?;
    let bulk = from.growth(&words, entries)?;
    let kept = from.list(|from| Some(from.bytes()?.to_vec()))?;
    let twins = from.list(|from| from.number().map(NameTag::new))?;
    let ties = from.list(|from| {
        let generation = GenerationNumber::new(from.number()?);
        let ties = from.list(|from| {
            let kind = TieKind::from_code(from.byte()?)?;
            Some(Tie { kind, other: from.text()? })
        })?;
        Some((generation, ties))
    })?;
    let card = from.list(take_card)?.pop();
    let commit = Commit {
        session: SessionName { format: String::new(), id: String::new() },
        expected: None,
        operation,
        bulk,
        lines,
        kept,
        records,
        twins,
        ties,
        card,
        covered: Arc::default(),
    };
    from.0.is_empty().then_some(Row { session, commit })
}

fn put_line(out: &mut Out, line: &NewLine) {
    out.bytes(&line.bytes);
    let mut rest = 0;
    out.list(&line.texts, |out, text| {
        out.number((text.start - rest) as u64).number(text.len() as u64);
        rest = text.end;
    });
    out.list(&line.wholes, |out, whole| match whole {
        None => out.0.push(0),
        Some(Whole { hash, size, common }) => {
            out.0.push(1);
            out.raw(hash).number(*size as u64).number(*common as u64);
        }
    });
}

fn take_line(from: &mut In<'_>, hashes: Hashes) -> Option<NewLine> {
    let bytes = from.bytes()?.to_vec();
    let mut rest: usize = 0;
    let texts = from.list(|from| {
        let start = rest.checked_add(from.length()?)?;
        rest = start.checked_add(from.length()?)?;
        Some(start..rest)
    })?;
    let wholes = from.list(|from| {
        Some(match from.byte()? {
            0 => None,
            _ => Some(Whole { hash: from.raw()?, size: from.length()?, common: from.length()? }),
        })
    })?;
    if rest > bytes.len() {
        return None;
    }
    let id = if hashes == Hashes::Computed { LineId::of(&bytes) } else { LineId::default() };
    let (alone, came, text_ids) = (EntryId::of(None, id), None, Vec::new());
    Some(NewLine { bytes, id, came, alone, texts, text_ids, wholes })
}

fn put_record(out: &mut Out, record: &Record) {
    out.0.push(record.kind.code());
    out.maybe(record.name.map(NameTag::get));
    out.number(match record.parent {
        Parent::Root => 0,
        Parent::Missing => 1,
        Parent::Entry(parent) => {
            zigzag(record.n.get().wrapping_sub(parent.get()).cast_signed()).saturating_add(2)
        }
    });
    out.maybe(record.time.map(|time| zigzag(time.0))).bytes(&record.hint);
}

fn take_record(from: &mut In<'_>, n: EntryNumber) -> Option<Record> {
    Some(Record {
        n,
        kind: Kind::from_code(from.byte()?)?,
        name: from.list(In::number)?.pop().map(NameTag::new),
        parent: match from.number()? {
            0 => Parent::Root,
            1 => Parent::Missing,
            distance => {
                let distance = unzigzag(distance - 2).cast_unsigned();
                Parent::Entry(EntryNumber::new(n.get().wrapping_sub(distance)))
            }
        },
        time: from.list(In::number)?.pop().map(|time| Timestamp(unzigzag(time))),
        hint: from.bytes()?.into(),
    })
}

fn put_card(out: &mut Out, card: &Card) {
    for text in [&card.title, &card.folder] {
        out.list(text.as_slice(), |out, text| {
            out.bytes(text.as_bytes());
        });
    }
    for time in [card.started, card.active] {
        out.number(zigzag(time.unwrap_or_default().0));
    }
    out.number(card.turns);
    out.0.push(u8::from(card.hidden));
}

fn take_card(from: &mut In<'_>) -> Option<Card> {
    Some(Card {
        title: from.list(In::text)?.pop(),
        folder: from.list(In::text)?.pop(),
        started: Timestamp::known(unzigzag(from.number()?)),
        active: Timestamp::known(unzigzag(from.number()?)),
        turns: from.number()?,
        hidden: from.byte()? != 0,
    })
}

/// Maps signed numbers to unsigned ones, so that numbers close to zero stay small.
fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}
