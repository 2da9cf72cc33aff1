//! `search`: what was said in any session, by its words. Sessions that share a history are searched together, and what they
//! share is found once.
//!
//! ```text
//! groups     of sessions, the newest first       A C     B   D
//! pieces     of the work, which threads share    a group is told when all of its pieces are done, or when it is enough
//! ranked     the newest texts are gathered first, of the newest sessions if these have enough, and the best of them told
//! ```
//!
//! Invariant: what is told does not depend on whether an index answers, nor on the number of threads.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{
    model::Timestamp,
    ops::{
        OpsError,
        best::{InGroup, best},
        hits::{Text, hits, texts},
        members::{Member, family, members, or_named},
        pieces::{Asked, Part, Piece, asked, likely_of, pieces},
        several::Readers,
        sought::{Search, groups, with_kin},
    },
    report::{Counted, Hit, Searched, UnreadSession},
    search::{Found, Index, Likely, Seeker, Sort},
    store::{Reach, SessionFilter, SessionKey, Store, StoreError},
    sync::{Archive, may_be_behind},
};

/// How many of the newest texts are ranked, if no more are wanted: where more have the words, the newest of them are meant.
const RANKED: usize = 100;
/// One of how many sessions may be searched at most for a search to be narrowed to them: to find out which share a history
/// with them takes a few questions for each.
const NARROW: u64 = 16;
/// How many of the newest sessions are searched before all are listed.
const NEWEST: usize = 200;

/// What was found in a piece.
struct Answer<T> {
    found: Vec<(usize, Found)>,
    /// The same as it is told, if the piece is all of a group.
    told: Option<Vec<T>>,
    damaged: u64,
    sessions: Vec<UnreadSession>,
}

impl<T> Default for Answer<T> {
    fn default() -> Self {
        Self { found: Vec::new(), told: None, damaged: 0, sessions: Vec::new() }
    }
}

/// Searches, and hands over what is found.
pub fn search<E: From<OpsError>>(
    archive: &Archive,
    search: &Search,
    mut each: impl FnMut(&Hit) -> Result<(), E>,
) -> Result<Searched, E> {
    let mut searched = Searched::default();
    let mut readers = Readers::of(archive.store());
    let wanted = search.limit.unwrap_or(usize::MAX);
    if search.sort == Sort::Time {
        let work = Work::prepare(archive, search, ask(archive, search), &mut searched)?;
        let tell = |store: &dyn Store, group: usize, texts: Vec<Text>, damaged: &mut Vec<_>| {
            let hits = hits(store, work.members(group), texts, damaged)?;
            Ok(hits.into_iter().flatten().collect())
        };
        newest(
            &mut readers,
            &work,
            wanted,
            &mut searched,
            &tell,
            |hit: Hit| -> Result<usize, E> {
                each(&hit)?;
                Ok(hit.lines.len())
            },
        )?;
        return Ok(searched);
    }
    let ranked = wanted.max(RANKED);
    let mut gather = |work: &Work<'_>, searched: &mut Searched| {
        let mut texts: Vec<InGroup> = Vec::new();
        let tell = |_: &dyn Store, group: usize, texts: Vec<Text>, _: &mut Vec<_>| {
            Ok(texts.into_iter().map(|text| (group, text)).collect())
        };
        newest(&mut readers, work, ranked, searched, &tell, |text| {
            texts.push(text);
            Ok::<_, E>(0)
        })?;
        Ok::<_, E>(texts)
    };
    let mut answer = ask(archive, search);
    let mut begun = None;
    if let Some((sessions, behind)) = beginning(archive, search, &mut answer) {
        let work = Work::over(archive, search, answer, &sessions, Some(behind), &mut searched)?;
        let texts = gather(&work, &mut searched)?;
        begun = (texts.len() >= ranked).then_some((work, texts));
        answer = if begun.is_none() { ask(archive, search) } else { None };
    }
    let (work, texts) = if let Some(begun) = begun {
        searched.has_more = true;
        begun
    } else {
        searched = Searched::default();
        let work = Work::prepare(archive, search, answer, &mut searched)?;
        let texts = gather(&work, &mut searched)?;
        (work, texts)
    };
    searched.has_more |= texts.len() > wanted;
    let mut sessions = Vec::new();
    for hit in best(&mut readers, &work.groups, &texts, wanted, &mut sessions)? {
        searched.lines += hit.lines.len() as u64;
        each(&hit)?;
    }
    UnreadSession::add(sessions, &mut searched.unread);
    Ok(searched)
}

/// Searches, and hands over the newest texts as they are told, up to the number wanted; of each how many lines it has is given
/// back.
fn newest<T: Send, E: From<OpsError>>(
    readers: &mut Readers<'_>,
    work: &Work<'_>,
    wanted: usize,
    searched: &mut Searched,
    tell: &Tell<'_, T>,
    mut each: impl FnMut(T) -> Result<usize, E>,
) -> Result<(), E> {
    let mut told = 0;
    // One more than is wanted tells whether there are more.
    let texts = wanted.saturating_add(1);
    work.run(readers, texts, searched, tell, &mut |mut found: Vec<T>| {
        let more = found.len() > wanted - told;
        found.truncate(wanted - told);
        told += found.len();
        let mut lines = 0;
        for text in found {
            lines += each(text)? as u64;
        }
        Ok(Taken { lines, more, full: told >= wanted })
    })
}

/// Searches, and hands over how many lines each session has; those that sessions share count for the newest one.
pub fn count<E: From<OpsError>>(
    archive: &Archive,
    search: &Search,
    mut each: impl FnMut(&Counted) -> Result<(), E>,
) -> Result<Searched, E> {
    let mut searched = Searched::default();
    let mut readers = Readers::of(archive.store());
    let work = Work::prepare(archive, search, ask(archive, search), &mut searched)?;
    let wanted = search.limit.unwrap_or(usize::MAX);
    let mut told = 0;
    let count = |_: &dyn Store, group: usize, texts: Vec<Text>, _: &mut Vec<_>| {
        Ok(counts(work.members(group), &texts))
    };
    work.run::<_, E>(&mut readers, usize::MAX, &mut searched, &count, &mut |mut counts| {
        let more = counts.len() > wanted - told;
        counts.truncate(wanted - told);
        told += counts.len();
        for counted in &counts {
            each(counted)?;
        }
        let lines = counts.iter().map(|counted| counted.lines).sum();
        Ok(Taken { lines, more, full: told >= wanted })
    })?;
    Ok(searched)
}

/// Returns how many lines of texts each session has.
fn counts(members: &[Member], texts: &[Text]) -> Vec<Counted> {
    let mut counts: Vec<Counted> = Vec::new();
    for Text { found, at } in texts {
        let newest = at.iter().map(|(n, _)| *n).min();
        let Some(Member { session, listed, .. }) = newest.and_then(|n| members.get(n)) else {
            continue;
        };
        let lines = found.lines.len() as u64;
        if let Some(counted) = counts.iter_mut().find(|it| it.session == session.name) {
            counted.lines += lines;
        } else {
            let (session, title) = (session.name.clone(), listed.card.title.clone());
            counts.push(Counted { session, title, lines });
        }
    }
    counts
}

/// What was taken of a group.
#[derive(Default)]
struct Taken {
    /// How many lines were handed on.
    lines: u64,
    /// Whether there were more.
    more: bool,
    /// Whether no more are wanted.
    full: bool,
}

/// Makes of a group's texts what is told of them.
type Tell<'t, T> = dyn Fn(&dyn Store, usize, Vec<Text>, &mut Vec<UnreadSession>) -> Result<Vec<T>, OpsError>
    + Sync
    + 't;

/// Takes what was found in a group.
type Take<'t, T, E> = dyn FnMut(Vec<T>) -> Result<Taken, E> + 't;

/// An index that was asked, and what it answered.
type FromIndex = (Asked, Likely);

/// The work of a search: in which sessions, piece by piece, and what an index says of them.
struct Work<'a> {
    search: &'a Search,
    seeker: Seeker,
    asked: Mutex<Option<Asked>>,
    groups: Vec<Vec<Member>>,
    pieces: Vec<Piece>,
}

impl<'a> Work<'a> {
    /// Prepares to search all sessions that are meant.
    fn prepare(
        archive: &Archive,
        search: &'a Search,
        mut answer: Option<FromIndex>,
        searched: &mut Searched,
    ) -> Result<Self, OpsError> {
        let mut sessions = search.sessions.clone();
        if let (Some((asked, likely)), None) = (&answer, &search.session) {
            sessions.only = narrow(archive, &asked.index, likely).unwrap_or_default();
        }
        let only = sessions.only.as_ref();
        if answer.as_mut().is_none_or(|(asked, _)| asked.index.reach(only).is_err()) {
            (answer, sessions.only) = (None, None);
        }
        Self::over(archive, search, answer, &sessions, None, searched)
    }

    /// Prepares to search these sessions; those groups only that are newer than `behind`, if it is given.
    fn over(
        archive: &Archive,
        search: &'a Search,
        answer: Option<FromIndex>,
        sessions: &SessionFilter,
        behind: Option<Timestamp>,
        searched: &mut Searched,
    ) -> Result<Self, OpsError> {
        let (asked, likely) = answer.unzip();
        let mut seeker = Seeker::new(search.pattern.clone());
        seeker.roles.clone_from(&search.roles);
        (seeker.since, seeker.until, seeker.around) = (search.since, search.until, search.around);
        let index = asked.as_ref().map(|asked| &asked.index);
        searched.is_indexed = index.is_some_and(Index::is_whole);
        if let (Some(session), Some(branch)) = (&search.session, &search.branch) {
            let state = archive.store().state(session.key)?;
            if !state.branches.contains_key(branch) {
                return Err(OpsError::no_branch(&state, branch));
            }
        }
        let named = search.session.as_ref().map(|session| match search.branch {
            // A sub-agent has no branch of its session.
            Some(_) => Ok(vec![session.clone()]),
            None => family(archive.store(), session),
        });
        let named = named.transpose()?;
        let about = (sessions, named.as_deref());
        let members = members(archive, about, index, &mut searched.unread)?;
        let mut groups = groups(members);
        groups.retain(|members| {
            let newest = members.iter().filter_map(|member| member.listed.card.active).max();
            behind.is_none() || newest > behind
        });
        let pieces = pieces(&groups, likely);
        Ok(Self { search, seeker, asked: Mutex::new(asked), groups, pieces })
    }

    /// Returns the sessions of a group.
    fn members(&self, group: usize) -> &[Member] {
        self.groups.get(group).map(Vec::as_slice).unwrap_or_default()
    }

    /// Searches group by group; one that holds as many texts as are wanted at all is not searched to its end.
    fn run<T: Send, E: From<OpsError>>(
        &self,
        readers: &mut Readers<'_>,
        wanted: usize,
        searched: &mut Searched,
        tell: &Tell<'_, T>,
        take: &mut Take<'_, T, E>,
    ) -> Result<(), E> {
        let (laid, is_enough) = (readers.laid(), AtomicBool::new(false));
        let work = |store: &dyn Store, n: usize| -> Result<Answer<T>, OpsError> {
            let piece = self.pieces.get(n).filter(|_| !is_enough.load(Ordering::Relaxed));
            piece.map_or_else(
                || Ok(Answer::default()),
                |piece| self.piece(store, piece, (wanted, tell)),
            )
        };
        let (mut n, mut due, mut gathered, mut failed) = (0, wanted, Vec::new(), None);
        let mut sort = |answer: Result<Answer<T>, OpsError>| {
            let piece = self.pieces.get(n);
            n += 1;
            let Some(Piece { group, .. }) = piece.filter(|_| failed.is_none()) else { return };
            let mut done = None;
            match answer {
                Ok(answer) => {
                    gathered.extend(answer.found);
                    searched.damaged += answer.damaged;
                    UnreadSession::add(answer.sessions, &mut searched.unread);
                    done = answer.told;
                }
                Err(error) => failed = Some(error.into()),
            }
            let is_last = self.pieces.get(n).is_none_or(|next| next.group != *group);
            // What forks share has all of its places only when all of them were searched.
            let may_do = self.members(*group).len() == 1 && gathered.len() >= due;
            if !(is_last || may_do) || failed.is_some() || is_enough.load(Ordering::Relaxed) {
                return;
            }
            let told = done.map_or_else(
                || {
                    let found =
                        if is_last { std::mem::take(&mut gathered) } else { gathered.clone() };
                    let found = self.grown(laid, *group, found, searched)?;
                    let mut sessions = Vec::new();
                    let told = self.told(laid, (*group, found), (wanted, tell), &mut sessions);
                    UnreadSession::add(sessions, &mut searched.unread);
                    told
                },
                Ok,
            );
            due = if is_last { wanted } else { gathered.len().saturating_mul(2) };
            if !is_last && told.as_ref().is_ok_and(|told| told.len() < wanted) {
                return;
            }
            let take =
                |told: Vec<T>| if told.is_empty() { Ok(Taken::default()) } else { take(told) };
            match told.map_err(E::from).and_then(take) {
                Ok(Taken { lines, more, full }) => {
                    searched.lines += lines;
                    // Whether the sessions that are left hold more is not known.
                    searched.has_more |= more || full && n < self.pieces.len();
                    if full {
                        is_enough.store(true, Ordering::Relaxed);
                    }
                }
                Err(error) => failed = Some(error),
            }
            if failed.is_some() {
                is_enough.store(true, Ordering::Relaxed);
            }
        };
        readers.in_order(self.pieces.len(), &work, &mut sort);
        failed.map_or(Ok(()), Err)
    }

    /// Searches a piece; all of a group is told at once.
    fn piece<T>(
        &self,
        store: &dyn Store,
        Piece { group, member, part }: &Piece,
        telling: (usize, &Tell<'_, T>),
    ) -> Result<Answer<T>, OpsError> {
        let mut answer = Answer::default();
        if let Part::Group(parts) = part {
            for (member, parts) in parts.iter().enumerate() {
                for part in parts {
                    self.look(store, *group, (member, part), &mut answer)?;
                }
            }
            let found = (*group, std::mem::take(&mut answer.found));
            answer.told = Some(self.told(store, found, telling, &mut answer.sessions)?);
        } else {
            self.look(store, *group, (*member, part), &mut answer)?;
        }
        Ok(answer)
    }

    /// Returns what is told of what was found in a group.
    fn told<T>(
        &self,
        store: &dyn Store,
        (group, found): (usize, Vec<(usize, Found)>),
        (wanted, tell): (usize, &Tell<'_, T>),
        sessions: &mut Vec<UnreadSession>,
    ) -> Result<Vec<T>, OpsError> {
        let texts = texts(store, self.search, self.members(group), found, wanted, sessions)?;
        tell(store, group, texts, sessions)
    }

    /// Looks through a part of a session; what cannot be read of one that is damaged is left out, and the session is named.
    fn look<T>(
        &self,
        store: &dyn Store,
        group: usize,
        (member, part): (usize, &Part),
        answer: &mut Answer<T>,
    ) -> Result<(), OpsError> {
        let Some(Member { session, listed, .. }) = self.members(group).get(member) else {
            return Ok(());
        };
        let about = (session, listed.card.active);
        let each = &mut |it| answer.found.push((member, it));
        let seeker = &self.seeker;
        let damaged = match part {
            Part::Range(range) if range.is_empty() => Ok(Vec::new()),
            Part::Range(range) => seeker.scan(store, about, range.clone(), each),
            Part::Likely(entries) => seeker.try_each(store, about, entries, each),
            Part::Asked(range) => match likely_of(&self.asked, session, range) {
                Some(entries) => seeker.try_each(store, about, &entries, each),
                None => seeker.scan(store, about, range.clone(), each),
            },
            Part::Group(_) => Ok(Vec::new()),
        };
        let damaged = or_named(damaged.map_err(OpsError::from), session, &mut answer.sessions)?;
        answer.damaged += damaged.map_or(0, |damaged| damaged.len() as u64);
        Ok(())
    }

    /// Searches also what live files hold beyond the store.
    fn grown(
        &self,
        laid: &dyn Store,
        group: usize,
        mut found: Vec<(usize, Found)>,
        searched: &mut Searched,
    ) -> Result<Vec<(usize, Found)>, OpsError> {
        let members = self.members(group).iter().enumerate();
        for (n, Member { session, held, listed, .. }) in
            members.filter(|(_, member)| member.is_grown)
        {
            let end = laid.state(session.key)?.next_entry();
            if *held < end {
                let each = &mut |it| found.push((n, it));
                let about = (session, listed.card.active);
                let damaged = self.seeker.scan(laid, about, *held..end, each)?;
                searched.damaged += damaged.len() as u64;
            }
        }
        Ok(found)
    }
}

/// Asks the index, if there is one that can tell.
fn ask(archive: &Archive, search: &Search) -> Option<FromIndex> {
    let asked = asked(archive, search)?;
    let is_all_wanted = search.limit.is_none() || search.session.is_some();
    // An index that cannot be read says nothing.
    let likely = asked.index.likely(&asked.question, is_all_wanted).ok()?;
    Some((asked, likely))
}

/// Returns the newest sessions, with all that may be newer than they are known to be, and behind which time others follow that
/// are not among them; nothing, if all may as well be listed, or if something cannot be read, which a search of all names.
fn beginning(
    archive: &Archive,
    search: &Search,
    answer: &mut Option<FromIndex>,
) -> Option<(SessionFilter, Timestamp)> {
    let (store, Some((asked, Likely::Many))) = (archive.store(), answer) else { return None };
    let all: u64 = store.totals().ok()?.iter().map(|total| total.sessions).sum();
    if all < NARROW * NEWEST as u64 {
        return None;
    }
    let mut sessions = search.sessions.clone();
    let newest = SessionFilter { limit: Some(NEWEST), sub_agents: true, ..sessions.clone() };
    let newest = store.sessions(&newest).ok()?;
    let last = newest.last().filter(|_| newest.len() == NEWEST)?;
    let is_live = |reach: &Reach| may_be_behind(archive, &reach.mark);
    let mut only = asked.index.behind(&is_live).ok()??;
    only.extend(newest.iter().map(|listed| listed.key));
    if only.len() as u64 * NARROW >= all {
        return None;
    }
    let only = with_kin(store, only).ok()?;
    asked.index.reach(Some(&only)).ok()?;
    sessions.only = Some(only);
    Some((sessions, last.card.active?))
}

/// Returns the sessions to which a search is narrowed by an index, with all that share a history with them; nothing, if they
/// are many. Where that cannot be told, all are looked at, which names what is damaged.
fn narrow(
    archive: &Archive,
    index: &Index,
    likely: &Likely,
) -> Result<Option<BTreeSet<SessionKey>>, StoreError> {
    let store = archive.store();
    let Some(narrow) = index.narrow(likely, &|reach| may_be_behind(archive, &reach.mark))? else {
        return Ok(None);
    };
    let all: u64 = store.totals()?.iter().map(|total| total.sessions).sum();
    if narrow.len() as u64 * NARROW >= all {
        return Ok(None);
    }
    with_kin(store, narrow).map(Some)
}
