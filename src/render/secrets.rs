//! What looks like a secret: its rule, where it stands, and the commands that show it and take it out. Never the secret.

use std::io::{self, Write};

use undertext::report::{Secret, SecretPlace, Spot};

use super::search::stands;
use super::style::{Label, Styles};
use super::{
    safe,
    units::{self, DIGITS},
};

/// How many places are told, each in a line.
const PLACES: usize = 3;

/// Writes what is known of a secret, behind an empty line if it is not the first.
pub(crate) fn secret(
    out: &mut dyn Write,
    secret: &Secret,
    commands: &[String],
    (styles, room, is_next): (Styles, usize, bool),
) -> io::Result<()> {
    if is_next {
        writeln!(out)?;
    }
    let size = match secret.characters {
        1 => "1 character".to_owned(),
        n => format!("{} characters", units::grouped(n as u64)),
    };
    let size = styles.paint(Label::Dim, &format!(", {size}"));
    writeln!(out, "{}{size}", styles.paint(Label::Heading, &safe::line(&secret.rule)))?;
    for place in secret.places.iter().take(PLACES) {
        writeln!(out, "  {}", place_line(place, styles, room.saturating_sub(2)))?;
    }
    let more = secret.places.len().saturating_sub(PLACES);
    if more > 0 {
        let more = format!("  and in {more} more {}", if more == 1 { "place" } else { "places" });
        writeln!(out, "{}", styles.paint(Label::Dim, &more))?;
    }
    for command in commands {
        writeln!(out, "  {}", styles.paint(Label::Hint, command))?;
    }
    Ok(())
}

/// Returns a place as a line: the session, the turn, where it stands, and the session's title as far as there is room.
fn place_line(place: &SecretPlace, styles: Styles, room: usize) -> String {
    let id: String = place.session.id.chars().take(8).collect();
    let id = safe::line(&id).into_owned();
    let (entry, place_words) = match &place.spot {
        Spot::Entry { found, is_summary } => {
            let turn = found.turn.map(|turn| format!("@{turn} ")).unwrap_or_default();
            let id = found.entry.map(|id| format!("{id:.DIGITS$}"));
            let turn = format!("{turn}{}", id.as_deref().unwrap_or("?"));
            let summary = if *is_summary { ", in a summary" } else { "" };
            (turn, format!("{}{summary}", stands(found)))
        }
        Spot::Kept { path } => (String::new(), format!("in {}, kept whole", safe::line(path))),
        Spot::Unfinished { operation } => {
            (String::new(), format!("in a line that operation {operation} read unfinished"))
        }
        Spot::Given { operation } => {
            (String::new(), format!("in a note or name of yours, operation {operation}"))
        }
    };
    let title = place.title.as_deref().map(|title| format!("  {}", safe::line(title)));
    let head = if entry.is_empty() { format!("{id}  ") } else { format!("{id}  {entry}  ") };
    let words = safe::clip(&place_words, room.saturating_sub(safe::width(&head)));
    let left = room.saturating_sub(safe::width(&head) + safe::width(&words));
    let title = title.map(|title| safe::clip(&title, left).into_owned()).unwrap_or_default();
    let head = styles.paint(Label::Id, &head);
    format!("{head}{words}{}", styles.paint(Label::Dim, &title))
}
