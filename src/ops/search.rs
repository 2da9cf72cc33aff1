//! `search`: what was said in any session, by its words. Sessions that share a history are searched together, and what they
//! share is found once.
//!
//! ```text
//! groups     of sessions, the newest first       A C     B   D
//! pieces     of the work, which threads share    a group is told when all of its pieces are done, or when it is enough
//! ranked     the newest texts are gathered first, and the best of them told
//! ```
//!
//! Invariant: what is told does not depend on whether an index answers, nor on the number of threads.

use std::{
    cmp::Reverse,
    ops::Range,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{
    model::Role,
    ops::{
        OpsError,
        hits::{Text, hits, texts},
        members::{Member, members, or_named},
        pieces::{Asked, Part, Piece, asked, likely_of, pieces},
        several::in_order,
        sought::{Search, groups},
    },
    report::{Counted, DamagedSession, Hit, HitLine, Searched},
    search::{Found, Seeker, Sort, Standing, ranks},
    session::Stand,
    store::Store,
    sync::Archive,
};

/// How many of the newest texts are ranked, if no more are wanted: where more have the words, the newest of them are meant.
const RANKED: usize = 100;

/// What was found in a piece.
struct Answer<T> {
    found: Vec<(usize, Found)>,
    /// The same as it is told, if the piece is all of a group.
    told: Option<Vec<T>>,
    damaged: u64,
    sessions: Vec<DamagedSession>,
}

/// Searches, and hands over what is found.
pub fn search<E: From<OpsError>>(
    archive: &Archive,
    search: &Search,
    mut each: impl FnMut(&Hit) -> Result<(), E>,
) -> Result<Searched, E> {
    let wanted = search.limit.unwrap_or(usize::MAX);
    if search.sort == Sort::Time {
        return newest(archive, search, wanted, each);
    }
    let mut hits: Vec<Hit> = Vec::new();
    let mut searched = newest(archive, search, wanted.max(RANKED), |hit| {
        hits.push(hit.clone());
        Ok::<_, E>(())
    })?;
    searched.has_more |= hits.len() > wanted;
    searched.lines = 0;
    let ranks = ranks(&hits.iter().map(standing).collect::<Vec<_>>());
    let mut ranked: Vec<(u64, &Hit)> = ranks.into_iter().zip(&hits).collect();
    ranked.sort_by_key(|(rank, hit)| Reverse((*rank, hit.time)));
    for (_, hit) in ranked.into_iter().take(wanted) {
        searched.lines += hit.lines.len() as u64;
        each(hit)?;
    }
    Ok(searched)
}

/// Returns what the rank of a hit is made of.
fn standing(hit: &Hit) -> Standing<'_> {
    let stand = hit.places.first().map(|place| &place.stand);
    Standing {
        lines: hit.lines.iter().map(matched).collect(),
        role: hit.role,
        is_of_tool: hit.tool.is_some() || hit.role == Role::Tool,
        is_current: matches!(stand, Some(Stand::Current | Stand::Compacted)),
        time: hit.time,
    }
}

/// Returns a line and where its matches are.
fn matched(line: &HitLine) -> (&str, &[Range<usize>]) {
    (&line.line, &line.matches)
}

/// Searches, and hands over the newest texts, as many as are wanted.
fn newest<E: From<OpsError>>(
    archive: &Archive,
    search: &Search,
    wanted: usize,
    mut each: impl FnMut(&Hit) -> Result<(), E>,
) -> Result<Searched, E> {
    let mut searched = Searched::default();
    let mut told = 0;
    // One more than is wanted tells whether there are more.
    let texts = wanted.saturating_add(1);
    run::<_, E>(archive, search, texts, &mut searched, &hits, &mut |mut hits: Vec<Hit>| {
        let more = hits.len() > wanted - told;
        hits.truncate(wanted - told);
        told += hits.len();
        for hit in &hits {
            each(hit)?;
        }
        let lines = hits.iter().map(|hit| hit.lines.len() as u64).sum();
        Ok(Taken { lines, more, full: told >= wanted })
    })?;
    Ok(searched)
}

/// Searches, and hands over how many lines each session has; those that sessions share count for the newest one.
pub fn count<E: From<OpsError>>(
    archive: &Archive,
    search: &Search,
    mut each: impl FnMut(&Counted) -> Result<(), E>,
) -> Result<Searched, E> {
    let mut searched = Searched::default();
    let wanted = search.limit.unwrap_or(usize::MAX);
    let mut told = 0;
    let count = |_: &dyn Store, members: &[Member], texts: Vec<Text>, _: &mut Vec<_>| {
        Ok(counts(members, &texts))
    };
    run::<_, E>(archive, search, usize::MAX, &mut searched, &count, &mut |mut counts| {
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
type Tell<'t, T> = dyn Fn(&dyn Store, &[Member], Vec<Text>, &mut Vec<DamagedSession>) -> Result<Vec<T>, OpsError>
    + Sync
    + 't;

/// Takes what was found in a group.
type Take<'t, T, E> = dyn FnMut(Vec<T>) -> Result<Taken, E> + 't;

/// Searches group by group; one that holds as many texts as are wanted at all is not searched to its end.
fn run<T: Send, E: From<OpsError>>(
    archive: &Archive,
    search: &Search,
    wanted: usize,
    searched: &mut Searched,
    tell: &Tell<'_, T>,
    take: &mut Take<'_, T, E>,
) -> Result<(), E> {
    let mut seeker = Seeker::new(search.pattern.clone());
    seeker.roles.clone_from(&search.roles);
    (seeker.since, seeker.until, seeker.around) = (search.since, search.until, search.around);
    // Threads read what the store holds, and what live files hold beyond it is laid over it and searched here.
    let beneath = archive.store().reader();
    let asked = asked(archive, search);
    let likely = asked.as_ref().map(|Asked { index, question }| {
        // An index that cannot be read says nothing.
        index.likely(question, search.limit.is_none() || search.session.is_some()).ok()
    });
    let (asked, likely) = match likely.flatten() {
        Some(likely) => (asked, Some(likely)),
        None => (None, None),
    };
    let index = asked.as_ref().map(|asked| &asked.index);
    let about = (&search.sessions, search.session.as_ref());
    let members = members(archive, about, index, &mut searched.sessions)?;
    let groups = groups(archive.store(), members)?;
    let pieces = pieces(&groups, likely);
    let asked = Mutex::new(asked);
    let is_enough = AtomicBool::new(false);
    let tell = |store: &dyn Store, members: &[Member], found, sessions: &mut Vec<_>| {
        let texts = texts(store, search, members, found, wanted, sessions)?;
        tell(store, members, texts, sessions)
    };
    let work = |store: &dyn Store, n: usize| -> Result<Answer<T>, OpsError> {
        let mut answer = Answer { found: Vec::new(), told: None, damaged: 0, sessions: Vec::new() };
        let piece = pieces.get(n).filter(|_| !is_enough.load(Ordering::Relaxed));
        let Some(Piece { group, member, part }) = piece else { return Ok(answer) };
        let members = groups.get(*group).map(Vec::as_slice).unwrap_or_default();
        if let Part::Group(parts) = part {
            for (member, parts) in parts.iter().enumerate() {
                for part in parts {
                    look(&seeker, store, &asked, members, (member, part), &mut answer)?;
                }
            }
            let found = std::mem::take(&mut answer.found);
            answer.told = Some(tell(store, members, found, &mut answer.sessions)?);
        } else {
            look(&seeker, store, &asked, members, (*member, part), &mut answer)?;
        }
        Ok(answer)
    };
    let (mut n, mut due, mut gathered, mut failed) = (0, wanted, Vec::new(), None);
    let store = beneath.as_deref().unwrap_or(archive.store());
    in_order(store, pieces.len(), &work, &mut |answer: Result<Answer<T>, OpsError>| {
        let piece = pieces.get(n);
        n += 1;
        let Some(Piece { group, .. }) = piece.filter(|_| failed.is_none()) else { return };
        let mut done = None;
        match answer {
            Ok(answer) => {
                gathered.extend(answer.found);
                searched.damaged += answer.damaged;
                name(searched, answer.sessions);
                done = answer.told;
            }
            Err(error) => failed = Some(error.into()),
        }
        let is_last = pieces.get(n).is_none_or(|next| next.group != *group);
        let members = groups.get(*group).map(Vec::as_slice).unwrap_or_default();
        // What forks share has all of its places only when all of them were searched.
        let may_do = members.len() == 1 && gathered.len() >= due;
        if !(is_last || may_do) || failed.is_some() || is_enough.load(Ordering::Relaxed) {
            return;
        }
        let told = done.map_or_else(
            || {
                let found = if is_last { std::mem::take(&mut gathered) } else { gathered.clone() };
                let found = grown(archive, &seeker, members, found, searched)?;
                let mut sessions = Vec::new();
                let told = tell(archive.store(), members, found, &mut sessions);
                name(searched, sessions);
                told
            },
            Ok,
        );
        due = if is_last { wanted } else { gathered.len().saturating_mul(2) };
        if !is_last && told.as_ref().is_ok_and(|told| told.len() < wanted) {
            return;
        }
        let taken = told.map_err(E::from);
        match taken.and_then(|told| if told.is_empty() { Ok(Taken::default()) } else { take(told) })
        {
            Ok(Taken { lines, more, full }) => {
                searched.lines += lines;
                // Whether the sessions that are left hold more is not known.
                searched.has_more |= more || full && n < pieces.len();
                if full {
                    is_enough.store(true, Ordering::Relaxed);
                }
            }
            Err(error) => failed = Some(error),
        }
        if failed.is_some() {
            is_enough.store(true, Ordering::Relaxed);
        }
    });
    failed.map_or(Ok(()), Err)
}

/// Looks through a part of a session; what cannot be read of one that is damaged is left out, and the session is named.
fn look<T>(
    seeker: &Seeker,
    store: &dyn Store,
    asked: &Mutex<Option<Asked>>,
    members: &[Member],
    (member, part): (usize, &Part),
    answer: &mut Answer<T>,
) -> Result<(), OpsError> {
    let Some(Member { session, .. }) = members.get(member) else { return Ok(()) };
    let each = &mut |it| answer.found.push((member, it));
    let damaged = match part {
        Part::Range(range) if range.is_empty() => Ok(Vec::new()),
        Part::Range(range) => seeker.scan(store, session, range.clone(), each),
        Part::Likely(entries) => seeker.try_each(store, session, entries, each),
        Part::Asked(range) => match likely_of(asked, session, range) {
            Some(entries) => seeker.try_each(store, session, &entries, each),
            None => seeker.scan(store, session, range.clone(), each),
        },
        Part::Group(_) => Ok(Vec::new()),
    };
    let damaged = or_named(damaged.map_err(OpsError::from), session, &mut answer.sessions)?;
    answer.damaged += damaged.map_or(0, |damaged| damaged.len() as u64);
    Ok(())
}

/// Names damaged sessions, each once.
fn name(searched: &mut Searched, sessions: Vec<DamagedSession>) {
    for session in sessions {
        if !searched.sessions.iter().any(|known| known.name == session.name) {
            searched.sessions.push(session);
        }
    }
}

/// Searches also what live files hold beyond the store.
fn grown(
    archive: &Archive,
    seeker: &Seeker,
    members: &[Member],
    mut found: Vec<(usize, Found)>,
    searched: &mut Searched,
) -> Result<Vec<(usize, Found)>, OpsError> {
    let grown = members.iter().enumerate().filter(|(_, member)| member.is_grown);
    for (n, Member { session, held, .. }) in grown {
        let end = archive.store().state(session.key)?.next_entry();
        if *held < end {
            let each = &mut |it| found.push((n, it));
            let damaged = seeker.scan(archive.store(), session, *held..end, each)?;
            searched.damaged += damaged.len() as u64;
        }
    }
    Ok(found)
}
