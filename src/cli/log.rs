//! `log`: the conversation of a branch.

use std::collections::BTreeMap;

use undertext::model::{EntryId, EntryNumber};
use undertext::ops::{self, Line};
use undertext::report::{self, Hint};

use super::common::{counted, number};
use super::error::{CommandError, Exit};
use super::words::About;
use super::{Context, complete};
use crate::render::answers;
use crate::render::conversation::{self, Manner};

/// Show the conversation of a branch
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext log                          the newest session of this folder
  undertext log -n 20 --full 3f2a91c0    the last 20 entries of a session, whole
  undertext log --at @7                  up to checkpoint 7
  undertext log --at main.1              the branch that a revert left
  undertext log session.jsonl            a session file as it is; nothing is written

JSON: one object an entry, the first one first
  {\"type\":\"entry\", \"entry\":ID, \"uuid\":the record's own name or null, \"kind\":KIND,
   \"role\":\"system\", \"user\", \"assistant\" or \"tool\", or null if it is no message, \"time\":TIME or null,
   \"checkpoint\":N that stands before it or null, \"own\":the agent's own number of that, such as kimi:3, or null,
   \"checkpoints\":[{\"checkpoint\":N, \"note\":TEXT or null}] that were put behind it,
   \"model\":NAME or null, \"blocks\":[BLOCK]}
KIND is user, note, assistant, result, system, boundary, summary, meta or opaque; BLOCK is one of
  {\"block\":\"text\", \"text\":TEXT}
  {\"block\":\"thinking\", \"text\":TEXT}
  {\"block\":\"call\", \"id\":ID, \"name\":NAME, \"input\":JSON, or TEXT if it is none}
  {\"block\":\"result\", \"id\":ID of the call, \"text\":TEXT, \"error\":whether the tool failed BOOL,
   \"hidden\":CHARACTERS, only if undertext cut it}
  {\"block\":\"image\", \"bytes\":N}
  {\"block\":\"other\", \"name\":NAME}
and behind an entry that called sub-agents which work in the session's own file, one of each
  {\"type\":\"sub_agent\", \"entry\":ID of that entry, \"first\":ID, \"last\":ID, for log --at, \"entries\":N}
and in the place of an entry that is damaged
  {\"type\":\"damaged\", \"entry\":ID, \"problem\":TEXT}")]
pub(crate) struct Args {
    #[command(flatten)]
    about: About,

    /// Show what led to this entry: HEAD, HEAD~2, @7, a branch, or the beginning of an id
    #[arg(long, value_name = "ENTRY", add = complete::places())]
    at: Option<String>,

    /// Show the last N entries only
    #[arg(short = 'n', value_name = "N", value_parser = number::<usize>, allow_negative_numbers = true)]
    count: Option<usize>,

    /// Show also the records that are no part of the conversation
    #[arg(long)]
    all: bool,

    /// Show long texts whole
    #[arg(long)]
    full: bool,

    /// Show every entry by itself, also the agent's own records, and tell of repaired links
    #[arg(short, long)]
    verbose: bool,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let (archive, session) = context.look(args.about.wanted()?)?;
    let target =
        args.at.as_deref().map(|at| ops::find_entry(archive.store(), &session, at)).transpose()?;
    let read = if args.all { ops::log_all } else { ops::log };
    let every = args.all || args.verbose;
    let count = args.count.unwrap_or(usize::MAX);
    let mut asked = count;
    let log = loop {
        let mut log = read(archive.store(), &session, target.as_ref(), asked)?;
        let is_shown = |line: &&Line| every || context.json || !answers::is_own(line);
        let shown = log.lines.iter().filter(is_shown).count();
        if shown >= count || log.lines.len() < asked {
            let mut rest = shown.saturating_sub(count);
            let first = log.lines.iter().position(|line| {
                let is_left = rest > 0;
                rest -= usize::from(is_left && is_shown(&line));
                !is_left
            });
            log.lines.drain(..first.unwrap_or_default());
            break log;
        }
        // The records of the agent's own are not counted where they are not shown.
        asked = asked.saturating_mul(2);
    };
    let mut repairs: BTreeMap<&str, Vec<EntryNumber>> = BTreeMap::new();
    // Nobody can act on them, and the agent repairs them too.
    for repair in log.repairs.iter().filter(|_| args.verbose) {
        repairs.entry(repair.what).or_default().push(repair.entry);
    }
    for (what, entries) in repairs {
        let first = log.lines.iter().find(|line| entries.contains(&line.n));
        let id = first.map(|line| format!("{:.8}", line.id)).unwrap_or_default();
        context.output.warn(&match entries.len() {
            1 => format!("entry {id}: {what}"),
            n => format!("{n} entries, such as {id}: {what}"),
        });
    }
    let in_place: Vec<EntryId> =
        log.lines.iter().filter(|line| line.damage.is_some()).map(|line| line.id).collect();
    if context.json {
        for line in &log.lines {
            match line.damaged() {
                Some(damaged) => context.answer(&damaged)?,
                None => context.answer(line)?,
            };
            for agent in log.sub_agents.iter().filter(|agent| agent.caller == line.id) {
                context.answer(agent)?;
            }
        }
    }
    let (shown, met): (Vec<_>, Vec<_>) =
        log.damaged.into_iter().partition(|damaged| in_place.contains(&damaged.entry));
    let exit = context.tell_damaged(&met)?;
    let exit = if shown.is_empty() { exit } else { Exit::No };
    if context.json {
        return Ok(exit);
    }
    if log.lines.is_empty() {
        context.output.note("Nothing has been said yet");
    }
    context.output.page()?;
    let naming = context.output.naming().clone();
    let command = |entry: &str, hidden: bool| {
        let line = report::Line::about("show").with(entry);
        naming.spell(&if hidden { line.flag("hidden") } else { line })
    };
    let mut beneath: BTreeMap<EntryId, Vec<String>> = BTreeMap::new();
    for agent in &log.sub_agents {
        let read =
            naming.spell(&report::Line::about("log").option("at", format!("{:.8}", agent.last)));
        let told = format!("sub-agent, {}: {read}", counted(agent.entries, "entry", "entries"));
        beneath.entry(agent.caller).or_default().push(told);
    }
    let folder = archive.store().card(session.key)?.folder;
    let manner = Manner {
        styles: context.output.styles(),
        zone: context.env.zone,
        now: context.env.ambient().now(),
        columns: context.output.width(),
        full: args.full,
        every,
        folder: folder.as_deref(),
        command: &command,
    };
    conversation::write(&mut context.output, &log.lines, &beneath, manner)?;
    if !shown.is_empty() && met.is_empty() {
        context.output.hint(Hint::mend());
    }
    Ok(exit)
}
