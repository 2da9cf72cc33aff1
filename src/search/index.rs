//! A store's search index: which entries may match a pattern, how well entries answer a query, and the words of new entries.

#![expect(clippy::cast_precision_loss, reason = "what words tell is no exact number")]

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    ops::{Range, RangeInclusive},
    path::Path,
};

use super::{
    passages::{Moved, passages},
    pattern::Pattern,
    query::{Query, Term},
    words::{CROWDED, Gathered, Part, Words, parts, share},
};
use crate::{
    json::Raw,
    model::{EntryNumber, State},
    session::Session,
    store::{Document, Piece, Reach, SessionKey, Store, StoreError, WordIndex},
};

/// The maximum number of words that one part of a pattern may match.
const MEANT: usize = 1000;
/// How many words are suggested in place of one that does not occur.
const NEAR: usize = 3;

/// An index that is open for queries.
pub(crate) struct Index {
    words: WordIndex,
    /// How far it covers the sessions that are searched.
    reaches: BTreeMap<SessionKey, Reach>,
    /// The sessions that changed since the index was complete, if it is known when that was.
    changed: Option<BTreeSet<SessionKey>>,
    /// Whether settings kept sessions out of it.
    is_partial: bool,
}

/// The entries that may have a match, according to an index, in order.
pub(crate) type Likely = BTreeMap<SessionKey, Vec<EntryNumber>>;

/// How well an entry answers a query.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Score {
    /// How many of the needed terms it has.
    pub(crate) terms: u32,
    /// The BM25 score of all terms.
    pub(crate) points: f32,
}

impl Index {
    /// Opens the index of the store in a folder; none if it is missing or unreadable. `nothing` is what the index records if
    /// settings excluded no session.
    pub(crate) fn open(root: &Path, store: &dyn Store, nothing: &[u8]) -> Option<Self> {
        let words = WordIndex::open(root, store.id().ok()?).ok()??;
        // All queries must see one state of the index. Otherwise an entry added in between would count as covered without being
        // found.
        words.hold().ok()?;
        let settled = words.settled().ok()?;
        let is_partial = settled.as_ref().is_none_or(|settled| settled.kept_out != nothing);
        let changed = settled.and_then(|settled| settled.missing(store).ok());
        let changed = changed.map(|(changed, _)| changed);
        Some(Self { words, reaches: BTreeMap::new(), changed, is_partial })
    }

    /// Returns true if it covers the whole store.
    pub(crate) fn is_whole(&self) -> bool {
        self.changed.as_ref().is_some_and(BTreeSet::is_empty) && !self.is_partial
    }

    /// Returns the sessions that may have entries outside the index; none if any session may.
    pub(crate) fn behind(
        &self,
        is_live: &dyn Fn(&Reach) -> bool,
    ) -> Result<Option<BTreeSet<SessionKey>>, StoreError> {
        let (Some(changed), false) = (&self.changed, self.is_partial) else { return Ok(None) };
        let live = self.words.reaches_of_live()?;
        let live = live.into_iter().filter(|(_, reach)| is_live(reach)).map(|(session, _)| session);
        Ok(Some(changed.iter().copied().chain(live).collect()))
    }

    /// Reads how far the index covers the sessions to be searched: only those in `only`, if given.
    pub(crate) fn reach(&mut self, only: Option<&BTreeSet<SessionKey>>) -> Result<(), StoreError> {
        self.reaches = match only {
            Some(only) => self.words.reaches_of(only)?,
            None => self.words.reaches()?,
        };
        Ok(())
    }

    /// Returns the reach for a session that has not changed since the index was complete, so that it is covered to its end.
    pub(crate) fn whole(&self, session: SessionKey) -> Option<&Reach> {
        let changed = self.changed.as_ref()?;
        self.reaches.get(&session).filter(|_| !changed.contains(&session))
    }

    /// Returns the first entry of a session that is not in the index.
    pub(crate) fn next(
        &self,
        store: &dyn Store,
        session: SessionKey,
        state: &State,
    ) -> Result<EntryNumber, StoreError> {
        let Some(reach) = self.reaches.get(&session) else { return Ok(EntryNumber::FIRST) };
        let is_of_it = fits(store, session, state, reach)?;
        Ok(if is_of_it { reach.next } else { EntryNumber::FIRST })
    }

    /// Returns the entries that may match a pattern; none if the index cannot narrow it down.
    pub(crate) fn likely(&self, pattern: &Pattern) -> Result<Option<Likely>, StoreError> {
        let Some(alternatives) = parts(pattern) else { return Ok(None) };
        let all = self.words.documents()?;
        let crowded = self.documents_with(all, &(CROWDED..=CROWDED), &mut |words| {
            let mut words = words.trim_matches('\n').split('\n');
            words.position(|word| word == CROWDED).into_iter().collect()
        })?;
        let mut found = Set::new(all);
        for parts in alternatives {
            let mut having: Option<Set> = None;
            for part in &parts {
                if let Some(mut one) = self.documents_with_part(all, part)? {
                    one.add(&crowded);
                    having = Some(match having {
                        Some(mut all) => {
                            all.keep(&one);
                            all
                        }
                        None => one,
                    });
                }
            }
            let Some(having) = having else { return Ok(None) };
            found.add(&having);
        }
        let mut likely = Likely::new();
        self.places(found.into_documents(), &mut |session, entry, _| {
            likely.entry(session).or_default().push(entry);
        })?;
        for entries in likely.values_mut() {
            entries.sort_unstable();
            entries.dedup();
        }
        Ok(Some(likely))
    }

    /// Returns the documents that have a word with this part; none if too many words have it.
    fn documents_with_part(&self, all: Document, part: &Part) -> Result<Option<Set>, StoreError> {
        let (from, to) = part.among();
        let mut meant = 0;
        let set = self.documents_with(all, &(&*from..=&*to), &mut |words| {
            let chosen = part.chosen(words);
            meant += chosen.len();
            if meant > MEANT { Vec::new() } else { chosen }
        })?;
        Ok((meant <= MEANT).then_some(set))
    }

    fn documents_with(
        &self,
        all: Document,
        words: &RangeInclusive<&str>,
        chosen: &mut dyn FnMut(&str) -> Vec<usize>,
    ) -> Result<Set, StoreError> {
        let mut set = Set::new(all);
        self.words.find(words, chosen, &mut |document, _| set.insert(document))?;
        Ok(set)
    }

    /// Calls `each` with the session and entry of each document; documents come in ascending order.
    pub(crate) fn places(
        &self,
        documents: impl Iterator<Item = Document>,
        each: &mut dyn FnMut(SessionKey, EntryNumber, Document),
    ) -> Result<(), StoreError> {
        let mut at = None;
        for document in documents {
            let piece = match at.take().filter(|piece: &Piece| piece.has(document)) {
                Some(piece) => piece,
                None => self.words.piece(document)?,
            };
            each(piece.session, piece.entries.start.plus(document - piece.first), document);
            at = Some(piece);
        }
        Ok(())
    }

    /// Returns words that start like one of the query's, most similar first.
    pub(crate) fn near(&self, query: &Query) -> Result<Vec<String>, StoreError> {
        let mut found: Vec<(Reverse<usize>, usize, String)> = Vec::new();
        for Term { word, .. } in query.terms() {
            let least = (word.chars().count() * 2).div_ceil(3).max(3);
            let start: String = word.chars().take(least).collect();
            let alike =
                |other: &str| word.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
            let end = format!("{start}\u{10ffff}");
            let mut keep = |words: &str| {
                let words = words.split('\n').filter(|other| other.starts_with(&start));
                found.extend(
                    words.map(|other| (Reverse(alike(other)), other.len(), other.to_owned())),
                );
                Vec::new()
            };
            self.words.find(&(&*start..=&*end), &mut keep, &mut |_, _| ())?;
        }
        found.sort_unstable();
        found.dedup();
        Ok(found.into_iter().map(|(.., word)| word).take(NEAR).collect())
    }
}

/// The documents that have a word, ascending, each with the word's score there.
type Having = [(Document, f32)];

/// The documents that have words of a query: those of an index, and others appended after them.
pub(crate) struct Weighing<'q> {
    query: &'q Query,
    /// One more than the number of the last document.
    documents: Document,
    /// For each word, the documents that have it, ascending, each with its score.
    having: Vec<Vec<(Document, f32)>>,
}

impl<'q> Weighing<'q> {
    /// Queries an index, if there is one.
    pub(crate) fn of(query: &'q Query, index: Option<&Index>) -> Result<Self, StoreError> {
        let words = index.map(|index| &index.words);
        let documents = words.map_or(Ok(0), WordIndex::documents)?;
        let having = query.terms().iter().map(|term| match words {
            Some(words) => weighed(words, documents, term),
            None => Ok(Vec::new()),
        });
        Ok(Self { query, documents, having: having.collect::<Result<_, _>>()? })
    }

    /// Returns the documents that have any of the words, ascending.
    pub(crate) fn found(&self) -> impl Iterator<Item = Document> + use<> {
        let mut set = Set::new(self.documents);
        self.having.iter().flatten().for_each(|(document, _)| set.insert(*document));
        set.into_documents()
    }

    /// Returns the words, as typed, that no document has, and those that `document` lacks.
    pub(crate) fn missing(&self, document: Option<Document>) -> (Vec<String>, Vec<String>) {
        let lacking = |lacks: &dyn Fn(&Having) -> bool| {
            let terms = self.query.terms().iter().zip(&self.having);
            let lacking = terms.filter(|(term, having)| term.is_needed && lacks(having));
            lacking.map(|(term, _)| term.typed.clone()).collect()
        };
        let lacks = |having: &Having| {
            document.is_none_or(|it| having.binary_search_by_key(&it, |(of, _)| *of).is_err())
        };
        (lacking(&|having| having.is_empty()), lacking(&lacks))
    }

    /// Appends an entry that is not in the index, given its words.
    pub(crate) fn add(&mut self, words: &Words) -> Document {
        let document = self.documents;
        self.documents += 1;
        for (term, having) in self.query.terms().iter().zip(&mut self.having) {
            let shares = words.iter().filter_map(|(word, weight)| {
                term.likeness(word).map(|likeness| likeness * share(*weight))
            });
            let most = shares.fold(0.0, f32::max);
            if most > 0.0 {
                having.push((document, most));
            }
        }
        document
    }

    /// Returns the scores of all documents by number: BM25, reduced for documents that lack rare words.
    pub(crate) fn scores(&self) -> Vec<Score> {
        let mut scores = vec![(Score::default(), 0.0_f32); place(self.documents)];
        let mut needed = f32::MIN_POSITIVE;
        for (term, having) in self.query.terms().iter().zip(&self.having) {
            let (all, some) = (self.documents as f32, having.len() as f32);
            let rarity = (1.0 + (all - some + 0.5) / (some + 0.5)).ln();
            needed += if term.is_needed { rarity } else { 0.0 };
            for (document, share) in having {
                if let Some((score, found)) = scores.get_mut(place(*document)) {
                    score.points += rarity * share;
                    if term.is_needed {
                        score.terms += 1;
                        *found += rarity;
                    }
                }
            }
        }
        let score =
            |(Score { terms, points }, found)| Score { terms, points: points * found / needed };
        scores.into_iter().map(score).collect()
    }
}

/// Returns the documents of an index that have a word of a query, ascending, each with its score.
fn weighed(
    words: &WordIndex,
    documents: Document,
    term: &Term,
) -> Result<Vec<(Document, f32)>, StoreError> {
    let mut shares = vec![0.0_f32; place(documents)];
    let (from, to) = term.among();
    for likeness in term.likenesses() {
        let mut chosen = |words: &str| {
            let words = words.trim_matches('\n').split('\n').enumerate();
            let words = words.filter(|(_, word)| term.likeness(word) == Some(*likeness));
            words.map(|(n, _)| n).collect()
        };
        words.find(&(&*from..=&*to), &mut chosen, &mut |document, weight| {
            if let Some(known) = shares.get_mut(place(document)) {
                *known = known.max(likeness * share(weight));
            }
        })?;
    }
    let shares = (0..).zip(shares).filter(|(_, share)| *share > 0.0);
    Ok(shares.collect())
}

/// Returns the index of a document in a list of all.
fn place(document: Document) -> usize {
    usize::try_from(document).unwrap_or(usize::MAX)
}

/// A set of documents, as a bitmap.
struct Set(Vec<u64>);

impl Set {
    fn new(documents: Document) -> Self {
        Self(vec![0; place(documents.div_ceil(64))])
    }

    fn insert(&mut self, document: Document) {
        if let Some(some) = self.0.get_mut(place(document / 64)) {
            *some |= 1 << (document % 64);
        }
    }

    fn add(&mut self, others: &Self) {
        self.0.iter_mut().zip(&others.0).for_each(|(some, others)| *some |= others);
    }

    fn keep(&mut self, others: &Self) {
        self.0.iter_mut().zip(&others.0).for_each(|(some, others)| *some &= others);
    }

    fn into_documents(self) -> impl Iterator<Item = Document> {
        (0..).zip(self.0).flat_map(|(n, some)| {
            (0..64).filter(move |bit| some >> bit & 1 == 1).map(move |bit| n * 64 + bit)
        })
    }
}

/// Returns true if a session still has the history that the index has seen.
pub(crate) fn fits(
    store: &dyn Store,
    session: SessionKey,
    state: &State,
    reach: &Reach,
) -> Result<bool, StoreError> {
    let (n, hash) = reach.operation;
    if n.get() == state.operations() {
        return Ok(state.hash() == Some(hash));
    }
    let then = store.operations(session, n.alone())?.pop();
    Ok(then.is_some_and(|then| then.hash == hash))
}

/// Returns the weighted words of those entries that have any.
pub(crate) fn words(
    store: &dyn Store,
    session: &Session,
    range: Range<EntryNumber>,
) -> Result<Vec<(EntryNumber, Words)>, StoreError> {
    let mut found = Vec::new();
    let moved = Moved::of(store, session)?;
    let entries: Vec<EntryNumber> = EntryNumber::each(range).collect();
    store.lines(session.key, &entries, &mut |entry, line| {
        // Damaged entries get the word that every search looks up, so that every search reports them.
        let Ok(line) = line else {
            found.push((entry, vec![(CROWDED.to_owned(), 1)]));
            return;
        };
        let Some(record) = Raw::object(&line) else { return };
        let mut gathered = Gathered::default();
        let messages = moved.said(record);
        passages(&messages, &mut |passage| gathered.add(&passage.text));
        let words = gathered.weighed();
        if !words.is_empty() {
            found.push((entry, words));
        }
    })?;
    Ok(found)
}
