//! Facts: what an operation adds to a session, for ever.
//!
//! Everything is numbered within its session, so that no number of a store's own enters a hash: entries, operations,
//! files and generations from 1, checkpoints from 0. The canonical encoding of an operation is
//! [`Operation::seal`]; it is frozen with the store's version 1.
//!
//! Invariant: no fact is ever updated or deleted; each belongs to one operation, whose hash covers it.

use crate::model::{Canon, EntryId, OperationId, Running, Timestamp};

/// What names a session for ever: the agent's format and the agent's id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionName {
    /// The format's name, such as `native`.
    pub format: String,
    /// The agent's id of the session.
    pub id: String,
}

/// A line in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number in the session.
    pub n: u64,
    /// Its id.
    pub id: EntryId,
    /// The entry that its id is linked to, if its line carries no name.
    pub link: Option<u64>,
}

/// A file that holds, or held, generations of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its number.
    pub n: u64,
    /// Where it was met; relative paths are below the store's folder.
    pub path: Vec<u8>,
}

/// One state of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Its number.
    pub n: u64,
    /// Its file; none if the session was changed without a live file.
    pub file: Option<u64>,
}

/// A stretch of a generation: entries with consecutive numbers, and the state of the file after them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Which generation grew.
    pub generation: u64,
    /// How many entries stood before.
    pub start: u64,
    /// The first entry.
    pub first: u64,
    /// How many entries; none if only the tail changed.
    pub count: u64,
    /// The separators.
    pub gaps: Gaps,
    /// How many bytes the file has up to the end of the last entry.
    pub bytes: u64,
    /// The running hash after the last entry.
    pub running: Running,
    /// What follows the last entry; only the last run of a growth says so.
    pub tail: Vec<u8>,
}

/// The separators of a run: pairs of a count and the bytes that stand before each of so many entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gaps(pub Vec<(u64, Vec<u8>)>);

/// A place in a generation from which a path is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The generation.
    pub generation: u64,
    /// The entry at which the path ends; none before the first.
    pub head: Option<u64>,
    /// How many entries of the generation exist for the path.
    pub horizon: u64,
}

/// A branch that was made, moved, or (with nowhere to go) hidden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The branch.
    pub branch: String,
    /// Where it stood.
    pub from: Option<Position>,
    /// Where it stands now.
    pub to: Option<Position>,
}

/// A named value of the session that was set, such as the current branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The name: one of the constants of this type.
    pub name: String,
    /// The value before.
    pub from: Option<String>,
    /// The value now.
    pub to: Option<String>,
}

impl Mark {
    /// Names the current branch.
    pub const CURRENT: &'static str = "current";
    /// Names the live file, by its number.
    pub const LIVE: &'static str = "live";
    /// Says that the session is hidden from lists.
    pub const HIDDEN: &'static str = "hidden";
    /// With a generation's number behind it, names the generation whose tail is the compressed file that held it.
    pub const CONTAINER: &'static str = "container.";
}

/// A numbered place to go back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The number, given once.
    pub n: u64,
    /// The place.
    pub place: Position,
    /// The entry before which it stands: a turn of the user, or the record with which the agent set it; none if a command
    /// put it there.
    pub before: Option<u64>,
    /// The format's own number.
    pub own: Option<String>,
    /// A person's words.
    pub note: Option<String>,
}

/// An entry that stands in the place of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The entry.
    pub entry: u64,
    /// What it replaced.
    pub origin: u64,
}

/// The intent to put a new file in the place of the live one. Whether it is done, the folder itself says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// The live file.
    pub file: u64,
    /// The name, in the same folder, that the old file gets.
    pub aside: Vec<u8>,
    /// The generation that the old file holds.
    pub old: u64,
    /// The generation that the new file holds.
    pub new: u64,
    /// The old file's inode, by which it is known when the renaming was cut short.
    pub inode: u64,
    /// The old file's length.
    pub length: u64,
}

/// The facts of one operation, or those that a question selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Lines that are new in the session.
    pub entries: Vec<Entry>,
    /// Files met for the first time.
    pub files: Vec<File>,
    /// Generations begun.
    pub generations: Vec<Generation>,
    /// Stretches that generations grew by.
    pub runs: Vec<Run>,
    /// Branches moved.
    pub moves: Vec<Move>,
    /// Values set.
    pub marks: Vec<Mark>,
    /// Checkpoints given.
    pub checkpoints: Vec<Checkpoint>,
    /// Entries replaced.
    pub origins: Vec<Origin>,
    /// Live files to be exchanged.
    pub rotations: Vec<Rotation>,
}

/// One command that changed a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its number in the session.
    pub n: u64,
    /// When.
    pub at: Timestamp,
    /// The command's name.
    pub command: String,
    /// What a person or a program should know of it, as a JSON object.
    pub detail: String,
    /// The operation that this one undoes.
    pub undoes: Option<u64>,
    /// The number of the first entry it added.
    pub first: u64,
    /// How many entries it added.
    pub count: u64,
    /// Its hash.
    pub hash: OperationId,
}

impl Operation {
    /// Returns the hash that this operation must have, given the one before it and its facts.
    ///
    /// Encoded are, in this order: the hash before (32 zero bytes for the first); the session's format and id; `n`,
    /// `at`, `command`, `detail`, `undoes`, `first`, `count`; then for each kind of fact its number and its rows, in the
    /// order of [`Facts`]'s fields and each row's fields in the order of its type. An entry is its id alone, which covers
    /// the rest.
    pub fn seal(
        &self,
        before: Option<OperationId>,
        session: &SessionName,
        facts: &Facts,
    ) -> OperationId {
        let mut canon = Canon::operation();
        canon.hash(before.as_ref().map_or(&[0; 32], OperationId::as_bytes));
        canon.bytes(session.format.as_bytes()).bytes(session.id.as_bytes());
        canon.number(self.n).number(self.at.0.cast_unsigned());
        canon.bytes(self.command.as_bytes()).bytes(self.detail.as_bytes());
        canon.maybe(self.undoes).number(self.first).number(self.count);
        facts.encode(&mut canon);
        canon.finish()
    }
}

impl Facts {
    /// Puts every kind in the order of its keys, which is the order in which a store gives them back.
    pub fn sort(&mut self) {
        self.runs.sort_by_key(|run| (run.generation, run.start));
        self.moves.sort_by(|a, b| a.branch.cmp(&b.branch));
        self.marks.sort_by(|a, b| a.name.cmp(&b.name));
        self.origins.sort_by_key(|origin| origin.entry);
        self.rotations.sort_by_key(|rotation| rotation.file);
    }

    fn encode(&self, canon: &mut Canon) {
        canon.number(self.entries.len() as u64);
        for entry in &self.entries {
            canon.hash(entry.id.as_bytes());
        }
        canon.number(self.files.len() as u64);
        for file in &self.files {
            canon.number(file.n).bytes(&file.path);
        }
        canon.number(self.generations.len() as u64);
        for generation in &self.generations {
            canon.number(generation.n).maybe(generation.file);
        }
        canon.number(self.runs.len() as u64);
        for run in &self.runs {
            canon.number(run.generation).number(run.start).number(run.first).number(run.count);
            canon.bytes(&run.gaps.encode()).number(run.bytes);
            canon.hash(run.running.as_bytes()).bytes(&run.tail);
        }
        canon.number(self.moves.len() as u64);
        for step in &self.moves {
            canon.bytes(step.branch.as_bytes());
            encode_place(canon, step.from);
            encode_place(canon, step.to);
        }
        canon.number(self.marks.len() as u64);
        for mark in &self.marks {
            canon.bytes(mark.name.as_bytes()).text(mark.from.as_deref()).text(mark.to.as_deref());
        }
        canon.number(self.checkpoints.len() as u64);
        for checkpoint in &self.checkpoints {
            canon.number(checkpoint.n);
            encode_place(canon, Some(checkpoint.place));
            canon.maybe(checkpoint.before);
            canon.text(checkpoint.own.as_deref()).text(checkpoint.note.as_deref());
        }
        canon.number(self.origins.len() as u64);
        for origin in &self.origins {
            canon.number(origin.entry).number(origin.origin);
        }
        canon.number(self.rotations.len() as u64);
        for rotation in &self.rotations {
            canon.number(rotation.file).bytes(&rotation.aside);
            canon.number(rotation.old).number(rotation.new);
            canon.number(rotation.inode).number(rotation.length);
        }
    }
}

fn encode_place(canon: &mut Canon, place: Option<Position>) {
    match place {
        None => canon.number(0),
        Some(place) => {
            canon.number(1).number(place.generation).maybe(place.head).number(place.horizon)
        }
    };
}

impl Run {
    /// Returns how many entries the generation has after this run.
    pub fn end(&self) -> u64 {
        self.start + self.count
    }
}

impl Gaps {
    /// Returns the separator that stands before an entry where nothing else is said: a line end, but for the first.
    pub fn usual(position: u64) -> &'static [u8] {
        if position == 0 { b"" } else { b"\n" }
    }

    /// Adds the separator of the next entry, which has this position in its generation.
    ///
    /// Invariant: nothing is kept while all separators are the usual ones.
    pub fn push(&mut self, so_far: u64, position: u64, separator: &[u8]) {
        if self.0.is_empty() {
            if separator == Self::usual(position) {
                return;
            }
            let start = position - so_far;
            for earlier in start..position {
                self.append(1, Self::usual(earlier));
            }
        }
        self.append(1, separator);
    }

    fn append(&mut self, count: u64, separator: &[u8]) {
        match self.0.last_mut() {
            Some((n, last)) if last == separator => *n += count,
            _ => self.0.push((count, separator.to_vec())),
        }
    }

    /// Returns the separator before the `index`-th entry of a run that starts at `start`.
    pub fn get(&self, start: u64, index: u64) -> &[u8] {
        let mut before = 0;
        for (count, separator) in &self.0 {
            before += count;
            if index < before {
                return separator;
            }
        }
        Self::usual(start + index)
    }

    /// Returns the separators of `count` entries of a run that starts at `start`, in order.
    pub fn iter(&self, start: u64, count: u64) -> impl Iterator<Item = &[u8]> {
        let said = self.0.iter().flat_map(|(n, separator)| {
            std::iter::repeat_n(separator.as_slice(), usize::try_from(*n).unwrap_or(usize::MAX))
        });
        let told: u64 = self.0.iter().map(|(n, _)| n).sum();
        let usual = (told..count.max(told)).map(move |index| Self::usual(start + index));
        said.chain(usual).take(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// Returns the bytes that are stored and hashed.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (count, separator) in &self.0 {
            put_varint(&mut bytes, *count);
            put_varint(&mut bytes, separator.len() as u64);
            bytes.extend_from_slice(separator);
        }
        bytes
    }

    /// Reads what [`Gaps::encode`] wrote.
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let mut gaps = Vec::new();
        while !bytes.is_empty() {
            let count = take_varint(&mut bytes)?;
            let length = usize::try_from(take_varint(&mut bytes)?).ok()?;
            let separator = bytes.get(..length)?;
            bytes = &bytes[length..];
            gaps.push((count, separator.to_vec()));
        }
        Some(Self(gaps))
    }
}

/// Appends an integer as groups of seven bits, least first.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(u8::try_from(value & 0x7f).unwrap_or_default() | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).unwrap_or_default());
}

/// Takes an integer that [`put_varint`] wrote from the front.
pub fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn gaps_give_back_every_separator(
            start in 0u64..3,
            separators in proptest::collection::vec(
                proptest::sample::select(vec!["", "\n", "\r\n", " \n\n"]), 0..40),
        ) {
            let mut gaps = Gaps::default();
            for (i, separator) in separators.iter().enumerate() {
                gaps.push(i as u64, start + i as u64, separator.as_bytes());
            }
            prop_assert_eq!(Gaps::decode(&gaps.encode()), Some(gaps.clone()));
            for (i, separator) in separators.iter().enumerate() {
                prop_assert_eq!(gaps.get(start, i as u64), separator.as_bytes());
            }
            let all: Vec<_> = gaps.iter(start, separators.len() as u64).collect();
            prop_assert_eq!(all, separators.iter().map(|s| s.as_bytes()).collect::<Vec<_>>());
        }

        #[test]
        fn a_varint_reads_what_it_wrote(value: u64, junk: Vec<u8>) {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            prop_assert_eq!(take_varint(&mut bytes.as_slice()), Some(value));
            take_varint(&mut junk.as_slice());
        }
    }

    #[test]
    fn usual_separators_take_no_room() {
        let mut gaps = Gaps::default();
        gaps.push(0, 0, b"");
        gaps.push(1, 1, b"\n");
        assert_eq!(gaps.encode(), b"");
    }

    /// Pins the encoding of an operation with a fact of every kind.
    #[test]
    fn an_operations_hash_is_pinned_for_ever() {
        let place = Position { generation: 1, head: Some(1), horizon: 1 };
        let facts = Facts {
            entries: vec![Entry { n: 1, id: EntryId::new([1; 32]), link: None }],
            files: vec![File { n: 1, path: b"transcripts/a.jsonl".to_vec() }],
            generations: vec![Generation { n: 1, file: Some(1) }],
            runs: vec![Run {
                generation: 1,
                start: 0,
                first: 1,
                count: 1,
                gaps: Gaps(vec![(1, b" ".to_vec())]),
                bytes: 13,
                running: Running::EMPTY,
                tail: b"\n".to_vec(),
            }],
            moves: vec![Move { branch: "main".into(), from: None, to: Some(place) }],
            marks: vec![Mark { name: Mark::CURRENT.into(), from: None, to: Some("main".into()) }],
            checkpoints: vec![Checkpoint {
                n: 0,
                place,
                before: Some(1),
                own: None,
                note: Some("n".into()),
            }],
            origins: vec![Origin { entry: 1, origin: 1 }],
            rotations: vec![Rotation {
                file: 1,
                aside: b"a.1".to_vec(),
                old: 1,
                new: 2,
                inode: 3,
                length: 4,
            }],
        };
        let operation = Operation {
            n: 1,
            at: Timestamp(1),
            command: "new".into(),
            detail: "{}".into(),
            undoes: None,
            first: 1,
            count: 1,
            hash: OperationId::new([0; 32]),
        };
        let name = SessionName { format: "native".into(), id: "s".into() };
        insta::assert_snapshot!(operation.seal(None, &name, &facts), @"d904adae5244c42f94f941ed286e3b8224158d85d2fdf593c551efc73efeae26");
        let later = Operation { undoes: Some(1), ..operation };
        insta::assert_snapshot!(later.seal(Some(OperationId::new([9; 32])), &name, &facts), @"b5d6191fc6d4e8d359db9b2ab608827c912a81f895f9356f0a68c340f63997c3");
    }
}
