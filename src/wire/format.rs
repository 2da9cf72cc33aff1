//! A format: all seven parts of what one agent writes and how it reads it.

use super::{Files, Hooks, Identify, Layout, Read, Walk, Write};

/// What one agent writes, and how it reads it.
pub trait Format: Identify + Layout + Files + Read + Walk + Write + Hooks + Sync {
    /// Returns the format's name, for ever.
    fn name(&self) -> &'static str {
        self.traits().name
    }
}

impl<F: Identify + Layout + Files + Read + Walk + Write + Hooks + Sync> Format for F {}
