//! Facts: the additions of an operation to a session, for ever.
//!
//! Everything is numbered within its session, so that no number of a store's own enters a hash: entries, operations,
//! files and generations from 1, checkpoints from 0. Small facts ([`Facts`]) stand in the operation's record; those of
//! which there may be many ([`Bulk`]) are named there by their count and digest, and stand next to it.
//!
//! Invariant: no fact is ever updated or deleted; each belongs to one operation, whose hash covers it.
//!
//! # Taking bytes out
//!
//! A [`Tombstone`] names an entry whose line has other bytes now: the same number, with those that were to go covered.
//! Every hash stays: the entry keeps its id, and with it running hashes, digests and the chain of operations. The
//! tombstone has the id of the line that came, from which the entry's id can still be computed, and the digest of the
//! bytes that stand there now. As no length changes, a file of the session that is covered in the same way is the same
//! generation, and reads as the same entries.
//!
//! An unfinished line, which is a [`Run`]'s tail, goes as a whole: the run has none then, as if it had not been read yet.
//! [`CoveredRuns`] has the digest of the operation's runs as they are now, next to which that of its record is kept.

mod encoding;

use std::{ffi::OsStr, ops::Range, os::unix::ffi::OsStrExt as _, path::Path};

use super::{
    CheckpointNumber, Digest, EntryId, EntryNumber, FileNumber, GenerationNumber, LineId,
    MachineId, OperationNumber, Running, Tagged, Text,
    varint::{put_varint, take_varint},
};

/// The name of a session for ever: the agent's format and the agent's id.
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
    pub n: EntryNumber,
    /// Its id.
    pub id: EntryId,
    /// The entry that its id is linked to, if its line carries no name.
    pub link: Option<EntryNumber>,
}

/// Where a file is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Below the store's folder.
    Store(Vec<u8>),
    /// Below the home folder of this user on this computer.
    Home(MachineId, Vec<u8>),
    /// Anywhere on this computer.
    Path(MachineId, Vec<u8>),
}

/// A file that holds, or held, generations of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// Its number.
    pub n: FileNumber,
    /// Where it was met.
    pub place: Place,
}

/// One state of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generation {
    /// Its number.
    pub n: GenerationNumber,
    /// Its file; none if the session was changed without a live file.
    pub file: Option<FileNumber>,
}

/// A stretch of a generation: entries with consecutive numbers, and the state of the file after them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Which generation grew.
    pub generation: GenerationNumber,
    /// How many entries stood before.
    pub start: u64,
    /// The first entry.
    pub first: EntryNumber,
    /// How many entries; 0 if only the tail changed.
    pub count: u64,
    /// The separators.
    pub gaps: Gaps,
    /// How many bytes the file has up to the end of the last entry.
    pub bytes: u64,
    /// The running hash after the last entry.
    pub running: Running,
    /// The bytes behind the last entry; only the last run of a growth has them.
    pub tail: Vec<u8>,
}

/// The separators of a run: pairs of a count and the bytes that stand before each of that many entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gaps(pub Vec<(u64, Vec<u8>)>);

/// A place in a generation from which a path is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The generation.
    pub generation: GenerationNumber,
    /// The entry at which the path ends; none before the first.
    pub head: Option<EntryNumber>,
    /// How many entries of the generation exist for the path.
    pub horizon: u64,
}

/// A branch that was made, moved, or (with nowhere to go) hidden.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Move {
    /// The branch.
    pub branch: Text,
    /// Where it was.
    pub from: Option<Position>,
    /// Where it is now.
    pub to: Option<Position>,
}

/// A value of the session that was set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step<T> {
    /// The value before.
    pub from: Option<T>,
    /// The value now.
    pub to: Option<T>,
}

/// A numbered place to go back to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// The number, given once.
    pub n: CheckpointNumber,
    /// The place.
    pub place: Position,
    /// The entry before which it is: a turn of the user, or the record with which the agent set it; none if a command
    /// put it there.
    pub before: Option<EntryNumber>,
    /// The format's own number.
    pub own: Option<String>,
    /// A person's words.
    pub note: Option<Text>,
}

/// An entry that replaces another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The entry.
    pub entry: EntryNumber,
    /// The entry that it replaced.
    pub origin: EntryNumber,
    /// The cut, if it was replaced for that.
    pub cut: Option<Cutting>,
}

/// The cuts in the answers of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cutting {
    /// The tool.
    pub tool: Option<String>,
    /// About how many tokens the answers had.
    pub tokens_before: u64,
    /// About how many they have now.
    pub tokens_after: u64,
    /// The texts.
    pub texts: Vec<CutOff>,
}

/// A text that was cut, in characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CutOff {
    /// The call that it answers.
    pub call: String,
    /// Which text of the answer, from 0.
    pub text: u64,
    /// How many the text has.
    pub whole: u64,
    /// How many of them stay.
    pub kept: u64,
    /// How many the words in place of the rest have.
    pub suffix: u64,
}

/// The intent to put a new file in place of the live one. The folder itself tells whether it is done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rotation {
    /// The live file.
    pub file: FileNumber,
    /// The name, in the same folder, that the old file gets.
    pub aside: Vec<u8>,
    /// The generation that the old file holds.
    pub old: GenerationNumber,
    /// The generation that the new file holds.
    pub new: GenerationNumber,
    /// The old file's inode, by which it is known when the renaming was cut short.
    pub inode: u64,
    /// The old file's length.
    pub length: u64,
}

/// A compressed file, whose own bytes are kept: no compressor is sure to make the same ones for ever.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Container {
    /// The generation that it holds.
    pub generation: GenerationNumber,
    /// The digest of its bytes.
    pub digest: Digest,
    /// How many bytes it has.
    pub size: u64,
}

/// A file that an agent keeps next to a session's own, such as a tool's long answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sidecar {
    /// The file.
    pub file: FileNumber,
    /// The digest of its bytes.
    pub digest: Digest,
    /// How many bytes it has.
    pub size: u64,
}

/// Where the path of a generation begins: in another session, or in another file of this one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Base {
    /// The generation that goes on from there.
    pub generation: GenerationNumber,
    /// The other session's format.
    pub format: String,
    /// The other session's id.
    pub id: String,
    /// The last entry that belongs to the path; none if the agent's file does not tell.
    pub entry: Option<EntryId>,
}

/// A change that somebody asked for, to be made later. It says what to do, never where that leads: whoever makes it plans it
/// again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The word of the command.
    pub verb: String,
    /// Go to this checkpoint.
    pub checkpoint: Option<CheckpointNumber>,
    /// Go to this entry.
    pub entry: Option<EntryId>,
    /// Go to the end of this branch.
    pub branch: Option<Text>,
    /// Undo this operation.
    pub operation: Option<OperationNumber>,
    /// The note for the model.
    pub note: Option<Text>,
    /// The words of its options, as they are typed.
    pub options: Vec<Text>,
    /// The computer and account of the person who asked; none if that was a program.
    pub machine: Option<MachineId>,
}

/// A line of which bytes were taken out: its entry keeps its id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tombstone {
    /// The entry.
    pub entry: EntryNumber,
    /// How many bytes its line has, as before.
    pub size: u64,
    /// The line that came.
    pub line: Option<LineId>,
    /// The line that is there now.
    pub covered: Option<LineId>,
    /// The rule by which the bytes were found, if one found them.
    pub rule: Option<String>,
}

/// A file kept whole of which bytes were taken out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoveredFile {
    /// The operation that kept it.
    pub operation: OperationNumber,
    /// Its place among the files that the operation keeps: its containers, then its sidecars, from 0.
    pub at: u64,
    /// The digest of the bytes that it has now.
    pub digest: Digest,
    /// How many they are.
    pub size: u64,
    /// The rule by which the bytes were found, if one found them.
    pub rule: Option<String>,
}

/// Runs of an operation out of which unfinished lines were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoveredRuns {
    /// The operation that added them.
    pub operation: OperationNumber,
    /// The digest of all its runs as they are now.
    pub digest: Digest,
    /// The unfinished lines that came, without the white space around them.
    pub lines: Vec<LineId>,
}

/// The facts that stand in an operation's record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Files met for the first time.
    pub files: Vec<File>,
    /// Generations begun.
    pub generations: Vec<Generation>,
    /// Branches moved.
    pub moves: Vec<Move>,
    /// The current branch, if it became another.
    pub current: Option<Step<Text>>,
    /// The number of the live file, if it became another.
    pub live: Option<Step<FileNumber>>,
    /// Whether lists leave the session out, if that changed.
    pub hidden: Option<Step<u64>>,
    /// Live files to be exchanged.
    pub rotations: Vec<Rotation>,
    /// Compressed files.
    pub containers: Vec<Container>,
    /// Files next to the session's own.
    pub sidecars: Vec<Sidecar>,
    /// The numbers of files that their agent deleted.
    pub gone: Vec<FileNumber>,
    /// Where generations begin elsewhere.
    pub bases: Vec<Base>,
    /// The change that waits from now on.
    pub request: Option<Request>,
    /// The operation with the change that waits, if it became another.
    pub waiting: Option<Step<OperationNumber>>,
    /// Lines that were taken out.
    pub tombstones: Vec<Tombstone>,
    /// The title that the agent keeps in a file of its own, if it became another.
    pub title: Option<Text>,
    /// Files kept whole of which bytes were taken out.
    pub covered_files: Vec<CoveredFile>,
    /// The folder in which the session works, if the agent keeps that in a file of its own.
    pub folder: Option<Text>,
    /// Runs out of which unfinished lines were taken.
    pub covered_runs: Vec<CoveredRuns>,
}

/// The facts of which an operation may have many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bulk {
    /// Lines that are new in the session.
    pub entries: Vec<Entry>,
    /// Stretches that generations grew by.
    pub runs: Vec<Run>,
    /// Checkpoints given.
    pub checkpoints: Vec<Checkpoint>,
    /// Entries replaced.
    pub origins: Vec<Origin>,
}

/// The name that a record has for facts that stand next to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// How many.
    pub count: u64,
    /// The digest of their encodings, in order; of an entry, that is its id.
    pub digest: Digest,
}

impl Place {
    /// Returns the path, relative to the folder that it is below.
    pub fn path(&self) -> &[u8] {
        match self {
            Self::Store(path) | Self::Home(_, path) | Self::Path(_, path) => path,
        }
    }

    /// Returns the file's own name, if it has one that is a text.
    pub fn name(&self) -> Option<&str> {
        Path::new(OsStr::from_bytes(self.path())).file_name()?.to_str()
    }
}

impl Named {
    /// Names facts by their encodings.
    fn of<T: Tagged>(facts: &[T]) -> Option<Self> {
        let encoded: Vec<Vec<u8>> = facts.iter().map(Tagged::to_bytes).collect();
        let digest = Digest::of_facts(encoded.iter().map(Vec::as_slice));
        (!facts.is_empty()).then_some(Self { count: facts.len() as u64, digest })
    }

    /// Names checkpoints.
    pub fn checkpoints(checkpoints: &[Checkpoint]) -> Option<Self> {
        Self::of(checkpoints)
    }

    /// Names runs.
    pub fn runs(runs: &[Run]) -> Option<Self> {
        Self::of(runs)
    }

    /// Names origins.
    pub fn origins(origins: &[Origin]) -> Option<Self> {
        Self::of(origins)
    }

    /// Names entries: the id of one covers its link and its line.
    pub fn entries(entries: &[Entry]) -> Option<Self> {
        let digest = Digest::of_facts(entries.iter().map(|entry| entry.id.as_bytes().as_slice()));
        (!entries.is_empty()).then_some(Self { count: entries.len() as u64, digest })
    }
}

impl Facts {
    /// Puts every kind in the order of its keys.
    pub fn sort(&mut self) {
        self.moves.sort_by_key(|step| step.branch.to_text());
        self.rotations.sort_by_key(|rotation| rotation.file);
    }
}

impl Bulk {
    /// Puts every kind in the order of its keys, which is the order in which a store gives them back.
    pub fn sort(&mut self) {
        self.runs.sort_by_key(|run| (run.generation, run.start));
        self.origins.sort_by_key(|origin| origin.entry);
    }
}

impl Run {
    /// Returns how many entries the generation has after this run.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.count)
    }

    /// Returns how many bytes the file has after this run.
    pub fn length(&self) -> u64 {
        self.bytes.saturating_add(self.tail.len() as u64)
    }

    /// Returns the numbers of its entries.
    pub fn entries(&self) -> Range<EntryNumber> {
        self.first..self.first.plus(self.count)
    }

    /// Returns the unfinished line behind its last entry, without the white space around it, if there is one.
    pub fn unfinished(&self) -> Option<&[u8]> {
        Some(self.tail.trim_ascii()).filter(|line| !line.is_empty())
    }

    /// Returns the number of its last entry, if it has any.
    pub fn last(&self) -> Option<EntryNumber> {
        (self.count > 0).then(|| self.entries().end.minus(1))
    }
}

impl Gaps {
    /// Returns the separator that comes before an entry unless a run says otherwise: a line end, but for the first.
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
            Some((n, last)) if last == separator => *n = n.saturating_add(count),
            _ => self.0.push((count, separator.to_vec())),
        }
    }

    /// Returns the separator before the `index`-th entry of a run that starts at `start`.
    pub fn get(&self, start: u64, index: u64) -> &[u8] {
        let mut before = 0_u64;
        for (count, separator) in &self.0 {
            before = before.saturating_add(*count);
            if index < before {
                return separator;
            }
        }
        Self::usual(start.saturating_add(index))
    }

    /// Returns the separators of `count` entries of a run that starts at `start`, in order.
    pub fn iter(&self, start: u64, count: u64) -> impl Iterator<Item = &[u8]> {
        let said = self.0.iter().flat_map(|(n, separator)| {
            std::iter::repeat_n(separator.as_slice(), usize::try_from(*n).unwrap_or(usize::MAX))
        });
        let told = self.0.iter().fold(0_u64, |told, (n, _)| told.saturating_add(*n));
        let usual =
            (told..count.max(told)).map(move |index| Self::usual(start.saturating_add(index)));
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
    }

    #[test]
    fn usual_separators_take_no_room() {
        let mut gaps = Gaps::default();
        gaps.push(0, 0, b"");
        gaps.push(1, 1, b"\n");
        assert_eq!(gaps.encode(), b"");
    }
}
