//! `completions`: prints a script that completes commands and options in a shell.

use std::io::Write as _;

use anyhow::anyhow;
use clap_complete::Shell;

use super::error::{CommandError, Exit};
use super::{Context, NAME};
use undertext::report::Line;

/// Print a script that completes commands and options in a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext completions bash > ~/.local/share/bash-completion/completions/undertext
  undertext completions fish > ~/.config/fish/completions/undertext.fish
  undertext completions zsh > ~/.zfunc/_undertext")]
pub(crate) struct Args {
    /// The shell; left out, the one in $SHELL
    shell: Option<Shell>,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let own = || context.env.shell.as_ref().and_then(Shell::from_shell_path);
    let shell = args.shell.or_else(own).ok_or_else(|| {
        CommandError::user(anyhow!("cannot tell the shell from $SHELL"))
            .hinted(Line::new("completions").with("bash").to("name it, such as"))
    })?;
    // The generator panics if its writer fails, and memory does not.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut (context.describe)(), NAME, &mut script);
    context.output.write_all(&script)?;
    Ok(Exit::Yes)
}
