//! Telling where a change of place took a session: which turns are kept where, which files are not as the context has them,
//! how the agent goes on, and how the change is undone.

use std::collections::BTreeMap;
use std::path::Path;

use undertext::ops::{self, Archive, Notice, Session};
use undertext::report::{Kept, Landing, Line, Report, Resume, Reverted, TouchedFile, Turn, Undone};
use undertext::wire;

use super::Context;
use super::common::counted;
use super::error::{CommandError, Exit};
use super::hint::quote;
use crate::render::safe;
use crate::render::units::DIGITS;

/// The end of the shape of a change that goes elsewhere, as its help has it.
macro_rules! landed {
    () => {
        ",
   \"before\":TURN just before which it stands or null, \"at\":the newest TURN of its context or null,
   \"kept\":{\"branch\":NAME or null, \"first\":N, \"last\":N, \"turns\":N} of turns that left it, or null,
   \"files\":[{\"path\":PATH, \"edits\":N}] that the agent changed in these,
   \"resume\":{\"folder\":PATH or null, \"command\":[WORD]} or null, \"dry_run\":BOOL}
TURN is {\"checkpoint\":N, \"words\":TEXT or null}"
    };
}
pub(super) use landed;

/// How many columns a turn's words take at most, and the names of files may always take.
const WIDEST: usize = 80;

/// A change of place, as far as it is told alike for all commands.
pub(crate) struct Gone<'a> {
    pub(crate) landing: &'a Landing,
    /// When the files were changed that are not restored.
    pub(crate) when: &'a str,
    /// The agent's own file, if it was written, and the one before it, if that has another name now.
    pub(crate) files: (Option<&'a Path>, Option<&'a Path>),
    /// The command that takes the change back.
    pub(crate) back: (&'static str, Line),
}

/// Tells what going back did; `to` is where, and `report` what programs are told.
pub(crate) fn tell_back(
    context: &mut Context,
    to: &str,
    changed: (&Archive, &Session),
    report: &impl Report,
    reverted: &Reverted,
) -> Result<Exit, CommandError> {
    context.tell(&reverted.notices);
    let (branch, landing) = (&reverted.branch, &reverted.landing);
    if context.answer_change(changed, report)? {
        return Ok(Exit::Yes);
    }
    if reverted.operation.is_none() {
        context.say(&format!("{branch} is {to} already, and nothing is changed"))?;
        return Ok(Exit::Yes);
    }
    let is = if landing.dry_run { "would be" } else { "is now" };
    context.say_turn(&format!("{branch} {is} "), to, landing.before.as_ref())?;
    if let Some(note) = reverted.note.filter(|_| !landing.dry_run) {
        context.say(&format!("The note for the model is {note:.DIGITS$}"))?;
    }
    if let (None, Some(left), 1..) = (&landing.kept, &reverted.left, reverted.dropped) {
        let (is, n) = (if reverted.dropped == 1 { "is" } else { "are" }, reverted.dropped);
        context.say(&format!("{} {is} kept on {left}", counted(n, "entry", "entries")))?;
    }
    let (written, rotated) = (reverted.written.as_deref(), reverted.rotated.as_deref());
    let back = ("Undo", Line::about("undo"));
    context.say_gone(changed, &Gone { landing, when: "since", files: (written, rotated), back })?;
    if rotated.is_none() && written.is_none() {
        context.output.note("The agent's own file is not changed");
        let file = context.free_name(changed)?;
        let export = Line::about("export").option("out", file);
        context.output.hint(export.to("to write this state to a file"));
    }
    Ok(Exit::Yes)
}

/// Tells what an undo or a redo did to a session, given whether lists left it out; `report` is what programs are told.
pub(crate) fn tell_undone(
    context: &mut Context,
    changed: (&Archive, &Session),
    report: &impl Report,
    (undone, was_hidden): (&Undone, bool),
) -> Result<Exit, CommandError> {
    context.tell(&undone.notices);
    if context.answer_change(changed, report)? {
        return Ok(Exit::Yes);
    }
    if undone.notices.iter().any(|notice| matches!(notice, Notice::Detached { .. })) {
        let attach = Line::about("attach").to("to have the session follow it, and changes written");
        context.output.hint(attach);
    }
    let landing = &undone.landing;
    let did = if landing.dry_run { "Would undo" } else { "Undid" };
    context.say(&format!("{did} operation {} ({})", undone.undoes, undone.command))?;
    let (archive, session) = changed;
    let is_hidden = archive.store().card(session.key)?.hidden;
    if is_hidden != was_hidden {
        let lists = if landing.dry_run { "Lists would" } else { "Lists now" };
        let words = if is_hidden { "leave the session out" } else { "show the session again" };
        context.say(&format!("{lists} {words}"))?;
    }
    if is_hidden && !was_hidden && !landing.dry_run {
        let show = Line::new("sessions").option("show", context.short_name(archive, session)?);
        context.output.hint(show.to("to show it in lists"));
    }
    let branch = archive.store().state(session.key)?.current().to_owned();
    let dry = ["would end with", "would be"];
    let words = if landing.dry_run { dry } else { ["now ends with", "is now"] };
    context.say_end(&branch, words, landing)?;
    if landing.kept.is_none() && !undone.left.is_empty() {
        context.say(&format!("What came after it is kept on {}", undone.left.join(", ")))?;
    }
    let back = match report.kind() {
        "redo" => ("Undo", Line::about("undo").option("op", undone.original.to_string())),
        _ => ("Redo", Line::about("redo")),
    };
    let files = (undone.written.as_deref(), undone.rotated.as_deref());
    context.say_gone(changed, &Gone { landing, when: "in what it no longer sees", files, back })?;
    Ok(Exit::Yes)
}

/// Returns where a place is that was named by a checkpoint or an entry.
pub(crate) fn place(reverted: &Reverted, wanted: &str) -> String {
    match (reverted.checkpoint, &reverted.landing.before) {
        (Some(n), Some(_)) => format!("just before @{n}"),
        (Some(n), None) => format!("at @{n}"),
        // The branch stands at the note, and that behind the place.
        (None, _) if reverted.note.is_some() => format!("at {wanted}, and the note behind it"),
        (None, _) => {
            let entry = reverted
                .entry
                .map_or_else(|| "the start".to_owned(), |id| format!("{id:.DIGITS$}"));
            if entry.starts_with(wanted) || wanted.starts_with(&entry) {
                format!("at {entry}")
            } else {
                format!("at {wanted} ({entry})")
            }
        }
    }
}

impl Context {
    /// Tells with which turn the current branch ends; `head` is the branch, as the beginning of a sentence.
    pub(crate) fn say_end(
        &mut self,
        head: &str,
        [ends, is]: [&str; 2],
        landing: &Landing,
    ) -> Result<(), CommandError> {
        match &landing.at {
            Some(turn) => {
                let to = format!("@{}", turn.checkpoint);
                self.say_turn(&format!("{head} {ends} "), &to, Some(turn))
            }
            None if landing.is_begun => self.say(&format!("{head} {is} before its first turn")),
            None => self.say(&format!("{head} {is} at the start")),
        }
    }

    /// Tells a place with the words of a turn, on one line.
    fn say_turn(&mut self, head: &str, to: &str, turn: Option<&Turn>) -> Result<(), CommandError> {
        let head = format!("{head}{to}");
        let Some(words) = turn.and_then(|turn| turn.words.as_deref()) else {
            return self.say(&head);
        };
        let room = self.output.columns().min(WIDEST).saturating_sub(safe::width(&head) + 3);
        let words = safe::line(words);
        self.say(&format!("{head} \"{}\"", safe::clip(&words, room)))
    }

    /// Tells what a change of place left behind, and how to go on.
    pub(crate) fn say_gone(
        &mut self,
        (archive, session): (&Archive, &Session),
        gone: &Gone<'_>,
    ) -> Result<(), CommandError> {
        let Gone { landing, when, files: (written, rotated), back: (name, back) } = gone;
        if let Some(kept) = &landing.kept {
            self.say(&describe(kept, landing.dry_run))?;
        }
        if !landing.files.is_empty() {
            let folder = archive.store().card(session.key)?.folder;
            let edits: u64 = landing.files.iter().map(|file| file.edits).sum();
            let (head, tail) = (
                format!("Changed by the agent {when} and not restored: "),
                format!(" ({})", counted(edits, "edit", "edits")),
            );
            let mut named: BTreeMap<&str, usize> = BTreeMap::new();
            for file in &landing.files {
                *named.entry(name_of(&file.path)).or_default() += 1;
            }
            let paths = landing.files.iter().map(|TouchedFile { path, .. }| {
                let whole = Path::new(path);
                match folder.as_ref().and_then(|folder| whole.strip_prefix(folder).ok()) {
                    Some(_) if named.get(name_of(path)) == Some(&1) => {
                        safe::line(name_of(path)).into_owned()
                    }
                    Some(below) => safe::path(below),
                    None => self.env.homely(whole),
                }
            });
            let paths: Vec<String> = paths.collect();
            let room = self.output.columns().max(WIDEST).saturating_sub(head.len() + tail.len());
            self.say(&format!("{head}{}{tail}", some_of(&paths, room)))?;
        }
        if let (Some(_), Some(rotated), false) = (written, rotated, landing.dry_run) {
            let path = self.env.homely(rotated);
            self.say(&format!("The previous file is kept as {path}"))?;
        }
        if landing.dry_run {
            return self.say("Nothing is changed: this was a dry run");
        }
        if let Some(resume) = landing.resume.as_ref().filter(|_| written.is_some()) {
            let line = self.spell_resume(resume);
            self.say(&format!("Resume:  {line}"))?;
            if let Some(ended) = ended(session) {
                self.output.warn(ended);
            }
        } else if written.is_some() && ops::is_unsaid(archive, session)? {
            self.say("Its agent cannot resume it: the file holds no message now; start a new session, or undo")?;
        }
        let line = self.output.spell(back);
        self.say(&format!("{name}:    {line}"))
    }

    /// Returns the command that starts an agent in a session, as a shell reads it.
    pub(crate) fn spell_resume(&self, resume: &Resume) -> String {
        let command: Vec<String> = resume.command.iter().map(|word| quote(word.as_ref())).collect();
        let command = command.join(" ");
        match resume.folder.as_deref().filter(|folder| *folder != self.env.current_dir) {
            Some(folder) => {
                // A folder that begins with a dash would be an option.
                let is_like_one = folder.as_os_str().as_encoded_bytes().starts_with(b"-");
                let to = if is_like_one { "cd --" } else { "cd" };
                format!("{to} {} && {command}", self.homely_word(folder))
            }
            None => command,
        }
    }

    /// Returns a path as a shell reads it, short where it lies at home.
    fn homely_word(&self, path: &Path) -> String {
        let (short, whole) = (self.env.homely(path), quote(path.as_os_str()));
        match short.strip_prefix("~/") {
            Some(below) if quote(below.as_ref()) == below => short,
            _ => whole,
        }
    }
}

/// Returns what to know before the agent of a session is started, if its newest version resumes nothing.
pub(super) fn ended(session: &Session) -> Option<&'static str> {
    wire::by_name(&session.name.format)?.traits().ended
}

/// Returns the last part of a path.
fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Says which turns left the context, and which branch keeps them.
fn describe(kept: &Kept, is_dry: bool) -> String {
    let Kept { branch, first, last, turns } = kept;
    let numbers = if first == last { format!("@{first}") } else { format!("@{first} to @{last}") };
    // An agent's own checkpoints also stand within a turn.
    let turns = match turns {
        0 => String::new(),
        _ => format!(" ({})", counted(*turns, "turn", "turns")),
    };
    let is = match (is_dry, first == last) {
        (true, _) => "would be",
        (false, true) => "is",
        (false, false) => "are",
    };
    match branch {
        Some(branch) => format!("{numbers}{turns} {is} kept on {branch}"),
        None => format!("{numbers}{turns} {is} no longer in the context"),
    }
}

/// Returns the first of some names, as many as fit, and how many there are beyond them.
fn some_of(names: &[String], room: usize) -> String {
    let all = names.join(", ");
    if safe::width(&all) <= room {
        return all;
    }
    let (mut shown, mut n) = (String::new(), 0);
    for name in names {
        let more = if n == 0 { name.clone() } else { format!("{shown}, {name}") };
        if n > 0 && safe::width(&more) + " and 999 more".len() > room {
            break;
        }
        (shown, n) = (more, n + 1);
    }
    match names.len() - n {
        0 => shown,
        left => format!("{shown} and {left} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_names_as_fit_are_told() {
        let names = ["a.rs", "b.rs", "c.rs"].map(str::to_owned);
        assert_eq!(some_of(&names, 20), "a.rs, b.rs, c.rs");
        assert_eq!(some_of(&names, 15), "a.rs and 2 more");
        assert_eq!(some_of(&names[..1], 1), "a.rs");
    }
}
