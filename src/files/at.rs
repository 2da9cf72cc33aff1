//! The state of a session from which a verb plans a change, read under the archive's lock.
//!
//! Invariant: it reads committed rows only and changes nothing.

use std::path::Path;

use crate::{
    archive::{Archive, At, SyncError},
    files::{
        live_file::{LiveFile, live_file},
        occupancy::refuse_if_loaded,
    },
    json::Raw,
    live::{Lock, WritableFile},
    model::{
        EntryId, EntryNumber, GenerationNumber, PlaceNumber, Position, Run, SessionName, Span,
        State, Timestamp,
    },
    session::{Growth, Session, SessionError, View},
    store::{SessionKey, Store, StoreError, whole_lines},
    wire::{Format, Graph},
};

/// The state of a session before a change.
pub(crate) struct Standing<'a> {
    pub(crate) archive: &'a Archive,
    pub(crate) name: SessionName,
    pub(crate) format: &'static dyn Format,
    /// Nothing if the session does not exist yet.
    pub(crate) session: Option<Session>,
    pub(crate) state: State,
    /// The time of the change.
    pub(crate) at: Timestamp,
}

impl<'a> Standing<'a> {
    /// Returns the standing of a session that is not in the store.
    pub(crate) fn nowhere(
        archive: &'a Archive,
        name: SessionName,
        format: &'static dyn Format,
    ) -> Self {
        Self { at: archive.now(), archive, name, format, session: None, state: State::default() }
    }

    /// Reads the state of a session. Fails if a newer program changed it.
    pub(crate) fn of(session: &At<'a>) -> Result<Self, SyncError> {
        let mut standing = Self::nowhere(session.archive, session.name.clone(), session.format);
        standing.renew(session.session.clone())?;
        Ok(standing)
    }

    /// Reads the state again after an operation.
    pub(crate) fn renew(&mut self, session: Session) -> Result<(), SyncError> {
        self.state = self.archive.store.state(session.key)?;
        if let Some(operation) = self.state.unknown {
            return Err(StoreError::NewerFacts { operation }.into());
        }
        self.at = self.at.max(Timestamp(self.state.at().0 + 1));
        self.session = Some(session);
        Ok(())
    }

    /// Returns the session opened in this state. Fails if it does not exist yet.
    pub(crate) fn opened(&self) -> Result<At<'a>, SyncError> {
        let missing = || SessionError::NoSession(self.name.id.clone());
        let session = self.session.clone().ok_or_else(missing)?;
        Ok(At::in_state(self.archive, session, self.state.clone()))
    }

    pub(crate) fn store(&self) -> &'a dyn Store {
        self.archive.store.as_ref()
    }

    /// Returns the store and the session's key, if the session exists.
    pub(crate) fn stored(&self) -> Option<(&'a dyn Store, SessionKey)> {
        self.session.as_ref().map(|session| (self.store(), session.key))
    }

    /// Returns the position of the current branch.
    pub(crate) fn position(&self) -> Option<Position> {
        self.state.position()
    }

    /// Returns a view of the session at a position, as stored.
    pub(crate) fn view(&self, position: Position) -> Option<View<'_>> {
        let spans = Some(&self.state.spans);
        self.session.as_ref().map(|session| View::new(self.store(), session, position, spans))
    }

    /// Returns the spans of the entries visible at a position.
    pub(crate) fn spans(&self, at: Position) -> Result<Vec<Span>, SyncError> {
        let spans = self.view(at).map(|view| view.spans().map(<[Span]>::to_vec)).transpose()?;
        Ok(spans.unwrap_or_default())
    }

    /// Returns the entries up to a position's head, as the agent reads them.
    pub(crate) fn path(&self, position: Position) -> Result<Vec<EntryNumber>, SyncError> {
        match (position.head, self.view(position)) {
            (Some(head), Some(view)) => Ok(self.format.path(&view, head, usize::MAX)?.entries),
            _ => Ok(Vec::new()),
        }
    }

    /// Returns the position at which the agent would resume a generation.
    pub(crate) fn end_of(&self, generation: GenerationNumber) -> Result<Position, SyncError> {
        let horizon = self.state.ends.get(&generation).map_or(0, Run::end);
        let mut position = Position { generation, head: None, horizon };
        if let Some(view) = self.view(position) {
            position.head = self.format.head(&view)?;
        }
        Ok(position)
    }

    /// Returns the end of a generation, to append to. For the current branch this reads no runs.
    pub(crate) fn growth(&self, generation: GenerationNumber) -> Result<Growth, SyncError> {
        match self.state.ends.get(&generation) {
            Some(end) => self.grown_to(end),
            None => Ok(Growth::empty(generation)),
        }
    }

    /// Returns the growth of a generation that ends with this run.
    pub(crate) fn grown_to(&self, end: &Run) -> Result<Growth, SyncError> {
        let last = if end.count > 0 {
            end.last()
        } else {
            let (generation, horizon) = (end.generation, end.end());
            let view = self.view(Position { generation, head: None, horizon });
            let last = PlaceNumber::new(horizon).earlier().next_back();
            last.zip(view).map(|(last, view)| view.at(last)).transpose()?.flatten()
        };
        let last = last.map(|n| Ok::<_, SyncError>((n, self.id_of(n)?))).transpose()?;
        Ok(Growth::at(end, last))
    }

    /// Returns the id of an entry.
    pub(crate) fn id_of(&self, entry: EntryNumber) -> Result<EntryId, SyncError> {
        let held = self.stored().map(|(store, session)| store.entries(session, entry.alone()));
        let id = held.transpose()?.and_then(|held| held.first().map(|held| held.id));
        id.ok_or_else(|| SessionError::NoEntry(entry.to_string()).into())
    }

    /// Returns the line of an entry.
    pub(crate) fn line(&self, entry: EntryNumber) -> Result<Vec<u8>, SyncError> {
        let mut line = Vec::new();
        if let Some((store, session)) = self.stored() {
            whole_lines(store, session, &[entry], &mut |_, found| line = found)?;
        }
        Ok(line)
    }

    /// Returns the name of an entry's record.
    pub(crate) fn record_name(&self, entry: EntryNumber) -> Result<Option<String>, SyncError> {
        let line = self.line(entry)?;
        Ok(Raw::object(&line).and_then(|record| self.format.envelope(record).name))
    }

    /// Returns the live file.
    pub(crate) fn live_file(&self) -> Option<LiveFile> {
        live_file(self.archive, &self.state)
    }

    /// Returns the live file if it is the agent's own.
    pub(crate) fn attached(&self) -> Option<LiveFile> {
        self.live_file().filter(|live| live.attached)
    }

    /// Returns the live file as one that may be written.
    pub(crate) fn writable_file(&self, live: &LiveFile) -> Result<WritableFile, SyncError> {
        self.archive.writable_file(&self.name, live)
    }

    /// Refuses to write an agent's file of a session that the user's settings exclude: what the agent wrote there since was not
    /// imported, and the change may be about it.
    pub(crate) fn refuse_if_left_out(&self, path: &Path) -> Result<(), SyncError> {
        let by = self.archive.exclusion(&self.name, self.format, Some(path));
        by.map_or(Ok(()), |by| {
            let session = self.name.id.clone();
            Err(SyncError::LeftOut { session, path: path.to_owned(), by })
        })
    }

    /// Refuses to write an agent's file whose session is excluded or open in a process. The returned lock keeps the agent from
    /// opening the session.
    pub(crate) fn refuse_to_write(&self, path: &Path) -> Result<Option<Lock>, SyncError> {
        self.refuse_if_left_out(path)?;
        if self.session.is_none() { Ok(None) } else { refuse_if_loaded(&self.opened()?, path) }
    }

    /// Refuses to continue if the history of the current branch begins where undertext cannot read it.
    pub(crate) fn refuse_without_past(&self) -> Result<(), SyncError> {
        let found = self.position().and_then(|position| self.view(position));
        let found = found.map(|view| view.elsewhere()).transpose()?.flatten();
        found.map_or(Ok(()), |found| Err(SyncError::Unread(found)))
    }
}
