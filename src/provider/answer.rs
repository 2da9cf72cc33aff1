//! Answers: checks a model's message, classifies its errors, and decides when to repeat a request.

use std::{collections::BTreeSet, time::Duration};

use chrono::DateTime;
use serde_json::Value;
use ureq::http::HeaderMap;

use crate::{
    context::{
        model::{ChatRequest, Fault},
        overflow::{self, Verdict},
    },
    model::{Block, Message, Stop, Timestamp},
};

/// How many characters of a server's text go into an error.
const MAX_SAID: usize = 600;

/// The fault of an answer with a tool call that does not name its tool.
pub(super) fn nameless() -> Fault {
    Fault::BadAnswer { said: "a tool call without a name".to_owned() }
}

/// Gives each call without an id, which some servers send, an id that is unique in the conversation: its result must refer to
/// it.
pub(super) fn with_ids(mut message: Message, request: &ChatRequest<'_>) -> Message {
    let said = request.messages.iter().chain([&message]).flat_map(|message| &message.blocks);
    let mut taken: BTreeSet<String> = said
        .filter_map(|block| match block {
            Block::Call { id, .. } => Some(id.clone()),
            _ => None,
        })
        .collect();
    let mut n = 0_u64;
    for block in &mut message.blocks {
        let Block::Call { id, .. } = block else { continue };
        while id.is_empty() {
            let free = format!("call{n}");
            n += 1;
            if taken.insert(free.clone()) {
                *id = free;
            }
        }
    }
    message
}

/// Joins adjacent texts: if an answer comes in parts, as with citations, they are parts of one text.
fn together(blocks: Vec<Block>) -> Vec<Block> {
    let mut all: Vec<Block> = Vec::with_capacity(blocks.len());
    for block in blocks {
        match (all.last_mut(), block) {
            (Some(Block::Text(text)), Block::Text(more)) => text.push_str(&more),
            (_, block) => all.push(block),
        }
    }
    all
}

/// Returns a message unless it is empty, else its fault.
pub(super) fn checked(mut message: Message, stop: Option<&str>) -> Result<Message, Fault> {
    message.blocks = together(message.blocks);
    let is_said = message.blocks.iter().any(|block| match block {
        Block::Text(text) => !text.trim().is_empty(),
        block => matches!(block, Block::Call { .. }),
    });
    if stop.is_some_and(overflow::is_full) {
        let said = "the model stopped because its window is full".to_owned();
        return Err(Fault::Overflow { said, figures: overflow::Figures::default() });
    }
    Err(match message.stop {
        Some(Stop::Error) => {
            let said = "the model stopped with an error".to_owned();
            Fault::Unreachable { said, after: None }
        }
        _ if is_said => return Ok(message),
        Some(Stop::Refused) => Fault::Declined { said: "the model refused to answer".to_owned() },
        stop => Fault::Silent { was_cut: stop == Some(Stop::Length) },
    })
}

/// Classifies an error for a caller.
pub(super) fn refusal(status: Option<u16>, body: &str, after: Option<Duration>) -> Fault {
    let said = readable(body);
    match overflow::judge(status, body) {
        Verdict::Overflow(figures) => Fault::Overflow { said, figures },
        Verdict::RateLimited(wait) => Fault::RateLimited { said, after: after.or(wait) },
        Verdict::Unavailable => {
            let said = match status {
                Some(status) => format!("it answered {status}: {said}"),
                None => said,
            };
            Fault::Unreachable { said, after }
        }
        Verdict::Refused => Fault::Refused { said, status },
    }
}

/// Returns how long a server asks to wait: in milliseconds, in seconds, or until a date, by its own clock if it
/// reports the time.
pub(super) fn retry_after(headers: &HeaderMap, now: Option<Timestamp>) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let seconds = |text: &str, unit: f64| {
        let number: f64 = text.parse().ok()?;
        Duration::try_from_secs_f64(number * unit).ok()
    };
    if let Some(wait) = text("retry-after-ms").and_then(|text| seconds(text, 0.001)) {
        return Some(wait);
    }
    let after = text("retry-after")?;
    // Some libraries wrongly write a duration with its unit.
    let number = after.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = after.get(number.len()..).and_then(|unit| match unit {
        "" | "s" | "sec" | "secs" | "second" | "seconds" => Some(1.0),
        "ms" => Some(0.001),
        "m" | "min" | "mins" | "minute" | "minutes" => Some(60.0),
        "h" | "hour" | "hours" => Some(3_600.0),
        _ => None,
    });
    if let Some(wait) = unit.and_then(|unit| seconds(number.trim_end(), unit)) {
        return Some(wait);
    }
    let date = |text: &str| Some(DateTime::parse_from_rfc2822(text).ok()?.timestamp_millis());
    let now = text("date").and_then(date).or(now.map(|now| now.0))?;
    u64::try_from(date(after)?.checked_sub(now)?).ok().map(Duration::from_millis)
}

/// Returns a server's text as one line for people: an error's message, a page's title, else its beginning.
pub(super) fn readable(body: &str) -> String {
    let value: Option<Value> = serde_json::from_str(body.trim()).ok();
    let message = value.as_ref().and_then(error_message);
    let said = match message {
        Some(message) => message.to_owned(),
        None if is_page(body) => format!("a web page: {}", title(body)),
        None => body.to_owned(),
    };
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    match said.char_indices().nth(MAX_SAID) {
        Some((end, _)) => format!("{}..", said.get(..end).unwrap_or_default()),
        None if said.is_empty() => "no reason was given".to_owned(),
        None => said,
    }
}

/// Classifies an error whose HTTP status does not indicate one.
pub(super) fn refused(body: &Value) -> Fault {
    let codes = ["/error/code", "/error/status", "/code", "/status"];
    let status = codes.iter().find_map(|code| body.pointer(code)?.as_u64());
    // A provider's own numbers are not HTTP statuses.
    let status = status.and_then(|status| u16::try_from(status).ok());
    refusal(status.filter(|status| (400..600).contains(status)), &body.to_string(), None)
}

/// Returns the message of an error: from its own field, or from a body that contains nothing else.
fn error_message(value: &Value) -> Option<&str> {
    let error = value.get("error").filter(|error| !error.is_null()).unwrap_or(value);
    let said = ["message", "detail", "error"].into_iter().find_map(|key| error.get(key)?.as_str());
    said.or_else(|| error.as_str()).filter(|said| !said.trim().is_empty())
}

/// Returns true if a body is an error: its error field has content (some servers always send the field), or the body contains
/// nothing but an error's text.
pub(super) fn is_error(value: &Value) -> bool {
    let is_said = |said: &Value| said.as_str().is_some_and(|said| !said.trim().is_empty());
    let is_list = |said: &Value| said.as_array().is_some_and(|said| !said.is_empty());
    let has_error = value.get("error").is_some_and(|error| match error {
        Value::Object(error) => !error.is_empty(),
        error => is_said(error) || is_list(error),
    });
    let has_words = || {
        value.get("message").is_some_and(is_said)
            || value.get("detail").is_some_and(|detail| is_said(detail) || is_list(detail))
    };
    has_error || (has_words() && !is_message(value) && value.pointer("/choices/0").is_none())
}

/// Returns true if a value has a field of a model's message.
pub(super) fn is_message(value: &Value) -> bool {
    const PARTS: [&str; 5] = ["content", "tool_calls", "refusal", "reasoning_content", "reasoning"];
    PARTS.iter().any(|part| value.get(part).is_some())
}

/// Returns true if an answer is HTML.
pub(super) fn is_page(body: &str) -> bool {
    let start: String = body.trim_start().chars().take(64).collect::<String>().to_lowercase();
    start.starts_with("<!doctype") || start.starts_with("<html") || start.starts_with("<head")
}

/// Returns the title of a page, or its text.
fn title(page: &str) -> String {
    // Only ASCII is lowercased, so that offsets in one are valid in the other.
    let lower = page.to_ascii_lowercase();
    let from = lower.find("<title").and_then(|at| Some(at + lower.get(at..)?.find('>')? + 1));
    let title = from.and_then(|from| page.get(from..from + lower.get(from..)?.find('<')?));
    if let Some(title) = title.filter(|title| !title.trim().is_empty()) {
        return title.to_owned();
    }
    page.split('<').filter_map(|part| part.split_once('>')).map(|(_, words)| words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Role;

    #[test]
    fn what_a_server_said_is_readable() {
        let check = |body: &str, expected: &str| assert_eq!(readable(body), expected);
        check(r#"{"error":{"message":"no such\n model","type":"x"}}"#, "no such model");
        check(r#"{"error":"boom"}"#, "boom");
        check(r#"{"detail":"not found"}"#, "not found");
        check("<!DOCTYPE html><TITLE>502 Bad\nGateway</TITLE><p>x", "a web page: 502 Bad Gateway");
        check("<html><body><h1>Sign in</h1></body>", "a web page: Sign in");
        check("<html>İ<title", "a web page: İ");
        check("plain words", "plain words");
        check(r#"{"error":null,"message":"not now"}"#, "not now");
        check("", "no reason was given");
        assert!(readable(&"é".repeat(5_000)).chars().count() <= MAX_SAID + 2);
    }

    #[test]
    fn the_texts_of_an_answer_are_one_where_they_stand_side_by_side() {
        let text = |text: &str| Block::Text(text.to_owned());
        let other = || Block::Other { name: "x".to_owned(), json: "{}".to_owned() };
        let blocks = vec![text("It is /src/"), text("main.rs"), text("."), other(), text("So.")];
        let message = checked(Message::new(Role::Assistant, blocks), None).unwrap();
        assert_eq!(message.blocks, [text("It is /src/main.rs."), other(), text("So.")]);
    }

    #[test]
    fn a_call_without_an_id_gets_one_that_no_other_call_has() {
        let call = |id: &str| Block::Call {
            id: id.to_owned(),
            name: "read".to_owned(),
            input: "{}".to_owned(),
            signature: None,
        };
        let said = [Message::new(Role::Assistant, vec![call("call0"), call("call2")])];
        let request = ChatRequest {
            system: "",
            messages: &said,
            tools: &[],
            max_tokens: 1,
            limit: Duration::MAX,
        };
        let answer = Message::new(Role::Assistant, vec![call(""), call("mine"), call("")]);
        let named = with_ids(answer, &request);
        assert_eq!(named.blocks, [call("call1"), call("mine"), call("call3")]);
    }

    #[test]
    fn a_refusal_is_what_its_words_mean() {
        let after = Some(Duration::from_secs(3));
        let said = "it answered 503: a web page: Busy".to_owned();
        let busy = refusal(Some(503), "<html><title>Busy</title>", after);
        assert_eq!(busy, Fault::Unreachable { said, after });
        let limited = refusal(Some(429), "slow", after);
        assert_eq!(limited, Fault::RateLimited { said: "slow".to_owned(), after });
        let overflow = refusal(Some(400), "prompt is too long: 9000 tokens > 8192 maximum", None);
        assert!(matches!(overflow, Fault::Overflow { figures, .. } if figures.limit == Some(8192)));
    }

    #[test]
    fn a_server_says_how_long_to_wait() {
        let check = |headers: &[(&'static str, &str)], expected: Option<u64>| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.insert(*name, value.parse().unwrap());
            }
            let now = Timestamp::parse("2015-10-21T07:28:10Z");
            let after = retry_after(&map, now);
            assert_eq!(after, expected.map(Duration::from_millis), "{headers:?}");
        };
        check(&[("retry-after", "7")], Some(7_000));
        check(&[("retry-after", "0.5")], Some(500));
        check(&[("retry-after", "7"), ("retry-after-ms", "20")], Some(20));
        let (now, then) = ("Wed, 21 Oct 2015 07:28:00 GMT", "Wed, 21 Oct 2015 07:28:30 GMT");
        check(&[("date", now), ("retry-after", then)], Some(30_000));
        check(&[("date", then), ("retry-after", now)], None);
        // A server without a clock is read by this one, and a unit is taken at its word.
        check(&[("retry-after", then)], Some(20_000));
        check(&[("retry-after", now)], None);
        for (said, wait) in
            [("2s", 2_000), ("1.5 seconds", 1_500), ("350ms", 350), ("2 min", 120_000)]
        {
            check(&[("retry-after", said)], Some(wait));
        }
        for wrong in ["-1", "NaN", "1e99", "soon", "", "7 apples", "s", "inf"] {
            check(&[("retry-after", wrong)], None);
        }
    }
}
