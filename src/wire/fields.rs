//! Fields of records as several formats spell them, and records as lines.

use crate::{
    json::Raw,
    model::{Block, Message, Role, Timestamp, Usage},
    wire::{Scene, Traits},
};

/// Returns how many bytes of a text are a mark, of those that each begin and end one, and the white space around it: at the
/// beginning and at the end. Of several that begin alike the longest counts; small and large letters are the same.
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

/// Returns what a record of Claude Code's shape tells of where its agent works.
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

/// Returns what a record says under these keys, each paired with the type of the records that have it.
pub(super) fn remarks(record: Raw<'_>, keys: &[(&str, &str)]) -> Vec<Message> {
    let class = text(record, "type").unwrap_or_default();
    let values = keys.iter().filter(|(of, _)| *of == class).filter_map(|(_, key)| record.get(key));
    let said = values.map(|value| Block::Other { name: class.clone(), json: json(value) });
    let said: Vec<Block> = said.collect();
    if said.is_empty() { Vec::new() } else { vec![Message::new(Role::System, said)] }
}

/// Returns a value's JSON as it is in the record.
pub(super) fn json(value: Raw<'_>) -> String {
    String::from_utf8_lossy(value.bytes()).into_owned()
}

/// Returns a record as the line to append.
pub(super) fn line(record: &serde_json::Value) -> Vec<u8> {
    record.to_string().into_bytes()
}
