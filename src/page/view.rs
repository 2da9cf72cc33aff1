//! The view of a conversation: its turns, the runs of calls in them, and the lists of files, commands and losses.
//!
//! ```text
//! text  call call edit call  text        a run: "3 calls", folded, and the edit, open
//! ```
//!
//! Every text in it is a fragment of HTML already, so that templates only arrange them.

use std::collections::{BTreeMap, BTreeSet};

use undertext::model::{
    Block, CheckpointNumber, EntryNumber, Image, Kind, Message, Source, Timestamp,
};
use undertext::report::{Boundary, Expense};
use undertext::verbs::{self, Line};
use undertext::wire::Earlier;

use super::chosen::{Conversation, Reverted, SHORT, Tools, beginning};
use super::ink::{Html, Ink};
use crate::render::answers::{Answers, Pairs, is_own};
use crate::render::call::{self, Caller, Worth};
use crate::render::conversation::omitted;
use crate::render::style::Label;
use crate::render::time::Zone;
use crate::render::{harness, units};

/// How much is shown of a change, in lines and characters, if it is shortened.
const CHANGE: (usize, usize) = (60, 4_000);
/// More than any text has.
const ALL: (usize, usize) = (usize::MAX, usize::MAX);
/// Maximum length of a title in a list, of what was asked, and of a call's title, in characters.
const TITLE: usize = 80;
const ASKED: usize = 400;
const LONG_TITLE: usize = 2_000;
/// A pause of this many minutes between turns is mentioned.
const PAUSE: i64 = 30;
/// How many calls the heading of a run names.
const NAMED: usize = 4;

/// How a conversation is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) tools: Tools,
    pub(crate) zone: Zone,
}

/// A conversation on a page.
#[derive(Debug, Default)]
pub(crate) struct PageView {
    pub(crate) title: Html,
    pub(crate) facts: Vec<Html>,
    pub(crate) asked: Html,
    pub(crate) ended: Html,
    pub(crate) tally: Vec<String>,
    pub(crate) turns: Vec<Turn>,
    pub(crate) strip: Strip,
    pub(crate) files: Vec<File>,
    pub(crate) commands: Vec<Command>,
    pub(crate) ink: Ink,
}

/// The bars of the strip, one for each turn or compaction.
#[derive(Debug, Default)]
pub(crate) struct Strip {
    pub(crate) bars: Vec<Bar>,
    pub(crate) width: usize,
    pub(crate) words: String,
}

/// A bar of the strip.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a mark of its own")]
pub(crate) struct Bar {
    pub(crate) id: String,
    pub(crate) x: usize,
    /// The share of the window, from 0 to 40.
    pub(crate) height: u64,
    pub(crate) is_boundary: bool,
    pub(crate) has_edits: bool,
    pub(crate) has_failures: bool,
    pub(crate) is_fork: bool,
}

/// A turn.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// Its anchor: its number, or the entry where it begins.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) who: &'static str,
    pub(crate) time: String,
    pub(crate) iso: String,
    /// How long after the previous turn it began.
    pub(crate) later: Option<String>,
    pub(crate) title: Html,
    pub(crate) prompt: Html,
    pub(crate) parts: Vec<Part>,
    pub(crate) edits: usize,
    pub(crate) commands: usize,
    pub(crate) failed: usize,
    pub(crate) tokens: Option<u64>,
    /// How long it took, what it cost, and the model if that is not the session's.
    pub(crate) spent: Html,
    /// Its tokens.
    pub(crate) used: String,
    /// The compaction that it is, instead of a turn.
    pub(crate) boundary: Option<Compaction>,
    pub(crate) forks: Vec<Fork>,
    /// Its last answer.
    pub(crate) answer: Html,
    /// Its first entry.
    from: EntryNumber,
    began: Option<Timestamp>,
    ended: Option<Timestamp>,
}

/// A part of a turn.
#[derive(Debug)]
pub(crate) enum Part {
    /// The model's text, with its step.
    Text {
        step: String,
        html: Html,
    },
    /// A further message of the user.
    Prompt(Html),
    Thinking(Html),
    Run(Run),
    Note {
        what: String,
        html: Html,
    },
    Picture(Picture),
    Damaged(Html),
    Mark(Html),
}

/// Consecutive calls.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(crate) step: String,
    pub(crate) words: String,
    /// Its calls by name, the failed ones first.
    pub(crate) named: Vec<(Html, Option<String>)>,
    pub(crate) rest: usize,
    /// The calls that are folded.
    pub(crate) calls: Vec<Call>,
    /// The changes, which are open.
    pub(crate) changes: Vec<Call>,
    pub(crate) is_open: bool,
    failed: usize,
    n_calls: usize,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
}

/// A call, with its result.
#[derive(Debug, Default)]
pub(crate) struct Call {
    pub(crate) title: Html,
    pub(crate) body: Vec<(&'static str, Html)>,
    pub(crate) is_list: bool,
    pub(crate) added: usize,
    pub(crate) removed: usize,
    pub(crate) more: usize,
    pub(crate) result: Option<Answer>,
    pub(crate) agents: Vec<Agent>,
}

/// The result of a call.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) text: Html,
    pub(crate) lines: usize,
    /// The lines and characters that were left out.
    pub(crate) more: Option<String>,
    /// The exit code, or why it failed.
    pub(crate) failed: Option<String>,
    pub(crate) notes: Vec<Html>,
    pub(crate) pictures: Vec<Picture>,
}

/// A picture: its pixels as a URL, or only its size.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) size: String,
    pub(crate) url: Option<String>,
}

/// A sub-agent.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) words: String,
    pub(crate) parts: Vec<Part>,
}

/// A compaction.
#[derive(Debug, Default)]
pub(crate) struct Compaction {
    pub(crate) words: String,
    pub(crate) lost: u64,
    /// What was lost, by kind.
    pub(crate) losses: Vec<(String, Vec<Html>)>,
    pub(crate) summary: Html,
}

/// A reverted branch.
#[derive(Debug)]
pub(crate) struct Fork {
    pub(crate) id: String,
    pub(crate) names: Html,
    pub(crate) words: String,
    pub(crate) turns: Vec<Turn>,
}

/// A changed file.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: Html,
    pub(crate) edits: usize,
    pub(crate) added: usize,
    pub(crate) removed: usize,
    pub(crate) turns: Vec<(String, String)>,
}

/// A command that ran.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) title: Html,
    pub(crate) failed: Option<String>,
    pub(crate) turn: (String, String),
}

/// The changes of a file.
#[derive(Debug, Default)]
struct Changes {
    edits: usize,
    added: usize,
    removed: usize,
    turns: Vec<(String, String)>,
}

/// Builds a view.
struct Builder<'a> {
    manner: Manner,
    said: &'a Conversation,
    ink: Ink,
    files: BTreeMap<String, Changes>,
    commands: Vec<Command>,
    /// The anchors that are taken.
    ids: BTreeSet<String>,
    /// Whether files and commands are collected: not in reverted branches.
    is_on_path: bool,
}

impl PageView {
    /// Builds the view of a conversation.
    pub(crate) fn new(said: &Conversation, manner: Manner) -> Self {
        let mut builder = Builder {
            manner,
            said,
            ink: Ink::default(),
            files: BTreeMap::new(),
            commands: Vec::new(),
            ids: BTreeSet::new(),
            is_on_path: true,
        };
        let mut turns = builder.turns(&said.lines);
        builder.fork(&mut turns);
        builder.finish(turns)
    }
}

impl Builder<'_> {
    /// Returns the turns of some entries.
    fn turns(&mut self, lines: &[Line]) -> Vec<Turn> {
        let mut pairs = Pairs::default();
        for line in lines {
            pairs.see(line, &BTreeMap::new());
        }
        let answers = pairs.answers(lines);
        let starts = |line: &Line| line.kind == Kind::User && line.checkpoint.is_some();
        let ends = |at: &Line, next: &Line| match at.kind {
            _ if starts(next) || next.kind == Kind::Boundary => false,
            Kind::Boundary => next.kind == Kind::Summary,
            _ => true,
        };
        let mut turns: Vec<Turn> = Vec::new();
        for lines in lines.chunk_by(|at, next| ends(at, next)) {
            let Some(first) = lines.first() else { continue };
            let turn = match first.kind {
                Kind::Boundary => self.boundary(lines),
                _ => self.turn(lines, &answers),
            };
            let is_empty = turn.prompt.is_empty() && turn.parts.is_empty();
            if is_empty && turn.boundary.is_none() && !starts(first) {
                continue;
            }
            turns.push(turn);
        }
        let mut before = None;
        for turn in &mut turns {
            turn.later = turn.began.zip(before).and_then(|(at, before)| later(before, at));
            before = turn.ended.or(turn.began).or(before);
        }
        turns
    }

    /// Returns a turn without its content.
    fn begin(&mut self, line: &Line) -> Turn {
        let number = line.checkpoint.map(|n| n.to_string());
        let anchor = line.id.map_or_else(|| format!("n{}", line.n), |id| format!("e{id:.8}"));
        let mut id = number.clone().unwrap_or_else(|| anchor.clone());
        while !self.ids.insert(id.clone()) {
            id = format!("{anchor}-{}", self.ids.len());
        }
        let name = number.map(|n| format!("@{n}")).unwrap_or_default();
        self.ink.place = if name.is_empty() { id.clone() } else { name.clone() };
        let clock = |time| self.manner.zone.moment(time).format("%H:%M").to_string();
        Turn {
            id,
            name,
            time: line.time.map(clock).unwrap_or_default(),
            iso: line.time.map(|time| self.manner.zone.show(time)).unwrap_or_default(),
            began: line.time,
            ended: line.time,
            from: line.n,
            ..Turn::default()
        }
    }

    /// Returns how long a turn took, what it cost, and its model if that is not the session's; and its tokens.
    fn spent(&mut self, lines: &[Line]) -> (Html, String) {
        let effort = &self.said.effort.turns;
        let spent = lines.iter().filter_map(|line| effort.get(&Some(line.n)));
        let spent = spent.fold(Expense::default(), Expense::with);
        let times = || lines.iter().filter_map(|line| line.time);
        let ended = spent.last.or(times().max());
        let lasted = times().next().zip(ended).map(|(from, to)| to.0.saturating_sub(from.0));
        let said = lines.iter().flat_map(|line| &line.messages);
        let model = said.filter_map(|message| message.model.as_ref()).next_back();
        let model = model.filter(|model| Some(*model) != self.said.facts.model.as_ref());
        let words = [
            model.cloned(),
            lasted.filter(|ms| *ms >= 1_000).map(units::span),
            units::cost(&spent),
        ];
        let words = words.into_iter().flatten().collect::<Vec<_>>().join(" · ");
        (self.ink.line(&words), units::used(&spent).unwrap_or_default())
    }

    fn turn(&mut self, lines: &[Line], answers: &Answers<'_>) -> Turn {
        let Some(first) = lines.first() else { return Turn::default() };
        let mut turn = self.begin(first);
        turn.who = match first.kind {
            Kind::User => "you",
            Kind::Note | Kind::System => "note",
            _ => "continued",
        };
        (turn.spent, turn.used) = self.spent(lines);
        let id = |line: &Line| line.messages.first().and_then(|message| message.id.clone());
        let steps = verbs::steps(lines.iter().map(|line| (line.kind, id(line))));
        let mut run = Run::default();
        for (nth, line) in lines.iter().enumerate() {
            let step = steps.partition_point(|at| *at <= nth);
            let step = format!("{}.{step}", turn.id);
            let usage = line.messages.iter().filter_map(|message| message.usage);
            turn.tokens = usage.map(|usage| usage.total()).rfind(|n| *n > 0).or(turn.tokens);
            turn.ended = line.time.max(turn.ended);
            if let Some(damage) = &line.damage {
                turn.parts.extend(Self::close(&mut run));
                turn.parts.push(Part::Damaged(self.ink.line(damage)));
                continue;
            }
            if answers.lines.contains(line.n) || is_own(line) {
                continue;
            }
            self.entry(line, &step, answers, &mut turn, &mut run);
            for note in line.marks.iter().filter_map(|mark| mark.note.as_ref()) {
                turn.parts.extend(Self::close(&mut run));
                turn.parts.push(Part::Mark(self.ink.line(&note.to_text())));
            }
        }
        turn.parts.extend(Self::close(&mut run));
        // The first part of a step has its anchor.
        let mut before = String::new();
        for part in &mut turn.parts {
            if let Part::Text { step, .. } | Part::Run(Run { step, .. }) = part {
                if *step == before {
                    step.clear();
                } else {
                    before.clone_from(step);
                }
            }
        }
        if turn.title.is_empty() {
            turn.title = match turn.parts.iter().find_map(|part| match part {
                Part::Note { what, .. } => Some(what.clone()),
                _ => None,
            }) {
                Some(what) => self.ink.line(&what),
                None => self.ink.line("continued"),
            };
        }
        turn
    }

    /// Adds the content of an entry to a turn.
    fn entry(
        &mut self,
        line: &Line,
        step: &str,
        answers: &Answers<'_>,
        turn: &mut Turn,
        run: &mut Run,
    ) {
        for (nth, block) in line.messages.iter().flat_map(Message::parts).enumerate() {
            let part = match block {
                Block::Text(text) if text.trim().is_empty() => continue,
                Block::Text(text) => self.words(line, step, text, turn),
                Block::Thinking(thinking) if thinking.text.trim().is_empty() => continue,
                Block::Thinking(thinking) => Part::Thinking(self.ink.prose(&thinking.text)),
                Block::Call { name, input, .. } => {
                    let answer = answers.of(line, nth);
                    self.call(line, (name, input), answer, turn, run, step);
                    continue;
                }
                Block::Result { .. } => {
                    let call = Call {
                        title: self.ink.line("result"),
                        result: self.result(line, block, turn, Worth::Beginning),
                        ..Call::default()
                    };
                    run.n_calls += 1;
                    run.calls.push(call);
                    continue;
                }
                Block::Image(image) => Part::Picture(picture(image)),
                Block::Other { .. } => continue,
            };
            turn.parts.extend(Self::close(run));
            if let Part::Prompt(prompt) = part {
                if turn.prompt.is_empty() && turn.parts.is_empty() {
                    turn.prompt = prompt;
                } else {
                    turn.parts.push(Part::Prompt(prompt));
                }
            } else {
                turn.parts.push(part);
            }
        }
    }

    /// Returns a text by who speaks.
    fn words(&mut self, line: &Line, step: &str, text: &str, turn: &mut Turn) -> Part {
        match line.kind {
            Kind::User if !is_injected(text) => {
                let text = harness::unwrap(text);
                if turn.title.is_empty() {
                    turn.title = self.ink.line(&clipped(&text, TITLE));
                }
                Part::Prompt(self.ink.text(text.trim()))
            }
            Kind::Assistant => {
                let html = self.ink.prose(text);
                turn.answer = html.clone();
                Part::Text { step: step.to_owned(), html }
            }
            _ => {
                let text = harness::unwrap(text);
                Part::Note { what: injected(line.kind, &text), html: self.ink.text(text.trim()) }
            }
        }
    }

    fn call(
        &mut self,
        line: &Line,
        said: (&str, &str),
        answer: Option<(&Line, &Block)>,
        turn: &mut Turn,
        run: &mut Run,
        step: &str,
    ) {
        let (name, input) = said;
        let folder = self.said.facts.folder.as_deref();
        let whole = self.manner.tools == Tools::Full;
        let said = Caller { name, folder, whole: false }.say(input);
        // A written file has its lines only in the whole call.
        let is_written = said.answer == Worth::Success && said.body.is_empty();
        let body = if whole || is_written {
            Caller { name, folder, whole: true }.say(input).body
        } else {
            said.body
        };
        let failed_before = turn.failed;
        let result = answer.and_then(|(line, block)| self.result(line, block, turn, said.answer));
        let failed = result.as_ref().and_then(|result| result.failed.clone());
        if run.n_calls == 0 {
            step.clone_into(&mut run.step);
        }
        run.n_calls += 1;
        run.failed += turn.failed - failed_before;
        run.from = run.from.or(line.time);
        run.to = answer.and_then(|(line, _)| line.time).or(line.time).max(run.to);
        let is_list = !body.is_empty() && body.iter().all(|(_, text)| text.starts_with('['));
        let is_change = said.answer == Worth::Success && !is_list;
        let count = |label| body.iter().filter(|(it, _)| *it == label).count();
        let (added, removed) = (count(Label::Added), count(Label::Removed));
        let added = added.max(new_lines(&said.title, is_change && added + removed == 0));
        let title = clipped_lines(&said.title, LONG_TITLE);
        turn.edits += usize::from(is_change);
        turn.commands += usize::from(said.answer == Worth::Ends);
        if self.is_on_path {
            self.collect(
                (name, input),
                &title,
                [added, removed],
                (said.answer, is_list),
                failed.as_deref(),
                turn,
            );
        }
        if self.manner.tools == Tools::None {
            return;
        }
        let (most, longest) = if whole { ALL } else { CHANGE };
        let mut left = longest;
        let shown = body.iter().take(most).take_while(|(_, text)| {
            let fits = left > 0;
            left = left.saturating_sub(text.len() + 1);
            fits
        });
        let shown: Vec<(&str, Html)> =
            shown.map(|(label, text)| (class_of(*label), self.ink.text(text))).collect();
        let agents =
            if answer.is_some() || line.id.is_some() { self.agents(line) } else { Vec::new() };
        let call = Call {
            title: self.ink.text(&title),
            more: body.len() - shown.len(),
            body: shown,
            is_list,
            added,
            removed,
            result,
            agents,
        };
        let named = clipped(&title, 48);
        let named = (self.ink.line(&named), failed);
        if is_change || is_list {
            run.changes.push(call);
        } else {
            if named.1.is_some() {
                run.named.insert(run.named.iter().take_while(|it| it.1.is_some()).count(), named);
            } else {
                run.named.push(named);
            }
            run.calls.push(call);
        }
    }

    /// Notes the files and commands of a call.
    fn collect(
        &mut self,
        said: (&str, &str),
        title: &str,
        lines: [usize; 2],
        kind: (Worth, bool),
        failed: Option<&str>,
        turn: &Turn,
    ) {
        let place = (turn.id.clone(), turn.name.clone());
        match kind {
            (Worth::Success, false) => {
                let mut changes = call::changes(said.0, said.1);
                if let [(_, only)] = changes.as_mut_slice() {
                    *only = lines;
                }
                for (path, [added, removed]) in changes {
                    let folder = self.said.facts.folder.as_deref();
                    let below = folder.and_then(|it| path.strip_prefix(it)?.strip_prefix('/'));
                    let changes = self.files.entry(below.unwrap_or(&path).to_owned()).or_default();
                    changes.edits += 1;
                    changes.added += added;
                    changes.removed += removed;
                    if changes.turns.last() != Some(&place) {
                        changes.turns.push(place.clone());
                    }
                }
            }
            (Worth::Ends, _) if self.manner.tools != Tools::None => {
                let title = self.ink.text(&clipped_lines(title, ASKED));
                self.commands.push(Command {
                    title,
                    failed: failed.map(str::to_owned),
                    turn: place,
                });
            }
            _ => {}
        }
    }

    /// Returns the result of a call, and counts it if the call failed.
    fn result(
        &mut self,
        line: &Line,
        block: &Block,
        turn: &mut Turn,
        worth: Worth,
    ) -> Option<Answer> {
        let Block::Result { id, blocks, error, .. } = block else { return None };
        let text = block.answer_text();
        let (code, output) = harness::output(&text);
        let failed = code.map(|code| format!("exit {code}")).or(error.then(|| "failed".to_owned()));
        turn.failed += usize::from(failed.is_some());
        if self.manner.tools == Tools::None {
            return Some(Answer { failed, ..Answer::default() });
        }
        let output = output.trim_matches('\n').trim_end();
        // A change shows what its result repeats.
        let is_said = worth == Worth::Success && failed.is_none();
        let is_short = self.manner.tools == Tools::Short;
        let room = match (is_short, is_said) {
            (true, true) => (0, 0),
            (true, false) => SHORT,
            (false, _) => ALL,
        };
        let lines = output.lines().count();
        let (shown, more) = beginning(output, room);
        let mut notes = Vec::new();
        if let Some(hidden) = line.hidden(id) {
            notes
                .push(self.ink.line(&format!("cut: {} characters hidden", units::grouped(hidden))));
        }
        let is_of_it = |earlier: &&Earlier| earlier.call.as_deref() == Some(id.as_str());
        for earlier in line.earlier.iter().filter(is_of_it) {
            notes.push(self.ink.line(&omitted(earlier)));
        }
        let pictures = blocks.iter().filter_map(|block| match block {
            Block::Image(image) => Some(picture(image)),
            _ => None,
        });
        Some(Answer {
            text: self.ink.output(shown),
            lines,
            more: more.filter(|_| !(is_short && is_said)),
            failed,
            notes,
            pictures: pictures.collect(),
        })
    }

    /// Returns the sub-agents that an entry called.
    fn agents(&mut self, line: &Line) -> Vec<Agent> {
        let called = line.id.and_then(|id| self.said.agents.get(&id));
        let mut agents = Vec::new();
        for (agent, lines) in called.into_iter().flatten() {
            let mut pairs = Pairs::default();
            for line in lines {
                pairs.see(line, &BTreeMap::new());
            }
            let (place, is_on_path) =
                (self.ink.place.clone(), std::mem::take(&mut self.is_on_path));
            let mut turn = self.turn(lines, &pairs.answers(lines));
            self.ink.place = place;
            self.is_on_path = is_on_path;
            if !turn.prompt.is_empty() {
                turn.parts.insert(0, Part::Prompt(std::mem::take(&mut turn.prompt)));
            }
            let words = format!("sub-agent, {} entries", agent.entries);
            agents.push(Agent { words, parts: turn.parts });
        }
        agents
    }

    /// Ends a run of calls.
    fn close(run: &mut Run) -> Option<Part> {
        let mut run = std::mem::take(run);
        if run.n_calls == 0 {
            return None;
        }
        let counted = |n: usize, one: &str, many: &str| match n {
            0 => None,
            1 => Some(format!("1 {one}")),
            n => Some(format!("{n} {many}")),
        };
        let spent = run.from.zip(run.to).map(|(from, to)| to.0.saturating_sub(from.0));
        let words = [
            counted(run.n_calls, "call", "calls"),
            Some(format!("{} failed", run.failed)).filter(|_| run.failed > 0),
            spent.filter(|spent| *spent >= 1_000).map(units::span),
        ];
        run.words = words.into_iter().flatten().collect::<Vec<_>>().join(" · ");
        run.rest = run.named.len().saturating_sub(NAMED);
        run.named.truncate(NAMED);
        run.is_open = run.calls.len() == 1 && run.changes.is_empty();
        Some(Part::Run(run))
    }

    /// Returns a compaction as a turn of its own.
    fn boundary(&mut self, lines: &[Line]) -> Turn {
        let Some(first) = lines.first() else { return Turn::default() };
        let mut turn = self.begin(first);
        turn.name = String::new();
        "compaction".clone_into(&mut self.ink.place);
        let is_it = |one: &&Boundary| one.entry.is_some() && one.entry == first.id;
        let known = self.said.boundaries.iter().find(is_it);
        let tokens = first.earlier.iter().find_map(|earlier| match earlier.tokens {
            (None, None) => None,
            tokens => Some(tokens),
        });
        let tokens = known.map(|one| one.tokens).or(tokens).unwrap_or_default();
        let summaries = lines.iter().flat_map(|line| {
            let is_all = line.kind == Kind::Summary;
            line.messages.iter().filter(move |message| is_all || message.is_summary)
        });
        let summary: Vec<String> = summaries.map(Message::text).collect();
        let mut losses = Vec::new();
        for loss in known.into_iter().flat_map(|one| &one.losses).filter(|loss| loss.of > loss.kept)
        {
            let head =
                format!("{} of {} {} lost", loss.of - loss.kept, loss.of, loss.kind.as_str());
            losses.push((head, loss.lost.iter().map(|lost| self.ink.line(lost)).collect()));
        }
        let words = units::compaction(tokens);
        turn.title = self.ink.line(&words);
        turn.tokens = tokens.1;
        turn.boundary = Some(Compaction {
            words,
            lost: known.map_or(0, Boundary::lost),
            losses,
            summary: self.ink.prose(summary.join("\n\n").trim()),
        });
        turn
    }

    /// Adds the reverted branches to the turns after which they fork.
    fn fork(&mut self, turns: &mut [Turn]) {
        let mut places: BTreeMap<EntryNumber, usize> = BTreeMap::new();
        let begins: BTreeMap<EntryNumber, usize> =
            turns.iter().enumerate().map(|(n, turn)| (turn.from, n)).collect();
        let mut at = 0;
        for line in &self.said.lines {
            at = begins.get(&line.n).copied().unwrap_or(at);
            places.insert(line.n, at);
        }
        self.is_on_path = false;
        let said = self.said;
        for (nth, Reverted { fork, turns: numbers, edits, commands }) in
            said.reverted.iter().enumerate()
        {
            let place = fork.after.and_then(|after| {
                let before = places.range(..=after).next_back();
                places.get(&after).or(before.map(|(_, at)| at)).copied()
            });
            let Some(turn) = turns.get_mut(place.unwrap_or(0)) else { continue };
            let within = self.turns(&fork.lines);
            turn.forks.push(Fork {
                id: format!("r{nth}"),
                names: self.ink.line(&fork.branches.join(", ")),
                words: tried(numbers, *edits, *commands),
                turns: within,
            });
        }
        self.is_on_path = true;
    }

    fn finish(mut self, turns: Vec<Turn>) -> PageView {
        "the heading".clone_into(&mut self.ink.place);
        let facts = &self.said.facts;
        let zone = self.manner.zone;
        let times = facts.started.zip(facts.ended).map(|(from, to)| {
            let day = zone.moment(from).format("%-d %b %Y, %H:%M").to_string();
            let is_same = zone.moment(from).date() == zone.moment(to).date();
            let end = if is_same { "%H:%M" } else { "%-d %b %Y, %H:%M" };
            format!("{day}–{}", zone.moment(to).format(end))
        });
        let lasted = facts.started.zip(facts.ended).map(|(from, to)| to.0.saturating_sub(from.0));
        let lasted = lasted.filter(|spent| *spent >= 60_000).map(units::span);
        let heading = [
            Some(facts.program.clone()),
            facts.model.clone(),
            facts.folder.clone(),
            facts.branch.as_ref().map(|name| format!("branch {name}")),
            times,
            lasted,
        ];
        let heading: Vec<Html> =
            heading.into_iter().flatten().map(|fact| self.ink.line(&fact)).collect();
        let title = self.ink.line(&facts.title);
        let strip = strip(&turns, facts.window);
        let asked = turns.iter().find(|turn| !turn.prompt.is_empty());
        let asked = asked.map(|turn| turn.prompt.clone()).unwrap_or_default();
        let ended = turns.iter().rev().find(|turn| !turn.answer.is_empty());
        let ended = ended.map(|turn| turn.answer.clone()).unwrap_or_default();
        let files = std::mem::take(&mut self.files);
        let mut files: Vec<(String, Changes)> = files.into_iter().collect();
        files.sort_by_key(|(_, changes)| std::cmp::Reverse(changes.edits));
        let mut tally = tally(&turns, &files, &self.said.reverted);
        tally.extend(units::cost(&self.said.effort.all));
        let files = files.into_iter().map(|(path, changes)| File {
            path: self.ink.line(&path),
            edits: changes.edits,
            added: changes.added,
            removed: changes.removed,
            turns: changes.turns,
        });
        PageView {
            title,
            facts: heading,
            asked,
            ended,
            tally,
            strip,
            files: files.collect(),
            commands: self.commands,
            ink: self.ink,
            turns,
        }
    }
}

/// Sums up what happened.
fn tally(turns: &[Turn], files: &[(String, Changes)], reverted: &[Reverted]) -> Vec<String> {
    let counted = |n: usize, one: &str, many: &str| {
        let words = if n == 1 { one } else { many };
        (n > 0).then(|| format!("{} {words}", units::grouped(n as u64)))
    };
    let sum = |of: fn(&Turn) -> usize| turns.iter().map(of).sum::<usize>();
    let lines = |of: fn(&Changes) -> usize| files.iter().map(|(_, it)| of(it)).sum::<usize>();
    let files_changed = counted(files.len(), "file", "files")
        .map(|files| format!("{files} +{} −{}", lines(|it| it.added), lines(|it| it.removed)));
    let failed = sum(|turn| turn.failed);
    [
        counted(
            turns.iter().filter(|turn| turn.boundary.is_none() && !turn.name.is_empty()).count(),
            "turn",
            "turns",
        ),
        files_changed,
        counted(sum(|turn| turn.commands), "command", "commands"),
        counted(failed, "failed call", "failed calls"),
        counted(reverted.len(), "revert", "reverts"),
        counted(
            turns.iter().filter(|turn| turn.boundary.is_some()).count(),
            "compaction",
            "compactions",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the bars for turns.
fn strip(turns: &[Turn], window: Option<u64>) -> Strip {
    let most = turns.iter().filter_map(|turn| turn.tokens).max().unwrap_or(0);
    let whole = window.filter(|window| *window >= most).unwrap_or(most).max(1);
    let mut last = 0;
    let bars = turns.iter().enumerate().map(|(nth, turn)| {
        last = turn.tokens.unwrap_or(last);
        Bar {
            id: turn.id.clone(),
            x: nth * 10,
            height: (u128::from(last) * 40).div_ceil(u128::from(whole)).min(40) as u64,
            is_boundary: turn.boundary.is_some(),
            has_edits: turn.edits > 0,
            has_failures: turn.failed > 0,
            is_fork: !turn.forks.is_empty(),
        }
    });
    let bars: Vec<Bar> = bars.collect();
    let words = match (most, window) {
        (0, _) => String::new(),
        (most, Some(window)) => {
            format!("context up to {} of {} tokens", units::rounded(most), units::rounded(window))
        }
        (most, None) => format!("context up to {} tokens", units::rounded(most)),
    };
    Strip { width: bars.len() * 10, bars, words }
}

/// Says what was tried in a reverted branch.
fn tried(turns: &[Option<CheckpointNumber>], edits: u64, commands: u64) -> String {
    let counted = |n: u64, one: &str, many: &str| match n {
        0 => None,
        1 => Some(format!("1 {one}")),
        n => Some(format!("{n} {many}")),
    };
    let parts = [
        counted(turns.len() as u64, "prompt", "prompts"),
        counted(edits, "edit", "edits"),
        counted(commands, "command", "commands"),
    ];
    let numbers: Vec<String> = turns.iter().flatten().map(|n| format!("@{n}")).collect();
    let who = match numbers.as_slice() {
        [] => String::new(),
        [one] => format!("{one}, "),
        [one, two] => format!("{one} and {two}, "),
        [first, .., last] => format!("{first} to {last}, "),
    };
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("{who}{}", if parts.is_empty() { "no prompts".to_owned() } else { parts.join(", ") })
}

/// Returns the first line of a text that is not blank, at most `limit` characters long.
fn clipped(text: &str, limit: usize) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    balanced(line, limit)
}

fn clipped_lines(text: &str, limit: usize) -> String {
    balanced(text.trim(), limit)
}

/// Cuts a text after `limit` characters, but not within a masked place.
fn balanced(text: &str, limit: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(limit) else { return text.to_owned() };
    let [before, after] = verbs::Masked::MARKS;
    let shown = text.get(..end).unwrap_or_default();
    let is_within = shown.rfind(before) > shown.rfind(after);
    let shown = if is_within { shown.get(..shown.rfind(before).unwrap_or(0)) } else { Some(shown) };
    format!("{}…", shown.unwrap_or_default().trim_end())
}

/// Returns the number of lines that the title of a written file names, if only the title tells it.
fn new_lines(title: &str, is_it: bool) -> usize {
    let number = title.rsplit_once(", ").and_then(|(_, lines)| lines.split_once(" line"));
    number.filter(|_| is_it).and_then(|(n, _)| n.parse().ok()).unwrap_or(0)
}

/// Returns true if a message in the user's place was written by a program.
fn is_injected(text: &str) -> bool {
    text.starts_with("Base directory for this skill")
        || text.starts_with("Caveat: The messages below")
}

/// Says what an injected text is.
fn injected(kind: Kind, text: &str) -> String {
    match kind {
        _ if text.starts_with("Base directory for this skill") => "a note from a skill".to_owned(),
        _ if text.contains("<note-from-later>") => "a note from a revert".to_owned(),
        Kind::System => "from the agent's program".to_owned(),
        Kind::Result => "a result".to_owned(),
        Kind::Summary => "the summary".to_owned(),
        _ => "a note to the model".to_owned(),
    }
}

fn picture(image: &Image) -> Picture {
    const MEDIA: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
    let media = image.media.as_deref().filter(|media| MEDIA.contains(media));
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    let url = match (&image.source, media) {
        (Source::Data(data), Some(media)) if data.chars().all(is_base64) => {
            Some(format!("data:{media};base64,{data}"))
        }
        _ => None,
    };
    Picture { size: units::size(image.bytes as u64), url }
}

/// Returns the class of a line of a diff.
fn class_of(label: Label) -> &'static str {
    match label {
        Label::Added => "add",
        Label::Removed => "del",
        Label::Hint => "file",
        Label::Dim => "dim",
        _ => "",
    }
}

/// Says how much later a turn began.
fn later(before: Timestamp, at: Timestamp) -> Option<String> {
    let ms = at.0.saturating_sub(before.0);
    (ms >= PAUSE * 60_000).then(|| format!("{} later", units::span(ms - ms % 60_000)))
}

/// Returns the numbers of turns that were masked in, for the summary.
pub(crate) fn places(turns: &BTreeSet<String>) -> String {
    let mut turns: Vec<&str> = turns.iter().map(String::as_str).collect();
    turns.sort_by_key(|turn| turn.trim_start_matches('@').parse::<u64>().unwrap_or(u64::MAX));
    match turns.as_slice() {
        [rest @ .., _, _, _, _] if rest.len() > 4 => {
            format!("{} and {} more", turns[..6].join(", "), turns.len() - 6)
        }
        turns => turns.join(", "),
    }
}
