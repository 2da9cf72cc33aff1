//! Members: the sessions that a verb looks through, and where the entries stand in which it found something.
//!
//! Invariant: a session that is damaged hides nothing of the others, and is named.

use std::cmp::Reverse;

use crate::{
    model::{Card, EntryId, EntryNumber, TieKind},
    ops::OpsError,
    report::{DamagedSession, FoundPlace},
    search::Index,
    session::{
        Session, Stand, entry_ids, listing,
        stands::{Stands, stands},
    },
    store::{Listed, Reach, SessionFilter, Store, StoreError},
    sync::{Archive, follow, may_be_behind},
};

/// A session that is searched.
pub(crate) struct Member {
    pub(crate) session: Session,
    pub(crate) listed: Listed,
    /// The first entry that the store does not hold.
    pub(crate) held: EntryNumber,
    /// The first entry that the index of words does not have.
    pub(crate) indexed: EntryNumber,
    /// Whether its live file holds more.
    pub(crate) is_grown: bool,
}

/// Returns the sessions that are searched, the newest first; what their live files hold beyond the store is laid over it.
pub(crate) fn members(
    archive: &Archive,
    (filter, one): (&SessionFilter, Option<&Session>),
    index: Option<&Index>,
    damaged: &mut Vec<DamagedSession>,
) -> Result<Vec<Member>, OpsError> {
    let store = archive.store();
    let since = filter.since;
    // When a session was last active its live file may tell better than the store.
    let filter = SessionFilter { sub_agents: true, since: None, limit: None, ..filter.clone() };
    let found = if let Some(Session { key, name, .. }) = one {
        let listed = Listed { key: *key, name: name.clone(), card: store.card(*key)? };
        // One that was named is looked through though it is hidden.
        let filter = SessionFilter { hidden: true, ..filter };
        if filter.matches(&listed) { vec![listed] } else { Vec::new() }
    } else {
        let found = listing::listed(store, &filter)?;
        let named = found.damaged.into_iter();
        damaged.extend(named.map(|(name, error)| DamagedSession::of(name, &error)));
        found.listed
    };
    let mut members = Vec::with_capacity(found.len());
    for mut listed in found {
        // Of a format that only a newer version knows, nothing can be read.
        let Ok(session) = Session::from_store(listed.key, listed.name.clone()) else { continue };
        // Of one that took in nothing since it was wholly in the index, that tells all.
        let whole = index.and_then(|index| index.whole(session.key));
        if let Some(Reach { next, .. }) = whole.filter(|it| !may_be_behind(archive, &it.mark)) {
            let (held, indexed) = (*next, *next);
            members.push(Member { session, listed, held, indexed, is_grown: false });
            continue;
        }
        let state = match store.state(session.key) {
            Err(error @ StoreError::Corrupt { .. }) => {
                damaged.push(DamagedSession::of(session.name, &error));
                continue;
            }
            state => state?,
        };
        let held = state.next_entry();
        let indexed = index.map(|index| index.next(store, session.key, &state));
        let indexed = indexed.transpose()?.unwrap_or_default().min(held);
        // A live file that cannot be followed is as the store has it.
        let is_grown = follow(archive, &session, &state).unwrap_or(false);
        if is_grown {
            listed.card = store.card(session.key)?;
        }
        members.push(Member { session, listed, held, indexed, is_grown });
    }
    if one.is_none() {
        members.retain(|member| since.is_none_or(|since| Some(since) <= member.listed.card.active));
    }
    members.sort_by_key(|member| Reverse(member.listed.card.active));
    Ok(members)
}

/// Returns an answer about a session, or names the session if it is damaged.
pub(crate) fn or_named<T>(
    answer: Result<T, OpsError>,
    session: &Session,
    damaged: &mut Vec<DamagedSession>,
) -> Result<Option<T>, OpsError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(OpsError::Store(error @ StoreError::Corrupt { .. })) => {
            damaged.push(DamagedSession::of(session.name.clone(), &error));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Returns where these entries of a session stand; what cannot be told of a damaged one is unknown, and the session is named.
pub(crate) fn places_of(
    store: &dyn Store,
    session: &Session,
    card: &Card,
    entries: &[EntryNumber],
    damaged: &mut Vec<DamagedSession>,
) -> Result<Vec<FoundPlace>, OpsError> {
    let stands = stands(store, session, entries).map_err(OpsError::from);
    let unknown = || Stands { stand: Stand::Unknown, turn: None, is_of_sub_agent: false };
    let stands = or_named(stands, session, damaged)?
        .unwrap_or_else(|| entries.iter().map(|_| unknown()).collect());
    let ids = entry_ids(store, session, &entries.iter().copied().collect())?;
    let parent = parent(store, session)?;
    let place = |(entry, stands): (&EntryNumber, Stands)| FoundPlace {
        session: session.name.clone(),
        title: card.title.clone(),
        folder: card.folder.clone(),
        entry: ids.get(entry).copied().unwrap_or(EntryId::new([0; 32])),
        turn: stands.turn,
        stand: stands.stand,
        is_of_sub_agent: stands.is_of_sub_agent || parent.is_some(),
        parent: parent.clone(),
    };
    Ok(entries.iter().zip(stands).map(place).collect())
}

/// Returns the session for which a session works, if it is a sub-agent.
fn parent(store: &dyn Store, session: &Session) -> Result<Option<String>, OpsError> {
    let ties = store.ties(session.key)?;
    let mut ties = ties.into_iter().flat_map(|(_, ties)| ties);
    Ok(ties.find(|tie| tie.kind == TieKind::SubAgent).map(|tie| tie.other))
}
