//! What a change keeps out of the store.

use super::Change;
use crate::{
    model::{EntryNumber, Tombstone},
    session::Growth,
    store::NewLine,
    sync::{
        SyncError,
        door::{Door, Entering},
    },
    wire::Envelope,
};

impl Change<'_> {
    /// Ends a growth with the bytes behind its last line. If they were taken out, have something that was, or may end within it, they
    /// are not held: they are read once they are a line.
    pub(crate) fn end(&mut self, growth: &mut Growth, tail: Vec<u8>) -> Result<(), SyncError> {
        let is_held = tail.is_empty()
            || !self.before.state.has_taken_out(&tail) && !self.door()?.keeps_out_unfinished(&tail);
        growth.end(if is_held { tail } else { Vec::new() });
        Ok(())
    }

    /// Returns what is kept out of the store.
    pub(super) fn door(&mut self) -> Result<&Door, SyncError> {
        let door = match self.door.take() {
            Some(door) => door,
            None => self.before.archive.door()?,
        };
        Ok(self.door.insert(door))
    }

    /// Covers a new line, if it was taken out before or has something that was.
    pub(super) fn keep_out(
        &mut self,
        n: EntryNumber,
        line: &mut NewLine,
        envelope: &mut Envelope,
    ) -> Result<(), SyncError> {
        let (store, format) = (self.before.store(), self.before.format);
        let size = line.bytes().len() as u64;
        match self.door()?.cover(store, line, (format, envelope))? {
            Entering::AsItIs => {}
            Entering::Fixed => self.kept_out.1 += 1,
            Entering::Covered { bytes, envelope: fresh, rule } => {
                let came = Some(line.id());
                line.cover(bytes);
                *envelope = fresh;
                let covered = Some(line.id());
                self.facts.tombstones.push(Tombstone { entry: n, size, line: came, covered, rule });
                self.kept_out.0 += 1;
            }
        }
        Ok(())
    }
}
