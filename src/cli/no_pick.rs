//! Picking in a build without the feature `browse`: nothing is asked, and commands answer as they do without a terminal.

use std::ffi::OsStr;

use undertext::verbs::{Archive, Session, SessionError};

use super::revert::{Side, no_place};
use super::{CommandError, Context};

#[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the other build asks")]

pub(crate) fn may_pick(_context: &Context) -> bool {
    false
}

pub(super) fn pick_session(
    _context: &mut Context,
    _archive: &Archive,
    _wanted: Option<&OsStr>,
    _error: &SessionError,
) -> Result<Option<Session>, CommandError> {
    Ok(None)
}

pub(super) fn pick_place(
    _context: &mut Context,
    _wanted: Option<&OsStr>,
    _side: Side,
) -> Result<String, CommandError> {
    Err(no_place())
}
