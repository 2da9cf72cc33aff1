//! The figures of a refusal: how many tokens were sent, and how many the model takes.
//!
//! A figure is what the words around it say that it is; a comparison says both at once.

use crate::context::{refusal::Word, window::Windows};

/// The token figures of an overflow, as far as the provider gave them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// How many tokens the request had, with the reserve for the answer where that was added.
    pub used: Option<u64>,
    /// How many the model takes.
    pub limit: Option<u64>,
}

/// The smallest figure that is believed to be a limit: a smaller one is a code of an error, a place in a list, a number of
/// images or a bound of another parameter, and no model has so small a window.
pub(super) const LEAST: u64 = 512;

impl Figures {
    /// Returns the limit as a window that a session can be made to fit in: at least the smallest one that is worked in, and
    /// less than what was sent. Any other figure was misread, or helps nobody.
    pub fn window(&self) -> Option<u64> {
        let least = Windows::default().block;
        self.limit.filter(|limit| *limit >= least && self.used.is_none_or(|used| *limit < used))
    }
}

/// What a figure represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Used,
    Limit,
    /// A part of a sum: the room for the answer is added to what was sent.
    Part,
}

/// Reads the figures of sentences; the first one of each kind counts.
pub(super) fn read<'a>(sentences: impl Iterator<Item = &'a [Word]>) -> Figures {
    let mut figures = Figures::default();
    // A second number next to a limit is what was over it, or the limit itself.
    let mut also = Vec::new();
    let mut more = 0_u64;
    let limit = Word::Text("limit".to_owned());
    for words in sentences {
        if let Some((used, limit)) = compared(words) {
            (figures.used, figures.limit) =
                (figures.used.or(Some(used)), figures.limit.or(Some(limit)));
            continue;
        }
        // A string has characters, a list items, and so has input that is malformed because it is too long.
        if words.iter().any(|word| matches!(word.text(), "string" | "array" | "malformed")) {
            continue;
        }
        let has_tokens = words.iter().any(|word| matches!(word.text(), "token" | "tokens"));
        for (at, number) in
            words.iter().enumerate().filter_map(|(at, word)| Some((at, word.number()?)))
        {
            // A bare number in brackets behind "limit", where nothing speaks of tokens, is a code.
            let is_code = !has_tokens
                && words
                    .get(..at)
                    .is_some_and(|before| before.ends_with(&[limit.clone(), Word::Mark('(')]))
                && words.get(at + 1) == Some(&Word::Mark(')'));
            match is(words, at).filter(|_| !is_code) {
                Some(Is::Part) => more = more.saturating_add(number),
                Some(Is::Used) => figures.used = figures.used.or(Some(number)),
                Some(Is::Limit) if number < LEAST => {}
                Some(Is::Limit) if figures.limit.is_none() => figures.limit = Some(number),
                Some(Is::Limit) => also.push(number),
                None => {}
            }
        }
    }
    let over = also.first().copied().filter(|over| Some(*over) > figures.limit);
    figures.used = figures.used.or(over).map(|used| used.saturating_add(more));
    if let (Some(used), None) = (figures.used, figures.window()) {
        let with = |limit| Figures { used: Some(used), limit: Some(limit) };
        let other = also.into_iter().find(|limit| with(*limit).window().is_some());
        figures.limit = other.or(figures.limit);
    }
    // As small a figure is a count of tokens only next to a limit of them.
    figures.used = figures.used.filter(|used| *used >= LEAST || figures.limit.is_some());
    figures
}

/// Returns both sides of a comparison such as `1 + 2 > 3`, `5 tokens > 3`, `5 / 3` or `5 of 3`, if the first one is larger
/// and the other one can be a limit.
pub(super) fn compared(words: &[Word]) -> Option<(u64, u64)> {
    for (at, first) in words.iter().enumerate().filter_map(|(at, word)| Some((at, word.number()?)))
    {
        let mut sum = first;
        let mut rest = words.get(at + 1..).unwrap_or_default();
        loop {
            rest = match rest {
                [Word::Text(unit), rest @ ..] if matches!(unit.as_str(), "token" | "tokens") => {
                    rest
                }
                [Word::Mark('+'), Word::Number(more), rest @ ..] => {
                    sum = sum.saturating_add(*more);
                    rest
                }
                [Word::Text(of), rest @ ..]
                    if of == "of" && matches!(rest, [Word::Number(limit), ..] if sum > *limit) =>
                {
                    let limit = rest.first().and_then(Word::number)?;
                    return (limit >= LEAST).then_some((sum, limit));
                }
                [Word::Mark('>' | '/'), Word::Number(limit), rest @ ..] => {
                    // What is subtracted from the limit was not sent.
                    let is_whole = !matches!(rest, [Word::Mark('-'), ..]);
                    if is_whole && sum > *limit && *limit >= LEAST {
                        return Some((sum, *limit));
                    }
                    break;
                }
                _ => break,
            };
        }
    }
    None
}

/// Returns what a number represents, by the words behind it, then by those before it.
fn is(words: &[Word], at: usize) -> Option<Is> {
    let (before, behind) = (words.get(..at)?, words.get(at + 1..)?);
    // `input 5 + max_tokens 3`, `5 in the messages plus 3 for the answer`.
    let is_joined = |word: &Word| *word == Word::Mark('+') || matches!(word.text(), "plus");
    let mut named = before.iter().rev().take(4).take_while(|word| word.number().is_none());
    if named.any(is_joined) && before.iter().any(|word| word.number().is_some()) {
        return Some(Is::Part);
    }
    // Of a range the end counts, and what stands alone between such brackets is a place in a list.
    let before = match (before, behind) {
        ([before @ .., Word::Mark('['), Word::Number(_), Word::Mark(',')], _) => before,
        ([.., Word::Mark('[')], [Word::Mark(']' | ','), ..]) => return None,
        _ => before,
    };
    for (nth, word) in behind.iter().take(3).enumerate() {
        match word.text() {
            "output" | "completion" | "draft" | "new" | "characters" | "chars" | "bytes" | "mb"
            | "messages" => return None,
            "used" | "sent" | "given" | "provided" | "requested" => return Some(Is::Used),
            "max" if behind.get(nth + 1).is_some_and(|next| next.text() == "tokens") => break,
            "maximum" | "max" | "limit" | "available" | "allowed" => return Some(Is::Limit),
            "token" | "tokens" | "input" | "prompt" | "was" | "were" => {}
            _ => break,
        }
    }
    let mut noun = None;
    let mut is_borne = false;
    let is_given = matches!(before, [.., Word::Mark(':' | '=')]);
    for (back, word) in before.iter().rev().take(9).enumerate() {
        let word = match word {
            Word::Number(_) | Word::Mark(',') => break,
            // `< 5` is a bound, `<5>` is not.
            Word::Mark('<') if behind.first() != Some(&Word::Mark('>')) => return Some(Is::Limit),
            Word::Mark('-') => return None,
            Word::Mark(':' | '(') if noun.is_some() => break,
            Word::Mark(_) => continue,
            Word::Text(word) => word.as_str(),
        };
        match word {
            "maximum" | "max" | "limit" | "limits" | "window" | "context" | "ctx" | "supports"
            | "holds" | "takes" | "most" | "only" | "allowed" | "allows" | "than" | "range"
            | "limited" | "capacity" | "up" | "kv" => {
                return Some(Is::Limit);
            }
            "exceed" | "exceeds" | "exceeded" | "exceeding" => return noun.or(Some(Is::Limit)),
            "requested" | "used" | "contains" | "contain" | "resulted" | "has" | "have" | "had"
            | "got" | "given" | "received" | "sent" | "total" | "needs" | "actual" | "first"
            | "current" => {
                return Some(Is::Used);
            }
            "prompt" | "prompts" | "input" | "inputs" | "request" | "messages" | "message"
            | "conversation" | "content" | "text" | "prefill" | "sequence" | "n" | "value" => {
                noun = noun.or(Some(Is::Used));
            }
            // What a model cannot take was sent.
            "handle" | "process" | "accept" | "support" | "take" | "hold" | "fit" => {
                is_borne = true;
            }
            "t" | "not" | "cannot" if is_borne => return Some(Is::Used),
            "by" if back == 0 => return None,
            // A count that is given as a field: `tokens: 5`.
            "tokens" | "token" if back == 1 && is_given => noun = noun.or(Some(Is::Used)),
            // What the model may answer was not sent.
            "output" | "completion" if is_given => return None,
            "length" | "len" | "size" | "count" | "number" | "tokens" | "token" | "of" | "is"
            | "the" | "a" | "an" | "about" | "at" | "in" | "long" | "too" | "to" | "be"
            | "should" | "model" | "with" | "least" | "your" | "this" | "supported" | "by"
            | "was" | "num" | "accepts" | "just" | "seq" | "cache" => {}
            _ => break,
        }
    }
    noun
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
