//! Hooks: what an event of an agent names.

use crate::{
    json::Raw,
    wire::{Format, Named},
};

/// Returns what an event of an agent names, if it is one that names anything.
pub fn named(agent: &dyn Format, event: &[u8]) -> Option<Named> {
    agent.named(Raw::object(event.trim_ascii())?)
}
