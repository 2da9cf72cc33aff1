//! Commands: what an operation did, with the details that people and programs need.
//!
//! Invariant: the number of a command or of one of its fields is never reused.

use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    CheckpointNumber, EntryId, FileNumber, OperationNumber, Text,
    tagged::{Field, Malformed, Tagged, each_field, put_field, take_field},
};

macro_rules! commands {
    ($($(#[$doc:meta])* $code:literal $name:ident $word:literal {
        $($(#[$field_doc:meta])* $tag:literal $field:ident: $type:ty,)*
    })+) => {
        /// The command that an operation executed.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Command {
            $($(#[$doc])* $name { $($(#[$field_doc])* $field: $type,)* },)+
            /// A command written by a newer program.
            Unknown {
                /// Its number.
                code: u64,
            },
        }

        impl Command {
            /// Returns its name in the command line and in JSON.
            pub fn as_str(&self) -> &'static str {
                match self {
                    $(Self::$name { .. } => $word,)+
                    Self::Unknown { .. } => "unknown",
                }
            }

            /// Returns its non-empty fields as a JSON object.
            pub fn to_json(&self) -> Value {
                if let Self::New { about } = self {
                    return parsed("about", about.to_text().into());
                }
                let mut object = Map::new();
                match self {
                    $(Self::$name { $($field,)* } => {
                        $(put_json(&mut object, stringify!($field), $field);)*
                    })+
                    Self::Unknown { code } => {
                        object.insert("code".to_owned(), (*code).into());
                    }
                }
                Value::Object(object)
            }
        }

        impl Tagged for Command {
            fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$name { $($field,)* } => {
                        #[allow(unused_mut, clippy::allow_attributes, reason = "some have no field")]
                        let mut fields = Vec::new();
                        $(Field::put($field, $tag, &mut fields);)*
                        put_field($code, &fields, out);
                    })+
                    // A program never writes a command that it does not know.
                    Self::Unknown { code } => put_field(*code, &Vec::new(), out),
                }
            }

            fn read(mut bytes: &[u8], unknown: &mut Vec<u64>) -> Result<Self, Malformed> {
                let (code, fields) = take_field(&mut bytes)?;
                if !bytes.is_empty() {
                    return Err(Malformed("a command appears twice"));
                }
                match code {
                    $($code => {
                        $(let mut $field = <$type>::default();)*
                        each_field(fields, |tag, payload| {
                            // Some commands have no fields.
                            let _ = payload;
                            match tag {
                                $($tag => Field::take(&mut $field, payload, unknown)?,)*
                                other => unknown.push(other),
                            }
                            Ok(())
                        })?;
                        Ok(Self::$name { $($field,)* })
                    })+
                    code => {
                        unknown.push(code);
                        Ok(Self::Unknown { code })
                    }
                }
            }

            fn texts(&mut self, each: &mut dyn FnMut(&mut Text)) {
                match self {
                    $(Self::$name { $($field,)* } => {
                        let _ = &each;
                        $(Field::texts($field, each);)*
                    })+
                    Self::Unknown { .. } => {}
                }
            }
        }
    };
}

commands! {
    /// A session was created.
    1 New "new" {
        /// The environment it started in, as a JSON object: system, session, workspace.
        1 about: Text,
    }
    /// Records were appended.
    2 Append "append" {
        /// The branch.
        1 branch: Text,
        /// The maximum number of characters of a tool result.
        2 limit: Option<u64>,
        /// Events along the way, as a JSON list.
        3 events: Option<Text>,
    }
    /// A branch was created or renamed.
    3 Branch "branch" {
        /// The branch.
        1 branch: Text,
        /// The previous name of the branch.
        2 from: Option<Text>,
    }
    /// Another branch became the current one.
    4 Switch "switch" {
        /// The branch before.
        1 from: Text,
        /// The branch now.
        2 branch: Text,
    }
    /// A checkpoint was set at the session's position.
    5 Checkpoint "checkpoint" {
        /// Its number.
        1 checkpoint: CheckpointNumber,
    }
    /// The current branch was reverted to an earlier position.
    6 Revert "revert" {
        /// To this checkpoint.
        1 checkpoint: Option<CheckpointNumber>,
        /// To this entry.
        2 entry: Option<EntryId>,
        /// To the end of this branch.
        3 branch: Option<Text>,
        /// The message that was added there.
        4 message: Option<Text>,
        /// The branch that preserves the previous position.
        5 left: Option<Text>,
    }
    /// The current branch was reset to before its first entry.
    7 Clear "clear" {
        /// The branch that preserves the previous position.
        1 left: Option<Text>,
    }
    /// Tool results were truncated.
    8 Truncate "truncate" {
        /// The branch.
        1 branch: Text,
        /// The branch that preserves the untruncated state.
        2 left: Option<Text>,
        /// The context window that the limit was computed from, in tokens.
        3 window: Option<u64>,
        /// The maximum number of characters of a result.
        4 limit: u64,
    }
    /// A summary replaced the older part of the branch.
    9 Compact "compact" {
        /// The branch.
        1 branch: Text,
        /// Who asked for it.
        2 trigger: Option<String>,
        /// How many tokens the context had before.
        3 pre_tokens: u64,
        /// How many tokens it has now.
        4 post_tokens: Option<u64>,
        /// The size of the context window, in tokens.
        5 window: u64,
        /// How many messages were summarised.
        6 summarised: u64,
        /// How many messages were kept unchanged.
        7 kept: u64,
        /// Which model wrote the summary.
        8 model: Option<String>,
        /// How long the compaction took.
        9 duration_ms: Option<u64>,
        /// Why only the fallback was written.
        10 fallback: Option<Text>,
        /// The branch that preserves the previous state.
        11 left: Option<Text>,
        /// Events along the way, as a JSON list.
        12 events: Option<Text>,
        /// The files that the summary names, as a JSON list.
        13 files: Option<Text>,
        /// What the summary no longer mentions of the messages that it represents, as a JSON list.
        14 losses: Option<Text>,
    }
    /// An operation was undone.
    10 Undo "undo" {
        /// The number of the undone operation.
        1 undoes: OperationNumber,
        /// The name of its command.
        2 command: String,
        /// The branches that preserve the records added since.
        3 left: Vec<Text>,
    }
    /// An undo was undone.
    11 Redo "redo" {
        /// The number of the undone operation.
        1 undoes: OperationNumber,
        /// The name of its command.
        2 command: String,
        /// The branches that preserve the records added since.
        3 left: Vec<Text>,
    }
    /// The session, or one of its branches, was hidden from lists or shown again.
    12 Hide "hide" {
        /// Whether it is hidden now.
        1 hidden: bool,
        /// The branch.
        2 branch: Option<Text>,
    }
    /// An agent's file became the live file.
    13 Attach "attach" {
        /// The file's number; none if the live file was detached.
        1 file: Option<FileNumber>,
        /// The branch that preserves the session's previous position.
        2 left: Option<Text>,
    }
    /// Files of an agent were imported.
    14 Import "import" {
        /// How many files.
        1 files: u64,
        /// Whether more of the same import follows.
        2 part: bool,
    }
    /// Changes by another program to the live file, or to a file that was set aside, were imported.
    15 CatchUp "catch-up" {
        /// How many entries are new.
        1 entries: u64,
        /// The branch that the new entries joined, or the one created for the other program's records.
        2 branch: Option<Text>,
        /// The branch that preserves the previous position of the current branch.
        3 left: Option<Text>,
    }
    /// Bytes were redacted.
    17 Redact "redact" {
        /// The number of lines.
        1 lines: u64,
        /// The rule that found them.
        2 rule: Option<String>,
        /// Whether the whole conversation was redacted.
        3 whole: bool,
        /// Who asked for it.
        4 by: Option<Text>,
        /// Why.
        5 reason: Option<Text>,
    }
    /// A change was requested and is waiting.
    19 Later "later" {
        /// The name of its command.
        1 verb: String,
    }
}

/// Adds a field to a JSON object, unless it is absent.
fn put_json(object: &mut Map<String, Value>, name: &str, field: &impl Serialize) {
    let value = serde_json::to_value(field).unwrap_or_default();
    if !value.is_null() {
        object.insert(name.to_owned(), parsed(name, value));
    }
}

/// Returns the value of a field; for fields whose text is JSON, returns the parsed JSON.
fn parsed(field: &str, value: Value) -> Value {
    let is_json = matches!(field, "about" | "events" | "files" | "losses");
    let text = value.as_str().filter(|_| is_json);
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(value)
}

impl Command {
    /// Returns the operation that this one undoes.
    pub fn undoes(&self) -> Option<OperationNumber> {
        match self {
            Self::Undo { undoes, .. } | Self::Redo { undoes, .. } => Some(*undoes),
            _ => None,
        }
    }

    /// Returns true if it permanently deleted bytes.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Redact { .. })
    }

    /// Returns true if it moved to another place in the conversation: the entries that it added repeat earlier ones.
    pub fn goes_elsewhere(&self) -> bool {
        matches!(
            self,
            Self::Switch { .. }
                | Self::Revert { .. }
                | Self::Clear { .. }
                | Self::Truncate { .. }
                | Self::Undo { .. }
                | Self::Redo { .. }
        )
    }

    /// Returns true if the turns among the entries it added began earlier and are only repeated.
    pub fn says_again(&self) -> bool {
        self.goes_elsewhere() || matches!(self, Self::Compact { .. })
    }

    /// Returns true if it moved the conversation: afterwards the model sees something else.
    pub fn moves(&self) -> bool {
        self.says_again() || matches!(self, Self::Append { .. })
    }

    /// Returns true if it added something new to the conversation; a move, or a repetition of earlier entries, does not.
    pub fn speaks(&self) -> bool {
        matches!(self, Self::New { .. } | Self::Append { .. })
    }

    /// Returns true if it only imported records that another program wrote.
    pub fn takes_in(&self) -> bool {
        matches!(self, Self::Import { .. } | Self::CatchUp { .. })
    }
}

impl Default for Command {
    fn default() -> Self {
        Self::Unknown { code: 0 }
    }
}
