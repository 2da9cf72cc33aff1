//! Reads one record into the types that all formats share.
//!
//! Invariant: no record, however broken, causes an error.

use crate::{
    json::Raw,
    model::{Kind, Message, NameTag, Record, Timestamp, Usage},
    wire::{Answers, Earlier},
};

/// What is sent instead of a record's own content. [`Edit`](crate::wire::Edit) is the same for an entry.
#[derive(Clone, Copy, Debug)]
pub enum Edited<'a> {
    /// The content in this other record.
    Content(Raw<'a>),
    /// The record's history after a rollback that keeps this many of its turns.
    Turns(u64),
    /// Nothing. Its change to the system prompt is sent where the prompt is.
    Later,
}

/// Reads the records of one format, one at a time.
pub trait Read {
    /// Returns a record's envelope: the values that paths need.
    fn envelope(&self, record: Raw<'_>) -> Envelope;

    /// Returns the messages of a record: none if it is not part of the conversation, several if it represents a whole history.
    fn messages(&self, record: Raw<'_>) -> Vec<Message>;

    /// Returns the messages of a record as the agent sends them: with the text that the agent wraps around or adds to them, and
    /// with `edits` applied.
    fn sent(&self, record: Raw<'_>, _edits: &[Edited<'_>]) -> Vec<Message> {
        self.messages(record)
    }

    /// Returns where a record stores tool results.
    fn answers<'a>(&self, _record: Raw<'a>) -> Answers<'a> {
        Answers::default()
    }

    /// Returns what the agent itself left out, as reported by this record.
    fn earlier(&self, _record: Raw<'_>) -> Vec<Earlier> {
        Vec::new()
    }

    /// Returns the agent's own checkpoint number, if this record sets a checkpoint.
    fn checkpoint(&self, _record: Raw<'_>) -> Option<String> {
        None
    }

    /// Returns the text of a record that is a message to the model from a later state of the conversation, in the agent's own
    /// way.
    fn mail(&self, _record: Raw<'_>) -> Option<String> {
        None
    }

    /// Returns the text that a graph shows for a record whose content begins with boilerplate.
    fn headline(&self, _record: Raw<'_>) -> Option<String> {
        None
    }

    /// Returns who gave the title in this record; None if it has no title. [`Read::title`] returns the title.
    fn titles(&self, _record: &Record) -> Option<Titled> {
        None
    }

    /// Returns the session title in this record.
    fn title(&self, _record: Raw<'_>) -> Option<String> {
        None
    }

    /// Returns the kind of fact about the session's model that a record may contain. [`Read::told`] returns the fact.
    fn tells(&self, _record: &Record) -> Option<Telling> {
        None
    }

    /// Returns the facts in a record about the session's model and the agent's environment.
    fn told(&self, _record: Raw<'_>) -> Told {
        Told::default()
    }
}

/// The values of a record that paths need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: Option<String>,
    /// The edge to its parent.
    pub parent: Link,
    /// When it was written.
    pub time: Option<Timestamp>,
    /// Further data for the format's path rule, in an encoding of its own.
    pub hint: Vec<u8>,
}

/// The edge from a record to its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// It has no parent.
    Root,
    /// Its parent is the record of this name.
    Named(String),
    /// Its parent is the record before it in the file.
    Before,
}

impl Envelope {
    /// Returns the envelope of a line that is not a record.
    pub fn opaque() -> Self {
        Self { kind: Kind::Opaque, name: None, parent: Link::Root, time: None, hint: Vec::new() }
    }

    /// Returns the record's structure without its content.
    pub(crate) fn frame(&self) -> (Kind, Option<&str>, &Link, Option<Timestamp>) {
        (self.kind, self.name.as_deref(), &self.parent, self.time)
    }

    /// Returns the tag of its name.
    pub fn tag(&self) -> Option<NameTag> {
        self.name.as_deref().map(NameTag::of)
    }
}

/// Who gave a session its title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Titled {
    /// It summarises the conversation up to the record of this name, which may be in another session.
    Summary(NameTag),
    /// The agent.
    Agent,
    /// The user.
    User,
}

impl Titled {
    /// Returns its rank. A title with a higher rank wins.
    pub fn rank(self) -> u8 {
        match self {
            Self::Summary(_) => 0,
            Self::Agent => 1,
            Self::User => 2,
        }
    }
}

/// A kind of fact about the session's model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// The model's name.
    Model,
    /// Numbers: the size of its context window, or the tokens used by an answer.
    Figures,
    /// Possibly what is sent besides the conversation.
    Setup,
}

/// Facts in a record about the session's model and the agent's environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The model's name.
    pub model: Option<String>,
    /// The size of its context window in tokens.
    pub window: Option<u64>,
    /// The usage of the answer before the record, if no answer contains it.
    pub usage: Option<Usage>,
    /// The usage of the whole session up to that answer, if the record says it. It tells a repeated report from a new one.
    pub total: Option<Usage>,
    /// The system prompt, if it is not a message.
    pub system: Option<String>,
    /// The tools offered to the model, as the JSON in the record.
    pub tools: Option<String>,
    /// For how many seconds the provider caches the prompt of the answer in this record, if the record says so.
    pub cached_for: Option<u64>,
    /// The agent's environment.
    pub scene: Scene,
}

/// Facts in a record about the agent's environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scene {
    /// The operating system.
    pub os: Option<String>,
    /// The shell.
    pub shell: Option<String>,
    /// The agent's version.
    pub version: Option<String>,
    /// The working folder.
    pub folder: Option<String>,
    /// The branch that is checked out there, or the commit.
    pub git_branch: Option<String>,
    /// The git remote, as written in the record.
    pub remote: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The model's provider.
    pub provider: Option<String>,
}

impl Scene {
    /// Fills in missing facts from another scene.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            os: self.os.or(other.os),
            shell: self.shell.or(other.shell),
            version: self.version.or(other.version),
            folder: self.folder.or(other.folder),
            git_branch: self.git_branch.or(other.git_branch),
            remote: self.remote.or(other.remote),
            model: self.model.or(other.model),
            provider: self.provider.or(other.provider),
        }
    }
}
