//! `switch`: makes a branch the current one.

use std::ffi::OsString;

use undertext::report::Line;
use undertext::verbs::{self, Later, OpsError};

use super::common::{Delay, Moving};
use super::landing::{self, Moved};
use super::words::Noun;
use super::{About, CommandError, Context, Exit, complete, later};

/// Switch to another branch
#[derive(Debug, clap::Args)]
#[command(
    alias = "checkout",
    after_help = "\
Examples:
  undertext switch main.1
  undertext switch try-again -s 7c2a

The agent resumes from that branch. The previous one stays as it is."
)]
pub(crate) struct Args {
    /// The branch
    #[arg(value_name = "BRANCH", add = complete::branches())]
    name: OsString,

    #[command(flatten)]
    moving: Moving,

    #[command(flatten)]
    delay: Delay,

    #[command(flatten)]
    about: About,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let words = context.words(Noun::Branch, 1..=1, &[Some(&args.name)], &args.about)?;
    let name = words.nouns.first().copied().unwrap_or_default();
    if args.delay.later {
        let change = Later::Switch(name.to_owned());
        return later::save(context, words.session, &args.moving.writing, change);
    }
    let opened = args.moving.begin(context, words.session)?;
    let switched = verbs::switch(&opened.at()?, name);
    let is_place = || opened.at().is_ok_and(|session| verbs::find_place(&session, name).is_ok());
    let switched = switched.map_err(|error| match error {
        error @ OpsError::NoBranch { .. } if is_place() => CommandError::from(error).hinted(
            Line::about("revert").with(name).to("to go back to that place on the current branch"),
        ),
        error => later::or_later(context, error, Line::about("switch").with(name)),
    })?;
    landing::tell(context, &opened, Moved::Switched(switched))
}
