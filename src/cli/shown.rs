//! Selects the entries of a conversation to show, and prints them. Shared by views of a conversation and by following.

use std::collections::BTreeMap;

use undertext::model::{EntryId, EntryNumber};
use undertext::report::{self, Hint};
use undertext::verbs::{self, Line, Log, Passage, Pattern, SubAgent, Target};

use super::common::{counted, number, pattern};
use super::hint::Naming;
use super::{CommandError, Context, Exit, Opened};
use crate::render::answers;
use crate::render::conversation::{self, Detail, Manner};

/// Which entries are shown, and how much of each.
#[derive(Debug, clap::Args)]
pub(super) struct Shown {
    /// Show only the last N entries; 0 shows all
    #[arg(short = 'n', long = "number", value_name = "N", value_parser = number::<usize>, allow_negative_numbers = true)]
    pub(super) count: Option<usize>,

    /// Include records outside of the conversation
    #[arg(long)]
    all: bool,

    /// Show long texts in full
    #[arg(long)]
    full: bool,

    /// Show only entries with these words
    #[arg(long, value_name = "WORDS", value_parser = pattern)]
    grep: Option<Pattern>,

    /// Show each record separately, the agent's own too
    #[arg(short, long)]
    verbose: bool,
}

impl Shown {
    /// Reads the last `count` entries.
    pub(super) fn newest(&self, opened: &Opened, count: usize) -> Result<Log, CommandError> {
        let read = if self.all { verbs::log_all } else { verbs::log };
        let session = opened.at()?;
        Ok(read(&session, None, count)?)
    }

    /// Returns options that show every entry in full.
    pub(super) fn whole() -> Self {
        Self { count: None, all: false, full: true, grep: None, verbose: false }
    }

    /// Reads the last entries before a place or in a passage, up to the limit in the options.
    pub(super) fn read(
        &self,
        context: &Context,
        opened: &Opened,
        target: Option<&Target>,
        passage: Option<&Passage>,
    ) -> Result<Log, CommandError> {
        let session = &opened.at()?;
        let read = |limit| match passage {
            Some(Passage { target, entries, .. }) if self.all => {
                verbs::log_all_of(session, target, entries, limit)
            }
            Some(Passage { target, entries, .. }) => verbs::log_of(session, target, entries, limit),
            None if self.all => verbs::log_all(session, target, limit),
            None => verbs::log(session, target, limit),
        };
        let count = self.count.filter(|count| *count > 0).unwrap_or(usize::MAX);
        let mut asked = count;
        loop {
            let mut log = read(asked)?;
            let shown = log.lines.iter().filter(|line| self.shows(context, line)).count();
            if shown >= count || log.lines.len() < asked {
                let mut rest = shown.saturating_sub(count);
                let first = log.lines.iter().position(|line| {
                    let is_left = rest > 0;
                    rest -= usize::from(is_left && self.shows(context, line));
                    !is_left
                });
                log.lines.drain(..first.unwrap_or_default());
                log.lines.retain(|line| self.has(line) || line.damage.is_some());
                return Ok(log);
            }
            // An agent's own records do not count if they are not shown.
            asked = asked.saturating_mul(2);
        }
    }

    /// Returns true if an entry is shown on its own. A damaged entry always is, as damaged.
    pub(super) fn shows(&self, context: &Context, line: &Line) -> bool {
        let is_every = self.all || self.verbose || context.json || line.damage.is_some();
        self.has(line) && (is_every || !answers::is_own(line))
    }

    /// Returns true if the entry matches the search pattern, or if no pattern was given.
    fn has(&self, line: &Line) -> bool {
        self.grep.as_ref().is_none_or(|pattern| pattern.is_in(&line.messages))
    }

    /// Prints entries.
    pub(super) fn show(
        &self,
        context: &mut Context,
        opened: &Opened,
        log: Log,
    ) -> Result<Exit, CommandError> {
        let Opened { archive, session } = opened;
        let mut repairs: BTreeMap<&str, Vec<EntryNumber>> = BTreeMap::new();
        // Repairs need no action, and the agent makes them as well.
        for repair in log.repairs.iter().filter(|_| self.verbose) {
            repairs.entry(repair.what).or_default().push(repair.entry);
        }
        for (what, entries) in repairs {
            let first = log.lines.iter().find(|line| entries.contains(&line.n));
            let id = first.map(conversation::short).unwrap_or_default();
            context.output.warn(&match entries.len() {
                1 => format!("entry {id}: {what}"),
                n => format!("{n} entries, such as {id}: {what}"),
            });
        }
        let in_place: Vec<Option<EntryId>> =
            log.lines.iter().filter(|line| line.damage.is_some()).map(|line| line.id).collect();
        if context.json {
            for line in &log.lines {
                match line.damaged() {
                    Some(damaged) => context.answer(&damaged)?,
                    None => context.answer(&report::Entry::from(line))?,
                };
                for agent in log.sub_agents.iter().filter(|agent| Some(agent.caller) == line.id) {
                    context.answer(agent)?;
                }
            }
        }
        let mut met = log.damaged;
        met.retain(|damaged| !in_place.contains(&damaged.entry));
        let exit = context.tell_damaged(&met)?;
        let is_missed = log.lines.is_empty() && self.grep.is_some();
        let is_damaged =
            log.lines.is_empty() && self.grep.is_none() && met.is_empty() && is_damaged(opened);
        let is_whole = in_place.is_empty() && !is_missed && !is_damaged;
        let exit = if is_whole { exit } else { Exit::No };
        if context.json {
            return Ok(exit);
        }
        if is_damaged {
            context.output.warn("the session is damaged: none of its conversation can be read");
            context.output.hint(report::Line::about("verify").to("see what is damaged"));
            context.output.hint(Hint::mend());
        } else if log.lines.is_empty() && met.is_empty() {
            let told = if is_missed { "Nothing was found" } else { "Nothing has been said yet" };
            context.output.note(told);
            if !is_missed && archive.store().state(session.key)?.branches.len() > 1 {
                let list =
                    report::Line::about("branch").to("see its other branches, and `switch` to one");
                context.output.hint(list);
            }
        }
        context.output.page()?;
        let naming = context.output.naming().clone();
        let spell = |line: &report::Line| naming.spell(line);
        let beneath = beneath(&log.sub_agents, &naming);
        let folder = archive.store().card(session.key)?.folder;
        let detail = if self.full { Detail::Full } else { Detail::Short };
        let every = self.all || self.verbose;
        let manner = Manner { detail, every, ..manner(context, folder.as_deref(), &spell) };
        conversation::write(&mut context.output, &log.lines, &beneath, manner)?;
        if !in_place.is_empty() && met.is_empty() {
            context.output.hint(Hint::mend());
        }
        Ok(exit)
    }
}

/// Returns the remarks below entries: the sub-agents that they called.
pub(super) fn beneath(sub_agents: &[SubAgent], naming: &Naming) -> BTreeMap<EntryId, Vec<String>> {
    let mut beneath: BTreeMap<EntryId, Vec<String>> = BTreeMap::new();
    for agent in sub_agents {
        let read =
            naming.spell(&report::Line::about("log").option("at", format!("{:.8}", agent.last)));
        let remark = format!("sub-agent, {}: {read}", counted(agent.entries, "entry", "entries"));
        beneath.entry(agent.caller).or_default().push(remark);
    }
    beneath
}

/// Returns how a conversation is shown here: whole, entry by entry. Paths are shown relative to `folder`.
pub(super) fn manner<'a>(
    context: &Context,
    folder: Option<&'a str>,
    spell: &'a dyn Fn(&report::Line) -> String,
) -> Manner<'a> {
    Manner {
        styles: context.output.styles(),
        zone: context.env.zone,
        now: context.env.ambient().now(),
        columns: context.output.width(),
        detail: Detail::Full,
        thoughts: Detail::Short,
        opened: None,
        every: true,
        side_by_side: false,
        prose: None,
        folder,
        spell,
    }
}

/// Returns whether nothing is shown of a session because it is damaged, or the store that should have more of it.
fn is_damaged(opened: &Opened) -> bool {
    let verified = verbs::verify(&opened.archive, Some(&opened.session), &mut |_| ());
    opened.archive.torn().is_some()
        || verified.is_ok_and(|verified| verified.damaged > verified.files || verified.lost > 0)
}
