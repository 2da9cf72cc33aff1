//! Ranks: which of several texts is shown first.
//!
//! ```text
//! words     each word of a line counts once: by how few of the texts have it, and twice as a whole word
//!           a text counts as its best line does, so that words which stand together count together
//! voice     what was said to the agent or by it, before what a tool was called with, before what it answered
//! stand     on the current path before what was left, undone, cut, or is on another branch
//! recency   the newest text before those of yesterday, of a month or of a year ago, by the logarithm of the days
//! ```
//!
//! The rank is the product of the four. Nothing comes from a clock: a text is as old as the newest of them makes it. Where a
//! text stands costs most to find out, so that the rank is told first as if all stood on their current paths.
//!
//! Invariant: ranks depend on the texts alone, not on their order.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use crate::model::{Role, Timestamp};

/// How many different words of a line count.
const WORDS: usize = 8;
/// The rank that recency gives the newest text; and the least that it gives.
const NEWEST: u64 = 16;
const OLDEST: u64 = 2;
/// How many times as much a text on the current path counts as the same one elsewhere.
const CURRENT: u64 = 3;
/// How many milliseconds a day has.
const DAY: u64 = 86_400_000;

/// In which order texts are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// The best match first.
    Relevance,
    /// The newest session first, and in it the newest text.
    #[default]
    Time,
}

/// What the rank of a text is made of, but for where it is.
#[derive(Clone, Debug)]
pub(crate) struct Weighed<'t> {
    /// The lines with a match, and where the matches are.
    pub(crate) lines: Vec<(&'t str, &'t [Range<usize>])>,
    /// Who said it.
    pub(crate) role: Role,
    /// Whether it is of a call of a tool, or of an answer.
    pub(crate) is_of_tool: bool,
    /// When it was said.
    pub(crate) time: Option<Timestamp>,
}

/// Returns the rank that each of these texts has if it is on the current path; the greatest is the best.
pub(crate) fn ranks(texts: &[Weighed<'_>]) -> Vec<u64> {
    let words: Vec<Vec<BTreeMap<String, bool>>> =
        texts.iter().map(|text| text.lines.iter().map(|line| words(*line)).collect()).collect();
    let mut having: BTreeMap<&str, usize> = BTreeMap::new();
    for lines in &words {
        let of_text: BTreeSet<&str> =
            lines.iter().flat_map(|line| line.keys().map(String::as_str)).collect();
        for word in of_text {
            *having.entry(word).or_default() += 1;
        }
    }
    let rarity = |word: &str| {
        let having = having.get(word).copied().unwrap_or(1).max(1);
        1 + u64::from((texts.len() / having).max(1).ilog2())
    };
    let of_line = |line: &BTreeMap<String, bool>| {
        let mut each: Vec<u64> = line
            .iter()
            .map(|(word, is_whole)| rarity(word) * if *is_whole { 2 } else { 1 })
            .collect();
        each.sort_unstable();
        each.iter().rev().take(WORDS).sum::<u64>()
    };
    let newest = texts.iter().filter_map(|text| text.time).max();
    let rank = |(text, lines): (&Weighed<'_>, &Vec<BTreeMap<String, bool>>)| {
        let words = lines.iter().map(of_line).max().unwrap_or(1);
        words * voice(text) * CURRENT * recency(text.time, newest)
    };
    texts.iter().zip(&words).map(rank).collect()
}

/// Returns the rank of a text that does not stand on the current path.
pub(crate) fn off_the_path(rank: u64) -> u64 {
    rank / CURRENT
}

/// Returns the words of a line that match, in small letters, each with whether it is there as a whole word.
fn words((line, matches): (&str, &[Range<usize>])) -> BTreeMap<String, bool> {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = BTreeMap::new();
    for found in matches {
        let word = line.get(found.clone()).unwrap_or_default();
        let before = line.get(..found.start).and_then(|before| before.chars().next_back());
        let behind = line.get(found.end..).and_then(|behind| behind.chars().next());
        // A match that ends with a sign ends a word, whatever is behind it.
        let is_end = |own: Option<char>, next: Option<char>| {
            !(own.is_some_and(is_letter) && next.is_some_and(is_letter))
        };
        let is_whole =
            is_end(word.chars().next(), before) && is_end(word.chars().next_back(), behind);
        *words.entry(word.to_lowercase()).or_default() |= is_whole;
    }
    words
}

/// Returns how much it counts who said a text.
fn voice(text: &Weighed<'_>) -> u64 {
    match (text.role, text.is_of_tool) {
        (Role::User | Role::Assistant, false) => 3,
        (Role::Assistant, true) => 2,
        _ => 1,
    }
}

/// Returns how much it counts how old a text is next to the newest one.
fn recency(time: Option<Timestamp>, newest: Option<Timestamp>) -> u64 {
    let (Some(time), Some(newest)) = (time, newest) else { return OLDEST };
    let days = newest.0.abs_diff(time.0) / DAY;
    NEWEST.saturating_sub(u64::from((days + 1).ilog2())).max(OLDEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Case, Manner, Pattern};

    /// A text on the current path, said by a person on a day.
    fn said(line: &'static str, day: i64) -> Sample {
        Sample { line, role: Role::User, is_of_tool: false, is_current: true, day: Some(day) }
    }

    #[derive(Clone, Copy)]
    struct Sample {
        line: &'static str,
        role: Role,
        is_of_tool: bool,
        is_current: bool,
        day: Option<i64>,
    }

    /// Returns these texts in the order of their ranks, by their numbers.
    fn ranked(pattern: &str, samples: &[Sample]) -> Vec<usize> {
        let pattern = Pattern::new(pattern, Manner::Regex, Case::Smart).unwrap();
        let lines_of = |it: &Sample| -> Vec<(&str, Vec<Range<usize>>)> {
            it.line.split('\n').map(|line| (line, pattern.matches(line))).collect()
        };
        let lines: Vec<_> = samples.iter().map(lines_of).collect();
        let texts: Vec<Weighed<'_>> = samples
            .iter()
            .zip(&lines)
            .map(|(it, lines)| Weighed {
                lines: lines.iter().map(|(line, matches)| (*line, matches.as_slice())).collect(),
                role: it.role,
                is_of_tool: it.is_of_tool,
                time: it.day.map(|day| Timestamp(day * 86_400_000)),
            })
            .collect();
        let ranks = ranks(&texts).into_iter().zip(samples);
        let ranks: Vec<u64> =
            ranks.map(|(rank, it)| if it.is_current { rank } else { off_the_path(rank) }).collect();
        let mut order: Vec<usize> = (0..samples.len()).collect();
        order.sort_by_key(|n| std::cmp::Reverse(ranks[*n]));
        order
    }

    #[test]
    fn the_best_match_comes_first() {
        let check = |pattern: &str, best: Sample, other: Sample, why: &str| {
            assert_eq!(ranked(pattern, &[best, other]), [0, 1], "{why}");
            assert_eq!(ranked(pattern, &[other, best]), [1, 0], "{why}");
        };
        let plain = said("the log is full", 100);
        check("log", plain, said("the logger is full", 100), "a whole word, then a part");
        check("log", plain, said("a blog_log", 100), "an underscore is part of a word");
        check("->", said("a->b", 100), said("a->b", 99), "a sign is a whole word anywhere");
        check("log", plain, said("the log is full", 80), "the newer one");
        let unsaid = Sample { day: None, ..plain };
        check("log", plain, unsaid, "one of a known time");
        check("log", plain, Sample { is_current: false, ..plain }, "the current path");
        let call = Sample { role: Role::Assistant, is_of_tool: true, ..plain };
        let answer = Sample { role: Role::Tool, is_of_tool: true, ..plain };
        check("log", plain, call, "what was said, then a call");
        check("log", call, answer, "a call, then its answer");
        check("log", Sample { role: Role::Assistant, ..plain }, answer, "the model's words");
        check("log", plain, Sample { role: Role::System, ..plain }, "not the program's words");
        check("log|full", plain, said("the log\nis full", 100), "words in one line");
        check("log|full", plain, said("log log log", 100), "two words, not one again and again");
        check("log", said("the LOG", 100), said("the LOGS", 100), "whatever the case");
        // All of it is weighed: a good match of last year is before a poor one of today.
        let poor = Sample { is_current: false, ..answer };
        check("log", said("the log", 0), Sample { day: Some(365), ..poor }, "a year is not all");
        let old = said("the log", 0);
        check("log", said("the logs", 3650), old, "ten years outweigh a whole word");
    }

    #[test]
    fn a_word_that_few_texts_have_counts_more() {
        let common = said("full", 100);
        let all = [common, common, common, said("log", 100), common, common, common, common];
        assert_eq!(ranked("log|full", &all)[0], 3);
        assert_eq!(ranked("log|full", &all)[1..4], [0, 1, 2], "equal ones stay as they were");
    }

    #[test]
    fn no_text_is_too_much() {
        assert!(ranks(&[]).is_empty());
        let bare = Weighed {
            lines: Vec::new(),
            role: Role::System,
            is_of_tool: false,
            time: Some(Timestamp(i64::MIN)),
        };
        let newest = Weighed { time: Some(Timestamp(i64::MAX)), ..bare.clone() };
        assert!(ranks(&[bare, newest]).into_iter().all(|rank| off_the_path(rank) > 0));
    }
}
