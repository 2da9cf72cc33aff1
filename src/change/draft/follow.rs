//! The steps of a commit on files.
//!
//! The store's own file is written once the operation is safe in the store. An agent's file is written in the same way, but it is
//! also synced, and it is not written while a process has its session open. The session's folder is added to its agent's list of
//! folders before the session's file is written.
//!
//! Invariant: bytes written here are already in the store or safe under a temporary name, so an interrupted step can be finished
//! later. The live file is written last, so its state shows whether the other files were written.

use std::{
    io::{self, ErrorKind},
    path::PathBuf,
};

use crate::{
    live::{Fresh, Index, WritableFile},
    model::Timestamp,
};

/// The steps of a commit on files, in order.
#[derive(Default)]
pub(crate) struct Follow(Vec<(WritableFile, Step)>);

/// A step on a file.
pub(crate) enum Step {
    /// Sets the time that marks the file as the store left it.
    Stamp,
    Append {
        attached: bool,
        bytes: Vec<u8>,
        end: u64,
    },
    Create,
    /// Begins another file of the agent, which the agent's index then names instead of the old one.
    Begin {
        fresh: Option<Box<Fresh>>,
        index: Option<Index>,
        session: String,
        from: PathBuf,
    },
    /// Exchanges the file for a successor.
    Exchange {
        attached: bool,
        aside: WritableFile,
        fresh: Option<Box<Fresh>>,
    },
}

impl Follow {
    /// Inserts a step before the others.
    pub(crate) fn begin_with(&mut self, target: WritableFile, step: Step) {
        self.0.insert(0, (target, step));
    }

    /// Returns true if there are no steps.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the agent's own file of the session, if a step writes it.
    pub(crate) fn attached(&self) -> Option<&WritableFile> {
        self.0.iter().find_map(|(target, step)| match step {
            Step::Append { attached: true, .. }
            | Step::Exchange { attached: true, .. }
            | Step::Begin { .. } => Some(target),
            _ => None,
        })
    }

    /// Returns the path to which the session's file is set aside, if a step exchanges it.
    pub(crate) fn rotated(&self) -> Option<PathBuf> {
        self.0.iter().find_map(|(_, step)| match step {
            Step::Exchange { aside, .. } => Some(aside.path().to_owned()),
            _ => None,
        })
    }

    /// Makes successors durable and checks that files to append to may be written. In a preview, only checks whether the agent's
    /// own file and its folder may be written. Whether a file can be set aside shows only at the exchange; if it cannot, a later
    /// change does it. If any step fails, no successor remains.
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

    /// Deletes successors that will not be used. One that cannot be deleted now is deleted later.
    pub(crate) fn abandon(&self) {
        for (target, step) in &self.0 {
            if let Step::Exchange { .. } | Step::Begin { .. } = step {
                let _later = target.sweep();
            }
        }
    }

    /// Carries out the steps. Returns true if no other program wrote to the files meanwhile.
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
