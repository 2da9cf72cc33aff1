//! Writing: new records as the agent itself would write them, and the lines that take it elsewhere.

use serde_json::Value;

use crate::{
    json::{self, Kind, Raw},
    model::{EntryNumber, Message, PlaceNumber, Record, Timestamp},
    wire::{
        Edit, Failure, Graph,
        compaction::{Compaction, Lines},
        fields::text,
    },
};

/// Writes records of one format.
pub trait Write {
    /// Returns whether a record says which model answers ([`Nearby::Model`]).
    ///
    /// [`Nearby::Model`]: crate::wire::Nearby::Model
    fn names_model(&self, _record: &Record) -> bool {
        false
    }

    /// Returns whether a record represents all that was said before it.
    fn replaces_all(&self, _record: &Record) -> bool {
        false
    }

    /// Returns how many bytes of a text, at its beginning and at its end, the agent itself always puts there: they tell what a
    /// record is.
    fn own_words(&self, _text: &str) -> [usize; 2] {
        [0, 0]
    }

    /// Returns whether the records of a file have no names, so that each follows the one before it.
    fn is_nameless(&self, _graph: &dyn Graph) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Writes a record.
    fn write(&self, draft: &Draft, setting: &Setting) -> Result<Vec<u8>, Invalid>;

    /// Returns new records, which follow each other, in the frame that the agent gives to turns.
    fn framed(&self, records: Vec<Vec<u8>>, _setting: &Setting) -> Vec<Framed> {
        records.into_iter().map(|line| Framed { line, is_asked: true }).collect()
    }

    /// Returns the lines that put these records, of a whole context, each with what is sent in its place, in place of all
    /// before it, and say a note behind them; None where an agent has no record that does so.
    fn whole_context(
        &self,
        _context: &[(Vec<u8>, Option<Edit>)],
        _note: Option<&str>,
        _setting: &Setting,
    ) -> Result<Option<Vec<Vec<u8>>>, Invalid> {
        Ok(None)
    }

    /// Returns the lines that, appended, take the agent to an entry and say a note there; None where only another way
    /// can do it, an [`Invalid`] as the error where the note cannot be written.
    ///
    /// The setting is that of the new record: its parent is the name of the entry to go back to.
    fn branch(
        &self,
        _graph: &dyn Graph,
        _back: &Back<'_>,
        _setting: &Setting,
    ) -> Result<Option<Vec<Vec<u8>>>, Failure> {
        Ok(None)
    }

    /// Writes another file of the session, which goes on behind the end of a path, where a note is said; None where the
    /// agent does not go on in files.
    fn segment(
        &self,
        _onward: &Onward<'_>,
        _setting: &Setting,
    ) -> Result<Option<Segment>, Failure> {
        Ok(None)
    }

    /// Returns the lines that put a summary in place of messages, and keep some of them; None where the agent has
    /// no way to say it there.
    ///
    /// The settings are those of the new records, in order; the first one's parent is the head.
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
    /// A model's answer: its words and its metadata. Each of its calls is a draft of its own, except where
    /// records of the format say them with the metadata: all of them, or the first one of an answer without words.
    Answer(Box<Message>),
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
    /// The answer of a tool.
    Result {
        /// The call that it answers.
        id: String,
        /// Its output.
        output: String,
        /// What went wrong, if the tool failed.
        error: Option<String>,
    },
    /// A record as the caller wrote it, in a format that takes one; missing fields are filled in.
    Record(Vec<u8>),
}

/// Who speaks in a message that is only words: not a tool, whose answer names its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The person.
    User,
    /// The model.
    Assistant,
    /// Instructions, or words of the program itself.
    System,
}

/// A line in the frame of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Framed {
    /// The line.
    pub line: Vec<u8>,
    /// Whether it is one of the records, and no part of the frame.
    pub is_asked: bool,
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
    /// When it is written.
    pub time: Timestamp,
    /// The folder in which the session works.
    pub folder: String,
    /// The branch that is checked out there.
    pub git_branch: Option<String>,
    /// The line of a record nearby: fields that the agent writes into each record are taken from it.
    pub nearby: Option<Vec<u8>>,
    /// Whether the file's records have no names, and this one gets none.
    pub is_nameless: bool,
    /// How many bytes of records stand between that one and the new one, if no compaction does.
    pub since: Option<u64>,
    /// The tool that was called, of a result.
    pub tool: Option<String>,
    /// The line of the record that calls it.
    pub call: Option<Vec<u8>>,
}

/// A way back by appending.
#[derive(Clone, Copy, Debug)]
pub struct Back<'a> {
    /// The head at which the agent is, unless it comes before the first entry.
    pub from: Option<EntryNumber>,
    /// The entry behind which it is to go on; None is the beginning.
    pub to: Option<EntryNumber>,
    /// The path on which it is, or its last entries.
    pub stood: &'a [EntryNumber],
    /// The path to that entry, which may lie in another generation, or its last entries, from the same on as those.
    pub path: &'a [EntryNumber],
    /// The note that it is to be told.
    pub note: Option<&'a str>,
}

/// A way on in another file of the session.
pub struct Onward<'a> {
    /// The files that lead to the path's end, the last one as a graph.
    pub graph: &'a dyn Graph,
    /// The way.
    pub back: &'a Back<'a>,
    /// The record that opens the session's live file.
    pub opening: &'a [u8],
    /// The same files as they were when the path to that entry was read.
    pub then: &'a dyn Graph,
    /// Returns the files that lead there, the first one first.
    pub files: &'a dyn Fn() -> Result<Vec<Held>, Failure>,
    /// Returns where in a file, told by its number in that list, the records before a place end.
    pub offset: &'a dyn Fn(usize, PlaceNumber) -> Result<u64, Failure>,
}

/// A file that goes on from others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The record that opens it.
    pub opening: Vec<u8>,
    /// The records behind that.
    pub lines: Vec<Vec<u8>>,
    /// The entries that the first of them say again, in order.
    pub again: Vec<EntryNumber>,
}

/// A file from which another one may go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its id.
    pub id: String,
    /// Before which place: its beginning is there, and its agent knows it.
    pub held: PlaceNumber,
}

/// Why a record cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub String);

impl Speaker {
    /// Returns the word that most formats have for the role.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
        }
    }
}

/// Returns what a tool answered, with what went wrong behind its output.
pub(super) fn with_error(output: &str, error: Option<&str>) -> String {
    let error = error.unwrap_or_default();
    let is_apart = output.is_empty() || error.is_empty() || output.ends_with('\n');
    format!("{output}{}{error}", if is_apart { "" } else { "\n" })
}

/// Reads a record that a caller wrote, and its type.
pub(super) fn asked(line: &[u8]) -> Result<(Raw<'_>, String), Invalid> {
    let invalid = |why: &str| Invalid(why.to_owned());
    if std::str::from_utf8(line).is_err() {
        return Err(invalid("the record is not UTF-8"));
    }
    let record = Raw::object(line).ok_or_else(Invalid::no_object)?;
    let class = text(record, "type").ok_or_else(|| invalid("the record has no type"))?;
    Ok((record, class))
}

/// Checks that a record that a caller wrote names no other session.
pub(super) fn check_session(record: Raw<'_>, setting: &Setting) -> Result<(), Invalid> {
    if text(record, "sessionId").is_some_and(|session| session != setting.session) {
        return Err(Invalid("the record's sessionId belongs to another session".into()));
    }
    Ok(())
}

/// Checks that the message of a record that a caller wrote is of a role, and says something.
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

/// Adds to a record that a caller wrote those of some fields that it does not have.
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

    /// Says that the input of a call is not JSON.
    pub(super) fn input(error: &serde_json::Error) -> Self {
        Self(format!("the tool's input is not JSON: {error}"))
    }

    /// Says that an agent's sessions take no record as a caller wrote it.
    pub(super) fn as_it_is(agent: &str) -> Self {
        let instead = "use --role, --call, --result or --note";
        Self(format!("{agent}'s sessions do not take raw records; {instead}"))
    }
}
