//! Setup: whether an agent calls undertext, and the change to its settings that makes it do so.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{
    hint::Line,
    shape::{path, report},
};

/// Whether an agent's settings call undertext.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Calling {
    /// The name of its format.
    pub agent: &'static str,
    /// The settings file.
    #[serde(serialize_with = "path")]
    pub path: PathBuf,
    /// Whether the settings contain a call.
    pub installed: bool,
    /// Whether the call is exactly the one that this program would write.
    pub current: bool,
    /// Why the settings have no effect, or cannot be changed.
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
#[derive(Clone, Copy, Debug)]
pub struct SetUp<'a> {
    /// The name of its format.
    pub agent: &'a str,
    /// The file.
    pub path: &'a Path,
    /// Whether they contain a call now, or would.
    pub installed: bool,
    /// The outcome of the change.
    pub change: SettingUp,
}

/// The outcome of a change to an agent's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SettingUp {
    /// It was made.
    Made,
    /// Dry run: the change would have been made.
    Planned,
    /// The user declined it.
    Declined,
    /// The settings are already as requested.
    Needless,
}

report!(SetUp<'_>, "setup", |it| {
    agent: it.agent,
    path: it.path.to_string_lossy(),
    installed: it.installed,
    changed: it.change == SettingUp::Made,
    change: it.change,
}, hints: |it| {
    let import = || Line::new("import").to("to import existing sessions");
    let off = || Line::new("setup").with(it.agent).flag("off").to("to turn this off");
    it.installed.then(|| [import(), off()]).into_iter().flatten()
});
