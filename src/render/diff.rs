//! Differences: texts with what is on one side only marked by the first character of the line.

use std::io::{self, Write};

use undertext::ops::Hidden;

use super::safe;
use super::style::{Label, Styles};

/// Writes the whole texts of an entry: what is hidden is marked as taken away, what stands in its place as added.
pub(crate) fn hidden(out: &mut dyn Write, hidden: &Hidden, styles: Styles) -> io::Result<()> {
    for (n, text) in hidden.texts.iter().enumerate() {
        if n > 0 {
            writeln!(out)?;
        }
        lines(out, styles, (Label::Plain, ' '), text.shown())?;
        lines(out, styles, (Label::Removed, '-'), text.hidden())?;
        lines(out, styles, (Label::Added, '+'), text.suffix.trim_start())?;
    }
    Ok(())
}

/// Writes the lines of a text, each behind a mark.
fn lines(
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
