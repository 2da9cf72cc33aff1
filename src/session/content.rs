//! Content: the bytes of a generation, put together again from its runs.

use std::{collections::BTreeMap, io, ops::Range};

use crate::{
    model::{Entry, EntryId, GenerationNumber, LineId, Run},
    session::{Session, SessionError},
    store::{SessionKey, Store, StoreError, whole_lines},
};

/// How many lines are asked for at a time.
const BATCH: u64 = 256;

/// Hands over the bytes of runs, the tail of the last one included, and returns how many they are.
pub(crate) fn write(
    store: &dyn Store,
    session: &Session,
    runs: &[Run],
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<u64, SessionError> {
    write_from(store, session, runs, 0, each)
}

/// Hands over the bytes of runs from the entry at a place on.
fn write_from(
    store: &dyn Store,
    session: &Session,
    runs: &[Run],
    place: u64,
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<u64, SessionError> {
    let mut written = 0;
    let mut failed = None;
    let mut put = |bytes: &[u8]| {
        if failed.is_none() {
            written += bytes.len() as u64;
            failed = each(bytes).err();
        }
    };
    for run in runs {
        let before = place.saturating_sub(run.start).min(run.count);
        let separators = run.gaps.iter(run.start, run.count);
        let mut separators = separators.skip(usize::try_from(before).unwrap_or(usize::MAX));
        let end = run.first + run.count;
        for from in (run.first + before..end).step_by(usize::try_from(BATCH).unwrap_or(1)) {
            let batch: Vec<u64> = (from..end.min(from + BATCH)).collect();
            whole_lines(store, session.key, &batch, &mut |_, line| {
                put(separators.next().unwrap_or_default());
                put(&line);
            })?;
        }
    }
    put(runs.last().map(|run| run.tail.as_slice()).unwrap_or_default());
    match failed {
        None => Ok(written),
        Some(source) => Err(SessionError::Write { source }),
    }
}

/// Returns the last bytes of a generation that ends with this run: at least `least` of them, unless it has fewer.
pub(crate) fn last(
    store: &dyn Store,
    session: &Session,
    generation: GenerationNumber,
    end: Option<&Run>,
    least: usize,
) -> Result<Vec<u8>, SessionError> {
    let end = end.map_or(0, Run::end);
    let mut count = 64;
    loop {
        let place = end.saturating_sub(count);
        let runs = store.runs(session.key, generation, place)?;
        let mut bytes = Vec::new();
        write_from(store, session, &runs, place, &mut |part| {
            bytes.extend_from_slice(part);
            Ok(())
        })?;
        if bytes.len() >= least || place == 0 {
            return Ok(bytes);
        }
        count = count.saturating_mul(8);
    }
}

/// Returns the bytes of runs.
pub(crate) fn bytes(
    store: &dyn Store,
    session: &Session,
    runs: &[Run],
) -> Result<Vec<u8>, SessionError> {
    let mut bytes = Vec::new();
    write(store, session, runs, &mut |part| {
        bytes.extend_from_slice(part);
        Ok(())
    })?;
    Ok(bytes)
}

/// Returns, for each of these entries, the id that its line has by itself, wherever it stands: that of a line with a name
/// says it already.
pub(crate) fn alone(
    store: &dyn Store,
    session: SessionKey,
    range: Range<u64>,
) -> Result<Vec<EntryId>, StoreError> {
    let entries = store.entries(session, range)?;
    let linked = entries.iter().filter(|entry| entry.link.is_some());
    let linked: Vec<u64> = linked.map(|entry| entry.n).collect();
    let mut found = BTreeMap::new();
    whole_lines(store, session, &linked, &mut |n, line| {
        found.insert(n, EntryId::of(None, LineId::of(&line)));
    })?;
    let id = |entry: &Entry| found.get(&entry.n).copied().unwrap_or(entry.id);
    Ok(entries.iter().map(id).collect())
}
