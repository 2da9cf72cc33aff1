//! What sessions share next to their files, as an archive has met it: folders of a project, and lists with lines of many sessions.
//!
//! Invariant: a list is read once as long as it does not change.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crate::{
    disk::{self, Links, Stamp},
    json::Raw,
    wire::Format,
};

/// What was met.
#[derive(Default)]
pub(crate) struct Shared {
    /// The session that looks at each folder, for all that share it.
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
    /// Returns true for the first session only that looks at a folder.
    pub(crate) fn is_first(&mut self, folder: &Path, session: &str) -> bool {
        self.owners.entry(folder.to_owned()).or_insert_with(|| session.to_owned()) == session
    }

    /// Returns the whole lines of a session in a list of this length at most.
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
