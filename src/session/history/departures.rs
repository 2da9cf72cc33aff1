//! Departures: how an agent left each file that it set aside for the next one.
//!
//! ```text
//! context_1    a b c d          left by a compaction: the boundary follows d and the path to d
//! context      a boundary e     the boundary is the first entry where the two files differ
//! ```

use std::collections::BTreeMap;

use crate::{
    model::{EntryNumber, Place, PlaceNumber, Position, Run, State},
    session::{Damages, SessionError, Stored},
    wire::{Departure, Format, Graph as _},
};

/// A file that was left for the next one.
#[derive(Clone, Debug)]
pub(crate) struct Left {
    /// Its end.
    pub(crate) at: Position,
    /// Its last entry.
    pub(crate) head: EntryNumber,
    /// How it was left.
    pub(crate) by: Departure,
    /// If it was compacted: the first entry of the next file that follows its end.
    pub(crate) next: Option<EntryNumber>,
}

/// Returns how each file that the agent set aside was left, in order.
pub(crate) fn departures(
    session: &Stored<'_>,
    damages: &Damages,
) -> Result<Vec<Left>, SessionError> {
    let look = |at: &Position| session.view(*at).gathering(damages);
    let mut found = Vec::new();
    for pair in set_aside(&session.state, session.format).windows(2) {
        let [at, next] = pair else { continue };
        let (old, next) = (look(at), look(next));
        let Some(by) = session.format.departure(&old, &next)? else { continue };
        // A move by a command is already visible in its branches.
        if by != Departure::Compaction && is_by_command(&session.state, at) {
            continue;
        }
        let Some(head) = session.format.head(&old)? else { continue };
        let mut first = None;
        if by == Departure::Compaction {
            let mut place = PlaceNumber::FIRST;
            while place < next.end() && next.at(place)? == old.at(place)? {
                place = place.next();
            }
            first = next.at(place)?;
        }
        found.push(Left { at: Position { head: Some(head), ..*at }, head, by, next: first });
    }
    Ok(found)
}

/// Returns true if a command set a file aside. The file may have been imported since under its new name.
fn is_by_command(state: &State, at: &Position) -> bool {
    let place = state.file_of(at.generation).and_then(|file| state.file(file));
    let name = place.and_then(Place::name);
    state.rotations.iter().any(|(_, rotation)| {
        let aside = str::from_utf8(&rotation.aside).ok();
        rotation.old == at.generation || name.is_some() && name == aside
    })
}

/// Returns the ends of the files that an agent set aside, in order, followed by that of the live file.
pub(crate) fn set_aside(state: &State, format: &dyn Format) -> Vec<Position> {
    let mut rotated: BTreeMap<u64, Position> = BTreeMap::new();
    let mut live = None;
    for (_, generation) in &state.generations {
        let Some(place) = generation.file.and_then(|file| state.file(file)) else { continue };
        let aside = state.rotations.iter().find(|(_, rotation)| rotation.old == generation.n);
        let horizon = state.ends.get(&generation.n).map_or(0, Run::end);
        let end = Position { generation: generation.n, head: None, horizon };
        let name = match aside {
            Some((_, rotation)) => str::from_utf8(&rotation.aside).ok(),
            None => place.name(),
        };
        match name.and_then(|name| format.rotation(name)) {
            Some(n) => {
                rotated.insert(n, end);
            }
            None if name.is_some() && name == format.traits().live_name => live = Some(end),
            None => {}
        }
    }
    rotated.into_values().chain(live).collect()
}
