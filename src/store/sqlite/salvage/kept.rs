//! Files that operations keep whole: the operation names the digest of each, by which its bytes are known wherever they lie.
//!
//! Invariant: what was taken out of a file does not come back: then its digest is the one that it has since.

use rusqlite::{OptionalExtension, params};

use super::{Loss, Salvage, counted};
use crate::{
    model::{Digest, Operation, OperationNumber},
    store::{
        NewLine, SessionKey, StoreError,
        sqlite::{
            bytes::Bytes,
            covered::{self, kept_digest},
            lost::LOST,
        },
    },
};

/// A file that a store kept and that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantedFile {
    /// The session.
    pub session: SessionKey,
    /// The operation that kept it.
    pub operation: OperationNumber,
    /// Which of the operation's files it is.
    pub n: u64,
    /// The digest of its bytes.
    pub digest: Digest,
}

impl Salvage {
    /// Returns the files that are wanted.
    pub fn wanted_files(&self) -> &[WantedFile] {
        &self.files
    }

    /// Gives back a file that operations kept, found anywhere, and returns for how many it was wanted.
    pub fn fill_file(&mut self, bytes: &[u8]) -> Result<usize, StoreError> {
        let digest = Digest::of_bytes(bytes);
        let is_it = |file: &WantedFile| file.digest == digest;
        let found: Vec<WantedFile> = self.files.iter().copied().filter(is_it).collect();
        self.files.retain(|file| !is_it(file));
        for file in &found {
            self.keep(file, Some(bytes.to_vec()))?;
        }
        Ok(found.len())
    }

    /// Copies the files that operations keep whole; those that cannot be read are wanted.
    pub(super) fn kept(&mut self) -> Result<(), StoreError> {
        let keys: Vec<SessionKey> = self.names.keys().copied().collect();
        let bytes = Bytes::default();
        for session in keys {
            for by in self.operations(session)? {
                for n in 0..count(&by) {
                    let operation = by.n;
                    let known = covered::file_by_operations(self.db(), session, (operation, n))?;
                    let Some(digest) = known.or_else(|| kept_digest(&by, n)) else { continue };
                    let file = WantedFile { session, operation, n, digest };
                    let line = self.row_of(&file)?;
                    if line.is_some_and(|line| line > 0) {
                        continue;
                    }
                    let found = line.and_then(|line| bytes.line(self.bytes_db(), -line).ok());
                    let found = found.filter(|found| {
                        let found = Digest::of_bytes(found);
                        found == digest || Some(found) == kept_digest(&by, n)
                    });
                    if found.is_none() {
                        self.files.push(file);
                    }
                    self.keep(&file, found)?;
                }
            }
        }
        // Those of operations that are lost: nothing says what they were, and another operation may get the number.
        let nameless = "DELETE FROM kept WHERE line < 0 OR NOT EXISTS
            (SELECT 1 FROM operation WHERE operation.session = kept.session AND operation.n = kept.operation)";
        let lost = self.db().execute(nameless, [])?;
        if lost > 0 {
            let item = format!("{} that lost operations kept", counted(lost, "file", "files"));
            self.losses.push(Loss { session: None, item });
        }
        Ok(())
    }

    /// Says which files are lost.
    pub(super) fn lose_files(&mut self) {
        for WantedFile { session, operation, n, .. } in std::mem::take(&mut self.files) {
            self.lose(session, format!("file {n} that operation {operation} kept"));
        }
    }

    /// Returns the number of a file's line: below zero if it is that of the damaged store.
    fn row_of(&self, file: &WantedFile) -> Result<Option<i64>, StoreError> {
        let sql = "SELECT line FROM kept WHERE session = ? AND operation = ? AND n = ?";
        let key = params![file.session.0, file.operation, file.n];
        Ok(self.db().prepare_cached(sql)?.query_row(key, |row| row.get(0)).optional()?)
    }

    fn keep(&self, file: &WantedFile, bytes: Option<Vec<u8>>) -> Result<(), StoreError> {
        let line = match bytes {
            Some(bytes) => {
                let line = NewLine::new(bytes, Vec::new());
                self.fresh.bytes.borrow_mut().add(self.db(), line, None)?
            }
            None => LOST,
        };
        self.db()
            .prepare_cached(
                "INSERT OR REPLACE INTO kept (session, operation, n, line) VALUES (?, ?, ?, ?)",
            )?
            .execute(params![file.session.0, file.operation, file.n, line])?;
        Ok(())
    }
}

/// Returns how many files an operation keeps.
fn count(by: &Operation) -> u64 {
    (by.facts.containers.len() + by.facts.sidecars.len()) as u64
}
