//! Graphs: a session's turns and where they part, the newest on top.
//!
//! `◉` is the place of the current branch, `◆` a boundary, `○` any other node.

use std::io::{self, Write};

use renderdag::{Ancestor, GraphRowRenderer, Renderer as _};
use undertext::model::Kind;
use undertext::ops::{GraphNode, GraphView};
use undertext::wire::Departure;

use super::conversation;
use super::safe;
use super::style::{Label, Styles};

/// However narrow the terminal, this much of an entry's words is shown.
const LEAST_WORDS: usize = 16;
/// The width where there is no terminal.
const WIDTH: usize = 100;

/// Writes the graph of an agent's session, clipped to a terminal's width.
pub(crate) fn write(
    out: &mut dyn Write,
    graph: &GraphView,
    agent: &str,
    styles: Styles,
    columns: Option<usize>,
) -> io::Result<()> {
    let width = columns.unwrap_or(WIDTH);
    for branch in &graph.empty {
        let is_head = *branch == graph.current;
        let mut parts = vec![(Label::Dim, "nothing yet".to_owned())];
        parts.extend(names(std::slice::from_ref(branch), is_head));
        writeln!(out, "{}  {}", glyph(Kind::Meta, is_head, styles), join(&parts, styles))?;
    }
    let mut renderer = GraphRowRenderer::new().output().with_min_row_height(0).build_box_drawing();
    for (n, node) in graph.nodes.iter().enumerate() {
        let parents: Vec<_> = node.parents.iter().copied().map(Ancestor::Parent).collect();
        let edges = renderer.width(Some(&n), Some(&parents));
        let room = width.saturating_sub(usize::try_from(edges).unwrap_or(usize::MAX) + 1);
        let row = renderer.next_row(
            n,
            parents,
            glyph(node.kind, node.is_head, styles),
            message(node, graph, agent, styles, room),
        );
        out.write_all(row.as_bytes())?;
    }
    Ok(())
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
    graph: &GraphView,
    agent: &str,
    styles: Styles,
    room: usize,
) -> String {
    let mut before = Vec::new();
    if let Some(n) = node.checkpoint {
        before.push((Label::Checkpoint, format!("@{n}")));
    }
    if let Some(own) = &node.own {
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
    if node.entries > 1 {
        after.push((Label::Dim, format!("({} entries)", node.entries)));
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
    after.extend(names(&node.branches, node.is_head));
    for branch in &node.branches {
        if let Some(n) = graph.before.get(branch) {
            let before = format!("{} is as before operation {n}", safe::line(branch));
            after.push((Label::Dim, before));
        }
    }
    if let Some(left) = &node.left {
        after.push((Label::Note, departure(left, agent)));
    }
    if node.is_aside {
        after.push((Label::Dim, "aside".to_owned()));
    }
    if node.is_unnamed && node.entries > 1 {
        after.push((Label::Warning, format!("unnamed, ends at {:.8}", node.last)));
    } else if node.is_unnamed {
        after.push((Label::Warning, "unnamed".to_owned()));
    }
    let taken: usize =
        before.iter().chain(&after).map(|(_, text)| safe::width(text) + 2).sum::<usize>();
    if node.damage.is_some() {
        before.push((Label::Error, "damaged".to_owned()));
    }
    let words = safe::line(&node.words);
    let words = safe::clip(&words, room.saturating_sub(taken).max(LEAST_WORDS));
    if !words.is_empty() {
        before.push((Label::Plain, words.into_owned()));
    }
    before.extend(after);
    join(&before, styles)
}

fn names(branches: &[String], is_head: bool) -> Vec<(Label, String)> {
    let mut names: Vec<_> =
        branches.iter().map(|name| (Label::Branch, format!("[{}]", safe::line(name)))).collect();
    if is_head {
        names.push((Label::Head, "HEAD".to_owned()));
    }
    names
}

fn join(parts: &[(Label, String)], styles: Styles) -> String {
    let painted: Vec<String> =
        parts.iter().map(|(label, text)| styles.paint(*label, text)).collect();
    painted.join("  ")
}
