//! Needles: what a text must contain to match a pattern.
//!
//! An expression is reduced to alternatives. Each alternative is a list of runs that must all occur, and each run is a sequence
//! of characters. In a record each character may be literal or escaped.
//!
//! ```text
//! colou?r (red|blue)      one alternative: "colo", "r "
//! disk full|no space      two: "disk full"; "no space"
//! ```

use std::{collections::BTreeSet, fmt::Write as _, ops::Range};

use memchr::memmem::Finder;
use regex::bytes::Regex;
use regex_syntax::hir::{Class, Hir, HirKind};

use super::pattern::Pattern;
use crate::store::Sieve;

/// A run: for each position, the characters that are possible there.
pub(super) type Run = Vec<Vec<char>>;

/// The maximum number of characters of a class that counts as a position of a run.
const CLASS: usize = 8;
/// The maximum number of alternatives.
const ALTERNATIVES: usize = 32;
/// The maximum number of repetitions that are expanded.
const REPEATED: u32 = 8;
/// The maximum length of a needle.
const LONG: usize = 24;

/// Returns the alternatives of a pattern; one without runs excludes nothing.
pub(super) fn alternatives(pattern: &Pattern) -> Vec<Vec<Run>> {
    let mut found = Vec::new();
    gather(pattern.hir(), &mut found);
    if found.len() > ALTERNATIVES { vec![Vec::new()] } else { found }
}

fn gather(hir: &Hir, found: &mut Vec<Vec<Run>>) {
    match hir.kind() {
        HirKind::Alternation(several) => several.iter().for_each(|one| gather(one, found)),
        HirKind::Capture(capture) => gather(&capture.sub, found),
        _ => {
            let mut runs = Runs::default();
            runs.add(hir);
            runs.end();
            found.push(runs.done);
        }
    }
}

/// The runs of an alternative.
#[derive(Default)]
struct Runs {
    done: Vec<Run>,
    run: Run,
}

impl Runs {
    fn end(&mut self) {
        if !self.run.is_empty() {
            self.done.push(std::mem::take(&mut self.run));
        }
    }

    fn add(&mut self, hir: &Hir) {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
                Ok(text) => self.run.extend(text.chars().map(|c| vec![c])),
                Err(_) => self.end(),
            },
            HirKind::Class(class) => match few(class) {
                Some(chars) => self.run.push(chars),
                None => self.end(),
            },
            HirKind::Capture(capture) => self.add(&capture.sub),
            HirKind::Concat(parts) => parts.iter().for_each(|part| self.add(part)),
            HirKind::Repetition(repetition) => {
                let is_fixed = repetition.max == Some(repetition.min);
                for _ in 0..repetition.min.min(REPEATED) {
                    self.add(&repetition.sub);
                }
                if !is_fixed || repetition.min > REPEATED {
                    self.end();
                }
            }
            HirKind::Alternation(_) => self.end(),
        }
    }
}

/// Returns the characters of a class, if there are few.
fn few(class: &Class) -> Option<Vec<char>> {
    let mut chars = Vec::new();
    let mut add = |from: char, to: char| {
        for c in from..=to {
            if chars.len() == CLASS {
                return None;
            }
            chars.push(c);
        }
        Some(())
    };
    match class {
        Class::Unicode(class) => {
            class.iter().try_for_each(|range| add(range.start(), range.end()))?;
        }
        Class::Bytes(class) => {
            class.iter().try_for_each(|range| add(range.start().into(), range.end().into()))?;
        }
    }
    (!chars.is_empty()).then_some(chars)
}

/// Returns true if a JSON string can contain the character in only two forms, as it is or as one escape. U+FFFD also represents
/// bytes that are not UTF-8, and unpaired surrogates.
fn is_plain(c: char) -> bool {
    !c.is_control() && !matches!(c, '"' | '\\' | '/' | char::REPLACEMENT_CHARACTER)
}

/// Returns a sieve for records that may contain a matching text or one of the marks.
pub(super) fn sieve(pattern: &Pattern, marks: &[&str]) -> Sieve {
    let needles: Option<Vec<Run>> =
        alternatives(pattern).iter().map(|runs| longest(runs)).collect();
    let searches = needles.and_then(|needles| {
        let marks = marks.iter().map(|mark| regex_syntax::escape(mark));
        let spelt = needles.iter().map(spell).chain(marks);
        let raw = Regex::new(&spelt.collect::<Vec<_>>().join("|")).ok()?;
        let raw = move |bytes: &[u8]| raw.find(bytes).map(|found| found.range());
        let escaped = Escaped::of(needles.iter().flatten().flatten().copied().collect());
        Some([Box::new(raw) as Box<Find>, Box::new(move |bytes| escaped.find(bytes))])
    });
    // If nothing is known about a match, any record may have one.
    searches.map_or_else(Sieve::open, Sieve::new)
}

/// A search in bytes.
type Find = dyn Fn(&[u8]) -> Option<Range<usize>> + Send + Sync;

/// Searches for any character of a set, written as a `\uXXXX` escape.
struct Escaped {
    /// Their UTF-16 units, ascending; for a surrogate pair, its first unit.
    units: Vec<u16>,
    /// The common prefix of all the escapes.
    head: Finder<'static>,
}

impl Escaped {
    /// The number of hexadecimal digits.
    const DIGITS: usize = 4;

    fn of(chars: BTreeSet<char>) -> Self {
        let unit = |c: char| c.encode_utf16(&mut [0; 2]).first().copied().unwrap_or_default();
        let units: BTreeSet<u16> = chars.into_iter().map(unit).collect();
        let digits = |unit: Option<&u16>| format!("{:04x}", unit.copied().unwrap_or_default());
        let (first, last) = (digits(units.first()), digits(units.last()));
        let shared = first.chars().zip(last.chars());
        // A hexadecimal digit that is a letter may be upper or lower case.
        let shared = shared.take_while(|(one, other)| one == other && one.is_ascii_digit());
        let head: String = "\\u".chars().chain(shared.map(|(digit, _)| digit)).collect();
        Self { units: units.into_iter().collect(), head: Finder::new(&head).into_owned() }
    }

    fn find(&self, bytes: &[u8]) -> Option<Range<usize>> {
        let is_wanted = |at: usize| {
            let digits = bytes.get(at + 2..at + 2 + Self::DIGITS)?;
            let digits = std::str::from_utf8(digits).ok()?;
            let unit = u16::from_str_radix(digits, 16).ok()?;
            self.units.binary_search(&unit).ok()
        };
        let at = self.head.find_iter(bytes).find(|at| is_wanted(*at).is_some())?;
        Some(at..at + 2 + Self::DIGITS)
    }
}

/// Returns the longest part of some runs that a record contains as it is, or escaped.
fn longest(runs: &[Run]) -> Option<Run> {
    let parts = runs.iter().flat_map(|run| run.split(|chars| !chars.iter().all(|c| is_plain(*c))));
    let longest = parts.max_by_key(|part| part.len()).filter(|part| !part.is_empty())?;
    Some(longest.iter().take(LONG).cloned().collect())
}

/// Writes a run as a regular expression.
fn spell(run: &Run) -> String {
    let mut spelt = String::new();
    for chars in run {
        let escaped: Vec<String> =
            chars.iter().map(|c| regex_syntax::escape(c.encode_utf8(&mut [0; 4]))).collect();
        if let [one] = escaped.as_slice() {
            spelt.push_str(one);
        } else {
            let _ = write!(spelt, "(?:{})", escaped.join("|"));
        }
    }
    spelt
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Case, Manner};

    fn told(words: &str, case: Case) -> Vec<Vec<String>> {
        let pattern = Pattern::new(words, Manner::Regex, case).unwrap();
        let run = |run: &Run| run.iter().filter_map(|chars| chars.first()).collect::<String>();
        alternatives(&pattern).iter().map(|runs| runs.iter().map(run).collect()).collect()
    }

    #[test]
    fn an_expression_says_what_must_be_there() {
        let check = |words, expected: &[&[&str]]| {
            assert_eq!(told(words, Case::Told), expected, "{words}");
        };
        check("disk full", &[&["disk full"]]);
        check("disk full|no (space)", &[&["disk full"], &["no space"]]);
        check("colou?r (red|blue)", &[&["colo", "r "]]);
        check("^fn [a-z]+_test$", &[&["fn ", "_test"]]);
        check("ab+c", &[&["ab", "c"]]);
        check("(ab){2}c", &[&["ababc"]]);
        check(".*", &[&[]]);
        assert_eq!(told("Disk", Case::Ignored), [["DISK"]]);
    }

    #[test]
    fn a_sieve_lets_through_what_may_match_however_it_is_escaped() {
        let passes = |words: &str, line: &str| {
            let pattern = Pattern::new(words, Manner::Literal, Case::Smart).unwrap();
            sieve(&pattern, &["bashExecution"]).passes(line.as_bytes())
        };
        assert!(passes("disk full", r#"{"text":"the DISK full"}"#));
        assert!(!passes("disk full", r#"{"text":"the disk is full"}"#));
        assert!(passes("日志", r#"{"text":"\u8bfb\u65E5\u5fd7"}"#));
        assert!(passes("日志", r#"{"text":"日志"}"#));
        assert!(!passes("日志", r#"{"text":"日记 \u8bfb"}"#));
        assert!(passes("a\"b", r#"{"text":"a\"b"}"#));
        assert!(passes("😀 x", r#"{"text":"\ud83d\ude00 x"}"#));
        assert!(passes("\"", "{}"));
        assert!(passes("disk", r#"{"text":"d\u0069sk"}"#));
        // Words that are no part of the record are part of its message.
        assert!(passes("Ran `ls`", r#"{"role":"bashExecution","command":"ls"}"#));
        // What is shown in place of half a pair is found there.
        assert!(passes("cut \u{fffd}", r#"{"text":"cut \ud83d"}"#));
        assert!(passes("\u{fffd}", r#"{"text":"cut \ud83d"}"#));
        assert!(!passes("cut \u{fffd}", r#"{"text":"\ud83d"}"#));
    }
}
