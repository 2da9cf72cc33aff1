//! The names next to a live file: of its successor, and of the files that were set aside.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use memchr::memmem;

use crate::model::LineId;

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
    split(name).is_some_and(|(_, what)| what == NEW.as_bytes() || is_of_a_process(what))
}

/// Returns the name under which this process writes a file until all of it is there.
pub fn temporary_path(path: &Path) -> PathBuf {
    let what = format!("{NEW}-{}", std::process::id());
    path.with_file_name(beside(path.file_name().unwrap_or_default(), &what))
}

/// Returns true for the name of a file that a process writes.
pub(super) fn is_temporary(name: &OsStr) -> bool {
    split(name).is_some_and(|(_, what)| is_of_a_process(what))
}

fn is_of_a_process(what: &[u8]) -> bool {
    let id = what.strip_prefix(NEW.as_bytes()).and_then(|what| what.strip_prefix(b"-"));
    id.is_some_and(|id| !id.is_empty() && id.iter().all(u8::is_ascii_digit))
}

/// Returns the path of the live file whose successor is at a path.
pub(crate) fn placed(path: &Path) -> Option<PathBuf> {
    Some(path.with_file_name(successor_of(path.file_name()?)?))
}

/// Returns where the successor of a file is until it is put in its place.
pub(crate) fn fresh_path(live: &Path) -> PathBuf {
    live.with_file_name(beside(live.file_name().unwrap_or_default(), NEW))
}

/// Returns the name of the live file of which a file of this name is the successor.
pub(super) fn successor_of(name: &OsStr) -> Option<&str> {
    let (live, what) = split(name)?;
    if what == NEW.as_bytes() { live.to_str() } else { None }
}

/// Returns the name of a live file, and what comes after the mark.
fn split(name: &OsStr) -> Option<(&OsStr, &[u8])> {
    let at = memmem::rfind(name.as_bytes(), MARK.as_bytes())?;
    let (live, rest) = name.as_bytes().split_at_checked(at)?;
    Some((OsStr::from_bytes(live), rest.strip_prefix(MARK.as_bytes())?))
}

/// The mark between a live file's name and the number of a rotation.
const MARK: &str = ".undertext-";
/// How many bytes a name has at most.
const LONGEST: usize = 255;
/// How many digits of its hash stand for the end of a name that is too long for the mark.
const DIGITS: usize = 16;
/// The word in place of the number for the successor.
pub(super) const NEW: &str = "new";

/// Returns the name next to a live file with this word behind the mark. A long name is shortened.
pub(super) fn beside(name: &OsStr, what: &str) -> OsString {
    let room = LONGEST.saturating_sub(MARK.len() + what.len());
    let mut name = if name.len() > room { shortened(name, room) } else { name.to_owned() };
    name.push(MARK);
    name.push(what);
    name
}

/// Returns a name of this length at most, which only this name has.
fn shortened(name: &OsStr, room: usize) -> OsString {
    let bytes = name.as_bytes();
    let mut end = room.saturating_sub(DIGITS + 1);
    // Some systems refuse a part of a character.
    while end > 0 && bytes.get(end).is_some_and(|byte| byte & 0xc0 == 0x80) {
        end -= 1;
    }
    let mut short = OsStr::from_bytes(bytes.get(..end).unwrap_or_default()).to_owned();
    short.push(format!("~{:.DIGITS$}", LineId::of(bytes).to_string()));
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_shortened_and_stays_one_of_its_own() {
        for letter in ["a", "é", "日"] {
            for length in 1..=LONGEST / letter.len() {
                let name = OsString::from(letter.repeat(length));
                for what in [NEW, "1", "18446744073709551615"] {
                    let next = beside(&name, what);
                    assert!(next.len() <= LONGEST && next.to_str().is_some(), "{next:?}");
                    let path = Path::new("/sessions").join(&next);
                    assert!(is_aside(&path) && is_fresh(&next) == (what == NEW), "{next:?}");
                    let other = OsString::from(letter.repeat(length - 1) + "b");
                    assert!(other == name || beside(&other, what) != next, "{next:?}");
                    let is_whole = name.len() + MARK.len() + what.len() <= LONGEST;
                    assert_eq!(split(&next).unwrap().0 == name, is_whole, "{next:?}");
                }
            }
        }
    }
}
