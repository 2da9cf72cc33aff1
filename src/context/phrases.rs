//! The words of refusals, loaded once from `refusals.toml`: English phrases, and word stems of other languages.

use std::sync::LazyLock;

use serde::Deserialize;

/// The lists in the file, which says what each is for.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Phrases {
    pub(super) units: Vec<String>,
    pub(super) rate: List,
    pub(super) spent: List,
    pub(super) busy: List,
    pub(super) input: List,
    pub(super) context: List,
    pub(super) tokens: List,
    pub(super) size: List,
    pub(super) output: List,
    pub(super) negative: List,
    pub(super) large: List,
    pub(super) over: List,
    pub(super) bound: List,
    pub(super) part: List,
    pub(super) cost: List,
    pub(super) other: List,
    pub(super) unmeasured: List,
    pub(super) joins: List,
    pub(super) codes: Vec<u64>,
    pub(super) uncounted_before: List,
    pub(super) uncounted_after: List,
    pub(super) limit_before: List,
    pub(super) limit_after: List,
    pub(super) used_before: List,
    pub(super) used_after: List,
    pub(super) counted_after: List,
    pub(super) foreign: Foreign,
    pub(super) model: Model,
}

/// Word stems of other languages.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Foreign {
    pub(super) over: Stems,
    pub(super) most: Stems,
    pub(super) sent: Stems,
    pub(super) other: Stems,
    pub(super) rate: Stems,
    pub(super) spent: Stems,
}

/// The words of a model that declines to summarise.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Model {
    pub(super) openings: Vec<String>,
    pub(super) begins: Vec<String>,
}

pub(super) static PHRASES: LazyLock<Phrases> =
    LazyLock::new(|| read(include_str!("refusals.toml")).unwrap_or_default());

fn read(text: &str) -> Result<Phrases, toml::de::Error> {
    toml::from_str(text)
}

/// Phrases, each with a space before it, and one after it unless its last word is open-ended.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "Vec<String>")]
pub(super) struct List(Vec<String>);

impl From<Vec<String>> for List {
    fn from(phrases: Vec<String>) -> Self {
        let spaced = |phrase: &String| match phrase.strip_suffix('*') {
            Some(stem) => format!(" {stem}"),
            None => format!(" {phrase} "),
        };
        Self(phrases.iter().map(spaced).collect())
    }
}

impl List {
    /// Returns the offset of the first of these phrases.
    pub(super) fn find(&self, text: &str) -> Option<usize> {
        self.0.iter().filter_map(|phrase| text.find(phrase)).min()
    }

    /// Returns the offset of the last of these phrases.
    pub(super) fn find_last(&self, text: &str) -> Option<usize> {
        self.0.iter().filter_map(|phrase| text.rfind(phrase)).max()
    }

    pub(super) fn is_in(&self, text: &str) -> bool {
        self.0.iter().any(|phrase| text.contains(phrase))
    }

    pub(super) fn begins(&self, text: &str) -> bool {
        self.0.iter().any(|phrase| text.starts_with(phrase))
    }

    pub(super) fn ends(&self, text: &str) -> bool {
        self.0.iter().any(|phrase| text.ends_with(phrase))
    }
}

/// Parts of words, matched anywhere in a text.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Stems(Vec<String>);

impl Stems {
    pub(super) fn is_in(&self, plain: &str) -> bool {
        self.0.iter().any(|stem| plain.contains(stem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_whole() {
        let phrases = read(include_str!("refusals.toml")).unwrap();
        assert!(phrases.rate.is_in(" 5 tokens per time ") && phrases.foreign.rate.is_in("日次"));
        assert!(!phrases.model.begins.is_empty());
    }

    #[test]
    fn a_phrase_is_whole_words_and_an_open_one_begins_a_word() {
        let list = List::from(vec!["per time".to_owned(), "exceed*".to_owned()]);
        assert!(list.is_in(" # per time ") && list.is_in(" it exceeds # "));
        assert!(
            !list.is_in(" super time ")
                && !list.is_in(" per times ")
                && !list.is_in(" unexceeded ")
        );
    }
}
