//! What is searched for, and the sessions in which: the newest first, those that share a history together.
//!
//! ```text
//! sessions   newest first      A   B   C   D        C is a fork of A
//! groups                       A C     B   D
//! ```

use std::{cmp::Reverse, collections::BTreeMap};

use crate::{
    model::{EntryNumber, Role, TieKind, Timestamp},
    ops::OpsError,
    report::DamagedSession,
    search::{Index, Pattern, Sort},
    session::{Session, listing},
    store::{Listed, Reach, SessionFilter, Store, StoreError},
    sync::{Archive, follow, may_be_behind},
};

/// What is searched for, and where.
#[derive(Clone, Debug)]
pub struct Search {
    /// What is looked for in a line.
    pub pattern: Pattern,
    /// In which sessions; sub-agents are always among them.
    pub sessions: SessionFilter,
    /// In this one only.
    pub session: Option<Session>,
    /// On this branch only.
    pub branch: Option<String>,
    /// Said by these only; by anyone, if it is empty.
    pub roles: Vec<Role>,
    /// In calls and answers of this tool only.
    pub tool: Option<String>,
    /// Said then or later.
    pub since: Option<Timestamp>,
    /// Said before.
    pub until: Option<Timestamp>,
    /// How many lines around each match are wanted.
    pub around: usize,
    /// How many texts are wanted.
    pub limit: Option<usize>,
    /// In which order.
    pub sort: Sort,
}

/// A session that is searched.
pub(super) struct Member {
    pub(super) session: Session,
    pub(super) listed: Listed,
    /// The first entry that the store does not hold.
    pub(super) held: EntryNumber,
    /// The first entry that the index of words does not have.
    pub(super) indexed: EntryNumber,
    /// Whether its live file holds more.
    pub(super) is_grown: bool,
}

/// Returns the sessions that are searched, the newest first; what their live files hold beyond the store is laid over it.
pub(super) fn members(
    archive: &Archive,
    search: &Search,
    index: Option<&Index>,
    damaged: &mut Vec<DamagedSession>,
) -> Result<Vec<Member>, OpsError> {
    let store = archive.store();
    let filter = SessionFilter { sub_agents: true, limit: None, ..search.sessions.clone() };
    let found = if let Some(Session { key, name, .. }) = &search.session {
        vec![Listed { key: *key, name: name.clone(), card: store.card(*key)? }]
    } else {
        let found = listing::listed(store, &filter)?;
        damaged.extend(found.damaged.into_iter().map(|(name, error)| {
            let problem = error.to_string();
            DamagedSession { name, problem }
        }));
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
                let problem = error.to_string();
                damaged.push(DamagedSession { name: session.name, problem });
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
    members.sort_by_key(|member| Reverse(member.listed.card.active));
    Ok(members)
}

/// Puts sessions together that share a history, in the order of the newest of each.
pub(super) fn groups(
    store: &dyn Store,
    members: Vec<Member>,
) -> Result<Vec<Vec<Member>>, OpsError> {
    let mut of: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut into: Vec<usize> = Vec::with_capacity(members.len());
    for (n, Member { session, .. }) in members.iter().enumerate() {
        let format = || session.name.format.clone();
        let mut keys = vec![(format(), session.name.id.clone())];
        for tie in store.ties(session.key)?.into_iter().flat_map(|(_, ties)| ties) {
            if tie.kind != TieKind::SubAgent {
                keys.push((format(), tie.other));
            }
        }
        into.push(n);
        for key in keys {
            let met = *of.entry(key).or_insert(n);
            let (one, other) = (root(&into, met), root(&into, n));
            if let Some(root) = into.get_mut(one.max(other)) {
                *root = one.min(other);
            }
        }
    }
    let mut groups: BTreeMap<usize, Vec<Member>> = BTreeMap::new();
    for (n, member) in members.into_iter().enumerate() {
        groups.entry(root(&into, n)).or_default().push(member);
    }
    Ok(groups.into_values().collect())
}

/// Returns the first of those that were put together with one.
fn root(into: &[usize], mut at: usize) -> usize {
    while let Some(&next) = into.get(at).filter(|next| **next != at) {
        at = next;
    }
    at
}
