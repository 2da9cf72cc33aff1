//! The words that persons gave with a session's operations: notes, names, reasons.

use crate::{
    model::{CheckpointNumber, OperationNumber, State, Tagged, Text, Words},
    session::Session,
    store::{Store, StoreError},
};

/// Hands over each with its operation; a note that a checkpoint has, with the checkpoint's.
pub(crate) fn each_given(
    store: &dyn Store,
    session: &Session,
    state: &State,
    see: &mut dyn FnMut(OperationNumber, &Words),
) -> Result<(), StoreError> {
    let mut see = |operation: OperationNumber, text: &Text| {
        if let Some(words) = text.words() {
            see(operation, words);
        }
    };
    let all = OperationNumber::FIRST..state.next_operation();
    for mut operation in store.operations(session.key, all)? {
        let n = operation.n;
        Tagged::texts(&mut operation, &mut |text: &mut Text| see(n, text));
    }
    let given = CheckpointNumber::FIRST..state.next_checkpoint();
    for (n, checkpoint) in store.checkpoints(session.key, given)? {
        checkpoint.note.iter().for_each(|note| see(n, note));
    }
    Ok(())
}
