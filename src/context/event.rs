//! Events of compaction and recovery, reported while they run. An event is one value, and one JSON object on a line.

use serde::{Deserialize, Serialize};

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A compaction starts.
    CompactionStart {
        /// The number of the compaction.
        run: u64,
        /// The session.
        session: String,
        /// What triggered it.
        trigger: Cause,
        /// The number of messages to summarise.
        messages: usize,
        /// The number of tokens in the context.
        tokens: u64,
        /// The size of the model's context window in tokens.
        window: u64,
    },
    /// A part of a history that exceeds the summariser's window is summarised.
    CompactionStage {
        /// The number of the compaction.
        run: u64,
        /// The number of the part, from 1; the last one merges the others.
        part: usize,
        /// The number of parts.
        parts: usize,
        /// The number of tokens in the part.
        tokens: u64,
    },
    /// A summary was not usable and is requested again.
    CompactionRetry {
        /// The number of the compaction.
        run: u64,
        /// What was wrong with it.
        why: String,
    },
    /// The model wrote no usable summary, so statistics and the last requests replace it.
    CompactionFallback {
        /// The number of the compaction.
        run: u64,
        /// The error.
        error: String,
    },
    /// A compaction took too long and was abandoned.
    CompactionTimeout {
        /// The number of the compaction.
        run: u64,
        /// The time limit in milliseconds.
        limit_ms: u64,
        /// True if the context from before the compaction is used, false if the present one is.
        before: bool,
    },
    /// A compaction ended.
    CompactionEnd {
        /// The number of the compaction.
        run: u64,
        /// The session.
        session: String,
        /// The number of tokens in the context before.
        pre_tokens: u64,
        /// The number of tokens in the context after.
        post_tokens: u64,
        /// The number of kept messages.
        kept: usize,
        /// The number of messages replaced by the summary.
        summarised: usize,
        /// The model that wrote the summary; the key is present only if a model did.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        model: Option<String>,
        /// True if the summary is the fallback.
        fallback: bool,
    },
    /// A compaction ended without changing anything.
    CompactionFailed {
        /// The number of the compaction.
        run: u64,
        /// The session.
        session: String,
        /// The reason.
        why: String,
    },
    /// Words of an answer, as they come.
    Words {
        /// The words.
        text: String,
    },
    /// The words of the answer so far are void: the request is repeated.
    WordsVoid,
    /// Results are cut in a request; the session still has all of them.
    ResultsCut {
        /// The session.
        session: String,
        /// The number of results.
        results: usize,
        /// The maximum number of characters of one result.
        limit: usize,
    },
    /// The model sent a message back to a checkpoint, and the session continues from there.
    DmailSent {
        /// The session.
        session: String,
        /// The checkpoint.
        checkpoint: u64,
        /// The operation.
        operation: u64,
    },
    /// A request to a model will be repeated after a wait.
    RequestRetry {
        /// The model.
        model: String,
        /// How often the request was made.
        attempt: u32,
        /// The wait in milliseconds.
        wait_ms: u64,
        /// The model's error.
        why: String,
    },
    /// The window is large enough, but tight.
    WindowTight {
        /// The session.
        session: String,
        /// The size of the model's context window in tokens.
        window: u64,
        /// The size from which a window is not tight.
        enough: u64,
    },
    /// A request exceeded the window, and recovery starts.
    RecoveryStart {
        /// The session.
        session: String,
        /// The size of the model's context window in tokens.
        window: u64,
        /// The number of tokens in the request; the key is present only if the provider reported it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        used: Option<u64>,
    },
    /// A step of a recovery.
    RecoveryStep {
        /// The session.
        session: String,
        /// The step.
        step: Step,
        /// The number of the step among those of its kind.
        nth: u32,
    },
    /// A recovery ended.
    RecoveryEnd {
        /// The session.
        session: String,
        /// True if the request succeeded.
        recovered: bool,
        /// The number of compactions.
        compactions: u32,
        /// True if results were truncated.
        truncated: bool,
    },
}

/// What triggered a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// The context was nearly full.
    Auto,
    /// A person asked for it.
    Manual,
}

/// A step of a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// Compact the history.
    Compact,
    /// Truncate large results.
    Truncate,
    /// Repeat the request.
    Retry,
}

impl Cause {
    /// Returns the name used in all output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Manual => "manual",
        }
    }
}

impl Event {
    /// Returns the event as one line of JSON, without a line end.
    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_a_line_that_reads_back() {
        let event = Event::RecoveryStart { session: "a\nb".to_owned(), window: 16_000, used: None };
        let line = event.line();
        assert_eq!(line, r#"{"event":"recovery_start","session":"a\nb","window":16000}"#);
        assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
        let step = Event::RecoveryStep { session: "s".to_owned(), step: Step::Truncate, nth: 1 };
        assert_eq!(
            step.line(),
            r#"{"event":"recovery_step","session":"s","step":"truncate","nth":1}"#
        );
    }
}
