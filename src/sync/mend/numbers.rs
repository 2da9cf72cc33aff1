//! Numbers: the checkpoints that operations gave are derived from the lines that these brought, where their rows are lost, as
//! they are when lines come.
//!
//! ```text
//! lines   5 user   6 assistant   7 user       each turn has one before it, at the place that its file had grown to
//! put     where the session was              by a person, perhaps with a note
//! ```
//!
//! Invariant: the digest of the operation says whether they are right.

use crate::{
    json::Raw,
    model::{
        Bulk, Checkpoint, Command, EntryNumber, GenerationNumber, Kind, Named, Operation, Parent,
        PlaceNumber, Position, Run, SessionName, State, Text,
    },
    session::{Session, SessionError, View, is_marked, rows},
    store::{FactStore as _, Salvage, SqliteStore, Store, StoreError},
    sync::{SyncError, take_back::Left},
    wire::Graph,
};

/// Checkpoints, each list behind the operation that gave it.
type Numbered = Vec<(Operation, Vec<Checkpoint>)>;

/// Gives checkpoints that are lost their numbers again. Returns the sessions that got some, and what stays lost.
pub(super) fn number(
    store: SqliteStore,
    salvage: &mut Salvage,
) -> Result<(Vec<Session>, Vec<Left>), SyncError> {
    let (mut numbered, mut lost) = (Vec::new(), Vec::new());
    for (key, name) in store.names()? {
        // A session that a newer version has taken in stays as that version made it.
        let Ok(session) = Session::from_store(key, name.clone()) else { continue };
        let found = of_session(&store, &session, salvage, &name, &mut lost)?;
        if !found.is_empty() {
            numbered.push((session, found));
        }
    }
    drop(store);
    for (session, found) in &numbered {
        salvage.renumber(session.key, found)?;
    }
    Ok((numbered.into_iter().map(|(session, _)| session).collect(), lost))
}

fn of_session(
    store: &dyn Store,
    session: &Session,
    salvage: &Salvage,
    name: &SessionName,
    lost: &mut Vec<Left>,
) -> Result<Numbered, SyncError> {
    let mut found = Vec::new();
    rows::fold_with(store, session, &mut |state, operation, bulk| {
        if Named::checkpoints(&bulk.checkpoints) == operation.checkpoints {
            return Ok(());
        }
        let notes = salvage.words_of(session.key, operation.n)?;
        if let Some(right) = derived(store, session, (state, operation, bulk), notes)? {
            bulk.checkpoints.clone_from(&right);
            found.push((operation.clone(), right));
            return Ok(());
        }
        let given = operation.checkpoints.map_or(0, |given| given.count);
        let left = bulk.checkpoints.iter().filter(|given| !given.is_lost()).count() as u64;
        let item = match given.saturating_sub(left) {
            0 => "a checkpoint".to_owned(),
            1 => "1 checkpoint".to_owned(),
            n => format!("{n} checkpoints"),
        };
        lost.push((Some(name.clone()), format!("{item} of operation {}", operation.n)));
        Ok(())
    })?;
    Ok(found)
}

/// Returns the checkpoints that an operation gave, if they are those that it names.
fn derived(
    store: &dyn Store,
    session: &Session,
    (state, by, bulk): (&State, &Operation, &Bulk),
    notes: Vec<Text>,
) -> Result<Option<Vec<Checkpoint>>, SessionError> {
    let n = state.next_checkpoint();
    let put = |place: Position, note| vec![Checkpoint { n, place, note, ..Checkpoint::default() }];
    let mut guesses = Vec::new();
    match (&by.command, state.position()) {
        (Command::Checkpoint { .. }, Some(place)) => {
            let notes = notes.into_iter().map(Some).chain([None]);
            guesses.extend(notes.map(|note| put(place, note)));
        }
        _ => match turns(store, session, (state, by), &bulk.runs) {
            // A line that is lost says nothing.
            Err(SessionError::Store(StoreError::Corrupt { .. })) => {}
            turns => guesses.push(turns?),
        },
    }
    Ok(guesses.into_iter().find(|guess| Named::checkpoints(guess) == by.checkpoints))
}

/// Returns the checkpoints before the turns that an operation brought, and those that the agent itself set.
fn turns(
    store: &dyn Store,
    session: &Session,
    (state, by): (&State, &Operation),
    runs: &[Run],
) -> Result<Vec<Checkpoint>, SessionError> {
    let mut given: Vec<Checkpoint> = Vec::new();
    let mut view = View::new(store, session, Position::default(), None);
    for n in EntryNumber::each(by.added()) {
        let record = view.as_derived(n)?;
        let own = match record.kind {
            Kind::Meta if session.format.traits().has_checkpoints => {
                let line = view.line(n)?;
                Raw::object(&line).and_then(|record| session.format.checkpoint(record))
            }
            _ => None,
        };
        if own.is_none() && record.kind != Kind::User {
            continue;
        }
        let Some((generation, horizon)) = spot(n, by, runs) else { continue };
        view = view.moved(Position { generation, head: None, horizon });
        let last = PlaceNumber::new(horizon).earlier().next_back();
        let last = last.map(|last| view.at(last)).transpose()?.flatten();
        let has_markers = session.format.traits().has_checkpoints;
        if let (None, Some(last), true) = (&own, last, has_markers)
            && is_marked(&view, last)?
        {
            continue;
        }
        let head = match record.parent {
            Parent::Entry(parent) => Some(above(&view, session, parent)?),
            Parent::Root | Parent::Missing => None,
        };
        let place = Position { generation, head, horizon };
        let is_given = match given.last() {
            Some(newest) => newest.place == place,
            None => state.checkpoint_at(place).is_some(),
        };
        if !is_given {
            let number = state.next_checkpoint().plus(given.len() as u64);
            given.push(Checkpoint { n: number, place, before: Some(n), own, note: None });
        }
    }
    Ok(given)
}

/// Returns to which place its generation had grown when an entry came. One that is in none, because another is in its
/// place, came where that one is.
fn spot(n: EntryNumber, by: &Operation, runs: &[Run]) -> Option<(GenerationNumber, u64)> {
    EntryNumber::each(n..by.added().end).find_map(|n| {
        let run = runs.iter().find(|run| run.entries().contains(&n))?;
        Some((run.generation, run.start + n.since(run.first)))
    })
}

/// Returns the entry that a turn follows, which names this one as its parent.
fn above(
    view: &View<'_>,
    session: &Session,
    parent: EntryNumber,
) -> Result<EntryNumber, SessionError> {
    let parent = view.bearer(parent)?;
    match view.as_derived(parent)?.kind {
        Kind::Summary => Ok(session.format.last_kept(view, parent)?),
        _ => Ok(parent),
    }
}
