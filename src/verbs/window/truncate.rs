//! Truncation: replays the current branch with its oversized tool results cut. The old branch is kept under another name.
//!
//! Invariant: no message of the context is added, removed or moved; only texts of results get shorter.

use std::collections::BTreeMap;

use crate::{
    archive::{At, SyncError, Workspace},
    change::{
        self,
        goal::replay::{Cut, Replay},
    },
    context::cut::{self, Limit, Rest},
    files::{at::Standing, live_file::LiveFile},
    model::{Block, Command, EntryNumber, EntrySet, Kind, Message, Position, Resized},
    report::{Oversized, Truncated},
    session::{
        Stored, View,
        history::{ends::Sending, origins},
        plan::{Plan, Steps, branch_text},
        read::tools::{self, CALL_WITHIN},
    },
    store::whole_lines,
    verbs::{
        OpsError,
        window::{
            shorten,
            sight::{StandIns, items},
        },
    },
    wire::{Edit, Graph, cut::Shortened},
};

/// The allowed size of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The maximum number of characters.
    pub limit: Limit,
    /// The window from which the limit was computed, in tokens.
    pub window: Option<u64>,
}

/// A result that is or would be cut, with its cut version.
struct Found {
    oversized: Oversized,
    n: EntryNumber,
    shortened: Shortened,
}

/// Returns the results in the current context that exceed a limit, in order.
pub fn oversized(session: &At<'_>, bound: Bound) -> Result<Truncated, OpsError> {
    let mut truncated = Truncated::default();
    let Some(position) = session.state.position() else { return Ok(truncated) };
    let view = session.view(position);
    let mut each = |found: Found, _: &[u8]| truncated.results.push(found.oversized);
    truncated.edited = find(session, &view, bound.limit, &mut each)?;
    Ok(truncated)
}

/// Returns true if a message has a result that exceeds a limit.
fn is_over(message: &Message, limit: Limit, rest: Rest<'_>) -> bool {
    let results = message.blocks.iter().filter_map(|block| match block {
        Block::Result { blocks, .. } => Some(blocks),
        _ => None,
    });
    results.into_iter().any(|blocks| {
        let texts = blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let texts: Vec<&str> = texts.collect();
        cut::texts(&texts, limit, rest).iter().any(Option::is_some)
    })
}

/// Cuts the results in the current context that exceed a limit. The original records are kept as their origins.
pub fn truncate(session: &At<'_>, bound: Bound) -> Result<Truncated, OpsError> {
    let (mut truncated, made) = change::execute(session, |before| plan(before, bound))?;
    truncated.saved =
        made.reached.map_or(truncated.saved, |now| truncated.saved.saturating_sub(now));
    Ok(Truncated { done: made.done, ..truncated })
}

/// Plans a truncation. Returns the results found, with the length of the file as `saved`, and the plan.
fn plan(
    before: &Standing<'_>,
    bound: Bound,
) -> Result<(Truncated, Option<Plan<Replay>>), OpsError> {
    let branch = before.state.current();
    let mut truncated = Truncated::default();
    let Some(from) = before.position() else { return Ok((truncated, None)) };
    let session = before.opened()?;
    let mut cuts = BTreeMap::new();
    if let Some(view) = before.view(from) {
        let mut cut = |Found { oversized, n, shortened }: Found, whole: &[u8]| {
            let tool = oversized.tool.clone();
            let tokens = Resized { before: oversized.tokens, after: oversized.tokens_left };
            let cutting = shorten::cutting(tool, &shortened.cuts, tokens);
            cuts.insert(n, Cut::new(shortened.line, whole, cutting));
            truncated.results.push(oversized);
        };
        truncated.edited = find(&session, &view, bound.limit, &mut cut)?;
    }
    if cuts.is_empty() {
        return Ok((truncated, None));
    }
    truncated.saved = before.growth(from.generation)?.length();
    let restated = match before.attached() {
        Some(live) if !before.format.traits().is_rotatable => {
            Some(restate(before, &live, from, &cuts)?)
        }
        _ => None,
    };
    let mut steps = Steps::default();
    let left = steps.leave(&before.state, branch, from);
    let command = Command::Truncate {
        branch: branch_text(branch),
        left: Some(branch_text(&left)),
        window: bound.window,
        limit: bound.limit.chars() as u64,
    };
    (truncated.branch, truncated.left) = (Some(branch.to_owned()), Some(left));
    let plan = Plan { command, steps, goal: Replay { from, cuts, restated } };
    Ok((truncated, Some(plan)))
}

/// Returns records that repeat the whole context with the cut lines.
fn restate(
    before: &Standing<'_>,
    live: &LiveFile,
    from: Position,
    cuts: &BTreeMap<EntryNumber, Cut>,
) -> Result<Vec<Vec<u8>>, OpsError> {
    let mut lines = Vec::new();
    if let Some(view) = before.view(from) {
        let Sending { sent, edits, .. } = view.sending()?;
        let edits: BTreeMap<EntryNumber, Edit> = edits.into_iter().collect();
        for entry in sent {
            let line = match cuts.get(&entry) {
                Some(cut) => cut.line().to_owned(),
                None => view.line(entry)?,
            };
            lines.push((line, edits.get(&entry).copied()));
        }
    }
    let setting = before.setting(&Workspace::default(), None)?;
    let lines = before.format.whole_context(&lines, None, &setting);
    let lines = lines.map_err(|error| SyncError::Invalid { line: None, why: error.0 })?;
    let why = "its agent has no record that replaces a whole context".to_owned();
    Ok(lines.ok_or_else(|| SyncError::OutOfReach { path: live.path.clone(), why })?)
}

/// Finds the results in the context of a view's head that exceed a limit, and passes each on with the whole line. Returns how
/// many exceed it only because of edits, which a truncation cannot cut.
fn find(
    session: &Stored<'_>,
    view: &View<'_>,
    limit: Limit,
    each: &mut dyn FnMut(Found, &[u8]),
) -> Result<u64, OpsError> {
    let Sending { path, sent, edits, .. } = view.sending()?;
    let edited: EntrySet = edits.iter().map(|(entry, _)| *entry).collect();
    for range in EntryNumber::ranges(sent, 1) {
        let lengths = session.store.lengths(session.key, range.clone())?;
        for (n, length) in EntryNumber::each(range).zip(lengths) {
            // A character has at least one byte.
            if length > limit.chars() as u64
                && !edited.contains(n)
                && may_answer(view.record(n)?.kind)
                && let Some((found, whole)) = look(session, view, &path, n, limit)?
            {
                each(found, &whole);
            }
        }
    }
    let mut count = 0;
    for alike in edits.chunk_by(|(one, _), (other, _)| one == other) {
        let Some(&(n, _)) = alike.first() else { continue };
        if may_answer(view.record(n)?.kind) {
            let said = items(session, view, &[n], alike, &StandIns::default(), None)?;
            let entry = session.id_of(n)?.to_string();
            let rest = Rest { session: &session.name.id, entry: &entry };
            count += u64::from(said.iter().any(|item| is_over(&item.message(), limit, rest)));
        }
    }
    Ok(count)
}

/// Returns true if a record of this kind can contain a tool result.
fn may_answer(kind: Kind) -> bool {
    matches!(kind, Kind::Result | Kind::Note | Kind::User | Kind::Boundary)
}

/// Returns an entry that exceeds a limit, with the whole line.
fn look(
    session: &Stored<'_>,
    view: &View<'_>,
    path: &[EntryNumber],
    n: EntryNumber,
    limit: Limit,
) -> Result<Option<(Found, Vec<u8>)>, OpsError> {
    let first = origins::first(session, n)?;
    let origin = session.id_of(first)?;
    let shorten =
        |line: &[u8]| shorten::shorten(&session.name.id, session.format, line, origin, limit);
    let mut whole = Vec::new();
    whole_lines(session.store, session.key, &[n], &mut |_, line| whole = line)?;
    let Some(mut found) = shorten(&whole) else { return Ok(None) };
    // Cut a result that was cut before from its original again, so that each cut text is a prefix of the original.
    if first != n {
        let own = std::mem::take(&mut whole);
        whole_lines(session.store, session.key, &[first], &mut |_, line| whole = line)?;
        let Some(again) = shorten(&whole).filter(|(again, _)| again.line != own) else {
            return Ok(None);
        };
        found = again;
    }
    let (shortened, sizes) = found;
    let call = shortened.cuts.first().map(|cut| cut.call.as_str()).unwrap_or_default();
    let place = path.iter().rposition(|entry| *entry == n).unwrap_or(path.len());
    let above = path.get(place.saturating_sub(CALL_WITHIN)..place).unwrap_or_default();
    let called = tools::call(view, session.format, above, call)?;
    let (tool, subject) = called.map_or((None, None), |called| (Some(called.tool), called.subject));
    let oversized = Oversized {
        entry: session.id_of(n)?,
        origin,
        tool,
        subject,
        characters: sizes.chars.before,
        left: sizes.chars.after,
        tokens: sizes.tokens.before,
        tokens_left: sizes.tokens.after,
    };
    Ok(Some((Found { oversized, n, shortened }, whole)))
}
