//! Words: what an index knows of a text, and what it can tell of a pattern.
//!
//! A word is a row of letters and digits, in small letters; of a script without spaces, two signs that stand next to each other;
//! or a sign beyond ASCII that is neither. A long row, such as a hash, is taken apart into stretches that overlap.
//!
//! ```text
//! text      the fooBar/日志文件 → 200            pattern   oba
//! words     the foobar 日志 志文 文件 → 200       looked up in the lexicon: foobar
//! ```
//!
//! Invariant: a text with a match has a word of each list that a pattern asks for.

use std::{cmp::Reverse, collections::BTreeSet};

use super::{
    needle::{Run, alternatives},
    pattern::Pattern,
};

/// How long a row of letters may be and still be one word.
const LONG: usize = 40;
/// How far apart stretches of a longer one begin; what is shorter is within one of them.
const STEP: usize = LONG / 2;
/// How many stretches an entry may have; what has more is found by a word of its own.
const STRETCHES: usize = 2048;
/// The word of an entry that has too many, or of which no others can be told.
pub(crate) const CROWDED: &str = "\u{e000}";
/// How many words a part may stand for.
const MEANT: usize = 1000;
/// How many parts of an alternative are looked up: so many leave little to look through, and more only take time.
const PARTS: usize = 64;

/// What a character is in a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// A letter, or a digit of ASCII.
    Letter,
    /// A sign of a script without spaces.
    Unspaced,
    /// Another sign beyond ASCII.
    Sign,
    /// What parts words.
    None,
}

fn sort(c: char) -> Sort {
    match c {
        'a'..='z' | '0'..='9' => Sort::Letter,
        '\0'..='\u{7f}' => Sort::None,
        '\u{e00}'..='\u{eff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{3005}'..='\u{3007}'
        | '\u{3040}'..='\u{312f}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}' => Sort::Unspaced,
        // Only what a regular expression takes for part of a word, so that what ends one there ends one here.
        c if c.is_alphabetic() => Sort::Letter,
        c if c.is_control() || c == '\u{e000}' => Sort::None,
        _ => Sort::Sign,
    }
}

/// Returns the letter by which all that differ from it in case only are known.
fn plain(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    let only = |mut chars: Box<dyn Iterator<Item = char>>| match (chars.next(), chars.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    };
    let upper = only(Box::new(c.to_uppercase())).unwrap_or(c);
    only(Box::new(upper.to_lowercase())).unwrap_or(c)
}

/// Gathers the words of texts.
#[derive(Default)]
pub(crate) struct Gathered {
    pub(crate) words: BTreeSet<String>,
    stretches: usize,
    row: Vec<char>,
}

impl Gathered {
    /// Adds the words of a text.
    pub(crate) fn add(&mut self, text: &str) {
        let mut last = Sort::None;
        for c in text.chars().map(plain) {
            let sort = sort(c);
            if sort != last {
                self.end(last);
                last = sort;
            }
            match sort {
                Sort::Letter | Sort::Unspaced => self.row.push(c),
                Sort::Sign => self.keep(&[c]),
                Sort::None => {}
            }
        }
        self.end(last);
    }

    fn end(&mut self, sort: Sort) {
        let row = std::mem::take(&mut self.row);
        match sort {
            Sort::Unspaced if row.len() > 1 => row.windows(2).for_each(|pair| self.keep(pair)),
            _ if row.len() <= LONG => self.keep(&row),
            _ => {
                for from in (0..row.len() - STEP).step_by(STEP) {
                    self.stretches += 1;
                    if self.stretches > STRETCHES {
                        self.words.insert(CROWDED.to_owned());
                        break;
                    }
                    let end = (from + LONG).min(row.len());
                    self.keep(row.get(from..end).unwrap_or_default());
                }
            }
        }
        self.row = row;
        self.row.clear();
    }

    fn keep(&mut self, word: &[char]) {
        if !word.is_empty() {
            self.words.insert(word.iter().collect());
        }
    }
}

/// A part of a pattern, as it may stand in a word.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Part {
    text: String,
    /// Whether the word begins with it, and whether it ends so.
    begins: bool,
    ends: bool,
}

impl Part {
    /// Returns the words of a list that it may be part of, or that it is; nothing if they are too many.
    pub(crate) fn meant(&self, lexicon: &str, found: &mut BTreeSet<String>) -> bool {
        let Self { text, begins, ends } = self;
        let (before, behind) = (if *begins { "\n" } else { "" }, if *ends { "\n" } else { "" });
        let wanted = format!("{before}{text}{behind}");
        let mut from = 0;
        let finder = memchr::memmem::Finder::new(&wanted);
        while let Some(at) = lexicon.as_bytes().get(from..).and_then(|rest| finder.find(rest)) {
            let at = from + at + before.len();
            let start = memchr::memrchr(b'\n', &lexicon.as_bytes()[..at]).map_or(0, |at| at + 1);
            let rest = lexicon.get(at..).unwrap_or_default();
            let end = at + memchr::memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
            found.extend(lexicon.get(start..end).map(str::to_owned));
            if found.len() > MEANT {
                return false;
            }
            from = end;
        }
        true
    }

    /// Returns the part as a word, if it is one.
    pub(crate) fn word(&self) -> Option<&str> {
        (self.begins && self.ends).then_some(&self.text)
    }
}

/// Returns the parts of words that a text with a match of each alternative has; nothing if there is one without any.
pub(crate) fn parts(pattern: &Pattern) -> Option<Vec<Vec<Part>>> {
    let alternatives = alternatives(pattern);
    let parts = alternatives.iter().map(|runs| {
        let is_word = pattern.is_of_words();
        let mut parts: Vec<Part> = runs.iter().flat_map(|run| parts_of(run, is_word)).collect();
        // The longest tell most.
        parts.sort_by_cached_key(|part| (Reverse(part.text.len()), part.clone()));
        parts.dedup();
        parts.truncate(PARTS);
        (!parts.is_empty()).then_some(parts)
    });
    parts.collect()
}

/// Returns the parts of a run; what is around it is not known, unless it is of whole words.
fn parts_of(run: &Run, is_word: bool) -> Vec<Part> {
    // A place at which several letters may stand parts words, unless they differ in case only.
    let place = |chars: &Vec<char>| {
        let mut plain = chars.iter().map(|c| plain(*c));
        let first = plain.next()?;
        plain.all(|c| c == first).then_some(first)
    };
    let places: Vec<Option<char>> = run.iter().map(place).collect();
    let sorts: Vec<Option<Sort>> = places.iter().map(|place| place.map(sort)).collect();
    let mut parts = Vec::new();
    let mut from = 0;
    for alike in sorts.chunk_by(|one, other| one == other) {
        let (start, end) = (from, from + alike.len());
        from = end;
        let text: Vec<char> =
            places.get(start..end).unwrap_or_default().iter().flatten().copied().collect();
        // A place of which nothing is known may hold a letter too.
        let is_end = |next: Option<&Option<Sort>>| match next {
            Some(known) => known.is_some(),
            None => is_word,
        };
        let begins = is_end(start.checked_sub(1).and_then(|before| sorts.get(before)));
        let ends = is_end(sorts.get(end));
        let part = |text: &[char], begins, ends| Part { text: text.iter().collect(), begins, ends };
        match alike.first().copied().flatten() {
            Some(Sort::Letter) if text.len() > STEP && !(begins && ends && text.len() <= LONG) => {
                let head = text.get(..STEP).unwrap_or_default();
                parts.push(part(head, begins && text.len() <= LONG, false));
            }
            Some(Sort::Letter) => parts.push(part(&text, begins, ends)),
            Some(Sort::Unspaced) if text.len() == 1 => parts.push(part(&text, false, false)),
            Some(Sort::Unspaced) => {
                parts.extend(text.windows(2).map(|pair| part(pair, true, true)));
            }
            Some(Sort::Sign) => parts.extend(text.iter().map(|c| part(&[*c], true, true))),
            Some(Sort::None) | None => {}
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Case, Manner};

    fn words(text: &str) -> Vec<String> {
        let mut gathered = Gathered::default();
        gathered.add(text);
        gathered.words.into_iter().collect()
    }

    #[test]
    fn a_text_has_words_pairs_of_signs_and_signs() {
        assert_eq!(words("The fooBar/Baz_2 → x"), ["2", "baz", "foobar", "the", "x", "→"]);
        assert_eq!(words("读日志文件 a中b"), ["a", "b", "中", "志文", "文件", "日志", "读日"]);
        assert_eq!(words("ΣΑΣ ſ K ÉÉ"), ["k", "s", "éé", "σασ"]);
        assert_eq!(words(""), [""; 0]);
        let long: String = ('a'..='z').cycle().take(70).collect();
        let stretches = words(&long);
        assert!(stretches.iter().all(|word| word.len() <= LONG));
        for (at, _) in long.char_indices().take(70 - STEP + 1) {
            let part = &long[at..at + STEP];
            assert!(stretches.iter().any(|word| word.contains(part)), "{part}");
        }
    }

    #[test]
    fn a_long_pattern_asks_for_few_words_each_once() {
        let words: Vec<String> = (0..9000).map(|n| format!("w{}", n % 3000)).collect();
        let pattern = Pattern::new(&words.join(" "), Manner::Literal, Case::Smart).unwrap();
        let parts = parts(&pattern).unwrap().concat();
        assert_eq!(parts.len(), PARTS);
        assert!(parts.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn a_text_with_a_match_has_what_a_pattern_asks_for() {
        let texts = [
            "fn parse_line(text: &str) -> Vec<Line>",
            "读取日志文件，然后继续",
            "a→b",
            "ERROR: NO SUCH FILE",
            "deadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeef",
            "É́clair ﬁn ǅ İ ß ẞ",
            "O(n²) of ½ a ٣٤ m³, x٣ Ⅳ ⓐ a_b 1a²b",
            "x",
            "C:\\a\\b",
        ];
        for text in texts {
            let mut gathered = Gathered::default();
            gathered.add(text);
            let lexicon: String =
                gathered.words.iter().flat_map(|word| ["\n", word]).collect::<String>() + "\n";
            let chars: Vec<char> = text.chars().collect();
            for from in 0..chars.len() {
                for to in from + 1..=chars.len() {
                    let part: String = chars[from..to].iter().collect();
                    let manners = [Manner::Literal, Manner::Word];
                    for (manner, case) in manners
                        .into_iter()
                        .flat_map(|manner| [(manner, Case::Told), (manner, Case::Ignored)])
                    {
                        let pattern = Pattern::new(&part, manner, case).unwrap();
                        if !pattern.is_match(text) {
                            continue;
                        }
                        for part in parts(&pattern).into_iter().flatten().flatten() {
                            let mut found = BTreeSet::new();
                            assert!(part.meant(&lexicon, &mut found));
                            assert!(!found.is_empty(), "{text:?} {part:?}");
                        }
                    }
                }
            }
        }
    }
}
