//! Parts: what is stored of a session apart from its entries.

use crate::{
    model::{CheckpointNumber, FileNumber, OperationNumber, Run, Tagged, Text, Words},
    session::Stored,
    store::StoreError,
};

/// A part of a session.
pub(crate) enum Part {
    /// A file that an operation stored whole.
    Kept(KeptWhole),
    /// A run that an operation read. The line at its end may be unfinished.
    Read(OperationNumber, Run),
    /// A text that a person supplied with an operation: a note, a name, a reason. The note of a checkpoint is also stored with
    /// the checkpoint.
    Given(OperationNumber, Words),
}

/// A file that is stored whole.
pub(crate) struct KeptWhole {
    pub(crate) file: Option<FileNumber>,
    /// The operation, and the index of the file among those that it stores.
    pub(crate) at: (OperationNumber, u64),
    /// Whether it is a compressed session file.
    pub(crate) is_packed: bool,
}

/// Returns the parts of a session.
pub(crate) fn parts(session: &Stored<'_>) -> Result<Vec<Part>, StoreError> {
    let mut parts = Vec::new();
    let all = OperationNumber::FIRST..session.state.next_operation();
    for mut operation in session.store.operations(session.key, all)? {
        let (n, facts) = (operation.n, &operation.facts);
        let packed =
            facts.containers.iter().map(|one| (true, session.state.file_of(one.generation)));
        let plain = facts.sidecars.iter().map(|one| (false, Some(one.file)));
        for (at, (is_packed, file)) in (0..).zip(packed.chain(plain)) {
            parts.push(Part::Kept(KeptWhole { file, at: (n, at), is_packed }));
        }
        let mut see = |text: &mut Text| {
            parts.extend(text.words().map(|words| Part::Given(n, words.clone())));
        };
        Tagged::texts(&mut operation, &mut see);
    }
    let all = CheckpointNumber::FIRST..session.state.next_checkpoint();
    for (n, checkpoint) in session.store.checkpoints(session.key, all)? {
        let words = checkpoint.note.as_ref().and_then(Text::words);
        parts.extend(words.map(|words| Part::Given(n, words.clone())));
    }
    let growths = session.store.growths(session.key, OperationNumber::ALL)?.into_iter();
    parts.extend(growths.map(|(operation, run)| Part::Read(operation, run)));
    Ok(parts)
}
