//! Reads a line without echo, such as a secret. The terminal's modes are always restored, however the reading ends.
//!
//! A signal that would end this program, such as the one of ctrl-C, takes effect after the modes are restored.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag::register_conditional_default;
use signal_hook::low_level::{emulate_default_handler, pipe};

use super::env;

/// The signals that end a program at a terminal.
const SIGNALS: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// The terminal's original modes, restored on drop.
struct Before(Termios);

impl Before {
    /// Turns off echo, except for the end of the line.
    fn hide() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        hidden.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(io::stdin(), OptionalActions::Now, &hidden)?;
        Ok(Self(before))
    }
}

impl Drop for Before {
    fn drop(&mut self) {
        // A terminal that no longer exists needs no restoring.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

/// Calls `ask`, then reads a typed line without echo.
pub(crate) fn read_line(ask: impl FnOnce()) -> io::Result<Vec<u8>> {
    let is_over = Arc::new(AtomicBool::new(false));
    let mut told = Vec::new();
    for signal in SIGNALS {
        let (ours, handlers) = UnixStream::pair()?;
        // After the line is read, signals have their default effect again.
        register_conditional_default(signal, Arc::clone(&is_over))?;
        pipe::register(signal, handlers)?;
        told.push((signal, ours));
    }
    let before = Before::hide()?;
    ask();
    let read = wait(&told).and_then(|came| match came {
        None => env::read_typed().map(Ok),
        Some(signal) => Ok(Err(signal)),
    });
    drop(before);
    is_over.store(true, Ordering::SeqCst);
    read?.or_else(|signal| {
        emulate_default_handler(signal)?;
        Err(io::ErrorKind::Interrupted.into())
    })
}

/// Waits for a typed line or a signal. Returns the signal.
fn wait(told: &[(i32, UnixStream)]) -> io::Result<Option<i32>> {
    let stdin = io::stdin();
    loop {
        let signals = told.iter().map(|(_, ours)| PollFd::new(ours, PollFlags::IN));
        let mut all: Vec<PollFd<'_>> =
            signals.chain([PollFd::new(&stdin, PollFlags::IN)]).collect();
        match poll(&mut all, None) {
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => {
                let came = told.iter().zip(&all).find(|(_, polled)| !polled.revents().is_empty());
                return Ok(came.map(|((signal, _), _)| *signal));
            }
        }
    }
}
