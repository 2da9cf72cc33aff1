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
use crate::render::graph::{Edges, Folds, Look, Rows};
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

/// What was asked for: a session, the width of its rows, and whether its reverted branches are folded.
struct Asked {
    name: SessionName,
    columns: usize,
    is_folded: bool,
}

/// The graph to draw next.
enum Next {
    /// One that was asked for.
    Asked(Asked),
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
        let (mut shown, mut recent) = (None::<Asked>, RECENT);
        loop {
            match next {
                Next::Closed => return,
                Next::Asked(asked) => {
                    let is_other = shown.as_ref().is_none_or(|shown| shown.name != asked.name);
                    recent = if is_other { RECENT } else { recent };
                    shown = Some(asked);
                }
                _ => {}
            }
            next = match &shown {
                Some(asked) => {
                    let served = self.serve(asked, &mut recent);
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
                Ok(Some(Effect::Graph(name, columns, is_folded))) => {
                    return Next::Asked(Asked { name, columns, is_folded });
                }
                Ok(_) => {}
                Err(_) => return Next::Closed,
            }
        }
    }

    /// Draws a session as its file is now, and answers for its rows until there is another graph to draw. `recent` is how many
    /// of its newest entries are drawn.
    fn serve(&mut self, asked: &Asked, recent: &mut usize) -> Result<Next, CommandError> {
        let begun = Instant::now();
        let mut context = self.hand.context("graph");
        let opened = open(&mut context, &asked.name)?;
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
            let mut board = Board::new(&mut context, &opened, &drawing, asked)?;
            board.head.is_whole = is_whole;
            self.hand.send(Answer::Graph(board.head.clone()));
            let next = if is_whole || entries > HUGE {
                let due = begun + begun.elapsed() * SHARE;
                self.answer(&board, || Instant::now() >= due && stamp_of(&opened) != stamp)?
            } else {
                for first in (0..board.head.rows).step_by(BLOCK) {
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
                Some(Effect::Graph(name, columns, is_folded)) => {
                    return Ok(Next::Asked(Asked { name, columns, is_folded }));
                }
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
    folds: Folds,
    /// The nodes that have a row.
    nodes: Vec<usize>,
}

impl<'a> Board<'a> {
    fn new(
        context: &mut Context,
        opened: &Opened,
        drawing: &'a Drawing<'a>,
        asked: &Asked,
    ) -> Result<Self, CommandError> {
        let session = &opened.at()?;
        let look = Look {
            styles: Styles::PLAIN,
            columns: Some(asked.columns),
            agent: session.format.name(),
            zone: context.env.zone,
            all: false,
        };
        let mut rows = Rows::of(drawing, look)?;
        let folds = if asked.is_folded { Folds::reverted(drawing)? } else { Folds::default() };
        let edges = rows.all_edges(&folds)?;
        let nodes: Vec<usize> =
            (0..drawing.count()).filter(|node| folds.of(*node) == *node).collect();
        let head = Graph {
            session: session.name.clone(),
            word: landing::name_of(context, opened)?,
            title: common::titled(session.archive.store().card(session.key)?.title.as_deref()),
            facts: graph::facts(context, opened, drawing.edited)?,
            columns: asked.columns,
            is_folded: asked.is_folded,
            branches: session.state.branches.keys().cloned().collect(),
            newest: drawing.newest,
            rows: nodes.len(),
            counts: rows.counts()?,
            head: drawing.head.and_then(|head| nodes.binary_search(&folds.of(head)).ok()),
            is_whole: true,
            unread: drawing.damaged()?.iter().map(|damaged| damaged.problem.clone()).collect(),
            undo: undo_of(opened),
            open: verbs::open_in(session).first().map(ToString::to_string),
            deleted: verbs::lost_file(session)?.map(|path| context.env.homely(&path)),
            waiting: verbs::waiting(session)?.map(|waiting| waiting.to_string()),
        };
        Ok(Self { head, drawing, rows, edges, folds, nodes })
    }

    /// Reads the rows of a block.
    fn read(&self, first: usize) -> Result<Vec<TurnRow>, CommandError> {
        let mut nodes = Vec::with_capacity(BLOCK);
        let wanted = self.nodes.iter().skip(first).take(BLOCK).copied().collect::<Vec<_>>();
        for run in wanted.chunk_by(|one, next| one + 1 == *next) {
            let first = run.first().copied().unwrap_or_default();
            nodes.extend(self.drawing.nodes(first..first + run.len())?);
        }
        let edges = self.edges.get(first..).unwrap_or_default();
        let row = |(mut node, edges): (GraphNode, &Edges)| {
            self.fold(&mut node)?;
            let lines = self.rows.filled(edges, &node);
            Ok(TurnRow { has_number: self.rows.has_number(node.node), lines, node })
        };
        nodes.into_iter().zip(edges).map(row).collect()
    }

    /// Adds to a node what was folded into its row.
    fn fold(&self, node: &mut GraphNode) -> Result<(), CommandError> {
        let within: Vec<usize> = self.folds.within(node.node).collect();
        if within.is_empty() {
            return Ok(());
        }
        let all = within.iter().chain([&node.node]);
        let turns = all.filter(|node| self.rows.has_number(**node)).count() as u64;
        let turns = common::counted(turns, "turn", "turns");
        node.words = format!("{turns}: {}", node.words);
        if let Some((_, Some(name))) = self.drawing.reverted_end(node.node)? {
            node.branches = vec![name];
        }
        if let Some(acts) = &mut node.acts {
            for more in within.iter().filter_map(|node| self.drawing.acts().get(*node)) {
                acts.edits += more.edits;
                acts.commands += more.commands;
                acts.failed += more.failed;
            }
        }
        Ok(())
    }

    /// Returns the row that what was sought is folded into.
    fn row_within(&self, sought: &Sought) -> Result<Option<usize>, CommandError> {
        let mut found = None;
        self.drawing.each(|node| {
            let (at, has_number) = (node.node, self.rows.has_number(node.node));
            let row = TurnRow { node, has_number, lines: Vec::new() };
            found = found.or(sought.is_at(&row).then_some(at));
            Ok::<_, CommandError>(())
        })?;
        Ok(found.and_then(|node| self.nodes.binary_search(&self.folds.of(node)).ok()))
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
            let end = self.drawing.reverted_end(self.nodes.get(from).copied().unwrap_or(from))?;
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
        if row.is_none() && self.head.is_folded {
            row = self.row_within(&sought)?;
        }
        Ok(Answer::Sought { session, sought, row, end: None })
    }
}
