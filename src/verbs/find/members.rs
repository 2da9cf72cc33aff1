//! Members: the sessions that a verb searches, and the places of the entries in which it found something.
//!
//! Invariant: a damaged session never hides results of others, and is always reported. So is a session whose live file cannot
//! be read; only its part in the store is searched.

use std::{cmp::Reverse, collections::BTreeMap};

use crate::{
    archive::Archive,
    change::reconcile::follow,
    files::may_be_behind,
    model::{Card, CheckpointNumber, EntryNumber, SessionName, Tie, TieKind},
    report::{FoundPlace, UnreadPart, UnreadSession},
    search::Index,
    session::{
        Session, Stand, Stored, entry_ids,
        read::{
            listing,
            status::{Precision, Stands, stands},
        },
    },
    store::{Listed, Reach, SessionFilter, Store, StoreError},
    verbs::OpsError,
};

/// A session that is searched.
pub(crate) struct Member {
    pub(crate) session: Session,
    pub(crate) listed: Listed,
    /// The first entry after those in the store.
    pub(crate) held: EntryNumber,
    /// The first entry after those in the word index.
    pub(crate) indexed: EntryNumber,
    /// Whether its live file has more entries than the store.
    pub(crate) is_grown: bool,
    /// Its ties to other sessions.
    pub(crate) ties: Vec<Tie>,
}

/// Returns a session with its sub-agents, and theirs.
pub(crate) fn family(store: &dyn Store, session: &Session) -> Result<Vec<Session>, OpsError> {
    let mut family = vec![session.clone()];
    let mut n = 0;
    while let Some(parent) = family.get(n) {
        let tie = Tie { kind: TieKind::SubAgent, other: parent.name.id.clone() };
        for (key, name) in store.tied(&parent.name.format, &tie, Some(parent.key))? {
            // Files may tie sessions in a circle; each session is visited once.
            if family.iter().all(|known| known.key != key) {
                family.push(Session::from_store(key, name)?);
            }
        }
        n += 1;
    }
    Ok(family)
}

/// Returns the sessions to search, newest first, limited to `some` if given. Entries in live files that are not in the store
/// yet are overlaid on it.
pub(crate) fn members(
    archive: &Archive,
    filter: &SessionFilter,
    some: Option<&[Session]>,
    index: Option<&Index>,
    unread: &mut Vec<UnreadSession>,
) -> Result<Vec<Member>, OpsError> {
    let store = archive.store();
    let since = filter.since;
    // The live file may know a later time of activity than the store, so `since` is applied below.
    let filter = SessionFilter { sub_agents: true, since: None, limit: None, ..filter.clone() };
    let found = if let Some(some) = some {
        // A session that you named is searched even if it is hidden.
        let filter = SessionFilter { hidden: true, ..filter };
        let mut found = Vec::new();
        for Session { key, name, .. } in some {
            found.push(Listed { key: *key, name: name.clone(), card: store.card(*key)? });
        }
        found.retain(|listed| filter.matches(listed));
        found
    } else {
        let found = listing::listed(store, &filter)?;
        let named = found.damaged.into_iter();
        unread.extend(named.map(|(name, error)| UnreadSession::of(name, &error)));
        found.listed
    };
    let mut members = Vec::with_capacity(found.len());
    for mut listed in found {
        // A session in a format that only a newer version knows cannot be read.
        let Ok(session) = Session::from_store(listed.key, listed.name.clone()) else { continue };
        // If nothing was imported since a session was fully indexed, the index knows all that is needed.
        let whole = index.and_then(|index| index.whole(session.key));
        if let Some(Reach { next, .. }) = whole.filter(|it| !may_be_behind(archive, &it.mark)) {
            let (held, indexed, ties) = (*next, *next, ties_of(store, &session)?);
            members.push(Member { session, listed, held, indexed, is_grown: false, ties });
            continue;
        }
        let opened = match archive.at(&session) {
            Err(error @ StoreError::Corrupt { .. }) => {
                unread.push(UnreadSession::of(session.name, &error));
                continue;
            }
            opened => opened?,
        };
        let held = opened.state.next_entry();
        let indexed = index.map(|index| index.next(store, session.key, &opened.state));
        let indexed = indexed.transpose()?.unwrap_or_default().min(held);
        let is_grown = follow(&opened).unwrap_or_else(|error| {
            let (name, part) = (session.name.clone(), UnreadPart::LiveFile);
            unread.push(UnreadSession { name, part, problem: error.in_full() });
            false
        });
        if is_grown {
            listed.card = store.card(session.key)?;
        }
        let ties = ties_of(store, &session)?;
        members.push(Member { session, listed, held, indexed, is_grown, ties });
    }
    if some.is_none() && !filter.hidden {
        let mut hidden = Hidden { store, known: BTreeMap::new() };
        let mut shown = Vec::with_capacity(members.len());
        for member in members {
            if !hidden.hides(&member)? {
                shown.push(member);
            }
        }
        members = shown;
    }
    if let (None, Some(since)) = (some, since) {
        // A session without a known time may be as new as any.
        members.retain(|Member { listed, .. }| listed.card.active.is_none_or(|at| since <= at));
    }
    members.sort_by_key(|member| Reverse(member.listed.card.active));
    Ok(members)
}

fn ties_of(store: &dyn Store, session: &Session) -> Result<Vec<Tie>, StoreError> {
    Ok(store.ties(session.key)?.into_iter().flat_map(|(_, ties)| ties).collect())
}

/// Which sessions are hidden, together with their sub-agents.
struct Hidden<'s> {
    store: &'s dyn Store,
    known: BTreeMap<SessionName, bool>,
}

impl Hidden<'_> {
    /// Returns true if any ancestor of a session is hidden.
    fn hides(&mut self, Member { session, ties, .. }: &Member) -> Result<bool, OpsError> {
        let parents = |ties: &[Tie]| {
            let above = ties.iter().filter(|tie| tie.kind == TieKind::SubAgent);
            let name = |tie: &Tie| SessionName { id: tie.other.clone(), ..session.name.clone() };
            above.map(name).collect::<Vec<SessionName>>()
        };
        let (mut ahead, mut met) = (parents(ties), Vec::new());
        let mut is_hidden = false;
        while let Some(name) = ahead.pop().filter(|_| !is_hidden) {
            if let Some(known) = self.known.get(&name) {
                is_hidden = *known;
            } else if !met.contains(&name) {
                if let Some(key) = self.store.session(&name)? {
                    let parent = Session::from_store(key, name.clone())?;
                    // A damaged session is reported elsewhere, and hides nothing.
                    is_hidden = self.store.card(key).is_ok_and(|card| card.hidden);
                    ahead.extend(parents(&ties_of(self.store, &parent)?));
                }
                met.push(name);
            }
        }
        // With several ancestors it is unclear which one is hidden, so nothing is cached.
        if !is_hidden || met.len() == 1 {
            self.known.extend(met.into_iter().map(|name| (name, is_hidden)));
        }
        Ok(is_hidden)
    }
}

/// Returns an answer about a session, or reports the session if it is damaged.
pub(crate) fn or_named<T>(
    answer: Result<T, OpsError>,
    session: &Session,
    damaged: &mut Vec<UnreadSession>,
) -> Result<Option<T>, OpsError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(OpsError::Store(error @ StoreError::Corrupt { .. })) => {
            damaged.push(UnreadSession::of(session.name.clone(), &error));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Returns the places of these entries. Places in a damaged session are unknown, and the session is reported.
pub(crate) fn places_of(
    store: &dyn Store,
    session: &Session,
    card: &Card,
    entries: &[EntryNumber],
    precision: Precision,
    damaged: &mut Vec<UnreadSession>,
) -> Result<Vec<FoundPlace>, OpsError> {
    let stands = stands(&Stored::of(store, session)?, entries, precision).map_err(OpsError::from);
    let unknown =
        || Stands { stand: Stand::Unknown, turn: None, step: None, is_of_sub_agent: false };
    let stands = or_named(stands, session, damaged)?
        .unwrap_or_else(|| entries.iter().map(|_| unknown()).collect());
    let ids = entry_ids(store, session, &entries.iter().copied().collect());
    let ids = or_named(ids.map_err(OpsError::from), session, damaged)?.unwrap_or_default();
    let parent = or_named(parent(store, session), session, damaged)?.flatten();
    let place = |(entry, stands): (&EntryNumber, Stands)| FoundPlace {
        session: session.name.clone(),
        title: card.title.clone(),
        folder: card.folder.clone(),
        entry: ids.get(entry).copied(),
        turn: stands.turn,
        step: stands.step,
        stand: stands.stand,
        is_of_sub_agent: stands.is_of_sub_agent || parent.is_some(),
        parent: parent.clone(),
    };
    Ok(entries.iter().zip(stands).map(place).collect())
}

/// Returns the turns that contain these entries, as far as they are known; none for a damaged session.
pub(crate) fn turns_of(
    store: &dyn Store,
    session: &Session,
    entries: &[EntryNumber],
) -> Result<BTreeMap<EntryNumber, CheckpointNumber>, OpsError> {
    let stands =
        stands(&Stored::of(store, session)?, entries, Precision::Turn).map_err(OpsError::from);
    let stands = or_named(stands, session, &mut Vec::new())?.unwrap_or_default();
    let turn = |(entry, stands): (&EntryNumber, Stands)| Some((*entry, stands.turn?));
    Ok(entries.iter().zip(stands).filter_map(turn).collect())
}

/// Returns the parent session of a sub-agent.
fn parent(store: &dyn Store, session: &Session) -> Result<Option<String>, OpsError> {
    let mut ties = ties_of(store, session)?.into_iter();
    Ok(ties.find(|tie| tie.kind == TieKind::SubAgent).map(|tie| tie.other))
}
