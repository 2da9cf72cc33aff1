//! `switch`: makes a branch the current one.

use std::ffi::OsString;

use undertext::ops::{self, Later, OpsError};
use undertext::report::Line;

use super::common::{Delay, Moving};
use super::error::{CommandError, Exit};
use super::landing::{landed, tell_switched};
use super::later;
use super::words::{About, Noun};
use super::{Context, complete};

/// Make a branch the current one: the live file holds it from now on
///
/// The previous live file is kept under another name.
#[derive(Debug, clap::Args)]
#[command(alias = "checkout", after_help = concat!("\
Examples:
  undertext switch try-again
  undertext switch main -s 8f14e45f

JSON: one object
  {\"type\":\"switch\", \"session\":ID, \"title\":TEXT or null, \"format\":NAME, \"branch\":NAME,
   \"entry\":ID or null at the start, \"rotated\":PATH or null, \"written\":PATH of the agent's own file or null,
   \"operation\":N or null if it was current", landed!()))]
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
    let words = context.words(Noun::Branch, (1, 1), &[Some(&args.name)], &args.about)?;
    let name = words.nouns.first().copied().unwrap_or_default();
    if args.delay.later {
        let manner = args.moving.manner(context);
        return later::save(context, words.session, manner, Later::Switch(name.to_owned()));
    }
    let (mut archive, session) = args.moving.begin(context, words.session)?;
    let switched = ops::switch(&mut archive, &session, name);
    let is_place = || ops::find_place(archive.store(), &session, name).is_ok();
    let mut switched = switched.map_err(|error| match error {
        error @ OpsError::NoBranch { .. } if is_place() => CommandError::from(error)
            .hinted(Line::about("revert").with(name).to("to go back there on the current branch")),
        error => context.or_later(error, Line::about("switch").with(name)),
    })?;
    let changed = (&archive, &session);
    context.measure(changed.0, changed.1, &mut switched.landing);
    tell_switched(context, changed, &switched)
}
