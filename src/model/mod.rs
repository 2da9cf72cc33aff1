//! Values: the vocabulary of the store. No I/O, no clock, no SQL.
//!
//! Read in this order: `id` (what a hash covers), [`mod@line`] (how bytes become lines), `fact` (what is kept for ever),
//! `record` (what is derived from a line), `message` (what a line says).

mod cut;
mod fact;
mod id;
pub mod json;
pub mod line;
mod message;
mod record;
mod time;

pub use cut::Cut;
pub use fact::{
    Checkpoint, Entry, Facts, File, Gaps, Generation, Mark, Move, Operation, Origin, Position,
    Rotation, Run, SessionName, put_varint, take_varint,
};
pub use id::{Canon, EntryId, IdPrefix, LineId, NameTag, OperationId, Running};
pub use message::{Block, Image, Message, Role, Source, Stop, Thinking, Usage};
pub use record::{Card, Kind, Parent, Record, Tie, TieKind};
pub use time::Timestamp;
