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
/// The database of the words, by which search finds them.
pub const WORDS: &str = "search.db";
/// The seal of that database, which says how it was left.
pub const SEAL: &str = "search.seal";
/// The folder of the live files that the store keeps itself.
pub const TRANSCRIPTS: &str = "transcripts";
/// The folder in which a fresh store is made of a damaged one.
pub const MENDING: &str = "mending";
/// The lines of a damaged store that no operation has any more, in the folder in which it is kept.
pub const STRAYS: &str = "lines.jsonl";
/// The file whose lock a program holds that changes the archive.
pub const LOCK: &str = "lock";
/// The file whose lock a program holds that watches for the archive.
pub const WATCHED: &str = "watched";
/// The file that says that bytes are being taken out.
pub const REDACTING: &str = "redacting";
/// The file that names the sessions, a number a line, of which only files are still to be covered.
pub const UNCOVERED: &str = "uncovered";
/// The files that a store's user may put next to these: settings, and what keeps a store in a folder out of git.
pub const BESIDE: [&str; 2] = ["config.toml", ".gitignore"];

/// Returns the name of a folder in which a damaged store is kept: 1, 2, 3 ...
pub fn damaged_folder(n: u32) -> String {
    format!("damaged-{n}")
}

/// Returns whether a name is that of a folder in which a damaged store is kept.
pub fn is_damaged_folder(name: &OsStr) -> bool {
    let number = name.to_str().and_then(|name| name.strip_prefix("damaged-"));
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Returns whether a name in a store's folder is that of a part of the store.
pub fn is_part(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    // Each has others next to it, of which the names begin so.
    let files = [DATABASE, WITNESS, WORDS, SEAL];
    let is_file = files.iter().any(|one| bytes.starts_with(one.as_bytes()));
    is_file || name == TRANSCRIPTS || name == MENDING || is_damaged_folder(name)
}

/// Returns whether a name in a store's folder is that of something which undertext alone writes there.
pub fn is_own(name: &OsStr) -> bool {
    let is_left = name.as_encoded_bytes().starts_with(UNCOVERED.as_bytes());
    is_part(name) || is_left || [LOCK, WATCHED, REDACTING].iter().any(|one| name == *one)
}
