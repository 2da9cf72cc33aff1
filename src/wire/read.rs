//! Reading: one record, in the shape that all formats share.
//!
//! Invariant: no record, however broken, is an error.

use crate::{
    json::Raw,
    model::{Kind, Message, NameTag, Record, Timestamp, Usage},
    wire::{Answers, Earlier},
};

/// What is sent of a record in place of all that it says, as [`Edit`](crate::wire::Edit) tells it of an entry.
#[derive(Clone, Copy, Debug)]
pub enum Edited<'a> {
    /// The content that this other record has for it.
    Content(Raw<'a>),
    /// What a rollback leaves of its history that leaves this many turns.
    Turns(u64),
    /// Nothing: what it changes of the system prompt is said where that is.
    Later,
}

/// Reads records of one format, each by itself.
pub trait Read {
    /// Returns the envelope of a record: the values that paths need.
    fn envelope(&self, record: Raw<'_>) -> Envelope;

    /// Returns the messages of a record: none unless it is part of the conversation, several where one record
    /// represents a whole history.
    fn messages(&self, record: Raw<'_>) -> Vec<Message>;

    /// Returns the messages of a record as the agent sends them: with the words that it puts around them, or adds, and with
    /// what edits put in place of theirs.
    fn sent(&self, record: Raw<'_>, _edits: &[Edited<'_>]) -> Vec<Message> {
        self.messages(record)
    }

    /// Returns the places where a record holds tools' answers.
    fn answers<'a>(&self, _record: Raw<'a>) -> Answers<'a> {
        Answers::default()
    }

    /// Returns the omissions by the agent itself that a record tells.
    fn earlier(&self, _record: Raw<'_>) -> Vec<Earlier> {
        Vec::new()
    }

    /// Returns the agent's own number of a checkpoint, if this record sets one.
    fn checkpoint(&self, _record: Raw<'_>) -> Option<String> {
        None
    }

    /// Returns the message of a record to the model from a later state of the conversation, in the agent's own way.
    fn mail(&self, _record: Raw<'_>) -> Option<String> {
        None
    }

    /// Returns the words by which a graph shows a record whose own begin with what is said of every such one.
    fn headline(&self, _record: Raw<'_>) -> Option<String> {
        None
    }

    /// Returns by whom a title is that a record gives its session; [`Read::title`] returns it.
    fn titles(&self, _record: &Record) -> Option<Titled> {
        None
    }

    /// Returns the title that a record gives its session.
    fn title(&self, _record: Raw<'_>) -> Option<String> {
        None
    }

    /// Returns the kind of fact that a record may tell of the session's model; [`Read::told`] returns the fact.
    fn tells(&self, _record: &Record) -> Option<Telling> {
        None
    }

    /// Returns the facts that a record tells of the session's model, and of where its agent works.
    fn told(&self, _record: Raw<'_>) -> Told {
        Told::default()
    }
}

/// The values of a record that paths need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Its kind.
    pub kind: Kind,
    /// Its own name.
    pub name: Option<String>,
    /// The edge that it names.
    pub parent: Link,
    /// When it was written.
    pub time: Option<Timestamp>,
    /// Other data for the format's path rule, in a form of the format's own.
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

    /// Returns what the record is, apart from what it says.
    pub(crate) fn frame(&self) -> (Kind, Option<&str>, &Link, Option<Timestamp>) {
        (self.kind, self.name.as_deref(), &self.parent, self.time)
    }

    /// Returns the tag of the name.
    pub fn tag(&self) -> Option<NameTag> {
        self.name.as_deref().map(NameTag::of)
    }
}

/// By whom a session's title is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Titled {
    /// It sums up the conversation that ends at the record of this name, which may be another session's.
    Summary(NameTag),
    /// The agent made it.
    Agent,
    /// The user gave it.
    User,
}

impl Titled {
    /// Returns its rank: a title goes before those of lower ranks.
    pub fn rank(self) -> u8 {
        match self {
            Self::Summary(_) => 0,
            Self::Agent => 1,
            Self::User => 2,
        }
    }
}

/// A kind of fact that a record may tell of the session's model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// Its name.
    Model,
    /// Figures: how many tokens it takes, or took for an answer.
    Figures,
    /// What it is sent besides the conversation, perhaps.
    Setup,
}

/// The facts that a record tells of the session's model, and of where its agent works.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The model's name.
    pub model: Option<String>,
    /// How many tokens it takes.
    pub window: Option<u64>,
    /// How many tokens the answer before the record took, where no answer says it itself.
    pub usage: Option<Usage>,
    /// The system prompt, where it is no message.
    pub system: Option<String>,
    /// The tools that the model was offered: their JSON as it is in the record.
    pub tools: Option<String>,
    /// For how many seconds the provider keeps what it cached for the answer in the record, where that says it.
    pub cached_for: Option<u64>,
    /// Where the agent works, and with what.
    pub scene: Scene,
}

/// The facts that a record tells of where and with what its agent works.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scene {
    /// The operating system.
    pub os: Option<String>,
    /// The shell.
    pub shell: Option<String>,
    /// The agent's version.
    pub version: Option<String>,
    /// The folder.
    pub folder: Option<String>,
    /// The branch that is checked out there, or the commit.
    pub git_branch: Option<String>,
    /// The remote, as it was written.
    pub remote: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The model's provider.
    pub provider: Option<String>,
}

impl Scene {
    /// Returns it with what another one tells more.
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
