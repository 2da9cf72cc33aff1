//! Selecting: finds the session or the entry that you name.
//!
//! An entry is `HEAD`, `@N` (checkpoint N), `kimi:N` (the agent's own checkpoint N on the current path), a branch, one of these
//! with `~N` (N turns before it), or the first digits of an entry's id or of its record's uuid. When you name a place to go back
//! to, a bare number is a checkpoint.
//!
//! A session is the beginning of its id, with its format and a colon in front if two formats share the id, or its title.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use crate::{
    json::Raw,
    model::{Checkpoint, EntryNumber, IdPrefix, NameTag, Position, SessionName},
    session::{
        Damages, Session, SessionError, Stored,
        read::{checkpoints, listing},
    },
    store::{Listed, SessionFilter, Store, StoreError, Within},
    wire::{self, Graph},
};

/// How many matches an error lists.
const LISTED: usize = 8;
/// The minimum number of characters in an abbreviated session id.
const SHORT: usize = 8;
/// A number with at least this many digits, the length in which ids are shown, may be the beginning of an entry id.
const DIGITS: usize = 8;
/// The number of digits of an id.
const LONGEST: usize = 64;

/// What a selector selects: an entry, and the position from which it is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The position from which a path is read. Its head is the entry.
    pub position: Position,
    /// The checkpoint, if one was named.
    pub checkpoint: Option<Checkpoint>,
    /// The branch, if one was named or implied.
    pub branch: Option<String>,
}

impl Target {
    /// Returns the entry, or `None` before the first.
    pub fn entry(&self) -> Option<EntryNumber> {
        self.position.head
    }
}

/// The minimum length of the beginning of a title.
const TITLE: usize = 3;

/// Finds a session by the beginning of its id or title. Without a word, returns the newest session of a folder, or of the nearest
/// parent folder with sessions.
pub fn find_session(
    store: &dyn Store,
    wanted: Option<&str>,
    folder: &Path,
) -> Result<Session, SessionError> {
    let Some(wanted) = wanted else {
        // A sub-agent works in the same folder as its session but is not meant here.
        for folder in folder.ancestors() {
            let here = SessionFilter {
                folder: Some(Within::At(folder.to_string_lossy().into_owned())),
                limit: Some(1),
                ..SessionFilter::default()
            };
            if let Some(newest) = sessions(store, &here)?.pop() {
                return known(newest);
            }
        }
        return Err(SessionError::NoSessionHere(folder.to_owned()));
    };
    if wanted.is_empty() {
        // Every id begins with an empty word, which is more likely an unset variable in a script.
        return Err(SessionError::NoSession(String::new()));
    }
    let all = SessionFilter { hidden: true, ..SessionFilter::default() };
    if let Some((format, id)) =
        wanted.split_once(':').filter(|(name, _)| wire::by_name(name).is_some())
        && let Some(found) = alone(by_beginning(store, id, Some(format))?, wanted)?
    {
        return known(found);
    }
    if let Some(found) = alone(by_beginning(store, wanted, None)?, wanted)? {
        return known(found);
    }
    let mut titled = sessions(store, &SessionFilter { title: Some(wanted.to_owned()), ..all })?;
    let is_whole = |listed: &Listed| listed.card.title.as_deref() == Some(wanted);
    if titled.iter().any(is_whole) || wanted.chars().count() < TITLE {
        titled.retain(is_whole);
    }
    known(alone(titled, wanted)?.ok_or_else(|| SessionError::NoSession(wanted.to_owned()))?)
}

/// Returns the sessions that match a filter. Without a match, a damaged session is an error, because it could be the one meant.
fn sessions(store: &dyn Store, filter: &SessionFilter) -> Result<Vec<Listed>, StoreError> {
    let mut found = listing::listed(store, filter)?;
    match found.damaged.pop() {
        Some((_, error)) if found.listed.is_empty() => Err(error),
        _ => Ok(found.listed),
    }
}

/// Returns the sessions whose id begins with a word. A session with exactly this id takes precedence, and sub-agents are returned
/// only if no other session matches.
fn by_beginning(
    store: &dyn Store,
    wanted: &str,
    format: Option<&str>,
) -> Result<Vec<Listed>, SessionError> {
    let (prefix, agent) = wanted.rsplit_once('/').unwrap_or((wanted, ""));
    if prefix.is_empty() {
        return Ok(Vec::new());
    }
    // The ids of sub-agents begin with their session's id.
    let every = SessionFilter {
        prefix: Some(prefix.to_owned()),
        format: format.map(str::to_owned),
        hidden: true,
        sub_agents: true,
        ..SessionFilter::default()
    };
    let is_exact = |listed: &Listed| listed.name.id == wanted;
    let mut all = sessions(store, &every)?;
    // Look up which of them are sub-agents only if that decides.
    let exact = all.iter().filter(|listed| is_exact(listed)).count();
    if exact == 1 {
        all.retain(is_exact);
        return Ok(all);
    }
    if let [one] = all.as_slice()
        && is_meant(&one.name.id, wanted)
    {
        return Ok(all);
    }
    let mut found = sessions(store, &SessionFilter { sub_agents: false, ..every })?;
    if !found.iter().any(is_exact) {
        all.retain(|listed| is_meant(&listed.name.id, wanted));
        found = if found.is_empty() || exact > 0 || !agent.is_empty() { all } else { found };
    }
    if found.iter().any(is_exact) {
        found.retain(is_exact);
    }
    Ok(found)
}

/// Returns the session if exactly one was found.
fn alone(mut found: Vec<Listed>, wanted: &str) -> Result<Option<Listed>, SessionError> {
    if found.len() > 1 {
        return Err(SessionError::AmbiguousSession { wanted: wanted.to_owned(), matches: found });
    }
    Ok(found.pop())
}

/// Returns a name of at least eight characters with which [`find_session`] finds a session. It is usually the shortest: only the
/// ids next to its own in sort order are compared.
pub fn short_name(store: &dyn Store, session: &Session) -> Result<String, SessionError> {
    let SessionName { format, id } = &session.name;
    let others = store.beside(&session.name)?;
    let is_shared = others.iter().any(|other| other.id == *id && other.format != *format);
    if is_shared || id.split_once(':').is_some_and(|(word, _)| wire::by_name(word).is_some()) {
        return Ok(format!("{format}:{id}"));
    }
    let mut least = SHORT;
    if let Some((above, _)) = id.rsplit_once('/') {
        let above = SessionName { format: format.clone(), id: above.to_owned() };
        let is_longer =
            |other: &SessionName| other.id != above.id && other.id.starts_with(&above.id);
        if store.beside(&above)?.iter().any(is_longer) {
            // In a sub-agent's name both parts may be shortened, and here the first part would be ambiguous.
            return Ok(id.clone());
        }
        least = above.id.chars().count() + 2;
    }
    let shared = |other: &str| id.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let others = others.iter().filter(|other| other.id != *id);
    let shared = others.map(|other| shared(&other.id)).max().unwrap_or(0);
    Ok(id.chars().take(least.max(shared + 1)).collect())
}

/// Returns true if an id begins with a word. In a sub-agent's id, the session's part and its own part may each be shortened.
fn is_meant(id: &str, wanted: &str) -> bool {
    let split = |text: &'_ str| text.rsplit_once('/').map(|(a, b)| (a.to_owned(), b.to_owned()));
    let both = split(id).zip(split(wanted));
    id.starts_with(wanted)
        || both
            .is_some_and(|(id, wanted)| id.0.starts_with(&wanted.0) && id.1.starts_with(&wanted.1))
}

fn known(listed: Listed) -> Result<Session, SessionError> {
    Session::from_store(listed.key, listed.name)
}

/// Finds a place: an entry, or a checkpoint by its number.
pub fn find_place(session: &Stored<'_>, wanted: &str) -> Result<Target, SessionError> {
    let digits = wanted.strip_prefix('-').unwrap_or(wanted);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return find_entry(session, wanted);
    }
    match find_base(session, &format!("@{wanted}")) {
        // The beginning of an id may consist of decimal digits only.
        Err(SessionError::NoCheckpoint { .. }) if digits == wanted && digits.len() >= DIGITS => {
            find_entry(session, wanted)
        }
        found => found,
    }
}

/// Finds an entry, or the end of the turn that is `~N` turns before it.
fn find_entry(session: &Stored<'_>, wanted: &str) -> Result<Target, SessionError> {
    let missing = || SessionError::NoEntry(wanted.to_owned());
    let (base, back) = match wanted.rsplit_once('~') {
        None => (wanted, 0),
        Some((base, "")) => (base, 1),
        Some((base, back)) => (base, back.parse::<usize>().map_err(|_| missing())?),
    };
    let mut target = find_base(session, base).map_err(|error| match error {
        SessionError::NoEntry(_) => missing(),
        other => other,
    })?;
    if back > 0 {
        let view = session.view(target.position);
        target.position = checkpoints::turns_before(&view, session, back)?.ok_or_else(missing)?;
        // The target is no longer at the checkpoint or at the end of the branch.
        (target.checkpoint, target.branch) = (None, None);
    }
    Ok(target)
}

fn find_base(session: &Stored<'_>, wanted: &str) -> Result<Target, SessionError> {
    let missing = || SessionError::NoEntry(wanted.to_owned());
    if wanted == "HEAD" {
        let position = session.state.position().ok_or_else(missing)?;
        let branch = Some(session.state.current().to_owned());
        return Ok(Target { position, checkpoint: None, branch });
    }
    let own = checkpoints::own_number(session, wanted).map(|_| wanted);
    if let Some(number) = wanted.strip_prefix('@').or(own) {
        let checkpoint = checkpoints::find(session, number)?;
        let position = checkpoint.place;
        return Ok(Target { position, checkpoint: Some(checkpoint), branch: None });
    }
    if let Some(&position) = session.state.branches.get(wanted) {
        return Ok(Target { position, checkpoint: None, branch: Some(wanted.to_owned()) });
    }
    if wanted.is_empty() {
        // Every id begins with an empty word.
        return Err(missing());
    }
    let found = by_id(session, wanted)?;
    match found.as_slice() {
        [] => Err(missing()),
        [entry] => Ok(Target { position: place(session, *entry)?, checkpoint: None, branch: None }),
        many => {
            let mut ids = Vec::new();
            for &n in many.iter().take(LISTED) {
                ids.extend(
                    session.store.entries(session.key, n.alone())?.iter().map(|entry| entry.id),
                );
            }
            let short = |digits: usize| ids.iter().map(move |id| format!("{id:.digits$}"));
            let differ =
                |digits: &usize| short(*digits).collect::<BTreeSet<_>>().len() == ids.len();
            let digits = (DIGITS..LONGEST).find(differ).unwrap_or(LONGEST);
            let matches = short(digits).collect();
            Err(SessionError::AmbiguousEntry { wanted: wanted.to_owned(), matches })
        }
    }
}

/// Returns the entries whose id, or whose record's name, begins with a word. Of several entries with one name, returns the last.
fn by_id(session: &Stored<'_>, wanted: &str) -> Result<Vec<EntryNumber>, SessionError> {
    let mut found = match IdPrefix::parse(wanted) {
        Some(prefix) => session.store.find(session.key, &prefix)?,
        None => Vec::new(),
    };
    let (low, high) = NameTag::bounds(wanted);
    let candidates = session.store.named(session.key, low, high)?;
    let mut bearers: BTreeMap<String, Vec<EntryNumber>> = BTreeMap::new();
    let mut damaged = Vec::new();
    Damages::gathered().each_line(session.store, session.key, &candidates, &mut |n, line| {
        let Some(line) = line else {
            damaged.push(n);
            return;
        };
        let name = Raw::object(&line).and_then(|record| session.format.envelope(record).name);
        if let Some(name) = name.filter(|name| name.starts_with(wanted)) {
            bearers.entry(name).or_default().push(n);
        }
    })?;
    for n in damaged {
        // A damaged record still has its tag, which identifies a complete name.
        let record = session.store.records(session.key, n.alone())?.pop();
        if record.and_then(|record| record.name) == Some(NameTag::of(wanted)) {
            bearers.entry(wanted.to_owned()).or_default().push(n);
        }
    }
    let mut named = BTreeMap::new();
    for (name, bearers) in bearers {
        named.extend(seen(session, &bearers)?.map(|n| (name, n)));
    }
    if let Some(exact) = named.get(wanted) {
        return Ok(vec![*exact]);
    }
    found.extend(named.into_values());
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Returns which entry with a name is meant: the last in the current generation, or else the newest.
fn seen(
    session: &Stored<'_>,
    bearers: &[EntryNumber],
) -> Result<Option<EntryNumber>, SessionError> {
    if let ([] | [_], last) = (bearers, bearers.last()) {
        return Ok(last.copied());
    }
    let Some(position) = session.state.position() else { return Ok(bearers.last().copied()) };
    let view = session.view(position);
    let mut last = None;
    for &entry in bearers {
        last = last.max(view.place(entry)?.map(|place| (place, entry)));
    }
    Ok(last.map(|(_, entry)| entry).or(bearers.last().copied()))
}

/// Returns a position from which an entry is seen: in the current generation if possible, or else in the newest that has it.
pub(crate) fn place(session: &Stored<'_>, entry: EntryNumber) -> Result<Position, SessionError> {
    let current = session.state.position().map(|at| at.generation);
    let others = session.state.next_generation().earlier();
    let others = others.rev().filter(|n| Some(*n) != current);
    for generation in current.into_iter().chain(others) {
        let view = session.whole(generation);
        if view.place(entry)?.is_some() {
            return Ok(Position { head: Some(entry), ..view.position });
        }
    }
    // The entry may be outside of any generation, such as the full text of a shortened result.
    let held = session.store.origins(session.key, EntryNumber::ALL)?;
    match held.iter().find(|(_, origin)| origin.origin == entry) {
        Some(_) => Ok(Position { head: Some(entry), ..Position::default() }),
        None => Err(SessionError::NoEntry(entry.to_string())),
    }
}
