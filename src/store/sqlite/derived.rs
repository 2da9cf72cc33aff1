//! Derived rows and caches in the tables. They can be rebuilt from facts and bytes.
//!
//! Invariant: no cached state of a session outlives a write by another connection.

use std::{cell::RefCell, collections::BTreeMap, ops::Range, sync::Arc};

use rusqlite::{OptionalExtension as _, Row, params};

use crate::store::sqlite::{
    add,
    bytes::{cover, long_values},
    list,
    query::{bounds, collect, damaged, first, unknown},
    rows::Tables,
};
use crate::{
    model::{
        Bulk, Card, CheckpointNumber, EntryNumber, FileNumber, GenerationNumber, Glance, Kind,
        Landmark, LineId, NameTag, OperationNumber, Parent, Place, Record, SessionName, State,
        Tagged, Tie, TieKind, Timestamp, take_varint,
    },
    store::{
        CacheStore, Came, DoorStore, FactStore, Listed, SessionFilter, SessionKey, Sighting,
        StoreError,
    },
};

/// How many sessions' states are cached.
const STANDING: usize = 16;

/// The states and cards of sessions that are written to or overlaid.
#[derive(Default)]
pub(super) struct Standing(RefCell<BTreeMap<SessionKey, Arc<(State, Card)>>>);

impl Standing {
    fn get(&self, session: SessionKey) -> Option<Arc<(State, Card)>> {
        self.0.borrow().get(&session).cloned()
    }

    fn keep(&self, session: SessionKey, standing: Arc<(State, Card)>) {
        let mut known = self.0.borrow_mut();
        if known.len() >= STANDING {
            known.clear();
        }
        known.insert(session, standing);
    }

    /// Forgets them all, because another connection may have changed them.
    pub(super) fn clear(&self) {
        self.0.borrow_mut().clear();
    }
}

impl Tables {
    /// Returns the state and the card of a session that is written to or overlaid. A damaged state is rebuilt from the
    /// operations, because otherwise nothing could be added to the session. A card cannot be rebuilt from operations: a damaged
    /// one is replaced by an empty one until the session is rebuilt, and verify reports that it does not match the facts.
    pub(super) fn standing(&self, session: SessionKey) -> Result<Arc<(State, Card)>, StoreError> {
        if let Some(known) = self.standing.get(session) {
            return Ok(known);
        }
        let state = match self.state(session) {
            Err(StoreError::Corrupt { .. }) => fold(self, session)?,
            other => other?,
        };
        let card = match self.card(session) {
            Err(StoreError::Corrupt { .. }) => Card::default(),
            other => other?,
        };
        let standing = Arc::new((state, card));
        self.standing.keep(session, Arc::clone(&standing));
        Ok(standing)
    }

    /// Writes and caches the state and the card of a session.
    pub(super) fn stand(
        &self,
        session: SessionKey,
        standing: (State, Card),
    ) -> Result<(), StoreError> {
        add::put_card(&self.db, session, &standing.1, &standing.0)?;
        self.standing.keep(session, Arc::new(standing));
        Ok(())
    }
}

impl CacheStore for Tables {
    fn state(&self, session: SessionKey) -> Result<State, StoreError> {
        if let Some(known) = self.standing.get(session) {
            return Ok(known.0.clone());
        }
        let found = first(
            &self.db,
            "SELECT state, settled FROM card WHERE session = ?",
            [session.0],
            |row| Ok((long_values::state(row, 0)?, row.get::<_, u64>(1)?)),
        )?;
        let (state, settled) = found.ok_or_else(|| unknown(session))?;
        if state.operations() == settled {
            Ok(state)
        } else {
            Err(StoreError::corrupt("a session's state", "it does not match its operations"))
        }
    }

    fn card(&self, session: SessionKey) -> Result<Card, StoreError> {
        if let Some(known) = self.standing.get(session) {
            return Ok(known.1.clone());
        }
        let found = first(
            &self.db,
            "SELECT title, folder, started, active, turns, hidden FROM card WHERE session = ?",
            [session.0],
            |row| list::card(row, 0),
        )?;
        found.ok_or_else(|| unknown(session))
    }

    fn sessions(&self, filter: &SessionFilter) -> Result<Vec<Listed>, StoreError> {
        list::sessions(&self.db, filter)
    }

    fn files(
        &self,
        place: &Place,
    ) -> Result<Vec<(SessionKey, SessionName, FileNumber)>, StoreError> {
        collect(
            &self.db,
            "SELECT key, format, id, file FROM place JOIN session ON key = session
             WHERE place = ? ORDER BY key, file",
            [place.to_bytes()],
            |row| {
                let name = SessionName { format: row.get(1)?, id: row.get(2)? };
                Ok((SessionKey(row.get(0)?), name, row.get(3)?))
            },
        )
    }

    fn records(
        &self,
        session: SessionKey,
        range: Range<EntryNumber>,
    ) -> Result<Vec<Record>, StoreError> {
        let (from, to) = bounds(&range);
        collect(
            &self.db,
            "SELECT n, kind, name, parent, time, hint FROM record
             WHERE session = ? AND n >= ? AND n < ? ORDER BY n",
            params![session.0, from, to],
            record,
        )
    }

    fn named(
        &self,
        session: SessionKey,
        low: NameTag,
        high: NameTag,
    ) -> Result<Vec<EntryNumber>, StoreError> {
        let mut found = collect(
            &self.db,
            "SELECT n FROM record WHERE session = ? AND name BETWEEN ? AND ?",
            params![session.0, low.get(), high.get()],
            |row| row.get(0),
        )?;
        found.sort_unstable();
        Ok(found)
    }

    /// The conditions must match those of the partial indexes, otherwise SQLite does not use them.
    fn landmark(
        &self,
        session: SessionKey,
        landmark: Landmark,
        range: Range<EntryNumber>,
    ) -> Result<Option<EntryNumber>, StoreError> {
        let (from, to) = bounds(&range);
        let which = match landmark {
            Landmark::Boundary => format!("kind = {}", Kind::Boundary.code()),
            Landmark::Keeper => format!("kind = {} AND length(hint) > 1", Kind::Boundary.code()),
            Landmark::Signpost => format!("kind = {} AND length(hint) > 1", Kind::Meta.code()),
        };
        let sql = format!(
            "SELECT n FROM record WHERE session = ? AND n >= ? AND n < ? AND {which} ORDER BY n DESC LIMIT 1"
        );
        first(&self.db, &sql, params![session.0, from, to], |row| row.get(0))
    }

    fn twins(&self, session: SessionKey) -> Result<Vec<NameTag>, StoreError> {
        let sql = "SELECT name FROM twin WHERE session = ? ORDER BY name";
        collect(&self.db, sql, [session.0], |row| Ok(NameTag::new(row.get(0)?)))
    }

    fn ties(&self, session: SessionKey) -> Result<Vec<(GenerationNumber, Vec<Tie>)>, StoreError> {
        let all = collect(
            &self.db,
            "SELECT generation, kind, other FROM tie WHERE session = ? ORDER BY generation, kind, other",
            [session.0],
            |row| Ok((row.get(0)?, TieKind::from_code(row.get(1)?), row.get(2)?)),
        )?;
        let mut found: Vec<(GenerationNumber, Vec<Tie>)> = Vec::new();
        for (generation, kind, other) in all {
            let Some(kind) = kind else { continue };
            let tie = Tie { kind, other };
            match found.last_mut() {
                Some((last, ties)) if *last == generation => ties.push(tie),
                _ => found.push((generation, vec![tie])),
            }
        }
        Ok(found)
    }

    fn tied(
        &self,
        format: &str,
        tie: &Tie,
        besides: Option<SessionKey>,
    ) -> Result<Vec<(SessionKey, SessionName)>, StoreError> {
        list::tied(&self.db, format, tie, besides)
    }

    fn glances(&self, sessions: &[SessionKey]) -> Result<Vec<(SessionKey, Glance)>, StoreError> {
        let mut read = self.db.prepare_cached("SELECT glance FROM glance WHERE session = ?")?;
        let mut found = Vec::with_capacity(sessions.len());
        for session in sessions {
            let bytes = read.query_row([session.0], |row| row.get::<_, Vec<u8>>(0)).optional()?;
            // An unreadable glance is computed again.
            let glance = bytes.and_then(|bytes| Glance::read(&bytes, &mut Vec::new()).ok());
            found.extend(glance.map(|glance| (*session, glance)));
        }
        Ok(found)
    }

    fn counts(
        &self,
        session: SessionKey,
        range: Range<EntryNumber>,
        rule: u64,
    ) -> Result<Vec<(EntryNumber, Vec<u64>)>, StoreError> {
        let (from, to) = bounds(&range);
        collect(
            &self.db,
            "SELECT e.n, c.tokens FROM entry e JOIN count c ON c.line = e.line AND c.rule = ?
             WHERE e.session = ? AND e.n >= ? AND e.n < ? ORDER BY e.n",
            params![rule, session.0, from, to],
            |row| {
                let mut rest = row.get_ref(1)?.as_blob()?;
                Ok((row.get(0)?, std::iter::from_fn(|| take_varint(&mut rest)).collect()))
            },
        )
    }
}

/// Rebuilds the state of a session from its operations.
fn fold(tables: &Tables, session: SessionKey) -> Result<State, StoreError> {
    let mut bulks: BTreeMap<OperationNumber, Bulk> = BTreeMap::new();
    for (operation, run) in tables.growths(session, OperationNumber::ALL)? {
        bulks.entry(operation).or_default().runs.push(run);
    }
    for (operation, given) in tables.checkpoints(session, CheckpointNumber::ALL)? {
        bulks.entry(operation).or_default().checkpoints.push(given);
    }
    let mut state = State::default();
    for operation in tables.operations(session, OperationNumber::ALL)? {
        state.apply(&operation, &bulks.remove(&operation.n).unwrap_or_default());
    }
    Ok(state)
}

fn record(row: &Row<'_>) -> rusqlite::Result<Record> {
    let n: EntryNumber = row.get(0)?;
    let code: u8 = row.get(1)?;
    let unknown = || damaged(1, &format!("an entry has the unknown kind {code}"));
    Ok(Record {
        n,
        kind: Kind::from_code(code).ok_or_else(unknown)?,
        name: row.get::<_, Option<u64>>(2)?.map(NameTag::new),
        parent: match row.get::<_, Option<i64>>(3)? {
            None => Parent::Root,
            Some(0) => Parent::Missing,
            Some(distance) => {
                Parent::Entry(EntryNumber::new(n.get().wrapping_sub(distance.cast_unsigned())))
            }
        },
        time: row.get::<_, Option<i64>>(4)?.map(Timestamp),
        hint: row.get_ref(5)?.as_blob_or_null()?.unwrap_or_default().into(),
    })
}

impl DoorStore for Tables {
    fn sighting(&self, path: &[u8]) -> Result<Option<Sighting>, StoreError> {
        first(
            &self.db,
            "SELECT inode, length, modified, changed FROM sighting WHERE path = ?",
            [path],
            |row| {
                Ok(Sighting {
                    path: path.to_owned(),
                    inode: row.get::<_, i64>(0)?.cast_unsigned(),
                    length: row.get(1)?,
                    modified: row.get(2)?,
                    changed: row.get(3)?,
                })
            },
        )
    }

    fn places(&self) -> Result<Vec<Vec<u8>>, StoreError> {
        collect(&self.db, "SELECT DISTINCT place FROM place ORDER BY place", [], |row| row.get(0))
    }

    fn buried(&self, line: LineId) -> Result<Option<Came>, StoreError> {
        for (session, entry) in cover::buried(&self.db, line)? {
            let standing = self.standing(session)?;
            if let Some(newest) = standing.0.tombstones.newest(entry)
                && newest.line == Some(line)
                && newest.covered.is_some()
            {
                return Ok(Some(Came::of(session, newest)));
            }
        }
        Ok(None)
    }
}
