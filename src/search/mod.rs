//! Finding: what was said in any session, by its words.
//!
//! ```text
//! pattern    what is looked for, line by line of a text as it was said
//! query      words that are looked for in any order, in a message
//! needle     bytes that a record must have if such a line is in it, by which a store sieves its lines
//! passages   the texts of a record
//! scan       the records of a session that hold it
//! rank       which of several texts is shown first
//! words      what an index knows of a text, and can tell of a pattern
//! index      a store's index of words, brought along and asked
//! ```
//!
//! Invariant: whatever leads to a record, the pattern is tried on its texts, so that no answer depends on the way.

mod index;
mod needle;
mod passages;
mod pattern;
mod query;
mod rank;
mod scan;
mod words;

pub(crate) use index::{Index, Likely, Score, Weighing, fits, words};
pub use passages::Part;
pub use pattern::{Case, Manner, Pattern, Unfit};
pub use query::Query;
pub(crate) use rank::Rank;
pub use rank::Sort;
pub use scan::Sought;
pub(crate) use scan::{Found, FoundLine, Seeker};
