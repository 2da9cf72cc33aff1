//! Looking at a file's bytes next to those of a generation, as far as a judgement asks for it.
//!
//! A line of which bytes were taken out may still stand in the file as it came: that is the same line. Where a line that is to be
//! compared is damaged in the store, the ids of the entries tell whether the file has it.
//!
//! Invariant: no more than a part of either is held in memory.

use std::{
    collections::BTreeSet,
    io::{self, Read},
};

use crate::{
    archive::SyncError,
    files::{
        judge::{Judgement, Known, Look, Looked, Seen, Verdict, Whole, judge},
        rotations::{Linked, running_hash},
    },
    model::{GenerationNumber, LineId, Rotation, Run, Running},
    session::{Session, SessionError, graph::content},
    store::{Store, StoreError},
    wire::jsonl::{ReadError, Reader},
};

/// How many bytes before the known end are compared when a file has grown.
const COMPARED: usize = 64 << 10;

/// A file next to the generation that it is to hold.
pub(crate) struct Looking<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) session: &'a Session,
    pub(crate) generation: GenerationNumber,
    /// Where the generation ends, as far as the file is to hold it.
    pub(crate) end: Option<&'a Run>,
    /// The rotation that may not have been carried out.
    pub(crate) rotation: Option<&'a Rotation>,
    /// Opens the file at an offset.
    pub(crate) open: &'a dyn Fn(u64) -> io::Result<Box<dyn Read>>,
}

/// The error that kept a file from being looked at.
pub(crate) enum Trouble {
    File(io::Error),
    Session(SessionError),
}

impl From<SessionError> for Trouble {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Session(error.into())
    }
}

impl From<SyncError> for Trouble {
    fn from(error: SyncError) -> Self {
        match error {
            SyncError::Store(error) => error.into(),
            error => Self::File(io::Error::other(error)),
        }
    }
}

impl From<ReadError> for Trouble {
    fn from(error: ReadError) -> Self {
        Self::File(io::Error::other(error))
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl Looking<'_> {
    /// Judges the file and looks at its bytes where the judgement asks for it.
    pub(crate) fn verdict(&self, known: &Known, seen: Option<&Seen>) -> Result<Verdict, Trouble> {
        let mut looked = Looked::default();
        loop {
            match judge(known, seen, looked) {
                Judgement::Is(verdict) => return Ok(verdict),
                Judgement::Look(Look::Old) => looked.old = Some(self.is_old()?),
                Judgement::Look(Look::End) => {
                    let found = self.ends_alike();
                    looked.end = Some(if is_damage(&found) { self.begins()? } else { found? });
                }
                Judgement::Look(Look::Rest) => looked.rest = Some(self.lacks_only_the_newest()?),
                // No line of the store is put together for that.
                Judgement::Look(Look::Whole) => looked.whole = Some(self.compare_ids()?),
            }
        }
    }

    fn length(&self) -> u64 {
        self.end.map_or(0, Run::length)
    }

    fn is_old(&self) -> Result<bool, Trouble> {
        let Some(rotation) = self.rotation else { return Ok(false) };
        let stream = (self.open)(0)?.take(rotation.length);
        self.is_part(rotation.old, stream)
    }

    fn ends_alike(&self) -> Result<bool, Trouble> {
        let known = self.last(COMPARED)?;
        let mut there = Vec::with_capacity(known.len());
        let stream = (self.open)(self.length() - known.len() as u64)?;
        stream.take(known.len() as u64).read_to_end(&mut there)?;
        Ok(there == known || self.is_uncovered(&there, &known)?)
    }

    /// Returns whether bytes are known ones, but for lines that stand there as they came.
    fn is_uncovered(&self, there: &[u8], known: &[u8]) -> Result<bool, Trouble> {
        let covered = self.covered()?;
        if covered.is_empty() || there.len() != known.len() {
            return Ok(false);
        }
        let (mut reader, mut from) = (Reader::new(known), 0);
        while let Some(line) = reader.next_line()? {
            let (start, line) =
                (usize::try_from(line.offset).unwrap_or(usize::MAX), line.line.bytes);
            let end = start.saturating_add(line.len());
            let is_it = there.get(start..end).is_some_and(|there| covered.has(line, there));
            if !is_it || there.get(from..start) != known.get(from..start) {
                return Ok(false);
            }
            from = end;
        }
        Ok(there.get(from..) == known.get(from..))
    }

    /// Returns whether the file begins with the whole generation, as the ids of its entries tell.
    fn begins(&self) -> Result<bool, Trouble> {
        let known = self.end.map(|run| (run.running, run.tail.clone()));
        let runs = self.store.runs(self.session.key, self.generation, 0)?;
        let mut links = Linked::of(self.store, self.session.key, &runs);
        let covered = self.store.state(self.session.key)?.coverings();
        let found = running_hash((self.open)(0)?.take(self.length()), &covered, &mut links)?;
        Ok(found == known.unwrap_or((Running::EMPTY, Vec::new())))
    }

    /// Compares the file with the generation by the ids of its entries.
    fn compare_ids(&self) -> Result<Whole, Trouble> {
        if !self.begins()? {
            return Ok(Whole::Other);
        }
        let rest = (self.open)(self.length())?.take(1).read_to_end(&mut Vec::new())?;
        Ok(if rest > 0 { Whole::Longer } else { Whole::Equal })
    }

    /// Returns the lines of the session of which bytes were taken out.
    fn covered(&self) -> Result<Covered, Trouble> {
        let state = self.store.state(self.session.key)?;
        let pairs = state.tombstones.iter().filter_map(|one| Some((one.covered?, one.line?)));
        Ok(Covered(pairs.collect()))
    }

    /// Returns whether the file ends within the bytes of the newest operation, and holds all before them.
    fn lacks_only_the_newest(&self) -> Result<bool, Trouble> {
        let newest = content::newest(self.store, self.session, self.generation)?;
        if newest.is_empty() {
            return Ok(false);
        }
        let known = self.last(newest.len())?;
        let mut there = Vec::new();
        let stream = (self.open)(self.length() - known.len() as u64)?;
        stream.take(known.len() as u64).read_to_end(&mut there)?;
        Ok(there.len() >= known.len() - newest.len() && known.starts_with(&there))
    }

    /// Returns the last bytes of the generation: at least `least` of them, unless it has fewer.
    pub(crate) fn last(&self, least: usize) -> Result<Vec<u8>, SessionError> {
        content::last(self.store, self.session, self.generation, self.end, least)
    }

    /// Returns whether a stream has the bytes of a generation, or ends within them.
    fn is_part(
        &self,
        generation: GenerationNumber,
        mut stream: impl Read,
    ) -> Result<bool, Trouble> {
        let runs = self.store.runs(self.session.key, generation, 0)?;
        let (covered, mut there) = (self.covered()?, Vec::new());
        let (mut is_over, mut is_part, mut failed) = (false, true, None);
        content::write(self.store, self.session, &runs, &mut |part| {
            if !is_over && failed.is_none() {
                there.clear();
                failed = stream.by_ref().take(part.len() as u64).read_to_end(&mut there).err();
                is_over = !covered.has(part, &there);
                is_part = !is_over || part.starts_with(&there);
            }
            Ok(())
        })?;
        there.clear();
        let rest = stream.take(1).read_to_end(&mut there);
        let rest = failed.map_or(rest, Err)?;
        Ok(is_part && (is_over || rest == 0))
    }
}

/// Returns whether a look failed at a damaged line.
fn is_damage<T>(found: &Result<T, Trouble>) -> bool {
    matches!(found, Err(Trouble::Session(SessionError::Store(StoreError::Corrupt { .. }))))
}

/// The lines of a session of which bytes were taken out, each with the one that came.
struct Covered(BTreeSet<(LineId, LineId)>);

impl Covered {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether bytes are those of a line as it is held, or as it came.
    fn has(&self, held: &[u8], there: &[u8]) -> bool {
        let is_pair = || self.0.contains(&(LineId::of(held), LineId::of(there)));
        held == there || !self.is_empty() && is_pair()
    }
}
