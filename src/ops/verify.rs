//! Verifying: everything that a hash vouches for is computed again; nothing stops at the first fault.
//!
//! ```text
//! pieces     the bytes | session 1: facts, derived rows, oddities, its live file | session 2: ...
//! reported   the faults of the bytes, then those of each session and its files
//! ```
//!
//! Threads share the pieces, and what is told does not show it.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    disk,
    model::{DATABASE, Digest, EntryNumber, OperationNumber, Origin, Running, SessionName, State},
    ops::{
        OpsError,
        compared::{self, Files, Hashed, Seen, StoreIs},
        several::in_order_by,
    },
    report::{Finding, Severity, Verified},
    session::{Session, oddities, rows},
    store::{Fault, FaultKind, SessionKey, Store, StoreError, whole_lines},
    sync::{self, Archive, Places, SyncError},
};

/// How many entries a note names.
const NAMED: usize = 8;

/// How many entries are looked at together.
const BATCH: usize = 1 << 12;
/// How many lines are.
const LINES: usize = 1024;

/// What a verification tells as it goes on.
#[derive(Clone, Copy, Debug)]
pub enum Verifying<'f> {
    /// How many sessions are verified, and how many there are.
    Session(u64, u64),
    /// What it found.
    Found(&'f Finding),
}

impl<'f> Verifying<'f> {
    /// Returns what it found, if it tells of that.
    pub fn found(self) -> Option<&'f Finding> {
        match self {
            Self::Found(finding) => Some(finding),
            Self::Session(..) => None,
        }
    }
}

/// Verifies one session, or all of them and the whole store.
pub fn verify(
    archive: &Archive,
    only: Option<&Session>,
    tell: &mut dyn FnMut(Verifying<'_>),
) -> Result<Verified, OpsError> {
    let (mut verified, failed) = look(archive, only, tell, true);
    if let Some(error) = failed {
        return Err(error);
    }
    if only.is_none() {
        let mut strays = sync::strays(archive);
        // Another program may have begun a session since the store was read.
        if strays.as_ref().is_ok_and(|strays| !strays.is_empty())
            && let Some(archive) = archive.reopened()?
        {
            strays = sync::strays(&archive);
        }
        let strays = match strays.map_err(OpsError::from) {
            // The damage that hides which files the sessions have was found above.
            Err(error) if verified.damaged > 0 && is_damage(&error) => Vec::new(),
            Err(OpsError::Sync(SyncError::Io { path, source })) => {
                (verified.notes, verified.unread) = (verified.notes + 1, verified.unread + 1);
                let problem = compared::unread(&disk::words(&source));
                let finding =
                    compared::of_store(Severity::Note, &path.display().to_string(), &problem);
                tell(Verifying::Found(&finding));
                Vec::new()
            }
            strays => strays?,
        };
        for path in strays {
            verified.damaged += 1;
            let problem = match disk::read(&path, 1) {
                Ok(bytes) if bytes.is_empty() => {
                    "it is empty and does not belong to a session: delete it"
                }
                _ => "it is the file of a session that the store has lost",
            };
            let finding =
                compared::of_store(Severity::Damage, &path.display().to_string(), problem);
            tell(Verifying::Found(&Finding { kind: FaultKind::File, ..finding }));
        }
    }
    Ok(verified)
}

/// Verifies the store, without the files of its sessions.
pub(crate) fn verify_store(
    archive: &Archive,
    report: &mut dyn FnMut(&Finding),
) -> Result<(), OpsError> {
    let mut tell = |told: Verifying<'_>| told.found().map_or((), &mut *report);
    look(archive, None, &mut tell, false).1.map_or(Ok(()), Err)
}

/// Returns whether an error says that what was read is not what was written, and not that the machine failed to read it.
fn is_damage(error: &OpsError) -> bool {
    !matches!(
        error,
        OpsError::Store(StoreError::Io { .. } | StoreError::Full | StoreError::Busy)
            | OpsError::Sync(SyncError::Io { .. })
    )
}

/// What a piece of the work has found.
enum Piece {
    Bytes(Vec<Fault>, Result<(), StoreError>),
    Session(Seen, Result<Option<Whole>, OpsError>),
}

/// The state of a session that can be read, and its live file.
type Whole = (Box<State>, Option<Hashed>);

/// Returns another look at a store: the piece about the bytes compares the lines with their entries, so that no other does.
fn reader(store: &dyn Store) -> Option<Box<dyn Store>> {
    let mut reader = store.reader()?;
    reader.leave_to_check();
    Some(reader)
}

/// Does a piece of the work: the first one is the bytes, each other one is a session.
fn piece(
    store: &dyn Store,
    only: Option<&Session>,
    (sessions, places): (&[Session], Option<&Places>),
    n: usize,
) -> Piece {
    let Some(session) = n.checked_sub(1).and_then(|n| sessions.get(n)) else {
        let mut faults = Vec::new();
        let mut gather = |fault| faults.push(fault);
        let checked = match only {
            Some(session) => store.check_session(session.key, &mut gather),
            None => store.check(&mut gather),
        };
        return Piece::Bytes(faults, checked);
    };
    let mut check = Check::new(store, session);
    let checked = check.session().map(|state| {
        let state = state?;
        let hashed = places.and_then(|places| Hashed::of(store, session, &state, places));
        Some((Box::new(state), hashed))
    });
    Piece::Session(check.seen, checked)
}

fn look(
    archive: &Archive,
    only: Option<&Session>,
    each: &mut dyn FnMut(Verifying<'_>),
    with_files: bool,
) -> (Verified, Option<OpsError>) {
    let mut verified = Verified::default();
    let mut failed = None;
    let names = match only {
        Some(session) => vec![(session.key, session.name.clone())],
        // Where these cannot be read, the sessions cannot be either, which is told.
        None => archive.store().names().unwrap_or_default(),
    };
    let names: BTreeMap<SessionKey, SessionName> = names.into_iter().collect();
    let (sessions, unread) = match only {
        Some(session) => (vec![session.clone()], None),
        None => match archive.every().map_err(OpsError::from) {
            Ok(sessions) => (sessions, None),
            Err(error) => (Vec::new(), Some(error)),
        },
    };
    each(Verifying::Session(0, sessions.len() as u64));
    let places = with_files.then(|| archive.places());
    let work = |store: &dyn Store, n: usize| piece(store, only, (&sessions, places.as_ref()), n);
    let (mut has_forgotten, mut unread) = (false, unread);
    let mut told = sessions.iter();
    let (mut is_sound, mut numbers) = (true, 0..);
    // A session was read by lines that nobody had compared with their entries.
    let again = |piece: Piece, n: usize, is_sound: bool| {
        if is_sound { piece } else { work(archive.store(), n) }
    };
    let mut take_in = |piece| match again(piece, numbers.next().unwrap_or(0), is_sound) {
        Piece::Bytes(faults, checked) => {
            is_sound = faults.is_empty() && checked.is_ok();
            has_forgotten = faults.iter().any(|fault| fault.kind == FaultKind::Forgotten);
            for Fault { kind, session, item, problem } in faults {
                let name = session.and_then(|session| names.get(&session));
                let session = name.map(|name| name.id.clone());
                let severity = match kind {
                    FaultKind::Witness => Severity::Note,
                    _ => Severity::Damage,
                };
                verified.lost += u64::from(kind == FaultKind::Lost);
                let finding = Finding { severity, kind, session, item, problem };
                tell(&finding, &mut verified, each);
            }
            let checked = checked.map_err(OpsError::from).err();
            for (item, error) in [(DATABASE, checked), ("the list of sessions", unread.take())] {
                match error {
                    Some(error) if is_damage(&error) => {
                        let finding = Finding::of_whole_store(item, chain(&error));
                        tell(&finding, &mut verified, each);
                    }
                    error => failed = failed.take().or(error),
                }
            }
        }
        Piece::Session(mut whole, checked) => {
            let Some(session) = told.next() else { return };
            verified.sessions += 1;
            let is_damaged = archive.torn().is_some() || whole.has_damage();
            let checked = checked.and_then(|read| match read.filter(|_| with_files) {
                None => Ok(()),
                Some((state, hashed)) => {
                    let mut files = Files::new(archive, session);
                    let store = StoreIs { has_forgotten, is_damaged };
                    let checked = files.compare(&state, hashed, store);
                    whole.add(files.seen);
                    checked
                }
            });
            match checked {
                Err(error) if is_damage(&error) => {
                    whole.unreadable(session, &chain(&error));
                }
                checked => failed = failed.take().or(checked.err()),
            }
            whole.sum_up(&mut verified);
            for finding in whole.findings {
                tell(&finding, &mut verified, each);
            }
            each(Verifying::Session(verified.sessions, sessions.len() as u64));
        }
    };
    let pieces = 1 + sessions.len();
    in_order_by(&|| reader(archive.store()), archive.store(), pieces, &work, &mut take_in);
    if archive.store().is_stale().unwrap_or(false) {
        let problem = "they are from an older version of undertext; the next change rebuilds them";
        tell(&compared::of_store(Severity::Note, "derived rows", problem), &mut verified, each);
    }
    (verified, failed)
}

fn tell(finding: &Finding, verified: &mut Verified, each: &mut dyn FnMut(Verifying<'_>)) {
    match finding.severity {
        Severity::Damage => verified.damaged += 1,
        Severity::Note => verified.notes += 1,
    }
    each(Verifying::Found(finding));
}

/// Returns whether the ids and the running hashes of a session are right, by its own lines.
pub fn verify_ids(archive: &Archive, session: &Session) -> Result<bool, OpsError> {
    let mut check = Check::new(archive.store(), session);
    let state = archive.store().state(session.key)?;
    check.entries(&state)?;
    check.generations(&state)?;
    let are_right = check.seen.findings.is_empty();
    let all = EntryNumber::FIRST..state.next_entry();
    for batch in EntryNumber::batches(all, LINES) {
        let entries: Vec<EntryNumber> = EntryNumber::each(batch).collect();
        // A store checks each line that it hands over against its entry's id.
        whole_lines(archive.store(), session.key, &entries, &mut |_, _| {})?;
    }
    Ok(are_right)
}

/// Returns an error with its causes in one line.
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

impl<'a> Check<'a> {
    fn new(store: &'a dyn Store, session: &'a Session) -> Self {
        Self { store, session, seen: Seen::default() }
    }

    fn find(&mut self, severity: Severity, item: &str, problem: &str) {
        self.seen.find(self.session, severity, item, problem);
    }

    fn damage(&mut self, item: &str, problem: &str) {
        self.seen.damage(self.session, item, problem);
    }

    /// Checks all that the store has of the session, and returns its state by its facts if it can be read.
    fn session(&mut self) -> Result<Option<State>, OpsError> {
        // The state by the derived rows is to be verified too.
        let state = self.operations()?;
        self.entries(&state)?;
        self.generations(&state)?;
        // What cannot be read is not odd.
        if !self.derived()? {
            return Ok(None);
        }
        self.oddities()?;
        Ok(Some(state))
    }

    /// Notes what is odd, once for each kind.
    fn oddities(&mut self) -> Result<(), OpsError> {
        let store = self.store;
        for (what, entries) in oddities::oddities(store, self.session)? {
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
            self.find(Severity::Note, &format!("{noun} {}{more}", named.join(", ")), what);
            if let Some(found) = self.seen.findings.last_mut() {
                found.kind = FaultKind::Oddity;
            }
        }
        Ok(())
    }

    /// Looks whether all entries are there. The check of the bytes compares their ids with their lines.
    fn entries(&mut self, state: &State) -> Result<(), OpsError> {
        let (store, key) = (self.store, self.session.key);
        for range in EntryNumber::batches(EntryNumber::FIRST..state.next_entry(), BATCH) {
            let entries = store.entries(key, range.clone())?;
            if entries.len() as u64 != range.end.since(range.start) {
                self.damage(
                    &format!("entries {} to {}", range.start, range.end.minus(1)),
                    "some are missing",
                );
                return Ok(());
            }
        }
        self.seen.verified.entries += state.entries();
        let covered: BTreeSet<EntryNumber> = state.tombstones.iter().map(|one| one.entry).collect();
        self.seen.verified.redacted += covered.len() as u64;
        Ok(())
    }

    /// Recomputes the chain of operations, and what their records name, and returns the state to which they lead.
    fn operations(&mut self) -> Result<State, OpsError> {
        let (store, session, key) = (self.store, self.session, self.session.key);
        let own = store.id()?;
        let mut first = EntryNumber::FIRST;
        let mut covered: Option<BTreeMap<OperationNumber, Digest>> = None;
        let mut origins: BTreeMap<OperationNumber, Vec<Origin>> = BTreeMap::new();
        for (n, origin) in store.origins(key, EntryNumber::ALL)? {
            origins.entry(n).or_default().push(origin);
        }
        let state = rows::fold_with(store, session, &mut |before, operation, bulk| {
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
            let is_named = operation.names(bulk, None) || {
                let covered = match &covered {
                    Some(known) => known,
                    None => covered.insert(rows::covered_runs(store, session)?),
                };
                operation.names(bulk, covered.get(&n).copied())
            };
            if !is_named {
                self.damage(&item, "its facts do not match its record");
            }
            first = operation.added().end;
            self.seen.verified.operations += 1;
            Ok(())
        })?;
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
                    // Behind one that is not there none is placed.
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

    /// Compares the derived rows with those that the facts give, and returns whether the session can be read by them.
    fn derived(&mut self) -> Result<bool, OpsError> {
        let compared = rows::compared(self.store, self.session)?;
        // Those that an older version made follow its rules.
        let is_older = compared.kept.is_some() && self.store.is_stale()?;
        if compared.kept != Some(compared.wanted) && !is_older {
            self.seen.verified.outdated += 1;
            self.damage("derived rows", "they do not match the facts");
        }
        Ok(compared.kept.is_some())
    }
}
