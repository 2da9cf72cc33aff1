//! Loaded: which processes have an agent's session in memory, and would not see bytes that are written to its file.
//!
//! An agent that keeps the file open has it, also once that is deleted; one that runs in the session's folder may have it; one that holds its own
//! lock says so. Where the system shows no processes as files, `lsof` is asked.
//!
//! Invariant: nothing is changed, and a file or a process that cannot be read counts as not there. Where no process can be looked
//! at, it is an error: nobody knows then.

use std::{
    ffi::{CStr, CString, OsStr, OsString},
    fmt, io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
    process::Command,
};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, Stat, openat, readlinkat, statat};

use super::writable::real;
use crate::{
    disk,
    json::Raw,
    wire::{Lock, Traits},
};

/// A process that has a session loaded, or may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// The program.
    pub name: String,
    /// The sign that it has the session loaded.
    pub how: How,
}

/// The sign that a process has a session loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It keeps the file open.
    Open,
    /// It is the agent, and runs in the session's folder.
    Folder,
    /// It holds the agent's own lock on the file.
    Lock,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.how {
            How::Open => "keeps it open",
            How::Folder => "runs in the session's folder",
            How::Lock => "holds the agent's lock on it",
        };
        write!(f, "{} (process {}) {how}", self.name, self.pid)
    }
}

/// Returns the processes that have the session of a file loaded; `folder` is the one in which the session works.
pub fn holders(file: &Path, folder: Option<&Path>, format: &Traits) -> io::Result<Vec<Holder>> {
    let programs = format.programs;
    let mut holders: Vec<Holder> =
        format.lock.and_then(|lock| locker(file, lock)).into_iter().collect();
    let processes = Path::new("/proc");
    if processes.join("self/fd").is_dir() {
        by_proc(processes, file, folder, programs, &mut holders)?;
    } else {
        by_lsof("lsof", file, folder, programs, &mut holders)?;
    }
    holders.retain(|holder| holder.pid != std::process::id());
    holders.sort_by_key(|holder| holder.pid);
    holders.dedup_by_key(|holder| holder.pid);
    Ok(holders)
}

/// Returns the process that an agent's lock on a file names, if it lives.
fn locker(file: &Path, lock: Lock) -> Option<Holder> {
    let mut path = file.as_os_str().to_owned();
    path.push(lock.ending);
    let said = disk::read(Path::new(&path), disk::SMALL).ok()?;
    let pid = u32::try_from(Raw::object(said.trim_ascii())?.get(lock.process)?.u64()?).ok()?;
    let process = rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)?;
    let is_there = match rustix::process::test_kill_process(process) {
        Ok(()) => true,
        Err(error) => error == rustix::io::Errno::PERM,
    };
    is_there.then(|| Holder { pid, name: "a program".to_owned(), how: How::Lock })
}

/// How Linux marks the name of an open file that was deleted.
const DELETED: &str = " (deleted)";

/// Looks at each process through its folder, of which each file costs a look by itself: on a machine with many processes most of
/// a small change goes by here.
fn by_proc(
    processes: &Path,
    file: &Path,
    folder: Option<&Path>,
    programs: &[&str],
    holders: &mut Vec<Holder>,
) -> io::Result<()> {
    let sought = Sought::of(file);
    // Who runs in the folder may have it loaded as long as it is there.
    let folder = folder.filter(|_| matches!(sought, Sought::File(_)));
    let folder = folder.and_then(|folder| folder.canonicalize().ok());
    let processes = rustix::fs::open(processes, FOLDER, Mode::empty())?;
    for process in Dir::read_from(&processes)?.flatten() {
        let Some(pid) = process.file_name().to_str().ok().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Ok(process) = openat(&processes, process.file_name(), FOLDER, Mode::empty()) else {
            continue;
        };
        let command = beginning(&process, "cmdline");
        // Only what the system itself runs was not begun by a command, and keeps no files.
        if command.is_empty() {
            continue;
        }
        let name = || {
            let name =
                || String::from_utf8_lossy(beginning(&process, "comm").trim_ascii()).into_owned();
            program(&command, programs).map_or_else(name, str::to_owned)
        };
        // Once a copy of this process runs the other program, it holds none of this one's files: so it is asked twice.
        if sought.is_open_in(&process) && !is_own(&process) && sought.is_open_in(&process) {
            holders.push(Holder { pid, name: name(), how: How::Open });
        } else if let Some(folder) = &folder
            && program(&command, programs).is_some()
            && link(&process, c"cwd")
                .is_some_and(|cwd| cwd.to_bytes() == folder.as_os_str().as_bytes())
        {
            holders.push(Holder { pid, name: name(), how: How::Folder });
        }
    }
    Ok(())
}

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// What an open file is known by.
enum Sought {
    /// The file as it is there. A link to a socket or a pipe does not name a file; only the device and the inode tell.
    File(Stat),
    /// The name of a file that is not there any more.
    Deleted(OsString),
}

impl Sought {
    fn of(file: &Path) -> Self {
        rustix::fs::stat(file).map_or_else(
            |_| {
                let mut name = real(file).unwrap_or_else(|_| file.to_owned()).into_os_string();
                name.push(DELETED);
                Self::Deleted(name)
            },
            Self::File,
        )
    }

    fn is_open_in(&self, process: &OwnedFd) -> bool {
        let open = openat(process, "fd", FOLDER, Mode::empty()).and_then(Dir::new);
        let Ok(mut descriptors) = open else { return false };
        while let Some(Ok(descriptor)) = descriptors.next() {
            let Ok(folder) = descriptors.fd() else { return false };
            let name = descriptor.file_name();
            let is_it = match self {
                Self::File(file) => statat(folder, name, AtFlags::empty())
                    .is_ok_and(|found| (found.st_dev, found.st_ino) == (file.st_dev, file.st_ino)),
                Self::Deleted(file) => {
                    link(folder, name).is_some_and(|to| to.to_bytes() == file.as_bytes())
                }
            };
            if is_it {
                return true;
            }
        }
        false
    }
}

fn link(folder: impl AsFd, name: &CStr) -> Option<CString> {
    readlinkat(folder, name, Vec::new()).ok()
}

/// Returns how a file of a process begins; nothing if it cannot be read.
fn beginning(process: &OwnedFd, name: &str) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    let file = openat(process, name, OFlags::CLOEXEC, Mode::empty());
    let read = file.and_then(|file| rustix::io::read(file, &mut bytes));
    bytes.truncate(read.unwrap_or(0));
    bytes
}

/// Returns whether a process runs this program too: one that reads the file, for who writes waits for the store's lock, or a copy
/// of this process that is about to run another program.
fn is_own(process: &OwnedFd) -> bool {
    let own = rustix::fs::readlink("/proc/self/exe", Vec::new()).ok();
    own.is_some() && link(process, c"exe") == own
}

/// Returns which of the programs a command line runs, by itself or through an interpreter.
fn program<'p>(command: &[u8], programs: &[&'p str]) -> Option<&'p str> {
    let words = command.split(|&byte| byte == 0).take(2);
    let names = words.filter_map(|word| Path::new(OsStr::from_bytes(word)).file_stem()?.to_str());
    let mut names = names.map(|name| name.split(' ').next().unwrap_or_default());
    names.find_map(|name| programs.iter().copied().find(|program| *program == name))
}

fn by_lsof(
    lsof: &str,
    file: &Path,
    folder: Option<&Path>,
    programs: &[&str],
    holders: &mut Vec<Holder>,
) -> io::Result<()> {
    // It ends with an error where no process is found.
    let run = |arguments: &[&OsStr]| {
        let output = Command::new(lsof).args(["-F", "pc"]).args(arguments).output();
        output.map(|output| output.stdout).map_err(|error| {
            let why = format!(
                "{lsof}, which tells the processes that have it open, cannot be run: {error}"
            );
            io::Error::new(error.kind(), why)
        })
    };
    let here = [OsStr::new("--"), file.as_os_str()];
    holders.extend(listed(&run(&here)?, How::Open));
    if let Some(folder) = folder {
        let here = ["-a", "-d", "cwd", "--"].map(OsStr::new);
        let here: Vec<&OsStr> = here.into_iter().chain([folder.as_os_str()]).collect();
        let inside = listed(&run(&here)?, How::Folder).into_iter();
        holders.extend(inside.filter(|holder| programs.contains(&holder.name.as_str())));
    }
    Ok(())
}

/// Returns the processes in a list of `p<number>` and `c<name>` lines.
fn listed(output: &[u8], how: How) -> Vec<Holder> {
    let output = String::from_utf8_lossy(output);
    let mut holders: Vec<Holder> = Vec::new();
    for line in output.lines() {
        match line.split_at_checked(1) {
            Some(("p", pid)) => {
                holders.extend(pid.parse().ok().map(|pid| Holder {
                    pid,
                    name: String::new(),
                    how,
                }));
            }
            Some(("c", name)) => {
                if let Some(last) = holders.last_mut() {
                    name.clone_into(&mut last.name);
                }
            }
            _ => {}
        }
    }
    holders
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{self, Identify};

    #[test]
    fn a_program_is_known_through_its_interpreter() {
        let run = |command: &[u8]| program(command, &["claude", "pi"]);
        assert_eq!(run(b"/usr/bin/claude\0--resume\0"), Some("claude"));
        assert_eq!(run(b"node\0/opt/bin/pi.js\0"), Some("pi"));
        assert_eq!(run(b"pi --continue\0"), Some("pi"));
        assert_eq!(run(b"vim\0notes\0claude\0"), None);
        assert_eq!(run(b"pip\0install\0"), None);
        assert_eq!(run(b""), None);
    }

    #[test]
    fn a_list_of_processes_is_read() {
        let found = listed(b"p12\ncclaude\nfcwd\np13\ncvim\n", How::Open);
        let names: Vec<(u32, &str)> = found.iter().map(|h| (h.pid, h.name.as_str())).collect();
        assert_eq!(names, [(12, "claude"), (13, "vim")]);
    }

    #[test]
    fn nobody_is_taken_for_the_answer_of_a_program_that_cannot_be_run() {
        let ask = |lsof: &str, folder: Option<&Path>| {
            let mut holders = Vec::new();
            by_lsof(lsof, Path::new("/session"), folder, &["pi"], &mut holders).map(|()| holders)
        };
        let none = ask("/nowhere/lsof", None).unwrap_err();
        assert!(none.to_string().starts_with("/nowhere/lsof, which tells the processes"), "{none}");
        assert_eq!(none.kind(), io::ErrorKind::NotFound);
        // It ends so where it finds none.
        assert_eq!(ask("false", Some(Path::new("/work"))).unwrap(), []);
    }

    #[test]
    fn a_copy_of_this_process_that_is_about_to_run_a_program_holds_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session");
        let file = disk::make(&path).unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    assert!(Command::new("true").status().unwrap().success());
                }
            });
            let look = |_| holders(&path, None, wire::Native.traits()).unwrap();
            let found: Vec<Holder> = (0..200).flat_map(look).collect();
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(found, []);
        });
        drop(file);
    }
}
