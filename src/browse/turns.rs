//! The pane of a session's turns: the head of its graph, a window of its rows, and the cursor.
//!
//! ```text
//! rows of the graph   0 ....... 128 ...... 256 ...... 384 ...... 512
//! blocks held                   [  block  ][  block  ]
//! on the screen                     ▌cursor
//! ```
//!
//! Invariant: at most [`MOST`] blocks are held, whatever the length of the session.

use std::collections::{BTreeMap, BTreeSet};

use undertext::model::{CheckpointNumber, EntryId, SessionName};

use super::cursor::{Cursor, Way};
use super::data::{BLOCK, Effect, Graph, TurnRow};
use super::seek::{Jump, Sought};

/// How many blocks are held.
const MOST: usize = 8;

/// Rows of a graph, in blocks by their first row.
#[derive(Clone, Debug, Default)]
struct Window(BTreeMap<usize, Vec<TurnRow>>);

impl Window {
    fn row(&self, at: usize) -> Option<&TurnRow> {
        let (first, block) = self.0.range(..=at).next_back()?;
        block.get(at - first)
    }

    /// Adds a block. Returns the one that is dropped for it, the furthest from a row.
    fn add(&mut self, first: usize, block: Vec<TurnRow>, near: usize) -> Option<usize> {
        self.0.insert(first, block);
        let ends = [self.0.keys().next(), self.0.keys().next_back()];
        let ends = ends.into_iter().flatten().copied().filter(|_| self.0.len() > MOST);
        let furthest = ends.max_by_key(|at| at.abs_diff(near))?;
        self.0.remove(&furthest);
        Some(furthest)
    }

    /// Moves all rows down.
    fn shifted(self, rows: usize) -> Self {
        Self(self.0.into_iter().map(|(first, block)| (first + rows, block)).collect())
    }
}

/// A turn that a search found.
pub(super) struct Wanted {
    pub(super) turn: Option<String>,
    /// An entry of the turn, until it is known that no row begins with it.
    pub(super) entry: Option<EntryId>,
}

/// The turns of the shown session.
#[derive(Default)]
pub(super) struct Turns {
    pub(super) session: Option<SessionName>,
    /// The word that commands accept for it.
    pub(super) word: Option<String>,
    pub(super) graph: Option<Graph>,
    pub(super) cursor: Cursor,
    /// The row where a range begins.
    range: Option<usize>,
    window: Window,
    /// The rows of the previous graph, shown until those of this one are read.
    stale: Window,
    /// The blocks that are held or asked for.
    asked: BTreeSet<usize>,
    /// The entry that the cursor was on in the previous graph.
    anchor: Option<EntryId>,
    /// How many turns arrived at the top since the cursor was there.
    pub(super) arrived: u64,
    /// What is being sought, and the last jump.
    seeking: Option<Sought>,
    pub(super) jump: Option<Jump>,
    /// True if each reverted branch is one row.
    pub(super) is_folded: bool,
    /// Where the cursor was before a jump.
    origin: Option<EntryId>,
    /// The turn to go to once its row is known.
    pub(super) wanted: Option<Wanted>,
}

impl Turns {
    /// Shows another session.
    pub(super) fn open(&mut self, session: SessionName, word: Option<String>) {
        let (jump, is_folded) = (self.jump, self.is_folded);
        *self = Self { session: Some(session), word, jump, is_folded, ..Self::default() };
    }

    pub(super) fn is_shown(&self, session: &SessionName) -> bool {
        self.session.as_ref() == Some(session)
    }

    /// Returns a command line about the session.
    pub(super) fn about(&self, args: &[&str]) -> Option<Vec<String>> {
        let SessionName { format, id } = self.session.as_ref()?;
        let session = format!("{format}:{id}");
        Some(args.iter().chain(&["-s", &session]).map(|arg| (*arg).to_owned()).collect())
    }

    pub(super) fn len(&self) -> usize {
        self.graph.as_ref().map_or(0, |graph| graph.rows)
    }

    /// Returns the places that a command may name: the branches and the turns.
    pub(super) fn places(&self) -> Vec<String> {
        let Some(graph) = &self.graph else { return Vec::new() };
        let newest = graph.newest.map(CheckpointNumber::get);
        let turns = newest.into_iter().flat_map(|newest| 0..=newest).map(|n| format!("@{n}"));
        graph.branches.iter().cloned().chain(turns).collect()
    }

    /// Returns a row, if it is held.
    pub(super) fn row(&self, at: usize) -> Option<&TurnRow> {
        self.window.row(at).or_else(|| self.stale.row(at)).filter(|_| at < self.len())
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.window.0.values().map(Vec::len).sum()
    }

    /// Returns the turn under the cursor.
    pub(super) fn turn(&self) -> Option<&TurnRow> {
        self.row(self.cursor.at)
    }

    /// Begins a range at the cursor, or ends it.
    pub(super) fn toggle_range(&mut self) {
        self.range = if self.range.is_none() { Some(self.cursor.at) } else { None };
    }

    /// Returns true if a row is in the range.
    pub(super) fn is_in_range(&self, row: usize) -> bool {
        let at = self.cursor.at;
        self.range.is_some_and(|from| (from.min(at)..=from.max(at)).contains(&row))
    }

    /// Returns the range as `log` accepts it, such as `@12..@15`.
    pub(super) fn range(&self) -> Option<String> {
        let (from, at) = (self.row(self.range?)?, self.turn()?);
        let is_newer = from.node.node < at.node.node;
        let (first, last) = if is_newer { (at, from) } else { (from, at) };
        Some(format!("{}..{}", first.place(), last.place()))
    }

    /// Returns the place that commands accept, such as `82@14`.
    pub(super) fn place(&self) -> Option<String> {
        if let Some(range) = self.range() {
            return Some(range);
        }
        let (turn, word) = (self.turn()?, self.word.as_ref()?);
        Some(if turn.has_number { format!("{word}{}", turn.place()) } else { turn.place() })
    }

    /// Shows a newer graph of the session. The cursor stays on its turn, unless it follows the current place: after a change, or
    /// on the newest turn. Returns the number of turns that arrived.
    pub(super) fn replace(&mut self, graph: Graph, is_moved: bool) -> u64 {
        let anchor = self.turn().map(|turn| turn.node.id);
        let before = self.graph.replace(graph);
        let Some(graph) = &self.graph else { return 0 };
        self.word = Some(graph.word.clone());
        // Older rows, and rows that were folded, are not new turns.
        let is_comparable =
            |before: &&Graph| before.is_whole && before.is_folded == graph.is_folded;
        let whole = before.as_ref().filter(is_comparable);
        let added = whole.map_or(0, |before| graph.rows.saturating_sub(before.rows));
        let all = |graph: &Graph| graph.counts.turns + graph.counts.reverted;
        let arrived = whole.map_or(0, |before| all(graph).saturating_sub(all(before)));
        let is_newest = |before: &Graph| [Some(0), before.head].contains(&Some(self.cursor.at));
        let was_newest = before.as_ref().is_none_or(is_newest);
        let follows = before.is_none() || is_moved || was_newest && added > 0;
        self.range = self.range.map(|from| from + added);
        let at = if follows { graph.head.unwrap_or(0) } else { self.cursor.at + added };
        self.arrived = if is_moved || was_newest { 0 } else { self.arrived + arrived };
        let held = std::mem::take(&mut self.window);
        let stale = std::mem::take(&mut self.stale);
        self.stale = if held.0.is_empty() { stale } else { held }.shifted(added);
        self.asked.clear();
        self.go_to(at);
        self.anchor = anchor.filter(|_| !follows);
        if is_moved { 0 } else { arrived }
    }

    /// Takes in a block of rows. Returns what must be asked for if the cursor's turn is no longer where it was.
    pub(super) fn add(
        &mut self,
        first: usize,
        columns: usize,
        block: Vec<TurnRow>,
    ) -> Option<Effect> {
        self.graph.as_ref().filter(|graph| graph.columns == columns)?;
        let dropped = self.window.add(first, block, self.cursor.at);
        dropped.map(|first| self.asked.remove(&first));
        let row = self.window.row(self.cursor.at)?;
        let anchor = self.anchor.take().filter(|anchor| row.node.id != *anchor)?;
        self.seek(Sought::Entry(anchor), 0)
    }

    /// Returns the requests for blocks near the cursor that are not held.
    pub(super) fn missing(&mut self) -> Vec<Effect> {
        let Some(graph) = &self.graph else { return Vec::new() };
        let Cursor { at, top, page } = self.cursor;
        let page = page.max(1);
        let from = top.min(at).saturating_sub(page) / BLOCK;
        // A graph that is not whole goes on after its last row.
        let end = if graph.is_whole { graph.rows } else { usize::MAX };
        let to = (top.max(at) + 2 * page).min(end).div_ceil(BLOCK);
        let near = || (from..to).map(|block| block * BLOCK);
        if near().all(|first| self.window.0.contains_key(&first)) {
            self.stale = Window::default();
        }
        let (session, columns) = (&graph.session, graph.columns);
        let new = near().filter(|first| self.asked.insert(*first));
        new.map(|first| Effect::Rows { session: session.clone(), columns, first }).collect()
    }

    /// Returns the places of the newest turns.
    pub(super) fn newest(&self, turns: usize) -> Vec<String> {
        let rows = (0..BLOCK).map_while(|at| self.window.row(at)).filter(|row| row.has_number);
        rows.take(turns).map(TurnRow::place).collect()
    }

    pub(super) fn go_to(&mut self, row: usize) {
        self.cursor.at = row;
        self.cursor.limit(self.len());
        self.anchor = None;
    }

    pub(super) fn step(&mut self, way: Way, rows: usize) {
        let len = self.len();
        self.cursor.step(way, rows, len);
        self.anchor = None;
        if self.cursor.at == 0 {
            self.arrived = 0;
        }
    }

    /// Returns the request to find a row.
    pub(super) fn seek(&mut self, sought: Sought, from: usize) -> Option<Effect> {
        let session = self.session.clone().filter(|_| self.graph.is_some())?;
        self.seeking = Some(sought.clone());
        Some(Effect::Seek { session, from, sought })
    }

    /// Returns the request to find the next row of a kind.
    pub(super) fn seek_jump(&mut self, jump: Jump) -> Option<Effect> {
        self.jump = Some(jump);
        self.seek(Sought::Jump(jump), self.cursor.at)
    }

    /// Returns the request to return to where the cursor was before a jump.
    pub(super) fn seek_origin(&mut self) -> Option<Effect> {
        let origin = self.origin?;
        self.origin = self.turn().map(|turn| turn.node.id);
        self.seek(Sought::Entry(origin), self.cursor.at)
    }

    /// Returns the request to find the turn that a search found.
    pub(super) fn seek_wanted(&mut self) -> Option<Effect> {
        let Wanted { turn, entry } = self.wanted.as_ref()?;
        let turn = turn.clone().map(Sought::Turn);
        let sought = entry.map(Sought::Entry).or(turn)?;
        self.seek(sought, 0)
    }

    /// Goes to a row that was found. Returns false if this was not what is being sought.
    pub(super) fn found(&mut self, sought: &Sought, row: Option<usize>) -> bool {
        if self.seeking.as_ref() != Some(sought) {
            return false;
        }
        self.seeking = None;
        if let Some(row) = row {
            if matches!(sought, Sought::Jump(_)) {
                self.origin = self.turn().map(|turn| turn.node.id);
            }
            self.go_to(row);
        }
        match (&mut self.wanted, row, sought) {
            (wanted, Some(_), Sought::Entry(_) | Sought::Turn(_)) => *wanted = None,
            (Some(wanted), None, Sought::Entry(_)) => wanted.entry = None,
            _ => {}
        }
        true
    }

    /// Returns how many lines a row takes.
    fn lines(&self, at: usize) -> usize {
        self.row(at).map_or(1, |row| row.lines.len())
    }

    /// Scrolls so that the cursor is visible in a pane of this height.
    pub(super) fn fit(&mut self, height: usize) {
        // The first row that can be on top while the cursor is visible.
        let (mut lowest, mut used) = (self.cursor.at, 1);
        while lowest > 0 && used + self.lines(lowest - 1) <= height {
            used += self.lines(lowest - 1);
            lowest -= 1;
        }
        let top = self.cursor.top.clamp(lowest, self.cursor.at);
        let (mut left, mut shown) = (height, 0);
        while left > 0 && top + shown < self.len() {
            left = left.saturating_sub(self.lines(top + shown));
            shown += 1;
        }
        (self.cursor.top, self.cursor.page) = (top, shown);
    }

    /// Returns the row on a visible line.
    pub(super) fn at_line(&self, line: usize) -> Option<usize> {
        let mut left = line;
        for at in self.cursor.top..self.len() {
            match left.checked_sub(self.lines(at)) {
                Some(rest) => left = rest,
                None => return Some(at),
            }
        }
        None
    }
}
