//! Watching: which files below some folders appeared, changed or disappeared since the last look.
//!
//! Only a look decides. The system's events say where to look, and how soon; where the system reports no events, or not for all
//! folders, everything is checked periodically.
//!
//! ```text
//! an event     "something happened at /a/b"    \
//! a root       appears, or is another folder    > look: compare names and stamps with the last look -> Changes
//! a timer      has expired: everything         /
//! ```
//!
//! Invariant: links are never followed, no file is opened, and at most [`MOST`] files and folders are known.
//!
//! Invariant: a root that disappears, or is replaced, does not count as deleting its files: its disk may only be unmounted.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs::{self, Metadata},
    io,
    ops::Bound,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::disk::{Stamp, events::Events, is_absent, is_made_up_folder};

/// The maximum number of known files and folders: a user's folder may contain any number.
const MOST: usize = 1_000_000;
/// How often to check everything if the system reports events for all folders.
const SELDOM: Duration = Duration::from_secs(300);
/// The bounds for how often to check everything otherwise.
const OFTEN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// The check then takes at most this fraction of the time: one part in 300.
const PART: u32 = 300;

/// The files that appeared or changed, and those that disappeared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Files that appeared or changed.
    pub changed: BTreeSet<PathBuf>,
    /// Files that disappeared.
    pub gone: BTreeSet<PathBuf>,
}

impl Changes {
    /// Returns true if nothing changed.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.gone.is_empty()
    }

    /// Adds later changes.
    pub fn extend(&mut self, later: Self) {
        later.changed.into_iter().for_each(|path| self.came(path));
        later.gone.into_iter().for_each(|path| self.went(path));
    }

    /// Removes and returns the first `n` of them.
    #[must_use]
    pub fn first(&mut self, n: usize) -> Self {
        let mut first = Self::default();
        while first.changed.len() + first.gone.len() < n {
            if let Some(path) = self.changed.pop_first() {
                first.changed.insert(path);
            } else if let Some(path) = self.gone.pop_first() {
                first.gone.insert(path);
            } else {
                break;
            }
        }
        first
    }

    fn came(&mut self, path: PathBuf) {
        self.gone.remove(&path);
        self.changed.insert(path);
    }

    fn went(&mut self, path: PathBuf) {
        self.changed.remove(&path);
        self.gone.insert(path);
    }
}

/// What a name in a folder refers to. The value differs whenever the file or folder changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Folder { device: u64, inode: u64 },
    File { stamp: Stamp, changed: (i64, i64) },
}

impl Known {
    fn of(meta: &Metadata) -> Option<Self> {
        let file =
            || Self::File { stamp: Stamp::from(meta), changed: (meta.ctime(), meta.ctime_nsec()) };
        let folder = || Self::Folder { device: meta.dev(), inode: meta.ino() };
        if meta.is_dir() { Some(folder()) } else { meta.is_file().then(file) }
    }

    /// Returns what is at a path, if it is a file or a folder.
    fn at(path: &Path) -> io::Result<Option<Self>> {
        found(fs::symlink_metadata(path))
    }
}

/// Converts metadata; none if nothing is there, or if it is neither a file nor a folder.
fn found(meta: io::Result<Metadata>) -> io::Result<Option<Known>> {
    match meta {
        Err(error) if is_absent(&error) => Ok(None),
        meta => Ok(Known::of(&meta?)),
    }
}

/// Which folders in a folder are looked at too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    New,
    All,
}

/// Folders that are watched, with all below them.
pub struct Watch {
    roots: BTreeMap<PathBuf, Known>,
    folders: BTreeMap<PathBuf, BTreeMap<OsString, Known>>,
    known: usize,
    except: Option<PathBuf>,
    events: Events,
    /// When to check everything.
    due: Instant,
}

impl Watch {
    /// Watches nothing yet, and never what is in the folder `except`; the system is asked to tell what happens.
    pub fn new(except: Option<PathBuf>) -> Self {
        Self { events: Events::new(), ..Self::polling(except) }
    }

    /// Watches as `new` does, but looks for itself.
    pub fn polling(except: Option<PathBuf>) -> Self {
        let events = Events::none();
        let (roots, folders) = (BTreeMap::new(), BTreeMap::new());
        Self { roots, folders, known: 0, except, events, due: Instant::now() + SELDOM }
    }

    /// Returns why the system does not report events for all folders, if it was asked to.
    pub fn problem(&self) -> Option<&str> {
        self.events.problem()
    }

    /// Watches exactly these folders from now on. All files in new folders are reported as new.
    pub fn follow(&mut self, folders: &[PathBuf]) -> Changes {
        let real = folders.iter().filter_map(|folder| folder.canonicalize().ok());
        let found = real.filter_map(|path| Some((Known::at(&path).ok()??, path)));
        let all: BTreeMap<PathBuf, Known> = found.map(|(known, path)| (path, known)).collect();
        let is_within =
            |path: &PathBuf| path.ancestors().skip(1).any(|above| all.contains_key(above));
        let wanted: BTreeMap<PathBuf, Known> = all
            .iter()
            .filter(|(path, known)| matches!(known, Known::Folder { .. }) && !is_within(path))
            .map(|(path, known)| (path.clone(), *known))
            .collect();
        let mut changes = Changes::default();
        if wanted == self.roots {
            return changes;
        }
        let before = std::mem::replace(&mut self.roots, wanted.clone());
        for (root, known) in &before {
            if wanted.get(root) != Some(known) {
                self.forget(root, &mut Changes::default());
            }
        }
        for (root, known) in &wanted {
            if before.get(root) != Some(known) {
                self.look_in(root, Depth::New, &mut changes);
            }
        }
        self.due = Instant::now() + self.pause(Duration::ZERO);
        changes
    }

    /// Waits for changes up to `limit`, and once something happens, for `moment` more, so that related events are included.
    pub fn wait(&mut self, limit: Duration, moment: Duration) -> Changes {
        let left = self.due.saturating_duration_since(Instant::now());
        let heard = self.events.wait(limit.min(left), moment);
        if heard.anywhere || self.due <= Instant::now() {
            return self.look_everywhere();
        }
        let mut changes = Changes::default();
        heard.paths.iter().for_each(|path| self.look_at(path, &mut changes));
        changes
    }

    fn look_everywhere(&mut self) -> Changes {
        let mut changes = Changes::default();
        let begun = Instant::now();
        for root in self.roots.clone().into_keys() {
            self.look_in(&root, Depth::All, &mut changes);
        }
        self.due = Instant::now() + self.pause(begun.elapsed());
        changes
    }

    /// Returns how long to wait before the next check of everything, given how long the last one took.
    fn pause(&self, takes: Duration) -> Duration {
        let (least, most) = OFTEN;
        if self.events.are_told() { SELDOM } else { (takes * PART).clamp(least, most) }
    }

    /// Looks at a file or folder that the system reported.
    fn look_at(&mut self, path: &Path, changes: &mut Changes) {
        // If it cannot be read now, keep what is known.
        let Ok(there) = Known::at(path) else { return };
        if self.folders.contains_key(path) && matches!(there, Some(Known::Folder { .. })) {
            // It may have been deleted and recreated as the same inode, and then its watch is lost.
            self.events.listen(path, self.roots.contains_key(path));
            self.look_in(path, Depth::New, changes);
        }
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return };
        if self.folders.contains_key(folder)
            && let Some(new) = self.compare(folder, name.to_owned(), there, changes)
        {
            self.look_in(&new, Depth::New, changes);
        }
    }

    /// Looks at all names in a folder, and in folders in it.
    fn look_in(&mut self, folder: &Path, depth: Depth, changes: &mut Changes) {
        let mut ahead = vec![folder.to_owned()];
        while let Some(folder) = ahead.pop() {
            let root = self.roots.get(&folder).copied();
            let is_new = !self.folders.contains_key(&folder);
            // Changes to a root itself are handled by `follow`.
            if root.is_some_and(|root| Known::at(&folder).ok().flatten() != Some(root))
                || self.except.as_ref() == Some(&folder)
                || (is_new && is_made_up_folder(&folder))
            {
                continue;
            }
            // The system tells of the folder before it is looked at, so that nothing happens in between.
            if is_new || depth == Depth::All {
                self.events.listen(&folder, root.is_some());
            }
            let none = BTreeMap::new();
            let before = self.folders.get(&folder).unwrap_or(&none);
            let Some(mut there) = names(&folder, before) else { continue };
            let before = self.folders.entry(folder.clone()).or_default();
            let missing: Vec<OsString> =
                before.keys().filter(|name| !there.contains_key(*name)).cloned().collect();
            let deeper: Vec<PathBuf> = there
                .iter()
                .filter(|(name, known)| depth == Depth::All && before.get(*name) == Some(known))
                .filter(|(_, known)| matches!(known, Known::Folder { .. }))
                .map(|(name, _)| folder.join(name))
                .collect();
            there.retain(|name, known| before.get(name) != Some(known));
            ahead.extend(deeper);
            for name in missing {
                self.compare(&folder, name, None, changes);
            }
            for (name, known) in there {
                ahead.extend(self.compare(&folder, name, Some(known), changes));
            }
        }
    }

    /// Compares a name in a known folder with what is known about it. Returns the folder if it is new.
    fn compare(
        &mut self,
        folder: &Path,
        name: OsString,
        there: Option<Known>,
        changes: &mut Changes,
    ) -> Option<PathBuf> {
        let path = folder.join(&name);
        let names = self.folders.get_mut(folder)?;
        let before = names.get(&name).copied();
        if before == there {
            return None;
        }
        let is_full = before.is_none() && self.known >= MOST;
        match there.filter(|_| !is_full) {
            Some(known) => names.insert(name, known),
            None => names.remove(&name),
        };
        self.known += usize::from(there.is_some() && !is_full);
        self.known -= usize::from(before.is_some());
        match before {
            Some(Known::Folder { .. }) => self.forget(&path, changes),
            Some(Known::File { .. }) => changes.went(path.clone()),
            None => {}
        }
        match there.filter(|_| !is_full)? {
            Known::Folder { .. } => Some(path),
            Known::File { .. } => {
                changes.came(path);
                None
            }
        }
    }

    /// Forgets a folder and everything below it, and reports its files as gone.
    fn forget(&mut self, folder: &Path, changes: &mut Changes) {
        let behind = self.folders.range::<Path, _>((Bound::Included(folder), Bound::Unbounded));
        let below = behind.map(|(path, _)| path).take_while(|path| path.starts_with(folder));
        for folder in below.cloned().collect::<Vec<_>>() {
            let names = self.folders.remove(&folder).unwrap_or_default();
            self.known -= names.len();
            for (name, known) in names {
                if matches!(known, Known::File { .. }) {
                    changes.went(folder.join(name));
                }
            }
        }
    }
}

/// Returns the files and folders in a folder by name; none if the folder cannot be read now. A name that cannot be read keeps
/// what is known about it.
fn names(folder: &Path, before: &BTreeMap<OsString, Known>) -> Option<BTreeMap<OsString, Known>> {
    let children = match fs::read_dir(folder) {
        Ok(children) => children,
        Err(error) if is_absent(&error) => return Some(BTreeMap::new()),
        Err(_) => return None,
    };
    let mut names = BTreeMap::new();
    for child in children {
        let child = child.ok()?;
        let name = child.file_name();
        // This is the metadata of the name itself: links are not followed.
        let known = found(child.metadata()).unwrap_or_else(|_| before.get(&name).copied());
        names.extend(known.map(|known| (name, known)));
    }
    Some(names)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test writes what is looked at then")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Returns the names below a folder.
    fn below(folder: &Path, paths: &BTreeSet<PathBuf>) -> Vec<String> {
        let name = |path: &PathBuf| path.strip_prefix(folder).unwrap().display().to_string();
        paths.iter().map(name).collect()
    }

    #[test]
    fn a_look_finds_what_came_changed_and_went() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let write = |name: &str, text: &str| {
            let path = home.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("a/deep/er/one", "1");
        write("b/two", "2");
        write("store/db", "");
        symlink(&home, home.join("a/loop")).unwrap();
        symlink("one", home.join("a/link")).unwrap();
        let mut watch = Watch::polling(Some(home.join("store")));
        let roots = ["a", "b", "a/deep", "store", "missing"].map(|name| home.join(name));
        let changes = watch.follow(&roots);
        assert_eq!(below(&home, &changes.changed), ["a/deep/er/one", "b/two"]);
        assert!(changes.gone.is_empty());
        assert!(watch.follow(&roots).is_empty() && watch.look_everywhere().is_empty());
        let mut check = |changed: &[&str], gone: &[&str]| {
            let changes = watch.look_everywhere();
            assert_eq!(below(&home, &changes.changed), changed);
            assert_eq!(below(&home, &changes.gone), gone);
        };

        write("a/deep/er/one", "11");
        write("a/new/er/three", "3");
        check(&["a/deep/er/one", "a/new/er/three"], &[]);
        fs::remove_file(home.join("b/two")).unwrap();
        fs::remove_dir_all(home.join("a/new")).unwrap();
        check(&[], &["a/new/er/three", "b/two"]);
        write("a/new", "a file now");
        fs::rename(home.join("a/deep"), home.join("a/other")).unwrap();
        check(&["a/new", "a/other/er/one"], &["a/deep/er/one"]);
        check(&[], &[]);

        // A root that is away says nothing of its files, and all of them came once it is back.
        fs::rename(home.join("a"), home.join("away")).unwrap();
        check(&[], &[]);
        assert!(watch.follow(&roots).is_empty());
        fs::rename(home.join("away"), home.join("a")).unwrap();
        let back = watch.follow(&roots);
        assert_eq!(below(&home, &back.changed), ["a/new", "a/other/er/one"]);
        assert_eq!(watch.known, 4);
    }

    #[test]
    fn what_the_system_tells_is_looked_at() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        fs::create_dir(home.join("a")).unwrap();
        let mut watch = Watch::new(None);
        if let Some(problem) = watch.problem() {
            eprintln!("skipped: {problem}");
            return;
        }
        assert!(watch.follow(&[home.join("a")]).is_empty());
        let mut all = Changes::default();
        let mut until = |is_enough: &dyn Fn(&Changes) -> bool| {
            while !is_enough(&all) {
                all.extend(watch.wait(Duration::from_secs(60), Duration::from_millis(10)));
            }
        };
        let path = home.join("a/b/c/file");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "1").unwrap();
        until(&|all| all.changed.contains(&path));
        // A folder that goes and comes at once is followed too.
        fs::remove_dir_all(home.join("a/b")).unwrap();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        until(&|all| all.gone.contains(&path));
        fs::write(&path, "2").unwrap();
        until(&|all| all.changed.contains(&path));
    }

    #[test]
    fn the_last_of_several_changes_counts() {
        let changes = |changed: &[&str], gone: &[&str]| {
            let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect();
            Changes { changed: paths(changed), gone: paths(gone) }
        };
        let mut all = changes(&["a", "b"], &["c"]);
        all.extend(changes(&["c"], &["a"]));
        assert_eq!(all, changes(&["b", "c"], &["a"]));
        assert_eq!(all.first(1), changes(&["b"], &[]));
        assert_eq!(all.first(9), changes(&["c"], &["a"]));
        assert!(all.is_empty() && all.first(1).is_empty());
    }
}
