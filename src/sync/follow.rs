//! Following: what a commit does to the live file.
//!
//! An owned file follows the store: it is written once the operation is safe. An agent's own file is written the same way,
//! but it is synced too, and a process that has its session loaded keeps it from being written at all.
//!
//! Invariant: what is written here is in the store before, so that whatever is cut short can be carried out later.

use std::{io, path::PathBuf};

use crate::{
    live::{Fresh, WritableFile},
    model::Timestamp,
};

/// What the commit does to the live file.
pub(crate) enum Follow {
    Nothing,
    /// Its time says that it is as it was left.
    Stamp {
        target: WritableFile,
    },
    Append {
        target: WritableFile,
        attached: bool,
        bytes: Vec<u8>,
        end: u64,
    },
    Create {
        target: WritableFile,
    },
    /// A successor takes its place.
    Exchange {
        target: WritableFile,
        attached: bool,
        aside: WritableFile,
        fresh: Option<Box<Fresh>>,
    },
}

impl Follow {
    /// Returns the agent's own file, if one is written.
    pub(crate) fn attached(&self) -> Option<&WritableFile> {
        match self {
            Self::Append { target, attached: true, .. }
            | Self::Exchange { target, attached: true, .. } => Some(target),
            _ => None,
        }
    }

    /// Makes safe what must be so before the operation is: the successor, so that a committed intent can always be
    /// carried out.
    pub(crate) fn prepare(&mut self, at: Timestamp) -> Result<(), (PathBuf, io::Error)> {
        match self {
            Self::Exchange { target, fresh, .. } => {
                let finished = fresh.take().map_or(Ok(()), |fresh| fresh.finish(at));
                finished.map_err(|error| (target.path().to_owned(), error))
            }
            _ => Ok(()),
        }
    }

    /// Carries it out and returns whether no other program wrote to the file meanwhile.
    pub(crate) fn carry_out(self, at: Timestamp) -> Result<bool, (PathBuf, io::Error)> {
        let (done, target) = match self {
            Self::Nothing => return Ok(true),
            Self::Stamp { target } => (target.stamp(at).map(|()| true), target),
            Self::Append { target, attached: true, bytes, end } => {
                (target.append_synced(&bytes, end), target)
            }
            Self::Append { target, bytes, end, .. } => (target.append(&bytes, end, at), target),
            Self::Create { target } => (target.create(at).map(|()| true), target),
            Self::Exchange { target, aside, .. } => {
                (target.exchange(&aside).map(|()| true), target)
            }
        };
        done.map_err(|error| (target.path().to_owned(), error))
    }
}
