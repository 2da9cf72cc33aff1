//! Windows: a bar that shows what fills a model's window, and a table of its parts.
//!
//! ```text
//! ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒█▓▓▓▓▓░░░░░░░······································
//! ```
//!
//! Invariant: no two parts share a character, so the bar is complete without colour.
//! Invariant: no tokens are missing. The parts add up to the size of the request and, with the free part, to the window; so do
//! the percentages.

use std::io::{self, Write};

use undertext::context::Item;
use undertext::context::measure::Word;
use undertext::model::Role;
use undertext::report::Sent;

use super::style::Styles;
use super::table::{Cell, Label, Left, Right, Table};
use super::units::{grouped, percent, tenths};

/// Maximum width of the bar.
const WIDEST: usize = 100;
/// The bar's width if the line's width is unknown.
const USUAL: usize = 80;

/// A part of a window.
struct Part {
    mark: char,
    label: Label,
    name: &'static str,
    messages: u64,
    tokens: u64,
}

/// Writes the bar and the table of its parts.
pub(crate) fn write(
    out: &mut dyn Write,
    sent: &Sent<'_>,
    styles: Styles,
    width: Option<usize>,
) -> io::Result<()> {
    let window = sent.found.window.tokens;
    let parts = parts(sent);
    let all = parts.iter().map(|part| part.tokens).sum::<u64>().max(1);
    let columns = width.unwrap_or(USUAL).min(WIDEST) as u64;
    let mut table = Table::new([Left, Left, Right, Right, Right])
        .yielding(&[1])
        .headed(["", "", "messages", "tokens", "window"]);
    let mut passed = 0_u64;
    for Part { mark, label, name, messages, tokens } in parts.iter().filter(|part| part.tokens > 0)
    {
        let ends = [passed, passed + tokens];
        let [from, to] = ends.map(|end| u128::from(end) * u128::from(columns) / u128::from(all));
        let stretch: String = (from..to).map(|_| *mark).collect();
        write!(out, "{}", styles.paint(*label, &stretch))?;
        let [from, to] = ends.map(|end| tenths(end, window));
        let messages = if *messages > 0 { grouped(*messages) } else { String::new() };
        table.row([
            Cell::new(*label, &mark.to_string()),
            Cell::new(Label::Plain, name),
            Cell::new(Label::Dim, &messages),
            Cell::new(Label::Plain, &grouped(*tokens)),
            Cell::new(Label::Dim, &percent(to - from)),
        ]);
        passed += tokens;
    }
    writeln!(out)?;
    writeln!(out)?;
    table.write(out, styles, width)
}

/// Returns the parts of a window in the order of a request. The last one is the free part.
fn parts(sent: &Sent<'_>) -> Vec<Part> {
    let part = |mark, label, name| Part { mark, label, name, messages: 0, tokens: 0 };
    let mut parts = vec![
        Part { tokens: sent.unrecorded, ..part('▒', Label::Dim, unrecorded(sent)) },
        part('≡', Label::Heading, "system"),
        part('◆', Label::Boundary, "summary"),
        part('█', Label::User, "user"),
        part('▓', Label::Assistant, "assistant"),
        part('░', Label::Tool, "tool"),
    ];
    for (item, tokens) in sent.shares() {
        let name = kind(item);
        if let Some(part) = parts.iter_mut().skip(1).find(|part| part.name == name) {
            part.messages += 1;
            part.tokens += tokens;
        }
    }
    let free = sent.found.window.tokens.saturating_sub(sent.measured.tokens);
    parts.push(Part { tokens: free, ..part('·', Label::Dim, "free") });
    parts
}

/// Returns the kind of a message.
fn kind(item: &Item) -> &'static str {
    match item.role() {
        _ if item.is_summary() => "summary",
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

/// Names the tokens that belong to no message.
pub(crate) fn unrecorded(sent: &Sent<'_>) -> &'static str {
    match sent.measured.word {
        Word::Reported | Word::Scaled => "system prompt, tools, unrecorded",
        Word::Estimate | Word::Exact(_) if sent.found.beside > 0 => "system prompt, tools",
        Word::Estimate | Word::Exact(_) => "request format",
    }
}
