//! Texts in records: those that undertext wrote, and those that people wrote.
//!
//! A record contains only the salted digest of a person's text (a note, a message, a branch name). The words are stored next to
//! it. So the words can be deleted one day, and the chain of operations still verifies.
//!
//! Invariant: without the salt, the digest reveals nothing about the words.

use serde::{Serialize, Serializer};

use super::Digest;

/// The placeholder for deleted words, followed by the first digits of their digest.
const ABSENT: &str = "removed-";

/// A text in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// Written by undertext: part of the record.
    Own(String),
    /// Written by a person: the record contains its digest.
    Given(Words),
    /// Written by a person, and not available: deleted, or not looked up yet.
    Absent(Digest),
}

/// Words that a person wrote, stored next to a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// Drawn only for these words.
    pub salt: [u8; 16],
    /// The words.
    pub text: String,
}

impl Words {
    /// Marks words that get a salt when their record is sealed.
    pub const UNSALTED: [u8; 16] = [0; 16];

    /// Returns the digest that represents the words in the record.
    pub fn digest(&self) -> Digest {
        Digest::of_words(&self.salt, &self.text)
    }
}

impl Default for Text {
    fn default() -> Self {
        Self::Own(String::new())
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.to_text())
    }
}

impl Text {
    /// Returns the text; deleted words show as the first digits of their digest.
    pub fn to_text(&self) -> String {
        match self {
            Self::Own(text) | Self::Given(Words { text, .. }) => text.clone(),
            Self::Absent(digest) => format!("{ABSENT}{digest:.8}"),
        }
    }

    /// Returns true if `text` is the placeholder of deleted words.
    pub fn is_of_absent(text: &str) -> bool {
        text.strip_prefix(ABSENT).is_some_and(|digits| {
            digits.len() == 8 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        })
    }

    /// Returns the words, if a person wrote them and they are loaded.
    pub fn words(&self) -> Option<&Words> {
        match self {
            Self::Given(words) => Some(words),
            Self::Own(_) | Self::Absent(_) => None,
        }
    }

    /// Gives unsalted words a salt.
    pub fn salt(&mut self, draw: impl FnOnce() -> [u8; 16]) {
        if let Self::Given(words) = self
            && words.salt == Words::UNSALTED
        {
            words.salt = draw();
        }
    }

    /// Replaces the words with their digest.
    pub fn forget(&mut self) {
        if let Self::Given(words) = self {
            *self = Self::Absent(words.digest());
        }
    }

    /// Replaces the digest with the words, if they are among `words`.
    pub fn fill(&mut self, words: &[Words]) {
        if let Self::Absent(digest) = self
            && let Some(found) = words.iter().find(|words| words.digest() == *digest)
        {
            *self = Self::Given(found.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Tagged;

    #[test]
    fn given_words_are_written_by_their_digest_and_found_again() {
        let words = Words { salt: [7; 16], text: "not this way".into() };
        let given = Text::Given(words.clone());
        let bytes = given.to_bytes();
        assert!(!bytes.windows(3).any(|part| part == b"not"));
        let mut read = Text::read(&bytes, &mut Vec::new()).unwrap();
        assert_eq!(read, Text::Absent(words.digest()));
        assert!(read.to_text().starts_with("removed-"));
        read.fill(&[Words { salt: [0; 16], text: "not this way".into() }]);
        assert_eq!(read.words(), None);
        read.fill(&[words]);
        assert_eq!(read, given);
        assert_eq!(read.to_bytes(), bytes);
    }

    #[test]
    fn own_words_are_written_as_they_are() {
        for text in ["", "main"] {
            let own = Text::Own(text.into());
            assert_eq!(Text::read(&own.to_bytes(), &mut Vec::new()), Ok(own));
        }
    }
}
