//! A compaction without the store: which messages to summarise, the summary, and the figures.
//!
//! The caller writes boundary, summary and kept references in one operation, or writes nothing.
//!
//! Invariant: a summary is never as long as the messages that it replaces; that is an error.

use std::time::Duration;

use crate::{
    context::{
        event::{Cause, Event},
        extract,
        files::Excerpt,
        loss::{Check, Loss},
        model::Summarizer,
        plan::{self, Keep, Nothing, Piece, Plan, Wish},
        prompt,
        stages::{self, Flaw, Job, SummaryError},
    },
    model::{Message, Usage},
};

/// A summary this many times shorter than the messages is accepted only if it names something from them.
const SHORTER: u64 = 400;

/// A request for a compaction.
#[derive(Clone, Copy, Debug)]
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
    /// What the summary should focus on.
    pub focus: Option<&'a str>,
    /// The files that the conversation is about.
    pub files: &'a [Excerpt],
    /// If true, a failing model is an error. Otherwise the fallback, statistics and the last requests, replaces the summary.
    pub strict: bool,
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
    /// Who wrote the summary: a model's name or [`extract::NAME`].
    pub model: String,
    /// The writer's usage.
    pub usage: Usage,
    /// If the summary is the fallback: why.
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

/// Compacts with a model or with the extract. If time runs out it fails and the context does not change.
pub fn compact(
    task: &Task<'_>,
    by: Option<&dyn Summarizer>,
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
    by: Option<&dyn Summarizer>,
    count: &dyn Fn(&str) -> u64,
    left: &dyn Fn() -> Duration,
    emit: &mut dyn FnMut(&Event),
) -> Result<Compaction, SummaryError> {
    let Some(by) = by else { return quote(task, plan, None, count) };
    let messages: Vec<(usize, &Message)> = numbered(task, &plan).collect();
    let pieces = replaced_pieces(task, &plan);
    // The last request is still open unless a request is among the kept messages.
    let mut kept = plan.kept.iter().filter_map(|at| task.pieces.get(*at));
    let is_open = !kept.any(|piece| piece.is_request);
    let replaced = replaced(task, &plan);
    let lack = |text: &str| {
        let check = Check::of(text, &pieces);
        let is_short = count(text).saturating_mul(SHORTER) < replaced;
        match () {
            () if check.is_bare() && stages::declines(text) => Err(Flaw::Refuses),
            () if check.is_strange(is_short) => Err(Flaw::Strange),
            () => Ok(check.lack(is_open)),
        }
    };
    let job = Job {
        run: task.run,
        messages: &messages,
        earlier: &earlier(task, &plan),
        files: task.files,
        focus: task.focus,
        window: task.window,
        replaced,
        lack: &lack,
    };
    match stages::summarize(&job, by, count, left, emit) {
        Ok(made) => {
            let summary = prompt::wrap(&made.text);
            Ok(Compaction {
                losses: Check::of(&made.text, &pieces).losses(),
                post_tokens: post_tokens(task, &plan, &summary, count),
                plan,
                summary,
                pre_tokens: task.tokens,
                files: made.files,
                model: made.model,
                usage: made.usage,
                fallback: None,
            })
        }
        // A caller whose time ran out continues with the previous context, unchanged.
        Err(error @ SummaryError::TimedOut { .. }) => Err(error),
        Err(error) if task.strict => Err(error),
        Err(error) => {
            let said = error.to_string();
            emit(&Event::CompactionFallback { run: task.run, error: said.clone() });
            // The fallback says less, so more is kept. A number that the caller asked for is respected.
            let keep = match task.wish.keep {
                Keep::Share(_) => plan::KEEP_FALLBACK,
                keep @ Keep::Last(_) => keep,
            };
            let plan = plan::plan(task.pieces, &Wish { keep, ..task.wish }).unwrap_or(plan);
            quote(task, plan, Some(said), count).map_err(|_| error)
        }
    }
}

/// Compacts without a model: with the extract, or with the fallback for a failed summary.
fn quote(
    task: &Task<'_>,
    plan: Plan,
    failed: Option<String>,
    count: &dyn Fn(&str) -> u64,
) -> Result<Compaction, SummaryError> {
    let pieces = summarised(task, &plan);
    let (earlier, replaced) = (earlier(task, &plan), replaced(task, &plan));
    let text = if let Some(error) = &failed {
        extract::fallback(&pieces, &earlier, error)
    } else {
        // The text wrapped around it counts too.
        let most = replaced.saturating_sub(prompt::weight(&prompt::wrap(""), count) + 1);
        extract::extract(&pieces, &earlier, task.folder, most.min(task.window / 4), count)
    };
    let summary = prompt::wrap(&text);
    let tokens = prompt::weight(&summary, count);
    if tokens >= replaced {
        let flaw = Flaw::TooLong { tokens, replaced };
        return Err(SummaryError::Flawed { model: extract::NAME.to_owned(), flaw });
    }
    Ok(Compaction {
        losses: Check::of(&text, &replaced_pieces(task, &plan)).losses(),
        post_tokens: post_tokens(task, &plan, &summary, count),
        plan,
        summary,
        pre_tokens: task.tokens,
        files: Vec::new(),
        model: extract::NAME.to_owned(),
        usage: Usage::default(),
        fallback: failed,
    })
}

/// Returns the pieces to summarise.
fn summarised<'a>(task: &Task<'a>, plan: &Plan) -> Vec<&'a Piece<'a>> {
    plan.summarised.iter().filter_map(|at| task.pieces.get(*at)).collect()
}

/// Returns the pieces that the summary replaces: earlier summaries, and the messages after them.
fn replaced_pieces<'a>(task: &Task<'a>, plan: &Plan) -> Vec<&'a Piece<'a>> {
    let carried = plan.carried.iter().filter_map(|at| task.pieces.get(*at));
    carried.chain(summarised(task, plan)).collect()
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

/// Returns the earlier summaries, unwrapped.
fn earlier(task: &Task<'_>, plan: &Plan) -> Vec<String> {
    let pieces = plan.carried.iter().filter_map(|at| task.pieces.get(*at));
    pieces.map(|piece| prompt::unwrap(&piece.message.text()).to_owned()).collect()
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
        run_until(messages, by, strict, Duration::MAX)
    }

    fn run_until(
        messages: &[Message],
        by: Option<&dyn Summarizer>,
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
            focus: None,
            files: &[],
            strict,
        };
        let mut events = Vec::new();
        let made = compact(&task, by, &count, &|| left, &mut |event| events.push(event.clone()));
        (made, events)
    }

    #[test]
    fn the_figures_add_up_and_start_and_end_are_seen() {
        let messages = conversation(20);
        let (made, events) = run(&messages, Some(&Says(Ok("Message 2 was answered."))), false);
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
        assert!(made.summary.contains("\n\nMessage 2 was answered.\n"));
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
    fn what_names_nothing_of_the_messages_is_no_summary() {
        for said in ["OK.", "Sure! Here is the summary of our talk:", "What shall I summarise?"] {
            let (made, events) = run(&conversation(20), Some(&Says(Ok(said))), false);
            let why = "says: the summary names nothing from the messages that it would replace";
            assert_eq!(made.unwrap().fallback.as_deref(), Some(why), "{said}");
            let asked_again = |event: &&Event| matches!(event, Event::CompactionRetry { .. });
            assert_eq!(events.iter().filter(asked_again).count(), 1, "{said}");
            let (made, _) = run(&conversation(20), Some(&Says(Ok(said))), true);
            assert_eq!(made.unwrap_err().to_string(), why, "{said}");
        }
    }

    #[test]
    fn a_refusal_is_no_summary_however_long_and_polite_it_is() {
        let mut messages = conversation(20);
        for (nth, message) in messages.iter_mut().enumerate().filter(|(nth, _)| nth % 2 == 1) {
            let text = format!("Message {nth} is about src/part{nth}.rs and `parse_part{nth}`.");
            message.blocks.push(Block::Text(text));
        }
        let polite = [
            "Thank you for sharing this long conversation with me, and for the care with which it was put together. It is \
             clear how much work went into each message. After careful thought, however, I must respectfully leave this \
             request to somebody else.",
            "What a thoughtful request! The message is clear. That said, writing this down is not something I can do in good \
             conscience, in src/part1.rs or elsewhere. Please message somebody who can.",
            "Vielen Dank für das Vertrauen. Die message ist klar. Nach reiflicher Überlegung möchte ich davon absehen.",
            "Merci pour ce message. Après réflexion, je préfère laisser cette tâche à quelqu'un d'autre.",
            "感谢您的信任 (message)。经过慎重考虑，我还是决定把这件事交给别人。",
        ];
        for said in polite {
            let said: &'static str = said;
            let (made, events) = run(&messages, Some(&Says(Ok(said))), true);
            assert!(made.is_err(), "{said}");
            let asked_again = |event: &&Event| matches!(event, Event::CompactionRetry { .. });
            assert_eq!(events.iter().filter(asked_again).count(), 1, "{said}");
        }
        // The user's own words, in a summary that names what they are about.
        let good = "The user wrote: I cannot log in, sorry. Message 2 is answered in src/part1.rs, src/part3.rs, \
                    src/part5.rs and src/part7.rs, by parse_part9.";
        let (made, _) = run(&messages, Some(&Says(Ok(good))), true);
        assert!(made.unwrap().summary.contains("I cannot log in"));
    }

    #[test]
    fn what_an_earlier_summary_names_is_asked_for_too() {
        let paths: Vec<String> = (0..14).map(|n| format!("/src/part{n}.rs")).collect();
        let earlier = prompt::wrap(&format!("The parts are {}.", paths.join(", ")));
        let earlier = Message::new(Role::User, vec![Block::Text(earlier)]);
        let mut messages = vec![Message { is_summary: true, ..earlier }];
        messages.extend(conversation(20));
        let named = |made: &Compaction| {
            let paths = made.losses.iter().find(|loss| loss.kind.as_str() == "paths").unwrap();
            (paths.of, paths.kept)
        };
        let one = "Message 2 was answered in /src/part1.rs.";
        let (made, events) = run(&messages, Some(&Says(Ok(one))), true);
        assert_eq!(named(&made.unwrap()), (14, 1));
        let asked_again = |event: &&Event| matches!(event, Event::CompactionRetry { .. });
        assert_eq!(events.iter().filter(asked_again).count(), 1);
        let some = "Message 2 was answered, in /src/part1.rs, /src/part2.rs and /src/part3.rs.";
        let (made, _) = run(&messages, Some(&Says(Ok(some))), true);
        assert_eq!(named(&made.unwrap()), (14, 3));
        // The extract quotes another writer's summary.
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
        let (made, events) = run_until(&conversation(20), Some(&by), false, Duration::ZERO);
        assert_eq!(made.unwrap_err().to_string(), "says: the summary was not finished in time");
        assert!(matches!(
            events[..],
            [Event::CompactionStart { .. }, Event::CompactionFailed { .. }]
        ));
    }
}
