//! Packing: compresses all lines again as small as possible and returns the space to the disk.

use crate::{archive::Archive, report::Packed, store::Sizes, verbs::OpsError};

/// Packs a store and reports how many lines of how many are done.
pub fn pack(archive: &Archive, each: &mut dyn FnMut(u64, u64)) -> Result<Packed, OpsError> {
    let store = archive.store();
    let before = store.sizes()?;
    let damaged = store.pack(each)?;
    let Sizes { lines, raw, stored, .. } = store.sizes()?;
    Ok(Packed { lines, raw, before: before.stored, after: stored, damaged })
}
