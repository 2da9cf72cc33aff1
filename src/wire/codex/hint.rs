//! Hints: what the path rule must know of a record, as flags and a number.

use crate::model::{Kind, NameTag, Record, take_varint};

/// A rollback counts it: a turn begins. Of a record that is no part of the conversation: its task has a turn.
pub(super) const TURN: u8 = 1;
/// It only prepares the turn that follows.
pub(super) const PREPARES: u8 = 2;
/// It drops turns.
pub(super) const ROLLBACK: u8 = 4;
/// The context begins again with it.
pub(super) const BASE: u8 = 8;
/// It opens a file.
pub(super) const OPENS: u8 = 32;
/// It may name the model.
pub(super) const MODEL: u8 = 64;
/// It may say how much the model takes.
pub(super) const WINDOW: u8 = 128;
/// A task starts with it.
pub(super) const STARTS: u8 = PREPARES | WINDOW;

/// The byte behind the number of a record without an envelope as Codex writes it.
pub(super) const UNFRAMED: u8 = 1;

/// Returns whether a record has no envelope as Codex writes it. It passes such a one, unless the whole file is of them.
pub(super) fn is_unframed(record: &Record) -> bool {
    let mut rest = record.hint.get(1..).unwrap_or_default();
    take_varint(&mut rest).is_some() && rest == [UNFRAMED]
}

/// Returns the flags and the number of a record.
pub(super) fn hint(record: &Record) -> (u8, u64) {
    let Some((&flags, mut rest)) = record.hint.split_first() else { return (0, 0) };
    (flags, take_varint(&mut rest).unwrap_or(0))
}

/// Returns whether a record only prepares the turn that follows.
pub(super) fn prepares(kind: Kind, flags: u8) -> bool {
    flags & PREPARES != 0 || kind == Kind::Note && flags & TURN == 0
}

/// Returns whether a turn of the conversation begins with a record.
pub(super) fn is_turn(record: &Record) -> bool {
    record.kind.is_conversation() && hint(record).0 & TURN != 0
}

/// Returns whether a task starts with a record.
pub(super) fn starts(flags: u8) -> bool {
    flags & STARTS == STARTS
}

/// Returns whether the turn of a task is in a record: a rollback that drops the task has then dropped a turn.
pub(super) fn has_turn(kind: Kind, flags: u8) -> bool {
    flags & TURN != 0 && kind != Kind::Boundary
}

/// The number of a call or an answer: which call it is, and of which kind, from 0.
pub(super) fn of_call(id: &str, kind: usize) -> u64 {
    // Ids that are mistaken for each other do no harm unless their calls are of different kinds, too.
    ((NameTag::of(id).get() >> 32) << 2) | (kind as u64 + 1)
}

/// Returns which call it is of that makes or answers one, and a bit for its kind.
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

/// Returns whether a history counts whatever is rolled back.
pub(super) fn is_firm(number: u64) -> bool {
    number & 3 == 3
}

/// Returns how many turns a history has.
pub(super) fn turns_in(number: u64) -> u64 {
    number >> 2
}
