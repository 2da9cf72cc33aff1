//! What every command works with: its environment and output, and what was typed before the command.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use undertext::model::SessionName;

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
    /// What was warned of once.
    pub(super) warned: BTreeSet<&'static str>,
    /// Whether the last changes of the store cannot be read, which was warned of.
    pub(super) is_torn: bool,
    /// Whether the agents' new sessions are to be imported before sessions are listed or named.
    pub(super) imports_new: bool,
    /// What the bare program says of new sessions that it imported.
    pub(super) imported: Option<String>,
    /// The session that a person picked, after the word that was typed for one.
    pub(super) picked: Option<(Option<OsString>, SessionName)>,
    /// What killed commands left and this one deleted.
    pub(super) deleted: Vec<PathBuf>,
    /// How long another program is waited for.
    pub(super) wait: Duration,
    /// The session that the command set out to change, and how many operations it had.
    pub(super) begun: Option<(SessionName, u64)>,
    /// What the command has changed that is no operation of that session, in words.
    pub(super) done: Option<String>,
    /// Describes the command line, for those that show it.
    pub(super) describe: fn() -> clap::Command,
}
