//! A format: everything undertext knows about the files of one agent, as six traits and one constant.

use super::{Files, Identify, Layout, Read, Walk, Write};

/// What one agent writes and how it reads it back.
pub trait Format: Identify + Layout + Files + Read + Walk + Write + Sync {
    /// Returns the format's name, which never changes.
    fn name(&self) -> &'static str {
        self.traits().name
    }
}

impl<F: Identify + Layout + Files + Read + Walk + Write + Sync> Format for F {}
