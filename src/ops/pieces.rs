//! The pieces of a search: stretches of entries, or what the index of words knows of them, which threads share.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Range,
    sync::{Mutex, PoisonError},
};

use crate::{
    model::EntryNumber,
    ops::{members::Member, sought::Search},
    search::{Index, Likely, Question},
    session::Session,
    settings::Exclude,
    store::{SessionKey, StoreError},
    sync::Archive,
};

/// How many entries are searched together.
const PIECE: usize = 2048;
/// How many entries are read together, where an index knows of many.
const READ: usize = 512;
/// About how many an index is asked together: to find the words takes it longer than to list the entries that have them.
const ASKED: u64 = 32 * READ as u64;
/// How many answers of an index are kept in memory: each thread may be at entries of its own.
const ANSWERS: usize = 8;

/// A part of what is searched in a session of a group.
pub(super) struct Piece {
    pub(super) group: usize,
    pub(super) member: usize,
    pub(super) part: Part,
}

/// How a part of a session is searched.
pub(super) enum Part {
    /// As a whole.
    Range(Range<EntryNumber>),
    /// Where the index of words says that something may be.
    Likely(Vec<EntryNumber>),
    /// The same among these, for which the index is asked then.
    Asked(Range<EntryNumber>),
    /// All of a group: the parts of each member.
    Group(Vec<Vec<Part>>),
}

/// An index of words, and what it is asked.
pub(super) struct Asked {
    pub(super) index: Index,
    pub(super) question: Question,
    /// What it answered last.
    answers: VecDeque<Answer>,
}

/// What an index knows of some entries of a session.
struct Answer {
    session: SessionKey,
    about: Range<EntryNumber>,
    likely: Vec<EntryNumber>,
}

impl Asked {
    /// Asks about some entries of a session, which lie between those that are asked about together.
    fn likely_of(
        &mut self,
        session: SessionKey,
        range: &Range<EntryNumber>,
    ) -> Result<Vec<EntryNumber>, StoreError> {
        let is_about = |answer: &&Answer| {
            answer.session == session
                && answer.about.start <= range.start
                && range.end <= answer.about.end
        };
        if self.answers.iter().find(is_about).is_none() {
            let before = range.start.since(EntryNumber::FIRST) % ASKED;
            let start = range.start.minus(before);
            let about = start..start.plus(ASKED).max(range.end);
            let likely = self.index.likely_of(&self.question, session, &about)?;
            self.answers.truncate(ANSWERS - 1);
            self.answers.push_front(Answer { session, about, likely });
        }
        let answer = self.answers.iter().find(is_about);
        let likely = answer.map(|answer| answer.likely.as_slice()).unwrap_or_default();
        Ok(likely.iter().copied().filter(|entry| range.contains(entry)).collect())
    }
}

/// Opens the store's index of words, if it can tell of a pattern.
pub(super) fn asked(archive: &Archive, search: &Search) -> Option<Asked> {
    let index = archive
        .root()
        .and_then(|root| Index::open(root, archive.store(), &Exclude::default().digest()))?;
    let question = index.question(&search.pattern).ok().flatten()?;
    Some(Asked { index, question, answers: VecDeque::new() })
}

/// Asks an index about some entries of a session; nothing is known if it cannot be read.
pub(super) fn likely_of(
    asked: &Mutex<Option<Asked>>,
    session: &Session,
    range: &Range<EntryNumber>,
) -> Option<Vec<EntryNumber>> {
    let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    asked.as_mut()?.likely_of(session.key, range).ok()
}

/// Returns the parts of the work, those of a group behind each other, and those of a session from its newest entries on.
pub(super) fn pieces(groups: &[Vec<Member>], likely: Option<Likely>) -> Vec<Piece> {
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
                    let indexed = EntryNumber::batches(EntryNumber::FIRST..*indexed, READ);
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
) -> Option<Vec<Vec<Part>>> {
    let mut size = 0;
    let mut parts = Vec::with_capacity(members.len());
    for Member { session, held, indexed, .. } in members {
        let likely = all.get(&session.key).into_iter().flatten();
        let likely: Vec<EntryNumber> = likely.copied().filter(|entry| entry < indexed).collect();
        size += likely.len() as u64 + held.since(*indexed);
        parts.push(vec![Part::Likely(likely), Part::Range(*indexed..*held)]);
    }
    (size <= PIECE as u64 && !members.iter().any(|member| member.is_grown)).then_some(parts)
}
