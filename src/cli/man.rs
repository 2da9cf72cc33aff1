//! `man`: the manual, a page a command.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap_mangen::Man;
use undertext::report::Page;

use super::Context;
use super::error::{CommandError, Exit};
use crate::render::safe;

/// Print the manual page of undertext, or write the pages of all commands
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext man | man -l -
  undertext man --out ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// Write a page for each command to this folder, which is created
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let Some(dir) = &args.out else {
        Man::new((context.describe)()).render(&mut context.output)?;
        return Ok(Exit::Yes);
    };
    let written = write_pages((context.describe)(), dir)?;
    for path in &written {
        context.answer(&Page { path })?;
    }
    context.output.note(&format!("Wrote {} pages to {}", written.len(), safe::path(dir)));
    Ok(Exit::Yes)
}

fn write_pages(mut command: clap::Command, dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", safe::path(dir)))?;
    command.build();
    let mut written = Vec::new();
    let mut left = vec![command];
    while let Some(command) = left.pop() {
        left.extend(command.get_subcommands().filter(|command| !command.is_hide_set()).cloned());
        let page = Man::new(command);
        let path = dir.join(page.get_filename());
        page.generate_to(dir).with_context(|| format!("cannot write {}", safe::path(&path)))?;
        written.push(path);
    }
    written.sort();
    Ok(written)
}
