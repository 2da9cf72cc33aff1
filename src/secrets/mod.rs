//! Secrets: finds keys, tokens, passwords and private keys, and masks them.
//!
//! ```text
//! keywords    one pass over all bytes finds the keywords of all rules
//! window      the bytes around a keyword, with escapes resolved repeatedly: JSON in JSON
//! rule        its expression, compiled at the first keyword; its minimum entropy; its allowlist
//! settle      of overlapping finds, keeps the most specific one
//! ```
//!
//! `gitleaks.toml` has the rules of gitleaks, made for source code, with their licence; `own.toml` has rules that gitleaks lacks.
//!
//! Invariant: what is found depends only on the text and the rules, not on what was searched before.
//! Invariant: a secret never appears in `Debug` output.

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
