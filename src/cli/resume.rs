//! `resume`: starts the agent in a session.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::anyhow;
use undertext::report::{Line, LiveState, Resumed, Waiting};
use undertext::verbs;

use super::archive::{name_session, stored};
use super::later::{self, Choice};
use super::{About, CommandError, Context, Exit, Opened, landing};
use crate::render::safe;

/// Start the agent in a session
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext resume
  undertext resume 7c2a --print

The agent starts in the session's folder and continues on the current branch. A
change that waits is shown first, and made if you agree. With --apply, a change
that you saved yourself with --later is made without asking.

Exit codes: 1 if nothing was started because a change waits, or if --apply or
  --drop finds none")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Args {
    /// Print the command instead of running it
    #[arg(long)]
    print: bool,

    /// Make the change that waits, without asking
    #[arg(long, conflicts_with = "drop")]
    apply: bool,

    /// Drop the change that waits
    #[arg(long)]
    drop: bool,

    /// With --apply, write even if an agent has it open
    #[arg(long, requires = "apply", conflicts_with = "drop")]
    force: bool,

    #[command(flatten)]
    about: About,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let wanted = args.about.wanted()?;
    // What waits for the session of a file is in the store.
    let opened = match stored(context, wanted) {
        Some(stored) => {
            name_session(context, wanted, &stored)?;
            stored
        }
        None => context.find(wanted)?,
    };
    let waiting = verbs::waiting(&opened.at()?)?;
    let name = &opened.session.name;
    let same = OsString::from(format!("{}:{}", name.format, name.id));
    let wanted = if waiting.is_some() { Some(same.as_os_str()) } else { wanted };
    let mut opened = match &waiting {
        None if args.apply || args.drop => {
            let name = context.short_name(&opened.archive, &opened.session)?;
            context
                .output
                .note(&format!("No change of session {name} is waiting; nothing was started"));
            return Ok(Exit::No);
        }
        Some(waiting) => {
            let choice = choose(context, args, opened, waiting)?;
            match choice {
                Choice::Apply => later::apply(context, wanted, waiting, args.force)?,
                Choice::Drop => later::drop_waiting(context, wanted, waiting)?,
                Choice::Keep => {}
                Choice::Cancel => return Ok(Exit::No),
            }
            context.find(wanted)?
        }
        None => opened,
    };
    let waiting = verbs::waiting(&opened.at()?)?;
    if context.follow(&opened) == LiveState::Pending {
        if args.print || context.json {
            context.output.warn(&format!("the agent's file {}", LiveState::Pending.words()));
        } else {
            drop(opened);
            opened = context.change(wanted)?;
            context.tell(&verbs::settle(&opened.at()?)?);
        }
    }
    let session = &opened.at()?;
    let name = context.short_name(session.archive, session)?;
    let lost = verbs::lost_file(session)?;
    let Some(resume) = verbs::resume(session)?.filter(|_| lost.is_none()) else {
        let error = CommandError::user(anyhow!("no agent can resume session {name}"));
        return Err(match lost {
            Some(_) => error.hinted(
                Line::about("restore")
                    .to("to put its deleted file back where the agent reads it"),
            ),
            None if session.name.format == "native" => error.hinted(
                Line::new("help")
                    .with("turn")
                    .to("the session belongs to no agent; to get a model's answer in it"),
            ),
            None if verbs::is_unsaid(session)? => error.hinted(Line::about("branch").to(
                "its file has no messages; find the branch with the conversation, and `switch` to it",
            )),
            None => error.hinted(Line::about("status").to("see where the session's file is")),
        });
    };
    let waiting = waiting.as_ref();
    if context.answer(&Resumed { session, resume: &resume, waiting })? {
        return Ok(Exit::Yes);
    }
    let line = landing::spell_resume(&context.env, &resume);
    if let Some(ended) = landing::ended(session) {
        context.output.warn(ended);
    }
    if args.print {
        if let Some(waiting) = waiting {
            context.output.note(&format!("A change is waiting: {waiting}"));
        }
        // Escaped, so that a shell reads it as one line whatever its length.
        writeln!(context.output, "{}", safe::text(&line))?;
        return Ok(Exit::Yes);
    }
    if !agrees(context, &opened, &name)? {
        return Ok(Exit::No);
    }
    let Some((program, words)) = resume.command.split_first() else { return Ok(Exit::No) };
    let mut command = Command::new(program);
    command.args(words);
    if let Some(folder) = &resume.folder {
        if !folder.is_dir() {
            let folder = context.env.homely(folder);
            return Err(CommandError::user(anyhow!(
                "{folder}, the folder of session {name}, does not exist"
            ))
            .hinted(Line::about("resume").flag("print").to("to see the command")));
        }
        command.current_dir(folder);
    }
    drop(opened);
    context.output.note(&line);
    context.output.finish()?;
    let error = command.exec();
    Err(CommandError::user(anyhow!("cannot start {program}: {error}"))
        .hinted(format!("is {program} installed, and in $PATH?")))
}

/// Asks whether to start a second agent where one has the session open; without a terminal it only warns.
fn agrees(context: &mut Context, opened: &Opened, name: &str) -> Result<bool, CommandError> {
    let Some(open) = verbs::open_in(&opened.at()?).into_iter().next() else {
        return Ok(true);
    };
    context.output.warn(&format!("{open} has {name} open, and both would write to its file"));
    if !context.can_ask() || context.output.ask("Start another one?")? {
        return Ok(true);
    }
    context.output.note("Nothing was started");
    Ok(false)
}

/// Decides what to do with a waiting change: from the options, or by asking a person.
fn choose(
    context: &mut Context,
    args: &Args,
    opened: Opened,
    waiting: &Waiting,
) -> Result<Choice, CommandError> {
    match (args.apply && waiting.is_own, args.drop) {
        (true, _) => Ok(Choice::Apply),
        (_, true) => Ok(Choice::Drop),
        _ if !args.apply && (args.print || context.json) => Ok(Choice::Keep),
        _ => later::choose(context, opened, waiting),
    }
}
