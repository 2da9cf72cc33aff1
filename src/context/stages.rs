//! Summarises with a model, in stages if the history exceeds the model's window.
//!
//! ```text
//! messages ---> fits ---------------------------------> one summary
//!          \--> chunks ---> a summary each ---> merge ---> one summary
//! ```
//!
//! A chunk ends only at a joint ([`crate::context::plan::joints`]). Its size is a share of the window
//! that shrinks as messages grow, so that one message more or less does not decide whether it fits. Token counts only estimate
//! the model's own counts, so a margin stays free. If a summariser still reports an overflow it gets smaller
//! chunks, down to a minimum size.
//!
//! Invariant: a flawed summary is never returned: an empty or truncated one, one that contains thoughts or a refusal, one that is
//! too long or lacks its first headings, or one that keeps far less than an extract would. It is requested again, once.

use std::{ops::Range, time::Duration};

use crate::{
    context::{
        event::Event,
        files::Excerpt,
        model::{Fault, ModelError, Summarizer, SummaryRequest, Written},
        phrases::PHRASES,
        plan,
        prompt::{self, Material},
    },
    model::{Message, Stop, Usage},
};

/// How many tokens of the window stay free for the prompt's own text and the model's headers.
const OVERHEAD: u64 = 4_096;

/// The maximum size of an answer in tokens.
const MAX_ANSWER: u64 = 4_096;

/// The minimum size of a chunk in tokens.
const LEAST: u64 = 256;

/// How many times chunks are made smaller.
const MAX_HALVINGS: u32 = 4;

/// The material of a summary.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// The number of the compaction in events.
    pub run: u64,
    /// The messages, each with its number in the conversation.
    pub messages: &'a [(usize, &'a Message)],
    /// The summaries of earlier messages.
    pub earlier: &'a [String],
    /// The files that the conversation is about.
    pub files: &'a [Excerpt],
    /// A description of the next request.
    pub next: &'a str,
    /// What the summary should focus on.
    pub focus: Option<&'a str>,
    /// The window in tokens, if the model does not know its own.
    pub window: u64,
    /// The summary must have fewer tokens than this.
    pub most: u64,
    /// Returns the flaw of a summary that says too little.
    pub judge: &'a dyn Fn(&str) -> Result<(), Flaw>,
}

/// A summary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Its text.
    pub text: String,
    /// The model that wrote it.
    pub model: String,
    /// The usage of all requests for it.
    pub usage: Usage,
    /// The number of requests.
    pub n_requests: usize,
    /// How many messages were too large for any prompt and only noted.
    pub n_omitted: usize,
    /// The files shown to the model.
    pub files: Vec<String>,
}

/// Why there is no summary.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SummaryError {
    /// The model failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The time limit was reached.
    #[error("{model}: the summary was not finished in time")]
    TimedOut {
        /// The model.
        model: String,
    },
    /// The summary was flawed twice.
    #[error("{model}: the summary {flaw}")]
    Flawed {
        /// The model.
        model: String,
        /// The flaw of the second one.
        flaw: Flaw,
    },
}

/// Why a summary cannot replace messages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Flaw {
    /// It is empty.
    #[error("is empty")]
    Empty,
    /// It was truncated.
    #[error("was cut off at its length limit")]
    Cut,
    /// It contains the model's thoughts.
    #[error("contains the model's thinking")]
    Thinks,
    /// The model refuses to write it.
    #[error("is a refusal")]
    Refuses,
    /// It lacks one of the headings that come first.
    #[error("lacks the headings {}", prompt::first_headings())]
    Unheaded,
    /// It keeps far less than an extract would. These things are missing.
    #[error("keeps far less of the conversation than an extract would")]
    Poor(Vec<String>),
    /// It is too long to replace the messages.
    #[error("is {tokens} tokens long, but must have fewer than {most}")]
    TooLong {
        /// Its size in tokens.
        tokens: u64,
        /// The size that it must stay under.
        most: u64,
    },
}

/// One summarisation with one model.
struct Stage<'a> {
    job: Job<'a>,
    by: &'a dyn Summarizer,
    count: &'a dyn Fn(&str) -> u64,
    left: &'a dyn Fn() -> Duration,
    emit: &'a mut dyn FnMut(&Event),
    /// The maximum size of an answer in tokens.
    answer: u64,
    /// How many tokens the messages had when they were last rendered.
    size: u64,
    made: Summary,
}

/// Summarises with a model within the time left. A request in progress is aborted when it is up.
pub fn summarize(
    job: &Job<'_>,
    by: &dyn Summarizer,
    count: &dyn Fn(&str) -> u64,
    left: &dyn Fn() -> Duration,
    emit: &mut dyn FnMut(&Event),
) -> Result<Summary, SummaryError> {
    let mut window = by.window().unwrap_or(job.window).max(4 * LEAST);
    let made = Summary { model: by.name().to_owned(), ..Summary::default() };
    let answer = MAX_ANSWER.min(window / 4);
    let mut stage = Stage { job: *job, by, count, left, emit, answer, size: 0, made };
    let mut limit = None;
    let mut n_halvings = 0;
    loop {
        let (said, figures) = match stage.run(window, limit) {
            Ok(text) => return Ok(Summary { text, ..stage.made }),
            Err(SummaryError::Model(error)) => match &error.fault {
                Fault::Overflow { said, figures } => {
                    let smaller = limit.unwrap_or(stage.size.min(window)) / 2;
                    if n_halvings == MAX_HALVINGS || smaller < LEAST {
                        return Err(error.into());
                    }
                    limit = Some(smaller);
                    (said.clone(), *figures)
                }
                _ => return Err(error.into()),
            },
            Err(error) => return Err(error),
        };
        n_halvings += 1;
        // The window that the model reports is better than the previous figure.
        window = figures.window().map_or(window, |real| real.clamp(4 * LEAST, window));
        (stage.emit)(&Event::CompactionRetry { run: job.run, why: said });
    }
}

/// What a summary is for.
#[derive(Clone, Copy)]
enum Aim {
    /// To be merged with others.
    Part,
    /// To replace all the messages: it must not leave anything out, and must have fewer tokens than the messages.
    Whole { most: u64 },
}

impl Stage<'_> {
    /// Returns the summary: from chunks of at most this many tokens, or from everything at once if that fits.
    fn run(&mut self, window: u64, limit: Option<u64>) -> Result<String, SummaryError> {
        let room = room(window, self.answer);
        let (rendered, tokens) = self.render(limit.unwrap_or(window / 2));
        let earlier: Vec<String> =
            self.job.earlier.iter().map(|text| self.within(text, room / 2)).collect();
        let next = self.job.next;
        let whole =
            Material { messages: &rendered, summaries: &earlier, next, ..Material::default() };
        let n_tokens = (self.count)(&prompt::write(&whole));
        if limit.is_none() && n_tokens <= room {
            return self.last(&whole, room - n_tokens);
        }
        let mean = tokens.iter().sum::<u64>().checked_div(tokens.len() as u64).unwrap_or(0);
        let limit = limit.unwrap_or_else(|| chunk(window, mean)).min(room);
        let messages: Vec<&Message> =
            self.job.messages.iter().map(|(_, message)| *message).collect();
        let parts = split(&tokens, &plan::joints(&messages), limit);
        let n_parts = parts.len();
        let mut summaries = earlier;
        for (nth, part) in parts.into_iter().enumerate() {
            let n_tokens = tokens.get(part.clone()).unwrap_or_default().iter().sum();
            let messages = rendered.get(part).unwrap_or_default();
            self.stage(nth + 1, n_parts + 1, n_tokens);
            let material = Material {
                messages,
                part: Some((nth + 1, n_parts)),
                focus: self.job.focus,
                most: (limit / 2).min(self.answer),
                ..Material::default()
            };
            summaries.push(self.ask(&material, Aim::Part)?);
        }
        // If the summaries together do not fit, merge them in pairs first.
        while summaries.len() > 2 && self.total(&summaries) > room {
            let mut fewer = Vec::new();
            for pair in summaries.chunks(2) {
                let material =
                    Material { summaries: pair, most: self.answer, ..Material::default() };
                fewer.push(if pair.len() == 1 {
                    pair.concat()
                } else {
                    self.ask(&material, Aim::Part)?
                });
            }
            summaries = fewer;
        }
        let merge = Material { summaries: &summaries, next, ..Material::default() };
        let tokens = (self.count)(&prompt::write(&merge));
        self.stage(n_parts + 1, n_parts + 1, tokens);
        self.last(&merge, room.saturating_sub(tokens))
    }

    /// Renders the messages. A message with more than `most` tokens is only noted.
    fn render(&mut self, most: u64) -> (Vec<String>, Vec<u64>) {
        self.made.n_omitted = 0;
        let mut rendered = Vec::with_capacity(self.job.messages.len());
        for (number, message) in self.job.messages {
            let mut text = prompt::render(*number, message);
            let mut tokens = (self.count)(&text);
            if tokens > most {
                text = prompt::omitted(*number, message, tokens);
                tokens = (self.count)(&text);
                self.made.n_omitted += 1;
            }
            rendered.push((text, tokens));
        }
        self.size = rendered.iter().map(|(_, tokens)| tokens).sum();
        rendered.into_iter().unzip()
    }

    /// Requests the final summary, which must be shorter than the messages. Files are included as far as they fit.
    fn last(&mut self, material: &Material<'_>, room: u64) -> Result<String, SummaryError> {
        let job = self.job;
        let mut sum = 0;
        let fits = |file: &&Excerpt| {
            sum += (self.count)(&file.text) + (self.count)(&file.path) + 20;
            sum <= room
        };
        let n_files = job.files.iter().take_while(fits).count();
        let files = job.files.get(..n_files).unwrap_or_default();
        let most = self.answer.min(job.most);
        let material = Material { files, focus: job.focus, most, ..*material };
        let text = self.ask(&material, Aim::Whole { most: job.most })?;
        self.made.files = files.iter().map(|file| file.path.clone()).collect();
        Ok(text)
    }

    /// Requests a summary, and once more if it is flawed.
    fn ask(&mut self, material: &Material<'_>, aim: Aim) -> Result<String, SummaryError> {
        let flaw = match self.written(material, aim)? {
            Ok(text) => return Ok(text),
            Err(flaw) => flaw,
        };
        let complaint = match &flaw {
            Flaw::Poor(lacks) => format!("leaves out {}", lacks.join("; ")),
            flaw => flaw.to_string(),
        };
        let why = format!("the summary {complaint}");
        (self.emit)(&Event::CompactionRetry { run: self.job.run, why });
        let complaint = format!("it {complaint}");
        let material = Material { complaint: Some(&complaint), ..*material };
        let second = self.written(&material, aim)?;
        second.map_err(|flaw| SummaryError::Flawed { model: self.made.model.clone(), flaw })
    }

    /// Makes one request and checks the answer.
    fn written(
        &mut self,
        material: &Material<'_>,
        aim: Aim,
    ) -> Result<Result<String, Flaw>, SummaryError> {
        let written = self.write(material)?;
        let text = without_lead(prompt::unwrap(&written.text));
        Ok(self.checked(text, written.stop, aim).map(|()| text.to_owned()))
    }

    fn checked(&self, text: &str, stop: Option<Stop>, aim: Aim) -> Result<(), Flaw> {
        match stop {
            Some(Stop::Refused) => return Err(Flaw::Refuses),
            Some(Stop::Length) => return Err(Flaw::Cut),
            _ if text.is_empty() => return Err(Flaw::Empty),
            _ if thinks(text) => return Err(Flaw::Thinks),
            _ if refuses(text) => return Err(Flaw::Refuses),
            _ => {}
        }
        let Aim::Whole { most } = aim else { return Ok(()) };
        let tokens = prompt::weight(&prompt::wrap(text), self.count);
        if tokens >= most { Err(Flaw::TooLong { tokens, most }) } else { (self.job.judge)(text) }
    }

    /// Makes one request.
    fn write(&mut self, material: &Material<'_>) -> Result<Written, SummaryError> {
        let late = |model: &str| Err(SummaryError::TimedOut { model: model.to_owned() });
        let limit = (self.left)();
        if limit.is_zero() {
            return late(&self.made.model);
        }
        let request = SummaryRequest {
            system: prompt::SYSTEM.to_owned(),
            prompt: prompt::write(material),
            max_tokens: self.answer,
            limit,
        };
        self.made.n_requests += 1;
        let written = self.by.summarize(&request);
        let is_cut = |error: &ModelError| matches!(error.fault, Fault::TimedOut { limit: of } if of >= limit);
        if (self.left)().is_zero() || written.as_ref().is_err_and(is_cut) {
            return late(&self.made.model);
        }
        let written = match written {
            Err(ModelError { fault: Fault::Declined { .. }, .. }) => {
                Written { stop: Some(Stop::Refused), ..Written::default() }
            }
            Err(ModelError { fault: Fault::Silent { was_cut }, .. }) => {
                Written { stop: was_cut.then_some(Stop::Length), ..Written::default() }
            }
            written => written?,
        };
        if let Some(used) = written.usage {
            self.made.usage.add(&used);
        }
        if let Some(model) = &written.model {
            self.made.model.clone_from(model);
        }
        Ok(written)
    }

    /// Truncates a text to this many tokens. A summary that fits into no request would be a dead end.
    fn within(&self, text: &str, most: u64) -> String {
        let tokens = (self.count)(text);
        if tokens <= most {
            return text.to_owned();
        }
        let chars = text.chars().count() as u64;
        let share = u128::from(chars) * u128::from(most) / u128::from(tokens.max(1));
        prompt::clip(text, usize::try_from(share).unwrap_or(usize::MAX))
    }

    fn stage(&mut self, part: usize, parts: usize, tokens: u64) {
        (self.emit)(&Event::CompactionStage { run: self.job.run, part, parts, tokens });
    }

    fn total(&self, texts: &[String]) -> u64 {
        texts.iter().map(|text| (self.count)(text)).sum()
    }
}

/// Returns true if a text contains a model's thoughts: their tags at the beginning of a line, or musings without a section.
fn thinks(text: &str) -> bool {
    const MARKS: [&str; 8] = [
        "<think",
        "</think",
        "<reasoning",
        "</reasoning",
        "<scratchpad",
        "</scratchpad",
        "<analysis",
        "</analysis",
    ];
    let is_marked = |line: &str| {
        let line = line.trim().to_lowercase();
        // The end tag of thoughts may come after their last words.
        let ends = |mark: &str| mark.starts_with("</") && line.ends_with(&format!("{mark}>"));
        MARKS.iter().any(|mark| line.starts_with(mark)) || MARKS.iter().any(|mark| ends(mark))
    };
    text.lines().any(is_marked) || (!has_sections(text) && muses(text))
}

/// Returns true if a text begins like a model that thinks aloud.
fn muses(text: &str) -> bool {
    const MUSINGS: [&str; 12] = [
        "okay, ",
        "okay. ",
        "okay let ",
        "ok, ",
        "alright, ",
        "hmm",
        "let me ",
        "let's ",
        "first, i ",
        "i need to ",
        "we need to ",
        "the user wants me",
    ];
    let start: String = text.trim_start().chars().take(20).collect::<String>().to_lowercase();
    let start = start.replace('\u{2019}', "'");
    MUSINGS.iter().any(|word| start.starts_with(word))
}

/// Returns a summary without lone tags at its ends, and without thoughts before its first section.
fn without_lead(text: &str) -> &str {
    let is_tag = |line: &&str| {
        let name = line.strip_prefix('<').and_then(|line| line.strip_suffix('>'));
        let name = name.map(|name| name.strip_prefix('/').unwrap_or(name)).unwrap_or_default();
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '|');
        !name.is_empty() && name.chars().all(is_name) && !thinks(line)
    };
    let mut text = text.trim();
    while let Some(tag) = text.lines().next().map(str::trim).filter(is_tag) {
        text = text.strip_prefix(tag).unwrap_or_default().trim();
    }
    while let Some(tag) = text.lines().next_back().map(str::trim).filter(is_tag) {
        text = text.strip_suffix(tag).unwrap_or_default().trim();
    }
    match text.find("\n#").map(|at| text.split_at(at)) {
        Some((lead, sections)) if muses(lead) => sections.trim(),
        _ => text,
    }
}

/// Returns true if a text begins by declining to summarise, in any language.
///
/// Words further on belong to the conversation: a user who cannot log in is not a model that cannot help.
fn refuses(text: &str) -> bool {
    let is_mark = |c: char| !c.is_alphabetic();
    let start: String = text.trim_start_matches(is_mark).chars().take(80).collect();
    let start = start.to_lowercase().replace('’', "'");
    let opened =
        PHRASES.model.openings.iter().find_map(|opening| start.strip_prefix(opening.as_str()));
    let after = opened.map_or("", |rest| rest.trim_start_matches(is_mark));
    !has_sections(text)
        && PHRASES
            .model
            .begins
            .iter()
            .any(|words| start.starts_with(words) || after.starts_with(words))
}

fn has_sections(text: &str) -> bool {
    text.lines().any(|line| line.starts_with('#'))
}

/// Returns the maximum size of a prompt in tokens: the window minus the answer and the overhead, with a margin of a fifth.
fn room(window: u64, answer: u64) -> u64 {
    let free = window.saturating_sub(answer).saturating_sub(OVERHEAD.min(window / 8));
    free.saturating_mul(10) / 12
}

/// Returns the size of a chunk in tokens, given the average size of a message.
///
/// Two fifths of the window, less twice the share of an average message once that is above a tenth, at least 15 percent;
/// and the margin of a fifth.
fn chunk(window: u64, mean: u64) -> u64 {
    let ratio = mean.saturating_mul(1_200) / window.max(1);
    let share = if ratio > 100 { 400 - (2 * ratio).min(250) } else { 400 };
    (window.saturating_mul(share) / 1_000).saturating_mul(10) / 12
}

/// Splits messages into chunks of at most this many tokens, at joints only. A larger piece is a chunk of its own.
fn split(tokens: &[u64], joints: &[usize], limit: u64) -> Vec<Range<usize>> {
    let sum = |range: Range<usize>| tokens.get(range).unwrap_or_default().iter().sum::<u64>();
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut size = 0;
    for (&start, &end) in joints.iter().zip(joints.iter().skip(1)) {
        let more = sum(start..end);
        match parts.last_mut() {
            Some(part) if size + more <= limit => {
                part.end = end;
                size += more;
            }
            _ => {
                parts.push(start..end);
                size = more;
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::{
        context::{model::Written, overflow::Figures},
        model::{Block, Role},
    };

    /// A summariser that keeps its requests, refuses those over its window, and answers by the number of the request.
    struct Scripted<'a> {
        window: Option<u64>,
        real: u64,
        answer: Box<dyn Fn(usize) -> String + 'a>,
        asked: RefCell<Vec<String>>,
    }

    impl Summarizer for Scripted<'_> {
        fn name(&self) -> &'static str {
            "scripted"
        }

        fn window(&self) -> Option<u64> {
            self.window
        }

        fn summarize(&self, request: &SummaryRequest) -> Result<Written, ModelError> {
            let nth = self.asked.borrow().len();
            self.asked.borrow_mut().push(request.prompt.clone());
            let used = count(&request.prompt) + request.max_tokens;
            if used > self.real {
                let figures = Figures { used: Some(used), limit: None };
                let fault = Fault::Overflow { said: "too long".to_owned(), figures };
                return Err(ModelError { model: "scripted".to_owned(), fault });
            }
            let text = (self.answer)(nth);
            let usage = Some(Usage { input: 10, output: 1, ..Usage::default() });
            Ok(Written { text, usage, ..Written::default() })
        }
    }

    fn count(text: &str) -> u64 {
        text.len() as u64 / 4
    }

    fn conversation(n: usize) -> Vec<Message> {
        let turn = |nth: usize| {
            let text = |said: String| vec![Block::Text(said)];
            let (id, name) = (format!("c{nth}"), "Bash".to_owned());
            let call =
                Block::Call { id: id.clone(), name, input: "{}".to_owned(), signature: None };
            let result = Block::answer(id, "o".repeat(3_000));
            [
                Message::new(Role::User, text(format!("request {nth} {}", "w".repeat(400)))),
                Message::new(Role::Assistant, vec![call]),
                Message::new(Role::Tool, vec![result]),
                Message::new(Role::Assistant, text(format!("done {nth}"))),
            ]
        };
        (0..n).flat_map(turn).collect()
    }

    fn run(
        messages: &[Message],
        by: &Scripted<'_>,
        replaced: u64,
    ) -> (Result<Summary, SummaryError>, Vec<Event>) {
        let numbered: Vec<(usize, &Message)> =
            messages.iter().enumerate().map(|(nth, message)| (nth + 1, message)).collect();
        let file = |nth: usize| Excerpt { path: format!("/w/{nth}"), text: "t".repeat(nth * 40) };
        let job = Job {
            run: 1,
            messages: &numbered,
            earlier: &["Earlier on, a was done.".to_owned()],
            files: &[file(1), file(100_000)],
            next: "Tools:\n- Bash: runs a command",
            focus: Some("the focus"),
            window: 32_000,
            most: replaced,
            judge: &|_| Ok(()),
        };
        let mut events = Vec::new();
        let made =
            summarize(&job, by, &count, &|| Duration::MAX, &mut |event| events.push(event.clone()));
        (made, events)
    }

    fn scripted<'a>(real: u64, answer: impl Fn(usize) -> String + 'a) -> Scripted<'a> {
        Scripted { window: None, real, answer: Box::new(answer), asked: RefCell::default() }
    }

    #[test]
    fn what_fits_is_one_request() {
        let by = scripted(32_000, |_| "The summary.".to_owned());
        let (made, events) = run(&conversation(3), &by, 5_000);
        let made = made.unwrap();
        assert_eq!(
            (made.text.as_str(), made.n_requests, made.files),
            ("The summary.", 1, vec!["/w/1".to_owned()])
        );
        assert_eq!((made.usage.input, made.usage.output), (10, 1));
        assert_eq!(events, []);
        let prompt = &by.asked.borrow()[0];
        for said in [
            "[12] assistant: done 2",
            "Earlier on, a was done.",
            "the focus",
            "- Bash: runs a command",
            "<file path=\"/w/1\">",
        ] {
            assert!(prompt.contains(said), "{said}\n{prompt}");
        }
    }

    #[test]
    fn what_does_not_fit_is_summarised_in_parts_and_merged() {
        let by = scripted(32_000, |nth| format!("Part {nth}."));
        let (made, events) = run(&conversation(200), &by, 500_000);
        let made = made.unwrap();
        let asked = by.asked.borrow();
        assert!(asked.len() > 3 && made.n_requests == asked.len());
        assert_eq!(events.len(), asked.len(), "an event a stage");
        let last = asked.last().unwrap();
        assert!(last.contains("Earlier on, a was done.") && last.contains("Part 0."), "{last}");
        // Each message is in one part, and no part begins with a result.
        for nth in 0..200 {
            let parts = asked.iter().filter(|prompt| prompt.contains(&format!("request {nth} ")));
            assert_eq!(parts.count(), 1);
        }
        let torn = asked.iter().filter(|prompt| {
            let first = prompt.split("<conversation>\n").nth(1).unwrap_or_default();
            first.split_once(' ').is_some_and(|(_, rest)| rest.starts_with("tool:"))
        });
        assert_eq!(torn.count(), 0);
    }

    #[test]
    fn a_summariser_that_overflows_gets_smaller_chunks() {
        let by = scripted(9_000, |nth| format!("Part {nth}."));
        let (made, events) = run(&conversation(100), &by, 500_000);
        assert!(made.is_ok(), "{made:?}");
        assert!(events.iter().any(|event| matches!(event, Event::CompactionRetry { .. })));
        let none = scripted(10, |_| String::new());
        let (made, _) = run(&conversation(100), &none, 500_000);
        assert!(matches!(made, Err(SummaryError::Model(_))), "{made:?}");
        assert!(none.asked.borrow().len() < 10);
    }

    #[test]
    fn an_oversized_message_is_noted() {
        let by = Scripted { window: Some(4_000), ..scripted(4_000, |_| "Short.".to_owned()) };
        let large = Message::new(Role::User, vec![Block::Text("字".repeat(9_000))]);
        let messages = [conversation(1), vec![large]].concat();
        let (made, _) = run(&messages, &by, 20_000);
        assert_eq!(made.unwrap().n_omitted, 1);
        assert!(
            by.asked.borrow().iter().any(|prompt| prompt.contains("[left out, because it alone"))
        );
    }

    #[test]
    fn an_earlier_summary_that_fits_nowhere_is_cut() {
        let by = scripted(8_000, |_| "Short.".to_owned());
        let messages = conversation(2);
        let numbered: Vec<(usize, &Message)> = messages.iter().enumerate().collect();
        let job = Job {
            run: 1,
            messages: &numbered,
            earlier: &["e".repeat(200_000)],
            files: &[],
            next: "",
            focus: None,
            window: 8_000,
            most: 50_000,
            judge: &|_| Ok(()),
        };
        let made = summarize(&job, &by, &count, &|| Duration::MAX, &mut |_| ());
        assert_eq!(made.unwrap().text, "Short.");
        assert!(by.asked.borrow().iter().any(|prompt| prompt.contains("more characters]")));
    }

    #[test]
    fn an_empty_summary_is_asked_for_again_once() {
        let by =
            scripted(32_000, |nth| if nth == 0 { " \n".to_owned() } else { "Now.".to_owned() });
        assert_eq!(run(&conversation(3), &by, 5_000).0.unwrap().text, "Now.");
        assert!(by.asked.borrow()[1].contains("could not be used: it is empty"));
        let by = scripted(32_000, |_| String::new());
        let (made, _) = run(&conversation(3), &by, 5_000);
        assert_eq!(made.unwrap_err().to_string(), "scripted: the summary is empty");
        assert_eq!(by.asked.borrow().len(), 2);
    }

    #[test]
    fn a_poor_summary_is_asked_for_again_with_what_it_lacks() {
        let judge = |text: &str| {
            let lost = ["a.rs", "b.rs", "c.rs"].iter().filter(|of| !text.contains(*of));
            let lost: Vec<String> = lost.map(|of| (*of).to_owned()).collect();
            if lost.is_empty() { Ok(()) } else { Err(Flaw::Poor(lost)) }
        };
        let messages = conversation(3);
        let numbered: Vec<(usize, &Message)> = messages.iter().enumerate().collect();
        let stands = |answers: [&'static str; 2], n: usize| {
            let by = scripted(32_000, |nth| answers[nth].to_owned());
            let job = Job {
                run: 1,
                messages: &numbered,
                earlier: &[],
                files: &[],
                next: "",
                focus: None,
                window: 32_000,
                most: 5_000,
                judge: &judge,
            };
            let made = summarize(&job, &by, &count, &|| Duration::MAX, &mut |_| ());
            assert_eq!(by.asked.borrow().len(), n);
            let complains =
                by.asked.borrow().get(1).is_none_or(|asked| asked.contains("it leaves out c.rs"));
            assert!(complains, "{:?}", by.asked.borrow().get(1));
            made.map(|made| made.text)
        };
        assert_eq!(stands(["a.rs, b.rs and c.rs", ""], 1).unwrap(), "a.rs, b.rs and c.rs");
        assert_eq!(stands(["a.rs and b.rs", "a.rs b.rs c.rs"], 2).unwrap(), "a.rs b.rs c.rs");
        for second in ["b.rs and c.rs", "I'm sorry, I cannot help."] {
            let error = stands(["a.rs and b.rs", second], 2).unwrap_err();
            assert!(matches!(error, SummaryError::Flawed { .. }), "{error}");
        }
    }

    #[test]
    fn a_summary_longer_than_what_it_replaces_is_never_returned() {
        let long = "l".repeat(40_000);
        let by = scripted(32_000, |nth| if nth == 0 { long.clone() } else { "Now.".to_owned() });
        assert_eq!(run(&conversation(3), &by, 5_000).0.unwrap().text, "Now.");
        let by = scripted(32_000, |_| long.clone());
        let (made, events) = run(&conversation(3), &by, 5_000);
        let flaw = Flaw::TooLong { tokens: 10_050, most: 5_000 };
        assert_eq!(made, Err(SummaryError::Flawed { model: "scripted".to_owned(), flaw }));
        assert_eq!((by.asked.borrow().len(), events.len()), (2, 1));
    }

    #[test]
    fn a_summary_that_thinks_aloud_or_refuses_is_asked_for_again_once() {
        for flawed in [
            "<think>\nThe user wants a summary.\n</think>\n## Current focus\nThe parser.",
            "## Current focus\nThe parser.\n</think>",
            "Okay, so the user asked me to summarise this conversation. I should begin with the request.",
            "I'm sorry, but I can\u{2019}t help with that.",
            "Unfortunately I am unable to summarise this conversation.",
            "The parser is the subject, I think. </think>\nThe parser.",
            "<summary>\n</summary>",
            "As an AI language model, I do not have access to the conversation.",
            "**Sorry, but this is against my rules.**",
            "Désolé, je ne peux pas vous aider avec cette demande.",
            "Das kann ich leider nicht tun.",
            "Leider kann ich dabei nicht helfen.",
            "Lo siento, no puedo ayudar con eso.",
            "К сожалению, я не могу помочь с этим.",
            "抱歉，我无法总结这段对话。",
            "申し訳ありませんが、お手伝いできません。",
        ] {
            let by = scripted(32_000, |nth| if nth == 0 { flawed } else { "Now." }.to_owned());
            assert_eq!(run(&conversation(3), &by, 5_000).0.unwrap().text, "Now.", "{flawed}");
            let by = scripted(32_000, |_| flawed.to_owned());
            let (made, events) = run(&conversation(3), &by, 5_000);
            assert!(matches!(made, Err(SummaryError::Flawed { .. })), "{flawed}: {made:?}");
            assert_eq!((by.asked.borrow().len(), events.len()), (2, 1), "{flawed}");
        }
        for (said, left) in [
            ("Okay, let me think about this.\n\n## Focus\nThe parser.", "## Focus\nThe parser."),
            ("Let me see. Done.</think>\n## Focus\nThe parser.", "## Focus\nThe parser."),
            ("<summary>\nThe parser.\n</summary>\n</answer>", "The parser."),
            ("</output>\n\n## Focus\nThe parser.", "## Focus\nThe parser."),
        ] {
            let by = scripted(32_000, |_| said.to_owned());
            assert_eq!(run(&conversation(3), &by, 5_000).0.unwrap().text, left, "{said}");
        }
        for good in [
            "The user said: I cannot log in.\n\n## Errors and fixes\nThe `<think>` tag was read as text.",
            "## Current focus\nLet me know, said the user; I'm sorry, said the model.",
            "The user says: I cannot log in. The model is sorry and repairs auth.rs.",
            "用户无法登录，模型修复了 auth.rs。",
            "Unfortunately the build failed twice; then /w/1 was repaired.",
        ] {
            let by = scripted(32_000, |_| good.to_owned());
            assert_eq!(run(&conversation(3), &by, 5_000).0.unwrap().text, good);
        }
    }

    #[test]
    fn a_request_that_is_under_way_when_the_time_is_up_counts_for_nothing() {
        let asked = std::cell::Cell::new(0);
        let by = scripted(32_000, |_| {
            asked.set(1);
            "Too late.".to_owned()
        });
        let messages = conversation(3);
        let numbered: Vec<(usize, &Message)> = messages.iter().enumerate().collect();
        let job = Job {
            run: 1,
            messages: &numbered,
            earlier: &[],
            files: &[],
            next: "",
            focus: None,
            window: 32_000,
            most: 5_000,
            judge: &|_| Ok(()),
        };
        let left = || Duration::from_secs(1 - asked.get());
        let made = summarize(&job, &by, &count, &left, &mut |_| ());
        assert!(matches!(made, Err(SummaryError::TimedOut { .. })), "{made:?}");
    }

    #[test]
    fn chunks_shrink_as_messages_grow() {
        assert_eq!(chunk(100_000, 100), 33_333, "two fifths, less the margin");
        assert_eq!(chunk(100_000, 10_000), 13_333, "an average message has a tenth");
        assert_eq!(chunk(100_000, 50_000), 12_500, "15 per cent at least");
        let sizes = [5, 5, 5, 50, 5, 5];
        assert_eq!(split(&sizes, &[0, 1, 2, 3, 4, 5, 6], 10), [0..2, 2..3, 3..4, 4..6]);
        assert_eq!(split(&sizes, &[0, 3, 6], 10), [0..3, 3..6], "rather too large than torn");
        assert!(split(&[], &[0], 10).is_empty());
    }
}
