//! Kin: the session from which another was made, and the fork point.
//!
//! What a session itself declares ([`TieKind::Fork`], [`TieKind::SubAgent`], [`TieKind::Continuation`]) takes precedence. For
//! sessions that only begin alike, the entries decide:
//!
//! ```text
//! original   a b c d e f           its first entry of its own (e) is the oldest, or it has none
//! fork       a b c d x y           made from the session with which it shares most
//! ```
//!
//! Where entries have no times, the longer session is the original.
//!
//! Invariant: the answer depends on nothing but the content of the sessions, in particular not on the order of their import.

use std::{cmp::Reverse, collections::BTreeSet, ops::Range};

use crate::{
    json::Raw,
    model::{
        EntryId, EntryNumber, GenerationNumber, IdPrefix, Kind, PlaceNumber, SessionName, Tie,
        TieKind, Timestamp,
    },
    session::history::lineage,
    session::{Damages, Elsewhere, Gap, Session, SessionError, Stored, View},
    wire::Graph,
};

/// How many sessions that begin alike are compared, first ones by name.
const ALIKE: usize = 64;

/// The copied part begins within this many first records.
const HEADING: usize = 8;

/// The relation of a session to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bond {
    /// This session was made from a part of the other.
    Fork,
    /// This session works for the other.
    SubAgent,
    /// This session continues under the other's id.
    Continuation,
}

impl Bond {
    /// Returns it in words that are followed by the other session.
    pub fn words(self) -> &'static str {
        match self {
            Self::Fork => "fork of",
            Self::SubAgent => "sub-agent of",
            Self::Continuation => "continues as",
        }
    }
}

/// The session from which another was made.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Kin {
    /// The relation to the other session.
    pub bond: Bond,
    /// The id of the other session.
    pub session: String,
    /// Whether the store contains that session.
    #[serde(rename = "held")]
    pub is_held: bool,
    /// Whether no entries were copied: the history of this session begins in the other session.
    pub continues: bool,
    /// Whether commands show that earlier history as a part of this session.
    pub shown: bool,
    /// The last shared entry, in this session.
    pub here: Option<EntryId>,
    /// The last shared entry, in the other session.
    pub there: Option<EntryId>,
}

/// Returns the session from which a session was made.
pub fn kin(session: &Stored<'_>) -> Result<Option<Kin>, SessionError> {
    let ties = session.store.ties(session.key)?;
    let said = |kind| -> Result<Option<String>, SessionError> {
        for tie in ties.iter().flat_map(|(_, ties)| ties).filter(|tie| tie.kind == kind) {
            if kind != TieKind::Fork || !is_own(session, &tie.other)? {
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
        let held = Session::find(session.store, &name)?;
        let held = held.map(|held| Stored::of(session.store, &held)).transpose()?;
        let here = Side::of(session)?;
        let there = held.as_ref().map(Side::of).transpose()?;
        // A sub-agent's records also name its session, so check that both have the entries.
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
            shown: base.is_none(),
            here: session.entry_id(here)?,
            there: held.map(|held| held.entry_id(there)).transpose()?.flatten(),
        }));
    }
    alike(session, &beginnings(&ties))
}

/// Returns true if the declared original of a session is one of its own files, from which its newest file continues.
fn is_own(session: &Stored<'_>, other: &str) -> Result<bool, SessionError> {
    let Some(position) = session.state.position() else { return Ok(false) };
    let view = session.view(position);
    let view = view.gathering(&Damages::gathered());
    let is_missing = |found: Elsewhere| found.file == other && found.gap == Gap::Missing;
    Ok(lineage::has_file(&view, &session.name.id, other)?
        || view.elsewhere()?.is_some_and(is_missing))
}

/// Returns the distinct beginnings of a session; most of its generations share one.
fn beginnings(ties: &[(GenerationNumber, Vec<Tie>)]) -> BTreeSet<&Tie> {
    let all = ties.iter().flat_map(|(_, ties)| ties);
    all.filter(|tie| tie.kind == TieKind::Beginning).collect()
}

/// Finds the original among the sessions that begin alike.
fn alike(session: &Stored<'_>, beginnings: &BTreeSet<&Tie>) -> Result<Option<Kin>, SessionError> {
    let mut best: Option<(Merit, Kin)> = None;
    let mut here = None;
    for tie in beginnings {
        let alike = session.store.tied(&session.name.format, tie, Some(session.key))?;
        for (key, name) in alike.into_iter().take(ALIKE) {
            let other = Stored::of(session.store, &Session::from_store(key, name)?)?;
            if here.is_none() {
                here = Some(Side::of(session)?);
            }
            let Some(here) = &here else { continue };
            let there = Side::of(&other)?;
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
                    shown: true,
                    here: session.entry_id(Some(at))?,
                    there: other.entry_id(Some(met))?,
                    session: other.name.id.clone(),
                };
                best = Some((merit, kin));
            }
        }
    }
    Ok(best.map(|(_, kin)| kin))
}

/// Ranks possible originals: the one that shares most wins, then the oldest.
type Merit = (PlaceNumber, Reverse<Rank>);

/// Orders sessions by age: the time of the first entry of its own, or how many it has; then its name.
type Rank = (Option<Timestamp>, Reverse<usize>, SessionName);

/// One of two sessions that are compared, in its current state. Only entries that a copy would have count: if records have names,
/// only those with names.
struct Side<'a> {
    session: &'a Session,
    view: View<'a>,
    is_named: bool,
    /// The place of the first entry that counts.
    first: PlaceNumber,
}

impl<'a> Side<'a> {
    fn of(session: &'a Stored<'a>) -> Result<Self, SessionError> {
        // Copied entries are in the first of the files that lead to the newest one.
        // A damaged record matches nothing; the rest can still be compared.
        let view = session.whole(session.state.generation());
        let view = lineage::into_first(view.gathering(&Damages::gathered()))?;
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

    /// Returns the entries at these places that count, paired with their places.
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

    /// Returns the place where the entries that count stop having a property. The entries that have it must come first.
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

    /// Returns the other side's version of an entry, if it has one.
    fn met(
        &self,
        entry: EntryNumber,
        there: &Side<'_>,
    ) -> Result<Option<EntryNumber>, SessionError> {
        let store = there.view.store;
        let found = if let Some(name) = self.view.record(entry)?.name {
            store.named(there.session.key, name, name)?
        } else {
            let own = store.entries(self.session.key, entry.alone())?;
            let Some(own) = own.first() else { return Ok(None) };
            store.find(there.session.key, &IdPrefix::whole(&own.id))?
        };
        Ok(found.last().copied())
    }

    /// Returns the place up to which the other side has every entry too.
    fn shared(&self, there: &Side<'_>) -> Result<PlaceNumber, SessionError> {
        self.until(|entry| Ok(self.met(entry, there)?.is_some()))
    }

    /// Returns the last entry that a copy shares with its original, on both sides.
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

    /// Returns the last entry in this session of a history that begins here.
    fn before(&self, base: &Elsewhere) -> Result<Option<EntryNumber>, SessionError> {
        let of_file = lineage::of_file(&self.view, &base.file)?;
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

    /// Returns the entry with a name.
    fn named(&self, name: &str) -> Result<Option<EntryNumber>, SessionError> {
        let tag = crate::model::NameTag::of(name);
        let found = self.view.store.named(self.session.key, tag, tag)?;
        Ok(found.last().copied())
    }

    /// Returns the rank of a session, given the place up to which all is shared.
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

/// Returns the first number below `end` without a property that all numbers before it have.
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
