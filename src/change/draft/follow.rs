//! Following: the steps of a commit on files.
//!
//! An owned file follows the store: it is written once the operation is safe. An agent's own file is written the same way,
//! but it is synced too, and a process that has its session loaded keeps it from being written at all. An agent's list of
//! folders has the folder of the session before that file is written.
//!
//! Invariant: bytes written here are in the store or safe under a temporary name before, so that a step cut
//! short can be carried out later; the live file comes last, so that it tells whether the others were written.

use std::{
    io::{self, ErrorKind},
    path::PathBuf,
};

use crate::{
    live::{Fresh, Index, WritableFile},
    model::Timestamp,
};

/// The steps of a commit on files, in order; by default the list is empty.
#[derive(Default)]
pub(crate) struct Follow(Vec<(WritableFile, Step)>);

/// A step on a file.
pub(crate) enum Step {
    /// Its time says that it is as the store left it.
    Stamp,
    Append {
        attached: bool,
        bytes: Vec<u8>,
        end: u64,
    },
    Create,
    /// Another file of the agent's begins, and the agent's index names it in place of the old one.
    Begin {
        fresh: Option<Box<Fresh>>,
        index: Option<Index>,
        session: String,
        from: PathBuf,
    },
    /// A successor takes its place.
    Exchange {
        attached: bool,
        aside: WritableFile,
        fresh: Option<Box<Fresh>>,
    },
}

impl Follow {
    /// Has a step be carried out before the others.
    pub(crate) fn begin_with(&mut self, target: WritableFile, step: Step) {
        self.0.insert(0, (target, step));
    }

    /// Returns whether there are no steps.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the agent's own file of the session, if it is written.
    pub(crate) fn attached(&self) -> Option<&WritableFile> {
        self.0.iter().find_map(|(target, step)| match step {
            Step::Append { attached: true, .. }
            | Step::Exchange { attached: true, .. }
            | Step::Begin { .. } => Some(target),
            _ => None,
        })
    }

    /// Makes the successors safe before the operation is, and sees that what is appended to may be written; in a preview it only
    /// sees whether the agent's own file and its folder may be. Only the exchange tells whether a file may be set aside: one that
    /// may not is set aside by a later change. Where one fails, none is left.
    pub(crate) fn prepare(
        &mut self,
        at: Timestamp,
        is_preview: bool,
    ) -> Result<(), (PathBuf, io::Error)> {
        let prepared = self.0.iter_mut().try_for_each(|(target, step)| {
            let prepared = match step {
                Step::Exchange { attached: true, .. } | Step::Begin { .. } if is_preview => {
                    target.may_have_successor()
                }
                Step::Exchange { fresh, .. } | Step::Begin { fresh, .. } => {
                    fresh.take().map_or(Ok(()), |fresh| fresh.finish(at))
                }
                Step::Append { attached, .. } if *attached || !is_preview => target.may_append(),
                Step::Append { .. } | Step::Stamp | Step::Create => Ok(()),
            };
            prepared.map_err(|error| (target.path().to_owned(), error))
        });
        prepared.inspect_err(|_| self.abandon())
    }

    /// Deletes successors that will not be put in their places; what cannot be deleted now is later.
    pub(crate) fn abandon(&self) {
        for (target, step) in &self.0 {
            if let Step::Exchange { .. } | Step::Begin { .. } = step {
                let _later = target.sweep();
            }
        }
    }

    /// Carries the steps out and returns whether no other program wrote to the files meanwhile.
    pub(crate) fn carry_out(self, at: Timestamp) -> Result<bool, (PathBuf, io::Error)> {
        let mut is_alone = true;
        for (target, step) in self.0 {
            let done = match step {
                Step::Stamp => target.stamp(at).map(|()| true),
                Step::Append { attached: true, bytes, end } => target.append_synced(&bytes, end),
                Step::Append { bytes, end, .. } => target.append(&bytes, end, at),
                Step::Create => target.create(at).map(|()| true),
                Step::Exchange { aside, .. } => target.exchange(&aside).map(|()| true),
                Step::Begin { index, session, from, .. } => target
                    .install_new()
                    .and_then(
                        |done| if done { Ok(()) } else { Err(ErrorKind::AlreadyExists.into()) },
                    )
                    .and_then(|()| match index {
                        Some(index) => index.exchange(&session, &from, target.path()),
                        None => Ok(true),
                    }),
            };
            is_alone &= done.map_err(|error| (target.path().to_owned(), error))?;
        }
        Ok(is_alone)
    }
}

impl From<(WritableFile, Step)> for Follow {
    fn from(only: (WritableFile, Step)) -> Self {
        Self(vec![only])
    }
}
