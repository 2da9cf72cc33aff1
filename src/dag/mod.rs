//! Graphs: generic over closures; no type of the project appears here.

mod few;
mod walk;
mod ways;
mod web;

pub use few::Few;
pub use walk::{Chain, ancestors};
pub use ways::unreached;
pub use web::Web;
