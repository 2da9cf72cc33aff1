//! Indexing: adds the words of new entries to the index next to a store.
//!
//! Sessions are added in the order of the store: adjacent lines are read together, and new words are appended after the
//! existing ones. Sessions are processed in batches of a few hundred, and the progress is stored after each: a search gives
//! indexing too little time for very many sessions, so the next search continues from there.

use std::{collections::BTreeMap, path::Path};

use crate::{
    archive::Archive,
    files::mark,
    model::{EntryNumber, State},
    report::Indexed,
    search::{fits, words},
    session::{
        Session,
        read::listing::{self, Found},
    },
    settings::Exclude,
    store::{Listed, Reach, SessionFilter, SessionKey, Settled, Store, StoreError, WordIndex},
    verbs::{OpsError, find::threads::Readers},
};

/// How many sessions are processed together.
const TOGETHER: usize = 256;
/// How many entries are read together.
const PIECE: usize = 256;
/// How many added entries trigger a commit of the index.
const KEPT: u64 = 20_000;

/// A range of a session that is not in the index.
struct Missing<'m> {
    session: &'m Session,
    range: std::ops::Range<EntryNumber>,
    reach: Reach,
}

/// Adds what is missing from the index of a store until `goes_on` returns false, except sessions that the user's settings
/// exclude. Reports to `told` how many sessions of how many are done.
///
/// An index of another version or store, or a damaged one, is built again. While another program is indexing, nothing is done.
pub fn index(
    archive: &Archive,
    exclude: &Exclude,
    goes_on: &(dyn Fn() -> bool + Sync),
    told: &mut dyn FnMut(u64, u64),
) -> Result<Indexed, OpsError> {
    let Some(root) = archive.root() else { return Ok(Indexed::default()) };
    let id = archive.store().id()?;
    if let Some(index) = if_usable(WordIndex::open(root, id))?.flatten()
        && let Some(done) = add(archive, exclude, index, goes_on, told)?
    {
        return Ok(done);
    }
    // Returns nothing while another program is creating it.
    let made = WordIndex::make(root, id)?;
    let done = made.map(|index| add(archive, exclude, index, goes_on, told)).transpose()?;
    Ok(done.flatten().unwrap_or_default())
}

/// Returns the answer of an index, or `None` if the index is damaged.
fn if_usable<T>(answer: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match answer {
        Err(StoreError::Corrupt { .. } | StoreError::Database(_)) => Ok(None),
        answer => answer.map(Some),
    }
}

/// Adds to an index. Returns `None` if it is damaged or its history differs from the store's.
fn add(
    archive: &Archive,
    exclude: &Exclude,
    mut index: WordIndex,
    goes_on: &(dyn Fn() -> bool + Sync),
    told: &mut dyn FnMut(u64, u64),
) -> Result<Option<Indexed>, OpsError> {
    let (store, mut done) = (archive.store(), Indexed::default());
    let Some(mut known) = if_usable(index.settled())? else { return Ok(None) };
    // Sessions that these settings exclude are not missing.
    let kept_out = exclude.digest();
    let before = known.clone().filter(|known| known.kept_out == kept_out);
    let (missing, cursor) = if let Some(before) = &before {
        before.missing(store)?
    } else {
        let (all, cursor) = store.since(None)?;
        (all.into_iter().collect(), cursor)
    };
    if missing.is_empty() && before.as_ref().is_some_and(|before| before.part.is_none()) {
        done.is_whole = true;
        return Ok(Some(done));
    }
    if !begin(&mut index, known.as_ref())? {
        return Ok(Some(done));
    }
    let (part, earlier) = match before {
        Some(Settled { part: Some((last, earlier)), .. }) => (Some(last), earlier),
        before => (None, before.map(|before| before.cursor)),
    };
    let settled = |part| Settled { cursor: cursor.clone(), kept_out: kept_out.to_vec(), part };
    let missing: Vec<SessionKey> = missing.into_iter().collect();
    let (mut looked, mut fresh, mut are_all_read) = (0, 0, true);
    let (mut settles, mut is_stopped) = (None, false);
    let mut readers = Readers::of(store);
    for together in missing.chunks(TOGETHER) {
        let (sessions, are_read) = sessions(store, together, exclude)?;
        let reaches = index.reaches_of(&together.iter().copied().collect());
        let Some(reaches) = if_usable(reaches)? else { return Ok(None) };
        for (session, state) in &sessions {
            if let Some(reach) = reaches.get(&session.key)
                && !fits(store, session.key, state, reach)?
            {
                return Ok(None);
            }
        }
        let pieces = self::missing(archive, &sessions, &reaches);
        let added = add_pieces(&mut index, &mut readers, &pieces, goes_on, &mut |entries| {
            done.entries += entries;
            fresh += entries;
            told(looked, missing.len() as u64);
        })?;
        if !added {
            is_stopped = true;
            break;
        }
        looked += together.len() as u64;
        // A damaged session is visited again next time, so that it is reported again.
        are_all_read &= are_read;
        let last =
            together.last().filter(|last| are_all_read && part.is_none_or(|part| part <= **last));
        settles = last.map(|last| settled(Some((*last, earlier.clone())))).or(settles);
        if fresh >= KEPT {
            known = keep(&mut index, settles.take())?.or(known);
            fresh = 0;
            if !begin(&mut index, known.as_ref())? {
                return Ok(Some(done));
            }
        }
    }
    if !is_stopped && are_all_read {
        settles = Some(settled(None));
    }
    if fresh > 0 || settles.is_some() {
        keep(&mut index, settles)?;
    }
    done.is_whole = !is_stopped;
    Ok(Some(done))
}

/// Adds the words of these pieces to an index and reports the number of entries of each. Returns true if all were added.
fn add_pieces(
    index: &mut WordIndex,
    readers: &mut Readers<'_>,
    pieces: &[Missing<'_>],
    goes_on: &(dyn Fn() -> bool + Sync),
    told: &mut dyn FnMut(u64),
) -> Result<bool, StoreError> {
    let work = |store: &dyn Store, n: usize| {
        let Some(piece) = pieces.get(n).filter(|_| goes_on()) else { return Ok(None) };
        if piece.range.is_empty() {
            return Ok(Some(Vec::new()));
        }
        words(store, piece.session, piece.range.clone()).map(Some)
    };
    let (mut ahead, mut is_stopped, mut failed) = (pieces.iter(), false, None);
    readers.in_order(pieces.len(), &work, &mut |found: Result<Option<Vec<_>>, StoreError>| {
        let (Some(piece), false, None) = (ahead.next(), is_stopped, &failed) else { return };
        let add = || {
            let Some(found) = found? else { return Ok(true) };
            index.add(piece.session.key, &piece.range, &found)?;
            index.reach(piece.session.key, &piece.reach)?;
            told(piece.range.end.since(piece.range.start));
            Ok(false)
        };
        match add() {
            Ok(stops) => is_stopped = stops,
            Err(error) => failed = Some(error),
        }
    });
    failed.map_or(Ok(!is_stopped), Err)
}

/// Commits what was added together with the progress, and returns the progress.
fn keep(index: &mut WordIndex, settled: Option<Settled>) -> Result<Option<Settled>, StoreError> {
    if let Some(settled) = &settled {
        index.settle(settled)?;
    }
    index.commit()?;
    Ok(settled)
}

/// Begins a transaction, unless another program is indexing or has changed the progress since it was read.
fn begin(index: &mut WordIndex, known: Option<&Settled>) -> Result<bool, StoreError> {
    if !index.begin()? {
        return Ok(false);
    }
    let is_as_it_was = index.settled()?.as_ref() == known;
    if !is_as_it_was {
        index.commit()?;
    }
    Ok(is_as_it_was)
}

/// Returns these sessions, except those the user's settings exclude, with their states, and whether all could be read.
fn sessions(
    store: &dyn Store,
    only: &[SessionKey],
    exclude: &Exclude,
) -> Result<(Vec<(Session, State)>, bool), OpsError> {
    let only = Some(only.iter().copied().collect());
    let filter = SessionFilter { only, hidden: true, sub_agents: true, ..Default::default() };
    let Found { listed, damaged } = listing::listed(store, &filter)?;
    let mut sessions = Vec::new();
    let mut are_all_read = damaged.is_empty();
    for listed in listed.iter().filter(|listed| !is_left_out(exclude, listed)) {
        // A session in a format that only a newer version knows cannot be read.
        let Ok(session) = Session::from_store(listed.key, listed.name.clone()) else { continue };
        match store.state(listed.key) {
            // A search reports the damage.
            Err(StoreError::Corrupt { .. }) => are_all_read = false,
            state => sessions.push((session, state?)),
        }
    }
    sessions.sort_unstable_by_key(|(session, _)| session.key);
    Ok((sessions, are_all_read))
}

/// Returns the ranges of sessions that are missing from an index with these reaches.
fn missing<'m>(
    archive: &Archive,
    sessions: &'m [(Session, State)],
    reaches: &BTreeMap<SessionKey, Reach>,
) -> Vec<Missing<'m>> {
    let mut missing = Vec::new();
    for (session, state) in sessions {
        let Some(newest) = state.newest else { continue };
        let operation = (newest.n, newest.hash);
        let from = reaches.get(&session.key).map_or(EntryNumber::FIRST, |reach| reach.next);
        let mut ranges: Vec<_> = EntryNumber::batches(from..state.next_entry(), PIECE).collect();
        // A session without new entries may still have a new live file.
        if ranges.is_empty() {
            ranges.push(from..from);
        }
        for range in ranges {
            let reach = Reach { next: range.end, operation, mark: mark(archive, state) };
            missing.push(Missing { session, range, reach });
        }
    }
    missing
}

/// Returns true if the user's settings exclude a session.
fn is_left_out(exclude: &Exclude, Listed { name, card, .. }: &Listed) -> bool {
    let folder = card.folder.as_deref().map(Path::new);
    exclude.find(&name.format, &name.id, folder).is_some()
}
