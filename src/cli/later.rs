//! Waiting changes: `--later` saves a change, and `resume` shows it, asks, and makes it.

use std::ffi::OsStr;

use anyhow::anyhow;
use undertext::context::event::Cause;
use undertext::report::{Line, Waiting};
use undertext::verbs::{self, Back, Later, Manner, Notice};

use super::common::Writing;
use super::landing::{self, Moved};
use super::models::Summing;
use super::{CommandError, Context, Exit, Opened, compact};

/// The option that any waiting change can have.
const ROTATE: &str = "--rotate";

/// What to do with a waiting change and the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Make the change and start.
    Apply,
    /// Start, and leave the change waiting.
    Keep,
    /// Drop the change and start.
    Drop,
    /// Start nothing.
    Cancel,
}

/// Shows what a change would do now, and saves it for later.
pub(crate) fn save(
    context: &mut Context,
    wanted: Option<&OsStr>,
    writing: &Writing,
    change: Later,
) -> Result<Exit, CommandError> {
    let mut tried = context.try_change(wanted)?;
    tried.archive.set_manner(writing.manner(context));
    let change = match change {
        Later::Undo(None) => Later::Undo(Some(verbs::undoable(&tried.at()?)?)),
        change => change,
    };
    let is_open = !verbs::open_in(&tried.at()?).is_empty();
    if !make(context, &mut tried, &change)? {
        return Ok(Exit::Yes);
    }
    drop(tried);
    let mut opened = context.change(wanted)?;
    opened.archive.set_manner(writing.manner(context));
    let delayed = verbs::later(&opened.at()?, &change)?;
    context.tell(&delayed.notices);
    if context.json {
        context.answer_change(&opened, &delayed)?;
        return Ok(Exit::Yes);
    }
    if let Some(replaced) = &delayed.replaced {
        context.say(&format!("This replaces the change that was waiting: {replaced}"))?;
    }
    let [resume, undo] = ["resume", "undo"].map(|verb| context.output.spell(&Line::about(verb)));
    context.say(&format!("Your next `{resume}` will offer to {}", delayed.waiting))?;
    context.say(&format!("Drop  {undo}"))?;
    if !is_open {
        context
            .output
            .note("No agent has the session open: without --later, the change is made at once");
    }
    Ok(Exit::Yes)
}

/// Makes a change that waited, or shows what it would do in an archive that keeps nothing. Returns false if there is nothing to do.
fn make(context: &mut Context, opened: &mut Opened, change: &Later) -> Result<bool, CommandError> {
    let is_tried = opened.archive.is_preview();
    let mut moved = match change {
        Later::Revert(wanted, note) | Later::Keep(wanted, note) => {
            let is_kept = matches!(change, Later::Keep(..));
            let back = if is_kept { Back::Keeping(wanted) } else { Back::To(wanted) };
            let workspace = verbs::workspace(&context.env.current_dir);
            let reverted = verbs::revert(&opened.at()?, &workspace, back, note.as_deref())?;
            Moved::Reverted(wanted, reverted)
        }
        Later::Switch(name) => Moved::Switched(verbs::switch(&opened.at()?, name)?),
        Later::Undo(n) => Moved::Undone(verbs::undo(&opened.at()?, *n)?),
        Later::Compact(words) => {
            let summing = Summing::read(words)?;
            return if is_tried && context.json {
                Ok(true)
            } else if is_tried {
                compact::say_plan(context, opened, &summing)
            } else {
                compact::compact(
                    context,
                    opened,
                    &summing,
                    Cause::Manual,
                    compact::Words::default(),
                )
            };
        }
    };
    let is_made = moved.parts().1.operation.is_some();
    if !is_tried {
        // The change is being made, so the notice that it was dropped does not apply.
        moved.parts().1.notices.retain(|notice| !matches!(notice, Notice::Dropped { .. }));
        landing::tell(context, opened, moved)?;
    } else if !context.json {
        landing::measure(context, opened, moved.parts().0);
        landing::say(context, opened, &moved)?;
    }
    Ok(is_made)
}

/// Reads a saved change.
fn change_of(waiting: &Waiting) -> Result<Later, CommandError> {
    let why = "the waiting change cannot be read: part of it was redacted, or a newer version of undertext saved it";
    Later::of(waiting).ok_or_else(|| CommandError::user(anyhow!(why)))
}

/// Shows a waiting change and what it would do now, and asks what to do with it.
pub(crate) fn choose(
    context: &mut Context,
    mut opened: Opened,
    waiting: &Waiting,
) -> Result<Choice, CommandError> {
    let name = landing::name_of(context, &opened)?;
    if context.json {
        context.output.note("Nothing was started: you did not request the change here");
        return Ok(Choice::Cancel);
    }
    context.say(&format!("{name} has a change waiting: {waiting}"))?;
    if let Some(note) = &waiting.request.note {
        context.say(&format!("Note: {}", note.to_text()))?;
    }
    if !waiting.is_own {
        context.output.warn("you did not request this change on this computer");
    }
    let open = verbs::open_in(&opened.at()?).into_iter().next();
    let tried = change_of(waiting).and_then(|change| {
        opened.archive.set_manner(Manner { rotate: waiting.has(ROTATE), ..context.manner() });
        context.follow(&opened);
        make(context, &mut opened, &change)
    });
    drop(opened);
    let can = tried.is_ok() && open.is_none();
    if let Some(open) = open {
        context
            .output
            .warn(&format!("{open} has the session open: close it there to make the change"));
    }
    if let Err(error) = tried {
        context.output.warn(&format!("the change can no longer be made: {}", error.in_one_line()));
    }
    if !context.can_ask() {
        context.output.note("Nothing was started");
        let resume = |flag| Line::about("resume").flag(flag);
        if can && waiting.is_own {
            context.output.hint(resume("apply").to("to make the change and start the agent"));
        } else if can {
            context
                .output
                .hint(Line::about("resume").to("to make the change, run this at a terminal"));
        }
        context.output.hint(resume("drop").to("to drop the change and start the agent"));
        return Ok(Choice::Cancel);
    }
    let apply = if can { "[a]pply and start, " } else { "" };
    let question = format!("{apply}[s]tart without it, [d]rop it and start, [c]ancel?");
    loop {
        match context.output.ask_for(&question)?.as_deref() {
            Some("a") if can => return Ok(Choice::Apply),
            Some("s") => return Ok(Choice::Keep),
            Some("d") => return Ok(Choice::Drop),
            Some("c") | None => return Ok(Choice::Cancel),
            Some(_) => {}
        }
    }
}

/// Makes the waiting change, if it is still the one that was shown.
pub(crate) fn apply(
    context: &mut Context,
    wanted: Option<&OsStr>,
    waiting: &Waiting,
    force: bool,
) -> Result<(), CommandError> {
    let mut opened = context.change(wanted)?;
    let rotate = waiting.has(ROTATE);
    opened.archive.set_manner(Manner { force, rotate, ..context.manner() });
    if verbs::waiting(&opened.at()?)?.as_ref() != Some(waiting) {
        let error = anyhow!("another change is waiting now; nothing was changed");
        return Err(CommandError::user(error).hinted(Line::about("resume").to("see the change")));
    }
    if !make(context, &mut opened, &change_of(waiting)?)? {
        verbs::undo(&opened.at()?, Some(waiting.operation))?;
    }
    Ok(())
}

/// Drops the waiting change.
pub(crate) fn drop_waiting(
    context: &mut Context,
    wanted: Option<&OsStr>,
    waiting: &Waiting,
) -> Result<(), CommandError> {
    let opened = context.change(wanted)?;
    let undone = verbs::undo(&opened.at()?, Some(waiting.operation))?;
    landing::report(context, &opened, Moved::Undone(undone)).map(drop)
}

/// Adds the hint `--later` to an error, if an agent has the session open.
pub(crate) fn or_later(
    context: &Context,
    error: impl Into<CommandError>,
    line: Line,
) -> CommandError {
    let error = error.into();
    if !error.is_open() {
        return error;
    }
    let resume = context.output.spell(&Line::about("resume"));
    error.hinted(line.flag("later").to(format!("or save it for your next `{resume}`")))
}
