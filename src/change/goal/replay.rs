//! Replay: writes the current branch again in a new generation, with some of its lines replaced.
//!
//! ```text
//! old generation   u1 a1 R1 a2 u2 R2
//! new generation   u1 a1 r1 a2 u2 r2     r1 and r2 have R1 and R2 as their origins; the others are the same entries
//! ```
//!
//! A record with a name keeps its name, so references to it stay valid. Where records have no names, an entry's id covers the
//! entry before it: the lines after a cut line become new entries with the old ones as their origins.
//!
//! Invariant: an agent that resumes the new file reads the same entries, apart from those with an origin.

use std::collections::BTreeMap;

use crate::{
    archive::{Misread, SyncError, Vain},
    change::draft::live::append_live,
    change::draft::live::exchange_live,
    change::{
        draft::Change,
        goal::{Goal, setting},
    },
    files::live_file::LiveFile,
    live::{Fresh, WritableFile},
    model::{Cutting, EntryNumber, Position, line},
    store::Whole,
    wire::Graph,
};

/// How many lines to read at a time.
const BATCH: usize = 256;

/// The current branch, to be written again with some lines cut.
pub(crate) struct Replay {
    /// The position of the branch.
    pub(crate) from: Position,
    /// The cut lines, by entry.
    pub(crate) cuts: BTreeMap<EntryNumber, Cut>,
    /// Lines that restate the whole context, for an agent whose file cannot be set aside.
    pub(crate) restated: Option<Vec<Vec<u8>>>,
}

/// A line that replaces a longer one.
pub(crate) struct Cut {
    line: Vec<u8>,
    /// The strings of the longer line from which its own were cut.
    wholes: Vec<Option<Whole>>,
    cutting: Cutting,
}

impl Goal for Replay {
    /// The length of the file.
    type Reached = u64;

    fn prepare(self, change: &mut Change<'_>) -> Result<(u64, Option<Position>), SyncError> {
        let (length, position) = match (&self.restated, change.before.attached()) {
            (Some(lines), Some(live)) => self.restate(change, &live, lines)?,
            _ => self.replay(change)?,
        };
        Ok((length, Some(position)))
    }
}

impl Replay {
    /// Writes the generation of the current branch again.
    fn replay(&self, change: &mut Change<'_>) -> Result<(u64, Position), SyncError> {
        let Some(session) = change.before.session.clone() else {
            return Err(SyncError::Nothing(Vain::Truncate));
        };
        let (store, live) = (change.before.store(), change.before.live_file());
        change.is_replay = true;
        let mut growth = change.generation(live.as_ref().map(|live| live.n));
        let tail = change.growth(self.from.generation)?.tail;
        let spans = change.before.spans(self.from)?;
        let begin = |live| Copy::begin(&change.before.writable_file(live)?);
        let mut copy = live.as_ref().map(begin).transpose()?;
        let mut entries = BTreeMap::new();
        for span in &spans {
            let mut separators = span.gaps.iter(span.start, span.count);
            for batch in EntryNumber::batches(span.entries(), BATCH) {
                let held = store.entries(session.key, batch.clone())?;
                let lengths = store.lengths(session.key, batch)?;
                for (entry, length) in held.into_iter().zip(lengths) {
                    let separator = separators.next().unwrap_or_default();
                    let gap = separator.len() as u64;
                    if let Some(cut) = self.cuts.get(&entry.n) {
                        let n = change.take(&mut growth, &line_of(&cut.line, separator))?;
                        cut.stand_in(change, n, entry.n)?;
                        entries.insert(entry.n, n);
                        if let Some(copy) = &mut copy {
                            copy.keep(gap);
                            copy.put(&cut.line, length)?;
                        }
                        continue;
                    }
                    if entry.link.is_none() || entry.link == growth.last.map(|(n, _)| n) {
                        growth.place(entry.n, entry.id, separator, length);
                    } else {
                        let line = change.before.line(entry.n)?;
                        let n = change.take(&mut growth, &line_of(&line, separator))?;
                        change.stand_for(n, entry.n)?;
                        entries.insert(entry.n, n);
                    }
                    if let Some(copy) = &mut copy {
                        copy.keep(gap + length);
                    }
                }
            }
        }
        if self.cuts.keys().any(|n| !entries.contains_key(n)) {
            return Err(SyncError::Misread(Misread::Earlier));
        }
        if let Some(copy) = &mut copy {
            copy.keep(tail.len() as u64);
        }
        growth.end(tail);
        let head = self.from.head.map(|head| entries.get(&head).copied().unwrap_or(head));
        let position = growth.position(head);
        let length = growth.length();
        change.grown(growth);
        if !is_same(change, self.from, position, &entries)? {
            return Err(SyncError::Misread(Misread::Otherwise));
        }
        if let (Some(live), Some(copy)) = (live, copy) {
            let (old, new) = (self.from.generation, position.generation);
            exchange_live(change, &live, copy.finish()?, old, new)?;
        }
        Ok((length, position))
    }

    /// Appends the lines that restate the whole context. The cut lines themselves belong to no generation.
    fn restate(
        &self,
        change: &mut Change<'_>,
        live: &LiveFile,
        lines: &[Vec<u8>],
    ) -> Result<(u64, Position), SyncError> {
        let mut growth = change.growth(self.from.generation)?;
        for (entry, cut) in &self.cuts {
            let n = change.aside(&growth, &line_of(&cut.line, b""))?;
            cut.stand_in(change, n, *entry)?;
        }
        let first = change.next_entry();
        let more = setting::behind(&growth, lines);
        change.read_bytes(&mut growth, &more)?;
        let position = change.end_of(&growth)?;
        let head = position.head;
        let record = head.map(|head| change.ahead(position, &growth).record(head)).transpose()?;
        let format = change.before.format;
        if record.is_none_or(|record| record.n < first || !format.replaces_all(&record)) {
            let why = "the agent would not continue from a rewritten context".to_owned();
            return Err(SyncError::OutOfReach { path: live.path.clone(), why });
        }
        let length = growth.length();
        change.grown(growth);
        append_live(change, more, length)?;
        Ok((length, position))
    }
}

impl Cut {
    /// Returns a cut, given the resulting line and the whole one.
    pub(crate) fn new(line: Vec<u8>, whole: &[u8], cutting: Cutting) -> Self {
        let wholes = Whole::each(&line_of(&line, b""), &line_of(whole, b""));
        Self { line, wholes, cutting }
    }

    pub(crate) fn line(&self) -> &[u8] {
        &self.line
    }

    /// Records that a new entry with the cut line replaces an old one.
    fn stand_in(
        &self,
        change: &mut Change<'_>,
        new: EntryNumber,
        old: EntryNumber,
    ) -> Result<(), SyncError> {
        change.replace(new, old, self.wholes.clone(), self.cutting.clone())
    }
}

/// Returns true if an agent that resumes the replay reads the same entries, apart from replaced ones.
fn is_same(
    change: &Change<'_>,
    from: Position,
    position: Position,
    entries: &BTreeMap<EntryNumber, EntryNumber>,
) -> Result<bool, SyncError> {
    let view = change.look(position);
    if change.before.format.head(&view)? != position.head {
        return Ok(false);
    }
    let sent = view.sending()?.sent;
    let wanted = view.moved(from).sending()?.sent;
    Ok(wanted.into_iter().map(|entry| entries.get(&entry).copied().unwrap_or(entry)).eq(sent))
}

/// Returns bytes that are one whole line as a line.
fn line_of<'a>(bytes: &'a [u8], separator: &'a [u8]) -> line::Line<'a> {
    let object = line::split_unfinished(bytes).next();
    let shape = object.filter(|line| line.bytes.len() == bytes.len()).and_then(|line| line.shape);
    line::Line { separator, bytes, shape, glued: false }
}

/// A successor of a live file that copies most of its content.
struct Copy {
    fresh: Fresh,
    /// Where the part still to be copied begins in the live file, and its length.
    from: u64,
    length: u64,
}

impl Copy {
    fn begin(live: &WritableFile) -> Result<Self, SyncError> {
        let fresh = live.fresh().map_err(SyncError::at(live.path()))?;
        Ok(Self { fresh, from: 0, length: 0 })
    }

    /// Copies the next bytes.
    fn keep(&mut self, length: u64) {
        self.length += length;
    }

    /// Replaces the next bytes by others.
    fn put(&mut self, bytes: &[u8], instead_of: u64) -> Result<(), SyncError> {
        self.flush()?;
        self.fresh.write(bytes).map_err(SyncError::at(self.fresh.live().path()))?;
        self.from += instead_of;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SyncError> {
        let copied = self.fresh.copy(self.from, self.length);
        copied.map_err(SyncError::at(self.fresh.live().path()))?;
        self.from += std::mem::take(&mut self.length);
        Ok(())
    }

    fn finish(mut self) -> Result<Fresh, SyncError> {
        self.flush()?;
        Ok(self.fresh)
    }
}
