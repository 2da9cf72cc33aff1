//! What was found: texts with their matches, where each stands, and the command that shows it.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;

use undertext::model::Role;
use undertext::ops::Stand;
use undertext::report::{FoundPlace, Hit, HitLine};

use super::safe;
use super::style::{Label, Styles};
use super::time::Zone;

/// How many lines of a text are shown unless all are wanted.
const LINES: usize = 5;
/// How much of a long line is shown before its first match, in characters.
const LEAD: usize = 24;

/// How hits are shown.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    pub(crate) styles: Styles,
    pub(crate) zone: Zone,
    pub(crate) width: Option<usize>,
    /// Whether all lines are shown, each whole.
    pub(crate) full: bool,
}

/// Writes a hit, with the command that shows it, and how many lines were left out.
pub(crate) fn hit(out: &mut dyn Write, hit: &Hit, command: &str, look: Look) -> io::Result<()> {
    let Some((place, others)) = hit.places.split_first() else { return Ok(()) };
    let styles = look.styles;
    let turn = place.turn.map(|turn| format!("@{turn} ")).unwrap_or_default();
    let label = match hit.role {
        Role::User => Label::User,
        Role::Assistant => Label::Assistant,
        Role::Tool => Label::Tool,
        Role::System => Label::Dim,
    };
    let tool = hit.tool.as_deref().map(|tool| format!(" {}", safe::line(tool))).unwrap_or_default();
    let time = hit.time.map(|time| format!(", {}", look.zone.show(time))).unwrap_or_default();
    writeln!(
        out,
        "{}{}{}{}",
        styles.paint(Label::Checkpoint, &turn),
        styles.paint(label, hit.role.as_str()),
        tool,
        styles.paint(Label::Dim, &format!("{time}, {}", stands(place))),
    )?;
    let shown = if look.full { hit.lines.len() } else { hit.lines.len().min(LINES) };
    let mut rows: BTreeMap<usize, (&str, &[Range<usize>])> = BTreeMap::new();
    for HitLine { n, line, before, after, .. } in hit.lines.iter().take(shown) {
        let around = (n - before.len()..).zip(before.iter()).chain((n + 1..).zip(after.iter()));
        for (n, line) in around {
            rows.entry(n).or_insert((line, &[]));
        }
        rows.insert(*n, (line, &[]));
    }
    for HitLine { n, line, matches, .. } in hit.lines.iter().take(shown) {
        rows.insert(*n, (line, matches));
    }
    let digits = rows.last_key_value().map_or(1, |(n, _)| n.to_string().len());
    for (n, (line, matches)) in rows {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let text = marked(line, matches, look, digits + 4);
        let label = if matches.is_empty() { Label::Dim } else { Label::Plain };
        let head = styles.paint(Label::Dim, &format!("  {n:>digits$}  "));
        writeln!(out, "{head}{}", styles.paint(label, text.trim_end()))?;
    }
    let left = hit.lines.len() - shown;
    if left > 0 {
        let more = format!("  {:digits$}  and {left} more", "");
        writeln!(out, "{}", styles.paint(Label::Dim, &more))?;
    }
    if !others.is_empty() {
        let also = match others {
            [one] => format!("  also {}", elsewhere(place, one)),
            [one, rest @ ..] => {
                format!("  also {} and {} more", elsewhere(place, one), rest.len())
            }
            [] => String::new(),
        };
        writeln!(out, "{}", styles.paint(Label::Dim, &also))?;
    }
    writeln!(out, "  {}", styles.paint(Label::Hint, command))
}

/// Returns a line with its matches marked; of one that is too long, what is around the first match.
fn marked(line: &str, matches: &[Range<usize>], look: Look, taken: usize) -> String {
    let room = match look.width {
        Some(width) if !look.full => width.saturating_sub(taken).max(LEAD),
        _ => usize::MAX,
    };
    let first = matches.first().map_or(0, |first| first.start);
    let mut from = 0;
    if safe::width(&safe::line(line)) > room {
        let lead = line.get(..first).unwrap_or_default().char_indices().rev();
        from = lead.take(LEAD).last().map_or(first, |(at, _)| at);
    }
    let mut parts = vec![(Label::Dim, if from > 0 { "…" } else { "" }.to_owned())];
    let mut at = from;
    for found in matches.iter().filter(|found| found.start >= from) {
        parts.push((Label::Plain, line.get(at..found.start).unwrap_or_default().to_owned()));
        parts.push((Label::Match, line.get(found.clone()).unwrap_or_default().to_owned()));
        at = found.end;
    }
    parts.push((Label::Plain, line.get(at..).unwrap_or_default().to_owned()));
    let (mut text, mut left) = (String::new(), room);
    for (label, part) in parts {
        let shown = safe::line(&part).into_owned();
        let clipped = safe::clip(&shown, left);
        left = left.saturating_sub(safe::width(&clipped));
        text.push_str(&look.styles.paint(label, &clipped));
        if clipped.len() < shown.len() {
            break;
        }
    }
    text
}

/// Returns in words where an entry stands.
pub(super) fn stands(place: &FoundPlace) -> String {
    let place_words = match &place.stand {
        Stand::Current => "on the current path".to_owned(),
        Stand::Compacted => "above a compaction".to_owned(),
        Stand::Truncated => "beneath a truncation".to_owned(),
        Stand::Branch(name) => format!("on branch {}", safe::line(name)),
        Stand::Undone => "undone".to_owned(),
        Stand::Left => "left behind by the agent".to_owned(),
        Stand::Unknown => "in a damaged session".to_owned(),
    };
    if place.is_of_sub_agent { format!("{place_words}, in a sub-agent") } else { place_words }
}

/// Returns in words another place of the same text.
fn elsewhere(place: &FoundPlace, other: &FoundPlace) -> String {
    if other.session == place.session {
        return stands(other);
    }
    let id: String = other.session.id.chars().take(8).collect();
    format!("in session {}", safe::line(&id))
}
