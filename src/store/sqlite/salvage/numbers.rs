//! Numbers: the checkpoints of operations, where their rows are lost or are not those that the operations name.
//!
//! Invariant: checkpoints are taken only if they are those that the record of their operation names.

use rusqlite::params;

use super::Salvage;
use crate::{
    model::{Bulk, Checkpoint, Digest, Named, Operation, OperationNumber, Text},
    store::{
        SessionKey, StoreError,
        sqlite::{
            add::{self, Placed},
            query::{collect, hash},
        },
    },
};

impl Salvage {
    /// Returns the words that persons gave with an operation, by their digests.
    pub fn words_of(
        &self,
        session: SessionKey,
        by: OperationNumber,
    ) -> Result<Vec<Text>, StoreError> {
        let sql = "SELECT digest FROM words WHERE session = ? AND operation = ?";
        let digests = collect(self.db(), sql, params![session.0, by], |row| hash(row, 0))?;
        Ok(digests.into_iter().map(|digest| Text::Absent(Digest::new(digest))).collect())
    }

    /// Gives checkpoints their numbers again, those of each operation in their order.
    pub fn renumber(
        &mut self,
        session: SessionKey,
        all: &[(Operation, Vec<Checkpoint>)],
    ) -> Result<(), StoreError> {
        self.db().execute_batch("BEGIN IMMEDIATE")?;
        for (operation, checkpoints) in all {
            let bulk = Bulk { checkpoints: checkpoints.clone(), ..Bulk::default() };
            if operation.checkpoints != Named::checkpoints(&bulk.checkpoints) {
                continue;
            }
            for given in checkpoints {
                self.db()
                    .prepare_cached("DELETE FROM checkpoint WHERE session = ? AND n = ?")?
                    .execute(params![session.0, given.n])?;
            }
            let (seq, lines, kept) = (0, vec![], vec![]);
            let placed = Placed { session, seq, operation, bulk: &bulk, lines, kept };
            add::add_growth(self.db(), &[placed])?;
        }
        Ok(self.db().execute_batch("COMMIT")?)
    }
}
