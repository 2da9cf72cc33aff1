//! Finds the folders where a user's agents store sessions, from the traits of each format.
//!
//! Invariant: nothing here reads the file system; the folders may not exist.

use std::path::{Path, PathBuf};

use super::{Cleanup, FORMATS, Folder, Format, Hooks, Identify, Traits};

/// Looks up a folder in an environment variable.
pub type Variable<'a> = Box<dyn Fn(&str) -> Option<PathBuf> + 'a>;

/// What says where a user's agents keep their files.
pub struct User<'a> {
    /// The home folder.
    pub home: Option<&'a Path>,
    /// The environment.
    pub variable: Variable<'a>,
}

impl User<'_> {
    /// Returns an agent's own folder.
    fn root(&self, folder: &Folder) -> Option<PathBuf> {
        let named = folder.variable.and_then(&self.variable);
        named.or_else(|| Some(self.home?.join(folder.usual?)))
    }
}

/// A folder where an agent stores sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// The agent.
    pub agent: &'static str,
    /// The format of its sessions.
    pub format: &'static str,
    /// The folder.
    pub path: PathBuf,
    /// If each subfolder of `path` has its own folder of sessions: the name of that folder.
    pub each: Option<&'static str>,
    /// False if only an environment variable names the folder.
    pub is_usual: bool,
}

/// Returns the folders where a user's agents store sessions.
///
/// The folder of the native format comes last.
pub fn homes(user: &User<'_>) -> Vec<Home> {
    let [native, agents @ ..] = FORMATS;
    let traits = agents.into_iter().chain([native]).map(Identify::traits);
    let folders =
        traits.flat_map(|traits| traits.folders.iter().map(|folder| (traits.name, folder)));
    let home_of = |(format, folder): (&'static str, &Folder)| {
        let Folder { agent, sessions, each, .. } = *folder;
        let root = user.root(folder)?;
        let is_usual =
            folder.usual.zip(user.home).is_some_and(|(usual, home)| root == home.join(usual));
        let path = if sessions.is_empty() { root } else { root.join(sessions) };
        Some(Home { agent, format, path, each, is_usual })
    };
    folders.filter_map(home_of).collect()
}

/// Returns the root folders of a user's agents, which also contain files other than sessions. If the agent's folder also
/// contains the user's projects, returns its folder of sessions instead.
pub fn roots(user: &User<'_>) -> Vec<PathBuf> {
    let folders = FORMATS.into_iter().flat_map(|format| format.traits().folders);
    let root_of = |folder: &Folder| {
        let root = user.root(folder)?;
        Some(if folder.each.is_some() { root.join(folder.sessions) } else { root })
    };
    let mut roots: Vec<PathBuf> = folders.filter_map(root_of).collect();
    roots.sort();
    // A root inside another root is searched with the outer one.
    roots.dedup_by(|inner, outer| inner.starts_with(outer));
    roots
}

/// Returns the folders where a user's agents store further session files away from the sessions, paired with the format.
pub fn annexes(user: &User<'_>) -> Vec<(&'static str, PathBuf)> {
    let folders = FORMATS.into_iter().flat_map(|format| {
        format.traits().folders.iter().map(|folder| (format.traits().name, folder))
    });
    let annexes = folders.filter_map(|(format, folder)| {
        let root = user.root(folder)?;
        Some(folder.annexes.iter().map(move |annex| (format, root.join(annex))))
    });
    annexes.flatten().collect()
}

/// Returns the shared lists of a user's agents: files in which each line belongs to one session.
pub fn lists(user: &User<'_>) -> Vec<PathBuf> {
    let lists = FORMATS.into_iter().flat_map(|format| {
        let roots = format.traits().folders.iter().filter_map(|it| user.root(it));
        roots.filter_map(|root| format.shared_list(&root)).collect::<Vec<_>>()
    });
    lists.collect()
}

/// How long an agent keeps sessions, and which settings file says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keeping {
    /// The agent.
    pub agent: &'static str,
    /// The agent's settings file.
    pub settings: PathBuf,
    /// The setting and its default.
    pub cleanup: Cleanup,
}

/// Returns the agents of a user that delete old sessions themselves.
pub fn keepings(user: &User<'_>) -> Vec<Keeping> {
    let keeping = |traits: &Traits| {
        let (folder, cleanup) = (traits.folders.first()?, traits.cleanup?);
        let settings = user.root(folder)?.join(cleanup.settings);
        Some(Keeping { agent: folder.agent, settings, cleanup })
    };
    FORMATS.into_iter().filter_map(|format| keeping(format.traits())).collect()
}

/// A settings file that says which program an agent calls.
#[derive(Clone)]
pub struct HookFile {
    /// The agent.
    pub agent: &'static str,
    /// Its format.
    pub format: &'static dyn Format,
    /// What edits the file.
    pub hooks: &'static dyn Hooks,
    /// The agent's own folder.
    pub home: PathBuf,
    /// The environment variable that names that folder, if the agent reads one.
    pub variable: Option<&'static str>,
    /// The file.
    pub path: PathBuf,
}

/// Returns the names of the formats whose agents can call a program.
pub fn callers() -> impl Iterator<Item = &'static str> {
    let callers = FORMATS.into_iter().filter(|format| format.traits().hooks.is_some());
    callers.map(Format::name)
}

/// Returns the names of the agents.
pub fn agents() -> impl Iterator<Item = &'static str> {
    FORMATS.into_iter().flat_map(|format| format.traits().folders).map(|folder| folder.agent)
}

/// Returns the settings files of a user's agents that can call a program.
pub fn hook_files(user: &User<'_>) -> Vec<HookFile> {
    let file = |format: &'static dyn Format| {
        let folder = format.traits().folders.first()?;
        let home = user.root(folder)?;
        let hooks = format.traits().hooks?;
        let path = home.join(hooks.file());
        Some(HookFile { agent: folder.agent, format, hooks, home, variable: folder.variable, path })
    };
    FORMATS.into_iter().filter_map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_stands_for_the_usual_folder() {
        let ann = Some(Path::new("/home/ann"));
        let homes = |home, name: &'static str, path: &'static str| {
            let variable = move |wanted: &str| (wanted == name).then(|| PathBuf::from(path));
            super::homes(&User { home, variable: Box::new(variable) })
        };
        let found = homes(ann, "CODEX_HOME", "/codex");
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
        let unusual = found.iter().filter(|home| !home.is_usual).map(|home| home.agent);
        assert_eq!(unusual.collect::<Vec<_>>(), ["Codex", "Codex"]);
        let found = homes(ann, "PI_CODING_AGENT_SESSION_DIR", "/said");
        let of_pi =
            found.iter().filter(|home| home.agent == "pi").filter_map(|home| home.path.to_str());
        assert_eq!(of_pi.collect::<Vec<_>>(), ["/home/ann/.pi/agent/sessions", "/said"]);
        assert_eq!(homes(None, "CODEX_HOME", "/codex").len(), 2);
    }
}
