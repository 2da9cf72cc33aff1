//! Covering: overwrites parts of a line with the same number of bytes, however those parts are spelt.
//!
//! ```text
//! literal        the token is hunter2!
//! escaped        "the token is hunter2\u0021"           JSON in JSON in JSON: up to three levels
//! in base64      aHVudGVyMiE=                          at any offset in the encoded data
//! ```
//!
//! Invariant: a covered line has the same length, is still an object if it was one, and its strings are at the same offsets.

mod all;
mod place;
mod secret;
mod secrets;
mod text;

pub(crate) use all::{cover_all, cover_texts, said};
pub(crate) use place::LEVELS;
pub(crate) use secret::{SHORTEST, Secret};
pub(crate) use secrets::Secrets;
pub(crate) use text::unescaped;

/// A frame of records that have a name.
#[cfg(test)]
const FRAME: crate::json::Frame =
    crate::json::Frame { telling: &["uuid"], ..crate::json::Frame::NONE };

/// Makes a secret, and a line that says it, escaped up to three times, among other characters.
#[cfg(test)]
fn secret_in_line() -> impl proptest::strategy::Strategy<Value = (String, String)> {
    use proptest::strategy::Strategy as _;

    let secret = r#"[a-zA-Z0-9+/!"\\é-]{8,20}"#;
    let around = r#"[a-z "\\]{0,8}"#;
    (secret, around, around, 1..=LEVELS).prop_map(|(secret, before, after, depth)| {
        let said = format!("{before}{secret}{after}");
        let text = (0..depth).fold(said, |text, _| crate::json::quote(&text));
        let line = format!(r#"{{"uuid":"u","a":{text}}}"#);
        (secret, line)
    })
}
