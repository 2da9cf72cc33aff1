//! The options that an endpoint wants, and what it teaches about them by refusing a request.
//!
//! Invariant: what the user set is never changed by an error message.

use std::collections::BTreeSet;

use crate::context::model::Fault;

/// The possible names of the field for the maximum size of an answer.
const LIMIT_NAMES: [&str; 2] = ["max_tokens", "max_completion_tokens"];

/// The fields that are left out once an endpoint refuses them. `signature` and `encrypted_content` are those of reasoning that
/// another provider or account made.
const FIELDS: [&str; 7] = [
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "extra_content",
    "stream_options",
    "signature",
    "encrypted_content",
];

/// How many times a request is changed because of refusals before the refusal is an error.
pub(super) const CHANGES: usize = 5;

/// The options that an endpoint wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) streams: bool,
    pub(super) limit_name: String,
    /// True if the user set the name, so that no error message overrides it.
    pub(super) is_set: bool,
    /// The fields that it refuses.
    pub(super) refused: BTreeSet<&'static str>,
    /// What it wants: `REASONING`, `ADAPTIVE`, `SIGNATURES`.
    pub(super) wanted: BTreeSet<&'static str>,
}

/// Reasoning with every message that has calls.
pub(super) const REASONING: &str = "reasoning_content";
/// An effort instead of a budget for thinking.
pub(super) const ADAPTIVE: &str = "adaptive";
/// A signature with the first call of each message.
pub(super) const SIGNATURES: &str = "thought_signature";

impl Way {
    /// Returns the options for a command, which reads a chat completion.
    pub(super) fn for_command() -> Self {
        Self { limit_name: LIMIT_NAMES[0].to_owned(), ..Self::default() }
    }

    /// Returns the usual options for a model and an address, and the name that the user set.
    pub(super) fn of(model: &str, address: &str, limit_name: Option<String>) -> Self {
        // OpenAI's newer models only know one of them, most others only the other.
        let is_gemini = model.to_lowercase().contains("gemini")
            || address.starts_with("https://generativelanguage.googleapis.com/");
        let usual = LIMIT_NAMES[usize::from(address.starts_with("https://api.openai.com/"))];
        Self {
            is_set: limit_name.is_some(),
            limit_name: limit_name.unwrap_or_else(|| usual.to_owned()),
            wanted: is_gemini.then_some(SIGNATURES).into_iter().collect(),
            ..Self::default()
        }
    }

    /// Returns true if a field is sent.
    pub(super) fn takes(&self, field: &str) -> bool {
        !self.refused.contains(field)
    }

    /// Returns true if it wants something more.
    pub(super) fn wants(&self, what: &str) -> bool {
        self.wanted.contains(what)
    }

    /// Returns the options that an error asks for, if they differ.
    pub(super) fn after(&self, fault: &Fault) -> Option<Self> {
        let Fault::Refused { said, .. } = fault else { return None };
        let said = said.to_lowercase().replace("encrypted content", "encrypted_content");
        let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
        let names = |field: &str| {
            let mut words = said.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            words.any(|word| word == field)
        };
        let mut other = self.clone();
        if !self.streams
            && said.contains("stream")
            && says(&["must", "only support", "required", "enable"])
        {
            other.streams = true;
            return Some(other);
        }
        let is_unknown = says(&[
            "unsupported",
            "not support",
            "unrecognized",
            "unknown",
            "not permitted",
            "not allowed",
            "extra inputs",
            "extra fields",
            "additional properties",
            "unexpected",
            "instead",
            "remove",
        ]);
        let is_foreign = || says(&["invalid", "could not", "cannot be"]);
        let is_refused = |field: &str| {
            let is_proof = matches!(field, "signature" | "encrypted_content");
            names(field) && (is_unknown || is_proof && is_foreign())
        };
        if let Some(field) = FIELDS.iter().find(|field| self.takes(field) && is_refused(field)) {
            other.refused.insert(field);
        } else if !self.wants(REASONING)
            && self.takes(REASONING)
            && names(REASONING)
            && says(&["missing", "must", "required", "passed back"])
        {
            other.wanted.insert(REASONING);
        } else if !self.wants(ADAPTIVE) && is_unknown && names(ADAPTIVE) {
            other.wanted.insert(ADAPTIVE);
        } else if self.streams && is_unknown && (names("stream") || names("streaming")) {
            other.streams = false;
        } else if is_unknown && !self.is_set && said.contains(&self.limit_name) {
            let name = LIMIT_NAMES.iter().find(|name| **name != self.limit_name)?;
            (*name).clone_into(&mut other.limit_name);
        } else {
            return None;
        }
        Some(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(way: &Way, said: &str) -> Option<Way> {
        way.after(&Fault::Refused { said: said.to_owned(), status: Some(400) })
    }

    fn way(streams: bool, limit_name: &str) -> Way {
        Way { streams, limit_name: limit_name.to_owned(), ..Way::default() }
    }

    #[test]
    fn a_server_says_in_which_way_it_wants_to_be_asked() {
        let usual = way(false, "max_tokens");
        let renamed = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
        assert_eq!(after(&usual, renamed), Some(way(false, "max_completion_tokens")));
        assert_eq!(
            after(
                &way(false, "max_completion_tokens"),
                "Unrecognized request argument supplied: max_completion_tokens"
            ),
            Some(usual.clone())
        );
        for said in [
            "Stream must be set to true",
            "This model only support stream mode, please enable the stream parameter",
        ] {
            assert_eq!(after(&usual, said), Some(way(true, "max_tokens")), "{said}");
            assert_eq!(after(&way(true, "max_tokens"), said), None);
        }
        for said in ["streaming is not supported", "Unknown parameter: 'stream'"] {
            assert_eq!(after(&way(true, "max_tokens"), said), Some(usual.clone()), "{said}");
        }
        for said in
            ["max_tokens is too large: 9. This model supports at most 5", "no such model", ""]
        {
            assert_eq!(after(&usual, said), None, "{said}");
        }
        assert_eq!(after(&Way { is_set: true, ..usual }, renamed), None);
    }

    #[test]
    fn a_refused_field_is_left_out_and_a_missing_one_is_sent() {
        let usual = way(false, "max_tokens");
        let check = |said: &str, field: &'static str| {
            let expected = Way { refused: [field].into(), ..usual.clone() };
            assert_eq!(after(&usual, said), Some(expected.clone()), "{said}");
            assert_eq!(after(&expected, said), None, "{said}");
        };
        check("Unknown parameter: 'messages[2].reasoning_details'.", "reasoning_details");
        check(
            "property 'messages.1.reasoning' is unsupported: did you mean 'content'?",
            "reasoning",
        );
        check(
            r#"[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]"#,
            "stream_options",
        );
        check("messages.1.content.0: Invalid `signature` in `thinking` block", "signature");
        check(
            "The encrypted content gAAA could not be verified. Reason: it could not be decrypted",
            "encrypted_content",
        );
        for said in [
            "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
            "The `reasoning_content` in the thinking mode must be passed back to the API.",
        ] {
            let expected = Way { wanted: [REASONING].into(), ..usual.clone() };
            assert_eq!(after(&usual, said), Some(expected.clone()), "{said}");
            assert_eq!(after(&expected, said), None, "{said}");
        }
        let adaptive = "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \"output_config.effort\"";
        assert!(after(&usual, adaptive).unwrap().wants(ADAPTIVE));
    }
}
