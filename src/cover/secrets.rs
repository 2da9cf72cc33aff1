//! Many secrets, searched together: a text is read once for all of them, and each one is only compared where a part of it occurs.
//!
//! Invariant: if several secrets overlap, no part of any of them remains.

use std::{collections::BTreeSet, ops::Range};

use aho_corasick::AhoCorasick;

use crate::json::{Frame, Raw};

use super::{
    place::{self, Filling, Place},
    secret::{Secret, Spelling},
    text::Text,
};

/// The beginning of a numeric escape of an ASCII character.
const ESCAPED: &[u8] = b"\\u00";
/// How often a covered line is searched again.
const ROUNDS: usize = 4;
/// How many bytes of a spelling the automaton matches. Its size is proportional to the sum of these.
const NEEDLE: usize = 64;

/// Secrets that are covered together.
pub(crate) struct Secrets {
    /// The spellings, each with the index of its secret.
    spellings: Vec<(usize, Spelling)>,
    /// Finds the beginnings of the spellings.
    beginnings: AhoCorasick,
    /// Finds bytes of which every line with a secret contains some, escapes included; none if any line may contain a secret.
    needles: Option<AhoCorasick>,
}

impl Secrets {
    pub(crate) fn new(all: Vec<Secret>) -> Self {
        let begin = |bytes: &[u8]| bytes.get(..NEEDLE).unwrap_or(bytes).to_vec();
        let machine = |needles: &mut dyn Iterator<Item = Vec<u8>>| {
            AhoCorasick::new(needles).expect("no entry is so long that it has too many long texts")
        };
        let sure: Vec<Vec<u8>> = all.iter().map(|secret| begin(&secret.sure)).collect();
        let spellings = |(n, secret): (usize, Secret)| {
            secret.spellings.into_iter().map(move |spelling| (n, spelling))
        };
        let spellings: Vec<_> = all.into_iter().enumerate().flat_map(spellings).collect();
        let beginnings = machine(&mut spellings.iter().map(|(_, spelling)| begin(&spelling.bytes)));
        let needles = sure.iter().all(|sure| !sure.is_empty()).then(|| {
            let encoded = spellings.iter().filter(|(_, it)| it.filling == Filling::Code);
            let encoded = encoded.map(|(_, spelling)| begin(&spelling.bytes));
            let escaped = (!sure.is_empty()).then(|| ESCAPED.to_vec());
            machine(&mut encoded.chain(sure).chain(escaped))
        });
        Self { spellings, beginnings, needles }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.spellings.is_empty()
    }

    /// Returns the automaton for bytes of which every line with a secret contains some; none if any line may contain a secret.
    pub(crate) fn needles(&self) -> Option<&AhoCorasick> {
        self.needles.as_ref()
    }

    /// Returns true if a line contains any of them.
    pub(crate) fn is_in(&self, line: &[u8]) -> bool {
        !self.places(line).is_empty()
    }

    /// Returns true if a text of several lines, which may be records, contains any of them.
    pub(crate) fn are_in_lines(&self, text: &[u8]) -> bool {
        if self.needles().is_some_and(|needles| !needles.is_match(text)) {
            return false;
        }
        let places = self.places(text);
        // A short secret only counts in the content of a record.
        places.iter().any(|place| place.frame.is_none())
            || !places.is_empty() && text.split(|byte| *byte == b'\n').any(|line| self.is_in(line))
    }

    /// Returns true if truncated bytes end inside any of them.
    pub(crate) fn are_cut_by(&self, bytes: &[u8]) -> bool {
        Text::readings(bytes).any(|text| self.begin_at_end(&text.bytes))
    }

    /// Returns true if a text ends with a prefix of any of them, possibly followed by part of an escape.
    fn begin_at_end(&self, text: &[u8]) -> bool {
        let last = text.len().saturating_sub(ESCAPED.len() + 1);
        let escape = text.iter().skip(last).position(|byte| *byte == b'\\');
        let before = escape.and_then(|at| text.get(..last + at)).unwrap_or(text);
        let begins = |it: &Spelling| it.begins_at_end(text) || it.begins_at_end(before);
        self.spellings.iter().any(|(_, spelling)| begins(spelling))
    }

    /// Returns a line with all of them covered, if it contains any, and the indexes of those found.
    pub(crate) fn cover(&self, line: &[u8]) -> (Option<Vec<u8>>, BTreeSet<usize>) {
        self.cover_where(line, &|_| true)
    }

    /// Returns a record with all of them covered, except in its identifying fields.
    pub(crate) fn cover_said(&self, line: &[u8], frame: &Frame) -> Option<Vec<u8>> {
        let said = place::untelling(line, frame)?;
        self.cover_where(line, &|place| place.is_within(&said)).0
    }

    fn cover_where(
        &self,
        line: &[u8],
        is_meant: &dyn Fn(&Place) -> bool,
    ) -> (Option<Vec<u8>>, BTreeSet<usize>) {
        let (mut covered, mut found): (Option<Vec<u8>>, _) = (None, BTreeSet::new());
        // The replacement of one may be part of another.
        for _ in 0..ROUNDS {
            let now = covered.as_deref().unwrap_or(line);
            let mut places = self.places(now);
            places.retain(is_meant);
            let own: BTreeSet<usize> = places.iter().map(|place| place.of).collect();
            let Some(next) = place::cover(now, places) else { break };
            found.extend(own);
            covered = Some(next);
        }
        (covered, found)
    }

    /// Returns the ranges of all of them in a text, in order, each with the index of the secret.
    pub(crate) fn ranges(&self, text: &[u8]) -> Vec<(Range<usize>, usize)> {
        self.places(text).into_iter().map(|place| (place.range, place.of)).collect()
    }

    /// Returns the places of all of them in a line, in order: in its bytes, in the bytes with escapes resolved, and so on.
    fn places(&self, line: &[u8]) -> Vec<Place> {
        let mut found = Vec::new();
        for text in Text::readings(line) {
            let hits = self.beginnings.find_overlapping_iter(&text.bytes);
            found.extend(hits.filter_map(|hit| {
                let (of, spelling) = self.spellings.get(hit.pattern().as_usize())?;
                spelling.place(*of, hit.start(), &text)
            }));
        }
        if found.is_empty() {
            return found;
        }
        if let Some(record) = Raw::object(line) {
            let strings = place::strings(line, record);
            found.retain_mut(|place| place.fits(line, &strings));
        }
        if let Some(frame) = found.iter().find_map(|place| place.frame)
            && let Some(said) = place::untelling(line, frame)
        {
            found.retain(|place| place.frame.is_none() || place.is_within(&said));
        }
        found.sort_by_key(Place::order);
        found
    }
}

impl Default for Secrets {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cover::{FRAME, secret_in_line};

    fn secrets(said: &[&str]) -> Secrets {
        Secrets::new(said.iter().filter_map(|said| Secret::new(said, &FRAME)).collect())
    }

    #[test]
    fn those_that_stand_in_a_line_are_told_apart() {
        let names: Vec<String> = (0..500).map(|n| format!("hunter{n:04}!")).collect();
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        let check = |names: &[&str], line: &str, expected: &[usize]| {
            let found = secrets(names).cover(line.as_bytes()).1;
            assert_eq!(found.into_iter().collect::<Vec<_>>(), expected, "{line}");
        };
        check(&names, r#"{"a":"\u001b[1mhunter9999!"}"#, &[]);
        check(&names, r#"{"a":"\u001b[1mhunter0007!"}"#, &[7]);
        check(&names, r#"{"a":"{\"b\":\"\\u0068unter0008\\u0021 hunter0007!\"}"}"#, &[7, 8]);
        check(&names, r#"{"a":"aHVudGVyMDAwOSE="}"#, &[9]);
        // Any character of this one may be spelt otherwise.
        names.push("!!!!");
        check(&names, r#"{"a":"hunter0007!"}"#, &[7]);
        check(&names, r#"{"a":"hunter0007!!!!"}"#, &[7, 500]);
        assert!(secrets(&names).needles().is_none());
        assert!(secrets(&[]).needles().is_some_and(|needles| !needles.is_match(b"\\u00e9")));
    }

    #[test]
    fn a_line_is_read_once_for_many() {
        // Where it is read for each of them, this does not come to an end.
        let names: Vec<String> = (0..4000).map(|n| format!("hunter{n:04}!")).collect();
        let line = format!(r#"{{"a":"{}"}}"#, names.join(r"\n"));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (covered, found) = secrets(&names).cover(line.as_bytes());
        assert_eq!(found.len(), names.len());
        assert!(!String::from_utf8(covered.unwrap()).unwrap().contains("hunter"));
    }

    #[test]
    fn what_stands_in_the_place_of_one_may_be_the_next() {
        let secrets = secrets(&["hunter2 hunter", "redacted"]);
        let (covered, found) = secrets.cover(br#"{"a":"hunter2 hunter"}"#);
        assert_eq!(covered.as_deref(), Some(&br#"{"a":"[********]****"}"#[..]));
        assert_eq!(found, BTreeSet::from([0, 1]));
    }

    #[test]
    fn nothing_is_left_of_those_that_overlap() {
        let check = |said: &[&str], line: &str, expected: &str| {
            let covered = secrets(said).cover(line.as_bytes()).0.unwrap();
            assert_eq!(String::from_utf8_lossy(&covered), expected);
        };
        let (inner, outer) = ("abc7Qzx9LmQ", "abc7Qzx9LmQTail88wVV");
        let (line, expected) = (
            r#"{"a":"abc7Qzx9LmQTail88wVV, abc7Qzx9LmQ."}"#,
            r#"{"a":"[redacted]**********, [redacted]*."}"#,
        );
        check(&[inner, outer], line, expected);
        check(&[outer, inner], line, expected);
        check(&["one-two", "two-three"], "one-two-three", "[redacted]***");
        check(&["one-two", "two-three", "ne-tw"], "the one-two-threes", "the [redacted]***s");
    }

    #[test]
    fn what_ends_within_one_ends_with_its_beginning_however_it_is_spelt() {
        let secrets = secrets(&["hunter2!bunny", "correct/horse"]);
        let check = |text: &str, expected| {
            assert_eq!(secrets.are_cut_by(text.as_bytes()), expected, "{text}");
        };
        for text in [
            r#"{"a":"is hunt"#,
            r#"{"a":"is hunter2!bunn"#,
            r#"{"a":"hunter2\u0021b"#,
            r#"{"a":"hunter2\u00"#,
            r#"{"a":"hunter2\"#,
            r#"{"a":"{\"b\":\"hunter2\\u0021b"#,
            r#"{"a":"aHVudGVyMiFidW"#,
        ] {
            check(text, true);
        }
        check(r#"{"a":"is hun"#, false);
        check(r#"{"a":"is hunter2!bunny"#, false);
        check(r#"{"a":"hunter3"#, false);
        check("", false);
    }

    proptest! {
        #[test]
        fn together_none_of_them_is_left(
            (first, line) in secret_in_line(),
            (second, other) in secret_in_line(),
        ) {
            let line = format!("{line}{other}{second}{}", first.get(..4).unwrap_or_default());
            let together = secrets(&[&second, &first, "redacted", "!!!!"]);
            prop_assert!(together.is_in(line.as_bytes()));
            let covered = together.cover(line.as_bytes()).0.unwrap();
            prop_assert_eq!(covered.len(), line.len());
            prop_assert!(!together.is_in(&covered), "{}", String::from_utf8_lossy(&covered));
        }
    }
}
