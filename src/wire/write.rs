//! Write: new records as the agent itself would write them, and the lines that move the agent to another entry.

use serde_json::Value;

use crate::{
    json::{self, Kind, Raw},
    model::{Block, EntryNumber, Message, PlaceNumber, Record, Timestamp},
    wire::{
        Edit, Failure, Graph,
        compaction::{Compaction, Lines},
        fields::text,
    },
};

/// Writes records of one format.
pub trait Write {
    /// Returns true if a record names the model ([`Nearby::Model`]).
    ///
    /// [`Nearby::Model`]: crate::wire::Nearby::Model
    fn names_model(&self, _record: &Record) -> bool {
        false
    }

    /// Returns true if a record replaces everything before it.
    fn replaces_all(&self, _record: &Record) -> bool {
        false
    }

    /// Returns how many bytes at the beginning and at the end of a text are the agent's fixed marker of what the record is.
    fn own_words(&self, _text: &str) -> [usize; 2] {
        [0, 0]
    }

    /// Returns true if the records of a file have no names, so that the parent of each is the record before it.
    fn is_nameless(&self, _graph: &dyn Graph) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Writes a record.
    fn write(&self, draft: &Draft, setting: &Setting) -> Result<Vec<u8>, Invalid>;

    /// Wraps consecutive new records in the lines that the agent writes around a turn.
    fn framed(&self, records: Vec<Vec<u8>>, _setting: &Setting) -> Vec<Framed> {
        records.into_iter().map(|line| Framed { line, is_asked: true }).collect()
    }

    /// Returns the lines that replace the whole history with these records, each with the edit to send in its place, and then
    /// append a note; None if the agent has no record for that.
    fn whole_context(
        &self,
        _context: &[(Vec<u8>, Option<Edit>)],
        _note: Option<&str>,
        _setting: &Setting,
    ) -> Result<Option<Vec<Vec<u8>>>, Invalid> {
        Ok(None)
    }

    /// Returns the lines that, when appended, move the agent to an entry and add a note there; None if appending cannot do it, an
    /// [`Invalid`] error if the note cannot be written.
    ///
    /// The setting is that of the new record. Its parent is the name of the entry to go back to.
    fn branch(
        &self,
        _graph: &dyn Graph,
        _back: &Back<'_>,
        _setting: &Setting,
    ) -> Result<Option<Vec<Vec<u8>>>, Failure> {
        Ok(None)
    }

    /// Returns another file of the session that continues after the end of a path and adds a note there; None if the agent does
    /// not continue sessions in new files.
    fn segment(
        &self,
        _onward: &Onward<'_>,
        _setting: &Setting,
    ) -> Result<Option<Segment>, Failure> {
        Ok(None)
    }

    /// Returns the lines that replace messages with a summary and keep some of them; None if the agent has no way to write that
    /// there.
    ///
    /// The settings are those of the new records, in order. The parent of the first is the head.
    fn compaction(
        &self,
        _graph: &dyn Graph,
        _compaction: &Compaction<'_>,
        _settings: &[Setting; 2],
    ) -> Result<Option<Lines>, Failure> {
        Ok(None)
    }
}

/// The content of a new record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Draft {
    /// A message of the user, the assistant or the system.
    Message(Speaker, String),
    /// A model's answer: its text and metadata. Each call is a draft of its own, except where the format puts calls into the
    /// answer's record: all of them, or the first call of an answer without text.
    Answer(Box<Message>),
    /// A message to the model that is in the user's place but not from the user.
    Note(String),
    /// A tool call; the input is JSON.
    Call {
        /// The id that its result refers to.
        id: String,
        /// The tool.
        name: String,
        /// The arguments, as JSON.
        input: String,
    },
    /// A tool result.
    Result {
        /// The id of the call.
        id: String,
        /// Its output.
        output: String,
        /// What went wrong, if the tool failed.
        error: Option<String>,
    },
    /// A summary of another session, in the user's place.
    Summary(String),
    /// A checkpoint whose number the model sees.
    Checkpoint(u64),
    /// A record as the caller supplies it, in a format that accepts one. Missing fields are filled in.
    Record(Vec<u8>),
}

/// The beginning and the end of the text that tells the model the number of a checkpoint.
const CHECKPOINT: [&str; 2] = ["<system>CHECKPOINT ", "</system>"];

/// Returns the text that tells the model the number of a checkpoint.
pub(super) fn checkpoint_text(n: u64) -> String {
    let [start, end] = CHECKPOINT;
    format!("{start}{n}{end}")
}

/// Returns the number if a text only tells the model the number of a checkpoint.
pub(crate) fn checkpoint_number(text: &str) -> Option<u64> {
    let [start, end] = CHECKPOINT;
    let number = text.trim().strip_prefix(start)?.strip_suffix(end)?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())?
}

/// The speaker of a message that is only text. Tool results are not, because they name their call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// Instructions, or text of the program itself.
    System,
}

/// A line within the frame of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Framed {
    /// The line.
    pub line: Vec<u8>,
    /// True for one of the requested records, false for a line of the frame.
    pub is_asked: bool,
}

/// The context in which a new record is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The agent's id of the session.
    pub session: String,
    /// The name of its parent, unless the record contains it.
    pub parent: Option<String>,
    /// Its name, unless the record contains it.
    pub uuid: String,
    /// Its time.
    pub time: Timestamp,
    /// The session's working folder.
    pub folder: String,
    /// The branch that is checked out there.
    pub git_branch: Option<String>,
    /// The line of an existing record. Fields that the agent writes into every record are copied from it.
    pub nearby: Option<Vec<u8>>,
    /// True if the records of the file have no names and this one gets none.
    pub is_nameless: bool,
    /// How many bytes of records are between that record and the new one, unless a compaction is between them.
    pub since: Option<u64>,
    /// For a result: the name of the tool.
    pub tool: Option<String>,
    /// For a result: the line of the record with the call.
    pub call: Option<Vec<u8>>,
}

/// A move to an earlier entry by appending.
#[derive(Clone, Copy, Debug)]
pub struct Back<'a> {
    /// The head at which the agent is; None before the first entry.
    pub from: Option<EntryNumber>,
    /// The entry after which it should continue; None for the beginning.
    pub to: Option<EntryNumber>,
    /// The path to `from`, or its last entries.
    pub stood: &'a [EntryNumber],
    /// The path to `to`, which may be in another generation, or its last entries. Both begin at the same entry.
    pub path: &'a [EntryNumber],
    /// The note to add there.
    pub note: Option<&'a str>,
}

/// A move to an entry by writing another file of the session.
pub struct Onward<'a> {
    /// The files that lead to the end of the path; the last one as a graph.
    pub graph: &'a dyn Graph,
    /// The move.
    pub back: &'a Back<'a>,
    /// The record at the beginning of the session's live file.
    pub opening: &'a [u8],
    /// The same files as of when the path to that entry was read.
    pub then: &'a dyn Graph,
    /// Returns the files that lead there, oldest first.
    pub files: &'a dyn Fn() -> Result<Vec<Held>, Failure>,
    /// Returns the offset in a file, given its index in that list, at which the records before a place end.
    pub offset: &'a dyn Fn(usize, PlaceNumber) -> Result<u64, Failure>,
}

/// A file that continues other files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The record at its beginning.
    pub opening: Vec<u8>,
    /// The records after that.
    pub lines: Vec<Vec<u8>>,
    /// The entries that the first of these records copy, in order.
    pub again: Vec<EntryNumber>,
}

/// A file that another file may continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its id.
    pub id: String,
    /// The place up to which its content is in the file and known to its agent.
    pub held: PlaceNumber,
}

/// Why a record cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub String);

impl Speaker {
    /// Returns the name that most formats use for the role.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
        }
    }
}

/// Returns the first call of an answer without text. Its record also contains the answer's thinking and metadata.
pub(super) fn only_call(said: &Message) -> Option<([&str; 3], Option<&str>)> {
    if !said.text().is_empty() {
        return None;
    }
    said.blocks.iter().find_map(|block| match block {
        Block::Call { id, name, input, signature } => {
            Some(([id.as_str(), name, input], signature.as_deref()))
        }
        _ => None,
    })
}

/// Returns a tool's output, followed by its error.
pub(super) fn with_error(output: &str, error: Option<&str>) -> String {
    let error = error.unwrap_or_default();
    let is_apart = output.is_empty() || error.is_empty() || output.ends_with('\n');
    format!("{output}{}{error}", if is_apart { "" } else { "\n" })
}

/// Parses a record supplied by a caller, and its type.
pub(super) fn asked(line: &[u8]) -> Result<(Raw<'_>, String), Invalid> {
    let invalid = |why: &str| Invalid(why.to_owned());
    if std::str::from_utf8(line).is_err() {
        return Err(invalid("the record is not UTF-8"));
    }
    let record = Raw::object(line).ok_or_else(Invalid::no_object)?;
    let class = text(record, "type").ok_or_else(|| invalid("the record has no type"))?;
    Ok((record, class))
}

/// Checks that a record supplied by a caller does not name another session.
pub(super) fn check_session(record: Raw<'_>, setting: &Setting) -> Result<(), Invalid> {
    if text(record, "sessionId").is_some_and(|session| session != setting.session) {
        return Err(Invalid("the record's sessionId belongs to another session".into()));
    }
    Ok(())
}

/// Checks that the message of a record supplied by a caller has this role and is not empty.
pub(super) fn check_message(message: Option<Raw<'_>>, role: &str) -> Result<(), Invalid> {
    let invalid = |why: &str| Err(Invalid(why.to_owned()));
    let Some(message) = message else { return invalid("the record has no message") };
    if text(message, "role").as_deref() != Some(role) {
        let why = format!("the message's role must be {role:?}, like the record's type");
        return invalid(&why);
    }
    let is_content = |content: Raw<'_>| matches!(content.kind(), Kind::String | Kind::Array);
    if !message.get("content").is_some_and(is_content) {
        return invalid("the content of the message is neither a string nor a list");
    }
    Ok(())
}

/// Adds those of some fields that a record supplied by a caller lacks.
pub(super) fn filled(
    record: Raw<'_>,
    fields: &[(impl AsRef<str>, Value)],
) -> Result<Vec<u8>, Invalid> {
    let missing = fields.iter().filter(|(key, _)| record.get(key.as_ref()).is_none());
    let values: Vec<(&str, Vec<u8>)> =
        missing.map(|(key, value)| (key.as_ref(), value.to_string().into_bytes())).collect();
    let edits: Vec<(&str, &[u8])> =
        values.iter().map(|(key, value)| (*key, value.as_slice())).collect();
    json::with_fields(record.bytes(), &edits).ok_or_else(Invalid::no_object)
}

impl Invalid {
    fn no_object() -> Self {
        Self("it is not a JSON object".into())
    }

    /// Makes the error for a call whose input is not JSON.
    pub(super) fn input(error: &serde_json::Error) -> Self {
        Self(format!("the tool's input is not JSON: {error}"))
    }

    /// Makes the error for a format whose model cannot see a checkpoint.
    pub(super) fn untold() -> Self {
        Self("a model sees checkpoints only in sessions of Kimi CLI or undertext's own".into())
    }

    /// Makes the error for an agent whose sessions do not accept a record from a caller.
    pub(super) fn as_it_is(agent: &str) -> Self {
        let instead = "use --role, --call, --result or --note";
        Self(format!("{agent}'s sessions do not take raw records; {instead}"))
    }
}
