//! Going back: to a checkpoint or an entry, perhaps with a note for the model, or to before the first entry.

use std::path::PathBuf;

use super::{
    change::Change,
    reach::{Note, reach},
    select,
};
use crate::{
    model::{Command, EntryId, Position, Text},
    ops::{Archive, Notice, OpsError, Session, Workspace},
};

/// What going back did.
#[derive(Clone, Debug)]
pub struct Reverted {
    /// The operation; none if the branch stood there already.
    pub operation: Option<u64>,
    /// The checkpoint that it went back to, if one was named.
    pub checkpoint: Option<u64>,
    /// Where the branch stands now; none before the first entry.
    pub entry: Option<EntryId>,
    /// The branch that went back.
    pub branch: String,
    /// The branch that holds what was left.
    pub left: Option<String>,
    /// How many entries that stood there are left behind.
    pub dropped: u64,
    /// The note, if one was left.
    pub note: Option<EntryId>,
    /// The old live file, if it was exchanged.
    pub rotated: Option<PathBuf>,
    /// The agent's own file, if it was written.
    pub written: Option<PathBuf>,
    /// What was noticed on the way.
    pub notices: Vec<Notice>,
}

/// Goes back to a checkpoint by its number, or to an entry; with a message, the model is told that it was further already.
pub fn revert(
    archive: &mut Archive,
    session: &Session,
    workspace: &Workspace,
    wanted: &str,
    message: Option<&str>,
) -> Result<Reverted, OpsError> {
    if message.is_some_and(|message| message.trim().is_empty()) {
        return Err(OpsError::Invalid { line: None, why: "the note is empty".to_owned() });
    }
    let change = Change::begin(archive, session)?;
    let target = select::find_place(change.archive, session, wanted)?;
    let checkpoint = target.checkpoint.as_ref().map(|checkpoint| checkpoint.n);
    let elsewhere = target.checkpoint.is_none();
    let entry = target.position.head.filter(|_| elsewhere);
    let entry = entry.map(|head| change.id_of(head)).transpose()?;
    let branch = target.branch.filter(|_| elsewhere).map(|branch| change.branch_text(&branch));
    let said = message.map(|message| change.given(message));
    let command = |left| Command::Revert { checkpoint, entry, branch, message: said, left };
    let reverted = go_back(change, workspace, target.position, message, command)?;
    Ok(Reverted { checkpoint, ..reverted })
}

/// Goes back to before the first entry.
pub fn clear(
    archive: &mut Archive,
    session: &Session,
    workspace: &Workspace,
) -> Result<Reverted, OpsError> {
    let change = Change::begin(archive, session)?;
    change.refuse_without_past()?;
    let generation = change.position().map_or(0, |at| at.generation);
    let nothing = Position { generation, head: None, horizon: 0 };
    go_back(change, workspace, nothing, None, |left| Command::Clear { left })
}

fn go_back(
    mut change: Change<'_>,
    workspace: &Workspace,
    target: Position,
    message: Option<&str>,
    command: impl FnOnce(Option<Text>) -> Command,
) -> Result<Reverted, OpsError> {
    let branch = change.tip.current().to_owned();
    let from = change.position();
    let mut reverted = Reverted {
        operation: None,
        checkpoint: None,
        entry: from.and_then(|from| from.head).map(|head| change.id_of(head)).transpose()?,
        branch: branch.clone(),
        left: None,
        dropped: 0,
        note: None,
        rotated: None,
        written: None,
        notices: change.notices.clone(),
    };
    let stays = from.is_some_and(|from| {
        from == target || (from.head == target.head && from.horizon == target.horizon)
    });
    if stays && message.is_none() {
        return Ok(reverted);
    }
    let words = message.map(from_later);
    let note = words.as_deref().map(|words| Note { words, workspace });
    let reached = reach(&mut change, target, note)?;
    let position = reached.position;
    reverted.dropped = reached.dropped;
    if let Some(from) = from.filter(|_| !stays) {
        let left = change.left_name(&branch);
        change.set_branch(&left, Some(from));
        reverted.left = Some(left);
    }
    change.set_branch(&branch, Some(position));
    reverted.entry = position.head.map(|head| change.id_of(head)).transpose()?;
    reverted.note = reverted.entry.filter(|_| note.is_some());
    (reverted.rotated, reverted.written) = (reached.aside, reached.written);
    let left = reverted.left.as_ref().map(|left| change.branch_text(left));
    let outcome = change.commit(command(left))?;
    (reverted.operation, reverted.notices) = (Some(outcome.operation), outcome.notices);
    Ok(reverted)
}

/// How a note from later begins.
const NOTE: &str = "<note-from-later>";
/// What stands behind its message.
const ADVICE: &str = "\n\nTake it into account, look at the present state before you rely on it, and go on from here.";

/// Wraps a message so that the model knows from where it comes.
fn from_later(message: &str) -> String {
    format!(
        "{NOTE}\nThis conversation was further along before and has been taken back to this point. What was said and \
         done after it is no longer visible to you, but files and other things in the working directory may already \
         have been changed by it. From there, this was left for you:\n\n{}{ADVICE}\n</note-from-later>",
        message.trim()
    )
}

/// Returns the message in a note from later.
pub(super) fn said_from_later(note: &str) -> Option<&str> {
    // An agent may wrap what it is told.
    let note = note.strip_prefix("<system>").unwrap_or(note);
    let (_, said) = note.strip_prefix(NOTE)?.split_once("\n\n")?;
    Some(said.rsplit_once(ADVICE).map_or(said, |(said, _)| said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_from_later_gives_its_message_back() {
        let message = "The parser is done.\n\nSee `src/parse.rs`.";
        assert_eq!(said_from_later(&from_later(message)), Some(message));
        assert_eq!(said_from_later(message), None);
    }
}
