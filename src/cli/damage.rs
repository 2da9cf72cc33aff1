//! Damage: how a reading command names the entries that it could not read.

use undertext::ops::Damaged;
use undertext::report::{DamagedSession, Hint};

use super::Context;
use super::error::{CommandError, Exit};
use crate::render::units::DIGITS;

impl Context {
    /// Names damaged entries, and returns how a command ends that went on behind them.
    pub(crate) fn tell_damaged(&mut self, damaged: &[Damaged]) -> Result<Exit, CommandError> {
        if !self.answer_all(damaged)? {
            for Damaged { entry, problem } in damaged {
                self.output.warn(&format!("entry {entry:.DIGITS$} is damaged: {problem}"));
            }
        }
        Ok(self.end(damaged.is_empty()))
    }

    /// Names damaged sessions, and returns how a command ends that went on behind them.
    pub(crate) fn tell_damaged_sessions(
        &mut self,
        damaged: &[DamagedSession],
    ) -> Result<Exit, CommandError> {
        if !self.answer_all(damaged)? {
            for DamagedSession { name, problem } in damaged {
                let id = &name.id;
                self.output.warn(&format!("session {id} ({}) is damaged: {problem}", name.format));
            }
        }
        Ok(self.end(damaged.is_empty()))
    }

    fn end(&mut self, is_whole: bool) -> Exit {
        if is_whole {
            return Exit::Yes;
        }
        self.output.hint(Hint::mend());
        Exit::No
    }
}
