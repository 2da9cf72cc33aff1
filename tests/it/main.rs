//! The one integration binary: each file holds the promises of one part, run as a user would.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::disallowed_methods, reason = "a test reads and writes what it made itself")]

mod agents;
mod circles;
mod claude;
mod cli;
mod codex;
mod compact;
mod context;
mod cost;
mod crash;
mod cut;
mod env;
mod examples;
mod faults;
mod fixture;
mod forks;
mod format;
mod gate;
mod graph;
mod guards;
mod help;
mod import;
mod kimi;
mod kin;
mod measure;
mod memory;
mod model;
mod model_based;
mod model_server;
mod needs;
mod oracle;
mod overflow;
mod pi;
mod power;
mod provider;
mod reach;
mod reader;
mod readme;
mod record;
mod recovery;
mod resume;
mod rollout;
mod round_trip;
mod segments;
mod sent;
mod store;
mod syncs;
mod tasks;
mod tidy;
mod titles;
mod turn;
mod usage;
mod vfs;
mod windows;
