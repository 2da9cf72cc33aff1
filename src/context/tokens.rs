//! Counts how many tokens a message takes, exactly or as an estimate.
//!
//! ```text
//! a request   2 at its end, and its messages
//! a message   4, its role, its blocks
//! a block     a text, or thinking: its words; a call: 10, its name, its arguments; a result: its blocks;
//!             an image: 1,600; an unknown block: its JSON, and 1,600 for each file in it
//! ```
//!
//! A file in a block, such as a PDF, a film or an image in an attachment, is a base64 string. No model reads its characters,
//! so it counts as an image. The number of its pages is not known; a figure reported by the model is more accurate.
//!
//! Exact counts come from the crate `tiktoken`. Over all available real sessions it counts exactly like two other crates;
//! it counts 87 to 105 MB a second on one thread (`tiktoken-rs`: 13 to 21, `bpe-openai`: 27 to 29), loads in 34
//! to 64 ms (66 to 115 and 28 to 47), and makes the program 3 MB larger (7 and 49).
//!
//! The feature `tokens` enables that crate. Without it each count is an estimate.
//!
//! An estimate is one token per four characters, and two tokens per three characters of Chinese, Japanese and Korean. That is 2
//! to 10% too many for English and code, and about right for Chinese, where a quarter of the bytes would be 18% too few.
//!
//! Invariant: a count depends on nothing but the message, so it can be cached by the message's content.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use crate::{
    json::Raw,
    model::{Block, Message, Usage},
};

/// The version of these rules. Cached counts of other versions are not used.
const RULES: u64 = 3;
/// The tokens of a message in addition to its blocks: 4, and its role, which is one token.
pub(super) const FORM: u64 = 4 + 1;
/// The tokens of a call in addition to its name and arguments.
const CALL: u64 = 10;
/// The tokens at the end of a request.
pub const END: u64 = 2;
/// The tokens of an image: the most that a provider charges for one before it scales it down.
const IMAGE: u64 = 1_600;
/// The longest string, in characters, that costs no more tokens as text than an image does.
const AS_WORDS: u64 = 4 * IMAGE;
/// From this many messages on, counting is worth a second thread.
const FEW: usize = 16;

/// A vocabulary of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Encoding {
    /// Counted as gpt-4 does.
    Cl100k,
    /// Counted as gpt-4o and all later models do; also for models whose own vocabulary is not known.
    O200k,
}

impl Encoding {
    /// Returns the encoding of a model. An unknown one counts like gpt-4o.
    pub fn of_model(model: Option<&str>) -> Self {
        let name = model.unwrap_or_default();
        // A gateway puts the maker's name first: `openai/gpt-4`.
        let name = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
        let is_old = name == "gpt-4"
            || ["gpt-4-", "gpt-3.5", "gpt-35"].iter().any(|known| name.starts_with(known));
        if is_old { Self::Cl100k } else { Self::O200k }
    }

    /// Returns the encoding's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cl100k => "cl100k_base",
            Self::O200k => "o200k_base",
        }
    }

    /// Returns the number under which counts are cached: it identifies the vocabulary and these rules. Estimates have their own
    /// number, so that they are never used as exact counts.
    pub fn rule(self) -> u64 {
        let vocabulary = match self {
            _ if !cfg!(feature = "tokens") => 0,
            Self::Cl100k => 1,
            Self::O200k => 2,
        };
        RULES * 16 + vocabulary
    }

    /// Returns the number of tokens in a text, estimated without the feature `tokens`. The first call loads the vocabulary.
    pub fn count(self, text: &str) -> u64 {
        #[cfg(feature = "tokens")]
        if let Some(vocabulary) = tiktoken::get_encoding(self.as_str()) {
            return vocabulary.count(text) as u64;
        }
        estimate(text)
    }
}

/// Returns true if a string is a file: base64, bare or in a data URL, that would count more than an image as text.
///
/// Data that only its provider can read uses the URL alphabet of base64, and counts as text.
fn is_file(string: Raw<'_>) -> bool {
    let Some(text) = string.text().filter(|text| text.len() as u64 > AS_WORDS) else {
        return false;
    };
    let inline = text.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let data = inline.map_or(&*text, |(_, data)| data).trim_end_matches('=');
    data.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
}

/// Estimates the number of tokens in a text.
pub fn estimate(text: &str) -> u64 {
    let (dense, other) =
        if text.is_ascii() {
            (0, text.len())
        } else {
            text.chars().fold((0, 0), |(dense, other), c| {
                if is_dense(c) { (dense + 1, other) } else { (dense, other + 1) }
            })
        };
    // ceil(dense / 1.5 + other / 4), in twelfths.
    (dense * 8 + other * 3).div_ceil(12) as u64
}

/// Returns true if a character belongs to a script with one or two characters per token.
pub(super) fn is_dense(c: char) -> bool {
    matches!(c,
        '\u{1100}'..='\u{11FF}'
        | '\u{2E80}'..='\u{A4CF}'
        | '\u{AC00}'..='\u{D7FF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{FF00}'..='\u{FFEF}'
        | '\u{20000}'..='\u{3FFFF}')
}

/// How tokens are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// With an encoding.
    Exact(Encoding),
    /// As an estimate.
    Estimate,
}

impl Counting {
    /// Returns the number of tokens in a text.
    pub fn text(self, text: &str) -> u64 {
        match self {
            Self::Exact(encoding) => encoding.count(text),
            Self::Estimate => estimate(text),
        }
    }

    /// Returns the number of tokens that a message takes in a request.
    pub fn message(self, message: &Message) -> u64 {
        FORM + self.blocks(&message.blocks)
    }

    fn blocks(self, blocks: &[Block]) -> u64 {
        blocks.iter().map(|block| self.block(block)).sum()
    }

    fn block(self, block: &Block) -> u64 {
        match block {
            Block::Text(text) => self.text(text),
            Block::Thinking(thinking) => self.text(&thinking.text),
            Block::Call { name, input, .. } => CALL + self.text(name) + self.text(input),
            Block::Result { blocks, .. } => self.blocks(blocks),
            Block::Image(_) => IMAGE,
            Block::Other { json, .. } => self.unknown(json),
        }
    }

    /// Returns the number of tokens in a block of an unknown kind, from its JSON.
    fn unknown(self, json: &str) -> u64 {
        let (mut words, mut files, mut at) = (String::new(), 0, 0);
        let strings = Raw::value(json.as_bytes()).filter(|_| json.len() as u64 > AS_WORDS);
        for string in strings.into_iter().flat_map(|block| block.strings(|_| false)) {
            let span = string.span_in(json.as_bytes()).filter(|_| is_file(string));
            if let Some(before) = span.as_ref().and_then(|span| json.get(at..span.start)) {
                words.push_str(before);
                (files, at) = (files + 1, span.map_or(at, |span| span.end));
            }
        }
        words.push_str(json.get(at..).unwrap_or_default());
        self.text(&words) + files * IMAGE
    }

    /// Returns the number of tokens in each of many messages, counted on all cores.
    pub fn messages(self, messages: &[&Message]) -> Vec<u64> {
        let count = |part: &[&Message]| -> Vec<u64> {
            part.iter().map(|message| self.message(message)).collect()
        };
        let cores = thread::available_parallelism().map_or(1, usize::from);
        if cores == 1 || messages.len() < FEW || self == Self::Estimate {
            return count(messages);
        }
        // Small parts, so that no core waits long for the one with the longest messages.
        let parts: Vec<&[&Message]> =
            messages.chunks(messages.len().div_ceil(cores * 16)).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                let Some(part) = parts.get(n) else { return done };
                done.push((n, count(part)));
            }
        };
        let counted: Vec<Vec<(usize, Vec<u64>)>> = thread::scope(|scope| {
            // If no more threads can be started, the others do the work.
            let begin = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
            let workers: Vec<_> = (1..cores).map_while(begin).collect();
            let own = work();
            // A worker that could not finish leaves a hole, which is filled below.
            let theirs = workers.into_iter().filter_map(|worker| worker.join().ok());
            theirs.chain([own]).collect()
        });
        let mut all: Vec<(usize, Vec<u64>)> = counted.into_iter().flatten().collect();
        all.sort_unstable_by_key(|(n, _)| *n);
        let counts: Vec<u64> = all.into_iter().flat_map(|(_, counts)| counts).collect();
        if counts.len() == messages.len() { counts } else { count(messages) }
    }
}

/// Returns the number of tokens in two merged messages.
pub(super) fn merged(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some((one? + other?).saturating_sub(FORM))
}

/// Returns the size of a conversation in tokens as reported by its newest answer, and the index of that answer, if any reports
/// it. Of a message that is split over several records, only the last record counts.
pub fn reported<'a>(
    messages: impl DoubleEndedIterator<Item = &'a Message> + ExactSizeIterator,
) -> Option<(usize, u64)> {
    let mut backwards = messages.enumerate().rev();
    backwards.find_map(|(at, message)| {
        let total = message.usage.as_ref().map(Usage::total);
        Some((at, total.filter(|total| *total > 0)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Role;

    #[test]
    fn a_model_has_its_encoding_and_an_unknown_one_that_of_gpt_4o() {
        let check = |model, encoding| assert_eq!(Encoding::of_model(model), encoding, "{model:?}");
        check(Some("gpt-4o-mini"), Encoding::O200k);
        check(Some("openai/gpt-5.1-codex"), Encoding::O200k);
        check(Some("o3"), Encoding::O200k);
        check(Some("gpt-4-turbo"), Encoding::Cl100k);
        check(Some("claude-opus-4"), Encoding::O200k);
        check(Some("openai/gpt-4"), Encoding::Cl100k);
        check(None, Encoding::O200k);
    }

    #[test]
    fn exact_counts_are_those_of_the_vocabulary() {
        let check = |text, cl100k, o200k| {
            assert_eq!(Encoding::Cl100k.count(text), cl100k, "{text}");
            assert_eq!(Encoding::O200k.count(text), o200k, "{text}");
        };
        check("", 0, 0);
        check("hello world", 2, 2);
        check("tiktoken is great!", 6, 6);
        check("お誕生日おめでとう", 9, 8);
        // A word with a meaning for a model is mere text when a person or a tool says it.
        check("<|endoftext|>", 7, 7);
    }

    #[test]
    fn an_estimate_weighs_scripts() {
        let check = |text: &str, tokens| assert_eq!(estimate(text), tokens, "{text}");
        check("", 0);
        check("abcd", 1);
        check("abcde", 2);
        check("日本語", 2);
        check("日本語です", 4);
        check("abcd日本語", 3);
        check(&"x".repeat(4000), 1000);
    }

    #[test]
    fn messages_and_calls_take_more_than_their_words() {
        let count = |blocks| Counting::Estimate.message(&Message::new(Role::User, blocks));
        assert_eq!(count(vec![]), 5);
        assert_eq!(count(vec![Block::Text("abcd".into())]), 6);
        let call = Block::Call {
            id: "never counted".into(),
            name: "abcd".into(),
            input: "{}".into(),
            signature: None,
        };
        assert_eq!(count(vec![call]), 5 + 10 + 1 + 1);
        assert_eq!(count(vec![Block::answer("c".into(), "abcd".into())]), 6);
    }

    #[test]
    fn a_file_in_an_unknown_block_takes_as_much_as_a_picture() {
        let check = |json: String, tokens: u64| {
            let block = Block::Other { name: "x".into(), json: json.clone() };
            let message = Message::new(Role::User, vec![block]);
            assert_eq!(Counting::Estimate.message(&message), 5 + tokens, "{json:.60}");
        };
        let data = "aZ09+/bc".repeat(10_000);
        check(format!(r#"{{"data":"{data}=="}}"#), 1_600 + 3);
        check(format!(r#"{{"a":["{data}","{data}"]}}"#), 2 * 1_600 + 3);
        check(format!(r#"{{"u":"data:video/mp4;base64,{data}"}}"#), 1_600 + 2);
        check(format!(r#"{{"d":"{}"}}"#, data.replace('/', r"\/")), 1_600 + 2);
        // Words, and words that a provider sealed.
        check(format!(r#"{{"w":"{}"}}"#, data.replace('+', " ")), 20_002);
        check(format!(r#"{{"w":"{}"}}"#, data.replace('+', "-")), 20_002);
        // Less than a picture.
        check(format!(r#"{{"s":"{}"}}"#, &data[..6_392]), 1_600);
        check(r#"{"broken""#.into(), 3);
    }

    #[test]
    fn many_messages_are_counted_in_their_order() {
        let messages: Vec<Message> = (0..1000)
            .map(|n| Message::new(Role::User, vec![Block::Text("a b ".repeat(n % 50))]))
            .collect();
        let refs: Vec<&Message> = messages.iter().collect();
        let exact = Counting::Exact(Encoding::Cl100k);
        let expected: Vec<u64> = refs.iter().map(|message| exact.message(message)).collect();
        assert_eq!(exact.messages(&refs), expected);
    }

    #[test]
    fn what_is_reported_is_the_newest_answer_and_is_never_summed() {
        let said = |usage| Message { usage, ..Message::new(Role::Assistant, Vec::new()) };
        let usage = Usage { input: 3, output: 5, cache_read: 100, cache_write: 20 };
        let messages =
            [said(Some(usage)), said(Some(usage)), said(None), said(Some(Usage::default()))];
        assert_eq!(reported(messages.iter()), Some((1, 128)));
        assert_eq!(reported([].iter()), None);
    }
}
