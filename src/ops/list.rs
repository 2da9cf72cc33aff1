//! Listing: sessions as lists show them, sub-agents below the session that they work for.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use crate::{
    model::{EntryNumber, SessionName, State, Tie, TieKind, Timestamp},
    ops::{
        OpsError,
        compactions::{boundaries, is_said_again},
    },
    report::{ListedSession, Listing, UnreadSession},
    session::{Bond, Kin, Session, kin, listing, replay::Replays},
    store::{Listed, SessionFilter, Store, StoreError},
    sync::{Archive, follow, gone},
};

/// The order of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The newest first, sub-agents below the session that they work for.
    Newest,
    /// The newest first, forks too below the session that they were made of.
    Tree,
}

/// Returns the sessions that a filter lets through, the newest first, each with the session that it was made of. Those that
/// cannot be read are named next to them.
pub fn list(archive: &Archive, filter: &SessionFilter, order: Order) -> Result<Listing, OpsError> {
    let room = filter.limit.map(|limit| limit.saturating_add(Listing::COUNTED));
    let asked = SessionFilter { limit: room, ..filter.clone() };
    let mut found = match filter.since {
        Some(since) => active_since(archive, &asked, since)?,
        None => listing::listed(archive.store(), &asked)?,
    };
    let more = found.listed.len().saturating_sub(filter.limit.unwrap_or(usize::MAX));
    found.listed.truncate(found.listed.len() - more);
    let mut damaged: Vec<UnreadSession> = Vec::new();
    let mut damage = |name: SessionName, error: OpsError| match error {
        OpsError::Store(error @ StoreError::Corrupt { .. }) => {
            damaged.push(UnreadSession::of(name, &error));
            Ok(())
        }
        error => Err(error),
    };
    for (name, error) in found.damaged {
        damage(name, error.into())?;
    }
    let mut sessions = Vec::new();
    for found in found.listed {
        match known(archive, &found) {
            Ok(known) => sessions.push(known),
            Err(error) => {
                damage(found.name.clone(), error)?;
                sessions.push(bare(found));
            }
        }
    }
    sessions.sort_by_key(|listed| Reverse(listed.card.active));
    Ok(Listing { sessions: below_parents(sessions, order), damaged, more })
}

/// Returns the sessions that a filter lets through, those too of which only the live file tells that they were active.
fn active_since(
    archive: &Archive,
    filter: &SessionFilter,
    since: Timestamp,
) -> Result<listing::Found, OpsError> {
    let store = archive.store();
    let whenever = SessionFilter { since: None, limit: None, ..filter.clone() };
    let mut found = listing::listed(store, &whenever)?;
    for listed in found.listed.iter_mut().filter(|listed| listed.card.active < Some(since)) {
        // What is damaged, or cannot be followed, is as its card has it.
        let session = Session::from_store(listed.key, listed.name.clone());
        let state = session.ok().zip(store.state(listed.key).ok());
        if state.is_some_and(|(session, state)| follow(archive, &session, &state).unwrap_or(false))
        {
            listed.card = store.card(listed.key)?;
        }
    }
    found.listed.retain(|listed| Some(since) <= listed.card.active);
    found.listed.sort_by_key(|listed| Reverse((listed.card.active, listed.key)));
    found.listed.truncate(filter.limit.unwrap_or(usize::MAX));
    Ok(found)
}

/// Returns a session of which only its card is known.
fn bare(Listed { name, card, .. }: Listed) -> ListedSession {
    ListedSession {
        name,
        card,
        kin: None,
        branches: 0,
        compactions: 0,
        sub_agents: 0,
        gone: false,
        depth: 0,
    }
}

/// Returns a session as it stands now, with all that lists show of it.
fn known(archive: &Archive, listed: &Listed) -> Result<ListedSession, OpsError> {
    let (store, bare) = (archive.store(), bare(listed.clone()));
    // Of a format that only a newer version knows, the card is all that is known.
    let Ok(session) = Session::from_store(listed.key, listed.name.clone()) else { return Ok(bare) };
    let (mut state, mut card) = (store.state(session.key)?, bare.card);
    // A live file that cannot be followed is as the store has it.
    if follow(archive, &session, &state).unwrap_or(false) {
        (state, card) = (store.state(session.key)?, store.card(session.key)?);
    }
    let works_for_it = Tie { kind: TieKind::SubAgent, other: session.name.id.clone() };
    Ok(ListedSession {
        card,
        kin: kin(store, &session)?,
        branches: state.branches.len() as u64,
        compactions: compactions(store, &session, &state)?,
        sub_agents: store.tied(&session.name.format, &works_for_it, Some(session.key))?.len()
            as u64,
        gone: gone::lost(archive, &session, &state)?.is_some(),
        ..bare
    })
}

/// Returns how many compactions a session has seen: one that was written again counts once, and a context that undertext said
/// again does not count.
fn compactions(store: &dyn Store, session: &Session, state: &State) -> Result<u64, OpsError> {
    let (mut found, mut replays) = (BTreeSet::new(), None);
    for boundary in boundaries(store, session, EntryNumber::FIRST..state.next_entry()) {
        let boundary = boundary?;
        if replays.is_none() {
            replays = Some(Replays::of(store, session)?);
        }
        if !is_said_again(store, session, boundary)? {
            found.extend(replays.as_ref().map(|replays| replays.first(boundary)));
        }
    }
    Ok(found.len() as u64)
}

/// Puts sessions below the one that they were made of, each with how deep it stands there.
fn below_parents(listed: Vec<ListedSession>, order: Order) -> Vec<ListedSession> {
    let names: BTreeSet<_> = listed.iter().map(|found| found.name.clone()).collect();
    let parent = |found: &ListedSession| {
        let is_below = |kin: &&Kin| order == Order::Tree || kin.bond == Bond::SubAgent;
        let kin = found.kin.as_ref().filter(is_below)?;
        let name = SessionName { format: found.name.format.clone(), id: kin.session.clone() };
        (name != found.name && names.contains(&name)).then_some(name)
    };
    let mut below: BTreeMap<Option<SessionName>, Vec<ListedSession>> = BTreeMap::new();
    for found in listed {
        below.entry(parent(&found)).or_default().push(found);
    }
    // What is to come next stands last.
    let mut left = below.remove(&None).unwrap_or_default();
    left.reverse();
    let mut ordered = Vec::new();
    loop {
        let Some(next) = left.pop() else {
            // Sessions that were made of each other stand below nothing.
            let Some((_, circle)) = below.pop_first() else { break };
            left.extend(circle);
            continue;
        };
        if let Some(inner) = below.remove(&Some(next.name.clone())) {
            let depth = next.depth + 1;
            left.extend(inner.into_iter().rev().map(|found| ListedSession { depth, ..found }));
        }
        ordered.push(next);
    }
    ordered
}
