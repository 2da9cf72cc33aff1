//! The names next to a live file: of its successor, and of the files that were set aside.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use memchr::memmem;

/// Returns whether a file of this name was set aside here, or is a successor.
pub fn is_aside(path: &Path) -> bool {
    set_aside_from(path).is_some() || path.file_name().is_some_and(is_fresh)
}

/// Returns the live file in whose place a file of this name was, if it was set aside here.
pub(crate) fn set_aside_from(path: &Path) -> Option<PathBuf> {
    let (live, n) = split(path.file_name()?)?;
    let is_number = !n.is_empty() && n.iter().all(u8::is_ascii_digit);
    is_number.then(|| path.with_file_name(live))
}

/// Returns whether a file of this name is a successor that was not put in its place yet.
pub fn is_fresh(name: &OsStr) -> bool {
    split(name).is_some_and(|(_, what)| what == NEW.as_bytes())
}

/// Returns where the successor of a file lies until it is put in its place.
pub(crate) fn fresh_path(live: &Path) -> PathBuf {
    live.with_file_name(beside(live.file_name().unwrap_or_default(), NEW))
}

/// Returns the name of the live file of which a file of this name is the successor.
pub(super) fn successor_of(name: &OsStr) -> Option<&str> {
    let (live, what) = split(name)?;
    if what == NEW.as_bytes() { live.to_str() } else { None }
}

/// Returns the name of a live file, and what stands behind the mark.
fn split(name: &OsStr) -> Option<(&OsStr, &[u8])> {
    let at = memmem::rfind(name.as_bytes(), MARK.as_bytes())?;
    let (live, rest) = name.as_bytes().split_at_checked(at)?;
    Some((OsStr::from_bytes(live), rest.strip_prefix(MARK.as_bytes())?))
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
