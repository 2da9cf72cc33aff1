//! Verifying: recomputes everything that a hash covers. A fault never stops it.
//!
//! ```text
//! pieces     the bytes | session 1: facts, derived rows, oddities, its live file | session 2: ...
//! reported   the faults of the bytes, then those of each session and its files
//! ```
//!
//! Threads share the pieces; the report does not depend on them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use crate::{
    archive::{Archive, Places, SyncError},
    disk, mend,
    model::{EntryNumber, OperationNumber, Origin, Running, State},
    report::{Finding, Verified},
    session::{Session, Stored, history::oddities, rows},
    store::{Fault, FaultKind, SessionKey, Store, StoreError},
    verbs::{
        OpsError,
        find::threads::in_order_by,
        upkeep::compare::{self, Files, Hashed, StoreIs},
    },
};

/// How many entries a note names.
const NAMED: usize = 8;

/// How many entries are checked together.
const BATCH: usize = 1 << 12;

/// Progress of a verification.
#[derive(Clone, Copy, Debug)]
pub enum Verifying<'f> {
    /// How many sessions are verified, and how many there are.
    Session(u64, u64),
    /// A finding.
    Found(&'f Finding),
}

impl<'f> Verifying<'f> {
    /// Returns the finding, if this is one.
    pub fn found(self) -> Option<&'f Finding> {
        match self {
            Self::Found(finding) => Some(finding),
            Self::Session(..) => None,
        }
    }
}

/// Verifies one session, or the whole store with all sessions.
pub fn verify(
    archive: &Archive,
    only: Option<&Session>,
    tell: &mut dyn FnMut(Verifying<'_>),
) -> Result<Verified, OpsError> {
    let mut telling = look(archive, only, Some(&archive.places()), tell)?;
    if only.is_none() {
        strays(archive, &mut telling)?;
    }
    Ok(telling.verified)
}

/// Verifies the store without the files of its sessions.
pub(crate) fn verify_store(
    archive: &Archive,
    tell: &mut dyn FnMut(Verifying<'_>),
) -> Result<(), OpsError> {
    look(archive, None, None, tell).map(drop)
}

/// Reports files in the store's folder that belong to no session.
fn strays(archive: &Archive, telling: &mut Telling<'_>) -> Result<(), OpsError> {
    let mut strays = mend::strays(archive);
    // Another program may have begun a session since the store was read.
    if strays.as_ref().is_ok_and(|strays| !strays.is_empty())
        && let Some(archive) = archive.reopened()?
    {
        strays = mend::strays(&archive);
    }
    let strays = match strays.map_err(OpsError::from) {
        // Damage that hides which files the sessions have was reported before.
        Err(error) if telling.verified.damaged > 0 && is_damage(&error) => Vec::new(),
        Err(OpsError::Sync(SyncError::Io { path, source })) => {
            telling.tell_of(FaultKind::Unread, &path, &compare::unread(&disk::words(&source)));
            Vec::new()
        }
        strays => strays?,
    };
    for path in strays {
        let problem = match disk::read(&path, 1) {
            Ok(bytes) if bytes.is_empty() => {
                "it is empty and does not belong to a session: delete it"
            }
            _ => "it is the file of a session that the store has lost",
        };
        telling.tell_of(FaultKind::Ahead, &path, problem);
    }
    Ok(())
}

/// Returns true if an error means damaged content rather than a failed read.
fn is_damage(error: &OpsError) -> bool {
    !matches!(
        error,
        OpsError::Store(StoreError::Io { .. } | StoreError::Full | StoreError::Busy)
            | OpsError::Sync(SyncError::Io { .. })
    )
}

/// The result of a piece of work.
enum Piece {
    Bytes(Vec<Fault>, Result<(), StoreError>),
    Session(Seen, Result<Option<Whole>, OpsError>),
}

/// The faults of a session, and how much of it was checked.
#[derive(Default)]
struct Seen {
    faults: Vec<Fault>,
    operations: u64,
    entries: u64,
    redacted: u64,
}

/// The state of a readable session, and its live file.
type Whole = (Box<State>, Option<Hashed>);

/// Reports findings and counts them.
struct Telling<'t> {
    /// The ids of the sessions.
    names: BTreeMap<SessionKey, String>,
    verified: Verified,
    /// The first error that is not damage.
    failed: Option<OpsError>,
    each: &'t mut dyn FnMut(Verifying<'_>),
}

impl Telling<'_> {
    fn tell(&mut self, fault: Fault) {
        let Fault { kind, session, item, problem } = fault;
        let session = session.and_then(|session| self.names.get(&session).cloned());
        self.verified.count(kind);
        (self.each)(Verifying::Found(&Finding { kind, session, item, problem }));
    }

    fn tell_of(&mut self, kind: FaultKind, path: &Path, problem: &str) {
        self.tell(Fault { kind, ..Fault::of(None, path.display().to_string(), problem) });
    }

    /// Reports the damage that an error describes. The first error that is not damage is stored.
    fn tell_error(&mut self, error: OpsError, fault: Fault) {
        if is_damage(&error) {
            self.tell(Fault { problem: chain(&error), ..fault });
        } else {
            self.failed.get_or_insert(error);
        }
    }
}

/// Opens another reader that does not compare lines with their entries, because the piece for the bytes does.
fn reader(store: &dyn Store) -> Option<Box<dyn Store>> {
    let mut reader = store.reader()?;
    reader.leave_to_check();
    Some(reader)
}

/// Verifies a session, and its files if their places are known.
fn look_at_session(store: &dyn Store, session: &Session, places: Option<&Places>) -> Piece {
    let mut check = Check { store, session, seen: Seen::default() };
    let checked = check.session().map(|state| {
        let state = state?;
        let hashed = places.and_then(|places| Hashed::of(store, session, &state, places));
        Some((Box::new(state), hashed))
    });
    Piece::Session(check.seen, checked)
}

fn look<'t>(
    archive: &Archive,
    only: Option<&Session>,
    places: Option<&Places>,
    each: &'t mut dyn FnMut(Verifying<'_>),
) -> Result<Telling<'t>, OpsError> {
    let (sessions, mut unread) =
        match only.map_or_else(|| archive.every(), |one| Ok(vec![one.clone()])) {
            Ok(sessions) => (sessions, None),
            Err(error) => (Vec::new(), Some(OpsError::from(error))),
        };
    // If the names cannot be read, neither can the sessions, which is reported.
    let names = match only {
        Some(session) => vec![(session.key, session.name.clone())],
        None => archive.store().names().unwrap_or_default(),
    };
    let names = names.into_iter().map(|(key, name)| (key, name.id)).collect();
    let mut telling = Telling { names, verified: Verified::sound(), failed: None, each };
    (telling.each)(Verifying::Session(0, sessions.len() as u64));
    // The first piece is the bytes; every other one is a session.
    let work = |store: &dyn Store, n: usize| {
        if let Some(session) = n.checked_sub(1).and_then(|n| sessions.get(n)) {
            return look_at_session(store, session, places);
        }
        let (mut faults, only) = (Vec::new(), only.map(|session| session.key));
        let checked = store.check(only, &mut |fault| faults.push(fault));
        Piece::Bytes(faults, checked)
    };
    let (mut has_forgotten, mut is_sound) = (false, true);
    let (mut told, mut numbers) = (sessions.iter(), 0..);
    // If the bytes are damaged, the session is read again with checks: the threads skipped them.
    let again = |piece: Piece, n: usize, is_sound: bool| {
        if is_sound { piece } else { work(archive.store(), n) }
    };
    let mut take_in = |piece| match again(piece, numbers.next().unwrap_or(0), is_sound) {
        Piece::Bytes(faults, checked) => {
            is_sound = faults.is_empty() && checked.is_ok();
            has_forgotten = faults.iter().any(|fault| fault.kind == FaultKind::Forgotten);
            for fault in faults {
                telling.tell(fault);
            }
            if let Err(error) = checked {
                telling.tell_error(error.into(), Fault::of_store(""));
            }
            if let Some(error) = unread.take() {
                let sessions = Fault::of(None, "the list of sessions", "");
                telling.tell_error(error, Fault { kind: FaultKind::Store, ..sessions });
            }
        }
        Piece::Session(mut seen, checked) => {
            let Some(session) = told.next() else { return };
            let verified = &mut telling.verified;
            verified.sessions += 1;
            verified.operations += seen.operations;
            verified.entries += seen.entries;
            verified.redacted += seen.redacted;
            let has_damage = seen.faults.iter().any(|fault| fault.kind.is_damage());
            let is_damaged = archive.torn().is_some() || has_damage;
            let checked = checked.and_then(|whole| {
                let Some((state, hashed)) = whole.filter(|_| places.is_some()) else {
                    return Ok(());
                };
                let store = StoreIs { has_forgotten, is_damaged };
                let mut files = Files::new(archive, session, store);
                let compared = files.compare(&state, hashed);
                seen.faults.append(&mut files.faults);
                compared
            });
            for fault in seen.faults {
                telling.tell(fault);
            }
            if let Err(error) = checked {
                let whole = Fault::of(Some(session.key), "session", "");
                telling.tell_error(error, Fault { kind: FaultKind::Session, ..whole });
            }
            let done = telling.verified.sessions;
            (telling.each)(Verifying::Session(done, sessions.len() as u64));
        }
    };
    let pieces = 1 + sessions.len();
    in_order_by(&|| reader(archive.store()), archive.store(), pieces, &work, &mut take_in);
    if archive.store().is_stale().unwrap_or(false) {
        let problem = "they are from an older version of undertext; the next change rebuilds them";
        let stale = Fault::of(None, "derived rows", problem);
        telling.tell(Fault { kind: FaultKind::Note, ..stale });
    }
    match telling.failed.take() {
        Some(error) => Err(error),
        None => Ok(telling),
    }
}

/// Returns an error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Checks one session.
struct Check<'a> {
    store: &'a dyn Store,
    session: &'a Session,
    seen: Seen,
}

impl Check<'_> {
    fn find(&mut self, kind: FaultKind, item: &str, problem: &str) {
        let fault = Fault::of(Some(self.session.key), item, problem);
        self.seen.faults.push(Fault { kind, ..fault });
    }

    fn damage(&mut self, item: &str, problem: &str) {
        self.find(FaultKind::Thing, item, problem);
    }

    /// Checks everything that the store has of the session. Returns the state according to the facts, if it can be read.
    fn session(&mut self) -> Result<Option<State>, OpsError> {
        // Not the state according to the derived rows, which are checked below.
        let state = self.operations()?;
        self.seen.entries = state.entries();
        let redacted: BTreeSet<EntryNumber> =
            state.tombstones.iter().map(|one| one.entry).collect();
        self.seen.redacted = redacted.len() as u64;
        self.generations(&state)?;
        // Oddities can be found only in what can be read.
        if !self.derived()? {
            return Ok(None);
        }
        self.oddities()?;
        Ok(Some(state))
    }

    /// Notes each kind of oddity once.
    fn oddities(&mut self) -> Result<(), OpsError> {
        let store = self.store;
        for (what, entries) in oddities::oddities(&Stored::of(store, self.session)?)? {
            let mut named = Vec::new();
            for n in entries.iter().take(NAMED) {
                let entry = store.entries(self.session.key, n.alone())?.pop();
                named.extend(entry.map(|entry| format!("{:.8}", entry.id)));
            }
            let more = match entries.len().saturating_sub(named.len()) {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            let noun = if entries.len() == 1 { "entry" } else { "entries" };
            self.find(FaultKind::Oddity, &format!("{noun} {}{more}", named.join(", ")), what);
        }
        Ok(())
    }

    /// Recomputes the chain of operations and the facts that their records cover, and returns the resulting state.
    fn operations(&mut self) -> Result<State, OpsError> {
        let (store, session, key) = (self.store, self.session, self.session.key);
        let own = store.id()?;
        let mut first = EntryNumber::FIRST;
        // Operations whose runs lost unfinished lines to a redaction are known only at the end.
        let mut unnamed = Vec::new();
        let mut origins: BTreeMap<OperationNumber, Vec<Origin>> = BTreeMap::new();
        for (n, origin) in store.origins(key, EntryNumber::ALL)? {
            origins.entry(n).or_default().push(origin);
        }
        let state = rows::fold(store, session, &mut |before, operation, bulk| {
            let n = operation.n;
            let item = format!("operation {n}");
            if n != before.next_operation() || operation.first != first {
                self.damage(&item, "it does not follow the one before it");
            }
            let last = before.newest.map(|newest| newest.hash);
            if operation.hash_after(last, own, &session.name) != operation.hash {
                self.damage(&item, "its record does not match its hash");
            }
            bulk.entries = store.entries(key, operation.added())?;
            bulk.origins = origins.remove(&n).unwrap_or_default();
            if !operation.names(bulk, None) {
                unnamed.push((operation.clone(), bulk.clone()));
            }
            first = operation.added().end;
            self.seen.operations += 1;
            Ok(())
        })?;
        for (operation, bulk) in unnamed {
            let mut covered =
                state.covered_runs.iter().filter(|runs| runs.operation == operation.n);
            if !covered.any(|runs| operation.names(&bulk, Some(runs.digest))) {
                let item = format!("operation {}", operation.n);
                self.damage(&item, "its facts do not match its record");
            }
        }
        for n in origins.into_keys() {
            self.damage(
                &format!("operation {n}"),
                "it is missing, although some of its facts exist",
            );
        }
        Ok(state)
    }

    /// Recomputes the running hash of every generation.
    fn generations(&mut self, state: &State) -> Result<(), OpsError> {
        let (store, key) = (self.store, self.session.key);
        for generation in state.next_generation().earlier() {
            let item = format!("generation {generation}");
            let (mut running, mut place) = (Running::EMPTY, 0);
            for run in store.runs(key, generation, 0)? {
                if run.start != place {
                    self.damage(&item, "a run does not follow the one before it");
                }
                let mut separators = run.gaps.iter(run.start, run.count);
                let mut placed = 0;
                for range in EntryNumber::batches(run.entries(), BATCH) {
                    let (first, end) = (range.start, range.end);
                    let entries = store.entries(key, range)?;
                    // Nothing after a missing entry can be placed.
                    let there = first.onwards().zip(&entries).take_while(|(n, e)| e.n == *n);
                    for ((_, entry), separator) in there.zip(separators.by_ref()) {
                        running = running.then(separator, entry.id);
                        placed += 1;
                    }
                    if run.first.plus(placed) < end {
                        break;
                    }
                }
                place = run.end();
                if placed != run.count || running != run.running {
                    let problem = format!(
                        "its running hash does not match the recorded one at entry {place}"
                    );
                    self.damage(&item, &problem);
                    running = run.running;
                }
            }
        }
        Ok(())
    }

    /// Compares the derived rows with those computed from the facts. Returns true if the session can be read with them.
    fn derived(&mut self) -> Result<bool, OpsError> {
        let are_right = rows::are_right(self.store, self.session)?;
        // Rows from an older version follow the rules of that version.
        if are_right != Some(true) && (are_right.is_none() || !self.store.is_stale()?) {
            self.find(FaultKind::Derived, "derived rows", "they do not match the facts");
        }
        Ok(are_right.is_some())
    }
}
