//! Queries at import, in both layers: whether a file was seen before, and whether a line was redacted.

use std::sync::Arc;

use super::{Sheet, laid::Laid};
use crate::{
    model::{LineId, Place, Tagged as _},
    store::{Came, DoorStore, SessionKey, Sighting, StoreError},
};

impl DoorStore for Laid<'_> {
    fn sighting(&self, path: &[u8]) -> Result<Option<Sighting>, StoreError> {
        match self.over.sightings.get(path) {
            None => self.beneath(|store| store.sighting(path)),
            seen => Ok(seen.cloned()),
        }
    }

    fn places(&self) -> Result<Vec<Vec<u8>>, StoreError> {
        let mut places = self.beneath(|store| store.places())?;
        let over = self.over.sheets.values().flat_map(|sheet| &sheet.state.files);
        places.extend(over.map(Place::to_bytes));
        places.sort();
        places.dedup();
        Ok(places)
    }

    fn buried(&self, line: LineId) -> Result<Option<Came>, StoreError> {
        let found = self.beneath(|store| store.buried(line))?;
        let of_sheet = |(key, sheet): (&SessionKey, &Arc<Sheet>)| {
            Some(Came::of(*key, sheet.state.tombstones.of_line(line)?))
        };
        Ok(found.or_else(|| self.over.sheets.iter().find_map(of_sheet)))
    }
}
