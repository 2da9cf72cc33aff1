//! What fits into a model's window: the request, its size, truncation, compaction, recovery, and what they hid.

pub(crate) mod audit;
pub(crate) mod boundaries;
pub(crate) mod cache;
pub(crate) mod compact;
pub(crate) mod compaction;
pub(crate) mod compactions;
pub(crate) mod context;
pub(crate) mod counts;
pub(crate) mod excerpts;
pub(crate) mod measure;
pub(crate) mod origin;
pub(crate) mod recover;
pub(crate) mod request;
pub(crate) mod shorten;
pub(crate) mod sight;
pub(crate) mod truncate;
