//! Scanning: a line as all that can be known of it without its session, found by a thread that reads ahead of the one that
//! imports lines.
//!
//! ```text
//! reader      file 4 ▸ chunk chunk     file 5 ▸ chunk ...      as many chunks as the channel has room for
//! importer    file 3 ▸ one chunk after the other
//! ```
//!
//! Invariant: the result is the same without the reader: files in their order, lines in theirs.

use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
    cmp::Ordering,
    collections::BTreeMap,
    io::Read,
    path::{Path, PathBuf},
    sync::mpsc::{self, Receiver},
    thread::{self, Scope},
};

use crate::{
    archive::Why,
    files::sources,
    model::line::{LINE_MAX, Line},
    store::NewLine,
    wire::{
        Envelope, Format,
        jsonl::{ReadError, Reader, Tail},
    },
};

/// How many bytes lines take up that are handed over at a time.
const CHUNK: usize = 256 << 10;
/// How many chunks may be read ahead.
const ROOM: usize = 16;
/// The longest line that is read ahead: longer ones are read where they are imported, one at a time.
const LONG: usize = 1 << 20;

/// A line and all that can be known of it without its session.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says one thing of a line, and any two may hold"
)]
pub(crate) struct Scanned {
    pub(crate) separator: Cow<'static, [u8]>,
    pub(crate) line: NewLine,
    pub(crate) envelope: Envelope,
    /// Whether it is an object.
    pub(crate) is_object: bool,
    /// Whether it carries a name of its own.
    pub(crate) is_named: bool,
    /// Whether that name, as it is spelt, is the one that the format reads.
    pub(crate) is_spelt: bool,
    /// Whether it began on the physical line of the one before it.
    pub(crate) is_glued: bool,
    /// The physical line, from where reading began.
    pub(crate) number: u64,
}

impl Scanned {
    /// Scans a line that is on this physical line.
    pub(crate) fn of(line: &Line<'_>, number: u64, format: &dyn Format) -> Self {
        let record = line.record();
        let envelope = record.map_or_else(Envelope::opaque, |record| format.envelope(record));
        let name = line.shape.as_ref().and_then(|shape| shape.name.clone());
        let spelt = name.clone().and_then(|name| line.bytes.get(name));
        let is_spelt = spelt.is_some() && spelt == envelope.name.as_deref().map(str::as_bytes);
        let texts = line.shape.as_ref().map(|shape| shape.texts.clone()).unwrap_or_default();
        Self {
            separator: match line.separator {
                b"" => Cow::Borrowed(b""),
                b"\n" => Cow::Borrowed(b"\n"),
                other => Cow::Owned(other.to_vec()),
            },
            line: NewLine::new(line.bytes.to_vec(), texts),
            envelope,
            is_object: line.shape.is_some(),
            is_named: name.is_some(),
            is_spelt,
            is_glued: line.glued && format.traits().line.joins(line.separator),
            number,
        }
    }

    /// Returns how many bytes it takes up, of which a short line has the least part.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.separator.len() + self.line.bytes().len()
    }
}

/// Lines that were read ahead, or how reading ahead ended.
enum Step {
    Lines(Vec<Scanned>),
    /// These bytes come after the last line.
    Tail(Tail),
    /// The file is to be read on from here.
    Rest(Tail),
    Failed(Why),
}

/// Files that a thread reads ahead, in the order in which they are imported.
pub(crate) struct Ahead {
    /// The number of each file that was not asked for yet.
    numbers: RefCell<BTreeMap<PathBuf, usize>>,
    steps: Receiver<(usize, Step)>,
    /// A step of a later file than the one that was asked for last.
    later: Cell<Option<(usize, Step)>>,
}

impl Ahead {
    /// Begins to read files, each of which begins a generation, until the answer is dropped.
    pub(crate) fn begin<'s>(
        scope: &'s Scope<'s, '_>,
        files: Vec<(PathBuf, &'static dyn Format)>,
    ) -> Self {
        let (send, steps) = mpsc::sync_channel(ROOM);
        let numbers = files.iter().enumerate().map(|(n, (path, _))| (path.clone(), n)).collect();
        let work = move || {
            files.iter().enumerate().try_for_each(|(n, (path, format))| {
                read(path, *format, &mut |step| send.send((n, step)).ok())
            })
        };
        // Where no thread is to be had, each file is read where it is imported.
        let _ = thread::Builder::new().spawn_scoped(scope, work);
        Self { numbers: RefCell::new(numbers), steps, later: Cell::default() }
    }

    /// Returns the number of a file, the first time that it is asked for.
    pub(crate) fn number(&self, path: &Path) -> Option<usize> {
        self.numbers.borrow_mut().remove(path)
    }

    /// Returns the next step of a file, if it was read ahead; those of the files before it are dropped.
    fn take(&self, n: usize) -> Option<Step> {
        loop {
            let (file, step) = self.later.take().or_else(|| self.steps.recv().ok())?;
            match file.cmp(&n) {
                Ordering::Less => {}
                Ordering::Equal => return Some(step),
                Ordering::Greater => {
                    self.later.set(Some((file, step)));
                    return None;
                }
            }
        }
    }
}

/// Reads a file ahead, as long as its steps are wanted.
fn read(
    path: &Path,
    format: &'static dyn Format,
    put: &mut dyn FnMut(Step) -> Option<()>,
) -> Option<()> {
    let stream = match sources::open(path, 0) {
        Ok(stream) => stream,
        Err(error) => return put(Step::Failed(error.into())),
    };
    let mut scan = Scan::new(stream, Tail::default(), format, LONG);
    loop {
        match scan.chunk() {
            Ok(lines) if lines.is_empty() => return put(Step::Tail(scan.reader.into_tail())),
            Ok(lines) => put(Step::Lines(lines))?,
            Err(ReadError::TooLong { .. }) => break,
            Err(error) => return put(Step::Failed(error.into())),
        }
    }
    let Tail { offset, number, .. } = scan.reader.into_tail();
    put(Step::Rest(Tail { bytes: Vec::new(), offset, number }))
}

/// A file that is scanned where it is read.
struct Scan {
    reader: Reader<Box<dyn Read>>,
    format: &'static dyn Format,
}

impl Scan {
    fn new(stream: Box<dyn Read>, tail: Tail, format: &'static dyn Format, max: usize) -> Self {
        Self { reader: Reader::resume(stream, tail).limited(max), format }
    }

    /// Returns the next lines, none at the end.
    fn chunk(&mut self) -> Result<Vec<Scanned>, ReadError> {
        let mut lines = Vec::new();
        let mut bytes = 0;
        while bytes < CHUNK {
            match self.reader.next_line() {
                Ok(None) => break,
                Ok(Some(located)) => {
                    let mut scanned = Scanned::of(&located.line, located.number, self.format);
                    scanned.line.hash_texts();
                    bytes += scanned.bytes();
                    lines.push(scanned);
                }
                // The reader will return the error again.
                Err(_) if !lines.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        // A long line is in the chunk now, and need not lie in the reader too.
        self.reader.give_back();
        Ok(lines)
    }
}

/// The lines of a file, wherever they are read.
pub(crate) struct Lines<'a> {
    path: &'a Path,
    format: &'static dyn Format,
    ahead: Option<(&'a Ahead, usize)>,
    here: Option<Scan>,
    tail: Option<Tail>,
}

impl<'a> Lines<'a> {
    /// Reads the lines of a file that is read ahead.
    pub(crate) fn ahead(
        path: &'a Path,
        ahead: &'a Ahead,
        file: usize,
        format: &'static dyn Format,
    ) -> Self {
        Self { path, format, ahead: Some((ahead, file)), here: None, tail: None }
    }

    /// Reads the lines of a file behind a tail.
    pub(crate) fn behind(
        path: &'a Path,
        tail: Tail,
        format: &'static dyn Format,
    ) -> Result<Self, Why> {
        let mut lines = Self { path, format, ahead: None, here: None, tail: None };
        lines.open(tail)?;
        Ok(lines)
    }

    fn open(&mut self, tail: Tail) -> Result<(), Why> {
        let stream = sources::open(self.path, tail.offset + tail.bytes.len() as u64)?;
        self.here = Some(Scan::new(stream, tail, self.format, LINE_MAX));
        Ok(())
    }

    /// Returns the next lines, none at the end.
    pub(crate) fn next(&mut self) -> Result<Vec<Scanned>, Why> {
        if let Some((ahead, file)) = self.ahead {
            match ahead.take(file) {
                Some(Step::Lines(lines)) => return Ok(lines),
                Some(Step::Tail(tail)) => self.tail = Some(tail),
                Some(Step::Rest(tail)) => self.open(tail)?,
                Some(Step::Failed(why)) => return Err(why),
                None => self.open(Tail::default())?,
            }
            self.ahead = None;
        }
        match &mut self.here {
            Some(scan) => Ok(scan.chunk()?),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the tail behind the last line, once there are no more lines.
    pub(crate) fn into_tail(self) -> Tail {
        let here = self.here.map(|scan| scan.reader.into_tail());
        self.tail.or(here).unwrap_or_default()
    }
}
