//! Titles: those that an agent keeps in a file of its own become facts of its sessions.
//!
//! Invariant: what a file cannot say, or says of no session that is there, is passed over.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crate::{
    archive::{Archive, SyncError},
    change::{draft::Change, reconcile::catch_up::catch_up},
    disk::{self, Links},
    model::{Command, SessionName, Text},
    session::derive,
    wire::{self, Format},
};

/// The files in which agents keep titles, each once.
#[derive(Default)]
pub(crate) struct Lists(BTreeMap<PathBuf, &'static dyn Format>);

impl Lists {
    /// Adds the one that has titles of what is where a file does.
    pub(crate) fn add(&mut self, file: &Path) {
        for format in wire::FORMATS {
            self.0.extend(format.title_list(file).map(|list| (list, format)));
        }
    }

    /// Gives the sessions their titles, where these are new.
    pub(crate) fn keep(self, archive: &Archive) -> Result<(), SyncError> {
        for (list, format) in self.0 {
            for (id, title) in read(&list, format) {
                let name = SessionName { format: format.name().to_owned(), id };
                let Some(session) = archive.session(&name)? else { continue };
                // Of one whose title was taken out, the list may have it yet.
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
                // A change that is still to be written is so as long as it is the newest one.
                match catch_up(archive, &session) {
                    Err(error) if is_of_one(&error) => continue,
                    done => done?,
                };
                if is_known()? {
                    continue;
                }
                let mut change = match Change::bare(archive, &session) {
                    Err(error) if is_of_one(&error) => continue,
                    change => change?,
                };
                change.set_title(title.as_deref().unwrap_or_default());
                change.commit(Command::CatchUp { entries: 0, branch: None, left: None })?;
            }
        }
        Ok(())
    }
}

/// Returns whether no other session is concerned.
fn is_of_one(error: &SyncError) -> bool {
    error.is_damage() || error.is_of_a_file() || matches!(error, SyncError::Uncaught { .. })
}

/// Reads the title of each session, as lists show it: the last one counts.
fn read(list: &Path, format: &dyn Format) -> BTreeMap<String, Option<String>> {
    let bytes = disk::open(list, Links::Follow).and_then(|file| disk::whole(file, disk::TEXT));
    let bytes = bytes.unwrap_or_default();
    let titled = format.titled(list, &bytes).into_iter();
    titled.map(|[id, title]| (id, derive::title(&title))).collect()
}
