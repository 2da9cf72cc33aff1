//! Suspected secrets: a table per rule, with each secret's mask and place.

use undertext::report::{Secret, SecretPlace};

use super::search::stands;
use super::style::Label;
use super::table::{Align, Cell, Table};
use super::units::{DIGITS, grouped};

/// Columns: mask, place, description of the place, number of further places.
pub(crate) type Places = Table<4>;

/// Builds the table of the secrets that a rule found.
pub(crate) fn places(found: &[&Secret]) -> Places {
    let mut table = Table::new([Align::Left; 4]).yielding(&[0]).keeping(0);
    for secret in found {
        let [place, words] = secret.places.first().map(place).unwrap_or_default();
        let more = match secret.places.len() {
            0 | 1 => String::new(),
            n => format!("{} more", grouped(n as u64 - 1)),
        };
        table.row([
            Cell::new(Label::Plain, &secret.masked),
            Cell::new(Label::Id, &place),
            Cell::new(Label::Plain, &words),
            Cell::new(Label::Dim, &more),
        ]);
    }
    table
}

/// Returns a place as session, turn and entry, and a description of it.
fn place(place: &SecretPlace) -> [String; 2] {
    let session: String = place.session.id.chars().take(DIGITS).collect();
    let words = match (&place.found, &place.file, place.operation) {
        (Some(found), ..) => {
            let turn = found.turn.map(|turn| format!(" @{turn}")).unwrap_or_default();
            let entry = found.entry.map(|id| format!("{id:.DIGITS$}"));
            let entry = entry.as_deref().unwrap_or("?");
            let summary = if place.is_summary { ", in a summary" } else { "" };
            return [format!("{session}{turn} {entry}"), format!("{}{summary}", stands(found))];
        }
        (_, Some(path), _) => format!("in {path}, kept whole"),
        (.., operation) => {
            let operation = operation.unwrap_or_default();
            if place.is_unfinished {
                format!("in an unfinished line that operation {operation} read")
            } else {
                format!("in one of your notes or names, operation {operation}")
            }
        }
    };
    [session, words]
}
