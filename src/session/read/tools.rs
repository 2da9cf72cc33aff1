//! Tools: which tool a call on a path uses, and what it reads or runs.

use std::collections::BTreeMap;

use crate::{
    json::{Kind as JsonKind, Raw},
    model::{Block, EntryNumber, Kind, first_line, shell_line},
    session::{SessionError, Stored},
    wire::{Format, Graph},
};

/// How many entries before a result are searched for its call.
pub(crate) const CALL_WITHIN: usize = 64;

/// The arguments that say what a call reads or runs, most specific first.
const SUBJECTS: [&str; 14] = [
    "file_path",
    "notebook_path",
    "path",
    "filePath",
    "target_file",
    "command",
    "cmd",
    "script",
    "code",
    "url",
    "pattern",
    "query",
    "prompt",
    "description",
];
/// The commands of tools that edit files.
const EDITS: [&str; 5] = ["view", "create", "str_replace", "insert", "undo_edit"];
/// The maximum length of a subject in characters.
const TOLD: usize = 200;

/// A tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Called {
    /// The tool.
    pub(crate) tool: String,
    /// What it reads or runs, if its arguments say so.
    pub(crate) subject: Option<String>,
    /// The line of the record with the call.
    pub(crate) line: Vec<u8>,
}

/// Returns the call with this id from the last of these entries that has one.
pub(crate) fn call(
    graph: &dyn Graph,
    format: &dyn Format,
    entries: &[EntryNumber],
    id: &str,
) -> Result<Option<Called>, SessionError> {
    for &entry in entries.iter().rev() {
        if graph.record(entry)?.kind != Kind::Assistant {
            continue;
        }
        if let Some(called) = called(format, &graph.line(entry)?, id) {
            return Ok(Some(called));
        }
    }
    Ok(None)
}

/// Returns the tools of all calls of a session by call id. If an id is reused, the first call counts.
pub(crate) fn of_all(session: &Stored<'_>) -> Result<BTreeMap<String, String>, SessionError> {
    const PIECE: usize = 4096;
    let mut tools = BTreeMap::new();
    let held = EntryNumber::FIRST..session.state.next_entry();
    for range in EntryNumber::batches(held, PIECE) {
        let records = session.store.records(session.key, range)?;
        let said = records.iter().filter(|record| record.kind == Kind::Assistant);
        let said: Vec<EntryNumber> = said.map(|record| record.n).collect();
        session.store.lines(session.key, &said, &mut |_, line| {
            // A damaged line names no tool.
            let Ok(line) = line else { return };
            let messages = Raw::object(&line).map(|record| session.format.messages(record));
            for block in messages.into_iter().flatten().flat_map(|message| message.blocks) {
                if let Block::Call { id, name, .. } = block {
                    tools.entry(id).or_insert(name);
                }
            }
        })?;
    }
    Ok(tools)
}

/// Returns the call with this id from a record.
pub(crate) fn called(format: &dyn Format, line: &[u8], wanted: &str) -> Option<Called> {
    let messages = format.messages(Raw::object(line)?);
    let mut blocks = messages.iter().flat_map(|message| &message.blocks);
    blocks.find_map(|block| match block {
        Block::Call { id, name, input, .. } if id == wanted => {
            Some(Called { tool: name.clone(), subject: subject(input), line: line.to_vec() })
        }
        _ => None,
    })
}

/// Returns true if the arguments of a call make the tool run a command line.
pub(crate) fn is_command(input: &str) -> bool {
    let arguments = Raw::value(input.as_bytes());
    // A program that calls tools, as in newer versions of Codex.
    if arguments.is_none() {
        return input.contains("exec_command(");
    }
    ["command", "cmd", "script"].into_iter().any(|key| {
        let line = arguments.and_then(|arguments| words(arguments.get(key)?));
        // The command of an editor tool is one of a few fixed words.
        line.is_some_and(|line| !EDITS.contains(&line.as_str()))
    })
}

/// Returns what a tool reads or runs according to its arguments, on one line: a path, a command, or else other text.
pub(crate) fn subject(input: &str) -> Option<String> {
    let said = match Raw::value(input.as_bytes()) {
        Some(arguments) if arguments.kind() == JsonKind::Object => {
            let of = |key| words(arguments.get(key)?);
            SUBJECTS.into_iter().find_map(of)
        }
        Some(arguments) => words(arguments),
        // A patch names its files after its first line.
        None => {
            let file =
                |line: &str| Some(line.strip_prefix("*** ")?.split_once("File: ")?.1.to_owned());
            input.lines().find_map(file).or_else(|| Some(input.to_owned()))
        }
    };
    Some(first_line(&said?)?.chars().take(TOLD).collect())
}

/// Returns a text, or a list of words as a command line.
fn words(value: Raw<'_>) -> Option<String> {
    if value.kind() == JsonKind::Array {
        return shell_line(&value.items().filter_map(Raw::text).collect::<Vec<_>>());
    }
    value.text().map(std::borrow::Cow::into_owned).filter(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_says_what_it_reads_or_runs() {
        let check =
            |input: &str, expected| assert_eq!(subject(input).as_deref(), expected, "{input}");
        check(r#"{"limit":40,"file_path":"/w/a.rs"}"#, Some("/w/a.rs"));
        check(r#"{"command":"\n  seq 9000\nls","description":"Count"}"#, Some("seq 9000"));
        check(r#"{"command":["bash","-lc","make test"],"workdir":"/w"}"#, Some("make test"));
        check(r#"{"command":["rg","-n","needle"]}"#, Some("rg -n needle"));
        check(r#"{"pattern":"needle","path":"/w"}"#, Some("/w"));
        check(r#"{"cmd":"","query":"kettles"}"#, Some("kettles"));
        check(r#"["git","log"]"#, Some("git log"));
        check("*** Begin Patch\n*** Update File: src/a.rs\n@@\n-a\n+b", Some("src/a.rs"));
        check("{}", None);
        check(r#"{"n":3}"#, None);
        assert_eq!(subject(&"x".repeat(900)).map(|said| said.len()), Some(TOLD));
    }
}
