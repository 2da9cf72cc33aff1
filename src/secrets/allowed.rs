//! Allowlists: what the user declares not to be a secret although a rule finds it.

use regex_automata::meta::Regex;

use super::{find::Found, rule::regex, rules::Rules};
use crate::model::EntryId;

/// The minimum number of digits of an entry's id.
const DIGITS: usize = 8;

/// What is not a secret although a rule finds it.
#[derive(Clone, Debug, Default)]
pub struct Allowed {
    /// Rules that are disabled.
    rules: Vec<String>,
    /// Values that match one of these completely are allowed.
    values: Vec<Regex>,
    /// Entries in which nothing is found, by id or prefix of it.
    entries: Vec<String>,
}

/// Why something cannot be allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unallowed {
    /// No rule has this name.
    #[error("there is no rule {0}")]
    Rule(String),
    /// It is not a valid regular expression.
    #[error("invalid regular expression: {0}")]
    Value(String),
    /// It is not a prefix of an entry's id.
    #[error(
        "{0} is not the beginning of an entry's id, which needs at least {DIGITS} digits from 0 to f"
    )]
    Entry(String),
}

impl Allowed {
    /// Allows everything that certain rules find, values that match an expression completely, and everything in certain entries.
    pub fn new(rules: &[String], values: &[String], entries: &[String]) -> Result<Self, Unallowed> {
        if let Some(rule) =
            rules.iter().find(|rule| !Rules::get().names().any(|name| name == *rule))
        {
            return Err(Unallowed::Rule(rule.clone()));
        }
        let compile = |value: &String| {
            regex(&format!(r"\A(?:{value})\z")).ok_or_else(|| Unallowed::Value(value.clone()))
        };
        let values = values.iter().map(compile).collect::<Result<_, _>>()?;
        let is_id = |id: &&String| {
            id.len() >= DIGITS && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        if let Some(id) = entries.iter().find(|id| !is_id(id)) {
            return Err(Unallowed::Entry(id.clone()));
        }
        Ok(Self { rules: rules.to_vec(), values, entries: entries.to_vec() })
    }

    /// Returns true if a find is allowed, wherever it is.
    pub(crate) fn has(&self, rules: &Rules, found: &Found) -> bool {
        self.rules.iter().any(|rule| rule == rules.name(found.rule))
            || self.values.iter().any(|value| value.is_match(found.secret.as_bytes()))
    }

    /// Returns true if nothing is to be found in an entry.
    pub(crate) fn has_entry(&self, id: EntryId) -> bool {
        !self.entries.is_empty() && {
            let id = id.to_string();
            self.entries.iter().any(|entry| id.starts_with(entry.as_str()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_allowed_is_named() {
        let check = |rules: &[&str], values: &[&str], entries: &[&str], expected: &str| {
            let own =
                |words: &[&str]| -> Vec<String> { words.iter().map(|&it| it.into()).collect() };
            let why = Allowed::new(&own(rules), &own(values), &own(entries)).unwrap_err();
            assert_eq!(why.to_string(), expected);
        };
        check(&["github-pat", "gitub-pat"], &[], &[], "there is no rule gitub-pat");
        check(&[], &["a("], &[], "invalid regular expression: a(");
        let why =
            " is not the beginning of an entry's id, which needs at least 8 digits from 0 to f";
        check(&[], &[], &["7c2a"], &format!("7c2a{why}"));
        check(&[], &[], &["7c2a51dZ"], &format!("7c2a51dZ{why}"));
    }
}
