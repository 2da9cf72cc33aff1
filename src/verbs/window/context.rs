//! The request that a model would receive for a session.

use crate::{
    archive::At,
    context::{Change, Origin, measure::Word, recover::Unrecovered, window::Window},
    model::{EntryNumber, Kind},
    report::{Context, Explained, Fullness, Landing, Tokens, Treatment},
    session::{Damages, Target},
    verbs::{
        OpsError,
        window::{
            measure::{NEWEST, guard},
            request::{FEW, MODEL_WITHIN, fullness_at, prepared},
            sight::{self, Asked},
        },
    },
};

/// Returns how full the window is at the current head.
///
/// Reads the newest entries first: an answer reports the size of its request, and without a report, counting can stop once the
/// window is full. Reads more entries only until one of the two happens.
pub fn fullness(session: &At<'_>, asked: &Asked) -> Result<Fullness, OpsError> {
    fullness_at(session, None, asked, NEWEST..usize::MAX)
}

/// Returns the model of the last answer, if one of the newest entries names it.
pub fn model(session: &At<'_>, asked: &Asked) -> Option<String> {
    fullness_at(session, None, asked, FEW..NEWEST).ok()?.model
}

/// Returns how full the window was before a change of place, and how full it is now. Returns nothing if that needs more than the
/// newest entries, or if models reported only one of the two.
pub fn tokens(session: &At<'_>, landing: &Landing, asked: &Asked) -> Option<Tokens> {
    let full = |at| {
        let read = NEWEST..MODEL_WITHIN;
        let full = fullness_at(session, at, asked, read).ok();
        full.filter(|full| !full.is_least)
    };
    let before = full(Some(landing.from?))?;
    let after = full(None)?;
    let is_scaled = |full: &Fullness| matches!(full.word, Word::Reported | Word::Scaled);
    (is_scaled(&before) == is_scaled(&after)).then_some(Tokens {
        before: before.tokens,
        after: after.tokens,
        window: after.window.tokens,
        is_reported: before.word == Word::Reported && after.word == Word::Reported,
    })
}

/// Returns the request for a target, by default the current head.
///
/// A window that the user set is checked first: if it is too small, nothing else is read. Damaged entries are skipped and
/// reported.
pub fn context(
    session: &At<'_>,
    target: Option<&Target>,
    asked: &Asked,
) -> Result<Context, OpsError> {
    let position = target.map(|target| target.position);
    prepared(session, position, asked, usize::MAX, &Damages::gathered())
}

/// Returns the request for the current head. A damaged entry is an error, and so is a window that is too small, whoever set it.
pub(crate) fn whole_context(session: &At<'_>, asked: &Asked) -> Result<Context, OpsError> {
    let context = prepared(session, None, asked, usize::MAX, &Damages::default())?;
    guard(&context.window)?;
    Ok(context)
}

/// Like [`whole_context`], before the first request to a model: a window that is too small is reported as unrecoverable.
pub(crate) fn sendable_context(session: &At<'_>, asked: &Asked) -> Result<Context, OpsError> {
    match whole_context(session, asked) {
        Err(OpsError::Window { tokens: window, by, least }) => {
            let session = session.name.id.clone();
            Err(Unrecovered::Blocked { session, window, by, least }.into())
        }
        other => other,
    }
}

/// Returns the window of a session at its current head, however small.
pub fn window(session: &At<'_>, asked: &Asked) -> Result<Window, OpsError> {
    let view = session.state.position().map(|at| session.view(at));
    sight::window(session, view.as_ref(), asked)
}

/// Returns true if an entry is on the path to the head of a context.
fn is_on_way(session: &At<'_>, context: &Context, entry: EntryNumber) -> Result<bool, OpsError> {
    let Some(at) = context.at else { return Ok(false) };
    let view = session.view(at).gathering(&Damages::gathered());
    Ok(view.path(usize::MAX)?.entries.contains(&entry))
}

/// Returns why an entry is, or is not, in a context.
pub fn explain(
    session: &At<'_>,
    context: &Context,
    entry: EntryNumber,
) -> Result<Explained, OpsError> {
    let found = context.prepared.items.iter().enumerate();
    let found = found.filter(|(_, item)| item.entries.contains(&entry));
    let messages: Vec<usize> = found.map(|(at, _)| at).collect();
    let of_entry = |change: &&Change| change.entries.contains(&entry);
    let changes: Vec<&Change> = context.prepared.changes.iter().filter(of_entry).collect();
    let record = session.store.records(session.key, entry.alone())?.pop();
    let kind = record.map_or(Kind::Opaque, |record| record.kind);
    let why = if let Some(item) = messages.first().and_then(|&at| context.prepared.items.get(at)) {
        match item.origin {
            Origin::Summary => "it is the summary of what was compacted",
            Origin::Kept => "a compaction kept it",
            Origin::Replayed => "it replaces an entry that was changed",
            Origin::Edited => "its agent replaced its content or removed part of it",
            Origin::Merged => "it is sent as one message with its neighbours",
            Origin::Said | Origin::Synthetic => "it is on the path to the head",
        }
        .to_owned()
    } else if let Some(change) = changes.last() {
        format!("{}: {}", change.step.as_str(), change.why)
    } else if !kind.is_conversation() {
        "it is not part of the conversation".to_owned()
    } else if !is_on_way(session, context, entry)? {
        "it is not on the path to the head: it is on another branch, or on none".to_owned()
    } else if !context.sent.contains(&entry) && kind == Kind::Boundary {
        "it only marks that the history was compacted".to_owned()
    } else if !context.sent.contains(&entry) {
        "a compaction dropped it, or the agent does not send such records".to_owned()
    } else {
        "it contains nothing for a model".to_owned()
    };
    let entry = session.id_of(entry)?;
    let changes = changes.iter().map(|change| Treatment::new(change, vec![entry])).collect();
    Ok(Explained { entry, messages, why, changes })
}
