//! Reads fields that several formats spell the same way, and turns records into lines.

use crate::{
    json::Raw,
    model::{Block, Message, Role, Timestamp, Usage},
    wire::{Scene, Traits},
};

/// Returns the length of the mark at the beginning and at the end of a text, white space around it included. Each of `marks`
/// has a beginning and an end. Of several that match, the longest wins; case is ignored.
pub(super) fn marked<'m>(
    text: &str,
    marks: impl IntoIterator<Item = (&'m str, &'m str)>,
) -> [usize; 2] {
    let (before, after) =
        (text.len() - text.trim_start().len(), text.len() - text.trim_end().len());
    let said = text.trim();
    let marked = marks.into_iter().filter_map(|(begin, end)| {
        let rest = said.get(begin.len()..).filter(|_| is_alike(said, 0, begin))?;
        let from = rest.len().checked_sub(end.len()).filter(|from| is_alike(rest, *from, end))?;
        Some([before + begin.len(), rest.len() - from + after])
    });
    marked.max().unwrap_or_default()
}

fn is_alike(text: &str, from: usize, mark: &str) -> bool {
    let there = text.get(from..from + mark.len());
    there.is_some_and(|there| there.eq_ignore_ascii_case(mark))
}

/// Returns a string field, decoded.
pub(super) fn text(record: Raw<'_>, key: &str) -> Option<String> {
    string(record.get(key))
}

/// Returns a string value, decoded.
pub(super) fn string(value: Option<Raw<'_>>) -> Option<String> {
    value?.text().map(std::borrow::Cow::into_owned)
}

/// Parses an RFC 3339 time.
pub(super) fn moment(value: Option<Raw<'_>>) -> Option<Timestamp> {
    value?.text().and_then(|time| Timestamp::parse(&time))
}

/// Returns a value as text: a string decoded, anything else as its JSON.
pub(super) fn shown(value: Raw<'_>) -> String {
    value.text().map_or_else(
        || String::from_utf8_lossy(value.bytes()).into_owned(),
        std::borrow::Cow::into_owned,
    )
}

/// Reads where and with what the agent works from a record in Claude Code's shape.
pub(super) fn scene(record: Raw<'_>, format: &Traits) -> Scene {
    let [folder, branch, version, message] =
        record.pick(["cwd", "gitBranch", "version", "message"]);
    let set = |value| string(value).filter(|text| !text.is_empty());
    Scene {
        version: set(version),
        folder: set(folder),
        git_branch: set(branch),
        model: message.and_then(|said| text(said, "model")).filter(|name| format.is_model(name)),
        ..Scene::default()
    }
}

/// Reads usage. `names` are the keys for input, output, cache read and cache write.
pub(super) fn usage(usage: Raw<'_>, names: [&str; 4]) -> Usage {
    let [input, output, cache_read, cache_write] =
        names.map(|name| usage.get(name).and_then(Raw::u64).unwrap_or(0));
    Usage { input, output, cache_read, cache_write }
}

/// Makes a block of a kind that the format does not know.
pub(super) fn other(item: Raw<'_>) -> Block {
    let name = text(item, "type").unwrap_or_else(|| "unknown".to_owned());
    Block::Other { name, json: json(item) }
}

/// Returns the texts under these keys. Each key is paired with the type of record that has it.
pub(super) fn remarks(record: Raw<'_>, keys: &[(&str, &str)]) -> Vec<Message> {
    let class = text(record, "type").unwrap_or_default();
    let values = keys.iter().filter(|(of, _)| *of == class).filter_map(|(_, key)| record.get(key));
    let said = values.map(|value| Block::Other { name: class.clone(), json: json(value) });
    let said: Vec<Block> = said.collect();
    if said.is_empty() { Vec::new() } else { vec![Message::new(Role::System, said)] }
}

/// Returns a value's JSON, byte for byte.
pub(super) fn json(value: Raw<'_>) -> String {
    String::from_utf8_lossy(value.bytes()).into_owned()
}

/// Returns a record as a line to append.
pub(super) fn line(record: &serde_json::Value) -> Vec<u8> {
    record.to_string().into_bytes()
}
