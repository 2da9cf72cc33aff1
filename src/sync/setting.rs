//! Settings of new records: where a line may begin, and what a record says of its time, its folder and what it follows.

use uuid::{Builder, Uuid};

use crate::{
    session::Growth,
    sync::{SyncError, Workspace, change::Change},
    wire::{Nearby, Setting},
};

/// Returns what must stand before a record so that it begins a line: a file may end with its last record.
pub(crate) fn line_start(growth: &Growth) -> Vec<u8> {
    let tail = growth.tail.as_slice();
    let open = match tail.iter().rposition(|&byte| byte == b'\n') {
        Some(end) => tail.len() > end + 1,
        None => growth.length() > 0,
    };
    if open { b"\n".to_vec() } else { Vec::new() }
}

/// Returns where and when a record is written that follows `parent`; an agent's record is written like the one before it.
pub(crate) fn setting(
    change: &mut Change<'_>,
    workspace: &Workspace,
    parent: Option<String>,
) -> Result<Setting, SyncError> {
    let mut nearby = None;
    let near = match (change.format.traits().nearby, change.position()) {
        (Nearby::Nothing, _) | (_, None) => None,
        (Nearby::Head, Some(at)) => at.head,
        (Nearby::Last, Some(at)) => change.growth(at.generation)?.last.map(|(n, _)| n),
    };
    if let (Some(session), Some(near)) = (&change.session, near) {
        change.archive.store.lines(session.key, &[near], &mut |_, line| nearby = Some(line))?;
    }
    Ok(Setting {
        session: change.name.id.clone(),
        parent,
        uuid: record_name(change).to_string(),
        time: change.at,
        folder: workspace.folder.clone(),
        git_branch: workspace.git_branch.clone(),
        nearby,
    })
}

/// Returns a fresh name of a record: names that follow the time keep an index of them compact.
fn record_name(change: &mut Change<'_>) -> Uuid {
    let mut random = [0; 10];
    // Bytes 6 and 8 of a random uuid hold its version and variant; these are chance alone.
    let chance = change.archive.uuid().into_bytes();
    random[..6].copy_from_slice(&chance[..6]);
    random[6..].copy_from_slice(&chance[9..13]);
    Builder::from_unix_timestamp_millis(change.at.0.unsigned_abs(), &random).into_uuid()
}
