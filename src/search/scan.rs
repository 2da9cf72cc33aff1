//! Scanning: finds the matching records of a session.

use std::{ops::Range, sync::Arc};

use super::{
    needle,
    passages::{Moved, Part, Passage, lines, passages},
    pattern::Pattern,
    query::{Nearness, Query},
};
use crate::{
    json::Raw,
    model::{Around, EntryNumber, HitLine, Kind, Role, Timestamp},
    session::Session,
    store::{Sieve, Store, StoreError},
    wire::{Envelope, FORMATS},
};

/// What to search for in the texts of messages.
#[derive(Clone, Debug)]
pub enum Sought {
    /// Each line that matches a pattern.
    Pattern(Pattern),
    /// In each message, the text with most of the words, and the line of it with most of them.
    Words(Query),
}

/// A search in the records of a session.
pub(crate) struct Seeker {
    sought: Sought,
    sieve: Sieve,
    /// The sieve for sessions where records have texts beyond their own bytes.
    worded: Sieve,
    /// Only these speakers; all if empty.
    pub(crate) roles: Vec<Role>,
    /// Only these parts of the conversation; all if empty.
    pub(crate) parts: Vec<Part>,
    /// Only texts from this time on.
    pub(crate) since: Option<Timestamp>,
    /// Only texts before this time.
    pub(crate) until: Option<Timestamp>,
    /// The number of context lines around each match.
    pub(crate) around: usize,
}

/// A text with a match.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) entry: EntryNumber,
    pub(crate) time: Option<Timestamp>,
    pub(crate) role: Role,
    /// The tool of the call or result, if the record names it.
    pub(crate) tool: Option<String>,
    /// The id of the call.
    pub(crate) call: Option<String>,
    /// The index of the text in the record.
    pub(crate) text: usize,
    /// The hash of the whole text. Equal texts with equal times count as one, wherever they are stored.
    pub(crate) sum: [u8; 32],
    /// How the words of a query occur in it.
    pub(crate) nearness: Nearness,
    pub(crate) lines: Vec<HitLine>,
}

impl Seeker {
    /// Searches all speakers, parts and times.
    pub(crate) fn new(sought: Sought) -> Self {
        let sieve = |marks: &[&str]| match &sought {
            Sought::Pattern(pattern) => needle::sieve(pattern, marks),
            Sought::Words(_) => Sieve::open(),
        };
        let marks = FORMATS.iter().map(|format| format.traits());
        let marks: Vec<_> =
            marks.flat_map(|it| it.worded.iter().chain(it.moved).copied()).collect();
        Self {
            sieve: sieve(&[]),
            worded: sieve(&marks),
            sought,
            roles: Vec::new(),
            parts: Vec::new(),
            since: None,
            until: None,
            around: 0,
        }
    }

    /// Looks through the entries with these numbers, and returns those that are damaged. What has no time counts as said at
    /// `undated`.
    pub(crate) fn scan(
        &self,
        store: &dyn Store,
        session: &Session,
        undated: Option<Timestamp>,
        range: Range<EntryNumber>,
        each: &mut dyn FnMut(Found),
    ) -> Result<Vec<EntryNumber>, StoreError> {
        let (moved, mut damaged) = (Moved::of(store, session)?, Vec::new());
        store.sift(session.key, range, self.sieve(&moved), &mut |entry, line| match line {
            Ok(line) => self.look(&moved, undated, entry, &line, each),
            Err(_) => damaged.push(entry),
        })?;
        Ok(damaged)
    }

    /// Searches these entries like [`Seeker::scan`].
    pub(crate) fn try_each(
        &self,
        store: &dyn Store,
        session: &Session,
        undated: Option<Timestamp>,
        entries: &[EntryNumber],
        each: &mut dyn FnMut(Found),
    ) -> Result<Vec<EntryNumber>, StoreError> {
        let (moved, mut damaged) = (Moved::of(store, session)?, Vec::new());
        store.lines(session.key, entries, &mut |entry, line| match line {
            Ok(line) => self.look(&moved, undated, entry, &line, each),
            Err(_) => damaged.push(entry),
        })?;
        Ok(damaged)
    }

    fn sieve(&self, moved: &Moved<'_>) -> &Sieve {
        if moved.says_more() { &self.worded } else { &self.sieve }
    }

    /// Searches one record.
    fn look(
        &self,
        moved: &Moved<'_>,
        undated: Option<Timestamp>,
        entry: EntryNumber,
        line: &[u8],
        each: &mut dyn FnMut(Found),
    ) {
        // Checking with the sieve is cheaper than parsing the record.
        let passed = Some(line).filter(|line| self.sieve(moved).passes(line));
        let Some(record) = passed.and_then(Raw::object) else { return };
        let messages = moved.said(record);
        if messages.is_empty() {
            return;
        }
        let Envelope { kind, time, .. } = moved.session.format.envelope(record);
        // Undated metadata gets the session's time, so that a title written repeatedly counts as one text.
        let time = time.or(undated.filter(|_| matches!(kind, Kind::Meta | Kind::Opaque)));
        let said = time.or(undated);
        let is_late = |since: Timestamp| said.is_none_or(|said| since <= said);
        let is_early = |until: Timestamp| said.is_none_or(|said| said < until);
        if !(self.since.is_none_or(is_late) && self.until.is_none_or(is_early)) {
            return;
        }
        let (mut text, mut best) = (0, None::<Found>);
        passages(&messages, &mut |passage| {
            let at = text;
            text += 1;
            let is_of = self.parts.is_empty() || self.parts.contains(&passage.part());
            if !is_of || !self.roles.is_empty() && !self.roles.contains(&passage.role) {
                return;
            }
            let (nearness, lines) = match &self.sought {
                Sought::Pattern(pattern) => (Nearness::default(), self.lines(pattern, &passage)),
                Sought::Words(query) => {
                    let Some(nearness) = query.nearness(&passage.text) else { return };
                    let is_better = |best: &Found| nearness.is_better(&best.nearness);
                    if !best.as_ref().is_none_or(is_better) {
                        return;
                    }
                    let line = self.line(query, &passage, nearness.line);
                    (nearness, line)
                }
            };
            if lines.is_empty() {
                return;
            }
            let tool = passage.tool;
            let found = Found {
                entry,
                time,
                role: passage.role,
                tool: tool.and_then(|tool| tool.name).map(str::to_owned),
                call: tool.map(|tool| tool.call.to_owned()),
                text: at,
                sum: *blake3::hash(passage.text.as_bytes()).as_bytes(),
                nearness,
                lines,
            };
            match self.sought {
                Sought::Pattern(_) => each(found),
                Sought::Words(_) => best = Some(found),
            }
        });
        best.into_iter().for_each(each);
    }

    /// Returns line `n` of a text, in which words of a query occur.
    fn line(&self, query: &Query, passage: &Passage<'_>, n: usize) -> Vec<HitLine> {
        let line = lines(&passage.text).nth(n - 1).unwrap_or_default();
        let (before, after) = (Around::default(), Around::default());
        let (line, matches) = (line.to_owned(), query.matches(line));
        self.around(passage, vec![HitLine { n, line, matches, before, after }])
    }

    /// Returns the matching lines of a text.
    fn lines(&self, pattern: &Pattern, passage: &Passage<'_>) -> Vec<HitLine> {
        if !pattern.may_match(&passage.text) {
            return Vec::new();
        }
        let found = lines(&passage.text)
            .enumerate()
            .filter(|(_, line)| pattern.is_match(line))
            .map(|(at, line)| HitLine {
                n: at + 1,
                line: line.to_owned(),
                matches: pattern.matches(line),
                before: Around::default(),
                after: Around::default(),
            })
            .collect();
        self.around(passage, found)
    }

    /// Adds the context lines to the lines that were found.
    fn around(&self, passage: &Passage<'_>, mut found: Vec<HitLine>) -> Vec<HitLine> {
        if self.around > 0 && !found.is_empty() {
            let all: Arc<[String]> = lines(&passage.text).map(str::to_owned).collect();
            for HitLine { n, before, after, .. } in &mut found {
                *before = Around::new(&all, (*n - 1).saturating_sub(self.around)..*n - 1);
                *after = Around::new(&all, *n..n.saturating_add(self.around));
            }
        }
        found
    }
}
