//! Runs a command with all its input at once and reads its output to the end, within limits.
//!
//! The command gets its own process group, which is killed when the time is up, when it prints too much, when it is done, and
//! when this program ends, by whichever signal. So nothing that it started survives, except a process that made itself a
//! new session. A guard process kills the group if this program ends: it waits at the other end of a pipe, which closes then.

use std::{
    io::{self, Read, Write},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

/// How many bytes of its stderr are kept.
const MAX_ERRORS: usize = 64 * 1024;

/// How long to wait for output after the command itself has ended.
const GRACE: Duration = Duration::from_millis(200);

/// How long to wait for the end of the output after everything was killed: on a busy machine the reader is late, and a process
/// that made itself a new session may keep the pipe open forever.
const LAST: Duration = Duration::from_secs(5);

/// A command and its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// A command line for `sh`.
    pub line: String,
    /// The folder to run it in, if not the current one.
    pub folder: Option<PathBuf>,
    /// The time limit.
    pub limit: Duration,
    /// The maximum size of its output in bytes.
    pub max_bytes: usize,
}

/// The outcome of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// Its stdout.
    pub output: Vec<u8>,
    /// Its stderr.
    pub errors: String,
    /// Its exit code; None if it was killed.
    pub code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
}

impl Done {
    /// Returns a text that says how it ended, with its stderr if there is any.
    pub fn said(&self, end: &str) -> String {
        match self.errors.trim() {
            "" => end.to_owned(),
            errors => format!("{end}: {errors}"),
        }
    }
}

/// Why a command did not run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// It could not be started or waited for.
    #[error("cannot run")]
    Io(#[from] io::Error),
    /// The time was up.
    #[error("it did not finish within {0:.0?}")]
    TimedOut(Duration),
    /// It printed too much.
    #[error("it printed more than {0} bytes")]
    TooMuch(usize),
}

/// The script of a group's guard: it reads the number of the group, waits until this program has ended, and kills the group.
const GUARD: &str = r#"read -r group && { read -r _; kill -KILL "-$group"; }"#;

/// A process group that is killed when this value is dropped, or when this program ends without dropping it.
struct Group {
    child: Child,
    guard: Option<Child>,
}

impl Group {
    /// Runs a command in its own group. Its guard starts first, and then only needs the group's number.
    fn spawn(command: &mut Command) -> io::Result<Self> {
        let mut guard = Command::new("/bin/sh");
        guard.args(["-c", GUARD]).process_group(0);
        guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // If the machine cannot start the guard, the command runs without it.
        let mut guard = guard.spawn().ok();
        let child = command.process_group(0).spawn();
        let told = guard.as_mut().and_then(|guard| guard.stdin.as_mut()).zip(child.as_ref().ok());
        if let Some((pipe, child)) = told {
            let _ = writeln!(pipe, "{}", child.id());
        }
        match child {
            Ok(child) => Ok(Self { child, guard }),
            Err(error) => {
                guard.as_mut().map(end);
                Err(error)
            }
        }
    }
}

/// Ends a guard before it does anything.
fn end(guard: &mut Child) {
    let _ = guard.kill();
    let _ = guard.wait();
}

impl Drop for Group {
    fn drop(&mut self) {
        // End the guard first: after waiting for the command, another process may get its number.
        self.guard.as_mut().map(end);
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// Runs a command.
pub fn run(task: &Task, input: &[u8]) -> Result<Done, RunError> {
    let start = Instant::now();
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &task.line]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(folder) = &task.folder {
        command.current_dir(folder);
    }
    let mut group = Group::spawn(&mut command)?;
    let child = &mut group.child;
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_vec();
        // A command that does not read its input has not failed. Its output decides.
        thread::Builder::new().spawn(move || drop(stdin.write_all(&input)))?;
    }
    let output = child.stdout.take().map(|pipe| collect(pipe, task.max_bytes + 1)).transpose()?;
    let errors = child.stderr.take().map(|pipe| collect(pipe, MAX_ERRORS)).transpose()?;

    let mut pause = Duration::from_millis(1);
    let mut printed = None;
    let mut ended = None;
    let status = loop {
        let left = task.limit.saturating_sub(start.elapsed());
        // Wait for the end of the output and check the process in between: a process that it started may keep the pipe open.
        match (&output, &printed) {
            (Some(output), None) => printed = output.recv_timeout(pause.min(left)).ok(),
            _ => thread::sleep(pause.min(left)),
        }
        pause = (pause * 2).min(Duration::from_millis(20));
        if printed.as_ref().is_some_and(|printed: &Vec<u8>| printed.len() > task.max_bytes) {
            return Err(RunError::TooMuch(task.max_bytes));
        }
        if let Some(status) = group.child.try_wait()? {
            let ended = ended.get_or_insert_with(Instant::now);
            if printed.is_some() || ended.elapsed() >= GRACE {
                break status;
            }
        }
        if left.is_zero() {
            return Err(RunError::TimedOut(task.limit));
        }
    };
    drop(group);
    let last = |pipe: Option<Receiver<Vec<u8>>>| {
        pipe.and_then(|pipe| pipe.recv_timeout(LAST).ok()).unwrap_or_default()
    };
    let output = printed.unwrap_or_else(|| last(output));
    let errors = String::from_utf8_lossy(&last(errors)).into_owned();
    Ok(Done { output, errors, code: status.code(), signal: status.signal() })
}

/// Reads a pipe to its end, or up to this many bytes, and sends the bytes.
fn collect(pipe: impl Read + Send + 'static, most: usize) -> io::Result<Receiver<Vec<u8>>> {
    let (send, receive) = mpsc::channel();
    thread::Builder::new().spawn(move || {
        let mut bytes = Vec::new();
        let mut pipe = pipe.take(most as u64);
        let _ = pipe.read_to_end(&mut bytes);
        // A receiver that gave up no longer listens.
        let _ = send.send(bytes);
        // Read the rest too, so that a few bytes too many do not kill the command with a closed pipe.
        let _ = io::copy(pipe.get_mut(), &mut io::sink());
    })?;
    Ok(receive)
}
