//! The values between the state of `browse` and the face that calls verbs for it: what it asks for, and the answers.

use std::collections::BTreeMap;

use undertext::model::{CheckpointNumber, EntryId, SessionName};
use undertext::report::{GraphNode, ListedSession};
use undertext::verbs::Line;

use super::reader::Draft;
use super::seek::Sought;
use crate::render::conversation::Row;
use crate::render::graph::Counts;
use crate::render::style::Span;

/// How many rows of a graph are read at a time.
pub(crate) const BLOCK: usize = 128;

/// A session in the list.
#[derive(Clone, Debug)]
pub(crate) struct SessionRow {
    pub(crate) listed: ListedSession,
    /// The shortest word that commands accept for it.
    pub(crate) word: String,
    pub(crate) title: String,
    pub(crate) age: String,
    pub(crate) folder: String,
    /// Works in the current folder or below it.
    pub(crate) is_here: bool,
    /// How full the window was and is, such as `▁▃▆ 21k of 200k (10%)`.
    pub(crate) context: String,
}

/// The list of sessions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sessions {
    pub(crate) rows: Vec<SessionRow>,
    /// The current folder.
    pub(crate) here: String,
    /// False while more sessions are being read.
    pub(crate) is_whole: bool,
    /// Where agents' sessions were looked for.
    pub(crate) looked_in: String,
}

/// The head of a session's graph. Its rows are asked for in blocks.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    pub(crate) session: SessionName,
    pub(crate) word: String,
    pub(crate) title: String,
    /// Its model, when it was used, and how many files were edited.
    pub(crate) facts: String,
    /// The width that its rows are laid out for.
    pub(crate) columns: usize,
    /// True if each reverted branch is one row.
    pub(crate) is_folded: bool,
    /// The names of its branches, and its newest turn.
    pub(crate) branches: Vec<String>,
    pub(crate) newest: Option<CheckpointNumber>,
    /// How many rows it has so far.
    pub(crate) rows: usize,
    pub(crate) counts: Counts,
    /// The row of the session's current place.
    pub(crate) head: Option<usize>,
    /// False while only the newest part is known.
    pub(crate) is_whole: bool,
    /// What is wrong with the records that could not be read.
    pub(crate) unread: Vec<String>,
    /// The operation that an undo would undo.
    pub(crate) undo: Option<String>,
    /// The agent that has it open.
    pub(crate) open: Option<String>,
    /// The agent's file, if it was deleted.
    pub(crate) deleted: Option<String>,
    /// The change that waits for the next resume.
    pub(crate) waiting: Option<String>,
}

/// A row of a graph, and the edges below it.
#[derive(Clone, Debug)]
pub(crate) struct TurnRow {
    pub(crate) node: GraphNode,
    /// True if the row shows the turn's number.
    pub(crate) has_number: bool,
    pub(crate) lines: Vec<Vec<Span>>,
}

impl TurnRow {
    /// Returns the place that commands accept for it.
    pub(crate) fn place(&self) -> String {
        match self.node.checkpoint.filter(|_| self.has_number) {
            Some(n) => format!("@{n}"),
            None => format!("{:.8}", self.node.id),
        }
    }

    /// Returns the text of its lines.
    pub(crate) fn text(&self) -> String {
        self.lines.iter().map(|line| text_of(line)).collect()
    }
}

/// The end of a reverted branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BranchEnd {
    /// Its last entry, as commands accept it.
    pub(crate) last: String,
    pub(crate) name: Option<String>,
}

/// The conversation of a turn.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    pub(crate) session: SessionName,
    pub(crate) place: String,
    pub(crate) lines: Vec<Line>,
    /// Remarks below entries.
    pub(crate) beneath: BTreeMap<EntryId, Vec<String>>,
    /// The session's folder, which paths are shown relative to.
    pub(crate) folder: Option<String>,
}

/// The entries that only one of two branches has: the reverted one, and the current one.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    pub(crate) session: SessionName,
    pub(crate) sides: [Vec<Line>; 2],
    /// The session's folder, which paths are shown relative to.
    pub(crate) folder: Option<String>,
}

/// A place that a search found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) session: SessionName,
    /// The entry, or the turn if its id cannot be read.
    pub(crate) entry: Option<EntryId>,
    /// The turn, such as `@14`.
    pub(crate) turn: Option<String>,
    /// The row of the list: when, which session, and where the text is.
    pub(crate) head: Vec<Span>,
    /// The text, for the preview.
    pub(crate) text: Vec<String>,
}

/// What the state asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Draw the graph of a session in this many columns, with its reverted branches folded if this is true.
    Graph(SessionName, usize, bool),
    /// Read the block of rows that begins at `first`, a multiple of [`BLOCK`].
    Rows {
        session: SessionName,
        columns: usize,
        first: usize,
    },
    /// Find a row, from the row `from` on.
    Seek {
        session: SessionName,
        from: usize,
        sought: Sought,
    },
    /// Read a place of a session.
    Read(SessionName, String),
    /// Read an entry as it was before it was cut.
    Whole(SessionName, EntryId),
    /// Lay out conversations.
    LayOut(Vec<Draft>),
    /// Try a command line, changing nothing, and report what it would do.
    Plan(Vec<String>),
    /// Run a command line and show its report.
    Run(Vec<String>),
    /// Run a command line that only reads, and show its output.
    Show(Vec<String>),
    /// Compare a place with the current one.
    Compare(SessionName, String),
    /// Search all sessions for words.
    Search(String),
    Copy(String),
    /// Leave the screen, run a command line, and come back.
    Outside(Vec<String>),
    /// Run a command line in a new window of the terminal.
    Window(Vec<String>),
    /// Leave the screen and edit a text. The edited text comes back to [`Browse::on_edited`].
    ///
    /// [`Browse::on_edited`]: super::state::Browse::on_edited
    Edit(String),
    /// The same for a typed command line, on this session unless it names one.
    Command(String, Option<SessionName>),
    Suspend,
    Quit,
}

impl Effect {
    /// Returns true if a newer request of this kind replaces it.
    pub(crate) fn is_replaced(&self) -> bool {
        use Effect::{Graph, LayOut, Read, Search, Seek};
        matches!(self, Graph(..) | Read(..) | LayOut(_) | Search(_) | Seek { .. })
    }
}

/// An answer to what the state asked for.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Sessions(Sessions),
    Graph(Graph),
    /// A block of a graph's rows; fewer than [`BLOCK`] only at the end.
    Rows {
        session: SessionName,
        columns: usize,
        first: usize,
        turns: Vec<TurnRow>,
    },
    /// The row that was sought, and the end of the branch if that was sought.
    Sought {
        session: SessionName,
        sought: Sought,
        row: Option<usize>,
        end: Option<BranchEnd>,
    },
    Conversation(Conversation),
    /// The rows of a conversation.
    LaidOut(Draft, Vec<Row>),
    /// An entry without its cuts.
    Whole(SessionName, Box<Line>),
    /// What a command line would do, and the agent that has the session open.
    Plan {
        args: Vec<String>,
        report: Report,
        open: Option<String>,
    },
    /// What a command line did.
    Done {
        args: Vec<String>,
        report: Report,
    },
    /// What a command line shows.
    Shown {
        args: Vec<String>,
        report: Report,
    },
    Compared(Comparison),
    Found {
        words: String,
        found: Vec<Found>,
        total: String,
    },
    /// An error of a read.
    Failed(String),
}

/// What a command line printed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    pub(crate) is_done: bool,
    /// True if it was done, or would be, without changing anything.
    pub(crate) is_idle: bool,
    /// True if it was refused because the agent would resume something else.
    pub(crate) is_out_of_reach: bool,
    pub(crate) lines: Vec<Vec<Span>>,
}

impl Report {
    /// Returns its text on one line.
    pub(super) fn text(&self) -> String {
        self.lines.iter().map(|line| text_of(line)).collect::<Vec<_>>().join(" ")
    }
}

/// Returns the text of a line.
pub(super) fn text_of(line: &[Span]) -> String {
    line.iter().map(|(_, text)| text.as_str()).collect()
}
