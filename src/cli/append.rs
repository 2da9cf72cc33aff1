//! `append`: adds messages, tool calls, tool results, notes or raw records to a session.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use serde_json::Value;
use undertext::context::cut::{Limit, MOST};
use undertext::context::event::Cause;
use undertext::disk::{self, Refusal};
use undertext::model::{self, Block, EntryId, Message, Usage};
use undertext::report::{Hint, Line, NewEntry};
use undertext::verbs::{
    self, AppendedEntry, Compacted, Compacting, Manner, OpsError, Session, SyncError,
};
use undertext::wire::{Draft, Speaker};

use super::common::{counted, limit};
use super::models::{self, Summing, kit};
use super::new::pair;
use super::{About, CommandError, Context, Exit, Opened, archive, env};
use crate::render::safe;
use crate::render::table::{Cell, Label, Left, Table};
use crate::render::units::DIGITS;

/// Above this many entries, people get a summary instead of a list.
const LISTED: usize = 10;

/// Append messages, calls or results to a session
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext append 'Why does the build fail?'
  undertext append --role assistant - < answer.txt
  undertext append --call Read --input '{\"path\":\"a.rs\"}' --id call_1
  undertext append --result call_1 - < a.rs
  echo '{\"role\":\"user\",\"content\":\"Hello\"}' | undertext append

A record is a message in the format of OpenAI's or Anthropic's API, or a line in
the session's own format; a missing id or time is filled in. One append is one
operation: if one record is invalid, nothing is written.")]
pub(crate) struct Args {
    /// The text, or - to read it from stdin [default: records from stdin]
    #[arg(value_name = "TEXT")]
    text: Option<String>,

    /// Who speaks [default: user]
    #[arg(long, value_name = "ROLE", conflicts_with_all = ["call", "result", "note", "jsonl"])]
    role: Option<Role>,

    /// Append a call of this tool
    #[arg(long, value_name = "NAME", requires = "input", conflicts_with_all = ["text", "result", "note", "jsonl"])]
    call: Option<String>,

    /// Arguments of the call as JSON, or - to read stdin
    #[arg(long, value_name = "JSON", requires = "call", allow_hyphen_values = true, conflicts_with_all = ["text", "role", "result", "note", "jsonl", "error"])]
    input: Option<String>,

    /// Id of the call, for its result [default: a new one]
    #[arg(long, value_name = "ID", requires = "call", conflicts_with_all = ["text", "role", "result", "note", "jsonl", "error"])]
    id: Option<String>,

    /// Append the result of the call with this id
    #[arg(long, value_name = "ID", conflicts_with_all = ["note", "jsonl"])]
    result: Option<String>,

    /// The tool failed with this message
    #[arg(long, value_name = "MESSAGE", requires = "result", allow_hyphen_values = true, conflicts_with_all = ["role", "call", "note", "jsonl"])]
    error: Option<String>,

    /// The model that answered or called
    #[arg(long, value_name = "NAME")]
    model: Option<String>,

    /// The tokens of its request and its answer
    #[arg(long, value_name = "IN,OUT", value_parser = usage_of)]
    usage: Option<Usage>,

    /// Record this about the answer or call
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    meta: Vec<(String, String)>,

    /// Append a message that isn't from the user
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with_all = ["text", "jsonl"])]
    note: Option<String>,

    /// Append the records of a file or stdin, one a line
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", conflicts_with = "text")]
    jsonl: Option<PathBuf>,

    /// Cut results to N characters, at least 2000 [default: 400000 with --result]
    #[arg(long, value_name = "N", value_parser = super::common::count::<usize>, allow_negative_numbers = true)]
    max_chars: Option<usize>,

    /// Compact afterwards, if it is due
    #[arg(long)]
    compact: bool,

    /// Write even if an agent may have the session open
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    about: About,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Role {
    User,
    Assistant,
    System,
}

/// An example of a valid line.
const GOOD: &str = r#"a valid line: {"role":"user","content":"What is in /w?"}"#;

/// The drafts to append, each with its line number in the input.
struct Batch {
    drafts: Vec<Draft>,
    lines: Vec<usize>,
    /// The id of the tool call.
    call: Option<String>,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let limit = match args.max_chars {
        Some(chars) => Some(limit(chars)?),
        None if args.result.is_some() => {
            Some(limit(context.settings()?.turn.max_result.unwrap_or(MOST))?)
        }
        None => None,
    };
    let mut opened = context.change(args.about.wanted()?)?;
    opened.archive.set_manner(Manner { force: args.force, ..context.manner() });
    let exit = append(context, args, limit, &mut opened)?;
    archive::leave(opened.archive);
    Ok(exit)
}

fn append(
    context: &mut Context,
    args: &Args,
    limit: Option<Limit>,
    opened: &mut Opened,
) -> Result<Exit, CommandError> {
    // Reading stdin may take long, so it happens before anything is locked.
    let batch = read_batch(context, args)?;
    if batch.drafts.is_empty() {
        context.output.note("There were no records; nothing was appended");
        return Ok(Exit::Yes);
    }
    let workspace = verbs::workspace(&context.env.current_dir);
    let appended = verbs::append_cut(&opened.at()?, &workspace, &batch.drafts, limit);
    let is_read = args.jsonl.is_none();
    let appended = appended.map_err(|error| batch.locate(error, &opened.session, is_read))?;
    context.tell(&appended.done.notices);
    // The records are appended by now, so a compaction that fails is no reason to append them again.
    let compacted = compact_if_due(context, args, opened);
    let (compacted, failed) =
        compacted.map_or_else(|error| (None, Some(error)), |done| (done, None));
    if let Some(error) = failed {
        let why = error.in_one_line();
        context
            .output
            .warn(&format!("the records were appended, but the context was not compacted: {why}"));
    }
    if context.json {
        for AppendedEntry { id, uuid, .. } in &appended.entries {
            let (uuid, call) = (uuid.as_deref(), batch.call.as_deref());
            let entry = NewEntry { entry: *id, uuid, operation: appended.done.operation, call };
            context.answer_change(opened, &entry)?;
        }
        if let Some(done) = &compacted {
            context.answer_change(opened, done)?;
        }
        return Ok(Exit::Yes);
    }
    context.say_session(&opened.archive, &opened.session)?;
    list(context, &appended.entries, batch.call.as_deref())?;
    match (appended.done.operation, appended.checkpoints.as_slice()) {
        (None, _) => context.output.note("Already appended; nothing was changed"),
        (_, []) => {}
        (_, [one]) => {
            context.output.note(&format!("Checkpoint {one} marks the start of the new turn"));
        }
        (_, [first, .., last]) => {
            context
                .output
                .note(&format!("Checkpoints {first} to {last} mark the starts of the new turns"));
        }
    }
    context.output.hints(appended.hints());
    if let Some(done) = &compacted {
        models::tell_compaction(context, done)?;
    }
    Ok(Exit::Yes)
}

/// Compacts the context if it is large enough, where the user asks for that: with `--compact`, or in the settings for sessions
/// that undertext created.
fn compact_if_due(
    context: &mut Context,
    args: &Args,
    opened: &mut Opened,
) -> Result<Option<Compacted>, CommandError> {
    let settings = context.settings()?;
    let is_own = opened.session.name.format == "native";
    if !(args.compact || settings.compaction.auto && is_own) {
        return Ok(None);
    }
    let summing = Summing::default();
    let kit = kit(context, &summing, &settings, opened)?;
    kit.warn(context, opened);
    let wanted = Compacting { cause: Cause::Auto, ..kit.compacting() };
    let workspace = verbs::workspace(&context.env.current_dir);
    let session = &opened.at()?;
    let done = verbs::compact_if_due(session, &workspace, &wanted, &mut |_| ())?;
    context.tell(&done.done.notices);
    Ok(done.done.operation.is_some().then_some(done))
}

fn list(
    context: &mut Context,
    entries: &[AppendedEntry],
    call: Option<&str>,
) -> Result<(), CommandError> {
    let short = |id: &EntryId| format!("{id:.DIGITS$}");
    if let ([first, .., last], true) = (entries, entries.len() > LISTED) {
        let count = counted(entries.len() as u64, "entry", "entries");
        return context.say(&format!("{count}, {} to {}", short(&first.id), short(&last.id)));
    }
    let mut table = Table::new([Left, Left, Left]);
    for entry in entries {
        table.row([
            Cell::new(Label::Id, &short(&entry.id)),
            Cell::new(Label::Plain, entry.uuid.as_deref().unwrap_or_default()),
            Cell::new(Label::Tool, call.unwrap_or_default()),
        ]);
    }
    context.show(&table)
}

fn read_batch(context: &Context, args: &Args) -> Result<Batch, CommandError> {
    let has_metadata = args.model.is_some() || args.usage.is_some() || !args.meta.is_empty();
    if has_metadata && args.call.is_none() && !matches!(args.role, Some(Role::Assistant)) {
        let error = anyhow!("--model, --usage and --meta are for what a model says or calls");
        let error = CommandError::user(error);
        return Err(error.hinted("add --role assistant, or use --call").hinted(usage()));
    }
    let answer = |block| {
        let said = Message::new(model::Role::Assistant, vec![block]);
        let (model, meta) = (args.model.clone(), args.meta.iter().cloned().collect());
        Draft::Answer(Box::new(Message { model, usage: args.usage, meta, ..said }))
    };
    let mut call = None;
    let draft = if let Some(file) = &args.jsonl {
        return split_records(&read(context, file)?);
    } else if let Some(name) = &args.call {
        let made_up = || format!("call_{}", context.env.ambient().uuid().simple());
        let id = args.id.clone().unwrap_or_else(made_up);
        call = Some(id.clone());
        let (name, input) = (name.clone(), read_text(context, args.input.as_deref())?);
        if has_metadata {
            answer(Block::Call { id, name, input, signature: None })
        } else {
            Draft::Call { id, name, input }
        }
    } else if let Some(id) = &args.result {
        // A failed tool may have an error and no output.
        let silent = args.text.is_none() && args.error.is_some();
        let output = if silent { String::new() } else { read_text(context, args.text.as_deref())? };
        Draft::Result { id: id.clone(), output, error: args.error.clone() }
    } else if let Some(note) = &args.note {
        Draft::Note(read_text(context, Some(note))?)
    } else if args.text.is_none() && args.role.is_none() && !context.env.terminal.stdin {
        return split_records(&read(context, Path::new("-"))?);
    } else {
        let speaker = match args.role {
            None | Some(Role::User) => Speaker::User,
            Some(Role::Assistant) => Speaker::Assistant,
            Some(Role::System) => Speaker::System,
        };
        Draft::Message(speaker, read_text(context, args.text.as_deref())?)
    };
    // An empty message or note is a typing mistake; an empty tool result is not.
    let is_empty = matches!(&draft, Draft::Message(_, text) | Draft::Note(text) if text.is_empty());
    if is_empty {
        let error = CommandError::user(anyhow!("the text is empty; nothing was appended"));
        return Err(error.hinted(usage()));
    }
    let draft = match draft {
        Draft::Message(Speaker::Assistant, text) if has_metadata => answer(Block::Text(text)),
        draft => draft,
    };
    Ok(Batch { drafts: vec![draft], lines: Vec::new(), call })
}

/// Parses token counts.
fn usage_of(text: &str) -> Result<Usage, String> {
    let numbers = text.split_once(',').and_then(|(asked, said)| {
        let number = |text: &str| text.parse().ok().filter(|_| !text.starts_with('+'));
        Some(Usage { input: number(asked)?, output: number(said)?, ..Usage::default() })
    });
    numbers.ok_or_else(|| "use the form IN,OUT, such as 1200,85".to_owned())
}

/// Returns the text from the command line, or reads it from stdin.
fn read_text(context: &Context, given: Option<&str>) -> Result<String, CommandError> {
    match given {
        Some(text) if text != "-" => return Ok(text.to_owned()),
        None if context.env.terminal.stdin => {
            return Err(CommandError::user(anyhow!("there is nothing to append"))
                .hinted("give the text, or - to read it from stdin")
                .hinted(usage()));
        }
        _ => {}
    }
    String::from_utf8(read(context, Path::new("-"))?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let error = anyhow!("the text on stdin is not UTF-8 at byte {at}; nothing was appended");
        CommandError::user(error).hinted(usage())
    })
}

fn read(context: &Context, file: &Path) -> Result<Vec<u8>, CommandError> {
    if file == Path::new("-") {
        return Ok(env::read_stdin().context("cannot read stdin")?);
    }
    let path = context.env.current_dir.join(file);
    disk::read(&path, env::STDIN).map_err(|error| {
        let is_stream = matches!(Refusal::of(&error), Some(Refusal::NoFile(_)));
        let error = anyhow!(error).context(format!("cannot read {}", safe::path(file)));
        let error = CommandError::user(error);
        let stdin = Line::about("append").flag("jsonl").with("-");
        let hint = stdin.to("to read a program's output, use stdin");
        error.hinted(if is_stream { hint } else { usage() })
    })
}

/// Returns the hint that points to the help.
fn usage() -> Hint {
    Line::new("append").flag("help").to("see the help")
}

/// Splits input into records and messages, one a line. Blank lines are skipped.
fn split_records(bytes: &[u8]) -> Result<Batch, CommandError> {
    let lines = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let mut batch = Batch { drafts: Vec::new(), lines: Vec::new(), call: None };
    for (n, line) in (1..).zip(lines).filter(|(_, line)| !line.is_empty()) {
        let value = serde_json::from_slice::<Value>(line).ok();
        let message = value.as_ref().filter(|value| value.get("type").is_none());
        let drafts = match message.filter(|value| value.get("role").is_some()) {
            Some(message) => of_message(message).map_err(|why| {
                let error = CommandError::user(anyhow!("line {n}: {why}"));
                error.hinted("nothing was written; fix the line and try again").hinted(GOOD)
            })?,
            None => vec![Draft::Record(line.to_vec())],
        };
        batch.lines.extend(drafts.iter().map(|_| n));
        batch.drafts.extend(drafts);
    }
    Ok(batch)
}

/// Reads a message in the form of the OpenAI or Anthropic API. Its text, calls and results become separate entries.
fn of_message(message: &Value) -> Result<Vec<Draft>, String> {
    let text = |of: &Value, key: &str| of.get(key).and_then(Value::as_str).map(str::to_owned);
    let named = |of: &Value, key: &str| text(of, key).ok_or_else(|| format!("missing {key:?}"));
    let role = named(message, "role")?;
    if matches!(role.as_str(), "tool" | "function") {
        let id = named(message, "tool_call_id")?;
        let output = said(message.get("content"))?;
        return Ok(vec![Draft::Result { id, output, error: None }]);
    }
    let speaker = match role.as_str() {
        "user" => Speaker::User,
        "assistant" => Speaker::Assistant,
        "system" | "developer" => Speaker::System,
        other => return Err(format!("unknown role {other:?}")),
    };
    let mut drafts = Vec::new();
    let say = |drafts: &mut Vec<Draft>, text: String| {
        if !text.is_empty() {
            drafts.push(Draft::Message(speaker, text));
        }
    };
    match message.get("content") {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => say(&mut drafts, text.clone()),
        Some(Value::Array(parts)) => {
            for part in parts {
                match part.get("type").and_then(Value::as_str).unwrap_or_default() {
                    "text" | "input_text" | "output_text" => say(&mut drafts, named(part, "text")?),
                    "tool_use" => drafts.push(Draft::Call {
                        id: named(part, "id")?,
                        name: named(part, "name")?,
                        input: part.get("input").map(Value::to_string).unwrap_or_default(),
                    }),
                    "tool_result" => {
                        let is_error = part.get("is_error").and_then(Value::as_bool) == Some(true);
                        let (id, output) =
                            (named(part, "tool_use_id")?, said(part.get("content"))?);
                        let error = is_error.then(|| output.clone());
                        drafts.push(Draft::Result { id, output, error });
                    }
                    other => return Err(format!("a part of type {other:?} is not supported")),
                }
            }
        }
        Some(_) => return Err("the content must be a text or a list".to_owned()),
    }
    for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
        let function = call.get("function").ok_or("a call has no \"function\"")?;
        let (id, name) = (named(call, "id")?, named(function, "name")?);
        drafts.push(Draft::Call {
            id,
            name,
            input: text(function, "arguments").unwrap_or_default(),
        });
    }
    if drafts.is_empty() { Err("the record has no content".to_owned()) } else { Ok(drafts) }
}

/// Returns the text of a `content` value: a string, or a list of parts with texts.
fn said(content: Option<&Value>) -> Result<String, String> {
    match content {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) => {
            let text = |part: &Value| part.get("text").and_then(Value::as_str).map(str::to_owned);
            let texts: Option<Vec<String>> = parts.iter().map(text).collect();
            texts
                .map(|texts| texts.join("\n"))
                .ok_or_else(|| "a result may contain only text parts".to_owned())
        }
        Some(_) => Err("the content must be a text or a list".to_owned()),
    }
}

impl Batch {
    /// Adds the input line of an invalid record to an error, if the session takes records. Hints how to append text, if text may
    /// have been meant.
    fn locate(&self, error: OpsError, session: &Session, is_read: bool) -> CommandError {
        let OpsError::Sync(SyncError::Invalid { line: nth, why }) = error else {
            return error.into();
        };
        let line = self.lines.get(nth.unwrap_or(1).saturating_sub(1)).copied();
        let line = line.filter(|_| session.format.traits().takes_records);
        let error = CommandError::from(SyncError::Invalid { line, why });
        let error = if line.is_some() {
            error.hinted("nothing was written; fix the line and try again").hinted(GOOD)
        } else {
            error.hinted(usage())
        };
        // Input that does not begin with `{` may be meant as text.
        let is_text = |draft: &Draft| matches!(draft, Draft::Record(it) if !it.starts_with(b"{"));
        if is_read && self.drafts.first().is_some_and(is_text) {
            return error.hinted(Line::about("append").with("-").to("to append it as text"));
        }
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_two_apis_are_taken() {
        let check = |message: &str, expected: &str| {
            let drafts = of_message(&serde_json::from_str(message).unwrap());
            assert_eq!(format!("{drafts:?}"), expected, "{message}");
        };
        check(r#"{"role":"user","content":"Why?"}"#, r#"Ok([Message(User, "Why?")])"#);
        check(
            r#"{"role":"assistant","content":[{"type":"text","text":"So."},{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}}]}"#,
            r#"Ok([Message(Assistant, "So."), Call { id: "t", name: "Bash", input: "{\"command\":\"ls\"}" }])"#,
        );
        check(
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"no"}],"is_error":true}]}"#,
            r#"Ok([Result { id: "t", output: "no", error: Some("no") }])"#,
        );
        check(
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"Bash","arguments":"{}"}}]}"#,
            r#"Ok([Call { id: "c", name: "Bash", input: "{}" }])"#,
        );
        check(
            r#"{"role":"tool","tool_call_id":"c","content":"out"}"#,
            r#"Ok([Result { id: "c", output: "out", error: None }])"#,
        );
        check(r#"{"role":"robot","content":"x"}"#, r#"Err("unknown role \"robot\"")"#);
        check(r#"{"role":"user","content":7}"#, r#"Err("the content must be a text or a list")"#);
        check(r#"{"role":"user"}"#, r#"Err("the record has no content")"#);
        check(
            r#"{"role":"user","content":[{"type":"image"}]}"#,
            r#"Err("a part of type \"image\" is not supported")"#,
        );
    }
}
