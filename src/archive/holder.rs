//! Who holds a lock, as far as the system tells.

use std::{fmt, fs, os::unix::fs::MetadataExt, path::Path};

use crate::live;

/// How many times the list of locks is read before nobody is named.
const LOOKS: u32 = 5;

/// A process that holds a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its number.
    pub pid: u32,
    /// Its command line, if that can be read.
    pub command: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.command.as_str() {
            "" => write!(f, "process {}", self.pid),
            command => write!(f, "process {} ({command})", self.pid),
        }
    }
}

/// Returns who holds the lock of a file, where the system tells.
pub(crate) fn holder(path: &Path) -> Option<Holder> {
    let inode = fs::metadata(path).ok()?.ino();
    // The kernel returns the list in pieces, and can skip entries while others come and go.
    let pid = (0..LOOKS).find_map(|_| live::flocks().get(&inode).copied())?;
    let command = made_up(&format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = command.split('\0').filter(|word| !word.is_empty());
    Some(Holder { pid, command: words.collect::<Vec<_>>().join(" ").chars().take(80).collect() })
}

/// Reads what the system tells as if it were a file.
#[expect(clippy::disallowed_methods, reason = "what the system makes up is no file of others")]
fn made_up(path: &str) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
