//! Reads a session file into an archive in memory.

use std::path::Path;

use crate::{
    archive::{Ambient, Archive, SyncError},
    change::draft::Writing,
    change::draft::whole_files,
    change::{draft::Change, execute::commit},
    files::{
        siblings::{self, Shelved},
        sources,
    },
    intake::adopt::adopt,
    model::{Command, MAIN},
    session::Session,
};

/// Reads a session file into an archive in memory; writes nothing.
pub fn peek(path: &Path, ambient: Box<dyn Ambient>) -> Result<(Archive, Session), SyncError> {
    let archive = Archive::in_memory(ambient);
    let (format, name) = sources::identify(path).map_err(|why| why.of(path))?;
    let mut change = Change::first(&archive, name, format, Writing::alone(&archive)?);
    let mut shelved = Shelved::default();
    let bases = siblings::bases(format, &change.before.name, path, &mut shelved);
    adopt(&mut change, path, &mut shelved)?;
    let states = sources::rotations_of(path, format);
    let is_alone = states.len() == 1;
    let is_wanted = |file: &Path| is_alone || file.file_name() == path.file_name();
    let files = bases.iter().map(|base| (base, false));
    let files: Vec<_> = files.chain(states.iter().map(|file| (file, is_wanted(file)))).collect();
    for &(file, is_wanted) in &files {
        let n = change.file(archive.place_of(file));
        let mut growth = change.generation(Some(n));
        let stream = sources::open(file, 0).map_err(SyncError::at(file))?;
        change.read(&mut growth, stream)?;
        let generation = growth.generation;
        let end = is_wanted.then(|| change.end_of(&growth)).transpose()?;
        change.grown(growth);
        if let Ok(Some(Ok(bytes))) = sources::container(file) {
            whole_files::contain(&mut change, generation, bytes);
        }
        if end.is_some() {
            change.set_branch(MAIN, end);
        }
    }
    change.set_current(MAIN);
    let command = Command::Import { files: files.len() as u64, part: false };
    let session = commit(change, command)?.session;
    Ok((archive, session))
}
