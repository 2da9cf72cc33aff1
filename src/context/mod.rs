//! The model's view: turns the messages of a session into a request that no provider rejects.
//!
//! Pure functions over normalised messages; nothing here is stored or sent. A request is a list of [`Item`]s. Each step
//! takes the list and returns it with its [`Change`]s, which name the affected entries, so that nothing vanishes silently. The
//! messages of a session are packed, and a step unpacks those whose text or blocks it needs.
//! [`prepare`] runs the steps in this order:
//!
//! ```text
//! window      is there enough room at all? checked before anything is read
//! in place    for an agent that moves no results: what it drops, and which of its records are one message
//! sanitise    content that no provider accepts is repaired or dropped; each result becomes a message of its own
//! cut         if requested: long results are truncated, and after the pairs all of them are fitted into their share
//! limit       the newest turns are kept, whole; sized as the next two steps will make them
//! pairs       each call is directly followed by its result
//! turns       roles begin and alternate as the provider requires
//! ```
//!
//! Turns come last: pair repair removes messages, so roles must be checked after it. They do not come before the limit: a message
//! merged earlier would tie a summary, which is kept, to a turn, which may be dropped.
//!
//! Invariant: no step adds, drops, moves, merges, changes or cuts a message that its changes do not name.
//! Invariant: a prepared request has no call without its result after it, no result without its call before it, no empty message,
//! and no role that the provider rejects. Preparing it again changes nothing.

mod appendix;
mod as_sent;
mod change;
pub mod compact;
pub mod cut;
pub mod event;
pub mod extract;
pub mod facts;
mod figures;
pub mod files;
pub mod history;
mod in_place;
mod item;
pub mod machine;
pub mod measure;
pub mod model;
pub mod overflow;
mod packing;
mod pages;
pub mod pairing;
mod phrases;
pub mod plan;
mod prepare;
pub mod prompt;
pub mod recover;
mod refusal;
pub mod results;
pub mod sanitize;
mod sendable;
pub(crate) mod shape;
pub mod stages;
pub mod tokens;
mod turns;
pub mod visible;
pub mod window;

pub use as_sent::{Missing, as_sent};
pub use change::{Act, Change, Step};
pub use item::{Entries, Item, Origin};
pub(crate) use pages::Pages;
pub use prepare::{Plan, Prepared, count, prepare};
pub use shape::{Request, Shape, request};
