//! Lineage: the file of a session from which another file of it continues.
//!
//! ```text
//! generation 1   a b c d e f          generation 2   (generation 1, up to d) g h
//!                                     generation 3   (generation 2, up to g) i
//!                                     the path of i: a b c d g i
//! ```
//!
//! The generation that a file's first record refers to is looked up when needed. So the order in which the files were imported
//! does not matter, and a base that was imported again is read in its newest state.
//!
//! Invariant: no entry belongs to two sessions. A history that begins in another session is read from the part of that session's
//! file that was imported along with this one, and is missing if there is none.

use crate::{
    json::Raw,
    model::{
        EntryNumber, File, FileNumber, Generation, GenerationNumber, PlaceNumber, Position, State,
    },
    session::{
        Elsewhere, Gap, SessionError, View,
        graph::beginning::{Begins, FOLLOWED},
    },
    store::StoreError,
    wire::{Base, FileName, Graph, first_record},
};

/// How many entries are read together to find the end of a base.
const LOOKED: u64 = 256;

impl View<'_> {
    /// Returns where the history of the generation begins.
    pub(crate) fn begins(&self) -> Result<&Begins, SessionError> {
        if let Some(known) = self.begins.get() {
            return Ok(known);
        }
        let found = find_begin(self)?;
        Ok(self.begins.get_or_init(|| found))
    }

    /// Returns where the history that leads here begins, if that part is missing.
    pub(crate) fn elsewhere(&self) -> Result<Option<Elsewhere>, SessionError> {
        let begins = self.climb(&mut |_| Ok(()))?;
        Ok(if let Begins::Elsewhere(elsewhere) = begins { Some(elsewhere) } else { None })
    }

    /// Visits each of the files that lead here, last one first, and returns where the first one begins.
    pub(crate) fn climb(
        &self,
        each: &mut dyn FnMut(&Self) -> Result<(), SessionError>,
    ) -> Result<Begins, SessionError> {
        each(self)?;
        let mut begins = self.begins()?.clone();
        let mut held;
        let mut view = self;
        while let Begins::At(position) = begins {
            held = view.base(position);
            each(&held)?;
            begins = held.begins()?.clone();
            view = &held;
        }
        Ok(begins)
    }

    /// Returns why the agent does not resume the generation's file, if it does not. Lines that are not records are ignored.
    pub(crate) fn unresumed(&self) -> Result<Option<&'static str>, SessionError> {
        Ok(self.format.unresumed(first_record(self)?.as_ref()))
    }

    /// Returns a view of a generation that this one continues.
    pub(crate) fn base(&self, position: Position) -> Self {
        let mut base = Self::over(self.store, self.key, self.format, position);
        base.kept = self.kept.clone();
        base.pending = self.pending.as_ref().map(|pending| pending.of(position.generation));
        base.behind.clone_from(&self.behind);
        base.behind.insert(self.position.generation);
        base.gathering(&self.damages)
    }
}

/// Moves to the first of the files that lead here.
pub(crate) fn into_first(mut view: View<'_>) -> Result<View<'_>, SessionError> {
    while let Begins::At(position) = *view.begins()? {
        view = view.base(position);
    }
    Ok(view)
}

/// Returns the entries of all files that lead here, first file first.
pub(crate) fn lineage(view: &View<'_>) -> Result<Vec<EntryNumber>, SessionError> {
    let mut files = Vec::new();
    view.climb(&mut |view| {
        files.push(view.sequence()?);
        Ok(())
    })?;
    files.reverse();
    Ok(files.concat())
}

/// Returns the position in the files that lead here where an entry is the last one.
pub(crate) fn ending_at(
    view: &View<'_>,
    entry: EntryNumber,
) -> Result<Option<Position>, SessionError> {
    let mut found = None;
    view.climb(&mut |view| {
        if let (None, Some(place)) = (found, view.place(entry)?) {
            let (head, horizon) = (Some(entry), place.next().get());
            found = Some(Position { head, horizon, ..view.position });
        }
        Ok(())
    })?;
    Ok(found)
}

/// Counts the entries from one on, in the files that lead here. Returns nothing if none of them has it.
pub(crate) fn since(view: &View<'_>, entry: EntryNumber) -> Result<Option<u64>, SessionError> {
    let (mut since, mut found) = (0, None);
    view.climb(&mut |view| {
        if found.is_none() {
            let place = view.place(entry)?;
            since += view.end().since(place.unwrap_or(PlaceNumber::FIRST));
            found = place.map(|_| since);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Returns a view of the session's newest file with this id, complete.
pub(crate) fn of_file<'a>(view: &View<'a>, id: &str) -> Result<Option<View<'a>>, SessionError> {
    let Some(&generation) = states(view, |name| name.id == id)?.first() else { return Ok(None) };
    let whole = view.base(Position { generation, head: None, horizon: u64::MAX });
    let horizon = whole.runs_behind(0)?.last().map_or(0, crate::model::Run::end);
    Ok(Some(view.base(Position { generation, head: None, horizon })))
}

/// Returns true if one of a session's own files has this id.
pub(crate) fn has_file(view: &View<'_>, session: &str, id: &str) -> Result<bool, SessionError> {
    Ok(!states(view, |name| name.id == id && name.session == session)?.is_empty())
}

/// Returns how many entries end within this many bytes of the generation's file, or `None` if the file is shorter.
///
/// Counts back from the end of the run, because a revert usually keeps more entries than it drops.
pub(crate) fn entries_within(view: &View<'_>, bytes: u64) -> Result<Option<u64>, StoreError> {
    let runs = view.runs_behind(0)?;
    if runs.last().is_none_or(|run| run.length() < bytes) {
        return Ok(None);
    }
    if bytes == 0 {
        return Ok(Some(0));
    }
    let within = runs.iter().rfind(|run| run.bytes <= bytes).map_or(0, crate::model::Run::end);
    let Some(run) = runs.iter().find(|run| run.bytes > bytes) else { return Ok(Some(within)) };
    let gaps: Vec<u64> = run.gaps.iter(run.start, run.count).map(|gap| gap.len() as u64).collect();
    let (mut left, mut end) = (run.count, run.bytes);
    while end > bytes && left > 0 {
        let some = left.min(LOOKED);
        let lengths = view.lengths(run.first.plus(left - some)..run.first.plus(left))?;
        for length in lengths.into_iter().rev() {
            if end <= bytes {
                break;
            }
            left -= 1;
            let gap = usize::try_from(left).ok().and_then(|n| gaps.get(n));
            end = end.saturating_sub(length + gap.copied().unwrap_or(0));
        }
    }
    Ok(Some(run.start + left))
}

fn find_begin(view: &View<'_>) -> Result<Begins, SessionError> {
    let Some(first) = view.at(PlaceNumber::FIRST)? else { return Ok(Begins::Here) };
    let line = view.line(first)?;
    let base = Raw::object(&line).and_then(|record| view.format.base(record));
    let Some(base) = base else { return Ok(Begins::Here) };
    let states = states(view, |name| name.id == base.file)?;
    let mut met = None;
    for generation in states {
        if view.position.generation == generation
            || view.behind.contains(&generation)
            || view.behind.len() >= FOLLOWED
        {
            met = Some(Gap::Endless);
            continue;
        }
        let whole = Position { generation, head: None, horizon: u64::MAX };
        let entries = base.bytes.map(|bytes| entries_within(&view.base(whole), bytes));
        if let Some(horizon) = entries.transpose()?.flatten().filter(|entries| *entries > 0) {
            return Ok(Begins::At(Position { horizon, ..whole }));
        }
        met = met.or(Some(Gap::Short));
    }
    let gap = met.map_or_else(|| gap(view, &base), Ok)?;
    Ok(Begins::Elsewhere(Elsewhere { file: base.file, ordinal: base.ordinal, gap }))
}

/// Returns why the base is not among the session's files.
fn gap(view: &View<'_>, base: &Base) -> Result<Gap, SessionError> {
    if let Some(session) = &base.session {
        return Ok(Gap::Parent(session.clone()));
    }
    // Only a later file of a session can continue another one of it.
    let own = files(view)?.into_iter().find(|(_, at)| *at == view.position.generation);
    let is_later = own.is_some_and(|(name, _)| name.id != name.session);
    Ok(if is_later { Gap::Missing } else { Gap::Parent(base.file.clone()) })
}

/// Returns the newest generation of each file selected by name, newest first.
fn states(
    view: &View<'_>,
    is_meant: impl Fn(&FileName) -> bool,
) -> Result<Vec<GenerationNumber>, SessionError> {
    let meant = files(view)?.into_iter().filter(|(name, _)| is_meant(name));
    let mut states: Vec<GenerationNumber> = meant.map(|(_, generation)| generation).collect();
    states.sort_unstable_by(|one, other| other.cmp(one));
    Ok(states)
}

/// Returns the parsed names of the session's files, each with its newest generation.
fn files(view: &View<'_>) -> Result<Vec<(FileName, GenerationNumber)>, SessionError> {
    let state = view.key.map_or_else(|| Ok(State::default()), |key| view.store.state(key))?;
    let held = FileNumber::FIRST
        .onwards()
        .zip(&state.files)
        .map(|(n, place)| File { n, place: place.clone() });
    let mut files: Vec<File> = held.collect();
    let mut generations: Vec<Generation> =
        state.generations.iter().map(|(_, generation)| *generation).collect();
    if let Some(pending) = &view.pending {
        files.extend(pending.facts.files.iter().cloned());
        generations.extend(pending.facts.generations.iter().copied());
    }
    let named = files.into_iter().filter_map(|file| {
        let of_file = generations.iter().filter(|generation| generation.file == Some(file.n));
        let newest = of_file.map(|generation| generation.n).max()?;
        Some((view.format.file_name(file.place.name()?)?, newest))
    });
    Ok(named.collect())
}
