//! Any bytes come back as they were: through the lines, which a simple reader finds alike, and through a session.
//!
//! The claims are functions of bytes alone, so that a fuzzer can ask them too (`fuzz/`).

use std::{fs, path::Path};

use undertext::{
    verbs::{self, Archive, Machine},
    wire::jsonl::Reader,
};

/// How many bytes the simple reader takes: of more, the search for a stub may cost more than its budget.
const SIMPLE: usize = 1000;
/// Begins a file that is surely a session's.
const BEGIN: &[u8] = b"{\"type\":\"summary\",\"leafUuid\":\"u\",\"summary\":\"s\"}\n";

/// A reader of JSON that goes byte by byte and calls itself.
struct Simple<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Simple<'_> {
    /// Returns the length of the object with which bytes begin.
    fn object_end(bytes: &[u8]) -> Option<usize> {
        let mut simple = Simple { bytes, at: 0 };
        (bytes.first() == Some(&b'{') && simple.value().is_some()).then_some(simple.at)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn eat(&mut self, bytes: &[u8]) -> bool {
        let found = self.peek().is_some_and(|byte| bytes.contains(&byte));
        self.at += usize::from(found);
        found
    }

    fn need(&mut self, bytes: &[u8]) -> Option<()> {
        self.eat(bytes).then_some(())
    }

    fn blank(&mut self) {
        while self.eat(b" \t\r\n") {}
    }

    fn value(&mut self) -> Option<()> {
        match self.peek()? {
            open @ (b'{' | b'[') => {
                let close: &[u8] = if open == b'{' { b"}" } else { b"]" };
                self.at += 1;
                self.blank();
                if self.eat(close) {
                    return Some(());
                }
                loop {
                    if open == b'{' {
                        self.string()?;
                        self.blank();
                        self.need(b":")?;
                        self.blank();
                    }
                    self.value()?;
                    self.blank();
                    if self.eat(close) {
                        return Some(());
                    }
                    self.need(b",")?;
                    self.blank();
                }
            }
            b'"' => self.string(),
            b't' => b"true".iter().try_for_each(|byte| self.need(&[*byte])),
            b'f' => b"false".iter().try_for_each(|byte| self.need(&[*byte])),
            b'n' => b"null".iter().try_for_each(|byte| self.need(&[*byte])),
            _ => {
                self.eat(b"-");
                if !self.eat(b"0") {
                    self.digits()?;
                }
                if self.eat(b".") {
                    self.digits()?;
                }
                if self.eat(b"eE") {
                    self.eat(b"+-");
                    self.digits()?;
                }
                Some(())
            }
        }
    }

    fn digits(&mut self) -> Option<()> {
        self.need(b"0123456789")?;
        while self.eat(b"0123456789") {}
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        self.need(b"\"")?;
        loop {
            let byte = self.peek().filter(|byte| *byte >= 0x20)?;
            self.at += 1;
            match byte {
                b'"' => return Some(()),
                b'\\' if self.eat(b"u") => {
                    (0..4).try_for_each(|_| self.need(b"0123456789abcdefABCDEF"))?;
                }
                b'\\' => self.need(b"\"\\/bfnrt")?,
                _ => {}
            }
        }
    }
}

/// A separator and the line behind it.
type Found<'a> = (&'a [u8], &'a [u8]);

/// Returns the separators and lines of bytes, and the tail, by the rules as they are written down.
fn simple_lines(bytes: &[u8]) -> (Vec<Found<'_>>, &[u8]) {
    let is_blank = |byte: &u8| b" \t\r\n".contains(byte);
    let mut lines = Vec::new();
    let mut rest = bytes;
    loop {
        let Some(start) = rest.iter().position(|byte| !is_blank(byte)) else {
            return (lines, rest);
        };
        let (separator, behind) = rest.split_at(start);
        let lf = behind.iter().position(|byte| *byte == b'\n');
        let segment = &behind[..lf.unwrap_or(behind.len())];
        let end = match Simple::object_end(segment) {
            Some(end) => end,
            None if lf.is_none() => return (lines, rest),
            None => {
                let trimmed =
                    &segment[..=segment.iter().rposition(|byte| !is_blank(byte)).unwrap()];
                let is_stub = |at: &usize| {
                    let rest = &trimmed[*at..];
                    rest.starts_with(b"{\"") && Simple::object_end(rest) == Some(rest.len())
                };
                (1..trimmed.len()).find(is_stub).unwrap_or(segment.len())
            }
        };
        let (line, behind) = behind.split_at(end);
        lines.push((separator, line));
        rest = behind;
    }
}

/// The reader of lines and the simple one agree.
pub(crate) fn lines_agree_with_a_simple_reader(bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(SIMPLE)];
    let (expected, tail) = simple_lines(bytes);
    let mut reader = Reader::new(bytes);
    let mut found = Vec::new();
    while let Some(located) = reader.next_line().unwrap() {
        found.push((located.line.separator.to_vec(), located.line.bytes.to_vec()));
    }
    let expected: Vec<_> = expected.iter().map(|(a, b)| (a.to_vec(), b.to_vec())).collect();
    assert_eq!(found, expected, "{}", bytes.escape_ascii());
    assert_eq!(reader.into_tail().bytes, tail, "{}", bytes.escape_ascii());
}

/// A file that is taken in at two lengths is exported as it is, and verified.
pub(crate) fn bytes_come_back(bytes: &[u8], cut: usize) {
    file_comes_back(Archive::in_memory(Box::new(Machine)), bytes, cut);
}

fn file_comes_back(mut archive: Archive, bytes: &[u8], cut: usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let whole = [BEGIN, bytes].concat();
    for end in [BEGIN.len() + cut, whole.len()] {
        fs::write(&path, &whole[..end]).unwrap();
        take_in(&mut archive, &path);
        let session = archive.every().unwrap().pop().unwrap();
        let mut exported = Vec::new();
        let each = &mut |part: &[u8]| {
            exported.extend_from_slice(part);
            Ok(())
        };
        verbs::export(&archive.at(&session).unwrap(), None, each).unwrap();
        assert!(exported == whole[..end], "{} at {end}", whole.escape_ascii());
    }
    assert_eq!(archive.every().unwrap().len(), 1);
    verbs::verify(&archive, None, &mut |told| {
        if let Some(finding) = told.found() {
            assert!(!finding.kind.is_damage(), "{finding:?}: {}", whole.escape_ascii());
        }
    })
    .unwrap();
}

fn take_in(archive: &mut Archive, path: &Path) {
    let summary = verbs::import(archive, &[path.to_owned()], &[], &mut |_| ()).unwrap();
    assert_eq!((summary.files, summary.skipped), (1, 0));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use undertext::store::Access;

    use super::*;

    /// Bytes in which records of several formats, stubs, white space and rubbish meet.
    fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
        let long = format!("{{\"uuid\":\"v\",\"parentUuid\":\"u\",\"x\":\"{}\"}}", "é".repeat(130));
        let pieces = [
            "\n",
            "\n",
            "\r\n",
            " ",
            "\t",
            "\0",
            "{\"",
            "{\"a\":",
            "}",
            "{",
            "\"",
            "\\",
            "[",
            "]",
            ",",
            "{}",
            "{\"a\":{\"b\":\"}\"}}",
            "{\"id\":\"i\",\"parentId\":null}",
            "\u{feff}",
            "-0.1e+5",
            "{\"a\":[1,tru",
            "{\"uuid\":\"u\",\"parentUuid\":null,\"type\":\"user\"}",
            "{\"type\":\"user\",\"uuid\":\"w\",\"parentUuid\":\"w\",\"sessionId\":\"s\",\"isSidechain\":false,\
             \"message\":{\"role\":\"user\",\"content\":\"hello\"},\"timestamp\":\"2026-01-01T00:00:00Z\"}",
            "{\"type\":\"session_meta\",\"timestamp\":\"\",\"payload\":{\"id\":\"s\"}}",
            "{\"role\":\"_checkpoint\",\"id\":0}",
            "{\"\\u0075uid\":\"\\ud800\"}",
            &long,
        ];
        let pieces: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.as_bytes().to_vec()).collect();
        let piece = prop_oneof![
            8 => prop::sample::select(pieces),
            1 => prop::collection::vec(any::<u8>(), 0..4),
        ];
        prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: crate::needs::rounds(64, 256), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_lines_are_found_alike_by_a_simple_reader(bytes in any_bytes()) {
            lines_agree_with_a_simple_reader(&bytes);
        }

        #[test]
        fn any_bytes_come_back_from_a_session(bytes in any_bytes(), cut: prop::sample::Index) {
            bytes_come_back(&bytes, cut.index(bytes.len() + 1));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: crate::needs::rounds(8, 24), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_come_back_from_the_disk(bytes in any_bytes(), cut: prop::sample::Index) {
            let folder = tempfile::tempdir().unwrap();
            let archive = Archive::open(folder.path(), Access::Write, Box::new(Machine)).unwrap();
            file_comes_back(archive, &bytes, cut.index(bytes.len() + 1));
        }
    }
}
