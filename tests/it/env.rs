//! `TestEnv`: a home of its own, an empty environment, and a pinned width, clock and chance, so that
//! a command says the same on every machine.
//!
//! Invariant: each command starts one second after the one before, with uuids of its own.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// How long a command may take: what waits without end fails its own test, and on a busy machine no other one does.
const LIMIT: Duration = Duration::from_secs(300);
/// 2001-02-03 04:05:06 UTC, in Unix milliseconds.
const START: u64 = 981_173_106_000;

/// A machine to run commands on: `$HOME`, with the current folder `$HOME/project`.
pub(crate) struct TestEnv {
    /// Ends with it.
    _folder: TempDir,
    /// The folder, without the links on the way there.
    home: PathBuf,
    commands: Cell<u64>,
}

/// What a command said, with the home's path as `$HOME`.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    status: ExitStatus,
}

impl TestEnv {
    /// Returns a machine with an empty project.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let env = Self { _folder: folder, home, commands: Cell::new(0) };
        fs::create_dir(env.project()).unwrap();
        env
    }

    /// Returns the home folder.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// Returns the folder that commands run in.
    pub(crate) fn project(&self) -> PathBuf {
        self.home().join("project")
    }

    /// Runs `undertext` with nothing on stdin.
    #[track_caller]
    #[must_use = "what a command said and how it ended is what a test is for: call .success(), or compare it"]
    pub(crate) fn run<A: AsRef<OsStr>>(&self, args: &[A]) -> CommandOutput {
        self.run_with_stdin(args, b"")
    }

    /// Runs `undertext` with these bytes on stdin, and panics if it does not end.
    #[track_caller]
    #[must_use = "what a command said and how it ended is what a test is for: call .success(), or compare it"]
    pub(crate) fn run_with_stdin<A: AsRef<OsStr>>(
        &self,
        args: &[A],
        stdin: &[u8],
    ) -> CommandOutput {
        let mut command = self.command();
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let process = Pid::from_child(&child);
        let (ended, end) = mpsc::channel::<()>();
        let (output, is_late) = thread::scope(|scope| {
            // A command may well end without reading its input.
            scope.spawn(move || pipe.write_all(stdin));
            let watch = scope.spawn(move || {
                let is_late = end.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout);
                is_late && kill_process(process, Signal::KILL).is_ok()
            });
            let output = child.wait_with_output().unwrap();
            drop(ended);
            (output, watch.join().unwrap())
        });
        assert!(!is_late, "it did not end within {LIMIT:?}: {command:?}");
        CommandOutput {
            stdout: self.anonymous(&output.stdout),
            stderr: self.anonymous(&output.stderr),
            status: output.status,
        }
    }

    /// Returns the next command, for tests that need a process of their own or more environment.
    pub(crate) fn command(&self) -> Command {
        let n = self.commands.get();
        self.commands.set(n + 1);
        let mut command = Command::new(env!("CARGO_BIN_EXE_undertext"));
        command
            .current_dir(self.project())
            .env_clear()
            .env("HOME", self.home())
            .env("USER", "test-user")
            .env("COLUMNS", "100")
            .env("TZ", "UTC")
            .env("UNDERTEXT_TEST_CLOCK", (START + 1000 * n).to_string())
            .env("UNDERTEXT_TEST_SEED", n.to_string());
        command
    }

    /// Returns a shell that runs a line in which `undertext` is this build, as the next command.
    #[expect(
        clippy::disallowed_methods,
        reason = "the shell's own commands lie where the machine says"
    )]
    pub(crate) fn shell(&self, program: &str, line: &str) -> Command {
        let undertext = self.command();
        let folder = Path::new(undertext.get_program()).parent().unwrap();
        let system = std::env::var_os("PATH").unwrap();
        let path = [folder.to_owned()].into_iter().chain(std::env::split_paths(&system));
        let mut shell = Command::new(program);
        shell
            .args(["-c", line])
            .current_dir(self.project())
            .env_clear()
            .envs(undertext.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .env("PATH", std::env::join_paths(path).unwrap());
        shell
    }

    fn anonymous(&self, output: &[u8]) -> String {
        String::from_utf8_lossy(output).replace(self.home().to_str().unwrap(), "$HOME")
    }
}

impl CommandOutput {
    /// Hides the ids of entries and operations, which cover the path of the home folder.
    pub(crate) fn masked(mut self) -> Self {
        for text in [&mut self.stdout, &mut self.stderr] {
            *text = masked(text);
        }
        self
    }

    /// Returns the exit code.
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Asserts that the command did what it was asked, or said yes.
    #[track_caller]
    pub(crate) fn success(self) -> Self {
        assert!(self.status.success(), "{self}");
        self
    }

    /// Asserts that the command did its work and said no, which is exit code 1.
    #[track_caller]
    pub(crate) fn said_no(self) -> Self {
        assert_eq!(self.code(), Some(1), "{self}");
        self
    }
}

impl fmt::Display for CommandOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.stdout)?;
        if !self.stderr.is_empty() {
            write!(f, "------- stderr -------\n{}", self.stderr)?;
        }
        match self.status.code() {
            Some(0) => Ok(()),
            Some(code) => writeln!(f, "[exit status: {code}]"),
            None => writeln!(f, "[{}]", self.status),
        }
    }
}

/// Returns a signal that ends what a test begins: TERM in the place of one that these tests ignore themselves, as what a shell
/// has in the background may.
pub(crate) fn ending(signal: Signal) -> Signal {
    let ignored = format!("kill -{} $$", signal.as_raw());
    let is_ignored = Command::new("sh").args(["-c", &ignored]).status().unwrap().success();
    if is_ignored { Signal::TERM } else { signal }
}

/// Hides the ids of entries and operations in a text.
pub(crate) fn masked(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let is_id = matches!(word.len(), 8 | 64) && word.chars().all(|c| c.is_ascii_hexdigit());
        shown.push_str(if is_id { "entry-id" } else { word });
        let next = after.chars().next().map_or(0, char::len_utf8);
        shown.push_str(&after[..next]);
        rest = &after[next..];
    }
    shown
}
