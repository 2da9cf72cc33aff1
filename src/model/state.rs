//! The state of a session: the result of all its operations, by one fold in one place.
//!
//! Invariant: the state after an operation is a function of the state before and of the operation, so that a kept
//! state goes on from where it was kept.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Base, Bulk, CheckpointNumber, Container, CoveredFile, EntryNumber, FileNumber, Generation,
    GenerationNumber, LineId, Malformed, Operation, OperationId, OperationNumber, Pending, Place,
    Position, Rotation, Run, Sidecar, Span, Spans, Tagged, Text, Timestamp, Tombstone, Tombstones,
    tagged::tagged,
};

/// The branch with which a session begins.
pub const MAIN: &str = "main";

/// The newest operation of a session, the token of compare-and-swap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Newest {
    /// Its number.
    pub n: OperationNumber,
    /// Its hash.
    pub hash: OperationId,
    /// When it was.
    pub at: Timestamp,
    /// How many entries there are since.
    pub entries: u64,
}

/// Where a session stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The newest operation.
    pub newest: Option<Newest>,
    /// Where the files lie, in the order of their numbers.
    pub files: Vec<Place>,
    /// The generations in the order of their numbers, each behind the operation that began it.
    pub generations: Vec<(OperationNumber, Generation)>,
    /// The newest run of each generation that has one.
    pub ends: BTreeMap<GenerationNumber, Run>,
    /// The spans of the generations that have few of them.
    pub spans: Spans,
    /// How many checkpoints have been given.
    pub checkpoints: u64,
    /// The newest checkpoint's operation and place.
    pub checkpoint: Option<(OperationNumber, Position)>,
    /// Where every branch stands, hidden ones left out.
    pub branches: BTreeMap<String, Position>,
    /// The current branch, if an operation ever named one.
    pub current: Option<String>,
    /// The number of the live file.
    pub live: Option<FileNumber>,
    /// The salts of the names of branches that persons gave, so that a name has one digest in all records of a session.
    pub salts: BTreeMap<String, [u8; 16]>,
    /// Whether lists leave the session out.
    pub hidden: bool,
    /// The operations that take back another, each with the one that it takes back.
    pub undos: Vec<(OperationNumber, OperationNumber)>,
    /// The rotations, each behind its operation.
    pub rotations: Vec<(OperationNumber, Rotation)>,
    /// The compressed files, each behind its operation and its place among the files which that keeps.
    pub containers: Vec<(OperationNumber, u64, Container)>,
    /// The numbers of the files that their agent deleted.
    pub gone: BTreeSet<FileNumber>,
    /// Where generations begin elsewhere.
    pub bases: Vec<Base>,
    /// The changes that wait, each behind its operation, which has the words that persons gave.
    pub pending: Vec<(OperationNumber, Pending)>,
    /// The lines that were taken out.
    pub tombstones: Tombstones,
    /// What is known of secrets that were taken out, by which they are kept out of what comes later.
    pub kept_out: Vec<Vec<u8>>,
    /// The files kept whole of which bytes were taken out.
    pub covered_files: Vec<CoveredFile>,
    /// The first operation in which a newer program wrote something that this one does not know.
    pub unknown: Option<OperationNumber>,
    /// The files next to the session's own as they were last, each behind its operation and its place among the files which
    /// that keeps.
    pub sidecars: BTreeMap<FileNumber, (OperationNumber, u64, Sidecar)>,
}

impl State {
    /// Takes in the next operation.
    pub fn apply(&mut self, operation: &Operation, bulk: &Bulk) {
        let n = operation.n;
        let entries = self.entries() + operation.count();
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
        self.pending.extend(facts.pending.iter().cloned().map(|mut pending| {
            // A state that is kept holds no words of persons except the names of branches; the operation has them.
            Tagged::texts(&mut pending, &mut Text::forget);
            (n, pending)
        }));
        self.pending.retain(|(n, _)| !facts.carried.contains(n));
        self.tombstones.extend(&facts.tombstones);
        self.kept_out.extend(facts.kept_out.iter().cloned());
        self.covered_files.extend(facts.covered_files.iter().cloned());
        if !operation.unknown.is_empty() {
            self.unknown = self.unknown.or(Some(n));
        }
    }

    /// Returns how many operations there are.
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

    /// Returns how many entries there are.
    pub fn entries(&self) -> u64 {
        self.newest.map_or(0, |newest| newest.entries)
    }

    /// Returns when the newest operation was.
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

    /// Returns where the current branch stands.
    pub fn position(&self) -> Option<Position> {
        self.branches.get(self.current()).copied()
    }

    /// Returns the generation in which the current branch stands; the number 0 if it stands nowhere.
    pub fn generation(&self) -> GenerationNumber {
        self.position().unwrap_or_default().generation
    }

    /// Returns the newest run of the generation in which the current branch stands.
    pub fn growth(&self) -> Option<&Run> {
        self.ends.get(&self.position()?.generation)
    }

    /// Returns the number of the newest checkpoint if it is at this place and not undone.
    pub fn checkpoint_at(&self, place: Position) -> Option<CheckpointNumber> {
        let (operation, _) = self.checkpoint.filter(|(_, newest)| *newest == place)?;
        (!self.undone().contains(&operation)).then(|| self.next_checkpoint().minus(1))
    }

    /// Returns where a file lies.
    pub fn file(&self, n: FileNumber) -> Option<&Place> {
        self.files.get(n.index()?)
    }

    /// Returns the file of a generation.
    pub fn file_of(&self, generation: GenerationNumber) -> Option<FileNumber> {
        self.generations.get(generation.index()?).and_then(|(_, generation)| generation.file)
    }

    /// Returns the line that came of an entry of which bytes were taken out, and the one that stands there now.
    pub fn covered(&self, entry: EntryNumber) -> Option<(LineId, LineId)> {
        let newest = self.tombstones.newest(entry)?;
        Some((newest.line?, newest.covered?))
    }

    /// Returns the lines that stand in the place of others, each with the one that came.
    pub fn coverings(&self) -> BTreeMap<LineId, LineId> {
        self.tombstones.iter().filter_map(|one| Some((one.covered?, one.line?))).collect()
    }

    /// Returns what a file that an operation kept whole has now, if bytes were taken out of it.
    pub fn covered_file(&self, operation: OperationNumber, at: u64) -> Option<&CoveredFile> {
        let is_it = |one: &&CoveredFile| (one.operation, one.at) == (operation, at);
        self.covered_files.iter().rev().find(is_it)
    }

    /// Returns whether bytes were taken out of anything that the session has.
    pub fn is_covered(&self) -> bool {
        !self.tombstones.is_empty() || !self.covered_files.is_empty()
    }

    /// Returns whether an undo or a redo began a generation.
    pub fn is_restored(&self, generation: GenerationNumber) -> bool {
        let begun = self.generations.iter().find(|(_, each)| each.n == generation);
        begun.is_some_and(|(by, _)| self.undos.iter().any(|(n, _)| n == by))
    }

    /// Returns the operations that are undone: those that an operation takes back which is not undone itself.
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

/// A fact behind the operation that it belongs to, and behind its place there if it has one.
#[derive(Default)]
struct Of<T> {
    operation: OperationNumber,
    at: u64,
    fact: Option<T>,
}

/// A branch and where it stands.
#[derive(Default)]
struct Branch {
    name: Option<String>,
    position: Position,
}

/// The salt of a branch's name.
#[derive(Default)]
struct Salt {
    name: Option<String>,
    salt: Option<[u8; 16]>,
}

/// The state as fields.
#[derive(Default)]
struct Fields {
    newest: Option<Newest>,
    files: Vec<Place>,
    generations: Vec<Of<Generation>>,
    ends: Vec<Run>,
    checkpoints: u64,
    checkpoint: Option<Of<Position>>,
    branches: Vec<Branch>,
    current: Option<String>,
    live: Option<FileNumber>,
    hidden: bool,
    undos: Vec<Of<OperationNumber>>,
    rotations: Vec<Of<Rotation>>,
    containers: Vec<Of<Container>>,
    gone: Vec<FileNumber>,
    bases: Vec<Base>,
    pending: Vec<Of<Pending>>,
    tombstones: Vec<Tombstone>,
    unknown: Option<OperationNumber>,
    sidecars: Vec<Of<Sidecar>>,
    kept_out: Vec<Vec<u8>>,
    covered_files: Vec<CoveredFile>,
    spans: Vec<Span>,
    salts: Vec<Salt>,
}

tagged!(Of<Generation> { 1: operation, 2: at, 3: fact });
tagged!(Of<Position> { 1: operation, 2: at, 3: fact });
tagged!(Of<Rotation> { 1: operation, 2: at, 3: fact });
tagged!(Of<Container> { 1: operation, 2: at, 3: fact });
tagged!(Of<Sidecar> { 1: operation, 2: at, 3: fact });
tagged!(Of<Pending> { 1: operation, 2: at, 3: fact });
tagged!(Of<OperationNumber> { 1: operation, 2: at, 3: fact });
tagged!(Branch { 1: name, 2: position });
tagged!(Salt { 1: name, 2: salt });
tagged!(Fields {
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
    16: pending,
    17: tombstones,
    18: unknown,
    19: sidecars,
    20: kept_out,
    21: covered_files,
    22: spans,
    23: salts,
});

fn of<T: Clone>((operation, fact): &(OperationNumber, T)) -> Of<T> {
    Of { operation: *operation, at: 0, fact: Some(fact.clone()) }
}

fn placed<T: Clone>((operation, at, fact): &(OperationNumber, u64, T)) -> Of<T> {
    Of { operation: *operation, at: *at, fact: Some(fact.clone()) }
}

fn back<T>(of: Vec<Of<T>>) -> Vec<(OperationNumber, T)> {
    of.into_iter().filter_map(|of| Some((of.operation, of.fact?))).collect()
}

impl Tagged for State {
    fn write(&self, out: &mut Vec<u8>) {
        let containers = self.containers.iter().map(placed);
        let branches = self
            .branches
            .iter()
            .map(|(name, position)| Branch { name: Some(name.clone()), position: *position });
        let salts = self
            .salts
            .iter()
            .map(|(name, salt)| Salt { name: Some(name.clone()), salt: Some(*salt) });
        let fields = Fields {
            newest: self.newest,
            files: self.files.clone(),
            generations: self.generations.iter().map(of).collect(),
            ends: self.ends.values().cloned().collect(),
            checkpoints: self.checkpoints,
            checkpoint: self.checkpoint.as_ref().map(of),
            branches: branches.collect(),
            current: self.current.clone(),
            live: self.live,
            hidden: self.hidden,
            undos: self.undos.iter().map(of).collect(),
            rotations: self.rotations.iter().map(of).collect(),
            containers: containers.collect(),
            gone: self.gone.iter().copied().collect(),
            bases: self.bases.clone(),
            pending: self.pending.iter().map(of).collect(),
            tombstones: self.tombstones.to_vec(),
            unknown: self.unknown,
            sidecars: self.sidecars.values().map(placed).collect(),
            kept_out: self.kept_out.clone(),
            covered_files: self.covered_files.clone(),
            spans: self.spans.all().to_vec(),
            salts: salts.collect(),
        };
        fields.write(out);
    }

    fn read(bytes: &[u8], unknown: &mut Vec<u64>) -> Result<Self, Malformed> {
        let fields: Fields = Tagged::read(bytes, unknown)?;
        let containers = fields.containers.into_iter();
        let branches = fields.branches.into_iter();
        let salts = fields.salts.into_iter();
        let sidecars = fields.sidecars.into_iter().filter_map(|of| {
            let kept = of.fact?;
            Some((kept.file, (of.operation, of.at, kept)))
        });
        Ok(Self {
            newest: fields.newest,
            files: fields.files,
            generations: back(fields.generations),
            ends: fields.ends.into_iter().map(|run| (run.generation, run)).collect(),
            checkpoints: fields.checkpoints,
            checkpoint: fields.checkpoint.and_then(|of| Some((of.operation, of.fact?))),
            branches: branches.filter_map(|b| Some((b.name?, b.position))).collect(),
            current: fields.current,
            live: fields.live,
            hidden: fields.hidden,
            undos: back(fields.undos),
            rotations: back(fields.rotations),
            containers: containers.filter_map(|of| Some((of.operation, of.at, of.fact?))).collect(),
            gone: fields.gone.into_iter().collect(),
            bases: fields.bases,
            pending: back(fields.pending),
            tombstones: fields.tombstones.into(),
            unknown: fields.unknown,
            sidecars: sidecars.collect(),
            kept_out: fields.kept_out,
            covered_files: fields.covered_files,
            spans: fields.spans.into(),
            salts: salts.filter_map(|of| Some((of.name?, of.salt?))).collect(),
        })
    }

    fn texts(&mut self, _: &mut dyn FnMut(&mut Text)) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Command, Digest};

    /// Returns a state that holds something of every kind; values that are zero or empty are among it.
    fn everything() -> State {
        let [n, other] = [1, 300].map(OperationNumber::new);
        let file = FileNumber::new(2);
        let generation = GenerationNumber::new(2);
        let position = Position { generation, head: Some(EntryNumber::new(5)), horizon: 6 };
        let digest = Digest::new([4; 32]);
        let run =
            Run { generation, start: 1, first: EntryNumber::new(5), count: 2, ..Run::default() };
        let command = Command::Branch { branch: Text::Own("b".into()), from: None };
        let sidecar = |n| Sidecar { file: FileNumber::new(n), digest, size: 4 };
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
            spans: vec![Span { generation, count: 2, ..Span::default() }, Span::default()].into(),
            checkpoints: 3,
            checkpoint: Some((other, Position::default())),
            branches: [("".into(), position), ("main".into(), Position::default())].into(),
            current: Some("main".into()),
            live: Some(file),
            salts: [("".into(), [0; 16]), ("main".into(), [7; 16])].into(),
            hidden: true,
            undos: vec![(other, n), (n, OperationNumber::default())],
            rotations: vec![(n, Rotation { file, aside: b"x".to_vec(), ..Rotation::default() })],
            containers: vec![
                (n, 0, Container { generation, digest, size: 4 }),
                (other, 1, Container::default()),
            ],
            gone: [file, FileNumber::new(200)].into(),
            bases: vec![Base { generation, format: "codex".into(), ..Base::default() }],
            pending: vec![(n, Pending { command, to: Some(Position::default()) })],
            tombstones: vec![
                Tombstone { entry: EntryNumber::new(5), size: 12, ..Tombstone::default() },
                Tombstone::default(),
            ]
            .into(),
            kept_out: vec![b"secret".to_vec(), Vec::new()],
            covered_files: vec![CoveredFile { operation: n, at: 1, digest, size: 4, rule: None }],
            unknown: Some(other),
            sidecars: [2, 3].map(|n| (FileNumber::new(n), (other, n - 2, sidecar(n)))).into(),
        }
    }

    #[test]
    fn the_encoding_of_a_state_stays_as_it_is() {
        let state = everything();
        let bytes = state.to_bytes();
        let row = |row: &[u8]| row.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let rows: Vec<_> = bytes.chunks(40).map(row).collect();
        insta::assert_snapshot!(rows.join("\n"), @r"
        012c0102ac0202200909090909090909090909090909090909090909090909090909090909090909
        03010504010602030301610200030b010101030601010202010203020300040c0101020201010301
        05040102040c01010302010103010504010205010306060102ac020300070d010002090101020201
        05030106070601046d61696e08046d61696e0901020a01010b070102ac020301010b060101010301
        000c0b01010103060101020201780d2d010101032801010202200404040404040404040404040404
        0404040404040404040404040404040404040301040d090102ac0202010103000e01020e02c8010f
        0a0101020205636f6465781010010101030b0107030501030101620200110601010502010c110012
        02ac02132e0102ac0203280101020220040404040404040404040404040404040404040404040404
        040404040404040403010413310102ac020201010328010103022004040404040404040404040404
        0404040404040404040404040404040404040403010414067365637265741400152b010101020101
        03200404040404040404040404040404040404040404040404040404040404040404040104160601
        0102040102160017140100021000000000000000000000000000000000171801046d61696e021007
        070707070707070707070707070707
        ");
        let mut unknown = Vec::new();
        assert_eq!(State::read(&bytes, &mut unknown), Ok(state));
        assert_eq!(unknown, [0; 0]);
        assert_eq!(State::default().to_bytes(), b"");
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
