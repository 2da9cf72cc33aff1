//! Listens to a stream as it arrives, and reports the words of the answer.
//!
//! ```text
//! bytes -> lines -> data -> JSON -> words -> held back until no secret can be cut in two -> masked -> heard
//! ```
//!
//! Whether the answer is complete is decided elsewhere, from the whole body.
//!
//! Invariant: no secret is heard, even if the stream cuts it into parts.

use serde_json::Value;

use crate::{json, provider::stream, secrets::Masking};

/// Returns the words of an event.
pub(super) type Words = fn(&Value) -> String;

/// Reports the words of one answer.
pub(super) struct Listener<'a> {
    pub(super) words: Words,
    pub(super) masking: &'a Masking,
    /// Where words can be cut without cutting a secret.
    pub(super) ends: Ends,
    pub(super) heard: &'a mut dyn FnMut(&str),
    line: Vec<u8>,
    /// The lines of an event that is not JSON yet.
    data: String,
    is_after_return: bool,
    has_halves: bool,
    held: String,
}

/// Where words can be cut without cutting a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// There are no secrets.
    Anywhere,
    /// Secrets are single words of ASCII, however they are spelled.
    Words,
    /// A secret may be several words.
    Lines,
}

impl Ends {
    /// Returns where texts with these secrets can be cut.
    pub(super) fn of<'s>(mut secrets: impl Iterator<Item = &'s str> + Clone) -> Self {
        let is_word = |secret: &str| secret.bytes().all(|byte| byte.is_ascii_graphic());
        match secrets.clone().next() {
            None => Self::Anywhere,
            Some(_) if secrets.all(is_word) => Self::Words,
            Some(_) => Self::Lines,
        }
    }

    fn has(self, c: char) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Words => !c.is_ascii_graphic(),
            Self::Lines => c == '\n',
        }
    }
}

impl<'a> Listener<'a> {
    pub(super) fn new(
        words: Words,
        masking: &'a Masking,
        ends: Ends,
        heard: &'a mut dyn FnMut(&str),
    ) -> Self {
        let (line, data, held) = Default::default();
        let (is_after_return, has_halves) = (false, false);
        Self { words, masking, ends, heard, line, data, is_after_return, has_halves, held }
    }

    /// Listens to the next bytes of the body.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            let is_second = byte == b'\n' && self.is_after_return;
            self.is_after_return = byte == b'\r';
            match byte {
                b'\n' if is_second => {}
                b'\n' | b'\r' => {
                    let line = std::mem::take(&mut self.line);
                    self.read(&String::from_utf8_lossy(&line));
                }
                byte => self.line.push(byte),
            }
        }
    }

    /// Reports what is still held back, after the end of the body.
    pub(super) fn end(&mut self) {
        self.report(self.held.len());
    }

    fn read(&mut self, line: &str) {
        let value = if line.is_empty() {
            stream::value(&std::mem::take(&mut self.data), &mut self.has_halves)
        } else if let Some(data) = line.strip_prefix("data:") {
            let data = data.trim_start();
            let value = stream::value(data, &mut self.has_halves);
            // Most events are one line, and some servers send no empty line after it.
            if value.is_none() {
                self.data.push_str(data);
                self.data.push('\n');
            }
            value
        } else {
            None
        };
        if let Some(value) = value {
            self.held.push_str(&(self.words)(&value));
            let is_end = |c: &char| self.ends.has(*c) && !json::is_half(*c);
            let last = self.held.char_indices().rev().find(|(_, c)| is_end(c));
            self.report(last.map_or(0, |(at, c)| at + c.len_utf8()));
        }
    }

    /// Reports the words up to an offset.
    fn report(&mut self, end: usize) {
        let rest = self.held.split_off(end);
        let mut words = std::mem::replace(&mut self.held, rest);
        if self.has_halves {
            words = json::joined(&words);
        }
        if !words.is_empty() {
            (self.heard)(&self.masking.mask(&words).text);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::secrets::Masks;

    const KEY: &str = "sk-secret-1234";

    fn heard(secrets: &[&str], parts: &[&[u8]]) -> Vec<String> {
        let known = secrets.iter().map(|secret| ((*secret).to_owned(), "key")).collect();
        let masking = Masking::new(Masks::default(), known);
        let mut all = Vec::new();
        let mut hear = |words: &str| all.push(words.to_owned());
        let words: Words = |value| value.as_str().unwrap_or_default().to_owned();
        let ends = Ends::of(secrets.iter().copied());
        let mut listener = Listener::new(words, &masking, ends, &mut hear);
        for part in parts {
            listener.push(part);
        }
        listener.end();
        all
    }

    fn events(words: &[&str]) -> Vec<u8> {
        words
            .iter()
            .flat_map(|word| format!("data: {}\r\n\r\n", json!(word)).into_bytes())
            .collect()
    }

    #[test]
    fn words_are_heard_event_by_event() {
        assert_eq!(heard(&[], &[&events(&["It", " is", " so"])]), ["It", " is", " so"]);
        assert_eq!(heard(&[KEY], &[&events(&["It", " is", " so"])]), ["It ", "is ", "so"]);
        assert_eq!(heard(&["a b c d e"], &[&events(&["It", " is", "\n so"])]), ["It is\n", " so"]);
        // An event without an empty line after it, and one of several lines.
        assert_eq!(heard(&[], &[b"data: \"a\"\ndata: \"b\"\n"]), ["a", "b"]);
        assert_eq!(heard(&[], &[b"event: x\r\ndata: [\r\ndata: 1]\r\n\r\ndata: \"b\"\r\n"]), ["b"]);
        let half = [&b"data: \"a\\ud83d\"\n\n"[..], b"data: \"\\ude00 b\"\n\n"];
        assert_eq!(heard(&[], &half).concat(), "a\u{1f600} b");
    }

    proptest! {
        #[test]
        fn a_key_is_never_heard_wherever_it_is_cut(before in "[a-z \n]{0,9}", after in "[a-z \n]{0,9}", cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5), bytes: prop::sample::Index) {
            for spelled in [KEY, "c2stc2VjcmV0LTEyMzQ="] {
                let text = format!("{before}{spelled}{after} end");
                let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len())).collect();
                at.extend([0, text.len()]);
                at.sort_unstable();
                let parts: Vec<&str> = at.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
                let body = events(&parts);
                let (one, other) = body.split_at(bytes.index(body.len()));
                let said = heard(&[KEY], &[one, other]);
                let known = [(KEY.to_owned(), "key")].into();
                let whole = Masking::new(Masks::default(), known).mask(&text).text.into_owned();
                prop_assert_eq!(said.concat(), whole);
            }
        }
    }
}
