//! Going back: to a checkpoint or an entry, perhaps with a note for the model, or to before the first entry.

use crate::{
    model::{Command, Position, Text},
    ops::{OpsError, note::from_later},
    report::Reverted,
    session::{Session, find_place},
    sync::{
        self, Archive, SyncError, Workspace,
        change::Change,
        reach::{Note, reach},
    },
};

/// Goes back to a checkpoint by its number, or to an entry; with a message, the model is told that it was further already.
pub fn revert(
    archive: &mut Archive,
    session: &Session,
    workspace: &Workspace,
    wanted: &str,
    message: Option<&str>,
) -> Result<Reverted, OpsError> {
    if message.is_some_and(|message| message.trim().is_empty()) {
        return Err(SyncError::Invalid { line: None, why: "the note is empty".to_owned() }.into());
    }
    let change = sync::begin(archive, session)?;
    let target = find_place(change.archive.store(), session, wanted)?;
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
    let change = sync::begin(archive, session)?;
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
    let outcome = sync::commit(change, command(left))?;
    (reverted.operation, reverted.notices) = (Some(outcome.operation), outcome.notices);
    Ok(reverted)
}
