//! Truncates tool results: which ones, how much of one may be shown, where it is cut, and the text that replaces the rest.
//!
//! ```text
//! chosen   results of older turns, of some tools, all but the newest of each tool; thinking of older turns
//! limit    min(floor(window x 0.3) x 4, 400,000) characters for one result
//! kept     the limit minus the suffix, at least 2,000; several texts share it by length; nothing if it is cleared
//! cut      after the last line end in the last 20% of the kept part, else between two user-perceived characters
//! suffix   says how much is hidden, and which command shows it
//! ```
//!
//! The unit is the Unicode scalar value, not the UTF-16 unit that some agents count: no cut can split a surrogate
//! pair, and `show` and `audit` count alike.
//!
//! Invariant: a truncated text is a prefix of the text plus the suffix, and is never as long as the text.
//! Invariant: no cut is within a character, between a base and its marks, or between the parts of a joined emoji.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::Serialize;
use unicode_segmentation::GraphemeCursor;

use super::Item;
use crate::model::{Block, CheckpointNumber, Cut, EntryNumber};

/// The minimum that is kept of a text, however small the limit.
pub const KEPT: usize = 2_000;
/// The maximum length of a result, however large the window.
pub const MOST: usize = 400_000;

/// The maximum number of characters of one tool result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Limit {
    /// The maximum of one result.
    chars: usize,
    /// The minimum that is kept of a text.
    #[serde(skip)]
    kept: usize,
}

impl Limit {
    /// The limit of a result that is cleared: only the suffix remains.
    pub const CLEARED: Self = Self { chars: 0, kept: 0 };

    /// Returns the limit for a window in tokens: three tenths of it, at four characters per token.
    pub fn of_window(tokens: u64) -> Self {
        let chars = u128::from(tokens) * 3 / 10 * 4;
        Self::of_chars(usize::try_from(chars).unwrap_or(MOST).min(MOST))
    }

    /// Returns a limit in characters.
    pub fn of_chars(chars: usize) -> Self {
        Self { chars, kept: KEPT }
    }

    /// Returns the limit in characters.
    pub fn chars(self) -> usize {
        self.chars
    }
}

/// What is shortened in a context: which results and how far, and whether thinking is dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bound {
    /// How many characters a chosen result may have: 0 if it is cleared, `null` if results stay whole.
    pub limit: Option<Limit>,
    /// The window from which the limit was computed, in tokens.
    pub window: Option<u64>,
    /// How many of the newest turns are left alone.
    pub older_than: usize,
    /// How many of the newest results of each tool are left alone.
    pub keep_last: usize,
    /// The tools whose results are shortened, in upper or lower case; all tools if empty.
    pub tools: Vec<String>,
    /// Whether thinking is dropped, except in the newest turn.
    pub thinking: bool,
}

/// The part of a context that is shortened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chosen {
    /// The calls whose results are shortened, by the result's entry; all of them if None.
    results: Option<BTreeMap<EntryNumber, BTreeSet<String>>>,
    /// The entries with thinking to drop.
    pub(crate) thinking: BTreeSet<EntryNumber>,
    /// How many blocks of thinking are all that an answer says.
    pub(crate) needed: u64,
}

impl Bound {
    /// Limits every result.
    pub fn of(limit: Limit) -> Self {
        Self { limit: Some(limit), ..Self::default() }
    }

    /// Limits every result to a share of a window.
    pub fn of_window(tokens: u64) -> Self {
        Self { window: Some(tokens), ..Self::of(Limit::of_window(tokens)) }
    }

    /// Returns true if it chooses something, and does not apply to every result.
    pub fn is_choosing(&self) -> bool {
        let Self { older_than, keep_last, tools, thinking, .. } = self;
        *older_than > 0 || *keep_last > 0 || !tools.is_empty() || *thinking
    }

    /// Chooses from the messages of a context, which are in order.
    ///
    /// An answer keeps its thinking if it says nothing else, because it would be empty without it.
    pub(crate) fn choose(&self, items: &[Item]) -> Chosen {
        let (mut called, mut spoken) = (BTreeMap::new(), BTreeSet::new());
        for item in items {
            for block in &item.message().blocks {
                if let Block::Call { id, name, .. } = block {
                    called.insert(id.clone(), name.to_lowercase());
                }
                spoken.extend(item.id().filter(|_| says(block)));
            }
        }
        let tools: BTreeSet<String> = self.tools.iter().map(|tool| tool.to_lowercase()).collect();
        let mut results: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
        let mut newer: BTreeMap<String, usize> = BTreeMap::new();
        let (mut thinking, mut needed, mut turns) = (BTreeSet::new(), 0, 0);
        for item in items.iter().rev() {
            let Some(entry) = item.entry() else { continue };
            let message = item.message();
            let speaks =
                message.blocks.iter().any(says) || item.id().is_some_and(|id| spoken.contains(&id));
            for block in message.blocks.iter().rev() {
                if let Block::Result { id, .. } = block {
                    let tool = called.get(id).cloned().unwrap_or_default();
                    let is_of_tools = tools.is_empty() || tools.contains(&tool);
                    let newer = newer.entry(tool).or_default();
                    *newer += 1;
                    if is_of_tools && turns >= self.older_than && *newer > self.keep_last {
                        results.entry(entry).or_default().insert(id.clone());
                    }
                } else if matches!(block, Block::Thinking(_)) && turns >= self.older_than.max(1) {
                    needed += u64::from(!speaks);
                    thinking.extend(Some(entry).filter(|_| speaks));
                }
            }
            turns += usize::from(item.begins_turn);
        }
        let results = Some(results).filter(|_| self.is_choosing());
        let chosen = Chosen { results, ..Chosen::default() };
        if self.thinking { Chosen { thinking, needed, ..chosen } } else { chosen }
    }
}

/// Returns true if a block is an answer even without thinking.
fn says(block: &Block) -> bool {
    let is_text = matches!(block, Block::Text(text) if !text.trim().is_empty());
    is_text || matches!(block, Block::Call { .. })
}

impl Chosen {
    /// Returns true if the result of a call in an entry is chosen.
    pub(crate) fn has(&self, entry: EntryNumber, call: &str) -> bool {
        let has = |calls: &BTreeSet<String>| calls.contains(call);
        self.results.as_ref().is_none_or(|results| results.get(&entry).is_some_and(has))
    }

    /// Returns true if any result in an entry is chosen.
    pub(crate) fn has_any(&self, entry: EntryNumber) -> bool {
        self.results.as_ref().is_none_or(|results| results.contains_key(&entry))
    }
}

/// Where the hidden part is: the session and the entry with the whole text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest<'a> {
    /// The session's id.
    pub session: &'a str,
    /// A prefix of the entry's id.
    pub entry: &'a str,
}

impl fmt::Display for Rest<'_> {
    /// Writes the command, without a flag, quoted for a shell.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "undertext show {} -s {}", self.entry, quoted(self.session))
    }
}

/// Returns the command that shows turns of a session, for a model to read.
pub(crate) fn turns(session: &str, first: CheckpointNumber, last: CheckpointNumber) -> String {
    format!("undertext show {}@{first}..@{last}", quoted(session))
}

/// Returns the command that shows a session up to an entry, for a model to read.
pub(crate) fn until(session: &str, entry: &str) -> String {
    format!("undertext log --at {entry} -s {}", quoted(session))
}

/// Quotes a session's id for a shell, if it needs that.
fn quoted(session: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@".contains(c);
    if !session.is_empty() && session.chars().all(is_plain) {
        session.to_owned()
    } else {
        format!("'{}'", session.replace('\'', r"'\''"))
    }
}

/// The beginning of the suffix.
const MARK: &str = "\n[undertext: ";
/// The text between the number of hidden and of all characters.
const OF: &str = " of ";

/// Returns the text that replaces hidden characters.
fn suffix(hidden: usize, whole: usize, rest: Rest<'_>) -> String {
    format!(
        "{MARK}{hidden}{OF}{whole} characters are cut off here, and kept. To read them: `{rest} --hidden`, or a part of \
         them with `--lines 1:200` or `--grep PATTERN`]"
    )
}

/// Returns the text that replaces a result which is left out of one request.
pub fn absence(whole: usize, rest: Rest<'_>) -> String {
    format!(
        "[undertext: this result of {whole} characters is left out of this request, and kept. To read it: `{rest}`]"
    )
}

/// Truncates the texts of one result so that they fit together; None for a text that stays whole.
///
/// The texts share the limit in proportion to their length.
pub fn texts(texts: &[&str], limit: Limit, rest: Rest<'_>) -> Vec<Option<Cut>> {
    let lengths: Vec<usize> = texts.iter().map(|text| text.chars().count()).collect();
    if lengths.iter().sum::<usize>() <= limit.chars() {
        return vec![None; texts.len()];
    }
    // A text that was truncated before gets the share of its original length, so that it is not truncated again.
    let were = texts.iter().zip(&lengths).map(|(text, length)| {
        let cut = part(text);
        cut.map_or(0, |(own, hidden)| own.chars().count().saturating_add(hidden)).max(*length)
    });
    let were: Vec<usize> = were.collect();
    let total = were.iter().map(|was| *was as u128).sum::<u128>().max(1);
    let share = |was: usize| {
        usize::try_from(limit.chars() as u128 * was as u128 / total).unwrap_or(usize::MAX)
    };
    let sizes = lengths.into_iter().zip(were);
    let cuts = texts.iter().zip(sizes);
    let cut = |(text, (length, was)): (&&str, _)| {
        cut(text, [length, was], Limit { chars: share(was), ..limit }, rest)
    };
    cuts.map(cut).collect()
}

/// Truncates a text to its limit, given its length now and originally; None if that gains nothing.
fn cut(text: &str, [whole, was]: [usize; 2], limit: Limit, rest: Rest<'_>) -> Option<Cut> {
    // The suffix with the largest numbers is the longest.
    let longest = suffix(was, was, rest).chars().count();
    let budget = limit.chars.max(limit.kept + longest);
    if whole <= budget {
        return None;
    }
    let keep = byte_of(text, budget - longest);
    let least = byte_of(text, (budget - longest) / 5 * 4);
    let at = line_end(text, least, keep).unwrap_or_else(|| between(text, least, keep));
    let kept = text.get(..at)?.chars().count();
    Some(Cut { at, kept, whole, suffix: suffix(whole - kept, whole, rest) })
}

/// Returns the offset of the n-th character of a text, from 0.
fn byte_of(text: &str, n: usize) -> usize {
    text.char_indices().nth(n).map_or(text.len(), |(at, _)| at)
}

/// Returns the offset after the last line end between two offsets.
fn line_end(text: &str, from: usize, to: usize) -> Option<usize> {
    text.get(from..to)?.rfind('\n').map(|at| from + at + 1)
}

/// Returns the last offset between two user-perceived characters; the end if there is none.
fn between(text: &str, from: usize, to: usize) -> usize {
    let mut cursor = GraphemeCursor::new(to, text.len(), true);
    if cursor.is_boundary(text, 0).unwrap_or(true) {
        return to;
    }
    let before = cursor.prev_boundary(text, 0).ok().flatten();
    before.filter(|at| (from..to).contains(at)).unwrap_or(to)
}

/// Returns a truncated text without its suffix, and how many characters the suffix says are hidden.
pub fn part(shown: &str) -> Option<(&str, usize)> {
    let (own, suffix) = shown.rfind(MARK).map(|at| shown.split_at(at))?;
    let (hidden, rest) = suffix.strip_prefix(MARK)?.split_once(OF)?;
    let whole = rest.split_once(' ')?.0.parse::<usize>().ok()?;
    let hidden = hidden.parse::<usize>().ok().filter(|hidden| *hidden <= whole)?;
    shown.ends_with(']').then_some((own, hidden))
}

/// Returns the length in bytes of the prefix of `whole` that `shown` contains; None if `shown` is not a truncated form of it.
pub fn seam(whole: &str, shown: &str) -> Option<usize> {
    let (own, hidden) = part(shown)?;
    let rest = whole.strip_prefix(own)?;
    (rest.chars().count() == hidden).then_some(own.len())
}

/// One of the tool results in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight {
    /// The number of characters it would be sent with.
    pub chars: usize,
    /// True if an earlier request contained it in this form.
    pub sent: bool,
}

/// What happens to a result if all results together are too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is sent unchanged.
    Stays,
    /// It is truncated to [`KEPT`] characters.
    Cut,
    /// It is replaced by a short text: see [`absence`].
    Absent,
}

/// Decides which results to shorten until all of them fit into a share of the request. There are three steps, and
/// each takes the oldest result first: truncate new results, so that the model sees the beginning of each; then drop results of
/// earlier requests; then drop new ones.
///
/// A result of an earlier request stays unchanged as long as possible, because a provider's cache ends at the first change.
pub fn guard(results: &[Weight], share: usize) -> Vec<Fate> {
    /// The approximate length of a suffix, or of the text that replaces a result.
    const WORDS: usize = 250;
    let mut fates = vec![Fate::Stays; results.len()];
    let mut total: usize = results.iter().map(|result| result.chars).sum();
    let ladder = [
        (false, Fate::Cut, KEPT + WORDS),
        (true, Fate::Absent, WORDS),
        (false, Fate::Absent, WORDS),
    ];
    for (sent, fate, left) in ladder {
        for (result, at) in results.iter().zip(&mut fates) {
            if total <= share {
                return fates;
            }
            let now = if *at == Fate::Cut { KEPT + WORDS } else { result.chars };
            if result.sent == sent && now > left {
                total -= now - left;
                *at = fate;
            }
        }
    }
    fates
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{Message, Role, Thinking};

    const REST: Rest<'_> = Rest { session: "s", entry: "0123456789ab" };

    fn one(text: &str, chars: usize) -> Option<Cut> {
        texts(&[text], Limit::of_chars(chars), REST).pop().unwrap()
    }

    /// Cuts a text and returns how many characters are kept.
    fn kept(text: &str, chars: usize) -> usize {
        let cut = one(text, chars).unwrap();
        let shown = cut.shown(text);
        assert_eq!(shown.chars().count(), cut.kept + cut.suffix.chars().count());
        assert!(shown.chars().count() <= chars.max(KEPT + cut.suffix.chars().count() + 4));
        assert_eq!(seam(text, &shown), Some(cut.at));
        cut.kept
    }

    /// Reads a conversation: `q` begins a turn, `+a:Read` is a call, `=a` its result, `?` thinking, `w` words. Every answer has an
    /// id of its own; `?w` is one record, `?_` is thinking without anything else.
    fn items(said: &str) -> Vec<Item> {
        let of = |(n, word): (EntryNumber, &str)| {
            let thinking =
                || Block::Thinking(Thinking { text: "hm".into(), ..Thinking::default() });
            let blocks = match word.split_at(1) {
                ("q", _) => vec![Block::Text("go".into())],
                ("+", call) => {
                    let (id, name) = call.split_once(':').unwrap();
                    let (id, name, input) = (id.into(), name.into(), "{}".into());
                    vec![Block::Call { id, name, input, signature: None }]
                }
                ("=", id) => vec![Block::answer(id.into(), "out".into())],
                ("?", "_") => vec![thinking()],
                _ => vec![thinking(), Block::Text("so".into())],
            };
            let role = match word.split_at(1).0 {
                "q" => Role::User,
                "=" => Role::Tool,
                _ => Role::Assistant,
            };
            let mut item = Item::said(Message::new(role, blocks), n);
            item.begins_turn = word == "q";
            item
        };
        EntryNumber::FIRST.onwards().zip(said.split(' ')).map(of).collect()
    }

    #[test]
    fn what_is_cleared_is_chosen_by_age_and_tool() {
        let said =
            "q +a:Read =a +b:Bash =b ?w q +c:Read =c ?_ +d:Read =d ?w q +e:Read =e +f:Bash =f ?w";
        let check = |shortening: Bound, results: &str, thinking: &[u64]| {
            let chosen = shortening.choose(&items(said));
            let calls = chosen.results.unwrap().into_values().flatten();
            assert_eq!(calls.collect::<Vec<_>>().concat(), results, "{shortening:?}");
            let thinking = thinking.iter().map(|n| EntryNumber::new(*n));
            assert_eq!(chosen.thinking, thinking.collect(), "{shortening:?}");
        };
        let all = || Bound { thinking: true, ..Bound::of(Limit::CLEARED) };
        let tools = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        check(all(), "abcdef", &[6, 13]);
        check(Bound { older_than: 1, ..all() }, "abcd", &[6, 13]);
        check(Bound { older_than: 2, thinking: false, ..all() }, "ab", &[]);
        check(Bound { older_than: 3, ..all() }, "", &[]);
        check(Bound { keep_last: 1, ..all() }, "abcd", &[6, 13]);
        check(Bound { keep_last: 2, ..all() }, "ac", &[6, 13]);
        check(Bound { tools: tools(&["READ"]), ..all() }, "acde", &[6, 13]);
        check(Bound { tools: tools(&["bash"]), keep_last: 1, ..all() }, "b", &[6, 13]);
        check(Bound { tools: tools(&["Edit"]), ..all() }, "", &[6, 13]);
        assert!(Bound::of(Limit::CLEARED).choose(&items(said)).results.is_none());
    }

    #[test]
    fn a_text_that_is_cleared_keeps_nothing_and_is_never_cut_again() {
        let clear = |text: &str| texts(&[text], Limit::CLEARED, REST).pop().unwrap();
        let text = "word\n".repeat(100);
        let cut = clear(&text).unwrap();
        let shown = cut.shown(&text);
        assert_eq!((cut.kept, seam(&text, &shown)), (0, Some(0)));
        assert_eq!(clear(&shown), None);
        assert_eq!(one(&shown, 5_000), None);
        assert_eq!(clear(&"x".repeat(shown.chars().count())), None, "it would not get shorter");
        // A result that was only cut before can still be cleared.
        let long = "x".repeat(9_000);
        assert_eq!(clear(&one(&long, 3_000).unwrap().shown(&long)).unwrap().kept, 0);
    }

    #[test]
    fn a_limit_is_three_tenths_of_the_window_and_has_an_end() {
        let check = |tokens, chars| assert_eq!(Limit::of_window(tokens).chars(), chars);
        check(0, 0);
        check(1, 0);
        check(8_001, 9_600);
        check(8_004, 9_604);
        check(32_000, 38_400);
        check(128_000, 153_600);
        check(333_333, 399_996);
        check(333_334, 400_000);
        check(u64::MAX, 400_000);
    }

    #[test]
    fn a_text_within_the_limit_stays() {
        assert_eq!(one(&"x".repeat(5_000), 5_000), None);
        assert!(one(&"x".repeat(5_001), 5_000).is_some());
        assert_eq!(one("", 0), None);
    }

    #[test]
    fn two_thousand_characters_are_kept_whatever_the_limit() {
        assert_eq!(one(&"x".repeat(2_100), 0), None, "a suffix would take more than is hidden");
        assert!(kept(&"x".repeat(3_000), 0) >= KEPT);
        assert!(kept(&"x".repeat(400_000), 1) >= KEPT);
    }

    #[test]
    fn a_cut_is_behind_a_line_end_in_the_last_fifth() {
        let line = "x".repeat(99) + "\n";
        let lines = line.repeat(100);
        assert_eq!(kept(&lines, 5_000) % 100, 0);
        let early = "x".repeat(3_000) + "\n" + &"y".repeat(6_000);
        assert!(kept(&early, 5_000) > 4_700, "a line end before it is too far");
        let windows = ("x".repeat(98) + "\r\n").repeat(100);
        assert_eq!(kept(&windows, 5_000) % 100, 0, "behind both");
    }

    #[test]
    fn no_character_is_cut_as_a_reader_sees_it() {
        // Each takes an odd number of scalars, so that some of the limits fall into the middle of one.
        for unit in ["👩‍👩‍👧‍👦", "e\u{301}\u{323}", "🇩🇪", "👍🏽", "ก็", "한", "\r\n"]
        {
            let length = unit.chars().count();
            let text = unit.repeat(9_000 / length);
            for limit in 4_000..4_000 + 2 * length {
                assert_eq!(kept(&text, limit) % length, 0, "{unit:?} at {limit}");
            }
        }
        let marks = "a".to_owned() + &"\u{301}".repeat(9_000);
        assert!(kept(&marks, 4_000) > 3_000, "no text has so many marks");
    }

    #[test]
    fn astral_characters_count_as_one() {
        let text = "😀".repeat(4_000);
        assert_eq!(one(&text, 4_000), None);
        assert!(kept(&text, 3_999) < 4_000);
    }

    #[test]
    fn texts_share_by_their_size_and_others_stay() {
        let (long, short) = ("x".repeat(60_000), "y".repeat(20_000));
        let cuts = texts(&[&long, "z", &short], Limit::of_chars(40_000), REST);
        let [Some(long), None, Some(short)] = cuts.as_slice() else { panic!("{cuts:?}") };
        assert!((29_000..30_000).contains(&long.kept), "{}", long.kept);
        assert!((9_000..10_000).contains(&short.kept), "{}", short.kept);
    }

    #[test]
    fn what_was_cut_is_not_cut_again() {
        for size in [9_000, 99_000, 1_234_567] {
            let (one, two) = ("x".repeat(size), "y".repeat(size / 2));
            for limit in [2_000, 4_000, 6_001] {
                let limit = Limit::of_chars(limit);
                let shown = |text: &String, cut: &Option<Cut>| {
                    cut.as_ref().map_or_else(|| text.clone(), |cut| cut.shown(text))
                };
                let cuts = texts(&[&one, &two], limit, REST);
                let [one, two] = [shown(&one, &cuts[0]), shown(&two, &cuts[1])];
                assert_eq!(texts(&[&one, &two], limit, REST), [None, None], "{size} {limit:?}");
            }
        }
    }

    #[test]
    fn a_suffix_says_how_to_read_on() {
        let cut = one(&"x".repeat(10_000), 5_000).unwrap();
        insta::assert_snapshot!(cut.suffix.trim_start(), @"[undertext: 5185 of 10000 characters are cut off here, and kept. To read them: `undertext show 0123456789ab -s s --hidden`, or a part of them with `--lines 1:200` or `--grep PATTERN`]");
        let odd = Rest { session: "it's here", ..REST };
        assert_eq!(odd.to_string(), r"undertext show 0123456789ab -s 'it'\''s here'");
        insta::assert_snapshot!(absence(10, REST), @"[undertext: this result of 10 characters is left out of this request, and kept. To read it: `undertext show 0123456789ab -s s`]");
    }

    #[test]
    fn only_a_true_cut_has_a_seam() {
        let text = "x".repeat(10_000);
        let shown = one(&text, 5_000).unwrap().shown(&text);
        assert_eq!(seam(&text, &text), None);
        assert_eq!(seam(&text[1..], &shown), None, "another length");
        assert_eq!(seam(&"y".repeat(10_000), &shown), None, "another text");
        assert_eq!(part("[undertext: many of 1 ]"), None);
        assert_eq!(part("\n[undertext: 2 of 1 characters]"), None);
    }

    fn guarded(results: &[(usize, bool)], share: usize) -> String {
        let weights: Vec<Weight> =
            results.iter().map(|&(chars, sent)| Weight { chars, sent }).collect();
        let word = |fate: &Fate| match fate {
            Fate::Stays => 's',
            Fate::Cut => 'c',
            Fate::Absent => 'a',
        };
        guard(&weights, share).iter().map(word).collect()
    }

    #[test]
    fn the_oldest_results_give_way_first_and_those_that_were_sent_later() {
        let old = |chars| (chars, true);
        let new = |chars| (chars, false);
        assert_eq!(guarded(&[old(10_000), new(10_000)], 20_000), "ss");
        assert_eq!(guarded(&[new(10_000), new(10_000)], 19_000), "cs");
        assert_eq!(guarded(&[old(10_000), new(10_000), new(10_000)], 20_000), "scc");
        assert_eq!(guarded(&[old(10_000), old(10_000), new(10_000)], 13_000), "asc");
        assert_eq!(guarded(&[old(10_000), old(10_000), new(10_000)], 5_000), "aac");
        assert_eq!(guarded(&[old(10_000), new(10_000), new(10_000)], 3_000), "aac");
        assert_eq!(guarded(&[old(10_000), new(10_000)], 0), "aa");
        assert_eq!(guarded(&[old(100), new(100)], 0), "ss", "nothing is gained");
        assert_eq!(guarded(&[], 0), "");
    }

    proptest! {
        #[test]
        fn what_is_shown_and_what_is_hidden_is_the_text(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "line of words\n", "\r\n", "😀", "👩‍👩‍👧", "e\u{301}", "\u{200d}", "\u{0}", "x",
            ]), 0..3_000),
            chars in 0usize..9_000,
        ) {
            let text = pieces.concat();
            let whole = text.chars().count();
            let Some(cut) = one(&text, chars) else { return Ok(()) };
            let shown = cut.shown(&text);
            prop_assert!(whole > chars);
            prop_assert!(shown.chars().count() < whole);
            prop_assert_eq!(cut.kept + cut.hidden(), whole);
            prop_assert_eq!(text[..cut.at].chars().count(), cut.kept);
            prop_assert_eq!(seam(&text, &shown), Some(cut.at));
        }
    }
}
