//! Hooks: decoding the events of agents.

use crate::{
    json::Raw,
    wire::{Format, Named},
};

/// Returns what an event of an agent names, if anything.
pub fn named(agent: &dyn Format, event: &[u8]) -> Option<Named> {
    agent.named(Raw::object(event.trim_ascii())?)
}
