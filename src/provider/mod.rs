//! Models: the only code that talks to a model, over HTTP or through a command.
//!
//! Requests and answers are normalised messages. The JSON of the three common APIs is in `openai`, `responses` and
//! `anthropic`, and [`crate::context::overflow`] classifies errors.
//!
//! Invariant: nothing here reads keys or proxies from the environment, and no error, `Debug` output or event contains a key.
//! Invariant: a summariser is never offered a tool.

mod answer;
mod anthropic;
mod command;
mod http;
mod listen;
mod network;
mod openai;
pub mod process;
mod responses;
mod stream;
mod way;

pub use command::Command;
pub use http::{Api, Endpoint, Http, Key, Limits};
pub use network::Network;
