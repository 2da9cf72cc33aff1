//! New sessions, and hiding sessions from lists.

use serde_json::{Value, json};

use crate::{
    archive::{Archive, At, Workspace},
    change::{
        self,
        goal::{Begin, Stay},
    },
    disk,
    model::{Command, MAIN, Place, SessionName, TRANSCRIPTS},
    report::{Concealed, Created},
    session::plan::{Plan, Steps, given},
    verbs::OpsError,
    wire::{self, Format as _, Native},
};

/// The surroundings that a session records when it begins; see [`crate::verbs::layers()`].
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// The operating system.
    pub os: String,
    /// Its name and version, as it calls itself.
    pub os_version: Option<String>,
    /// The release of its kernel.
    pub kernel: Option<String>,
    /// The shell.
    pub shell: Option<String>,
    /// Who works in the session.
    pub user: Option<String>,
    /// The names of the packages that the folder's package depends on.
    pub dependencies: Vec<String>,
    /// The user's preferences, as JSON.
    pub preferences: Value,
    /// The session's configuration, as JSON.
    pub configuration: Value,
}

/// The maximum length of a session's id.
const LONGEST: usize = 128;
/// An id of fewer digits and nothing else would be read as the number of a checkpoint.
const DIGITS: usize = 8;

/// Checks the id of a new session: it becomes a file name, and commands must not read it as anything else.
pub fn check_id(id: &str) -> Result<(), OpsError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let why = if id.is_empty() || id.len() > LONGEST {
        "an id has 1 to 128 characters"
    } else if !id.chars().all(is_plain) {
        "an id consists of ASCII letters, digits, '.', '_' and '-'"
    } else if id.starts_with(['.', '-']) {
        "an id does not begin with '.' or '-'"
    } else if id.contains("..") {
        "'..' would be read as a range of turns"
    } else if id == "HEAD" {
        "it would be read as a place"
    } else if id.len() < DIGITS && id.bytes().all(|byte| byte.is_ascii_digit()) {
        "it would be read as the number of a checkpoint"
    } else {
        return Ok(());
    };
    Err(OpsError::BadId { id: id.to_owned(), why })
}

/// Creates a native session with an empty live file.
pub fn new(archive: &Archive, layers: &Layers, workspace: &Workspace) -> Result<Created, OpsError> {
    new_with_id(archive, &archive.uuid().to_string(), layers, workspace)
}

/// Creates a native session like [`new`], with an id that no session has and that was checked by [`check_id`].
pub fn new_with_id(
    archive: &Archive,
    id: &str,
    layers: &Layers,
    workspace: &Workspace,
) -> Result<Created, OpsError> {
    check_id(id)?;
    let place = Place::Store(format!("{TRANSCRIPTS}/{id}.jsonl").into_bytes());
    let name = SessionName { format: Native.name().to_owned(), id: id.to_owned() };
    let (outcome, live) = change::execute_first(archive, name, &Native, |before| {
        check_free(archive, id, &place)?;
        let mut workspace_layer = workspace.describe();
        if !layers.dependencies.is_empty() {
            workspace_layer["dependencies"] = json!(layers.dependencies);
        }
        let about = json!({
            "system": {
                "os": layers.os,
                "osVersion": layers.os_version,
                "kernel": layers.kernel,
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
            "workspace": workspace_layer,
        });
        let command = Command::New { about: given(&about.to_string()) };
        let steps = Steps { current: Some(MAIN.to_owned()), ..Steps::default() };
        Ok::<_, OpsError>(Plan { command, steps, goal: Begin { place } })
    })?;
    Ok(Created { session: outcome.session, operation: outcome.operation, live })
}

/// Refuses an id that a session of any agent has, or whose live file exists. Called under the lock.
fn check_free(archive: &Archive, id: &str, place: &Place) -> Result<(), OpsError> {
    for format in wire::FORMATS {
        let name = SessionName { format: format.name().to_owned(), id: id.to_owned() };
        if archive.session(&name)?.is_some() {
            return Err(OpsError::SessionExists(id.to_owned()));
        }
    }
    match archive.path_of(place).map(|path| disk::look(&path)) {
        None | Some(Ok(false)) => Ok(()),
        Some(_) => {
            let why = "the store's folder transcripts already has a file of that name";
            Err(OpsError::BadId { id: id.to_owned(), why })
        }
    }
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
