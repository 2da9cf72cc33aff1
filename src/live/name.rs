//! The names next to a live file: of its successor, and of the files that were set aside.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

/// Returns whether a file of this name was set aside here.
pub fn is_aside(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.rsplit_once(MARK).is_some_and(|(_, what)| {
        what == NEW || (!what.is_empty() && what.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// Returns whether a file of this name is a successor that was not put in its place yet.
pub fn is_fresh(name: &OsStr) -> bool {
    successor_of(name).is_some()
}

/// Returns where the successor of a file lies until it is put in its place.
pub(crate) fn fresh_path(live: &Path) -> PathBuf {
    live.with_file_name(beside(live.file_name().unwrap_or_default(), NEW))
}

/// Returns the name of the live file of which a file of this name is the successor.
pub(super) fn successor_of(name: &OsStr) -> Option<&str> {
    let (live, what) = name.to_str()?.rsplit_once(MARK)?;
    (what == NEW).then_some(live)
}

/// The mark between a live file's name and the number of a rotation.
const MARK: &str = ".undertext-";
/// The word in the place of the number for the successor.
pub(super) const NEW: &str = "new";

/// Returns the name next to a live file with this word behind the mark.
pub(super) fn beside(name: &OsStr, what: &str) -> OsString {
    let mut name = name.to_owned();
    name.push(MARK);
    name.push(what);
    name
}
