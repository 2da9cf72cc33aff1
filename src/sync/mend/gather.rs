//! Gathering: the lines of several files that one operation brought, each from the file of its generation.
//!
//! ```text
//! operation   generation 1: entries 1 to 40     generation 2: entries 41 to 60
//! files       one that has as many bytes up to  another one, or the same
//!             line 40 as the run says
//! ```
//!
//! Where no run tells, lines that follow each other are tried.
//!
//! Invariant: which file holds a generation is a guess; the digest of the operation says whether it is right.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use crate::{
    model::{EntryId, EntryNumber, OperationNumber, Run},
    store::{Salvage, SessionKey, Tried, Unknown},
    sync::{SyncError, sources},
    wire::jsonl::{Located, Reader},
};

/// How many ids are hashed in search of the entries of a session that no run tells of.
const TRIES: usize = 8_000_000;

/// A file with its lines.
pub(super) struct Lines {
    path: PathBuf,
    bytes: Vec<Vec<u8>>,
    /// The lines as they are tried, each behind its separator.
    pub(super) tried: Vec<(Vec<u8>, Tried)>,
    /// Where each line ends.
    pub(super) ends: Vec<u64>,
    /// The bytes behind the last line, if the file could be read to its end.
    pub(super) tail: Option<Vec<u8>>,
}

impl Lines {
    /// Reads a file; of one that cannot be read on, the lines so far.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let mut reader = Reader::new(sources::open(path, 0).ok()?);
        let (mut bytes, mut tried, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        let is_whole = loop {
            match reader.next_line() {
                Ok(Some(Located { line, offset, .. })) => {
                    ends.push(offset + line.bytes.len() as u64);
                    tried.push((line.separator.to_vec(), Tried::of(line.bytes)));
                    bytes.push(line.bytes.to_vec());
                }
                read => break read.is_ok(),
            }
        };
        let tail = is_whole.then(|| reader.into_tail().bytes);
        Some(Self { path: path.to_owned(), bytes, tried, ends, tail })
    }

    /// Returns whether the file may be that of a run: up to its end it is as long.
    fn may_have(&self, run: &Run) -> bool {
        let last = run.end().checked_sub(1).and_then(|last| usize::try_from(last).ok());
        last.and_then(|last| self.ends.get(last)) == Some(&run.bytes)
    }
}

/// A line in a file: the id of the entry that it would be linked to, its own, and the entry that has it.
pub(super) struct Linked {
    link: Option<EntryId>,
    pub(super) id: EntryId,
    pub(super) n: Option<EntryNumber>,
}

/// Returns the lines of a file as they follow each other in it.
pub(super) fn chain(
    salvage: &Salvage,
    session: SessionKey,
    file: &Lines,
) -> Result<Vec<Linked>, SyncError> {
    let coverings = salvage.coverings(session)?;
    let mut chain: Vec<Linked> = Vec::with_capacity(file.tried.len());
    for (_, line) in &file.tried {
        let link = chain.last().map(|last| last.id).filter(|_| !line.is_named);
        let id = EntryId::of(link, line.id);
        let mut linked = Linked { link, id, n: salvage.entry(session, &id)? };
        if let (None, Some(came)) = (linked.n, coverings.get(&line.id)) {
            linked.id = EntryId::of(link, *came);
            linked.n = salvage.entry(session, &linked.id)?;
        }
        chain.push(linked);
    }
    Ok(chain)
}

/// Looks in files for as many new lines as an operation brought entries, one after the other, and returns where those lie that
/// were missing. One that began several generations took them from as many files, in their order.
fn in_order(
    salvage: &mut Salvage,
    unknown: &Unknown,
    files: &[Lines],
    left: &mut usize,
) -> Result<Vec<usize>, SyncError> {
    let operations = salvage.operations(unknown.session)?;
    let by = operations.iter().find(|by| by.n == unknown.operation);
    let Some(by) = by else { return Ok(Vec::new()) };
    let count = usize::try_from(by.count()).unwrap_or(usize::MAX).max(1);
    let together = by.facts.generations.len().max(1);
    let numbered: Vec<(usize, &Lines)> = files.iter().enumerate().collect();
    for files in numbered.windows(together) {
        let (mut spots, mut ids, mut met) = (Vec::new(), Vec::new(), BTreeSet::new());
        for (number, file) in files {
            if *left < file.tried.len() {
                return Ok(Vec::new());
            }
            *left -= file.tried.len();
            for (line, linked) in chain(salvage, unknown.session, file)?.into_iter().enumerate() {
                let is_new = linked.n.is_none_or(|n| by.added().contains(&n));
                if is_new && met.insert(linked.id) {
                    spots.push((*number, *file, line));
                    ids.push((linked.link, linked.id));
                }
            }
        }
        for (ids, spots) in ids.windows(count).zip(spots.windows(count)) {
            if *left < count {
                return Ok(Vec::new());
            }
            *left -= count;
            let bytes = |at: usize| spots.get(at).and_then(|(_, file, line)| file.bytes.get(*line));
            if salvage.identify_in_order(unknown, ids, &mut |at| bytes(at).cloned())? {
                let at = |n: &EntryNumber| spots.get(n.index_from(by.first)?).map(|spot| spot.0);
                return Ok(unknown.missing.iter().filter_map(at).collect());
            }
        }
    }
    Ok(Vec::new())
}

/// A line: which file has it, and which of its lines it is.
type Spot = (usize, usize);

/// Looks in the files of a session for entries of which nothing is known but how many their operation brought, and a digest.
/// Returns how many lines came back from each.
pub(super) fn identify(
    salvage: &mut Salvage,
    session: SessionKey,
    files: &[Lines],
) -> Result<Vec<(PathBuf, u64)>, SyncError> {
    let runs = salvage.runs(session)?;
    let mut found = vec![0_u64; files.len()];
    let mut left = TRIES;
    let unknown = salvage.unknown().iter().filter(|unknown| unknown.session == session);
    for unknown in unknown.cloned().collect::<Vec<_>>() {
        let mut seen = BTreeSet::new();
        for choice in 0..files.len() {
            let spots = spots(&unknown, &runs, files, choice);
            // Behind the last file that a run may have, no other one comes.
            if !seen.insert(spots.clone()) {
                continue;
            }
            let tried =
                spots.iter().map(|(file, line)| Some(files.get(*file)?.tried.get(*line)?.1));
            let Some(tried) = tried.collect::<Option<Vec<Tried>>>() else { continue };
            let mut bytes = |at: usize| {
                let (file, line) = spots.get(at)?;
                files.get(*file)?.bytes.get(*line).cloned()
            };
            if tried.len() == unknown.missing.len()
                && salvage.identify(&unknown, &tried, &mut bytes)?
            {
                for (file, _) in &spots {
                    found.get_mut(*file).into_iter().for_each(|count| *count += 1);
                }
                break;
            }
        }
        if salvage.unknown().contains(&unknown) {
            for file in in_order(salvage, &unknown, files, &mut left)? {
                found.get_mut(file).into_iter().for_each(|count| *count += 1);
            }
        }
    }
    Ok(files.iter().map(|file| file.path.clone()).zip(found).collect())
}

/// Returns where the missing entries of an operation lie, each in the first generation that has it. Of several files that may be
/// a generation's, `choice` says which one is taken; where none looks like it, that one of all.
fn spots(
    unknown: &Unknown,
    runs: &[(OperationNumber, Run)],
    files: &[Lines],
    choice: usize,
) -> Vec<Spot> {
    let spot = |n| {
        let (_, run) = runs.iter().find(|(_, run)| run.entries().contains(n))?;
        let fitting = files.iter().enumerate().filter(|(_, file)| file.may_have(run));
        let fitting: Vec<usize> = fitting.map(|(at, _)| at).collect();
        let file = fitting.get(choice).or(fitting.last()).copied().unwrap_or(choice);
        Some((file, usize::try_from(run.start + n.since(run.first)).ok()?))
    };
    unknown.missing.iter().filter_map(spot).collect()
}
