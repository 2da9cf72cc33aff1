//! `export`: writes a session's file, byte for byte.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use undertext::disk::{self, Refusal};
use undertext::model::GenerationNumber;
use undertext::ops::{self, Archive, Session};
use undertext::report::{Exported, Line};

use super::Context;
use super::error::{CommandError, Exit};
use super::words::About;
use crate::render::style::Label;
use crate::render::table::{Align, Cell, Table};
use crate::render::{safe, units};

/// Write a session's file, byte for byte
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext export -o session.jsonl
  undertext export --list
  undertext export --generation 2 | less
  undertext export --file context_1.jsonl
  undertext export -o rollout.jsonl.zst    as it lay on the disk, if it was compressed

JSON: with --out one object
  {\"type\":\"export\", \"session\":ID, \"path\":PATH, \"bytes\":N}
and with --list one a state
  {\"type\":\"generation\", \"generation\":N, \"file\":PATH or null, \"entries\":N, \"bytes\":N,
   \"operation\":N that began it, \"container\":N bytes of the compressed file that held it or null, \"current\":whether the current branch stands in it BOOL}")]
pub(crate) struct Args {
    #[command(flatten)]
    about: About,

    /// Write to this file, which must not exist, instead of to the standard output
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Replace the file if it exists
    #[arg(long, requires = "out")]
    force: bool,

    /// Write this state of the file; left out, the one in which the current branch stands
    #[arg(long, value_name = "N", value_parser = super::common::number::<GenerationNumber>, allow_negative_numbers = true)]
    generation: Option<GenerationNumber>,

    /// Write the newest state of this file, by its name or path
    #[arg(long, value_name = "NAME", conflicts_with = "generation")]
    file: Option<PathBuf>,

    /// Write the compressed file as it lay on the disk; a FILE that ends in .zst asks for it too
    #[arg(long)]
    container: bool,

    /// List the files and their states that can be written
    #[arg(long, conflicts_with_all = ["out", "generation", "file", "container"])]
    list: bool,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let (archive, session) = context.look(args.about.wanted()?)?;
    if args.list {
        list(context, &archive, &session)?;
        return Ok(Exit::Yes);
    }
    let generation = match &args.file {
        Some(name) => Some(ops::generation_of(&archive, &session, name)?),
        None => args.generation,
    };
    let ends_so = |out: &PathBuf| out.extension().is_some_and(|end| end == "zst");
    let is_container = args.container || args.out.as_ref().is_some_and(ends_so);
    let export = if is_container { ops::export_container } else { ops::export };
    let Some(out) = &args.out else {
        let mut write = |part: &[u8]| context.output.write_all(part);
        export(&archive, &session, generation, &mut write)?;
        if context.env.terminal.stdout {
            let file = context.free_name((&archive, &session))?;
            context.output.hint(Line::about("export").option("out", file).to("to write a file"));
        }
        return Ok(Exit::Yes);
    };
    let path = context.env.current_dir.join(out);
    let mut bytes = 0;
    write_file(&path, args.force, &mut |file| {
        let mut write = |part: &[u8]| file.write_all(part);
        bytes = export(&archive, &session, generation, &mut write)?;
        Ok(())
    })?;
    let exported = Exported { session: &session.name.id, path: out, bytes };
    context.answer(&exported)?;
    context.output.note(&format!("Wrote {} to {}", units::size(bytes), safe::path(out)));
    Ok(Exit::Yes)
}

fn list(context: &mut Context, archive: &Archive, session: &Session) -> Result<(), CommandError> {
    let held = ops::generations(archive, session)?;
    if context.answer_all(&held)? {
        return Ok(());
    }
    let mut table =
        Table::new([Align::Right, Align::Right, Align::Right, Align::Left, Align::Left]);
    for held in &held {
        let plural = if held.entries == 1 { "entry" } else { "entries" };
        let file = held.file.as_deref().map(safe::path).unwrap_or_default();
        let container = held
            .container
            .map(|n| format!("  ({} compressed)", units::size(n)))
            .unwrap_or_default();
        table.row([
            Cell::new(Label::Id, &held.generation.to_string()),
            Cell::new(Label::Plain, &format!("{} {plural}", held.entries)),
            Cell::new(Label::Plain, &units::size(held.bytes)),
            Cell::new(Label::Head, if held.is_current { "current" } else { "" }),
            Cell::new(Label::Dim, &format!("by operation {}  {file}{container}", held.operation)),
        ]);
    }
    context.show(&table)
}

/// Makes a file that is there whole or not at all.
fn write_file(
    path: &Path,
    force: bool,
    fill: &mut dyn FnMut(&mut dyn Write) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let exists = || {
        CommandError::user(anyhow!("{} exists already", safe::path(path)))
            .hinted("replace it with --force")
    };
    let name = path.file_name().filter(|_| !path.is_dir());
    let name =
        name.ok_or_else(|| CommandError::user(anyhow!("{} is no file", safe::path(path))))?;
    // Only a file is replaced: never a device, a pipe, or a link that others rely on.
    match disk::look(path) {
        Ok(is_there) if is_there && !force => return Err(exists()),
        Err(error) if Refusal::of(&error).is_some() => {
            let why = anyhow!("{} is not written: {error}", safe::path(path));
            return Err(CommandError::user(why));
        }
        _ => {}
    }
    let mut fresh = name.to_owned();
    fresh.push(format!(".undertext-{}", std::process::id()));
    let fresh = path.with_file_name(fresh);
    let failed =
        |error| anyhow::Error::new(error).context(format!("cannot write {}", safe::path(path)));
    // The words of a session are nobody else's affair.
    let mut file = BufWriter::new(disk::make(&fresh).map_err(failed)?);
    let written = fill(&mut file).and_then(|()| {
        let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
        Ok(file.sync_all().map_err(failed)?)
    });
    let placed = written.and_then(|()| {
        if force {
            return Ok(fs::rename(&fresh, path).map_err(failed)?);
        }
        // Unlike a rename, a link never takes the place of a file that came meanwhile.
        match fs::hard_link(&fresh, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(exists()),
            Err(_) => Ok(fs::rename(&fresh, path).map_err(failed)?),
            Ok(()) => Ok(()),
        }
    });
    let left = fs::remove_file(&fresh);
    placed?;
    match left {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", safe::path(&fresh)))?
        }
        _ => Ok(()),
    }
}
