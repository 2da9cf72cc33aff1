//! Converts the library's errors to command errors. The kind decides the exit code.

use undertext::{
    report::Hint,
    store::{ErrorKind, Listed, StoreError},
    verbs::{self, OpsError, SessionError, SyncError},
};

use super::{
    common,
    error::{CommandError, Kind},
};
use crate::render::time::Zone;

/// Maximum number of sessions listed in an error.
const LISTED: usize = 8;

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        OpsError::from(error).into()
    }
}

impl From<SessionError> for CommandError {
    fn from(error: SessionError) -> Self {
        OpsError::from(error).into()
    }
}

impl From<SyncError> for CommandError {
    fn from(error: SyncError) -> Self {
        OpsError::from(error).into()
    }
}

impl From<OpsError> for CommandError {
    fn from(error: OpsError) -> Self {
        let kind = match error.kind() {
            ErrorKind::User => Kind::User,
            ErrorKind::Absent => Kind::Absent,
            ErrorKind::Failed => Kind::Failed,
            ErrorKind::Newer => Kind::NewerStore,
        };
        let mut hints = error.hints();
        if let OpsError::Session(SessionError::AmbiguousSession { matches, .. }) = &error {
            hints.extend(candidates(matches));
        }
        let error = match error {
            // The verb writes to the output, whose reader may have closed it.
            OpsError::Session(SessionError::Write { source }) => return source.into(),
            OpsError::Store(source) => CommandError::new(kind, source),
            error => CommandError::new(kind, error),
        };
        hints.into_iter().fold(error, CommandError::hinted)
    }
}

/// Lists the sessions that may be meant, each as you can type it.
fn candidates(matches: &[Listed]) -> impl Iterator<Item = Hint> {
    let is_shared = |id: &str| matches.iter().filter(|other| other.name.id == id).count() > 1;
    let shown = matches.iter().take(LISTED).map(move |Listed { name, card, .. }| {
        let format = if is_shared(&name.id) { format!("{}:", name.format) } else { String::new() };
        let title = card.title.as_deref().map(common::first_line).unwrap_or_default();
        let title = verbs::shortened(title);
        let active = card.active.map(|active| format!(", {}", Zone::Local.minute(active)));
        let active = active.unwrap_or_default();
        format!("{format}{}  {title}  ({}{active})", name.id, name.format).into()
    });
    let more = matches.len().saturating_sub(LISTED);
    shown.chain((more > 0).then(|| format!("{more} more").into()))
}
