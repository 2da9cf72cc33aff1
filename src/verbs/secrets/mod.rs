//! Secrets: finding, masking and redacting them.

pub(crate) mod findings;
pub(crate) mod parts;
pub(crate) mod redact;
pub(crate) mod suspects;
