//! `undo`: undoes an operation.

use undertext::model::OperationNumber;
use undertext::report::Line;
use undertext::verbs::{self, Later};

use super::common::{self, Delay, Moving};
use super::landing::{self, Moved};
use super::operations::{self, Which};
use super::{About, CommandError, Context, Exit, later};

/// Undo the last change, or any other operation
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext undo
  undertext undo 7c2a            in session 7c2a
  undertext undo --list
  undertext undo --op 7

Without --op, the newest append, revert, switch, clear, truncate or compact is
undone. --op undoes any operation, such as the new name of a branch. What came
after it is kept as a branch. redo reverses an undo.")]
pub(crate) struct Args {
    /// Undo the operation with this number
    #[arg(long = "op", value_name = "N", value_parser = common::number::<OperationNumber>, allow_negative_numbers = true)]
    operation: Option<OperationNumber>,

    /// List the operations of the session, newest first
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
        return later::save(context, wanted, &args.moving.writing, Later::Undo(args.operation));
    }
    let opened = args.moving.begin(context, wanted)?;
    let undone = verbs::undo(&opened.at()?, args.operation);
    let undone = undone.map_err(|error| {
        let n = args.operation.map(|n| n.to_string());
        let line = n.into_iter().fold(Line::about("undo"), |line, n| line.option("op", n));
        later::or_later(context, error, line)
    })?;
    landing::tell(context, &opened, Moved::Undone(undone))
}
