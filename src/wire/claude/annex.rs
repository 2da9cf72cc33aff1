//! The files of a session other than the session file itself.
//!
//! ```text
//! projects/<slug>/<id>.jsonl
//!                 <id>/tool-results/*              long tool results
//!                 <id>/subagents/agent-<a>.jsonl   a session of its own
//!                                agent-<a>.meta.json
//!                 <id>/custom-title.json           the title that a person gave it
//!                 memory/*                         notes about a project, shared by its sessions
//! history.jsonl                                    what the user typed in any session; some lines are this session's
//! file-history/<id>/*                              files as they were before the program changed them
//! image-cache/<id>/*                               pasted images
//! ```

use std::path::{Path, PathBuf};

use super::Claude;
use crate::wire::{Annex, Layout, Share};

/// The folder of sessions.
pub(super) const SESSIONS: &str = "projects";
/// Folders next to it with more files of each session.
pub(super) const APART: [&str; 2] = ["file-history", "image-cache"];
/// The folder of a session's sub-agents.
pub(super) const SUB_AGENTS: &str = "subagents";
/// The folder of long tool results.
const RESULTS: &str = "tool-results";
/// The file with the title that a person gave.
const TITLE: &str = "custom-title.json";
/// The folder of notes about a project.
const MEMORY: &str = "memory";
/// The file with everything the user typed, in any session.
pub(super) const PROMPTS: &str = "history.jsonl";
/// The suffix of files that describe a sub-agent.
const META: &str = ".meta.json";

impl Layout for Claude {
    fn annexes(&self, file: &Path, session: &str) -> Vec<Annex> {
        let (Some(folder), Some(stem)) = (file.parent(), stem(file, ".jsonl")) else {
            return Vec::new();
        };
        if stem.starts_with("agent-") {
            let name = Some(format!("{stem}{META}"));
            let (from, folder) = (folder.to_owned(), PathBuf::new());
            return vec![Annex { from, folder, name, is_apart: false, share: Share::Session }];
        }
        if stem != session {
            return Vec::new();
        }
        let own = Path::new(session);
        let near = [
            (own.join(RESULTS), None, Share::Session),
            (own.to_owned(), Some(TITLE), Share::Session),
            (PathBuf::from(MEMORY), None, Share::Project),
        ];
        let near = near.map(|(below, name, share)| Annex {
            from: folder.to_owned(),
            folder: below,
            name: name.map(str::to_owned),
            is_apart: false,
            share,
        });
        let home = folder.parent().filter(|above| above.ends_with(SESSIONS)).and_then(Path::parent);
        let apart = home.into_iter().flat_map(|home| {
            let folders = APART.iter().map(|apart| (Path::new(apart).join(session), None));
            folders.chain([(PathBuf::new(), Some(PROMPTS))]).map(|(folder, name)| Annex {
                from: home.to_owned(),
                folder,
                name: name.map(str::to_owned),
                is_apart: true,
                share: if name.is_some() { Share::Lines } else { Share::Session },
            })
        });
        near.into_iter().chain(apart).collect()
    }

    /// Returns the session's file next to which another file is kept, or the folder of the sessions that share it.
    fn keeper(&self, file: &Path) -> Option<PathBuf> {
        let folder = file.parent()?;
        if let Some(stem) = stem(file, META).filter(|stem| stem.starts_with("agent-")) {
            return Some(folder.join(format!("{stem}.jsonl")));
        }
        if file.ends_with(PROMPTS) {
            return Some(folder.join(SESSIONS));
        }
        let above = folder.parent()?;
        if folder.ends_with(MEMORY) && above.parent().is_some_and(|home| home.ends_with(SESSIONS)) {
            return Some(above.to_owned());
        }
        let session = if file.ends_with(TITLE) { folder } else { above };
        if session == above && !folder.ends_with(RESULTS) {
            return None;
        }
        let name = format!("{}.jsonl", session.file_name()?.to_str()?);
        Some(session.with_file_name(name))
    }
}

fn stem<'a>(file: &'a Path, ending: &str) -> Option<&'a str> {
    file.file_name()?.to_str()?.strip_suffix(ending)
}
