//! Setting up: whether an agent calls undertext, and the change of its settings by which it does.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{
    hint::Line,
    shape::{path, report},
};

/// Whether an agent's settings make it call undertext.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Calling {
    /// The name of its format.
    pub agent: &'static str,
    /// The file of its settings.
    #[serde(serialize_with = "path")]
    pub path: PathBuf,
    /// Whether they hold a call.
    pub installed: bool,
    /// Whether that calls this program, in this way.
    pub current: bool,
    /// Why they call nothing, or cannot be changed.
    pub problem: Option<String>,
    /// Whether that is because the program that they call is not there: another setup names this one.
    #[serde(skip)]
    pub is_lost: bool,
}

report!(Calling, "calling", hints: |it| {
    let set_up = || Line::new("setup").with(it.agent).to("to import the agent's sessions as they are written");
    (!it.current && (it.is_lost || it.problem.is_none())).then(set_up)
});

/// Settings of an agent that were changed, or would be.
#[derive(Clone, Copy, Debug)]
pub struct SetUp<'a> {
    /// The name of its format.
    pub agent: &'a str,
    /// The file.
    pub path: &'a Path,
    /// Whether they hold a call now, or would.
    pub installed: bool,
    /// What became of the change.
    pub change: SettingUp,
}

/// What became of a change of an agent's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SettingUp {
    /// It is made.
    Made,
    /// It would be made.
    Planned,
    /// Nobody agreed to it.
    Declined,
    /// They are so already.
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
