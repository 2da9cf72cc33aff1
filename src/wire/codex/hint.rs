//! Hints: what the path rule needs from a record, as flags and a number.

use crate::model::{Kind, NameTag, Record, take_varint};

/// A turn begins, which a rollback counts. For a record outside the conversation: its task has a turn.
pub(super) const TURN: u8 = 1;
/// It only prepares the next turn.
pub(super) const PREPARES: u8 = 2;
/// It drops turns.
pub(super) const ROLLBACK: u8 = 4;
/// It begins a new context.
pub(super) const BASE: u8 = 8;
/// It is the first record of a file.
pub(super) const OPENS: u8 = 32;
/// It may name the model.
pub(super) const MODEL: u8 = 64;
/// It may contain the size of the context window.
pub(super) const WINDOW: u8 = 128;
/// It starts a task.
pub(super) const STARTS: u8 = PREPARES | WINDOW;

/// The byte after the number of a record that is not in an envelope as Codex writes it.
pub(super) const UNFRAMED: u8 = 1;

/// Returns true if a record is not in an envelope as Codex writes it. Codex skips such a record unless the whole file is like
/// that.
pub(super) fn is_unframed(record: &Record) -> bool {
    let mut rest = record.hint.get(1..).unwrap_or_default();
    take_varint(&mut rest).is_some() && rest == [UNFRAMED]
}

/// Returns the flags and number of a record.
pub(super) fn hint(record: &Record) -> (u8, u64) {
    let Some((&flags, mut rest)) = record.hint.split_first() else { return (0, 0) };
    (flags, take_varint(&mut rest).unwrap_or(0))
}

/// Returns true if a record only prepares the next turn.
pub(super) fn prepares(kind: Kind, flags: u8) -> bool {
    flags & PREPARES != 0 || kind == Kind::Note && flags & TURN == 0
}

/// Returns true if a turn of the conversation begins with a record.
pub(super) fn is_turn(record: &Record) -> bool {
    record.kind.is_conversation() && hint(record).0 & TURN != 0
}

/// Returns true if a task starts with a record.
pub(super) fn starts(flags: u8) -> bool {
    flags & STARTS == STARTS
}

/// Returns true if a record contains the turn of its task, so that a rollback that drops the task has dropped a turn.
pub(super) fn has_turn(kind: Kind, flags: u8) -> bool {
    flags & TURN != 0 && kind != Kind::Boundary
}

/// Encodes a call or result: a hash of the call's id, and the kind of call, from 0.
pub(super) fn of_call(id: &str, kind: usize) -> u64 {
    // A collision of two ids does no harm unless the calls are also of different kinds.
    ((NameTag::of(id).get() >> 32) << 2) | (kind as u64 + 1)
}

/// Decodes a call or result: the hash of the call's id, and a bit for its kind.
pub(super) fn call(number: u64) -> Option<(u64, u8)> {
    (number & 3 > 0).then_some((number >> 2, 1 << (number & 3)))
}

/// The bit of a history that can be resumed from without what comes before it.
pub(super) const COMPLETE: u64 = 1 << 1;

/// The number of a history that a compaction puts in place of all before it: whether the compaction says which window it
/// opens, whether it can be resumed from without what comes before it, and how many turns the history has.
pub(super) fn of_history(has_window: bool, is_complete: bool, n_turns: usize) -> u64 {
    u64::from(has_window) | u64::from(is_complete) << 1 | (n_turns as u64) << 2
}

/// Returns true if no rollback drops a history.
pub(super) fn is_firm(number: u64) -> bool {
    number & 3 == 3
}

/// Returns the number of turns in a history.
pub(super) fn turns_in(number: u64) -> u64 {
    number >> 2
}
