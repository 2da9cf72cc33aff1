//! Hunks: the lines that differ between two texts, with context.

use std::io::{self, Write};
use std::time::Duration;

use similar::{Algorithm, ChangeTag, TextDiff};

use super::safe;
use super::style::{Label, Styles};

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
}
