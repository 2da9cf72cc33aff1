//! Classifies a provider's error: an overflow, a rate limit, a refusal, or an unavailable server.
//!
//! Providers have no common code for "this request is larger than the model's window". Each words it differently and changes
//! the words from version to version. So an overflow is recognised by the shape of the sentence: it mentions the
//! input, the context or tokens, and says that they do not fit, or gives two figures with the larger one for what was sent. The
//! words are in `refusals.toml`. Known misses, because the answer says nothing: a server that silently truncates the prompt
//! (Ollama by default), a gateway that answers 400 without a body.
//!
//! Invariant: an error that mentions a rate, a quota or a throttle is never an overflow, whatever else it says; nor is a
//! status about authorisation (401, 402, 403), a missing resource (404) or a rate (429).

use std::time::Duration;

pub use crate::context::figures::Figures;
use crate::context::{
    figures::read,
    phrases::PHRASES,
    refusal::{Sentence, plain, sentences, wait},
};

/// What an error means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The request is larger than the window. Send less.
    Overflow(Figures),
    /// Too many requests or tokens in too short a time. The same request may succeed after this time.
    RateLimited(Option<Duration>),
    /// The server is busy or broken. The same request may succeed later.
    Unavailable,
    /// The same request would be refused again.
    Refused,
}

/// Classifies an error by its status, if it has one, and its text: a body, a message, a command's output.
pub fn judge(status: Option<u16>, said: &str) -> Verdict {
    let said = plain(said);
    let mut sentences = sentences(&said);
    let foreign = &PHRASES.foreign;
    let is_rate = status == Some(429)
        || foreign.rate.is_in(&said)
        || sentences.iter().any(|one| one.says(&PHRASES.rate));
    let wait = wait(&said).filter(|_| is_rate || status.is_none_or(|status| status < 500));
    if wait.is_some() {
        return Verdict::RateLimited(wait);
    }
    let spent = sentences.iter().position(|one| one.says(&PHRASES.spent));
    let spent = spent.or_else(|| foreign.spent.is_in(&said).then_some(0));
    match (is_rate, spent) {
        (true, None) => return Verdict::RateLimited(None),
        (true, Some(_)) => return Verdict::Refused,
        // An overflow may end with an offer to buy more. A refusal for lack of credit begins with the credit.
        (false, Some(at)) => sentences.truncate(at),
        (false, None) => {}
    }
    let figures = overflow(&sentences)
        .or_else(|| foreign_overflow(&said, &sentences).filter(|_| spent.is_none()))
        .filter(|_| !matches!(status, Some(401..=404)));
    if let Some(figures) = figures {
        return Verdict::Overflow(figures);
    }
    match status {
        _ if spent.is_some() => Verdict::Refused,
        Some(408 | 425 | 500..) => Verdict::Unavailable,
        _ if sentences.iter().any(|one| one.says(&PHRASES.busy)) => Verdict::Unavailable,
        _ => Verdict::Refused,
    }
}

/// Returns true if a stop reason says that the model's window was full.
pub fn is_full(stop: &str) -> bool {
    stop == "model_context_window_exceeded"
}

/// Returns the figures in a text, whatever they are about.
pub fn figures(said: &str) -> Figures {
    read(&sentences(&plain(said)))
}

/// Returns the figures of an overflow, if English sentences report one.
fn overflow(sentences: &[Sentence]) -> Option<Figures> {
    let sizes: Vec<&Sentence> = sentences.iter().filter(|one| !one.is_elsewhere()).collect();
    let figures = read(sizes.iter().copied());
    let is_over = sizes.iter().any(|one| one.is_overflow())
        || (figures.is_over() && sizes.iter().any(|one| one.is_sized()))
        || sentences.iter().any(Sentence::has_no_room);
    is_over.then_some(figures)
}

/// Returns the figures of an overflow, if a text in another language reports one. Only word stems are matched, not grammar.
fn foreign_overflow(said: &str, sentences: &[Sentence]) -> Option<Figures> {
    let foreign = &PHRASES.foreign;
    let figures = Some(read(sentences)).filter(Figures::is_over);
    let is_over = foreign.over.is_in(said) || (figures.is_some() && foreign.most.is_in(said));
    let is_size = foreign.sent.is_in(said) && !foreign.other.is_in(said);
    (is_over && is_size).then(|| figures.unwrap_or_default())
}

impl Sentence {
    /// Returns true if the sentence is about something other than the size of what was sent.
    fn is_elsewhere(&self) -> bool {
        let context = self.find(&PHRASES.context);
        let is_measured =
            self.says(&PHRASES.tokens) && (context.is_some() || read([self]).is_over());
        let begins_with_output = !self.says(&PHRASES.input)
            && self
                .find(&PHRASES.output)
                .is_some_and(|at| context.is_none_or(|context| at < context));
        begins_with_output
            || self.says(&PHRASES.other)
            || (self.says(&PHRASES.cost) && !is_measured)
            || (self.says(&PHRASES.part) && !self.says(&PHRASES.tokens) && context.is_none())
    }

    /// Returns true if the sentence mentions a size that a model has a limit for.
    fn is_sized(&self) -> bool {
        [&PHRASES.tokens, &PHRASES.context, &PHRASES.input].iter().any(|list| self.says(list))
    }

    /// Returns true if the sentence says that more was sent than fits.
    fn is_overflow(&self) -> bool {
        let [context, input, tokens, large] =
            [&PHRASES.context, &PHRASES.input, &PHRASES.tokens, &PHRASES.large]
                .map(|list| self.says(list));
        let is_sized = self.says(&PHRASES.size);
        if large || self.says(&PHRASES.over) || read([self]).is_over() {
            return context || (input && (tokens || large || is_sized)) || (tokens && is_sized);
        }
        let is_bound = self.says(&PHRASES.bound) && self.numbers().next().is_some();
        is_bound && (context || (input && (tokens || is_sized)))
    }

    /// Returns true if the sentence reports a negative limit for the answer: the input has used up the window.
    fn has_no_room(&self) -> bool {
        self.says(&PHRASES.output) && self.says(&PHRASES.negative)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn overflows(status: impl Into<Option<u16>>, said: &str, used: u64, limit: u64) {
        let some = |figure| (figure > 0).then_some(figure);
        let figures = Figures { used: some(used), limit: some(limit) };
        assert_eq!(judge(status.into(), said), Verdict::Overflow(figures), "{said}");
    }

    #[test]
    fn a_window_that_is_full_is_a_reason_to_stop() {
        assert!(is_full("model_context_window_exceeded"));
        assert!(!is_full("max_tokens"));
    }

    #[test]
    fn a_refusal_that_says_when_to_ask_again_is_waited_for_whatever_else_it_says() {
        let said = "Rate limit reached. Please try again in 2.5s. See https://x/account/billing or add credits.";
        let wait = Some(Duration::from_secs_f64(2.5));
        assert_eq!(judge(Some(429), said), Verdict::RateLimited(wait));
        assert_eq!(judge(None, said), Verdict::RateLimited(wait));
        assert_eq!(
            judge(Some(429), "prompt is too long: 2 tokens > 1 maximum"),
            Verdict::RateLimited(None)
        );
        assert_eq!(judge(Some(429), "see https://x/billing"), Verdict::RateLimited(None));
        assert_eq!(judge(Some(429), "insufficient_quota"), Verdict::Refused);
        assert_eq!(judge(Some(503), "overloaded, try again in 5s"), Verdict::Unavailable);
    }

    #[test]
    fn figures_that_are_none_leave_the_verdict() {
        overflows(400, "prompt is too long: many tokens > 5000 maximum", 0, 5000);
        overflows(
            400,
            "prompt is too long: 99999999999999999999999 tokens > 5000 maximum",
            0,
            5000,
        );
        overflows(400, "maximum context length is ,,, or prompt is too long", 0, 0);
        overflows(400, "the prompt is too long by 4 tokens", 0, 0);
        overflows(400, "prompt_tokens=5000 exceeds n_ctx=4096, code 1261", 5000, 4096);
    }

    #[test]
    fn fields_and_requests_say_what_a_sentence_would() {
        overflows(400, "tokens: 210000, max: 200000", 210_000, 200_000);
        overflows(400, "{\"tokens\": 210000, \"limit\": 200000}", 210_000, 200_000);
        overflows(400, "Please shorten your conversation.", 0, 0);
        overflows(400, "Shorten the prompt and try again", 0, 0);
        for said in [
            "tokens: 1000, max: 200000",
            "output tokens: 210000, max: 200000",
            "please shorten your message id",
            "please shorten your name",
        ] {
            assert_eq!(judge(Some(400), said), Verdict::Refused, "{said}");
        }
    }

    #[test]
    fn nothing_is_an_overflow_for_a_word_alone() {
        for said in
            ["", ".", "context", "tokens", "exceeded", "{\"message\":\"\"}", "5 > 3", "\\u", "上限"]
        {
            assert!(!matches!(judge(None, said), Verdict::Overflow(_)), "{said}");
        }
    }
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
            assert_eq!(judge(None, said), Verdict::RateLimited(None), "{said}");
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
            assert!(!matches!(judge(None, said), Verdict::RateLimited(_)), "{said}");
        }
    }

    #[test]
    fn money_is_known_by_its_name_or_its_mark() {
        for said in ["5.20 usd", "more than $5", "12 €", "the cost"] {
            let said = format!("the prompt exceeds the limit: {said}");
            assert_eq!(judge(None, &said), Verdict::Refused, "{said}");
        }
        for said in ["200000 tokens > 128000", "complete$v1"] {
            let said = format!("the prompt exceeds the limit: {said}");
            assert!(matches!(judge(None, &said), Verdict::Overflow(_)), "{said}");
        }
    }

    #[test]
    fn an_overflow_is_recognised_in_other_languages() {
        let check = |said: &str, used: u64, limit: u64| {
            overflows(400, said, used, limit);
        };
        check("Die Eingabe überschreitet das Kontextfenster: 9.001 von 8.192 Tokens", 9001, 8192);
        check("Maximum 8\u{202f}192 jetons : le contexte est dépassé (9\u{202f}001)", 9001, 8192);
        check("最大 8192 トークンを超えています: 9001", 9001, 8192);
        check("模型输入最大长度为 8192，当前为 9001", 9001, 8192);
        check("Контекст превышен: 9001 > 8192 (ошибка 400)", 9001, 8192);
    }

    #[test]
    fn rates_and_outputs_are_no_overflow_in_any_language() {
        for said in [
            "Die Ausgabe überschreitet 8.192 Tokens",
            "画像が大きすぎます: 入力 9001",
            "Le jeton d'accès a dépassé sa durée",
        ] {
            assert_eq!(judge(Some(400), said), Verdict::Refused, "{said}");
        }
        let said = "se superó el límite de tokens por minuto";
        assert_eq!(judge(None, said), Verdict::RateLimited(None));
    }
}
