//! The surroundings of a session: what was recorded at its beginning, and what its other records report.
//!
//! Native sessions record them when they begin. Agents' sessions are searched: a bounded number of the newest records, then of
//! the first ones for what is still missing.

use std::{collections::BTreeMap, path::Path};

use serde_json::{Value, json};

use crate::{
    archive::{At, without_credentials},
    disk,
    json::Raw,
    model::{Card, Command, EntryNumber, OperationNumber, PlaceNumber},
    report::{Conversation, Surroundings},
    session::{Damages, Session, read::lines},
    verbs::OpsError,
    wire::{Graph, Scene},
};

/// How many of the newest records of the current branch are searched.
const NEWEST: usize = 256;
/// How many of the first records of its file are searched.
const FIRST: PlaceNumber = PlaceNumber::new(16);

/// Returns the surroundings that a native session recorded when it began.
fn about(session: &At<'_>) -> Result<Option<Value>, OpsError> {
    let first = session.store.operations(session.key, OperationNumber::FIRST.alone())?.pop();
    Ok(first.and_then(|first| match first.command {
        Command::New { about } => serde_json::from_str(&about.to_text()).ok(),
        _ => None,
    }))
}

/// Returns the surroundings according to the records of a session; newer records take precedence.
fn scene(session: &At<'_>) -> Result<Scene, OpsError> {
    let Some(view) = lines::view(session, None) else {
        return Ok(Scene::default());
    };
    let newest = view.path(NEWEST)?.entries.into_iter().rev();
    let mut asked: Vec<EntryNumber> = newest.collect();
    for place in view.end().min(FIRST).earlier() {
        asked.extend(view.at(place)?);
    }
    let mut scenes = BTreeMap::new();
    Damages::gathered().lines(session.store, session.key, &asked, &mut |entry, line| {
        let told = Raw::object(&line).map(|record| session.format.told(record));
        scenes.insert(entry, told.unwrap_or_default().scene);
    })?;
    let told = asked.iter().filter_map(|entry| scenes.remove(entry));
    Ok(told.fold(Scene::default(), Scene::or))
}

/// Returns system, session and workspace from an agent's records, in the form in which native sessions record them.
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

/// Returns the five layers of a session: system, session and workspace as recorded at its beginning or found in its agent's
/// records; conversation and tools from its entries.
pub fn layers(session: &At<'_>) -> Result<Surroundings, OpsError> {
    let recorded = about(session)?;
    let card = session.store.card(session.key)?;
    let [system, about, workspace] = match recorded {
        Some(recorded) => {
            ["system", "session", "workspace"].map(|layer| recorded.get(layer).cloned())
        }
        None => told(scene(session)?, session, &card).map(Some),
    };
    let entries = session.state.entries();
    Ok(Surroundings {
        system,
        session: about,
        conversation: Conversation { turns: card.turns, entries, active: card.active },
        tools: lines::recent_calls(session)?,
        workspace,
    })
}

/// Returns the key that names the agent's conversation partner, if the session was set up with one or its agent lists one.
pub fn session_key(session: &At<'_>) -> Result<Option<String>, OpsError> {
    let about = about(session)?;
    let key =
        |about: &Value| about.pointer("/session/configuration/key")?.as_str().map(str::to_owned);
    // A file that is only read is not the live file.
    let file = session.state.live.or_else(|| session.state.file_of(session.state.generation()));
    let listed = || listed_key(session, &session.file(file?)?.path);
    Ok(about.as_ref().and_then(key).or_else(listed))
}

/// Returns the key under which the agent lists a session next to its file. Of several, the agent used the last updated one last.
fn listed_key(session: &Session, file: &Path) -> Option<String> {
    let list = file.with_file_name(session.format.traits().key_list?);
    let list = disk::read(&list, disk::TEXT).ok()?;
    let listed: BTreeMap<String, Value> = serde_json::from_slice(&list).ok()?;
    let is_it =
        |entry: &Value| entry.get("sessionId").and_then(Value::as_str) == Some(&session.name.id);
    let updated = |entry: &Value| entry.get("updatedAt").and_then(Value::as_u64);
    let own = listed.into_iter().filter(|(_, entry)| is_it(entry));
    own.max_by_key(|(_, entry)| updated(entry)).map(|(key, _)| key)
}
