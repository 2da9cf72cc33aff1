//! Picking in a build without the feature `browse`: nothing is asked, and commands answer as they do without a terminal.

use std::ffi::OsStr;

use undertext::verbs::{Archive, Session, SessionError};

use super::Context;
use super::error::CommandError;
use super::revert::Side;

#[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the other build asks")]
impl Context {
    pub(crate) fn may_pick(&self) -> bool {
        false
    }

    pub(super) fn pick_session(
        &mut self,
        _archive: &Archive,
        _wanted: Option<&OsStr>,
        _error: &SessionError,
    ) -> Result<Option<Session>, CommandError> {
        Ok(None)
    }

    pub(super) fn pick_place(
        &mut self,
        _wanted: Option<&OsStr>,
        _side: Side,
    ) -> Result<String, CommandError> {
        Err(Self::no_place())
    }
}
