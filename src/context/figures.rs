//! The figures of a refusal: how many tokens were sent, and how many the model takes.
//!
//! A figure is what the words around it say that it is; a comparison says both at once.

use crate::context::refusal::Word;

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

/// What a figure stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Used,
    Limit,
}

/// Reads the figures of sentences; the first one of each kind counts.
pub(super) fn read<'a>(sentences: impl Iterator<Item = &'a [Word]>) -> Figures {
    let mut figures = Figures::default();
    let mut also = None;
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
                Some(Is::Used) => figures.used = figures.used.or(Some(number)),
                Some(Is::Limit) if number < LEAST => {}
                Some(Is::Limit) if figures.limit.is_none() => figures.limit = Some(number),
                // A second number next to a limit is what was over it.
                Some(Is::Limit) => also = also.or(Some(number)),
                None => {}
            }
        }
    }
    figures.used = figures.used.or(also.filter(|also| Some(*also) > figures.limit));
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

/// Returns what a number stands for, by the words behind it, then by those before it.
fn is(words: &[Word], at: usize) -> Option<Is> {
    let (before, behind) = (words.get(..at)?, words.get(at + 1..)?);
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
            Word::Mark(':') if noun.is_some() => break,
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
