//! What a store's place lacks is said on use, in one line and once a day: `doctor` says all of it at any time.
//!
//! The day on which a store was warned of stands in the user's state folder, next to the list of trusted stores.

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

use undertext::disk;
use undertext::model::{DATABASE, LOG};
use undertext::ops::{self, Place};
use undertext::report::Line;

use super::Context;

/// The file that holds a day and a path a line.
const STAMPS: &str = "warned";
/// The milliseconds of a day.
const DAY: i64 = 24 * 60 * 60 * 1000;

impl Context {
    /// Warns of the place of a store, unless it was warned of today.
    pub(crate) fn warn_of_place(&mut self, root: &Path) {
        let Some(problem) = problem(root) else { return };
        let today = self.env.ambient().now().0.div_euclid(DAY);
        let stamp = format!("{today} {}", root.display());
        let folder = self.env.state_home.as_deref().map(|state| state.join("undertext"));
        if folder.is_some_and(|folder| is_stamped(&folder, today, &stamp).unwrap_or(false)) {
            return;
        }
        let name = self.env.homely(root);
        let doctor = self.output.spell(&Line::new("doctor"));
        self.output.warn(&format!("{name}: {problem}; more: {doctor}"));
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
                "others can reach {what}, by its mode {:04o}",
                meta.mode() & 0o7777
            ));
        }
    }
    match ops::place_of(&fs::canonicalize(root).ok()?) {
        Place::Local => None,
        Place::Network => {
            Some("it lies on a network file system, where a store is not safe".into())
        }
        Place::Synced => {
            Some("it lies in a synchronised folder, which can copy a store in mid-write".into())
        }
    }
}

/// Returns whether a store was warned of today, and writes down that it was.
fn is_stamped(folder: &Path, today: i64, stamp: &str) -> io::Result<bool> {
    let path = folder.join(STAMPS);
    let known = disk::read_text(&path, disk::SMALL).unwrap_or_default();
    if known.lines().any(|line| line == stamp) {
        return Ok(true);
    }
    let of_today = format!("{today} ");
    let others = known.lines().filter(|line| line.starts_with(&of_today));
    let all: Vec<&str> = others.chain([stamp]).collect();
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut file = disk::open_or_make(&path)?;
    file.set_len(0)?;
    writeln!(file, "{}", all.join("\n"))?;
    Ok(false)
}
