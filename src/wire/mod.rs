//! Formats: the only way in and out. One file each; what they share is the [`Format`] trait.
//!
//! A format reads a record into an [`Envelope`] (what paths need) and a [`Message`] (what it says), knows which branch its
//! agent would resume, and writes records. It sees a session through a [`Graph`] and keeps nothing.
//!
//! Invariant: nothing here reads a file of an agent by itself, and no record, however broken, is an error.

pub mod jsonl;
mod native;

pub use native::{Invalid, Native};

use crate::model::{Kind, Message, NameTag, Record, Timestamp, json::Raw};

/// Any failure of what lies beneath a [`Graph`].
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What paths need of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// What it is.
    pub kind: Kind,
    /// Its own name.
    pub name: Option<String>,
    /// What it says that it follows.
    pub parent: Link,
    /// When it was written.
    pub time: Option<Timestamp>,
    /// What else the format's path rule must know of it, in a form of the format's own.
    pub hint: Vec<u8>,
}

/// The edge that a record names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// It follows nothing.
    Root,
    /// It follows the record of this name.
    Named(String),
    /// It follows the record before it in its file.
    Before,
}

impl Envelope {
    /// Returns the envelope of a line that is no record.
    pub fn opaque() -> Self {
        Self { kind: Kind::Opaque, name: None, parent: Link::Root, time: None, hint: Vec::new() }
    }

    /// Returns the tag of the name.
    pub fn tag(&self) -> Option<NameTag> {
        self.name.as_deref().map(NameTag::of)
    }
}

/// The entries from the beginning to a head, as an agent would read them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// The entries, the first one first.
    pub entries: Vec<u64>,
    /// What had to be mended to find them.
    pub repairs: Vec<Repair>,
}

/// An edge that a record names and that a path does not take as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The entry.
    pub entry: u64,
    /// What was wrong, in a few words, such as `its parent is missing`.
    pub what: &'static str,
}

/// A session as it is seen from a position: entries behind the horizon do not exist.
pub trait Graph {
    /// Returns how many entries exist.
    fn len(&self) -> u64;

    /// Returns the entry at a place in the generation, from 0.
    fn at(&self, place: u64) -> Result<Option<u64>, Failure>;

    /// Returns what is derived from an entry.
    fn record(&self, entry: u64) -> Result<Record, Failure>;

    /// Returns the entry that an entry follows, names resolved as they stand within the horizon.
    fn parent(&self, entry: u64) -> Result<Option<u64>, Failure>;

    /// Returns an entry's line.
    fn line(&self, entry: u64) -> Result<Vec<u8>, Failure>;

    /// Returns whether nothing exists.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What is to be said in a new record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Draft {
    /// A message of the user, the assistant or the system.
    Message(crate::model::Role, String),
    /// A message to the model in the user's place that is not the user's.
    Note(String),
    /// A tool call; the input is JSON.
    Call {
        /// The id that its result will name.
        id: String,
        /// The tool.
        name: String,
        /// The arguments, as JSON.
        input: String,
    },
    /// What a tool answered.
    Result {
        /// The call that it answers.
        id: String,
        /// Its output.
        output: String,
        /// What went wrong, if the tool failed.
        error: Option<String>,
    },
    /// A record as the caller wrote it; what it leaves out is filled in.
    Record(Vec<u8>),
}

/// Where and when a new record is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The agent's id of the session.
    pub session: String,
    /// The name of the record that it follows, unless it says so itself.
    pub parent: Option<String>,
    /// The record's name, unless it has one.
    pub uuid: String,
    /// When.
    pub time: Timestamp,
    /// The folder in which the session works.
    pub folder: String,
    /// The branch that is checked out there.
    pub git_branch: Option<String>,
}

/// What one agent writes, and how it reads it.
pub trait Format: Sync {
    /// Returns the format's name, for ever.
    fn name(&self) -> &'static str;

    /// Returns whether a record can only be of this format.
    fn knows(&self, record: Raw<'_>) -> bool;

    /// Returns the agent's id of the session, if this record says it.
    fn session(&self, record: Raw<'_>) -> Option<String>;

    /// Returns the folder in which the session works, if this record says it.
    fn folder(&self, record: Raw<'_>) -> Option<String>;

    /// Returns what paths need of a record.
    fn envelope(&self, record: Raw<'_>) -> Envelope;

    /// Returns what a record says, if it is part of the conversation.
    fn message(&self, record: Raw<'_>) -> Option<Message>;

    /// Returns the entry at which the agent would resume.
    fn head(&self, graph: &dyn Graph) -> Result<Option<u64>, Failure>;

    /// Returns the entries from the beginning to a head as the agent would read them, compactions crossed; of many, the
    /// last `limit`.
    fn path(&self, graph: &dyn Graph, head: u64, limit: usize) -> Result<Path, Failure>;

    /// Returns what of a path the agent would send to a model: after a compaction its summary, what it kept, and the rest.
    fn context(&self, graph: &dyn Graph, path: &[u64]) -> Result<Vec<u64>, Failure>;

    /// Returns the entries at which the conversation went on elsewhere and was left: real branches, in order.
    fn leaves(&self, graph: &dyn Graph) -> Result<Vec<u64>, Failure>;

    /// Writes a record.
    fn write(&self, draft: &Draft, setting: &Setting) -> Result<Vec<u8>, Invalid>;
}

/// Every format, in the order in which they are asked.
pub const FORMATS: [&dyn Format; 1] = [&Native];

/// Returns the format of this name.
pub fn by_name(name: &str) -> Option<&'static dyn Format> {
    FORMATS.into_iter().find(|format| format.name() == name)
}

/// Returns the format that knows the most of these records.
pub fn detect(records: &[Raw<'_>]) -> Option<&'static dyn Format> {
    let known =
        |format: &&dyn Format| records.iter().filter(|record| format.knows(**record)).count();
    FORMATS.into_iter().filter(|format| known(format) > 0).max_by_key(known)
}
