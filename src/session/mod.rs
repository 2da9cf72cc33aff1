//! A session as it is read: its branches, paths and checkpoints over a store's rows, and the additions of a change that
//! is being put together.
//!
//! Invariant: nothing here writes, locks, or looks at a file.

mod at_hand;
pub(crate) mod checkpoints;
pub(crate) mod content;
mod damage;
pub(crate) mod departures;
pub(crate) mod derive;
pub(crate) mod elsewhere;
pub(crate) mod ends;
mod error;
mod growth;
pub(crate) mod ids;
pub(crate) mod inner;
pub(crate) mod kin;
mod lineage;
pub(crate) mod lines;
pub(crate) mod listing;
pub(crate) mod oddities;
pub(crate) mod origins;
pub(crate) mod passage;
mod places;
pub(crate) mod plan;
mod reader;
pub(crate) mod replay;
pub(crate) mod rows;
pub(crate) mod select;
#[expect(clippy::module_inception, reason = "the room is named for what it is about")]
mod session;
pub(crate) mod stands;
pub(crate) mod stretches;
pub(crate) mod tools;
mod view;

pub(crate) use checkpoints::is_marked;
pub use checkpoints::{Shown, Spot, checkpoints, each_checkpoint, newest_checkpoints, standing_at};
pub use damage::Damaged;
pub(crate) use damage::Damages;
pub(crate) use derive::Deriver;
pub use derive::words;
pub use elsewhere::{Elsewhere, Gap};
pub use error::SessionError;
pub(crate) use growth::Growth;
pub(crate) use ids::added_by;
pub use ids::entry_ids;
pub use inner::SubAgent;
pub use kin::{Bond, Kin, kin};
pub use lines::{
    Conversation, Line, Log, RecentCall, conversation, entry_of, log, log_all, log_of, messages,
};
pub(crate) use oddities::REPEATED;
pub use passage::{Passage, find_passage, is_passage, split_place};
pub use reader::{Reader, Renewed};
pub use select::{Target, find_place, find_session, short_name};
pub use session::Session;
pub use stands::Stand;
pub(crate) use view::Pending;
pub use view::View;
