//! All rules, parsed once per process from the files embedded in the program.

use std::{collections::BTreeMap, sync::OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use serde::Deserialize;

use super::rule::{Allow, Assigned, Bound, Match, Rule, Token};

/// This program's own rules, followed by those of gitleaks.
const FILES: [&str; 2] = [include_str!("own.toml"), include_str!("gitleaks.toml")];

/// A file of rules.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// What is not a secret, whichever rule finds it.
    #[serde(default)]
    allowlists: Vec<Allow>,
    /// Placeholders for secrets.
    placeholders: Option<Allow>,
    /// Rules of the same shape, by name.
    #[serde(default)]
    assigned: BTreeMap<String, Assigned>,
    #[serde(default)]
    tokens: BTreeMap<Bound, BTreeMap<String, Token>>,
    rules: Vec<Rule>,
}

/// All rules, and an index of their keywords.
#[derive(Debug)]
pub(crate) struct Rules {
    /// Rules that recognise the secret itself come before those that recognise the words around it.
    pub(super) all: Vec<Rule>,
    pub(super) allowed: Vec<Allow>,
    pub(super) placeholders: Vec<Allow>,
    /// The distinct keywords of all rules.
    pub(super) keywords: Option<AhoCorasick>,
    /// For each keyword, the rules that have it.
    pub(super) called: Vec<Vec<usize>>,
}

impl Rules {
    /// Returns the rules.
    pub(crate) fn get() -> &'static Self {
        static RULES: OnceLock<Rules> = OnceLock::new();
        RULES.get_or_init(|| Self::new(FILES.iter().filter_map(|text| toml::from_str(text).ok())))
    }

    fn new(files: impl Iterator<Item = File>) -> Self {
        let (mut rules, mut allowed, mut placeholders) = (Vec::new(), Vec::new(), Vec::new());
        for file in files {
            for (bound, tokens) in file.tokens {
                rules.extend(tokens.into_iter().map(|(name, of)| Rule::token(name, bound, &of)));
            }
            rules.extend(file.rules);
            rules.extend(file.assigned.into_iter().map(|(name, of)| Rule::assigned(name, &of)));
            allowed.extend(file.allowlists);
            placeholders.extend(file.placeholders);
        }
        rules.sort_by_key(|rule: &Rule| rule.weak);
        let mut words: Vec<&str> = Vec::new();
        let mut called: Vec<Vec<usize>> = Vec::new();
        for (n, rule) in rules.iter().enumerate() {
            for word in &rule.keywords {
                let at = words.iter().position(|known| known == word).unwrap_or_else(|| {
                    words.push(word);
                    called.push(Vec::new());
                    words.len() - 1
                });
                called.get_mut(at).into_iter().for_each(|rules| rules.push(n));
            }
        }
        let keywords = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&words)
            .ok();
        Self { all: rules, allowed, placeholders, keywords, called }
    }

    /// Returns the names of all rules, in their order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|rule| rule.name.as_str())
    }

    /// Returns the name of a rule by its index.
    pub(crate) fn name(&self, rule: usize) -> &str {
        self.all.get(rule).map(|rule| rule.name.as_str()).unwrap_or_default()
    }

    /// Returns true if a rule's match is a secret.
    pub(super) fn holds(&self, rule: &Rule, found: &Match<'_>) -> bool {
        let is_allowed = |lists: &[Allow]| lists.iter().any(|allow| allow.has(found));
        rule.holds(found)
            && !is_allowed(&self.allowed)
            && !(rule.weak && is_allowed(&self.placeholders))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::secrets::rule::Reach;

    #[test]
    fn every_rule_compiles_and_is_called_by_its_keywords() {
        let files: Vec<File> = FILES.iter().map(|text| toml::from_str(text).unwrap()).collect();
        let tokens = |file: &File| file.tokens.values().map(BTreeMap::len).sum::<usize>();
        let all: usize =
            files.iter().map(|file| file.rules.len() + file.assigned.len() + tokens(file)).sum();
        let rules = Rules::get();
        assert!(all > 240 && rules.all.len() == all && rules.keywords.is_some());
        let names: BTreeSet<&str> = rules.names().collect();
        assert_eq!(names.len(), all, "two rules have the same name");
        for rule in &rules.all {
            assert!(rule.compiled().is_some(), "{} does not compile", rule.name);
            assert!(!rule.keywords.is_empty(), "{}", rule.name);
            for keyword in &rule.keywords {
                assert_eq!(*keyword, keyword.to_ascii_lowercase(), "{}", rule.name);
            }
        }
        let lists = files.iter().flat_map(|file| file.allowlists.iter().chain(&file.placeholders));
        for list in
            lists.chain(files.iter().flat_map(|file| &file.rules).flat_map(Rule::allowlists))
        {
            assert_eq!(list.regexes().len(), list.written(), "{list:?}");
        }
    }

    #[test]
    fn most_rules_are_tried_only_where_a_keyword_stands() {
        let reach = |rule: &Rule| rule.compiled().map(|compiled| compiled.reach);
        let rules = Rules::get();
        let around: Vec<&str> = rules
            .all
            .iter()
            .filter(|rule| matches!(reach(rule), Some(Reach::Around(_))))
            .map(|rule| rule.name.as_str())
            .collect();
        assert!(around.len() < 48, "{}: {around:?}", around.len());
    }
}
