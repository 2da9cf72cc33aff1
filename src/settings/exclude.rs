//! Exclusions: which sessions the user keeps out of the store.

use std::{
    fmt,
    path::{Component, Path, PathBuf},
};

use serde::Deserialize;

/// The sessions that are excluded from the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Exclude {
    /// Folders: a session that works in one of them, or below it, is excluded.
    pub folders: Vec<PathBuf>,
    /// Sessions: ids, or prefixes of ids.
    pub sessions: Vec<String>,
    /// Agents: the names of their formats.
    pub agents: Vec<String>,
    /// Those folders that are reached through links, each with its real path.
    #[serde(skip)]
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Why the settings cannot be read, if so. It is unknown then what they exclude, so everything is excluded.
    #[serde(skip)]
    pub unread: Option<String>,
}

/// The setting that excludes a session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exclusion {
    /// The session works in this folder, or below it.
    Folder(PathBuf),
    /// The session's id has this prefix.
    Session(String),
    /// The session is one of this agent's.
    Agent(String),
    /// The session may work in one of the folders, but its folder is not known.
    Unplaced,
    /// The settings cannot be read, for this reason.
    Unread(String),
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "exclude.folders contains {}", folder.display()),
            Self::Session(id) => write!(f, "exclude.sessions contains {id}"),
            Self::Agent(agent) => write!(f, "exclude.agents contains {agent}"),
            Self::Unplaced => {
                f.write_str("exclude.folders excludes sessions whose folder is not known yet")
            }
            Self::Unread(why) => write!(f, "unreadable settings exclude everything: {why}"),
        }
    }
}

impl Exclude {
    /// Returns a digest with which an index records the settings that excluded sessions from it.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let Self { folders, sessions, agents, links, unread } = self;
        // Without links the digest equals that of versions before links counted, so existing indexes stay valid.
        let links = if links.is_empty() { String::new() } else { format!("{links:?}") };
        let said = format!(
            "Exclude {{ folders: {folders:?}, sessions: {sessions:?}, agents: {agents:?} }}{links}{}",
            if unread.is_some() { " unread" } else { "" }
        );
        *blake3::hash(said.as_bytes()).as_bytes()
    }

    /// Returns the exclusions with `~` expanded to the home folder, or an error for entries that cannot match anything. `resolve`
    /// returns the real path of a folder that is reached through links.
    pub fn at_home(
        &self,
        home: Option<&Path>,
        resolve: &dyn Fn(&Path) -> Option<PathBuf>,
    ) -> Result<Self, String> {
        let folder = |folder: &PathBuf| {
            if is_wild(&folder.to_string_lossy()) {
                let words = "folder names may not contain * ? or [, and everything below a folder is excluded too";
                let instead = "name each folder, or the one above them";
                return Err(format!(
                    "exclude.folders contains {}: {words}; {instead}",
                    folder.display()
                ));
            }
            let below = folder.strip_prefix("~").ok();
            let whole = match (below, home) {
                (Some(below), Some(home)) => home.join(below),
                _ => folder.clone(),
            };
            let is_plain = !whole.components().any(|part| part == Component::ParentDir);
            let is_whole = whole.is_absolute() && is_plain;
            let shown = folder.display();
            is_whole.then(|| whole.components().collect()).ok_or_else(|| {
                format!("exclude.folders contains {shown}: a folder must begin with / or ~/ and must not contain ..")
            })
        };
        // The id after an agent's name may be empty, too.
        let is_empty =
            |id: &String| id.split_once(':').map_or(id.as_str(), |(_, id)| id).is_empty();
        if self.sessions.iter().any(is_empty) {
            return Err(
                "exclude.sessions contains an empty id, which would match every session".to_owned()
            );
        }
        if let Some(id) = self.sessions.iter().find(|id| is_wild(id)) {
            let words =
                "ids may not contain * ? or [, and the first characters of an id are enough";
            return Err(format!("exclude.sessions contains {id}: {words}"));
        }
        let folders = self.folders.iter().map(folder).collect::<Result<Vec<PathBuf>, _>>()?;
        let links = folders.iter().filter_map(|folder| Some((folder.clone(), resolve(folder)?)));
        let links = links.filter(|(folder, real)| folder != real).collect();
        Ok(Self { folders, links, ..self.clone() })
    }

    /// Returns the setting that excludes a session, given its agent, its id and its folder.
    pub fn find(&self, agent: &str, session: &str, folder: Option<&Path>) -> Option<Exclusion> {
        if let Some(why) = &self.unread {
            return Some(Exclusion::Unread(why.clone()));
        }
        if let Some(agent) = self.agents.iter().find(|name| *name == agent) {
            return Some(Exclusion::Agent(agent.clone()));
        }
        let is_meant = |id: &&String| {
            let of_agent = id.strip_prefix(agent).and_then(|id| id.strip_prefix(':'));
            session.starts_with(id.as_str()) || of_agent.is_some_and(|id| session.starts_with(id))
        };
        if let Some(id) = self.sessions.iter().find(is_meant) {
            return Some(Exclusion::Session(id.clone()));
        }
        let holds = |above: &Path| folder.is_some_and(|folder| folder.starts_with(above));
        let typed = self.folders.iter().find(|above| holds(above));
        let linked = || self.links.iter().find(|(_, real)| holds(real)).map(|(folder, _)| folder);
        typed.or_else(linked).map(|folder| Exclusion::Folder(folder.clone()))
    }

    /// Returns true if nothing is excluded.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn is_wild(word: &str) -> bool {
    word.contains(['*', '?', '['])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exclude(folders: &[&str], sessions: &[&str], agents: &[&str]) -> Exclude {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let folders = folders.iter().map(PathBuf::from).collect();
        let (sessions, agents) = (words(sessions), words(agents));
        Exclude { folders, sessions, agents, ..Exclude::default() }
    }

    fn unlinked(_: &Path) -> Option<PathBuf> {
        None
    }

    #[test]
    fn a_session_is_left_out_by_its_folder_its_id_or_its_agent() {
        let settings = exclude(&["~/secret/", "/srv/app"], &["8f14", "pi:b"], &["codex"]);
        let home = Path::new("/home/ann");
        let exclude = settings.at_home(Some(home), &unlinked).unwrap();
        let check = |agent, session, folder: &str, expected: &str| {
            let found = exclude.find(agent, session, Some(Path::new(folder)));
            let found = found.map(|by| by.to_string()).unwrap_or_default();
            assert_eq!(found, expected, "{agent} {session} {folder}");
        };
        let secret = "exclude.folders contains /home/ann/secret";
        check("claude", "a", "/home/ann/secret", secret);
        check("claude", "a", "/home/ann/secret/deep/er", secret);
        check("claude", "a", "/home/ann/secrets", "");
        check("claude", "a", "/home/ann", "");
        check("claude", "a", "/srv/app/", "exclude.folders contains /srv/app");
        check("claude", "8f14e45f/agent-1", "/", "exclude.sessions contains 8f14");
        check("claude", "18f14", "/", "");
        check("pi", "boat", "/", "exclude.sessions contains pi:b");
        check("claude", "boat", "/", "");
        check("codex", "boat", "/", "exclude.agents contains codex");
        assert_eq!(exclude.find("claude", "a", None), None);
        assert!(!exclude.is_empty() && Exclude::default().is_empty());
    }

    #[test]
    fn what_can_leave_nothing_out_is_refused() {
        let refused = |settings: Exclude, home| settings.at_home(home, &unlinked).unwrap_err();
        let home = Some(Path::new("/home/ann"));
        let words = "a folder must begin with / or ~/ and must not contain ..";
        let folder = |folder: &str| format!("exclude.folders contains {folder}: {words}");
        for name in ["work", "", "/a/../b"] {
            assert_eq!(refused(exclude(&[name], &[], &[]), home), folder(name));
        }
        assert_eq!(refused(exclude(&["~/a"], &[], &[]), None), folder("~/a"));
        for name in ["~/clients/*", "/srv/app?", "/srv/[ab]", "*"] {
            let told = refused(exclude(&[name], &[], &[]), home);
            assert!(told.contains(&format!("exclude.folders contains {name}: ")), "{told}");
            assert!(told.ends_with("name each folder, or the one above them"), "{told}");
        }
        let told = refused(exclude(&[], &["8f14*"], &[]), home);
        assert!(told.ends_with("the first characters of an id are enough"), "{told}");
        let empty = "exclude.sessions contains an empty id, which would match every session";
        for id in ["", "claude:"] {
            assert_eq!(refused(exclude(&[], &[id], &[]), home), empty);
        }
    }

    /// What a link led to was taken in, without a word.
    #[test]
    fn a_folder_counts_under_both_of_its_names() {
        let settings = exclude(&["~/secret", "/srv/app"], &[], &[]);
        let resolve = |folder: &Path| match folder.strip_prefix("/home/ann/secret") {
            Ok(_) => Some(PathBuf::from("/mnt/project")),
            Err(_) => Some(folder.to_owned()),
        };
        let exclude = settings.at_home(Some(Path::new("/home/ann")), &resolve).unwrap();
        assert_eq!(exclude.links.len(), 1);
        for (folder, by) in [
            ("/home/ann/secret/sub", Some("/home/ann/secret")),
            ("/mnt/project/sub", Some("/home/ann/secret")),
            ("/mnt/projects", None),
            ("/srv/app", Some("/srv/app")),
        ] {
            let found = exclude.find("claude", "a", Some(Path::new(folder)));
            assert_eq!(found, by.map(|by| Exclusion::Folder(by.into())), "{folder}");
        }
    }
}
