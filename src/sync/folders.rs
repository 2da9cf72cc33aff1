//! Folders on this machine in which agents keep session files, those that are read and those that are not read yet.

use std::{
    fs, io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use crate::{
    live,
    model::Tagged as _,
    sync::{Archive, sources::children},
    wire::{
        discover::{self, Home},
        unread::{self, UnreadHome},
    },
};

/// A folder in which an agent keeps its sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentFolder {
    /// The agent.
    pub agent: &'static str,
    /// The format of its sessions.
    pub format: &'static str,
    /// Where it lies.
    pub path: PathBuf,
}

/// Returns the folders in which agents keep sessions on this machine; `variable` tells the folders that the agents were
/// given.
pub fn agent_folders(
    home: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<PathBuf>,
) -> Vec<AgentFolder> {
    let mut folders = Vec::new();
    for Home { agent, format, path, each, .. } in discover::homes(home, variable) {
        let paths = match each {
            None => vec![path],
            Some(below) => {
                let inner = children(&path).unwrap_or_default();
                inner.into_iter().map(|path| path.join(below)).collect()
            }
        };
        folders.extend(paths.into_iter().map(|path| AgentFolder { agent, format, path }));
    }
    folders.retain(|folder| folder.path.is_dir());
    folders
}

/// Returns the files in agents' folders that have the name of a session file and that no session of an archive has. What cannot
/// be read is passed: an import reports it.
pub fn new_files(archive: Option<&Archive>, folders: &[AgentFolder]) -> Vec<PathBuf> {
    let held = archive.map(|archive| archive.store().places().map(|places| (archive, places)));
    // Of a store that cannot be read nothing is known to be new.
    let Ok(held) = held.transpose() else { return Vec::new() };
    let is_held = |file: &Path| {
        held.as_ref().is_some_and(|(archive, places)| {
            places.binary_search(&archive.place_of(file).to_bytes()).is_ok()
        })
    };
    let mut found = Vec::new();
    for folder in folders {
        let Ok(folder) = live::real(&folder.path) else { continue };
        let _unread = session_files(&folder, &mut |file| {
            if !is_held(&file) {
                found.push(file);
            }
        });
    }
    found
}

/// Hands over the files below a folder that have the name of a session file; no link is followed.
fn session_files(folder: &Path, each: &mut dyn FnMut(PathBuf)) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (kind, path) = (entry.file_type()?, entry.path());
        if kind.is_dir() {
            let _unread = session_files(&path, each);
        } else if kind.is_file() && !live::is_aside(&path) {
            let name = entry.file_name();
            let name = name.as_bytes();
            if name.ends_with(b".jsonl") || name.ends_with(b".jsonl.zst") {
                each(path);
            }
        }
    }
    Ok(())
}

/// Returns the folders on this machine in which agents keep session files that are not read yet, each with how many it holds.
pub fn unread_folders(
    home: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<PathBuf>,
) -> Vec<(UnreadHome, u64)> {
    let homes = unread::homes(home, variable).into_iter().filter(|home| home.path.is_dir());
    let counted = homes.map(|home| {
        let files = count_files(&home.path, &home.files.split('/').collect::<Vec<_>>());
        (home, files)
    });
    counted.collect()
}

/// Counts the files below a folder whose path has these names, in each of which `*` stands for any characters.
fn count_files(folder: &Path, names: &[&str]) -> u64 {
    let Some((name, below)) = names.split_first() else { return u64::from(folder.is_file()) };
    let Some((begin, end)) = name.split_once('*') else {
        return count_files(&folder.join(name), below);
    };
    let is_meant = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().as_bytes();
        name.strip_prefix(begin.as_bytes()).is_some_and(|rest| rest.ends_with(end.as_bytes()))
    };
    let inner = children(folder).unwrap_or_default().into_iter().filter(is_meant);
    inner.map(|path| count_files(&path, below)).sum()
}
