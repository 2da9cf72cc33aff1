//! Drawing of the panes.
//!
//! Invariant: drawing changes nothing. [`Browse::draw`] first fits the cursors to their panes.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::canvas::{Canvas, after, below, columns, inset, style};
use super::data::{Graph, SessionRow};
use super::keys::{Key, Pane, TABLE};
use super::layout::{Frame, LEAST};
use super::list::Scope;
use super::popup;
use super::state::Browse;
use crate::render::conversation::Detail;
use crate::render::safe;
use crate::render::style::{Label, Span};
use crate::render::units::grouped;
use undertext::report::Line;

/// From this width on, a list of sessions shows agents by name, and folders.
const ROOMY: u16 = 76;
/// Maximum width of a folder.
const FOLDER_WIDTH: usize = 24;

impl Browse {
    /// Draws the screen, and returns the position of the text cursor.
    pub(crate) fn draw(&mut self, area: Rect, buffer: &mut Buffer) -> Option<Position> {
        self.resize(area.width, area.height);
        let mut canvas = Canvas { buffer, styles: self.look.styles, glyphs: self.look.glyphs };
        if self.layout.is_too_small() {
            let (columns, rows) = LEAST;
            let words =
                format!("needs {columns}x{rows}, and this is {}x{}", area.width, area.height);
            canvas.put(area, Label::Plain, &words);
            return None;
        }
        let frame = self.layout.frame();
        self.fit(frame);
        let mut view = Panes { it: self, frame, canvas };
        let cursor = view.draw();
        match &mut self.dialog {
            Some(dialog) => {
                let canvas = Canvas { buffer, styles: self.look.styles, glyphs: self.look.glyphs };
                let word = self.turns.word.as_deref();
                popup::Popup { canvas, area, keys: &self.keys, word }.draw(dialog)
            }
            None => cursor,
        }
    }

    /// Keeps the cursors in sight.
    fn fit(&mut self, frame: Frame) {
        let height_of = |area: Rect, heads: u16| usize::from(below(area, heads).height);
        if !frame.sessions.is_empty() {
            let height = height_of(frame.sessions, 1 + u16::from(has_filter(self)));
            self.list.fit(height, self.look);
        }
        if !frame.turns.is_empty() {
            self.turns.fit(height_of(frame.turns, 1 + facts_of(frame)));
        }
        if !frame.reading.is_empty() {
            self.reader.cursor.fit(height_of(frame.reading, 1));
        }
    }
}

/// Returns true if the list shows its filter.
pub(super) fn has_filter(it: &Browse) -> bool {
    let is_typed = it.is_typing && it.layout.focus == Pane::Sessions;
    is_typed || !it.list.filter.text.is_empty()
}

/// Returns how many rows of facts are above the turns.
pub(super) fn facts_of(frame: Frame) -> u16 {
    u16::from(frame.is_wide) * 3
}

/// The panes as they are drawn.
struct Panes<'a> {
    it: &'a Browse,
    frame: Frame,
    canvas: Canvas<'a>,
}

impl Panes<'_> {
    /// Draws all panes, and returns the position of the text cursor.
    fn draw(&mut self) -> Option<Position> {
        self.draw_head();
        let cursor = self.draw_sessions();
        self.draw_turns();
        self.draw_reading();
        self.draw_edges();
        self.draw_command();
        self.draw_status();
        self.draw_keys(self.frame.keys).or(cursor)
    }

    fn draw_head(&mut self) {
        let area = inset(self.frame.head);
        let (shown, all) = (self.it.list.shown.len() as u64, self.it.list.all.rows.len() as u64);
        let scope = match self.it.list.scope {
            Scope::Here => self.it.list.all.here.clone(),
            Scope::All => "all folders".to_owned(),
            Scope::Week => "this week".to_owned(),
        };
        if !self.frame.is_wide && self.it.layout.focus != Pane::Sessions {
            let at = format!("‹ {scope} {}/{shown}   ", self.it.list.cursor.at + 1);
            let counts = format!("  {}", counts_of(self.it.turns.graph.as_ref()));
            let rest = self.canvas.put_right(area, Label::Dim, &counts);
            let title =
                self.it.turns.graph.as_ref().map(|graph| graph.title.clone()).unwrap_or_default();
            return self.canvas.put_line(rest, &[(Label::Dim, at), (Label::Heading, title)]);
        }
        let open = self.it.list.all.rows.iter().filter(|row| row.listed.open).count();
        let mut right = Vec::new();
        right.extend((open > 0).then(|| format!("{open} open now")));
        right.extend((!self.it.list.all.is_whole).then(|| "reading more …".to_owned()));
        let rest = self.canvas.put_right(area, Label::Dim, &right.join(" · "));
        let count = if shown == 1 { "session" } else { "sessions" };
        let mut line =
            vec![(Label::Heading, scope), (Label::Plain, format!("  {} {count}", grouped(shown)))];
        line.extend((shown < all).then(|| (Label::Dim, format!(" of {}", grouped(all)))));
        let agent = self.it.list.agent.iter().map(|agent| (Label::Dim, format!("  only {agent}")));
        line.extend(agent);
        self.canvas.put_line(rest, &line);
    }

    /// Draws a pane's title into its first row, and returns the rows below it.
    fn draw_title(&mut self, area: Rect, pane: Pane, title: &str, right: &str) -> Rect {
        self.canvas.rule(area);
        let line = Rect { height: 1, ..area };
        let label = if self.it.layout.focus == pane { Label::Head } else { Label::Heading };
        let right = if right.is_empty() { String::new() } else { format!(" {right} ─") };
        let rest = self.canvas.put_right(line, Label::Dim, &right);
        // The focused pane is marked without colour too.
        let mark = if self.it.layout.focus == pane { "▸" } else { " " };
        let room = usize::from(rest.width).saturating_sub(4);
        let title = format!("{mark}{} ", safe::clip(&safe::line(title), room));
        self.canvas.put(after(rest, 1), label, &title);
        below(area, 1)
    }

    fn draw_sessions(&mut self) -> Option<Position> {
        if self.frame.sessions.is_empty() {
            return None;
        }
        let title = if self.frame.is_wide { "1 Sessions" } else { "Sessions" };
        let mut area = self.draw_title(self.frame.sessions, Pane::Sessions, title, "");
        let mut cursor = None;
        if has_filter(self.it) {
            let text =
                self.it.list.filter.end(usize::from(area.width).saturating_sub(4)).to_owned();
            self.canvas.put(area, Label::Plain, &format!(" / {text}"));
            let x = area.x + columns(3 + safe::width(&text));
            cursor = (self.it.is_typing && self.it.layout.focus == Pane::Sessions)
                .then_some(Position { x, y: area.y });
            area = below(area, 1);
        }
        if self.it.list.shown.is_empty() {
            self.draw_no_sessions(area);
            return cursor;
        }
        self.draw_session_rows(area);
        cursor
    }

    fn draw_session_rows(&mut self, area: Rect) {
        let list = &self.it.list;
        let lines: Vec<_> = list.lines(self.it.look).take(area.height.into()).collect();
        let rows = lines.iter().filter(|(_, heading)| heading.is_none());
        let rows: Vec<&SessionRow> = rows.filter_map(|(at, _)| list.row(*at)).collect();
        let has_room = area.width >= ROOMY;
        let mut agents: Vec<&str> = rows.iter().map(|row| &*row.listed.name.format).collect();
        agents.sort_unstable();
        let usual = agents.chunk_by(|one, next| one == next).max_by_key(|same| same.len());
        let usual = usual.and_then(|same| same.first().copied()).unwrap_or_default();
        let columns: Vec<[String; 3]> =
            rows.iter().map(|row| columns_of(row, usual, has_room)).collect();
        // A column in which all rows are equal says nothing.
        let is_same =
            |n: usize| columns.iter().all(|row| Some(&row[n]) == columns.first().map(|it| &it[n]));
        let width = |n: usize| match n {
            0 => columns.iter().map(|row| safe::width(&row[n])).max().unwrap_or(0),
            _ if rows.len() > 1 && is_same(n) || !has_room => 0,
            _ => columns.iter().map(|row| safe::width(&row[n])).max().unwrap_or(0) + 1,
        };
        let widths = [0, 1, 2].map(width);
        let mut rows = rows.iter().zip(&columns);
        for (line, (at, heading)) in area.rows().zip(&lines) {
            if let Some(heading) = heading {
                self.canvas.rule(line);
                self.canvas.put(after(line, 3), Label::Dim, &format!(" {heading} "));
                continue;
            }
            let Some((row, texts)) = rows.next() else { break };
            let mut rest = after(line, 1);
            for (label, text) in marks_of(row).into_iter().rev() {
                rest = self.canvas.put_right(rest, label, &format!("{text} "));
            }
            rest.width = rest.width.saturating_sub(1);
            let open = if row.listed.open { "● " } else { "  " };
            let [age, agent, folder] = texts;
            let pad = " ".repeat(widths[0].saturating_sub(safe::width(age)));
            let mut spans =
                vec![(Label::Head, open.to_owned()), (Label::Time, format!("{pad}{age} "))];
            for (text, wide) in [(agent, widths[1]), (folder, widths[2])] {
                let gap = " ".repeat(wide.saturating_sub(safe::width(text)));
                spans.extend((wide > 0).then(|| (Label::Dim, format!("{text}{gap}"))));
            }
            spans.extend(
                (!has_room && !agent.is_empty()).then(|| (Label::Dim, format!("{agent} "))),
            );
            spans.push((Label::Plain, safe::line(&row.title).into_owned()));
            self.canvas.put_line(rest, &spans);
            if *at == list.cursor.at {
                self.canvas.mark_row(line, self.it.layout.focus == Pane::Sessions);
            }
        }
    }

    /// Says why the list is empty, and what to do.
    fn draw_no_sessions(&mut self, area: Rect) {
        let all = self.it.list.all.rows.len() as u64;
        let filter = self.it.list.filter.text.trim();
        let words = if all == 0 && !self.it.list.all.is_whole {
            "Reading the sessions …".to_owned()
        } else if all == 0 {
            let import = (self.it.spell)(&Line::new("import").with("PATH"));
            let looked = &self.it.list.all.looked_in;
            format!("No sessions yet. Looked in {looked}. Start an agent, or: {import}")
        } else if !self.it.list.unknown.is_empty() {
            let known = "is:reverted is:compacted is:deleted is:open since:3d";
            format!("{} is no condition. There are: {known}", self.it.list.unknown.join(" "))
        } else if !filter.is_empty() {
            let what = format!("0 of {} match \"{filter}\".", grouped(all));
            format!("{what} ⏎ searches all text · esc clears")
        } else if self.it.list.scope == Scope::Here && self.it.list.agent.is_none() {
            format!("No sessions in {}. f shows all {}", self.it.list.all.here, grouped(all))
        } else {
            format!("No session is in this scope. f and a show others; there are {}", grouped(all))
        };
        self.draw_words(area, &words);
    }

    fn draw_words(&mut self, area: Rect, words: &str) {
        let room = usize::from(area.width).saturating_sub(2);
        let rows = crate::render::wrap::wrap(&safe::line(words), Some(room.max(1)));
        for (line, text) in area.rows().skip(1).zip(rows) {
            self.canvas.put(after(line, 1), Label::Dim, &text);
        }
    }

    fn draw_turns(&mut self) {
        if self.frame.turns.is_empty() {
            return;
        }
        let graph = self.it.turns.graph.as_ref();
        let row = self.it.turns.session.as_ref().and_then(|name| self.it.list.row_of(name));
        let context = row.map(|row| row.context.clone()).unwrap_or_default();
        let arrived = match self.it.turns.arrived {
            0 => None,
            1 => Some("1 new turn ↑ gg".to_owned()),
            n => Some(format!("{n} new turns ↑ gg")),
        };
        let title = graph.map(|graph| graph.title.clone()).unwrap_or_default();
        let (title, right) = if self.frame.is_wide {
            let title = if title.is_empty() { title } else { format!(": {title}") };
            (format!("2 Turns{title}"), arrived.unwrap_or_default())
        } else {
            let state = graph.and_then(state_of).map(|(_, state)| state);
            ("Turns".to_owned(), arrived.or(state).unwrap_or(context.clone()))
        };
        let mut area = self.draw_title(self.frame.turns, Pane::Turns, &title, &right);
        if self.frame.is_wide {
            let facts = graph.map(|graph| graph.facts.clone()).unwrap_or_default();
            let counts = counts_of(graph);
            for (line, left, right) in [(0, facts, counts), (1, context, String::new())] {
                let line = inset(below(area, line));
                let rest = self.canvas.put_right(line, Label::Dim, &format!("  {right}"));
                self.canvas.put(rest, Label::Dim, &left);
            }
            area = below(area, 3);
        }
        let words = match (&self.it.turns.session, &self.it.turns.graph) {
            (Some(_), None) => "Reading the session …",
            (None, _) => "",
            (_, Some(graph)) if graph.rows == 0 && graph.is_whole => "Nothing has been said yet",
            _ => return self.draw_turn_rows(area),
        };
        self.draw_words(area, words);
    }

    fn draw_turn_rows(&mut self, area: Rect) {
        let turns = &self.it.turns;
        let mut left = area;
        for at in turns.cursor.top..turns.len() {
            if left.is_empty() {
                break;
            }
            let absent = [vec![(Label::Dim, "…".to_owned())]];
            let lines = turns.row(at).map_or(&absent[..], |row| &row.lines);
            for (n, line) in lines.iter().enumerate() {
                let to = Rect { height: 1.min(left.height), ..left };
                self.canvas.put_line(after(to, 1), line);
                self.mark_matches(after(to, 1), line, Pane::Turns);
                if turns.is_in_range(at) {
                    self.canvas.put(to, Label::Head, "▎");
                }
                if n == 0 && at == turns.cursor.at && !to.is_empty() {
                    self.canvas.mark_row(to, self.it.layout.focus == Pane::Turns);
                }
                left = below(left, 1);
            }
        }
    }

    fn draw_reading(&mut self) {
        if self.frame.reading.is_empty() {
            return;
        }
        let place = self.it.turns.turn().map(super::data::TurnRow::place).unwrap_or_default();
        let title = if self.frame.is_wide { format!("3 {place}") } else { place };
        let fold = &self.it.reader.fold;
        let detail = match fold.detail {
            _ if fold.has_files_only => "edits only",
            Detail::Titles => "tools: titles",
            Detail::Short => "tools: short",
            Detail::Full => "tools: full",
        };
        let detail =
            if fold.side_by_side { format!("side by side · {detail}") } else { detail.to_owned() };
        let area = self.draw_title(self.frame.reading, Pane::Reading, &title, &detail);
        let is_focused = self.it.layout.focus == Pane::Reading;
        let rows = self.it.reader.rows();
        if rows.is_empty() && self.it.turns.turn().is_some() && self.it.reader.shown.is_none() {
            return self.draw_words(area, "Reading …");
        }
        if rows.is_empty() && fold.has_files_only {
            return self.draw_words(area, "This turn edited no file. f shows everything");
        }
        let shown = rows.iter().enumerate().skip(self.it.reader.cursor.top);
        for (line, (at, row)) in area.rows().zip(shown) {
            self.canvas.put_line(after(line, 1), &row.spans);
            self.mark_matches(after(line, 1), &row.spans, Pane::Reading);
            if is_focused && at == self.it.reader.cursor.at {
                self.canvas.mark_row(line, true);
            }
        }
    }

    /// Highlights the matches of the text to find.
    fn mark_matches(&mut self, area: Rect, line: &[Span], pane: Pane) {
        let sought = self.it.sought.text.to_lowercase();
        if sought.is_empty() || self.it.layout.focus != pane {
            return;
        }
        let text: String = line.iter().map(|(_, text)| text.as_str()).collect();
        let text = text.to_lowercase();
        for (at, found) in text.match_indices(&sought) {
            let before = columns(safe::width(text.get(..at).unwrap_or_default()));
            let wide = columns(safe::width(found));
            let cells = Rect { x: area.x.saturating_add(before), width: wide, height: 1, ..area };
            let style = style(self.it.look.styles, Label::Match).underlined();
            self.canvas.buffer.set_style(cells.intersection(area), style);
        }
    }

    /// Draws the lines between panes.
    fn draw_edges(&mut self) {
        self.canvas.rule(self.frame.rule);
        if !self.frame.is_wide || self.frame.sessions.is_empty() || self.frame.turns.is_empty() {
            return;
        }
        let x = self.frame.sessions.right();
        for y in self.frame.sessions.y..self.frame.rule.y {
            let sign = match y {
                y if y == self.frame.sessions.y => "┬",
                y if y == self.frame.reading.y => "├",
                _ => "│",
            };
            self.canvas.put(Rect { x, y, width: 1, height: 1 }, Label::Dim, sign);
        }
        self.canvas.put(Rect { x, width: 1, ..self.frame.rule }, Label::Dim, "┴");
    }

    /// Draws the command that shows the same, or on a narrow screen what was said last.
    fn draw_command(&mut self) {
        let area = inset(self.frame.command);
        match &self.it.out.message {
            Some((label, text)) if !self.frame.is_wide => self.canvas.put(area, *label, text),
            _ => {
                let Some(command) = self.it.command() else { return };
                let rest = self.canvas.put_right(area, Label::Dim, "  yy copy");
                self.canvas.put(rest, Label::Dim, &format!("$ {command}"));
            }
        }
    }

    fn draw_status(&mut self) {
        let area = inset(self.frame.status);
        let Some(graph) = self.it.turns.graph.as_ref().filter(|_| !area.is_empty()) else { return };
        let state = state_of(graph).unwrap_or((Label::Dim, "no agent has it open".to_owned()));
        let rest = self.canvas.put_right(area, state.0, &format!("  {}", state.1));
        let waiting =
            graph.waiting.as_ref().map(|what| format!("the next resume offers to {what}"));
        let undo = graph.undo.as_ref().map(|what| format!("u undoes {what}"));
        match (&self.it.out.message, waiting.or(undo)) {
            (Some((label, text)), _) => self.canvas.put(rest, *label, text),
            (None, Some(text)) => self.canvas.put(rest, Label::Dim, &text),
            (None, None) => {}
        }
    }

    fn draw_keys(&mut self, area: Rect) -> Option<Position> {
        let area = inset(area);
        if let Some(first) = &self.it.pending {
            let menu = self.it.keys.after(self.it.layout.focus, first);
            let menu = menu.map(|(next, row)| format!("{next} {}", brief_of(row)));
            let text = format!("{first}  {}", menu.collect::<Vec<_>>().join("  "));
            self.canvas.put(area, Label::Hint, &text);
            return None;
        }
        if self.it.is_typing && self.it.layout.focus != Pane::Sessions {
            let text = self.it.sought.end(usize::from(area.width).saturating_sub(3));
            self.canvas.put(area, Label::Plain, &format!("/ {text}"));
            let x = area.x + columns(2 + safe::width(text));
            return Some(Position { x, y: area.y });
        }
        if self.it.is_typing {
            self.canvas.put(area, Label::Dim, "⏎ done  ↑↓ move  esc clear");
            return None;
        }
        let rows = TABLE
            .iter()
            .filter(|row| row.panes.contains(&self.it.layout.focus) && !row.brief.is_empty());
        let (left, right): (Vec<&Key>, Vec<&Key>) =
            rows.partition(|row| !["keys", "quit"].contains(&row.brief));
        let words = |row: &&Key| {
            let key = self.it.keys.of(row).first().map(|key| glyph(key)).unwrap_or_default();
            let is_back = row.brief == "quit" && self.it.layout.focus != Pane::Sessions;
            format!("{key} {}", if is_back { "back" } else { row.brief })
        };
        let right: Vec<String> = right.iter().map(words).collect();
        let rest = self.canvas.put_right(area, Label::Dim, &format!("  {}", right.join("  ")));
        let mut text = String::new();
        for words in left.iter().map(words) {
            if safe::width(&text) + safe::width(&words) + 2 > usize::from(rest.width) {
                break;
            }
            text.push_str(&words);
            text.push_str("  ");
        }
        self.canvas.put(rest, Label::Dim, &text);
        None
    }
}

/// Returns how many turns, reverted turns and compactions a graph has.
fn counts_of(graph: Option<&Graph>) -> String {
    let Some(graph) = graph else { return String::new() };
    let counted = |n: u64, one: &str, many: &str| {
        format!("{} {}", grouped(n), if n == 1 { one } else { many })
    };
    let counts = graph.counts;
    let mut parts = vec![counted(counts.turns, "turn", "turns")];
    if counts.reverted > 0 {
        parts = vec![format!("{} + {} reverted", parts.concat(), grouped(counts.reverted))];
    }
    let compactions = counted(counts.compactions, "compaction", "compactions");
    parts.extend((counts.compactions > 0).then_some(compactions));
    let unread = graph.unread.len() as u64;
    let unread_words = counted(unread, "record", "records");
    parts.extend((unread > 0).then(|| format!("{unread_words} could not be read (! shows why)")));
    parts.extend((!graph.is_whole).then(|| "and older ones".to_owned()));
    parts.join(" · ")
}

/// Says that its agent deleted a session's file, or has it open.
fn state_of(graph: &Graph) -> Option<Span> {
    let words = "deleted by its agent, complete here · :restore puts it back";
    let deleted = graph.deleted.as_ref().map(|_| (Label::Warning, words.to_owned()));
    let open = graph.open.as_ref().map(|agent| (Label::Head, format!("● open in {agent}")));
    deleted.or(open)
}

/// Returns what is before a session's title: its age, its agent unless that is the usual one, and its folder.
fn columns_of(row: &SessionRow, usual: &str, has_room: bool) -> [String; 3] {
    let agent = &row.listed.name.format;
    let letters = if has_room { usize::MAX } else { 2 };
    let is_shown = has_room || agent != usual;
    let agent = agent.chars().take(if is_shown { letters } else { 0 }).collect();
    let folder = safe::clip(&safe::line(&row.folder), FOLDER_WIDTH).into_owned();
    [row.age.clone(), agent, folder]
}

/// Returns what is after a session's title: its turns, reverted branches, compactions, and whether its agent deleted it.
fn marks_of(row: &SessionRow) -> Vec<Span> {
    let listed = &row.listed;
    let above = |label, sign: char, n: u64| (n > 0).then(|| (label, format!("{sign}{n}")));
    let mut marks = vec![(Label::Plain, listed.card.turns.to_string())];
    marks.extend(above(Label::Warning, '↶', listed.reverted));
    marks.extend(above(Label::Boundary, '◆', listed.compactions));
    marks.extend(listed.gone.then(|| (Label::Error, "del".to_owned())));
    marks
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
