//! Drawing of dialogs.

use ratatui::layout::{Margin, Position, Rect};
use ratatui::widgets::{Clear, Widget as _};

use super::canvas::{Canvas, after, columns};
use super::compare::{Compare, width_of_side};
use super::dialog::{CommandLine, Dialog, Field, Help, Naming, Proposal, Search, Text, side_of};
use super::keys::{Keys, TABLE};
use super::view::glyph;
use crate::render::safe;
use crate::render::style::{Label, Span};
use crate::render::wrap::wrap;

/// Maximum width of a dialog with a question.
const WIDEST: u16 = 86;

/// The place of a dialog, and what its texts need.
pub(super) struct Popup<'a> {
    pub(super) canvas: Canvas<'a>,
    pub(super) area: Rect,
    pub(super) keys: &'a Keys,
    /// The word for the shown session.
    pub(super) word: Option<&'a str>,
}

impl Popup<'_> {
    /// Draws a dialog, and returns the position of its text cursor.
    pub(super) fn draw(&mut self, dialog: &mut Dialog) -> Option<Position> {
        let word = self.word.unwrap_or_default();
        match dialog {
            Dialog::Change(change) => self.draw_change(change),
            Dialog::Text(text) => {
                self.draw_text(text);
                None
            }
            Dialog::Compare(compare) => {
                self.draw_compare(compare);
                None
            }
            Dialog::Name(Naming { place, field }) => {
                let side = side_of(place);
                let title = format!("Name the place {side} {place} of {word}");
                let keys = "⏎ make a branch of this name there   esc cancel";
                self.draw_field(&title, field, "", keys)
            }
            Dialog::Command(CommandLine { field, offered }) => {
                let title = format!("Run a command on {word}");
                let keys = "⏎ run   tab complete   esc cancel";
                self.draw_field(&title, field, &offered.join("  "), keys)
            }
            Dialog::Search(search) => self.draw_search(search),
            Dialog::Help(help) => Some(self.draw_help(help)),
        }
    }

    /// Draws a box in the middle, and returns its inside.
    fn draw_box(&mut self, size: (u16, u16), title: &str) -> Rect {
        let width = size.0.min(self.area.width.saturating_sub(2));
        let height = size.1.min(self.area.height);
        let at = Rect {
            x: self.area.x + (self.area.width - width) / 2,
            y: self.area.y + (self.area.height - height) / 2,
            width,
            height,
        };
        Clear.render(at, self.canvas.buffer);
        let line = "─".repeat(usize::from(width).saturating_sub(2));
        let row = |y: u16| Rect { y, height: 1, ..at };
        self.canvas.put(row(at.y), Label::Dim, &format!("╭{line}╮"));
        for y in at.y + 1..at.bottom().saturating_sub(1) {
            self.canvas.put(row(y), Label::Dim, "│");
            let end = Rect { x: at.right().saturating_sub(1), width: 1, ..row(y) };
            self.canvas.put(end, Label::Dim, "│");
        }
        self.canvas.put(row(at.bottom().saturating_sub(1)), Label::Dim, &format!("╰{line}╯"));
        let room = usize::from(width).saturating_sub(6);
        let title = format!(" {} ", safe::clip(&safe::line(title), room));
        self.canvas.put(after(row(at.y), 2), Label::Heading, &title);
        at.inner(Margin { horizontal: 2, vertical: 1 })
    }

    fn draw_change(&mut self, change: &Proposal) -> Option<Position> {
        let width = WIDEST.min(self.area.width.saturating_sub(2));
        let room = usize::from(width).saturating_sub(4);
        let most = usize::from(self.area.height).saturating_sub(10).max(3);
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
        if change.arrived > 0 {
            let (places, n) = (change.places.join(", "), change.arrived);
            let turns = if n == 1 { "turn arrived" } else { "turns arrived" };
            lines.push(Vec::new());
            let words = format!("{n} {turns}: {places} would move too. ⏎ again to confirm");
            lines.push(vec![(Label::Warning, words)]);
        }
        let at = change.note.as_ref().map(|note| {
            lines.push(Vec::new());
            lines.push(vec![(Label::Plain, "Note for the model (optional)".to_owned())]);
            let text = note.end(room.saturating_sub(3)).replace('\n', " ");
            let x = safe::width(&text) + 2;
            lines.push(vec![(Label::Head, "▏ ".to_owned()), (Label::Plain, text)]);
            (x, lines.len() - 1)
        });
        lines.push(Vec::new());
        lines.push(vec![(Label::Dim, keys_of(change))]);
        let height = columns(lines.len() + 2);
        let inside = self.draw_box((width, height), &change.title);
        for (row, line) in inside.rows().zip(&lines) {
            self.canvas.put_line(row, line);
        }
        at.map(|(x, y)| Position { x: inside.x + columns(x), y: inside.y + columns(y) })
    }

    fn draw_field(
        &mut self,
        title: &str,
        field: &Field,
        below: &str,
        keys: &str,
    ) -> Option<Position> {
        let inside = self.draw_box((WIDEST, 5), title);
        let text = field.end(usize::from(inside.width).saturating_sub(3));
        let mut rows = inside.rows();
        let line = rows.next()?;
        self.canvas.put_line(line, &[(Label::Head, "▏ ".into()), (Label::Plain, text.into())]);
        self.canvas.put(rows.next()?, Label::Plain, below);
        self.canvas.put(rows.next()?, Label::Dim, keys);
        Some(Position { x: line.x + columns(2 + safe::width(text)), y: line.y })
    }

    fn draw_text(&mut self, text: &Text) {
        let height = columns(text.lines.len() + 4).min(self.area.height.saturating_sub(2));
        let inside = self.draw_box((self.area.width.saturating_sub(4), height), &text.title);
        let rows = usize::from(inside.height.saturating_sub(1));
        for (row, line) in inside.rows().take(rows).zip(text.lines.iter().skip(text.top)) {
            self.canvas.put_line(row, line);
        }
        let all = text.lines.len();
        let position = format!("{} of {all}", (text.top + rows).min(all));
        self.draw_foot(inside, "j k space move   esc back", &position);
    }

    /// Draws two turns side by side, or one below the other if there is no room.
    fn draw_compare(&mut self, compare: &mut Compare) {
        let size = (self.area.width.saturating_sub(2), self.area.height.saturating_sub(2));
        let inside = self.draw_box(size, &compare.title());
        let body = Rect { height: inside.height.saturating_sub(2), ..inside };
        let half = width_of_side(body.width);
        let is_wide = half < body.width;
        let heights = if is_wide { body.height } else { body.height / 2 };
        let rows = compare.rows();
        for (n, (rows, head)) in rows.into_iter().zip(["reverted", "now"]).enumerate() {
            let n = u16::from(n > 0);
            let (x, y) = if is_wide { (n * (half + 3), 0) } else { (0, n * heights) };
            let side = Rect { x: body.x + x, y: body.y + y, width: half, height: heights };
            self.canvas.put(side, Label::Heading, head);
            for (row, line) in side.rows().skip(1).zip(rows) {
                self.canvas.put_line(row, &line.spans);
            }
            if is_wide && n == 0 {
                let bar = Rect { x: side.right() + 1, width: 1, ..side };
                bar.rows().for_each(|row| self.canvas.put(row, Label::Dim, "│"));
            }
        }
        let keys = "J K pair   f files   b switch to the left one   y copy   q back";
        self.draw_foot(inside, keys, &compare.position());
    }

    fn draw_search(&mut self, search: &Search) -> Option<Position> {
        let size = (self.area.width.saturating_sub(2), self.area.height.saturating_sub(2));
        let inside = self.draw_box(size, "Search all sessions");
        let list = inside.height.saturating_sub(3) * 55 / 100;
        let rows = search.found.iter().map(|found| (found.head.clone(), String::new()));
        let cursor = self.draw_list(
            Rect { height: list + 1, ..inside },
            &search.field,
            &search.total,
            (search.cursor, rows),
        );
        let mut preview = inside.rows().skip(usize::from(list) + 1);
        self.canvas.rule(preview.next()?);
        let room = usize::from(inside.width);
        let found = search.found.get(search.cursor);
        let texts = found.into_iter().flat_map(|found| &found.text);
        let texts = texts.flat_map(|text| wrap(&safe::line(text), Some(room)));
        let left = inside.height.saturating_sub(list + 3);
        for (row, text) in preview.take(left.into()).zip(texts) {
            self.canvas.put(row, Label::Plain, &text);
        }
        self.draw_foot(inside, "⏎ go there   ↑↓ move   esc back", "");
        Some(cursor)
    }

    fn draw_help(&mut self, help: &Help) -> Position {
        let height = self.area.height.saturating_sub(2);
        let inside = self.draw_box((WIDEST, height), "Keys of this pane");
        let keys = self.keys;
        let rows = help.acts.iter().filter_map(|act| TABLE.iter().find(|key| key.act == *act));
        let rows = rows.map(|key| {
            let typed: Vec<String> = keys.of(key).iter().map(|key| glyph(key)).collect();
            let typed = (Label::Head, format!("{:<12}", typed.join(" ")));
            (vec![typed, (Label::Plain, key.words.to_owned())], format!("  {}", key.name))
        });
        let list = Rect { height: inside.height.saturating_sub(1), ..inside };
        let cursor = self.draw_list(list, &help.field, "", (help.cursor, rows));
        self.draw_foot(inside, "type to filter   ↑↓ move   ⏎ run   esc back", "");
        cursor
    }

    /// Draws a field, and below it the rows of a list around its cursor. Returns the position of the text cursor.
    fn draw_list(
        &mut self,
        area: Rect,
        field: &Field,
        total: &str,
        list: (usize, impl Iterator<Item = (Vec<Span>, String)>),
    ) -> Position {
        let (cursor, rows) = list;
        let rest = self.canvas.put_right(Rect { height: 1, ..area }, Label::Dim, total);
        let text = field.end(usize::from(rest.width).saturating_sub(4));
        self.canvas.put(rest, Label::Plain, &format!("> {text}"));
        let page = usize::from(area.height.saturating_sub(1)).max(1);
        let rows = rows.enumerate().skip((cursor + 1).saturating_sub(page));
        for (line, (at, (spans, right))) in area.rows().skip(1).zip(rows) {
            let rest = self.canvas.put_right(after(line, 1), Label::Dim, &right);
            self.canvas.put_line(rest, &spans);
            if at == cursor {
                self.canvas.mark_row(line, true);
            }
        }
        Position { x: area.x + columns(2 + safe::width(text)), y: area.y }
    }

    /// Draws the keys of a dialog into its last row.
    fn draw_foot(&mut self, inside: Rect, keys: &str, right: &str) {
        let last = Rect { y: inside.bottom().saturating_sub(1), height: 1, ..inside };
        let rest = self.canvas.put_right(last, Label::Dim, &format!("  {right}"));
        self.canvas.put(rest, Label::Dim, keys);
    }
}

/// Returns what a change would do, in at most `most` lines.
fn report_lines(change: &Proposal, room: usize, most: usize) -> Vec<Vec<Span>> {
    let Some(report) = &change.report else {
        return vec![vec![(Label::Dim, "Reading what this would change …".to_owned())]];
    };
    let mut lines = Vec::new();
    if report.is_out_of_reach {
        let words = "Its agent would resume something else. Nothing was written.";
        lines.push(vec![(Label::Warning, words.to_owned())]);
    }
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
fn keys_of(change: &Proposal) -> String {
    let verb = change.args.first().map(String::as_str).unwrap_or_default();
    match &change.report {
        _ if change.unreached().is_some() => {
            "⏎ show the difference   ^r try again   esc cancel".to_owned()
        }
        Some(report) if !report.is_done => "^r try again   esc cancel".to_owned(),
        _ if change.is_delayed() => {
            "⏎ save for the next resume   ^r check again   esc cancel".to_owned()
        }
        _ if change.open.is_some() => "^r check again   esc cancel".to_owned(),
        _ => {
            let keep = match (change.can_keep(), change.keeps()) {
                (false, _) => "",
                (_, false) => "   tab keep this turn too",
                (_, true) => "   tab revert this turn too",
            };
            let edit = if change.note.is_some() { "   ^g editor" } else { "" };
            format!("⏎ {verb}   ^o and resume{keep}{edit}   esc cancel")
        }
    }
}
