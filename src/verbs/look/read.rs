//! Reading: the conversation of a branch, one entry, the bytes of a file, and the status of a session.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
};

use crate::{
    archive::Archive,
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
        Damaged, Damages, Elsewhere, Session, SessionError, Target, View,
        graph::content,
        ids::entry_id,
        kin,
        read::{
            checkpoints,
            lines::{self, Line},
        },
    },
    verbs::OpsError,
};

/// Returns an entry and its line; the line is empty if it is damaged. For a checkpoint before a turn, returns the turn.
pub fn show(
    archive: &Archive,
    session: &Session,
    target: &Target,
) -> Result<Option<(Line, Vec<u8>)>, OpsError> {
    let Some(entry) = lines::entry_of(archive.store(), session, target)? else { return Ok(None) };
    let damages = Damages::gathered();
    let spans = archive.store().state(session.key)?.spans;
    let view = View::new(archive.store(), session, target.position, Some(&spans));
    let view = view.gathering(&damages);
    let Some(line) = lines::lines(archive.store(), session, &view, &[entry])?.pop() else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    damages.lines(archive.store(), session.key, &[entry], &mut |_, found| bytes = found)?;
    Ok(Some((line, bytes)))
}

/// Returns the newest generation of the file with this name.
pub fn generation_of(
    archive: &Archive,
    session: &Session,
    file: &Path,
) -> Result<GenerationNumber, OpsError> {
    let held = generations(archive, session)?;
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
    archive: &Archive,
    session: &Session,
    generation: Option<GenerationNumber>,
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<u64, OpsError> {
    write(archive, session, generation, &Damages::default(), each)
}

/// Writes the intact bytes of a generation, by default the current one. Returns their number and the damaged entries that were
/// skipped.
pub fn export_whole(
    archive: &Archive,
    session: &Session,
    generation: Option<GenerationNumber>,
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<(u64, Vec<Damaged>), OpsError> {
    let damages = Damages::gathered();
    let bytes = write(archive, session, generation, &damages, each)?;
    Ok((bytes, damages.met(archive.store(), session)?))
}

fn write(
    archive: &Archive,
    session: &Session,
    generation: Option<GenerationNumber>,
    damages: &Damages,
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<u64, OpsError> {
    let tip = archive.store().state(session.key)?;
    let generation = generation.unwrap_or_else(|| tip.generation());
    let all = GenerationNumber::FIRST..tip.next_generation();
    if !all.contains(&generation) {
        let newest = GenerationNumber::new(tip.generations.len() as u64);
        return Err(OpsError::NoGeneration { wanted: generation, newest });
    }
    let runs = archive.store().runs(session.key, generation, 0)?;
    Ok(content::write_whole(archive.store(), session, &runs, damages, each)?)
}

/// Writes the compressed file of a generation, by default the current one, exactly as it was on disk. Returns its length.
pub fn export_container(
    archive: &Archive,
    session: &Session,
    generation: Option<GenerationNumber>,
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<u64, OpsError> {
    let tip = archive.store().state(session.key)?;
    let generation = generation.unwrap_or_else(|| tip.generation());
    let container = container(&tip, generation);
    let (operation, at, size) = container.ok_or(OpsError::NoContainer { generation })?;
    let bytes = archive.store().kept(session.key, operation, at)?;
    each(&bytes).map_err(|source| SessionError::Write { source })?;
    Ok(size)
}

/// Returns the status of a session.
pub fn status(archive: &Archive, session: &Session) -> Result<Status, OpsError> {
    let tip = archive.store().state(session.key)?;
    let head = tip.position().and_then(|at| at.head);
    let is_behind = live_file::is_behind(archive, &tip)?;
    let live_state = if is_behind { LiveState::Grown } else { LiveState::Same };
    Ok(Status {
        card: archive.store().card(session.key)?,
        branch: tip.current().to_owned(),
        position: tip.position(),
        head: entry_id(archive.store(), session, head)?,
        // A damaged entry there must not hide the rest of the status.
        spot: checkpoints::standing_at(archive.store(), session).ok().flatten(),
        branches: tip.branches.len() as u64,
        entries: tip.entries(),
        operations: tip.operations(),
        sidecars: tip.sidecars.len() as u64,
        checkpoint: checkpoints::newest(archive.store(), session)?.map(|checkpoint| checkpoint.n),
        kin: kin(archive.store(), session)?,
        elsewhere: elsewhere(archive, session)?,
        live: live_file(archive, &tip).map(|live| live.path),
        gone: deletion::lost(archive, session, &tip)?.map(|lost| lost.path),
        live_state,
        waiting: waiting(archive, session)?,
        open: open_in(archive, session),
    })
}

/// Returns where the history of the current branch continues, if its beginning is missing here.
pub fn elsewhere(archive: &Archive, session: &Session) -> Result<Option<Elsewhere>, OpsError> {
    let view = lines::view(archive.store(), session, None)?;
    Ok(view.map(|view| view.elsewhere()).transpose()?.flatten())
}

/// Returns the file whose content is shown: the live file, or a file that is read without a store.
pub fn file_of(archive: &Archive, session: &Session) -> Result<Option<PathBuf>, OpsError> {
    if archive.root().is_some() {
        let live = live_file(archive, &archive.store().state(session.key)?);
        return Ok(live.map(|live| live.path));
    }
    let held = generations(archive, session)?;
    Ok(held.into_iter().find(|held| held.is_current).and_then(|held| held.file))
}

/// Returns the file where the agent continues instead of the one whose content is shown.
pub fn left_for(archive: &Archive, session: &Session) -> Result<Option<PathBuf>, OpsError> {
    let shown = file_of(archive, session)?;
    Ok(shown.and_then(|path| siblings::successor(session.format, &path)))
}

/// Returns the file where the agent continues instead of this one.
pub fn successor_of(session: &Session, file: &Path) -> Option<PathBuf> {
    siblings::successor(session.format, file)
}

/// Returns true if the live file and the store differ, so that the next change begins by catching up.
pub fn is_behind(archive: &Archive, session: &Session) -> Result<bool, OpsError> {
    Ok(live_file::is_behind(archive, &archive.store().state(session.key)?)?)
}
