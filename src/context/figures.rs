//! The figures in a refusal: how many tokens were sent, and how many the model accepts.
//!
//! A number is a limit because of the words around it, or because a larger number is compared with it. The largest number above
//! the limit is the number that was sent.

use crate::context::{phrases::PHRASES, refusal::Sentence, window::Windows};

/// The token figures of an overflow, as far as the provider reported them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// The tokens in the request, plus the reserve for the answer if the provider added it.
    pub used: Option<u64>,
    /// The tokens that the model accepts.
    pub limit: Option<u64>,
}

/// The smallest figure accepted as a limit. A smaller one is an error code, a list index, a number of images or the bound of
/// another parameter; no model has such a small window.
const LEAST: u64 = 512;

impl Figures {
    /// Returns the limit if it is usable as a window: not below the smallest supported one, and less than what was sent. Any
    /// other figure was misread or is of no use.
    pub fn window(&self) -> Option<u64> {
        let least = Windows::default().block;
        self.limit.filter(|limit| *limit >= least && self.used.is_none_or(|used| *limit < used))
    }

    /// Returns true if both are known and more was sent than fits.
    pub(super) fn is_over(&self) -> bool {
        self.used.zip(self.limit).is_some_and(|(used, limit)| used > limit)
    }
}

/// A number in a sentence.
struct Number {
    value: u64,
    is_limit: bool,
    /// True if it counts what was sent, or tokens.
    is_count: bool,
}

/// Reads the figures in sentences.
pub(super) fn read<'a>(sentences: impl IntoIterator<Item = &'a Sentence>) -> Figures {
    // The unit may be characters of a string, items of a list, or input that is malformed because it is too long.
    let is_measured = |sentence: &&Sentence| !sentence.says(&PHRASES.unmeasured);
    let mut found: Vec<Number> =
        sentences.into_iter().filter(is_measured).flat_map(numbers).collect();
    // Of exactly two numbers, the smaller one is the limit.
    if let [one, other] = &mut found[..]
        && !one.is_limit
        && !other.is_limit
    {
        let less = if one.value < other.value { one } else { other };
        less.is_limit = less.value >= LEAST;
    }
    let over = |limit: u64| found.iter().map(|one| one.value).filter(|one| *one > limit).max();
    let limits = || found.iter().filter(|one| one.is_limit).map(|one| one.value);
    let limit = limits().find(|limit| over(*limit).is_some()).or_else(|| limits().next());
    // Such a small count is a count of tokens only next to a token limit.
    let is_used =
        |one: &&Number| !one.is_limit && one.is_count && (one.value >= LEAST || limit.is_some());
    let counted = || found.iter().find(is_used).map(|one| one.value);
    Figures { used: limit.and_then(over).or_else(counted), limit }
}

/// Returns the numbers in a sentence that can be figures.
fn numbers(sentence: &Sentence) -> Vec<Number> {
    let mut found: Vec<Number> = Vec::new();
    let mut before = "";
    for (gap, value, after) in sentence.numbers() {
        // Of a range, the end counts.
        before = if gap == " , " { before } else { gap };
        let compared = before.replace([')', '(', '='], "").replace("tokens", "");
        let is_sum = PHRASES.joins.is_in(before) && !PHRASES.over.is_in(before);
        let mut is_less = false;
        if let Some(last) = found.last_mut() {
            if is_sum {
                last.value = last.value.saturating_add(value);
                continue;
            }
            is_less = value < last.value && matches!(compared.trim(), ">" | "/" | "of" | "vs");
            last.is_limit &= !is_less;
        }
        let limit = PHRASES.limit_before.find_last(before);
        let used = PHRASES.used_before.find_last(before);
        let is_limit = is_less
            || PHRASES.limit_after.begins(after)
            || (limit > used && !PHRASES.used_after.begins(after));
        let is_none = PHRASES.uncounted_before.ends(before)
            || PHRASES.uncounted_after.begins(after)
            || PHRASES.codes.contains(&value)
            || (is_limit && value < LEAST);
        if !is_none {
            let is_count = used > limit || PHRASES.counted_after.begins(after);
            found.push(Number { value, is_limit, is_count });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::context::overflow::figures;

    #[test]
    fn a_limit_is_a_window_only_between_the_least_and_what_was_sent() {
        let check =
            |said: &str, window: Option<u64>| assert_eq!(figures(said).window(), window, "{said}");
        for said in [
            "The request is too large for the context (input 133563 + max_tokens 2048), which is more than the 131073 that \
             this model supports",
            "133563 input tokens + 48000 output tokens is over the context limit of 131073",
            "exceeds the context limit (input 133563 + max_tokens 2048): the model supports 131073 tokens",
            "maximum context length 131073, requested 150000 (input 133563 plus max_tokens 16437)",
            "your prompt has 133563 tokens, max_tokens is 2048, and the model takes at most 131073",
        ] {
            check(said, Some(131_073));
        }
        // Too small to work in, or not less than what was sent.
        check("prompt is too long: 90000 tokens > 8192 maximum", None);
        check("the maximum context length is 15999 tokens, you sent 20000", None);
        check("the maximum context length is 16000 tokens, you sent 20000", Some(16_000));
        check("the maximum context length is 200000 tokens, you sent 20000", None);
        check("the maximum context length is 32768 tokens", Some(32_768));
    }
}
