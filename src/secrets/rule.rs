//! Rules: the keywords and the expression by which a secret is recognised, and what is allowed.
//!
//! An expression is compiled when it is first needed. If each match starts with a keyword, the expression is only tried there.

use std::sync::OnceLock;

use aho_corasick::AhoCorasick;
use regex_automata::{Input, meta::Regex, util::syntax};
use regex_syntax::hir::{Hir, literal::Extractor};
use serde::Deserialize;

/// How most expressions start: with the rest of a name before the keyword. No match needs it, so it is replaced with the second
/// part.
const NAMED: [(&str, &str); 2] =
    [(r"[\w.-]{0,50}?(?i:[\w.-]{0,50}?", "(?i:"), (r"(?i)[\w.-]{0,50}?", "(?i)")];
/// The maximum number of distinct match beginnings that are examined.
const HEADS: usize = 4096;
/// How far from a keyword to look for a match of unbounded length.
const FAR: usize = 2048;

/// A rule as written in a file of rules.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Rule {
    /// Its name.
    #[serde(rename = "id")]
    pub(super) name: String,
    #[serde(rename = "regex")]
    pub(super) expression: String,
    /// The group of the expression that is the secret; 0 means the first group that matches.
    #[serde(default)]
    secret_group: usize,
    /// The minimum entropy in bits per character.
    #[serde(default)]
    entropy: f64,
    /// Lower-case words, one of which occurs near every match.
    pub(super) keywords: Vec<String>,
    /// Whether it recognises a secret by the words around it: other rules take precedence, and placeholders do not count as
    /// secrets.
    #[serde(default)]
    pub(super) weak: bool,
    /// Whether its matches are long and end with their distinctive part, so that a window has the maximum size from the start.
    #[serde(default)]
    pub(super) long: bool,
    #[serde(default)]
    allowlists: Vec<Allow>,
    #[serde(skip)]
    compiled: OnceLock<Option<Compiled>>,
}

/// A rule for a value that is assigned to a name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Assigned {
    /// The keywords, separated by `|`.
    name: String,
    /// The expression of the secret.
    value: String,
    #[serde(default)]
    entropy: f64,
}

/// A rule for a token that starts with a literal.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Token {
    /// The literals, separated by `|`. In lower case they are the keywords.
    begins: String,
    /// The expression of the rest.
    rest: String,
    #[serde(default)]
    entropy: f64,
}

/// What may be next to a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Bound {
    /// It does not start inside a word.
    Word,
    /// Also, it ends before a quote, white space or the like.
    Apart,
    Anywhere,
}

/// What is not a secret.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Allow {
    #[serde(default)]
    regex_target: Target,
    #[serde(default)]
    condition: Condition,
    #[serde(default)]
    regexes: Vec<String>,
    #[serde(default)]
    stopwords: Vec<String>,
    #[serde(skip)]
    compiled: OnceLock<Vec<Regex>>,
    #[serde(skip)]
    words: OnceLock<Option<AhoCorasick>>,
}

/// What an allowed expression is matched against.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Target {
    #[default]
    Secret,
    Match,
    Line,
}

/// Whether a matching expression or word is enough, or both are needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
enum Condition {
    #[default]
    #[serde(rename = "OR")]
    One,
    #[serde(rename = "AND")]
    All,
}

/// A compiled expression, and where to try it.
#[derive(Debug)]
pub(super) struct Compiled {
    regex: Regex,
    pub(super) reach: Reach,
    keywords: AhoCorasick,
}

/// Where matches are, relative to a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// They start at it and have at most this length.
    From(usize),
    /// They are within this many bytes before and after it.
    Around(usize),
}

/// A match in a text, and the secret in it.
pub(super) struct Match<'t> {
    pub(super) text: &'t [u8],
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) secret: &'t [u8],
}

impl Rule {
    /// Creates a rule for a value that is assigned to a name, with at most a few words in between.
    pub(super) fn assigned(name: String, of: &Assigned) -> Self {
        let (words, value) = (&of.name, &of.value);
        let expression = format!(
            r#"(?i)[\w.-]{{0,50}}?(?:{words})(?:[ \t\w.-]{{0,20}})[\s'"]{{0,3}}(?:=|>|:{{1,3}}=|\|\||:|=>|\?=|,)[\x60'"\s=]{{0,5}}({value})(?:[\x60'"\s;]|\\[nr]|$)"#
        );
        Self::plain(name, expression, of.entropy, words)
    }

    /// Creates a rule for a token that starts with a literal.
    pub(super) fn token(name: String, bound: Bound, of: &Token) -> Self {
        let literals: Vec<String> = of.begins.split('|').map(regex_syntax::escape).collect();
        let token = format!("(?:{}){}", literals.join("|"), of.rest);
        let expression = match bound {
            Bound::Word => format!(r"\b{token}"),
            Bound::Apart => format!(r#"\b({token})(?:[\x60'"\s;]|\\[nr]|$)"#),
            Bound::Anywhere => token,
        };
        Self::plain(name, expression, of.entropy, &of.begins.to_ascii_lowercase())
    }

    fn plain(name: String, expression: String, entropy: f64, keywords: &str) -> Self {
        Self {
            name,
            expression,
            entropy,
            keywords: keywords.split('|').map(str::to_owned).collect(),
            ..Self::default()
        }
    }

    /// Returns the compiled expression; none if it is invalid.
    pub(super) fn compiled(&self) -> Option<&Compiled> {
        self.compiled.get_or_init(|| Compiled::new(&self.expression, &self.keywords)).as_ref()
    }

    /// Returns the next match at or after `from`; `at` is the offset of the keyword. Skips matches that do not contain this
    /// keyword but another one of the rule, because that keyword finds them.
    pub(super) fn find<'t>(&self, text: &'t [u8], mut from: usize, at: usize) -> Option<Match<'t>> {
        let Compiled { regex, reach, keywords } = self.compiled()?;
        let (input, found) = loop {
            let input = match reach {
                Reach::From(_) if from > at => return None,
                Reach::From(_) => {
                    Input::new(text).range(at..).anchored(regex_automata::Anchored::Yes)
                }
                Reach::Around(_) => Input::new(text).range(from..),
            };
            let found = regex.search(&input)?;
            let is_of_other = || keywords.is_match(text.get(found.range()).unwrap_or_default());
            if found.range().contains(&at) || !is_of_other() {
                break (input, found);
            }
            from = found.end().max(found.start() + 1);
        };
        let mut groups = regex.create_captures();
        if regex.captures_len() > 1 {
            let again = input.range(found.start()..).anchored(regex_automata::Anchored::Yes);
            regex.search_captures(&again, &mut groups);
        }
        let all = groups.get_match().unwrap_or(found);
        let group = match self.secret_group {
            0 => (1..groups.group_len())
                .find_map(|n| groups.get_group(n).filter(|at| at.start < at.end)),
            n => groups.get_group(n),
        };
        let secret = group.map_or(all.start()..all.end(), |at| at.start..at.end);
        // If a token is longer than its rule says, all of it is taken.
        let rest = text.get(all.end()..).filter(|_| !self.weak && secret.end == all.end());
        let longer =
            rest.unwrap_or_default().iter().take_while(|byte| byte.is_ascii_alphanumeric());
        let longer = longer.count();
        let secret = text.get(secret.start..secret.end + longer)?;
        Some(Match { text, start: all.start(), end: all.end() + longer, secret })
    }

    /// Returns what the rule allows.
    #[cfg(test)]
    pub(super) fn allowlists(&self) -> &[Allow] {
        &self.allowlists
    }

    /// Returns true if a match passes the rule's own checks.
    pub(super) fn holds(&self, found: &Match<'_>) -> bool {
        let is_dull = self.entropy > 0.0 && entropy(found.secret) <= self.entropy;
        !is_dull && !self.allowlists.iter().any(|allow| allow.has(found))
    }
}

impl Compiled {
    fn new(expression: &str, keywords: &[String]) -> Option<Self> {
        let named = NAMED.into_iter().find_map(|(name, flags)| {
            let rest = expression.strip_prefix(name)?;
            Some(format!("{flags}{rest}"))
        });
        let expression = named.as_deref().unwrap_or(expression);
        let hir = parse(expression)?;
        let longest = hir.properties().maximum_len().unwrap_or(usize::MAX);
        let reach = if begins_with(expression, keywords) {
            Reach::From(longest)
        } else {
            Reach::Around(longest.min(FAR))
        };
        let regex = Regex::builder().build_from_hir(&hir).ok()?;
        let keywords = AhoCorasick::builder().ascii_case_insensitive(true).build(keywords).ok()?;
        Some(Self { regex, reach, keywords })
    }
}

fn parse(expression: &str) -> Option<Hir> {
    let mut parser = regex_syntax::ParserBuilder::new();
    parser.unicode(false).utf8(false).build().parse(expression).ok()
}

/// Returns true if every match starts with a keyword.
fn begins_with(expression: &str, keywords: &[String]) -> bool {
    // Case-insensitivity would only multiply the number of possible beginnings.
    let plain = parse(&expression.replace("(?i)", "").replace("(?i:", "(?:"));
    let heads =
        plain.map(|plain| Extractor::new().limit_class(64).limit_total(HEADS).extract(&plain));
    let is_keyword = |head: &[u8]| {
        let head = head.to_ascii_lowercase();
        keywords.iter().any(|keyword| head.starts_with(keyword.as_bytes()))
    };
    let heads = heads.as_ref().and_then(|heads| heads.literals()).filter(|heads| !heads.is_empty());
    heads.is_some_and(|heads| heads.iter().all(|head| is_keyword(head.as_bytes())))
}

impl Allow {
    /// Returns true if a match is allowed.
    pub(super) fn has(&self, found: &Match<'_>) -> bool {
        let is_fit = || {
            let target = match self.regex_target {
                Target::Secret => found.secret,
                Target::Match => found.with_name(),
                Target::Line => found.line(),
            };
            self.regexes().iter().any(|regex| regex.is_match(target))
        };
        let has_word = || self.words().is_some_and(|words| words.is_match(found.secret));
        match self.condition {
            Condition::One => is_fit() || has_word(),
            Condition::All => {
                (self.regexes.is_empty() || is_fit()) && (self.stopwords.is_empty() || has_word())
            }
        }
    }

    /// Returns the compiled expressions. Invalid ones are dropped.
    pub(super) fn regexes(&self) -> &[Regex] {
        self.compiled.get_or_init(|| self.regexes.iter().filter_map(|it| regex(it)).collect())
    }

    fn words(&self) -> Option<&AhoCorasick> {
        let build = || {
            let words = AhoCorasick::builder().ascii_case_insensitive(true).build(&self.stopwords);
            words.ok().filter(|_| !self.stopwords.is_empty())
        };
        self.words.get_or_init(build).as_ref()
    }

    /// Returns how many expressions there are, as they were written.
    #[cfg(test)]
    pub(super) fn written(&self) -> usize {
        self.regexes.len()
    }
}

impl<'t> Match<'t> {
    /// Returns the match with the rest of the name before it.
    fn with_name(&self) -> &'t [u8] {
        let before = self.text.get(..self.start).unwrap_or_default();
        let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_.-".contains(byte);
        let name = before.iter().rev().take(50).take_while(is_name).count();
        self.text.get(self.start - name..self.end).unwrap_or_default()
    }

    /// Returns the lines that contain the match.
    fn line(&self) -> &'t [u8] {
        let before = self.text.get(..self.start).unwrap_or_default();
        let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
        let behind = self.text.get(self.end..).unwrap_or_default();
        let end = self.end + memchr::memchr(b'\n', behind).unwrap_or(behind.len());
        self.text.get(start..end).unwrap_or_default()
    }
}

/// Compiles an expression for matching bytes.
pub(super) fn regex(expression: &str) -> Option<Regex> {
    let syntax = syntax::Config::new().unicode(false).utf8(false);
    Regex::builder().syntax(syntax).build(expression).ok()
}

/// Returns true if the byte before `at` is a letter, a digit or one of `_.-`.
pub(super) fn is_in_word(text: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|at| text.get(at));
    before.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(byte))
}

/// Returns the entropy in bits per byte.
fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in bytes {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
    }
    let length = f64::from(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    let share = |count: &u32| f64::from(*count) / length;
    -counts
        .iter()
        .filter(|count| **count > 0)
        .map(share)
        .map(|share| share * share.log2())
        .sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_is_counted_in_bits_a_byte() {
        let check = |text: &str, bits: f64| assert!((entropy(text.as_bytes()) - bits).abs() < 1e-9);
        check("aaaa", 0.0);
        check("abab", 1.0);
        check("abcdefgh", 3.0);
        check("", 0.0);
    }
}
