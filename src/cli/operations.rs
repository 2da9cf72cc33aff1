//! `operations`: lists what was done to a session.

use serde_json::{Value, json};
use undertext::model::Operation;
use undertext::ops;

use super::common::{DIGITS, counted};
use super::error::{CommandError, Exit};
use super::words::About;
use super::{Context, env};
use crate::render::json;
use crate::render::style::Label;
use crate::render::table::{Align, Cell, Table};

/// List what was done to a session, the newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext operations
  undertext operations -n 5
  undertext undo 7

JSON: one object an operation
  {\"type\":\"operation\", \"operation\":N, \"at\":TIME, \"command\":NAME, \"detail\":what the command says of it,
   \"entries\":how many it added, \"undoes\":N or null, \"undone\":BOOL, \"hash\":ID of it and of all before it}")]
pub(crate) struct Args {
    #[command(flatten)]
    about: About,

    /// List only so many
    #[arg(short, long = "number", value_name = "N", value_parser = super::common::number::<usize>, allow_negative_numbers = true)]
    number: Option<usize>,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let (archive, session) = context.look(args.about.wanted()?)?;
    context.output.page()?;
    let mut table = Table::new([Align::Right, Align::Left, Align::Left, Align::Left, Align::Left]);
    for view in ops::operations(&archive, &session, args.number.unwrap_or(usize::MAX))? {
        let operation = &view.operation;
        let detail: Value = serde_json::from_str(&operation.detail).unwrap_or_default();
        if context.json {
            let fields = json!({
                "operation": operation.n,
                "at": operation.at.to_string(),
                "command": operation.command,
                "detail": detail,
                "entries": operation.count,
                "undoes": operation.undoes,
                "undone": view.undone,
                "hash": operation.hash.to_string(),
            });
            json::line(&mut context.output, "operation", &fields)?;
            continue;
        }
        table.row([
            Cell::new(Label::Id, &operation.n.to_string()),
            Cell::new(Label::Time, &env::local(operation.at)),
            Cell::new(Label::Plain, &operation.command),
            Cell::new(Label::Warning, if view.undone { "undone" } else { "" }),
            Cell::new(Label::Plain, &words(operation, &detail)),
        ]);
    }
    context.show(&table)?;
    Ok(Exit::Yes)
}

/// Returns what an operation did, in words.
fn words(operation: &Operation, detail: &Value) -> String {
    let text = |key: &str| detail.get(key).and_then(Value::as_str).unwrap_or("?");
    let number = |key: &str| detail.get(key).and_then(Value::as_u64).unwrap_or(0);
    let entries = counted(operation.count, "entry", "entries");
    let left = || detail.get("left").and_then(Value::as_str);
    let kept = left().map_or_else(String::new, |left| format!("; the old end is {left}"));
    match operation.command.as_str() {
        "new" => detail
            .pointer("/system/folder")
            .and_then(Value::as_str)
            .map_or_else(String::new, |folder| format!("in {folder}")),
        "append" => format!("{entries} on {}", text("branch")),
        "truncate" => {
            let cut = detail.get("replaced").and_then(Value::as_array).map_or(0, Vec::len);
            format!(
                "{} on {}{kept}",
                counted(cut as u64, "result cut", "results cut"),
                text("branch")
            )
        }
        "branch" => format!("made {}", text("branch")),
        "switch" => format!("from {} to {}", text("from"), text("branch")),
        "checkpoint" => format!("gave {}", number("checkpoint")),
        "revert" => {
            let note = if text("message") == "?" { "" } else { " with a note" };
            let named = |key: &str| detail.get(key).and_then(Value::as_str);
            let checkpoint = detail.get("checkpoint").and_then(Value::as_u64);
            let to = match (checkpoint, named("branch"), named("entry")) {
                (Some(n), _, _) => format!("checkpoint {n}"),
                (_, Some(branch), _) => format!("branch {branch}"),
                (.., Some(entry)) => format!("entry {entry:.DIGITS$}"),
                (..) => "the start".to_owned(),
            };
            format!("to {to}{note}{kept}")
        }
        "clear" => format!("to the start{kept}"),
        "undo" | "redo" => {
            let undoes = operation.undoes.unwrap_or(0);
            let left = detail.get("left").and_then(Value::as_array).into_iter().flatten();
            let left: Vec<&str> = left.filter_map(Value::as_str).collect();
            let kept = if left.is_empty() {
                String::new()
            } else {
                format!("; what came after it is {}", left.join(", "))
            };
            format!("undid {undoes} ({}){kept}", text("command"))
        }
        "hide" if detail.get("hidden").and_then(Value::as_bool) == Some(false) => {
            "shown in lists again".to_owned()
        }
        "hide" => "left out of lists".to_owned(),
        "catch-up" => format!("took in {entries} that another program wrote"),
        "import" => format!("took in {entries}"),
        _ => String::new(),
    }
}
