//! Undertext keeps everything a coding agent ever saw.

pub mod dag;
pub mod live;
pub mod model;
pub mod ops;
pub mod store;
pub mod wire;
