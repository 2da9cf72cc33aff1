//! Covering: what is to go of a line is written over, with as many bytes as before, however it is spelt there.
//!
//! ```text
//! as it is           the token is hunter2!
//! escaped            "the token is hunter2\u0021"
//! escaped again      "{\"token\":\"hunter2\\u0021\"}"       JSON in JSON, up to four times
//! in base64          aHVudGVyMiE=                          wherever it begins in what was encoded
//! in an address      hunter2%21
//! ```
//!
//! Invariant: a covered line has the length of the line, is an object if that was one, and its strings stand where they stood.

mod all;
mod kept_out;
mod place;
mod secret;
mod text;

pub(crate) use all::cover_all;
pub(crate) use kept_out::Guard;
pub(crate) use secret::{SHORTEST, Secret};
pub(crate) use text::unescaped;
