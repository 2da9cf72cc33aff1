//! Lists: finds sessions by their cards and by their ties to others.
//!
//! Invariant: finding a session by the beginning of its id, or by its ties, never scans all others.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter, types::Value};

use crate::store::sqlite::query::{collect, first};
use crate::{
    model::{Card, SessionName, Tie, TieKind, Timestamp},
    store::{Listed, SessionFilter, SessionKey, StoreError, Within, values::agents_of},
};

const CARDS: &str =
    "SELECT session, format, id, title, folder, started, active, turns, hidden FROM card";
/// True for a session that is not a sub-agent of an existing session.
const ALONE: &str = "NOT EXISTS (
       SELECT 1 FROM tie JOIN session AS parent ON parent.format = card.format AND parent.id = other
       WHERE tie.session = card.session AND kind = ?)";

/// The same condition, computed for all cards at once.
const AGENTS: &str = "AND session NOT IN (
       SELECT tie.session FROM tie JOIN session AS own ON own.key = tie.session
       JOIN session AS parent ON parent.format = own.format AND parent.id = tie.other WHERE kind = ?)";

/// Returns the sessions that lists show, newest first.
pub(super) fn sessions(db: &Connection, filter: &SessionFilter) -> Result<Vec<Listed>, StoreError> {
    let (conditions, bound) = conditions(filter);
    let cards = |which: &str, number: i64| -> Result<Vec<Listed>, StoreError> {
        let sql = format!("{CARDS} WHERE {conditions} {which}");
        let bound = bound.iter().cloned().chain([Value::from(number)]);
        collect(db, &sql, params_from_iter(bound), listed)
    };
    let mut keys: Vec<i64> = match (&filter.prefix, &filter.only) {
        (Some(prefix), _) => beginning(db, prefix)?,
        (None, Some(only)) => only.iter().map(|key| key.0).collect(),
        (None, None) => {
            let limit = filter.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
            return cards("ORDER BY active DESC, session DESC LIMIT ?", limit);
        }
    };
    keys.retain(|key| filter.only.as_ref().is_none_or(|only| only.contains(&SessionKey(*key))));
    let mut found = Vec::new();
    for key in keys {
        found.extend(cards("AND session = ?", key)?);
    }
    found.sort_by_key(|listed| std::cmp::Reverse((listed.card.active, listed.key)));
    found.truncate(filter.limit.unwrap_or(usize::MAX));
    Ok(found)
}

/// Counts the sessions that match a filter, by format.
pub(super) fn tally(
    db: &Connection,
    filter: &SessionFilter,
) -> Result<BTreeMap<String, u64>, StoreError> {
    if filter.prefix.is_some() || filter.only.is_some() {
        let mut tally = BTreeMap::new();
        for listed in sessions(db, &SessionFilter { limit: None, ..filter.clone() })? {
            *tally.entry(listed.name.format).or_default() += 1;
        }
        return Ok(tally);
    }
    // Sub-agents are computed once instead of for each card.
    let (conditions, mut bound) = conditions(&SessionFilter { sub_agents: true, ..filter.clone() });
    let alone = if filter.sub_agents { "" } else { AGENTS };
    bound.extend((!filter.sub_agents).then(|| TieKind::SubAgent.code().into()));
    let sql =
        format!("SELECT format, count(*) FROM card WHERE {conditions} {alone} GROUP BY format");
    let found = collect(db, &sql, params_from_iter(bound), |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(found.into_iter().collect())
}

/// Returns the SQL conditions of a filter, and their bound values. Fields that are not set add no condition, so that an index can
/// serve the others.
fn conditions(filter: &SessionFilter) -> (String, Vec<Value>) {
    let mut all = vec!["hidden <= ?".to_owned()];
    let mut bound = vec![Value::from(filter.hidden)];
    let mut add = |condition: &str, values: &[&str]| {
        all.push(condition.to_owned());
        bound.extend(values.iter().map(|value| Value::from((*value).to_owned())));
    };
    if let Some(format) = &filter.format {
        add("format = ?", &[format]);
    }
    match &filter.folder {
        None => {}
        Some(Within::At(folder)) => add("folder = ?", &[folder]),
        Some(Within::Below(folders)) => {
            let mut any = Vec::new();
            for folder in folders {
                // Everything that begins with the folder and a slash sorts before the folder followed by '0', the character after
                // the slash.
                let trimmed = folder.trim_end_matches('/');
                any.extend([folder.clone(), format!("{trimmed}/"), format!("{trimmed}0")]);
            }
            let each = vec!["folder = ? OR folder >= ? AND folder < ?"; folders.len()];
            let each = if each.is_empty() { "0".to_owned() } else { each.join(" OR ") };
            add(&format!("({each})"), &any.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
    if let Some(title) = &filter.title {
        match behind(title) {
            Some(end) => add("title >= ? AND title < ?", &[title, &end]),
            None => add("title >= ?", &[title]),
        }
    }
    if let Some(since) = filter.since {
        all.push("active >= ? AND active <> 0".to_owned());
        bound.push(since.0.into());
    }
    if !filter.sub_agents {
        all.push(ALONE.to_owned());
        bound.push(TieKind::SubAgent.code().into());
    }
    (all.join(" AND "), bound)
}

/// Returns the first text after all texts with a prefix.
fn behind(beginning: &str) -> Option<String> {
    let mut end = beginning.to_owned();
    while let Some(last) = end.pop() {
        if let Some(next) = (last..=char::MAX).nth(1) {
            end.push(next);
            return Some(end);
        }
    }
    None
}

fn listed(row: &Row<'_>) -> rusqlite::Result<Listed> {
    Ok(Listed {
        key: SessionKey(row.get(0)?),
        name: SessionName { format: row.get(1)?, id: row.get(2)? },
        card: card(row, 3)?,
    })
}

/// Reads the card of a session, beginning at a column.
pub(super) fn card(row: &Row<'_>, at: usize) -> rusqlite::Result<Card> {
    Ok(Card {
        title: row.get(at)?,
        folder: row.get(at + 1)?,
        started: Timestamp::known(row.get(at + 2)?),
        active: Timestamp::known(row.get(at + 3)?),
        turns: row.get(at + 4)?,
        hidden: row.get(at + 5)?,
    })
}

/// Returns the sessions whose id begins with a prefix, in each format.
///
/// These ids are adjacent. The loop detects their end, because no text comes directly after all of them.
fn beginning(db: &Connection, prefix: &str) -> Result<Vec<i64>, StoreError> {
    let mut range =
        db.prepare_cached("SELECT key, id FROM session WHERE format = ? AND id >= ? ORDER BY id")?;
    let mut keys = Vec::new();
    for format in formats(db)? {
        let mut rows = range.query([format.as_str(), prefix])?;
        while let Some(row) = rows.next()? {
            if !row.get::<_, String>(1)?.starts_with(prefix) {
                break;
            }
            keys.push(row.get(0)?);
        }
    }
    Ok(keys)
}

/// Returns the names next to one; see [`nearest`](crate::store::nearest).
pub(super) fn beside(db: &Connection, one: &SessionName) -> Result<Vec<SessionName>, StoreError> {
    let (id, (agents, behind)) = (one.id.as_str(), agents_of(&one.id));
    let mut found = Vec::new();
    for format in formats(db)? {
        let mut ask = |which: &str, bound: &[&str]| -> Result<(), StoreError> {
            let sql = format!("SELECT id FROM session WHERE format = ? AND {which} LIMIT 1");
            let bound = [format.as_str()].into_iter().chain(bound.iter().copied());
            let id = first(db, &sql, params_from_iter(bound), |row| row.get(0))?;
            found.extend(id.map(|id| SessionName { format: format.clone(), id }));
            Ok(())
        };
        ask("id < ? ORDER BY id DESC", &[id])?;
        ask("id = ?", &[id])?;
        if format == one.format {
            ask("id > ? AND id < ? ORDER BY id", &[id, &agents])?;
            ask("id >= ? ORDER BY id", &[&behind])?;
        } else {
            ask("id > ? ORDER BY id", &[id])?;
        }
    }
    Ok(found)
}

/// Returns the formats that have sessions.
fn formats(db: &Connection) -> Result<Vec<String>, StoreError> {
    let mut step =
        db.prepare_cached("SELECT format FROM session WHERE format > ? ORDER BY format LIMIT 1")?;
    let (mut formats, mut last) = (Vec::new(), String::new());
    while let Some(next) = step.query_row([&last], |row| row.get::<_, String>(0)).optional()? {
        last.clone_from(&next);
        formats.push(next);
    }
    Ok(formats)
}

/// Returns the other sessions of a format that have a tie, by name. Usually there is none, and then no session row is read.
///
/// The `+` keeps the planner from walking all sessions of the format, so that it starts at the tie. The results are few: sorting
/// them here is cheaper than letting SQLite allocate a sorter.
pub(super) fn tied(
    db: &Connection,
    format: &str,
    tie: &Tie,
    besides: Option<SessionKey>,
) -> Result<Vec<(SessionKey, SessionName)>, StoreError> {
    let mut found = collect(
        db,
        "SELECT key, format, id FROM tie JOIN session ON key = session
         WHERE other = ? AND kind = ? AND session IS NOT ? AND +format = ?",
        params![tie.other, tie.kind.code(), besides.map(|key| key.0), format],
        |row| {
            let name = SessionName { format: row.get(1)?, id: row.get(2)? };
            Ok((SessionKey(row.get(0)?), name))
        },
    )?;
    found.sort_by(|(_, a), (_, b)| a.cmp(b));
    found.dedup();
    Ok(found)
}
