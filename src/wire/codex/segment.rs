//! Segments: a thread goes on in another file, from a place in one that it has, so that Codex also lists no turn behind it.
//!
//! ```text
//! the file   meta | q1 a1 | q2 a2 | q3 a3
//! to a1:     meta {history_base: the file, up to the second |}  note
//! the file   meta | q1 a1 | q2 a2 | rolled_back 1 | q3 a3
//! to a3:     meta {history_base: the file, up to the second |}  q3 a3
//! ```
//!
//! Where a base will not do, the records themselves are said again behind it: those behind a rollback, and those that Codex
//! has not read into its own list yet, which are all of them where it never ran.
//!
//! A base ends between tasks, or where a turn is left open on purpose: Codex lists a task that it sees begin as a turn.
//!
//! Invariant: what a base holds is the beginning of the path, without a record that a rollback dropped.

use std::collections::BTreeSet;

use serde_json::json;

use super::{
    hint::{OPENS, ROLLBACK, hint, is_conversation, is_turn, starts},
    read::meta,
    write::{self, Lines},
};
use crate::{
    json::{self, Raw},
    model::{EntryNumber, Kind, PlaceNumber, Record},
    wire::{
        Before, Failure, Invalid, Onward, Segment, Setting,
        fields::{line, text},
    },
};

/// Writes a file that goes on behind the end of a path, where a note may be said; None if the thread does not go on in
/// files, or its beginning cannot be read.
pub(super) fn lines(onward: &Onward<'_>, setting: &Setting) -> Result<Option<Segment>, Failure> {
    if !Raw::object(onward.opening).is_some_and(is_counted) {
        return Ok(None);
    }
    let Some(chain) = Chain::of(onward)? else { return Ok(None) };
    let (base, again) = chain.part()?;
    let base = base.map(|end| chain.base(end)).transpose()?;
    let opening = opening(onward.opening, base.as_ref(), setting);
    let opening = opening.ok_or_else(|| Invalid("its first record is no object".to_owned()))?;
    let setting = Setting { nearby: Some(opening.clone()), ..setting.clone() };
    let mut lines = Lines::behind(&setting);
    for entry in &again {
        lines.add(onward.graph.line(*entry)?, false);
    }
    if let Some(note) = onward.back.note {
        lines.note(note, &setting)?;
    }
    Ok(Some(Segment { opening, lines: lines.into_lines(), again }))
}

/// Returns whether the records of a file that begins with this one are counted, which is how Codex goes on in files.
fn is_counted(first: Raw<'_>) -> bool {
    let mode = meta(first).and_then(|meta| text(meta, "history_mode"));
    mode.as_deref() == Some("paginated") && first.get("ordinal").is_some()
}

/// Where a file goes on from: another one, the number of the first record that is left out of it, and its offset.
struct Onto {
    file: String,
    ordinal: u64,
    bytes: u64,
}

/// Writes the record that opens a file.
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
    /// The number of its file, the first one's being 0.
    file: usize,
    place: PlaceNumber,
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
        is_conversation(self.record.kind)
    }
}

/// The records of the files that lead to a place, the first one first.
struct Chain<'a> {
    onward: &'a Onward<'a>,
    links: Vec<Link>,
}

impl<'a> Chain<'a> {
    /// Reads the records; None if some of them cannot be.
    fn of(onward: &'a Onward<'a>) -> Result<Option<Self>, Failure> {
        let mut files = vec![onward.graph];
        let mut graph = onward.graph;
        loop {
            match graph.before()? {
                Before::File(before) => graph = before,
                Before::Nothing => break,
                Before::Unread => return Ok(None),
            }
            files.push(graph);
        }
        let path: BTreeSet<EntryNumber> = onward.back.path.iter().copied().collect();
        let mut links = Vec::new();
        for (file, graph) in files.into_iter().rev().enumerate() {
            for place in graph.end().earlier() {
                if let Some(entry) = graph.at(place)? {
                    let record = graph.record(entry)?;
                    links.push(Link { file, place, record, is_on_path: path.contains(&entry) });
                }
            }
        }
        Ok(Some(Self { onward, links }))
    }

    /// Returns behind how many records the base ends, if there is one, and the entries that are said again behind it.
    fn part(&self) -> Result<(Option<usize>, Vec<EntryNumber>), Failure> {
        // Nothing of a thread comes before its first record.
        let opens = self.links.first().is_some_and(|link| link.has(OPENS));
        let head = self.links.iter().rposition(|link| link.is_on_path);
        let behind = head.map_or(usize::from(opens), |head| head + 1);
        let stop = self.turn_end(behind)?;
        let stays = |n: usize, link: &Link| {
            link.is_on_path || n >= behind || n == 0 && opens || link.record.kind == Kind::Opaque
        };
        let known = self.links.iter().take(stop.min(self.held()));
        let end = known.enumerate().take_while(|(n, link)| stays(*n, link)).count();
        let open = self.open_task(end)?.filter(|task| end < stop || !self.has_turn(*task, end));
        let mut end = open.unwrap_or(end);
        while end > 1 && self.links.get(end - 1).is_some_and(|link| link.has(OPENS)) {
            end -= 1;
        }
        let unfinished = self.open_task(stop)?.filter(|task| !self.has_turn(*task, stop));
        // Of a task in which nothing is said yet, nothing is.
        let is_silent = |task: &usize| {
            let task = self.links.get(*task..stop).unwrap_or_default();
            !task.iter().any(|link| link.is_on_path && link.is_conversation())
        };
        let stop = unfinished.filter(is_silent).unwrap_or(stop);
        let again = self.links.iter().enumerate().take(stop).skip(end).filter(|(n, link)| {
            (link.is_on_path || *n >= behind)
                && !link.has(OPENS | ROLLBACK)
                && unfinished != Some(*n)
        });
        let again = again.map(|(_, link)| link.record.n).collect();
        Ok(((end > 0).then_some(end), again))
    }

    /// Returns the end of the turn in which the record before a place stands: behind the event that completes it, if nothing
    /// is said before that, or else behind the event of the user's message.
    fn turn_end(&self, from: usize) -> Result<usize, Failure> {
        let ahead = self.links.iter().enumerate().skip(from);
        let events = ahead.take_while(|(_, link)| {
            !link.is_conversation() && !link.starts() && !link.has(OPENS | ROLLBACK)
        });
        for (n, link) in events {
            if self.completes(link)? {
                return Ok(n + 1);
            }
        }
        let next = self.links.get(from).filter(|_| self.is_users(from));
        let is_its = next.map(|link| self.event(link)).transpose()?.flatten();
        Ok(from + usize::from(is_its.as_deref() == Some("item_completed")))
    }

    fn is_users(&self, behind: usize) -> bool {
        let before = behind.checked_sub(1).and_then(|n| self.links.get(n));
        before.is_some_and(|link| matches!(link.record.kind, Kind::User | Kind::Note))
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

    /// Returns whether a task ends with a record.
    fn completes(&self, link: &Link) -> Result<bool, Failure> {
        let event = self.event(link)?;
        Ok(matches!(event.as_deref(), Some("task_complete" | "turn_complete" | "turn_aborted")))
    }

    /// Returns where the task starts that is not complete at an end.
    fn open_task(&self, end: usize) -> Result<Option<usize>, Failure> {
        let before = self.links.get(..end).unwrap_or_default();
        let Some(start) = before.iter().rposition(Link::starts) else { return Ok(None) };
        for link in before.iter().skip(start + 1) {
            if self.completes(link)? {
                return Ok(None);
            }
        }
        Ok(Some(start))
    }

    fn has_turn(&self, from: usize, to: usize) -> bool {
        let task = self.links.get(from..to).unwrap_or_default();
        task.iter().any(|link| is_turn(&link.record))
    }

    /// Returns how many records Codex has read into its list, from the first one on.
    fn held(&self) -> usize {
        let is_held = |link: &&Link| {
            let file = self.onward.files.get(link.file);
            file.is_some_and(|file| link.place < file.held)
        };
        self.links.iter().take_while(is_held).count()
    }

    /// Returns the base that ends behind so many records.
    fn base(&self, end: usize) -> Result<Onto, Failure> {
        let before = self.links.get(..end).unwrap_or_default();
        let (mut ordinal, mut file, mut bytes) = (0, String::new(), 0);
        if let Some(last) = before.last() {
            let of = self.onward.files.get(last.file);
            file = of.map(|of| of.id.clone()).unwrap_or_default();
            bytes = (self.onward.offset)(last.file, last.place.next())?;
        }
        for link in before.iter().rev() {
            let line = self.onward.graph.line(link.record.n)?;
            if let Some(last) = write::ordinal(&line) {
                ordinal = last.saturating_add(1);
                break;
            }
        }
        Ok(Onto { file, ordinal, bytes })
    }
}
