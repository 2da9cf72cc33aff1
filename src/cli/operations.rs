//! `operations`: lists what was done to a session.

use serde_json::Value;
use undertext::model::{Command, Text};
use undertext::report::{OperationView, Waiting};
use undertext::verbs;

use super::common::{counted, exit_of, short_ids};
use super::{About, CommandError, Context, Exit};
use crate::render::table::{Cell, Label, Left, Right, Table};
use crate::render::units::DIGITS;

/// Default number of operations listed for all sessions.
const RECENT: usize = 50;

/// List the operations of a session, newest first
#[derive(Debug, clap::Args)]
#[command(
    hide = true,
    after_help = "\
Examples:
  undertext undo --list
  undertext undo --list --all -n 5"
)]
pub(crate) struct Args {
    #[command(flatten)]
    about: About,

    #[command(flatten)]
    which: Which,
}

/// Which operations are listed.
#[derive(Debug, clap::Args)]
pub(crate) struct Which {
    /// List the newest operations of all sessions
    #[arg(long, conflicts_with_all = ["session", "named"])]
    all: bool,

    /// List at most N operations; 0 lists all
    #[arg(short, long = "number", value_name = "N", value_parser = super::common::number::<usize>, allow_negative_numbers = true)]
    number: Option<usize>,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    list(context, &args.about, &args.which)
}

pub(super) fn list(
    context: &mut Context,
    about: &About,
    which: &Which,
) -> Result<Exit, CommandError> {
    let usual = if which.all && !context.json { RECENT } else { 0 };
    let limit = Some(which.number.unwrap_or(usual)).filter(|n| *n > 0).unwrap_or(usize::MAX);
    let verbs::Operations { shown: found, damaged } = if which.all {
        verbs::operations_of_all(&context.open_reader()?, limit)?
    } else {
        let opened = context.find(about.wanted()?)?;
        let session = &opened.at()?;
        verbs::operations(session, limit)?
    };
    for (session, n) in &damaged {
        let what = "its record does not match its hash and is not shown";
        context.output.warn(&format!("operation {n} of session {} is damaged: {what}", session.id));
    }
    let exit = exit_of(context, damaged.is_empty());
    if context.answer_all(&found)? {
        return Ok(exit);
    }
    context.output.page()?;
    let mut table = Table::new([Left, Right, Left, Left, Left, Left]);
    let ids: Vec<&str> = found.iter().map(|view| view.session.id.as_str()).collect();
    for (view, session) in found.iter().zip(short_ids(&ids)) {
        let operation = &view.operation;
        table.row([
            Cell::new(Label::Id, if which.all { &session } else { "" }),
            Cell::new(Label::Id, &operation.n.to_string()),
            Cell::new(Label::Time, &context.env.zone.minute(operation.at)),
            Cell::new(Label::Plain, operation.command.as_str()),
            Cell::new(Label::Warning, if view.undone { "undone" } else { "" }),
            Cell::new(Label::Plain, &words(view)),
        ]);
    }
    context.show(&table)?;
    Ok(exit)
}

/// Describes what an operation did.
fn words(view: &OperationView) -> String {
    let operation = &view.operation;
    let entries = counted(operation.count(), "entry", "entries");
    let kept = |left: &Option<Text>| {
        left.as_ref()
            .map_or_else(String::new, |left| format!("; the old end is {}", left.to_text()))
    };
    match &operation.command {
        Command::New { .. } => {
            let detail = operation.command.to_json();
            let folder = detail.pointer("/system/folder").and_then(Value::as_str);
            folder.map_or_else(String::new, |folder| format!("in {folder}"))
        }
        Command::Append { branch, .. } => format!("{entries} on {}", branch.to_text()),
        Command::Truncate { branch, left, .. } => {
            let results = counted(view.cut, "result cut", "results cut");
            format!("{results} on {}{}", branch.to_text(), kept(left))
        }
        Command::Compact { branch, summarised, left, .. } => {
            let messages = counted(*summarised, "message", "messages");
            format!("summarised {messages} on {}{}", branch.to_text(), kept(left))
        }
        Command::Branch { branch, from: None } => format!("made {}", branch.to_text()),
        Command::Branch { branch, from: Some(from) } => {
            format!("renamed {} to {}", from.to_text(), branch.to_text())
        }
        Command::Switch { from, branch } => {
            format!("from {} to {}", from.to_text(), branch.to_text())
        }
        Command::Checkpoint { checkpoint } => format!("set @{checkpoint}"),
        Command::Revert { checkpoint, entry, branch, message, left } => {
            let note = if message.is_some() { " with a note" } else { "" };
            let to = match (checkpoint, branch, entry) {
                (Some(n), _, _) => format!("checkpoint {n}"),
                (_, Some(branch), _) => format!("branch {}", branch.to_text()),
                (.., Some(entry)) => format!("entry {entry:.DIGITS$}"),
                (..) => "the start".to_owned(),
            };
            format!("to {to}{note}{}", kept(left))
        }
        Command::Clear { left } => format!("to the start{}", kept(left)),
        Command::Undo { undoes, command, left } | Command::Redo { undoes, command, left } => {
            let names: Vec<String> = left.iter().map(Text::to_text).collect();
            let kept = if names.is_empty() {
                String::new()
            } else {
                format!("; later entries are on {}", names.join(", "))
            };
            format!("undid {undoes} ({command}){kept}")
        }
        Command::Later { .. } => {
            let request = operation.facts.request.clone().unwrap_or_default();
            Waiting { request, ..Waiting::default() }.to_string()
        }
        Command::Hide { branch: Some(branch), .. } => {
            format!("hid {} from lists", branch.to_text())
        }
        Command::Hide { hidden: false, .. } => "shown in lists again".to_owned(),
        Command::Hide { .. } => "hidden from lists".to_owned(),
        Command::Attach { file: Some(_), left } => {
            format!("follows its agent's file{}", kept(left))
        }
        Command::Attach { .. } => "no longer follows a file".to_owned(),
        Command::CatchUp { .. } if !operation.facts.gone.is_empty() => {
            "noticed that the agent's file was deleted".to_owned()
        }
        Command::CatchUp { .. }
            if operation.facts.live.as_ref().is_some_and(|live| live.from.is_none()) =>
        {
            "follows its agent's file again".to_owned()
        }
        Command::CatchUp { .. } if operation.facts.title.is_some() => {
            "has the title that the agent gave it".to_owned()
        }
        Command::CatchUp { .. } => format!("imported {entries} that another program wrote"),
        Command::Import { .. } => format!("imported {entries}"),
        Command::Redact { lines, whole, rule, reason, .. } => {
            let what = if *whole {
                "redacted a note or name".to_owned()
            } else {
                format!("redacted {}", counted(*lines, "line", "lines"))
            };
            let rule = rule.as_ref().map(|rule| format!(" ({rule})")).unwrap_or_default();
            let reason = reason.as_ref().map(|why| format!(": {}", why.to_text()));
            format!("{what}{rule}{}", reason.unwrap_or_default())
        }
        _ => "written by a newer version of undertext".to_owned(),
    }
}
