//! The one integration binary: each file holds the promises of one part, run as a user would.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cli;
mod env;
mod help;
mod tidy;
mod usage;
