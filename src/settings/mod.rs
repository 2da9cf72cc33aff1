//! Settings: the user's choices in `config.toml`, parsed from text.
//!
//! A section is a struct in `section` and a table in `examples/config.toml`, which documents every key. A key that the example
//! lacks is unknown, so every key is documented. Several files are merged key by key.
//!
//! Invariant: a file with an unknown key is read; a file with a value of the wrong type is rejected, with its line and key.
//! Invariant: the store's own file can only set keys that are listed as open to it. Everything else comes only from the user's
//! file: what runs programs, sends data or reads beyond a session, excludes sessions, or hides or shows secrets. Invariant:
//! unreadable settings are an error and never treated as empty ones.

mod exclude;
mod explain;
mod read;
mod section;
mod slip;

pub use exclude::{Exclude, Exclusion};
pub use read::{Author, File, Read, Setting, SettingsError, Unknown};
pub use section::{
    Browse, Channel, Compaction, EXAMPLE, Glyphs, Hints, Import, Limits, Mask, Model, Price,
    Provider, ProviderKind, Rate, Secrets, Serve, Settings, Turn, Window,
};
pub use slip::distance;
