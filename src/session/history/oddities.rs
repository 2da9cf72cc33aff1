//! Oddities of a session: no damage, but each explains why a path differs from what the file alone suggests.
//!
//! Invariant: no oddity that an import reports by line is missing here, where it is reported by entry.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    json::Raw,
    model::{EntryNumber, Kind, NameTag, PlaceNumber, Position, Run},
    session::{Damages, SessionError, Stored, View},
    wire::Graph,
};

/// The description of a record that repeats another.
pub(crate) const REPEATED: &str = "an earlier record has the same id";

/// Returns the places of records in a generation that have the same name as an earlier one.
pub(crate) fn repeated(view: &View<'_>) -> Result<Vec<PlaceNumber>, SessionError> {
    let mut names: BTreeSet<NameTag> = BTreeSet::new();
    let mut repeated = Vec::new();
    for (place, entry) in PlaceNumber::FIRST.onwards().zip(view.sequence()?) {
        // Without a name, an equal line is a different entry.
        if view.record(entry)?.name.is_some_and(|name| !names.insert(name)) {
            repeated.push(place);
        }
    }
    Ok(repeated)
}

/// Returns the oddities of the newest state of each file of a session: each kind with its entries.
pub(crate) fn oddities(
    session: &Stored<'_>,
) -> Result<BTreeMap<&'static str, Vec<EntryNumber>>, SessionError> {
    let mut found: BTreeMap<&'static str, BTreeSet<EntryNumber>> = BTreeMap::new();
    let view = session.view(Position::default());
    // An unreadable line is reported as damage, not as an oddity.
    let damages = Damages::gathered();
    let mut view = view.gathering(&damages);
    let (mut newest, mut walked) = (BTreeMap::new(), Vec::new());
    for (_, held) in &session.state.generations {
        newest.insert(held.file, held.n);
    }
    for generation in newest.into_values() {
        let horizon = session.state.ends.get(&generation).map_or(0, Run::end);
        view = view.moved(Position { generation, head: None, horizon });
        for (place, entry) in PlaceNumber::FIRST.onwards().zip(view.sequence()?) {
            if view.as_derived(entry)?.kind == Kind::Opaque {
                let line = view.line(entry)?;
                let what = match Raw::object(&line) {
                    _ if damages.of(entry).is_some() => continue,
                    Some(_) => "a record that its agent ignores",
                    None => "not a JSON object",
                };
                found.entry(what).or_default().insert(entry);
            } else if view.is_glued(place)? {
                found.entry("a second record on the same line").or_default().insert(entry);
            }
        }
        for place in repeated(&view)? {
            found.entry(REPEATED).or_default().extend(view.at(place)?);
        }
        if let Some(head) = session.format.head(&view)? {
            for repair in session.format.path(&view, head, usize::MAX)?.repairs {
                found.entry(repair.what).or_default().insert(repair.entry);
            }
            walked.push(Position { generation, head: Some(head), horizon });
        }
    }
    for &position in session.state.branches.values() {
        if walked.contains(&position) {
            continue;
        }
        walked.push(position);
        view = view.moved(position);
        for repair in view.path(usize::MAX)?.repairs {
            found.entry(repair.what).or_default().insert(repair.entry);
        }
    }
    Ok(found.into_iter().map(|(what, entries)| (what, entries.into_iter().collect())).collect())
}
