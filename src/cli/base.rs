//! The context of every command: its environment, its output, and the global options.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use undertext::model::SessionName;

use super::{env::Env, output::Output};

/// The state that every command works with.
pub(crate) struct Context {
    pub(crate) env: Env,
    pub(crate) output: Output,
    /// Write data as JSON Lines.
    pub(crate) json: bool,
    /// The command's name as typed.
    pub(crate) verb: String,
    /// The store given by `--store`.
    pub(super) asked: Option<PathBuf>,
    /// The store's folder, once chosen.
    pub(super) store: Option<PathBuf>,
    /// The warnings already given.
    pub(super) warned: BTreeSet<&'static str>,
    /// True once a warning said that the store's last changes cannot be read.
    pub(super) is_torn: bool,
    /// Import the agents' new sessions before sessions are listed or named.
    pub(super) imports_new: bool,
    /// The bare program's line about sessions that it imported.
    pub(super) imported: Option<String>,
    /// The session that a person picked, after the word that was typed for it.
    pub(super) picked: Option<(Option<OsString>, SessionName)>,
    /// Temporary files of killed commands that this command deleted.
    pub(super) deleted: Vec<PathBuf>,
    /// How long to wait for another program.
    pub(super) wait: Duration,
    /// The session that the command is about to change, and its number of operations.
    pub(super) begun: Option<(SessionName, u64)>,
    /// Describes a change that is not an operation of that session.
    pub(super) done: Option<String>,
    /// Builds the command line's description, for the commands that show it.
    pub(super) describe: fn() -> clap::Command,
}
