//! Settings: the user's choices, made once in `config.toml`, read from text.
//!
//! A section is a struct in `section` and a table in the file `examples/config.toml`, which documents every key: a key
//! that it lacks is unknown, so that no key goes unexplained. Several files are laid over each other, key by key.
//!
//! Invariant: a file with an unknown key is read; one with a value of the wrong type is refused, by line and key.
//! Invariant: a store's own file sets only keys that are named as open to it; all others are set by the user's own file alone: what
//! runs, sends or reads beyond a session, leaves sessions out, or hides or shows secrets.
//! Invariant: what cannot be read is an error; no settings are never taken for the ones that were meant.

mod exclude;
mod explain;
mod read;
mod section;
mod slip;

pub use exclude::{Exclude, Exclusion};
pub use read::{Author, File, Read, Setting, SettingsError, Unknown};
pub use section::{
    Channel, Compaction, EXAMPLE, Hints, Import, Limits, Mask, Model, Provider, ProviderKind,
    Secrets, Settings, Turn, Window,
};
pub use slip::distance;
