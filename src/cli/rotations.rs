//! `rotations`: lists the live files that were set aside.

use undertext::verbs::{self, RotatedState};

use super::{About, CommandError, Context, Exit};
use crate::render::table::{Cell, Label, Left, Right, Table};
use crate::render::units;

/// List the files of a session that were set aside
#[derive(Debug, clap::Args)]
#[command(
    hide = true,
    after_help = "\
Examples:
  undertext doctor --files
  undertext doctor --files 7c2a

A file is whole, deleted, changed, grown (a program wrote more to it), pending
(the next change sets it aside) or unread. The store has what a deleted or
changed one held."
)]
pub(crate) struct Args {
    #[command(flatten)]
    about: About,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    list(context, &args.about)
}

/// Lists the files of a session that were set aside.
pub(super) fn list(context: &mut Context, about: &About) -> Result<Exit, CommandError> {
    let opened = context.find(about.wanted()?)?;
    let session = &opened.at()?;
    let mut table = Table::new([Right, Left, Left, Right, Left]);
    let all = verbs::rotations(session)?;
    if all.is_empty() {
        context.output.note("None of this session's files were set aside");
    }
    for rotated in all {
        if context.answer(&rotated)? {
            continue;
        }
        if let Some(why) = &rotated.why {
            let path = context.env.homely(&rotated.path);
            context.output.warn(&format!("{path} cannot be read: {why}"));
        }
        let label = match rotated.state {
            RotatedState::Whole => Label::Plain,
            RotatedState::Deleted | RotatedState::Grown | RotatedState::Pending => Label::Warning,
            RotatedState::Changed | RotatedState::Unread => Label::Error,
        };
        table.row([
            Cell::new(Label::Id, &rotated.operation.to_string()),
            Cell::new(Label::Plain, rotated.command),
            Cell::new(label, rotated.state.as_str()),
            Cell::new(Label::Plain, &units::size(rotated.length)),
            Cell::new(Label::Plain, &context.env.homely(&rotated.path)),
        ]);
    }
    context.show(&table)?;
    Ok(Exit::Yes)
}
