//! Drawing into a buffer: labelled text, by display columns.
//!
//! Invariant: no text is drawn without going through [`safe`].

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color::{self, Black, Blue, Cyan, Gray, Green, Magenta, Red, Yellow};
use ratatui::style::Style;
use undertext::settings::Glyphs;

use crate::render::safe;
use crate::render::style::{Label, Span, Styles};

const COLOURS: [Color; 8] = [Black, Red, Green, Yellow, Blue, Magenta, Cyan, Gray];

/// Signs, and what replaces them in terminals that draw some of them two columns wide.
#[rustfmt::skip]
const ASCII: [(&str, char); 18] = [
    ("◉", '@'), ("○", 'o'), ("●◆", '*'), ("↶‹←", '<'), ("›→▸▌▎", '>'), ("▾↓", 'v'), ("↑", '^'), ("✎", '%'),
    ("✗×", 'x'), ("✓", '+'), ("│▏┃⋮", '|'), ("─–—−", '-'), ("╭╮╰╯├┤┬┴┼└┘┌┐", '+'), ("▁▂▃·", '.'), ("▄▅▆", ':'),
    ("▇█", '#'), ("…", '~'), ("⇄", '='),
];

/// A buffer to draw into, whether it uses colours, and which signs it draws.
pub(super) struct Canvas<'a> {
    pub(super) buffer: &'a mut Buffer,
    pub(super) styles: Styles,
    pub(super) glyphs: Glyphs,
}

impl Canvas<'_> {
    /// Writes as much of a text as fits into the first line of an area.
    pub(super) fn put(&mut self, area: Rect, label: Label, text: &str) {
        if !area.is_empty() {
            let width = usize::from(area.width);
            let mut text = safe::line(text);
            if self.glyphs == Glyphs::Ascii {
                text = text.chars().map(ascii).collect();
            }
            let style = style(self.styles, label);
            self.buffer.set_stringn(area.x, area.y, safe::clip(&text, width), width, style);
        }
    }

    /// Writes as much of a line as fits into the first line of an area.
    pub(super) fn put_line(&mut self, area: Rect, line: &[Span]) {
        let all: usize = line.iter().map(|(_, text)| safe::width(text)).sum();
        let mut rest = area;
        for (label, text) in line {
            // Only the piece at the edge shows that something was cut.
            let is_cut = all > usize::from(area.width);
            let wide = safe::width(text);
            self.put(rest, *label, text);
            if is_cut && wide >= usize::from(rest.width) {
                break;
            }
            let taken = columns(wide).min(rest.width);
            rest = Rect { x: rest.x + taken, width: rest.width - taken, ..rest };
        }
    }

    /// Writes a text at the right edge of an area's first line, and returns the area that is left.
    pub(super) fn put_right(&mut self, area: Rect, label: Label, text: &str) -> Rect {
        let wide = columns(safe::width(text));
        if wide > area.width {
            return area;
        }
        let at = Rect { x: area.right() - wide, width: wide, ..area };
        self.put(at, label, text);
        Rect { width: area.width - wide, ..area }
    }

    /// Draws a line over the first row of an area.
    pub(super) fn rule(&mut self, area: Rect) {
        self.put(area, Label::Dim, &"─".repeat(usize::from(area.width)));
    }

    /// Marks a row as the one under the cursor.
    pub(super) fn mark_row(&mut self, row: Rect, is_focused: bool) {
        self.put(row, Label::Head, "▌");
        if self.styles.is_coloured() && is_focused {
            let words = Rect { x: row.x + 1, width: row.width.saturating_sub(1), ..row };
            self.buffer.set_style(words, Style::reset().reversed());
        }
    }
}

/// Returns a sign of ASCII for one that may take two columns.
fn ascii(sign: char) -> char {
    ASCII.iter().find(|(signs, _)| signs.contains(sign)).map_or(sign, |(_, ascii)| *ascii)
}

/// Returns an area without its first columns.
pub(super) fn after(area: Rect, taken: usize) -> Rect {
    let taken = columns(taken).min(area.width);
    Rect { x: area.x + taken, width: area.width - taken, ..area }
}

/// Returns an area without its first and its last column.
pub(super) fn inset(area: Rect) -> Rect {
    after(Rect { width: area.width.saturating_sub(1), ..area }, 1)
}

/// Returns an area without its first rows.
pub(super) fn below(area: Rect, taken: u16) -> Rect {
    let taken = taken.min(area.height);
    Rect { y: area.y + taken, height: area.height - taken, ..area }
}

/// Returns the style that equals a label's escape sequence.
pub(super) fn style(styles: Styles, label: Label) -> Style {
    let code = label.code().filter(|_| styles.is_coloured()).unwrap_or_default();
    code.split(';').fold(Style::new(), |style, code| match code.strip_prefix('3') {
        _ if code == "1" => style.bold(),
        _ if code == "2" => style.dim(),
        _ if code == "3" => style.italic(),
        Some(colour) => {
            let colour = colour.parse().ok().and_then(|n: usize| COLOURS.get(n));
            colour.map_or(style, |colour| style.fg(*colour))
        }
        None => style,
    })
}

/// Converts a number of columns to the buffer's type.
pub(super) fn columns(n: usize) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}
