//! Queries: words in any order, ignoring case, accents and endings.
//!
//! ```text
//! query     the parseLine "dead letter" retries
//! terms     parse line, dead letter, retri-      in one message; the words of a phrase adjacent and exact
//! besides   parseline                            raises the score, but may be missing
//! ```
//!
//! Invariant: the terms found in a text are the same whether or not an index covers it.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use super::{
    pattern::Unfit,
    words::{Form, bare, words_of},
};

/// The maximum length of a query in bytes, and the maximum number of terms.
const LONGEST: usize = 256 << 10;
const TERMS: usize = 1000;
/// The weight of a word with another ending.
const OTHER_ENDING: f32 = 0.8;
/// The minimum length of a stem.
const SHORTEST: usize = 3;
/// The endings that are stripped, longest first.
const ENDINGS: [&str; 24] = [
    "ations", "ating", "ation", "ators", "ates", "ated", "ator", "ings", "ions", "ate", "ers",
    "ies", "ied", "ion", "ing", "ors", "er", "or", "es", "ed", "e", "y", "i", "s",
];
/// Words that are too common to search for.
const STOP: [&str; 60] = [
    "a", "about", "all", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can",
    "could", "did", "do", "does", "for", "from", "had", "has", "have", "how", "i", "if", "in",
    "into", "is", "it", "its", "me", "my", "no", "not", "of", "on", "or", "our", "so", "than",
    "that", "the", "their", "then", "there", "these", "this", "to", "was", "we", "were", "what",
    "when", "where", "which", "with", "would", "you", "your",
];

/// Words to find in the texts of a message.
#[derive(Clone, Debug)]
pub struct Query {
    terms: Vec<Term>,
    /// The words of each phrase, which must occur exactly.
    phrases: Vec<Vec<String>>,
    /// All words in the order typed.
    said: Vec<String>,
}

/// A word to find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Term {
    /// The word in lower case without accents, and the length of its stem.
    pub(super) word: String,
    stem: usize,
    /// The word as typed.
    pub(super) typed: String,
    /// Whether a text without it counts as missing a word.
    pub(super) is_needed: bool,
    manner: Manner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// With any ending.
    Stem,
    /// Exactly as typed.
    Exact,
    /// A single character of a script without spaces; it matches as part of a pair.
    Sign,
}

/// How the words of a query occur in a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Nearness {
    /// The number of needed terms that occur.
    pub(crate) terms: usize,
    /// Whether the words occur exactly as typed.
    pub(crate) is_phrase: bool,
    /// The length in words of the shortest range that has all of these terms.
    pub(crate) within: usize,
    /// The line with most of them, from 1.
    pub(crate) line: usize,
}

impl Nearness {
    /// Returns true if a text with these occurrences is a better answer than another text of the same message.
    pub(super) fn is_better(&self, other: &Self) -> bool {
        let rank = |it: &Self| (it.terms, it.is_phrase, std::cmp::Reverse(it.within));
        rank(self) > rank(other)
    }
}

impl Query {
    /// Parses a query. Words between quotation marks are a phrase.
    pub fn new(words: &str) -> Result<Self, Unfit> {
        if words.len() > LONGEST {
            return Err(Unfit::TooLarge);
        }
        let mut query = Self { terms: Vec::new(), phrases: Vec::new(), said: Vec::new() };
        let marks = words.matches('"').count();
        for (n, part) in words.split('"').enumerate() {
            // An unpaired quotation mark does not start a phrase.
            let is_phrase = n % 2 == 1 && n < marks;
            let mut phrase = Vec::new();
            each_bare(part, |word, at, form| {
                let typed = part.get(at).unwrap_or_default().to_owned();
                let is_sign = typed.chars().count() == 1 && !typed.is_ascii();
                let manner = match (is_phrase, is_sign) {
                    (true, _) => Manner::Exact,
                    (_, true) => Manner::Sign,
                    _ => Manner::Stem,
                };
                if form != Form::Besides {
                    phrase.push(word.to_owned());
                } else if is_phrase {
                    return;
                } else if let Some(whole) =
                    query.terms.iter_mut().find(|it| phrase.last() == Some(&it.word))
                {
                    // Its parts are equivalent in a text that spells it differently.
                    whole.is_needed = false;
                }
                let stem = stem(word).len();
                query.add(Term { word: word.to_owned(), stem, typed, is_needed: true, manner });
            });
            query.said.extend(phrase.iter().cloned());
            if is_phrase && !phrase.is_empty() {
                query.phrases.push(phrase);
            }
        }
        // If a query consists only of common words, they are kept.
        let tells =
            |term: &Term| term.manner == Manner::Exact || !STOP.contains(&term.word.as_str());
        if query.terms.iter().any(tells) {
            query.terms.retain(tells);
        }
        if query.terms.is_empty() { Err(Unfit::Empty) } else { Ok(query) }
    }

    fn add(&mut self, term: Term) {
        if let Some(known) = self.terms.iter_mut().find(|known| known.word == term.word) {
            known.is_needed |= term.is_needed;
            if term.manner == Manner::Exact {
                known.manner = Manner::Exact;
            }
        } else if self.terms.len() < TERMS {
            self.terms.push(term);
        }
    }

    pub(super) fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// Returns the number of needed terms.
    pub(crate) fn needed(&self) -> usize {
        self.terms.iter().filter(|term| term.is_needed).count()
    }

    /// Returns true if it has phrases, which only the text itself can confirm.
    pub(crate) fn has_phrases(&self) -> bool {
        !self.phrases.is_empty()
    }

    /// Returns the indexes of the terms that a word matches.
    fn found<'q>(&'q self, word: &'q str) -> impl Iterator<Item = usize> + 'q {
        let terms = self.terms.iter().enumerate();
        terms.filter(|(_, term)| term.likeness(word).is_some()).map(|(n, _)| n)
    }

    /// Returns the ranges of the query's words in a line, in bytes.
    pub(crate) fn matches(&self, line: &str) -> Vec<Range<usize>> {
        let mut matches: Vec<Range<usize>> = Vec::new();
        each_bare(line, |word, at, _| {
            if self.found(word).next().is_some() {
                matches.push(at);
            }
        });
        matches.sort_by_key(|at| (at.start, at.end));
        matches.dedup_by(|next, before| {
            let is_within = next.start < before.end;
            before.end = if is_within { before.end.max(next.end) } else { before.end };
            is_within
        });
        matches
    }

    /// Returns how the query's words occur in a text; none if no word occurs, or if a phrase is missing.
    pub(crate) fn nearness(&self, text: &str) -> Option<Nearness> {
        let said = |word: &str| self.said.iter().position(|said| said == word);
        let (mut met, mut spoken): (Vec<Met>, Vec<Option<usize>>) = (Vec::new(), Vec::new());
        let mut n = 0;
        each_bare(text, |word, at, form| {
            if form != Form::Besides {
                n += 1;
                spoken.push(said(word));
            }
            let found = self.found(word).filter(|term| self.terms[*term].is_needed);
            met.extend(found.map(|term| Met { n, at: at.start, term }));
        });
        let is_there = |phrase: &[String]| {
            let phrase: Vec<_> = phrase.iter().map(|word| said(word)).collect();
            spoken.windows(phrase.len()).any(|some| some == phrase)
        };
        if met.is_empty() || !self.phrases.iter().all(|phrase| is_there(phrase)) {
            return None;
        }
        let terms: BTreeSet<usize> = met.iter().map(|met| met.term).collect();
        let shortest = shortest(&met, terms.len());
        let within = shortest.last()?.n - shortest.first()?.n + 1;
        // The range may span several lines; the line with most of the terms is shown.
        let line = |at: usize| 1 + memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count();
        let mut lines: Vec<_> = shortest.iter().map(|met| (line(met.at), met.term)).collect();
        lines.sort_unstable();
        lines.dedup();
        let most =
            lines.chunk_by(|one, other| one.0 == other.0).rev().max_by_key(|line| line.len());
        let line = most.and_then(|line| line.first()).map_or(1, |(line, _)| *line);
        let is_phrase = self.said.len() > 1 && is_there(&self.said);
        Some(Nearness { terms: terms.len(), is_phrase, within, line })
    }
}

/// A word of a text that matches: its number among the words, its offset, and its term.
struct Met {
    n: usize,
    at: usize,
    term: usize,
}

/// Returns the shortest range that has `terms` different terms.
fn shortest(met: &[Met], terms: usize) -> &[Met] {
    let mut counts = BTreeMap::<usize, usize>::new();
    let (mut from, mut best) = (0, met);
    for (to, last) in met.iter().enumerate() {
        *counts.entry(last.term).or_default() += 1;
        while counts.len() == terms {
            let stretch = &met[from..=to];
            let length = |some: &[Met]| some.last().map_or(0, |last| last.n - some[0].n);
            if length(stretch) < length(best) {
                best = stretch;
            }
            let first = &met[from];
            if let Some(count) = counts.get_mut(&first.term) {
                *count -= 1;
            }
            counts.retain(|_, count| *count > 0);
            from += 1;
        }
    }
    best
}

impl Term {
    /// Returns a range of words that contains all its matches: the first and the last word.
    pub(super) fn among(&self) -> (String, String) {
        match self.manner {
            Manner::Exact => (self.word.clone(), self.word.clone()),
            Manner::Stem => {
                (stem(&self.word).to_owned(), format!("{}\u{10ffff}", stem(&self.word)))
            }
            Manner::Sign => (String::new(), "\u{10ffff}".to_owned()),
        }
    }

    /// Returns all values that [`Term::likeness`] can return.
    pub(super) fn likenesses(&self) -> &'static [f32] {
        if self.manner == Manner::Stem { &[1.0, OTHER_ENDING] } else { &[1.0] }
    }

    /// Returns the weight of a word as a match of this term, if it is one.
    pub(super) fn likeness(&self, word: &str) -> Option<f32> {
        let is_alike = word.as_bytes().first() == self.word.as_bytes().first();
        match self.manner {
            Manner::Sign => word.contains(&self.word).then_some(1.0),
            _ if !is_alike => None,
            _ if word == self.word => Some(1.0),
            Manner::Exact => None,
            Manner::Stem => {
                let own = &self.word[..self.stem];
                (word.starts_with(own) && stem(word) == own).then_some(OTHER_ENDING)
            }
        }
    }
}

/// Calls `each` for the words of a text, without accents.
fn each_bare(text: &str, mut each: impl FnMut(&str, Range<usize>, Form)) {
    words_of(text, |word, at, form| each(bare(word).as_deref().unwrap_or(word), at, form));
}

/// Returns a word without its ending.
fn stem(word: &str) -> &str {
    if !word.is_ascii() {
        return word;
    }
    let mut rest = word;
    // For example: parsing, parse, parser; retries, retried, retry.
    for ending in ENDINGS {
        if let Some(short) = rest.strip_suffix(ending).filter(|short| short.len() >= SHORTEST) {
            // "pass" is not a plural, and a number has no ending.
            if !(ending == "s" && short.ends_with('s'))
                && short.ends_with(|c: char| c.is_ascii_alphabetic())
            {
                rest = short;
                break;
            }
        }
    }
    let bytes = rest.as_bytes();
    match bytes {
        // For example: stopped, stop.
        [head @ .., one, other]
            if rest.len() < word.len()
                && one == other
                && head.len() >= 2
                && !b"aeiouslz".contains(one) =>
        {
            &rest[..rest.len() - 1]
        }
        _ => rest,
    }
}
