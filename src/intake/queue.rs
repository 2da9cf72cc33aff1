//! The queue of names that agents' hooks have reported and that are not imported yet. It is in the user's state folder, one small
//! file per name.
//!
//! ```text
//! hook     adds the name, starts a worker, and exits: the agent does not wait
//! worker   takes the queue's lock, or ends if another worker has it
//!          takes the names, waits until their files are complete, has them imported; repeats until no names are left
//!          releases the lock, and starts over if a name has arrived meanwhile
//!
//! named-1a2b         waits
//! named-1a2b.taken   its file is being imported; if it is left over, the next worker imports it
//! ```
//!
//! So one worker imports everything, however often it is named, and no name is missed that arrives while the worker ends. If an
//! import fails because the disk is full or the store is locked, the name waits again and the worker retries until it succeeds.
//!
//! A file is complete when it has not changed for a while: an agent may write the end of a turn after reporting it. Names are
//! data: a file is imported only if it is in the folders of the agent that named it.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::{self, DirBuilder, File},
    io::{self, ErrorKind, Write},
    os::unix::{ffi::OsStrExt, fs::DirBuilderExt},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use crate::{
    disk::{self, Disk, IfHeld, Kernel, Links, Stamp},
    intake::folders::AgentFolder,
    model::LineId,
    wire::{self, Named},
};

/// How often to look at a file.
const TICK: Duration = Duration::from_millis(50);
/// How long a file must be unchanged.
const QUIET: Duration = Duration::from_millis(400);
/// How long to wait for a file that keeps changing.
const LONGEST: Duration = Duration::from_secs(10);
/// How long to wait for a file that does not exist: some agents create it only with the first answer.
const ABSENT: Duration = Duration::from_secs(5);
/// How often to look for the file of a session that is known by its id.
const SEARCH: Duration = Duration::from_millis(500);
/// How old a half-written name must be before it is deleted.
const ABANDONED: Duration = Duration::from_secs(60);
/// How deep a file may be in an agent's folder: some agents use folders for year, month and day.
const DEEPEST: usize = 4;
/// The longest name.
const NAME: u64 = 64 << 10;
/// How long the log may get before a new one is started. One old log is kept.
const LOG: u64 = 128 << 10;
/// The prefix of a name's file.
const PREFIX: &str = "named-";
/// The extension of a name's file while the session file is being imported.
const TAKEN: &str = "taken";

/// The queue of names reported by hooks.
#[derive(Clone, Debug)]
pub struct Queue {
    folder: PathBuf,
}

/// A worker's exclusive access to the queue.
#[derive(Debug)]
pub struct Work {
    queue: Queue,
    _lock: File,
    waiting: BTreeMap<PathBuf, Waiting>,
    /// The names whose files were returned last.
    taken: Vec<PathBuf>,
}

/// A name that waits for its file to be complete.
#[derive(Debug)]
struct Waiting {
    /// The stamp of the name's file, to detect that a hook has named it again.
    left: Option<Stamp>,
    format: String,
    named: Named,
    first: Instant,
    since: Instant,
    file: Option<PathBuf>,
    searched: Option<Instant>,
    seen: Option<Stamp>,
    unchanged: Instant,
}

/// What to do about a name.
enum Turn {
    Wait,
    Take(PathBuf),
    Leave(String),
}

impl Queue {
    /// Returns the queue in a user's state folder, which need not exist.
    pub fn of(state: &Path) -> Self {
        Self { folder: state.join("hooks") }
    }

    /// Returns the path of the log.
    pub fn log_path(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Adds what an agent of this format has named.
    pub fn add(&self, format: &str, named: &Named) -> io::Result<()> {
        self.make()?;
        let (kind, name) = match named {
            Named::File(path) => ("file", path.as_os_str().as_bytes()),
            Named::Session(id) => ("session", id.as_bytes()),
        };
        let text = [format.as_bytes(), kind.as_bytes(), name].join(&b' ');
        if text.len() as u64 > NAME {
            return Err(io::Error::new(ErrorKind::InvalidInput, "the name is too long"));
        }
        // Equal names have the same file, so each waits only once.
        let path = self.folder.join(format!("{PREFIX}{:.32}", LineId::of(&text).to_string()));
        let fresh = path.with_extension(std::process::id().to_string());
        let _ = fs::remove_file(&fresh);
        disk::make(&fresh)?.write_all(&text)?;
        fs::rename(&fresh, &path)
    }

    /// Takes the queue's lock to work on it. Returns nothing if another program has it.
    pub fn work(&self) -> io::Result<Option<Work>> {
        self.make()?;
        let lock = self.folder.join("lock");
        let Some(lock) = Kernel.lock(&lock, IfHeld::GiveUp)? else { return Ok(None) };
        // A hook that was killed while writing leaves a half-written name.
        let is_half = |name: &Path| name.extension().is_some_and(|end| end != TAKEN);
        for half in self.files(is_half)? {
            let written = fs::metadata(&half).and_then(|meta| meta.modified());
            let age = written.map(|written| written.elapsed().unwrap_or_default());
            if age.is_ok_and(|age| age > ABANDONED) {
                forget(&half)?;
            }
        }
        // Names that another worker failed to import, or was killed over, wait again.
        for taken in self.files(|name| name.extension().is_some_and(|end| end == TAKEN))? {
            fs::rename(&taken, taken.with_extension(""))?;
        }
        let (waiting, taken) = (BTreeMap::new(), Vec::new());
        Ok(Some(Work { queue: self.clone(), _lock: lock, waiting, taken }))
    }

    /// Returns true if no name is waiting.
    pub fn is_empty(&self) -> bool {
        self.names().is_ok_and(|names| names.is_empty())
    }

    /// Writes to the log what was done about a name.
    pub fn log(&self, line: &str) -> io::Result<()> {
        self.make()?;
        let path = self.log_path();
        let is_full = fs::symlink_metadata(&path).is_ok_and(|meta| meta.len() > LOG);
        if is_full {
            fs::rename(&path, path.with_extension("1"))?;
        }
        let line: String = line.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        disk::append(&path, format!("{line}\n").as_bytes())
    }

    fn make(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)
    }

    /// Returns the files of the waiting names.
    fn names(&self) -> io::Result<Vec<PathBuf>> {
        self.files(|name| name.extension().is_none())
    }

    /// Returns the names' files that `is_meant` accepts.
    fn files(&self, is_meant: impl Fn(&Path) -> bool) -> io::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for found in fs::read_dir(&self.folder)? {
            let (name, path) = found.map(|found| (found.file_name(), found.path()))?;
            let is_name = name.to_str().is_some_and(|name| name.starts_with(PREFIX));
            files.extend((is_name && is_meant(&path)).then_some(path));
        }
        Ok(files)
    }
}

impl Work {
    /// Waits until named files are complete and returns them, each preceded by the folder of its session's sub-agents; returns
    /// none if no name is waiting. The names are kept until [`Work::done`] reports that the files were imported. `folders`
    /// returns the agents' folders, which may change while waiting. `left` is called for each name that leads to no file.
    pub fn next(
        &mut self,
        folders: &dyn Fn() -> Vec<AgentFolder>,
        left: &mut dyn FnMut(&str),
    ) -> io::Result<Vec<PathBuf>> {
        self.taken.clear();
        loop {
            for name in self.queue.names()? {
                let is_known = |waiting: &Waiting| waiting.left == look(&name);
                let known = self.waiting.get(&name);
                if !known.is_some_and(is_known) {
                    let first = known.map_or_else(Instant::now, |known| known.first);
                    self.waiting.insert(name.clone(), Waiting::of(&name, first));
                }
            }
            if self.waiting.is_empty() {
                return Ok(Vec::new());
            }
            let mut whole = Vec::new();
            let folders = folders();
            for (name, mut waiting) in std::mem::take(&mut self.waiting) {
                let taken = name.with_extension(TAKEN);
                match waiting.turn(&folders) {
                    Turn::Take(file) if waiting.release(&name)? => {
                        whole.extend(waiting.sub_agents(&file));
                        whole.push(file);
                        self.taken.push(taken);
                    }
                    Turn::Leave(why) if waiting.release(&name)? => {
                        forget(&taken)?;
                        left(&why);
                    }
                    _ => {
                        self.waiting.insert(name, waiting);
                    }
                }
            }
            if !whole.is_empty() {
                return Ok(whole);
            }
            thread::sleep(TICK);
        }
    }

    /// Puts the names of the last returned files back into the queue, because the import failed.
    pub fn again(&mut self) -> io::Result<()> {
        let mut taken = std::mem::take(&mut self.taken).into_iter();
        taken.try_for_each(|taken| fs::rename(&taken, taken.with_extension("")))
    }

    /// Deletes the names of the last returned files, which were imported.
    pub fn done(&mut self) -> io::Result<()> {
        std::mem::take(&mut self.taken).iter().try_for_each(|taken| forget(taken))
    }
}

/// Deletes the file of a name.
fn forget(name: &Path) -> io::Result<()> {
    match fs::remove_file(name) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

impl Waiting {
    /// Reads a name. An unreadable name leads to no file.
    fn of(name: &Path, first: Instant) -> Self {
        let left = look(name);
        let text = disk::open(name, Links::Refuse).and_then(|file| disk::whole(file, NAME));
        let text = text.unwrap_or_default();
        let mut parts = text.splitn(3, |&byte| byte == b' ');
        let mut part = || parts.next().unwrap_or_default();
        let (format, kind, name) = (part(), part(), part());
        let named = match kind {
            b"session" => Named::Session(String::from_utf8_lossy(name).into_owned()),
            _ => Named::File(OsStr::from_bytes(name).into()),
        };
        let format = String::from_utf8_lossy(format).into_owned();
        let now = Instant::now();
        let (file, searched, seen) = (None, None, None);
        Self { left, format, named, first, since: now, file, searched, seen, unchanged: now }
    }

    /// Marks the name as taken before its file is read. Returns false if a hook has written the name again meanwhile; then it
    /// waits like a new one.
    fn release(&mut self, name: &Path) -> io::Result<bool> {
        let taken = name.with_extension(TAKEN);
        let renamed = disk::found(fs::rename(name, &taken))?;
        let left = look(&taken);
        if renamed.is_none() || left == self.left {
            return Ok(true);
        }
        fs::rename(&taken, name)?;
        let now = Instant::now();
        (self.left, self.since, self.unchanged) = (left, now, now);
        Ok(false)
    }

    /// Looks at the file again.
    fn turn(&mut self, folders: &[AgentFolder]) -> Turn {
        let folders = folders.iter().filter(|folder| folder.format == self.format);
        let folders: Vec<PathBuf> =
            folders.filter_map(|folder| folder.path.canonicalize().ok()).collect();
        if self.file.is_none() {
            match self.find(&folders) {
                Ok(found) => self.file = found,
                Err(why) => return Turn::Leave(why),
            }
        }
        let seen = self.file.as_deref().and_then(look);
        let now = Instant::now();
        if self.seen != seen {
            (self.seen, self.unchanged) = (seen, now);
        }
        let [age, waited] = [self.since, self.first].map(|at| now.duration_since(at));
        match (&self.file, seen) {
            (Some(file), Some(_))
                if now.duration_since(self.unchanged) >= QUIET || waited >= LONGEST =>
            {
                Turn::Take(file.clone())
            }
            (_, None) if age >= ABSENT => {
                Turn::Leave(format!("{}: the file does not exist yet", self.name()))
            }
            _ => Turn::Wait,
        }
    }

    /// Finds the named file, if it exists.
    fn find(&mut self, folders: &[PathBuf]) -> Result<Option<PathBuf>, String> {
        match &self.named {
            Named::File(path) => {
                let Ok(file) = path.canonicalize() else { return Ok(None) };
                if !folders.iter().any(|folder| file.starts_with(folder)) {
                    return Err(format!("{}: it is outside the agent's folders", self.name()));
                }
                match disk::open(&file, Links::Refuse) {
                    Ok(_) => Ok(Some(file)),
                    Err(error) => Err(format!("{}: {error}", self.name())),
                }
            }
            Named::Session(id) => {
                let now = Instant::now();
                if self.searched.is_some_and(|last| now.duration_since(last) < SEARCH) {
                    return Ok(None);
                }
                self.searched = Some(now);
                let Some(format) = wire::by_name(&self.format) else { return Ok(None) };
                let mut found = Vec::new();
                for folder in folders {
                    search(folder, DEEPEST, &|file| format.is_file_of(file, id), &mut found);
                }
                // Of several files the agent reads the newest, which has the greatest name. An import finds the others from
                // there.
                Ok(found.into_iter().max_by(|one, other| one.file_name().cmp(&other.file_name())))
            }
        }
    }

    /// Returns the folder of sub-agents of a file's session, if it exists and is reached through no link.
    fn sub_agents(&self, file: &Path) -> Option<PathBuf> {
        let folder = wire::by_name(&self.format)?.sub_agents(file)?;
        let is_there = folder.is_dir() && folder.canonicalize().is_ok_and(|real| real == folder);
        is_there.then_some(folder)
    }

    /// Returns what was named, for messages.
    fn name(&self) -> String {
        match &self.named {
            Named::File(path) => path.display().to_string(),
            Named::Session(id) => format!("{} session {id}", self.format),
        }
    }
}

/// Returns the stamp of a file, if it can be looked at.
fn look(file: &Path) -> Option<Stamp> {
    Stamp::at(file).ok().flatten()
}

/// Finds files below a folder. Links are not followed.
fn search(folder: &Path, depth: usize, is_it: &dyn Fn(&Path) -> bool, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let path = entry.path();
        if kind.is_dir() && depth > 0 {
            search(&path, depth - 1, is_it, found);
        } else if kind.is_file() && is_it(&path) {
            found.push(path);
        }
    }
}
