//! Undertext keeps everything a coding agent ever saw.

pub mod dag;
pub mod model;
pub mod store;
pub mod wire;
