//! Undertext keeps everything a coding agent ever saw.

pub mod model;
pub mod store;
