//! Finds the process that holds a lock, where the system reports it.

use std::{fmt, fs, os::unix::fs::MetadataExt, path::Path};

use crate::live;

/// How many times to read the list of locks before giving up.
const LOOKS: u32 = 5;

/// A process that holds a lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// Process id; 0 if the system does not report it.
    pub pid: u32,
    /// Command line; empty if it cannot be read.
    pub command: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.command.as_str() {
            "" if self.pid == 0 => f.write_str("another process"),
            "" => write!(f, "process {}", self.pid),
            command => write!(f, "process {} ({command})", self.pid),
        }
    }
}

/// Returns the process that holds a file's lock, where the system reports it.
pub(crate) fn holder(path: &Path) -> Option<Holder> {
    let inode = fs::metadata(path).ok()?.ino();
    // The kernel returns the list in pieces and can skip entries while others come and go.
    let pid = (0..LOOKS).find_map(|_| live::flocks().get(&inode).copied())?;
    let command = made_up(&format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = command.split('\0').filter(|word| !word.is_empty());
    Some(Holder { pid, command: words.collect::<Vec<_>>().join(" ").chars().take(80).collect() })
}

/// Reads a virtual file.
#[expect(clippy::disallowed_methods, reason = "what the system makes up is no file of others")]
fn made_up(path: &str) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
