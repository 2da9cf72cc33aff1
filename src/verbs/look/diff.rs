//! `diff`: compares two branches, or two entries with their paths, from their fork on.
//!
//! ```text
//! one    a b c d   f g        common  a b       up to the fork
//! other  a b C d x f'         changed c -> C    the same record with different content
//!                             same    d         after the fork, and equal on both sides
//!                             only    x         on one side only
//!                             renewed f -> f'   equal content in a different entry
//! ```
//!
//! Entries are equal if their lines are. Where lines differ, as in forks that rewrite the session id, their messages are
//! compared.
//!
//! Invariant: no entry of a side is missing from the rows, repeated, or out of order.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::{
    archive::At,
    json::Raw,
    model::{Block, EntryId, EntryNumber},
    report::{Diff, Difference, Side},
    session::{
        Damages, Target,
        graph::content,
        history::origins,
        read::lines::{self, Line},
    },
    verbs::OpsError,
};

/// An entry of a side, with its key.
struct Mark {
    n: EntryNumber,
    id: EntryId,
    /// A hash of its line, or of its messages if the other side does not have the line.
    key: [u8; 32],
}

/// Compares two entries with their paths.
pub fn diff(one: (&At<'_>, &Target), other: (&At<'_>, &Target)) -> Result<Diff, OpsError> {
    let damages = (Damages::gathered(), Damages::gathered());
    let (a, b) = (path(one.0, one.1, &damages.0)?, path(other.0, other.1, &damages.1)?);
    let common = a.iter().zip(&b).take_while(|(a, b)| a.1 == b.1).count();
    let fork = common.checked_sub(1).and_then(|last| a.get(last)).map(|(_, id, _)| *id);
    let (a, b) = (a.get(common..).unwrap_or_default(), b.get(common..).unwrap_or_default());
    let keys = |side: &[(EntryNumber, EntryId, EntryId)]| -> BTreeSet<EntryId> {
        side.iter().map(|(.., line)| *line).collect()
    };
    let (known_a, known_b) = (keys(a), keys(b));
    let mut sides = Sides {
        one,
        other,
        a: marks(one.0, a, &known_b, &damages.0)?,
        b: marks(other.0, b, &known_a, &damages.1)?,
        damages: &damages,
        rows: Vec::new(),
    };
    sides.compare()?;
    let rows = sides.rows;
    let mut damaged = damages.0.met(one.0)?;
    for found in damages.1.met(other.0)? {
        if !damaged.contains(&found) {
            damaged.push(found);
        }
    }
    Ok(Diff { fork, common: common as u64, rows, damaged })
}

/// Returns the conversation up to a target: entries with their ids and line hashes.
fn path(
    session: &At<'_>,
    target: &Target,
    damages: &Damages,
) -> Result<Vec<(EntryNumber, EntryId, EntryId)>, OpsError> {
    let view = session.view(target.position).gathering(damages);
    let kept = lines::last(&view, usize::MAX)?.entries;
    let mut path = Vec::with_capacity(kept.len());
    for range in EntryNumber::ranges(kept.iter().copied(), 1) {
        let entries = session.store.entries(session.key, range.clone())?;
        let alone = content::alone(session.store, session.key, range, damages)?;
        let both = entries.into_iter().zip(alone);
        path.extend(both.map(|(entry, line)| (entry.n, entry.id, line)));
    }
    Ok(path)
}

fn marks(
    session: &At<'_>,
    side: &[(EntryNumber, EntryId, EntryId)],
    known: &BTreeSet<EntryId>,
    damages: &Damages,
) -> Result<Vec<Mark>, OpsError> {
    let unknown: Vec<EntryNumber> =
        side.iter().filter(|(.., line)| !known.contains(line)).map(|(n, ..)| *n).collect();
    let mut said = BTreeMap::new();
    damages.lines(session.store, session.key, &unknown, &mut |n, line| {
        let mut hasher = blake3::Hasher::new();
        match Raw::object(&line) {
            Some(record) => {
                for message in session.format.messages(record) {
                    hasher.update(format!("{:?} {:?}\n", message.role, message.blocks).as_bytes());
                }
            }
            None => {
                hasher.update(&line);
            }
        }
        said.insert(n, *hasher.finalize().as_bytes());
    })?;
    let mark = |(n, id, line): &(EntryNumber, EntryId, EntryId)| {
        let key = said.get(n).copied().unwrap_or(*line.as_bytes());
        Mark { n: *n, id: *id, key }
    };
    Ok(side.iter().map(mark).collect())
}

/// Pairs the equal entries of two sides, in order. Entries on one side only are filtered out first, because Myers' algorithm is
/// quadratic in the differences.
fn pairs(a: &[Mark], b: &[Mark]) -> Vec<(usize, usize)> {
    let keys = |side: &[Mark]| -> BTreeSet<[u8; 32]> { side.iter().map(|mark| mark.key).collect() };
    let shared = |side: &[Mark], other: &[Mark]| -> (Vec<usize>, Vec<[u8; 32]>) {
        let known = keys(other);
        let shared = side.iter().enumerate().filter(|(_, mark)| known.contains(&mark.key));
        shared.map(|(at, mark)| (at, mark.key)).unzip()
    };
    let ((at_a, a), (at_b, b)) = (shared(a, b), shared(b, a));
    let mut pairs = Vec::new();
    for operation in capture_diff_slices(Algorithm::Myers, &a, &b) {
        if let DiffOp::Equal { old_index, new_index, len } = operation {
            let one = at_a.iter().copied().skip(old_index);
            pairs.extend(one.zip(at_b.iter().copied().skip(new_index)).take(len));
        }
    }
    pairs
}

/// The two sides after the fork, while they are compared.
struct Sides<'a> {
    one: (&'a At<'a>, &'a Target),
    other: (&'a At<'a>, &'a Target),
    a: Vec<Mark>,
    b: Vec<Mark>,
    damages: &'a (Damages, Damages),
    rows: Vec<Difference>,
}

impl Sides<'_> {
    fn compare(&mut self) -> Result<(), OpsError> {
        let pairs = pairs(&self.a, &self.b);
        let (mut a, mut b) = (0, 0);
        for run in pairs.chunk_by(|one, next| (one.0 + 1, one.1 + 1) == *next) {
            let Some(&(first, other)) = run.first() else { continue };
            // Put removed entries next to those that replaced them.
            self.apart(a..first, b..other)?;
            (a, b) = (first + run.len(), other + run.len());
            self.alike(first..a, other..b);
        }
        self.apart(a..self.a.len(), b..self.b.len())
    }

    /// Adds entries with equal content.
    fn alike(&mut self, a: Range<usize>, b: Range<usize>) {
        let (a, b) = (self.a.get(a).unwrap_or_default(), self.b.get(b).unwrap_or_default());
        let pairs: Vec<(EntryId, EntryId)> = a.iter().zip(b).map(|(a, b)| (a.id, b.id)).collect();
        for part in pairs.chunk_by(|one, next| (one.0 == one.1) == (next.0 == next.1)) {
            let is_same = part.first().is_some_and(|(a, b)| a == b);
            self.rows.push(if is_same {
                Difference::Same(part.len() as u64)
            } else {
                Difference::Renewed(part.to_vec())
            });
        }
    }

    /// Adds entries that differ. Versions of the same record, or results of the same call, become pairs.
    fn apart(&mut self, a: Range<usize>, b: Range<usize>) -> Result<(), OpsError> {
        let numbers = |side: Option<&[Mark]>| -> Vec<EntryNumber> {
            side.into_iter().flatten().map(|mark| mark.n).collect()
        };
        let (a, b) = (numbers(self.a.get(a)), numbers(self.b.get(b)));
        let (a, b) = (self.lines(Side::One, &a)?, self.lines(Side::Other, &b)?);
        let mut known = BTreeMap::new();
        let mut left: Vec<Option<Line>> = Vec::with_capacity(b.len());
        for line in b {
            for name in self.names(Side::Other, &line)? {
                known.entry(name).or_insert(left.len());
            }
            left.push(Some(line));
        }
        for line in a {
            let names = self.names(Side::One, &line)?;
            let mut found = names.iter().filter_map(|name| known.get(name));
            let other = found.find_map(|at| left.get_mut(*at)?.take());
            self.rows.push(match other {
                Some(other) => Difference::Changed(line, Box::new(other)),
                None => Difference::Only(Side::One, line),
            });
        }
        let left = left.into_iter().flatten();
        self.rows.extend(left.map(|line| Difference::Only(Side::Other, line)));
        Ok(())
    }

    /// Returns the names that identify an entry on both sides whatever its content: the name of its record, the entry that it was
    /// before any replacement, and the call that it answers.
    fn names(&self, side: Side, line: &Line) -> Result<Vec<String>, OpsError> {
        let mut names = Vec::new();
        names.extend(line.uuid.as_ref().map(|uuid| format!("record {uuid}")));
        let session = if side == Side::One { self.one.0 } else { self.other.0 };
        if self.one.0.key == self.other.0.key {
            let origin = origins::first(session, line.n)?;
            names.push(format!("entry {origin}"));
        }
        let blocks = line.messages.iter().flat_map(|message| &message.blocks);
        names.extend(blocks.filter_map(|block| match block {
            Block::Result { id, .. } if !id.is_empty() => Some(format!("call {id}")),
            _ => None,
        }));
        Ok(names)
    }

    fn lines(&self, side: Side, entries: &[EntryNumber]) -> Result<Vec<Line>, OpsError> {
        let ((session, target), damages) = match side {
            Side::One => (self.one, &self.damages.0),
            Side::Other => (self.other, &self.damages.1),
        };
        let view = session.view(target.position).gathering(damages);
        Ok(lines::lines(session, &view, entries)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(keys: impl Iterator<Item = u32>) -> Vec<Mark> {
        let mark = |key: u32| {
            let mut bytes = [0; 32];
            bytes[..4].copy_from_slice(&key.to_be_bytes());
            Mark { n: EntryNumber::default(), id: EntryId::new(bytes), key: bytes }
        };
        keys.map(mark).collect()
    }

    #[test]
    fn sides_that_share_little_are_compared_in_proportion_to_their_length() {
        let one = side((0..200_000).map(|n| if n % 50_000 == 7 { n } else { 2 * n + 1_000_000 }));
        let other = side((0..200_000).map(|n| if n % 50_000 == 7 { n } else { 2 * n + 1_000_001 }));
        let shared = [7, 50_007, 100_007, 150_007].map(|n| (n, n));
        assert_eq!(pairs(&one, &other), shared);
        assert_eq!(pairs(&one, &[]), []);
        let moved =
            pairs(&side([1, 2, 9, 3, 4].into_iter()), &side([8, 1, 2, 3, 7, 4].into_iter()));
        assert_eq!(moved, [(0, 1), (1, 2), (3, 3), (4, 5)]);
    }
}
