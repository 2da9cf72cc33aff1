//! Following: what a commit does to the live file.
//!
//! An owned file follows the store: it is written once the operation is safe. An agent's own file is written the same way,
//! but it is synced too, and a process that has its session loaded keeps it from being written at all.
//!
//! Invariant: what is written here is in the store before, so that whatever is cut short can be carried out later.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::{
    live::{self, Fresh},
    model::Timestamp,
};

/// A session's live file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LiveFile {
    /// Its number in the session.
    pub(super) n: u64,
    /// Where it lies.
    pub(super) path: PathBuf,
    /// Whether it is the agent's own, not the store's.
    pub(super) attached: bool,
}

/// What the commit does to the live file.
pub(super) enum Follow {
    Nothing,
    /// Its time says that it is as it was left.
    Stamp {
        path: PathBuf,
    },
    Append {
        live: LiveFile,
        bytes: Vec<u8>,
        end: u64,
    },
    Create {
        path: PathBuf,
    },
    /// A successor takes its place.
    Exchange {
        live: LiveFile,
        aside: PathBuf,
        fresh: Option<Box<Fresh>>,
    },
}

impl Follow {
    /// Returns the agent's own file, if one is written.
    pub(super) fn attached(&self) -> Option<&Path> {
        match self {
            Self::Append { live, .. } | Self::Exchange { live, .. } if live.attached => {
                Some(&live.path)
            }
            _ => None,
        }
    }

    /// Makes safe what must be so before the operation is: the successor, so that a committed intent can always be
    /// carried out.
    pub(super) fn prepare(&mut self, at: Timestamp) -> Result<(), (PathBuf, io::Error)> {
        match self {
            Self::Exchange { live, fresh, .. } => {
                let finished = fresh.take().map_or(Ok(()), |fresh| fresh.finish(at));
                finished.map_err(|error| (live.path.clone(), error))
            }
            _ => Ok(()),
        }
    }

    /// Carries it out and returns whether no other program wrote to the file meanwhile.
    pub(super) fn carry_out(self, at: Timestamp) -> Result<bool, (PathBuf, io::Error)> {
        match self {
            Self::Nothing => Ok(true),
            Self::Stamp { path } => {
                live::stamp(&path, at).map(|()| true).map_err(|error| (path, error))
            }
            Self::Append { live, bytes, end } => {
                let appended = if live.attached {
                    live::append_synced(&live.path, &bytes, end)
                } else {
                    live::append(&live.path, &bytes, end, at)
                };
                appended.map_err(|error| (live.path, error))
            }
            Self::Create { path } => {
                live::create(&path, at).map(|()| true).map_err(|error| (path, error))
            }
            Self::Exchange { live, aside, .. } => live::exchange(&live.path, &aside)
                .map(|()| true)
                .map_err(|error| (live.path, error)),
        }
    }
}
