//! The files of a session: where each is, its generations, and how the file on disk compares with the newest.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    archive::{Archive, At, SyncError, Why, skip::Failed},
    files::{
        deletion::is_gone,
        judge::{Known, Seen, Verdict, Whose},
        live_file::length_of,
        look::Looking,
        sources,
    },
    model::{FileNumber, GenerationNumber, OperationNumber, Place, Run, Running, State, Timestamp},
    report::Held,
    session::{View, graph::beginning::is_adopted},
    wire::Graph,
};

/// Judges a file that may have the content of a generation with this end, or more.
pub(crate) fn judged(
    session: &At<'_>,
    generation: GenerationNumber,
    end: Option<&Run>,
    path: &Path,
) -> Result<Verdict, Failed> {
    let is_file = |source| Failed::File(0, Why::Unreadable(source));
    let known = Known { whose: Whose::Import, length: length_of(end), rotation: None };
    let length = sources::length(path).map_err(is_file)?;
    let seen = Seen { inode: 0, length, is_untouched: false };
    let looking = Looking {
        session,
        generation,
        end,
        rotation: None,
        path,
        open: &|offset| sources::open(path, offset).map_err(SyncError::at(path)),
    };
    looking.verdict(&known, Some(&seen)).map_err(|error| match error {
        SyncError::Io { source, .. } => is_file(source),
        error => error.into(),
    })
}

/// The files of a session and the newest generation of each.
#[derive(Default)]
pub(crate) struct States {
    pub(crate) files: BTreeMap<FileNumber, PathBuf>,
    newest: BTreeMap<FileNumber, (GenerationNumber, Option<Run>)>,
}

impl States {
    /// Returns the session's files on this machine that contain records.
    pub(crate) fn of(archive: &Archive, state: &State) -> Self {
        let files = FileNumber::FIRST.onwards().zip(&state.files);
        let is_own = |(n, place): &(FileNumber, &Place)| {
            !is_adopted(place) && !state.sidecars.contains_key(n)
        };
        let files = files.filter(is_own);
        let generations = state.generations.iter().map(|(_, generation)| generation);
        Self {
            files: files.filter_map(|(n, place)| Some((n, archive.path_of(place)?))).collect(),
            newest: generations
                .filter_map(|each| Some((each.file?, (each.n, state.ends.get(&each.n).cloned()))))
                .collect(),
        }
    }

    /// Returns the paths of the files.
    pub(crate) fn paths(self) -> Vec<PathBuf> {
        self.files.into_values().collect()
    }

    /// Returns the number of the file with this path.
    pub(crate) fn file(&self, path: &Path) -> Option<FileNumber> {
        self.files.iter().find(|(_, known)| *known == path).map(|(n, _)| *n)
    }

    /// Returns the newest generation of a file and its end.
    pub(crate) fn newest(&self, file: FileNumber) -> Option<(GenerationNumber, Option<&Run>)> {
        self.newest.get(&file).map(|(generation, end)| (*generation, end.as_ref()))
    }

    /// Returns true if another file, now deleted, had this length and running hash: its agent compressed it.
    pub(crate) fn had(&self, file: FileNumber, length: u64, running: Running) -> bool {
        self.files.iter().filter(|(other, path)| **other != file && is_gone(path)).any(
            |(other, _)| {
                let end = self.newest(*other).and_then(|(_, end)| end);
                end.is_some_and(|end| (length_of(Some(end)), end.running) == (length, running))
            },
        )
    }
}

/// Returns the newest time of any record.
pub(crate) fn newest_time(view: &View<'_>) -> Result<Option<Timestamp>, SyncError> {
    let mut newest = None;
    for place in view.end().earlier() {
        if let Some(entry) = view.at(place)? {
            newest = newest.max(view.record(entry)?.time);
        }
    }
    Ok(newest)
}

/// Returns the generations of a session in order, each with its file.
pub fn generations(session: &At<'_>) -> Result<Vec<Held>, SyncError> {
    let current = session.state.position().map(|at| at.generation);
    let mut held = Vec::with_capacity(session.state.generations.len());
    for (operation, generation) in &session.state.generations {
        let end = session.state.ends.get(&generation.n);
        let path =
            generation.file.and_then(|file| session.archive.path_of(session.state.file(file)?));
        let aside =
            session.state.rotations.iter().find(|(_, rotation)| rotation.old == generation.n);
        held.push(Held {
            generation: generation.n,
            file: path.map(|path| match aside {
                Some((_, aside)) => path.with_file_name(OsStr::from_bytes(&aside.aside)),
                None => path,
            }),
            entries: end.map_or(0, Run::end),
            bytes: end.map_or(0, Run::length),
            operation: *operation,
            container: container(&session.state, generation.n).map(|(.., size)| size),
            is_current: Some(generation.n) == current,
        });
    }
    Ok(held)
}

/// Returns the compressed file that contained a generation: its operation, its index among that operation's containers, and its
/// size.
pub(crate) fn container(
    tip: &State,
    generation: GenerationNumber,
) -> Option<(OperationNumber, u64, u64)> {
    let mut newest = tip.containers.iter().rev();
    let found = newest.find(|(.., container)| container.generation == generation);
    found.map(|(operation, at, container)| (*operation, *at, container.size))
}
