//! What is searched for, and the sessions in which: the newest first, those that share a history together.
//!
//! ```text
//! sessions   newest first      A   B   C   D        C is a fork of A
//! groups                       A C     B   D
//! ```

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    model::{Role, SessionName, Tie, TieKind, Timestamp},
    ops::members::Member,
    search::{Pattern, Sort},
    session::Session,
    store::{Listed, SessionFilter, SessionKey, Store, StoreError},
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

/// Puts sessions together that share a history, in the order of the newest of each.
pub(super) fn groups(members: Vec<Member>) -> Vec<Vec<Member>> {
    let mut of: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut into: Vec<usize> = Vec::with_capacity(members.len());
    for (n, Member { session, ties, .. }) in members.iter().enumerate() {
        let format = || session.name.format.clone();
        let mut keys = vec![(format(), session.name.id.clone())];
        let others = ties.iter().filter(|tie| tie.kind != TieKind::SubAgent);
        keys.extend(others.map(|tie| (format(), tie.other.clone())));
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
    groups.into_values().collect()
}

/// Returns these sessions and all that [`groups`] puts together with them.
pub(super) fn with_kin(
    store: &dyn Store,
    sessions: BTreeSet<SessionKey>,
) -> Result<BTreeSet<SessionKey>, StoreError> {
    let (mut all, mut fresh) = (sessions.clone(), sessions);
    let mut met: BTreeSet<SessionName> = BTreeSet::new();
    while !fresh.is_empty() {
        let only = Some(fresh);
        let filter = SessionFilter { only, hidden: true, sub_agents: true, ..Default::default() };
        let mut kin = BTreeSet::new();
        for Listed { key, name: SessionName { format, id }, .. } in store.sessions(&filter)? {
            let ties = store.ties(key)?.into_iter().flat_map(|(_, ties)| ties);
            let others = ties.filter(|tie| tie.kind != TieKind::SubAgent).map(|tie| tie.other);
            for id in std::iter::once(id).chain(others) {
                let name = SessionName { format: format.clone(), id };
                if met.contains(&name) {
                    continue;
                }
                kin.extend(store.session(&name)?);
                for kind in [TieKind::Beginning, TieKind::Fork, TieKind::Continuation] {
                    let tie = Tie { kind, other: name.id.clone() };
                    kin.extend(store.tied(&format, &tie, None)?.into_iter().map(|(key, _)| key));
                }
                met.insert(name);
            }
        }
        fresh = kin.difference(&all).copied().collect();
        all.extend(&fresh);
    }
    Ok(all)
}

/// Returns the first of those that were put together with one.
fn root(into: &[usize], mut at: usize) -> usize {
    while let Some(&next) = into.get(at).filter(|next| **next != at) {
        at = next;
    }
    at
}
