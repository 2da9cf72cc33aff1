//! `man`: writes the manual, one page per command.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::builder::Resettable;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use undertext::disk;
use undertext::report::Page;

use super::{CommandError, Context, Exit, help};
use crate::render::safe;

/// Print manual pages
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext man graph
  undertext man | man -l -
  undertext man --out ~/.local/share/man/man1

A terminal shows the page as help.")]
pub(crate) struct Args {
    /// The command [default: undertext itself]
    #[arg(conflicts_with = "out")]
    command: Vec<String>,

    /// Write the pages of all commands to this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let Some(dir) = &args.out else {
        if context.env.terminal.stdout {
            context.output.page()?;
            return help::show(context, &args.command, help::Described::All);
        }
        let mut page = super::command();
        page.build();
        let mut names = args.command.iter();
        let page = names.try_fold(page, |at, name| at.find_subcommand(name).cloned());
        let page = page.ok_or_else(|| help::unknown(&args.command))?;
        MadePage::of(page).write(&mut context.output)?;
        return Ok(Exit::Yes);
    };
    let written = write_pages(super::command(), dir)?;
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
        let page = MadePage::of(command);
        let path = dir.join(page.man.get_filename());
        disk::open_or_make(&path)
            .and_then(|mut file| file.set_len(0).and_then(|()| page.write(&mut file)))
            .with_context(|| format!("cannot write {}", safe::path(&path)))?;
        written.push(path);
    }
    written.sort();
    Ok(written)
}

/// The manual page of a command. `rest` is the help text after the options, whose line breaks are preserved.
struct MadePage {
    man: Man,
    rest: String,
}

impl MadePage {
    fn of(command: clap::Command) -> Self {
        let rest = command.get_after_long_help().or_else(|| command.get_after_help());
        let rest = rest.map(ToString::to_string).unwrap_or_default();
        let command = command.after_help(Resettable::Reset).after_long_help(Resettable::Reset);
        let source = concat!("undertext ", env!("CARGO_PKG_VERSION"));
        Self { man: Man::new(command).source(source), rest }
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        self.man.render(out)?;
        let mut roff = Roff::new();
        for line in self.rest.lines() {
            let heading = line.split_once(':').filter(|(words, _)| {
                let is_word = |c: char| c.is_ascii_alphabetic() || c == ' ';
                words.starts_with(|c: char| c.is_ascii_uppercase()) && words.chars().all(is_word)
            });
            let Some((words, behind)) = heading else {
                roff.text([roman(line)]);
                continue;
            };
            roff.control("fi", []).control("SH", [words.to_uppercase().as_str()]);
            roff.control("nf", []);
            if !behind.trim().is_empty() {
                roff.text([roman(behind.trim_start())]);
            }
        }
        roff.control("fi", []);
        roff.to_writer(out)
    }
}
