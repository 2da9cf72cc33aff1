//! Drawing of dialogs.

use ratatui::buffer::Buffer;
use ratatui::layout::{Margin, Position, Rect};
use ratatui::widgets::{Clear, Widget as _};

use super::canvas::{after, columns, mark_row, put, put_line, put_right, rule};
use super::dialog::{Change, Dialog, Field, Help, Search, Text};
use super::keys::TABLE;
use super::state::Browse;
use super::view::glyph;
use crate::render::safe;
use crate::render::style::{Label, Span};
use crate::render::wrap::wrap;

/// Maximum width of a dialog with a question.
const WIDEST: u16 = 86;

impl Browse {
    /// Draws the dialog, if there is one, and returns the position of its text cursor.
    pub(super) fn draw_dialog(&self, area: Rect, buffer: &mut Buffer) -> Option<Position> {
        match self.dialog.as_ref()? {
            Dialog::Change(change) => self.draw_change(area, buffer, change),
            Dialog::Text(text) => {
                self.draw_text(area, buffer, text);
                None
            }
            Dialog::Name(field) => {
                let word = self.word().unwrap_or_default();
                let title = format!("Name the current place of {word}");
                self.draw_field(area, buffer, &title, field, "⏎ name it   esc cancel")
            }
            Dialog::Command(field) => {
                let word = self.word().unwrap_or_default();
                let title = format!("Run a command on {word}");
                self.draw_field(area, buffer, &title, field, "⏎ run   tab complete   esc cancel")
            }
            Dialog::Search(search) => self.draw_search(area, buffer, search),
            Dialog::Help(help) => self.draw_help(area, buffer, help),
        }
    }

    /// Draws a box in the middle, and returns its inside.
    fn draw_box(&self, area: Rect, buffer: &mut Buffer, size: (u16, u16), title: &str) -> Rect {
        let styles = self.look.styles;
        let (width, height) = (size.0.min(area.width), size.1.min(area.height));
        let at = Rect {
            x: area.x + (area.width - width) / 2,
            y: area.y + (area.height - height) / 2,
            width,
            height,
        };
        Clear.render(at, buffer);
        let line = "─".repeat(usize::from(width).saturating_sub(2));
        let row = |y: u16| Rect { y, height: 1, ..at };
        put(buffer, row(at.y), styles, Label::Dim, &format!("╭{line}╮"));
        for y in at.y + 1..at.bottom().saturating_sub(1) {
            put(buffer, row(y), styles, Label::Dim, "│");
            let end = Rect { x: at.right().saturating_sub(1), width: 1, ..row(y) };
            put(buffer, end, styles, Label::Dim, "│");
        }
        put(buffer, row(at.bottom().saturating_sub(1)), styles, Label::Dim, &format!("╰{line}╯"));
        let room = usize::from(width).saturating_sub(6);
        let title = format!(" {} ", safe::clip(&safe::line(title), room));
        put(buffer, after(row(at.y), 2), styles, Label::Heading, &title);
        at.inner(Margin { horizontal: 2, vertical: 1 })
    }

    fn draw_change(&self, area: Rect, buffer: &mut Buffer, change: &Change) -> Option<Position> {
        let styles = self.look.styles;
        let width = WIDEST.min(area.width.saturating_sub(2));
        let room = usize::from(width).saturating_sub(4);
        let most = usize::from(area.height).saturating_sub(10).max(3);
        let mut lines = Vec::new();
        if let Some(agent) = &change.open {
            let words = if change.may_wait {
                "It would not see the change, so the change is saved for your next resume."
            } else {
                "Close it there first, then press ^r."
            };
            for row in wrap(&format!("● {agent} has this session open. {words}"), Some(room)) {
                lines.push(vec![(Label::Warning, row)]);
            }
            lines.push(Vec::new());
        }
        lines.extend(report_lines(change, room, most));
        if !change.arrived.is_empty() {
            let (places, n) = (change.arrived.join(", "), change.arrived.len());
            let turns = if n == 1 { "turn arrived" } else { "turns arrived" };
            lines.push(Vec::new());
            let words = format!("{n} {turns}: {places} would move too. ⏎ again to confirm");
            lines.push(vec![(Label::Warning, words)]);
        }
        let at = change.note.as_ref().map(|note| {
            lines.push(Vec::new());
            lines.push(vec![(Label::Plain, "Note for the model (optional)".to_owned())]);
            let text = note.end(room.saturating_sub(3)).to_owned();
            let x = safe::width(&text) + 2;
            lines.push(vec![(Label::Head, "▏ ".to_owned()), (Label::Plain, text)]);
            (x, lines.len() - 1)
        });
        lines.push(Vec::new());
        lines.push(vec![(Label::Dim, keys_of(change))]);
        let height = columns(lines.len() + 2);
        let inside = self.draw_box(area, buffer, (width, height), &change.title);
        for (row, line) in inside.rows().zip(&lines) {
            put_line(buffer, row, styles, line);
        }
        at.map(|(x, y)| Position { x: inside.x + columns(x), y: inside.y + columns(y) })
    }

    fn draw_field(
        &self,
        area: Rect,
        buffer: &mut Buffer,
        title: &str,
        field: &Field,
        keys: &str,
    ) -> Option<Position> {
        let styles = self.look.styles;
        let inside = self.draw_box(area, buffer, (WIDEST, 5), title);
        let text = field.end(usize::from(inside.width).saturating_sub(3));
        let mut rows = inside.rows();
        let line = rows.next()?;
        put_line(buffer, line, styles, &[(Label::Head, "▏ ".into()), (Label::Plain, text.into())]);
        put(buffer, rows.nth(1)?, styles, Label::Dim, keys);
        Some(Position { x: line.x + columns(2 + safe::width(text)), y: line.y })
    }

    fn draw_text(&self, area: Rect, buffer: &mut Buffer, text: &Text) {
        let styles = self.look.styles;
        let size = (area.width.saturating_sub(4), area.height.saturating_sub(2));
        let inside = self.draw_box(area, buffer, size, &text.title);
        let (rows, keys) = (inside.height.saturating_sub(1), "j k space move   esc back");
        for (row, line) in
            inside.rows().take(usize::from(rows)).zip(text.lines.iter().skip(text.top))
        {
            put_line(buffer, row, styles, line);
        }
        let last = Rect { y: inside.bottom().saturating_sub(1), height: 1, ..inside };
        let all = text.lines.len();
        let end = (text.top + usize::from(rows)).min(all);
        let rest = put_right(buffer, last, styles, &(Label::Dim, format!("{end} of {all}")));
        put(buffer, rest, styles, Label::Dim, keys);
    }

    fn draw_search(&self, area: Rect, buffer: &mut Buffer, search: &Search) -> Option<Position> {
        let styles = self.look.styles;
        let size = (area.width.saturating_sub(2), area.height.saturating_sub(2));
        let inside = self.draw_box(area, buffer, size, "Search all sessions");
        let mut rows = inside.rows();
        let line = rows.next()?;
        let rest = put_right(buffer, line, styles, &(Label::Dim, search.total.clone()));
        let text = search.field.end(usize::from(rest.width).saturating_sub(4));
        put(buffer, rest, styles, Label::Plain, &format!("> {text}"));
        let cursor = Position { x: line.x + columns(2 + safe::width(text)), y: line.y };
        let list = usize::from(inside.height.saturating_sub(3)) * 55 / 100;
        let top = (search.cursor + 1).saturating_sub(list.max(1));
        let found = search.found.iter().enumerate().skip(top);
        for (row, (at, found)) in rows.by_ref().take(list).zip(found) {
            put_line(buffer, after(row, 1), styles, &found.head);
            if at == search.cursor {
                mark_row(buffer, row, styles, true);
            }
        }
        let below = usize::from(inside.y) + 1 + list;
        let mut preview = inside.rows().skip(below - usize::from(inside.y));
        rule(buffer, preview.next()?, styles);
        let room = usize::from(inside.width);
        let texts = search.found.get(search.cursor).map(|found| found.text.as_slice());
        let texts =
            texts.unwrap_or_default().iter().flat_map(|text| wrap(&safe::line(text), Some(room)));
        let left = usize::from(inside.height).saturating_sub(list + 3);
        for (row, text) in preview.take(left).zip(texts) {
            put(buffer, row, styles, Label::Plain, &text);
        }
        let last = Rect { y: inside.bottom().saturating_sub(1), height: 1, ..inside };
        put(buffer, last, styles, Label::Dim, "⏎ go there   ↑↓ move   esc back");
        Some(cursor)
    }

    fn draw_help(&self, area: Rect, buffer: &mut Buffer, help: &Help) -> Option<Position> {
        let styles = self.look.styles;
        let height = area.height.saturating_sub(2);
        let inside = self.draw_box(area, buffer, (WIDEST, height), "Keys of this pane");
        let mut rows = inside.rows();
        let line = rows.next()?;
        let text = help.field.end(usize::from(inside.width).saturating_sub(4));
        put(buffer, line, styles, Label::Plain, &format!("> {text}"));
        let list = usize::from(inside.height.saturating_sub(2));
        let top = (help.cursor + 1).saturating_sub(list.max(1));
        for (row, (at, act)) in rows.take(list).zip(help.acts.iter().enumerate().skip(top)) {
            let Some(key) = TABLE.iter().find(|key| key.act == *act) else { continue };
            let keys: Vec<String> = self.keys.of(key).iter().map(|key| glyph(key)).collect();
            let spans: [Span; 2] = [
                (Label::Head, format!("{:<12}", keys.join(" "))),
                (Label::Plain, key.words.to_owned()),
            ];
            let name = (Label::Dim, format!("  {}", key.name));
            let rest = put_right(buffer, after(row, 1), styles, &name);
            put_line(buffer, rest, styles, &spans);
            if at == help.cursor {
                mark_row(buffer, row, styles, true);
            }
        }
        let last = Rect { y: inside.bottom().saturating_sub(1), height: 1, ..inside };
        put(buffer, last, styles, Label::Dim, "type to filter   ↑↓ move   ⏎ run   esc back");
        Some(Position { x: line.x + columns(2 + safe::width(text)), y: line.y })
    }
}

/// Returns what a change would do, in at most `most` lines.
fn report_lines(change: &Change, room: usize, most: usize) -> Vec<Vec<Span>> {
    let Some(report) = &change.report else {
        return vec![vec![(Label::Dim, "Reading what this would change …".to_owned())]];
    };
    let mut lines = Vec::new();
    for line in &report.lines {
        let text: String = line.iter().map(|(_, text)| text.as_str()).collect();
        let label = if report.is_done { Label::Plain } else { Label::Error };
        lines.extend(wrap(&text, Some(room)).into_iter().map(|row| vec![(label, row)]));
    }
    if lines.len() > most {
        let more = lines.len() + 1 - most;
        lines.truncate(most - 1);
        lines.push(vec![(Label::Dim, format!("… {more} more lines"))]);
    }
    lines
}

/// Returns the keys of a change's dialog.
fn keys_of(change: &Change) -> String {
    let verb = change.args.first().map(String::as_str).unwrap_or_default();
    match &change.report {
        Some(report) if !report.is_done => "^r try again   esc cancel".to_owned(),
        _ if change.is_delayed() => {
            "⏎ save for the next resume   ^r check again   esc cancel".to_owned()
        }
        _ if change.open.is_some() => "^r check again   esc cancel".to_owned(),
        _ => format!("⏎ {verb}   ^o {verb} and resume   esc cancel"),
    }
}
