//! What a session knows of its surroundings: the record from its beginning, and its other records.

use serde_json::Value;

use crate::{
    model::{Command, OperationNumber},
    ops::OpsError,
    report::{Conversation, Surroundings},
    session::{Session, lines},
    sync::Archive,
};

/// Returns the record that a session of undertext's own made of its surroundings when it began.
fn about(archive: &Archive, session: &Session) -> Result<Option<Value>, OpsError> {
    let first = archive.store().operations(session.key, OperationNumber::FIRST.alone())?.pop();
    Ok(first.and_then(|first| match first.command {
        Command::New { about } => serde_json::from_str(&about.to_text()).ok(),
        _ => None,
    }))
}

/// Returns the five layers of a session: system, session and workspace as they were recorded when it began, conversation
/// and tools as its records tell.
pub fn layers(archive: &Archive, session: &Session) -> Result<Surroundings, OpsError> {
    let recorded = about(archive, session)?;
    let layer = |name: &str| recorded.as_ref()?.get(name).cloned();
    let card = archive.store().card(session.key)?;
    let entries = archive.store().state(session.key)?.entries();
    Ok(Surroundings {
        system: layer("system"),
        session: layer("session"),
        conversation: Conversation { turns: card.turns, entries, active: card.active },
        tools: lines::recent_calls(archive.store(), session)?,
        workspace: layer("workspace"),
    })
}

/// Returns the key by which a session says whom the agent talks to, if it was set up with one.
pub fn session_key(archive: &Archive, session: &Session) -> Result<Option<String>, OpsError> {
    let about = about(archive, session)?;
    let key =
        |about: &Value| about.pointer("/session/configuration/key")?.as_str().map(str::to_owned);
    Ok(about.as_ref().and_then(key))
}
