//! Indexing: the words of what came since, the newest sessions first, are added to the index next to a store.

use std::{collections::BTreeMap, path::Path};

use crate::{
    model::{EntryNumber, State},
    ops::{OpsError, several::in_order},
    report::Indexed,
    search::{fits, words},
    session::{
        Session,
        listing::{self, Found},
    },
    settings::Exclude,
    store::{Cursor, Listed, Reach, SessionFilter, SessionKey, Store, StoreError, WordIndex},
    sync::{Archive, mark},
};

/// How many entries are read together.
const PIECE: usize = 256;
/// After how many entries what was added is kept.
const KEPT: u64 = 20_000;

/// A stretch of a session that is not in the index.
struct Missing<'m> {
    session: &'m Session,
    range: std::ops::Range<EntryNumber>,
    reach: Reach,
}

/// Adds what is missing in the index of a store, but for the sessions that the user's settings leave out, as long as it may
/// go on; tells how many entries of how many are done.
///
/// One that is of another version, of another store or damaged is made again. While another program adds, nothing is done.
pub fn index(
    archive: &Archive,
    exclude: &Exclude,
    goes_on: &(dyn Fn() -> bool + Sync),
    told: &mut dyn FnMut(u64, u64),
) -> Result<Indexed, OpsError> {
    let mut done = Indexed::default();
    let Some(root) = archive.root() else { return Ok(done) };
    let store = archive.store();
    let found = WordIndex::open(root, store.id()?);
    // What these settings leave out is not missing.
    let left_out = exclude.digest();
    let known = match &found {
        Ok(Some(index)) => index.settled().ok().flatten(),
        _ => None,
    };
    let settled = known.as_ref().filter(|(_, known)| known.as_slice() == left_out);
    let (changed, cursor) = store.since(settled.map(|(cursor, _)| cursor))?;
    if settled.is_some() && changed.is_empty() {
        done.is_whole = true;
        return Ok(done);
    }
    let (sessions, are_all_read) = sessions(store, changed, exclude)?;
    let mut index = match usable(store, root, found, &sessions)? {
        Usable::Found(index) => index,
        Usable::Made(index) if known.is_none() => index,
        // What changed was told as of the one that was there.
        Usable::Made(_) => return self::index(archive, exclude, goes_on, told),
        Usable::Nothing => return Ok(done),
    };
    let reaches = index.reaches()?;
    let mut missing = missing(archive, &sessions, &reaches);
    let all: u64 = missing.iter().map(|missing| missing.range.end.since(missing.range.start)).sum();
    if !begin(&mut index, known.as_ref())? {
        return Ok(done);
    }
    // What another program added meanwhile is known now.
    let reaches = index.reaches()?;
    let next = |session: SessionKey| reaches.get(&session).map(|reach| reach.next);
    missing
        .retain(|missing| next(missing.session.key).is_none_or(|next| next <= missing.range.start));
    let work = |store: &dyn Store, n: usize| {
        let Some(missing) = missing.get(n).filter(|_| goes_on()) else { return Ok(None) };
        if missing.range.is_empty() {
            return Ok(Some(Vec::new()));
        }
        words(store, missing.session, missing.range.clone()).map(Some)
    };
    let (mut n, mut fresh) = (0, 0);
    let mut failed: Option<StoreError> = None;
    let mut is_stopped = false;
    in_order(store, missing.len(), &work, &mut |found: Result<Option<Vec<_>>, StoreError>| {
        let piece = missing.get(n);
        n += 1;
        let (Some(piece), false, None) = (piece, is_stopped, &failed) else { return };
        let added = found.and_then(|found| {
            let Some(found) = found else {
                is_stopped = true;
                return Ok(());
            };
            for (entry, words) in &found {
                index.add(piece.session.key, *entry, words)?;
            }
            index.reach(piece.session.key, &piece.reach)?;
            let count = piece.range.end.since(piece.range.start);
            (done.entries, fresh) = (done.entries + count, fresh + count);
            if fresh >= KEPT {
                index.commit()?;
                fresh = 0;
                is_stopped = !begin(&mut index, known.as_ref())?;
            }
            told(done.entries, all);
            Ok(())
        });
        failed = added.err();
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    // A session that is damaged is looked at again, so that it is named.
    if !is_stopped && are_all_read {
        index.settle(&cursor, &left_out)?;
    }
    if !is_stopped || fresh > 0 {
        index.commit()?;
    }
    done.is_whole = !is_stopped;
    Ok(done)
}

/// An index to which may be added.
enum Usable {
    Found(WordIndex),
    /// It was made, because there was none that can be used.
    Made(WordIndex),
    /// Another program makes it.
    Nothing,
}

/// Returns the index that was found, if it is of the history that the store has of these sessions, and else a new one.
fn usable(
    store: &dyn Store,
    root: &Path,
    found: Result<Option<WordIndex>, StoreError>,
    sessions: &[(Session, State)],
) -> Result<Usable, OpsError> {
    let with_reaches = |index: WordIndex| index.reaches().map(|reaches| (index, reaches));
    match found.and_then(|index| index.map(with_reaches).transpose()) {
        Ok(Some((index, reaches))) => {
            let mut is_of_it = true;
            for (session, state) in sessions {
                if let Some(reach) = reaches.get(&session.key) {
                    is_of_it &= fits(store, session.key, state, reach)?;
                }
            }
            if is_of_it {
                return Ok(Usable::Found(index));
            }
        }
        Err(error) if !matches!(error, StoreError::Corrupt { .. } | StoreError::Database(_)) => {
            return Err(error.into());
        }
        Ok(None) | Err(_) => {}
    }
    Ok(WordIndex::make(root, store.id()?)?.map_or(Usable::Nothing, Usable::Made))
}

/// Begins to add, unless another program adds, or has brought the index along since it was known to be so.
fn begin(index: &mut WordIndex, known: Option<&(Cursor, Vec<u8>)>) -> Result<bool, StoreError> {
    if !index.begin()? {
        return Ok(false);
    }
    let is_as_it_was = index.settled()?.as_ref() == known;
    if !is_as_it_was {
        index.commit()?;
    }
    Ok(is_as_it_was)
}

/// Returns those of these sessions that the user's settings let in, each with its state, and whether all could be read.
fn sessions(
    store: &dyn Store,
    only: Vec<SessionKey>,
    exclude: &Exclude,
) -> Result<(Vec<(Session, State)>, bool), OpsError> {
    let only = Some(only.into_iter().collect());
    let filter = SessionFilter { only, hidden: true, sub_agents: true, ..Default::default() };
    let Found { listed, damaged } = listing::listed(store, &filter)?;
    let mut sessions = Vec::new();
    let mut are_all_read = damaged.is_empty();
    for listed in listed.iter().filter(|listed| !is_left_out(exclude, listed)) {
        // Of a format that only a newer version knows, nothing can be read.
        let Ok(session) = Session::from_store(listed.key, listed.name.clone()) else { continue };
        match store.state(listed.key) {
            // A search names what is damaged.
            Err(StoreError::Corrupt { .. }) => are_all_read = false,
            state => sessions.push((session, state?)),
        }
    }
    // In the order of the store: lines that lie together are read together, and words are added behind those that are there.
    sessions.sort_unstable_by_key(|(session, _)| session.key);
    Ok((sessions, are_all_read))
}

/// Returns what is missing of sessions in an index that has come this far.
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
        // What took in no entry may have another live file.
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

/// Returns whether the user's settings leave a session out.
fn is_left_out(exclude: &Exclude, Listed { name, card, .. }: &Listed) -> bool {
    let folder = card.folder.as_deref().map(Path::new);
    exclude.find(&name.format, &name.id, folder).is_some()
}
