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

use std::cmp::Reverse;

use crate::{
    json::Raw,
    model::{
        EntryId, EntryNumber, IdPrefix, Kind, PlaceNumber, SessionName, Tie, TieKind, Timestamp,
    },
    session::{Damages, Elsewhere, Gap, Session, SessionError, View, ids::entry_id},
    store::Store,
    wire::Graph,
};

/// How many sessions that begin alike are compared.
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
            Self::Continuation => "goes on as",
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
    alike(store, session, ties.into_iter().flat_map(|(_, ties)| ties))
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

/// Finds the original among the sessions that begin as one does.
fn alike(
    store: &dyn Store,
    session: &Session,
    ties: impl Iterator<Item = Tie>,
) -> Result<Option<Kin>, SessionError> {
    let mut best: Option<(Merit, Kin)> = None;
    let mut here = None;
    for tie in ties.filter(|tie| tie.kind == TieKind::Beginning) {
        let alike = store.tied(&session.name.format, &tie, Some(session.key))?;
        for (key, name) in alike.into_iter().take(ALIKE) {
            let other = Session::from_store(key, name)?;
            if here.is_none() {
                here = Some(Side::of(store, session)?);
            }
            let Some(here) = &here else { continue };
            let there = Side::of(store, &other)?;
            let (shared, theirs) = (here.shared(&there)?, there.shared(here)?);
            let (mine, original) = (here.rank(shared)?, there.rank(theirs)?);
            let at = shared.checked_sub(1).and_then(|n| here.entries.get(n));
            let Some((&at, true)) = at.map(|at| (at, original < mine)) else { continue };
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
type Merit = (usize, Reverse<Rank>);

/// The rank of the older session: the time of its first own entry, or how much it has of its own; then its name.
type Rank = (Option<Timestamp>, Reverse<usize>, SessionName);

/// One of two sessions that are compared, with the entries of its current state.
struct Side<'a> {
    session: &'a Session,
    view: View<'a>,
    /// The entries that a copy would hold too.
    entries: Vec<EntryNumber>,
}

impl<'a> Side<'a> {
    fn of(store: &'a dyn Store, session: &'a Session) -> Result<Self, SessionError> {
        let tip = store.state(session.key)?;
        // The entries that were taken over stand in the first of the files that lead to the newest one.
        // A damaged record is like no other, and no reason not to compare the rest.
        let view = View::whole(store, session, &tip, tip.generation());
        let view = view.gathering(&Damages::gathered()).into_first()?;
        let mut entries = Vec::new();
        let mut is_named = false;
        for entry in view.sequence()? {
            let record = view.record(entry)?;
            if record.kind == Kind::Opaque {
                continue;
            }
            if record.name.is_some() && !is_named {
                is_named = true;
                entries.clear();
            }
            if record.name.is_some() || !is_named {
                entries.push(entry);
            }
        }
        let mut side = Self { session, view, entries };
        if !is_named {
            side.skip_heading()?;
        }
        Ok(side)
    }

    /// Leaves out the records before the copied ones.
    fn skip_heading(&mut self) -> Result<(), SessionError> {
        for (heading, &entry) in self.entries.iter().enumerate().take(HEADING) {
            let line = self.view.line(entry)?;
            if Raw::object(&line)
                .is_some_and(|record| self.session.format.copied_part(record).is_some())
            {
                self.entries.drain(..heading);
                break;
            }
        }
        Ok(())
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

    /// Returns how many of the first entries another side has too.
    fn shared(&self, there: &Side<'_>) -> Result<usize, SessionError> {
        first_without(self.entries.len(), |n| {
            self.entries.get(n).map_or(Ok(false), |&entry| Ok(self.met(entry, there)?.is_some()))
        })
    }

    /// Returns the last entry that a copy shares with its original, here and there.
    fn parting(
        &self,
        there: &Side<'_>,
    ) -> Result<(Option<EntryNumber>, Option<EntryNumber>), SessionError> {
        let kept = |side: &Side<'_>, n: usize| -> Result<Option<Vec<u8>>, SessionError> {
            let Some(&entry) = side.entries.get(n) else { return Ok(None) };
            let line = side.view.line(entry)?;
            let record = Raw::object(&line);
            let kept = record.and_then(|record| self.session.format.copied_part(record));
            Ok(kept.map(|kept| kept.bytes().to_vec()))
        };
        let both = self.entries.len().min(there.entries.len());
        let by_place = first_without(both, |n| {
            let here = kept(self, n)?;
            Ok(here.is_some() && here == kept(there, n)?)
        })?;
        let last = |side: &Side<'_>| Some(*side.entries.get(by_place.checked_sub(1)?)?);
        if by_place > 0 {
            return Ok((last(self), last(there)));
        }
        let at = self.shared(there)?.checked_sub(1).and_then(|n| self.entries.get(n).copied());
        let there = at.map(|at| self.met(at, there)).transpose()?.flatten();
        Ok((at, there))
    }

    /// Returns the last record that was copied from a session, and its name there.
    fn copied(&self, other: &str) -> Result<Option<(EntryNumber, String)>, SessionError> {
        let copied = |n: usize| -> Result<Option<String>, SessionError> {
            let Some(&entry) = self.entries.get(n) else { return Ok(None) };
            let line = self.view.line(entry)?;
            Ok(Raw::object(&line)
                .and_then(|record| self.session.format.original_name(record, other)))
        };
        let n = first_without(self.entries.len(), |n| Ok(copied(n)?.is_some()))?;
        let Some(n) = n.checked_sub(1) else { return Ok(None) };
        Ok(self.entries.get(n).copied().zip(copied(n)?))
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

    /// Returns the rank by which the older comes first, given how many entries are shared.
    fn rank(&self, shared: usize) -> Result<Rank, SessionError> {
        let own = self.entries.get(shared..).unwrap_or_default();
        let name = self.session.name.clone();
        if !self.session.format.traits().has_times {
            return Ok((None, Reverse(own.len()), name));
        }
        for &entry in own {
            if let Some(time) = self.view.record(entry)?.time {
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
