//! Conversations: entries as a person reads them, one below the other.
//!
//! ```text
//! @7  user  3f2a91c0  2026-08-01 10:00:01
//!   What was said, indented, so that no text can pass for a heading.
//! ```
//!
//! Invariant: a text that is cut says so, with the command that shows the rest.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use undertext::model::{Block, EntryId, Image, Kind, Message, Text};
use undertext::ops::Line;

use super::style::{Label, Styles};
use super::time::Zone;
use super::{safe, units};

/// How many lines of a text are shown before it is cut.
const LINES: usize = 12;
/// How many lines of a tool's answer, or of the model's reasoning.
const FEW_LINES: usize = 3;
/// How many characters one of these lines may have on average.
const LINE_LENGTH: usize = 200;
/// The width of a line that must not be wrapped, where there is no terminal.
const WIDTH: usize = 100;
/// The words in the place of thinking that nobody can read.
const REDACTED: &str = "[redacted_thinking]";
/// The columns that are used, however narrow the terminal.
const LEAST: usize = 16;

/// How a conversation is shown.
#[derive(Clone, Copy)]
pub(crate) struct Manner<'a> {
    pub(crate) styles: Styles,
    pub(crate) zone: Zone,
    /// The terminal's width.
    pub(crate) columns: Option<usize>,
    /// Whether texts are shown whole.
    pub(crate) full: bool,
    /// The command line that shows an entry whole, given its id.
    pub(crate) command: &'a dyn Fn(&str) -> String,
}

/// Writes entries, the first one first, each with the words that are to stand beneath it.
pub(crate) fn write(
    out: &mut dyn Write,
    lines: &[Line],
    beneath: &BTreeMap<EntryId, Vec<String>>,
    manner: Manner<'_>,
) -> io::Result<()> {
    let mut follows = false;
    for line in lines {
        // Calls and their results stay together.
        let is_loose = !matches!(sole(line), Some(Block::Call { .. } | Block::Result { .. }));
        if follows && is_loose {
            writeln!(out)?;
        }
        follows = true;
        manner.entry(out, line)?;
        for words in beneath.get(&line.id).into_iter().flatten() {
            writeln!(out, "  {}", manner.styles.paint(Label::Hint, words))?;
        }
        for checkpoint in &line.marks {
            let number = manner.styles.paint(Label::Checkpoint, &format!("@{}", checkpoint.n));
            let note =
                checkpoint.note.as_ref().map_or_else(|| "checkpoint".to_owned(), Text::to_text);
            let note = safe::line(&note).into_owned();
            writeln!(out, "\n{number}  {note}")?;
        }
    }
    Ok(())
}

/// Returns the words of an entry, whole and without any mark: the text whose lines `show --lines` counts.
pub(crate) fn whole(messages: &[Message]) -> String {
    let parts = messages.iter().flat_map(Message::parts).map(|block| match block {
        Block::Text(text) => text.clone(),
        Block::Thinking(thinking) if thinking.is_redacted => REDACTED.to_owned(),
        Block::Thinking(thinking) => thinking.text.clone(),
        Block::Result { .. } => block.answer_text().into_owned(),
        Block::Call { name, input, .. } => format!("{name} {input}"),
        Block::Image(found) => image(found),
        Block::Other { name, .. } => format!("[{name}]"),
    });
    parts.collect::<Vec<_>>().join("\n")
}

/// Returns the label of an entry's kind.
pub(crate) fn label(kind: Kind) -> Label {
    match kind {
        Kind::User => Label::User,
        Kind::Note => Label::Note,
        Kind::Assistant => Label::Assistant,
        Kind::Result => Label::Tool,
        Kind::System => Label::Heading,
        Kind::Boundary | Kind::Summary => Label::Boundary,
        Kind::Meta | Kind::Opaque => Label::Dim,
    }
}

/// Returns the only block of an entry that has one block.
fn sole(line: &Line) -> Option<&Block> {
    let mut blocks = line.messages.iter().flat_map(Message::parts);
    blocks.next().filter(|_| blocks.next().is_none())
}

fn image(image: &Image) -> String {
    format!("[image, {}]", units::size(image.bytes as u64))
}

impl Manner<'_> {
    fn entry(self, out: &mut dyn Write, line: &Line) -> io::Result<()> {
        let mut head = Vec::new();
        if let Some(n) = line.checkpoint {
            head.push((Label::Checkpoint, format!("@{n}")));
        }
        if let Some(own) = &line.own {
            head.push((Label::Checkpoint, safe::line(own).into_owned()));
        }
        head.push((label(line.kind), line.kind.as_str().to_owned()));
        head.push((Label::Id, format!("{:.8}", line.id)));
        head.extend(line.time.map(|time| (Label::Time, self.zone.show(time))));
        let summary = sole(line).and_then(|block| Self::summary(line, block));
        if let Some((label, text)) = &summary {
            let taken: usize = head.iter().map(|(_, text)| safe::width(text) + 2).sum();
            head.push((*label, self.clipped(text, taken)));
        }
        let painted: Vec<String> =
            head.iter().map(|(label, text)| self.styles.paint(*label, text)).collect();
        let mut head = painted.join("  ");
        if line.kind == Kind::Boundary {
            let rule = self.styles.paint(Label::Boundary, "────");
            head = format!("{rule} {head} {rule}");
        }
        writeln!(out, "{head}")?;
        if let Some(damage) = &line.damage {
            self.indented(out, Some((Label::Error, format!("damaged: {damage}"))))?;
        }
        for block in line.messages.iter().flat_map(Message::parts) {
            match block {
                Block::Text(text) => self.text(out, line, text, (Label::Plain, LINES))?,
                Block::Thinking(thinking) if !thinking.is_redacted => {
                    self.indented(out, Some((Label::Dim, "thinking:".to_owned())))?;
                    self.text(out, line, &thinking.text, (Label::Dim, FEW_LINES))?;
                }
                Block::Result { .. } => {
                    if summary.is_none() {
                        self.indented(out, Self::summary(line, block))?;
                    }
                    self.text(out, line, &block.answer_text(), (Label::Dim, FEW_LINES))?;
                }
                _ if summary.is_some() => {}
                block => self.indented(out, Self::summary(line, block))?,
            }
        }
        Ok(())
    }

    /// Returns one line in the place of a block that is not text, or above it.
    fn summary(line: &Line, block: &Block) -> Option<(Label, String)> {
        match block {
            Block::Thinking(thinking) if thinking.is_redacted => {
                Some((Label::Dim, REDACTED.to_owned()))
            }
            Block::Text(_) | Block::Thinking(_) => None,
            Block::Call { name, input, .. } => Some((Label::Tool, format!("{name} {input}"))),
            Block::Result { id, error, .. } => {
                let text = block.answer_text();
                let lines = text.lines().count();
                let plural = if lines == 1 { "" } else { "s" };
                let mut shown = String::new();
                if *error {
                    shown.push_str("failed, ");
                }
                write!(shown, "{}, {lines} line{plural}", units::size(text.len() as u64))
                    .expect("a string takes all that is written");
                if let Some(hidden) = line.hidden(id) {
                    write!(shown, ", cut: {hidden} characters hidden")
                        .expect("a string takes all that is written");
                }
                Some((if *error { Label::Error } else { Label::Dim }, shown))
            }
            Block::Image(found) => Some((Label::Dim, image(found))),
            Block::Other { name, .. } => Some((Label::Dim, format!("[{name}]"))),
        }
    }

    fn indented(self, out: &mut dyn Write, summary: Option<(Label, String)>) -> io::Result<()> {
        let Some((label, text)) = summary else { return Ok(()) };
        writeln!(out, "  {}", self.styles.paint(label, &self.clipped(&text, 2)))
    }

    /// Returns a text on one line, cut to the rest of the width unless it is to be shown whole.
    fn clipped(self, text: &str, taken: usize) -> String {
        let room = self.columns.unwrap_or(WIDTH).saturating_sub(taken).max(LEAST);
        let room = if self.full { usize::MAX } else { room };
        safe::clip(&safe::line(text), room).into_owned()
    }

    /// Writes a text, cut unless it is to be shown whole.
    fn text(
        self,
        out: &mut dyn Write,
        line: &Line,
        text: &str,
        (label, most): (Label, usize),
    ) -> io::Result<()> {
        let text = text.trim_end();
        let end = if self.full { text.len() } else { cut(text, most) };
        let (shown, rest) = text.split_at(end);
        for line in safe::text(shown.trim_end()).lines() {
            if line.is_empty() {
                writeln!(out)?;
            } else {
                writeln!(out, "  {}", self.styles.paint(label, line))?;
            }
        }
        if rest.is_empty() {
            return Ok(());
        }
        let left = match rest.trim_start_matches('\n').lines().count() {
            0 | 1 => units::size(rest.len() as u64),
            lines => format!("{lines} lines"),
        };
        let mark = format!("… {left} more: {}", (self.command)(&format!("{:.8}", line.id)));
        writeln!(out, "  {}", self.styles.paint(Label::Hint, &mark))
    }
}

/// Returns where a text is cut: behind this many lines, or within one that is too long.
fn cut(text: &str, most: usize) -> usize {
    let lines = text.match_indices('\n').nth(most - 1).map_or(text.len(), |(at, _)| at);
    let long = text.char_indices().nth(most * LINE_LENGTH).map_or(text.len(), |(at, _)| at);
    // A mark takes a line too, so it must stand for more than one.
    let rest = text.get(lines..).unwrap_or_default();
    let lines = if rest.trim_start_matches('\n').lines().count() > 1 { lines } else { text.len() };
    lines.min(long)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_behind_lines_or_within_a_long_one() {
        assert_eq!(cut("a\nb\nc", 3), 5);
        assert_eq!(cut("a\nb\nc\nd", 3), 7, "a mark would take as much room");
        assert_eq!(cut("a\nb\nc\nd\ne", 3), 5);
        assert_eq!(cut(&"é".repeat(1000), 3), 1200);
    }
}
