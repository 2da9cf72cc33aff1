//! Scans lines: computes everything about a line that does not depend on its session. One thread reads ahead of the thread that
//! imports.
//!
//! ```text
//! reader      file 4 ▸ chunk chunk     file 5 ▸ chunk ...      up to ROOM chunks ahead
//! importer    file 3 ▸ one chunk after the other
//! ```
//!
//! Invariant: the result never depends on the reader thread. Files and lines come in their order with or without it.

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

/// How many bytes of lines to hand over at a time.
const CHUNK: usize = 256 << 10;
/// How many chunks to read ahead.
const ROOM: usize = 16;
/// The longest line to read ahead. Longer lines are read by the importer, one at a time.
const LONG: usize = 1 << 20;

/// A line and everything about it that does not depend on its session.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says one thing of a line, and any two may hold"
)]
pub(crate) struct Scanned {
    pub(crate) separator: Cow<'static, [u8]>,
    pub(crate) line: NewLine,
    pub(crate) envelope: Envelope,
    /// True if it is a JSON object.
    pub(crate) is_object: bool,
    /// True if the line has a name of its own.
    pub(crate) is_named: bool,
    /// True if the format reads the name exactly as it is spelt in the line.
    pub(crate) is_spelt: bool,
    /// True if it starts on the same physical line as the line before it.
    pub(crate) is_glued: bool,
    /// Its physical line number, counted from where reading began.
    pub(crate) number: u64,
}

impl Scanned {
    /// Scans a line on this physical line.
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

    /// Returns its size in memory. For a short line, most of that is overhead.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.separator.len() + self.line.bytes().len()
    }
}

/// Lines read ahead, or how reading ahead ended.
enum Step {
    Lines(Vec<Scanned>),
    /// The end of the file: the bytes after the last line.
    Tail(Tail),
    /// The importer must read the rest from here.
    Rest(Tail),
    Failed(Why),
}

/// Files that a thread reads ahead, in import order.
pub(crate) struct Ahead {
    /// The index of each file not asked for yet.
    numbers: RefCell<BTreeMap<PathBuf, usize>>,
    steps: Receiver<(usize, Step)>,
    /// A step of a later file than the one asked for last.
    later: Cell<Option<(usize, Step)>>,
}

impl Ahead {
    /// Starts reading these files, each from its beginning, until the returned value is dropped.
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
        // If no thread can be started, the importer reads each file itself.
        let _ = thread::Builder::new().spawn_scoped(scope, work);
        Self { numbers: RefCell::new(numbers), steps, later: Cell::default() }
    }

    /// Returns the index of a file, the first time it is asked for.
    pub(crate) fn number(&self, path: &Path) -> Option<usize> {
        self.numbers.borrow_mut().remove(path)
    }

    /// Returns the next step of a file, if it was read ahead. Drops the steps of earlier files.
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

/// Reads a file ahead until `put` returns nothing.
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

/// A file scanned by the thread that uses it.
struct Scan {
    reader: Reader<Box<dyn Read>>,
    format: &'static dyn Format,
}

impl Scan {
    fn new(stream: Box<dyn Read>, tail: Tail, format: &'static dyn Format, max: usize) -> Self {
        Self { reader: Reader::resume(stream, tail).limited(max), format }
    }

    /// Returns the next lines; none at the end.
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
                // The reader will return this error again.
                Err(_) if !lines.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        // A long line is in the chunk now; free the reader's copy.
        self.reader.give_back();
        Ok(lines)
    }
}

/// The lines of a file, from the reader thread or from the file itself.
pub(crate) struct Lines<'a> {
    path: &'a Path,
    format: &'static dyn Format,
    ahead: Option<(&'a Ahead, usize)>,
    here: Option<Scan>,
    tail: Option<Tail>,
}

impl<'a> Lines<'a> {
    /// Takes the lines from the reader thread.
    pub(crate) fn ahead(
        path: &'a Path,
        ahead: &'a Ahead,
        file: usize,
        format: &'static dyn Format,
    ) -> Self {
        Self { path, format, ahead: Some((ahead, file)), here: None, tail: None }
    }

    /// Reads the lines that follow a tail.
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

    /// Returns the next lines; none at the end.
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

    /// Returns the tail after the last line. Call it when there are no more lines.
    pub(crate) fn into_tail(self) -> Tail {
        let here = self.here.map(|scan| scan.reader.into_tail());
        self.tail.or(here).unwrap_or_default()
    }
}
