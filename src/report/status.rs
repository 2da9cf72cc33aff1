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
    /// Where it is.
    pub position: Option<Position>,
    /// The id of its head.
    pub head: Option<EntryId>,
    /// Where that is among the checkpoints.
    pub spot: Option<Spot>,
    /// How many branches there are.
    pub branches: u64,
    /// How many entries there are.
    pub entries: u64,
    /// How many operations there are.
    pub operations: u64,
    /// How many files of its agent are kept that lie next to its own.
    pub sidecars: u64,
    /// The newest checkpoint that is not undone.
    pub checkpoint: Option<CheckpointNumber>,
    /// The session that it was made of.
    pub kin: Option<Kin>,
    /// Where its history begins, if it cannot be read there.
    pub elsewhere: Option<Elsewhere>,
    /// The live file.
    pub live: Option<PathBuf>,
    /// The agent's file, if somebody deleted it.
    pub gone: Option<PathBuf>,
    /// How the live file compares with the newest state that the store holds.
    pub live_state: LiveState,
    /// The change that waits for the session to be resumed.
    pub waiting: Option<Waiting>,
    /// The processes that have the session open.
    pub open: Vec<OpenIn>,
}

/// A process that has a session open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenIn {
    /// The agent, or else the program.
    pub agent: String,
    /// The process.
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

/// How a live file compares with the newest state that its store holds, the worse the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LiveState {
    /// It is as the store left it.
    Same,
    /// A change is in the store, and still to be brought to the file.
    Pending,
    /// Another program went on with it, which is shown.
    Grown,
    /// It is not there, and the next change writes it again.
    Missing,
    /// Another program wrote another state, which is shown.
    Rewritten,
    /// Another program wrote something else over the store's own file.
    Replaced,
    /// The user's settings leave out what it holds beyond the store.
    LeftOut,
    /// It cannot be read.
    Unread,
}

impl LiveState {
    /// Returns its name, for programs.
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

    /// Returns it in words.
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

/// How full a model's window is.
#[derive(Clone, Debug)]
pub struct Fullness {
    /// For which model, if one is known.
    pub model: Option<String>,
    /// The model's window.
    pub window: Window,
    /// How many tokens the context has.
    pub tokens: u64,
    /// By whose word.
    pub word: Word,
    /// Whether there may be more, which were not counted because the window is full without them.
    pub is_least: bool,
    /// The damaged entries, which are not counted.
    pub damaged: Vec<Damaged>,
}

/// Where a session is, and how near its context is to its compaction, if it has a window.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a> {
    /// The session.
    pub session: &'a Session,
    /// Where it is.
    pub status: &'a Status,
    /// Its context.
    pub full: Option<&'a (Nearness, Fullness)>,
    /// How many of its ends were reverted, if that is known.
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

/// How full the window is.
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

/// What a session knows of its surroundings, in five layers.
#[derive(Clone, Debug, Serialize)]
pub struct Surroundings {
    /// The system, as it was recorded when the session began.
    pub system: Option<Value>,
    /// The session itself, as it was recorded then.
    pub session: Option<Value>,
    /// The conversation.
    pub conversation: Conversation,
    /// The last calls of tools, in order.
    pub tools: Vec<RecentCall>,
    /// The workspace, as it was recorded when the session began.
    pub workspace: Option<Value>,
}

/// How much was said in a session.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Conversation {
    /// How many turns of the user.
    pub turns: u64,
    /// How many entries.
    pub entries: u64,
    /// When something was said last, if that is known.
    pub active: Option<Timestamp>,
}

object!(RecentCall, |it| { tool: it.name, id: it.id, succeeded: it.succeeded });

/// A session with what it knows of its surroundings.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Layered<'a> {
    /// The agent's id of it.
    pub session: &'a str,
    /// The layers.
    pub layers: &'a Surroundings,
}

report!(Layered<'_>, "layers");

/// A session in a list, with the session that it was made of.
#[derive(Clone, Debug, Serialize)]
pub struct ListedSession {
    /// Its name.
    #[serde(flatten)]
    pub name: SessionName,
    /// The card to show.
    #[serde(flatten)]
    pub card: Card,
    /// The session that it was made of.
    pub kin: Option<Kin>,
    /// How many branches it has.
    pub branches: u64,
    /// How many of its ends were reverted.
    pub reverted: u64,
    /// How often it was compacted.
    pub compactions: u64,
    /// How many tokens the model's next request has, if that is known.
    pub tokens: Option<u64>,
    /// How many the model takes.
    pub window: Option<u64>,
    /// Samples of how many its requests had; 0 is a compaction.
    #[serde(skip)]
    pub context: Vec<u64>,
    /// How many sessions work for it.
    pub sub_agents: u64,
    /// Whether the agent's file no longer exists.
    pub gone: bool,
    /// Whether an agent has it open.
    pub open: bool,
    /// How deep it is below others of the list that it was made of.
    #[serde(skip)]
    pub depth: usize,
}

report!(ListedSession, "session");

/// A session of which something cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadSession {
    /// Its name.
    pub name: SessionName,
    /// What cannot be read.
    pub part: UnreadPart,
    /// Why.
    pub problem: String,
}

/// What cannot be read of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreadPart {
    /// What the store holds: it is damaged.
    Stored,
    /// What its live file holds beyond the store.
    LiveFile,
}

impl UnreadSession {
    /// Names a session with what is damaged of it in the store.
    pub(crate) fn of(name: SessionName, error: &StoreError) -> Self {
        Self { name, part: UnreadPart::Stored, problem: error.to_string() }
    }

    /// Puts sessions to those that are named already, each once.
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
    /// Those that can be shown.
    pub sessions: Vec<ListedSession>,
    /// Those that cannot, whether or not they belong in the list.
    pub damaged: Vec<UnreadSession>,
    /// How many more there are.
    pub more: usize,
    /// The glances that were made for it, to be kept.
    pub glances: Vec<(SessionKey, Glance)>,
}
