//! Answers: the check of a model's message, and the meaning of its refusal.

use std::time::Duration;

use serde_json::Value;

use crate::{
    context::{
        model::Fault,
        overflow::{self, Verdict},
    },
    model::{Block, Message, Stop},
};

/// The most of a server's words that stands in an error.
const MAX_SAID: usize = 600;

/// Returns a message if it says anything, else the fault in it.
pub(super) fn checked(message: Message, stop: Option<&str>) -> Result<Message, Fault> {
    let is_said = message.blocks.iter().any(|block| match block {
        Block::Text(text) => !text.trim().is_empty(),
        block => matches!(block, Block::Call { .. }),
    });
    if stop.is_some_and(overflow::is_full) {
        let said = "it stopped because its window is full".to_owned();
        return Err(Fault::Overflow { said, figures: overflow::Figures::default() });
    }
    if is_said {
        return Ok(message);
    }
    Err(match message.stop {
        Some(Stop::Refused) => Fault::Declined { said: "it would not answer".to_owned() },
        stop => Fault::Silent { was_cut: stop == Some(Stop::Length) },
    })
}

/// Returns the meaning of a refusal for a caller.
pub(super) fn refusal(status: Option<u16>, body: &str, after: Option<Duration>) -> Fault {
    let said = readable(body);
    match overflow::judge(status, body) {
        Verdict::Overflow(figures) => Fault::Overflow { said, figures },
        Verdict::RateLimited(wait) => Fault::RateLimited { said, after: after.or(wait) },
        Verdict::Unavailable => Fault::Unreachable {
            said: status
                .map_or_else(|| said.clone(), |status| format!("it answered {status}: {said}")),
        },
        Verdict::Refused => Fault::Refused { said, status },
    }
}

/// Returns a server's words in one line for a person: the message of an error, the title of a page, else its beginning.
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
        None if said.is_empty() => "nothing more was said".to_owned(),
        None => said,
    }
}

/// Returns the message of an error.
pub(super) fn error_message(value: &Value) -> Option<&str> {
    let error = value.get("error").unwrap_or(value);
    let said = ["message", "detail", "error"].into_iter().find_map(|key| error.get(key)?.as_str());
    said.or_else(|| error.as_str())
}

/// Whether an answer is HTML.
pub(super) fn is_page(body: &str) -> bool {
    let start: String = body.trim_start().chars().take(64).collect::<String>().to_lowercase();
    start.starts_with("<!doctype") || start.starts_with("<html") || start.starts_with("<head")
}

/// Returns the title of a page, or its words.
fn title(page: &str) -> String {
    // Lower case of ASCII only, so that places in one are places in the other.
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
        check("", "nothing more was said");
        assert!(readable(&"é".repeat(5_000)).chars().count() <= MAX_SAID + 2);
    }

    #[test]
    fn a_refusal_is_what_its_words_mean() {
        let busy = refusal(Some(503), "<html><title>Busy</title>", None);
        assert_eq!(
            busy,
            Fault::Unreachable { said: "it answered 503: a web page: Busy".to_owned() }
        );
        let after = Some(Duration::from_secs(3));
        let limited = refusal(Some(429), "slow", after);
        assert_eq!(limited, Fault::RateLimited { said: "slow".to_owned(), after });
        let overflow = refusal(Some(400), "prompt is too long: 9 tokens > 5 maximum", None);
        assert!(matches!(overflow, Fault::Overflow { figures, .. } if figures.limit == Some(5)));
    }
}
