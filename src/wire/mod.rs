//! Formats: the only way in and out. One file each; what they share is the [`Format`] trait.
//!
//! A format reads a record into an [`Envelope`] (what paths need) and a [`Message`] (what it says), knows which branch its
//! agent would resume, and writes records. It sees a session through a [`Graph`] and keeps nothing.
//!
//! Invariant: nothing here reads a file of an agent by itself, and no record, however broken, is an error.

mod claude;
mod codex;
pub mod compaction;
pub mod cut;
pub mod discover;
mod files;
pub mod jsonl;
mod kimi;
mod native;
mod pi;
mod told;

pub use claude::Claude;
pub use codex::Codex;
pub use cut::{Answer, Answers, Earlier};
pub use files::{Base, Before, Departure, FileName, Shelf};
pub use kimi::Kimi;
pub use native::{Invalid, Native};
pub use pi::Pi;
pub use told::{Telling, Told};

use std::collections::BTreeSet;

use compaction::{Compaction, Lines};

use crate::{
    json::Raw,
    model::{
        Block, Image, Kind, Message, NameTag, Record, Source, Thinking, Tie, TieKind, Timestamp,
        Usage,
    },
};

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

/// Finds the paths of one graph: to a head, and of many entries the last ones.
pub type Paths<'g> = Box<dyn FnMut(u64, usize) -> Result<Path, Failure> + 'g>;

/// Returns what the path to a head adds to what is known: from its last known entry on. It is known from then on.
///
/// No more of a path is read than it takes to meet what is known.
pub fn added(
    paths: &mut Paths<'_>,
    head: u64,
    known: &mut BTreeSet<u64>,
) -> Result<Vec<u64>, Failure> {
    // Behind a head that is known there may still hang what is not.
    let mut limit = if known.contains(&head) { 1 } else { STEP };
    let (mut path, from) = loop {
        let path = paths(head, limit)?.entries;
        match path.iter().rposition(|entry| known.contains(entry)) {
            None if path.len() >= limit => limit = limit.saturating_mul(4).max(STEP),
            from => break (path, from.unwrap_or(0)),
        }
    };
    path.drain(..from);
    known.extend(&path);
    Ok(path)
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

    /// Returns the place of an entry in the generation: of several the last one.
    fn place(&self, entry: u64) -> Result<Option<u64>, Failure>;

    /// Returns what is derived from an entry.
    fn record(&self, entry: u64) -> Result<Record, Failure>;

    /// Returns the entry that an entry follows, names resolved as they stand within the horizon.
    fn parent(&self, entry: u64) -> Result<Option<u64>, Failure>;

    /// Returns an entry's line.
    fn line(&self, entry: u64) -> Result<Vec<u8>, Failure>;

    /// Returns the entry that a name stands for: of several the last one.
    fn named(&self, name: NameTag) -> Result<Option<u64>, Failure>;

    /// Returns whether an entry is the one that its record's name stands for, or has no name.
    fn bears(&self, record: &Record) -> Result<bool, Failure> {
        record.name.map_or(Ok(true), |name| Ok(self.named(name)? == Some(record.n)))
    }

    /// Returns the last boundary before a place, behind its own place.
    fn boundary(&self, before: u64) -> Result<Option<(u64, u64)>, Failure>;

    /// Returns whether the entry at a place begins on the physical line of the one before it.
    fn is_glued(&self, place: u64) -> Result<bool, Failure>;

    /// Returns how many bytes of the file exist, what follows the last entry included.
    fn bytes(&self) -> Result<u64, Failure>;

    /// Returns what stands before the first entry, in another file of the session.
    fn before(&self) -> Result<Before<'_>, Failure> {
        Ok(Before::Nothing)
    }

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
    /// What a model answered: its words, with what is known of it. Each of its calls is a draft of its own, but for the
    /// first one of an answer without words, where records of the format can say it with what is known of it.
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

/// Which record nearby a new one is written like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// None.
    Nothing,
    /// The head: what it says of the program and its folder is said again.
    Head,
    /// The last one of the file, from which the records are counted.
    Last,
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
    /// The line of a record nearby: what the agent writes into each record is taken from it.
    pub beside: Option<Vec<u8>>,
}

/// What one agent writes, and how it reads it.
pub trait Format: Sync {
    /// Returns the format's name, for ever.
    fn name(&self) -> &'static str;

    /// Returns whether a record can only be of this format.
    fn knows(&self, record: Raw<'_>) -> bool;

    /// Returns whether a record may be of this format though it lacks what the agent always writes.
    fn resembles(&self, _record: Raw<'_>) -> bool {
        false
    }

    /// Returns the agent's id of the session, if this record says it.
    fn session(&self, record: Raw<'_>) -> Option<String>;

    /// Returns the agent's id of the session that a file holds, by its place and its first records.
    ///
    /// `mentions` tells whether bytes occur anywhere in the file.
    fn session_of(
        &self,
        _file: &std::path::Path,
        records: &[Raw<'_>],
        _mentions: &dyn Fn(&[u8]) -> bool,
    ) -> Option<String> {
        records.iter().find_map(|record| self.session(*record))
    }

    /// Returns the agent's own number of a rotated file, if a file's name says that it is one.
    fn rotation(&self, _name: &str) -> Option<u64> {
        None
    }

    /// Returns the name under which the agent itself would set its file aside, told from the names in the folder.
    fn aside(&self, _names: &[String]) -> Option<String> {
        None
    }

    /// Returns the file in which the agent lists the folders of its sessions, if it takes none that is not listed.
    fn index(&self, _file: &std::path::Path) -> Option<std::path::PathBuf> {
        None
    }

    /// Returns that list with the folder of a session's file added, if it lacks it; `folder` is one that it may be.
    fn listed(
        &self,
        _file: &std::path::Path,
        _index: &[u8],
        _folder: Option<&str>,
    ) -> Result<Option<Vec<u8>>, Invalid> {
        Ok(None)
    }

    /// Returns whether the parent of a record is always in the same file.
    fn is_closed(&self) -> bool {
        false
    }

    /// Returns whether another file may take the place of one that the agent reads.
    fn rotates(&self) -> bool {
        true
    }

    /// Returns whether a record is one with which each file of the agent must begin.
    fn begins(&self, _record: &Record) -> bool {
        false
    }

    /// Returns the names of the programs that load its sessions.
    fn programs(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the name of the file that the agent reads, if it sets older states of it aside under names of its own.
    fn live_name(&self) -> Option<&'static str> {
        None
    }

    /// Returns whether the agent keeps such a file beside its sessions, and no session in it.
    fn accompanies(&self, _file: &std::path::Path) -> bool {
        false
    }

    /// Returns what a state of a file shows of other sessions: its first [`TIED`] entries are seen, their lines alone.
    fn ties(&self, _session: &str, _graph: &dyn Graph) -> Result<Vec<Tie>, Failure> {
        Ok(Vec::new())
    }

    /// Returns, of a record that was copied from another session, its name there.
    fn copied(&self, _record: Raw<'_>, _other: &str) -> Option<String> {
        None
    }

    /// Returns, of the first record of a file, where the history begins if that is another file.
    fn base(&self, _record: Raw<'_>) -> Option<Base> {
        None
    }

    /// Returns what the name of a file says, if the agent keeps a session in several files.
    fn file_name(&self, _name: &str) -> Option<FileName> {
        None
    }

    /// Returns the folders in which other files of the session of a file may lie.
    fn shelves(&self, _file: &std::path::Path) -> Vec<Shelf> {
        Vec::new()
    }

    /// Returns whether a record stands for all that was said before it.
    fn replaces_all(&self, _record: &Record) -> bool {
        false
    }

    /// Returns what a record may say of the model that the session is for; [`Format::told`] returns it.
    fn tells(&self, _record: &Record) -> Option<Telling> {
        None
    }

    /// Returns what a record says of the model that the session is for.
    fn told(&self, _record: Raw<'_>) -> Told {
        Told::default()
    }

    /// Returns the ordinal that a record has in its session, if the agent counts.
    fn ordinal(&self, _record: Raw<'_>) -> Option<u64> {
        None
    }

    /// Returns what a copy of a record keeps, where its line does not stay the same.
    fn kept<'a>(&self, _record: Raw<'a>) -> Option<Raw<'a>> {
        None
    }

    /// Returns how the agent left a state of its file for the next one.
    fn departure(&self, _old: &dyn Graph, _next: &dyn Graph) -> Result<Option<Departure>, Failure> {
        Ok(None)
    }

    /// Returns the folder in which the session works, if this record says it.
    fn folder(&self, record: Raw<'_>) -> Option<String>;

    /// Returns what paths need of a record.
    fn envelope(&self, record: Raw<'_>) -> Envelope;

    /// Returns what a record says: nothing unless it is part of the conversation, several messages where one record
    /// stands for a whole history.
    fn messages(&self, record: Raw<'_>) -> Vec<Message>;

    /// Returns whether records say when they were written.
    fn is_timed(&self) -> bool {
        true
    }

    /// Returns whether the agent sets checkpoints itself.
    fn has_markers(&self) -> bool {
        false
    }

    /// Returns where a record holds what tools answered.
    fn answers<'a>(&self, _record: Raw<'a>) -> Answers<'a> {
        Answers::default()
    }

    /// Returns whether records of this format tell what the agent left out; where not, none is read for it.
    fn tells_earlier(&self) -> bool {
        false
    }

    /// Returns what a record says that the agent left out by itself.
    fn earlier(&self, _record: Raw<'_>) -> Vec<Earlier> {
        Vec::new()
    }

    /// Returns the agent's own number of a checkpoint, if this record sets one.
    fn checkpoint(&self, _record: Raw<'_>) -> Option<String> {
        None
    }

    /// Returns what a record says to the model from a later state of the conversation, in the agent's own way.
    fn mail(&self, _record: Raw<'_>) -> Option<String> {
        None
    }

    /// Returns the entry at which the agent would resume.
    fn head(&self, graph: &dyn Graph) -> Result<Option<u64>, Failure>;

    /// Returns the entries from the beginning to a head as the agent would read them, compactions crossed; of many, the
    /// last `limit`.
    fn path(&self, graph: &dyn Graph, head: u64, limit: usize) -> Result<Path, Failure>;

    /// Returns [`Format::path`] of one graph for many heads: what is read for one of them serves the next.
    fn paths<'g>(&'g self, graph: &'g dyn Graph) -> Result<Paths<'g>, Failure> {
        Ok(Box::new(move |head, limit| self.path(graph, head, limit)))
    }

    /// Returns what of a path the agent would send to a model: after a compaction its summary, what it kept, and the rest.
    fn context(&self, graph: &dyn Graph, path: &[u64]) -> Result<Vec<u64>, Failure>;

    /// Returns the entries at which the conversation went on elsewhere and was left: real branches, in order.
    fn leaves(&self, graph: &dyn Graph) -> Result<Vec<u64>, Failure>;

    /// Returns which record nearby a new one must be written like.
    fn beside(&self) -> Beside {
        Beside::Nothing
    }

    /// Writes a record.
    fn write(&self, draft: &Draft, setting: &Setting) -> Result<Vec<u8>, Invalid>;

    /// Returns the record that puts these records, of a whole context, in the place of all before it, where there is such.
    fn anew(&self, _context: &[Vec<u8>], _setting: &Setting) -> Option<Vec<u8>> {
        None
    }

    /// Returns whether the first call of an answer without words is part of [`Draft::Answer`].
    fn answers_by_call(&self) -> bool {
        false
    }

    /// Returns the lines that, appended, take the agent to an entry and say a note there; None where only a rotation
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

    /// Returns whether a compaction can keep messages with others between them that it does not keep.
    fn keeps_apart(&self) -> bool {
        true
    }

    /// Returns the lines that put a summary in the place of what was said, and keep some of it; None where the agent has no
    /// way to say it there.
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

/// A way back by appending.
#[derive(Clone, Copy, Debug)]
pub struct Back<'a> {
    /// The head at which the agent stands, unless it stands before the first entry.
    pub from: Option<u64>,
    /// The entry behind which it is to go on; None is the beginning.
    pub to: Option<u64>,
    /// The path to that entry, which may lie in another generation.
    pub path: &'a [u64],
    /// What it is to be told.
    pub note: Option<&'a str>,
}

/// How many entries at the beginning of a file tell its ties.
pub const TIED: u64 = 256;

/// How much of a path is read first, to see whether the rest is known.
const STEP: usize = 64;

/// How many records are enough to tell a format that knows some of them; to ask is to read each several times.
const SURE: usize = 8;

/// Every format, in the order in which they are asked.
pub const FORMATS: [&dyn Format; 5] = [&Native, &Claude, &Pi, &Codex, &Kimi];

/// Returns the format of this name.
pub fn by_name(name: &str) -> Option<&'static dyn Format> {
    FORMATS.into_iter().find(|format| format.name() == name)
}

/// Returns the format that knows the most of the first of these records, else of all, else that one which some resemble.
pub fn detect(records: &[Raw<'_>]) -> Option<&'static dyn Format> {
    let known =
        |format: &dyn Format, of: &[Raw<'_>]| of.iter().filter(|of| format.knows(**of)).count();
    let most = |of: &[Raw<'_>]| {
        let known = FORMATS.map(|format| (known(format, of), format)).into_iter();
        known.filter(|(n, _)| *n > 0).max_by_key(|(n, _)| *n).map(|(_, format)| format)
    };
    let resembles = |format: &&dyn Format| records.iter().any(|record| format.resembles(*record));
    let first = records.get(..SURE).unwrap_or(records);
    most(first).or_else(|| most(records)).or_else(|| FORMATS.into_iter().find(resembles))
}

/// Returns a field that is a string, decoded.
fn text(record: Raw<'_>, key: &str) -> Option<String> {
    string(record.get(key))
}

/// Returns a value that is a string, decoded.
fn string(value: Option<Raw<'_>>) -> Option<String> {
    value?.text().map(std::borrow::Cow::into_owned)
}

/// Returns a moment in RFC 3339.
fn moment(value: Option<Raw<'_>>) -> Option<Timestamp> {
    value?.text().and_then(|time| Timestamp::parse(&time))
}

/// Returns what a model says that it used: the numbers under the names of input, output, cache read and cache written.
fn usage(usage: Raw<'_>, names: [&str; 4]) -> Usage {
    let [input, output, cache_read, cache_write] =
        names.map(|name| usage.get(name).and_then(Raw::u64).unwrap_or(0));
    Usage { input, output, cache_read, cache_write }
}

/// Returns what a model said that it used, as Anthropic's interface writes it.
fn anthropic_usage(usage: &Usage) -> serde_json::Value {
    let numbers = [usage.input, usage.output, usage.cache_read, usage.cache_write];
    let fields = ANTHROPIC_USAGE.into_iter().zip(numbers);
    fields.map(|(name, n)| (name.to_owned(), serde_json::Value::from(n))).collect()
}

/// The names under which Anthropic's interface says what was used.
const ANTHROPIC_USAGE: [&str; 4] =
    ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];

/// Returns a value as words: a string as it is, anything else as its JSON.
fn shown(value: Raw<'_>) -> String {
    value.text().map_or_else(
        || String::from_utf8_lossy(value.bytes()).into_owned(),
        std::borrow::Cow::into_owned,
    )
}

/// Returns the tie of a sub-agent whose id stands behind that of its parent.
fn tie_of_sub_agent(session: &str) -> Option<Tie> {
    let (parent, _) = session.rsplit_once('/')?;
    Some(Tie { kind: TieKind::SubAgent, other: parent.to_owned() })
}

/// Returns a block that is not understood.
fn other(item: Raw<'_>) -> Block {
    let name = text(item, "type").unwrap_or_else(|| "unknown".to_owned());
    Block::Other { name, json: json(item) }
}

/// Returns a value's JSON as it stands in the record.
fn json(value: Raw<'_>) -> String {
    String::from_utf8_lossy(value.bytes()).into_owned()
}

/// Returns a block as Anthropic's interface writes it.
fn anthropic(item: Raw<'_>) -> Block {
    let field = |key| text(item, key).unwrap_or_default();
    match text(item, "type").as_deref() {
        Some("text") => Block::Text(field("text")),
        Some("thinking") => Block::Thinking(Thinking {
            text: field("thinking"),
            signature: text(item, "signature").filter(|signature| !signature.is_empty()),
            is_redacted: false,
        }),
        Some("redacted_thinking") => Block::Thinking(Thinking {
            text: String::new(),
            signature: text(item, "data"),
            is_redacted: true,
        }),
        Some("image") => {
            let bytes = item.bytes().len();
            let source = item.get("source");
            let field = |key| source.and_then(|source| text(source, key));
            Block::Image(match (field("data"), field("url")) {
                (Some(data), _) => {
                    Image { bytes, media: field("media_type"), source: Source::Data(data) }
                }
                (None, Some(url)) => Image::at(&url, bytes),
                (None, None) => Image { bytes, media: None, source: Source::Elsewhere },
            })
        }
        _ => other(item),
    }
}

/// Returns a record as the line to append.
fn line(record: &serde_json::Value) -> Vec<u8> {
    record.to_string().into_bytes()
}
