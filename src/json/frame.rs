//! Frames: which parts of a record are its format's own, told by the places in which they lie.
//!
//! ```text
//! place  the keys on the way, with dots between them, and [] for the items of a list: message.content[].source
//! ```
//!
//! Invariant: what is at a place that a frame does not name was said, and so was all that is below it.

use super::raw::{Kind, Part, Raw};

/// What is a format's own in its records; the record itself always is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// The places of objects and lists. One that ends with `*` has all below it; one that ends with `{}` is of an object whose keys
    /// were said, and its values lie there.
    pub(crate) own: &'static [&'static str],
    /// The places of what has no other keys than those of `parts` and `kinds`.
    pub(crate) outputs: &'static [&'static str],
    /// Keys there.
    pub(crate) parts: &'static [&'static str],
    /// Keys there whose values tell what it is, each with those that do; any word does where there is no list of them.
    pub(crate) kinds: &'static [(&'static str, &'static [&'static str])],
    /// Keys whose values tell what something is and where it belongs, at the places of `own`.
    pub(crate) telling: &'static [&'static str],
    /// Ends of keys whose values do so too, where they are one word of small letters.
    pub(crate) endings: &'static [&'static str],
    /// Keys whose values were said, even if they are numbers.
    pub(crate) saying: &'static [&'static str],
}

/// What a key or a value of a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// It tells what the record is and where it belongs.
    Telling,
    /// It is the format's own otherwise.
    Format,
    /// Somebody said it.
    Said,
}

/// What an object or a list is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tier {
    /// It is the format's own.
    Own,
    /// It is, with all below it.
    All,
    /// It is, but for its keys.
    Keyed,
    /// It is a part of what a tool answers.
    Output,
    Said,
}

/// Returns the keys and all values but for objects and lists of a record, each with what it is, in the order in which they stand.
/// Without a frame all of it was said, but for `true`, `false` and `null`, which say nothing of themselves.
pub(crate) fn owners<'a>(record: Raw<'a>, frame: Option<&Frame>) -> Vec<(Owner, Raw<'a>)> {
    let (mut owners, mut place, mut levels) = (Vec::new(), String::new(), Vec::new());
    for part in record.parts() {
        let &(tier, length) = levels.last().unwrap_or(&(Tier::Said, 0));
        match part {
            Part::Open(kind) => {
                if kind == Kind::Array {
                    place.push_str("[]");
                }
                let tier = match (tier, frame) {
                    (_, None) => Tier::Said,
                    (_, Some(_)) if levels.is_empty() => Tier::Own,
                    (Tier::All | Tier::Said, _) => tier,
                    (_, Some(frame)) => frame.tier(&place),
                };
                levels.push((tier, place.len()));
            }
            Part::Close => {
                levels.pop();
                place.truncate(levels.last().map_or(0, |(_, length)| *length));
            }
            Part::Key(key) => {
                place.truncate(length);
                let (owner, step) =
                    frame.map_or((Owner::Said, UNKNOWN), |frame| frame.step(tier, key));
                if length > 0 && step != KEYED {
                    place.push('.');
                }
                place.push_str(step);
                owners.push((owner, key));
            }
            Part::Leaf(value) => {
                let owner = match (frame, value.kind()) {
                    (Some(frame), _) => frame.owner(tier, &place, value),
                    (None, Kind::String | Kind::Number) => Owner::Said,
                    (None, _) => Owner::Format,
                };
                owners.push((owner, value));
            }
        }
    }
    owners
}

/// The end of the place of what is in an object whose keys were said.
const KEYED: &str = "{}";
/// A step to a place that no frame names.
const UNKNOWN: &str = "*";

impl Frame {
    /// That of records of which nothing is known.
    pub(crate) const NONE: Self = Self {
        own: &[],
        outputs: &[],
        parts: &[],
        kinds: &[],
        telling: &[],
        endings: &[],
        saying: &[],
    };

    /// Returns what a key in an object is, and the step to its value's place.
    fn step<'a>(&self, tier: Tier, key: Raw<'a>) -> (Owner, &'a str) {
        let name = key.inner().and_then(|key| str::from_utf8(key).ok());
        let name =
            name.filter(|name| !name.contains(['.', '[', '{', '*', '\\'])).unwrap_or(UNKNOWN);
        match tier {
            Tier::Own | Tier::All => (Owner::Format, name),
            Tier::Output if self.parts.contains(&name) || self.kind(name).is_some() => {
                (Owner::Format, name)
            }
            Tier::Keyed => (Owner::Said, KEYED),
            Tier::Output | Tier::Said => (Owner::Said, UNKNOWN),
        }
    }

    /// Returns the values of a key of a part that tell what that is, if any do.
    fn kind(&self, key: &str) -> Option<&'static [&'static str]> {
        self.kinds.iter().find(|(kind, _)| *kind == key).map(|(_, words)| *words)
    }

    fn tier(&self, place: &str) -> Tier {
        let has_all = |all: &str| {
            let rest = all.strip_suffix('*').and_then(|all| place.strip_prefix(all));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        if self.own.contains(&place) {
            Tier::Own
        } else if self.outputs.contains(&place) {
            Tier::Output
        } else if self.own.iter().any(|own| own.strip_suffix(KEYED) == Some(place)) {
            Tier::Keyed
        } else if self.own.iter().any(|own| has_all(own)) {
            Tier::All
        } else {
            Tier::Said
        }
    }

    fn owner(&self, tier: Tier, place: &str, value: Raw<'_>) -> Owner {
        let (within, key) = place.rsplit_once('.').unwrap_or(("", place));
        let key = key.strip_suffix("[]").unwrap_or(key);
        // What tells what a part is is in one of a list, or in what its bytes come from.
        let is_part = within.ends_with("[]") || within.ends_with(".source");
        let is_telling = match tier {
            Tier::Own | Tier::All => {
                self.telling.contains(&key)
                    || self.endings.iter().any(|end| key.ends_with(end)) && is_small_word(value)
            }
            Tier::Output => is_part && self.kind(key).is_some_and(|words| is_one_of(words, value)),
            Tier::Keyed | Tier::Said => false,
        };
        match value.kind() {
            Kind::String if is_telling && tells(key, value) => Owner::Telling,
            Kind::String => Owner::Said,
            Kind::Number if matches!(tier, Tier::Said | Tier::Output | Tier::Keyed) => Owner::Said,
            Kind::Number if is_telling => Owner::Telling,
            Kind::Number if tier == Tier::Own && self.saying.contains(&key) => Owner::Said,
            _ => Owner::Format,
        }
    }
}

/// Returns whether a value is one of these words; where no words are given, any value is right.
fn is_one_of(words: &[&str], value: Raw<'_>) -> bool {
    words.is_empty()
        || value.inner().is_some_and(|inner| words.iter().any(|word| word.as_bytes() == inner))
}

/// Returns whether a value is one word of small letters, as formats give names to what may be.
fn is_small_word(value: Raw<'_>) -> bool {
    let is_of_it = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.');
    value.inner().is_some_and(|word| word.iter().all(is_of_it))
}

/// Returns whether a value may tell what something is: it is one word, unless it is an id or a path, which have any characters.
fn tells(key: &str, value: Raw<'_>) -> bool {
    let is_name = key == "cwd" || key.to_ascii_lowercase().ends_with("id");
    is_name || value.inner().is_some_and(|word| word.iter().all(u8::is_ascii_graphic))
}
