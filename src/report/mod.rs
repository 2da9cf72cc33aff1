//! Reports: what each verb answers, as values that every face shows.
//!
//! Invariant: nothing here reads, writes or decides.

mod append;
mod compact;
mod files;
mod import;
mod notice;
mod place;
mod session;
mod truncate;
mod turn;

pub use append::{Appended, AppendedEntry};
pub use compact::{Compacted, Part, Parts, Planned, Recovered};
pub use files::{Held, Rebuilt, Rotated, RotatedState};
pub use import::{Imported, Oddity, Quirk, Summary};
pub use notice::Notice;
pub use place::{Branched, OperationView, Reverted, Undone};
pub use session::{Attached, Created, Outcome};
pub use truncate::{Oversized, Truncated};
pub use turn::{Call, Turned};
