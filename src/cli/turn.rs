//! `turn`: asks a model, and stores its answer.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use serde_json::Value;
use undertext::context::Shape;
use undertext::context::cut::MOST;
use undertext::context::event::Event;
use undertext::context::model::{Heard, Tool};
use undertext::json;
use undertext::model::Stop;
use undertext::provider::process::{self, Task};
use undertext::report::{Hint, Line, Moment, Report as _};
use undertext::settings::ProviderKind;
use undertext::verbs::{self, Answer, Call, Compacting, OpsError, Turned, Turning};

use super::common::{Writing, counted, limit};
use super::error::Kind;
use super::models::{self, Sink, Summing, kit, model, unless_blank};
use super::output::Output;
use super::{About, CommandError, Context, Exit, Opened, env};
use crate::render::safe;
use crate::render::units::grouped;

/// Default time limit of a tool, in seconds.
const TOOLS_LIMIT: u64 = 120;
/// Maximum output of a tool, in bytes.
const TOOLS_BYTES: usize = 16 << 20;

/// Send the session to a model and append its answer
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext turn 'Why does the build fail?'
  undertext turn --provider local --tools ./tools.py - < prompt.txt
  undertext turn

It compacts a window that is nearly full, and recovers if the request is refused
as too long. Without --tools, calls wait for append --result. Without a prompt,
turn continues after such results, or where it failed. docs/own-agent.md has the
JSON that the command of --tools reads and prints.")]
pub(crate) struct Args {
    /// The prompt, or - to read it from stdin [default: continue]
    #[arg(value_name = "PROMPT")]
    prompt: Option<String>,

    /// Provider to ask [default: turn.provider in settings]
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,

    /// Have this command answer tool calls
    #[arg(long, value_name = "COMMAND")]
    tools: Option<String>,

    /// End after so many seconds, with the state of the session
    #[arg(long, value_name = "SECONDS", value_parser = super::common::count::<u64>, allow_negative_numbers = true)]
    deadline: Option<u64>,

    #[command(flatten)]
    about: About,

    #[command(flatten)]
    summing: Summing,

    #[command(flatten)]
    writing: Writing,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let settings = context.settings()?;
    let name = args.provider.as_deref().or(unless_blank(settings.turn.provider.as_deref()));
    let name = name.ok_or_else(|| {
        CommandError::user(anyhow!("no provider was named"))
            .hinted(Hint::settings("name one from your settings with --provider"))
    })?;
    let prompt = match args.prompt.as_deref() {
        Some("-") => Some(env::read_text("the prompt")?),
        prompt => prompt.map(str::to_owned),
    };
    let mut opened = context.change(args.about.wanted()?)?;
    if let Some(word) = args.prompt.as_deref() {
        refuse_session(&opened.archive, word)?;
    }
    opened.archive.set_manner(args.writing.manner(context));
    let mut kit = kit(context, &args.summing, &settings, &opened)?;
    let provider = models::provider(&settings, name)?;
    kit.asked.window = kit.asked.window.or(provider.window);
    kit.asked.model.clone_from(&provider.model);
    // A model is asked anyway, so an exact count costs little.
    kit.asked.counting = None;
    kit.asked.shape = match provider.kind {
        ProviderKind::Anthropic => Shape::Anthropic,
        ProviderKind::Openai | ProviderKind::Responses | ProviderKind::Command => Shape::Openai,
    };
    kit.warn(context, &opened);
    let model = model(&context.env, &settings, name, &kit.sink)?;
    let line = args.tools.as_deref().or(unless_blank(settings.turn.tools.as_deref()));
    let until = args.deadline.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let tools = line.map(|line| Tools {
        line: line.to_owned(),
        folder: Some(context.env.current_dir.clone()),
        limit: Duration::from_secs(settings.turn.tools_timeout.unwrap_or(TOOLS_LIMIT)),
        until,
    });
    let offered = tools.as_ref().map(Tools::list).transpose()?.unwrap_or_default();
    let answerer = tools.as_ref().map(|tools| move |call: &Call| tools.answer(call));
    let workspace = verbs::workspace(&context.env.current_dir);
    let session = &opened.at()?;
    let prompt = prompt.as_deref();
    let words = Words::to(context, Rc::clone(&kit.sink));
    let turning = Turning {
        compacting: Compacting { until, ..kit.compacting() },
        system: settings.turn.system.clone().unwrap_or_default(),
        heard: &|heard| words.hear(heard),
        max_result: limit(settings.turn.max_result.unwrap_or(MOST))?.chars(),
        model: &*model,
        tools: &offered,
        answer: answerer.as_ref().map(|answer| answer as &dyn Fn(&Call) -> Answer),
        max_tokens: provider.max_tokens.unwrap_or(models::MAX_TOKENS),
        steps: settings.turn.steps.unwrap_or(verbs::STEPS).max(1),
    };
    let mut emit = |event: &_| (kit.sink)(event);
    let done = verbs::turn(session, &workspace, prompt, &turning, &mut emit);
    let is_heard = words.end();
    let done = match done {
        Ok(done) => done,
        Err(error @ OpsError::Model(_)) => return Err(kept(error, args)),
        Err(error) if opened.at()?.state.hash() != session.state.hash() => {
            return Err(kept(error, args));
        }
        Err(error) => return Err(error.into()),
    };
    answer(context, &opened, &done, is_heard)
}

/// Reports a turn.
fn answer(
    context: &mut Context,
    opened: &Opened,
    done: &Turned,
    is_heard: bool,
) -> Result<Exit, CommandError> {
    if done.is_repeated {
        context.output.note("The prompt is already the last message; it was not added again");
    }
    context.tell(&done.notices);
    for compacted in &done.compactions {
        models::tell_failures(context, compacted);
    }
    let exit = if done.stopped.is_some() { Exit::No } else { Exit::Yes };
    if context.answer_change(opened, done)? {
        return Ok(exit);
    }
    if !is_heard && !done.said.is_empty() {
        use std::io::Write as _;
        writeln!(context.output, "{}", safe::text(&done.said))?;
    }
    for call in &done.pending {
        context.say(&format!("Pending: {} {} {}", call.id, call.name, call.input))?;
    }
    if let Some(branch) = &done.aside {
        context.output.note(&format!(
            "Another command changed the session's position in the meantime: the last messages are kept on {}",
            safe::line(branch)
        ));
    }
    context.output.hints(done.hints());
    if let Some(end) = done.stop.and_then(unfinished) {
        context.output.note(end);
    }
    match done.stopped.as_ref().map(|stopped| stopped.state) {
        None => {}
        Some(Moment::Present) => context.output.note("The deadline has passed"),
        Some(Moment::Before) => context.output.note(
            "The deadline passed during a compaction; --json has the conversation from before it",
        ),
    }
    let answered = match done.answered {
        0 => String::new(),
        n => format!(", {}", counted(n as u64, "call", "calls")),
    };
    let tokens = format!("about {} of {} tokens", grouped(done.tokens), grouped(done.window));
    context.output.note(&format!(
        "{}{answered}; the context is at {tokens}",
        counted(done.steps as u64, "request", "requests")
    ));
    Ok(exit)
}

/// Shows the words of an answer on a terminal as they come, and reports them as events.
struct Words<'a> {
    output: RefCell<&'a mut Output>,
    is_shown: bool,
    /// True once words were shown.
    is_heard: Cell<bool>,
    sink: Sink,
}

impl<'a> Words<'a> {
    fn to(context: &'a mut Context, sink: Sink) -> Self {
        let is_shown = context.env.terminal.stdout && !context.json;
        let (output, is_heard) = (RefCell::new(&mut context.output), Cell::new(false));
        Self { output, is_shown, is_heard, sink }
    }

    fn hear(&self, heard: Heard<'_>) {
        use std::io::Write as _;
        let mut output = self.output.borrow_mut();
        match heard {
            Heard::Words(text) => {
                (self.sink)(&Event::Words { text: text.to_owned() });
                if self.is_shown {
                    self.is_heard.set(true);
                    // The answer is stored, so a closed terminal is no reason to stop.
                    let _ = write!(output, "{}", safe::text(text)).and_then(|()| output.flush());
                }
            }
            Heard::Void => {
                (self.sink)(&Event::WordsVoid);
                if self.is_shown {
                    let _ = writeln!(output);
                    output.note("The request is repeated; the words above are void");
                }
            }
        }
    }

    /// Ends the last line. Returns true if words were shown.
    fn end(self) -> bool {
        use std::io::Write as _;
        if self.is_heard.get() {
            let _ = writeln!(self.output.borrow_mut());
        }
        self.is_heard.get()
    }
}

/// Describes why an answer is incomplete; `None` if it is complete.
fn unfinished(stop: Stop) -> Option<&'static str> {
    match stop {
        Stop::End | Stop::Calls => None,
        Stop::Length => Some("The answer was cut off at its length limit"),
        Stop::Paused => Some("The model paused in the middle of its answer"),
        Stop::Refused => Some("The model refused to finish its answer"),
        Stop::Aborted | Stop::Error => Some("The answer was interrupted"),
    }
}

/// Refuses a prompt that is a session's id or its shown beginning: `turn` takes the session with `-s`.
fn refuse_session(archive: &verbs::Archive, word: &str) -> Result<(), CommandError> {
    /// The shortest form in which ids are shown.
    const SHORTEST: usize = 8;
    if word.len() < SHORTEST || word.contains(char::is_whitespace) {
        return Ok(());
    }
    let found = verbs::find_session(archive.store(), Some(word), Path::new(""));
    match found {
        Ok(found) if found.name.id.starts_with(word) => {
            let error = anyhow!("{word} is a session, but `turn` takes a PROMPT here");
            let hint = Line::new("turn").option("session", word).to("to continue in that session");
            Err(CommandError::user(error).hinted(hint))
        }
        _ => Ok(()),
    }
}

/// Returns the error for a turn that failed after its prompt was stored, with the command that continues it.
fn kept(error: OpsError, args: &Args) -> CommandError {
    let named = [("provider", &args.provider), ("tools", &args.tools)];
    let go_on = named.into_iter().fold(Line::about("turn"), |line, (name, value)| match value {
        Some(value) => line.option(name, value),
        None => line,
    });
    CommandError::from(error)
        .hinted(go_on.to("the messages so far are kept; to continue from them"))
}

/// An external command that answers tool calls.
struct Tools {
    line: String,
    folder: Option<PathBuf>,
    limit: Duration,
    /// When the turn ends.
    until: Option<Instant>,
}

impl Tools {
    fn ask(&self, asked: &str) -> Result<Value, String> {
        let (line, folder) = (self.line.clone(), self.folder.clone());
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        let limit = self.limit.min(left.unwrap_or(Duration::MAX));
        let task = Task { line, folder, limit, max_bytes: TOOLS_BYTES };
        let done = process::run(&task, asked.as_bytes()).map_err(|error| error.to_string())?;
        if done.code != Some(0) {
            let code = done.code.map_or("it was killed".to_owned(), |n| format!("exit code {n}"));
            return Err(done.said(&code));
        }
        // The tool has already run, so half a character in its output must not lose the result.
        let printed = String::from_utf8_lossy(&done.output);
        let mended = || serde_json::from_str::<Value>(&json::mended(&printed)?).ok();
        let answer = serde_json::from_str(&printed).ok().or_else(mended);
        answer.filter(Value::is_object).ok_or_else(|| "it did not print a JSON object".to_owned())
    }

    /// Asks the command for its tools.
    fn list(&self) -> Result<Vec<Tool>, CommandError> {
        let failed = |why: &str| {
            let program = Path::new(self.line.split_whitespace().next().unwrap_or("tools"));
            CommandError::new(
                Kind::Failed,
                anyhow!("{} did not list its tools: {why}", safe::path(program)),
            )
            .hinted(Line::new("turn").flag("help").to("see what the program reads and must print"))
        };
        let listed = self.ask(r#"{"type":"list"}"#).map_err(|why| failed(&why))?;
        let list = listed.get("tools").and_then(Value::as_array);
        let list = list.ok_or_else(|| failed("there is no list \"tools\""))?;
        let tool = |tool: &Value| {
            let text = |key: &str| tool.get(key).and_then(Value::as_str).map(str::to_owned);
            let schema = tool.get("schema").map(Value::to_string);
            Some(Tool {
                name: text("name")?,
                description: text("description").unwrap_or_default(),
                schema: schema.unwrap_or_else(|| r#"{"type":"object"}"#.to_owned()),
            })
        };
        list.iter().map(|one| tool(one).ok_or_else(|| failed("a tool has no name"))).collect()
    }

    fn answer(&self, call: &Call) -> Answer {
        let failed = |why: String| Answer { output: String::new(), error: Some(why) };
        // Input that only looks like JSON, such as an oversized number or half a character, is not a value.
        let input: Value = match serde_json::from_str(&call.input) {
            Ok(input) => input,
            Err(why) => return failed(format!("the arguments are not JSON: {why}")),
        };
        let asked =
            serde_json::json!({ "type": "call", "id": call.id, "name": call.name, "input": input });
        match self.ask(&asked.to_string()) {
            Ok(answer) => {
                let text = |key: &str| match answer.get(key) {
                    None | Some(Value::Null) => None,
                    Some(Value::String(text)) => Some(text.clone()),
                    Some(other) => Some(other.to_string()),
                };
                match (text("output"), text("error")) {
                    (None, None) => {
                        failed("it printed neither \"output\" nor \"error\"".to_owned())
                    }
                    (output, error) => Answer { output: output.unwrap_or_default(), error },
                }
            }
            Err(why) => failed(why),
        }
    }
}
