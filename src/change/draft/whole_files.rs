//! Files that a change stores whole: compressed files and sidecars.

use crate::change::draft::Change;
use crate::model::{Container, Digest, FileNumber, GenerationNumber, Place, Sidecar};

/// Stores a compressed file with its generation. Returns true if it is new. Not done for a session with redactions, because
/// the file may contain redacted bytes.
pub(crate) fn contain(
    change: &mut Change<'_>,
    generation: GenerationNumber,
    bytes: Vec<u8>,
) -> bool {
    if change.before.state.is_covered() || !change.facts.tombstones.is_empty() {
        return false;
    }
    let container =
        Container { generation, digest: Digest::of_bytes(&bytes), size: bytes.len() as u64 };
    let mut held = change.before.state.containers.iter().rev().map(|(.., held)| held);
    if held.find(|held| held.generation == generation) == Some(&container) {
        return false;
    }
    change.facts.containers.push(container);
    change.kept.push(bytes);
    true
}

/// Stores a sidecar. Returns true if its bytes are new.
pub(crate) fn sidecar(change: &mut Change<'_>, place: Place, bytes: Vec<u8>) -> bool {
    let (digest, size) = (Digest::of_bytes(&bytes), bytes.len() as u64);
    let known = sidecars(change).find(|(known, _)| **known == place).map(|(_, kept)| kept.file);
    if known.is_some_and(|file| is_held(change, file, digest)) {
        return false;
    }
    let held = known;
    let file = held.unwrap_or_else(|| change.file(place));
    change.facts.sidecars.push(Sidecar { file, digest, size });
    change.bytes += size;
    change.sidecars.push(bytes);
    true
}

/// Returns true if a sidecar's newest bytes, original or redacted, have this digest.
fn is_held(change: &Change<'_>, file: FileNumber, digest: Digest) -> bool {
    if let Some(new) = change.facts.sidecars.iter().rev().find(|new| new.file == file) {
        return new.digest == digest;
    }
    let held = change.before.state.sidecars.get(&file);
    held.is_some_and(|(operation, at, kept)| {
        let covered = change.before.state.covered_file(*operation, *at);
        kept.digest == digest || covered.is_some_and(|covered| covered.digest == digest)
    })
}

/// Returns how many sidecars the session has at other places, and their total size.
pub(crate) fn sidecars_besides(change: &Change<'_>, place: &Place) -> (usize, u64) {
    let others = sidecars(change).filter(|(other, _)| *other != place);
    others.fold((0, 0), |(count, size), (_, kept)| (count + 1, size + kept.size))
}

/// Returns the newest sidecars with their places. A change contains each file at most once.
fn sidecars<'c>(change: &'c Change<'_>) -> impl Iterator<Item = (&'c Place, &'c Sidecar)> {
    let is_new = |file| change.facts.sidecars.iter().any(|new| new.file == file);
    let held = change.before.state.sidecars.values().map(|(.., kept)| kept);
    let held = held.filter(move |kept| !is_new(kept.file)).chain(&change.facts.sidecars);
    held.filter_map(|kept| {
        let met = change.facts.files.iter().find(|met| met.n == kept.file).map(|met| &met.place);
        Some((met.or_else(|| change.before.state.file(kept.file))?, kept))
    })
}
