//! Segments: continues a thread in another file, from a place in an existing one, so that Codex does not list later turns either.
//!
//! ```text
//! the file   meta | q1 a1 | q2 a2 | q3 a3
//! to a1:     meta {history_base: the file, up to the second |}  note
//! the file   meta | q1 a1 | q2 a2 | rolled_back 1 | q3 a3
//! to a3:     meta {history_base: the file, up to the second |}  q3 a3
//! ```
//!
//! Where a base cannot be used, the new file repeats the records themselves: those after a rollback, and those that Codex
//! has not yet read into its own list, which is all of them if it never ran.
//!
//! A base ends between tasks, or where a turn is left open on purpose: Codex lists every task that starts as a turn.
//!
//! Invariant: a base contains no record that a rollback dropped; it is the beginning of the path.

use std::collections::BTreeSet;

use serde_json::json;

use super::{
    Codex,
    hint::{OPENS, ROLLBACK, hint, is_turn, starts},
    read::meta,
    walk,
    write::{self, Lines},
};
use crate::{
    json::{self, Raw},
    model::{EntryNumber, Kind, Landmark, PlaceNumber, Record},
    wire::{
        Before, Failure, Graph, Held, Invalid, Onward, Segment, Setting, Walk as _,
        fields::{line, text},
    },
};

/// How much of a path to read first, to see whether a rollback affects the rest.
const STEP: usize = 64;

/// Writes a file that continues after the end of a path, with an optional note; None if the thread is not continued in new files,
/// or its beginning cannot be read.
pub(super) fn lines(onward: &Onward<'_>, setting: &Setting) -> Result<Option<Segment>, Failure> {
    if !Raw::object(onward.opening).is_some_and(is_counted) {
        return Ok(None);
    }
    let Some(chain) = Chain::of(onward)? else { return Ok(None) };
    let (base, again) = chain.part()?;
    let base = base.map(|end| chain.base(end)).transpose()?;
    let opening = opening(onward.opening, base.as_ref(), setting);
    let opening = opening.ok_or_else(|| Invalid("its first record is not an object".to_owned()))?;
    let setting = Setting { nearby: Some(opening.clone()), ..setting.clone() };
    let mut lines = Lines::behind(&setting);
    for entry in &again {
        lines.add(onward.graph.line(*entry)?);
    }
    if let Some(note) = onward.back.note {
        lines.note(note, &setting)?;
    }
    Ok(Some(Segment { opening, lines: lines.into_lines(), again }))
}

/// Returns true if a file with this first record numbers its records. Codex continues only such files in new ones.
fn is_counted(first: Raw<'_>) -> bool {
    let mode = meta(first).and_then(|meta| text(meta, "history_mode"));
    mode.as_deref() == Some("paginated") && first.get("ordinal").is_some()
}

/// What a file continues: another file, the number of the first record in it that is not included, and the offset of that record.
struct Onto {
    file: String,
    ordinal: u64,
    bytes: u64,
}

/// Writes the first record of a file.
fn opening(first: &[u8], base: Option<&Onto>, setting: &Setting) -> Option<Vec<u8>> {
    let time = line(&json!(setting.time.to_string()));
    let ordinal = base.map_or(0, |base| base.ordinal);
    let base = base.map_or(json!(null), |base| {
        json!({
            "thread_id": base.file,
            "end_ordinal_exclusive": base.ordinal,
            "end_byte_offset": base.bytes,
        })
    });
    let payload = Raw::object(first)?.get("payload")?;
    let payload = json::with_fields(
        payload.bytes(),
        &[("timestamp", &time), ("history_base", &line(&base))],
    )?;
    let ordinal = line(&json!(ordinal));
    json::with_fields(first, &[("timestamp", &time), ("ordinal", &ordinal), ("payload", &payload)])
}

/// A record of the files that lead to a place.
struct Link {
    record: Record,
    is_on_path: bool,
}

impl Link {
    fn has(&self, flag: u8) -> bool {
        hint(&self.record).0 & flag != 0
    }

    fn starts(&self) -> bool {
        starts(hint(&self.record).0)
    }

    fn is_conversation(&self) -> bool {
        self.record.kind.is_conversation()
    }
}

/// A file that leads to a place.
struct File<'a> {
    graph: &'a dyn Graph,
    /// The number of its first record.
    first: usize,
    held: Held,
}

impl File<'_> {
    fn count(&self) -> usize {
        number(self.graph.end())
    }
}

/// Which records are on the path.
enum OnPath {
    /// All up to and including this number, because nothing was ever rolled back.
    UpTo(Option<usize>),
    /// All before this number, and these entries.
    Among(usize, BTreeSet<EntryNumber>),
}

/// The records of the files that lead to a place, numbered from the first one. A record is read when it is needed.
struct Chain<'a> {
    onward: &'a Onward<'a>,
    /// The files, oldest first.
    files: Vec<File<'a>>,
    path: OnPath,
}

impl<'a> Chain<'a> {
    /// Opens the files; None if one of them cannot be read.
    fn of(onward: &'a Onward<'a>) -> Result<Option<Self>, Failure> {
        let mut graphs = vec![onward.graph];
        let mut graph = onward.graph;
        loop {
            match graph.before()? {
                Before::File(before) => graph = before,
                Before::Nothing => break,
                Before::Unread => return Ok(None),
            }
            graphs.push(graph);
        }
        let mut files = Vec::new();
        let mut first = 0;
        for (graph, held) in graphs.into_iter().rev().zip((onward.files)()?) {
            files.push(File { graph, first, held });
            first += number(graph.end());
        }
        let mut chain = Self { onward, files, path: OnPath::UpTo(None) };
        chain.path = chain.on_path()?;
        Ok(Some(chain))
    }

    fn on_path(&self) -> Result<OnPath, Failure> {
        let Some(head) = self.onward.back.to else { return Ok(OnPath::UpTo(None)) };
        let Some(rollback) = self.first_rollback()? else {
            let is_record = self.onward.graph.record(head)?.kind != Kind::Opaque;
            let number = self.number_of(head)?.filter(|_| is_record);
            return Ok(OnPath::UpTo(number));
        };
        let graph = self.onward.then;
        let resumed = Codex.head(graph)?;
        let mut limit = STEP;
        loop {
            let last = walk::path(graph, head, limit, resumed)?.entries;
            if last.len() < limit {
                return Ok(OnPath::Among(0, last.into_iter().collect()));
            }
            // No rollback after a settled turn drops anything before it.
            let settled = Codex.settled(graph, &last)?.first().copied();
            let settled = settled.map_or(Ok(None), |turn| self.number_of(turn))?;
            if let Some(n) = settled.filter(|n| *n < rollback) {
                return Ok(OnPath::Among(n, last.into_iter().collect()));
            }
            limit = limit.saturating_mul(4);
        }
    }

    /// Returns the number of the first rollback. Rollbacks are signposts.
    fn first_rollback(&self) -> Result<Option<usize>, Failure> {
        let mut first = None;
        for file in self.files.iter().rev() {
            let mut before = file.graph.end();
            while let Some((place, entry)) = file.graph.landmark(Landmark::Signpost, before)? {
                if hint(&file.graph.record(entry)?).0 & ROLLBACK != 0 {
                    first = Some(file.first + number(place));
                }
                before = place;
            }
        }
        Ok(first)
    }

    /// Returns the number of an entry's record.
    fn number_of(&self, entry: EntryNumber) -> Result<Option<usize>, Failure> {
        for file in self.files.iter().rev() {
            if let Some(place) = file.graph.place(entry)? {
                return Ok(Some(file.first + number(place)));
            }
        }
        Ok(None)
    }

    /// Returns the number after the last record.
    fn end(&self) -> usize {
        self.files.last().map_or(0, |file| file.first + file.count())
    }

    /// Returns the file with a record, given its number, and the record's place in it.
    fn place(&self, n: usize) -> Option<(usize, &File<'a>, PlaceNumber)> {
        let file = self.files.partition_point(|file| file.first <= n).checked_sub(1)?;
        let of = self.files.get(file)?;
        Some((file, of, PlaceNumber::new((n - of.first) as u64)))
    }

    /// Returns the record with this number.
    fn link(&self, n: usize) -> Result<Option<Link>, Failure> {
        let Some((_, file, place)) = self.place(n) else { return Ok(None) };
        let Some(entry) = file.graph.at(place)? else { return Ok(None) };
        let record = file.graph.record(entry)?;
        let is_on_path = match &self.path {
            OnPath::UpTo(head) => Some(n) <= *head && record.kind != Kind::Opaque,
            OnPath::Among(from, entries) => {
                n < *from && record.kind != Kind::Opaque || entries.contains(&entry)
            }
        };
        Ok(Some(Link { record, is_on_path }))
    }

    /// Returns the first of these numbers whose record matches.
    fn find(
        &self,
        mut among: impl Iterator<Item = usize>,
        is_so: impl Fn(usize, &Link) -> bool,
    ) -> Result<Option<usize>, Failure> {
        let found = among.find_map(|n| match self.link(n) {
            Ok(link) => link.is_some_and(|link| is_so(n, &link)).then_some(Ok(n)),
            Err(failure) => Some(Err(failure)),
        });
        found.transpose()
    }

    /// Returns the number of the last record on the path.
    fn head(&self) -> Result<Option<usize>, Failure> {
        match &self.path {
            OnPath::UpTo(head) => Ok(*head),
            OnPath::Among(..) => self.find((0..self.end()).rev(), |_, link| link.is_on_path),
        }
    }

    /// Returns the number of records in the base, if there is a base, and the entries to repeat after it.
    fn part(&self) -> Result<(Option<usize>, Vec<EntryNumber>), Failure> {
        // Nothing of a thread comes before its first record.
        let opens = self.link(0)?.is_some_and(|link| link.has(OPENS));
        let behind = self.head()?.map_or(usize::from(opens), |head| head + 1);
        let stop = self.turn_end(behind)?;
        let held = stop.min(self.held());
        let goes = |n: usize, link: &Link| {
            let stays = link.is_on_path || n >= behind || n == 0 && opens;
            !stays && link.record.kind != Kind::Opaque
        };
        let end = match &self.path {
            OnPath::UpTo(_) => held,
            OnPath::Among(from, _) => self.find(*from..held, goes)?.unwrap_or(held),
        };
        let open = self.open_task(end)?.filter(|(_, has_turn)| end < stop || !has_turn);
        let mut end = open.map_or(end, |(task, _)| task);
        while end > 1 && self.link(end - 1)?.is_some_and(|link| link.has(OPENS)) {
            end -= 1;
        }
        let unfinished = self.open_task(stop)?;
        let unfinished = unfinished.filter(|(_, has_turn)| !has_turn).map(|(task, _)| task);
        // A task without content yet is not repeated.
        let stop = match unfinished {
            Some(task) => {
                let said =
                    self.find(task..stop, |_, link| link.is_on_path && link.is_conversation());
                if said?.is_some() { stop } else { task }
            }
            None => stop,
        };
        let mut again = Vec::new();
        for n in end..stop {
            if let Some(link) = self.link(n)?
                && (link.is_on_path || n >= behind)
                && !link.has(OPENS | ROLLBACK)
                && unfinished != Some(n)
            {
                again.push(link.record.n);
            }
        }
        Ok(((end > 0).then_some(end), again))
    }

    /// Returns the end of the turn that contains the record before a place: after the event that completes it, if there is no
    /// message before that event, else after the event of the user's message.
    fn turn_end(&self, from: usize) -> Result<usize, Failure> {
        for n in from..self.end() {
            let Some(link) = self.link(n)? else { break };
            if link.is_conversation() || link.starts() || link.has(OPENS | ROLLBACK) {
                break;
            }
            if self.completes(&link)? {
                return Ok(n + 1);
            }
        }
        let next = if self.is_users(from)? { self.link(from)? } else { None };
        let is_its = next.map(|link| self.event(&link)).transpose()?.flatten();
        Ok(from + usize::from(is_its.as_deref() == Some("item_completed")))
    }

    fn is_users(&self, behind: usize) -> Result<bool, Failure> {
        let before = behind.checked_sub(1).map(|n| self.link(n)).transpose()?.flatten();
        Ok(before.is_some_and(|link| matches!(link.record.kind, Kind::User | Kind::Note)))
    }

    /// Returns the name of an event.
    fn event(&self, link: &Link) -> Result<Option<String>, Failure> {
        if link.record.kind != Kind::Meta {
            return Ok(None);
        }
        let line = self.onward.graph.line(link.record.n)?;
        let record = Raw::object(&line);
        let is_event =
            record.filter(|record| text(*record, "type").as_deref() == Some("event_msg"));
        Ok(is_event.and_then(|record| text(record.get("payload")?, "type")))
    }

    /// Returns true if a task ends with a record.
    fn completes(&self, link: &Link) -> Result<bool, Failure> {
        let event = self.event(link)?;
        Ok(matches!(event.as_deref(), Some("task_complete" | "turn_complete" | "turn_aborted")))
    }

    /// Returns the start of the task that is incomplete at an end, and whether it contains a turn.
    fn open_task(&self, end: usize) -> Result<Option<(usize, bool)>, Failure> {
        let Some(start) = self.find((0..end).rev(), |_, link| link.starts())? else {
            return Ok(None);
        };
        let mut has_turn = false;
        for n in start..end {
            let Some(link) = self.link(n)? else { break };
            if n > start && self.completes(&link)? {
                return Ok(None);
            }
            has_turn |= is_turn(&link.record);
        }
        Ok(Some((start, has_turn)))
    }

    /// Returns how many records, from the first one, Codex has read into its list.
    fn held(&self) -> usize {
        let is_held = |file: &&File<'_>| number(file.held.held) >= file.count();
        let cut = self.files.iter().find(|file| !is_held(file));
        cut.map_or(self.end(), |file| file.first + number(file.held.held))
    }

    /// Returns the base that ends after this many records.
    fn base(&self, end: usize) -> Result<Onto, Failure> {
        let (mut ordinal, mut id, mut bytes) = (0, String::new(), 0);
        if let Some((file, of, last)) = end.checked_sub(1).and_then(|last| self.place(last)) {
            id.clone_from(&of.held.id);
            bytes = (self.onward.offset)(file, last.next())?;
        }
        for n in (0..end).rev() {
            let Some(link) = self.link(n)? else { continue };
            let line = self.onward.graph.line(link.record.n)?;
            if let Some(last) = write::ordinal(&line) {
                ordinal = last.saturating_add(1);
                break;
            }
        }
        Ok(Onto { file: id, ordinal, bytes })
    }
}

fn number(place: PlaceNumber) -> usize {
    usize::try_from(place.get()).unwrap_or(usize::MAX)
}
