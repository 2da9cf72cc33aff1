//! The graph: how a format sees a session, independent of stores and files.
//!
//! Invariant: a graph ends at its horizon; entries after it cannot be read.

use crate::model::{EntryNumber, Kind, Landmark, NameTag, PlaceNumber, Record};

/// Any error of a [`Graph`].
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A session as seen from a position. Entries after the horizon do not exist.
pub trait Graph {
    /// Returns the place after the last entry.
    fn end(&self) -> PlaceNumber;

    /// Returns the entry at a place of the generation, from 0.
    fn at(&self, place: PlaceNumber) -> Result<Option<EntryNumber>, Failure>;

    /// Returns the place of an entry in the generation; the last one if it occurs several times.
    fn place(&self, entry: EntryNumber) -> Result<Option<PlaceNumber>, Failure>;

    /// Returns the record of an entry. If the agent reads whole physical lines and this record shares its line with another, the
    /// agent does not find it, and it is opaque.
    fn record(&self, entry: EntryNumber) -> Result<Record, Failure>;

    /// Returns the parent of an entry. Names are resolved within the horizon.
    fn parent(&self, entry: EntryNumber) -> Result<Option<EntryNumber>, Failure>;

    /// Returns the line of an entry.
    fn line(&self, entry: EntryNumber) -> Result<Vec<u8>, Failure>;

    /// Returns the entry with this name; the last one if there are several.
    fn named(&self, name: NameTag) -> Result<Option<EntryNumber>, Failure>;

    /// Returns true if the record has no name, or its name resolves to it.
    fn bears(&self, record: &Record) -> Result<bool, Failure> {
        record.name.map_or(Ok(true), |name| Ok(self.named(name)? == Some(record.n)))
    }

    /// Returns the last landmark of a kind before a place, paired with its own place.
    fn landmark(
        &self,
        landmark: Landmark,
        before: PlaceNumber,
    ) -> Result<Option<(PlaceNumber, EntryNumber)>, Failure>;

    /// Returns true if the entry at a place begins on the same physical line as the entry before it.
    fn is_glued(&self, place: PlaceNumber) -> Result<bool, Failure>;

    /// Returns the length of the file in bytes, including bytes after the last entry.
    fn bytes(&self) -> Result<u64, Failure>;

    /// Returns the history before the first entry, if it is in another file of the session.
    fn before(&self) -> Result<Before<'_>, Failure> {
        Ok(Before::Nothing)
    }
}

/// Returns the first record of a file as its agent reads it. Opaque lines are skipped.
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
    /// The history begins in this file.
    Nothing,
    /// Another file of the session, up to the offset at which this one continues it.
    File(&'g dyn Graph),
    /// A history that is not available here.
    Unread,
}
