//! The picker: a list that narrows as a person types, with a preview of the row under the cursor.
//!
//! The picker is pure: keys come in as values, an [`Outcome`] comes out, and [`Picker::draw`] fills a buffer, so a larger screen
//! can embed it. It does not know what its rows mean: a row is text, and a closure creates its preview on demand.
//!
//! ```text
//! 90 columns and more                   less
//!  prompt                    3 of 52     prompt        3 of 52
//!  > query                               > query
//! ────────────────────┬────────────     ──────────────────────
//! ▌id  age  title     │ preview         ▌id  age  title
//!  id  age  title     │                  id  age  title
//! ────────────────────┴────────────     ──────────────────────
//!  keys                                  preview
//!                                       ──────────────────────
//!                                        keys
//! ```
//!
//! Invariant: no text is drawn without going through [`safe`].

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Position, Rect};
use undertext::settings::Glyphs;

use super::canvas::{self, Canvas, columns};
use super::cursor::{Cursor, Way};
use super::dialog::{Field, step_of};
use super::matching::{Texts, marks};
use crate::render::safe;
use crate::render::style::{Label, Styles};
use crate::render::wrap::wrap;

/// From this width on, the preview is to the right of the list.
const WIDE: u16 = 90;
/// Below this height, there is no preview and there are no rules.
const TALL: u16 = 10;
/// Minimum width of a title. If it would be narrower, columns after it are dropped.
const TITLE: usize = 24;
/// Number of rows that can also be found by their previews.
const LEARNED: usize = 500;
/// The spaces between two columns.
const GAP: usize = 2;
const KEYS: &str = "⏎ pick  ↑↓ move  ^u clear  esc cancel";

/// A labelled text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    label: Label,
    text: String,
}

/// The preview of a row: lines, each wrapped if it does not fit.
pub(crate) type Preview = Vec<Piece>;

impl Piece {
    /// Creates a piece from text from outside.
    pub(crate) fn new(label: Label, text: &str) -> Self {
        Self { label, text: safe::line(text).into_owned() }
    }
}

/// A row to pick: a title, with columns before and after it.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    before: Vec<Piece>,
    title: Piece,
    after: Vec<Piece>,
    found_by: Vec<String>,
}

impl Row {
    /// Creates a row whose title is searchable.
    pub(crate) fn new(title: &str) -> Self {
        let title = Piece::new(Label::Plain, title);
        let found_by = vec![title.text.clone()];
        Self { before: Vec::new(), title, after: Vec::new(), found_by }
    }

    /// Adds a column before the title.
    pub(crate) fn before(mut self, label: Label, text: &str) -> Self {
        self.before.push(Piece::new(label, text));
        self
    }

    /// Adds a column after the title. On a narrow screen, the last columns are dropped.
    pub(crate) fn after(mut self, label: Label, text: &str) -> Self {
        self.after.push(Piece::new(label, text));
        self
    }

    /// Adds a searchable text.
    pub(crate) fn found_by(mut self, text: &str) -> Self {
        self.found_by.push(text.to_owned());
        self
    }
}

/// The outcome of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The picker stays open.
    Stay,
    /// The row with this number was picked.
    Picked(usize),
    /// Nothing was picked.
    Cancelled,
}

/// A list to pick from.
pub(crate) struct Picker {
    prompt: String,
    rows: Vec<Row>,
    styles: Styles,
    texts: Texts,
    /// The widths of the columns before and after the title; 0 for a column that is equal in all rows.
    before: Vec<usize>,
    after: Vec<usize>,
    query: Field,
    /// The rows that the query finds.
    found: Vec<usize>,
    cursor: Cursor,
    /// The last preview drawn, with its row.
    preview: Option<(usize, Preview)>,
    /// The number of rows whose previews are searchable.
    learned: usize,
}

impl Picker {
    /// Creates a picker. Rows come likeliest first. The query narrows them if it finds any.
    pub(crate) fn new(prompt: &str, rows: Vec<Row>, query: &str, styles: Styles) -> Self {
        let mut texts = Texts::default();
        for (n, row) in rows.iter().enumerate() {
            row.found_by.iter().for_each(|text| texts.add(n, text));
        }
        let mut picker = Self {
            prompt: safe::line(prompt).into_owned(),
            before: widths(&rows, |row| &row.before),
            after: widths(&rows, |row| &row.after),
            rows,
            styles,
            texts,
            query: Field::default(),
            found: Vec::new(),
            cursor: Cursor { page: 1, ..Cursor::default() },
            preview: None,
            learned: 0,
        };
        picker.insert(query);
        if picker.found.is_empty() {
            picker.query = Field::default();
            picker.search();
        }
        picker
    }

    /// Adds a text to the query, as a paste does.
    pub(crate) fn insert(&mut self, text: &str) {
        self.query.insert(text);
        self.search();
    }

    /// Handles a key.
    pub(crate) fn on_key(&mut self, key: KeyEvent) -> Outcome {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let len = self.found.len();
        match key.code {
            KeyCode::Esc => return Outcome::Cancelled,
            KeyCode::Char('c') if is_control => return Outcome::Cancelled,
            KeyCode::Enter => {
                let picked = self.found.get(self.cursor.at).copied();
                return picked.map_or(Outcome::Stay, Outcome::Picked);
            }
            KeyCode::Char('p') if is_control => self.cursor.step(Way::Backward, 1, len),
            KeyCode::Char('n') if is_control => self.cursor.step(Way::Forward, 1, len),
            _ => match step_of(key, self.cursor.page) {
                Some((way, rows)) => self.cursor.step(way, rows, len),
                None if self.query.on_key(key) => self.search(),
                None => {}
            },
        }
        Outcome::Stay
    }

    /// Searches again and selects the best match.
    fn search(&mut self) {
        self.found = self.texts.find(&self.query.text, self.rows.len());
        self.cursor = Cursor { page: self.cursor.page, ..Cursor::default() };
    }

    /// Reads the preview of the next row to make it searchable. Returns true if there are more to read.
    pub(crate) fn learn(&mut self, preview: &mut dyn FnMut(usize) -> Preview) -> bool {
        let all = self.rows.len().min(LEARNED);
        if self.learned < all {
            for piece in preview(self.learned) {
                self.texts.add_preview(self.learned, &piece.text);
            }
            self.learned += 1;
        }
        self.learned < all
    }

    /// Searches again, including what was learned. The cursor stays on its row. Returns false without a query, because then
    /// nothing changes.
    pub(crate) fn refresh(&mut self) -> bool {
        if self.query.text.trim().is_empty() {
            return false;
        }
        let row = self.found.get(self.cursor.at).copied();
        self.found = self.texts.find(&self.query.text, self.rows.len());
        let at = self.found.iter().position(|found| Some(*found) == row);
        self.cursor.at = at.unwrap_or_default();
        true
    }

    /// Draws the picker, and returns the position of the text cursor.
    pub(crate) fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        preview: &mut dyn FnMut(usize) -> Preview,
    ) -> Position {
        let is_tall = area.height >= TALL;
        let rule = Constraint::Length(u16::from(is_tall));
        let one = Constraint::Length(1);
        let rows = [one, one, rule, Constraint::Fill(1), rule, one];
        let [head, query, top, body, bottom, keys] = Layout::vertical(rows).areas(area);
        self.draw_head(head, buffer);
        let cursor = self.draw_query(query, buffer);
        self.put(buffer, keys, Label::Dim, &format!(" {KEYS}"));
        for rule in [top, bottom] {
            self.rule(buffer, rule);
        }
        if !is_tall {
            self.draw_list(body, buffer);
        } else if area.width >= WIDE {
            let parts = [Constraint::Fill(3), one, Constraint::Fill(2)];
            let [list, bar, side] = Layout::horizontal(parts).areas(body);
            self.draw_list(list, buffer);
            for row in bar.rows() {
                self.put(buffer, row, Label::Dim, "│");
            }
            for (rule, corner) in [(top, "┬"), (bottom, "┴")] {
                self.put(buffer, Rect { x: bar.x, width: 1, ..rule }, Label::Dim, corner);
            }
            self.draw_preview(side, buffer, preview);
        } else {
            let rows = [Constraint::Fill(6), one, Constraint::Fill(5)];
            let [list, rule, below] = Layout::vertical(rows).areas(body);
            self.draw_list(list, buffer);
            self.rule(buffer, rule);
            self.draw_preview(below, buffer, preview);
        }
        cursor
    }

    fn draw_head(&self, area: Rect, buffer: &mut Buffer) {
        let count = format!("  {} of {} ", self.found.len(), self.rows.len());
        let columns = [Constraint::Fill(1), Constraint::Length(columns(safe::width(&count)))];
        let [left, right] = Layout::horizontal(columns).areas(area);
        self.put(buffer, left, Label::Heading, &format!(" {}", self.prompt));
        self.put(buffer, right, Label::Dim, &count);
    }

    /// Draws as much of the query's end as fits.
    fn draw_query(&self, area: Rect, buffer: &mut Buffer) -> Position {
        const MARK: &str = " > ";
        let room = usize::from(area.width).saturating_sub(MARK.len() + 1);
        let shown = self.query.end(room);
        self.put(buffer, area, Label::Plain, &format!("{MARK}{shown}"));
        let x = columns(MARK.len() + safe::width(shown)).min(area.width.saturating_sub(1));
        Position { x: area.x + x, y: area.y }
    }

    fn draw_list(&mut self, area: Rect, buffer: &mut Buffer) {
        self.cursor.fit(area.height.into());
        if self.found.is_empty() {
            return self.put(buffer, area, Label::Dim, " Nothing matches");
        }
        // Each row begins with the cursor's mark and a space.
        let room = usize::from(area.width).saturating_sub(2);
        let sum = |widths: &[usize]| -> usize {
            widths.iter().filter(|width| **width > 0).map(|width| width + GAP).sum()
        };
        let mut after = self.after.as_slice();
        while let Some((_, fewer)) = after.split_last()
            && room < sum(&self.before) + TITLE + sum(after)
        {
            after = fewer;
        }
        let title = room.saturating_sub(sum(&self.before) + sum(after));
        let shown = self.found.iter().enumerate().skip(self.cursor.top);
        for (line, (at, row)) in area.rows().zip(shown) {
            let Some(row) = self.rows.get(*row) else { continue };
            let is_cursor = at == self.cursor.at;
            let before = row.before.iter().zip(&self.before).map(|(piece, width)| (piece, *width));
            let after = row.after.iter().zip(after).map(|(piece, width)| (piece, *width));
            let pieces = before.chain([(&row.title, title)]).chain(after);
            let mut rest = Rect { x: line.x + 1, width: line.width.saturating_sub(1), ..line };
            let mut of_title = Rect::default();
            for (n, (piece, width)) in pieces.enumerate().filter(|(_, (_, width))| *width > 0) {
                self.put(buffer, rest, piece.label, &safe::clip(&piece.text, width));
                if n == self.before.len() {
                    of_title = Rect { width: columns(width).min(rest.width), ..rest };
                }
                let taken = columns(width + GAP).min(rest.width);
                rest = Rect { x: rest.x + taken, width: rest.width - taken, ..rest };
            }
            if is_cursor {
                Canvas { buffer, styles: self.styles, glyphs: Glyphs::Unicode }
                    .mark_row(line, true);
            }
            self.mark(buffer, of_title, &row.title.text);
        }
    }

    /// Highlights the letters of a title that the query matches.
    fn mark(&self, buffer: &mut Buffer, area: Rect, title: &str) {
        let shown = safe::clip(title, usize::from(area.width));
        let marks = marks(&self.query.text, title);
        let mut x = area.x;
        for ((at, c), of_title) in shown.char_indices().zip(title.chars()) {
            let wide = columns(safe::width(c.encode_utf8(&mut [0; 4])));
            if marks.contains(&at) && c == of_title {
                let letter = Rect { x, width: wide, height: 1, ..area };
                buffer
                    .set_style(letter.intersection(area), canvas::style(self.styles, Label::Match));
            }
            x = x.saturating_add(wide);
        }
    }

    fn draw_preview(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        preview: &mut dyn FnMut(usize) -> Preview,
    ) {
        let Some(&row) = self.found.get(self.cursor.at) else { return };
        if self.preview.as_ref().is_none_or(|(drawn, _)| *drawn != row) {
            self.preview = Some((row, preview(row)));
        }
        let inner =
            Rect { x: area.x + 1.min(area.width), width: area.width.saturating_sub(2), ..area };
        let room = usize::from(inner.width).max(1);
        let pieces = self.preview.iter().flat_map(|(_, pieces)| pieces);
        let lines = pieces.flat_map(|piece| {
            wrap(&piece.text, Some(room)).into_iter().map(|line| (piece.label, line))
        });
        for (row, (label, line)) in inner.rows().zip(lines) {
            self.put(buffer, row, label, &line);
        }
    }

    fn rule(&self, buffer: &mut Buffer, area: Rect) {
        Canvas { buffer, styles: self.styles, glyphs: Glyphs::Unicode }.rule(area);
    }

    fn put(&self, buffer: &mut Buffer, area: Rect, label: Label, text: &str) {
        Canvas { buffer, styles: self.styles, glyphs: Glyphs::Unicode }.put(area, label, text);
    }
}

/// Returns the widths of columns; 0 for a column that is equal in all rows.
fn widths(rows: &[Row], column: impl Fn(&Row) -> &Vec<Piece>) -> Vec<usize> {
    let Some(first) = rows.first().map(&column) else { return Vec::new() };
    let width = |n: usize| {
        let texts = || rows.iter().filter_map(|row| Some(column(row).get(n)?.text.as_str()));
        let is_same = rows.len() > 1 && texts().all(|text| texts().next() == Some(text));
        if is_same { 0 } else { texts().map(safe::width).max().unwrap_or_default() }
    };
    (0..first.len()).map(width).collect()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::style::Color;
    use unicode_width::UnicodeWidthStr as _;

    use super::Outcome::{Cancelled, Picked, Stay};
    use super::*;

    /// Rows as sessions have them: an id, an age, a title, an agent and a folder.
    const ROWS: [[&str; 5]; 6] = [
        [
            "25c1a2b3",
            "12 min",
            "Investigate retry logic in the webhook worker",
            "claude",
            "~/code/api",
        ],
        [
            "7a0e11f2",
            "3 h",
            "Speed up 日本語の検索 for very long queries that fill the row",
            "claude",
            "~/code/api",
        ],
        ["85dd0c41", "18 h", "Add dark mode toggle", "claude", "~/code/web"],
        ["f7a35b20", "1 d", "\x1b]0;owned\x07\x1b[31mred\u{202e}", "claude", "~/code/api"],
        ["82b7c1d0", "2 d", "Remove retry logic", "codex", "~/code/api"],
        ["fa10e9c3", "2026-08-01", "Fix the onboarding e-mail", "claude", "~/code/infra"],
    ];

    fn picker(query: &str, is_coloured: bool) -> Picker {
        let rows = ROWS.map(|[id, age, title, agent, folder]| {
            let row = Row::new(title).before(Label::Id, id).before(Label::Time, age);
            let row = row.after(Label::Dim, agent).after(Label::Dim, folder);
            row.found_by(id).found_by(folder)
        });
        Picker::new("graph: which session?", rows.into(), query, Styles::new(is_coloured))
    }

    fn preview(row: usize) -> Preview {
        let [id, _, title, ..] = ROWS.get(row).copied().unwrap_or_default();
        let prompt = "you  Does the test check that a page fails? The worker sends each page once.";
        vec![
            Piece::new(Label::Heading, title),
            Piece::new(Label::Dim, &format!("session {id}")),
            Piece::new(Label::Plain, ""),
            Piece::new(Label::User, prompt),
            Piece::new(
                Label::Plain,
                "I look at the handler first. 日本語の文は空白がないので、どこでも折り返せる。",
            ),
        ]
    }

    fn draw(picker: &mut Picker, width: u16, height: u16) -> Buffer {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let draw = |frame: &mut ratatui::Frame<'_>| {
            let cursor = picker.draw(frame.area(), frame.buffer_mut(), &mut preview);
            frame.set_cursor_position(cursor);
        };
        terminal.draw(draw).unwrap();
        terminal.backend().buffer().clone()
    }

    /// Returns the lines that a person sees.
    fn seen(picker: &mut Picker, width: u16, height: u16) -> String {
        let buffer = draw(picker, width, height);
        let lines = buffer.area.rows().map(|row| {
            let mut line = String::new();
            while line.width() < usize::from(width) {
                line.push_str(buffer[(columns(line.width()), row.y)].symbol());
            }
            line.trim_end().to_owned()
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Types keys: `<down>` and the like are keys by their names, `^u` is one with control.
    fn type_keys(picker: &mut Picker, keys: &str) -> Outcome {
        let mut outcome = Outcome::Stay;
        let mut rest = keys;
        while let Some(c) = rest.chars().next() {
            let name = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
            let control = rest.strip_prefix('^').and_then(|rest| rest.chars().next());
            let (code, modifiers) = match (name, control) {
                (Some((name, _)), _) => (named(name), KeyModifiers::NONE),
                (None, Some(letter)) => (KeyCode::Char(letter), KeyModifiers::CONTROL),
                (None, None) => (KeyCode::Char(c), KeyModifiers::NONE),
            };
            outcome = picker.on_key(KeyEvent::new(code, modifiers));
            let length = name.map(|(name, _)| name.len() + 2);
            let length = length.or(control.map(|letter| 1 + letter.len_utf8()));
            rest = rest.get(length.unwrap_or(c.len_utf8())..).unwrap_or_default();
        }
        outcome
    }

    fn named(name: &str) -> KeyCode {
        match name {
            "up" => KeyCode::Up,
            "down" => KeyCode::Down,
            "pgup" => KeyCode::PageUp,
            "pgdn" => KeyCode::PageDown,
            "home" => KeyCode::Home,
            "end" => KeyCode::End,
            "enter" => KeyCode::Enter,
            "esc" => KeyCode::Esc,
            "back" => KeyCode::Backspace,
            "tab" => KeyCode::Tab,
            other => panic!("no key is called {other}"),
        }
    }

    #[test]
    fn keys_type_move_pick_and_cancel() {
        let check = |keys: &str, query: &str, expected| {
            let mut picker = picker("", false);
            draw(&mut picker, 50, 12);
            let outcome = type_keys(&mut picker, keys);
            assert_eq!((picker.query.text.as_str(), outcome), (query, expected), "{keys}");
        };
        check("", "", Stay);
        check("<enter>", "", Picked(0));
        check("<down><down><enter>", "", Picked(2));
        check("^n^n^p<enter>", "", Picked(1));
        check("<down><up><up><enter>", "", Picked(0));
        check("<end><enter>", "", Picked(5));
        check("<end><down><enter>", "", Picked(5));
        check("<end><home><enter>", "", Picked(0));
        // Three rows are shown.
        check("<pgdn><enter>", "", Picked(3));
        check("<pgdn><pgdn><pgdn><enter>", "", Picked(5));
        check("<pgdn><down><pgup><enter>", "", Picked(1));
        check("retry<enter>", "retry", Picked(0));
        check("retry<down><enter>", "retry", Picked(4));
        check("<down>retry<enter>", "retry", Picked(0));
        check("dark<back><back>", "da", Stay);
        check("fa10<enter>", "fa10", Picked(5));
        check("検索<enter>", "検索", Picked(1));
        check("nothing here<enter>", "nothing here", Stay);
        check("nothing here^u<enter>", "", Picked(0));
        check("nothing web^w^wdark<enter>", "dark", Picked(2));
        check("<tab>^x", "", Stay);
        check("dark<esc>", "dark", Cancelled);
        check("^c", "", Cancelled);
    }

    #[test]
    fn a_wide_screen_has_the_preview_on_the_right() {
        assert_snapshot!(seen(&mut picker("", false), 120, 30), @r"
         graph: which session?                                                                                           6 of 6
         >
        ───────────────────────────────────────────────────────────────────────┬────────────────────────────────────────────────
        ▌25c1a2b3  12 min      Investigate retry logic …  claude  ~/code/api   │ Investigate retry logic in the webhook worker
         7a0e11f2  3 h         Speed up 日本語の検索 fo…  claude  ~/code/api   │ session 25c1a2b3
         85dd0c41  18 h        Add dark mode toggle       claude  ~/code/web   │
         f7a35b20  1 d         \x1b]0;owned\x07\x1b[31m…  claude  ~/code/api   │ you  Does the test check that a page fails?
         82b7c1d0  2 d         Remove retry logic         codex   ~/code/api   │ The worker sends each page once.
         fa10e9c3  2026-08-01  Fix the onboarding e-mail  claude  ~/code/infra │ I look at the handler first. 日本語の文は空白
                                                                               │ がないので、どこでも折り返せる。
                                                                               │
                                                                               │
                                                                               │
                                                                               │
                                                                               │
                                                                               │
                                                                               │
                                                                               │
                                                                               │
                                                                               │
                                                                               │
                                                                               │
                                                                               │
                                                                               │
                                                                               │
                                                                               │
                                                                               │
                                                                               │
        ───────────────────────────────────────────────────────────────────────┴────────────────────────────────────────────────
         ⏎ pick  ↑↓ move  ^u clear  esc cancel
        ");
    }

    #[test]
    fn a_narrow_screen_has_the_preview_below() {
        let mut picker = picker("retry", false);
        type_keys(&mut picker, "<down>");
        assert_snapshot!(seen(&mut picker, 80, 24), @r"
         graph: which session?                                                   2 of 6
         > retry
        ────────────────────────────────────────────────────────────────────────────────
         25c1a2b3  12 min      Investigate retry logic in the we…  claude  ~/code/api
        ▌82b7c1d0  2 d         Remove retry logic                  codex   ~/code/api








        ────────────────────────────────────────────────────────────────────────────────
         Remove retry logic
         session 82b7c1d0

         you  Does the test check that a page fails? The worker sends each page once.
         I look at the handler first. 日本語の文は空白がないので、どこでも折り返せる。



        ────────────────────────────────────────────────────────────────────────────────
         ⏎ pick  ↑↓ move  ^u clear  esc cancel
        ");
    }

    #[test]
    fn a_small_screen_shows_what_fits() {
        let mut picker = picker("", false);
        type_keys(&mut picker, "<down><down><down>");
        assert_snapshot!(seen(&mut picker, 50, 12), @r"
         graph: which session?                     6 of 6
         >
        ──────────────────────────────────────────────────
         7a0e11f2  3 h         Speed up 日本語の検索 for…
         85dd0c41  18 h        Add dark mode toggle
        ▌f7a35b20  1 d         \x1b]0;owned\x07\x1b[31mr…
        ──────────────────────────────────────────────────
         \x1b]0;owned\x07\x1b[31mred\u{202e}
         session f7a35b20

        ──────────────────────────────────────────────────
         ⏎ pick  ↑↓ move  ^u clear  esc cancel
        ");
        assert_snapshot!(seen(&mut picker, 40, 8), @r"
         graph: which session?           6 of 6
         >
         7a0e11f2  3 h         Speed up 日本語…
         85dd0c41  18 h        Add dark mode t…
        ▌f7a35b20  1 d         \x1b]0;owned\x0…
         82b7c1d0  2 d         Remove retry lo…
         fa10e9c3  2026-08-01  Fix the onboard…
         ⏎ pick  ↑↓ move  ^u clear  esc cancel
        ");
    }

    #[test]
    fn a_query_without_a_match_says_so() {
        assert!(seen(&mut picker("zürich", false), 60, 10).contains("6 of 6"));
        let mut picker = picker("", false);
        picker.insert("zürich\x1b[2J");
        assert_snapshot!(seen(&mut picker, 60, 10), @r"
         graph: which session?                               0 of 6
         > zürich\x1b[2J
        ────────────────────────────────────────────────────────────
         Nothing matches

        ────────────────────────────────────────────────────────────


        ────────────────────────────────────────────────────────────
         ⏎ pick  ↑↓ move  ^u clear  esc cancel
        ");
    }

    #[test]
    fn ten_thousand_rows_scroll_with_the_cursor() {
        let rows = (0..10_000).map(|n| Row::new(&format!("session {n}"))).collect();
        let mut picker = Picker::new("log: which session?", rows, "", Styles::PLAIN);
        type_keys(&mut picker, "<end>");
        let shown = seen(&mut picker, 60, 12);
        assert!(shown.contains("10000 of 10000") && shown.contains("▌session 9999"), "{shown}");
        type_keys(&mut picker, "<up><up><up><up>");
        let shown = seen(&mut picker, 60, 12);
        assert!(shown.contains("▌session 9995\n session 9996"), "{shown}");
        type_keys(&mut picker, "9876");
        assert!(seen(&mut picker, 60, 12).contains("▌session 9876"));
    }

    #[test]
    fn rows_are_found_by_their_previews_once_these_are_read() {
        let mut picker = picker("", false);
        let last = |row: usize| {
            vec![Piece::new(
                Label::Plain,
                ["", "", "", "the webhook"].get(row).copied().unwrap_or_default(),
            )]
        };
        type_keys(&mut picker, "webhook");
        assert_eq!(picker.found, [0]);
        while picker.learn(&mut { last }) {}
        assert!(picker.refresh());
        assert_eq!((picker.found.as_slice(), picker.cursor.at), ([0, 3].as_slice(), 0));
        type_keys(&mut picker, "^u");
        assert!(!picker.refresh(), "without a query the list stays");
    }

    #[test]
    fn any_screen_is_drawn_and_without_colour_there_is_none() {
        for width in [1, 2, 3, 10, 39, 40, 89, 90, 130] {
            for height in 1..16 {
                for query in ["", "日本語の長い問い合わせ", "retry"] {
                    let plain = draw(&mut picker(query, false), width, height);
                    let is_plain = |cell: &ratatui::buffer::Cell| {
                        cell.style() == Buffer::empty(Rect::new(0, 0, 1, 1))[(0, 0)].style()
                    };
                    assert!(plain.content().iter().all(is_plain), "{width}x{height} {query}");
                    draw(&mut picker(query, true), width, height);
                }
            }
        }
        let coloured = draw(&mut picker("", true), 80, 24);
        assert_eq!(coloured[(1, 4)].fg, Color::Yellow, "an id");
        let marked = draw(&mut picker("toggle", true), 80, 24);
        let letters = marked.content().iter().filter(|cell| cell.style().fg == Some(Color::Red));
        assert_eq!(letters.map(ratatui::buffer::Cell::symbol).collect::<String>(), "toggle");
    }
}
