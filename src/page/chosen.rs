//! What a reader gets of a session: its course, masked, without what was not chosen.
//!
//! Invariant: masks see each text whole, before anything is cut from it.

#![cfg_attr(
    not(feature = "page"),
    expect(dead_code, reason = "Markdown and JSON need less than a page")
)]

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use undertext::model::{
    Block, Card, CheckpointNumber, EntryId, Image, Kind, Message, Source, Text, Thinking,
    Timestamp, first_line,
};
use undertext::report::{Boundary, Effort};
use undertext::verbs::{Fork, Line, Masked, Masking, SubAgent};

use super::private::{is_private_command, is_private_file};
use crate::render::call::{self, Caller, Subject, Worth};
use crate::render::{harness, safe, units};

/// How much is shown of tool calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tools {
    /// How many there were.
    None,
    /// Calls, and the beginning of each result.
    #[default]
    Short,
    /// Whole results.
    Full,
}

/// What a reader gets.
#[derive(Clone, Debug)]
pub(crate) struct Choices {
    pub(crate) thinking: bool,
    pub(crate) reverted: bool,
    pub(crate) images: bool,
    pub(crate) tools: Tools,
    pub(crate) from: Option<CheckpointNumber>,
    pub(crate) to: Option<CheckpointNumber>,
    pub(crate) sharing: Sharing,
}

/// Who reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Anyone: environments and keys are left out.
    Shared,
    /// The user, on this machine.
    Local,
}

/// What was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    pub(crate) thoughts: u64,
    pub(crate) images: u64,
    /// The turns of reverted branches, and those branches.
    pub(crate) turns: u64,
    pub(crate) branches: u64,
    /// The contents of environments and key files.
    pub(crate) private: u64,
    /// The turns before the first chosen one, and after the last one.
    pub(crate) outside: u64,
}

/// The facts of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) title: String,
    pub(crate) id: String,
    pub(crate) agent: String,
    /// The agent as people call it.
    pub(crate) program: String,
    pub(crate) model: Option<String>,
    pub(crate) folder: Option<String>,
    pub(crate) branch: Option<String>,
    pub(crate) started: Option<Timestamp>,
    pub(crate) ended: Option<Timestamp>,
    /// The size of the model's window in tokens.
    pub(crate) window: Option<u64>,
}

/// A reverted branch.
#[derive(Clone, Debug)]
pub(crate) struct Reverted {
    pub(crate) fork: Fork,
    /// Its turns, and what the model did in them; known even if its entries are left out.
    pub(crate) turns: Vec<Option<CheckpointNumber>>,
    pub(crate) edits: u64,
    pub(crate) commands: u64,
}

/// A session as its reader gets it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) facts: Facts,
    pub(crate) lines: Vec<Line>,
    pub(crate) reverted: Vec<Reverted>,
    /// The sub-agents that an entry called.
    pub(crate) agents: BTreeMap<EntryId, Vec<(SubAgent, Vec<Line>)>>,
    pub(crate) boundaries: Vec<Boundary>,
    pub(crate) left_out: LeftOut,
    /// How many secrets were masked.
    pub(crate) secrets: u64,
    /// What it used.
    pub(crate) effort: Effort,
}

/// Chooses and masks.
pub(crate) struct Chooser<'a> {
    pub(crate) choices: &'a Choices,
    /// What to mask; `None` masks nothing.
    pub(crate) masking: Option<&'a Masking>,
    left_out: LeftOut,
    /// The calls that read or write an environment or keys.
    private: BTreeSet<String>,
    secrets: Cell<u64>,
    range: Range,
    /// Whether the first entries are left out.
    is_late: bool,
    /// The prompts of reverted branches that are left out.
    hidden: Vec<String>,
}

/// Where an entry of the path is, compared with the chosen turns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Range {
    Before,
    Within,
    After,
}

impl Choices {
    fn is_whole(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }
}

impl<'a> Chooser<'a> {
    pub(crate) fn new(choices: &'a Choices, masking: Option<&'a Masking>) -> Self {
        Self {
            choices,
            masking,
            left_out: LeftOut::default(),
            private: BTreeSet::new(),
            secrets: Cell::new(0),
            range: Range::Before,
            is_late: false,
            hidden: Vec::new(),
        }
    }

    /// Returns what a reader gets of a session.
    pub(crate) fn choose(
        mut self,
        facts: Facts,
        mut lines: Vec<Line>,
        forks: Vec<Fork>,
        sub_agents: Vec<(SubAgent, Vec<Line>)>,
        boundaries: Vec<Boundary>,
    ) -> Conversation {
        lines.retain(|line| self.has(line));
        let reverted = self.forks(forks);
        let facts = self.facts(facts, lines.iter().find_map(prompt));
        let lines: Vec<Line> = lines.into_iter().map(|line| self.line(line)).collect();
        let mut agents: BTreeMap<EntryId, Vec<_>> = BTreeMap::new();
        for (agent, said) in sub_agents {
            if lines.iter().any(|line| line.id == Some(agent.caller)) {
                let said = said.into_iter().map(|line| self.line(line)).collect();
                agents.entry(agent.caller).or_default().push((agent, said));
            }
        }
        let is_here = |one: &Boundary| {
            self.choices.is_whole()
                || lines.iter().any(|line| line.id.is_some() && line.id == one.entry)
        };
        let boundaries = boundaries.into_iter().filter(|one| is_here(one)).map(|mut one| {
            for lost in one.losses.iter_mut().flat_map(|loss| &mut loss.lost) {
                *lost = self.text(lost);
            }
            one
        });
        let boundaries = boundaries.collect();
        let (left_out, secrets) = self.done();
        let effort = Effort::default();
        Conversation { facts, lines, reverted, agents, boundaries, left_out, secrets, effort }
    }

    /// Returns what was left out so far, and how many secrets were masked.
    pub(crate) fn done(&self) -> (LeftOut, u64) {
        (self.left_out, self.secrets.get())
    }

    /// Returns true if the next entry of the path is in a chosen turn.
    pub(crate) fn has(&mut self, line: &Line) -> bool {
        let Choices { from, to, .. } = *self.choices;
        let turn = line.checkpoint;
        self.range = match self.range {
            Range::Before | Range::Within if to.is_some() && turn > to => Range::After,
            Range::Before if from.is_none() || turn >= from => Range::Within,
            range => range,
        };
        let is_within = self.range == Range::Within;
        self.is_late |= self.range == Range::Before;
        self.left_out.outside += u64::from(turn.is_some() && !is_within);
        is_within
    }

    /// Masks the facts, after the forks were chosen. The first prompt that a reader gets is the title if the session's own may be
    /// the beginning of a prompt that is left out.
    pub(crate) fn facts(&self, mut facts: Facts, first: Option<String>) -> Facts {
        if self.is_late || is_among(&facts.title, &self.hidden) {
            facts.title = first.unwrap_or_else(|| "Session".to_owned());
        }
        let mut title = safe::line(&facts.title).into_owned();
        // A secret that the title cuts off no longer matches its rule.
        if let Some(masked) = self.masking.and_then(|masks| masks.mask_beginning(&title)) {
            title = masked;
            self.secrets.set(self.secrets.get() + 1);
        }
        Facts {
            title: self.text(&title),
            folder: facts.folder.map(|folder| self.text(&folder)),
            branch: facts.branch.map(|branch| self.text(&branch)),
            model: facts.model.map(|model| self.text(&model)),
            ..facts
        }
    }

    /// Chooses from the reverted branches. A range of turns has none.
    pub(crate) fn forks(&mut self, forks: Vec<Fork>) -> Vec<Reverted> {
        let is_whole = self.choices.is_whole();
        if !is_whole || !self.choices.reverted {
            self.hidden = forks.iter().flat_map(|fork| &fork.lines).filter_map(prompt).collect();
        }
        let forks = forks.into_iter().filter(|_| is_whole);
        forks.map(|fork| self.reverted(fork)).collect()
    }

    fn reverted(&mut self, mut fork: Fork) -> Reverted {
        let is_turn = |line: &&Line| line.kind == Kind::User;
        let turns = fork.lines.iter().filter(is_turn).map(|line| line.checkpoint).collect();
        let (mut edits, mut commands) = (0, 0);
        for block in fork.lines.iter().flat_map(|line| &line.messages).flat_map(Message::parts) {
            if let Block::Call { name, input, .. } = block {
                let said = Caller { name, folder: None, whole: false }.say(input);
                edits += u64::from(said.answer == Worth::Success);
                commands += u64::from(said.answer == Worth::Ends);
            }
        }
        if self.choices.reverted {
            fork.lines = fork.lines.into_iter().map(|line| self.line(line)).collect();
        } else {
            let turns: &Vec<Option<CheckpointNumber>> = &turns;
            self.left_out.turns += turns.len() as u64;
            self.left_out.branches += 1;
            fork.lines.clear();
        }
        fork.branches = fork.branches.iter().map(|name| self.text(name)).collect();
        Reverted { fork, turns, edits, commands }
    }

    /// Masks an entry, and leaves out what was not chosen of it.
    pub(crate) fn line(&mut self, mut line: Line) -> Line {
        for message in &mut line.messages {
            message.meta.clear();
            message.model = message.model.take().map(|model| self.text(&model));
            let blocks = std::mem::take(&mut message.blocks);
            message.blocks = blocks.into_iter().map(|block| self.block(block)).collect();
        }
        for mark in &mut line.marks {
            mark.note = mark.note.take().map(|note| Text::Own(self.text(&note.to_text())));
        }
        for earlier in &mut line.earlier {
            earlier.file = earlier.file.take().map(|file| self.text(&file));
            earlier.trigger = earlier.trigger.take().map(|words| self.text(&words));
        }
        line.damage = line.damage.take().map(|damage| self.text(&damage));
        line
    }

    /// Masks a block. A thought that is left out stays as an empty one, since calls are known by their position.
    fn block(&mut self, block: Block) -> Block {
        match block {
            Block::Text(text) => Block::Text(self.text(&text)),
            Block::Thinking(thinking) if !self.choices.thinking => {
                self.left_out.thoughts += u64::from(!thinking.text.trim().is_empty());
                Block::Thinking(Thinking::default())
            }
            Block::Thinking(mut thinking) => {
                thinking.text = self.text(&thinking.text);
                thinking.signature = None;
                Block::Thinking(thinking)
            }
            Block::Call { id, name, mut input, .. } => {
                if self.choices.sharing == Sharing::Shared && call::is_about(&input, &is_private) {
                    self.private.insert(id.clone());
                    input = without_contents(&input);
                }
                Block::Call {
                    id,
                    name: self.text(&name),
                    input: self.json(&input),
                    signature: None,
                }
            }
            Block::Result { id, name, blocks, error } => {
                let blocks = if self.private.contains(&id) {
                    self.left_out.private += 1;
                    let bytes = blocks.iter().map(|block| match block {
                        Block::Text(text) => text.len(),
                        Block::Image(image) => image.bytes,
                        _ => 0,
                    });
                    let size = units::size(bytes.sum::<usize>() as u64);
                    vec![Block::Text(format!("[environment or keys, {size}, left out]"))]
                } else {
                    blocks.into_iter().map(|block| self.block(block)).collect()
                };
                Block::Result { id, name, blocks, error }
            }
            Block::Image(image) => Block::Image(self.image(image)),
            Block::Other { name, .. } => Block::Other { name, json: String::new() },
        }
    }

    fn image(&mut self, image: Image) -> Image {
        if self.choices.images && matches!(image.source, Source::Data(_)) {
            return image;
        }
        self.left_out.images += 1;
        Image { source: Source::Elsewhere, ..image }
    }

    fn text(&self, text: &str) -> String {
        let [before, after] = Masked::MARKS;
        let text: Cow<'_, str> = if text.contains([before, after]) {
            text.replace([before, after], "\u{fffd}").into()
        } else {
            text.into()
        };
        match self.masking {
            Some(masks) => {
                let masked = masks.mask(&text);
                self.secrets.set(self.secrets.get() + masked.secrets);
                masked.text.into_owned()
            }
            None => text.into_owned(),
        }
    }

    /// Masks the texts in JSON, or a text that is not JSON.
    fn json(&self, json: &str) -> String {
        match serde_json::from_str(json) {
            Ok(mut value) => {
                self.value(&mut value);
                value.to_string()
            }
            Err(_) => self.text(json),
        }
    }

    fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => {
                for (key, mut value) in std::mem::take(fields) {
                    self.value(&mut value);
                    fields.insert(self.text(&key), value);
                }
            }
            _ => {}
        }
    }
}

/// Returns the first line of a prompt, as long as a title may be.
pub(crate) fn prompt(line: &Line) -> Option<String> {
    let text = || line.messages.iter().map(Message::text).collect::<String>();
    let first = |text: String| first_line(&harness::unwrap(&text)).unwrap_or_default().to_owned();
    let first = (line.kind == Kind::User).then(|| first(text()));
    first.map(|first| first.chars().take(Card::TITLE).collect())
}

/// Returns true if a title is the beginning of one of these prompts.
fn is_among(title: &str, prompts: &[String]) -> bool {
    prompts.iter().any(|prompt| {
        !prompt.is_empty() && (prompt.starts_with(title) || title.starts_with(prompt))
    })
}

/// Leaves out tool calls, or shortens their results, for a form that shows entries as they are.
pub(crate) fn with_tools(mut line: Line, tools: Tools) -> Line {
    let is_tool = |block: &Block| matches!(block, Block::Call { .. } | Block::Result { .. });
    for message in &mut line.messages {
        match tools {
            Tools::None => message.blocks.retain(|block| !is_tool(block)),
            Tools::Short => message.blocks.iter_mut().for_each(shorten),
            Tools::Full => {}
        }
    }
    line
}

fn shorten(block: &mut Block) {
    let text = block.answer_text().into_owned();
    let Block::Result { blocks, error, .. } = block else { return };
    let (code, output) = harness::output(&text);
    let (shown, Some(more)) = beginning(&output, SHORT) else { return };
    *error |= code.is_some();
    *blocks = vec![Block::Text(format!("{shown}\n… {more}"))];
}

/// How much is shown of a short result, in lines and characters.
pub(crate) const SHORT: (usize, usize) = (20, 1_500);

/// Returns the beginning of a text, and says how much is left out.
pub(crate) fn beginning(text: &str, (lines, longest): (usize, usize)) -> (&str, Option<String>) {
    let end = match lines.checked_sub(1) {
        Some(last) => text.match_indices('\n').nth(last).map_or(text.len(), |(at, _)| at),
        None => 0,
    };
    let limit = text.char_indices().nth(longest).map_or(text.len(), |(at, _)| at);
    let (shown, rest) = text.split_at(end.min(limit));
    let more = match (rest.trim().is_empty(), rest.trim_matches('\n').lines().count()) {
        (true, _) => None,
        (false, 0 | 1) => Some(format!("{} more", units::size(rest.len() as u64))),
        (false, lines) => Some(format!("{} more lines", units::grouped(lines as u64))),
    };
    (shown, more)
}

fn is_private(subject: Subject<'_>) -> bool {
    match subject {
        Subject::File(path) => is_private_file(path),
        Subject::Command(command) => is_private_command(command),
    }
}

/// Returns the arguments of a call without texts of more than a line, and without edits: what is left names the file.
fn without_contents(input: &str) -> String {
    let Ok(Value::Object(mut fields)) = serde_json::from_str(input) else { return String::new() };
    fields.retain(|key, value| match value {
        Value::String(text) => call::is_path(key) || call::is_command(key) && !text.contains('\n'),
        Value::Array(_) | Value::Object(_) => false,
        _ => true,
    });
    Value::Object(fields).to_string()
}
