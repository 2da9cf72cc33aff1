//! Files: those of a session that lie on this computer, each with the newest state of it that the session holds.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crate::{
    model::{FileNumber, GenerationNumber, Place, Run, State},
    session::elsewhere::is_adopted,
    sync::Archive,
};

/// The files of a session and the newest generation of each.
#[derive(Default)]
pub(crate) struct Files {
    /// Where each lies.
    pub(super) files: BTreeMap<FileNumber, PathBuf>,
    newest: BTreeMap<FileNumber, (GenerationNumber, Option<Run>)>,
}

impl Files {
    /// Returns those of the files with records that lie on this computer.
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
    pub(super) fn file(&self, path: &Path) -> Option<FileNumber> {
        self.files.iter().find(|(_, known)| *known == path).map(|(n, _)| *n)
    }

    /// Returns the newest generation of a file and its end.
    pub(crate) fn newest(&self, file: FileNumber) -> Option<(GenerationNumber, Option<&Run>)> {
        self.newest.get(&file).map(|(generation, end)| (*generation, end.as_ref()))
    }
}
