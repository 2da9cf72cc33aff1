//! `store index`: brings the index of words up to date, which every search does a little of.

use std::time::{Duration, Instant};

use undertext::report::Indexed;
use undertext::verbs::{self, Archive};

use super::Context;
use super::common::counted;
use super::error::{CommandError, Exit};

/// How long a search brings the index along before it shows its progress.
const SILENT: Duration = Duration::from_millis(500);

/// Bring the search index up to date
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext store index

Searches are complete without this, but slower. The index can be deleted at any
time.")]
pub(crate) struct Args {}

pub(crate) fn run(context: &mut Context, _: &Args) -> Result<Exit, CommandError> {
    let exclude = context.exclude()?;
    let archive = context.open_reader()?;
    let output = &mut context.output;
    let done = verbs::index(&archive, &exclude, &|| true, &mut |done, all| {
        output.steps("indexing", done, all);
    })?;
    if context.answer(&done)? {
        return Ok(Exit::Yes);
    }
    let Indexed { entries, is_whole } = done;
    if is_whole {
        let added = counted(entries, "entry", "entries");
        context.say(&format!("The index is up to date; {added} added"))?;
    } else {
        context.say("Another program is updating the index")?;
    }
    Ok(Exit::Yes)
}

impl Context {
    /// Adds to the index of the store for a while; no command is worse for what fails here.
    pub(crate) fn index_for(&mut self, time: Duration) {
        let until = Instant::now() + time;
        let Ok(root) = self.root() else { return };
        if let Ok(archive) = self.reader(&root) {
            self.bring_index_along(&archive, &|| Instant::now() < until);
        }
    }

    /// Adds to the index of a store as long as it may go on; no command is worse for what fails here.
    pub(crate) fn bring_index_along(
        &mut self,
        archive: &Archive,
        goes_on: &(dyn Fn() -> bool + Sync),
    ) {
        let Ok(exclude) = self.exclude() else { return };
        let begun = Instant::now();
        let _ = verbs::index(archive, &exclude, goes_on, &mut |done, all| {
            if begun.elapsed() >= SILENT {
                self.output.steps("indexing", done, all);
            }
        });
    }
}
