//! An agent's own index of its sessions, which names the file of each session. Codex keeps one, in databases.
//!
//! ```text
//! state_5.sqlite            threads {id, rollout_path}                      the file of each thread
//! thread_history_1.sqlite   thread_history_projection_state                 how far its list of turns has read each file
//!                             {thread_id, next_rollout_byte_offset}
//! thread-writer-locks/      <thread>.lock                                   locked while a process has the thread loaded
//!                           .coordination.lock                              locked while another lock is being taken
//! ```
//!
//! Invariant: only the file of one thread is ever changed, and only if the index still names the file that the caller knows.
//! Invariant: nothing that a database defines is executed, and no query is unlimited in time or space: anyone may have written
//! the database.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    os::unix::fs::DirEntryExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use rusqlite::{Connection, OpenFlags, OptionalExtension, config::DbConfig, limits::Limit};

use crate::disk::{self, Disk, IfHeld, Links};

/// How long to wait for another program to release the index or a lock, and how long to sleep between attempts.
const PATIENCE: Duration = Duration::from_secs(5);
const A_WHILE: Duration = Duration::from_millis(20);
/// Maximum length of a value or a row, and of a `LIKE` pattern, which can take exponential time.
const LIMITS: [(Limit, i32); 2] =
    [(Limit::SQLITE_LIMIT_LENGTH, 16 << 20), (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100)];
/// The maximum number of SQLite VM instructions of a query. A scan of a million rows takes a tenth of it.
const INSTRUCTIONS: i32 = 100_000_000;
/// The features of a database that are disabled.
const OFF: [DbConfig; 4] = [
    DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER,
    DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW,
    DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY,
    DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA,
];
/// The folder of the locks.
const LOCKS: &str = "thread-writer-locks";

/// The index in an agent's folder.
#[derive(Clone, Debug)]
pub struct Index {
    folder: PathBuf,
}

/// Keeps the agent from loading a session while it exists.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
    disk: Arc<dyn Disk>,
}

/// The outcome of locking a session.
#[derive(Debug)]
pub enum Locking {
    /// The agent never loaded a session here, so there is nothing to lock.
    Unknown,
    /// It is locked.
    Taken(Lock),
    /// A process has it loaded, or is blocking all other locks; this is the path of the lock.
    Held(PathBuf),
}

impl Index {
    /// Returns the index in a folder, which may be missing.
    pub fn of(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Returns the file that the agent reads for a session; none if the index does not have the session.
    pub fn file(&self, session: &str) -> io::Result<Option<PathBuf>> {
        let Some(index) = self.open("state_", OpenFlags::SQLITE_OPEN_READ_ONLY)? else {
            return Ok(None);
        };
        Ok(path_of(&index, session)?.map(PathBuf::from))
    }

    /// Returns the offset up to which the agent's list of turns has read the file with this id.
    pub fn listed(&self, file: &str) -> io::Result<u64> {
        let Some(list) = self.open("thread_history_", OpenFlags::SQLITE_OPEN_READ_ONLY)? else {
            return Ok(0);
        };
        let read = list.query_row(
            "SELECT next_rollout_byte_offset FROM thread_history_projection_state WHERE thread_id = ?1",
            [file],
            |row| row.get(0),
        );
        Ok(read.optional().map_err(io::Error::other)?.unwrap_or(0))
    }

    /// Changes the file of a session, if the index still names the one that the caller knows. Returns true if it names the other
    /// file now, or does not have the session.
    pub fn exchange(&self, session: &str, from: &Path, to: &Path) -> io::Result<bool> {
        let Some(index) = self.open("state_", OpenFlags::SQLITE_OPEN_READ_WRITE)? else {
            return Ok(true);
        };
        let Some(held) = path_of(&index, session)? else { return Ok(true) };
        if is_same(Path::new(&held), to) {
            return Ok(true);
        }
        if !is_same(Path::new(&held), from) {
            return Ok(false);
        }
        let named = self.named(Path::new(&held), to);
        // A path in another spelling would be another file.
        let named = named.to_str().ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "the agent's index keeps paths as text, and this path is not valid UTF-8",
            )
        })?;
        let changed = index.execute(
            "UPDATE threads SET rollout_path = ?1 WHERE id = ?2 AND rollout_path = ?3",
            (named, session, &held),
        );
        Ok(changed.map_err(io::Error::other)? == 1)
    }

    /// Locks a session in the same way as the agent does while the session is loaded.
    pub fn lock(&self, disk: &Arc<dyn Disk>, session: &str) -> io::Result<Locking> {
        let folder = self.folder.join(LOCKS);
        let is_plain = session.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        let is_folder = match fs::symlink_metadata(&folder) {
            Err(error) if disk::is_absent(&error) => false,
            meta => meta?.is_dir(),
        };
        if !is_plain || !is_folder {
            return Ok(Locking::Unknown);
        }
        let others = coordination(&folder);
        let until = Instant::now() + PATIENCE;
        let _others = loop {
            match disk.lock(&others, IfHeld::GiveUp)? {
                Some(lock) => break lock,
                None if Instant::now() < until => thread::sleep(A_WHILE),
                None => return Ok(Locking::Held(others)),
            }
        };
        let path = self.lock_of(session);
        Ok(match disk.lock(&path, IfHeld::GiveUp)? {
            Some(file) => Locking::Taken(Lock { file, path, disk: Arc::clone(disk) }),
            None => Locking::Held(path),
        })
    }

    /// Returns the path of the lock file of a session, which need not exist.
    pub fn lock_of(&self, session: &str) -> PathBuf {
        self.folder.join(LOCKS).join(format!("{session}.lock"))
    }

    /// Returns the sessions that processes have loaded, with the process ids. `locks` maps the inode of each locked file to its
    /// process. This takes no lock.
    pub fn held(&self, locks: &BTreeMap<u64, u32>) -> Vec<(String, u32)> {
        let files = fs::read_dir(self.folder.join(LOCKS)).into_iter().flatten().flatten();
        let held = files.filter_map(|file| {
            let name = file.file_name().into_string().ok()?;
            let session = name.strip_suffix(".lock").filter(|name| !name.starts_with('.'))?;
            Some((session.to_owned(), *locks.get(&file.ino())?))
        });
        held.collect()
    }

    /// Returns the path of `file` in the spelling of the index, which is shown by another file of the same folder, `like`.
    fn named(&self, like: &Path, file: &Path) -> PathBuf {
        let Ok(below) = file.strip_prefix(&self.folder) else { return file.to_owned() };
        let same = like.ancestors().find(|above| is_same(above, &self.folder));
        same.map_or_else(|| file.to_owned(), |folder| folder.join(below))
    }

    /// Opens the newest version of a database, if there is one.
    fn open(&self, name: &str, access: OpenFlags) -> io::Result<Option<Connection>> {
        let version = |file: &str| -> Option<u64> {
            file.strip_prefix(name)?.strip_suffix(".sqlite")?.parse().ok()
        };
        let files = match fs::read_dir(&self.folder) {
            Err(error) if disk::is_absent(&error) => return Ok(None),
            files => files?,
        };
        let mut newest = None;
        for file in files {
            let Ok(name) = file?.file_name().into_string() else { continue };
            newest = newest.max(version(&name).map(|version| (version, name)));
        }
        let Some((_, name)) = newest else { return Ok(None) };
        let path = self.folder.join(name);
        drop(disk::open(&path, Links::Refuse)?);
        let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open = || -> rusqlite::Result<Connection> {
            let mut opened = Connection::open_with_flags(&path, flags)?;
            opened.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
            for config in OFF {
                opened.set_db_config(config, false)?;
            }
            for (limit, most) in LIMITS {
                opened.set_limit(limit, most)?;
            }
            opened.progress_handler(INSTRUCTIONS, Some(|| true))?;
            opened.busy_timeout(PATIENCE)?;
            Ok(opened)
        };
        open().map(Some).map_err(io::Error::other)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The agent deletes its lock file in the same way; whoever waits for it first waits for the coordination lock.
        let folder = self.path.parent().unwrap_or(Path::new(""));
        if let Ok(Some(_others)) = self.disk.lock(&coordination(folder), IfHeld::GiveUp) {
            let _ = fs::remove_file(&self.path);
        }
        let _ = self.file.unlock();
    }
}

fn coordination(folder: &Path) -> PathBuf {
    folder.join(".coordination.lock")
}

fn path_of(index: &Connection, session: &str) -> io::Result<Option<String>> {
    let found =
        index.query_row("SELECT rollout_path FROM threads WHERE id = ?1", [session], |row| {
            row.get(0)
        });
    found.optional().map_err(io::Error::other)
}

/// Returns true if two paths lead to the same file.
pub fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    one == other || real(one).is_some_and(|one| Some(one) == real(other))
}

#[cfg(test)]
mod tests {
    use std::{
        ffi::OsStr,
        os::unix::{ffi::OsStrExt, fs::symlink},
    };

    use super::*;
    use crate::disk::Kernel;

    #[test]
    fn a_path_that_is_no_text_is_not_named_in_another_spelling() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join(OsStr::from_bytes(b"home\xff"));
        let sessions = root.path().join("sessions");
        fs::create_dir_all(home.join("sessions")).unwrap();
        symlink(home.join("sessions"), &sessions).unwrap();
        let [from, to] = ["a", "b"].map(|name| home.join("sessions").join(name));
        disk::make(&from).unwrap();
        disk::make(&to).unwrap();
        let threads = Connection::open(home.join("state_5.sqlite")).unwrap();
        threads.execute_batch("CREATE TABLE threads (id TEXT, rollout_path TEXT)").unwrap();
        let insert = "INSERT INTO threads VALUES ('a-1', ?1)";
        threads.execute(insert, [sessions.join("a").to_str().unwrap()]).unwrap();
        let index = Index::of(home);
        let error = index.exchange("a-1", &from, &to).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert_eq!(index.file("a-1").unwrap(), Some(sessions.join("a")));
        assert!(index.exchange("a-1", &from, &sessions.join("b")).unwrap());
    }

    #[test]
    fn a_folder_that_cannot_be_looked_into_is_not_taken_for_one_without_an_index() {
        let home = tempfile::tempdir().unwrap();
        let [none, endless] = ["none", "endless"].map(|name| home.path().join(name));
        symlink("endless", &endless).unwrap();
        let [none, endless] = [none, endless].map(Index::of);
        let disk: Arc<dyn Disk> = Arc::new(Kernel);
        let [from, to] = [Path::new("/a"), Path::new("/b")];
        assert_eq!((none.file("a-1").unwrap(), none.listed("a-1").unwrap()), (None, 0));
        assert!(none.exchange("a-1", from, to).unwrap());
        assert!(matches!(none.lock(&disk, "a-1").unwrap(), Locking::Unknown));
        endless.file("a-1").unwrap_err();
        endless.listed("a-1").unwrap_err();
        endless.exchange("a-1", from, to).unwrap_err();
        endless.lock(&disk, "a-1").unwrap_err();
    }

    /// Makes an index with this schema in a folder, and returns whether its file can be read and exchanged, and the paths
    /// of all threads afterwards.
    fn tried(home: &Path, schema: &str) -> ([Result<bool, String>; 2], Vec<String>) {
        let database = home.join("state_5.sqlite");
        let made = Connection::open(&database).unwrap();
        made.execute_batch(schema).unwrap();
        let index = Index::of(home.to_owned());
        let file = index.file("a").map(|file| file == Some(PathBuf::from("/from")));
        let exchanged = index.exchange("a", Path::new("/from"), Path::new("/to"));
        let mut paths =
            made.prepare("SELECT CAST(rollout_path AS TEXT) FROM kept ORDER BY id").unwrap();
        let paths = paths.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        ([file, exchanged].map(|done| done.map_err(|error| error.to_string())), paths)
    }

    #[test]
    fn nothing_that_a_database_defines_runs_and_no_query_is_endless() {
        const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)";
        let check = |schema: &str, expected: Result<bool, &str>, left: &[&str]| {
            let home = tempfile::tempdir().unwrap();
            let (done, paths) = tried(home.path(), schema);
            for done in done {
                match expected {
                    Ok(expected) => assert_eq!(done, Ok(expected), "{schema}"),
                    Err(why) => {
                        assert!(done.clone().unwrap_err().contains(why), "{done:?}: {schema}");
                    }
                }
            }
            assert_eq!(paths, left, "{schema}");
        };
        let table = "CREATE TABLE threads (id TEXT, rollout_path TEXT);
            CREATE VIEW kept AS SELECT * FROM threads;
            INSERT INTO threads VALUES ('a', '/from'), ('b', '/other');";
        check(table, Ok(true), &["/to", "/other"]);
        for event in ["BEFORE UPDATE", "AFTER UPDATE", "AFTER UPDATE OF rollout_path"] {
            for does in [
                "DELETE FROM threads",
                "SELECT RAISE(ABORT, 'no')",
                "UPDATE threads SET rollout_path = 'x'",
            ] {
                let trigger =
                    format!("{table} CREATE TRIGGER t {event} ON threads BEGIN {does}; END;");
                check(&trigger, Ok(true), &["/to", "/other"]);
            }
        }
        let kept = "CREATE TABLE kept (id TEXT, rollout_path TEXT); INSERT INTO kept VALUES ('a', '/from');";
        let endless =
            format!("{ENDLESS} SELECT 'a' AS id, '/from' AS rollout_path FROM n WHERE i < 0");
        for (select, why) in [("SELECT * FROM kept", "prohibited"), (endless.as_str(), "")] {
            let view = format!(
                "{kept} CREATE VIEW threads AS {select};
                CREATE TRIGGER t INSTEAD OF UPDATE ON threads BEGIN DELETE FROM kept; END;"
            );
            check(&view, Err(why), &["/from"]);
        }
        // A key of another table refers to the path.
        let foreign = "CREATE TABLE threads (id TEXT, rollout_path TEXT UNIQUE);
            INSERT INTO threads VALUES ('a', '/from');
            CREATE TABLE kept (id TEXT, rollout_path TEXT REFERENCES threads (rollout_path) ON UPDATE SET NULL);
            INSERT INTO kept VALUES ('b', '/from');";
        check(foreign, Ok(true), &["/from"]);
        let long = "CREATE TABLE threads (id TEXT, rollout_path TEXT); CREATE VIEW kept AS SELECT '' AS id, '' AS rollout_path;
            INSERT INTO threads VALUES ('a', zeroblob(17000000));";
        check(long, Err("too big"), &[""]);
        let slow = format!(
            "{kept} CREATE TABLE threads (id TEXT, rollout_path TEXT AS ('/from' || (zeroblob(15000000) LIKE '{}b')));
            INSERT INTO threads VALUES ('a');",
            "%a".repeat(60)
        );
        check(&slow, Err("pattern too complex"), &["/from"]);
    }

    #[test]
    fn a_query_that_takes_too_long_is_ended() {
        let home = tempfile::tempdir().unwrap();
        drop(Connection::open(home.path().join("state_5.sqlite")).unwrap());
        let opened =
            Index::of(home.path().to_owned()).open("state_", OpenFlags::SQLITE_OPEN_READ_ONLY);
        let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
        let count: rusqlite::Result<u64> =
            opened.unwrap().unwrap().query_row(endless, [], |row| row.get(0));
        assert_eq!(count.unwrap_err().to_string(), "interrupted");
    }

    #[test]
    fn a_lock_that_another_program_keeps_is_not_waited_for_without_end() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(LOCKS);
        fs::create_dir(&folder).unwrap();
        let disk: Arc<dyn Disk> = Arc::new(Kernel);
        let index = Index::of(home.path().to_owned());
        assert!(matches!(index.lock(&disk, "a-1").unwrap(), Locking::Taken(_)));
        let _kept = disk.lock(&coordination(&folder), IfHeld::GiveUp).unwrap().unwrap();
        let Locking::Held(held) = index.lock(&disk, "a-1").unwrap() else { panic!("it is locked") };
        assert_eq!(held, coordination(&folder));
    }
}
