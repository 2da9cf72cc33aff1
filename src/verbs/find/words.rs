//! Search by words: the index scores all messages, and only the best are read.
//!
//! ```text
//! scored     every message in the index, and those not in it yet: the words it has, weighted by how rare they are
//! counted    messages with all words, or else with most of them
//! read       the best; or every one if only the text decides whether it matches
//! ```
//!
//! Invariant: which messages match never depends on what is in the index.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use crate::{
    archive::Archive,
    model::EntryNumber,
    report::{Counted, Hit, Searched, UnreadSession},
    search::{Query, Rank, Score, Sort, Weighing, words},
    session::Session,
    store::{Document, SessionKey, Store, StoreError},
    verbs::{
        OpsError,
        find::{
            hits::texts,
            members::{Member, or_named},
            query::{Search, groups, opened},
            ranking::{InGroup, Wanted, best, each_of},
            threads::Readers,
        },
    },
};

/// How many of the best messages are read and ranked, unless more are wanted.
const RANKED: usize = 200;
/// How many unindexed entries are scored together.
const PIECE: usize = 256;

/// Where a message is: the index of the group, the member within the group, and the entry.
type At = (usize, usize, EntryNumber);

/// A message with words of a query.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    score: Score,
    document: Document,
    at: At,
}

/// Returns the hits for some words, best first, with the hits of a session together.
pub(crate) fn ranked(
    archive: &Archive,
    search: &Search,
    query: &Query,
    searched: &mut Searched,
) -> Result<Vec<Hit>, OpsError> {
    let mut readers = Readers::of(archive.store());
    let mut found = Weighed::of(archive, search, query, &mut readers, searched)?;
    let wanted = search.limit.unwrap_or(usize::MAX);
    let full = found.full().len();
    let read = match search.sort {
        Sort::Time => full,
        Sort::Relevance if search.tells_by_text() => full + RANKED,
        Sort::Relevance => wanted.max(RANKED),
    };
    if read < full {
        searched.count(found.full().iter().map(|candidate| candidate.at));
    }
    found.candidates.truncate(read);
    let mut texts = found.texts(search, &mut readers, searched)?;
    let scores: BTreeMap<At, Score> =
        found.candidates.iter().map(|candidate| (candidate.at, candidate.score)).collect();
    let score = |text: &InGroup| scores.get(&text.at()).copied().unwrap_or_default();
    if searched.messages.is_none() {
        let most = texts.iter().map(|text| score(text).terms).max();
        searched
            .count(texts.iter().filter(|text| Some(score(text).terms) == most).map(InGroup::at));
    }
    let newest = texts.iter().filter_map(|text| text.text.found.time).max();
    if search.sort == Sort::Relevance {
        for text in &mut texts {
            text.rank = Rank::of(&text.text.found, score(text), query.needed(), newest);
        }
    }
    let wanted =
        Wanted { hits: wanted, of_session: search.per_session, off_the_path: search.is_reverted };
    let mut damaged = Vec::new();
    let mut hits = best(&mut readers, &found.groups, &texts, wanted, &mut damaged)?;
    UnreadSession::add(damaged, &mut searched.unread);
    searched.lines = hits.len() as u64;
    searched.has_more = searched.messages > Some(searched.lines);
    let best = texts.iter().min_by(|one, other| one.rank.before(other.rank));
    found.name_missing(best.map(InGroup::at), searched);
    let mut sessions = Vec::new();
    hits.sort_by_cached_key(|hit| {
        let session = hit.places.first().map(|place| place.session.clone());
        sessions.iter().position(|known| *known == session).unwrap_or_else(|| {
            sessions.push(session);
            sessions.len() - 1
        })
    });
    Ok(hits)
}

/// Returns how many messages of each session have the words; the session with the best one is first.
pub(crate) fn counts(
    archive: &Archive,
    search: &Search,
    query: &Query,
    searched: &mut Searched,
) -> Result<Vec<Counted>, OpsError> {
    let mut readers = Readers::of(archive.store());
    let mut found = Weighed::of(archive, search, query, &mut readers, searched)?;
    found.candidates.truncate(found.full().len());
    let mut at: Vec<At> = found.candidates.iter().map(|candidate| candidate.at).collect();
    if search.tells_by_text() {
        let texts = found.texts(search, &mut readers, searched)?;
        let are_meant: BTreeSet<At> = texts.iter().map(InGroup::at).collect();
        at.retain(|at| are_meant.contains(at));
    }
    searched.count(at.iter().copied());
    found.name_missing(at.first().copied(), searched);
    let mut order: Vec<(usize, usize)> = Vec::new();
    let mut counts: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    for (group, member, _) in at {
        let count = counts.entry((group, member)).or_default();
        if *count == 0 {
            order.push((group, member));
        }
        *count += 1;
    }
    let counted = |at: &(usize, usize)| {
        let Member { session, listed, .. } = found.groups.get(at.0)?.get(at.1)?;
        let (session, title) = (session.name.clone(), listed.card.title.clone());
        Some(Counted { session, title, lines: counts.get(at).copied()? })
    };
    Ok(order.iter().filter_map(counted).collect())
}

/// The messages with words of a query in the searched sessions.
struct Weighed<'q> {
    weighing: Weighing<'q>,
    groups: Vec<Vec<Member>>,
    /// Those with the most words first, then by score.
    candidates: Vec<Candidate>,
}

impl<'q> Weighed<'q> {
    fn of(
        archive: &Archive,
        search: &Search,
        query: &'q Query,
        readers: &mut Readers<'_>,
        searched: &mut Searched,
    ) -> Result<Self, OpsError> {
        let mut index = opened(archive);
        let weighed = index.as_ref().map(|index| {
            let weighing = Weighing::of(query, Some(index))?;
            let mut places: BTreeMap<SessionKey, Vec<(EntryNumber, Document)>> = BTreeMap::new();
            index.places(weighing.found(), &mut |session, entry, document| {
                places.entry(session).or_default().push((entry, document));
            })?;
            Ok::<_, StoreError>((weighing, places))
        });
        let (mut weighing, places) = if let Some(Ok(weighed)) = weighed {
            weighed
        } else {
            // An index that cannot be read is not used.
            index = None;
            (Weighing::of(query, None)?, BTreeMap::new())
        };
        let members = search.members(archive, &mut index, places.keys().copied(), searched)?;
        let groups = groups(members);
        let mut ats = Vec::new();
        for (group, members) in groups.iter().enumerate() {
            for (n, member) in members.iter().enumerate() {
                let found = places.get(&member.session.key).into_iter().flatten();
                let found = found.filter(|(entry, _)| *entry < member.indexed);
                ats.extend(found.map(|(entry, document)| (*document, (group, n, *entry))));
            }
        }
        add(&mut weighing, readers, &groups, &mut ats)?;
        let scores = weighing.scores();
        let candidate = |&(document, at): &(Document, At)| {
            let score = *scores.get(usize::try_from(document).ok()?)?;
            (score.terms > 0).then_some(Candidate { score, document, at })
        };
        let mut candidates: Vec<Candidate> = ats.iter().filter_map(candidate).collect();
        let most = candidates.iter().map(|candidate| candidate.score.terms).max();
        candidates.sort_unstable_by(|one, other| {
            let has_most = |it: &Candidate| Some(it.score.terms) == most;
            let by_points = other.score.points.total_cmp(&one.score.points);
            has_most(other).cmp(&has_most(one)).then(by_points).then(one.at.cmp(&other.at))
        });
        Ok(Self { weighing, groups, candidates })
    }

    /// Returns the candidates with as many words as the best one.
    fn full(&self) -> &[Candidate] {
        let most = self.candidates.first().map_or(0, |best| best.score.terms);
        let full = self.candidates.partition_point(|candidate| candidate.score.terms == most);
        self.candidates.get(..full).unwrap_or_default()
    }

    /// Reports the words that no message has, and those that the best one lacks.
    fn name_missing(&self, best: Option<At>, searched: &mut Searched) {
        let best = self.candidates.iter().find(|candidate| Some(candidate.at) == best);
        let document = best.map(|best| best.document);
        (searched.nowhere, searched.missing) = self.weighing.missing(document);
    }

    /// Reads the messages.
    fn texts(
        &self,
        search: &Search,
        readers: &mut Readers<'_>,
        searched: &mut Searched,
    ) -> Result<Vec<InGroup>, OpsError> {
        let mut asked: BTreeMap<usize, BTreeMap<usize, Vec<EntryNumber>>> = BTreeMap::new();
        for Candidate { at: (group, member, entry), .. } in &self.candidates {
            asked.entry(*group).or_default().entry(*member).or_default().push(*entry);
        }
        let asked: Vec<_> = asked.into_iter().collect();
        let seeker = search.seeker();
        let look =
            |store: &dyn Store, (group, asked): &(usize, BTreeMap<usize, Vec<EntryNumber>>)| {
                let (mut found, mut unread, mut damaged) = (Vec::new(), Vec::new(), 0);
                let members = self.groups.get(*group).map(Vec::as_slice).unwrap_or_default();
                for (n, entries) in asked {
                    let Some(Member { session, listed, .. }) = members.get(*n) else { continue };
                    let mut entries = entries.clone();
                    entries.sort_unstable();
                    let each = &mut |it| found.push((*n, it));
                    let looked =
                        seeker.try_each(store, session, listed.card.active, &entries, each);
                    let looked = or_named(looked.map_err(OpsError::from), session, &mut unread)?;
                    damaged += looked.map_or(0, |damaged| damaged.len() as u64);
                }
                let texts = texts(store, search, members, found, &mut unread)?;
                let texts = texts.into_iter().map(|text| InGroup {
                    group: *group,
                    text,
                    rank: Rank::default(),
                });
                Ok::<_, OpsError>((texts.collect::<Vec<_>>(), unread, damaged))
            };
        let mut texts = Vec::new();
        let mut failed = None;
        each_of(readers, &self.groups, &asked, &look, &mut |looked| match looked {
            Ok((found, unread, damaged)) => {
                texts.extend(found);
                searched.damaged += damaged;
                UnreadSession::add(unread, &mut searched.unread);
            }
            Err(error) => failed = Some(error),
        });
        failed.map_or(Ok(texts), Err)
    }
}

/// Entries that are scored together: the index of the group; the member within the group, the session and the range.
type Piece<'g> = (usize, (usize, &'g Session, Range<EntryNumber>));

/// Scores the entries that are not in the index.
fn add(
    weighing: &mut Weighing<'_>,
    readers: &mut Readers<'_>,
    groups: &[Vec<Member>],
    ats: &mut Vec<(Document, At)>,
) -> Result<(), OpsError> {
    let mut pieces = Vec::new();
    for (group, members) in groups.iter().enumerate() {
        for (n, Member { session, held, indexed, is_grown, .. }) in members.iter().enumerate() {
            let end =
                if *is_grown { readers.laid().state(session.key)?.next_entry() } else { *held };
            let ranges = EntryNumber::batches(*indexed..end, PIECE);
            pieces.extend(ranges.map(|range| (group, (n, session, range))));
        }
    }
    let work = |store: &dyn Store, (group, (n, session, range)): &Piece<'_>| {
        words(store, session, range.clone()).map(|words| (*group, *n, words))
    };
    let mut failed = None;
    each_of(readers, groups, &pieces, &work, &mut |found| match found {
        Ok((group, n, found)) => {
            let at = |(entry, words): (_, Vec<_>)| (weighing.add(&words), (group, n, entry));
            ats.extend(found.into_iter().map(at));
        }
        Err(error) => failed = Some(error),
    });
    failed.map_or(Ok(()), |error| Err(error.into()))
}
