//! The layout of a store's folder: the names of its parts.

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
