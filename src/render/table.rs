//! Tables: aligned columns without borders, measured in terminal columns rather than characters.
//!
//! Invariant: a table never contains a control character, because cells are made safe when they are created.

use std::io::{self, Write};

pub(crate) use self::Align::{Left, Right};
use super::safe;
pub(crate) use super::style::Label;
use super::style::Styles;

const GAP: &str = "  ";
/// The indentation of a note under a row.
const NOTE: &str = "    ";

/// Minimum width of the last column: a wrapped line is better than an empty one.
const LEAST_LAST: usize = 16;
/// Minimum width of the yielding column that is always kept.
const LEAST_KEPT: usize = 8;
/// Minimum width of a yielding column; below it, the column is dropped.
const LEAST: usize = 8;

/// Rows of `N` cells. The number of columns is part of the type, so rows cannot be ragged.
#[derive(Clone, Debug)]
pub(crate) struct Table<const N: usize> {
    columns: Columns<N>,
    /// The texts of all cells, each followed by a line break. No text contains one.
    texts: String,
    labels: Vec<[Label; N]>,
    /// Notes, each with the number of rows before it.
    notes: Vec<(usize, Cell)>,
}

/// Columns without stored rows: rows are measured first, then generated a second time to be written.
#[derive(Clone, Debug)]
pub(crate) struct Columns<const N: usize> {
    sides: [Align; N],
    /// The columns that shrink on a narrow terminal, in this order.
    yielding: &'static [usize],
    /// The yielding column that is never dropped.
    kept: Option<usize>,
    /// The heading of each column.
    heads: [&'static str; N],
    /// The width of each column's widest text.
    widths: [usize; N],
}

/// How a cell is aligned in its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A labelled text on one line.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    label: Label,
    text: String,
}

impl Cell {
    /// Creates a cell from text from outside.
    pub(crate) fn new(label: Label, text: &str) -> Self {
        Self { label, text: safe::line(text).into_owned() }
    }
}

impl<const N: usize> Columns<N> {
    pub(crate) fn new(sides: [Align; N]) -> Self {
        Self { sides, yielding: &[], kept: None, heads: [""; N], widths: [0; N] }
    }

    /// Lets columns shrink on a narrow terminal, in this order.
    pub(crate) fn yielding(self, yielding: &'static [usize]) -> Self {
        Self { yielding, ..self }
    }

    /// Keeps a yielding column, however narrow the terminal.
    pub(crate) fn keeping(self, kept: usize) -> Self {
        Self { kept: Some(kept), ..self }
    }

    /// Sets the headings. A column without text shows none.
    pub(crate) fn headed(self, heads: [&'static str; N]) -> Self {
        Self { heads, ..self }
    }

    /// Widens the columns to fit a row.
    pub(crate) fn measure(&mut self, cells: &[Cell; N]) {
        for (width, cell) in self.widths.iter_mut().zip(cells) {
            *width = safe::width(&cell.text).max(*width);
        }
    }

    /// Shrinks the columns to a `terminal` width, if there is one: the yielding columns first, then the last one.
    pub(crate) fn within(&self, terminal: Option<usize>) -> Self {
        let mut columns = self.clone();
        for (width, head) in columns.widths.iter_mut().zip(self.heads) {
            *width = if *width == 0 { 0 } else { safe::width(head).max(*width) };
        }
        let (Some(terminal), Some((last, others))) = (terminal, columns.widths.split_last_mut())
        else {
            return columns;
        };
        let taken = |others: &[usize]| -> usize {
            others.iter().filter(|width| **width > 0).map(|width| width + GAP.len()).sum()
        };
        for &at in self.yielding {
            let wanted = taken(others) + (*last).min(LEAST_LAST);
            if let Some(width) = others.get_mut(at) {
                let left = width.saturating_sub(wanted.saturating_sub(terminal));
                *width = match self.kept {
                    Some(kept) if kept == at => left.max(LEAST_KEPT.min(*width)),
                    _ if left < *width && left < LEAST => 0,
                    _ => left,
                };
            }
        }
        *last = (*last).min(terminal.saturating_sub(taken(others)).max(LEAST_LAST));
        columns
    }

    /// Writes the headings, if there are any and a column has text.
    pub(crate) fn head(&self, out: &mut dyn Write, styles: Styles) -> io::Result<()> {
        let is_named =
            self.heads.iter().zip(self.widths).any(|(head, width)| !head.is_empty() && width > 0);
        if !is_named {
            return Ok(());
        }
        self.write(out, styles, self.heads.iter().map(|head| (Label::Dim, *head)))
    }

    pub(crate) fn row(
        &self,
        out: &mut dyn Write,
        styles: Styles,
        cells: &[Cell; N],
    ) -> io::Result<()> {
        self.write(out, styles, cells.iter().map(|cell| (cell.label, cell.text.as_str())))
    }

    fn write<'a>(
        &self,
        out: &mut dyn Write,
        styles: Styles,
        cells: impl Iterator<Item = (Label, &'a str)>,
    ) -> io::Result<()> {
        // Padding is written before the next text, so that no line ends in spaces.
        let mut padding = String::new();
        let cells = cells.zip(self.sides).zip(self.widths);
        // An empty column takes no space.
        for (((label, text), side), width) in cells.filter(|(_, width)| *width > 0) {
            let text = safe::clip(text, width);
            let room = " ".repeat(width.saturating_sub(safe::width(&text)));
            let (before, after) = match side {
                Align::Left => ("", room.as_str()),
                Align::Right => (room.as_str(), ""),
            };
            padding.push_str(before);
            if !text.is_empty() {
                write!(out, "{padding}{}", styles.paint(label, &text))?;
                padding.clear();
            }
            padding.push_str(after);
            padding.push_str(GAP);
        }
        writeln!(out)
    }
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(sides: [Align; N]) -> Self {
        let columns = Columns::new(sides);
        Self { columns, texts: String::new(), labels: Vec::new(), notes: Vec::new() }
    }

    /// Lets columns shrink on a narrow terminal, in this order.
    pub(crate) fn yielding(self, yielding: &'static [usize]) -> Self {
        Self { columns: self.columns.yielding(yielding), ..self }
    }

    /// Keeps a yielding column, however narrow the terminal.
    pub(crate) fn keeping(self, kept: usize) -> Self {
        Self { columns: self.columns.keeping(kept), ..self }
    }

    /// Sets the headings. A column without text shows none.
    pub(crate) fn headed(self, heads: [&'static str; N]) -> Self {
        Self { columns: self.columns.headed(heads), ..self }
    }

    pub(crate) fn row(&mut self, cells: [Cell; N]) {
        self.columns.measure(&cells);
        for cell in &cells {
            self.texts.push_str(&cell.text);
            self.texts.push('\n');
        }
        self.labels.push(cells.map(|cell| cell.label));
    }

    /// Adds a note under the last row.
    pub(crate) fn note(&mut self, label: Label, text: &str) {
        self.notes.push((self.labels.len(), Cell::new(label, text)));
    }

    /// Writes the rows, clipped to the `terminal` width if there is one.
    pub(crate) fn write(
        &self,
        out: &mut dyn Write,
        styles: Styles,
        terminal: Option<usize>,
    ) -> io::Result<()> {
        let columns = self.columns.within(terminal);
        let mut texts = self.texts.split('\n');
        columns.head(out, styles)?;
        for (n, row) in (1..).zip(&self.labels) {
            columns.write(out, styles, row.iter().copied().zip(texts.by_ref()))?;
            for (_, note) in self.notes.iter().filter(|(behind, _)| *behind == n) {
                let room = terminal.map_or(usize::MAX, |width| width.saturating_sub(NOTE.len()));
                writeln!(out, "{NOTE}{}", styles.paint(note.label, &safe::clip(&note.text, room)))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn sample(terminal: Option<usize>, coloured: bool) -> String {
        let mut table = Table::new([Align::Left, Align::Right, Align::Left]);
        let rows = [
            ("8f14e45f", "7", "日本語 is wide"),
            ("c9", "120", "a title that goes on and on\x1b[2J"),
            ("ab", "", ""),
        ];
        for (id, count, title) in rows {
            table.row([
                Cell::new(Label::Id, id),
                Cell::new(Label::Plain, count),
                Cell::new(Label::Plain, title),
            ]);
        }
        let mut out = Vec::new();
        table.write(&mut out, Styles::new(coloured), terminal).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_align_and_nothing_is_cut_off_a_terminal() {
        assert_snapshot!(sample(None, false), @r"
        8f14e45f    7  日本語 is wide
        c9        120  a title that goes on and on\x1b[2J
        ab
        ");
    }

    #[test]
    fn the_last_column_is_clipped_to_a_terminal() {
        assert_snapshot!(sample(Some(35), false), @r"
        8f14e45f    7  日本語 is wide
        c9        120  a title that goes o…
        ab
        ");
        assert_eq!(sample(Some(1), false), sample(Some(31), false), "never below the least");
    }

    #[test]
    fn a_column_gives_room_to_the_others_and_goes_away_before_it_says_nothing() {
        let [left, right] = [Align::Left, Align::Right];
        let mut table = Table::new([left, right, left]).yielding(&[0, 1]);
        let row = ["a name that is long", "1,234", "what is said is longer still"];
        table.row(row.map(|text| Cell::new(Label::Plain, text)));
        let check = |terminal, expected: &str| {
            let mut out = Vec::new();
            table.write(&mut out, Styles::PLAIN, Some(terminal)).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), format!("{expected}\n"), "{terminal}");
        };
        check(56, "a name that is long  1,234  what is said is longer still");
        check(44, "a name that is long  1,234  what is said is…");
        check(33, "a name …  1,234  what is said is…");
        check(32, "1,234  what is said is longer s…");
        check(22, "what is said is longe…");
    }

    #[test]
    fn a_column_that_holds_nothing_has_no_head() {
        let mut table = Table::new([Align::Left, Align::Left, Align::Right]).headed([
            "id",
            "tool",
            "characters",
        ]);
        let written = |table: &Table<3>| {
            let mut out = Vec::new();
            table.write(&mut out, Styles::PLAIN, None).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(&table), "", "no head without a row");
        table.row(["8f14e45f", "", "7"].map(|text| Cell::new(Label::Plain, text)));
        assert_snapshot!(written(&table), @r"
        id        characters
        8f14e45f           7
        ");
    }

    #[test]
    fn colour_does_not_move_columns() {
        let plain = sample(Some(35), true).replace("\x1b[33m", "").replace("\x1b[0m", "");
        assert_eq!(plain, sample(Some(35), false));
    }

    #[test]
    fn no_line_ends_in_spaces() {
        assert!(sample(None, false).lines().all(|line| line == line.trim_end()));
    }
}
