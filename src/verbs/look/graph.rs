//! Graphs: forks of a session, its reverted ends, and the files that it used.

use crate::{
    archive::At,
    context::files,
    report::{GraphView, RevertedEnd, UsedFile},
    verbs::{
        OpsError,
        look::drawing::{self, Detail, Drawing},
    },
};

/// Draws a session without reading its messages, for sessions that may be long.
pub fn drawing<'a>(session: &'a At<'a>, detail: Detail<'_>) -> Result<Drawing<'a>, OpsError> {
    drawing::drawing(session, detail)
}

/// Draws the newest `entries` of a session's current path, for a first sight of a long session.
pub fn recent_drawing<'a>(
    session: &'a At<'a>,
    entries: usize,
    detail: Detail<'_>,
) -> Result<Drawing<'a>, OpsError> {
    drawing::recent(session, entries, detail)
}

/// Returns the graph of a session.
pub fn graph(session: &At<'_>, detail: Detail<'_>) -> Result<GraphView, OpsError> {
    let drawing = drawing(session, detail)?;
    let mut nodes = Vec::new();
    drawing.each(|node| {
        nodes.push(node);
        Ok::<_, OpsError>(())
    })?;
    let damaged = drawing.damaged()?;
    let Drawing { current, at, empty, before, kin, .. } = drawing;
    Ok(GraphView { nodes, current, at, empty, before, kin, damaged })
}

/// Returns the reverted ends, newest first.
pub fn reverted_ends(session: &At<'_>) -> Result<Vec<RevertedEnd>, OpsError> {
    drawing(session, Detail::default())?.reverted()
}

/// Returns the files named on the current path, edited ones first, each with the last turn that named it.
pub fn files_used(session: &At<'_>) -> Result<Vec<UsedFile>, OpsError> {
    let drawing = drawing(session, Detail::default())?;
    let (mut messages, mut turns) = (Vec::new(), Vec::new());
    for stretch in drawing.stretches.iter().rev().filter(|stretch| !stretch.is_off) {
        let turn = drawing.before(stretch.said)?.map(|given| given.n);
        messages.append(&mut drawing::said(
            session,
            drawing.members_of(stretch),
            &drawing.damages,
        )?);
        turns.resize(messages.len(), turn.or(turns.last().copied().flatten()));
    }
    files::drop_failed(&mut messages);
    let folder = session.store.card(session.key)?.folder;
    let used = |named: files::Named| UsedFile {
        path: named.path,
        edits: named.n_changes,
        mentions: named.n_mentions as u64,
        turn: turns.get(named.latest).copied().flatten(),
    };
    Ok(files::named(&messages, folder.as_deref(), None).into_iter().map(used).collect())
}
