//! `hook`: agents call it when a session changes. A separate process then imports the session, so that the agent does not wait.
//!
//! A hook's output or exit code could make an agent end a session, wait, or ask its model again. This hook prints nothing, always
//! exits with 0, and logs its errors to a file.
//!
//! Invariant: the store is this user's own, whatever a folder or variable names.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use undertext::verbs::{self, Queue, Skipped, Step, Why, Work};

use super::common::counted;
use super::output::Output;
use super::{CommandError, Context, Exit, env, pointed, store};

/// How long to add the imported text to the index.
const INDEXING: Duration = Duration::from_secs(2);
/// The worker's first and longest pause between retries.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Import the session that an agent's event names
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext hook claude < event.json

Agents run this after undertext setup. It returns at once, prints nothing and
exits with 0; the import follows in the background. Its log is
~/.local/state/undertext/hooks/log.")]
pub(crate) struct Args {
    /// claude, codex, pi or kimi
    agent: Option<String>,

    /// The event as JSON [default: read from stdin]
    event: Option<OsString>,

    /// Import the sessions that events named
    #[arg(long, hide = true)]
    work: bool,
}

/// Returns true if the arguments call this command.
pub(crate) fn is_called(args: &[OsString]) -> bool {
    args.get(1).is_some_and(|word| word == "hook")
}

#[expect(clippy::unnecessary_wraps, reason = "other commands may fail")]
pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    context.output = Output::silent(&context.env);
    let Some(queue) = queue(context) else { return Ok(Exit::Yes) };
    let done = if args.work { work(context, &queue) } else { hand_over(context, &queue, args) };
    if let Err(error) = done {
        log(context, &queue, &error.in_one_line());
    }
    Ok(Exit::Yes)
}

/// Returns the queue of files to import.
pub(crate) fn queue(context: &Context) -> Option<Queue> {
    context.env.state.as_deref().map(Queue::of)
}

/// Queues the files that an event names, and starts a worker process.
fn hand_over(context: &Context, queue: &Queue, args: &Args) -> Result<(), CommandError> {
    let agent = args.agent.as_deref().unwrap_or_default();
    let format = undertext::wire::by_name(agent)
        .ok_or_else(|| CommandError::user(anyhow!("there is no agent {agent:?}")))?;
    let event = match &args.event {
        Some(event) => event.as_bytes().to_vec(),
        None if context.env.terminal.stdin => Vec::new(),
        None => env::read_event().context("cannot read the event")?,
    };
    let Some(named) = format.traits().event.and_then(|field| field.read(&event)) else {
        let length = event.len() as u64;
        let event = counted(length, "byte", "bytes");
        return Err(CommandError::user(anyhow!(
            "{agent}: the event ({event}) does not name a session"
        )));
    };
    queue.add(format.name(), &named).context("cannot save the list of files to import")?;
    let mut worker = Command::new(context.env.program().context("cannot find this program")?);
    // In its own process group, the worker outlives the agent and its terminal. In `/`, it keeps no project folder busy.
    worker.args(["hook", "--work"]).process_group(0).current_dir("/");
    worker.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    worker.spawn().context("cannot start the import")?;
    Ok(())
}

/// Imports the queued files until the queue is empty or another process takes over. Failures that may pass are retried with
/// growing pauses.
fn work(context: &mut Context, queue: &Queue) -> Result<(), CommandError> {
    context.store.clone_from(&context.env.own_store);
    if context.store.is_none() {
        return Err(CommandError::user(anyhow!("there is no home folder to keep a store in")));
    }
    let (mut pause, mut reported) = (PAUSE.0, String::new());
    while let Some(mut work) = queue.work().context("cannot process the list of files to import")? {
        loop {
            match take_in(context, queue, &mut work, &mut reported)? {
                Tried::Nothing => break,
                Tried::Imported => (pause, reported) = (PAUSE.0, String::new()),
                Tried::Failed => {
                    work.again().context("cannot save the list of files to import")?;
                    thread::sleep(pause);
                    pause = (pause * 2).min(PAUSE.1);
                    // Nobody waits for this process, so it waits for the store's lock without a limit.
                    context.wait = Duration::MAX;
                }
            }
        }
        drop(work);
        if queue.is_empty() {
            break;
        }
    }
    store::index_for(context, INDEXING);
    Ok(())
}

/// The outcome of importing the complete files.
enum Tried {
    Nothing,
    Imported,
    /// Retry them.
    Failed,
}

/// Imports the next complete files. Logs a failure unless it equals `reported`, the last one logged.
fn take_in(
    context: &mut Context,
    queue: &Queue,
    work: &mut Work,
    reported: &mut String,
) -> Result<Tried, CommandError> {
    let mut told = Vec::new();
    let folders = || pointed::agent_folders(&context.env);
    let files = work.next(&folders, &mut |left| told.push(left.to_owned()));
    let files = files.context("cannot read the list of files to import")?;
    let mut tried = if files.is_empty() { Tried::Nothing } else { Tried::Imported };
    if !files.is_empty() {
        match import(context, &files, &mut told) {
            Ok(()) => work.done().context("cannot clear the list of files to import")?,
            Err(error) => {
                let may_pass = error.may_pass();
                tried = if may_pass { Tried::Failed } else { tried };
                let when = if may_pass { "until it succeeds" } else { "with the next hook" };
                let failure = format!("{}; the import runs again {when}", error.in_one_line());
                if may_pass && *reported == failure {
                    told.clear();
                } else {
                    told.push(failure.clone());
                }
                *reported = failure;
            }
        }
    }
    for line in told {
        log(context, queue, &line);
    }
    Ok(tried)
}

fn import(
    context: &mut Context,
    files: &[PathBuf],
    told: &mut Vec<String>,
) -> Result<(), CommandError> {
    let attach = pointed::paths(&pointed::agent_folders(&context.env));
    let mut archive = context.open_writer()?;
    verbs::import(&mut archive, files, &attach, &mut |step| match step {
        Step::Imported(imported) => {
            let entries = counted(imported.entries, "new entry", "new entries");
            let name = &imported.session.name;
            told.push(format!("{} session {}: {entries}", name.format, name.id));
        }
        // Not logged: a file next to sub-agents that is not a session, and one excluded with its session.
        Step::Skipped(Skipped {
            asked: false,
            why: Why::NoFormat | Why::Beside(_) | Why::Excluded { .. },
            ..
        })
        | Step::Reading { .. }
        | Step::Gone { .. } => {}
        Step::Skipped(skipped) => {
            told.push(format!("{}: {}", skipped.path.display(), skipped.why));
        }
    })?;
    Ok(())
}

/// Writes to the log. A log that cannot be written is ignored.
fn log(context: &Context, queue: &Queue, line: &str) {
    let now = context.env.ambient().now();
    let _ = queue.log(&format!("{now} {line}"));
}
