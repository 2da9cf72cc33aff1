//! A compaction without the store: which messages to summarise, the summary, and the figures.
//!
//! The caller writes boundary, summary and kept references in one operation, or writes nothing.
//!
//! Invariant: a summary is never as long as the messages that it replaces; that is an error.

use std::{cell::LazyCell, time::Duration};

use crate::{
    context::{
        appendix,
        event::{Cause, Event},
        extract::{self, Quarry},
        facts::{Facts, Loss},
        files::Excerpt,
        model::Summarizer,
        plan::{self, Keep, Nothing, Piece, Plan, Wish},
        prompt,
        stages::{self, Flaw, Job, Summary, SummaryError},
    },
    model::{Message, Usage},
};

/// The name of a caller's own summary in metadata.
pub const CALLER: &str = "user";

/// Which part of the window a summary may take with its appendix: a quarter.
const SHARE: u64 = 4;

/// Which part of the window the appendix of a written summary may take: a tenth.
const APPENDIX: u64 = 10;

/// A summary is good enough if an extract keeps less than this many times as much of the foremost facts. The meter compares words, so
/// what a summary says in its own words seems lost.
const POORER: usize = 3;

/// Who writes a summary.
#[derive(Clone, Copy)]
pub enum Writer<'a> {
    /// Nobody: it is an extract.
    Extract,
    /// A model or a command.
    Model(&'a dyn Summarizer),
    /// The caller, who has written it already. It is never replaced.
    Caller(&'a str),
}

/// A request for a compaction.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// The number of the compaction.
    pub run: u64,
    /// The session.
    pub session: &'a str,
    /// Its folder.
    pub folder: Option<&'a str>,
    /// What triggered it.
    pub trigger: Cause,
    /// The context, including the system prompt.
    pub pieces: &'a [Piece<'a>],
    /// The number of tokens in the context, as reported by the model if it reported it.
    pub tokens: u64,
    /// The number of tokens that the agent wraps around a summary when sending it.
    pub around: u64,
    /// The window in tokens.
    pub window: u64,
    /// How many messages to keep.
    pub wish: Wish,
    /// A description of the next request for the summariser.
    pub next: &'a str,
    /// What the summary should focus on.
    pub focus: Option<&'a str>,
    /// The files that the conversation is about.
    pub files: &'a [Excerpt],
    /// If true, a failing model is an error. Otherwise an extract replaces its summary.
    pub strict: bool,
    /// The command that shows the messages that the summary replaces.
    pub back: Option<&'a str>,
    /// If false, the appendix of a summary has no facts. An extract always has some.
    pub appendix: bool,
    /// How many tokens a summary may have, if not fewer than what it replaces: it begins another conversation.
    pub most: Option<u64>,
    /// Masks secrets in what is quoted from the conversation.
    pub mask: &'a dyn Fn(&str) -> String,
}

/// A compaction to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// The messages to summarise and to keep.
    pub plan: Plan,
    /// The summary, as sent to the model.
    pub summary: String,
    /// The number of tokens in the context before.
    pub pre_tokens: u64,
    /// The number of tokens in the context after.
    pub post_tokens: u64,
    /// The files shown to the summariser.
    pub files: Vec<String>,
    /// Who wrote the summary: a model's name, [`extract::NAME`] or [`CALLER`].
    pub model: String,
    /// The writer's usage.
    pub usage: Usage,
    /// If an extract replaces a model's summary: why.
    pub fallback: Option<String>,
    /// What the replaced messages and earlier summaries name and the summary does not.
    pub losses: Vec<Loss>,
}

/// Why there is no compaction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompactError {
    /// There is nothing to compact.
    #[error(transparent)]
    Nothing(#[from] Nothing),
    /// There is no usable summary.
    #[error(transparent)]
    Summary(#[from] SummaryError),
}

/// Compacts. If time runs out it fails and the context does not change.
pub fn compact(
    task: &Task<'_>,
    by: Writer<'_>,
    count: &dyn Fn(&str) -> u64,
    left: &dyn Fn() -> Duration,
    emit: &mut dyn FnMut(&Event),
) -> Result<Compaction, CompactError> {
    let (run, session) = (task.run, task.session.to_owned());
    let plan = plan::plan(task.pieces, &task.wish)?;
    emit(&Event::CompactionStart {
        run,
        session: session.clone(),
        trigger: task.trigger,
        messages: plan.summarised.len(),
        tokens: task.tokens,
        window: task.window,
    });
    let made = make(task, plan, by, count, left, emit);
    match &made {
        Ok(made) => emit(&Event::CompactionEnd {
            run,
            session,
            pre_tokens: made.pre_tokens,
            post_tokens: made.post_tokens,
            kept: made.plan.kept.len(),
            summarised: made.plan.summarised.len(),
            model: Some(made.model.clone()),
            fallback: made.fallback.is_some(),
        }),
        Err(error) => emit(&Event::CompactionFailed { run, session, why: error.to_string() }),
    }
    Ok(made?)
}

fn make(
    task: &Task<'_>,
    plan: Plan,
    by: Writer<'_>,
    count: &dyn Fn(&str) -> u64,
    left: &dyn Fn() -> Duration,
    emit: &mut dyn FnMut(&Event),
) -> Result<Compaction, SummaryError> {
    let by = match by {
        Writer::Extract => return Replaced::of(task, plan).quote(None, count),
        Writer::Caller(text) => {
            let (text, model) = (text.trim().to_owned(), CALLER.to_owned());
            if text.is_empty() {
                return Err(SummaryError::Flawed { model, flaw: Flaw::Empty });
            }
            return Replaced::of(task, plan)
                .finish(Summary { text, model, ..Summary::default() }, count);
        }
        Writer::Model(by) => by,
    };
    let replaced = Replaced::of(task, plan);
    let messages: Vec<(usize, &Message)> = numbered(task, &replaced.plan).collect();
    let best = LazyCell::new(|| replaced.facts.check(&replaced.extract(None, count)).share());
    let judge = |text: &str| {
        let check = replaced.facts.check(text);
        match () {
            () if !prompt::has_first_headings(text) => Err(Flaw::Unheaded),
            () if check.share() * POORER < *best => Err(Flaw::Poor(check.lacks())),
            () => Ok(()),
        }
    };
    let job = Job {
        run: task.run,
        messages: &messages,
        earlier: &replaced.earlier,
        files: task.files,
        next: task.next,
        focus: task.focus,
        window: task.window,
        most: replaced.tokens.min(task.window / SHARE),
        judge: &judge,
    };
    match stages::summarize(&job, by, count, left, emit) {
        Ok(made) => replaced.finish(made, count),
        // A caller whose time ran out continues with the previous context, unchanged.
        Err(error @ SummaryError::TimedOut { .. }) => Err(error),
        Err(error) if task.strict => Err(error),
        Err(error) => {
            // A server or a command may print a key.
            let said = (task.mask)(&error.to_string());
            emit(&Event::CompactionFallback { run: task.run, error: said.clone() });
            // An extract says less than a summary should, so more is kept. A number that the caller asked for is respected.
            let keep = match task.wish.keep {
                Keep::Share(_) => plan::KEEP_FALLBACK,
                keep @ (Keep::Last(_) | Keep::Tokens(_)) => keep,
            };
            let plan = plan::plan(task.pieces, &Wish { keep, ..task.wish });
            let replaced = plan.map_or(replaced, |plan| Replaced::of(task, plan));
            replaced.quote(Some(said), count).map_err(|_| error)
        }
    }
}

/// What a summary replaces.
struct Replaced<'a> {
    task: &'a Task<'a>,
    plan: Plan,
    /// The messages.
    pieces: Vec<&'a Piece<'a>>,
    /// The earlier summaries, unwrapped.
    earlier: Vec<String>,
    /// The facts of both.
    facts: Facts<'a>,
    /// How many tokens a summary must stay under to be of use.
    tokens: u64,
}

impl<'a> Replaced<'a> {
    fn of(task: &'a Task<'a>, plan: Plan) -> Self {
        let at = |places: &[usize]| -> Vec<&'a Piece<'a>> {
            places.iter().filter_map(|at| task.pieces.get(*at)).collect()
        };
        let (carried, pieces) = (at(&plan.carried), at(&plan.summarised));
        let earlier = carried.iter().map(|piece| prompt::unwrap(&piece.message.text()).to_owned());
        let earlier = earlier.collect();
        let facts = Facts::of(&[carried, pieces.clone()].concat());
        let tokens = task.most.unwrap_or_else(|| replaced(task, &plan));
        Self { task, plan, pieces, earlier, facts, tokens }
    }

    fn extract(&self, failed: Option<&str>, count: &dyn Fn(&str) -> u64) -> String {
        let Self { task, pieces, earlier, facts, .. } = self;
        let quarry = Quarry { pieces, facts, earlier, back: task.back };
        // A summary as long as half of what it replaces gains little.
        let most = (self.tokens / 2).min(task.window / SHARE);
        let around = prompt::weight(&prompt::wrap(""), count);
        extract::extract(&quarry, failed, most.saturating_sub(around), count)
    }

    /// Compacts without a model.
    fn quote(
        self,
        failed: Option<String>,
        count: &dyn Fn(&str) -> u64,
    ) -> Result<Compaction, SummaryError> {
        let text = (self.task.mask)(&self.extract(failed.as_deref(), count));
        let made = Summary { model: extract::NAME.to_owned(), ..Summary::default() };
        self.compaction(Summary { text, ..made }, failed, count)
    }

    /// Compacts with a written summary and its appendix.
    fn finish(
        self,
        made: Summary,
        count: &dyn Fn(&str) -> u64,
    ) -> Result<Compaction, SummaryError> {
        let task = self.task;
        let tokens = prompt::weight(&prompt::wrap(&made.text), count);
        let room = (task.window / SHARE).saturating_sub(tokens).min(task.window / APPENDIX);
        let room = room.min(self.tokens.saturating_sub(tokens) / 2);
        let check = self.facts.check(&made.text);
        let groups = if task.appendix { appendix::FACTS } else { &[] };
        let appendix = (task.mask)(&appendix::write(&check, task.back, groups, room, count));
        let text = appendix::join(made.text.trim(), &appendix);
        self.compaction(Summary { text, ..made }, None, count)
    }

    fn compaction(
        self,
        made: Summary,
        fallback: Option<String>,
        count: &dyn Fn(&str) -> u64,
    ) -> Result<Compaction, SummaryError> {
        let Self { task, plan, facts, tokens: most, .. } = self;
        let summary = prompt::wrap(&made.text);
        let tokens = prompt::weight(&summary, count);
        if tokens >= most {
            let flaw = Flaw::TooLong { tokens, most };
            return Err(SummaryError::Flawed { model: made.model, flaw });
        }
        Ok(Compaction {
            losses: facts.check(&made.text).losses(),
            post_tokens: post_tokens(task, &plan, &summary, count),
            plan,
            summary,
            pre_tokens: task.tokens,
            files: made.files,
            model: made.model,
            usage: made.usage,
            fallback,
        })
    }
}

/// Returns the messages to summarise, numbered from 1 without system prompts.
fn numbered<'a>(
    task: &Task<'a>,
    plan: &Plan,
) -> impl Iterator<Item = (usize, &'a Message)> + use<'a> {
    let (pieces, first) = (task.pieces, plan.system.len());
    let at = plan.summarised.clone().into_iter();
    at.filter_map(move |at| Some((at + 1 - first.min(at), pieces.get(at)?.message)))
}

fn tokens_of(task: &Task<'_>, places: &[usize]) -> u64 {
    places.iter().filter_map(|at| task.pieces.get(*at)).map(|piece| piece.tokens).sum()
}

/// Returns the number of tokens that a summary must stay under to be of use.
fn replaced(task: &Task<'_>, plan: &Plan) -> u64 {
    let replaced = tokens_of(task, &plan.summarised).saturating_add(tokens_of(task, &plan.carried));
    // An earlier summary has the agent's text around it too.
    let more = if plan.carried.is_empty() { task.around } else { 0 };
    replaced.saturating_sub(more)
}

/// Returns the reported number of tokens, adjusted by the tokens that were replaced. Tool definitions and everything else that
/// only the report includes remain counted.
fn post_tokens(task: &Task<'_>, plan: &Plan, summary: &str, count: &dyn Fn(&str) -> u64) -> u64 {
    let all: Vec<usize> = (0..task.pieces.len()).collect();
    let beside = task.tokens.saturating_sub(tokens_of(task, &all));
    let stays = tokens_of(task, &plan.system) + tokens_of(task, &plan.kept);
    beside.saturating_add(stays).saturating_add(prompt::weight(summary, count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        context::model::{Fault, ModelError, SummaryRequest, Written},
        model::{Block, Role},
    };

    struct Says(Result<&'static str, Fault>);

    impl Summarizer for Says {
        fn name(&self) -> &'static str {
            "says"
        }

        fn summarize(&self, _: &SummaryRequest) -> Result<Written, ModelError> {
            let text = self.0.clone().map(str::to_owned);
            let written = text.map(|text| Written { text, ..Written::default() });
            written.map_err(|fault| ModelError { model: "says".to_owned(), fault })
        }
    }

    /// Returns a summary with all headings.
    fn headed(text: &str) -> &'static str {
        let text = format!("## Request and intent\n{text}\n## Current focus\n## Errors and fixes");
        Box::leak(text.into_boxed_str())
    }

    fn count(text: &str) -> u64 {
        text.len() as u64 / 4
    }

    fn conversation(n: usize) -> Vec<Message> {
        let said = |role, nth| {
            Message::new(role, vec![Block::Text(format!("message {nth} {}", "w".repeat(900)))])
        };
        let role = |nth| if nth % 2 == 0 { Role::User } else { Role::Assistant };
        (0..n).map(|nth| said(role(nth), nth)).collect()
    }

    fn run(
        messages: &[Message],
        by: Option<&dyn Summarizer>,
        strict: bool,
    ) -> (Result<Compaction, CompactError>, Vec<Event>) {
        run_by(messages, by.map_or(Writer::Extract, Writer::Model), strict, Duration::MAX)
    }

    fn run_by(
        messages: &[Message],
        by: Writer<'_>,
        strict: bool,
        left: Duration,
    ) -> (Result<Compaction, CompactError>, Vec<Event>) {
        let tokens = |message: &Message| count(&message.text());
        let pieces: Vec<Piece<'_>> = messages
            .iter()
            .map(|message| Piece {
                message,
                tokens: tokens(message),
                is_kept: false,
                is_request: message.role == Role::User,
            })
            .collect();
        let task = Task {
            run: 1,
            session: "s1",
            folder: None,
            trigger: Cause::Manual,
            pieces: &pieces,
            tokens: 100 + pieces.iter().map(|piece| piece.tokens).sum::<u64>(),
            around: 0,
            window: 32_000,
            wish: Wish::of(32_000),
            next: "",
            focus: None,
            files: &[],
            strict,
            back: Some("undertext show s1@0..@15"),
            appendix: true,
            most: None,
            mask: &|text| text.replace("hunter2hunter2", "[masked]"),
        };
        let mut events = Vec::new();
        let made = compact(&task, by, &count, &|| left, &mut |event| events.push(event.clone()));
        (made, events)
    }

    #[test]
    fn the_figures_add_up_and_start_and_end_are_seen() {
        let messages = conversation(20);
        let (made, events) =
            run(&messages, Some(&Says(Ok(headed("Message 2 was answered.")))), false);
        let made = made.unwrap();
        assert_eq!((made.plan.summarised.len(), made.plan.kept.len()), (16, 4));
        assert_eq!((made.model.as_str(), &made.fallback), ("says", &None));
        let kept: u64 = messages[16..].iter().map(|message| count(&message.text())).sum();
        assert_eq!(
            made.post_tokens,
            100 + kept + prompt::weight(&made.summary, &count),
            "tools are still there"
        );
        assert!(made.post_tokens < made.pre_tokens);
        assert!(made.summary.contains("\nMessage 2 was answered.\n"));
        assert!(matches!(events[..], [Event::CompactionStart { .. }, Event::CompactionEnd { .. }]));
    }

    #[test]
    fn without_a_model_the_extract_is_the_summary() {
        let (made, _) = run(&conversation(20), None, true);
        let made = made.unwrap();
        assert_eq!((made.model.as_str(), &made.fallback), ("extract", &None));
        assert!(made.summary.contains("16 messages are not shown"), "{}", made.summary);
    }

    #[test]
    fn a_failing_model_leaves_the_fallback_or_nothing() {
        let away = || Says(Err(Fault::Unreachable { said: "no route".to_owned(), after: None }));
        let (made, events) = run(&conversation(20), Some(&away()), false);
        let made = made.unwrap();
        assert_eq!(made.plan.kept.len(), 6, "three tenths");
        assert_eq!(made.fallback.as_deref(), Some("says: cannot be reached: no route"));
        assert!(made.summary.contains("cannot be reached: no route"), "{}", made.summary);
        assert!(events.iter().any(|event| matches!(event, Event::CompactionFallback { .. })));

        let (made, events) = run(&conversation(20), Some(&away()), true);
        assert_eq!(made.unwrap_err().to_string(), "says: cannot be reached: no route");
        assert!(matches!(
            events[..],
            [Event::CompactionStart { .. }, Event::CompactionFailed { .. }]
        ));
    }

    #[test]
    fn what_says_nothing_of_the_messages_is_no_summary() {
        let unheaded = "says: the summary lacks the headings Request and intent, Current focus, Errors and fixes";
        let poor = "says: the summary keeps far less of the conversation than an extract would";
        for (said, why) in [
            ("Sure! Here is the summary of our talk:", unheaded),
            ("Message 2 was answered.", unheaded),
            (
                "Thank you for your trust. After careful thought, however, I must leave this to others.",
                unheaded,
            ),
            (headed("The user and the model made good progress."), poor),
        ] {
            let (made, events) = run(&conversation(20), Some(&Says(Ok(said))), false);
            let made = made.unwrap();
            assert_eq!((made.fallback.as_deref(), &*made.model), (Some(why), "extract"), "{said}");
            assert!(
                made.summary.contains(why) && made.summary.contains("messages are not shown"),
                "{said}"
            );
            let asked_again = |event: &&Event| matches!(event, Event::CompactionRetry { .. });
            assert_eq!(events.iter().filter(asked_again).count(), 1, "{said}");
            let (made, _) = run(&conversation(20), Some(&Says(Ok(said))), true);
            assert_eq!(made.unwrap_err().to_string(), why, "{said}");
        }
    }

    #[test]
    fn every_summary_ends_with_what_it_does_not_say() {
        let mut messages = conversation(20);
        messages[3].blocks.push(Block::Text("Use port 8080 instead of hunter2hunter2.".to_owned()));
        messages[4].blocks.push(Block::Text("Don't forget src/last_part.rs later.".to_owned()));
        let said = Says(Ok(headed("Message 2 was answered.")));
        let (made, _) = run(&messages, Some(&said), true);
        let summary = made.unwrap().summary;
        let (text, appendix) = summary.split_once("## From the conversation itself\n").unwrap();
        assert!(text.contains("Message 2 was answered"), "{summary}");
        for kept in [
            "Don't forget src/last_part.rs later.",
            "- Use port 8080 instead of [masked].",
            "- src/last_part.rs",
        ] {
            assert!(appendix.contains(kept), "{kept}: {summary}");
        }
        let back = "\n\nTo read the messages that this stands for: `undertext show s1@0..@15`\n</context-summary>";
        assert!(appendix.ends_with(back), "{summary}");
        assert!(!summary.contains("hunter2"), "{summary}");
    }

    #[test]
    fn a_callers_own_summary_is_never_replaced() {
        let messages = conversation(20);
        let (made, _) = run_by(&messages, Writer::Caller("Never mind."), false, Duration::MAX);
        let made = made.unwrap();
        assert_eq!((&*made.model, made.fallback), (CALLER, None));
        assert!(made.summary.contains("\n\nNever mind.\n\n## From"), "{}", made.summary);
        let long = "l".repeat(1 << 20);
        let (made, _) = run_by(&messages, Writer::Caller(&long), false, Duration::MAX);
        assert!(matches!(made, Err(CompactError::Summary(SummaryError::Flawed { .. }))));
    }

    #[test]
    fn what_an_earlier_summary_names_is_kept_too() {
        let paths: Vec<String> = (0..14).map(|n| format!("/src/part{n}.rs")).collect();
        let earlier = prompt::wrap(&format!("The parts are {}.", paths.join(", ")));
        let earlier = Message::new(Role::User, vec![Block::Text(earlier)]);
        let mut messages = vec![Message { is_summary: true, ..earlier }];
        messages.extend(conversation(20));
        let named = |made: &Compaction| {
            let paths = made.losses.iter().find(|loss| loss.kind.as_str() == "paths").unwrap();
            (paths.of, paths.kept)
        };
        let one = headed("Message 2 was answered in /src/part1.rs.");
        let (made, _) = run(&messages, Some(&Says(Ok(one))), true);
        assert_eq!(named(&made.unwrap()), (14, 14));
        let (made, _) = run(&messages, None, true);
        assert_eq!(named(&made.unwrap()), (14, 14));
    }

    #[test]
    fn what_a_summary_cannot_make_shorter_is_left_alone() {
        let short: Vec<Message> =
            (0..5).map(|_| Message::new(Role::User, vec![Block::Text("hi".to_owned())])).collect();
        let (made, _) = run(&short, None, false);
        let error = made.unwrap_err();
        assert!(matches!(error, CompactError::Summary(SummaryError::Flawed { .. })), "{error}");
        let (made, events) = run(&[], None, false);
        assert_eq!((made, events), (Err(CompactError::Nothing(Nothing::Empty)), vec![]));
    }

    #[test]
    fn a_compaction_that_runs_out_of_time_changes_nothing() {
        let by = Says(Ok("Too late."));
        let (made, events) = run_by(&conversation(20), Writer::Model(&by), false, Duration::ZERO);
        assert_eq!(made.unwrap_err().to_string(), "says: the summary was not finished in time");
        assert!(matches!(
            events[..],
            [Event::CompactionStart { .. }, Event::CompactionFailed { .. }]
        ));
    }
}
