//! What the model sees: compaction, overflow and recovery, as pure functions over the normalised view.

pub mod event;
pub mod files;
pub mod machine;
pub mod overflow;
