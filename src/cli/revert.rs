//! `revert`: goes back to a place.

use std::ffi::OsString;

use anyhow::anyhow;
use undertext::report::Line;
use undertext::verbs::{self, Back, Later};

use super::common::{Delay, Moving};
use super::landing::{self, Moved};
use super::pick::{may_pick, pick_place};
use super::words::Noun;
use super::{About, CommandError, Context, Exit, complete, later};

/// Whether `revert` goes to just before the picked turn or to just after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Before,
    After,
}

/// Go back to a turn and leave the model a note
#[derive(Debug, clap::Args)]
#[command(aliases = ["rewind", "reset"], after_help = "\
Examples:
  undertext revert @3
  undertext revert @3 -m 'The parser is fine; look at the lexer first'
  undertext revert --keep @3
  undertext revert HEAD~2 7c2a         two turns back in session 7c2a
  undertext revert main.1              the end of a reverted branch

If PLACE is a turn, you go to just before it; otherwise, to just after PLACE.
Your prompt there is printed, so that you can send it again or change it.
Nothing is deleted: the reverted turns are kept as a branch. Files that the
agent edited since are named, not restored. git's revert makes a new commit;
this one moves to a place, like git's reset.")]
pub(crate) struct Args {
    /// A turn, a branch or an entry [default on a terminal: pick a turn]
    #[arg(value_name = "PLACE", allow_negative_numbers = true, add = complete::places())]
    place: Option<OsString>,

    /// Go to just after the turn, instead of before it
    #[arg(long)]
    keep: bool,

    /// Leave the model this note
    #[arg(short, long, allow_hyphen_values = true)]
    message: Option<String>,

    #[command(flatten)]
    moving: Moving,

    #[command(flatten)]
    delay: Delay,

    #[command(flatten)]
    about: About,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let may_pick = may_pick(context);
    if args.place.is_none() && !may_pick {
        return Err(no_place());
    }
    let least = usize::from(!may_pick);
    let words = context.words(Noun::Place, least..=1, &[args.place.as_deref()], &args.about)?;
    let side = if args.keep { Side::After } else { Side::Before };
    let wanted = match words.nouns.first() {
        Some(place) => (*place).to_owned(),
        None => pick_place(context, words.session, side)?,
    };
    let wanted = wanted.as_str();
    let message = args.message.as_deref();
    let back = if args.keep { Back::Keeping(wanted) } else { Back::To(wanted) };
    if args.delay.later {
        let (place, note) = (wanted.to_owned(), args.message.clone());
        let change = if args.keep { Later::Keep(place, note) } else { Later::Revert(place, note) };
        return later::save(context, words.session, &args.moving.writing, change);
    }
    let opened = args.moving.begin(context, words.session)?;
    let workspace = verbs::workspace(&context.env.current_dir);
    let reverted = verbs::revert(&opened.at()?, &workspace, back, message);
    let reverted = reverted.map_err(|error| {
        let is_number = wanted.bytes().all(|byte| byte.is_ascii_digit());
        let place = if is_number { format!("@{wanted}") } else { wanted.to_owned() };
        let line = Line::about("revert").with(place);
        let line = if args.keep { line.flag("keep") } else { line };
        let line = message.into_iter().fold(line, |line, note| line.option("message", note));
        later::or_later(context, error, line)
    })?;
    landing::tell(context, &opened, Moved::Reverted(wanted, reverted))
}

/// Returns the error of `revert` without a place.
pub(crate) fn no_place() -> CommandError {
    let error = anyhow!("which turn? name its number, such as @3");
    let used = Line::new("revert").flag("help").to("see the help");
    CommandError::user(error).hinted(Line::about("graph").to("list the turns")).hinted(used)
}
