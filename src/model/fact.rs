//! Facts: what an operation permanently added to a session.
//!
//! All numbers are local to the session, so a hash never depends on a number of the store: entries, operations, files and
//! generations count from 1, checkpoints from 0. Small facts ([`Facts`]) are part of the operation's record. Facts that come in
//! bulk ([`Bulk`]) are stored next to the record, which names them by count and digest.
//!
//! Invariant: facts are never updated or deleted; each belongs to one operation, whose hash covers it.
//!
//! # Taking bytes out
//!
//! A [`Tombstone`] names an entry whose line now has other bytes: a line of equal length, with the redacted bytes covered. All
//! hashes remain valid: the entry keeps its id, and so do the running hashes, the digests and the chain of operations. The
//! tombstone has the id of the original line, so the entry's id can still be computed, and the id of the current one. Lengths
//! do not change, so a file of the session that is covered in the same way is still the same generation with the same entries.
//!
//! An unfinished line, which is the tail of a [`Run`], is removed as a whole: the run then has no tail, as if it had not been
//! read yet. [`CoveredRuns`] has the digest of the operation's runs as they are now; it is accepted next to the digest in the
//! record.

mod encoding;

use std::{ffi::OsStr, ops::Range, os::unix::ffi::OsStrExt as _, path::Path};

use serde::Serialize;

use super::{
    CheckpointNumber, Digest, EntryId, EntryNumber, FileNumber, GenerationNumber, LineId,
    MachineId, OperationNumber, Running, Tagged, Text,
    varint::{put_varint, take_varint},
};

/// The permanent name of a session: the agent's format and the agent's id.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SessionName {
    /// The agent.
    #[serde(rename = "agent")]
    pub format: String,
    /// The session.
    #[serde(rename = "session")]
    pub id: String,
}

/// A line in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number in the session.
    pub n: EntryNumber,
    /// Its id.
    pub id: EntryId,
    /// The entry that its id links to, if its line has no name.
    pub link: Option<EntryNumber>,
}

/// The location of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Relative to the store's folder.
    Store(Vec<u8>),
    /// Relative to the home folder of this user on this computer.
    Home(MachineId, Vec<u8>),
    /// An absolute path on this computer.
    Path(MachineId, Vec<u8>),
}

/// A file that contains, or contained, generations of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// Its number.
    pub n: FileNumber,
    /// Where it was found.
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

/// Entries with consecutive numbers that were added to a generation, and the state of the file after them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The generation that grew.
    pub generation: GenerationNumber,
    /// How many entries of the generation precede it.
    pub start: u64,
    /// The first entry.
    pub first: EntryNumber,
    /// How many entries; 0 if only the tail changed.
    pub count: u64,
    /// The separators.
    pub gaps: Gaps,
    /// The length of the file up to the end of the last entry.
    pub bytes: u64,
    /// The running hash after the last entry.
    pub running: Running,
    /// The bytes after the last entry; only the last run of a growth has them.
    pub tail: Vec<u8>,
}

/// The separators of a run: pairs of a count and the bytes before each of that many entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gaps(pub Vec<(u64, Vec<u8>)>);

/// A place in a generation; a path is read from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The generation.
    pub generation: GenerationNumber,
    /// The last entry of the path; none if the path is empty.
    pub head: Option<EntryNumber>,
    /// How many entries of the generation the path may use.
    pub horizon: u64,
}

/// A branch that was created, moved, or (without a target) hidden.
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Checkpoint {
    /// The number of the checkpoint, which is never reused.
    #[serde(rename = "checkpoint")]
    pub n: CheckpointNumber,
    /// The place.
    #[serde(skip)]
    pub place: Position,
    /// The entry that follows the checkpoint: a user turn, or the record with which the agent set it; none if a command
    /// set it.
    #[serde(skip)]
    pub before: Option<EntryNumber>,
    /// The format's own number.
    #[serde(skip)]
    pub own: Option<String>,
    /// The name that `checkpoint -m` gave.
    pub note: Option<Text>,
}

/// An entry that replaces another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The entry.
    pub entry: EntryNumber,
    /// The entry that it replaced.
    pub origin: EntryNumber,
    /// The cuts, if it replaced the origin to shorten it.
    pub cut: Option<Cutting>,
}

/// The cuts in the tool results of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cutting {
    /// The tool.
    pub tool: Option<String>,
    /// The approximate number of tokens that the results had.
    pub tokens_before: u64,
    /// The approximate number of tokens that they have now.
    pub tokens_after: u64,
    /// The texts.
    pub texts: Vec<CutOff>,
}

/// A text that was cut; lengths are in characters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CutOff {
    /// The call whose result it is.
    pub call: String,
    /// The index of the text in the result, from 0.
    #[serde(rename = "part")]
    pub text: u64,
    /// The length of the original text.
    #[serde(rename = "characters")]
    pub whole: u64,
    /// How much of it was kept.
    pub kept: u64,
    /// The length of the words that replace the rest.
    #[serde(skip)]
    pub suffix: u64,
}

/// The intent to replace the live file. The folder itself shows whether the rotation was completed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rotation {
    /// The live file.
    pub file: FileNumber,
    /// The new name of the old file, in the same folder.
    pub aside: Vec<u8>,
    /// The generation that the old file holds.
    pub old: GenerationNumber,
    /// The generation that the new file holds.
    pub new: GenerationNumber,
    /// The old file's inode, which identifies it if the rotation was interrupted.
    pub inode: u64,
    /// The old file's length.
    pub length: u64,
}

/// A compressed file, stored as it is: no compressor is guaranteed to reproduce the same bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Container {
    /// The generation that it contains.
    pub generation: GenerationNumber,
    /// The digest of its bytes.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
}

/// A file that an agent keeps next to the session file, such as a long tool result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sidecar {
    /// The file.
    pub file: FileNumber,
    /// The digest of its bytes.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
}

/// Where the path of a generation begins: in another session, or in another file of this one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Base {
    /// The generation that continues from there.
    pub generation: GenerationNumber,
    /// The other session's format.
    pub format: String,
    /// The other session's id.
    pub id: String,
    /// The last entry of the other session that belongs to the path; none if the agent's file does not say.
    pub entry: Option<EntryId>,
}

/// A change that was requested for later. It says what to do, not where that leads: it is planned again when it is executed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Request {
    /// The command: `revert`, `switch`, `undo` or `compact`.
    pub verb: String,
    /// The checkpoint to go to.
    pub checkpoint: Option<CheckpointNumber>,
    /// The entry to go to.
    pub entry: Option<EntryId>,
    /// The branch to whose end to go.
    pub branch: Option<Text>,
    /// The operation to undo.
    #[serde(rename = "undoes")]
    pub operation: Option<OperationNumber>,
    /// The text of the note for the model.
    pub note: Option<Text>,
    /// The other options of the saved command, as typed.
    pub options: Vec<Text>,
    /// The computer and account of the person who asked; none if a program asked.
    #[serde(skip)]
    pub machine: Option<MachineId>,
}

/// A line with redacted bytes. Its entry keeps its id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tombstone {
    /// The entry.
    pub entry: EntryNumber,
    /// The length of its line, which is unchanged.
    pub size: u64,
    /// The id of the original line.
    pub line: Option<LineId>,
    /// The id of the current line.
    pub covered: Option<LineId>,
    /// The rule that found the bytes, if there was one.
    pub rule: Option<String>,
}

/// A file stored whole that has redacted bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoveredFile {
    /// The operation that stored it.
    pub operation: OperationNumber,
    /// Its index among the files of the operation: first the containers, then the sidecars.
    pub at: u64,
    /// The digest of its current bytes.
    pub digest: Digest,
    /// Their length.
    pub size: u64,
    /// The rule that found the bytes, if there was one.
    pub rule: Option<String>,
}

/// Runs of an operation from which unfinished lines were removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoveredRuns {
    /// The operation that added them.
    pub operation: OperationNumber,
    /// The digest of all runs of the operation as they are now.
    pub digest: Digest,
    /// The ids of the removed lines, without the surrounding white space.
    pub lines: Vec<LineId>,
}

/// The facts in the record of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// New files.
    pub files: Vec<File>,
    /// New generations.
    pub generations: Vec<Generation>,
    /// Moves of branches.
    pub moves: Vec<Move>,
    /// The current branch, if it changed.
    pub current: Option<Step<Text>>,
    /// The number of the live file, if it changed.
    pub live: Option<Step<FileNumber>>,
    /// Whether the session is hidden from lists, if that changed.
    pub hidden: Option<Step<u64>>,
    /// Rotations of live files.
    pub rotations: Vec<Rotation>,
    /// Compressed files.
    pub containers: Vec<Container>,
    /// Sidecars.
    pub sidecars: Vec<Sidecar>,
    /// The numbers of files that the agent deleted.
    pub gone: Vec<FileNumber>,
    /// The bases of generations.
    pub bases: Vec<Base>,
    /// The change that waits from now on.
    pub request: Option<Request>,
    /// The operation with the waiting change, if that changed.
    pub waiting: Option<Step<OperationNumber>>,
    /// Lines with redacted bytes.
    pub tombstones: Vec<Tombstone>,
    /// The title, if the agent keeps it in a separate file and it changed.
    pub title: Option<Text>,
    /// Files stored whole that have redacted bytes.
    pub covered_files: Vec<CoveredFile>,
    /// The working folder, if the agent keeps it in a separate file.
    pub folder: Option<Text>,
    /// Runs from which unfinished lines were removed.
    pub covered_runs: Vec<CoveredRuns>,
}

/// The facts that come in bulk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bulk {
    /// Lines that are new in the session.
    pub entries: Vec<Entry>,
    /// Additions to generations.
    pub runs: Vec<Run>,
    /// New checkpoints.
    pub checkpoints: Vec<Checkpoint>,
    /// Replaced entries.
    pub origins: Vec<Origin>,
}

/// How a record refers to facts that are stored next to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Their count.
    pub count: u64,
    /// The digest of their encodings, in order; an entry's encoding is its id.
    pub digest: Digest,
}

impl Place {
    /// Returns the path, relative to the folder of its variant.
    pub fn path(&self) -> &[u8] {
        match self {
            Self::Store(path) | Self::Home(_, path) | Self::Path(_, path) => path,
        }
    }

    /// Returns the file name, if it is UTF-8.
    pub fn name(&self) -> Option<&str> {
        Path::new(OsStr::from_bytes(self.path())).file_name()?.to_str()
    }
}

impl Named {
    /// Names checkpoints, runs or origins by their encodings.
    pub fn of<T: Tagged>(facts: &[T]) -> Option<Self> {
        let encoded: Vec<Vec<u8>> = facts.iter().map(Tagged::to_bytes).collect();
        let digest = Digest::of_facts(encoded.iter().map(Vec::as_slice));
        (!facts.is_empty()).then_some(Self { count: facts.len() as u64, digest })
    }

    /// Names entries by their ids, which cover link and line.
    pub fn entries(entries: &[Entry]) -> Option<Self> {
        let digest = Digest::of_facts(entries.iter().map(|entry| entry.id.as_bytes().as_slice()));
        (!entries.is_empty()).then_some(Self { count: entries.len() as u64, digest })
    }
}

impl Facts {
    /// Sorts the moves and the rotations by key.
    pub fn sort(&mut self) {
        self.moves.sort_by_key(|step| step.branch.to_text());
        self.rotations.sort_by_key(|rotation| rotation.file);
    }
}

impl Bulk {
    /// Sorts the runs and origins by key, the order in which a store returns them.
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

    /// Returns the length of the file after this run.
    pub fn length(&self) -> u64 {
        self.bytes.saturating_add(self.tail.len() as u64)
    }

    /// Returns the numbers of its entries.
    pub fn entries(&self) -> Range<EntryNumber> {
        self.first..self.first.plus(self.count)
    }

    /// Returns the unfinished line after its last entry, without the surrounding white space, if there is one.
    pub fn unfinished(&self) -> Option<&[u8]> {
        Some(self.tail.trim_ascii()).filter(|line| !line.is_empty())
    }

    /// Returns the number of its last entry, if it has entries.
    pub fn last(&self) -> Option<EntryNumber> {
        (self.count > 0).then(|| self.entries().end.minus(1))
    }
}

impl Gaps {
    /// Returns the default separator before an entry: a line feed, or nothing before the first entry.
    pub fn usual(position: u64) -> &'static [u8] {
        if position == 0 { b"" } else { b"\n" }
    }

    /// Adds the separator of the next entry, whose index in the generation is `position`.
    ///
    /// Invariant: nothing is stored while all separators are the default ones.
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

    /// Decodes the output of [`Gaps::encode`].
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
