//! What is new: which of the session files that are met may bring an archive anything.
//!
//! Invariant: nothing is written, and no file that the archive knows by its stamp is read.

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

/// Meets the files at and below these paths, and those of the same sessions.
pub(crate) fn meet(archive: &Archive, paths: &[PathBuf], shelved: &mut Shelved) -> Vec<Met> {
    let mut met = Vec::new();
    let named = with_states(paths, shelved);
    sources::walk(&named, Some(archive), &mut |file| met.push(file));
    sources::with_keepers(met)
}

/// The files that may bring anything new.
#[derive(Default)]
pub(crate) struct Gathered {
    /// By session.
    pub(crate) groups: Vec<Vec<Source>>,
    /// What was counted so far.
    pub(crate) summary: Summary,
    /// The lists of titles next to all files.
    pub(crate) lists: Lists,
    /// The new sightings of files in which only times changed.
    pub(crate) sightings: Vec<Sighting>,
}

/// Finds among the files that were met those that may bring anything new.
pub(crate) fn gather(
    archive: &Archive,
    met: Vec<Met>,
    report: &mut dyn FnMut(Skipped),
) -> Result<Gathered, SyncError> {
    let Gathered { mut groups, mut summary, mut lists, mut sightings } = Gathered::default();
    met.iter().filter_map(Met::path).for_each(|file| lists.add(file));
    let belongs = |met: &Met| belonging(archive, met);
    let held = met.iter().map(belongs).collect::<Result<Vec<_>, SyncError>>()?;
    // A file that goes on from no session's state is identified by its content alone, many files at a time.
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

/// The part of a met file that an archive holds.
enum Held {
    /// All of it, as it is; with its sighting, if that is new.
    Unchanged(Option<Sighting>),
    /// A session that holds a state from which the file goes on, or the file itself.
    By(Session, Known),
    /// No state from which the file goes on.
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

/// Returns the session of a file, if the file goes on from the state of it that the session holds, and how much of it that is.
fn holder(archive: &Archive, path: &Path) -> Result<Option<(Session, Known)>, SyncError> {
    for (key, name, file) in archive.store().files(&archive.place_of(path))? {
        let session = Session::from_store(key, name)?;
        let state = match archive.store().state(key) {
            // It is left out, with its reason, where it is taken in.
            Err(StoreError::Corrupt { .. }) => return Ok(Some((session, Known::All))),
            state => state?,
        };
        let states = States::of(archive, &state);
        let newest = states.newest(file);
        let verdict = newest.map(|(n, end)| judged(archive, &session, n, end, path));
        let is_live = state.live == Some(file);
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

/// Returns why a file is left out that was set aside: another store may have been in use then.
fn unheld(archive: &Archive, path: &Path) -> Result<Why, SyncError> {
    let Some(live) = live::set_aside_from(path) else { return Ok(Why::Aside) };
    let store = archive.store();
    let name = path.file_name().map(OsStr::as_bytes);
    let is_held_by = |session| match store.state(session) {
        // What it holds is not known, and verify tells of it.
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
    // It may have been set aside where the store knew another path of it.
    let known = archive.session(&session)?;
    if known.map(|known| is_held_by(known.key)).transpose()? == Some(true) {
        return Ok(Why::Aside);
    }
    let excluded = archive.exclusion(&session, format, Some(path));
    Ok(excluded.map_or(Why::Unheld, |by| Why::Excluded { session, by }))
}

/// Returns why a file is left out, given why it would be if the store did not know it.
fn emptied(archive: &Archive, path: &Path, why: Why) -> Result<Why, SyncError> {
    if !matches!(why, Why::NoFormat) {
        return Ok(why);
    }
    let held = archive.store.files(&archive.place_of(path))?;
    Ok(held.into_iter().next().map_or(why, |(_, session, _)| Why::Emptied(session)))
}

/// Returns paths with the other files of the sessions of those named: the states that an agent set aside, and the files
/// from which they go on.
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

/// Returns the files from which a file goes on, if its name says that there may be some.
fn bases(path: &Path, shelved: &mut Shelved) -> Vec<PathBuf> {
    let is_one_of_several =
        wire::FORMATS.into_iter().any(|format| siblings::name(format, path).is_some());
    let identity = is_one_of_several.then(|| sources::identify(path).ok()).flatten();
    let bases = identity.map(|(format, session)| siblings::bases(format, &session, path, shelved));
    bases.unwrap_or_default()
}

impl Summary {
    /// Counts a file that is left out. If no more files can be opened, none is left out: the import fails.
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
