//! Intake: imports agents' files and bundles into an archive, and restores files that were deleted.

pub(crate) mod adopt;
pub(crate) mod bundle;
pub(crate) mod folders;
pub(crate) mod import;
pub(crate) mod news;
pub(crate) mod peek;
pub(crate) mod put_back;
pub(crate) mod queue;
pub(crate) mod session;
pub(crate) mod sidecars;
pub(crate) mod titles;

pub use folders::{
    AgentFolder, Look, Looked, agent_folders, leave_out_held, new_files, open_sessions,
    unread_folders,
};
pub use import::{Step, import, import_changed, news};
pub use peek::peek;
pub(crate) use put_back::{PutBack, put_back, put_sidecars_back};
pub use queue::{Queue, Work};
