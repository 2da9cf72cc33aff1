//! Where a session is, and how lists show it.

use std::{fmt, path::PathBuf};

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{
    context::Due,
    later::Waiting,
    shape::{Owner, Report, report, some_path, through},
    spending::Expense,
};
use crate::model::hint::Line;
use crate::{
    context::{measure::Word, plan::Nearness, window::Window},
    model::{Card, CheckpointNumber, EntryId, Glance, Position, SessionName, Timestamp},
    session::{Damaged, Elsewhere, Gap, Kin, RecentCall, Session, Spot},
    store::{SessionKey, StoreError},
};

/// Where a session is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Its card, as lists show it.
    #[serde(flatten)]
    pub card: Card,
    /// The current branch.
    pub branch: String,
    /// The number of branches.
    pub branches: u64,
    /// Its position.
    #[serde(skip)]
    pub position: Option<Position>,
    /// The last entry of the current branch; `null` at the start of the session.
    pub head: Option<EntryId>,
    /// The next turn after the current position, or `null` if it is the end.
    #[serde(rename = "before", serialize_with = "before")]
    pub spot: Option<Spot>,
    /// The newest checkpoint that was not undone.
    pub checkpoint: Option<CheckpointNumber>,
    /// The number of entries.
    pub entries: u64,
    /// The number of operations.
    pub operations: u64,
    /// How many files belong to the session and were imported with it.
    pub sidecars: u64,
    /// The session from which this one was made.
    pub kin: Option<Kin>,
    /// Where the history begins, if that part cannot be shown.
    #[serde(serialize_with = "elsewhere")]
    pub elsewhere: Option<Elsewhere>,
    /// The process that compacts the session or is about to repeat a request after that; `null` if none does.
    pub compacting: Option<String>,
    /// The file that the agent reads.
    #[serde(serialize_with = "some_path")]
    pub live: Option<PathBuf>,
    /// The path of the agent's file, if the file was deleted.
    #[serde(serialize_with = "some_path")]
    pub gone: Option<PathBuf>,
    /// How the live file compares with the newest state in the store.
    #[serde(skip)]
    pub live_state: LiveState,
    /// The waiting change, if any.
    pub waiting: Option<Waiting>,
    /// The processes that have the session open.
    pub open: Vec<OpenIn>,
}

/// Serialises the turn right after a position.
#[expect(clippy::ref_option, reason = "so a field is handed over")]
fn before<S: Serializer>(spot: &Option<Spot>, to: S) -> Result<S::Ok, S::Error> {
    let next = |spot: Spot| matches!(spot, Spot::Before(_)).then(|| spot.checkpoint());
    spot.and_then(next).serialize(to)
}

#[expect(clippy::ref_option, reason = "so a field is handed over")]
fn elsewhere<S: Serializer>(found: &Option<Elsewhere>, to: S) -> Result<S::Ok, S::Error> {
    found.as_ref().map(Beginning::from).serialize(to)
}

/// Where a history begins, as a report.
#[derive(Serialize)]
struct Beginning<'a> {
    /// The session that has the beginning, if it is another session.
    session: Option<&'a str>,
    /// The id of the file that has it.
    file: &'a str,
    /// Why it cannot be shown.
    why: &'a Gap,
    /// The reason in words.
    words: String,
}

impl<'a> From<&'a Elsewhere> for Beginning<'a> {
    fn from(of: &'a Elsewhere) -> Self {
        Self { session: of.session(), file: &of.file, why: &of.gap, words: of.to_string() }
    }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LiveState {
    /// The file is the same as in the store.
    Same,
    /// The next change will write to the file what the store has.
    Pending,
    /// Another program, such as the agent, appended to the file; undertext shows the new records.
    Grown,
    /// The file is missing; the next change writes it again.
    Missing,
    /// Another program, such as the agent, rewrote the file; undertext shows the new contents.
    Rewritten,
    /// Another program replaced the store's own file.
    Replaced,
    /// The file has changed, but your settings exclude it.
    LeftOut,
    /// The file cannot be read.
    Unread,
}

impl LiveState {
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
#[derive(Clone, Debug, Serialize)]
pub struct Fullness {
    /// The size of the context in tokens.
    pub tokens: u64,
    /// The model's context window.
    #[serde(flatten)]
    pub window: Window,
    /// Whether there may be more tokens than counted: counting stops when the window is full.
    #[serde(rename = "at_least")]
    pub is_least: bool,
    /// How the tokens were counted.
    #[serde(rename = "counted")]
    pub word: Word,
    /// The model, if known.
    pub model: Option<String>,
    /// The damaged entries, which are not counted.
    #[serde(skip)]
    pub damaged: Vec<Damaged>,
}

/// The status of a session, as a report.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Standing<'a> {
    /// The session.
    #[serde(flatten, serialize_with = "through::<Owner<'_>, Session, _>")]
    pub session: &'a Session,
    /// Its status.
    #[serde(flatten)]
    pub status: &'a Status,
    /// How many branch ends were reverted, if known.
    pub reverted: Option<u64>,
    /// Whether the live file differs from the store's copy.
    pub behind: bool,
    /// The state of the live file.
    pub live_state: Option<LiveState>,
    /// The size of the context; `null` if the window is too small.
    pub context: Option<Filling<'a>>,
    /// What the session used, with its sub-agents; `null` if it is too long to be counted here.
    pub spent: Option<&'a Expense>,
}

/// How full the context window is, and how close that is to a compaction.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Filling<'a> {
    #[serde(flatten)]
    full: &'a Fullness,
    #[serde(flatten, serialize_with = "through::<Due, Nearness, _>")]
    near: &'a Nearness,
}

impl<'a> Standing<'a> {
    /// Returns the report on a session: its context, if it has a window, and the number of its reverted ends, if known.
    pub fn new(
        session: &'a Session,
        status: &'a Status,
        full: Option<&'a (Nearness, Fullness)>,
        reverted: Option<u64>,
        spent: Option<&'a Expense>,
    ) -> Self {
        Self {
            session,
            status,
            reverted,
            behind: status.live_state != LiveState::Same,
            live_state: status.live.as_ref().map(|_| status.live_state),
            context: full.map(|(near, full)| Filling { full, near }),
            spent,
        }
    }
}

report!(Standing<'_>, "status", hints: |it| {
    let restore = |_: &PathBuf| Line::about("restore").to("to put the file back where the agent reads it");
    it.status.gone.as_ref().map(restore)
});

/// What a session knows about its environment, in five layers.
#[derive(Clone, Debug, Serialize)]
pub struct Surroundings {
    /// The system settings that `new` recorded.
    pub system: Option<Value>,
    /// The preferences that `new` recorded.
    pub session: Option<Value>,
    /// The size of the conversation.
    pub conversation: Conversation,
    /// The last tool calls, in order.
    pub tools: Vec<RecentCall>,
    /// The configuration of the workspace that `new` recorded.
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

/// A session with its layers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Layered<'a> {
    /// The session.
    pub session: &'a str,
    /// What is known about the session's environment.
    pub layers: &'a Surroundings,
}

report!(Layered<'_>, "layers");

/// A session in a list, with the session that it was created from.
#[derive(Clone, Debug, Default, Serialize)]
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
    /// How many branch ends were reverted.
    pub reverted: u64,
    /// How many compactions the session has.
    pub compactions: u64,
    /// The size of the next request in tokens, if known.
    pub tokens: Option<u64>,
    /// The size of the model's context window in tokens.
    pub window: Option<u64>,
    /// Samples of the token counts of its requests; a 0 marks a compaction.
    #[serde(skip)]
    pub context: Vec<u64>,
    /// How many sessions of sub-agents belong to the session.
    pub sub_agents: u64,
    /// Whether the agent's file was deleted.
    pub gone: bool,
    /// Whether an agent has the session open.
    pub open: bool,
    /// Its depth below the listed sessions that it was created from.
    #[serde(skip)]
    pub depth: usize,
}

report!(ListedSession, "session");

/// A session with an unreadable part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnreadSession {
    /// Its name.
    #[serde(flatten)]
    pub name: SessionName,
    /// The unreadable part.
    #[serde(skip)]
    pub part: UnreadPart,
    /// What is wrong with it.
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
