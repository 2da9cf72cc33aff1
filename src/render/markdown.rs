//! Markdown: a conversation as a document.
//!
//! ```text
//! # Watering the beds
//! ## @0 user, 2026-08-20 09:00:07
//! words
//! ## assistant, 2026-08-20 09:00:14
//! words, calls in code, results in fences
//! ```
//!
//! Text keeps its Markdown. Fenced code is fenced again at the margin, with a fence longer than any inside, so that it is sure to
//! end. Elsewhere, tags and images are shown as text, and headings are moved below the document's own.
//!
//! Invariant: no text of a conversation can look like a heading of the document, end a fence, or insert HTML.

use std::io::{self, Write};

use undertext::model::{Block, Kind};
use undertext::verbs::Line;
use undertext::wire::Earlier;

use super::answers::{Answers, is_own};
use super::call::{Caller, Worth};
use super::conversation::{image, omitted};
use super::style::Label;
use super::time::Zone;
use super::{harness, safe, units};

/// The front of a document, and how times and paths are shown in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Front<'a> {
    pub(crate) title: &'a str,
    pub(crate) session: &'a str,
    pub(crate) agent: &'a str,
    pub(crate) folder: Option<&'a str>,
    pub(crate) zone: Zone,
}

/// The state of writing a document.
pub(crate) struct Document<'a> {
    front: Front<'a>,
    /// Number of omitted records for the agent's own use.
    own: u64,
    /// The speaker of the last entry.
    speaks: Option<Kind>,
}

impl<'a> Document<'a> {
    /// Writes the beginning of a document.
    pub(crate) fn begin(out: &mut dyn Write, front: Front<'a>) -> io::Result<Self> {
        writeln!(out, "# {}\n", escaped(&safe::line(front.title)))?;
        writeln!(out, "Session {} of {}", span(front.session), span(front.agent))?;
        if let Some(folder) = front.folder {
            writeln!(out, "in {}", span(folder))?;
        }
        Ok(Self { front, own: 0, speaks: None })
    }

    /// Writes the heading of a reverted branch, whose entries follow.
    pub(crate) fn branch(&mut self, out: &mut dyn Write, words: &str) -> io::Result<()> {
        self.speaks = None;
        writeln!(out, "\n---\n\n*{}*", escaped(&safe::line(words)))
    }

    /// Writes further entries of the conversation.
    pub(crate) fn add(
        &mut self,
        out: &mut dyn Write,
        lines: &[Line],
        answers: &Answers<'_>,
    ) -> io::Result<()> {
        let front = self.front;
        for line in lines.iter().filter(|line| !answers.lines.contains(line.n)) {
            if is_own(line) || line.kind == Kind::System {
                self.own += 1;
                continue;
            }
            // Results without a shown call belong to the model's turn.
            let kind = if line.kind == Kind::Result { Kind::Assistant } else { line.kind };
            if self.speaks != Some(kind) || kind != Kind::Assistant {
                let number = line.checkpoint.map(|n| format!("@{n} ")).unwrap_or_default();
                let time = line.time.map(|time| format!(", {}", front.zone.show(time)));
                writeln!(out, "\n## {number}{}{}", kind.as_str(), time.unwrap_or_default())?;
                self.speaks = Some(kind);
            }
            if let Some(damage) = &line.damage {
                writeln!(out, "\n**damaged**: {}", escaped(&safe::line(damage)))?;
            }
            // A boundary may repeat the whole history.
            let is_again = line.kind == Kind::Boundary && line.messages.len() > 1;
            let blocks = line.messages.iter().flat_map(|message| {
                let is_shown = !is_again || message.is_summary;
                message.parts().map(move |block| (is_shown, block))
            });
            for (nth, (_, block)) in blocks.enumerate().filter(|(_, (is_shown, _))| *is_shown) {
                part(out, front, line, block, answers.of(line, nth))?;
            }
        }
        Ok(())
    }

    /// Writes the end of the document.
    pub(crate) fn end(self, out: &mut dyn Write) -> io::Result<()> {
        match self.own {
            0 => Ok(()),
            1 => writeln!(out, "\n*1 record for the agent's own use is left out.*"),
            n => writeln!(out, "\n*{n} records for the agent's own use are left out.*"),
        }
    }
}

fn part(
    out: &mut dyn Write,
    front: Front<'_>,
    line: &Line,
    block: &Block,
    answer: Option<(&Line, &Block)>,
) -> io::Result<()> {
    match block {
        Block::Text(text) if text.trim().is_empty() => Ok(()),
        Block::Text(text) => writeln!(out, "\n{}", prose(&harness::unwrap(text))),
        Block::Thinking(thinking) if thinking.text.trim().is_empty() => Ok(()),
        Block::Thinking(thinking) => {
            let thought = prose(&format!("*thinking*\n\n{}", thinking.text));
            let quoted = thought.lines().map(|line| format!("> {line}").trim_end().to_owned());
            writeln!(out, "\n{}", quoted.collect::<Vec<_>>().join("\n"))
        }
        Block::Call { name, input, .. } => {
            let said = Caller { name, folder: front.folder, whole: true }.say(input);
            if said.answer == Worth::Ends {
                writeln!(out, "\n{}", fenced("console", &said.title))?;
            } else {
                writeln!(out, "\n{}", span(&said.title))?;
            }
            let is_change =
                |(label, _): &(Label, String)| matches!(label, Label::Added | Label::Removed);
            let language = if said.body.iter().any(is_change) { "diff" } else { "text" };
            let body: Vec<&str> = said.body.iter().map(|(_, line)| line.as_str()).collect();
            if !body.is_empty() {
                writeln!(out, "\n{}", fenced(language, &body.join("\n")))?;
            }
            match answer {
                Some((line, answer)) => result(out, line, answer),
                None => Ok(()),
            }
        }
        Block::Result { .. } => result(out, line, block),
        Block::Image(found) => writeln!(out, "\n{}", span(&image(found))),
        Block::Other { name, .. } => writeln!(out, "\n{}", span(&format!("[{name}]"))),
    }
}

fn result(out: &mut dyn Write, line: &Line, block: &Block) -> io::Result<()> {
    let Block::Result { id, error, .. } = block else { return Ok(()) };
    let text = block.answer_text();
    let (code, output) = harness::output(&text);
    match code {
        Some(code) => writeln!(out, "\n**failed with exit code {}**", escaped(&code))?,
        None if *error => writeln!(out, "\n**failed**")?,
        None => {}
    }
    let output = output.trim_matches('\n').trim_end();
    if !output.is_empty() {
        writeln!(out, "\n{}", fenced("text", output))?;
    }
    if let Some(hidden) = line.hidden(id) {
        writeln!(out, "\n*cut: {} characters hidden*", units::grouped(hidden))?;
    }
    let is_of_it = |earlier: &&Earlier| earlier.call.as_deref() == Some(id.as_str());
    for earlier in line.earlier.iter().filter(is_of_it) {
        writeln!(out, "\n{}", span(&omitted(earlier)))?;
    }
    Ok(())
}

/// Makes text safe, and keeps its Markdown.
fn prose(text: &str) -> String {
    let text = safe::text(text);
    let mut shown: Vec<String> = Vec::new();
    let mut lines = text.trim_matches('\n').trim_end().lines();
    // After an unclosed run of backticks, nothing is certain to be code.
    let mut is_sure = true;
    while let Some(line) = lines.next() {
        if let Some((fence, language)) = opening(line) {
            let is_end = |line: &&str| {
                let line = line.trim();
                line.len() >= fence.len() && line.chars().all(|c| fence.starts_with(c))
            };
            let code: Vec<&str> = lines.by_ref().take_while(|line| !is_end(line)).collect();
            shown.push(fenced(language, &code.join("\n")));
            is_sure = true;
            continue;
        }
        let words = line.trim_start();
        if words.is_empty() {
            is_sure = true;
        }
        let is_rule = !words.is_empty() && words.chars().all(|c| "-= \t".contains(c));
        if is_rule && shown.last().is_some_and(|before| !before.is_empty()) {
            // Directly under a line, it would turn that line into a heading.
            shown.push(String::new());
        }
        let hashes = words.len() - words.trim_start_matches('#').len();
        let mut row = guarded(line, &mut is_sure);
        if (1..=6).contains(&hashes) {
            row = format!(
                "{}{}",
                "#".repeat(6_usize.min(hashes + 2)),
                row.trim_start().trim_start_matches('#')
            );
        }
        shown.push(row);
    }
    shown.join("\n")
}

/// Returns the fence that a line opens, and the language of its code.
fn opening(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let mark = line.chars().next().filter(|c| "`~".contains(*c))?;
    let rest = line.trim_start_matches(mark);
    let (fence, rest) = line.split_at(line.len() - rest.len());
    (fence.len() >= 3 && !rest.contains('`')).then(|| (fence, rest.trim()))
}

/// Escapes tags and images in a line, except in code between backticks.
fn guarded(line: &str, is_sure: &mut bool) -> String {
    let mut row = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('`') {
        let (before, from) = rest.split_at(at);
        row.push_str(&escaped(before));
        let run = from.len() - from.trim_start_matches('`').len();
        let (ticks, inner) = from.split_at(run);
        let end = closing(inner, run).filter(|_| *is_sure && !before.ends_with('\\'));
        row.push_str(ticks);
        rest = inner;
        if let Some(end) = end {
            let (code, after) = inner.split_at(end + run);
            // In a table, `|` separates cells before code is recognised.
            let parts = code.contains('|');
            row.push_str(&if parts { escaped(code) } else { code.into() });
            rest = after;
        } else {
            *is_sure = false;
        }
    }
    row.push_str(&escaped(rest));
    row
}

/// Returns the position of the next run of exactly `run` backticks.
fn closing(text: &str, run: usize) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text.get(from..)?.find('`') {
        let at = from + at;
        let ticks = text.get(at..)?;
        let found = ticks.len() - ticks.trim_start_matches('`').len();
        if found == run {
            return Some(at);
        }
        from = at + found;
    }
    None
}

/// Escapes tags and images.
fn escaped(text: &str) -> String {
    text.replace('<', "&lt;").replace("![", "&#33;[")
}

/// Formats a text as inline code.
fn span(text: &str) -> String {
    let text = safe::line(text);
    let ticks = "`".repeat(longest(&text, '`') + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

/// Formats a text as a code block.
fn fenced(language: &str, text: &str) -> String {
    let fence = "`".repeat(longest(text, '`').max(2) + 1);
    format!("{fence}{}\n{}\n{fence}", safe::line(language), safe::text(text))
}

/// Returns the length of the longest run of a character.
fn longest(text: &str, c: char) -> usize {
    text.split(|other| other != c).map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_any_inside_and_surely_ends() {
        assert_eq!(fenced("rs", "a\n````\nb"), "`````rs\na\n````\nb\n`````");
        assert_eq!(span("a `` b`"), "``` a `` b` ```");
        assert_eq!(prose("one\n  ```sh\n  ls <a>\n  ```\ntwo"), "one\n```sh\n  ls <a>\n```\ntwo");
        assert_eq!(prose("~~~\n```\n<b>"), "````\n```\n<b>\n````");
    }

    #[test]
    fn no_tag_picture_or_heading_comes_of_a_text() {
        let check = |text: &str, shown: &str| assert_eq!(prose(text), shown);
        check("a <b>word</b> `x<y>` z", "a &lt;b>word&lt;/b> `x<y>` z");
        check("![p](http://a)", "&#33;[p](http://a)");
        check("\\![p](http://a)", "\\&#33;[p](http://a)");
        check("| `x | <b> ` |", "| `x | &lt;b> ` |");
        check("# one\n###### six", "### one\n###### six");
        check("user\n---\nmore", "user\n\n---\nmore");
        check("user\n===\t\nmore", "user\n\n===\t\nmore");
        // A run that pairs with one of the line before leaves a tag bare.
        check("a ` b\nc ` <b> ` d", "a ` b\nc ` &lt;b> ` d");
        check("a ` b\n\n` <b> `", "a ` b\n\n` <b> `");
        check("\\` <b> `", "\\` &lt;b> `");
        check("\x1b[2J", "\\x1b[2J");
    }
}
