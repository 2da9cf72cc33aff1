//! Differences: a line that only one side has is marked by its first character, `-` or `+`.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use similar::{Algorithm, ChangeTag, TextDiff};
use undertext::ops::{Hidden, Line, Side};

use super::conversation::{self, Manner};
use super::safe;
use super::style::{Label, Styles};

/// How many lines around a difference are shown.
const AROUND: usize = 3;
/// How many lines of a changed text are shown before it is cut.
const LINES: usize = 40;
/// How long to look for the smallest difference.
const PATIENCE: Duration = Duration::from_millis(500);

/// Writes the whole texts of an entry: a hidden part is marked as taken away, the text in its place as added.
pub(crate) fn hidden(out: &mut dyn Write, hidden: &Hidden, styles: Styles) -> io::Result<()> {
    for (n, text) in hidden.texts.iter().enumerate() {
        if n > 0 {
            writeln!(out)?;
        }
        marked(out, styles, (Label::Plain, ' '), text.shown())?;
        marked(out, styles, (Label::Removed, '-'), text.hidden())?;
        marked(out, styles, (Label::Added, '+'), text.suffix.trim_start())?;
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
    let mark = match side {
        Side::One => (Label::Removed, '-'),
        Side::Other => (Label::Added, '+'),
    };
    // Its own colours would mean other things than the difference's.
    let plain = Manner { styles: Styles::new(false), ..manner };
    let mut shown = Vec::new();
    conversation::write(&mut shown, std::slice::from_ref(line), &BTreeMap::new(), plain)?;
    marked(out, manner.styles, mark, &String::from_utf8_lossy(&shown))
}

/// Writes an entry that says something else on each side.
pub(crate) fn changed(
    out: &mut dyn Write,
    (one, other): (&Line, &Line),
    manner: Manner<'_>,
) -> io::Result<()> {
    let styles = manner.styles;
    let (before, after) =
        (conversation::whole(&one.messages), conversation::whole(&other.messages));
    let sizes = (before.chars().count(), after.chars().count());
    let head = format!(
        "~ {}  {:.8} is {:.8}, {} characters are {}",
        one.kind.as_str(),
        one.id,
        other.id,
        sizes.0,
        sizes.1
    );
    writeln!(out, "{}", styles.paint(Label::Heading, &head))?;
    let unified = unified(&before, &after);
    let most = if manner.full { usize::MAX } else { LINES };
    for line in unified.lines().take(most) {
        let label = match line.chars().next() {
            Some('-') => Label::Removed,
            Some('+') => Label::Added,
            Some('@') => Label::Hint,
            _ => Label::Plain,
        };
        writeln!(out, "{}", styles.paint(label, &safe::text(line)))?;
    }
    let left = unified.lines().count().saturating_sub(most);
    if left > 0 {
        let more = format!("… {left} more lines: --full");
        writeln!(out, "{}", styles.paint(Label::Hint, &more))?;
    }
    Ok(())
}

/// Returns the lines that differ, in the unified form.
pub(crate) fn unified(one: &str, other: &str) -> String {
    let diff =
        TextDiff::configure().algorithm(Algorithm::Myers).timeout(PATIENCE).diff_lines(one, other);
    let mut text = String::new();
    for hunk in diff.unified_diff().context_radius(AROUND).iter_hunks() {
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

/// Writes the lines of a text, each behind a mark.
fn marked(
    out: &mut dyn Write,
    styles: Styles,
    (label, mark): (Label, char),
    text: &str,
) -> io::Result<()> {
    for line in text.lines() {
        writeln!(out, "{}", styles.paint(label, &format!("{mark}{}", safe::text(line))))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn only_what_differs_is_in_a_unified_difference() {
        let lines = |n: u32| (1..=n).map(|n| format!("{n}\n")).collect::<Vec<_>>().concat();
        assert_eq!(unified(&lines(20), &lines(20)), "");
        assert_snapshot!(unified(&lines(9), &(lines(7) + "eight\n9")), @r"
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
}
