//! Values: the vocabulary of the store. No I/O, no clock, no SQL.
//!
//! Read in this order: `number` (and `entries`, sets of entry numbers) and `time`, `id` (what each hash covers), [`mod@line`]
//! (how bytes become lines), `fact` (the permanent facts), `command`, `text` and `operation` (how a command records its facts),
//! `tagged` and `varint` (the encoding), `span` (the entries of a generation), `tombstones`, `state` (a session's state, folded
//! from its operations), `record` (values derived from a line), `message` (its content), `cut` (shortened texts), `around`
//! (context lines of a hit), `lookup` (maps without an observable order), `layout` (the file names in a store's folder).

mod around;
mod command;
mod cut;
mod entries;
mod fact;
pub mod hint;
mod id;
mod layout;
pub mod line;
mod lookup;
mod message;
mod number;
mod operation;
mod record;
mod span;
mod state;
mod tagged;
mod text;
mod time;
mod tombstones;
mod varint;

pub use around::{Around, HitLine};
pub use command::Command;
pub use cut::{Cut, Resized};
pub use entries::EntrySet;
pub use fact::{
    Base, Bulk, Checkpoint, Container, CoveredFile, CoveredRuns, CutOff, Cutting, Entry, Facts,
    File, Gaps, Generation, Move, Named, Origin, Place, Position, Request, Rotation, Run,
    SessionName, Sidecar, Step, Tombstone,
};
pub use id::{
    Digest, EntryId, IdPrefix, LineId, MachineId, NameTag, OperationId, Running, StoreId,
};
pub use layout::{
    BESIDE, COMPACTING, DATABASE, LOCK, LOG, MENDING, REDACTING, SEAL, SHARED, STRAYS, TRANSCRIPTS,
    UNCOVERED, WATCHED, WITNESS, WORDS, damaged_folder, is_damaged_folder, is_own, is_part,
};
pub(crate) use lookup::Lookup;
pub use message::{
    Block, Image, Message, Role, SentAs, Source, Stop, Thinking, Usage, first_line, shell_line,
};
pub use number::{
    CheckpointNumber, EntryNumber, FileNumber, GenerationNumber, OperationNumber, PlaceNumber,
};
pub use operation::Operation;
pub use record::{Card, DayTurns, Glance, HintBytes, Kind, Landmark, Parent, Record, Tie, TieKind};
pub use span::{Span, Spans};
pub use state::{MAIN, Newest, State};
pub use tagged::{Malformed, Tagged};
pub use text::{Text, Words};
pub use time::Timestamp;
pub use tombstones::Tombstones;
pub use varint::{put_varint, take_varint};
