//! Events of compaction and recovery, for a caller to see while they run: one value an event, one JSON object a line.

use serde::{Deserialize, Serialize};

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A compaction begins.
    CompactionStart {
        /// Its number.
        run: u64,
        /// The session.
        session: String,
        /// Who asked for it.
        trigger: Cause,
        /// How many messages are to be summarised.
        messages: usize,
        /// How many tokens the context has.
        tokens: u64,
        /// How many fit.
        window: u64,
    },
    /// A history larger than the summariser's window is summarised in parts.
    CompactionStage {
        /// The compaction.
        run: u64,
        /// Which part, counted from 1; the last one brings the others together.
        part: usize,
        /// How many there are.
        parts: usize,
        /// How many tokens it has.
        tokens: u64,
    },
    /// A summary was not usable and is asked for again.
    CompactionRetry {
        /// The compaction.
        run: u64,
        /// The fault.
        why: String,
    },
    /// The model wrote no usable summary; statistics and the last requests stand for it.
    CompactionFallback {
        /// The compaction.
        run: u64,
        /// The error.
        error: String,
    },
    /// A compaction took too long and was given up.
    CompactionTimeout {
        /// The compaction.
        run: u64,
        /// How long it had.
        limit_ms: u64,
        /// Whether the context from before it is used; else the present one.
        before: bool,
    },
    /// A compaction has ended.
    CompactionEnd {
        /// Its number.
        run: u64,
        /// The session.
        session: String,
        /// How many tokens the context had.
        pre_tokens: u64,
        /// How many it has now.
        post_tokens: u64,
        /// How many messages are kept.
        kept: usize,
        /// How many messages the summary replaces.
        summarised: usize,
        /// The model that wrote it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        model: Option<String>,
        /// Whether it is the fallback.
        fallback: bool,
    },
    /// A compaction has ended without a change.
    CompactionFailed {
        /// Its number.
        run: u64,
        /// The session.
        session: String,
        /// Why.
        why: String,
    },
    /// A model is asked again after a while.
    RequestRetry {
        /// The model.
        model: String,
        /// How many times it was asked.
        attempt: u32,
        /// The wait.
        wait_ms: u64,
        /// The model's words.
        why: String,
    },
    /// The window is large enough to work in, but small.
    WindowTight {
        /// The session.
        session: String,
        /// How many tokens fit.
        window: u64,
        /// How many are enough.
        enough: u64,
    },
    /// A request did not fit, and recovery begins.
    RecoveryStart {
        /// The session.
        session: String,
        /// How many tokens fit.
        window: u64,
        /// How many the request had, if the provider said so.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        used: Option<u64>,
    },
    /// A step of a recovery.
    RecoveryStep {
        /// The session.
        session: String,
        /// The step.
        step: Step,
        /// Its number among the steps of its kind.
        nth: u32,
    },
    /// A recovery has ended.
    RecoveryEnd {
        /// The session.
        session: String,
        /// Whether the request went through.
        recovered: bool,
        /// How many compactions that took.
        compactions: u32,
        /// Whether results were truncated.
        truncated: bool,
    },
}

/// The reason for a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// The context is nearly full.
    Auto,
    /// A person asked.
    Manual,
}

/// A step of a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// The history is compacted.
    Compact,
    /// Large results are truncated.
    Truncate,
    /// The request is made again.
    Retry,
}

impl Cause {
    /// Returns the word used in every output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Manual => "manual",
        }
    }
}

impl Event {
    /// Returns the event as one line of JSON, without a line's end.
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
