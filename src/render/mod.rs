//! Output forms: one file per form, each a function from plain data to a writer.
//!
//! Nothing here knows the command line, the environment or the terminal. The width and [`style::Styles`] are passed in.
//!
//! Invariant: text from outside never reaches a writer bare, only through [`safe`] or [`json`].

pub(crate) mod answers;
pub(crate) mod call;
pub(crate) mod chart;
pub(crate) mod conversation;
pub(crate) mod diff;
pub(crate) mod fields;
pub(crate) mod graph;
pub(crate) mod harness;
pub(crate) mod json;
pub(crate) mod markdown;
pub(crate) mod moment;
#[cfg(feature = "browse")]
pub(crate) mod prose;
pub(crate) mod safe;
pub(crate) mod search;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod time;
pub(crate) mod units;
pub(crate) mod window;
pub(crate) mod wrap;
