//! What is searched for, and the sessions in which: the newest first, those that share a history together.
//!
//! ```text
//! sessions   newest first      A   B   C   D        C is a fork of A
//! groups                       A C     B   D
//! ```

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    archive::Archive,
    files::may_be_behind,
    model::{Role, SessionName, Tie, TieKind, Timestamp},
    report::Searched,
    search::{Index, Part, Seeker, Sort, Sought},
    session::Session,
    settings::Exclude,
    store::{Listed, SessionFilter, SessionKey, Store, StoreError},
    verbs::{
        OpsError,
        find::members::{Member, family, members},
    },
};

/// One of how many sessions may be searched at most for a search to be narrowed to them: to find out which share a history
/// with them takes a few questions for each.
const NARROW: u64 = 16;

/// What is searched for, and where.
#[derive(Clone, Debug)]
pub struct Search {
    /// What is looked for.
    pub sought: Sought,
    /// In which sessions; sub-agents are always among them.
    pub sessions: SessionFilter,
    /// In this one only.
    pub session: Option<Session>,
    /// On this branch only.
    pub branch: Option<String>,
    /// Said by these only; by anyone, if it is empty.
    pub roles: Vec<Role>,
    /// In these parts of the conversation only; in any, if it is empty.
    pub parts: Vec<Part>,
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
    /// How many of a session.
    pub per_session: usize,
    /// Whether only the sessions are wanted, not how much each has.
    pub is_list: bool,
    /// Only what is not on the current path.
    pub is_reverted: bool,
    /// In which order; a pattern finds the newest first.
    pub sort: Sort,
}

impl Search {
    /// Returns whether the index cannot tell which messages are meant.
    pub(crate) fn tells_by_text(&self) -> bool {
        let Self { sought, branch, roles, parts, tool, since, until, .. } = self;
        let has_phrases = matches!(sought, Sought::Words(query) if query.has_phrases());
        has_phrases
            || !(roles.is_empty() && parts.is_empty())
            || branch.is_some()
            || tool.is_some()
            || since.or(*until).is_some()
    }

    /// Returns whether a session needs not be searched behind its first match.
    pub(crate) fn stops_at_first(&self) -> bool {
        self.is_list && self.tool.is_none() && self.branch.is_none()
    }

    /// Returns what looks for it in the records of a session.
    pub(crate) fn seeker(&self) -> Seeker {
        let mut seeker = Seeker::new(self.sought.clone());
        seeker.roles.clone_from(&self.roles);
        seeker.parts.clone_from(&self.parts);
        (seeker.since, seeker.until, seeker.around) = (self.since, self.until, self.around);
        seeker
    }

    /// Returns the sessions to search. `found` are those in which the index found something; an index that cannot be read is
    /// dropped.
    pub(crate) fn members(
        &self,
        archive: &Archive,
        index: &mut Option<Index>,
        found: impl Iterator<Item = SessionKey>,
        searched: &mut Searched,
    ) -> Result<Vec<Member>, OpsError> {
        if let (Some(session), Some(branch)) = (&self.session, &self.branch) {
            let state = archive.store().state(session.key)?;
            if !state.branches.contains_key(branch) {
                return Err(OpsError::no_branch(&state, branch));
            }
        }
        let named = self.session.as_ref().map(|session| match self.branch {
            // A sub-agent has no branch of its session.
            Some(_) => Ok(vec![session.clone()]),
            None => family(archive.store(), session),
        });
        let named = named.transpose()?;
        let mut sessions = self.sessions.clone();
        if let (Some(index), None) = (&index, &named) {
            sessions.only = narrow(archive, index, found).unwrap_or_default();
        }
        let only = sessions.only.as_ref();
        if index.as_mut().is_none_or(|index| index.reach(only).is_err()) {
            (*index, sessions.only) = (None, None);
        }
        searched.is_indexed = index.as_ref().is_some_and(Index::is_whole);
        members(archive, &sessions, named.as_deref(), index.as_ref(), &mut searched.unread)
    }
}

/// Opens the store's index of words, if there is one that can tell.
pub(crate) fn opened(archive: &Archive) -> Option<Index> {
    Index::open(archive.root()?, archive.store(), &Exclude::default().digest())
}

/// Returns the sessions to which a search is narrowed by an index, with all that share a history with them; nothing, if they
/// are many. Where that cannot be told, all are looked at, which names what is damaged.
fn narrow(
    archive: &Archive,
    index: &Index,
    found: impl Iterator<Item = SessionKey>,
) -> Result<Option<BTreeSet<SessionKey>>, StoreError> {
    let store = archive.store();
    let Some(mut narrow) = index.behind(&|reach| may_be_behind(archive, &reach.mark))? else {
        return Ok(None);
    };
    narrow.extend(found);
    let all: u64 = store.totals()?.iter().map(|total| total.sessions).sum();
    if narrow.len() as u64 * NARROW >= all {
        return Ok(None);
    }
    with_kin(store, narrow).map(Some)
}

/// Puts sessions together that share a history, in the order of the newest of each.
pub(crate) fn groups(members: Vec<Member>) -> Vec<Vec<Member>> {
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
pub(crate) fn with_kin(
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
