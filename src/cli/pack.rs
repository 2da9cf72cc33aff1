//! `store pack`: compresses the store as far as possible.

use undertext::report::Report as _;
use undertext::verbs;

use super::Context;
use super::error::{CommandError, Exit};
use crate::render::units;

/// Compress the store as tightly as possible
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext store pack

Other programs can keep working. While it runs, it needs about as much free
space as the store takes up.")]
pub(crate) struct Args {}

pub(crate) fn run(context: &mut Context, _: &Args) -> Result<Exit, CommandError> {
    let archive = context.open_existing()?;
    let output = &mut context.output;
    let packed = verbs::pack(&archive, &mut |done, all| {
        let done = (done * 100).checked_div(all).unwrap_or(0);
        output.steps("packing", done, 100);
    })?;
    context.remember("the store is packed".to_owned());
    if context.answer(&packed)? {
        return Ok(Exit::Yes);
    }
    context.say(&format!(
        "Packed {} of lines: the store now takes up {}, instead of {}",
        units::size(packed.raw),
        units::size(packed.after),
        units::size(packed.before),
    ))?;
    if packed.damaged > 0 {
        let parts = super::common::counted(
            packed.damaged,
            "damaged part in the store was",
            "damaged parts in the store were",
        );
        context.output.warn(&format!("{parts} left alone"));
    }
    context.output.hints(packed.hints());
    Ok(Exit::Yes)
}
