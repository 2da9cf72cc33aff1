//! Queries: words that are looked for in any order, whatever their case, accents and endings.
//!
//! ```text
//! query     the parseLine "dead letter" retries
//! terms     parse line, dead letter, retri-      in one message; those of a phrase next to each other, as they stand
//! besides   parseline                            tells of a text, and is not missed
//! ```
//!
//! Invariant: the same terms are found in a text, whether or not an index has it.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use super::{
    pattern::Unfit,
    words::{Form, bare, words_of},
};

/// How many bytes a query may have, and how many of its words are looked for.
const LONGEST: usize = 256 << 10;
const TERMS: usize = 1000;
/// How much a word counts that has another ending.
const OTHER_ENDING: f32 = 0.8;
/// How long what is left of a word without its ending must be.
const SHORTEST: usize = 3;
/// The endings that words may have without being other words, the longest first.
const ENDINGS: [&str; 24] = [
    "ations", "ating", "ation", "ators", "ates", "ated", "ator", "ings", "ions", "ate", "ers",
    "ies", "ied", "ion", "ing", "ors", "er", "or", "es", "ed", "e", "y", "i", "s",
];
/// Words that tell nothing.
const STOP: [&str; 60] = [
    "a", "about", "all", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can",
    "could", "did", "do", "does", "for", "from", "had", "has", "have", "how", "i", "if", "in",
    "into", "is", "it", "its", "me", "my", "no", "not", "of", "on", "or", "our", "so", "than",
    "that", "the", "their", "then", "there", "these", "this", "to", "was", "we", "were", "what",
    "when", "where", "which", "with", "would", "you", "your",
];

/// Words that are looked for in the texts of a message.
#[derive(Clone, Debug)]
pub struct Query {
    terms: Vec<Term>,
    /// What must stand as it is: the words of each phrase.
    phrases: Vec<Vec<String>>,
    /// All words as they were typed.
    said: Vec<String>,
}

/// A word that is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Term {
    /// The word, in small letters without accents, and how much of it is left without its ending.
    pub(super) word: String,
    stem: usize,
    /// As it was typed.
    pub(super) typed: String,
    /// Whether a text that lacks it lacks a word of the query.
    pub(super) is_needed: bool,
    manner: Manner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// With any ending.
    Stem,
    /// As it was typed, without another ending.
    Exact,
    /// One sign of a script without spaces, which is part of pairs.
    Sign,
}

/// How the words of a query are found in a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Nearness {
    /// How many of those that are needed are there.
    pub(crate) terms: usize,
    /// Whether they stand there as they were typed.
    pub(crate) is_phrase: bool,
    /// How many words the shortest stretch has that has all of these.
    pub(crate) within: usize,
    /// The line in which most of them are, from 1.
    pub(crate) line: usize,
}

impl Nearness {
    /// Returns whether a text in which words are so tells more than another one of the same message.
    pub(super) fn is_better(&self, other: &Self) -> bool {
        let rank = |it: &Self| (it.terms, it.is_phrase, std::cmp::Reverse(it.within));
        rank(self) > rank(other)
    }
}

impl Query {
    /// Reads the words of a query; what is between quotation marks is a phrase.
    pub fn new(words: &str) -> Result<Self, Unfit> {
        if words.len() > LONGEST {
            return Err(Unfit::TooLarge);
        }
        let mut query = Self { terms: Vec::new(), phrases: Vec::new(), said: Vec::new() };
        let marks = words.matches('"').count();
        for (n, part) in words.split('"').enumerate() {
            // A mark without another one is one that was typed so.
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
                    // Its parts say the same of a text that writes it otherwise.
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
        // Where there is nothing else, they are meant.
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

    /// Returns how many words are looked for.
    pub(crate) fn needed(&self) -> usize {
        self.terms.iter().filter(|term| term.is_needed).count()
    }

    /// Returns whether only the text itself tells whether it has what is looked for.
    pub(crate) fn has_phrases(&self) -> bool {
        !self.phrases.is_empty()
    }

    /// Returns the numbers of the terms that a word is.
    fn found<'q>(&'q self, word: &'q str) -> impl Iterator<Item = usize> + 'q {
        let terms = self.terms.iter().enumerate();
        terms.filter(|(_, term)| term.likeness(word).is_some()).map(|(n, _)| n)
    }

    /// Returns where words of the query are in a line, in bytes.
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

    /// Returns how the words of the query are found in a text; nothing if none is, or if a phrase is not.
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
        // The stretch may go over several lines: the one that has most of it is shown.
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

/// A word of a text that is looked for: the how manieth it is, where it begins, and which term it is.
struct Met {
    n: usize,
    at: usize,
    term: usize,
}

/// Returns the shortest stretch in which so many different terms are.
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
    /// Returns the words among which it is, by the first and the last of them.
    pub(super) fn among(&self) -> (String, String) {
        match self.manner {
            Manner::Exact => (self.word.clone(), self.word.clone()),
            Manner::Stem => {
                (stem(&self.word).to_owned(), format!("{}\u{10ffff}", stem(&self.word)))
            }
            Manner::Sign => (String::new(), "\u{10ffff}".to_owned()),
        }
    }

    /// Returns all that [`Term::likeness`] may return.
    pub(super) fn likenesses(&self) -> &'static [f32] {
        if self.manner == Manner::Stem { &[1.0, OTHER_ENDING] } else { &[1.0] }
    }

    /// Returns how much a word counts as this one, if it does.
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

/// Hands over the words of a text without their accents.
fn each_bare(text: &str, mut each: impl FnMut(&str, Range<usize>, Form)) {
    words_of(text, |word, at, form| each(bare(word).as_deref().unwrap_or(word), at, form));
}

/// Returns a word without its ending.
fn stem(word: &str) -> &str {
    if !word.is_ascii() {
        return word;
    }
    let mut rest = word;
    // Parsing, parse and parser; retries, retried and retry.
    for ending in ENDINGS {
        if let Some(short) = rest.strip_suffix(ending).filter(|short| short.len() >= SHORTEST) {
            // Pass is no plural, and a number has no ending.
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
        // Stopped and stop.
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
