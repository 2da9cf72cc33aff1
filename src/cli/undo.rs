//! `undo`: undoes an operation.

use undertext::model::OperationNumber;
use undertext::ops::{self, Later};
use undertext::report::Line;

use super::Context;
use super::common::{self, Delay, Moving};
use super::error::{CommandError, Exit};
use super::landing::{landed, tell_undone};
use super::later;
use super::operations::{self, Which};
use super::words::About;

/// Undo the newest operation that moved the conversation, or another one by its number
///
/// Without --op, this undoes the newest append, revert, switch, clear, truncate or compact. To undo another operation, such as
/// an attach, a restore, a checkpoint or the name of a branch, give its number. What the operation moved goes back to where it
/// was, the live file too. What came after it is kept as a branch. Nothing is erased: an undo is an operation itself.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!("\
Examples:
  undertext undo
  undertext undo 7c2a                    in the session 7c2a
  undertext undo --op 7
  undertext undo --list

JSON: one object
  {\"type\":\"undo\", \"session\":ID, \"title\":TEXT or null, \"format\":NAME, \"operation\":N, \"undoes\":N, \"command\":the command of that operation,
   \"left\":[branches that keep what came after it], \"rotated\":PATH of the previous live file or null,
   \"written\":PATH of the agent's own file or null", landed!()))]
pub(crate) struct Args {
    /// Undo this operation
    #[arg(long = "op", value_name = "N", value_parser = common::number::<OperationNumber>, allow_negative_numbers = true)]
    operation: Option<OperationNumber>,

    /// List the operations of the session, the newest first
    #[arg(short, long, conflicts_with_all = ["operation", "dry_run", "later", "force", "rotate"])]
    list: bool,

    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    moving: Moving,

    #[command(flatten)]
    delay: Delay,

    #[command(flatten)]
    about: About,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    if args.list {
        return operations::list(context, &args.about, &args.which);
    }
    let wanted = args.about.wanted()?;
    if args.delay.later {
        let manner = args.moving.manner(context);
        return later::save(context, wanted, manner, Later::Undo(args.operation));
    }
    let (mut archive, session) = args.moving.begin(context, wanted)?;
    let was_hidden = archive.store().card(session.key)?.hidden;
    let undone = ops::undo(&mut archive, &session, args.operation);
    let mut undone = undone.map_err(|error| {
        let n = args.operation.map(|n| n.to_string());
        let line = n.into_iter().fold(Line::about("undo"), |line, n| line.option("op", n));
        context.or_later(error, line)
    })?;
    context.measure(&archive, &session, &mut undone.landing);
    tell_undone(context, (&archive, &session), &undone, (&undone, was_hidden))
}
