//! What a session knows of its surroundings: the record from its beginning, and its other records.
//!
//! Sessions of undertext's own recorded it when they began. Those of agents are asked for it: their newest records, then the first
//! ones for what these leave open, a bounded number of each.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    archive::{Archive, without_credentials},
    json::Raw,
    model::{Card, Command, EntryNumber, OperationNumber, PlaceNumber},
    report::{Conversation, Surroundings},
    session::{Damages, Session, read::lines},
    verbs::OpsError,
    wire::{Graph, Scene},
};

/// How many of the newest records of the current branch are asked.
const NEWEST: usize = 256;
/// How many of the first records of its file.
const FIRST: PlaceNumber = PlaceNumber::new(16);

/// Returns the record that a session of undertext's own made of its surroundings when it began.
fn about(archive: &Archive, session: &Session) -> Result<Option<Value>, OpsError> {
    let first = archive.store().operations(session.key, OperationNumber::FIRST.alone())?.pop();
    Ok(first.and_then(|first| match first.command {
        Command::New { about } => serde_json::from_str(&about.to_text()).ok(),
        _ => None,
    }))
}

/// Returns what the records of a session tell of where its agent works: the newest one that tells something counts.
fn scene(archive: &Archive, session: &Session) -> Result<Scene, OpsError> {
    let Some(view) = lines::view(archive.store(), session, None)? else {
        return Ok(Scene::default());
    };
    let newest = view.path(NEWEST)?.entries.into_iter().rev();
    let mut asked: Vec<EntryNumber> = newest.collect();
    for place in view.end().min(FIRST).earlier() {
        asked.extend(view.at(place)?);
    }
    let mut scenes = BTreeMap::new();
    Damages::gathered().lines(archive.store(), session.key, &asked, &mut |entry, line| {
        let told = Raw::object(&line).map(|record| session.format.told(record));
        scenes.insert(entry, told.unwrap_or_default().scene);
    })?;
    let told = asked.iter().filter_map(|entry| scenes.remove(entry));
    Ok(told.fold(Scene::default(), Scene::or))
}

/// Returns system, session and workspace as an agent's records tell, in the form of those that undertext records.
fn told(scene: Scene, session: &Session, card: &Card) -> [Value; 3] {
    let folder = scene.folder.or_else(|| card.folder.clone());
    let remote = scene.remote.as_deref().and_then(without_credentials);
    let configuration = (scene.model.is_some() || scene.provider.is_some())
        .then(|| json!({ "model": scene.model, "provider": scene.provider }));
    [
        json!({
            "os": scene.os,
            "shell": scene.shell,
            "agent": session.name.format,
            "version": scene.version,
            "folder": folder,
        }),
        json!({
            "user": null,
            "preferences": null,
            "configuration": configuration,
            "start": card.started,
        }),
        json!({ "path": folder, "gitBranch": scene.git_branch, "remote": remote }),
    ]
}

/// Returns the five layers of a session: system, session and workspace as they were recorded when it began or as its agent's
/// records tell, conversation and tools as its records tell.
pub fn layers(archive: &Archive, session: &Session) -> Result<Surroundings, OpsError> {
    let recorded = about(archive, session)?;
    let card = archive.store().card(session.key)?;
    let [system, about, workspace] = match recorded {
        Some(recorded) => {
            ["system", "session", "workspace"].map(|layer| recorded.get(layer).cloned())
        }
        None => told(scene(archive, session)?, session, &card).map(Some),
    };
    let entries = archive.store().state(session.key)?.entries();
    Ok(Surroundings {
        system,
        session: about,
        conversation: Conversation { turns: card.turns, entries, active: card.active },
        tools: lines::recent_calls(archive.store(), session)?,
        workspace,
    })
}

/// Returns the key by which a session says whom the agent talks to, if it was set up with one.
pub fn session_key(archive: &Archive, session: &Session) -> Result<Option<String>, OpsError> {
    let about = about(archive, session)?;
    let key =
        |about: &Value| about.pointer("/session/configuration/key")?.as_str().map(str::to_owned);
    Ok(about.as_ref().and_then(key))
}
