//! The one integration binary: each file holds the promises of one part, run as a user would.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agents;
mod claude;
mod cli;
mod env;
mod graph;
mod help;
mod resume;
mod tidy;
mod usage;
