//! Screens on a terminal that a person moves in. So far there is one: the picker, with which a session or a turn is chosen.
//!
//! Everything is drawn into a buffer; only [`screen`] touches the terminal.
//!
//! Invariant: nothing opens without a terminal, and a screen changes nothing: it answers what was picked.

mod matching;
mod picker;
mod screen;

pub(crate) use picker::{Picker, Piece, Preview, Row};
pub(crate) use screen::{has_room, pick};
