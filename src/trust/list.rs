//! A list in a file of the user's state folder: one item per line, read and replaced as a whole.
//!
//! Items are bytes, because paths are. A line feed in an item is written as `\n`, a backslash as `\\`.
//!
//! Invariant: only a regular file of the current user is read; anything else is an error.

use std::{
    fs,
    io::{self, ErrorKind, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::disk::{self, Links};

/// The maximum length of a list in bytes.
const LONGEST: u64 = 16 << 20;

/// A list of one kind of items.
#[derive(Clone, Debug)]
pub struct List {
    folder: PathBuf,
    name: &'static str,
}

impl List {
    /// Returns the list with this name in the user's state folder, which need not exist.
    pub fn new(folder: &Path, name: &'static str) -> Self {
        Self { folder: folder.to_owned(), name }
    }

    /// Returns the items; a missing list is empty.
    pub fn read(&self) -> io::Result<Vec<Vec<u8>>> {
        let path = self.folder.join(self.name);
        let file = match disk::open(&path, Links::Refuse) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened?,
        };
        if file.metadata()?.uid() != rustix::process::geteuid().as_raw() {
            return Err(ErrorKind::PermissionDenied.into());
        }
        let text = disk::whole(file, LONGEST)?;
        let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        Ok(lines.map(unescape).collect())
    }

    /// Changes the list atomically, and creates the folder, private, if it is missing.
    pub fn change(&self, change: impl FnOnce(&mut Vec<Vec<u8>>)) -> io::Result<()> {
        disk::make_folders(&self.folder)?;
        let at = |end: &str| self.folder.join(format!("{}{end}", self.name));
        let lock = disk::open_or_make(&at(".lock"))?;
        lock.lock()?;
        let mut items = self.read()?;
        change(&mut items);
        let mut fresh = disk::open_or_make(&at(".new"))?;
        fresh.set_len(0)?;
        let text: Vec<u8> = items.iter().flat_map(|item| escape(item)).collect();
        fresh.write_all(&text)?;
        fresh.sync_all()?;
        fs::rename(at(".new"), at(""))?;
        disk::sync_folder(&self.folder)
    }
}

fn escape(item: &[u8]) -> Vec<u8> {
    let mut line = Vec::with_capacity(item.len() + 1);
    for &byte in item {
        match byte {
            b'\n' => line.extend(b"\\n"),
            b'\\' => line.extend(b"\\\\"),
            byte => line.push(byte),
        }
    }
    line.push(b'\n');
    line
}

fn unescape(line: &[u8]) -> Vec<u8> {
    let mut item = Vec::with_capacity(line.len());
    let mut bytes = line.iter().copied();
    while let Some(byte) = bytes.next() {
        item.push(match byte {
            b'\\' if bytes.next() == Some(b'n') => b'\n',
            byte => byte,
        });
    }
    item
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_any_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let list = List::new(&folder.path().join("state"), "things");
        assert_eq!(list.read().unwrap(), [b""; 0]);
        let items: [&[u8]; 4] = [b"plain", b"a\nline", b"back\\slash\\n", b"\xff\xfe"];
        list.change(|held| held.extend(items.map(<[u8]>::to_vec))).unwrap();
        assert_eq!(list.read().unwrap(), items);
        list.change(|held| held.retain(|item| item == b"plain")).unwrap();
        assert_eq!(list.read().unwrap(), [b"plain"]);
    }

    #[test]
    fn a_list_is_private_and_no_link() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let list = List::new(folder.path(), "things");
        list.change(|held| held.push(b"one".to_vec())).unwrap();
        let mode = fs::metadata(folder.path().join("things")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let elsewhere = List::new(folder.path(), "elsewhere");
        std::os::unix::fs::symlink("things", folder.path().join("elsewhere")).unwrap();
        assert!(elsewhere.read().is_err());
    }

    #[test]
    fn changes_at_one_time_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let list = List::new(folder.path(), "things");
        std::thread::scope(|scope| {
            for n in 0..8_u8 {
                let list = list.clone();
                scope.spawn(move || list.change(|held| held.push(vec![b'a' + n])).unwrap());
            }
        });
        assert_eq!(list.read().unwrap().len(), 8);
    }
}
