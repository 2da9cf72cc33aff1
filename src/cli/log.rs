//! `log`: the conversation of a branch.

use std::ffi::OsString;

use anyhow::anyhow;
use undertext::ops;
use undertext::report::Line;

use super::error::{CommandError, Exit};
use super::follow::Following;
use super::shown::Shown;
use super::words::{About, Noun};
use super::{Context, checkpoints, complete, words};

/// Show the conversation of a branch, or a part of it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext log                          the newest session of this folder
  undertext log -n 20 --full 3f2a91c0    the last 20 entries of a session, whole
  undertext log @7                       turn 7
  undertext log 82@12..@15               turns 12 to 15 of the session 82
  undertext log --at @7                  all up to the end of turn 7
  undertext log --branch main.1          the branch that a revert left
  undertext log --grep linker            the entries that speak of it
  undertext log session.jsonl            a session file as it is; nothing is written
  undertext log -f -n 5                  the last 5 entries, then each new one as it is written

Exit codes: 1 if the words of --grep are not found, or the session is damaged

JSON: one object an entry, the first one first
  {\"type\":\"entry\", \"entry\":ID, \"uuid\":the record's own name or null, \"kind\":KIND,
   \"role\":\"system\", \"user\", \"assistant\" or \"tool\", or null if it is no message, \"time\":TIME or null,
   \"checkpoint\":N that stands before it or null, \"own\":the agent's own number of that, such as kimi:3, or null,
   \"checkpoints\":[{\"checkpoint\":N, \"note\":TEXT or null}] that were put behind it,
   \"model\":NAME or null, \"blocks\":[BLOCK]}
KIND is user, note, assistant, result, system, boundary, summary, meta or opaque; BLOCK is one of
  {\"block\":\"text\", \"text\":TEXT}
  {\"block\":\"thinking\", \"text\":TEXT}
  {\"block\":\"call\", \"id\":ID, \"name\":NAME, \"input\":JSON, or TEXT if it is none}
  {\"block\":\"result\", \"id\":ID of the call, \"text\":TEXT, \"error\":whether the tool failed BOOL,
   \"hidden\":CHARACTERS, only if undertext cut it}
  {\"block\":\"image\", \"bytes\":N}
  {\"block\":\"other\", \"name\":NAME}
and behind an entry that called sub-agents which work in the session's own file, one of each
  {\"type\":\"sub_agent\", \"entry\":ID of that entry, \"first\":ID, \"last\":ID, for log --at, \"entries\":N}
and in the place of an entry that is damaged
  {\"type\":\"damaged\", \"entry\":ID, \"problem\":TEXT}")]
pub(crate) struct Args {
    /// A turn: @7, one of its steps: @7.2, or a range: @12..@15, @12.., ..@15 [default: all]
    #[arg(value_name = "PLACE", add = complete::passages())]
    passage: Option<OsString>,

    #[command(flatten)]
    about: About,

    /// Show what led to this place, and the place: HEAD, HEAD~2, @7, a branch, or the beginning of an id
    #[arg(long, value_name = "PLACE", conflicts_with = "branch", add = complete::places())]
    at: Option<String>,

    /// Show this branch
    #[arg(long, value_name = "NAME", add = complete::branches())]
    branch: Option<String>,

    /// Go on with each new entry as it is written, until you press ctrl-C
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
        // Its only word is a session.
        let wanted = match passage.as_deref() {
            Some(word) => words::one(Some(word), about.wanted()?)?,
            None => about.wanted()?,
        };
        return checkpoints::list(context, wanted, shown.count.unwrap_or(0));
    }
    let words = context.words(Noun::Passage, (0, 1), &[passage.as_deref()], about)?;
    let passage = words.nouns.first().copied();
    if passage.is_some() && (*follow || at.is_some() || branch.is_some()) {
        let error = anyhow!("a part is shown by itself, without --follow, --at and --branch");
        return Err(
            CommandError::user(error).hinted(Line::new("log").flag("help").to("how it is used"))
        );
    }
    let (archive, session) = context.look(words.session)?;
    let find = |place: &str| ops::find_passage(archive.store(), &session, place);
    let passage = passage.map(find).transpose()?;
    let at = match (at, branch) {
        (Some(at), _) => Some(find(at)?.target),
        (_, Some(name)) => Some(ops::branch_end(archive.store(), &session, name)?),
        _ => None,
    };
    let log = shown.read(context, (&archive, &session), at.as_ref(), passage.as_ref())?;
    if !follow {
        if passage.is_none() {
            context.output.page_from_end();
        }
        let exit = shown.show(context, (&archive, &session), log)?;
        Context::leave(archive);
        return Ok(exit);
    }
    context.output.forgo_pager();
    let following = Following::of(context, (&archive, &session), shown)?;
    shown.show(context, (&archive, &session), log)?;
    drop(archive);
    following.go_on(context, shown)
}
