//! Files and store: the one place that takes locks, opens transactions and brings a session and its files to agree.
//!
//! ```text
//! execute   lock, catch up, ask the verb for its plan, prepare the plan's goal, commit, let the live file follow
//! change    the operation while it is put together: lines, growth, moves, checkpoints
//! goals     the aims of a plan for the live file: add, reach, replay, compaction, begin
//! ```
//!
//! Invariant: a change that fails before its commit has changed nothing but a temporary file.

pub(crate) mod add;
mod adopt;
mod apart;
mod archive;
pub(crate) mod attached;
pub(crate) mod back;
pub(crate) mod beside;
pub(crate) mod bundle;
mod catch_up;
mod change;
pub(crate) mod compaction;
mod error;
mod execute;
pub(crate) mod file;
mod folders;
pub(crate) mod follow;
pub(crate) mod goal;
pub(crate) mod gone;
mod holder;
mod import;
mod intake;
pub(crate) mod judge;
mod listing;
pub(crate) mod live_file;
mod loaded;
mod lock;
pub(crate) mod look;
mod mend;
pub(crate) mod moved;
mod named;
mod neighbours;
mod news;
mod numbers;
mod old_store;
mod owner;
mod peek;
mod purge;
mod put_away;
mod put_back;
pub(crate) mod reach;
pub(crate) mod rebuild;
mod redact;
mod remainders;
pub(crate) mod replay;
pub(crate) mod resume;
pub(crate) mod rotations;
pub(crate) mod scan;
pub(crate) mod segment;
pub(crate) mod setting;
mod shared;
pub(crate) mod sidecars;
pub(crate) mod sources;
pub(crate) mod standing;
mod start;
pub(crate) mod states;
mod take_back;
pub(crate) mod titles;
pub(crate) mod together;
mod why;
mod workspace;

pub use apart::check_apart;
pub(crate) use archive::Places;
pub use archive::{Ambient, Archive, Here, Machine, Manner};
pub(crate) use catch_up::catch_up_all;
pub use catch_up::{follow, live_state};
pub use error::{Misread, NoPlace, SyncError, Vain};
pub(crate) use execute::{cache, exclusively, execute, execute_first, execute_uncaught};
pub use folders::{
    AgentFolder, Look, Looked, agent_folders, leave_out_held, new_files, open_sessions,
    unread_folders,
};
pub(crate) use gone::missing;
pub use holder::Holder;
pub use import::{Step, import, import_changed, news};
pub(crate) use live_file::{mark, may_be_behind};
pub use loaded::open_in;
pub use lock::{Told, Waiting};
pub(crate) use lock::{is_lock, lock_if_there};
pub use mend::Agents;
pub(crate) use mend::{Mending, is_broken, lock_to_mend, sweep};
pub use named::{Queue, Work};
pub(crate) use old_store::set_aside;
pub(crate) use owner::has_others;
pub use peek::peek;
pub(crate) use purge::{has_uncovered, is_in_log, is_mark};
pub(crate) use put_back::{PutBack, put_back, put_sidecars_back};
pub(crate) use redact::{Found, Kept, Redaction, Unfinished, redact};
pub(crate) use remainders::remainders;
pub use rotations::rotations;
pub(crate) use sources::cover_packed;
pub use sources::{Source, file_of_session, sources};
pub use start::{is_unsaid, resume, settle, waiting};
pub use states::generations;
pub(crate) use take_back::{strays, take_back};
pub use why::{Skipped, Why};
pub(crate) use workspace::without_credentials;
pub use workspace::{Workspace, workspace};

pub use crate::report::{
    Held, Imported, Notice, Oddity, Outcome, Quirk, Rebuilt, Rotated, RotatedState,
};
