//! Drawing of the panes.
//!
//! ```text
//! 110 columns and more              60 to 109: sessions are a screen of their own
//!  head                              head
//! ─ 1 Sessions ┬─ 2 Turns ─────     ─ Turns ──────────
//!              │                     …
//!              ├─ 3 @14 ───────     ─ @14 ────────────
//!              │                     …
//! ─────────────┴───────────────      $ command
//!  $ command                         keys
//!  status
//!  keys
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::canvas::{after, columns, mark_row, put, put_line, put_right, rule, style};
use super::data::SessionRow;
use super::keys::{Key, Pane, TABLE};
use super::state::{Browse, Scope, Zoom};
use crate::render::conversation::Detail;
use crate::render::safe;
use crate::render::style::{Label, Span};
use crate::render::units::grouped;
use undertext::model::Kind;
use undertext::report::Line;

/// From this width on, all panes are shown.
const WIDE: u16 = 110;
/// Minimum size: columns and rows.
const LEAST: (u16, u16) = (60, 16);
/// The share of the width that the sessions take, in percent.
const LEFT: u16 = 31;

/// From this width on, a list of sessions shows agents by name, and folders.
const ROOMY: u16 = 76;
/// Maximum width of a folder.
const FOLDER_WIDTH: usize = 24;
/// Among the columns of a session's row, the agent, the folder, and the one before which the title is.
const AGENT: usize = 1;
const FOLDER: usize = 2;
const TITLE: usize = 2;

/// Where everything is. A pane's first row is its title; a pane that is not shown is empty.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frame {
    head: Rect,
    sessions: Rect,
    turns: Rect,
    reading: Rect,
    rule: Rect,
    command: Rect,
    status: Rect,
    keys: Rect,
    is_wide: bool,
}

impl Browse {
    fn frame(&self) -> Frame {
        let (width, height) = self.size;
        let row = |y: u16| Rect { x: 0, y, width, height: 1 };
        let is_wide = width >= WIDE;
        let below = if is_wide { 4 } else { 2 };
        let body = Rect { x: 0, y: 1, width, height: height.saturating_sub(1 + below) };
        let mut frame = Frame {
            head: row(0),
            keys: row(height.saturating_sub(1)),
            is_wide,
            ..Frame::default()
        };
        if is_wide {
            frame.rule = row(body.bottom());
            frame.command = row(body.bottom() + 1);
            frame.status = row(body.bottom() + 2);
        } else {
            frame.command = row(body.bottom());
        }
        let whole = self.zoom == Zoom::Whole;
        match self.focus {
            Pane::Sessions if whole || !is_wide => frame.sessions = body,
            Pane::Turns if whole => frame.turns = body,
            Pane::Reading if whole => frame.reading = body,
            focus => {
                let larger = self.zoom == Zoom::Larger;
                let mut right = body;
                if is_wide {
                    let share = if larger && focus == Pane::Sessions { 50 } else { LEFT };
                    frame.sessions = Rect { width: width * share / 100, ..body };
                    right = after(body, usize::from(frame.sessions.width) + 1);
                }
                let share = match (larger, focus) {
                    (true, Pane::Turns) => 70,
                    (true, Pane::Reading) => 25,
                    _ => 48,
                };
                let above = (right.height * share / 100).max(4);
                frame.turns = Rect { height: above, ..right };
                frame.reading = Rect {
                    y: right.y + above,
                    height: right.height.saturating_sub(above),
                    ..right
                };
            }
        }
        frame
    }

    /// Returns the width of the turns' rows; 0 if they are not shown.
    pub(super) fn turns_width(&self) -> usize {
        let (width, height) = self.size;
        if width < LEAST.0 || height < LEAST.1 {
            return 0;
        }
        let frame = self.frame();
        // On a narrow screen the pane is as wide as the screen, whatever is shown now.
        let pane = if frame.turns.is_empty() && !frame.is_wide { frame.head } else { frame.turns };
        usize::from(pane.width).saturating_sub(2)
    }

    /// Returns the pane at a cell, and the row below its heading.
    pub(super) fn pane_at(&self, x: u16, y: u16) -> Option<(Pane, usize)> {
        let frame = self.frame();
        let facts = u16::from(frame.is_wide) * 3;
        let panes = [
            (Pane::Sessions, frame.sessions, 1 + u16::from(self.has_filter())),
            (Pane::Turns, frame.turns, 1 + facts),
            (Pane::Reading, frame.reading, 1),
        ];
        let mut panes = panes.into_iter().filter(|(_, area, _)| area.contains(Position { x, y }));
        panes
            .next()
            .map(|(pane, area, heads)| (pane, usize::from((y - area.y).saturating_sub(heads))))
    }

    fn has_filter(&self) -> bool {
        let is_typed = self.is_typing && self.focus == Pane::Sessions;
        is_typed || !self.list.filter.text.is_empty()
    }

    /// Draws the screen, and returns the position of the text cursor.
    pub(crate) fn draw(&mut self, area: Rect, buffer: &mut Buffer) -> Option<Position> {
        if (area.width, area.height) != self.size {
            self.resize(area.width, area.height);
        }
        if area.width < LEAST.0 || area.height < LEAST.1 {
            let (columns, rows) = LEAST;
            let words =
                format!("needs {columns}x{rows}, and this is {}x{}", area.width, area.height);
            put(buffer, area, self.look.styles, Label::Plain, &words);
            return None;
        }
        let frame = self.frame();
        self.draw_head(frame, buffer);
        let mut cursor = self.draw_sessions(frame, buffer);
        self.draw_turns(frame, buffer);
        self.draw_reading(frame, buffer);
        self.draw_edges(frame, buffer);
        self.draw_command(frame, buffer);
        self.draw_status(frame, buffer);
        cursor = self.draw_keys(frame.keys, buffer).or(cursor);
        if self.dialog.is_some() { self.draw_dialog(area, buffer) } else { cursor }
    }

    fn draw_head(&self, frame: Frame, buffer: &mut Buffer) {
        let styles = self.look.styles;
        let area = after(Rect { width: frame.head.width.saturating_sub(1), ..frame.head }, 1);
        let (shown, all) = (self.list.shown.len() as u64, self.list.all.rows.len() as u64);
        let scope = match self.list.scope {
            Scope::Here => self.list.all.here.clone(),
            Scope::All => "all folders".to_owned(),
            Scope::Week => "this week".to_owned(),
        };
        if !frame.is_wide && self.focus != Pane::Sessions {
            let at = format!("‹ {scope} {}/{shown}   ", self.list.cursor.at + 1);
            let counts = format!("  {}", self.counts());
            let rest = put_right(buffer, area, styles, &(Label::Dim, counts));
            let title = self.graph.as_ref().map(|graph| graph.title.clone()).unwrap_or_default();
            return put_line(buffer, rest, styles, &[(Label::Dim, at), (Label::Heading, title)]);
        }
        let open = self.list.all.rows.iter().filter(|row| row.listed.open).count();
        let mut right = Vec::new();
        right.extend((open > 0).then(|| format!("{open} open now")));
        right.extend((!self.list.all.is_whole).then(|| "reading more …".to_owned()));
        let rest = put_right(buffer, area, styles, &(Label::Dim, right.join(" · ")));
        let count = if shown == 1 { "session" } else { "sessions" };
        let mut line =
            vec![(Label::Heading, scope), (Label::Plain, format!("  {} {count}", grouped(shown)))];
        line.extend((shown < all).then(|| (Label::Dim, format!(" of {}", grouped(all)))));
        let agent = self.list.agent.iter().map(|agent| (Label::Dim, format!("  only {agent}")));
        line.extend(agent);
        put_line(buffer, rest, styles, &line);
    }

    /// Returns how many turns, reverted turns and compactions the graph shows.
    fn counts(&self) -> String {
        let turns = || self.rows().iter().filter(|row| row.has_number);
        let reverted = turns().filter(|row| row.node.is_reverted).count() as u64;
        let all = turns().count() as u64 - reverted;
        let compactions =
            self.rows().iter().filter(|row| row.node.kind == Kind::Boundary).count() as u64;
        let counted = |n: u64, one: &str, many: &str| {
            format!("{} {}", grouped(n), if n == 1 { one } else { many })
        };
        let turns = counted(all, "turn", "turns");
        let mut parts = vec![match reverted {
            0 => turns,
            n => format!("{turns} + {} reverted", grouped(n)),
        }];
        parts.extend((compactions > 0).then(|| counted(compactions, "compaction", "compactions")));
        if self.graph.as_ref().is_some_and(|graph| !graph.is_whole) {
            parts.push("reading more …".to_owned());
        }
        parts.join(" · ")
    }

    /// Draws a pane's title into its first row, and returns the rows below it.
    fn draw_title(
        &self,
        area: Rect,
        buffer: &mut Buffer,
        pane: Pane,
        title: &str,
        right: &str,
    ) -> Rect {
        let styles = self.look.styles;
        rule(buffer, area, styles);
        let line = Rect { height: 1, ..area };
        let label = if self.focus == pane { Label::Head } else { Label::Heading };
        let right = if right.is_empty() { String::new() } else { format!(" {right} ─") };
        let rest = put_right(buffer, line, styles, &(Label::Dim, right));
        // The focused pane is marked without colour too.
        let mark = if self.focus == pane { "▸" } else { " " };
        let room = usize::from(rest.width).saturating_sub(4);
        let title = format!("{mark}{} ", safe::clip(&safe::line(title), room));
        put(buffer, after(rest, 1), styles, label, &title);
        Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area }
    }

    fn draw_sessions(&mut self, frame: Frame, buffer: &mut Buffer) -> Option<Position> {
        let styles = self.look.styles;
        if frame.sessions.is_empty() {
            return None;
        }
        let title = if frame.is_wide { "1 Sessions" } else { "Sessions" };
        let mut area = self.draw_title(frame.sessions, buffer, Pane::Sessions, title, "");
        let mut cursor = None;
        if self.has_filter() {
            let text = self.list.filter.end(usize::from(area.width).saturating_sub(4)).to_owned();
            put(buffer, area, styles, Label::Plain, &format!(" / {text}"));
            let x = area.x + columns(3 + safe::width(&text));
            cursor = (self.is_typing && self.focus == Pane::Sessions)
                .then_some(Position { x, y: area.y });
            area = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
        }
        if self.list.shown.is_empty() {
            self.draw_no_sessions(area, buffer);
            return cursor;
        }
        self.draw_session_rows(area, buffer);
        cursor
    }

    fn draw_session_rows(&mut self, area: Rect, buffer: &mut Buffer) {
        let styles = self.look.styles;
        self.list.cursor.fit(usize::from(area.height));
        let top = self.list.cursor.top;
        let shown = self.list.shown.iter().skip(top).take(usize::from(area.height));
        let rows: Vec<&SessionRow> = shown.filter_map(|row| self.list.all.rows.get(*row)).collect();
        let has_room = area.width >= ROOMY;
        let columns: Vec<[Span; 7]> = rows.iter().map(|row| columns_of(row, has_room)).collect();
        // A column in which all rows are equal says nothing.
        let is_same =
            |n: usize| columns.iter().all(|row| Some(&row[n]) == columns.first().map(|it| &it[n]));
        let is_dropped = |n: usize| rows.len() > 1 && matches!(n, AGENT | FOLDER) && is_same(n);
        let widest = |n: usize| columns.iter().map(|row| safe::width(&row[n].1)).max().unwrap_or(0);
        let width = |n: usize| if is_dropped(n) { 0 } else { widest(n) };
        let widths: Vec<usize> = (0..7).map(width).collect();
        let taken: usize = widths.iter().filter(|wide| **wide > 0).map(|wide| wide + 1).sum();
        for (n, (line, (row, columns))) in area.rows().zip(rows.iter().zip(&columns)).enumerate() {
            let room = usize::from(line.width).saturating_sub(1 + 2 + taken + 1);
            let title = safe::line(&row.title);
            let title = safe::clip(&title, room);
            let gap = " ".repeat(room.saturating_sub(safe::width(&title)) + 1);
            let open = if row.listed.open { "● " } else { "  " };
            let mut spans: Vec<Span> = vec![(Label::Head, open.to_owned())];
            for (n, ((label, text), wide)) in columns.iter().zip(&widths).enumerate() {
                if n == TITLE {
                    spans.push((Label::Plain, format!("{title}{gap}")));
                }
                let pad = " ".repeat(wide.saturating_sub(safe::width(text)));
                match *wide {
                    0 => {}
                    _ if matches!(n, AGENT | FOLDER) => {
                        spans.push((*label, format!("{text}{pad} ")));
                    }
                    _ => spans.push((*label, format!("{pad}{text} "))),
                }
            }
            put_line(buffer, after(line, 1), styles, &spans);
            if top + n == self.list.cursor.at {
                mark_row(buffer, line, styles, self.focus == Pane::Sessions);
            }
        }
    }

    /// Says why the list is empty, and what to do.
    fn draw_no_sessions(&self, area: Rect, buffer: &mut Buffer) {
        let all = self.list.all.rows.len() as u64;
        let filter = self.list.filter.text.trim();
        let words = if all == 0 && !self.list.all.is_whole {
            "Reading the sessions …".to_owned()
        } else if all == 0 {
            let import = (self.spell)(&Line::new("import").with("PATH"));
            let looked = &self.list.all.looked_in;
            format!("No sessions yet. Looked in {looked}. Start an agent, or: {import}")
        } else if !self.list.unknown.is_empty() {
            let known = "is:reverted is:compacted is:deleted is:open since:3d";
            format!("{} is no condition. There are: {known}", self.list.unknown.join(" "))
        } else if !filter.is_empty() {
            let what = format!("0 of {} match \"{filter}\".", grouped(all));
            format!("{what} ⏎ searches all text · esc clears")
        } else if self.list.scope == Scope::Here {
            format!("No sessions in {}. f shows all {}", self.list.all.here, grouped(all))
        } else {
            format!("No session is in this scope. f and a show others; there are {}", grouped(all))
        };
        self.draw_words(area, buffer, &words);
    }

    fn draw_words(&self, area: Rect, buffer: &mut Buffer, words: &str) {
        let room = usize::from(area.width).saturating_sub(2);
        let rows = crate::render::wrap::wrap(&safe::line(words), Some(room.max(1)));
        for (line, text) in area.rows().skip(1).zip(rows) {
            put(buffer, after(line, 1), self.look.styles, Label::Dim, &text);
        }
    }

    fn draw_turns(&mut self, frame: Frame, buffer: &mut Buffer) {
        if frame.turns.is_empty() {
            return;
        }
        let styles = self.look.styles;
        let graph = self.graph.as_ref();
        let context = self.session_row().map(|row| row.context.clone()).unwrap_or_default();
        let arrived = match self.arrived {
            0 => None,
            1 => Some("1 new turn ↑ gg".to_owned()),
            n => Some(format!("{n} new turns ↑ gg")),
        };
        let title = graph.map(|graph| graph.title.clone()).unwrap_or_default();
        let (title, right) = if frame.is_wide {
            (format!("2 Turns: {title}"), arrived.unwrap_or_default())
        } else {
            ("Turns".to_owned(), arrived.unwrap_or(context.clone()))
        };
        let mut area = self.draw_title(frame.turns, buffer, Pane::Turns, &title, &right);
        if frame.is_wide {
            let facts = self.graph.as_ref().map(|graph| graph.facts.clone()).unwrap_or_default();
            let counts = if self.graph.is_some() { self.counts() } else { String::new() };
            for (line, left, right) in [(0, facts, counts), (1, context, String::new())] {
                let line = Rect {
                    y: area.y + line,
                    height: 1,
                    width: area.width.saturating_sub(1),
                    ..area
                };
                let right = format!("  {right}");
                let rest = put_right(buffer, after(line, 1), styles, &(Label::Dim, right));
                put(buffer, rest, styles, Label::Dim, &left);
            }
            area = Rect { y: area.y + 3, height: area.height.saturating_sub(3), ..area };
        }
        let words = match (&self.session, &self.graph) {
            (Some(_), None) => "Reading the session …",
            (None, _) => "",
            (_, Some(graph)) if graph.turns.is_empty() && graph.is_whole => {
                "Nothing has been said yet"
            }
            _ => return self.draw_turn_rows(area, buffer),
        };
        self.draw_words(area, buffer, words);
    }

    fn draw_turn_rows(&mut self, area: Rect, buffer: &mut Buffer) {
        let (styles, height) = (self.look.styles, usize::from(area.height));
        let lines = |at: usize| self.rows().get(at).map_or(0, |row| row.lines.len());
        // The first row that can be on top while the cursor is visible.
        let (mut lowest, mut used) = (self.turns.at, 1);
        while lowest > 0 && used + lines(lowest - 1) <= height {
            used += lines(lowest - 1);
            lowest -= 1;
        }
        let top = self.turns.top.clamp(lowest, self.turns.at);
        let (mut left, mut shown) = (area, 0);
        for (at, row) in self.rows().iter().enumerate().skip(top) {
            if left.is_empty() {
                break;
            }
            shown += 1;
            for (n, line) in row.lines.iter().enumerate() {
                let to = Rect { height: 1.min(left.height), ..left };
                put_line(buffer, after(to, 1), styles, line);
                self.mark_matches(buffer, after(to, 1), line, Pane::Turns);
                if n == 0 && at == self.turns.at && !to.is_empty() {
                    mark_row(buffer, to, styles, self.focus == Pane::Turns);
                }
                left = Rect { y: left.y + to.height, height: left.height - to.height, ..left };
            }
        }
        (self.turns.top, self.turns.page) = (top, shown);
    }

    /// Returns the turn on a visible line.
    pub(super) fn turn_at_line(&self, line: usize) -> Option<usize> {
        let mut left = line;
        for (at, row) in self.rows().iter().enumerate().skip(self.turns.top) {
            match left.checked_sub(row.lines.len()) {
                Some(rest) => left = rest,
                None => return Some(at),
            }
        }
        None
    }

    fn draw_reading(&mut self, frame: Frame, buffer: &mut Buffer) {
        if frame.reading.is_empty() {
            return;
        }
        let styles = self.look.styles;
        let place = self.turn().map(super::data::TurnRow::place).unwrap_or_default();
        let title = if frame.is_wide { format!("3 {place}") } else { place };
        let detail = match self.reader.detail {
            Detail::Titles => "tools: titles",
            Detail::Short => "tools: short",
            Detail::Full => "tools: full",
        };
        let area = self.draw_title(frame.reading, buffer, Pane::Reading, &title, detail);
        let room = usize::from(area.width).saturating_sub(2);
        self.reader.lay_out(room, self.look.zone, self.look.now);
        self.reader.cursor.fit(usize::from(area.height));
        let is_focused = self.focus == Pane::Reading;
        let rows = self.reader.rows();
        if rows.is_empty() && self.turn().is_some() && self.reader.shown.is_none() {
            return self.draw_words(area, buffer, "Reading …");
        }
        let shown = rows.iter().enumerate().skip(self.reader.cursor.top);
        for (line, (at, row)) in area.rows().zip(shown) {
            put_line(buffer, after(line, 1), styles, &row.spans);
            self.mark_matches(buffer, after(line, 1), &row.spans, Pane::Reading);
            if is_focused && at == self.reader.cursor.at {
                mark_row(buffer, line, styles, true);
            }
        }
    }

    /// Highlights the matches of the text to find.
    fn mark_matches(&self, buffer: &mut Buffer, area: Rect, line: &[Span], pane: Pane) {
        let sought = self.sought.text.to_lowercase();
        if sought.is_empty() || self.focus != pane {
            return;
        }
        let text: String = line.iter().map(|(_, text)| text.as_str()).collect();
        let text = text.to_lowercase();
        for (at, found) in text.match_indices(&sought) {
            let before = columns(safe::width(text.get(..at).unwrap_or_default()));
            let wide = columns(safe::width(found));
            let cells = Rect { x: area.x.saturating_add(before), width: wide, height: 1, ..area };
            let style = style(self.look.styles, Label::Match).underlined();
            buffer.set_style(cells.intersection(area), style);
        }
    }

    /// Draws the lines between panes.
    fn draw_edges(&self, frame: Frame, buffer: &mut Buffer) {
        let styles = self.look.styles;
        rule(buffer, frame.rule, styles);
        if !frame.is_wide || frame.sessions.is_empty() || frame.turns.is_empty() {
            return;
        }
        let x = frame.sessions.right();
        for y in frame.sessions.y..frame.rule.y {
            let sign = match y {
                y if y == frame.sessions.y => "┬",
                y if y == frame.reading.y => "├",
                _ => "│",
            };
            put(buffer, Rect { x, y, width: 1, height: 1 }, styles, Label::Dim, sign);
        }
        put(buffer, Rect { x, width: 1, ..frame.rule }, styles, Label::Dim, "┴");
    }

    /// Draws the command that shows the same, or on a narrow screen what was said last.
    fn draw_command(&self, frame: Frame, buffer: &mut Buffer) {
        let styles = self.look.styles;
        let area = after(Rect { width: frame.command.width.saturating_sub(1), ..frame.command }, 1);
        match &self.message {
            Some((label, text)) if !frame.is_wide => put(buffer, area, styles, *label, text),
            _ => {
                let Some(command) = self.command() else { return };
                let copy = (Label::Dim, "  yy copy".to_owned());
                let rest = put_right(buffer, area, styles, &copy);
                put(buffer, rest, styles, Label::Dim, &format!("$ {command}"));
            }
        }
    }

    fn draw_status(&self, frame: Frame, buffer: &mut Buffer) {
        let styles = self.look.styles;
        let area = after(Rect { width: frame.status.width.saturating_sub(1), ..frame.status }, 1);
        let Some(graph) = self.graph.as_ref().filter(|_| !area.is_empty()) else { return };
        let state = match (&graph.deleted, &graph.open) {
            (Some(file), _) => {
                (Label::Warning, format!("its agent deleted {file}; it is complete here"))
            }
            (_, Some(agent)) => (Label::Head, format!("● open in {agent}")),
            _ => (Label::Dim, "no agent has it open".to_owned()),
        };
        let rest = put_right(buffer, area, styles, &(state.0, format!("  {}", state.1)));
        let waiting =
            graph.waiting.as_ref().map(|what| format!("the next resume offers to {what}"));
        let undo = graph.undo.as_ref().map(|what| format!("u undoes {what}"));
        match (&self.message, waiting.or(undo)) {
            (Some((label, text)), _) => put(buffer, rest, styles, *label, text),
            (None, Some(text)) => put(buffer, rest, styles, Label::Dim, &text),
            (None, None) => {}
        }
    }

    fn draw_keys(&self, area: Rect, buffer: &mut Buffer) -> Option<Position> {
        let styles = self.look.styles;
        let area = after(Rect { width: area.width.saturating_sub(1), ..area }, 1);
        if let Some(first) = &self.pending {
            let menu = self.keys.after(self.focus, first);
            let menu = menu.map(|(next, row)| format!("{next} {}", brief_of(row)));
            let text = format!("{first}  {}", menu.collect::<Vec<_>>().join("  "));
            put(buffer, area, styles, Label::Hint, &text);
            return None;
        }
        if self.is_typing && self.focus != Pane::Sessions {
            let text = self.sought.end(usize::from(area.width).saturating_sub(3));
            put(buffer, area, styles, Label::Plain, &format!("/ {text}"));
            let x = area.x + columns(2 + safe::width(text));
            return Some(Position { x, y: area.y });
        }
        if self.is_typing {
            put(buffer, area, styles, Label::Dim, "⏎ done  ↑↓ move  esc clear");
            return None;
        }
        let rows =
            TABLE.iter().filter(|row| row.panes.contains(&self.focus) && !row.brief.is_empty());
        let (left, right): (Vec<&Key>, Vec<&Key>) =
            rows.partition(|row| !["keys", "quit"].contains(&row.brief));
        let words = |row: &&Key| {
            let key = self.keys.of(row).first().map(|key| glyph(key)).unwrap_or_default();
            let is_back = row.brief == "quit" && self.focus != Pane::Sessions;
            format!("{key} {}", if is_back { "back" } else { row.brief })
        };
        let right: Vec<String> = right.iter().map(words).collect();
        let rest =
            put_right(buffer, area, styles, &(Label::Dim, format!("  {}", right.join("  "))));
        let mut text = String::new();
        for words in left.iter().map(words) {
            if safe::width(&text) + safe::width(&words) + 2 > usize::from(rest.width) {
                break;
            }
            text.push_str(&words);
            text.push_str("  ");
        }
        put(buffer, rest, styles, Label::Dim, &text);
        None
    }
}

/// Returns the columns of a session's row besides its title: age, agent, folder, turns, reverted branches, compactions, and
/// whether its agent deleted it.
fn columns_of(row: &SessionRow, has_room: bool) -> [Span; 7] {
    let above = |sign: char, n: u64| if n > 0 { format!("{sign}{n}") } else { String::new() };
    let listed = &row.listed;
    let name = &listed.name.format;
    let agent = if has_room { name.clone() } else { name.chars().take(2).collect() };
    let folder = if has_room {
        safe::clip(&safe::line(&row.folder), FOLDER_WIDTH).into_owned()
    } else {
        String::new()
    };
    let deleted = if listed.gone { "del" } else { "" };
    [
        (Label::Time, row.age.clone()),
        (Label::Dim, agent),
        (Label::Dim, folder),
        (Label::Plain, listed.card.turns.to_string()),
        (Label::Warning, above('↶', listed.reverted)),
        (Label::Boundary, above('◆', listed.compactions)),
        (Label::Error, deleted.to_owned()),
    ]
}

/// Returns the word for a row of the table in the menu of a first key.
fn brief_of(row: &Key) -> &'static str {
    row.name.strip_prefix("next-").or(row.name.strip_prefix("copy-")).unwrap_or(row.name)
}

/// Returns how a key is shown.
pub(super) fn glyph(key: &str) -> String {
    match key {
        "enter" => "⏎".to_owned(),
        "up" => "↑".to_owned(),
        "down" => "↓".to_owned(),
        "left" => "←".to_owned(),
        "right" => "→".to_owned(),
        key => match key.strip_prefix("ctrl-") {
            Some(key) => format!("^{key}"),
            None => key.replace(' ', ""),
        },
    }
}
