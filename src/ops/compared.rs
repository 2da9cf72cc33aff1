//! The files of a session as they are verified: its live file and those that were set aside, each compared with what the
//! store left there.
//!
//! Invariant: nothing is written, and what is found of one file keeps no other from being looked at.

use std::{
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use crate::{
    disk::{self, Links},
    live,
    model::{Running, State},
    ops::OpsError,
    report::{Finding, RotatedState, Severity, Verified},
    session::Session,
    store::{FaultKind, Store},
    sync::{
        Archive, Places, SyncError, attached,
        gone::is_gone,
        live_file::{self, LiveFile, live_file},
        rotations::{self, Linked},
    },
    wire::jsonl::ReadError,
};

/// What differs of a file where the store itself is damaged.
const BLAMELESS: &str =
    "it differs from the store's copy, but that copy is damaged: the file itself may be intact";

/// What is found of a session, and how much of it was looked at.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) findings: Vec<Finding>,
    pub(super) verified: Verified,
}

impl Seen {
    pub(super) fn find(
        &mut self,
        session: &Session,
        severity: Severity,
        item: &str,
        problem: &str,
    ) {
        let session = Some(session.name.id.clone());
        self.findings.push(Finding { session, ..of_store(severity, item, problem) });
    }

    pub(super) fn damage(&mut self, session: &Session, item: &str, problem: &str) {
        self.find(session, Severity::Damage, item, problem);
    }

    pub(super) fn has_damage(&self) -> bool {
        self.findings.iter().any(|found| found.severity == Severity::Damage)
    }

    /// Adds how much was looked at to what was before.
    pub(super) fn sum_up(&self, verified: &mut Verified) {
        let Verified { operations, entries, outdated, files, unread, redacted, lost, .. } =
            self.verified;
        verified.operations += operations;
        verified.entries += entries;
        verified.outdated += outdated;
        verified.files += files;
        verified.unread += unread;
        verified.redacted += redacted;
        verified.lost += lost;
    }

    /// Finds that the session cannot be read.
    pub(super) fn unreadable(&mut self, session: &Session, why: &str) {
        self.damage(session, "session", why);
        self.findings.last_mut().into_iter().for_each(|found| found.kind = FaultKind::Session);
    }

    /// Adds what was found later.
    pub(super) fn add(&mut self, other: Self) {
        other.sum_up(&mut self.verified);
        self.findings.extend(other.findings);
    }
}

/// Returns what was found of a store as a whole.
pub(super) fn of_store(severity: Severity, item: &str, problem: &str) -> Finding {
    let (item, problem) = (item.to_owned(), problem.to_owned());
    Finding { severity, kind: FaultKind::Thing, session: None, item, problem }
}

/// How often a session is looked at again while other programs go on with it.
const LOOKS: u32 = 20;
/// How long a change may take from its commit to the live file.
const PAUSE: Duration = Duration::from_millis(20);
/// How many milliseconds after its newest change the files of a session may still be written.
const RECENT: u64 = 10_000;

/// What is known of the store by which files are compared.
#[derive(Clone, Copy)]
pub(super) struct StoreIs {
    /// Whether it has lost changes.
    pub(super) has_forgotten: bool,
    /// Whether the session is damaged in it.
    pub(super) is_damaged: bool,
}

/// The files of a session while they are compared.
pub(super) struct Files<'a> {
    archive: &'a Archive,
    session: &'a Session,
    pub(super) seen: Seen,
    /// Whether a difference was found that another program may be about to end.
    is_unsettled: bool,
}

impl<'a> Files<'a> {
    pub(super) fn new(archive: &'a Archive, session: &'a Session) -> Self {
        Self { archive, session, seen: Seen::default(), is_unsettled: false }
    }

    fn find(&mut self, severity: Severity, kind: FaultKind, item: &str, problem: &str) {
        self.seen.find(self.session, severity, item, problem);
        self.seen.findings.last_mut().into_iter().for_each(|found| found.kind = kind);
        self.is_unsettled = true;
    }

    /// Notes what no other program is about to change.
    fn note_settled(&mut self, item: &str, problem: &str) {
        let before = self.is_unsettled;
        self.note(item, problem);
        self.is_unsettled = before;
    }

    fn note(&mut self, item: &str, problem: &str) {
        self.find(Severity::Note, FaultKind::File, item, problem);
    }

    fn damage(&mut self, item: &str, problem: &str) {
        self.find(Severity::Damage, FaultKind::File, item, problem);
    }

    /// Tells that somebody changed a file.
    fn changed(&mut self, item: &str, problem: &str) {
        self.damage(item, problem);
        self.seen.verified.files += 1;
    }

    /// Tells that a file cannot be read: it may be whole, and nobody knows.
    fn unread(&mut self, item: &str, why: &str) {
        self.find(Severity::Note, FaultKind::Unread, item, &unread(why));
        self.seen.verified.unread += 1;
    }

    /// Compares the live file and those that were set aside. The files are read after the store, so that other programs may have
    /// gone on meanwhile: a difference is reported only if it stays while the session does not change.
    pub(super) fn compare(
        &mut self,
        tip: &State,
        hashed: Option<Hashed>,
        store: StoreIs,
    ) -> Result<(), OpsError> {
        self.compare_once(tip, hashed, store)?;
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
            let mut again = Files::new(&archive, self.session);
            again.compare_once(&tip, None, store)?;
            (self.seen, self.is_unsettled) = (again.seen, again.is_unsettled && !is_same);
        }
        self.seen = Seen::default();
        self.note("its files", "another program is writing the session, so they were not compared");
        Ok(())
    }

    fn compare_once(
        &mut self,
        tip: &State,
        hashed: Option<Hashed>,
        StoreIs { has_forgotten, is_damaged }: StoreIs,
    ) -> Result<(), OpsError> {
        for rotated in rotations::rotations(self.archive, self.session)? {
            let item = rotated.path.display().to_string();
            match rotated.state {
                RotatedState::Whole => {}
                RotatedState::Changed if is_damaged => self.note(&item, BLAMELESS),
                RotatedState::Changed => {
                    self.changed(
                        &item,
                        "it was set aside and has been changed since; the store has its old content",
                    );
                }
                RotatedState::Deleted => {
                    self.note_settled(&item, "it was set aside and has been deleted since");
                }
                RotatedState::Grown => {
                    self.note_settled(
                        &item,
                        "it was set aside and has grown since; the next change imports the rest",
                    );
                }
                RotatedState::Pending => {
                    self.note(&item, "it has yet to be set aside; the next change does that");
                }
                RotatedState::Unread => {
                    self.unread(&item, rotated.why.as_deref().unwrap_or_default());
                }
            }
        }
        let live = live_file(self.archive, tip);
        let Some(LiveFile { path, attached, .. }) = live else { return Ok(()) };
        let item = path.display().to_string();
        let seen = match live::look(&path) {
            Ok(seen) => seen,
            Err(error) => {
                self.unread(&item, &disk::words(&error));
                return Ok(());
            }
        };
        let is_longer = seen.is_some_and(|seen| seen.length != live_file::expected(tip));
        if has_forgotten && is_longer {
            self.damage(&item, "it has records that the store has lost");
            return Ok(());
        }
        if !attached && seen.is_some_and(|seen| live_file::is_ahead(&seen, tip)) {
            self.damage(&item, "it was written by a change that the store has lost");
            return Ok(());
        }
        if is_gone(&path) {
            if attached {
                let what = "the agent's file was deleted; the next change continues without it";
                self.note_settled(&item, what);
            } else {
                self.note(&item, "the session's file is missing; the next change writes it again");
            }
            return Ok(());
        }
        let (running, tail) = tip
            .growth()
            .map_or((Running::EMPTY, Vec::new()), |run| (run.running, run.tail.clone()));
        let expected = (running, tail);
        let hashed = hashed.filter(|hashed| hashed.path == path && hashed.found == expected);
        let found = match hashed {
            Some(hashed) => Ok(hashed.found),
            None => match hash(self.archive.store(), self.session, tip, &path) {
                Ok(found) => Ok(found),
                // No change takes such a line in: what the store left comes before it.
                Err(SyncError::Read(error @ ReadError::TooLong { .. })) if is_longer => {
                    self.note(&item, &error.to_string());
                    return Ok(());
                }
                Err(error) => Err(rotations::unread(error)?),
            },
        };
        if let Err(why) = &found {
            self.unread(&item, why);
        }
        if found.is_ok_and(|found| found != expected) {
            let behind = live_file::is_behind(self.archive, tip)?;
            let is_pending =
                attached && attached::is_pending(self.archive, self.session, tip, &path)?;
            if is_damaged {
                self.note(&item, BLAMELESS);
            } else if is_pending {
                self.note(
                    &item,
                    "it does not have the store's newest change yet; the next change writes it",
                );
            } else if behind || attached {
                self.note(
                    &item,
                    "another program changed the session's file; the next change imports the new version",
                );
            } else {
                self.changed(
                    &item,
                    "the session's file was changed, although its length and time are the same",
                );
            }
        }
        Ok(())
    }
}

/// The running hash and the tail of a live file.
pub(super) struct Hashed {
    path: PathBuf,
    found: (Running, Vec<u8>),
}

impl Hashed {
    /// Hashes the live file of a session; nothing if it has none, or if it cannot be read.
    pub(super) fn of(
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

/// Hashes a live file.
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

/// Returns in words that something cannot be read.
pub(super) fn unread(why: &str) -> String {
    format!("it cannot be read, and was not compared: {why}")
}
