//! `completions`: prints the script that sets up completion in a shell.

use anyhow::anyhow;
use clap_complete::Shell;
use undertext::report::Line;

use super::{CommandError, Context, Exit, complete};

/// Print a completion script for your shell
///
/// It completes commands, options, and names from the store: sessions, checkpoints, branches and agents. It also defines the
/// short name ut, unless another command has that name.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext completions bash >> ~/.bashrc
  undertext completions zsh > ~/.zfunc/_undertext
  undertext completions fish > ~/.config/fish/completions/undertext.fish")]
pub(crate) struct Args {
    /// The shell [default: the one in $SHELL]
    shell: Option<Shell>,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let own = || context.env.shell.as_ref().and_then(Shell::from_shell_path);
    let shell = args.shell.or_else(own).ok_or_else(|| {
        CommandError::user(anyhow!("cannot tell the shell from $SHELL"))
            .hinted(Line::new("completions").with("bash").to("name it, such as"))
    })?;
    complete::register(&shell.to_string(), &mut context.output)?;
    Ok(Exit::Yes)
}
