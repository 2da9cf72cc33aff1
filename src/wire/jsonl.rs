//! Reads lines from a stream, with their offsets and numbers. Memory is bounded by the longest line.
//!
//! [`crate::model::line`] defines how bytes become lines. This file finds each LF and buffers incomplete lines; it does not
//! parse JSON.
//!
//! Invariant: separators, lines and tail, concatenated, are the input bytes.
//! Invariant: stopping at any byte and resuming with the tail yields the same lines as reading in one go.

#![deny(clippy::indexing_slicing)]

use std::io::{self, Read};

use memchr::{memchr, memchr_iter};

use crate::model::line::{self, LINE_MAX, Line};

/// Size of the first read: a few records, as in a typical append.
const FIRST_CHUNK: usize = 8 << 10;
/// Size of later reads.
const CHUNK: usize = 512 << 10;

/// A buffer larger than this must have contained a long line. Its memory is released afterwards.
const SPACIOUS: usize = 8 << 20;

/// Why reading stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The stream failed. The call may be retried.
    #[error("cannot read past byte {offset}")]
    Io {
        /// The offset of the failed read.
        offset: u64,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A line and the white space before it exceed [`LINE_MAX`].
    ///
    /// On a physical line with several objects, each leading object is a line of its own; the rest counts as one line.
    #[error("line {number} at byte {offset} is longer than {max} bytes")]
    TooLong {
        /// The offset of the line.
        offset: u64,
        /// The number of its physical line.
        number: u64,
        /// The limit.
        max: usize,
    },
}

impl ReadError {
    /// Adds the number of lines before the stream, for a stream that began in the middle of its file.
    pub(crate) fn behind(self, lines: u64) -> Self {
        match self {
            Self::TooLong { offset, number, max } => {
                Self::TooLong { offset, number: number.saturating_add(lines), max }
            }
            failed @ Self::Io { .. } => failed,
        }
    }
}

/// A line and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located<'a> {
    /// The line.
    pub line: Line<'a>,
    /// Its offset in the file.
    pub offset: u64,
    /// The number of its physical line, from 1.
    pub number: u64,
}

/// The bytes after the last line, with the state needed to resume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Their offset in the file.
    pub offset: u64,
    /// The number of the physical line on which they begin, from 1.
    pub number: u64,
}

/// Reads lines from a stream.
///
/// ```text
/// buffer   .......................................................
///          consumed      | blank | physical line ⏎ more    | unused
///                       start   head            lf        filled
/// ```
#[derive(Debug)]
pub struct Reader<R> {
    read: R,
    buffer: Vec<u8>,
    filled: usize,
    /// The end of the last line. The next separator begins here.
    start: usize,
    /// The rest of the current physical line begins here. Between `start` and here is only white space.
    head: usize,
    /// There is no LF between `head` and here.
    searched: usize,
    /// The LF of the current physical line, once found.
    lf: Option<usize>,
    /// The offset of the buffer in the file.
    offset: u64,
    /// The number of the current physical line.
    number: u64,
    /// True if the current physical line has already yielded a line.
    glued: bool,
    at_end: bool,
    /// Size of the next read.
    chunk: usize,
    max: usize,
}

impl Default for Tail {
    fn default() -> Self {
        Self { bytes: Vec::new(), offset: 0, number: 1 }
    }
}

impl<R: Read> Reader<R> {
    /// Reads a file from its beginning.
    pub fn new(read: R) -> Self {
        Self::resume(read, Tail::default())
    }

    /// Resumes after a tail. The stream must not repeat the tail's bytes.
    pub fn resume(read: R, tail: Tail) -> Self {
        Self {
            read,
            filled: tail.bytes.len(),
            buffer: tail.bytes,
            start: 0,
            head: 0,
            searched: 0,
            lf: None,
            offset: tail.offset,
            number: tail.number,
            // A tail begins where a line ends, or at the beginning of the file.
            glued: tail.offset > 0,
            at_end: false,
            chunk: FIRST_CHUNK,
            max: LINE_MAX,
        }
    }

    /// Sets the number of bytes to expect. They are read at once.
    #[must_use]
    pub(crate) fn expecting(self, bytes: usize) -> Self {
        Self { chunk: (bytes + 1).min(CHUNK), ..self }
    }

    /// Lowers the length limit of a line.
    #[must_use]
    pub fn limited(self, max: usize) -> Self {
        Self { max: max.min(LINE_MAX), ..self }
    }

    /// Returns the next line; None at the end of the stream.
    ///
    /// After an I/O error the call may be retried. A line that is too long remains an error.
    pub fn next_line(&mut self) -> Result<Option<Located<'_>>, ReadError> {
        let (from, line, len, shape) = loop {
            self.find_lf();
            let is_over = self.filled - self.start > self.max;
            if self.lf.is_none() && !self.at_end && !is_over {
                self.fill()?;
                continue;
            }
            let end = self.lf.unwrap_or(self.filled);
            let segment = self.buffer.get(self.head..end).unwrap_or_default();
            let split = if self.lf.is_some() { line::split } else { line::split_unfinished };
            if let Some(found) = split(segment).next() {
                let line = self.head + found.separator.len();
                let len = found.bytes.len();
                // An opaque line counts to the end of what was read: without its LF, nobody knows whether it can be split.
                let counted = if found.shape.is_some() { line + len } else { end };
                if counted - self.start > self.max {
                    return Err(self.too_long(line));
                }
                break (self.start, line, len, found.shape);
            }
            if let Some(lf) = self.lf.take() {
                self.head = lf + 1;
                self.searched = self.head;
                self.number += 1;
                self.glued = false;
            } else if is_over {
                return Err(self.too_long(self.head));
            } else {
                return Ok(None);
            }
        };
        self.start = line + len;
        self.head = self.start;
        self.searched = self.searched.max(self.head);
        let glued = std::mem::replace(&mut self.glued, true);
        let line_at = |from, to| self.buffer.get(from..to).unwrap_or_default();
        Ok(Some(Located {
            offset: self.offset + line as u64,
            number: self.number,
            line: Line {
                separator: line_at(from, line),
                bytes: line_at(line, line + len),
                shape,
                glued,
            },
        }))
    }

    /// Releases the memory of a long line that was consumed, before reading more.
    pub(crate) fn give_back(&mut self) {
        if self.buffer.len() > SPACIOUS && self.filled - self.start < self.buffer.len() / 4 {
            self.move_to_front();
        }
    }

    /// Returns the tail. Call it after the last line.
    pub fn into_tail(mut self) -> Tail {
        let blank = self.buffer.get(self.start..self.head).unwrap_or_default();
        let number = self.number - memchr_iter(b'\n', blank).count() as u64;
        self.buffer.truncate(self.filled);
        self.buffer.drain(..self.start);
        Tail { bytes: self.buffer, offset: self.offset + self.start as u64, number }
    }

    fn find_lf(&mut self) {
        if self.lf.is_none() {
            let fresh = self.buffer.get(self.searched..self.filled).unwrap_or_default();
            self.lf = memchr(b'\n', fresh).map(|at| self.searched + at);
            self.searched = self.lf.unwrap_or(self.filled);
        }
    }

    /// Moves the unconsumed bytes to the front of the buffer.
    fn move_to_front(&mut self) {
        // A long line already at the front is not moved again; otherwise reading it would take quadratic time.
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.filled, 0);
        }
        self.filled -= self.start;
        self.head -= self.start;
        self.searched -= self.start;
        self.lf = self.lf.map(|lf| lf - self.start);
        self.offset += self.start as u64;
        self.start = 0;
        if self.buffer.len() > SPACIOUS && self.filled < self.buffer.len() / 4 {
            self.buffer.truncate(self.filled);
            self.buffer.shrink_to_fit();
        }
    }

    /// Reads a chunk after the unconsumed bytes.
    fn fill(&mut self) -> Result<(), ReadError> {
        self.move_to_front();
        if self.buffer.len() < self.filled + self.chunk {
            self.buffer.resize(self.filled + self.chunk, 0);
        }
        let free = self.buffer.get_mut(self.filled..).unwrap_or_default();
        match self.read.read(free) {
            Ok(0) => self.at_end = true,
            Ok(len) => {
                // If a read fills its buffer, there may be much more.
                if len == free.len() {
                    self.chunk = (4 * self.chunk).min(CHUNK);
                }
                self.filled += len;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => {
                return Err(ReadError::Io { offset: self.offset + self.filled as u64, source });
            }
        }
        Ok(())
    }

    fn too_long(&self, at: usize) -> ReadError {
        ReadError::TooLong { offset: self.offset + at as u64, number: self.number, max: self.max }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test reads and writes what it made itself")]
mod tests {
    use std::fs;
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::model::line::Shape;

    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Owned {
        separator: Vec<u8>,
        bytes: Vec<u8>,
        shape: Option<Shape>,
        glued: bool,
        offset: u64,
        number: u64,
    }

    /// A stream that gives a few bytes at a time, and an interruption between.
    struct Drip<'a>(&'a [u8], usize, bool);

    impl Read for Drip<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.2 = !self.2;
            if self.2 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let len = self.1.min(into.len());
            self.0.read(into.split_at_mut(len).0)
        }
    }

    fn drain<R: Read>(reader: Reader<R>) -> Result<(Vec<Owned>, Tail), ReadError> {
        drain_giving_back(reader, |_| {})
    }

    /// Drains a reader, and has it give back room behind each line.
    fn drain_giving_back<R: Read>(
        mut reader: Reader<R>,
        give_back: impl Fn(&mut Reader<R>),
    ) -> Result<(Vec<Owned>, Tail), ReadError> {
        let mut lines = Vec::new();
        while let Some(Located { line, offset, number }) = reader.next_line()? {
            let Line { separator, bytes, shape, glued } = line;
            let (separator, bytes) = (separator.to_vec(), bytes.to_vec());
            lines.push(Owned { separator, bytes, shape, glued, offset, number });
            give_back(&mut reader);
        }
        assert!(reader.next_line().unwrap().is_none());
        Ok((lines, reader.into_tail()))
    }

    fn read(bytes: &[u8]) -> (Vec<Owned>, Tail) {
        drain(Reader::new(bytes)).unwrap()
    }

    fn joined((lines, tail): &(Vec<Owned>, Tail)) -> Vec<u8> {
        let mut out = Vec::new();
        let mut number = 1;
        for line in lines {
            out.extend_from_slice(&line.separator);
            number += memchr_iter(b'\n', &line.separator).count() as u64;
            assert_eq!((line.offset, line.number), (out.len() as u64, number));
            out.extend_from_slice(&line.bytes);
        }
        assert_eq!((tail.offset, tail.number), (out.len() as u64, number));
        out.extend_from_slice(&tail.bytes);
        out
    }

    #[test]
    fn lines_have_numbers_offsets_and_a_tail() {
        let (lines, tail) = read(b"\n{\"a\":1}{} \r\n\nx \n {\"b\":{\"c\":1}\n[");
        let shown: Vec<_> = lines
            .iter()
            .map(|l| {
                let kind = if l.shape.is_some() { "object" } else { "opaque" };
                let bytes = [&l.separator[..], b"|", &l.bytes].concat();
                let bytes = bytes.escape_ascii().to_string().replace("\\\"", "'");
                format!("{}:{} {kind} {} {bytes}", l.number, l.offset, l.glued)
            })
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r"
        2:1 object false \n|{'a':1}
        2:8 object true |{}
        4:14 opaque false  \r\n\n|x 
        5:18 opaque false \n |{'b':
        5:23 object true |{'c':1}
        ");
        assert_eq!(tail, Tail { bytes: b"\n[".to_vec(), offset: 30, number: 5 });
    }

    #[test]
    fn a_file_without_lines_is_all_tail() {
        for bytes in [&b""[..], b"\n", b" \r\n\n ", b"x", b"{\"a\":", b"\n\n{"] {
            let (lines, tail) = read(bytes);
            assert_eq!(lines, []);
            assert_eq!(tail, Tail { bytes: bytes.to_vec(), offset: 0, number: 1 });
        }
    }

    #[test]
    fn a_tail_that_is_complete_is_a_line_without_lf() {
        let (lines, tail) = read(b"{}\n{\"a\":1}");
        assert_eq!(lines.len(), 2);
        assert_eq!(tail, Tail { bytes: vec![], offset: 10, number: 2 });
    }

    #[test]
    fn many_blank_lines_are_read_in_one_pass() {
        let bytes = [&b"\n".repeat(4 << 20)[..], b"{}", &b" \n".repeat(1 << 20)].concat();
        let (lines, tail) = read(&bytes);
        let numbers: Vec<_> = lines.iter().map(|line| line.number).collect();
        assert_eq!(numbers, [(4 << 20) + 1]);
        assert_eq!((tail.bytes.len(), tail.number), (2 << 20, (4 << 20) + 1));
    }

    #[test]
    fn what_is_behind_a_long_line_is_read_when_its_room_was_given_back() {
        let long = |bytes: usize| format!("{{\"a\":\"{}\"}}\n", "x".repeat(bytes));
        let short = "{\"b\":1}\n{\"c\":2}{\"d\":3} \n".to_owned();
        let bytes = [&short, &long(SPACIOUS), &short, &long(2 * SPACIOUS), &long(SPACIOUS), &short];
        let bytes = bytes.map(String::as_bytes).concat();
        let given_back = drain_giving_back(Reader::new(&bytes[..]), Reader::give_back).unwrap();
        let whole = read(&bytes);
        assert_eq!(whole.0.len(), 12);
        assert!(given_back == whole);
    }

    #[test]
    fn a_line_beyond_the_limit_is_named() {
        let check = |bytes: &[u8], expected: &str| {
            for step in [1, 7, 1000] {
                let mut reader = Reader::new(Drip(bytes, step, false));
                reader.max = 10;
                let message = drain(reader).map_or_else(
                    |error| error.to_string(),
                    |(lines, tail)| format!("{} lines, tail {}", lines.len(), tail.bytes.len()),
                );
                assert_eq!(message, expected, "{}", bytes.escape_ascii());
            }
        };
        check(b"0123456789\n", "1 lines, tail 1");
        check(b"0123456789", "0 lines, tail 10");
        check(b"{}\n012345678\n", "2 lines, tail 1");
        check(b"{}\n0123456789\n", "line 2 at byte 3 is longer than 10 bytes");
        check(b"0123456789x", "line 1 at byte 0 is longer than 10 bytes");
        check(b"{}{}{}{}{}{}{}{}{}{}", "10 lines, tail 0");
        check(b"{}{}{}{}{}{}\nx\n", "7 lines, tail 1");
        check(b"{\"a\":1234}", "1 lines, tail 0");
        check(b"\n{\"a\":1234}", "line 2 at byte 1 is longer than 10 bytes");
        check(b"{\"a\":\"xx{\"b\":1}\n", "line 1 at byte 0 is longer than 10 bytes");
        check(b"\n\n\n\n\n\n\n\n{}\n", "1 lines, tail 1");
        check(b"\n\n\n\n\n\n\n\n\n{}\n", "line 10 at byte 9 is longer than 10 bytes");
    }

    #[test]
    fn a_failed_read_can_be_tried_again() {
        struct Flaky(Vec<io::Result<&'static [u8]>>);
        impl Read for Flaky {
            fn read(&mut self, mut into: &mut [u8]) -> io::Result<usize> {
                self.0
                    .pop()
                    .map_or(Ok(0), |step| step.and_then(|bytes| io::Write::write(&mut into, bytes)))
            }
        }
        let steps = vec![Ok(&b"1}\n"[..]), Err(io::Error::other("no")), Ok(&b"{}\n{\"a\":"[..])];
        let mut reader = Reader::new(Flaky(steps));
        assert_eq!(reader.next_line().unwrap().unwrap().line.bytes, b"{}");
        let error = reader.next_line().unwrap_err();
        assert_eq!(error.to_string(), "cannot read past byte 8");
        assert_eq!(reader.next_line().unwrap().unwrap().line.bytes, b"{\"a\":1}");
        assert_eq!(reader.next_line().unwrap(), None);
    }

    #[test]
    fn real_files_come_back() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut folders = vec![root.join("examples")];
        // These are not part of the project.
        folders.extend(Some(root.join("../shared/corpus")).filter(|corpus| corpus.is_dir()));
        while let Some(folder) = folders.pop() {
            for child in fs::read_dir(folder).unwrap() {
                let path = child.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let bytes = fs::read(&path).unwrap();
                let whole = read(&bytes);
                let name = path.display();
                assert!(joined(&whole) == bytes, "{name}");
                for cut in [1, bytes.len() / 3, bytes.len() / 2, bytes.len().saturating_sub(1)] {
                    let (first, second) = bytes.split_at(cut.min(bytes.len()));
                    let (mut lines, tail) = read(first);
                    let (more, tail) = drain(Reader::resume(second, tail)).unwrap();
                    lines.extend(more);
                    assert!((lines, tail) == whole, "{name} cut at {cut}");
                }
            }
        }
    }

    /// Bytes in which lines, stubs, white space and rubbish meet.
    fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
        let long = format!(r#"{{"uuid":"u","text":"{}"}}"#, "é".repeat(130)).into_bytes();
        let piece = prop_oneof![
            6 => prop::sample::select(vec![
                &b"\n"[..], b"\n", b"\r\n", b"\r", b" ", b"\t", b"\0", b"{\"", b"{\"a\":", b"}", b"{",
                b"\"", b"\\", b"[", b"]", b",", b"{}", b"{\"a\":1}", b"{\"a\":{\"b\":\"}\"}}", b"null",
                b"{\"id\":\"i\",\"parentId\":null}", b"\xff", b"\xef\xbb\xbf", b"\xc3", b"\x0b",
            ]).prop_map(<[u8]>::to_vec),
            1 => Just(long),
            1 => prop::collection::vec(any::<u8>(), 0..4),
        ];
        prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(bytes in any_bytes()) {
            prop_assert_eq!(joined(&read(&bytes)), bytes);
        }

        #[test]
        fn the_way_the_bytes_arrive_does_not_matter(bytes in any_bytes(), step in 1..9_usize) {
            let dripped = drain(Reader::new(Drip(&bytes, step, false))).unwrap();
            prop_assert_eq!(dripped, read(&bytes));
        }

        #[test]
        fn to_give_room_back_changes_nothing(bytes in any_bytes(), step in 1..9_usize) {
            let reader = Reader::new(Drip(&bytes, step, false));
            let given_back = drain_giving_back(reader, Reader::move_to_front).unwrap();
            prop_assert_eq!(given_back, read(&bytes));
        }

        #[test]
        fn reading_in_parts_gives_the_same_lines(
            bytes in any_bytes(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
        ) {
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.push(bytes.len());
            cuts.sort_unstable();
            let mut lines = Vec::new();
            let mut tail = Tail::default();
            let mut from = 0;
            for cut in cuts {
                let part = bytes.get(from..cut).unwrap();
                let (more, rest) = drain(Reader::resume(part, tail)).unwrap();
                lines.extend(more);
                (tail, from) = (rest, cut);
            }
            prop_assert_eq!((lines, tail), read(&bytes));
        }
    }
}
