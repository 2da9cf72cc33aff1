//! Landing: where a revert, switch or undo took a session, which turns it reverted, and how the agent continues from there.

use std::collections::BTreeSet;

use crate::{
    archive::At,
    change::resume,
    context::files,
    model::{Block, CheckpointNumber, EntryNumber, Kind, Message, Position, Role},
    report::{Kept, Landing, TouchedFile, Turn},
    session::{
        Damages, Spot, View, derive,
        graph::replay::Replays,
        history::ends::ends,
        messages,
        read::checkpoints::{self, Places},
    },
    verbs::{OpsError, look::drawing::said},
    wire::Graph as _,
};

/// How many branches are searched for the reverted turns if no branch ends at them.
const ASKED: usize = 16;

/// Returns where a session is now, after it moved from `from`. `back` is the checkpoint that it went back to, if any. The
/// change is already made, so an error here only leaves details out.
pub(crate) fn landing(
    session: &At<'_>,
    from: Option<Position>,
    back: Option<CheckpointNumber>,
) -> Landing {
    let dry_run = session.archive.is_preview();
    look(session, from, back).unwrap_or_else(|_| Landing { dry_run, ..Landing::default() })
}

fn look(
    session: &At<'_>,
    from: Option<Position>,
    back: Option<CheckpointNumber>,
) -> Result<Landing, OpsError> {
    let session = &session.again()?;
    let to = session.state.position();
    let resume = resume(session)?;
    let spot = match back {
        Some(n) => checkpoints::spot_of(session, n)?,
        None => checkpoints::standing_at(session)?,
    };
    let from = from.filter(|from| Some(*from) != to);
    let dry_run = session.archive.is_preview();
    let mut landing = Landing { spot, from, resume, dry_run, ..Landing::default() };
    let replays = Replays::of(session)?;
    let new = session.view(to.unwrap_or_default());
    landing.at = newest_turn(session, &new)?;
    if let Some(Spot::Before(n)) = spot {
        let turn = checkpoints::turn_of(session, n)?;
        let prompt = turn.and_then(|turn| text(session, turn));
        let words = prompt.as_deref().and_then(derive::words);
        landing.before = Some(Turn { checkpoint: n, words });
        landing.prompt = prompt.filter(|text| back.is_some() && !text.trim().is_empty());
    }
    let Some(old) = from.map(|from| session.view(from)) else { return Ok(landing) };
    let [new_path, old_path] = ends(&new, &old)?;
    let stays: BTreeSet<EntryNumber> = new_path.iter().map(|entry| replays.first(*entry)).collect();
    let left = old_path.into_iter().filter(|entry| !stays.contains(&replays.first(*entry)));
    let left: Vec<EntryNumber> = left.collect();
    if let Some(first) = left.iter().min() {
        let places = Places::since(session, *first)?;
        let (mut numbers, mut said, mut turns) = (BTreeSet::new(), BTreeSet::new(), 0);
        for &entry in &left {
            let kind = old.as_derived(entry)?.kind;
            if kind == Kind::Boundary {
                landing.compactions.push(old.record(entry)?.time);
            }
            let Some(checkpoint) = places.before(&old, entry)? else { continue };
            numbers.insert(checkpoint.n);
            if kind == Kind::User {
                said.insert(checkpoint.n);
                turns += 1;
            }
        }
        // An agent that sets its own checkpoints may set one again, before other entries.
        for entry in new_path.into_iter().filter(|_| session.format.traits().has_checkpoints) {
            if let Some(checkpoint) = places.before(&new, entry)? {
                numbers.remove(&checkpoint.n);
            }
        }
        let mut others =
            session.state.branches.iter().filter(|(name, _)| *name != session.state.current());
        let stands = |at: &Position| at.head == old.position.head;
        let branch = match others.clone().find(|(_, at)| stands(at)) {
            None => others.by_ref().take(ASKED).find(|(_, at)| {
                holds(&session.view(**at), &old, &left, &replays).is_ok_and(|holds| holds)
            }),
            found => found,
        };
        let branch = branch.map(|(name, _)| name.clone());
        if let (Some(&first), Some(&last)) = (numbers.first(), numbers.last()) {
            landing.kept = Some(Kept { branch, first, last, turns });
        }
        landing.turns = numbers.intersection(&said).copied().collect();
        // User messages contain no calls, so their lines are not read.
        let mut acts = Vec::with_capacity(left.len());
        for &entry in &left {
            if old.as_derived(entry)?.kind != Kind::User {
                acts.push(entry);
            }
        }
        landing.calls = calls(session, &acts)?;
        landing.files = touched(session, &landing.calls)?;
    }
    Ok(landing)
}

/// Returns true if a branch has these entries of another path, or the entries that they replay.
fn holds(
    branch: &View<'_>,
    old: &View<'_>,
    entries: &[EntryNumber],
    replays: &Replays,
) -> Result<bool, OpsError> {
    let [held, other] = ends(branch, old)?;
    let held: BTreeSet<EntryNumber> = held.into_iter().map(|entry| replays.first(entry)).collect();
    let is_held = |entry: &EntryNumber| held.contains(&replays.first(*entry));
    for entry in entries {
        // Entries that both have before their ends are not in `other`, and an agent's own records are nobody's messages.
        let is_said = !matches!(old.as_derived(*entry)?.kind, Kind::Meta | Kind::Opaque);
        if is_said && other.contains(entry) && !is_held(entry) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the newest turn on a view's path.
fn newest_turn(session: &At<'_>, view: &View<'_>) -> Result<Option<Turn>, OpsError> {
    // The window grows fourfold each time, so a short turn costs little and a long one not much more than its length.
    let (mut size, mut known) = (64, 0);
    loop {
        let path = view.path(size)?.entries;
        let looked = path.get(..path.len() - known).unwrap_or_default();
        let first = looked.iter().min().copied().unwrap_or_default();
        let places = Places::since(session, first)?;
        for &entry in looked.iter().rev() {
            if let Some(checkpoint) = places.before(view, entry)? {
                let words = text(session, entry).and_then(|text| derive::words(&text));
                return Ok(Some(Turn { checkpoint: checkpoint.n, words }));
            }
        }
        if path.len() < size {
            return Ok(None);
        }
        (known, size) = (path.len(), size * 4);
    }
}

/// Returns the text of an entry, or nothing if it cannot be read.
fn text(session: &At<'_>, entry: EntryNumber) -> Option<String> {
    Some(messages(session, entry).ok()?.first()?.text())
}

/// Returns the calls in these entries that did not fail.
fn calls(session: &At<'_>, entries: &[EntryNumber]) -> Result<Vec<Block>, OpsError> {
    let mut said = said(session, entries, &Damages::gathered())?;
    files::drop_failed(&mut said);
    let blocks = said.into_iter().flat_map(|message| message.blocks);
    Ok(blocks.filter(|block| matches!(block, Block::Call { .. })).collect())
}

/// Returns the files that calls changed, most edits first.
fn touched(session: &At<'_>, calls: &[Block]) -> Result<Vec<TouchedFile>, OpsError> {
    let folder = session.store.card(session.key)?.folder;
    let said: Vec<Message> =
        calls.iter().map(|call| Message::new(Role::Assistant, vec![call.clone()])).collect();
    let named = files::named(&said, folder.as_deref(), None);
    let touched = named.into_iter().filter(|named| named.n_changes > 0);
    Ok(touched.map(|named| TouchedFile { path: named.path, edits: named.n_changes }).collect())
}
