//! What the model sees: compaction, overflow and recovery, as pure functions over the normalised view.

pub mod compact;
pub mod event;
pub mod extract;
pub mod files;
pub mod machine;
pub mod model;
pub mod overflow;
pub mod plan;
pub mod prompt;
pub mod recover;
pub mod stages;
