//! The reading pane: the conversation of a turn as rows, with a cursor, folds and matches.

use std::collections::BTreeMap;

use undertext::model::{EntryId, EntryNumber, EntrySet, Kind, Message};
use undertext::report;
use undertext::verbs::Line;

use super::cursor::{Cursor, Way};
use super::data::Conversation;
use super::state::Look;
use crate::render::conversation::{self, Detail, Manner, Row};
use crate::render::style::{Label, Styles};
use crate::render::{harness, prose};

/// A placeholder for the command that shows the rest of a text.
const OPENS: &str = "⏎ unfolds";

/// A conversation, laid out for a width.
pub(super) struct Reader {
    pub(super) shown: Option<Conversation>,
    pub(super) detail: Detail,
    pub(super) thoughts: Detail,
    pub(super) cursor: Cursor,
    /// The rows, and the width that they are laid out for; empty if they must be laid out again.
    rows: Option<(usize, Vec<Row>)>,
    opened: EntrySet,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self {
            shown: None,
            detail: Detail::Short,
            thoughts: Detail::Short,
            cursor: Cursor::default(),
            rows: None,
            opened: EntrySet::default(),
        }
    }

    /// Shows a conversation. The cursor and the folds stay if it is the one that was shown.
    pub(super) fn show(&mut self, shown: Conversation) {
        let key = |it: &Conversation| (it.session.clone(), it.place.clone());
        if self.shown.as_ref().map(key) != Some(key(&shown)) {
            self.cursor = Cursor::default();
            self.opened = EntrySet::default();
        }
        self.shown = Some(shown);
        self.rows = None;
    }

    /// Shows nothing.
    pub(super) fn clear(&mut self) {
        self.shown = None;
        self.rows = None;
    }

    /// Replaces the cut form of an entry.
    pub(super) fn replace(&mut self, whole: &Line) {
        let lines = self.shown.iter_mut().flat_map(|shown| &mut shown.lines);
        lines.filter(|line| line.n == whole.n).for_each(|line| line.clone_from(whole));
        self.rows = None;
    }

    /// Lays the conversation out for a width, if it is not yet.
    pub(super) fn lay_out(&mut self, columns: usize, look: Look) {
        if self.rows.as_ref().is_some_and(|(wide, _)| *wide == columns) {
            return;
        }
        let fold =
            Fold { detail: self.detail, thoughts: self.thoughts, opened: Some(&self.opened) };
        let rows = self.shown.as_ref().map(|shown| {
            lay_out(&shown.lines, &shown.beneath, shown.folder.as_deref(), columns, look, fold)
        });
        let rows = rows.unwrap_or_default();
        self.cursor.limit(rows.len());
        self.rows = Some((columns, rows));
    }

    pub(super) fn rows(&self) -> &[Row] {
        self.rows.as_ref().map_or(&[], |(_, rows)| rows)
    }

    /// Scrolls by a page.
    pub(super) fn page(&mut self, way: Way) {
        let (rows, len) = (self.cursor.page.saturating_sub(1).max(1), self.rows().len());
        self.cursor.scroll(way, rows, len);
    }

    /// Unfolds or folds the entry under the cursor. Returns the entry if it was unfolded.
    pub(super) fn toggle(&mut self) -> Option<EntryNumber> {
        let entry = self.rows().get(self.cursor.at)?.entry?;
        let is_open = self.opened.contains(entry);
        if is_open {
            self.opened = self.opened.iter().filter(|other| *other != entry).collect();
        } else {
            self.opened.insert(entry);
        }
        self.rows = None;
        (!is_open).then_some(entry)
    }

    /// Unfolds everything, or folds it if everything is unfolded.
    pub(super) fn toggle_all(&mut self) {
        let all: EntrySet = self.lines().iter().map(|line| line.n).collect();
        let is_open = all.iter().all(|entry| self.opened.contains(entry));
        self.opened = if is_open { EntrySet::default() } else { all };
        self.rows = None;
    }

    pub(super) fn set_detail(&mut self) {
        self.detail = next(self.detail);
        self.rows = None;
    }

    pub(super) fn set_thoughts(&mut self) {
        self.thoughts = next(self.thoughts);
        self.rows = None;
    }

    pub(super) fn lines(&self) -> &[Line] {
        self.shown.as_ref().map_or(&[], |shown| &shown.lines)
    }

    /// Returns the user's prompt.
    pub(super) fn prompt(&self) -> Option<String> {
        let line = self.lines().iter().find(|line| line.kind == Kind::User)?;
        let text = line.messages.iter().map(Message::text).collect::<Vec<_>>().join("\n");
        let text = harness::unwrap(&text).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// Returns the block of code under the cursor.
    pub(super) fn code(&self) -> Option<String> {
        let (rows, at) = (self.rows(), self.cursor.at);
        let entry = rows.get(at).filter(|row| is_code(row))?.entry;
        // Blocks are counted, because rows are wrapped.
        let before = rows.get(..=at)?.iter().skip_while(|row| row.entry != entry);
        let (mut nth, mut was_code) = (0, false);
        for row in before {
            nth += usize::from(is_code(row) && !was_code);
            was_code = is_code(row);
        }
        let line = self.lines().iter().find(|line| Some(line.n) == entry)?;
        let text = line.messages.iter().map(Message::text).collect::<Vec<_>>().join("\n\n");
        prose::code_blocks(&text).into_iter().nth(nth.checked_sub(1)?)
    }

    /// Returns the first entry with hidden text among an entry and the results that follow it.
    pub(super) fn cut_entry(&self, entry: EntryNumber) -> Option<EntryId> {
        let mut lines = self.lines().iter().skip_while(|line| line.n != entry);
        let first = lines.next()?;
        let results = lines.take_while(|line| line.kind == Kind::Result);
        [first].into_iter().chain(results).find(|line| !line.cuts.is_empty())?.id
    }

    /// Returns the texts of the rows.
    pub(super) fn texts(&self) -> Vec<String> {
        let text = |row: &Row| row.spans.iter().map(|(_, text)| text.as_str()).collect();
        self.rows().iter().map(text).collect()
    }

    /// Moves the cursor to the next or previous match. Returns false if nothing matches.
    pub(super) fn find(&mut self, sought: &str, way: Way) -> bool {
        let texts = self.texts();
        self.cursor.find(&texts, sought, way)
    }
}

/// How much is shown of a conversation.
#[derive(Clone, Copy)]
pub(super) struct Fold<'a> {
    detail: Detail,
    thoughts: Detail,
    opened: Option<&'a EntrySet>,
}

impl Fold<'_> {
    /// Calls as one line each, and no thoughts.
    pub(super) const TITLES: Self =
        Self { detail: Detail::Titles, thoughts: Detail::Titles, opened: None };
    pub(super) const SHORT: Self = Self { detail: Detail::Short, ..Self::TITLES };
}

/// Lays a conversation out for a width.
pub(super) fn lay_out(
    lines: &[Line],
    beneath: &BTreeMap<EntryId, Vec<String>>,
    folder: Option<&str>,
    columns: usize,
    look: Look,
    fold: Fold<'_>,
) -> Vec<Row> {
    let manner = Manner {
        styles: Styles::PLAIN,
        zone: look.zone,
        now: look.now,
        columns: Some(columns),
        detail: fold.detail,
        thoughts: fold.thoughts,
        opened: fold.opened,
        every: false,
        folder,
        prose: Some(prose::rows),
        spell: &|_: &report::Line| OPENS.to_owned(),
    };
    let mut rows = Vec::new();
    let mut each = |row| {
        rows.push(row);
        Ok(())
    };
    // Writing to a list does not fail.
    let _ = conversation::each_row(lines, beneath, manner, &mut each);
    rows
}

/// Returns true if a row is one of a block of code.
fn is_code(row: &Row) -> bool {
    let has_code = row.spans.iter().any(|(label, _)| *label == Label::Code);
    has_code
        && row.spans.iter().all(|(label, text)| *label == Label::Code || text.trim().is_empty())
}

/// Returns the next amount of detail.
fn next(detail: Detail) -> Detail {
    match detail {
        Detail::Titles => Detail::Short,
        Detail::Short => Detail::Full,
        Detail::Full => Detail::Titles,
    }
}
