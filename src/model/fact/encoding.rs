//! The encoding of facts: the numbers of their fields, frozen with the first release.
//!
//! Invariant: the number of a field is never reused.

use super::{
    Base, Checkpoint, Container, CoveredFile, CoveredRuns, CutOff, Cutting, Facts, File, Gaps,
    Generation, Move, Named, Origin, Place, Position, Request, Rotation, Run, Sidecar, Step,
    Tombstone,
};
use crate::model::{
    Command, MachineId, Text,
    tagged::{Field, Malformed, Payload, Tagged, each_field, put_field, tagged},
};

tagged!(File { 1: n, 2: place });
tagged!(Generation { 1: n, 2: file });
tagged!(Run {
    1: generation,
    2: start,
    3: first,
    4: count,
    5: gaps,
    6: bytes,
    7: running,
    8: tail
});
tagged!(Position { 1: generation, 2: head, 3: horizon });
tagged!(Move { 1: branch, 2: from, 3: to });
tagged!(Checkpoint { 1: n, 2: place, 3: before, 4: own, 5: note });
tagged!(Origin { 1: entry, 2: origin, 3: cut });
tagged!(Cutting { 1: tool, 2: tokens_before, 3: tokens_after, 4: texts });
tagged!(CutOff { 1: call, 2: text, 3: whole, 4: kept, 5: suffix });
tagged!(Rotation { 1: file, 2: aside, 3: old, 4: new, 5: inode, 6: length });
tagged!(Container { 1: generation, 2: digest, 3: size });
tagged!(Sidecar { 1: file, 2: digest, 3: size });
tagged!(Base { 1: generation, 2: format, 3: id, 4: entry });
tagged!(Request {
    1: verb,
    2: checkpoint,
    3: entry,
    4: branch,
    5: operation,
    6: note,
    7: options,
    8: machine,
});
tagged!(Tombstone { 1: entry, 2: size, 3: line, 4: covered, 5: rule });
tagged!(CoveredFile { 1: operation, 2: at, 3: digest, 4: size, 5: rule });
tagged!(CoveredRuns { 1: operation, 2: digest, 3: lines });
tagged!(Named { 1: count, 2: digest });
tagged!(Facts {
    1: files,
    2: generations,
    3: moves,
    4: current,
    5: live,
    6: hidden,
    7: rotations,
    8: containers,
    9: sidecars,
    10: gone,
    11: bases,
    12: request,
    13: waiting,
    14: tombstones,
    15: title,
    17: covered_files,
    18: folder,
    19: covered_runs,
});

impl Default for Place {
    fn default() -> Self {
        Self::Store(Vec::new())
    }
}

/// The fields of a [`Place`].
#[derive(Default)]
struct PlaceFields {
    /// 0: relative to the store's folder, 1: relative to the home folder, 2: absolute.
    root: u64,
    machine: Option<MachineId>,
    path: Vec<u8>,
}

tagged!(PlaceFields { 1: root, 2: machine, 3: path });

impl Tagged for Place {
    fn write(&self, out: &mut Vec<u8>) {
        let (root, machine, path) = match self {
            Self::Store(path) => (0, None, path),
            Self::Home(machine, path) => (1, Some(*machine), path),
            Self::Path(machine, path) => (2, Some(*machine), path),
        };
        PlaceFields { root, machine, path: path.clone() }.write(out);
    }

    fn read(bytes: &[u8], unknown: &mut Vec<u64>) -> Result<Self, Malformed> {
        let PlaceFields { root, machine, path } = Tagged::read(bytes, unknown)?;
        match (root, machine) {
            (0, None) => Ok(Self::Store(path)),
            (1, Some(machine)) => Ok(Self::Home(machine, path)),
            (2, Some(machine)) => Ok(Self::Path(machine, path)),
            (0..=2, _) => Err(Malformed("a place is nowhere")),
            (other, _) => {
                unknown.push(other);
                Ok(Self::default())
            }
        }
    }

    fn texts(&mut self, _: &mut dyn FnMut(&mut Text)) {}
}

/// A field whose value is a struct with fields of its own, and occurs at most once.
macro_rules! whole_field {
    ($($type:ty),+) => {$(
        impl Field for $type {
            fn put(&self, tag: u64, out: &mut Vec<u8>) {
                if *self != Self::default() {
                    put_field(tag, self, out);
                }
            }

            fn take(&mut self, payload: &[u8], unknown: &mut Vec<u64>) -> Result<(), Malformed> {
                let known = unknown.len();
                let before = std::mem::replace(self, Payload::unpack(payload, unknown)?);
                // A value without known fields may have fields that a newer program wrote.
                let holds = *self != Self::default() || unknown.len() > known;
                if before == Self::default() && holds {
                    Ok(())
                } else {
                    Err(Malformed("a field is empty or appears twice"))
                }
            }

            fn texts(&mut self, each: &mut dyn FnMut(&mut Text)) {
                Tagged::texts(self, each);
            }
        }
    )+};
}

whole_field!(Place, Position, Text, Command, Facts);

impl<T: Payload> Tagged for Step<T> {
    fn write(&self, out: &mut Vec<u8>) {
        Field::put(&self.from, 1, out);
        Field::put(&self.to, 2, out);
    }

    fn read(bytes: &[u8], unknown: &mut Vec<u64>) -> Result<Self, Malformed> {
        let mut step = Self { from: None, to: None };
        each_field(bytes, |tag, payload| {
            match tag {
                1 => Field::take(&mut step.from, payload, unknown)?,
                2 => Field::take(&mut step.to, payload, unknown)?,
                other => unknown.push(other),
            }
            Ok(())
        })?;
        Ok(step)
    }

    fn texts(&mut self, each: &mut dyn FnMut(&mut Text)) {
        Field::texts(&mut self.from, each);
        Field::texts(&mut self.to, each);
    }
}

impl Field for String {
    fn put(&self, tag: u64, out: &mut Vec<u8>) {
        if !self.is_empty() {
            put_field(tag, self, out);
        }
    }

    fn take(&mut self, payload: &[u8], unknown: &mut Vec<u64>) -> Result<(), Malformed> {
        if !self.is_empty() || payload.is_empty() {
            return Err(Malformed("a field is empty or appears twice"));
        }
        *self = Payload::unpack(payload, unknown)?;
        Ok(())
    }
}

impl Field for Gaps {
    fn put(&self, tag: u64, out: &mut Vec<u8>) {
        Field::put(&self.encode(), tag, out);
    }

    fn take(&mut self, payload: &[u8], _: &mut Vec<u64>) -> Result<(), Malformed> {
        if !self.0.is_empty() || payload.is_empty() {
            return Err(Malformed("a field is empty or appears twice"));
        }
        *self = Self::decode(payload).ok_or(Malformed("separators are damaged"))?;
        if self.encode() == payload { Ok(()) } else { Err(Malformed("separators are damaged")) }
    }
}
