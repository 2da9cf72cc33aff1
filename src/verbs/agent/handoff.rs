//! A handoff: starts a new session for a goal, from a summary of an old one.

use serde_json::json;

use crate::{
    archive::{At, Workspace},
    change,
    context::event::Event,
    report::HandedOff,
    verbs::{
        OpsError,
        agent::{
            append::append,
            new::{Layers, new},
        },
        window::{compact::summary_for, compaction::Compacting},
    },
    wire::{Draft, Speaker},
};

/// Starts a new session with a summary of another one, written for a goal, and with the goal as its prompt. The new session
/// records the other one, which does not change.
pub fn hand_off(
    session: &At<'_>,
    workspace: &Workspace,
    layers: &Layers,
    wanted: &Compacting<'_>,
    goal: &str,
    emit: &mut dyn FnMut(&Event),
) -> Result<HandedOff, OpsError> {
    change::settle(session)?;
    let session = &session.again()?;
    let (made, tokens) = summary_for(session, goal, wanted, emit)?;
    let old = json!({ "handoff": { "session": session.name.id, "agent": session.name.format } });
    let layers = Layers { configuration: old, ..layers.clone() };
    let created = new(session.archive, &layers, workspace)?;
    let drafts = [Draft::Summary(made.summary), Draft::Message(Speaker::User, goal.to_owned())];
    append(&session.archive.at(&created.session)?, workspace, &drafts)?;
    let (summarised, model) = (made.plan.summarised.len(), made.model);
    Ok(HandedOff { created, summarised, tokens, model, fallback: made.fallback })
}
