//! Words: the words of a text that an index stores, and the words that a pattern implies.
//!
//! A word is a sequence of letters and digits, in lower case; in a script without spaces, two adjacent characters; or any other
//! character beyond ASCII. A long sequence, such as a hash, is split into overlapping pieces. The parts of a camel-case word are
//! words as well, and so is a word without its accents.
//!
//! ```text
//! text      the fooBar/日志文件 → Zürich        pattern   oba
//! words     the foobar 日志 志文 文件 → zürich   matches the word: foobar
//!           besides: foo bar zurich
//! ```
//!
//! Invariant: a text with a match has at least one word for each part that the pattern implies.

use std::{cmp::Reverse, ops::Range};

use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark};

use super::{
    needle::{Run, alternatives},
    pattern::Pattern,
};
use crate::{
    model::Lookup,
    store::{WEIGHTS, Weight},
};

/// The maximum length of a word in characters.
const LONG: usize = 40;
/// The distance between the starts of overlapping pieces. Anything shorter than this is within one piece.
const STEP: usize = LONG / 2;
/// The maximum number of pieces of an entry; an entry with more gets the word [`CROWDED`] instead.
const STRETCHES: usize = 2048;
/// The word of an entry that has too many pieces, or is damaged.
pub(crate) const CROWDED: &str = "\u{e000}";
/// The maximum number of parts that are looked up per alternative. More would take time without narrowing the result much.
const PARTS: usize = 64;
/// The maximum number of camel-case parts of a word; data in base64 has more.
const HUMPS: usize = 6;
/// The BM25 constants: the saturation for repeated words, and the penalty for long texts.
const AGAIN: f32 = 1.2;
const LENGTH: f32 = 0.75;
/// The number of words of a text of average length.
const USUAL: f32 = 150.0;

/// What a character counts as in a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// A letter, or an ASCII digit.
    Letter,
    /// A character of a script without spaces.
    Unspaced,
    /// Another character beyond ASCII.
    Sign,
    /// A separator.
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
        // The same letters that regular expressions count as part of a word, so that word boundaries agree.
        c if c.is_alphabetic() || is_combining_mark(c) => Sort::Letter,
        c if c.is_control() || c == '\u{e000}' => Sort::None,
        _ => Sort::Sign,
    }
}

/// Returns one character for all that differ only in case.
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

/// Returns a word without its accents, if it has any.
pub(super) fn bare(word: &str) -> Option<String> {
    if word.is_ascii() {
        return None;
    }
    let mut bare = String::with_capacity(word.len());
    for c in word.nfd().filter(|c| !is_combining_mark(*c)).nfc() {
        match c {
            'ß' => bare.push_str("ss"),
            'æ' => bare.push_str("ae"),
            'œ' => bare.push_str("oe"),
            'ø' => bare.push('o'),
            'đ' => bare.push('d'),
            'ł' => bare.push('l'),
            'ı' => bare.push('i'),
            c => bare.push(c),
        }
    }
    (bare != word).then_some(bare)
}

/// The form of a word in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The whole word.
    Whole,
    /// A piece of a longer sequence.
    Stretch,
    /// A part of the previous word.
    Besides,
}

/// Calls `each` with each word of a text and its range.
pub(super) fn words_of(text: &str, mut each: impl FnMut(&str, Range<usize>, Form)) {
    let mut row = Row::default();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        row.begin(at);
        let is_letter = |byte: &u8| byte.is_ascii_alphanumeric();
        let ascii = rest.bytes().position(|byte| !is_letter(&byte)).unwrap_or(rest.len());
        if rest.as_bytes().get(ascii).is_none_or(u8::is_ascii) {
            for byte in rest.bytes().take(ascii) {
                row.push(char::from(byte.to_ascii_lowercase()), byte.is_ascii_uppercase());
            }
            row.end(Sort::Letter, at + ascii, &mut each);
            at += ascii + 1;
            continue;
        }
        let (mut last, mut end) = (None, text.len());
        for (n, c) in rest.char_indices() {
            let small = plain(c);
            let sort = sort(small);
            if last.is_some_and(|last| last != sort || sort == Sort::Sign) {
                end = at + n;
                break;
            }
            last = Some(sort);
            if sort != Sort::None {
                row.places.push((at + n, row.text.len()));
                row.push(small, c != small);
            }
        }
        row.end(last.unwrap_or(Sort::None), end, &mut each);
        at = end;
    }
}

/// Consecutive characters of one sort.
#[derive(Default)]
struct Row {
    /// Its offset in the text.
    from: usize,
    text: String,
    /// The offsets of each character, in the text and in this row, if some are beyond ASCII.
    places: Vec<(usize, usize)>,
    /// Its length in characters.
    length: usize,
    /// The characters that start a camel-case part: a capital after a lower-case letter, and the last of several capitals.
    humps: Vec<usize>,
    /// Whether the last two characters are capitals.
    capitals: (bool, bool),
}

impl Row {
    fn begin(&mut self, from: usize) {
        (self.from, self.length, self.capitals) = (from, 0, (false, false));
        self.text.clear();
        self.places.clear();
        self.humps.clear();
    }

    fn push(&mut self, small: char, is_capital: bool) {
        let n = self.length;
        match (self.capitals, is_capital) {
            ((_, false), true) if n > 0 => self.humps.push(n),
            ((true, true), false) if n > 1 => self.humps.push(n - 1),
            _ => {}
        }
        self.capitals = (self.capitals.1, is_capital);
        self.text.push(small);
        self.length += 1;
    }

    /// Calls `each` with the words of the row, which ends at offset `end`.
    fn end(&self, sort: Sort, end: usize, each: &mut impl FnMut(&str, Range<usize>, Form)) {
        if self.length == 0 {
            return;
        }
        let mut tell = |from: usize, to: usize, form| {
            let place = |n: usize| match self.places.get(n) {
                _ if n == self.length => (end, self.text.len()),
                Some(place) => *place,
                None => (self.from + n, n),
            };
            let (begin, behind) = (place(from), place(to));
            each(self.text.get(begin.1..behind.1).unwrap_or_default(), begin.0..behind.0, form);
        };
        let all = self.length;
        match sort {
            Sort::Unspaced if all > 1 => (0..all - 1).for_each(|n| tell(n, n + 2, Form::Whole)),
            _ if all <= LONG => {
                tell(0, all, Form::Whole);
                if sort == Sort::Letter && (1..HUMPS).contains(&self.humps.len()) {
                    let mut from = 0;
                    for &hump in self.humps.iter().chain([&all]) {
                        if hump > from + 1 {
                            tell(from, hump, Form::Besides);
                        }
                        from = hump;
                    }
                }
            }
            _ => (0..all - STEP)
                .step_by(STEP)
                .for_each(|from| tell(from, (from + LONG).min(all), Form::Stretch)),
        }
    }
}

/// The words of an entry, each with its weight.
pub(crate) type Words = Vec<(String, Weight)>;

/// The words of an entry, and how often each occurs.
#[derive(Default)]
pub(crate) struct Gathered {
    words: Lookup<String, u32>,
    count: u32,
    stretches: usize,
    word: String,
}

impl Gathered {
    /// Adds the words of a text.
    pub(crate) fn add(&mut self, text: &str) {
        words_of(text, |word, _, form| {
            self.stretches += usize::from(form == Form::Stretch);
            self.count += u32::from(form == Form::Whole);
            let is_too_much = form == Form::Stretch && self.stretches > STRETCHES;
            self.keep(if is_too_much { CROWDED } else { word });
            if let Some(bare) = bare(word) {
                self.keep(&bare);
            }
        });
    }

    fn keep(&mut self, word: &str) {
        self.word.clear();
        self.word.push_str(word);
        match self.words.get_mut(&self.word) {
            Some(times) => *times += 1,
            None => _ = self.words.insert(self.word.clone(), 1),
        }
    }

    /// Returns the words, each with its weight.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a weight is no exact number, and was clamped"
    )]
    pub(crate) fn weighed(self) -> Words {
        let length = self.count as f32 / USUAL;
        let often = AGAIN * (1.0 - LENGTH + LENGTH * length);
        // The square root preserves the differences between small values.
        let weight = |times: u32| {
            let share = times as f32 / (times as f32 + often);
            (share.sqrt() * f32::from(WEIGHTS)).round().clamp(1.0, f32::from(WEIGHTS)) as Weight
        };
        self.words.sorted().into_iter().map(|(word, times)| (word, weight(times))).collect()
    }
}

/// Returns the score of a weight, from 0 to 1.
pub(super) fn share(weight: Weight) -> f32 {
    (f32::from(weight) / f32::from(WEIGHTS)).powi(2)
}

/// A part of a pattern, as it may occur in a word.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Part {
    text: String,
    /// Whether it must be at the start of a word, and at its end.
    begins: bool,
    ends: bool,
}

impl Part {
    /// Returns a range of words that contains all its matches: the first and the last word.
    pub(crate) fn among(&self) -> (String, String) {
        match (self.begins, self.ends) {
            (true, true) => (self.text.clone(), self.text.clone()),
            (true, false) => (self.text.clone(), format!("{}\u{10ffff}", self.text)),
            _ => (String::new(), "\u{10ffff}".to_owned()),
        }
    }

    /// Returns the indexes of the words that contain it. `words` has a line feed before and after each word.
    pub(crate) fn chosen(&self, words: &str) -> Vec<usize> {
        let Self { text, begins, ends } = self;
        let (before, behind) = (if *begins { "\n" } else { "" }, if *ends { "\n" } else { "" });
        let wanted = format!("{before}{text}{behind}");
        let mut chosen: Vec<usize> = Vec::new();
        let (mut from, mut counted, mut n) = (0, 0, 0);
        let finder = memchr::memmem::Finder::new(&wanted);
        while let Some(at) = words.as_bytes().get(from..).and_then(|rest| finder.find(rest)) {
            let at = from + at + before.len();
            n += memchr::memchr_iter(b'\n', &words.as_bytes()[counted..at]).count();
            counted = at;
            chosen.push(n - 1);
            let rest = words.as_bytes().get(at..).unwrap_or_default();
            from = at + memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        }
        chosen
    }
}

/// Returns, for each alternative of a pattern, the parts that a matching text contains; none if an alternative has no parts.
pub(crate) fn parts(pattern: &Pattern) -> Option<Vec<Vec<Part>>> {
    let alternatives = alternatives(pattern);
    let parts = alternatives.iter().map(|runs| {
        let is_word = pattern.is_of_words();
        let mut parts: Vec<Part> = runs.iter().flat_map(|run| parts_of(run, is_word)).collect();
        // The longest are the most selective.
        parts.sort_by_cached_key(|part| (Reverse(part.text.len()), part.clone()));
        parts.dedup();
        parts.truncate(PARTS);
        (!parts.is_empty()).then_some(parts)
    });
    parts.collect()
}

/// Returns the parts of a run. Its surroundings are unknown, unless it consists of whole words.
fn parts_of(run: &Run, is_word: bool) -> Vec<Part> {
    // A position with several possible letters splits the run, unless they differ only in case.
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
        // An unknown position may be a letter too.
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
        gathered.weighed().into_iter().map(|(word, _)| word).collect()
    }

    #[test]
    fn a_text_has_words_pairs_of_signs_and_signs() {
        let expected = ["2", "bar", "baz", "foo", "foobar", "the", "x", "→"];
        assert_eq!(words("The fooBar/Baz_2 → x"), expected);
        assert_eq!(words("读日志文件 a中b"), ["a", "b", "中", "志文", "文件", "日志", "读日"]);
        assert_eq!(words("ΣΑΣ ſ K ÉÉ"), ["ee", "k", "s", "éé", "σασ"]);
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
        let words: Vec<String> = (0..1500).map(|n| format!("w{}", n % 500)).collect();
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
            let lexicon = format!("\n{}\n", words(text).join("\n"));
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
                            let chosen = part.chosen(&lexicon);
                            assert!(!chosen.is_empty(), "{text:?} {part:?}");
                        }
                    }
                }
            }
        }
    }
}
