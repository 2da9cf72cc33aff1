//! What hooks of agents have named and nobody has taken in yet: a queue in the user's own state folder, a small file for
//! each name.
//!
//! ```text
//! hook     adds the name, starts a worker, and exits: the agent does not wait
//! worker   takes the queue's lock, or ends if another one has it
//!          takes the names, waits until their files are whole, has them taken in, until there are no more names
//!          gives the lock back, and begins again if a name came meanwhile
//!
//! named-1a2b         waits
//! named-1a2b.taken   its file is being taken in; what is left of such names is taken in by the next worker
//! ```
//!
//! So one worker takes in whatever is named, however often, and no name that comes as it ends is left. What cannot be imported
//! now, because the disk is full or the store is locked, waits again, and the worker retries until it succeeds.
//!
//! A file is whole once it did not change for a while: an agent may write a turn's end after it has told of it. What
//! is named is data: a file is taken in if it is in the folders of the agent that named it, and only then.

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
    disk::{self, Disk, Kernel, Links, Stamp},
    intake::folders::AgentFolder,
    model::LineId,
    wire::{self, Named},
};

/// How often a file is looked at.
const TICK: Duration = Duration::from_millis(50);
/// How long a file must not change.
const QUIET: Duration = Duration::from_millis(400);
/// How long a file that changes all the time is waited for.
const LONGEST: Duration = Duration::from_secs(10);
/// How long a file that is not there is waited for: an agent begins it only with the first answer.
const ABSENT: Duration = Duration::from_secs(5);
/// How often the file of a session that is known by its id is looked for.
const SEARCH: Duration = Duration::from_millis(500);
/// How old a name is that is half written and that nobody writes any more.
const ABANDONED: Duration = Duration::from_secs(60);
/// How deep below an agent's folder a file may lie: folders of years, months and days are above some.
const DEEPEST: usize = 4;
/// The longest name.
const NAME: u64 = 64 << 10;
/// How long the log may become before it begins again; the one before it is kept.
const LOG: u64 = 128 << 10;
/// How the file of a name begins.
const PREFIX: &str = "named-";
/// How the file of a name ends whose own file is being taken in.
const TAKEN: &str = "taken";

/// The names that hooks left.
#[derive(Clone, Debug)]
pub struct Queue {
    folder: PathBuf,
}

/// The worker's hold on the queue.
#[derive(Debug)]
pub struct Work {
    queue: Queue,
    _lock: File,
    waiting: BTreeMap<PathBuf, Waiting>,
    /// The names whose files were returned last.
    taken: Vec<PathBuf>,
}

/// A name that waits for its file to be whole.
#[derive(Debug)]
struct Waiting {
    /// What tells when the name was left last.
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

/// What is to be done about a name.
enum Turn {
    Wait,
    Take(PathBuf),
    Leave(String),
}

impl Queue {
    /// Returns the queue in a user's state folder, which need not be there.
    pub fn of(state: &Path) -> Self {
        Self { folder: state.join("hooks") }
    }

    /// Returns where it is told what became of the names.
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
        // The same name is the same file, so that it waits once.
        let path = self.folder.join(format!("{PREFIX}{:.32}", LineId::of(&text).to_string()));
        let fresh = path.with_extension(std::process::id().to_string());
        let _ = fs::remove_file(&fresh);
        disk::make(&fresh)?.write_all(&text)?;
        fs::rename(&fresh, &path)
    }

    /// Takes the queue to work on it, unless another program does.
    pub fn work(&self) -> io::Result<Option<Work>> {
        self.make()?;
        let Some(lock) = Kernel.lock(&self.folder.join("lock"), false)? else { return Ok(None) };
        // A hook that was killed as it wrote a name left it half written.
        let is_half = |name: &Path| name.extension().is_some_and(|end| end != TAKEN);
        for half in self.files(is_half)? {
            let written = fs::metadata(&half).and_then(|meta| meta.modified());
            let age = written.map(|written| written.elapsed().unwrap_or_default());
            if age.is_ok_and(|age| age > ABANDONED) {
                forget(&half)?;
            }
        }
        // What another worker could not take in, or was killed over, waits again.
        for taken in self.files(|name| name.extension().is_some_and(|end| end == TAKEN))? {
            fs::rename(&taken, taken.with_extension(""))?;
        }
        let (waiting, taken) = (BTreeMap::new(), Vec::new());
        Ok(Some(Work { queue: self.clone(), _lock: lock, waiting, taken }))
    }

    /// Returns whether nothing is named.
    pub fn is_empty(&self) -> bool {
        self.names().is_ok_and(|names| names.is_empty())
    }

    /// Tells in the log what became of a name.
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

    /// Returns the files of the names that wait.
    fn names(&self) -> io::Result<Vec<PathBuf>> {
        self.files(|name| name.extension().is_none())
    }

    /// Returns those files of names that are meant.
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
    /// Waits until files that were named are whole and returns them, each with the folder of its session's sub-agents; none if
    /// nothing is named. Their names are kept until [`Work::done`] is told that they were taken in. `folders` tells those of agents,
    /// which may come meanwhile; `left` is told of each name that leads to no file.
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

    /// Has the names of the files that were returned last wait again, because these could not be imported.
    pub fn again(&mut self) -> io::Result<()> {
        let mut taken = std::mem::take(&mut self.taken).into_iter();
        taken.try_for_each(|taken| fs::rename(&taken, taken.with_extension("")))
    }

    /// Forgets the names of the files that were returned last, which were taken in.
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
    /// Reads a name; one that cannot be read leads nowhere.
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

    /// Sets the name aside, before its file is read; returns false if the name was left again meanwhile, which is waited for
    /// as a new one.
    fn release(&mut self, name: &Path) -> io::Result<bool> {
        let taken = name.with_extension(TAKEN);
        match fs::rename(name, &taken) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
            renamed => renamed?,
        }
        let left = look(&taken);
        if left == self.left {
            return Ok(true);
        }
        fs::rename(&taken, name)?;
        let now = Instant::now();
        (self.left, self.since, self.unchanged) = (left, now, now);
        Ok(false)
    }

    /// Looks at the file once more.
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

    /// Finds the file, if it is there.
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
                // Of several the agent reads the newest, whose name says so; an import finds the others from there.
                Ok(found.into_iter().max_by(|one, other| one.file_name().cmp(&other.file_name())))
            }
        }
    }

    /// Returns the folder of the sub-agents of a file's session, if it is there and no link leads elsewhere.
    fn sub_agents(&self, file: &Path) -> Option<PathBuf> {
        let folder = wire::by_name(&self.format)?.sub_agents(file)?;
        let is_there = folder.is_dir() && folder.canonicalize().is_ok_and(|real| real == folder);
        is_there.then_some(folder)
    }

    /// Returns what was named, as it is told.
    fn name(&self) -> String {
        match &self.named {
            Named::File(path) => path.display().to_string(),
            Named::Session(id) => format!("{} session {id}", self.format),
        }
    }
}

/// Returns what tells whether a file has changed, if it can be looked at.
fn look(file: &Path) -> Option<Stamp> {
    Stamp::at(file).ok().flatten()
}

/// Finds files below a folder; links are not followed.
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
