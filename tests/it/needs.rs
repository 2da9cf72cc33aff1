//! What a check needs of the machine that it runs on. A check that cannot run says so by its name, on stderr and past the
//! capture of a test that passes: `skipped: <test>: no <need>: <why>`.
//!
//! Real sessions are no part of the project: `UNDERTEXT_CORPUS` names their folder, and a file that is missing there is a
//! fault, because a comparison that lost what it compares would pass.
//!
//! Invariant: no test returns early for what its machine lacks but through a function of this file, as [`crate::tidy`] checks.

use std::{
    fs,
    io::Write as _,
    panic::Location,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

/// Folder of the corpus, then how many files it has at the least.
const COUNTS: [(&str, usize); 14] = [
    ("", 287),
    ("claude", 23),
    ("claude-broken", 7),
    ("claude-shapes", 18),
    ("codex", 9),
    ("codex-made/resume", 9),
    ("codex-made/segments", 2),
    ("codex-shapes", 8),
    ("kimi", 13),
    ("pi", 18),
    ("resume/claude", 22),
    ("resume/claude-shapes", 18),
    ("resume/codex", 6),
    ("resume/codex-shapes", 6),
];

/// The folders that hold the sessions of one agent each.
pub(crate) const FOLDERS: [&str; 7] =
    ["claude", "claude-shapes", "claude-broken", "codex", "codex-shapes", "kimi", "pi"];

/// A folder of real sessions.
#[derive(Debug)]
pub(crate) struct Corpus(PathBuf);

impl Corpus {
    /// Returns the path of a file or a folder.
    pub(crate) fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.0.join(below)
    }

    /// Returns every file below a folder, in order.
    pub(crate) fn files(&self, folder: &str) -> Vec<PathBuf> {
        let (mut folders, mut files) = (vec![self.path(folder)], Vec::new());
        while let Some(folder) = folders.pop() {
            for child in fs::read_dir(folder).unwrap() {
                let path = child.unwrap().path();
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        files.sort();
        let (_, least) = COUNTS.iter().find(|(counted, _)| *counted == folder).unwrap();
        assert!(files.len() >= *least, "{} of {least} files are left in {folder:?}", files.len());
        files
    }

    /// Returns every session's file.
    pub(crate) fn sessions(&self) -> Vec<PathBuf> {
        FOLDERS.into_iter().flat_map(|folder| self.files(folder)).collect()
    }
}

/// Returns the real sessions that the machine has.
#[track_caller]
pub(crate) fn corpus() -> Option<Corpus> {
    let corpus = variable("UNDERTEXT_CORPUS").map(|folder| Corpus(folder.canonicalize().unwrap()));
    or_skip(corpus, "corpus: UNDERTEXT_CORPUS names no folder of real sessions")
}

/// A program that makes a shell the root of namespaces of its own, where it may mount what it likes.
#[derive(Debug)]
pub(crate) struct Namespaces(&'static str);

impl Namespaces {
    /// Runs a script of a shell there and returns what it printed; `$CHILD_BINARY` is this binary.
    #[track_caller]
    pub(crate) fn run(&self, script: &str, store: &Path) -> String {
        let binary = std::env::current_exe().unwrap();
        let mut command = Command::new(self.0);
        command.args(["-rm", "sh", "-ec", script]).env_clear();
        command.envs(variable("PATH").map(|path| ("PATH", path)));
        command.env("CHILD_BINARY", binary).env("STORE", store);
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stderr));
        told
    }
}

/// Returns namespaces, if the machine lets an ordinary user have some.
#[track_caller]
pub(crate) fn namespaces() -> Option<Namespaces> {
    let mount = ["-rm", "sh", "-ec", "mount -t tmpfs -o size=1m t /mnt"];
    let namespaces = Namespaces("unshare");
    let mounted = Command::new(namespaces.0).args(mount).output();
    let is_mounted = mounted.is_ok_and(|output| output.status.success());
    or_skip(is_mounted.then_some(namespaces), "namespaces: unshare -rm cannot mount a tmpfs here")
}

/// Returns the folder in which Linux tells about processes.
#[track_caller]
pub(crate) fn proc() -> Option<&'static Path> {
    let proc = Path::new("/proc");
    or_skip(
        proc.join("self/status").exists().then_some(proc),
        "proc: there is no /proc/self/status",
    )
}

/// Returns the program that starts another one in a session of its own, on a terminal or without any, if the system shows that.
#[track_caller]
pub(crate) fn setsid() -> Option<&'static str> {
    let _ = proc()?;
    let run = Command::new("setsid").arg("--version").output();
    let is_there = run.is_ok_and(|output| output.status.success());
    or_skip(is_there.then_some("setsid"), "setsid: it cannot be run")
}

/// Returns another user, to whom files can be given, if the test runs as root.
#[track_caller]
pub(crate) fn other_user() -> Option<u32> {
    let is_root = rustix::process::geteuid().is_root();
    or_skip(is_root.then_some(12_345), "root: only root gives files to another user")
}

/// Returns a shell, if the machine has it.
#[track_caller]
pub(crate) fn shell(name: &'static str) -> Option<&'static str> {
    let found = Command::new(name).args(["-c", "true"]).output();
    or_skip(found.is_ok().then_some(name), &format!("{name}: it is not installed"))
}

/// Returns something if sweeps run whole: they break every step, kill at many moments and draw many cases. They do under
/// `UNDERTEXT_SWEEP=1`, which `.ci/run` sets.
#[track_caller]
pub(crate) fn sweep() -> Option<()> {
    let asked = variable("UNDERTEXT_SWEEP").is_some_and(|asked| asked.as_os_str() != "0");
    or_skip(asked.then_some(()), "sweep: UNDERTEXT_SWEEP=1 runs all of it")
}

/// Returns true if pages that are written from the sources are to be written, not only compared: `UNDERTEXT_WRITE_DOCS=1`.
pub(crate) fn writes_docs() -> bool {
    variable("UNDERTEXT_WRITE_DOCS").is_some()
}

/// Returns how many rounds a sweep makes: all of them, or in plain `cargo test` a few, which keep each assertion alive.
#[track_caller]
pub(crate) fn rounds<T>(few: T, all: T) -> T {
    if sweep().is_some() { all } else { few }
}

/// Returns Python, by which a test learns what a process used, if the machine has it and tells that as Linux does.
#[track_caller]
pub(crate) fn python() -> Option<&'static str> {
    let asked = ["-c", "import os, resource; os.sched_getaffinity(0)"];
    let found = Command::new("python3").args(asked).output();
    let is_there = found.is_ok_and(|output| output.status.success());
    or_skip(is_there.then_some("python3"), "rusage: python3 cannot tell what a process used here")
}

/// The variable by which a test tells the child that it starts, which is the same test in another process, where to work.
pub(crate) const CHILD: &str = "UNDERTEXT_TEST_CHILD";

/// Returns where to work, in a child that a test started of itself.
pub(crate) fn child() -> Option<PathBuf> {
    variable(CHILD)
}

/// Prints a line that the parent of a child reads.
#[expect(clippy::print_stdout, reason = "a pipe to the parent is the output of a child")]
pub(crate) fn tell_parent(line: &str) {
    println!("{line}");
}

#[expect(clippy::disallowed_methods, reason = "a test is told what its machine has")]
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}

#[track_caller]
fn or_skip<T>(found: Option<T>, lacks: &str) -> Option<T> {
    if found.is_none() {
        let here = Location::caller();
        // Tests that run one after the other all have the name of the only thread.
        let name = thread::current().name().filter(|name| *name != "main").map(str::to_owned);
        let name = name.unwrap_or_else(|| format!("{}:{}", here.file(), here.line()));
        let _ = std::io::stderr().write_all(format!("skipped: {name}: no {lacks}\n").as_bytes());
    }
    found
}
