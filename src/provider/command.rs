//! A command as a model.
//!
//! For a summary it gets the prompt on stdin and prints the summary. For a chat it gets one JSON object, the body of an
//! OpenAI-compatible chat completion without a model's name, and prints one: a completion, or just its message
//! (`{"content": "..", "tool_calls": [..]}`).

use std::time::Duration;

use crate::{
    context::model::{
        ChatModel, ChatRequest, Fault, Heard, ModelError, Summarizer, SummaryRequest, Written,
    },
    model::Message,
    provider::{
        answer::{refusal, with_ids},
        openai,
        process::{self, RunError, Task},
        way::Way,
    },
};

/// The time limit of a command if the caller sets none.
const LIMIT: Duration = Duration::from_secs(120);

/// The maximum size of its output in bytes.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// A command that answers prompts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The command and its limits.
    pub task: Task,
    /// The size of its window in tokens, if known.
    pub window: Option<u64>,
    name: String,
}

impl Command {
    /// Makes a model of a command line for `sh`.
    pub fn new(line: &str) -> Self {
        let first = line.split_whitespace().next().unwrap_or("command");
        let name = first.rsplit('/').next().unwrap_or(first).to_owned();
        let line = line.to_owned();
        let task = Task { line, folder: None, limit: LIMIT, max_bytes: MAX_BYTES };
        Self { task, window: None, name }
    }

    /// Sets the name for errors and summaries, instead of its program's.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Runs it and returns its output, which must be text.
    fn ask(&self, input: &[u8], limit: Duration) -> Result<String, ModelError> {
        let fail = |fault| ModelError { model: self.name.clone(), fault };
        let task = Task { limit: self.task.limit.min(limit), ..self.task.clone() };
        let done = process::run(&task, input).map_err(|error| {
            fail(match error {
                RunError::TimedOut(limit) => Fault::TimedOut { limit },
                RunError::TooMuch(_) => Fault::BadAnswer { said: error.to_string() },
                RunError::Io(error) => Fault::Refused { said: error.to_string(), status: None },
            })
        })?;
        if let Some(signal) = done.signal {
            let said = format!("it was killed by signal {signal}");
            return Err(fail(Fault::Unreachable { said, after: None }));
        }
        if let Some(code) = done.code.filter(|code| *code != 0) {
            let said = done.said(&format!("exit code {code}"));
            return Err(fail(refusal(None, &said, None)));
        }
        let text = String::from_utf8(done.output).ok().filter(|text| !text.contains('\0'));
        text.ok_or_else(|| fail(Fault::BadAnswer { said: "its output is not text".to_owned() }))
    }
}

impl Summarizer for Command {
    fn name(&self) -> &str {
        &self.name
    }

    fn window(&self) -> Option<u64> {
        self.window
    }

    fn summarize(&self, request: &SummaryRequest) -> Result<Written, ModelError> {
        let input = format!("{}\n\n{}", request.system, request.prompt);
        let text = self.ask(input.as_bytes(), request.limit)?;
        Ok(Written { text, ..Written::default() })
    }
}

impl ChatModel for Command {
    fn name(&self) -> &str {
        &self.name
    }

    fn answer(
        &self,
        request: &ChatRequest<'_>,
        _: &mut dyn FnMut(Heard<'_>),
    ) -> Result<Message, ModelError> {
        let body = openai::body(None, request, &Way::for_command()).to_string();
        let printed = self.ask(body.as_bytes(), request.limit)?;
        let answer = openai::read(&printed).map(|said| with_ids(said, request));
        answer.map_err(|fault| ModelError { model: self.name.clone(), fault })
    }
}
