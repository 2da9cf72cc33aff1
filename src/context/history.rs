//! Limits a history to the newest turns of the user that are requested and fit.
//!
//! A turn begins with a request of the user and ends before the next one. It is kept or dropped whole, so that no call is
//! separated from its result. Instructions and summaries are kept whatever the limit (other implementations of this limit lose
//! the summary). The newest turn is always kept too, because a request without one asks nothing. If it alone is too large, the
//! result says so.
//!
//! The limit may depend on whom an agent talks to, given by the key of the session:
//!
//! ```text
//! agent:main:telegram:direct:4711:thread:9     on telegram, with the user 4711
//!       ^^^^^^^^^^ dropped         ^^^^^^^^ dropped
//! ```
//!
//! Invariant: kept turns are never reordered, and nothing but the newest turn alone ever exceeds a limit.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    context::{
        Act, Change, Item, Shape, Step,
        pairing::{self, Slot, each_slot},
        prepare::Plan,
        tokens,
        turns::{Side, side},
    },
    model::{Role, Timestamp},
};

/// The limits of a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of turns of the user.
    pub turns: Option<usize>,
    /// The maximum number of messages, as the provider counts them.
    pub messages: Option<usize>,
    /// The maximum number of tokens.
    pub tokens: Option<u64>,
    /// Only turns that began at or after this time.
    pub since: Option<Timestamp>,
}

/// Whom an agent talks to in a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The channel, such as `telegram`, in lowercase.
    pub channel: String,
    /// The kind of conversation.
    pub kind: KeyKind,
    /// The other party. A thread does not change it.
    pub peer: String,
}

/// How an agent talks to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// With one person.
    Direct,
    /// With several people.
    Group,
    /// In a way that is not limited.
    Other,
}

impl Key {
    /// Parses the key of a session.
    pub fn parse(key: &str) -> Option<Self> {
        let parts: Vec<&str> = key.split(':').filter(|part| !part.is_empty()).collect();
        let parts = match parts.as_slice() {
            ["agent", _, rest @ ..] if !rest.is_empty() => rest,
            all => all,
        };
        let [channel, kind, peer @ ..] = parts else { return None };
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let peer = match peer {
            [whom @ .., "thread" | "topic", n] if is_number(n) => whom,
            whom => whom,
        };
        Some(Self {
            channel: channel.to_lowercase(),
            kind: match kind.to_lowercase().as_str() {
                "dm" | "direct" => KeyKind::Direct,
                "group" | "channel" => KeyKind::Group,
                _ => KeyKind::Other,
            },
            peer: peer.join(":"),
        })
    }
}

/// The limits of one channel, in turns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Channel {
    /// With one person.
    pub direct: Option<usize>,
    /// With several.
    pub group: Option<usize>,
    /// With these people.
    pub users: BTreeMap<String, usize>,
}

/// Returns the limit in turns for a key, if its channel has one.
pub fn turns_of(channels: &BTreeMap<String, Channel>, key: &Key) -> Option<usize> {
    let channel = channels.get(&key.channel)?;
    match key.kind {
        KeyKind::Direct => channel.users.get(&key.peer).copied().or(channel.direct),
        KeyKind::Group => channel.group,
        KeyKind::Other => None,
    }
}

/// The result of limiting a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Limited {
    /// The number of turns in the session.
    pub turns: usize,
    /// How many of these turns are sent.
    pub kept: usize,
    /// True if the newest turn alone exceeds the limits.
    pub exceeds: bool,
}

/// A part of the history that is kept or dropped whole, as it will be sent: a turn, the messages before the first turn, or
/// all turns that are dropped whatever their size.
#[derive(Clone, Debug, Default)]
struct Stretch {
    /// Who speaks first and last, not counting messages that are always kept.
    ends: Option<(Side, Side)>,
    /// True if a message that is always kept comes before all others; and true if such a message is the user's.
    is_parted: bool,
    opens: bool,
    size: Size,
    /// The size of the messages that are always kept.
    fixed: Size,
}

/// The stretches that are dropped whatever their size.
struct Old {
    /// Their number.
    count: usize,
    why: String,
}

/// The size of a part of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Size {
    messages: usize,
    tokens: u64,
}

impl std::ops::Add for Size {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { messages: self.messages + other.messages, tokens: self.tokens + other.tokens }
    }
}

impl Size {
    /// Subtracts what merging two messages saves.
    fn less(&mut self, merges: bool) {
        if merges {
            self.messages -= 1;
            self.tokens = self.tokens.saturating_sub(tokens::FORM);
        }
    }
}

impl Limits {
    fn allow(&self, size: Size) -> bool {
        self.messages.is_none_or(|most| size.messages <= most)
            && self.tokens.is_none_or(|most| size.tokens <= most)
    }

    /// Returns the size limits as text.
    fn shown(&self) -> String {
        let messages = self.messages.map(|n| format!("{n} messages"));
        let tokens = self.tokens.map(|n| format!("{n} tokens"));
        messages.into_iter().chain(tokens).collect::<Vec<_>>().join(" or ")
    }
}

/// Drops the oldest turns until the rest is within the limits.
///
/// Items are counted. The results of pair repair and merging are counted too, so that they need not be limited again.
pub fn limit(mut items: Vec<Item>, plan: &Plan, changes: &mut Vec<Change>) -> (Vec<Item>, Limited) {
    let Plan { ref limits, counting, measure, .. } = *plan;
    let (shape, missing) = (plan.shape(), counting.message(&pairing::missing()));
    unite(&mut items);
    let asked = items.iter().filter(|item| item.begins_turn).count();
    if items.is_empty() || *limits == Limits::default() {
        return (items, Limited { turns: asked, kept: asked, exceeds: false });
    }
    let all = stretches(&items).count();
    let Old { count: mut gone, mut why } = old(&items, limits, asked);
    let stays = stays(&items);
    let (sized, places) = sizes(&items, &stays, gone, shape, missing);
    let newest = sized.len() - 1;
    let tokens = limits.tokens.map(|most| measure.within(most));
    let fits = fitting(&sized, &Limits { tokens, ..*limits }, shape);
    let exceeds = fits > newest;
    let first = fits.min(newest).max(1);
    if first > 1 {
        gone += first - 1;
        why = format!("with this turn, there would be more than {}", limits.shown());
    }
    let stays: Vec<bool> =
        stays.into_iter().zip(places).map(|(stays, place)| stays || place >= first).collect();
    let kept = leave_out(&mut items, &stays, &why.into(), changes);
    (kept, Limited { turns: asked, kept: asked.min(all - gone), exceeds })
}

/// Makes one turn of consecutive user messages without an answer between them: the provider gets them as one message.
pub(super) fn unite(items: &mut [Item]) {
    let mut is_asked = false;
    for item in items {
        if matches!(item.role(), Role::Assistant | Role::Tool) {
            is_asked = false;
        } else if item.begins_turn {
            item.begins_turn = !is_asked;
            is_asked = true;
        }
    }
}

/// Drops the items that are not kept. There may be millions of either kind, so the memory of dropped items is freed along the
/// way.
fn leave_out(
    items: &mut Vec<Item>,
    stays: &[bool],
    why: &Arc<str>,
    changes: &mut Vec<Change>,
) -> Vec<Item> {
    const GIVEN_BACK: usize = 1 << 16;
    let told = changes.len();
    let mut kept = Vec::new();
    while let Some(item) = items.pop() {
        if items.len().is_multiple_of(GIVEN_BACK) {
            items.shrink_to_fit();
        }
        if stays.get(items.len()) == Some(&true) {
            kept.push(item);
        } else {
            let (entries, why) = (item.entries.clone(), Arc::clone(why));
            changes.push(Change { step: Step::Limit, act: Act::Dropped, entries, why });
        }
    }
    kept.reverse();
    if let Some(told) = changes.get_mut(told..) {
        told.reverse();
    }
    kept
}

/// Returns the turns, preceded by the messages before the first one.
fn stretches(items: &[Item]) -> impl Iterator<Item = &[Item]> {
    items.chunk_by(|_, next| !next.begins_turn)
}

/// Returns for each item whether it is always kept: summaries, and instructions before the first turn.
fn stays(items: &[Item]) -> Vec<bool> {
    let mut has_begun = false;
    let stays = items.iter().map(|item| {
        has_begun |= item.begins_turn;
        item.is_summary() || item.role() == Role::System && !has_begun
    });
    stays.collect()
}

/// Returns the stretch of each item, with all old ones counted as one, and the number of stretches.
fn places(items: &[Item], old: usize) -> (Vec<usize>, usize) {
    let mut places = Vec::with_capacity(items.len());
    let mut count = 1;
    for (at, stretch) in stretches(items).enumerate() {
        count += usize::from(at >= old);
        places.extend(stretch.iter().map(|_| count - 1));
    }
    (places, count)
}

/// Calls `each` with every message that is sent, its item, and the stretch it will be in: a result moves to its call, wherever it
/// was.
fn each_sent(
    items: &[Item],
    places: &mut [usize],
    mut each: impl FnMut(Slot, (usize, &Item), usize),
) {
    let mut current = 0;
    each_slot(items, |slot| {
        let (Slot::Item(at) | Slot::Missing(at, _)) = slot;
        let (Some(item), Some(place)) = (items.get(at), places.get_mut(at)) else { return };
        if item.role() == Role::Tool {
            *place = current;
        } else {
            current = *place;
        }
        each(slot, (at, item), current);
    });
}

/// Returns the sizes of the stretches as they will be sent, with all old ones counted as one at the beginning, and the stretch of
/// each item.
fn sizes(
    items: &[Item],
    stays: &[bool],
    old: usize,
    shape: Shape,
    missing: u64,
) -> (Vec<Stretch>, Vec<usize>) {
    let (mut places, count) = places(items, old);
    let mut sized = vec![Stretch::default(); count];
    each_sent(items, &mut places, |slot, (at, item), place| {
        let (tokens, by) = match slot {
            Slot::Item(_) => (item.tokens.unwrap_or(0), side(item.role(), shape)),
            Slot::Missing(..) => (missing, side(Role::Tool, shape)),
        };
        let Some(stretch) = sized.get_mut(place) else { return };
        let one = Size { messages: 1, tokens };
        let is_fixed = stays.get(at) == Some(&true) && !matches!(slot, Slot::Missing(..));
        if !is_fixed && place == 0 {
            return;
        }
        if is_fixed {
            stretch.is_parted |= stretch.ends.is_none();
            stretch.opens |= stretch.ends.is_none() && by == Side::User;
            stretch.ends = stretch.ends.map(|(first, _)| (first, Side::System));
            stretch.fixed = stretch.fixed + one;
            return;
        }
        let merges = stretch.ends.is_some_and(|(_, last)| last == by) && merges(by, shape);
        stretch.size = stretch.size + one;
        stretch.size.less(merges);
        stretch.ends = Some((stretch.ends.map_or(by, |(first, _)| first), by));
    });
    (sized, places)
}

/// Returns true if two adjacent messages of this side are certain to be merged.
fn merges(by: Side, shape: Shape) -> bool {
    shape != Shape::Messages && matches!(by, Side::Model | Side::User)
}

/// Returns the stretches that are dropped whatever their size, and why: they began too early, or exceed the number of turns.
fn old(items: &[Item], limits: &Limits, asked: usize) -> Old {
    let newest = stretches(items).count().saturating_sub(1);
    let mut old = Old { count: 0, why: String::new() };
    if let Some(since) = limits.since {
        let (mut places, count) = places(items, 0);
        let mut times: Vec<Option<Timestamp>> = vec![None; count];
        each_sent(items, &mut places, |_, (_, item), place| {
            if let Some(time) = times.get_mut(place) {
                *time = time.or_else(|| item.time());
            }
        });
        // A turn without a time is as old as the one before it.
        let mut is_old = false;
        for (at, time) in times.into_iter().enumerate().skip(1) {
            is_old = time.map_or(is_old, |time| time < since);
            old.count = if is_old { at } else { old.count };
        }
        old.why = format!("its turn began before {since}");
    }
    if let Some(most) = limits.turns.filter(|&most| most < asked) {
        // The messages before the first turn are not a turn.
        let count = newest + 1 - most.max(1);
        if count > old.count {
            let newest = if most <= 1 { "turn".to_owned() } else { format!("{most} turns") };
            old = Old { count, why: format!("it is older than the newest {newest}") };
        }
    }
    Old { count: old.count.min(newest), ..old }
}

/// Returns the first stretch from which on all are within the limits; their number if not even the newest is.
fn fitting(sized: &[Stretch], limits: &Limits, shape: Shape) -> usize {
    // Go backwards from the newest as long as everything is within the limits. Messages that are always kept are always included.
    let mut before = sized.iter().fold(Size::default(), |all, stretch| all + stretch.fixed);
    let mut after = Size { messages: 0, tokens: tokens::END };
    let opened = sized.iter().position(|stretch| stretch.opens);
    // Who speaks first after the stretch, and whether a neighbour of the same side is merged with it.
    let (mut behind, mut next) = (None, None);
    let mut fits = sized.len();
    for (at, stretch) in sized.iter().enumerate().skip(1).rev() {
        before.messages -= stretch.fixed.messages;
        before.tokens -= stretch.fixed.tokens;
        after = after + stretch.size + stretch.fixed;
        let meets = stretch.ends.zip(next).is_some_and(|((_, last), next)| last == next);
        after.less(meets && stretch.ends.is_some_and(|(_, last)| merges(last, shape)));
        behind = stretch.ends.map(|(first, _)| first).or(behind);
        next = if stretch.is_parted { None } else { stretch.ends.map(|(first, _)| first).or(next) };
        // If the model would speak first, a message is inserted before it.
        let has_opened = opened.is_some_and(|opened| opened <= at);
        let bootstrap = usize::from(behind == Some(Side::Model) && !has_opened);
        let whole =
            before + after + Size { messages: bootstrap, tokens: BOOTSTRAP * bootstrap as u64 };
        if !limits.allow(whole) {
            break;
        }
        fits = at;
    }
    fits
}

/// An upper bound for the size of the message inserted before the first message of the model.
const BOOTSTRAP: u64 = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        context::{
            measure::{Figure, Measure, Scale},
            sanitize::Hygiene,
            tokens::Counting,
        },
        model::{Block, EntryNumber, Message},
    };

    fn said(role: Role, text: &str, entry: u64) -> Item {
        let message = Message {
            time: Some(Timestamp(0)),
            ..Message::new(role, vec![Block::Text(text.into())])
        };
        let mut item = Item::said(message, EntryNumber::new(entry));
        (item.begins_turn, item.tokens) = (role == Role::User, Some(10));
        item
    }

    /// Turns of a question and an answer behind instructions, some of them summaries.
    fn turns(n: u64) -> Vec<Item> {
        let mut items = vec![said(Role::System, "rules", 1)];
        for turn in 0..n {
            let mut user = said(Role::User, "question", turn * 2 + 2);
            user.change(|said| said.time = Some(Timestamp(i64::try_from(turn).unwrap())));
            items.extend([user, said(Role::Assistant, "answer", turn * 2 + 3)]);
        }
        items
    }

    fn plan(limits: Limits) -> Plan {
        let hygiene = Hygiene { shape: Shape::Anthropic, images: true, maker: None };
        let (counting, measure) = (Counting::Estimate, Measure::default());
        Plan { hygiene, limits, counting, measure, in_place: None }
    }

    #[track_caller]
    fn check(items: Vec<Item>, limits: Limits, expected: &[u64], exceeds: bool) -> Vec<Change> {
        let mut changes = Vec::new();
        let (kept, limited) = limit(items, &plan(limits), &mut changes);
        let kept: Vec<EntryNumber> = kept.iter().filter_map(Item::entry).collect();
        assert_eq!(kept, expected);
        assert_eq!(limited.exceeds, exceeds);
        changes
    }

    #[test]
    fn the_newest_turns_stay_and_the_instructions_do() {
        let turns_of = |turns| Limits { turns: Some(turns), ..Limits::default() };
        check(turns(3), turns_of(5), &[1, 2, 3, 4, 5, 6, 7], false);
        check(turns(3), turns_of(3), &[1, 2, 3, 4, 5, 6, 7], false);
        let changes = check(turns(3), turns_of(2), &[1, 4, 5, 6, 7], false);
        assert_eq!(changes.len(), 2);
        assert_eq!(&*changes[0].why, "it is older than the newest 2 turns");
        check(turns(3), turns_of(0), &[1, 6, 7], false);
        check(Vec::new(), turns_of(1), &[], false);
    }

    #[test]
    fn without_a_limit_all_stays_as_it_does_with_one_that_is_never_reached() {
        let mut parted = turns(3);
        parted[3].change(|said| said.is_summary = true);
        for items in [Vec::new(), turns(0), turns(3), turns(3).split_off(2), parted] {
            let under = |messages| {
                let (limits, mut changes) = (Limits { messages, ..Limits::default() }, Vec::new());
                (limit(items.clone(), &plan(limits), &mut changes), changes)
            };
            assert_eq!(under(None), under(Some(usize::MAX)));
        }
    }

    #[test]
    fn messages_and_tokens_are_whole_turns() {
        let messages = |n| Limits { messages: Some(n), ..Limits::default() };
        check(turns(3), messages(7), &[1, 2, 3, 4, 5, 6, 7], false);
        check(turns(3), messages(6), &[1, 4, 5, 6, 7], false);
        check(turns(3), messages(1), &[1, 6, 7], true);
        let tokens = |n| Limits { tokens: Some(n), ..Limits::default() };
        check(turns(3), tokens(72), &[1, 2, 3, 4, 5, 6, 7], false);
        check(turns(3), tokens(71), &[1, 4, 5, 6, 7], false);
        check(turns(3), tokens(5), &[1, 6, 7], true);
    }

    #[test]
    fn tokens_are_those_that_the_counts_stand_for() {
        let figure = |estimated, reported| Figure { estimated, reported };
        let scale = Some(Scale::of(figure(100, 250), figure(200, 450)));
        let measure = Measure { scale, beside: 10, ..Measure::default() };
        let kept = |tokens| {
            let limits = Limits { tokens: Some(tokens), ..Limits::default() };
            let plan = Plan { measure, ..plan(limits) };
            limit(turns(3), &plan, &mut Vec::new()).1.kept
        };
        // 72 estimated ones, 10 beside them, two for each, and a base of 50.
        assert_eq!((kept(214), kept(213)), (3, 2));
    }

    #[test]
    fn only_turns_since_a_moment_stay() {
        let since = |at| Limits { since: Some(Timestamp(at)), ..Limits::default() };
        check(turns(3), since(0), &[1, 2, 3, 4, 5, 6, 7], false);
        check(turns(3), since(2), &[1, 6, 7], false);
        check(turns(3), since(99), &[1, 6, 7], false);
    }

    #[test]
    fn a_turn_without_a_time_is_as_old_as_the_one_before_it() {
        let since = |at| Limits { since: Some(Timestamp(at)), ..Limits::default() };
        let mut items = turns(4);
        for item in &mut items[3..5] {
            item.change(|said| said.time = None);
        }
        check(items.clone(), since(1), &[1, 6, 7, 8, 9], false);
        check(items.clone(), since(0), &[1, 2, 3, 4, 5, 6, 7, 8, 9], false);
        let limits = Limits { messages: Some(3), ..since(1) };
        let changes = check(items, limits, &[1, 8, 9], false);
        let why: Vec<&str> = changes.iter().map(|change| &*change.why).collect();
        assert_eq!(why, ["with this turn, there would be more than 3 messages"; 6]);
    }

    #[test]
    fn what_the_user_said_without_an_answer_between_is_one_turn_for_every_limit() {
        // Two requests, instructions between them, and an answer.
        let mut items = turns(1);
        items.extend([said(Role::User, "one", 4), said(Role::System, "rule", 5)]);
        items.extend([said(Role::User, "two", 6), said(Role::Assistant, "answer", 7)]);
        for limits in [
            Limits { turns: Some(1), ..Limits::default() },
            Limits { messages: Some(3), ..Limits::default() },
            Limits { tokens: Some(40), ..Limits::default() },
        ] {
            let exceeds = limits.turns.is_none();
            let changes = check(items.clone(), limits, &[1, 4, 5, 6, 7], exceeds);
            assert_eq!(changes.len(), 2, "{limits:?}");
        }
        let all = Limits { turns: Some(9), ..Limits::default() };
        let (_, limited) = limit(items, &plan(all), &mut Vec::new());
        assert_eq!((limited.turns, limited.kept), (2, 2));
    }

    #[test]
    fn a_summary_stays_wherever_it_stands() {
        let mut items = turns(3);
        items[3].change(|said| said.is_summary = true);
        let limits = Limits { turns: Some(1), ..Limits::default() };
        check(items, limits, &[1, 4, 6, 7], false);
    }

    #[test]
    fn a_key_names_whom_an_agent_talks_to() {
        let channels: BTreeMap<String, Channel> = [(
            "telegram".to_owned(),
            Channel { direct: Some(5), group: Some(9), users: [("4711".to_owned(), 2)].into() },
        )]
        .into();
        let check = |key: &str, turns| {
            let found = Key::parse(key).and_then(|key| turns_of(&channels, &key));
            assert_eq!(found, turns, "{key}");
        };
        check("agent:main:telegram:direct:4711", Some(2));
        check("agent:main:Telegram:dm:4711:thread:9", Some(2));
        check("telegram:dm:4712:topic:1", Some(5));
        check("telegram:direct:4711:thread:x", Some(5));
        check("agent:main:telegram:group:-1:thread:1", Some(9));
        check("telegram:channel:c", Some(9));
        check("telegram:cron:c", None);
        check("discord:direct:4711", None);
        check("agent:main", None);
        check("", None);
    }
}
