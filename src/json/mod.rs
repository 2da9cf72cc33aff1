//! JSON as bytes: one strict scanner, a lazy view of a valid value, and edits in place.
//!
//! Nothing is parsed into a tree, and nothing is normalised.
//!
//! Invariant: the grammar decides where lines end, so it is part of the store's byte contract and never changes.
//! Invariant: no input panics.

mod edit;
mod frame;
mod graft;
mod mend;
mod raw;
mod scan;
#[cfg(test)]
mod tests;
mod text;

pub use edit::{with_field, with_fields};
pub(crate) use frame::{Frame, Owner, owners};
pub use graft::{with_item, without_item};
pub use mend::{is_half, joined, mended, with_halves};
pub(crate) use raw::Part;
pub use raw::{Fields, Kind, Raw};
pub use scan::{Looked, Visit, is_blank, scan};
pub use text::{has_half_pair, place_of, quote};
