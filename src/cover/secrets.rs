//! Many secrets that are looked for together: a text is read once for all of them, and then for those alone that may stand in it.

use std::collections::BTreeSet;

use aho_corasick::AhoCorasick;

use super::{place, secret::Secret, text::unescaped};

/// How an escape of any character by its number begins.
const ESCAPED: &[u8] = b"\\u00";

/// Secrets, in the order in which they are covered.
#[derive(Default)]
pub(crate) struct Secrets {
    all: Vec<Secret>,
    /// Finds what each of them has some of, and escapes.
    needles: Option<AhoCorasick>,
    /// The secret of each needle, by its number.
    of: Vec<usize>,
    /// Those without needles: any text may have them.
    anywhere: BTreeSet<usize>,
}

impl Secrets {
    pub(crate) fn new(all: Vec<Secret>) -> Self {
        let mut secrets = Self::default();
        let mut needles = Vec::new();
        for (n, secret) in all.iter().enumerate() {
            match secret.needles() {
                Some(own) => {
                    secrets.of.extend(std::iter::repeat_n(n, own.len()));
                    needles.extend(own);
                }
                None => _ = secrets.anywhere.insert(n),
            }
        }
        needles.extend((!all.is_empty()).then(|| ESCAPED.to_vec()));
        secrets.needles = AhoCorasick::new(needles).ok();
        if secrets.needles.is_none() {
            secrets.anywhere = (0..all.len()).collect();
        }
        Self { all, ..secrets }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Secret> {
        self.all.iter()
    }

    /// Returns what finds bytes of which each line that has any of them has some; nothing if any line may have one.
    pub(crate) fn needles(&self) -> Option<&AhoCorasick> {
        self.needles.as_ref().filter(|_| self.anywhere.is_empty())
    }

    /// Returns whether any of them stands in a line.
    pub(crate) fn is_in(&self, line: &[u8]) -> bool {
        self.nearby(line).into_iter().filter_map(|n| self.all.get(n)).any(|one| one.is_in(line))
    }

    /// Returns whether bytes that end too early end within any of them.
    pub(crate) fn are_cut_by(&self, bytes: &[u8]) -> bool {
        let mut text = bytes.to_vec();
        for _ in 0..=place::LEVELS {
            // The end may be within an escape, too.
            let whole = text.len().saturating_sub(ESCAPED.len() + 1);
            let escape = text.iter().skip(whole).position(|byte| *byte == b'\\');
            let before = escape.and_then(|at| text.get(..whole + at)).unwrap_or(&text);
            let mut all = self.all.iter();
            if all.any(|secret| secret.begins_at_end(&text) || secret.begins_at_end(before)) {
                return true;
            }
            if !text.contains(&b'\\') {
                break;
            }
            text = unescaped(&text);
        }
        false
    }

    /// Returns a line with all of them covered, one after the other, if any stands there, and which do.
    pub(crate) fn cover(&self, line: &[u8]) -> (Option<Vec<u8>>, Vec<usize>) {
        let (mut covered, mut found): (Option<Vec<u8>>, Vec<usize>) = (None, Vec::new());
        let mut waiting = self.nearby(line);
        while let Some(n) = waiting.pop_first() {
            let now = covered.as_deref().unwrap_or(line);
            let Some(next) = self.all.get(n).and_then(|secret| secret.cover(now)) else { continue };
            // What stands in its place may be a part of the next one.
            waiting = self.nearby(&next).split_off(&(n + 1));
            found.push(n);
            covered = Some(next);
        }
        (covered, found)
    }

    /// Returns those that may stand in a line: each of them has a needle in it, or in one of the texts that are escaped within it.
    fn nearby(&self, line: &[u8]) -> BTreeSet<usize> {
        let mut nearby = self.anywhere.clone();
        place::places(line, true, &mut |text, _| {
            let found = self.needles.iter().flat_map(|needles| needles.find_overlapping_iter(text));
            nearby.extend(found.filter_map(|found| self.of.get(found.pattern().as_usize())));
        });
        nearby
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
    fn only_those_that_may_stand_in_a_line_are_looked_for_there() {
        let names: Vec<String> = (0..500).map(|n| format!("hunter{n:04}!")).collect();
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        let check = |names: &[&str], line: &str, nearby: &[usize]| {
            let found = secrets(names).nearby(line.as_bytes());
            assert_eq!(found.into_iter().collect::<Vec<_>>(), nearby, "{line}");
        };
        check(&names, r#"{"a":"\u001b[1mhunter9999!"}"#, &[]);
        check(&names, r#"{"a":"\u001b[1mhunter0007!"}"#, &[7]);
        check(&names, r#"{"a":"{\"b\":\"\\u0068unter0008\\u0021 hunter0007!\"}"}"#, &[7, 8]);
        check(&names, r#"{"a":"aHVudGVyMDAwOSE="}"#, &[9]);
        // Any character of this one may be spelt otherwise.
        names.push("!!!!");
        check(&names, r#"{"a":"hunter0007!"}"#, &[7, 500]);
        assert!(secrets(&names).needles().is_none());
        assert!(secrets(&[]).needles().is_some_and(|needles| !needles.is_match(b"\\u00e9")));
    }

    #[test]
    fn what_stands_in_the_place_of_one_may_be_the_next() {
        let secrets = secrets(&["hunter2 hunter", "redacted"]);
        let (covered, found) = secrets.cover(br#"{"a":"hunter2 hunter"}"#);
        assert_eq!(covered.as_deref(), Some(&br#"{"a":"[********]****"}"#[..]));
        assert_eq!(found, [0, 1]);
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
            r#"{"a":"https://x/?correct%2Fho"#,
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
        fn together_they_are_covered_as_one_after_the_other(
            (first, line) in secret_in_line(),
            (second, other) in secret_in_line(),
        ) {
            let line = format!("{line}{other}{second}");
            let all: Vec<Secret> =
                [&second, &first, "redacted", "!!!!"].into_iter().filter_map(|said| Secret::new(said, &FRAME)).collect();
            let mut expected = (None::<Vec<u8>>, Vec::new());
            for (n, secret) in all.iter().enumerate() {
                if let Some(next) = secret.cover(expected.0.as_deref().unwrap_or(line.as_bytes())) {
                    expected.0 = Some(next);
                    expected.1.push(n);
                }
            }
            let together = Secrets::new(all);
            prop_assert!(together.is_in(line.as_bytes()));
            prop_assert_eq!(together.cover(line.as_bytes()), expected);
        }
    }
}
