//! `store`: commands about the store as a whole: backing it up, measuring, packing, indexing and rebuilding it.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use undertext::report::{Indexed, Report as _};
use undertext::verbs::{self, AgentSizes, Archive};

use super::common::counted;
use super::words::ONE_OR_ALL;
use super::{About, CommandError, Context, Exit, Opened, archive, export};
use crate::render::table::{Cell, Label, Left, Right, Table};
use crate::render::units::{self, DIGITS};

/// Back up, measure and maintain the store
#[derive(Debug, clap::Args)]
#[command(
    subcommand_required = true,
    disable_help_subcommand = true,
    after_help = "\
Examples:
  undertext store sizes
  undertext store backup ~/undertext-monday"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, clap::Subcommand)]
enum StoreCommand {
    Backup(BackupArgs),
    Index(IndexArgs),
    Pack(PackArgs),
    Rebuild(RebuildArgs),
    Sizes(SizesArgs),
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
        StoreCommand::Index(args) => index(context, args),
        StoreCommand::Pack(args) => pack(context, args),
        StoreCommand::Rebuild(args) => rebuild(context, args),
        StoreCommand::Sizes(args) => sizes(context, args),
    }
}

fn backup(context: &mut Context, args: &BackupArgs) -> Result<Exit, CommandError> {
    let archive = context.open_reader()?;
    let sessions = archive.every()?;
    export::bundle(context, &archive, &sessions, &args.file, args.force)
}

/// Compress the store as tightly as possible
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext store pack

Other programs can keep working. While it runs, it needs about as much free
space as the store takes up.")]
struct PackArgs {}

fn pack(context: &mut Context, _: &PackArgs) -> Result<Exit, CommandError> {
    let archive = archive::open_existing(context)?;
    let output = &mut context.output;
    let packed = verbs::pack(&archive, &mut |done, all| {
        let done = (done * 100).checked_div(all).unwrap_or(0);
        output.steps("packing", done, 100);
    })?;
    context.done = Some("the store is packed".to_owned());
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
        let parts = counted(
            packed.damaged,
            "damaged part in the store was",
            "damaged parts in the store were",
        );
        context.output.warn(&format!("{parts} left alone"));
    }
    context.output.hints(packed.hints());
    Ok(Exit::Yes)
}

/// A search shows its progress if indexing takes longer than this.
const SILENT: Duration = Duration::from_millis(500);

/// Bring the search index up to date
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext store index

Searches are complete without this, but slower. The index can be deleted at any
time.")]
struct IndexArgs {}

fn index(context: &mut Context, _: &IndexArgs) -> Result<Exit, CommandError> {
    let exclude = context.exclude()?;
    let archive = context.open_reader()?;
    let output = &mut context.output;
    let done = verbs::index(&archive, &exclude, &|| true, &mut |done, all| {
        output.steps("indexing", done, all);
    })?;
    context.answer(&done)?;
    let Indexed { entries, is_whole } = done;
    if is_whole {
        let added = counted(entries, "entry", "entries");
        context.say(&format!("The index is up to date; {added} added"))?;
    } else {
        context.say("Another program is updating the index")?;
    }
    Ok(Exit::Yes)
}

/// Updates the index for a limited time. Errors are ignored.
pub(crate) fn index_for(context: &mut Context, time: Duration) {
    let until = Instant::now() + time;
    let Ok(root) = context.root() else { return };
    if let Ok(archive) = context.reader(&root) {
        bring_index_along(context, &archive, &|| Instant::now() < until);
    }
}

/// Updates the index of an archive while `goes_on` allows it. Errors are ignored.
pub(crate) fn bring_index_along(
    context: &mut Context,
    archive: &Archive,
    goes_on: &(dyn Fn() -> bool + Sync),
) {
    let Ok(exclude) = context.exclude() else { return };
    let begun = Instant::now();
    let _ = verbs::index(archive, &exclude, goes_on, &mut |done, all| {
        if begun.elapsed() >= SILENT {
            context.output.steps("indexing", done, all);
        }
    });
}

/// Show how much the store holds, by agent
#[derive(Debug, clap::Args)]
#[command(mut_arg("session", |arg| arg.help(ONE_OR_ALL)), after_help = "\
Examples:
  undertext store sizes
  undertext store sizes 7c2a

Lines and long texts that sessions share are stored once.")]
struct SizesArgs {
    #[command(flatten)]
    about: About,
}

fn sizes(context: &mut Context, args: &SizesArgs) -> Result<Exit, CommandError> {
    if let Some(wanted) = args.about.wanted()? {
        return sizes_of_one(context, wanted);
    }
    let archive = context.open_reader()?;
    let mut table = Table::new([Left, Right, Right, Right]);
    for sizes in verbs::sizes(&archive)? {
        context.answer(&sizes)?;
        let AgentSizes { agent, sessions, entries, bytes } = sizes;
        table.row([
            Cell::new(Label::Plain, &agent),
            Cell::new(Label::Plain, &counted(sessions, "session", "sessions")),
            Cell::new(Label::Plain, &counted(entries, "entry", "entries")),
            Cell::new(Label::Plain, &units::size(bytes)),
        ]);
    }
    let sizes = archive.store().sizes()?;
    context.answer(&sizes)?;
    context.show(&table)?;
    context.say(&format!(
        "The store contains {} ({}) and {}, packed to {}\nIt takes up {} on disk",
        counted(sizes.lines, "line", "lines"),
        units::size(sizes.raw),
        counted(sizes.texts, "long text", "long texts"),
        units::size(sizes.kept),
        units::size(sizes.stored),
    ))?;
    Ok(Exit::Yes)
}

/// Counts the contents of one session.
fn sizes_of_one(context: &mut Context, wanted: &OsStr) -> Result<Exit, CommandError> {
    let opened = context.find(Some(wanted))?;
    context.follow(&opened);
    let session = &opened.at()?;
    let sizes = verbs::sizes_of(session)?;
    context.answer(&sizes)?;
    let counts = [
        counted(sizes.turns, "turn", "turns"),
        counted(sizes.entries, "entry", "entries"),
        units::size(sizes.bytes),
        counted(sizes.branches, "branch", "branches"),
        counted(sizes.checkpoints, "checkpoint", "checkpoints"),
        counted(sizes.states, "file state", "file states"),
    ];
    context.say(&format!(
        "{} ({}): {}",
        session.name.id,
        session.name.format,
        counts.join(", ")
    ))?;
    Ok(Exit::Yes)
}

/// Recompute the store's indexes and compare them
#[derive(Debug, clap::Args)]
#[command(mut_arg("session", |arg| arg.help(ONE_OR_ALL)), after_help = "\
Examples:
  undertext store rebuild
  undertext store rebuild 7c2a")]
struct RebuildArgs {
    #[command(flatten)]
    about: About,
}

fn rebuild(context: &mut Context, args: &RebuildArgs) -> Result<Exit, CommandError> {
    let wanted = args.about.wanted()?;
    let (mut archive, sessions) = if wanted.is_some() {
        let Opened { archive, session } = context.change(wanted)?;
        (archive, vec![session])
    } else {
        let archive = archive::open_existing(context)?;
        let sessions = archive.every()?;
        (archive, sessions)
    };
    let mut table = Table::new([Left, Left, Right, Left]).yielding(&[0]);
    for (done, session) in (0..).zip(&sessions) {
        context.output.steps("rebuilding", done, sessions.len() as u64);
        let rebuilt = verbs::rebuild(&mut archive, session)?;
        context.answer(&rebuilt)?;
        let (label, equal) =
            if rebuilt.equal { (Label::Plain, "equal") } else { (Label::Warning, "rebuilt") };
        table.row([
            Cell::new(Label::Id, &session.name.id),
            Cell::new(label, equal),
            Cell::new(Label::Plain, &counted(rebuilt.records, "record", "records")),
            Cell::new(Label::Dim, &format!("{:.DIGITS$}", rebuilt.digest)),
        ]);
    }
    if wanted.is_none() {
        verbs::sum_up(&mut archive)?;
    }
    context.show(&table)?;
    Ok(Exit::Yes)
}
