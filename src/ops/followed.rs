//! Live files as they are verified: one that holds its lines in the order of the session's entries is compared with these as
//! they are read for another check, any other one is hashed.
//!
//! Invariant: a file that was found to be as the store left it has the running hash and the tail that hashing it gives.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead as _, BufReader},
    iter::Peekable,
    path::PathBuf,
};

use crate::{
    disk::{self, Links},
    model::{EntryNumber, LineId, Run, Running},
    session::Session,
    store::{SessionKey, Store},
    sync::{Places, rotations},
};

/// How many bytes of a file are read together.
const READ: usize = 1 << 18;

/// A live file as it was read.
pub(super) struct Hashed {
    /// Where it is.
    pub(super) path: PathBuf,
    /// The lines of it that were taken for others.
    pub(super) covered: BTreeMap<LineId, LineId>,
    /// Its running hash and its tail.
    pub(super) found: (Running, Vec<u8>),
}

/// The live file that a session has by its derived rows, which may be wrong.
pub(super) struct Followed {
    path: PathBuf,
    covered: BTreeMap<LineId, LineId>,
    /// What the file held when the store left it.
    runs: Vec<Run>,
}

impl Followed {
    /// Looks for the live file of a session; nothing if it has none, or if that cannot be told.
    pub(super) fn of(store: &dyn Store, session: &Session, places: &Places) -> Option<Self> {
        let tip = store.state(session.key).ok()?;
        let path = places.live_file(&tip)?.path;
        let generation = tip.growth().map(|growth| growth.generation);
        let runs = generation.map(|generation| store.runs(session.key, generation, 0)).transpose();
        Some(Self { path, covered: tip.coverings(), runs: runs.ok()?.unwrap_or_default() })
    }

    /// Returns whether the lines of the file are in the order of the session's entries.
    fn is_in_order(&self) -> bool {
        self.runs.is_sorted_by(|run, next| run.entries().end <= next.first)
    }

    /// Hashes the file, unless it is to be compared; nothing if it cannot be read.
    pub(super) fn hash(self, store: &dyn Store, session: SessionKey) -> Option<Hashed> {
        if self.is_in_order() {
            return None;
        }
        let file = disk::open(&self.path, Links::Refuse).ok()?;
        let mut links = rotations::Linked::of(store, session, &self.runs);
        let found = rotations::running_hash(file, &self.covered, &mut links).ok()?;
        Some(Hashed { path: self.path, covered: self.covered, found })
    }

    /// Begins to compare the file, unless it is to be hashed or cannot be read.
    pub(super) fn compare(&self) -> Option<Comparison<'_>> {
        let file = self.is_in_order().then(|| disk::open(&self.path, Links::Refuse).ok());
        let file = BufReader::with_capacity(READ, file.flatten()?);
        let placed = self.runs.iter().flat_map(|run| {
            EntryNumber::each(run.entries()).zip(run.gaps.iter(run.start, run.count))
        });
        let placed: Placed<'_> = Box::new(placed);
        Some(Comparison { live: self, file, placed: placed.peekable(), is_same: true })
    }
}

/// The entries that a file should hold, each with the separator before it.
type Placed<'a> = Box<dyn Iterator<Item = (EntryNumber, &'a [u8])> + 'a>;

/// A live file while it is compared with the lines of its session.
pub(super) struct Comparison<'a> {
    live: &'a Followed,
    file: BufReader<File>,
    placed: Peekable<Placed<'a>>,
    /// Whether all of it was as it should be so far.
    is_same: bool,
}

impl Comparison<'_> {
    /// Sees the line of an entry; they come in the order of the entries, those of other states of the file among them.
    pub(super) fn see(&mut self, n: EntryNumber, line: &[u8]) {
        let Some((_, separator)) = self.placed.next_if(|(next, _)| *next <= n) else { return };
        // A line that did not come is one behind which nothing fits.
        self.is_same = self.is_same && self.goes_on(separator) && self.goes_on(line);
    }

    /// Returns the file with what hashing it would give, if it is as the store left it.
    pub(super) fn finish(mut self) -> Option<Hashed> {
        let (running, tail) = match self.live.runs.last() {
            Some(run) => (run.running, run.tail.clone()),
            None => (Running::EMPTY, Vec::new()),
        };
        let is_whole = self.is_same && self.placed.next().is_none() && self.goes_on(&tail);
        let is_at_end = is_whole && self.file.fill_buf().is_ok_and(<[u8]>::is_empty);
        let Followed { path, covered, .. } = self.live;
        is_at_end.then(|| Hashed {
            path: path.clone(),
            covered: covered.clone(),
            found: (running, tail),
        })
    }

    /// Passes the next bytes of the file if they are these.
    fn goes_on(&mut self, mut with: &[u8]) -> bool {
        while !with.is_empty() {
            let Ok(read) = self.file.fill_buf() else { return false };
            let length = read.len().min(with.len());
            let (now, later) = with.split_at(length);
            if length == 0 || read.get(..length) != Some(now) {
                return false;
            }
            self.file.consume(length);
            with = later;
        }
        true
    }
}
