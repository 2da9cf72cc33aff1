//! Matching: finds the rows that match a query, best first.
//!
//! Each word of the query must match one of a row's texts as in a fuzzy finder: its characters in order, with gaps. Texts are
//! matched separately, so that a word's letters never come from two of them.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use frizbee::{CaseMatching, Config, Matcher, Scoring, SortStrategy};

/// Minimum average score per character of a word. A character right after the previous match scores 12, a distant one only a few
/// points.
const LEAST: u32 = 10;

/// The weights of a text shown in the row and of a text shown only in the preview.
const WEIGHTS: [u32; 2] = [4, 3];

/// The searchable texts of all rows.
#[derive(Default)]
pub(super) struct Texts {
    texts: Vec<String>,
    /// The row and the weight of each text.
    of: Vec<(usize, u32)>,
}

impl Texts {
    /// Adds a text that the row shows.
    pub(super) fn add(&mut self, row: usize, text: &str) {
        self.push(row, text, WEIGHTS[0]);
    }

    /// Adds a text that only the row's preview shows.
    pub(super) fn add_preview(&mut self, row: usize, text: &str) {
        self.push(row, text, WEIGHTS[1]);
    }

    fn push(&mut self, row: usize, text: &str, weight: u32) {
        self.texts.push(text.to_owned());
        self.of.push((row, weight));
    }

    /// Returns those of the `rows` that a query finds, best first. Equal ones keep their order.
    pub(super) fn find(&self, query: &str, rows: usize) -> Vec<usize> {
        let config = config();
        let mut scores: Vec<Option<u32>> = vec![Some(0); rows];
        for word in query.split_whitespace() {
            let least = least(word);
            let mut best = vec![0; rows];
            // A row that lacks an earlier word is out.
            let is_in = |(row, _): &(usize, u32)| scores.get(*row).is_some_and(Option::is_some);
            let left: Vec<usize> =
                self.of.iter().enumerate().filter_map(|(n, of)| is_in(of).then_some(n)).collect();
            let texts: Vec<&str> =
                left.iter().filter_map(|n| self.texts.get(*n)).map(String::as_str).collect();
            for found in Matcher::new(word, &config).match_list(&texts) {
                let score = u32::from(found.score);
                let of = left.get(found.index as usize).and_then(|n| self.of.get(*n));
                let Some((row, weight)) = of else { continue };
                if score >= least
                    && let Some(best) = best.get_mut(*row)
                {
                    *best = score.saturating_mul(*weight).max(*best);
                }
            }
            for (score, best) in scores.iter_mut().zip(best) {
                *score = score.filter(|_| best > 0).map(|score| score.saturating_add(best));
            }
        }
        let found = scores.iter().enumerate().filter_map(|(row, score)| Some((row, (*score)?)));
        let mut found: Vec<(usize, u32)> = found.collect();
        found.sort_by_key(|(_, score)| Reverse(*score));
        found.into_iter().map(|(row, _)| row).collect()
    }
}

fn config() -> Config {
    Config {
        casing: CaseMatching::Ignore,
        sort: SortStrategy::IndexAsc,
        scoring: Scoring { matching_case_bonus: 0, ..Scoring::default() },
        ..Config::default()
    }
}

/// Returns the minimum score for a word to match.
fn least(word: &str) -> u32 {
    u32::try_from(word.chars().count()).unwrap_or(u32::MAX).saturating_mul(LEAST)
}

/// Returns the bytes of a text that the query's words match.
pub(super) fn marks(query: &str, text: &str) -> BTreeSet<usize> {
    let config = config();
    let of_word = |word: &str| {
        let found = Matcher::new(word, &config).match_list_indices(&[text]).pop();
        let found = found.filter(|found| u32::from(found.score) >= least(word));
        found.map(|found| found.indices).unwrap_or_default()
    };
    query.split_whitespace().flat_map(of_word).map(|at| at as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows with a title, a folder and a line of their preview each.
    const ROWS: [[&str; 3]; 5] = [
        ["Speed up 日本語の検索", "~/code/api", "The index is warm now."],
        ["Investigate retry logic in the webhook worker", "~/code/api", "Because of the offset"],
        ["Add dark mode toggle", "~/code/web", "All themes have it, a retry is not needed."],
        ["Document the OAuth callback", "~/code/api", "It is an url"],
        ["Remove retry logic", "~/code/web", "Done"],
    ];

    #[track_caller]
    fn check(query: &str, expected: &[usize]) {
        let mut texts = Texts::default();
        for (n, [title, folder, preview]) in ROWS.iter().enumerate() {
            texts.add(n, title);
            texts.add(n, folder);
            texts.add_preview(n, preview);
        }
        assert_eq!(texts.find(query, ROWS.len()), expected, "{query}");
    }

    #[test]
    fn every_word_must_match_and_the_best_rows_come_first() {
        check("", &[0, 1, 2, 3, 4]);
        check("  ", &[0, 1, 2, 3, 4]);
        check("retry", &[1, 4, 2]);
        check("retry web", &[1, 4, 2]);
        check("WEBHOOK", &[1]);
        check("wbhook", &[1]);
        check("oauth", &[3]);
        check("検索", &[0]);
        check("offset", &[1]);
        check("retry zürich", &[]);
    }

    #[test]
    fn initials_match_and_letters_scattered_over_a_sentence_do_not() {
        check("ilrw", &[]);
        check("eoftr", &[]);
        check("admt", &[2]);
    }

    #[test]
    fn the_letters_that_a_query_matches_are_marked() {
        let check = |query: &str, text: &str, expected: &str| {
            let marks = marks(query, text);
            let mark = |(at, c): (usize, char)| if marks.contains(&at) { '^' } else { c };
            assert_eq!(text.char_indices().map(mark).collect::<String>(), expected, "{query}");
        };
        check("retry", "Remove Retry logic", "Remove ^^^^^ logic");
        check("lg re", "Remove retry logic", "^^move retry ^o^ic");
        check("検索", "日本語の検索", "日本語の^^");
        check("é", "réel", "r^el");
        check("zzz", "Remove retry logic", "Remove retry logic");
        check("", "Remove", "Remove");
    }
}
