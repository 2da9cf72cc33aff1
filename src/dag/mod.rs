//! Graphs: generic over closures; no type of the project appears here.

mod walk;

pub use walk::{Chain, ancestors, common_ancestor};
