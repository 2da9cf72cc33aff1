//! `branch`: lists branches, or makes one.

use std::ffi::OsStr;

use serde_json::json;
use undertext::ops;

use super::Context;
use super::common::{self, Of};
use super::error::{CommandError, Exit};
use crate::render::json;
use crate::render::style::Label;
use crate::render::table::{Align, Cell, Table};

/// List the branches of a session, or make one
///
/// A branch is a name for a place in a session. A new one stands at ENTRY, and the current one stays current.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext branch
  undertext branch try-again
  undertext branch before-the-fix @3
  undertext branch found 8f14e45f -s 'Fix the build'

ENTRY is an id or a uuid, or its beginning, @N for checkpoint N, HEAD, a branch, and ~N for N entries before one

JSON: one object a branch
  {\"type\":\"branch\", \"branch\":NAME, \"entry\":ID or null at the start, \"current\":BOOL}
and of a branch that was made, in place of \"current\"
  \"operation\":N")]
pub(crate) struct Args {
    /// Make a branch of this name
    name: Option<String>,

    /// Say where it stands [default: HEAD]
    #[arg(value_name = "ENTRY", requires = "name")]
    entry: Option<String>,

    #[command(flatten)]
    of: Of,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    match &args.name {
        None => list(context, args.of.session.as_deref()),
        Some(name) => make(context, args, name),
    }
}

fn list(context: &mut Context, wanted: Option<&OsStr>) -> Result<Exit, CommandError> {
    let (archive, session) = context.look(wanted)?;
    let (branches, current) = ops::branches(&archive, &session)?;
    let mut table = Table::new([Align::Left, Align::Left, Align::Left]);
    for (branch, position) in branches {
        let head = common::entry_id(&archive, &session, position.head)?;
        let is_current = branch == current;
        if context.json {
            let fields = json!({
                "branch": branch,
                "entry": common::whole(head),
                "current": is_current,
            });
            json::line(&mut context.output, "branch", &fields)?;
        }
        table.row([
            Cell::new(Label::Head, if is_current { "*" } else { "" }),
            Cell::new(Label::Branch, &branch),
            Cell::new(Label::Id, &common::short(head)),
        ]);
    }
    if !context.json {
        context.show(&table)?;
    }
    Ok(Exit::Yes)
}

fn make(context: &mut Context, args: &Args, name: &str) -> Result<Exit, CommandError> {
    let (mut archive, session) = context.change(args.of.session.as_deref())?;
    let target = args.entry.as_deref().map(|entry| ops::find_entry(&archive, &session, entry));
    let made = ops::branch(&mut archive, &session, name, target.transpose()?.as_ref())?;
    context.tell(&made.notices);
    let head = common::entry_id(&archive, &session, made.position.head)?;
    if context.json {
        let fields = json!({
            "branch": made.branch,
            "entry": common::whole(head),
            "operation": made.operation,
        });
        json::line(&mut context.output, "branch", &fields)?;
    } else {
        context.say(&format!("Made branch {} at {}", made.branch, common::short(head)))?;
        context.output.hint(&format!("go on there: undertext switch {}", made.branch));
    }
    Ok(Exit::Yes)
}
