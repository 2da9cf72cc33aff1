//! Setup: whether an agent calls undertext, and the change to its settings that makes it do so.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::shape::{path, report};
use crate::model::hint::Line;

/// Whether an agent's settings call undertext.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Calling {
    /// The agent.
    pub agent: &'static str,
    /// The agent's settings file.
    #[serde(serialize_with = "path")]
    pub path: PathBuf,
    /// Whether the agent's settings call undertext.
    pub installed: bool,
    /// Whether the agent's settings call this program, as it would write the call.
    pub current: bool,
    /// Why the call does not work, or why the settings can't be changed.
    pub problem: Option<String>,
    /// Whether the problem is that the called program does not exist; another setup would fix that.
    #[serde(skip)]
    pub is_lost: bool,
}

report!(Calling, "calling", hints: |it| {
    let set_up = || Line::new("setup").with(it.agent).to("to import the agent's sessions as they are written");
    (!it.current && (it.is_lost || it.problem.is_none())).then(set_up)
});

/// An agent's settings that were changed, or would be.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SetUp<'a> {
    /// The agent.
    pub agent: &'a str,
    /// The agent's settings file.
    #[serde(serialize_with = "path")]
    pub path: &'a Path,
    /// Whether these settings call undertext, or would call it after the planned change.
    pub installed: bool,
    /// Whether the settings were changed.
    pub changed: bool,
    /// The outcome of the change.
    pub change: SettingUp,
}

/// The outcome of a change to an agent's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SettingUp {
    /// The settings were changed.
    Made,
    /// The settings would be changed: this was a dry run.
    Planned,
    /// You said no.
    Declined,
    /// There was nothing to change.
    Needless,
}

report!(SetUp<'_>, "setup", hints: |it| {
    let import = || Line::new("import").to("to import existing sessions");
    let off = || Line::new("setup").with(it.agent).flag("off").to("to turn this off");
    it.installed.then(|| [import(), off()]).into_iter().flatten()
});
