//! Which files may be written: agents' files in the folders where those agents keep their sessions, files that this user named on
//! this machine, and the transcripts of the store.
//!
//! The file of a session is a fact in its store, and a store may come from anywhere. So the fact says where to look for the file,
//! but does not permit a write.
//!
//! Invariant: only this module creates a [`WritableFile`].

use std::{
    ffi::OsStr,
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use rustix::fs::{Mode, OFlags};

use super::file::WritableFile;
use crate::{
    disk::{self, Disk, Refusal},
    model::TRANSCRIPTS,
};

/// Which agents' files may be written; by default none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writable {
    folders: Vec<Folder>,
    files: Vec<PathBuf>,
}

/// A folder where files of a format may be written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Folder {
    format: &'static str,
    /// Its real path, resolved once, because every file to be written is compared with it.
    path: PathBuf,
    /// If set, only the subfolders of this name in each folder below `path` count.
    each: Option<&'static str>,
}

impl Folder {
    /// Returns true if a path is in it.
    fn has(&self, path: &Path) -> bool {
        let Ok(rest) = path.strip_prefix(&self.path) else { return false };
        let mut parts = rest.components();
        self.each.is_none_or(|each| parts.next().is_some() && parts.as_path().starts_with(each))
    }
}

/// Why a file is not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Denied {
    /// Only the store names this path.
    #[error("the file is outside the agent's folders, and was never attached on this machine")]
    Outside,
    /// The file does not exist, and only the store names this path.
    #[error(
        "the file is missing, and undertext creates session files only in the agents' folders, or where you attached one on this machine"
    )]
    Gone,
    /// The path has dots, or is not a transcript of the store.
    #[error("a session's file cannot be at that path")]
    Crooked,
    /// The store's folder of transcripts is a link.
    #[error("the file's folder is a link")]
    Link,
    /// It is not a regular file.
    #[error(transparent)]
    Refused(Refusal),
    /// It is a path of the store's own files, and not a regular file.
    #[error("this path is reserved for the store, but {0}")]
    InPlace(Refusal),
    /// The file system failed.
    #[error("{}", disk::words(.0))]
    Io(io::Error),
}

impl From<io::Error> for Denied {
    fn from(error: io::Error) -> Self {
        Refusal::of(&error).map_or(Self::Io(error), Self::Refused)
    }
}

impl Writable {
    /// Allows the files of a format below a folder.
    pub fn folder(&mut self, format: &'static str, folder: &Path) {
        self.folders.extend(real(folder).ok().map(|path| Folder { format, path, each: None }));
    }

    /// Allows the files of a format in the folder `each` of every folder in `folder`, whether these exist or not.
    pub fn folder_in_each(&mut self, format: &'static str, folder: &Path, each: &'static str) {
        let each = Some(each);
        self.folders.extend(real(folder).ok().map(|path| Folder { format, path, each }));
    }

    /// Allows a file in an agent's folder.
    pub fn list(&mut self, path: &Path) {
        if let (Some(folder), Some(name)) = (path.parent(), path.file_name()) {
            self.files.extend(real(folder).ok().map(|folder| folder.join(name)));
        }
    }

    /// Allows a file that this user named.
    pub fn file(&mut self, path: PathBuf) {
        self.files.push(path);
    }

    /// Creates the missing folders for a session's file, within its agent's folders or for a file that this user named.
    pub fn make_folder(&self, format: &str, path: &Path) -> Result<(), Denied> {
        let is_plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
        if !path.is_absolute() || !path.components().all(is_plain) {
            return Err(Denied::Crooked);
        }
        let Some(folder) = path.parent().filter(|folder| !folder.is_dir()) else { return Ok(()) };
        // The missing folders cannot contain a link.
        let there = folder.ancestors().find(|above| fs::symlink_metadata(above).is_ok());
        let there = there.unwrap_or(folder);
        let meant = real(folder)?;
        let is_named = path.file_name().is_some_and(|name| self.files.contains(&meant.join(name)));
        if !is_named && !self.is_below(format, &meant) {
            return Err(Denied::Outside);
        }
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        // If a new folder's name were lost in a crash, its synced content would be lost too.
        for made in folder.ancestors().take_while(|made| *made != there) {
            let above = made.parent().unwrap_or(made);
            let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
            let above = rustix::fs::open(above, flags, Mode::empty()).map_err(io::Error::from)?;
            rustix::fs::fsync(above).map_err(io::Error::from)?;
        }
        Ok(())
    }

    /// Returns true if a folder, which need not exist, is in one of the agent's folders.
    pub fn has(&self, format: &str, folder: &Path) -> bool {
        real(folder).is_ok_and(|folder| self.is_below(format, &folder))
    }

    /// Returns true if any agent reads this file, whose path must not contain links.
    pub fn is_agents(&self, file: &Path) -> bool {
        self.files.iter().any(|named| named == file) || self.folders.iter().any(|it| it.has(file))
    }

    fn is_below(&self, format: &str, path: &Path) -> bool {
        self.folders.iter().any(|folder| folder.format == format && folder.has(path))
    }

    /// Returns a session's file for writing, if that is allowed.
    pub fn agents_file(
        &self,
        disk: &Arc<dyn Disk>,
        format: &str,
        path: &Path,
    ) -> Result<WritableFile, Denied> {
        let is_plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Denied::Crooked);
        };
        if !path.is_absolute() || !path.components().all(is_plain) {
            return Err(Denied::Crooked);
        }
        // Only the real path counts; the agent's folder was resolved too.
        let parent = parent.canonicalize()?;
        if !self.is_below(format, &parent) && !self.files.contains(&parent.join(name)) {
            return Err(Denied::Outside);
        }
        Self::checked(WritableFile::of(disk, &parent, name)?)
    }

    /// Returns a store's own transcript for writing. The store's folder must not be a link.
    pub fn transcript(
        disk: &Arc<dyn Disk>,
        root: &Path,
        path: &Path,
    ) -> Result<WritableFile, Denied> {
        let below = path.strip_prefix(root).map_err(|_| Denied::Crooked)?;
        let mut parts = below.components();
        match (parts.next(), parts.next(), parts.next()) {
            (Some(Component::Normal(folder)), Some(Component::Normal(name)), None)
                if folder == OsStr::new(TRANSCRIPTS) =>
            {
                let folder = root.join(folder);
                if folder.is_symlink() {
                    return Err(Denied::Link);
                }
                let file = Self::checked(WritableFile::of(disk, &folder, name)?);
                file.map_err(|denied| match denied {
                    Denied::Refused(refusal) => Denied::InPlace(refusal),
                    denied => denied,
                })
            }
            _ => Err(Denied::Crooked),
        }
    }

    /// Returns the list that an agent keeps in a folder above a session's file, for writing.
    pub fn index(file: &WritableFile, index: &Path) -> Result<WritableFile, Denied> {
        match (index.parent(), index.file_name()) {
            (Some(folder), Some(name)) if file.path().starts_with(folder) => {
                Self::checked(file.above(folder, name)?)
            }
            _ => Err(Denied::Crooked),
        }
    }

    fn checked(target: WritableFile) -> Result<WritableFile, Denied> {
        disk::look(target.path())?;
        Ok(target)
    }
}

/// Returns the real path of a folder that need not exist: the missing part cannot contain a link.
pub(crate) fn real(folder: &Path) -> io::Result<PathBuf> {
    let there = folder.ancestors().find(|above| fs::symlink_metadata(above).is_ok());
    let there = there.unwrap_or(folder);
    let mut real = there.canonicalize()?;
    for part in folder.strip_prefix(there).unwrap_or(Path::new("")).components() {
        let Component::Normal(part) = part else { return Err(io::ErrorKind::InvalidInput.into()) };
        real.push(part);
    }
    Ok(real)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test writes what it then looks at")]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;
    use crate::disk::Kernel;

    fn word(found: &Result<WritableFile, Denied>) -> String {
        found.as_ref().map_or_else(ToString::to_string, |file| {
            file.path().file_name().unwrap_or_default().to_string_lossy().into_owned()
        })
    }

    #[test]
    fn a_file_is_written_below_its_agents_folders_or_where_it_was_pointed_at() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        for folder in ["claude/app", "codex", "elsewhere", "claude-2", "store/transcripts"] {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        let files = ["claude/app/a", "elsewhere/b", "claude-2/a", "profile", "store/transcripts/t"];
        for file in files {
            fs::write(home.join(file), "said").unwrap();
        }
        symlink(home.join("profile"), home.join("claude/app/link")).unwrap();
        symlink(home.join("elsewhere"), home.join("claude/out")).unwrap();
        symlink(home.join("claude"), home.join("linked")).unwrap();
        let mut writable = Writable::default();
        writable.folder("claude", &home.join("linked"));
        writable.folder("codex", &home.join("codex"));
        let disk: Arc<dyn Disk> = Arc::new(Kernel);
        let check = |writable: &Writable, format: &str, file: &str, expected: &str| {
            let found = writable.agents_file(&disk, format, &home.join(file));
            assert_eq!(word(&found), expected, "{format} {file}");
        };
        let outside = Denied::Outside.to_string();
        let crooked = Denied::Crooked.to_string();
        check(&writable, "claude", "claude/app/a", "a");
        check(&writable, "claude", "linked/app/a", "a");
        check(&writable, "claude", "claude/app/new", "new");
        check(&writable, "codex", "claude/app/a", &outside);
        check(&writable, "claude", "claude-2/a", &outside);
        check(&writable, "claude", "profile", &outside);
        check(&writable, "claude", "claude/out/b", &outside);
        check(&writable, "claude", "claude/app/link", "it is a link, not a file");
        check(&writable, "claude", "claude/app", "it is a folder, not a file");
        check(&writable, "claude", "claude/app/../../profile", &crooked);
        check(&writable, "claude", "claude/app/..", &crooked);
        let relative = writable.agents_file(&disk, "claude", Path::new("claude/app/a"));
        assert_eq!(word(&relative), crooked);
        assert_eq!(
            word(&Writable::default().agents_file(&disk, "claude", &home.join("profile"))),
            outside
        );
        writable.file(home.join("elsewhere/b"));
        check(&writable, "claude", "elsewhere/b", "b");
        check(&writable, "claude", "claude/out/b", "b");

        // A folder that no longer exists counts where it would be; one in each folder of another, at its depth alone.
        writable.folder("pi", &home.join("gone/sessions"));
        writable.folder_in_each("pi", &home.join("gone/agents"), "sessions");
        let has = |path: &str| writable.has("pi", &home.join(path));
        assert!(has("gone/sessions/a") && has("gone/agents/main/sessions"));
        for path in ["gone", "gone/agents", "gone/agents/main", "gone/agents/sessions/a"] {
            assert!(!has(path), "{path}");
        }

        let store = home.join("store");
        let own = |file: &str| word(&Writable::transcript(&disk, &store, &store.join(file)));
        assert_eq!(own("transcripts/t"), "t");
        for file in ["../profile", "transcripts/../../profile", "store.db", "transcripts/a/b", "/t"]
        {
            assert_eq!(own(file), crooked, "{file}");
        }
        let file = Writable::transcript(&disk, &store, &store.join("transcripts/t")).unwrap();
        for name in ["../../profile", "a/b", "..", ".", "", "/etc/x"] {
            assert!(file.sibling(OsStr::new(name)).is_err(), "{name}");
        }
        assert_eq!(file.sibling(OsStr::new("u")).unwrap().path(), store.join("transcripts/u"));
        let index = |path: &str| Writable::index(&file, &home.join(path)).is_ok();
        assert!(index("store/list.json") && index("list.json") && !index("claude/list.json"));
    }
}
