//! Interactive screens. So far there is one: the picker, which chooses a session or a turn.
//!
//! Everything is drawn into a buffer. Only [`screen`] touches the terminal.
//!
//! Invariant: no screen opens without a terminal, and no screen changes anything: it returns what was picked.

mod matching;
mod picker;
mod screen;

pub(crate) use picker::{Picker, Piece, Preview, Row};
pub(crate) use screen::{has_room, pick};
