//! Fields of records as several formats spell them, and records as lines.

use crate::{
    json::Raw,
    model::{Block, Timestamp, Usage},
    wire::Scene,
};

/// The keys, in the records of any agent, whose values say what a record is and where it belongs, and nothing that was said.
const TELLING: &[&str] = &[
    "agentId",
    "agent_id",
    "api",
    "api_provider",
    "approval_policy",
    "call_id",
    "checkpoint",
    "cli_version",
    "client_id",
    "compact_id",
    "cwd",
    "entryId",
    "entrypoint",
    "event",
    "finish_reason",
    "firstKeptEntryId",
    "forkedFrom",
    "forked_from_id",
    "fromId",
    "gitBranch",
    "id",
    "isoTimestamp",
    "kind",
    "leafUuid",
    "level",
    "logicalParentUuid",
    "media_type",
    "messageId",
    "message_id",
    "mimeType",
    "model",
    "modelId",
    "model_provider",
    "name",
    "namespace",
    "op",
    "operation",
    "originator",
    "parentId",
    "parentSession",
    "parentToolUseID",
    "parentUuid",
    "parent_thread_id",
    "permissionMode",
    "phase",
    "plan_type",
    "promptId",
    "provider",
    "reason",
    "requestId",
    "request_id",
    "role",
    "sandbox_mode",
    "service_tier",
    "sessionId",
    "session_id",
    "slug",
    "source",
    "sourceToolAssistantUUID",
    "speed",
    "status",
    "stopReason",
    "stop_reason",
    "subtype",
    "targetId",
    "thinkingLevel",
    "thread_id",
    "timestamp",
    "toolCallId",
    "toolName",
    "toolUseID",
    "toolUseId",
    "tool_call_id",
    "tool_name",
    "tool_use_id",
    "trigger",
    "turn_id",
    "type",
    "userType",
    "uuid",
    "version",
];

/// Returns whether the value of a key, told by the bytes between its quotes, says nothing that was said.
pub(crate) fn says_nothing(key: &[u8]) -> bool {
    TELLING.iter().any(|telling| telling.as_bytes() == key)
}

/// Returns a field that is a string, decoded.
pub(super) fn text(record: Raw<'_>, key: &str) -> Option<String> {
    string(record.get(key))
}

/// Returns a value that is a string, decoded.
pub(super) fn string(value: Option<Raw<'_>>) -> Option<String> {
    value?.text().map(std::borrow::Cow::into_owned)
}

/// Returns a moment in RFC 3339.
pub(super) fn moment(value: Option<Raw<'_>>) -> Option<Timestamp> {
    value?.text().and_then(|time| Timestamp::parse(&time))
}

/// Returns a value as words: a string as it is, anything else as its JSON.
pub(super) fn shown(value: Raw<'_>) -> String {
    value.text().map_or_else(
        || String::from_utf8_lossy(value.bytes()).into_owned(),
        std::borrow::Cow::into_owned,
    )
}

/// Returns what a record of Claude Code's shape tells of where its agent works; a name in angle brackets is no model's.
pub(super) fn scene(record: Raw<'_>) -> Scene {
    let [folder, branch, version, message] =
        record.pick(["cwd", "gitBranch", "version", "message"]);
    let set = |value| string(value).filter(|text| !text.is_empty());
    Scene {
        version: set(version),
        folder: set(folder),
        git_branch: set(branch),
        model: message.and_then(|said| text(said, "model")).filter(|name| !name.starts_with('<')),
        ..Scene::default()
    }
}

/// Returns the usage that a model reports: the numbers under the names of input, output, cache read and cache written.
pub(super) fn usage(usage: Raw<'_>, names: [&str; 4]) -> Usage {
    let [input, output, cache_read, cache_write] =
        names.map(|name| usage.get(name).and_then(Raw::u64).unwrap_or(0));
    Usage { input, output, cache_read, cache_write }
}

/// Returns a block that is not understood.
pub(super) fn other(item: Raw<'_>) -> Block {
    let name = text(item, "type").unwrap_or_else(|| "unknown".to_owned());
    Block::Other { name, json: json(item) }
}

/// Returns a value's JSON as it stands in the record.
pub(super) fn json(value: Raw<'_>) -> String {
    String::from_utf8_lossy(value.bytes()).into_owned()
}

/// Returns a record as the line to append.
pub(super) fn line(record: &serde_json::Value) -> Vec<u8> {
    record.to_string().into_bytes()
}
