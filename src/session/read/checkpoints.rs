//! Checkpoints: numbered places in a session, and their entries.

use std::{collections::BTreeMap, fmt, ops::Range};

use crate::{
    json::Raw,
    model::{
        Block, Checkpoint, CheckpointNumber, Command, EntryId, EntryNumber, Image, Kind, Message,
        OperationNumber, PlaceNumber, Position, Run, Timestamp,
    },
    session::{
        Damaged, Damages, Session, SessionError, Stored, View, derive::words, entry_ids,
        graph::replay::Replays,
    },
    wire::{Failure, Graph},
};

/// A checkpoint as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Shown {
    /// The checkpoint.
    #[serde(flatten)]
    pub checkpoint: Checkpoint,
    /// The operation that made the checkpoint.
    pub operation: OperationNumber,
    /// The agent's own number for the checkpoint, such as `kimi:3`.
    pub own: Option<String>,
    /// The entry just before the checkpoint; `null` at the start of the session.
    pub entry: Option<EntryId>,
    /// The user's turn after it.
    #[serde(skip)]
    pub turn: Option<EntryNumber>,
    /// The first entry of the checkpoint's turn.
    pub before: Option<EntryId>,
    /// The first words of that turn.
    pub words: Option<String>,
    /// The time of that turn; if there is no turn, the time of the checkpoint.
    pub time: Option<Timestamp>,
    /// The damage of that turn, which then has no text.
    #[serde(skip)]
    pub damage: Option<String>,
}

impl Shown {
    /// Returns true if the entry before it is damaged, so that only its number is known.
    pub fn is_nowhere(&self) -> bool {
        self.entry.is_none() && self.checkpoint.place.head.is_some()
    }

    /// Returns the turn as a damaged entry, if it is damaged.
    pub fn damaged(&self) -> Option<Damaged> {
        Some(Damaged { entry: self.before, problem: self.damage.clone()? })
    }
}

/// Where the current branch ends, relative to the checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    /// Just before the turn with this number.
    Before(CheckpointNumber),
    /// At a checkpoint that has no turn, or after a note there and the answers to it.
    At(CheckpointNumber),
    /// In the turn with this number, or at its end.
    In(CheckpointNumber),
}

impl Spot {
    /// Returns the number.
    pub fn checkpoint(self) -> CheckpointNumber {
        match self {
            Self::Before(n) | Self::At(n) | Self::In(n) => n,
        }
    }

    /// Returns where a checkpoint is.
    fn of(checkpoint: &Checkpoint) -> Self {
        match checkpoint.before {
            Some(_) => Self::Before(checkpoint.n),
            None => Self::At(checkpoint.n),
        }
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Before(n) => write!(f, "just before @{n}"),
            Self::At(n) => write!(f, "at @{n}"),
            Self::In(n) => write!(f, "at the end of @{n}"),
        }
    }
}

/// How many checkpoints are read at once, newest first.
const BATCH: u64 = 256;
/// How many of the last entries are read first to find the current spot, and the factor for each next time.
const LOOKED: usize = 64;
/// How many checkpoints an error names if none matches.
const NEAREST: usize = 3;

/// Returns the checkpoints with these numbers that are neither undone nor lost, each with the operation that set it, in order.
fn standing(
    session: &Stored<'_>,
    range: Range<CheckpointNumber>,
) -> Result<Vec<(OperationNumber, Checkpoint)>, SessionError> {
    let mut given = session.store.checkpoints(session.key, range)?;
    let undone = session.state.undone();
    given.retain(|(operation, _)| !undone.contains(operation));
    Ok(given)
}

/// Returns the newest checkpoint that is not undone.
pub(crate) fn newest(session: &Stored<'_>) -> Result<Option<Checkpoint>, SessionError> {
    let mut end = session.state.next_checkpoint();
    while end > CheckpointNumber::FIRST {
        let start = end.minus(BATCH);
        if let Some((_, newest)) = standing(session, start..end)?.pop() {
            return Ok(Some(newest));
        }
        end = start;
    }
    Ok(None)
}

/// Returns the checkpoints before or after entries from this one on.
///
/// A checkpoint is numbered once its entry exists, so numbers and entries increase together: the search ends at a turn before
/// `entry`.
pub(crate) fn since(
    session: &Stored<'_>,
    entry: EntryNumber,
) -> Result<Vec<Checkpoint>, SessionError> {
    let mut found = Vec::new();
    each_since(session, entry, &mut |checkpoint| found.push(checkpoint))?;
    found.sort_by_key(|checkpoint| checkpoint.n);
    Ok(found)
}

/// Like [`since`], in no particular order.
fn each_since(
    session: &Stored<'_>,
    entry: EntryNumber,
    each: &mut dyn FnMut(Checkpoint),
) -> Result<(), SessionError> {
    // An agent's own record may be far before the entries that belong to it.
    let entry = if session.format.traits().has_checkpoints { EntryNumber::FIRST } else { entry };
    let mut end = session.state.next_checkpoint();
    while end > CheckpointNumber::FIRST {
        let start = end.minus(BATCH);
        let batch = standing(session, start..end)?;
        let passed = batch.iter().any(|(_, c)| c.before.is_some_and(|turn| turn < entry));
        for (_, checkpoint) in batch {
            each(checkpoint);
        }
        end = if passed { CheckpointNumber::FIRST } else { start };
    }
    Ok(())
}

/// Returns the checkpoints that are not undone, in order.
pub fn checkpoints(session: &Stored<'_>) -> Result<Vec<Shown>, SessionError> {
    newest_checkpoints(session, usize::MAX)
}

/// Returns the number of checkpoints that are not undone.
pub(crate) fn count(session: &Stored<'_>) -> Result<u64, SessionError> {
    Ok(standing(session, CheckpointNumber::ALL)?.len() as u64)
}

/// Returns the newest checkpoints that are not undone, at most `wanted`, in order.
pub fn newest_checkpoints(session: &Stored<'_>, wanted: usize) -> Result<Vec<Shown>, SessionError> {
    let mut newest = Vec::new();
    each_checkpoint(session, wanted, |shown| {
        newest.push(shown);
        Ok::<_, SessionError>(())
    })?;
    Ok(newest)
}

/// Passes on the newest checkpoints that are not undone, at most `wanted`, in order, reading a batch at a time.
pub fn each_checkpoint<E: From<SessionError>>(
    session: &Stored<'_>,
    wanted: usize,
    mut each: impl FnMut(Shown) -> Result<(), E>,
) -> Result<(), E> {
    let read = |range| standing(session, range);
    let end = session.state.next_checkpoint();
    let mut start = CheckpointNumber::FIRST;
    if wanted < usize::MAX {
        let mut left = wanted;
        start = end;
        while start > CheckpointNumber::FIRST && left > 0 {
            let batch = read(start.minus(BATCH)..start)?;
            start = match batch.len().checked_sub(left).and_then(|before| batch.get(before)) {
                Some((_, first)) => first.n,
                None => start.minus(BATCH),
            };
            left = left.saturating_sub(batch.len());
        }
    }
    while start < end {
        let next = start.plus(BATCH).min(end);
        for shown in shown(session, read(start..next)?)? {
            each(shown)?;
        }
        start = next;
    }
    Ok(())
}

/// Returns where the current branch ends. If several checkpoints are there, the one that the newest operation reverted to is
/// preferred, then the first.
pub fn standing_at(session: &Stored<'_>) -> Result<Option<Spot>, SessionError> {
    let Some(position) = session.state.position() else { return Ok(None) };
    let next = session.state.next_operation();
    let newest = session.store.operations(session.key, next.minus(1)..next)?.pop();
    let named = newest.and_then(|operation| match operation.command {
        Command::Revert { checkpoint, .. } => checkpoint,
        _ => None,
    });
    let view = session.view(position);
    let replays = Replays::of(session)?;
    // The window grows until it contains a turn, so a long session costs no more than its last turn.
    let (mut wanted, mut known) = (LOOKED, None);
    loop {
        let path = view.path(wanted)?.entries;
        if known == Some(path.len()) {
            return Ok(None);
        }
        let first = path.iter().min().map(|first| replays.reach(*first));
        let given = since(session, first.unwrap_or(EntryNumber::FIRST))?;
        let at = |entry: Option<EntryNumber>| {
            let entry = entry.map(|entry| replays.first(entry));
            let mut here = given.iter().filter(|given| given.place.head == entry);
            let first = here.clone().next();
            here.find(|given| Some(given.n) == named).or(first).map(Spot::of)
        };
        if known.is_none()
            && let Some(spot) = at(path.last().copied())
        {
            return Ok(Some(spot));
        }
        let places = Places::of(session, replays.clone(), |each| {
            given.iter().cloned().for_each(each);
            Ok(())
        })?;
        for (place, &entry) in path.iter().enumerate().rev() {
            // A note from a revert comes after the place that it reverted to.
            if view.record(entry)?.kind == Kind::Note {
                // Records outside of the conversation may be between the place and the note.
                let mut found = None;
                let mut before = place;
                while found.is_none() {
                    let above = match before.checked_sub(1).and_then(|n| path.get(n)) {
                        Some(above) => Some(*above),
                        None => view.parent(path.get(before).copied().unwrap_or(entry))?,
                    };
                    found = at(above);
                    let is_beside = match above {
                        Some(above) => before > 0 && !view.record(above)?.kind.is_talk(),
                        None => false,
                    };
                    if !is_beside {
                        break;
                    }
                    before -= 1;
                }
                if let Some(spot) = found {
                    let mut is_talk = false;
                    for &later in path.iter().skip(place + 1) {
                        is_talk |= view.record(later)?.kind.is_talk();
                    }
                    let n = spot.checkpoint();
                    return Ok(Some(if is_talk { Spot::At(n) } else { spot }));
                }
            }
            if let Some(found) = places.before(&view, entry)? {
                // An agent that restarts its numbers in another file: the checkpoint is in that one.
                let is_here =
                    found.own.is_none_or(|own| own.place.generation == position.generation);
                return Ok(is_here.then_some(Spot::In(found.n)));
            }
        }
        (wanted, known) = (wanted * LOOKED, Some(path.len()));
    }
}

/// Returns where a checkpoint is.
pub(crate) fn spot_of(
    session: &Stored<'_>,
    n: CheckpointNumber,
) -> Result<Option<Spot>, SessionError> {
    Ok(standing(session, n.alone())?.pop().map(|(_, found)| Spot::of(&found)))
}

/// Returns the turn directly after a checkpoint.
pub(crate) fn turn_of(
    session: &Stored<'_>,
    n: CheckpointNumber,
) -> Result<Option<EntryNumber>, SessionError> {
    let found = standing(session, n.alone())?;
    let turns = turns(session, found.iter().map(|(_, checkpoint)| checkpoint))?;
    Ok(turns.into_iter().flatten().next())
}

/// Returns the number of the turn after another one on the current path, or why there is none.
pub(crate) fn next_turn(
    session: &Stored<'_>,
    n: CheckpointNumber,
) -> Result<Result<CheckpointNumber, &'static str>, SessionError> {
    let Some(turn) = turn_of(session, n)? else {
        return Ok(Err("it is not a turn"));
    };
    let position = session.state.position().unwrap_or_default();
    let view = session.view(position);
    let places = Places::since(session, turn)?;
    let mut limit = LOOKED;
    loop {
        let path = view.path(limit)?.entries;
        let at = path.iter().rposition(|entry| places.replays.first(*entry) == turn);
        if let Some(at) = at {
            for &entry in path.iter().skip(at + 1) {
                let is_turn = view.as_derived(entry)?.kind == Kind::User;
                if let Some(next) = places.before(&view, entry)?.filter(|_| is_turn) {
                    return Ok(Ok(next.n));
                }
            }
            return Ok(Err("no turn follows it"));
        }
        if path.len() < limit {
            return Ok(Err("it is not on the current branch"));
        }
        limit = limit.saturating_mul(4);
    }
}

/// Adds their entries and turns to checkpoints.
fn shown(
    session: &Stored<'_>,
    given: Vec<(OperationNumber, Checkpoint)>,
) -> Result<Vec<Shown>, SessionError> {
    let turns = turns(session, given.iter().map(|(_, checkpoint)| checkpoint))?;
    let wanted: Vec<EntryNumber> = turns.iter().flatten().copied().collect();
    let heads = given.iter().filter_map(|(_, checkpoint)| checkpoint.place.head);
    let ids = entry_ids(session.store, session, &heads.chain(wanted.iter().copied()).collect())?;
    let (mut words, mut times) = (BTreeMap::new(), BTreeMap::new());
    let damages = Damages::gathered();
    damages.lines(session.store, session.key, &wanted, &mut |n, line| {
        let record = Raw::object(&line);
        let messages = record.map(|record| session.format.messages(record)).unwrap_or_default();
        let first = messages.first();
        let is_image = |block: &Block| matches!(block, Block::Image(_));
        let text = first.map(Message::text).filter(|text| !text.trim().is_empty());
        let image = first.filter(|message| message.blocks.iter().any(is_image));
        words.insert(n, text.or(image.map(|_| Image::WORDS.to_owned())).unwrap_or_default());
        times.extend(record.and_then(|record| Some((n, session.format.envelope(record).time?))));
    })?;
    let mut operations = BTreeMap::new();
    // For an agent's own checkpoint, the time of its operation says nothing about when it was set.
    let is_put = |(_, checkpoint): &&(OperationNumber, Checkpoint)| {
        checkpoint.before.is_none() && checkpoint.own.is_none()
    };
    for (operation, _) in given.iter().filter(is_put) {
        let put = session.store.operations(session.key, operation.alone())?.pop();
        operations.extend(put.map(|put| (*operation, put.at)));
    }
    let show =
        |((operation, checkpoint), turn): ((OperationNumber, Checkpoint), Option<EntryNumber>)| {
            let words = turn.and_then(|n| words.get(&n).cloned());
            let own = own_selector(session, &checkpoint);
            let entry = checkpoint.place.head.and_then(|head| ids.get(&head).copied());
            let before = turn.and_then(|turn| ids.get(&turn).copied());
            let damage = turn.and_then(|n| damages.of(n));
            let put = operations.get(&operation);
            let time = turn.map_or(put, |turn| times.get(&turn)).copied();
            Shown { checkpoint, operation, own, entry, turn, before, words, time, damage }
        };
    Ok(given.into_iter().zip(turns).map(show).collect())
}

/// Returns the turns after checkpoints; for an agent's own record, the next turn in its file.
pub(crate) fn turns<'c>(
    session: &Stored<'_>,
    checkpoints: impl Iterator<Item = &'c Checkpoint>,
) -> Result<Vec<Option<EntryNumber>>, SessionError> {
    let mut turns = Vec::new();
    let start = Position::default();
    let mut view = session.view(start);
    let mut generation = start.generation;
    for checkpoint in checkpoints {
        if checkpoint.own.is_none() {
            turns.push(checkpoint.before);
            continue;
        }
        if generation != checkpoint.place.generation {
            generation = checkpoint.place.generation;
            let horizon = session.state.ends.get(&generation).map_or(0, Run::end);
            view = view.moved(Position { generation, head: None, horizon });
        }
        let mut place = PlaceNumber::new(checkpoint.place.horizon);
        turns.push(loop {
            place = place.next();
            let Some(entry) = view.at(place)? else { break None };
            match view.as_derived(entry)?.kind {
                Kind::User => break Some(entry),
                Kind::System | Kind::Opaque => {}
                _ => break None,
            }
        });
    }
    Ok(turns)
}

/// Returns the record with which an agent set the checkpoint before an entry. Between the two are only records that are outside
/// of the conversation or contain the number. Numbers are assigned when lines arrive, so records are taken as derived, ignoring
/// others that later came to the same physical line.
fn marker(
    view: &View<'_>,
    mut at: Option<EntryNumber>,
    sets: impl Fn(EntryNumber) -> Result<bool, Failure>,
) -> Result<Option<EntryNumber>, Failure> {
    while let Some(entry) = at {
        match view.as_derived(entry)?.kind {
            Kind::Meta if sets(entry)? => return Ok(Some(entry)),
            kind if !kind.is_talk() => at = view.parent(entry)?,
            _ => break,
        }
    }
    Ok(None)
}

/// Returns true if an agent's own checkpoint follows an entry; the next turn then belongs to it.
pub(crate) fn is_marked(view: &View<'_>, last: EntryNumber) -> Result<bool, Failure> {
    let sets = |entry| {
        let line = view.line(entry)?;
        Ok(Raw::object(&line).and_then(|record| view.format.checkpoint(record)).is_some())
    };
    Ok(marker(view, Some(last), sets)?.is_some())
}

/// A checkpoint before an entry.
#[derive(Clone, Copy)]
pub(crate) struct Given<'p> {
    /// Its number.
    pub(crate) n: CheckpointNumber,
    /// The whole checkpoint, if the agent set it.
    pub(crate) own: Option<&'p Checkpoint>,
}

/// The checkpoints of a session, by adjacent entry.
pub(crate) struct Places {
    /// Those before turns, sorted by turn and number.
    before: Vec<(EntryNumber, CheckpointNumber)>,
    /// Those of them that an agent set.
    own: BTreeMap<CheckpointNumber, Checkpoint>,
    behind: BTreeMap<EntryNumber, Vec<Checkpoint>>,
    has_markers: bool,
    replays: Replays,
}

impl Places {
    /// Gathers the checkpoints before or after entries from this one on.
    pub(crate) fn since(session: &Stored<'_>, entry: EntryNumber) -> Result<Self, SessionError> {
        let replays = Replays::of(session)?;
        let entry = replays.reach(entry);
        Self::of(session, replays, |each| each_since(session, entry, each))
    }

    /// Gathers the checkpoints that `checkpoints` passes on.
    fn of(
        session: &Session,
        replays: Replays,
        checkpoints: impl FnOnce(&mut dyn FnMut(Checkpoint)) -> Result<(), SessionError>,
    ) -> Result<Self, SessionError> {
        let mut before = Vec::new();
        let mut own = BTreeMap::new();
        let mut behind: BTreeMap<EntryNumber, Vec<Checkpoint>> = BTreeMap::new();
        checkpoints(&mut |checkpoint| match (checkpoint.before, checkpoint.place.head) {
            (Some(turn), _) => {
                before.push((turn, checkpoint.n));
                own.extend(checkpoint.own.is_some().then_some((checkpoint.n, checkpoint)));
            }
            (None, Some(head)) => behind.entry(head).or_default().push(checkpoint),
            (None, None) => {}
        })?;
        before.sort_unstable();
        for behind in behind.values_mut() {
            behind.sort_by_key(|checkpoint| checkpoint.n);
        }
        let has_markers = session.format.traits().has_checkpoints;
        Ok(Self { before, own, behind, has_markers, replays })
    }

    /// Returns the checkpoint before an entry.
    pub(crate) fn before(
        &self,
        view: &View<'_>,
        entry: EntryNumber,
    ) -> Result<Option<Given<'_>>, Failure> {
        let met = |entry: EntryNumber| {
            let turn = self.replays.first(entry);
            let until = self.before.partition_point(|(before, _)| *before <= turn);
            let last = until.checked_sub(1).and_then(|last| self.before.get(last));
            let (_, n) = last.filter(|(before, _)| *before == turn)?;
            Some(Given { n: *n, own: self.own.get(n) })
        };
        if let Some(found) = met(entry) {
            return Ok(Some(found));
        }
        if !self.has_markers || !view.as_derived(entry)?.kind.is_talk() {
            return Ok(None);
        }
        let sets = |entry| Ok(met(entry).is_some_and(|found| found.own.is_some()));
        let marker = marker(view, view.parent(entry)?, sets)?;
        Ok(marker.and_then(met))
    }

    /// Returns true if an entry of a path begins a turn of the user.
    pub(crate) fn is_turn(&self, view: &View<'_>, entry: EntryNumber) -> Result<bool, Failure> {
        Ok(view.record(entry)?.kind == Kind::User && self.before(view, entry)?.is_some())
    }

    /// Returns the checkpoints set directly after an entry.
    pub(crate) fn behind(&self, entry: EntryNumber) -> &[Checkpoint] {
        let entry = self.replays.first(entry);
        self.behind.get(&entry).map_or(&[], Vec::as_slice)
    }
}

/// Returns the end of the turn that is `back` turns before the head's, or the start of the session before the first turn.
pub(crate) fn turns_before(
    view: &View<'_>,
    session: &Stored<'_>,
    back: usize,
) -> Result<Option<Position>, SessionError> {
    let Some(head) = view.position.head else { return Ok(None) };
    let mut limit = LOOKED;
    loop {
        let path = view.path(limit)?.entries;
        let is_whole = path.len() < limit;
        let first = path.iter().min().copied().unwrap_or_default();
        let turns = Places::since(session, first)?;
        // An agent's own records may follow the head.
        let end = path.iter().rposition(|entry| *entry == head).map_or(path.len(), |at| at + 1);
        let mut left = back;
        for (at, &entry) in path.iter().enumerate().take(end).rev() {
            left -= usize::from(turns.is_turn(view, entry)?);
            if left == 0 {
                let before = at.checked_sub(1).and_then(|at| path.get(at).copied());
                let generation = view.position.generation;
                match before {
                    Some(_) => return Ok(Some(Position { head: before, ..view.position })),
                    None if is_whole => {
                        return Ok(Some(Position { generation, ..Position::default() }));
                    }
                    None => break,
                }
            }
        }
        if is_whole {
            return Ok(None);
        }
        limit = limit.saturating_mul(LOOKED);
    }
}

/// Returns the checkpoint with an agent's own number: the first one on the current path, as the agent counts.
fn own(session: &Stored<'_>, wanted: &str) -> Result<Option<Checkpoint>, SessionError> {
    let mut found = standing(session, CheckpointNumber::ALL)?;
    found.retain(|(_, checkpoint)| checkpoint.own.as_deref() == Some(wanted));
    let Some(position) = session.state.position().filter(|_| !found.is_empty()) else {
        return Ok(None);
    };
    let view = session.view(position);
    let mut on_path = BTreeMap::new();
    for (place, entry) in view.path(usize::MAX)?.entries.into_iter().enumerate() {
        on_path.entry(entry).or_insert(place);
    }
    let replays = Replays::of(session)?;
    let on_path: BTreeMap<EntryNumber, usize> =
        on_path.into_iter().map(|(entry, place)| (replays.first(entry), place)).collect();
    let place = |found: &Checkpoint| found.before.and_then(|entry| on_path.get(&entry).copied());
    let candidates = found.into_iter().map(|(_, found)| found);
    let candidates = candidates.filter_map(|found| Some((place(&found)?, found)));
    Ok(candidates.min_by_key(|(place, _)| *place).map(|(_, found)| found))
}

/// Returns the checkpoint for a number as typed, or an error with the nearest ones.
pub(crate) fn find(session: &Stored<'_>, wanted: &str) -> Result<Checkpoint, SessionError> {
    if let Ok(n) = wanted.parse::<CheckpointNumber>()
        && let Some((_, found)) = standing(session, n.alone())?.pop()
    {
        return followed(session, found);
    }
    if let Some(number) = own_number(session, wanted)
        && let Some(found) = own(session, number)?
    {
        return followed(session, found);
    }
    let aim = wanted.parse::<i128>().unwrap_or(i128::MAX);
    let mut nearest = standing(session, CheckpointNumber::ALL)?;
    nearest.sort_by_key(|(_, checkpoint)| i128::from(checkpoint.n.get()).abs_diff(aim));
    nearest.truncate(NEAREST);
    nearest.sort_by_key(|(_, checkpoint)| checkpoint.n);
    let describe = |shown: Shown| {
        let note = shown.checkpoint.note.map(|note| note.to_text());
        let said = shown.words.map(|said| words(&said).unwrap_or(said));
        let words = note.or(said).unwrap_or_default();
        (shown.checkpoint.n, words)
    };
    Err(SessionError::NoCheckpoint {
        wanted: wanted.to_owned(),
        nearest: shown(session, nearest)?.into_iter().map(describe).collect(),
    })
}

/// Maps a checkpoint to its current place, if its generation was rewritten.
fn followed(session: &Stored<'_>, mut found: Checkpoint) -> Result<Checkpoint, SessionError> {
    found.place = Replays::of(session)?.follow(session, found.place)?;
    Ok(found)
}

/// Returns the selector of an agent's own number, such as `kimi:3`.
pub(crate) fn own_selector(session: &Session, checkpoint: &Checkpoint) -> Option<String> {
    checkpoint.own.as_ref().map(|own| format!("{}:{own}", session.format.name()))
}

/// Returns the agent's own number in a selector such as `kimi:3`.
pub(crate) fn own_number<'w>(session: &Session, wanted: &'w str) -> Option<&'w str> {
    wanted.strip_prefix(session.format.name())?.strip_prefix(':')
}
