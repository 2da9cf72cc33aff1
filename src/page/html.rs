//! HTML: the templates of pages, their style and script, and the policy that allows nothing else.

use std::fmt::Write as _;
use std::sync::LazyLock;

use askama::Template;
use base64::Engine as _;
use sha2::{Digest as _, Sha256};

use super::chosen::Conversation;
#[cfg(feature = "serve")]
use super::ink::Ink;
use super::ink::{Html, unmarked};
use super::view::{Agent, Call, PageView, Part, Picture, Turn};
use crate::render::{chart, safe};

static STYLE: LazyLock<String> = LazyLock::new(|| bare(include_str!("page.css")));
static SCRIPT: LazyLock<String> = LazyLock::new(|| bare(include_str!("page.js")));
/// What a served page adds to the script.
#[cfg(feature = "serve")]
static SERVED: LazyLock<String> =
    LazyLock::new(|| format!("{}{}", *SCRIPT, bare(include_str!("serve.js"))));

/// Removes what only a reader of the source needs: indentation and comments.
fn bare(source: &str) -> String {
    let lines = source.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.filter(|line| !line.starts_with("//")).flat_map(|line| [line, "\n"]).collect()
}

/// What a page is for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    /// Whether a server is there to be asked.
    pub(crate) is_served: bool,
    /// Other pages of the session, by their names.
    pub(crate) links: Vec<(String, String)>,
    /// Where the list of sessions is.
    pub(crate) home: Option<String>,
    /// Where changes of the session are announced.
    pub(crate) live: Option<String>,
    /// What the foot says.
    pub(crate) foot: Vec<String>,
}

/// What every page has.
struct Head {
    title: String,
    policy: String,
    icon: String,
    style: &'static str,
    script: &'static str,
}

#[derive(Template)]
#[template(path = "conversation.html")]
struct ConversationPage<'a> {
    head: Head,
    view: &'a PageView,
    frame: &'a Frame,
    turns: Vec<Html>,
    lost: u64,
}

#[derive(Template)]
#[template(path = "turn.html")]
struct TurnPage<'a> {
    turn: &'a Turn,
    is_reverted: bool,
    /// The turn of the path that replaced the reverted ones.
    next: Option<&'a Turn>,
}

#[derive(Template)]
#[template(path = "parts.html")]
struct PartsPage<'a> {
    parts: &'a [Part],
}

#[derive(Template)]
#[template(path = "call.html")]
struct CallPage<'a> {
    call: &'a Call,
    is_change: bool,
}

#[derive(Template)]
#[template(path = "picture.html")]
struct PicturePage<'a> {
    one: &'a Picture,
}

/// A filter of turns.
struct Filter {
    kind: &'static str,
    sign: char,
    count: usize,
    words: &'static str,
}

impl PageView {
    fn filters(&self) -> Vec<Filter> {
        let count = |of: &dyn Fn(&Turn) -> bool| self.turns.iter().filter(|turn| of(turn)).count();
        let all = [
            ("bad", '✗', count(&|turn| turn.failed > 0), "with failures"),
            ("edit", '✎', count(&|turn| turn.edits > 0), "with edits"),
            ("back", '↶', count(&|turn| !turn.forks.is_empty()), "with reverts"),
            ("boundary", '◆', count(&|turn| turn.boundary.is_some()), "compacted"),
        ];
        let all = all.map(|(kind, sign, count, words)| Filter { kind, sign, count, words });
        all.into_iter().filter(|filter| filter.count > 0).collect()
    }

    fn has_boundaries(&self) -> bool {
        self.turns.iter().any(|turn| turn.boundary.is_some())
    }
}

impl Turn {
    /// Returns the kinds of filters that show it.
    fn marks(&self) -> String {
        let marks =
            [(self.failed > 0, "bad"), (self.edits > 0, "edit"), (!self.forks.is_empty(), "back")];
        let marks: Vec<&str> = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect();
        marks.join(" ")
    }

    /// Returns what the model did in it.
    fn acts(&self) -> String {
        let acts = [(self.edits, '✎'), (self.commands, '$'), (self.failed, '✗')];
        let acts = acts.iter().filter(|(n, _)| *n > 0).map(|(n, sign)| format!("{n}{sign}"));
        acts.collect::<Vec<_>>().join(" ")
    }

    fn html(&self) -> Html {
        Html::of(&PartsPage { parts: &self.parts })
    }

    /// Returns it as a turn of a reverted branch.
    fn page(&self) -> Html {
        Html::of(&TurnPage { turn: self, is_reverted: true, next: None })
    }
}

impl Call {
    fn html(&self) -> Html {
        Html::of(&CallPage { call: self, is_change: false })
    }

    fn change(&self) -> Html {
        Html::of(&CallPage { call: self, is_change: true })
    }

    fn is_failed(&self) -> bool {
        self.result.as_ref().is_some_and(|result| result.failed.is_some())
    }
}

impl Agent {
    fn html(&self) -> Html {
        Html::of(&PartsPage { parts: &self.parts })
    }
}

impl Picture {
    fn html(&self) -> Html {
        Html::of(&PicturePage { one: self })
    }
}

/// A session in an index.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) link: String,
    pub(crate) title: Html,
    pub(crate) facts: Vec<Html>,
    pub(crate) tally: String,
}

impl Listed {
    /// Returns the row with a link to a page.
    pub(crate) fn with_link(&self, link: &str) -> Self {
        Self { link: link.to_owned(), ..self.clone() }
    }
}

#[derive(Template)]
#[template(path = "index.html")]
struct IndexPage<'a> {
    head: Head,
    sessions: &'a [Listed],
    frame: &'a Frame,
}

/// Returns the policy of pages: their own style and script, and pictures within them. A served page may also ask its server.
fn policy(script: &str, is_served: bool) -> String {
    let hash = |text: &str| base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text));
    let from = if is_served { "'self'" } else { "'none'" };
    // A served page may have charts, which have a style of their own.
    let charts =
        if is_served { format!(" 'sha256-{}'", hash(chart::STYLE)) } else { String::new() };
    format!(
        "default-src 'none'; style-src 'sha256-{}'{charts}; script-src 'sha256-{}'; img-src data:; connect-src {from}; base-uri 'none'; form-action {from}",
        hash(&STYLE),
        hash(script),
    )
}

fn head(title: &str, view: Option<&PageView>, frame: &Frame) -> Head {
    let script: &'static str = match frame.is_served {
        #[cfg(feature = "serve")]
        true => &SERVED,
        _ => &SCRIPT,
    };
    Head {
        title: unmarked(&safe::line(title)),
        policy: policy(script, frame.is_served),
        icon: icon(view),
        style: &STYLE,
        script,
    }
}

/// Returns the page of a conversation.
pub(crate) fn conversation(said: &Conversation, view: &PageView, frame: &Frame) -> String {
    let turns = view.turns.iter().enumerate().map(|(nth, turn)| {
        let rest = view.turns.get(nth + 1..).unwrap_or_default();
        let next = rest.iter().find(|turn| turn.boundary.is_none());
        Html::of(&TurnPage { turn, is_reverted: false, next })
    });
    let lost = view.turns.iter().filter_map(|turn| turn.boundary.as_ref());
    let page = ConversationPage {
        head: head(&said.facts.title, Some(view), frame),
        view,
        frame,
        turns: turns.collect(),
        lost: lost.map(|boundary| boundary.lost).sum(),
    };
    whole(&page)
}

/// Returns a page with links to sessions.
pub(crate) fn index(sessions: &[Listed], frame: &Frame) -> String {
    let head = head("Sessions", None, frame);
    whole(&IndexPage { head, sessions, frame })
}

/// Renders a page, which ends with a line break.
fn whole(page: &impl Template) -> String {
    let mut text = page.render().unwrap_or_default();
    text.push('\n');
    text
}

/// Sessions or hits on the first page of a server.
#[cfg(feature = "serve")]
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// The words that were searched.
    pub(crate) query: String,
    /// The filters: a link, a label, how many sessions it has, and whether it is chosen.
    pub(crate) filters: Vec<(String, String, u64, bool)>,
    /// The groups of rows, each with its heading.
    pub(crate) groups: Vec<(String, Vec<Row>)>,
    pub(crate) note: String,
}

/// A session or a hit.
#[cfg(feature = "serve")]
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) link: String,
    pub(crate) title: Html,
    pub(crate) facts: Vec<Html>,
    pub(crate) text: Vec<Html>,
}

#[cfg(feature = "serve")]
#[derive(Template)]
#[template(path = "list.html")]
struct ListPage<'a> {
    head: Head,
    listing: &'a Listing,
    frame: &'a Frame,
}

#[cfg(feature = "serve")]
#[derive(Template)]
#[template(path = "report.html")]
struct ReportPage<'a> {
    head: Head,
    title: Html,
    command: Html,
    text: Html,
    frame: &'a Frame,
}

/// Returns the first page of a server.
#[cfg(feature = "serve")]
pub(crate) fn list(listing: &Listing, frame: &Frame) -> String {
    whole(&ListPage { head: head("undertext", None, frame), listing, frame })
}

/// Returns a page with what a command prints.
#[cfg(feature = "serve")]
pub(crate) fn report(title: &str, command: &str, text: &str, frame: &Frame) -> String {
    let mut ink = Ink::default();
    let (name, command, text) = (ink.line(title), ink.line(command), ink.output(text));
    whole(&ReportPage { head: head(title, None, frame), title: name, command, text, frame })
}

#[cfg(feature = "serve")]
#[derive(Template)]
#[template(path = "charts.html")]
struct ChartsPage<'a> {
    head: Head,
    /// An SVG, in which all texts are escaped.
    picture: Option<&'a str>,
    note: &'a str,
    /// The sessions that agents deleted, by month.
    deleted: &'a [(String, u64)],
    frame: &'a Frame,
}

/// Returns a page with charts of all sessions.
#[cfg(feature = "serve")]
pub(crate) fn charts(
    picture: Option<&str>,
    note: &str,
    deleted: &[(String, u64)],
    frame: &Frame,
) -> String {
    let head = head("Tokens and cost", None, frame);
    whole(&ChartsPage { head, picture, note, deleted, frame })
}

/// Returns the policy of a served page.
#[cfg(feature = "serve")]
pub(crate) fn served_policy() -> String {
    format!("{}; frame-ancestors 'none'", policy(&SERVED, true))
}

/// Returns a row of an index.
pub(crate) fn listed(link: &str, view: &PageView) -> Listed {
    Listed {
        link: link.to_owned(),
        title: view.title.clone(),
        facts: view.facts.clone(),
        tally: view.tally.join(" · "),
    }
}

/// Returns the icon of a page: the strip of its session as a small picture.
fn icon(view: Option<&PageView>) -> String {
    let bars = view.map(|view| view.strip.bars.as_slice()).unwrap_or_default();
    let many = bars.len().clamp(1, 8);
    let heights = (0..many).map(|n| {
        let range = n * bars.len() / many..(n + 1) * bars.len() / many;
        let most = bars.get(range).unwrap_or_default().iter().map(|bar| bar.height).max();
        most.unwrap_or(20) * 16 / 40
    });
    let wide = 16 / many.max(1);
    let mut path = String::new();
    for (n, high) in heights.enumerate() {
        let (x, wide, high) = (n * wide, wide.max(2) - 1, high.max(1));
        let _ = write!(path, "M{x} 16v-{high}h{wide}v{high}z");
    }
    format!(
        "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath fill='%231f9d6b' d='{path}'/%3E%3C/svg%3E"
    )
}
