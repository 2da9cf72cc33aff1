//! `store index`: updates the full-text index. Every search does a little of this work as well.

use std::time::{Duration, Instant};

use undertext::report::Indexed;
use undertext::verbs::{self, Archive};

use super::Context;
use super::common::counted;
use super::error::{CommandError, Exit};

/// A search shows its progress if indexing takes longer than this.
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
    /// Updates the index for a limited time. Errors are ignored.
    pub(crate) fn index_for(&mut self, time: Duration) {
        let until = Instant::now() + time;
        let Ok(root) = self.root() else { return };
        if let Ok(archive) = self.reader(&root) {
            self.bring_index_along(&archive, &|| Instant::now() < until);
        }
    }

    /// Updates the index of an archive while `goes_on` allows it. Errors are ignored.
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
