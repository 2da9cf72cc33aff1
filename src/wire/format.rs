//! A format: everything undertext knows about the files of one agent, as seven traits and one constant.

use super::{Files, Hooks, Identify, Layout, Read, Walk, Write};

/// What one agent writes and how it reads it back.
pub trait Format: Identify + Layout + Files + Read + Walk + Write + Hooks + Sync {
    /// Returns the format's name, which never changes.
    fn name(&self) -> &'static str {
        self.traits().name
    }
}

impl<F: Identify + Layout + Files + Read + Walk + Write + Hooks + Sync> Format for F {}
