//! Tools: the one that a call on a path uses.

use crate::{
    json::Raw,
    model::{Block, EntryNumber, Kind, Message},
    session::SessionError,
    wire::{Format, Graph},
};

/// How far before a result its call is looked for, in entries.
pub(crate) const CALL_WITHIN: usize = 64;

/// Returns the tool of a call that one of these entries makes, the last ones looked at first.
pub(crate) fn tool(
    graph: &dyn Graph,
    format: &dyn Format,
    entries: &[EntryNumber],
    call: &str,
) -> Result<Option<String>, SessionError> {
    for &entry in entries.iter().rev() {
        if graph.record(entry)?.kind != Kind::Assistant {
            continue;
        }
        let line = graph.line(entry)?;
        let messages = Raw::object(&line).map(|record| format.messages(record));
        if let Some(name) = called(&messages.unwrap_or_default(), call) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Returns the tool that messages call under an id.
pub(crate) fn called(messages: &[Message], call: &str) -> Option<String> {
    let mut blocks = messages.iter().flat_map(|message| &message.blocks);
    blocks.find_map(|block| match block {
        Block::Call { id, name, .. } if id == call => Some(name.clone()),
        _ => None,
    })
}
