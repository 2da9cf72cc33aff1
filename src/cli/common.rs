//! What several commands share: which session they work on, ids of entries, and how a change is told.

use std::ffi::OsString;
use std::path::Path;

use serde_json::{Value, json};
use undertext::model::EntryId;
use undertext::ops::{Archive, Kin, Manner, Reverted, Session, Undone};

use super::Context;
use super::archive::shown;
use super::error::{CommandError, Exit};
use crate::render::json;
use crate::render::table::Table;

/// How many digits of an entry's id people are shown.
pub(crate) const DIGITS: usize = 12;

/// The session of a command that has a noun of its own.
#[derive(Debug, clap::Args)]
pub(crate) struct Of {
    /// Work on this session: an id, its beginning, or a title; left out, the newest of this folder
    #[arg(short, long = "session", value_name = "SESSION")]
    pub(crate) session: Option<OsString>,
}

/// The session of a command about a session.
#[derive(Debug, clap::Args)]
pub(crate) struct About {
    /// An id, its beginning, or a title; left out, the newest session of this folder
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<OsString>,
}

/// How an agent's own file is written.
#[derive(Debug, clap::Args)]
pub(crate) struct Writing {
    /// Write the agent's file even if a process has its session loaded
    #[arg(long)]
    force: bool,

    /// Set the agent's file aside and write a new one, even where appending would do
    #[arg(long)]
    rotate: bool,
}

impl Writing {
    /// Returns it as the library is told.
    pub(crate) fn manner(&self, context: &Context) -> Manner {
        let folder = context.env.current_dir.to_str().map(str::to_owned);
        Manner { force: self.force, rotate: self.rotate, folder }
    }
}

/// Returns the id of an entry; none where a place is before the first.
pub(crate) fn entry_id(
    archive: &Archive,
    session: &Session,
    entry: Option<u64>,
) -> Result<Option<EntryId>, CommandError> {
    let Some(n) = entry else { return Ok(None) };
    let found = archive.store().entries(session.key, n..n.saturating_add(1))?;
    Ok(found.first().map(|entry| entry.id))
}

/// Returns an entry's id as people are shown it, or `start`.
pub(crate) fn short(id: Option<EntryId>) -> String {
    id.map_or_else(|| "start".to_owned(), |id| format!("{id:.DIGITS$}"))
}

/// Returns an entry's id as programs are given it.
pub(crate) fn whole(id: Option<EntryId>) -> Value {
    id.map_or(Value::Null, |id| json!(id.to_string()))
}

/// Returns a path as programs are given it.
pub(crate) fn path(path: Option<&Path>) -> Value {
    path.map_or(Value::Null, |path| json!(path.to_string_lossy()))
}

/// Returns the session that another one was made of as programs are given it.
pub(crate) fn kin(kin: Option<&Kin>) -> Value {
    kin.map_or(Value::Null, |kin| {
        json!({
            "bond": kin.bond.as_str(),
            "session": kin.session,
            "held": kin.is_held,
            "continues": kin.continues,
            "shown": !kin.continues,
            "here": whole(kin.here),
            "there": whole(kin.there),
        })
    })
}

/// Returns in words which session another one was made of, and where they part.
pub(crate) fn kin_words(kin: &Kin) -> String {
    let at = kin.there.or(kin.here).map(|at| format!(", at {at:.8}")).unwrap_or_default();
    let gone = if kin.is_held { "" } else { " (not in the store)" };
    let continues =
        if kin.continues { "; the history before is there and is not shown" } else { "" };
    format!("{} {}{gone}{at}{continues}", kin.bond.words(), kin.session)
}

/// Returns a number with the noun that it counts.
pub(crate) fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// Returns a sentence.
pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Returns the first line that says something.
pub(crate) fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

/// Tells what going back did; `place` is what programs are told of where to.
pub(crate) fn tell_back(
    context: &mut Context,
    kind: &str,
    to: &str,
    mut place: Value,
    reverted: &Reverted,
) -> Result<Exit, CommandError> {
    context.tell(&reverted.notices);
    let (branch, rotated) = (&reverted.branch, reverted.rotated.as_deref());
    if context.json {
        place["branch"] = json!(branch);
        place["left"] = json!(reverted.left);
        place["dropped"] = json!(reverted.dropped);
        place["note"] = whole(reverted.note);
        place["rotated"] = path(rotated);
        place["written"] = path(reverted.written.as_deref());
        place["operation"] = json!(reverted.operation);
        json::line(&mut context.output, kind, &place)?;
        return Ok(Exit::Yes);
    }
    if reverted.operation.is_none() {
        context.say(&format!("{branch} stands at {to} already, and nothing is changed"))?;
        return Ok(Exit::Yes);
    }
    let dropped = match reverted.dropped {
        0 => String::new(),
        1 => "; 1 entry is left behind".to_owned(),
        n => format!("; {n} entries are left behind"),
    };
    context.say(&format!("{branch} is back at {to}{dropped}"))?;
    if let Some(note) = reverted.note {
        context.say(&format!("The note for the model is {note:.DIGITS$}"))?;
    }
    if let Some(left) = &reverted.left {
        context.say(&format!("What was left is branch {left}"))?;
    }
    context.say_written(reverted.written.as_deref(), rotated)?;
    if rotated.is_none() && reverted.written.is_none() {
        let note = "The agent's own file is not changed; to have this state in a file: undertext export -o FILE";
        context.output.note(note);
    }
    context.output.hint("take it back: undertext undo");
    Ok(Exit::Yes)
}

/// Tells what an undo or a redo did, and by which command it is taken back.
pub(crate) fn tell_undone(
    context: &mut Context,
    kind: &str,
    back: &str,
    undone: &Undone,
) -> Result<Exit, CommandError> {
    context.tell(&undone.notices);
    let rotated = undone.rotated.as_deref();
    if context.json {
        let fields = json!({
            "operation": undone.operation,
            "undoes": undone.undoes,
            "command": undone.command,
            "left": undone.left,
            "rotated": path(rotated),
            "written": path(undone.written.as_deref()),
        });
        json::line(&mut context.output, kind, &fields)?;
        return Ok(Exit::Yes);
    }
    context.say(&format!("Took back operation {} ({})", undone.undoes, undone.command))?;
    if !undone.left.is_empty() {
        let branches = if undone.left.len() == 1 { "branch" } else { "branches" };
        context.say(&format!("What had come since is {branches} {}", undone.left.join(", ")))?;
    }
    context.say_written(undone.written.as_deref(), rotated)?;
    context.output.hint(&format!("change your mind: undertext {back}"));
    Ok(Exit::Yes)
}

impl Context {
    /// Prints a table for people.
    pub(crate) fn show<const N: usize>(&mut self, table: &Table<N>) -> Result<(), CommandError> {
        let (styles, width) = (self.output.styles(), self.output.width());
        Ok(table.write(&mut self.output, styles, width)?)
    }

    /// Prints a line for people.
    pub(crate) fn say(&mut self, text: &str) -> Result<(), CommandError> {
        use std::io::Write as _;
        Ok(writeln!(self.output, "{}", crate::render::safe::text(text))?)
    }

    /// Tells people which file of an agent was written, and where the old state of a live file is.
    pub(crate) fn say_written(
        &mut self,
        written: Option<&Path>,
        rotated: Option<&Path>,
    ) -> Result<(), CommandError> {
        if let Some(path) = written {
            let path = self.env.homely(path);
            self.say(&format!("The agent resumes there: {path}"))?;
        }
        rotated.map_or(Ok(()), |path| self.say(&format!("The old live file is {}", shown(path))))
    }
}
