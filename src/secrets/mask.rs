//! Masks: marks that replace secrets and personal data in a text that is shared with others.

use std::{borrow::Cow, cmp::Reverse, collections::BTreeMap, ops::Range, sync::OnceLock};

use regex_automata::meta::Regex;

use super::{
    allowed::Allowed,
    rule::{is_in_word, regex},
    rules::Rules,
};
use crate::{
    cover::{SHORTEST, Secret, Secrets},
    json::Frame,
};

/// What to mask.
#[derive(Clone, Debug, Default)]
pub struct Masks {
    /// Everything that the rules find, except what is allowed; none disables this.
    pub secrets: Option<Allowed>,
    /// User names in paths of home folders.
    pub homes: bool,
    /// E-mail addresses.
    pub emails: bool,
    /// Names of persons and machines: each word, and what replaces it.
    pub names: Vec<(String, &'static str)>,
    /// Whether masked places are enclosed in [`Masked::MARKS`], so that a renderer can show them.
    pub is_marked: bool,
}

/// A masked text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Masked<'t> {
    /// The text.
    pub text: Cow<'t, str>,
    /// How many secrets were masked.
    pub secrets: u64,
}

impl Masked<'_> {
    /// The characters before and after a masked place. They are of no script, and a text that has them loses them.
    pub const MARKS: [char; 2] = ['\u{f8f0}', '\u{f8f1}'];
}

/// Masks the texts of one document: a secret that is found anywhere in it is masked everywhere.
pub struct Masking {
    masks: Masks,
    known: Known,
    /// The known secrets, each with its rule.
    whole: Vec<(String, &'static str)>,
}

/// Secrets and the rules that found them, in the same order.
#[derive(Default)]
struct Known {
    secrets: Secrets,
    rules: Vec<&'static str>,
}

impl Known {
    fn new(all: BTreeMap<String, &'static str>) -> Self {
        let secret =
            |(secret, rule): (String, _)| Some((Secret::new(&secret, &Frame::NONE)?, rule));
        let (secrets, rules) = all.into_iter().filter_map(secret).unzip();
        Self { secrets: Secrets::new(secrets), rules }
    }

    /// Returns their ranges in a text.
    fn marks(&self, text: &str) -> impl Iterator<Item = (Range<usize>, Mark)> {
        let places = self.secrets.ranges(text.as_bytes()).into_iter();
        places.filter_map(|(place, n)| Some((place, Mark::Secret(self.rules.get(n)?))))
    }
}

/// What is written in place of something.
enum Mark {
    /// A secret, by the name of its rule.
    Secret(&'static str),
    Home,
    Email,
    /// A name, by its replacement.
    Name(&'static str),
}

impl std::fmt::Debug for Masking {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Masking").field("masks", &self.masks).finish_non_exhaustive()
    }
}

impl Masking {
    /// Masks according to `masks`, and also masks the secrets in `known`, each given with the rule that found it.
    pub(crate) fn new(masks: Masks, known: BTreeMap<String, &'static str>) -> Self {
        let whole = known.iter().map(|(secret, rule)| (secret.clone(), *rule)).collect();
        Self { masks, known: Known::new(known), whole }
    }

    /// Masks what can be found in a text alone.
    pub fn by_rules(masks: Masks) -> Self {
        Self::new(masks, BTreeMap::new())
    }

    /// Masks the secrets in these texts wherever they are repeated: a rule may find one only by the words around it.
    pub(crate) fn of<'t>(texts: impl Iterator<Item = &'t str>, allowed: &Allowed) -> Self {
        let rules = Rules::get();
        let found = texts.flat_map(|text| rules.find(text.as_bytes()));
        let found = found.filter(|one| !allowed.has(rules, one));
        let known = found.map(|one| (one.secret, rules.name(one.rule))).collect();
        Self::new(Masks { secrets: Some(allowed.clone()), ..Masks::default() }, known)
    }

    /// If a truncated text ends with the beginning of a known secret, replaces that beginning with a mark.
    pub fn mask_beginning(&self, text: &str) -> Option<String> {
        let beginning = |(secret, rule): &(String, &'static str)| {
            let ends = secret.char_indices().map(|(at, _)| at).rev();
            let mut beginnings = ends.filter_map(|end| secret.get(..end));
            let found = beginnings.find(|begin| text.ends_with(begin))?;
            Some((found.len(), *rule)).filter(|(length, _)| *length >= SHORTEST)
        };
        let (length, rule) = self.whole.iter().filter_map(beginning).max()?;
        let before = text.get(..text.len() - length)?;
        Some(format!("{before}[masked: {rule}]"))
    }

    /// Replaces everything that is to be masked with marks.
    pub fn mask<'t>(&self, text: &'t str) -> Masked<'t> {
        let mut marks: Vec<(Range<usize>, Mark)> = self.known.marks(text).collect();
        if let Some(allowed) = &self.masks.secrets {
            let rules = Rules::get();
            let mut found = rules.find(text.as_bytes());
            found.retain(|one| !allowed.has(rules, one));
            // Rules are sorted from strong to weak. In reverse order the strongest rule is inserted last and wins.
            let found = found.into_iter().rev().map(|one| (one.secret, rules.name(one.rule)));
            marks.extend(Known::new(found.collect()).marks(text));
        }
        if self.masks.homes {
            marks.extend(homes(text).map(|place| (place, Mark::Home)));
        }
        if self.masks.emails {
            marks.extend(emails(text).map(|place| (place, Mark::Email)));
        }
        for (name, mark) in &self.masks.names {
            let bytes = text.as_bytes();
            let places = text.match_indices(name.as_str()).map(|(at, _)| at..at + name.len());
            let is_letter = |at: Option<usize>| {
                at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_alphanumeric)
            };
            let places = places.filter(|place| {
                !is_letter(place.start.checked_sub(1)) && !is_letter(Some(place.end))
            });
            marks.extend(places.map(|place| (place, Mark::Name(mark))));
        }
        marks.sort_by_key(|(place, _)| (place.start, Reverse(place.end)));
        let mut masked = Masked { text: Cow::Borrowed(text), secrets: 0 };
        let (mut room, mut at) = (String::new(), 0);
        for (place, mark) in marks {
            // What base64 shares with its neighbours may end within a character.
            let is_whole = |at: &usize| text.is_char_boundary(*at);
            let start = (0..=place.start).rev().find(is_whole).unwrap_or(0);
            let end = (place.end..text.len()).find(is_whole).unwrap_or(text.len());
            if start < at {
                // The previous mark covers the overlap.
                at = at.max(end);
                continue;
            }
            room.push_str(text.get(at..start).unwrap_or_default());
            let [before, after] =
                Masked::MARKS.map(|mark| Some(mark).filter(|_| self.masks.is_marked));
            room.extend(before);
            match mark {
                Mark::Secret(rule) => {
                    masked.secrets += 1;
                    room.push_str("[masked: ");
                    room.push_str(rule);
                    room.push(']');
                }
                Mark::Home => room.push('~'),
                Mark::Email => room.push_str("[masked: e-mail]"),
                Mark::Name(name) => room.push_str(name),
            }
            room.extend(after);
            at = end;
        }
        if at > 0 {
            room.push_str(text.get(at..).unwrap_or_default());
            masked.text = Cow::Owned(room);
        }
        masked
    }
}

/// Returns where the folders of persons stand in a text.
fn homes(text: &str) -> impl Iterator<Item = Range<usize>> {
    static HOME: OnceLock<Option<Regex>> = OnceLock::new();
    let found = all(&HOME, r"/(?:home|Users)/[A-Za-z0-9_][\w.-]*", text);
    found.filter(|place| !is_in_word(text.as_bytes(), place.start))
}

/// Returns the ranges of e-mail addresses in a text. `git@` is the user of a repository, not a person.
fn emails(text: &str) -> impl Iterator<Item = Range<usize>> {
    static EMAIL: OnceLock<Option<Regex>> = OnceLock::new();
    let found = all(&EMAIL, r"[\w.+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}", text);
    found.filter(|place| !text.get(place.clone()).unwrap_or_default().starts_with("git@"))
}

/// Returns the ranges of an expression's matches in a text.
fn all<'t>(
    compiled: &'static OnceLock<Option<Regex>>,
    expression: &str,
    text: &'t str,
) -> impl Iterator<Item = Range<usize>> + use<'t> {
    let compiled = compiled.get_or_init(|| regex(expression)).as_ref();
    compiled.into_iter().flat_map(move |regex| regex.find_iter(text)).map(|found| found.range())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(masks: &Masks, text: &str, expected: &str, secrets: u64) {
        let masking = Masking::new(masks.clone(), BTreeMap::new());
        let masked = masking.mask(text);
        assert_eq!((masked.text.as_ref(), masked.secrets), (expected, secrets));
    }

    #[test]
    fn a_secret_gives_way_to_a_mark_that_names_its_rule() {
        let masks = Masks { secrets: Some(Allowed::default()), ..Masks::default() };
        let key = "ghp_R2kq8vTz0LmXw5YbN3cJ7dHs9fGaPe1uVi4o";
        check(
            &masks,
            &format!("is {key}, or {key}."),
            "is [masked: github-pat], or [masked: github-pat].",
            2,
        );
        check(&masks, "nothing of the kind", "nothing of the kind", 0);
        check(
            &masks,
            "postgres://app:Vn8%24kqzT@db.internal/main",
            "postgres://app:[masked: password-in-url]@db.internal/main",
            1,
        );
        check(&Masks::default(), key, key, 0);
    }

    #[test]
    fn what_was_found_elsewhere_is_masked_too_and_nothing_is_left_of_two_that_overlap() {
        let known = [("tr4y-Pines", "one"), ("Pines-60+x", "two"), ("4711", "three")];
        let known = known.map(|(secret, rule)| (secret.to_owned(), rule));
        let masking = Masking::new(Masks::default(), known.into());
        let check = |text: &str, expected: &str| assert_eq!(masking.mask(text).text, expected);
        check("./login app Pines-60+x", "./login app [masked: two]");
        check("tr4y-Pines-60+x, 47110", "[masked: one], 47110");
        check("?p=Pines-60+x#4711", "?p=[masked: two]#[masked: three]");
    }

    #[test]
    fn homes_and_addresses_give_way_where_that_is_wanted() {
        let masks = Masks { homes: true, emails: true, ..Masks::default() };
        check(
            &masks,
            "/home/ada/src, /Users/ada.l: ada+x@example.org; /var/home/ada git@github.com:a/b",
            "~/src, ~: [masked: e-mail]; /var/home/ada git@github.com:a/b",
            0,
        );
        check(&masks, "file:///home/ada", "file://~", 0);
    }

    #[test]
    fn names_are_masked_as_words_and_places_can_be_marked() {
        let names = vec![("ada".to_owned(), "user"), ("/srv/ada".to_owned(), "~")];
        let masks = Masks { names, ..Masks::default() };
        check(
            &masks,
            "ada, -ada- Ada adam x_ada /srv/ada/b",
            "user, -user- Ada adam x_user ~/b",
            0,
        );
        let masks = Masks { is_marked: true, ..masks };
        check(&masks, "by ada", "by \u{f8f0}user\u{f8f1}", 0);
    }
}
