//! `store`: commands about the store as a whole; `store backup`, here, copies it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use undertext::ops::{self, Copying, Waiting};
use undertext::report::{LeftOut, Line, Report as _};
use undertext::store::StoreError;

use super::archive::is_there;
use super::common::{counted, shown};
use super::error::{CommandError, Exit};
use super::output::{Output, Progress};
use super::{Context, index, pack, rebuild, stats};
use crate::render::units;

/// Back up, measure and maintain the store
#[derive(Debug, clap::Args)]
#[command(
    subcommand_required = true,
    disable_help_subcommand = true,
    after_help = "\
Examples:
  undertext store stats
  undertext store backup ~/undertext-monday"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, clap::Subcommand)]
enum StoreCommand {
    Backup(BackupArgs),
    Index(index::Args),
    Pack(pack::Args),
    Rebuild(rebuild::Args),
    Stats(stats::Args),
}

/// Copy the store while agents keep writing
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext store backup ~/undertext-monday
  undertext sessions --store ~/undertext-monday

The copy is a store, and its hashes are checked. A damaged store isn't copied,
and neither are your agents' own files.")]
struct BackupArgs {
    /// A folder that is new or empty
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    match &args.command {
        StoreCommand::Backup(args) => backup(context, args),
        StoreCommand::Index(args) => index::run(context, args),
        StoreCommand::Pack(args) => pack::run(context, args),
        StoreCommand::Rebuild(args) => rebuild::run(context, args),
        StoreCommand::Stats(args) => stats::run(context, args),
    }
}

fn backup(context: &mut Context, args: &BackupArgs) -> Result<Exit, CommandError> {
    let root = context.root()?;
    if !is_there(&root)? {
        return Err(StoreError::Absent { path: root }.into());
    }
    let to = context.env.current_dir.join(&args.folder);
    let real = |folder: &Path| fs::canonicalize(folder).ok();
    if real(&context.env.current_dir).zip(real(&to)).is_some_and(|(here, to)| here.starts_with(to))
    {
        let name = shown(&args.folder);
        let error = anyhow!(
            "a backup would replace {name}, but the current folder is {name} or is inside it"
        );
        let free = |n: &u64| !context.env.current_dir.join(format!("backup-{n}")).exists();
        let name = (1..u64::MAX).find(free).map(|n| format!("backup-{n}")).unwrap_or_default();
        let backup = Line::new("store").with("backup").with(name);
        return Err(CommandError::user(error).hinted(backup.to("name another folder")));
    }
    context.clear_leftovers();
    let leftovers = context.leftovers();
    let output = &mut context.output;
    let waiting = Waiting { limit: context.wait, told: Output::waits() };
    let made = ops::backup(&root, &to, &waiting, leftovers.as_ref(), &mut |copying| {
        let (label, done, total, bytes) = match copying {
            Copying::Store(done, all) => {
                ("copying", (done * 100).checked_div(all).unwrap_or(0), 100, done)
            }
            Copying::Checking(done, all) => ("checking session", done, all, 0),
        };
        output.progress(Progress { label, done, total: Some(total), bytes, of: None });
    })?;
    context.remember(format!("the copy is in {}", shown(&made.path)));
    for LeftOut { path, why } in &made.left_out {
        let path = context.env.homely(path);
        context.output.warn(&format!("{path} is not in the backup: {why}"));
    }
    if context.answer(&made)? {
        return Ok(Exit::Yes);
    }
    context.say(&format!(
        "Copied {}, {} and {} to {} and checked the copy",
        counted(made.sessions, "session", "sessions"),
        counted(made.files, "file", "files"),
        units::size(made.bytes),
        shown(&made.path),
    ))?;
    context.output.hints(made.hints());
    Ok(Exit::Yes)
}
