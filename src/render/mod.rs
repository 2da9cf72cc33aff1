//! Output: one file per form, each a function from plain data to a writer.
//!
//! Refuses to know the command line, the environment or the terminal: width and [`style::Styles`]
//! are passed in.
//!
//! Invariant: text that came from outside reaches a writer through [`safe`] or [`json`], never bare.

pub(crate) mod answers;
pub(crate) mod call;
pub(crate) mod conversation;
pub(crate) mod diff;
pub(crate) mod fields;
pub(crate) mod graph;
pub(crate) mod harness;
pub(crate) mod hunks;
pub(crate) mod json;
pub(crate) mod markdown;
pub(crate) mod moment;
pub(crate) mod safe;
pub(crate) mod search;
pub(crate) mod secrets;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod time;
pub(crate) mod units;
pub(crate) mod window;
pub(crate) mod wrap;
