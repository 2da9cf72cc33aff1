//! What every command works with: its environment and output, and what was typed before the command.

use std::path::PathBuf;

use super::{env::Env, output::Output};

/// What a command works with.
pub(crate) struct Context {
    pub(crate) env: Env,
    pub(crate) output: Output,
    /// Whether data is to be JSON Lines.
    pub(crate) json: bool,
    /// The command, as it is typed.
    pub(crate) verb: String,
    /// The store that was typed.
    pub(super) asked: Option<PathBuf>,
    /// The folder of the store, once it was chosen.
    pub(super) store: Option<PathBuf>,
    /// Describes the command line, for those that show it.
    pub(super) describe: fn() -> clap::Command,
}
