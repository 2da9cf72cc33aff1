//! Finds out which of the session files found may have something new for an archive.
//!
//! Invariants: nothing is written, and a file whose sighting is unchanged is not read.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use crate::{
    archive::{Archive, Skipped, SyncError, Why},
    files::{
        Source,
        judge::Verdict,
        siblings::{self, Shelved},
        sources::{self, Known, Met},
        states::{States, judged},
    },
    intake::{sidecars, titles::Lists},
    live,
    model::SessionName,
    report::Summary,
    session::Session,
    store::{Sighting, StoreError},
    wire,
};

/// Finds the files at and below these paths, and the other files of the same sessions.
pub(crate) fn meet(archive: &Archive, paths: &[PathBuf], shelved: &mut Shelved) -> Vec<Met> {
    let mut met = Vec::new();
    let named = with_states(paths, shelved);
    sources::walk(&named, Some(archive), &mut |file| met.push(file));
    sources::with_keepers(met)
}

/// Files that may have something new.
#[derive(Default)]
pub(crate) struct Gathered {
    /// The files of each session.
    pub(crate) groups: Vec<Vec<Source>>,
    /// The counts so far.
    pub(crate) summary: Summary,
    /// The lists of titles next to all files.
    pub(crate) lists: Lists,
    /// New sightings of files whose times changed and nothing else.
    pub(crate) sightings: Vec<Sighting>,
}

/// Selects the files that may have something new.
pub(crate) fn gather(
    archive: &Archive,
    met: Vec<Met>,
    report: &mut dyn FnMut(Skipped),
) -> Result<Gathered, SyncError> {
    let Gathered { mut groups, mut summary, mut lists, mut sightings } = Gathered::default();
    met.iter().filter_map(Met::path).for_each(|file| lists.add(file));
    let belongs = |met: &Met| belonging(archive, met);
    let held = met.iter().map(belongs).collect::<Result<Vec<_>, SyncError>>()?;
    // A file that continues no stored state is identified by its content alone, several files at a time.
    let asked = met.iter().zip(&held).filter(|(_, held)| matches!(held, Held::No(_)));
    let asked: Vec<&Path> = asked.filter_map(|(met, _)| met.path()).collect();
    let mut identities = sources::identify_all(&asked);
    let mut numbers: BTreeMap<SessionName, usize> = BTreeMap::new();
    for (met, held) in met.into_iter().zip(held) {
        let (path, meta, asked) = match met {
            Met::Skipped(Skipped { path, why, asked }) => {
                let why = if matches!(why, Why::Aside) { unheld(archive, &path)? } else { why };
                let skipped = Skipped { path, why, asked };
                summary.leave_out(&skipped.path, &skipped.why)?;
                report(skipped);
                continue;
            }
            Met::File { path, meta, asked } => (path, meta, asked),
        };
        let (named, known) = match held {
            Held::Unchanged(settled) => {
                (summary.files, summary.unchanged) = (summary.files + 1, summary.unchanged + 1);
                sightings.extend(settled);
                continue;
            }
            Held::By(session, known) => (Ok((session.format, session.name)), known),
            Held::No(known) => (identities.next().unwrap_or(Err(Why::NoFormat)), known),
        };
        let named = named.and_then(|(format, session)| {
            match archive.exclusion(&session, format, Some(&path)) {
                Some(by) => Err(Why::Excluded { session, by }),
                None => Ok((format, session)),
            }
        });
        match named {
            Ok((format, session)) => {
                summary.files += 1;
                let n = *numbers.entry(session.clone()).or_insert_with(|| {
                    groups.push(Vec::new());
                    groups.len() - 1
                });
                let source = Source { known, ..Source::of(path, &meta, format, session) };
                groups.get_mut(n).into_iter().for_each(|group| group.push(source.clone()));
            }
            Err(why) => {
                let why = emptied(archive, &path, why)?;
                summary.leave_out(&path, &why)?;
                report(Skipped { path, why, asked });
            }
        }
    }
    Ok(Gathered { groups, summary, lists, sightings })
}

/// How much of a file the archive has.
enum Held {
    /// All of it; with its new sighting, if only its times changed.
    Unchanged(Option<Sighting>),
    /// A session has a state that the file continues, or the whole file.
    By(Session, Known),
    /// No session has a state that the file continues.
    No(Known),
}

fn belonging(archive: &Archive, met: &Met) -> Result<Held, SyncError> {
    let Met::File { path, meta, .. } = met else { return Ok(Held::Unchanged(None)) };
    if archive.store().files(&archive.place_of(path))?.is_empty() {
        return Ok(Held::No(Known::Nothing));
    }
    let sighting = sources::sighting(path, meta);
    let mut settled = None;
    if archive.store().sighting(&sighting.path)?.is_none_or(|last| last != sighting) {
        match holder(archive, path)? {
            Some((_, Known::Same)) => settled = Some(sighting),
            Some((session, known)) => return Ok(Held::By(session, known)),
            None => return Ok(Held::No(Known::Part)),
        }
    }
    for (key, name, _) in archive.store().files(&archive.place_of(path))? {
        let session = Session::from_store(key, name)?;
        let source = Source::of(path.clone(), meta, session.format, session.name.clone());
        if sidecars::are_changed(archive, &source)? {
            return Ok(Held::By(session, Known::All));
        }
    }
    Ok(Held::Unchanged(settled))
}

/// Returns the session whose stored state a file continues, and how much of the file that state covers.
fn holder(archive: &Archive, path: &Path) -> Result<Option<(Session, Known)>, SyncError> {
    for (key, name, file) in archive.store().files(&archive.place_of(path))? {
        let session = Session::from_store(key, name)?;
        let opened = match archive.at(&session) {
            // The import will skip it and report the reason.
            Err(StoreError::Corrupt { .. }) => return Ok(Some((session, Known::All))),
            opened => opened?,
        };
        let states = States::of(archive, &opened.state);
        let newest = states.newest(file);
        let verdict = newest.map(|(n, end)| judged(&opened, n, end, path));
        let is_live = opened.state.live == Some(file);
        let known = match verdict {
            Some(Ok(Verdict::Same)) if is_live => Known::Same,
            Some(Ok(Verdict::Grown)) if is_live => Known::Grown,
            Some(Ok(Verdict::Same)) => Known::All,
            Some(Ok(Verdict::Grown)) => Known::Part,
            _ => continue,
        };
        return Ok(Some((session, known)));
    }
    Ok(None)
}

/// Returns why a set-aside file is skipped. Another store may have been in use when it was set aside.
fn unheld(archive: &Archive, path: &Path) -> Result<Why, SyncError> {
    let Some(live) = live::set_aside_from(path) else { return Ok(Why::Aside) };
    let store = archive.store();
    let name = path.file_name().map(OsStr::as_bytes);
    let is_held_by = |session| match store.state(session) {
        // What a damaged session has is unknown; `verify` reports it.
        Err(StoreError::Corrupt { .. }) => Ok(true),
        state => Ok::<_, SyncError>(
            state?.rotations.iter().any(|(_, rotation)| Some(&*rotation.aside) == name),
        ),
    };
    let mut is_held = !store.files(&archive.place_of(path))?.is_empty();
    for (session, ..) in store.files(&archive.place_of(&live))? {
        is_held = is_held || is_held_by(session)?;
    }
    if is_held {
        return Ok(Why::Aside);
    }
    let (format, session) = match sources::identify(path) {
        Ok(found) => found,
        Err(why) => return Ok(why),
    };
    // It may have been set aside when the store knew the live file under another path.
    let known = archive.session(&session)?;
    if known.map(|known| is_held_by(known.key)).transpose()? == Some(true) {
        return Ok(Why::Aside);
    }
    let excluded = archive.exclusion(&session, format, Some(path));
    Ok(excluded.map_or(Why::Unheld, |by| Why::Excluded { session, by }))
}

/// Returns why a file is skipped: if it has no format but the archive has a session from it, it was emptied.
fn emptied(archive: &Archive, path: &Path, why: Why) -> Result<Why, SyncError> {
    if !matches!(why, Why::NoFormat) {
        return Ok(why);
    }
    let held = archive.store.files(&archive.place_of(path))?;
    Ok(held.into_iter().next().map_or(why, |(_, session, _)| Why::Emptied(session)))
}

/// Adds the other files of the sessions of these paths: states that an agent rotated, and the files they continue from.
pub(crate) fn with_states(paths: &[PathBuf], shelved: &mut Shelved) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut met = BTreeSet::new();
    for path in paths {
        if !path.is_file() {
            all.push(path.clone());
            continue;
        }
        let mut states = bases(path, shelved);
        let rotated =
            wire::FORMATS.into_iter().filter(|format| format.traits().live_name.is_some());
        let rotated = rotated.map(|format| sources::rotations_of(path, format));
        let rotated = rotated.into_iter().find(|states| states.len() > 1);
        states.extend(rotated.unwrap_or_else(|| vec![path.clone()]));
        all.extend(states.into_iter().filter(|state| met.insert(state.clone())));
    }
    all
}

/// Returns the files that a file continues from, if its agent keeps a session in several files.
fn bases(path: &Path, shelved: &mut Shelved) -> Vec<PathBuf> {
    let is_one_of_several =
        wire::FORMATS.into_iter().any(|format| siblings::name(format, path).is_some());
    let identity = is_one_of_several.then(|| sources::identify(path).ok()).flatten();
    let bases = identity.map(|(format, session)| siblings::bases(format, &session, path, shelved));
    bases.unwrap_or_default()
}

impl Summary {
    /// Counts a skipped file. Fails the import if the process has run out of file descriptors.
    pub(crate) fn leave_out(&mut self, path: &Path, why: &Why) -> Result<(), SyncError> {
        if let Some(code) = why.os_error()
            && [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error).contains(&code)
        {
            return Err(SyncError::at(path)(io::Error::from_raw_os_error(code)));
        }
        self.skipped += 1;
        *self.left_out.entry(why.as_str()).or_default() += 1;
        Ok(())
    }
}
