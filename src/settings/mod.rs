//! Settings: what the user sets once, in `config.toml`, read from text.
//!
//! A section is a struct in `section` and a table in the file `examples/config.toml`, which documents every key: what is not in
//! it is unknown, so that none can be added without being explained. Several files are laid over each other, key by key.
//!
//! Invariant: a file with an unknown key is read; one with a value of the wrong type is refused, by line and key.
//! Invariant: what runs, sends or reads beyond a session is set by the user's own file alone.

mod explain;
mod read;
mod section;

pub use read::{Author, File, Read, Setting, SettingsError, Unknown};
pub use section::{
    Channel, Compaction, EXAMPLE, Limits, Model, Provider, ProviderKind, Settings, Turn, Window,
};
