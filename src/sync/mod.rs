//! Files and store: the one place that takes locks, opens transactions and brings a session and its files to agree.
//!
//! ```text
//! begin    lock, catch up with the live file, see where the session stands
//! change   lines, moves and checkpoints are gathered
//! commit   the successor of the live file is safe, the operation is durable, the live file follows
//! ```
//!
//! Invariant: a change that fails before its commit has changed nothing but a temporary file.

mod archive;
mod attached;
pub(crate) mod beside;
mod catch_up;
pub(crate) mod change;
mod error;
mod execute;
pub(crate) mod file;
pub(crate) mod follow;
pub(crate) mod intake;
pub(crate) mod judge;
pub(crate) mod live_file;
mod lock;
pub(crate) mod look;
pub(crate) mod moved;
mod owner;
pub(crate) mod reach;
pub(crate) mod rebuild;
pub(crate) mod rotations;
pub(crate) mod scan;
pub(crate) mod setting;
pub(crate) mod sources;
pub(crate) mod states;
pub(crate) mod together;
mod workspace;

pub use archive::{Ambient, Archive, Here, Machine, Manner};
pub use error::SyncError;
pub(crate) use execute::{begin, begin_or_create, begin_to_attach, cache, commit, exclusively};
pub(crate) use lock::lock_if_there;
pub use rotations::rotations;
pub use sources::{AgentFolder, Skipped, Source, Why, agent_folders, sources};
pub use states::generations;
pub use workspace::{Workspace, workspace};

pub use crate::report::{
    Held, Imported, Notice, Oddity, Outcome, Quirk, Rebuilt, Rotated, RotatedState,
};
