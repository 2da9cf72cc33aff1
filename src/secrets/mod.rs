//! Secrets: what looks like a key, a token, a password or a private key, and masks that replace it.
//!
//! ```text
//! keywords    one pass over all bytes for the words of every rule
//! window      the bytes around a keyword, as they read without escapes: JSON in JSON as often as that goes on
//! rule        its expression, compiled when one of its keywords is met first; entropy; what it allows
//! settle      of what several rules find in the same place, the one that tells most
//! ```
//!
//! `gitleaks.toml` has rules that were made for files of source code, with their licence; `own.toml` those that these lack.
//!
//! Invariant: what is found depends on the text and the rules alone, not on what was looked through before.
//! Invariant: no secret is a part of any `Debug` output.

mod allowed;
mod find;
mod mask;
#[cfg(test)]
mod planted;
mod rule;
mod rules;

pub use allowed::{Allowed, Unallowed};
pub(crate) use find::Found;
pub use mask::{Masked, Masking, Masks};
pub(crate) use rules::Rules;
