//! Traits: the properties that all records and sessions of a format share.

use crate::{
    json::Raw,
    model::{Kind, Message},
    wire::{EventField, Hooks},
};

/// The properties of a format, as one constant.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and none excludes another"
)]
pub struct Traits {
    /// The format's name, which never changes.
    pub name: &'static str,
    /// The folders where its agents store sessions.
    pub folders: &'static [Folder],
    /// The names of the programs that load its sessions.
    pub programs: &'static [&'static str],
    /// How long its agent keeps sessions, if it deletes old ones itself.
    pub cleanup: Option<Cleanup>,
    /// The names, in lowercase, of files where its agent stores credentials, in any folder.
    pub secrets: &'static [&'static str],
    /// What the user should know before starting the agent, if its newest version cannot resume anything.
    pub ended: Option<&'static str>,
    /// True if the agent only resumes a file that contains a message.
    pub resumes_messages_only: bool,
    /// Where its processes record which session they have open, if they do.
    pub claim: Option<Claim>,
    /// The background process that its agent leaves running, if it does.
    pub service: Option<Service>,
    /// The name of the live file, if the agent archives older states of it under other names.
    pub live_name: Option<&'static str>,
    /// True if the live file may be replaced by another file.
    pub is_rotatable: bool,
    /// True if the parent of a record is always in the same file.
    pub has_parents_in_file: bool,
    /// The name of a file next to its sessions in which the agent lists them: a JSON object with one object for each session key,
    /// that of a conversation partner, with its `sessionId` and `updatedAt`.
    pub key_list: Option<&'static str>,
    /// What its agent reads of a physical line.
    pub line: PhysicalLine,
    /// True if records have names.
    pub has_names: bool,
    /// True if records have timestamps.
    pub has_times: bool,
    /// True if the agent sets checkpoints itself.
    pub has_checkpoints: bool,
    /// True if `turn` shows the model its checkpoints and takes its D-Mails.
    pub shows_checkpoints: bool,
    /// True if some versions write sub-agents into the session's own file.
    pub has_sub_agents_within: bool,
    /// The kinds of records that may report something the agent left out. No other records are searched.
    pub omissions: &'static [Kind],
    /// True if the first call of an answer without text is in the answer's own record.
    pub joins_first_call: bool,
    /// True if all calls of an answer are in the answer's own record.
    pub joins_calls: bool,
    /// Set if the agent sends a result only directly after its call, never moves one, and drops unanswered calls. Contains the
    /// text that it sends for a missing result, and for one that was not recorded before the session ended.
    pub takes_results_in_place: Option<[&'static str; 2]>,
    /// True if a record can be written exactly as a caller supplies it.
    pub takes_records: bool,
    /// What the agent sends for a missing result, if it sends results in the order of the file.
    pub unanswered: Option<Unanswered>,
    /// The existing record that a new one copies its common fields from.
    pub nearby: Nearby,
    /// The text that the agent wraps around a summary when sending it, but does not write to the file.
    pub around_summary: Option<[&'static str; 2]>,
    /// The text that a compaction writes before the words of a summary.
    pub summary_opening: &'static str,
    /// True if a compaction contains the whole current system prompt, so that earlier system messages are dropped.
    pub retells_system: bool,
    /// Returns the text of a record without messages, such as a title or the progress of a sub-agent.
    pub remarks: fn(Raw<'_>) -> Vec<Message>,
    /// Byte strings that occur in each record whose messages say more than the record, because the agent adds text to it.
    pub worded: &'static [&'static str],
    /// Byte strings that occur in each record whose tool result was moved to a file.
    pub moved: &'static [&'static str],
    /// The text before a note that is written in the agent's own way.
    pub note_opening: &'static str,
    /// The API whose content blocks the records contain unchanged, if they do.
    pub interface: Option<Interface>,
    /// The placeholder that records have as the model's name if no model answered.
    pub no_model: Option<&'static str>,
    /// The field of the agent's events that says which session they are about.
    pub event: Option<EventField>,
    /// The settings that make the agent call a program on its events, if it has any.
    pub hooks: Option<&'static dyn Hooks>,
}

/// What an agent reads of a physical line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhysicalLine {
    /// The records on it.
    Records,
    /// One record, if the line contains nothing else.
    OneRecord,
    /// Like `OneRecord`, but a byte order mark before the record is skipped.
    OneRecordOrMarked,
    /// Like `Records`, but a CR alone also ends a physical line.
    OneRecordOfAnyEnd,
}

impl PhysicalLine {
    /// Returns true if two records with this white space between them share a physical line.
    pub fn joins(self, separator: &[u8]) -> bool {
        let ends: &[u8] = if self == Self::OneRecordOfAnyEnd { b"\n\r" } else { b"\n" };
        !separator.iter().any(|byte| ends.contains(byte))
    }
}

/// What an agent sends for a call without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// Nothing: messages are sent as they are.
    Nothing,
    /// A result that it makes up.
    Answer {
        /// Its text.
        words: &'static str,
        /// True if it is marked as a failure of the tool.
        is_error: bool,
        /// If true, only results before the next message of the user or model count, and the made-up result comes after these.
        /// If false, a result anywhere counts, the made-up result comes after its call, and results without a call are dropped.
        is_by_turn: bool,
    },
}

/// How long an agent keeps a session that nobody resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleanup {
    /// The agent's settings file, in its own folder.
    pub settings: &'static str,
    /// The setting with the number of days.
    pub field: &'static str,
    /// The default number of days.
    pub days: u64,
}

/// JSON files where an agent's processes record which session they have open.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// Where the files are.
    pub place: ClaimPlace,
    /// The field with the process id.
    pub process: &'static str,
    /// The field with the process's start time, as reported by the operating system.
    pub started: &'static str,
}

/// Where the files are in which processes record the session they have open.
#[derive(Clone, Copy, Debug)]
pub enum ClaimPlace {
    /// Next to the session's file; the name is the session file's name plus this suffix.
    Beside(&'static str),
    /// In a folder, one file per process.
    Folder {
        /// The folder, in the agent's own folder.
        name: &'static str,
        /// The field with the session id.
        session: &'static str,
    },
}

/// A process that an agent leaves running in the background.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// The argument that identifies its command line.
    pub argument: &'static str,
    /// The command that stops it.
    pub stop: &'static str,
}

/// The API of a model provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// Anthropic's Messages API.
    Anthropic,
    /// `OpenAI`'s Responses API.
    Openai,
}

/// A folder where an agent stores sessions.
#[derive(Clone, Copy, Debug)]
pub struct Folder {
    /// The agent.
    pub agent: &'static str,
    /// The environment variable that names the agent's own folder, if the agent reads one.
    pub variable: Option<&'static str>,
    /// The default for the agent's own folder, relative to the user's home; None if there is no default.
    pub usual: Option<&'static str>,
    /// The folder of sessions in it; empty if it contains the sessions itself.
    pub sessions: &'static str,
    /// If each subfolder of that folder has its own folder of sessions: the name of that folder.
    pub each: Option<&'static str>,
    /// Folders in the agent's own folder with more files of each session, in a subfolder named by its id.
    pub annexes: &'static [&'static str],
}

/// The existing record that a new one copies its common fields from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nearby {
    /// None.
    Nothing,
    /// The head. Its fields about the program and the working folder are repeated.
    Head,
    /// The last record of the file, which also provides the record count.
    Last,
    /// The last record of the path that names the model; else the last record of the file.
    Model,
}

impl Traits {
    /// Returns true if a model name is a real one, not the placeholder.
    pub fn is_model(&self, name: &str) -> bool {
        Some(name) != self.no_model
    }

    /// Returns the default traits, with this name.
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
            key_list: None,
            is_rotatable: true,
            has_parents_in_file: false,
            has_names: true,
            has_times: true,
            has_checkpoints: false,
            shows_checkpoints: false,
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
            event: None,
            hooks: None,
        }
    }
}
