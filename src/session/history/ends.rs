//! Ends: reads only as much of the end of a path as is needed, so that a long history costs no more than a short one.
//!
//! ```text
//! one     a b c d e f          the ends of both, from a settled entry on that they share:   d e f
//! other   a b c d e g h                                                                     d e g h
//! ```
//!
//! Invariant: the ends of two paths never hide a difference: the entries before them are the same, and the same of those are
//! sent, unless one of the ends is known to contain all that is sent of its path.

use std::collections::BTreeSet;

use crate::{
    model::{EntryNumber, PlaceNumber, Span},
    session::history::lineage,
    session::{
        SessionError, View,
        graph::{beginning::Begins, names},
    },
    wire::{Edit, Graph as _},
};

/// How many of the last entries are read first.
const LOOKED: usize = 64;
/// The factor for reading more each time.
const MORE: usize = 4;
/// With more ambiguous tags than this, whole paths are read instead.
const TWINS: usize = 4096;
/// How far before a place a record may be that belongs to something after the place.
const NEAR: u64 = 1024;

/// The last entries of a path, and what is sent of them.
#[derive(Debug)]
pub(crate) struct Sending {
    /// The entries of the path that were read.
    pub(crate) path: Vec<EntryNumber>,
    /// Whether that is the whole path.
    pub(crate) is_all: bool,
    /// The entries that are sent.
    pub(crate) sent: Vec<EntryNumber>,
    /// Those whose content is changed by an edit before it is sent.
    pub(crate) edits: Vec<(EntryNumber, Edit)>,
    /// Whether nothing else is sent.
    pub(crate) is_whole: bool,
}

impl View<'_> {
    /// Returns what the agent would send at the head, and the part of the path that contains it.
    pub(crate) fn sending(&self) -> Result<Sending, SessionError> {
        self.sending_within(LOOKED)
    }

    /// Like [`Self::sending`], reading `limit` of the last entries first.
    pub(crate) fn sending_within(&self, mut limit: usize) -> Result<Sending, SessionError> {
        loop {
            let sending = self.sending_of(limit)?;
            if sending.is_whole {
                return Ok(sending);
            }
            limit = limit.saturating_mul(MORE);
        }
    }

    /// Returns what the agent would send of the last `limit` entries of the path.
    pub(crate) fn sending_of(&self, limit: usize) -> Result<Sending, SessionError> {
        let path = self.path(limit)?.entries;
        let sent = self.format.context(self, &path)?;
        let is_all = path.len() < limit;
        let is_whole = is_all || sent.is_whole && is_orderly_from(self, first(self, &path)?)?;
        Ok(Sending { path, is_all, sent: sent.entries, edits: sent.edits, is_whole })
    }
}

/// Returns the ends of the paths of two views of a session, starting at an entry that both share. What comes before it is the
/// same, unless these are the whole paths.
pub(crate) fn ends(
    one: &View<'_>,
    other: &View<'_>,
) -> Result<[Vec<EntryNumber>; 2], SessionError> {
    ends_within(LOOKED, one, other)
}

/// Like [`ends`], reading `limit` of the last entries first.
pub(crate) fn ends_within(
    mut limit: usize,
    one: &View<'_>,
    other: &View<'_>,
) -> Result<[Vec<EntryNumber>; 2], SessionError> {
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

/// Returns the first settled entry that two paths share if there is a second one. Records that prepare the turn where the paths
/// fork come after it.
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

/// Returns true if two views have the same orderly files up to an entry.
fn begins_alike(
    one: &View<'_>,
    other: &View<'_>,
    entry: EntryNumber,
) -> Result<bool, SessionError> {
    let (Some(here), Some(there)) =
        (lineage::ending_at(one, entry)?, lineage::ending_at(other, entry)?)
    else {
        return Ok(false);
    };
    let end = PlaceNumber::new(here.horizon);
    let is_same = here.generation == there.generation || holds_alike(one, other, end)?;
    Ok(here.horizon == there.horizon
        && is_same
        && is_orderly_from(one, end)?
        && is_orderly_from(other, end)?)
}

/// Returns the lowest place of the entries of a path.
fn first(view: &View<'_>, path: &[EntryNumber]) -> Result<PlaceNumber, SessionError> {
    let mut first = view.end();
    for &entry in path {
        first = first.min(view.place(entry)?.unwrap_or(PlaceNumber::FIRST));
    }
    Ok(first)
}

/// Returns true if records before and after a place are related by nothing but their order: each name belongs to one entry,
/// which comes before all references to it.
fn is_orderly_from(view: &View<'_>, place: PlaceNumber) -> Result<bool, SessionError> {
    let twins = names::twins(view)?;
    if twins.len() > TWINS || view.has_glued()? {
        return Ok(false);
    }
    for &tag in twins {
        // A tag with fewer than two entries was referenced before its entry came, or it never came.
        if names::entries_of(view, tag)?.len() < 2 {
            return Ok(false);
        }
        let last = names::tagged(view, tag)?.last().map(|(last, _)| *last);
        if last.is_some_and(|last| last.plus(NEAR) >= place)
            && !names::has_namesakes_apart(view, tag)?
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns true if another view's file begins with the same entries up to a place, and neither continues another file.
fn holds_alike(view: &View<'_>, other: &View<'_>, end: PlaceNumber) -> Result<bool, SessionError> {
    let (Begins::Here, Begins::Here) = (view.begins()?, other.begins()?) else {
        return Ok(false);
    };
    let part = |span: &Span| (span.start, span.first, span.count.min(end.get() - span.start));
    let is_before = |span: &&Span| span.start < end.get();
    let spans = view.spans()?.iter().filter(is_before).map(part);
    Ok(spans.eq(other.spans()?.iter().filter(is_before).map(part)))
}
