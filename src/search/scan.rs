//! Scanning: the records of a session that hold what is looked for.

use std::{ops::Range, sync::Arc};

use super::{
    needle,
    passages::{Passage, lines, passages},
    pattern::Pattern,
};
use crate::{
    json::Raw,
    model::{Around, EntryNumber, Role, Timestamp},
    session::Session,
    store::{Sieve, Store, StoreError},
};

/// What is looked for in the records of a session.
pub(crate) struct Seeker {
    pattern: Pattern,
    sieve: Sieve,
    /// Only what these say; anyone, if it is empty.
    pub(crate) roles: Vec<Role>,
    /// Only what was said then or later.
    pub(crate) since: Option<Timestamp>,
    /// Only what was said before.
    pub(crate) until: Option<Timestamp>,
    /// How many lines around each match are taken along.
    pub(crate) around: usize,
}

/// A text in which something was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) entry: EntryNumber,
    pub(crate) time: Option<Timestamp>,
    pub(crate) role: Role,
    /// The tool that is called or answers, if the record says it.
    pub(crate) tool: Option<String>,
    /// The id of the call.
    pub(crate) call: Option<String>,
    /// Which text of the record it is.
    pub(crate) text: usize,
    /// Of the whole text: the same text said at the same time is the same wherever it is kept.
    pub(crate) sum: [u8; 32],
    pub(crate) lines: Vec<FoundLine>,
}

/// A line with a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundLine {
    /// Its number in the text, from 1.
    pub(crate) n: usize,
    pub(crate) line: String,
    /// The matches, in bytes of the line.
    pub(crate) matches: Vec<Range<usize>>,
    /// The lines around it.
    pub(crate) before: Around,
    pub(crate) after: Around,
}

impl Seeker {
    /// Looks for a pattern, whoever said it and whenever.
    pub(crate) fn new(pattern: Pattern) -> Self {
        let sieve = needle::sieve(&pattern);
        Self { pattern, sieve, roles: Vec::new(), since: None, until: None, around: 0 }
    }

    /// Looks through the entries with these numbers, and returns those that are damaged. What has no time counts as said at the
    /// one that is given.
    pub(crate) fn scan(
        &self,
        store: &dyn Store,
        (session, undated): (&Session, Option<Timestamp>),
        range: Range<EntryNumber>,
        each: &mut dyn FnMut(Found),
    ) -> Result<Vec<EntryNumber>, StoreError> {
        let mut damaged = Vec::new();
        store.sift(session.key, range, &self.sieve, &mut |entry, line| match line {
            Ok(line) => self.look((session, undated), entry, &line, each),
            Err(_) => damaged.push(entry),
        })?;
        Ok(damaged)
    }

    /// Looks through these entries as [`Seeker::scan`] does.
    pub(crate) fn try_each(
        &self,
        store: &dyn Store,
        (session, undated): (&Session, Option<Timestamp>),
        entries: &[EntryNumber],
        each: &mut dyn FnMut(Found),
    ) -> Result<Vec<EntryNumber>, StoreError> {
        let mut damaged = Vec::new();
        store.lines(session.key, entries, &mut |entry, line| match line {
            Ok(line) => self.look((session, undated), entry, &line, each),
            Err(_) => damaged.push(entry),
        })?;
        Ok(damaged)
    }

    /// Looks through a record.
    fn look(
        &self,
        (session, undated): (&Session, Option<Timestamp>),
        entry: EntryNumber,
        line: &[u8],
        each: &mut dyn FnMut(Found),
    ) {
        // To take a record apart costs more than to see that it cannot hold it.
        let passed = Some(line).filter(|line| self.sieve.passes(line));
        let Some(record) = passed.and_then(Raw::object) else { return };
        let messages = session.format.messages(record);
        if messages.is_empty() {
            return;
        }
        let time = session.format.envelope(record).time;
        let said = time.or(undated);
        let is_late = |since: Timestamp| said.is_none_or(|said| since <= said);
        let is_early = |until: Timestamp| said.is_none_or(|said| said < until);
        if !(self.since.is_none_or(is_late) && self.until.is_none_or(is_early)) {
            return;
        }
        let mut text = 0;
        passages(&messages, &mut |passage| {
            let lines = self.lines(&passage);
            if !lines.is_empty() {
                let tool = passage.tool;
                each(Found {
                    entry,
                    time,
                    role: passage.role,
                    tool: tool.and_then(|tool| tool.name).map(str::to_owned),
                    call: tool.map(|tool| tool.call.to_owned()),
                    text,
                    sum: *blake3::hash(passage.text.as_bytes()).as_bytes(),
                    lines,
                });
            }
            text += 1;
        });
    }

    /// Returns the lines of a text that have a match.
    fn lines(&self, passage: &Passage<'_>) -> Vec<FoundLine> {
        let is_asked = self.roles.is_empty() || self.roles.contains(&passage.role);
        if !is_asked || !self.pattern.may_match(&passage.text) {
            return Vec::new();
        }
        let mut found: Vec<FoundLine> = lines(&passage.text)
            .enumerate()
            .filter(|(_, line)| self.pattern.is_match(line))
            .map(|(at, line)| FoundLine {
                n: at + 1,
                line: line.to_owned(),
                matches: self.pattern.matches(line),
                before: Around::default(),
                after: Around::default(),
            })
            .collect();
        if self.around > 0 && !found.is_empty() {
            let all: Arc<[String]> = lines(&passage.text).map(str::to_owned).collect();
            for FoundLine { n, before, after, .. } in &mut found {
                *before = Around::new(&all, (*n - 1).saturating_sub(self.around)..*n - 1);
                *after = Around::new(&all, *n..n.saturating_add(self.around));
            }
        }
        found
    }
}
