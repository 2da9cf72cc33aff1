//! Where each agent keeps its sessions.
//!
//! Invariant: nothing here looks whether anything is there.

use std::path::{Path, PathBuf};

/// A folder of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// The agent.
    pub agent: &'static str,
    /// The format of its sessions.
    pub format: &'static str,
    /// The folder.
    pub path: PathBuf,
    /// If the sessions lie in each folder of this one, what they lie in there.
    pub each: Option<&'static str>,
}

/// Agent; its format; the variable that names its folder, and the folder in the user's home without it; where its sessions lie.
struct Place(
    &'static str,
    &'static str,
    Option<&'static str>,
    &'static str,
    &'static str,
    Option<&'static str>,
);

const PLACES: [Place; 7] = [
    Place("Claude Code", "claude", Some("CLAUDE_CONFIG_DIR"), ".claude", "projects", None),
    Place("Codex", "codex", Some("CODEX_HOME"), ".codex", "sessions", None),
    Place("Codex", "codex", Some("CODEX_HOME"), ".codex", "archived_sessions", None),
    Place("pi", "pi", Some("PI_CODING_AGENT_DIR"), ".pi/agent", "sessions", None),
    Place("OpenClaw", "pi", None, ".openclaw", "agents", Some("sessions")),
    Place("Kimi CLI", "kimi", Some("KIMI_SHARE_DIR"), ".kimi", "sessions", None),
    Place("clawdcode", "native", None, ".clawdcode", "projects", None),
];

/// Returns where the agents of a user keep their sessions; `variable` tells the folders that they were given.
pub fn homes(home: Option<&Path>, variable: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<Home> {
    let place = |Place(agent, format, named, usual, below, each): &Place| {
        let root = named.and_then(variable).or_else(|| home.map(|home| home.join(usual)))?;
        Some(Home { agent, format, path: root.join(below), each: *each })
    };
    PLACES.iter().filter_map(place).collect()
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
