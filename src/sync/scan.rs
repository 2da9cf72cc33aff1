//! Scanning: a line as all that can be known of it without its session, found by threads that read ahead of the one that
//! takes lines in.
//!
//! ```text
//! threads    file 4 ▸ chunk chunk     file 5 ▸ chunk ...      no more bytes than there is room for
//! taker      file 3 ▸ one chunk after the other
//! ```
//!
//! Invariant: the result does not depend on the number of threads: files in their order, lines in theirs.
//! Invariant: the file that is waited for is always read on, so that nobody waits for ever.

use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
    io::Read,
    path::{Path, PathBuf},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use crate::{
    model::line::{LINE_MAX, Line},
    store::NewLine,
    sync::{Why, sources},
    wire::{
        Envelope, Format,
        jsonl::{ReadError, Reader, Tail},
    },
};

/// How many bytes lines take up that are handed over at a time.
const CHUNK: usize = 256 << 10;
/// How many bytes lines may take up that lie ahead, in all files together.
const ROOM: usize = 12 << 20;
/// The longest line that is read ahead: longer ones are read where they are taken in, one at a time.
const LONG: usize = 4 << 20;

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

/// Lines that were read ahead, or how a file goes on.
enum Step {
    Lines(Vec<Scanned>, usize),
    End(End),
}

impl Step {
    fn bytes(&self) -> usize {
        if let Self::Lines(_, bytes) = self { *bytes } else { 0 }
    }
}

/// How reading ahead ended.
enum End {
    /// These bytes come after the last line.
    Tail(Tail),
    /// It is to be read on from here.
    Rest(Tail),
    Failed(Why),
}

/// Files that are read ahead, in the order in which they are taken in.
pub(crate) struct Ahead {
    files: Vec<(PathBuf, &'static dyn Format)>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The next file to be read.
    next: usize,
    /// The file that is taken in.
    wanted: usize,
    /// The steps that lie ahead, for each file.
    steps: Vec<VecDeque<Step>>,
    /// How many bytes lie ahead in all.
    bytes: usize,
    /// Whether nobody takes any more.
    is_over: bool,
}

impl Ahead {
    /// Prepares to read files ahead, each of which begins a generation.
    pub(crate) fn new(files: Vec<(PathBuf, &'static dyn Format)>) -> Self {
        let steps = files.iter().map(|_| VecDeque::new()).collect();
        let state = Mutex::new(State { steps, ..State::default() });
        Self { files, state, changed: Condvar::new() }
    }

    /// Returns the number of each file.
    pub(crate) fn numbers(&self) -> BTreeMap<PathBuf, usize> {
        self.files.iter().enumerate().map(|(n, (path, _))| (path.clone(), n)).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads files until there are no more; each thread does this.
    pub(crate) fn work(&self) {
        loop {
            let n = {
                let mut state = self.state();
                state.next += 1;
                state.next - 1
            };
            let Some((path, format)) = self.files.get(n) else { break };
            let end = self.read(n, path, *format);
            if !self.put(n, Step::End(end)) {
                break;
            }
        }
    }

    fn read(&self, n: usize, path: &Path, format: &'static dyn Format) -> End {
        let stream = match sources::open(path, 0) {
            Ok(stream) => stream,
            Err(error) => return End::Failed(error.into()),
        };
        let mut scan = Scan::new(stream, Tail::default(), format, LONG);
        loop {
            match scan.chunk() {
                Ok(lines) if lines.is_empty() => return End::Tail(scan.reader.into_tail()),
                Ok(lines) => {
                    let bytes = lines.iter().map(Scanned::bytes).sum();
                    if !self.put(n, Step::Lines(lines, bytes)) {
                        break;
                    }
                }
                Err(ReadError::TooLong { .. }) => break,
                Err(error) => return End::Failed(error.into()),
            }
        }
        let Tail { offset, number, .. } = scan.reader.into_tail();
        End::Rest(Tail { bytes: Vec::new(), offset, number })
    }

    /// Puts a step ahead once there is room, and returns whether anybody still takes.
    fn put(&self, n: usize, step: Step) -> bool {
        let bytes = step.bytes();
        let mut state = self.state();
        loop {
            let is_waited_for =
                state.wanted == n && state.steps.get(n).is_some_and(VecDeque::is_empty);
            let is_passed = n < state.wanted;
            if state.is_over || is_passed {
                return !state.is_over;
            }
            if is_waited_for || state.bytes + bytes <= ROOM {
                break;
            }
            state = self.wait(state);
        }
        state.bytes += bytes;
        if let Some(steps) = state.steps.get_mut(n) {
            steps.push_back(step);
        }
        self.changed.notify_all();
        true
    }

    /// Takes the next step of a file; the steps of the files before it are not wanted any more.
    fn take(&self, n: usize) -> Option<Step> {
        let mut guard = self.state();
        let state = &mut *guard;
        for steps in state.steps.get_mut(state.wanted..n).into_iter().flatten() {
            state.bytes -= steps.drain(..).map(|step| step.bytes()).sum::<usize>();
        }
        state.wanted = state.wanted.max(n);
        let mut state = guard;
        self.changed.notify_all();
        loop {
            match state.steps.get_mut(n)?.pop_front() {
                Some(step) => {
                    state.bytes -= step.bytes();
                    self.changed.notify_all();
                    return Some(step);
                }
                None => state = self.wait(state),
            }
        }
    }

    /// Lets the threads end once the answer is dropped.
    pub(crate) fn stop_at_last(&self) -> Stop<'_> {
        Stop(self)
    }
}

/// Ends the threads that read ahead.
pub(crate) struct Stop<'a>(&'a Ahead);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_over = true;
        state.next = self.0.files.len();
        self.0.changed.notify_all();
    }
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
        while let Some((ahead, file)) = self.ahead {
            match ahead.take(file) {
                Some(Step::Lines(lines, _)) => return Ok(lines),
                Some(Step::End(end)) => {
                    self.ahead = None;
                    match end {
                        End::Tail(tail) => self.tail = Some(tail),
                        End::Rest(tail) => self.open(tail)?,
                        End::Failed(why) => return Err(why),
                    }
                }
                None => self.ahead = None,
            }
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
