//! Bundles: exports sessions from a store, and imports each in one transaction together with its derived rows.
//!
//! | the session here | what happens |
//! |---|---|
//! | does not exist | all operations are added |
//! | has the same first operations | the operations after them are added |
//! | has the same operations, or more | nothing |
//! | has a different operation with the same number | refused |
//! | would lose bytes that a later operation redacts | refused: an import deletes nothing |
//!
//! An operation keeps its number and its record. Its hash is recomputed from the operation before it in this store.
//!
//! Invariant: places in a bundle are data. A file in the store's folder must be a transcript that no other session has, and an
//! agent's file is never written.

use std::{
    collections::BTreeMap,
    io::{BufRead, Write},
};

use crate::{
    archive::{Archive, SyncError},
    change::reconcile::catch_up,
    files::live_file::{self, live_file},
    model::{EntryNumber, OperationId, OperationNumber, Origin, Place, State, TRANSCRIPTS},
    report::{Brought, Fate},
    session::{Session, SessionError, rows},
    store::{
        BundleError, BundleReader, BundleWriter, Bundled, Commit, Covered, SessionKey, Store,
        StoreError, Transaction, whole_lines,
    },
    wire,
};

/// How many lines to read at a time.
const BATCH: usize = 1024;

/// Writes a session to a bundle.
pub(crate) fn write<W: Write>(
    store: &dyn Store,
    session: &Session,
    to: &mut BundleWriter<W>,
) -> Result<(), SessionError> {
    let key = session.key;
    let failed = |source| SessionError::Write { source };
    to.session(&session.name, &store.state(key)?).map_err(failed)?;
    let mut origins: BTreeMap<OperationNumber, Vec<Origin>> = BTreeMap::new();
    for (by, origin) in store.origins(key, EntryNumber::ALL)? {
        origins.entry(by).or_default().push(origin);
    }
    rows::fold(store, session, &mut |_, operation, bulk| {
        bulk.entries = store.entries(key, operation.added())?;
        bulk.origins = origins.remove(&operation.n).unwrap_or_default();
        to.operation(operation, bulk).map_err(failed)?;
        for batch in EntryNumber::batches(operation.added(), BATCH) {
            let entries: Vec<EntryNumber> = EntryNumber::each(batch).collect();
            let mut written = Ok(());
            whole_lines(store, key, &entries, &mut |_, line| {
                if written.is_ok() {
                    written = to.line(&line);
                }
            })?;
            written.map_err(failed)?;
        }
        let kept = operation.facts.containers.len() + operation.facts.sidecars.len();
        for at in 0..kept as u64 {
            to.kept(&store.kept(key, operation.n, at)?).map_err(failed)?;
        }
        Ok(())
    })?;
    Ok(())
}

/// Why a session is not imported.
enum Refusal {
    /// Something is wrong with this session. Others can still be imported.
    Session(String),
    /// The rest of the bundle cannot be read.
    Bundle(BundleError),
    /// No other session can be imported either.
    Archive(SyncError),
}

impl From<BundleError> for Refusal {
    fn from(error: BundleError) -> Self {
        Self::Bundle(error)
    }
}

impl<E: Into<SyncError>> From<E> for Refusal {
    fn from(error: E) -> Self {
        match error.into() {
            SyncError::Store(error @ StoreError::NewerFacts { .. }) => {
                Self::Session(error.to_string())
            }
            error if error.is_damage() || error.is_of_a_file() => Self::Session(error.in_full()),
            error => Self::Archive(error),
        }
    }
}

/// Imports the sessions of a bundle and reports each.
pub(crate) fn import<R: BufRead>(
    archive: &Archive,
    from: &mut BundleReader<R>,
    each: &mut dyn FnMut(Brought),
) -> Result<Result<(), BundleError>, SyncError> {
    let _lock = archive.lock()?;
    loop {
        let mut of = match from.session() {
            Ok(Some(of)) => of,
            ended => return Ok(ended.map(drop)),
        };
        match take(archive, from, &mut of) {
            Ok(brought) => each(brought),
            Err(Refusal::Bundle(error)) => return Ok(Err(error)),
            Err(Refusal::Archive(error)) => return Err(error),
            Err(Refusal::Session(why)) => {
                each(Brought::new(&of.name, Fate::Refused, Some(why)));
                // Skip to the next session, so that the ones after this can be read.
                if let Err(error) = from.finish(&mut of) {
                    return Ok(Err(error));
                }
            }
        }
    }
}

/// A session of this store that operations are added to.
struct Target<'a> {
    archive: &'a Archive,
    key: Option<SessionKey>,
    /// Its state before the import.
    state: State,
    /// The hash of its newest operation.
    newest: Option<OperationId>,
    writing: Option<Box<dyn Transaction + 'a>>,
}

fn take<R: BufRead>(
    archive: &Archive,
    from: &mut BundleReader<R>,
    of: &mut Bundled,
) -> Result<Brought, Refusal> {
    let store = archive.store();
    let format = wire::by_name(&of.name.format).ok_or_else(|| {
        Refusal::Session(format!("this undertext does not know the agent {}", of.name.format))
    })?;
    let key = store.session(&of.name)?;
    let name = of.name.clone();
    let session = |key| Session { key, name: name.clone(), format };
    let mut state = match key {
        Some(key) => store.state(key)?,
        None => State::default(),
    };
    let own_file = |state: &State| live_file(archive, state).filter(|live| !live.attached);
    if let Some(key) = key.filter(|_| of.operations > state.operations())
        && own_file(&state).is_some()
    {
        catch_up::catch_up(&archive.at(&session(key))?)?;
        state = store.state(key)?;
    }
    let state_now = if key.is_some() { Fate::Grown } else { Fate::New };
    let mut brought = Brought::new(&of.name, state_now, None);
    let newest = state.hash();
    let mut target = Target { archive, key, state, newest, writing: None };
    while let Some(commit) = from.commit(of)? {
        if target.add(commit, of)? {
            brought.operations += 1;
        }
    }
    let Target { key, state, writing, .. } = target;
    brought.state = if writing.is_none() { Fate::Same } else { brought.state };
    let Some(session) = key.map(session) else { return Ok(brought) };
    let mut after = own_file(&state);
    if let Some(mut writing) = writing {
        let derived = rows::derived(store, &session)?;
        brought.entries = derived.state.entries() - state.entries();
        writing.derive(session.key, &derived)?;
        let before = after;
        after = own_file(&derived.state);
        let stays = before.filter(|live| Some(live) == after.as_ref());
        if let Some(live) = stays.filter(|_| !archive.is_preview()) {
            if live_file::is_behind(archive, &state)? {
                let why = format!("{} has changed in the meantime", live.path.display());
                return Err(Refusal::Session(why));
            }
            // The store has all of its content. If this import is interrupted, the next one writes the file again.
            let file = archive.writable_file(&session.name, &live)?;
            file.remove().map_err(SyncError::at(&live.path))?;
        }
        writing.commit()?;
    }
    if after.is_some()
        && !archive.is_preview()
        && let Err(error) = catch_up::catch_up(&archive.at(&session)?)
    {
        brought.why = Some(error.in_full());
    }
    Ok(brought)
}

impl Target<'_> {
    /// Adds an operation. Returns false if the session already has it.
    fn add(&mut self, mut commit: Commit, of: &Bundled) -> Result<bool, Refusal> {
        let store = self.archive.store();
        let n = commit.operation.n;
        if let Some(key) = self.key.filter(|_| n < self.state.next_operation()) {
            let own = store.operations(key, n.alone())?.pop();
            if own.is_some_and(|own| own.record == commit.operation.record) {
                return Ok(false);
            }
            return Err(Refusal::Session(format!("its operation {n} differs from the one here")));
        }
        for file in &commit.operation.facts.files {
            if !self.may_have(&file.place)? {
                let path = String::from_utf8_lossy(file.place.path()).into_owned();
                return Err(Refusal::Session(format!("it would have the file {path:?}")));
            }
        }
        if self.writing.is_none() {
            let covered = Covered::clone(&of.covered).within(&self.state);
            if covered != Covered::of(&self.state) {
                let why = "it redacts what is here whole, and an import deletes nothing";
                return Err(Refusal::Session(why.to_owned()));
            }
        }
        let writing = match &mut self.writing {
            Some(writing) => writing,
            none => none.insert(self.archive.store.begin()?),
        };
        commit.expected = self.newest;
        let hash = commit.operation.hash_after(self.newest, store.id()?, &commit.session);
        (commit.operation.hash, self.newest) = (hash, Some(hash));
        self.key = Some(writing.add(commit)?);
        Ok(true)
    }

    /// Returns true if the session may have a file at this place.
    fn may_have(&self, place: &Place) -> Result<bool, StoreError> {
        let Place::Store(path) = place else { return Ok(true) };
        let name = path.strip_prefix(TRANSCRIPTS.as_bytes()).and_then(|it| it.strip_prefix(b"/"));
        let is_plain = |name: &[u8]| !name.is_empty() && !name.starts_with(b".");
        if !name.is_some_and(|name| is_plain(name) && !name.contains(&b'/')) {
            return Ok(false);
        }
        let others = self.archive.store().files(place)?;
        Ok(others.iter().all(|(key, ..)| Some(*key) == self.key))
    }
}
