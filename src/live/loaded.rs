//! Loaded: which processes have an agent's session in memory, and would not see bytes that are written to its file.
//!
//! An agent that keeps the file open has it, also once that is deleted; one that runs in the session's folder may have it; one that holds its own
//! lock says so. Where the system shows no processes as files, `lsof` is asked.
//!
//! Invariant: nothing is changed, and a file or a process that cannot be read counts as not there. Where no process can be looked
//! at, it is an error: nobody knows then.

use std::{
    ffi::OsStr,
    fmt, fs, io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
    process::Command,
};

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

#[expect(clippy::disallowed_methods, reason = "the system itself shows what runs under /proc")]
fn by_proc(
    processes: &Path,
    file: &Path,
    folder: Option<&Path>,
    programs: &[&str],
    holders: &mut Vec<Holder>,
) -> io::Result<()> {
    let meta = fs::metadata(file).ok();
    // Who runs in the folder may have it loaded as long as it is there.
    let folder = folder.filter(|_| meta.is_some());
    let folder = folder.and_then(|folder| fs::canonicalize(folder).ok());
    let mut deleted = real(file).unwrap_or_else(|_| file.to_owned()).into_os_string();
    deleted.push(DELETED);
    for process in fs::read_dir(processes)?.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let process = process.path();
        let command = fs::read(process.join("cmdline")).unwrap_or_default();
        let name = || {
            let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
            program(&command, programs).map_or_else(|| name.trim().to_owned(), str::to_owned)
        };
        let is_open = |descriptor: PathBuf| {
            let Some(meta) = &meta else {
                return fs::read_link(descriptor).is_ok_and(|to| to.as_os_str() == deleted);
            };
            // A link to a socket or a pipe does not name a file; only the device and the inode tell.
            fs::metadata(descriptor)
                .is_ok_and(|found| (found.dev(), found.ino()) == (meta.dev(), meta.ino()))
        };
        let has_it_open = || {
            let mut descriptors = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
            descriptors.any(|descriptor| is_open(descriptor.path()))
        };
        // Once a copy of this process runs the other program, it holds none of this one's files: so it is asked twice.
        if has_it_open() && !is_own(&process) && has_it_open() {
            holders.push(Holder { pid, name: name(), how: How::Open });
        } else if program(&command, programs).is_some()
            && folder.is_some()
            && fs::read_link(process.join("cwd")).ok() == folder
        {
            holders.push(Holder { pid, name: name(), how: How::Folder });
        }
    }
    Ok(())
}

/// Returns whether a process runs this program too: one that reads the file, for who writes waits for the store's lock, or a copy
/// of this process that is about to run another program.
fn is_own(process: &Path) -> bool {
    let program = |process: &Path| fs::read_link(process.join("exe")).ok();
    program(process).is_some_and(|exe| Some(exe) == program(Path::new("/proc/self")))
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
