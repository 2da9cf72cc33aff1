//! Reading a session: its branches, paths and checkpoints, computed from a store's rows and from the pending rows of a change.
//!
//! Invariant: nothing here writes, locks, or reads a file.

mod damage;
pub(crate) mod derive;
pub(crate) mod error;
pub(crate) mod graph;
mod growth;
pub(crate) mod history;
pub(crate) mod ids;
pub(crate) mod plan;
pub(crate) mod read;
pub(crate) mod rows;
#[expect(clippy::module_inception, reason = "the room is named for what it is about")]
mod session;
mod stored;

pub use crate::session::graph::beginning::{Elsewhere, Gap};
pub(crate) use crate::session::graph::view::Pending;
pub use crate::session::graph::view::View;
pub use crate::session::history::kin::{Bond, Kin, kin};
pub(crate) use crate::session::history::oddities::REPEATED;
pub use crate::session::history::sub_agent::SubAgent;
pub(crate) use crate::session::read::checkpoints::is_marked;
pub use crate::session::read::checkpoints::{
    Shown, Spot, checkpoints, each_checkpoint, newest_checkpoints, standing_at,
};
pub(crate) use crate::session::read::lines::{Conversation, conversation};
pub use crate::session::read::lines::{
    Line, Log, RecentCall, entry_of, log, log_all, log_all_of, log_of, messages,
};
pub use crate::session::read::passage::{Passage, find_passage, is_passage, split_place, steps};
pub use crate::session::read::reader::{Reader, Renewed};
pub use crate::session::read::select::{Target, find_place, find_session, short_name};
pub use crate::session::read::status::Stand;
pub use damage::Damaged;
pub(crate) use damage::Damages;
pub(crate) use derive::Deriver;
pub use derive::words;
pub use error::SessionError;
pub(crate) use growth::Growth;
pub use ids::entry_ids;
pub use session::Session;
pub use stored::Stored;
