//! Graphs: a session's turns and where they part, the newest on top.
//!
//! `◉` is the place of the current branch, `◆` a boundary, `○` any other node.

use std::collections::BTreeSet;
use std::io::{self, Write};

use renderdag::{Ancestor, GraphRowRenderer, Renderer as _};
use undertext::model::{CheckpointNumber, Kind, Timestamp};
use undertext::ops::{Drawing, GraphNode, OpsError, Outlined, Spot};
use undertext::wire::Departure;

use super::style::{Label, Styles};
use super::{conversation, harness, safe, units};

/// However narrow the terminal, this much of an entry's words is shown.
const LEAST_WORDS: usize = 16;
/// What is said of a turn that follows nothing, though others stand before it in the file.
const STARTS_OVER: &str = "~ starts over: earlier turns are not in this context";
/// The width where there is no terminal.
const WIDTH: usize = 100;

/// How a graph is shown.
#[derive(Clone, Copy)]
pub(crate) struct Look<'a> {
    pub(crate) styles: Styles,
    /// The terminal's width, to which rows are clipped.
    pub(crate) columns: Option<usize>,
    /// The name of the agent.
    pub(crate) agent: &'a str,
    /// How long ago a moment was, in words.
    pub(crate) age: &'a dyn Fn(Timestamp) -> String,
}

/// A graph as it is drawn, row by row.
pub(crate) struct Rows<'a> {
    graph: &'a Drawing<'a>,
    look: Look<'a>,
    width: usize,
    /// Whether a number is shown at each node.
    numbered: Vec<bool>,
    /// The first node of the conversation.
    first: Option<usize>,
    /// The nodes with which a conversation begins.
    roots: BTreeSet<usize>,
    renderer: BoxDrawing,
}

type BoxDrawing = renderdag::BoxDrawingRenderer<usize, GraphRowRenderer<usize>>;

impl<'a> Rows<'a> {
    /// Begins to draw a graph.
    pub(crate) fn of(graph: &'a Drawing<'a>, look: Look<'a>) -> Result<Self, OpsError> {
        let mut numbers = Vec::new();
        let mut roots = BTreeSet::new();
        for outlined in graph.outline() {
            let Outlined { node, parents, checkpoint, is_root } = outlined?;
            numbers.extend(checkpoint.map(|n| (n, node, parents)));
            roots.extend(is_root.then_some(node));
        }
        let mut renderer =
            GraphRowRenderer::new().output().with_min_row_height(0).build_box_drawing();
        // The path of the current branch keeps the first column.
        graph.head.into_iter().for_each(|head| renderer.reserve(head));
        Ok(Self {
            graph,
            look,
            width: look.columns.unwrap_or(WIDTH),
            numbered: numbered(numbers),
            first: roots.last().copied(),
            roots,
            renderer,
        })
    }

    /// Writes the branches that stand before the first entry.
    pub(crate) fn empty(&self, out: &mut dyn Write) -> io::Result<()> {
        let (graph, styles) = (self.graph, self.look.styles);
        for branch in &graph.empty {
            let is_head = *branch == graph.current;
            let mut parts = vec![(Label::Dim, "nothing yet".to_owned())];
            parts.extend(names(std::slice::from_ref(branch), is_head.then_some(graph)));
            writeln!(out, "{}  {}", glyph(Kind::Meta, is_head, styles), join(&parts, styles))?;
        }
        Ok(())
    }

    /// Writes the row of a node, the one behind that of the node before it.
    pub(crate) fn row(&mut self, out: &mut dyn Write, node: &GraphNode) -> io::Result<()> {
        let styles = self.look.styles;
        let parents: Vec<_> = node.parents.iter().copied().map(Ancestor::Parent).collect();
        let edges = self.renderer.width(Some(&node.node), Some(&parents));
        let room = self.width.saturating_sub(usize::try_from(edges).unwrap_or(usize::MAX) + 1);
        let has_number = self.numbered.get(node.node).copied().unwrap_or_default();
        let mut text = message(node, self.graph, self.look, has_number, room);
        if self.roots.contains(&node.node) && self.first != Some(node.node) {
            text.push('\n');
            text.push_str(&styles.paint(Label::Dim, &safe::clip(STARTS_OVER, room)));
        }
        let glyph = glyph(node.kind, node.is_head, styles);
        // Rows of edges may end in spaces.
        for line in self.renderer.next_row(node.node, parents, glyph, text).lines() {
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Returns at which nodes numbers are shown, each once: where it was given first, and of several arms there the newest.
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

fn glyph(kind: Kind, is_head: bool, styles: Styles) -> String {
    match kind {
        _ if is_head => styles.paint(Label::Head, "◉"),
        Kind::Boundary => styles.paint(Label::Boundary, "◆"),
        _ => "○".to_owned(),
    }
}

/// Returns in words how an agent left a state of its file.
fn departure(left: &Departure, agent: &str) -> String {
    match left {
        Departure::Revert(own) => format!("left by a revert to {agent}:{}", safe::line(own)),
        Departure::Mail(own) => format!("left by a D-Mail to {agent}:{}", safe::line(own)),
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
) -> String {
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
    let facts: Vec<String> = entries.into_iter().chain(node.time.map(look.age)).collect();
    if !facts.is_empty() {
        after.push((Label::Dim, format!("({})", facts.join(", "))));
    }
    after.extend(units::compacted(node.tokens).map(|tokens| (Label::Boundary, tokens)));
    if node.found > 0 {
        let times = if node.found > 1 { format!(" in {}", node.found) } else { String::new() };
        after.push((Label::Match, format!("found{times}")));
    }
    if node.cut > 0 {
        after.push((Label::Note, format!("{} cut", node.cut)));
    }
    if node.cleared > 0 {
        let times =
            if node.cleared > 1 { format!(" {} times", node.cleared) } else { String::new() };
        after.push((Label::Boundary, format!("answers cleared{times}")));
    }
    for mark in &node.marks {
        let note = mark
            .note
            .as_ref()
            .map(|note| safe::line(&note.to_text()).into_owned())
            .unwrap_or_default();
        after.push((Label::Checkpoint, format!("@{} {note}", mark.n).trim_end().to_owned()));
    }
    after.extend(names(&node.branches, node.is_head.then_some(graph)));
    for branch in &node.branches {
        if let Some(n) = graph.before.get(branch) {
            let before = format!("{} is as before operation {n}", safe::line(branch));
            after.push((Label::Dim, before));
        }
    }
    if let Some(left) = &node.left {
        after.push((Label::Note, departure(left, look.agent)));
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
    let width =
        |parts: &[(Label, String)]| parts.iter().map(|(_, text)| safe::width(text) + 2).sum();
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
        return join(&before, look.styles);
    }
    // What does not fit goes on beneath.
    let mut rows = vec![join(&before, look.styles)];
    let mut row: Vec<(Label, String)> = Vec::new();
    for (label, text) in after {
        let text = safe::clip(&text, room).into_owned();
        let wide: usize = width(&row);
        if !row.is_empty() && wide + safe::width(&text) > room {
            rows.push(join(&std::mem::take(&mut row), look.styles));
        }
        row.push((label, text));
    }
    rows.push(join(&row, look.styles));
    rows.join("\n")
}

/// Returns the names of a node. Where the session ends, they include the turn, unless it is the newest one.
fn names(branches: &[String], here: Option<&Drawing<'_>>) -> Vec<(Label, String)> {
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

fn join(parts: &[(Label, String)], styles: Styles) -> String {
    let painted: Vec<String> =
        parts.iter().map(|(label, text)| styles.paint(*label, text)).collect();
    painted.join("  ")
}
