//! Search: finds what was said in any session.
//!
//! ```text
//! pattern    a literal, word or regular expression, matched line by line
//! query      words in any order within a message
//! needle     bytes that a record with a match must contain; a store filters its lines with them
//! passages   the texts of a record
//! scan       finds the matching records of a session
//! rank       orders the matching texts
//! words      the words of a text and of a pattern, as an index has them
//! index      a store's search index: querying and updating it
//! ```
//!
//! Invariant: however a record is found, the pattern is tested on its texts, so an index or filter never changes the result.

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
pub(crate) use scan::{Found, Seeker};
