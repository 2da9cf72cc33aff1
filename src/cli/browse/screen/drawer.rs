//! The thread that draws the graph of the shown session.
//!
//! ```text
//! Graph     opens the session, sends the head of its graph, then answers for its rows until another is asked for
//! Rows      a block of rows, read from the store
//! Seek      the rows are read in turn until one matches
//! ```
//!
//! Of a long session, the newest entries are drawn first: then all of it, or of a huge one as much as is looked at.

use std::collections::VecDeque;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use undertext::model::SessionName;
use undertext::report::GraphNode;
use undertext::verbs::{self, Detail, Drawing};

use super::{Hand, LISTED, SHARE, TICK, next, open, stamp_of, undo_of};
use crate::browse::{Answer, BLOCK, BranchEnd, Effect, Graph, Sought, TurnRow};
use crate::cli::{CommandError, Context, Opened, common, graph, landing};
use crate::render::graph::{Edges, Look, Rows};
use crate::render::style::Styles;

/// A session with more entries is long: its newest entries are drawn first, because all of them take a second or more.
const LONG: u64 = 20_000;
/// A session with more entries is drawn as far as it is looked at, because all of it would take too much memory.
const HUGE: u64 = 100_000;
/// How many of the newest entries are drawn first, and how much more at a time.
const RECENT: usize = 2_000;
const MORE: usize = 8;

/// Draws graphs as they are asked for.
pub(super) struct Drawer {
    pub(super) hand: Hand,
    pub(super) asked: Receiver<Effect>,
    pub(super) queue: VecDeque<Effect>,
}

/// The graph to draw next.
enum Next {
    /// One that was asked for: a session, and the width of its rows.
    Asked(SessionName, usize),
    /// More of this one: all of it, or some older entries.
    Whole,
    Older,
    /// The same one, whose file has changed.
    Changed,
    /// None: the screen was closed.
    Closed,
}

impl Drawer {
    /// Draws graphs until the screen is closed.
    pub(super) fn work(mut self) {
        let mut next = self.wait();
        let (mut shown, mut recent) = (None, RECENT);
        loop {
            match next {
                Next::Closed => return,
                Next::Asked(name, columns) => {
                    let is_other = shown.as_ref().is_none_or(|(shown, _)| *shown != name);
                    recent = if is_other { RECENT } else { recent };
                    shown = Some((name, columns));
                }
                _ => {}
            }
            next = match &shown {
                Some((name, columns)) => {
                    let served = self.serve(name, *columns, &mut recent);
                    self.hand.report(served).unwrap_or_else(|| self.wait())
                }
                None => self.wait(),
            };
        }
    }

    /// Waits until a graph is asked for.
    fn wait(&mut self) -> Next {
        loop {
            match next(&self.asked, &mut self.queue, LISTED) {
                Ok(Some(Effect::Graph(name, columns))) => return Next::Asked(name, columns),
                Ok(_) => {}
                Err(_) => return Next::Closed,
            }
        }
    }

    /// Draws a session as its file is now, and answers for its rows until there is another graph to draw. `recent` is how many
    /// of its newest entries are drawn.
    fn serve(
        &mut self,
        name: &SessionName,
        columns: usize,
        recent: &mut usize,
    ) -> Result<Next, CommandError> {
        let begun = Instant::now();
        let mut context = self.hand.context("graph");
        let opened = open(&mut context, name)?;
        let stamp = stamp_of(&opened);
        let session = &opened.at()?;
        let entries = session.state.entries();
        if entries <= LONG {
            *recent = usize::MAX;
        }
        let detail = Detail { acts: true, ..Detail::default() };
        loop {
            let is_whole = *recent as u64 >= entries;
            let mut drawing = if is_whole {
                verbs::drawing(session, detail)?
            } else {
                verbs::recent_drawing(session, *recent, detail)?
            };
            if is_whole && drawing.is_compared()? {
                drawing.see_losses(&verbs::audit_boundaries(session).unwrap_or_default());
            }
            let mut board = Board::new(&mut context, &opened, &drawing, columns)?;
            board.head.is_whole = is_whole;
            self.hand.send(Answer::Graph(board.head.clone()));
            let next = if is_whole || entries > HUGE {
                let due = begun + begun.elapsed() * SHARE;
                self.answer(&board, || Instant::now() >= due && stamp_of(&opened) != stamp)?
            } else {
                for first in (0..drawing.count()).step_by(BLOCK) {
                    self.hand.send(board.block(first)?);
                }
                Next::Whole
            };
            match next {
                Next::Whole => *recent = usize::MAX,
                Next::Older => *recent = recent.saturating_mul(MORE),
                next => return Ok(next),
            }
        }
    }

    /// Answers for the rows of a graph until there is another to draw.
    fn answer(
        &mut self,
        board: &Board<'_>,
        has_changed: impl Fn() -> bool,
    ) -> Result<Next, CommandError> {
        loop {
            let Ok(request) = next(&self.asked, &mut self.queue, TICK) else {
                return Ok(Next::Closed);
            };
            match request {
                Some(Effect::Graph(name, columns)) => return Ok(Next::Asked(name, columns)),
                Some(Effect::Rows { session, columns, first })
                    if session == board.head.session && columns == board.head.columns =>
                {
                    if !board.head.is_whole && first + BLOCK > board.head.rows {
                        return Ok(Next::Older);
                    }
                    self.hand.send(board.block(first)?);
                }
                Some(Effect::Seek { session, from, sought }) if session == board.head.session => {
                    let found = board.seek(from, &sought)?;
                    if matches!(found, Answer::Sought { row: None, end: None, .. })
                        && !board.head.is_whole
                    {
                        self.queue.push_front(Effect::Seek { session, from, sought });
                        return Ok(Next::Whole);
                    }
                    self.hand.send(found);
                }
                None if has_changed() => return Ok(Next::Changed),
                _ => {}
            }
        }
    }
}

/// A graph with its edges drawn. Its rows are read when they are asked for.
struct Board<'a> {
    head: Graph,
    drawing: &'a Drawing<'a>,
    rows: Rows<'a>,
    edges: Vec<Edges>,
}

impl<'a> Board<'a> {
    fn new(
        context: &mut Context,
        opened: &Opened,
        drawing: &'a Drawing<'a>,
        columns: usize,
    ) -> Result<Self, CommandError> {
        let session = &opened.at()?;
        let look = Look {
            styles: Styles::PLAIN,
            columns: Some(columns),
            agent: session.format.name(),
            zone: context.env.zone,
            all: false,
        };
        let mut rows = Rows::of(drawing, look)?;
        let edges = rows.all_edges()?;
        let head = Graph {
            session: session.name.clone(),
            word: landing::name_of(context, opened)?,
            title: common::titled(session.archive.store().card(session.key)?.title.as_deref()),
            facts: graph::facts(context, opened, drawing.edited)?,
            columns,
            rows: drawing.count(),
            counts: rows.counts()?,
            head: drawing.head,
            is_whole: true,
            unread: drawing.damaged()?.iter().map(|damaged| damaged.problem.clone()).collect(),
            undo: undo_of(opened),
            open: verbs::open_in(session).first().map(ToString::to_string),
            deleted: verbs::lost_file(session)?.map(|path| context.env.homely(&path)),
            waiting: verbs::waiting(session)?.map(|waiting| waiting.to_string()),
        };
        Ok(Self { head, drawing, rows, edges })
    }

    /// Reads the rows of a block.
    fn read(&self, first: usize) -> Result<Vec<TurnRow>, CommandError> {
        let nodes = self.drawing.nodes(first..first + BLOCK)?;
        let edges = self.edges.get(first..).unwrap_or_default();
        let row = |(node, edges): (GraphNode, &Edges)| {
            let lines = self.rows.filled(edges, &node);
            TurnRow { has_number: self.rows.has_number(&node), lines, node }
        };
        Ok(nodes.into_iter().zip(edges).map(row).collect())
    }

    fn block(&self, first: usize) -> Result<Answer, CommandError> {
        let Graph { session, columns, .. } = &self.head;
        let turns = self.read(first)?;
        Ok(Answer::Rows { session: session.clone(), columns: *columns, first, turns })
    }

    /// Finds a row.
    fn seek(&self, from: usize, sought: &Sought) -> Result<Answer, CommandError> {
        let sought = sought.clone();
        let session = self.head.session.clone();
        if sought == Sought::BranchEnd {
            let end = self.drawing.reverted_end(from)?;
            let end = end.map(|(last, name)| BranchEnd { last: format!("{last:.8}"), name });
            return Ok(Answer::Sought { session, sought, row: None, end });
        }
        // Rows are read a block at a time.
        let (mut first, mut block) = (usize::MAX, Vec::new());
        let mut row = None;
        for at in sought.order(self.head.rows, from) {
            if at - at % BLOCK != first {
                first = at - at % BLOCK;
                block = self.read(first)?;
            }
            if block.get(at - first).is_some_and(|row| sought.is_at(row)) {
                row = Some(at);
                break;
            }
        }
        Ok(Answer::Sought { session, sought, row, end: None })
    }
}
