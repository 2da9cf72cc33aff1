//! Models: the only code that speaks to a model, over HTTP or to a command.
//!
//! Requests and answers are the normalised view; the shapes of the two common APIs are in `openai` and `anthropic`, and
//! [`crate::context::overflow`] decides the meaning of a refusal.
//!
//! Invariant: keys and proxies are passed in, and no error, no `Debug` and no event holds a key.
//! Invariant: a summariser is never offered a tool.

mod answer;
mod anthropic;
mod command;
mod http;
mod network;
mod openai;
pub mod process;
mod stream;

pub use command::Command;
pub use http::{Api, Endpoint, Http, Key, Limits};
pub use network::Network;
