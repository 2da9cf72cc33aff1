//! Diffs of entries. A line that only one side has begins with `-` or `+`.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::iter::repeat;
use std::time::Duration;

use similar::{Algorithm, ChangeTag, TextDiff};
use undertext::verbs::{Hidden, Line, Side};

use super::conversation::{self, Detail, Manner};
use super::safe;
use super::style::{Label, Span, Styles};
use super::units::grouped;
use super::wrap::wrap;

/// Maximum number of lines shown of a changed text.
const LINES: usize = 40;

/// Writes how the texts of an entry are cut, as a diff: the hidden part is removed, its placeholder is added.
pub(crate) fn hidden(out: &mut dyn Write, hidden: &Hidden, styles: Styles) -> io::Result<()> {
    for (n, text) in hidden.texts.iter().enumerate() {
        if n > 0 {
            writeln!(out)?;
        }
        write(out, &text.whole, &format!("{}{}", text.shown(), text.suffix), styles)?;
    }
    Ok(())
}

/// Writes an entry that only one side has.
pub(crate) fn entry(
    out: &mut dyn Write,
    line: &Line,
    side: Side,
    manner: Manner<'_>,
) -> io::Result<()> {
    let (label, mark) = match side {
        Side::One => (Label::Removed, '-'),
        Side::Other => (Label::Added, '+'),
    };
    // Its own colours would mean other things than the difference's.
    let plain = Manner { styles: Styles::PLAIN, ..manner };
    let mut shown = Vec::new();
    conversation::write(&mut shown, std::slice::from_ref(line), &BTreeMap::new(), plain)?;
    for line in String::from_utf8_lossy(&shown).lines() {
        writeln!(out, "{}", manner.styles.paint(label, &format!("{mark}{}", safe::text(line))))?;
    }
    Ok(())
}

/// Writes an entry whose text differs between the sides.
pub(crate) fn changed(
    out: &mut dyn Write,
    one: &Line,
    other: &Line,
    manner: Manner<'_>,
) -> io::Result<()> {
    let styles = manner.styles;
    let (before, after) =
        (conversation::whole(&one.messages), conversation::whole(&other.messages));
    let size = |text: &str| grouped(text.chars().count() as u64);
    let head = format!(
        "~ {}  {} is {}, {} characters are {}",
        one.kind.as_str(),
        conversation::short(one),
        conversation::short(other),
        size(&before),
        size(&after)
    );
    writeln!(out, "{}", styles.paint(Label::Heading, &head))?;
    let unified = unified(&before, &after, AROUND);
    let most = if manner.detail == Detail::Full { usize::MAX } else { LINES };
    for line in unified.lines().take(most) {
        writeln!(out, "{}", styles.paint(mark(line), &safe::text(line)))?;
    }
    let left = unified.lines().count().saturating_sub(most);
    if left > 0 {
        let more = format!("… {left} more lines: --full");
        writeln!(out, "{}", styles.paint(Label::Hint, &more))?;
    }
    Ok(())
}

/// The minimum width of a diff in two columns.
const SIDE_BY_SIDE: usize = 60;
const BAR: &str = " │ ";

/// Lays out the lines of a diff in two columns: the removed ones, and the added ones that replace them. Lines are clipped to
/// one row, unless they are shown whole. Returns `None` if nothing differs or there is no room.
pub(crate) fn side_by_side<'a>(
    lines: impl Iterator<Item = &'a (Label, String)> + Clone,
    room: usize,
    is_whole: bool,
) -> Option<Vec<Vec<Span>>> {
    let half = room.saturating_sub(safe::width(BAR)) / 2;
    let is_change = |label: Label| matches!(label, Label::Removed | Label::Added);
    if room < SIDE_BY_SIDE || !lines.clone().any(|(label, _)| is_change(*label)) {
        return None;
    }
    let (mut rows, mut sides) = (Vec::new(), [Vec::new(), Vec::new()]);
    for (label, text) in lines {
        let line = wrap(&safe::line(text), Some(usize::MAX)).concat();
        let cells = || {
            let clipped = || vec![safe::clip(&line, half).into_owned()];
            let rows = if is_whole { wrap(&line, Some(half)) } else { clipped() };
            rows.into_iter().map(|row| (*label, row))
        };
        let [old, new] = &mut sides;
        match label {
            // The lines that replaced others are complete.
            Label::Removed if !new.is_empty() => {
                pair(&mut sides, half, &mut rows);
                sides[0].extend(cells());
            }
            Label::Removed => old.extend(cells()),
            Label::Added => new.extend(cells()),
            _ => {
                pair(&mut sides, half, &mut rows);
                // The name of a file and the mark between hunks have no sides.
                if line.starts_with(' ') {
                    sides = [cells().collect(), cells().collect()];
                    pair(&mut sides, half, &mut rows);
                } else {
                    rows.push(vec![(*label, safe::clip(&line, room).into_owned())]);
                }
            }
        }
    }
    pair(&mut sides, half, &mut rows);
    Some(rows)
}

/// Moves the cells of two columns to rows.
fn pair(sides: &mut [Vec<Span>; 2], half: usize, rows: &mut Vec<Vec<Span>>) {
    let [old, new] = sides.each_mut().map(std::mem::take);
    let (n, blank) = (old.len().max(new.len()), (Label::Plain, String::new()));
    let cells = |side: Vec<Span>| side.into_iter().chain(repeat(blank.clone()));
    for (old, new) in cells(old).zip(cells(new)).take(n) {
        let gap = " ".repeat(half.saturating_sub(safe::width(&old.1)));
        rows.push(vec![old, (Label::Plain, gap), (Label::Dim, BAR.to_owned()), new]);
    }
}

/// Number of context lines around a difference.
pub(crate) const AROUND: usize = 3;
/// Maximum time spent on finding the smallest difference.
const PATIENCE: Duration = Duration::from_millis(500);

/// Returns the label of a diff line by its first character.
pub(crate) fn mark(line: &str) -> Label {
    match line.chars().next() {
        Some('-') => Label::Removed,
        Some('+') => Label::Added,
        Some('@') => Label::Hint,
        _ => Label::Plain,
    }
}

/// Writes the differing lines with context.
pub(crate) fn write(out: &mut dyn Write, one: &str, other: &str, styles: Styles) -> io::Result<()> {
    for line in unified(one, other, AROUND).lines() {
        writeln!(out, "{}", styles.paint(mark(line), &safe::text(line)))?;
    }
    Ok(())
}

/// Returns the differing lines with context, as a unified diff.
pub(crate) fn unified(one: &str, other: &str, around: usize) -> String {
    let diff =
        TextDiff::configure().algorithm(Algorithm::Myers).timeout(PATIENCE).diff_lines(one, other);
    let mut text = String::new();
    for hunk in diff.unified_diff().context_radius(around).iter_hunks() {
        text.push_str(&hunk.header().to_string());
        text.push('\n');
        for change in hunk.iter_changes() {
            text.push(match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            });
            let line = change.value();
            text.push_str(line.strip_suffix('\n').unwrap_or(line));
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn only_what_differs_is_in_a_unified_difference() {
        let lines = |n: u32| (1..=n).map(|n| format!("{n}\n")).collect::<Vec<_>>().concat();
        assert_eq!(unified(&lines(20), &lines(20), 3), "");
        assert_snapshot!(unified(&lines(9), &(lines(7) + "eight\n9"), 3), @r"
        @@ -5,5 +5,5 @@
         5
         6
         7
        -8
        -9
        +eight
        +9
        ");
    }
    #[test]
    fn removed_lines_are_next_to_those_that_replace_them() {
        let lines = [
            (Label::Plain, " one"),
            (Label::Removed, "-two"),
            (Label::Added, "+zwei"),
            (Label::Added, "+日本語の検索を速くするための変更をここに書く"),
            (Label::Dim, "⋮"),
            (Label::Removed, "-nine"),
        ];
        let lines = lines.map(|(label, text)| (label, text.to_owned()));
        let text = |is_whole| {
            let rows = side_by_side(lines.iter(), SIDE_BY_SIDE, is_whole).unwrap();
            let text = |row: &Vec<Span>| row.iter().map(|(_, text)| &**text).collect::<String>();
            rows.iter().map(|row| text(row).trim_end().to_owned() + "\n").collect::<String>()
        };
        assert_snapshot!(text(false), @r"
         one                         │  one
        -two                         │ +zwei
                                     │ +日本語の検索を速くするため…
        ⋮
        -nine                        │
        ");
        assert_snapshot!(text(true), @r"
         one                         │  one
        -two                         │ +zwei
                                     │ +日本語の検索を速くするため
                                     │ の変更をここに書く
        ⋮
        -nine                        │
        ");
        assert_eq!(side_by_side(lines.iter(), SIDE_BY_SIDE - 1, true), None);
        assert_eq!(side_by_side(lines[..1].iter(), SIDE_BY_SIDE, true), None);
    }
}
