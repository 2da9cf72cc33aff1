//! Where a session is, and how lists show it.

use std::{fmt, path::PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::{
    hint::Line,
    later::Waiting,
    shape::{Report, object, report},
};
use crate::{
    context::{measure::Word, plan::Nearness, window::Window},
    model::{Card, CheckpointNumber, EntryId, Glance, Position, SessionName, Timestamp},
    session::{Damaged, Elsewhere, Kin, RecentCall, Session, Spot},
    store::{SessionKey, StoreError},
};

/// Where a session is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its card, as lists show it.
    pub card: Card,
    /// The current branch.
    pub branch: String,
    /// Its position.
    pub position: Option<Position>,
    /// The id of its head.
    pub head: Option<EntryId>,
    /// Its position relative to the checkpoints.
    pub spot: Option<Spot>,
    /// The number of branches.
    pub branches: u64,
    /// The number of entries.
    pub entries: u64,
    /// The number of operations.
    pub operations: u64,
    /// The number of stored sidecars.
    pub sidecars: u64,
    /// The newest checkpoint that was not undone.
    pub checkpoint: Option<CheckpointNumber>,
    /// The session that it was created from.
    pub kin: Option<Kin>,
    /// Where its history begins, if that beginning cannot be read.
    pub elsewhere: Option<Elsewhere>,
    /// The live file.
    pub live: Option<PathBuf>,
    /// The agent's file, if it was deleted.
    pub gone: Option<PathBuf>,
    /// How the live file compares with the newest state in the store.
    pub live_state: LiveState,
    /// The change that waits for the session to be resumed.
    pub waiting: Option<Waiting>,
    /// The processes that have the session open.
    pub open: Vec<OpenIn>,
}

/// A process that has a session open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenIn {
    /// The agent, or the program if the agent is unknown.
    pub agent: String,
    /// The process id.
    pub pid: u32,
    /// Its terminal, if it has one.
    pub terminal: Option<String>,
}

impl fmt::Display for OpenIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terminal =
            self.terminal.iter().map(|at| format!(", {}", at.trim_start_matches("/dev/")));
        write!(f, "{} (pid {}{})", self.agent, self.pid, terminal.collect::<String>())
    }
}

/// How a live file compares with the newest state in its store, in order of severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LiveState {
    /// It is as the store wrote it.
    Same,
    /// The store has a change that still has to be written to the file.
    Pending,
    /// Another program appended to it; the new records are shown.
    Grown,
    /// It is missing; the next change writes it again.
    Missing,
    /// Another program wrote a different state, which is shown.
    Rewritten,
    /// Another program overwrote the store's own file.
    Replaced,
    /// It has changed, but the user's settings exclude it.
    LeftOut,
    /// It cannot be read.
    Unread,
}

impl LiveState {
    /// Returns its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Pending => "pending",
            Self::Grown => "grown",
            Self::Missing => "missing",
            Self::Rewritten => "rewritten",
            Self::Replaced => "replaced",
            Self::LeftOut => "left-out",
            Self::Unread => "unread",
        }
    }

    /// Returns a description.
    pub fn words(self) -> &'static str {
        match self {
            Self::Same => "agrees with the store",
            Self::Pending => {
                "does not have the store's newest change yet; the next change writes it"
            }
            Self::Grown => {
                "the agent has written more since the last import; the new records are shown"
            }
            Self::Missing => "is missing; the next change writes it again",
            Self::Rewritten => "was rewritten since the last import; its new content is shown",
            Self::Replaced => {
                "was rewritten by another program; the next change keeps that version as a branch"
            }
            Self::LeftOut => {
                "has changed since the store wrote it; your settings exclude it, so the store's version is shown"
            }
            Self::Unread => "cannot be read, so the store's version is shown",
        }
    }
}

/// How full a model's context window is.
#[derive(Clone, Debug)]
pub struct Fullness {
    /// The model, if known.
    pub model: Option<String>,
    /// The model's context window.
    pub window: Window,
    /// The token count of the context.
    pub tokens: u64,
    /// Where that number comes from.
    pub word: Word,
    /// Whether this is a lower bound: counting stopped because the window is already full.
    pub is_least: bool,
    /// The damaged entries, which are not counted.
    pub damaged: Vec<Damaged>,
}

/// The status of a session, and how close its context is to a compaction, if it has a window.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a> {
    /// The session.
    pub session: &'a Session,
    /// Its status.
    pub status: &'a Status,
    /// Its context.
    pub full: Option<&'a (Nearness, Fullness)>,
    /// The number of its reverted ends, if known.
    pub reverted: Option<u64>,
}

report!(Standing<'_>, "status", |it| {
    session: it.session.name.id,
    format: it.session.name.format,
    title: it.status.card.title,
    folder: it.status.card.folder,
    branch: it.status.branch,
    branches: it.status.branches,
    reverted: it.reverted,
    head: it.status.head,
    before: it.status.spot.and_then(|spot| match spot {
        Spot::Before(n) => Some(n),
        Spot::At(_) | Spot::In(_) => None,
    }),
    checkpoint: it.status.checkpoint,
    turns: it.status.card.turns,
    entries: it.status.entries,
    operations: it.status.operations,
    sidecars: it.status.sidecars,
    started: it.status.card.started,
    active: it.status.card.active,
    hidden: it.status.card.hidden,
    kin: it.status.kin,
    elsewhere: it.status.elsewhere,
    live: it.status.live.as_ref().map(|live| live.to_string_lossy()),
    gone: it.status.gone.as_ref().map(|gone| gone.to_string_lossy()),
    behind: it.status.live_state != LiveState::Same,
    live_state: it.status.live.as_ref().map(|_| it.status.live_state.as_str()),
    waiting: it.status.waiting,
    open: it.status.open,
    context: it.full.map(|(near, full)| Filling { near, full }),
}, hints: |it| {
    let restore = |_: &PathBuf| Line::about("restore").to("to put the file back where the agent reads it");
    it.status.gone.as_ref().map(restore)
});

object!(Elsewhere, |it| {
    session: it.session(),
    file: it.file,
    why: it.gap.as_str(),
    words: it.to_string(),
});

/// How full the context window is.
struct Filling<'a> {
    near: &'a Nearness,
    full: &'a Fullness,
}

object!(Filling<'_>, |it| {
    tokens: it.near.tokens,
    window: it.near.window,
    compact_at: it.near.at,
    due: it.near.is_due,
    at_least: it.full.is_least,
    counted: it.full.word.as_str(),
    source: it.full.window.source.as_str(),
    model: it.full.model,
});

/// What a session knows about its environment, in five layers.
#[derive(Clone, Debug, Serialize)]
pub struct Surroundings {
    /// The system, as recorded when the session started.
    pub system: Option<Value>,
    /// The session itself, as recorded then.
    pub session: Option<Value>,
    /// The conversation.
    pub conversation: Conversation,
    /// The last tool calls, in order.
    pub tools: Vec<RecentCall>,
    /// The workspace, as recorded when the session started.
    pub workspace: Option<Value>,
}

/// The size of a conversation.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Conversation {
    /// The number of user turns.
    pub turns: u64,
    /// The number of entries.
    pub entries: u64,
    /// The time of the last message, if known.
    pub active: Option<Timestamp>,
}

object!(RecentCall, |it| { tool: it.name, id: it.id, succeeded: it.succeeded });

/// A session with its layers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Layered<'a> {
    /// The agent's id of the session.
    pub session: &'a str,
    /// The layers.
    pub layers: &'a Surroundings,
}

report!(Layered<'_>, "layers");

/// A session in a list, with the session that it was created from.
#[derive(Clone, Debug, Serialize)]
pub struct ListedSession {
    /// Its name.
    #[serde(flatten)]
    pub name: SessionName,
    /// The card to show.
    #[serde(flatten)]
    pub card: Card,
    /// The session that it was created from.
    pub kin: Option<Kin>,
    /// The number of branches.
    pub branches: u64,
    /// The number of its reverted ends.
    pub reverted: u64,
    /// The number of compactions.
    pub compactions: u64,
    /// The token count of the model's next request, if known.
    pub tokens: Option<u64>,
    /// The model's context window.
    pub window: Option<u64>,
    /// Samples of the token counts of its requests; a 0 marks a compaction.
    #[serde(skip)]
    pub context: Vec<u64>,
    /// The number of its sub-agents' sessions.
    pub sub_agents: u64,
    /// Whether the agent's file was deleted.
    pub gone: bool,
    /// Whether an agent has it open.
    pub open: bool,
    /// Its depth below the listed sessions that it was created from.
    #[serde(skip)]
    pub depth: usize,
}

report!(ListedSession, "session");

/// A session with an unreadable part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadSession {
    /// Its name.
    pub name: SessionName,
    /// The unreadable part.
    pub part: UnreadPart,
    /// Why.
    pub problem: String,
}

/// The unreadable part of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreadPart {
    /// Its data in the store, which is damaged.
    Stored,
    /// The records in its live file that the store does not have.
    LiveFile,
}

impl UnreadSession {
    /// Creates the value for a session whose data in the store is damaged.
    pub(crate) fn of(name: SessionName, error: &StoreError) -> Self {
        Self { name, part: UnreadPart::Stored, problem: error.to_string() }
    }

    /// Appends those sessions that are not in the list yet.
    pub(crate) fn add(sessions: Vec<Self>, to: &mut Vec<Self>) {
        for session in sessions {
            if !to.iter().any(|known| known.name == session.name) {
                to.push(session);
            }
        }
    }
}

object!(UnreadSession, |it| {
    session: it.name.id,
    agent: it.name.format,
    problem: it.problem,
});

impl Report for UnreadSession {
    fn kind(&self) -> &'static str {
        match self.part {
            UnreadPart::Stored => "damaged",
            UnreadPart::LiveFile => "unread",
        }
    }
}

/// The sessions of a list.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The sessions that can be shown.
    pub sessions: Vec<ListedSession>,
    /// The sessions that cannot be read, whether or not they belong in the list.
    pub damaged: Vec<UnreadSession>,
    /// How many more sessions there are.
    pub more: usize,
    /// The glances that were computed for the list, to be cached.
    pub glances: Vec<(SessionKey, Glance)>,
}
