//! Reading: the conversation of a branch, one entry, the bytes of a file, and the status of a session.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
};

use crate::{
    archive::At,
    change::waiting,
    files::{
        deletion,
        live_file::{self, live_file},
        open_in, siblings,
        states::{container, generations},
    },
    model::GenerationNumber,
    report::{Held, LiveState, Status},
    session::{
        Damaged, Damages, Elsewhere, Session, SessionError, Target,
        graph::content,
        kin,
        read::{
            checkpoints,
            lines::{self, Line},
        },
    },
    verbs::OpsError,
};

/// Returns an entry and its line; the line is empty if it is damaged. For a checkpoint before a turn, returns the turn.
pub fn show(session: &At<'_>, target: &Target) -> Result<Option<(Line, Vec<u8>)>, OpsError> {
    let Some(entry) = lines::entry_of(session, target)? else { return Ok(None) };
    let damages = Damages::gathered();
    let view = session.view(target.position).gathering(&damages);
    let Some(line) = lines::lines(session, &view, &[entry])?.pop() else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    damages.lines(session.store, session.key, &[entry], &mut |_, found| bytes = found)?;
    Ok(Some((line, bytes)))
}

/// Returns the newest generation of the file with this name.
pub fn generation_of(session: &At<'_>, file: &Path) -> Result<GenerationNumber, OpsError> {
    let held = generations(session)?;
    let named = |held: &Held| held.file.as_deref().is_some_and(|path| path.ends_with(file));
    let mut found: BTreeMap<&Path, GenerationNumber> = BTreeMap::new();
    for held in held.iter().filter(|held| named(held)) {
        found.extend(held.file.as_deref().map(|path| (path, held.generation)));
    }
    let exact = found.get(file).copied();
    match (exact, found.len()) {
        (Some(generation), _) => Ok(generation),
        (None, 1) => Ok(found.into_values().next().unwrap_or_default()),
        _ => {
            let among: BTreeSet<PathBuf> = held.into_iter().filter_map(|held| held.file).collect();
            Err(OpsError::NoFile { wanted: file.to_owned(), among: among.into_iter().collect() })
        }
    }
}

/// Writes the bytes of a generation, by default the current one, and returns their number. A damaged entry is an error.
pub fn export(
    session: &At<'_>,
    generation: Option<GenerationNumber>,
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<u64, OpsError> {
    write(session, generation, &Damages::default(), each)
}

/// Writes the intact bytes of a generation, by default the current one. Returns their number and the damaged entries that were
/// skipped.
pub fn export_whole(
    session: &At<'_>,
    generation: Option<GenerationNumber>,
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<(u64, Vec<Damaged>), OpsError> {
    let damages = Damages::gathered();
    let bytes = write(session, generation, &damages, each)?;
    Ok((bytes, damages.met(session)?))
}

fn write(
    session: &At<'_>,
    generation: Option<GenerationNumber>,
    damages: &Damages,
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<u64, OpsError> {
    let generation = generation.unwrap_or_else(|| session.state.generation());
    let all = GenerationNumber::FIRST..session.state.next_generation();
    if !all.contains(&generation) {
        let newest = GenerationNumber::new(session.state.generations.len() as u64);
        return Err(OpsError::NoGeneration { wanted: generation, newest });
    }
    let runs = session.store.runs(session.key, generation, 0)?;
    Ok(content::write_whole(session, &runs, damages, each)?)
}

/// Writes the compressed file of a generation, by default the current one, exactly as it was on disk. Returns its length.
pub fn export_container(
    session: &At<'_>,
    generation: Option<GenerationNumber>,
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<u64, OpsError> {
    let generation = generation.unwrap_or_else(|| session.state.generation());
    let container = container(&session.state, generation);
    let (operation, at, size) = container.ok_or(OpsError::NoContainer { generation })?;
    let bytes = session.store.kept(session.key, operation, at)?;
    each(&bytes).map_err(|source| SessionError::Write { source })?;
    Ok(size)
}

/// Returns the status of a session.
pub fn status(session: &At<'_>) -> Result<Status, OpsError> {
    let head = session.state.position().and_then(|at| at.head);
    let is_behind = live_file::is_behind(session.archive, &session.state)?;
    let live_state = if is_behind { LiveState::Grown } else { LiveState::Same };
    Ok(Status {
        card: session.store.card(session.key)?,
        branch: session.state.current().to_owned(),
        position: session.state.position(),
        head: session.entry_id(head)?,
        // A damaged entry there must not hide the rest of the status.
        spot: checkpoints::standing_at(session).ok().flatten(),
        branches: session.state.branches.len() as u64,
        entries: session.state.entries(),
        operations: session.state.operations(),
        sidecars: session.state.sidecars.len() as u64,
        checkpoint: checkpoints::newest(session)?.map(|checkpoint| checkpoint.n),
        kin: kin(session)?,
        elsewhere: elsewhere(session)?,
        compacting: session.compacting().map(|holder| holder.to_string()),
        live: live_file(session.archive, &session.state).map(|live| live.path),
        gone: deletion::lost(session)?.map(|lost| lost.path),
        live_state,
        waiting: waiting(session)?,
        open: open_in(session),
    })
}

/// Returns where the history of the current branch continues, if its beginning is missing here.
pub fn elsewhere(session: &At<'_>) -> Result<Option<Elsewhere>, OpsError> {
    let view = lines::view(session, None);
    Ok(view.map(|view| view.elsewhere()).transpose()?.flatten())
}

/// Returns the file whose content is shown: the live file, or a file that is read without a store.
pub fn file_of(session: &At<'_>) -> Result<Option<PathBuf>, OpsError> {
    if session.archive.root().is_some() {
        let live = live_file(session.archive, &session.state);
        return Ok(live.map(|live| live.path));
    }
    let held = generations(session)?;
    Ok(held.into_iter().find(|held| held.is_current).and_then(|held| held.file))
}

/// Returns the file where the agent continues instead of the one whose content is shown.
pub fn left_for(session: &At<'_>) -> Result<Option<PathBuf>, OpsError> {
    let shown = file_of(session)?;
    Ok(shown.and_then(|path| siblings::successor(session.format, &path)))
}

/// Returns the file where the agent continues instead of this one.
pub fn successor_of(session: &Session, file: &Path) -> Option<PathBuf> {
    siblings::successor(session.format, file)
}

/// Returns true if the live file and the store differ, so that the next change begins by catching up.
pub fn is_behind(session: &At<'_>) -> Result<bool, OpsError> {
    Ok(live_file::is_behind(session.archive, &session.state)?)
}
