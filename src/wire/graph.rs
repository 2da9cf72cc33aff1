//! The graph: a session as formats see it, without a store and without a file.
//!
//! Invariant: a graph ends at its horizon; nothing behind it can be asked for.

use crate::model::{EntryNumber, Kind, Landmark, NameTag, PlaceNumber, Record};

/// Any failure beneath a [`Graph`].
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A session as it is seen from a position: entries behind the horizon do not exist.
pub trait Graph {
    /// Returns the place behind the last entry.
    fn end(&self) -> PlaceNumber;

    /// Returns the entry at a place in the generation, from 0.
    fn at(&self, place: PlaceNumber) -> Result<Option<EntryNumber>, Failure>;

    /// Returns the place of an entry in the generation: of several the last one.
    fn place(&self, entry: EntryNumber) -> Result<Option<PlaceNumber>, Failure>;

    /// Returns the record derived from an entry. One that an agent does not find, because it reads whole lines and another record
    /// shares this one's, is opaque.
    fn record(&self, entry: EntryNumber) -> Result<Record, Failure>;

    /// Returns the entry that an entry follows, names resolved as they stand within the horizon.
    fn parent(&self, entry: EntryNumber) -> Result<Option<EntryNumber>, Failure>;

    /// Returns an entry's line.
    fn line(&self, entry: EntryNumber) -> Result<Vec<u8>, Failure>;

    /// Returns the entry that a name represents: of several the last one.
    fn named(&self, name: NameTag) -> Result<Option<EntryNumber>, Failure>;

    /// Returns whether an entry is the one that its record's name represents, or has no name.
    fn bears(&self, record: &Record) -> Result<bool, Failure> {
        record.name.map_or(Ok(true), |name| Ok(self.named(name)? == Some(record.n)))
    }

    /// Returns the last landmark of a kind before a place, behind its own place.
    fn landmark(
        &self,
        landmark: Landmark,
        before: PlaceNumber,
    ) -> Result<Option<(PlaceNumber, EntryNumber)>, Failure>;

    /// Returns whether the entry at a place begins on the physical line of the one before it.
    fn is_glued(&self, place: PlaceNumber) -> Result<bool, Failure>;

    /// Returns how many bytes of the file exist, those behind the last entry included.
    fn bytes(&self) -> Result<u64, Failure>;

    /// Returns the history before the first entry, in another file of the session.
    fn before(&self) -> Result<Before<'_>, Failure> {
        Ok(Before::Nothing)
    }
}

/// Returns the first record of a file as its agent reads it, which passes what is no record.
pub(crate) fn first_record(graph: &dyn Graph) -> Result<Option<Record>, Failure> {
    for place in graph.end().earlier() {
        let Some(entry) = graph.at(place)? else { continue };
        let record = graph.record(entry)?;
        if record.kind != Kind::Opaque {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

/// The history before the first entry of a file.
pub enum Before<'g> {
    /// Nothing: the history begins here.
    Nothing,
    /// Another file of the session, as far as this one goes on from it.
    File(&'g dyn Graph),
    /// A history that cannot be read here.
    Unread,
}
