//! A cache of what sessions share next to their files: project folders, and lists with lines of many sessions.
//!
//! Invariant: a list is not read again while it is unchanged.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crate::{
    disk::{self, Links, Stamp},
    json::Raw,
    wire::Format,
};

#[derive(Default)]
pub(crate) struct Shared {
    /// The session that reads each shared folder on behalf of all that share it.
    owners: BTreeMap<PathBuf, String>,
    list: Option<List>,
}

/// A list with lines of many sessions.
struct List {
    path: PathBuf,
    stamp: Stamp,
    lines: BTreeMap<String, Vec<u8>>,
}

impl Shared {
    /// Returns true only for the first session that asks about a folder.
    pub(crate) fn is_first(&mut self, folder: &Path, session: &str) -> bool {
        self.owners.entry(folder.to_owned()).or_insert_with(|| session.to_owned()) == session
    }

    /// Returns a session's complete lines from a list that is at most `longest` bytes long.
    pub(crate) fn lines(
        &mut self,
        path: &Path,
        longest: u64,
        format: &dyn Format,
        session: &str,
    ) -> Option<&[u8]> {
        let stamp = Stamp::at(path).ok()??;
        if self.list.as_ref().is_none_or(|list| list.path != path || list.stamp != stamp) {
            let (path, mut lines) = (path.to_owned(), BTreeMap::<String, Vec<u8>>::new());
            let bytes = disk::whole(disk::open(&path, Links::Refuse).ok()?, longest).ok()?;
            for line in bytes.split_inclusive(|&byte| byte == b'\n') {
                let owner = Raw::object(line.trim_ascii()).and_then(|line| format.owner(line));
                if let Some((session, _)) = owner.filter(|_| line.ends_with(b"\n")) {
                    lines.entry(session).or_default().extend(line);
                }
            }
            self.list = Some(List { path, stamp, lines });
        }
        self.list.as_ref()?.lines.get(session).map(Vec::as_slice)
    }
}
