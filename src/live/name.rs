//! The names next to a live file: its successor, and the files that were set aside.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use memchr::memmem;

use crate::model::LineId;

/// Returns true if the file was set aside by undertext, or is a successor.
pub fn is_aside(path: &Path) -> bool {
    set_aside_from(path).is_some() || path.file_name().is_some_and(is_fresh)
}

/// Returns the live file that this file was set aside from, if undertext set it aside.
pub(crate) fn set_aside_from(path: &Path) -> Option<PathBuf> {
    let (live, n) = split(path.file_name()?)?;
    let is_number = !n.is_empty() && n.iter().all(u8::is_ascii_digit);
    is_number.then(|| path.with_file_name(live))
}

/// Returns true if the name is that of a successor that was not installed yet.
pub fn is_fresh(name: &OsStr) -> bool {
    split(name).is_some_and(|(_, what)| what == NEW.as_bytes() || is_of_a_process(what))
}

/// Returns the name under which this process writes a file until it is complete.
pub fn temporary_path(path: &Path) -> PathBuf {
    let what = format!("{NEW}-{}", std::process::id());
    path.with_file_name(beside(path.file_name().unwrap_or_default(), &what))
}

/// Returns true if the name is that of a file that a process is writing.
pub(super) fn is_temporary(name: &OsStr) -> bool {
    split(name).is_some_and(|(_, what)| is_of_a_process(what))
}

fn is_of_a_process(what: &[u8]) -> bool {
    let id = what.strip_prefix(NEW.as_bytes()).and_then(|what| what.strip_prefix(b"-"));
    id.is_some_and(|id| !id.is_empty() && id.iter().all(u8::is_ascii_digit))
}

/// Returns the live file whose successor is at `path`.
pub(crate) fn placed(path: &Path) -> Option<PathBuf> {
    Some(path.with_file_name(successor_of(path.file_name()?)?))
}

/// Returns the path of a file's successor until it is installed.
pub(crate) fn fresh_path(live: &Path) -> PathBuf {
    live.with_file_name(beside(live.file_name().unwrap_or_default(), NEW))
}

/// Returns the name of the live file whose successor has this name.
pub(super) fn successor_of(name: &OsStr) -> Option<&str> {
    let (live, what) = split(name)?;
    if what == NEW.as_bytes() { live.to_str() } else { None }
}

/// Splits a name at the last mark, into the live file's name and the rest.
fn split(name: &OsStr) -> Option<(&OsStr, &[u8])> {
    let at = memmem::rfind(name.as_bytes(), MARK.as_bytes())?;
    let (live, rest) = name.as_bytes().split_at_checked(at)?;
    Some((OsStr::from_bytes(live), rest.strip_prefix(MARK.as_bytes())?))
}

/// The mark between a live file's name and the number of a rotation.
const MARK: &str = ".undertext-";
/// The maximum length of a file name in bytes.
const LONGEST: usize = 255;
/// How many digits of its hash replace the end of a name that is too long.
const DIGITS: usize = 16;
/// The word that marks a successor, in place of a rotation's number.
pub(super) const NEW: &str = "new";

/// Returns the live file's name with the mark and `what` appended. A long name is shortened.
pub(super) fn beside(name: &OsStr, what: &str) -> OsString {
    let room = LONGEST.saturating_sub(MARK.len() + what.len());
    let mut name = if name.len() > room { shortened(name, room) } else { name.to_owned() };
    name.push(MARK);
    name.push(what);
    name
}

/// Returns a unique name of at most `room` bytes.
fn shortened(name: &OsStr, room: usize) -> OsString {
    let bytes = name.as_bytes();
    let mut end = room.saturating_sub(DIGITS + 1);
    // Some systems reject an incomplete UTF-8 character.
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
