//! The files of a session as they are verified: its live file and those that were set aside, each compared with what the
//! store left there.
//!
//! Invariant: nothing is written, and what is found of one file keeps no other from being looked at.

use std::fs::File;

use crate::{
    disk::{self, Links, Refusal},
    live,
    model::{Running, State},
    ops::{OpsError, followed::Hashed},
    report::{RotatedState, Severity},
    session::Session,
    sync::{
        Archive, SyncError,
        live_file::{self, LiveFile, live_file},
        rotations::{self, Linked},
    },
};

/// What is found of a file.
pub(super) struct Found {
    pub(super) severity: Severity,
    pub(super) item: String,
    pub(super) problem: String,
    /// Whether it is damage of the file alone: the store holds what the file was.
    pub(super) is_of_file: bool,
}

/// The files of a session while they are compared.
pub(super) struct Files<'a> {
    archive: &'a Archive,
    session: &'a Session,
    pub(super) found: Vec<Found>,
}

impl<'a> Files<'a> {
    pub(super) fn new(archive: &'a Archive, session: &'a Session) -> Self {
        Self { archive, session, found: Vec::new() }
    }

    fn find(&mut self, severity: Severity, item: &str, problem: &str) {
        let (item, problem) = (item.to_owned(), problem.to_owned());
        self.found.push(Found { severity, item, problem, is_of_file: false });
    }

    fn note(&mut self, item: &str, problem: &str) {
        self.find(Severity::Note, item, problem);
    }

    fn damage(&mut self, item: &str, problem: &str) {
        self.find(Severity::Damage, item, problem);
    }

    /// Tells that somebody changed a file.
    fn changed(&mut self, item: &str, problem: &str) {
        self.damage(item, problem);
        self.found.last_mut().into_iter().for_each(|found| found.is_of_file = true);
    }

    /// Compares the live file and those that were set aside.
    pub(super) fn compare(
        &mut self,
        tip: &State,
        hashed: Option<Hashed>,
        has_forgotten: bool,
    ) -> Result<(), OpsError> {
        for rotated in rotations::rotations(self.archive, self.session)? {
            let item = rotated.path.display().to_string();
            match rotated.state {
                RotatedState::Whole => {}
                RotatedState::Changed => {
                    self.changed(
                        &item,
                        "it was set aside and has been changed since; the store holds what it was",
                    );
                }
                RotatedState::Deleted => {
                    self.note(&item, "it was set aside and has been deleted since");
                }
                RotatedState::Grown => {
                    self.note(
                        &item,
                        "it was set aside and has grown since; the next change takes that in",
                    );
                }
                RotatedState::Pending => {
                    self.note(&item, "it is still to be set aside; the next change does it");
                }
            }
        }
        let live = live_file(self.archive, tip);
        let Some(LiveFile { path, attached, .. }) = live else { return Ok(()) };
        let item = path.display().to_string();
        let io = |source| SyncError::Io { path: path.clone(), source };
        let seen = live::look(&path).map_err(io)?;
        let is_longer = seen.is_some_and(|seen| seen.length != live_file::expected(tip));
        if has_forgotten && is_longer {
            self.damage(&item, "it is ahead of the store, which has forgotten what it held");
            return Ok(());
        }
        if !attached && seen.is_some_and(|seen| live_file::is_ahead(&seen, tip)) {
            self.damage(&item, "it was stamped by a later change than the store holds: the store has forgotten that change");
            return Ok(());
        }
        if seen.is_none() {
            let what = if attached {
                "the agent's file is gone; the next change goes on without it"
            } else {
                "the live file is missing; the next change writes it again"
            };
            self.note(&item, what);
            return Ok(());
        }
        let (running, tail) = tip
            .growth()
            .map_or((Running::EMPTY, Vec::new()), |run| (run.running, run.tail.clone()));
        let covered = tip.coverings();
        // The derived rows, by which it was read, may be wrong.
        let hashed = hashed.filter(|hashed| hashed.path == path && hashed.covered == covered);
        let found = match hashed.filter(|hashed| hashed.found == (running, tail.clone())) {
            Some(hashed) => Ok(hashed.found),
            None => match disk::open(&path, Links::Refuse) {
                Err(error) if Refusal::of(&error).is_some() => Err(error.to_string()),
                opened => match self.hash(opened.map_err(io)?, tip) {
                    Err(SyncError::Read(error)) if is_longer => Err(error.to_string()),
                    found => Ok(found?),
                },
            },
        };
        if let Err(why) = &found {
            self.note(&item, why);
        }
        if found.is_ok_and(|found| found != (running, tail)) {
            let behind = live_file::is_behind(self.archive, tip)?;
            if behind || attached {
                self.note(
                    &item,
                    "another program changed the live file; the next change takes it in",
                );
            } else {
                self.changed(
                    &item,
                    "the live file was changed, though its length and time are the same",
                );
            }
        }
        Ok(())
    }
    /// Hashes the live file.
    fn hash(&self, file: File, tip: &State) -> Result<(Running, Vec<u8>), SyncError> {
        let store = self.archive.store();
        let runs = store.runs(self.session.key, tip.generation(), 0)?;
        let mut links = Linked::of(store, self.session.key, &runs);
        rotations::running_hash(file, &tip.coverings(), &mut links)
    }
}
