//! Redacting: replaces the bytes of lines, and leaves nothing of the old bytes in any row.
//!
//! ```text
//! covered   lines that get other bytes
//! written   these, and all lines whose bodies refer to a written one: they are decoded, and encoded again
//! ```
//!
//! Invariant: no body refers to a body that was written again, except those written in the same step.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, params};

use crate::store::sqlite::{
    bytes::{
        body::{self, Parts, Place},
        lines::Bytes,
        long_values,
        pack::{Bodies, Compressor, Segment},
    },
    query::{bounds, each, first},
};
use crate::{
    model::line,
    store::{Covering, Coverings, FileCovering, RunsCovering, StoreError, TakenOut},
};

impl Bytes {
    /// Replaces the lines of entries, with bytes of the same length, and files that are stored whole. All entries and files that
    /// share a body must be named.
    pub(crate) fn cover(
        &mut self,
        db: &Connection,
        coverings: Coverings,
    ) -> Result<(), StoreError> {
        self.settle(db)?;
        let lines = lines_of(db, coverings)?;
        let written = with_referrers(db, &lines)?;
        let mut texts: BTreeMap<[u8; 32], Place> = BTreeMap::new();
        let mut bodies = BTreeMap::new();
        for &key in &written {
            let bytes = match lines.get(&key) {
                Some(bytes) => bytes.clone(),
                None => self.line(db, key)?,
            };
            bodies.insert(key, write(key, &bytes, &mut texts));
        }
        put(db, bodies)?;
        // The places of long strings, the tags of lines, and their token counts.
        for (table, lines) in [
            ("text", list(written.iter())),
            ("tag", list(lines.keys())),
            ("count", list(lines.keys())),
        ] {
            db.execute(&format!("DELETE FROM {table} WHERE line IN {LISTED}"), [lines])?;
        }
        let mut add = db.prepare("INSERT INTO text (tag, line, at, size) VALUES (?, ?, ?, ?)")?;
        for (hash, place) in &texts {
            add.execute(params![hash.get(..6), place.line, place.at, place.size])?;
        }
        self.forget();
        Ok(())
    }
}

/// Returns the new bytes of the lines to cover, by line number.
fn lines_of(db: &Connection, coverings: Coverings) -> Result<BTreeMap<i64, Vec<u8>>, StoreError> {
    let refused = |why: &str| StoreError::Refused(why.to_owned());
    let (mut entries, mut files) = (BTreeMap::new(), BTreeMap::new());
    let mut find = db.prepare("SELECT line FROM entry WHERE session = ? AND n = ?")?;
    for Covering { session, entry, line } in coverings.lines {
        let place = params![session.0, bounds(&entry.alone()).0];
        entries.insert((session, entry), (find.query_row(place, |row| row.get(0))?, line));
    }
    let mut find =
        db.prepare("SELECT line FROM kept WHERE session = ? AND operation = ? AND n = ?")?;
    for FileCovering { session, operation, at, bytes } in coverings.files {
        let key = find.query_row(params![session.0, operation, at], |row| row.get(0))?;
        files.insert((session, operation, at), (key, bytes));
    }
    let tables = [
        ("entry", entries.len(), "another entry has the line"),
        ("kept", files.len(), "another file that is kept whole has the line"),
    ];
    let mut lines: BTreeMap<i64, Vec<u8>> = BTreeMap::new();
    for (key, bytes) in entries.into_values().chain(files.into_values()) {
        if lines.get(&key).is_some_and(|other| *other != bytes) {
            return Err(refused("a line would get two contents"));
        }
        lines.insert(key, bytes);
    }
    for (table, named, why) in tables {
        let sql = format!("SELECT count(*) FROM {table} WHERE line IN {LISTED}");
        if db.query_row(&sql, [list(lines.keys())], |row| row.get::<_, usize>(0))? != named {
            return Err(refused(why));
        }
    }
    Ok(lines)
}

/// Returns these lines and all lines that refer to them, directly or indirectly.
fn with_referrers(
    db: &Connection,
    lines: &BTreeMap<i64, Vec<u8>>,
) -> Result<BTreeSet<i64>, StoreError> {
    let mut referrers: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    let mut see = |key: i64, body: &[u8]| {
        let references = Parts::read(body).map(|parts| parts.references).unwrap_or_default();
        for (_, place) in references.into_iter().filter(|(_, place)| place.line != 0) {
            referrers.entry(place.line).or_default().push(key);
        }
    };
    let mut unpacker = None;
    let mut query = db.prepare(&format!("SELECT {} FROM segment", Segment::COLUMNS))?;
    let mut rows = query.query([])?;
    let mut room = Vec::new();
    while let Some(row) = rows.next()? {
        let segment = Segment::read(row, &mut unpacker, room)?;
        for (key, (body, _)) in (segment.first..).zip(&segment.lines) {
            see(key, segment.data.get(body.clone()).unwrap_or_default());
        }
        room = segment.data;
    }
    each(db, "SELECT key, body FROM fresh", [], |row| {
        see(row.get(0)?, row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?);
        Ok(())
    })?;
    let mut written = BTreeSet::new();
    let mut rest: Vec<i64> = lines.keys().copied().collect();
    while let Some(key) = rest.pop() {
        if written.insert(key) {
            rest.extend(referrers.remove(&key).unwrap_or_default());
        }
    }
    Ok(written)
}

/// Encodes a line without the long strings in `texts`, and returns its body with its length.
fn write(key: i64, bytes: &[u8], texts: &mut BTreeMap<[u8; 32], Place>) -> (Vec<u8>, u64) {
    let found = line::split(bytes).next();
    let whole = found.filter(|found| found.bytes.len() == bytes.len());
    let spans = whole.and_then(|whole| whole.shape).map(|shape| shape.texts).unwrap_or_default();
    let (mut references, mut cuts) = (Vec::new(), Vec::new());
    let (mut literal, mut gap, mut rest) = (0, 0, 0);
    for span in spans {
        let Some(text) = bytes.get(span.clone()) else { continue };
        let hash = *blake3::hash(text).as_bytes();
        (literal, gap, rest) = (literal + span.start - rest, gap + span.start - rest, span.end);
        if let Some(&place) = texts.get(&hash) {
            let line = if place.line == key { 0 } else { place.line };
            references.push((gap, Place { line, ..place }));
            cuts.push(span);
            gap = 0;
        } else {
            let size = text.len() as u64;
            texts.insert(hash, Place { line: key, at: literal as u64, size });
            (literal, gap) = (literal + text.len(), gap + text.len());
        }
    }
    (body::write(&references, bytes, &cuts), bytes.len() as u64)
}

/// Replaces bodies in `fresh` and in segments.
fn put(db: &Connection, mut bodies: BTreeMap<i64, (Vec<u8>, u64)>) -> Result<(), StoreError> {
    let mut compressor = Compressor::new();
    let mut unpacker = None;
    let mut find = db.prepare(&format!(
        "SELECT {} FROM segment WHERE key <= ? ORDER BY key DESC LIMIT 1",
        Segment::COLUMNS
    ))?;
    // A file stored whole may have another length once it is compressed again.
    let mut fresh = db.prepare("UPDATE fresh SET body = ?, size = ? WHERE key = ?")?;
    let mut delete = db.prepare("DELETE FROM segment WHERE key = ?")?;
    while let Some((key, (body, size))) = bodies.pop_first() {
        if fresh.execute(params![body, size, key])? > 0 {
            continue;
        }
        let torn = || StoreError::corrupt(format!("line {key}"), "it is not in any segment");
        let mut rows = find.query([key])?;
        let segment = Segment::read(rows.next()?.ok_or_else(torn)?, &mut unpacker, Vec::new())?;
        drop(rows);
        if key >= segment.end() {
            return Err(torn());
        }
        bodies.insert(key, (body, size));
        let mut renewed = Bodies::starting(segment.first);
        for (line, (range, size)) in (segment.first..).zip(&segment.lines) {
            let old = || segment.data.get(range.clone()).unwrap_or_default().to_vec();
            let (body, size) = bodies.remove(&line).unwrap_or_else(|| (old(), *size));
            renewed.add(size, body);
        }
        let packed = compressor.compress(&renewed);
        delete.execute([segment.first])?;
        packed.map_err(|source| StoreError::Database(Box::new(source)))?.insert(db)?;
    }
    Ok(())
}

/// Deletes user texts: the only way in which rows of facts are deleted. Their digests stay in the records.
pub(crate) fn take_out(db: &Connection, words: &[TakenOut]) -> Result<(), StoreError> {
    if words.is_empty() {
        return Ok(());
    }
    unguarded(db, "words_are_not_deleted", || {
        let sql = "DELETE FROM words WHERE session = ? AND operation = ? AND digest = ?";
        let mut delete = db.prepare(sql)?;
        for TakenOut { session, operation, digest } in words {
            delete.execute(params![session.0, operation, digest.as_bytes()])?;
        }
        Ok(())
    })
}

/// Removes unfinished lines from runs: besides deleting user texts, the only way in which rows of facts change. A new fact has
/// the digest of the changed runs.
pub(crate) fn cover_runs(db: &Connection, coverings: &[RunsCovering]) -> Result<(), StoreError> {
    if coverings.is_empty() {
        return Ok(());
    }
    unguarded(db, "run_is_not_updated", || {
        let sql = "UPDATE run SET tail = ?
                   WHERE session = ? AND generation = ? AND start = ? AND operation = ?";
        let mut update = db.prepare(sql)?;
        for RunsCovering { session, operation, runs } in coverings {
            for run in runs {
                let tail = long_values::pack(&run.tail)?;
                let place = params![tail, session.0, run.generation, run.start, operation];
                if update.execute(place)? != 1 {
                    return Err(StoreError::Refused("a run to cover is missing".to_owned()));
                }
            }
        }
        Ok(())
    })
}

/// Does what a trigger forbids, and restores the trigger.
fn unguarded(
    db: &Connection,
    guard: &str,
    work: impl FnOnce() -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let sql = "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = ?";
    let made: Option<String> = first(db, sql, [guard], |row| row.get(0))?;
    db.execute_batch(&format!("DROP TRIGGER IF EXISTS {guard}"))?;
    work()?;
    Ok(db.execute_batch(&made.unwrap_or_default())?)
}

/// The list of lines in a statement's parameter.
const LISTED: &str = "(SELECT value FROM json_each(?))";

/// Encodes line numbers as such a list.
fn list<'l>(lines: impl Iterator<Item = &'l i64>) -> String {
    format!("{:?}", lines.collect::<Vec<_>>())
}
