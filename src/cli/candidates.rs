//! Candidates: a short list of sessions to choose from when a word is ambiguous or a folder has no sessions.

use undertext::report::Line;
use undertext::store::{Listed, SessionFilter};
use undertext::verbs::{Archive, SessionError};

use super::{CommandError, Context, common};
use crate::render::style::Styles;
use crate::render::table::{Cell, Label, Left, Table};

/// Maximum number of listed sessions.
const LISTED: usize = 5;
/// The list's indentation.
const INDENT: &str = "  ";

/// Returns the error for an ambiguous word, or for a folder without sessions, with the candidates.
pub(super) fn which_session(
    context: &Context,
    archive: &Archive,
    error: SessionError,
) -> CommandError {
    let newest = || archive.sessions(&SessionFilter::default()).unwrap_or_default();
    let (words, found) = match &error {
        SessionError::AmbiguousSession { matches, .. } => {
            ("type more characters of one of these", matches.clone())
        }
        _ => ("name a session, such as", newest()),
    };
    if found.is_empty() {
        return error.into();
    }
    let more = found.len().saturating_sub(LISTED);
    let list = list_candidates(context, archive, found.get(..LISTED).unwrap_or(&found));
    let is_ambiguous = matches!(error, SessionError::AmbiguousSession { .. });
    let error = if is_ambiguous { CommandError::user(error) } else { CommandError::absent(error) };
    let error = error.hinted(format!("{words}:\n{list}"));
    if more == 0 {
        return error;
    }
    error.hinted(Line::new("sessions").to(format!("{more} more")))
}

/// Formats one line per session, beginning with a word that names it.
pub(super) fn list_candidates(context: &Context, archive: &Archive, sessions: &[Listed]) -> String {
    let now = context.env.ambient().now();
    let mut table = Table::new([Left; 4]);
    for Listed { name, card, .. } in sessions {
        let session = archive.session(name).ok().flatten();
        let id = session.and_then(|session| context.short_name(archive, &session).ok());
        let age = card.active.map(|active| context.env.zone.age(now, active));
        let folder = card.folder.as_deref().map(|folder| context.env.homely(folder.as_ref()));
        table.row([
            Cell::new(Label::Plain, id.as_deref().unwrap_or(&name.id)),
            Cell::new(Label::Plain, &age.unwrap_or_default()),
            Cell::new(Label::Plain, &common::end_of(&folder.unwrap_or_default(), 24)),
            Cell::new(Label::Plain, &common::titled(card.title.as_deref())),
        ]);
    }
    let mut list = Vec::new();
    let width = context.output.columns().saturating_sub(INDENT.len());
    let _ = table.write(&mut list, Styles::PLAIN, Some(width));
    let list = String::from_utf8_lossy(&list);
    let lines = list.lines().map(|line| format!("{INDENT}{line}"));
    lines.collect::<Vec<_>>().join("\n")
}
