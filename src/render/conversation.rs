//! Conversations: entries as a person reads them, one after another.
//!
//! ```text
//! @7  user  3f2a91c0  1 Aug 10:00
//!   The message, indented, so that no text can look like a heading.
//!
//! assistant  8b00d1f2  1 Aug 10:00
//!   The answer. A tool's result is shown under its call.
//!   $ make test  77e0a9d4
//!     12 passed
//!   3 records of the agent's own: -v shows them
//! ```
//!
//! Entries with text get a heading. Calls without text continue under the previous one. The records that the agent's program
//! wrote for itself are folded into one dim line per turn, unless every entry is requested.
//!
//! Invariant: no text is cut without a note and the command that shows the rest.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use undertext::context::prompt;
use undertext::model::{
    Block, EntryId, EntryNumber, EntrySet, Image, Kind, Message, Text, Thinking, Timestamp,
};
use undertext::report;
use undertext::verbs::Line;
use undertext::wire::{Earlier, How};

use super::answers::{Answers, Pairs, blocks, is_own, is_plain};
use super::call::{Caller, Said, Worth};
use super::fields::fields;
use super::style::{Label, Span, Styles};
use super::time::Zone;
use super::wrap::wrap;
use super::{diff, harness, safe, units};

/// How much is shown of messages, summaries, the program's notes to the model, commands, changes, and results by their worth.
const WORDS: Room = Room { head: 20, tail: 0, rows: 10 };
const SUMMARY: Room = Room { head: 8, tail: 0, rows: 3 };
const NOTE: Room = Room { head: 5, tail: 0, rows: 3 };
const COMMAND: Room = Room { head: 4, tail: 0, rows: 3 };
const CHANGE: Room = Room { head: 12, tail: 0, rows: 1 };
const ENDS: Room = Room { head: 2, tail: 3, rows: 2 };
const BEGINNING: Room = Room { head: 3, tail: 0, rows: 2 };
const NOTHING: Room = Room { head: 0, tail: 0, rows: 1 };
/// Number of lines of a thought that are read to fill its single row.
const THOUGHTS: usize = 8;
/// The indentation of text in a conversation.
const INDENT: usize = 2;
/// The width to cut to without a terminal.
const WIDTH: usize = 100;
/// The minimum width, however narrow the terminal.
const LEAST: usize = 16;
/// The columns that an entry's id takes after its call.
const ID: usize = 10;
/// The placeholder for redacted thinking.
const REDACTED: &str = "[redacted_thinking]";

/// How much of a text is shown: lines at its beginning and end, and the maximum number of rows per line.
#[derive(Clone, Copy)]
struct Room {
    head: usize,
    tail: usize,
    rows: usize,
}

/// How much is shown of texts and calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Texts are shortened, and calls are one line each.
    Titles,
    /// Texts, calls and results are shortened.
    Short,
    /// Everything is shown in full.
    Full,
}

/// A line of a conversation, and the entry that it shows.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    #[cfg_attr(
        not(feature = "browse"),
        expect(dead_code, reason = "only a screen unfolds entries")
    )]
    pub(crate) entry: Option<EntryNumber>,
    pub(crate) spans: Vec<Span>,
}

/// Lays out a text for a width.
pub(crate) type Prose = fn(&str, usize) -> Vec<Vec<Span>>;

/// How a conversation is shown.
#[derive(Clone, Copy)]
pub(crate) struct Manner<'a> {
    pub(crate) styles: Styles,
    pub(crate) zone: Zone,
    pub(crate) now: Timestamp,
    /// The terminal's width.
    pub(crate) columns: Option<usize>,
    pub(crate) detail: Detail,
    /// How much is shown of the model's thoughts; [`Detail::Titles`] hides them.
    pub(crate) thoughts: Detail,
    /// The entries shown in full, whatever the detail.
    pub(crate) opened: Option<&'a EntrySet>,
    /// Show every entry under its own heading.
    pub(crate) every: bool,
    /// The folder that paths are shown relative to.
    pub(crate) folder: Option<&'a str>,
    /// Show the old and the new lines of an edit next to each other, if there is room.
    pub(crate) side_by_side: bool,
    /// Lays out Markdown for a width; `None` shows it as it is written.
    pub(crate) prose: Option<Prose>,
    /// Spells a command line.
    pub(crate) spell: &'a dyn Fn(&report::Line) -> String,
}

/// Writes entries in order, each followed by its remarks from `beneath`.
pub(crate) fn write(
    out: &mut dyn Write,
    lines: &[Line],
    beneath: &BTreeMap<EntryId, Vec<String>>,
    manner: Manner<'_>,
) -> io::Result<()> {
    each_row(lines, beneath, manner, &mut |row| print(out, manner, &row))
}

/// Passes on the rows of entries in order, each entry followed by its remarks from `beneath`.
pub(crate) fn each_row(
    lines: &[Line],
    beneath: &BTreeMap<EntryId, Vec<String>>,
    manner: Manner<'_>,
    each: &mut dyn FnMut(Row) -> io::Result<()>,
) -> io::Result<()> {
    let mut pairs = Pairs::default();
    for line in lines.iter().filter(|_| !manner.every) {
        pairs.see(line, beneath);
    }
    Teller::new(each, manner, INDENT, pairs.answers(lines)).tell(lines, beneath)
}

/// Writes the text, calls and results of an entry, without a heading.
pub(crate) fn body(out: &mut dyn Write, line: &Line, manner: Manner<'_>) -> io::Result<()> {
    let mut each = |row: Row| print(out, manner, &row);
    Teller::new(&mut each, manner, 0, Pairs::default().answers(&[])).body(line)
}

fn print(out: &mut dyn Write, manner: Manner<'_>, row: &Row) -> io::Result<()> {
    writeln!(out, "{}", manner.styles.paint_line(&row.spans))
}

/// Returns the text of an entry, whole and without marks. `show --lines` counts the lines of this text.
pub(crate) fn whole(messages: &[Message]) -> String {
    let parts = messages.iter().flat_map(Message::parts).map(|block| match block {
        Block::Text(text) => text.clone(),
        Block::Thinking(thinking) if thinking.is_redacted => REDACTED.to_owned(),
        Block::Thinking(thinking) => thinking.text.clone(),
        Block::Result { .. } => block.answer_text().into_owned(),
        Block::Call { name, input, .. } => listed(name.clone(), input),
        Block::Image(found) => image(found),
        Block::Other { name, json } => listed(format!("[{name}]"), json),
    });
    parts.collect::<Vec<_>>().join("\n")
}

/// Returns a name, followed by the fields of a JSON value.
fn listed(mut name: String, json: &str) -> String {
    for field in fields(json) {
        name.push('\n');
        name.push_str(&field.to_string());
    }
    name
}

/// Returns the beginning of an entry's id, as you can type it.
pub(crate) fn short(line: &Line) -> String {
    line.id.map_or_else(|| "?".to_owned(), |id| format!("{id:.8}"))
}

/// Returns the command line that shows an entry.
fn show(line: &Line) -> report::Line {
    report::Line::about("show").with(short(line))
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

/// Returns the placeholder for an image.
pub(crate) fn image(image: &Image) -> String {
    format!("[image, {}]", units::size(image.bytes as u64))
}

/// Describes how much of a result the agent omitted on its own.
pub(crate) fn omitted(earlier: &Earlier) -> String {
    let size = earlier.size.as_deref().map(|size| format!(": {size}")).unwrap_or_default();
    match (&earlier.file, earlier.how) {
        (Some(file), _) => format!("cut by the agent{size}, whole in {file}"),
        (None, How::Cleared) => format!("cleared by the agent{size}"),
        (None, How::Edited) => format!("edited by the agent{size}"),
        (None, _) => format!("cut by the agent{size}"),
    }
}

/// Describes the number of tokens before and after a compaction.
pub(crate) fn tokens(earlier: &[Earlier]) -> Option<String> {
    let compacted = earlier.iter().find(|earlier| earlier.how == How::Compacted)?;
    units::compacted(compacted.tokens)
}

/// Who spoke last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Voice {
    Nobody,
    /// The model, under its heading or between two results.
    Model,
    /// A result, after which the model continues.
    Tool,
    /// Anyone else.
    Other,
}

struct Teller<'a> {
    each: &'a mut dyn FnMut(Row) -> io::Result<()>,
    manner: Manner<'a>,
    /// The entry that the next rows show.
    entry: Option<EntryNumber>,
    indent: usize,
    answers: Answers<'a>,
    folded: usize,
    voice: Voice,
    /// The entry of the last heading.
    headed: Option<EntryNumber>,
}

impl<'a> Teller<'a> {
    fn new(
        each: &'a mut dyn FnMut(Row) -> io::Result<()>,
        manner: Manner<'a>,
        indent: usize,
        answers: Answers<'a>,
    ) -> Self {
        Self {
            each,
            manner,
            entry: None,
            indent,
            answers,
            folded: 0,
            voice: Voice::Nobody,
            headed: None,
        }
    }

    fn tell(
        mut self,
        lines: &'a [Line],
        beneath: &BTreeMap<EntryId, Vec<String>>,
    ) -> io::Result<()> {
        for (at, line) in lines.iter().enumerate() {
            if self.answers.lines.contains(line.n) {
                self.voice = Voice::Tool;
                continue;
            }
            if !self.manner.every && is_plain(line, beneath) && is_own(line) {
                self.folded += 1;
                continue;
            }
            match line.kind {
                Kind::Assistant if !self.manner.every => {
                    // Look ahead for the first text of this step.
                    let said = || {
                        let step = lines.get(at..).unwrap_or_default();
                        let mut step = step.iter().take_while(|line| line.kind == Kind::Assistant);
                        step.find(|line| {
                            blocks(line)
                                .any(|b| matches!(b, Block::Text(t) if !t.trim().is_empty()))
                        })
                    };
                    let is_marked = line.checkpoint.is_some();
                    let goes_on = match self.voice {
                        Voice::Model => !is_marked,
                        Voice::Tool => !is_marked && said().is_none(),
                        Voice::Nobody | Voice::Other => false,
                    };
                    if !goes_on {
                        self.head(said().filter(|_| !is_marked).unwrap_or(line))?;
                    }
                    self.voice = Voice::Model;
                }
                Kind::System if !self.manner.every && is_plain(line, beneath) => {
                    let text: String = line.messages.iter().map(Message::text).collect();
                    self.rows(Label::Dim, self.indent, &format!("system: {}", text.trim()))?;
                    if self.voice == Voice::Nobody {
                        self.voice = Voice::Other;
                    }
                    continue;
                }
                _ => {
                    self.tell_folded()?;
                    self.head(line)?;
                    self.voice = Voice::Other;
                }
            }
            self.body(line)?;
            for words in line.id.and_then(|id| beneath.get(&id)).into_iter().flatten() {
                self.rows(Label::Hint, self.indent, words)?;
            }
            for checkpoint in &line.marks {
                let note = checkpoint.note.as_ref();
                let note = note.map_or_else(|| "checkpoint".to_owned(), Text::to_text);
                let note = format!("  {}", safe::line(&note));
                self.put(Vec::new())?;
                self.put(vec![
                    (Label::Checkpoint, format!("@{}", checkpoint.n)),
                    (Label::Plain, note),
                ])?;
            }
        }
        self.tell_folded()
    }

    /// Prints how many records for the agent's own use this turn had.
    fn tell_folded(&mut self) -> io::Result<()> {
        let told = match (std::mem::take(&mut self.folded), self.manner.opened) {
            (0, _) => return Ok(()),
            (1, None) => "1 record for the agent's own use: -v shows it".to_owned(),
            (n, None) => format!("{n} records for the agent's own use: -v shows them"),
            (1, _) => "1 record for the agent's own use".to_owned(),
            (n, _) => format!("{n} records for the agent's own use"),
        };
        // Before the first entry, the line belongs to no turn.
        if self.voice == Voice::Nobody {
            self.voice = Voice::Other;
        }
        self.rows(Label::Dim, self.indent, &told)
    }

    fn head(&mut self, line: &Line) -> io::Result<()> {
        if self.voice != Voice::Nobody {
            self.put(Vec::new())?;
        }
        self.headed = Some(line.n);
        self.entry = Some(line.n);
        let Manner { zone, now, every, .. } = self.manner;
        let mut head = Vec::new();
        if let Some(n) = line.checkpoint {
            head.push((Label::Checkpoint, format!("@{n}")));
        }
        if let Some(own) = &line.own {
            head.push((Label::Checkpoint, safe::line(own).into_owned()));
        }
        head.push((label(line.kind), line.kind.as_str().to_owned()));
        head.push((Label::Id, short(line)));
        let time = |time| if every { zone.show(time) } else { zone.short(now, time) };
        head.extend(line.time.map(|at| (Label::Time, time(at))));
        head.extend(tokens(&line.earlier).map(|tokens| (Label::Dim, tokens)));
        let is_boundary = line.kind == Kind::Boundary;
        let gap = |columns: usize| (Label::Plain, " ".repeat(columns));
        let rule = || (Label::Boundary, "────".to_owned());
        let mut row: Vec<Span> =
            is_boundary.then(|| [rule(), gap(1)]).into_iter().flatten().collect();
        for (nth, part) in head.into_iter().enumerate() {
            row.extend((nth > 0).then(|| gap(2)));
            row.push(part);
        }
        row.extend(is_boundary.then(|| [gap(1), rule()]).into_iter().flatten());
        self.put(row)
    }

    /// Returns true if an entry is shown in full.
    fn is_full(&self, line: &Line) -> bool {
        let is_opened = self.manner.opened.is_some_and(|opened| opened.contains(line.n));
        is_opened || self.manner.detail == Detail::Full
    }

    fn body(&mut self, line: &Line) -> io::Result<()> {
        self.entry = Some(line.n);
        if let Some(damage) = &line.damage {
            self.rows(Label::Error, self.indent, &format!("damaged: {damage}"))?;
        }
        // A boundary may contain the history that applies from there on.
        let replaced =
            line.kind == Kind::Boundary && line.messages.len() > 1 && !self.is_full(line);
        if replaced {
            let told = format!("{} messages replace the history", line.messages.len());
            self.rows(Label::Dim, self.indent, &told)?;
        }
        let blocks = line.messages.iter().flat_map(|message| {
            let is_shown = !replaced || message.is_summary;
            message.parts().map(move |block| (is_shown, block))
        });
        for (nth, (_, block)) in blocks.enumerate().filter(|(_, (is_shown, _))| *is_shown) {
            self.block(line, nth, block)?;
        }
        Ok(())
    }

    /// Writes a whole summary, section by section.
    fn sections(&mut self, summary: &str) -> io::Result<()> {
        for line in prompt::unwrap(summary).lines() {
            match line.trim_start_matches('#') {
                text if text.len() < line.len() => {
                    self.rows(Label::Boundary, self.indent, text.trim())?;
                }
                text => self.rows(Label::Plain, self.indent + 2, text)?,
            }
        }
        Ok(())
    }

    /// Writes a block of an entry, given its number among them.
    fn block(&mut self, line: &Line, nth: usize, block: &Block) -> io::Result<()> {
        let (indent, full) = (self.indent, self.is_full(line));
        let every = self.manner.every || full;
        match block {
            Block::Text(text) if full && line.kind == Kind::Summary => self.sections(text),
            Block::Text(text) => {
                let room = match line.kind {
                    // A person's note for the model gets the room of a message.
                    Kind::Note if text.contains("<note-from-later>") => WORDS,
                    Kind::Note | Kind::System => NOTE,
                    Kind::Summary | Kind::Boundary => SUMMARY,
                    _ => WORDS,
                };
                let text = if every { text.into() } else { harness::unwrap(text) };
                self.text(line, &text, Label::Plain, indent, room)
            }
            Block::Thinking(thinking) => self.thinking(line, thinking),
            Block::Call { name, input, .. } => {
                let said = Caller { name, folder: self.manner.folder, whole: full }.say(input);
                self.call(line, &said)?;
                if full {
                    for told in said.unsaid(name, input) {
                        self.rows(Label::Dim, indent + 2, &told)?;
                    }
                }
                match self.answers.of(line, nth) {
                    Some((answer, block)) => {
                        // Who opens a call wants its result too.
                        let is_opened = full || self.is_full(answer);
                        let answered = self.answer(answer, block, said.answer, is_opened);
                        self.entry = Some(line.n);
                        answered
                    }
                    None => Ok(()),
                }
            }
            Block::Result { .. } => self.answer(line, block, Worth::Beginning, full),
            Block::Image(found) => self.rows(Label::Dim, indent, &image(found)),
            Block::Other { name, json } if every => {
                let text = format!("[{name}]");
                let text = if full { listed(text, json) } else { text };
                self.rows(Label::Dim, indent, &text)
            }
            Block::Other { .. } => Ok(()),
        }
    }

    /// Writes the model's thoughts, on one line unless texts are shown whole.
    fn thinking(&mut self, line: &Line, thinking: &Thinking) -> io::Result<()> {
        let (text, indent) = (thinking.text.trim(), self.indent);
        let full = self.is_full(line) || self.manner.thoughts == Detail::Full;
        if self.manner.thoughts == Detail::Titles && !full {
            return Ok(());
        }
        if thinking.is_redacted {
            let is_shown = self.manner.every || full;
            return if is_shown { self.rows(Label::Dim, indent, REDACTED) } else { Ok(()) };
        }
        match text.lines().count() {
            0 => Ok(()),
            _ if full => {
                self.rows(Label::Dim, indent, "thinking:")?;
                self.whole(text, Label::Dim, indent + 2)
            }
            1 => self.row(Label::Dim, indent, &format!("thinking: {text}")),
            n => {
                let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                let text = lines.take(THOUGHTS).collect::<Vec<_>>().join(" ");
                self.row(Label::Dim, indent, &format!("thinking, {n} lines: {text}"))
            }
        }
    }

    fn call(&mut self, line: &Line, said: &Said) -> io::Result<()> {
        let (full, every) = (self.is_full(line), self.manner.every);
        let is_command = said.answer == Worth::Ends;
        let has_id = !every && self.indent > 0 && self.headed != Some(line.n);
        let room = self.room(self.indent + if has_id { ID } else { 2 });
        let mut rows = if is_command || full {
            let (head, mark, _) = self.cut(line, &said.title, COMMAND, room);
            head.into_iter().chain(mark).collect()
        } else {
            vec![self.clipped(&said.title, self.indent + ID)]
        };
        let rest = rows.split_off(rows.len().min(1));
        let gap = |columns: usize| (Label::Plain, " ".repeat(columns));
        let mut title = vec![gap(self.indent), (Label::Tool, rows.pop().unwrap_or_default())];
        if has_id {
            title.extend([gap(2), (Label::Dim, short(line))]);
        }
        self.put(title)?;
        if self.manner.detail == Detail::Titles && !full {
            return Ok(());
        }
        let deep = self.indent + 2;
        for row in rest {
            self.put(vec![gap(deep), (Label::Tool, row)])?;
        }
        let many = if full { usize::MAX } else { CHANGE.head };
        let hidden = said.body.len().saturating_sub(many);
        // The mark takes a line too, so it must replace more than one.
        let many = if hidden > 1 { many } else { usize::MAX };
        let body = said.body.iter().take(many);
        let room = self.room(deep).filter(|_| self.manner.side_by_side);
        let halves = room.and_then(|room| diff::side_by_side(body.clone(), room, full));
        for row in halves.iter().flatten() {
            self.put([gap(deep)].into_iter().chain(row.clone()).collect())?;
        }
        for (label, text) in body.filter(|_| halves.is_none()) {
            if full {
                self.rows(*label, deep, text)?;
            } else {
                self.row(*label, deep, text)?;
            }
        }
        if hidden > 1 {
            self.mark(deep, &format!("{hidden} more lines"), &show(line))?;
        }
        Ok(())
    }

    fn answer(&mut self, line: &Line, block: &Block, worth: Worth, full: bool) -> io::Result<()> {
        let Block::Result { id, blocks, error, .. } = block else { return Ok(()) };
        self.entry = Some(line.n);
        let deep = if self.indent > 0 { self.indent + 2 } else { 0 };
        let text = block.answer_text();
        let whole = self.indent == 0 || self.manner.every;
        let (code, text) = if whole { (None, text.clone()) } else { harness::output(&text) };
        let text = text.trim_matches('\n').trim_end();
        let room = match worth {
            _ if *error => ENDS,
            Worth::Ends => ENDS,
            Worth::Beginning => BEGINNING,
            Worth::Success if text.lines().count() > 3 => NOTHING,
            Worth::Success => Room { rows: 0, ..NOTHING },
        };
        if let Some(code) = code {
            self.rows(Label::Error, deep, &format!("failed with exit code {code}"))?;
        } else if *error && self.indent > 0 {
            let failed = if text.is_empty() { "failed" } else { "failed:" };
            self.rows(Label::Error, deep, failed)?;
        }
        if self.manner.detail == Detail::Titles && !full {
            return Ok(());
        }
        if full {
            self.whole(text, Label::Dim, deep)?;
        } else if room.rows > 0 {
            self.text(line, text, Label::Dim, deep, room)?;
        }
        for block in blocks {
            if let Block::Image(found) = block {
                self.rows(Label::Dim, deep, &image(found))?;
            }
        }
        if let Some(hidden) = line.hidden(id) {
            let hidden = units::grouped(hidden);
            let cut = format!("cut: {hidden} characters hidden");
            self.mark(deep, &cut, &show(line).flag("hidden"))?;
        }
        let is_own = |earlier: &&Earlier| earlier.call.as_deref() == Some(id.as_str());
        for earlier in line.earlier.iter().filter(is_own) {
            self.rows(Label::Hint, deep, &format!("… {}", omitted(earlier)))?;
        }
        Ok(())
    }

    /// Writes a whole text.
    fn whole(&mut self, text: &str, label: Label, indent: usize) -> io::Result<()> {
        let room = self.room(indent);
        let mut rows = text.lines().flat_map(|line| wrap(&safe::text(line), room));
        rows.try_for_each(|row| self.painted(label, indent, &row))
    }

    /// Writes a text, cut unless texts are shown whole.
    fn text(
        &mut self,
        line: &Line,
        text: &str,
        label: Label,
        indent: usize,
        room: Room,
    ) -> io::Result<()> {
        let text = text.trim_matches('\n').trim_end();
        if text.is_empty() {
            return Ok(());
        }
        let is_prose = label == Label::Plain && !matches!(line.kind, Kind::User | Kind::Note);
        let prose = self.manner.prose.filter(|_| is_prose);
        let (head, mark, tail) = if let Some((rows, width)) = prose.zip(self.room(indent)) {
            let (head, mark, _) = self.shortened(line, text, room, Some(width));
            for spans in rows(&head.join("\n"), width) {
                let gap = (!spans.is_empty()).then(|| (Label::Plain, " ".repeat(indent)));
                self.put(gap.into_iter().chain(spans).collect())?;
            }
            (Vec::new(), mark, Vec::new())
        } else {
            self.cut(line, text, room, self.room(indent))
        };
        for row in head {
            self.painted(label, indent, &row)?;
        }
        if let Some(mark) = mark {
            self.rows(Label::Hint, indent, &mark)?;
        }
        for row in tail {
            self.painted(label, indent, &row)?;
        }
        Ok(())
    }

    /// Returns the rows at the beginning and the end of a text, and the mark for the rest.
    fn cut(
        &self,
        line: &Line,
        text: &str,
        room: Room,
        columns: Option<usize>,
    ) -> (Vec<String>, Option<String>, Vec<String>) {
        let (head, mark, tail) = self.shortened(line, text, room, columns);
        let wrapped = |lines: Vec<Cow<'_, str>>| -> Vec<String> {
            lines.iter().flat_map(|line| wrap(&safe::text(line), columns)).collect()
        };
        (wrapped(head), mark, wrapped(tail))
    }

    /// Returns the lines at the beginning and the end of a text, and the mark for the rest.
    fn shortened<'t>(
        &self,
        line: &Line,
        text: &'t str,
        room: Room,
        columns: Option<usize>,
    ) -> (Vec<Cow<'t, str>>, Option<String>, Vec<Cow<'t, str>>) {
        let lines: Vec<&str> = text.lines().collect();
        if self.is_full(line) {
            return (lines.into_iter().map(Cow::Borrowed).collect(), None, Vec::new());
        }
        // The mark takes a line too, so it must replace more than one.
        let most = room.head + room.tail + usize::from(room.head > 0);
        let is_cut = lines.len() > most;
        let hidden = if is_cut { lines.len() - room.head - room.tail } else { 0 };
        let split = if is_cut { room.head } else { lines.len() };
        let mut left = 0;
        let mut shown = |line: &&'t str| {
            let longest = room.rows * columns.unwrap_or(WIDTH);
            let is_cut = line.char_indices().nth(2 * longest).is_some();
            let cut = line.char_indices().nth(longest).filter(|_| is_cut);
            let Some((at, _)) = cut else { return Cow::Borrowed(*line) };
            let (shown, rest) = line.split_at(at);
            left += rest.len();
            Cow::Owned(format!("{shown}…"))
        };
        let is_empty = |line: &Cow<'_, str>| line.trim().is_empty();
        let mut head: Vec<Cow<'_, str>> = lines.iter().take(split).map(&mut shown).collect();
        let tail = lines.get(split + hidden..).unwrap_or_default();
        let tail = tail.iter().map(&mut shown).skip_while(is_empty).collect();
        while head.last().is_some_and(is_empty) {
            head.pop();
        }
        let more = match (hidden, left) {
            (0, 0) => return (head, None, tail),
            (0, bytes) => format!("{} more", units::size(bytes as u64)),
            (n, _) if room.head + room.tail == 0 => format!("{n} lines"),
            (1, _) => "1 more line".to_owned(),
            (n, _) => format!("{n} more lines"),
        };
        let command = (self.manner.spell)(&show(line));
        (head, Some(format!("… {more}: {command}")), tail)
    }

    fn mark(&mut self, indent: usize, what: &str, command: &report::Line) -> io::Result<()> {
        let command = (self.manner.spell)(command);
        self.rows(Label::Hint, indent, &format!("… {what}: {command}"))
    }

    /// Writes a text wrapped over as many rows as it needs.
    fn rows(&mut self, label: Label, indent: usize, text: &str) -> io::Result<()> {
        for row in wrap(&safe::line(text), self.room(indent)) {
            self.painted(label, indent, &row)?;
        }
        Ok(())
    }

    /// Writes a text on one row, cut to the width.
    fn row(&mut self, label: Label, indent: usize, text: &str) -> io::Result<()> {
        let row = self.clipped(text, indent);
        self.painted(label, indent, &row)
    }

    /// Returns a text on one line, cut to the remaining width.
    fn clipped(&self, text: &str, taken: usize) -> String {
        let room = self.room(taken).unwrap_or(WIDTH - taken);
        let line = wrap(&safe::text(text).replace('\n', " "), Some(usize::MAX)).concat();
        safe::clip(&line, room).into_owned()
    }

    fn painted(&mut self, label: Label, indent: usize, row: &str) -> io::Result<()> {
        if row.is_empty() {
            return self.put(Vec::new());
        }
        self.put(vec![(Label::Plain, " ".repeat(indent)), (label, row.to_owned())])
    }

    fn put(&mut self, spans: Vec<Span>) -> io::Result<()> {
        (self.each)(Row { entry: self.entry, spans })
    }

    /// Returns the terminal's remaining width.
    fn room(&self, taken: usize) -> Option<usize> {
        self.manner.columns.map(|columns| columns.saturating_sub(taken).max(LEAST))
    }
}
