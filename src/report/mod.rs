//! Reports: the answer of each verb, as values that every front end shows.
//!
//! A [`Report`] is an answer for programs: a type, and the fields that serde derives. Its shape is stable. `docs/json.md` is written
//! from these types (see `tests/it/json_page.rs`), so the docs of a field are what users read about its key. A [`Hint`] tells people what they can
//! do next.
//!
//! Invariant: nothing here reads, writes or decides, and no other folder defines the JSON of an answer.

mod append;
mod audit;
mod compact;
mod context;
mod diff;
mod done;
mod entry;
mod files;
mod graph;
mod import;
mod landing;
mod later;
mod machine;
mod notice;
mod place;
mod redact;
mod search;
mod secrets;
mod session;
mod setup;
mod shape;
mod spending;
mod status;
mod store;
mod truncate;
mod turn;
mod watch;

pub use crate::model::hint::{Argument, Hint, Line, NamedHint, NamedLine};
pub use append::{Appended, AppendedEntry, NewEntry};
pub use audit::{Audit, AuditTotal, Boundary, Omitted, Replaced};
pub use compact::{Compacted, HandedOff, Part, Parts, Planned, Recovered};
pub use context::{Context, Explained, Sent, SentMessage, Treatment};
pub use diff::{Diff, Difference, Only, Renewed, Reworded, Same, Side, Surplus, Tally};
pub use done::Done;
pub use entry::{Entry, Excerpt, Hidden, HiddenText, TextLine, Uncovered};
pub use files::{Exported, FoundFile, Held, Rebuilt, Rotated, RotatedState};
pub use graph::{Acts, EmptyBranch, GraphNode, GraphView, RevertedEnd, UsedFile};
pub use import::{Imported, Oddity, Quirk, QuirkKind, Summary};
pub use landing::{Kept, Landing, Resume, Resumed, Tokens, TouchedFile, Turn};
pub use later::{Delayed, Waiting};
pub use machine::{Page, ReadSetting, Trust, TrustedStore};
pub use notice::Notice;
pub use place::{
    Branched, Cleared, ListedBranch, Marked, OperationView, Redone, Reverted, Switched, Undone,
};
pub use redact::{Redacted, RedactedSession, Remaining};
pub use search::{Counted, FoundLine, FoundPlace, Hit, Indexed, Searched};
pub use secrets::{Secret, SecretPlace, Secrets};
pub use session::{Attached, Concealed, Created, LostFile, Outcome, Restored, Sidecars};
pub use setup::{Calling, SetUp, SettingUp};
pub use shape::{Changed, Failed, Report};
pub use spending::{Effort, Expense, Spending, Spent};
pub use status::{
    Conversation, Fullness, Layered, ListedSession, Listing, LiveState, OpenIn, Standing, Status,
    Surroundings, UnreadPart, UnreadSession,
};
pub use store::{
    AgentSizes, Ailment, BackedUp, Brought, Cure, Examined, Fate, Finding, Forgetful, Lost, Mended,
    Packed, Refilled, SessionSizes, TakenBack, Verified,
};
pub use truncate::{Bounded, Cached, Oversized, Target, Truncated};
pub use turn::{Call, Moment, Stopped, Turned};
pub use watch::{Becoming, Watched, Watching};
