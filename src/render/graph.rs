//! Graphs: a session's turns and where they fork, newest first.
//!
//! `◉` marks the current branch's place, `◆` a boundary, `○` any other node.
//!
//! ```text
//! ◉ @19  16:07  the words of the turn            2✎ 3$     main         edited files, commands, failed calls
//! │ ○ @15  15:41  a reverted turn                1✎ 1✗     reverted
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use renderdag::{Ancestor, GraphRowRenderer, Renderer as _};
use undertext::model::{CheckpointNumber, Kind, Timestamp};
use undertext::report::{Acts, Expense};
use undertext::verbs::{Drawing, GraphNode, OpsError, Outlined, Spot};
use undertext::wire::Departure;

use super::style::{Label, Span, Styles};
use super::time::Zone;
use super::{conversation, harness, safe, units};

/// Minimum width of an entry's text, however narrow the terminal.
const LEAST_WORDS: usize = 16;
/// The remark for a turn without a predecessor, although earlier ones exist in the file.
const STARTS_OVER: &str = "~ starts over: earlier turns are not in this context";
/// The mark of a reverted turn that no branch names.
const REVERTED: &str = "reverted";
/// Maximum width of the branch names in a row.
const MOST_NAMES: usize = 24;
/// The width without a terminal.
const WIDTH: usize = 100;
/// Marks where the renderer places a line of text. Safe text never contains it.
const SLOT: char = '\0';

/// How a graph is shown.
#[derive(Clone, Copy)]
pub(crate) struct Look<'a> {
    pub(crate) styles: Styles,
    /// The terminal's width, which rows are clipped to.
    pub(crate) columns: Option<usize>,
    /// The agent's name.
    pub(crate) agent: &'a str,
    pub(crate) zone: Zone,
    /// Show each entry as a row with its id.
    pub(crate) all: bool,
}

/// The column widths of rows without ids.
#[derive(Clone, Copy, Default)]
struct Columns {
    /// The width of a turn's number.
    number: usize,
    /// The width of a time.
    time: usize,
    /// True if times include the day.
    is_dated: bool,
    /// The width of the acts column; 0 if no turn did anything.
    acts: usize,
    /// The width of the branch names.
    names: usize,
}

/// The state of drawing a graph row by row.
pub(crate) struct Rows<'a> {
    graph: &'a Drawing<'a>,
    look: Look<'a>,
    width: usize,
    columns: Columns,
    /// True for each node that shows a number.
    numbered: Vec<bool>,
    /// The first node of the conversation.
    first: Option<usize>,
    /// The nodes at which a conversation begins.
    roots: BTreeSet<usize>,
    renderer: BoxDrawing,
}

type BoxDrawing = renderdag::BoxDrawingRenderer<usize, GraphRowRenderer<usize>>;

impl<'a> Rows<'a> {
    /// Prepares to draw a graph.
    pub(crate) fn of(graph: &'a Drawing<'a>, look: Look<'a>) -> Result<Self, OpsError> {
        let mut numbers = Vec::new();
        let mut roots = BTreeSet::new();
        let mut columns = Columns::default();
        let (mut days, mut has_reverted, mut spent) = (BTreeSet::new(), false, 0);
        for outlined in graph.outline() {
            let Outlined { node, parents, checkpoint, own, time, is_root, is_off, .. } = outlined?;
            numbers.extend(checkpoint.map(|n| (n, node, parents)));
            roots.extend(is_root.then_some(node));
            let number = checkpoint.map(|n| number(n, own.as_deref()));
            columns.number = columns.number.max(number.map_or(0, |number| safe::width(&number)));
            days.extend(time.map(|time| look.zone.moment(time).date()));
            has_reverted |= is_off;
            let words = graph.spent().get(node).map(|spent| spent_words(time, spent));
            spent = spent.max(words.map_or(0, |words| safe::width(&words)));
        }
        columns.is_dated = days.len() > 1;
        columns.time = match days.len() {
            0 => 0,
            1 => "16:07".len(),
            _ => "30 Nov 16:07".len(),
        };
        let acts = graph.acts().iter().map(|acts| safe::width(&acts_words(*acts)));
        columns.acts = acts.max().unwrap_or_default();
        columns.acts += spent + 2 * usize::from(columns.acts > 0 && spent > 0);
        let heads = graph.heads().map(|names| safe::width(&safe::line(&names.join(", "))));
        let reverted = if has_reverted { REVERTED.len() } else { 0 };
        columns.names = heads.max().unwrap_or_default().max(reverted).min(MOST_NAMES);
        let mut renderer =
            GraphRowRenderer::new().output().with_min_row_height(0).build_box_drawing();
        // The current branch's path keeps the first column.
        graph.head.into_iter().for_each(|head| renderer.reserve(head));
        Ok(Self {
            graph,
            look,
            width: look.columns.unwrap_or(WIDTH),
            columns,
            numbered: numbered(numbers),
            first: roots.last().copied(),
            roots,
            renderer,
        })
    }

    /// Writes the branches whose place is before the first entry.
    pub(crate) fn empty(&self, out: &mut dyn Write) -> io::Result<()> {
        let (graph, styles) = (self.graph, self.look.styles);
        for branch in &graph.empty {
            let is_head = *branch == graph.current;
            let mut parts = vec![(Label::Dim, "nothing yet".to_owned())];
            parts.extend(names(std::slice::from_ref(branch), is_head.then_some(graph)));
            let (label, glyph) = glyph(Kind::Meta, is_head);
            let mut row = vec![(label, format!("{glyph}  "))];
            row.extend(join(parts));
            writeln!(out, "{}", styles.paint_line(&row))?;
        }
        Ok(())
    }

    /// Writes the row of a node. Rows are written in order.
    pub(crate) fn row(&mut self, out: &mut dyn Write, node: &GraphNode) -> io::Result<()> {
        let styles = self.look.styles;
        self.lines(node).iter().try_for_each(|line| writeln!(out, "{}", styles.paint_line(line)))
    }

    /// Returns true if a node shows its turn's number.
    #[cfg(feature = "browse")]
    pub(crate) fn has_number(&self, node: usize) -> bool {
        self.numbered.get(node).copied().unwrap_or_default()
    }

    /// Returns the lines of a node: its row, and the edges below it. Rows are drawn in order.
    pub(crate) fn lines(&mut self, node: &GraphNode) -> Vec<Vec<Span>> {
        let room = self.room(node.node, &node.parents);
        let text = self.text(node, room);
        let drawn =
            self.edges(node.node, &node.parents, glyph(node.kind, node.is_head).1, text.len());
        fill(&drawn, node, text)
    }

    /// Draws the edges of all rows, so that they can be filled in any order.
    #[cfg(feature = "browse")]
    pub(crate) fn all_edges(&mut self, folds: &Folds) -> Result<Vec<Edges>, OpsError> {
        let mut all = Vec::with_capacity(self.graph.count());
        for outlined in self.graph.outline() {
            let Outlined { node, parents, kind, .. } = outlined?;
            if folds.of(node) != node {
                continue;
            }
            let mut parents: Vec<usize> = parents.iter().map(|node| folds.of(*node)).collect();
            parents.dedup();
            let parents = parents.as_slice();
            let room = self.room(node, parents);
            let glyph = glyph(kind, self.graph.head == Some(node)).1;
            let lines = 1 + usize::from(self.starts_over(node));
            let drawn = self.edges(node, parents, glyph, lines).into_boxed_str();
            all.push(Edges { drawn, room });
        }
        Ok(all)
    }

    /// Returns the lines of a node whose edges are drawn.
    #[cfg(feature = "browse")]
    pub(crate) fn filled(&self, edges: &Edges, node: &GraphNode) -> Vec<Vec<Span>> {
        fill(&edges.drawn, node, self.text(node, edges.room))
    }

    /// Counts the turns, the reverted turns, and the compactions.
    #[cfg(feature = "browse")]
    pub(crate) fn counts(&self) -> Result<Counts, OpsError> {
        let mut counts = Counts::default();
        for outlined in self.graph.outline() {
            let Outlined { node, kind, is_reverted, .. } = outlined?;
            let has_number = self.has_number(node);
            counts.compactions += u64::from(kind == Kind::Boundary);
            counts.reverted += u64::from(has_number && is_reverted);
            counts.turns += u64::from(has_number && !is_reverted);
        }
        Ok(counts)
    }

    /// Returns the room that the edges leave for a node's text.
    fn room(&self, node: usize, parents: &[usize]) -> usize {
        let parents: Vec<_> = parents.iter().copied().map(Ancestor::Parent).collect();
        let edges = self.renderer.width(Some(&node), Some(&parents));
        self.width.saturating_sub(usize::try_from(edges).unwrap_or(usize::MAX) + 1)
    }

    /// Draws the edges of the next node, with a slot for each line of its text.
    fn edges(&mut self, node: usize, parents: &[usize], glyph: &str, lines: usize) -> String {
        let parents = parents.iter().copied().map(Ancestor::Parent).collect();
        let slots = vec![SLOT.to_string(); lines].join("\n");
        self.renderer.next_row(node, parents, glyph.to_owned(), slots)
    }

    /// Returns the text of a node.
    fn text(&self, node: &GraphNode, room: usize) -> Vec<Vec<Span>> {
        let has_number = self.numbered.get(node.node).copied().unwrap_or_default();
        let mut text = if self.look.all {
            message(node, self.graph, self.look, has_number, room)
        } else {
            vec![self.turn(node, has_number, room)]
        };
        if self.starts_over(node.node) {
            text.push(vec![(Label::Dim, safe::clip(STARTS_OVER, room).into_owned())]);
        }
        text
    }

    /// Returns true for a conversation that begins again.
    fn starts_over(&self, node: usize) -> bool {
        self.roots.contains(&node) && self.first != Some(node)
    }
}

/// How many nodes of each kind a graph has.
#[cfg(feature = "browse")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// The turns that were not reverted.
    pub(crate) turns: u64,
    pub(crate) reverted: u64,
    pub(crate) compactions: u64,
}

/// What is folded: the row of a reverted branch's first node shows the whole branch.
#[cfg(feature = "browse")]
#[derive(Clone, Debug, Default)]
pub(crate) struct Folds(BTreeMap<usize, usize>);

#[cfg(feature = "browse")]
impl Folds {
    /// Folds each reverted branch, with those that fork from it, to the row of its first node.
    pub(crate) fn reverted(graph: &Drawing<'_>) -> Result<Self, OpsError> {
        let outlines: Vec<Outlined<'_>> = graph.outline().collect::<Result<_, _>>()?;
        let mut folds = Self::default();
        // A node comes before its parents.
        for outlined in outlines.iter().rev().filter(|outlined| outlined.is_reverted) {
            let is_reverted = |node: &&usize| outlines.get(**node).is_some_and(|it| it.is_reverted);
            if let Some(parent) = outlined.parents.iter().find(is_reverted) {
                folds.0.insert(outlined.node, folds.of(*parent));
            }
        }
        Ok(folds)
    }

    /// Returns the node whose row shows a node.
    pub(crate) fn of(&self, node: usize) -> usize {
        self.0.get(&node).copied().unwrap_or(node)
    }

    /// Returns the nodes that the row of a node shows too.
    pub(crate) fn within(&self, node: usize) -> impl Iterator<Item = usize> {
        self.0.iter().filter(move |(_, first)| **first == node).map(|(node, _)| *node)
    }
}

/// The edges of a node, with a slot for each line of its text, and the room for it.
#[cfg(feature = "browse")]
pub(crate) struct Edges {
    drawn: Box<str>,
    room: usize,
}

/// Fills the slots of drawn edges with a node's text.
fn fill(drawn: &str, node: &GraphNode, text: Vec<Vec<Span>>) -> Vec<Vec<Span>> {
    let (label, glyph) = glyph(node.kind, node.is_head);
    let mut text = text.into_iter();
    let line = |line: &str| {
        let (edges, is_followed) =
            line.split_once(SLOT).map_or((line, false), |(edges, _)| (edges, true));
        let mut spans = match edges.split_once(glyph) {
            Some((before, after)) => vec![
                (Label::Plain, before.to_owned()),
                (label, glyph.to_owned()),
                (Label::Plain, after.to_owned()),
            ],
            None => vec![(Label::Plain, edges.to_owned())],
        };
        spans.extend(text.next().filter(|_| is_followed).into_iter().flatten());
        spans
    };
    drawn.lines().map(line).collect()
}

impl Rows<'_> {
    /// Returns the row of a turn's node.
    fn turn(&self, node: &GraphNode, has_number: bool, room: usize) -> Vec<Span> {
        let zone = self.look.zone;
        let Columns { number: wide, time, is_dated, acts, names } = self.columns;
        let checkpoint = node.checkpoint.filter(|_| has_number);
        let shown = checkpoint.map(|n| number(n, node.own.as_deref())).unwrap_or_default();
        let moment = node.time.map(|at| {
            let form = if is_dated { "%-d %b %H:%M" } else { "%H:%M" };
            zone.moment(at).format(form).to_string()
        });
        let gap = " ".repeat(wide.saturating_sub(safe::width(&shown)));
        let space = |columns: usize| (Label::Plain, " ".repeat(columns));
        let mut row = vec![(Label::Checkpoint, format!("{shown}{gap}")), space(2)];
        if time > 0 {
            let moment = format!("{:>time$}", moment.unwrap_or_default());
            row.extend([(Label::Time, moment), space(2)]);
        }
        let spent = node.spent.as_ref().map(|spent| spent_words(node.time, spent));
        let done = [node.acts.map(acts_words), spent];
        let done = done.into_iter().flatten().filter(|done| !done.is_empty());
        let done = done.collect::<Vec<_>>().join("  ");
        let ends = names_of(node);
        // In a narrow terminal, the text has priority.
        let mut right = names + 2 * usize::from(names > 0) + acts + 2 * usize::from(acts > 0);
        let left = wide + 2 + time + 2 * usize::from(time > 0);
        let has_acts = left + right + LEAST_WORDS <= room;
        if !has_acts {
            right = names + 2 * usize::from(names > 0);
        }
        let room = room.saturating_sub(left);
        let words = self.words(node);
        let width: usize = words.iter().map(|(_, text)| safe::width(text) + 2).sum();
        let is_alone = done.is_empty() && ends.is_empty();
        let for_words = if is_alone { room } else { room.saturating_sub(right).max(LEAST_WORDS) };
        row.extend(clipped(&words, for_words));
        if is_alone {
            return row;
        }
        let used = width.saturating_sub(2).min(for_words);
        row.push(space(for_words.saturating_sub(used)));
        if has_acts && acts > 0 {
            row.extend([space(2), (Label::Dim, format!("{done:>acts$}"))]);
        }
        if !ends.is_empty() {
            row.push(space(2));
            row.extend(join(ends));
        }
        row
    }

    /// Returns the text of a node's row, in parts.
    fn words(&self, node: &GraphNode) -> Vec<Span> {
        let mut words: Vec<Span> = found(node).into_iter().collect();
        if node.is_sub_agent {
            words.push((Label::Dim, "sub-agent:".to_owned()));
        }
        let said = harness::unwrap(&node.words);
        let said = (Label::Plain, safe::line(&said).into_owned());
        match node.kind {
            Kind::Boundary => {
                let lost = node.lost.filter(|lost| *lost > 0);
                let lost = lost.map(|n| {
                    if n == 1 {
                        ", 1 thing lost".into()
                    } else {
                        format!(", {} things lost", units::grouped(n))
                    }
                });
                let compacted = units::compaction((node.tokens_before, node.tokens_after));
                words.push((Label::Boundary, compacted + &lost.unwrap_or_default()));
            }
            Kind::Note if node.is_from_later => {
                words.extend([(Label::Note, "from later:".to_owned()), said]);
            }
            Kind::User | Kind::Note => words.push(said),
            kind => {
                words.extend([(conversation::label(kind), format!("{}:", kind.as_str())), said]);
            }
        }
        words.retain(|(_, text)| !text.is_empty());
        words.extend(remarks(node, self.look));
        let before = node.branches.iter().filter_map(|branch| {
            let n = self.graph.before.get(branch)?;
            Some((
                Label::Dim,
                format!("{} is where it was before operation {n}", safe::line(branch)),
            ))
        });
        words.extend(before);
        if node.damage.is_some() {
            words.push((Label::Error, "damaged".to_owned()));
        }
        words
    }
}

/// Returns the names at the end of a row.
fn names_of(node: &GraphNode) -> Vec<Span> {
    let names = safe::line(&node.branches.join(", ")).into_owned();
    let mut ends = Vec::new();
    if !names.is_empty() {
        let label = if node.is_head { Label::Head } else { Label::Branch };
        ends.push((label, safe::clip(&names, MOST_NAMES).into_owned()));
    } else if node.is_reverted {
        ends.push((Label::Warning, REVERTED.to_owned()));
    } else if node.is_undone {
        ends.push((Label::Dim, "undone".to_owned()));
    }
    ends
}

/// Returns the number of a turn and, after it, the agent's own number.
fn number(n: CheckpointNumber, own: Option<&str>) -> String {
    own.map_or_else(|| format!("@{n}"), |own| format!("@{n} {}", safe::line(own)))
}

/// Formats what a turn did, such as `2✎ 3$ 1✗`.
fn acts_words(acts: Acts) -> String {
    let parts = [(acts.edits, '✎'), (acts.commands, '$'), (acts.failed, '✗')];
    let parts = parts.iter().filter(|(n, _)| *n > 0).map(|(n, sign)| format!("{n}{sign}"));
    parts.collect::<Vec<_>>().join(" ")
}

/// Formats how long a turn took, from its beginning to its last answer, and what it cost.
fn spent_words(began: Option<Timestamp>, spent: &Expense) -> String {
    let lasted = began.zip(spent.last).map(|(from, to)| to.0.saturating_sub(from.0));
    let lasted = lasted.filter(|ms| *ms >= 1_000).map(units::span);
    lasted.into_iter().chain(units::cost(spent)).collect::<Vec<_>>().join("  ")
}

/// Joins as many of the parts as fit on one line.
fn clipped(parts: &[Span], room: usize) -> Vec<Span> {
    let (mut left, mut fit) = (room, Vec::new());
    for (label, text) in parts {
        let text = safe::clip(text, left);
        left = left.saturating_sub(safe::width(&text) + 2);
        if !text.is_empty() {
            fit.push((*label, text.into_owned()));
        }
    }
    join(fit)
}

/// Chooses the node that shows each number: the first one that got it; among several arms there, the newest.
fn numbered(mut numbers: Vec<(CheckpointNumber, usize, &[usize])>) -> Vec<bool> {
    numbers.sort_unstable_by_key(|(n, node, _)| (*n, *node));
    let mut numbered = Vec::new();
    for of_one in numbers.chunk_by(|(one, ..), (other, ..)| one == other) {
        let oldest = of_one.last().map(|(.., parents)| *parents);
        let arm = of_one.iter().find(|(.., parents)| Some(*parents) == oldest);
        if let Some((_, node, _)) = arm {
            numbered.resize(numbered.len().max(node + 1), false);
            numbered[*node] = true;
        }
    }
    numbered
}

fn glyph(kind: Kind, is_head: bool) -> (Label, &'static str) {
    match kind {
        _ if is_head => (Label::Head, "◉"),
        Kind::Boundary => (Label::Boundary, "◆"),
        _ => (Label::Plain, "○"),
    }
}

/// Describes why the agent moved on from a state of its file.
fn departure(left: &Departure, agent: &str) -> String {
    match left {
        Departure::Revert(own) => format!("reverted to {agent}:{}", safe::line(own)),
        Departure::Mail(own) => format!("reverted by a D-Mail to {agent}:{}", safe::line(own)),
        Departure::Compaction => "compacted".to_owned(),
        Departure::Clear => "cleared".to_owned(),
    }
}

fn message(
    node: &GraphNode,
    graph: &Drawing<'_>,
    look: Look<'_>,
    has_number: bool,
    room: usize,
) -> Vec<Vec<Span>> {
    let mut before = Vec::new();
    if let Some(n) = node.checkpoint.filter(|_| has_number) {
        before.push((Label::Checkpoint, format!("@{n}")));
    }
    if let Some(own) = node.own.as_ref().filter(|_| has_number) {
        before.push((Label::Checkpoint, safe::line(own).into_owned()));
    }
    before.push((Label::Id, format!("{:.8}", node.id)));
    if node.is_sub_agent {
        before.push((Label::Dim, "sub-agent:".to_owned()));
    }
    match node.kind {
        Kind::Note if node.is_sub_agent => {}
        Kind::User => {}
        Kind::Note if node.is_from_later => before.push((Label::Note, "from later:".to_owned())),
        kind => before.push((conversation::label(kind), format!("{}:", kind.as_str()))),
    }
    let mut after = Vec::new();
    let entries = (node.entries > 1).then(|| format!("{} entries", node.entries));
    let time = node.time.map(|time| look.zone.minute(time));
    let facts: Vec<String> = entries.into_iter().chain(time).collect();
    if !facts.is_empty() {
        after.push((Label::Dim, format!("({})", facts.join(", "))));
    }
    after.extend(
        units::compacted((node.tokens_before, node.tokens_after))
            .map(|tokens| (Label::Boundary, tokens)),
    );
    after.extend(found(node));
    after.extend(remarks(node, look));
    after.extend(names(&node.branches, node.is_head.then_some(graph)));
    for branch in &node.branches {
        if let Some(n) = graph.before.get(branch) {
            let before = format!("{} is where it was before operation {n}", safe::line(branch));
            after.push((Label::Dim, before));
        }
    }
    if node.is_aside {
        after.push((Label::Dim, "aside".to_owned()));
    }
    if node.is_unnamed && node.entries > 1 {
        after.push((Label::Warning, format!("unnamed, ends at {:.8}", node.last)));
    } else if node.is_unnamed {
        after.push((Label::Warning, "unnamed".to_owned()));
    }
    if node.damage.is_some() {
        before.push((Label::Error, "damaged".to_owned()));
    }
    let width = |parts: &[Span]| parts.iter().map(|(_, text)| safe::width(text) + 2).sum();
    let (led, followed): (usize, usize) = (width(&before), width(&after));
    let words = harness::unwrap(&node.words);
    let words = safe::line(&words);
    let fits = led + followed + safe::width(&words).min(LEAST_WORDS) <= room;
    let taken = if fits { led + followed } else { led };
    let words = safe::clip(&words, room.saturating_sub(taken).max(LEAST_WORDS));
    if !words.is_empty() {
        before.push((Label::Plain, words.into_owned()));
    }
    if fits {
        before.extend(after);
        return vec![join(before)];
    }
    // Text that does not fit continues on further rows.
    let mut rows = vec![join(before)];
    let mut row: Vec<Span> = Vec::new();
    for (label, text) in after {
        let text = safe::clip(&text, room).into_owned();
        let wide: usize = width(&row);
        if !row.is_empty() && wide + safe::width(&text) > room {
            rows.push(join(std::mem::take(&mut row)));
        }
        row.push((label, text));
    }
    rows.push(join(row));
    rows
}

/// Formats the number of matching entries of a node.
fn found(node: &GraphNode) -> Option<Span> {
    let times = if node.found > 1 { format!(" in {}", node.found) } else { String::new() };
    (node.found > 0).then(|| (Label::Match, format!("found{times}")))
}

/// Returns remarks about a node, besides its text.
fn remarks(node: &GraphNode, look: Look<'_>) -> Vec<Span> {
    let mut remarks = Vec::new();
    if node.cut > 0 {
        remarks.push((Label::Note, format!("{} cut", node.cut)));
    }
    if node.cleared > 0 {
        let times =
            if node.cleared > 1 { format!(" {} times", node.cleared) } else { String::new() };
        remarks.push((Label::Boundary, format!("answers cleared{times}")));
    }
    for mark in &node.marks {
        let note = mark
            .note
            .as_ref()
            .map(|note| safe::line(&note.to_text()).into_owned())
            .unwrap_or_default();
        remarks.push((Label::Checkpoint, format!("@{} {note}", mark.n).trim_end().to_owned()));
    }
    if let Some(left) = &node.left {
        remarks.push((Label::Note, departure(left, look.agent)));
    }
    remarks
}

/// Returns the names of a node. At the session's place, adds the turn unless it is the newest.
fn names(branches: &[String], here: Option<&Drawing<'_>>) -> Vec<Span> {
    let mut names: Vec<_> =
        branches.iter().map(|name| (Label::Branch, format!("[{}]", safe::line(name)))).collect();
    if let Some(graph) = here {
        names.push((Label::Head, "HEAD".to_owned()));
        match (graph.at, graph.newest) {
            (Some(before @ Spot::Before(_)), _) => names.push((Label::Head, before.to_string())),
            (Some(at), Some(newest)) if at.checkpoint() < newest => {
                names.push((Label::Head, format!("@{} of {newest}", at.checkpoint())));
            }
            _ => {}
        }
    }
    names
}

/// Separates the parts of a row.
fn join(parts: Vec<Span>) -> Vec<Span> {
    let mut joined = Vec::with_capacity(parts.len() * 2);
    for part in parts {
        if !joined.is_empty() {
            joined.push((Label::Plain, "  ".to_owned()));
        }
        joined.push(part);
    }
    joined
}
