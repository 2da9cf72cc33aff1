//! `undo`: undoes an operation.

use std::ffi::{OsStr, OsString};

use anyhow::anyhow;
use undertext::ops;
use undertext::report::{Hint, Line};

use super::Context;
use super::common::Moving;
use super::error::{CommandError, Exit};
use super::landing::{landed, tell_undone};
use super::words::{self, About, Noun};

/// Undo the newest operation that moved the conversation, or the one with a number
///
/// Without a number, this undoes the newest append, revert, switch, clear, truncate or compact. To undo another operation, such as
/// an attach, a restore, a checkpoint or the name of a branch, give its number. What the operation moved goes back to where it
/// was, the live file too. What came after it is kept as a branch. Nothing is erased: an undo is an operation itself.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!("\
Examples:
  undertext undo
  undertext undo 7
  undertext undo 7c2a51de                in the session 7c2a51de
  undertext operations

JSON: one object
  {\"type\":\"undo\", \"session\":ID, \"title\":TEXT or null, \"format\":NAME, \"operation\":N, \"undoes\":N, \"command\":the command of that operation,
   \"left\":[branches that keep what came after it], \"rotated\":PATH of the previous live file or null,
   \"written\":PATH of the agent's own file or null", landed!()))]
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
    let begun = args.moving.begin(context, words.session);
    let operation = match words.nouns.first().map(|word| (word, word.parse())) {
        None => None,
        Some((_, Ok(n))) => Some(n),
        Some((word, Err(_))) => {
            let wrong = anyhow!("{word} is neither an operation nor a session");
            let wrong = CommandError::user(wrong);
            return Err(match begun {
                Err(error) if !error.is_no_session() => error,
                Err(_) => wrong.hinted(Hint::sessions()),
                Ok(_) => {
                    let error = wrong.hinted(Line::about("operations").to("list the operations"));
                    let help = Line::new("help").with("revert").to("to go back to a place");
                    let is_place = words::is_place_only(OsStr::new(word));
                    if is_place { error.hinted(help) } else { error }
                }
            });
        }
    };
    let (mut archive, session) = begun?;
    let was_hidden = archive.store().card(session.key)?.hidden;
    let undone = ops::undo(&mut archive, &session, operation)?;
    tell_undone(context, (&archive, &session), &undone, (&undone, was_hidden))
}
