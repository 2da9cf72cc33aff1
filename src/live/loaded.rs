//! Which processes have an agent's session open and would miss bytes that are written to its file.
//!
//! The checks, in this order: processes that have the file open, even if it was deleted; processes that the agent's own files
//! name, if the start time matches; and agent processes that no such file names, if they run on a terminal in the session's
//! folder. On systems without `/proc`, the checks use `lsof` and `ps`.
//!
//! Invariant: nothing is changed. A file or process that cannot be read counts as absent, but it is an error if no process can be
//! inspected.

use std::{
    collections::BTreeMap,
    ffi::{CStr, CString, OsStr, OsString},
    fmt, fs, io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    process::Command,
};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, Stat, openat, readlinkat, statat};

use super::{Index, writable::real};
use crate::{
    disk,
    json::Raw,
    wire::{Claim, ClaimPlace, Service, Traits},
};

/// A process that has a session open, or may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The process id.
    pub pid: u32,
    /// The agent, or the program if the agent is unknown.
    pub name: String,
    /// The beginning of its command line.
    pub command: String,
    /// Its terminal, if it has one.
    pub terminal: Option<String>,
    /// The command that stops it, if it is a background service of its agent that has one.
    pub stop: Option<&'static str>,
    /// The evidence that it has the session open.
    pub how: How,
}

/// The evidence that a process has a session open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It has the file open.
    Open,
    /// It has the agent's own lock.
    Lock,
    /// The agent's own file names it.
    Named,
    /// The agent's own file has its process id, but nothing proves that this process wrote the file.
    Unproven,
    /// It is the agent, no file names it, and it runs on a terminal in the session's folder.
    Folder,
}

impl How {
    /// Returns true if the evidence may be wrong.
    pub fn is_guess(self) -> bool {
        matches!(self, Self::Unproven | Self::Folder)
    }
}

/// Writes the process id, and the terminal or the command line.
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pid {}", self.pid)?;
        if let Some(terminal) = &self.terminal {
            write!(f, ", {}", terminal.trim_start_matches("/dev/"))?;
        } else if !self.command.is_empty() {
            write!(f, ", run as {:?}", self.command)?;
        }
        match self.how {
            How::Unproven => f.write_str(", named in the agent's lock file"),
            How::Folder => f.write_str(", in the session's folder"),
            How::Open | How::Lock | How::Named => Ok(()),
        }
    }
}

impl Holder {
    /// Tells the user how to end it.
    pub fn way_to_end(&self) -> String {
        let Self { name, pid, .. } = self;
        match (&self.terminal, self.stop) {
            (Some(terminal), _) => {
                format!("quit {name} in its terminal, {}", terminal.trim_start_matches("/dev/"))
            }
            (None, Some(stop)) => {
                format!("close the session in {name} and wait a minute, or end the service: {stop}")
            }
            (None, None) => format!("end {name}, which has no terminal: kill {pid}"),
        }
    }
}

/// Returns the processes that have the session of a file open. `folder` is the session's folder, if processes in it may have the
/// session open.
pub fn holders(file: &Path, folder: Option<&Path>, format: &Traits) -> io::Result<Vec<Holder>> {
    let sought = Sought::of(file);
    // A process in the folder only counts while the file exists.
    let folder = folder.filter(|_| matches!(sought, Sought::File(_)));
    let folder = folder.and_then(|folder| folder.canonicalize().ok());
    let claims = claims(file, format);
    let search = Search { file, sought, folder, claims, format };
    let processes = Path::new("/proc");
    let mut holders = if processes.join("self/fd").is_dir() {
        search.by_proc(processes)?
    } else {
        search.by_lsof("lsof")?
    };
    holders.retain(|holder| holder.pid != std::process::id());
    holders.sort_by_key(|holder| holder.pid);
    Ok(holders)
}

/// A session that an agent has open, according to the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSession {
    /// The format of the session.
    pub format: &'static str,
    /// The agent's id of the session.
    pub session: String,
    /// The process.
    pub holder: Holder,
}

/// Returns the sessions that agents in these folders have open, using only the files and locks of their processes. The cost
/// depends on the number of running agents, not of sessions. Agents that lock the session file itself are not checked.
pub fn open_sessions<'a>(
    homes: impl IntoIterator<Item = (&'a Path, &'static Traits)>,
) -> Vec<OpenSession> {
    let (mut open, mut locks) = (Vec::new(), None);
    for (home, format) in homes {
        let mut add = |session: String, pid, process, how| {
            let holder = describe(&home.join(""), format, pid, process, how);
            open.push(OpenSession { format: format.name, session, holder });
        };
        for claim in format.claim.iter().flat_map(|claim| claims_in(home, claim)) {
            let Some(process) = process(claim.pid) else { continue };
            let is_agent = program(&process.command, format.programs).is_some();
            let is_proven = claim.started.as_ref().zip(process.started.as_ref());
            if let Some(session) = claim.session
                && is_proven.map_or(is_agent, |(says, is)| says == is)
            {
                add(session, claim.pid, process, How::Named);
            }
        }
        for (session, pid) in Index::of(home.to_owned()).held(locks.get_or_insert_with(flocks)) {
            if let Some(process) = process(pid) {
                add(session, pid, process, How::Lock);
            }
        }
    }
    open.retain(|one| one.holder.pid != std::process::id());
    open
}

/// Returns the processes that have a file locked, by the inode of the file, on systems that report it.
#[expect(clippy::disallowed_methods, reason = "a virtual file system has no files of others")]
pub(crate) fn flocks() -> BTreeMap<u64, u32> {
    flocks_of(&String::from_utf8_lossy(&fs::read("/proc/locks").unwrap_or_default()))
}

/// Parses lines such as `1: FLOCK  ADVISORY  WRITE 4242 08:01:123456 0 EOF`. A line with an arrow is waiting for the lock.
fn flocks_of(listed: &str) -> BTreeMap<u64, u32> {
    let held = listed.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let [kind, _, _, pid, file] = std::array::from_fn(|_| words.next().unwrap_or_default());
        let inode = file.rsplit(':').next()?.parse().ok()?;
        (kind == "FLOCK").then_some((inode, pid.parse().ok()?))
    });
    held.collect()
}

/// A process as recorded in an agent's own file.
struct Written {
    pid: u32,
    /// Its start time.
    started: Option<String>,
    /// The session that it has open, if the file is not next to the session's.
    session: Option<String>,
}

fn read_claim(path: &Path, claim: &Claim) -> Option<Written> {
    let text = disk::read(path, disk::SMALL).ok()?;
    let fields = Raw::object(text.trim_ascii())?;
    let pid = u32::try_from(fields.get(claim.process)?.u64()?).ok()?;
    let started = fields.get(claim.started).and_then(|at| {
        at.text().map(|text| one_spaced(&text)).or_else(|| Some(at.u64()?.to_string()))
    });
    let session = match claim.place {
        ClaimPlace::Beside(_) => None,
        ClaimPlace::Folder { session, .. } => Some(fields.get(session)?.text()?.into_owned()),
    };
    Some(Written { pid, started, session })
}

/// Returns the records that an agent's processes wrote, one file each.
fn claims_in(home: &Path, claim: &Claim) -> Vec<Written> {
    let ClaimPlace::Folder { name, .. } = claim.place else { return Vec::new() };
    let files = fs::read_dir(home.join(name)).into_iter().flatten().flatten();
    let files = files.map(|file| file.path());
    // Other files contain secrets.
    let files = files.filter(|file| file.extension().is_some_and(|ending| ending == "json"));
    files.filter_map(|file| read_claim(&file, claim)).collect()
}

/// What an agent's own file records about a process.
#[derive(Debug)]
struct Claimed {
    /// The start time of the process that wrote the file.
    started: Option<String>,
    /// Whether it has this session open and not another one.
    is_this: bool,
}

/// Returns what an agent's own files record about its processes, by process id.
fn claims(file: &Path, format: &Traits) -> BTreeMap<u32, Claimed> {
    let Some(claim) = format.claim else { return BTreeMap::new() };
    let written = match claim.place {
        ClaimPlace::Beside(ending) => {
            let mut path = file.as_os_str().to_owned();
            path.push(ending);
            read_claim(Path::new(&path), &claim).into_iter().collect()
        }
        ClaimPlace::Folder { .. } => {
            let is_shelf = |above: &&Path| {
                let folders = format.folders.iter();
                above.file_name().is_some_and(|is| folders.clone().any(|of| is == of.sessions))
            };
            let home = file.ancestors().find(is_shelf).and_then(Path::parent);
            home.map(|home| claims_in(home, &claim)).unwrap_or_default()
        }
    };
    // The files of a session's sub-agents are in a folder with the session's name.
    let is_in = |session: &String| {
        file.iter().any(|part| Path::new(part).file_stem() == Some(OsStr::new(session)))
    };
    let claimed = written.into_iter().map(|Written { pid, started, session }| {
        (pid, Claimed { started, is_this: session.as_ref().is_none_or(is_in) })
    });
    claimed.collect()
}

/// A search for the processes that have a session open.
struct Search<'a> {
    file: &'a Path,
    sought: Sought,
    folder: Option<PathBuf>,
    claims: BTreeMap<u32, Claimed>,
    format: &'a Traits,
}

/// A process as reported by the system.
#[derive(Debug, Default)]
struct Process {
    /// Its command line: each word followed by a NUL.
    command: Vec<u8>,
    started: Option<String>,
    terminal: Option<String>,
    is_open: bool,
    is_inside: bool,
}

/// The suffix with which Linux marks the name of an open file that was deleted.
const DELETED: &str = " (deleted)";

/// Describes a process. `file` is the file that it has open, or any path in the agent's folder.
fn describe(file: &Path, format: &Traits, pid: u32, process: Process, how: How) -> Holder {
    let Traits { programs, folders, service, .. } = format;
    let is_agent = program(&process.command, programs).is_some();
    let command = String::from_utf8_lossy(&process.command).replace('\0', " ");
    let has_folder = |usual: &str| file.to_string_lossy().contains(&format!("/{usual}/"));
    let agent = folders.iter().find(|of| of.usual.is_some_and(has_folder)).or(folders.first());
    let agent = agent.filter(|_| is_agent || how != How::Open).map(|of| of.agent.to_owned());
    let own = command.split(' ').next().and_then(|program| Path::new(program).file_name());
    let own = own.map_or_else(|| "a program".into(), OsStr::to_string_lossy).into_owned();
    let is_service = |service: &Service| command.split(' ').any(|word| word == service.argument);
    let service = service.as_ref().filter(|service| is_agent && is_service(service));
    Holder {
        pid,
        name: agent.unwrap_or(own),
        stop: service.map(|it| it.stop),
        command: command.trim_end().chars().take(80).collect(),
        terminal: process.terminal,
        how,
    }
}

impl Search<'_> {
    /// Returns the process as a holder if it has the session open, or may have.
    fn judge(&self, pid: u32, process: Process) -> Option<Holder> {
        let is_agent = program(&process.command, self.format.programs).is_some();
        let how = self.sign(pid, &process, is_agent)?;
        Some(describe(self.file, self.format, pid, process, how))
    }

    fn sign(&self, pid: u32, process: &Process, is_agent: bool) -> Option<How> {
        if process.is_open {
            return Some(How::Open);
        }
        // Another process may have the id now.
        let claim = self.claims.get(&pid);
        let is_proven =
            claim.and_then(|claim| Some(claim.started.as_ref()? == process.started.as_ref()?));
        match claim.filter(|_| is_proven != Some(false)) {
            Some(claim) if !claim.is_this => None,
            Some(_) if is_proven.is_some() || is_agent => Some(How::Named),
            Some(_) => Some(How::Unproven),
            None => {
                (is_agent && process.is_inside && process.terminal.is_some()).then_some(How::Folder)
            }
        }
    }

    /// Checks each process through its folder in `/proc`. Each file there costs a system call, and on a machine with many
    /// processes this takes most of the time of a small change.
    fn by_proc(&self, processes: &Path) -> io::Result<Vec<Holder>> {
        let mut holders = Vec::new();
        let processes = rustix::fs::open(processes, FOLDER, Mode::empty())?;
        for process in Dir::read_from(&processes)?.flatten() {
            let pid = process.file_name().to_str().ok().and_then(|name| name.parse().ok());
            let Some(pid) = pid else { continue };
            let Ok(process) = openat(&processes, process.file_name(), FOLDER, Mode::empty()) else {
                continue;
            };
            let command = beginning(&process, "cmdline");
            // Kernel threads and ended processes have no command line and no open files.
            if command.is_empty() {
                continue;
            }
            // A forked copy of this process has its files only until it executes another program, so a positive answer is checked
            // twice.
            let is_open = || self.sought.is_open_in(&process);
            let is_open = is_open() && !is_own(&process) && is_open();
            let is_inside = self.folder.as_ref().is_some_and(|folder| {
                program(&command, self.format.programs).is_some()
                    && link(&process, c"cwd")
                        .is_some_and(|cwd| cwd.to_bytes() == folder.as_os_str().as_bytes())
            });
            if is_open || is_inside || self.claims.contains_key(&pid) {
                let (started, terminal) = stat(&beginning(&process, "stat"));
                let process = Process { command, started, terminal, is_open, is_inside };
                holders.extend(self.judge(pid, process));
            }
        }
        Ok(holders)
    }

    fn by_lsof(&self, lsof: &str) -> io::Result<Vec<Holder>> {
        // It exits with an error if no process is found.
        let run = |arguments: &[&OsStr]| {
            let output = Command::new(lsof).args(["-F", "p"]).args(arguments).output();
            output.map(|output| listed(&output.stdout)).map_err(|error| {
                let why =
                    format!("cannot run {lsof} to find the processes that have it open: {error}");
                io::Error::new(error.kind(), why)
            })
        };
        let open = run(&[OsStr::new("--"), self.file.as_os_str()])?;
        let mut inside = Vec::new();
        if let Some(folder) = &self.folder {
            let here = ["-a", "-d", "cwd", "--"].map(OsStr::new);
            inside = run(&[&here[..], &[folder.as_os_str()]].concat())?;
        }
        let mut all: Vec<u32> =
            open.iter().chain(&inside).chain(self.claims.keys()).copied().collect();
        all.sort_unstable();
        all.dedup();
        let process = |pid: &u32| {
            let process = by_ps(*pid);
            let (is_open, is_inside) = (open.contains(pid), inside.contains(pid));
            self.judge(*pid, Process { is_open, is_inside, ..process? })
        };
        Ok(all.iter().filter_map(process).collect())
    }
}

fn process(pid: u32) -> Option<Process> {
    match rustix::fs::open(format!("/proc/{pid}"), FOLDER, Mode::empty()) {
        Ok(folder) => {
            let (started, terminal) = stat(&beginning(&folder, "stat"));
            let command = beginning(&folder, "cmdline");
            Some(Process { command, started, terminal, ..Process::default() })
        }
        Err(_) if Path::new("/proc/self").exists() => None,
        Err(_) => by_ps(pid),
    }
}

/// Does the same with `ps`, on systems without `/proc`. Without `ps`, nothing is known about the process.
fn by_ps(pid: u32) -> Option<Process> {
    // The same format as the agents use for the start time.
    let ps = Command::new("ps")
        .args(["-o", "tty=", "-o", "lstart=", "-o", "command=", "-p", &pid.to_string()])
        .envs([("LC_ALL", "C"), ("TZ", "UTC")])
        .output();
    ps.map_or_else(|_| Some(Process::default()), |ps| shown(&ps.stdout))
}

/// Parses `/proc/<pid>/stat`, and returns the start time and the terminal.
fn stat(line: &[u8]) -> (Option<String>, Option<String>) {
    let line = String::from_utf8_lossy(line);
    // The second field is the program's name in brackets, which may contain any character.
    let mut fields = line.rsplit(')').next().unwrap_or_default().split_whitespace();
    let terminal = fields.nth(4).and_then(|terminal| terminal.parse::<u32>().ok());
    let terminal = terminal.filter(|terminal| *terminal != 0).map(|terminal| {
        let (major, minor) = (terminal >> 8 & 0xfff, terminal & 0xff | terminal >> 12 & 0xf_ff00);
        if major == 136 {
            format!("/dev/pts/{minor}")
        } else {
            format!("/dev/char/{major}:{minor}")
        }
    });
    (fields.nth(14).map(str::to_owned), terminal)
}

/// Parses the output of `ps`: the terminal, five words of start time, and the command.
fn shown(output: &[u8]) -> Option<Process> {
    let output = String::from_utf8_lossy(output);
    let mut words = output.split_whitespace();
    let terminal = words.next()?;
    let terminal =
        (!terminal.starts_with('?') && terminal != "-").then(|| format!("/dev/{terminal}"));
    let started = words.by_ref().take(5).collect::<Vec<_>>().join(" ");
    let command = words.flat_map(|word| [word, "\0"]).collect::<String>().into_bytes();
    Some(Process { command, started: Some(started), terminal, ..Process::default() })
}

fn one_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// How to recognise a file among the open files of a process.
enum Sought {
    /// An existing file, by device and inode. The links in `/proc` are not names of files for sockets and pipes.
    File(Stat),
    /// The name of a file that was deleted.
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

/// Returns the first bytes of a file of a process; empty if it cannot be read.
fn beginning(process: &OwnedFd, name: &str) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    let file = openat(process, name, OFlags::CLOEXEC, Mode::empty());
    let read = file.and_then(|file| rustix::io::read(file, &mut bytes));
    bytes.truncate(read.unwrap_or(0));
    bytes
}

/// Returns true if a process also runs this program. It is then a reader of the file, because a writer waits for the store's
/// lock, or a copy of this process that is about to execute another program.
fn is_own(process: &OwnedFd) -> bool {
    let own = rustix::fs::readlink("/proc/self/exe", Vec::new()).ok();
    own.is_some() && link(process, c"exe") == own
}

/// Returns which of the programs a command line runs, directly or through an interpreter.
fn program<'p>(command: &[u8], programs: &[&'p str]) -> Option<&'p str> {
    let words = command.split(|&byte| byte == 0).take(2);
    let names = words.filter_map(|word| Path::new(OsStr::from_bytes(word)).file_stem()?.to_str());
    let mut names = names.map(|name| name.split(' ').next().unwrap_or_default());
    names.find_map(|name| programs.iter().copied().find(|program| *program == name))
}

/// Parses a list of `p<number>` lines.
fn listed(output: &[u8]) -> Vec<u32> {
    let output = String::from_utf8_lossy(output);
    output.lines().filter_map(|line| line.strip_prefix('p')?.parse().ok()).collect()
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
        assert_eq!(listed(b"p12\nfcwd\np13\nf3\n"), [12, 13]);
    }

    #[test]
    fn a_process_has_a_terminal_if_the_system_names_one() {
        let on = |terminal: u32| {
            stat(
                format!("7 (a) b) S 1 7 7 {terminal} 7 0 1 2 3 4 5 6 7 8 20 0 9 0 176272 5 6")
                    .as_bytes(),
            )
        };
        let started = || Some("176272".to_owned());
        assert_eq!(on(0), (started(), None));
        assert_eq!(on(136 << 8 | 3), (started(), Some("/dev/pts/3".to_owned())));
        assert_eq!(on(1 << 20 | 136 << 8 | 3), (started(), Some("/dev/pts/259".to_owned())));
        assert_eq!(on(4 << 8 | 1), (started(), Some("/dev/char/4:1".to_owned())));
        assert_eq!(stat(b""), (None, None));
        let line =
            |terminal: &str| format!("{terminal}  Thu Jul  9 04:18:26 2026     /bin/pi -c\n");
        let process = shown(line("ttys001").as_bytes()).unwrap();
        assert_eq!(process.command, b"/bin/pi\0-c\0");
        assert_eq!(process.started.as_deref(), Some("Thu Jul 9 04:18:26 2026"));
        assert_eq!(process.terminal.as_deref(), Some("/dev/ttys001"));
        assert_eq!(shown(line("??").as_bytes()).unwrap().terminal, None);
        assert!(shown(b"").is_none());
    }

    #[test]
    fn what_an_agent_says_of_a_process_comes_before_its_folder() {
        let nothing = Process::default;
        let open = || Process { is_open: true, ..nothing() };
        let inside = || Process { is_inside: true, ..nothing() };
        let check =
            |claim: Option<(Option<&str>, bool)>, process: Process, is_agent: bool, expected| {
                let claim = claim.map(|(started, is_this)| {
                    (1, Claimed { started: started.map(str::to_owned), is_this })
                });
                let search = search(claim.into_iter().collect());
                let found = search.sign(1, &process, is_agent);
                assert_eq!(found, expected, "{:?} {process:?} {is_agent}", search.claims);
            };
        let at = |started: &str, process: Process| Process {
            started: Some(started.to_owned()),
            ..process
        };
        let on_a_terminal =
            |process: Process| Process { terminal: Some("/dev/pts/3".to_owned()), ..process };
        check(None, open(), false, Some(How::Open));
        check(Some((Some("5"), false)), at("5", open()), true, Some(How::Open));
        check(None, inside(), true, None);
        check(None, on_a_terminal(inside()), true, Some(How::Folder));
        check(None, on_a_terminal(inside()), false, None);
        check(None, on_a_terminal(nothing()), true, None);
        // It has another session open.
        check(Some((Some("5"), false)), at("5", on_a_terminal(inside())), true, None);
        check(Some((None, false)), at("5", on_a_terminal(inside())), true, None);
        // It has this one open.
        check(Some((Some("5"), true)), at("5", nothing()), false, Some(How::Named));
        check(Some((Some("5"), true)), at("5", nothing()), true, Some(How::Named));
        check(Some((None, true)), at("5", nothing()), true, Some(How::Named));
        check(Some((Some("5"), true)), nothing(), true, Some(How::Named));
        check(Some((None, true)), at("5", nothing()), false, Some(How::Unproven));
        check(Some((Some("5"), true)), nothing(), false, Some(How::Unproven));
        // Another process has the id by now.
        check(Some((Some("5"), true)), at("6", nothing()), true, None);
        check(Some((Some("5"), true)), at("6", on_a_terminal(inside())), true, Some(How::Folder));
        check(Some((Some("5"), false)), at("6", on_a_terminal(inside())), true, Some(How::Folder));
    }

    #[test]
    fn a_claim_is_for_what_is_in_a_file_or_folder_of_the_sessions_name() {
        let home = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            io::Write::write_all(&mut disk::make(&path).unwrap(), text.as_bytes()).unwrap();
        };
        put(
            "sessions/7.json",
            r#"{"pid":7,"sessionId":"boat","procStart":"Thu Jul  9 04:18:26 2026"}"#,
        );
        put("sessions/8.json", r#"{"pid":8,"sessionId":"raft","procStart":12}"#);
        put("sessions/9.json", r#"{"pid":9,"sessionId":"#);
        put("sessions/9.secret.key", r#"{"pid":9,"sessionId":"boat"}"#);
        put("sessions/10.json", r#"{"pid":-10,"sessionId":"boat"}"#);
        let format = wire::FORMATS.into_iter().find(|format| {
            let claim = format.traits().claim;
            claim.is_some_and(|claim| matches!(claim.place, ClaimPlace::Folder { .. }))
        });
        let format = format.unwrap().traits();
        let shelf = home.path().join(format.folders[0].sessions).join("-work");
        let claimed = |file: &str| {
            let found = claims(&shelf.join(file), format).into_iter();
            found.map(|(pid, one)| (pid, one.started.unwrap(), one.is_this)).collect::<Vec<_>>()
        };
        let both = |boat, raft| {
            [(7, "Thu Jul 9 04:18:26 2026".to_owned(), boat), (8, "12".to_owned(), raft)]
        };
        assert_eq!(claimed("boat.jsonl"), both(true, false));
        assert_eq!(claimed("boat/subagents/agent-a1.jsonl"), both(true, false));
        assert_eq!(claimed("raft.jsonl"), both(false, true));
        assert_eq!(claimed("canoe.jsonl"), both(false, false));
        assert!(claims(&home.path().join("boat.jsonl"), format).is_empty());
    }

    #[test]
    fn the_sessions_that_are_open_are_found_by_pid_files_and_locks() {
        let home = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            io::Write::write_all(&mut disk::make(&path).unwrap(), text.as_bytes()).unwrap();
        };
        let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = sleeper.id();
        let started = process(pid).unwrap().started.unwrap();
        put(
            "sessions/1.json",
            &format!(r#"{{"pid":{pid},"sessionId":"boat","procStart":"{started}"}}"#),
        );
        // Another process has that id by now, and one is not there.
        put("sessions/2.json", &format!(r#"{{"pid":{pid},"sessionId":"raft","procStart":"1"}}"#));
        put("sessions/3.json", r#"{"pid":4194999,"sessionId":"canoe","procStart":"1"}"#);
        let open = |name: &str| {
            let format = wire::by_name(name).unwrap().traits();
            let found = open_sessions([(home.path(), format)]).into_iter();
            found.map(|one| (one.session, one.holder.pid, one.holder.how)).collect::<Vec<_>>()
        };
        assert_eq!(open("claude"), [("boat".to_owned(), pid, How::Named)]);
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        assert_eq!(open("claude"), []);
        let line = "1: FLOCK  ADVISORY  WRITE 4242 08:01:77 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 9 08:01:78 0 EOF\n";
        assert_eq!(flocks_of(line), [(77, 4242)].into());
        put("thread-writer-locks/thread.lock", "");
        put("thread-writer-locks/.coordination.lock", "");
        let lock = home.path().join("thread-writer-locks/thread.lock");
        let inode = rustix::fs::stat(&lock).unwrap().st_ino;
        let held = |inode| Index::of(home.path().to_owned()).held(&[(inode, 7)].into());
        assert_eq!(held(inode), [("thread".to_owned(), 7)]);
        assert_eq!(held(inode + 1), []);
    }

    fn search<'a>(claims: BTreeMap<u32, Claimed>) -> Search<'a> {
        let file = Path::new("/session");
        Search {
            file,
            sought: Sought::of(file),
            folder: None,
            claims,
            format: wire::Native.traits(),
        }
    }

    #[test]
    fn nobody_is_taken_for_the_answer_of_a_program_that_cannot_be_run() {
        let none = search(BTreeMap::new()).by_lsof("/nowhere/lsof").unwrap_err();
        assert!(none.to_string().starts_with("cannot run /nowhere/lsof to find"), "{none}");
        assert_eq!(none.kind(), io::ErrorKind::NotFound);
        // It ends so where it finds none.
        let inside = Search { folder: Some("/work".into()), ..search(BTreeMap::new()) };
        assert_eq!(inside.by_lsof("false").unwrap(), []);
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
