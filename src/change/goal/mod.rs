//! Goals: what a plan wants for the live file.
//!
//! Invariant: preparing a goal writes nothing except a temporary file. The live file changes only after the commit.

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
    change::draft::{Change, live::create_live},
    files::live_file::LiveFile,
    model::{Place, Position},
};

/// What a plan wants for the live file and its content.
pub(crate) trait Goal {
    /// The result.
    type Reached;

    /// Adds the goal's part to a change. Returns the result, and the new position of the current branch if it moves.
    fn prepare(
        self,
        change: &mut Change<'_>,
    ) -> Result<(Self::Reached, Option<Position>), SyncError>;
}

/// Leaves the live file as it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stay;

impl Goal for Stay {
    type Reached = ();

    fn prepare(self, _: &mut Change<'_>) -> Result<((), Option<Position>), SyncError> {
        Ok(((), None))
    }
}

/// An optional goal; `None` leaves the live file as it is.
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

/// Starts the session with an empty file of the store, or without a file if the store has no folder.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Begin {
    /// The place of the file.
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
            create_live(change, &LiveFile { n, path, attached: false })?;
        }
        let position = Position { generation: growth.generation, head: None, horizon: 0 };
        Ok((path, Some(position)))
    }
}
