//! Titles: an agent's own file of titles turns into facts of its sessions.
//!
//! Invariant: unreadable content, and titles of sessions that the archive does not have, are ignored.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crate::{
    archive::{Archive, SyncError},
    change::{draft::Change, reconcile::catch_up::catch_up},
    disk::{self, Links},
    model::{Command, SessionName, Text},
    session::{derive, plan::given},
    wire::{self, Format, ReadTitles},
};

/// The files where agents keep titles, each listed once.
#[derive(Default)]
pub(crate) struct Lists(BTreeMap<PathBuf, (&'static dyn Format, ReadTitles)>);

impl Lists {
    /// Adds the file that has the titles for sessions at this path.
    pub(crate) fn add(&mut self, file: &Path) {
        for format in wire::FORMATS {
            let list = format.title_list(file);
            self.0.extend(list.map(|(list, titled)| (list, (format, titled))));
        }
    }

    /// Stores the titles that are new.
    pub(crate) fn keep(self, archive: &Archive) -> Result<(), SyncError> {
        for (list, (format, titled)) in self.0 {
            for (id, title) in read(&list, titled) {
                let name = SessionName { format: format.name().to_owned(), id };
                let Some(session) = archive.session(&name)? else { continue };
                // A redacted title may still be in the list.
                let is_known = || {
                    let known = archive.store.card(session.key)?.title;
                    let is_out = known.as_deref().is_some_and(Text::is_of_absent);
                    Ok::<_, SyncError>(known == title || is_out)
                };
                let is_left_out = || archive.exclusion(&session.name, format, None).is_some();
                if title.is_none() || is_known()? || is_left_out() {
                    continue;
                }
                let _lock = archive.lock()?;
                // Catch up first: a pending write of the newest operation can only be finished while that operation is the
                // newest.
                let session = archive.at(&session)?;
                match catch_up(&session) {
                    Err(error) if is_of_one(&error) => continue,
                    done => done?,
                };
                if is_known()? {
                    continue;
                }
                let mut change = match Change::bare(&session) {
                    Err(error) if is_of_one(&error) => continue,
                    change => change?,
                };
                change.facts.title = Some(given(title.as_deref().unwrap_or_default()));
                change.commit(Command::CatchUp { entries: 0, branch: None, left: None })?;
            }
        }
        Ok(())
    }
}

/// Returns true if the error affects no other session.
fn is_of_one(error: &SyncError) -> bool {
    error.is_damage() || error.is_of_a_file() || matches!(error, SyncError::Uncaught { .. })
}

/// Reads the title of each session, as lists show it. The last one counts.
fn read(list: &Path, titled: ReadTitles) -> BTreeMap<String, Option<String>> {
    let bytes = disk::open(list, Links::Follow).and_then(|file| disk::whole(file, disk::TEXT));
    let bytes = bytes.unwrap_or_default();
    let titled = titled(list, &bytes).into_iter();
    titled.map(|[id, title]| (id, derive::title(&title))).collect()
}
