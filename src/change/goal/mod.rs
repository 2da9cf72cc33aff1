//! Goals: the aims of a plan for the live file.
//!
//! Invariant: a goal that is prepared has written nothing but a temporary file; the commit lets the live file follow.

pub(crate) mod add;
pub(crate) mod compaction;
pub(crate) mod reach;
pub(crate) mod replay;
pub(crate) mod resume;
pub(crate) mod segment;
pub(crate) mod setting;

use std::path::PathBuf;

use crate::{
    archive::SyncError,
    change::draft::Change,
    files::live_file::LiveFile,
    model::{Place, Position},
};

/// The aim of a plan for the live file and for its content.
pub(crate) trait Goal {
    /// The result.
    type Reached;

    /// Adds the goal's part to a change. Returns the result, and where the current branch is then if it is moved.
    fn prepare(
        self,
        change: &mut Change<'_>,
    ) -> Result<(Self::Reached, Option<Position>), SyncError>;
}

/// The live file stays as it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stay;

impl Goal for Stay {
    type Reached = ();

    fn prepare(self, _: &mut Change<'_>) -> Result<((), Option<Position>), SyncError> {
        Ok(((), None))
    }
}

/// An optional goal: without one, the live file stays as it is.
impl<G: Goal> Goal for Option<G> {
    type Reached = Option<G::Reached>;

    fn prepare(
        self,
        change: &mut Change<'_>,
    ) -> Result<(Self::Reached, Option<Position>), SyncError> {
        let Some(goal) = self else { return Ok((None, None)) };
        let (reached, position) = goal.prepare(change)?;
        Ok((Some(reached), position))
    }
}

/// The session begins with an empty file of the store's, or without one where the store has no folder.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Begin {
    /// Where the file is.
    pub(crate) place: Place,
}

impl Goal for Begin {
    /// The path of the file.
    type Reached = Option<PathBuf>;

    fn prepare(
        self,
        change: &mut Change<'_>,
    ) -> Result<(Self::Reached, Option<Position>), SyncError> {
        let path = change.before.archive.path_of(&self.place);
        let file = path.as_ref().map(|_| change.file(self.place));
        let growth = change.generation(file);
        if let Some((path, n)) = path.clone().zip(file) {
            change.set_live(Some(n));
            change.create_live(&LiveFile { n, path, attached: false })?;
        }
        let position = Position { generation: growth.generation, head: None, horizon: 0 };
        Ok((path, Some(position)))
    }
}
