//! Damage: how a reading command reports entries that it could not read.

use undertext::report::{Hint, UnreadPart, UnreadSession};
use undertext::verbs::Damaged;

use super::Context;
use super::error::{CommandError, Exit};
use crate::render::units::DIGITS;

impl Context {
    /// Reports damaged entries, and returns the exit code of a command that continued after them.
    pub(crate) fn tell_damaged(&mut self, damaged: &[Damaged]) -> Result<Exit, CommandError> {
        if !self.answer_all(damaged)? {
            for Damaged { entry, problem } in damaged {
                let id = entry.map(|id| format!("entry {id:.DIGITS$}"));
                let entry = id.as_deref().unwrap_or("an entry without an id");
                self.output.warn(&format!("{entry} is damaged: {problem}"));
            }
        }
        Ok(self.end(damaged.is_empty()))
    }

    /// Reports sessions that could not be read in full, and returns the exit code of a command that continued after them.
    pub(crate) fn tell_unread_sessions(
        &mut self,
        unread: &[UnreadSession],
    ) -> Result<Exit, CommandError> {
        if !self.answer_all(unread)? {
            for UnreadSession { name, part, problem } in unread {
                let (id, format) = (&name.id, &name.format);
                let what = match part {
                    UnreadPart::Stored => "is damaged",
                    UnreadPart::LiveFile => "is shown as stored: its file cannot be read",
                };
                self.output.warn(&format!("session {id} ({format}) {what}: {problem}"));
            }
        }
        let damaged = unread.iter().any(|session| session.part == UnreadPart::Stored);
        let whole = self.end(!damaged);
        Ok(if unread.is_empty() { whole } else { Exit::No })
    }

    /// Returns the exit code: failure, with a hint, if the command skipped damage.
    pub(super) fn end(&mut self, is_whole: bool) -> Exit {
        if is_whole {
            return Exit::Yes;
        }
        self.output.hint(Hint::mend());
        Exit::No
    }
}
