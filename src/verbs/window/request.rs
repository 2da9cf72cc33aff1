//! Requests: prepares the items of a session for a model. The size of the request and how full the window is are computed here
//! for all commands, from as few of the last entries as possible.

use std::ops::Range;

use crate::{
    archive::At,
    context::{
        self, Change, Item, Missing, Plan, Prepared, Shape, Step,
        history::Limits,
        measure::{Measured, Word},
        results::Cutting,
        sanitize::{Hygiene, pictures},
        tokens::Counting,
    },
    model::{Block, EntryNumber, Position},
    report::{Context, Fullness},
    session::Damages,
    verbs::{
        OpsError,
        window::{
            measure::material,
            sight::{Asked, Material, front},
        },
    },
    wire::{Interface, Traits, Unanswered},
};

/// How many entries are read first when only the size is wanted.
pub(crate) const FEW: usize = 16;
/// An answer that names the model is expected within this many entries.
pub(crate) const MODEL_WITHIN: usize = 1024;

/// Returns true if a request contains the whole conversation.
pub(crate) fn is_all(asked: &Asked, prepared: &Prepared) -> bool {
    let is_less = |change: &Change| matches!(change.step, Step::Limit | Step::Cut);
    asked.images && !prepared.changes.iter().any(is_less)
}

/// Returns the size of the whole conversation, the same for every command.
pub(crate) fn measured(session: &At<'_>, asked: &Asked, found: &Material) -> Measured {
    if found.measure.reported.is_some() {
        return found.measure.whole(0);
    }
    let all = Asked { limits: Limits::default(), results: None, images: true, ..asked.clone() };
    let prepared = request(session, &all, found, found.items.clone());
    found.measure.whole(prepared.tokens())
}

/// Returns the size of a session at its current head.
pub(crate) fn size(session: &At<'_>, asked: &Asked) -> Result<Measured, OpsError> {
    let found = material(session, None, asked, usize::MAX, &Damages::default())?;
    Ok(measured(session, asked, &found))
}

/// Makes a request from items.
pub(crate) fn request(
    session: &At<'_>,
    asked: &Asked,
    found: &Material,
    mut items: Vec<Item>,
) -> Prepared {
    // System messages go before the summary of the conversation that followed them.
    let front = front(&items);
    if let Some(front) = items.get_mut(..front) {
        front.sort_by_key(Item::is_summary);
    }
    let Traits { interface, around_summary, unanswered, .. } = *session.format.traits();
    let in_place = session.format.traits().takes_results_in_place;
    for item in items.iter_mut().filter(|item| item.is_summary()) {
        if let Some(around) = around_summary {
            surround(item, around, found.counting);
        }
    }
    let maker = interface.map(|interface| match interface {
        Interface::Anthropic => Shape::Anthropic,
        Interface::Openai => Shape::Openai,
    });
    let is_agents = asked.shape == Shape::Agent && asked.images;
    let shape = match asked.shape {
        Shape::Agent if !(in_place.is_some() && asked.images) => Shape::Messages,
        shape => shape,
    };
    let hygiene = Hygiene { shape, images: asked.images, maker };
    let (limits, counting, measure) = (asked.limits, found.counting, found.measure);
    let plan = Plan { hygiene, limits, counting, measure, in_place };
    let name = |n: EntryNumber| {
        let found = session.store.entries(session.key, n.alone()).unwrap_or_default();
        found.first().map_or_else(|| n.to_string(), |entry| format!("{:.12}", entry.id))
    };
    let cutting = asked.results.as_ref().map(|bound| Cutting {
        bound,
        share: Cutting::share_of(bound.window.unwrap_or(found.window.tokens)),
        session: &session.name.id,
        name: &name,
    });
    match unanswered.filter(|_| is_agents) {
        Some(unanswered) => {
            let missing = match unanswered {
                Unanswered::Nothing => None,
                Unanswered::Answer { words, is_error, is_by_turn } => {
                    Some(Missing { words, is_error, is_by_turn })
                }
            };
            context::as_sent(items, missing, &plan, cutting.as_ref())
        }
        None => context::prepare(items, &plan, cutting.as_ref()),
    }
}

/// Surrounds a summary with the text that its agent adds only when sending it.
fn surround(item: &mut Item, [before, behind]: [&str; 2], counting: Counting) {
    item.change(|message| {
        let texts = message.blocks.iter_mut().filter_map(|block| match block {
            Block::Text(text) => Some(text),
            _ => None,
        });
        for text in texts.take(1) {
            *text = [before, text, behind].concat();
        }
    });
    let more = counting.text(before) + counting.text(behind);
    item.tokens = item.tokens.map(|tokens| tokens + more);
}

/// Returns how full the window is at a position, by default the current head, from as few of the last entries as possible. `read`
/// is the number of entries to read first, and about the maximum.
pub(crate) fn fullness_at(
    session: &At<'_>,
    position: Option<Position>,
    asked: &Asked,
    read: Range<usize>,
) -> Result<Fullness, OpsError> {
    let mut limit = read.start;
    loop {
        let damages = Damages::gathered();
        let found = prepared(session, position, asked, limit, &damages)?;
        let is_whole = found.is_whole;
        let Measured { tokens, word } = found.measured;
        let is_least = !is_whole && word != Word::Reported;
        // A file that names its model also reports the window.
        let has_window = found.told.model.is_none() || found.told.window.is_some();
        let has_model = found.model.is_some() && has_window || limit >= MODEL_WITHIN;
        let is_enough = has_model && (!is_least || tokens > found.window.tokens);
        if is_whole || is_enough || limit >= read.end {
            let (model, window, damaged) = (found.model, found.window, found.damaged);
            return Ok(Fullness { tokens, window, is_least, word, model, damaged });
        }
        limit = limit.saturating_mul(4);
    }
}

/// Returns how full the window is, if the last few entries report it.
pub(crate) fn full_enough(session: &At<'_>, asked: &Asked) -> Option<Fullness> {
    let full = fullness_at(session, None, asked, FEW..MODEL_WITHIN).ok();
    full.filter(|full| !full.is_least)
}

/// Returns the request for the last `limit` entries up to a position.
pub(crate) fn prepared(
    session: &At<'_>,
    position: Option<Position>,
    asked: &Asked,
    limit: usize,
    damages: &Damages,
) -> Result<Context, OpsError> {
    let mut found = material(session, position, asked, limit, damages)?;
    let items = std::mem::take(&mut found.items);
    let prepared = request(session, asked, &found, items);
    let (measure, tokens) = (found.measure, prepared.tokens());
    let is_all = is_all(asked, &prepared);
    let measured = if is_all { measure.whole(tokens) } else { measure.part(tokens) };
    let (images, image_bytes) = pictures(&prepared.items);
    let Material { model, told, window, counting, sent, is_whole, measure, fresh, .. } = found;
    Ok(Context {
        shape: asked.shape,
        model,
        told,
        window,
        counting,
        images,
        image_bytes,
        prepared,
        measured,
        reported: measure.reported,
        beside: measure.beside,
        at: position.or(session.state.position()),
        sent,
        is_whole,
        fresh,
        damaged: damages.met(session)?,
    })
}
