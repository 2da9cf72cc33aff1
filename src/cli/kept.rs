//! What of long work is kept if a signal ends this program, as ctrl-C does: a guard at the other end of a pipe, which closes
//! with this program, tells it then.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

/// The guard: it reads lines until this program has ended, and says the last of them unless that is empty.
const GUARD: &str = r#"kept=; while IFS= read -r line; do kept=$line; done
[ -z "$kept" ] || printf '\n%s\n' "$kept" >&2"#;

/// Tells what is kept unless this value is dropped.
pub(crate) struct Kept(Option<Child>);

impl Kept {
    /// Begins to watch over this program. A machine that has no room for the guard does the work all the same.
    pub(crate) fn watch() -> Self {
        let mut guard = Command::new("/bin/sh");
        // In a group of its own, ctrl-C does not reach it.
        guard.args(["-c", GUARD]).process_group(0).stdin(Stdio::piped()).stdout(Stdio::null());
        Self(guard.spawn().ok())
    }

    /// Says what is kept from now on, in one line.
    pub(crate) fn tell(&mut self, line: &str) {
        if let Some(pipe) = self.0.as_mut().and_then(|guard| guard.stdin.as_mut()) {
            let _ = writeln!(pipe, "{line}");
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.tell("");
        if let Some(mut guard) = self.0.take() {
            drop(guard.stdin.take());
            let _ = guard.wait();
        }
    }
}
