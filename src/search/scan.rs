//! Scanning: the records of a session that hold what is looked for.

use std::ops::Range;

use super::{
    needle,
    passages::{Passage, passages},
    pattern::Pattern,
};
use crate::{
    json::Raw,
    model::{EntryNumber, Role, Timestamp},
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
    pub(crate) before: Vec<String>,
    pub(crate) after: Vec<String>,
}

impl Seeker {
    /// Looks for a pattern, whoever said it and whenever.
    pub(crate) fn new(pattern: Pattern) -> Self {
        let sieve = needle::sieve(&pattern);
        Self { pattern, sieve, roles: Vec::new(), since: None, until: None, around: 0 }
    }

    /// Looks through the entries with these numbers, and returns those that are damaged.
    pub(crate) fn scan(
        &self,
        store: &dyn Store,
        session: &Session,
        range: Range<EntryNumber>,
        each: &mut dyn FnMut(Found),
    ) -> Result<Vec<EntryNumber>, StoreError> {
        let mut damaged = Vec::new();
        store.sift(session.key, range, &self.sieve, &mut |entry, line| match line {
            Ok(line) => self.look(session, entry, &line, each),
            Err(_) => damaged.push(entry),
        })?;
        Ok(damaged)
    }

    /// Looks through these entries, and returns those that are damaged.
    pub(crate) fn try_each(
        &self,
        store: &dyn Store,
        session: &Session,
        entries: &[EntryNumber],
        each: &mut dyn FnMut(Found),
    ) -> Result<Vec<EntryNumber>, StoreError> {
        let mut damaged = Vec::new();
        store.lines(session.key, entries, &mut |entry, line| match line {
            Ok(line) => self.look(session, entry, &line, each),
            Err(_) => damaged.push(entry),
        })?;
        Ok(damaged)
    }

    /// Looks through a record.
    fn look(
        &self,
        session: &Session,
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
        let is_late = |since: Timestamp| time.is_none_or(|time| since <= time);
        let is_early = |until: Timestamp| time.is_none_or(|time| time < until);
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
        let lines: Vec<&str> = passage.text.split('\n').collect();
        // What is behind the last line end is no line if it is empty.
        let count = lines.len() - usize::from(lines.last().is_some_and(|last| last.is_empty()));
        let lines = lines.get(..count).unwrap_or_default();
        let owned = |range: Range<usize>| -> Vec<String> {
            lines.get(range).unwrap_or_default().iter().map(|&line| line.to_owned()).collect()
        };
        let found = lines.iter().enumerate().filter(|(_, line)| self.pattern.is_match(line));
        let found = found.map(|(at, line)| FoundLine {
            n: at + 1,
            line: (*line).to_owned(),
            matches: self.pattern.matches(line),
            before: owned(at.saturating_sub(self.around)..at),
            after: owned(at + 1..(at + 1 + self.around).min(lines.len())),
        });
        found.collect()
    }
}
