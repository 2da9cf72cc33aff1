//! Lines from a stream: numbered, with their offsets, in memory that the longest line bounds.
//!
//! How bytes become lines is the contract of [`crate::model::line`]; this file finds the LF, keeps
//! unfinished bytes, and knows no JSON.
//!
//! Invariant: separators, lines and tail, joined, are the bytes that came.
//! Invariant: to stop at any byte and resume with the tail gives the lines of a single read.

#![deny(clippy::indexing_slicing)]

use std::io::{self, Read};

use memchr::{memchr, memchr_iter};

use crate::model::line::{self, LINE_MAX, Line};

/// How many bytes are read at first: a few records, such as an append brings.
const FIRST_CHUNK: usize = 8 << 10;
/// How many bytes are read at a time once there is more.
const CHUNK: usize = 512 << 10;

/// How large the buffer is when a long line must have been in it, whose room is given back.
const SPACIOUS: usize = 8 << 20;

/// Why reading stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The stream failed; a later attempt may go on.
    #[error("cannot read past byte {offset}")]
    Io {
        /// Where.
        offset: u64,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A line and the white space before it exceed [`LINE_MAX`].
    ///
    /// Of a physical line the objects at its beginning are lines; the rest counts as one.
    #[error("line {number} at byte {offset} is longer than {max} bytes")]
    TooLong {
        /// Where it begins.
        offset: u64,
        /// On which physical line.
        number: u64,
        /// The greatest accepted length.
        max: usize,
    },
}

impl ReadError {
    /// Returns it for a stream that began behind some lines of its file, which were not counted.
    pub(crate) fn behind(self, lines: u64) -> Self {
        match self {
            Self::TooLong { offset, number, max } => {
                Self::TooLong { offset, number: number.saturating_add(lines), max }
            }
            failed @ Self::Io { .. } => failed,
        }
    }
}

/// A line and where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located<'a> {
    /// The line.
    pub line: Line<'a>,
    /// Where its bytes begin in the file.
    pub offset: u64,
    /// The physical line on which it is, from 1.
    pub number: u64,
}

/// The bytes behind the last line, and all that is needed to read on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Where they begin in the file.
    pub offset: u64,
    /// The physical line on which they begin, from 1.
    pub number: u64,
}

/// Reads lines from a stream.
///
/// ```text
/// buffer   .......................................................
///          taken lines  | blank | physical line ⏎ more    | unused
///                       start   head            lf        filled
/// ```
#[derive(Debug)]
pub struct Reader<R> {
    read: R,
    buffer: Vec<u8>,
    filled: usize,
    /// The end of the last line: the next separator begins here.
    start: usize,
    /// The rest of the current physical line begins here; before it lies white space only.
    head: usize,
    /// No LF is between `head` and here.
    searched: usize,
    /// The LF of the current physical line, once found.
    lf: Option<usize>,
    /// The offset of the buffer in the file.
    offset: u64,
    /// The number of the current physical line.
    number: u64,
    /// Whether the current physical line has yielded a line.
    glued: bool,
    at_end: bool,
    /// How many bytes the next read may bring.
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

    /// Reads on behind a tail, which the stream must not repeat.
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

    /// Expects this many bytes, which it then reads at once.
    #[must_use]
    pub(crate) fn expecting(self, bytes: usize) -> Self {
        Self { chunk: (bytes + 1).min(CHUNK), ..self }
    }

    /// Takes lines longer than this for too long.
    #[must_use]
    pub fn limited(self, max: usize) -> Self {
        Self { max: max.min(LINE_MAX), ..self }
    }

    /// Returns the next line, None at the end of the stream.
    ///
    /// After a failure of the stream the call may be tried again; a line that is too long stays so.
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
                // Whether an opaque line can be split does not excuse its length: without its LF
                // that is not known.
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

    /// Gives back the room of a long line that was taken, before more is read.
    pub(crate) fn give_back(&mut self) {
        if self.buffer.len() > SPACIOUS && self.filled - self.start < self.buffer.len() / 4 {
            self.move_to_front();
        }
    }

    /// Returns the tail, once there are no more lines.
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

    /// Moves the bytes that are not yet taken to the front.
    fn move_to_front(&mut self) {
        // A long line that is in front stays there; moved to its own place each time, it would cost its square.
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

    /// Reads a chunk behind the bytes that are not yet taken.
    fn fill(&mut self) -> Result<(), ReadError> {
        self.move_to_front();
        if self.buffer.len() < self.filled + self.chunk {
            self.buffer.resize(self.filled + self.chunk, 0);
        }
        let free = self.buffer.get_mut(self.filled..).unwrap_or_default();
        match self.read.read(free) {
            Ok(0) => self.at_end = true,
            Ok(len) => {
                // A read that fills its room may have much more behind it.
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
