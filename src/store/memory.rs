//! The reference implementation: obviously right, and the oracle of the tests.

use std::{collections::BTreeMap, ops::Range};

use crate::model::{
    Card, Checkpoint, Entry, Facts, Kind, LineId, Mark, NameTag, Operation, OperationId, Origin,
    Position, Record, Run, SessionName, Tie, TieKind,
};
use crate::store::{
    Commit, Derived, FactKind, Fault, Find, Listed, Newest, SessionFilter, SessionKey, Sighting,
    Sizes, Store, StoreError, Tip,
};

/// A store that lasts as long as its value; also what a file is read into that is looked at without a store.
#[derive(Debug, Default)]
pub struct MemoryStore {
    sessions: Vec<Held>,
    lines: BTreeMap<LineId, Vec<u8>>,
    sightings: BTreeMap<Vec<u8>, Sighting>,
    counts: BTreeMap<(u64, LineId), Vec<u64>>,
}

#[derive(Debug)]
struct Held {
    name: SessionName,
    operations: Vec<(Operation, Facts)>,
    entries: Vec<(Entry, LineId)>,
    records: Vec<Record>,
    twins: Vec<NameTag>,
    ties: BTreeMap<u64, Vec<Tie>>,
    card: Card,
}

impl MemoryStore {
    /// Makes an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether a session is a sub-agent of one that is there.
    fn is_sub_agent(&self, listed: &Listed) -> bool {
        let ties = self.ties(listed.key).unwrap_or_default();
        ties.iter().flat_map(|(_, ties)| ties).any(|tie| {
            let parent = SessionName { format: listed.name.format.clone(), id: tie.other.clone() };
            tie.kind == TieKind::SubAgent && self.sessions.iter().any(|held| held.name == parent)
        })
    }

    fn held(&self, session: SessionKey) -> Result<&Held, StoreError> {
        let index = usize::try_from(session.0).ok();
        index.and_then(|index| self.sessions.get(index)).ok_or_else(|| {
            StoreError::corrupt("a session", format!("no session has the key {}", session.0))
        })
    }
}

impl Held {
    fn facts(&self) -> impl DoubleEndedIterator<Item = &Facts> {
        self.operations.iter().map(|(_, facts)| facts)
    }

    fn heads(&self) -> BTreeMap<&str, Option<Position>> {
        self.facts().flat_map(|f| &f.moves).map(|step| (step.branch.as_str(), step.to)).collect()
    }

    fn runs(&self, generation: u64) -> impl DoubleEndedIterator<Item = &Run> {
        self.facts().flat_map(|f| &f.runs).filter(move |run| run.generation == generation)
    }

    fn tie(&mut self, ties: Vec<(u64, Vec<Tie>)>) {
        for (generation, mut ties) in ties {
            ties.sort();
            ties.dedup();
            self.ties.insert(generation, ties);
        }
        self.ties.retain(|_, ties| !ties.is_empty());
    }

    fn newest(&self) -> Option<Newest> {
        let (operation, _) = self.operations.last()?;
        let entries = self.entries.len() as u64;
        Some(Newest { n: operation.n, hash: operation.hash, at: operation.at, entries })
    }

    fn tip(&self) -> Tip {
        let marks: BTreeMap<&str, Option<&str>> = self
            .facts()
            .flat_map(|f| &f.marks)
            .map(|mark| (mark.name.as_str(), mark.to.as_deref()))
            .collect();
        let current = marks.get(Mark::CURRENT).copied().flatten().unwrap_or("main");
        let position = self.heads().get(current).copied().flatten();
        Tip {
            newest: self.newest(),
            files: self.facts().map(|f| f.files.len() as u64).sum(),
            generations: self.facts().map(|f| f.generations.len() as u64).sum(),
            checkpoints: self.facts().map(|f| f.checkpoints.len() as u64).sum(),
            checkpoint: self
                .operations
                .iter()
                .flat_map(|(operation, facts)| {
                    facts.checkpoints.iter().map(|c| (operation.n, c.place))
                })
                .next_back(),
            growth: position.and_then(|at| self.runs(at.generation).next_back().cloned()),
            position,
            marks: marks
                .iter()
                .filter_map(|(name, value)| Some(((*name).to_owned(), (*value)?.to_owned())))
                .collect(),
        }
    }
}

/// Returns the part of `items` whose numbers, counted from 1, lie in `range`.
fn numbered<'a, T>(items: &'a [T], range: &Range<u64>) -> impl Iterator<Item = &'a T> + use<'a, T> {
    let at = |n: u64| usize::try_from(n.saturating_sub(1)).unwrap_or(usize::MAX);
    items.iter().take(at(range.end)).skip(at(range.start.max(1)))
}

impl Store for MemoryStore {
    fn sessions(&self, filter: &SessionFilter) -> Result<Vec<Listed>, StoreError> {
        let mut found: Vec<Listed> = (0..)
            .zip(&self.sessions)
            .map(|(key, held)| Listed {
                key: SessionKey(key),
                name: held.name.clone(),
                card: held.card.clone(),
            })
            .filter(|listed| filter.matches(listed))
            .filter(|listed| filter.sub_agents || !self.is_sub_agent(listed))
            .collect();
        found.sort_by_key(|listed| std::cmp::Reverse((listed.card.active, listed.key)));
        found.truncate(filter.limit.unwrap_or(usize::MAX));
        Ok(found)
    }

    fn names(&self) -> Result<Vec<(SessionKey, SessionName)>, StoreError> {
        let held = self.sessions.iter().map(|held| held.name.clone());
        Ok((0..).map(SessionKey).zip(held).collect())
    }

    fn id(&self) -> Result<Option<OperationId>, StoreError> {
        let first = self.sessions.first().and_then(|session| session.operations.first());
        Ok(first.map(|(operation, _)| operation.hash))
    }

    fn session(&self, name: &SessionName) -> Result<Option<SessionKey>, StoreError> {
        Ok((0..)
            .zip(&self.sessions)
            .find(|(_, held)| held.name == *name)
            .map(|(key, _)| SessionKey(key)))
    }

    fn tip(&self, session: SessionKey) -> Result<Tip, StoreError> {
        Ok(self.held(session)?.tip())
    }

    fn operations(
        &self,
        session: SessionKey,
        range: Range<u64>,
    ) -> Result<Vec<Operation>, StoreError> {
        Ok(numbered(&self.held(session)?.operations, &range)
            .map(|(operation, _)| operation.clone())
            .collect())
    }

    fn undos(&self, session: SessionKey) -> Result<Vec<(u64, u64)>, StoreError> {
        let operations = self.held(session)?.operations.iter();
        Ok(operations.filter_map(|(operation, _)| Some((operation.n, operation.undoes?))).collect())
    }

    fn facts(
        &self,
        session: SessionKey,
        range: Range<u64>,
        kinds: &[FactKind],
    ) -> Result<Vec<(u64, Facts)>, StoreError> {
        let select = |all: &Facts| {
            let mut facts = Facts::default();
            for kind in kinds {
                match kind {
                    FactKind::Entries => facts.entries.clone_from(&all.entries),
                    FactKind::Files => facts.files.clone_from(&all.files),
                    FactKind::Generations => facts.generations.clone_from(&all.generations),
                    FactKind::Runs => facts.runs.clone_from(&all.runs),
                    FactKind::Moves => facts.moves.clone_from(&all.moves),
                    FactKind::Marks => facts.marks.clone_from(&all.marks),
                    FactKind::Checkpoints => facts.checkpoints.clone_from(&all.checkpoints),
                    FactKind::Origins => facts.origins.clone_from(&all.origins),
                    FactKind::Rotations => facts.rotations.clone_from(&all.rotations),
                }
            }
            facts
        };
        let operations = numbered(&self.held(session)?.operations, &range);
        Ok(operations
            .map(|(operation, facts)| (operation.n, select(facts)))
            .filter(|(_, facts)| *facts != Facts::default())
            .collect())
    }

    fn checkpoints(
        &self,
        session: SessionKey,
        range: Range<u64>,
    ) -> Result<Vec<(u64, Checkpoint)>, StoreError> {
        let operations = self.held(session)?.operations.iter();
        let all = operations.flat_map(|(operation, facts)| {
            facts.checkpoints.iter().map(|checkpoint| (operation.n, checkpoint.clone()))
        });
        Ok(all.filter(|(_, checkpoint)| range.contains(&checkpoint.n)).collect())
    }

    fn origins(
        &self,
        session: SessionKey,
        entries: Range<u64>,
    ) -> Result<Vec<(u64, Origin)>, StoreError> {
        let operations = self.held(session)?.operations.iter();
        let all = operations.flat_map(|(operation, facts)| {
            facts.origins.iter().map(|origin| (operation.n, *origin))
        });
        let mut found: Vec<_> = all.filter(|(_, found)| entries.contains(&found.entry)).collect();
        found.sort_by_key(|(_, found)| found.entry);
        Ok(found)
    }

    fn branches(&self, session: SessionKey) -> Result<Vec<(String, Position)>, StoreError> {
        let heads = self.held(session)?.heads();
        Ok(heads.into_iter().filter_map(|(branch, at)| Some((branch.to_owned(), at?))).collect())
    }

    fn files(&self, path: &[u8]) -> Result<Vec<(SessionKey, SessionName, u64)>, StoreError> {
        let sessions = (0..).map(SessionKey).zip(&self.sessions);
        let files = sessions.flat_map(|(key, held)| {
            let files = held.facts().flat_map(|facts| &facts.files);
            let found = files.filter(|file| file.path == path);
            found.map(move |file| (key, held.name.clone(), file.n))
        });
        Ok(files.collect())
    }

    fn runs(
        &self,
        session: SessionKey,
        generation: u64,
        from: u64,
    ) -> Result<Vec<Run>, StoreError> {
        let runs = self.held(session)?.runs(generation);
        Ok(runs.filter(|run| from == 0 || run.end() > from).cloned().collect())
    }

    fn entries(&self, session: SessionKey, range: Range<u64>) -> Result<Vec<Entry>, StoreError> {
        Ok(numbered(&self.held(session)?.entries, &range).map(|(entry, _)| *entry).collect())
    }

    fn line_ids(
        &self,
        session: SessionKey,
        range: Range<u64>,
    ) -> Result<Vec<(LineId, u64)>, StoreError> {
        Ok(numbered(&self.held(session)?.entries, &range)
            .map(|(_, line)| (*line, self.lines.get(line).map_or(0, |line| line.len() as u64)))
            .collect())
    }

    fn find(&self, session: SessionKey, find: &Find) -> Result<Vec<u64>, StoreError> {
        let held = self.held(session)?;
        let by_id = |matches: &dyn Fn(&Entry) -> bool| {
            held.entries
                .iter()
                .filter(|(entry, _)| matches(entry))
                .map(|(entry, _)| entry.n)
                .collect()
        };
        Ok(match find {
            Find::Id(id) => by_id(&|entry| entry.id == *id),
            Find::Prefix(prefix) => by_id(&|entry| prefix.matches(&entry.id)),
            Find::Name(low, high) => {
                let named = |r: &&Record| r.name.is_some_and(|name| *low <= name && name <= *high);
                held.records.iter().filter(named).map(|record| record.n).collect()
            }
        })
    }

    fn lines(
        &self,
        session: SessionKey,
        entries: &[u64],
        each: &mut dyn FnMut(u64, Vec<u8>),
    ) -> Result<(), StoreError> {
        let held = self.held(session)?;
        for &n in entries {
            let line = numbered(&held.entries, &(n..n + 1))
                .next()
                .and_then(|(_, line)| self.lines.get(line));
            each(
                n,
                line.ok_or_else(|| StoreError::corrupt(format!("entry {n}"), "it has no line"))?
                    .clone(),
            );
        }
        Ok(())
    }

    fn records(&self, session: SessionKey, range: Range<u64>) -> Result<Vec<Record>, StoreError> {
        Ok(numbered(&self.held(session)?.records, &range).cloned().collect())
    }

    fn boundary(&self, session: SessionKey, range: Range<u64>) -> Result<Option<u64>, StoreError> {
        let records = numbered(&self.held(session)?.records, &range);
        let boundaries = records.filter(|record| record.kind == Kind::Boundary);
        Ok(boundaries.last().map(|record| record.n))
    }

    fn twins(&self, session: SessionKey) -> Result<Vec<NameTag>, StoreError> {
        Ok(self.held(session)?.twins.clone())
    }

    fn ties(&self, session: SessionKey) -> Result<Vec<(u64, Vec<Tie>)>, StoreError> {
        Ok(self.held(session)?.ties.clone().into_iter().collect())
    }

    fn tied(&self, format: &str, tie: &Tie) -> Result<Vec<(SessionKey, SessionName)>, StoreError> {
        let has = |held: &Held| {
            held.name.format == format && held.ties.values().flatten().any(|other| other == tie)
        };
        let mut found: Vec<_> = (0..)
            .map(SessionKey)
            .zip(&self.sessions)
            .filter(|(_, held)| has(held))
            .map(|(key, held)| (key, held.name.clone()))
            .collect();
        found.sort_by(|(_, a), (_, b)| a.cmp(b));
        Ok(found)
    }

    fn card(&self, session: SessionKey) -> Result<Card, StoreError> {
        Ok(self.held(session)?.card.clone())
    }

    fn hold(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn release(&self) {}

    fn commit(&mut self, commit: Commit) -> Result<SessionKey, StoreError> {
        let key = self.session(&commit.session)?;
        let newest = key.map(|key| self.held(key)).transpose()?.and_then(Held::newest);
        let link = |n| Some(numbered(&self.held(key?).ok()?.entries, &(n..n + 1)).next()?.0.id);
        if let Some(fault) = commit.fault(newest.as_ref(), link) {
            return Err(fault);
        }
        let key = key.unwrap_or_else(|| {
            self.sessions.push(Held {
                name: commit.session.clone(),
                operations: Vec::new(),
                entries: Vec::new(),
                records: Vec::new(),
                twins: Vec::new(),
                ties: BTreeMap::new(),
                card: Card::default(),
            });
            SessionKey(i64::try_from(self.sessions.len() - 1).unwrap_or(i64::MAX))
        });
        let Some(held) = usize::try_from(key.0).ok().and_then(|index| self.sessions.get_mut(index))
        else {
            return Err(StoreError::corrupt("a session", "it vanished"));
        };
        held.entries.extend(
            commit.facts.entries.iter().copied().zip(commit.lines.iter().map(|line| line.id)),
        );
        held.operations.push((commit.operation, commit.facts));
        held.records.extend(commit.records);
        held.tie(commit.ties);
        held.twins.extend(commit.twins);
        held.twins.sort_unstable();
        held.twins.dedup();
        if let Some(card) = commit.card {
            held.card = card;
        }
        self.lines.extend(commit.lines.into_iter().map(|line| (line.id, line.bytes)));
        Ok(key)
    }

    fn gather(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn settle(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn is_stale(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    fn freshened(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn derive(&mut self, session: SessionKey, derived: &Derived) -> Result<(), StoreError> {
        self.held(session)?;
        if let Some(held) =
            usize::try_from(session.0).ok().and_then(|index| self.sessions.get_mut(index))
        {
            held.records.clone_from(&derived.records);
            held.twins.clone_from(&derived.twins);
            held.tie(derived.ties.clone());
            let keeps = |n: &u64| derived.ties.iter().any(|(generation, _)| generation == n);
            held.ties.retain(|generation, _| keeps(generation));
            held.card = derived.card.clone();
        }
        Ok(())
    }

    fn sighting(&self, path: &[u8]) -> Result<Option<Sighting>, StoreError> {
        Ok(self.sightings.get(path).cloned())
    }

    fn sight(&mut self, sightings: &[Sighting]) -> Result<(), StoreError> {
        self.sightings.extend(sightings.iter().map(|seen| (seen.path.clone(), seen.clone())));
        Ok(())
    }

    fn counts(
        &self,
        session: SessionKey,
        range: Range<u64>,
        rule: u64,
    ) -> Result<Vec<(u64, Vec<u64>)>, StoreError> {
        let entries = numbered(&self.held(session)?.entries, &range);
        let known = |(entry, line): &(Entry, LineId)| {
            Some((entry.n, self.counts.get(&(rule, *line))?.clone()))
        };
        Ok(entries.filter_map(known).collect())
    }

    fn keep_counts(
        &mut self,
        session: SessionKey,
        rule: u64,
        counts: &[(u64, Vec<u64>)],
    ) -> Result<(), StoreError> {
        let mut kept = Vec::with_capacity(counts.len());
        let held = self.held(session)?;
        for (n, tokens) in counts {
            let line = numbered(&held.entries, &(*n..n + 1)).next();
            kept.extend(line.map(|(_, line)| ((rule, *line), tokens.clone())));
        }
        self.counts.extend(kept);
        Ok(())
    }

    fn check(&self, report: &mut dyn FnMut(Fault)) -> Result<(), StoreError> {
        for (id, line) in &self.lines {
            if LineId::of(line) != *id {
                report(Fault {
                    session: None,
                    item: format!("line {id:.12}"),
                    problem: "its bytes are others".into(),
                });
            }
        }
        Ok(())
    }

    fn sizes(&self) -> Result<Sizes, StoreError> {
        let raw = self.lines.values().map(|line| line.len() as u64).sum();
        Ok(Sizes { lines: self.lines.len() as u64, raw, kept: raw, texts: 0, stored: raw })
    }
}

impl SessionFilter {
    /// Returns whether a session belongs in the list.
    fn matches(&self, listed: &Listed) -> bool {
        let wanted = |filter: &Option<String>, value: Option<&str>| {
            filter.as_deref().is_none_or(|filter| Some(filter) == value)
        };
        (self.hidden || !listed.card.hidden)
            && wanted(&self.format, Some(&listed.name.format))
            && wanted(&self.folder, listed.card.folder.as_deref())
            && wanted(&self.title, listed.card.title.as_deref())
            && self.since.is_none_or(|since| since <= listed.card.active)
            && self.prefix.as_deref().is_none_or(|prefix| listed.name.id.starts_with(prefix))
    }
}
