//! Kin: the session that another one was made of, and the place where they part.
//!
//! A session's own word ([`TieKind::Fork`], [`TieKind::SubAgent`], [`TieKind::Continuation`]) goes first. For sessions
//! that only begin alike, the entries tell:
//!
//! ```text
//! original   a b c d e f           its first entry of its own (e) is the oldest, or it has none
//! fork       a b c d x y           made of the one with which it shares most
//! ```
//!
//! Where entries have no time, the longer one is taken for the original.
//!
//! Invariant: the answer depends on the content of the sessions, and not on the order in which they came.

use std::{cmp::Reverse, collections::BTreeSet, ops::Range};

use crate::{
    json::Raw,
    model::{
        EntryId, EntryNumber, GenerationNumber, IdPrefix, Kind, PlaceNumber, SessionName, Tie,
        TieKind, Timestamp,
    },
    session::{Damages, Elsewhere, Gap, Session, SessionError, View, ids::entry_id},
    store::Store,
    wire::Graph,
};

/// How many sessions that begin alike are compared, the first by their names.
const ALIKE: usize = 64;

/// Among how many first records the part begins that a copy keeps.
const HEADING: usize = 8;

/// The bond of a session to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bond {
    /// It was made of a part of the other.
    Fork,
    /// It works for the other.
    SubAgent,
    /// It goes on under the other's id.
    Continuation,
}

impl Bond {
    /// Returns its name, for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fork => "fork",
            Self::SubAgent => "sub-agent",
            Self::Continuation => "continuation",
        }
    }

    /// Returns it in words, to be followed by the other session.
    pub fn words(self) -> &'static str {
        match self {
            Self::Fork => "fork of",
            Self::SubAgent => "sub-agent of",
            Self::Continuation => "continues as",
        }
    }
}

/// The session that another one was made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kin {
    /// Its bond to that session.
    pub bond: Bond,
    /// The agent's id of that session.
    pub session: String,
    /// Whether that session is in the archive.
    pub is_held: bool,
    /// Whether nothing was copied: its history begins there, and is not shown.
    pub continues: bool,
    /// The last entry that was taken over, as it is here.
    pub here: Option<EntryId>,
    /// The same entry, as it is there.
    pub there: Option<EntryId>,
}

/// Returns the session that a session was made of.
pub fn kin(store: &dyn Store, session: &Session) -> Result<Option<Kin>, SessionError> {
    let ties = store.ties(session.key)?;
    let said = |kind| -> Result<Option<String>, SessionError> {
        for tie in ties.iter().flat_map(|(_, ties)| ties).filter(|tie| tie.kind == kind) {
            if kind != TieKind::Fork || !is_own(store, session, &tie.other)? {
                return Ok(Some(tie.other.clone()));
            }
        }
        Ok(None)
    };
    for (kind, bond) in [
        (TieKind::SubAgent, Bond::SubAgent),
        (TieKind::Fork, Bond::Fork),
        (TieKind::Continuation, Bond::Continuation),
    ] {
        let Some(other) = said(kind)? else { continue };
        let name = SessionName { format: session.name.format.clone(), id: other };
        let held = Session::find(store, &name)?;
        let here = Side::of(store, session)?;
        let there = held.as_ref().map(|held| Side::of(store, held)).transpose()?;
        // A sub-agent's records name its session too; only entries that both hold were taken over.
        let copied = if bond == Bond::Fork { here.copied(&name.id)? } else { None };
        let base = if bond == Bond::Fork { here.view.elsewhere()? } else { None };
        let (here, there) = match bond {
            Bond::Fork if base.is_some() => {
                let there = base.as_ref().zip(there).map(|(base, there)| there.before(base));
                (None, there.transpose()?.flatten())
            }
            Bond::Continuation => (here.copied(&session.name.id)?.map(|(entry, _)| entry), None),
            Bond::Fork | Bond::SubAgent => match copied {
                Some((entry, copied)) => {
                    let there = there.map(|there| there.named(&copied)).transpose()?.flatten();
                    (Some(entry), there)
                }
                None => there.map(|there| here.parting(&there)).transpose()?.unwrap_or_default(),
            },
        };
        return Ok(Some(Kin {
            bond,
            session: name.id,
            is_held: held.is_some(),
            continues: base.is_some(),
            here: entry_id(store, session, here)?,
            there: held.map(|held| entry_id(store, &held, there)).transpose()?.flatten(),
        }));
    }
    alike(store, session, &beginnings(&ties))
}

/// Returns whether the named original of a session is a file of its own, from which its newest file goes on.
fn is_own(store: &dyn Store, session: &Session, other: &str) -> Result<bool, SessionError> {
    let tip = store.state(session.key)?;
    let Some(position) = tip.position() else { return Ok(false) };
    let view = View::new(store, session, position, Some(&tip.spans));
    let view = view.gathering(&Damages::gathered());
    let is_missing = |found: Elsewhere| found.file == other && found.gap == Gap::Missing;
    Ok(view.has_file(&session.name.id, other)? || view.elsewhere()?.is_some_and(is_missing))
}

/// Returns the beginnings of a session, of which most of its generations have the same.
fn beginnings(ties: &[(GenerationNumber, Vec<Tie>)]) -> BTreeSet<&Tie> {
    let all = ties.iter().flat_map(|(_, ties)| ties);
    all.filter(|tie| tie.kind == TieKind::Beginning).collect()
}

/// Finds the original among the sessions that begin as one does.
fn alike(
    store: &dyn Store,
    session: &Session,
    beginnings: &BTreeSet<&Tie>,
) -> Result<Option<Kin>, SessionError> {
    let mut best: Option<(Merit, Kin)> = None;
    let mut here = None;
    for tie in beginnings {
        let alike = store.tied(&session.name.format, tie, Some(session.key))?;
        for (key, name) in alike.into_iter().take(ALIKE) {
            let other = Session::from_store(key, name)?;
            if here.is_none() {
                here = Some(Side::of(store, session)?);
            }
            let Some(here) = &here else { continue };
            let there = Side::of(store, &other)?;
            let (shared, theirs) = (here.shared(&there)?, there.shared(here)?);
            let (mine, original) = (here.rank(shared)?, there.rank(theirs)?);
            let at = here.last_counted(here.first..shared)?;
            let Some((_, at)) = at.filter(|_| original < mine) else { continue };
            let Some(met) = here.met(at, &there)? else { continue };
            let merit = (shared, Reverse(original));
            if best.as_ref().is_none_or(|(known, _)| *known < merit) {
                let kin = Kin {
                    bond: Bond::Fork,
                    is_held: true,
                    continues: false,
                    here: entry_id(store, session, Some(at))?,
                    there: entry_id(store, &other, Some(met))?,
                    session: other.name.id.clone(),
                };
                best = Some((merit, kin));
            }
        }
    }
    Ok(best.map(|(_, kin)| kin))
}

/// Which of several originals a session was made of: the one with which it shares most, then the oldest.
type Merit = (PlaceNumber, Reverse<Rank>);

/// The rank of the older session: the time of its first own entry, or how much it has of its own; then its name.
type Rank = (Option<Timestamp>, Reverse<usize>, SessionName);

/// One of two sessions that are compared, in its current state. What a copy would hold too counts: of a session whose records
/// have names those records.
struct Side<'a> {
    session: &'a Session,
    view: View<'a>,
    is_named: bool,
    /// Where the first entry is that counts.
    first: PlaceNumber,
}

impl<'a> Side<'a> {
    fn of(store: &'a dyn Store, session: &'a Session) -> Result<Self, SessionError> {
        let tip = store.state(session.key)?;
        // The entries that were taken over stand in the first of the files that lead to the newest one.
        // A damaged record is like no other, and no reason not to compare the rest.
        let view = View::whole(store, session, &tip, tip.generation());
        let view = view.gathering(&Damages::gathered()).into_first()?;
        let mut side = Self { session, view, is_named: true, first: PlaceNumber::FIRST };
        let named = if session.format.traits().has_names { side.first_counted()? } else { None };
        side.is_named = named.is_some();
        side.first = if let Some(named) = named { named } else { side.behind_heading()? };
        Ok(side)
    }

    /// Returns the first place of the copied records.
    fn behind_heading(&self) -> Result<PlaceNumber, SessionError> {
        for found in self.counted(self.first..self.view.end()).take(HEADING) {
            let (place, entry) = found?;
            let line = self.view.line(entry)?;
            let record = Raw::object(&line);
            if record.is_some_and(|record| self.session.format.copied_part(record).is_some()) {
                return Ok(place);
            }
        }
        Ok(self.first)
    }

    /// Returns the entries at these places that count, each behind its place.
    fn counted(
        &self,
        places: Range<PlaceNumber>,
    ) -> impl DoubleEndedIterator<Item = Result<(PlaceNumber, EntryNumber), SessionError>> {
        let counts = |place| -> Result<Option<(PlaceNumber, EntryNumber)>, SessionError> {
            let Some(entry) = self.view.at(place)? else { return Ok(None) };
            let record = self.view.record(entry)?;
            let counts = record.kind != Kind::Opaque && record.name.is_some() == self.is_named;
            Ok(counts.then_some((place, entry)))
        };
        PlaceNumber::each(places).filter_map(move |place| counts(place).transpose())
    }

    fn first_counted(&self) -> Result<Option<PlaceNumber>, SessionError> {
        let first = self.counted(self.first..self.view.end()).next().transpose()?;
        Ok(first.map(|(place, _)| place))
    }

    fn last_counted(
        &self,
        places: Range<PlaceNumber>,
    ) -> Result<Option<(PlaceNumber, EntryNumber)>, SessionError> {
        self.counted(places).next_back().transpose()
    }

    /// Returns the place before which every entry that counts has a property; those that have it stand before all others.
    fn until(
        &self,
        has: impl Fn(EntryNumber) -> Result<bool, SessionError>,
    ) -> Result<PlaceNumber, SessionError> {
        let (mut low, mut high) = (self.first, self.view.end());
        while low < high {
            let middle = low.plus(high.since(low) / 2);
            match self.last_counted(low..middle.next())? {
                Some((place, entry)) if !has(entry)? => high = place,
                _ => low = middle.next(),
            }
        }
        Ok(low)
    }

    /// Returns the entry that another side has of one of these, if it has it.
    fn met(
        &self,
        entry: EntryNumber,
        there: &Side<'_>,
    ) -> Result<Option<EntryNumber>, SessionError> {
        let store = there.view.store();
        let found = if let Some(name) = self.view.record(entry)?.name {
            store.named(there.session.key, name, name)?
        } else {
            let own = store.entries(self.session.key, entry.alone())?;
            let Some(own) = own.first() else { return Ok(None) };
            store.find(there.session.key, &IdPrefix::whole(&own.id))?
        };
        Ok(found.last().copied())
    }

    /// Returns the place before which another side has every entry too.
    fn shared(&self, there: &Side<'_>) -> Result<PlaceNumber, SessionError> {
        self.until(|entry| Ok(self.met(entry, there)?.is_some()))
    }

    /// Returns the last entry that a copy shares with its original, here and there.
    fn parting(
        &self,
        there: &Side<'_>,
    ) -> Result<(Option<EntryNumber>, Option<EntryNumber>), SessionError> {
        let kept = |side: &Side<'_>, entry: EntryNumber| -> Result<Option<Vec<u8>>, SessionError> {
            let line = side.view.line(entry)?;
            let record = Raw::object(&line);
            let kept = record.and_then(|record| self.session.format.copied_part(record));
            Ok(kept.map(|kept| kept.bytes().to_vec()))
        };
        let entries = |side: &Side<'_>| -> Result<Vec<EntryNumber>, SessionError> {
            let counted = side.counted(side.first..side.view.end());
            counted.map(|found| Ok(found?.1)).collect()
        };
        let both: Vec<(EntryNumber, EntryNumber)> =
            entries(self)?.into_iter().zip(entries(there)?).collect();
        let by_place = first_without(both.len(), |n| {
            let Some(&(here, other)) = both.get(n) else { return Ok(false) };
            let here = kept(self, here)?;
            Ok(here.is_some() && here == kept(there, other)?)
        })?;
        if let Some(&(here, there)) = by_place.checked_sub(1).and_then(|n| both.get(n)) {
            return Ok((Some(here), Some(there)));
        }
        let at = self.last_counted(self.first..self.shared(there)?)?.map(|(_, at)| at);
        let there = at.map(|at| self.met(at, there)).transpose()?.flatten();
        Ok((at, there))
    }

    /// Returns the last record that was copied from a session, and its name there.
    fn copied(&self, other: &str) -> Result<Option<(EntryNumber, String)>, SessionError> {
        let copied = |entry: EntryNumber| -> Result<Option<String>, SessionError> {
            let line = self.view.line(entry)?;
            Ok(Raw::object(&line)
                .and_then(|record| self.session.format.original_name(record, other)))
        };
        let end = self.until(|entry| Ok(copied(entry)?.is_some()))?;
        let Some((_, last)) = self.last_counted(self.first..end)? else { return Ok(None) };
        Ok(copied(last)?.map(|name| (last, name)))
    }

    /// Returns the last entry of a history that begins in this session.
    fn before(&self, base: &Elsewhere) -> Result<Option<EntryNumber>, SessionError> {
        let of_file = self.view.of_file(&base.file)?;
        let (view, Some(end)) = (of_file.as_ref().unwrap_or(&self.view), base.ordinal) else {
            return Ok(None);
        };
        let count = usize::try_from(view.end().get()).unwrap_or(usize::MAX);
        let n = first_without(count, |n| {
            let Some(entry) = view.at(PlaceNumber::new(n as u64))? else { return Ok(false) };
            let line = view.line(entry)?;
            let ordinal = Raw::object(&line).and_then(|r| self.session.format.ordinal(r));
            Ok(ordinal.is_some_and(|ordinal| ordinal < end))
        })?;
        Ok(n.checked_sub(1).map(|n| view.at(PlaceNumber::new(n as u64))).transpose()?.flatten())
    }

    /// Returns the entry of a name.
    fn named(&self, name: &str) -> Result<Option<EntryNumber>, SessionError> {
        let tag = crate::model::NameTag::of(name);
        let found = self.view.store().named(self.session.key, tag, tag)?;
        Ok(found.last().copied())
    }

    /// Returns the rank by which the older comes first, given the place before which all is shared.
    fn rank(&self, shared: PlaceNumber) -> Result<Rank, SessionError> {
        let mut own = self.counted(shared..self.view.end());
        let name = self.session.name.clone();
        if !self.session.format.traits().has_times {
            let own = own.try_fold(0, |count, found| found.map(|_| count + 1))?;
            return Ok((None, Reverse(own), name));
        }
        for found in own {
            if let Some(time) = self.view.record(found?.1)?.time {
                return Ok((Some(time), Reverse(0), name));
            }
        }
        Ok((None, Reverse(0), name))
    }
}

/// Returns the first number below `end` that lacks a property which all numbers before it have.
fn first_without(
    end: usize,
    has: impl Fn(usize) -> Result<bool, SessionError>,
) -> Result<usize, SessionError> {
    let (mut low, mut high) = (0, end);
    while low < high {
        let middle = low + (high - low) / 2;
        if has(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_of_many_generations_is_looked_for_once() {
        let tie = |kind, other: &str| Tie { kind, other: other.to_owned() };
        let ties = GenerationNumber::FIRST.onwards().take(40).map(|n| {
            let beginning = tie(TieKind::Beginning, if n.get() % 20 == 0 { "b" } else { "a" });
            (n, vec![tie(TieKind::Fork, "a"), beginning])
        });
        let found: Vec<String> =
            beginnings(&ties.collect::<Vec<_>>()).iter().map(|tie| tie.other.clone()).collect();
        assert_eq!(found, ["a", "b"]);
    }
}
