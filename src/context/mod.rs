//! The model's view: the messages of a session become a request that no provider rejects.
//!
//! Pure functions over the normalised view; nothing here is kept or sent. A request is a list of [`Item`]s, and each step
//! takes the list and gives it back with its [`Change`]s, entries named, so that nothing vanishes unsaid. The messages of a
//! session are packed, and a step unpacks those whose words or blocks it needs.
//! [`prepare`] takes them in this order:
//!
//! ```text
//! window      is there room at all? asked before anything is read
//! in place    of an agent that moves no results: what it leaves out, and which of its records are one message
//! sanitise    content that no provider takes is mended or left out; each result is a message of its own
//! cut         if it is asked for: long results are cut, and behind the pairs all of them fitted into their share
//! limit       the newest turns stay, whole; sized as the two steps behind it will make them
//! pairs       each call has its result right behind it
//! turns       roles begin and alternate as the provider demands
//! ```
//!
//! Turns come last, and not before the limit: pair repair takes messages away, so that roles must be looked at behind it,
//! and a message merged before the limit would tie a summary, which stays, to a turn, which may go.
//!
//! Invariant: a step added, dropped, moved, merged, changed or cut exactly the messages that its changes name.
//! Invariant: in a prepared request each call is followed by its result, each result follows its call, all messages
//! have content, and roles are those that the provider takes; to prepare it again changes nothing.

mod as_sent;
mod change;
pub mod compact;
pub mod cut;
pub mod event;
pub mod extract;
mod figures;
pub mod files;
pub mod history;
mod in_place;
mod item;
pub mod loss;
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
mod shape;
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
