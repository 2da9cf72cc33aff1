//! Shows the origin of an entry (`session::history::origins`), and the part of it that the entry hides.
//!
//! Invariant: no character of a text is in neither its shown nor its hidden part, or in both.

use crate::{
    archive::At,
    context::cut,
    json::Raw,
    model::EntryNumber,
    report::{Hidden, HiddenText},
    session::{Session, SessionError, Target, history::origins, read::lines},
    store::whole_lines,
    verbs::OpsError,
};

/// Returns the entry that replaces this one: the one in the current generation, or else the newest.
fn successor(session: &At<'_>, entry: EntryNumber) -> Result<Option<EntryNumber>, OpsError> {
    let mut found = vec![entry];
    // A replacement usually has a higher number; an origin that was stored aside comes directly before it.
    for (_, origin) in session.store.origins(session.key, EntryNumber::ALL)? {
        if found.contains(&origin.origin) {
            found.push(origin.entry);
        }
    }
    found.retain(|other| *other != entry);
    let runs = session
        .state
        .position()
        .map(|at| session.store.runs(session.key, at.generation, 0))
        .transpose()?;
    let is_current =
        |entry: &EntryNumber| runs.iter().flatten().any(|run| run.entries().contains(entry));
    Ok(found.iter().rev().find(|entry| is_current(entry)).or(found.last()).copied())
}

/// Returns the hidden text: for an entry that replaces another, the part that it does not show; for an origin, the part that its
/// replacement does not show.
pub fn hidden(session: &At<'_>, target: &Target) -> Result<Hidden, OpsError> {
    let entry = lines::entry_of(session, target)?.ok_or(SessionError::Start)?;
    let origin = origins::first(session, entry)?;
    let shown = if origin == entry { successor(session, entry)?.unwrap_or(entry) } else { entry };
    let mut lines = Vec::with_capacity(2);
    whole_lines(session.store, session.key, &[origin, shown], &mut |_, line| lines.push(line))?;
    let texts = match lines.as_slice() {
        [whole, shown] => seams(session, whole, shown),
        _ => Vec::new(),
    };
    let (entry, origin) = (session.id_of(shown)?, session.id_of(origin)?);
    Ok(Hidden { entry, origin, texts })
}

/// Returns the first origin of a target, outside of any checkpoint, or the target itself if it has none.
pub fn original(session: &At<'_>, target: &Target) -> Result<Target, OpsError> {
    let Some(entry) = lines::entry_of(session, target)? else {
        return Ok(target.clone());
    };
    let mut original = target.clone();
    original.checkpoint = None;
    original.position.head = Some(origins::first(session, entry)?);
    Ok(original)
}

/// Pairs the texts of tool results in two lines, and returns the pairs where the second text is a cut version of the first; or the
/// thinking in the first line, if the second has none.
fn seams(session: &Session, whole: &[u8], shown: &[u8]) -> Vec<HiddenText> {
    let texts = |line: &[u8]| -> Vec<(String, usize, String)> {
        let answers = Raw::object(line).map(|record| session.format.answers(record).sent);
        let texts = answers.into_iter().flatten().flat_map(|answer| {
            let texts = answer.texts.into_iter().enumerate();
            texts.map(move |(nth, piece)| (answer.call.clone(), nth, piece.text()))
        });
        texts.collect()
    };
    let thoughts = |line: &[u8]| {
        Raw::object(line)
            .map(|record| session.format.answers(record).thoughts())
            .unwrap_or_default()
    };
    let is_dropped = thoughts(shown).is_empty();
    let dropped = thoughts(whole).into_iter().enumerate().filter(|_| is_dropped);
    let dropped = dropped.map(|(text, whole)| {
        let (call, suffix) = (String::new(), String::new());
        HiddenText { call, text, whole, seam: 0, suffix }
    });
    let pairs = texts(whole).into_iter().zip(texts(shown));
    let seam = |((call, text, whole), (.., shown)): ((String, usize, String), (_, _, String))| {
        let seam = cut::seam(&whole, &shown)?;
        Some(HiddenText { call, text, whole, seam, suffix: shown.get(seam..)?.to_owned() })
    };
    dropped.chain(pairs.filter_map(seam)).collect()
}
