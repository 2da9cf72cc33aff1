//! `log`: shows the conversation of a branch.

use std::ffi::OsString;

use anyhow::anyhow;
use undertext::report::Line;
use undertext::verbs;

use super::follow::Following;
use super::shown::Shown;
use super::words::{self, Noun};
use super::{About, CommandError, Context, Exit, archive, checkpoints, complete};

/// Show a conversation or a part of it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext log                      the newest session of this folder
  undertext log @12..@15 7c2a        turns 12 to 15 of session 7c2a
  undertext log -n 20 --full         the last 20 entries in full
  undertext log --branch main.1      a reverted branch
  undertext log -f                   follow the session as it is written

Long tool results are shortened here; undertext show prints them in full.

Exit codes: 1 if --grep finds nothing, or an entry is damaged")]
pub(crate) struct Args {
    /// A turn @7, a step @7.2 or a range @12..@15 [default: all]
    #[arg(value_name = "PLACE", add = complete::passages())]
    passage: Option<OsString>,

    #[command(flatten)]
    about: About,

    /// Show everything up to and including this place
    #[arg(long, value_name = "PLACE", conflicts_with = "branch", add = complete::places())]
    at: Option<String>,

    /// Show this branch
    #[arg(long, value_name = "NAME", add = complete::branches())]
    branch: Option<String>,

    /// Keep printing new entries until you press ctrl-C
    #[arg(short, long, conflicts_with_all = ["at", "branch"])]
    follow: bool,

    /// List the turns and checkpoints, a line each
    #[arg(long, conflicts_with_all = ["at", "branch", "follow", "full", "all", "grep", "verbose"])]
    checkpoints: bool,

    #[command(flatten)]
    shown: Shown,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let Args { passage, about, at, branch, follow, checkpoints, shown } = args;
    if *checkpoints {
        // With `--checkpoints`, the only word is a session.
        let wanted = match passage.as_deref() {
            Some(word) => words::one(Some(word), about.wanted()?)?,
            None => about.wanted()?,
        };
        return checkpoints::list(context, wanted, shown.count.unwrap_or(0));
    }
    let words = context.words(Noun::Passage, 0..=1, &[passage.as_deref()], about)?;
    let passage = words.nouns.first().copied();
    if passage.is_some() && (*follow || at.is_some() || branch.is_some()) {
        let error = anyhow!("a place cannot be combined with --follow, --at or --branch");
        return Err(
            CommandError::user(error).hinted(Line::new("log").flag("help").to("see the help"))
        );
    }
    let opened = context.look(words.session)?;
    let session = &opened.at()?;
    let find = |place: &str| verbs::find_passage(session, place);
    let passage = passage.map(find).transpose()?;
    let at = match (at, branch) {
        (Some(at), _) => Some(find(at)?.target),
        (_, Some(name)) => Some(verbs::branch_end(session, name)?),
        _ => None,
    };
    let log = shown.read(context, &opened, at.as_ref(), passage.as_ref())?;
    if !follow {
        if passage.is_none() {
            context.output.page_from_end();
        }
        let exit = shown.show(context, &opened, log)?;
        archive::leave(opened.archive);
        return Ok(exit);
    }
    context.output.forgo_pager();
    let following = Following::of(context, &opened, shown)?;
    shown.show(context, &opened, log)?;
    drop(opened.archive);
    following.go_on(context, shown)
}
