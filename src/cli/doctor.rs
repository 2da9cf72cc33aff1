//! `doctor`: looks at the folder of the store, and mends what it can.

use undertext::ops::{self, Ailment, Cure};
use undertext::report::{Examined, Report as _};
use undertext::store::StoreError;

use super::Context;
use super::common::shown;
use super::error::{CommandError, Exit};

/// Look at the folder of the store: its place, its modes, its owner, and what crashes left behind
///
/// The store need not be healthy for that; what it holds is checked by verify. If something is left that needs care,
/// the answer is no, which is exit code 1.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext doctor
  undertext doctor --fix

JSON: one object an ailment
  {\"type\":\"ailment\", \"path\":PATH, \"problem\":TEXT, \"cure\":\"mode\", \"delete\" or \"person\", \"cured\":BOOL}
and at last
  {\"type\":\"examined\", \"ok\":BOOL, \"path\":PATH of the store}")]
pub(crate) struct Args {
    /// Set modes right and delete what crashes left behind
    #[arg(long)]
    fix: bool,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let root = context.root()?;
    if !root.exists() {
        return Err(StoreError::Absent { path: root }.into());
    }
    let mut ailments = ops::doctor(&root)?;
    if args.fix {
        ops::treat(&root, &mut ailments)?;
    }
    for ailment in &ailments {
        tell(context, ailment)?;
    }
    let examined = Examined { path: &root, ailments: &ailments };
    let exit = if examined.is_ok() { Exit::Yes } else { Exit::No };
    if context.answer(&examined)? {
        return Ok(exit);
    }
    if examined.is_ok() {
        context.say(&format!("{} is in order", shown(&root)))?;
    }
    context.output.hints(examined.hints());
    Ok(exit)
}

fn tell(context: &mut Context, ailment: &Ailment) -> Result<(), CommandError> {
    if context.answer(ailment)? {
        return Ok(());
    }
    let Ailment { path, problem, cure, cured } = ailment;
    let done = match (cured, cure) {
        (false, _) => String::new(),
        (true, Cure::Mode(mode)) => format!("; it is {mode:04o} now"),
        (true, _) => "; it is deleted".to_owned(),
    };
    context.say(&format!("{}: {problem}{done}", shown(path)))
}
