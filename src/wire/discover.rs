//! Where the agents of a user keep their sessions, told from each format's traits.
//!
//! Invariant: nothing here looks whether anything is there.

use std::path::{Path, PathBuf};

use super::{FORMATS, Folder, Identify};

/// A folder of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// The agent.
    pub agent: &'static str,
    /// The format of its sessions.
    pub format: &'static str,
    /// The folder.
    pub path: PathBuf,
    /// If the sessions lie in each folder of this one, the folder in there that holds them.
    pub each: Option<&'static str>,
}

/// Returns where the agents of a user keep their sessions; `variable` tells the folders that they were given.
///
/// The folder of the native format comes last.
pub fn homes(home: Option<&Path>, variable: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<Home> {
    let [native, agents @ ..] = FORMATS;
    let traits = agents.into_iter().chain([native]).map(Identify::traits);
    let folders =
        traits.flat_map(|traits| traits.folders.iter().map(|folder| (traits.name, folder)));
    let home_of = |(format, folder): (&'static str, &Folder)| {
        let Folder { agent, usual, sessions, each, .. } = *folder;
        let root = folder.variable.and_then(variable).or_else(|| Some(home?.join(usual)))?;
        Some(Home { agent, format, path: root.join(sessions), each })
    };
    folders.filter_map(home_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_stands_for_the_usual_folder() {
        let variable = |name: &str| (name == "CODEX_HOME").then(|| PathBuf::from("/codex"));
        let found = homes(Some(Path::new("/home/ann")), &variable);
        let paths: Vec<&str> = found.iter().filter_map(|home| home.path.to_str()).collect();
        assert_eq!(
            paths,
            [
                "/home/ann/.claude/projects",
                "/codex/sessions",
                "/codex/archived_sessions",
                "/home/ann/.pi/agent/sessions",
                "/home/ann/.openclaw/agents",
                "/home/ann/.kimi/sessions",
                "/home/ann/.clawdcode/projects",
            ]
        );
        let homeless = homes(None, &variable);
        assert_eq!(homeless.len(), 2);
    }
}
