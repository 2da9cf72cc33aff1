//! What the program keeps of a session besides its file.
//!
//! ```text
//! projects/<slug>/<id>.jsonl
//!                 <id>/tool-results/*              long answers of tools
//!                 <id>/subagents/agent-<a>.jsonl   a session of its own
//!                                agent-<a>.meta.json
//! file-history/<id>/*                              files as they were before it changed them
//! image-cache/<id>/*                               images that were pasted
//! ```
//!
//! Whatever else the program keeps under a session's name is not taken in:
//!
//! ```text
//! projects/<slug>/<id>/session-memory/*            what it notes of the session
//! todos/<id>-agent-<id>.json                       its list of things to do
//! debug/<id>.txt, tasks/<id>/*, session-env/<id>/* and the like
//! projects/<slug>/sessions-index.json              how each session of the folder begins, and what it is about
//! usage-data/facets/<id>.json and the like         what it found of a session when it summed up how it was used
//! usage-data/report.html                           that of all sessions
//! history.jsonl                                    what a person typed in any session
//! ```

use std::path::{Path, PathBuf};

use crate::wire::{Annex, Trace};

/// The folder in which the sessions lie.
pub(super) const SESSIONS: &str = "projects";
/// The folders next to that one.
pub(super) const APART: [&str; 2] = ["file-history", "image-cache"];
/// The folder of a session's sub-agents.
pub(super) const SUB_AGENTS: &str = "subagents";
/// The folder of long answers.
const RESULTS: &str = "tool-results";
/// The file that lists the sessions of a folder.
const INDEX: &str = "sessions-index.json";
/// The folder in which the program sums up how it was used.
const USAGE: &str = "usage-data";
/// The file in it that tells of all sessions.
const REPORT: &str = "report.html";
/// The file in which the program keeps what was typed in any session.
const PROMPTS: &str = "history.jsonl";
/// How the file ends that describes a sub-agent.
const META: &str = ".meta.json";

/// Returns where more files of the session of a file lie.
pub(super) fn annexes(file: &Path, session: &str) -> Vec<Annex> {
    let (Some(folder), Some(stem)) = (file.parent(), stem(file, ".jsonl")) else {
        return Vec::new();
    };
    if stem.starts_with("agent-") {
        let name = Some(format!("{stem}{META}"));
        let (from, folder) = (folder.to_owned(), PathBuf::new());
        return vec![Annex { from, folder, name, is_apart: false }];
    }
    if stem != session {
        return Vec::new();
    }
    let results = Path::new(session).join(RESULTS);
    let results = Annex { from: folder.to_owned(), folder: results, name: None, is_apart: false };
    let home = folder.parent().filter(|above| above.ends_with(SESSIONS)).and_then(Path::parent);
    let apart = home.into_iter().flat_map(|home| {
        APART.iter().map(|apart| Annex {
            from: home.to_owned(),
            folder: Path::new(apart).join(session),
            name: None,
            is_apart: true,
        })
    });
    std::iter::once(results).chain(apart).collect()
}

/// Returns where all that the program keeps under the name of the session of a file lies.
pub(super) fn traces(file: &Path, session: &str) -> Vec<Trace> {
    let (Some(folder), Some(stem)) = (file.parent(), stem(file, ".jsonl")) else {
        return Vec::new();
    };
    if stem != session {
        return Vec::new();
    }
    let home = folder.parent().filter(|above| above.ends_with(SESSIONS)).and_then(Path::parent);
    let apart = home.into_iter().flat_map(|home| {
        let usage = home.join(USAGE);
        let lists = [usage.join(REPORT), home.join(PROMPTS)].map(Trace::List);
        [Trace::Named(home.to_owned()), Trace::Named(usage)].into_iter().chain(lists)
    });
    let own = folder.join(session);
    let list = Trace::List(folder.join(INDEX));
    let near = [Trace::Below(own.clone()), Trace::Beside(own), list];
    near.into_iter().chain(apart).collect()
}

/// Returns the session's file next to which another one is kept.
pub(super) fn keeper(file: &Path) -> Option<PathBuf> {
    let folder = file.parent()?;
    if let Some(stem) = stem(file, META).filter(|stem| stem.starts_with("agent-")) {
        return Some(folder.join(format!("{stem}.jsonl")));
    }
    let session = folder.parent().filter(|_| folder.ends_with(RESULTS))?;
    let name = format!("{}.jsonl", session.file_name()?.to_str()?);
    Some(session.with_file_name(name))
}

fn stem<'a>(file: &'a Path, ending: &str) -> Option<&'a str> {
    file.file_name()?.to_str()?.strip_suffix(ending)
}
