//! Commands: what an operation did, with the details that a person or a program should know.
//!
//! Invariant: the number of a command, and of each of its fields, never gets another meaning.

use serde_json::{Map, Value};

use super::{
    CheckpointNumber, EntryId, FileNumber, OperationNumber, Text,
    tagged::{Field, Malformed, Tagged, each_field, put_field, take_field},
};

macro_rules! commands {
    ($($(#[$doc:meta])* $code:literal $name:ident $word:literal {
        $($(#[$field_doc:meta])* $tag:literal $field:ident: $type:ty,)*
    })+) => {
        /// The command of an operation.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Command {
            $($(#[$doc])* $name { $($(#[$field_doc])* $field: $type,)* },)+
            /// A command of a newer program.
            Unknown {
                /// Its number.
                code: u64,
            },
        }

        impl Command {
            /// Returns the word by which people know it.
            pub fn as_str(&self) -> &'static str {
                match self {
                    $(Self::$name { .. } => $word,)+
                    Self::Unknown { .. } => "unknown",
                }
            }

            /// Returns its fields as a JSON object, without those that hold nothing.
            pub fn to_json(&self) -> Value {
                if let Self::New { about } = self {
                    return parsed("about", about.to_text().into());
                }
                let mut object = Map::new();
                match self {
                    $(Self::$name { $($field,)* } => {
                        $(object.extend(Shown::shown($field).map(|value| {
                            (stringify!($field).to_owned(), parsed(stringify!($field), value))
                        }));)*
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
                            // Some have no field.
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
    /// A session begins.
    1 New "new" {
        /// Its surroundings, as a JSON object: system, session, workspace.
        1 about: Text,
    }
    /// Records were appended.
    2 Append "append" {
        /// The branch.
        1 branch: Text,
        /// The most characters that a tool's answer was allowed.
        2 limit: Option<u64>,
        /// What happened on the way, as a JSON list.
        3 events: Option<Text>,
    }
    /// A branch was made, or got another name.
    3 Branch "branch" {
        /// The branch.
        1 branch: Text,
        /// The name that it had before.
        2 from: Option<Text>,
    }
    /// Another branch became the current one.
    4 Switch "switch" {
        /// The branch before.
        1 from: Text,
        /// The branch now.
        2 branch: Text,
    }
    /// A checkpoint was put where the session was.
    5 Checkpoint "checkpoint" {
        /// Its number.
        1 checkpoint: CheckpointNumber,
    }
    /// The current branch went back.
    6 Revert "revert" {
        /// To this checkpoint.
        1 checkpoint: Option<CheckpointNumber>,
        /// To this entry.
        2 entry: Option<EntryId>,
        /// To the end of this branch.
        3 branch: Option<Text>,
        /// With this message, said there.
        4 message: Option<Text>,
        /// The branch that keeps where it was.
        5 left: Option<Text>,
    }
    /// The current branch went back to before its first entry.
    7 Clear "clear" {
        /// The branch that keeps where it was.
        1 left: Option<Text>,
    }
    /// Answers of tools were cut.
    8 Truncate "truncate" {
        /// The branch.
        1 branch: Text,
        /// The branch that keeps the uncut state.
        2 left: Option<Text>,
        /// The window from which the limit was computed, in tokens.
        3 window: Option<u64>,
        /// How many characters an answer may have.
        4 limit: u64,
    }
    /// A summary took the place of the older part.
    9 Compact "compact" {
        /// The branch.
        1 branch: Text,
        /// Who asked for it.
        2 trigger: Option<String>,
        /// How many tokens the context had.
        3 pre_tokens: u64,
        /// How many it has now.
        4 post_tokens: Option<u64>,
        /// How many fit in.
        5 window: u64,
        /// How many messages were summarised.
        6 summarised: u64,
        /// How many stay as they are.
        7 kept: u64,
        /// Which model wrote the summary.
        8 model: Option<String>,
        /// How long that took.
        9 duration_ms: Option<u64>,
        /// Why there is only the fallback.
        10 fallback: Option<Text>,
        /// The branch that keeps the state before.
        11 left: Option<Text>,
        /// What happened on the way, as a JSON list.
        12 events: Option<Text>,
        /// The files that the summary names, as a JSON list.
        13 files: Option<Text>,
        /// What the summary no longer names of the messages that it represents, as a JSON list.
        14 losses: Option<Text>,
    }
    /// An operation was taken back.
    10 Undo "undo" {
        /// The operation's number.
        1 undoes: OperationNumber,
        /// Its command's word.
        2 command: String,
        /// The branches that keep the records since.
        3 left: Vec<Text>,
    }
    /// An undo was taken back.
    11 Redo "redo" {
        /// The operation's number.
        1 undoes: OperationNumber,
        /// Its command's word.
        2 command: String,
        /// The branches that keep the records since.
        3 left: Vec<Text>,
    }
    /// The session, or a branch of it, was left out of lists, or shown in them again.
    12 Hide "hide" {
        /// Whether it is left out.
        1 hidden: bool,
        /// The branch.
        2 branch: Option<Text>,
    }
    /// An agent's file became the live file.
    13 Attach "attach" {
        /// Its number; none when the live file was let go.
        1 file: Option<FileNumber>,
        /// The branch that keeps where the session was.
        2 left: Option<Text>,
    }
    /// Files of an agent were taken in.
    14 Import "import" {
        /// How many files.
        1 files: u64,
        /// Whether more of the same import follows.
        2 part: bool,
    }
    /// Changes by another program to the live file, or to one that was set aside, were taken in.
    15 CatchUp "catch-up" {
        /// How many entries are new.
        1 entries: u64,
        /// The branch that they joined, or that keeps the other program's records.
        2 branch: Option<Text>,
        /// The branch that keeps where the current one was.
        3 left: Option<Text>,
    }
    /// Bytes were taken out of lines.
    17 Redact "redact" {
        /// Of how many lines.
        1 lines: u64,
        /// The rule by which they were found.
        2 rule: Option<String>,
        /// Whether all that was said in the session went.
        3 whole: bool,
        /// Who asked for it.
        4 by: Option<Text>,
        /// Why.
        5 reason: Option<Text>,
    }
    /// A change was asked for, and waits.
    19 Later "later" {
        /// The word of its command.
        1 verb: String,
    }
}

/// A field that is shown if it holds something.
trait Shown {
    fn shown(&self) -> Option<Value>;
}

impl Shown for u64 {
    fn shown(&self) -> Option<Value> {
        Some((*self).into())
    }
}

macro_rules! number_shown {
    ($($type:ident),+) => {$(
        impl Shown for $type {
            fn shown(&self) -> Option<Value> {
                self.get().shown()
            }
        }
    )+};
}

number_shown!(CheckpointNumber, FileNumber, OperationNumber);

impl Shown for bool {
    fn shown(&self) -> Option<Value> {
        Some((*self).into())
    }
}

impl Shown for String {
    fn shown(&self) -> Option<Value> {
        Some(self.as_str().into())
    }
}

impl Shown for Text {
    fn shown(&self) -> Option<Value> {
        Some(self.to_text().into())
    }
}

impl Shown for EntryId {
    fn shown(&self) -> Option<Value> {
        Some(self.to_string().into())
    }
}

impl<T: Shown> Shown for Option<T> {
    fn shown(&self) -> Option<Value> {
        self.as_ref()?.shown()
    }
}

impl<T: Shown> Shown for Vec<T> {
    fn shown(&self) -> Option<Value> {
        Some(self.iter().filter_map(Shown::shown).collect())
    }
}

/// Returns the value of a field; of some fields, the JSON in its text.
fn parsed(field: &str, value: Value) -> Value {
    let is_json = matches!(field, "about" | "events" | "files" | "losses");
    let text = value.as_str().filter(|_| is_json);
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(value)
}

impl Command {
    /// Returns the operation that this one takes back.
    pub fn undoes(&self) -> Option<OperationNumber> {
        match self {
            Self::Undo { undoes, .. } | Self::Redo { undoes, .. } => Some(*undoes),
            _ => None,
        }
    }

    /// Returns true if it deleted bytes for ever.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Redact { .. })
    }

    /// Returns whether it went elsewhere in the conversation: what it added says again what was said before.
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

    /// Returns whether the turns among what it added were begun before, and are only said again.
    pub fn says_again(&self) -> bool {
        self.goes_elsewhere() || matches!(self, Self::Compact { .. })
    }

    /// Returns whether it moved the conversation: what the model sees next is different after it.
    pub fn moves(&self) -> bool {
        self.says_again() || matches!(self, Self::Append { .. })
    }

    /// Returns whether somebody spoke with it: what goes elsewhere, or says again what was said, only moves the conversation.
    pub fn speaks(&self) -> bool {
        matches!(self, Self::New { .. } | Self::Append { .. })
    }

    /// Returns whether it only took in records that another program wrote.
    pub fn takes_in(&self) -> bool {
        matches!(self, Self::Import { .. } | Self::CatchUp { .. })
    }
}

impl Default for Command {
    fn default() -> Self {
        Self::Unknown { code: 0 }
    }
}
