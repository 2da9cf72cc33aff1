//! `audit --secrets`: lists what looks like a secret, and where it is.

use std::ffi::OsStr;
use std::io::Write as _;

use undertext::model::SessionName;
use undertext::report::{Report, Secret, SecretPlace, Secrets};
use undertext::verbs::{self, Archive, Suspects};

use super::common::counted;
use super::{CommandError, Context, Exit, archive, settings};
use crate::render::search::describe_place;
use crate::render::table::{Cell, Label, Left, Table};
use crate::render::units::{DIGITS, grouped};

/// Maximum number of names listed in an error.
const LISTED: usize = 5;

/// Parses the name of a rule.
pub(super) fn rule(name: &str) -> Result<String, String> {
    let rules = verbs::secret_rules();
    if rules.contains(&name) {
        return Ok(name.to_owned());
    }
    let mut parts = name.split('-').filter(|part| part.len() > 2);
    let near = |part: &str| -> Vec<&str> {
        rules.iter().copied().filter(|rule| rule.contains(part)).take(LISTED).collect()
    };
    let near = parts.find_map(|part| Some(near(part)).filter(|near| !near.is_empty()));
    Err(match near {
        Some(near) => format!("there is no such rule; similar names: {}", near.join(", ")),
        None => "there is no such rule".to_owned(),
    })
}

/// Searches all sessions, or the named one, for secrets.
pub(super) fn run(
    context: &mut Context,
    wanted: Option<&OsStr>,
    rules: &[String],
) -> Result<Exit, CommandError> {
    let allowed = settings::allowed(context)?;
    let (archive, session) = archive::find_or_all(context, wanted)?;
    let suspects = Suspects { session, rules: rules.to_vec(), allowed, ..Suspects::default() };
    let output = &mut context.output;
    let told = verbs::audit_secrets(&archive, &suspects, &mut |done, all| {
        output.steps("looking", done, all);
    })?;
    context.output.page()?;
    if !context.answer_all(&told.found)? {
        show(context, &archive, &told.found)?;
    }
    end(context, &archive, &told)
}

/// Prints a table of secrets for each rule, then the commands that show and redact the first one.
fn show(context: &mut Context, archive: &Archive, found: &[Secret]) -> Result<(), CommandError> {
    let mut rules: Vec<(&str, Vec<&Secret>)> = Vec::new();
    for secret in found {
        match rules.iter_mut().find(|(rule, _)| *rule == secret.rule) {
            Some((_, all)) => all.push(secret),
            None => rules.push((&secret.rule, vec![secret])),
        }
    }
    let heading = |rule: &str, n: usize| match n {
        1 => rule.to_owned(),
        n => format!("{rule}, {n} secrets"),
    };
    for (rule, found) in &rules {
        let heading = context.output.styles().paint(Label::Heading, &heading(rule, found.len()));
        writeln!(context.output, "{heading}")?;
        context.show(&places(found))?;
        writeln!(context.output)?;
    }
    if let Some(first) = found.iter().find_map(Secret::shown) {
        name(context, archive, &first.session)?;
        let read = first.show().map(|line| ("Read the first one", line));
        // Secrets in a file searched directly cannot be redacted in the store.
        let redact = Secret::redact(first).filter(|_| archive.root().is_some());
        let redact = redact.map(|line| ("Redact it", line));
        for (words, line) in read.into_iter().chain(redact) {
            let line = context.output.spell(&line);
            context.say(&format!("{words}: {line}"))?;
        }
    }
    Ok(())
}

/// Makes later command lines name a session.
fn name(context: &mut Context, archive: &Archive, name: &SessionName) -> Result<(), CommandError> {
    // A file searched directly keeps the name it was given.
    if let Some(session) = archive.session(name)?.filter(|_| archive.root().is_some()) {
        context.output.naming().session = Some(context.short_name(archive, &session)?.into());
    }
    Ok(())
}

/// Prints the result of the search.
fn end(context: &mut Context, archive: &Archive, told: &Secrets) -> Result<Exit, CommandError> {
    let exit = context.tell_unread_sessions(&told.unread)?;
    let exit = if told.found.is_empty() { exit } else { Exit::No };
    if context.answer(told)? {
        return Ok(if told.damaged > 0 { Exit::No } else { exit });
    }
    let sessions = counted(told.sessions, "session", "sessions");
    if told.found.is_empty() {
        context.output.note(&format!("Found nothing that looks like a secret in {sessions}"));
    } else {
        let one = "thing that looks like a secret";
        let found = counted(told.found.len() as u64, one, "things that look like secrets");
        context.output.note(&format!("{found} in {sessions}"));
    }
    if told.allowed > 0 {
        let places = counted(told.allowed, "place", "places");
        context.output.note(&format!("{places} not shown: your settings allow them"));
    }
    if told.damaged > 0 {
        let entries = counted(told.damaged, "entry is", "entries are");
        context.output.warn(&format!("{entries} damaged and could not be searched"));
    }
    if archive.root().is_some() {
        context.output.hints(told.hints());
    }
    Ok(if told.damaged > 0 { Exit::No } else { exit })
}

/// Columns: mask, place, description of the place, number of further places.
type Places = Table<4>;

/// Builds the table of the secrets that a rule found.
fn places(found: &[&Secret]) -> Places {
    let mut table = Table::new([Left; 4]).yielding(&[0]).keeping(0);
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
            return [
                format!("{session}{turn} {entry}"),
                format!("{}{summary}", describe_place(found)),
            ];
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
