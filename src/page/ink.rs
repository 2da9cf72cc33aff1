//! Ink: turns texts of a conversation into HTML fragments: plain text, Markdown, output with ANSI colours.
//!
//! Every text is first made visible ([`safe::text`]), then escaped. Of Markdown, raw HTML is shown as text, a picture as its
//! words, and only links to the web and e-mail addresses are links. Masked places become `<mark>`.
//!
//! Invariant: no function returns markup that a text contained.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd, html};
use undertext::verbs::Masked;

use crate::render::safe;

/// Maximum size of a text on a page, in bytes.
const LONGEST: usize = 1 << 20;
/// Maximum size of a text that is read as Markdown, in bytes.
const LONGEST_PROSE: usize = 1 << 18;
/// The schemes of links.
const SCHEMES: [&str; 3] = ["https://", "http://", "mailto:"];

/// A fragment of HTML.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Html(String);

impl fmt::Display for Html {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl askama::filters::HtmlSafe for Html {}

impl Html {
    /// Returns the output of a template.
    pub(super) fn of(template: &impl askama::Template) -> Self {
        Self(template.render().unwrap_or_default())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What was masked, by the words that replace it: how often, and in which turns.
pub(crate) type Found = BTreeMap<String, (u64, BTreeSet<String>)>;

/// Writes fragments, and notes what is masked in them.
#[derive(Debug, Default)]
pub(crate) struct Ink {
    /// The turn that is being written.
    pub(crate) place: String,
    pub(crate) found: Found,
}

impl Ink {
    /// Returns a text on one line.
    pub(crate) fn line(&mut self, text: &str) -> Html {
        let text = safe::line(text);
        Html(self.marked(&escaped(&text)))
    }

    /// Returns a text with its lines.
    pub(crate) fn text(&mut self, text: &str) -> Html {
        let text = safe::text(shortened(text, LONGEST));
        Html(self.marked(&escaped(&text)))
    }

    /// Returns the output of a program, with its colours.
    pub(crate) fn output(&mut self, text: &str) -> Html {
        let mut page = String::with_capacity(text.len());
        let mut style = Style::default();
        for (nth, part) in shortened(text, LONGEST).split("\x1b[").enumerate() {
            let mut part = part;
            if nth > 0 {
                let end = part.find(|c: char| !c.is_ascii_digit() && c != ';');
                match end.and_then(|end| part.split_at_checked(end)) {
                    Some((codes, rest)) if rest.starts_with('m') => {
                        style.apply(codes);
                        part = &rest[1..];
                    }
                    // Other sequences erase or move: nothing of them is to be seen.
                    Some((_, rest)) if rest.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                        part = &rest[1..];
                    }
                    _ => page.push_str("\\x1b["),
                }
            }
            if part.is_empty() {
                continue;
            }
            let text = escaped(&safe::text(part));
            match style.classes() {
                Some(classes) => {
                    let _ = write!(page, "<span class=\"{classes}\">{text}</span>");
                }
                None => page.push_str(&text),
            }
        }
        Html(self.marked(&page))
    }

    /// Returns a text written in Markdown.
    pub(crate) fn prose(&mut self, text: &str) -> Html {
        if text.len() > LONGEST_PROSE {
            let Html(text) = self.text(text);
            return Html(format!("<pre>{text}</pre>"));
        }
        let text = safe::text(text);
        let mut page = String::with_capacity(text.len() * 2);
        let parser = Parser::new_ext(&text, Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS);
        html::push_html(&mut page, Plain { parser, links: Vec::new(), pictures: 0 });
        Html(self.marked(&page))
    }

    /// Turns the marks around masked places into elements, and notes them.
    fn marked(&mut self, page: &str) -> String {
        let [before, after] = Masked::MARKS;
        if !page.contains([before, after]) {
            return page.to_owned();
        }
        let mut room = String::with_capacity(page.len() + 64);
        let mut rest = page;
        while let Some((text, masked)) = rest.split_once(before) {
            room.push_str(text);
            let Some((masked, next)) = masked.split_once(after) else {
                rest = masked;
                continue;
            };
            let kind = masked.strip_prefix("[masked: ").and_then(|kind| kind.strip_suffix(']'));
            let kind = match kind.unwrap_or(masked) {
                "~" => "home folder",
                "user" => "user name",
                "host" => "host name",
                kind => kind,
            };
            let (count, places) = self.found.entry(kind.to_owned()).or_default();
            *count += 1;
            places.insert(self.place.clone());
            let _ = write!(room, "<mark title=\"masked: {kind}\">{masked}</mark>");
            rest = next;
        }
        room.push_str(rest);
        room.retain(|c| c != after);
        room
    }
}

/// Cuts a text that is too long for a page.
fn shortened(text: &str, longest: usize) -> &str {
    let end = (0..=longest.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.get(..end.unwrap_or(0)).unwrap_or_default()
}

/// Removes the marks around masked places from a text, which then has only the words that replace them.
pub(crate) fn unmarked(text: &str) -> String {
    text.replace(Masked::MARKS, "")
}

fn escaped(text: &str) -> String {
    let mut page = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => page.push_str("&amp;"),
            '<' => page.push_str("&lt;"),
            '>' => page.push_str("&gt;"),
            '"' => page.push_str("&quot;"),
            '\'' => page.push_str("&#39;"),
            c => page.push(c),
        }
    }
    page
}

/// The events of Markdown without those that could do anything.
struct Plain<'a> {
    parser: Parser<'a>,
    /// For each open link, whether it is one on the page.
    links: Vec<bool>,
    /// The number of open pictures.
    pictures: usize,
}

impl<'a> Iterator for Plain<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        Some(match self.parser.next()? {
            Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
            Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
            Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
            Event::Start(Tag::Heading { level, .. }) => {
                // The page and its turns have the first two levels.
                let level = (level as usize + 2).min(6).try_into().unwrap_or(level);
                Event::Start(Tag::Heading {
                    level,
                    id: None,
                    classes: Vec::new(),
                    attrs: Vec::new(),
                })
            }
            Event::End(TagEnd::Heading(level)) => {
                Event::End(TagEnd::Heading((level as usize + 2).min(6).try_into().unwrap_or(level)))
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Indented))
            }
            Event::Start(Tag::Link { dest_url, .. }) => {
                let to = unmarked(&dest_url);
                let is_link = SCHEMES.iter().any(|scheme| to.starts_with(scheme));
                let is_masked = to.len() != dest_url.len();
                self.links.push(is_link && !is_masked);
                let to = escaped(&to);
                match self.links.last() {
                    Some(true) => Event::InlineHtml(
                        format!("<a href=\"{to}\" rel=\"noopener noreferrer nofollow\">").into(),
                    ),
                    _ => Event::Text(CowStr::Borrowed("")),
                }
            }
            Event::End(TagEnd::Link) => match self.links.pop() {
                Some(true) => Event::InlineHtml("</a>".into()),
                _ => Event::Text(CowStr::Borrowed("")),
            },
            Event::Start(Tag::Image { .. }) => {
                self.pictures += 1;
                Event::Text("[picture: ".into())
            }
            Event::End(TagEnd::Image) if self.pictures > 0 => {
                self.pictures -= 1;
                Event::Text("]".into())
            }
            event => event,
        })
    }
}

/// The colours of a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Style {
    is_bold: bool,
    is_dim: bool,
    colour: Option<u8>,
}

impl Style {
    fn apply(&mut self, codes: &str) {
        let mut codes = codes.split(';').map(|code| code.parse::<u8>().unwrap_or(0));
        while let Some(code) = codes.next() {
            match code {
                0 => *self = Self::default(),
                1 => self.is_bold = true,
                2 => self.is_dim = true,
                22 => (self.is_bold, self.is_dim) = (false, false),
                30..=37 => self.colour = Some(code - 30),
                90..=97 => self.colour = Some(code - 90),
                39 => self.colour = None,
                // Colours of a palette have arguments of their own.
                38 | 48 => {
                    let skipped = if codes.next() == Some(2) { 3 } else { 1 };
                    let named = codes.by_ref().take(skipped).last();
                    if code == 38 && skipped == 1 {
                        self.colour = named.filter(|n| *n < 16).map(|n| n % 8);
                    }
                }
                _ => {}
            }
        }
    }

    fn classes(self) -> Option<String> {
        let mut classes = Vec::new();
        classes.extend(self.is_bold.then(|| "b".to_owned()));
        classes.extend(self.is_dim.then(|| "d".to_owned()));
        // Black and white are the page's own colours.
        classes.extend(self.colour.filter(|n| (1..7).contains(n)).map(|n| format!("c{n}")));
        (!classes.is_empty()).then(|| classes.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_becomes_markup_and_html_in_it_text() {
        let check = |text: &str, page: &str| assert_eq!(Ink::default().prose(text).0.trim(), page);
        check("a **b** `c<d>`", "<p>a <strong>b</strong> <code>c&lt;d&gt;</code></p>");
        check("# one", "<h3>one</h3>");
        check("###### six", "<h6>six</h6>");
        check("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>");
        check("a <img src=x onerror=y> b", "<p>a &lt;img src=x onerror=y&gt; b</p>");
        check("[x](javascript:alert(1))", "<p>x</p>");
        check("[x](data:text/html,y)", "<p>x</p>");
        check("[x](\"\tjavascript:y)", "<p>[x](\"\tjavascript:y)</p>");
        check("<javascript:alert(1)>", "<p>javascript:alert(1)</p>");
        check("![p](http://a/b.png)", "<p>[picture: p]</p>");
        check(
            "[x](https://a/?b&c\"d)",
            "<p><a href=\"https://a/?b&amp;c&quot;d\" rel=\"noopener noreferrer nofollow\">x</a></p>",
        );
        check("```rs\" onclick=\"x\na < b\n```", "<pre><code>a &lt; b\n</code></pre>");
        check("a\u{202e}b", "<p>a\\u{202e}b</p>");
    }

    #[test]
    fn colours_of_a_terminal_are_classes_and_other_sequences_vanish() {
        let check = |text: &str, page: &str| assert_eq!(Ink::default().output(text).0, page);
        check("\x1b[1;31mred\x1b[0m <b>", "<span class=\"b c1\">red</span> &lt;b&gt;");
        check("\x1b[38;5;2mgreen\x1b[39m\x1b[2K", "<span class=\"c2\">green</span>");
        check("\x1b[38;2;1;2;3mx", "x");
        check("\x1b]0;title\x07", "\\x1b]0;title\\x07");
        check("\x1b[", "\\x1b[");
        check("\x1b[999;m\x1b[;;mx", "x");
    }

    #[test]
    fn masked_places_are_marked_and_counted() {
        let mut ink = Ink { place: "@3".to_owned(), ..Ink::default() };
        let page = ink.prose("a \u{f8f0}~\u{f8f1}/b and \u{f8f0}[masked: x]\u{f8f1}").0;
        let mark = |kind: &str, text: &str| format!("<mark title=\"masked: {kind}\">{text}</mark>");
        let [home, key] = [mark("home folder", "~"), mark("x", "[masked: x]")];
        assert_eq!(page.trim(), format!("<p>a {home}/b and {key}</p>"));
        assert_eq!(ink.found["x"], (1, ["@3".to_owned()].into()));
        let link = ink.prose("[x](https://a/\u{f8f0}[masked: x]\u{f8f1})").0;
        assert!(!link.contains('\u{f8f0}') && !link.contains("href"), "{link}");
        assert_eq!(ink.text("a\u{f8f1}b\u{f8f0}c").0, "abc");
    }
}
