//! Content: reassembles the bytes of a generation from its runs.

use std::{collections::BTreeMap, io, ops::Range};

use crate::{
    model::{Entry, EntryId, EntryNumber, GenerationNumber, LineId, Run, Span},
    session::{Damages, SessionError, Stored},
    store::{SessionKey, Store, StoreError},
};

/// How many lines are read at a time.
const BATCH: usize = 256;

/// Passes on the bytes of runs, including the tail of the last one, and returns their number.
pub(crate) fn write(
    session: &Stored<'_>,
    runs: &[Run],
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<u64, SessionError> {
    write_from(session, &spans(runs), tail(runs), 0, &Damages::default(), each)
}

/// Passes on the bytes of spans and of a tail.
pub(crate) fn write_spans(
    session: &Stored<'_>,
    spans: &[Span],
    tail: &[u8],
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<u64, SessionError> {
    write_from(session, spans, tail, 0, &Damages::default(), each)
}

/// Passes on the intact bytes of runs, including the tail of the last one, and returns their number. A damaged line is skipped
/// together with the separator before it.
pub(crate) fn write_whole(
    session: &Stored<'_>,
    runs: &[Run],
    damages: &Damages,
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<u64, SessionError> {
    write_from(session, &spans(runs), tail(runs), 0, damages, each)
}

fn spans(runs: &[Run]) -> Vec<Span> {
    runs.iter().map(Span::from).collect()
}

fn tail(runs: &[Run]) -> &[u8] {
    runs.last().map_or(&[], |run| &run.tail)
}

/// Passes on the bytes of spans, starting with the entry at a place, and of a tail.
fn write_from(
    session: &Stored<'_>,
    spans: &[Span],
    tail: &[u8],
    place: u64,
    damages: &Damages,
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
    for span in spans {
        let before = place.saturating_sub(span.start).min(span.count);
        let separators = span.gaps.iter(span.start, span.count);
        let mut separators = separators.skip(usize::try_from(before).unwrap_or(usize::MAX));
        for batch in EntryNumber::batches(span.first.plus(before)..span.entries().end, BATCH) {
            let batch: Vec<EntryNumber> = EntryNumber::each(batch).collect();
            damages.each_line(session.store, session.key, &batch, &mut |_, line| {
                let separator = separators.next().unwrap_or_default();
                if let Some(line) = line {
                    put(separator);
                    put(&line);
                }
            })?;
        }
    }
    put(tail);
    match failed {
        None => Ok(written),
        Some(source) => Err(SessionError::Write { source }),
    }
}

/// Returns the last bytes of a generation that ends with this run: at least `least` of them, or all.
pub(crate) fn last(
    session: &Stored<'_>,
    generation: GenerationNumber,
    end: Option<&Run>,
    least: usize,
) -> Result<Vec<u8>, SessionError> {
    let end = end.map_or(0, Run::end);
    let mut count = 64;
    loop {
        let place = end.saturating_sub(count);
        let mut runs = session.store.runs(session.key, generation, place)?;
        // Another program may have appended to the generation since its end was read.
        runs.retain(|run| run.end() <= end);
        let mut bytes = Vec::new();
        let (spans, tail, damages) = (spans(&runs), tail(&runs), Damages::default());
        write_from(session, &spans, tail, place, &damages, &mut |part| {
            bytes.extend_from_slice(part);
            Ok(())
        })?;
        if bytes.len() >= least || place == 0 {
            return Ok(bytes);
        }
        count = count.saturating_mul(8);
    }
}

/// Returns the bytes that the newest operation added to a generation. They may be several runs, because the operation may also
/// have added entries outside of any generation, such as the full text of a shortened result.
pub(crate) fn newest(
    session: &Stored<'_>,
    generation: GenerationNumber,
) -> Result<Vec<u8>, SessionError> {
    let Some(newest) = session.state.newest else { return Ok(Vec::new()) };
    let added = session.store.growths(session.key, newest.n.alone())?;
    let runs = added.into_iter().map(|(_, run)| run).filter(|run| run.generation == generation);
    bytes(session, &runs.collect::<Vec<_>>())
}

/// Returns the bytes of runs.
pub(crate) fn bytes(session: &Stored<'_>, runs: &[Run]) -> Result<Vec<u8>, SessionError> {
    let mut bytes = Vec::new();
    write(session, runs, &mut |part| {
        bytes.extend_from_slice(part);
        Ok(())
    })?;
    Ok(bytes)
}

/// Returns for each of these entries the id of its line alone, without its link. A line with a name has that id already; a
/// damaged line keeps its id.
pub(crate) fn alone(
    store: &dyn Store,
    session: SessionKey,
    range: Range<EntryNumber>,
    damages: &Damages,
) -> Result<Vec<EntryId>, StoreError> {
    let entries = store.entries(session, range)?;
    let linked = entries.iter().filter(|entry| entry.link.is_some());
    let linked: Vec<EntryNumber> = linked.map(|entry| entry.n).collect();
    let mut found = BTreeMap::new();
    damages.lines(store, session, &linked, &mut |n, line| {
        found.insert(n, EntryId::of(None, LineId::of(&line)));
    })?;
    let id = |entry: &Entry| found.get(&entry.n).copied().unwrap_or(entry.id);
    Ok(entries.iter().map(id).collect())
}
