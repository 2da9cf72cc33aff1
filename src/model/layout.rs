//! The layout of a store's folder: its file names.

use std::ffi::OsStr;

/// The database.
pub const DATABASE: &str = "store.db";
/// The database's write-ahead log: the newest changes, until a checkpoint copies them into the database.
pub const LOG: &str = "store.db-wal";
/// The index of the write-ahead log, shared by all programs that have the database open.
pub const SHARED: &str = "store.db-shm";
/// The witness: it records how far the database had come.
pub const WITNESS: &str = "store.witness";
/// The database of the search index.
pub const WORDS: &str = "search.db";
/// The seal of the search index: it records the state in which the database was left.
pub const SEAL: &str = "search.seal";
/// The folder of the live files that the store owns.
pub const TRANSCRIPTS: &str = "transcripts";
/// The folder where a new store is built from a damaged one.
pub const MENDING: &str = "mending";
/// The lines of a damaged store that no operation refers to, in the folder that preserves the damaged store.
pub const STRAYS: &str = "lines.jsonl";
/// The lock file of the program that changes the archive.
pub const LOCK: &str = "lock";
/// The lock file of the program that watches for the archive.
pub const WATCHED: &str = "watched";
/// The beginning of the lock files that mark compactions in progress.
pub const COMPACTING: &str = "compacting-";
/// The file that marks a redaction in progress.
pub const REDACTING: &str = "redacting";
/// The sessions, one number per line, whose files still have to be covered.
pub const UNCOVERED: &str = "uncovered";
/// The files that a user may add to a store's folder: settings, and a `.gitignore` that keeps the store out of git.
pub const BESIDE: [&str; 2] = ["config.toml", ".gitignore"];

/// Returns the name of the `n`-th folder that preserves a damaged store.
pub fn damaged_folder(n: u32) -> String {
    format!("damaged-{n}")
}

/// Returns true if `name` is a folder that preserves a damaged store.
pub fn is_damaged_folder(name: &OsStr) -> bool {
    let number = name.to_str().and_then(|name| name.strip_prefix("damaged-"));
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Returns true if `name`, in a store's folder, is part of the store.
pub fn is_part(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    // Each has companion files whose names start with its name.
    let files = [DATABASE, WITNESS, WORDS, SEAL];
    let is_file = files.iter().any(|one| bytes.starts_with(one.as_bytes()));
    is_file || name == TRANSCRIPTS || name == MENDING || is_damaged_folder(name)
}

/// Returns true if only undertext writes the file `name` in a store's folder.
pub fn is_own(name: &OsStr) -> bool {
    let starts = |with: &&str| name.as_encoded_bytes().starts_with(with.as_bytes());
    let is_left = [UNCOVERED, COMPACTING].iter().any(starts);
    is_part(name) || is_left || [LOCK, WATCHED, REDACTING].iter().any(|one| name == *one)
}
