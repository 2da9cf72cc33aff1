//! Recovery: what to do after a provider says that a request does not fit.
//!
//! ```text
//!   overflow --> compact, at most three times --> truncate, once, if it can help --> an error that says what to do
//!                      each step is followed by the request again
//! ```
//!
//! One step may enable another: after results were truncated, or after the provider reported a smaller window,
//! compaction is tried again, and a smaller window allows one more truncation.
//!
//! Invariant: no request is made for a window that is too small.
//! Invariant: there are never more than `compactions + 3` requests, whatever the provider says.

use crate::context::{
    event::{Event, Step},
    model::{Fault, ModelError},
    overflow::Figures,
    plan::{KEEP, Keep},
    window::{Source, tokens, too_small},
};

/// The maximum number of compactions in one recovery.
pub const MAX_COMPACTIONS: u32 = 3;

/// The progress of a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ladder {
    keep: Keep,
    n_tried: u32,
    n_compactions: u32,
    is_exhausted: bool,
    n_truncations: u32,
    /// The maximum number of truncations.
    truncations: u32,
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The request does not fit.
    Overflow {
        /// True if a compaction ran as part of the request. It counts as one.
        compacted: bool,
        /// True if the provider reported a smaller window than was known.
        is_smaller: bool,
        /// True if there are results that truncation would cut.
        can_truncate: bool,
    },
    /// A compaction made the context smaller.
    Compacted,
    /// A compaction had nothing to do, or failed.
    NotCompacted {
        /// True if there are results that truncation would cut.
        can_truncate: bool,
    },
    /// Results were truncated.
    Truncated,
    /// There was nothing to truncate.
    NotTruncated,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    /// Compact, and keep this much.
    Compact(Keep),
    /// Truncate large results.
    Truncate,
    /// Repeat the request.
    Retry,
    /// Give up with an error.
    GiveUp,
}

impl Ladder {
    /// Starts a recovery whose first compaction keeps this much.
    pub fn new(keep: Keep) -> Self {
        Self {
            keep,
            n_tried: 0,
            n_compactions: 0,
            is_exhausted: false,
            n_truncations: 0,
            truncations: 1,
        }
    }

    /// Returns true if results were truncated.
    pub fn is_truncated(&self) -> bool {
        self.n_truncations > 0
    }

    /// Returns the progress after an outcome, and the next step.
    #[must_use]
    pub fn step(mut self, finding: Finding) -> (Self, Rung) {
        if let Finding::Overflow { is_smaller: true, .. } = finding {
            self.is_exhausted = false;
            self.truncations = if self.is_truncated() { 2 } else { 1 };
        }
        let rung = match finding {
            Finding::Overflow { compacted: true, .. } if self.n_tried < MAX_COMPACTIONS => {
                self.n_tried += 1;
                self.n_compactions += 1;
                Rung::Retry
            }
            Finding::Overflow { can_truncate, .. } => self.next(can_truncate),
            Finding::Compacted => {
                self.n_compactions += 1;
                Rung::Retry
            }
            Finding::Truncated => {
                // The rest may be compacted now.
                self.is_exhausted = false;
                Rung::Retry
            }
            Finding::NotCompacted { can_truncate } => {
                // A context that cannot be compacted now cannot be compacted later either, unless all of it was to be kept.
                self.is_exhausted = self.keep == KEEP;
                self.next(can_truncate)
            }
            Finding::NotTruncated => Rung::GiveUp,
        };
        (self, rung)
    }

    fn next(&mut self, can_truncate: bool) -> Rung {
        if !self.is_exhausted && self.n_tried < MAX_COMPACTIONS {
            self.n_tried += 1;
            return Rung::Compact(self.keep());
        }
        if can_truncate && self.n_truncations < self.truncations {
            self.n_truncations += 1;
            return Rung::Truncate;
        }
        Rung::GiveUp
    }

    /// Returns how much the next compaction keeps: first as requested, then less, because repeating it would change nothing.
    fn keep(self) -> Keep {
        match (self.n_tried, self.keep) {
            (0 | 1, keep) | (_, keep @ (Keep::Share(0) | Keep::Last(0))) => keep,
            (2, Keep::Share(share)) => Keep::Share(share.min(5)),
            (2, Keep::Last(n)) => Keep::Last((n / 4).max(1)),
            (2, Keep::Tokens(tokens)) => Keep::Tokens(tokens / 4),
            _ => Keep::Last(1),
        }
    }
}

/// The session under recovery, as its owner exposes it.
pub trait Patient {
    /// The answer to a request.
    type Answer;

    /// Errors other than the model's.
    type Error: From<ModelError> + From<Unrecovered>;

    /// Makes the request.
    fn attempt(
        &mut self,
        emit: &mut dyn FnMut(&Event),
    ) -> Result<Self::Answer, Attempt<Self::Error>>;

    /// Compacts, and returns true if the context is smaller now. If there is nothing to compact, or no summary is shorter than
    /// the messages that it replaces, that is not an error here: results may still be truncated.
    fn compact(&mut self, keep: Keep, emit: &mut dyn FnMut(&Event)) -> Result<bool, Self::Error>;

    /// Returns true if there are results that truncation would cut.
    fn can_truncate(&self) -> Result<bool, Self::Error>;

    /// Truncates large results, and returns true if there were any.
    fn truncate(&mut self) -> Result<bool, Self::Error>;

    /// Returns the window in tokens, as currently known.
    fn window(&self) -> u64;

    /// Returns the largest entries of the context, largest first.
    fn largest(&self) -> Vec<Large>;
}

/// A request that failed.
#[derive(Debug)]
pub enum Attempt<E> {
    /// The model refused.
    Model {
        /// Its error.
        error: ModelError,
        /// True if a compaction ran before it was asked.
        compacted: bool,
    },
    /// Something else failed.
    Other(E),
}

/// The limits of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// The session.
    pub session: String,
    /// Its window in tokens.
    pub window: u64,
    /// Where the size of the window comes from.
    pub by: Source,
    /// The smallest supported window.
    pub least: u64,
    /// How much the first compaction keeps.
    pub keep: Keep,
}

/// A large entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Large {
    /// Its id, as commands accept it.
    pub entry: String,
    /// Its role or tool.
    pub what: String,
    /// Its number of tokens.
    pub tokens: u64,
}

/// A session that could not be made to fit its window.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unrecovered {
    /// The window is too small to start with.
    #[error("{}", too_small(*.window, *.by, *.least))]
    Blocked {
        /// The session.
        session: String,
        /// The window.
        window: u64,
        /// Where the size of the window comes from.
        by: Source,
        /// The minimum.
        least: u64,
    },
    /// Everything was tried.
    #[error(
        "session {session} does not fit in {}{}{}{}{}", tokens(*.window), figure(*.used),
        tried(*.compactions, *.truncated), list(.largest), words(.said)
    )]
    DoesNotFit {
        /// The session.
        session: String,
        /// The window.
        window: u64,
        /// The size of the last request in tokens, if the provider reported it.
        used: Option<u64>,
        /// The number of compactions.
        compactions: u32,
        /// True if results were truncated.
        truncated: bool,
        /// The largest entries.
        largest: Vec<Large>,
        /// The provider's last error message, if it was asked.
        said: String,
    },
}

/// How many of the largest entries an error lists.
const NAMED: usize = 3;

fn figure(used: Option<u64>) -> String {
    used.map_or_else(String::new, |used| format!(" (the last request had {used})"))
}

fn tried(compactions: u32, truncated: bool) -> String {
    let compactions = match compactions {
        0 => None,
        1 => Some("1 compaction".to_owned()),
        n => Some(format!("{n} compactions")),
    };
    let tried = compactions.into_iter().chain(truncated.then(|| "a truncation".to_owned()));
    let tried: Vec<String> = tried.collect();
    if tried.is_empty() { String::new() } else { format!(", even after {}", tried.join(" and ")) }
}

fn words(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!("; the provider said: {said}") }
}

fn list(largest: &[Large]) -> String {
    let name =
        |large: &Large| format!("{} ({}, {})", large.entry, large.what, tokens(large.tokens));
    let names: Vec<String> = largest.iter().take(NAMED).map(name).collect();
    if names.is_empty() { String::new() } else { format!("; largest: {}", names.join(", ")) }
}

/// Makes a request, and makes it fit if necessary, as often as allowed.
pub fn recover<P: Patient>(
    room: &Room,
    patient: &mut P,
    emit: &mut dyn FnMut(&Event),
) -> Result<P::Answer, P::Error> {
    let session = || room.session.clone();
    if room.window < room.least {
        let &Room { window, by, least, .. } = room;
        return Err(Unrecovered::Blocked { session: session(), window, by, least }.into());
    }
    let mut ladder = None;
    let answer = climb(room, patient, &mut ladder, emit);
    if let Some(ladder) = ladder {
        emit(&Event::RecoveryEnd {
            session: session(),
            recovered: answer.is_ok(),
            compactions: ladder.n_compactions,
            truncated: ladder.is_truncated(),
        });
    }
    answer
}

/// Runs the steps of a recovery, starting with the first overflow.
fn climb<P: Patient>(
    room: &Room,
    patient: &mut P,
    on: &mut Option<Ladder>,
    emit: &mut dyn FnMut(&Event),
) -> Result<P::Answer, P::Error> {
    let session = || room.session.clone();
    loop {
        let window = patient.window();
        let (error, compacted) = match patient.attempt(emit) {
            Ok(answer) => return Ok(answer),
            Err(Attempt::Other(error)) => return Err(error),
            Err(Attempt::Model { error, compacted }) => (error, compacted),
        };
        let Fault::Overflow { said, figures: Figures { used, .. } } = error.fault else {
            return Err(error.into());
        };
        let ladder = on.get_or_insert_with(|| {
            emit(&Event::RecoveryStart { session: session(), window: room.window, used });
            Ladder::new(room.keep)
        });
        let mut finding = Finding::Overflow {
            compacted,
            is_smaller: patient.window() < window,
            can_truncate: patient.can_truncate()?,
        };
        loop {
            let rung;
            (*ladder, rung) = ladder.step(finding);
            let (n, truncated) = (ladder.n_compactions, ladder.is_truncated());
            let mut step = |step, nth| {
                emit(&Event::RecoveryStep { session: session(), step, nth });
            };
            finding = match rung {
                Rung::Compact(keep) => {
                    step(Step::Compact, n);
                    if patient.compact(keep, emit)? {
                        Finding::Compacted
                    } else {
                        Finding::NotCompacted { can_truncate: patient.can_truncate()? }
                    }
                }
                Rung::Truncate => {
                    step(Step::Truncate, 1);
                    if patient.truncate()? { Finding::Truncated } else { Finding::NotTruncated }
                }
                Rung::Retry => {
                    step(Step::Retry, n + u32::from(truncated));
                    break;
                }
                Rung::GiveUp => {
                    let unrecovered = Unrecovered::DoesNotFit {
                        session: session(),
                        window: patient.window(),
                        used,
                        compactions: n,
                        truncated,
                        largest: patient.largest(),
                        said,
                    };
                    return Err(unrecovered.into());
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::context::overflow::{Verdict, judge};

    /// A session of plain figures: a request that does not fit is refused with a provider's words.
    struct Figured {
        history: u64,
        result: u64,
        window: u64,
        n_attempts: u32,
        steps: Vec<&'static str>,
        fails: Option<Fault>,
    }

    impl Figured {
        fn new(history: u64, result: u64) -> Self {
            Self { history, result, window: 16_000, n_attempts: 0, steps: vec![], fails: None }
        }
    }

    #[derive(Debug, PartialEq)]
    enum Failed {
        Model(ModelError),
        Unrecovered(Unrecovered),
    }

    impl From<ModelError> for Failed {
        fn from(error: ModelError) -> Self {
            Self::Model(error)
        }
    }

    impl From<Unrecovered> for Failed {
        fn from(error: Unrecovered) -> Self {
            Self::Unrecovered(error)
        }
    }

    impl Patient for Figured {
        type Answer = u64;
        type Error = Failed;

        fn attempt(&mut self, _: &mut dyn FnMut(&Event)) -> Result<u64, Attempt<Failed>> {
            self.n_attempts += 1;
            let model = "test".to_owned();
            if let Some(fault) = self.fails.clone() {
                let error = ModelError { model, fault };
                return Err(Attempt::Model { error, compacted: false });
            }
            let tokens = self.history + self.result;
            if tokens <= self.window {
                return Ok(tokens);
            }
            let said = format!("prompt is too long: {tokens} tokens > {} maximum", self.window);
            let Verdict::Overflow(figures) = judge(Some(400), &said) else { unreachable!() };
            let error = ModelError { model, fault: Fault::Overflow { said, figures } };
            Err(Attempt::Model { error, compacted: false })
        }

        fn compact(&mut self, _: Keep, _: &mut dyn FnMut(&Event)) -> Result<bool, Failed> {
            self.steps.push("compact");
            let is_smaller = self.history > 10;
            self.history /= 2;
            Ok(is_smaller)
        }

        fn can_truncate(&self) -> Result<bool, Failed> {
            Ok(self.result > 4_000)
        }

        fn truncate(&mut self) -> Result<bool, Failed> {
            self.steps.push("truncate");
            self.result = 4_000;
            Ok(true)
        }

        fn window(&self) -> u64 {
            self.window
        }

        fn largest(&self) -> Vec<Large> {
            let (entry, what) = ("1a2b3c".to_owned(), "Bash".to_owned());
            vec![Large { entry, what, tokens: self.result }]
        }
    }

    fn run(patient: &mut Figured) -> (Result<u64, Failed>, Vec<Event>) {
        let (session, by) = ("s1".to_owned(), Source::Asked);
        let room = Room { session, window: patient.window, by, least: 16_000, keep: KEEP };
        let mut events = Vec::new();
        let answer = recover(&room, patient, &mut |event| events.push(event.clone()));
        (answer, events)
    }

    #[test]
    fn what_fits_is_left_alone() {
        let mut patient = Figured::new(10_000, 0);
        assert_eq!(run(&mut patient), (Ok(10_000), vec![]));
    }

    #[test]
    fn a_long_history_is_compacted_until_it_fits() {
        let mut patient = Figured::new(50_000, 0);
        let (answer, events) = run(&mut patient);
        assert_eq!((answer, patient.n_attempts), (Ok(12_500), 3));
        assert_eq!(patient.steps, ["compact"; 2]);
        let used = Some(50_000);
        let session = || "s1".to_owned();
        assert_eq!(events[0], Event::RecoveryStart { session: session(), window: 16_000, used });
        let end = Event::RecoveryEnd {
            session: session(),
            recovered: true,
            compactions: 2,
            truncated: false,
        };
        assert_eq!(events.last(), Some(&end));
    }

    #[test]
    fn an_oversized_result_is_truncated_after_the_compactions() {
        let mut patient = Figured::new(100, 90_000);
        assert!(run(&mut patient).0.is_ok());
        assert_eq!(patient.steps, ["compact", "compact", "compact", "truncate"]);
        let mut patient = Figured::new(5, 90_000);
        assert!(run(&mut patient).0.is_ok());
        assert_eq!(patient.steps, ["compact", "truncate"], "nothing to compact is not tried again");
    }

    #[test]
    fn what_cannot_fit_ends_with_an_error_that_helps() {
        let mut patient = Figured::new(500_000, 3_999);
        let (answer, _) = run(&mut patient);
        let Err(Failed::Unrecovered(error)) = answer else { unreachable!("{answer:?}") };
        insta::assert_snapshot!(error, @"session s1 does not fit in 16000 tokens (the last request had 66499), even after 3 compactions; largest: 1a2b3c (Bash, 3999 tokens); the provider said: prompt is too long: 66499 tokens > 16000 maximum");
        assert_eq!(patient.n_attempts, 4);
    }

    fn overflow(is_smaller: bool, can_truncate: bool) -> Finding {
        Finding::Overflow { compacted: false, is_smaller, can_truncate }
    }

    #[test]
    fn what_could_not_be_done_is_tried_again_when_something_changed() {
        let not = |can_truncate| Finding::NotCompacted { can_truncate };
        let check = |steps: &[(Finding, Rung)]| {
            let mut ladder = Ladder::new(KEEP);
            for (nth, (finding, expected)) in steps.iter().enumerate() {
                let rung;
                (ladder, rung) = ladder.step(*finding);
                assert_eq!(rung, *expected, "{nth}");
            }
        };
        let (first, less) = (Rung::Compact(KEEP), Rung::Compact(Keep::Share(5)));
        // Nothing could be compacted while a result was too large, and then something can.
        check(&[
            (overflow(false, true), first),
            (not(true), Rung::Truncate),
            (Finding::Truncated, Rung::Retry),
            (overflow(false, false), less),
            (not(false), Rung::GiveUp),
        ]);
        // In a smaller window results are too large that were not.
        check(&[
            (overflow(false, true), first),
            (not(true), Rung::Truncate),
            (Finding::Truncated, Rung::Retry),
            (overflow(true, true), less),
            (not(true), Rung::Truncate),
            (Finding::Truncated, Rung::Retry),
            (overflow(true, true), Rung::Compact(Keep::Last(1))),
            (not(true), Rung::GiveUp),
        ]);
    }

    #[test]
    fn the_first_compaction_keeps_what_is_wished_and_each_later_one_less() {
        let check = |keep: &str, expected: [&str; 3]| {
            let mut ladder = Ladder::new(keep.parse().unwrap());
            let kept = expected.map(|_| {
                let over = overflow(false, false);
                let (next, rung) = ladder.step(over);
                ladder = next.step(Finding::Compacted).0;
                let Rung::Compact(keep) = rung else { panic!("{rung:?}") };
                keep.to_string()
            });
            assert_eq!(kept, expected, "{keep}");
        };
        check("20%", ["20%", "5%", "1"]);
        check("3%", ["3%", "3%", "1"]);
        check("2", ["2", "1", "1"]);
        check("40", ["40", "10", "1"]);
        check("0", ["0", "0", "0"]);
        // Where all was to be kept, less may still do; where a fifth was, nothing does.
        let nothing = Finding::NotCompacted { can_truncate: false };
        for (keep, rung) in [(Keep::Last(40), Rung::Compact(Keep::Last(10))), (KEEP, Rung::GiveUp)]
        {
            let over = overflow(false, false);
            let (ladder, _) = Ladder::new(keep).step(over);
            assert_eq!((ladder.step(nothing).1, ladder.n_compactions), (rung, 0), "{keep}");
        }
    }

    #[test]
    fn a_window_that_is_too_small_is_stopped_before_any_request() {
        let mut patient = Figured { window: 8_000, ..Figured::new(1, 0) };
        let (answer, events) = run(&mut patient);
        let Err(Failed::Unrecovered(error)) = answer else { unreachable!("{answer:?}") };
        assert_eq!(error.to_string(), "a window of 8000 tokens is too small: the minimum is 16000");
        assert_eq!((patient.n_attempts, events), (0, vec![]));
    }

    #[test]
    fn what_is_no_overflow_is_not_recovered() {
        let said = || "slow down".to_owned();
        for fault in [
            Fault::RateLimited { said: said(), after: None },
            Fault::Refused { said: said(), status: Some(401) },
        ] {
            let mut patient = Figured { fails: Some(fault), ..Figured::new(500_000, 0) };
            let (answer, events) = run(&mut patient);
            assert!(matches!(answer, Err(Failed::Model(_))), "{answer:?}");
            assert_eq!((patient.n_attempts, patient.steps, events), (1, vec![], vec![]));
        }
    }

    proptest! {
        #[test]
        fn a_recovery_ends(history in 0..10_000_000_u64, result in 0..1_000_000_u64) {
            let mut patient = Figured::new(history, result);
            let (answer, _) = run(&mut patient);
            prop_assert!(patient.n_attempts <= MAX_COMPACTIONS + 3);
            let truncations = patient.steps.iter().filter(|step| **step == "truncate").count();
            prop_assert!(truncations <= 1);
            prop_assert_eq!(answer.is_ok(), patient.history + patient.result <= 16_000);
        }
    }
}
