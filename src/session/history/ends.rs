//! Ends: as much of the end of a path as tells what is wanted, so that a long history costs no more than a short one.
//!
//! ```text
//! one     a b c d e f          ends of both, from a settled entry on that they share:   d e f
//! other   a b c d e g h                                                                  d e g h
//! ```
//!
//! Invariant: the same entries stand before the ends of two paths, and the same of them are sent, unless one of the ends is
//! known to hold all that is sent of its path.

use std::collections::BTreeSet;

use crate::{
    model::{EntryNumber, PlaceNumber, Span},
    session::{SessionError, View, graph::beginning::Begins},
    wire::{Edit, Graph as _},
};

/// How many of the last entries are looked at first.
const LOOKED: usize = 64;
/// How many times as many are looked at each next time.
const MORE: usize = 4;
/// Up to how many tags of several names are looked up, before whole paths are read instead.
const TWINS: usize = 4096;
/// How far before a place a record may stand that something behind the place belongs to.
const NEAR: u64 = 1024;

/// The last entries of a path, and what is sent of them.
#[derive(Debug)]
pub(crate) struct Sending {
    /// As many of the path as were looked at.
    pub(crate) path: Vec<EntryNumber>,
    /// Whether that is all of it.
    pub(crate) is_all: bool,
    /// What is sent.
    pub(crate) sent: Vec<EntryNumber>,
    /// Those entries of it of which something else is sent than they say.
    pub(crate) edits: Vec<(EntryNumber, Edit)>,
    /// Whether nothing else is sent.
    pub(crate) is_whole: bool,
}

impl View<'_> {
    /// Returns what the agent would send at the head, and the part of the path that holds it.
    pub(crate) fn sending(&self) -> Result<Sending, SessionError> {
        self.sending_within(LOOKED)
    }

    /// Returns the same; `limit` of the last entries are looked at first.
    pub(crate) fn sending_within(&self, limit: usize) -> Result<Sending, SessionError> {
        let mut limit = limit;
        loop {
            let sending = self.sending_of(limit)?;
            if sending.is_whole {
                return Ok(sending);
            }
            limit = limit.saturating_mul(MORE);
        }
    }

    /// Returns what the agent would send of the last entries of the path.
    pub(crate) fn sending_of(&self, limit: usize) -> Result<Sending, SessionError> {
        let path = self.path(limit)?.entries;
        let sent = self.format.context(self, &path)?;
        let is_all = path.len() < limit;
        let is_whole = is_all || sent.is_whole && self.is_orderly_from(self.first(&path)?)?;
        Ok(Sending { path, is_all, sent: sent.entries, edits: sent.edits, is_whole })
    }
}

/// Returns the ends of the paths of two views of a session, from an entry on that both share: what comes before it is the
/// same, unless these are the whole paths.
pub(crate) fn ends(
    one: &View<'_>,
    other: &View<'_>,
) -> Result<[Vec<EntryNumber>; 2], SessionError> {
    ends_within(LOOKED, one, other)
}

/// Returns the same; `limit` of the last entries are looked at first.
pub(crate) fn ends_within(
    limit: usize,
    one: &View<'_>,
    other: &View<'_>,
) -> Result<[Vec<EntryNumber>; 2], SessionError> {
    let mut limit = limit;
    loop {
        let mut paths = [one.path(limit)?.entries, other.path(limit)?.entries];
        if paths.iter().all(|path| path.len() < limit) {
            return Ok(paths);
        }
        match shared(one, other, &paths)? {
            Some(first) if begins_alike(one, other, first)? => {
                for path in &mut paths {
                    let before = path.iter().position(|entry| *entry == first);
                    path.drain(..before.unwrap_or(0));
                }
                return Ok(paths);
            }
            Some(_) => limit = usize::MAX,
            None => limit = limit.saturating_mul(MORE),
        }
    }
}

/// Returns the first of the settled entries that two paths share, if another one follows: what prepares the turn at which
/// they part comes after it.
fn shared(
    one: &View<'_>,
    other: &View<'_>,
    [path, other_path]: &[Vec<EntryNumber>; 2],
) -> Result<Option<EntryNumber>, SessionError> {
    let known: BTreeSet<EntryNumber> = path.iter().copied().collect();
    if !other_path.iter().any(|entry| known.contains(entry)) {
        return Ok(None);
    }
    let settled: BTreeSet<EntryNumber> = one.format.settled(one, path)?.into_iter().collect();
    let others = other.format.settled(other, other_path)?;
    let mut shared = others.into_iter().filter(|entry| settled.contains(entry));
    Ok(shared.next().filter(|_| shared.next().is_some()))
}

/// Returns whether the files that lead to an entry are the same up to there in two views, and orderly.
fn begins_alike(
    one: &View<'_>,
    other: &View<'_>,
    entry: EntryNumber,
) -> Result<bool, SessionError> {
    let (Some(here), Some(there)) = (one.ending_at(entry)?, other.ending_at(entry)?) else {
        return Ok(false);
    };
    let end = PlaceNumber::new(here.horizon);
    let is_same = here.generation == there.generation || one.holds_alike(other, end)?;
    Ok(here.horizon == there.horizon
        && is_same
        && one.is_orderly_from(end)?
        && other.is_orderly_from(end)?)
}

impl View<'_> {
    /// Returns the first place at which an entry of a part of a path is.
    fn first(&self, path: &[EntryNumber]) -> Result<PlaceNumber, SessionError> {
        let mut first = self.end();
        for &entry in path {
            first = first.min(self.place(entry)?.unwrap_or(PlaceNumber::FIRST));
        }
        Ok(first)
    }

    /// Returns whether no record before a place belongs to one behind it, or the other way, by anything but the order in which
    /// they stand: each name there is that of one entry, and came before all that refer to it.
    fn is_orderly_from(&self, place: PlaceNumber) -> Result<bool, SessionError> {
        let twins = self.twins()?;
        if twins.len() > TWINS || self.has_glued()? {
            return Ok(false);
        }
        for &tag in twins {
            // One that a single entry has, or none, came late.
            if self.entries_of(tag)?.len() < 2 {
                return Ok(false);
            }
            let last = self.tagged(tag)?.last().map(|(last, _)| *last);
            if last.is_some_and(|last| last.plus(NEAR) >= place)
                && !self.has_namesakes_apart(tag)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether another view's file begins with the same entries up to a place, and goes on from the same file.
    fn holds_alike(&self, other: &View<'_>, end: PlaceNumber) -> Result<bool, SessionError> {
        let (Begins::Here, Begins::Here) = (self.begins()?, other.begins()?) else {
            return Ok(false);
        };
        let part = |span: &Span| (span.start, span.first, span.count.min(end.get() - span.start));
        let is_before = |span: &&Span| span.start < end.get();
        let spans = self.spans()?.iter().filter(is_before).map(part);
        Ok(spans.eq(other.spans()?.iter().filter(is_before).map(part)))
    }
}
