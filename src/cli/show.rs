//! `show`: shows an entry, whole or by lines, or its hidden part.

use std::ffi::OsString;
use std::io::Write as _;
use std::str::FromStr;

use anyhow::anyhow;
use regex::Regex;
use undertext::model::{Position, Text};
use undertext::report::{self, Excerpt, TextLine, Uncovered};
use undertext::verbs::{self, Hidden, Line, Passage, SessionError, Target};

use super::shown::{self, Shown};
use super::words::Noun;
use super::{About, CommandError, Context, Exit, Opened, complete};
use crate::render::conversation;
use crate::render::table::{Cell, Label, Left, Table};
use crate::render::wrap::wrap;
use crate::render::{diff, safe};

/// Show a turn in full, or part of a long result
#[derive(Debug, clap::Args)]
#[command(
    alias = "cat",
    after_help = "\
Examples:
  undertext show @7                     turn 7 with all its results
  undertext show @7.0                   its prompt only
  undertext show @12..@15 7c2a          turns 12 to 15 of session 7c2a
  undertext show 3f2a91c0 --lines 40:60
  undertext show 3f2a91c0 --hidden --grep 'error|warning'

A truncated result shows its beginning; --hidden prints the rest.

Exit codes: 1 if nothing is hidden, no line matches, or an entry is damaged"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Args {
    /// A turn @7, a step @7.2, a range @12..@15 or an entry
    #[arg(value_name = "PLACE", add = complete::places())]
    entry: OsString,

    #[command(flatten)]
    about: About,

    /// Print the original bytes, control sequences included
    #[arg(long, conflicts_with_all = ["lines", "grep", "diff", "json"])]
    raw: bool,

    /// Print only these lines: 40:60, 40:, :60 or 40
    #[arg(long, value_name = "A:B")]
    lines: Option<Lines>,

    /// Print only lines that match this regular expression
    #[arg(long, value_name = "PATTERN", conflicts_with_all = ["lines", "diff"], value_parser = pattern)]
    grep: Option<Regex>,

    /// Print the text that truncation hid
    #[arg(long, conflicts_with_all = ["diff", "original"])]
    hidden: bool,

    /// Print the hidden text as a diff
    #[arg(long, conflicts_with_all = ["original", "lines"])]
    diff: bool,

    /// Show the entry as it was before it was replaced
    #[arg(long)]
    original: bool,
}

/// Parses a regular expression. An error is reported in one line.
fn pattern(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| {
        let told = error.to_string();
        let last = told.lines().last().unwrap_or_default();
        format!("invalid regular expression: {}", last.strip_prefix("error: ").unwrap_or(last))
    })
}

/// An inclusive range of lines. A missing end means the text's own.
#[derive(Clone, Copy, Debug)]
struct Lines {
    from: Option<usize>,
    to: Option<usize>,
}

impl FromStr for Lines {
    type Err = &'static str;

    fn from_str(typed: &str) -> Result<Self, Self::Err> {
        let end = |end: &str| match end {
            "" => Ok(None),
            end => end.parse().map(Some).map_err(|_| "lines must be numbers, such as 40:60"),
        };
        let (from, to) = typed.split_once(':').unwrap_or((typed, typed));
        match (end(from)?, end(to)?) {
            (Some(0), _) | (_, Some(0)) => Err("lines are counted from 1"),
            (Some(from), Some(to)) if from > to => Err("the first line is after the last"),
            (None, None) if typed.is_empty() => Err("lines must be numbers, such as 40:60"),
            (from, to) => Ok(Self { from, to }),
        }
    }
}

impl Lines {
    /// Returns these lines of a text, the number of the first one, and the text's number of lines.
    fn of(self, text: &str) -> Result<(&str, usize, usize), CommandError> {
        let mut starts: Vec<usize> = vec![0];
        starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
        starts.retain(|&start| start < text.len());
        let total = starts.len();
        let (from, to) = (self.from.unwrap_or(1), self.to.unwrap_or(total));
        let start = starts.get(from - 1).filter(|_| to <= total);
        let start = *start.ok_or_else(|| {
            let lines = if total == 1 { "line" } else { "lines" };
            let error = anyhow!("the text has only {total} {lines}");
            CommandError::user(error)
                .hinted(report::Line::new("show").flag("help").to("see the help"))
        })?;
        let end = starts.get(to).copied().unwrap_or(text.len());
        Ok((text.get(start..end).unwrap_or_default(), from, total))
    }
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let words = context.words(Noun::Place, 1..=1, &[Some(&args.entry)], &args.about)?;
    let opened = context.look(words.session)?;
    let session = &opened.at()?;
    let wanted = words.nouns.first().copied().unwrap_or_default();
    let passage = verbs::find_passage(session, wanted)?;
    if args.hidden || args.diff {
        let mut hidden = Vec::new();
        for target in targets(&passage) {
            hidden.push(verbs::hidden(session, &target)?);
        }
        return show_hidden(context, args, &hidden);
    }
    if !passage.is_entry {
        return show_passage(context, args, &opened, &passage);
    }
    let mut target = passage.target;
    if args.original {
        target = verbs::original(session, &target)?;
    }
    let shown = verbs::show(session, &target)?;
    let (line, bytes) = shown.ok_or(SessionError::Start)?;
    if let Some(damaged) = line.damaged() {
        if !context.json && !args.raw {
            head(context, &line, target.branch.as_deref())?;
        }
        return context.tell_damaged(&[damaged]);
    }
    if args.raw {
        context.output.write_all(&bytes)?;
        return Ok(Exit::Yes);
    }
    let text = match line.messages.as_slice() {
        [] => String::from_utf8_lossy(&bytes).into_owned(),
        messages => conversation::whole(messages),
    };
    if let Some(pattern) = &args.grep {
        return grep(context, pattern, &text);
    }
    let (part, from, total) = match args.lines {
        Some(lines) => lines.of(&text)?,
        None => (text.as_str(), 1, text.lines().count()),
    };
    let excerpt = Excerpt { line: report::Entry::from(&line), text: part, from, lines: total };
    if context.answer(&excerpt)? {
        return Ok(Exit::Yes);
    }
    context.output.page()?;
    if args.lines.is_none() {
        head(context, &line, target.branch.as_deref())?;
        writeln!(context.output)?;
    }
    if args.lines.is_none() && !line.messages.is_empty() {
        let folder = session.archive.store().card(session.key)?.folder;
        let naming = context.output.naming().clone();
        let spell = |line: &report::Line| naming.spell(line);
        let manner = shown::manner(context, folder.as_deref(), &spell);
        conversation::body(&mut context.output, &line, manner)?;
        return Ok(Exit::Yes);
    }
    // Unreadable records are shown with their non-text bytes escaped.
    let safe = if args.lines.is_none() { safe::bytes(&bytes) } else { safe::text(part) };
    write_text(context, &safe)?;
    Ok(Exit::Yes)
}

/// Returns the entries of a passage, each as a target.
fn targets(passage: &Passage) -> impl Iterator<Item = Target> {
    let at = passage.target.position;
    let target = move |entry| Target {
        position: Position { head: Some(entry), ..at },
        checkpoint: None,
        branch: None,
    };
    let one = passage.is_entry.then(|| passage.target.clone());
    let many = passage.entries.iter().copied().filter(|_| !passage.is_entry).map(target);
    one.into_iter().chain(many)
}

/// Shows a turn, a step or several turns.
fn show_passage(
    context: &mut Context,
    args: &Args,
    opened: &Opened,
    passage: &Passage,
) -> Result<Exit, CommandError> {
    if args.lines.is_some() || args.original {
        let option = if args.original { "--original" } else { "--lines" };
        let error = anyhow!("{option} needs a single entry, but this is a whole turn or more");
        let list = report::Line::about("log").flag("json").to("see the ids of the entries");
        return Err(CommandError::user(error).hinted(list));
    }
    if args.raw {
        for (n, target) in targets(passage).enumerate() {
            let shown = verbs::show(&opened.at()?, &target)?;
            context.output.write_all(if n > 0 { b"\n" } else { b"" })?;
            context.output.write_all(&shown.map(|(_, bytes)| bytes).unwrap_or_default())?;
        }
        return Ok(Exit::Yes);
    }
    let shown = Shown::whole();
    let log = shown.read(context, opened, None, Some(passage))?;
    if let Some(pattern) = &args.grep {
        let messages: Vec<_> = log.lines.into_iter().flat_map(|line| line.messages).collect();
        return grep(context, pattern, &conversation::whole(&messages));
    }
    shown.show(context, opened, log)
}

/// Prints the hidden part of an entry.
fn show_hidden(
    context: &mut Context,
    args: &Args,
    hidden: &[Hidden],
) -> Result<Exit, CommandError> {
    if hidden.iter().all(|hidden| hidden.texts.is_empty()) {
        context.output.note("Nothing in this entry is hidden");
        return Ok(Exit::No);
    }
    if args.diff && !context.json {
        context.output.page()?;
        let styles = context.output.styles();
        for hidden in hidden {
            diff::hidden(&mut context.output, hidden, styles)?;
        }
        return Ok(Exit::Yes);
    }
    let mut text = String::new();
    for part in hidden.iter().flat_map(|hidden| &hidden.texts) {
        // Several texts are joined by line breaks; a single one is unchanged.
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(part.hidden());
    }
    if let Some(pattern) = &args.grep {
        return grep(context, pattern, &text);
    }
    if context.json {
        for (hidden, part) in
            hidden.iter().flat_map(|hidden| hidden.texts.iter().map(move |part| (hidden, part)))
        {
            let text = match args.lines {
                Some(lines) => lines.of(part.hidden())?.0,
                None => part.hidden(),
            };
            context.answer(&Uncovered::new(hidden, part, text))?;
        }
        return Ok(Exit::Yes);
    }
    let asked = match args.lines {
        Some(lines) => lines.of(&text)?.0,
        None => text.as_str(),
    };
    if args.raw || !context.env.terminal.stdout {
        context.output.write_all(asked.as_bytes())?;
        return Ok(Exit::Yes);
    }
    context.output.page()?;
    write_text(context, &safe::text(asked))?;
    Ok(Exit::Yes)
}

/// Prints an escaped text, wrapped to the terminal.
pub(super) fn write_text(context: &mut Context, text: &str) -> Result<(), CommandError> {
    let columns = context.output.width();
    for row in
        text.strip_suffix('\n').unwrap_or(text).split('\n').flat_map(|line| wrap(line, columns))
    {
        writeln!(context.output, "{row}")?;
    }
    Ok(())
}

/// Prints the matching lines of a text with their numbers.
fn grep(context: &mut Context, pattern: &Regex, text: &str) -> Result<Exit, CommandError> {
    let mut found = Exit::No;
    context.output.page()?;
    for (n, line) in (1..).zip(text.lines()).filter(|(_, line)| pattern.is_match(line)) {
        found = Exit::Yes;
        if context.answer(&TextLine { line: n, text: line })? {
            continue;
        }
        let number = context.output.styles().paint(Label::Id, &format!("{n}:"));
        writeln!(context.output, "{number}{}", safe::line(line))?;
    }
    if found == Exit::No {
        context.output.note("Nothing was found");
    }
    Ok(found)
}

/// Prints an entry's metadata.
fn head(context: &mut Context, line: &Line, branch: Option<&str>) -> Result<(), CommandError> {
    let mut table = Table::new([Left, Left]);
    let mut row = |name: &str, label, text: &str| {
        table.row([Cell::new(Label::Dim, name), Cell::new(label, text)]);
    };
    if let Some(id) = line.id {
        row("entry", Label::Id, &id.to_string());
    }
    if let Some(uuid) = &line.uuid {
        row("uuid", Label::Plain, uuid);
    }
    row("kind", conversation::label(line.kind), line.kind.as_str());
    if let Some(message) = line.messages.first() {
        row("role", Label::Plain, message.role.as_str());
        if let Some(model) = &message.model {
            row("model", Label::Plain, model);
        }
    }
    if let Some(time) = line.time {
        row("time", Label::Time, &context.env.zone.show(time));
    }
    if let Some(branch) = branch {
        row("branch", Label::Branch, branch);
    }
    if let Some(n) = line.checkpoint {
        let own = line.own.as_deref().map(|own| format!(" ({own})")).unwrap_or_default();
        row("checkpoint", Label::Checkpoint, &format!("@{n}{own} before it"));
    }
    for mark in &line.marks {
        let note = mark.note.as_ref().map(Text::to_text).unwrap_or_default();
        row("checkpoint", Label::Checkpoint, &format!("@{} after it {note}", mark.n));
    }
    context.show(&table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_one_with_both_ends() {
        let text = "one\ntwo\nthree\n";
        let check = |typed: &str, expected: &str| {
            let lines: Lines = typed.parse().unwrap();
            assert_eq!(lines.of(text).unwrap().0, expected, "{typed}");
        };
        check("1", "one\n");
        check("2:3", "two\nthree\n");
        check("2:", "two\nthree\n");
        check(":2", "one\ntwo\n");
        check(":", text);
    }

    #[test]
    fn lines_that_are_not_there_are_an_error() {
        for typed in ["4", "2:4", "9:"] {
            assert!(typed.parse::<Lines>().unwrap().of("one\ntwo\nthree\n").is_err(), "{typed}");
        }
        assert!(Lines { from: None, to: None }.of("").is_err());
        for typed in ["", "0", "0:1", "3:2", "a", "1:b", "-1", "1:2:3"] {
            assert!(typed.parse::<Lines>().is_err(), "{typed}");
        }
    }
}
