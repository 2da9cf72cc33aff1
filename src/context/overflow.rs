//! The meaning of a provider's refusal: an overflow, a limit of rate, a refusal, or a server that is not there.
//!
//! Providers have no common code for "this request is larger than the model's window". Each words it in its own way, and
//! changes the words from version to version. So an overflow is recognised by the shape of the sentence: it speaks of what
//! was sent, of the context or of tokens, and says that this is more than fits. Known misses, which nothing in the answer betrays: a server that silently cuts the
//! prompt (Ollama as it is installed), a gateway that answers 400 without a body.
//!
//! Invariant: a refusal that names a rate, a quota or a throttle is never an overflow, whatever else it says; nor is a
//! status that is about who asks (401, 402, 403), about a place (404) or about a rate (429).

use std::time::Duration;

pub use crate::context::figures::Figures;
use crate::context::{
    figures::{compared, read},
    quota,
    refusal::{Word, plain, sentences, wait},
    tongues,
};

/// The meaning of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The request is larger than the window: less must be sent.
    Overflow(Figures),
    /// Too many requests or tokens came in too short a time: the same request may pass after this time.
    RateLimited(Option<Duration>),
    /// The server is busy or broken: the same request may pass later.
    Unavailable,
    /// The same request would be refused again.
    Refused,
}

/// Words of a server that is busy.
const BUSY: [&str; 4] =
    ["overloaded", "service unavailable", "temporarily unavailable", "at capacity"];

/// Returns the meaning of a refusal, by its status if it has one and by its words: a body, a message, a command's text.
pub fn judge(status: Option<u16>, said: &str) -> Verdict {
    let said = plain(said);
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let is_rate = status == Some(429) || quota::names_rate(&said) || tongues::names_rate(&said);
    let wait = wait(&said).filter(|_| is_rate || status.is_none_or(|status| status < 500));
    if wait.is_some() {
        return Verdict::RateLimited(wait);
    }
    let spent = quota::spent(&said);
    if is_rate {
        return if spent.is_some() { Verdict::Refused } else { Verdict::RateLimited(None) };
    }
    // What is for sale is said behind an overflow; an account that is spent is said first.
    let told = spent.map_or(&*said, |at| before_sentence(&said, at));
    let figures = overflow(told).filter(|_| !matches!(status, Some(401..=404)));
    if let Some(figures) = figures {
        return Verdict::Overflow(figures);
    }
    match status {
        _ if spent.is_some() => Verdict::Refused,
        Some(408 | 425 | 500..) => Verdict::Unavailable,
        _ if says(&BUSY) => Verdict::Unavailable,
        _ => Verdict::Refused,
    }
}

/// Returns what comes before the sentence of this place.
fn before_sentence(said: &str, at: usize) -> &str {
    let before = said.get(..at).unwrap_or_default();
    let end = [". ", "; ", "! ", "? ", "\n", "。"].iter().filter_map(|end| before.rfind(end)).max();
    end.and_then(|end| before.get(..end)).unwrap_or_default()
}

/// Whether a model stopped because its window was full, by the reason that it gave.
pub fn is_full(stop: &str) -> bool {
    stop == "model_context_window_exceeded"
}

/// Returns the figures in words, whatever they tell of.
pub fn figures(said: &str) -> Figures {
    read(sentences(&plain(said)).iter().map(Vec::as_slice))
}

/// Returns the figures of an overflow, if plain words tell of one.
fn overflow(plain: &str) -> Option<Figures> {
    let sentences: Vec<Sentence> = sentences(plain).into_iter().map(Sentence::of).collect();
    let about_input: Vec<&Sentence> = sentences.iter().filter(|one| !one.is_elsewhere()).collect();
    let words = || about_input.iter().map(|one| one.words.as_slice());
    let figures = read(words());
    let is_over = figures.used.zip(figures.limit).is_some_and(|(used, limit)| used > limit);
    let is_told = about_input.iter().any(|one| one.tells())
        || (is_over && about_input.iter().any(|one| one.is_sized()))
        || sentences.iter().any(Sentence::has_no_room);
    let foreign = || {
        let foreign = tongues::overflow(plain)?;
        let (used, limit) = (figures.used.or(foreign.used), figures.limit.or(foreign.limit));
        Some(Figures { used, limit })
    };
    is_told.then_some(figures).or_else(foreign)
}

/// A sentence and what it speaks of.
struct Sentence {
    words: Vec<Word>,
    /// The context of a model: its window, its length.
    context: Option<usize>,
    /// What was sent.
    input: Option<usize>,
    /// What the model may answer.
    output: Option<usize>,
    /// Tokens, whosever they are.
    has_tokens: bool,
}

/// Things that a request has and that have limits of their own.
const PARTS: [&str; 34] = [
    "image",
    "images",
    "picture",
    "photo",
    "pdf",
    "page",
    "pages",
    "audio",
    "video",
    "file",
    "files",
    "pixel",
    "pixels",
    "dimension",
    "dimensions",
    "attachment",
    "attachments",
    "tool",
    "tools",
    "function",
    "functions",
    "name",
    "description",
    "schema",
    "metadata",
    "properties",
    "stop",
    "key",
    "id",
    "logprobs",
    "batch",
    "embedding",
    "embeddings",
    "blocks",
];

/// Things of the way that a request took.
const WAYS: [&str; 26] = [
    "header",
    "headers",
    "cookie",
    "cookies",
    "uri",
    "url",
    "queue",
    "retries",
    "recursion",
    "concurrent",
    "connections",
    "redirects",
    "turns",
    "timeout",
    "timed",
    "deadline",
    "duration",
    "lifetime",
    "flagged",
    "policy",
    "violations",
    "authentication",
    "password",
    "credential",
    "credentials",
    "caching",
];

impl Sentence {
    fn of(mut words: Vec<Word>) -> Self {
        // A long time is no length, what a value "should be" or what is validated is about no input, and a token can also be
        // what opens a door.
        const ELSEWHERE: [&[&str]; 15] = [
            &["took", "too"],
            &["taking", "too"],
            &["takes", "too"],
            &["too", "long", "to", "respond"],
            &["too", "long", "to", "answer"],
            &["input", "should"],
            &["input", "validation"],
            &["access", "token"],
            &["session", "token"],
            &["refresh", "token"],
            &["bearer", "token"],
            &["auth", "token"],
            &["api", "token"],
            &["context", "management"],
            &["at", "least"],
        ];
        let text = |words: &[Word], at: usize| words.get(at).map(|word| word.text().to_owned());
        for at in 0..words.len() {
            let is = |phrase: &[&str]| {
                (at..).zip(phrase).all(|(at, part)| text(&words, at).as_deref() == Some(part))
            };
            if let Some(phrase) = ELSEWHERE.iter().find(|phrase| is(phrase)) {
                for word in words.iter_mut().skip(at).take(phrase.len()) {
                    *word = Word::Text(String::new());
                }
            }
        }
        let mut sentence =
            Self { words, context: None, input: None, output: None, has_tokens: false };
        sentence.has_tokens = sentence.find(&["token", "tokens"]).is_some();
        sentence.context = sentence.find_context();
        sentence.input = sentence.find_input();
        sentence.output = sentence.find_output();
        sentence
    }

    fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", Word::text)
    }

    /// Returns where the first of these words is.
    fn find(&self, any: &[&str]) -> Option<usize> {
        self.words.iter().position(|word| any.contains(&word.text()))
    }

    /// Whether one of these words is here or among the next few.
    fn follows(&self, at: usize, reach: usize, any: &[&str]) -> bool {
        (at..at + reach).any(|at| any.contains(&self.word(at)))
    }

    fn find_context(&self) -> Option<usize> {
        (0..self.words.len()).find(|&at| match self.word(at) {
            "context" => !matches!(self.word(at + 1), "deadline" | "canceled" | "cancelled"),
            "ctx" => true,
            "model" | "sequence" | "seq" => self.follows(at + 1, 1, &["len", "length"]),
            "window" => self.has_tokens,
            _ => false,
        })
    }

    fn find_input(&self) -> Option<usize> {
        const INPUTS: [&str; 17] = [
            "prompt",
            "prompts",
            "input",
            "inputs",
            "message",
            "messages",
            "conversation",
            "conversations",
            "history",
            "transcript",
            "chat",
            "prefill",
            "thread",
            "session",
            "dialog",
            "dialogue",
            "question",
        ];
        (0..self.words.len()).find(|&at| match self.word(at) {
            "tokens" => self.word(at + 1) == "in" && self.follows(at + 2, 2, &["request", "query"]),
            word => INPUTS.contains(&word),
        })
    }

    fn find_output(&self) -> Option<usize> {
        (0..self.words.len()).find(|&at| match self.word(at) {
            "completion" | "completions" | "output" | "outputs" => true,
            "maximum" => self.word(at + 1) == "tokens" && self.word(at + 2) == "you",
            "max" | "budget" if self.word(at + 1) == "tokens" => self.word(at + 2) != "of",
            "max" => self.word(at + 1) == "new" && self.word(at + 2) == "tokens",
            _ => false,
        })
    }

    /// Whether the sentence speaks of something else than the size of what was sent.
    fn is_elsewhere(&self) -> bool {
        let begins_with_output =
            self.output.is_some_and(|at| self.context.is_none_or(|context| at < context));
        // The context of a schema is a place in it.
        let is_part = !self.has_tokens
            && (self.find(&["schema"]).is_some()
                || (self.find(&PARTS).is_some() && self.context.is_none()));
        (begins_with_output && self.input.is_none())
            || is_part
            || self.is_of_output()
            || self.is_of_sampling()
            || self.is_of_count()
            || (!self.is_measured() && (self.is_of_time() || quota::is_of_money(&self.words)))
            || self.find(&WAYS).is_some()
            || (self
                .find(&["small", "short"])
                .is_some_and(|at| self.word(at.wrapping_sub(1)) == "too"))
    }

    /// Whether it says that the answer reached its limit, whatever the message was: `max_tokens was reached`, `the output limit`.
    fn is_of_output(&self) -> bool {
        const OUTPUTS: [&str; 6] =
            ["output", "completion", "generation", "response", "reply", "answer"];
        let is_cut = |at: usize| {
            let is_output = match self.word(at) {
                "tokens" => self.word(at.wrapping_sub(1)) == "max",
                word => OUTPUTS.contains(&word),
            };
            let before = self.words.get(at.wrapping_sub(1));
            let is_joined = before.is_some_and(|before| {
                *before == Word::Mark('+') || matches!(before.text(), "and" | "plus")
            });
            is_output
                && !is_joined
                && self.follows(at + 1, 2, &["limit", "length", "reached", "truncated"])
        };
        self.context.is_none() && (0..self.words.len()).any(is_cut)
    }

    /// Whether it is about a parameter of sampling: `best_of`, `top_n_tokens`.
    fn is_of_sampling(&self) -> bool {
        const NAMES: [&str; 7] =
            ["temperature", "penalty", "seed", "logit", "logprobs", "beams", "typical"];
        let is_named = |at: usize| match self.word(at) {
            "best" => self.word(at + 1) == "of",
            "top" | "min" => self.follows(at + 1, 1, &["p", "k", "n", "a"]),
            name => NAMES.contains(&name),
        };
        self.context.is_none() && self.input.is_none() && (0..self.words.len()).any(is_named)
    }

    /// Whether it is about how many messages or conversations there may be, or how many parts one may have.
    fn is_of_count(&self) -> bool {
        const MOST: [&str; 6] = ["of", "most", "to", "than", "max", "only"];
        let is_count = |at: usize| match self.word(at) {
            "message" | "messages" | "session" | "sessions" => {
                !self.has_tokens && self.follows(at + 1, 1, &["limit", "limits", "cap"])
            }
            "limit" | "limits" => {
                self.follows(at + 1, 1, &["of", "on"]) && self.follows(at + 2, 1, &["messages"])
            }
            "number" => {
                self.word(at + 1) == "of"
                    && self.follows(
                        at + 2,
                        1,
                        &["conversations", "chats", "sessions", "threads", "dialogs", "prompts"],
                    )
            }
            _ => {
                self.words.get(at).is_some_and(|word| word.number().is_some())
                    && MOST.contains(&self.word(at.wrapping_sub(1)))
                    && PARTS.contains(&self.word(at + 1))
            }
        };
        (0..self.words.len()).any(is_count)
    }

    /// Whether it measures a time and no tokens: `the limit of 60 seconds`, `the time limit`.
    fn is_of_time(&self) -> bool {
        let is_time = |at: usize| {
            quota::span(self.words.get(at), self.words.get(at + 1))
                || (self.word(at) == "time" && self.follows(at + 1, 1, &["limit", "limits"]))
        };
        (0..self.words.len()).any(is_time)
    }

    /// Whether it measures tokens, whatever else it measures.
    fn is_measured(&self) -> bool {
        self.has_tokens && (self.context.is_some() || compared(&self.words).is_some())
    }

    /// Whether it speaks of a size that a model has a limit for.
    fn is_sized(&self) -> bool {
        self.has_tokens || self.context.is_some() || self.input.is_some()
    }

    /// Whether it says that more was sent than fits.
    fn tells(&self) -> bool {
        let (context, input) = (self.context.is_some(), self.input.is_some());
        let any = |words: &[&str]| self.find(words).is_some();
        let size = || {
            any(&[
                "length", "len", "limit", "limits", "maximum", "max", "size", "model", "window",
                "capacity", "allowed",
            ])
        };
        if self.is_over() {
            let whole = || {
                any(&[
                    "request", "query", "payload", "body", "entity", "text", "content", "sequence",
                ])
            };
            return context
                || self.asks_for_less()
                || (input && (self.has_tokens || self.is_too_large() || size()))
                || (self.has_tokens && (size() || whole() || compared(&self.words).is_some()))
                || (whole() && (self.is_too_large() || any(&["size", "length"])));
        }
        let counts = || self.has_tokens || any(&["character", "characters", "length"]);
        let numbers: Vec<u64> = self.words.iter().filter_map(Word::number).collect();
        let has_less =
            numbers.first().is_some_and(|first| numbers.iter().any(|other| other < first));
        (self.is_bound() && !numbers.is_empty() && (context || (input && counts())))
            || (context && self.has_tokens && has_less)
    }

    /// Whether it asks for a shorter input: `please shorten your conversation`.
    fn asks_for_less(&self) -> bool {
        const OWN: [&str; 3] = ["your", "the", "this"];
        self.find(&["shorten"]).is_some_and(|at| {
            let of_whom = usize::from(OWN.contains(&self.word(at + 1)));
            self.input == Some(at + 1 + of_whom)
        })
    }

    /// Whether it asks for an answer of less than nothing: that much is left of the window.
    fn has_no_room(&self) -> bool {
        let is_negative = |at: usize| {
            self.words.get(at + 1) == Some(&Word::Mark('-'))
                && self.words.get(at + 2).is_some_and(|word| word.number().is_some())
        };
        self.output.is_some() && self.find(&["got"]).is_some_and(is_negative)
    }

    /// Whether it says that something is too large.
    fn is_too_large(&self) -> bool {
        (0..self.words.len()).any(|at| {
            self.word(at) == "too"
                && self.follows(at + 1, 1, &["long", "large", "big", "many", "much", "lengthy"])
        })
    }

    /// Whether it says that something is more than something else.
    fn is_over(&self) -> bool {
        const THAN: [&str; 6] = ["longer", "larger", "greater", "more", "bigger", "higher"];
        self.is_too_large()
            || (0..self.words.len()).any(|at| match self.word(at) {
                "over" | "above" | "beyond" | "past" => self.follows(
                    at + 1,
                    3,
                    &["limit", "limits", "maximum", "max", "context", "window", "length", "model"],
                ),
                "fit" => self.follows(at.saturating_sub(2), 2, &["not", "t", "cannot", "no"]),
                "out" => {
                    self.word(at + 1) == "of"
                        && self.follows(at + 2, 2, &["context", "room", "tokens"])
                }
                "not" => self.word(at + 1) == "enough",
                "at" => self.context.is_some() && self.word(at + 1) == "capacity",
                "no" => self.follows(at + 1, 1, &["room", "space"]),
                "reduce" | "shorten" | "decrease" | "full" | "reached" | "exhausted"
                | "oversized" => true,
                word if THAN.contains(&word) => self.follows(at + 1, 2, &["than"]),
                word => ["exceed", "overflow", "surpass", "outgrow"]
                    .iter()
                    .any(|stem| word.starts_with(stem)),
            })
            || compared(&self.words).is_some()
            || self
                .words
                .windows(2)
                .any(|two| two[0] == Word::Mark(')') && two[1] == Word::Mark('>'))
    }

    /// Whether it names a bound.
    fn is_bound(&self) -> bool {
        const BOUNDS: [&str; 19] = [
            "maximum", "max", "limit", "limits", "limited", "most", "only", "fewer", "less",
            "capacity", "supports", "holds", "takes", "cannot", "smaller", "range", "within",
            "under", "below",
        ];
        self.find(&BOUNDS).is_some()
            || self.words.contains(&Word::Mark('<'))
            || (0..self.words.len()).any(|at| self.word(at) == "up" && self.word(at + 1) == "to")
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
}
