//! Reach: moves the live file to another position, optionally with a note there.
//!
//! Undertext appends to an agent's own file if the agent's format can express the move. Otherwise it writes a successor,
//! the first of these that works:
//!
//! ```text
//! 1  the position's generation up to its horizon, byte for byte
//! 2  the same, and lines that bring the agent to the head
//! 3  only the entries of the path, one per line                       if records keep their meaning without those between them
//!    the same as 1, and the context in place of all before it         otherwise
//! ```
//!
//! Invariant: wherever a session is moved, a resume of its file then reads exactly the position's context.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    archive::{SyncError, Vain, Workspace},
    change::draft::live::append_live,
    change::draft::live::exchange_live,
    change::{
        draft::Change,
        goal::{
            Goal,
            resume::{Note, reads},
            segment,
            setting::{self, line_start},
        },
    },
    files::live_file::LiveFile,
    model::{
        EntryId, EntryNumber, FileNumber, Gaps, GenerationNumber, Kind, PlaceNumber, Position, Span,
    },
    session::{
        Growth, View,
        graph::content,
        history::ends::{Sending, ends},
    },
    wire::{Back, Draft, Edit, Graph, Setting, Speaker},
};

/// The result of moving the live file.
#[derive(Debug)]
pub(crate) struct Reached {
    /// The new position.
    pub(crate) position: Position,
    /// The entry at its head.
    pub(crate) entry: Option<EntryId>,
    /// True if the note was written.
    pub(crate) has_note: bool,
    /// How many entries are not on the new path.
    pub(crate) dropped: u64,
}

/// Moves the live file to a position, optionally with a note there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reach<'a> {
    pub(crate) target: Position,
    pub(crate) note: Option<Note<'a>>,
}

impl Goal for Reach<'_> {
    type Reached = Reached;

    fn prepare(self, change: &mut Change<'_>) -> Result<(Reached, Option<Position>), SyncError> {
        let mut reached = reach(change, self)?;
        reached.has_note = self.note.is_some();
        reached.entry = reached.position.head.map(|head| change.id_of(head)).transpose()?;
        let position = reached.position;
        Ok((reached, Some(position)))
    }
}

fn reach(change: &mut Change<'_>, to: Reach<'_>) -> Result<Reached, SyncError> {
    let Some(live) = change.before.attached() else {
        let live = change.before.live_file();
        let reached = succeed(change, live.as_ref(), to)?;
        return reached.ok_or(SyncError::Nothing(Vain::Reach));
    };
    let rotates = change.before.format.traits().is_rotatable;
    if let Some(reached) = segment(change, &live, to)? {
        return Ok(reached);
    }
    if !(change.before.archive.manner.rotate && rotates)
        && let Some(reached) = append(change, to)?
    {
        return Ok(reached);
    }
    if rotates && let Some(reached) = succeed(change, Some(&live), to)? {
        return Ok(reached);
    }
    let why =
        "the store has no version of the file that the agent would resume from there".to_owned();
    Err(SyncError::OutOfReach { path: live.path, why })
}

/// Moves a session to a position in a successor of its live file, if it has one: the first kind that works.
fn succeed(
    change: &mut Change<'_>,
    live: Option<&LiveFile>,
    to: Reach<'_>,
) -> Result<Option<Reached>, SyncError> {
    let is_rotatable = change.before.format.traits().is_rotatable;
    let last = if is_rotatable { Way::Path } else { Way::Whole };
    for way in [Way::Generation, Way::Closed, last] {
        let Some(successor) = successor(change, to, way)? else { continue };
        if let Some(live) = live {
            rotate(change, live, &successor)?;
        }
        let Successor { position, dropped, growth, .. } = successor;
        change.grown(growth);
        return Ok(Some(Reached { position, entry: None, has_note: false, dropped }));
    }
    Ok(None)
}

/// Moves the session by beginning another file, if the agent keeps sessions in several files.
fn segment(
    change: &mut Change<'_>,
    live: &LiveFile,
    to: Reach<'_>,
) -> Result<Option<Reached>, SyncError> {
    let home = change.before.format.home(&live.path);
    let Some(from) = change.before.position().filter(|_| home.is_some()) else { return Ok(None) };
    let [stood, path] = ends(&change.look(from), &change.look(to.target))?;
    // If the agent is already there, it continues in its file.
    if stood == path {
        return Ok(None);
    }
    let setting = setting(change, None, to.note)?;
    let (head, note) = (to.target.head, to.note.map(|note| note.words));
    let back = Back { from: from.head, to: head, stood: &stood, path: &path, note };
    let begun = segment::begin(change, live, &back, to, &setting)?;
    let Some(position) = begun else { return Ok(None) };
    let dropped = left(&stood, &path);
    Ok(Some(Reached { position, entry: None, has_note: false, dropped }))
}

/// Appends lines that bring the agent to a position, if its format can express them: a move, or otherwise the whole context in
/// place of everything before.
fn append(change: &mut Change<'_>, to: Reach<'_>) -> Result<Option<Reached>, SyncError> {
    let Some(from) = change.before.position() else { return Ok(None) };
    let paths = ends(&change.look(from), &change.look(to.target))?;
    let mut position = None;
    if let Some(lines) = way_back(change, from, to.target.head, &paths, to.note)? {
        position = say(change, from, &lines, to)?;
    }
    if position.is_none()
        && !change.before.format.traits().is_rotatable
        && let Some(lines) = whole(change, to)?
    {
        position = say(change, from, &lines, to)?;
    }
    let Some(position) = position else { return Ok(None) };
    let [stood, path] = &paths;
    let dropped = left(stood, path);
    Ok(Some(Reached { position, entry: None, has_note: false, dropped }))
}

/// Appends lines. Returns the new position if the agent would read the wanted context there.
fn say(
    change: &mut Change<'_>,
    from: Position,
    lines: &[Vec<u8>],
    to: Reach<'_>,
) -> Result<Option<Position>, SyncError> {
    let mut growth = change.growth(from.generation)?;
    let more = setting::behind(&growth, lines);
    change.read_bytes(&mut growth, &more)?;
    let position = reads(change, &growth, to)?;
    if position.is_some() {
        let end = growth.length();
        change.grown(growth);
        append_live(change, more, end)?;
    } else {
        change.forget();
    }
    Ok(position)
}

/// Returns the lines that replace everything in the live file with the context of a position.
fn whole(change: &mut Change<'_>, to: Reach<'_>) -> Result<Option<Vec<Vec<u8>>>, SyncError> {
    let view = change.look(to.target);
    let Sending { sent, edits, .. } = view.sending()?;
    let edits: BTreeMap<EntryNumber, Edit> = edits.into_iter().collect();
    let lines = sent.iter().map(|entry| Ok((view.line(*entry)?, edits.get(entry).copied())));
    let lines = lines.collect::<Result<Vec<_>, SyncError>>()?;
    let setting = setting(change, None, to.note)?;
    let words = to.note.map(|note| note.words);
    let whole = change.before.format.whole_context(&lines, words, &setting);
    whole.map_err(|error| SyncError::Invalid { line: None, why: error.0 })
}

/// Returns the setting of lines that a note may follow.
fn setting(
    change: &Change<'_>,
    parent: Option<String>,
    note: Option<Note<'_>>,
) -> Result<Setting, SyncError> {
    let nowhere = Workspace::default();
    change.before.setting_in_folder(note.map_or(&nowhere, |note| note.workspace), parent)
}

/// Returns how many entries of one path are not on the other.
fn left(stood: &[EntryNumber], path: &[EntryNumber]) -> u64 {
    let stays: BTreeSet<EntryNumber> = path.iter().copied().collect();
    stood.iter().filter(|entry| !stays.contains(entry)).count() as u64
}

/// Returns the lines that move the agent from one position to an entry, given the ends of both paths.
fn way_back(
    change: &mut Change<'_>,
    from: Position,
    to: Option<EntryNumber>,
    [stood, path]: &[Vec<EntryNumber>; 2],
    note: Option<Note<'_>>,
) -> Result<Option<Vec<Vec<u8>>>, SyncError> {
    let parent = to.map(|to| change.before.record_name(to)).transpose()?.flatten();
    let setting = setting(change, parent, note)?;
    let back = Back { from: from.head, to, stood, path, note: note.map(|note| note.words) };
    Ok(change.before.format.branch(&change.look(from), &back, &setting)?)
}

/// Returns the lines that move the agent from one position to an entry in the same generation.
pub(crate) fn way_to(
    change: &mut Change<'_>,
    from: Position,
    to: Option<EntryNumber>,
) -> Result<Option<Vec<Vec<u8>>>, SyncError> {
    let paths = ends(&change.look(from), &change.look(Position { head: to, ..from }))?;
    way_back(change, from, to, &paths, None)
}

/// Starts a growth with the entries visible at a position.
pub(crate) fn place_spans(
    change: &Change<'_>,
    growth: &mut Growth,
    at: Position,
) -> Result<(), SyncError> {
    place(change, growth, &change.before.spans(at)?)
}

/// Begins a generation with the entries visible at a position, for a file or without one.
pub(crate) fn again(
    change: &mut Change<'_>,
    at: Position,
    file: Option<FileNumber>,
) -> Result<Growth, SyncError> {
    let spans = change.before.spans(at)?;
    let mut growth = change.generation(file);
    place(change, &mut growth, &spans)?;
    growth.end(tail(change, at, &spans, Way::Whole));
    Ok(growth)
}

/// The kinds of successors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The position's generation up to its horizon.
    Generation,
    /// The same, followed by lines that bring the agent to the head.
    Closed,
    /// Only the path.
    Path,
    /// The generation, followed by the context in place of everything in it.
    Whole,
}

/// A successor of a live file that is not written yet.
struct Successor {
    spans: Vec<Span>,
    tail: Vec<u8>,
    more: Vec<u8>,
    /// The length without `more`.
    length: u64,
    dropped: u64,
    growth: Growth,
    position: Position,
}

/// Builds a successor. Returns `None` if the agent would not read the wanted context there.
fn successor(
    change: &mut Change<'_>,
    to: Reach<'_>,
    way: Way,
) -> Result<Option<Successor>, SyncError> {
    let target = behind_opening(change, to.target)?;
    let to = Reach { target, ..to };
    let spans = match change.before.view(target).filter(|_| way == Way::Path) {
        Some(view) => path_spans(&view, target)?,
        None => change.before.spans(target)?,
    };
    let tail = tail(change, target, &spans, way);
    let file = change.before.live_file().map(|live| live.n);
    let mut growth = change.generation(file);
    place(change, &mut growth, &spans)?;
    growth.end(tail.clone());
    let dropped = match change.before.position() {
        Some(from) => {
            let [stood, path] = ends(&change.look(from), &change.look(target))?;
            left(&stood, &path)
        }
        None => 0,
    };
    let length = growth.length();
    let Some(more) = behind(change, to, way)? else {
        change.forget();
        return Ok(None);
    };
    let more = if more.is_empty() { Vec::new() } else { setting::behind(&growth, &more) };
    change.read_bytes(&mut growth, &more)?;
    let Some(position) = reads(change, &growth, to)? else {
        change.forget();
        return Ok(None);
    };
    Ok(Some(Successor { spans, tail, more, length, dropped, growth, position }))
}

/// Returns the lines after the entries of a successor, if the format can express them.
fn behind(
    change: &mut Change<'_>,
    to: Reach<'_>,
    way: Way,
) -> Result<Option<Vec<Vec<u8>>>, SyncError> {
    let Reach { target, note } = to;
    match way {
        Way::Generation | Way::Path => {}
        Way::Closed => {
            let view = change.before.view(target);
            let head = view.map(|view| view.format.head(&view)).transpose()?;
            let from = Position { head: head.flatten(), ..target };
            let paths = ends(&change.look(from), &change.look(target))?;
            return way_back(change, from, target.head, &paths, note);
        }
        Way::Whole => return whole(change, to),
    }
    let Some(note) = note else { return Ok(Some(Vec::new())) };
    let mut drafts = vec![Draft::Note(note.words.to_owned())];
    drafts.extend(note.prompt.map(|prompt| Draft::Message(Speaker::User, prompt.to_owned())));
    Ok(Some(change.before.write(note.workspace, target, &drafts)?))
}

/// Exchanges the live file for a successor.
fn rotate(
    change: &mut Change<'_>,
    live: &LiveFile,
    successor: &Successor,
) -> Result<(), SyncError> {
    let from = change.before.state.generation();
    let path = &live.path;
    let io = SyncError::at(path);
    let old = change.before.writable_file(live)?;
    let mut file = old.fresh().map_err(io)?;
    let Successor { spans, tail, more, length, growth, .. } = successor;
    // If the live file begins with the same bytes, let the file system copy them.
    if begins_with(change, from, spans)?
        && old.read(length - tail.len() as u64, Some(*length)).map_err(io)? == *tail
    {
        file.copy(0, *length).map_err(io)?;
    } else {
        let session = change.before.opened()?;
        content::write_spans(&session, spans, tail, &mut |part| file.write(part))?;
    }
    file.write(more).map_err(io)?;
    exchange_live(change, live, file, from, growth.generation).map(drop)
}

/// Begins a generation with the entries visible at `held`, if given, followed by lines, and exchanges the live file for it.
/// Returns the growth.
pub(crate) fn successor_with(
    change: &mut Change<'_>,
    held: Option<Position>,
    more: &[u8],
) -> Result<Growth, SyncError> {
    let from = change.before.state.generation();
    let live = change.before.live_file();
    let mut growth = change.generation(live.as_ref().map(|live| live.n));
    if let Some(held) = held {
        place_spans(change, &mut growth, held)?;
        growth.end(change.growth(held.generation)?.tail);
    }
    let length = growth.length();
    let more = [line_start(&growth), more.to_vec()].concat();
    change.read_bytes(&mut growth, &more)?;
    let Some(live) = live else { return Ok(growth) };
    let io = SyncError::at(&live.path);
    let mut file = change.before.writable_file(&live)?.fresh().map_err(io)?;
    file.copy(0, length).map_err(io)?;
    file.write(&more).map_err(io)?;
    exchange_live(change, &live, file, from, growth.generation)?;
    Ok(growth)
}

/// For a position at the start of a generation, returns the position after the record that opens a file of this format, if there
/// is one.
fn behind_opening(change: &Change<'_>, start: Position) -> Result<Position, SyncError> {
    let horizon = change.before.growth(start.generation)?.entries;
    let Some(view) =
        change.before.view(Position { horizon, ..start }).filter(|_| start.horizon == 0)
    else {
        return Ok(start);
    };
    for place in view.end().earlier() {
        let Some(entry) = view.at(place)? else { continue };
        let record = view.record(entry)?;
        if view.format.opens_file(&record) {
            return Ok(Position { horizon: place.next().get(), ..start });
        }
        if record.kind != Kind::Opaque {
            break;
        }
    }
    Ok(start)
}

/// Returns true if a generation begins with the same entries and the same separators.
fn begins_with(
    change: &Change<'_>,
    generation: GenerationNumber,
    spans: &[Span],
) -> Result<bool, SyncError> {
    let horizon = spans.last().map_or(0, Span::end);
    let Some(view) = change.before.view(Position { generation, head: None, horizon }) else {
        return Ok(false);
    };
    let same = |a: &Span, b: &Span| Span { generation, ..b.clone() } == *a;
    let held = view.spans()?;
    Ok(held.len() == spans.len() && held.iter().zip(spans).all(|(a, b)| same(a, b)))
}

/// Returns the entries of a path that are in its own file as spans, after the record that opens a file of this format.
fn path_spans(view: &View<'_>, target: Position) -> Result<Vec<Span>, SyncError> {
    let mut entries = Vec::new();
    for entry in view.path(usize::MAX)?.entries {
        if view.place(entry)?.is_some() {
            entries.push(entry);
        }
    }
    if let Some(first) = view.at(PlaceNumber::FIRST)?
        && view.format.opens_file(&view.record(first)?)
        && entries.first() != Some(&first)
    {
        entries.insert(0, first);
    }
    let mut spans: Vec<Span> = Vec::new();
    for (start, entry) in (0..).zip(entries) {
        match spans.last_mut() {
            Some(span) if span.entries().end == entry => span.count += 1,
            _ => spans.push(Span {
                generation: target.generation,
                start,
                first: entry,
                count: 1,
                gaps: Gaps::default(),
            }),
        }
    }
    Ok(spans)
}

/// Returns the bytes after the last entry: the generation's tail if the position is at its end, otherwise a line feed.
fn tail(change: &Change<'_>, target: Position, spans: &[Span], way: Way) -> Vec<u8> {
    if spans.is_empty() {
        return Vec::new();
    }
    let end = change.before.state.ends.get(&target.generation);
    let end =
        end.filter(|run| way != Way::Path && run.end() == target.horizon && !run.tail.is_empty());
    end.map_or_else(|| b"\n".to_vec(), |run| run.tail.clone())
}

fn place(change: &Change<'_>, growth: &mut Growth, spans: &[Span]) -> Result<(), SyncError> {
    let Some((store, session)) = change.before.stored() else { return Ok(()) };
    for span in spans {
        let range = span.entries();
        let entries = store.entries(session, range.clone())?;
        let lengths = store.lengths(session, range)?;
        let separators = span.gaps.iter(span.start, span.count);
        for ((entry, length), separator) in entries.iter().zip(lengths).zip(separators) {
            growth.place(entry.n, entry.id, separator, length);
        }
    }
    Ok(())
}
