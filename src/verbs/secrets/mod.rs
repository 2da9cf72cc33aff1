//! Secrets: found, masked, and taken out of everything.

pub(crate) mod findings;
pub(crate) mod parts;
pub(crate) mod redact;
pub(crate) mod suspects;
