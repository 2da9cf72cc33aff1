//! Finds session files on disk and identifies them by their content, before anything is imported.
//!
//! Invariants: nothing here writes, and an unreadable file never ends the search.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, Metadata},
    io::{self, Read, Seek, SeekFrom, Write as _},
    num::NonZero,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use memchr::memmem;

use crate::{
    archive::{
        Archive,
        skip::{MOST, Skipped, Why},
    },
    disk::{self, Links},
    json::Raw,
    live,
    model::{EntryId, LineId, SessionName},
    settings::Exclusion,
    store::Sighting,
    wire::{
        self, Format,
        jsonl::{ReadError, Reader},
        unread,
    },
};

/// How many records to examine for their format.
const ASKED: usize = 200;
/// After how many lines that are not records a file counts as containing no session.
const OPAQUE: usize = 2000;
/// How many bytes to read of a file that does not begin like a record, and how many bytes of records to examine.
const LOOKED: u64 = 64 << 20;
/// The first bytes of a compressed file.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The largest compressed file whose compressed bytes are stored too.
pub(crate) const CONTAINER: u64 = 512 << 20;
/// Limits on the content of a compressed file: DECODED bytes at most, and RATIO times the compressed length at most, but ANY
/// bytes are always allowed. A record repeated without end is not a session and would fill the memory.
const DECODED: u64 = 16 << 30;
const RATIO: u64 = 256;
const ANY: u64 = 64 << 20;

/// A session file found on disk.
#[derive(Clone)]
pub struct Source {
    /// Absolute path, with links resolved.
    pub path: PathBuf,
    /// Length on disk.
    pub bytes: u64,
    /// The session in this file.
    pub session: SessionName,
    /// The format of its records.
    pub(crate) format: &'static dyn Format,
    pub(crate) sighting: Sighting,
    pub(crate) known: Known,
}

/// How much of a session file the archive has, for a file whose sighting has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// No session has a file with this path.
    Nothing,
    /// A session has a file with this path, which had less content, or other content.
    Part,
    /// It is the live file of a session, which has its beginning.
    Grown,
    /// A session has all of its content, unless that session is damaged.
    All,
    /// It is the live file of a session, which has all of it. Only its times changed.
    Same,
}

/// Finds the session files at and below these paths; reports the files and folders that are left out.
pub fn sources(paths: &[PathBuf], report: &mut dyn FnMut(Skipped)) -> Vec<Source> {
    let mut met = Vec::new();
    walk(paths, None, &mut |file| met.push(file));
    let met = with_keepers(met);
    let mut identities = identify_all(&met.iter().filter_map(Met::path).collect::<Vec<_>>());
    let mut found = Vec::new();
    for met in met {
        match met {
            Met::Skipped(skipped) => report(skipped),
            Met::File { path, meta, asked } => match identities.next() {
                Some(Ok((format, session))) => {
                    found.push(Source::of(path, &meta, format, session));
                }
                Some(Err(why)) => report(Skipped { path, why, asked }),
                None => {}
            },
        }
    }
    found
}

/// Returns the file in a session's folder that its agent reads.
pub fn file_of_session(folder: &Path) -> Option<PathBuf> {
    let names = wire::FORMATS.into_iter().filter_map(|format| format.traits().live_name);
    names.map(|name| folder.join(name)).find(|file| file.is_file())
}

/// Returns the files of one session that an agent keeps by rotating, in order: the older states first, the newest last. For any
/// other file, returns only that file.
pub(crate) fn rotations_of(path: &Path, format: &dyn Format) -> Vec<PathBuf> {
    let of = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        let number = format.rotation(name);
        (number.is_some() || format.traits().live_name == Some(name))
            .then_some((number.is_none(), number))
    };
    let here = |folder: &'_ Path| {
        if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_owned() }
    };
    let folder = path.parent().filter(|_| of(path).is_some()).map(here);
    let mut all = folder.and_then(|folder| children(&folder).ok()).unwrap_or_default();
    // A link is not a state of this session. An empty file only reserves the name of a file to be set aside.
    let is_state = |one: &Path| {
        let is_live = of(one).is_some_and(|(is_live, _)| is_live);
        one.symlink_metadata().is_ok_and(|meta| meta.is_file() && (is_live || meta.len() > 0))
    };
    all.retain(|one| of(one).is_some() && one.is_file() && (one == path || is_state(one)));
    all.sort_by_key(|path| of(path));
    if all.is_empty() { vec![path.to_owned()] } else { all }
}

impl Source {
    pub(crate) fn of(
        path: PathBuf,
        meta: &Metadata,
        format: &'static dyn Format,
        session: SessionName,
    ) -> Self {
        let sighting = sighting(&path, meta);
        Self { path, bytes: meta.len(), session, format, sighting, known: Known::Part }
    }

    /// Returns the number that the agent gave to a rotated file.
    pub(crate) fn rotation(&self) -> Option<u64> {
        rotation(&self.path, self.format)
    }
}

/// Returns the number that the agent gave to a rotated file.
pub(crate) fn rotation(path: &Path, format: &dyn Format) -> Option<u64> {
    format.rotation(path.file_name()?.to_str()?)
}

/// Returns true if an agent or a command set the file aside, so that no agent reads it.
pub(crate) fn is_set_aside(path: &Path, format: &dyn Format) -> bool {
    rotation(path, format).is_some() || live::is_aside(path)
}

/// Returns the sighting of a file, with which a later change of the file is detected.
pub(crate) fn sighting(path: &Path, meta: &Metadata) -> Sighting {
    let nanos =
        |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
    Sighting {
        path: path.as_os_str().as_bytes().to_vec(),
        inode: meta.ino(),
        length: meta.len(),
        modified: nanos(meta.mtime(), meta.mtime_nsec()),
        changed: nanos(meta.ctime(), meta.ctime_nsec()),
    }
}

/// A file or folder found by a walk.
pub(crate) enum Met {
    /// A file, with its absolute path.
    File { path: PathBuf, meta: Metadata, asked: bool },
    /// A file or folder that is skipped.
    Skipped(Skipped),
}

impl Met {
    /// Returns the file at this real path, if it exists and no command set it aside.
    pub(crate) fn there(path: PathBuf) -> Option<Self> {
        let meta = fs::symlink_metadata(&path).ok()?;
        let is_met = meta.is_file() && !live::is_aside(&path);
        is_met.then_some(Self::File { path, meta, asked: false })
    }

    /// Returns the path, if it is a file.
    pub(crate) fn path(&self) -> Option<&Path> {
        if let Self::File { path, .. } = self { Some(path) } else { None }
    }
}

/// Walks files and folders in name order and visits nothing twice. Follows links that the user named, but not links found in
/// folders: if such a target is below a named path it is visited there, otherwise it is skipped.
pub(crate) fn walk(paths: &[PathBuf], archive: Option<&Archive>, each: &mut dyn FnMut(Met)) {
    let mut met: BTreeSet<(u64, u64)> = BTreeSet::new();
    let mut ahead: Vec<(PathBuf, bool)> =
        paths.iter().rev().map(|path| (path.clone(), true)).collect();
    while let Some((path, asked)) = ahead.pop() {
        let mut skip = |path: &Path, why: Why| {
            each(Met::Skipped(Skipped { path: path.to_owned(), why, asked }));
        };
        let found = if asked { fs::canonicalize(&path) } else { Ok(path.clone()) };
        let found = found.and_then(|real| fs::symlink_metadata(&real).map(|meta| (real, meta)));
        let (real, meta) = match found {
            Ok(found) => found,
            Err(error) => {
                skip(&path, error.into());
                continue;
            }
        };
        if meta.is_symlink() {
            skip(&path, Why::Link);
        } else if met.len() == MOST {
            skip(&path, Why::TooMany);
            return;
        } else if !met.insert((meta.dev(), meta.ino())) {
            skip(&path, Why::Twice);
        } else if meta.is_file() && !asked && live::is_aside(&real) {
            skip(&path, Why::Aside);
        } else if meta.is_file() {
            each(Met::File { path: real, meta, asked });
        } else if !meta.is_dir() {
            skip(&path, Why::Special);
        } else if archive.and_then(Archive::root).is_some_and(|root| root == real) {
            skip(&path, Why::Store);
        } else if disk::is_made_up_folder(&real) {
            skip(&path, Why::MadeUp);
        } else {
            match children(&real) {
                Ok(children) => ahead.extend(children.into_iter().rev().map(|path| (path, false))),
                Err(error) => skip(&path, error.into()),
            }
        }
    }
}

/// Replaces sidecars by the session file they belong to, so that each session file is visited once.
pub(crate) fn with_keepers(met: Vec<Met>) -> Vec<Met> {
    let mut all = Vec::with_capacity(met.len());
    // True if one of its sidecars was named by the user.
    let mut keepers: BTreeMap<PathBuf, bool> = BTreeMap::new();
    for met in met {
        match met.path().and_then(keeper) {
            // Shared by the folder's sessions: each of them reads it.
            Some(keeper) if keeper.is_dir() => {}
            Some(keeper) => {
                let is_asked = matches!(met, Met::File { asked: true, .. });
                *keepers.entry(keeper).or_default() |= is_asked;
            }
            None => all.push(met),
        }
    }
    for path in all.iter().filter_map(Met::path) {
        keepers.remove(path);
    }
    for (path, is_asked) in keepers {
        if let Some(Met::File { path, meta, .. }) = Met::there(path) {
            all.push(Met::File { path, meta, asked: is_asked });
        }
    }
    all
}

/// Returns the existing session file, or folder of sessions, that another file is kept next to.
fn keeper(path: &Path) -> Option<PathBuf> {
    let mut keepers = wire::FORMATS.into_iter().filter_map(|format| format.keeper(path));
    keepers.find(|keeper| keeper.is_dir() || disk::look(keeper).unwrap_or(false))
}

/// Returns the paths in a folder, sorted by name.
pub(crate) fn children(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut children = Vec::new();
    for child in fs::read_dir(folder)? {
        children.push(child?.path());
    }
    children.sort();
    Ok(children)
}

/// Returns the format of a file, detected by its content, and the name of its session.
pub(crate) fn identify(path: &Path) -> Identity {
    let mut begin = Vec::new();
    let mut stream = open(path, 0)?;
    match stream.by_ref().take(1 << 12).read_to_end(&mut begin) {
        Err(error) if begin.is_empty() || is_of_system(&error) => return Err(error.into()),
        _ => {}
    }
    if unread::is_database(&begin) {
        let mentions = |needle: &[u8]| mentions(path, needle, LOOKED).unwrap_or(false);
        let agent = unread::agent_of_database(path, &mentions);
        return Err(agent.map_or(Why::NoFormat, Why::Unread));
    }
    let limit = if begin.trim_ascii_start().starts_with(b"{") { u64::MAX } else { LOOKED };
    let mut reader = Reader::new(io::Cursor::new(&begin).chain(stream).take(limit));
    let (mut first, mut opaque, mut held, mut lines) = (None, 0, 0, Vec::<Vec<u8>>::new());
    while lines.len() < ASKED && opaque < OPAQUE && held < LOOKED {
        let next = reader.next_line();
        // If the file cannot be decoded further, decide by the part before that.
        let next = next.or_else(|error| match &error {
            ReadError::Io { source, .. } if is_of_system(source) => Err(error),
            _ if lines.is_empty() => Err(error),
            _ => Ok(None),
        });
        let Some(located) = next? else { break };
        first.get_or_insert_with(|| EntryId::of(None, LineId::of(located.line.bytes)));
        if located.line.shape.is_some() {
            held += located.line.bytes.len() as u64;
            lines.push(located.line.bytes.to_vec());
        } else {
            opaque += 1;
        }
    }
    let records: Vec<Raw<'_>> = lines.iter().map(|line| Raw::scanned(line)).collect();
    // Gathered once: otherwise each question about a field would scan the whole record again.
    let fields: Vec<_> = records.iter().map(|record| record.gathered()).collect();
    if let Some(agent) = unread::agent_of_most(&fields) {
        return Err(Why::Unread(agent));
    }
    let keeper = || wire::FORMATS.into_iter().find(|format| format.accompanies(path));
    let beside = |keeper: &dyn Format| Why::Beside(keeper.name());
    let format = wire::detect(&fields).ok_or_else(|| {
        let agent = unread::agent_of_rest(&fields, path, &begin).map(Why::Unread);
        agent.unwrap_or_else(|| keeper().map_or(Why::NoFormat, beside))
    })?;
    // A file that cannot be decoded to its end is reported when it is imported.
    let failed = Cell::new(None);
    let mentions = |needle: &[u8]| {
        mentions(path, needle, u64::MAX).unwrap_or_else(|error| {
            failed.set(Some(error).filter(is_of_system));
            false
        })
    };
    let id = format.session_of(path, &records, &mentions).filter(|id| !id.is_empty());
    if let Some(error) = failed.take() {
        return Err(error.into());
    }
    let id = id.or_else(|| first.map(|first| first.to_string())).unwrap_or_default();
    Ok((format, SessionName { format: format.name().to_owned(), id }))
}

/// Returns true if the error comes from the system rather than from the bytes read. Then nothing is known about the content.
fn is_of_system(error: &io::Error) -> bool {
    error.raw_os_error().is_some()
}

/// The format of a file and the name of its session, or why it has none.
pub(crate) type Identity = Result<(&'static dyn Format, SessionName), Why>;

/// Returns the folder that an agent's list names for the session of a file; nothing, if the list cannot be read.
pub(crate) fn listed_folder(format: &dyn Format, file: &Path) -> Option<String> {
    let list = disk::read(&format.index(file)?, disk::TEXT).ok()?;
    format.listed_folder(file, &list)
}

/// Returns the working folder of a file's session. Reads the file only up to the record that names it.
fn working_folder(format: &dyn Format, file: &Path) -> Option<PathBuf> {
    if format.index(file).is_some() {
        return listed_folder(format, file).map(PathBuf::from);
    }
    let mut reader = Reader::new(open(file, 0).ok()?);
    while let Some(located) = reader.next_line().ok()? {
        let record = Raw::object(located.line.bytes);
        if let Some(folder) = record.and_then(|record| format.folder(record)) {
            return Some(folder.into());
        }
    }
    None
}

impl Archive {
    /// Returns the setting that excludes the session of a file. If folders are excluded and neither the file nor the store says in
    /// which one the session works, it is excluded too: an agent may write what the user said before it writes where.
    pub(crate) fn exclusion(
        &self,
        session: &SessionName,
        format: &dyn Format,
        file: Option<&Path>,
    ) -> Option<Exclusion> {
        let stored = || {
            let session = self.session(session).ok()??;
            self.store().card(session.key).ok()?.folder.map(PathBuf::from)
        };
        let find = |folder: Option<&Path>| self.exclude.find(&session.format, &session.id, folder);
        find(None).or_else(|| {
            if self.exclude.folders.is_empty() {
                return None;
            }
            let folder = file.and_then(|file| working_folder(format, file)).or_else(stored);
            let Some(folder) = folder else { return Some(Exclusion::Unplaced) };
            // A link may lead into an excluded folder, or be the name under which it is excluded.
            find(Some(&folder)).or_else(|| find(Some(&live::real(&folder).ok()?)))
        })
    }
}

/// Identifies files on several threads; the results are in the order of `paths`.
pub(crate) fn identify_all(paths: &[&Path]) -> std::vec::IntoIter<Identity> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = paths.get(n) else { break found };
            found.push((n, identify(path)));
        }
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let found = thread::scope(|scope| {
        let begin = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let beside: Vec<_> = (1..cores.min(paths.len())).filter_map(begin).collect();
        let mut found = work();
        found.extend(beside.into_iter().flat_map(|thread| thread.join().unwrap_or_default()));
        found
    });
    // A file that a thread failed to identify is identified here, so that no file gets the result of another.
    let mut found: BTreeMap<usize, Identity> = found.into_iter().collect();
    let all = paths.iter().enumerate();
    let all = all.map(|(n, path)| found.remove(&n).unwrap_or_else(|| identify(path)));
    all.collect::<Vec<Identity>>().into_iter()
}

/// Returns true if bytes occur in the first `limit` bytes of a file.
fn mentions(path: &Path, needle: &[u8], limit: u64) -> io::Result<bool> {
    let finder = memmem::Finder::new(needle);
    let mut stream = open(path, 0)?.take(limit);
    let mut window = Vec::new();
    loop {
        let read = stream.by_ref().take(1 << 20).read_to_end(&mut window)?;
        if finder.find(&window).is_some() {
            return Ok(true);
        }
        if read == 0 {
            return Ok(false);
        }
        window.drain(..window.len().saturating_sub(needle.len()));
    }
}

/// Opens a file at an offset of its content. A compressed file is decoded.
pub(crate) fn open(path: &Path, from: u64) -> io::Result<Box<dyn Read>> {
    let mut file = disk::open(path, Links::Follow)?;
    if !is_compressed(&mut file)? {
        file.seek(SeekFrom::Start(from))?;
        return Ok(Box::new(file));
    }
    file.rewind()?;
    let length = file.metadata()?.len();
    let mut stream = Bounded::new(zstd::Decoder::new(file)?, length);
    io::copy(&mut stream.by_ref().take(from), &mut io::sink())?;
    Ok(Box::new(stream))
}

/// Returns the compressed bytes of a file, or nothing if it is not compressed; `Err` with its length if it is too long.
pub(crate) fn container(path: &Path) -> io::Result<Option<Result<Vec<u8>, u64>>> {
    let mut file = disk::open(path, Links::Follow)?;
    let length = file.metadata()?.len();
    if !is_compressed(&mut file)? {
        return Ok(None);
    }
    if length > CONTAINER {
        return Ok(Some(Err(length)));
    }
    file.rewind()?;
    Ok(Some(Ok(disk::whole(file, CONTAINER)?)))
}

/// Returns a compressed file with the lines that `cover` replaces by bytes of the same length, or nothing if it replaces none. If
/// the file cannot be decoded to its end, it ends there: nobody reads the rest.
pub(crate) fn cover_packed(
    packed: &[u8],
    cover: &mut dyn FnMut(&[u8]) -> Option<Vec<u8>>,
) -> io::Result<Option<Vec<u8>>> {
    let mut is_covered = false;
    each_line(packed, |_, line| {
        is_covered = cover(line).is_some();
        Ok(!is_covered)
    })?;
    if !is_covered {
        return Ok(None);
    }
    let mut encoder = zstd::Encoder::new(Vec::new(), 0)?;
    each_line(packed, |separator, line| {
        encoder.write_all(separator)?;
        encoder.write_all(cover(line).as_deref().unwrap_or(line))?;
        Ok(true)
    })?;
    encoder.finish().map(Some)
}

/// Passes each line of a compressed file to `each`, with the separator before it, and finally the bytes after the last line.
/// Stops when `each` returns false.
fn each_line(
    packed: &[u8],
    mut each: impl FnMut(&[u8], &[u8]) -> io::Result<bool>,
) -> io::Result<()> {
    let stream = Bounded::new(zstd::Decoder::new(packed)?, packed.len() as u64);
    let mut reader = Reader::new(UpToError(stream));
    while let Some(located) = reader.next_line().map_err(io::Error::other)? {
        if !each(located.line.separator, located.line.bytes)? {
            return Ok(());
        }
    }
    each(b"", &reader.into_tail().bytes)?;
    Ok(())
}

/// Returns the length of a file's content, if known without reading it.
pub(crate) fn length(path: &Path) -> io::Result<Option<u64>> {
    let mut file = disk::open(path, Links::Follow)?;
    let length = file.metadata()?.len();
    Ok((!is_compressed(&mut file)?).then_some(length))
}

fn is_compressed(file: &mut File) -> io::Result<bool> {
    let mut begin = Vec::new();
    file.take(ZSTD.len() as u64).read_to_end(&mut begin)?;
    Ok(begin == ZSTD)
}

/// A stream that ends at the first read error.
struct UpToError<R>(R);

impl<R: Read> Read for UpToError<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(self.0.read(into).unwrap_or(0))
    }
}

/// A stream with a maximum length.
struct Bounded<R> {
    stream: R,
    left: u64,
}

impl<R> Bounded<R> {
    /// Bounds the content of a compressed file with this length.
    fn new(stream: R, length: u64) -> Self {
        Self { stream, left: length.saturating_mul(RATIO).clamp(ANY, DECODED) }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.read(into)?;
        let left = self.left.checked_sub(read as u64);
        self.left = left.ok_or_else(|| io::Error::other("it is too long when decompressed"))?;
        Ok(read)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test writes what is read then")]
mod tests {
    use super::*;

    #[test]
    fn a_compressed_file_that_holds_far_more_than_its_length_is_read_to_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rollout.jsonl.zst");
        let decoded = |length: u64| {
            let packed = zstd::encode_all(io::repeat(b' ').take(length), 0).unwrap();
            std::fs::write(&path, packed).unwrap();
            let mut read = 0;
            let mut chunk = vec![0; 1 << 16];
            let mut stream = open(&path, 0).unwrap();
            loop {
                match stream.read(&mut chunk) {
                    Ok(0) => return Ok(read),
                    Ok(n) => read += n as u64,
                    Err(_) => return Err(read),
                }
            }
        };
        assert_eq!(decoded(ANY), Ok(ANY));
        for length in [ANY + 1, 4 * ANY] {
            assert!(decoded(length).is_err_and(|read| read <= ANY), "{length}");
        }
    }
}
