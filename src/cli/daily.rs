//! What a store's place lacks is said on use, in one line and once a day: `doctor` says all of it at any time.
//!
//! The day on which a store was warned of is in the user's state folder, next to the list of trusted stores.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use undertext::model::{DATABASE, LOG};
use undertext::ops::{self, Place};
use undertext::report::Line;
use undertext::trust::List;

use super::Context;

/// The file that holds a day and a path a line.
const WARNED: &str = "warned";
/// The milliseconds of a day.
const DAY: i64 = 24 * 60 * 60 * 1000;

impl Context {
    /// Warns of the place of a store, unless it was warned of today.
    pub(crate) fn warn_of_place(&mut self, root: &Path) {
        let Some(problem) = problem(root) else { return };
        let today = self.env.ambient().now().0.div_euclid(DAY);
        let folder = self.env.state_home.as_deref().map(|state| state.join("undertext"));
        // What cannot be written down is said again.
        if folder.is_some_and(|folder| !write_down(&folder, today, root).unwrap_or(true)) {
            return;
        }
        let name = self.env.homely(root);
        let doctor = self.output.spell(&Line::new("doctor"));
        self.output.warn(&format!("{name}: {problem}; for more, run {doctor}"));
    }
}

/// Returns the first thing that the place of a store lacks.
fn problem(root: &Path) -> Option<String> {
    let own = rustix::process::geteuid().as_raw();
    for name in ["", DATABASE, LOG] {
        let Ok(meta) = fs::metadata(root.join(name)) else { continue };
        let what = if name.is_empty() { "the folder" } else { name };
        if meta.uid() != own {
            return Some(format!("{what} belongs to another user"));
        }
        if meta.mode() & 0o077 != 0 {
            return Some(format!(
                "other users can access {what}: its mode is {:04o}",
                meta.mode() & 0o7777
            ));
        }
    }
    match ops::place_of(&fs::canonicalize(root).ok()?) {
        Place::Local => None,
        Place::Network => Some("it is on a network file system, where a store is not safe".into()),
        Place::Synced => Some(
            "it is in a synchronised folder, which may copy a store in the middle of a write"
                .into(),
        ),
    }
}

/// Writes down that a store is warned of today; returns whether it is the first time.
fn write_down(folder: &Path, today: i64, store: &Path) -> io::Result<bool> {
    let of_today = format!("{today} ").into_bytes();
    let mut warned = of_today.clone();
    warned.extend(store.as_os_str().as_bytes());
    let list = List::new(folder, WARNED);
    if list.read()?.contains(&warned) {
        return Ok(false);
    }
    list.change(|all| {
        all.retain(|one| one.starts_with(&of_today));
        all.push(warned);
    })?;
    Ok(true)
}
