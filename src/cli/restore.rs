//! `restore`: restores deleted files of agents to where the agents read them.

use anyhow::anyhow;
use undertext::report::{Line, LostFile, Restored};
use undertext::verbs::{self, Archive, Manner, OpsError, SyncError, Vain};

use super::common::{self, counted, say_rotated};
use super::{About, CommandError, Context, Exit, Opened};

/// Restore session files that an agent deleted
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext restore 7c2a
  undertext restore --all --dry-run
  undertext restore --all --agent claude

The file comes back byte for byte, with the files next to it and those of its
sub-agents, so the agent can resume the session. Existing files are never
overwritten.

Exit codes: 1 if a file of --all or of a sub-agent could not be restored")]
pub(crate) struct Args {
    #[command(flatten)]
    about: About,

    /// Restore the files of all sessions
    #[arg(short, long, conflicts_with_all = ["session", "named"])]
    all: bool,

    /// With --all, only sessions of this agent
    #[arg(long, value_name = "FORMAT", requires = "all", conflicts_with_all = ["session", "named"], value_parser = super::common::format, add = super::complete::agents())]
    agent: Option<String>,

    /// Write even if an agent may have the session open
    #[arg(long)]
    force: bool,

    /// List the files that would be restored
    #[arg(short = 'n', long)]
    dry_run: bool,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    if args.all {
        return all(context, args);
    }
    let wanted = args.about.wanted()?;
    if args.dry_run {
        let opened = context.find(wanted)?;
        let session = &opened.at()?;
        let lost = verbs::lost_with_sub_agents(session)?;
        if lost.is_empty() {
            return Err(CommandError::user(anyhow!("none of this session's files was deleted")));
        }
        lost.iter().try_for_each(|lost| tell_lost(context, session.archive, lost))?;
        return Ok(Exit::Yes);
    }
    let mut opened = context.change(wanted)?;
    opened.archive.set_manner(Manner { force: args.force, ..context.manner() });
    let mut lost = verbs::lost_with_sub_agents(&opened.at()?)?;
    let before = lost.len();
    lost.retain(|lost| lost.session.key != opened.session.key);
    if lost.len() == before && before > 0 {
        return put_back(context, opened.archive, lost);
    }
    let restored = match verbs::restore(&opened.at()?) {
        Ok(restored) => restored,
        Err(error @ OpsError::Sync(SyncError::Nothing(Vain::Restore { .. }))) => {
            let state = opened.at()?.state.clone();
            let is_emptied = state.position().is_some_and(|at| at.head.is_none());
            let hint = if is_emptied && state.branches.len() > 1 {
                Line::about("branch")
                    .to("find the branch with the conversation, and `switch` to it")
            } else {
                Line::new("restore").flag("all").flag("dry-run").to("list the deleted files")
            };
            return Err(CommandError::from(error).hinted(hint));
        }
        Err(error) => return Err(error.into()),
    };
    tell(context, &opened, &restored)?;
    put_back(context, opened.archive, lost)
}

fn all(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let mut archive = context.open_reader()?;
    if !args.dry_run {
        archive = context.open_writer()?;
        archive.set_manner(Manner { force: args.force, ..context.manner() });
    }
    let lost = verbs::lost(&archive, args.agent.as_deref())?;
    if lost.is_empty() {
        context.output.note("No agent's file was deleted");
    }
    if !args.dry_run {
        return put_back(context, archive, lost);
    }
    lost.iter().try_for_each(|lost| tell_lost(context, &archive, lost))?;
    if !lost.is_empty() {
        let files = |lost: &LostFile| lost.path.iter().chain(&lost.sidecars).count() as u64;
        let files = lost.iter().map(files).sum();
        context.output.note(&counted(files, "file was deleted", "files were deleted"));
    }
    Ok(Exit::Yes)
}

/// Restores the files of several sessions. A file that cannot be restored does not stop the others.
fn put_back(
    context: &mut Context,
    mut archive: Archive,
    lost: Vec<LostFile>,
) -> Result<Exit, CommandError> {
    let mut failed = 0;
    for file in lost {
        let restored = verbs::restore_lost(&mut archive, &file);
        let opened = Opened { archive, session: file.session.clone() };
        match restored {
            Ok(restored) => tell(context, &opened, &restored)?,
            Err(error) => {
                failed += 1;
                context.answer(&file)?;
                context.say_session(&opened.archive, &opened.session)?;
                let error = CommandError::from(error);
                context
                    .output
                    .warn(&format!("the file could not be put back: {}", error.in_one_line()));
            }
        }
        archive = opened.archive;
    }
    Ok(if failed > 0 { Exit::No } else { Exit::Yes })
}

fn tell_lost(
    context: &mut Context,
    archive: &Archive,
    lost: &LostFile,
) -> Result<(), CommandError> {
    context.answer(lost)?;
    let name = context.short_name(archive, &lost.session)?;
    for path in lost.path.iter().chain(&lost.sidecars) {
        let is = format!(" of session {name} was deleted");
        let room =
            context.output.width().map_or(usize::MAX, |width| width.saturating_sub(is.len()));
        let path = common::end_of(&context.env.homely(path), room);
        context.say(&format!("{path}{is}"))?;
    }
    Ok(())
}

fn tell(context: &mut Context, opened: &Opened, restored: &Restored) -> Result<(), CommandError> {
    context.done = Some("the deleted files are back".to_owned());
    context.tell(&restored.notices);
    if context.answer_change(opened, restored)? {
        return Ok(());
    }
    for file in &restored.files {
        let path = context.env.homely(file);
        context.say(&format!("{path} is back"))?;
    }
    let sidecars = &restored.sidecars;
    if !sidecars.written.is_empty() {
        let n = sidecars.written.len() as u64;
        let files = counted(n, "file next to it is", "files next to it are");
        context.say(&format!("{files} restored"))?;
    }
    for path in &sidecars.others {
        let path = context.env.homely(path);
        context
            .output
            .warn(&format!("{path} has changed since the agent wrote it; it is left alone"));
    }
    say_rotated(context, restored.rotated.as_deref())?;
    if let Some(left) = &restored.left {
        context.say(&format!("main follows the file; main's old end is kept as branch {left}"))?;
    }
    Ok(())
}
