//! Caches: how much of a conversation its provider may still have cached and a cut would make it read again.
//!
//! A provider's cache covers a request up to its first change, and each use extends its lifetime.

use crate::{
    archive::At,
    context::measure::Measured,
    json::Raw,
    model::{EntryId, IdPrefix, Timestamp},
    report::Cached,
    session::Damages,
    verbs::{
        OpsError,
        window::{
            measure::{NEWEST, material},
            request::measured,
            sight::Asked,
        },
    },
};

/// How long a provider caches unless the answer says otherwise, in seconds: five minutes at Anthropic, and about the minimum
/// elsewhere.
const KEPT: u64 = 300;

/// Returns how much of the cached part of a session comes after the first result that is cut, if the provider may still have it.
/// `cut` finds that result and is called only then.
pub fn cached(
    session: &At<'_>,
    asked: &Asked,
    cut: impl FnOnce() -> Result<Option<EntryId>, OpsError>,
) -> Result<Option<Cached>, OpsError> {
    // The size of the window does not matter here.
    let asked = &Asked { window: Some(u64::MAX), ..asked.clone() };
    let Some((held, until)) = warm(session, asked)? else { return Ok(None) };
    let Some(first) = cut()? else { return Ok(None) };
    let found = material(session, None, asked, usize::MAX, &Damages::gathered())?;
    let Measured { tokens: all, .. } = measured(session, asked, &found);
    let numbers = session.store.find(session.key, &IdPrefix::whole(&first))?;
    let at = found.items.iter().position(|i| i.entry().is_some_and(|n| numbers.contains(&n)));
    let behind = found.items.get(at.unwrap_or(found.items.len())..).unwrap_or_default();
    let behind = behind.iter().filter_map(|item| item.tokens).sum();
    let behind = found.measure.scale.unwrap_or_default().part(behind);
    let tokens = held.saturating_sub(all.saturating_sub(behind));
    Ok((tokens > 0).then_some(Cached { tokens, until }))
}

/// Returns how many tokens the newest answer reports as cached, and until when.
fn warm(session: &At<'_>, asked: &Asked) -> Result<Option<(u64, Timestamp)>, OpsError> {
    let found = material(session, None, asked, NEWEST, &Damages::gathered())?;
    let Some(answer) = found.answer.filter(|answer| answer.is_standing) else { return Ok(None) };
    let held = answer.usage.cache_read.saturating_add(answer.usage.cache_write);
    let Some(time) = answer.time.filter(|_| held > 0) else { return Ok(None) };
    let mut line = Vec::new();
    Damages::gathered().lines(session.store, session.key, &[answer.entry], &mut |_, l| line = l)?;
    let told = Raw::object(&line).map(|record| session.format.told(record)).unwrap_or_default();
    let seconds = told.cached_for.unwrap_or(KEPT);
    let until = Timestamp(time.0.saturating_add_unsigned(seconds.saturating_mul(1_000)));
    Ok((session.archive.now() < until).then_some((held, until)))
}
