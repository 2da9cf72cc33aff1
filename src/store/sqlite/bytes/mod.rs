//! The bytes of a store: encoding, packing, finding and covering lines.

pub(crate) mod body;
pub(crate) mod cover;
pub(crate) mod difference;
pub(crate) mod entry_lines;
pub(crate) mod lengths;
pub(crate) mod lines;
pub(crate) mod long_values;
pub(crate) mod pack;
pub(crate) mod recent;
pub(crate) mod redact;
pub(crate) mod segments;
pub(crate) mod sift;
