//! Side: the sub-agents of versions 1.0, whose records stand in the file of their session.
//!
//! ```text
//! 12  assistant  Task {prompt: "Look for .."} (toolu_1)
//! 13  assistant  Task {prompt: "Write .."} (toolu_2)
//! 14  user       isSidechain, parentUuid null: "Write .."      begins the sub-agent that 13 called
//! 15  assistant  isSidechain, parentUuid 14
//! ```
//!
//! No record says which call a sub-agent works for. Its prompt does; where no prompt is the same, the last call of a
//! sub-agent in that turn: the session waits for its sub-agents, so that none works for an earlier one.

use memchr::memmem;

use super::read::{self, Hint};
use crate::{
    json::Raw,
    model::{Block, EntryNumber, Kind},
    wire::{Failure, Graph},
};

/// The tools that call a sub-agent.
const TOOLS: [&str; 2] = ["Task", "Agent"];
/// How many answers are read for the call.
const WITHIN: usize = 256;

/// Returns the entry that called the sub-agent whose first record stands at an entry.
pub(super) fn caller(
    graph: &dyn Graph,
    entry: EntryNumber,
) -> Result<Option<EntryNumber>, Failure> {
    let record = graph.record(entry)?;
    if !Hint::of(&record).has(Hint::SIDE) || record.kind != Kind::Note {
        return Ok(None);
    }
    let Some(place) = graph.place(entry)? else { return Ok(None) };
    let prompt = prompt(&graph.line(entry)?);
    let (mut last, mut asked) = (None, 0);
    for place in place.earlier().rev() {
        let Some(before) = graph.at(place)? else { continue };
        let record = graph.record(before)?;
        if Hint::of(&record).has(Hint::SIDE) {
            continue;
        }
        if record.kind == Kind::User {
            break;
        }
        if record.kind != Kind::Assistant {
            continue;
        }
        let line = graph.line(before)?;
        let prompts = called(&line);
        if prompts.iter().any(|called| Some(called) == prompt.as_ref()) {
            return Ok(Some(before));
        }
        if !prompts.is_empty() {
            last = last.or(Some(before));
        }
        asked += 1;
        if asked == WITHIN {
            break;
        }
    }
    Ok(last)
}

/// Returns the prompts with which an answer calls sub-agents.
fn called(line: &[u8]) -> Vec<String> {
    // To take an answer apart costs more than to see that it names no such tool.
    if !TOOLS.iter().any(|tool| memmem::find(line, tool.as_bytes()).is_some()) {
        return Vec::new();
    }
    let message = Raw::object(line).and_then(read::message);
    let blocks = message.map(|message| message.blocks).unwrap_or_default();
    let prompt = |block: &Block| match block {
        Block::Call { name, input, .. } if TOOLS.contains(&name.as_str()) => {
            let input: serde_json::Value = serde_json::from_str(input).unwrap_or_default();
            Some(input.get("prompt").and_then(|prompt| prompt.as_str()).unwrap_or("").to_owned())
        }
        _ => None,
    };
    blocks.iter().filter_map(prompt).collect()
}

/// Returns the words with which a sub-agent begins.
fn prompt(line: &[u8]) -> Option<String> {
    read::message(Raw::object(line)?).map(|message| message.text())
}
