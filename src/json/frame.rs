//! Frames: which parts of a record belong to its format, by their places. Everything else is content.
//!
//! ```text
//! place  the path of keys, joined with dots, with [] for the items of a list: message.content[].source
//! ```
//!
//! Invariant: a value at a place that a frame does not name is content, and so is everything below it.

use super::raw::{Kind, Part, Raw};

/// The parts of a record that belong to its format. The record itself always does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// The places of objects and lists of the format. A place that ends with `*` includes everything below it. A place that ends
    /// with `{}` is an object whose keys are content; its values have that place.
    pub(crate) own: &'static [&'static str],
    /// The places of tool output: only the keys of `parts` and `kinds` belong to the format there.
    pub(crate) outputs: &'static [&'static str],
    /// Keys of the format in tool output.
    pub(crate) parts: &'static [&'static str],
    /// Keys in tool output whose values identify the kind of a part, each with the known kinds; an empty list allows any word.
    pub(crate) kinds: &'static [(&'static str, &'static [&'static str])],
    /// Keys at the places of `own` whose values identify what something is and where it belongs.
    pub(crate) telling: &'static [&'static str],
    /// Suffixes of further such keys, if the value is one lower-case word.
    pub(crate) endings: &'static [&'static str],
    /// Keys whose values are content, even numbers.
    pub(crate) saying: &'static [&'static str],
}

/// The role of a key or value in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// It identifies what the record is and where it belongs.
    Telling,
    /// It is another part of the format.
    Format,
    /// It is content.
    Said,
}

/// The role of an object or a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tier {
    /// It belongs to the format.
    Own,
    /// It belongs to the format, with everything below it.
    All,
    /// It belongs to the format, except for its keys.
    Keyed,
    /// It is part of a tool's output.
    Output,
    Said,
}

/// Returns the keys and the scalar values of a record with their roles, in order. Without a frame everything is content, except
/// for `true`, `false` and `null`, which carry no text.
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

/// The suffix of the place of values in an object whose keys are content.
const KEYED: &str = "{}";
/// A step to a place that no frame names.
const UNKNOWN: &str = "*";

impl Frame {
    /// The frame of unknown records.
    pub(crate) const NONE: Self = Self {
        own: &[],
        outputs: &[],
        parts: &[],
        kinds: &[],
        telling: &[],
        endings: &[],
        saying: &[],
    };

    /// Returns the role of a key in an object, and the step to its value's place.
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

    /// Returns the known kinds of a key in tool output, if the key identifies a kind.
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
        // The kind of a part is in an item of a list, or in the source of its bytes.
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

/// Returns true if a value is one of these words; an empty list allows any value.
fn is_one_of(words: &[&str], value: Raw<'_>) -> bool {
    words.is_empty()
        || value.inner().is_some_and(|inner| words.iter().any(|word| word.as_bytes() == inner))
}

/// Returns true if a value is one lower-case word, as formats use for enumerations.
fn is_small_word(value: Raw<'_>) -> bool {
    let is_of_it = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.');
    value.inner().is_some_and(|word| word.iter().all(is_of_it))
}

/// Returns true if a value may identify something: it is one word, or an id or a path, which may contain any characters.
fn tells(key: &str, value: Raw<'_>) -> bool {
    let is_name = key == "cwd" || key.to_ascii_lowercase().ends_with("id");
    is_name || value.inner().is_some_and(|word| word.iter().all(u8::is_ascii_graphic))
}
