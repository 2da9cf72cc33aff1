//! When to compact and which messages: triggers and plans, as functions of figures and messages.
//!
//! ```text
//!  system | summary | ............................... | tail
//!  stays  | carried | summarised                      | kept
//! ```
//!
//! Invariant: no plan separates messages that belong together: a call and its results, one answer in several records.
//! Invariant: no plan summarises an answer at the end whose calls wait for their results.
//! Invariant: there is no gap in the kept messages; they are the newest ones, in a second compaction too.
//! Invariant: no message is in two lists or in none: it stays, is kept, is summarised or is carried.

use std::{collections::BTreeMap, fmt, ops::Range, str::FromStr};

use crate::model::{Block, Message, Role};

/// How much is kept by default, as a percentage of the messages.
pub const KEEP: Keep = Keep::Share(20);

/// How much is kept if no summary could be written.
pub const KEEP_FALLBACK: Keep = Keep::Share(30);

/// The maximum reserve for an answer, in tokens.
const RESERVE: u64 = 16_384;

/// A message of the context, as a plan sees it.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// The message.
    pub message: &'a Message,
    /// Its number of tokens.
    pub tokens: u64,
    /// True if an earlier compaction kept it.
    pub is_kept: bool,
    /// True if the user wrote it, rather than a program in the user's place.
    pub is_request: bool,
}

/// How much to keep at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// This percentage of the messages, rounded up.
    Share(u64),
    /// This many messages.
    Last(usize),
    /// As many messages as have this many tokens, and at least the last one.
    Tokens(u64),
}

/// What a caller wants from a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// How much to keep.
    pub keep: Keep,
    /// The maximum number of tokens in the kept messages. It overrides a share, but not a number of messages.
    pub room: u64,
    /// Compact even if nothing is new since the last compaction. Set when the provider rejects a request as too large.
    pub again: bool,
}

/// A plan: indexes of messages in the context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The messages that the summary replaces.
    pub summarised: Vec<usize>,
    /// The messages that stay unchanged after the summary.
    pub kept: Vec<usize>,
    /// Earlier summaries that the new one includes.
    pub carried: Vec<usize>,
    /// The session's own system prompt, which is never compacted.
    pub system: Vec<usize>,
}

/// Why there is nothing to compact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Nothing {
    /// There are no messages, or only the system prompt.
    #[error("nothing to compact: the context has no messages")]
    Empty,
    /// There are no messages since the last compaction.
    #[error("nothing to compact: there have been no new messages since the last compaction")]
    NothingNew,
    /// All messages would be kept.
    #[error("nothing to compact: {}", all_kept(*.0))]
    AllKept(usize),
    /// The messages to summarise are too short to gain anything.
    #[error("nothing to compact: a summary would not be shorter than what it replaces")]
    NoGain,
    /// The context is small, and compaction was requested only for a large one.
    #[error("compaction is not due yet")]
    NotDue,
}

fn all_kept(n: usize) -> String {
    match n {
        1 => "the only message would be kept".to_owned(),
        n => format!("all {n} messages would be kept"),
    }
}

/// When to compact a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// The window in tokens.
    pub window: u64,
    /// The percentage of the window that triggers it.
    pub percent: u64,
    /// The reserve for an answer in tokens. At most a quarter of the window counts.
    pub reserve: u64,
    /// A number of tokens that triggers it, if that is less.
    pub at: Option<u64>,
}

/// How close a context is to its compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Nearness {
    /// The size of the context in tokens.
    pub tokens: u64,
    /// The size of the model's context window in tokens.
    pub window: u64,
    /// The number of tokens at which a compaction is due.
    pub at: u64,
    /// How many more tokens fit until then.
    pub left: u64,
    /// Whether a compaction is due now.
    #[serde(rename = "due")]
    pub is_due: bool,
}

impl Trigger {
    /// Returns the default for a window: 80 percent of it, or less if the reserve begins earlier.
    pub fn of(window: u64) -> Self {
        Self { window, percent: 80, reserve: RESERVE, at: None }
    }

    /// Returns how close a context with this many tokens is.
    pub fn near(&self, tokens: u64) -> Nearness {
        let share = u128::from(self.window) * u128::from(self.percent) / 100;
        let share = u64::try_from(share).unwrap_or(u64::MAX);
        // A small window with a large reserve would be compacted again and again.
        let reserved = self.window - self.reserve.min(self.window / 4);
        let at = share.min(reserved).min(self.at.unwrap_or(u64::MAX));
        let is_due = tokens >= at;
        Nearness { tokens, window: self.window, at, left: at.saturating_sub(tokens), is_due }
    }
}

impl Wish {
    /// Returns the default for a window.
    pub fn of(window: u64) -> Self {
        Self { keep: KEEP, room: window / 2, again: false }
    }
}

impl Keep {
    fn count(self, n: usize) -> usize {
        match self {
            Self::Share(percent) => {
                let percent = usize::try_from(percent.min(100)).unwrap_or(100);
                n.saturating_mul(percent).div_ceil(100)
            }
            Self::Last(count) => count,
            Self::Tokens(_) => 1,
        }
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(percent) => write!(out, "{percent}%"),
            Self::Last(count) => write!(out, "{count}"),
            Self::Tokens(tokens) => write!(out, "{}k", tokens / 1_000),
        }
    }
}

impl FromStr for Keep {
    type Err = String;

    fn from_str(said: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let said = said.trim();
        let keep = match (said.strip_suffix('%'), said.strip_suffix(['k', 'K'])) {
            (Some(share), _) => number(share).filter(|share| *share <= 100).map(Self::Share),
            (_, Some(thousands)) => {
                number(thousands).and_then(|n| n.checked_mul(1_000)).map(Self::Tokens)
            }
            _ => number(said).and_then(|n| usize::try_from(n).ok()).map(Self::Last),
        };
        keep.ok_or_else(|| {
            "it is neither a number of messages, a share such as 20%, nor tokens such as 20k"
                .to_owned()
        })
    }
}

/// Returns the joints: the places at which messages can be separated, including the beginning and the end.
pub fn joints(messages: &[&Message]) -> Vec<usize> {
    // `held[i]` is the number of calls at or before i that have results after it, stored as differences.
    let mut change = vec![0_i64; messages.len() + 1];
    let mut calls: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, message) in messages.iter().enumerate() {
        for block in &message.blocks {
            match block {
                Block::Call { id, .. } => {
                    calls.insert(id, at);
                }
                Block::Result { id, .. } => {
                    if let Some(call) = calls.get(id.as_str()).filter(|call| **call < at) {
                        add(&mut change, call + 1, 1);
                        add(&mut change, at + 1, -1);
                    }
                }
                _ => {}
            }
        }
    }
    let mut held = 0;
    let mut joints = Vec::new();
    for (at, change) in change.iter().enumerate() {
        held += change;
        let (before, after) = (at.checked_sub(1).and_then(|at| messages.get(at)), messages.get(at));
        let is_one = before.zip(after).is_some_and(|(before, after)| belong(before, after));
        if held == 0 && !is_one {
            joints.push(at);
        }
    }
    joints
}

fn add(change: &mut [i64], at: usize, by: i64) {
    if let Some(change) = change.get_mut(at) {
        *change += by;
    }
}

/// Returns true if two neighbours are parts of one answer, or a result follows its call although their ids do not match.
fn belong(before: &Message, after: &Message) -> bool {
    let calls_only = || {
        !after.blocks.is_empty()
            && after.blocks.iter().all(|block| matches!(block, Block::Call { .. }))
    };
    match (before.role, after.role) {
        (Role::Assistant, Role::Assistant) if before.id.is_some() || after.id.is_some() => {
            before.id == after.id
        }
        (Role::Assistant, Role::Assistant) => calls_only(),
        (Role::Assistant | Role::Tool, Role::Tool) => true,
        _ => false,
    }
}

/// Returns true if messages contain an unanswered call.
fn is_open(messages: &[&Message]) -> bool {
    let mut open: Vec<&str> = Vec::new();
    for block in messages.iter().flat_map(|message| &message.blocks) {
        match block {
            Block::Call { id, .. } => open.push(id),
            Block::Result { id, .. } => {
                if let Some(at) = open.iter().position(|call| call == id) {
                    open.swap_remove(at);
                }
            }
            _ => {}
        }
    }
    !open.is_empty()
}

/// Returns which messages to summarise and which to keep.
pub fn plan(pieces: &[Piece<'_>], wish: &Wish) -> Result<Plan, Nothing> {
    let mut plan = Plan::default();
    let is_said = |piece: &Piece<'_>| piece.message.role != Role::System;
    let n_system =
        pieces.iter().take_while(|piece| !is_said(piece) && !piece.message.is_summary).count();
    plan.system = (0..n_system).collect();

    // From here on, places are indexes into the messages that can be summarised.
    let mut places = Vec::new();
    for (at, piece) in pieces.iter().enumerate().skip(n_system) {
        if piece.message.is_summary { plan.carried.push(at) } else { places.push(at) }
    }
    let pieces: Vec<&Piece<'_>> = places.iter().filter_map(|at| pieces.get(*at)).collect();
    let n = pieces.len();
    if n == 0 {
        return Err(if plan.carried.is_empty() { Nothing::Empty } else { Nothing::NothingNew });
    }
    if !wish.again && !plan.carried.is_empty() && pieces.iter().all(|piece| piece.is_kept) {
        return Err(Nothing::NothingNew);
    }

    let messages: Vec<&Message> = pieces.iter().map(|piece| piece.message).collect();
    let joints = joints(&messages);
    let units: Vec<Range<usize>> =
        joints.iter().zip(joints.iter().skip(1)).map(|(start, end)| *start..*end).collect();
    let tokens = |unit: &Range<usize>| {
        pieces.get(unit.clone()).unwrap_or_default().iter().map(|piece| piece.tokens).sum::<u64>()
    };

    // The tail: enough units to contain the messages to keep; rather one unit too many than a split one.
    let least = match wish.keep {
        Keep::Tokens(most) => {
            let mut sum = 0;
            let fits = |unit: &&Range<usize>| {
                sum += tokens(unit);
                sum <= most
            };
            units.iter().rev().take_while(fits).map(ExactSizeIterator::len).sum::<usize>().max(1)
        }
        keep => keep.count(n),
    };
    let mut cut = units.iter().rposition(|unit| n - unit.start >= least).unwrap_or(0);
    if least == 0 {
        cut = units.len();
    }
    // Text that a program puts in the system's place after a conversation is not kept on its own.
    let is_of_someone = |unit: &Range<usize>| {
        pieces.get(unit.clone()).unwrap_or_default().iter().any(|piece| is_said(piece))
    };
    let last = units.iter().rposition(is_of_someone).unwrap_or(units.len() - 1);
    // A result whose call is summarised would have no call.
    let waits = units.get(last).and_then(|unit| messages.get(unit.clone())).is_some_and(is_open);
    if least > 0 || waits {
        cut = cut.min(last);
    }
    // If that leaves nothing to summarise because the first unit is large, keep one unit less.
    if cut == 0 && least < n && last > 0 {
        cut = 1;
    }
    let tail = units.get(cut..).unwrap_or_default();
    let mut kept_tokens: u64 = tail.iter().map(tokens).sum();
    if let Keep::Share(_) = wish.keep {
        // The last unit that somebody wrote is kept however large it is: it contains the request that is being answered.
        while kept_tokens > wish.room && cut < last {
            kept_tokens -= units.get(cut).map_or(0, tokens);
            cut += 1;
        }
    }
    for (nth, unit) in units.into_iter().enumerate() {
        let to = if nth < cut { &mut plan.summarised } else { &mut plan.kept };
        to.extend(places.get(unit).unwrap_or_default());
    }
    if plan.summarised.is_empty() { Err(Nothing::AllKept(n)) } else { Ok(plan) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A message by a letter: `u`ser, `a`ssistant, `s`ystem, `S`ummary, `k` a user's that was kept; a digit is a call of
    /// that id, a capital `A` to `J` the result of call 0 to 9.
    fn message(letter: char) -> Message {
        let text = |role| Message::new(role, vec![Block::Text("words".to_owned())]);
        match letter {
            'u' | 'k' => text(Role::User),
            'a' => text(Role::Assistant),
            's' => text(Role::System),
            'S' => Message { is_summary: true, ..text(Role::User) },
            '0'..='9' => {
                let (id, name, input) = (letter.to_string(), "Bash".to_owned(), "{}".to_owned());
                let call = Block::Call { id, name, input, signature: None };
                Message::new(Role::Assistant, vec![call])
            }
            letter => {
                let id = char::from(b'0' + letter as u8 - b'A').to_string();
                Message::new(Role::Tool, vec![Block::answer(id, "out".to_owned())])
            }
        }
    }

    fn messages(letters: &str) -> Vec<Message> {
        letters.chars().map(message).collect()
    }

    fn pieces<'a>(letters: &str, messages: &'a [Message]) -> Vec<Piece<'a>> {
        let pieces = letters.chars().zip(messages);
        pieces
            .map(|(letter, message)| Piece {
                message,
                tokens: 100,
                is_kept: letter == 'k',
                is_request: false,
            })
            .collect()
    }

    /// Returns the letters that stay, with summarised messages as `.` and those carried on as `+`.
    fn planned(letters: &str, wish: Wish) -> String {
        let messages = messages(letters);
        match plan(&pieces(letters, &messages), &wish) {
            Err(nothing) => nothing.to_string(),
            Ok(plan) => {
                let shown = letters.chars().enumerate().map(|(at, letter)| {
                    match (plan.summarised.contains(&at), plan.carried.contains(&at)) {
                        (true, _) => '.',
                        (_, true) => '+',
                        _ => letter,
                    }
                });
                shown.collect()
            }
        }
    }

    const WIDE: Wish = Wish { keep: KEEP, room: u64::MAX, again: false };

    #[test]
    fn a_fifth_is_kept_and_no_call_is_parted_from_its_results() {
        assert_eq!(planned("suauauauaua", WIDE), "s........ua");
        assert_eq!(
            planned("uauauau12BC", WIDE),
            ".......12BC",
            "two calls and two results are one"
        );
        assert_eq!(planned("uauau1uauaB", WIDE), ".....1uauaB", "a late result");
        assert_eq!(planned("u", WIDE), "nothing to compact: the only message would be kept");
        assert_eq!(
            planned("1uauauauauB", WIDE),
            "nothing to compact: all 11 messages would be kept"
        );
        assert_eq!(
            planned("1Bu", Wish { keep: Keep::Last(2), ..WIDE }),
            "..u",
            "rather less than nothing"
        );
    }

    #[test]
    fn the_last_messages_are_kept_on_demand() {
        assert_eq!(planned("uauauau", Wish { keep: Keep::Last(3), ..WIDE }), "....uau");
        assert_eq!(planned("uau1B", Wish { keep: Keep::Last(1), ..WIDE }), "...1B");
        assert_eq!(planned("uau", Wish { keep: Keep::Last(0), ..WIDE }), "...");
        assert_eq!(
            planned("uau", Wish { keep: Keep::Last(9), ..WIDE }),
            "nothing to compact: all 3 messages would be kept"
        );
        assert_eq!(
            planned("uau", Wish { keep: Keep::Share(100), ..WIDE }),
            "nothing to compact: all 3 messages would be kept"
        );
    }

    #[test]
    fn an_answer_whose_calls_wait_for_results_is_kept() {
        let none = Wish { keep: Keep::Last(0), ..WIDE };
        assert_eq!(planned("uau1", none), "...1");
        assert_eq!(planned("uau12B", none), "...12B");
        assert_eq!(planned("uau1s", none), "...1s");
        assert_eq!(planned("1", none), "nothing to compact: the only message would be kept");
        // What nobody waits for is not.
        assert_eq!(planned("uau1B", none), ".....");
        assert_eq!(planned("uau1u", none), ".....");
    }

    #[test]
    fn what_a_program_adds_behind_a_conversation_is_not_all_that_stays() {
        assert_eq!(planned("Suausss", Wish { keep: Keep::Last(2), ..WIDE }), "+..usss");
        assert_eq!(planned("uaussss", Wish { keep: Keep::Share(20), room: 1, ..WIDE }), "..ussss");
        assert_eq!(
            planned("usss", Wish { keep: Keep::Last(2), ..WIDE }),
            "nothing to compact: all 4 messages would be kept"
        );
        assert_eq!(planned("usss", Wish { keep: Keep::Last(0), ..WIDE }), "....");
    }

    #[test]
    fn nothing_to_compact_is_an_answer() {
        assert_eq!(planned("", WIDE), "nothing to compact: the context has no messages");
        assert_eq!(planned("s", WIDE), "nothing to compact: the context has no messages");
        assert_eq!(
            planned("S", WIDE),
            "nothing to compact: there have been no new messages since the last compaction"
        );
        assert_eq!(
            planned("sSkkk", WIDE),
            "nothing to compact: there have been no new messages since the last compaction"
        );
        assert_eq!(planned("sSkkk", Wish { again: true, ..WIDE }), "s+..k");
    }

    #[test]
    fn the_second_time_too_the_newest_messages_are_kept() {
        assert_eq!(planned("sSkkuauauaua", WIDE), "s+........ua");
        assert_eq!(planned("sSkkkkua", Wish { keep: Keep::Last(3), ..WIDE }), "s+...kua");
    }

    #[test]
    fn a_share_gives_way_to_the_room() {
        assert_eq!(
            planned("uauauauaua", Wish { keep: Keep::Share(60), room: 250, ..WIDE }),
            "........ua"
        );
        assert_eq!(
            planned("uauauauaua", Wish { keep: Keep::Share(60), room: 1, ..WIDE }),
            ".........a"
        );
        assert_eq!(
            planned("uauauauaua", Wish { keep: Keep::Last(6), room: 1, ..WIDE }),
            "....uauaua"
        );
    }

    #[test]
    fn one_answer_in_several_records_is_one() {
        let part = |id: &str| Message { id: Some(id.to_owned()), ..message('a') };
        let messages = [message('u'), part("m1"), part("m1"), part("m2")];
        assert_eq!(joints(&messages.iter().collect::<Vec<_>>()), [0, 1, 3, 4]);
        assert_eq!(joints(&[]), [0]);
    }

    #[test]
    fn a_trigger_says_how_near_one_is() {
        let near = |window, tokens| {
            let near = Trigger::of(window).near(tokens);
            (near.at, near.left, near.is_due)
        };
        assert_eq!(near(32_000, 0), (24_000, 24_000, false), "the reserve is a quarter at most");
        assert_eq!(near(32_000, 24_000), (24_000, 0, true));
        assert_eq!(near(200_000, 159_999), (160_000, 1, false));
        assert_eq!(near(100, 75), (75, 0, true));
        assert_eq!(near(0, 0), (0, 0, true));
        assert_eq!(near(u64::MAX, u64::MAX).1, 0);
    }

    #[test]
    fn what_is_kept_can_be_said_in_words() {
        assert_eq!("12".parse(), Ok(Keep::Last(12)));
        assert_eq!(" 25% ".parse(), Ok(Keep::Share(25)));
        for wrong in ["", "%", "-1", "101%", "1.5", "many"] {
            assert!(wrong.parse::<Keep>().is_err(), "{wrong}");
        }
        assert_eq!(
            (KEEP.to_string(), Keep::Last(3).to_string()),
            ("20%".to_owned(), "3".to_owned())
        );
    }

    proptest! {
        #[test]
        fn a_plan_tears_nothing_apart_and_loses_nothing(
            letters in "s?S?k{0,3}[ua0-9A-J]{0,30}",
            keep in prop_oneof![(0..=100_u64).prop_map(Keep::Share), (0..12_usize).prop_map(Keep::Last)],
            room in 0..4_000_u64,
            again: bool,
        ) {
            let messages = messages(&letters);
            let pieces = pieces(&letters, &messages);
            let Ok(plan) = plan(&pieces, &Wish { keep, room, again }) else { return Ok(()) };
            let lists = [&plan.system, &plan.carried, &plan.summarised, &plan.kept];
            let mut all: Vec<usize> = lists.into_iter().flatten().copied().collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..letters.len()).collect::<Vec<_>>());
            prop_assert!(!plan.summarised.is_empty());
            prop_assert!(plan.kept.first() > plan.summarised.last() || plan.kept.is_empty());
            // A result that is kept has its call, unless it never had one.
            let letters: Vec<char> = letters.chars().collect();
            for &at in &plan.kept {
                if let letter @ 'A'..='J' = letters[at] {
                    let call = char::from(b'0' + letter as u8 - b'A');
                    if let Some(call) = letters[..at].iter().rposition(|letter| *letter == call) {
                        prop_assert!(plan.kept.contains(&call), "{:?}", plan);
                    }
                }
            }
        }
    }
}
