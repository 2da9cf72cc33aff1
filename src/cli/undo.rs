//! `undo`: undoes an operation.

use std::ffi::OsString;

use anyhow::anyhow;
use undertext::ops;
use undertext::report::Line;

use super::Context;
use super::common::Moving;
use super::error::{CommandError, Exit};
use super::landing::tell_undone;
use super::words::{About, Noun};

/// Undo the newest operation, or the one of a number
///
/// What the operation moved goes back to where it was, the live file too. What came after it is kept as a branch. Nothing
/// is erased: an undo is an operation itself.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext undo
  undertext undo 7
  undertext undo 7c2a51de                the newest operation of the session 7c2a51de
  undertext operations

JSON: one object
  {\"type\":\"undo\", \"session\":ID, \"title\":TEXT or null, \"format\":NAME, \"operation\":N, \"undoes\":N, \"command\":the command of that operation,
   \"left\":[branches that keep what came after it], \"rotated\":PATH of the previous live file or null,
   \"written\":PATH of the agent's own file or null}")]
pub(crate) struct Args {
    /// The number of the operation
    #[arg(value_name = "OP", allow_negative_numbers = true)]
    operation: Option<OsString>,

    #[command(flatten)]
    moving: Moving,

    #[command(flatten)]
    about: About,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let nouns = [args.operation.as_deref()];
    let words = context.words(Noun::Operation, (0, 1), &nouns, &args.about)?;
    let (mut archive, session) = args.moving.begin(context, words.session)?;
    let number = |word: &&str| {
        let error = || CommandError::user(anyhow!("{word} is neither an operation nor a session"));
        word.parse()
            .map_err(|_| error().hinted(Line::about("operations").to("list the operations")))
    };
    let operation = words.nouns.first().map(number).transpose()?;
    let undone = ops::undo(&mut archive, &session, operation)?;
    tell_undone(context, (&archive, &session), &undone, &undone)
}
