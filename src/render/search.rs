//! Search results: texts with their matches, and the place of each.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;

use undertext::model::HitLine;
use undertext::model::Role;
use undertext::report::{FoundPlace, Hit};
use undertext::verbs::Stand;

use super::safe;
use super::style::{Label, Styles};
use super::time::Zone;

/// Number of lines shown of a text by default.
const LINES: usize = 5;
/// Number of characters shown before the first match of a long line.
const LEAD: usize = 24;
/// The width of a line without a terminal.
const PIPED: usize = 500;
/// Number of characters examined per column, because combining marks have no width.
const CHARS: usize = 4;

/// Column widths of a one-line result: place, speaker and status; and the maximum width of a tool's name.
const PLACE: usize = 13;
const WHO: usize = 9;
const STAND: usize = 7;
const TOOL: usize = 16;

/// How results are shown.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    pub(crate) styles: Styles,
    pub(crate) zone: Zone,
    pub(crate) width: Option<usize>,
    /// Show all lines whole.
    pub(crate) full: bool,
}

/// Writes a result on one line: place, speaker, status and the first matching line.
pub(crate) fn line(out: &mut dyn Write, hit: &Hit, place: &str, look: Look) -> io::Result<()> {
    let Some(HitLine { line, matches, .. }) = hit.lines.first() else { return Ok(()) };
    let (head, taken) = head(hit, place, look);
    let line = line.strip_suffix('\r').unwrap_or(line);
    let indent = line.len() - line.trim_start().len();
    let matches = matches.iter().filter(|at| at.start >= indent);
    let matches: Vec<_> = matches.map(|at| at.start - indent..at.end - indent).collect();
    let text = marked(line.trim_start(), &matches, look, taken);
    writeln!(out, "{head}{}", text.trim_end())
}

/// Returns the columns before a result's text, and their width.
fn head(hit: &Hit, place: &str, look: Look) -> (String, usize) {
    let tool = hit.tool.as_deref().map(|tool| format!("{}  ", safe::clip(&safe::line(tool), TOOL)));
    let (tool, who) = (tool.unwrap_or_default(), hit.role.as_str());
    let stand = hit.places.first().map(standing).unwrap_or_default();
    let column = |label: Label, text: &str, width: usize| {
        let gap = " ".repeat(width.saturating_sub(safe::width(text)) + 2);
        look.styles.paint(label, text) + &gap
    };
    let head = [
        column(Label::Checkpoint, place, PLACE),
        column(label(hit.role), who, WHO),
        column(Label::Dim, &stand, STAND),
    ];
    let before = safe::width(place).max(PLACE) + WHO + safe::width(&stand).max(STAND);
    let tool_shown = look.styles.paint(Label::Tool, &tool);
    (format!("  {}{tool_shown}", head.concat()), 8 + before + safe::width(&tool))
}

fn label(role: Role) -> Label {
    match role {
        Role::User => Label::User,
        Role::Assistant => Label::Assistant,
        Role::Tool => Label::Tool,
        Role::System => Label::Dim,
    }
}

/// Describes an entry's status in a word or two.
fn standing(place: &FoundPlace) -> String {
    let word = match &place.stand {
        Stand::Current => "current".to_owned(),
        Stand::Compacted => "compacted".to_owned(),
        Stand::Truncated => "truncated".to_owned(),
        Stand::Branch(name) => format!("reverted: {}", safe::line(name)),
        Stand::Undone => "undone".to_owned(),
        Stand::Left => "reverted".to_owned(),
        Stand::Unknown => "damaged".to_owned(),
    };
    if place.is_of_sub_agent { format!("{word}, sub-agent") } else { word }
}

/// Writes a result with its matching lines and their context, the number of omitted lines, and the number of other places.
pub(crate) fn lines(out: &mut dyn Write, hit: &Hit, place: &str, look: Look) -> io::Result<()> {
    let styles = look.styles;
    let time = hit.time.map(|time| look.zone.show(time)).unwrap_or_default();
    let (head, _) = head(hit, place, look);
    writeln!(out, "{head}{}", styles.paint(Label::Dim, &time))?;
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
    match hit.places.len() - 1 {
        0 => Ok(()),
        others => {
            let places = if others == 1 { "place" } else { "places" };
            let more = format!("  and at {others} other {places}");
            writeln!(out, "{}", styles.paint(Label::Dim, &more))
        }
    }
}

/// Marks the matches in a line. A long line is cut to the part around the first match.
fn marked(line: &str, matches: &[Range<usize>], look: Look, taken: usize) -> String {
    let mut from = 0;
    let (mut left, mut end) = (usize::MAX, line.len());
    if !look.full {
        left = look.width.unwrap_or(PIPED).saturating_sub(taken).max(LEAD);
        let start = beginning(line, left);
        if start < line.len() || safe::width(&safe::line(line)) > left {
            let first = matches.first().map_or(0, |first| first.start.min(line.len()));
            let lead = line.get(..first).unwrap_or_default().char_indices().rev();
            from = lead.take(LEAD).last().map_or(first, |(at, _)| at);
        }
        // Skip the part that cannot be shown.
        end = from + beginning(line.get(from..).unwrap_or_default(), left);
    }
    let mut text = String::new();
    let mut push = |label, part: &str, is_last: bool| {
        let mut shown = safe::line(part);
        let width = safe::width(&shown);
        let is_cut = if is_last { width <= left && end < line.len() } else { width == left };
        if is_cut {
            shown.to_mut().push('…');
        }
        let clipped = safe::clip(&shown, left);
        left = left.saturating_sub(width);
        text.push_str(&look.styles.paint(label, &clipped));
        left > 0
    };
    let mut at = from;
    let mut has_room = from == 0 || push(Label::Dim, "…", false);
    for found in matches.iter().filter(|found| found.start >= from) {
        if !has_room || found.start >= end {
            break;
        }
        let until = found.end.min(end);
        let before = line.get(at..found.start).unwrap_or_default();
        let words = line.get(found.start..until).unwrap_or_default();
        has_room =
            push(Label::Plain, before, false) && push(Label::Match, words, until == line.len());
        at = until;
    }
    if has_room {
        push(Label::Plain, line.get(at..end).unwrap_or_default(), true);
    }
    text
}

/// Returns the end of as much of a line as may be needed to fill this many columns. Characters have zero, one or several columns.
fn beginning(line: &str, columns: usize) -> usize {
    let mut ends = line.char_indices().map(|(at, _)| at);
    ends.nth(columns.saturating_mul(CHARS)).unwrap_or(line.len())
}

/// Describes where an entry is.
pub(crate) fn describe_place(place: &FoundPlace) -> String {
    let place_words = match &place.stand {
        Stand::Current => "on the current path".to_owned(),
        Stand::Compacted => "above a compaction".to_owned(),
        Stand::Truncated => "under a truncation".to_owned(),
        Stand::Branch(name) => format!("on branch {}", safe::line(name)),
        Stand::Undone => "undone".to_owned(),
        Stand::Left => "reverted by the agent".to_owned(),
        Stand::Unknown => "in a damaged session".to_owned(),
    };
    if place.is_of_sub_agent { format!("{place_words}, in a sub-agent") } else { place_words }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_to_its_room_and_says_so() {
        let check = |line: &str, matches: &[[usize; 2]], room: usize, expected: &str| {
            let (styles, zone) = (Styles::PLAIN, Zone::Utc);
            let look = Look { styles, zone, width: Some(room), full: false };
            let matches: Vec<_> = matches.iter().map(|&[start, end]| start..end).collect();
            assert_eq!(marked(line, &matches, look, 0), expected);
        };
        let (letters, marks) = ("abcdefghijklmnopqrstuvwxyzabcd", "\u{301}".repeat(200));
        check(letters, &[[1, 3]], 30, letters);
        check(letters, &[[1, 3]], 29, "abcdefghijklmnopqrstuvwxyzab…");
        check(letters, &[[28, 30]], 29, "…efghijklmnopqrstuvwxyzabcd");
        check(letters, &[[28, 31]], 30, letters);
        check(letters, &[[0, 29], [29, 30]], 29, "abcdefghijklmnopqrstuvwxyzab…");
        check(letters, &[[0, 28], [29, 30]], 28, "abcdefghijklmnopqrstuvwxyza…");
        check(&format!("a{marks}b"), &[], 30, &format!("a{}…", "\u{301}".repeat(119)));
        check("\u{1b}[2J and so on, and so on and on", &[], 24, r"\x1b[2J and so on, and …");
    }

    #[test]
    fn of_a_line_full_of_matches_only_what_is_shown_is_made() {
        let line = "e ".repeat(2_000_000);
        let matches: Vec<_> = (0..2_000_000).map(|n| 2 * n..2 * n + 1).collect();
        let look = Look { styles: Styles::COLOURED, zone: Zone::Utc, width: None, full: false };
        assert_eq!(marked(&line, &matches, look, 5).matches("\u{1b}[1;31me").count(), 247);
    }
}
