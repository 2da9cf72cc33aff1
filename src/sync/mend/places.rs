//! Places: where operations put their entries, read from the files of a session, where the rows that told it are lost.
//!
//! ```text
//! file                  a line for each entry, known by its id: 1 2 3 7 8 9
//! written again         a generation with other entries in place of some, as the operation's origins say
//! runs                  1 to 3, 7 to 9: what a generation would grow by if it held the file, to this line or that
//! ```
//!
//! Invariant: which file holds a generation, and how far, is a guess; the digest of the operation says whether it is right.

use std::collections::BTreeMap;

use crate::{
    model::{EntryId, EntryNumber, GenerationNumber, Run, Running},
    session::Growth,
    store::{Salvage, SessionKey, Unplaced},
    sync::{
        SyncError,
        mend::gather::{self, Lines},
    },
};

/// How many guesses are made for one operation.
const TRIES: usize = 1 << 18;

/// An entry that is in a sequence, and what the sequence comes to with it.
struct Step {
    n: EntryNumber,
    id: EntryId,
    separator: Vec<u8>,
    length: u64,
    running: Running,
    /// Where its line ends.
    end: u64,
}

/// Entries as they follow each other in a file, or would in one.
#[derive(Default)]
struct Sequence {
    steps: Vec<Step>,
    /// The bytes behind the last of them, if these are known.
    tail: Option<Vec<u8>>,
}

impl Sequence {
    fn push(&mut self, n: EntryNumber, id: EntryId, separator: Vec<u8>, length: u64) {
        let before = self.steps.last().map_or((Running::EMPTY, 0), |step| (step.running, step.end));
        let running = before.0.then(&separator, id);
        let end = before.1 + separator.len() as u64 + length;
        self.steps.push(Step { n, id, separator, length, running, end });
    }

    /// Reads the entries of a file, up to the first line that is not an entry of the session.
    fn of(salvage: &Salvage, session: SessionKey, lines: &Lines) -> Result<Self, SyncError> {
        let mut sequence = Self::default();
        let mut at = 0;
        let chain = gather::chain(salvage, session, lines)?;
        for ((linked, (separator, _)), end) in chain.iter().zip(&lines.tried).zip(&lines.ends) {
            let Some(n) = linked.n else {
                sequence.tail = Some(separator.clone());
                return Ok(sequence);
            };
            let length = (end - at).saturating_sub(separator.len() as u64);
            sequence.push(n, linked.id, separator.clone(), length);
            at = *end;
        }
        sequence.tail.clone_from(&lines.tail);
        Ok(sequence)
    }

    /// Returns the entries of a generation, with those in place of others that an operation put there.
    fn again(salvage: &Salvage, one: &Unplaced, held: &Run) -> Result<Self, SyncError> {
        let origins = salvage.origins_by(one)?;
        let instead: BTreeMap<EntryNumber, EntryNumber> =
            origins.into_iter().map(|origin| (origin.origin, origin.entry)).collect();
        let mut sequence = Self::default();
        for (by, run) in salvage.runs(one.session)? {
            if run.generation != held.generation || by >= one.operation.n {
                continue;
            }
            let separators = run.gaps.iter(run.start, run.count);
            for (n, separator) in EntryNumber::each(run.entries()).zip(separators) {
                let n = instead.get(&n).copied().unwrap_or(n);
                let Some((id, length)) = salvage.measure(one.session, n)? else {
                    return Ok(sequence);
                };
                sequence.push(n, id, separator.to_vec(), length);
            }
        }
        sequence.tail = Some(held.tail.clone());
        Ok(sequence)
    }

    /// Returns a generation that ends like this, if the sequence goes on from there, and how many entries it has.
    fn begin(&self, end: &Run) -> Option<(Growth, usize)> {
        let count = usize::try_from(end.end()).ok()?;
        let Some(last) = count.checked_sub(1) else { return Some((Growth::at(end, None), 0)) };
        let step = self.steps.get(last)?;
        let is_it = step.running == end.running && step.end == end.bytes;
        is_it.then(|| (Growth::at(end, Some((step.n, step.id))), count))
    }

    /// Returns what may come after this many entries.
    fn tails(&self, count: usize) -> Vec<&[u8]> {
        let next = self.steps.get(count).map(|step| step.separator.as_slice());
        let last = self.tail.as_deref().filter(|_| count == self.steps.len());
        let mut tails: Vec<&[u8]> = last.or(next).into_iter().chain([&b"\n"[..], b""]).collect();
        tails.sort_unstable();
        tails.dedup();
        tails
    }

    /// Hands over what a generation that ends like this would have grown by if it held the sequence, to each of its entries or,
    /// if it `is_whole`, to the last; up to one that says that it was that.
    fn each_growth(
        &self,
        end: &Run,
        is_whole: bool,
        take: &mut dyn FnMut(Vec<Run>) -> Result<bool, SyncError>,
    ) -> Result<bool, SyncError> {
        let Some((mut growth, mut count)) = self.begin(end) else { return Ok(false) };
        loop {
            let next = self.steps.get(count);
            for tail in self.tails(count).into_iter().filter(|_| !is_whole || next.is_none()) {
                let mut ended = growth.clone();
                ended.end(tail.to_vec());
                if take(ended.finish())? {
                    return Ok(true);
                }
            }
            let Some(step) = next else { return Ok(false) };
            growth.place(step.n, step.id, &step.separator, step.length);
            count += 1;
        }
    }
}

/// Finds out where the operations of a session put their entries of which that is not known.
pub(super) fn place(
    salvage: &mut Salvage,
    session: SessionKey,
    files: &[Lines],
) -> Result<(), SyncError> {
    let of_files = files.iter().map(|lines| Sequence::of(salvage, session, lines));
    let of_files = of_files.collect::<Result<Vec<_>, _>>()?;
    let unplaced = salvage.unplaced().iter().filter(|one| one.session == session);
    for one in unplaced.cloned().collect::<Vec<_>>() {
        if salvage.place_grown(&one)? {
            continue;
        }
        let begun: Vec<GenerationNumber> =
            one.operation.facts.generations.iter().map(|generation| generation.n).collect();
        let (fresh, held): (Vec<Run>, Vec<Run>) =
            salvage.ends_before(&one)?.into_iter().partition(|end| begun.contains(&end.generation));
        let mut again = Vec::new();
        for end in held.iter().filter(|_| !begun.is_empty()) {
            again.push(Sequence::again(salvage, &one, end)?);
        }
        let sequences: Vec<&Sequence> = of_files.iter().chain(&again).collect();
        let mut left = TRIES;
        let mut grown = held.iter().map(Some).chain([None]);
        let mut is_placed = false;
        while let Some(grown) = grown.next().filter(|_| !is_placed) {
            let mut ends: Vec<&Run> = fresh.iter().chain(grown).collect();
            ends.sort_by_key(|end| end.generation);
            is_placed = seek(salvage, &one, (&ends, &sequences), &[], &mut left)?;
        }
    }
    Ok(())
}

/// Looks for what generations grew by, one after the other, behind those runs that are chosen; of several each holds all of its
/// sequence.
fn seek(
    salvage: &mut Salvage,
    one: &Unplaced,
    (ends, sequences): (&[&Run], &[&Sequence]),
    chosen: &[Run],
    left: &mut usize,
) -> Result<bool, SyncError> {
    let named = one.operation.runs.map_or(0, |runs| runs.count);
    let Some((end, others)) = ends.split_first() else {
        let is_worth_it = chosen.len() as u64 == named && *left > 0;
        *left = left.saturating_sub(1);
        return Ok(is_worth_it && salvage.place(one, chosen.to_vec())?);
    };
    let is_whole = ends.len() > 1 || !chosen.is_empty();
    for sequence in sequences {
        let is_placed = sequence.each_growth(end, is_whole, &mut |runs| {
            let all = [chosen, &runs].concat();
            if all.len() as u64 > named || *left == 0 {
                return Ok(false);
            }
            seek(salvage, one, (others, sequences), &all, left)
        })?;
        if is_placed {
            return Ok(true);
        }
    }
    Ok(false)
}
