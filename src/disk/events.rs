//! Events: what the system reports about folders, collected until someone asks.
//!
//! Invariant: at most [`MOST`] paths are stored, however much happens and however long nobody asks.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

/// The maximum number of paths stored. Beyond that, only the fact that something happened is stored.
const MOST: usize = 10_000;
/// Whether each folder is watched separately. On systems with recursive watches, that would cost more.
const ASKS_ABOUT_EACH: bool = cfg!(target_os = "linux");

/// The paths where something happened.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Heard {
    /// Files and folders.
    pub(super) paths: BTreeSet<PathBuf>,
    /// Whether something may have happened anywhere.
    pub(super) anywhere: bool,
}

impl Heard {
    fn is_empty(&self) -> bool {
        !self.anywhere && self.paths.is_empty()
    }

    fn hear(&mut self, event: notify::Result<Event>) {
        match event {
            // Reads change nothing.
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => return,
            Ok(event) if !event.need_rescan() => self.paths.extend(event.paths),
            Ok(_) | Err(_) => self.anywhere = true,
        }
        if self.paths.len() > MOST {
            self.paths.clear();
            self.anywhere = true;
        }
    }
}

/// The system's reports about folders.
pub(super) struct Events {
    heard: Arc<(Mutex<Heard>, Condvar)>,
    watcher: Option<RecommendedWatcher>,
    problem: Option<String>,
}

impl Events {
    /// Creates a watcher without folders.
    pub(super) fn new() -> Self {
        let heard: Arc<(Mutex<Heard>, Condvar)> = Arc::default();
        let shared = Arc::clone(&heard);
        let watcher = notify::recommended_watcher(move |event| {
            lock(&shared.0).hear(event);
            shared.1.notify_all();
        });
        match watcher {
            Ok(watcher) => Self { heard, watcher: Some(watcher), problem: None },
            Err(error) => Self { heard, watcher: None, problem: Some(error.to_string()) },
        }
    }

    /// Creates a value that never asks the system.
    pub(super) fn none() -> Self {
        Self { heard: Arc::default(), watcher: None, problem: None }
    }

    /// Asks the system to report what happens in a folder. A root is a folder that is in no other watched folder.
    pub(super) fn listen(&mut self, folder: &Path, is_root: bool) {
        // After one refusal, the next ones would fail too.
        let Some(watcher) = self.watcher.as_mut().filter(|_| self.problem.is_none()) else {
            return;
        };
        let mode = match (ASKS_ABOUT_EACH, is_root) {
            (true, _) => RecursiveMode::NonRecursive,
            (false, true) => RecursiveMode::Recursive,
            (false, false) => return,
        };
        match watcher.watch(folder, mode) {
            // It was deleted after it was found.
            Err(error) if matches!(error.kind, notify::ErrorKind::PathNotFound) => {}
            Err(error) => self.problem = Some(error.to_string()),
            Ok(()) => {}
        }
    }

    /// Returns true if the system reports events for all folders.
    pub(super) fn are_told(&self) -> bool {
        self.watcher.is_some() && self.problem.is_none()
    }

    /// Returns why the system does not report events for all folders, if it was asked to.
    pub(super) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Waits until something happens, and then a moment more for the events that follow.
    pub(super) fn wait(&self, limit: Duration, moment: Duration) -> Heard {
        let (heard, changed) = &*self.heard;
        let waited = changed.wait_timeout_while(lock(heard), limit, |heard| heard.is_empty());
        let (guard, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if guard.is_empty() {
            return Heard::default();
        }
        drop(guard);
        thread::sleep(moment);
        std::mem::take(&mut *lock(heard))
    }
}

fn lock(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use notify::event::{AccessKind, CreateKind, Flag};

    use super::*;

    #[test]
    fn what_is_heard_stays_small() {
        let mut heard = Heard::default();
        let event = |kind, n: usize| Ok(Event::new(kind).add_path(format!("/{n}").into()));
        heard.hear(event(EventKind::Access(AccessKind::Read), 1));
        assert!(heard.is_empty());
        let made = EventKind::Create(CreateKind::File);
        (0..MOST).for_each(|n| heard.hear(event(made, n % 2)));
        assert_eq!((heard.paths.len(), heard.anywhere), (2, false));
        (0..=MOST).for_each(|n| heard.hear(event(made, n)));
        assert_eq!((heard.paths.len(), heard.anywhere), (0, true));
    }

    #[test]
    fn what_the_system_could_not_tell_may_be_anywhere() {
        let lost = [
            Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)),
            Err(notify::Error::generic("lost")),
        ];
        for lost in lost {
            let mut heard = Heard::default();
            heard.hear(lost);
            assert_eq!(heard, Heard { anywhere: true, ..Heard::default() });
        }
    }
}
