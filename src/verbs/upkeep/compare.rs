//! Verifies the files of a session: compares its live file, and those that were set aside, with what the store wrote there.
//!
//! Invariant: nothing is written, and a problem with one file never prevents the check of another.

use std::{
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use crate::{
    archive::{Archive, Places, SyncError},
    change::reconcile::agent_file,
    disk::{self, Links},
    files::{
        deletion::is_gone,
        live_file::{self, LiveFile, live_file},
        rotations::{self, Linked},
    },
    live,
    model::{Running, State},
    report::RotatedState,
    session::Session,
    store::{Fault, FaultKind, Store},
    verbs::OpsError,
    wire::jsonl::ReadError,
};

/// The problem of a file that differs from a damaged store.
const BLAMELESS: &str =
    "it differs from the store's copy, but that copy is damaged: the file itself may be intact";

/// How often a session is compared again while other programs change it.
const LOOKS: u32 = 20;
/// How long to wait for a change between its commit and its write to the live file.
const PAUSE: Duration = Duration::from_millis(20);
/// The files of a session may still be written for this many milliseconds after its newest change.
const RECENT: u64 = 10_000;

/// What is known of the store that files are compared with.
#[derive(Clone, Copy)]
pub(crate) struct StoreIs {
    /// Whether it has lost changes.
    pub(crate) has_forgotten: bool,
    /// Whether it is damaged in this session.
    pub(crate) is_damaged: bool,
}

/// The files of a session while they are compared.
pub(crate) struct Files<'a> {
    archive: &'a Archive,
    session: &'a Session,
    store: StoreIs,
    pub(crate) faults: Vec<Fault>,
    /// Whether a difference was found that another program may be about to resolve.
    is_unsettled: bool,
}

/// What is wrong with a file.
type Problem = (FaultKind, String);

impl<'a> Files<'a> {
    pub(crate) fn new(archive: &'a Archive, session: &'a Session, store: StoreIs) -> Self {
        Self { archive, session, store, faults: Vec::new(), is_unsettled: false }
    }

    fn find(&mut self, path: &Path, problem: Problem) {
        let (kind, problem) = problem;
        let fault = Fault::of(Some(self.session.key), path.display().to_string(), problem);
        self.faults.push(Fault { kind, ..fault });
    }

    /// Compares the live file and those that were set aside. Files are read after the store, so other programs may have changed
    /// them meanwhile: a difference is reported only if it remains while the session does not change.
    pub(crate) fn compare(&mut self, tip: &State, hashed: Option<Hashed>) -> Result<(), OpsError> {
        self.compare_once(tip, hashed)?;
        let (mut newest, mut at) = (tip.newest, tip.at());
        for _ in 0..LOOKS {
            if !self.is_unsettled {
                return Ok(());
            }
            let is_recent = self.archive.now().0.abs_diff(at.0) < RECENT;
            if is_recent {
                thread::sleep(PAUSE);
            }
            let Some(archive) = self.archive.reopened()? else { return Ok(()) };
            let tip = archive.store().state(self.session.key)?;
            let is_same = tip.newest == newest;
            if is_same && !is_recent {
                return Ok(());
            }
            (newest, at) = (tip.newest, tip.at());
            let mut again = Files::new(&archive, self.session, self.store);
            again.compare_once(&tip, None)?;
            (self.faults, self.is_unsettled) = (again.faults, again.is_unsettled && !is_same);
        }
        self.faults.clear();
        let problem = "another program is writing the session, so they were not compared";
        self.find(Path::new("its files"), note(problem));
        Ok(())
    }

    fn compare_once(&mut self, tip: &State, hashed: Option<Hashed>) -> Result<(), OpsError> {
        for rotated in rotations::rotations(&self.archive.at(self.session)?)? {
            let problem = match rotated.state {
                RotatedState::Whole => continue,
                RotatedState::Changed if self.store.is_damaged => note(BLAMELESS),
                RotatedState::Changed => {
                    let what = "it was set aside and has been changed since; the store has its old content";
                    (FaultKind::File, what.to_owned())
                }
                RotatedState::Deleted => note("it was set aside and has been deleted since"),
                RotatedState::Grown => {
                    note("it was set aside and has grown since; the next change imports the rest")
                }
                RotatedState::Pending => {
                    note("it has yet to be set aside; the next change does that")
                }
                RotatedState::Unread => {
                    (FaultKind::Unread, unread(rotated.why.as_deref().unwrap_or_default()))
                }
            };
            self.is_unsettled |=
                !matches!(rotated.state, RotatedState::Deleted | RotatedState::Grown);
            self.find(&rotated.path, problem);
        }
        let Some(live) = live_file(self.archive, tip) else { return Ok(()) };
        let is_deleted = live.attached && is_gone(&live.path);
        let problem = if is_deleted {
            Some(note("the agent's file was deleted; the next change continues without it"))
        } else {
            self.live_problem(tip, &live, hashed)?
        };
        if let Some(problem) = problem {
            self.is_unsettled |= !is_deleted;
            self.find(&live.path, problem);
        }
        Ok(())
    }

    /// Returns what is wrong with the live file.
    fn live_problem(
        &self,
        tip: &State,
        live: &LiveFile,
        hashed: Option<Hashed>,
    ) -> Result<Option<Problem>, OpsError> {
        let LiveFile { path, attached, .. } = live;
        let cannot_be_read = |why: &str| Ok(Some((FaultKind::Unread, unread(why))));
        let seen = match live::look(path) {
            Ok(seen) => seen,
            Err(error) => return cannot_be_read(&disk::words(&error)),
        };
        let is_longer = seen.is_some_and(|seen| seen.length != live_file::expected(tip));
        if self.store.has_forgotten && is_longer {
            let what = "it has records that the store has lost";
            return Ok(Some((FaultKind::Ahead, what.to_owned())));
        }
        if !attached && seen.is_some_and(|seen| live_file::is_ahead(&seen, tip)) {
            let what = "it was written by a change that the store has lost";
            return Ok(Some((FaultKind::Ahead, what.to_owned())));
        }
        if is_gone(path) {
            let what = "the session's file is missing; the next change writes it again";
            return Ok(Some(note(what)));
        }
        let expected = tip
            .growth()
            .map_or((Running::EMPTY, Vec::new()), |run| (run.running, run.tail.clone()));
        if hashed.is_some_and(|hashed| hashed.path == *path && hashed.found == expected) {
            return Ok(None);
        }
        match hash(self.archive.store(), self.session, tip, path) {
            Ok(found) if found == expected => return Ok(None),
            Ok(_) => {}
            // No change imports such a line, and it is after everything that the store wrote.
            Err(SyncError::Read(error @ ReadError::TooLong { .. })) if is_longer => {
                return Ok(Some(note(&error.to_string())));
            }
            Err(error) => return cannot_be_read(&rotations::unread(error)?),
        }
        let behind = live_file::is_behind(self.archive, tip)?;
        let is_pending =
            *attached && agent_file::is_pending(&self.archive.at(self.session)?, path)?;
        Ok(Some(if self.store.is_damaged {
            note(BLAMELESS)
        } else if is_pending {
            note("it does not have the store's newest change yet; the next change writes it")
        } else if behind || *attached {
            note(
                "another program changed the session's file; the next change imports the new version",
            )
        } else {
            let what = "the session's file was changed, although its length and time are the same";
            (FaultKind::File, what.to_owned())
        }))
    }
}

/// Returns a note: something to know about a file that is not a fault.
fn note(what: &str) -> Problem {
    (FaultKind::Note, what.to_owned())
}

/// The running hash and the tail of a live file.
pub(crate) struct Hashed {
    path: PathBuf,
    found: (Running, Vec<u8>),
}

impl Hashed {
    /// Hashes the live file of a session. Returns nothing if it has none or it cannot be read.
    pub(crate) fn of(
        store: &dyn Store,
        session: &Session,
        tip: &State,
        places: &Places,
    ) -> Option<Self> {
        let path = places.live_file(tip)?.path;
        let found = hash(store, session, tip, &path).ok()?;
        Some(Self { path, found })
    }
}

fn hash(
    store: &dyn Store,
    session: &Session,
    tip: &State,
    path: &Path,
) -> Result<(Running, Vec<u8>), SyncError> {
    let file = disk::open(path, Links::Refuse).map_err(SyncError::at(path))?;
    let runs = store.runs(session.key, tip.generation(), 0)?;
    let mut links = Linked::of(store, session.key, &runs);
    rotations::running_hash(file, &tip.coverings(), &mut links)
}

/// Returns the message for a file that cannot be read.
pub(crate) fn unread(why: &str) -> String {
    format!("it cannot be read, and was not compared: {why}")
}
