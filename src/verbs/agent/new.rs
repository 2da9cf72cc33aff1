//! New sessions, and hiding sessions from lists.

use serde_json::{Value, json};

use crate::{
    archive::{Archive, At, Workspace},
    change::{
        self,
        goal::{Begin, Stay},
    },
    model::{Command, MAIN, Place, SessionName, TRANSCRIPTS},
    report::{Concealed, Created},
    session::plan::{Plan, Steps, given},
    verbs::OpsError,
    wire::{Format, Native},
};

/// The surroundings that a session records when it begins; see [`crate::verbs::layers()`].
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// The operating system.
    pub os: String,
    /// The shell.
    pub shell: Option<String>,
    /// Who works in the session.
    pub user: Option<String>,
    /// The user's preferences, as JSON.
    pub preferences: Value,
    /// The session's configuration, as JSON.
    pub configuration: Value,
}

/// Creates a native session with an empty live file.
pub fn new(archive: &Archive, layers: &Layers, workspace: &Workspace) -> Result<Created, OpsError> {
    let id = archive.uuid().to_string();
    let place = Place::Store(format!("{TRANSCRIPTS}/{id}.jsonl").into_bytes());
    let name = SessionName { format: Native.name().to_owned(), id };
    let (outcome, live) = change::execute_first(archive, name, &Native, |before| {
        let about = json!({
            "system": {
                "os": layers.os,
                "shell": layers.shell,
                "undertext": env!("CARGO_PKG_VERSION"),
                "folder": workspace.folder,
            },
            "session": {
                "user": layers.user,
                "preferences": layers.preferences,
                "configuration": layers.configuration,
                "start": before.at.to_string(),
            },
            "workspace": workspace.describe(),
        });
        let command = Command::New { about: given(&about.to_string()) };
        let steps = Steps { current: Some(MAIN.to_owned()), ..Steps::default() };
        Plan { command, steps, goal: Begin { place } }
    })?;
    Ok(Created { session: outcome.session, operation: outcome.operation, live })
}

/// Hides a session from lists, or shows it again.
pub fn hide(session: &At<'_>, hidden: bool) -> Result<Concealed, OpsError> {
    let ((), made) = change::execute(session, |before| {
        if before.state.hidden == hidden {
            return Ok::<_, OpsError>(((), None));
        }
        let steps = Steps { hidden: Some(hidden), ..Steps::default() };
        let command = Command::Hide { hidden, branch: None };
        Ok(((), Some(Plan { command, steps, goal: Stay })))
    })?;
    Ok(Concealed { hidden, done: made.done })
}
