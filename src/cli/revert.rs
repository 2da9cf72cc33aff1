//! `revert`: goes back to a place.

use std::ffi::OsString;

use undertext::ops::{self, Back, Later};
use undertext::report::Line;

use super::common::{Delay, Moving};
use super::error::{CommandError, Exit};
use super::landing::{landed, place, tell_back};
use super::later;
use super::pick::Side;
use super::words::{About, Noun};
use super::{Context, complete};

/// Go back to a checkpoint or an entry, and perhaps leave the model a note from the future
///
/// A turn's number goes to just before that turn, with --keep to just after it; any other place to just after it. Without a
/// place you pick a turn, if you are at a terminal. Your prompt there is shown, to send again or change, and on a terminal copied to the clipboard.
///
/// Nothing is lost: the turns after the place are kept on a branch, and the previous live file under another name. If you go
/// back to the end of that branch before anything else is said, its name is removed again. With -m the model is told that the
/// conversation had already gone further, and reads your note.
///
/// git's revert makes a commit that takes another one back. This one goes back to a place, as git's reset does. Files are not
/// restored: those that the agent edited since are named.
#[derive(Debug, clap::Args)]
#[command(aliases = ["rewind", "reset"], after_help = concat!("\
Examples:
  undertext revert 3
  undertext revert 3 -m 'The parser is fine; look at the lexer first'
  undertext revert --keep 3              to just before the turn after @3
  undertext revert main.1                where an earlier revert left from
  undertext revert HEAD~2 7c2a51de       two entries back, in the session 7c2a51de
  undertext log --checkpoints

PLACE is the number of a checkpoint, with or without @, an id or a uuid, or its beginning, HEAD, a branch, or one of
these with ~N for N entries before it

JSON: one object
  {\"type\":\"revert\", \"session\":ID, \"title\":TEXT or null, \"format\":NAME, \"checkpoint\":N or null if another place was
   named, \"entry\":ID where the branch stands or null at the start, \"branch\":NAME, \"left\":the branch that keeps the old
   end or null, \"dropped\":entries that are only there, \"note\":ID of the note or null,
   \"rotated\":PATH of the previous live file or null, \"written\":PATH of the agent's own file or null,
   \"operation\":N or null if nothing had to change", landed!()))]
pub(crate) struct Args {
    /// Where to: a checkpoint, an entry or a branch [default: on a terminal, the turn that you pick]
    #[arg(value_name = "PLACE", allow_negative_numbers = true, add = complete::places())]
    place: Option<OsString>,

    /// Keep this turn, and take back what follows it
    #[arg(long)]
    keep: bool,

    /// Leave this for the model to read
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
    let may_pick = context.may_pick();
    if args.place.is_none() && !may_pick {
        return Err(Context::no_place());
    }
    let least = usize::from(!may_pick);
    let words = context.words(Noun::Place, (least, 1), &[args.place.as_deref()], &args.about)?;
    let side = if args.keep { Side::After } else { Side::Before };
    let wanted = match words.nouns.first() {
        Some(place) => (*place).to_owned(),
        None => context.pick_place(words.session, side)?,
    };
    let wanted = wanted.as_str();
    let message = args.message.as_deref();
    let back = if args.keep { Back::Keeping(wanted) } else { Back::To(wanted) };
    if args.delay.later {
        let manner = args.moving.manner(context);
        let (place, note) = (wanted.to_owned(), args.message.clone());
        let change = if args.keep { Later::Keep(place, note) } else { Later::Revert(place, note) };
        return later::save(context, words.session, manner, change);
    }
    let (mut archive, session) = args.moving.begin(context, words.session)?;
    let workspace = context.workspace();
    let reverted = ops::revert(&mut archive, &session, &workspace, back, message);
    let mut reverted = reverted.map_err(|error| {
        let is_number = wanted.bytes().all(|byte| byte.is_ascii_digit());
        let place = if is_number { format!("@{wanted}") } else { wanted.to_owned() };
        let line = Line::about("revert").with(place);
        let line = if args.keep { line.flag("keep") } else { line };
        let line = message.into_iter().fold(line, |line, note| line.option("message", note));
        context.or_later(error, line)
    })?;
    context.measure(&archive, &session, &mut reverted.landing);
    let to = place(&reverted, wanted);
    tell_back(context, &to, (&archive, &session), &reverted, &reverted)
}
