//! What to search for, and in which sessions: newest first, with sessions that share a history grouped.
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

/// A search is narrowed to the sessions that the index names only if they are fewer than one in this many of all sessions:
/// finding their relatives takes several queries for each.
const NARROW: u64 = 16;

/// What to search for, and where.
#[derive(Clone, Debug)]
pub struct Search {
    /// The pattern or words.
    pub sought: Sought,
    /// The sessions to search; sub-agents are always included.
    pub sessions: SessionFilter,
    /// Only this session.
    pub session: Option<Session>,
    /// Only this branch.
    pub branch: Option<String>,
    /// Only messages of these roles; all if empty.
    pub roles: Vec<Role>,
    /// Only these parts of the conversation; all if empty.
    pub parts: Vec<Part>,
    /// Only calls and results of this tool.
    pub tool: Option<String>,
    /// Only messages at this time or later.
    pub since: Option<Timestamp>,
    /// Only messages before this time.
    pub until: Option<Timestamp>,
    /// The number of context lines around each match.
    pub around: usize,
    /// The maximum number of texts.
    pub limit: Option<usize>,
    /// The maximum number of texts for each session.
    pub per_session: usize,
    /// Whether only the names of the sessions are wanted, not the number of matches.
    pub is_list: bool,
    /// Whether to search only what is not on the current path.
    pub is_reverted: bool,
    /// The order of the results; a pattern always finds the newest first.
    pub sort: Sort,
}

impl Search {
    /// Searches every session that is not hidden, newest first, without limits.
    pub fn of(sought: Sought) -> Self {
        Self {
            sought,
            sessions: SessionFilter::default(),
            session: None,
            branch: None,
            roles: Vec::new(),
            parts: Vec::new(),
            tool: None,
            since: None,
            until: None,
            around: 0,
            limit: None,
            per_session: usize::MAX,
            is_list: false,
            is_reverted: false,
            sort: Sort::Time,
        }
    }

    /// Returns true if the index alone cannot decide whether a message matches.
    pub(crate) fn tells_by_text(&self) -> bool {
        let Self { sought, branch, roles, parts, tool, since, until, .. } = self;
        let has_phrases = matches!(sought, Sought::Words(query) if query.has_phrases());
        has_phrases
            || !(roles.is_empty() && parts.is_empty())
            || branch.is_some()
            || tool.is_some()
            || since.or(*until).is_some()
    }

    /// Returns true if a session need not be searched past its first match.
    pub(crate) fn stops_at_first(&self) -> bool {
        self.is_list && self.tool.is_none() && self.branch.is_none()
    }

    /// Returns the seeker for the records of a session.
    pub(crate) fn seeker(&self) -> Seeker {
        let mut seeker = Seeker::new(self.sought.clone());
        seeker.roles.clone_from(&self.roles);
        seeker.parts.clone_from(&self.parts);
        (seeker.since, seeker.until, seeker.around) = (self.since, self.until, self.around);
        seeker
    }

    /// Returns the sessions to search. `found` contains the sessions with matches in the index. An index that cannot be read is
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
            // A sub-agent does not have the branches of its parent.
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

/// Opens the word index of the store, if there is a usable one.
pub(crate) fn opened(archive: &Archive) -> Option<Index> {
    Index::open(archive.root()?, archive.store(), &Exclude::default().digest())
}

/// Returns the sessions to which an index narrows a search, with all that share a history with them, or `None` if they are too
/// many. If this cannot be decided, all sessions are searched, which also reports damaged ones.
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

/// Groups sessions that share a history, ordered by the newest session of each group.
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

/// Returns these sessions and all that [`groups`] groups with them.
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

/// Returns the root of a member in the union-find forest.
fn root(into: &[usize], mut at: usize) -> usize {
    while let Some(&next) = into.get(at).filter(|next| **next != at) {
        at = next;
    }
    at
}
