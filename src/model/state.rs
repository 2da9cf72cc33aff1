//! The state of a session: a fold over all its operations, in one place.
//!
//! Invariant: the next state depends only on the previous state and the operation, so a stored state can be resumed.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Base, Bulk, CheckpointNumber, Container, CoveredFile, CoveredRuns, EntryNumber, FileNumber,
    Generation, GenerationNumber, LineId, Malformed, Operation, OperationId, OperationNumber,
    Place, Position, Rotation, Run, Sidecar, Spans, Tagged, Text, Timestamp, Tombstones,
    tagged::{Field, Payload, each_field, put_field, tagged},
};

/// The initial branch of a session.
pub const MAIN: &str = "main";

/// The newest operation of a session, used for compare-and-swap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Newest {
    /// Its number.
    pub n: OperationNumber,
    /// Its hash.
    pub hash: OperationId,
    /// When it was executed.
    pub at: Timestamp,
    /// The number of entries that the session then had.
    pub entries: u64,
}

/// The current state of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The newest operation.
    pub newest: Option<Newest>,
    /// The locations of the files, in order of their numbers.
    pub files: Vec<Place>,
    /// The generations in order of their numbers, each with the operation that began it.
    pub generations: Vec<(OperationNumber, Generation)>,
    /// The newest run of each generation that has one.
    pub ends: BTreeMap<GenerationNumber, Run>,
    /// The spans of the generations that have few of them.
    pub spans: Spans,
    /// The number of checkpoints so far.
    pub checkpoints: u64,
    /// The operation and position of the newest checkpoint.
    pub checkpoint: Option<(OperationNumber, Position)>,
    /// The positions of all branches, without the hidden ones.
    pub branches: BTreeMap<String, Position>,
    /// The current branch, if an operation ever set one.
    pub current: Option<String>,
    /// The number of the live file.
    pub live: Option<FileNumber>,
    /// The salts of branch names chosen by people, so that a name has the same digest in all records of a session.
    pub salts: BTreeMap<String, [u8; 16]>,
    /// Whether lists hide the session.
    pub hidden: bool,
    /// The operations that undo another one, paired with the operation they undo.
    pub undos: Vec<(OperationNumber, OperationNumber)>,
    /// The rotations, each with its operation.
    pub rotations: Vec<(OperationNumber, Rotation)>,
    /// The compressed files, each with its operation and its index among that operation's files.
    pub containers: Vec<(OperationNumber, u64, Container)>,
    /// The numbers of the files that the agent deleted.
    pub gone: BTreeSet<FileNumber>,
    /// The bases of generations.
    pub bases: Vec<Base>,
    /// The operation with the waiting change; it contains the words that people wrote.
    pub waiting: Option<OperationNumber>,
    /// The lines with redacted bytes.
    pub tombstones: Tombstones,
    /// The files stored whole that have redacted bytes.
    pub covered_files: Vec<CoveredFile>,
    /// Runs from which unfinished lines were removed.
    pub covered_runs: Vec<CoveredRuns>,
    /// The first operation in which a newer program wrote something that this program does not know.
    pub unknown: Option<OperationNumber>,
    /// The newest version of each sidecar, with its operation and its index among that operation's files.
    pub sidecars: BTreeMap<FileNumber, (OperationNumber, u64, Sidecar)>,
}

impl State {
    /// Applies the next operation.
    pub fn apply(&mut self, operation: &Operation, bulk: &Bulk) {
        let n = operation.n;
        let entries = self.entries().saturating_add(operation.count());
        self.newest = Some(Newest { n, hash: operation.hash, at: operation.at, entries });
        let facts = &operation.facts;
        self.files.extend(facts.files.iter().map(|file| file.place.clone()));
        self.generations.extend(facts.generations.iter().map(|generation| (n, *generation)));
        for run in &bulk.runs {
            self.ends.insert(run.generation, run.clone());
            self.spans.grow(run);
        }
        self.checkpoints += bulk.checkpoints.len() as u64;
        if let Some(last) = bulk.checkpoints.last() {
            self.checkpoint = Some((n, last.place));
        }
        let current = facts.current.iter().filter_map(|step| step.to.as_ref());
        for words in
            facts.moves.iter().map(|step| &step.branch).chain(current).filter_map(Text::words)
        {
            self.salts.entry(words.text.clone()).or_insert(words.salt);
        }
        for step in &facts.moves {
            match step.to {
                Some(to) => self.branches.insert(step.branch.to_text(), to),
                None => self.branches.remove(&step.branch.to_text()),
            };
        }
        if let Some(step) = &facts.current {
            self.current = step.to.as_ref().map(Text::to_text);
        }
        if let Some(step) = &facts.live {
            self.live = step.to;
        }
        if let Some(step) = &facts.hidden {
            self.hidden = step.to.is_some();
        }
        self.undos.extend(operation.undoes().map(|undoes| (n, undoes)));
        self.rotations.extend(facts.rotations.iter().map(|rotation| (n, rotation.clone())));
        let containers = (0..).zip(&facts.containers);
        self.containers.extend(containers.map(|(at, container)| (n, at, container.clone())));
        let sidecars = (facts.containers.len() as u64..).zip(&facts.sidecars);
        self.sidecars.extend(sidecars.map(|(at, kept)| (kept.file, (n, at, kept.clone()))));
        self.gone.extend(&facts.gone);
        for step in facts.live.iter().filter_map(|step| step.to) {
            self.gone.remove(&step);
        }
        self.bases.extend(facts.bases.iter().cloned());
        if let Some(step) = &facts.waiting {
            self.waiting = step.to;
        }
        self.tombstones.extend(&facts.tombstones);
        self.covered_files.extend(facts.covered_files.iter().cloned());
        self.covered_runs.extend(facts.covered_runs.iter().cloned());
        if !operation.unknown.is_empty() {
            self.unknown = self.unknown.or(Some(n));
        }
    }

    /// Returns the number of operations.
    pub fn operations(&self) -> u64 {
        self.newest.map_or(0, |newest| newest.n.get())
    }

    /// Returns the number of the next operation.
    pub fn next_operation(&self) -> OperationNumber {
        self.newest.map_or(OperationNumber::FIRST, |newest| newest.n.next())
    }

    /// Returns the number of the next entry.
    pub fn next_entry(&self) -> EntryNumber {
        EntryNumber::FIRST.plus(self.entries())
    }

    /// Returns the number of the next checkpoint.
    pub fn next_checkpoint(&self) -> CheckpointNumber {
        CheckpointNumber::FIRST.plus(self.checkpoints)
    }

    /// Returns the number of the next generation.
    pub fn next_generation(&self) -> GenerationNumber {
        GenerationNumber::FIRST.plus(self.generations.len() as u64)
    }

    /// Returns the number of the next file.
    pub fn next_file(&self) -> FileNumber {
        FileNumber::FIRST.plus(self.files.len() as u64)
    }

    /// Returns the number of entries.
    pub fn entries(&self) -> u64 {
        self.newest.map_or(0, |newest| newest.entries)
    }

    /// Returns the time of the newest operation.
    pub fn at(&self) -> Timestamp {
        self.newest.map_or(Timestamp::default(), |newest| newest.at)
    }

    /// Returns the hash of the newest operation.
    pub fn hash(&self) -> Option<OperationId> {
        self.newest.map(|newest| newest.hash)
    }

    /// Returns the name of the current branch.
    pub fn current(&self) -> &str {
        self.current.as_deref().unwrap_or(MAIN)
    }

    /// Returns the position of the current branch.
    pub fn position(&self) -> Option<Position> {
        self.branches.get(self.current()).copied()
    }

    /// Returns the generation of the current branch, or number 0 if the branch has no position.
    pub fn generation(&self) -> GenerationNumber {
        self.position().unwrap_or_default().generation
    }

    /// Returns the newest run of the current branch's generation.
    pub fn growth(&self) -> Option<&Run> {
        self.ends.get(&self.position()?.generation)
    }

    /// Returns the number of the newest checkpoint if it is at this position and not undone.
    pub fn checkpoint_at(&self, place: Position) -> Option<CheckpointNumber> {
        let (operation, _) = self.checkpoint.filter(|(_, newest)| *newest == place)?;
        (!self.undone().contains(&operation)).then(|| self.next_checkpoint().minus(1))
    }

    /// Returns the location of a file.
    pub fn file(&self, n: FileNumber) -> Option<&Place> {
        self.files.get(n.index()?)
    }

    /// Returns the file of a generation.
    pub fn file_of(&self, generation: GenerationNumber) -> Option<FileNumber> {
        self.generations.get(generation.index()?).and_then(|(_, generation)| generation.file)
    }

    /// Returns the ids of the original and the current line of an entry with redacted bytes.
    pub fn covered(&self, entry: EntryNumber) -> Option<(LineId, LineId)> {
        let newest = self.tombstones.newest(entry)?;
        Some((newest.line?, newest.covered?))
    }

    /// Returns a map from replacement lines to the original ones.
    pub fn coverings(&self) -> BTreeMap<LineId, LineId> {
        self.tombstones.iter().filter_map(|one| Some((one.covered?, one.line?))).collect()
    }

    /// Returns the current digest and size of a file that an operation stored whole, if bytes of it were redacted.
    pub fn covered_file(&self, operation: OperationNumber, at: u64) -> Option<&CoveredFile> {
        let is_it = |one: &&CoveredFile| (one.operation, one.at) == (operation, at);
        self.covered_files.iter().rev().find(is_it)
    }

    /// Returns true if any bytes of the session were redacted.
    pub fn is_covered(&self) -> bool {
        !self.tombstones.is_empty()
            || !self.covered_files.is_empty()
            || !self.covered_runs.is_empty()
    }

    /// Returns true if these bytes are an unfinished line that was removed.
    pub fn has_taken_out(&self, unfinished: &[u8]) -> bool {
        let mut lines = self.covered_runs.iter().flat_map(|runs| &runs.lines).peekable();
        let found = lines.peek().map(|_| LineId::of(unfinished.trim_ascii()));
        found.is_some_and(|found| lines.any(|line| *line == found))
    }

    /// Returns true if an undo or a redo began this generation.
    pub fn is_restored(&self, generation: GenerationNumber) -> bool {
        let begun = self.generations.iter().find(|(_, each)| each.n == generation);
        begun.is_some_and(|(by, _)| self.undos.iter().any(|(n, _)| n == by))
    }

    /// Returns the undone operations: those undone by an operation that is not itself undone.
    pub fn undone(&self) -> BTreeSet<OperationNumber> {
        let mut undone = BTreeSet::new();
        for (n, undoes) in self.undos.iter().rev() {
            if !undone.contains(n) {
                undone.insert(*undoes);
            }
        }
        undone
    }
}

tagged!(Newest { 1: n, 2: hash, 3: at, 4: entries });

tagged!(State {
    1: newest,
    2: files,
    3: generations,
    4: ends,
    5: checkpoints,
    6: checkpoint,
    7: branches,
    8: current,
    9: live,
    10: hidden,
    11: undos,
    12: rotations,
    13: containers,
    14: gone,
    15: bases,
    16: waiting,
    17: tombstones,
    18: unknown,
    19: sidecars,
    21: covered_files,
    22: spans,
    23: salts,
    24: covered_runs,
});

/// A fact with its operation.
impl<T: Payload> Tagged for (OperationNumber, T) {
    fn write(&self, out: &mut Vec<u8>) {
        Field::put(&self.0, 1, out);
        put_field(3, &self.1, out);
    }

    fn read(bytes: &[u8], unknown: &mut Vec<u64>) -> Result<Self, Malformed> {
        let (operation, at, fact) = Tagged::read(bytes, unknown)?;
        if at == 0 { Ok((operation, fact)) } else { Err(Malformed("a fact has a place")) }
    }

    fn texts(&mut self, each: &mut dyn FnMut(&mut Text)) {
        self.1.texts(each);
    }
}

/// A fact with its operation and its index in it.
impl<T: Payload> Tagged for (OperationNumber, u64, T) {
    fn write(&self, out: &mut Vec<u8>) {
        Field::put(&self.0, 1, out);
        Field::put(&self.1, 2, out);
        put_field(3, &self.2, out);
    }

    fn read(bytes: &[u8], unknown: &mut Vec<u64>) -> Result<Self, Malformed> {
        let (mut operation, mut at, mut fact) = (OperationNumber::default(), 0, None);
        each_field(bytes, |tag, payload| {
            match tag {
                1 => Field::take(&mut operation, payload, unknown)?,
                2 => Field::take(&mut at, payload, unknown)?,
                3 => Field::take(&mut fact, payload, unknown)?,
                other => unknown.push(other),
            }
            Ok(())
        })?;
        Ok((operation, at, fact.ok_or(Malformed("an operation has no fact"))?))
    }

    fn texts(&mut self, each: &mut dyn FnMut(&mut Text)) {
        self.2.texts(each);
    }
}

/// Maps whose values contain their key.
macro_rules! keyed {
    ($($key:ty, $value:ty: $parts:pat => $own:expr;)+) => {$(
        impl Field for BTreeMap<$key, $value> {
            fn put(&self, tag: u64, out: &mut Vec<u8>) {
                for value in self.values() {
                    put_field(tag, value, out);
                }
            }

            fn take(&mut self, payload: &[u8], unknown: &mut Vec<u64>) -> Result<(), Malformed> {
                let value = Payload::unpack(payload, unknown)?;
                let $parts = &value;
                self.insert(*$own, value);
                Ok(())
            }
        }
    )+};
}

keyed! {
    GenerationNumber, Run: Run { generation, .. } => generation;
    FileNumber, (OperationNumber, u64, Sidecar): (_, _, Sidecar { file, .. }) => file;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Digest, Span, Tombstone};

    /// Returns a state that holds something of every kind; values that are zero or empty are among it.
    fn everything() -> State {
        let [n, other] = [1, 300].map(OperationNumber::new);
        let file = FileNumber::new(2);
        let generation = GenerationNumber::new(2);
        let position = Position { generation, head: Some(EntryNumber::new(5)), horizon: 6 };
        let digest = Digest::new([4; 32]);
        let run =
            Run { generation, start: 1, first: EntryNumber::new(5), count: 2, ..Run::default() };
        let sidecar = |n| Sidecar { file: FileNumber::new(n), digest, size: 4 };
        let mut spans = Spans::default();
        for span in [Span { generation, count: 2, ..Span::default() }, Span::default()] {
            Field::take(&mut spans, &span.to_bytes(), &mut Vec::new()).unwrap();
        }
        let mut tombstones = Tombstones::default();
        tombstones.extend(&[
            Tombstone { entry: EntryNumber::new(5), size: 12, ..Tombstone::default() },
            Tombstone::default(),
        ]);
        State {
            newest: Some(Newest {
                n: other,
                hash: OperationId::new([9; 32]),
                at: Timestamp(-3),
                entries: 6,
            }),
            files: vec![Place::Store(b"a".to_vec()), Place::default()],
            generations: vec![
                (n, Generation { n: generation, file: Some(file) }),
                (OperationNumber::default(), Generation::default()),
            ],
            ends: [
                (generation, run.clone()),
                (generation.next(), Run { generation: generation.next(), ..run }),
            ]
            .into(),
            spans,
            checkpoints: 3,
            checkpoint: Some((other, Position::default())),
            branches: [(String::new(), position), ("main".into(), Position::default())].into(),
            current: Some("main".into()),
            live: Some(file),
            salts: [(String::new(), [0; 16]), ("main".into(), [7; 16])].into(),
            hidden: true,
            undos: vec![(other, n), (n, OperationNumber::default())],
            rotations: vec![(n, Rotation { file, aside: b"x".to_vec(), ..Rotation::default() })],
            containers: vec![
                (n, 0, Container { generation, digest, size: 4 }),
                (other, 1, Container::default()),
            ],
            gone: [file, FileNumber::new(200)].into(),
            bases: vec![Base { generation, format: "codex".into(), ..Base::default() }],
            waiting: Some(n),
            tombstones,
            covered_files: vec![CoveredFile { operation: n, at: 1, digest, size: 4, rule: None }],
            covered_runs: vec![CoveredRuns {
                operation: n,
                digest,
                lines: vec![LineId::new([5; 32])],
            }],
            unknown: Some(other),
            sidecars: [2, 3].map(|n| (FileNumber::new(n), (other, n - 2, sidecar(n)))).into(),
        }
    }

    #[test]
    fn the_encoding_of_a_state_stays_as_it_is() {
        let state = everything();
        let bytes = state.to_bytes();
        let rows: Vec<String> =
            bytes.chunks(24).map(|row| row.escape_ascii().to_string()).collect();
        insta::assert_snapshot!(rows.join("\n"), @r"
        \x01,\x01\x02\xac\x02\x02 \t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t
        \t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\x03\x01\x05\x04\x01\x06\x02\x03
        \x03\x01a\x02\x00\x03\x0b\x01\x01\x01\x03\x06\x01\x01\x02\x02\x01\x02\x03\x02\x03\x00\x04\x0c
        \x01\x01\x02\x02\x01\x01\x03\x01\x05\x04\x01\x02\x04\x0c\x01\x01\x03\x02\x01\x01\x03\x01\x05\x04
        \x01\x02\x05\x01\x03\x06\x06\x01\x02\xac\x02\x03\x00\x07\r\x01\x00\x02\t\x01\x01\x02\x02\x01
        \x05\x03\x01\x06\x07\x06\x01\x04main\x08\x04main\t\x01\x02\n\x01\x01
        \x0b\x07\x01\x02\xac\x02\x03\x01\x01\x0b\x06\x01\x01\x01\x03\x01\x00\x0c\x0b\x01\x01\x01\x03\x06
        \x01\x01\x02\x02\x01x\r-\x01\x01\x01\x03(\x01\x01\x02\x02 \x04\x04\x04\x04\x04\x04
        \x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04
        \x04\x04\x03\x01\x04\r\t\x01\x02\xac\x02\x02\x01\x01\x03\x00\x0e\x01\x02\x0e\x02\xc8\x01\x0f
        \n\x01\x01\x02\x02\x05codex\x10\x01\x01\x11\x06\x01\x01\x05\x02\x01\x0c\x11\x00
        \x12\x02\xac\x02\x13.\x01\x02\xac\x02\x03(\x01\x01\x02\x02 \x04\x04\x04\x04\x04\x04\x04
        \x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04
        \x04\x03\x01\x04\x131\x01\x02\xac\x02\x02\x01\x01\x03(\x01\x01\x03\x02 \x04\x04\x04\x04
        \x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04
        \x04\x04\x04\x04\x03\x01\x04\x15+\x01\x01\x01\x02\x01\x01\x03 \x04\x04\x04\x04\x04\x04\x04
        \x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04
        \x04\x04\x01\x04\x16\x06\x01\x01\x02\x04\x01\x02\x16\x00\x17\x14\x01\x00\x02\x10\x00\x00\x00\x00
        \x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x17\x18\x01\x04main\x02\x10\x07\x07
        \x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x18G\x01\x01\x01\x02 \x04\x04\x04
        \x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04\x04
        \x04\x04\x04\x04\x04\x03 \x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05
        \x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05
        ");
        let mut unknown = Vec::new();
        assert_eq!(State::read(&bytes, &mut unknown), Ok(state));
        assert_eq!(unknown, [0; 0]);
        assert_eq!(State::default().to_bytes(), b"");
    }

    /// The operation, the request that it makes, and the change that waits after it.
    #[test]
    fn at_most_one_change_waits_and_it_is_the_newest_that_was_asked_for() {
        use crate::model::{Facts, Request, Step};
        let number = OperationNumber::new;
        let set = |from: Option<u64>, to: Option<u64>| {
            let waiting = Some(Step { from: from.map(number), to: to.map(number) });
            let request = to.map(|_| Request::default());
            Facts { request, waiting, ..Facts::default() }
        };
        let steps = [
            (set(None, Some(1)), Some(1)),
            (Facts::default(), Some(1)),
            (set(Some(1), Some(3)), Some(3)),
            (set(Some(3), None), None),
            (Facts::default(), None),
            (set(None, Some(3)), Some(3)),
        ];
        let mut state = State::default();
        for (n, (facts, waits)) in (1..).map(number).zip(steps) {
            let operation = Operation { n, facts, ..Operation::default() };
            state.apply(&operation, &Bulk::default());
            assert_eq!(state.waiting, waits.map(number), "{n:?}");
        }
    }

    #[test]
    fn an_undo_that_is_undone_undoes_nothing() {
        let check = |undos: &[(u64, u64)], expected: &[u64]| {
            let number = |(n, undoes): &(u64, u64)| [n, undoes].map(|n| OperationNumber::new(*n));
            let undos = undos.iter().map(number).map(<(_, _)>::from).collect();
            let undone = State { undos, ..State::default() }.undone();
            assert_eq!(Vec::from_iter(undone), expected);
        };
        check(&[(3, 1)], &[1]);
        check(&[(3, 1), (4, 3)], &[3]);
        check(&[(3, 1), (4, 3), (5, 1)], &[1, 3]);
    }
}
