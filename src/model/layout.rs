//! The layout of a store's folder: the names of its parts.

/// The database.
pub const DATABASE: &str = "store.db";
/// The folder of the live files that the store keeps itself.
pub const TRANSCRIPTS: &str = "transcripts";
