//! A store's index of words: what it says of a pattern, and what is added to it.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    path::Path,
};

use super::{
    passages::passages,
    pattern::Pattern,
    words::{CROWDED, Gathered, parts},
};
use crate::{
    json::Raw,
    model::{EntryNumber, State},
    session::Session,
    store::{Reach, SessionKey, Store, StoreError, WordIndex},
};

/// More entries than these are not asked for at once, if not all are wanted.
const FEW: usize = 500;

/// An index that was opened to be asked.
pub(crate) struct Index {
    words: WordIndex,
    /// How far it has come in the sessions that are searched.
    reaches: BTreeMap<SessionKey, Reach>,
    /// The sessions that took something in since all was in the index, if it is known when that was.
    changed: Option<BTreeSet<SessionKey>>,
    /// Whether settings kept sessions out of it.
    is_partial: bool,
}

/// What an index is asked for a pattern: of each alternative the lists of words, one of each of which an entry has.
pub(crate) struct Question(Vec<Vec<Vec<String>>>);

/// The entries of which an index says that they may have a match.
pub(crate) enum Likely {
    /// All of them.
    All(BTreeMap<SessionKey, Vec<EntryNumber>>),
    /// Too many to list: each session is asked about by itself.
    Many,
}

impl Index {
    /// Opens the index of the store in a folder; one that is not there, or that cannot be read, says nothing. `nothing` tells
    /// in an index that settings left no session out.
    pub(crate) fn open(root: &Path, store: &dyn Store, nothing: &[u8]) -> Option<Self> {
        let words = WordIndex::open(root, store.id().ok()?).ok()??;
        // All that it is asked has to be answered from one state: what came between would count as known and not be found.
        words.hold().ok()?;
        let settled = words.settled().ok()?;
        let is_partial = settled.as_ref().is_none_or(|settled| settled.kept_out != nothing);
        let changed = settled.and_then(|settled| settled.missing(store).ok());
        let changed = changed.map(|(changed, _)| changed);
        Some(Self { words, reaches: BTreeMap::new(), changed, is_partial })
    }

    /// Returns whether it has all that the store holds.
    pub(crate) fn is_whole(&self) -> bool {
        self.changed.as_ref().is_some_and(BTreeSet::is_empty) && !self.is_partial
    }

    /// Returns the sessions of which an answer tells that they may have a match, and those that may have something that is not
    /// in the index; nothing, if that may be any.
    pub(crate) fn narrow(
        &self,
        likely: &Likely,
        is_live: &dyn Fn(&Reach) -> bool,
    ) -> Result<Option<BTreeSet<SessionKey>>, StoreError> {
        let (Likely::All(found), Some(mut narrow)) = (likely, self.behind(is_live)?) else {
            return Ok(None);
        };
        narrow.extend(found.keys());
        Ok(Some(narrow))
    }

    /// Returns the sessions that may have something that is not in the index; nothing, if that may be any.
    pub(crate) fn behind(
        &self,
        is_live: &dyn Fn(&Reach) -> bool,
    ) -> Result<Option<BTreeSet<SessionKey>>, StoreError> {
        let (Some(changed), false) = (&self.changed, self.is_partial) else { return Ok(None) };
        let live = self.words.reaches_of_live()?;
        let live = live.into_iter().filter(|(_, reach)| is_live(reach)).map(|(session, _)| session);
        Ok(Some(changed.iter().copied().chain(live).collect()))
    }

    /// Reads how far it has come in the sessions that are searched: in these only, if they are known.
    pub(crate) fn reach(&mut self, only: Option<&BTreeSet<SessionKey>>) -> Result<(), StoreError> {
        self.reaches = match only {
            Some(only) => self.words.reaches_of(only)?,
            None => self.words.reaches()?,
        };
        Ok(())
    }

    /// Returns how far it has come in a session that took in nothing since, which is to the end; of another one nothing.
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

    /// Returns what to ask for a pattern; nothing if no words tell of it.
    pub(crate) fn question(&self, pattern: &Pattern) -> Result<Option<Question>, StoreError> {
        let Some(alternatives) = parts(pattern) else { return Ok(None) };
        let mut lists: Vec<Vec<Option<BTreeSet<String>>>> = alternatives
            .iter()
            .map(|parts| {
                let word = |part: &super::words::Part| part.word().map(str::to_owned);
                parts.iter().map(|part| Some(word(part).into_iter().collect())).collect()
            })
            .collect();
        if alternatives.iter().flatten().any(|part| part.word().is_none()) {
            self.words.lexicon(&mut |lexicon| {
                let parts = alternatives.iter().flatten();
                for (part, list) in parts.zip(lists.iter_mut().flatten()) {
                    if let (Some(found), None) = (&mut *list, part.word())
                        && !part.meant(lexicon, found)
                    {
                        *list = None;
                    }
                }
            })?;
        }
        let lists = lists.into_iter().map(|lists| {
            let lists = lists
                .into_iter()
                .flatten()
                .map(|list| list.into_iter().chain([CROWDED.to_owned()]).collect::<Vec<String>>());
            Some(lists.collect::<Vec<_>>()).filter(|lists| !lists.is_empty())
        });
        Ok(lists.collect::<Option<_>>().map(Question))
    }

    /// Returns the entries that may have a match: all of them, if all are wanted or they are few.
    pub(crate) fn likely(&self, question: &Question, all: bool) -> Result<Likely, StoreError> {
        let limit = if all { usize::MAX } else { FEW };
        let mut found: BTreeMap<SessionKey, BTreeSet<EntryNumber>> = BTreeMap::new();
        for lists in &question.0 {
            let entries = self.words.entries(lists, None, limit)?;
            if entries.len() == limit {
                return Ok(Likely::Many);
            }
            for (session, entry) in entries {
                found.entry(session).or_default().insert(entry);
            }
        }
        let in_order =
            |(session, entries): (_, BTreeSet<_>)| (session, entries.into_iter().collect());
        Ok(Likely::All(found.into_iter().map(in_order).collect()))
    }

    /// Returns those of some entries of a session that may have a match, in order.
    pub(crate) fn likely_of(
        &self,
        question: &Question,
        session: SessionKey,
        range: &Range<EntryNumber>,
    ) -> Result<Vec<EntryNumber>, StoreError> {
        let mut found = BTreeSet::new();
        for lists in &question.0 {
            let entries = self.words.entries(lists, Some((session, range.clone())), usize::MAX)?;
            found.extend(entries.into_iter().map(|(_, entry)| entry));
        }
        Ok(found.into_iter().collect())
    }
}

/// Returns whether a session still has the history that the index has seen of it.
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

/// Returns the words of each of these entries that has any.
pub(crate) fn words(
    store: &dyn Store,
    session: &Session,
    range: Range<EntryNumber>,
) -> Result<Vec<(EntryNumber, BTreeSet<String>)>, StoreError> {
    let mut found = Vec::new();
    let entries: Vec<EntryNumber> = EntryNumber::each(range).collect();
    store.lines(session.key, &entries, &mut |entry, line| {
        // What is damaged is looked at by each search, which tells of it.
        let Ok(line) = line else {
            found.push((entry, BTreeSet::from([CROWDED.to_owned()])));
            return;
        };
        let Some(record) = Raw::object(&line) else { return };
        let mut gathered = Gathered::default();
        let messages = session.format.messages(record);
        passages(&messages, &mut |passage| gathered.add(&passage.text));
        if !gathered.words.is_empty() {
            found.push((entry, gathered.words));
        }
    })?;
    Ok(found)
}
