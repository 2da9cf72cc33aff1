//! The layout of a store's folder: the names of its parts.

use std::ffi::OsStr;

/// The database.
pub const DATABASE: &str = "store.db";
/// The log of the database: what was written last, until it goes into the database itself.
pub const LOG: &str = "store.db-wal";
/// The index of the log, which all who have the database open share.
pub const SHARED: &str = "store.db-shm";
/// The witness, which says how far the database had come.
pub const WITNESS: &str = "store.witness";
/// The folder of the live files that the store keeps itself.
pub const TRANSCRIPTS: &str = "transcripts";
/// The folder in which a fresh store is made of a damaged one.
pub const MENDING: &str = "mending";

/// Returns the name of a folder in which a damaged store is kept: 1, 2, 3 ...
pub fn damaged_folder(n: u32) -> String {
    format!("damaged-{n}")
}

/// Returns whether a name is that of a folder in which a damaged store is kept.
pub fn is_damaged_folder(name: &OsStr) -> bool {
    let number = name.to_str().and_then(|name| name.strip_prefix("damaged-"));
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}
