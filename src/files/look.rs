//! Compares a file's bytes with those of a generation, as far as a judgement asks for it.
//!
//! A redacted line may still be in the file in its original form; it counts as equal. If a line to be compared is damaged in the
//! store, entry ids decide instead.
//!
//! Invariant: neither the file nor the generation is ever completely in memory.

use std::{
    collections::BTreeSet,
    io::{self, Read},
    path::Path,
};

use crate::{
    archive::SyncError,
    files::{
        judge::{Judgement, Known, Look, Looked, Seen, Verdict, Whole, judge},
        rotations::{Linked, running_hash},
    },
    model::{GenerationNumber, LineId, Rotation, Run, Running},
    session::{SessionError, Stored, graph::content},
    store::StoreError,
    wire::jsonl::{ReadError, Reader},
};

/// How many bytes before the known end are compared when a file has grown.
const COMPARED: usize = 64 << 10;

/// A file and the generation to compare it with.
pub(crate) struct Looking<'a> {
    pub(crate) session: &'a Stored<'a>,
    pub(crate) generation: GenerationNumber,
    /// The end of the generation, as far as the file should contain it.
    pub(crate) end: Option<&'a Run>,
    /// The rotation that may not have been carried out.
    pub(crate) rotation: Option<&'a Rotation>,
    pub(crate) path: &'a Path,
    /// Opens the file at an offset.
    pub(crate) open: &'a dyn Fn(u64) -> Result<Box<dyn Read>, SyncError>,
}

impl Looking<'_> {
    /// Judges the file, reading its bytes where the judgement asks for it.
    pub(crate) fn verdict(&self, known: &Known, seen: Option<&Seen>) -> Result<Verdict, SyncError> {
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
                // Comparing ids needs no line from the store.
                Judgement::Look(Look::Whole) => looked.whole = Some(self.compare_ids()?),
            }
        }
    }

    /// Reads the file from an offset on, at most `length` bytes.
    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, SyncError> {
        let mut bytes = Vec::new();
        let read = (self.open)(offset)?.take(length as u64).read_to_end(&mut bytes);
        read.map_err(SyncError::at(self.path)).map(|_| bytes)
    }

    fn length(&self) -> u64 {
        self.end.map_or(0, Run::length)
    }

    fn is_old(&self) -> Result<bool, SyncError> {
        let Some(rotation) = self.rotation else { return Ok(false) };
        self.is_part(rotation.old, (self.open)(0)?.take(rotation.length))
    }

    fn ends_alike(&self) -> Result<bool, SyncError> {
        let known = self.last(COMPARED)?;
        let there = self.read(self.length() - known.len() as u64, known.len())?;
        Ok(there == known || self.is_uncovered(&there, &known)?)
    }

    /// Returns true if the bytes are equal apart from redacted lines that `there` still has in their original form.
    fn is_uncovered(&self, there: &[u8], known: &[u8]) -> Result<bool, SyncError> {
        let covered = self.covered();
        if covered.is_empty() || there.len() != known.len() {
            return Ok(false);
        }
        let (mut reader, mut from) = (Reader::new(known), 0);
        while let Some(line) = reader.next_line().map_err(|error| self.unread(error))? {
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

    /// Returns true if the file starts with the whole generation, comparing entry ids.
    fn begins(&self) -> Result<bool, SyncError> {
        let known = self.end.map(|run| (run.running, run.tail.clone()));
        let runs = self.session.store.runs(self.session.key, self.generation, 0)?;
        let mut links = Linked::of(self.session.store, self.session.key, &runs);
        let covered = self.session.state.coverings();
        let found = running_hash((self.open)(0)?.take(self.length()), &covered, &mut links);
        let found = found.map_err(|error| match error {
            SyncError::Read(error) => self.unread(error),
            error => error,
        })?;
        Ok(found == known.unwrap_or((Running::EMPTY, Vec::new())))
    }

    /// Compares the file with the generation by entry ids.
    fn compare_ids(&self) -> Result<Whole, SyncError> {
        if !self.begins()? {
            return Ok(Whole::Other);
        }
        let rest = self.read(self.length(), 1)?;
        Ok(if rest.is_empty() { Whole::Equal } else { Whole::Longer })
    }

    fn unread(&self, error: ReadError) -> SyncError {
        SyncError::at(self.path)(io::Error::other(error))
    }

    /// Returns the redacted lines of the session.
    fn covered(&self) -> Covered {
        let pairs =
            self.session.state.tombstones.iter().filter_map(|one| Some((one.covered?, one.line?)));
        Covered(pairs.collect())
    }

    /// Returns true if the file has everything before the newest operation and ends within that operation's bytes.
    fn lacks_only_the_newest(&self) -> Result<bool, SyncError> {
        let newest = content::newest(self.session, self.generation)?;
        if newest.is_empty() {
            return Ok(false);
        }
        let known = self.last(newest.len())?;
        let there = self.read(self.length() - known.len() as u64, known.len())?;
        Ok(there.len() >= known.len() - newest.len() && known.starts_with(&there))
    }

    /// Returns the last bytes of the generation: at least `least` of them, or all if it has fewer.
    pub(crate) fn last(&self, least: usize) -> Result<Vec<u8>, SessionError> {
        content::last(self.session, self.generation, self.end, least)
    }

    /// Returns true if a stream has the bytes of a generation or a prefix of them.
    fn is_part(
        &self,
        generation: GenerationNumber,
        mut stream: impl Read,
    ) -> Result<bool, SyncError> {
        let runs = self.session.store.runs(self.session.key, generation, 0)?;
        let (covered, mut there) = (self.covered(), Vec::new());
        let (mut is_over, mut is_part, mut failed) = (false, true, None);
        content::write(self.session, &runs, &mut |part| {
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
        let rest = failed.map_or(rest, Err).map_err(SyncError::at(self.path))?;
        Ok(is_part && (is_over || rest == 0))
    }
}

/// Returns true if a comparison failed at a damaged line.
fn is_damage<T>(found: &Result<T, SyncError>) -> bool {
    matches!(found, Err(SyncError::Store(StoreError::Corrupt { .. })))
}

/// The redacted lines of a session: the id of each stored line with the id of its original.
struct Covered(BTreeSet<(LineId, LineId)>);

impl Covered {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if `there` is the stored line or its original.
    fn has(&self, held: &[u8], there: &[u8]) -> bool {
        let is_pair = || self.0.contains(&(LineId::of(held), LineId::of(there)));
        held == there || !self.is_empty() && is_pair()
    }
}
