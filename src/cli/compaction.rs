//! Compaction, shared by the commands: prints what it would do and what it did.

use undertext::context::event::Cause;
use undertext::report::Report as _;
use undertext::verbs::{self, Compacting, Part, Planned};

use super::common::{capitalise, counted};
use super::error::CommandError;
use super::models::{self, Summing};
use super::{Context, Opened};
use crate::render::style::Label;
use crate::render::table::{Align, Cell, Table};
use crate::render::units::grouped;

/// Compacts a session and reports the result. Returns false if there was nothing to do.
pub(crate) fn compact(
    context: &mut Context,
    opened: &mut Opened,
    summing: &Summing,
    cause: Cause,
) -> Result<bool, CommandError> {
    let settings = context.settings()?;
    let kit = context.kit(summing, &settings, opened)?;
    kit.warn(context, opened);
    let wanted = Compacting { cause, ..kit.compacting() };
    let workspace = context.workspace();
    let mut emit = |event: &_| (kit.sink)(event);
    let run = if cause == Cause::Auto { verbs::compact_if_due } else { verbs::compact };
    let done = run(&opened.at()?, &workspace, &wanted, &mut emit)?;
    context.tell(&done.done.notices);
    let is_done = done.nothing.is_none();
    if context.answer_change(opened, &done)? {
        return Ok(is_done);
    }
    if let Some(why) = done.nothing {
        context.say(&capitalise(&format!("{why}; nothing was changed")))?;
        return Ok(is_done);
    }
    models::tell_compaction(context, &done)?;
    context.output.hints(done.hints());
    Ok(is_done)
}

/// Shows what a compaction would do. The archive must be one that keeps nothing. Returns false if there is nothing to do.
pub(crate) fn say_plan(
    context: &mut Context,
    opened: &mut Opened,
    summing: &Summing,
) -> Result<bool, CommandError> {
    let settings = context.settings()?;
    let kit = context.kit(summing, &settings, opened)?;
    kit.warn(context, opened);
    let wanted = kit.compacting();
    let plan = verbs::plan_compaction(&opened.at()?, &wanted)?;
    show_plan(context, &plan)?;
    if plan.nothing.is_none() && opened.archive.is_preview() {
        let workspace = context.workspace();
        verbs::try_compaction(&opened.at()?, &workspace, &wanted)?;
    }
    Ok(plan.nothing.is_none())
}

fn show_plan(context: &mut Context, plan: &Planned) -> Result<(), CommandError> {
    let near = &plan.near;
    if context.answer(plan)? {
        return Ok(());
    }
    let mut table = Table::new([Align::Left, Align::Right, Align::Right]);
    let mut row = |name: &str, part: Part| {
        table.row([
            Cell::new(Label::Dim, name),
            Cell::new(Label::Plain, &grouped(part.messages as u64)),
            Cell::new(Label::Plain, &counted(part.tokens, "token", "tokens")),
        ]);
    };
    if let Some(why) = plan.nothing {
        context.say(&capitalise(&why.to_string()))?;
    } else {
        row("summarised", plan.parts.summarised);
        row("kept", plan.parts.kept);
        row("earlier summaries", plan.parts.carried);
        row("system prompt", plan.parts.system);
        context.show(&table)?;
    }
    if !plan.losses.is_empty() {
        context.say(&format!("The extract names {}", models::shares(&plan.losses)))?;
    }
    let (tokens, window) = (grouped(near.tokens), grouped(near.window));
    let near = models::describe_nearness(near);
    context.say(&format!("The context is at about {tokens} of {window} tokens; {near}"))
}
