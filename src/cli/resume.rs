//! `resume`: starts the agent in a session.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::anyhow;
use undertext::ops;
use undertext::report::{Line, LiveState, Resumed};

use super::Context;
use super::error::{CommandError, Exit};
use super::landing::ended;
use super::words::About;

/// Start the agent in a session, in the folder where the session works
///
/// The agent takes the place of undertext: it resumes the current branch from its own file. What a command that was cut short is
/// still to write there is written first.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext resume
  undertext resume 8f14e45f
  undertext resume 8f14e45f --print

JSON, which starts nothing: one object
  {\"type\":\"resume\", \"session\":ID, \"format\":NAME, \"folder\":PATH or null, \"command\":[the agent's program and its arguments]}")]
pub(crate) struct Args {
    /// Print the command, and start nothing
    #[arg(long)]
    print: bool,

    #[command(flatten)]
    about: About,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let wanted = args.about.wanted()?;
    let (mut archive, mut session) = context.find(wanted)?;
    if context.follow(&archive, &session) == LiveState::Pending {
        if args.print || context.json {
            let pending = LiveState::Pending.words();
            context.output.warn(&format!("the agent's file {pending}"));
        } else {
            drop(archive);
            (archive, session) = context.change(wanted)?;
            context.tell(&ops::settle(&archive, &session)?);
        }
    }
    let name = context.short_name(&archive, &session)?;
    let lost = ops::lost_file(&archive, &session)?;
    let Some(resume) = ops::resume(&archive, &session)?.filter(|_| lost.is_none()) else {
        let error = CommandError::user(anyhow!("no agent resumes session {name}"));
        return Err(match lost {
            Some(_) => error.hinted(
                Line::about("restore")
                    .to("its file was deleted; to put it back where the agent reads it"),
            ),
            None if session.name.format == "native" => error.hinted(
                Line::new("help")
                    .with("turn")
                    .to("it is undertext's own; to have a model answer in it"),
            ),
            None if ops::is_unsaid(&archive, &session)? => error.hinted(Line::about("branch").to(
                "its file holds no message; find the branch with what was said, and `switch` to it",
            )),
            None => error.hinted(Line::about("status").to("see where its file is")),
        });
    };
    if context.answer(&Resumed { session: &session, resume: &resume })? {
        return Ok(Exit::Yes);
    }
    let line = context.spell_resume(&resume);
    if let Some(ended) = ended(&session) {
        context.output.warn(ended);
    }
    if args.print {
        context.say(&line)?;
        return Ok(Exit::Yes);
    }
    let Some((program, words)) = resume.command.split_first() else { return Ok(Exit::No) };
    let mut command = Command::new(program);
    command.args(words);
    if let Some(folder) = &resume.folder {
        if !folder.is_dir() {
            let folder = context.env.homely(folder);
            return Err(CommandError::user(anyhow!(
                "{folder}, where session {name} works, is not there"
            ))
            .hinted(Line::about("resume").flag("print").to("to see the command")));
        }
        command.current_dir(folder);
    }
    drop(archive);
    context.output.note(&line);
    context.output.finish()?;
    let error = command.exec();
    Err(CommandError::user(anyhow!("cannot start {program}: {error}"))
        .hinted(format!("is {program} installed, and in $PATH?")))
}
