//! `watch`: imports what agents write, as they write it.
//!
//! Invariant: a changed file is never imported by other code than `import` uses. Failed changes stay pending and are retried.
//!
//! Invariant: a signal can end the watch at any point without losing imported content or leaving anything to clean up.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_shutdown;
use undertext::disk::{Changes, Watch};
use undertext::model::SessionName;
use undertext::report::{Becoming, Watched, Watching};
use undertext::verbs::{self, AgentFolder, Archive, Imported, Notice, Session, Skipped, Step, Why};

use super::common::{counted, first_line};
use super::env::Env;
use super::output::Output;
use super::pointed::{agent_folders, annexes, paths};
use super::{CommandError, Context, Exit, import, store};
use crate::render::safe;

/// How often to check whether agents' folders appeared or disappeared, and whether anybody still reads the output.
const TICK: Duration = Duration::from_secs(1);
/// How long to wait for further changes: at least as long as the last import took, within these limits.
const MOMENT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// Maximum number of files imported while holding the store, so that other programs get access.
const PORTION: usize = 500;
/// The first and longest pause between retries.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How long to update the full-text index after an import, and how often at most.
const INDEXING: Duration = Duration::from_millis(500);
const INDEXING_EVERY: Duration = Duration::from_secs(10);

/// Import what agents write, as they write it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext watch
  undertext watch --poll

It runs until you stop it. What an agent writes is in the store within a second.
Other commands keep working; only one watch runs for each store.")]
pub(crate) struct Args {
    /// Look at the files regularly, without system events
    #[arg(long)]
    poll: bool,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    end_quietly().context("cannot watch for signals")?;
    let archive = context.open_writer()?;
    let alone = archive.watch_alone(None)?;
    // What changes from now on is seen, also while the rest is taken in.
    let new = if args.poll { Watch::polling } else { Watch::new };
    let mut watch = new(archive.root().map(PathBuf::from));
    drop(archive);
    let folders = agent_folders(&context.env);
    let paths = paths(&folders);
    watch.follow(&watched(&context.env, &paths));
    for folder in &folders {
        tell_folder(context, folder);
    }
    if !folders.is_empty() {
        let (left_out, _) = import::take_in(context, &paths, &paths, import::LeftOut::default())?;
        left_out.count(&mut context.output);
    }
    let problem = watch.problem().map(str::to_owned);
    if let Some(problem) = &problem {
        tell_problem(context, problem);
    }
    let names = paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    if !context.answer(&Watching { folders: names, problem: problem.clone() })? {
        let folders = counted(paths.len() as u64, "folder", "folders");
        context.output.note(&format!("Watching {folders}; ctrl-C ends it"));
    }
    context.output.finish()?;
    let (pending, pause, moment) = (Changes::default(), None, MOMENT.0);
    let indexed = None;
    Loop { context, alone, folders, watch, problem, pending, pause, moment, indexed }.run()
}

/// Makes signals end this program at once with exit code 0. Signals that were ignored at the start stay ignored, as with nohup.
pub(super) fn end_quietly() -> std::io::Result<()> {
    for signal in [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|&signal| !is_ignored(signal)) {
        register_conditional_shutdown(signal, 0, Arc::new(AtomicBool::new(true)))?;
    }
    Ok(())
}

/// Returns true if this program ignores a signal. A child inherits that, so a shell is started to survive the signal.
fn is_ignored(signal: i32) -> bool {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &format!("kill -{signal} $$")]).env_clear();
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    shell.status().is_ok_and(|ended| ended.success())
}

/// The state of a running watch.
struct Loop<'a> {
    context: &'a mut Context,
    /// The lock that keeps other programs from watching for this store.
    alone: Option<File>,
    folders: Vec<AgentFolder>,
    watch: Watch,
    problem: Option<String>,
    /// Changes that are not imported yet.
    pending: Changes,
    /// After a failure: the pause, its end, and the reported cause.
    pause: Option<(Duration, Instant, String)>,
    moment: Duration,
    /// When the full-text index was last updated.
    indexed: Option<Instant>,
}

/// What happened to a session, for the report.
enum Seen {
    Imported(Imported),
    Gone(SessionName, Becoming, PathBuf),
}

impl Loop<'_> {
    fn run(mut self) -> Result<Exit, CommandError> {
        while Output::is_read() {
            self.follow();
            let changes = self.watch.wait(TICK, self.moment);
            self.pending.extend(changes);
            self.tell_problem();
            let is_due = self.pause.as_ref().is_none_or(|(_, until, _)| *until <= Instant::now());
            if self.pending.is_empty() || !is_due {
                continue;
            }
            let begun = Instant::now();
            match self.take_in() {
                Ok(()) if self.pause.take().is_some() => {
                    self.context.output.note("Importing works again");
                }
                Ok(()) if self.indexed.is_none_or(|then| then.elapsed() > INDEXING_EVERY) => {
                    store::index_for(self.context, INDEXING);
                    self.indexed = Some(Instant::now());
                }
                Ok(()) => {}
                Err(error) if error.may_pass() => self.put_off(&error),
                Err(error) => return Err(error),
            }
            self.moment = begun.elapsed().clamp(MOMENT.0, MOMENT.1);
        }
        Ok(Exit::Yes)
    }

    /// Updates the watched folders to the ones that agents use now.
    fn follow(&mut self) {
        let folders = agent_folders(&self.context.env);
        for folder in folders.iter().filter(|folder| !self.folders.contains(folder)) {
            tell_folder(self.context, folder);
        }
        self.pending.extend(self.watch.follow(&watched(&self.context.env, &paths(&folders))));
        self.folders = folders;
    }

    /// Reports once why the system does not report all changes.
    fn tell_problem(&mut self) {
        if self.problem.is_none()
            && let Some(problem) = self.watch.problem().map(str::to_owned)
        {
            tell_problem(self.context, &problem);
            self.problem = Some(problem);
        }
    }

    /// Imports the pending changes.
    fn take_in(&mut self) -> Result<(), CommandError> {
        while !self.pending.is_empty() {
            let mut portion = self.pending.first(PORTION);
            if let Err(error) = self.take_in_portion(&portion) {
                portion.extend(std::mem::take(&mut self.pending));
                self.pending = portion;
                return Err(error);
            }
        }
        Ok(())
    }

    fn take_in_portion(&mut self, portion: &Changes) -> Result<(), CommandError> {
        let mut archive = self.context.open_writer()?;
        // The store may have been recreated, and another program may watch for the new one.
        self.alone = archive.watch_alone(self.alone.take())?;
        let changed = sessions_of(&self.context.env, &archive, &portion.changed)?;
        let gone: Vec<PathBuf> = portion.gone.iter().cloned().collect();
        let (mut steps, output) = (Vec::new(), &mut self.context.output);
        let mut report = |step: Step<'_>| match step {
            // An incomplete record is reported once it is complete.
            Step::Imported(imported) if imported.is_bare() => {}
            Step::Imported(imported) => steps.push(Seen::Imported(imported)),
            Step::Gone { session, path } => {
                steps.push(Seen::Gone(session.name, Becoming::Deleted, path));
            }
            Step::Skipped(Skipped { path, why: Why::Emptied(session), .. }) => {
                steps.push(Seen::Gone(session, Becoming::Emptied, path));
            }
            Step::Skipped(Skipped { path, why, .. }) if is_told(&why) => {
                output.warn(&format!("skipped {}: {why}", path.display()));
            }
            Step::Skipped(_) | Step::Reading { .. } => {}
        };
        let attach = paths(&self.folders);
        let taken = verbs::import_changed(&mut archive, &changed, &gone, &attach, &mut report);
        // Report what was imported, even if a later file failed.
        for step in steps {
            tell_change(self.context, &archive, step)?;
        }
        taken?;
        Ok(())
    }

    /// Postpones the work after a failure, with growing pauses. Reports each cause once.
    fn put_off(&mut self, error: &CommandError) {
        let (least, most) = PAUSE;
        let cause = error.in_one_line();
        let (pause, told) = match self.pause.take() {
            Some((pause, _, told)) => ((pause * 2).min(most), told == cause),
            None => (least, false),
        };
        if !told {
            self.context.output.warn(&format!("{cause}; trying again"));
        }
        self.pause = Some((pause, Instant::now() + pause, cause));
    }
}

/// Returns true if a skipped file is worth a warning, because it should have been imported.
fn is_told(why: &Why) -> bool {
    match why {
        Why::Unreadable(error) => error.kind() != std::io::ErrorKind::NotFound,
        Why::Lines(_) | Why::Denied(_) | Why::Along => true,
        _ => false,
    }
}

/// Returns the folders to watch: those with sessions, and those in which agents store additional files.
fn watched(env: &Env, folders: &[PathBuf]) -> Vec<PathBuf> {
    folders.iter().cloned().chain(annexes(env).map(|(_, annex)| annex)).collect()
}

/// Replaces files that an agent stores away from their session, in a folder named after it, by the session's file.
fn sessions_of(
    env: &Env,
    archive: &Archive,
    files: &BTreeSet<PathBuf>,
) -> Result<Vec<PathBuf>, CommandError> {
    let annexes = annexes(env);
    let annexes: Vec<_> =
        annexes.filter_map(|(format, annex)| Some((format, annex.canonicalize().ok()?))).collect();
    let mut all = BTreeSet::new();
    for file in files {
        let below = |(format, annex): &(&'static str, PathBuf)| {
            Some((*format, file.strip_prefix(annex).ok()?.components().next()?))
        };
        let Some((format, folder)) = annexes.iter().find_map(below) else {
            all.insert(file.clone());
            continue;
        };
        let Some(id) = folder.as_os_str().to_str() else { continue };
        let name = SessionName { format: format.to_owned(), id: id.to_owned() };
        // A session that is not imported yet is later imported whole.
        if let Some(session) = archive.session(&name)? {
            all.extend(verbs::file_of(&archive.at(&session)?)?);
        }
    }
    Ok(all.into_iter().collect())
}

pub(super) fn tell_folder(context: &mut Context, folder: &AgentFolder) {
    let path = context.env.homely(&folder.path);
    context.output.note(&format!("{}: {path}", folder.agent));
}

fn tell_problem(context: &mut Context, problem: &str) {
    let words = "the system does not report all changes, so files are also polled";
    context.output.warn(&format!("{words}: {problem}"));
}

/// Reports what happened to a session.
fn tell_change(context: &mut Context, archive: &Archive, step: Seen) -> Result<(), CommandError> {
    let title = |session: &Session| archive.store().card(session.key).map(|card| card.title);
    let watched = match step {
        Seen::Imported(imported) => {
            let is_told = |notice: &&Notice| {
                !matches!(notice, Notice::Appended { .. } | Notice::Followed { .. })
            };
            let notices: Vec<Notice> = imported.notices.iter().filter(is_told).cloned().collect();
            context.tell(&notices);
            Watched::imported(&imported, title(&imported.session)?)
        }
        Seen::Gone(name, change, path) => {
            let Some(session) = archive.session(&name)? else { return Ok(()) };
            let title = title(&session)?;
            Watched::gone(session, title, change, path)
        }
    };
    if !context.answer(&watched)? {
        let line = watched_line(context, archive, &watched)?;
        context.say(&line)?;
    }
    Ok(context.output.finish()?)
}

fn watched_line(
    context: &Context,
    archive: &Archive,
    watched: &Watched,
) -> Result<String, CommandError> {
    let session = &watched.session;
    let entries = counted(watched.entries, "new entry", "new entries");
    let what = match watched.change {
        Becoming::New => format!("new, {entries}"),
        Becoming::Grown if watched.entries == 0 && watched.sidecars > 0 => {
            let files = counted(watched.sidecars, "new file", "new files");
            format!("{files} stored alongside")
        }
        Becoming::Grown if watched.entries == 0 => "changed, without new entries".to_owned(),
        Becoming::Grown => entries,
        Becoming::Rewritten => format!("rewritten, {entries}; the store keeps the old version"),
        Becoming::Emptied => "emptied; the store keeps the old version".to_owned(),
        Becoming::Deleted => "deleted; the store has all the content".to_owned(),
    };
    let left = watched.left.as_ref().map(|left| format!("; main's old position is branch {left}"));
    let name = context.short_name(archive, session)?;
    let title = safe::line(first_line(watched.title.as_deref().unwrap_or_default())).into_owned();
    let what = what + &left.unwrap_or_default();
    let parts = [session.name.format.as_str(), &name, &what, &title];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let line = parts.join("  ");
    Ok(match context.output.width() {
        Some(width) => safe::clip(&line, width).into_owned(),
        None => line,
    })
}
