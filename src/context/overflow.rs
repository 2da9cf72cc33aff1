//! The meaning of a provider's refusal: an overflow, a limit of rate, a refusal, or a server that is not there.
//!
//! Providers have no common code for "this request is larger than the model's window", so it is told by their words, and
//! the token figures are read where the words have them. Each wording of the table was seen in the answers of the provider
//! it is named for. Known misses, which nothing in the answer betrays: a server that silently cuts the prompt (Ollama as
//! it is installed), a gateway that answers 400 without a body, words in another language than English.
//!
//! Invariant: a refusal that names a rate, a quota or a throttle is never an overflow, whatever else it says; nor is a
//! status that is about who asks (401, 402, 403), about a place (404) or about a rate (429).

/// The token figures of an overflow, as far as the provider gave them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// How many tokens the request had, with the reserve for the answer where that was added.
    pub used: Option<u64>,
    /// How many the model takes.
    pub limit: Option<u64>,
}

/// The meaning of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The request is larger than the window: less must be sent.
    Overflow(Figures),
    /// Too many requests or tokens came in too short a time: the same request may pass later.
    RateLimited,
    /// The server is busy or broken: the same request may pass later.
    Unavailable,
    /// The same request would be refused again.
    Refused,
}

/// Words of a rate, a quota or a throttle. They come first: "too many tokens" is one thing before "per minute" and another before "in the prompt".
const RATES: [&str; 14] = [
    "rate limit",
    "rate_limit",
    "ratelimit",
    "too many requests",
    "per minute",
    "per-minute",
    "per min (",
    "per day",
    "throttl",
    "resource_exhausted",
    "resource exhausted",
    "please wait before",
    "quota",
    "(tpm)",
];

/// Words of a quota that no waiting refills.
const SPENT: [&str; 3] = ["insufficient_quota", "billing", "credit balance"];

/// Words that resemble an overflow but are not one.
const OTHERS: [&str; 4] = [
    "context window too small",
    "minimum is",
    "maximum allowed number of output tokens",
    "maximum tokens you requested exceeds",
];

/// Words of a server that is busy.
const BUSY: [&str; 4] =
    ["overloaded", "service unavailable", "temporarily unavailable", "at capacity"];

/// Who says it, and how: `{used}` and `{limit}` are numbers, `..` skips up to [`REACH`] bytes of one answer, two `{used}`
/// are added up. In the order in which figures are taken: the first pattern that has one gives it.
const WORDINGS: [(&str, &str); 56] = [
    ("openai, deepseek", "maximum context length is {limit} tokens..resulted in {used} tokens"),
    ("openai, vllm", "maximum context length is {limit} tokens..you requested {used} tokens"),
    ("vllm", "maximum context length is {limit} tokens..your request has {used} input tokens"),
    ("openrouter", "maximum context length is {limit} tokens..you requested about {used} tokens"),
    ("openai, bedrock", "maximum context length is {limit}"),
    ("openai", "context_length_exceeded"),
    ("openai", "exceeds the context window of this model"),
    ("openai, groq, cerebras", "reduce the length of the messages"),
    ("anthropic", "prompt is too long: {used} tokens > {limit}"),
    ("anthropic", "exceed context limit: {used} + {used} > {limit}"),
    ("fireworks", "prompt is too long: {used}, model maximum context length: {limit}"),
    ("anthropic, openrouter", "prompt is too long"),
    ("anthropic", "exceed context limit"),
    ("anthropic, z.ai", "model_context_window_exceeded"),
    ("anthropic", "request_too_large"),
    ("anthropic", "request exceeds the maximum size"),
    ("gemini", "input token count ({used}) exceeds the maximum number of tokens allowed ({limit})"),
    ("gemini", "input token count..exceeds the maximum number of tokens allowed {limit}"),
    ("gemini", "input token count..exceeds the maximum number of tokens"),
    ("vertex", "input token count is {used} but model only supports up to {limit}"),
    ("bedrock", "input is too long for requested model"),
    ("bedrock", "max input tokens: {limit}, request input token count: {used}"),
    ("bedrock", "too many input tokens"),
    ("bedrock", "exceeds model context window"),
    ("copilot", "prompt token count of {used} exceeds the limit of {limit}"),
    ("copilot", "model_max_prompt_tokens_exceeded"),
    ("github models", "request body too large..max size: {limit} tokens"),
    ("github models", "tokens_limit_reached"),
    ("xai", "maximum prompt length is {limit} but the request contains {used} tokens"),
    (
        "mistral",
        "prompt contains {used} tokens..too large for model with {limit} maximum context length",
    ),
    ("cohere", "cannot exceed {limit} - received {used}"),
    ("cohere", "too many tokens"),
    ("kimi", "exceeded model token limit: {limit} (requested: {used})"),
    ("kimi", "exceeded model token limit"),
    ("minimax", "context window exceeds limit"),
    ("qwen", "range of input length should be [1, {limit}]"),
    ("zhipu", "prompt exceeds max length"),
    ("zhipu", "tokens in request more than max tokens allowed"),
    (
        "together, sglang",
        "input ({used} tokens) is longer than the model's context length ({limit} tokens)",
    ),
    ("sglang", "maximum context length of {limit} tokens. you requested a total of {used} tokens"),
    ("sglang", "token count exceeds the model's maximum context length"),
    ("vllm", "decoder prompt (length {used}) is longer than the maximum model length of {limit}"),
    ("text-generation-inference", "must have less than {limit} tokens. given: {used}"),
    ("llama.cpp", "request ({used} tokens) exceeds the available context size ({limit} tokens)"),
    ("llama.cpp", "\"n_prompt_tokens\":{used}"),
    ("llama.cpp", "\"n_ctx\":{limit}"),
    ("llama.cpp", "exceeds the available context size"),
    ("llama.cpp", "exceed_context_size_error"),
    ("llama.cpp", "context size has been exceeded"),
    ("lm studio", "keep the first {used} tokens when..context length of only {limit} tokens"),
    ("lm studio", "greater than the context length"),
    ("ollama", "exceeded max context length"),
    ("ollama", "input length exceeds the context length"),
    ("gateways", "context length exceeded"),
    ("gateways", "context overflow:"),
    ("gateways", "request size exceeds..context"),
];

/// How far `..` reaches: the words and figures of one sentence lie closer, those of two answers further apart.
const REACH: usize = 240;

/// Returns the meaning of a refusal, by its status if it has one and by its words: a body, a message, a command's text.
pub fn judge(status: Option<u16>, said: &str) -> Verdict {
    let said = said.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if says(&SPENT) {
        return Verdict::Refused;
    }
    if status == Some(429) || says(&RATES) {
        return Verdict::RateLimited;
    }
    if !matches!(status, Some(401..=404)) && !says(&OTHERS) {
        let mut figures = Figures::default();
        let mut overflows = status == Some(413) && said.contains("too large");
        for (_, pattern) in WORDINGS {
            if let Some(found) = find(pattern, &said) {
                overflows = true;
                figures.used = figures.used.or(found.used);
                figures.limit = figures.limit.or(found.limit);
            }
        }
        if overflows {
            return Verdict::Overflow(figures);
        }
    }
    match status {
        Some(408 | 425 | 500..) => Verdict::Unavailable,
        _ if says(&BUSY) => Verdict::Unavailable,
        _ => Verdict::Refused,
    }
}

/// Whether a model stopped because its window was full, by the reason that it gave.
pub fn is_full(stop: &str) -> bool {
    stop == "model_context_window_exceeded"
}

/// Finds a pattern of the table in words that are in lower case, and returns its figures.
fn find(pattern: &str, said: &str) -> Option<Figures> {
    let first = pattern.split(['{', '.']).next().unwrap_or(pattern);
    let mut from = 0;
    while let Some(at) = said.get(from..).and_then(|rest| rest.find(first)) {
        let start = from + at;
        if let Some(figures) = said.get(start..).and_then(|rest| follow(pattern, rest)) {
            return Some(figures);
        }
        from = start + first.len().max(1);
    }
    None
}

/// Matches a pattern where it must begin.
fn follow(pattern: &str, said: &str) -> Option<Figures> {
    let mut figures = Figures::default();
    let mut rest = said;
    for (nth, part) in pattern.split("..").enumerate() {
        // Behind a gap the part's first words are searched for; a part that begins with a figure has no gap before it.
        if nth > 0 {
            let words = part.split('{').next().unwrap_or(part);
            let at = rest.find(words).filter(|at| *at <= REACH)?;
            rest = rest.get(at..)?;
        }
        for (nth, piece) in part.split('{').enumerate() {
            let words = match piece.split_once('}') {
                Some((name, words)) if nth > 0 => {
                    let (number, behind) = number(rest)?;
                    match name {
                        "used" => {
                            figures.used = Some(figures.used.unwrap_or(0).saturating_add(number));
                        }
                        _ => figures.limit = Some(number),
                    }
                    rest = behind;
                    words
                }
                _ => piece,
            };
            rest = rest.strip_prefix(words)?;
        }
    }
    Some(figures)
}

/// Reads a number, with or without separators of thousands, and returns what follows.
fn number(said: &str) -> Option<(u64, &str)> {
    let said = said.trim_start_matches(' ');
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, ',' | '_');
    let end = said.find(|c| !is_part(c)).unwrap_or(said.len());
    // A comma that ends the number belongs to the sentence.
    let digits = said.get(..end)?.trim_end_matches([',', '_']);
    let number = digits.replace([',', '_'], "").parse().ok()?;
    Some((number, said.get(digits.len()..)?))
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
    fn openai_and_those_who_speak_like_it() {
        overflows(
            400,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 10015 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
            10015,
            8192,
        );
        overflows(
            400,
            "This model's maximum context length is 4097 tokens. However, you requested 5360 tokens (4336 in the messages, 1024 in the completion). Please reduce the length of the messages or completion.",
            5360,
            4097,
        );
        overflows(
            400,
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            0,
            0,
        );
        overflows(400, r#"{"error":{"code":"context_length_exceeded"}}"#, 0, 0);
        overflows(
            400,
            "This endpoint's maximum context length is 131072 tokens. However, you requested about 140123 tokens (138000 of text input, 2123 in the output). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.",
            140_123,
            131_072,
        );
        overflows(
            400,
            "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 4096 tokens and your request has 100 input tokens (4096 > 4096 - 100).",
            100,
            4096,
        );
        overflows(
            400,
            "prompt token count of 391491 exceeds the limit of 128000",
            391_491,
            128_000,
        );
        overflows(413, "Request body too large for gpt-4o model. Max size: 8000 tokens.", 0, 8000);
        overflows(
            400,
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            537_812,
            131_072,
        );
        overflows(
            400,
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            40_000,
            32_768,
        );
        overflows(
            400,
            "Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)",
            300_000,
            262_144,
        );
        overflows(
            400,
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",
            0,
            129_024,
        );
        overflows(400, "invalid params, context window exceeds limit (2013)", 0, 0);
        overflows(
            503,
            "litellm.ServiceUnavailableError: litellm.APIConnectionError: Your input exceeds the context window of this model.",
            0,
            0,
        );
    }

    #[test]
    fn anthropic() {
        overflows(
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 203456 tokens > 200000 maximum"}}"#,
            203_456,
            200_000,
        );
        overflows(
            400,
            "input length and `max_tokens` exceed context limit: 195000 + 20000 > 200000, decrease input length or `max_tokens` and try again",
            215_000,
            200_000,
        );
        overflows(
            413,
            r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
            0,
            0,
        );
        assert!(is_full("model_context_window_exceeded"));
        assert!(!is_full("max_tokens"));
    }

    #[test]
    fn gemini_and_bedrock() {
        overflows(
            400,
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            1_200_000,
            1_048_576,
        );
        overflows(
            400,
            "The input token count exceeds the maximum number of tokens allowed 1048576.",
            0,
            1_048_576,
        );
        overflows(
            400,
            "Unable to submit request because the input token count is 40000 but model only supports up to 32768. Reduce the input token count and try again.",
            40_000,
            32_768,
        );
        overflows(400, r#"{"message":"Input is too long for requested model."}"#, 0, 0);
        overflows(
            400,
            "400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 12345",
            12_345,
            8192,
        );
    }

    #[test]
    fn local_servers() {
        overflows(
            400,
            r#"{"error":{"code":400,"message":"request (13392 tokens) exceeds the available context size (8192 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":13392,"n_ctx":8192}}"#,
            13_392,
            8192,
        );
        overflows(
            400,
            r#"{"error":{"type":"exceed_context_size_error","message":"the request exceeds the available context size. try increasing the context size or enable context shift","n_ctx":4096,"n_prompt_tokens":5000}}"#,
            5000,
            4096,
        );
        overflows(
            400,
            "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens",
            5000,
            4096,
        );
        overflows(
            400,
            "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens. Please reduce the length of the input messages.",
            5000,
            4096,
        );
        overflows(
            400,
            "The input (516,368 tokens) is longer than the model's context length (262,144 tokens).",
            516_368,
            262_144,
        );
        overflows(400, "prompt too long; exceeded max context length by 4 tokens", 0, 0);
        overflows(
            None,
            "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.",
            9000,
            4096,
        );
        overflows(None, "Context overflow: prompt too large for the model.", 0, 0);
        overflows(413, "<html><h1>413 Request Entity Too Large</h1></html>", 0, 0);
    }

    #[test]
    fn a_rate_a_refusal_and_a_busy_server_are_no_overflow() {
        let check = |status, said, verdict| assert_eq!(judge(status, said), verdict, "{said}");
        let tpm = "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 40000. The input or output tokens must be reduced in order to run successfully.";
        check(Some(429), tpm, Verdict::RateLimited);
        check(Some(413), tpm, Verdict::RateLimited);
        check(
            None,
            "ThrottlingException: Too many tokens, please wait before trying again.",
            Verdict::RateLimited,
        );
        check(
            Some(400),
            "number of input tokens has exceeded your per-minute rate limit; prompt is too long",
            Verdict::RateLimited,
        );
        check(Some(429), "prompt is too long: 2 tokens > 1 maximum", Verdict::RateLimited);
        check(Some(429), r#"{"error":{"status":"RESOURCE_EXHAUSTED"}}"#, Verdict::RateLimited);
        check(Some(429), r#"{"error":{"code":"insufficient_quota"}}"#, Verdict::Refused);
        check(
            Some(400),
            "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens",
            Verdict::Refused,
        );
        check(
            None,
            "Model context window too small (8000 tokens). Minimum is 16000.",
            Verdict::Refused,
        );
        check(Some(401), "maximum context length is 5", Verdict::Refused);
        check(Some(400), "messages: roles must alternate", Verdict::Refused);
        check(Some(529), r#"{"error":{"type":"overloaded_error"}}"#, Verdict::Unavailable);
        check(Some(502), "<html>Bad Gateway</html>", Verdict::Unavailable);
        check(None, "overloaded_error", Verdict::Unavailable);
        check(Some(413), "", Verdict::Refused);
        check(None, "", Verdict::Refused);
    }

    #[test]
    fn figures_that_are_none_leave_the_verdict() {
        overflows(400, "prompt is too long: many tokens > 5 maximum", 0, 0);
        overflows(400, "prompt is too long: 99999999999999999999999 tokens > 5 maximum", 0, 0);
        overflows(400, "maximum context length is ,,, or prompt is too long", 0, 0);
    }

    #[test]
    fn every_pattern_is_found_in_a_sentence_of_its_own() {
        for (who, pattern) in WORDINGS {
            let said =
                pattern.replace("{used}", "9000").replace("{limit}", "4000").replace("..", " and ");
            assert!(find(pattern, &said).is_some(), "{who}: {pattern}");
            assert_eq!(pattern.to_lowercase(), pattern, "{who}: it is compared in lower case");
        }
    }
}
