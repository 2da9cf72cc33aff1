//! Formats: the only code that reads or writes records of agents. Each format is a file or folder with six traits and one
//! constant.
//!
//! ```text
//! Identify  which format a record or file has, and which session it contains
//! Layout    which files contain a session, what they are called and where they are listed
//! Files     the files of a session that its agent continues in new files, and where each continues another
//! Read      one record: an Envelope (what paths need) and Messages (the content)
//! Walk      a session: the head at which its agent resumes, the path to it, the part of the path that it sends
//! Write     new records, and the lines that move the agent to another entry
//! Traits    the properties that all records of a format share, with the Hooks in the agent's settings
//! ```
//!
//! A [`Format`] is all of them. It sees a session through a [`Graph`] and has no state.
//!
//! Invariant: nothing here opens an agent's file, and no record, however broken, causes an error.

mod answers;
mod anthropic;
mod claude;
mod codex;
pub mod compaction;
pub mod cut;
pub mod discover;
mod fields;
mod format;
mod formats;
mod frame;
mod graph;
mod hooks;
mod identify;
pub mod jsonl;
mod kimi;
mod layout;
mod native;
mod pi;
mod read;
mod traits;
pub mod unread;
mod walk;
mod write;

pub use answers::{Answer, Answers, Earlier, How, Piece};
pub(crate) use claude::CAVEAT;
pub use claude::Claude;
pub use codex::{Codex, Heading, Report, plain_output};
pub(crate) use codex::{EDITOR, REQUEST};
pub use format::Format;
pub use formats::{FORMATS, by_name, detect, is_secret};
pub(crate) use frame::FRAME;
pub(crate) use graph::first_record;
pub use graph::{Before, Failure, Graph};
pub use hooks::{Call, EventField, Hooks, Named};
pub use identify::{Identify, TIED};
pub use kimi::Kimi;
pub use layout::{Annex, Base, FileName, Files, Layout, ReadTitles, Share, Shelf};
pub use native::Native;
pub use pi::Pi;
pub use read::{Edited, Envelope, Link, Read, Scene, Telling, Titled, Told};
pub use traits::{
    Claim, ClaimPlace, Cleanup, Folder, Interface, Nearby, PhysicalLine, Service, Traits,
    Unanswered,
};
pub use walk::{Callers, Departure, Edit, Path, Paths, Repair, Sent, Walk, added};
pub(crate) use write::checkpoint_number;
pub use write::{Back, Draft, Framed, Held, Invalid, Onward, Segment, Setting, Speaker, Write};
