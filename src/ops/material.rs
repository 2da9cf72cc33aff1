//! Material: what a model sees of a session before a request is made of it, counted and measured.
//!
//! Counts that had to be made for it are returned with it.

use crate::{
    context::{
        tokens::{Counting, Encoding},
        window::{Source, Verdict, Window},
    },
    model::Position,
    ops::{
        OpsError,
        counted::count,
        measuring,
        seen::{Asked, Material, seen},
    },
    session::{Damages, Session, View},
    sync::Archive,
    wire::Told,
};

/// Returns the messages of the last `limit` entries that led to a position, or to where the current branch is.
///
/// A window that is too small is refused if the user gave it; one that was found with the session hinders nobody from
/// reading it.
pub(super) fn material(
    archive: &Archive,
    session: &Session,
    position: Option<Position>,
    asked: &Asked,
    limit: usize,
    damages: &Damages,
) -> Result<Material, OpsError> {
    // A window that was asked for decides alone, before anything is read.
    let early = asked.resolve(&Told::default(), None, None);
    if asked.window.is_some() || early.source != Source::Default {
        guard(&early)?;
    }
    let tip = archive.store().state(session.key)?;
    let view = position.or(tip.position());
    let look = |at| View::new(archive.store(), session, at, Some(&tip.spans));
    let view = view.map(|at| look(at).gathering(damages));
    let mut found = seen(archive, session, view.as_ref(), asked, limit)?;
    if !found.window.source.is_found() {
        guard(&found.window)?;
    }
    let model = found.model.as_deref();
    found.counting = asked.counting.unwrap_or_else(|| Counting::Exact(Encoding::of_model(model)));
    found.fresh = count(archive, session, &mut found.items, found.counting)?;
    if let Some(view) = &view {
        found.answer = measuring::newest(archive, session, view, &found)?;
        found.measure = measuring::measure(archive, session, view, &mut found)?;
    }
    Ok(found)
}

/// Refuses a window that is too small to work in.
pub(super) fn guard(window: &Window) -> Result<(), OpsError> {
    let &Window { tokens, source: by, least, .. } = window;
    match window.verdict {
        Verdict::Blocked => Err(OpsError::Window { tokens, by, least }),
        Verdict::Fine | Verdict::Warned => Ok(()),
    }
}
