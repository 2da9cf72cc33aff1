//! Traits: the properties that all records and all sessions of a format share.

use crate::{
    json::Raw,
    model::{Kind, Message},
};

/// The properties of a format, as one constant.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and none excludes another"
)]
pub struct Traits {
    /// The format's name, for ever.
    pub name: &'static str,
    /// Where its agents keep sessions.
    pub folders: &'static [Folder],
    /// The names of the programs that load its sessions.
    pub programs: &'static [&'static str],
    /// How long its agent keeps sessions, if it deletes them by itself.
    pub cleanup: Option<Cleanup>,
    /// The names of files in which its agent keeps keys, in small letters, wherever they lie.
    pub secrets: &'static [&'static str],
    /// What to know before the agent is started, if its newest version resumes nothing.
    pub ended: Option<&'static str>,
    /// Whether the agent resumes no file without a message.
    pub resumes_messages_only: bool,
    /// Where its processes say which session they have open, if they do.
    pub claim: Option<Claim>,
    /// The process that its agent leaves in the background, if it does.
    pub service: Option<Service>,
    /// The name of the file that the agent reads, if it archives older states of it under names of its own.
    pub live_name: Option<&'static str>,
    /// Whether another file may take the place of one that the agent reads.
    pub is_rotatable: bool,
    /// Whether the parent of a record is always in the same file.
    pub has_parents_in_file: bool,
    /// What its agent reads of a physical line.
    pub line: PhysicalLine,
    /// Whether records have names of their own.
    pub has_names: bool,
    /// Whether records say when they were written.
    pub has_times: bool,
    /// Whether the agent sets checkpoints itself.
    pub has_checkpoints: bool,
    /// Whether sub-agents of some versions work in the session's own file.
    pub has_sub_agents_within: bool,
    /// The kinds of records that tell the agent's omissions; no other is read for them.
    pub omissions: &'static [Kind],
    /// Whether the first call of an answer without words is part of the answer's own record.
    pub joins_first_call: bool,
    /// Whether all calls of an answer are part of the answer's own record.
    pub joins_calls: bool,
    /// If the agent sends a result only right behind its call, moves none, and leaves out calls that nothing answered: its words
    /// in place of a result that is missing, and of one that had not come at the end.
    pub takes_results_in_place: Option<[&'static str; 2]>,
    /// Whether a record can be written as a caller wrote it.
    pub takes_records: bool,
    /// How the agent sends results as they stand, if it does, and what it puts in place of one that is missing.
    pub unanswered: Option<Unanswered>,
    /// The nearby record that a new one is written like.
    pub nearby: Nearby,
    /// The words that the agent puts around a summary as it sends it, and does not write.
    pub around_summary: Option<[&'static str; 2]>,
    /// How a summary begins that a compaction writes, before its own words.
    pub summary_opening: &'static str,
    /// Whether a compaction holds the whole system prompt as it then is, so that no message of the system before it stays.
    pub retells_system: bool,
    /// Returns what a record without messages says: a title, say, or the progress of a sub-agent.
    pub remarks: fn(Raw<'_>) -> Vec<Message>,
    /// Bytes that each record has whose messages say more than the record does: words that the agent puts around its own.
    pub worded: &'static [&'static str],
    /// Bytes that each record has whose answer the agent moved to a file.
    pub moved: &'static [&'static str],
    /// How a note begins that is written in the agent's own way, before its words.
    pub note_opening: &'static str,
    /// The interface whose blocks the records hold as a model sent them, if it is one.
    pub interface: Option<Interface>,
    /// The name that records have in place of a model's where no model answered.
    pub no_model: Option<&'static str>,
}

/// What an agent reads of a physical line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhysicalLine {
    /// The records on it.
    Records,
    /// A record, if that is all it holds.
    OneRecord,
    /// The same; a byte order mark before the record is passed over.
    OneRecordOrMarked,
    /// The same as the first; a CR alone ends a physical line, too.
    OneRecordOfAnyEnd,
}

impl PhysicalLine {
    /// Returns whether this white space between two records leaves both on one physical line.
    pub fn joins(self, separator: &[u8]) -> bool {
        let ends: &[u8] = if self == Self::OneRecordOfAnyEnd { b"\n\r" } else { b"\n" };
        !separator.iter().any(|byte| ends.contains(byte))
    }
}

/// What an agent puts in for a call that nothing answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// Nothing: all messages are sent as they stand.
    Nothing,
    /// An answer of its own.
    Answer {
        /// Its words.
        words: &'static str,
        /// Whether it says that the tool failed.
        is_error: bool,
        /// Whether only results before the next message of the user or the model count, so that the answer comes after
        /// these; else a result anywhere counts, the answer comes after its call, and results without a call are left out.
        is_by_turn: bool,
    },
}

/// How long an agent keeps a session that nobody goes on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleanup {
    /// The file of the agent's settings, in its own folder.
    pub settings: &'static str,
    /// The field in it that says how many days.
    pub field: &'static str,
    /// How many days without that field.
    pub days: u64,
}

/// Files of JSON in which an agent's processes say which session they have open.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// Where they are.
    pub place: ClaimPlace,
    /// The field with the id of the process.
    pub process: &'static str,
    /// The field with the start time of the process, as the system gives it.
    pub started: &'static str,
}

/// Where the files are in which processes say which session they have open.
#[derive(Clone, Copy, Debug)]
pub enum ClaimPlace {
    /// Next to the session's file, under its name with this ending.
    Beside(&'static str),
    /// One for each process.
    Folder {
        /// The folder, in the agent's own.
        name: &'static str,
        /// The field with the session's id.
        session: &'static str,
    },
}

/// A process that an agent leaves running in the background.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// The argument that tells its command line from others of the agent.
    pub argument: &'static str,
    /// The command that ends it.
    pub stop: &'static str,
}

/// An interface of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// Anthropic's messages.
    Anthropic,
    /// `OpenAI`'s responses.
    Openai,
}

/// A folder in which an agent keeps its sessions.
#[derive(Clone, Copy, Debug)]
pub struct Folder {
    /// The agent.
    pub agent: &'static str,
    /// The variable that names the agent's own folder, if the agent reads one.
    pub variable: Option<&'static str>,
    /// That folder in the user's home, where no variable names it, if it then has one.
    pub usual: Option<&'static str>,
    /// The folder in it that holds the sessions; if this is empty, it does so itself.
    pub sessions: &'static str,
    /// If the sessions lie in each folder of that one, the folder in there that holds them.
    pub each: Option<&'static str>,
    /// The folders in the agent's own that hold more of each session, in a folder named by its id.
    pub annexes: &'static [&'static str],
}

/// The nearby record that a new one is written like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nearby {
    /// No record.
    Nothing,
    /// The head: what it says of the program and its folder is said again.
    Head,
    /// The last one of the file, from which the records are counted.
    Last,
    /// The last one of the path that says which model answers, else the last one of the file.
    Model,
}

impl Traits {
    /// Returns whether a name in place of a model's is one.
    pub fn is_model(&self, name: &str) -> bool {
        Some(name) != self.no_model
    }

    /// Returns the traits of most formats, under a name.
    pub(super) const fn named(name: &'static str) -> Self {
        Self {
            name,
            folders: &[],
            programs: &[],
            cleanup: None,
            secrets: &[],
            ended: None,
            resumes_messages_only: false,
            claim: None,
            service: None,
            live_name: None,
            is_rotatable: true,
            has_parents_in_file: false,
            has_names: true,
            has_times: true,
            has_checkpoints: false,
            has_sub_agents_within: false,
            line: PhysicalLine::Records,
            omissions: &[],
            joins_first_call: false,
            joins_calls: false,
            takes_results_in_place: None,
            takes_records: true,
            unanswered: None,
            nearby: Nearby::Nothing,
            around_summary: None,
            summary_opening: "",
            retells_system: false,
            remarks: |_| Vec::new(),
            worded: &[],
            moved: &[],
            note_opening: "",
            interface: None,
            no_model: None,
        }
    }
}
