//! `export`: writes a session's file, byte for byte, or its conversation as a document.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use undertext::disk::{self, Refusal};
use undertext::live::{Leftovers, temporary_path};
use undertext::model::GenerationNumber;
use undertext::report::{BackedUp, Exported, Line};
use undertext::verbs::{self, Archive, Bundling, Session};

use super::archive::{clear_leftovers, leftovers, lookup};
use super::common::{counted, free_name, shown};
use super::document::{self, Form};
use super::error::{Kind, of_path};
use super::{CommandError, Context, Exit, Opened, complete, pointed, words};
use crate::render::table::{Cell, Label, Left, Right, Table};
use crate::render::{safe, units};

/// Write a session to a file, or as a document
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext export -o session.jsonl
  undertext export -o all.bundle
  undertext export -o session.html

You get the session's file as it is, secrets included, unless FILE's name or --as
asks for a document. A document has no secrets, thinking, reverted turns or
pictures unless you ask. FILE.bundle has whole sessions, for `import`.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Args {
    /// Ids, titles or files [default: newest of this folder]
    #[arg(value_name = "SESSION", add = complete::sessions())]
    session: Vec<OsString>,

    /// The session, where a word would be ambiguous
    #[arg(short = 's', long = "session", value_name = "SESSION", add = complete::sessions())]
    named: Option<OsString>,

    /// Write to FILE, which must be new [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long, requires = "out", conflicts_with = "list")]
    force: bool,

    #[command(flatten)]
    document: document::Options,

    /// Write state N of the file, as --list numbers them
    #[arg(long, value_name = "N", value_parser = super::common::number::<GenerationNumber>, allow_negative_numbers = true)]
    generation: Option<GenerationNumber>,

    /// Write the newest state of this file
    #[arg(long, value_name = "NAME", conflicts_with = "generation")]
    file: Option<PathBuf>,

    /// Write the compressed file as it was, as -o X.zst does
    #[arg(long)]
    container: bool,

    /// Leave out damaged entries instead of failing
    #[arg(long, conflicts_with = "container")]
    leave_damaged: bool,

    /// List the files and states that can be written
    #[arg(long, conflicts_with_all = ["out", "generation", "file", "container", "leave_damaged"])]
    list: bool,
}

impl Args {
    /// Returns the named session.
    fn wanted(&self) -> Result<Option<&OsStr>, CommandError> {
        if let [_, second, ..] = self.session.as_slice() {
            let error = anyhow!("{} is a second session; a file has one", second.display());
            let bundle = Line::new("export").option("out", "sessions.bundle");
            let bundle = self.session.iter().fold(bundle, Line::with);
            return Err(CommandError::user(error).hinted(bundle.to("write them to a bundle")));
        }
        words::one(self.session.first().map(OsString::as_os_str), self.named.as_deref())
    }

    /// Returns the output file; `None` for stdout.
    fn file(&self) -> Option<&Path> {
        self.out.as_deref().filter(|out| *out != Path::new("-"))
    }
}

/// The file that a document is written to.
pub(super) struct Target<'a> {
    pub(super) path: &'a Path,
    pub(super) force: bool,
    pub(super) leftovers: Option<&'a Leftovers>,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let form = args.document.form(args.file())?;
    if let Some(out) = args.file().filter(|out| out.extension().is_some_and(|it| it == "bundle")) {
        let is_whole = form.is_none()
            && args.generation.is_none()
            && args.file.is_none()
            && !args.container
            && !args.leave_damaged;
        if !is_whole {
            let error = anyhow!("a bundle has whole sessions; name a file with another ending");
            return Err(CommandError::user(error));
        }
        return export_bundle(context, args, out);
    }
    if let Some(form) = form {
        return export_document(context, args, form);
    }
    let opened = context.look(args.wanted()?)?;
    let session = &opened.at()?;
    if args.list {
        list(context, &opened)?;
        return Ok(Exit::Yes);
    }
    if let Some(out) = args.file() {
        check_apart(context, session.archive, out)?;
        clear_leftovers(context);
    }
    let leftovers = leftovers(&context.env);
    let generation = match &args.file {
        Some(name) => Some(verbs::generation_of(session, name)?),
        None => args.generation,
    };
    let ends_so = |out: &Path| out.extension().is_some_and(|end| end == "zst");
    let is_container = args.container || args.file().is_some_and(ends_so);
    let mut damaged = Vec::new();
    let mut export = |write: &mut dyn FnMut(&[u8]) -> io::Result<()>| -> Result<u64, CommandError> {
        if is_container {
            return Ok(verbs::export_container(session, generation, write)?);
        }
        if !args.leave_damaged {
            return Ok(verbs::export(session, generation, write)?);
        }
        let (bytes, left) = verbs::export_whole(session, generation, write)?;
        damaged = left;
        Ok(bytes)
    };
    let Some(out) = args.file() else {
        let is_looked_at = context.env.terminal.stdout;
        if is_looked_at && is_container {
            let error = anyhow!("a compressed file cannot be shown on a terminal");
            return Err(CommandError::user(error).hinted("name a file with -o"));
        }
        let (output, mut shown) = (&mut context.output, Shown::default());
        let written = export(&mut |part| {
            if is_looked_at {
                output.write_all(shown.push(part).as_bytes())
            } else {
                output.write_all(part)
            }
        });
        output.write_all(safe::bytes(&shown.open).as_bytes())?;
        if refused(context, &opened, generation, written)? == 0 {
            context.output.note("Nothing has been said yet");
        }
        let exit = context.tell_damaged(&damaged)?;
        if context.env.terminal.stdout {
            let file = free_name(context, &opened)?;
            context.output.hint(Line::about("export").option("out", file).to("to write a file"));
        }
        return Ok(exit);
    };
    let path = context.env.current_dir.join(out);
    let mut bytes = 0;
    let written = write_file(&path, args.force, leftovers.as_ref(), &mut |file| {
        let mut write = |part: &[u8]| file.write_all(part);
        bytes = export(&mut write)?;
        Ok(())
    });
    refused(context, &opened, generation, written)?;
    let exported = Exported { session: &session.name.id, path: out, bytes };
    context.answer(&exported)?;
    context.output.note(&format!("Wrote {} to {}", units::size(bytes), safe::path(out)));
    context.tell_damaged(&damaged)
}

fn export_document(context: &mut Context, args: &Args, form: Form) -> Result<Exit, CommandError> {
    let words: Vec<&OsStr> = match args.session.as_slice() {
        [_, _, ..] if form == Form::Html && args.file().is_some() => {
            args.session.iter().chain(&args.named).map(OsString::as_os_str).collect()
        }
        _ => args.wanted()?.into_iter().collect(),
    };
    let mut sessions = Vec::new();
    for word in &words {
        let opened = context.look(Some(word))?;
        if !sessions.iter().any(|other: &Opened| other.session.name == opened.session.name) {
            sessions.push(opened);
        }
    }
    if words.is_empty() {
        sessions.push(context.look(None)?);
    }
    let Some(path) = args.file() else {
        return document::export(context, &args.document, form, &sessions, None);
    };
    for opened in &sessions {
        check_apart(context, &opened.archive, path)?;
    }
    clear_leftovers(context);
    let leftovers = leftovers(&context.env);
    let target = Target { path, force: args.force, leftovers: leftovers.as_ref() };
    document::export(context, &args.document, form, &sessions, Some(&target))
}

fn export_bundle(context: &mut Context, args: &Args, out: &Path) -> Result<Exit, CommandError> {
    let archive = context.open_reader()?;
    let wanted = args.session.iter().chain(&args.named);
    let mut sessions = Vec::new();
    for word in wanted {
        let session = lookup(&context.env, &archive, Some(word))?;
        if !sessions.iter().any(|other: &Session| other.key == session.key) {
            sessions.push(session);
        }
    }
    if sessions.is_empty() {
        sessions = archive.every()?;
    }
    bundle(context, &archive, &sessions, out, args.force)
}

/// Refuses to write output into a file that belongs to a store or an agent. A session that was read from its file alone does
/// not know the others, so the store is checked as well.
fn check_apart(context: &mut Context, archive: &Archive, file: &Path) -> Result<(), CommandError> {
    let path = context.env.current_dir.join(file);
    if archive.root().is_some() {
        return Ok(verbs::check_apart(archive, &path)?);
    }
    let held = context.root().and_then(|root| context.reader(&root));
    let held = held.unwrap_or_else(|_| {
        let mut none = Archive::in_memory(context.env.ambient());
        none.set_writable(pointed::writable(context));
        none
    });
    Ok(verbs::check_apart(&held, &path)?)
}

/// Writes sessions to a bundle and reads it back to check it.
pub(super) fn bundle(
    context: &mut Context,
    archive: &Archive,
    sessions: &[Session],
    out: &Path,
    force: bool,
) -> Result<Exit, CommandError> {
    check_apart(context, archive, out)?;
    clear_leftovers(context);
    let leftovers = leftovers(&context.env);
    let path = context.env.current_dir.join(out);
    let mut written = BackedUp::default();
    let output = &mut context.output;
    write_file(&path, force, leftovers.as_ref(), &mut |file| {
        let mut progress = |bundling| {
            let (label, done, all) = match bundling {
                Bundling::Writing(done, all) => ("writing session", done, all),
                Bundling::Checking(done, all) => ("checking session", done, all),
            };
            output.steps(label, done, all);
        };
        verbs::bundle(archive, sessions, file, &mut progress)?;
        let fresh = temporary_path(&path);
        written = verbs::check_bundle(&fresh, sessions.len() as u64, &mut progress)?;
        Ok(())
    })?;
    written.path = path;
    context.done = Some(format!("{} was written", shown(out)));
    if !context.answer(&written)? {
        context.say(&format!(
            "Wrote {} and {} ({}) to {} and checked them",
            counted(written.sessions, "session", "sessions"),
            counted(written.entries, "entry", "entries"),
            units::size(written.bytes),
            shown(out),
        ))?;
    }
    Ok(Exit::Yes)
}

/// Lines of a file for display, with control sequences removed.
#[derive(Default)]
struct Shown {
    /// The last line, as long as it is incomplete.
    open: Vec<u8>,
}

impl Shown {
    /// Adds bytes, and returns the completed lines, made safe.
    fn push(&mut self, part: &[u8]) -> String {
        self.open.extend_from_slice(part);
        let end = self.open.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let rest = self.open.split_off(end);
        safe::bytes(&std::mem::replace(&mut self.open, rest)).into_owned()
    }
}

/// Reports the damaged entries that prevented writing a file.
fn refused<T>(
    context: &mut Context,
    opened: &Opened,
    generation: Option<GenerationNumber>,
    written: Result<T, CommandError>,
) -> Result<T, CommandError> {
    match written {
        Err(error) if error.is_damage() => {
            let mut look = |_: &[u8]| Ok(());
            let damaged = match verbs::export_whole(&opened.at()?, generation, &mut look) {
                Ok((_, damaged)) if !damaged.is_empty() => damaged,
                _ => return Err(error),
            };
            context.tell_damaged(&damaged)?;
            let are = if damaged.len() == 1 { "is" } else { "are" };
            let why = anyhow!(
                "the session was not written: {} of its entries {are} damaged",
                damaged.len()
            );
            let rest =
                Line::about("export").flag("leave-damaged").to("write the rest of the session");
            Err(CommandError::new(Kind::Failed, why).hinted(rest))
        }
        written => written,
    }
}

fn list(context: &mut Context, opened: &Opened) -> Result<(), CommandError> {
    let held = verbs::generations(&opened.at()?)?;
    context.answer_all(&held)?;
    let mut table = Table::new([Right, Right, Right, Left, Left]);
    for held in &held {
        let file = held.file.as_deref().map(|file| context.env.homely(file)).unwrap_or_default();
        let container = held
            .container
            .map(|n| format!("  ({} compressed)", units::size(n)))
            .unwrap_or_default();
        table.row([
            Cell::new(Label::Id, &held.generation.to_string()),
            Cell::new(Label::Plain, &counted(held.entries, "entry", "entries")),
            Cell::new(Label::Plain, &units::size(held.bytes)),
            Cell::new(Label::Head, if held.is_current { "current" } else { "" }),
            Cell::new(Label::Dim, &format!("by operation {}  {file}{container}", held.operation)),
        ]);
    }
    context.show(&table)
}

/// Creates a file atomically: complete or not at all.
pub(super) fn write_file(
    path: &Path,
    force: bool,
    leftovers: Option<&Leftovers>,
    fill: &mut dyn FnMut(&mut dyn Write) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let exists = || {
        CommandError::user(anyhow!("{} already exists", safe::path(path)))
            .hinted("replace it with --force")
    };
    if path.file_name().is_none() || path.is_dir() {
        let why = anyhow!("{} is a folder; name a file in it", safe::path(path));
        return Err(CommandError::user(why));
    }
    // Only replace regular files: never a device, a pipe, or a link that others rely on.
    match disk::look(path) {
        Ok(is_there) if is_there && !force => return Err(exists()),
        Err(error) if Refusal::of(&error).is_some() => {
            let why = anyhow!("cannot write to {}: {error}", safe::path(path));
            return Err(CommandError::user(why));
        }
        _ => {}
    }
    let fresh = temporary_path(path);
    // Export works without a writable state folder.
    let _writing = leftovers.and_then(|leftovers| leftovers.note(&fresh).ok());
    let failed = |error| of_path(format!("cannot write {}", safe::path(path)), error);
    // Nobody else may read a session's text.
    let mut file = BufWriter::new(disk::make(&fresh).map_err(failed)?);
    let written = fill(&mut file).and_then(|()| {
        let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(failed)
    });
    let placed = written.and_then(|()| {
        if force {
            return fs::rename(&fresh, path).map_err(failed);
        }
        // Unlike a rename, a link never replaces a file that was created meanwhile.
        match fs::hard_link(&fresh, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(exists()),
            Err(_) => fs::rename(&fresh, path).map_err(failed),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_looked_at_comes_in_safe_lines_however_it_is_read() {
        let file = "{\"a\":\"é\u{202e}\"}\nto\x1b]0;rn\x07\n\u{9b}2J".as_bytes();
        for size in 1..file.len() {
            let mut shown = Shown::default();
            let mut lines: String = file.chunks(size).map(|part| shown.push(part)).collect();
            lines += &safe::bytes(&shown.open);
            assert_eq!(lines, "{\"a\":\"é\\u{202e}\"}\nto\\x1b]0;rn\\x07\n\\u{9b}2J");
        }
    }
}
