//! Automatic import: before a command lists or names sessions, new sessions of the agents are imported.
//!
//! It looks for new files only. New records of a known session are read from its live file, as in every reading command.
//!
//! ```text
//! state/undertext/looked   the mark of the last look: its time, the store and settings, the existing folders,
//!                          and the files without a session
//! new                      files in folders changed since then, and files without a session if they changed
//! ```
//!
//! Invariant: a failure here never stops the command, which then runs on what is already in the store.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use undertext::disk;
use undertext::model::LineId;
use undertext::verbs::{self, AgentFolder, Archive, Look, Looked, Step};

use super::common::counted;
use super::output::Progress;
use super::{CommandError, Context, models, pointed};
use crate::render::units;

/// Commands that list and name no sessions, import on their own, or are called by programs that wait.
const WITHOUT: [&str; 18] = [
    "append",
    "attach",
    "completions",
    "doctor",
    "help",
    "hook",
    "import",
    "man",
    "new",
    "recover",
    "redact",
    "serve",
    "setup",
    "store",
    "trust",
    "turn",
    "verify",
    "watch",
];
/// Maximum size of the mark of the last look, in bytes.
const MARK: u64 = 1 << 24;

/// Returns true if a command lists or names sessions.
pub(super) fn is_current(verb: &str) -> bool {
    !WITHOUT.contains(&verb)
}

/// Imports new session files of agents into the user's own store, at most once per command. Returns true if there were any.
/// `held` is the store, if it exists.
pub(super) fn import_new(context: &mut Context, held: Option<&Archive>) -> bool {
    if !std::mem::take(&mut context.imports_new) || !is_own_store(context) {
        return false;
    }
    let read = context.read_settings();
    if read.is_err() || read.is_ok_and(|read| read.settings.import.auto == Some(false)) {
        return false;
    }
    let folders = pointed::agent_folders(&context.env);
    let Ok(exclude) = context.exclude() else { return false };
    let of = |archive: &Archive| {
        let id = archive.store().id().ok()?;
        let version = env!("CARGO_PKG_VERSION");
        Some(LineId::of(format!("{version} {id:?} {exclude:?}").as_bytes()).to_string())
    };
    let mark = context.env.state.as_ref().map(|state| state.join("looked"));
    let last = mark.as_deref().zip(held.and_then(of));
    let last = last.and_then(|(mark, of)| last_look(mark, &of));
    let look = |held| verbs::new_files(held, &folders, last.as_ref());
    let looked = look(held);
    if looked.new.is_empty() && !looked.has_changed {
        return false;
    }
    // The next command looks at changes made after the mark's time.
    let looking = mark.as_deref().and_then(|mark| begin_look(mark).ok());
    let mut looked = look(held);
    if looked.new.is_empty() {
        if let (Some(mark), Some(looking), Some(of)) = (&mark, &looking, held.and_then(of)) {
            let _later = end_look(looking, mark, &of, &looked);
        }
        return false;
    }
    let files = std::mem::take(&mut looked.new);
    let imported = import_files(context, &files, &folders, held.is_none());
    if let (Some(mark), Some(looking)) = (&mark, looking) {
        // Without a mark, the next command looks at the files again.
        let done = imported.as_ref().ok().and_then(|(archive, _)| Some((archive, of(archive)?)));
        let _later = match done {
            Some((archive, of)) => {
                verbs::leave_out_held(archive, &mut looked);
                end_look(&looking, mark, &of, &looked)
            }
            None => fs::remove_file(&looking),
        };
    }
    match imported {
        Ok((_, new)) => new > 0,
        Err(error) => {
            let files = files.len() as u64;
            let files = counted(files, "new session file is", "new session files are");
            context.output.note(&format!("{files} not imported: {}", error.in_one_line()));
            false
        }
    }
}

pub(super) fn is_own_store(context: &mut Context) -> bool {
    let is_named = context.asked.is_some() || context.env.variable("UNDERTEXT_STORE").is_some();
    !is_named && context.root().is_ok_and(|root| Some(root) == context.env.own_store)
}

/// Imports files and prints a one-line summary.
fn import_files(
    context: &mut Context,
    files: &[PathBuf],
    folders: &[AgentFolder],
    is_first: bool,
) -> Result<(Archive, u64), CommandError> {
    let begun = Instant::now();
    // A reading command must not wait for another program.
    let wait = std::mem::replace(&mut context.wait, Duration::ZERO);
    let opened = context.open_writer();
    context.wait = wait;
    let mut archive = opened?;
    let attach = pointed::paths(folders);
    let mut formats: BTreeMap<String, u64> = BTreeMap::new();
    let mut sessions = Vec::new();
    let output = &mut context.output;
    let summary =
        verbs::import_changed(&mut archive, files, &[], &attach, &mut |step| match step {
            Step::Reading { done, total, bytes, of, .. } if begun.elapsed() > PATIENCE => {
                let (total, of) = (Some(total), Some(of));
                output.progress(Progress { label: "importing", done, total, bytes, of });
            }
            Step::Imported(imported) => {
                if imported.new {
                    *formats.entry(imported.session.name.format.clone()).or_default() += 1;
                }
                sessions.push(imported.session);
            }
            _ => {}
        });
    let summary = summary?;
    let asked = models::usual_request(context);
    verbs::glance_all(&archive, &sessions, &asked)?;
    let new = formats.values().sum();
    if new > 0 {
        let took = took(begun.elapsed());
        let line = if is_first {
            let sessions = counted(new, "session", "sessions");
            let agents = names(folders, &formats);
            let size = units::size(summary.bytes);
            format!(
                "Found {sessions} of {agents} ({size}). Imported in {took}; your agents' files were only read."
            )
        } else {
            format!("{}, imported in {took}", counted(new, "new session", "new sessions"))
        };
        // The bare program shows the line in its header.
        if context.verb.is_empty() && !is_first && context.env.terminal.stdout && !context.json {
            context.imported = Some(line);
            return Ok((archive, new));
        }
        context.output.note(&line);
    }
    Ok((archive, new))
}

/// An import that takes longer than this shows its progress.
const PATIENCE: Duration = Duration::from_millis(500);

/// Returns the names of the agents, by descending number of sessions.
fn names(folders: &[AgentFolder], formats: &BTreeMap<String, u64>) -> String {
    let agent = |format: &String| {
        let folder = folders.iter().find(|folder| folder.format == format);
        folder.map_or(format.clone(), |folder| folder.agent.to_owned())
    };
    let mut formats: Vec<(&String, &u64)> = formats.iter().collect();
    formats.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let mut names: Vec<String> = formats.into_iter().map(|(format, _)| agent(format)).collect();
    match names.pop() {
        Some(last) if !names.is_empty() => format!("{} and {last}", names.join(", ")),
        last => last.unwrap_or_default(),
    }
}

fn took(time: Duration) -> String {
    match time.as_millis() {
        millis @ ..1000 => format!("{millis} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

/// Returns the result of the last look, if it was for this store and these settings.
fn last_look(mark: &Path, of: &str) -> Option<Look> {
    let bytes = disk::read(mark, MARK).ok()?;
    let meta = fs::symlink_metadata(mark).ok()?;
    let mut look = Look { at: (meta.mtime(), meta.mtime_nsec()), ..Look::default() };
    let mut parts = bytes.split(|byte| *byte == 0);
    if parts.next()? != of.as_bytes() {
        return None;
    }
    for part in parts {
        let path = |rest: &[u8]| PathBuf::from(OsStr::from_bytes(rest));
        match part.split_first()? {
            (b'd', folder) => look.folders.insert(path(folder)),
            (b'f', file) => look.files.insert(path(file)),
            _ => return None,
        };
    }
    Some(look)
}

/// Creates the mark of a look. Its modification time is the time the look began.
fn begin_look(mark: &Path) -> std::io::Result<PathBuf> {
    if let Some(folder) = mark.parent() {
        disk::make_folders(folder)?;
    }
    let fresh = mark.with_extension(std::process::id().to_string());
    let _ = fs::remove_file(&fresh);
    disk::make(&fresh)?;
    Ok(fresh)
}

/// Saves the mark of a look: the store and settings, then folders (`d`) and files (`f`), separated by NUL.
fn end_look(fresh: &Path, mark: &Path, of: &str, looked: &Looked) -> std::io::Result<()> {
    let begun = fs::symlink_metadata(fresh)?.modified()?;
    let mut text = of.as_bytes().to_vec();
    let folders = looked.folders.iter().map(|folder| (b"\0d", folder));
    for (kind, path) in folders.chain(looked.files.iter().map(|file| (b"\0f", file))) {
        text.extend_from_slice(kind);
        text.extend_from_slice(path.as_os_str().as_bytes());
    }
    let mut file = disk::open_or_make(fresh)?;
    file.write_all(&text)?;
    file.set_modified(begun)?;
    fs::rename(fresh, mark)
}
