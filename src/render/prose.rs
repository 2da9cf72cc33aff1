//! Markdown as a person reads it on a terminal: rows of labelled text for a width.
//!
//! ```text
//! ## Plan                    ## Plan
//! - *first* `make`           • first `make`
//! > said                     │ said
//! | a | b |                  a │ b
//! ```
//!
//! Headings keep their marks and code its backticks, so that nothing depends on colour. Lines end where the text's lines end.
//! HTML is text.
//!
//! Invariant: only marks are lost, no row is wider than the width, and all text went through [`safe`].

use pulldown_cmark::{Alignment, CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::safe;
use super::style::{Label, Span};
use super::wrap::{cut, wrap};

const OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);
/// The minimum width. A prefix that would leave less is dropped.
const LEAST: usize = 8;
const BAR: &str = " │ ";

/// Returns the rows of a text.
pub(crate) fn rows(text: &str, width: usize) -> Vec<Vec<Span>> {
    let mut prose = Prose { width: width.max(LEAST), ..Prose::default() };
    for event in Parser::new_ext(text, OPTIONS) {
        prose.see(event);
    }
    prose.end_line();
    prose.rows
}

/// Returns the blocks of code in a text.
pub(crate) fn code_blocks(text: &str) -> Vec<String> {
    let (mut blocks, mut block) = (Vec::new(), None::<String>);
    for event in Parser::new_ext(text, OPTIONS) {
        match (event, &mut block) {
            (Event::Start(Tag::CodeBlock(_)), _) => block = Some(String::new()),
            (Event::End(TagEnd::CodeBlock), _) => blocks.extend(block.take()),
            (Event::Text(text), Some(block)) => block.push_str(&text),
            _ => {}
        }
    }
    blocks
}

/// What a list item or a quote puts before its rows: before the first one, and before the others.
struct Prefix {
    first: Option<String>,
    rest: String,
}

#[derive(Default)]
struct Prose {
    width: usize,
    rows: Vec<Vec<Span>>,
    /// The line that is being read.
    line: Vec<Span>,
    prefixes: Vec<Prefix>,
    /// The label of the text, by nesting.
    labels: Vec<Label>,
    /// The number of the next item of each list; `None` for bullets.
    lists: Vec<Option<u64>>,
    links: Vec<String>,
    /// The lines of a code block.
    code: Option<String>,
    table: Option<Table>,
    /// True if an empty row separates the next one.
    is_apart: bool,
}

#[derive(Default)]
struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Vec<Span>>>,
}

impl Prose {
    fn see(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.push_str(&text),
                None => self.put(&text),
            },
            Event::Code(text) => self.put_as(Label::Code, &format!("`{text}`")),
            Event::Html(text) => {
                self.put(text.trim_end());
                self.end_line();
            }
            Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.put(&text),
            Event::SoftBreak | Event::HardBreak if self.table.is_some() => self.put(" "),
            Event::SoftBreak | Event::HardBreak => self.end_line(),
            Event::Rule => {
                self.is_apart = true;
                self.push(&[(Label::Dim, "─".repeat(LEAST))]);
            }
            Event::TaskListMarker(is_done) => self.put(if is_done { "[x] " } else { "[ ] " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(),
            Tag::Heading { level, .. } => {
                self.begin_block();
                self.put_as(Label::Dim, &format!("{} ", "#".repeat(level as usize)));
                self.labels.push(Label::Heading);
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                self.prefixes.push(Prefix { first: None, rest: "│ ".to_owned() });
            }
            Tag::CodeBlock(kind) => {
                self.begin_block();
                self.code = Some(String::new());
                if let CodeBlockKind::Fenced(language) = kind
                    && !language.trim().is_empty()
                {
                    self.put_as(Label::Dim, &format!("```{language}"));
                    self.end_line();
                }
            }
            Tag::List(number) => {
                self.end_line();
                self.is_apart |= self.lists.is_empty() && !self.rows.is_empty();
                self.lists.push(number);
            }
            Tag::Item => {
                self.end_line();
                let mark = match self.lists.last_mut() {
                    Some(Some(n)) => {
                        *n += 1;
                        format!("{}. ", *n - 1)
                    }
                    _ => "• ".to_owned(),
                };
                let rest = " ".repeat(safe::width(&mark));
                self.prefixes.push(Prefix { first: Some(mark), rest });
            }
            Tag::Table(alignments) => {
                self.begin_block();
                self.table = Some(Table { alignments, rows: Vec::new() });
            }
            Tag::TableHead | Tag::TableRow => {
                self.table.iter_mut().for_each(|table| table.rows.push(Vec::new()));
            }
            Tag::Emphasis => self.labels.push(Label::Emphasis),
            Tag::Strong => self.labels.push(Label::Heading),
            Tag::Strikethrough => self.labels.push(Label::Dim),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push(dest_url.into_string());
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_line(),
            TagEnd::Heading(_) => {
                self.end_line();
                self.labels.pop();
            }
            TagEnd::CodeBlock => {
                let code = self.code.take().unwrap_or_default();
                let room = self.room().saturating_sub(2).max(1);
                for line in safe::text(&code).lines() {
                    for row in wrap(line, Some(room)) {
                        self.push(&[(Label::Plain, "  ".to_owned()), (Label::Code, row)]);
                    }
                }
            }
            TagEnd::List(_) => drop(self.lists.pop()),
            TagEnd::Item => {
                self.end_line();
                if self.prefixes.last().is_some_and(|prefix| prefix.first.is_some()) {
                    self.push(&[]);
                }
                self.prefixes.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.end_line();
                self.prefixes.pop();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.line);
                let row = self.table.as_mut().and_then(|table| table.rows.last_mut());
                if let Some(row) = row {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                let table = self.table.take().unwrap_or_default();
                self.push_table(&table);
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => drop(self.labels.pop()),
            TagEnd::Link | TagEnd::Image => {
                let address = self.links.pop().unwrap_or_default();
                let is_shown = self.line.last().is_some_and(|(_, text)| *text == address);
                if !is_shown && !address.is_empty() {
                    self.put_as(Label::Dim, &format!(" ({address})"));
                }
            }
            _ => {}
        }
    }

    /// Begins a block, apart from the one before it.
    fn begin_block(&mut self) {
        self.end_line();
        self.is_apart |= !self.rows.is_empty();
    }

    fn put(&mut self, text: &str) {
        let label = self.labels.last().copied().unwrap_or(Label::Plain);
        self.put_as(label, text);
    }

    fn put_as(&mut self, label: Label, text: &str) {
        self.line.push((label, safe::line(text).into_owned()));
    }

    /// Returns the width that the prefixes leave.
    fn room(&self) -> usize {
        let taken: usize = self.prefixes.iter().map(|prefix| safe::width(&prefix.rest)).sum();
        if taken + LEAST > self.width { self.width } else { self.width - taken }
    }

    /// Wraps the line that was read.
    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line.iter().any(|(_, text)| !text.trim().is_empty()) {
            for row in wrapped(&line, self.room()) {
                self.push(&row);
            }
        }
    }

    /// Adds a row after its prefixes.
    fn push(&mut self, spans: &[Span]) {
        if std::mem::take(&mut self.is_apart) && !self.rows.is_empty() {
            self.rows.push(Vec::new());
        }
        let has_room = self.room() < self.width;
        let prefix = |prefix: &mut Prefix| {
            let text = prefix.first.take().unwrap_or_else(|| prefix.rest.clone());
            (Label::Dim, text)
        };
        let prefixes: Vec<Span> = self.prefixes.iter_mut().map(prefix).collect();
        let prefixes = prefixes.into_iter().filter(|_| has_room);
        self.rows.push(prefixes.chain(spans.iter().cloned()).collect());
    }

    /// Adds a table, with aligned columns if they fit.
    fn push_table(&mut self, table: &Table) {
        let columns = table.rows.iter().map(Vec::len).max().unwrap_or(0);
        let of = |cell: &[Span]| cell.iter().map(|(_, text)| safe::width(text)).sum::<usize>();
        let width = |n: usize| {
            table.rows.iter().filter_map(|row| row.get(n)).map(|cell| of(cell)).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let all = widths.iter().sum::<usize>() + columns.saturating_sub(1) * safe::width(BAR);
        let fits = all <= self.room();
        for (at, row) in table.rows.iter().enumerate() {
            let mut line = Vec::new();
            for (n, (cell, wide)) in row.iter().zip(&widths).enumerate() {
                line.extend((n > 0).then(|| (Label::Dim, BAR.to_owned())));
                let gap = if fits { wide - of(cell) } else { 0 };
                let before = match table.alignments.get(n) {
                    Some(Alignment::Right) => gap,
                    Some(Alignment::Center) => gap / 2,
                    _ => 0,
                };
                let space = |columns: usize| (Label::Plain, " ".repeat(columns));
                line.push(space(before));
                let head = |(label, text): &Span| {
                    (if at == 0 { Label::Heading } else { *label }, text.clone())
                };
                line.extend(cell.iter().map(head));
                line.push(space(gap - before));
            }
            for row in wrapped(&line, self.room()) {
                self.push(&row);
            }
            if at == 0 && fits {
                let rules: Vec<String> = widths.iter().map(|wide| "─".repeat(*wide)).collect();
                self.push(&[(Label::Dim, rules.join("─┼─"))]);
            }
        }
    }
}

/// Wraps a line of labelled text.
fn wrapped(line: &[Span], room: usize) -> Vec<Vec<Span>> {
    let text: String = line.iter().map(|(_, text)| text.as_str()).collect();
    let (mut rows, mut at) = (Vec::new(), 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let end = cut(rest, room);
        let row = rest.get(..end).unwrap_or(rest).trim_end();
        rows.push(slice(line, at, at + row.len()));
        let after = rest.get(end..).unwrap_or_default();
        at += end + after.len() - after.trim_start().len();
    }
    rows
}

/// Returns the spans of a range of bytes of a line.
fn slice(line: &[Span], from: usize, to: usize) -> Vec<Span> {
    let (mut spans, mut begin) = (Vec::new(), 0);
    for (label, text) in line {
        let range = from.clamp(begin, begin + text.len())..to.clamp(begin, begin + text.len());
        let part = text.get(range.start - begin..range.end - begin).unwrap_or_default();
        spans.extend((!part.is_empty()).then(|| (*label, part.to_owned())));
        begin += text.len();
    }
    spans
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plain(rows: &[Vec<Span>]) -> String {
        let row = |row: &Vec<Span>| row.iter().map(|(_, text)| text.as_str()).collect::<String>();
        rows.iter().map(|it| row(it).trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }

    #[track_caller]
    fn check(text: &str, width: usize, expected: &str) {
        assert_eq!(plain(&rows(text, width)), expected, "{text}");
    }

    #[test]
    fn blocks_are_rows() {
        check("one\ntwo\n\nthree", 20, "one\ntwo\n\nthree");
        check("## A *plan*\nwords", 20, "## A plan\n\nwords");
        check("Title\n===\nwords", 20, "# Title\n\nwords");
        check(
            "```rust\nfn a() {\n    b()\n}\n```\nend",
            20,
            "```rust\n  fn a() {\n      b()\n  }\n\nend",
        );
        check("> said **so**\n> twice", 20, "│ said so\n│ twice");
        check("a\n\n---\n\nb", 20, "a\n\n────────\n\nb");
        check("<b>bold</b> & <i>\n\n<div>\nx\n</div>", 20, "<b>bold</b> & <i>\n\n<div>\nx\n</div>");
        check("", 20, "");
    }

    #[test]
    fn lists_hang() {
        check("- one two three four\n- five", 12, "• one two\n  three four\n• five");
        check("9. nine\n10. ten\n    - in ten", 20, "9. nine\n10. ten\n    • in ten");
        check("words:\n- one\n\n- two", 20, "words:\n\n• one\n\n• two");
        check("- [x] done\n- [ ] open", 20, "• [x] done\n• [ ] open");
        check("1. a\n\n   ```\n   code\n   ```\n2. b", 20, "1. a\n\n     code\n\n2. b");
        check("-\n- b", 20, "•\n• b");
        check("> - quoted list that wraps", 16, "│ • quoted list\n│   that wraps");
    }

    #[test]
    fn words_keep_their_labels_and_links_their_addresses() {
        let row = |text: &str| rows(text, 60).concat();
        let spans = |all: &[(Label, &str)]| -> Vec<Span> {
            all.iter().map(|(label, text)| (*label, (*text).to_owned())).collect()
        };
        let expected = [
            (Label::Plain, "run "),
            (Label::Code, "`a_b`"),
            (Label::Plain, " "),
            (Label::Heading, "now"),
            (Label::Plain, " "),
            (Label::Emphasis, "or"),
            (Label::Plain, " never"),
        ];
        assert_eq!(row("run `a_b` **now** *or* never"), spans(&expected));
        check(
            "[docs](https://a.b/c) and <https://d.e>",
            60,
            "docs (https://a.b/c) and https://d.e",
        );
        check("![a picture](x.png)", 60, "a picture (x.png)");
        check("snake_case_name and 2 * 3 * 4", 60, "snake_case_name and 2 * 3 * 4");
        assert_eq!(plain(&rows("**bold that wraps here**", 12)), "bold that\nwraps here");
    }

    #[test]
    fn a_table_is_aligned_if_it_fits() {
        let table = "| name | 個数 |\n|---|--:|\n| one | 1 |\n| `three` | 12345 |";
        check(table, 30, "name    │  個数\n────────┼──────\none     │     1\n`three` │ 12345");
        check(table, 10, "name │ 個\n数\none │ 1\n`three` │\n12345");
    }

    #[test]
    fn nothing_hostile_is_returned() {
        check("a\x1b[31m\u{202e}b", 40, r"a\x1b[31m\u{202e}b");
        check("`a\x07`", 40, r"`a\x07`");
        check("```\n\x1b]0;x\x07\n```", 40, r"  \x1b]0;x\x07");
        check("[a](<b\x1bc>)", 40, r"a (b\x1bc)");
    }

    proptest! {
        #[test]
        fn rows_fit_and_hold_every_letter(
            text in "([a-z日\u{1f600}]{1,9}|[-*_`#>|~!<&\\[\\]()+\n\t \u{1b}\u{202e}]|\n\n|\n- |\n1. |\n\\| |```|    ){0,60}",
            width in 8_usize..50,
        ) {
            let rows = rows(&text, width);
            for row in &rows {
                let row = row.iter().map(|(_, text)| text.as_str()).collect::<String>();
                prop_assert!(safe::width(&row) <= width, "{row:?}");
                prop_assert!(!row.chars().any(safe::is_hidden), "{row:?}");
            }
            let letters = |text: &str| text.chars().filter(|c| c.is_alphabetic()).count();
            let escaped = letters(&safe::text(&text)) - letters(&text);
            prop_assert!(letters(&plain(&rows)) <= letters(&text) + escaped + text.len() * 2);
            // What a parser reads as text is there, in order.
            let mut said = String::new();
            let mut is_code = false;
            for event in Parser::new_ext(&text, OPTIONS) {
                match event {
                    Event::Start(Tag::CodeBlock(_)) => is_code = true,
                    Event::End(TagEnd::CodeBlock) => is_code = false,
                    Event::Text(it) | Event::Code(it) | Event::Html(it) | Event::InlineHtml(it) => said.push_str(&it),
                    _ => {}
                }
            }
            prop_assert!(!is_code);
            let shown = plain(&rows);
            let mut shown = shown.chars();
            for c in safe::text(&said).chars().filter(|c| c.is_alphabetic()) {
                prop_assert!(shown.any(|other| other == c), "{c} of {said:?} in {:?}", plain(&rows));
            }
        }
    }
}
