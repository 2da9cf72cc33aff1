//! `store`: commands about the store as a whole. `store backup`, in this file, writes all sessions to a bundle.

use std::path::PathBuf;

use super::error::{CommandError, Exit};
use super::{Context, export, index, pack, rebuild, stats};

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

/// Write all sessions to one file while agents keep writing
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext store backup ~/undertext-monday.bundle
  undertext import ~/undertext-monday.bundle

The file is read back and its hashes are checked. It has the sessions as they
are, secrets included. A damaged store isn't backed up.")]
struct BackupArgs {
    /// The file to write, which must be new
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,
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
    let archive = context.open_reader()?;
    let sessions = archive.every()?;
    export::bundle(context, &archive, &sessions, &args.file, args.force)
}
