//! `search`: finds text in any session. Sessions that share a history are searched together, and shared text is found once.
//!
//! ```text
//! words      are scored and ranked in `words::ranked`
//! patterns   run group by group, newest first     A C     B   D
//! pieces     are shared out to threads            a group's hits are reported when all of its pieces are done
//! ```
//!
//! Invariant: results never depend on whether an index is available, nor on the number of threads.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::{
    archive::Archive,
    report::{Counted, Hit, Searched, UnreadSession},
    search::{Found, Seeker, Sought},
    session::read::status::Precision,
    store::Store,
    verbs::{
        OpsError,
        find::{
            hits::{Text, hits, texts},
            members::{Member, or_named},
            pieces::{Part, Piece, pieces},
            query::{Search, groups, opened},
            ranking::is_current,
            threads::Readers,
            words,
        },
    },
};

/// Hits include the step within their turn only if at most this many are wanted.
const STEPS: usize = 200;

/// Searches and passes each hit to `each`, together with the state of the search so far.
pub fn search<E: From<OpsError>>(
    archive: &Archive,
    search: &Search,
    mut each: impl FnMut(&Searched, &Hit) -> Result<(), E>,
) -> Result<Searched, E> {
    let mut searched = Searched::default();
    if let Sought::Words(query) = &search.sought {
        for hit in words::ranked(archive, search, query, &mut searched)? {
            each(&searched, &hit)?;
        }
        return Ok(searched);
    }
    let (wanted, mut told) = (search.limit.unwrap_or(usize::MAX), 0);
    newest(archive, search, &mut searched, &mut |store, members, mut texts, searched| {
        searched.has_more |= texts.len() > wanted - told;
        texts.truncate(wanted - told);
        told += texts.len();
        let mut unread = Vec::new();
        let is_meant = |hit: &Hit| !(search.is_reverted && is_current(hit));
        let precision = if wanted <= STEPS { Precision::Step } else { Precision::Turn };
        for hit in hits(store, members, texts, precision, &mut unread)?
            .into_iter()
            .flatten()
            .filter(is_meant)
        {
            searched.lines += hit.lines.len() as u64;
            each(searched, &hit)?;
        }
        UnreadSession::add(unread, &mut searched.unread);
        Ok::<_, E>(told < wanted)
    })?;
    Ok(searched)
}

/// Searches and passes each session to `each` with its number of matching lines, or messages in a search by words. Shared ones
/// count for the newest session only. If only the sessions are wanted, every session with a match is passed.
pub fn count<E: From<OpsError>>(
    archive: &Archive,
    search: &Search,
    mut each: impl FnMut(&Counted) -> Result<(), E>,
) -> Result<Searched, E> {
    let mut searched = Searched::default();
    let (wanted, mut told) = (search.limit.unwrap_or(usize::MAX), 0);
    let mut tell = |mut counts: Vec<Counted>, searched: &mut Searched| {
        searched.has_more |= counts.len() > wanted - told;
        counts.truncate(wanted - told);
        told += counts.len();
        for counted in &counts {
            searched.lines += counted.lines;
            each(counted)?;
        }
        Ok::<_, E>(told < wanted)
    };
    if let Sought::Words(query) = &search.sought {
        let counts = words::counts(archive, search, query, &mut searched)?;
        tell(counts, &mut searched)?;
    } else {
        newest(archive, search, &mut searched, &mut |_, members, texts, searched| {
            tell(counts(members, &texts, search.is_list), searched)
        })?;
    }
    Ok(searched)
}

/// Suggests words in the index that begin like those of a query without results.
pub fn near(archive: &Archive, sought: &Sought) -> Vec<String> {
    let (Sought::Words(query), Some(index)) = (sought, opened(archive)) else { return Vec::new() };
    // An index that cannot be read suggests nothing.
    index.near(query).unwrap_or_default()
}

/// Counts the matching lines of each session.
fn counts(members: &[Member], texts: &[Text], is_list: bool) -> Vec<Counted> {
    let mut counts: Vec<Counted> = Vec::new();
    for Text { found, at } in texts {
        for (n, _) in at.iter().take(if is_list { usize::MAX } else { 1 }) {
            let Some(Member { session, listed, .. }) = members.get(*n) else { continue };
            let lines = found.lines.len() as u64;
            if let Some(counted) = counts.iter_mut().find(|it| it.session == session.name) {
                counted.lines += lines;
            } else {
                let (session, title) = (session.name.clone(), listed.card.title.clone());
                counts.push(Counted { session, title, lines });
            }
        }
    }
    counts
}

/// The result of a piece.
#[derive(Default)]
struct Looked {
    found: Vec<(usize, Found)>,
    damaged: u64,
    unread: Vec<UnreadSession>,
}

/// Receives the texts found in a group, and returns whether more are wanted.
type Take<'t, E> =
    dyn FnMut(&dyn Store, &[Member], Vec<Text>, &mut Searched) -> Result<bool, E> + 't;

/// Searches for a pattern, group by group.
fn newest<E: From<OpsError>>(
    archive: &Archive,
    search: &Search,
    searched: &mut Searched,
    take: &mut Take<'_, E>,
) -> Result<(), E> {
    let mut index = opened(archive);
    let likely = index.as_ref().and_then(|index| match &search.sought {
        // An index that cannot be read is not used.
        Sought::Pattern(pattern) => index.likely(pattern).ok().flatten(),
        Sought::Words(_) => None,
    });
    index = index.filter(|_| likely.is_some());
    let found = likely.iter().flatten().map(|(session, _)| *session);
    let groups = groups(search.members(archive, &mut index, found, searched)?);
    let seeker = search.seeker();
    let pieces = pieces(&groups, likely.filter(|_| index.is_some()), search.stops_at_first());
    let mut readers = Readers::of(archive.store());
    let (laid, is_enough) = (readers.laid(), AtomicBool::new(false));
    let work = |store: &dyn Store, n: usize| {
        let piece = pieces.get(n).filter(|_| !is_enough.load(Ordering::Relaxed));
        piece.map_or_else(|| Ok(Looked::default()), |piece| look(store, &seeker, &groups, piece))
    };
    let (mut n, mut gathered, mut failed) = (0, Vec::new(), None);
    readers.in_order(pieces.len(), &work, &mut |looked: Result<Looked, OpsError>| {
        let Some(Piece { group, .. }) = pieces.get(n) else { return };
        n += 1;
        if is_enough.load(Ordering::Relaxed) {
            return;
        }
        let is_last = pieces.get(n).is_none_or(|next| next.group != *group);
        let tell = || -> Result<bool, E> {
            let Looked { found, damaged, mut unread } = looked?;
            gathered.extend(found);
            searched.damaged += damaged;
            let mut texts = Vec::new();
            let members = groups.get(*group).map(Vec::as_slice).unwrap_or_default();
            if is_last {
                gathered.extend(grown(laid, &seeker, members, searched)?);
                let found = std::mem::take(&mut gathered);
                texts = self::texts(laid, search, members, found, &mut unread)?;
            }
            UnreadSession::add(unread, &mut searched.unread);
            if texts.is_empty() { Ok(true) } else { take(laid, members, texts, searched) }
        };
        match tell() {
            Ok(true) => return,
            // The remaining sessions may have more matches.
            Ok(false) => searched.has_more |= n < pieces.len(),
            Err(error) => failed = Some(error),
        }
        is_enough.store(true, Ordering::Relaxed);
    });
    failed.map_or(Ok(()), Err)
}

/// Searches a part of a session. Records of a damaged session that cannot be read are skipped, and the session is reported.
fn look(
    store: &dyn Store,
    seeker: &Seeker,
    groups: &[Vec<Member>],
    Piece { group, member, part, is_met }: &Piece,
) -> Result<Looked, OpsError> {
    let mut looked = Looked::default();
    let found = groups.get(*group).and_then(|members| members.get(*member));
    let is_met = is_met.as_ref();
    let Some(Member { session, listed, .. }) =
        found.filter(|_| !is_met.is_some_and(|met| met.load(Ordering::Relaxed)))
    else {
        return Ok(looked);
    };
    let undated = listed.card.active;
    let each = &mut |it| {
        looked.found.push((*member, it));
        if let Some(met) = is_met {
            met.store(true, Ordering::Relaxed);
        }
    };
    let damaged = match part {
        Part::Range(range) if range.is_empty() => Ok(Vec::new()),
        Part::Range(range) => seeker.scan(store, session, undated, range.clone(), each),
        Part::Likely(entries) => seeker.try_each(store, session, undated, entries, each),
    };
    let damaged = or_named(damaged.map_err(OpsError::from), session, &mut looked.unread)?;
    looked.damaged = damaged.map_or(0, |damaged| damaged.len() as u64);
    Ok(looked)
}

/// Returns matches in live files beyond the store.
fn grown(
    laid: &dyn Store,
    seeker: &Seeker,
    members: &[Member],
    searched: &mut Searched,
) -> Result<Vec<(usize, Found)>, OpsError> {
    let mut found = Vec::new();
    let grown = members.iter().enumerate().filter(|(_, member)| member.is_grown);
    for (n, Member { session, held, listed, .. }) in grown {
        let range = *held..laid.state(session.key)?.next_entry();
        if !range.is_empty() {
            let each = &mut |it| found.push((n, it));
            let damaged = seeker.scan(laid, session, listed.card.active, range, each)?;
            searched.damaged += damaged.len() as u64;
        }
    }
    Ok(found)
}
