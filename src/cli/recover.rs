//! `recover`: makes a session fit its window again.

use anyhow::anyhow;
use undertext::context::model::{Fault, ModelError};
use undertext::context::overflow::{self, Verdict};
use undertext::report::{Line, Report as _};
use undertext::verbs;

use super::common::Writing;
use super::models::{self, Summing, kit};
use super::{About, CommandError, Context, Exit};
use crate::render::units::grouped;

/// Shrink a session until it fits its model
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext recover
  undertext recover --error 'prompt is too long: 213462 tokens > 200000 maximum'
  undertext recover --window 128000 7c2a

It compacts at most three times, keeping less each time, and then truncates
once. If the session still doesn't fit, the error names its largest entries.
Everything it did can be undone.")]
pub(crate) struct Args {
    #[command(flatten)]
    about: About,

    /// What the provider said when it refused
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,

    /// Treat it as too long, whatever --error says
    #[arg(long, requires = "error")]
    insist: bool,

    #[command(flatten)]
    summing: Summing,

    #[command(flatten)]
    writing: Writing,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let settings = context.settings()?;
    let mut opened = context.change(args.about.wanted()?)?;
    let refused = args.error.as_deref().map(|said| read(said, args.insist)).transpose()?;
    opened.archive.set_manner(args.writing.manner(context));
    let kit = kit(context, &args.summing, &settings, &opened)?;
    kit.warn(context, &opened);
    let workspace = verbs::workspace(&context.env.current_dir);
    let done = verbs::recover(
        &opened.at()?,
        &workspace,
        &kit.compacting(),
        refused,
        &mut |_| Ok(()),
        &mut |event| (kit.sink)(event),
    )?;
    context.tell(&done.notices);
    for compacted in &done.compactions {
        models::tell_failures(context, compacted);
    }
    if context.answer_change(&opened, &done)? {
        return Ok(Exit::Yes);
    }
    let [before, after, window] = [done.pre_tokens, done.post_tokens, done.window].map(grouped);
    if done.operations.is_empty() {
        let fits =
            format!("The context fits: about {after} of {window} tokens; nothing was changed");
        context.say(&fits)?;
    } else {
        context.say(&format!(
            "The context went from about {before} to {after} tokens in a {window}-token window"
        ))?;
        let list: Vec<String> = done.operations.iter().map(ToString::to_string).collect();
        let noun = if list.len() == 1 { "operation" } else { "operations" };
        context.say(&format!("Recorded as {noun} {}", list.join(", ")))?;
    }
    context.output.hints(done.hints());
    Ok(Exit::Yes)
}

/// Reads a provider's message as a refusal, if it reports an overflow or `insists` says that it does.
fn read(said: &str, insists: bool) -> Result<ModelError, CommandError> {
    let overflow = |figures| ModelError {
        model: "the provider".to_owned(),
        fault: Fault::Overflow { said: said.to_owned(), figures },
    };
    let why = match overflow::judge(None, said) {
        Verdict::Overflow(figures) => return Ok(overflow(figures)),
        _ if insists => return Ok(overflow(overflow::figures(said))),
        Verdict::RateLimited(_) => "the provider only asks you to wait: the session fits",
        _ => "leave out --error to check only the window",
    };
    let insist = Line::about("recover").option("error", said).flag("insist");
    Err(CommandError::user(anyhow!("the text of --error does not look like an overflow"))
        .hinted(why)
        .hinted(insist.to("to shrink the context anyway")))
}
