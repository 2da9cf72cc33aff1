//! `recover`: brings a session under its window again.

use anyhow::anyhow;
use undertext::context::model::{Fault, ModelError};
use undertext::context::overflow::{self, Figures, Verdict};
use undertext::ops;
use undertext::report::{Fitted, Report as _};

use super::Context;
use super::common::Writing;
use super::error::{CommandError, Exit};
use super::models::Summing;
use super::words::About;

/// Shrink a session until it fits its model
///
/// For a session whose agent was told that it does not fit: its context is compacted, at most three times and each time
/// keeping less, then large results are cut once, until it fits. What the provider said tells how much it counted. If
/// nothing helps the error names the largest entries, and what was done stays and can be undone.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext recover
  undertext recover --error 'prompt is too long: 213462 tokens > 200000 maximum' 3f2a91c0
  undertext recover --window 128000 --events

JSON: one object
  {\"type\":\"recover\", \"session\":ID, \"title\":TEXT or null, \"format\":NAME, \"operations\":[N], \"pre_tokens\":N, \"post_tokens\":N, \"window\":N}
With --events, one object an event on stderr, tagged with its \"event\".")]
pub(crate) struct Args {
    #[command(flatten)]
    about: About,

    /// Go by what the provider said as it refused
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,

    #[command(flatten)]
    summing: Summing,

    #[command(flatten)]
    writing: Writing,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let settings = context.settings()?;
    let mut refusal = args.error.as_deref().map(refused).transpose()?;
    let (mut archive, session) = context.change(args.about.wanted()?)?;
    archive.set_manner(args.writing.manner(context));
    let kit = context.kit(&args.summing, &settings, &archive, &session)?;
    let wanted = kit.compacting();
    let workspace = context.workspace();
    let figures = refusal.as_ref().map_or(Figures::default(), |(_, figures)| *figures);
    let mut window = 0;
    let mut first = None;
    let mut attempt = |found: &ops::Context| {
        let tokens = wanted.tokens(found);
        window = figures.limit.unwrap_or(found.window.tokens);
        let first = *first.get_or_insert(tokens.max(1));
        // The provider's count tells how far the count here is off.
        let counted = figures.used.map_or(tokens, |used| {
            let scaled = u128::from(tokens) * u128::from(used) / u128::from(first);
            u64::try_from(scaled).unwrap_or(u64::MAX)
        });
        let fault = match refusal.take() {
            Some((said, figures)) => Fault::Overflow { said, figures },
            None if counted <= window => return Ok(()),
            None => Fault::Overflow {
                said: format!("{counted} tokens are more than {window}"),
                figures: Figures { used: Some(counted), limit: Some(window) },
            },
        };
        Err(ModelError { model: "the provider".to_owned(), fault })
    };
    let mut emit = |event: &_| (kit.sink)(event);
    let done = ops::recover(&mut archive, &session, &workspace, &wanted, &mut attempt, &mut emit)?;
    let ops::Recovered { operations, pre_tokens, post_tokens, .. } = &done;
    let (pre_tokens, post_tokens) = (*pre_tokens, *post_tokens);
    let fitted = Fitted { operations, pre_tokens, post_tokens, window };
    if context.answer_change((&archive, &session), &fitted)? {
        return Ok(Exit::Yes);
    }
    if done.operations.is_empty() {
        let tokens = done.post_tokens;
        context
            .say(&format!("It fits: about {tokens} tokens of {window}, and nothing is changed"))?;
    } else {
        let (pre, post) = (done.pre_tokens, done.post_tokens);
        context.say(&format!("About {pre} tokens are {post} now, of a window of {window}"))?;
        let list: Vec<String> = done.operations.iter().map(ToString::to_string).collect();
        let noun = if list.len() == 1 { "operation" } else { "operations" };
        context.say(&format!("This took {noun} {}", list.join(", ")))?;
    }
    context.output.hints(fitted.hints());
    Ok(Exit::Yes)
}

/// Returns a provider's words and the figures in them, if they tell of an overflow.
fn refused(said: &str) -> Result<(String, Figures), CommandError> {
    match overflow::judge(None, said) {
        Verdict::Overflow(figures) => Ok((said.to_owned(), figures)),
        Verdict::RateLimited => Err(CommandError::user(anyhow!("that is no overflow"))
            .hinted("the provider asks for a pause; the session fits")),
        _ => Err(CommandError::user(anyhow!("that is no overflow"))
            .hinted("leave --error out to go by the window alone")),
    }
}
