//! Fullness: how full the model's window is at a place of a session, from as few of the last entries as tell it.

use std::ops::Range;

use crate::{
    context::{
        measure::{Measured, Word},
        sanitize::pictures,
    },
    model::Position,
    ops::{
        OpsError,
        material::material,
        request::{is_all, request},
        seen::{Asked, Material},
    },
    report::{Context, Fullness},
    session::{Damages, Session},
    sync::Archive,
};

/// How many entries are read first where only what they tell is wanted.
pub(super) const FEW: usize = 16;
/// The number of entries among which an answer names the model, if one does.
pub(super) const MODEL_WITHIN: usize = 1024;

/// Returns how full the window is at a position, or where the current branch ends, from as many of the last entries as are needed:
/// the range says how many are read first, and about how many at most.
pub(super) fn fullness_at(
    archive: &Archive,
    session: &Session,
    position: Option<Position>,
    asked: &Asked,
    read: Range<usize>,
) -> Result<Fullness, OpsError> {
    let mut limit = read.start;
    loop {
        let damages = Damages::gathered();
        let found = prepared(archive, session, position, asked, limit, &damages)?;
        let is_whole = found.is_whole;
        let Measured { tokens, word } = found.measured;
        let is_least = !is_whole && word != Word::Reported;
        // Where a file names its model, it tells the window too.
        let has_window = found.told.model.is_none() || found.told.window.is_some();
        let has_model = found.model.is_some() && has_window || limit >= MODEL_WITHIN;
        let is_enough = has_model && (!is_least || tokens > found.window.tokens);
        if is_whole || is_enough || limit >= read.end {
            let (model, window, damaged) = (found.model, found.window, found.damaged);
            return Ok(Fullness { model, window, tokens, word, is_least, damaged });
        }
        limit = limit.saturating_mul(4);
    }
}

/// Returns how full the window is, if the last few entries tell it.
pub(super) fn full_enough(archive: &Archive, session: &Session, asked: &Asked) -> Option<Fullness> {
    let full = fullness_at(archive, session, None, asked, FEW..MODEL_WITHIN).ok();
    full.filter(|full| !full.is_least)
}

/// Returns the request that a model would be sent of the last `limit` entries that led to a position.
pub(super) fn prepared(
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

/// Returns a position, or where the current branch is.
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
