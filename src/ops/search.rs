//! Searching: what was said in any session, the newest sessions first; sessions that share a history are searched together,
//! and what they share is found once.
//!
//! ```text
//! sessions   newest first      A   B   C   D        C is a fork of A
//! groups                       A C     B   D
//! pieces     stretches of entries, which threads share; a group is told when all of its pieces are done
//! ```

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    ops::Range,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{
    model::{EntryId, EntryNumber, EntrySet, Position, Role, TieKind, Timestamp},
    ops::{OpsError, several::in_order},
    report::{Counted, DamagedSession, FoundPlace, Hit, HitLine, Searched},
    search::{Found, FoundLine, Index, Likely, Pattern, Question, Seeker},
    session::{
        Damages, Session, Stand, View, entry_ids, listing,
        stands::{Stands, stands},
        tools::{self, CALL_WITHIN},
    },
    store::{Listed, SessionFilter, SessionKey, Store, StoreError},
    sync::{Archive, follow},
};

/// How many entries are searched together.
const PIECE: usize = 2048;
/// How many entries an index is asked about together, where it knows of many.
const ASKED: usize = 512;

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
}

/// A part of what is searched in a session of a group.
struct Piece {
    group: usize,
    member: usize,
    part: Part,
}

/// How a part of a session is searched.
enum Part {
    /// As a whole.
    Range(Range<EntryNumber>),
    /// Where the index of words says that something may be.
    Likely(Vec<EntryNumber>),
    /// The same among these, for which the index is asked then.
    Asked(Range<EntryNumber>),
    /// All of a group: of each member the entries in which something may be, and those of which nothing is known.
    Group(Vec<(Vec<EntryNumber>, Range<EntryNumber>)>),
}

/// An index of words, and what it is asked.
struct Asked {
    index: Index,
    question: Question,
}

/// A session that is searched.
struct Member {
    session: Session,
    listed: Listed,
    /// The first entry that the store does not hold.
    held: EntryNumber,
    /// The first entry that the index of words does not have.
    indexed: EntryNumber,
    /// Whether its live file holds more.
    is_grown: bool,
}

/// What was found in a part.
#[derive(Default)]
struct Answer {
    found: Vec<(usize, Found)>,
    /// The same as hits, if the part is all of a group.
    hits: Option<Vec<Hit>>,
    damaged: u64,
}

/// Searches, and hands over what is found.
pub fn search<E: From<OpsError>>(
    archive: &Archive,
    search: &Search,
    mut each: impl FnMut(&Hit) -> Result<(), E>,
) -> Result<Searched, E> {
    let mut searched = Searched::default();
    let limit = search.limit.unwrap_or(usize::MAX);
    let mut told = 0;
    run::<E>(archive, search, limit, &mut searched, &mut |mut hits: Vec<Hit>| {
        let more = hits.len() > limit - told;
        hits.truncate(limit - told);
        told += hits.len();
        for hit in &hits {
            each(hit)?;
        }
        let lines = hits.iter().map(|hit| hit.lines.len() as u64).sum();
        Ok(Taken { lines, more, full: told >= limit })
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
    let limit = search.limit.unwrap_or(usize::MAX);
    let mut told = 0;
    run::<E>(archive, search, usize::MAX, &mut searched, &mut |hits| {
        let mut counts: Vec<Counted> = Vec::new();
        for hit in &hits {
            let Some(FoundPlace { session, title, .. }) = hit.places.first() else { continue };
            let lines = hit.lines.len() as u64;
            if let Some(counted) = counts.iter_mut().find(|it| it.session == *session) {
                counted.lines += lines;
            } else {
                let (session, title) = (session.clone(), title.clone());
                counts.push(Counted { session, title, lines });
            }
        }
        let more = counts.len() > limit - told;
        counts.truncate(limit - told);
        told += counts.len();
        for counted in &counts {
            each(counted)?;
        }
        let lines = counts.iter().map(|counted| counted.lines).sum();
        Ok(Taken { lines, more, full: told >= limit })
    })?;
    Ok(searched)
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

/// Takes what was found in a group.
type Take<'t, E> = dyn FnMut(Vec<Hit>) -> Result<Taken, E> + 't;

/// Searches group by group; one that holds as many texts as are wanted at all is not searched to its end.
fn run<E: From<OpsError>>(
    archive: &Archive,
    search: &Search,
    texts: usize,
    searched: &mut Searched,
    take: &mut Take<'_, E>,
) -> Result<(), E> {
    let mut seeker = Seeker::new(search.pattern.clone());
    seeker.roles.clone_from(&search.roles);
    (seeker.since, seeker.until, seeker.around) = (search.since, search.until, search.around);
    // Threads read what the store holds, and what live files hold beyond it is laid over it and searched here.
    let beneath = archive.store().reader();
    let asked = asked(archive, search);
    let likely = asked.as_ref().map(|asked| {
        let Asked { index, question } = asked;
        // An index that cannot be read says nothing.
        index.likely(question, search.limit.is_none() || search.session.is_some()).ok()
    });
    let (asked, likely) = match likely.flatten() {
        Some(likely) => (asked, Some(likely)),
        None => (None, None),
    };
    let index = asked.as_ref().map(|asked| &asked.index);
    let members = members(archive, search, index, &mut searched.sessions)?;
    let groups = groups(archive.store(), members)?;
    let pieces = pieces(&groups, likely);
    let asked = Mutex::new(asked);
    let is_enough = AtomicBool::new(false);
    let work = |store: &dyn Store, n: usize| -> Result<Answer, OpsError> {
        let mut answer = Answer::default();
        let piece = pieces.get(n).filter(|_| !is_enough.load(Ordering::Relaxed));
        let Some(Piece { group, member, part }) = piece else { return Ok(answer) };
        let members = groups.get(*group).map(Vec::as_slice).unwrap_or_default();
        let Some(Member { session, .. }) = members.get(*member) else { return Ok(answer) };
        let each = &mut |it| answer.found.push((*member, it));
        let damaged = match part {
            Part::Range(range) if range.is_empty() => Vec::new(),
            Part::Range(range) => seeker.scan(store, session, range.clone(), each)?,
            Part::Likely(entries) => seeker.try_each(store, session, entries, each)?,
            Part::Asked(range) => match likely_of(&asked, session, range) {
                Some(entries) => seeker.try_each(store, session, &entries, each)?,
                None => seeker.scan(store, session, range.clone(), each)?,
            },
            Part::Group(parts) => {
                for (member, (likely, range)) in parts.iter().enumerate() {
                    let Some(Member { session, .. }) = members.get(member) else { continue };
                    let each = &mut |it| answer.found.push((member, it));
                    let damaged = seeker.try_each(store, session, likely, each)?;
                    let more = seeker.scan(store, session, range.clone(), each)?;
                    answer.damaged += (damaged.len() + more.len()) as u64;
                }
                let found = std::mem::take(&mut answer.found);
                answer.hits = Some(hits_of(store, search, members, found)?);
                Vec::new()
            }
        };
        answer.damaged += damaged.len() as u64;
        Ok(answer)
    };
    let (mut n, mut due, mut gathered, mut failed) = (0, texts, Vec::new(), None);
    let store = beneath.as_deref().unwrap_or(archive.store());
    in_order(store, pieces.len(), &work, &mut |answer: Result<Answer, OpsError>| {
        let piece = pieces.get(n);
        n += 1;
        let Some(Piece { group, .. }) = piece.filter(|_| failed.is_none()) else { return };
        let mut done = None;
        match answer {
            Ok(answer) => {
                gathered.extend(answer.found);
                searched.damaged += answer.damaged;
                done = answer.hits;
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
        let hits = done.map_or_else(
            || {
                let found = if is_last { std::mem::take(&mut gathered) } else { gathered.clone() };
                let found = grown(archive, &seeker, members, found, searched)?;
                hits_of(archive.store(), search, members, found)
            },
            Ok,
        );
        due = if is_last { texts } else { gathered.len().saturating_mul(2) };
        if !is_last && hits.as_ref().is_ok_and(|hits| hits.len() < texts) {
            return;
        }
        let taken = hits.map_err(E::from);
        match taken.and_then(|hits| if hits.is_empty() { Ok(Taken::default()) } else { take(hits) })
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

/// Opens the store's index of words, if it can tell of a pattern.
fn asked(archive: &Archive, search: &Search) -> Option<Asked> {
    let index = archive.root().and_then(|root| Index::open(root, archive.store()))?;
    let question = index.question(&search.pattern).ok().flatten()?;
    Some(Asked { index, question })
}

/// Asks an index about some entries of a session; nothing is known if it cannot be read.
fn likely_of(
    asked: &Mutex<Option<Asked>>,
    session: &Session,
    range: &Range<EntryNumber>,
) -> Option<Vec<EntryNumber>> {
    let asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    let Asked { index, question } = asked.as_ref()?;
    index.likely_of(question, session.key, range).ok()
}

/// Returns the parts of the work, those of a group behind each other, and those of a session from its newest entries on.
fn pieces(groups: &[Vec<Member>], likely: Option<Likely>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut likely = likely;
    for (group, members) in groups.iter().enumerate() {
        if let Some(Likely::All(all)) = &mut likely
            && let Some(parts) = whole(members, all)
        {
            pieces.push(Piece { group, member: 0, part: Part::Group(parts) });
            continue;
        }
        for (member, Member { session, held, indexed, .. }) in members.iter().enumerate() {
            let from = if likely.is_some() { *indexed } else { EntryNumber::FIRST };
            let ranges = EntryNumber::batches(from..*held, PIECE).map(Part::Range);
            let mut parts: Vec<Part> = match &mut likely {
                Some(Likely::All(all)) => {
                    let mut likely = all.remove(&session.key).unwrap_or_default();
                    likely.retain(|entry| entry < indexed);
                    likely.chunks(PIECE).map(|chunk| Part::Likely(chunk.to_vec())).collect()
                }
                Some(Likely::Many) => {
                    let indexed = EntryNumber::batches(EntryNumber::FIRST..*indexed, ASKED);
                    indexed.map(Part::Asked).collect()
                }
                None => Vec::new(),
            };
            parts.extend(ranges);
            // Each group has a piece, by which it ends.
            parts.insert(0, Part::Range(*held..*held));
            pieces.extend(parts.into_iter().rev().map(|part| Piece { group, member, part }));
        }
    }
    pieces
}

/// Returns the work on a group as one part, if it is little.
fn whole(
    members: &[Member],
    all: &BTreeMap<SessionKey, Vec<EntryNumber>>,
) -> Option<Vec<(Vec<EntryNumber>, Range<EntryNumber>)>> {
    let part = |Member { session, held, indexed, .. }: &Member| {
        let likely = all.get(&session.key).into_iter().flatten();
        let likely: Vec<EntryNumber> = likely.copied().filter(|entry| entry < indexed).collect();
        (likely, *indexed..*held)
    };
    let parts: Vec<_> = members.iter().map(part).collect();
    let size =
        parts.iter().map(|(likely, range)| likely.len() as u64 + range.end.since(range.start));
    let is_little = size.sum::<u64>() <= PIECE as u64;
    (is_little && !members.iter().any(|member| member.is_grown)).then_some(parts)
}

/// Returns the sessions that are searched, the newest first; what their live files hold beyond the store is laid over it.
fn members(
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
fn groups(store: &dyn Store, members: Vec<Member>) -> Result<Vec<Vec<Member>>, OpsError> {
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

/// Searches also what live files hold beyond the store.
fn grown(
    archive: &Archive,
    seeker: &Seeker,
    members: &[Member],
    mut found: Vec<(usize, Found)>,
    searched: &mut Searched,
) -> Result<Vec<(usize, Found)>, OpsError> {
    for (n, Member { session, held, .. }) in members.iter().enumerate() {
        let end = archive.store().state(session.key)?.next_entry();
        if *held < end {
            let each = &mut |it| found.push((n, it));
            let damaged = seeker.scan(archive.store(), session, *held..end, each)?;
            searched.damaged += damaged.len() as u64;
        }
    }
    Ok(found)
}

/// The same text of the same time, or of the same entry if that says no time.
type Same = ([u8; 32], Option<Timestamp>, Option<(usize, EntryNumber, usize)>);

/// Makes hits of what was found in a group, the newest first.
fn hits_of(
    store: &dyn Store,
    search: &Search,
    members: &[Member],
    found: Vec<(usize, Found)>,
) -> Result<Vec<Hit>, OpsError> {
    let mut by_member: BTreeMap<usize, Vec<Found>> = BTreeMap::new();
    for (n, found) in found {
        by_member.entry(n).or_default().push(found);
    }
    let mut hits: Vec<Hit> = Vec::new();
    let mut known: BTreeMap<Same, usize> = BTreeMap::new();
    for (n, found) in by_member {
        let Some(Member { session, listed, .. }) = members.get(n) else { continue };
        let found = of_tool(store, session, search.tool.as_deref(), found)?;
        let found = on_branch(store, session, search.branch.as_deref(), found)?;
        let places = places(store, session, listed, &found)?;
        for (found, place) in found.into_iter().zip(places) {
            let alone = found.time.is_none().then_some((n, found.entry, found.text));
            let same = (found.sum, found.time, alone);
            let Found { time, role, tool, lines, .. } = found;
            if let Some(hit) = known.get(&same).and_then(|at| hits.get_mut(*at)) {
                hit.places.push(place);
                continue;
            }
            known.insert(same, hits.len());
            let line = |FoundLine { n, line, matches, before, after }| HitLine {
                n,
                line,
                matches,
                before,
                after,
            };
            let lines = lines.into_iter().map(line).collect();
            hits.push(Hit { places: vec![place], time, role: role.as_str(), tool, lines });
        }
    }
    for hit in &mut hits {
        // Where the newest session has it on its current path, there it is shown.
        let newest = hit.places.first().map(|place| place.session.clone());
        let is_behind = |place: &FoundPlace| {
            (Some(&place.session) != newest.as_ref(), place.stand != Stand::Current)
        };
        hit.places.sort_by_key(is_behind);
    }
    hits.sort_by_key(|hit| Reverse(hit.time));
    Ok(hits)
}

/// Leaves those texts with which a tool was called, or that it answered.
fn of_tool(
    store: &dyn Store,
    session: &Session,
    tool: Option<&str>,
    found: Vec<Found>,
) -> Result<Vec<Found>, OpsError> {
    let Some(tool) = tool else { return Ok(found) };
    let view = View::new(store, session, Position::default(), None);
    let view = view.gathering(&Damages::gathered());
    let mut left = Vec::with_capacity(found.len());
    for mut found in found {
        // An answer may name only the call, which was made shortly before.
        if let (None, Some(call)) = (&found.tool, &found.call) {
            let first = found.entry.earlier().nth(CALL_WITHIN - 1).unwrap_or(EntryNumber::FIRST);
            let near: Vec<EntryNumber> = EntryNumber::each(first..found.entry).collect();
            let called = tools::call(&view, session.format, &near, call)?;
            found.tool = called.map(|called| called.tool);
        }
        if found.tool.as_deref() == Some(tool) {
            left.push(found);
        }
    }
    Ok(left)
}

/// Leaves what stands on a branch.
fn on_branch(
    store: &dyn Store,
    session: &Session,
    branch: Option<&str>,
    found: Vec<Found>,
) -> Result<Vec<Found>, OpsError> {
    let Some(branch) = branch else { return Ok(found) };
    let state = store.state(session.key)?;
    let Some(position) = state.branches.get(branch) else { return Ok(Vec::new()) };
    let path = View::new(store, session, *position, None).path(usize::MAX)?.entries;
    let on: EntrySet = path.into_iter().collect();
    Ok(found.into_iter().filter(|found| on.contains(found.entry)).collect())
}

/// Returns where texts stand that were found in a session.
fn places(
    store: &dyn Store,
    session: &Session,
    listed: &Listed,
    found: &[Found],
) -> Result<Vec<FoundPlace>, OpsError> {
    let entries: Vec<EntryNumber> = found.iter().map(|found| found.entry).collect();
    let stands = stands(store, session, &entries)?;
    let ids = entry_ids(store, session, &entries.iter().copied().collect())?;
    let parent = parent(store, session)?;
    let place = |(entry, stands): (EntryNumber, Stands)| FoundPlace {
        session: session.name.clone(),
        title: listed.card.title.clone(),
        folder: listed.card.folder.clone(),
        entry: ids.get(&entry).copied().unwrap_or(EntryId::new([0; 32])),
        turn: stands.turn,
        stand: stands.stand,
        is_of_sub_agent: stands.is_of_sub_agent || parent.is_some(),
        parent: parent.clone(),
    };
    Ok(entries.into_iter().zip(stands).map(place).collect())
}

/// Returns the session for which a session works, if it is a sub-agent.
fn parent(store: &dyn Store, session: &Session) -> Result<Option<String>, OpsError> {
    let ties = store.ties(session.key)?;
    let mut ties = ties.into_iter().flat_map(|(_, ties)| ties);
    Ok(ties.find(|tie| tie.kind == TieKind::SubAgent).map(|tie| tie.other))
}
