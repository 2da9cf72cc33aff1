//! The words of a quota: so much in such a time, an account that is spent, money.
//!
//! A rate is known by its shape, a number of something in a unit of time, whatever the number and the unit are.
//!
//! Invariant: what is read here is asked before any overflow is: "too many tokens" is one thing before "per minute" and
//! another before "in the prompt".

use crate::context::refusal::{Word, sentences};

/// Words of a rate, a quota or a throttle that has no unit of time in its name.
const RATES: [&str; 29] = [
    "rate limit",
    "rate_limit",
    "rate-limit",
    "ratelimit",
    "request rate",
    "too many requests",
    "too many concurrent",
    "concurrency limit",
    "concurrent requests",
    "parallel request",
    "requests per",
    "daily",
    "hourly",
    "weekly",
    "monthly",
    "today",
    "this week",
    "this month",
    "throttl",
    "resource_exhausted",
    "resource exhausted",
    "please wait before",
    "slow down",
    "usage limit",
    "usage cap",
    "quota",
    "will reset",
    "free tier",
    "leaky bucket",
];

/// Words of an account that no waiting refills.
const SPENT: [&str; 10] = [
    "insufficient_quota",
    "billing",
    "credit balance",
    "credits",
    "payment",
    "can only afford",
    "remaining balance",
    "余额",
    "欠费",
    "充值",
];

/// Short names of tokens and requests per minute, per day and the like.
const SHORT: [&str; 17] = [
    "tpm", "rpm", "tpd", "rpd", "tph", "rph", "tps", "rps", "qps", "qpm", "itpm", "otpm", "itpd",
    "otpd", "ipm", "tpw", "tpmo",
];

/// Whether plain words name a rate or a quota.
pub(super) fn names_rate(plain: &str) -> bool {
    RATES.iter().any(|word| plain.contains(word))
        || sentences(plain).iter().any(|words| is_rate(words))
}

/// Returns where plain words speak of an account that is spent.
pub(super) fn spent(plain: &str) -> Option<usize> {
    SPENT.iter().filter_map(|word| plain.find(word)).min()
}

/// Whether a sentence has the shape of a rate.
fn is_rate(words: &[Word]) -> bool {
    // A hyphen joins the words of a rate, and parts nothing.
    let words: Vec<&Word> = words.iter().filter(|word| **word != Word::Mark('-')).collect();
    let text = |at: usize| words.get(at).map_or("", |word| word.text());
    let says = |any: &[&str]| words.iter().any(|word| any.contains(&word.text()));
    let is_counted = says(&["token", "tokens", "request", "requests", "message", "messages"]);
    // A limit of "your" tokens is one of the account, if it is not one of the model.
    let is_own = |at: usize| {
        let is_account = matches!(text(at), "allowance" | "allotment");
        let is_yours = text(at) == "exceeded" && text(at + 1) == "your";
        (is_account || is_yours) && !says(&["context", "model", "window", "length"])
    };
    (0..words.len()).any(|at| match text(at) {
        short if SHORT.contains(&short) => true,
        "per" | "every" | "each" => is_time(&words, at + 1),
        "a" | "an" => is_unit(text(at + 1)) && ends_count(&words, at),
        "last" | "past" | "previous" => is_counted && is_time(&words, at + 1),
        "in" | "within" => {
            let is_bound =
                says(&["limit", "limits", "max", "maximum", "exceeded", "exceeds", "many"]);
            is_counted && is_bound && is_span(&words, at + 1)
        }
        "bucket" => at > 0 && matches!(text(at - 1), "token" | "tokens" | "rate"),
        "" => words.get(at) == Some(&&Word::Mark('/')) && is_time(&words, at + 1),
        _ => is_own(at),
    })
}

/// Whether what is counted stands before this place: `40k tokens a minute`.
fn ends_count(words: &[&Word], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|at| words.get(at));
    before.is_some_and(|word| {
        word.number().is_some() || matches!(word.text(), "tokens" | "requests" | "messages")
    })
}

/// Whether a unit of time is here, with a number of it or without: `minute`, `5 minutes`, `calendar month`.
fn is_time(words: &[&Word], at: usize) -> bool {
    let is_kind =
        matches!(words.get(at).map_or("", |word| word.text()), "calendar" | "rolling" | "single");
    let at = at + usize::from(is_kind);
    words.get(at).is_some_and(|word| is_unit(word.text())) || is_span(words, at)
}

/// Whether a number of a unit of time is here: `60 seconds`, `24h`.
fn is_span(words: &[&Word], at: usize) -> bool {
    span(words.get(at).copied(), words.get(at + 1).copied())
}

/// Whether a word, or a number and the word behind it, is a span of time.
pub(super) fn span(word: Option<&Word>, next: Option<&Word>) -> bool {
    let unit = match (word, next) {
        (Some(Word::Number(_)), Some(Word::Text(unit))) => unit,
        (Some(Word::Text(run)), _) if run.starts_with(|c: char| c.is_ascii_digit()) => {
            run.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
        }
        _ => return false,
    };
    is_unit(unit) || matches!(unit, "s" | "h" | "d" | "ms")
}

/// Whether a word is a unit of time.
fn is_unit(word: &str) -> bool {
    const UNITS: [&str; 9] =
        ["second", "sec", "minute", "min", "hour", "hr", "day", "week", "month"];
    UNITS.contains(&word.strip_suffix('s').unwrap_or(word))
        || matches!(word, "millisecond" | "milliseconds")
}

/// Whether a sentence speaks of money.
pub(super) fn is_of_money(words: &[Word]) -> bool {
    const MONEY: [&str; 19] = [
        "usd", "eur", "gbp", "cny", "rmb", "dollar", "dollars", "euro", "euros", "cent", "cents",
        "yuan", "cost", "costs", "price", "spend", "spent", "spending", "money",
    ];
    let is_mark = |word: &Word| matches!(word, Word::Mark('$' | '€' | '£' | '¥'));
    let is_figure = |word: &Word| {
        word.number().is_some() || word.text().starts_with(|c: char| c.is_ascii_digit())
    };
    words.iter().any(|word| MONEY.contains(&word.text()))
        || words.windows(2).any(|two| match two {
            [one, other] => {
                (is_mark(one) && is_figure(other)) || (is_figure(one) && is_mark(other))
            }
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_much_in_a_time_is_a_rate_whatever_the_time_is() {
        for said in [
            "tokens/min",
            "tokens per 5 minutes",
            "tokens_per_day",
            "40000 per-hour",
            "per calendar month",
            "every 24h",
            "each second",
            "40k tokens a minute",
            "tokens of the last 60s",
            "the limit of tokens in 24 hours",
            "itpm",
            "token bucket",
            "you exceeded your allotment",
        ] {
            assert!(names_rate(said), "{said}");
        }
        for said in [
            "tokens per request",
            "every token of the last message",
            "it took 60 seconds",
            "your prompt has exceeded your model's context",
            "wait a minute",
            "no such bucket",
            "5/3 tokens",
        ] {
            assert!(!names_rate(said), "{said}");
        }
    }

    #[test]
    fn a_span_of_time_is_a_number_of_a_unit() {
        let is = |said: &str| {
            let words = sentences(said).concat();
            span(words.first(), words.get(1))
        };
        for said in ["60s", "60 s", "1.5h", "2 hours", "500ms", "3 milliseconds"] {
            assert!(is(said), "{said}");
        }
        for said in ["s", "hours", "60", "60 tokens", "128k", "7b"] {
            assert!(!is(said), "{said}");
        }
    }

    #[test]
    fn money_is_known_by_its_name_or_its_mark() {
        let is = |said: &str| is_of_money(&sentences(said).concat());
        assert!(is("5.20 usd") && is("more than $5") && is("12 €") && is("the cost"));
        assert!(!is("200000 tokens > 128000") && !is("complete$v1"));
    }
}
