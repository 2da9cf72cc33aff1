//! Spending: the tokens that agents recorded, by day, agent, model, folder and session, and what they cost.
//!
//! ```text
//! answer with a provider's id     once, wherever it is copied; the last record of an id has its final figures
//! report with a running total     once among sessions that were forked from one another
//! answer with a time              once for the time and its figures
//! any other                       once in its session for its figures
//! ```
//!
//! Invariant: an answer counts for the session that had it first, so sums over any groups are equal.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::LazyLock,
};

use chrono::NaiveDate;
use memchr::memmem::Finder;

use crate::{
    archive::{Archive, At},
    json::Raw,
    model::{EntryNumber, Kind, LineId, Record, TieKind, Timestamp, Usage},
    report::{Effort, Expense, Spent, UnreadSession},
    session::Session,
    store::{SessionFilter, Store},
    verbs::{
        OpsError,
        find::{
            members::{Member, family, members, or_named},
            threads::Readers,
        },
        look::prices::Prices,
    },
    wire::Telling,
};

/// How many entries are read together.
const BATCH: usize = 1 << 12;

/// Answers without this are not parsed.
static USAGE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"usage"));

/// Which answers count.
#[derive(Clone, Copy)]
pub struct Period<'a> {
    /// Those at this time or later.
    pub since: Option<Timestamp>,
    /// Those before this time.
    pub until: Option<Timestamp>,
    /// Returns the day of a time in the reader's zone.
    pub day: &'a dyn Fn(Timestamp) -> NaiveDate,
}

impl Period<'_> {
    fn has(&self, time: Option<Timestamp>) -> bool {
        self.since.is_none_or(|since| time.is_some_and(|time| since <= time))
            && self.until.is_none_or(|until| time.is_some_and(|time| time < until))
    }
}

/// What one model used in one session on one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The day, if known.
    pub day: Option<NaiveDate>,
    /// The agent.
    pub agent: String,
    /// The model, if known.
    pub model: Option<String>,
    /// The session's folder.
    pub folder: Option<String>,
    /// The session's id.
    pub session: String,
    /// The session's title.
    pub title: Option<String>,
    /// How many turns began with one of these answers.
    pub turns: u64,
    /// The number of answers.
    pub requests: u64,
    /// Their tokens.
    pub usage: Usage,
    /// The time of the first answer.
    pub first: Option<Timestamp>,
    /// The time of the last answer.
    pub last: Option<Timestamp>,
}

/// By what rows are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// By day, the newest first.
    Day,
    /// By agent.
    Agent,
    /// By model.
    Model,
    /// By folder.
    Folder,
    /// By session.
    Session,
}

impl By {
    /// Returns the word used in every output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Agent => "agent",
            Self::Model => "model",
            Self::Folder => "folder",
            Self::Session => "session",
        }
    }

    fn name(self, row: &Row) -> Option<String> {
        match self {
            Self::Day => row.day.map(|day| day.to_string()),
            Self::Agent => Some(row.agent.clone()),
            Self::Model => row.model.clone(),
            Self::Folder => row.folder.clone(),
            Self::Session => Some(row.session.clone()),
        }
    }
}

/// An answer.
struct Answer {
    entry: EntryNumber,
    /// The prompt before it.
    turn: Option<EntryNumber>,
    time: Option<Timestamp>,
    model: Option<String>,
    usage: Usage,
}

/// Returns what sessions used, hidden ones and sub-agents included: those that pass a filter, or some with their sub-agents.
/// Reports how many sessions of how many are done. Damaged sessions are returned separately.
pub fn spending(
    archive: &Archive,
    filter: &SessionFilter,
    some: Option<&Session>,
    period: &Period<'_>,
    each: &mut dyn FnMut(u64, u64),
) -> Result<(Vec<Row>, Vec<UnreadSession>), OpsError> {
    let filter = SessionFilter { hidden: true, sub_agents: true, ..filter.clone() };
    let some = some.map(|session| family(archive.store(), session)).transpose()?;
    let mut unread = Vec::new();
    let mut members = members(archive, &filter, some.as_deref(), None, &mut unread)?;
    let origins = Origins::of(&members);
    // A fork may begin with the records of its original, times included.
    members.sort_by_cached_key(|member| {
        let card = &member.listed.card;
        (origins.depth(member), card.started.is_none(), card.started, member.session.key)
    });
    let mut readers = Readers::of(archive.store());
    let laid = readers.laid();
    let read = |store: &dyn Store, member: &Member, next| {
        answers(store, &member.session, &origins.root(member), EntryNumber::FIRST..next)
    };
    let work = |store: &dyn Store, n: usize| {
        members.get(n).filter(|member| !member.is_grown).map(|it| read(store, it, it.held))
    };
    let mut rows = Rows { period, seen: BTreeSet::new(), by_key: BTreeMap::new() };
    let (mut n, mut failed) = (0, None);
    readers.in_order(members.len(), &work, &mut |found| {
        let Some(member) = members.get(n) else { return };
        n += 1;
        each(n as u64, members.len() as u64);
        let grown = || {
            let next = laid.state(member.session.key)?.next_entry();
            read(laid, member, next)
        };
        match or_named(found.unwrap_or_else(grown), &member.session, &mut unread) {
            Ok(found) => rows.add(n, member, found.unwrap_or_default()),
            Err(error) => failed = failed.take().or(Some(error)),
        }
    });
    failed.map_or(Ok((rows.by_key.into_values().collect(), unread)), Err)
}

/// Returns what a session used, turn by turn.
pub fn effort(session: &At<'_>, prices: &Prices) -> Result<Effort, OpsError> {
    let entries = EntryNumber::FIRST..session.state.next_entry();
    let found = answers(session.store, session, &session.name.id, entries)?;
    let mut effort = Effort::default();
    for Answer { turn, time, model, usage, .. } in found.into_values() {
        let of_turn = effort.turns.entry(turn).or_default();
        of_turn.turns = u64::from(turn.is_some());
        for expense in [of_turn, &mut effort.all] {
            expense.requests += 1;
            charge(expense, model.as_ref(), &usage, prices);
            expense.first = expense.first.into_iter().chain(time).min();
            expense.last = expense.last.max(time);
        }
    }
    if family(session.store, session)?.len() > 1 {
        let period = Period { since: None, until: None, day: &|_| NaiveDate::default() };
        let filter = SessionFilter::default();
        let (rows, _) = spending(session.archive, &filter, Some(session), &period, &mut |_, _| ())?;
        effort.all = sum(&rows, prices);
    } else {
        effort.all.sessions = u64::from(effort.all.requests > 0);
        effort.all.turns = effort.turns.keys().flatten().count() as u64;
    }
    Ok(effort)
}

/// From which sessions others were forked.
struct Origins(BTreeMap<(String, String), String>);

impl Origins {
    fn of(members: &[Member]) -> Self {
        let tied = |member: &Member| {
            let is_origin = |kind| matches!(kind, TieKind::Fork | TieKind::Continuation);
            let tie = member.ties.iter().find(|tie| is_origin(tie.kind))?;
            let name = &member.session.name;
            Some(((name.format.clone(), name.id.clone()), tie.other.clone()))
        };
        Self(members.iter().filter_map(tied).collect())
    }

    /// Returns the ids of the sessions from which one was forked, and theirs.
    fn above(&self, member: &Member) -> Vec<&String> {
        let name = &member.session.name;
        let mut above: Vec<&String> = Vec::new();
        let mut key = (name.format.clone(), name.id.clone());
        while let Some(other) = self.0.get(&key).filter(|other| !above.contains(other)) {
            above.push(other);
            key.1.clone_from(other);
        }
        above
    }

    fn depth(&self, member: &Member) -> usize {
        self.above(member).len()
    }

    fn root(&self, member: &Member) -> String {
        self.above(member).last().map_or_else(|| member.session.name.id.clone(), |id| (*id).clone())
    }
}

/// Reads the answers of a session that report their tokens, by what identifies them. `root` is the session from which it was
/// forked at first.
fn answers(
    store: &dyn Store,
    session: &Session,
    root: &str,
    range: Range<EntryNumber>,
) -> Result<BTreeMap<LineId, Answer>, OpsError> {
    let format = session.format;
    let has_progress = format.traits().has_sub_agents_within;
    let mut found: BTreeMap<LineId, Answer> = BTreeMap::new();
    let (mut turn, mut current) = (None, None);
    for range in EntryNumber::batches(range, BATCH) {
        let records = store.records(session.key, range)?;
        let is_wanted = |record: &&Record| match format.tells(record) {
            Some(Telling::Model | Telling::Figures) => true,
            // Some versions of Claude Code only write what a sub-agent says as its progress.
            _ if record.kind == Kind::Meta => has_progress && record.name.is_some(),
            _ => record.kind == Kind::Assistant,
        };
        let wanted = records.iter().filter(is_wanted);
        let wanted: Vec<EntryNumber> = wanted.map(|record| record.n).collect();
        let mut records = records.iter().peekable();
        store.lines(session.key, &wanted, &mut |entry, line| {
            let mut time = None;
            while let Some(record) = records.next_if(|record| record.n <= entry) {
                if record.kind == Kind::User && !format.is_of_sub_agent(record) {
                    turn = Some(record.n);
                }
                time = record.time;
            }
            // A damaged line is skipped, as `verify` reports it.
            let line = line.unwrap_or_default();
            let Some(record) = Raw::object(&line) else { return };
            let facts = format.told(record);
            current = facts.model.or_else(|| current.take());
            let mut add = |key: String, model: Option<String>, time, usage: Usage| {
                if usage == Usage::default() {
                    return;
                }
                let model =
                    model.or_else(|| current.clone()).filter(|it| format.traits().is_model(it));
                let id = LineId::of(format!("{} {key}", format.name()).as_bytes());
                let known = found.entry(id).or_insert(Answer { entry, turn, time, model, usage });
                known.usage = usage;
            };
            if let Some(usage) = facts.usage {
                let key = match (facts.total, time) {
                    (Some(total), _) => format!("{root} {total:?}"),
                    (None, Some(time)) => format!("{time} {usage:?}"),
                    (None, None) => format!("{} {usage:?}", session.name.id),
                };
                add(key, None, time, usage);
            } else if USAGE.find(&line).is_some() {
                let mut messages = format.messages(record);
                if messages.is_empty() {
                    messages = (format.traits().remarks)(record);
                }
                for message in messages {
                    let Some(usage) = message.usage else { continue };
                    let time = message.time.or(time);
                    let key = match (message.id, time) {
                        (Some(id), _) => id,
                        (None, Some(time)) => format!("{time} {usage:?}"),
                        (None, None) => format!("{} {usage:?}", session.name.id),
                    };
                    add(key, message.model, time, usage);
                }
            }
        })?;
    }
    Ok(found)
}

/// Rows while sessions are added.
struct Rows<'a> {
    period: &'a Period<'a>,
    seen: BTreeSet<LineId>,
    /// By session, day and model.
    by_key: BTreeMap<(usize, Option<NaiveDate>, Option<String>), Row>,
}

impl Rows<'_> {
    /// Adds the answers of the `n`th session that no earlier one had.
    fn add(&mut self, n: usize, member: &Member, found: BTreeMap<LineId, Answer>) {
        let mut fresh: Vec<Answer> = Vec::new();
        for (id, answer) in found {
            if self.seen.insert(id) && self.period.has(answer.time) {
                fresh.push(answer);
            }
        }
        fresh.sort_by_key(|answer| answer.entry);
        let mut last = None;
        for Answer { turn, time, model, usage, .. } in fresh {
            let day = time.map(self.period.day);
            let row = self.by_key.entry((n, day, model.clone())).or_insert_with(|| {
                let (name, card) = (&member.session.name, &member.listed.card);
                Row {
                    day,
                    agent: name.format.clone(),
                    model,
                    folder: card.folder.clone(),
                    session: name.id.clone(),
                    title: card.title.clone(),
                    turns: 0,
                    requests: 0,
                    usage: Usage::default(),
                    first: time,
                    last: time,
                }
            });
            row.turns += u64::from(turn.is_some() && turn != last);
            last = turn;
            row.requests += 1;
            row.usage.add(&usage);
            row.first = row.first.into_iter().chain(time).min();
            row.last = row.last.max(time);
        }
    }
}

/// Returns the sum of rows.
pub fn sum<'r>(rows: impl IntoIterator<Item = &'r Row>, prices: &Prices) -> Expense {
    let (mut sum, mut sessions) = (Expense::default(), BTreeSet::new());
    for row in rows {
        sessions.insert((&row.agent, &row.session));
        sum.turns += row.turns;
        sum.requests += row.requests;
        charge(&mut sum, row.model.as_ref(), &row.usage, prices);
        sum.first = sum.first.into_iter().chain(row.first).min();
        sum.last = sum.last.max(row.last);
    }
    sum.sessions = sessions.len() as u64;
    sum
}

/// Adds tokens, and their cost if the model has a price.
fn charge(sum: &mut Expense, model: Option<&String>, usage: &Usage, prices: &Prices) {
    sum.usage.add(usage);
    match model.and_then(|model| prices.cost(model, usage)) {
        Some(cost) => sum.cost = Some(sum.cost.unwrap_or(0).saturating_add(cost)),
        None => sum.unpriced = sum.unpriced.saturating_add(usage.total()),
    }
}

/// Returns the sums of groups of rows: the newest day first, otherwise the most expensive group first.
pub fn grouped(rows: &[Row], by: By, prices: &Prices) -> Vec<Spent> {
    let mut groups: BTreeMap<Option<String>, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        groups.entry(by.name(row)).or_default().push(row);
    }
    let spent = |(name, rows): (Option<String>, Vec<&Row>)| {
        let title = rows.first().filter(|_| by == By::Session).and_then(|row| row.title.clone());
        Spent { by: by.as_str(), name, title, expense: sum(rows, prices) }
    };
    let mut groups: Vec<Spent> = groups.into_iter().map(spent).collect();
    match by {
        By::Day => groups.reverse(),
        _ => groups.sort_by_key(|it| Reverse((it.expense.cost, it.expense.usage.total()))),
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_add_up_and_tokens_without_a_price_are_counted_apart() {
        let day = |n| NaiveDate::from_ymd_opt(2026, 11, n);
        let row = |session: &str, n, model: Option<&str>, tokens| Row {
            day: day(n),
            agent: "claude".to_owned(),
            model: model.map(str::to_owned),
            folder: None,
            session: session.to_owned(),
            title: Some(session.to_uppercase()),
            turns: 1,
            requests: 2,
            usage: Usage { input: tokens, ..Usage::default() },
            first: Some(Timestamp(i64::from(n))),
            last: Some(Timestamp(i64::from(n) + 5)),
        };
        let rows = [
            row("a", 1, Some("claude-opus-4-5"), 1_000),
            row("a", 2, Some("no-such-model"), 300),
            row("b", 2, None, 20),
            row("b", 2, Some("claude-opus-4-5"), 400),
        ];
        let prices = Prices::with(&BTreeMap::new());
        let all = sum(&rows, &prices);
        assert_eq!((all.sessions, all.turns, all.requests), (2, 4, 8));
        assert_eq!((all.cost, all.unpriced, all.usage.input), (Some(7_000), 320, 1_720));
        assert_eq!((all.first, all.last), (Some(Timestamp(1)), Some(Timestamp(7))));
        let check = |by, expected: &[(Option<&str>, Option<u64>, u64)]| {
            let groups = grouped(&rows, by, &prices);
            let of = |it: &Spent| (it.name.clone(), it.expense.cost, it.expense.unpriced);
            let found: Vec<_> = groups.iter().map(of).collect();
            let named = |it: &(Option<&str>, _, _)| (it.0.map(str::to_owned), it.1, it.2);
            assert_eq!(found, expected.iter().map(named).collect::<Vec<_>>());
            assert_eq!(groups.iter().map(|it| it.expense.turns).sum::<u64>(), all.turns);
        };
        check(
            By::Day,
            &[(Some("2026-11-02"), Some(2_000), 320), (Some("2026-11-01"), Some(5_000), 0)],
        );
        check(By::Session, &[(Some("a"), Some(5_000), 300), (Some("b"), Some(2_000), 20)]);
        check(
            By::Model,
            &[
                (Some("claude-opus-4-5"), Some(7_000), 0),
                (Some("no-such-model"), None, 300),
                (None, None, 20),
            ],
        );
        check(By::Folder, &[(None, Some(7_000), 320)]);
    }
}
