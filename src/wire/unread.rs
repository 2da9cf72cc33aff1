//! Agents whose files are recognised but not yet read, so that none is mistaken for another format; and where they store them.
//!
//! ```text
//! Copilot CLI    {"type": "session.start", "data", "id", "timestamp", "parentId"}   a dot in each type, and data
//! kimi-code      {"type": "turn.prompt", "agentId", "time"}                         a dot, and a numeric time
//! Gemini CLI     {"sessionId", "projectHash"} {"$set"} {"$rewindTo"} {"type": "gemini"}, or one document of these
//! Qwen Code      {"uuid", "parentUuid", "sessionId", "message": {"parts"}}          or a systemPayload
//! opencode       a database, an export or documents with ids such as ses_.., msg_.., prt_..
//! OpenClaw       since 2026.9 a database with a table of transcript_events
//! ```
//!
//! Invariant: a file that a supported format reads is never claimed here because of one odd record.

use std::path::{Path, PathBuf};

use memchr::memmem;

use super::discover::User;
use crate::json::{Fields, Kind, Raw};

/// The first bytes of a database.
const DATABASE: &[u8] = b"SQLite format 3\0";

/// An agent, and a test whether a record is one of its own.
type Agent = (&'static str, fn(&Fields<'_>) -> bool);

const COPILOT: Agent = ("Copilot CLI", |record| {
    let has = |key| record.get(key).is_some();
    has_dotted_type(record) && has("data") && has("id") && has("timestamp")
});

const KIMI_CODE: Agent = ("kimi-code", |record| {
    let is_number = |key| record.get(key).is_some_and(|value| value.kind() == Kind::Number);
    let has = |key| record.get(key).is_some();
    let is_first = has("protocol_version") && is_number("created_at");
    let is_event = has_dotted_type(record) || record.text("kind").as_deref() == Some("event");
    let is_of_index = has("sessionId") && has("sessionDir") && has("workDir");
    is_first || is_of_index || is_event && is_number("time")
});

const GEMINI: Agent = ("Gemini CLI", |record| {
    let has = |key| record.get(key).is_some();
    has("sessionId") && has("projectHash")
        || has("$set")
        || has("$rewindTo")
        || has("id") && record.text("type").as_deref() == Some("gemini")
});

const QWEN: Agent = ("Qwen Code", |record| {
    let has = |key| record.get(key).is_some();
    let has_parts = record.get("message").is_some_and(|message| message.get("parts").is_some());
    has("uuid") && has("parentUuid") && has("sessionId") && (has_parts || has("systemPayload"))
});

const OPENCODE: Agent = ("opencode", |record| {
    let is_id = |id: Option<Raw<'_>>| {
        let id = id.and_then(Raw::text).unwrap_or_default();
        ["ses_", "msg_", "prt_"].iter().any(|tag| id.starts_with(tag))
    };
    is_id(record.get("id")) || is_id(record.get("info").and_then(|info| info.get("id")))
});

/// Since 2026.9, `OpenClaw` stores its sessions in databases.
const OPENCLAW: &str = "OpenClaw";

const AGENTS: [Agent; 5] = [COPILOT, KIMI_CODE, GEMINI, QWEN, OPENCODE];

/// For each agent, texts that all occur near the beginning of its documents.
const DOCUMENTS: [(&str, &[&[u8]]); 3] = [
    (GEMINI.0, &[b"\"projectHash\""]),
    (GEMINI.0, &[b"\"history\"", b"\"role\"", b"\"parts\""]),
    (OPENCODE.0, &[b"\"id\"", b"\"ses_"]),
];

/// For each agent, texts that all occur in its database: prefixes of ids, or the name of a table.
const DATABASES: [(&str, &[&[u8]]); 2] =
    [(OPENCODE.0, &[b"ses_", b"msg_", b"prt_"]), (OPENCLAW, &[b"transcript_events"])];

/// Where an agent stores session files: the agent, the environment variable for its own folder, the default of that folder in
/// the home, the folder of sessions in it, and the path of a session file below that, where `*` matches any characters.
type Place = (&'static str, Option<&'static str>, &'static str, &'static str, &'static str);

#[rustfmt::skip]
const PLACES: [Place; 6] = [
    (COPILOT.0, Some("COPILOT_HOME"), ".copilot", "session-state", "*/events.jsonl"),
    (KIMI_CODE.0, Some("KIMI_CODE_HOME"), ".kimi-code", "sessions", "*/session_*/agents/main/wire.jsonl"),
    (GEMINI.0, Some("GEMINI_CLI_HOME"), "", ".gemini/tmp", "*/chats/session-*"),
    (QWEN.0, None, ".qwen", "projects", "*/chats/*.jsonl"),
    (OPENCODE.0, Some("XDG_DATA_HOME"), ".local/share", "opencode", "opencode.db"),
    (OPENCLAW, Some("OPENCLAW_STATE_DIR"), ".openclaw", "agents", "*/agent/openclaw-agent.sqlite"),
];

/// A folder where an agent stores session files that are not yet read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadHome {
    /// The agent.
    pub agent: &'static str,
    /// The folder.
    pub path: PathBuf,
    /// The path of a session file below it; `*` matches any characters of a name.
    pub files: &'static str,
}

/// Returns the folders of session files that are not yet read.
pub fn homes(user: &User<'_>) -> Vec<UnreadHome> {
    let home_of = |place: Place| {
        let (agent, name, usual, folder, files) = place;
        let root = name.and_then(&user.variable).or_else(|| Some(user.home?.join(usual)))?;
        Some(UnreadHome { agent, path: root.join(folder), files })
    };
    PLACES.into_iter().filter_map(home_of).collect()
}

/// Returns the agent that wrote most of these records.
pub fn agent_of_most(records: &[Fields<'_>]) -> Option<&'static str> {
    let of = |knows: fn(&Fields<'_>) -> bool| records.iter().filter(|of| knows(of)).count();
    let (agent, _) = AGENTS.into_iter().find(|(_, knows)| of(*knows) * 2 > records.len())?;
    Some(agent)
}

/// Returns the agent of a file without a record of a supported format, by its records, its path, or its first bytes.
pub fn agent_of_rest(records: &[Fields<'_>], file: &Path, begin: &[u8]) -> Option<&'static str> {
    let of = |(_, knows): &Agent| records.iter().any(knows);
    let by_record = AGENTS.into_iter().find(of).map(|(agent, _)| agent);
    let by_place = || is_beside_kimi_code(file).then_some(KIMI_CODE.0);
    let holds = |texts: &&[&[u8]]| texts.iter().all(|text| memmem::find(begin, text).is_some());
    let document = || DOCUMENTS.into_iter().find(|(_, texts)| holds(texts));
    by_record.or_else(by_place).or_else(|| Some(document()?.0))
}

/// Returns true if a file that begins with these bytes is a database.
pub fn is_database(begin: &[u8]) -> bool {
    begin.starts_with(DATABASE)
}

/// Returns the agent of a database, by the file's name or its tables. `mentions` returns true if the file contains the given
/// bytes.
pub fn agent_of_database(file: &Path, mentions: &dyn Fn(&[u8]) -> bool) -> Option<&'static str> {
    if file.file_name().is_some_and(|name| name == "opencode.db") {
        return Some(OPENCODE.0);
    }
    let found = DATABASES.into_iter().find(|(_, texts)| texts.iter().all(|text| mentions(text)));
    found.map(|(agent, _)| agent)
}

/// Returns true if a file is in a session folder of kimi-code, `wd_../session_../`, at any depth.
pub(super) fn is_beside_kimi_code(file: &Path) -> bool {
    let begins = |folder: &Path, tag: &str| {
        folder.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(tag.as_bytes()))
    };
    file.ancestors().skip(1).any(|folder| {
        begins(folder, "session_") && folder.parent().is_some_and(|above| begins(above, "wd_"))
    })
}

fn has_dotted_type(record: &Fields<'_>) -> bool {
    record.text("type").is_some_and(|kind| kind.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(lines: &[&str]) -> Option<&'static str> {
        let records = lines.iter().filter_map(|line| Raw::object(line.as_bytes()));
        let records: Vec<_> = records.map(Raw::gathered).collect();
        agent_of_most(&records)
    }

    #[test]
    fn records_tell_their_agent() {
        let copilot =
            r#"{"type":"user.message","data":{},"id":"e","timestamp":"t","parentId":null}"#;
        assert_eq!(agent(&[copilot]), Some("Copilot CLI"));
        let code = [
            r#"{"type":"metadata","protocol_version":"1.5","created_at":17}"#,
            r#"{"type":"turn.prompt","agentId":"main","time":1}"#,
        ];
        assert_eq!(agent(&code), Some("kimi-code"));
        let gemini = [r#"{"sessionId":"s","projectHash":"h"}"#, r#"{"$set":{"messages":[]}}"#];
        assert_eq!(agent(&gemini), Some("Gemini CLI"));
        let qwen = r#"{"uuid":"u","parentUuid":null,"sessionId":"s","type":"user","message":{"role":"user","parts":[]}}"#;
        assert_eq!(agent(&[qwen]), Some("Qwen Code"));
        assert_eq!(agent(&[r#"{"info":{"id":"ses_1"},"messages":[]}"#]), Some("opencode"));
        // Kimi CLI's own, Claude Code's and pi's stay theirs.
        for other in [
            r#"{"type": "metadata", "protocol_version": "1.10"}"#,
            r#"{"uuid":"u","parentUuid":null,"sessionId":"s","type":"user","message":{"role":"user","content":[]}}"#,
            r#"{"type":"custom","customType":"a.b","data":{},"id":"e","parentId":null,"timestamp":"t"}"#,
        ] {
            assert_eq!(agent(&[other]), None, "{other}");
        }
        assert_eq!(agent(&[copilot, "{}", "{}"]), None);
    }

    #[test]
    fn documents_databases_and_places_tell_their_agent() {
        let rest = |file: &str, begin: &str| agent_of_rest(&[], Path::new(file), begin.as_bytes());
        assert_eq!(
            rest("a.json", "{\n \"sessionId\": \"s\",\n \"projectHash\": 1"),
            Some("Gemini CLI")
        );
        assert_eq!(rest("a.json", "{\n \"info\": {\n \"id\": \"ses_1\""), Some("opencode"));
        let code = "/h/sessions/wd_boat_1/session_2/state.json";
        assert_eq!(rest(code, "{\n"), Some("kimi-code"));
        assert_eq!(rest("/h/sessions/0f/2/state.json", "{\n"), None);
        let database = |file: &str, held: &str| {
            agent_of_database(Path::new(file), &|text| {
                memmem::find(held.as_bytes(), text).is_some()
            })
        };
        assert_eq!(database("a.db", "ses_1 msg_2 prt_3"), Some("opencode"));
        assert_eq!(database("a.sqlite", "transcript_events"), Some("OpenClaw"));
        assert_eq!(database("photos.db", "ses_1"), None);
    }
}
