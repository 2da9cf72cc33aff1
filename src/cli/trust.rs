//! `trust`: allows the use of a store in a folder, or revokes it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use undertext::report::{Line, Report as _, Trust, TrustedStore};
use undertext::store::SessionFilter;
use undertext::trust::{self, Strange};

use super::chosen::{NAME, stores, trust, trusted};
use super::common::counted;
use super::{CommandError, Context, Exit, candidates, settings};
use crate::render::table::{Cell, Label, Left, Table};

/// Maximum number of sessions listed in the question.
const LISTED: usize = 5;

/// Trust the store in a folder
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext trust
  undertext trust ~/app
  undertext trust --list

A .undertext folder may come with a clone or an archive, so it is ignored until
you trust it on this machine. Even then, commands, addresses and keys come only
from your own settings.")]
pub(crate) struct Args {
    /// The store or its folder [default: the nearest .undertext]
    path: Option<PathBuf>,

    /// List the stores that you trust
    #[arg(long, conflicts_with_all = ["path", "off"])]
    list: bool,

    /// Stop trusting it
    #[arg(long)]
    off: bool,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    if args.list {
        return list(context);
    }
    let folder = folder(context, args.path.as_deref())?;
    let name = context.env.homely(&folder);
    if args.off {
        let was = stores(&context.env)?.distrust(&folder).map_err(anyhow::Error::from)?;
        if was {
            context.done = Some(format!("{name} is no longer trusted"));
        }
        context.answer(&Trust { path: &folder, trusted: false, store: None })?;
        if was {
            context.say(&format!("{name} is no longer trusted"))?;
        } else {
            context.say(&format!("{name} was not trusted anyway"))?;
        }
        return Ok(if was { Exit::Yes } else { Exit::No });
    }
    if context.can_ask() && !agrees(context, &folder)? {
        context.output.note("Nothing was changed");
        return Ok(Exit::No);
    }
    let trusted = trust(&context.env, &folder)?;
    context.done = Some(format!("{name} is trusted"));
    let trust = Trust { path: &folder, trusted: true, store: Some(trusted.store) };
    if context.answer(&trust)? {
        return Ok(Exit::Yes);
    }
    context.say(&format!("{name} is trusted on this machine"))?;
    context.output.hints(trust.hints());
    Ok(Exit::Yes)
}

/// Shows what a store contains and sets, and asks whether to trust it. An unreadable store is refused later, with the reason.
fn agrees(context: &mut Context, folder: &Path) -> Result<bool, CommandError> {
    let examined = trust::examine(folder);
    if !matches!(examined, Ok(_) | Err(Strange::Open | Strange::Brought(_))) {
        return Ok(true);
    }
    let Ok(archive) = context.reader(folder) else { return Ok(true) };
    let tally = archive.store().tally(&SessionFilter::default())?;
    let agents: Vec<_> = tally.iter().map(|(agent, n)| format!("{agent} {n}")).collect();
    let sessions = counted(tally.values().sum(), "session", "sessions");
    let name = context.env.homely(folder);
    context.say(&format!("{name} has {sessions}: {}", agents.join(", ")))?;
    let newest = SessionFilter { limit: Some(LISTED), ..SessionFilter::default() };
    let newest = archive.sessions(&newest)?;
    let list = candidates::list_candidates(context, &archive, &newest);
    if !newest.is_empty() {
        context.say(&list)?;
    }
    let set = settings::of_store(folder);
    if !set.is_empty() {
        context.say(&format!("Its config.toml sets {}", set.join(", ")))?;
    }
    let above = context.env.homely(folder.parent().unwrap_or(folder));
    let question = format!("Let commands in {above} and below use this store?");
    Ok(context.output.ask(&question)?)
}

/// Returns the folder of the store that was meant, with the links above it resolved.
fn folder(context: &Context, named: Option<&Path>) -> Result<PathBuf, CommandError> {
    let current = &context.env.current_dir;
    let Some(named) = named else {
        let mut found = current.ancestors().map(|dir| dir.join(NAME));
        let found = found.find(|folder| fs::symlink_metadata(folder).is_ok());
        return found.ok_or_else(|| {
            CommandError::user(anyhow!("there is no {NAME} at or above this folder"))
                .hinted(Line::new("new").flag("here").to("make one"))
        });
    };
    let named = current.join(named);
    let above = if named.file_name().is_some_and(|name| name == NAME) {
        named.parent().unwrap_or(&named)
    } else {
        &named
    };
    // A store that no longer exists is removed by its typed path.
    let above = fs::canonicalize(above).unwrap_or_else(|_| above.to_owned());
    Ok(above.join(NAME))
}

fn list(context: &mut Context) -> Result<Exit, CommandError> {
    let stores = stores(&context.env)?.all().map_err(anyhow::Error::from)?;
    let mut table = Table::new([Left, Left]);
    for store in &stores {
        let problem = trusted(&context.env, &store.path).err().map(|why| why.to_string());
        let (path, problem) = (store.path.as_path(), problem.as_deref());
        let store = TrustedStore { path, store: store.store, used: problem.is_none(), problem };
        context.answer(&store)?;
        let name = context.env.homely(store.path);
        let state = problem.map_or_else(String::new, |why| format!("not used: {why}"));
        table.row([Cell::new(Label::Plain, &name), Cell::new(Label::Warning, &state)]);
    }
    if stores.is_empty() && !context.json {
        context.output.note("You have not trusted any stores");
    }
    context.show(&table)?;
    Ok(Exit::Yes)
}
