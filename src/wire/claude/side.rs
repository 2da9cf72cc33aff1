//! Sub-agents of versions 1.0, whose records are in the file of their session.
//!
//! ```text
//! 12  assistant  Task {prompt: "Look for .."} (toolu_1)
//! 13  assistant  Task {prompt: "Write .."} (toolu_2)
//! 14  user       isSidechain, parentUuid null: "Write .."      the first record of the sub-agent called by 13
//! 15  assistant  isSidechain, parentUuid 14
//! ```
//!
//! Records do not say which call a sub-agent works for. The caller is found by its prompt; if no prompt matches, it is the last
//! call of a sub-agent in that turn, because the session waits for its sub-agents and none works for an earlier turn.

use memchr::memmem;

use super::read::{self, Hint};
use crate::{
    json::Raw,
    model::{Block, EntryNumber, Kind, PlaceNumber},
    wire::{Failure, Graph},
};

/// The tools that start a sub-agent.
const TOOLS: [&str; 2] = ["Task", "Agent"];
/// How many answers are searched for the call.
const WITHIN: usize = 256;

/// Finds the calls of sub-agents. A turn is read once for all its sub-agents if they are looked up in order.
pub(super) struct Callers<'g> {
    graph: &'g dyn Graph,
    /// The place up to which the current turn was read.
    read: PlaceNumber,
    /// The number of answers read.
    answers: usize,
    /// The answers of the turn that start sub-agents.
    calling: Vec<Calling>,
}

/// An answer that starts sub-agents.
struct Calling {
    /// Its number among the answers.
    nth: usize,
    entry: EntryNumber,
    prompts: Vec<String>,
}

impl<'g> Callers<'g> {
    /// Prepares to find calls.
    pub(super) fn new(graph: &'g dyn Graph) -> Self {
        Self { graph, read: PlaceNumber::FIRST, answers: 0, calling: Vec::new() }
    }

    /// Returns the entry that called a sub-agent, given the sub-agent's first record.
    pub(super) fn find(&mut self, entry: EntryNumber) -> Result<Option<EntryNumber>, Failure> {
        let record = self.graph.record(entry)?;
        if !Hint::of(&record).has(Hint::SIDE) || record.kind != Kind::Note {
            return Ok(None);
        }
        let Some(place) = self.graph.place(entry)? else { return Ok(None) };
        self.read_to(place)?;
        let prompt = prompt(&self.graph.line(entry)?);
        let last = self.calling.iter().rev().take_while(|one| one.nth + WITHIN >= self.answers);
        let is_its =
            |one: &&Calling| one.prompts.iter().any(|called| Some(called) == prompt.as_ref());
        Ok(last.clone().find(is_its).or_else(|| last.clone().next()).map(|one| one.entry))
    }

    /// Reads the answers of the turn before a place.
    fn read_to(&mut self, place: PlaceNumber) -> Result<(), Failure> {
        if place < self.read {
            *self = Self::new(self.graph);
        }
        let mut answers = Vec::new();
        for place in PlaceNumber::each(self.read..place).rev() {
            let Some(entry) = self.graph.at(place)? else { continue };
            let record = self.graph.record(entry)?;
            if Hint::of(&record).has(Hint::SIDE) {
                continue;
            }
            if record.kind == Kind::Assistant {
                answers.push(entry);
            }
            if record.kind == Kind::User || answers.len() == WITHIN {
                self.calling.clear();
                break;
            }
        }
        for entry in answers.into_iter().rev() {
            let prompts = called(&self.graph.line(entry)?);
            if !prompts.is_empty() {
                self.calling.push(Calling { nth: self.answers, entry, prompts });
            }
            self.answers += 1;
        }
        self.read = place;
        Ok(())
    }
}

/// Returns the prompts of the sub-agents that an answer starts.
fn called(line: &[u8]) -> Vec<String> {
    // Parsing an answer costs more than seeing that it does not name such a tool.
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

/// Returns the first text of a sub-agent.
fn prompt(line: &[u8]) -> Option<String> {
    read::message(Raw::object(line)?).map(|message| message.text())
}
