//! The reading pane: the conversation of a turn as rows, with a cursor, folds and matches.
//!
//! Invariant: nothing is laid out here. What must be is a [`Draft`], and its rows come as an answer.

use std::borrow::Cow;
use std::sync::Arc;

use undertext::model::{Block, EntryId, EntryNumber, EntrySet, Kind, Message};
use undertext::report;
use undertext::verbs::Line;

use super::cursor::{Cursor, Way};
use super::data::{Conversation, text_of};
use super::state::Look;
use crate::render::call::Caller;
use crate::render::conversation::{self, Detail, Manner, Row};
use crate::render::style::{Label, Styles};
use crate::render::{harness, prose};

/// A placeholder for the command that shows the rest of a text.
const OPENS: &str = "⏎ unfolds";

/// How much is shown of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fold {
    pub(super) detail: Detail,
    pub(super) thoughts: Detail,
    opened: EntrySet,
    /// Show only the calls that edit files.
    pub(super) has_files_only: bool,
    pub(super) side_by_side: bool,
}

impl Fold {
    /// Calls in this detail, and no thoughts.
    pub(super) fn new(detail: Detail) -> Self {
        let thoughts = Detail::Titles;
        let opened = EntrySet::default();
        Self { detail, thoughts, opened, has_files_only: false, side_by_side: false }
    }
}

/// A conversation to lay out for a width. A long one takes a while, so the face does it in another thread.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(super) shown: Arc<Conversation>,
    pub(super) columns: usize,
    pub(super) look: Look,
    pub(super) fold: Fold,
}

impl PartialEq for Draft {
    fn eq(&self, other: &Self) -> bool {
        let is_same = Arc::ptr_eq(&self.shown, &other.shown);
        is_same && (self.columns, &self.fold) == (other.columns, &other.fold)
    }
}

impl Eq for Draft {}

impl Draft {
    /// Lays the conversation out.
    pub(crate) fn lay_out(&self) -> Vec<Row> {
        let Conversation { lines, beneath, folder, .. } = &*self.shown;
        let manner = Manner {
            styles: Styles::PLAIN,
            zone: self.look.zone,
            now: self.look.now,
            columns: Some(self.columns),
            detail: self.fold.detail,
            thoughts: self.fold.thoughts,
            opened: Some(&self.fold.opened),
            every: false,
            side_by_side: self.fold.side_by_side,
            folder: folder.as_deref(),
            prose: Some(prose::rows),
            spell: &|_: &report::Line| OPENS.to_owned(),
        };
        let mut lines = Cow::Borrowed(lines);
        if self.fold.has_files_only {
            let edits = |line: &Line| line.messages.iter().flat_map(Message::parts).any(is_edit);
            lines.to_mut().retain(edits);
        }
        #[cfg(test)]
        super::tests::LAID_OUT.set(super::tests::LAID_OUT.get() + lines.len());
        let mut rows = Vec::new();
        let mut each = |row| {
            rows.push(row);
            Ok(())
        };
        // Writing to a list does not fail.
        let _ = conversation::each_row(&lines, beneath, manner, &mut each);
        rows
    }
}

/// The rows of a conversation, and what they were laid out from. They stay until newer ones are there.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages {
    from: Option<Draft>,
    pub(super) rows: Vec<Row>,
}

impl Pages {
    /// Returns a draft unless it is laid out.
    pub(super) fn missing(&self, draft: Draft) -> Option<Draft> {
        Some(draft).filter(|draft| self.from.as_ref() != Some(draft))
    }

    /// Returns true if these are rows of a conversation.
    pub(super) fn are_of(&self, shown: &Arc<Conversation>) -> bool {
        self.from.as_ref().is_some_and(|from| Arc::ptr_eq(&from.shown, shown))
    }

    pub(super) fn replace(&mut self, draft: Draft, rows: Vec<Row>) {
        *self = Self { from: Some(draft), rows };
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = String> {
        self.rows.iter().map(|row| text_of(&row.spans))
    }
}

/// The conversation that is shown.
pub(super) struct Reader {
    pub(super) shown: Option<Arc<Conversation>>,
    pub(super) fold: Fold,
    pub(super) cursor: Cursor,
    pages: Pages,
}

impl Reader {
    pub(super) fn new() -> Self {
        let fold = Fold { thoughts: Detail::Short, ..Fold::new(Detail::Short) };
        Self { shown: None, fold, cursor: Cursor::default(), pages: Pages::default() }
    }

    /// Shows a conversation. The cursor and the folds stay if it is the one that was shown.
    pub(super) fn show(&mut self, shown: Conversation) {
        let key = |it: &Conversation| (it.session.clone(), it.place.clone());
        if self.shown.as_deref().map(key) != Some(key(&shown)) {
            self.cursor = Cursor::default();
            self.fold.opened = EntrySet::default();
        }
        self.shown = Some(Arc::new(shown));
    }

    /// Shows nothing.
    pub(super) fn clear(&mut self) {
        self.shown = None;
        self.pages = Pages::default();
    }

    /// Replaces the cut form of an entry.
    pub(super) fn replace(&mut self, whole: &Line) {
        // Else it would be copied, because this refers to it too.
        self.pages.from = None;
        let lines = self.shown.iter_mut().flat_map(|shown| &mut Arc::make_mut(shown).lines);
        lines.filter(|line| line.n == whole.n).for_each(|line| line.clone_from(whole));
    }

    /// Returns what must be laid out for a width.
    pub(super) fn missing(&self, columns: usize, look: Look) -> Option<Draft> {
        let (shown, fold) = (self.shown.clone()?, self.fold.clone());
        self.pages.missing(Draft { shown, columns, look, fold })
    }

    /// Shows rows, if they are of this conversation. The cursor stays in its entry.
    pub(super) fn lay_out(&mut self, draft: Draft, rows: Vec<Row>) {
        let Some(shown) = self.shown.as_ref().filter(|it| Arc::ptr_eq(it, &draft.shown)) else {
            return;
        };
        let entry = self.rows().get(self.cursor.at).and_then(|row| row.entry);
        let is_it = |row: &Row| row.entry == entry;
        if self.pages.are_of(shown) && !rows.get(self.cursor.at).is_some_and(is_it) {
            self.cursor.at = rows.iter().position(is_it).unwrap_or(self.cursor.at);
        }
        self.cursor.limit(rows.len());
        self.pages.replace(draft, rows);
    }

    pub(super) fn rows(&self) -> &[Row] {
        &self.pages.rows
    }

    /// Scrolls by a page.
    pub(super) fn page(&mut self, way: Way) {
        let (rows, len) = (self.cursor.page.saturating_sub(1).max(1), self.rows().len());
        self.cursor.scroll(way, rows, len);
    }

    /// Unfolds or folds the entry under the cursor. Returns the entry if it was unfolded.
    pub(super) fn toggle(&mut self) -> Option<EntryNumber> {
        let entry = self.rows().get(self.cursor.at)?.entry?;
        let opened = &mut self.fold.opened;
        let is_open = opened.contains(entry);
        if is_open {
            *opened = opened.iter().filter(|other| *other != entry).collect();
        } else {
            opened.insert(entry);
        }
        (!is_open).then_some(entry)
    }

    /// Unfolds everything, or folds it if everything is unfolded.
    pub(super) fn toggle_all(&mut self) {
        let all: EntrySet = self.lines().iter().map(|line| line.n).collect();
        let is_open = all.iter().all(|entry| self.fold.opened.contains(entry));
        self.fold.opened = if is_open { EntrySet::default() } else { all };
    }

    pub(super) fn lines(&self) -> &[Line] {
        self.shown.as_ref().map_or(&[], |shown| &shown.lines)
    }

    /// Returns true if the turn at a place is shown.
    pub(super) fn is_at(&self, place: Option<&str>) -> bool {
        self.shown.as_ref().is_some_and(|shown| Some(&*shown.place) == place)
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

    /// Returns the text of the turn as it is shown.
    pub(super) fn text(&self) -> Option<String> {
        let is_shown = self.pages.are_of(self.shown.as_ref()?);
        is_shown.then(|| self.pages.texts().collect::<Vec<_>>().join("\n"))
    }

    /// Moves the cursor to the next or previous match. Returns false if nothing matches.
    pub(super) fn find(&mut self, sought: &str, way: Way) -> bool {
        let (rows, sought) = (&self.pages.rows, sought.to_lowercase());
        let has = |row: &Row| text_of(&row.spans).to_lowercase().contains(&sought);
        self.cursor.find(rows.len(), way, |at| rows.get(at).is_some_and(has))
    }
}

/// Returns true if a row is one of a block of code.
fn is_code(row: &Row) -> bool {
    let has_code = row.spans.iter().any(|(label, _)| *label == Label::Code);
    has_code
        && row.spans.iter().all(|(label, text)| *label == Label::Code || text.trim().is_empty())
}

/// Returns true if a block is a call that edits a file.
fn is_edit(block: &Block) -> bool {
    let Block::Call { name, input, .. } = block else { return false };
    !Caller { name, folder: None, whole: false }.say(input).body.is_empty()
}

/// Returns the next amount of detail.
pub(super) fn next(detail: Detail) -> Detail {
    match detail {
        Detail::Titles => Detail::Short,
        Detail::Short => Detail::Full,
        Detail::Full => Detail::Titles,
    }
}
