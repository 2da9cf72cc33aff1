//! Listing sessions, with sub-agents below their parents.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use crate::{
    archive::{Archive, At},
    change::{self, reconcile::follow},
    files::deletion,
    model::{Glance, SessionName, Tie, TieKind, Timestamp},
    report::{ListedSession, Listing, UnreadSession},
    session::{Bond, Kin, Session, kin, read::listing},
    store::{Listed, SessionFilter, SessionKey, StoreError},
    verbs::{OpsError, look::glance::glance, window::sight::Asked},
};

/// Sessions with more entries than this get a glance only for lists.
const LONG: u64 = 20_000;

/// The order of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Newest first, with sub-agents below their parents.
    Newest,
    /// Newest first, with sub-agents and forks below the session they were made from.
    Tree,
}

/// Conditions on sessions beyond the store's filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Having {
    /// These lower-case words in the title, folder, agent or id.
    pub words: Vec<String>,
    /// Started before this time.
    pub until: Option<Timestamp>,
    /// Has a reverted end.
    pub reverted: bool,
    /// Has a compaction.
    pub compacted: bool,
    /// Has a file that its agent deleted.
    pub deleted: bool,
}

impl Having {
    /// Returns false if a session cannot match; decided without reading it.
    pub fn may_be_in(&self, listed: &Listed) -> bool {
        let Listed { name, card, .. } = listed;
        let (id, agent) = (name.id.as_str(), name.format.as_str());
        let texts = [card.title.as_deref(), card.folder.as_deref(), Some(id), Some(agent)];
        let text = texts.into_iter().flatten().collect::<Vec<_>>().join("\n").to_lowercase();
        self.until.is_none_or(|until| card.started < Some(until))
            && self.words.iter().all(|word| text.contains(word.as_str()))
    }

    fn is_in(&self, listed: &ListedSession) -> bool {
        (!self.reverted || listed.reverted > 0)
            && (!self.compacted || listed.compactions > 0)
            && (!self.deleted || listed.gone)
    }
}

/// Returns the sessions that match a filter, newest first, each with the session it was made from. Unreadable sessions are
/// reported separately.
pub fn list(
    archive: &Archive,
    filter: &SessionFilter,
    having: &Having,
    order: Order,
    asked: &Asked,
) -> Result<Listing, OpsError> {
    // With conditions that need a look at each session, the limit applies only after all were read.
    let limit = filter.limit.filter(|_| *having == Having::default()).unwrap_or(usize::MAX);
    let mut found = if let Some(since) = filter.since {
        active_since(archive, filter, since)?
    } else {
        let limit = limit.checked_add(1);
        listing::listed(archive.store(), &SessionFilter { limit, ..filter.clone() })?
    };
    found.listed.retain(|listed| having.may_be_in(listed));
    let mut more = found.listed.len().saturating_sub(limit);
    found.listed.truncate(limit);
    if more > 0 && filter.since.is_none() {
        let all: u64 = archive.store().tally(filter)?.values().sum();
        more = usize::try_from(all).unwrap_or(usize::MAX).saturating_sub(limit).max(more);
    }
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
    let keys: Vec<SessionKey> = found.listed.iter().map(|found| found.key).collect();
    let kept: BTreeMap<SessionKey, Glance> =
        archive.store().glances(&keys).unwrap_or_default().into_iter().collect();
    let (mut sessions, mut glances) = (Vec::new(), Vec::new());
    for found in found.listed {
        match known(archive, &found, kept.get(&found.key), asked) {
            Ok((known, fresh)) => {
                sessions.push(known);
                glances.extend(fresh.map(|fresh| (found.key, fresh)));
            }
            Err(error) => {
                damage(found.name.clone(), error)?;
                sessions.push(bare(found));
            }
        }
    }
    sessions.retain(|listed| having.is_in(listed));
    sessions.sort_by_key(|listed| Reverse(listed.card.active));
    let limit = filter.limit.unwrap_or(usize::MAX);
    more += sessions.len().saturating_sub(limit);
    sessions.truncate(limit);
    Ok(Listing { sessions: below_parents(sessions, order), damaged, more, glances })
}

/// Returns the cached glance of a session. Computes it now unless the session is very long.
pub fn known_glance(session: &At<'_>, asked: &Asked) -> Option<Glance> {
    let kept = session.store.glances(&[session.key]).ok()?.pop();
    let kept = kept.filter(|(_, kept)| kept.operations == session.state.operations());
    match kept {
        Some((_, kept)) => Some(kept),
        None if session.state.entries() > LONG => None,
        None => glance(session, asked).ok(),
    }
}

/// Caches glances for the next list.
pub fn keep_glances(archive: &Archive, glances: &[(SessionKey, Glance)]) -> Result<(), OpsError> {
    if !glances.is_empty() {
        change::cache(archive, |writing| writing.glance(glances))?;
    }
    Ok(())
}

/// Computes and caches the glances of imported sessions, except unreadable ones.
pub fn glance_all(archive: &Archive, sessions: &[Session], asked: &Asked) -> Result<(), OpsError> {
    let mut glances = Vec::new();
    for session in sessions {
        let made = archive.at(session).ok().and_then(|session| glance(&session, asked).ok());
        glances.extend(made.map(|glance| (session.key, glance)));
    }
    keep_glances(archive, &glances)
}

/// Returns the sessions active since a time, including those whose activity is only in the live file.
fn active_since(
    archive: &Archive,
    filter: &SessionFilter,
    since: Timestamp,
) -> Result<listing::Found, OpsError> {
    let store = archive.store();
    let whenever = SessionFilter { since: None, limit: None, ..filter.clone() };
    let mut found = listing::listed(store, &whenever)?;
    for listed in found.listed.iter_mut().filter(|listed| listed.card.active < Some(since)) {
        // A damaged session, or one that cannot be followed, keeps the time on its card.
        let session = Session::from_store(listed.key, listed.name.clone());
        let session = session.ok().and_then(|session| archive.at(&session).ok());
        if session.is_some_and(|session| follow(&session).unwrap_or(false)) {
            listed.card = store.card(listed.key)?;
        }
    }
    found.listed.retain(|listed| Some(since) <= listed.card.active);
    found.listed.sort_by_key(|listed| Reverse((listed.card.active, listed.key)));
    Ok(found)
}

/// Returns a session with nothing but its card.
fn bare(Listed { name, card, .. }: Listed) -> ListedSession {
    ListedSession { name, card, ..ListedSession::default() }
}

/// Returns all that lists show of a session, and its glance if it was computed now and can be cached.
fn known(
    archive: &Archive,
    listed: &Listed,
    kept: Option<&Glance>,
    asked: &Asked,
) -> Result<(ListedSession, Option<Glance>), OpsError> {
    let (store, bare) = (archive.store(), bare(listed.clone()));
    // The card is all that is known of a session in a format that only a newer version knows.
    let Ok(session) = Session::from_store(listed.key, listed.name.clone()) else {
        return Ok((bare, None));
    };
    let (mut session, mut card) = (archive.at(&session)?, bare.card);
    // If the live file cannot be followed, the store's state is listed.
    let has_grown = follow(&session).unwrap_or(false);
    if has_grown {
        (session, card) = (session.again()?, store.card(session.key)?);
    }
    let kept = kept.filter(|kept| kept.operations == session.state.operations()).cloned();
    let (seen, is_fresh) = match kept {
        Some(kept) => (kept, false),
        // A session that cannot be read completely is listed anyway.
        None => glance(&session, asked)
            .map_or_else(|_| (Glance::default(), false), |seen| (seen, !has_grown)),
    };
    let works_for_it = Tie { kind: TieKind::SubAgent, other: session.name.id.clone() };
    let fresh = is_fresh.then(|| seen.clone());
    let known = ListedSession {
        card,
        kin: kin(&session)?,
        branches: session.state.branches.len() as u64,
        reverted: seen.reverted,
        compactions: seen.compactions,
        tokens: seen.tokens,
        window: seen.window,
        context: seen.context,
        sub_agents: store.tied(&session.name.format, &works_for_it, Some(session.key))?.len()
            as u64,
        gone: deletion::lost(&session)?.is_some(),
        ..bare
    };
    Ok((known, fresh))
}

/// Moves sessions below the one they were made from, and sets their depth.
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
    // A stack: the next session is at the end.
    let mut left = below.remove(&None).unwrap_or_default();
    left.reverse();
    let mut ordered = Vec::new();
    loop {
        let Some(next) = left.pop() else {
            // Sessions that form a circle have no root; start anywhere.
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
