//! Models: the only code that speaks to one, over HTTP or to a command.
//!
//! What goes out and comes in is the normalised view; the shapes of the two common APIs are in `openai` and `anthropic`, and
//! what a refusal means is decided by [`crate::context::overflow`].
//!
//! Invariant: keys and proxies are passed in, and no error, no `Debug` and no event holds a key.
//! Invariant: a summariser is never offered a tool.

mod answer;
mod anthropic;
mod command;
mod http;
mod openai;
pub mod process;

pub use command::Command;
pub use http::{Api, Endpoint, Http, Key, Limits, Network};
