//! The request that a model is sent of a session, made of its messages.

use crate::{
    context::{
        Change, Origin,
        measure::{Measured, Word},
        recover::Unrecovered,
        sanitize::pictures,
        window::Window,
    },
    model::{EntryNumber, Kind, Position},
    ops::{
        OpsError,
        material::{guard, material},
        measuring,
        request::{is_all, request},
        seen::{self, Asked, Material},
    },
    report::{Context, Explained, Fullness, Landing, Tokens},
    session::{Damages, Session, Target, View, ids::id_of},
    sync::Archive,
};

/// The number of entries among which an answer names the model, if one does.
const MODEL_WITHIN: usize = 1024;

/// Returns how full the window is where the current branch stands.
///
/// The newest entries tell it: an answer says the size of its request, and where no answer does, nothing needs to be
/// counted once the window is full. More of them are read only until one of the two is true.
pub fn fullness(archive: &Archive, session: &Session, asked: &Asked) -> Result<Fullness, OpsError> {
    fullness_at(archive, session, None, asked, usize::MAX)
}

/// Returns how full the window is at a position, or where the current branch ends; at most about `most` entries are read.
fn fullness_at(
    archive: &Archive,
    session: &Session,
    position: Option<Position>,
    asked: &Asked,
    most: usize,
) -> Result<Fullness, OpsError> {
    let mut limit = measuring::NEWEST;
    loop {
        let damages = Damages::gathered();
        let found = self::prepared(archive, session, position, asked, limit, &damages)?;
        let is_whole = found.is_whole;
        let Measured { tokens, word } = found.measured;
        let is_least = !is_whole && word != Word::Reported;
        // Where a file names its model, it tells the window too.
        let has_window = found.told.model.is_none() || found.told.window.is_some();
        let has_model = found.model.is_some() && has_window || limit >= MODEL_WITHIN;
        let is_enough = has_model && (!is_least || tokens > found.window.tokens);
        if is_whole || is_enough || limit >= most {
            let (model, window, damaged) = (found.model, found.window, found.damaged);
            return Ok(Fullness { model, window, tokens, word, is_least, damaged });
        }
        limit = limit.saturating_mul(4);
    }
}

/// Returns the model that answered last, if one of the newest entries names it.
pub fn model(archive: &Archive, session: &Session, asked: &Asked) -> Option<String> {
    fullness_at(archive, session, None, asked, 0).ok()?.model
}

/// Returns how full the window was before a change of place and is now. None if that takes more than the newest entries, or if
/// models reported only one of the two.
pub fn tokens(
    archive: &Archive,
    session: &Session,
    landing: &Landing,
    asked: &Asked,
) -> Option<Tokens> {
    let full = |at| {
        let full = fullness_at(archive, session, at, asked, MODEL_WITHIN).ok();
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

/// Returns the request that a model would be sent at a target, or where the current branch stands.
///
/// A window that the user gave is looked at first: if it is too small, nothing else is read. Damaged entries are left out, and named.
pub fn context(
    archive: &Archive,
    session: &Session,
    target: Option<&Target>,
    asked: &Asked,
) -> Result<Context, OpsError> {
    let position = target.map(|target| target.position);
    prepared(archive, session, position, asked, usize::MAX, &Damages::gathered())
}

/// Returns the request that a model is sent where the current branch stands; a damaged entry is an error, and so is a
/// window that is too small, whoever gave it.
pub(super) fn whole_context(
    archive: &Archive,
    session: &Session,
    asked: &Asked,
) -> Result<Context, OpsError> {
    let context = prepared(archive, session, None, asked, usize::MAX, &Damages::default())?;
    guard(&context.window)?;
    Ok(context)
}

/// Returns the same before a model is asked for the first time: a window that is too small is told as what nothing
/// recovers from.
pub(super) fn sendable_context(
    archive: &Archive,
    session: &Session,
    asked: &Asked,
) -> Result<Context, OpsError> {
    match whole_context(archive, session, asked) {
        Err(OpsError::Window { tokens: window, by, least }) => {
            let session = session.name.id.clone();
            Err(Unrecovered::Blocked { session, window, by, least }.into())
        }
        other => other,
    }
}

/// Returns the request that a model would be sent of the last `limit` entries that led to a position.
fn prepared(
    archive: &Archive,
    session: &Session,
    position: Option<Position>,
    asked: &Asked,
    limit: usize,
    damages: &Damages,
) -> Result<Context, OpsError> {
    let mut found = material(archive, session, position, asked, limit, damages)?;
    let items = std::mem::take(&mut found.items);
    let prepared = request(archive, session, asked, &found, items);
    let measured = found.measure.of(prepared.tokens(), is_all(asked, &prepared));
    let Material { model, told, window, counting, sent, is_whole, measure, fresh, .. } = found;
    Ok(Context {
        shape: asked.shape,
        model,
        told,
        window,
        counting,
        pictures: pictures(&prepared.items),
        prepared,
        measured,
        reported: measure.reported,
        beside: measure.beside,
        at: at(archive, session, position)?,
        sent,
        is_whole,
        fresh,
        damaged: damages.met(archive.store(), session)?,
    })
}

/// Returns the window in which a session is, where its current branch stands, however small it is.
pub fn window(archive: &Archive, session: &Session, asked: &Asked) -> Result<Window, OpsError> {
    let tip = archive.store().state(session.key)?;
    let view = tip.position().map(|at| View::new(archive.store(), session, at, Some(&tip.spans)));
    seen::window(archive, session, view.as_ref(), asked)
}

/// Returns a position, or where the current branch stands.
fn at(
    archive: &Archive,
    session: &Session,
    position: Option<Position>,
) -> Result<Option<Position>, OpsError> {
    if position.is_some() {
        return Ok(position);
    }
    Ok(archive.store().state(session.key)?.position())
}

/// Returns whether an entry is on the way to the head of a context.
fn is_on_way(
    archive: &Archive,
    session: &Session,
    context: &Context,
    entry: EntryNumber,
) -> Result<bool, OpsError> {
    let Some(at) = context.at else { return Ok(false) };
    let spans = archive.store().state(session.key)?.spans;
    let view = View::new(archive.store(), session, at, Some(&spans));
    let view = view.gathering(&Damages::gathered());
    Ok(view.path(usize::MAX)?.entries.contains(&entry))
}

/// Returns why an entry is, or is not, in a context.
pub fn explain(
    archive: &Archive,
    session: &Session,
    context: &Context,
    entry: EntryNumber,
) -> Result<Explained, OpsError> {
    let found = context.prepared.items.iter().enumerate();
    let found = found.filter(|(_, item)| item.entries.contains(&entry));
    let messages: Vec<usize> = found.map(|(at, _)| at).collect();
    let of_entry = |change: &&Change| change.entries.contains(&entry);
    let changes: Vec<Change> = context.prepared.changes.iter().filter(of_entry).cloned().collect();
    let record = archive.store().records(session.key, entry.alone())?.pop();
    let kind = record.map_or(Kind::Opaque, |record| record.kind);
    let why = if let Some(item) = messages.first().and_then(|&at| context.prepared.items.get(at)) {
        match item.origin {
            Origin::Summary => "it is the summary of what was compacted",
            Origin::Kept => "a compaction kept it",
            Origin::Replayed => "it stands in the place of an entry that was changed",
            Origin::Edited => "its agent put other content in its place, or took a part of it back",
            Origin::Merged => "it is sent as one message with its neighbours",
            Origin::Said | Origin::Synthetic => "it is on the way to the head",
        }
        .to_owned()
    } else if let Some(change) = changes.last() {
        format!("{}: {}", change.step.as_str(), change.why)
    } else if !kind.is_conversation() {
        "it does not belong to the conversation".to_owned()
    } else if !is_on_way(archive, session, context, entry)? {
        "it is not on the way to the head: another branch has it, or none".to_owned()
    } else if !context.sent.contains(&entry) && kind == Kind::Boundary {
        "it only says that the history was compacted".to_owned()
    } else if !context.sent.contains(&entry) {
        "a compaction left it out, or the agent does not send such records".to_owned()
    } else {
        "it says nothing to a model".to_owned()
    };
    let entry = id_of(archive.store(), session, entry)?;
    Ok(Explained { entry, messages, why, changes })
}
