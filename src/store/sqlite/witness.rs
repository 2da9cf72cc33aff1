//! The witness: a small file next to the database that records how far it had come, so that a database that has lost something
//! can be told apart from an intact one.
//!
//! ```text
//! slot 0 (64 bytes)   the store's id (16), an operation's number in the store (8), its hash (32), a checksum (8)
//! slot 1 (64 bytes)   the same for the operation before or after
//! ```
//!
//! Operations alternate between the slots by number, so an interrupted write leaves the other slot intact. A witness behind the
//! database is normal, because nothing waits for it; a witness ahead of the database means damage.
//!
//! Invariant: no commit fails, or is less durable, because its witness could not be written.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use crate::{
    disk::{self, Links},
    model::{OperationId, StoreId},
};

/// The length of a slot: no disk writes less at once.
const SLOT: usize = 64;
/// The key of the checksum, which separates it from all other hashes.
const KEY: [u8; 32] = *b"undertext witness 1\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// How far a store had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The store.
    pub store: StoreId,
    /// The number of an operation in the store: 1, 2, 3 ...
    pub seq: u64,
    /// Its hash.
    pub hash: OperationId,
}

impl Witness {
    fn encode(&self) -> [u8; SLOT] {
        let mut slot = [0; SLOT];
        slot[..16].copy_from_slice(self.store.as_bytes());
        slot[16..24].copy_from_slice(&self.seq.to_le_bytes());
        slot[24..56].copy_from_slice(self.hash.as_bytes());
        let sum = blake3::keyed_hash(&KEY, &slot[..56]);
        slot[56..].copy_from_slice(&sum.as_bytes()[..8]);
        slot
    }

    fn decode(slot: &[u8]) -> Option<Self> {
        let (content, sum) = slot.split_at_checked(56)?;
        if blake3::keyed_hash(&KEY, content).as_bytes().get(..8) != Some(sum) {
            return None;
        }
        let (store, rest) = content.split_first_chunk()?;
        let (seq, hash) = rest.split_first_chunk()?;
        Some(Self {
            store: StoreId::new(*store),
            seq: u64::from_le_bytes(*seq),
            hash: OperationId::from_slice(hash)?,
        })
    }
}

/// Returns the path of a database's witness.
pub(super) fn path_of(database: &Path) -> PathBuf {
    database.with_extension("witness")
}

/// Returns the newest witness of a store in the file. Returns `None` if the file is missing or has none of this store.
pub(super) fn read(path: &Path, store: StoreId) -> io::Result<Option<Witness>> {
    let slots = read_all(path)?.into_iter();
    Ok(slots.filter(|witness| witness.store == store).max_by_key(|witness| witness.seq))
}

/// Returns the newest witness next to a database, of any store.
pub(super) fn newest(database: &Path) -> Option<Witness> {
    read_all(&path_of(database)).ok()?.into_iter().max_by_key(|witness| witness.seq)
}

/// Returns true if a witness has seen a store at this path.
pub fn is_witnessed(database: &Path) -> bool {
    newest(database).is_some()
}

/// Returns the witnesses in the file, of any store.
pub(super) fn read_all(path: &Path) -> io::Result<Vec<Witness>> {
    Ok(read_bytes(path)?.chunks_exact(SLOT).filter_map(Witness::decode).collect())
}

/// Returns the bytes of the slots; empty if the file is missing.
fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match disk::open(path, Links::Refuse) {
        Ok(file) => file.take(2 * SLOT as u64).read_to_end(&mut bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    Ok(bytes)
}

/// The condition of a witness file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// Every written slot is readable.
    Whole,
    /// A slot is unreadable.
    Damaged,
    /// The file is missing or empty.
    Missing,
}

/// Returns the condition of a witness file.
pub(super) fn condition(path: &Path) -> io::Result<Condition> {
    let mut condition = Condition::Damaged;
    // A slot may be read in the middle of a write, so look again.
    for _ in 0..3 {
        let bytes = read_bytes(path)?;
        let is_unwritten = |slot: &[u8]| slot.iter().all(|byte| *byte == 0);
        let is_whole = |slot: &[u8]| is_unwritten(slot) || Witness::decode(slot).is_some();
        condition = if is_unwritten(&bytes) {
            Condition::Missing
        } else if bytes.chunks(SLOT).all(is_whole) {
            return Ok(Condition::Whole);
        } else {
            Condition::Damaged
        };
    }
    Ok(condition)
}

/// The file as opened by a writer.
pub(super) struct WitnessFile {
    path: PathBuf,
    file: Option<File>,
    /// The witness written last.
    last: Option<Witness>,
    /// Whether a write was not synced yet.
    is_dirty: bool,
}

impl WitnessFile {
    /// Creates nothing yet: the first write opens the file, or creates it.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, file: None, last: None, is_dirty: false }
    }

    fn opened(&mut self) -> io::Result<File> {
        self.file.take().map_or_else(|| disk::open_or_make(&self.path), Ok)
    }

    /// Writes how far the store has come, unless that was written last. Does not sync.
    pub(super) fn write(&mut self, witness: &Witness) -> io::Result<()> {
        if self.last.as_ref() == Some(witness) {
            return Ok(());
        }
        let file = self.opened()?;
        disk::write_at(&file, &witness.encode(), witness.seq % 2 * SLOT as u64)?;
        (self.file, self.last, self.is_dirty) = (Some(file), Some(*witness), true);
        Ok(())
    }

    /// Writes how far a store has come, if possible: a witness that is behind is normal.
    pub(super) fn bear(&mut self, store: StoreId, (seq, hash): (u64, OperationId)) {
        let _ = self.write(&Witness { store, seq, hash });
    }

    /// Deletes the record of how far the store has come.
    pub(super) fn forget(&mut self) -> io::Result<()> {
        let file = self.opened()?;
        disk::write_at(&file, &[0; 2 * SLOT], 0)?;
        disk::sync_data(&file)?;
        (self.file, self.last, self.is_dirty) = (Some(file), None, false);
        Ok(())
    }

    /// Syncs the writes, if there were any.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        match &self.file {
            Some(file) if std::mem::take(&mut self.is_dirty) => disk::sync_data(file),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test damages what was written")]
mod tests {
    use std::fs;

    use super::*;

    const OWN: StoreId = StoreId::new([7; 16]);

    fn of(seq: u64) -> Witness {
        let byte = u8::try_from(seq % 251).unwrap();
        Witness { store: OWN, seq, hash: OperationId::new([byte; 32]) }
    }

    #[test]
    fn the_newest_whole_slot_of_the_store_is_what_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.witness");
        assert_eq!(read(&path, OWN).unwrap(), None);
        let mut file = WitnessFile::new(path.clone());
        assert!(!path.exists());
        for seq in [1, 2, 3, 400, 401] {
            file.write(&of(seq)).unwrap();
            assert_eq!(read(&path, OWN).unwrap(), Some(of(seq)));
        }
        file.sync().unwrap();
        assert_eq!(read(&path, StoreId::new([8; 16])).unwrap(), None);
        // Another program goes on in the same file.
        WitnessFile::new(path.clone()).write(&of(402)).unwrap();
        assert_eq!(read(&path, OWN).unwrap(), Some(of(402)));
        assert_eq!(fs::metadata(&path).unwrap().len(), 128);
    }

    #[test]
    fn a_slot_that_is_cut_short_or_damaged_leaves_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.witness");
        let mut file = WitnessFile::new(path.clone());
        file.write(&of(6)).unwrap();
        file.write(&of(7)).unwrap();
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(&path, &damaged).unwrap();
            let left = if at < SLOT { 7 } else { 6 };
            assert_eq!(read(&path, OWN).unwrap(), Some(of(left)), "byte {at}");
        }
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(read(&path, OWN).unwrap(), (length >= SLOT).then(|| of(6)), "{length}");
        }
        fs::write(&path, vec![0; 4096]).unwrap();
        assert_eq!(read(&path, OWN).unwrap(), None);
    }

    #[test]
    fn a_damaged_slot_and_a_missing_file_are_told_from_a_whole_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.witness");
        assert_eq!(condition(&path).unwrap(), Condition::Missing);
        let mut file = WitnessFile::new(path.clone());
        for seq in [1, 2, 3] {
            file.write(&of(seq)).unwrap();
            assert_eq!(condition(&path).unwrap(), Condition::Whole, "{seq}");
        }
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(&path, &damaged).unwrap();
            assert_eq!(condition(&path).unwrap(), Condition::Damaged, "byte {at}");
        }
        fs::write(&path, &whole[..=SLOT]).unwrap();
        assert_eq!(condition(&path).unwrap(), Condition::Damaged);
        file.forget().unwrap();
        assert_eq!(condition(&path).unwrap(), Condition::Missing);
    }

    #[test]
    fn a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("store.witness"), folder.path().join("other"));
        fs::write(&other, "what others wrote").unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert!(WitnessFile::new(path.clone()).write(&of(1)).is_err());
        assert!(read(&path, OWN).is_err());
        assert_eq!(fs::read(&other).unwrap(), b"what others wrote");
    }
}
