//! Following (`log --follow`): shows new entries of a conversation as its file grows, until nobody reads the output.
//!
//! The file is checked a few times a second. If it changed, the session is read again: from the store and its live file, or from
//! the file alone if the file itself was named. A deleted file is waited for. If the agent or a command continues in another
//! file, that file is followed, even before the store has imported it.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use undertext::disk::Stamp;
use undertext::model::{EntryId, SessionName};
use undertext::verbs::{self, Line, Log, Session};

use super::common::shown;
use super::output::Output;
use super::shown::Shown;
use super::{CommandError, Context, Exit, Opened, archive};
use crate::render::answers;

/// How often the file is checked.
const TICK: Duration = Duration::from_millis(200);
/// How long to wait after a failed read.
const AGAIN: Duration = Duration::from_secs(1);
/// Rereading a long session may take at most 1/SHARE of the time.
const SHARE: u32 = 5;
/// Number of earlier entries remembered, to find the fork point when a conversation goes back.
const KNOWN: usize = 4096;
/// Number of entries read at first to find the last known one; more are read if it is not among them.
const NEWEST: usize = 64;
/// Number of entries shown of a conversation without known entries.
const FRESH: usize = 10;

/// The state of a followed conversation.
pub(super) struct Following {
    file: PathBuf,
    /// The session in the store; `None` if the file itself is shown.
    held: Option<SessionName>,
    session: Session,
    /// The file that continues this one. It is not followed, because the older file was named explicitly.
    left: Option<PathBuf>,
    /// When to look for the next file.
    due: Instant,
    seen: Option<Stamp>,
    known: BTreeSet<EntryId>,
    /// The last message entry shown.
    last: Option<EntryId>,
}

impl Following {
    /// Starts to follow a conversation after its last entry.
    pub(super) fn of(
        context: &Context,
        opened: &Opened,
        how: &Shown,
    ) -> Result<Self, CommandError> {
        let session = &opened.at()?;
        let file = verbs::file_of(session)?.ok_or_else(|| {
            let error = anyhow!("session {} has no file on this machine", session.name.id);
            CommandError::user(error)
                .hinted("only a session with a file can change while you watch it")
        })?;
        let file = context.env.current_dir.join(file);
        let held = session.archive.root().map(|_| session.name.clone());
        // If you name a file that the session has moved on from, you see that file.
        let left = held.is_none().then(|| verbs::successor_of(session, &file)).flatten();
        let seen = Stamp::at(&file);
        let mut following = Self {
            seen: seen.with_context(|| format!("cannot access {}", shown(&file)))?,
            file,
            held,
            session: opened.session.clone(),
            left,
            due: Instant::now(),
            known: BTreeSet::new(),
            last: None,
        };
        following.see(&how.newest(opened, KNOWN)?);
        Ok(following)
    }

    /// Shows new entries until nobody reads the output.
    pub(super) fn go_on(
        mut self,
        context: &mut Context,
        how: &Shown,
    ) -> Result<Exit, CommandError> {
        let mut pause = TICK;
        let mut is_told = false;
        // Entries added since the conversation was shown are new too.
        let mut is_read = false;
        loop {
            is_read &= !self.moves_on(context);
            // A file that cannot be checked now counts as unchanged.
            let seen = Stamp::at(&self.file).unwrap_or(self.seen);
            if seen != self.seen || !is_read {
                let before = std::mem::replace(&mut self.seen, seen);
                self.tell(context, before);
                let begun = Instant::now();
                let read = seen.map_or(Ok(()), |_| self.read(context, how));
                is_read = read.is_ok();
                pause = TICK.max(begun.elapsed() * SHARE);
                match read {
                    Err(error) if error.is_output() => return Err(error),
                    // The file may be mid-change, or the store unavailable: keep retrying.
                    Err(error) => {
                        pause = pause.max(AGAIN);
                        if !std::mem::replace(&mut is_told, true) {
                            context.output.warn(&error.in_one_line());
                        }
                    }
                    Ok(()) if seen.is_some() => is_told = false,
                    Ok(()) => {}
                }
            }
            context.output.flush()?;
            if !Output::is_read() {
                return Ok(Exit::Yes);
            }
            thread::sleep(std::mem::replace(&mut pause, TICK));
        }
    }

    /// Switches to the file that continues the session. Returns false if no file does.
    fn moves_on(&mut self, context: &mut Context) -> bool {
        if self.due > Instant::now() {
            return false;
        }
        let begun = Instant::now();
        let next = verbs::successor_of(&self.session, &self.file);
        self.due = Instant::now() + AGAIN.max(begun.elapsed() * SHARE);
        let Some(next) = next.filter(|next| Some(next) != self.left.as_ref()) else { return false };
        let Ok(seen) = Stamp::at(&next) else { return false };
        let name = context.env.homely(&next);
        context.output.warn(&format!("the session continues in {name}"));
        (self.seen, self.file) = (seen, next);
        true
    }

    /// Reports what happened to the file, unless it only grew.
    fn tell(&self, context: &mut Context, before: Option<Stamp>) {
        let file = context.env.homely(&self.file);
        match (before, self.seen) {
            (_, None) => context.output.warn(&format!("{file} was deleted")),
            (None, Some(_)) => context.output.warn(&format!("{file} is back")),
            (Some(old), Some(new)) if old.inode != new.inode => {
                context.output.warn(&format!("{file} was replaced"));
            }
            (Some(old), Some(new)) if old.length > new.length => {
                context.output.warn(&format!("{file} was overwritten"));
            }
            _ => {}
        }
    }

    /// Reads the session again and shows its new entries.
    fn read(&mut self, context: &mut Context, how: &Shown) -> Result<(), CommandError> {
        let opened = match &self.held {
            None => archive::peek(&context.env, &self.file)?,
            Some(name) => {
                let archive = context.open_reader()?;
                let session = archive.session(name)?.ok_or_else(|| {
                    CommandError::user(anyhow!("session {} is no longer in the store", name.id))
                })?;
                if verbs::left_for(&archive.at(&session)?)?.as_ref() == Some(&self.file) {
                    // The agent began it, and the store has not taken it in yet.
                    archive::peek(&context.env, &self.file)?
                } else {
                    let opened = Opened { archive, session };
                    context.follow(&opened);
                    opened
                }
            }
        };
        let mut asked = NEWEST;
        let (mut log, known) = loop {
            let log = how.newest(&opened, asked)?;
            let known = log
                .lines
                .iter()
                .rposition(|line| line.id.is_some_and(|id| self.known.contains(&id)));
            if known.is_some() || log.lines.len() < asked {
                break (log, known);
            }
            asked = asked.saturating_mul(4);
        };
        let back = log.lines.get(..known.map_or(0, |at| at + 1)).and_then(last_said);
        let begin = known.map_or_else(|| log.lines.len().saturating_sub(FRESH), |at| at + 1);
        log.lines.drain(..begin);
        match back {
            Some(id) if Some(id) != self.last => {
                context
                    .output
                    .warn(&format!("the conversation went back and continues after {id:.8}"));
                self.last = Some(id);
            }
            None if self.last.is_some() && known.is_none() && !log.lines.is_empty() => {
                context.output.warn("the conversation was replaced; its last entries:");
            }
            _ => {}
        }
        if log.lines.is_empty() {
            return Ok(());
        }
        self.see(&log);
        let entries: BTreeSet<_> = log.lines.iter().map(|line| (line.id, line.n)).collect();
        log.damaged.retain(|damaged| entries.iter().any(|(id, _)| *id == damaged.entry));
        log.repairs.retain(|repair| entries.iter().any(|(_, n)| *n == repair.entry));
        if log.lines.iter().any(|line| how.shows(context, line)) {
            if !context.json {
                writeln!(context.output)?;
            }
            how.show(context, &opened, log)?;
        }
        Ok(())
    }

    fn see(&mut self, log: &Log) {
        self.known.extend(log.lines.iter().filter_map(|line| line.id));
        self.last = last_said(&log.lines).or(self.last);
    }
}

/// Returns the last message entry. The next message does not follow the agent's own records after it.
fn last_said(lines: &[Line]) -> Option<EntryId> {
    lines.iter().rfind(|line| !answers::is_own(line)).and_then(|line| line.id)
}
