//! Diffs of entries. A line that only one side has begins with `-` or `+`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use undertext::verbs::{Hidden, Line, Side};

use super::conversation::{self, Manner};
use super::hunks::{self, AROUND, mark, unified};
use super::safe;
use super::style::{Label, Styles};
use super::units::grouped;

/// Maximum number of lines shown of a changed text.
const LINES: usize = 40;

/// Writes how the texts of an entry are cut, as a diff: the hidden part is removed, its placeholder is added.
pub(crate) fn hidden(out: &mut dyn Write, hidden: &Hidden, styles: Styles) -> io::Result<()> {
    for (n, text) in hidden.texts.iter().enumerate() {
        if n > 0 {
            writeln!(out)?;
        }
        hunks::write(out, &text.whole, &format!("{}{}", text.shown(), text.suffix), styles)?;
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
    let most = if manner.full { usize::MAX } else { LINES };
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
