//! Checking bytes: reads every line once, in order, compares it with the ids of all its entries, and hashes every string that can
//! be referred to.
//!
//! ```text
//! segments  |------- one thread -------|------- another -------| fresh      a thread for each core
//! windows   |---------|---------|------|---------|---------|-------|   the hashes of a window's lines are in memory
//! entries   of all sessions, those whose line is in the window
//! ```
//!
//! Invariant: a check never stops at the first fault, and never uses more memory than a window needs.
//! Invariant: the faults and their order never depend on the number of threads.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    path::Path,
    thread,
};

use rusqlite::{Connection, OptionalExtension, ffi, params};

use crate::store::sqlite::{
    add::OWN,
    bytes::{
        body::{Parts, Place},
        cover::{self, Covered},
        lines::{self, Bytes},
        long_values,
    },
    open,
    query::{collect, hash},
    totals,
};
use crate::{
    model::{
        Digest, EntryId, EntryNumber, LineId, Operation, OperationId, OperationNumber, Tagged,
    },
    store::{Fault, SessionKey, StoreError, cores},
};

/// About how many lines' hashes are in memory, in all threads together.
const WINDOW: i64 = 1 << 19;
/// The maximum number of threads.
const THREADS: usize = 8;
/// The rows with which a redacted line is recognised when it arrives again.
const TAKEN_OUT: &str = "the list of redacted lines";
/// How many bytes of lines are worth a thread.
const WORTH: i64 = 1 << 20;

/// The numbers of a segment.
#[derive(Clone, Copy)]
struct Span {
    first: i64,
    count: i64,
    size: i64,
}

/// Returns true if a page could not be read: it may be intact. A file that ends too early was truncated.
fn is_unread(problem: &str) -> bool {
    let mut codes = problem.split("error code=").skip(1).filter_map(|rest| {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest.get(..digits)?.parse::<i32>().ok()
    });
    let is_failure =
        |code: i32| code & 0xff == ffi::SQLITE_IOERR && code != ffi::SQLITE_IOERR_SHORT_READ;
    codes.any(is_failure)
}

/// Reports every fault of the database itself, and every changed line, entry, string and stored file.
///
/// If a path is given, further connections check the lines in parallel.
pub(super) fn check(
    db: &Connection,
    bytes: &Bytes,
    path: Option<&Path>,
    report: &mut dyn FnMut(Fault),
) -> Result<(), StoreError> {
    let mut gaps = Vec::new();
    let spans = spans(db, bytes, &mut |fault| gaps.push(fault));
    let parts = match &spans {
        Ok(spans) => parts(spans, cores()),
        Err(_) => Vec::new(),
    };
    let window = WINDOW / i64::try_from(parts.len().max(1)).unwrap_or(1);
    // Each thread has a connection of its own. If they cannot be opened, one thread reads everything.
    let opened = path.filter(|_| parts.len() > 1).and_then(|path| {
        let each = parts.iter().map(|held| Ok((held.clone(), open::to_read_on(path)?)));
        each.collect::<Result<Vec<_>, StoreError>>().ok()
    });
    thread::scope(|scope| {
        let begin = |(held, opened): (Range<i64>, open::Opened)| {
            let part = move || {
                // Other programs may have packed lines since that come after the last part.
                let bytes = Bytes::default();
                match self::spans(&opened.db, &bytes, &mut |_| {}) {
                    Ok(mut spans) => {
                        spans.retain(|span| held.contains(&span.first));
                        Part::check(&opened.db, &bytes, &spans, window, held)
                    }
                    Err(error) => (Vec::new(), Err(error)),
                }
            };
            thread::Builder::new().spawn_scoped(scope, part).ok()
        };
        // If a thread cannot be started, this one reads everything.
        let threads: Option<Vec<_>> =
            opened.and_then(|opened| opened.into_iter().map(begin).collect());
        integrity(db, report)?;
        structure(db, None, report)?;
        if totals::read(db)? != totals::count(db, bytes)? {
            let problem = "they do not match a count of the sessions";
            report(Fault::of(None, "the totals", problem));
        }
        gaps.into_iter().for_each(&mut *report);
        let spans = spans?;
        let failed = |_| (Vec::new(), Err(StoreError::database("its check failed")));
        let checked = match threads {
            None => vec![Part::check(db, bytes, &spans, window, i64::MIN..i64::MAX)],
            Some(threads) => {
                threads.into_iter().map(|part| part.join().unwrap_or_else(failed)).collect()
            }
        };
        for (faults, checked) in checked {
            faults.into_iter().for_each(&mut *report);
            checked?;
        }
        Ok(())
    })
}

/// Reports every fault that SQLite finds in the database.
fn integrity(db: &Connection, report: &mut dyn FnMut(Fault)) -> Result<(), StoreError> {
    // It jumps between pages, so it gets a large page cache.
    let cache: i64 = db.query_row("PRAGMA cache_size", [], |row| row.get(0))?;
    db.execute_batch("PRAGMA cache_size = -16000")?;
    let problems = collect(db, "PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    db.execute_batch(&format!("PRAGMA cache_size = {cache}"))?;
    for problem in problems? {
        if is_unread(&problem) {
            return Err(StoreError::unread(problem));
        }
        if problem != "ok" {
            report(Fault::of_store(problem));
        }
    }
    Ok(())
}

/// Reports changes of the schema, and faults in the rows of one session, or of all, that no check of lines finds.
pub(super) fn structure(
    db: &Connection,
    only: Option<SessionKey>,
    report: &mut dyn FnMut(Fault),
) -> Result<(), StoreError> {
    for (item, problem) in open::altered(db)? {
        report(Fault::of(None, item, problem));
    }
    let only = only.map(|session| session.0);
    cards(db, only, report)?;
    words(db, only, report)
}

/// Returns the condition that narrows a query to one session, if there is one. An index serves it.
fn of(column: &str, only: Option<i64>) -> String {
    only.map_or(String::new(), |session| format!("WHERE {column} = {session}"))
}

/// Reports cards with wrong names, and missing rows in the indexes of files and of redacted lines. A session's other derived rows
/// are rebuilt and compared by a caller that knows its format.
fn cards(
    db: &Connection,
    only: Option<i64>,
    report: &mut dyn FnMut(Fault),
) -> Result<(), StoreError> {
    let mut query = db.prepare(&format!(
        "SELECT key, card.format = session.format AND card.id = session.id, state
         FROM session LEFT JOIN card ON card.session = key {}",
        of("key", only)
    ))?;
    let mut there =
        db.prepare("SELECT 1 FROM place WHERE place = ? AND session = ? AND file = ?")?;
    let (mut places, mut redacted, mut is_known) = (0, cover::Checked::begin(db)?, true);
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let key = row.get(0)?;
        let mut fault = |item: String, problem: &str| {
            report(Fault::of(Some(SessionKey(key)), item, problem));
        };
        if row.get::<_, Option<bool>>(1)? == Some(false) {
            fault("card".to_owned(), "its name does not match the session");
        }
        let Ok(state) = long_values::state(row, 2) else {
            is_known = false;
            continue;
        };
        for (file, place) in (1..).zip(&state.files) {
            places += 1;
            if !there.exists(params![place.to_bytes(), key, file])? {
                fault(format!("file {file}"), "its path does not lead to it");
            }
        }
        if redacted.is_lacking(db, SessionKey(key), &state)? {
            let problem = "a redacted line is missing";
            fault(TAKEN_OUT.to_owned(), problem);
        }
    }
    if only.is_some() {
        // Superfluous places can be found only with the places of all sessions.
        return Ok(());
    }
    let count: i64 = db.query_row("SELECT count(*) FROM place", [], |row| row.get(0))?;
    if is_known && count > places {
        let problem = format!("there are {count}, but the sessions have {places}");
        report(Fault::of(None, "the places of files", problem));
    }
    if let Some(problem) = redacted.too_many().filter(|_| is_known) {
        report(Fault::of(None, TAKEN_OUT, problem));
    }
    Ok(())
}

/// Reports user texts that do not match their digests. Missing texts were redacted.
fn words(
    db: &Connection,
    only: Option<i64>,
    report: &mut dyn FnMut(Fault),
) -> Result<(), StoreError> {
    let mut query = db.prepare(&format!(
        "SELECT session, operation, digest, salt, text FROM words {}",
        of("session", only)
    ))?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let salt = row.get(3)?;
        // A damaged value that is not a text has no digest.
        let text = row.get_ref(4)?.as_str().ok();
        let found = text.map(|text| Digest::of_words(&salt, text));
        let wanted = Digest::new(hash(row, 2)?);
        if found != Some(wanted) {
            let item = format!("text of operation {}", row.get::<_, i64>(1)?);
            let session = Some(SessionKey(row.get(0)?));
            report(Fault::of(session, item, "they do not match their digest"));
        }
    }
    Ok(())
}

/// Returns the segments, and reports line numbers that are missing or used twice.
fn spans(
    db: &Connection,
    bytes: &Bytes,
    report: &mut dyn FnMut(Fault),
) -> Result<Vec<Span>, StoreError> {
    let mut next = 1;
    let mut follow = |first: i64, count: i64| {
        let item = match first.saturating_sub(next) {
            0 => None,
            1 => Some((format!("line {next}"), "it is missing")),
            2.. => Some((format!("lines {next} to {}", first - 1), "they are missing")),
            _ => Some((format!("line {first}"), "it appears twice")),
        };
        if let Some((item, problem)) = item {
            report(Fault::of(None, item, problem));
        }
        next = first.saturating_add(count);
    };
    let sql = "SELECT key, count, size FROM segment ORDER BY key";
    let spans = collect(db, sql, [], |row| {
        Ok(Span { first: row.get(0)?, count: row.get(1)?, size: row.get(2)? })
    })?;
    for span in &spans {
        follow(span.first, span.count);
    }
    for line in bytes.loose(db)? {
        follow(line, 1);
    }
    Ok(spans)
}

/// Splits all line numbers into parts with about as many bytes each, one for each core that is worth it.
fn parts(spans: &[Span], cores: usize) -> Vec<Range<i64>> {
    let whole = spans.iter().fold(0, |sum: i64, span| sum.saturating_add(span.size));
    let count = i64::try_from(cores.min(THREADS)).unwrap_or(1).min(whole / WORTH).max(1);
    let mut parts = Vec::new();
    let (mut from, mut before) = (i64::MIN, 0_i64);
    for span in spans {
        let done = i64::try_from(parts.len() + 1).unwrap_or(i64::MAX);
        if done < count && before >= whole / count * done {
            parts.push(from..span.first);
            from = span.first;
        }
        before = before.saturating_add(span.size);
    }
    parts.push(from..i64::MAX);
    parts
}

/// A part of the lines, checked by one thread.
struct Part<'a> {
    db: &'a Connection,
    bytes: &'a Bytes,
    /// How many lines' hashes are in memory.
    window: i64,
    faults: Vec<Fault>,
}

/// A window of lines: their hashes, by the first line of each range, and the damage of those without one.
#[derive(Default)]
struct Window {
    ids: BTreeMap<i64, Vec<LineId>>,
    damaged: BTreeMap<i64, String>,
    /// The damaged lines that were reported with their entries or files.
    named: BTreeSet<i64>,
}

impl Window {
    fn get(&self, line: i64) -> Option<LineId> {
        let (first, ids) = self.ids.range(..=line).next_back()?;
        ids.get(usize::try_from(line.checked_sub(*first)?).ok()?).copied()
    }

    /// Returns the fault of an entry or file whose line has the wrong hash, or none.
    fn fault(&mut self, session: SessionKey, item: String, line: i64, wrong: &str) -> Fault {
        let problem = if let Some(problem) = self.damaged.get(&line) {
            self.named.insert(line);
            problem.clone()
        } else if self.get(line).is_some() {
            wrong.to_owned()
        } else if line == lines::LOST {
            return lines::lost(session, item);
        } else {
            format!("its line, {line}, is missing")
        };
        Fault::of(Some(session), item, problem)
    }
}

/// A string that can be referred to, with its tag in the index.
struct Text {
    place: Place,
    tag: [u8; 6],
}

impl Part<'_> {
    /// Checks the lines of segments, in the last part also those in `fresh`, and the entries with line numbers in `held`.
    fn check(
        db: &Connection,
        bytes: &Bytes,
        spans: &[Span],
        window: i64,
        held: Range<i64>,
    ) -> (Vec<Fault>, Result<(), StoreError>) {
        let mut part = Part { db, bytes, window, faults: Vec::new() };
        let checked = part.windows(spans, held);
        (part.faults, checked)
    }

    fn windows(&mut self, mut spans: &[Span], mut held: Range<i64>) -> Result<(), StoreError> {
        let whole = held.end;
        let sessions = self.sessions()?;
        loop {
            let mut lines: i64 = 0;
            let fits = spans.iter().take_while(|span| {
                let fits = lines < self.window;
                lines = lines.saturating_add(span.count);
                fits
            });
            let (now, later) = spans.split_at(fits.count());
            let is_last = later.is_empty();
            held.end = later.first().map_or(whole, |span| span.first);
            let fresh = is_last && whole == i64::MAX;
            let mut window = self.read(now, fresh, &held)?;
            for (session, lines) in &sessions {
                if lines.start < held.end && held.start < lines.end {
                    self.entries(&mut window, *session, &held)?;
                }
            }
            self.kept(&mut window, &held)?;
            for (line, problem) in window.damaged {
                if !window.named.contains(&line) {
                    self.fault(None, format!("line {line}"), problem);
                }
            }
            if is_last {
                return Ok(());
            }
            held.start = held.end;
            spans = later;
        }
    }

    fn fault(&mut self, session: Option<SessionKey>, item: String, problem: impl Into<String>) {
        self.faults.push(Fault::of(session, item, problem));
    }

    /// Reads lines, and checks the indexed strings in them.
    fn read(
        &mut self,
        spans: &[Span],
        fresh: bool,
        held: &Range<i64>,
    ) -> Result<Window, StoreError> {
        let mut window = Window::default();
        let texts = self.texts(held)?;
        let mut texts = texts.as_slice();
        for span in spans {
            // A segment that cannot be unpacked is a single fault, however many lines it claims to have.
            match self.bytes.segment(self.db, span.first) {
                Ok(segment) if segment.first == span.first => {
                    let lines = span.first..span.first.saturating_add(span.count);
                    window.ids.insert(span.first, Vec::with_capacity(segment.lines.len()));
                    for line in lines {
                        self.line(&mut window, span.first, line, &mut texts);
                    }
                }
                Ok(_) => {}
                Err(error) => self.faults.push(Fault::of_error(error, None)?),
            }
        }
        if fresh {
            for line in self.bytes.loose(self.db)? {
                window.ids.entry(line).or_default();
                self.line(&mut window, line, line, &mut texts);
            }
        }
        self.astray(texts);
        Ok(window)
    }

    fn line(&mut self, window: &mut Window, stretch: i64, line: i64, texts: &mut &[Text]) {
        let before = texts.partition_point(|text| text.place.line < line);
        let (astray, rest) = texts.split_at(before);
        self.astray(astray);
        let (own, rest) = rest.split_at(rest.partition_point(|text| text.place.line == line));
        *texts = rest;
        let mut wrong = 0;
        let look = |parts: &Parts<'_>| {
            let is_wrong = |text: &&Text| {
                let found = parts.slice(text.place);
                found.is_none_or(|bytes| {
                    blake3::hash(bytes).as_bytes().get(..6) != Some(text.tag.as_slice())
                })
            };
            wrong = own.iter().filter(is_wrong).count();
        };
        let id = match self.bytes.line_with(self.db, line, look) {
            Ok(bytes) => LineId::of(&bytes),
            Err(error) => {
                window.damaged.insert(line, error.to_string());
                LineId::new([0; 32])
            }
        };
        window.ids.entry(stretch).or_default().push(id);
        for _ in 0..wrong {
            let item = format!("text in line {line}");
            self.fault(None, item, "its bytes do not match its hash");
        }
    }

    /// Reports indexed strings without a line.
    fn astray(&mut self, texts: &[Text]) {
        for text in texts {
            let item = format!("text in line {}", text.place.line);
            self.fault(None, item, "the line is missing");
        }
    }

    /// Returns the indexed strings of lines, in line order.
    fn texts(&self, lines: &Range<i64>) -> Result<Vec<Text>, StoreError> {
        let sql = "SELECT tag, line, at, size FROM text WHERE line >= ? AND line < ?";
        let mut texts = collect(self.db, sql, [lines.start, lines.end], |row| {
            let place = Place { line: row.get(1)?, at: row.get(2)?, size: row.get(3)? };
            Ok(Text { place, tag: row.get(0)? })
        })?;
        texts.sort_unstable_by_key(|text| (text.place.line, text.place.at));
        Ok(texts)
    }

    /// Returns the range of each session's line numbers.
    fn sessions(&self) -> Result<Vec<(i64, Range<i64>)>, StoreError> {
        let sql =
            "SELECT session, min(line), max(line) FROM entry GROUP BY session ORDER BY session";
        collect(self.db, sql, [], |row| {
            Ok((row.get(0)?, row.get(1)?..row.get::<_, i64>(2)?.saturating_add(1)))
        })
    }

    /// Compares the ids of a session's entries with their lines.
    fn entries(
        &mut self,
        window: &mut Window,
        session: i64,
        held: &Range<i64>,
    ) -> Result<(), StoreError> {
        let mut query = self.db.prepare_cached(
            "SELECT n, id, link, line FROM entry
             WHERE session = ?3 AND line >= ?1 AND line < ?2 ORDER BY n",
        )?;
        let mut linked =
            self.db.prepare_cached("SELECT id FROM entry WHERE session = ? AND n = ?")?;
        let mut rows = query.query(params![held.start, held.end, session])?;
        let mut before: Option<(i64, EntryId)> = None;
        let mut covered: Option<Covered> = None;
        while let Some(row) = rows.next()? {
            let (n, id): (i64, _) = (row.get(0)?, EntryId::new(hash(row, 1)?));
            let (link, line): (Option<i64>, i64) = (row.get(2)?, row.get(3)?);
            let link = match (link.map(|distance| n - distance), before) {
                (None, _) => Some(None),
                (Some(link), Some((last, id))) if last == link => Some(Some(id)),
                (Some(link), _) => linked
                    .query_row([session, link], |row| hash(row, 0))
                    .optional()?
                    .map(|id| Some(EntryId::new(id))),
            };
            before = Some((n, id));
            let is_right = |line| link.is_some_and(|link| EntryId::of(link, line) == id);
            let found = window.get(line);
            if found.is_some_and(is_right) {
                continue;
            }
            let of = SessionKey(session);
            let known = match &mut covered {
                Some(known) => known,
                none => none.insert(cover::by_operations(self.db, of)?),
            };
            let n = EntryNumber::new(n.unsigned_abs());
            let stands = |(line, link)| cover::stands_for(known, n, id, link, line);
            if found.zip(link).is_some_and(stands) {
                continue;
            }
            let item = format!("entry {n}");
            let problem = "its id does not match its link and line";
            self.faults.push(window.fault(of, item, line, problem));
        }
        Ok(())
    }

    /// Compares the digests of stored files with their bytes.
    fn kept(&mut self, window: &mut Window, held: &Range<i64>) -> Result<(), StoreError> {
        let mut query = self.db.prepare(
            "SELECT kept.session, kept.n, line, operation.n, record, hash FROM kept LEFT JOIN operation
               ON operation.session = kept.session AND store = ?3 AND operation.n = kept.operation
             WHERE line >= ?1 AND line < ?2",
        )?;
        let mut rows = query.query(params![held.start, held.end, OWN])?;
        while let Some(row) = rows.next()? {
            let (session, at, line) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let n: Option<OperationNumber> = row.get(3)?;
            let wanted = match n {
                Some(n) => {
                    let hash = OperationId::new(hash(row, 5)?);
                    let operation = Operation::open(n, row.get(4)?, hash, &[]).ok();
                    operation.and_then(|operation| cover::kept_digest(&operation, at))
                }
                None => None,
            };
            let found = window.get(line).map(|found| *found.as_bytes());
            let is_found = |wanted: Option<Digest>| {
                wanted.is_some_and(|wanted| Some(*wanted.as_bytes()) == found)
            };
            let session = SessionKey(session);
            let covered = || n.map(|n| cover::file_by_operations(self.db, session, (n, at)));
            if is_found(wanted) || is_found(covered().transpose()?.flatten()) {
                continue;
            }
            let item = format!("kept file {at} of operation {}", n.unwrap_or_default());
            let wrong = "it does not match its operation";
            self.faults.push(window.fault(session, item, line, wrong));
        }
        Ok(())
    }
}
