//! The words of persons: those that are what their digests say, from their table and from loose rows, and which are lost.
//!
//! Invariant: words that may have been taken out do not come back from a page that is no longer in use.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use rusqlite::{Connection, Row, types::Value};

use super::{Salvage, insert, scan::Table};
use crate::{
    model::{Command, Digest, OperationNumber, Tagged, Text},
    store::{
        SessionKey, StoreError,
        sqlite::query::{collect, hash, tagged},
    },
};

impl Salvage {
    /// Copies the words of persons that are those of their digests, and returns the sessions of which not all could be.
    pub(super) fn words(&mut self) -> Result<BTreeSet<SessionKey>, StoreError> {
        let columns = "session, operation, digest, salt, CAST(text AS BLOB)";
        let mut torn = BTreeSet::new();
        for session in self.names.keys() {
            let within = Some(("session = ?3", session.0));
            let table = Table { columns, name: "words", key: "operation", within };
            let mut are_right = true;
            let is_whole = table.scan(&self.old, &self.probes, &mut |row| {
                are_right &= add_words(self.db(), row)?;
                Ok(())
            })?;
            if !is_whole || !are_right {
                torn.insert(*session);
            }
        }
        Ok(torn)
    }

    /// Takes loose words, if they are those of their digest and were not taken out since.
    pub(super) fn loose_words<'r>(
        &self,
        rows: impl Iterator<Item = &'r Vec<Value>>,
    ) -> Result<(), StoreError> {
        let mut redacted = BTreeMap::new();
        for row in rows {
            let [
                Value::Integer(session),
                Value::Integer(operation),
                Value::Blob(digest),
                Value::Blob(salt),
                Value::Text(text),
            ] = row.as_slice()
            else {
                continue;
            };
            let key = SessionKey(*session);
            if !self.names.contains_key(&key) {
                continue;
            }
            let redacted: Option<OperationNumber> = match redacted.entry(key) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(place) => *place.insert(self.redacted(key)?),
            };
            let is_older = |redacted: OperationNumber| operation.cast_unsigned() < redacted.get();
            let salt: Option<[u8; 16]> = salt.as_slice().try_into().ok();
            let found = salt.map(|salt| Digest::of_words(&salt, text));
            if !redacted.is_some_and(is_older)
                && found.is_some_and(|found| found.as_bytes() == digest.as_slice())
            {
                insert(self.db(), "words", "session, operation, digest, salt, text", row.clone())?;
            }
        }
        Ok(())
    }

    /// Says which words are lost: operations and checkpoints name them. Those from before something was taken out may have gone
    /// with it, and are lost only if the session's words could not all be read.
    pub(super) fn lose_words(&mut self, torn: &BTreeSet<SessionKey>) -> Result<(), StoreError> {
        let keys: Vec<SessionKey> = self.names.keys().copied().collect();
        for session in keys {
            let sql = "SELECT operation, digest FROM words WHERE session = ?";
            let there = |row: &Row<'_>| Ok((row.get(0)?, Digest::new(hash(row, 1)?)));
            let there: BTreeSet<(OperationNumber, Digest)> =
                collect(self.db(), sql, [session.0], there)?.into_iter().collect();
            let redacted = self.redacted(session)?;
            let is_older = |n: OperationNumber| redacted.is_some_and(|redacted| n < redacted);
            let named = self.named_words(session)?;
            // What is no longer there is named again by its digest.
            let older = named.iter().filter(|(n, _)| is_older(*n));
            let older: BTreeSet<Digest> = older.map(|(_, digest)| *digest).collect();
            let mut lost: BTreeMap<OperationNumber, bool> = BTreeMap::new();
            for (n, digest) in named.difference(&there) {
                let is_certain = !older.contains(digest);
                if is_certain || torn.contains(&session) {
                    *lost.entry(*n).or_default() |= is_certain;
                }
            }
            for (n, is_certain) in lost {
                let unless = if is_certain { "" } else { ", unless they were redacted" };
                self.lose(session, format!("text of operation {n}{unless}"));
            }
        }
        Ok(())
    }

    /// Returns the digests of all words that operations and checkpoints name.
    fn named_words(
        &self,
        session: SessionKey,
    ) -> Result<BTreeSet<(OperationNumber, Digest)>, StoreError> {
        let mut named = BTreeSet::new();
        let mut name = |n, text: &Text| {
            if let Text::Absent(digest) = text {
                named.insert((n, *digest));
            }
        };
        for mut by in self.operations(session)? {
            let n = by.n;
            Tagged::texts(&mut by, &mut |text| name(n, text));
        }
        let sql = "SELECT operation, note FROM checkpoint WHERE session = ? AND note IS NOT NULL";
        // A note that is damaged is lost with its checkpoint.
        let notes =
            collect(self.db(), sql, [session.0], |row| Ok((row.get(0)?, tagged(row, 1).ok())))?;
        for (n, note) in notes {
            if let Some(note) = note {
                name(n, &note);
            }
        }
        Ok(named)
    }

    /// Returns the last operation of a session that took something out.
    fn redacted(&self, session: SessionKey) -> Result<Option<OperationNumber>, StoreError> {
        let mut operations = self.operations(session)?.into_iter();
        let redaction = operations.rfind(|by| matches!(by.command, Command::Redact { .. }));
        Ok(redaction.map(|by| by.n))
    }
}

/// Copies a row of words, if they are those of their digest.
fn add_words(fresh: &Connection, row: &Row<'_>) -> Result<bool, StoreError> {
    let salt: Option<[u8; 16]> = row.get(3).ok();
    let text: Option<Vec<u8>> = row.get(4).ok();
    let text = text.and_then(|text| String::from_utf8(text).ok());
    let (Some(salt), Some(text)) = (salt, text) else { return Ok(false) };
    let digest = Digest::of_words(&salt, &text);
    if row.get(2).ok() != Some(*digest.as_bytes()) {
        return Ok(false);
    }
    let values = [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, Value::Text(text)];
    insert(fresh, "words", "session, operation, digest, salt, text", values.into())?;
    Ok(true)
}
